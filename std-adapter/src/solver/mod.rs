//! One file an algorithm.

pub mod monitor;
