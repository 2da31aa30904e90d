//! What was seen of a run, and when it ends.

use super::{GaussianPoint, GaussianWatch, NewtonInfo, NewtonParams, NewtonSolution};
use crate::linalg::Dense;
use crate::objective::gaussian::State;
use crate::solver::monitor::Stop;
use std::time::Instant;

/// Where a run is.
pub(crate) struct Seen {
    pub(crate) objective: f64,
    pub(crate) violation: f64,
    /// Of Λ and Θ.
    pub(crate) nonzeros: (usize, usize),
    pub(crate) outputs: usize,
}

/// Keeps a run's trace and decides when it ends; shared with the other solvers of this objective.
pub(crate) struct Record<'a> {
    watch: Option<&'a GaussianWatch<'a>>,
    start: Instant,
    trace: Vec<GaussianPoint>,
    best: (f64, f64),
    stale: u32,
}

impl<'a> Record<'a> {
    pub(crate) fn new(watch: Option<&'a GaussianWatch<'a>>) -> Self {
        Self {
            watch,
            start: Instant::now(),
            trace: Vec::new(),
            best: (f64::INFINITY, f64::INFINITY),
            stale: 0,
        }
    }

    /// Notes where the run is; why it ends there, if it does.
    pub(crate) fn verdict(
        &mut self,
        (state, violation): (&State, f64),
        objective: f64,
        params: &NewtonParams,
        iterations: u64,
        patience: u32,
    ) -> Option<Stop> {
        let nonzeros = |m: &Dense| m.values().iter().filter(|v| **v != 0.0).count();
        let nonzeros = (nonzeros(&state.lambda), nonzeros(&state.theta));
        let seen = Seen { objective, violation, nonzeros, outputs: state.lambda.cols() };
        self.judge(seen, params, iterations, patience)
    }

    /// The same for a solver with a state of its own.
    pub(crate) fn judge(
        &mut self,
        Seen { objective, violation, nonzeros, outputs }: Seen,
        params: &NewtonParams,
        iterations: u64,
        patience: u32,
    ) -> Option<Stop> {
        let point = GaussianPoint {
            seconds: self.start.elapsed().as_secs_f64(),
            iterations,
            lambda: params.penalties.lambda,
            objective,
            violation,
            nonzeros_lambda: nonzeros.0,
            nonzeros_theta: nonzeros.1,
        };
        self.trace.push(point);
        let lower = objective < self.best.0 - 1e-13 * (self.best.0.abs() + outputs as f64);
        let closer = violation < 0.9 * self.best.1;
        self.stale = if lower || closer { 0 } else { self.stale + 1 };
        self.best = (self.best.0.min(objective), self.best.1.min(violation));
        if violation <= params.tolerance {
            Some(Stop::Tolerance)
        } else if self.watch.is_some_and(|watch| !watch(&point)) {
            Some(Stop::Interrupted)
        } else if iterations >= params.max_iterations {
            Some(Stop::Iterations)
        } else if self.stale > patience {
            Some(Stop::Precision)
        } else {
            None
        }
    }

    pub(crate) fn finish(self, state: State, stop: Stop, iterations: u64) -> NewtonSolution {
        NewtonSolution { info: self.info(stop, iterations), lambda: state.lambda, theta: state.theta }
    }

    /// How the run went.
    pub(crate) fn info(self, stop: Stop, iterations: u64) -> NewtonInfo {
        let last = self.trace.last();
        NewtonInfo {
            objective: last.map_or(f64::NAN, |p| p.objective),
            violation: last.map_or(f64::NAN, |p| p.violation),
            iterations,
            stop,
            trace: self.trace,
        }
    }
}
