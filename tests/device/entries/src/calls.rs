//! Each engine from its call on: a C entry point that calls one method and does nothing else. The graph, the plan and the
//! engine's own view arrive by reference, as from a caller who keeps them wherever it likes, also in a `static`. What lies below
//! such an entry point is the engine's stack.

use core::convert::Infallible;
use gibbsite_core::error::InferError;
use gibbsite_core::graph::{FactorGraph, Incidence};
use gibbsite_core::ids::FactorId;
use gibbsite_core::image::{ChainView, Item, Weight};
use gibbsite_core::infer::chain::Chain;
use gibbsite_core::infer::fork::Sequential;
use gibbsite_core::infer::gibbs::{self, Gibbs, Scan};
use gibbsite_core::infer::junction::{Junction, Memory};
use gibbsite_core::infer::loopy::{Loopy, Mode, Params};
use gibbsite_core::infer::plan::Plan;
use gibbsite_core::infer::stream::Decoder;
use gibbsite_core::infer::tree::Forest;
use gibbsite_core::infer::trw::Trw;
use gibbsite_core::log_add::LogAdd;
use gibbsite_core::online::{OnlineParams, Overlay};

/// A generator as small as one can be.
pub struct Weyl(u32);

impl rand_core::TryRng for Weyl {
    type Error = Infallible;
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.0 = self.0.wrapping_add(0x9E37_79B9);
        Ok(self.0)
    }
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(u64::from(self.try_next_u32()?) << 32)
    }
    fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), Infallible> {
        Ok(())
    }
}

type Status = Result<(), InferError>;

fn put<T>(to: &mut T, answer: Result<T, InferError>) -> bool {
    match answer {
        Ok(value) => {
            *to = value;
            true
        }
        Err(_) => false,
    }
}

fn ok(answer: Status) -> bool {
    answer.is_ok()
}

#[unsafe(no_mangle)]
pub extern "C" fn call_graph(
    out: &mut Option<FactorGraph<'static, f32>>,
    cards: &[&'static [u32]; 4],
    values: &&'static [f32],
) {
    let &[cards, scope_start, scope, table_start] = cards;
    *out = FactorGraph::new(cards, scope_start, scope, table_start, values).ok();
}

#[unsafe(no_mangle)]
pub extern "C" fn call_plan_open(
    out: &mut Option<Plan<'static>>,
    words: &&'static [u32],
    graph: &FactorGraph<'_, f32>,
    memory: &mut &mut [u32],
) {
    *out = Plan::open(words, graph, memory).ok();
}

#[unsafe(no_mangle)]
pub extern "C" fn call_junction_new<'a, 'm>(
    out: &mut Option<Junction<'a, 'm, f32>>,
    plan: &Plan<'a>,
    graph: &FactorGraph<'a, f32>,
    memory: &mut Option<Memory<'m, f32>>,
) {
    *out = memory.take().and_then(|memory| Junction::new(*plan, *graph, memory).ok());
}

#[unsafe(no_mangle)]
pub extern "C" fn call_loopy_new<'g, 'm>(
    out: &mut Option<Loopy<'g, 'm, f32>>,
    graph: &FactorGraph<'g, f32>,
    words: &mut &'m mut [u32],
    reals: &mut &'m mut [f32],
) -> bool {
    let run = out.insert(Loopy::idle(*graph, Mode::Sum));
    ok(run.lend(core::mem::take(words), core::mem::take(reals)))
}

#[unsafe(no_mangle)]
pub extern "C" fn call_trw_new<'g, 'm>(
    out: &mut Option<Trw<'g, 'm, f32>>,
    graph: &FactorGraph<'g, f32>,
    words: &mut &'m mut [u32],
    reals: &mut &'m mut [f32],
) -> bool {
    let run = out.insert(Trw::idle(*graph));
    ok(run.lend(core::mem::take(words), core::mem::take(reals)))
}

#[unsafe(no_mangle)]
pub extern "C" fn call_gibbs_new<'g, 'm>(
    out: &mut Option<Gibbs<'g, 'm, f32>>,
    graph: &FactorGraph<'g, f32>,
    incidence: &Incidence<'m>,
    words: &mut [&'m mut [u32]; 2],
    reals: &mut &'m mut [f32],
) {
    let [labels, words] = words;
    let (labels, words) = (core::mem::take(labels), core::mem::take(words));
    *out = Gibbs::new(*graph, *incidence, labels, words, core::mem::take(reals)).ok();
}

#[unsafe(no_mangle)]
pub extern "C" fn call_tree_build<'g, 'm>(
    out: &mut Option<Forest<'g, 'm, f32>>,
    graph: &FactorGraph<'g, f32>,
    memory: &mut &'m mut [u32],
) {
    *out = Forest::build(graph, core::mem::take(memory)).ok();
}

#[unsafe(no_mangle)]
pub extern "C" fn call_junction_sum(
    run: &mut Junction<'_, '_, f32>,
    fork: &mut Sequential<'_, f32>,
    out: &mut f32,
) -> bool {
    put(out, run.sum(fork))
}

#[unsafe(no_mangle)]
pub extern "C" fn call_junction_marginals(
    run: &mut Junction<'_, '_, f32>,
    fork: &mut Sequential<'_, f32>,
    out: &mut &mut [f32],
) -> bool {
    ok(run.marginals(fork, out))
}

#[unsafe(no_mangle)]
pub extern "C" fn call_junction_factor(
    run: &mut Junction<'_, '_, f32>,
    fork: &mut Sequential<'_, f32>,
    k: FactorId,
    out: &mut &mut [f32],
) -> bool {
    ok(run.factor_marginal(k, fork, out))
}

#[unsafe(no_mangle)]
pub extern "C" fn call_junction_maximise(
    run: &mut Junction<'_, '_, f32>,
    fork: &mut Sequential<'_, f32>,
    out: &mut f32,
) -> bool {
    put(out, run.maximise(fork))
}

#[unsafe(no_mangle)]
pub extern "C" fn call_junction_decode(run: &mut Junction<'_, '_, f32>, labels: &mut &mut [u32]) -> bool {
    ok(run.decode(labels))
}

#[unsafe(no_mangle)]
pub extern "C" fn call_junction_sample(
    run: &mut Junction<'_, '_, f32>,
    rng: &mut Weyl,
    labels: &mut &mut [u32],
) -> bool {
    ok(run.sample(rng, labels))
}

#[unsafe(no_mangle)]
pub extern "C" fn call_loopy_run(run: &mut Loopy<'_, '_, f32>, params: &Params<f32>) -> bool {
    run.run(params).is_ok()
}

#[unsafe(no_mangle)]
pub extern "C" fn call_loopy_log_z(run: &mut Loopy<'_, '_, f32>, out: &mut f32) -> bool {
    put(out, run.log_z())
}

#[unsafe(no_mangle)]
pub extern "C" fn call_loopy_marginals(run: &mut Loopy<'_, '_, f32>, out: &mut &mut [f32]) -> bool {
    ok(run.marginals(out))
}

#[unsafe(no_mangle)]
pub extern "C" fn call_loopy_decode(
    run: &mut Loopy<'_, '_, f32>,
    labels: &mut &mut [u32],
    out: &mut f32,
) -> bool {
    put(out, run.decode(labels))
}

#[unsafe(no_mangle)]
pub extern "C" fn call_trw_run(run: &mut Trw<'_, '_, f32>, params: &Params<f32>) -> bool {
    run.run(params).is_ok()
}

#[unsafe(no_mangle)]
pub extern "C" fn call_trw_marginals(run: &mut Trw<'_, '_, f32>, out: &mut &mut [f32]) -> bool {
    ok(run.marginals(out))
}

#[unsafe(no_mangle)]
pub extern "C" fn call_gibbs_run(
    run: &mut Gibbs<'_, '_, f32>,
    scan: &Scan<'_>,
    params: &gibbs::Params,
    rng: &mut Weyl,
) -> bool {
    run.run(*scan, params, rng).is_ok()
}

#[unsafe(no_mangle)]
pub extern "C" fn call_gibbs_marginals(run: &mut Gibbs<'_, '_, f32>, out: &mut &mut [f32]) -> bool {
    ok(run.marginals(out))
}

#[unsafe(no_mangle)]
pub extern "C" fn call_tree_sum(
    forest: &Forest<'_, '_, f32>,
    outputs: &mut [&mut [f32]; 2],
    memory: &mut &mut [f32],
    log_z: &mut f32,
) -> bool {
    let [marginals, beliefs] = outputs;
    put(log_z, forest.sum_product(marginals, Some(beliefs), memory))
}

#[unsafe(no_mangle)]
pub extern "C" fn call_tree_max(
    forest: &Forest<'_, '_, f32>,
    labels: &mut &mut [u32],
    memory: &mut &mut [f32],
    best: &mut f32,
) -> bool {
    put(best, forest.max_product(labels, memory))
}

#[unsafe(no_mangle)]
pub extern "C" fn call_chain_marginals(
    chain: &Chain<'_, f32>,
    outputs: &mut [&mut [f32]; 2],
    memory: &mut &mut [f32],
    log_z: &mut f32,
) -> bool {
    let [singles, pairs] = outputs;
    put(log_z, chain.forward_backward(singles, Some(pairs), memory))
}

#[unsafe(no_mangle)]
pub extern "C" fn call_chain_log_z(chain: &Chain<'_, f32>, memory: &mut &mut [f32], log_z: &mut f32) -> bool {
    put(log_z, chain.log_z(memory))
}

#[unsafe(no_mangle)]
pub extern "C" fn call_chain_n_best(
    chain: &Chain<'_, f32>,
    words: &mut [&mut [u32]; 2],
    reals: &mut [&mut [f32]; 2],
    out: &mut usize,
) -> bool {
    let ([paths, back], [scores, memory]) = (words, reals);
    put(out, chain.n_best(5, paths, scores, back, memory))
}

// The same of scores in units.

#[unsafe(no_mangle)]
pub extern "C" fn call_units_graph(
    out: &mut Option<FactorGraph<'static, i32>>,
    cards: &[&'static [u32]; 4],
    values: &&'static [i32],
) {
    let &[cards, scope_start, scope, table_start] = cards;
    *out = FactorGraph::new(cards, scope_start, scope, table_start, values).ok();
}

#[unsafe(no_mangle)]
pub extern "C" fn call_units_plan_open(
    out: &mut Option<Plan<'static>>,
    words: &&'static [u32],
    graph: &FactorGraph<'_, i32>,
    memory: &mut &mut [u32],
) {
    *out = Plan::open(words, graph, memory).ok();
}

#[unsafe(no_mangle)]
pub extern "C" fn call_units_junction_new<'a, 'm>(
    out: &mut Option<Junction<'a, 'm, i32>>,
    plan: &Plan<'a>,
    graph: &FactorGraph<'a, i32>,
    memory: &mut Option<Memory<'m, i32>>,
) {
    *out = memory.take().and_then(|memory| Junction::new(*plan, *graph, memory).ok());
}

#[unsafe(no_mangle)]
pub extern "C" fn call_units_maximise(
    run: &mut Junction<'_, '_, i32>,
    fork: &mut Sequential<'_, i32>,
    out: &mut i64,
) -> bool {
    put(out, run.maximise(fork))
}

#[unsafe(no_mangle)]
pub extern "C" fn call_units_decode(run: &mut Junction<'_, '_, i32>, labels: &mut &mut [u32]) -> bool {
    ok(run.decode(labels))
}

#[unsafe(no_mangle)]
pub extern "C" fn call_units_sum(
    run: &mut Junction<'_, '_, i32>,
    table: &LogAdd<'_>,
    fork: &mut Sequential<'_, i32>,
    out: &mut i64,
) -> bool {
    put(out, run.log_sum(table, fork))
}

#[unsafe(no_mangle)]
pub extern "C" fn call_units_marginals(
    run: &mut Junction<'_, '_, i32>,
    table: &LogAdd<'_>,
    fork: &mut Sequential<'_, i32>,
    out: &mut &mut [i32],
) -> bool {
    ok(run.log_marginals(table, fork, out))
}

// Chains in an image, and learning beside one.

fn label<W: Weight>(
    view: &ChainView<'_, W>,
    items: &&[&[Item<W>]],
    bytes: &mut [&mut [u8]; 2],
    scores: &mut &mut [W::Score],
    out: &mut W::Total,
) -> bool {
    let [labels, back] = bytes;
    put(out, view.label(items.iter().copied(), labels, scores, back))
}

fn decoder<'m, W: Weight>(
    out: &mut Result<Decoder<'m, ChainView<'m, W>>, InferError>,
    view: &ChainView<'m, W>,
    lag: usize,
    scores: &mut &'m mut [W::Score],
    back: &mut &'m mut [u8],
) {
    *out = Decoder::lagged(*view, lag, core::mem::take(scores), core::mem::take(back));
}

macro_rules! chain_calls {
    ($($weight:ident $label:ident $decoder:ident $push:ident $finish:ident;)*) => { $(
        #[unsafe(no_mangle)]
        pub extern "C" fn $label(
            view: &ChainView<'_, $weight>,
            items: &&[&[Item<$weight>]],
            bytes: &mut [&mut [u8]; 2],
            scores: &mut &mut [<$weight as Weight>::Score],
            out: &mut <$weight as Weight>::Total,
        ) -> bool {
            label(view, items, bytes, scores, out)
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn $decoder<'m>(
            out: &mut Result<Decoder<'m, ChainView<'m, $weight>>, InferError>,
            view: &ChainView<'m, $weight>,
            lag: usize,
            scores: &mut &'m mut [<$weight as Weight>::Score],
            back: &mut &'m mut [u8],
        ) {
            decoder(out, view, lag, scores, back);
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn $push(
            run: &mut Decoder<'_, ChainView<'_, $weight>>,
            item: &&[Item<$weight>],
            out: &mut Option<u8>,
        ) -> bool {
            put(out, run.push(item))
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn $finish(
            run: &Decoder<'_, ChainView<'_, $weight>>,
            labels: &mut &mut [u8],
            out: &mut <$weight as Weight>::Total,
        ) -> bool {
            put(out, run.finish(labels))
        }
    )* };
}
chain_calls! {
    f32 call_label_f32 call_decoder_f32 call_push_f32 call_finish_f32;
    i16 call_label_i16 call_decoder_i16 call_push_i16 call_finish_i16;
    i8 call_label_i8 call_decoder_i8 call_push_i8 call_finish_i8;
}

#[unsafe(no_mangle)]
pub extern "C" fn call_overlay_new<'m>(
    out: &mut Option<Overlay<'m, f32>>,
    size: &[usize; 2],
    weights: &mut &'m mut [f32],
) {
    let &[labels, slots] = size;
    *out = Overlay::new(labels, slots, core::mem::take(weights)).ok();
}

#[unsafe(no_mangle)]
pub extern "C" fn call_overlay_learn(
    overlay: &mut Overlay<'_, f32>,
    item: &&[(u32, f32)],
    scores: &mut [&mut [f32]; 2],
    label: usize,
    params: &OnlineParams<f32>,
    out: &mut f32,
) -> bool {
    let [scores, memory] = scores;
    put(out, overlay.learn(item, scores, label, params, memory))
}

#[unsafe(no_mangle)]
pub extern "C" fn call_overlay_push(
    overlay: &Overlay<'_, f32>,
    run: &mut Decoder<'_, ChainView<'_, f32>>,
    items: &[&[(u32, f32)]; 2],
    out: &mut Option<u8>,
) -> bool {
    let [item, learned] = items;
    put(out, overlay.push(run, item, learned))
}
