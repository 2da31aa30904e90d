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
use crate::error::{InferError, need};
use crate::infer::contract::{Loops, Shape, contract, size_of_scope};
use crate::infer::fork::{Fork, Span};
use crate::log_add::LogAdd;
use crate::score::Score;

impl Junction<'_, '_, i32> {
    /// The first pass with sums: `log Z` in units, of the variables that some factor mentions; errors as in [`maximise`](Self::maximise).
    pub fn log_sum(&mut self, table: LogAdd<'_>, fork: &mut impl Fork<i32>) -> Result<i64, InferError> {
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
        table: LogAdd<'_>,
        fork: &mut impl Fork<i32>,
        out: &mut [i32],
    ) -> Result<(), InferError> {
        self.begin_log_marginals(out)?;
        for c in (0..self.plan.clusters()).rev() {
            if self.plan.is_potential(c) {
                continue;
            }
            let kept = self.keep_belief(c, table, fork)?;
            for &v in self.plan.homes(c) {
                self.plan_onto(c, kept, core::slice::from_ref(&v))?;
                self.read_log(v, kept, table, fork, out)?;
            }
            for &child in self.plan.inputs(c) {
                if self.plan.receives(child as usize) {
                    self.plan_onto(c, kept, self.plan.separator(child as usize))?;
                    self.tell(child as usize, kept, table, fork, out)?;
                }
            }
        }
        Ok(())
    }

    /// A clique's belief, stored if it is read more than once: then messages to its children take the place of what it is made of.
    #[inline(never)]
    fn keep_belief(
        &mut self,
        c: usize,
        table: LogAdd<'_>,
        fork: &mut impl Fork<i32>,
    ) -> Result<bool, InferError> {
        let (cards, scope) = (self.graph.cards(), self.plan.scope(c));
        let size = size_of_scope(scope, cards).ok_or(InferError::Shape)?;
        if !self.plan.keeps_belief(c, size, cards) {
            return Ok(false);
        }
        self.plan_onto(c, false, scope)?;
        let belief = self.memory.belief.get_mut(..size).ok_or(InferError::Shape)?;
        let (_, index) = self.plan.divide(self.memory.index).ok_or(InferError::Shape)?;
        contract(&Loops::at(index), table, self.memory.messages, belief, fork, false)?;
        Ok(true)
    }

    /// Checks the memory and writes down where each variable's marginal begins.
    #[inline(never)]
    fn begin_log_marginals(&mut self, out: &mut [i32]) -> Result<(), InferError> {
        if self.state != State::Summed {
            return Err(InferError::Shape);
        }
        let cards = self.graph.cards();
        let needed = cards.iter().fold(0usize, |n, &c| n.saturating_add(c as usize));
        need(needed, out.len())?;
        need(self.plan.belief_len(), self.memory.belief.len())?;
        need(self.plan.separator_len(), self.memory.separator.len())?;
        self.state = State::Empty;
        out.iter_mut().take(needed).for_each(|o| *o = 0);
        let mut at = 0u32;
        for (&card, start) in cards.iter().zip(self.memory.starts.iter_mut()) {
            *start = at;
            at = at.saturating_add(card);
        }
        Ok(())
    }

    /// The loops that bring a clique's belief, which is stored or not, down to some of its variables.
    #[inline(never)]
    fn plan_onto(&mut self, c: usize, kept: bool, onto: &[u32]) -> Result<(), InferError> {
        let (plan, cards, order) = (&self.plan, self.graph.cards(), self.plan.scope(c));
        let shape = Shape { cards, onto, lead: 0, order, block: plan.block_of(order, cards) };
        let (_, index) = plan.divide(self.memory.index).ok_or(InferError::Shape)?;
        let messages = Operands::Messages { clique: c, from_above: plan.has_parent(c) };
        (if kept { Operands::Table } else { messages }).write_loops(plan, &shape, index)
    }

    /// Runs the loops in index memory onto the marginal of a variable.
    #[inline(never)]
    fn read_log(
        &mut self,
        v: u32,
        kept: bool,
        table: LogAdd<'_>,
        fork: &mut impl Fork<i32>,
        out: &mut [i32],
    ) -> Result<(), InferError> {
        let marginal = self.marginal_of(v, out)?;
        let (_, index) = self.plan.divide(self.memory.index).ok_or(InferError::Shape)?;
        let inputs = if kept { &*self.memory.belief } else { &*self.memory.messages };
        contract(&Loops::at(index), table, inputs, marginal, fork, false)?;
        normalise(marginal, table);
        Ok(())
    }

    /// Where a variable's marginal lies.
    fn marginal_of<'o>(&self, v: u32, out: &'o mut [i32]) -> Result<&'o mut [i32], InferError> {
        let from = self.memory.starts.get(v as usize).map_or(0, |&at| at as usize);
        let card = self.graph.cards().get(v as usize).map_or(0, |&card| card as usize);
        out.get_mut(from..).and_then(|tail| tail.get_mut(..card)).ok_or(InferError::Shape)
    }

    /// The belief over the separator to a child, by the loops in index memory: what is read off it, and then, less what the child has said, the child's
    /// message from above.
    #[inline(never)]
    fn tell(
        &mut self,
        child: usize,
        kept: bool,
        table: LogAdd<'_>,
        fork: &mut impl Fork<i32>,
        out: &mut [i32],
    ) -> Result<(), InferError> {
        let order = self.plan.separator(child);
        let len = size_of_scope(order, self.graph.cards()).ok_or(InferError::Shape)?;
        let separator = self.memory.separator.get_mut(..len).ok_or(InferError::Shape)?;
        let (_, index) = self.plan.divide(self.memory.index).ok_or(InferError::Shape)?;
        let inputs = if kept { &*self.memory.belief } else { &*self.memory.messages };
        contract(&Loops::at(index), table, inputs, separator, fork, false)?;
        for &v in self.plan.separator_homes(child) {
            self.read_separator(v, order, table, fork, out)?;
        }
        self.divide(child, len)
    }

    /// A marginal from the belief over a separator, which is in separator memory.
    #[inline(never)]
    fn read_separator(
        &mut self,
        v: u32,
        order: &[u32],
        table: LogAdd<'_>,
        fork: &mut impl Fork<i32>,
        out: &mut [i32],
    ) -> Result<(), InferError> {
        let marginal = self.marginal_of(v, out)?;
        let (plan, cards) = (&self.plan, self.graph.cards());
        let onto = core::slice::from_ref(&v);
        let shape = Shape { cards, onto, lead: 0, order, block: plan.block_of(order, cards) };
        let (_, index) = plan.divide(self.memory.index).ok_or(InferError::Shape)?;
        Operands::Table.write_loops(plan, &shape, index)?;
        contract(&Loops::at(index), table, self.memory.separator, marginal, fork, false)?;
        normalise(marginal, table);
        Ok(())
    }

    /// The message down, belief less message up, in the place of the message up.
    #[inline(never)]
    fn divide(&mut self, child: usize, len: usize) -> Result<(), InferError> {
        let range = self.message(child)?;
        let belief = self.memory.separator.get(..len).ok_or(InferError::Shape)?;
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
fn normalise(marginal: &mut [i32], table: LogAdd<'_>) {
    let sum = marginal.iter().fold(i32::NEG_INFINITY, |sum, &x| table.add(sum, x));
    marginal.iter_mut().for_each(|x| *x = x.behind(sum).min(0));
}
