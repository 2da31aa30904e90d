//! Regressions for a falling sequence of penalties, each started from the one before.

use super::fit::{Fit, Lambda, RegressError, RegressParams, with_run};
use crate::data::matrix::Matrix;
use crate::solver::monitor::{Stop, Watch};
use gibbsite_core::math::Real;

/// `points` fits at `λ_k = λ_max · ratio^(k/(points - 1))`, warm-started; `params.lambda` is not used.
///
/// Each meets the tolerance. What is known about correlations, norms and signs is carried from one penalty to the next, so that most columns
/// are never looked at again. Ends early, after the fit that was interrupted, if `watch` says so.
///
/// ```
/// use gibbsite::data::matrix::Matrix;
/// use gibbsite::regress::{Lambda, RegressParams, Task, path::path};
/// let m = Matrix::<f64>::from_rows(1, &[&[(0, 1.0)], &[(0, 1.0)]]);
/// let params = RegressParams::new(Task::Lasso, Lambda::Ratio(1.0));
/// let fits = path(&m, &[2.0, 4.0], &params, 3, 0.25, None)?;
/// assert_eq!(fits.iter().map(|f| f.lambda).collect::<Vec<_>>(), [6.0, 3.0, 1.5]);
/// assert!((fits[2].weights.get(0) - 2.25).abs() < 1e-3);
/// # Ok::<(), gibbsite::regress::RegressError>(())
/// ```
///
/// # Errors
/// As [`fit`](super::fit()); also if `points` is 0 or `ratio` is not from above 0 to 1.
pub fn path<V: Real>(
    matrix: &Matrix<V>,
    target: &[f64],
    params: &RegressParams,
    points: usize,
    ratio: f64,
    watch: Option<&Watch<'_>>,
) -> Result<Vec<Fit>, RegressError> {
    if points == 0 {
        return Err(RegressError::Parameter { name: "number of points", value: 0.0 });
    }
    if !(ratio > 0.0 && ratio <= 1.0) {
        return Err(RegressError::Parameter { name: "path ratio", value: ratio });
    }
    let params = RegressParams { lambda: Lambda::Ratio(1.0), ..params.clone() };
    with_run(matrix, target, &params, watch, |run| {
        let mut fits: Vec<Fit> = Vec::with_capacity(points);
        for k in 0..points {
            let share = if points == 1 { 1.0 } else { ratio.powf(k as f64 / (points - 1) as f64) };
            let fit = run.solve(Lambda::Ratio(share))?;
            let interrupted = fit.info.stop == Stop::Interrupted;
            fits.push(fit);
            if interrupted {
                break;
            }
        }
        Ok(fits)
    })
}
