//! Scalars and the few functions of them that everything else is made of.
//!
//! [`Real`] is `f32` or `f64`. Its transcendental functions are `libm`'s on every target, also where
//! `std` has faster ones: device and desk then give the same bits.

use crate::score::Score;
use num_traits::{NumAssign, NumCast};

/// A floating-point scalar: `f32` or `f64`.
pub trait Real: Score<Total = Self> + NumAssign + NumCast + core::ops::Neg<Output = Self> {
    /// Distance from 1 to the next number.
    const EPSILON: Self;
    /// Natural logarithms from `-LOG_RANGE` to `LOG_RANGE` survive `exp` as normal numbers.
    const LOG_RANGE: Self;
    /// `e^R`, `e^-R`, `e^(R/2)`, `e^(-R/2)` with the `R` of wide numbers (`wide.rs`: 64 or 512), and `e^-LOG_RANGE`: what
    /// [`exp`](Self::exp) gives, without calling it.
    #[doc(hidden)]
    const POWERS: [Self; 5];
    /// `e^self`.
    fn exp(self) -> Self;
    /// Natural logarithm; `-inf` at 0.
    fn ln(self) -> Self;
    /// `log(1 + self)`, accurate near 0.
    fn ln_1p(self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// Absolute value.
    fn abs(self) -> Self;
    /// Rounds the value of an `f64` (constants, counts) to this type.
    fn from_f64(value: f64) -> Self;
    /// The value as an `f64`.
    fn to_f64(self) -> f64;
}

macro_rules! real {
    ($t:ty, $range:literal, $powers:expr, $exp:path, $ln:path, $ln_1p:path, $sqrt:path) => {
        impl Real for $t {
            const EPSILON: Self = <$t>::EPSILON;
            const LOG_RANGE: Self = $range;
            const POWERS: [Self; 5] = $powers;
            #[inline(always)]
            fn exp(self) -> Self {
                $exp(self)
            }
            #[inline(always)]
            fn ln(self) -> Self {
                $ln(self)
            }
            #[inline(always)]
            fn ln_1p(self) -> Self {
                $ln_1p(self)
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                $sqrt(self)
            }
            #[inline(always)]
            fn abs(self) -> Self {
                <$t>::abs(self)
            }
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as $t
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
        }
    };
}
// The smallest normal numbers are e^-708.4 and e^-87.3, the largest e^709.8 and e^88.7.
real!(
    f64,
    700.0,
    [
        f64::from_bits(0x6e19_4765_04ba_852e),
        f64::from_bits(0x11c4_4109_edb2_0931),
        f64::from_bits(0x5704_1c7a_8814_beba),
        f64::from_bits(0x28d9_7559_56ad_4e9c),
        f64::from_bits(0x00d1_4f2b_0fb9_307f)
    ],
    libm::exp,
    libm::log,
    libm::log1p,
    libm::sqrt
);
real!(
    f32,
    85.0,
    [
        f32::from_bits(0x6da1_2cc2),
        f32::from_bits(0x114b_4ea4),
        f32::from_bits(0x568f_a1fe),
        f32::from_bits(0x2864_2328),
        f32::from_bits(0x0225_86e0)
    ],
    libm::expf,
    libm::logf,
    libm::log1pf,
    libm::sqrtf
);

/// `log(e^a + e^b)` without overflow; `-inf` is the neutral element.
///
/// ```
/// use gibbsite_core::math::log_add_exp;
/// assert!((log_add_exp(1000.0, 1000.0) - (1000.0 + 2f64.ln())).abs() < 1e-12);
/// assert_eq!(log_add_exp(f64::NEG_INFINITY, 3.0), 3.0);
/// ```
#[cfg_attr(target_os = "none", inline(never))]
#[cfg_attr(not(target_os = "none"), inline)]
pub fn log_add_exp<T: Real>(a: T, b: T) -> T {
    let (high, low) = if a < b { (b, a) } else { (a, b) };
    if low == T::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
}

/// `log Σ e^x` over a slice, without overflow; `-inf` for an empty slice.
///
/// ```
/// use gibbsite_core::math::log_sum_exp;
/// let x: [f64; 3] = [-1e4, -1e4, f64::NEG_INFINITY];
/// assert!((log_sum_exp(&x) - (-1e4 + 2f64.ln())).abs() < 1e-12);
/// ```
pub fn log_sum_exp<T: Real>(x: &[T]) -> T {
    let top = maximum(x);
    if top == T::NEG_INFINITY {
        return top;
    }
    let mut sum = T::zero();
    for &v in x {
        sum += (v - top).exp();
    }
    top + sum.ln()
}

/// The largest entry; `-inf` for an empty slice.
#[inline]
pub fn maximum<T: Score>(x: &[T]) -> T {
    x.iter().fold(T::NEG_INFINITY, |m, &v| m.larger(v))
}

/// Position of the largest entry, the first of equals; 0 for an empty slice.
#[inline]
pub fn argmax<T: Real>(x: &[T]) -> usize {
    let mut best = (0, T::NEG_INFINITY);
    for (i, &v) in x.iter().enumerate() {
        if best.1 < v {
            best = (i, v);
        }
    }
    best.0
}

/// Whether all entries are [legal log-potentials](Real::is_log_potential).
pub(crate) fn are_log_potentials<T: Real>(x: &[T]) -> bool {
    if cfg!(target_os = "none") {
        return sums_to_nothing(x);
    }
    // `&` instead of a short circuit: the scan then vectorises.
    x.iter().fold(true, |ok, v| ok & v.is_log_potential())
}

/// [`are_log_potentials`] for a device, where an addition is less than a comparison, with an FPU (one instruction instead of five) and
/// without: `-inf` plus a legal one is `-inf`, plus any other NaN, which it then remains. By eights, or the loop would be as much as
/// the work.
fn sums_to_nothing<T: Real>(x: &[T]) -> bool {
    let (eights, last) = x.as_chunks::<8>();
    let mut sum = T::NEG_INFINITY;
    for &[a, b, c, d, e, f, g, h] in eights {
        sum = sum + a + b + c + d + e + f + g + h;
    }
    last.iter().fold(sum, |sum, &v| sum + v) == T::NEG_INFINITY
}

/// Turns log-weights into probabilities in place and returns `log Σ e^x`; if that is `-inf`, `x` is
/// left as it was.
///
/// ```
/// let mut x = [0.0f64, 0.0, f64::NEG_INFINITY];
/// let log_z = gibbsite_core::math::softmax(&mut x);
/// assert_eq!(x, [0.5, 0.5, 0.0]);
/// assert!((log_z - 2f64.ln()).abs() < 1e-15);
/// ```
pub fn softmax<T: Real>(x: &mut [T]) -> T {
    let top = maximum(x);
    if top == T::NEG_INFINITY {
        return top;
    }
    let mut sum = T::zero();
    for v in x.iter_mut() {
        *v = (*v - top).exp();
        sum += *v;
    }
    for v in x.iter_mut() {
        *v /= sum;
    }
    top + sum.ln()
}

/// `log(1 + e^x)` without overflow.
///
/// ```
/// assert_eq!(gibbsite_core::math::log1p_exp(1000.0), 1000.0);
/// ```
#[inline]
pub fn log1p_exp<T: Real>(x: T) -> T {
    x.larger(T::zero()) + (-x.abs()).exp().ln_1p()
}

/// `1 / (1 + e^-x)` without overflow.
///
/// ```
/// assert_eq!(gibbsite_core::math::sigmoid(0.0), 0.5);
/// assert_eq!(gibbsite_core::math::sigmoid(-1e4), 0.0);
/// ```
#[inline]
pub fn sigmoid<T: Real>(x: T) -> T {
    let e = (-x.abs()).exp();
    let small = e / (T::one() + e);
    if x < T::zero() { small } else { T::one() - small }
}

/// `sign(x) · max(|x| - by, 0)`: the minimiser of `½(z - x)² + by·|z|`.
///
/// ```
/// use gibbsite_core::math::soft_threshold;
/// assert_eq!(soft_threshold(3.0, 1.0), 2.0);
/// assert_eq!(soft_threshold(-0.5, 1.0), 0.0);
/// ```
#[inline]
pub fn soft_threshold<T: Real>(x: T, by: T) -> T {
    if by < x {
        x - by
    } else if x < -by {
        x + by
    } else {
        T::zero()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn powers_are_what_exp_gives() {
        fn all<T: Real>(r: f64) {
            let logs = [r, -r, r / 2.0, -r / 2.0, -T::LOG_RANGE.to_f64()];
            for (power, log) in T::POWERS.into_iter().zip(logs) {
                assert_eq!(power, T::from_f64(log).exp(), "e^{log}");
            }
        }
        all::<f32>(64.0);
        all::<f64>(512.0);
    }

    /// Both forms of the check, with each kind of number at each place of rows of all lengths.
    #[test]
    fn a_sum_finds_what_is_not_a_log_potential() {
        fn all<T: Real>(kinds: &[T]) {
            let rows = (0..20usize).flat_map(|length| (0..length).map(move |at| (length, at)));
            for (length, at) in rows {
                for background in [T::zero(), T::NEG_INFINITY, T::LOG_RANGE] {
                    for &kind in kinds {
                        let entry = |i| if i == at { kind } else { background };
                        let row: Vec<T> = (0..length).map(entry).collect();
                        let legal = kind.is_log_potential();
                        assert_eq!(
                            (are_log_potentials(&row), sums_to_nothing(&row)),
                            (legal, legal),
                            "{row:?}"
                        );
                    }
                }
            }
            assert!(are_log_potentials::<T>(&[]) && sums_to_nothing::<T>(&[]));
        }
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        all(&[
            inf,
            -inf,
            nan,
            -nan,
            f32::from_bits(0x7f80_0001),
            f32::MAX,
            f32::MIN,
            f32::from_bits(1),
            -0.0,
        ]);
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        all(&[
            inf,
            -inf,
            nan,
            -nan,
            f64::from_bits(0x7ff0 << 48 | 1),
            f64::MAX,
            f64::MIN,
            f64::from_bits(1),
            -0.0,
        ]);
    }
}
