//! gibbsite on a desk: conditional random fields and Markov networks over the kernels of [`gibbsite_core`].
//!
//! Data flows one way: files ([`data`]) to networks, networks to plans ([`plan`]), plans and core's engines to
//! answers ([`infer`]). Parallelism ([`par`]) is a parameter and never changes a result.

pub mod cv;
pub mod data;
pub mod export;
pub mod features;
pub mod field;
pub mod gaussian;
pub mod import;
pub mod infer;
pub mod linalg;
pub mod memory;
pub mod model;
pub mod objective;
pub mod par;
pub mod plan;
pub mod plot;
pub mod regress;
pub mod sequence;
pub mod solver;
pub mod sparse;
pub mod theory;
