//! Arguments of `regress`.

use super::{Common, Data, Storage};
use clap::{Args as Group, ValueEnum};
use std::path::PathBuf;

/// Fit a sparse regression (Lasso or logistic) to a certified duality gap
///
/// Minimises `½‖Ax - y‖² + λ‖x‖₁` (lasso) or `Σ log(1 + exp(-y aᵀx)) + λ‖x‖₁` (logistic, with any two labels): sums over samples, raw columns,
/// no intercept unless asked. The run ends when the duality gap, which bounds the distance from the optimum, is at most
/// `--tolerance` times the objective at 0.
///
/// Say how strong the penalty is in one of four ways: `--lambda`, `--lambda-ratio`, `--path` for a falling sequence, `--cv` to choose by
/// cross-validation. Exit codes: 0 done; 1 the input is at fault; 2 wrong usage; 3 stopped before the tolerance was met, also by Ctrl-C (the best
/// model so far is written, and says so; Ctrl-C again quits at once).
#[derive(Debug, Group)]
#[command(
    group = clap::ArgGroup::new("penalty").required(true).multiple(true).args(["lambda", "lambda_ratio", "path", "cv"]),
    after_help = "Examples:
  gibbsite regress lasso data.svm --lambda-ratio 0.1
  gibbsite regress logistic news20.svm.gz --lambda-ratio 0.01 --model m.gib
  gibbsite regress lasso table.csv --target price --intercept --path 100 --plot path.svg
  gibbsite regress logistic data.svm --cv 5 --cv-rule 1se --model m.gib
  gibbsite regress lasso data.svm --lambda 2.5 --solver shotgun --parallel 8 --json"
)]
pub(crate) struct Regress {
    /// What is fitted.
    #[arg(value_enum, value_name = "TASK")]
    pub(crate) task: RegressTask,
    #[command(flatten)]
    pub(crate) data: Data,
    /// The penalty λ.
    #[arg(long, value_name = "L", conflicts_with_all = ["lambda_ratio", "path", "cv"], allow_negative_numbers = true)]
    pub(crate) lambda: Option<f64>,
    /// λ as a share of λ_max, the least λ for which all coefficients are 0.
    #[arg(long, value_name = "R", conflicts_with_all = ["path", "cv"], allow_negative_numbers = true)]
    pub(crate) lambda_ratio: Option<f64>,
    /// Fit N penalties, geometric from λ_max down, each from the solution before; with --cv, how many are tried.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) path: Option<u32>,
    /// Choose λ from a path (of 100 unless --path says otherwise) by K-fold cross-validation, and fit it to all samples. After Ctrl-C the choice
    /// is among what was tried: by the folds that are done, or by those that got below λ_max; with fewer than two, no model is written.
    #[arg(long, value_name = "K", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub(crate) cv: Option<u32>,
    /// The last λ of a path, as a share of λ_max.
    #[arg(long, value_name = "R", default_value_t = 0.01, conflicts_with_all = ["lambda", "lambda_ratio"], allow_negative_numbers = true)]
    pub(crate) path_ratio: f64,
    /// Which λ cross-validation chooses.
    #[arg(long, value_enum, default_value_t = Rule::Min, requires = "cv", conflicts_with_all = ["lambda", "lambda_ratio"])]
    pub(crate) cv_rule: Rule,
    /// How it is solved.
    #[arg(long, value_enum, default_value_t = Solver::Auto)]
    pub(crate) solver: Solver,
    /// shotgun, shotgun-async: coordinates updated at a time; `auto` is the thesis' P* (for shotgun-async, the threads).
    #[arg(long, value_name = "P", default_value = "auto")]
    pub(crate) parallel: Parallel,
    /// Add `C2/2 · ‖x‖₂²` (elastic net).
    #[arg(long, value_name = "C2", default_value_t = 0.0, allow_negative_numbers = true)]
    pub(crate) l2: f64,
    /// Fit an intercept, without penalty.
    #[arg(long)]
    pub(crate) intercept: bool,
    /// Penalise coefficients as if all columns had variance 1 (mean square 1 without --intercept); they are reported for the raw columns.
    #[arg(long)]
    pub(crate) standardize: bool,
    /// Penalty factors: a number a line for all features in order, or lines `feature,factor` (the others 1); 0 is no penalty. The ridge of --l2 ignores them.
    #[arg(long, value_name = "FILE")]
    pub(crate) weights: Option<PathBuf>,
    /// Coefficients of at least 0 only.
    #[arg(long)]
    pub(crate) positive: bool,
    /// Done when the duality gap is at most T times the objective at 0.
    #[arg(long, value_name = "T", default_value = "1e-6", allow_negative_numbers = true)]
    pub(crate) tolerance: f64,
    /// Most passes at each λ: over all coordinates, 100000 by default; for sgd, truncated-gradient and parallel-sgd over all samples, 20 by default.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) max_epochs: Option<u64>,
    /// How entries are stored.
    #[arg(long, value_enum, default_value_t = Storage::F64)]
    pub(crate) storage: Storage,
    /// Read the parsed data from FILE if it was made from DATA as it is now; otherwise write it there.
    #[arg(long, value_name = "FILE")]
    pub(crate) cache: Option<PathBuf>,
    /// Write the model to FILE, for `predict`, `eval` and `inspect`; of a path, the last.
    #[arg(long, value_name = "OUT")]
    pub(crate) model: Option<PathBuf>,
    /// Add objective and gap over time to the JSON.
    #[arg(long, requires = "json")]
    pub(crate) trace: bool,
    /// Draw the gap over time, a path's coefficients against λ, or the cross-validated loss against λ.
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) plot: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RegressTask {
    /// A real-valued target, squared loss.
    Lasso,
    /// Two classes, logistic loss.
    Logistic,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Rule {
    /// The one with the least held-out loss.
    Min,
    /// The largest whose held-out loss is within one standard error of the least.
    #[value(name = "1se")]
    OneSe,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Solver {
    /// Working sets with screening and acceleration: the fastest here.
    Auto,
    /// P random coordinates at a time, the same on any number of threads.
    Shotgun,
    /// One random coordinate after the other.
    Shooting,
    /// Shotgun without waiting for each other; the last digits depend on timing.
    ShotgunAsync,
    /// Stochastic gradient descent.
    Sgd,
    /// Stochastic gradient descent with truncated gradients.
    TruncatedGradient,
    /// Averaged stochastic gradient descents on parts of the samples.
    ParallelSgd,
    /// Stochastic gradient descent first, Shotgun to finish.
    Hybrid,
    /// Accelerated proximal gradient: slow, simple, independent of the others.
    Reference,
}

/// `auto` or a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parallel(pub(crate) Option<usize>);

impl std::str::FromStr for Parallel {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match (text, text.parse()) {
            ("auto", _) => Ok(Self(None)),
            (_, Ok(n @ 1..)) => Ok(Self(Some(n))),
            _ => Err("expected `auto` or a whole number of at least 1"),
        }
    }
}
