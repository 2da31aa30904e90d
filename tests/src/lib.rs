//! What the property tests of gibbsite stand on.
//!
//! | module | what |
//! | --- | --- |
//! | [`oracle`], [`chain`] | answers by enumeration of every configuration, or along a chain |
//! | [`models`], [`regression`], [`sequence`], [`synthetic`] | random models and data; the models of the thesis |
//! | [`gaussian`] | Gaussian CRFs by the textbook |
//! | [`experiments`], [`sgcrf`] | what the thesis, and SGCRF, measured with them |
//! | [`desk`], [`packed`] | memory for a run of core's junction engine; packed files |
//!
//! The oracle shares no code with what it checks: no logarithm sums, no index arithmetic, no tables.

pub mod chain;
pub mod desk;
pub mod experiments;
pub mod gaussian;
pub mod models;
pub mod oracle;
pub mod packed;
pub mod regression;
pub mod sequence;
pub mod sgcrf;
pub mod synthetic;
