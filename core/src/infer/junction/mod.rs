//! Exact inference by message passing in a junction tree, driven by a [`Plan`].
//!
//! Objective: `log Z = log Σ_x Π_k ψ_k(x_{C_k})` (Thesis eq. 1.3), all `P(x_i)`, `max_x Π_k ψ_k`, and samples
//! from `P(x)`. Input: a checked graph and a plan for it. Exact: there is no stopping rule; the work is the sum of the
//! clique sizes (Lauritzen & Spiegelhalter 1988; the thesis refers to it in 1.1.2 as low-treewidth inference).
//!
//! How ours differs from the textbook:
//! - **Linear where safe, logarithmic where not.** Each message carries the logarithms of its largest and smallest
//!   non-zero entry. If their sums over a clique's inputs prove that no product can leave the
//!   floating-point range, the clique multiplies potentials; otherwise that clique alone is done with
//!   log-add-exp. Both are exact up to rounding, for log-potentials of any size.
//! - **Memory is the separators plus one clique.** The first pass never stores a clique. The second makes
//!   one clique's belief at a time, and a separator's message down, belief ÷ message up, takes the place of the message up.
//! - **Decoding and sampling keep no back pointers**: the separator's labels are known when a clique is reached, and
//!   the few configurations of the rest are evaluated again.

mod descend;
mod distribute;
mod operands;
mod separator;

pub use separator::Fact;

use super::contract::{LOG_SUM, Linear, Loops, MAX_PLUS, Shape, axes_under, contract, size_of_scope};
use super::fork::{Fork, Span};
use super::plan::{Cluster, Plan};
use crate::error::{InferError, need};
use crate::graph::FactorGraph;
use crate::ids::FactorId;
use crate::math::Real;
use crate::stride::{self, Axis};
use operands::Operands;
use separator::{settle_linear, settle_log, settle_max};

/// The memory of a run, lent by the caller; lengths as the [`Plan`] says.
#[derive(Debug)]
pub struct Memory<'m, T> {
    /// [`Plan::messages_len`] entries.
    pub messages: &'m mut [T],
    /// One for each cluster.
    pub facts: &'m mut [Fact<T>],
    /// [`Plan::belief_len`] entries for marginals, else none.
    pub belief: &'m mut [T],
    /// [`Plan::separator_len`] entries for marginals, else none.
    pub separator: &'m mut [T],
    /// [`Plan::index_len`] entries.
    pub index: &'m mut [u32],
    /// One for each variable.
    pub starts: &'m mut [u32],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Empty,
    Summed,
    Maximised,
    Distributed,
}

/// A run of a plan on a graph.
///
/// ```
/// use gibbsite_core::graph::FactorGraph;
/// use gibbsite_core::infer::fork::Sequential;
/// use gibbsite_core::infer::junction::{Fact, Junction, Memory};
/// use gibbsite_core::infer::plan::{HEADER, MAGIC, NONE, POTENTIAL, Plan};
/// // One factor over one variable: a potential below a clique.
/// let values = [0.0, 3f64.ln()];
/// let graph = FactorGraph::new(&[2], &[0, 1], &[0], &[0, 2], &values)?;
/// let words = [
///     MAGIC, 1, 1, 2, 64, 0, // header
///     1, POTENTIAL, 32, 1, 32, 1, 32, 1, 32, 0, 32, 0, 0, // cluster 0: factor 0
///     NONE, 0, 32, 1, 32, 0, 32, 1, 32, 1, 32, 0, 2, // cluster 1: child 0, home of variable 0
///     0, // pool: the number 0, which is variable, factor and child
/// ];
/// let plan = Plan::open(&words, &graph, &mut [0; 8]).unwrap();
/// let (mut messages, mut facts, mut belief) = ([0.0; 3], [Fact::default(); 2], [0.0; 2]);
/// let (mut separator, mut index, mut temp) = ([0.0; 2], [0; 32], [0.0; 2]);
/// let memory = Memory {
///     messages: &mut messages, facts: &mut facts, belief: &mut belief,
///     separator: &mut separator, index: &mut index, starts: &mut [0],
/// };
/// let mut fork = Sequential { temp: &mut temp };
/// let mut run = Junction::new(plan, graph, memory).unwrap();
/// assert!((run.sum(&mut fork).unwrap() - 4f64.ln()).abs() < 1e-12);
/// let mut marginals = [0.0; 2];
/// run.marginals(&mut fork, &mut marginals).unwrap();
/// assert!((marginals[1] - 0.75).abs() < 1e-12);
/// # Ok::<(), gibbsite_core::error::GraphError>(())
/// ```
#[derive(Debug)]
pub struct Junction<'a, 'm, T> {
    plan: Plan<'a>,
    graph: FactorGraph<'a, T>,
    memory: Memory<'m, T>,
    state: State,
}

impl<'a, 'm, T: Real> Junction<'a, 'm, T> {
    /// Joins plan, graph and memory. The plan must have been opened for this graph, or for one that
    /// differs from it in its values only.
    #[inline(always)]
    pub fn new(plan: Plan<'a>, graph: FactorGraph<'a, T>, memory: Memory<'m, T>) -> Result<Self, InferError> {
        need(plan.messages_len(), memory.messages.len())?;
        need(plan.clusters(), memory.facts.len())?;
        need(plan.index_len(), memory.index.len())?;
        need(graph.variables(), memory.starts.len())?;
        Ok(Self { plan, graph, memory, state: State::Empty })
    }

    /// The first pass with sums: returns `log Z`, or [`InferError::ZeroProbability`]; or [`InferError::BadValue`]
    /// if sums of the log-potentials leave the range of numbers.
    pub fn sum(&mut self, fork: &mut impl Fork<T>) -> Result<T, InferError> {
        self.state = State::Empty;
        let log_z = self.collect(fork, false)?;
        self.state = State::Summed;
        Ok(log_z)
    }

    /// The first pass with maxima: returns `max_x Σ_k log ψ_k(x)`; errors as in [`sum`](Self::sum).
    pub fn maximise(&mut self, fork: &mut impl Fork<T>) -> Result<T, InferError> {
        self.state = State::Empty;
        let best = self.collect(fork, true)?;
        self.state = State::Maximised;
        Ok(best)
    }

    #[inline(never)]
    fn collect(&mut self, fork: &mut impl Fork<T>, max: bool) -> Result<T, InferError> {
        let mut total = T::zero();
        // No sum of log-potentials, nor a difference of such sums, is beyond a few times this.
        let mut magnitude = T::zero();
        for k in self.graph.factor_ids() {
            let table = self.graph.table(k);
            let finite = |v: &T| if v.abs() < T::INFINITY { v.abs() } else { T::zero() };
            magnitude += table.iter().map(finite).fold(T::zero(), T::larger);
            if self.graph.scope(k).is_empty() {
                total += table.first().copied().unwrap_or(T::zero());
            }
        }
        if magnitude * T::from_f64(8.0) == T::INFINITY {
            return Err(InferError::BadValue);
        }
        // Here `starts` marks the variables that some factor mentions.
        self.memory.starts.fill(0);
        for c in 0..self.plan.clusters() {
            if self.plan.is_potential(c) {
                self.multiply_factors(c, max)?;
            } else {
                self.send_up(c, max, fork)?;
            }
            total += self.fact(c)?.scale;
            if let Some(root) = self.total_of_root(c, max)? {
                total += root;
            }
        }
        for (&card, &mark) in self.graph.cards().iter().zip(self.memory.starts.iter()) {
            if !max && mark == 0 {
                // A variable that no factor mentions is free: it multiplies Z by its arity.
                total += T::from_f64(f64::from(card)).ln();
            }
        }
        if total == T::NEG_INFINITY { Err(InferError::ZeroProbability) } else { Ok(total) }
    }

    /// The logarithm of a root's total, less its scale; marks the variables whose marginals a cluster has.
    #[inline(never)]
    fn total_of_root(&mut self, c: usize, max: bool) -> Result<Option<T>, InferError> {
        let cluster = self.plan.cluster(c);
        for &v in cluster.homes.iter().chain(cluster.separator_homes) {
            if let Some(mark) = self.memory.starts.get_mut(v as usize) {
                *mark = 1;
            }
        }
        if cluster.parent.is_some() {
            return Ok(None);
        }
        let table = self.message(&cluster)?;
        let total = if max {
            crate::math::maximum(table)
        } else if self.fact(c)?.log {
            crate::math::log_sum_exp(table)
        } else {
            let mut sum = T::zero();
            for &v in table {
                sum += v;
            }
            sum.ln()
        };
        Ok(Some(total))
    }

    fn fact(&self, c: usize) -> Result<&Fact<T>, InferError> {
        self.memory.facts.get(c).ok_or(InferError::Shape)
    }

    fn message(&self, cluster: &Cluster<'_>) -> Result<&[T], InferError> {
        let len = size_of_scope(cluster.separator, self.graph.cards()).ok_or(InferError::Shape)?;
        self.memory.messages.get(cluster.message_at..cluster.message_at + len).ok_or(InferError::Shape)
    }

    /// `message(x) = Σ_k log ψ_k(x)`, then its exponential if its range allows.
    #[inline(never)]
    fn multiply_factors(&mut self, c: usize, max: bool) -> Result<(), InferError> {
        let (cards, cluster) = (self.graph.cards(), &self.plan.cluster(c));
        let len = size_of_scope(cluster.separator, cards).ok_or(InferError::Shape)?;
        let range = cluster.message_at..cluster.message_at + len;
        let out = self.memory.messages.get_mut(range).ok_or(InferError::Shape)?;
        out.fill(T::zero());
        for &k in cluster.inputs {
            let scope = self.graph.scope(FactorId(k));
            let axes = axes_under(self.memory.index.as_chunks_mut().0, cluster.scope, scope, cards);
            add_table(axes.ok_or(InferError::Shape)?, out, self.graph.table(FactorId(k)));
        }
        let span = Span::of(out, T::NEG_INFINITY);
        let fact = self.memory.facts.get_mut(c).ok_or(InferError::Shape)?;
        *fact = if max { settle_max(out, span) } else { settle_log(out, span) }?;
        Ok(())
    }

    /// One clique's message up.
    #[inline(never)]
    fn send_up(&mut self, c: usize, max: bool, fork: &mut impl Fork<T>) -> Result<(), InferError> {
        let cluster = &self.plan.cluster(c);
        let linear = !max && self.make_alike(cluster, None)?;
        let cards = self.graph.cards();
        let size = size_of_scope(cluster.separator, cards).ok_or(InferError::Shape)?;
        let Memory { messages, index, facts, .. } = &mut self.memory;
        let (below, rest) = messages.split_at_mut_checked(cluster.message_at).ok_or(InferError::Shape)?;
        let out = rest.get_mut(..size).ok_or(InferError::Shape)?;
        let loops = loops_up(&self.plan, cluster, cards, index)?;
        let fact = facts.get_mut(c).ok_or(InferError::Shape)?;
        *fact = if max {
            let span = contract(&loops, MAX_PLUS, below, out, fork, true)?;
            settle_max(out, span)
        } else if linear {
            let span = contract(&loops, Linear, below, out, fork, true)?;
            settle_linear(out, span)
        } else {
            let span = contract(&loops, LOG_SUM, below, out, fork, true)?;
            settle_log(out, span)
        }?;
        Ok(())
    }

    /// Decides whether a clique can multiply potentials; if not, turns all its inputs into logarithms.
    /// `own` is the clique's own message (from above), if that is an input too.
    #[inline(never)]
    fn make_alike(&mut self, cluster: &Cluster<'_>, own: Option<usize>) -> Result<bool, InferError> {
        let (mut low, mut high, mut log) = (T::zero(), T::zero(), false);
        let all = || cluster.inputs.iter().map(|&c| c as usize).chain(own);
        for c in all() {
            let fact = self.fact(c)?;
            log |= fact.log;
            low += fact.low.smaller(T::zero());
            high += fact.high.larger(T::zero());
        }
        let size = size_of_scope(cluster.scope, self.graph.cards()).ok_or(InferError::Shape)?;
        high += T::from_f64(size as f64).ln();
        if !log && -T::LOG_RANGE <= low && high <= T::LOG_RANGE {
            return Ok(true);
        }
        for c in all() {
            let fact = self.memory.facts.get_mut(c).ok_or(InferError::Shape)?;
            if !fact.log {
                fact.log = true;
                let child = self.plan.cluster(c);
                let len = size_of_scope(child.separator, self.graph.cards()).ok_or(InferError::Shape)?;
                let range = child.message_at..child.message_at + len;
                for v in self.memory.messages.get_mut(range).ok_or(InferError::Shape)? {
                    *v = v.ln();
                }
            }
        }
        Ok(false)
    }
}

/// The loops of a clique's message up.
#[inline(never)]
fn loops_up<'i>(
    plan: &Plan<'_>,
    cluster: &Cluster<'_>,
    cards: &[u32],
    index: &'i mut [u32],
) -> Result<Loops<'i>, InferError> {
    let (scope, separator) = (cluster.scope, cluster.separator);
    let block = plan.block_of(scope, cards);
    let outer = scope.get(..scope.len() - block).ok_or(InferError::Shape)?;
    let shared = outer.iter().zip(separator).take_while(|(a, b)| a == b).count();
    let lead = separator.get(..shared).ok_or(InferError::Shape)?;
    let shape = Shape { cards, lead, order: scope, block };
    Operands::Messages(plan, cluster, false).onto(separator, index, &shape)
}

/// Adds a factor's table to a larger one.
#[inline(never)]
fn add_table<T: Real>(axes: &[Axis], out: &mut [T], table: &[T]) {
    stride::spread(axes, out, table, |o, v| *o += v);
}
