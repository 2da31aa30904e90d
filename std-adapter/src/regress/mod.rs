//! Sparse regression as a user meets it: Lasso and logistic, with certificates.
//!
//! [`fit()`] solves for one `λ`, [`path`](path::path) for a falling sequence of them, [`cross_validate`](cv::cross_validate) chooses one.

pub mod certificate;
pub mod cv;
pub mod fit;
pub mod path;
mod prepare;
pub mod problem;
pub mod score;

pub use fit::{Fit, Lambda, RegressError, RegressParams, Solver, Task, fit};
