//! The course of a descent: what has been done, which state was best, when to certify, when to give way.

use super::state::State;
use crate::par::Par;
use crate::regress::certificate::{Certificate, certify};
use crate::regress::problem::Problem;
use crate::solver::monitor::{Monitor, Point, Stop};
use crate::solver::{Info, Solution};
use gibbsite_core::loss::Loss;
use gibbsite_core::math::Real;

/// Work done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// Rounds.
    pub(crate) rounds: u64,
    /// Coordinate updates, also those that changed nothing.
    pub(crate) updates: u64,
    /// Matrix entries visited.
    pub(crate) entries: u64,
    /// `Σ ½β_j δx_j²`: by how much the objective falls if no two changes interfere (Theorem 4.3.1's sequential progress).
    pub(crate) promised: f64,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        self.rounds += other.rounds;
        self.updates += other.updates;
        self.entries += other.entries;
        self.promised += other.promised;
    }
}

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) gap: f64,
    pub(crate) max_epochs: u64,
    pub(crate) adaptive: bool,
    pub(crate) par: Par,
}

/// A descent under way.
pub(crate) struct Course<'m, 'w> {
    monitor: &'m mut Monitor<'w>,
    limits: Limits,
    /// Coordinates at a time.
    pub(crate) parallel: usize,
    backoffs: u32,
    total: Tally,
    /// The best state of the current `λ`, its objective, and its certificate if it has one.
    best: State,
    best_objective: f64,
    certificate: Option<Certificate>,
    start_objective: f64,
    epochs: u64,
    next_check: u64,
    stalls: u32,
    least_gap: f64,
    idle_checks: u32,
}

/// More than this share of the promised decrease must be real, or changes interfere too much.
const LEAST_SHARE: f64 = 0.1;
/// Relative changes of the objective below this are rounding.
const ROUNDING: f64 = 1e-12;
/// Steps that promise less than this share of the objective are rounding: they are 10⁻¹³ of the weights.
const STANDSTILL: f64 = 1e-26;
/// Sweeps at a standstill before rounding is blamed: so many that random choices have missed no coordinate.
const STALLS: u32 = 40;
/// Certificates in a row, none better than the best, after which it is blamed too, if the objective stands still.
const IDLE_CHECKS: u32 = 30;
/// The plain rule is given up when the objective is that many times what it was at the start.
const RUNAWAY: f64 = 1e3;

impl<'m, 'w> Course<'m, 'w> {
    pub(crate) fn new<L: Loss, V: Real>(
        problem: &Problem<'_, L, V>,
        state: &State,
        parallel: usize,
        limits: Limits,
        monitor: &'m mut Monitor<'w>,
    ) -> Self {
        let objective = state.objective(problem);
        let parallel = parallel.clamp(1, problem.matrix.columns().max(1));
        Self {
            monitor,
            limits,
            parallel,
            backoffs: 0,
            total: Tally::default(),
            best: state.clone(),
            best_objective: objective,
            certificate: None,
            start_objective: objective,
            epochs: 0,
            next_check: 1,
            stalls: 0,
            least_gap: f64::INFINITY,
            idle_checks: 0,
        }
    }

    /// The objective is another one from here on (the next `λ` of a continuation).
    pub(crate) fn turn<L: Loss, V: Real>(&mut self, problem: &Problem<'_, L, V>, state: &State) {
        self.best.copy_from(state);
        self.best_objective = state.objective(problem);
        self.certificate = None;
        self.stalls = 0;
        self.least_gap = f64::INFINITY;
    }

    /// Takes note of a sweep. If the objective rose, or fell by much less than the changes promised, and the rule adapts, then
    /// the best state comes back, half as many coordinates go at a time, and the answer is false.
    pub(crate) fn note<L: Loss, V: Real>(
        &mut self,
        problem: &Problem<'_, L, V>,
        state: &mut State,
        swept: &Tally,
    ) -> bool {
        self.total.add(swept);
        self.epochs += 1;
        let objective = state.objective(problem);
        let decrease = self.best_objective - objective;
        let noise = ROUNDING * self.best_objective.abs();
        let interference = decrease.is_nan()
            || decrease < -noise
            || (swept.promised > noise
                && swept.promised.is_finite()
                && decrease < LEAST_SHARE * swept.promised);
        let calm = !(self.limits.adaptive && interference && self.parallel > 1);
        if decrease > 0.0 || (decrease == 0.0 && self.certificate.is_none()) {
            self.best.copy_from(state);
            self.best_objective = objective;
            self.certificate = None;
        }
        // The objective stops changing long before the weights do, so it is the steps that tell when nothing moves any more.
        if calm && swept.promised <= STANDSTILL * self.best_objective.abs() {
            self.stalls += 1;
        } else {
            self.stalls = 0;
        }
        if !calm {
            state.copy_from(&self.best);
            self.parallel = (self.parallel / 2).max(1);
            self.backoffs += 1;
        }
        calm
    }

    /// Whether the plain rule has run away.
    pub(crate) fn diverged<L: Loss, V: Real>(&self, problem: &Problem<'_, L, V>, state: &State) -> bool {
        let objective = state.objective(problem);
        !objective.is_finite() || objective > RUNAWAY * self.start_objective.max(f64::MIN_POSITIVE)
    }

    /// Epochs so far: updates per column.
    fn passes<L: Loss, V: Real>(&self, problem: &Problem<'_, L, V>) -> f64 {
        self.total.updates as f64 / problem.matrix.columns().max(1) as f64
    }

    /// The end, if it has come: certifies when that seems worth a pass over the matrix (`promised` was the progress of the last full sweep),
    /// when it must be `at_once`, or when nothing else can be done.
    pub(crate) fn end<L: Loss, V: Real>(
        &mut self,
        problem: &Problem<'_, L, V>,
        state: &mut State,
        promised: f64,
        at_once: bool,
    ) -> Option<Stop> {
        let exhausted = self.passes(problem) >= self.limits.max_epochs as f64;
        let stuck = self.stalls >= STALLS || self.idle_checks >= IDLE_CHECKS;
        let due = promised <= self.limits.gap && self.epochs >= self.next_check
            || self.epochs >= self.next_check + 9
            || at_once
            || exhausted
            || stuck;
        if !due {
            return None;
        }
        // What the sweeps kept is exact again, and the best state is the one that is certified.
        state.refresh(problem);
        let objective = state.objective(problem);
        if objective <= self.best_objective * (1.0 + ROUNDING) {
            self.best.copy_from(state);
            self.best_objective = objective;
        } else {
            self.best.refresh(problem);
        }
        let found = certify(problem, &self.best.x, &self.best.predictions(problem), self.limits.par);
        self.best_objective = found.objective;
        self.certificate = Some(found);
        if found.gap < self.least_gap || promised > ROUNDING * ROUNDING * found.objective.abs() {
            self.idle_checks = 0;
        } else {
            self.idle_checks += 1;
        }
        self.least_gap = self.least_gap.min(found.gap);
        let ratio = (found.gap / self.limits.gap.max(f64::MIN_POSITIVE)).max(1.0);
        self.next_check = self.epochs + (ratio.ln() as u64).clamp(1, 8);
        let point = Point {
            seconds: 0.0,
            iterations: self.total.rounds,
            updates: self.total.updates,
            lambda: problem.lambda,
            objective: found.objective,
            gap: found.gap,
            nonzeros: self.best.nonzeros(),
        };
        self.monitor.verdict(point, self.limits.gap, exhausted, stuck)
    }

    /// The best weights and their certificate.
    pub(crate) fn finish<L: Loss, V: Real>(mut self, problem: &Problem<'_, L, V>, stop: Stop) -> Solution {
        let certificate = match self.certificate {
            Some(certificate) => certificate,
            None => {
                self.best.refresh(problem);
                certify(problem, &self.best.x, &self.best.predictions(problem), self.limits.par)
            }
        };
        let info = Info {
            iterations: self.total.rounds,
            epochs: self.passes(problem),
            updates: self.total.updates,
            entries: self.total.entries,
            parallel: self.parallel,
            backoffs: self.backoffs,
            stop,
        };
        Solution { weights: self.best.into_weights(), certificate, info }
    }
}
