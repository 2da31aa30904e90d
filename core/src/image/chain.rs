//! A linear chain in an image: the scores of items, and max-product on them.

use super::packed::byte;
use super::scalar::fixed::half;
use super::scalar::{FORBIDDEN, NONE, Scalar, Weight};
use super::{Image, MAX_ITEMS, MAX_LABELS, Scales, id, log_add, smooth_len};
use crate::arena::rows;
use crate::error::{InferError, need};
use crate::infer::chain::{Chain, Transitions};
use crate::infer::stream::{Decoder, Steps, decoder_len, whole_back_len};
use crate::log_add::LogAdd;
use core::marker::PhantomData;

/// An attribute of an item and its value.
pub type Item<W> = (u32, <W as Weight>::Value);

/// Bytes of memory for sequences of up to `items` items: to decode (scores and back pointers), and for marginals (state
/// scores too). Nothing beyond [`MAX_LABELS`] and [`MAX_ITEMS`].
pub const fn chain_memory(scalar: Scalar, labels: usize, items: usize) -> Option<[usize; 2]> {
    if labels > MAX_LABELS || items > MAX_ITEMS {
        return None;
    }
    // At most 2²⁴ scores.
    let scores = labels * items;
    let decode = 4 * decoder_len(labels) + whole_back_len(items, labels);
    let marginals = match scalar {
        Scalar::F32 => scores + smooth_len(labels),
        Scalar::I16 | Scalar::I8 => scores + log_add::marginals_len(labels),
    };
    Some([decode, 4 * marginals])
}

/// A chain in an image whose weights are `W`: [`f32`], [`i16`] or [`i8`].
#[derive(Clone, Copy, Debug)]
pub struct ChainView<'a, W> {
    labels: usize,
    transitions: &'a [u32],
    starts: &'a [u32],
    state_labels: &'a [u32],
    weights: &'a [u32],
    shift: u32,
    forbids: bool,
    unit: f32,
    image: Image<'a>,
    scalar: PhantomData<W>,
}

impl<'a, W: Weight> ChainView<'a, W> {
    #[inline(never)]
    pub(super) fn new(image: Image<'a>) -> Self {
        let sections = image.sections();
        let Scales { unit, shift, forbids, .. } = image.scales();
        Self {
            labels: image.labels(),
            transitions: sections.known(id::TRANSITIONS),
            starts: sections.known(id::STATE_STARTS),
            state_labels: sections.known(id::STATE_LABELS),
            weights: sections.known(id::STATE_WEIGHTS),
            shift,
            forbids,
            unit,
            image,
            scalar: PhantomData,
        }
    }

    /// The image.
    pub fn image(&self) -> &Image<'a> {
        &self.image
    }

    /// Words of a row of transitions.
    #[inline]
    fn row(&self) -> usize {
        W::SCALAR.row_len(self.labels)
    }

    /// How many labels there are.
    pub fn labels(&self) -> usize {
        self.labels
    }

    /// The longest sequence that memory was planned for.
    pub fn longest(&self) -> usize {
        self.image.longest()
    }

    /// What fixed-point numbers are worth.
    pub fn scales(&self) -> Scales {
        self.image.scales()
    }

    pub(super) fn log_add(&self) -> Option<LogAdd<'a>> {
        LogAdd::open(self.image.sections().get(id::LOG_ADD)?)
    }

    /// Rows of transitions, one for each label that is come to.
    pub(super) fn rows(&self) -> impl Iterator<Item = &'a [u32]> + use<'a, W> {
        rows(self.transitions, self.row())
    }

    /// Adds the scores of an item's attributes to a row of zeros, or of scores that come from elsewhere. Returns whether
    /// something had to be cut off (fixed point beyond [`CLAMP`](super::CLAMP)).
    ///
    /// # Errors
    /// [`InferError::Attribute`] for an attribute that the model does not have, [`InferError::BadValue`] for values and scores that
    /// are no finite numbers, [`InferError::Shape`] for a row of another length.
    pub fn score(&self, item: &[Item<W>], row: &mut [W::Score]) -> Result<bool, InferError> {
        self.score_of(item.iter().copied(), row)
    }

    /// [`score`](Self::score) of an item that is kept in another form.
    ///
    /// # Errors
    /// As there.
    pub fn score_of(
        &self,
        item: impl Iterator<Item = Item<W>>,
        row: &mut [W::Score],
    ) -> Result<bool, InferError> {
        if row.len() != self.labels {
            return Err(InferError::Shape);
        }
        let Self { starts, state_labels, weights, .. } = *self;
        for (attribute, value) in item {
            let a = attribute as usize;
            let (Some(&from), Some(&to)) = (starts.get(a), starts.get(a.wrapping_add(1))) else {
                return Err(InferError::Attribute(attribute));
            };
            if !W::legal_value(value) {
                return Err(InferError::BadValue);
            }
            for at in from as usize..to as usize {
                if let Some(score) = row.get_mut(usize::from(byte(state_labels, at))) {
                    W::add_product(score, weights, at, value, self.shift);
                }
            }
        }
        let cut = W::check_row(row)?;
        if cut {
            crate::log::saturated();
        }
        Ok(cut)
    }

    /// A decoder of whole sequences of up to [`longest`](Self::longest) items. Memory: [`decoder_len`] scores and
    /// [`whole_back_len`] bytes.
    ///
    /// # Errors
    /// [`InferError::Memory`].
    pub fn decoder<'m>(
        &self,
        scores: &'m mut [W::Score],
        back: &'m mut [u8],
    ) -> Result<Decoder<'m, Self>, InferError> {
        Decoder::whole(*self, self.longest(), scores, back)
    }

    /// Labels a sequence: the best labelling into `labels`, and its score, of which [`total`](Self::total) makes a plain number.
    ///
    /// # Errors
    /// As [`decoder`](Self::decoder), [`score`](Self::score) and [`Decoder::advance`]; [`InferError::TooLong`] for more items than
    /// the image was made for. `labels` is untouched then.
    pub fn label<'i>(
        &self,
        items: impl IntoIterator<Item = &'i [Item<W>]>,
        labels: &mut [u8],
        scores: &mut [W::Score],
        back: &mut [u8],
    ) -> Result<W::Total, InferError>
    where
        W: 'i,
    {
        let mut made = self.decoder(scores, back);
        // Used where it was made: `?` would have a second one on the stack.
        let decoder = match &mut made {
            Ok(decoder) => decoder,
            Err(error) => return Err(*error),
        };
        for item in items {
            decoder.push(item)?;
        }
        decoder.finish(labels)
    }

    /// A sum of scores in natural logarithms.
    pub fn total(&self, total: W::Total) -> f32 {
        W::total_to_f32(total, self.unit)
    }

    /// The transitions as plain numbers, row = from, for the engines of [`Chain`].
    ///
    /// # Errors
    /// [`InferError::Memory`] if `table` has not `labels²` entries.
    pub fn transitions(&self, table: &mut [f32]) -> Result<(), InferError> {
        let labels = self.labels;
        need(labels.saturating_mul(labels), table.len())?;
        for (to, row) in self.rows().enumerate() {
            let column = table.iter_mut().skip(to).step_by(labels.max(1)).take(labels);
            for (from, place) in column.enumerate() {
                *place = W::transition(row, from, self.unit);
            }
        }
        Ok(())
    }

    /// One transition as a plain number.
    pub fn transition(&self, from: usize, to: usize) -> f32 {
        let Self { labels, transitions, unit, .. } = *self;
        let row = transitions.get(to.wrapping_mul(self.row())..).filter(|_| to < labels && from < labels);
        row.map_or(f32::NEG_INFINITY, |row| W::transition(row, from, unit))
    }

    /// Adds what an item's neighbours say to a row of its scores in natural logarithms: `A(before, j) + A(j, after)`, each only if
    /// there is such a neighbour.
    ///
    /// # Errors
    /// [`InferError::Shape`] for a row of another length and for labels that the model does not have; the row is then as before.
    pub fn add_neighbours(
        &self,
        before: Option<usize>,
        after: Option<usize>,
        row: &mut [f32],
    ) -> Result<(), InferError> {
        let labels = self.labels;
        if row.len() != labels || ![before, after].iter().all(|n| n.is_none_or(|l| l < labels)) {
            return Err(InferError::Shape);
        }
        for (j, score) in row.iter_mut().enumerate() {
            *score += before.map_or(0.0, |i| self.transition(i, j));
            *score += after.map_or(0.0, |k| self.transition(j, k));
        }
        Ok(())
    }

    /// One transition in units; a forbidden one is far below everything.
    pub(super) fn units(&self, from: usize, to: usize) -> i32 {
        let row = self.transitions.get(to.wrapping_mul(self.row())..).unwrap_or(&[]);
        match half(row, from) {
            FORBIDDEN => NONE,
            a => i32::from(a),
        }
    }

    /// A row of scores in natural logarithms.
    pub fn to_f32(&self, row: &[W::Score], out: &mut [f32]) {
        for (o, &s) in out.iter_mut().zip(row) {
            *o = W::to_f32(s, self.unit);
        }
    }

    /// A chain over rows of state scores (in natural logarithms, item by item) and a table that
    /// [`transitions`](Self::transitions) has filled, for marginals ([`Chain::forward_backward`]) and the N best labellings
    /// ([`Chain::n_best`]).
    ///
    /// # Errors
    /// As [`Chain::new`].
    pub fn plain<'c>(&self, rows: &'c [f32], table: &'c [f32]) -> Result<Chain<'c, f32>, InferError> {
        Chain::new(self.labels, rows, Transitions::Shared(table))
    }

    /// How far a labelling's score can be from that of the model it was exported from, for a sequence of `items` items
    /// whose attributes' values have absolute values with this sum, nothing cut off; for fixed point.
    ///
    /// `Σ_a |v_a| ε_w + (items - 1) ε_A`, where `ε` are the largest errors of a weight and of a transition, plus half a unit
    /// and `2⁻¹⁷ |w|` for each value that is not 1 (`rounded` of them). The labelling that is best here is then, in the model,
    /// worse than the best by at most twice that: `s(ŷ) ≥ ŝ(ŷ) - B ≥ ŝ(y*) - B ≥ s(y*) - 2B`.
    pub fn error_bound(&self, items: usize, values: f32, rounded: usize) -> f32 {
        let Scales { unit, shift, weight_error, transition_error, .. } = self.scales();
        let widest = match W::SCALAR {
            Scalar::F32 => return 0.0,
            Scalar::I16 => 32_768.0,
            Scalar::I8 => 128.0,
        } * unit
            * (1u32 << (shift & 15)) as f32;
        let each = 0.5 * unit + widest / 131_072.0;
        values * weight_error + items.saturating_sub(1) as f32 * transition_error + rounded as f32 * each
    }
}

impl<W: Weight> Decoder<'_, ChainView<'_, W>> {
    /// Takes the next item. Returns a label if one is due.
    ///
    /// # Errors
    /// As [`ChainView::score`], after which the decoder is as before, and [`Decoder::advance`].
    pub fn push(&mut self, item: &[Item<W>]) -> Result<Option<u8>, InferError> {
        self.push_of(item.iter().copied())
    }

    /// [`push`](Self::push) of an item that is kept in another form.
    ///
    /// # Errors
    /// As there.
    pub fn push_of(&mut self, item: impl Iterator<Item = Item<W>>) -> Result<Option<u8>, InferError> {
        let (view, row) = self.steps_and_row();
        if let Err(error) = view.score_of(item, row) {
            row.fill(W::Score::default());
            return Err(error);
        }
        self.advance()
    }
}

impl<W: Weight> Steps for ChainView<'_, W> {
    type Score = W::Score;
    type Total = W::Total;

    #[inline]
    fn labels(&self) -> usize {
        self.labels
    }

    #[inline]
    fn first(&self, row: &mut [W::Score], total: &mut W::Total) -> Result<(), InferError> {
        W::settle(row, total)
    }

    #[inline]
    fn step(
        &self,
        before: &[W::Score],
        row: &mut [W::Score],
        back: &mut [u8],
        total: &mut W::Total,
    ) -> Result<(), InferError> {
        let mut back = back.iter_mut();
        let forbids = self.forbids;
        for (score, transitions) in row.iter_mut().zip(self.rows()) {
            let (best, from) =
                if forbids { W::best_allowed(before, transitions) } else { W::best(before, transitions) };
            *score = W::plus(best, *score);
            if let Some(back) = back.next() {
                *back = from;
            }
        }
        W::settle(row, total)
    }
}
