//! One regression: from what a user asks to a certified answer.

use super::certificate::{Certificate, lambda_max};
use super::prepare::Prepared;
use super::problem::{Problem, SparseWeights, Weights};
use crate::data::matrix::Matrix;
use crate::par::Par;
use crate::solver::monitor::{Monitor, Point, Stop, Watch};
use crate::solver::reference::{self, ReferenceParams};
use crate::solver::sgd::hybrid::HybridParams;
use crate::solver::sgd::{self, SgdParams};
use crate::solver::shotgun::{self, Choice, ShootingParams, ShotgunParams};
use crate::solver::spectral::{SpectralInfo, SpectralParams, spectral_radius};
use crate::solver::working_set::{WorkingSet, WorkingSetParams};
use crate::solver::{Info, Solution};
use gibbsite_core::loss::{Logistic, Loss, Squared};
use gibbsite_core::math::Real;
use std::time::Instant;

/// Which loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// `½‖Ax - y‖² + …` (eq. 4.2).
    Lasso,
    /// `Σ log(1 + e^{-y aᵀx}) + …` (eq. 4.3).
    Logistic,
}

/// How the penalty is given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Lambda {
    /// `λ` itself.
    Value(f64),
    /// As a share of the least `λ` with an all-zero optimum.
    Ratio(f64),
}

/// Which algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Solver {
    /// Working sets with screening and acceleration: the fastest here.
    Auto,
    /// The thesis' Shotgun: synchronous parallel updates with continuation (Algs. 4.2, 4.3); CDN with an active set for logistic (4.4).
    Shotgun,
    /// Alg. 4.1: one random coordinate after the other.
    Shooting,
    /// Shotgun with asynchronous updates of a shared `Ax`; its result depends on timing.
    ShotgunAsync,
    /// Stochastic gradient descent with lazy shrinkage (4.5.2).
    Sgd,
    /// Stochastic gradient descent with truncated gradients (Langford et al. 2009).
    TruncatedGradient,
    /// Averaged stochastic gradient runs on parts of the samples (Zinkevich et al. 2010).
    ParallelSgd,
    /// Stochastic gradient first, Shotgun to finish (4.5.2's suggestion).
    Hybrid,
    /// Accelerated proximal gradient on all coordinates: slow, simple, independent of the others.
    Reference,
}

/// What to fit and how.
#[derive(Clone, Debug, PartialEq)]
pub struct RegressParams {
    /// Which loss.
    pub task: Task,
    /// The penalty.
    pub lambda: Lambda,
    /// Weight of `½‖x‖²`.
    pub l2: f64,
    /// Factors on `λ`, one for each column; 0 leaves a column free.
    pub l1_weights: Option<Vec<f64>>,
    /// Whether the penalty acts on columns scaled to unit variance (to unit mean square without intercept).
    pub standardize: bool,
    /// Whether weights must not be negative.
    pub positive: bool,
    /// Whether an unpenalised intercept is fitted.
    pub intercept: bool,
    /// Which algorithm.
    pub solver: Solver,
    /// Coordinates at a time for Shotgun; `None` for the thesis' `P*`.
    pub parallel: Option<usize>,
    /// Done when `gap ≤ tolerance · F(0)`.
    pub tolerance: f64,
    /// Most epochs (passes over all coordinates or samples); `None` for [`epoch_limit`](Self::epoch_limit)'s.
    pub max_epochs: Option<u64>,
    /// Threads.
    pub par: Par,
    /// Seed of random choices.
    pub seed: u64,
}

impl RegressParams {
    /// The defaults: no ridge, no intercept, raw columns, `auto`, a gap of 10⁻⁶ of `F(0)`.
    pub fn new(task: Task, lambda: Lambda) -> Self {
        Self {
            task,
            lambda,
            l2: 0.0,
            l1_weights: None,
            standardize: false,
            positive: false,
            intercept: false,
            solver: Solver::Auto,
            parallel: None,
            tolerance: 1e-6,
            max_epochs: None,
            par: Par::Seq,
            seed: 0,
        }
    }

    /// Most epochs: as asked, or 100,000; 20 for stochastic gradients, which do not converge to a tolerance but come near.
    ///
    /// ```
    /// use gibbsite::regress::{Lambda, RegressParams, Solver, Task};
    /// let params = RegressParams { solver: Solver::Sgd, ..RegressParams::new(Task::Lasso, Lambda::Ratio(0.1)) };
    /// assert_eq!(params.epoch_limit(), 20);
    /// assert_eq!(RegressParams { max_epochs: Some(100_000), ..params }.epoch_limit(), 100_000);
    /// ```
    pub fn epoch_limit(&self) -> u64 {
        self.max_epochs.unwrap_or(match self.solver {
            Solver::Sgd | Solver::TruncatedGradient | Solver::ParallelSgd => 20,
            _ => 100_000,
        })
    }
}

/// A fitted regression.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The weights, for the columns as they were given.
    pub weights: SparseWeights,
    /// `λ`.
    pub lambda: f64,
    /// The least `λ` with an all-zero optimum.
    pub lambda_max: f64,
    /// Objective, gap, violation.
    pub certificate: Certificate,
    /// Whether `gap ≤ tolerance · F(0)`.
    pub converged: bool,
    /// How the run went.
    pub info: Info,
    /// Spectral radius of `AᵀA` with unit columns, where the solver needed it.
    pub rho: Option<f64>,
    /// Seconds of solving, reading not counted.
    pub seconds: f64,
    /// Objective and gap over time.
    pub trace: Vec<Point>,
}

/// Why a regression cannot be done.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RegressError {
    /// No rows.
    Empty,
    /// Numbers of rows and targets differ.
    Lengths {
        /// Rows.
        rows: usize,
        /// Targets.
        targets: usize,
    },
    /// A target is NaN or infinite.
    Target {
        /// Row, from 0.
        row: usize,
        /// What it is.
        value: f64,
    },
    /// Labels of a logistic regression are not two.
    Labels {
        /// Those found, the first few.
        found: Vec<f64>,
    },
    /// Penalty weights do not fit the columns.
    Weights {
        /// Columns.
        columns: usize,
        /// Weights given.
        weights: usize,
    },
    /// A parameter is out of range.
    Parameter {
        /// Which one.
        name: &'static str,
        /// What it is.
        value: f64,
    },
    /// Without penalty, and the classes can be told apart without error: there is no optimum.
    Separable,
}

impl std::fmt::Display for RegressError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Empty => write!(f, "there are no rows to learn from"),
            Self::Lengths { rows, targets } => write!(f, "{rows} rows but {targets} targets"),
            Self::Target { row, value } => {
                write!(f, "target of row {} is {value}, expected a finite number", row + 1)
            }
            Self::Labels { found } => {
                let list: Vec<String> = found.iter().take(10).map(f64::to_string).collect();
                let more = if found.len() > 10 { ", …" } else { "" };
                let count = match found.len() {
                    1 => "only one was".to_owned(),
                    // No more are looked for.
                    count @ 1001.. => format!("more than {} were", count - 1),
                    count => format!("{count} were"),
                };
                write!(
                    f,
                    "logistic regression needs two labels, but {count} found: {}{more}",
                    list.join(", ")
                )
            }
            Self::Weights { columns, weights } => {
                write!(f, "{weights} penalty weights for {columns} features: expected one for each")
            }
            Self::Parameter { name, value } => {
                write!(f, "{name} is {value}, expected a finite number of at least 0")
            }
            Self::Separable => write!(
                f,
                "without a penalty there is no best fit: the features tell the two classes apart without error, so weights would \
                 grow for ever; use a positive lambda or l2"
            ),
        }
    }
}

impl std::error::Error for RegressError {}

/// Fits one regression.
///
/// For the logistic task the larger of the two labels in `target` counts as +1.
///
/// ```
/// use gibbsite::data::matrix::Matrix;
/// use gibbsite::regress::{Lambda, RegressParams, Task, fit};
/// let m = Matrix::<f64>::from_rows(2, &[&[(0, 1.0)], &[(0, 1.0), (1, 0.1)]]);
/// let found = fit(&m, &[2.0, 4.0], &RegressParams::new(Task::Lasso, Lambda::Value(1.0)), None)?;
/// assert!((found.weights.get(0) - 2.5).abs() < 1e-3);
/// assert!(found.converged);
/// # Ok::<(), gibbsite::regress::RegressError>(())
/// ```
///
/// # Errors
/// A [`RegressError`] if the data or the parameters make no sense.
pub fn fit<V: Real>(
    matrix: &Matrix<V>,
    target: &[f64],
    params: &RegressParams,
    watch: Option<&Watch<'_>>,
) -> Result<Fit, RegressError> {
    with_run(matrix, target, params, watch, |run| run.solve(params.lambda))
}

/// Something that solves for one `λ` after the other.
pub(super) trait Run {
    /// Solves, from where the last call ended.
    fn solve(&mut self, lambda: Lambda) -> Result<Fit, RegressError>;
}

/// Checks the data, and hands what solves it to `work`, on as many threads as asked for.
pub(super) fn with_run<V: Real, R: Send>(
    matrix: &Matrix<V>,
    target: &[f64],
    params: &RegressParams,
    watch: Option<&Watch<'_>>,
    work: impl FnOnce(&mut dyn Run) -> Result<R, RegressError> + Send,
) -> Result<R, RegressError> {
    let prepared = Prepared::new(matrix, target, params)?;
    let each = |par| match params.task {
        Task::Lasso => work(&mut Steps::new(prepared.problem(matrix, Squared, params), params, watch, par)),
        Task::Logistic => {
            work(&mut Steps::new(prepared.problem(matrix, Logistic, params), params, watch, par))
        }
    };
    // The others have long serial parts, or are serial.
    let auto = params.solver == Solver::Auto;
    params.par.run(|par| if auto { par.awake(|| each(par)) } else { each(par) })
}

/// A problem on its way along penalties.
struct Steps<'a, L, V> {
    problem: Problem<'a, L, V>,
    params: &'a RegressParams,
    watch: Option<&'a Watch<'a>>,
    par: Par,
    /// What `auto` knows.
    sets: Option<WorkingSet<'a, L, V>>,
    /// Where the others are.
    weights: Weights,
    lambda_max: f64,
    spectrum: Option<SpectralInfo>,
    /// When work on the next penalty began.
    start: Instant,
}

impl<'a, L: Loss, V: Real> Steps<'a, L, V> {
    fn new(
        problem: Problem<'a, L, V>,
        params: &'a RegressParams,
        watch: Option<&'a Watch<'a>>,
        par: Par,
    ) -> Self {
        let start = Instant::now();
        let sets = (params.solver == Solver::Auto).then(|| WorkingSet::new(problem, par));
        let lambda_max = sets.as_ref().map_or_else(|| lambda_max(&problem, par), WorkingSet::lambda_max);
        let weights = Weights::zero(problem.matrix.columns());
        Self { problem, params, watch, par, sets, weights, lambda_max, spectrum: None, start }
    }

    /// `P` as asked, or `P*` from the spectrum, which is computed once.
    fn parallel(&mut self) -> usize {
        let (par, seed) = (self.par, self.params.seed);
        self.params.parallel.unwrap_or_else(|| {
            let params = SpectralParams { par, seed, ..SpectralParams::default() };
            self.spectrum.get_or_insert_with(|| spectral_radius(self.problem.matrix, &params)).p_star()
        })
    }

    fn run(&mut self, gap: f64, monitor: &mut Monitor<'_>) -> Solution {
        let (par, seed, max_epochs) = (self.par, self.params.seed, self.params.epoch_limit());
        if let Some(sets) = &mut self.sets {
            return sets.solve(self.problem.lambda, &WorkingSetParams { gap, max_epochs }, monitor);
        }
        let parallel = match self.params.solver {
            Solver::Shotgun | Solver::ShotgunAsync | Solver::Hybrid => Some(self.parallel()),
            _ => None,
        };
        let shotgun = ShotgunParams { parallel, max_epochs, par, seed, ..ShotgunParams::new(gap) };
        let (problem, start) = (&self.problem, std::mem::take(&mut self.weights));
        match self.params.solver {
            Solver::Auto | Solver::Shotgun => shotgun::solve(problem, start, &shotgun, monitor),
            Solver::Shooting => {
                let params = ShootingParams { gap, max_epochs, choice: Choice::Random, par, seed };
                shotgun::sequential::solve(problem, start, &params, monitor)
            }
            Solver::ShotgunAsync => shotgun::asynchronous::solve(problem, start, &shotgun, monitor),
            Solver::Sgd => sgd::solve(
                problem,
                start,
                &SgdParams { par, seed, ..SgdParams::new(gap, max_epochs) },
                monitor,
            ),
            Solver::TruncatedGradient => sgd::solve(
                problem,
                start,
                &SgdParams { par, seed, ..SgdParams::truncated(gap, max_epochs) },
                monitor,
            ),
            Solver::ParallelSgd => sgd::solve(
                problem,
                start,
                &SgdParams { par, seed, ..SgdParams::parallel(gap, max_epochs) },
                monitor,
            ),
            Solver::Hybrid => {
                let first = HybridParams::new(gap);
                let params = HybridParams { sgd: SgdParams { par, seed, ..first.sgd }, shotgun };
                sgd::hybrid::solve(problem, start, &params, monitor)
            }
            Solver::Reference => {
                reference::solve(problem, start, &ReferenceParams { gap, max_epochs, par, seed }, monitor)
            }
        }
    }
}

impl<L: Loss, V: Real> Run for Steps<'_, L, V> {
    fn solve(&mut self, lambda: Lambda) -> Result<Fit, RegressError> {
        self.problem.lambda = match lambda {
            Lambda::Value(value) => value,
            Lambda::Ratio(share) => share * self.lambda_max,
        };
        let gap = self.params.tolerance * self.problem.objective_at_zero();
        let mut monitor = Monitor::starting(self.start, self.watch);
        if !L::QUADRATIC
            && self.problem.lambda == 0.0
            && self.problem.l2 == 0.0
            && self.params.solver != Solver::Auto
        {
            // Only `auto` notices that there is no optimum.
            let params = WorkingSetParams { gap, max_epochs: self.params.epoch_limit() };
            let probe =
                WorkingSet::new(self.problem, self.par).solve(0.0, &params, &mut Monitor::new(self.watch));
            if probe.info.stop == Stop::Unbounded {
                return Err(RegressError::Separable);
            }
        }
        let Solution { weights, certificate, info } = self.run(gap, &mut monitor);
        if info.stop == Stop::Unbounded {
            return Err(RegressError::Separable);
        }
        let fit = Fit {
            weights: SparseWeights::from(&weights),
            lambda: self.problem.lambda,
            lambda_max: self.lambda_max,
            certificate,
            converged: certificate.gap <= gap,
            info,
            rho: self.spectrum.map(|s| s.rho),
            seconds: monitor.elapsed().as_secs_f64(),
            trace: monitor.trace,
        };
        if self.sets.is_none() {
            self.weights = weights;
        }
        self.start = Instant::now();
        Ok(fit)
    }
}
