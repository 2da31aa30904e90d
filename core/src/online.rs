//! Learning on the device: a deployed chain adapts to labelled items, in RAM beside its image.
//!
//! What is learned is an [`Overlay`]: a table of weights `labels × (1 + slots)` that is added to the image's scores, for a bias of
//! each label and for the attributes that were given a slot. It is a slice of the caller: saving it is writing the slice,
//! loading it is reading it back.

use crate::error::{InferError, need};
use crate::image::{ChainView, Item};
use crate::infer::stream::Decoder;
use crate::math::{Real, soft_threshold, softmax};
use crate::score::Score;

/// Entries of an [`Overlay`].
pub const fn overlay_len(labels: usize, slots: usize) -> usize {
    labels.saturating_mul(slots.saturating_add(1))
}

/// How fast and how far an overlay learns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OnlineParams<T> {
    /// The first step's length.
    pub rate: T,
    /// Steps become shorter as `rate / (1 + decay·n)`; 0 keeps them as they are, for data that changes.
    pub decay: T,
    /// Each weight is pulled towards the image's by this, for each item (the desk's `C₂` over the number of items).
    pub l2: T,
    /// Weights that are not needed become 0 (the desk's `C₁` over the number of items).
    pub l1: T,
}

/// Weights that a device has learned.
///
/// The objective is the pseudolikelihood, item by item: `-Σ_t log P(y_t | y_{t-1}, y_{t+1}, x_t) + l1‖w‖₁ + l2/2 ‖w‖²`, over the overlay's
/// weights alone. Each item is one step of the proximal stochastic gradient method on its local conditional regression:
/// `w ← soft(w - η (P(j) - 1[j = y]) v - η·l2·w, η·l1)`, where `v` is the attribute's value and `η = rate / (1 + decay·n)` (Robbins & Monro 1951; the prox
/// step as in Duchi & Singer 2009). `O(labels · (slots + attributes of the item))` work a step. The steps sum to infinity and, with `decay > 0`, become short: on stationary
/// data the weights approach those of the desk's pseudolikelihood.
///
/// ```
/// use gibbsite_core::online::{OnlineParams, Overlay, overlay_len};
/// let mut weights = [0.0f32; overlay_len(2, 1)];
/// let mut overlay = Overlay::new(2, 1, &mut weights)?;
/// let params = OnlineParams { rate: 0.5, decay: 0.0, l2: 0.0, l1: 0.0 };
/// let mut memory = [0.0; 2];
/// for _ in 0..100 {
///     // Items whose scores in the image are 0; the attribute in slot 0 speaks for label 1.
///     overlay.learn(&[(0, 1.0)], &[0.0, 0.0], 1, &params, &mut memory)?;
/// }
/// let mut row = [0.0f32; 2];
/// overlay.add(&[(0, 1.0)], &mut row)?;
/// assert!(row[1] - row[0] > 3.0);
/// # Ok::<(), gibbsite_core::error::InferError>(())
/// ```
#[derive(Debug)]
pub struct Overlay<'m, T> {
    labels: usize,
    slots: usize,
    weights: &'m mut [T],
    steps: u32,
}

impl<'m, T: Real> Overlay<'m, T> {
    /// Over weights that were learned before, or zeros.
    ///
    /// # Errors
    /// [`InferError::Shape`] without labels, [`InferError::Memory`] for too few weights, [`InferError::BadValue`] for weights that are not
    /// finite.
    pub fn new(labels: usize, slots: usize, weights: &'m mut [T]) -> Result<Self, InferError> {
        if labels == 0 {
            return Err(InferError::Shape);
        }
        let len = overlay_len(labels, slots);
        need(len, weights.len())?;
        let weights = weights.get_mut(..len).unwrap_or(&mut []);
        if !weights.iter().all(|w| w.abs() < T::INFINITY) {
            return Err(InferError::BadValue);
        }
        Ok(Self { labels, slots, weights, steps: 0 })
    }

    /// The weights, to be saved: first the biases of all labels, then a row for each slot.
    pub fn weights(&self) -> &[T] {
        self.weights
    }

    /// Steps so far.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// Goes on as after so many steps: for an overlay that was saved.
    pub fn resume(&mut self, steps: u32) {
        self.steps = steps;
    }

    /// Checks an item: slots that there are, values that are finite.
    fn check(&self, item: impl Iterator<Item = (u32, T)>) -> Result<(), InferError> {
        for (slot, value) in item {
            if slot as usize >= self.slots {
                return Err(InferError::Attribute(slot));
            }
            if !value.abs().is_log_potential() {
                return Err(InferError::BadValue);
            }
        }
        Ok(())
    }

    /// Where the row of a slot begins.
    fn row(&self, slot: u32) -> usize {
        (slot as usize).saturating_add(1).saturating_mul(self.labels)
    }

    /// Adds what was learned to a row of scores: the biases, and the weights of an item's slots times their values.
    ///
    /// # Errors
    /// [`InferError::Shape`], [`InferError::Attribute`], [`InferError::BadValue`]; the row is then as before.
    pub fn add(&self, item: &[(u32, T)], row: &mut [T]) -> Result<(), InferError> {
        self.add_of(item.iter().copied(), row)
    }

    /// [`add`](Self::add) of an item that is kept in another form.
    ///
    /// # Errors
    /// As there.
    pub fn add_of(
        &self,
        item: impl Iterator<Item = (u32, T)> + Clone,
        row: &mut [T],
    ) -> Result<(), InferError> {
        if row.len() != self.labels {
            return Err(InferError::Shape);
        }
        self.check(item.clone())?;
        self.add_checked(item, row);
        Ok(())
    }

    fn add_checked(&self, item: impl Iterator<Item = (u32, T)>, row: &mut [T]) {
        row.iter_mut().zip(&*self.weights).for_each(|(r, &w)| *r += w);
        for (slot, value) in item {
            let weights = self.weights.iter().skip(self.row(slot));
            row.iter_mut().zip(weights).for_each(|(r, &w)| *r += value * w);
        }
    }

    /// One step towards the label of an item. `scores` are its scores without the overlay, given its neighbours:
    /// `s_t(j) + A(y_{t-1}, j) + A(j, y_{t+1})`, as [`ChainView::score`] and [`ChainView::add_neighbours`] make them. Returns `log P(label)`
    /// before the step. `memory` has room for a row.
    ///
    /// # Errors
    /// [`InferError::Shape`], [`InferError::Memory`], [`InferError::Attribute`], [`InferError::BadValue`] (of `params` too, if one is negative
    /// or not finite), [`InferError::ZeroProbability`] if the label is not possible there; nothing is learned then.
    pub fn learn(
        &mut self,
        item: &[(u32, T)],
        scores: &[T],
        label: usize,
        params: &OnlineParams<T>,
        memory: &mut [T],
    ) -> Result<T, InferError> {
        self.learn_of(item.iter().copied(), scores, label, params, memory)
    }

    /// [`learn`](Self::learn) of an item that is kept in another form.
    ///
    /// # Errors
    /// As there.
    pub fn learn_of(
        &mut self,
        item: impl Iterator<Item = (u32, T)> + Clone,
        scores: &[T],
        label: usize,
        params: &OnlineParams<T>,
        memory: &mut [T],
    ) -> Result<T, InferError> {
        let labels = self.labels;
        if scores.len() != labels || label >= labels {
            return Err(InferError::Shape);
        }
        need(labels, memory.len())?;
        self.check(item.clone())?;
        if ![params.rate, params.decay, params.l2, params.l1]
            .iter()
            .all(|&p| T::zero() <= p && p < T::INFINITY)
        {
            return Err(InferError::BadValue);
        }
        let legal = |x: &[T]| x.iter().all(|v| v.is_log_potential());
        let p = memory.get_mut(..labels).unwrap_or(&mut []);
        p.iter_mut().zip(scores).for_each(|(p, &s)| *p = s);
        self.add_checked(item.clone(), p);
        if !legal(p) {
            return Err(InferError::BadValue);
        }
        let own = p.get(label).copied().unwrap_or(T::NEG_INFINITY);
        if own == T::NEG_INFINITY {
            return Err(InferError::ZeroProbability);
        }
        let log = own - softmax(p);
        // The slope of -log P(label) along the scores.
        if let Some(own) = p.get_mut(label) {
            *own -= T::one();
        }
        let n = T::from_f64(f64::from(self.steps));
        let rate = params.rate / (T::one() + params.decay * n);
        // The penalties are about all weights, also those that the item has nothing to say about. A step never passes 0.
        let kept = (T::one() - rate * params.l2).larger(T::zero());
        self.weights.iter_mut().for_each(|w| *w *= kept);
        let step = |w: &mut T, slope: T| {
            let moved = *w - rate * slope;
            // A weight that would leave the range of T stays where it was.
            if moved.abs() < T::INFINITY {
                *w = moved;
            }
        };
        self.weights.iter_mut().zip(&*p).for_each(|(w, &slope)| step(w, slope));
        for (slot, value) in item {
            let at = self.row(slot);
            let row = self.weights.iter_mut().skip(at);
            row.zip(&*p).for_each(|(w, &slope)| step(w, slope * value));
        }
        if T::zero() < params.l1 {
            self.weights.iter_mut().for_each(|w| *w = soft_threshold(*w, rate * params.l1));
        }
        self.steps = self.steps.saturating_add(1);
        Ok(log)
    }
}

impl Overlay<'_, f32> {
    /// Takes the next item of a decoder: what its attributes score in the image, and what was learned about its slots. Returns a label
    /// if one is due.
    ///
    /// # Errors
    /// As [`ChainView::score`] and [`add`](Self::add), after which the decoder is as before, and [`Decoder::advance`].
    pub fn push(
        &self,
        decoder: &mut Decoder<'_, ChainView<'_, f32>>,
        item: &[Item<f32>],
        learned: &[(u32, f32)],
    ) -> Result<Option<u8>, InferError> {
        self.push_of(decoder, item.iter().copied(), learned.iter().copied())
    }

    /// [`push`](Self::push) of an item that is kept in another form.
    ///
    /// # Errors
    /// As there.
    pub fn push_of(
        &self,
        decoder: &mut Decoder<'_, ChainView<'_, f32>>,
        item: impl Iterator<Item = Item<f32>>,
        learned: impl Iterator<Item = (u32, f32)> + Clone,
    ) -> Result<Option<u8>, InferError> {
        let (view, row) = decoder.steps_and_row();
        if let Err(error) = self.score_of(view, item, learned, row) {
            row.fill(0.0);
            return Err(error);
        }
        decoder.advance()
    }

    /// Adds both to a row: what an item's attributes score in the image, and what was learned about its slots. What the row holds after an
    /// error is of no use.
    ///
    /// # Errors
    /// As [`ChainView::score`] and [`add`](Self::add).
    pub fn score_of(
        &self,
        view: &ChainView<'_, f32>,
        item: impl Iterator<Item = Item<f32>>,
        learned: impl Iterator<Item = (u32, f32)> + Clone,
        row: &mut [f32],
    ) -> Result<(), InferError> {
        view.score_of(item, row)?;
        self.add_of(learned, row)?;
        if row.iter().all(|s| s.is_log_potential()) { Ok(()) } else { Err(InferError::BadValue) }
    }
}
