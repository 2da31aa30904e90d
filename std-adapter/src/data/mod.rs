//! Samples, dictionaries and readers: what comes out of files, checked once at the border.

pub mod matrix;
pub mod network;
pub mod source;
pub mod uai;
