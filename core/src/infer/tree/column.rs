//! Rows of messages for sum-product.

use crate::error::InferError;
use crate::math::Real;
use crate::wide::{Radix, Wide};
use core::ops::Range;

/// A row of [`Wide`] numbers in two rows of memory.
pub(super) struct Column<'c, T> {
    pub(super) m: &'c mut [T],
    pub(super) k: &'c mut [T],
}

impl<T: Real> Column<'_, T> {
    #[inline]
    pub(super) fn at(&self, i: usize) -> Wide<T> {
        match (self.m.get(i), self.k.get(i)) {
            (Some(&m), Some(&k)) => Wide { m, k },
            _ => Wide::zero(),
        }
    }

    #[inline]
    pub(super) fn iter(&self, range: Range<usize>) -> impl Iterator<Item = Wide<T>> {
        let (m, k) = (self.m.get(range.clone()).unwrap_or(&[]), self.k.get(range).unwrap_or(&[]));
        m.iter().zip(k).map(|(&m, &k)| Wide { m, k })
    }

    /// The two parts of each number.
    #[inline]
    pub(super) fn iter_mut(&mut self, range: Range<usize>) -> impl Iterator<Item = (&mut T, &mut T)> {
        let m = self.m.get_mut(range.clone()).unwrap_or(&mut []);
        m.iter_mut().zip(self.k.get_mut(range).unwrap_or(&mut []))
    }

    /// `self[i] += x`.
    #[inline]
    pub(super) fn add(&mut self, radix: &Radix<T>, i: usize, x: Wide<T>) {
        if let (Some(m), Some(k)) = (self.m.get_mut(i), self.k.get_mut(i)) {
            Wide { m: *m, k: *k } = radix.add(Wide { m: *m, k: *k }, x);
        }
    }

    /// `self[range] *= by[by_range]`, entry by entry.
    pub(super) fn multiply(
        &mut self,
        radix: &Radix<T>,
        range: Range<usize>,
        by: &Column<'_, T>,
        by_range: Range<usize>,
    ) {
        for ((m, k), x) in self.iter_mut(range).zip(by.iter(by_range)) {
            Wide { m: *m, k: *k } = radix.mul(Wide { m: *m, k: *k }, x);
        }
    }

    /// `self[range] = from[from_range]`.
    pub(super) fn copy(&mut self, range: Range<usize>, from: &Column<'_, T>, from_range: Range<usize>) {
        for ((m, k), x) in self.iter_mut(range).zip(from.iter(from_range)) {
            Wide { m: *m, k: *k } = x;
        }
    }

    /// Zeros.
    pub(super) fn clear(&mut self, range: Range<usize>) {
        for (m, k) in self.iter_mut(range) {
            Wide { m: *m, k: *k } = Wide::zero();
        }
    }

    /// Ones.
    pub(super) fn set_ones(&mut self) {
        self.m.fill(T::one());
        self.k.fill(T::zero());
    }

    /// Divides numbers by `e^{R·k}` with their largest `k`, which it returns. They must not all be zero:
    /// [`InferError::ZeroProbability`].
    pub(super) fn level(&mut self, range: Range<usize>) -> Result<T, InferError> {
        let nonzero = self.iter(range.clone()).filter(|x| !x.is_zero());
        let top = nonzero.fold(None, |top: Option<T>, x| Some(top.map_or(x.k, |t| t.larger(x.k))));
        let top = top.ok_or(InferError::ZeroProbability)?;
        if top != T::zero() {
            self.iter_mut(range).for_each(|(_, k)| *k -= top);
        }
        Ok(top)
    }

    /// Divides numbers by their sum, as floats in the place of `m`.
    pub(super) fn normalise(&mut self, radix: &Radix<T>, range: Range<usize>) {
        let total = radix.sum(self.iter(range.clone()));
        for (m, k) in self.iter_mut(range) {
            *m = radix.ratio(Wide { m: *m, k: *k }, total);
        }
    }
}
