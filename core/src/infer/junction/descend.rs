//! From the roots down: the best configuration, or one drawn at random, without back pointers.

use super::{Junction, State};
use crate::error::{InferError, need};
use crate::infer::contract::size_of_scope;
use crate::infer::plan::Cluster;
use crate::math::{Real, log_add_exp};
use crate::table::MAX_SCOPE;
use rand_core::Rng;

impl<T: Real> Junction<'_, '_, T> {
    /// A configuration of largest potential, after [`maximise`](Self::maximise).
    pub fn decode(&self, labels: &mut [u32]) -> Result<(), InferError> {
        if self.state != State::Maximised {
            return Err(InferError::Shape);
        }
        self.descend(labels, |rest| {
            let mut best = (T::NEG_INFINITY, 0usize);
            rest(&mut |number, weight: T| {
                if best.0 < weight {
                    best = (weight, number);
                }
            })?;
            Ok(best.1)
        })
    }

    /// A configuration drawn from `P(x)`, after [`sum`](Self::sum). Can be called any number of times.
    pub fn sample(&self, rng: &mut impl Rng, labels: &mut [u32]) -> Result<(), InferError> {
        if self.state != State::Summed {
            return Err(InferError::Shape);
        }
        for (label, &card) in labels.iter_mut().zip(self.graph.cards()) {
            *label = (uniform::<T>(rng) * f64::from(card)) as u32;
        }
        self.descend(labels, |rest| {
            let mut total = T::NEG_INFINITY;
            rest(&mut |_, weight| total = log_add_exp(total, weight))?;
            let mut left = T::from_f64(uniform::<T>(rng));
            let mut chosen = None;
            let mut last = 0;
            rest(&mut |number, weight: T| {
                if weight != T::NEG_INFINITY && chosen.is_none() {
                    left -= (weight - total).exp();
                    last = number;
                    if left < T::zero() {
                        chosen = Some(number);
                    }
                }
            })?;
            // Rounding can leave a sliver of the interval uncovered; it belongs to the last configuration.
            Ok(chosen.unwrap_or(last))
        })
    }

    /// From the roots down: for each clique, `choose` picks one configuration of the variables that are not
    /// in its separator, given the labels of those that are.
    fn descend(
        &self,
        labels: &mut [u32],
        mut choose: impl FnMut(
            &dyn Fn(&mut dyn FnMut(usize, T)) -> Result<(), InferError>,
        ) -> Result<usize, InferError>,
    ) -> Result<(), InferError> {
        let cards = self.graph.cards();
        need(cards.len(), labels.len())?;
        if self.state == State::Maximised {
            labels.fill(0);
        }
        for c in (0..self.plan.clusters()).rev() {
            let cluster = self.plan.cluster(c);
            if cluster.potential {
                continue;
            }
            let held: &[u32] = if cluster.parent.is_some() { cluster.separator } else { &[] };
            let mut free = heapless::Vec::<u32, MAX_SCOPE>::new();
            for &v in cluster.scope.iter().filter(|v| !held.contains(v)) {
                free.push(v).map_err(|_| InferError::Shape)?;
            }
            let each = |visit: &mut dyn FnMut(usize, T)| self.each_rest(&cluster, &free, labels, visit);
            let mut number = choose(&each)?;
            for &v in free.iter().rev() {
                let card = cards.get(v as usize).copied().unwrap_or(1) as usize;
                let quotient = number.checked_div(card).unwrap_or(0);
                if let Some(label) = labels.get_mut(v as usize) {
                    *label = (number - quotient * card) as u32;
                }
                number = quotient;
            }
        }
        Ok(())
    }

    /// Visits the configurations of `free` (numbered, the last variable fastest) with the log-weight that the clique's
    /// inputs give them, all other variables being held at `labels`.
    fn each_rest(
        &self,
        cluster: &Cluster<'_>,
        free: &[u32],
        labels: &[u32],
        visit: &mut dyn FnMut(usize, T),
    ) -> Result<(), InferError> {
        let cards = self.graph.cards();
        let count = size_of_scope(free, cards).ok_or(InferError::Shape)?;
        let mut digits = [0u32; MAX_SCOPE];
        for number in 0..count {
            let mut weight = T::zero();
            for &child in cluster.inputs {
                let below = self.plan.cluster(child as usize);
                let mut at = 0usize;
                for &v in below.separator {
                    let label = match free.iter().position(|&u| u == v) {
                        Some(i) => digits.get(i),
                        None => labels.get(v as usize),
                    };
                    let card = cards.get(v as usize).copied().unwrap_or(1) as usize;
                    at = at * card + label.copied().unwrap_or(0) as usize;
                }
                let value = self.memory.messages.get(below.message_at + at).ok_or(InferError::Shape)?;
                let log = self.state == State::Maximised || self.fact(child as usize)?.log;
                weight += if log { *value } else { value.ln() };
            }
            visit(number, weight);
            for (&v, digit) in free.iter().rev().zip(digits.iter_mut().take(free.len()).rev()) {
                *digit += 1;
                if Some(&*digit) < cards.get(v as usize) {
                    break;
                }
                *digit = 0;
            }
        }
        Ok(())
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
