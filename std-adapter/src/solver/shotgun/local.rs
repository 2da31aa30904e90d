//! Shotgun on the pseudolikelihood: `P` parameters at a time (Alg. 4.2), each by a Newton step that is sure to help (Alg. 4.4), with the ones that are
//! not 0 swept more often than the rest.
//!
//! Minimises `f(θ) + C₁‖θ‖₁ + ½C₂‖θ‖²` with `f` of [`Local`]. Inputs: that, a start. Output: weights, and how the run went. An iteration is a sweep over
//! all parameters in a random order and up to eight over those that are not 0; **stops when the subdifferential violation is at most `tolerance`** times what it is at `θ = 0` or at the
//! start, whichever is larger. All steps of a round are computed from the same state, then made together: deterministic, on any number of threads.
//!
//! The thesis learns CRFs by pseudolikelihood with L1 in exactly this way (4.1 and 5.3: local conditionals are logistic regressions, parameters are shared). Ours differs: labels may be
//! more than two, a bound takes the line search's place, and an iteration in which the objective rises or falls by much less than the steps promise is undone, and `P` halved (4.7.1).
//! `P` begins at half of `d/ρ`: the Hessian of `log Σ e^s` has eigenvalues up to ½, twice the quarter that the bound of one coordinate counts with.

use super::choose::{Choice, Chooser};
use crate::objective::local::Local;
use crate::par::Par;
use crate::solver::lbfgs::{LbfgsError, LbfgsInfo, Point, State, Stop, Watch};
use crate::solver::spectral::{SpectralParams, spectral_radius};
use gibbsite_core::local::conditional;
use gibbsite_core::local_coord::{along, step};
use gibbsite_core::penalty::Penalty;
use std::time::Instant;

/// How to run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LocalParams {
    /// `C₁`.
    pub l1: f64,
    /// `C₂`.
    pub l2: f64,
    /// `P`, parameters at a time; `None` for half of `P*`.
    pub parallel: Option<usize>,
    /// Done when the violation is at most this share of what it is at `θ = 0`, or at the start.
    pub tolerance: f64,
    /// Done as soon as the objective is not above this.
    pub target_objective: Option<f64>,
    /// Most iterations.
    pub max_iterations: u64,
    /// Threads, inside [`Par::run`]; they do not change a bit of the result.
    pub par: Par,
    /// Seed of the order.
    pub seed: u64,
}

impl Default for LocalParams {
    fn default() -> Self {
        Self {
            l1: 0.0,
            l2: 0.0,
            parallel: None,
            tolerance: 1e-5,
            target_objective: None,
            max_iterations: 10_000,
            par: Par::Seq,
            seed: 0,
        }
    }
}

/// Sweeps over what is not 0, in an iteration.
const INNER: u32 = 8;
/// More than this share of the promised decrease must be real, or steps interfere too much.
const LEAST_SHARE: f64 = 0.1;
/// Relative changes of the objective below this are rounding.
const ROUNDING: f64 = 1e-13;
/// Iterations without a lower objective or a violation that is a tenth lower after which rounding is blamed.
const STALLS: u32 = 50;
/// Regressions that a thread normalises at a time.
const BATCH: usize = 512;
/// Columns that a thread looks along at a time.
const GRAIN: usize = 16;

/// Runs. A state that was interrupted is no place to go on from, its weights are.
///
/// ```
/// use gibbsite::field::{Field, FieldData, Structure};
/// use gibbsite::objective::{ObjectiveParams, components::Components, composite::Composite, local::Local};
/// use gibbsite::par::Par;
/// use gibbsite::solver::shotgun::local::{LocalParams, solve};
/// let field = Field::pairwise([2, 2], &Structure::Chain, false)?;
/// let mut data = FieldData::without_inputs(&field);
/// for labels in [[0, 0], [1, 1], [1, 1], [0, 1]] {
///     data.push(&field, &labels, [[]; 0])?;
/// }
/// let index = field.index(&[1, 1, 1])?;
/// let params = ObjectiveParams { par: Par::Seq, ..Default::default() };
/// let pseudo = Composite::new(&field, &index, &data, &Components::pseudo(&field), &params)?;
/// let params = LocalParams { l1: 0.5, ..LocalParams::default() };
/// let (state, info) = solve(&Local::new(&pseudo, Par::Seq)?, vec![0.0; index.len()], &params, &mut |_, _| true)?;
/// assert!(info.stop.is_converged() && info.end.nonzeros < state.theta().len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`LbfgsError::Length`], or [`LbfgsError::Parameter`] if the start is not finite.
pub fn solve(
    problem: &Local,
    start: Vec<f64>,
    params: &LocalParams,
    watch: &mut Watch<'_>,
) -> Result<(State, LbfgsInfo), LbfgsError> {
    let begin = Instant::now();
    let d = problem.parameters();
    if start.len() != d {
        return Err(LbfgsError::Length { expected: d, found: start.len() });
    }
    if let Some(j) = start.iter().position(|t| !t.is_finite()) {
        return Err(LbfgsError::Parameter(j));
    }
    let mut descent = Descent::new(problem, vec![0.0; d], params);
    let mut reference = descent.violation();
    if start.iter().any(|&t| t != 0.0) {
        descent.theta = start;
        descent.refresh();
        reference = reference.max(descent.violation());
    }
    let mut chooser = Chooser::new(d, Choice::Cyclic, params.seed);
    let mut best = (descent.objective(), descent.theta.clone());
    let (mut trace, mut stalls, mut least) = (Vec::new(), 0, f64::INFINITY);
    let stop = loop {
        let violation = descent.violation();
        let point = Point {
            iterations: trace.len() as u64,
            evaluations: descent.looks / (d as u64).max(1),
            objective: best.0,
            violation,
            nonzeros: descent.theta.iter().filter(|t| **t != 0.0).count(),
            seconds: begin.elapsed().as_secs_f64(),
        };
        trace.push(point);
        let state = State::new(descent.theta.clone());
        let go_on = watch(&point, &state);
        if violation <= params.tolerance * reference {
            break Stop::Tolerance;
        } else if params.target_objective.is_some_and(|target| best.0 <= target) {
            break Stop::Target;
        } else if !go_on {
            break Stop::Interrupted;
        } else if point.iterations >= params.max_iterations {
            break Stop::Iterations;
        } else if stalls >= STALLS {
            break Stop::Precision;
        }
        let before = best.0;
        let mut order: Vec<u32> = (0..d as u32).collect();
        for inner in 0..=INNER {
            if inner > 0 {
                order.retain(|&j| descent.theta[j as usize] != 0.0);
            }
            chooser.shuffle(&mut order);
            let swept = descent.sweep(&order);
            descent.settle(swept.promised, &mut best);
            // No better than the whole needs it, and no longer than it pays.
            if swept.violation <= 0.3 * params.tolerance * reference
                || inner > 0 && swept.violation <= 0.1 * violation
            {
                break;
            }
        }
        // Sweeps leave rounding in the scores.
        descent.refresh();
        best.0 = descent.objective();
        let gained = before - best.0 > ROUNDING * best.0.abs() || violation < 0.9 * least;
        stalls = if gained { 0 } else { stalls + 1 };
        least = least.min(violation);
    };
    let end = trace[trace.len() - 1];
    Ok((State::new(descent.theta), LbfgsInfo { end, stop, trace }))
}

/// What a sweep found.
struct Swept {
    /// Largest violation met.
    violation: f64,
    /// By how much the objective falls if no two steps interfere.
    promised: f64,
}

/// Weights, and what is kept of the regressions between steps.
struct Descent<'a> {
    problem: &'a Local,
    penalty: Penalty<f64>,
    par: Par,
    parallel: usize,
    theta: Vec<f64>,
    /// By rows.
    score: Vec<f64>,
    probability: Vec<f64>,
    /// By regressions.
    log_z: Vec<f64>,
    /// Regressions that a round has changed, and the last round that changed each.
    touched: Vec<u32>,
    changed_in: Vec<u32>,
    round: u32,
    /// Columns looked along.
    looks: u64,
}

impl<'a> Descent<'a> {
    fn new(problem: &'a Local, theta: Vec<f64>, params: &LocalParams) -> Self {
        let LocalParams { par, seed, .. } = *params;
        let parallel = params.parallel.unwrap_or_else(|| {
            let quick = SpectralParams { tolerance: 0.02, max_iterations: 20, intercept: false, par, seed };
            spectral_radius(&problem.matrix, &quick).p_star() / 2
        });
        let rows = problem.group.len();
        let mut descent = Self {
            problem,
            penalty: Penalty { l1: params.l1, l2: params.l2, positive: false },
            par,
            parallel: parallel.max(1),
            theta,
            score: vec![0.0; rows],
            probability: vec![0.0; rows],
            log_z: vec![0.0; problem.regressions()],
            touched: Vec::new(),
            changed_in: vec![0; problem.regressions()],
            round: 0,
            looks: 0,
        };
        descent.refresh();
        descent
    }

    /// Scores anew from the weights, and all probabilities.
    fn refresh(&mut self) {
        self.score = self.problem.matrix.product(&self.theta);
        self.touched.clear();
        self.touched.extend(0..self.log_z.len() as u32);
        self.normalise();
    }

    /// Probabilities of the regressions that were touched.
    fn normalise(&mut self) {
        let (problem, score) = (self.problem, &self.score);
        let batches: Vec<&[u32]> = self.touched.chunks(BATCH).collect();
        let par = if batches.len() > 1 { self.par } else { Par::Seq };
        let done = par.map(batches.clone(), |batch: &[u32]| {
            let rows: usize = batch.iter().map(|&g| problem.rows(g as usize).len()).sum();
            let (mut all, mut log_z) = (Vec::with_capacity(rows), Vec::with_capacity(batch.len()));
            for &g in batch {
                let from = all.len();
                all.extend_from_slice(&score[problem.rows(g as usize)]);
                // Scores out of range make the objective infinite, which takes the step back.
                log_z.push(conditional(&mut all[from..]).unwrap_or(f64::INFINITY));
            }
            (all, log_z)
        });
        for (batch, (all, log_z)) in batches.into_iter().zip(done) {
            let mut from = 0;
            for (&g, z) in batch.iter().zip(log_z) {
                let rows = problem.rows(g as usize);
                let to = from + rows.len();
                self.probability[rows].copy_from_slice(&all[from..to]);
                self.log_z[g as usize] = z;
                from = to;
            }
        }
    }

    fn objective(&self) -> f64 {
        let seen: f64 = self.theta.iter().zip(&self.problem.observed).map(|(t, o)| t * o).sum();
        let cost: f64 = self.theta.iter().map(|&t| self.penalty.value(t)).sum();
        self.log_z.iter().sum::<f64>() - seen + cost
    }

    fn slope_at(&self, j: usize) -> f64 {
        along(self.problem.matrix.column(j), &self.problem.group, &self.probability).expected
            - self.problem.observed[j]
    }

    /// The largest violation of all.
    fn violation(&self) -> f64 {
        let mut each = vec![0.0; self.theta.len()];
        self.par.fill(&mut each, GRAIN, |j| self.penalty.violation(self.theta[j], self.slope_at(j)));
        each.into_iter().fold(0.0, f64::max)
    }

    /// Goes through a list, `P` parameters a round.
    fn sweep(&mut self, order: &[u32]) -> Swept {
        let mut swept = Swept { violation: 0.0, promised: 0.0 };
        let Self { problem, penalty, .. } = *self;
        let mut found = vec![(0.0, 0.0, 0.0); self.parallel.min(order.len())];
        for chosen in order.chunks(self.parallel) {
            let found = &mut found[..chosen.len()];
            let this = &*self;
            this.par.fill(found, GRAIN, |k| {
                let j = chosen[k] as usize;
                let met = along(problem.matrix.column(j), &problem.group, &this.probability);
                let slope = met.expected - problem.observed[j];
                let (by, curvature) = step(&penalty, this.theta[j], slope, &met);
                (by, curvature, penalty.violation(this.theta[j], slope))
            });
            self.looks += chosen.len() as u64;
            self.round += 1;
            self.touched.clear();
            for (&j, &(by, curvature, violation)) in chosen.iter().zip(&*found) {
                swept.violation = swept.violation.max(violation);
                if by != 0.0 {
                    swept.promised += 0.5 * (curvature + penalty.l2) * by * by;
                    self.theta[j as usize] += by;
                    for (row, a) in problem.matrix.column(j as usize).iter::<f64>() {
                        self.score[row] += by * a;
                        let g = problem.group[row];
                        if std::mem::replace(&mut self.changed_in[g as usize], self.round) != self.round {
                            self.touched.push(g);
                        }
                    }
                }
            }
            self.normalise();
        }
        swept
    }

    /// After a sweep: keeps what is better, or goes back and halves `P` if steps interfered.
    fn settle(&mut self, promised: f64, best: &mut (f64, Vec<f64>)) {
        let objective = self.objective();
        let decrease = best.0 - objective;
        let noise = 1e-12 * best.0.abs();
        let interference = decrease.is_nan()
            || decrease < -noise
            || (promised > noise && promised.is_finite() && decrease < LEAST_SHARE * promised);
        if decrease > 0.0 {
            best.0 = objective;
            best.1.clone_from(&self.theta);
        }
        if interference && self.parallel > 1 {
            self.theta.clone_from(&best.1);
            self.refresh();
            self.parallel /= 2;
        }
    }
}
