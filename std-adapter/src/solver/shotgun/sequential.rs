//! Shooting: one coordinate after the other.

use super::choose::{Choice, Chooser};
use super::course::{Course, Limits, Tally};
use super::state::{State, curvatures};
use crate::par::Par;
use crate::regress::problem::{Problem, Weights};
use crate::solver::Solution;
use crate::solver::monitor::{Monitor, Stop};
use gibbsite_core::coord;
use gibbsite_core::loss::Loss;
use gibbsite_core::math::Real;

/// How Shooting goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShootingParams {
    /// Done when the duality gap is not above this.
    pub gap: f64,
    /// Most epochs (updates per column).
    pub max_epochs: u64,
    /// Which coordinate comes next.
    pub choice: Choice,
    /// Threads for certificates; the updates are one after the other.
    pub par: Par,
    /// Seed of the choices.
    pub seed: u64,
}

/// Stochastic coordinate descent (Alg. 4.1): `F(x) = Σ L(a_iᵀx, y_i) + Σ penalty_j(x_j)` is minimised over one `x_j` at a time, exactly for the
/// squared loss, by the bound `β_j = ¼‖a_j‖²` for the logistic loss (eqs. 4.5, 4.6 for raw columns).
///
/// Stops when the duality gap is at most `params.gap`; it is looked at when an epoch promised no more than that, and at least every ten
/// epochs. Differs from the thesis in that features are not duplicated (the soft threshold does the same), that columns need
/// not have norm 1, and in the certificate.
///
/// ```
/// use gibbsite::data::matrix::Matrix;
/// use gibbsite::par::Par;
/// use gibbsite::regress::problem::{Problem, Weights};
/// use gibbsite::solver::monitor::Monitor;
/// use gibbsite::solver::shotgun::{Choice, ShootingParams, sequential};
/// use gibbsite_core::loss::Squared;
/// let m = Matrix::<f64>::from_rows(1, &[&[(0, 1.0)], &[(0, 1.0)]]);
/// let p = Problem::new(&m, &[2.0, 4.0], Squared, 1.0);
/// let params = ShootingParams { gap: 1e-9, max_epochs: 100, choice: Choice::Random, par: Par::Seq, seed: 0 };
/// let found = sequential::solve(&p, Weights::zero(1), &params, &mut Monitor::new(None));
/// assert_eq!(found.weights.x, [2.5]);
/// ```
pub fn solve<L: Loss, V: Real>(
    problem: &Problem<'_, L, V>,
    start: Weights,
    params: &ShootingParams,
    monitor: &mut Monitor<'_>,
) -> Solution {
    let d = problem.matrix.columns();
    let curvature = curvatures(problem, params.par);
    let mut chooser = Chooser::new(d, params.choice, params.seed);
    let mut state = State::new(problem, start);
    let limits = Limits { gap: params.gap, max_epochs: params.max_epochs, adaptive: false, par: params.par };
    let mut course = Course::new(problem, &state, 1, limits, monitor);
    if let Some(stop) = course.end(problem, &mut state, 0.0, true) {
        return course.finish(problem, stop);
    }
    loop {
        let mut swept = Tally::default();
        for _ in 0..d {
            let &[j] = chooser.round(1) else { break };
            let j = j as usize;
            let step = update(problem, &mut state, curvature[j], j);
            let column = problem.matrix.column(j);
            swept.rounds += 1;
            swept.updates += 1;
            swept.entries += column.len() as u64 * if step == 0.0 { 1 } else { 2 };
            swept.promised += 0.5 * (curvature[j] + problem.penalty(j).l2) * step * step;
        }
        state.settle_intercept(problem);
        course.note(problem, &mut state, &swept);
        if let Some(stop) = course.end(problem, &mut state, swept.promised, d == 0) {
            return course.finish(problem, stop);
        }
        if course.diverged(problem, &state) {
            return course.finish(problem, Stop::Diverged);
        }
    }
}

/// One update of Alg. 4.1; returns the change.
#[inline(always)]
fn update<L: Loss, V: Real>(problem: &Problem<'_, L, V>, state: &mut State, curvature: f64, j: usize) -> f64 {
    if L::QUADRATIC {
        let penalty = problem.penalty(j);
        coord::squared(problem.matrix.column(j), curvature, &penalty, &mut state.x[j], &mut state.u)
    } else {
        let new = state.target(problem, curvature, j);
        state.set(problem, j, new)
    }
}
