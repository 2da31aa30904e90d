//! What SGCRF compares with: a joint Gaussian MRF of inputs and outputs (Fig. 4), and ridge regression (Figs. 5, 6).

use super::error::GaussianError;
use super::fit::{GaussianFit, GaussianParams, fit};
use crate::linalg::{Cholesky, Dense, product, transposed_product};
use crate::par::Par;
use crate::solver::newton_cd::GaussianWatch;
use crate::sparse::Sparse;

/// A sparse Gaussian MRF of `(x, y)` by the graphical lasso (the same solver, without inputs), then `y | x`: with the joint precision `Q`, `Λ = Q_yy` and `Θ = Q_xy`. `params.lambda` penalises
/// all pairs; the objective, violation and `λ_max` are those of the joint fit.
///
/// # Errors
/// As [`fit`](super::fit()); inputs that do not vary are refused as outputs are.
pub fn fit_jointly(
    x: &Dense,
    y: &Dense,
    weights: Option<&[f64]>,
    params: &GaussianParams,
    watch: Option<&GaussianWatch<'_>>,
) -> Result<GaussianFit, GaussianError> {
    let (m, n, p) = (y.rows(), x.cols(), y.cols());
    if x.rows() != m {
        return Err(GaussianError::Lengths { x: x.rows(), y: m });
    }
    let all = [x.values(), y.values()].concat();
    let all = Dense::from_columns(m, n + p, all).unwrap_or_else(|| Dense::zeros(m, 0));
    let joint = fit(&Dense::zeros(m, 0), &all, weights, params, watch)?;
    let (inputs, outputs): (Vec<usize>, Vec<usize>) = ((0..n).collect(), (n..n + p).collect());
    let columns = joint.lambda.to_dense().select_columns(&outputs);
    let (lambda, theta) = (columns.select_rows(&outputs), columns.select_rows(&inputs));
    // y = μ_y - Λ⁻¹Θᵀ(x - μ_x): the rest of the intercept.
    let factor = Cholesky::new(&lambda).ok_or(GaussianError::SingularOutputs)?;
    let (x_mean, y_mean) = joint.intercept.split_at(n);
    let mut shift = Dense::from_fn(p, 1, |j, _| theta.col(j).iter().zip(x_mean).map(|(t, m)| t * m).sum());
    factor.solve(&mut shift);
    let intercept = y_mean.iter().zip(shift.values()).map(|(m, s)| m + s).collect();
    let (lambda, theta) = (Sparse::from_dense(&lambda), Sparse::from_dense(&theta));
    Ok(GaussianFit { lambda, theta, intercept, ..joint })
}

/// `B` that minimises `‖Y - XB‖² + penalty ‖B‖²`, columns as they are: by the normal equations of whichever is fewer, inputs or samples. `None` unless the penalty is above 0 and all is finite.
///
/// ```
/// use gibbsite::{gaussian::baselines::ridge, linalg::Dense, par::Par};
/// let x = Dense::from_fn(2, 1, |i, _| 1.0 + i as f64);
/// let b = ridge(Par::Seq, &x, &x, 5.0).unwrap();
/// assert!((b.get(0, 0) - 0.5).abs() < 1e-15); // 5/(5 + 5)
/// ```
pub fn ridge(par: Par, x: &Dense, y: &Dense, penalty: f64) -> Option<Dense> {
    if !(penalty > 0.0 && penalty.is_finite()) || x.rows() != y.rows() {
        return None;
    }
    par.run(|par| {
        let add = |mut gram: Dense| {
            (0..gram.cols()).for_each(|i| gram.add(i, i, penalty));
            Cholesky::new(&gram)
        };
        if x.cols() <= x.rows() {
            let mut b = transposed_product(par, x, y);
            add(transposed_product(par, x, x))?.solve(&mut b);
            return Some(b);
        }
        let turned = x.transposed();
        let mut dual = y.clone();
        add(product(par, x, &turned))?.solve(&mut dual);
        Some(product(par, &turned, &dual))
    })
}
