//! Tree-reweighted belief propagation: an upper bound on log Z that holds at every iterate.
//!
//! The bound (Wainwright, Jaakkola, Willsky 2005) writes the log-potential `θ(x) = Σ_k log ψ_k(x_k)` as an
//! average over spanning forests `T = 1..F` of the factor graph, `θ = 1/F Σ_T θ^T`, and uses that log Z is
//! convex (Hölder): `log Z(θ) ≤ 1/F Σ_T log Z(θ^T)`, each term exact by elimination in linear time. With
//! `ρ_k` the share of forests that contain factor `k`, and any messages `λ`,
//!
//! ```text
//! θ^T(x) = Σ_{k∈T} ( log ψ_k(x_k)/ρ_k − Σ_{v∈k} λ_{k→v}(x_v) ) + Σ_v Σ_{k∋v} ρ_k λ_{k→v}(x_v)
//! ```
//!
//! averages to `θ` identically. The textbook reports the free energy of the fixed point, which bounds
//! log Z only there; here the average above is evaluated, so that a run that stopped early or never
//! converged reports a true bound, only a weaker one. The messages are those of
//! [`loopy`], reweighted by `ρ`; their fixed points minimise the bound over `λ`.
//!
//! *Factors of any size*: a set of factors is a forest if the bipartite graph of factors and variables has
//! no cycle. Factors of one variable are in every forest. The forests are chosen by union-find without
//! randomness: each next one first takes the factors that no forest has yet, then fills up with the others
//! from a rotating start, until each factor is in at least one.
//!
//! *Forbidden configurations*: `log ψ_k = -inf` stays `-inf` in the forests with `k` and is absent from the
//! others, and `λ` is finite wherever it is used. Then `1/F Σ_T θ^T` is still `θ`: `-inf` at least once
//! in the average is `-inf`, as `ρ_k > 0`. Labels that messages have proven impossible
//! are forbidden in all forests, which removes only configurations of weight zero.

use super::layout::{LOST, span};
use super::loopy::{self, Dimensions, Mode, Params, iterate, start};
use super::message::{Messages, edge_variable};
use super::priority::Queue;
use crate::arena::Arena;
use crate::error::InferError;
use crate::graph::{FactorGraph, Incidence};
use crate::ids::{FactorId, VarId};
use crate::math::{Real, log_sum_exp, maximum};
use crate::wide::finite;

/// How a run went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Info<T> {
    /// Iterations done.
    pub iterations: u32,
    /// As in [`loopy::Info`].
    pub residual: T,
    /// Whether `residual` came down to the tolerance.
    pub converged: bool,
    /// Upper bound on log Z, the best of those evaluated so far, in this run and those before.
    pub bound: T,
    /// Forests in the average.
    pub forests: u32,
}

/// Tree-reweighted belief propagation over caller memory.
///
/// ```
/// use gibbsite_core::graph::FactorGraph;
/// use gibbsite_core::infer::loopy::{Dimensions, Params};
/// use gibbsite_core::infer::trw::Trw;
/// let pair = [1.0, 0.0, 0.0, 1.0];
/// let values = [pair, pair, pair].concat();
/// let g = FactorGraph::new(&[2, 2, 2], &[0, 2, 4, 6], &[0, 1, 1, 2, 2, 0], &[0, 4, 8, 12], &values)?;
/// let size = Dimensions::of(&g);
/// let (mut words, mut reals) = (vec![0; Trw::<f64>::words_len(&size)], vec![0.0; Trw::<f64>::reals_len(&size)]);
/// let mut trw = Trw::new(g, &mut words, &mut reals)?;
/// let info = trw.run(&Params { damping: 0.5, ..Params::default() })?;
/// let exact = (2.0 * 3f64.exp() + 6.0 * 1f64.exp()).ln();
/// assert!(exact <= info.bound && info.bound < exact + 0.1);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub struct Trw<'g, 'm, T> {
    messages: Messages<'g, 'm, T>,
    queue: Queue<'m, T>,
    elimination: Elimination<'m, T>,
    best: T,
}

impl<'g, 'm, T: Real> Trw<'g, 'm, T> {
    /// `u32` entries that [`new`](Self::new) needs.
    pub const fn words_len(size: &Dimensions) -> usize {
        let more = size.factors.saturating_mul(3).saturating_add(size.variables.saturating_mul(2));
        size.message_words().saturating_add(Queue::<T>::entries(size.factors)).saturating_add(more)
    }

    /// Real entries that [`new`](Self::new) needs.
    pub const fn reals_len(size: &Dimensions) -> usize {
        let more = size.factors.saturating_mul(3).saturating_add(size.labels).saturating_add(size.arity);
        size.message_reals().saturating_add(more)
    }

    /// Chooses the forests and sets uniform messages; errors as in
    /// [`Loopy::new`](super::loopy::Loopy::new).
    #[inline(always)]
    pub fn new(
        graph: FactorGraph<'g, T>,
        words: &'m mut [u32],
        reals: &'m mut [T],
    ) -> Result<Self, InferError> {
        let mut trw = Self::idle(graph);
        trw.lend(words, reals)?;
        Ok(trw)
    }

    /// One without memory, which [`lend`](Self::lend) gives it: for devices, as [`Loopy::idle`](super::loopy::Loopy::idle).
    ///
    /// ```
    /// use gibbsite_core::graph::FactorGraph;
    /// use gibbsite_core::infer::{loopy::{Dimensions, Params}, trw::Trw};
    /// let values = [0.0, 3f64.ln()];
    /// let g = FactorGraph::new(&[2], &[0, 1], &[0], &[0, 2], &values)?;
    /// let size = Dimensions::of(&g);
    /// let (mut words, mut reals) = (vec![0; Trw::<f64>::words_len(&size)], vec![0.0; Trw::<f64>::reals_len(&size)]);
    /// let mut trw = Trw::idle(g);
    /// assert!(trw.run(&Params::default()).is_err());
    /// trw.lend(&mut words, &mut reals)?;
    /// assert!((trw.run(&Params::default())?.bound - 4f64.ln()).abs() < 1e-12);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[inline(always)]
    pub fn idle(graph: FactorGraph<'g, T>) -> Self {
        let forests = Forests { number: 0, first: &mut [], member: &mut [], parent: &mut [] };
        Self {
            messages: Messages::none(graph, Mode::Sum),
            queue: Queue::none(),
            elimination: Elimination { forests, order: &mut [], tour: &mut [], up: &mut [], part: &mut [] },
            best: T::INFINITY,
        }
    }

    /// Gives memory to an [idle](Self::idle) one, chooses the forests and sets uniform messages; errors as in [`new`](Self::new).
    #[inline(never)]
    pub fn lend(&mut self, words: &'m mut [u32], reals: &'m mut [T]) -> Result<(), InferError> {
        self.messages.check()?;
        let size = Dimensions::of(&self.messages.graph);
        let mut words = Arena::new(words, Self::words_len(&size))?;
        let mut reals = Arena::new(reals, Self::reals_len(&size))?;
        let Elimination { forests, order, tour, up, part } = &mut self.elimination;
        (forests.first, forests.member) = (words.piece(size.factors), words.piece(size.factors));
        forests.parent = words.piece(size.variables);
        (*order, *tour) = (words.piece(size.factors), words.piece(size.variables));
        (*up, *part) = (reals.piece(size.labels), reals.piece(size.arity));
        let rho = reals.piece(size.factors);
        self.queue.lend(size.factors, &mut words, &mut reals);
        forests.choose(&self.messages.graph)?;
        forests.share(&self.messages.graph, rho)?;
        self.messages.lend(rho, &mut words, &mut reals)
    }

    /// Passes messages from where the last run ended and evaluates the bound: at the start, after each of
    /// the first 8 iterations, after every 8th, and at the end. With `max_iterations = 0` it only
    /// evaluates. Damping 0.5 is a good start: undamped reweighted messages often oscillate.
    // Inlined: its frame and its caller's are then one.
    #[inline(always)]
    pub fn run(&mut self, params: &Params<T>) -> Result<Info<T>, InferError> {
        self.improve()?;
        start(&mut self.queue, params)?;
        let mut info = loopy::Info::none();
        while info.iterations < params.max_iterations && !info.converged {
            iterate(&mut self.messages, &mut self.queue, params, &mut info)?;
            if info.iterations <= 8 || info.iterations % 8 == 0 {
                self.improve()?;
            }
        }
        self.improve()?;
        Ok(Info {
            iterations: info.iterations,
            residual: info.residual,
            converged: info.converged,
            bound: self.best,
            forests: self.elimination.forests.number,
        })
    }

    /// The bound at the current messages, if it is better.
    #[inline(never)]
    fn improve(&mut self) -> Result<(), InferError> {
        self.best = self.best.smaller(self.elimination.bound(&mut self.messages)?);
        Ok(())
    }

    /// Share of the forests that contain a factor; 1 if there is no such factor.
    pub fn appearance(&self, k: FactorId) -> T {
        self.messages.rho(k)
    }

    /// Pseudo-marginals of all variables; layout as in
    /// [`Loopy::marginals`](super::loopy::Loopy::marginals).
    pub fn marginals(&self, out: &mut [T]) -> Result<(), InferError> {
        self.messages.marginals(out)
    }

    /// Pseudo-marginal of one factor, in the layout of its table.
    pub fn factor_marginal(&mut self, k: FactorId, out: &mut [T]) -> Result<(), InferError> {
        if k.index() >= self.messages.graph.factors() {
            return Err(InferError::Shape);
        }
        self.messages.factor_marginal(k, out)
    }
}

/// Variables of a factor that can close a cycle: an arity of 1 connects nothing.
fn branching<'g, T: Real>(graph: &FactorGraph<'g, T>, k: FactorId) -> impl Iterator<Item = u32> + use<'g, T> {
    let graph = *graph;
    graph.scope(k).iter().copied().filter(move |&v| graph.card(VarId(v)) > 1)
}

/// The forests, kept as the rule that makes them: one at a time is spelled out in `member`.
struct Forests<'m> {
    number: u32,
    /// The forest that took each factor before it had been in one; `NONE` where every forest has it.
    first: &'m mut [u32],
    /// 1 for the factors of the current forest.
    member: &'m mut [u32],
    /// Union-find over the variables.
    parent: &'m mut [u32],
}

const NONE: u32 = u32::MAX;
const ROOT: u32 = 1;
const INNER: u32 = 0;

impl Forests<'_> {
    /// Decides which forest each factor is first in.
    #[inline(never)]
    fn choose<T: Real>(&mut self, graph: &FactorGraph<'_, T>) -> Result<(), InferError> {
        self.first.fill(NONE);
        self.number = 0;
        loop {
            self.separate();
            let mut left = false;
            for k in graph.factor_ids() {
                let open = self.first.get(k.index()) == Some(&NONE) && branching(graph, k).nth(1).is_some();
                if open && self.join(graph, k)? {
                    *self.first.get_mut(k.index()).ok_or(LOST)? = self.number;
                    left = true;
                }
            }
            // With no variable connected, the first open factor joins: a round without any is the last.
            if !left {
                break;
            }
            self.number += 1;
        }
        self.number = self.number.max(1);
        Ok(())
    }

    /// `ρ`: the share of the forests that have each factor.
    #[inline(never)]
    fn share<T: Real>(&mut self, graph: &FactorGraph<'_, T>, rho: &mut [T]) -> Result<(), InferError> {
        rho.fill(T::zero());
        for t in 0..self.number {
            self.spell_out(graph, t)?;
            for (r, &m) in rho.iter_mut().zip(&*self.member) {
                *r += T::from_f64(f64::from(m));
            }
        }
        let all = T::from_f64(f64::from(self.number));
        for (k, r) in graph.factor_ids().zip(rho) {
            *r = if branching(graph, k).next().is_none() { T::one() } else { *r / all };
        }
        Ok(())
    }

    /// Fills `member` for forest `t`. Constants are in none: they are added at the end.
    #[inline(never)]
    fn spell_out<T: Real>(&mut self, graph: &FactorGraph<'_, T>, t: u32) -> Result<(), InferError> {
        self.separate();
        self.member.fill(0);
        for k in graph.factor_ids() {
            let everywhere = self.first.get(k.index()) == Some(&NONE) && branching(graph, k).next().is_some();
            if everywhere || (self.first.get(k.index()) == Some(&t) && self.join(graph, k)?) {
                *self.member.get_mut(k.index()).ok_or(LOST)? = 1;
            }
        }
        // `⌊t · factors / number⌋` in parts that fit: a division of 64 bits is a function, with a stack, where there is none.
        let (factors, number, at) = (graph.factors(), self.number.max(1) as usize, t as usize);
        let whole = factors / number;
        let start = (at * whole + at.saturating_mul(factors - whole * number) / number).min(factors);
        for i in (start..factors).chain(0..start) {
            let k = FactorId(i as u32);
            let elsewhere = self.first.get(k.index()).is_some_and(|&f| f != NONE && f != t);
            if elsewhere && self.join(graph, k)? {
                *self.member.get_mut(k.index()).ok_or(LOST)? = 1;
            }
        }
        Ok(())
    }

    fn separate(&mut self) {
        for (v, p) in self.parent.iter_mut().enumerate() {
            *p = v as u32;
        }
    }

    fn find(&mut self, v: u32) -> u32 {
        let mut v = v;
        loop {
            let up = self.parent.get(v as usize).copied().unwrap_or(v);
            if up == v {
                return v;
            }
            let over = self.parent.get(up as usize).copied().unwrap_or(up);
            if let Some(p) = self.parent.get_mut(v as usize) {
                *p = over;
            }
            v = over;
        }
    }

    /// Connects the factor's variables unless two of them are connected already.
    #[inline(never)]
    fn join<T: Real>(&mut self, graph: &FactorGraph<'_, T>, k: FactorId) -> Result<bool, InferError> {
        // Roots are found again rather than kept: a list of them would be most of the stack.
        for (i, v) in branching(graph, k).enumerate() {
            let root = self.find(v);
            if branching(graph, k).take(i).any(|u| self.find(u) == root) {
                return Ok(false);
            }
        }
        let mut variables = branching(graph, k);
        if let Some(first) = variables.next() {
            let one = self.find(first);
            for v in variables {
                let root = self.find(v);
                *self.parent.get_mut(root as usize).ok_or(LOST)? = one;
            }
        }
        Ok(true)
    }
}

/// Exact log Z of each forest, by one pass from the leaves to the roots.
struct Elimination<'m, T> {
    forests: Forests<'m>,
    /// Edge from each factor of the forest towards its root, breadth-first.
    order: &'m mut [u32],
    tour: &'m mut [u32],
    /// Log-weight of each label with all below it summed out.
    up: &'m mut [T],
    part: &'m mut [T],
}

impl<T: Real> Elimination<'_, T> {
    /// `1/F Σ_T log Z(θ^T)` at the current messages.
    #[inline(never)]
    fn bound(&mut self, messages: &mut Messages<'_, '_, T>) -> Result<T, InferError> {
        messages.refresh()?;
        let mut sum = T::zero();
        for t in 0..self.forests.number {
            self.forests.spell_out(&messages.graph, t)?;
            sum += self.log_z(messages)?;
        }
        sum /= T::from_f64(f64::from(self.forests.number));
        self.add_constants(&messages.graph, sum)
    }

    #[inline(never)]
    fn add_constants(&self, graph: &FactorGraph<'_, T>, mut sum: T) -> Result<T, InferError> {
        for k in graph.factor_ids() {
            if let (None, [constant]) = (branching(graph, k).next(), graph.table(k)) {
                sum += *constant;
            }
        }
        finite(sum)
    }

    /// `log Z(θ^T)` of the forest that is spelled out. A factor `k` below its parent variable `p` sends
    /// `u(x_p) = log Σ exp( log ψ_k/ρ_k − Σ_{v∈k} λ_{k→v} + Σ_{c ≠ p} up_c )`, and `up_p += u`.
    #[inline(never)]
    fn log_z(&mut self, messages: &mut Messages<'_, '_, T>) -> Result<T, InferError> {
        let mut log_z = self.begin(messages)?;
        let factors = self.lay_out(&messages.graph, &messages.incidence)?;
        for i in (0..factors).rev() {
            let edge = *self.order.get(i).ok_or(LOST)?;
            let k = messages.incidence.factor(edge);
            self.listen(messages, k, edge as usize)?;
            messages.multiply(k, None)?;
            messages.towards(
                k,
                (edge as usize).saturating_sub(messages.graph.edge_range(k).start),
                self.part,
            )?;
            log_z += self.pass_up(messages, edge as usize)?;
        }
        log_z = self.add_roots(messages.label_starts(), log_z)?;
        if log_z == T::NEG_INFINITY { Err(InferError::ZeroProbability) } else { Ok(log_z) }
    }

    /// Every variable's belief in `up`; the sum of what was taken off them.
    #[inline(never)]
    fn begin(&mut self, messages: &Messages<'_, '_, T>) -> Result<T, InferError> {
        let mut sum = T::zero();
        for v in 0..messages.graph.variables() as u32 {
            sum += messages.belief(v, self.up.get_mut(messages.labels_of(v)).ok_or(LOST)?)?;
        }
        Ok(sum)
    }

    /// The inputs of a factor whose edge towards the root is `towards`.
    #[inline(never)]
    fn listen(
        &self,
        messages: &mut Messages<'_, '_, T>,
        k: FactorId,
        towards: usize,
    ) -> Result<(), InferError> {
        let (up, starts) = (&*self.up, messages.label_starts());
        messages.gather(k, |edge, v, message, input| {
            let below = up.get(span(starts, v as usize)).unwrap_or(&[]);
            for ((q, &u), &m) in input.iter_mut().zip(below).zip(message) {
                let over = if edge == towards { T::zero() } else { u };
                // Where `m` is -inf so is every belief, and `up` started from it.
                *q = if u == T::NEG_INFINITY { u } else { over - m };
            }
        })
    }

    /// Adds the message in `part` to the variable at an edge; what was taken off it.
    #[inline(never)]
    fn pass_up(&mut self, messages: &Messages<'_, '_, T>, edge: usize) -> Result<T, InferError> {
        let parent = edge_variable(&messages.graph, edge)?;
        let into = self.up.get_mut(messages.labels_of(parent)).ok_or(LOST)?;
        let part = self.part.get(..into.len()).ok_or(LOST)?;
        let scale = maximum(part);
        if scale == T::NEG_INFINITY {
            return Err(InferError::ZeroProbability);
        }
        for (u, &p) in into.iter_mut().zip(part) {
            *u += p - scale;
        }
        Ok(scale)
    }

    /// `sum`, and what the roots' labels add up to; `lay_out` left a mark on the roots.
    #[inline(never)]
    fn add_roots(&self, starts: &[u32], mut sum: T) -> Result<T, InferError> {
        for (v, &mark) in self.forests.parent.iter().enumerate() {
            if mark == ROOT {
                sum += log_sum_exp(self.up.get(span(starts, v)).ok_or(LOST)?);
            }
        }
        Ok(sum)
    }

    /// Walks the forest breadth-first from a root in each of its trees and writes down the edges from
    /// factors to parents. Uses up `member` and the union-find.
    #[inline(never)]
    fn lay_out(
        &mut self,
        graph: &FactorGraph<'_, T>,
        incidence: &Incidence<'_>,
    ) -> Result<usize, InferError> {
        let Forests { member, parent: mark, .. } = &mut self.forests;
        mark.fill(NONE);
        let (mut factors, mut head, mut tail) = (0, 0, 0);
        for root in 0..graph.variables() {
            let Some(m) = mark.get_mut(root).filter(|m| **m == NONE) else { continue };
            *m = ROOT;
            *self.tour.get_mut(tail).ok_or(LOST)? = root as u32;
            tail += 1;
            while head < tail {
                let v = self.tour.get(head).copied().ok_or(LOST)?;
                head += 1;
                if graph.card(VarId(v)) == 1 {
                    continue;
                }
                for &e in incidence.edges(VarId(v)) {
                    let k = incidence.factor(e);
                    let Some(m) = member.get_mut(k.index()).filter(|m| **m == 1) else { continue };
                    *m = 0;
                    *self.order.get_mut(factors).ok_or(LOST)? = e;
                    factors += 1;
                    for u in branching(graph, k) {
                        if let Some(m) = mark.get_mut(u as usize).filter(|m| **m == NONE) {
                            *m = INNER;
                            *self.tour.get_mut(tail).ok_or(LOST)? = u;
                            tail += 1;
                        }
                    }
                }
            }
        }
        Ok(factors)
    }
}
