//! Going through the configurations of one factor: [`Walk`] over all variables of its scope but the last,
//! whose labels are then the entries of a row of the table.

use super::{Forest, UNSEEN};
use crate::arena::{Rows, rows};
use crate::ids::{FactorId, VarId};
use crate::math::Real;
use core::ops::Range;

impl<'g, 'm, T: Real> Forest<'g, 'm, T> {
    /// Looks at a factor from its parent.
    pub(super) fn enter<'f>(&'f self, edge: u32) -> Local<'f, 'g, 'm, T> {
        let factor = self.incidence.factor(edge);
        let (last, outer) = match self.graph.scope(factor) {
            [outer @ .., last] => (VarId(*last), outer),
            [] => (VarId(UNSEEN), &[] as &[u32]),
        };
        Local {
            forest: self,
            factor,
            parent: self.parent(edge),
            at: (edge as usize).saturating_sub(self.graph.edge_range(factor).start),
            outer,
            last: self.range(last),
        }
    }
}

/// Where a label of a variable lies.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// The variable's position in the scope.
    pub(super) axis: usize,
    pub(super) label: usize,
    /// The label's entry in an array over all variables' labels.
    pub(super) entry: usize,
}

/// Steps through the configurations of a scope but its last variable, and keeps the products of what
/// comes in from the first variables, so that a step computes only what changed.
///
/// The labels are the digits of the configuration's number. Few are needed in a step: those before `changed` are in the
/// products, those after it are 0.
pub(super) struct Walk<'w, P> {
    /// `prefix[i]`: product over the first `i` variables. Borrowed: as long as the longest scope.
    prefix: &'w mut [P],
    number: usize,
    /// Variables before this one are as they were at the last [`product`](Self::product).
    changed: usize,
    /// The label of that variable, and of the parent.
    digit: usize,
    label: usize,
}

impl<'w, P: Copy> Walk<'w, P> {
    pub(super) fn new(prefix: &'w mut [P]) -> Self {
        Self { prefix, number: 0, changed: 0, digit: 0, label: 0 }
    }

    /// To the first configuration.
    pub(super) fn begin(&mut self, neutral: P) {
        (self.number, self.changed, self.digit, self.label) = (0, 0, 0, 0);
        if let Some(first) = self.prefix.first_mut() {
            *first = neutral;
        }
    }

    /// The label of the parent, unless that is the last variable.
    pub(super) fn label(&self) -> usize {
        self.label
    }

    /// The product over all variables at the present configuration.
    #[inline]
    pub(super) fn product<T: Real>(
        &mut self,
        local: &Local<'_, '_, '_, T>,
        neutral: P,
        times: impl Fn(P, Place) -> P,
    ) -> P {
        let mut product = self.prefix.get(self.changed).copied().unwrap_or(neutral);
        let mut label = self.digit;
        let variables = local.outer.iter().enumerate().skip(self.changed);
        for ((axis, &v), slot) in variables.zip(self.prefix.iter_mut().skip(self.changed + 1)) {
            product = times(product, Place { axis, label, entry: local.base(v) + label });
            *slot = product;
            label = 0;
        }
        product
    }

    /// From the last variable to the first, with the product over those before each; after [`product`](Self::product).
    #[inline]
    pub(super) fn backwards<T: Real>(&self, local: &Local<'_, '_, '_, T>, mut see: impl FnMut(Place, P)) {
        let mut number = self.number;
        for ((axis, &v), &prefix) in local.outer.iter().enumerate().zip(&*self.prefix).rev() {
            let (quotient, label) = local.divide(axis, v, number);
            see(Place { axis, label, entry: local.base(v) + label }, prefix);
            number = quotient;
        }
    }

    /// On to the next configuration.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline)]
    pub(super) fn step<T: Real>(&mut self, local: &Local<'_, '_, '_, T>) {
        let mut number = self.number;
        self.number += 1;
        for (axis, &v) in local.outer.iter().enumerate().rev() {
            let (quotient, label) = local.divide(axis, v, number);
            number = quotient;
            self.changed = axis;
            self.digit = if label + 1 < local.forest.graph.card(VarId(v)) { label + 1 } else { 0 };
            if axis == local.at {
                self.label = self.digit;
            }
            if self.digit != 0 {
                return;
            }
        }
    }
}

/// A factor as seen from its parent.
pub(super) struct Local<'f, 'g, 'm, T> {
    forest: &'f Forest<'g, 'm, T>,
    pub(super) factor: FactorId,
    pub(super) parent: VarId,
    /// Position of the parent in the scope.
    pub(super) at: usize,
    /// The scope without its last variable.
    outer: &'g [u32],
    /// Entries of the scope's last variable, which the rows of the table run over.
    pub(super) last: Range<usize>,
}

impl<'f, 'g, 'm, T> Local<'f, 'g, 'm, T> {
    /// In place of a factor, before there is one.
    pub(super) fn of_none(forest: &'f Forest<'g, 'm, T>) -> Self {
        Self { forest, factor: FactorId(UNSEEN), parent: VarId(UNSEEN), at: 0, outer: &[], last: 0..0 }
    }
}

impl<'g, T: Real> Local<'_, 'g, '_, T> {
    pub(super) fn rows(&self) -> Rows<&'g [T]> {
        rows(self.forest.graph.table(self.factor), self.last.len())
    }

    #[inline]
    pub(super) fn parent_is_last(&self) -> bool {
        self.at == self.outer.len()
    }

    /// Where the entries of the children but a last one lie in an array over all variables' labels.
    pub(super) fn outer_children(&self) -> impl Iterator<Item = Range<usize>> {
        let children = self.outer.iter().enumerate().filter(|(i, _)| *i != self.at);
        children.map(|(_, &v)| self.forest.range(VarId(v)))
    }

    /// Where a variable's entries begin in such an array.
    #[inline]
    fn base(&self, v: u32) -> usize {
        self.forest.offsets.get(v as usize).map_or(0, |&at| at as usize)
    }

    /// A number without its last digit, and that digit, which counts the labels of `v`. The first variable has what is left.
    #[inline]
    fn divide(&self, axis: usize, v: u32, number: usize) -> (usize, usize) {
        if axis == 0 {
            return (0, number);
        }
        let card = self.forest.graph.card(VarId(v));
        let quotient = number.checked_div(card).unwrap_or(0);
        (quotient, number - quotient * card)
    }
}
