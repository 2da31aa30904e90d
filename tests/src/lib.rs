//! What the property tests of gibbsite stand on: an oracle that enumerates every configuration
//! ([`oracle`]) or goes along a chain ([`chain`]), random models ([`models`]), and memory for a run of core's junction
//! engine ([`desk`]); Gaussian CRFs by the textbook ([`gaussian`]); random regressions ([`regression`]); packed files ([`packed`]).
//!
//! The oracle shares no code with what it checks: no logarithm sums, no index arithmetic, no tables.

pub mod chain;
pub mod desk;
pub mod gaussian;
pub mod models;
pub mod oracle;
pub mod packed;
pub mod regression;
