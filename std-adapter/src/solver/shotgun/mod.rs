//! Shotgun: parallel coordinate descent for L1-regularised regression (Thesis ch. 4).
//!
//! | what | where |
//! | --- | --- |
//! | Shooting (Alg. 4.1) | [`sequential`] |
//! | Shotgun in rounds (Alg. 4.2), plain and adaptive | [`synchronous`] |
//! | Shotgun for work: threads that share `Ax` | [`asynchronous`] |
//! | Continuation (Alg. 4.3) | [`continuation`] |
//! | Shotgun CDN with an active set (Alg. 4.4) | [`cdn`] |
//! | the same on the pseudolikelihood of a field | [`local`] |
//!
//! [`solve`] takes what fits the loss. Call these inside [`Par::run`](crate::par::Par::run) if they get more than one thread.

pub mod asynchronous;
pub mod cdn;
mod choose;
pub mod continuation;
mod course;
pub mod local;
pub mod sequential;
mod state;
pub mod synchronous;

pub use choose::Choice;
pub use sequential::ShootingParams;

pub(crate) use course::Tally;
pub(crate) use state::State;
pub(crate) use synchronous::Rounds;

use super::Solution;
use super::monitor::Monitor;
use super::spectral::{SpectralParams, spectral_radius};
use crate::par::Par;
use crate::regress::problem::{Problem, Weights};
use course::Limits;
use gibbsite_core::loss::Loss;
use gibbsite_core::math::Real;

/// How Shotgun goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShotgunParams {
    /// `P`, coordinates at a time; `None` for `P* = d/ρ`.
    pub parallel: Option<usize>,
    /// How they are chosen.
    pub choice: Choice,
    /// Whether to go back and halve `P` when changes interfere too much.
    pub adaptive: bool,
    /// Done when the duality gap is not above this.
    pub gap: f64,
    /// Most epochs (updates per column).
    pub max_epochs: u64,
    /// Threads.
    pub par: Par,
    /// Seed of the choices.
    pub seed: u64,
}

impl ShotgunParams {
    /// To a gap, with `P*` coordinates at a time in turn, adaptive, on one thread.
    pub fn new(gap: f64) -> Self {
        Self {
            parallel: None,
            choice: Choice::Cyclic,
            adaptive: true,
            gap,
            max_epochs: 100_000,
            par: Par::Seq,
            seed: 0,
        }
    }

    fn limits(&self) -> Limits {
        Limits { gap: self.gap, max_epochs: self.max_epochs, adaptive: self.adaptive, par: self.par }
    }

    /// `P` as asked, or `P*`.
    fn parallelism<L: Loss, V: Real>(&self, problem: &Problem<'_, L, V>) -> usize {
        self.parallel.unwrap_or_else(|| {
            let params = SpectralParams { par: self.par, seed: self.seed, ..SpectralParams::default() };
            spectral_radius(problem.matrix, &params).p_star()
        })
    }
}

/// Shotgun as the thesis uses it: [`continuation`] for the squared loss (Alg. 4.3), [`cdn`] for the logistic one (Alg. 4.4).
///
/// ```
/// use gibbsite::data::matrix::Matrix;
/// use gibbsite::regress::problem::{Problem, Weights};
/// use gibbsite::solver::monitor::Monitor;
/// use gibbsite::solver::shotgun::{self, ShotgunParams};
/// use gibbsite_core::loss::Logistic;
/// let m = Matrix::<f64>::from_rows(2, &[&[(0, 1.0)], &[(0, -1.0), (1, 1.0)], &[(1, 1.0)]]);
/// let p = Problem::new(&m, &[1.0, -1.0, 1.0], Logistic, 0.1);
/// let found = shotgun::solve(&p, Weights::zero(2), &ShotgunParams::new(1e-9), &mut Monitor::new(None));
/// assert!(found.certificate.gap <= 1e-9);
/// ```
pub fn solve<L: Loss, V: Real>(
    problem: &Problem<'_, L, V>,
    start: Weights,
    params: &ShotgunParams,
    monitor: &mut Monitor<'_>,
) -> Solution {
    if L::QUADRATIC {
        continuation::solve(problem, start, params, monitor)
    } else {
        cdn::solve(problem, start, params, monitor)
    }
}
