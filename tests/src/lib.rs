//! What the property tests of gibbsite stand on: an oracle that enumerates every configuration
//! ([`oracle`]), random models for it ([`models`]), and memory for a run of core's junction engine ([`desk`]).
//!
//! The oracle shares no code with what it checks: no logarithm sums, no index arithmetic, no tables.

pub mod desk;
pub mod models;
pub mod oracle;
