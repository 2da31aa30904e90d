//! From the roots down: the best configuration, or one drawn at random, without back pointers.
//!
//! When a clique's turn comes, the labels of its separator are known. The configurations of its other variables are run
//! through again, each with the product of the clique's inputs as its weight.

use super::operands::Operands;
use super::{Junction, State};
use crate::error::{InferError, need};
use crate::infer::loops::{Loops, Shape};
use crate::math::{Real, log_add_exp};
use crate::score::Score;
use rand_core::Rng;

impl<'a, T: Score> Junction<'a, '_, T> {
    /// A configuration of largest potential, after [`maximise`](Self::maximise).
    pub fn decode(&mut self, labels: &mut [u32]) -> Result<(), InferError> {
        if self.state != State::Maximised {
            return Err(InferError::Shape);
        }
        need(self.graph.variables(), labels.len())?;
        labels.fill(0);
        self.descend(labels, |rest| {
            let mut best = (T::NEG_INFINITY, 0);
            rest.each_sum(|number, score| {
                if best.0 < score {
                    best = (score, number);
                }
            });
            best.1
        })
    }

    /// For each clique, `choose` picks one configuration of the variables that are not in its separator.
    fn descend(
        &mut self,
        labels: &mut [u32],
        mut choose: impl FnMut(&Rest<'_, T>) -> usize,
    ) -> Result<(), InferError> {
        for c in (0..self.plan.clusters()).rev() {
            if !self.plan.is_potential(c) {
                self.plan_rest(c)?;
                self.descend_one(c, labels, &mut choose)?;
            }
        }
        Ok(())
    }

    /// One clique, whose loops are in index memory.
    #[inline(never)]
    fn descend_one(
        &mut self,
        c: usize,
        labels: &mut [u32],
        choose: &mut impl FnMut(&Rest<'_, T>) -> usize,
    ) -> Result<(), InferError> {
        let (cards, held) = (self.graph.cards(), self.held(c));
        // The inputs of a clique are all of one form since the first pass.
        let first = *self.plan.inputs(c).first().ok_or(InferError::Shape)?;
        let log = self.fact(first as usize)?.log;
        let (order, index) = self.plan.divide(self.memory.index).ok_or(InferError::Shape)?;
        let rest = Rest { loops: Loops::at(index), held, labels, messages: self.memory.messages, log };
        let mut number = choose(&rest);
        let order = order.get(held.len()..self.plan.scope(c).len()).ok_or(InferError::Shape)?;
        for &v in order.iter().rev() {
            let card = cards.get(v as usize).copied().unwrap_or(1) as usize;
            let quotient = number.checked_div(card).unwrap_or(0);
            if let Some(label) = labels.get_mut(v as usize) {
                *label = (number - quotient * card) as u32;
            }
            number = quotient;
        }
        Ok(())
    }

    /// The variables of a clique whose labels are known when its turn comes.
    fn held(&self, c: usize) -> &'a [u32] {
        if self.plan.has_parent(c) { self.plan.separator(c) } else { &[] }
    }

    /// The loops over a clique's other variables, and all of them in that order, in index memory.
    #[inline(never)]
    fn plan_rest(&mut self, c: usize) -> Result<(), InferError> {
        let held = self.held(c);
        let (plan, cards, scope) = (&self.plan, self.graph.cards(), self.plan.scope(c));
        let (order, index) = plan.divide(self.memory.index).ok_or(InferError::Shape)?;
        let order = order.get_mut(..scope.len()).ok_or(InferError::Shape)?;
        let free = scope.iter().filter(|v| !held.contains(v));
        for (slot, &v) in order.iter_mut().zip(held.iter().chain(free)) {
            *slot = v;
        }
        let shape = Shape { cards, onto: held, lead: held.len(), order, block: 0 };
        Operands::Messages { clique: c, from_above: false }.write_loops(plan, &shape, index)
    }
}

impl<T: Real> Junction<'_, '_, T> {
    /// A configuration drawn from `P(x)`, after [`sum`](Self::sum). Can be called any number of times.
    pub fn sample(&mut self, rng: &mut impl Rng, labels: &mut [u32]) -> Result<(), InferError> {
        if self.state != State::Summed {
            return Err(InferError::Shape);
        }
        need(self.graph.variables(), labels.len())?;
        for (label, &card) in labels.iter_mut().zip(self.graph.cards()) {
            *label = (uniform::<T>(rng) * f64::from(card)) as u32;
        }
        self.descend(labels, |rest| {
            let log = rest.log;
            let mut total = if log { T::NEG_INFINITY } else { T::zero() };
            rest.each(|_, weight| total = if log { log_add_exp(total, weight) } else { total + weight });
            let share = |weight: T| if log { (weight - total).exp() } else { weight / total };
            let mut left = T::from_f64(uniform::<T>(rng));
            let (mut chosen, mut last) = (None, 0);
            rest.each(|number, weight| {
                let share = share(weight);
                if chosen.is_none() && share > T::zero() {
                    left -= share;
                    last = number;
                    if left < T::zero() {
                        chosen = Some(number);
                    }
                }
            });
            // Rounding can leave a sliver of the interval uncovered; it belongs to the last configuration.
            chosen.unwrap_or(last)
        })
    }
}

/// The configurations of a clique that agree with the labels of its separator.
struct Rest<'x, T> {
    loops: Loops<'x>,
    held: &'x [u32],
    labels: &'x [u32],
    messages: &'x [T],
    log: bool,
}

impl<T: Score> Rest<'_, T> {
    /// The labels of the separator.
    fn known(&self) -> impl Iterator<Item = u32> {
        self.held.iter().map(|&v| self.labels.get(v as usize).copied().unwrap_or(0))
    }

    /// The inputs' entries of a configuration.
    #[inline(always)]
    fn values(&self, offsets: &[usize]) -> impl Iterator<Item = T> {
        offsets.iter().take(self.loops.inputs()).filter_map(|&at| self.messages.get(at).copied())
    }

    /// Visits them in order, numbered, with the sums of their scores.
    #[inline]
    fn each_sum(&self, mut visit: impl FnMut(usize, T)) {
        self.loops.each_rest(self.known(), |number, offsets| {
            visit(number, self.values(offsets).fold(T::default(), T::plus));
        });
    }
}

impl<T: Real> Rest<'_, T> {
    /// The same with their weights, which are logarithms or not.
    #[inline]
    fn each(&self, mut visit: impl FnMut(usize, T)) {
        self.loops.each_rest(self.known(), |number, offsets| {
            let values = self.values(offsets);
            let weight = if self.log {
                values.fold(T::zero(), |w, v| w + v)
            } else {
                values.fold(T::one(), |w, v| w * v)
            };
            visit(number, weight);
        });
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
