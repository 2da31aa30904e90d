//! Sparse regression as a user meets it: Lasso and logistic, with certificates.

pub mod certificate;
pub mod problem;
