//! How good and how costly: what the theory says about a problem before it is solved. Calls solvers; nothing calls it.

pub mod parallelism;
