//! Going through the configurations of one factor: [`Walk`] over all variables of its scope but the last,
//! whose labels are then the entries of a row of the table.

use super::{Forest, UNSEEN};
use crate::arena::{Rows, rows};
use crate::ids::{FactorId, VarId};
use crate::math::Real;
use crate::table::MAX_SCOPE;
use core::ops::Range;

impl<'g, T: Real> Forest<'g, '_, T> {
    /// Looks at a factor from its parent, and sets `walk` to the first configuration of its scope
    /// without the last variable.
    pub(super) fn enter<P: Copy>(&self, edge: u32, walk: &mut Walk<P>) -> Local<'g, T> {
        let factor = self.incidence.factor(edge);
        let (last, outer) = match self.graph.scope(factor) {
            [outer @ .., last] => (VarId(*last), outer),
            [] => (VarId(UNSEEN), &[] as &[u32]),
        };
        walk.changed = 0;
        walk.len = outer.len();
        for (axis, &v) in walk.axes.iter_mut().zip(outer) {
            let Range { start, end } = self.range(VarId(v));
            *axis = Axis { digit: 0, card: (end - start) as u32, base: start };
        }
        let at = (edge as usize).saturating_sub(self.graph.edge_range(factor).start);
        Local {
            factor,
            table: self.graph.table(factor),
            parent: self.parent(edge),
            at,
            parent_is_last: at == outer.len(),
            last: self.range(last),
        }
    }
}

/// A variable of a scope, and its label in the present configuration.
#[derive(Clone, Copy)]
pub(super) struct Axis {
    digit: u32,
    card: u32,
    /// Where the variable's entries begin in an array over all variables' labels.
    base: usize,
}

impl Axis {
    /// Where the label's entry lies in such an array.
    #[inline]
    pub(super) fn entry(&self) -> usize {
        self.base + self.digit as usize
    }

    /// The label.
    #[inline]
    pub(super) fn label(&self) -> usize {
        self.digit as usize
    }

    /// Where the variable's entries lie in such an array.
    pub(super) fn range(&self) -> Range<usize> {
        self.base..self.base + self.card as usize
    }
}

/// Steps through the configurations of a scope but its last variable, and keeps the products of what
/// comes in from the first variables, so that a step computes only what changed.
pub(super) struct Walk<P> {
    axes: [Axis; MAX_SCOPE],
    /// `prefix[i]`: product over the first `i` axes.
    prefix: [P; MAX_SCOPE],
    len: usize,
    /// Axes before this one are as they were at the last [`product`](Self::product).
    changed: usize,
}

impl<P: Copy> Walk<P> {
    pub(super) fn new(neutral: P) -> Self {
        let axis = Axis { digit: 0, card: 1, base: 0 };
        Self { axes: [axis; MAX_SCOPE], prefix: [neutral; MAX_SCOPE], len: 0, changed: 0 }
    }

    pub(super) fn axes(&self) -> &[Axis] {
        self.axes.get(..self.len).unwrap_or(&[])
    }

    /// The label of the variable on an axis.
    pub(super) fn label(&self, axis: usize) -> usize {
        self.axes.get(axis).map_or(0, Axis::label)
    }

    /// Each axis with the product over the axes before it; after [`product`](Self::product).
    pub(super) fn prefixes(&self) -> impl DoubleEndedIterator<Item = (usize, &Axis, P)> {
        let each = self.axes().iter().enumerate().zip(&self.prefix);
        each.map(|((i, axis), &prefix)| (i, axis, prefix))
    }

    /// The product over all axes at the present configuration; `times(product, axis number, axis)`.
    #[inline]
    pub(super) fn product(&mut self, neutral: P, times: impl Fn(P, usize, &Axis) -> P) -> P {
        let mut product = self.prefix.get(self.changed).copied().unwrap_or(neutral);
        let axes = self.axes.iter().enumerate().take(self.len).skip(self.changed);
        for ((i, axis), slot) in axes.zip(self.prefix.iter_mut().skip(self.changed + 1)) {
            product = times(product, i, axis);
            *slot = product;
        }
        product
    }

    /// On to the next configuration.
    #[inline]
    pub(super) fn step(&mut self) {
        let axes = self.axes.get_mut(..self.len).unwrap_or(&mut []);
        for (i, axis) in axes.iter_mut().enumerate().rev() {
            self.changed = i;
            axis.digit += 1;
            if axis.digit < axis.card {
                return;
            }
            axis.digit = 0;
        }
    }
}

/// A factor as seen from its parent.
pub(super) struct Local<'g, T> {
    pub(super) factor: FactorId,
    table: &'g [T],
    pub(super) parent: VarId,
    /// Position of the parent in the scope: the number of its axis, unless it is last.
    pub(super) at: usize,
    pub(super) parent_is_last: bool,
    /// Entries of the scope's last variable, which the rows of the table run over.
    pub(super) last: Range<usize>,
}

impl<'g, T: Real> Local<'g, T> {
    pub(super) fn rows(&self) -> Rows<&'g [T]> {
        rows(self.table, self.last.len())
    }
}
