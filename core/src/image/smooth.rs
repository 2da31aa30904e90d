//! Marginals in single precision, in the place of the scores: for devices, a third of the code and half of the memory of
//! [`Chain::forward_backward`](crate::infer::chain::Chain::forward_backward), which has no limits on its scores.

use super::ChainView;
use crate::arena::{rows, rows_mut};
use crate::error::{InferError, need};
use crate::lanes::Lane;
use crate::math::maximum;
use crate::score::Score;

/// Entries of memory that [`ChainView::marginals`] needs.
pub const fn smooth_len(labels: usize) -> usize {
    labels.saturating_mul(labels).saturating_add(labels)
}

/// Logarithms of all factors lie between these: the product of three, and a sum of 256 of them, is then a normal number.
const HIGH: f32 = 26.0;
const LOW: f32 = -29.0;
/// `e^HIGH` and `e^LOW`.
const LARGEST: f32 = 1.957_296e11;
const LEAST: f32 = 2.543_665_6e-13;

/// `e^{x - top}` times [`LARGEST`], at least [`LEAST`] unless forbidden.
#[inline]
fn exponential(x: f32, top: f32) -> f32 {
    if x == f32::NEG_INFINITY { 0.0 } else { (x - top + HIGH).larger(LOW).exp_lane() }
}

#[inline]
fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).fold(0.0, |sum, (a, b)| sum + a * b)
}

/// Brings the largest entry of `α` to [`LARGEST`], and keeps what can be above [`LEAST`].
fn settle(row: &mut [f32]) -> Result<(), InferError> {
    let top = maximum(row);
    if top <= 0.0 {
        return Err(InferError::ZeroProbability);
    }
    let factor = LARGEST / top;
    row.iter_mut().filter(|a| **a > 0.0).for_each(|a| *a = (*a * factor).larger(LEAST));
    Ok(())
}

/// Divides probabilities by their sum.
fn normalise(row: &mut [f32]) {
    let factor = 1.0 / row.iter().sum::<f32>();
    row.iter_mut().for_each(|p| *p *= factor);
}

impl ChainView<'_, f32> {
    /// `P(y_t = j)`, item by item, in the place of the state scores. Memory: [`smooth_len`].
    ///
    /// Forward: `α_t(j) = e^{s_t(j)} p_t(j)`, `p_t(j) = Σ_i α_{t-1}(i) e^{A(i,j)}`, each row divided by its largest entry. Back, without the
    /// state scores that `α` has replaced: `γ_t(i) = α_t(i) Σ_j e^{A(i,j)} γ_{t+1}(j) / p_{t+1}(j)`. `T·L + L²` exponentials
    /// ([`Lane::exp_lane`]: the same bits everywhere), `3·T·L²` products.
    ///
    /// Scores of an item, transitions, and `α` count as at most 55 (in natural logarithms) behind the best of their row or table, so that nothing that is
    /// possible underflows. Where the scores of an item and the transitions range over at most 55 together and nothing is forbidden, that
    /// changes nothing: a label is at most that far behind, because it can be come to from the best one before.
    ///
    /// # Errors
    /// [`InferError::Shape`] if the rows are no rows, [`InferError::Memory`], [`InferError::BadValue`] for scores that are NaN or `+inf`: nothing
    /// is then written. [`InferError::ZeroProbability`]: the rows then hold nothing of use.
    pub fn marginals(&self, scores: &mut [f32], memory: &mut [f32]) -> Result<(), InferError> {
        let labels = self.labels();
        if scores.len().checked_rem(labels) != Some(0) {
            return Err(InferError::Shape);
        }
        need(smooth_len(labels), memory.len())?;
        if !scores.iter().all(|s| s.is_log_potential()) {
            return Err(InferError::BadValue);
        }
        let (table, rest) = memory.split_at_mut_checked(labels.saturating_mul(labels)).unwrap_or_default();
        self.exponentials(table);
        let (mut before, mut rows_left) = (&[] as &[f32], &mut *scores);
        while let Some((row, after)) = rows_left.split_at_mut_checked(labels).filter(|r| !r.0.is_empty()) {
            let top = maximum(row);
            row.iter_mut().for_each(|s| *s = exponential(*s, top));
            if !before.is_empty() {
                row.iter_mut().zip(rows(table, labels)).for_each(|(a, to)| *a *= dot(before, to));
            }
            settle(row)?;
            (before, rows_left) = (row, after);
        }
        smooth(scores, table, rest.get_mut(..labels).unwrap_or(&mut []))
    }

    /// `e^{A(i,j)}`, divided by the largest; row `j` has the transitions to `j`.
    #[inline(never)]
    fn exponentials(&self, table: &mut [f32]) {
        let labels = self.labels();
        let each = || self.rows().flat_map(move |row| row.iter().take(labels).map(|&w| f32::from_bits(w)));
        let top = each().fold(f32::NEG_INFINITY, |top, a| top.larger(a));
        table.iter_mut().zip(each()).for_each(|(e, a)| *e = exponential(a, top));
    }
}

/// The way back: `γ` in the place of `α`.
#[inline(never)]
fn smooth(alphas: &mut [f32], table: &[f32], sums: &mut [f32]) -> Result<(), InferError> {
    let labels = sums.len();
    let mut each = rows_mut(alphas, labels).rev();
    let Some(last) = each.next() else { return Ok(()) };
    normalise(last);
    let mut gamma: &[f32] = last;
    for alpha in each {
        sums.fill(0.0);
        for (to, &g) in rows(table, labels).zip(gamma) {
            if g > 0.0 {
                // Above 0, as γ is: both have passed through the same α.
                let share = g / dot(alpha, to);
                sums.iter_mut().zip(to).for_each(|(sum, e)| *sum += share * e);
            }
        }
        // What is impossible stays so, whatever the sum.
        alpha.iter_mut().zip(&*sums).filter(|(a, _)| **a > 0.0).for_each(|(a, sum)| *a *= sum);
        normalise(alpha);
        gamma = alpha;
    }
    Ok(())
}
