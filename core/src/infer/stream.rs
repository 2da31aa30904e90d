//! Decoding a sequence while it arrives: max-product with bounded memory and delay, and filtered marginals.
//!
//! | what | memory | when `y_t` is known |
//! | --- | --- | --- |
//! | [`Decoder::whole`] | a row of back pointers an item | at the end: Viterbi's labelling |
//! | [`Decoder::lagged`] | `lag` rows of back pointers | when item `t + lag` has arrived |
//! | [`Filter`] | two rows and a table | at once: `P(y_t \| x_1 … x_t)` |
//!
//! A decoder asks its model ([`Steps`]) for one step at a time: an image's view is one, [`Stationary`] is one over plain numbers.

use crate::arena::{rows, rows_mut};
use crate::error::{InferError, need};
use crate::math::{Real, maximum, softmax};
use crate::wide::Compensated;

/// A chain that goes on: the same transitions between all items. At most 256 labels.
pub trait Steps: Copy {
    /// What is added and compared.
    type Score: Copy + PartialOrd + Default;
    /// Sums of scores over many items.
    type Total: Copy + Default;

    /// How many labels there are.
    fn labels(&self) -> usize;

    /// Of a row of state scores of the first item makes `δ`: subtracts the largest and adds it to the total.
    ///
    /// # Errors
    /// [`InferError::ZeroProbability`] if no label is possible.
    fn first(&self, row: &mut [Self::Score], total: &mut Self::Total) -> Result<(), InferError>;

    /// Of a row of state scores makes `δ`: `row(j) += max_i before(i) + A(i,j)`, less the largest, which goes to the total;
    /// `back(j)` is the first `i` that attains the maximum.
    ///
    /// # Errors
    /// [`InferError::ZeroProbability`] if no label is possible any more.
    fn step(
        &self,
        before: &[Self::Score],
        row: &mut [Self::Score],
        back: &mut [u8],
        total: &mut Self::Total,
    ) -> Result<(), InferError>;
}

/// Viterbi's algorithm on items as they arrive.
///
/// `δ_t(j) = s_t(j) + max_i δ_{t-1}(i) + A(i,j)`, Viterbi 1967; fixed-lag decision as in Forney 1973, §III.C: the label of item
/// `t` is read off the best labelling of the items up to `t + lag`. It equals the label in the best labelling of all if `lag` is at least
/// what is still to come; labels given at different times need not belong to one labelling. Of equals the lowest labels win, compared
/// from the last item to the first.
///
/// ```
/// use gibbsite_core::infer::stream::{Decoder, Stationary};
/// let steps = Stationary::new(2, &[1.0f32, 0.0, 0.0, 1.0])?;
/// let (mut scores, mut back) = ([0.0; 4], [0; 2]);
/// let mut decoder = Decoder::lagged(steps, 1, &mut scores, &mut back)?;
/// let mut labels = Vec::new();
/// for item in [[0.0f32, 0.5], [0.25, 0.0], [0.0, 0.5]] {
///     decoder.row().copy_from_slice(&item);
///     labels.extend(decoder.advance()?);
/// }
/// let mut last = [0];
/// decoder.finish(&mut last)?;
/// assert_eq!((labels, last), (vec![1, 1], [1]));
/// # Ok::<(), gibbsite_core::error::InferError>(())
/// ```
#[derive(Debug)]
pub struct Decoder<'m, S: Steps> {
    steps: S,
    labels: usize,
    /// `δ` of the last item, and the row of the next.
    delta: &'m mut [S::Score],
    next: &'m mut [S::Score],
    /// A ring of rows of back pointers; `newest` is where the last one stands.
    back: &'m mut [u8],
    capacity: usize,
    newest: usize,
    items: usize,
    whole: bool,
    total: S::Total,
}

/// Scores of memory that a [`Decoder`] needs.
pub const fn decoder_len(labels: usize) -> usize {
    labels.saturating_mul(2)
}

/// Bytes of back pointers of a [`Decoder`] that waits for `lag` items.
pub const fn lagged_back_len(lag: usize, labels: usize) -> usize {
    lag.saturating_mul(labels)
}

/// Bytes of back pointers of a [`Decoder`] of whole sequences.
pub const fn whole_back_len(items: usize, labels: usize) -> usize {
    lagged_back_len(items.saturating_sub(1), labels)
}

impl<'m, S: Steps> Decoder<'m, S> {
    /// Gives the label of item `t` when `t + lag` has arrived. Memory: [`decoder_len`], [`lagged_back_len`].
    ///
    /// # Errors
    /// [`InferError::Memory`], or [`InferError::Shape`] for models with no label or more than 256.
    pub fn lagged(
        steps: S,
        lag: usize,
        scores: &'m mut [S::Score],
        back: &'m mut [u8],
    ) -> Result<Self, InferError> {
        need(lagged_back_len(lag, steps.labels()), back.len())?;
        Self::new(steps, lag, false, scores, back)
    }

    /// Gives all labels at the end, of at most `items` items. Memory: [`decoder_len`], [`whole_back_len`].
    ///
    /// # Errors
    /// As [`lagged`](Self::lagged).
    pub fn whole(
        steps: S,
        items: usize,
        scores: &'m mut [S::Score],
        back: &'m mut [u8],
    ) -> Result<Self, InferError> {
        need(whole_back_len(items, steps.labels()), back.len())?;
        Self::new(steps, items.saturating_sub(1), true, scores, back)
    }

    fn new(
        steps: S,
        capacity: usize,
        whole: bool,
        scores: &'m mut [S::Score],
        back: &'m mut [u8],
    ) -> Result<Self, InferError> {
        let labels = steps.labels();
        if !(1..=256).contains(&labels) {
            return Err(InferError::Shape);
        }
        let (needed, given) = (decoder_len(labels), scores.len());
        let short = InferError::Memory { needed, given };
        let (delta, rest) = scores.split_at_mut_checked(labels).ok_or(short)?;
        let (next, _) = rest.split_at_mut_checked(labels).ok_or(short)?;
        next.fill(S::Score::default());
        let total = S::Total::default();
        Ok(Self { steps, labels, delta, next, back, capacity, newest: 0, items: 0, whole, total })
    }

    /// Begins another sequence.
    pub fn reset(&mut self) {
        (self.items, self.newest, self.total) = (0, 0, S::Total::default());
        self.next.fill(S::Score::default());
    }

    /// The model.
    pub fn steps(&self) -> &S {
        &self.steps
    }

    /// Items so far.
    pub fn items(&self) -> usize {
        self.items
    }

    /// Where the state scores of the next item go: zeros, until written.
    pub fn row(&mut self) -> &mut [S::Score] {
        self.next
    }

    /// Both: the model is not copied.
    pub(crate) fn steps_and_row(&mut self) -> (&S, &mut [S::Score]) {
        (&self.steps, self.next)
    }

    /// Takes the next item, whose state scores stand in [`row`](Self::row). Returns a label if one is due.
    ///
    /// # Errors
    /// [`InferError::TooLong`] if there is no room for the item; nothing has changed then.
    /// [`InferError::ZeroProbability`] if no labelling is possible any more; only [`reset`](Self::reset) helps.
    pub fn advance(&mut self) -> Result<Option<u8>, InferError> {
        if self.whole && self.items > self.capacity {
            let longest = self.capacity.saturating_add(1);
            crate::log::too_long(longest);
            return Err(InferError::TooLong { longest });
        }
        if self.items == 0 {
            self.steps.first(self.next, &mut self.total)?;
        } else {
            let slot = self.newest.wrapping_add(1);
            self.newest = if slot < self.capacity { slot } else { 0 };
            let at = self.newest.wrapping_mul(self.labels);
            let end = at.wrapping_add(self.labels);
            // Without a lag nothing is remembered.
            let back = if self.capacity == 0 { None } else { self.back.get_mut(at..end) };
            self.steps.step(self.delta, self.next, back.unwrap_or(&mut []), &mut self.total)?;
        }
        core::mem::swap(&mut self.delta, &mut self.next);
        self.next.fill(S::Score::default());
        self.items = self.items.saturating_add(1);
        let due = !self.whole && self.items > self.capacity;
        Ok(due.then(|| self.walk(self.capacity, |_, _| {})))
    }

    /// Labels that are still to come: `min(items, lag)`, or all.
    pub fn pending(&self) -> usize {
        if self.whole { self.items } else { self.items.min(self.capacity) }
    }

    /// Writes the labels that are still to come and returns the score of the best labelling so far.
    ///
    /// # Errors
    /// [`InferError::Memory`] if `labels` has no room for [`pending`](Self::pending) ones.
    pub fn finish(&self, labels: &mut [u8]) -> Result<S::Total, InferError> {
        let pending = self.pending();
        need(pending, labels.len())?;
        let labels = labels.get_mut(..pending).unwrap_or(&mut []);
        let mut places = labels.iter_mut().rev();
        self.walk(pending.saturating_sub(1), |label, _| {
            if let Some(place) = places.next() {
                *place = label;
            }
        });
        Ok(self.total)
    }

    /// Follows the back pointers from the best end over so many gaps; shows each label and where it ends.
    fn walk(&self, gaps: usize, mut show: impl FnMut(u8, usize)) -> u8 {
        let mut best = (0, None);
        for (j, &d) in self.delta.iter().enumerate() {
            if best.1.is_none_or(|b| b < d) {
                best = (j, Some(d));
            }
        }
        let mut label = best.0 as u8;
        let mut slot = self.newest;
        show(label, gaps);
        for left in (0..gaps).rev() {
            let at = slot.wrapping_mul(self.labels).wrapping_add(usize::from(label));
            label = self.back.get(at).copied().unwrap_or(0);
            slot = if slot == 0 { self.capacity.saturating_sub(1) } else { slot.wrapping_sub(1) };
            show(label, left);
        }
        label
    }
}

/// The same table of transitions between all items, row = from, as [`Chain`](super::chain::Chain) has it.
#[derive(Clone, Copy, Debug)]
pub struct Stationary<'a, T> {
    labels: usize,
    table: &'a [T],
}

impl<'a, T: Real> Stationary<'a, T> {
    /// Checks the table: `labels²` entries, no NaN, no `+inf`.
    ///
    /// # Errors
    /// [`InferError::Shape`], [`InferError::BadValue`].
    pub fn new(labels: usize, table: &'a [T]) -> Result<Self, InferError> {
        if labels == 0 || labels.checked_mul(labels) != Some(table.len()) {
            return Err(InferError::Shape);
        }
        if !table.iter().all(|v| v.is_log_potential()) {
            return Err(InferError::BadValue);
        }
        Ok(Self { labels, table })
    }
}

/// Subtracts the largest entry and adds it to a total.
fn settle<T: Real>(row: &mut [T], total: &mut [T; 2]) -> Result<(), InferError> {
    if !row.iter().all(|v| v.is_log_potential()) {
        return Err(InferError::BadValue);
    }
    let top = maximum(row);
    if top == T::NEG_INFINITY {
        return Err(InferError::ZeroProbability);
    }
    row.iter_mut().for_each(|v| *v -= top);
    let mut sum = Compensated::from_parts(*total);
    sum.add(top);
    *total = sum.parts();
    Ok(())
}

impl<T: Real> Steps for Stationary<'_, T> {
    type Score = T;
    /// A sum and what its roundings lost.
    type Total = [T; 2];

    fn labels(&self) -> usize {
        self.labels
    }

    fn first(&self, row: &mut [T], total: &mut [T; 2]) -> Result<(), InferError> {
        settle(row, total)
    }

    fn step(
        &self,
        before: &[T],
        row: &mut [T],
        back: &mut [u8],
        total: &mut [T; 2],
    ) -> Result<(), InferError> {
        let mut back = back.iter_mut();
        for (j, score) in row.iter_mut().enumerate() {
            let column = self.table.iter().skip(j).step_by(self.labels.max(1));
            let (mut best, mut from) = (T::NEG_INFINITY, 0);
            for (i, (&d, &a)) in before.iter().zip(column).enumerate() {
                if best < d + a {
                    (best, from) = (d + a, i as u8);
                }
            }
            *score += best;
            if let Some(back) = back.next() {
                *back = from;
            }
        }
        settle(row, total)
    }
}

/// `P(y_t | x_1 … x_t)` of an endless sequence: the forward pass, normalised at each item.
///
/// `α_t(j) ∝ e^{s_t(j)} Σ_i α_{t-1}(i) e^{A(i,j)}`; `e^A` is computed once. An entry that is more than `T`'s range below the largest of
/// its table counts as 0. Items that no label explains are errors, and leave the filter as it was.
///
/// ```
/// use gibbsite_core::infer::stream::{Filter, filter_len};
/// let mut memory = [0.0f64; filter_len(2)];
/// let mut filter = Filter::new(2, |from, to| if from == to { 1.0 } else { 0.0 }, &mut memory)?;
/// let p = filter.push(&[0.5, 0.0])?;
/// assert!((p[0] - 0.5f64.exp() / (0.5f64.exp() + 1.0)).abs() < 1e-15);
/// # Ok::<(), gibbsite_core::error::InferError>(())
/// ```
#[derive(Debug)]
pub struct Filter<'m, T> {
    labels: usize,
    /// `e^{A - max A}`, row = from.
    table: &'m mut [T],
    alpha: &'m mut [T],
    next: &'m mut [T],
    begun: bool,
}

/// Entries of memory that a [`Filter`] needs.
pub const fn filter_len(labels: usize) -> usize {
    labels.saturating_mul(labels.saturating_add(2))
}

impl<'m, T: Real> Filter<'m, T> {
    /// With the transitions `transition(from, to)`.
    ///
    /// # Errors
    /// [`InferError::Memory`], [`InferError::Shape`] without labels, [`InferError::BadValue`] for NaN and `+inf`.
    pub fn new(
        labels: usize,
        transition: impl Fn(usize, usize) -> T,
        memory: &'m mut [T],
    ) -> Result<Self, InferError> {
        if labels == 0 {
            return Err(InferError::Shape);
        }
        let short = InferError::Memory { needed: filter_len(labels), given: memory.len() };
        let (table, rest) = memory.split_at_mut_checked(labels.saturating_mul(labels)).ok_or(short)?;
        let (alpha, rest) = rest.split_at_mut_checked(labels).ok_or(short)?;
        let (next, _) = rest.split_at_mut_checked(labels).ok_or(short)?;
        for (i, row) in rows_mut(table, labels).enumerate() {
            for (j, place) in row.iter_mut().enumerate() {
                *place = transition(i, j);
                if !place.is_log_potential() {
                    return Err(InferError::BadValue);
                }
            }
        }
        let top = maximum(table);
        if top != T::NEG_INFINITY {
            table.iter_mut().for_each(|v| *v = (*v - top).exp());
        } else {
            table.fill(T::zero());
        }
        Ok(Self { labels, table, alpha, next, begun: false })
    }

    /// Begins another sequence.
    pub fn reset(&mut self) {
        self.begun = false;
    }

    /// Takes the state scores of the next item and returns its distribution.
    ///
    /// # Errors
    /// [`InferError::Shape`], [`InferError::BadValue`], [`InferError::ZeroProbability`]; the filter is then as before.
    pub fn push(&mut self, scores: &[T]) -> Result<&[T], InferError> {
        if scores.len() != self.labels {
            return Err(InferError::Shape);
        }
        if !scores.iter().all(|s| s.is_log_potential()) {
            return Err(InferError::BadValue);
        }
        self.next.fill(if self.begun { T::zero() } else { T::one() });
        if self.begun {
            for (&a, row) in self.alpha.iter().zip(rows(self.table, self.labels)) {
                self.next.iter_mut().zip(row).for_each(|(n, &e)| *n += a * e);
            }
        }
        for (n, &s) in self.next.iter_mut().zip(scores) {
            *n = n.ln() + s;
        }
        if softmax(self.next) == T::NEG_INFINITY {
            return Err(InferError::ZeroProbability);
        }
        core::mem::swap(&mut self.alpha, &mut self.next);
        self.begun = true;
        Ok(self.alpha)
    }
}
