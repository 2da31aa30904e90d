//! Learning and labelling of sequences against enumeration: nothing here is shared with what it checks.
//!
//! | file | what is checked |
//! | --- | --- |
//! | `corpus` | (random texts, and the oracle: all labellings of each sequence) |
//! | `expect` | expected counts of chains |
//! | `likelihood` | the likelihood and its gradient |
//! | `training` | optima, interrupted runs, consistency |
//! | `crfsuite` | the same optima and labels as CRFsuite |
//! | `cross_validation` | penalties by cross-validation |
//! | `spilled` | sequences in a file instead of memory |
//! | `stochastic` | averaged stochastic gradients |
//! | `sampling` | draws from a model |
//! | `tagging` | labellings, probabilities, constraints |
//! | `chunks` | chunks and scores as conlleval counts them |
//! | `models` | model files |

mod chunks;
mod corpus;
mod crfsuite;
mod cross_validation;
mod expect;
mod likelihood;
mod models;
mod sampling;
mod spilled;
mod stochastic;
mod tagging;
mod training;
