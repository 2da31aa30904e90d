//! Shotgun in rounds: `P` coordinates at a time, all computed from the same state, then changed together.

use super::ShotgunParams;
use super::choose::Chooser;
use super::course::{Course, Tally};
use super::state::{State, curvatures};
use crate::par::Par;
use crate::regress::problem::{Problem, Weights};
use crate::solver::Solution;
use crate::solver::monitor::{Monitor, Stop};
use gibbsite_core::loss::Loss;
use gibbsite_core::math::Real;

/// Shotgun (Alg. 4.2): in each round `P` different coordinates are chosen ([`Choice`](super::Choice)); each gets the update that Alg. 4.1 would make
/// alone, computed from the state at the start of the round; then all are made.
///
/// Deterministic given the seed, with the same bits on any number of threads; at `P = 1` it is Shooting, bit for bit. Stops on the
/// duality gap. The plain rule (`adaptive: false`) may diverge if `P` is above `d/ρ`, as Theorem 4.3.2 says; then the run ends with
/// [`Stop::Diverged`] and the best weights it had. With `adaptive: true` (4.7.1) an epoch in which the objective rises, or falls by less than a
/// tenth of what the updates would gain one by one, is undone or cut short: the best state comes back, and `P` is halved.
///
/// ```
/// use gibbsite::data::matrix::Matrix;
/// use gibbsite::regress::problem::{Problem, Weights};
/// use gibbsite::solver::monitor::{Monitor, Stop};
/// use gibbsite::solver::shotgun::{ShotgunParams, synchronous};
/// use gibbsite_core::loss::Squared;
/// // two equal columns: both at a time overshoot
/// let m = Matrix::<f64>::from_rows(2, &[&[(0, 1.0), (1, 1.0)]]);
/// let p = Problem::new(&m, &[3.0], Squared, 0.5);
/// let params = ShotgunParams { parallel: Some(2), ..ShotgunParams::new(1e-9) };
/// let found = synchronous::solve(&p, Weights::zero(2), &params, &mut Monitor::new(None));
/// assert_eq!((found.info.stop, found.info.backoffs, found.info.parallel), (Stop::Tolerance, 1, 1));
/// ```
pub fn solve<L: Loss, V: Real>(
    problem: &Problem<'_, L, V>,
    start: Weights,
    params: &ShotgunParams,
    monitor: &mut Monitor<'_>,
) -> Solution {
    let d = problem.matrix.columns();
    let mut rounds = Rounds::new(problem, params.par);
    let mut chooser = Chooser::new(d, params.choice, params.seed);
    let mut state = State::new(problem, start);
    let parallel = params.parallelism(problem);
    let mut course = Course::new(problem, &state, parallel, params.limits(), monitor);
    if let Some(stop) = course.end(problem, &mut state, 0.0, true) {
        return course.finish(problem, stop);
    }
    loop {
        let mut swept = Tally::default();
        while swept.updates < d as u64 {
            rounds.round(problem, &mut state, chooser.round(course.parallel), &mut swept);
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

/// Entries in a round below which threads cost more than they bring.
const WORTH_THREADS: usize = 1 << 15;

/// Makes rounds; keeps the memory for them.
pub(crate) struct Rounds {
    curvature: Vec<f64>,
    target: Vec<f64>,
    par: Par,
    entries_per_column: usize,
}

impl Rounds {
    pub(crate) fn new<L: Loss, V: Real>(problem: &Problem<'_, L, V>, par: Par) -> Self {
        let entries_per_column = problem.matrix.nonzeros() / problem.matrix.columns().max(1);
        Self { curvature: curvatures(problem, par), target: Vec::new(), par, entries_per_column }
    }

    /// One round of Alg. 4.2 on different coordinates.
    #[inline]
    pub(crate) fn round<L: Loss, V: Real>(
        &mut self,
        problem: &Problem<'_, L, V>,
        state: &mut State,
        chosen: &[u32],
        swept: &mut Tally,
    ) {
        let curvature = &self.curvature[..];
        if let &[j] = chosen {
            let new = state.target(problem, curvature[j as usize], j as usize);
            apply(problem, state, curvature, j as usize, new, swept);
        } else {
            self.target.resize(self.target.len().max(chosen.len()), 0.0);
            let target = &mut self.target[..chosen.len()];
            let worth = chosen.len() * self.entries_per_column >= WORTH_THREADS;
            let par = if worth { self.par } else { Par::Seq };
            let at = |k: usize| {
                let j = chosen[k] as usize;
                state.target(problem, curvature[j], j)
            };
            par.fill(target, chosen.len().div_ceil(16), at);
            for (&j, &new) in chosen.iter().zip(&*target) {
                apply(problem, state, curvature, j as usize, new, swept);
            }
        }
        swept.rounds += 1;
    }

    /// Goes through a list, `parallel` at a time.
    pub(crate) fn sweep<L: Loss, V: Real>(
        &mut self,
        problem: &Problem<'_, L, V>,
        state: &mut State,
        list: &[u32],
        parallel: usize,
    ) -> Tally {
        let mut swept = Tally::default();
        for chosen in list.chunks(parallel.max(1)) {
            self.round(problem, state, chosen, &mut swept);
        }
        state.settle_intercept(problem);
        swept
    }
}

/// Makes one change and counts it.
#[inline(always)]
fn apply<L: Loss, V: Real>(
    problem: &Problem<'_, L, V>,
    state: &mut State,
    curvature: &[f64],
    j: usize,
    new: f64,
    swept: &mut Tally,
) {
    let step = state.set(problem, j, new);
    let len = problem.matrix.column(j).len() as u64;
    swept.updates += 1;
    swept.entries += len;
    if step != 0.0 {
        swept.entries += len;
        swept.promised += 0.5 * (curvature[j] + problem.penalty(j).l2) * step * step;
    }
}
