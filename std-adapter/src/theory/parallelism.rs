//! How many coordinates can be changed at a time: `ρ`, `P*`, the speed-up that Theorem 4.3.2 promises, and the exact simulation of 4.3.2.

pub use crate::solver::spectral::{SpectralInfo, SpectralParams, spectral_radius};

use crate::par::Par;
use crate::regress::problem::{Problem, Weights};
use crate::solver::shotgun::{Choice, Chooser, Rounds, State, Tally};
use gibbsite_core::loss::Loss;
use gibbsite_core::math::Real;

/// The bound of Theorem 4.3.2 on a problem: `E F(x^T) - F* ≤ d(β‖x*‖² + 2F(0)/(1 - ε)) / ((T + 1)P)` with `ε = (P - 1)(ρ - 1)/(2d - 1)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// `d`.
    pub columns: usize,
    /// `ρ`.
    pub rho: f64,
    /// `β‖x*‖²`, with `x*` for columns of unit norm; 0 for the most cautious answer.
    pub distance: f64,
    /// `F(0)`.
    pub start: f64,
}

impl Bound {
    /// `ε`: how much interference `parallel` coordinates at a time can do. The theorem speaks of `ε < 1` only.
    pub fn interference(&self, parallel: usize) -> f64 {
        (parallel.max(1) - 1) as f64 * (self.rho - 1.0).max(0.0) / (2 * self.columns.max(1) - 1) as f64
    }

    /// `T(P)/T(1)`: rounds to the same bound, as a share of those that Shooting needs. `None` where the theorem promises nothing.
    ///
    /// ```
    /// use gibbsite::theory::parallelism::Bound;
    /// let orthogonal = Bound { columns: 10, rho: 1.0, distance: 0.0, start: 1.0 };
    /// assert_eq!(orthogonal.rounds_ratio(10), Some(0.1));
    /// let equal = Bound { rho: 10.0, ..orthogonal };
    /// assert_eq!(equal.rounds_ratio(10), None);
    /// ```
    pub fn rounds_ratio(&self, parallel: usize) -> Option<f64> {
        let epsilon = self.interference(parallel);
        if epsilon >= 1.0 {
            return None;
        }
        let bound = |epsilon: f64| self.distance + 2.0 * self.start / (1.0 - epsilon);
        Some(bound(epsilon) / (bound(0.0) * parallel.max(1) as f64))
    }
}

/// What to simulate.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulateParams {
    /// The `P` to try.
    pub parallel: Vec<usize>,
    /// Runs whose objectives are averaged; the thesis takes 10.
    pub runs: usize,
    /// Done when the average is within this share of the optimum; the thesis takes 0.5 %.
    pub accuracy: f64,
    /// A `P` is given up after that many epochs (updates per column).
    pub max_epochs: u64,
    /// Threads; runs are spread over them.
    pub par: Par,
    /// Seed of the choices.
    pub seed: u64,
}

impl SimulateParams {
    /// As in the thesis: the average of 10 runs to 0.5 %.
    pub fn new(parallel: Vec<usize>) -> Self {
        Self { parallel, runs: 10, accuracy: 0.005, max_epochs: 10_000, par: Par::Seq, seed: 0 }
    }
}

/// How Shotgun did at one `P`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Simulated {
    /// `P`.
    pub parallel: usize,
    /// Rounds until the average objective was near enough; `None` if that did not happen.
    pub rounds: Option<u64>,
    /// Whether the objective ran away.
    pub diverged: bool,
    /// The average objective at the end.
    pub objective: f64,
}

/// Why nothing can be simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum SimulateError {
    /// The matrix has no columns or no rows.
    Empty,
    /// No runs were asked for.
    NoRuns,
    /// The optimum is not a positive number, so that nothing is within a share of it.
    Optimum(f64),
    /// More coordinates at a time than there are.
    Parallel {
        /// As asked.
        asked: usize,
        /// Columns.
        columns: usize,
    },
}

impl std::fmt::Display for SimulateError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Empty => write!(f, "there is nothing to simulate: the matrix is empty"),
            Self::NoRuns => write!(f, "at least one run is needed"),
            Self::Optimum(v) => write!(f, "the optimum must be a positive number, not {v}"),
            Self::Parallel { asked, columns } => {
                write!(f, "{asked} coordinates at a time were asked for, but there are {columns}")
            }
        }
    }
}

impl std::error::Error for SimulateError {}

/// The objective has run away when it is that many times `F(0)`.
const RUNAWAY: f64 = 100.0;

/// The exact simulation of Thesis 4.3.2 (Fig. 4.2): rounds of Alg. 4.2 as printed ([`Choice::Random`], plain rule), from 0, until the objective averaged over
/// `runs` is at most `(1 + accuracy)·optimum`.
///
/// The objective is looked at 64 times an epoch (after each round if there are fewer).
///
/// # Errors
/// A [`SimulateError`] if the question makes no sense.
pub fn simulate<L: Loss, V: Real>(
    problem: &Problem<'_, L, V>,
    optimum: f64,
    params: &SimulateParams,
) -> Result<Vec<Simulated>, SimulateError> {
    let d = problem.matrix.columns();
    if d == 0 || problem.target.is_empty() {
        return Err(SimulateError::Empty);
    }
    if params.runs == 0 {
        return Err(SimulateError::NoRuns);
    }
    if !(optimum > 0.0 && optimum.is_finite()) {
        return Err(SimulateError::Optimum(optimum));
    }
    if let Some(&asked) = params.parallel.iter().find(|&&p| p > d) {
        return Err(SimulateError::Parallel { asked, columns: d });
    }
    Ok(params
        .parallel
        .iter()
        .map(|&parallel| simulate_one(problem, optimum, parallel.max(1), params))
        .collect())
}

/// One `P`.
fn simulate_one<L: Loss, V: Real>(
    problem: &Problem<'_, L, V>,
    optimum: f64,
    parallel: usize,
    params: &SimulateParams,
) -> Simulated {
    let d = problem.matrix.columns();
    let between = (d / (64 * parallel)).max(1) as u64;
    let most = (params.max_epochs.saturating_mul(d as u64)).div_ceil(parallel as u64);
    let goal = (1.0 + params.accuracy) * optimum;
    let runaway = RUNAWAY * problem.objective_at_zero();
    let mut runs: Vec<(Chooser, State, Rounds, f64)> = (0..params.runs as u64)
        .map(|run| {
            let chooser = Chooser::new(d, Choice::Random, params.seed.wrapping_add(run));
            let state = State::new(problem, Weights::zero(d));
            let objective = state.objective(problem);
            (chooser, state, Rounds::new(problem, Par::Seq), objective)
        })
        .collect();
    let mut rounds = 0;
    loop {
        let objective = runs.iter().map(|run| run.3).sum::<f64>() / params.runs as f64;
        let diverged = objective.is_nan() || objective > runaway;
        let near = objective <= goal;
        if near || diverged || rounds >= most {
            return Simulated { parallel, rounds: near.then_some(rounds), diverged, objective };
        }
        runs = params.par.map(runs, |(mut chooser, mut state, mut maker, _)| {
            let mut swept = Tally::default();
            for _ in 0..between {
                maker.round(problem, &mut state, chooser.round(parallel), &mut swept);
            }
            state.settle_intercept(problem);
            let objective = state.objective(problem);
            (chooser, state, maker, objective)
        });
        rounds += between;
    }
}
