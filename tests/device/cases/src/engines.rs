//! One function per engine, on memory that arrives from outside.

use crate::models::{CHAIN, CHAIN_EACH, FOREST, GRID, Model, PAIR};
use core::convert::Infallible;
use gibbsite_core::error::{GraphError, InferError, TableError};
use gibbsite_core::graph::{FactorGraph, Incidence};
use gibbsite_core::ids::{Label, VarId};
use gibbsite_core::infer::chain::{Chain, Transitions};
use gibbsite_core::infer::fork::Sequential;
use gibbsite_core::infer::gibbs::{self, Gibbs, Scan};
use gibbsite_core::infer::icm;
use gibbsite_core::infer::junction::{Fact, Junction, Memory};
use gibbsite_core::infer::loopy::{Dimensions, Loopy, Mode, Params, Schedule};
use gibbsite_core::infer::plan::Plan;
use gibbsite_core::infer::tree::Forest;
use gibbsite_core::infer::trw::Trw;
use gibbsite_core::math::Real;
use gibbsite_core::table::{TableMut, TableView, condition, max_out, normalise, product, sum_out};

/// The arguments of an engine: a model, working memory, and where the answer goes.
#[derive(Debug)]
pub struct Call<'a, T> {
    pub cards: &'a [u32],
    pub scope_start: &'a [u32],
    pub scope: &'a [u32],
    pub table_start: &'a [u32],
    pub values: &'a [T],
    pub plan: &'a [u32],
    pub reals: &'a mut [T],
    pub words: &'a mut [u32],
    pub facts: &'a mut [Fact<T>],
    pub answer: &'a mut [T],
    pub labels: &'a mut [u32],
}

/// Why an engine gave no answer.
#[derive(Clone, Copy, Debug)]
pub enum Stop {
    Graph(GraphError),
    Table(TableError),
    Infer(InferError),
    /// A slice of the call is too short.
    Memory,
}

impl From<GraphError> for Stop {
    fn from(error: GraphError) -> Self {
        Self::Graph(error)
    }
}

impl From<TableError> for Stop {
    fn from(error: TableError) -> Self {
        Self::Table(error)
    }
}

impl From<InferError> for Stop {
    fn from(error: InferError) -> Self {
        Self::Infer(error)
    }
}

/// How much of `answer` and of `labels` is the answer, and how many bytes of working memory it took.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    pub floats: usize,
    pub labels: usize,
    pub memory: usize,
}

/// What an engine gives.
pub type Answer = Result<Done, Stop>;
/// An engine.
pub type Engine<T> = fn(&mut Call<'_, T>) -> Answer;

/// Calls `$with!` with every engine: its model, its function, and the names of its C entry points.
#[macro_export]
macro_rules! for_each_engine {
    ($with:ident) => {
        $with! {
            PAIR table_product entry_table_product_f32 entry_table_product_f64;
            PAIR table_sum_out entry_table_sum_out_f32 entry_table_sum_out_f64;
            PAIR table_max_out entry_table_max_out_f32 entry_table_max_out_f64;
            PAIR table_condition entry_table_condition_f32 entry_table_condition_f64;
            GRID graph_log_potential entry_graph_log_potential_f32 entry_graph_log_potential_f64;
            GRID graph_incidence entry_graph_incidence_f32 entry_graph_incidence_f64;
            CHAIN chain_log_z entry_chain_log_z_f32 entry_chain_log_z_f64;
            CHAIN chain_forward_backward entry_chain_forward_backward_f32 entry_chain_forward_backward_f64;
            CHAIN_EACH chain_each_gap entry_chain_each_gap_f32 entry_chain_each_gap_f64;
            CHAIN_EACH chain_check entry_chain_check_f32 entry_chain_check_f64;
            CHAIN_EACH exp_calls entry_exp_calls_f32 entry_exp_calls_f64;
            CHAIN chain_viterbi entry_chain_viterbi_f32 entry_chain_viterbi_f64;
            CHAIN chain_n_best entry_chain_n_best_f32 entry_chain_n_best_f64;
            FOREST tree_sum_product entry_tree_sum_product_f32 entry_tree_sum_product_f64;
            FOREST tree_max_product entry_tree_max_product_f32 entry_tree_max_product_f64;
            GRID junction_sum entry_junction_sum_f32 entry_junction_sum_f64;
            GRID junction_marginals entry_junction_marginals_f32 entry_junction_marginals_f64;
            GRID junction_maximise entry_junction_maximise_f32 entry_junction_maximise_f64;
            GRID junction_sample entry_junction_sample_f32 entry_junction_sample_f64;
            GRID loopy_sum entry_loopy_sum_f32 entry_loopy_sum_f64;
            GRID loopy_max entry_loopy_max_f32 entry_loopy_max_f64;
            GRID trw_bound entry_trw_bound_f32 entry_trw_bound_f64;
            GRID icm_ascend entry_icm_ascend_f32 entry_icm_ascend_f64;
            GRID gibbs_systematic entry_gibbs_systematic_f32 entry_gibbs_systematic_f64;
            GRID gibbs_blocked entry_gibbs_blocked_f32 entry_gibbs_blocked_f64;
        }
    };
}

macro_rules! list {
    ($($model:ident $engine:ident $single:ident $double:ident;)*) => {
        /// Every engine with its name and its model.
        pub fn all<T: Real>() -> impl Iterator<Item = (&'static str, &'static Model, Engine<T>)> {
            [$((stringify!($engine), &$model, $engine::<T> as Engine<T>)),*].into_iter()
        }
    };
}
for_each_engine!(list);

impl<'a, T: Real> Call<'a, T> {
    fn graph(&self) -> Result<FactorGraph<'a, T>, Stop> {
        Ok(FactorGraph::new(self.cards, self.scope_start, self.scope, self.table_start, self.values)?)
    }

    /// The two tables of [`PAIR`].
    fn pair(&self) -> Result<(&'a [T], &'a [T]), Stop> {
        self.values.split_at_checked(12).ok_or(Stop::Memory)
    }

    fn chain(&self) -> Result<Chain<'a, T>, Stop> {
        let (&[labels], &[_, states, _]) = (self.cards, self.table_start) else { return Err(Stop::Memory) };
        let (states, transitions) = self.values.split_at_checked(states as usize).ok_or(Stop::Memory)?;
        Ok(Chain::new(labels as usize, states, Transitions::Shared(transitions))?)
    }
}

/// Hands out working memory, exactly as much as is asked for, and counts it.
pub(crate) struct Pool<'m, T> {
    reals: &'m mut [T],
    words: &'m mut [u32],
    pub(crate) used: usize,
}

impl<'m, T> Pool<'m, T> {
    pub(crate) fn new(reals: &'m mut [T], words: &'m mut [u32]) -> Self {
        Self { reals, words, used: 0 }
    }

    pub(crate) fn reals(&mut self, len: usize) -> Result<&'m mut [T], Stop> {
        self.used += len.saturating_mul(size_of::<T>());
        take(&mut self.reals, len)
    }

    pub(crate) fn words(&mut self, len: usize) -> Result<&'m mut [u32], Stop> {
        self.used += len.saturating_mul(size_of::<u32>());
        take(&mut self.words, len)
    }

    fn done(&self, floats: usize, labels: usize) -> Answer {
        Ok(Done { floats, labels, memory: self.used })
    }
}

fn take<'m, X>(from: &mut &'m mut [X], len: usize) -> Result<&'m mut [X], Stop> {
    let (part, rest) = core::mem::take(from).split_at_mut_checked(len).ok_or(Stop::Memory)?;
    *from = rest;
    Ok(part)
}

/// The first place of the answer, and the places after it.
fn head<T>(answer: &mut [T]) -> Result<(&mut T, &mut [T]), Stop> {
    answer.split_first_mut().ok_or(Stop::Memory)
}

/// Marsaglia's xorshift, 64 bits: any generator would do, as long as it is the same everywhere.
struct Xorshift(u64);

impl rand_core::TryRng for Xorshift {
    type Error = Infallible;
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok((self.try_next_u64()? >> 32) as u32)
    }
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        Ok(self.0)
    }
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for byte in bytes {
            *byte = self.try_next_u32()? as u8;
        }
        Ok(())
    }
}

const SEED: Xorshift = Xorshift(0x9E37_79B9_7F4A_7C15);
const X0: VarId = VarId(0);
const X1: VarId = VarId(1);
const X2: VarId = VarId(2);

pub fn table_product<T: Real>(call: &mut Call<'_, T>) -> Answer {
    let (a, b) = call.pair()?;
    let (a, b) = (TableView::new(&[X0, X1], &[3, 4], a)?, TableView::new(&[X2, X0], &[2, 3], b)?);
    let out = call.answer.get_mut(..24).ok_or(Stop::Memory)?;
    product(&a, &b, &mut TableMut::new(&[X1, X2, X0], &[4, 2, 3], out)?)?;
    Ok(Done { floats: 24, labels: 0, memory: 0 })
}

pub fn table_sum_out<T: Real>(call: &mut Call<'_, T>) -> Answer {
    let a = TableView::new(&[X0, X1], &[3, 4], call.pair()?.0)?;
    let (log_z, rest) = head(call.answer)?;
    let out = rest.get_mut(..4).ok_or(Stop::Memory)?;
    sum_out(&a, &mut TableMut::new(&[X1], &[4], out)?)?;
    *log_z = normalise(out);
    Ok(Done { floats: 5, labels: 0, memory: 0 })
}

pub fn table_max_out<T: Real>(call: &mut Call<'_, T>) -> Answer {
    let a = TableView::new(&[X0, X1], &[3, 4], call.pair()?.0)?;
    let out = call.answer.get_mut(..3).ok_or(Stop::Memory)?;
    max_out(&a, &mut TableMut::new(&[X0], &[3], out)?)?;
    Ok(Done { floats: 3, labels: 0, memory: 0 })
}

pub fn table_condition<T: Real>(call: &mut Call<'_, T>) -> Answer {
    let b = TableView::new(&[X2, X0], &[2, 3], call.pair()?.1)?;
    let out = call.answer.get_mut(..3).ok_or(Stop::Memory)?;
    condition(&b, &[(X2, Label(1))], &mut TableMut::new(&[X0], &[3], out)?)?;
    Ok(Done { floats: 3, labels: 0, memory: 0 })
}

pub fn graph_log_potential<T: Real>(call: &mut Call<'_, T>) -> Answer {
    let graph = call.graph()?;
    let labels = call.labels.get(..graph.variables()).ok_or(Stop::Memory)?;
    *head(call.answer)?.0 = graph.log_potential(labels).ok_or(Stop::Memory)?;
    Ok(Done { floats: 1, labels: 0, memory: 0 })
}

pub fn graph_incidence<T: Real>(call: &mut Call<'_, T>) -> Answer {
    let graph = call.graph()?;
    let mut pool = Pool::new(&mut *call.reals, &mut *call.words);
    let incidence = Incidence::build(&graph, pool.words(Incidence::len(graph.variables(), graph.edges()))?)?;
    let mut used = 0;
    for v in 0..graph.variables() as u32 {
        for &edge in incidence.edges(VarId(v)) {
            *call.labels.get_mut(used).ok_or(Stop::Memory)? = incidence.factor(edge).0;
            used += 1;
        }
    }
    pool.done(0, used)
}

pub fn chain_log_z<T: Real>(call: &mut Call<'_, T>) -> Answer {
    let chain = call.chain()?;
    let mut pool = Pool::new(&mut *call.reals, &mut *call.words);
    *head(call.answer)?.0 = chain.log_z(pool.reals(Chain::<T>::log_z_len(chain.labels()))?)?;
    pool.done(1, 0)
}

pub fn chain_forward_backward<T: Real>(call: &mut Call<'_, T>) -> Answer {
    let chain = call.chain()?;
    let (t, l) = (chain.positions(), chain.labels());
    let mut pool = Pool::new(&mut *call.reals, &mut *call.words);
    let memory = pool.reals(Chain::<T>::forward_backward_len(t, l))?;
    let (log_z, rest) = head(call.answer)?;
    let (single, pair) = (Chain::<T>::singles_len(t, l), Chain::<T>::pairs_len(t, l));
    let (singles, rest) = rest.split_at_mut_checked(single).ok_or(Stop::Memory)?;
    let pairs = rest.get_mut(..pair).ok_or(Stop::Memory)?;
    *log_z = chain.forward_backward(singles, Some(pairs), memory)?;
    pool.done(1 + single + pair, 0)
}

/// A chain with transitions of its own between any two positions.
#[inline(always)]
fn each_gap<'a, T: Real>(call: &Call<'a, T>) -> Result<Chain<'a, T>, Stop> {
    let (&[labels], &[_, states, _]) = (call.cards, call.table_start) else { return Err(Stop::Memory) };
    let (states, transitions) = call.values.split_at_checked(states as usize).ok_or(Stop::Memory)?;
    Ok(Chain::new(labels as usize, states, Transitions::Each(transitions))?)
}

/// Marginals with such transitions: as many exponentials as there are scores.
pub fn chain_each_gap<T: Real>(call: &mut Call<'_, T>) -> Answer {
    let chain = each_gap(call)?;
    let (t, l) = (chain.positions(), chain.labels());
    let mut pool = Pool::new(&mut *call.reals, &mut *call.words);
    let memory = pool.reals(Chain::<T>::forward_backward_len(t, l))?;
    let (log_z, rest) = head(call.answer)?;
    let (single, pair) = (Chain::<T>::singles_len(t, l), Chain::<T>::pairs_len(t, l));
    let (singles, rest) = rest.split_at_mut_checked(single).ok_or(Stop::Memory)?;
    let pairs = rest.get_mut(..pair).ok_or(Stop::Memory)?;
    *log_z = chain.forward_backward(singles, Some(pairs), memory)?;
    pool.done(1 + single + pair, 0)
}

/// The check of the same scores that makes a chain of them, and nothing else.
pub fn chain_check<T: Real>(call: &mut Call<'_, T>) -> Answer {
    let chain = each_gap(call)?;
    *head_label(call.labels)? = chain.positions() as u32;
    Ok(Done { floats: 0, labels: 1, memory: 0 })
}

/// The exponentials of the same scores, and nothing else.
pub fn exp_calls<T: Real>(call: &mut Call<'_, T>) -> Answer {
    let out = call.answer.get_mut(..call.values.len()).ok_or(Stop::Memory)?;
    for (o, &v) in out.iter_mut().zip(call.values) {
        *o = v.exp();
    }
    Ok(Done { floats: call.values.len(), labels: 0, memory: 0 })
}

pub fn chain_viterbi<T: Real>(call: &mut Call<'_, T>) -> Answer {
    let chain = call.chain()?;
    let (t, l) = (chain.positions(), chain.labels());
    let mut pool = Pool::new(&mut *call.reals, &mut *call.words);
    let memory = pool.reals(Chain::<T>::viterbi_len(l))?;
    let back = pool.words(Chain::<T>::viterbi_back_len(t, l))?;
    *head(call.answer)?.0 = chain.viterbi(call.labels, back, memory)?;
    pool.done(1, t)
}

pub fn chain_n_best<T: Real>(call: &mut Call<'_, T>) -> Answer {
    const N: usize = 5;
    let chain = call.chain()?;
    let (t, l) = (chain.positions(), chain.labels());
    let mut pool = Pool::new(&mut *call.reals, &mut *call.words);
    let memory = pool.reals(Chain::<T>::n_best_len(l, N))?;
    let back = pool.words(Chain::<T>::n_best_back_len(t, l, N))?;
    let found = chain.n_best(N, call.labels, call.answer, back, memory)?;
    pool.done(found, found.saturating_mul(t))
}

fn forest<'g, 'm, T: Real>(
    graph: &FactorGraph<'g, T>,
    pool: &mut Pool<'m, T>,
) -> Result<Forest<'g, 'm, T>, Stop> {
    let len = Forest::<T>::build_len(graph.variables(), graph.factors(), graph.edges());
    Ok(Forest::build(graph, pool.words(len)?)?)
}

pub fn tree_sum_product<T: Real>(call: &mut Call<'_, T>) -> Answer {
    let graph = call.graph()?;
    let mut pool = Pool::new(&mut *call.reals, &mut *call.words);
    let forest = forest(&graph, &mut pool)?;
    let memory = pool.reals(forest.sum_product_len())?;
    let (log_z, rest) = head(call.answer)?;
    let (single, joint) = (forest.marginals_len(), forest.beliefs_len());
    let (marginals, rest) = rest.split_at_mut_checked(single).ok_or(Stop::Memory)?;
    let beliefs = rest.get_mut(..joint).ok_or(Stop::Memory)?;
    *log_z = forest.sum_product(marginals, Some(beliefs), memory)?;
    pool.done(1 + single + joint, 0)
}

pub fn tree_max_product<T: Real>(call: &mut Call<'_, T>) -> Answer {
    let graph = call.graph()?;
    let mut pool = Pool::new(&mut *call.reals, &mut *call.words);
    let forest = forest(&graph, &mut pool)?;
    let memory = pool.reals(forest.max_product_len())?;
    *head(call.answer)?.0 = forest.max_product(call.labels, memory)?;
    pool.done(1, graph.variables())
}

/// A junction tree's run, its temporary memory, and the bytes of all that.
type Run<'a, 'm, T> = (Junction<'a, 'm, T>, Sequential<'m, T>, usize);

fn junction<'a, 'm, T: Real>(
    graph: FactorGraph<'a, T>,
    words: &'a [u32],
    pool: &mut Pool<'m, T>,
    facts: &'m mut [Fact<T>],
    marginals: bool,
) -> Result<Run<'a, 'm, T>, Stop> {
    let counters = pool.words(Plan::open_len(graph.variables(), graph.factors()))?;
    let plan = Plan::open(words, &graph, counters)?;
    let facts = facts.get_mut(..plan.clusters()).ok_or(Stop::Memory)?;
    let for_facts = size_of_val(facts);
    let memory = Memory {
        messages: pool.reals(plan.messages_len())?,
        facts,
        belief: pool.reals(if marginals { plan.belief_len() } else { 0 })?,
        separator: pool.reals(if marginals { plan.separator_len() } else { 0 })?,
        index: pool.words(plan.index_len())?,
        starts: pool.words(graph.variables())?,
    };
    let fork = Sequential { temp: pool.reals(plan.temp_len())? };
    Ok((Junction::new(plan, graph, memory)?, fork, for_facts))
}

/// Sum of the arities.
fn labels_of<T: Real>(graph: &FactorGraph<'_, T>) -> usize {
    graph.cards().iter().fold(0, |sum, &card| sum + card as usize)
}

pub fn junction_sum<T: Real>(call: &mut Call<'_, T>) -> Answer {
    let (graph, mut pool) = (call.graph()?, Pool::new(&mut *call.reals, &mut *call.words));
    let (mut run, mut fork, facts) = junction(graph, call.plan, &mut pool, call.facts, false)?;
    *head(call.answer)?.0 = run.sum(&mut fork)?;
    pool.used += facts;
    pool.done(1, 0)
}

pub fn junction_marginals<T: Real>(call: &mut Call<'_, T>) -> Answer {
    let (graph, mut pool) = (call.graph()?, Pool::new(&mut *call.reals, &mut *call.words));
    let (mut run, mut fork, facts) = junction(graph, call.plan, &mut pool, call.facts, true)?;
    let (log_z, rest) = head(call.answer)?;
    *log_z = run.sum(&mut fork)?;
    run.marginals(&mut fork, rest)?;
    pool.used += facts;
    pool.done(1 + labels_of(&graph), 0)
}

pub fn junction_maximise<T: Real>(call: &mut Call<'_, T>) -> Answer {
    let (graph, mut pool) = (call.graph()?, Pool::new(&mut *call.reals, &mut *call.words));
    let (mut run, mut fork, facts) = junction(graph, call.plan, &mut pool, call.facts, false)?;
    *head(call.answer)?.0 = run.maximise(&mut fork)?;
    run.decode(call.labels.get_mut(..graph.variables()).ok_or(Stop::Memory)?)?;
    pool.used += facts;
    pool.done(1, graph.variables())
}

pub fn junction_sample<T: Real>(call: &mut Call<'_, T>) -> Answer {
    const SAMPLES: usize = 4;
    let (graph, mut pool) = (call.graph()?, Pool::new(&mut *call.reals, &mut *call.words));
    let (mut run, mut fork, facts) = junction(graph, call.plan, &mut pool, call.facts, false)?;
    run.sum(&mut fork)?;
    let (mut rng, n) = (SEED, graph.variables());
    for labels in call.labels.chunks_exact_mut(n.max(1)).take(SAMPLES) {
        run.sample(&mut rng, labels)?;
    }
    pool.used += facts;
    pool.done(0, SAMPLES * n)
}

pub fn loopy_sum<T: Real>(call: &mut Call<'_, T>) -> Answer {
    let (graph, mut pool) = (call.graph()?, Pool::new(&mut *call.reals, &mut *call.words));
    let size = Dimensions::of(&graph);
    let (words, reals) =
        (pool.words(Loopy::<T>::words_len(&size))?, pool.reals(Loopy::<T>::reals_len(&size))?);
    let mut loopy = Loopy::idle(graph, Mode::Sum);
    loopy.lend(words, reals)?;
    let info = loopy.run(&Params { max_iterations: 50, ..Params::default() })?;
    let (log_z, rest) = head(call.answer)?;
    *log_z = loopy.log_z()?;
    loopy.marginals(rest)?;
    *head_label(call.labels)? = info.iterations;
    pool.done(1 + size.labels, 1)
}

pub fn loopy_max<T: Real>(call: &mut Call<'_, T>) -> Answer {
    let (graph, mut pool) = (call.graph()?, Pool::new(&mut *call.reals, &mut *call.words));
    let size = Dimensions::of(&graph);
    let (words, reals) =
        (pool.words(Loopy::<T>::words_len(&size))?, pool.reals(Loopy::<T>::reals_len(&size))?);
    let mut loopy = Loopy::idle(graph, Mode::Max);
    loopy.lend(words, reals)?;
    let half = T::from_f64(0.5);
    loopy.run(&Params {
        max_iterations: 50,
        damping: half,
        schedule: Schedule::Residual,
        ..Params::default()
    })?;
    *head(call.answer)?.0 = loopy.decode(call.labels)?;
    pool.done(1, size.variables)
}

pub fn trw_bound<T: Real>(call: &mut Call<'_, T>) -> Answer {
    let (graph, mut pool) = (call.graph()?, Pool::new(&mut *call.reals, &mut *call.words));
    let size = Dimensions::of(&graph);
    let (words, reals) = (pool.words(Trw::<T>::words_len(&size))?, pool.reals(Trw::<T>::reals_len(&size))?);
    let mut trw = Trw::idle(graph);
    trw.lend(words, reals)?;
    let info = trw.run(&Params { max_iterations: 20, damping: T::from_f64(0.5), ..Params::default() })?;
    let (bound, rest) = head(call.answer)?;
    *bound = info.bound;
    trw.marginals(rest)?;
    pool.done(1 + size.labels, 0)
}

pub fn icm_ascend<T: Real>(call: &mut Call<'_, T>) -> Answer {
    let (graph, mut pool) = (call.graph()?, Pool::new(&mut *call.reals, &mut *call.words));
    let size = Dimensions::of(&graph);
    let incidence = Incidence::build(&graph, pool.words(Incidence::len(size.variables, size.edges))?)?;
    let scratch = pool.reals(icm::scratch_len(&size))?;
    let labels = call.labels.get_mut(..size.variables).ok_or(Stop::Memory)?;
    *head(call.answer)?.0 = icm::ascend(&graph, &incidence, labels, 100, scratch)?.log_potential;
    pool.done(1, size.variables)
}

fn gibbs<T: Real>(call: &mut Call<'_, T>, scan: Scan<'_>, configurations: usize) -> Answer {
    let (graph, mut pool) = (call.graph()?, Pool::new(&mut *call.reals, &mut *call.words));
    let size = Dimensions::of(&graph);
    let incidence = Incidence::build(&graph, pool.words(Incidence::len(size.variables, size.edges))?)?;
    let words = pool.words(Gibbs::<T>::words_len(&size))?;
    let reals = pool.reals(Gibbs::<T>::reals_len(&size, configurations))?;
    let labels = call.labels.get_mut(..size.variables).ok_or(Stop::Memory)?;
    let mut sampler = Gibbs::new(graph, incidence, labels, words, reals)?;
    let params = gibbs::Params { start_sweeps: 10, burn_in: 5, sweeps: 20, batch: 0 };
    let mut rng = SEED;
    let info = sampler.run(scan, &params, &mut rng)?;
    let (error, rest) = head(call.answer)?;
    *error = info.error;
    sampler.marginals(rest)?;
    pool.done(1 + size.labels, size.variables)
}

pub fn gibbs_systematic<T: Real>(call: &mut Call<'_, T>) -> Answer {
    gibbs(call, Scan::Systematic, 0)
}

/// Rows of the grid as blocks.
pub fn gibbs_blocked<T: Real>(call: &mut Call<'_, T>) -> Answer {
    gibbs(call, Scan::Blocked { start: &[0, 3, 6, 9], variables: &[0, 1, 2, 3, 4, 5, 6, 7, 8] }, 12)
}

fn head_label(labels: &mut [u32]) -> Result<&mut u32, Stop> {
    labels.first_mut().ok_or(Stop::Memory)
}
