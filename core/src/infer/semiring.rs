//! How a contraction multiplies and adds.

use crate::log_add::LogAdd;
use crate::math::{Real, log_add_exp, log_sum_exp};
use crate::score::Score;

/// The pair `(⊗, ⊕)` that a contraction uses.
pub(crate) trait Semiring<T: Score>: Copy + Send + Sync {
    /// Neutral element of `plus`, annihilator of `times`.
    fn zero(self) -> T;
    /// Neutral element of `times`.
    fn one(self) -> T;
    fn times(self, a: T, b: T) -> T;
    fn plus(self, a: T, b: T) -> T;
    /// Whether entries that lie one after the other are better added in one go, by [`row`](Self::row).
    const BY_ROWS: bool = false;
    /// `plus` of all of them.
    fn row(self, row: &[T]) -> T {
        row.iter().fold(self.zero(), |sum, &v| self.plus(sum, v))
    }
}

/// `(×, +)` on potentials.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Linear;
/// `(+, max)` on log-potentials.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MaxPlus;
/// `(+, log-add-exp)` on log-potentials: slow, but nothing underflows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogSum;

impl<T: Real> Semiring<T> for Linear {
    #[inline(always)]
    fn zero(self) -> T {
        T::zero()
    }
    #[inline(always)]
    fn one(self) -> T {
        T::one()
    }
    #[inline(always)]
    fn times(self, a: T, b: T) -> T {
        a * b
    }
    #[inline(always)]
    fn plus(self, a: T, b: T) -> T {
        a + b
    }
}

impl<T: Score> Semiring<T> for MaxPlus {
    #[inline(always)]
    fn zero(self) -> T {
        T::NEG_INFINITY
    }
    #[inline(always)]
    fn one(self) -> T {
        T::default()
    }
    #[inline(always)]
    fn times(self, a: T, b: T) -> T {
        a.plus(b)
    }
    #[inline(always)]
    fn plus(self, a: T, b: T) -> T {
        a.larger(b)
    }
}

impl<T: Real> Semiring<T> for LogSum {
    #[inline(always)]
    fn zero(self) -> T {
        T::NEG_INFINITY
    }
    #[inline(always)]
    fn one(self) -> T {
        T::zero()
    }
    #[inline(always)]
    fn times(self, a: T, b: T) -> T {
        a + b
    }
    #[inline(always)]
    fn plus(self, a: T, b: T) -> T {
        log_add_exp(a, b)
    }
    const BY_ROWS: bool = true;
    /// One logarithm for a row instead of one for each entry.
    #[inline(always)]
    fn row(self, row: &[T]) -> T {
        log_sum_exp(row)
    }
}

/// `(+, log-add by a table)` on log-potentials in units. What is forbidden is too far behind for the table to add anything.
impl Semiring<i32> for &LogAdd<'_> {
    #[inline(always)]
    fn zero(self) -> i32 {
        i32::NEG_INFINITY
    }
    #[inline(always)]
    fn one(self) -> i32 {
        0
    }
    #[inline(always)]
    fn times(self, a: i32, b: i32) -> i32 {
        Score::plus(a, b)
    }
    #[inline(always)]
    fn plus(self, a: i32, b: i32) -> i32 {
        self.add(a, b)
    }
    /// One sum after the other: on a device the running sums of other rows would take more stack.
    const BY_ROWS: bool = true;
    #[inline(always)]
    fn row(self, row: &[i32]) -> i32 {
        self.sum(row)
    }
}
