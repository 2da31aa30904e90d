//! Samples, dictionaries and readers: what comes out of files, checked once at the border.

pub mod cache;
mod csv;
pub mod dataset;
pub(crate) mod mapped;
pub mod matrix;
pub mod network;
pub mod npy;
pub mod numbers;
pub mod rows;
pub mod sequences;
pub mod source;
mod svmlight;
pub mod table;
pub mod uai;
