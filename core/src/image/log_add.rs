//! Marginals of chains in fixed point: sums of exponentials by a table.

use super::chain::ChainView;
use super::scalar::{FLOOR, NONE, THRESHOLD, Weight};
use crate::error::{InferError, need};
use crate::log_add::LogAdd;

/// The sum of what can be.
fn sum_of(table: &LogAdd<'_>, terms: impl Iterator<Item = i32>) -> i32 {
    let mut sum = NONE;
    for x in terms.filter(|&x| THRESHOLD <= x) {
        sum = if sum == NONE { x } else { table.add(sum, x) };
    }
    sum
}

/// Entries of memory that [`ChainView::log_marginals`] needs.
pub const fn marginals_len(labels: usize) -> usize {
    labels
}

/// A sum of what can be and what is added to it; what cannot be stays so.
#[inline]
fn plus(a: i32, b: i32) -> i32 {
    if a < THRESHOLD { NONE } else { a.wrapping_add(b) }
}

impl<W: Weight<Score = i32>> ChainView<'_, W> {
    /// `log P(y_t = j)` in units, item by item, in the place of the state scores. Probabilities are
    /// [`to_f32`](ChainView::to_f32) of it, exponentiated. Only additions, comparisons and a table; memory: [`marginals_len`].
    ///
    /// Forward: `α_t(j) = s_t(j) + log Σ_i e^{α_{t-1}(i) + A(i,j)}`. Back, without the state scores that `α` has replaced:
    /// `γ_t(i) = α_t(i) + log Σ_j e^{A(i,j) + γ_{t+1}(j) - p(j)}`, `p(j) = log Σ_i e^{α_t(i) + A(i,j)}`. Each addition is off by at
    /// most `e` of [`LogAdd`]; a sum over
    /// `L` labels by `(L-1)·e`, as log-sum-exp does not enlarge errors of its terms. So `α` gains at most `(L-1)·e` an item and `γ` at
    /// most three times that on the way back.
    ///
    /// # Errors
    /// [`InferError::Shape`] if the image has no table or the rows are no rows, [`InferError::Memory`],
    /// [`InferError::ZeroProbability`].
    pub fn log_marginals(&self, rows: &mut [i32], memory: &mut [i32]) -> Result<(), InferError> {
        let labels = self.labels();
        let table = self.log_add().ok_or(InferError::Shape)?;
        need(marginals_len(labels), memory.len())?;
        let memory = memory.get_mut(..labels).unwrap_or(&mut []);
        if rows.len().checked_rem(labels) != Some(0) {
            return Err(InferError::Shape);
        }
        W::check_row(rows)?;
        let mut ignored = W::Total::default();
        let (mut before, mut rest) = rows.split_at_mut_checked(labels).unwrap_or_default();
        if !before.is_empty() {
            W::settle(before, &mut ignored)?;
        }
        while let Some((row, after)) = rest.split_at_mut_checked(labels).filter(|r| !r.0.is_empty()) {
            for (to, score) in row.iter_mut().enumerate() {
                let all = before.iter().enumerate();
                let sum = sum_of(&table, all.map(|(from, &a)| plus(a, self.units(from, to))));
                *score = plus(sum, *score);
            }
            W::settle(row, &mut ignored)?;
            (before, rest) = (row, after);
        }
        // Back, from the end.
        let at = rows.len().saturating_sub(labels);
        let Some((mut ahead, last)) = rows.split_at_mut_checked(at) else { return Ok(()) };
        let sum = sum_of(&table, last.iter().copied());
        last.iter_mut().for_each(|v| *v = plus(*v, sum.wrapping_neg()));
        let mut gamma: &[i32] = last;
        while let Some((before, alpha)) =
            ahead.len().checked_sub(labels).and_then(|at| ahead.split_at_mut_checked(at))
        {
            for ((to, g), &p) in memory.iter_mut().enumerate().zip(gamma) {
                let all = alpha.iter().enumerate();
                let sum = sum_of(&table, all.map(|(from, &a)| plus(a, self.units(from, to))));
                *g = if sum < THRESHOLD { NONE } else { plus(p, sum.wrapping_neg()) };
            }
            for (from, a) in alpha.iter_mut().enumerate() {
                let all = memory.iter().enumerate();
                let sum = sum_of(&table, all.map(|(to, &g)| plus(g, self.units(from, to))));
                let log = plus(*a, sum);
                *a = if sum < THRESHOLD || log < THRESHOLD { NONE } else { log.clamp(FLOOR, 0) };
            }
            gamma = alpha;
            ahead = before;
        }
        Ok(())
    }
}
