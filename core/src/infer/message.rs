//! Log-messages of (tree-reweighted) belief propagation over caller memory: what
//! [`loopy`](super::loopy) and [`trw`](super::trw) share.
//!
//! For a factor `k` with weight `ρ_k` (1 in plain belief propagation), an edge `k – v` and `⊕` = Σ or max:
//!
//! ```text
//! β_v(x_v)      = Σ_{k ∋ v} ρ_k λ_{k→v}(x_v)                                   (belief of v)
//! q_{v→k}(x_v)  = β_v(x_v) − λ_{k→v}(x_v)                                      (cavity)
//! λ_{k→v}(x_v)  = log ⊕_{x_k \ x_v} exp( log ψ_k(x_k)/ρ_k + Σ_{u ≠ v} q_{u→k}(x_u) ), largest entry 0
//! ```
//!
//! Only `λ` and `β` are stored. `β` is kept as a sum of two floats, so that the subtraction in `q` loses
//! nothing even when one message is far larger than the rest.
//!
//! *Forbidden labels.* `λ_{k→v}(x_v) = -inf` says that no configuration of `k` with `x_v` is possible;
//! by induction over the updates that is proven, not estimated (messages start at 0). Such a label has
//! probability zero for everyone, so `β` and all cavities there become `-inf` for good, and `-inf − -inf`
//! is never formed. A message that is `-inf` everywhere proves `Z = 0`.

use super::layout::{Dimensions, LOST, check_entries, span, starts};
use crate::arena::Arena;
use crate::error::{InferError, need};
use crate::graph::{FactorGraph, Incidence};
use crate::ids::{FactorId, VarId};
use crate::math::{Real, log_sum_exp, maximum};
use crate::stride::Single;
use crate::wide::finite;
use core::cmp::Ordering;
use core::ops::Range;

/// What a message ranges over the other variables of a factor with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Sums: marginals and log Z.
    Sum,
    /// Maxima: max-marginals and the most probable assignment.
    Max,
}

/// The running state; see the head of this file.
pub(super) struct Messages<'g, 'm, T> {
    pub(super) graph: FactorGraph<'g, T>,
    pub(super) incidence: Incidence<'m>,
    mode: Mode,
    label_start: &'m [u32],
    message_start: &'m [u32],
    /// `ρ` of each factor; empty if all are 1.
    rho: &'m [T],
    message: &'m mut [T],
    high: &'m mut [T],
    low: &'m mut [T],
    /// Inputs of one factor, one variable of its scope after the other.
    cavity: &'m mut [T],
    /// The same as the elimination wants them: `e^(q − max q)` for sums, `q` for maxima.
    scaled: &'m mut [T],
    /// Outputs of one factor, likewise.
    fresh: &'m mut [T],
    /// Largest log-weight under each label of one variable.
    peak: &'m mut [T],
    log: &'m mut [T],
    linear: &'m mut [T],
    /// Below this share of a factor's largest term, a sum of exponentials is not trusted.
    tiny: T,
    /// Of the factor that was updated last: the largest change of a message before damping, and what is left of it.
    pub(super) residual: T,
    pub(super) left: T,
}

impl<'g, 'm, T: Real> Messages<'g, 'm, T> {
    /// Without memory. Made in place and then [lent](Self::lend) some: what is returned by value lies on the stack twice.
    #[inline(always)]
    pub(super) fn none(graph: FactorGraph<'g, T>, mode: Mode) -> Self {
        Self {
            graph,
            incidence: Incidence::NONE,
            mode,
            label_start: &[],
            message_start: &[],
            rho: &[],
            message: &mut [],
            high: &mut [],
            low: &mut [],
            cavity: &mut [],
            scaled: &mut [],
            fresh: &mut [],
            peak: &mut [],
            log: &mut [],
            linear: &mut [],
            tiny: T::zero(),
            residual: T::INFINITY,
            left: T::zero(),
        }
    }

    /// Takes its memory and sets uniform messages; [`check`](Self::check) before.
    #[inline(never)]
    pub(super) fn lend(
        &mut self,
        rho: &'m [T],
        words: &mut Arena<'m, u32>,
        reals: &mut Arena<'m, T>,
    ) -> Result<(), InferError> {
        let d = Dimensions::of(&self.graph);
        self.incidence = Incidence::build(&self.graph, words.piece(Incidence::len(d.variables, d.edges)))?;
        let label_start = words.piece(d.variables + 1);
        starts(label_start, self.graph.cards().iter().copied());
        let message_start = words.piece(d.edges + 1);
        let cards = self.graph.edge_variables().iter().map(|&v| self.graph.card(VarId(v)) as u32);
        starts(message_start, cards);
        (self.label_start, self.message_start, self.rho) = (label_start, message_start, rho);
        self.message = reals.piece(d.messages);
        (self.high, self.low) = (reals.piece(d.labels), reals.piece(d.labels));
        for part in [&mut self.cavity, &mut self.scaled, &mut self.fresh] {
            *part = reals.piece(d.widest);
        }
        self.peak = reals.piece(d.arity);
        (self.log, self.linear) = (reals.piece(d.largest), reals.piece(d.largest));
        self.tiny = (-T::LOG_RANGE / (T::one() + T::one())).exp();
        self.message.fill(T::zero());
        self.refresh()
    }

    /// Whether the graph is one for messages.
    #[inline(never)]
    pub(super) fn check(&self) -> Result<(), InferError> {
        let d = Dimensions::of(&self.graph);
        if d.labels.max(d.messages) > u32::MAX as usize {
            return Err(InferError::Shape);
        }
        check_entries(&self.graph)?;
        if self.graph.factor_ids().any(|k| maximum(self.graph.table(k)) == T::NEG_INFINITY) {
            return Err(InferError::ZeroProbability);
        }
        Ok(())
    }

    /// `ρ_k`.
    pub(super) fn rho(&self, k: FactorId) -> T {
        self.rho.get(k.index()).copied().unwrap_or(T::one())
    }

    /// Where a variable's labels lie in an array over all labels.
    pub(super) fn labels_of(&self, v: u32) -> Range<usize> {
        span(self.label_start, v as usize)
    }

    /// Where each variable's labels begin, and their number at the end.
    pub(super) fn label_starts(&self) -> &'m [u32] {
        self.label_start
    }

    /// `λ` on an edge.
    pub(super) fn on_edge(&self, edge: usize) -> &[T] {
        self.message.get(span(self.message_start, edge)).unwrap_or(&[])
    }

    /// Sums `β` from the messages; between two calls it is updated step by step.
    #[inline(never)]
    pub(super) fn refresh(&mut self) -> Result<(), InferError> {
        self.high.fill(T::zero());
        self.low.fill(T::zero());
        for k in self.graph.factor_ids() {
            let rho = self.rho(k);
            for e in self.graph.edge_range(k) {
                let v = edge_variable(&self.graph, e)?;
                let at = span(self.label_start, v as usize);
                let high = self.high.get_mut(at.clone()).ok_or(LOST)?;
                let low = self.low.get_mut(at).ok_or(LOST)?;
                let from = self.message.get(span(self.message_start, e)).ok_or(LOST)?;
                for ((h, l), &m) in high.iter_mut().zip(low).zip(from) {
                    if m == T::NEG_INFINITY {
                        (*h, *l) = (m, T::zero());
                    } else if *h != T::NEG_INFINITY {
                        add(h, l, rho * m);
                    }
                }
            }
        }
        Ok(())
    }

    /// `β` of a variable less a shift that makes its largest entry (almost) 0; returns the shift.
    pub(super) fn belief(&self, v: u32, out: &mut [T]) -> Result<T, InferError> {
        let at = self.labels_of(v);
        let (high, low) = (self.high.get(at.clone()).ok_or(LOST)?, self.low.get(at).ok_or(LOST)?);
        let shift = top(high);
        for ((o, &h), &l) in out.iter_mut().zip(high).zip(low) {
            *o = below(h, l, shift, T::zero());
        }
        Ok(shift)
    }

    /// `⊕_x β_v(x)`, less the shift.
    #[inline(never)]
    fn belief_total(&mut self, v: u32) -> Result<(T, T), InferError> {
        let peak = core::mem::take(&mut self.peak);
        let result = match peak.get_mut(..self.labels_of(v).len()) {
            Some(part) => self.belief(v, part).map(|shift| (self.total(part), shift)),
            None => Err(LOST),
        };
        self.peak = peak;
        result
    }

    /// `⊕` of log-weights.
    pub(super) fn total(&self, x: &[T]) -> T {
        match self.mode {
            Mode::Sum => log_sum_exp(x),
            Mode::Max => maximum(x),
        }
    }

    /// Fills the inputs of a factor: `write(edge, variable, λ, input)` starts from the cavity `q`,
    /// shifted like [`belief`](Self::belief).
    #[inline(never)]
    pub(super) fn gather(
        &mut self,
        k: FactorId,
        mut write: impl FnMut(usize, u32, &[T], &mut [T]),
    ) -> Result<(), InferError> {
        let mut free = &mut *self.cavity;
        for e in self.graph.edge_range(k) {
            let v = edge_variable(&self.graph, e)?;
            let at = span(self.label_start, v as usize);
            let (input, rest) = free.split_at_mut_checked(at.len()).ok_or(LOST)?;
            free = rest;
            let (high, low) = (self.high.get(at.clone()).ok_or(LOST)?, self.low.get(at).ok_or(LOST)?);
            let message = self.message.get(span(self.message_start, e)).ok_or(LOST)?;
            let shift = top(high);
            for (((q, &h), &l), &m) in input.iter_mut().zip(high).zip(low).zip(message) {
                *q = below(h, l, shift, m);
            }
            write(e, v, message, input);
        }
        Ok(())
    }

    /// The factor's log-weights `log ψ_k/ρ_k + Σ inputs`, without the input at position `skip` of the
    /// scope; call [`gather`](Self::gather) before.
    #[inline(never)]
    pub(super) fn multiply(&mut self, k: FactorId, skip: Option<usize>) -> Result<&mut [T], InferError> {
        let (table, scope, rho) = (self.graph.table(k), self.graph.scope(k), self.rho(k));
        let log = self.log.get_mut(..table.len()).ok_or(LOST)?;
        let inverse = T::one() / rho;
        for (b, &t) in log.iter_mut().zip(table) {
            *b = t * inverse;
        }
        let mut inputs = &*self.cavity;
        for (at, &v) in scope.iter().enumerate() {
            let (input, rest) = inputs.split_at_checked(self.graph.card(VarId(v))).ok_or(LOST)?;
            inputs = rest;
            if skip != Some(at) {
                add_input(place(&self.graph, scope, at), log, input);
            }
        }
        Ok(log)
    }

    /// `out(x) = ⊕` of the factor's log-weights over all variables of its scope but the one at `at`, into as many entries as that
    /// has labels; call [`multiply`](Self::multiply) before. Safe at any range: each label is scaled by its own peak.
    #[inline(never)]
    pub(super) fn towards(&mut self, k: FactorId, at: usize, out: &mut [T]) -> Result<(), InferError> {
        let (scope, size) = (self.graph.scope(k), self.graph.table(k).len());
        let place = place(&self.graph, scope, at);
        let out = out.get_mut(..place.card as usize).ok_or(LOST)?;
        let log = self.log.get(..size).ok_or(LOST)?;
        out.fill(T::NEG_INFINITY);
        fold_max(place, log, out);
        if self.mode == Mode::Max {
            return Ok(());
        }
        let peak = self.peak.get_mut(..out.len()).ok_or(LOST)?;
        for (p, &o) in peak.iter_mut().zip(&*out) {
            *p = if o == T::NEG_INFINITY { T::zero() } else { o };
        }
        let linear = self.linear.get_mut(..size).ok_or(LOST)?;
        for (x, &b) in linear.iter_mut().zip(log) {
            *x = b;
        }
        take_input(place, linear, peak);
        for x in linear.iter_mut() {
            *x = x.exp();
        }
        out.fill(T::zero());
        fold_sum(place, linear, out);
        for (o, &p) in out.iter_mut().zip(&*peak) {
            *o = p + o.ln();
        }
        Ok(())
    }

    /// Recomputes all messages out of a factor and stores them, damped; [`moved`](Self::moved) then says how far each went,
    /// [`residual`](Self::residual) the most, and `left` what is left of that after damping.
    ///
    /// Step after step, each of which returns before the next is called: none of them lies on the stack with another.
    #[inline(never)]
    pub(super) fn update(&mut self, k: FactorId, damping: T) -> Result<(), InferError> {
        self.gather(k, |_, _, _, _| {})?;
        let mut damping = damping;
        if self.take_single(k) {
            damping = T::zero();
        } else if self.mode == Mode::Sum {
            self.scale_sums(k)?;
            self.eliminate(k, T::zero(), |a, w| a * w, |a, b| a + b)?;
            let mut at = self.next_doubtful(k, 0)?;
            while at < self.graph.scope(k).len() {
                self.multiply(k, Some(at))?;
                let fresh = core::mem::take(&mut self.fresh);
                let done = self.towards(k, at, fresh.get_mut(self.inputs_before(k, at)..).unwrap_or(&mut []));
                self.fresh = fresh;
                done?;
                at = self.next_doubtful(k, at + 1)?;
            }
        } else {
            self.take_maxima(k);
            self.eliminate(k, T::NEG_INFINITY, |a, w| a + w, T::larger)?;
        }
        self.store(k, damping)
    }

    /// Where the variable at position `at` of a scope begins in the inputs of the factor.
    #[inline(never)]
    fn inputs_before(&self, k: FactorId, at: usize) -> usize {
        self.graph.scope(k).iter().take(at).map(|&v| self.graph.card(VarId(v))).sum()
    }

    /// The message of a factor with one variable: the table itself, whatever comes in. It never changes, so there is nothing to
    /// damp. `false` for other factors.
    #[inline(never)]
    fn take_single(&mut self, k: FactorId) -> bool {
        let rho = self.rho(k);
        let [_] = self.graph.scope(k) else { return false };
        for (o, &t) in self.fresh.iter_mut().zip(self.graph.table(k)) {
            *o = t / rho;
        }
        true
    }

    /// Table and inputs of a factor as elimination by maxima wants them.
    #[inline(never)]
    fn take_maxima(&mut self, k: FactorId) {
        let (rho, table) = (self.rho(k), self.graph.table(k));
        for (a, &t) in self.log.iter_mut().zip(table) {
            *a = t / rho;
        }
        for (w, &q) in self.scaled.iter_mut().zip(&*self.cavity) {
            *w = q;
        }
    }

    /// Table and inputs of a factor as exponentials, the largest of each 1: `S` calls of `exp`, and one for
    /// each label.
    #[inline(never)]
    fn scale_sums(&mut self, k: FactorId) -> Result<(), InferError> {
        let (rho, table) = (self.rho(k), self.graph.table(k));
        let top = maximum(table);
        for (a, &t) in self.log.iter_mut().zip(table) {
            *a = ((t - top) / rho).exp();
        }
        let (mut inputs, mut scaled) = (&*self.cavity, &mut *self.scaled);
        for &v in self.graph.scope(k) {
            let card = self.graph.card(VarId(v));
            let (input, rest) = inputs.split_at_checked(card).ok_or(LOST)?;
            let (out, free) = core::mem::take(&mut scaled).split_at_mut_checked(card).ok_or(LOST)?;
            (inputs, scaled) = (rest, free);
            let top = maximum(input);
            if top == T::NEG_INFINITY {
                return Err(InferError::ZeroProbability);
            }
            for (w, &q) in out.iter_mut().zip(input) {
                *w = (q - top).exp();
            }
        }
        Ok(())
    }

    /// All messages out of a factor, `⊕_{x_k \ x_v} A(x_k) ⊗ Π_{u≠v} w_u(x_u)`, from the table `A` in `log` and
    /// the inputs `w` in `scaled`, into `fresh`.
    ///
    /// For each variable of the scope in turn: those after it are eliminated from the last on, which
    /// shrinks the table each time and gives its message; then it is eliminated itself, for good. With
    /// arities of at least 2 that is less than `6 S` products however long the scope, and a message does
    /// not see its own variable's input at all, so that on a tree messages come to rest exactly.
    #[inline(never)]
    fn eliminate(
        &mut self,
        k: FactorId,
        zero: T,
        times: impl Fn(T, T) -> T + Copy,
        plus: impl Fn(T, T) -> T + Copy,
    ) -> Result<(), InferError> {
        let scope = self.graph.scope(k);
        let card = |v: &u32| self.graph.card(VarId(*v));
        let mut table = self.log.get_mut(..self.graph.table(k).len()).ok_or(LOST)?;
        let (mut weights, mut fresh) = (&*self.scaled, &mut *self.fresh);
        let mut after = scope;
        while let [v, rest @ ..] = after {
            after = rest;
            let (own, others) = weights.split_at_checked(card(v)).ok_or(LOST)?;
            let (out, free) = core::mem::take(&mut fresh).split_at_mut_checked(card(v)).ok_or(LOST)?;
            (weights, fresh) = (others, free);

            let mut ends: usize = rest.iter().map(card).sum();
            let (mut from, mut room) = (&*table, &mut *self.linear);
            for u in rest.iter().rev() {
                let w = others.get(ends.saturating_sub(card(u))..ends).ok_or(LOST)?;
                ends -= w.len();
                if let [_] = w {
                    continue;
                }
                let smaller = from.len() / w.len().max(1);
                let (sums, left) = core::mem::take(&mut room).split_at_mut_checked(smaller).ok_or(LOST)?;
                for (s, row) in sums.iter_mut().zip(from.chunks_exact(w.len().max(1))) {
                    *s = row.iter().zip(w).fold(zero, |sum, (&a, &w)| plus(sum, times(a, w)));
                }
                (from, room) = (sums, left);
            }
            for (o, &a) in out.iter_mut().zip(from) {
                *o = a;
            }

            let row = table.len() / own.len().max(1);
            let (sums, rows) = table.split_at_mut_checked(row).ok_or(LOST)?;
            if let [first, others @ ..] = own {
                for s in sums.iter_mut() {
                    *s = times(*s, *first);
                }
                for (row, &w) in rows.chunks_exact(row.max(1)).zip(others) {
                    for (s, &a) in sums.iter_mut().zip(row) {
                        *s = plus(*s, times(a, w));
                    }
                }
            }
            table = sums;
        }
        Ok(())
    }

    /// Turns sums of exponentials in `fresh` into logarithms, from the variable at position `from` of the scope on, up to the first
    /// that may have lost terms: its position, or the scope's length.
    ///
    /// *Range*: all products are at most 1, and one that vanished was below `e^-LOG_RANGE`; so a sum of at
    /// least `e^(-LOG_RANGE/2)` lacks no more than `S·e^(-LOG_RANGE/2)` of itself, which rounding hides. A
    /// message with a smaller sum (or none) at a possible label goes through [`towards`](Self::towards).
    #[inline(never)]
    fn next_doubtful(&mut self, k: FactorId, from: usize) -> Result<usize, InferError> {
        let mut start = 0;
        for (at, &v) in self.graph.scope(k).iter().enumerate() {
            let range = start..start + self.graph.card(VarId(v));
            start = range.end;
            if at < from {
                continue;
            }
            let out = self.fresh.get_mut(range.clone()).ok_or(LOST)?;
            let input = self.cavity.get(range).ok_or(LOST)?;
            if !out.iter().zip(input).all(|(&o, &q)| o >= self.tiny || q == T::NEG_INFINITY) {
                return Ok(at);
            }
            for o in out {
                *o = o.ln();
            }
        }
        Ok(self.graph.scope(k).len())
    }

    /// Normalises the messages in `fresh` and moves the stored ones and the beliefs towards them.
    ///
    /// A change within the rounding of the factor's own inputs counts as none: with log-potentials in the
    /// thousands a message near 0 is a difference of large numbers, and its last digits can alternate for
    /// ever.
    #[inline(never)]
    fn store(&mut self, k: FactorId, damping: T) -> Result<(), InferError> {
        let (rho, one) = (self.rho(k), T::one());
        let (mut residual, mut left) = (T::zero(), T::zero());
        let width: usize = self.graph.scope(k).iter().map(|&v| self.graph.card(VarId(v))).sum();
        let heard = self.cavity.iter().take(width).filter(|q| **q != T::NEG_INFINITY);
        let rounding = heard.fold(one, |top, q| top.larger(q.abs())) * T::from_f64(4.0) * T::EPSILON;
        let (mut fresh, mut inputs) = (&mut *self.fresh, &*self.cavity);
        for e in self.graph.edge_range(k) {
            let v = edge_variable(&self.graph, e)?;
            let at = span(self.label_start, v as usize);
            let (out, free) = core::mem::take(&mut fresh).split_at_mut_checked(at.len()).ok_or(LOST)?;
            let (input, rest) = inputs.split_at_checked(at.len()).ok_or(LOST)?;
            (fresh, inputs) = (free, rest);
            for (o, &q) in out.iter_mut().zip(input) {
                if q == T::NEG_INFINITY {
                    *o = q;
                }
            }
            let scale = maximum(out);
            if scale == T::NEG_INFINITY {
                return Err(InferError::ZeroProbability);
            }
            let message = self.message.get_mut(span(self.message_start, e)).ok_or(LOST)?;
            let high = self.high.get_mut(at.clone()).ok_or(LOST)?;
            let low = self.low.get_mut(at).ok_or(LOST)?;
            let (mut moved, mut stays) = (T::zero(), T::zero());
            for (((m, h), l), &o) in message.iter_mut().zip(high).zip(low).zip(&*out) {
                let target = o - scale;
                if target == T::NEG_INFINITY || *m == T::NEG_INFINITY {
                    if *m != T::NEG_INFINITY {
                        moved = T::INFINITY;
                    }
                    (*m, *h, *l) = (T::NEG_INFINITY, T::NEG_INFINITY, T::zero());
                    continue;
                }
                let by = (target - *m).abs();
                let change = if by <= rounding { T::zero() } else { by / target.abs().larger(one) };
                moved = moved.larger(change);
                stays = stays.larger(damping * change);
                let new = target + damping * (*m - target);
                add(h, l, rho * new);
                add(h, l, -(rho * *m));
                *m = new;
            }
            residual = residual.larger(moved);
            left = left.larger(stays);
            // What was computed is stored: its place serves to say how far it went.
            if let Some(first) = out.first_mut() {
                *first = moved;
            }
        }
        (self.residual, self.left) = (residual, left);
        Ok(())
    }

    /// How far each message of the factor moved that was [updated](Self::update) last, edge after edge.
    pub(super) fn moved(&self, k: FactorId) -> impl Iterator<Item = (u32, T)> {
        let mut start = 0;
        self.graph.scope(k).iter().map(move |&v| {
            let by = self.fresh.get(start).copied().unwrap_or(T::zero());
            start += self.graph.card(VarId(v));
            (v, by)
        })
    }

    /// `Σ_k ρ_k ⊕B_k + Σ_v (1 − Σ_{k∋v} ρ_k) ⊕β_v`: at a fixed point the Bethe (or tree-reweighted)
    /// approximation of log Z, whatever the scales of the messages.
    pub(super) fn free_energy(&mut self) -> Result<T, InferError> {
        self.refresh()?;
        let mut sum = T::zero();
        for k in self.graph.factor_ids() {
            self.gather(k, |_, _, _, _| {})?;
            self.multiply(k, None)?;
            let weights = self.log.get(..self.graph.table(k).len()).ok_or(LOST)?;
            let mut part = self.total(weights);
            // Taken off factor by factor, so that a variable with many factors does not cancel at the end.
            for &v in self.graph.scope(k) {
                part -= self.belief_total(v)?.0;
            }
            sum += self.rho(k) * part;
        }
        for v in 0..self.graph.variables() as u32 {
            let (total, shift) = self.belief_total(v)?;
            sum += total + shift;
        }
        if sum == T::NEG_INFINITY { Err(InferError::ZeroProbability) } else { finite(sum) }
    }

    /// Normalised beliefs of all variables, one after the other.
    #[inline(never)]
    pub(super) fn marginals(&self, out: &mut [T]) -> Result<(), InferError> {
        need(self.high.len(), out.len())?;
        for v in 0..self.graph.variables() as u32 {
            let part = out.get_mut(self.labels_of(v)).ok_or(LOST)?;
            self.belief(v, part)?;
            if crate::math::softmax(part) == T::NEG_INFINITY {
                return Err(InferError::ZeroProbability);
            }
        }
        Ok(())
    }

    /// Normalised belief of a factor, `∝ exp(log ψ_k/ρ_k + Σ q)`.
    pub(super) fn factor_marginal(&mut self, k: FactorId, out: &mut [T]) -> Result<(), InferError> {
        let size = self.graph.table(k).len();
        need(size, out.len())?;
        let part = out.get_mut(..size).ok_or(LOST)?;
        self.gather(k, |_, _, _, _| {})?;
        for (o, &b) in part.iter_mut().zip(&*self.multiply(k, None)?) {
            *o = b;
        }
        if crate::math::softmax(part) == T::NEG_INFINITY {
            return Err(InferError::ZeroProbability);
        }
        Ok(())
    }
}

/// How the variable at position `at` of a scope lies inside the factor's table.
#[inline(never)]
pub(super) fn place<T: Real>(graph: &FactorGraph<'_, T>, scope: &[u32], at: usize) -> Single {
    let mut counts = [1u32; 3];
    for (i, &v) in scope.iter().enumerate() {
        let [before, own, after] = &mut counts;
        let count = match i.cmp(&at) {
            Ordering::Less => before,
            Ordering::Equal => own,
            Ordering::Greater => after,
        };
        *count = count.saturating_mul(graph.card(VarId(v)) as u32);
    }
    let [before, card, after] = counts;
    Single { before, card, after }
}

// The loops over patterns, each by itself: they are called one after the other, and a device has little stack.

#[inline(never)]
fn add_input<T: Real>(place: Single, log: &mut [T], input: &[T]) {
    place.spread(log, input, |b, q| *b += q);
}

#[inline(never)]
fn take_input<T: Real>(place: Single, log: &mut [T], input: &[T]) {
    place.spread(log, input, |b, q| *b -= q);
}

#[inline(never)]
fn fold_max<T: Real>(place: Single, log: &[T], out: &mut [T]) {
    place.fold(log, out, T::larger);
}

#[inline(never)]
pub(super) fn fold_sum<T: Real>(place: Single, linear: &[T], out: &mut [T]) {
    place.fold(linear, out, |a, b| a + b);
}

/// Largest entry of a belief, or 0 if all are `-inf`. What many factors agree on can be large and says
/// nothing; taken off before rounding, it costs no digits.
fn top<T: Real>(high: &[T]) -> T {
    let top = maximum(high);
    if top == T::NEG_INFINITY { T::zero() } else { top }
}

/// `high + low − shift − message`, rounded once at the end; `-inf` where `high` is.
#[inline(always)]
fn below<T: Real>(high: T, low: T, shift: T, message: T) -> T {
    if high == T::NEG_INFINITY {
        return high;
    }
    let (mut sum, mut rest) = (high, low);
    add(&mut sum, &mut rest, -shift);
    add(&mut sum, &mut rest, -message);
    sum + rest
}

/// The variable at an edge.
pub(super) fn edge_variable<T: Real>(graph: &FactorGraph<'_, T>, edge: usize) -> Result<u32, InferError> {
    graph.edge_variables().get(edge).copied().ok_or(LOST)
}

/// Adds a finite number to a finite sum of two floats: what rounding drops from `high` goes to `low`
/// (Knuth's TwoSum).
#[inline(always)]
fn add<T: Real>(high: &mut T, low: &mut T, x: T) {
    let sum = *high + x;
    let part = sum - *high;
    *low += (*high - (sum - part)) + (x - part);
    *high = sum;
}
