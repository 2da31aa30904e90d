//! Pieces: connected sets of free variables whose neighbours are all known. The logarithm of a piece's partition function and its
//! derivatives are what every composite likelihood is made of.
//!
//! What depends on the structure alone is planned once ([`Piece`]): how the slices of factor tables at the known labels make the tables of a
//! small network, and which engine takes it. Joint tables of a few dozen entries are enumerated (the block is then one multinomial regression,
//! core's [`local`]); pairwise factors without cycles go to core's [`pairwise`] forests, many samples side by side; what else has no cycles to its forests,
//! the rest to junction trees.

use super::approximate::{Inference, bethe, room, sampled};
use super::branches::Order;
use super::tables::Tables;
use crate::data::network::Network;
use crate::par::{DeskFork, Kernel, vectorized};
use crate::plan::{PlanError, PlanInfo, PlanParams, plan};
use gibbsite_core::error::InferError;
use gibbsite_core::graph::FactorGraph;
use gibbsite_core::ids::FactorId;
use gibbsite_core::infer::junction::{Fact, Junction, Memory};
use gibbsite_core::infer::plan::Plan;
use gibbsite_core::infer::tree::Forest;
use gibbsite_core::infer::tree::pairwise::{self, Branch};
use gibbsite_core::local;
use gibbsite_core::stride::{self, Axes, Axis};
use std::collections::HashMap;

/// Samples that go through a forest of pairwise factors side by side.
pub(super) const SIDE: usize = 8;
/// Joint tables up to this size are enumerated.
const BLOCK: usize = 64;

/// A connected set of free variables, its network's shape, and how the network's tables come about.
#[derive(Debug)]
pub(super) struct Piece {
    cards: Vec<u32>,
    scope_start: Vec<u32>,
    scope: Vec<u32>,
    table_start: Vec<u32>,
    members: Vec<Member>,
    /// `[variable, stride]` of the members' known variables.
    known: Vec<[u32; 2]>,
    axes: Vec<Axis>,
    engine: Engine,
    /// Its factors with inputs.
    own: Vec<u32>,
    /// Its variables, if their labels are wanted.
    variables: Vec<u32>,
}

/// A factor that mentions a variable of the piece.
#[derive(Debug)]
struct Member {
    /// Where its table begins.
    at: u32,
    /// The network's factor to which it is added.
    group: u32,
    /// Where its entries of `known` and of `axes` end; they begin where those of the member before it end.
    known_end: u32,
    axes_end: u32,
}

#[derive(Debug)]
enum Engine {
    Block,
    /// Tables of variables come before those of pairs.
    Pairwise(Vec<Branch>),
    Forest,
    /// The plan's words, and for each factor the cluster that has its marginal.
    Junction(Vec<u32>, Vec<u32>),
    /// Too wide; never [`Inference::Exact`].
    Estimate(Inference),
}

/// Memory for engines, as large as the largest piece so far needed.
#[derive(Debug)]
pub(super) struct Engines {
    values: Vec<f64>,
    beliefs: Vec<f64>,
    lanes: Vec<[f64; SIDE]>,
    messages: Vec<[f64; SIDE]>,
    marginals: Vec<f64>,
    words: Vec<u32>,
    reals: Vec<f64>,
    facts: Vec<Fact<f64>>,
    belief: Vec<f64>,
    separator: Vec<f64>,
    index: Vec<u32>,
    starts: Vec<u32>,
    fork: DeskFork<f64>,
    /// How often belief propagation has not come to rest.
    pub(super) restless: u64,
    /// Tells one Gibbs chain from the next.
    pub(super) draw: u64,
}

impl Engines {
    pub(super) fn new(fork: DeskFork<f64>) -> Self {
        Self {
            values: vec![],
            beliefs: vec![],
            lanes: vec![],
            messages: vec![],
            marginals: vec![],
            words: vec![],
            reals: vec![],
            facts: vec![],
            belief: vec![],
            separator: vec![],
            index: vec![],
            starts: vec![],
            fork,
            restless: 0,
            draw: 0,
        }
    }
}

impl Piece {
    /// Plans for these variables (ascending) and the factors that mention them. Errors: no plan, or one whose tables need more than
    /// `max_mib` mebibytes.
    pub(super) fn new(
        tables: &Tables<'_>,
        variables: &[u32],
        factors: &[u32],
        (max_mib, inference): (f64, Inference),
        params: &PlanParams,
    ) -> Result<Self, PlanError> {
        let field = tables.field;
        let cards: Vec<u32> = variables.iter().map(|&v| field.cards()[v as usize]).collect();
        let joint = cards.iter().try_fold(1usize, |n, &c| n.checked_mul(c as usize).filter(|&n| n <= BLOCK));
        let mut piece = Self {
            cards,
            scope_start: vec![0],
            scope: vec![],
            table_start: vec![0],
            members: vec![],
            known: vec![],
            axes: vec![],
            engine: Engine::Block,
            own: vec![],
            variables: vec![],
        };
        let local = |v: u32| variables.binary_search(&v).ok().map(|at| at as u32);
        let own: Vec<u32> = factors.iter().copied().filter(|k| tables.own.binary_search(k).is_ok()).collect();
        piece.own = own;
        if joint.is_some() {
            piece.push_group((0..variables.len() as u32).collect());
            factors.iter().for_each(|&k| piece.push_member(tables, k as usize, 0, local));
            return Ok(piece);
        }
        let scope_of = |k: u32| {
            let mut free: Vec<u32> = field.scope(k as usize).iter().filter_map(|&v| local(v)).collect();
            free.sort_unstable();
            free
        };
        let mut scopes: Vec<Vec<u32>> = Vec::new();
        let mut groups: HashMap<Vec<u32>, u32> = HashMap::new();
        for &k in factors {
            let scope = scope_of(k);
            if !groups.contains_key(&scope) {
                groups.insert(scope.clone(), scopes.len() as u32);
                scopes.push(scope);
            }
        }
        let branches = Order::new(&piece.cards, &scopes).map(|order| {
            scopes = order.scopes;
            groups = scopes.iter().cloned().zip(0..).collect();
            order.branches
        });
        scopes.into_iter().for_each(|scope| piece.push_group(scope));
        for &k in factors {
            piece.push_member(tables, k as usize, groups[&scope_of(k)], local);
        }
        piece.engine = match (piece.choose(branches, max_mib, params), inference) {
            (Err(e), Inference::Exact) => return Err(e),
            // As many entries as the data has are no reason to estimate.
            (Err(e), _) if piece.entries() == u32::MAX as usize => return Err(e),
            (Err(_), estimate) => {
                piece.variables = variables.to_vec();
                Engine::Estimate(estimate)
            }
            (Ok(engine), _) => engine,
        };
        Ok(piece)
    }

    fn push_group(&mut self, scope: Vec<u32>) {
        let size: u32 = scope.iter().map(|&v| self.cards[v as usize]).product();
        self.scope.extend(scope);
        self.scope_start.push(self.scope.len() as u32);
        // What 32 bits cannot count is refused in `choose`.
        self.table_start.push(self.table_start[self.table_start.len() - 1].saturating_add(size));
    }

    fn push_member(&mut self, tables: &Tables<'_>, k: usize, group: u32, local: impl Fn(u32) -> Option<u32>) {
        let (scope, cards) = (tables.field.scope(k), tables.field.cards());
        let stride_at = |i: usize| scope[i + 1..].iter().map(|&v| cards[v as usize]).product::<u32>();
        let range = self.scope_start[group as usize] as usize..self.scope_start[group as usize + 1] as usize;
        let mut axes = Axes::new();
        for &v in &self.scope[range] {
            let place = scope.iter().position(|&u| local(u) == Some(v));
            // Groups have at most MAX_OUTPUTS variables of more than one label, or together at most BLOCK configurations: there is room.
            stride::push(&mut axes, self.cards[v as usize], place.map_or(0, stride_at));
        }
        self.axes.extend_from_slice(&axes);
        let known = (0..scope.len()).filter(|&i| local(scope[i]).is_none()).map(|i| [scope[i], stride_at(i)]);
        self.known.extend(known);
        self.members.push(Member {
            at: tables.base[k],
            group,
            known_end: self.known.len() as u32,
            axes_end: self.axes.len() as u32,
        });
    }

    fn choose(
        &self,
        branches: Option<Vec<Branch>>,
        max_mib: f64,
        params: &PlanParams,
    ) -> Result<Engine, PlanError> {
        let entries = self.entries() as f64;
        let info = PlanInfo { messages: entries, for_marginals: entries, ..PlanInfo::default() };
        if info.mebibytes(true) > max_mib || self.entries() == u32::MAX as usize {
            return Err(PlanError::TooLarge { info });
        }
        if let Some(branches) = branches {
            return Ok(Engine::Pairwise(branches));
        }
        let zeros = vec![0.0; self.entries()];
        let graph = self.graph(&zeros).map_err(|_| PlanError::TooWide { bits: 32.0 })?;
        let mut order = vec![0; Forest::<f64>::build_len(graph.variables(), graph.factors(), graph.edges())];
        if Forest::build(&graph, &mut order).is_ok() {
            return Ok(Engine::Forest);
        }
        let network = || {
            let mut network = Network::with_cards(self.cards.clone())?;
            for k in graph.factor_ids() {
                network.push_factor(graph.scope(k), graph.table(k).iter().copied())?;
            }
            Ok::<_, gibbsite_core::error::GraphError>(network)
        };
        let network = network().map_err(|_| PlanError::TooWide { bits: 32.0 })?;
        let found = plan(&network, &PlanParams { factor_marginals: true, ..*params })?;
        if found.info.mebibytes(true) > max_mib {
            return Err(PlanError::TooLarge { info: found.info });
        }
        let mut counters = vec![0; Plan::open_len(graph.variables(), graph.factors())];
        let mut holders = vec![0; graph.factors()];
        if let Ok(plan) = Plan::open(&found.words, &graph, &mut counters) {
            for c in 0..plan.clusters() {
                let cluster = plan.cluster(c);
                for &k in cluster.inputs.iter().filter(|_| cluster.potential) {
                    holders[k as usize] = c as u32;
                }
            }
        }
        Ok(Engine::Junction(found.words, holders))
    }

    fn entries(&self) -> usize {
        self.table_start.last().map_or(0, |&end| end as usize)
    }

    fn group(&self, group: u32) -> std::ops::Range<usize> {
        self.table_start[group as usize] as usize..self.table_start[group as usize + 1] as usize
    }

    fn graph<'v>(&'v self, values: &'v [f64]) -> Result<FactorGraph<'v, f64>, InferError> {
        FactorGraph::new(&self.cards, &self.scope_start, &self.scope, &self.table_start, values)
            .map_err(|_| InferError::BadValue)
    }

    /// Members with where the slice of their table at the known labels begins, and its axes in the group's table.
    fn slices<'v>(&'v self, labels: &'v [u32]) -> impl Iterator<Item = (u32, usize, &'v [Axis])> {
        let (mut known, mut axes) = (0, 0);
        self.members.iter().map(move |m| {
            let own = &self.known[known..m.known_end as usize];
            let shape = &self.axes[axes..m.axes_end as usize];
            (known, axes) = (m.known_end as usize, m.axes_end as usize);
            let at = own.iter().fold(m.at, |at, &[v, stride]| at + labels[v as usize] * stride);
            (m.group, at as usize, shape)
        })
    }

    /// `log Z` of the piece at a sample's labels; `weight` times its derivatives is added to `residual`, if that is wanted. A plan is opened once and then kept in `opened`:
    /// that takes longer than a small junction tree itself.
    pub(super) fn log_z<'p>(
        &'p self,
        tables: &[f64],
        labels: &[u32],
        weight: f64,
        (engines, opened): (&mut Engines, &mut Option<Plan<'p>>),
        residual: &mut [f64],
    ) -> Result<f64, InferError> {
        let entries = self.entries();
        self.gather(tables, labels, room(&mut engines.values, entries));
        let Engines { values, beliefs, .. } = engines;
        let log_z = match &self.engine {
            Engine::Block => {
                let beliefs = room(beliefs, entries);
                beliefs.copy_from_slice(&values[..entries]);
                local::conditional(beliefs)?
            }
            Engine::Pairwise(_) | Engine::Forest => self.forest(engines)?,
            Engine::Junction(words, holders) => self.junction(words, holders, engines, opened)?,
            Engine::Estimate(inference) => self.estimate(*inference, labels, engines)?,
        };
        self.scatter(weight, &mut engines.beliefs[..entries], labels, residual);
        if log_z.is_finite() { Ok(log_z) } else { Err(InferError::BadValue) }
    }

    /// The network's tables, from the slices of factor tables at a sample's labels.
    fn gather(&self, tables: &[f64], labels: &[u32], values: &mut [f64]) {
        values.fill(0.0);
        for (group, at, axes) in self.slices(labels) {
            stride::spread(axes, &mut values[self.group(group)], &tables[at..], |sum, t| *sum += t);
        }
    }

    /// `weight` times the beliefs to the residuals of those slices.
    fn scatter(&self, weight: f64, beliefs: &mut [f64], labels: &[u32], residual: &mut [f64]) {
        if weight != 1.0 {
            beliefs.iter_mut().for_each(|b| *b *= weight);
        }
        for (group, at, axes) in self.slices(labels) {
            stride::fold(axes, &beliefs[self.group(group)], &mut residual[at..], |sum, b| sum + b);
        }
    }

    /// Its factors with inputs.
    pub(super) fn own(&self) -> &[u32] {
        &self.own
    }

    /// Whether several samples may go [side by side](Self::enter_lane).
    pub(super) fn is_pairwise(&self) -> bool {
        matches!(self.engine, Engine::Pairwise(_))
    }

    /// Makes one sample the content of a lane.
    pub(super) fn enter_lane(&self, lane: usize, tables: &[f64], labels: &[u32], engines: &mut Engines) {
        let entries = self.entries();
        let values = room(&mut engines.values, entries);
        self.gather(tables, labels, values);
        let lanes = room(&mut engines.lanes, entries);
        lanes.iter_mut().zip(&*values).for_each(|(row, &value)| row[lane] = value);
    }

    /// The marginals of all lanes; `None` if that takes [`log_z`](Self::log_z), lane by lane.
    pub(super) fn run_lanes(&self, engines: &mut Engines) -> Result<Option<[f64; SIDE]>, InferError> {
        let Engine::Pairwise(branches) = &self.engine else { return Ok(None) };
        let lanes = room(&mut engines.lanes, self.entries());
        let unary = branches.iter().map(|b| b.arity as usize).sum();
        let (unary, pair) = lanes.split_at_mut_checked(unary).ok_or(InferError::Shape)?;
        let messages = room(&mut engines.messages, pairwise::messages_len(branches));
        let mut log_z = [0.0; SIDE];
        let done = vectorized(SideBySide { branches, unary, pair, messages, log_z: &mut log_z })?;
        Ok(done.then_some(log_z))
    }

    /// `weight` times the marginals of a lane to the residuals.
    pub(super) fn leave_lane(
        &self,
        lane: usize,
        weight: f64,
        labels: &[u32],
        engines: &mut Engines,
        residual: &mut [f64],
    ) {
        let beliefs = room(&mut engines.beliefs, self.entries());
        beliefs.iter_mut().zip(&engines.lanes).for_each(|(b, row)| *b = row[lane]);
        self.scatter(weight, beliefs, labels, residual);
    }

    /// Whether the engine gives estimates.
    pub(super) fn is_estimated(&self) -> bool {
        matches!(self.engine, Engine::Estimate(_))
    }

    fn estimate(
        &self,
        inference: Inference,
        labels: &[u32],
        engines: &mut Engines,
    ) -> Result<f64, InferError> {
        let Engines { values, beliefs, words, reals, starts, restless, draw, .. } = engines;
        let graph = self.graph(&values[..self.entries()])?;
        let beliefs = room(beliefs, self.entries());
        let Inference::Gibbs { sweeps, seed } = inference else {
            let (log_z, rests) = bethe(graph, words, reals, beliefs)?;
            *restless += u64::from(!rests);
            return Ok(log_z);
        };
        let state = room(starts, self.variables.len());
        for ((state, &v), &card) in state.iter_mut().zip(&self.variables).zip(&self.cards) {
            // A label that is not known begins anywhere.
            *state = Some(labels[v as usize]).filter(|&label| label < card).unwrap_or(0);
        }
        *draw = draw.wrapping_add(0x9e37_79b9_7f4a_7c15);
        sampled(graph, state, (sweeps, seed ^ *draw), words, reals, beliefs)?;
        Ok(0.0)
    }

    fn forest(&self, engines: &mut Engines) -> Result<f64, InferError> {
        let Engines { values, beliefs, marginals, words, reals, .. } = engines;
        let graph = self.graph(&values[..self.entries()])?;
        let order = Forest::<f64>::build_len(graph.variables(), graph.factors(), graph.edges());
        let forest = Forest::build(&graph, room(words, order))?;
        let (marginals, beliefs) =
            (room(marginals, forest.marginals_len()), room(beliefs, forest.beliefs_len()));
        forest.sum_product(marginals, Some(beliefs), room(reals, forest.sum_product_len()))
    }

    fn junction<'p>(
        &self,
        plan: &'p [u32],
        holders: &[u32],
        engines: &mut Engines,
        opened: &mut Option<Plan<'p>>,
    ) -> Result<f64, InferError> {
        let Engines {
            values,
            beliefs,
            marginals,
            words,
            reals,
            facts,
            belief,
            separator,
            index,
            starts,
            fork,
            ..
        } = engines;
        let graph = self.graph(&values[..self.entries()])?;
        let plan = match *opened {
            Some(plan) => plan,
            None => {
                let counters = room(words, Plan::open_len(graph.variables(), graph.factors()));
                *opened.insert(Plan::open(plan, &graph, counters)?)
            }
        };
        let memory = Memory {
            messages: room(reals, plan.messages_len()),
            facts: room(facts, plan.clusters()),
            belief: room(belief, plan.belief_len()),
            separator: room(separator, plan.separator_len()),
            index: room(index, plan.index_len()),
            starts: room(starts, graph.variables()),
        };
        let mut run = Junction::new(plan, graph, memory)?;
        let log_z = run.sum(fork)?;
        run.marginals(fork, room(marginals, self.cards.iter().map(|&c| c as usize).sum()))?;
        let beliefs = room(beliefs, self.entries());
        for (k, &holder) in holders.iter().enumerate() {
            let out = &mut beliefs[self.group(k as u32)];
            run.factor_marginal_in(holder as usize, FactorId(k as u32), fork, out)?;
        }
        Ok(log_z)
    }
}

struct SideBySide<'w> {
    branches: &'w [Branch],
    unary: &'w mut [[f64; SIDE]],
    pair: &'w mut [[f64; SIDE]],
    messages: &'w mut [[f64; SIDE]],
    log_z: &'w mut [f64; SIDE],
}

impl Kernel for SideBySide<'_> {
    type Output = Result<bool, InferError>;
    #[inline(always)]
    fn run(self) -> Self::Output {
        pairwise::sum_product(self.branches, self.unary, self.pair, self.messages, self.log_z)
    }
}
