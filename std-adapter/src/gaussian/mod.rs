//! Sparse Gaussian CRFs as a user meets them: many correlated real outputs given inputs, `y | x ~ N(-Λ⁻¹Θᵀx, Λ⁻¹)` with sparse Λ and Θ (SGCRF).
//!
//! [`fit()`] learns one, [`path`] a falling sequence of penalties, [`cv`] chooses among them, [`predict`] gives means, intervals, samples and revisions as part of
//! the outputs arrives, [`score`] says how good they are. [`baselines`] are what the paper compares with, [`factor`] is Λ as a device wants it.

pub mod baselines;
pub mod cv;
mod error;
pub mod factor;
mod fit;
pub mod memory;
pub mod normal;
mod path;
pub mod predict;
mod prepare;
mod refit;
pub mod score;

pub use error::GaussianError;
pub use fit::{GaussianFit, GaussianParams, GaussianSolver, Theta, fit};
pub use path::path;
