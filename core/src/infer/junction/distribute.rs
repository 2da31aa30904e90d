//! The second pass: messages down, and marginals read off the smallest table that has them.

use super::operands::Operands;
use super::separator::{Fact, divide};
use super::{Junction, Memory, State};
use crate::error::{InferError, need};
use crate::ids::{FactorId, VarId};
use crate::infer::contract::contract;
use crate::infer::fork::{Fork, Span};
use crate::infer::loops::{Loops, Shape, size_of_scope};
use crate::infer::semiring::{Linear, LogSum};
use crate::math::{Real, softmax};
use crate::score::Score;

/// Where a table lies, to be contracted or to be written.
#[derive(Clone, Copy, Debug, Default)]
enum Place {
    /// Not as a table: it is the product of a clique's messages.
    #[default]
    Messages,
    /// The belief of a clique, from the beginning of its memory.
    Belief,
    /// Separator memory, from here on.
    Separator(usize),
}

/// Where the second pass is. It lies with the run, not on the stack: steps leave it to one another.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turn<T> {
    /// The clique whose turn it is, and where its belief lies.
    clique: usize,
    belief: Place,
    /// Whether its inputs, and all that is made of them, are logarithms.
    log: bool,
    /// The child whose turn it is, if it is not the clique's own.
    child: Option<usize>,
    /// What is to be contracted, onto what: the loops are in index memory.
    from: Place,
    to: Place,
    len: usize,
    /// Largest and smallest entry of a separator's belief.
    high: T,
    low: T,
    /// Variables of the table in between, if marginals are read in two steps, and where in separator memory that lies.
    group: Option<usize>,
    free: usize,
}

impl<T: Score> Junction<'_, '_, T> {
    /// Checks the memory, writes down where each variable's marginal begins, and fills the output with what is right for variables that no factor mentions; the
    /// others are overwritten.
    #[inline(never)]
    pub(super) fn begin_marginals(
        &mut self,
        out: &mut [T],
        alone: impl Fn(u32) -> T,
    ) -> Result<(), InferError> {
        if self.state != State::Summed {
            return Err(InferError::Shape);
        }
        let cards = self.graph.cards();
        let needed = cards.iter().fold(0usize, |n, &c| n.saturating_add(c as usize));
        need(needed, out.len())?;
        need(self.plan.belief_len(), self.memory.belief.len())?;
        need(self.plan.separator_len(), self.memory.separator.len())?;
        self.state = State::Empty;
        let (mut rest, mut at) = (out, 0u32);
        for (&card, start) in cards.iter().zip(self.memory.starts.iter_mut()) {
            let Some((block, tail)) = rest.split_at_mut_checked(card as usize) else { break };
            block.fill(alone(card));
            *start = at;
            at = at.saturating_add(card);
            rest = tail;
        }
        Ok(())
    }
}

impl<'a, T: Real> Junction<'a, '_, T> {
    /// The second pass: writes every variable's marginal to `out` (variable after variable), after
    /// [`sum`](Self::sum). Uses up the messages: sampling needs `sum` again.
    pub fn marginals(&mut self, fork: &mut impl Fork<T>, out: &mut [T]) -> Result<(), InferError> {
        self.begin_marginals(out, |card| T::one() / T::from_f64(f64::from(card)))?;
        for c in (0..self.plan.clusters()).rev() {
            if self.turn_to_clique(c)? {
                // Stored only if it is read more than once; otherwise the inputs are contracted onto the one thing that is wanted.
                if self.plan_belief()? {
                    self.contract(fork)?;
                    self.turn.belief = Place::Belief;
                }
                self.read(fork, out)?;
                let mut i = 0;
                while self.turn_to_child(&mut i)? {
                    self.contract(fork)?;
                    self.read(fork, out)?;
                    self.leave_message(fork)?;
                }
            }
        }
        self.state = State::Distributed;
        Ok(())
    }

    /// Turns to a clique: whether anybody wants something of its belief.
    #[inline(never)]
    fn turn_to_clique(&mut self, c: usize) -> Result<bool, InferError> {
        let heard = |&child: &u32| self.plan.receives(child as usize);
        let wanted = !self.plan.homes(c).is_empty() || self.plan.inputs(c).iter().any(heard);
        if self.plan.is_potential(c) || !wanted {
            return Ok(false);
        }
        let log = !self.make_alike(c, self.plan.has_parent(c))?;
        self.turn = Turn { clique: c, log, ..Turn::default() };
        Ok(true)
    }

    /// The loops of the clique's belief, if it is to be stored.
    #[inline(never)]
    fn plan_belief(&mut self) -> Result<bool, InferError> {
        let (cards, scope) = (self.graph.cards(), self.plan.scope(self.turn.clique));
        let size = size_of_scope(scope, cards).ok_or(InferError::Shape)?;
        if !self.plan.keeps_belief(self.turn.clique, size, cards) {
            return Ok(false);
        }
        (self.turn.from, self.turn.to, self.turn.len) = (Place::Messages, Place::Belief, size);
        let block = self.plan.block_of(scope, cards);
        let shape = Shape { cards, onto: scope, lead: scope.len() - block, order: scope, block };
        self.write_loops(&shape)?;
        Ok(true)
    }

    /// Turns to the clique's next child that gets a message, from number `i` on: the loops of the belief over the separator to it.
    #[inline(never)]
    fn turn_to_child(&mut self, i: &mut usize) -> Result<bool, InferError> {
        let child = loop {
            let Some(&child) = self.plan.inputs(self.turn.clique).get(*i) else { return Ok(false) };
            *i += 1;
            if self.plan.receives(child as usize) {
                break child as usize;
            }
        };
        let (cards, scope) = (self.graph.cards(), self.plan.scope(self.turn.clique));
        let onto = self.plan.separator(child);
        let len = size_of_scope(onto, cards).ok_or(InferError::Shape)?;
        (self.turn.from, self.turn.to, self.turn.len) = (self.turn.belief, Place::Separator(0), len);
        (self.turn.child, self.turn.free) = (Some(child), len);
        let block = self.plan.block_of(scope, cards);
        let inner = scope.get(scope.len() - block..).ok_or(InferError::Shape)?;
        let lead = onto.iter().take_while(|v| !inner.contains(v)).count();
        self.write_loops(&Shape { cards, onto, lead, order: scope, block })?;
        Ok(true)
    }

    /// The loops from what `turn.from` is.
    #[inline(never)]
    fn write_loops(&mut self, shape: &Shape<'_>) -> Result<(), InferError> {
        let operands = self.operands();
        let (_, index) = self.plan.divide(self.memory.index).ok_or(InferError::Shape)?;
        operands.write_loops(&self.plan, shape, index)
    }

    /// What `turn.from` is made of.
    fn operands(&self) -> Operands {
        match self.turn.from {
            Place::Messages => {
                let from_above = self.plan.has_parent(self.turn.clique);
                Operands::Messages { clique: self.turn.clique, from_above }
            }
            _ => Operands::Table,
        }
    }

    /// Runs the loops in index memory.
    #[inline(never)]
    fn contract(&mut self, fork: &mut impl Fork<T>) -> Result<(), InferError> {
        let Memory { messages, belief, separator, index, .. } = &mut self.memory;
        let (inputs, table): (&[T], &mut [T]) = match (self.turn.from, self.turn.to) {
            (Place::Separator(_), Place::Separator(at)) => {
                let (inputs, table) = separator.split_at_mut_checked(at).ok_or(InferError::Shape)?;
                (inputs, table)
            }
            (Place::Belief, Place::Separator(at)) => {
                (belief, separator.get_mut(at..).ok_or(InferError::Shape)?)
            }
            (_, Place::Separator(at)) => (messages, separator.get_mut(at..).ok_or(InferError::Shape)?),
            _ => (messages, belief),
        };
        let table = table.get_mut(..self.turn.len).ok_or(InferError::Shape)?;
        let (_, index) = self.plan.divide(index).ok_or(InferError::Shape)?;
        // Only what goes down to a child is divided, which needs to know its range.
        let measured = self.turn.child.is_some() && matches!(self.turn.to, Place::Separator(0));
        let span = contract_any(&Loops::at(index), self.turn.log, inputs, table, fork, measured)?;
        if measured {
            (self.turn.high, self.turn.low) = (span.high, span.low);
        }
        Ok(())
    }

    /// The child's message down, from the belief in separator memory.
    #[inline(never)]
    fn leave_message(&mut self, fork: &mut impl Fork<T>) -> Result<(), InferError> {
        let Turn { log, high, low, .. } = self.turn;
        let child = self.turn.child.ok_or(InferError::Shape)?;
        let range = self.message(child)?;
        let table = self.memory.separator.get_mut(..range.len()).ok_or(InferError::Shape)?;
        let message = self.memory.messages.get_mut(range).ok_or(InferError::Shape)?;
        let fact = self.memory.facts.get_mut(child).ok_or(InferError::Shape)?;
        if self.plan.is_potential(child) {
            // Nobody is below: the belief itself is what is wanted.
            for (m, &t) in message.iter_mut().zip(table.iter()) {
                *m = t;
            }
            *fact = Fact { log, ..Fact::default() };
        } else {
            *fact = divide(table, message, fact, Span { high, low }, fork)?;
        }
        Ok(())
    }

    /// Writes the marginals that are read off the belief of the clique, or of the separator to its child, to their places in `out`.
    #[inline(always)]
    fn read(&mut self, fork: &mut impl Fork<T>, out: &mut [T]) -> Result<(), InferError> {
        if self.plan_group()? {
            self.contract(fork)?;
        }
        let mut i = 0;
        while let Some(v) = self.plan_marginal(i)? {
            self.read_one(v, fork, out)?;
            i += 1;
        }
        Ok(())
    }

    /// The table that marginals are read off: its variables, and those whose marginals they are.
    fn lists(&self) -> (&'a [u32], &'a [u32]) {
        match self.turn.child {
            Some(child) => (self.plan.separator(child), self.plan.separator_homes(child)),
            None => (self.plan.scope(self.turn.clique), self.plan.homes(self.turn.clique)),
        }
    }

    /// A large table is brought down to its marginals in two steps: the loops of the first, onto separator memory that is free; the
    /// variables of the table in between are left in index memory. `false` where one step is as good.
    #[inline(never)]
    fn plan_group(&mut self) -> Result<bool, InferError> {
        self.turn.from = if self.turn.child.is_some() { Place::Separator(0) } else { self.turn.belief };
        self.turn.group = None;
        let (plan, cards, operands) = (&self.plan, self.graph.cards(), self.operands());
        let (scope, homes) = self.lists();
        let size = size_of_scope(scope, cards).ok_or(InferError::Shape)?;
        let Some(len) = plan.staging(scope, size, cards, homes) else { return Ok(false) };
        let (group, index) = plan.divide(self.memory.index).ok_or(InferError::Shape)?;
        let mut used = 0;
        for (slot, &v) in group.iter_mut().zip(plan.staged(scope, cards, homes)) {
            *slot = v;
            used += 1;
        }
        let onto = group.get(..used).ok_or(InferError::Shape)?;
        let block = plan.block_of(scope, cards);
        let shape = Shape { cards, onto, lead: scope.len() - block, order: scope, block };
        operands.write_loops(plan, &shape, index)?;
        (self.turn.to, self.turn.len, self.turn.group) = (Place::Separator(self.turn.free), len, Some(used));
        Ok(true)
    }

    /// The loops of marginal number `i`, from the table itself or from the one in between; its variable.
    #[inline(never)]
    fn plan_marginal(&mut self, i: usize) -> Result<Option<u32>, InferError> {
        let (scope, homes) = self.lists();
        let Some(&v) = homes.get(i) else { return Ok(None) };
        if self.turn.group.is_some() {
            self.turn.from = Place::Separator(self.turn.free);
        }
        let (plan, cards, operands) = (&self.plan, self.graph.cards(), self.operands());
        let (list, index) = plan.divide(self.memory.index).ok_or(InferError::Shape)?;
        let order = match self.turn.group {
            Some(used) => list.get(..used).ok_or(InferError::Shape)?,
            None => scope,
        };
        let onto = core::slice::from_ref(&v);
        let shape = Shape { cards, onto, lead: 0, order, block: plan.block_of(order, cards) };
        operands.write_loops(plan, &shape, index)?;
        Ok(Some(v))
    }

    /// Runs the loops in index memory onto the marginal of a variable.
    #[inline(never)]
    fn read_one(&mut self, v: u32, fork: &mut impl Fork<T>, out: &mut [T]) -> Result<(), InferError> {
        let Memory { messages, belief, separator, index, starts, .. } = &mut self.memory;
        let at = starts.get(v as usize).map_or(0, |&at| at as usize);
        let marginal = out.get_mut(at..at + self.graph.card(VarId(v))).ok_or(InferError::Shape)?;
        let inputs = match self.turn.from {
            Place::Messages => &**messages,
            Place::Belief => &**belief,
            Place::Separator(at) => separator.get(at..).ok_or(InferError::Shape)?,
        };
        let (_, index) = self.plan.divide(index).ok_or(InferError::Shape)?;
        contract_any(&Loops::at(index), self.turn.log, inputs, marginal, fork, false)?;
        to_probabilities(marginal, self.turn.log);
        Ok(())
    }

    /// `P(x_{C_k})` for a factor in a potential that keeps its belief, after
    /// [`marginals`](Self::marginals), into `out` with the layout of the factor's table. Looks through the plan for the
    /// potential; [`factor_marginal_in`](Self::factor_marginal_in) is for those who know it.
    pub fn factor_marginal(
        &mut self,
        k: FactorId,
        fork: &mut impl Fork<T>,
        out: &mut [T],
    ) -> Result<(), InferError> {
        let holds = |&c: &usize| self.plan.is_potential(c) && self.plan.inputs(c).contains(&k.0);
        let holder = (0..self.plan.clusters()).find(holds).ok_or(InferError::Shape)?;
        self.factor_marginal_in(holder, k, fork, out)
    }

    /// [`factor_marginal`](Self::factor_marginal) from the potential cluster that has the factor: time in proportion to its table.
    pub fn factor_marginal_in(
        &mut self,
        holder: usize,
        k: FactorId,
        fork: &mut impl Fork<T>,
        out: &mut [T],
    ) -> Result<(), InferError> {
        if holder >= self.plan.clusters() {
            return Err(InferError::Shape);
        }
        self.plan_factor(holder, k)?;
        let (needed, given) = (self.graph.table(k).len(), out.len());
        let out = out.get_mut(..needed).ok_or(InferError::Memory { needed, given })?;
        let log = self.fact(holder)?.log;
        let table = self.memory.messages.get(self.plan.message_at(holder)..).ok_or(InferError::Shape)?;
        let (_, index) = self.plan.divide(self.memory.index).ok_or(InferError::Shape)?;
        contract_any(&Loops::at(index), log, table, out, fork, false)?;
        to_probabilities(out, log);
        Ok(())
    }

    /// The loops of a factor's marginal.
    #[inline(never)]
    fn plan_factor(&mut self, holder: usize, k: FactorId) -> Result<(), InferError> {
        let (plan, cards) = (&self.plan, self.graph.cards());
        let keeps = plan.is_potential(holder) && plan.receives(holder) && plan.inputs(holder).contains(&k.0);
        if self.state != State::Distributed || !keeps {
            return Err(InferError::Shape);
        }
        let order = plan.scope(holder);
        let shape =
            Shape { cards, onto: self.graph.scope(k), lead: 0, order, block: plan.block_of(order, cards) };
        let (_, index) = plan.divide(self.memory.index).ok_or(InferError::Shape)?;
        Operands::Table.write_loops(plan, &shape, index)
    }
}

fn contract_any<T: Real>(
    loops: &Loops<'_>,
    log: bool,
    inputs: &[T],
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
