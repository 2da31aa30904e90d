//! Shotgun CDN: Newton steps on single coordinates, several at a time, over an active set that shrinks.

use super::ShotgunParams;
use super::choose::Chooser;
use super::continuation;
use super::course::{Course, Tally};
use super::state::{State, curvatures};
use crate::par::Par;
use crate::regress::problem::{Problem, Weights};
use crate::solver::Solution;
use crate::solver::monitor::Monitor;
use gibbsite_core::coord::{Armijo, NewtonStep, Samples, kept_newton_step};
use gibbsite_core::loss::Loss;
use gibbsite_core::math::Real;

/// Sweeps over the active set before all coordinates are looked at again.
const INNER: usize = 50;
/// Entries in a round below which threads cost more than they bring.
const WORTH_THREADS: usize = 1 << 14;

/// Shotgun CDN (Alg. 4.4) for the logistic loss: `P` coordinates of the active set at a time take the Newton step of eq. 4.13 (as corrected in SEEDS.md) with
/// Armijo's rule, each computed from the state at the start of the round. After a sweep, coordinates with `x_j = 0` whose slope is inside
/// `λ` by more than `M/n` leave the active set, `M` being the largest violation of the sweep before (Yuan et al. 2010). When the active set is
/// done, all come back; convergence is declared only after a sweep over all, by the duality gap.
///
/// Deterministic given the seed, on any number of threads. Adaptive as [`synchronous`](super::synchronous::solve). An active set of `a` coordinates is
/// swept `P·a/d` at a time. Differs from the thesis in the kept residuals (an optimal coordinate costs one product and no exponential) and in
/// the bound that spares most line searches ([`kept_newton_step`]). For the squared loss, where a Newton step is exact anyway,
/// this is [`continuation`](super::continuation::solve).
pub fn solve<L: Loss, V: Real>(
    problem: &Problem<'_, L, V>,
    start: Weights,
    params: &ShotgunParams,
    monitor: &mut Monitor<'_>,
) -> Solution {
    if L::QUADRATIC {
        return continuation::solve(problem, start, params, monitor);
    }
    let d = problem.matrix.columns();
    let mut state = State::new(problem, start);
    let mut course = Course::new(problem, &state, params.parallelism(problem), params.limits(), monitor);
    if let Some(stop) = course.end(problem, &mut state, 0.0, true) {
        return course.finish(problem, stop);
    }
    let mut chooser = Chooser::new(d, params.choice, params.seed);
    let mut newton = Newton::new(problem, params.par);
    let all: Vec<u32> = (0..d as u32).collect();
    let mut active = all.clone();
    let mut worst = f64::INFINITY;
    loop {
        // All coordinates in the order of memory, then what is left of them in a random one.
        active.clone_from(&all);
        let mut promised = 0.0;
        for sweep in 0..=INNER {
            if sweep > 0 {
                chooser.shuffle(&mut active);
            }
            let parallel = (course.parallel * active.len() / d.max(1)).max(1);
            let (swept, violation) = newton.sweep(problem, &mut state, &mut active, parallel, worst);
            if !course.note(problem, &mut state, &swept) {
                active.clone_from(&all);
                worst = f64::INFINITY;
                continue;
            }
            worst = violation;
            if sweep == 0 {
                promised = swept.promised;
                if let Some(stop) = course.end(problem, &mut state, promised, d == 0) {
                    return course.finish(problem, stop);
                }
            } else if swept.promised <= (0.01 * promised).max(0.01 * params.gap) {
                break;
            }
        }
    }
}

/// Makes rounds of Newton steps; keeps the memory for them.
struct Newton {
    norm2: Vec<f64>,
    found: Vec<NewtonStep<f64>>,
    par: Par,
    entries_per_column: usize,
    armijo: Armijo<f64>,
}

impl Newton {
    fn new<L: Loss, V: Real>(problem: &Problem<'_, L, V>, par: Par) -> Self {
        let mut norm2 = curvatures(problem, par);
        norm2.iter_mut().for_each(|n| *n /= L::SMOOTHNESS);
        let entries_per_column = problem.matrix.nonzeros() / problem.matrix.columns().max(1);
        Self { norm2, found: Vec::new(), par, entries_per_column, armijo: Armijo::default() }
    }

    /// Goes through the active set, `parallel` at a time, and drops what needs no more attention; returns the largest violation met too.
    fn sweep<L: Loss, V: Real>(
        &mut self,
        problem: &Problem<'_, L, V>,
        state: &mut State,
        active: &mut Vec<u32>,
        parallel: usize,
        worst: f64,
    ) -> (Tally, f64) {
        let none = NewtonStep { step: 0.0, slope: 0.0, trials: 0 };
        let margin = worst / problem.target.len().max(1) as f64;
        let (mut swept, mut violation, mut kept) = (Tally::default(), 0.0f64, 0);
        let mut first = 0;
        while first < active.len() {
            let last = (first + parallel).min(active.len());
            let chosen = &active[first..last];
            self.found.resize(self.found.len().max(chosen.len()), none);
            let found = &mut self.found[..chosen.len()];
            let worth = chosen.len() * self.entries_per_column >= WORTH_THREADS;
            let par = if worth { self.par } else { Par::Seq };
            let samples = Samples { z: &state.z, y: problem.target, residual: &state.u };
            let step = |k: usize| {
                let j = chosen[k] as usize;
                let (column, penalty) = (problem.matrix.column(j), problem.penalty(j));
                kept_newton_step(column, self.norm2[j], &penalty, state.x[j], &samples, &self.armijo)
            };
            par.fill(found, chosen.len().div_ceil(16), step);
            for k in 0..last - first {
                let (j, NewtonStep { step, slope, trials }) = (active[first + k], self.found[k]);
                let at = j as usize;
                let (penalty, len) = (problem.penalty(at), problem.matrix.column(at).len() as u64);
                swept.updates += 1;
                swept.entries += len * (1 + 2 * u64::from(trials));
                violation = violation.max(penalty.violation(state.x[at], slope));
                if step == 0.0 && state.x[at] == 0.0 && penalty.excess(-slope) < -margin {
                    continue;
                }
                if step != 0.0 {
                    swept.promised -= 0.5 * (slope * step + penalty.change(state.x[at], step));
                    let new = state.x[at] + step;
                    state.set(problem, at, new);
                }
                active[kept] = j;
                kept += 1;
            }
            swept.rounds += 1;
            first = last;
        }
        active.truncate(kept);
        state.settle_intercept(problem);
        (swept, violation)
    }
}
