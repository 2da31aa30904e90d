//! Fits for a falling sequence of penalties, each started from the one before.

use super::error::GaussianError;
use super::fit::{GaussianFit, GaussianParams, Run, check};
use crate::linalg::Dense;
use crate::solver::monitor::Stop;
use crate::solver::newton_cd::GaussianWatch;

/// `points` fits at `λ_k = λ_max · ratio^(k/(points - 1))`, warm-started; `params.lambda` is not used. With [`Theta::Value`](super::Theta::Value) only `λ_Λ` falls.
///
/// Ends early, after the fit that was interrupted, if `watch` says so.
///
/// # Errors
/// As [`fit`](super::fit()); also if `points` is 0 or `ratio` is not from above 0 to 1.
pub fn path(
    x: &Dense,
    y: &Dense,
    weights: Option<&[f64]>,
    params: &GaussianParams,
    points: usize,
    ratio: f64,
    watch: Option<&GaussianWatch<'_>>,
) -> Result<Vec<GaussianFit>, GaussianError> {
    let grid = |max: f64| penalties(max, points, ratio);
    along(x, y, weights, params, grid, watch)
}

/// The penalties of a path.
pub(super) fn penalties(max: f64, points: usize, ratio: f64) -> Result<Vec<f64>, GaussianError> {
    if points == 0 {
        return Err(GaussianError::Parameter { name: "number of points", value: 0.0 });
    }
    if !(ratio > 0.0 && ratio <= 1.0) {
        return Err(GaussianError::Parameter { name: "path ratio", value: ratio });
    }
    if max <= 0.0 {
        // Outputs without any correlation: nothing to choose from.
        return Err(GaussianError::Parameter { name: "largest useful lambda", value: max });
    }
    let last = points.saturating_sub(1).max(1) as f64;
    Ok((0..points).map(|k| max * ratio.powf(k as f64 / last)).collect())
}

/// Fits for the penalties that `grid` gives for `λ_max`.
pub(super) fn along(
    x: &Dense,
    y: &Dense,
    weights: Option<&[f64]>,
    params: &GaussianParams,
    grid: impl FnOnce(f64) -> Result<Vec<f64>, GaussianError> + Send,
    watch: Option<&GaussianWatch<'_>>,
) -> Result<Vec<GaussianFit>, GaussianError> {
    check(params, 1.0)?;
    params.par.run(|par| {
        let params = GaussianParams { par, ..params.clone() };
        let mut run = Run::new(x, y, weights, &params)?;
        let grid = grid(run.lambda_max)?;
        let mut fits = Vec::new();
        for lambda in grid {
            let fit = run.solve(lambda, watch)?;
            let interrupted = fit.stop == Stop::Interrupted;
            run.kept += 12 * (fit.nonzeros_lambda() + fit.nonzeros_theta() + 2 * y.cols()) as u64;
            fits.push(fit);
            if interrupted {
                break;
            }
        }
        Ok(fits)
    })
}
