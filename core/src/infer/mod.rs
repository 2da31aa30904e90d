//! Inference engines, one a file. Each takes its memory as an argument and says beforehand, in a
//! `…_len` function, how much that is.
pub mod chain;
pub mod tree;
pub mod loopy;
pub mod gibbs;
pub mod junction;
