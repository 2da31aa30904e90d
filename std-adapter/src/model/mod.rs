//! Fitted models, and the one kind of file that holds them all.
//!
//! [`container`] is the file: a self-describing JSON header and binary sections under a checksum. [`regression`] is what a sparse
//! regression puts in it.

pub mod container;
pub mod regression;

pub use container::{Container, Kind, ModelError};
pub use regression::{Naming, RegressionModel};
