//! The best assignment.

use super::Forest;
use super::walk::{Local, Walk};
use crate::arena::Arena;
use crate::error::{InferError, need};
use crate::ids::VarId;
use crate::math::{Real, argmax, maximum};
use crate::wide::{Compensated, finite};

impl<T: Real> Forest<'_, '_, T> {
    /// Entries of memory that [`max_product`](Self::max_product) needs.
    pub fn max_product_len(&self) -> usize {
        let largest = self.graph.cards().iter().copied().max().unwrap_or(0);
        self.marginals_len().saturating_add(largest as usize).saturating_add(self.longest)
    }

    /// The best assignment (into `labels`, one per variable) and its log-potential. Deterministic: of
    /// equals, a root takes the lowest label and each factor its first configuration.
    ///
    /// The recurrences of [`sum_product`](Self::sum_product) with `max` for `Σ`, in log space, up only;
    /// on the way down each factor's best configuration given its parent is found again in its table,
    /// which is what a back pointer would have said and takes no memory. `labels` is written only if there
    /// is an answer or the value is too large for `T` ([`InferError::BadValue`]).
    ///
    /// ```
    /// use gibbsite_core::{graph::FactorGraph, infer::tree::Forest};
    /// let graph = FactorGraph::new(&[2, 2], &[0, 2, 3], &[0, 1, 1], &[0, 4, 6], &[1.0, 0.0, 0.0, 1.0, 0.0, 0.5]).unwrap();
    /// let mut order = [0; Forest::<f64>::build_len(2, 2, 3)];
    /// let forest = Forest::build(&graph, &mut order)?;
    /// let (mut labels, mut memory) = ([0; 2], [0.0; 8]);
    /// assert_eq!(forest.max_product(&mut labels, &mut memory)?, 1.5);
    /// assert_eq!(labels, [1, 1]);
    /// # Ok::<(), gibbsite_core::error::InferError>(())
    /// ```
    #[inline(always)]
    pub fn max_product(&self, labels: &mut [u32], memory: &mut [T]) -> Result<T, InferError> {
        need(self.graph.variables(), labels.len())?;
        let mut arena = Arena::new(memory, self.max_product_len())?;
        let below = arena.take(self.marginals_len())?;
        let mut walk = Walk::new(arena.take(self.longest)?);
        let message = arena.take(self.max_product_len() - self.marginals_len() - self.longest)?;
        self.constants()?;
        self.climb_max(&mut walk, below, message)?;
        self.descend_max(&mut walk, below, labels);
        // Summed anew: the messages were recentred, and this loses less.
        let mut value = Compensated::default();
        for k in self.graph.factor_ids() {
            let cell = self.graph.scope(k).iter().fold(0usize, |cell, &v| {
                cell * self.graph.card(VarId(v)) + labels.get(v as usize).map_or(0, |&l| l as usize)
            });
            value.add(*self.graph.table(k).get(cell).ok_or(InferError::Shape)?);
        }
        finite(value.value())
    }

    /// For each variable the sum of the messages from its children, each with largest entry 0.
    #[inline(never)]
    fn climb_max(
        &self,
        walk: &mut Walk<'_, T>,
        below: &mut [T],
        message: &mut [T],
    ) -> Result<(), InferError> {
        below.fill(T::zero());
        for &edge in self.order.iter().rev() {
            let local = self.enter(edge);
            let parent = self.range(local.parent);
            let message = message.get_mut(..parent.len()).unwrap_or(&mut []);
            message.fill(T::NEG_INFINITY);
            local.each_value(below, walk, None, |x, value, _| {
                if let Some(m) = message.get_mut(x) {
                    *m = m.larger(value);
                }
            });
            let top = maximum(message);
            if top == T::NEG_INFINITY {
                return Err(InferError::ZeroProbability);
            }
            for (b, &m) in below.get_mut(parent).unwrap_or(&mut []).iter_mut().zip(&*message) {
                *b += m - top;
            }
        }
        if self.roots().any(|root| maximum(below.get(self.range(root)).unwrap_or(&[])) == T::NEG_INFINITY) {
            return Err(InferError::ZeroProbability);
        }
        Ok(())
    }

    /// The roots' best labels, then from parent to children each factor's best configuration.
    #[inline(never)]
    fn descend_max(&self, walk: &mut Walk<'_, T>, below: &[T], labels: &mut [u32]) {
        for root in self.roots() {
            if let Some(label) = labels.get_mut(root.index()) {
                *label = argmax(below.get(self.range(root)).unwrap_or(&[])) as u32;
            }
        }
        for &edge in self.order {
            let local = self.enter(edge);
            let at_parent = labels.get(local.parent.index()).copied().unwrap_or(0);
            let (mut best, mut cell) = (T::NEG_INFINITY, 0usize);
            local.each_value(below, walk, Some(at_parent as usize), |_, value, at| {
                if best < value {
                    (best, cell) = (value, at);
                }
            });
            for &v in self.graph.scope(local.factor).iter().rev() {
                let card = self.graph.card(VarId(v)).max(1);
                if let Some(label) = labels.get_mut(v as usize) {
                    *label = (cell % card) as u32;
                }
                cell /= card;
            }
        }
    }
}

impl<T: Real> Local<'_, '_, '_, T> {
    /// Shows `see` each configuration (of those that have the parent at `only`): the parent's label, the
    /// value with what comes from below, the position in the table.
    fn each_value(
        &self,
        below: &[T],
        walk: &mut Walk<'_, T>,
        only: Option<usize>,
        mut see: impl FnMut(usize, T, usize),
    ) {
        let wanted = |x: usize| only.is_none_or(|o| o == x);
        let mut cell = 0usize;
        walk.begin(T::zero());
        for row in self.rows() {
            let outer = walk.product(self, T::zero(), |p, place| {
                let heard = || below.get(place.entry).copied().unwrap_or(T::NEG_INFINITY);
                if place.axis == self.at { p } else { p + heard() }
            });
            let x = walk.label();
            if self.parent_is_last() {
                for (x, &log) in row.iter().enumerate().filter(|(x, _)| wanted(*x)) {
                    see(x, outer + log, cell + x);
                }
            } else if wanted(x) {
                let last = below.get(self.last.clone()).unwrap_or(&[]);
                for (j, (&log, &b)) in row.iter().zip(last).enumerate() {
                    see(x, outer + (log + b), cell + j);
                }
            }
            cell += row.len();
            walk.step(self);
        }
    }
}
