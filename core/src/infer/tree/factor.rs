//! The messages out of one factor, and its marginal.

use super::column::Column;
use super::walk::{Axis, Local, Walk};
use crate::arena::rows_mut;
use crate::error::InferError;
use crate::math::Real;
use crate::wide::{Radix, Wide};
use core::ops::Range;

impl<T: Real> Local<'_, T> {
    /// The message to the parent, into `up[own]`.
    #[inline(never)]
    pub(super) fn climb(
        &self,
        radix: &Radix<T>,
        below: &Column<'_, T>,
        walk: &mut Walk<Wide<T>>,
        up: &mut Column<'_, T>,
        own: Range<usize>,
    ) {
        up.clear(own.clone());
        for row in self.rows() {
            let outer = walk.product(Wide::one(), |p, i, axis| {
                if i == self.at { p } else { radix.mul(p, below.at(axis.entry())) }
            });
            if self.parent_is_last {
                for ((m, k), &log) in up.iter_mut(own.clone()).zip(row) {
                    let term = radix.mul(outer, radix.exp(log));
                    Wide { m: *m, k: *k } = radix.add(Wide { m: *m, k: *k }, term);
                }
            } else {
                let terms = below.iter(self.last.clone()).zip(row);
                let sum = radix.sum(terms.map(|(b, &log)| radix.mul(b, radix.exp(log))));
                up.add(radix, own.start + walk.label(self.at), radix.mul(outer, sum));
            }
            walk.step();
        }
    }

    /// Where the children's entries lie in an array over all variables' labels.
    fn children<P: Copy>(&self, walk: &Walk<P>) -> impl Iterator<Item = Range<usize>> {
        let outer = walk.axes().iter().enumerate().filter(|(i, _)| *i != self.at);
        let last = (!self.parent_is_last).then(|| self.last.clone());
        outer.map(|(_, axis)| axis.range()).chain(last)
    }
}

/// All that comes into a factor.
pub(super) struct Inputs<'s, 'c, T> {
    /// For each variable, what comes from below it.
    pub(super) below: &'s Column<'c, T>,
    /// What the parents say, and where this factor's begins.
    pub(super) parent: &'s Column<'c, T>,
    pub(super) own: usize,
}

impl<T: Real> Inputs<'_, '_, T> {
    #[inline]
    fn at(&self, local: &Local<'_, T>, i: usize, axis: &Axis) -> Wide<T> {
        if i == local.at { self.parent.at(self.own + axis.label()) } else { self.below.at(axis.entry()) }
    }

    /// What comes from the last variable of the scope.
    #[inline]
    fn last(&self, local: &Local<'_, T>) -> impl Iterator<Item = Wide<T>> {
        match local.parent_is_last {
            true => self.parent.iter(self.own..self.own + local.last.len()),
            false => self.below.iter(local.last.clone()),
        }
    }

    /// The messages to all children, into `above`; returns the sum over the factor.
    #[inline(never)]
    pub(super) fn descend(
        &self,
        radix: &Radix<T>,
        local: &Local<'_, T>,
        walk: &mut Walk<Wide<T>>,
        above: &mut Column<'_, T>,
    ) -> Result<Wide<T>, InferError> {
        local.children(walk).for_each(|child| above.clear(child));
        let mut total = Wide::zero();
        for row in local.rows() {
            let outer = walk.product(Wide::one(), |p, i, axis| radix.mul(p, self.at(local, i, axis)));
            let inputs = row.iter().zip(self.last(local));
            let mut rest = Wide::zero();
            if local.parent_is_last {
                for (&log, b) in inputs {
                    rest = radix.add(rest, radix.mul(radix.exp(log), b));
                }
            } else {
                for ((&log, b), (m, k)) in inputs.zip(above.iter_mut(local.last.clone())) {
                    let potential = radix.exp(log);
                    rest = radix.add(rest, radix.mul(potential, b));
                    Wide { m: *m, k: *k } = radix.add(Wide { m: *m, k: *k }, radix.mul(outer, potential));
                }
            }
            total = radix.add(total, radix.mul(outer, rest));
            // From the last outer variable to the first, `rest` gathers all that is not in the prefix.
            for (i, axis, prefix) in walk.prefixes().rev() {
                if i != local.at {
                    above.add(radix, axis.entry(), radix.mul(prefix, rest));
                }
                rest = radix.mul(rest, self.at(local, i, axis));
            }
            walk.step();
        }
        for child in local.children(walk) {
            above.level(child)?;
        }
        Ok(total)
    }

    /// The factor's marginal, given the sum over it.
    #[inline(never)]
    pub(super) fn belief(
        &self,
        radix: &Radix<T>,
        local: &Local<'_, T>,
        walk: &mut Walk<Wide<T>>,
        total: Wide<T>,
        out: &mut [T],
    ) {
        for (row, out) in local.rows().zip(rows_mut(out, local.last.len())) {
            let outer = walk.product(Wide::one(), |p, i, axis| radix.mul(p, self.at(local, i, axis)));
            for ((&log, b), o) in row.iter().zip(self.last(local)).zip(out) {
                *o = radix.ratio(radix.mul(outer, radix.mul(radix.exp(log), b)), total);
            }
            walk.step();
        }
    }
}
