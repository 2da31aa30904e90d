//! Samples, dictionaries and readers.

pub mod network;
pub mod uai;
