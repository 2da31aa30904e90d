//! Exported model images, opened from flash: labels for sequences and streams, marginals, on each kind of weights.

use crate::engines::{Answer, Done, Stop};
use crate::fields::put;
pub use crate::fields::{field_best, field_icm, field_local, field_loopy, field_marginals, open_field};
pub use crate::learn::learn_f32;
pub use crate::units::{best_i8, best_i16, icm_i16, local_i16, marginals_i16 as field_marginals_i16};
use gibbsite_core::error::ImageError;
use gibbsite_core::image::{ChainView, GaussianImage, Image, Item, Weight, marginals_len, smooth_len};
use gibbsite_core::infer::chain::Chain;
use gibbsite_core::infer::gaussian::{Terms, deviations_len, given_len, mean_len};
use gibbsite_core::infer::junction::Fact;
use gibbsite_core::infer::stream::{
    Decoder, Filter, decoder_len, filter_len, lagged_back_len, whole_back_len,
};

include!(concat!(env!("OUT_DIR"), "/images.rs"));

/// The arguments of a case: an image, a sequence, working memory, and where the answer goes.
#[derive(Debug)]
pub struct Tagging<'a> {
    pub words: &'a [u32],
    pub floats: &'a [&'a [(u32, f32)]],
    pub fixed: &'a [&'a [(u32, i32)]],
    pub reals: &'a mut [f32],
    pub scores: &'a mut [i32],
    pub back: &'a mut [u8],
    pub answer: &'a mut [f32],
    pub labels: &'a mut [u8],
    pub indices: &'a mut [u32],
    pub facts: &'a mut [Fact<f32>],
    pub unit_facts: &'a mut [Fact<i32>],
}

/// A case.
pub type Case = fn(&mut Tagging<'_>) -> Answer;

impl From<ImageError> for Stop {
    fn from(_: ImageError) -> Self {
        Self::Memory
    }
}

/// Calls `$with!` with every case: its scalar, its name, its image, its function and its C entry point.
#[macro_export]
macro_rules! for_each_image_case {
    ($with:ident) => {
        $with! {
            f32 image_open LARGE open entry_image_open_f32;
            f32 image_viterbi F32 viterbi_f32 entry_image_viterbi_f32;
            i16 image_viterbi I16 viterbi_i16 entry_image_viterbi_i16;
            i8 image_viterbi I8 viterbi_i8 entry_image_viterbi_i8;
            f32 image_lag4 F32 lag4_f32 entry_image_lag4_f32;
            i16 image_lag4 I16 lag4_i16 entry_image_lag4_i16;
            f32 image_marginals F32 marginals_f32 entry_image_marginals_f32;
            i16 image_marginals I16 marginals_i16 entry_image_marginals_i16;
            f32 image_filter F32 filter entry_image_filter_f32;
            f32 image_n_best F32 n_best entry_image_n_best_f32;
            f32 image_learn F32 learn_f32 entry_image_learn_f32;
            f32 image_gaussian GAUSS gaussian entry_image_gaussian_f32;
            f32 image_given GAUSS given entry_image_given_f32;
            f32 field_open FIELD open_field entry_field_open_f32;
            f32 field_marginals FIELD field_marginals entry_field_marginals_f32;
            f32 field_best FIELD field_best entry_field_best_f32;
            f32 field_loopy FIELD field_loopy entry_field_loopy_f32;
            f32 field_icm FIELD field_icm entry_field_icm_f32;
            f32 field_local FIELD field_local entry_field_local_f32;
            i16 field_best FIELD_I16 best_i16 entry_field_best_i16;
            i8 field_best FIELD_I8 best_i8 entry_field_best_i8;
            i16 field_marginals FIELD_I16 field_marginals_i16 entry_field_marginals_i16;
            i16 field_icm FIELD_I16 icm_i16 entry_field_icm_i16;
            i16 field_local FIELD_I16 local_i16 entry_field_local_i16;
            f32 pairs_64 F32 pairs_64_f32 entry_pairs_64_f32;
            f32 pairs_192 F32 pairs_192_f32 entry_pairs_192_f32;
            i16 pairs_64 F32 pairs_64_i16 entry_pairs_64_i16;
            i16 pairs_192 F32 pairs_192_i16 entry_pairs_192_i16;
        }
    };
}

macro_rules! list {
    ($($scalar:ident $name:ident $image:ident $case:ident $entry:ident;)*) => {
        /// Every case: the scalar's name, its own, its image.
        pub fn all() -> impl Iterator<Item = (&'static str, &'static str, &'static [u32], Case)> {
            [$((stringify!($scalar), stringify!($name), &$image as &'static [u32], $case as Case)),*].into_iter()
        }
    };
}
for_each_image_case!(list);

pub(crate) fn part<X>(all: &mut [X], len: usize) -> Result<&mut [X], Stop> {
    all.get_mut(..len).ok_or(Stop::Memory)
}

/// Opens an image and its chain. A function of its own, so that what lies on the stack meanwhile is gone afterwards. Who uses the
/// chain where it was made has it on the stack once; `?` would have it there twice.
#[inline(never)]
pub(crate) fn chain<W: Weight>(words: &[u32]) -> Result<ChainView<'_, W>, ImageError> {
    Image::open(words)?.chain()
}

/// Opens an image of 64 KiB.
pub fn open(call: &mut Tagging<'_>) -> Answer {
    let image = Image::open(call.words)?;
    let label = call.labels.first_mut().ok_or(Stop::Memory)?;
    *label = image.labels() as u8;
    Ok(Done { floats: 0, labels: 1, memory: 0 })
}

fn viterbi<W: Weight>(
    words: &[u32],
    items: &[&[Item<W>]],
    scores: &mut [W::Score],
    back: &mut [u8],
    answer: &mut [f32],
    labels: &mut [u8],
    score: impl Fn(W::Total) -> f32,
) -> Answer {
    let opened = chain::<W>(words);
    let view = opened.as_ref().map_err(|error| *error)?;
    let scores = part(scores, decoder_len(view.labels()))?;
    let back = part(back, whole_back_len(view.longest(), view.labels()))?;
    let total = view.label(items.iter().copied(), labels, scores, back)?;
    *answer.first_mut().ok_or(Stop::Memory)? = score(total);
    Ok(Done { floats: 1, labels: items.len(), memory: 4 * scores.len() + back.len() })
}

/// A score in units as the bits of a number: to make a number of it would link the emulation of floating point.
fn units(total: i64) -> f32 {
    f32::from_bits(total as u32)
}

/// The best labelling of a sequence.
pub fn viterbi_f32(call: &mut Tagging<'_>) -> Answer {
    viterbi::<f32>(call.words, call.floats, call.reals, call.back, call.answer, call.labels, |[sum, _]| sum)
}

/// The same in fixed point.
pub fn viterbi_i16(call: &mut Tagging<'_>) -> Answer {
    viterbi::<i16>(call.words, call.fixed, call.scores, call.back, call.answer, call.labels, units)
}

/// The same in fixed point, weights in 8 bits.
pub fn viterbi_i8(call: &mut Tagging<'_>) -> Answer {
    viterbi::<i8>(call.words, call.fixed, call.scores, call.back, call.answer, call.labels, units)
}

fn lag4<W: Weight>(
    words: &[u32],
    items: &[&[Item<W>]],
    scores: &mut [W::Score],
    back: &mut [u8],
    labels: &mut [u8],
) -> Answer {
    let opened = chain::<W>(words);
    let view = opened.as_ref().map_err(|error| *error)?;
    let scores = part(scores, decoder_len(view.labels()))?;
    let back = part(back, lagged_back_len(4, view.labels()))?;
    let memory = 4 * scores.len() + back.len();
    stream(view, items, scores, back, labels)?;
    Ok(Done { floats: 0, labels: items.len(), memory })
}

/// What such a stream has on the stack.
#[inline(never)]
fn stream<W: Weight>(
    view: &ChainView<'_, W>,
    items: &[&[Item<W>]],
    scores: &mut [W::Score],
    back: &mut [u8],
    labels: &mut [u8],
) -> Result<(), Stop> {
    let mut made = Decoder::lagged(*view, 4, scores, back);
    let decoder = made.as_mut().map_err(|error| *error)?;
    let mut places = labels.iter_mut();
    for item in items {
        if let Some(label) = decoder.push(item)? {
            *places.next().ok_or(Stop::Memory)? = label;
        }
    }
    decoder.finish(places.into_slice())?;
    Ok(())
}

/// The sequence as a stream, each label four items later.
pub fn lag4_f32(call: &mut Tagging<'_>) -> Answer {
    lag4::<f32>(call.words, call.floats, call.reals, call.back, call.labels)
}

/// The same in fixed point.
pub fn lag4_i16(call: &mut Tagging<'_>) -> Answer {
    lag4::<i16>(call.words, call.fixed, call.scores, call.back, call.labels)
}

/// Marginals.
pub fn marginals_f32(call: &mut Tagging<'_>) -> Answer {
    let image = Image::open(call.words)?;
    let view: ChainView<'_, f32> = image.chain()?;
    let (labels, items) = (view.labels(), call.floats.len());
    let memory = part(call.reals, smooth_len(labels))?;
    let answer = part(call.answer, labels * items)?;
    answer.fill(0.0);
    let mut left = &mut *answer;
    for item in call.floats {
        let (row, after) = core::mem::take(&mut left).split_at_mut_checked(labels).ok_or(Stop::Memory)?;
        view.score(item, row)?;
        left = after;
    }
    view.marginals(answer, memory)?;
    Ok(Done { floats: labels * items, labels: 0, memory: 4 * (labels * items + memory.len()) })
}

/// Marginals in fixed point, as logarithms.
pub fn marginals_i16(call: &mut Tagging<'_>) -> Answer {
    let image = Image::open(call.words)?;
    let view: ChainView<'_, i16> = image.chain()?;
    let (labels, items) = (view.labels(), call.fixed.len());
    let (rows, rest) = call.scores.split_at_mut_checked(labels * items).ok_or(Stop::Memory)?;
    let memory = part(rest, marginals_len(labels))?;
    rows.fill(0);
    let mut left = &mut *rows;
    for item in call.fixed {
        let (row, after) = core::mem::take(&mut left).split_at_mut_checked(labels).ok_or(Stop::Memory)?;
        view.score(item, row)?;
        left = after;
    }
    view.log_marginals(rows, memory)?;
    view.to_f32(rows, call.answer);
    Ok(Done { floats: labels * items, labels: 0, memory: 4 * (rows.len() + memory.len()) })
}

/// Filtered marginals of each item; the last ones are the answer.
pub fn filter(call: &mut Tagging<'_>) -> Answer {
    let image = Image::open(call.words)?;
    let view: ChainView<'_, f32> = image.chain()?;
    let labels = view.labels();
    let (row, rest) = call.reals.split_at_mut_checked(labels).ok_or(Stop::Memory)?;
    let memory = part(rest, filter_len(labels))?;
    let used = 4 * (labels + memory.len());
    let mut filter = Filter::new(labels, |i, j| view.transition(i, j), memory)?;
    for item in call.floats {
        row.fill(0.0);
        view.score(item, row)?;
        let p = filter.push(row)?;
        call.answer.iter_mut().zip(p).for_each(|(a, &p)| *a = p);
    }
    Ok(Done { floats: labels, labels: 0, memory: used })
}

/// The scores of the five best labellings of the first third of the sequence, the labels of all but the best.
pub fn n_best(call: &mut Tagging<'_>) -> Answer {
    let opened = chain::<f32>(call.words);
    five_best(opened.as_ref().map_err(|error| *error)?, call)
}

#[inline(never)]
fn five_best(view: &ChainView<'_, f32>, call: &mut Tagging<'_>) -> Answer {
    // As in the other case of the N best: the compiler makes the two calls the same one.
    const N: usize = 5;
    let third = call.floats.get(..call.floats.len() / 3).ok_or(Stop::Memory)?;
    let (labels, items) = (view.labels(), third.len());
    let (rows, rest) = call.reals.split_at_mut_checked(labels * items).ok_or(Stop::Memory)?;
    let (table, rest) = rest.split_at_mut_checked(labels * labels).ok_or(Stop::Memory)?;
    let memory = part(rest, Chain::<f32>::n_best_len(labels, N))?;
    let (paths, rest) = call.indices.split_at_mut_checked(N * items).ok_or(Stop::Memory)?;
    let back = part(rest, Chain::<f32>::n_best_back_len(items, labels, N))?;
    let mut left = &mut *rows;
    for item in third {
        let (row, after) = core::mem::take(&mut left).split_at_mut_checked(labels).ok_or(Stop::Memory)?;
        view.score(item, row)?;
        left = after;
    }
    view.transitions(table)?;
    let found = view.plain(rows, table)?.n_best(N, paths, part(call.answer, N)?, back, memory)?;
    put(paths.get(items..).unwrap_or(&[]), call.labels);
    let words = rows.len() + table.len() + memory.len() + paths.len() + back.len();
    Ok(Done { floats: found, labels: (N - 1) * items, memory: 4 * words })
}

/// Inputs that are sixteenths.
fn inputs(x: &mut [f32]) {
    x.iter_mut().zip(1u16..).for_each(|(x, i)| *x = f32::from(i * 7 % 32) / 16.0 - 1.0);
}

/// Means and deviations of a Gaussian CRF.
pub fn gaussian(call: &mut Tagging<'_>) -> Answer {
    let view = GaussianImage::open(call.words)?.view();
    let p = view.outputs();
    let (x, rest) = call.reals.split_at_mut_checked(view.inputs()).ok_or(Stop::Memory)?;
    let memory = part(rest, mean_len(p))?;
    inputs(x);
    let (mean, rest) = call.answer.split_at_mut_checked(p).ok_or(Stop::Memory)?;
    view.model().mean(x, mean, memory)?;
    view.model().deviations(part(rest, p)?)?;
    Ok(Done { floats: 2 * p, labels: 0, memory: 4 * memory.len() })
}

/// Both when every third output is known.
pub fn given(call: &mut Tagging<'_>) -> Answer {
    let model = GaussianImage::open(call.words)?.view().model();
    let view = model.terms();
    let (p, entries) = (view.outputs(), view.entries());
    let (x, rest) = call.reals.split_at_mut_checked(view.inputs()).ok_or(Stop::Memory)?;
    let (memory, rest) = rest.split_at_mut_checked(mean_len(p)).ok_or(Stop::Memory)?;
    let (kept, rest) = rest.split_at_mut_checked(given_len(p, entries)).ok_or(Stop::Memory)?;
    let (work, rest) = rest.split_at_mut_checked(deviations_len(p, entries)).ok_or(Stop::Memory)?;
    let y = part(rest, p)?;
    inputs(x);
    inputs(y);
    static KNOWN: [bool; 64] = {
        let mut known = [false; 64];
        let mut i = 0;
        while i < 64 {
            known[i] = i % 3 == 0;
            i += 1;
        }
        known
    };
    let (mean, rest) = call.answer.split_at_mut_checked(p).ok_or(Stop::Memory)?;
    model.mean(x, mean, memory)?;
    let given = model.given(KNOWN.get(..p).ok_or(Stop::Memory)?, kept)?;
    given.revise(y, mean, memory)?;
    given.deviations(part(rest, p)?, work)?;
    let used = memory.len() + kept.len() + work.len();
    Ok(Done { floats: 2 * p, labels: 0, memory: 4 * used })
}

/// The inner loop alone, over so many labels: two lengths show what one pair costs.
#[inline(never)]
fn pairs<W: Weight>(before: &[W::Score], row: &[u32]) -> (W::Score, u8) {
    W::best(before, row)
}

fn pairs_f32(call: &mut Tagging<'_>, labels: usize) -> Answer {
    let best = pairs::<f32>(part(call.reals, labels)?, call.words.get(..labels).ok_or(Stop::Memory)?);
    *call.labels.first_mut().ok_or(Stop::Memory)? = best.1;
    Ok(Done { floats: 0, labels: 1, memory: 0 })
}

fn pairs_i16(call: &mut Tagging<'_>, labels: usize) -> Answer {
    let best = pairs::<i16>(part(call.scores, labels)?, call.words.get(..labels / 2).ok_or(Stop::Memory)?);
    *call.labels.first_mut().ok_or(Stop::Memory)? = best.1;
    Ok(Done { floats: 0, labels: 1, memory: 0 })
}

/// 64 labels.
pub fn pairs_64_f32(call: &mut Tagging<'_>) -> Answer {
    pairs_f32(call, 64)
}

/// 192 labels.
pub fn pairs_192_f32(call: &mut Tagging<'_>) -> Answer {
    pairs_f32(call, 192)
}

/// 64 labels in fixed point.
pub fn pairs_64_i16(call: &mut Tagging<'_>) -> Answer {
    pairs_i16(call, 64)
}

/// 192 labels in fixed point.
pub fn pairs_192_i16(call: &mut Tagging<'_>) -> Answer {
    pairs_i16(call, 192)
}
