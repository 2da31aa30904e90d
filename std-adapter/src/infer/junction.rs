//! The junction tree on a desk: parts planned and run in parallel, memory known before it is taken.

use super::parts::Part;
use crate::memory::Reals;
use crate::par::{DeskFork, Par};
use crate::plan::{JunctionPlan, PlanError, PlanInfo, PlanParams, plan};
use gibbsite_core::error::InferError;
use gibbsite_core::graph::FactorGraph;
use gibbsite_core::infer::junction::{Fact, Junction, Memory};
use gibbsite_core::infer::plan::Plan;
use gibbsite_core::score::Score;

/// A plan for each part of a network.
#[derive(Debug)]
pub(super) struct Forest {
    plans: Vec<JunctionPlan>,
    pub(super) info: PlanInfo,
}

/// Plans all parts.
pub(super) fn prepare(parts: &[Part], params: &PlanParams) -> Result<Forest, PlanError> {
    let plans: Result<Vec<_>, _> = params
        .par
        .map(parts.iter().collect(), |part: &Part| plan(&part.network, params))
        .into_iter()
        .collect();
    let plans = plans?;
    let info = plans.iter().map(|p| p.info).fold(PlanInfo::default(), PlanInfo::and);
    Ok(Forest { plans, info })
}

/// Owned memory for one run, as large as the plan says.
struct Owned {
    messages: Reals,
    facts: Vec<Fact<f64>>,
    belief: Reals,
    separator: Reals,
    index: Vec<u32>,
    starts: Vec<u32>,
}

impl Owned {
    fn new(plan: &Plan<'_>, variables: usize, marginals: bool) -> Self {
        let for_marginals = |len: usize| if marginals { len } else { 0 };
        Self {
            messages: Reals::zeroed(plan.messages_len()),
            facts: vec![Fact::default(); plan.clusters()],
            belief: Reals::zeroed(for_marginals(plan.belief_len())),
            separator: Reals::zeroed(for_marginals(plan.separator_len())),
            index: vec![0; plan.index_len()],
            starts: vec![0; variables],
        }
    }

    fn lend(&mut self) -> Memory<'_, f64> {
        Memory {
            messages: self.messages.slice(),
            facts: &mut self.facts,
            belief: self.belief.slice(),
            separator: self.separator.slice(),
            index: &mut self.index,
            starts: &mut self.starts,
        }
    }
}

/// The same for small plans, in ordinary memory and any precision.
pub(crate) struct Buffers<T> {
    messages: Vec<T>,
    facts: Vec<Fact<T>>,
    belief: Vec<T>,
    separator: Vec<T>,
    index: Vec<u32>,
    starts: Vec<u32>,
}

impl<T: Score> Buffers<T> {
    pub(crate) fn new(plan: &Plan<'_>, variables: usize) -> Self {
        Self {
            messages: vec![T::default(); plan.messages_len()],
            facts: vec![Fact::default(); plan.clusters()],
            belief: vec![T::default(); plan.belief_len()],
            separator: vec![T::default(); plan.separator_len()],
            index: vec![0; plan.index_len()],
            starts: vec![0; variables],
        }
    }

    pub(crate) fn lend(&mut self) -> Memory<'_, T> {
        Memory {
            messages: &mut self.messages,
            facts: &mut self.facts,
            belief: &mut self.belief,
            separator: &mut self.separator,
            index: &mut self.index,
            starts: &mut self.starts,
        }
    }
}

fn opened<'a>(
    part: &'a Part,
    plan: &'a JunctionPlan,
) -> Result<(Plan<'a>, FactorGraph<'a, f64>), InferError> {
    let graph = part.network.graph().map_err(|_| InferError::Shape)?;
    let mut counters = vec![0; Plan::open_len(graph.variables(), graph.factors())];
    Ok((Plan::open(&plan.words, &graph, &mut counters)?, graph))
}

impl Forest {
    fn each<R: Send>(
        &self,
        parts: &[Part],
        par: Par,
        work: impl Fn(&Part, &JunctionPlan) -> Result<R, InferError> + Sync + Send,
    ) -> Result<Vec<R>, InferError> {
        let pairs: Vec<_> = parts.iter().zip(&self.plans).collect();
        par.map(pairs, |(part, plan)| work(part, plan)).into_iter().collect()
    }

    /// `log Z` of all parts together.
    pub(super) fn log_z(&self, parts: &[Part], par: Par) -> Result<f64, InferError> {
        let each = self.each(parts, par, |part, words| {
            let (plan, graph) = opened(part, words)?;
            let mut owned = Owned::new(&plan, graph.variables(), false);
            Junction::new(plan, graph, owned.lend())?.sum(&mut DeskFork::new(par))
        })?;
        Ok(each.into_iter().sum())
    }

    /// `log Z`, and each part's marginals.
    pub(super) fn marginals(&self, parts: &[Part], par: Par) -> Result<(f64, Vec<Vec<f64>>), InferError> {
        let each = self.each(parts, par, |part, words| {
            let (plan, graph) = opened(part, words)?;
            let mut owned = Owned::new(&plan, graph.variables(), true);
            let mut run = Junction::new(plan, graph, owned.lend())?;
            let mut fork = DeskFork::new(par);
            let log_z = run.sum(&mut fork)?;
            let mut out = vec![0.0; graph.cards().iter().map(|&c| c as usize).sum()];
            run.marginals(&mut fork, &mut out)?;
            Ok((log_z, out))
        })?;
        Ok((each.iter().map(|e| e.0).sum(), each.into_iter().map(|e| e.1).collect()))
    }

    /// Each part's best assignment.
    pub(super) fn assignment(&self, parts: &[Part], par: Par) -> Result<Vec<Vec<u32>>, InferError> {
        self.each(parts, par, |part, words| {
            let (plan, graph) = opened(part, words)?;
            let mut owned = Owned::new(&plan, graph.variables(), false);
            let mut run = Junction::new(plan, graph, owned.lend())?;
            run.maximise(&mut DeskFork::new(par))?;
            let mut labels = vec![0; graph.variables()];
            run.decode(&mut labels)?;
            Ok(labels)
        })
    }
}
