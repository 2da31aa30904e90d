//! The N best labellings.

use super::{Chain, recentre};
use crate::arena::{Arena, rows, rows_mut};
use crate::error::{InferError, need};
use crate::math::{Real, argmax};
use crate::wide::finite;

impl<T: Real> Chain<'_, T> {
    /// Entries of memory that [`n_best`](Self::n_best) needs.
    pub const fn n_best_len(labels: usize, n: usize) -> usize {
        labels.saturating_mul(n.saturating_mul(2).saturating_add(1))
    }

    /// `u32` back pointers that [`n_best`](Self::n_best) needs.
    pub const fn n_best_back_len(positions: usize, labels: usize, n: usize) -> usize {
        let lists = positions.saturating_sub(1).saturating_mul(labels).saturating_mul(n);
        lists.saturating_add(labels).saturating_add(n)
    }

    /// The `n` best labellings, best first: one after the other into `paths` (`n·T`), their scores into
    /// `scores` (`n`); returns how many there are, fewer than `n` if only so many are possible.
    /// Labellings of score `-inf` are not given. All are distinct; equals come in a fixed order.
    ///
    /// Parallel list Viterbi (Seshadri & Sundberg 1994): each label of each position keeps its `n` best
    /// beginnings, merged from the sorted lists of the labels before. `O(T·L²·n)` time.
    ///
    /// ```
    /// use gibbsite_core::infer::chain::{Chain, Transitions};
    /// let chain = Chain::new(2, &[0.5, 0.0, 0.0, 0.25], Transitions::Shared(&[1.0, 0.0, 0.0, 1.0]))?;
    /// let (mut paths, mut scores) = ([0; 6], [0.0f64; 3]);
    /// let mut back = [0; Chain::<f64>::n_best_back_len(2, 2, 3)];
    /// let mut memory = [0.0; Chain::<f64>::n_best_len(2, 3)];
    /// assert_eq!(chain.n_best(3, &mut paths, &mut scores, &mut back, &mut memory)?, 3);
    /// assert_eq!((paths, scores), ([0, 0, 1, 1, 0, 1], [1.5, 1.25, 0.75]));
    /// # Ok::<(), gibbsite_core::error::InferError>(())
    /// ```
    pub fn n_best(
        &self,
        n: usize,
        paths: &mut [u32],
        scores: &mut [T],
        back: &mut [u32],
        memory: &mut [T],
    ) -> Result<usize, InferError> {
        let (labels, positions) = (self.labels, self.positions);
        need(n.saturating_mul(positions), paths.len())?;
        need(n, scores.len())?;
        need(Self::n_best_back_len(positions, labels, n), back.len())?;
        let lists = labels.checked_mul(n).filter(|&l| l <= u32::MAX as usize).ok_or(InferError::Shape)?;
        let scores = scores.get_mut(..n).unwrap_or(&mut []);
        let mut rest = Arena::new(memory, Self::n_best_len(labels, n))?;
        let (mut list, mut next) = (rest.take(lists)?, rest.take(lists)?);
        let heads = rest.take(labels)?;
        let mut rest = Arena::new(back, Self::n_best_back_len(positions, labels, n))?;
        let (taken, ends) = (rest.take(labels)?, rest.take(n)?);
        let back = rest.take(positions.saturating_sub(1).saturating_mul(lists))?;
        let Some(best) = scores.first_mut() else { return Ok(0) };
        let mut each = self.rows();
        let Some(first) = each.next() else {
            *best = T::zero();
            return Ok(1);
        };

        list.fill(T::NEG_INFINITY);
        for (list, &s) in rows_mut(list, n).zip(first) {
            list.iter_mut().take(1).for_each(|l| *l = s);
        }
        recentre(list)?;
        for (t, (row, back)) in each.zip(rows_mut(back, lists)).enumerate() {
            let table = self.transitions.table(t, self.cells());
            let into = rows_mut(next, n).zip(rows_mut(back, n));
            for (to, ((into, back), &s)) in into.zip(row).enumerate() {
                let entry = |from: usize| table.get(from * labels + to).map_or(T::NEG_INFINITY, |&a| a + s);
                merge(list, entry, into, back, heads, taken);
            }
            recentre(next)?;
            core::mem::swap(&mut list, &mut next);
        }
        merge(list, |_| T::zero(), scores, ends, heads, taken);

        let found = scores.iter().take_while(|&&s| T::NEG_INFINITY < s).count();
        let each = scores.iter_mut().zip(&*ends).zip(rows_mut(paths, positions));
        for ((score, &end), path) in each.take(found) {
            let mut entry = end;
            let label = |entry: u32| entry.checked_div(n as u32).unwrap_or(0);
            let Some((last, before)) = path.split_last_mut() else { continue };
            *last = label(entry);
            let mut back = rows(back, lists);
            for place in before.iter_mut().rev() {
                entry = back.next_back().and_then(|b| b.get(entry as usize)).copied().unwrap_or(0);
                *place = label(entry);
            }
            // Summed anew: a score far below others has lost digits to the recentring.
            *score = finite(self.score(path)?)?;
        }
        for i in 1..found {
            for j in (1..=i).rev() {
                if !swap_if_rising(scores, paths, j, positions) {
                    break;
                }
            }
        }
        Ok(found)
    }
}

/// Swaps the labellings `j - 1` and `j` if they are in the wrong order; whether it did.
fn swap_if_rising<T: Real>(scores: &mut [T], paths: &mut [u32], j: usize, positions: usize) -> bool {
    match scores.get_mut(j.saturating_sub(1)..=j) {
        Some([above, below]) if *above < *below => {
            core::mem::swap(above, below);
            let mut rows = rows_mut(paths, positions).skip(j.saturating_sub(1));
            if let (Some(a), Some(b)) = (rows.next(), rows.next()) {
                a.iter_mut().zip(b).for_each(|(a, b)| core::mem::swap(a, b));
            }
            true
        }
        _ => false,
    }
}

/// The best entries of `L` falling lists, list `i` raised by `raise(i)`, into `out`; `from` says which
/// entries those were. `heads` and `taken` hold the first entry not yet taken of each list.
fn merge<T: Real>(
    lists: &[T],
    raise: impl Fn(usize) -> T,
    out: &mut [T],
    from: &mut [u32],
    heads: &mut [T],
    taken: &mut [u32],
) {
    let n = out.len();
    taken.fill(0);
    for (i, (head, list)) in heads.iter_mut().zip(rows(lists, n)).enumerate() {
        *head = list.first().map_or(T::NEG_INFINITY, |&v| v + raise(i));
    }
    for (out, from) in out.iter_mut().zip(from) {
        let i = argmax(heads);
        let (Some(head), Some(taken)) = (heads.get_mut(i), taken.get_mut(i)) else { return };
        *out = *head;
        *from = (i * n) as u32 + *taken;
        if *head == T::NEG_INFINITY {
            continue;
        }
        *taken += 1;
        let left = (*taken as usize) < n;
        *head = match lists.get(i * n + *taken as usize) {
            Some(&v) if left => v + raise(i),
            _ => T::NEG_INFINITY,
        };
    }
}
