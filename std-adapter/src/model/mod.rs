//! Fitted models, and the one kind of file that holds them all.
//!
//! [`container`] is the file: a self-describing JSON header and binary sections under a checksum. [`regression`] is what a sparse
//! regression puts in it, [`sequence`] what a chain over sequences does, [`field`] what a field over the columns of a table does,
//! [`gaussian`] what a Gaussian CRF does.

pub mod container;
pub mod field;
mod file;
pub mod gaussian;
mod header;
pub mod regression;
mod sections;
pub mod sequence;
mod varint;

pub use container::{Container, Kind, ModelError};
pub use field::FieldModel;
pub use file::ModelFile;
pub use gaussian::{GaussianFacts, GaussianModel};
pub use regression::{Naming, RegressionModel};
pub use sequence::SequenceModel;
