//! One regression: from what a user asks to a certified answer.

use super::certificate::{Certificate, lambda_max};
use super::problem::{Problem, Weights};
use crate::data::matrix::Matrix;
use crate::par::Par;
use crate::solver::monitor::{Monitor, Point, Watch};
use crate::solver::{Info, Solution};
use gibbsite_core::loss::{Logistic, Loss, Squared};
use gibbsite_core::math::Real;

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
    /// Most epochs (passes over all coordinates or samples).
    pub max_epochs: u64,
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
            max_epochs: 100_000,
            par: Par::Seq,
            seed: 0,
        }
    }
}

/// A fitted regression.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The weights, for the columns as they were given.
    pub weights: Weights,
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
            Self::Target { row, value } => write!(f, "target of row {} is {value}, expected a finite number", row + 1),
            Self::Labels { found } => {
                let list: Vec<String> = found.iter().take(10).map(f64::to_string).collect();
                let more = if found.len() > 10 { ", …" } else { "" };
                let count = found.len();
                write!(f, "logistic regression needs two labels, but {count} were found: {}{more}", list.join(", "))
            }
            Self::Weights { columns, weights } => {
                write!(f, "{weights} penalty weights for {columns} features: expected one for each")
            }
            Self::Parameter { name, value } => write!(f, "{name} is {value}, expected a finite number of at least 0"),
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
/// assert!((found.weights.x[0] - 2.5).abs() < 1e-3);
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
    let _ = (matrix, target, params, watch);
    todo!()
}
