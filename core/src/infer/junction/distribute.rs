//! The second pass: messages down, and marginals read off the smallest table that has them.

use super::operands::Operands;
use super::separator::{Fact, divide};
use super::{Junction, Memory, State};
use crate::error::{InferError, need};
use crate::ids::FactorId;
use crate::infer::contract::{LOG_SUM, Linear, Loops, Shape, contract, size_of_scope};
use crate::infer::fork::{Fork, Span};
use crate::infer::plan::{Cluster, Plan};
use crate::math::{Real, softmax};

impl<T: Real> Junction<'_, '_, T> {
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
            if !self.plan.is_potential(c) {
                self.send_down(c, fork, out)?;
            }
        }
        self.state = State::Distributed;
        Ok(())
    }

    /// One clique: the marginals read off its belief, and the messages to its children. The belief is stored only if it is
    /// read more than once; otherwise the inputs are contracted onto the one thing that is wanted.
    #[inline(never)]
    fn send_down(&mut self, c: usize, fork: &mut impl Fork<T>, out: &mut [T]) -> Result<(), InferError> {
        let cluster = &self.plan.cluster(c);
        let receives = |&child: &u32| self.plan.receives(child as usize);
        if cluster.homes.is_empty() && !cluster.inputs.iter().any(receives) {
            return Ok(());
        }
        let own = cluster.parent.map(|_| c);
        let log = !self.make_alike(cluster, own)?;
        let size = size_of_scope(cluster.scope, self.graph.cards()).ok_or(InferError::Shape)?;
        let keeps = self.plan.keeps_belief(cluster, size, self.graph.cards());
        if keeps {
            self.make_belief(cluster, size, log, fork)?;
        }
        let belief = Belief { cluster, keeps, log };
        self.read_belief(belief, fork, out)?;
        for &child in cluster.inputs {
            if self.plan.receives(child as usize) {
                self.send_child(belief, child as usize, fork, out)?;
            }
        }
        Ok(())
    }

    /// Stores a clique's belief.
    #[inline(never)]
    fn make_belief(
        &mut self,
        cluster: &Cluster<'_>,
        size: usize,
        log: bool,
        fork: &mut impl Fork<T>,
    ) -> Result<(), InferError> {
        let (cards, scope) = (self.graph.cards(), cluster.scope);
        let Memory { messages, belief, index, .. } = &mut self.memory;
        let table = belief.get_mut(..size).ok_or(InferError::Shape)?;
        let block = self.plan.block_of(scope, cards);
        let lead = scope.get(..scope.len() - block).ok_or(InferError::Shape)?;
        let operands = Operands::Messages(&self.plan, cluster, cluster.parent.is_some());
        let loops = operands.onto(scope, index, &Shape { cards, lead, order: scope, block })?;
        contract_any(&loops, log, messages, table, fork, false)?;
        Ok(())
    }

    /// The marginals that are read off a clique's belief.
    #[inline(never)]
    fn read_belief(
        &mut self,
        Belief { cluster, keeps, log }: Belief<'_, '_>,
        fork: &mut impl Fork<T>,
        out: &mut [T],
    ) -> Result<(), InferError> {
        let Memory { messages, belief, separator, index, starts, .. } = &mut self.memory;
        let (operands, inputs) = match keeps {
            true => (Operands::Table(cluster.scope), &**belief),
            false => (Operands::Messages(&self.plan, cluster, cluster.parent.is_some()), &**messages),
        };
        let reader = Reader {
            plan: &self.plan,
            cards: self.graph.cards(),
            operands,
            scope: cluster.scope,
            homes: cluster.homes,
            log,
            starts,
        };
        reader.read(inputs, separator, index, fork, out)
    }

    /// A child's message down, and the marginals that are read off its separator's belief.
    #[inline(never)]
    fn send_child(
        &mut self,
        belief: Belief<'_, '_>,
        child: usize,
        fork: &mut impl Fork<T>,
        out: &mut [T],
    ) -> Result<(), InferError> {
        let below = &self.plan.cluster(child);
        let len = size_of_scope(below.separator, self.graph.cards()).ok_or(InferError::Shape)?;
        let span = self.make_separator(belief, below.separator, len, fork)?;
        let Memory { messages, facts, separator, index, starts, .. } = &mut self.memory;
        let (table, spare) = separator.split_at_mut_checked(len).ok_or(InferError::Shape)?;
        let log = belief.log;
        let reader = Reader {
            plan: &self.plan,
            cards: self.graph.cards(),
            operands: Operands::Table(below.separator),
            scope: below.separator,
            homes: below.separator_homes,
            log,
            starts,
        };
        reader.read(table, spare, index, fork, out)?;
        let range = below.message_at..below.message_at + len;
        let message = messages.get_mut(range).ok_or(InferError::Shape)?;
        let fact = facts.get_mut(child).ok_or(InferError::Shape)?;
        if below.potential {
            // Nobody is below: the belief itself is what is wanted.
            for (m, &t) in message.iter_mut().zip(table.iter()) {
                *m = t;
            }
            *fact = Fact { log, ..Fact::default() };
        } else {
            *fact = divide(table, message, fact, span, fork)?;
        }
        Ok(())
    }

    /// A clique's belief over one of its separators, into separator memory.
    #[inline(never)]
    fn make_separator(
        &mut self,
        Belief { cluster, keeps, log }: Belief<'_, '_>,
        onto: &[u32],
        len: usize,
        fork: &mut impl Fork<T>,
    ) -> Result<Span<T>, InferError> {
        let cards = self.graph.cards();
        let Memory { messages, belief, separator, index, .. } = &mut self.memory;
        let table = separator.get_mut(..len).ok_or(InferError::Shape)?;
        let (operands, inputs) = match keeps {
            true => (Operands::Table(cluster.scope), &**belief),
            false => (Operands::Messages(&self.plan, cluster, cluster.parent.is_some()), &**messages),
        };
        let block = self.plan.block_of(cluster.scope, cards);
        let inner = cluster.scope.get(cluster.scope.len() - block..).ok_or(InferError::Shape)?;
        let ahead = onto.iter().take_while(|v| !inner.contains(v)).count();
        let lead = onto.get(..ahead).ok_or(InferError::Shape)?;
        let loops = operands.onto(onto, index, &Shape { cards, lead, order: cluster.scope, block })?;
        contract_any(&loops, log, inputs, table, fork, true)
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
        let holds = |&c: &usize| {
            let cluster = self.plan.cluster(c);
            cluster.potential && cluster.inputs.contains(&k.0)
        };
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
        let cluster = self.plan.cluster(holder);
        let keeps = cluster.potential && cluster.receives && cluster.inputs.contains(&k.0);
        if self.state != State::Distributed || !keeps {
            return Err(InferError::Shape);
        }
        let cards = self.graph.cards();
        let scope = self.graph.scope(k);
        let given = out.len();
        let needed = self.graph.table(k).len();
        let out = out.get_mut(..needed).ok_or(InferError::Memory { needed, given })?;
        let log = self.fact(holder)?.log;
        let range = cluster.message_at..;
        let table = self.memory.messages.get(range).ok_or(InferError::Shape)?;
        let block = self.plan.block_of(cluster.scope, cards);
        let shape = Shape { cards, lead: &[], order: cluster.scope, block };
        let loops = Operands::Table(cluster.scope).onto(scope, self.memory.index, &shape)?;
        contract_any(&loops, log, table, out, fork, false)?;
        to_probabilities(out, log);
        Ok(())
    }
}

/// A clique's belief: stored, or still the product of its messages; in logarithms or not.
#[derive(Clone, Copy)]
struct Belief<'x, 'p> {
    cluster: &'x Cluster<'p>,
    keeps: bool,
    log: bool,
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
        contract(loops, LOG_SUM, inputs, out, fork, measured)
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

/// Reads marginals off a belief, which is the product of `operands`, over the variables `scope`.
struct Reader<'x, 'p> {
    plan: &'x Plan<'p>,
    cards: &'x [u32],
    operands: Operands<'x, 'p>,
    scope: &'x [u32],
    homes: &'x [u32],
    log: bool,
    /// Where each variable's marginal begins in the output.
    starts: &'x [u32],
}

impl Reader<'_, '_> {
    /// Writes the marginals of `homes` to their places in `out`; `inputs` is the memory of the operands.
    #[inline(never)]
    fn read<T: Real>(
        &self,
        inputs: &[T],
        spare: &mut [T],
        index: &mut [u32],
        fork: &mut impl Fork<T>,
        out: &mut [T],
    ) -> Result<(), InferError> {
        if self.homes.is_empty() {
            return Ok(());
        }
        let (cards, scope) = (self.cards, self.scope);
        let size = size_of_scope(scope, cards).ok_or(InferError::Shape)?;
        let Some(len) = self.plan.staging(scope, size, cards, self.homes) else {
            return self.each(self.operands, scope, inputs, index, fork, out);
        };
        let (group, index) = self.plan.divide(index).ok_or(InferError::Shape)?;
        let mut used = 0;
        for (slot, &v) in group.iter_mut().zip(self.plan.staged(scope, cards, self.homes)) {
            *slot = v;
            used += 1;
        }
        let group = group.get(..used).ok_or(InferError::Shape)?;
        let staged = spare.get_mut(..len).ok_or(InferError::Shape)?;
        let block = self.plan.block_of(scope, cards);
        let lead = scope.get(..scope.len() - block).ok_or(InferError::Shape)?;
        let loops = self.operands.onto(group, index, &Shape { cards, lead, order: scope, block })?;
        contract_any(&loops, self.log, inputs, staged, fork, false)?;
        self.each(Operands::Table(group), group, staged, index, fork, out)
    }

    /// The same from a table, or a product of tables, over the variables `order`.
    #[inline(never)]
    fn each<T: Real>(
        &self,
        operands: Operands<'_, '_>,
        order: &[u32],
        inputs: &[T],
        index: &mut [u32],
        fork: &mut impl Fork<T>,
        out: &mut [T],
    ) -> Result<(), InferError> {
        let cards = self.cards;
        let shape = Shape { cards, lead: &[], order, block: self.plan.block_of(order, cards) };
        for v in self.homes {
            let at = self.starts.get(*v as usize).map_or(0, |&at| at as usize);
            let card = cards.get(*v as usize).map_or(0, |&c| c as usize);
            let marginal = out.get_mut(at..at + card).ok_or(InferError::Shape)?;
            let loops = operands.onto(core::slice::from_ref(v), index, &shape)?;
            contract_any(&loops, self.log, inputs, marginal, fork, false)?;
            to_probabilities(marginal, self.log);
        }
        Ok(())
    }
}
