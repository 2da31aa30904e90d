//! Local conditional regressions `P(Y_i | blanket)`: value, gradient and curvature from scores.
//!
//! A variable's score for label `x` is the sum of the log-potentials that mention it, at `x` and at the labels of its Markov
//! blanket; a block of variables is the same with joint configurations in place of labels. Then
//!
//! ```text
//! P(x | blanket) = e^{s_x} / Σ_z e^{s_z}
//! value     -log P(y | blanket)  = log Σ_z e^{s_z} - s_y
//! gradient  ∂/∂s_x               = P(x) - [x = y]
//! curvature ∂²/∂s²               = diag P - P Pᵀ
//! ```
//!
//! (Thesis eq. 2.4, Besag 1975.) These are the parts of which pseudolikelihood is made, and on a device the parts of which
//! online learning is made. Nothing is allocated and no step can fail after the input is checked. Exponentials are the
//! branchless ones of [`lanes`](crate::lanes), so that [`conditionals`] does one variable per vector lane.

use crate::error::InferError;
use crate::lanes::Lane;
use crate::math::{Real, maximum};

/// Turns scores into probabilities, in place, and returns `log Σ_x e^{s_x}`.
///
/// `-inf` forbids a label. [`InferError::Shape`] without labels, [`InferError::BadValue`] for NaN or `+inf`,
/// [`InferError::ZeroProbability`] if all labels are forbidden; the scores are then as they were.
///
/// ```
/// let mut scores = [0.0f64, 0.0, f64::NEG_INFINITY];
/// let log_z = gibbsite_core::local::conditional(&mut scores)?;
/// assert_eq!(scores, [0.5, 0.5, 0.0]);
/// assert!((log_z - 2f64.ln()).abs() < 1e-15);
/// # Ok::<(), gibbsite_core::error::InferError>(())
/// ```
#[inline]
pub fn conditional<T: Lane>(scores: &mut [T]) -> Result<T, InferError> {
    if scores.is_empty() {
        return Err(InferError::Shape);
    }
    if !scores.iter().all(|s| s.is_log_potential()) {
        return Err(InferError::BadValue);
    }
    let top = maximum(scores);
    if top == T::NEG_INFINITY {
        return Err(InferError::ZeroProbability);
    }
    let mut sum = T::zero();
    for s in scores.iter_mut() {
        *s = (*s - top).exp_lane();
    }
    for &s in scores.iter() {
        sum += s;
    }
    for s in scores.iter_mut() {
        *s /= sum;
    }
    Ok(top + sum.ln_lane())
}

/// `-log P(label | blanket)`; the scores become its gradient with respect to them, `P - e_label`.
///
/// Errors as in [`conditional`]; also [`InferError::Shape`] if there is no such label, and [`InferError::ZeroProbability`] if it is forbidden.
///
/// ```
/// let mut scores = [0.0f64, 3f64.ln()];
/// let value = gibbsite_core::local::value_gradient(&mut scores, 1)?;
/// assert!((value - (4.0f64 / 3.0).ln()).abs() < 1e-15);
/// assert!((scores[0] - 0.25).abs() < 1e-15 && (scores[1] + 0.25).abs() < 1e-15);
/// # Ok::<(), gibbsite_core::error::InferError>(())
/// ```
#[inline]
pub fn value_gradient<T: Lane>(scores: &mut [T], label: usize) -> Result<T, InferError> {
    let score = *scores.get(label).ok_or(InferError::Shape)?;
    if score == T::NEG_INFINITY {
        return Err(InferError::ZeroProbability);
    }
    let log_z = conditional(scores)?;
    if let Some(p) = scores.get_mut(label) {
        *p -= T::one();
    }
    Ok(log_z - score)
}

/// `dᵀ (diag P - P Pᵀ) d`: the second derivative along `direction` in the scores, which is the variance of `direction`'s entry.
///
/// Computed from deviations, so that it is never negative and does not cancel.
///
/// ```
/// assert_eq!(gibbsite_core::local::curvature(&[0.5, 0.5], &[1001.0, 999.0]), 1.0);
/// ```
#[inline]
pub fn curvature<T: Real>(probabilities: &[T], direction: &[T]) -> T {
    let mean = expectation(probabilities, direction);
    probabilities.iter().zip(direction).fold(T::zero(), |sum, (&p, &d)| sum + p * (d - mean) * (d - mean))
}

/// `out = (diag P - P Pᵀ) d`, a product with the Hessian in the scores.
///
/// ```
/// let mut out = [0.0; 2];
/// gibbsite_core::local::curvature_times(&[0.5, 0.5], &[3.0, 1.0], &mut out);
/// assert_eq!(out, [0.5, -0.5]);
/// ```
#[inline]
pub fn curvature_times<T: Real>(probabilities: &[T], direction: &[T], out: &mut [T]) {
    let mean = expectation(probabilities, direction);
    for ((out, &p), &d) in out.iter_mut().zip(probabilities).zip(direction) {
        *out = p * (d - mean);
    }
}

/// `Σ_x P(x) d_x`.
#[inline]
fn expectation<T: Real>(probabilities: &[T], direction: &[T]) -> T {
    probabilities.iter().zip(direction).fold(T::zero(), |sum, (&p, &d)| sum + p * d)
}

/// [`conditional`] for `N` variables of the same arity at a time: `scores[x][i]` is variable `i`'s score for label `x`.
/// Probabilities take the scores' place; `log_z[i]` is `log Σ_x e^{s_x}`.
///
/// A variable whose scores hold NaN or `+inf`, or only `-inf`, has a `log_z` that is not finite, and probabilities that mean nothing:
/// one test of the sum of all `log_z` finds it. The loops run along the lanes and vectorise.
///
/// ```
/// let mut scores = [[0.0, 1e4], [3f64.ln(), 1e4]];
/// let mut log_z = [0.0; 2];
/// gibbsite_core::local::conditionals(&mut scores, &mut log_z);
/// assert!((log_z[0] - 4f64.ln()).abs() < 1e-15);
/// assert!((scores[0][0] - 0.25).abs() < 1e-15);
/// assert_eq!(scores[1][1], 0.5);
/// ```
#[inline(always)]
pub fn conditionals<T: Lane, const N: usize>(scores: &mut [[T; N]], log_z: &mut [T; N]) {
    let mut top = [T::NEG_INFINITY; N];
    for row in scores.iter() {
        for (top, &s) in top.iter_mut().zip(row) {
            *top = if *top < s { s } else { *top };
        }
    }
    let mut sum = [T::zero(); N];
    for row in scores.iter_mut() {
        for (s, &top) in row.iter_mut().zip(&top) {
            *s = (*s - top).exp_lane();
        }
        for (sum, &s) in sum.iter_mut().zip(row.iter()) {
            *sum += s;
        }
    }
    for row in scores.iter_mut() {
        for (s, &sum) in row.iter_mut().zip(&sum) {
            *s /= sum;
        }
    }
    for ((out, &top), &sum) in log_z.iter_mut().zip(&top).zip(&sum) {
        // A sum of numbers up to 1 with at least one of them 1. `ln_lane` does not pass NaN on: the product does.
        *out = top + sum.ln_lane() + T::zero() * sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_scores_are_refused_or_seen() {
        let nan = f64::NAN;
        assert_eq!(conditional::<f64>(&mut []), Err(InferError::Shape));
        assert_eq!(conditional(&mut [0.0, nan]), Err(InferError::BadValue));
        assert_eq!(conditional(&mut [f64::INFINITY]), Err(InferError::BadValue));
        assert_eq!(conditional(&mut [f64::NEG_INFINITY]), Err(InferError::ZeroProbability));
        assert_eq!(value_gradient(&mut [0.0f32], 1), Err(InferError::Shape));
        assert_eq!(value_gradient(&mut [0.0, f64::NEG_INFINITY], 1), Err(InferError::ZeroProbability));
        let mut scores = [[0.0, nan, f64::INFINITY, f64::NEG_INFINITY], [nan, 0.0, 0.0, f64::NEG_INFINITY]];
        let mut log_z = [0.0; 4];
        conditionals(&mut scores, &mut log_z);
        assert!(log_z.iter().all(|z: &f64| !z.is_finite()), "{log_z:?}");
    }

    #[test]
    fn lanes_and_single_variables_agree() {
        let mut rows = [[0.0f32; 3]; 4];
        for (x, row) in rows.iter_mut().enumerate() {
            for (i, s) in row.iter_mut().enumerate() {
                *s = ((x * 7 + i * 5) % 11) as f32 * 9.0 - 30.0;
            }
        }
        let (before, mut log_z) = (rows, [0.0; 3]);
        conditionals(&mut rows, &mut log_z);
        for i in 0..3 {
            let mut scores = before.map(|row| row.get(i).copied().unwrap_or(0.0));
            assert_eq!(conditional(&mut scores).ok(), log_z.get(i).copied());
            assert_eq!(scores, rows.map(|row| row.get(i).copied().unwrap_or(0.0)));
        }
    }
}
