//! Inference engines, one a file. Each takes its memory as an argument and says beforehand, in a
//! `…_len` function, how much that is.
mod blanket;
pub mod chain;
mod contract;
pub mod fork;
pub mod gaussian;
pub mod gibbs;
pub mod icm;
pub mod junction;
mod layout;
mod loops;
pub mod loopy;
mod message;
pub mod plan;
mod priority;
mod semiring;
pub mod stream;
pub mod tree;
pub mod trw;

pub use blanket::{conditional, log_conditional};
