//! Probabilities of labels on chains: scores of items row by row, marginals of a whole sequence, filtered ones of an endless one.
//! Functions that end in `fixed` are for images in fixed point, the others for `f32`.

use crate::field::Work;
use crate::{
    FILTER, GibbsiteFeature, GibbsiteFeatureFixed, GibbsiteModel, GibbsiteStatus, Made, Status, give, image,
    lend, put, read, room, status, write,
};
use gibbsite_core::image::{ChainView, Image, Scalar, Weight};
use gibbsite_core::infer::chain::Chain;
use gibbsite_core::infer::stream::Filter;

/// A sequence that is being followed: room for what `gibbsite_filter_start` makes. Not to be looked into.
#[repr(C)]
#[derive(Debug)]
pub struct GibbsiteFilter {
    /// Not to be looked into.
    pub opaque: [u64; 10],
}

const _: () = assert!(size_of::<Made<Filter<'static, f32>>>() <= size_of::<GibbsiteFilter>());
const _: () = assert!(align_of::<Made<Filter<'static, f32>>>() <= align_of::<GibbsiteFilter>());

/// A row of scores; zeros on an error.
fn score<W: Weight>(
    image: &Image<'static>,
    item: impl Iterator<Item = (u32, W::Value)>,
    row: &mut [W::Score],
) -> Result<(), Status> {
    let view: ChainView<'_, W> = image.chain()?;
    if let Err(error) = view.score_of(item, row) {
        row.fill(W::Score::default());
        return Err(error.into());
    }
    Ok(())
}

/// The scores of an item's labels by its attributes, `labels` floats: a row for `gibbsite_marginals`, and scores for
/// `gibbsite_filter_push`. Zeros on an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_score(
    model: *const GibbsiteModel,
    features: *const GibbsiteFeature,
    count: usize,
    scores: *mut f32,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises are those that the functions called here ask for.
    status(unsafe {
        image(model).and_then(|image| {
            if image.scalar() != Scalar::F32 {
                return Err(Status::Scalar);
            }
            let item = read(features, count)?.iter().map(|f| (f.attribute, f.value));
            score::<f32>(image, item, write(scores, image.labels())?)
        })
    })
}

/// `gibbsite_score` in fixed point: units of the model's facts, a row for `gibbsite_marginals_fixed`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_score_fixed(
    model: *const GibbsiteModel,
    features: *const GibbsiteFeatureFixed,
    count: usize,
    scores: *mut i32,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises are those that the functions called here ask for.
    status(unsafe {
        image(model).and_then(|image| {
            let scalar = image.scalar();
            if scalar == Scalar::F32 {
                return Err(Status::Scalar);
            }
            let item = read(features, count)?.iter().map(|f| (f.attribute, f.value));
            let row = write(scores, image.labels())?;
            if scalar == Scalar::I16 { score::<i16>(image, item, row) } else { score::<i8>(image, item, row) }
        })
    })
}

/// The probability of each label of each item, in the place of the scores: `rows` are `items` rows of `gibbsite_score`, one
/// after the other. `memory` are `memory_marginals` floats of the model's facts. After `GIBBSITE_STATUS_IMPOSSIBLE` the rows hold nothing of
/// use, after other errors they are as before. Scores more than 55 (in natural logarithms) behind the best of their row count as so far behind.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_marginals(
    model: *const GibbsiteModel,
    rows: *mut f32,
    items: usize,
    memory: *mut f32,
    memory_count: usize,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises are those that the functions called here ask for; all bits are floats.
    status(unsafe {
        image(model).and_then(|image| {
            let view = image.chain::<f32>()?;
            let count = items.checked_mul(view.labels()).ok_or(Status::Pointer)?;
            Ok(view.marginals(lend(rows, count)?, write(memory, memory_count)?)?)
        })
    })
}

/// The logarithm of the probability of each label of each item, in units of the model's facts and in the place of the scores, as
/// `gibbsite_marginals`, by additions, comparisons and a table. What is impossible is -2^29. `memory` are `memory_marginals` words of the facts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_marginals_fixed(
    model: *const GibbsiteModel,
    rows: *mut i32,
    items: usize,
    memory: *mut i32,
    memory_count: usize,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises are those that the functions called here ask for; all bits are numbers.
    status(unsafe {
        image(model).and_then(|image| {
            let count = items.checked_mul(image.labels()).ok_or(Status::Pointer)?;
            Ok(match image.scalar() {
                Scalar::F32 => return Err(Status::Scalar),
                Scalar::I16 => {
                    image.chain::<i16>()?.log_marginals(lend(rows, count)?, write(memory, memory_count)?)
                }
                Scalar::I8 => {
                    image.chain::<i8>()?.log_marginals(lend(rows, count)?, write(memory, memory_count)?)
                }
            }?)
        })
    })
}

/// Words of memory for the `n` best: transitions, what `n_best` works in, and the answer.
fn n_best_words(labels: usize, items: usize, n: usize) -> usize {
    let work =
        Chain::<f32>::n_best_len(labels, n).saturating_add(Chain::<f32>::n_best_back_len(items, labels, n));
    let answer = n.saturating_mul(items.saturating_add(1));
    work.saturating_add(labels.saturating_mul(labels)).saturating_add(answer)
}

/// Tells how many words of memory `gibbsite_n_best` needs for `items` items.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_n_best_memory(
    model: *const GibbsiteModel,
    items: usize,
    n: usize,
    needed: *mut usize,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises are those that the functions called here ask for.
    status(unsafe { image(model).and_then(|image| put(needed, n_best_words(image.labels(), items, n))) })
}

/// The `n` best labellings of a sequence, best first, of a model with `f32` weights: `rows` are `items` rows of `gibbsite_score`, one after the other.
/// Writes how many labellings there are to `found` (fewer than `n` if no more are possible), `items` labels of each to `labels`, one
/// labelling after the other, and the score of each to `scores`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_n_best(
    model: *const GibbsiteModel,
    rows: *const f32,
    items: usize,
    n: usize,
    labels: *mut u32,
    scores: *mut f32,
    found: *mut usize,
    memory: *mut u32,
    memory_count: usize,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises are those that the functions called here ask for.
    status(unsafe {
        image(model).and_then(|image| {
            let view = image.chain::<f32>()?;
            let each = view.labels();
            let rows = read(rows, items.checked_mul(each).ok_or(Status::Pointer)?)?;
            room(labels)?;
            room(scores)?;
            room(found)?;
            let mut work = Work(write(memory, memory_count)?);
            let table = work.numbers(each.saturating_mul(each))?;
            view.transitions(table)?;
            let (paths, best) = (work.words(n.saturating_mul(items))?, work.numbers(n)?);
            let back = work.words(Chain::<f32>::n_best_back_len(items, each, n))?;
            let lists = work.numbers(Chain::<f32>::n_best_len(each, n))?;
            let count = view.plain(rows, table)?.n_best(n, paths, best, back, lists)?;
            give(labels, paths.get(..count.saturating_mul(items)).unwrap_or(&[]))?;
            give(scores, best.get(..count).unwrap_or(&[]))?;
            put(found, count)
        })
    })
}

/// Makes a filter of a model with `f32` weights, for sequences without an end. `memory` are `memory_filter` floats of the model's facts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_filter_start(
    filter: *mut GibbsiteFilter,
    model: *const GibbsiteModel,
    memory: *mut f32,
    memory_count: usize,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises are those that the functions called here ask for.
    status(unsafe {
        image(model).and_then(|image| {
            let view = image.chain::<f32>()?;
            room(filter)?;
            let memory = write(memory, memory_count)?;
            let content = Filter::new(view.labels(), |from, to| view.transition(from, to), memory)?;
            put(filter.cast(), Made { mark: FILTER, content })
        })
    })
}

/// Takes the next item, by the `labels` scores that `gibbsite_score` gives it, and writes the probability of each of its labels, given this
/// item and those before. On an error the filter is as before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_filter_push(
    filter: *mut GibbsiteFilter,
    scores: *const f32,
    labels: usize,
    probabilities: *mut f32,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises are those that the functions called here ask for; only `gibbsite_filter_start` writes this mark,
    // after a `Filter`.
    status(unsafe {
        crate::made_mut::<_, Filter<'static, f32>>(filter, FILTER).and_then(|filter| {
            room(probabilities)?;
            give(probabilities, filter.push(read(scores, labels)?)?)
        })
    })
}
