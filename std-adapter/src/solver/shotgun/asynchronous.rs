//! Shotgun for work: threads that change a shared `Ax` without waiting for each other.

use super::ShotgunParams;
use super::choose::Chooser;
use super::course::{Course, Tally};
use super::state::{State, curvatures};
use crate::par::Par;
use crate::regress::problem::{Problem, Weights};
use crate::solver::Solution;
use crate::solver::monitor::Monitor;
use gibbsite_core::loss::Loss;
use gibbsite_core::math::Real;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Sweeps over active coordinates between two over all.
const INNER: usize = 20;

/// Asynchronous Shotgun (4.5.1: "our implementation was asynchronous because of the high cost of synchronization"): each thread goes through its own part of
/// the coordinates with the updates of Alg. 4.1, reading the shared residual as it is at that moment and adding its changes by compare-and-swap.
///
/// A coordinate belongs to one thread in a sweep, so weights never conflict; only sums do, and those are atomic. For the logistic loss the
/// prediction is added to and the residual then stored from it, which another thread may overtake: residuals are made anew after each sweep. Sweeps over
/// all coordinates alternate with sweeps over those that are not zero. The result depends on timing, its certificate does not: what is certified is computed
/// from the weights. Threads are halved like `P` in [`synchronous`](super::synchronous::solve) when they interfere too much; `params.parallel` is the most
/// that may work at a time (default: all of `params.par`).
pub fn solve<L: Loss, V: Real>(
    problem: &Problem<'_, L, V>,
    start: Weights,
    params: &ShotgunParams,
    monitor: &mut Monitor<'_>,
) -> Solution {
    let d = problem.matrix.columns();
    let threads = params.par.count();
    let threads = params.parallel.map_or(threads, |p| p.clamp(1, threads));
    let mut state = State::new(problem, start);
    let mut course = Course::new(problem, &state, threads, params.limits(), monitor);
    if let Some(stop) = course.end(problem, &mut state, 0.0, true) {
        return course.finish(problem, stop);
    }
    let curvature = curvatures(problem, params.par);
    let mut chooser = Chooser::new(d, params.choice, params.seed);
    let mut shared = Shared::new(&state);
    let all: Vec<u32> = (0..d as u32).collect();
    let mut active = Vec::new();
    loop {
        let swept = shared.sweep(problem, &mut state, &all, &curvature, course.parallel, params.par);
        course.note(problem, &mut state, &swept);
        if let Some(stop) = course.end(problem, &mut state, swept.promised, d == 0) {
            return course.finish(problem, stop);
        }
        active.clear();
        active.extend(all.iter().copied().filter(|&j| state.x[j as usize] != 0.0));
        for _ in 0..INNER {
            chooser.shuffle(&mut active);
            let again = shared.sweep(problem, &mut state, &active, &curvature, course.parallel, params.par);
            course.note(problem, &mut state, &again);
            if again.promised <= (0.01 * swept.promised).max(0.01 * params.gap) {
                break;
            }
        }
    }
}

/// What threads share: bits of `f64`.
struct Shared {
    x: Vec<AtomicU64>,
    z: Vec<AtomicU64>,
    u: Vec<AtomicU64>,
}

fn cells(values: &[f64]) -> Vec<AtomicU64> {
    values.iter().map(|v| AtomicU64::new(v.to_bits())).collect()
}

#[inline(always)]
fn get(cell: &AtomicU64) -> f64 {
    f64::from_bits(cell.load(Relaxed))
}

#[inline(always)]
fn put(cell: &AtomicU64, value: f64) {
    cell.store(value.to_bits(), Relaxed);
}

/// Adds; returns the sum.
#[inline(always)]
fn add(cell: &AtomicU64, by: f64) -> f64 {
    let mut old = cell.load(Relaxed);
    loop {
        let new = f64::from_bits(old) + by;
        match cell.compare_exchange_weak(old, new.to_bits(), Relaxed, Relaxed) {
            Ok(_) => return new,
            Err(now) => old = now,
        }
    }
}

impl Shared {
    fn new(state: &State) -> Self {
        Self { x: cells(&state.x), z: cells(&state.z), u: cells(&state.u) }
    }

    /// One sweep over a list, cut into a part for each of `threads`; begins and ends in `state`.
    fn sweep<L: Loss, V: Real>(
        &mut self,
        problem: &Problem<'_, L, V>,
        state: &mut State,
        list: &[u32],
        curvature: &[f64],
        threads: usize,
        par: Par,
    ) -> Tally {
        let load = |cells: &mut [AtomicU64], values: &[f64]| {
            cells.iter_mut().zip(values).for_each(|(c, v)| *c.get_mut() = v.to_bits());
        };
        load(&mut self.u, &state.u);
        load(&mut self.z, &state.z);
        load(&mut self.x, &state.x);
        let parts: Vec<&[u32]> = list.chunks(list.len().div_ceil(threads).max(1)).collect();
        let team = if threads == 1 { Par::Seq } else { par };
        let mut swept = Tally::default();
        for part in team.map(parts, |part| self.part(problem, part, curvature)) {
            swept.add(&part);
        }
        let store = |values: &mut [f64], cells: &mut [AtomicU64]| {
            values.iter_mut().zip(cells).for_each(|(v, c)| *v = f64::from_bits(*c.get_mut()));
        };
        store(&mut state.x, &mut self.x);
        store(&mut state.z, &mut self.z);
        if L::QUADRATIC {
            store(&mut state.u, &mut self.u);
        } else {
            for ((u, &z), &y) in state.u.iter_mut().zip(&state.z).zip(problem.target) {
                *u = -problem.loss.slope(z, y);
            }
        }
        state.settle_intercept(problem);
        swept
    }

    /// One thread's part.
    fn part<L: Loss, V: Real>(&self, problem: &Problem<'_, L, V>, list: &[u32], curvature: &[f64]) -> Tally {
        let mut swept = Tally::default();
        for &j in list {
            let j = j as usize;
            let (column, penalty) = (problem.matrix.column(j), problem.penalty(j));
            let slope = -column.fold(&self.u, |a: f64, u| a * get(u));
            let x = get(&self.x[j]);
            let new = penalty.minimize(x, slope, curvature[j]);
            let step = new - x;
            swept.updates += 1;
            swept.entries += column.len() as u64;
            if step == 0.0 {
                continue;
            }
            put(&self.x[j], new);
            swept.entries += column.len() as u64;
            swept.promised += 0.5 * (curvature[j] + penalty.l2) * step * step;
            for (row, a) in column.iter::<f64>() {
                if L::QUADRATIC {
                    add(&self.u[row], -step * a);
                } else {
                    let z = add(&self.z[row], step * a);
                    put(&self.u[row], -problem.loss.slope(z, problem.target[row]));
                }
            }
        }
        swept.rounds = swept.updates;
        swept
    }
}
