//! From data and parameters as given to a [`Problem`] that can be solved: checked once, labels mapped, penalty weights derived.

use super::fit::{Lambda, RegressError, RegressParams, Task};
use super::problem::Problem;
use crate::data::matrix::Matrix;
use gibbsite_core::loss::Loss;
use gibbsite_core::math::Real;

/// What a [`Problem`] borrows.
#[derive(Clone, Debug)]
pub(super) struct Prepared {
    target: Vec<f64>,
    l1_weights: Option<Vec<f64>>,
    l2_weights: Option<Vec<f64>>,
}

/// Weight of a column that must stay out: constant, where scaling to unit variance was asked for.
const NEVER: f64 = 1e100;

impl Prepared {
    /// Checks everything.
    ///
    /// # Errors
    /// The first thing that makes no sense.
    pub(super) fn new<V: Real>(
        matrix: &Matrix<V>,
        target: &[f64],
        params: &RegressParams,
    ) -> Result<Self, RegressError> {
        let (rows, columns) = (matrix.rows(), matrix.columns());
        if rows != target.len() {
            return Err(RegressError::Lengths { rows, targets: target.len() });
        }
        if rows == 0 {
            return Err(RegressError::Empty);
        }
        if let Some(row) = target.iter().position(|y| !y.is_finite()) {
            return Err(RegressError::Target { row, value: target[row] });
        }
        let lambda = match params.lambda {
            Lambda::Value(value) => ("lambda", value),
            Lambda::Ratio(value) => ("lambda ratio", value),
        };
        for (name, value) in [lambda, ("l2", params.l2), ("tolerance", params.tolerance)] {
            if !(value >= 0.0 && value.is_finite()) {
                return Err(RegressError::Parameter { name, value });
            }
        }
        if let Some(weights) = &params.l1_weights {
            if weights.len() != columns {
                return Err(RegressError::Weights { columns, weights: weights.len() });
            }
            if let Some(&value) = weights.iter().find(|w| !(**w >= 0.0 && w.is_finite())) {
                return Err(RegressError::Parameter { name: "penalty weight", value });
            }
        }
        let target = match params.task {
            Task::Lasso => target.to_vec(),
            Task::Logistic => signs(target)?,
        };
        let mut l1_weights = params.l1_weights.clone();
        let mut l2_weights = None;
        if params.standardize {
            let scale = scales(matrix, params.intercept);
            let given = params.l1_weights.as_deref();
            l1_weights = Some(
                (0..columns)
                    .map(|j| if scale[j] > 0.0 { scale[j] * given.map_or(1.0, |w| w[j]) } else { NEVER })
                    .collect(),
            );
            l2_weights = Some(scale.iter().map(|s| s * s).collect());
        }
        Ok(Self { target, l1_weights, l2_weights })
    }

    /// The problem, with `λ` still to be set.
    pub(super) fn problem<'a, L: Loss, V: Real>(
        &'a self,
        matrix: &'a Matrix<V>,
        loss: L,
        params: &RegressParams,
    ) -> Problem<'a, L, V> {
        Problem {
            l2: params.l2,
            l1_weights: self.l1_weights.as_deref(),
            l2_weights: self.l2_weights.as_deref(),
            positive: params.positive,
            intercept: params.intercept,
            ..Problem::new(matrix, &self.target, loss, 0.0)
        }
    }
}

/// The two labels as -1 and +1, the larger as +1.
fn signs(target: &[f64]) -> Result<Vec<f64>, RegressError> {
    let mut found: Vec<f64> = Vec::new();
    for &y in target {
        if let Err(at) = found.binary_search_by(|f| f.total_cmp(&(y + 0.0))) {
            found.insert(at, y + 0.0);
            if found.len() > 1000 {
                break;
            }
        }
    }
    match found[..] {
        [_, high] => Ok(target.iter().map(|&y| if y == high { 1.0 } else { -1.0 }).collect()),
        _ => Err(RegressError::Labels { found }),
    }
}

/// Standard deviation of each column; without intercept, root of the mean square, since nothing else could take up a mean.
fn scales<V: Real>(matrix: &Matrix<V>, centred: bool) -> Vec<f64> {
    let n = matrix.rows() as f64;
    (0..matrix.columns())
        .map(|j| {
            let column = matrix.column(j);
            let mean = if centred { column.sum::<f64>() / n } else { 0.0 };
            // Around the mean, not as a difference of squares: a constant column must give exactly 0.
            let stored: f64 = column.iter::<f64>().map(|(_, a)| (a - mean) * (a - mean)).sum();
            let absent = (matrix.rows() - column.len()) as f64 * mean * mean;
            let variance = (stored + absent) / n;
            if variance <= 1e-28 * mean * mean { 0.0 } else { variance.sqrt() }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_two_or_listed() {
        assert_eq!(signs(&[2.0, 0.0, 2.0]).unwrap(), [1.0, -1.0, 1.0]);
        assert_eq!(signs(&[-0.0, 0.0, 1.0]).unwrap(), [-1.0, -1.0, 1.0]);
        assert_eq!(signs(&[3.0, 1.0, 2.0]), Err(RegressError::Labels { found: vec![1.0, 2.0, 3.0] }));
        assert_eq!(signs(&[1.0]), Err(RegressError::Labels { found: vec![1.0] }));
    }

    #[test]
    fn scales_are_deviations() {
        let m = Matrix::<f64>::from_rows(
            3,
            &[&[(0, 5.0), (1, 1.0)], &[(0, 5.0)], &[(0, 5.0)], &[(0, 5.0), (2, 2.0)]],
        );
        assert_eq!(scales(&m, true), [0.0, (3.0f64 / 16.0).sqrt(), (12.0f64 / 16.0).sqrt()]);
        assert_eq!(scales(&m, false), [5.0, 0.5, 1.0]);
    }
}
