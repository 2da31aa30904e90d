//! What log-potentials can be: floating point, or whole units for cores without it.
//!
//! A table holds scores; max-product, and ascent by one variable, only add and compare them, and so do for every kind of score what they
//! do for floats. Sums of exponentials need more: [`Real`](crate::math::Real), or the [`LogAdd`](crate::log_add::LogAdd) table of fixed point.
//!
//! # Fixed point
//! An `i32` counts units, `i32::MIN` is forbidden, and others are within ±[`LIMIT`]. Up to [`Score::MOST`] of them may be added, and are
//! then still told from what is forbidden: `63·2²⁴ < 2³⁰`, and `-2³¹ + 62·2²⁴ < -2³⁰`, where what is forbidden begins. Messages are at most 0 and
//! at least `-2²⁶` (or forbidden), so that the nine of a clique that hears from eight children and from above add up to more than
//! `-9·2²⁶ > -2³⁰`. What is below that floor counts as just so far behind: `2²⁶` units are 128 times the largest weight that 16 bits with
//! the largest [shift](crate::image::Scales::shift) can hold.

use crate::infer::loopy::LARGEST_ENTRY;

/// A number that log-potentials can be: `f32`, `f64`, or `i32` in units. The default is 0.
pub trait Score: Copy + PartialOrd + Default + core::fmt::Debug + Send + Sync + 'static {
    /// What many of them add up to.
    type Total: Copy + Default + PartialOrd + core::fmt::Debug;
    /// Forbidden: whatever is added to it.
    const NEG_INFINITY: Self;
    /// Above all scores, and none itself.
    const INFINITY: Self;
    /// One, to count with.
    const ONE: Self;
    /// How many may be added.
    const MOST: usize;

    /// The score of both.
    fn plus(self, other: Self) -> Self;
    /// How far a sum is behind the best one; forbidden if it is a sum with something forbidden.
    fn behind(self, best: Self) -> Self;
    /// Whether a sum has something forbidden in it.
    fn is_forbidden(self) -> bool;
    /// Whether this is a legal log-potential: what is forbidden is one, NaN and what is too large are not.
    fn is_log_potential(self) -> bool;
    /// Whether messages of belief propagation, and ascent, may have this in them.
    fn is_moderate(self) -> bool;
    /// Whether sums of these, and differences of such sums, stay numbers.
    fn add_up<'t>(scores: impl Iterator<Item = &'t Self>) -> bool;
    /// Adds it to many.
    fn add_to(self, total: &mut Self::Total);

    /// The larger of two numbers that are not NaN.
    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        if self < other { other } else { self }
    }

    /// The smaller of two numbers that are not NaN.
    #[inline(always)]
    fn smaller(self, other: Self) -> Self {
        if other < self { other } else { self }
    }
}

/// Scores in units are within ± this.
pub const LIMIT: i32 = 1 << 24;
/// Sums at or below are forbidden.
pub(crate) const THRESHOLD: i32 = -(1 << 30);
/// Behind the best by at most this, in messages.
pub(crate) const FLOOR: i32 = -(1 << 26);

macro_rules! float {
    ($t:ty) => {
        impl Score for $t {
            type Total = Self;
            const NEG_INFINITY: Self = <$t>::NEG_INFINITY;
            const INFINITY: Self = <$t>::INFINITY;
            const ONE: Self = 1.0;
            const MOST: usize = usize::MAX;

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }

            #[inline(always)]
            fn behind(self, best: Self) -> Self {
                self - best
            }

            #[inline(always)]
            fn is_forbidden(self) -> bool {
                self == <$t>::NEG_INFINITY
            }

            #[inline(always)]
            fn is_log_potential(self) -> bool {
                self < <$t>::INFINITY
            }

            #[inline(always)]
            fn is_moderate(self) -> bool {
                self == <$t>::NEG_INFINITY || self.abs() <= LARGEST_ENTRY as $t
            }

            #[inline(always)]
            fn add_up<'t>(scores: impl Iterator<Item = &'t Self>) -> bool {
                let mut magnitude: Self = 0.0;
                for v in scores {
                    if v.abs() < <$t>::INFINITY {
                        magnitude += v.abs();
                    }
                }
                // No such number is beyond a few times this.
                magnitude * 8.0 < <$t>::INFINITY
            }

            #[inline(always)]
            fn add_to(self, total: &mut Self) {
                *total += self;
            }
        }
    };
}
float!(f32);
float!(f64);

impl Score for i32 {
    type Total = i64;
    const NEG_INFINITY: Self = Self::MIN;
    const INFINITY: Self = Self::MAX;
    const ONE: Self = 1;
    const MOST: usize = 63;

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.saturating_add(other)
    }

    #[inline(always)]
    fn behind(self, best: Self) -> Self {
        if self.is_forbidden() { Self::MIN } else { self.wrapping_sub(best).max(FLOOR) }
    }

    #[inline(always)]
    fn is_forbidden(self) -> bool {
        self <= THRESHOLD
    }

    #[inline(always)]
    fn is_log_potential(self) -> bool {
        self == Self::MIN || (-LIMIT..=LIMIT).contains(&self)
    }

    #[inline(always)]
    fn is_moderate(self) -> bool {
        self.is_log_potential()
    }

    #[inline(always)]
    fn add_up<'t>(_: impl Iterator<Item = &'t Self>) -> bool {
        // By [`MOST`](Score::MOST), and the totals are longer.
        true
    }

    #[inline(always)]
    fn add_to(self, total: &mut i64) {
        *total = total.wrapping_add(i64::from(self));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_units_are_told_from_forbidden_ones() {
        let all = |x: i32, n: usize| (0..n).fold(0i32, |sum, _| sum.plus(x));
        assert!(!all(-LIMIT, i32::MOST).is_forbidden());
        assert_eq!(all(LIMIT, i32::MOST), 63 << 24);
        assert!(all(LIMIT, i32::MOST - 1).plus(i32::NEG_INFINITY).is_forbidden());
        assert!(i32::NEG_INFINITY.plus(all(LIMIT, i32::MOST - 1)).is_forbidden());
        assert!(all(i32::NEG_INFINITY, 9).is_forbidden());
        // The messages of a clique: eight children and one from above.
        assert!(!all(FLOOR, 9).is_forbidden());
        assert!(all(FLOOR, 8).plus(i32::NEG_INFINITY).is_forbidden());
        // Behind the best, wherever that is.
        assert_eq!(all(-LIMIT, i32::MOST).behind(all(LIMIT, i32::MOST)), FLOOR);
        assert_eq!(7.behind(9), -2);
        assert_eq!(i32::MIN.plus(5).behind(9), i32::NEG_INFINITY);
    }
}
