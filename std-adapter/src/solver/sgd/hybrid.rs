//! Stochastic gradient descent first, Shotgun to finish: scalable in samples and in features (4.5.2's suggestion).

use super::SgdParams;
use crate::regress::problem::{Problem, Weights};
use crate::solver::monitor::{Monitor, Stop};
use crate::solver::shotgun::{self, ShotgunParams};
use crate::solver::{Info, Solution};
use gibbsite_core::loss::Loss;
use gibbsite_core::math::Real;

/// How the hybrid goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HybridParams {
    /// The first part; one or two passes.
    pub sgd: SgdParams,
    /// The second.
    pub shotgun: ShotgunParams,
}

impl HybridParams {
    /// Two passes, then Shotgun to a gap.
    pub fn new(gap: f64) -> Self {
        Self { sgd: SgdParams::new(gap, 2), shotgun: ShotgunParams::new(gap) }
    }
}

/// [`sgd::solve`](super::solve), then [`shotgun::solve`] from the weights it found. What is reported is the second part's course with the first's updates and
/// entries added.
pub fn solve<L: Loss, V: Real>(
    problem: &Problem<'_, L, V>,
    start: Weights,
    params: &HybridParams,
    monitor: &mut Monitor<'_>,
) -> Solution {
    let first = super::solve(problem, start, &params.sgd, monitor);
    if matches!(first.info.stop, Stop::Tolerance | Stop::Interrupted) {
        return first;
    }
    let second = shotgun::solve(problem, first.weights, &params.shotgun, monitor);
    let info = Info {
        iterations: first.info.iterations + second.info.iterations,
        epochs: first.info.epochs + second.info.epochs,
        updates: first.info.updates + second.info.updates,
        entries: first.info.entries + second.info.entries,
        ..second.info
    };
    Solution { info, ..second }
}
