//! Rows of `α` and `β`, and the loops over rows that have to be fast.

use crate::arena::rows;
use crate::error::InferError;
use crate::math::Real;
use crate::wide::{Radix, Wide};

/// A row of `α` or `β` up to a common factor. With `floor > 0` it is plain: `mass` lies in `[0, 1]` and
/// its nonzero entries are at least `floor`. With `floor = 0` its numbers are [`Wide`].
#[derive(Clone, Copy)]
pub(super) struct Row<'r, T> {
    pub(super) mass: &'r [T],
    /// Of a plain row, left to other uses.
    pub(super) exponent: &'r [T],
    pub(super) floor: T,
}

impl<'r, T: Real> Row<'r, T> {
    /// The entries as wide numbers, whatever the row.
    pub(super) fn wide(self, radix: &Radix<T>) -> impl Iterator<Item = Wide<T>> + use<'r, '_, T> {
        let plain = self.floor != T::zero();
        let each = self.mass.iter().zip(self.exponent);
        each.map(move |(&m, &k)| if plain { radix.widen(m) } else { Wide { m, k } })
    }

    /// An entry of a wide row; 0 if there is none.
    pub(super) fn get(&self, i: usize) -> Wide<T> {
        match (self.mass.get(i), self.exponent.get(i)) {
            (Some(&m), Some(&k)) => Wide { m, k },
            _ => Wide::zero(),
        }
    }

    /// An entry of any row as a wide number; 0 if there is none.
    pub(super) fn at(&self, radix: &Radix<T>, i: usize) -> Wide<T> {
        let x = self.get(i);
        if self.floor != T::zero() { radix.widen(x.m) } else { x }
    }
}

/// A [`Row`] that is being written.
pub(super) struct RowMut<'r, T> {
    pub(super) mass: &'r mut [T],
    pub(super) exponent: &'r mut [T],
    pub(super) floor: T,
}

impl<'r, T: Real> RowMut<'r, T> {
    pub(super) fn new(mass: &'r mut [T], exponent: &'r mut [T]) -> Self {
        Self { mass, exponent, floor: T::zero() }
    }

    #[inline]
    pub(super) fn view(&self) -> Row<'_, T> {
        Row { mass: self.mass, exponent: self.exponent, floor: self.floor }
    }

    /// Plain ones.
    pub(super) fn set_ones(&mut self) {
        self.mass.fill(T::one());
        self.exponent.fill(T::zero());
        self.floor = T::one();
    }

    /// Writes a wide number.
    pub(super) fn set(&mut self, i: usize, x: Wide<T>) {
        if let (Some(m), Some(k)) = (self.mass.get_mut(i), self.exponent.get_mut(i)) {
            Wide { m: *m, k: *k } = x;
        }
    }

    /// The two parts of each wide number.
    pub(super) fn parts(&mut self) -> impl Iterator<Item = (&mut T, &mut T)> {
        self.mass.iter_mut().zip(self.exponent.iter_mut())
    }

    /// Divides a wide row by a number, so that it is plain with largest entry 1 if its range allows (its least is `tiny`);
    /// returns the number.
    #[inline(never)]
    pub(super) fn narrow(&mut self, radix: &Radix<T>, tiny: T) -> Result<Wide<T>, InferError> {
        // Of a row that is still wide.
        self.floor = T::zero();
        let each = || self.view().wide(radix);
        let top = each().fold(Wide::zero(), |top, x| if x.exceeds(top) { x } else { top });
        if top.is_zero() {
            return Err(InferError::ZeroProbability);
        }
        let nonzero = each().filter(|x| !x.is_zero());
        let low = nonzero.fold(T::one(), |low, x| low.smaller(radix.ratio(x, top)));
        if tiny <= low {
            for (m, k) in self.parts() {
                *m = radix.ratio(Wide { m: *m, k: *k }, top);
            }
            self.floor = low;
            return Ok(top);
        }
        self.exponent.iter_mut().for_each(|k| *k -= top.k);
        Ok(Wide { m: T::one(), k: top.k })
    }

    /// Divides a plain row by its largest entry, which it returns, and sets the floor.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline)]
    pub(super) fn rescale(&mut self) -> Result<T, InferError> {
        let (top, low) = extent(self.mass, T::zero());
        if top == T::zero() {
            return Err(InferError::ZeroProbability);
        }
        let factor = T::one() / top;
        self.mass.iter_mut().for_each(|m| *m *= factor);
        self.floor = low * factor;
        Ok(top)
    }
}

/// Largest entry, and smallest of those above `nothing` (`+inf` if there is none). In four lanes, so
/// that it vectorises; on a device, without vectors, they would be stack.
#[cfg_attr(target_os = "none", inline(never))]
#[cfg_attr(not(target_os = "none"), inline)]
pub(super) fn extent<T: Real>(x: &[T], nothing: T) -> (T, T) {
    if cfg!(target_os = "none") {
        return extent_by_fours(x, nothing);
    }
    let put = |high: &mut T, low: &mut T, v: T| {
        *high = high.larger(v);
        *low = low.smaller(if nothing < v { v } else { T::INFINITY });
    };
    let (chunks, tail) = x.as_chunks::<4>();
    let (mut top, mut bottom) = (nothing, T::INFINITY);
    if !chunks.is_empty() {
        let (mut high, mut low) = ([nothing; 4], [T::INFINITY; 4]);
        for chunk in chunks {
            for ((high, low), &v) in high.iter_mut().zip(&mut low).zip(chunk) {
                put(high, low, v);
            }
        }
        top = high.into_iter().fold(top, T::larger);
        bottom = low.into_iter().fold(bottom, T::smaller);
    }
    for &v in tail {
        put(&mut top, &mut bottom, v);
    }
    (top, bottom)
}

/// [`extent`] for a device: the loop would be as much as the work. Of two entries only the larger can be the largest and only the smaller
/// the smallest: three comparisons for both instead of four. Mostly there is no `nothing`, so that it is looked for only if the smallest is
/// one.
#[inline(always)]
pub(super) fn extent_by_fours<T: Real>(x: &[T], nothing: T) -> (T, T) {
    let (fours, last) = x.as_chunks::<4>();
    let (mut top, mut low) = (nothing, T::INFINITY);
    for &[a, b, c, d] in fours {
        let ((a, b), (c, d)) = (sorted(a, b), sorted(c, d));
        (top, low) = (top.larger(b), low.smaller(a));
        (top, low) = (top.larger(d), low.smaller(c));
    }
    for &v in last {
        (top, low) = (top.larger(v), low.smaller(v));
    }
    if low <= nothing {
        let above = x.iter().filter(|v| nothing < **v);
        low = above.fold(T::INFINITY, |low, &v| low.smaller(v));
    }
    (top, low)
}

/// The smaller of two numbers, then the larger.
#[inline(always)]
fn sorted<T: Real>(a: T, b: T) -> (T, T) {
    if a < b { (a, b) } else { (b, a) }
}

/// `out(i) = Σ_j table(i, j) x(j)`: [`combine`] with the table turned around, the additions in the same order.
#[inline(never)]
pub(super) fn combine_rows<T: Real>(x: &[T], table: &[T], out: &mut [T]) {
    let (fours, last) = x.as_chunks::<4>();
    for (o, row) in out.iter_mut().zip(rows(table, x.len())) {
        let (row_fours, row_last) = row.as_chunks::<4>();
        let mut sum = T::zero();
        for (&[a, b, c, d], &[ra, rb, rc, rd]) in fours.iter().zip(row_fours) {
            sum += (a * ra + b * rb) + (c * rc + d * rd);
        }
        for (&x, &e) in last.iter().zip(row_last) {
            sum += x * e;
        }
        *o = sum;
    }
}

/// `out(j) = Σ_i x(i) table(i, j)`, four rows at a time to spare loads and stores of `out`.
#[cfg_attr(target_os = "none", inline(never))]
#[cfg_attr(not(target_os = "none"), inline)]
pub(super) fn combine<T: Real>(x: &[T], mut table: &[T], out: &mut [T]) {
    let labels = out.len();
    out.fill(T::zero());
    let (fours, last) = x.as_chunks::<4>();
    for &[a, b, c, d] in fours {
        let Some(([ra, rb, rc, rd], rest)) = four_rows(table, labels) else { return };
        for ((((o, &ra), &rb), &rc), &rd) in out.iter_mut().zip(ra).zip(rb).zip(rc).zip(rd) {
            *o += (a * ra + b * rb) + (c * rc + d * rd);
        }
        table = rest;
    }
    for (&x, row) in last.iter().zip(rows(table, labels)) {
        for (o, &e) in out.iter_mut().zip(row) {
            *o += x * e;
        }
    }
}

/// The first four rows of a table, and the rest: one comparison of lengths, where four steps of [`rows`] are four and as much as the
/// work on a short row.
#[inline(always)]
fn four_rows<T>(table: &[T], labels: usize) -> Option<([&[T]; 4], &[T])> {
    let (four, rest) = table.split_at_checked(4 * labels)?;
    let (low, high) = four.split_at_checked(2 * labels)?;
    let ((a, b), (c, d)) = (low.split_at_checked(labels)?, high.split_at_checked(labels)?);
    Some(([a, b, c, d], rest))
}
