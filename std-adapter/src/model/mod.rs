//! Fitted models, and the one kind of file that holds them all.
//!
//! [`container`] is the file: a self-describing JSON header and binary sections under a checksum. [`regression`] is what a sparse
//! regression puts in it, [`sequence`] what a chain over sequences does.

pub mod container;
mod header;
pub mod regression;
pub mod sequence;
mod varint;

pub use container::{Container, Kind, ModelError};
pub use regression::{Naming, RegressionModel};
pub use sequence::SequenceModel;
