//! A field over the columns of a table, opened from flash: exact and estimated answers.

use crate::engines::{Answer, Done, Pool, Stop};
use crate::images::Tagging;
use gibbsite_core::graph::{FactorGraph, Incidence};
use gibbsite_core::image::{FieldImage, FieldView};
use gibbsite_core::infer::fork::Sequential;
use gibbsite_core::infer::junction::{Junction, Memory};
use gibbsite_core::infer::loopy::{Dimensions, Loopy, Mode, Params};
use gibbsite_core::infer::plan::Plan;
use gibbsite_core::infer::{conditional, icm};

/// The tables of a sample: the input `x` is 2.5, the input `k` is `v`.
#[inline(never)]
fn tables<'m>(view: &FieldView<'_, f32>, pool: &mut Pool<'m, f32>) -> Result<&'m [f32], Stop> {
    let tables = pool.reals(view.image().tables_len())?;
    let attribute = |name: &[u8]| view.image().attribute(name).ok_or(Stop::Memory);
    view.tables(&[(attribute(b"x")?, 2.5), (attribute(b"k=v")?, 1.0)], tables)?;
    Ok(tables)
}

/// Labels as bytes.
pub(crate) fn put(labels: &[u32], out: &mut [u8]) {
    out.iter_mut().zip(labels).for_each(|(o, &l)| *o = l as u8);
}

/// Opens it.
pub fn open_field(call: &mut Tagging<'_>) -> Answer {
    let image = FieldImage::open(call.words)?;
    *call.labels.first_mut().ok_or(Stop::Memory)? = image.variables() as u8;
    Ok(Done { floats: 0, labels: 1, memory: 0 })
}

/// The image's junction tree in memory of the case.
#[inline(never)]
fn with_junction(
    call: &mut Tagging<'_>,
    run: impl FnOnce(
        &mut Junction<'_, '_, f32>,
        &mut Sequential<'_, f32>,
        &mut [f32],
        &mut [u8],
    ) -> Result<(usize, usize), Stop>,
) -> Answer {
    let view = FieldImage::open(call.words)?.field()?;
    let mut pool = Pool::new(&mut *call.reals, &mut *call.indices);
    let graph = view.graph(tables(&view, &mut pool)?)?;
    let counters = pool.words(Plan::open_len(graph.variables(), graph.factors()))?;
    let plan = view.plan(&graph, counters)?;
    let facts = call.facts.get_mut(..plan.clusters()).ok_or(Stop::Memory)?;
    let used = size_of_val(facts);
    let memory = Memory {
        messages: pool.reals(plan.messages_len())?,
        facts,
        belief: pool.reals(plan.belief_len())?,
        separator: pool.reals(plan.separator_len())?,
        index: pool.words(plan.index_len())?,
        starts: pool.words(graph.variables())?,
    };
    let mut fork = Sequential { temp: pool.reals(plan.temp_len())? };
    let memory_used = pool.used + used;
    let mut junction = Junction::new(plan, graph, memory)?;
    let (floats, labels) = run(&mut junction, &mut fork, call.answer, call.labels)?;
    Ok(Done { floats, labels, memory: memory_used })
}

/// Exact marginals of all outputs.
pub fn field_marginals(call: &mut Tagging<'_>) -> Answer {
    with_junction(call, |junction, fork, answer, _| {
        junction.sum(fork)?;
        junction.marginals(fork, answer)?;
        Ok((19, 0))
    })
}

/// The exact best labels.
pub fn field_best(call: &mut Tagging<'_>) -> Answer {
    with_junction(call, |junction, fork, answer, out| {
        let mut labels = [0; 9];
        *answer.first_mut().ok_or(Stop::Memory)? = junction.maximise(fork)?;
        junction.decode(&mut labels)?;
        put(&labels, out);
        Ok((1, labels.len()))
    })
}

/// A field's graph with its incidence. Inlined: they would lie on the stack twice if they were returned.
#[inline(always)]
fn graph<'m>(
    view: &FieldView<'m, f32>,
    pool: &mut Pool<'m, f32>,
) -> Result<(FactorGraph<'m, f32>, Incidence<'m>, Dimensions), Stop> {
    let graph = view.graph(tables(view, pool)?)?;
    let size = Dimensions::of(&graph);
    let incidence = Incidence::build(&graph, pool.words(Incidence::len(size.variables, size.edges))?)?;
    Ok((graph, incidence, size))
}

/// Belief propagation, as on a grid that is too wide for a junction tree.
pub fn field_loopy(call: &mut Tagging<'_>) -> Answer {
    let view = FieldImage::open(call.words)?.field()?;
    let mut pool = Pool::new(&mut *call.reals, &mut *call.indices);
    let graph = view.graph(tables(&view, &mut pool)?)?;
    let size = Dimensions::of(&graph);
    let words = pool.words(Loopy::<f32>::words_len(&size))?;
    let reals = pool.reals(Loopy::<f32>::reals_len(&size))?;
    let mut loopy = Loopy::idle(graph, Mode::Sum);
    loopy.lend(words, reals)?;
    loopy.run(&Params { max_iterations: 50, ..Params::default() })?;
    loopy.marginals(call.answer)?;
    Ok(Done { floats: size.labels, labels: 0, memory: pool.used })
}

/// Labels that no single change makes better.
pub fn field_icm(call: &mut Tagging<'_>) -> Answer {
    let view = FieldImage::open(call.words)?.field()?;
    let mut pool = Pool::new(&mut *call.reals, &mut *call.indices);
    let (graph, incidence, size) = graph(&view, &mut pool)?;
    let scratch = pool.reals(icm::scratch_len(&size))?;
    let labels = pool.words(size.variables)?;
    *call.answer.first_mut().ok_or(Stop::Memory)? =
        icm::ascend(&graph, &incidence, labels, 100, scratch)?.log_potential;
    put(labels, call.labels);
    Ok(Done { floats: 1, labels: size.variables, memory: pool.used })
}

/// `P(y_v | all others)` of the output in the middle, all others 0.
pub fn field_local(call: &mut Tagging<'_>) -> Answer {
    let view = FieldImage::open(call.words)?.field()?;
    let mut pool = Pool::new(&mut *call.reals, &mut *call.indices);
    let (graph, incidence, size) = graph(&view, &mut pool)?;
    let labels = pool.words(size.variables)?;
    let scratch = pool.reals(size.arity)?;
    conditional(&graph, &incidence, labels, 4, call.answer, scratch)?;
    Ok(Done { floats: 3, labels: 0, memory: pool.used })
}
