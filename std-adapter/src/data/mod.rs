//! Samples, dictionaries and readers: what comes out of files, checked once at the border.

pub mod network;
pub mod source;
pub mod uai;
