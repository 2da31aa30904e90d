//! Arguments of `gaussian`.

use super::Common;
use clap::{Args as Group, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Learn sparse Gaussian CRFs: many correlated real outputs, with honest intervals
#[derive(Debug, Subcommand)]
pub(crate) enum Gaussian {
    Fit(Box<GaussianFit>),
    Predict(GaussianPredict),
}

/// Fit a sparse Gaussian CRF to inputs and real outputs
///
/// The outputs are modelled as y | x ~ N(-Λ⁻¹Θᵀx, Λ⁻¹). Minimises `-log|Λ| + tr(S_yy Λ) + 2 tr(S_xyᵀ Θ) + tr(Λ⁻¹ Θᵀ S_xx Θ) + λ(‖Λ‖ + ‖Θ‖)` with sums of
/// absolute values, those of Λ off the diagonal, raw columns, no intercept unless asked. The run ends when the subdifferential violation (the largest
/// entry of the subgradient nearest to 0) is at most `--tolerance` times λ.
///
/// X and Y are CSV (with or without a header) or `.npy` files of one row an example. Say how strong the penalty is in one of four ways: `--lambda`, `--lambda-ratio`,
/// `--path` for a falling sequence, `--cv` to choose by cross-validation. Exit codes: 0 done; 1 the input is at fault; 2 wrong usage; 3 stopped before the tolerance was
/// met, also by Ctrl-C (the best model so far is written, and says so).
#[derive(Debug, Group)]
#[command(
    group = clap::ArgGroup::new("penalty").required(true).multiple(true).args(["lambda", "lambda_ratio", "path", "cv"]),
    after_help = "Examples:
  gibbsite gaussian fit --x features.npy --y loads.npy --lambda 0.1 --model wind.gib
  gibbsite gaussian fit --x x.csv --y y.csv --intercept --standardize --cv 5 --model wind.gib --plot pattern.svg
  gibbsite gaussian fit --x x.npy --y y.npy --path 20 --json"
)]
pub(crate) struct GaussianFit {
    /// Inputs, one row an example.
    #[arg(long, value_name = "X")]
    pub(crate) x: PathBuf,
    /// Outputs, one row an example.
    #[arg(long, value_name = "Y")]
    pub(crate) y: PathBuf,
    /// The penalty λ, of Λ and (unless --lambda-theta) of Θ.
    #[arg(long, value_name = "L", conflicts_with_all = ["lambda_ratio", "path", "cv"], allow_negative_numbers = true)]
    pub(crate) lambda: Option<f64>,
    /// λ as a share of λ_max, the least λ for which nothing but the diagonal of Λ is left.
    #[arg(long, value_name = "R", conflicts_with_all = ["path", "cv"], allow_negative_numbers = true)]
    pub(crate) lambda_ratio: Option<f64>,
    /// Fit N penalties, geometric from λ_max down, each from the solution before; with --cv, how many are tried.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) path: Option<u32>,
    /// Choose λ from a path (of 20 unless --path says otherwise) by K-fold cross-validation, and fit it to all rows.
    #[arg(long, value_name = "K", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub(crate) cv: Option<u32>,
    /// The last λ of a path, as a share of λ_max.
    #[arg(long, value_name = "R", default_value_t = 0.01, allow_negative_numbers = true)]
    pub(crate) path_ratio: f64,
    /// The held-out loss that --cv compares.
    #[arg(long, value_enum, default_value_t = CvLoss::LogLoss, requires = "cv")]
    pub(crate) cv_loss: CvLoss,
    /// --cv with folds of rows that follow each other, as time series want it, instead of shuffled ones.
    #[arg(long, requires = "cv")]
    pub(crate) cv_contiguous: bool,
    /// The penalty of Θ, if it is another one; it stays the same along a path.
    #[arg(long, value_name = "L", conflicts_with = "theta_factor", allow_negative_numbers = true)]
    pub(crate) lambda_theta: Option<f64>,
    /// The penalty of Θ as a multiple of that of Λ.
    #[arg(long, value_name = "F", allow_negative_numbers = true)]
    pub(crate) theta_factor: Option<f64>,
    /// Penalise the diagonal of Λ too.
    #[arg(long)]
    pub(crate) penalize_diagonal: bool,
    /// Fit an intercept, without penalty.
    #[arg(long)]
    pub(crate) intercept: bool,
    /// Penalise as if all columns of X and Y had variance 1 (mean square 1 without --intercept); parameters are for the raw columns.
    #[arg(long)]
    pub(crate) standardize: bool,
    /// Fit the entries that are not 0 again, without penalty: estimates are no longer shrunk. The objective is then that without penalty.
    #[arg(long)]
    pub(crate) refit: bool,
    /// Weights of the samples: a file with one column, a number of at least 0 a row.
    #[arg(long, value_name = "FILE")]
    pub(crate) weights: Option<PathBuf>,
    /// How it is solved.
    #[arg(long, value_enum, default_value_t = GaussianSolver::Auto)]
    pub(crate) solver: GaussianSolver,
    /// Done when the subdifferential violation is at most T times λ (the larger one, if there are two).
    #[arg(long, value_name = "T", default_value = "1e-6", allow_negative_numbers = true)]
    pub(crate) tolerance: f64,
    /// Most outer iterations, at each λ; 1000 unless said, 100000 for fista and owlqn.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) max_iter: Option<u64>,
    /// Memory that the fit may take beside X and Y themselves, for instance `2GiB` or `100MiB`; without it there is no limit. Where that is too little for dense matrices (in bytes about 23·m·n + 80·m·p + 114·p² + 35·n·p
    /// for m rows, n inputs and p outputs; 4000 inputs, 1000 outputs, 2500 rows: 652 MiB) the fit is done by blocks of columns, which keeps only what is not 0 and is as exact, but slower. It needs about 150 bytes for each entry
    /// that is not 0, 44 for each of the sparse factor of Λ, and a copy of X and Y with --intercept, --standardize or --weights (each fold of --cv has one, too). Too little even for that is an error that says how much is needed.
    /// Not for fista and owlqn; newton-cd and alternating do not work by blocks.
    #[arg(long, value_name = "SIZE", value_parser = super::size)]
    pub(crate) memory: Option<u64>,
    /// Write the model to FILE, for `gaussian predict` and `inspect`; of a path, the last.
    #[arg(long, value_name = "OUT")]
    pub(crate) model: Option<PathBuf>,
    /// Add objective and violation over time to the JSON.
    #[arg(long, requires = "json")]
    pub(crate) trace: bool,
    /// Draw which entries of Λ and Θ are not 0.
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) plot: Option<PathBuf>,
    /// Draw the violation over time, a path's non-zeros against λ, or the cross-validated loss against λ.
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) plot_course: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Predict the outputs of new rows, with intervals
///
/// Prints CSV: the mean of each output; with --interval also columns `name:low` and `name:high`; with --samples instead N joint draws for each row, after
/// columns `row` and `sample`. With --y the predictions are scored: mean squared error, log loss (mean over rows of -log p(y | x) of the whole row), CRPS,
/// coverage of the intervals (of 0.9 unless --interval says otherwise). Rows of Y may lack cells (empty, NaN): those are predicted given the ones that are there.
#[derive(Debug, Group)]
#[command(after_help = "Examples:
  gibbsite gaussian predict --model wind.gib --x new.npy --interval 0.9
  gibbsite gaussian predict --model wind.gib --x new.csv --y so-far.csv
  gibbsite gaussian predict --model wind.gib --x test.npy --y test-y.npy --json")]
pub(crate) struct GaussianPredict {
    /// The model.
    #[arg(long, value_name = "M")]
    pub(crate) model: PathBuf,
    /// Inputs, one row an example.
    #[arg(long, value_name = "X")]
    pub(crate) x: PathBuf,
    /// Outputs as far as they are known: to score, and to condition on where a row lacks some.
    #[arg(long, value_name = "Y")]
    pub(crate) y: Option<PathBuf>,
    /// Intervals that hold with this probability, from 0 to 1.
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    pub(crate) interval: Option<f64>,
    /// Make the intervals wider, so that all outputs of a row are within theirs together.
    #[arg(long)]
    pub(crate) joint: bool,
    /// Draw N joint samples for each row.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) samples: Option<u32>,
    /// Draw means and intervals of the first rows: a forecast fan.
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) plot: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GaussianSolver {
    /// Alternating Newton, finished by conjugate gradients on the entries that are not 0: the fastest here.
    Auto,
    /// Newton coordinate descent on Λ and Θ together (SGCRF Algorithm 1).
    NewtonCd,
    /// Newton coordinate descent on Λ, coordinate descent on Θ, in turn.
    Alternating,
    /// Accelerated proximal gradient: slow, simple, independent of the others.
    Fista,
    /// Orthant-wise L-BFGS: the paper's other baseline.
    Owlqn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CvLoss {
    /// The mean of -log p(y | x).
    LogLoss,
    /// The mean squared error.
    Mse,
}
