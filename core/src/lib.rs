//! The allocation-free heart of gibbsite: factor tables and inference for discrete Markov networks and
//! conditional random fields, the same code on a desk and on a microcontroller.
//!
//! - `no_std`, no allocator, no `unsafe`, no panic: memory arrives as an argument, and every routine
//!   that works has a `…_len` twin that says how much it needs;
//! - log space; `-inf` is a legal log-potential (a forbidden configuration), NaN and `+inf` are not;
//! - generic over `f32` and `f64` through [`math::Real`], with the same bits on every target; max-product and ascent in whole units too
//!   ([`score::Score`]), for cores without floating point.
//!
//! Start with [`graph::FactorGraph`] and an engine of [`infer`].
#![no_std]

mod arena;
pub mod column;
pub mod coord;
pub mod error;
pub mod graph;
pub mod ids;
pub mod image;
pub mod infer;
pub mod lanes;
pub mod local;
pub mod local_coord;
mod log;
pub mod log_add;
pub mod loss;
pub mod math;
pub mod online;
pub mod penalty;
pub mod score;
pub mod stride;
pub mod table;
mod wide;
