//! One file an algorithm. Those for sparse regression take a [`Problem`](crate::regress::problem::Problem), weights to start from and a
//! [`Monitor`](monitor::Monitor), and return a [`Solution`].

pub(crate) mod averaged;
mod conjugate;
pub mod fista;
pub mod lbfgs;
pub mod monitor;
pub mod newton_blocks;
pub mod newton_cd;
pub mod owlqn;
pub mod reference;
pub mod robbins_monro;
pub mod sgd;
pub mod shotgun;
pub mod spectral;
pub mod working_set;

use crate::regress::certificate::Certificate;
use crate::regress::problem::Weights;
use monitor::Stop;

/// Where a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// The best weights found.
    pub weights: Weights,
    /// How far from optimal they can be.
    pub certificate: Certificate,
    /// How the run went.
    pub info: Info,
}

/// How a run went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Info {
    /// Outer iterations: rounds of parallel updates for Shotgun, working sets for `auto`, passes for SGD.
    pub iterations: u64,
    /// Updates divided by the number of columns (for SGD, by the number of rows).
    pub epochs: f64,
    /// Coordinate (for SGD, sample) updates that were computed, also those that changed nothing.
    pub updates: u64,
    /// Matrix entries that were visited in inner loops.
    pub entries: u64,
    /// Coordinates updated at a time.
    pub parallel: usize,
    /// Times that the parallelism had to be halved because the objective rose.
    pub backoffs: u32,
    /// Why it ended.
    pub stop: Stop,
}
