//! Marginals in fixed point: the same two passes on scores in units, sums of exponentials by a table.
//!
//! `log P(x_v = l)` in units, from `log Σ_{x: x_v = l} e^{Σ_k log ψ_k(x)}`; only additions, comparisons and lookups. Input: a graph with `i32` scores,
//! its plan, and a [`LogAdd`] table. How it differs from the passes in floating point: messages are always logarithms, and marginals are read off a belief in one step however
//! large it is (cliques that suit a small core are small).
//!
//! **Error.** One addition is off by at most `e` of [`LogAdd`], and
//! log-sum-exp does not enlarge errors of its terms. So a message up from a clique of `n` configurations is off by at most `n·e` more than the sum of
//! what its inputs are off by: with `N` configurations of all cliques together, `log Z` is off by at most `N·e`. A message down is a belief less a message up:
//! belief and message up have both passed through the same, so that a marginal is off by at most `3·N·e` before it is normalised, and by `6·N·e` after.
//! Scores behind by more than the [floor](crate::score) add nothing that `e^{-2²⁶ units}` would be seen of.

use super::operands::Operands;
use super::{Junction, State};
use crate::error::InferError;
use crate::ids::VarId;
use crate::infer::contract::contract;
use crate::infer::fork::{Fork, Span};
use crate::infer::loops::{Loops, Shape, size_of_scope};
use crate::log_add::LogAdd;
use crate::score::Score;

/// What is brought down to something smaller.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whole {
    /// A clique's messages, whose product is its belief.
    Messages,
    /// The belief, stored.
    Belief,
    /// The belief over the separator to a child.
    Separator,
}

impl Junction<'_, '_, i32> {
    /// The first pass with sums: `log Z` in units, of the variables that some factor mentions; errors as in [`maximise`](Self::maximise).
    pub fn log_sum(&mut self, table: &LogAdd<'_>, fork: &mut impl Fork<i32>) -> Result<i64, InferError> {
        self.state = State::Empty;
        let log_z = self.collect_logs(table, fork)?;
        self.state = State::Summed;
        Ok(log_z)
    }

    /// The second pass: every variable's `log P(x_v)` in units into `out` (variable after variable), after [`log_sum`](Self::log_sum) with the same
    /// table. What is impossible is far below everything (at most `-2²⁶`). Variables that no factor mentions get 0, which is no probability: their labels are equal.
    /// Uses up the messages.
    ///
    /// # Errors
    /// [`InferError::Shape`] without [`log_sum`](Self::log_sum), [`InferError::Memory`].
    pub fn log_marginals(
        &mut self,
        table: &LogAdd<'_>,
        fork: &mut impl Fork<i32>,
        out: &mut [i32],
    ) -> Result<(), InferError> {
        self.begin_marginals(out, |_| 0)?;
        // As in the first pass, one step writes loops and returns, the next one runs them.
        for c in (0..self.plan.clusters()).rev() {
            let Some(whole) = self.plan_whole(c)? else { continue };
            if whole == Whole::Belief {
                self.keep_belief(c, table, fork)?;
            }
            let mut i = 0;
            while let Some(v) = self.plan_home(c, whole, i)? {
                self.read_log(v, whole, table, fork, out)?;
                i += 1;
            }
            let mut i = 0;
            while let Some(child) = self.plan_child(c, whole, &mut i)? {
                self.tell(child, whole, table, fork)?;
                let mut i = 0;
                while let Some(v) = self.plan_home(child, Whole::Separator, i)? {
                    self.read_log(v, Whole::Separator, table, fork, out)?;
                    i += 1;
                }
                self.divide(child)?;
            }
        }
        Ok(())
    }

    /// Whether a clique's belief is stored, in which case its loops are written: if it is read more than once, because messages to its children then take the
    /// place of what it is made of. Nothing for a cluster of factors.
    #[inline(never)]
    fn plan_whole(&mut self, c: usize) -> Result<Option<Whole>, InferError> {
        if self.plan.is_potential(c) {
            return Ok(None);
        }
        let (cards, scope) = (self.graph.cards(), self.plan.scope(c));
        let size = size_of_scope(scope, cards).ok_or(InferError::Shape)?;
        if !self.plan.keeps_belief(c, size, cards) {
            return Ok(Some(Whole::Messages));
        }
        self.plan_onto(c, Whole::Messages, scope)?;
        Ok(Some(Whole::Belief))
    }

    /// The loops that bring something down to some of its variables.
    #[inline(never)]
    fn plan_onto(&mut self, c: usize, whole: Whole, onto: &[u32]) -> Result<(), InferError> {
        let (plan, cards) = (&self.plan, self.graph.cards());
        let order = if whole == Whole::Separator { plan.separator(c) } else { plan.scope(c) };
        let shape = Shape { cards, onto, lead: 0, order, block: plan.block_of(order, cards) };
        let (_, index) = plan.divide(self.memory.index).ok_or(InferError::Shape)?;
        let messages = Operands::Messages { clique: c, from_above: plan.has_parent(c) };
        (if whole == Whole::Messages { messages } else { Operands::Table }).write_loops(plan, &shape, index)
    }

    /// The loops onto marginal number `i` that is read off a clique's belief, or off that over the separator above it; its variable.
    #[inline(never)]
    fn plan_home(&mut self, c: usize, whole: Whole, i: usize) -> Result<Option<u32>, InferError> {
        let separator = whole == Whole::Separator;
        let homes = if separator { self.plan.separator_homes(c) } else { self.plan.homes(c) };
        let Some(&v) = homes.get(i) else { return Ok(None) };
        self.plan_onto(c, whole, core::slice::from_ref(&v))?;
        Ok(Some(v))
    }

    /// The next child that gets a message, from number `i` on, with the loops onto its separator.
    #[inline(never)]
    fn plan_child(&mut self, c: usize, whole: Whole, i: &mut usize) -> Result<Option<usize>, InferError> {
        while let Some(&child) = self.plan.inputs(c).get(*i) {
            *i += 1;
            if self.plan.receives(child as usize) {
                self.plan_onto(c, whole, self.plan.separator(child as usize))?;
                return Ok(Some(child as usize));
            }
        }
        Ok(None)
    }

    /// Stores a clique's belief, by the loops in index memory.
    #[inline(never)]
    fn keep_belief(
        &mut self,
        c: usize,
        table: &LogAdd<'_>,
        fork: &mut impl Fork<i32>,
    ) -> Result<(), InferError> {
        let size = size_of_scope(self.plan.scope(c), self.graph.cards()).ok_or(InferError::Shape)?;
        let belief = self.memory.belief.get_mut(..size).ok_or(InferError::Shape)?;
        let (_, index) = self.plan.divide(self.memory.index).ok_or(InferError::Shape)?;
        contract(&Loops::at(index), table, self.memory.messages, belief, fork, false)?;
        Ok(())
    }

    /// The belief over the separator to a child, by the loops in index memory.
    #[inline(never)]
    fn tell(
        &mut self,
        child: usize,
        whole: Whole,
        table: &LogAdd<'_>,
        fork: &mut impl Fork<i32>,
    ) -> Result<(), InferError> {
        let len = self.message(child)?.len();
        let separator = self.memory.separator.get_mut(..len).ok_or(InferError::Shape)?;
        let (_, index) = self.plan.divide(self.memory.index).ok_or(InferError::Shape)?;
        let inputs = if whole == Whole::Belief { &*self.memory.belief } else { &*self.memory.messages };
        contract(&Loops::at(index), table, inputs, separator, fork, false)?;
        Ok(())
    }

    /// Runs the loops in index memory onto the marginal of a variable.
    #[inline(never)]
    fn read_log(
        &mut self,
        v: u32,
        whole: Whole,
        table: &LogAdd<'_>,
        fork: &mut impl Fork<i32>,
        out: &mut [i32],
    ) -> Result<(), InferError> {
        let from = self.memory.starts.get(v as usize).map_or(0, |&at| at as usize);
        let card = self.graph.card(VarId(v));
        let marginal = out.get_mut(from..).and_then(|tail| tail.get_mut(..card)).ok_or(InferError::Shape)?;
        let (_, index) = self.plan.divide(self.memory.index).ok_or(InferError::Shape)?;
        let inputs = match whole {
            Whole::Messages => &*self.memory.messages,
            Whole::Belief => &*self.memory.belief,
            Whole::Separator => &*self.memory.separator,
        };
        contract(&Loops::at(index), table, inputs, marginal, fork, false)?;
        normalise(marginal, table);
        Ok(())
    }

    /// The message down, belief less message up, in the place of the message up.
    #[inline(never)]
    fn divide(&mut self, child: usize) -> Result<(), InferError> {
        let range = self.message(child)?;
        let belief = self.memory.separator.get(..range.len()).ok_or(InferError::Shape)?;
        let message = self.memory.messages.get_mut(range).ok_or(InferError::Shape)?;
        for (m, &b) in message.iter_mut().zip(belief) {
            // Of what is forbidden below nothing is asked from above.
            *m = if m.is_forbidden() || b.is_forbidden() { i32::NEG_INFINITY } else { b.wrapping_sub(*m) };
        }
        let top = Span::of(message, i32::NEG_INFINITY).high;
        message.iter_mut().for_each(|m| *m = m.behind(top));
        Ok(())
    }
}

/// Subtracts `log Σ e^x` from all.
#[inline(never)]
pub(in crate::infer) fn normalise(marginal: &mut [i32], table: &LogAdd<'_>) {
    let sum = table.sum(marginal);
    marginal.iter_mut().for_each(|x| *x = x.behind(sum).min(0));
}
