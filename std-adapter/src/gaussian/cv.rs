//! Choosing `λ` by K-fold cross-validation.

use super::error::GaussianError;
use super::fit::{GaussianFit, GaussianParams, Run};
use super::path::{along, penalties};
use super::predict::Forecaster;
use super::score::{Widths, score};
use crate::cv;
use crate::linalg::Dense;
use crate::par::Par;
use crate::solver::monitor::Stop;
use crate::solver::newton_blocks::{self, BlockData};
use crate::solver::newton_cd::GaussianWatch;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CvLoss {
    /// The mean of `-log p(y | x)`.
    LogLoss,
    /// The mean squared error.
    Mse,
}

/// How to cross-validate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GaussianCvParams {
    /// Parts that are held out in turn; at least 2.
    pub folds: usize,
    /// Penalties that are tried.
    pub points: usize,
    /// The last penalty as a share of the first, `λ_max` of all rows.
    pub ratio: f64,
    /// What is compared.
    pub loss: CvLoss,
    /// Whether rows are left in their order and cut into contiguous folds, as time series want it; otherwise they are shuffled by `seed`.
    pub contiguous: bool,
    /// Seed of the shuffling.
    pub seed: u64,
}

/// One penalty, tried on all folds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GaussianCvPoint {
    /// `λ_Λ`.
    pub lambda: f64,
    /// Mean held-out loss.
    pub mean: f64,
    /// Its standard error over the folds.
    pub se: f64,
    /// Non-zeros of Λ and Θ, the mean over the folds.
    pub nonzeros: f64,
}

/// What cross-validation found.
#[derive(Clone, Debug, PartialEq)]
pub struct GaussianCv {
    /// From the largest penalty to the least that was reached on all folds.
    pub points: Vec<GaussianCvPoint>,
    /// Index of the point with the least mean loss.
    pub best: usize,
    /// Whether every fit met its tolerance.
    pub converged: bool,
}

/// Cross-validates over a path of penalties that all folds share (the objective is a mean over samples, so a `λ` means the same for each), then fits all rows along the
/// path down to the best one. Folds run on threads of their own where there are enough of them; the result does not depend on that.
///
/// # Errors
/// A [`GaussianError`] if the samples are too few, or a fit fails.
pub fn cross_validate(
    x: &Dense,
    y: &Dense,
    weights: Option<&[f64]>,
    params: &GaussianParams,
    how: &GaussianCvParams,
    watch: Option<&GaussianWatch<'_>>,
) -> Result<(GaussianCv, GaussianFit), GaussianError> {
    let rows = y.rows();
    if how.folds < 2 || how.folds > rows || rows - rows.div_ceil(how.folds) < 2 {
        return Err(GaussianError::Folds { folds: how.folds, rows });
    }
    let grid = {
        let most = params.par.run(|par| {
            let params = GaussianParams { par, ..params.clone() };
            Run::new(x, y, weights, &params).map(|run| run.lambda_max)
        })?;
        penalties(most, how.points, how.ratio)?
    };
    let fold_of = deal(rows, how);
    let (outer, inner) =
        if how.folds >= params.par.count() { (params.par, Par::Seq) } else { (Par::Seq, params.par) };
    let one = |fold: usize| -> Result<Vec<(f64, f64, bool)>, GaussianError> {
        let (kept, held) = cv::split(&fold_of, fold);
        let own: Option<Vec<f64>> = weights.map(|w| kept.iter().map(|&i| w[i]).collect());
        // Folds that run at the same time share what is allowed; each has a copy of its rows.
        let copy = 8 * (x.rows() * (x.cols() + y.cols())) as u64;
        let memory = match params.memory.map(|bytes| bytes / outer.count().min(how.folds) as u64) {
            Some(bytes) if bytes < copy => {
                let need = copy.saturating_mul(outer.count().min(how.folds) as u64);
                return Err(GaussianError::Memory { need, budget: params.memory.unwrap_or(bytes) });
            }
            bytes => bytes.map(|bytes| bytes - copy),
        };
        let params = GaussianParams { par: inner, memory, ..params.clone() };
        let grid = grid.clone();
        let fits = along(
            &x.select_rows(&kept),
            &y.select_rows(&kept),
            own.as_deref(),
            &params,
            |_| Ok(grid),
            watch,
        )?;
        let (x, y) = (x.select_rows(&held), y.select_rows(&held));
        let done = fits.into_iter().filter(|fit| fit.stop != Stop::Interrupted);
        Ok(done.map(|fit| held_out(&fit, &x, &y, how.loss, memory)).collect())
    };
    let folds = outer.run(|par| par.map((0..how.folds).collect(), one));
    let folds = folds.into_iter().collect::<Result<Vec<_>, _>>()?;
    let found = join(&folds, &grid).ok_or(GaussianError::Interrupted)?;
    let chosen = grid[..=found.best].to_vec();
    let mut fits = along(x, y, weights, params, |_| Ok(chosen), watch)?;
    let last = fits.pop().ok_or(GaussianError::Interrupted)?;
    Ok((found, last))
}

fn held_out(fit: &GaussianFit, x: &Dense, y: &Dense, loss: CvLoss, memory: Option<u64>) -> (f64, f64, bool) {
    let nonzeros = (fit.nonzeros_lambda() + fit.nonzeros_theta()) as f64;
    let (log_loss, mse) = match (fit.blocks, memory) {
        (Some(_), Some(bytes)) => held_out_within(fit, x, y, bytes),
        _ => {
            let (lambda, theta) = (fit.lambda.to_dense(), fit.theta.to_dense());
            let model = Forecaster::new(lambda, theta, fit.intercept.clone());
            let widths = Widths { own: 0.0, joint: 0.0 };
            let found = model.and_then(|m| score(&m, &m.means(Par::Seq, x), y, widths));
            found.map_or((f64::NAN, f64::NAN), |s| (s.log_loss, s.mse))
        }
    };
    let value = match loss {
        CvLoss::LogLoss => log_loss,
        CvLoss::Mse => mse,
    };
    (value, nonzeros, fit.converged)
}

/// Log loss and mean squared error without dense parameters.
fn held_out_within(fit: &GaussianFit, x: &Dense, y: &Dense, bytes: u64) -> (f64, f64) {
    let (m, p) = (y.rows(), y.cols());
    let moved = Dense::from_fn(m, p, |i, j| y.get(i, j) - fit.intercept[j]);
    let data = BlockData { x, y: &moved, par: Par::Seq };
    let found = newton_blocks::held_out(data, (&fit.lambda, &fit.theta), bytes);
    // f is twice the mean negative log-likelihood without its constant.
    let log_loss = |f: f64| 0.5 * (f + p as f64 * std::f64::consts::TAU.ln());
    found.ok().flatten().map_or((f64::NAN, f64::NAN), |(f, mse)| (log_loss(f), mse))
}

/// Which fold each row belongs to: stretches of the order, where [`cv::deal`] would take one row for each fold in turn.
fn deal(rows: usize, how: &GaussianCvParams) -> Vec<u32> {
    let order = if how.contiguous { (0..rows).collect() } else { cv::shuffled(rows, how.seed) };
    let mut fold_of = vec![0; rows];
    for (k, &i) in order.iter().enumerate() {
        fold_of[i] = (k * how.folds / rows) as u32;
    }
    fold_of
}

fn join(folds: &[Vec<(f64, f64, bool)>], grid: &[f64]) -> Option<GaussianCv> {
    let reached = folds.iter().map(Vec::len).min()?;
    let count = folds.len() as f64;
    let points: Vec<GaussianCvPoint> = (0..reached)
        .map(|k| {
            let losses = || folds.iter().map(|f| f[k].0);
            let mean = losses().sum::<f64>() / count;
            let spread: f64 = losses().map(|l| (l - mean) * (l - mean)).sum();
            GaussianCvPoint {
                lambda: grid[k],
                mean,
                se: (spread / (count * (count - 1.0))).sqrt(),
                nonzeros: folds.iter().map(|f| f[k].1).sum::<f64>() / count,
            }
        })
        .collect();
    // Of equals the first: the sparser model.
    let best = cv::least(points.iter().map(|p| p.mean))?;
    Some(GaussianCv { points, best, converged: folds.iter().flatten().all(|f| f.2) })
}
