//! An image against the model it was made of, on data.

use super::Exported;
use crate::data::sequences::{SequenceView, Sequences};
use crate::model::SequenceModel;
use crate::objective::sequences::{STATES, TRANSITIONS};
use gibbsite_core::error::{ImageError, InferError};
use gibbsite_core::image::{ChainView, Image, Scalar, Weight, marginals_len};
use gibbsite_core::infer::chain::{Chain, Transitions};
use gibbsite_core::infer::stream::{Decoder, decoder_len, whole_back_len};

/// How an image does on data, against `f64`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CheckInfo {
    /// Sequences.
    pub sequences: usize,
    /// Their items.
    pub items: usize,
    /// Items that get another label.
    pub different_labels: usize,
    /// The largest `|ŝ(ŷ) - s(ŷ)|`: the score that the image gives its labelling against the model's.
    pub worst_score_error: f64,
    /// The largest `s(y*) - s(ŷ)`: how much worse than the best the image's labelling is in the model.
    pub worst_score_loss: f64,
    /// The largest proven bound on the former, for fixed point.
    pub score_error_bound: f64,
    /// The largest `|P̂(y_t = j) - P(y_t = j)|`.
    pub worst_probability_error: f64,
    /// Items whose values or scores had to be cut off.
    pub saturated: usize,
    /// The longest sequence.
    pub longest: usize,
}

/// What kept an image from being checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CheckError {
    /// The image cannot be opened.
    Image(ImageError),
    /// A sequence, counted from 0, cannot be labelled.
    Sequence(usize, InferError),
    /// The outputs of a row, counted from 0, cannot be predicted.
    Row(usize, InferError),
}

impl std::fmt::Display for CheckError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Image(e) => write!(f, "{e}"),
            Self::Row(i, e) => write!(f, "row {}: {e}", i + 1),
            Self::Sequence(s, e) => write!(f, "sequence {}: {e}", s + 1),
        }
    }
}

impl std::error::Error for CheckError {}

/// Labels all sequences (read with the model's alphabet) with the image, through `gibbsite_core` as a device would, and with the
/// model in `f64`.
///
/// # Errors
/// A [`CheckError`].
pub fn check(
    model: &SequenceModel,
    exported: &Exported,
    forbidden: &[(u32, u32)],
    sequences: &Sequences,
) -> Result<CheckInfo, CheckError> {
    let image = Image::open(&exported.words).map_err(CheckError::Image)?;
    match image.scalar() {
        Scalar::F32 => run::<f32>(model, exported, &image, forbidden, sequences),
        Scalar::I16 => run::<i16>(model, exported, &image, forbidden, sequences),
        Scalar::I8 => run::<i8>(model, exported, &image, forbidden, sequences),
    }
}

/// What the desk must know of a scalar that a device need not.
pub(super) trait Desk: Weight {
    /// A value as the device would have it.
    fn value(x: f64) -> Self::Value;
    /// Whether it can have it: fixed point ends at 2¹⁵.
    fn holds(x: f64) -> bool;
    /// Marginals of rows of state scores.
    fn marginals(view: &ChainView<'_, Self>, rows: &[Self::Score]) -> Result<Vec<f32>, InferError>
    where
        Self: Sized;
}

impl Desk for f32 {
    fn value(x: f64) -> f32 {
        x as f32
    }

    fn holds(_: f64) -> bool {
        true
    }

    fn marginals(view: &ChainView<'_, f32>, rows: &[f32]) -> Result<Vec<f32>, InferError> {
        let labels = view.labels();
        let mut table = vec![0.0; labels * labels];
        view.transitions(&mut table)?;
        let mut out = vec![0.0; rows.len()];
        let mut memory = vec![0.0; Chain::<f32>::forward_backward_len(rows.len() / labels, labels)];
        view.plain(rows, &table)?.forward_backward(&mut out, None, &mut memory)?;
        Ok(out)
    }
}

macro_rules! desk {
    ($($t:ty)*) => { $(
        impl Desk for $t {
            fn value(x: f64) -> i32 {
                (x * 65_536.0).round() as i32
            }

            fn holds(x: f64) -> bool {
                x.abs() < 32_768.0
            }

            fn marginals(view: &ChainView<'_, $t>, rows: &[i32]) -> Result<Vec<f32>, InferError> {
                let mut logs = rows.to_vec();
                view.log_marginals(&mut logs, &mut vec![0; marginals_len(view.labels())])?;
                let mut out = vec![0.0; logs.len()];
                view.to_f32(&logs, &mut out);
                out.iter_mut().for_each(|p| *p = p.exp());
                Ok(out)
            }
        }
    )* };
}
desk!(i16 i8);

fn run<W: Desk>(
    model: &SequenceModel,
    exported: &Exported,
    image: &Image<'_>,
    forbidden: &[(u32, u32)],
    sequences: &Sequences,
) -> Result<CheckInfo, CheckError> {
    let view = image.chain::<W>().map_err(CheckError::Image)?;
    let labels = view.labels();
    let mut table = vec![0.0; labels * labels];
    model.index.add_scores(TRANSITIONS, 0, 1.0, &model.theta, &mut table);
    for &(from, to) in forbidden {
        table[from as usize * labels + to as usize] = f64::NEG_INFINITY;
    }
    let mut info = CheckInfo { sequences: sequences.len(), ..CheckInfo::default() };
    for (s, sequence) in sequences.iter().enumerate() {
        one(model, exported, &view, &table, &sequence, &mut info).map_err(|e| CheckError::Sequence(s, e))?;
    }
    Ok(info)
}

fn one<W: Desk>(
    model: &SequenceModel,
    exported: &Exported,
    view: &ChainView<'_, W>,
    table: &[f64],
    sequence: &SequenceView<'_>,
    info: &mut CheckInfo,
) -> Result<(), InferError> {
    let (labels, items) = (view.labels(), sequence.items());
    info.items += items;
    info.longest = info.longest.max(items);
    if items == 0 {
        return Ok(());
    }
    // The device's way.
    let mut scores = vec![W::Score::default(); decoder_len(labels)];
    let mut back = vec![0; whole_back_len(items, labels)];
    let mut decoder = Decoder::whole(*view, items, &mut scores, &mut back)?;
    let mut rows = Vec::with_capacity(items * labels);
    let mut exact = vec![0.0; items * labels];
    let (mut values, mut rounded) = (0.0, 0);
    for t in 0..items {
        let (mut item, mut cut) = (Vec::new(), false);
        for (a, value) in sequence.attributes(t).iter() {
            let row = &mut exact[t * labels..(t + 1) * labels];
            model.index.add_scores(STATES, a, value, &model.theta, row);
            if let Some(number) = exported.attributes[a as usize] {
                item.push((number, W::value(value)));
                cut |= !W::holds(value);
                values += value.abs();
                rounded += usize::from(value != 1.0);
            }
        }
        let mut row = vec![W::Score::default(); labels];
        info.saturated += usize::from(view.score(&item, &mut row)? || cut);
        rows.extend_from_slice(&row);
        decoder.push(&item)?;
    }
    let mut path = vec![0; items];
    let score = f64::from(W::total_to_f32(decoder.finish(&mut path)?, view.scales().unit));

    // The desk's.
    let chain = Chain::new(labels, &exact, Transitions::Shared(table))?;
    let mut best = vec![0; items];
    let mut memory = vec![0.0; Chain::<f64>::viterbi_len(labels)];
    let mut pointers = vec![0u32; Chain::<f64>::viterbi_back_len(items, labels)];
    let highest = chain.viterbi(&mut best, &mut pointers, &mut memory)?;
    let path: Vec<u32> = path.iter().map(|&l| u32::from(l)).collect();
    let same = chain.score(&path)?;
    info.different_labels += path.iter().zip(&best).filter(|(a, b)| a != b).count();
    info.worst_score_error = info.worst_score_error.max((score - same).abs());
    info.worst_score_loss = info.worst_score_loss.max(highest - same);
    let bound = f64::from(view.error_bound(items, values as f32, rounded));
    info.score_error_bound = info.score_error_bound.max(bound);

    let mut singles = vec![0.0; items * labels];
    memory.resize(Chain::<f64>::forward_backward_len(items, labels), 0.0);
    chain.forward_backward(&mut singles, None, &mut memory)?;
    let approximate = W::marginals(view, &rows)?;
    let distance = singles.iter().zip(&approximate).map(|(a, &b)| (a - f64::from(b)).abs());
    info.worst_probability_error = distance.fold(info.worst_probability_error, f64::max);
    Ok(())
}
