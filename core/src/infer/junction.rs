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

use super::contract::size_of_scope;
use super::contract::{Fork, Linear, LogSum, Loops, MAX_INPUTS, MaxPlus, Shape, Span, contract};
use super::plan::{Cluster, Plan};
use crate::error::{InferError, need};
use crate::graph::FactorGraph;
use crate::ids::FactorId;
use crate::math::{Real, log_add_exp, softmax};
use crate::stride::{self, Axes};
use crate::table::MAX_SCOPE;
use rand_core::Rng;

/// What is known of a message: its form, the part of its logarithm that was taken out, and its range.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fact<T> {
    /// Whether the entries are logarithms.
    log: bool,
    /// `true message = e^scale · message`.
    scale: T,
    /// Logarithms of the largest and of the smallest non-zero entry.
    high: T,
    low: T,
}

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
/// use gibbsite_core::infer::contract::Sequential;
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
    pub fn new(plan: Plan<'a>, graph: FactorGraph<'a, T>, memory: Memory<'m, T>) -> Result<Self, InferError> {
        need(plan.messages_len(), memory.messages.len())?;
        need(plan.clusters(), memory.facts.len())?;
        need(plan.index_len(), memory.index.len())?;
        need(graph.variables(), memory.starts.len())?;
        Ok(Self { plan, graph, memory, state: State::Empty })
    }

    /// The first pass with sums: returns `log Z`, or [`InferError::ZeroProbability`].
    pub fn sum(&mut self, fork: &mut impl Fork<T>) -> Result<T, InferError> {
        self.state = State::Empty;
        let log_z = self.collect(fork, false)?;
        self.state = State::Summed;
        Ok(log_z)
    }

    /// The first pass with maxima: returns `max_x Σ_k log ψ_k(x)`, or [`InferError::ZeroProbability`].
    pub fn maximise(&mut self, fork: &mut impl Fork<T>) -> Result<T, InferError> {
        self.state = State::Empty;
        let best = self.collect(fork, true)?;
        self.state = State::Maximised;
        Ok(best)
    }

    fn collect(&mut self, fork: &mut impl Fork<T>, max: bool) -> Result<T, InferError> {
        let mut total = T::zero();
        for k in self.graph.factor_ids().filter(|&k| self.graph.scope(k).is_empty()) {
            total += self.graph.table(k).first().copied().unwrap_or(T::zero());
        }
        // Here `starts` marks the variables that some factor mentions.
        self.memory.starts.fill(0);
        for c in 0..self.plan.clusters() {
            let cluster = self.plan.cluster(c);
            if cluster.potential {
                self.multiply_factors(c, &cluster, max)?;
            } else {
                self.send_up(c, &cluster, max, fork)?;
            }
            for &v in cluster.homes.iter().chain(cluster.separator_homes) {
                if let Some(mark) = self.memory.starts.get_mut(v as usize) {
                    *mark = 1;
                }
            }
            let fact = self.fact(c)?;
            total += fact.scale;
            if cluster.parent.is_none() {
                total += self.total_of_root(&cluster, &fact, max)?;
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

    fn total_of_root(&self, cluster: &Cluster<'_>, fact: &Fact<T>, max: bool) -> Result<T, InferError> {
        let table = self.message(cluster)?;
        if max {
            return Ok(crate::math::maximum(table));
        }
        if fact.log {
            return Ok(crate::math::log_sum_exp(table));
        }
        let mut sum = T::zero();
        for &v in table {
            sum += v;
        }
        Ok(sum.ln())
    }

    fn fact(&self, c: usize) -> Result<Fact<T>, InferError> {
        self.memory.facts.get(c).copied().ok_or(InferError::Shape)
    }

    fn message(&self, cluster: &Cluster<'_>) -> Result<&[T], InferError> {
        let len = size_of_scope(cluster.separator, self.graph.cards()).ok_or(InferError::Shape)?;
        self.memory.messages.get(cluster.message_at..cluster.message_at + len).ok_or(InferError::Shape)
    }

    /// `message(x) = Σ_k log ψ_k(x)`, then its exponential if its range allows.
    fn multiply_factors(&mut self, c: usize, cluster: &Cluster<'_>, max: bool) -> Result<(), InferError> {
        let cards = self.graph.cards();
        let len = size_of_scope(cluster.separator, cards).ok_or(InferError::Shape)?;
        let range = cluster.message_at..cluster.message_at + len;
        let out = self.memory.messages.get_mut(range).ok_or(InferError::Shape)?;
        let fact = self.memory.facts.get_mut(c).ok_or(InferError::Shape)?;
        out.fill(T::zero());
        for &k in cluster.inputs {
            let scope = self.graph.scope(FactorId(k));
            let mut axes = Axes::new();
            for &v in cluster.scope {
                let card = cards.get(v as usize).copied().unwrap_or(1);
                let after = scope.iter().skip_while(|&&u| u != v).skip(1);
                let stride: u32 = after.filter_map(|&u| cards.get(u as usize)).product();
                if !stride::push(&mut axes, card, if scope.contains(&v) { stride } else { 0 }) {
                    return Err(InferError::Shape);
                }
            }
            stride::spread(&axes, out, self.graph.table(FactorId(k)), |o, v| *o += v);
        }
        let span = Span::of(out, T::NEG_INFINITY);
        *fact = if max { settle_max(out, span) } else { settle_log(out, span) }?;
        Ok(())
    }

    /// One clique's message up.
    fn send_up(
        &mut self,
        c: usize,
        cluster: &Cluster<'_>,
        max: bool,
        fork: &mut impl Fork<T>,
    ) -> Result<(), InferError> {
        let linear = !max && self.make_alike(cluster, None)?;
        let cards = self.graph.cards();
        let size = size_of_scope(cluster.separator, cards).ok_or(InferError::Shape)?;
        let (below, rest) =
            self.memory.messages.split_at_mut_checked(cluster.message_at).ok_or(InferError::Shape)?;
        let out = rest.get_mut(..size).ok_or(InferError::Shape)?;
        let mut operands = Operands::new(cluster.separator);
        operands.children(&self.plan, cluster, below, cards)?;
        let block = self.plan.block_of(cluster.scope, cards);
        let outer = cluster.scope.get(..cluster.scope.len() - block).ok_or(InferError::Shape)?;
        let shared = outer.iter().zip(cluster.separator).take_while(|(a, b)| a == b).count();
        let lead = cluster.separator.get(..shared).ok_or(InferError::Shape)?;
        let shape = Shape { cards, lead, order: cluster.scope, block };
        let loops = operands.loops(self.memory.index, shape)?;
        let fact = self.memory.facts.get_mut(c).ok_or(InferError::Shape)?;
        *fact = if max {
            let span = contract(&loops, MaxPlus, operands.tables(), out, fork, true)?;
            settle_max(out, span)
        } else if linear {
            let span = contract(&loops, Linear, operands.tables(), out, fork, true)?;
            settle_linear(out, span)
        } else {
            let span = contract(&loops, LogSum, operands.tables(), out, fork, true)?;
            settle_log(out, span)
        }?;
        Ok(())
    }

    /// Decides whether a clique can multiply potentials; if not, turns all its inputs into logarithms.
    /// `own` is the clique's own message (from above), if that is an input too.
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

    /// The second pass: writes every variable's marginal to `out` (variable after variable), after
    /// [`sum`](Self::sum). Uses up the messages: sampling needs `sum` again.
    pub fn marginals(&mut self, fork: &mut impl Fork<T>, out: &mut [T]) -> Result<(), InferError> {
        if self.state != State::Summed {
            return Err(InferError::Shape);
        }
        let cards = self.graph.cards();
        let needed = cards.iter().fold(0usize, |n, &c| n.saturating_add(c as usize));
        need(needed, out.len())?;
        need(self.plan.belief_len(), self.memory.belief.len())?;
        need(self.plan.separator_len(), self.memory.separator.len())?;
        self.state = State::Empty;
        // Uniform is the answer for variables that no factor mentions; the others are overwritten.
        let (mut rest, mut at) = (&mut *out, 0u32);
        for (&card, start) in cards.iter().zip(self.memory.starts.iter_mut()) {
            let Some((block, tail)) = rest.split_at_mut_checked(card as usize) else { break };
            block.fill(T::one() / T::from_f64(f64::from(card)));
            *start = at;
            at = at.saturating_add(card);
            rest = tail;
        }
        for c in (0..self.plan.clusters()).rev() {
            let cluster = self.plan.cluster(c);
            if !cluster.potential {
                self.send_down(c, &cluster, fork, out)?;
            }
        }
        self.state = State::Distributed;
        Ok(())
    }

    /// One clique: the marginals read off its belief, and the messages to its children. The belief is stored only if it is
    /// read more than once; otherwise the inputs are contracted onto the one thing that is wanted.
    fn send_down(
        &mut self,
        c: usize,
        cluster: &Cluster<'_>,
        fork: &mut impl Fork<T>,
        out: &mut [T],
    ) -> Result<(), InferError> {
        let plan = self.plan;
        let receivers = || cluster.inputs.iter().copied().filter(|&c| plan.cluster(c as usize).receives);
        if cluster.homes.is_empty() && receivers().next().is_none() {
            return Ok(());
        }
        let cards = self.graph.cards();
        let own = cluster.parent.map(|_| c);
        let log = !self.make_alike(cluster, own)?;
        let size = size_of_scope(cluster.scope, cards).ok_or(InferError::Shape)?;
        let Memory { messages, facts, belief, separator, index, starts } = &mut self.memory;
        let keeps = plan.keeps_belief(cluster, size, cards);
        let block = plan.block_of(cluster.scope, cards);
        let inner = cluster.scope.get(cluster.scope.len() - block..).ok_or(InferError::Shape)?;
        if keeps {
            let table = belief.get_mut(..size).ok_or(InferError::Shape)?;
            let mut operands = Operands::new(cluster.scope);
            operands.of_belief(&plan, cluster, own.is_some(), messages, cards)?;
            let outer = cluster.scope.get(..cluster.scope.len() - block).ok_or(InferError::Shape)?;
            let loops = operands.loops(index, Shape { cards, lead: outer, order: cluster.scope, block })?;
            contract_any(&loops, log, operands.tables(), table, fork, false)?;
        }
        if !cluster.homes.is_empty() {
            let mut source = Operands::new(&[]);
            match keeps {
                true => source.push(cluster.scope, 0, belief, cards)?,
                false => source.of_belief(&plan, cluster, own.is_some(), messages, cards)?,
            }
            let room = Room { spare: separator, index, starts };
            read_marginals(&plan, cards, source, cluster.scope, log, cluster.homes, room, fork, out)?;
        }
        for child in receivers() {
            let below = plan.cluster(child as usize);
            let len = size_of_scope(below.separator, cards).ok_or(InferError::Shape)?;
            let (table, spare) = separator.split_at_mut_checked(len).ok_or(InferError::Shape)?;
            let span = {
                let mut operands = Operands::new(below.separator);
                match keeps {
                    true => operands.push(cluster.scope, 0, belief, cards)?,
                    false => operands.of_belief(&plan, cluster, own.is_some(), messages, cards)?,
                }
                let ahead = below.separator.iter().take_while(|v| !inner.contains(v)).count();
                let lead = below.separator.get(..ahead).ok_or(InferError::Shape)?;
                let loops = operands.loops(index, Shape { cards, lead, order: cluster.scope, block })?;
                contract_any(&loops, log, operands.tables(), table, fork, true)?
            };
            let mut source = Operands::new(&[]);
            source.push(below.separator, 0, table, cards)?;
            let room = Room { spare, index, starts };
            read_marginals(
                &plan,
                cards,
                source,
                below.separator,
                log,
                below.separator_homes,
                room,
                fork,
                out,
            )?;
            let range = below.message_at..below.message_at + len;
            let message = messages.get_mut(range).ok_or(InferError::Shape)?;
            let fact = facts.get_mut(child as usize).ok_or(InferError::Shape)?;
            if below.potential {
                // Nobody is below: the belief itself is what is wanted.
                for (m, &t) in message.iter_mut().zip(table.iter()) {
                    *m = t;
                }
                *fact = Fact { log, ..Fact::default() };
            } else {
                *fact = divide(table, message, *fact, span)?;
            }
        }
        Ok(())
    }

    /// `P(x_{C_k})` for a factor in a potential that keeps its belief, after
    /// [`marginals`](Self::marginals), into `out` with the layout of the factor's table.
    pub fn factor_marginal(
        &mut self,
        k: FactorId,
        fork: &mut impl Fork<T>,
        out: &mut [T],
    ) -> Result<(), InferError> {
        if self.state != State::Distributed {
            return Err(InferError::Shape);
        }
        let holder = (0..self.plan.clusters())
            .map(|c| (c, self.plan.cluster(c)))
            .find(|(_, cluster)| cluster.potential && cluster.receives && cluster.inputs.contains(&k.0));
        let (c, cluster) = holder.ok_or(InferError::Shape)?;
        let cards = self.graph.cards();
        let scope = self.graph.scope(k);
        let given = out.len();
        let needed = self.graph.table(k).len();
        let out = out.get_mut(..needed).ok_or(InferError::Memory { needed, given })?;
        let log = self.fact(c)?.log;
        let range = cluster.message_at..;
        let table = self.memory.messages.get(range).ok_or(InferError::Shape)?;
        let mut operands = Operands::new(scope);
        operands.push(cluster.scope, 0, table, cards)?;
        let block = self.plan.block_of(cluster.scope, cards);
        let shape = Shape { cards, lead: &[], order: cluster.scope, block };
        let loops = operands.loops(self.memory.index, shape)?;
        contract_any(&loops, log, operands.tables(), out, fork, false)?;
        to_probabilities(out, log);
        Ok(())
    }

    /// A configuration of largest potential, after [`maximise`](Self::maximise).
    pub fn decode(&self, labels: &mut [u32]) -> Result<(), InferError> {
        if self.state != State::Maximised {
            return Err(InferError::Shape);
        }
        self.descend(labels, |rest| {
            let mut best = (T::NEG_INFINITY, 0usize);
            rest(&mut |number, weight: T| {
                if best.0 < weight {
                    best = (weight, number);
                }
            })?;
            Ok(best.1)
        })
    }

    /// A configuration drawn from `P(x)`, after [`sum`](Self::sum). Can be called any number of times.
    pub fn sample(&self, rng: &mut impl Rng, labels: &mut [u32]) -> Result<(), InferError> {
        if self.state != State::Summed {
            return Err(InferError::Shape);
        }
        for (label, &card) in labels.iter_mut().zip(self.graph.cards()) {
            *label = (uniform::<T>(rng) * f64::from(card)) as u32;
        }
        self.descend(labels, |rest| {
            let mut total = T::NEG_INFINITY;
            rest(&mut |_, weight| total = log_add_exp(total, weight))?;
            let mut left = T::from_f64(uniform::<T>(rng));
            let mut chosen = None;
            let mut last = 0;
            rest(&mut |number, weight: T| {
                if weight != T::NEG_INFINITY && chosen.is_none() {
                    left -= (weight - total).exp();
                    last = number;
                    if left < T::zero() {
                        chosen = Some(number);
                    }
                }
            })?;
            // Rounding can leave a sliver of the interval uncovered; it belongs to the last configuration.
            Ok(chosen.unwrap_or(last))
        })
    }

    /// From the roots down: for each clique, `choose` picks one configuration of the variables that are not
    /// in its separator, given the labels of those that are.
    fn descend(
        &self,
        labels: &mut [u32],
        mut choose: impl FnMut(
            &dyn Fn(&mut dyn FnMut(usize, T)) -> Result<(), InferError>,
        ) -> Result<usize, InferError>,
    ) -> Result<(), InferError> {
        let cards = self.graph.cards();
        need(cards.len(), labels.len())?;
        if self.state == State::Maximised {
            labels.fill(0);
        }
        for c in (0..self.plan.clusters()).rev() {
            let cluster = self.plan.cluster(c);
            if cluster.potential {
                continue;
            }
            let held: &[u32] = if cluster.parent.is_some() { cluster.separator } else { &[] };
            let mut free = heapless::Vec::<u32, MAX_SCOPE>::new();
            for &v in cluster.scope.iter().filter(|v| !held.contains(v)) {
                free.push(v).map_err(|_| InferError::Shape)?;
            }
            let each = |visit: &mut dyn FnMut(usize, T)| self.each_rest(&cluster, &free, labels, visit);
            let mut number = choose(&each)?;
            for &v in free.iter().rev() {
                let card = cards.get(v as usize).copied().unwrap_or(1) as usize;
                let quotient = number.checked_div(card).unwrap_or(0);
                if let Some(label) = labels.get_mut(v as usize) {
                    *label = (number - quotient * card) as u32;
                }
                number = quotient;
            }
        }
        Ok(())
    }

    /// Visits the configurations of `free` (numbered, the last variable fastest) with the log-weight that the clique's
    /// inputs give them, all other variables being held at `labels`.
    fn each_rest(
        &self,
        cluster: &Cluster<'_>,
        free: &[u32],
        labels: &[u32],
        visit: &mut dyn FnMut(usize, T),
    ) -> Result<(), InferError> {
        let cards = self.graph.cards();
        let count = size_of_scope(free, cards).ok_or(InferError::Shape)?;
        let mut digits = [0u32; MAX_SCOPE];
        for number in 0..count {
            let mut weight = T::zero();
            for &child in cluster.inputs {
                let below = self.plan.cluster(child as usize);
                let mut at = 0usize;
                for &v in below.separator {
                    let label = match free.iter().position(|&u| u == v) {
                        Some(i) => digits.get(i),
                        None => labels.get(v as usize),
                    };
                    let card = cards.get(v as usize).copied().unwrap_or(1) as usize;
                    at = at * card + label.copied().unwrap_or(0) as usize;
                }
                let value = self.memory.messages.get(below.message_at + at).ok_or(InferError::Shape)?;
                let log = self.state == State::Maximised || self.fact(child as usize)?.log;
                weight += if log { *value } else { value.ln() };
            }
            visit(number, weight);
            for (&v, digit) in free.iter().rev().zip(digits.iter_mut().take(free.len()).rev()) {
                *digit += 1;
                if Some(&*digit) < cards.get(v as usize) {
                    break;
                }
                *digit = 0;
            }
        }
        Ok(())
    }
}

/// The tables of a contraction: scopes (the output's first) and values of the inputs.
struct Operands<'x, T> {
    scopes: heapless::Vec<&'x [u32], { MAX_INPUTS + 2 }>,
    tables: heapless::Vec<&'x [T], { MAX_INPUTS + 1 }>,
}

impl<'x, T: Real> Operands<'x, T> {
    fn new(output: &'x [u32]) -> Self {
        let mut scopes = heapless::Vec::new();
        let _ = scopes.push(output);
        Self { scopes, tables: heapless::Vec::new() }
    }

    fn push(&mut self, scope: &'x [u32], at: usize, from: &'x [T], cards: &[u32]) -> Result<(), InferError> {
        let len = size_of_scope(scope, cards).ok_or(InferError::Shape)?;
        let table = from.get(at..at + len).ok_or(InferError::Shape)?;
        self.scopes.push(scope).map_err(|_| InferError::Shape)?;
        self.tables.push(table).map_err(|_| InferError::Shape)
    }

    fn children(
        &mut self,
        plan: &Plan<'x>,
        cluster: &Cluster<'x>,
        messages: &'x [T],
        cards: &[u32],
    ) -> Result<(), InferError> {
        for &child in cluster.inputs {
            let below = plan.cluster(child as usize);
            self.push(below.separator, below.message_at, messages, cards)?;
        }
        Ok(())
    }

    /// What a clique's belief is the product of: its children's messages, and its own from above.
    fn of_belief(
        &mut self,
        plan: &Plan<'x>,
        cluster: &Cluster<'x>,
        from_above: bool,
        messages: &'x [T],
        cards: &[u32],
    ) -> Result<(), InferError> {
        self.children(plan, cluster, messages, cards)?;
        if from_above {
            self.push(cluster.separator, cluster.message_at, messages, cards)?;
        }
        Ok(())
    }

    fn loops<'i>(&self, index: &'i mut [u32], shape: Shape<'_>) -> Result<Loops<'i>, InferError> {
        Loops::build(index, shape, &self.scopes).ok_or(InferError::Shape)
    }

    /// The same inputs with another output.
    fn onto<'y>(&self, output: &'y [u32]) -> Operands<'y, T>
    where
        'x: 'y,
    {
        let mut operands = Operands::new(output);
        for (&scope, &table) in self.scopes.iter().skip(1).zip(&self.tables) {
            let _ = operands.scopes.push(scope);
            let _ = operands.tables.push(table);
        }
        operands
    }

    fn tables(&self) -> &[&'x [T]] {
        &self.tables
    }
}

/// A uniform number in `[0, 1)` with as many bits as the scalar holds.
fn uniform<T: Real>(rng: &mut impl Rng) -> f64 {
    if size_of::<T>() <= 4 {
        f64::from(rng.next_u32() >> 8) / f64::from(1u32 << 24)
    } else {
        (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Takes the largest logarithm out of a max-product message.
fn settle_max<T: Real>(message: &mut [T], span: Span<T>) -> Result<Fact<T>, InferError> {
    if span.high == T::NEG_INFINITY {
        return Err(InferError::ZeroProbability);
    }
    for v in message {
        *v -= span.high;
    }
    Ok(Fact { log: true, scale: span.high, high: T::zero(), low: T::zero() })
}

/// A message of logarithms: exponentiated if its range allows, else shifted.
fn settle_log<T: Real>(message: &mut [T], span: Span<T>) -> Result<Fact<T>, InferError> {
    if span.high == T::NEG_INFINITY {
        return Err(InferError::ZeroProbability);
    }
    let low = span.low - span.high;
    let log = low < -T::LOG_RANGE;
    for v in message {
        *v -= span.high;
        if !log {
            *v = v.exp();
        }
    }
    Ok(Fact { log, scale: span.high, high: T::zero(), low })
}

/// A message of potentials: rescaled only when it has moved far from 1.
fn settle_linear<T: Real>(message: &mut [T], span: Span<T>) -> Result<Fact<T>, InferError> {
    if span.high <= T::zero() {
        return Err(InferError::ZeroProbability);
    }
    let (high, low) = (span.high.ln(), span.low.ln());
    let near = T::from_f64(16.0);
    if high.abs() <= near {
        return Ok(Fact { log: false, scale: T::zero(), high, low });
    }
    if low - high < -T::LOG_RANGE {
        // Rescaling would underflow: keep logarithms.
        for v in message {
            *v = v.ln() - high;
        }
        return Ok(Fact { log: true, scale: high, high: T::zero(), low: low - high });
    }
    for v in message {
        *v /= span.high;
    }
    Ok(Fact { log: false, scale: high, high: T::zero(), low: low - high })
}

/// The message down, `belief / message up`, in place of the message up. Where the message up is 0 the
/// belief is too, and so is the result: whatever stands there is multiplied by 0 below.
fn divide<T: Real>(
    belief: &mut [T],
    message: &mut [T],
    up: Fact<T>,
    span: Span<T>,
) -> Result<Fact<T>, InferError> {
    if !up.log {
        let (high, low) = (span.high.ln(), span.low.ln());
        if high - up.low <= T::LOG_RANGE && -T::LOG_RANGE <= low - up.high {
            for (m, &b) in message.iter_mut().zip(belief.iter()) {
                *m = if *m > T::zero() { b / *m } else { T::zero() };
            }
            return settle_linear(message, Span::of(message, T::zero()));
        }
        for (m, b) in message.iter_mut().zip(belief.iter_mut()) {
            *m = m.ln();
            *b = b.ln();
        }
    }
    for (m, &b) in message.iter_mut().zip(belief.iter()) {
        *m = if *m == T::NEG_INFINITY { T::NEG_INFINITY } else { b - *m };
    }
    settle_log(message, Span::of(message, T::NEG_INFINITY))
}

/// The parts of [`Memory`] that reading a marginal takes.
struct Room<'x, T> {
    spare: &'x mut [T],
    index: &'x mut [u32],
    starts: &'x [u32],
}

fn contract_any<T: Real>(
    loops: &Loops<'_>,
    log: bool,
    inputs: &[&[T]],
    out: &mut [T],
    fork: &mut impl Fork<T>,
    measured: bool,
) -> Result<Span<T>, InferError> {
    if log {
        contract(loops, LogSum, inputs, out, fork, measured)
    } else {
        contract(loops, Linear, inputs, out, fork, measured)
    }
}

fn to_probabilities<T: Real>(out: &mut [T], log: bool) {
    if log {
        softmax(out);
        return;
    }
    let mut sum = T::zero();
    for &v in out.iter() {
        sum += v;
    }
    for v in out {
        *v /= sum;
    }
}

/// Writes the marginals of `homes` to their places in `out`; the belief is the product of `source`'s inputs, over the
/// variables `scope`.
#[allow(clippy::too_many_arguments)] // Two callers, which borrow each of these from a different place.
fn read_marginals<T: Real>(
    plan: &Plan<'_>,
    cards: &[u32],
    source: Operands<'_, T>,
    scope: &[u32],
    log: bool,
    homes: &[u32],
    room: Room<'_, T>,
    fork: &mut impl Fork<T>,
    out: &mut [T],
) -> Result<(), InferError> {
    let Room { spare, index, starts } = room;
    if homes.is_empty() {
        return Ok(());
    }
    let block = plan.block_of(scope, cards);
    let outer = scope.get(..scope.len() - block).ok_or(InferError::Shape)?;
    let inner = scope.get(outer.len()..).ok_or(InferError::Shape)?;
    let size = size_of_scope(scope, cards).ok_or(InferError::Shape)?;
    let block_len = size_of_scope(inner, cards).ok_or(InferError::Shape)?;
    let (group, group_len) = plan.group(scope, cards, homes);
    let large = plan.two_steps(size, block_len);
    let (staged, _) =
        spare.split_at_mut_checked(if large { group_len } else { 0 }).ok_or(InferError::Shape)?;
    if large {
        let operands = source.onto(&group);
        let loops = operands.loops(index, Shape { cards, lead: outer, order: scope, block })?;
        contract_any(&loops, log, operands.tables(), staged, fork, false)?;
    }
    for &v in homes {
        let at = starts.get(v as usize).map_or(0, |&at| at as usize);
        let card = cards.get(v as usize).map_or(0, |&c| c as usize);
        let marginal = out.get_mut(at..at + card).ok_or(InferError::Shape)?;
        let single = [v];
        let mut operands = source.onto(&single);
        let mut order = scope;
        if large {
            operands = Operands::new(&single);
            operands.push(&group, 0, staged, cards)?;
            order = &group;
        }
        let shape = Shape { cards, lead: &[], order, block: plan.block_of(order, cards) };
        let loops = operands.loops(index, shape)?;
        contract_any(&loops, log, operands.tables(), marginal, fork, false)?;
        to_probabilities(marginal, log);
    }
    Ok(())
}
