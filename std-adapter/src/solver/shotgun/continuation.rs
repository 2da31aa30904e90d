//! Shotgun for the Lasso as the thesis runs it: a falling sequence of `λ`, and sweeps over what is active.

use super::ShotgunParams;
use super::choose::Chooser;
use super::course::{Course, Tally};
use super::state::State;
use super::synchronous::Rounds;
use crate::regress::certificate::lambda_max;
use crate::regress::problem::{Problem, Weights};
use crate::solver::Solution;
use crate::solver::monitor::Monitor;
use gibbsite_core::loss::Loss;
use gibbsite_core::math::Real;

/// Sweeps over active coordinates between two over all.
const INNER: usize = 20;
/// The same for a `λ` on the way.
const INNER_ON_THE_WAY: usize = 3;

/// Shotgun with continuation (Alg. 4.3): solves for `λ_k = λα^k`, `k = K - 1, …, 0`, each from the weights of the one before, with
/// `K = 1 + ⌊d/2000⌋` and `α = (λ_max/λ)^{1/K}`; `λ_max` is `max_j |(Aᵀy)_j|` for the objective of eq. 4.2 (SEEDS.md), so that `k = K` needs no work.
///
/// For each `λ_k` one sweep of synchronous rounds over all coordinates is followed by sweeps over those that are not zero. On the way that is
/// done once; for `λ` itself until the duality gap is at most `params.gap`. An active set of `a` coordinates is swept `P·a/d` at a time: what `d/ρ`
/// gives for the submatrix, whose `ρ` is no larger.
///
/// Weights to start from that are not all 0 take the place of the continuation.
pub fn solve<L: Loss, V: Real>(
    problem: &Problem<'_, L, V>,
    start: Weights,
    params: &ShotgunParams,
    monitor: &mut Monitor<'_>,
) -> Solution {
    let d = problem.matrix.columns();
    let cold = start.nonzeros() == 0;
    let mut state = State::new(problem, start);
    let mut course = Course::new(problem, &state, params.parallelism(problem), params.limits(), monitor);
    if let Some(stop) = course.end(problem, &mut state, 0.0, true) {
        return course.finish(problem, stop);
    }
    let mut sweeps = Sweeps {
        rounds: Rounds::new(problem, params.par),
        chooser: Chooser::new(d, params.choice, params.seed),
        all: (0..d as u32).collect(),
        active: Vec::new(),
    };
    let top = if cold { lambda_max(problem, params.par) } else { 0.0 };
    if problem.lambda > 0.0 && top > problem.lambda {
        let levels = 1 + d / 2000;
        let ratio = (top / problem.lambda).powf(1.0 / levels as f64);
        for k in (1..levels).rev() {
            let on_the_way = Problem { lambda: problem.lambda * ratio.powi(k as i32), ..*problem };
            course.turn(&on_the_way, &state);
            sweeps.pass(&on_the_way, &mut state, &mut course, INNER_ON_THE_WAY, 0.0);
        }
        course.turn(problem, &state);
    }
    loop {
        let promised = sweeps.pass(problem, &mut state, &mut course, INNER, params.gap);
        if let Some(stop) = course.end(problem, &mut state, promised, d == 0) {
            return course.finish(problem, stop);
        }
    }
}

/// Sweeps over all and over active coordinates, and the memory for them.
struct Sweeps {
    rounds: Rounds,
    chooser: Chooser,
    all: Vec<u32>,
    active: Vec<u32>,
}

impl Sweeps {
    /// Sweeps the active coordinates up to `inner` times, until they gain less than a tenth of what the first sweep did or nothing that matters for
    /// `gap`, then all of them; returns the progress that the sweep over all promised.
    fn pass<L: Loss, V: Real>(
        &mut self,
        problem: &Problem<'_, L, V>,
        state: &mut State,
        course: &mut Course<'_, '_>,
        inner: usize,
        gap: f64,
    ) -> f64 {
        let d = self.all.len().max(1);
        let swept = self.rounds.sweep(problem, state, &self.all, course.parallel);
        course.note(problem, state, &swept);
        self.active.clear();
        self.active.extend((0..d as u32).filter(|&j| state.x.get(j as usize).is_some_and(|&x| x != 0.0)));
        let mut first = None;
        for _ in 0..inner {
            self.chooser.shuffle(&mut self.active);
            let parallel = (course.parallel * self.active.len() / d).max(1);
            let again: Tally = self.rounds.sweep(problem, state, &self.active, parallel);
            course.note(problem, state, &again);
            let first = *first.get_or_insert(again.promised);
            if again.promised <= (0.01 * first).max(0.01 * gap) {
                break;
            }
        }
        swept.promised
    }
}
