//! Fields over the columns of a table: exact answers where the image has a junction tree, belief propagation, coordinate ascent,
//! and one output given all others.

use crate::{
    FIELD, GibbsiteFeature, GibbsiteModel, GibbsiteStatus, Made, Status, give, made, put, read, status, write,
};
use core::slice;
use gibbsite_core::error::GraphError;
use gibbsite_core::graph::{FactorGraph, Incidence};
use gibbsite_core::image::FieldImage;
use gibbsite_core::infer::fork::Sequential;
use gibbsite_core::infer::junction::{Fact, Junction, Memory};
use gibbsite_core::infer::loopy::{Dimensions, Loopy, Mode, Params};
use gibbsite_core::infer::plan::Plan;
use gibbsite_core::infer::{conditional, icm};

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
    /// Words of memory that `gibbsite_field_loopy` needs.
    pub memory_loopy: u32,
    /// Words of memory that `gibbsite_field_icm` and `gibbsite_field_local` need.
    pub memory_icm: u32,
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
const FACT_WORDS: usize = size_of::<Fact<f32>>() / 4;

/// Memory of the caller, handed out piece by piece. All of it is zeros at first.
struct Work<'m>(&'m mut [u32]);

impl<'m> Work<'m> {
    fn words(&mut self, len: usize) -> Result<&'m mut [u32], Status> {
        let (piece, rest) = core::mem::take(&mut self.0).split_at_mut_checked(len).ok_or(Status::Memory)?;
        self.0 = rest;
        Ok(piece)
    }

    fn floats(&mut self, len: usize) -> Result<&'m mut [f32], Status> {
        let words = self.words(len)?;
        // SAFETY: size and alignment are those of `u32`, any bits are an `f32`, and the words are given to nobody else.
        Ok(unsafe { slice::from_raw_parts_mut(words.as_mut_ptr().cast(), len) })
    }

    fn facts(&mut self, len: usize) -> Result<&'m mut [Fact<f32>], Status> {
        let words = self.words(len.checked_mul(FACT_WORDS).ok_or(Status::Memory)?)?;
        // SAFETY: there is room, the alignment is enough (checked above), zeros are a `Fact` of zeros and `false`, and the words are
        // given to nobody else.
        Ok(unsafe { slice::from_raw_parts_mut(words.as_mut_ptr().cast(), len) })
    }
}

/// What a sample is: attributes with values, and for each output its label if that is known, else a negative number.
struct Sample<'a> {
    image: &'a FieldImage<'static>,
    features: &'a [GibbsiteFeature],
    known: &'a [i32],
}

impl<'a> Sample<'a> {
    /// # Safety
    /// As for `image` and `read` of `lib.rs`; `known` may be null.
    unsafe fn new(
        model: *const GibbsiteModel,
        features: *const GibbsiteFeature,
        count: usize,
        known: *const i32,
    ) -> Result<Self, Status> {
        // SAFETY: the caller's promises are those that `image` and `read` ask for.
        unsafe {
            let image = image(model)?;
            let known = if known.is_null() { &[] } else { read(known, image.variables())? };
            Ok(Self { image, features: read(features, count)?, known })
        }
    }

    /// The factor graph of the sample; its tables lie in `work`.
    #[inline(never)]
    fn graph<'m>(&self, work: &mut Work<'m>) -> Result<FactorGraph<'m, f32>, Status> {
        let tables = work.floats(self.image.tables_len())?;
        self.image.tables_of(self.features.iter().map(|f| (f.attribute, f.value)), tables)?;
        for (v, &label) in self.known.iter().enumerate() {
            if let Ok(label) = u32::try_from(label) {
                self.image.observe(tables, v, label).map_err(|_| Status::Unknown)?;
            }
        }
        Ok(self.image.graph(tables)?)
    }

    /// Runs the junction tree.
    #[inline(never)]
    fn exact<'m>(
        &self,
        work: &mut Work<'m>,
        run: impl FnOnce(&mut Junction<'_, '_, f32>, &mut Sequential<'_, f32>) -> Result<(), Status>,
    ) -> Result<(), Status> {
        let graph = self.graph(work)?;
        let counters = work.words(Plan::open_len(graph.variables(), graph.factors()))?;
        let plan = plan(self.image, &graph, counters)?;
        let memory = Memory {
            messages: work.floats(plan.messages_len())?,
            facts: work.facts(plan.clusters())?,
            belief: work.floats(plan.belief_len())?,
            separator: work.floats(plan.separator_len())?,
            index: work.words(plan.index_len())?,
            starts: work.words(graph.variables())?,
        };
        let mut fork = Sequential { temp: work.floats(plan.temp_len())? };
        run(&mut Junction::new(plan, graph, memory)?, &mut fork)
    }
}

/// The junction tree; an image without one has no exact answers.
fn plan(
    image: &FieldImage<'static>,
    graph: &FactorGraph<'_, f32>,
    counters: &mut [u32],
) -> Result<Plan<'static>, Status> {
    if image.has_plan() { Ok(image.plan(graph, counters)?) } else { Err(Status::Unknown) }
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
            let counters = Plan::open_len(size.variables, size.factors);
            let small = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
            let found = GibbsiteFieldFacts {
                outputs: small(size.variables),
                labels: small(size.labels),
                attributes: small(image.attributes()),
                exact: u32::from(image.has_plan()),
                memory_exact_memory: small(image.tables_len().saturating_add(counters)),
                memory_loopy: small(loopy),
                memory_icm: small(icm_words(image, &size)),
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
        Sample::new(model, core::ptr::null(), 0, core::ptr::null()).and_then(|sample| {
            let mut work = Work(write(memory, memory_count)?);
            let graph = sample.graph(&mut work)?;
            let counters = Plan::open_len(graph.variables(), graph.factors());
            let plan = plan(sample.image, &graph, work.words(counters)?)?;
            let reals = plan.messages_len() + plan.belief_len() + plan.separator_len() + plan.temp_len();
            let words = plan.index_len() + graph.variables() + counters + FACT_WORDS * plan.clusters();
            put(needed, reals + words + sample.image.tables_len() + labels(sample.image))
        })
    })
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
        Sample::new(model, features, count, known).and_then(|sample| {
            let mut work = Work(write(memory, memory_count)?);
            let found = work.floats(labels(sample.image))?;
            sample.exact(&mut work, |junction, fork| {
                junction.sum(fork)?;
                Ok(junction.marginals(fork, found)?)
            })?;
            give(marginals, found)
        })
    })
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
    // SAFETY: the caller's promises are those that the functions called here ask for.
    status(unsafe {
        Sample::new(model, features, count, known).and_then(|sample| {
            let mut work = Work(write(memory, memory_count)?);
            let found = work.words(sample.image.variables())?;
            sample.exact(&mut work, |junction, fork| {
                junction.maximise(fork)?;
                Ok(junction.decode(found)?)
            })?;
            give(labels, found)
        })
    })
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
        Sample::new(model, features, count, known).and_then(|sample| {
            let mut work = Work(write(memory, memory_count)?);
            let found = work.floats(labels(sample.image))?;
            let graph = sample.graph(&mut work)?;
            let size = Dimensions::of(&graph);
            let words = work.words(Loopy::<f32>::words_len(&size))?;
            let reals = work.floats(Loopy::<f32>::reals_len(&size))?;
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
    // SAFETY: the caller's promises are those that the functions called here ask for.
    status(unsafe {
        Sample::new(model, features, count, known).and_then(|sample| {
            let mut work = Work(write(memory, memory_count)?);
            let found = work.words(sample.image.variables())?;
            found.copy_from_slice(read(labels.cast_const(), found.len())?);
            let graph = sample.graph(&mut work)?;
            let size = Dimensions::of(&graph);
            let incidence =
                Incidence::build(&graph, work.words(Incidence::len(size.variables, size.edges))?)?;
            icm::ascend(&graph, &incidence, found, sweeps, work.floats(icm::scratch_len(&size))?)?;
            give(labels, found)
        })
    })
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
    // SAFETY: the caller's promises are those that the functions called here ask for.
    status(unsafe {
        Sample::new(model, features, count, core::ptr::null()).and_then(|sample| {
            let mut work = Work(write(memory, memory_count)?);
            let card = sample.image.cards().get(output as usize).copied().ok_or(Status::Unknown)? as usize;
            let (found, scratch) = (work.floats(card)?, work.floats(card)?);
            let graph = sample.graph(&mut work)?;
            let incidence =
                Incidence::build(&graph, work.words(Incidence::len(graph.variables(), graph.edges()))?)?;
            let labels = read(labels, graph.variables())?;
            conditional(&graph, &incidence, labels, output, found, scratch).map_err(|_| Status::Unknown)?;
            give(probabilities, found)
        })
    })
}
