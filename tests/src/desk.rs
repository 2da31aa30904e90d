//! Memory for a run of core's junction engine, exactly as much as the plan asks for.

use gibbsite::data::network::Network;
use gibbsite::plan::{JunctionPlan, PlanParams, plan};
use gibbsite_core::error::InferError;
use gibbsite_core::graph::FactorGraph;
use gibbsite_core::infer::fork::Sequential;
use gibbsite_core::infer::junction::{Fact, Junction, Memory};
use gibbsite_core::infer::plan::Plan;
use gibbsite_core::math::Real;
use gibbsite_core::score::Score;

/// The parts of a run's memory, to make one of them too short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Message memory.
    Messages,
    /// One fact for each cluster.
    Facts,
    /// The largest belief.
    Belief,
    /// Separator memory.
    Separator,
    /// Index memory.
    Index,
    /// One word for each variable.
    Starts,
    /// The executor's temporary memory.
    Temp,
}

impl Piece {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Messages, Self::Facts, Self::Belief, Self::Separator, Self::Index, Self::Starts, Self::Temp];
}

/// Owned memory of one run, full of junk: a run must not read what it has not written.
#[derive(Debug)]
pub struct Desk<T> {
    messages: Vec<T>,
    facts: Vec<Fact<T>>,
    belief: Vec<T>,
    separator: Vec<T>,
    index: Vec<u32>,
    starts: Vec<u32>,
    temp: Vec<T>,
}

impl<T: Score> Desk<T> {
    /// As much as `plan` asks for on a graph of this many variables.
    pub fn new(plan: &Plan<'_>, variables: usize) -> Self {
        let seven = (0..7).fold(T::default(), |sum, _| sum.plus(T::ONE));
        let junk = |len| vec![seven; len];
        Self {
            messages: junk(plan.messages_len()),
            facts: vec![Fact::default(); plan.clusters()],
            belief: junk(plan.belief_len()),
            separator: junk(plan.separator_len()),
            index: vec![77; plan.index_len()],
            starts: vec![77; variables],
            temp: junk(plan.temp_len()),
        }
    }

    /// Takes one entry away; `false` if there is none.
    pub fn shorten(&mut self, piece: Piece) -> bool {
        match piece {
            Piece::Messages => self.messages.pop().is_some(),
            Piece::Facts => self.facts.pop().is_some(),
            Piece::Belief => self.belief.pop().is_some(),
            Piece::Separator => self.separator.pop().is_some(),
            Piece::Index => self.index.pop().is_some(),
            Piece::Starts => self.starts.pop().is_some(),
            Piece::Temp => self.temp.pop().is_some(),
        }
    }

    /// The run and its executor.
    pub fn lend<'a, 'm>(
        &'m mut self,
        plan: Plan<'a>,
        graph: FactorGraph<'a, T>,
    ) -> Result<(Junction<'a, 'm, T>, Sequential<'m, T>), InferError> {
        let memory = Memory {
            messages: &mut self.messages,
            facts: &mut self.facts,
            belief: &mut self.belief,
            separator: &mut self.separator,
            index: &mut self.index,
            starts: &mut self.starts,
        };
        Ok((Junction::new(plan, graph, memory)?, Sequential { temp: &mut self.temp }))
    }
}

/// Opens a plan with exactly the memory that this takes.
pub fn open<'p, T: Score>(words: &'p [u32], graph: &FactorGraph<'_, T>) -> Result<Plan<'p>, InferError> {
    Plan::open(words, graph, &mut vec![9; Plan::open_len(graph.variables(), graph.factors())])
}

/// Planning parameters with this seed and block length.
pub fn params(seed: u64, block: u32, factor_marginals: bool) -> PlanParams {
    let mut params = PlanParams { block, factor_marginals, ..PlanParams::default() };
    params.order.seed = seed;
    params
}

/// A plan for a network that is narrow enough.
pub fn planned(network: &Network, params: &PlanParams) -> JunctionPlan {
    plan(network, params).expect("a narrow network")
}

/// What a run found, in `f64`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// `log Z`.
    pub log_z: f64,
    /// Marginals, variable after variable.
    pub marginals: Vec<f64>,
    /// Marginal of each factor whose belief the plan keeps.
    pub factor_marginals: Vec<Option<Vec<f64>>>,
    /// The maximum.
    pub best: f64,
    /// Where it is.
    pub labels: Vec<u32>,
}

/// Runs everything: sum, marginals, factor marginals, maximum, decoding.
pub fn run<T: Real>(words: &[u32], graph: FactorGraph<'_, T>) -> Result<Found, InferError> {
    let plan = open(words, &graph)?;
    let mut desk = Desk::new(&plan, graph.variables());
    let (mut run, mut fork) = desk.lend(plan, graph)?;
    let mut found = Found { log_z: Real::to_f64(run.sum(&mut fork)?), ..Found::default() };
    let mut marginals = vec![T::from_f64(7.5); graph.cards().iter().map(|&c| c as usize).sum()];
    run.marginals(&mut fork, &mut marginals)?;
    found.marginals = marginals.into_iter().map(Real::to_f64).collect();
    for k in graph.factor_ids() {
        let mut out = vec![T::from_f64(7.5); graph.table(k).len()];
        let kept = run.factor_marginal(k, &mut fork, &mut out).is_ok();
        found.factor_marginals.push(kept.then(|| out.into_iter().map(Real::to_f64).collect()));
    }
    found.best = Real::to_f64(run.maximise(&mut fork)?);
    found.labels = vec![u32::MAX; graph.variables()];
    run.decode(&mut found.labels)?;
    Ok(found)
}
