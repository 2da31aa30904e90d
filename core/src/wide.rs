//! Numbers whose logarithm may be anything: [`Wide`] has an exponent of its own, [`Radix`] calculates with
//! it, and [`Compensated`] adds up the logarithms.
//!
//! *Why.* The weight of a configuration is `e^x`, and with a million positions or scores of ±1e6 it
//! fits no float. Logarithms do fit, but a logarithm `x` that is rounded to `ε·|x|` stands for a number
//! with the relative error `ε·|x|`: at 1e6 a probability in `f32` has lost all its digits but one. A
//! [`Wide`] number `m · e^{R·k}` keeps the magnitude apart, in the whole number `k`, so its relative error
//! does not grow with the magnitude.
//!
//! *Range.* `R` is 512 for `f64` and 64 for `f32`; nonzero `m` lies in `[e^{-R/2}, e^{R/2})`.
//! - A product of two `m` lies in `[e^{-R}, e^R)` and a sum of two below `2 e^{R/2}`, both inside
//!   [`Real::LOG_RANGE`]: neither overflows nor underflows, and one step of `k` (a factor `e^{±R}`) brings
//!   it back.
//! - A sum leaves out a term whose `k` is smaller by 2 or more: it is below `e^{-R}` of the other. With `k`
//!   smaller by 1 a term may go subnormal on the way, but then it is below `e^{-452}` (`f64`) or `e^{-55}`
//!   (`f32`) of the other. Rounding hides all of that: it begins at `e^{-36}` and `e^{-16}`.
//!
//! *Precision.* An operation rounds its result and, if `k` steps, the factor and the product with it: at
//! most three roundings, whatever the magnitude. `k` is exact: `R` is a power of two, so `x = R·k + rest`
//! has no rounding, and whole numbers are exact in `T` up to logarithms of 4e18 (`f64`) and 1e9 (`f32`);
//! beyond, the scores themselves are at least `R` apart.

use crate::error::InferError;
use crate::math::Real;

/// A nonnegative number `m · e^{R·k}`. `k` is a whole number, kept as a `T` so that a row of them fits
/// memory of `T`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wide<T> {
    pub(crate) m: T,
    pub(crate) k: T,
}

impl<T: Real> Wide<T> {
    pub(crate) fn zero() -> Self {
        Self { m: T::zero(), k: T::zero() }
    }

    pub(crate) fn one() -> Self {
        Self { m: T::one(), k: T::zero() }
    }

    /// From mantissa and exponent.
    #[inline]
    pub(crate) fn from_parts([m, k]: [T; 2]) -> Self {
        Self { m, k }
    }

    /// Mantissa and exponent.
    #[inline]
    pub(crate) fn parts(self) -> [T; 2] {
        [self.m, self.k]
    }

    #[inline]
    pub(crate) fn is_zero(self) -> bool {
        self.m == T::zero()
    }

    /// Whether this is the larger one.
    #[inline]
    pub(crate) fn exceeds(self, other: Self) -> bool {
        !self.is_zero() && (other.is_zero() || other.k < self.k || (other.k == self.k && other.m < self.m))
    }
}

/// Arithmetic of [`Wide`] numbers.
#[derive(Clone, Copy)]
pub(crate) struct Radix<T> {
    /// `R`.
    log: T,
    /// `e^R` and `e^{-R}`.
    up: T,
    down: T,
    /// `e^{R/2}` and `e^{-R/2}`: `m` lies between them.
    high: T,
    low: T,
}

impl<T: Real> Radix<T> {
    pub(crate) fn new() -> Self {
        let wide = T::from_f64(512.0);
        let log = if wide < T::LOG_RANGE { wide } else { T::from_f64(64.0) };
        let [up, down, high, low, _] = T::POWERS;
        Self { log, up, down, high, low }
    }

    /// `m · e^{R·k}` for any `m` in `[e^{-R}, e^R)` or 0.
    #[inline]
    pub(crate) fn settle(&self, m: T, k: T) -> Wide<T> {
        if self.high <= m {
            Wide { m: m * self.down, k: k + T::one() }
        } else if m < self.low && m != T::zero() {
            Wide { m: m * self.up, k: k - T::one() }
        } else {
            Wide { m, k }
        }
    }

    /// A float as a wide number.
    #[inline]
    pub(crate) fn widen(&self, m: T) -> Wide<T> {
        self.settle(m, T::zero())
    }

    /// `e^x`.
    #[inline]
    pub(crate) fn exp(&self, x: T) -> Wide<T> {
        if x.abs() < self.log {
            return self.widen(x.exp());
        }
        if x == T::NEG_INFINITY {
            return Wide::zero();
        }
        let quotient = x / self.log;
        // Beyond the integers' range the quotient is a whole number already.
        let k = quotient.to_i64().and_then(T::from).unwrap_or(quotient);
        self.settle((x - k * self.log).exp(), k)
    }

    #[inline]
    pub(crate) fn mul(&self, a: Wide<T>, b: Wide<T>) -> Wide<T> {
        self.settle(a.m * b.m, a.k + b.k)
    }

    #[inline]
    pub(crate) fn add(&self, a: Wide<T>, b: Wide<T>) -> Wide<T> {
        if a.is_zero() {
            return b;
        }
        if b.is_zero() {
            return a;
        }
        let (a, b) = if a.k < b.k { (b, a) } else { (a, b) };
        if a.k == b.k {
            self.settle(a.m + b.m, a.k)
        } else if a.k == b.k + T::one() {
            self.settle(a.m + b.m * self.down, a.k)
        } else {
            // b < e^{-R} a.
            a
        }
    }

    pub(crate) fn sum(&self, terms: impl Iterator<Item = Wide<T>>) -> Wide<T> {
        terms.fold(Wide::zero(), |a, b| self.add(a, b))
    }

    /// `part / whole` as a float, for `0 <= part <= whole` and `whole > 0`; it may underflow.
    #[inline]
    pub(crate) fn ratio(&self, part: Wide<T>, whole: Wide<T>) -> T {
        let quotient = part.m / whole.m;
        let behind = whole.k - part.k;
        if behind == T::zero() || part.is_zero() {
            quotient
        } else if behind == -T::one() {
            // Rounding at the border between two exponents: the same number, written with the next one.
            quotient * self.up
        } else if behind == T::one() {
            quotient * self.down
        } else if behind == T::one() + T::one() {
            quotient * self.down * self.down
        } else {
            // Below e^{-2R}, which is no float any more.
            T::zero()
        }
    }

    /// Adds `log x` to a sum, its two parts one by one.
    pub(crate) fn add_log(&self, x: Wide<T>, sum: &mut Compensated<T>) {
        sum.add(x.m.ln());
        self.add_exponent(x.k, sum);
    }

    /// Adds `log e^{R·k}` to a sum.
    pub(crate) fn add_exponent(&self, k: T, sum: &mut Compensated<T>) {
        sum.add(k * self.log);
    }
}

/// A running sum with the rounding error of each addition kept beside it (Neumaier 1974): its error
/// does not grow with the number of terms.
#[derive(Clone, Copy, Default)]
pub(crate) struct Compensated<T> {
    sum: T,
    lost: T,
}

impl<T: Real> Compensated<T> {
    /// From a sum and what its roundings lost.
    #[inline]
    pub(crate) fn from_parts([sum, lost]: [T; 2]) -> Self {
        Self { sum, lost }
    }

    /// The sum and what its roundings lost.
    #[inline]
    pub(crate) fn parts(self) -> [T; 2] {
        [self.sum, self.lost]
    }

    #[inline]
    pub(crate) fn add(&mut self, x: T) {
        let sum = self.sum + x;
        let (large, small) = if self.sum.abs() < x.abs() { (x, self.sum) } else { (self.sum, x) };
        self.lost += (large - sum) + small;
        self.sum = sum;
    }

    pub(crate) fn value(&self) -> T {
        self.sum + self.lost
    }
}

/// A sum of finite terms that has left the range of `T` is an error, not an answer.
pub(crate) fn finite<T: Real>(x: T) -> Result<T, InferError> {
    if x.abs() < T::INFINITY { Ok(x) } else { Err(InferError::BadValue) }
}
