//! Fields over the columns of a table: exact answers where the image has a junction tree, belief propagation, coordinate ascent,
//! and one output given all others. Functions that end in `fixed` are for images in fixed point, the others for `f32`.

use crate::{
    FIELD, GibbsiteFeature, GibbsiteFeatureFixed, GibbsiteModel, GibbsiteStatus, Made, Status, give, made,
    put, read, status, write,
};
use core::slice;
use gibbsite_core::error::GraphError;
use gibbsite_core::graph::{FactorGraph, Incidence};
use gibbsite_core::image::{FieldImage, FieldView, Scalar, Weight};
use gibbsite_core::infer::fork::Sequential;
use gibbsite_core::infer::junction::{Fact, Junction, Memory};
use gibbsite_core::infer::loopy::{Dimensions, Loopy, Mode, Params};
use gibbsite_core::infer::plan::Plan;
use gibbsite_core::infer::{conditional, icm, log_conditional};
use gibbsite_core::score::Score;

/// Facts about a field.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct GibbsiteFieldFacts {
    /// Outputs.
    pub outputs: u32,
    /// Labels of all outputs together: entries of all marginals.
    pub labels: u32,
    /// Attributes.
    pub attributes: u32,
    /// 1 if the image has a junction tree, so that the exact functions answer.
    pub exact: u32,
    /// Words of memory that `gibbsite_field_exact_memory` needs.
    pub memory_exact_memory: u32,
    /// Words of memory that `gibbsite_field_loopy` needs; 0 in fixed point.
    pub memory_loopy: u32,
    /// Words of memory that `gibbsite_field_icm` and `gibbsite_field_local` need.
    pub memory_icm: u32,
    /// 0: `f32`, 1: fixed point in 16 bits, 2: in 8 bits.
    pub scalar: u32,
    /// What a unit of fixed point is worth, in natural logarithms; 1 for `f32`.
    pub unit: f32,
}

impl From<GraphError> for Status {
    fn from(error: GraphError) -> Self {
        match error {
            GraphError::BadValue(_) => Self::BadValue,
            _ => Self::Damaged,
        }
    }
}

const _: () = assert!(size_of::<Made<FieldImage<'static>>>() <= size_of::<GibbsiteModel>());
const _: () =
    assert!(align_of::<Fact<f32>>() <= align_of::<u32>() && size_of::<Fact<f32>>().is_multiple_of(4));
const _: () = assert!(align_of::<Fact<i32>>() <= align_of::<u32>());
const _: () = assert!(size_of::<Fact<i32>>() == size_of::<Fact<f32>>());
const FACT_WORDS: usize = size_of::<Fact<f32>>() / 4;

/// Numbers that the words of the caller's memory can hold: `f32` and `i32`.
///
/// # Safety
/// Size and alignment are those of `u32`, any bits are a number, and a [`Fact`] of zeros is a fact.
pub(crate) unsafe trait Number: Score {}
// SAFETY: as said of floats; of facts it is checked above.
unsafe impl Number for f32 {}
// SAFETY: the same.
unsafe impl Number for i32 {}

/// A kind of weights, and how C writes an attribute with its value for it.
trait Kind: Weight<Score: Number> {
    type Feature;
    fn pair(feature: &Self::Feature) -> (u32, Self::Value);
}

impl Kind for f32 {
    type Feature = GibbsiteFeature;
    fn pair(feature: &GibbsiteFeature) -> (u32, f32) {
        (feature.attribute, feature.value)
    }
}

impl Kind for i16 {
    type Feature = GibbsiteFeatureFixed;
    fn pair(feature: &GibbsiteFeatureFixed) -> (u32, i32) {
        (feature.attribute, feature.value)
    }
}

impl Kind for i8 {
    type Feature = GibbsiteFeatureFixed;
    fn pair(feature: &GibbsiteFeatureFixed) -> (u32, i32) {
        (feature.attribute, feature.value)
    }
}

/// Memory of the caller, handed out piece by piece. All of it is zeros at first.
pub(crate) struct Work<'m>(pub(crate) &'m mut [u32]);

impl<'m> Work<'m> {
    pub(crate) fn words(&mut self, len: usize) -> Result<&'m mut [u32], Status> {
        let (piece, rest) = core::mem::take(&mut self.0).split_at_mut_checked(len).ok_or(Status::Memory)?;
        self.0 = rest;
        Ok(piece)
    }

    pub(crate) fn numbers<T: Number>(&mut self, len: usize) -> Result<&'m mut [T], Status> {
        let words = self.words(len)?;
        // SAFETY: size, alignment and bits are as `Number` says, and the words are given to nobody else.
        Ok(unsafe { slice::from_raw_parts_mut(words.as_mut_ptr().cast(), len) })
    }

    fn facts<T: Number>(&mut self, len: usize) -> Result<&'m mut [Fact<T>], Status> {
        let words = self.words(len.checked_mul(FACT_WORDS).ok_or(Status::Memory)?)?;
        // SAFETY: there is room, the alignment is enough (checked above), zeros are a `Fact` of zeros and `false`, and the words are
        // given to nobody else.
        Ok(unsafe { slice::from_raw_parts_mut(words.as_mut_ptr().cast(), len) })
    }
}

/// What a sample is: attributes with values, and for each output its label if that is known, else a negative number.
struct Sample<'a, W: Kind> {
    view: FieldView<'static, W>,
    features: &'a [W::Feature],
    known: &'a [i32],
}

impl<'a, W: Kind> Sample<'a, W> {
    /// # Safety
    /// As for `image` and `read` of `lib.rs`; `known` may be null.
    unsafe fn new(
        model: *const GibbsiteModel,
        features: *const W::Feature,
        count: usize,
        known: *const i32,
    ) -> Result<Self, Status> {
        // SAFETY: the caller's promises are those that `image` and `read` ask for.
        unsafe {
            let view = image(model)?.field()?;
            let known = if known.is_null() { &[] } else { read(known, view.image().variables())? };
            Ok(Self { view, features: read(features, count)?, known })
        }
    }

    /// The factor graph of the sample; its tables lie in `work`.
    #[inline(never)]
    fn graph<'m>(&self, work: &mut Work<'m>) -> Result<FactorGraph<'m, W::Score>, Status> {
        let tables = work.numbers(self.view.image().tables_len())?;
        self.view.tables_of(self.features.iter().map(W::pair), tables)?;
        for (v, &label) in self.known.iter().enumerate() {
            if let Ok(label) = u32::try_from(label) {
                self.view.observe(tables, v, label).map_err(|_| Status::Unknown)?;
            }
        }
        Ok(self.view.graph(tables)?)
    }

    /// Runs the junction tree.
    #[inline(never)]
    fn exact<'m>(
        &self,
        work: &mut Work<'m>,
        run: impl FnOnce(&mut Junction<'_, '_, W::Score>, &mut Sequential<'_, W::Score>) -> Result<(), Status>,
    ) -> Result<(), Status> {
        let graph = self.graph(work)?;
        let counters = work.words(Plan::open_len(graph.variables(), graph.factors()))?;
        let plan = self.plan(&graph, counters)?;
        let memory = Memory {
            messages: work.numbers(plan.messages_len())?,
            facts: work.facts(plan.clusters())?,
            belief: work.numbers(plan.belief_len())?,
            separator: work.numbers(plan.separator_len())?,
            index: work.words(plan.index_len())?,
            starts: work.words(graph.variables())?,
        };
        let mut fork = Sequential { temp: work.numbers(plan.temp_len())? };
        run(&mut Junction::new(plan, graph, memory)?, &mut fork)
    }

    /// The junction tree; an image without one has no exact answers.
    fn plan(&self, graph: &FactorGraph<'_, W::Score>, counters: &mut [u32]) -> Result<Plan<'static>, Status> {
        if self.view.image().has_plan() { Ok(self.view.plan(graph, counters)?) } else { Err(Status::Unknown) }
    }
}

/// Calls a function for the image's kind of fixed point.
macro_rules! fixed {
    ($model:expr, $function:ident($($argument:expr),*)) => {
        image($model).and_then(|image| match image.scalar() {
            Scalar::I16 => $function::<i16>($model, $($argument),*),
            Scalar::I8 => $function::<i8>($model, $($argument),*),
            Scalar::F32 => Err(Status::Scalar),
        })
    };
}

/// # Safety
/// As for `image` of `lib.rs`.
unsafe fn image<'a>(at: *const GibbsiteModel) -> Result<&'a FieldImage<'static>, Status> {
    // SAFETY: the caller's promise; only `gibbsite_field_open` writes this mark.
    unsafe { made(at, FIELD) }
}

/// Labels of all outputs together.
fn labels(image: &FieldImage<'_>) -> usize {
    image.cards().iter().fold(0, |sum: usize, &c| sum.saturating_add(c as usize))
}

/// Words for coordinate ascent, and for one output given the others: tables, incidence, labels, and scratch for two rows of labels.
fn icm_words(image: &FieldImage<'_>, size: &Dimensions) -> usize {
    let graph = image.tables_len().saturating_add(Incidence::len(size.variables, size.edges));
    graph.saturating_add(size.variables).saturating_add(icm::scratch_len(size))
}

/// Checks an image of `count` words that holds a field and makes a model of it, for the functions below. The words are used where they are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_field_open(
    model: *mut GibbsiteModel,
    words: *const u32,
    count: usize,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises about `words` and `model` are those that `read` and `put` ask for.
    status(unsafe {
        read(words, count).and_then(|words| Ok(FieldImage::open(words)?)).and_then(|image| {
            put(model.cast::<Made<FieldImage<'static>>>(), Made { mark: FIELD, content: image })
        })
    })
}

/// Tells how many outputs, labels and attributes a field has, and how much memory its functions need.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_field_facts_of(
    model: *const GibbsiteModel,
    facts: *mut GibbsiteFieldFacts,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises about `model` and `facts` are those that `image` and `put` ask for.
    status(unsafe {
        image(model).and_then(|image| {
            let size = image.dimensions();
            let loopy = Loopy::<f32>::words_len(&size).saturating_add(Loopy::<f32>::reals_len(&size));
            let loopy = loopy.saturating_add(image.tables_len()).saturating_add(size.labels);
            let plain = image.scalar() == Scalar::F32;
            let counters = Plan::open_len(size.variables, size.factors);
            let small = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
            let found = GibbsiteFieldFacts {
                outputs: small(size.variables),
                labels: small(size.labels),
                attributes: small(image.attributes()),
                exact: u32::from(image.has_plan()),
                memory_exact_memory: small(image.tables_len().saturating_add(counters)),
                memory_loopy: if plain { small(loopy) } else { 0 },
                memory_icm: small(icm_words(image, &size)),
                scalar: image.scalar() as u32,
                unit: image.scales().unit,
            };
            put(facts, found)
        })
    })
}

/// Tells how many words of memory `gibbsite_field_marginals` and `gibbsite_field_best` need.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_field_exact_memory(
    model: *const GibbsiteModel,
    memory: *mut u32,
    memory_count: usize,
    needed: *mut usize,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises are those that the functions called here ask for.
    status(unsafe {
        image(model).and_then(|image| match image.scalar() {
            Scalar::F32 => exact_memory::<f32>(model, memory, memory_count, needed),
            Scalar::I16 => exact_memory::<i16>(model, memory, memory_count, needed),
            Scalar::I8 => exact_memory::<i8>(model, memory, memory_count, needed),
        })
    })
}

/// # Safety
/// As for `gibbsite_field_exact_memory`.
unsafe fn exact_memory<W: Kind>(
    model: *const GibbsiteModel,
    memory: *mut u32,
    memory_count: usize,
    needed: *mut usize,
) -> Result<(), Status> {
    // SAFETY: the caller's promises are those that the functions called here ask for.
    unsafe {
        let sample = Sample::<W>::new(model, core::ptr::null(), 0, core::ptr::null())?;
        let mut work = Work(write(memory, memory_count)?);
        let graph = sample.graph(&mut work)?;
        let counters = Plan::open_len(graph.variables(), graph.factors());
        let plan = sample.plan(&graph, work.words(counters)?)?;
        let image = sample.view.image();
        let numbers = plan.messages_len() + plan.belief_len() + plan.separator_len() + plan.temp_len();
        let words = plan.index_len() + graph.variables() + counters + FACT_WORDS * plan.clusters();
        put(needed, numbers + words + image.tables_len() + labels(image))
    }
}

/// Finds an attribute of a field by its name of `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_field_attribute(
    model: *const GibbsiteModel,
    name: *const u8,
    length: usize,
    attribute: *mut u32,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises about the pointers are those that `image`, `read` and `put` ask for.
    status(unsafe {
        image(model).and_then(|image| {
            let found = image.attribute(read(name, length)?).ok_or(Status::Unknown)?;
            put(attribute, found)
        })
    })
}

/// The exact probability of each label of each output, one output after the other. `known` has for each output its label, or -1
/// where that is not known; null if none is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_field_marginals(
    model: *const GibbsiteModel,
    features: *const GibbsiteFeature,
    count: usize,
    known: *const i32,
    marginals: *mut f32,
    memory: *mut u32,
    memory_count: usize,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises are those that the functions called here ask for.
    status(unsafe {
        Sample::<f32>::new(model, features, count, known).and_then(|sample| {
            let mut work = Work(write(memory, memory_count)?);
            let found = work.numbers(labels(sample.view.image()))?;
            sample.exact(&mut work, |junction, fork| {
                junction.sum(fork)?;
                Ok(junction.marginals(fork, found)?)
            })?;
            give(marginals, found)
        })
    })
}

/// `gibbsite_field_marginals` in fixed point: logarithms of the probabilities, in units of the field's facts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_field_marginals_fixed(
    model: *const GibbsiteModel,
    features: *const GibbsiteFeatureFixed,
    count: usize,
    known: *const i32,
    logarithms: *mut i32,
    memory: *mut u32,
    memory_count: usize,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises are those that the function called here asks for.
    status(unsafe { fixed!(model, log_marginals(features, count, known, logarithms, memory, memory_count)) })
}

/// # Safety
/// As for `gibbsite_field_marginals_fixed`.
unsafe fn log_marginals<W: Kind<Score = i32>>(
    model: *const GibbsiteModel,
    features: *const W::Feature,
    count: usize,
    known: *const i32,
    logarithms: *mut i32,
    memory: *mut u32,
    memory_count: usize,
) -> Result<(), Status> {
    // SAFETY: the caller's promises are those that the functions called here ask for.
    unsafe {
        let sample = Sample::<W>::new(model, features, count, known)?;
        let table = sample.view.log_add().ok_or(Status::Unknown)?;
        let mut work = Work(write(memory, memory_count)?);
        let found = work.numbers(labels(sample.view.image()))?;
        sample.exact(&mut work, |junction, fork| {
            junction.log_sum(&table, fork)?;
            Ok(junction.log_marginals(&table, fork, found)?)
        })?;
        give(logarithms, found)
    }
}

/// The most probable labels of all outputs together, exactly. `known` as in `gibbsite_field_marginals`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_field_best(
    model: *const GibbsiteModel,
    features: *const GibbsiteFeature,
    count: usize,
    known: *const i32,
    labels: *mut u32,
    memory: *mut u32,
    memory_count: usize,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises are those that the function called here asks for.
    status(unsafe { best::<f32>(model, features, count, known, labels, memory, memory_count) })
}

/// `gibbsite_field_best` in fixed point.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_field_best_fixed(
    model: *const GibbsiteModel,
    features: *const GibbsiteFeatureFixed,
    count: usize,
    known: *const i32,
    labels: *mut u32,
    memory: *mut u32,
    memory_count: usize,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises are those that the function called here asks for.
    status(unsafe { fixed!(model, best(features, count, known, labels, memory, memory_count)) })
}

/// # Safety
/// As for `gibbsite_field_best`.
unsafe fn best<W: Kind>(
    model: *const GibbsiteModel,
    features: *const W::Feature,
    count: usize,
    known: *const i32,
    labels: *mut u32,
    memory: *mut u32,
    memory_count: usize,
) -> Result<(), Status> {
    // SAFETY: the caller's promises are those that the functions called here ask for.
    unsafe {
        let sample = Sample::<W>::new(model, features, count, known)?;
        let mut work = Work(write(memory, memory_count)?);
        let found = work.words(sample.view.image().variables())?;
        sample.exact(&mut work, |junction, fork| {
            junction.maximise(fork)?;
            Ok(junction.decode(found)?)
        })?;
        give(labels, found)
    }
}

/// Estimates of what `gibbsite_field_marginals` computes, by at most `iterations` rounds of belief propagation: for fields that are too
/// wide for a junction tree. `converged` tells whether the messages came to rest.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_field_loopy(
    model: *const GibbsiteModel,
    features: *const GibbsiteFeature,
    count: usize,
    known: *const i32,
    iterations: u32,
    marginals: *mut f32,
    converged: *mut bool,
    memory: *mut u32,
    memory_count: usize,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises are those that the functions called here ask for.
    status(unsafe {
        Sample::<f32>::new(model, features, count, known).and_then(|sample| {
            let mut work = Work(write(memory, memory_count)?);
            let found = work.numbers(labels(sample.view.image()))?;
            let graph = sample.graph(&mut work)?;
            let size = Dimensions::of(&graph);
            let words = work.words(Loopy::<f32>::words_len(&size))?;
            let reals = work.numbers(Loopy::<f32>::reals_len(&size))?;
            let mut loopy = Loopy::idle(graph, Mode::Sum);
            loopy.lend(words, reals)?;
            let info = loopy.run(&Params { max_iterations: iterations, ..Params::default() })?;
            loopy.marginals(found)?;
            put(converged, info.converged)?;
            give(marginals, found)
        })
    })
}

/// Labels that no change of a single one makes more probable, from those in `labels` on, in at most `sweeps` rounds. `known` as in
/// `gibbsite_field_marginals`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_field_icm(
    model: *const GibbsiteModel,
    features: *const GibbsiteFeature,
    count: usize,
    known: *const i32,
    sweeps: u32,
    labels: *mut u32,
    memory: *mut u32,
    memory_count: usize,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises are those that the function called here asks for.
    status(unsafe { ascend::<f32>(model, features, count, known, sweeps, labels, memory, memory_count) })
}

/// `gibbsite_field_icm` in fixed point.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_field_icm_fixed(
    model: *const GibbsiteModel,
    features: *const GibbsiteFeatureFixed,
    count: usize,
    known: *const i32,
    sweeps: u32,
    labels: *mut u32,
    memory: *mut u32,
    memory_count: usize,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises are those that the function called here asks for.
    status(unsafe { fixed!(model, ascend(features, count, known, sweeps, labels, memory, memory_count)) })
}

/// # Safety
/// As for `gibbsite_field_icm`.
#[allow(clippy::too_many_arguments)] // As many as C has.
unsafe fn ascend<W: Kind>(
    model: *const GibbsiteModel,
    features: *const W::Feature,
    count: usize,
    known: *const i32,
    sweeps: u32,
    labels: *mut u32,
    memory: *mut u32,
    memory_count: usize,
) -> Result<(), Status> {
    // SAFETY: the caller's promises are those that the functions called here ask for.
    unsafe {
        let sample = Sample::<W>::new(model, features, count, known)?;
        let mut work = Work(write(memory, memory_count)?);
        let found = work.words(sample.view.image().variables())?;
        found.copy_from_slice(read(labels.cast_const(), found.len())?);
        let graph = sample.graph(&mut work)?;
        let size = Dimensions::of(&graph);
        let incidence = Incidence::build(&graph, work.words(Incidence::len(size.variables, size.edges))?)?;
        icm::ascend(&graph, &incidence, found, sweeps, work.numbers(icm::scratch_len(&size))?)?;
        give(labels, found)
    }
}

/// The probability of each label of one output, given the labels of all others in `labels` (its own there does not matter).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_field_local(
    model: *const GibbsiteModel,
    features: *const GibbsiteFeature,
    count: usize,
    labels: *const u32,
    output: u32,
    probabilities: *mut f32,
    memory: *mut u32,
    memory_count: usize,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises are those that the function called here asks for.
    status(unsafe {
        local::<f32>(
            model,
            (features, count),
            (labels, output),
            probabilities,
            (memory, memory_count),
            |_, graph, incidence, labels, out, scratch| {
                Ok(conditional(graph, incidence, labels, output, out, scratch)?)
            },
        )
    })
}

/// `gibbsite_field_local` in fixed point: logarithms of the probabilities, in units of the field's facts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_field_local_fixed(
    model: *const GibbsiteModel,
    features: *const GibbsiteFeatureFixed,
    count: usize,
    labels: *const u32,
    output: u32,
    logarithms: *mut i32,
    memory: *mut u32,
    memory_count: usize,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises are those that the function called here asks for.
    status(unsafe {
        fixed!(model, log_local(features, count, labels, output, logarithms, memory, memory_count))
    })
}

/// # Safety
/// As for `gibbsite_field_local_fixed`.
#[allow(clippy::too_many_arguments)] // As many as C has.
unsafe fn log_local<W: Kind<Score = i32>>(
    model: *const GibbsiteModel,
    features: *const W::Feature,
    count: usize,
    labels: *const u32,
    output: u32,
    logarithms: *mut i32,
    memory: *mut u32,
    memory_count: usize,
) -> Result<(), Status> {
    // SAFETY: the caller's promises are those that the function called here asks for.
    unsafe {
        local::<W>(
            model,
            (features, count),
            (labels, output),
            logarithms,
            (memory, memory_count),
            |view, graph, incidence, labels, out, scratch| {
                let table = view.log_add().ok_or(Status::Unknown)?;
                Ok(log_conditional(graph, incidence, labels, output, &table, out, scratch)?)
            },
        )
    }
}

/// One output given the others: what both kinds of numbers share.
///
/// # Safety
/// As for `gibbsite_field_local`.
unsafe fn local<W: Kind>(
    model: *const GibbsiteModel,
    (features, count): (*const W::Feature, usize),
    (labels, output): (*const u32, u32),
    answer: *mut W::Score,
    (memory, memory_count): (*mut u32, usize),
    run: impl FnOnce(
        &FieldView<'static, W>,
        &FactorGraph<'_, W::Score>,
        &Incidence<'_>,
        &[u32],
        &mut [W::Score],
        &mut [W::Score],
    ) -> Result<(), Status>,
) -> Result<(), Status> {
    // SAFETY: the caller's promises are those that the functions called here ask for.
    unsafe {
        let sample = Sample::<W>::new(model, features, count, core::ptr::null())?;
        let mut work = Work(write(memory, memory_count)?);
        let cards = sample.view.image().cards();
        let card = cards.get(output as usize).copied().ok_or(Status::Unknown)? as usize;
        let (found, scratch) = (work.numbers(card)?, work.numbers(card)?);
        let graph = sample.graph(&mut work)?;
        let incidence =
            Incidence::build(&graph, work.words(Incidence::len(graph.variables(), graph.edges()))?)?;
        let labels = read(labels, graph.variables())?;
        let same = labels.iter().zip(cards).all(|(label, card)| label < card);
        if !same {
            return Err(Status::Unknown);
        }
        run(&sample.view, &graph, &incidence, labels, found, scratch)?;
        give(answer, found)
    }
}
