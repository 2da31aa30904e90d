//! The same field in fixed point: additions, comparisons and a table, for cores without floating point.

use crate::engines::{Answer, Done, Pool, Stop};
use crate::fields::put;
use crate::images::Tagging;
use gibbsite_core::graph::Incidence;
use gibbsite_core::image::{FieldImage, FieldView, ONE, Weight};
use gibbsite_core::infer::fork::Sequential;
use gibbsite_core::infer::junction::{Junction, Memory};
use gibbsite_core::infer::loopy::Dimensions;
use gibbsite_core::infer::plan::Plan;
use gibbsite_core::infer::{icm, log_conditional};
use gibbsite_core::log_add::LogAdd;

/// The tables of a sample: the input `x`, which the image was made to be given standardised, is ½, the input `k` is `v`.
#[inline(never)]
fn tables<'m, W: Weight<Value = i32, Score = i32>>(
    view: &FieldView<'_, W>,
    pool: &mut Pool<'m, i32>,
) -> Result<&'m [i32], Stop> {
    let tables = pool.reals(view.image().tables_len())?;
    let attribute = |name: &[u8]| view.image().attribute(name).ok_or(Stop::Memory);
    view.tables(&[(attribute(b"x")?, ONE / 2), (attribute(b"k=v")?, ONE)], tables)?;
    Ok(tables)
}

/// A score in units as the bits of a number: to make a number of it would link the emulation of floating point.
fn bits(units: i32) -> f32 {
    f32::from_bits(units as u32)
}

/// The image's junction tree in memory of the case.
#[inline(never)]
fn with_junction<W: Weight<Value = i32, Score = i32>>(
    call: &mut Tagging<'_>,
    run: impl FnOnce(
        &mut Junction<'_, '_, i32>,
        &mut Sequential<'_, i32>,
        Option<LogAdd<'_>>,
        &mut [f32],
        &mut [u8],
    ) -> Result<(usize, usize), Stop>,
) -> Answer {
    let view = FieldImage::open(call.words)?.field::<W>()?;
    let mut pool = Pool::new(&mut *call.scores, &mut *call.indices);
    let graph = view.graph(tables(&view, &mut pool)?)?;
    let counters = pool.words(Plan::open_len(graph.variables(), graph.factors()))?;
    let plan = view.plan(&graph, counters)?;
    let facts = call.unit_facts.get_mut(..plan.clusters()).ok_or(Stop::Memory)?;
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
    let (floats, labels) = run(&mut junction, &mut fork, view.log_add(), call.answer, call.labels)?;
    Ok(Done { floats, labels, memory: memory_used })
}

fn best<W: Weight<Value = i32, Score = i32>>(call: &mut Tagging<'_>) -> Answer {
    with_junction::<W>(call, |junction, fork, _, answer, out| {
        let mut labels = [0; 9];
        *answer.first_mut().ok_or(Stop::Memory)? = bits(junction.maximise(fork)? as i32);
        junction.decode(&mut labels)?;
        put(&labels, out);
        Ok((1, labels.len()))
    })
}

/// The exact best labels.
pub fn best_i16(call: &mut Tagging<'_>) -> Answer {
    best::<i16>(call)
}

/// The same, weights in 8 bits.
pub fn best_i8(call: &mut Tagging<'_>) -> Answer {
    best::<i8>(call)
}

/// Logarithms of marginals of all outputs, by a table.
pub fn marginals_i16(call: &mut Tagging<'_>) -> Answer {
    with_junction::<i16>(call, |junction, fork, table, answer, _| {
        let table = table.ok_or(Stop::Memory)?;
        let mut logs = [0; 19];
        junction.log_sum(&table, fork)?;
        junction.log_marginals(&table, fork, &mut logs)?;
        answer.iter_mut().zip(logs).for_each(|(a, log)| *a = bits(log));
        Ok((19, 0))
    })
}

/// Labels that no single change makes better.
pub fn icm_i16(call: &mut Tagging<'_>) -> Answer {
    let view = FieldImage::open(call.words)?.field::<i16>()?;
    let mut pool = Pool::new(&mut *call.scores, &mut *call.indices);
    let graph = view.graph(tables(&view, &mut pool)?)?;
    let size = Dimensions::of(&graph);
    let incidence = Incidence::build(&graph, pool.words(Incidence::len(size.variables, size.edges))?)?;
    let scratch = pool.reals(icm::scratch_len(&size))?;
    let labels = pool.words(size.variables)?;
    let found = icm::ascend(&graph, &incidence, labels, 100, scratch)?.log_potential;
    *call.answer.first_mut().ok_or(Stop::Memory)? = bits(found as i32);
    put(labels, call.labels);
    Ok(Done { floats: 1, labels: size.variables, memory: pool.used })
}

/// `log P(y_v | all others)` of the output in the middle, all others 0.
pub fn local_i16(call: &mut Tagging<'_>) -> Answer {
    let view = FieldImage::open(call.words)?.field::<i16>()?;
    let mut pool = Pool::new(&mut *call.scores, &mut *call.indices);
    let graph = view.graph(tables(&view, &mut pool)?)?;
    let size = Dimensions::of(&graph);
    let incidence = Incidence::build(&graph, pool.words(Incidence::len(size.variables, size.edges))?)?;
    let labels = pool.words(size.variables)?;
    let (logs, scratch) = (pool.reals(size.arity)?, pool.reals(size.arity)?);
    let table = view.log_add().ok_or(Stop::Memory)?;
    log_conditional(&graph, &incidence, labels, 4, &table, logs, scratch)?;
    call.answer.iter_mut().zip(logs).for_each(|(a, &mut log)| *a = bits(log));
    Ok(Done { floats: 3, labels: 0, memory: pool.used })
}
