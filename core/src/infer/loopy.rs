//! Loopy belief propagation on any factor graph: sum- and max-product, damped, with two schedules.
//!
//! [`Loopy`] holds the messages in caller memory. After [`Loopy::run`], ask for
//! [`marginals`](Loopy::marginals), for the [Bethe estimate of log Z](Loopy::log_z) or for a
//! [decoded assignment](Loopy::decode). On a graph without cycles all three are exact; elsewhere they are
//! estimates, and [`Info::converged`] says whether the messages came to rest.

use super::layout::LOST;
pub use super::layout::{Dimensions, LARGEST_ENTRY};
use super::message::Messages;
pub use super::message::Mode;
use super::priority::Queue;
use crate::arena::Arena;
use crate::error::{InferError, need};
use crate::graph::FactorGraph;
use crate::ids::{FactorId, VarId};
use crate::math::{Real, argmax, maximum};

/// In which order factors send their messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// All factors in order, then all in reverse order, and so on. A chain whose factors are in order is
    /// done after one sweep each way.
    Sequential,
    /// The factor whose inputs have changed most since it last sent goes next.
    Residual,
}

/// How to run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params<T> {
    /// Stop after so many iterations; one is as many factor updates as there are factors.
    pub max_iterations: u32,
    /// Converged when no message would change by more than this (relative to `max(1, |λ|)`).
    pub tolerance: T,
    /// Share of the old message in the new one, in log space; from 0 to below 1.
    pub damping: T,
    /// Order of the updates.
    pub schedule: Schedule,
}

impl<T: Real> Default for Params<T> {
    /// 1000 iterations, tolerance 1e-10 (`f64`) or 1e-5 (`f32`), no damping, sequential.
    fn default() -> Self {
        let fine = T::LOG_RANGE > T::from_f64(100.0);
        Self {
            max_iterations: 1000,
            tolerance: T::from_f64(if fine { 1e-10 } else { 1e-5 }),
            damping: T::zero(),
            schedule: Schedule::Sequential,
        }
    }
}

/// How a run went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Info<T> {
    /// Iterations done.
    pub iterations: u32,
    /// Largest change of a message, before damping, in the last sweep over all factors; if a residual
    /// schedule ran out of iterations, the largest change of inputs that a factor had not answered yet.
    pub residual: T,
    /// Whether `residual` came down to the tolerance.
    pub converged: bool,
}

impl<T: Real> Info<T> {
    /// Of a run that has not begun.
    pub(super) fn none() -> Self {
        Self { iterations: 0, residual: T::INFINITY, converged: false }
    }
}

/// Belief propagation over caller memory.
///
/// ```
/// use gibbsite_core::graph::FactorGraph;
/// use gibbsite_core::infer::loopy::{Dimensions, Loopy, Mode, Params};
/// // Three binary variables in a loop, each pair preferring equal values.
/// let pair = [1.0, 0.0, 0.0, 1.0];
/// let values = [pair, pair, pair].concat();
/// let g = FactorGraph::new(&[2, 2, 2], &[0, 2, 4, 6], &[0, 1, 1, 2, 2, 0], &[0, 4, 8, 12], &values)?;
/// let size = Dimensions::of(&g);
/// let (mut words, mut reals) = (vec![0; Loopy::<f64>::words_len(&size)], vec![0.0; Loopy::<f64>::reals_len(&size)]);
/// let mut bp = Loopy::new(g, Mode::Sum, &mut words, &mut reals)?;
/// assert!(bp.run(&Params::default())?.converged);
/// let mut p = [0.0f64; 6];
/// bp.marginals(&mut p)?;
/// assert!((p[0] - 0.5).abs() < 1e-12);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub struct Loopy<'g, 'm, T> {
    messages: Messages<'g, 'm, T>,
    queue: Queue<'m, T>,
    /// Variables in the order of decoding.
    tour: &'m mut [u32],
    /// One score per label of a variable; then one message to it.
    score: &'m mut [T],
    part: &'m mut [T],
}

impl<'g, 'm, T: Real> Loopy<'g, 'm, T> {
    /// `u32` entries that [`new`](Self::new) needs.
    pub const fn words_len(size: &Dimensions) -> usize {
        size.message_words().saturating_add(Queue::<T>::entries(size.factors)).saturating_add(size.variables)
    }

    /// Real entries that [`new`](Self::new) needs.
    pub const fn reals_len(size: &Dimensions) -> usize {
        let more = Queue::<T>::entries(size.factors).saturating_add(size.arity.saturating_mul(2));
        size.message_reals().saturating_add(more)
    }

    /// Uniform messages. [`InferError::BadValue`] if a finite log-potential is beyond ±[`LARGEST_ENTRY`].
    #[inline(always)]
    pub fn new(
        graph: FactorGraph<'g, T>,
        mode: Mode,
        words: &'m mut [u32],
        reals: &'m mut [T],
    ) -> Result<Self, InferError> {
        let mut loopy = Self::idle(graph, mode);
        loopy.lend(words, reals)?;
        Ok(loopy)
    }

    /// One without memory, which [`lend`](Self::lend) gives it: the two together are [`new`](Self::new) for devices. What `new`
    /// returns lies on the stack twice while it is moved to its place; this is made there. Without memory all else is an error.
    ///
    /// ```
    /// use gibbsite_core::graph::FactorGraph;
    /// use gibbsite_core::infer::loopy::{Dimensions, Loopy, Mode, Params};
    /// let values = [0.0, 3f64.ln()];
    /// let g = FactorGraph::new(&[2], &[0, 1], &[0], &[0, 2], &values)?;
    /// let size = Dimensions::of(&g);
    /// let (mut words, mut reals) = (vec![0; Loopy::<f64>::words_len(&size)], vec![0.0; Loopy::<f64>::reals_len(&size)]);
    /// let mut bp = Loopy::idle(g, Mode::Sum);
    /// assert!(bp.run(&Params::default()).is_err());
    /// bp.lend(&mut words, &mut reals)?;
    /// assert!(bp.run(&Params::default())?.converged);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[inline(always)]
    pub fn idle(graph: FactorGraph<'g, T>, mode: Mode) -> Self {
        let messages = Messages::none(graph, mode);
        Self { messages, queue: Queue::none(), tour: &mut [], score: &mut [], part: &mut [] }
    }

    /// Gives memory to an [idle](Self::idle) one, and sets uniform messages; errors as in [`new`](Self::new).
    #[inline(never)]
    pub fn lend(&mut self, words: &'m mut [u32], reals: &'m mut [T]) -> Result<(), InferError> {
        self.messages.check()?;
        let size = Dimensions::of(&self.messages.graph);
        let mut words = Arena::new(words, Self::words_len(&size))?;
        let mut reals = Arena::new(reals, Self::reals_len(&size))?;
        self.queue.lend(size.factors, &mut words, &mut reals);
        self.tour = words.piece(size.variables);
        (self.score, self.part) = (reals.piece(size.arity), reals.piece(size.arity));
        self.messages.lend(&[], &mut words, &mut reals)
    }

    /// Passes messages, from where the last run ended, until they rest or the iterations are used up;
    /// the latter is reported, not an error. [`InferError::ZeroProbability`] if they contradict each
    /// other, which proves that every configuration is forbidden.
    // Inlined: its frame and its caller's are then one.
    #[inline(always)]
    pub fn run(&mut self, params: &Params<T>) -> Result<Info<T>, InferError> {
        start(&mut self.queue, params)?;
        let mut info = Info::none();
        while info.iterations < params.max_iterations && !info.converged {
            iterate(&mut self.messages, &mut self.queue, params, &mut info)?;
        }
        Ok(info)
    }

    /// The Bethe estimate of log Z; with [`Mode::Max`] the same expression with maxima, which on a graph
    /// without cycles is the largest log-potential.
    ///
    /// `log Z_B = Σ_k log Σ_{x_k} ψ_k Π_{v∈k} q_{v→k} + Σ_v (1 − d_v) log Σ_{x_v} e^{β_v}`, `d_v` factors
    /// at `v` (Yedidia, Freeman, Weiss 2005). Neither an upper nor a lower bound.
    pub fn log_z(&mut self) -> Result<T, InferError> {
        self.messages.free_energy()
    }

    /// Marginals (with [`Mode::Max`]: normalised max-marginals) of all variables; the block of variable
    /// `v` begins at the sum of the arities before it. `out` has [`Dimensions::labels`] entries.
    pub fn marginals(&self, out: &mut [T]) -> Result<(), InferError> {
        self.messages.marginals(out)
    }

    /// Normalised belief of one factor, in the layout of its table.
    pub fn factor_marginal(&mut self, k: FactorId, out: &mut [T]) -> Result<(), InferError> {
        if k.index() >= self.messages.graph.factors() {
            return Err(InferError::Shape);
        }
        self.messages.factor_marginal(k, out)
    }

    /// Decodes an assignment and returns its true `Σ log ψ` (which can be `-inf` on a graph with cycles).
    ///
    /// Variables are visited breadth-first along the factors; each takes the best label given the
    /// labels before it: a factor that touches a decided variable sends its message again with the
    /// decided ones held fixed. On a graph without cycles with [`Mode::Max`] that is a most probable
    /// assignment, also with ties and forbidden configurations, where maximising each belief by itself
    /// can combine labels of different optima. Follow with [`icm`](super::icm) on graphs with cycles.
    pub fn decode(&mut self, labels: &mut [u32]) -> Result<T, InferError> {
        const OPEN: u32 = u32::MAX;
        const QUEUED: u32 = u32::MAX - 1;
        let n = self.messages.graph.variables();
        need(n, labels.len())?;
        let labels = labels.get_mut(..n).ok_or(LOST)?;
        labels.fill(OPEN);
        let (mut head, mut tail) = (0, 0);
        for root in 0..n {
            if labels.get(root) != Some(&OPEN) {
                continue;
            }
            if let (Some(slot), Some(label)) = (self.tour.get_mut(tail), labels.get_mut(root)) {
                (*slot, *label) = (root as u32, QUEUED);
                tail += 1;
            }
            while head < tail {
                let v = self.tour.get(head).copied().ok_or(LOST)?;
                head += 1;
                let label = self.best_given(v, labels)?;
                *labels.get_mut(v as usize).ok_or(LOST)? = label;
                for &e in self.messages.incidence.edges(VarId(v)) {
                    for &u in self.messages.graph.scope(self.messages.incidence.factor(e)) {
                        if labels.get(u as usize) == Some(&OPEN) {
                            *labels.get_mut(u as usize).ok_or(LOST)? = QUEUED;
                            *self.tour.get_mut(tail).ok_or(LOST)? = u;
                            tail += 1;
                        }
                    }
                }
            }
        }
        self.messages.graph.log_potential(labels).ok_or(LOST)
    }

    /// The best label of `v` given the decided labels (below the arity) of its factors' other variables.
    #[inline(never)]
    fn best_given(&mut self, v: u32, labels: &[u32]) -> Result<u32, InferError> {
        let card = self.messages.graph.card(VarId(v));
        self.score.get_mut(..card).ok_or(LOST)?.fill(T::zero());
        for &e in self.messages.incidence.edges(VarId(v)) {
            if self.hears_decided(e, v, labels)? {
                let k = self.messages.incidence.factor(e);
                self.messages.multiply(k, None)?;
                let at = (e as usize).saturating_sub(self.messages.graph.edge_range(k).start);
                self.messages.towards(k, at, self.part)?;
            } else {
                for (p, &m) in self.part.iter_mut().zip(self.messages.on_edge(e as usize)) {
                    *p = m;
                }
            }
            for (s, &p) in self.score.iter_mut().zip(&*self.part) {
                *s += p;
            }
        }
        let score = self.score.get_mut(..card).ok_or(LOST)?;
        if maximum(score) == T::NEG_INFINITY {
            // The labels before this one cannot be completed; the belief is the best that is left.
            self.messages.belief(v, score)?;
        }
        Ok(argmax(score) as u32)
    }

    /// Whether some other variable of an edge's factor is decided; if so, gathers the factor's inputs with those held fixed and
    /// none from `v`.
    #[inline(never)]
    fn hears_decided(&mut self, edge: u32, v: u32, labels: &[u32]) -> Result<bool, InferError> {
        let (graph, k) = (&self.messages.graph, self.messages.incidence.factor(edge));
        let scope = graph.scope(k);
        let cards = graph.cards();
        let decided = |u: u32| {
            let card = cards.get(u as usize).copied().unwrap_or(0);
            labels.get(u as usize).copied().filter(|&l| l < card)
        };
        if !scope.iter().any(|&u| decided(u).is_some()) {
            return Ok(false);
        }
        self.messages.gather(k, |_, u, _, input| {
            if u == v {
                input.fill(T::zero());
            } else if let Some(label) = decided(u) {
                input.fill(T::NEG_INFINITY);
                if let Some(held) = input.get_mut(label as usize) {
                    *held = T::zero();
                }
            }
        })?;
        Ok(true)
    }
}

/// Checks the parameters and makes the queue ready, if the schedule wants one.
pub(super) fn start<T: Real>(queue: &mut Queue<'_, T>, params: &Params<T>) -> Result<(), InferError> {
    let legal = T::zero() <= params.tolerance && T::zero() <= params.damping && params.damping < T::one();
    if !legal {
        return Err(InferError::BadValue);
    }
    if params.schedule == Schedule::Residual {
        queue.fill(T::INFINITY);
    }
    Ok(())
}

/// One iteration of the schedule; it has converged when the residual of a sweep over all factors is at most the tolerance.
///
/// *Sequential*: sweeps over all factors, the direction alternating.
///
/// *Residual*: a heap orders the factors by an upper estimate of how far their outgoing messages would
/// move: the sum of the changes of their inputs since they last sent. That is Sutton & McCallum's
/// zero-lookahead form (2007) of residual belief propagation (Elidan, McGraw, Koller 2006): the original
/// computes every neighbour's messages to rank them, here only messages that are sent are computed. As an
/// estimate is no certificate, an empty heap (all at most the tolerance) is followed by a full
/// sweep, and that one's residual decides.
#[inline(never)]
pub(super) fn iterate<T: Real>(
    messages: &mut Messages<'_, '_, T>,
    queue: &mut Queue<'_, T>,
    params: &Params<T>,
    info: &mut Info<T>,
) -> Result<(), InferError> {
    messages.refresh()?;
    info.iterations += 1;
    let (factors, ranked) = (messages.graph.factors(), params.schedule == Schedule::Residual);
    info.residual = T::zero();
    // With a queue first as many updates as there are factors, if so many are above the tolerance.
    let (mut sent, mut sweep) = (0, !ranked);
    while sent < factors.max(usize::from(!sweep)) {
        let (mut k, priority) = queue.top();
        if sweep {
            k = if info.iterations.is_multiple_of(2) { factors - 1 - sent } else { sent } as u32;
        } else if priority <= params.tolerance {
            (sent, sweep, info.residual) = (0, true, T::zero());
            continue;
        }
        messages.update(FactorId(k), params.damping)?;
        sent += 1;
        info.residual = info.residual.larger(messages.residual);
        if ranked {
            tell(messages, queue, FactorId(k));
        }
    }
    if sweep {
        info.converged = info.residual <= params.tolerance;
    } else {
        info.residual = queue.top().1;
    }
    Ok(())
}

/// Raises the priorities of the factors that hear the one that was updated last, and lowers its own.
#[inline(never)]
fn tell<T: Real>(messages: &Messages<'_, '_, T>, queue: &mut Queue<'_, T>, k: FactorId) {
    for (v, by) in messages.moved(k).filter(|(_, by)| *by > T::zero()) {
        for &e in messages.incidence.edges(VarId(v)) {
            let other = messages.incidence.factor(e);
            // A factor of one variable says the same whatever it hears.
            if other != k && messages.graph.scope(other).len() > 1 {
                queue.raise(other.0, by);
            }
        }
    }
    queue.assign(k.0, messages.left);
}
