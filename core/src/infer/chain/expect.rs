//! Expected counts of many chains with the same transitions: what learning asks for, again and again.

use crate::arena::{Arena, rows, rows_mut};
use crate::error::InferError;
use crate::lanes::Lane;
use crate::math::maximum;
use crate::wide::{Compensated, finite};

/// Labels that are worked on at a time. Rows are padded to a multiple of it.
const WIDTH: usize = 8;
/// Rows of expected transitions that are summed at a time.
const DEEP: usize = 4;
/// Gaps whose pairs are summed before they are added to those of others.
const GAPS: usize = 256;

/// Transitions that were exponentiated once, for any number of chains.
///
/// The recurrences are those of [`Chain::forward_backward`](super::Chain::forward_backward). What is different: rows have a fixed padding, so that every loop is over
/// whole vectors; and since `Σ_t P(y_t = i, y_{t+1} = j) = e^{A(i,j)} Σ_t a_t(i) w_{t+1}(j)`, pairs of all gaps of all chains are summed as products of rows,
/// and multiplied by `e^A` once at the end ([`transitions`](Self::transitions)).
///
/// *Range.* Let all `e^{A - max A}` be at least `f = e^(-LOG_RANGE/4)`; [`new`](Self::new) checks it. From any label every other one is reached at a cost of at most
/// `f`, so a labelling that is `e^-LOG_RANGE` times as likely as another one up to here can make up for no more than `f`, and what vanishes in plain numbers scaled
/// to a largest entry of 1 never matters: `log Z` lacks less than `T·L·e^(-LOG_RANGE/2)` of itself. That holds whatever the scores of single positions are, also
/// for forbidden labels.
///
/// ```
/// use gibbsite_core::infer::chain::Shared;
/// let mut memory = [0.0; Shared::<f64>::memory_len(2)];
/// let shared = Shared::new(2, &[1.0, 0.0, 0.0, 1.0], &mut memory)?.expect("a small range");
/// // Two positions; rows have room for `Shared::stride(2)` labels.
/// let mut rows = [0.0; 2 * Shared::<f64>::stride(2)];
/// rows[0] = 0.5;
/// let mut pairs = [0.0; Shared::<f64>::pairs_len(2)];
/// let log_z = shared.expect(&mut rows, &mut pairs, &mut [0.0; Shared::<f64>::expect_len(2, 2)])?;
/// let z = 1.5f64.exp() + 0.5f64.exp() + 0f64.exp() + 1f64.exp();
/// assert!((log_z - z.ln()).abs() < 1e-14);
/// assert!((rows[0] - (1.5f64.exp() + 0.5f64.exp()) / z).abs() < 1e-14);
/// let mut counts = [0.0; 4];
/// shared.transitions(&pairs, &mut counts)?;
/// assert!((counts[1] - 0.5f64.exp() / z).abs() < 1e-14);
/// # Ok::<(), gibbsite_core::error::InferError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Shared<'m, T> {
    labels: usize,
    /// `max A`.
    shift: T,
    /// `e^{A - shift}` by blocks of columns: for each block, a line of it for each label before.
    ahead: &'m [T],
    /// The same with before and after exchanged.
    back: &'m [T],
}

impl<'m, T: Lane> Shared<'m, T> {
    /// Entries of a row of labels, with its padding.
    pub const fn stride(labels: usize) -> usize {
        labels.div_ceil(WIDTH).saturating_mul(WIDTH)
    }

    /// Entries of memory that [`new`](Self::new) needs.
    pub const fn memory_len(labels: usize) -> usize {
        labels.saturating_mul(Self::stride(labels)).saturating_mul(2)
    }

    /// Entries of memory that [`expect`](Self::expect) needs.
    pub const fn expect_len(positions: usize, labels: usize) -> usize {
        Self::stride(labels).saturating_mul(positions.saturating_add(1)).saturating_mul(2)
    }

    /// Entries of the sums that [`expect`](Self::expect) adds to.
    pub const fn pairs_len(labels: usize) -> usize {
        Self::stride(labels).saturating_mul(Self::stride(labels))
    }

    /// Exponentiates an `L×L` table (row: label before). Nothing if its range is too wide, or a transition forbidden: the
    /// chains then need [`Chain`](super::Chain).
    pub fn new(labels: usize, table: &[T], memory: &'m mut [T]) -> Result<Option<Self>, InferError> {
        if labels == 0 || labels.checked_mul(labels) != Some(table.len()) {
            return Err(InferError::Shape);
        }
        let (mut shift, mut low) = (T::NEG_INFINITY, T::INFINITY);
        for &a in table {
            if !a.is_log_potential() {
                return Err(InferError::BadValue);
            }
            (shift, low) = (shift.larger(a), low.smaller(a));
        }
        let mut arena = Arena::new(memory, Self::memory_len(labels))?;
        let size = labels * Self::stride(labels);
        let (ahead, back) = (arena.take(size)?, arena.take(size)?);
        if low == T::NEG_INFINITY || T::LOG_RANGE < (shift - low) * T::from_f64(4.0) {
            return Ok(None);
        }
        let at = |from: usize, to: usize| {
            let a = if from < labels && to < labels { table.get(from * labels + to) } else { None };
            a.map_or(T::zero(), |&a| (a - shift).exp_lane())
        };
        for (block, (ahead, back)) in
            rows_mut(ahead, labels * WIDTH).zip(rows_mut(back, labels * WIDTH)).enumerate()
        {
            for (line, (ahead, back)) in rows_mut(ahead, WIDTH).zip(rows_mut(back, WIDTH)).enumerate() {
                for (k, (ahead, back)) in ahead.iter_mut().zip(back).enumerate() {
                    let label = block * WIDTH + k;
                    (*ahead, *back) = (at(line, label), at(label, line));
                }
            }
        }
        Ok(Some(Self { labels, shift, ahead, back }))
    }

    /// `log Z` of a chain. `rows` holds the scores of its positions, padded to [`stride`](Self::stride) (what the padding holds does not matter), and
    /// afterwards `P(y_t = j)`; what [`transitions`](Self::transitions) needs to count pairs is added to `pairs`. `-inf` is a legal score;
    /// [`InferError::ZeroProbability`] if a position has no other. After an error `rows` and `pairs` hold nothing of use.
    #[inline(always)]
    pub fn expect(&self, rows: &mut [T], pairs: &mut [T], memory: &mut [T]) -> Result<T, InferError> {
        let stride = Self::stride(self.labels);
        let positions = rows.len().checked_div(stride).unwrap_or(0);
        if positions * stride != rows.len() || pairs.len() != Self::pairs_len(self.labels) {
            return Err(InferError::Shape);
        }
        let mut arena = Arena::new(memory, Self::expect_len(positions, self.labels))?;
        let (alpha, weighted) = (arena.take(rows.len())?, arena.take(rows.len())?);
        let (beta, next) = (arena.take(stride)?, arena.take(stride)?);
        let log_z = self.forward(rows, alpha)?;
        self.backward(rows, alpha, weighted, beta, next);
        self.count(alpha, weighted, pairs);
        Ok(log_z)
    }

    /// All `α`, largest entry 1, and `e^{s - max s}` in the place of the scores.
    #[inline(always)]
    fn forward(&self, states: &mut [T], alpha: &mut [T]) -> Result<T, InferError> {
        let stride = Self::stride(self.labels);
        let mut log = Compensated::default();
        let mut scale = T::one();
        let bound = (T::LOG_RANGE / T::from_f64(3.0)).exp();
        let mut before: Option<&[T]> = None;
        for (scores, alpha) in rows_mut(states, stride).zip(rows_mut(alpha, stride)) {
            let top = maximum(scores.get(..self.labels).unwrap_or(&[]));
            if top == T::NEG_INFINITY {
                return Err(InferError::ZeroProbability);
            }
            if !top.is_log_potential() {
                return Err(InferError::BadValue);
            }
            log.add(top);
            for s in scores.iter_mut() {
                *s = (*s - top).exp_lane();
            }
            if let Some(padding) = scores.get_mut(self.labels..) {
                padding.fill(T::zero());
            }
            match before {
                None => alpha.iter_mut().zip(&*scores).for_each(|(a, &e)| *a = e),
                Some(before) => {
                    log.add(self.shift);
                    self.combine(before, self.ahead, alpha);
                    alpha.iter_mut().zip(&*scores).for_each(|(a, &e)| *a *= e);
                }
            }
            let top = largest(alpha);
            let factor = T::one() / top;
            alpha.iter_mut().for_each(|a| *a *= factor);
            scale *= top;
            if scale < T::one() / bound || bound < scale {
                log.add(scale.ln());
                scale = T::one();
            }
            before = Some(alpha);
        }
        let total = before.map_or(T::one(), |last| last.iter().fold(T::zero(), |sum, &a| sum + a));
        log.add((scale * total).ln());
        // A NaN among the scores is one here too.
        finite(log.value())
    }

    /// All `β`, and with them the marginals in the place of the scores, `w = e^s β` in `weighted`, and `α` of each gap divided by what its pairs sum to.
    #[inline(always)]
    fn backward(
        &self,
        states: &mut [T],
        alpha: &mut [T],
        weighted: &mut [T],
        beta: &mut [T],
        next: &mut [T],
    ) {
        let stride = Self::stride(self.labels);
        beta.fill(T::one());
        let mut after: Option<&[T]> = None;
        let each = rows_mut(states, stride).rev().zip(rows_mut(alpha, stride).rev());
        for ((state, alpha), weighted) in each.zip(rows_mut(weighted, stride).rev()) {
            let mut scale = T::zero();
            if let Some(after) = after {
                self.combine(after, self.back, next);
                scale = largest(next);
                let factor = T::one() / scale;
                beta.iter_mut().zip(&*next).for_each(|(b, &n)| *b = n * factor);
            }
            let mut total = T::zero();
            for (((s, w), &a), &b) in state.iter_mut().zip(weighted.iter_mut()).zip(&*alpha).zip(&*beta) {
                *w = *s * b;
                *s = a * b;
                total += *s;
            }
            let factor = T::one() / total;
            state.iter_mut().for_each(|s| *s *= factor);
            let factor = if scale == T::zero() { scale } else { factor / scale };
            alpha.iter_mut().for_each(|a| *a *= factor);
            after = Some(weighted);
        }
    }

    /// `out(j) = Σ_i x(i) table(i, j)` over blocks of columns.
    #[inline(always)]
    fn combine(&self, x: &[T], table: &[T], out: &mut [T]) {
        let (blocks, _) = out.as_chunks_mut::<WIDTH>();
        let (twos, last) = x.get(..self.labels).unwrap_or(&[]).as_chunks::<2>();
        for (out, lines) in blocks.iter_mut().zip(rows(table, self.labels * WIDTH)) {
            let (lines, _) = lines.as_chunks::<WIDTH>();
            let (pairs, odd) = lines.as_chunks::<2>();
            // Two sums at a time: one would wait for itself.
            let (mut even, mut other) = ([T::zero(); WIDTH], [T::zero(); WIDTH]);
            for ([a, b], [first, second]) in twos.iter().zip(pairs) {
                for ((e, o), (f, s)) in even.iter_mut().zip(&mut other).zip(first.iter().zip(second)) {
                    *e += *a * *f;
                    *o += *b * *s;
                }
            }
            for (a, line) in last.iter().zip(odd) {
                even.iter_mut().zip(line).for_each(|(e, f)| *e += *a * *f);
            }
            for (o, (e, s)) in out.iter_mut().zip(even.iter().zip(&other)) {
                *o = *e + *s;
            }
        }
    }

    /// `pairs += Σ_t α_tᵀ w_{t+1}`, piece by piece: a long sum of small numbers would lose its last digits.
    #[inline(always)]
    fn count(&self, alpha: &[T], weighted: &[T], pairs: &mut [T]) {
        let stride = Self::stride(self.labels);
        let piece = GAPS.saturating_mul(stride).max(1);
        let after = weighted.get(stride..).unwrap_or(&[]);
        for (alpha, after) in alpha.chunks(piece).zip(after.chunks(piece)) {
            self.count_piece(alpha, after, pairs);
        }
    }

    /// `pairs += αᵀ w`.
    #[inline(always)]
    fn count_piece(&self, alpha: &[T], weighted: &[T], pairs: &mut [T]) {
        let stride = Self::stride(self.labels);
        for (deep, lines) in rows_mut(pairs, DEEP * stride).enumerate().take(self.labels.div_ceil(DEEP)) {
            for block in 0..stride / WIDTH {
                let mut sums = [[T::zero(); WIDTH]; DEEP];
                for (alpha, weighted) in rows(alpha, stride).zip(rows(weighted, stride)) {
                    let (fours, _) = alpha.as_chunks::<DEEP>();
                    let (blocks, _) = weighted.as_chunks::<WIDTH>();
                    let (Some(four), Some(w)) = (fours.get(deep), blocks.get(block)) else { continue };
                    for (sums, a) in sums.iter_mut().zip(four) {
                        sums.iter_mut().zip(w).for_each(|(s, w)| *s += *a * *w);
                    }
                }
                for (line, sums) in rows_mut(lines, stride).zip(&sums) {
                    let (blocks, _) = line.as_chunks_mut::<WIDTH>();
                    if let Some(to) = blocks.get_mut(block) {
                        to.iter_mut().zip(sums).for_each(|(t, s)| *t += *s);
                    }
                }
            }
        }
    }

    /// Expected transitions, an `L×L` table: `Σ P(y_t = i, y_{t+1} = j)` over all gaps of the chains whose `pairs` were summed.
    pub fn transitions(&self, pairs: &[T], out: &mut [T]) -> Result<(), InferError> {
        let stride = Self::stride(self.labels);
        if pairs.len() != Self::pairs_len(self.labels) || out.len() != self.labels * self.labels {
            return Err(InferError::Shape);
        }
        for (i, (out, sums)) in rows_mut(out, self.labels).zip(rows(pairs, stride)).enumerate() {
            for (j, (o, &sum)) in out.iter_mut().zip(sums).enumerate() {
                let (block, k) = (j / WIDTH, j % WIDTH);
                let at = (block * self.labels + i) * WIDTH + k;
                *o = sum * self.ahead.get(at).copied().unwrap_or(T::zero());
            }
        }
        Ok(())
    }
}

/// The largest of numbers that are not negative, in lanes.
#[inline(always)]
fn largest<T: Lane>(x: &[T]) -> T {
    let (blocks, _) = x.as_chunks::<WIDTH>();
    let mut top = [T::zero(); WIDTH];
    for block in blocks {
        top.iter_mut().zip(block).for_each(|(t, x)| *t = t.larger(*x));
    }
    top.into_iter().fold(T::zero(), T::larger)
}
