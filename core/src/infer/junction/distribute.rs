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
                *fact = divide(table, message, *fact, span, fork)?;
            }
        }
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
        let mut operands = Operands::new(scope);
        operands.push(cluster.scope, 0, table, cards)?;
        let block = self.plan.block_of(cluster.scope, cards);
        let shape = Shape { cards, lead: &[], order: cluster.scope, block };
        let loops = operands.loops(self.memory.index, shape)?;
        contract_any(&loops, log, operands.tables(), out, fork, false)?;
        to_probabilities(out, log);
        Ok(())
    }
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
    let size = size_of_scope(scope, cards).ok_or(InferError::Shape)?;
    let staging = plan.staging(scope, size, cards, homes);
    let len = staging.as_ref().map_or(0, |&(_, len)| len);
    let staged = spare.get_mut(..len).ok_or(InferError::Shape)?;
    if let Some((group, _)) = &staging {
        let operands = source.onto(group);
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
        if let Some((group, _)) = &staging {
            operands = Operands::new(&single);
            operands.push(group, 0, staged, cards)?;
            order = group;
        }
        let shape = Shape { cards, lead: &[], order, block: plan.block_of(order, cards) };
        let loops = operands.loops(index, shape)?;
        contract_any(&loops, log, operands.tables(), marginal, fork, false)?;
        to_probabilities(marginal, log);
    }
    Ok(())
}
