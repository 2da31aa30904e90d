//! What the property tests of gibbsite stand on: an oracle that enumerates every configuration
//! ([`oracle`]) or goes along a chain ([`chain`]), random models ([`models`]), and memory for a run of core's junction
//! engine ([`desk`]); random regressions ([`regression`]) and chains over sequences ([`sequence`]); packed files ([`packed`]).
//!
//! The oracle shares no code with what it checks: no logarithm sums, no index arithmetic, no tables.

pub mod chain;
pub mod desk;
pub mod models;
pub mod oracle;
pub mod packed;
pub mod regression;
pub mod sequence;
