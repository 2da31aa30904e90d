//! The messages out of one factor, and its marginal: the steps of a [`Pass`] that look at a table.
//!
//! On a device they are called one after the other: together their numbers would be more than the registers hold.

use super::column::Column;
use super::sum_product::Pass;
use super::walk::{Local, Place};
use crate::arena::rows_mut;
use crate::error::InferError;
use crate::math::Real;
use crate::wide::Wide;
use core::ops::Range;

impl<T: Real> Local<'_, '_, '_, T> {
    /// Where the children's entries lie in an array over all variables' labels.
    fn children(&self) -> impl Iterator<Item = Range<usize>> {
        self.outer_children().chain((!self.parent_is_last()).then(|| self.last.clone()))
    }
}

impl<T: Real> Pass<'_, '_, '_, '_, T> {
    /// The message to the parent, into `up`.
    #[inline(never)]
    pub(super) fn send_up(&mut self) {
        let own = self.own..self.own + self.forest.graph.card(self.local.parent);
        self.up.clear(own.clone());
        self.walk.begin(Wide::one().parts());
        for row in self.local.rows() {
            let outer = self.outer_below();
            if self.local.parent_is_last() {
                self.spread_row(row, outer, own.clone());
            } else {
                let sum = self.sum_row(row);
                self.up.add(&self.radix, own.start + self.walk.label(), self.radix.mul(outer, sum));
            }
            self.walk.step(&self.local);
        }
    }

    /// The product of what comes from below, without the last variable.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline)]
    fn outer_below(&mut self) -> Wide<T> {
        let Self { radix, local, below, walk, .. } = self;
        Wide::from_parts(walk.product(local, Wide::one().parts(), |p, place| {
            if place.axis == local.at {
                p
            } else {
                radix.mul(Wide::from_parts(p), below.at(place.entry)).parts()
            }
        }))
    }

    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline)]
    fn spread_row(&mut self, row: &[T], outer: Wide<T>, own: Range<usize>) {
        let Self { radix, up, .. } = self;
        for ((m, k), &log) in up.iter_mut(own).zip(row) {
            let term = radix.mul(outer, radix.exp(log));
            Wide { m: *m, k: *k } = radix.add(Wide { m: *m, k: *k }, term);
        }
    }

    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline)]
    fn sum_row(&self, row: &[T]) -> Wide<T> {
        let terms = self.below.iter(self.local.last.clone()).zip(row);
        self.radix.sum(terms.map(|(b, &log)| self.radix.mul(b, self.radix.exp(log))))
    }

    /// What comes from the last variable of the scope.
    #[inline]
    fn last(&self) -> impl Iterator<Item = Wide<T>> {
        match self.local.parent_is_last() {
            true => self.siblings.iter(self.own..self.own + self.local.last.len()),
            false => self.below.iter(self.local.last.clone()),
        }
    }

    /// The product of what comes from all variables but the last.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline)]
    fn outer(&mut self) -> Wide<T> {
        let Self { radix, local, below, siblings, own, walk, .. } = self;
        let inputs = Inputs { local, below, siblings, own: *own };
        let times = |p, place| radix.mul(Wide::from_parts(p), inputs.at(place)).parts();
        Wide::from_parts(walk.product(local, Wide::one().parts(), times))
    }

    /// The messages to all children, into `above`; and the sum over the factor.
    #[inline(never)]
    pub(super) fn send_down(&mut self) -> Result<(), InferError> {
        self.clear_children();
        self.walk.begin(Wide::one().parts());
        self.total = Wide::zero();
        for row in self.local.rows() {
            let outer = self.outer();
            let rest = self.along(row, outer);
            self.total = self.radix.add(self.total, self.radix.mul(outer, rest));
            self.across(rest);
            self.walk.step(&self.local);
        }
        self.level_children()
    }

    #[inline(never)]
    fn clear_children(&mut self) {
        self.local.children().for_each(|child| self.above.clear(child));
    }

    #[inline(never)]
    fn level_children(&mut self) -> Result<(), InferError> {
        for child in self.local.children() {
            self.above.level(child)?;
        }
        Ok(())
    }

    /// The message to the last variable, if that is a child, from one row of the table; the row's sum.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline)]
    fn along(&mut self, row: &[T], outer: Wide<T>) -> Wide<T> {
        let mut rest = Wide::zero();
        if self.local.parent_is_last() {
            for (&log, b) in row.iter().zip(self.last()) {
                rest = self.radix.add(rest, self.radix.mul(self.radix.exp(log), b));
            }
            return rest;
        }
        let Self { radix, local, below, above, .. } = self;
        let inputs = row.iter().zip(below.iter(local.last.clone()));
        for ((&log, b), (m, k)) in inputs.zip(above.iter_mut(local.last.clone())) {
            let potential = radix.exp(log);
            rest = radix.add(rest, radix.mul(potential, b));
            Wide { m: *m, k: *k } = radix.add(Wide { m: *m, k: *k }, radix.mul(outer, potential));
        }
        rest
    }

    /// The messages to the other children from one row. From the last outer variable to the first, `rest` gathers all that is
    /// not in the prefix.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline)]
    fn across(&mut self, mut rest: Wide<T>) {
        let Self { radix, local, below, siblings, above, own, walk, .. } = self;
        let inputs = Inputs { local, below, siblings, own: *own };
        walk.backwards(local, |place, prefix| {
            if place.axis != local.at {
                above.add(radix, place.entry, radix.mul(Wide::from_parts(prefix), rest));
            }
            rest = radix.mul(rest, inputs.at(place));
        });
    }

    /// The factor's marginal, if it is wanted, given the sum over it.
    #[inline(never)]
    pub(super) fn belief(&mut self) {
        let range = self.forest.belief_range(self.local.factor);
        let beliefs = core::mem::take(&mut self.beliefs);
        self.walk.begin(Wide::one().parts());
        let out = beliefs.get_mut(range).unwrap_or(&mut []);
        for (row, out) in self.local.rows().zip(rows_mut(out, self.local.last.len())) {
            let outer = self.outer();
            self.belief_row(row, outer, out);
            self.walk.step(&self.local);
        }
        self.beliefs = beliefs;
    }

    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline)]
    fn belief_row(&self, row: &[T], outer: Wide<T>, out: &mut [T]) {
        let radix = &self.radix;
        for ((&log, b), o) in row.iter().zip(self.last()).zip(out) {
            *o = radix.ratio(radix.mul(outer, radix.mul(radix.exp(log), b)), self.total);
        }
    }
}

/// What comes into a factor from its variables.
struct Inputs<'s, 'c, 'f, 'g, 'm, T> {
    local: &'s Local<'f, 'g, 'm, T>,
    below: &'s Column<'c, T>,
    siblings: &'s Column<'c, T>,
    own: usize,
}

impl<T: Real> Inputs<'_, '_, '_, '_, '_, T> {
    #[inline]
    fn at(&self, place: Place) -> Wide<T> {
        if place.axis == self.local.at {
            self.siblings.at(self.own + place.label)
        } else {
            self.below.at(place.entry)
        }
    }
}
