//! From raw columns to the objective and back: checks, centring, scaling, weights of samples.

use super::error::GaussianError;
use super::fit::GaussianParams;
use crate::linalg::{Cholesky, Dense, triangle};
use crate::objective::gaussian::{Gaussian, Penalties};
use crate::solver::newton_blocks::Factored;
use crate::sparse::Sparse;
use std::borrow::Cow;

/// Data as the objective sees it, and how to get back.
pub(super) struct Prepared<'a> {
    /// The raw ones if nothing is done to them.
    pub(super) x: Cow<'a, Dense>,
    pub(super) y: Cow<'a, Dense>,
    pub(super) scaling: Scaling,
}

/// From the objective's parameters to those of raw columns.
pub(super) struct Scaling {
    x_mean: Vec<f64>,
    y_mean: Vec<f64>,
    x_scale: Vec<f64>,
    y_scale: Vec<f64>,
}

/// An output whose variance is below this share of its mean square does not vary but for rounding.
const CONSTANT: f64 = 1e-20;

/// Whether the data are changed before the fit, for which they are copied.
pub(super) fn copies(weights: Option<&[f64]>, params: &GaussianParams) -> bool {
    params.intercept || params.standardize || weights.is_some()
}

impl<'a> Prepared<'a> {
    pub(super) fn new(
        x: &'a Dense,
        y: &'a Dense,
        weights: Option<&[f64]>,
        params: &GaussianParams,
    ) -> Result<Self, GaussianError> {
        let rows = y.rows();
        if x.rows() != rows {
            return Err(GaussianError::Lengths { x: x.rows(), y: rows });
        }
        if rows < 2 {
            return Err(GaussianError::TooFew(rows));
        }
        for (matrix, output) in [(x, false), (y, true)] {
            if let Some(at) = matrix.values().iter().position(|v| !v.is_finite()) {
                return Err(GaussianError::NotFinite { output, row: at % rows, column: at / rows });
            }
        }
        if y.cols() == 0 {
            return Err(GaussianError::Parameter { name: "number of outputs", value: 0.0 });
        }
        let copied = copies(weights, params);
        let weights = check_weights(weights, rows)?;
        let (x, x_mean, x_scale) = columns(x, copied, &weights, params);
        let (y, y_mean, y_scale) = columns(y, copied, &weights, params);
        if let Some(j) = (0..y.cols()).find(|&j| y_scale[j] == 0.0) {
            return Err(GaussianError::ConstantOutput(j));
        }
        let mut scaling = Scaling { x_mean, y_mean, x_scale: x_scale_or_1(x_scale), y_scale };
        if !params.standardize {
            scaling.x_scale.fill(1.0);
            scaling.y_scale.fill(1.0);
        }
        Ok(Self { x, y, scaling })
    }
}

/// Whether the objective has a minimum: without penalty it may fall for ever.
pub(super) fn check_bounded(problem: &Gaussian, penalties: &Penalties) -> Result<(), GaussianError> {
    let Gaussian { x, y, syy, .. } = problem;
    if penalties.lambda == 0.0 && Cholesky::new(syy).is_none_or(|c| c.is_nearly_singular()) {
        return Err(GaussianError::SingularOutputs);
    }
    if penalties.theta > 0.0 || x.cols() == 0 {
        return Ok(());
    }
    let (n, p) = (x.cols(), y.cols());
    let exact = GaussianError::ExactInputs { inputs: n, samples: problem.samples as usize };
    let mut both = x.values().to_vec();
    both.extend_from_slice(y.values());
    let both = Dense::from_columns(x.rows(), n + p, both).ok_or_else(|| exact.clone())?;
    // The lower right block of R is what the inputs leave of the outputs.
    let r = triangle(&both);
    let left = |i: usize, j: usize| (n..r.rows()).map(|k| r.get(k, n + i) * r.get(k, n + j)).sum::<f64>();
    let residual = Dense::from_fn(p, p, |i, j| left(i, j) / problem.samples);
    let gone = (0..p).any(|j| residual.get(j, j) <= 1e-12 * syy.get(j, j));
    let flat = penalties.lambda == 0.0 && Cholesky::new(&residual).is_none_or(|c| c.is_nearly_singular());
    if gone || flat { Err(exact) } else { Ok(()) }
}

impl Scaling {
    /// As [`raw`](Self::raw), of sparse parameters; `None` if Λ is not positive definite.
    pub(super) fn raw_sparse(
        &self,
        (mut lambda, mut theta): (Sparse, Sparse),
        intercept: bool,
    ) -> Option<(Sparse, Sparse, Vec<f64>)> {
        let (sx, sy) = (&self.x_scale, &self.y_scale);
        lambda.change(|i, j, v| v / (sy[i] * sy[j]));
        theta.change(|i, j, v| v / (sx[i] * sy[j]));
        let factor = Factored::new(&lambda)?;
        let mut shift = self.y_mean.clone();
        if intercept {
            let mut through = vec![0.0; theta.cols()];
            theta.entries().for_each(|(i, j, v)| through[j] += v * self.x_mean[i]);
            factor.solve(&mut through);
            shift.iter_mut().zip(&through).for_each(|(s, t)| *s += t);
        }
        Some((lambda, theta, shift))
    }

    /// `Λ`, `Θ` and the intercept for raw columns.
    pub(super) fn raw(&self, lambda: &Dense, theta: &Dense, intercept: bool) -> (Dense, Dense, Vec<f64>) {
        let (sx, sy) = (&self.x_scale, &self.y_scale);
        let (n, p) = (theta.rows(), theta.cols());
        let lambda = Dense::from_fn(p, p, |i, j| lambda.get(i, j) / (sy[i] * sy[j]));
        let theta = Dense::from_fn(n, p, |i, j| theta.get(i, j) / (sx[i] * sy[j]));
        let mut shift = self.y_mean.clone();
        if intercept && let Some(factor) = Cholesky::new(&lambda) {
            let mut through =
                Dense::from_fn(p, 1, |j, _| theta.col(j).iter().zip(&self.x_mean).map(|(t, m)| t * m).sum());
            factor.solve(&mut through);
            shift.iter_mut().zip(through.values()).for_each(|(s, t)| *s += t);
        }
        (lambda, theta, shift)
    }
}

fn x_scale_or_1(scale: Vec<f64>) -> Vec<f64> {
    scale.into_iter().map(|s| if s > 0.0 { s } else { 1.0 }).collect()
}

fn check_weights(weights: Option<&[f64]>, rows: usize) -> Result<Vec<f64>, GaussianError> {
    let Some(weights) = weights else { return Ok(vec![1.0; rows]) };
    if weights.len() != rows {
        return Err(GaussianError::Weights { found: weights.len(), rows });
    }
    if let Some(&value) = weights.iter().find(|w| !(w.is_finite() && **w >= 0.0)) {
        return Err(GaussianError::Parameter { name: "weight of a sample", value });
    }
    let total: f64 = weights.iter().sum();
    if weights.iter().filter(|w| **w > 0.0).count() < 2 {
        return Err(GaussianError::Parameter {
            name: "sum of the weights of all but one sample",
            value: 0.0,
        });
    }
    Ok(weights.iter().map(|w| w * rows as f64 / total).collect())
}

/// Columns centred if asked, scaled if asked, times the roots of the weights; their means and root mean squares (0 where only rounding is left).
fn columns<'a>(
    matrix: &'a Dense,
    copied: bool,
    weights: &[f64],
    params: &GaussianParams,
) -> (Cow<'a, Dense>, Vec<f64>, Vec<f64>) {
    let rows = matrix.rows() as f64;
    if !copied {
        let mean = |j: usize| matrix.col(j).iter().map(|v| v * v).sum::<f64>() / rows;
        let scales = (0..matrix.cols()).map(|j| mean(j).sqrt()).collect();
        return (Cow::Borrowed(matrix), vec![0.0; matrix.cols()], scales);
    }
    let mut out = matrix.clone();
    let (mut means, mut scales) = (vec![0.0; matrix.cols()], vec![0.0; matrix.cols()]);
    for j in 0..matrix.cols() {
        let column = out.col_mut(j);
        let square = |column: &[f64]| column.iter().zip(weights).map(|(v, w)| w * v * v).sum::<f64>() / rows;
        let before = square(column);
        if params.intercept {
            means[j] = column.iter().zip(weights).map(|(v, w)| w * v).sum::<f64>() / rows;
            column.iter_mut().for_each(|v| *v -= means[j]);
        }
        let variance = square(column);
        scales[j] = if variance > CONSTANT * before { variance.sqrt() } else { 0.0 };
        if scales[j] == 0.0 {
            column.fill(0.0);
        }
        let by = if params.standardize && scales[j] > 0.0 { 1.0 / scales[j] } else { 1.0 };
        column.iter_mut().zip(weights).for_each(|(v, w)| *v *= by * w.sqrt());
    }
    (Cow::Owned(out), means, scales)
}
