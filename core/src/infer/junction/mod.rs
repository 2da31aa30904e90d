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
pub(super) mod log_add;
mod operands;
mod separator;

pub use separator::Fact;

use super::contract::contract;
use super::fork::{Fork, Span};
use super::loops::{Loops, Shape, axes_under, size_of_scope};
use super::plan::Plan;
use super::semiring::{Linear, LogSum, MaxPlus, Semiring};
use crate::error::{InferError, need};
use crate::graph::FactorGraph;
use crate::ids::FactorId;
use crate::math::Real;
use crate::score::Score;
use crate::stride::{self, Axis};
use core::ops::Range;
use distribute::Turn;
use operands::Operands;
use separator::{settle_linear, settle_log, settle_sum};

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

/// How a clique multiplies and adds potentials.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Linear,
    Log,
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
    turn: Turn<T>,
}

impl<'a, 'm, T: Score> Junction<'a, 'm, T> {
    /// Joins plan, graph and memory. The plan must have been opened for this graph, or for one that
    /// differs from it in its values only.
    #[inline(always)]
    pub fn new(plan: Plan<'a>, graph: FactorGraph<'a, T>, memory: Memory<'m, T>) -> Result<Self, InferError> {
        need(plan.messages_len(), memory.messages.len())?;
        need(plan.clusters(), memory.facts.len())?;
        need(plan.index_len(), memory.index.len())?;
        need(graph.variables(), memory.starts.len())?;
        Ok(Self { plan, graph, memory, state: State::Empty, turn: Turn::default() })
    }

    /// The first pass with maxima: returns `max_x Σ_k log ψ_k(x)`, or [`InferError::ZeroProbability`]; or [`InferError::BadValue`]
    /// if sums of the log-potentials leave the range of numbers (in fixed point: of more than [`Score::MOST`] factors that the plan adds up
    /// in one cluster).
    pub fn maximise(&mut self, fork: &mut impl Fork<T>) -> Result<T::Total, InferError> {
        self.state = State::Empty;
        let best = self.collect_logs(MaxPlus, fork)?;
        self.state = State::Maximised;
        Ok(best)
    }

    // The passes go from clique to clique, and in each step after step. A step has the clique's number and looks up in the plan what
    // it needs; it writes its loops into index memory and returns, and another step runs them. So no step lies on the stack while
    // another works.

    /// The first pass on scores as they are, whatever is made of several.
    #[inline(never)]
    fn collect_logs<S: Semiring<T>>(
        &mut self,
        semiring: S,
        fork: &mut impl Fork<T>,
    ) -> Result<T::Total, InferError> {
        let mut total = self.begin()?;
        for c in 0..self.plan.clusters() {
            let span = if self.plan.is_potential(c) {
                self.multiply_factors(c)?
            } else {
                self.write_loops_up(c)?;
                self.contract_up(c, semiring, fork)?
            };
            self.settle_logs(c, semiring, span, &mut total)?;
        }
        Ok(total)
    }

    /// Takes the best score out of a message, and adds it, of a root with what is left, to the total.
    #[inline(never)]
    fn settle_logs<S: Semiring<T>>(
        &mut self,
        c: usize,
        semiring: S,
        span: Span<T>,
        total: &mut T::Total,
    ) -> Result<(), InferError> {
        let range = self.message(c)?;
        let out = self.memory.messages.get_mut(range).ok_or(InferError::Shape)?;
        *self.memory.facts.get_mut(c).ok_or(InferError::Shape)? = settle_sum(out, span)?;
        if !self.plan.has_parent(c) {
            out.iter().fold(semiring.zero(), |sum, &v| semiring.plus(sum, v)).add_to(total);
        }
        self.add_scale(c, total)
    }

    /// The sum of the factors without variables; clears the marks of [`add_scale`](Self::add_scale).
    #[inline(never)]
    fn begin(&mut self) -> Result<T::Total, InferError> {
        let mut total = T::Total::default();
        let tables = || self.graph.factor_ids().map(|k| (k, self.graph.table(k)));
        if !T::add_up(tables().flat_map(|(_, table)| table)) {
            return Err(InferError::BadValue);
        }
        for (_, table) in tables().filter(|&(k, _)| self.graph.scope(k).is_empty()) {
            let constant = table.first().copied().unwrap_or_default();
            if constant.is_forbidden() {
                return Err(InferError::ZeroProbability);
            }
            constant.add_to(&mut total);
        }
        // Here `starts` marks the variables that some factor mentions.
        self.memory.starts.fill(0);
        Ok(total)
    }

    /// What was taken out of a cluster's message. Marks the variables whose marginals it has.
    #[inline(never)]
    fn add_scale(&mut self, c: usize, total: &mut T::Total) -> Result<(), InferError> {
        self.fact(c)?.scale.add_to(total);
        for &v in self.plan.homes(c).iter().chain(self.plan.separator_homes(c)) {
            if let Some(mark) = self.memory.starts.get_mut(v as usize) {
                *mark = 1;
            }
        }
        Ok(())
    }

    fn fact(&self, c: usize) -> Result<&Fact<T>, InferError> {
        self.memory.facts.get(c).ok_or(InferError::Shape)
    }

    /// Where a cluster's message lies in message memory.
    #[inline(never)]
    fn message(&self, c: usize) -> Result<Range<usize>, InferError> {
        let len = size_of_scope(self.plan.separator(c), self.graph.cards()).ok_or(InferError::Shape)?;
        Ok(self.plan.message_at(c)..self.plan.message_at(c) + len)
    }

    /// `message(x) = Σ_k log ψ_k(x)`.
    #[inline(never)]
    fn multiply_factors(&mut self, c: usize) -> Result<Span<T>, InferError> {
        if self.plan.inputs(c).len() > T::MOST {
            return Err(InferError::BadValue);
        }
        let range = self.message(c)?;
        let out = self.memory.messages.get_mut(range).ok_or(InferError::Shape)?;
        out.fill(T::default());
        for &k in self.plan.inputs(c) {
            let scope = self.graph.scope(FactorId(k));
            let memory = self.memory.index.as_chunks_mut().0;
            let axes = axes_under(memory, self.plan.scope(c), scope, self.graph.cards());
            add_table(axes.ok_or(InferError::Shape)?, out, self.graph.table(FactorId(k)));
        }
        Ok(Span::of(out, T::NEG_INFINITY))
    }

    /// The loops of a clique's message up.
    #[inline(never)]
    fn write_loops_up(&mut self, c: usize) -> Result<(), InferError> {
        let (scope, onto, cards) = (self.plan.scope(c), self.plan.separator(c), self.graph.cards());
        let block = self.plan.block_of(scope, cards);
        let outer = scope.get(..scope.len() - block).ok_or(InferError::Shape)?;
        let lead = outer.iter().zip(onto).take_while(|(a, b)| a == b).count();
        let shape = Shape { cards, onto, lead, order: scope, block };
        let (_, index) = self.plan.divide(self.memory.index).ok_or(InferError::Shape)?;
        Operands::Messages { clique: c, from_above: false }.write_loops(&self.plan, &shape, index)
    }

    /// A clique's message up, by the loops in index memory.
    #[inline(never)]
    fn contract_up<S: Semiring<T>>(
        &mut self,
        c: usize,
        semiring: S,
        fork: &mut impl Fork<T>,
    ) -> Result<Span<T>, InferError> {
        let range = self.message(c)?;
        let (below, rest) =
            self.memory.messages.split_at_mut_checked(range.start).ok_or(InferError::Shape)?;
        let out = rest.get_mut(..range.len()).ok_or(InferError::Shape)?;
        let (_, index) = self.plan.divide(self.memory.index).ok_or(InferError::Shape)?;
        contract(&Loops::at(index), semiring, below, out, fork, true)
    }
}

impl<T: Real> Junction<'_, '_, T> {
    /// The first pass with sums: returns `log Z`; errors as in [`maximise`](Self::maximise).
    pub fn sum(&mut self, fork: &mut impl Fork<T>) -> Result<T, InferError> {
        self.state = State::Empty;
        let log_z = self.collect(fork)?;
        self.state = State::Summed;
        Ok(log_z)
    }

    /// The first pass on potentials where that is safe, on their logarithms elsewhere.
    #[inline(never)]
    fn collect(&mut self, fork: &mut impl Fork<T>) -> Result<T, InferError> {
        let mut total = self.begin()?;
        for c in 0..self.plan.clusters() {
            if self.plan.is_potential(c) {
                let span = self.multiply_factors(c)?;
                self.settle(c, Form::Log, span)?;
            } else {
                let form = self.plan_up(c)?;
                let span = match form {
                    Form::Linear => self.contract_up(c, Linear, fork),
                    Form::Log => self.contract_up(c, LogSum, fork),
                }?;
                self.settle(c, form, span)?;
            }
            self.add_scale(c, &mut total)?;
            self.add_root(c, &mut total)?;
        }
        total = self.add_free(total);
        if total == T::NEG_INFINITY { Err(InferError::ZeroProbability) } else { Ok(total) }
    }

    /// What a root has beside its scale.
    #[inline(never)]
    fn add_root(&self, c: usize, sum: &mut T) -> Result<(), InferError> {
        if self.plan.has_parent(c) {
            return Ok(());
        }
        let table = self.memory.messages.get(self.message(c)?).ok_or(InferError::Shape)?;
        *sum += if self.fact(c)?.log {
            crate::math::log_sum_exp(table)
        } else {
            let mut linear = T::zero();
            for &v in table {
                linear += v;
            }
            linear.ln()
        };
        Ok(())
    }

    /// A variable that no factor mentions is free: it multiplies Z by its arity.
    #[inline(never)]
    fn add_free(&self, mut total: T) -> T {
        for (&card, &mark) in self.graph.cards().iter().zip(self.memory.starts.iter()) {
            if mark == 0 {
                total += T::from_f64(f64::from(card)).ln();
            }
        }
        total
    }

    /// How a clique's message up is to be computed; its loops are then in index memory.
    #[inline(never)]
    fn plan_up(&mut self, c: usize) -> Result<Form, InferError> {
        self.write_loops_up(c)?;
        Ok(if self.make_alike(c, false)? { Form::Linear } else { Form::Log })
    }

    /// Brings a message that was just computed into its form, and writes down what is known of it.
    #[inline(never)]
    fn settle(&mut self, c: usize, form: Form, span: Span<T>) -> Result<(), InferError> {
        let range = self.message(c)?;
        let out = self.memory.messages.get_mut(range).ok_or(InferError::Shape)?;
        let fact = self.memory.facts.get_mut(c).ok_or(InferError::Shape)?;
        *fact = match form {
            Form::Linear => settle_linear(out, span),
            Form::Log => settle_log(out, span),
        }?;
        Ok(())
    }

    /// Decides whether a clique can multiply potentials; if not, turns all its inputs into logarithms. With `own` the clique's own
    /// message (from above) is an input too.
    #[inline(never)]
    fn make_alike(&mut self, c: usize, own: bool) -> Result<bool, InferError> {
        let (mut low, mut high, mut log) = (T::zero(), T::zero(), false);
        let inputs = self.plan.inputs(c);
        let all = || inputs.iter().map(|&c| c as usize).chain(own.then_some(c));
        for c in all() {
            let fact = self.fact(c)?;
            log |= fact.log;
            low += fact.low.smaller(T::zero());
            high += fact.high.larger(T::zero());
        }
        let size = size_of_scope(self.plan.scope(c), self.graph.cards()).ok_or(InferError::Shape)?;
        high += T::from_f64(size as f64).ln();
        if !log && -T::LOG_RANGE <= low && high <= T::LOG_RANGE {
            return Ok(true);
        }
        for c in all() {
            let range = self.message(c)?;
            let fact = self.memory.facts.get_mut(c).ok_or(InferError::Shape)?;
            if !fact.log {
                fact.log = true;
                for v in self.memory.messages.get_mut(range).ok_or(InferError::Shape)? {
                    *v = v.ln();
                }
            }
        }
        Ok(false)
    }
}

/// Adds a factor's table to a larger one.
#[inline(never)]
fn add_table<T: Score>(axes: &[Axis], out: &mut [T], table: &[T]) {
    stride::spread(axes, out, table, |o, v| *o = o.plus(v));
}
