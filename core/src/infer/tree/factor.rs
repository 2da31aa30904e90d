//! The messages out of one factor, and its marginal.

use super::column::Column;
use super::walk::{Local, Place, Walk};
use crate::arena::rows_mut;
use crate::error::InferError;
use crate::math::Real;
use crate::wide::{Radix, Wide};
use core::ops::Range;

impl<T: Real> Local<'_, '_, '_, T> {
    /// The message to the parent, into `up[own]`.
    #[inline(never)]
    pub(super) fn climb(
        &self,
        radix: &Radix<T>,
        below: &Column<'_, T>,
        walk: &mut Walk<'_, [T; 2]>,
        up: &mut Column<'_, T>,
        own: Range<usize>,
    ) {
        up.clear(own.clone());
        walk.begin(Wide::one().parts());
        for row in self.rows() {
            let outer = walk.product(self, Wide::one().parts(), |p, place| {
                if place.axis == self.at {
                    p
                } else {
                    radix.mul(Wide::from_parts(p), below.at(place.entry)).parts()
                }
            });
            let outer = Wide::from_parts(outer);
            if self.parent_is_last() {
                for ((m, k), &log) in up.iter_mut(own.clone()).zip(row) {
                    let term = radix.mul(outer, radix.exp(log));
                    Wide { m: *m, k: *k } = radix.add(Wide { m: *m, k: *k }, term);
                }
            } else {
                let terms = below.iter(self.last.clone()).zip(row);
                let sum = radix.sum(terms.map(|(b, &log)| radix.mul(b, radix.exp(log))));
                up.add(radix, own.start + walk.label(), radix.mul(outer, sum));
            }
            walk.step(self);
        }
    }

    /// Where the children's entries lie in an array over all variables' labels.
    fn children(&self) -> impl Iterator<Item = Range<usize>> {
        self.outer_children().chain((!self.parent_is_last()).then(|| self.last.clone()))
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
    fn at(&self, local: &Local<'_, '_, '_, T>, place: Place) -> Wide<T> {
        if place.axis == local.at {
            self.parent.at(self.own + place.label)
        } else {
            self.below.at(place.entry)
        }
    }

    /// What comes from the last variable of the scope.
    #[inline]
    fn last(&self, local: &Local<'_, '_, '_, T>) -> impl Iterator<Item = Wide<T>> {
        match local.parent_is_last() {
            true => self.parent.iter(self.own..self.own + local.last.len()),
            false => self.below.iter(local.last.clone()),
        }
    }

    /// The product of what comes from all variables but the last.
    #[inline]
    fn outer(&self, radix: &Radix<T>, local: &Local<'_, '_, '_, T>, walk: &mut Walk<'_, [T; 2]>) -> Wide<T> {
        let times = |p, place| radix.mul(Wide::from_parts(p), self.at(local, place)).parts();
        Wide::from_parts(walk.product(local, Wide::one().parts(), times))
    }

    /// The messages to all children, into `above`; returns the sum over the factor.
    #[inline(never)]
    pub(super) fn descend(
        &self,
        radix: &Radix<T>,
        local: &Local<'_, '_, '_, T>,
        walk: &mut Walk<'_, [T; 2]>,
        above: &mut Column<'_, T>,
    ) -> Result<Wide<T>, InferError> {
        local.children().for_each(|child| above.clear(child));
        walk.begin(Wide::one().parts());
        let mut total = Wide::zero();
        for row in local.rows() {
            let outer = self.outer(radix, local, walk);
            let inputs = row.iter().zip(self.last(local));
            let mut rest = Wide::zero();
            if local.parent_is_last() {
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
            walk.backwards(local, |place, prefix| {
                if place.axis != local.at {
                    above.add(radix, place.entry, radix.mul(Wide::from_parts(prefix), rest));
                }
                rest = radix.mul(rest, self.at(local, place));
            });
            walk.step(local);
        }
        for child in local.children() {
            above.level(child)?;
        }
        Ok(total)
    }

    /// The factor's marginal, given the sum over it.
    #[inline(never)]
    pub(super) fn belief(
        &self,
        radix: &Radix<T>,
        local: &Local<'_, '_, '_, T>,
        walk: &mut Walk<'_, [T; 2]>,
        total: Wide<T>,
        out: &mut [T],
    ) {
        walk.begin(Wide::one().parts());
        for (row, out) in local.rows().zip(rows_mut(out, local.last.len())) {
            let outer = self.outer(radix, local, walk);
            for ((&log, b), o) in row.iter().zip(self.last(local)).zip(out) {
                *o = radix.ratio(radix.mul(outer, radix.mul(radix.exp(log), b)), total);
            }
            walk.step(local);
        }
    }
}
