//! (being written)
pub mod data;
pub mod infer;
pub mod par;
pub mod plan;
