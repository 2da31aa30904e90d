//! The best labelling.

use super::{Chain, recentre};
use crate::arena::{Arena, rows, rows_mut};
use crate::error::{InferError, need};
use crate::math::{Real, argmax};
use crate::wide::finite;

impl<T: Real> Chain<'_, T> {
    /// Entries of memory that [`viterbi`](Self::viterbi) needs.
    pub const fn viterbi_len(labels: usize) -> usize {
        labels.saturating_mul(3)
    }

    /// Back pointers that [`viterbi`](Self::viterbi) needs.
    pub const fn viterbi_back_len(positions: usize, labels: usize) -> usize {
        positions.saturating_sub(1).saturating_mul(labels)
    }

    /// The best labelling (into `path`) and its score. Of equally good ones, the one with the lowest
    /// labels, compared from the last position to the first.
    ///
    /// `δ_t(j) = s_t(j) + max_i δ_{t-1}(i) + A(i,j)`, Viterbi 1967; ours subtracts `max δ_t` at each
    /// position, so that a million positions in `f32` still tell close labellings apart. Back pointers
    /// may be `u8` or `u16` where the labels fit, [`InferError::Shape`] if they do not. `O(T·L²)` time.
    ///
    /// ```
    /// use gibbsite_core::infer::chain::{Chain, Transitions};
    /// let chain = Chain::new(2, &[0.5, 0.0, 0.0, 0.25], Transitions::Shared(&[1.0, 0.0, 0.0, 1.0]))?;
    /// let (mut path, mut back, mut memory) = ([0; 2], [0u8; 2], [0.0f32; 6]);
    /// assert_eq!(chain.viterbi(&mut path, &mut back, &mut memory)?, 1.5);
    /// assert_eq!(path, [0, 0]);
    /// # Ok::<(), gibbsite_core::error::InferError>(())
    /// ```
    pub fn viterbi<B: Copy + Into<u32> + TryFrom<u32>>(
        &self,
        path: &mut [u32],
        back: &mut [B],
        memory: &mut [T],
    ) -> Result<T, InferError> {
        let (labels, cells) = (self.labels, self.cells());
        need(self.positions, path.len())?;
        need(Self::viterbi_back_len(self.positions, labels), back.len())?;
        let mut rest = Arena::new(memory, Self::viterbi_len(labels))?;
        let (mut delta, mut next) = (rest.take(labels)?, rest.take(labels)?);
        let origin = rest.take(labels)?;
        // `origin` holds labels as T; beyond 2^24 they would not be exact in f32.
        if B::try_from(labels.saturating_sub(1) as u32).is_err() || labels > 1 << 24 {
            return Err(InferError::Shape);
        }
        let mut each = self.rows();
        let Some(first) = each.next() else { return Ok(T::zero()) };
        delta.iter_mut().zip(first).for_each(|(d, &s)| *d = s);
        recentre(delta)?;
        for (t, (scores, back)) in each.zip(rows_mut(back, labels)).enumerate() {
            let table = self.transitions.table(t, cells);
            best_of(delta, table, next, origin);
            for ((pointer, &from), (best, &s)) in
                back.iter_mut().zip(&*origin).zip(next.iter_mut().zip(scores))
            {
                *best += s;
                let from = from.to_u32().and_then(|l| B::try_from(l).ok());
                *pointer = from.ok_or(InferError::Shape)?;
            }
            recentre(next)?;
            core::mem::swap(&mut delta, &mut next);
        }
        let path = path.get_mut(..self.positions).unwrap_or(&mut []);
        let mut label = argmax(delta) as u32;
        let Some((last, before)) = path.split_last_mut() else { return Ok(T::zero()) };
        *last = label;
        let mut back = rows(back.get(..before.len() * labels).unwrap_or(&[]), labels);
        for place in before.iter_mut().rev() {
            label = back.next_back().and_then(|b| b.get(label as usize)).map_or(0, |&b| b.into());
            *place = label;
        }
        finite(self.score(path)?)
    }
}

/// `best(j) = max_i delta(i) + table(i, j)`, and `from(j)` the first `i` that attains it, as a number of
/// the width of the scores, so that this vectorises.
fn best_of<T: Real>(delta: &[T], table: &[T], best: &mut [T], from: &mut [T]) {
    best.fill(T::NEG_INFINITY);
    from.fill(T::zero());
    let mut label = T::zero();
    for (&d, row) in delta.iter().zip(rows(table, best.len())) {
        for ((best, from), &a) in best.iter_mut().zip(from.iter_mut()).zip(row) {
            // Arithmetic, because a choice here would be compiled to a branch that nothing predicts.
            let better = if *best < d + a { T::one() } else { T::zero() };
            *from += better * (label - *from);
            *best = best.larger(d + a);
        }
        label += T::one();
    }
}
