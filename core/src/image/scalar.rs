//! The scalars of an image: `f32`, and fixed point in 16 or 8 bits.
//!
//! Fixed point. Scores are `i32` in units of `u`, the image's unit. Transitions are 16-bit whole numbers of units, weights of
//! states 16- or 8-bit whole numbers of `u·2ᵏ`. Max-product then needs additions and comparisons only. Rows of state scores are kept
//! within ±[`CLAMP`] units and `δ` within `[-2²⁸, 0]`, so that no sum leaves 32 bits (`settle` has the argument).

use super::packed::{byte, packed_len};
use crate::error::InferError;
use crate::math::maximum;
use crate::score::{LIMIT, Score};
use crate::wide::Compensated;

/// What the weights of an image are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Scalar {
    /// Single precision.
    F32 = 0,
    /// Fixed point, weights in 16 bits.
    I16 = 1,
    /// Fixed point, weights in 8 bits; transitions still in 16.
    I8 = 2,
}

impl Scalar {
    pub(crate) fn from_word(word: u32) -> Option<Self> {
        [Self::F32, Self::I16, Self::I8].into_iter().find(|s| *s as u32 == word)
    }

    /// A word holds `2^shift` weights of states.
    pub(crate) const fn packing(self) -> u32 {
        self as u32
    }

    /// Words of a row of transitions: all scores of coming to one label.
    pub const fn row_len(self, labels: usize) -> usize {
        match self {
            Self::F32 => labels,
            Self::I16 | Self::I8 => packed_len(labels, 1),
        }
    }
}

/// An attribute's value of 1 in fixed point: values are Q16.16.
pub const ONE: i32 = 1 << 16;
/// State scores of an item stay within so many units; what would go beyond is cut off, and said so.
pub const CLAMP: i32 = 1 << 25;
/// A transition that is forbidden, in fixed point.
pub const FORBIDDEN: i16 = i16::MIN;
/// `δ` of a label that nothing leads to.
pub(super) const NONE: i32 = -(1 << 29);
/// Between [`NONE`] with what is added to it in a step, and the lowest of what can be.
pub(super) const THRESHOLD: i32 = -(1 << 28) - (1 << 27);
/// Labellings so far behind the best count as just so far behind.
pub(super) const FLOOR: i32 = -(1 << 28);

/// A kind of weights that an image can hold, and max-product on them.
pub trait Weight: Copy + core::fmt::Debug + 'static {
    /// Its name in an image.
    const SCALAR: Scalar;
    /// What weights and values add up to.
    type Score: Score;
    /// The value of an attribute.
    type Value: Copy + core::fmt::Debug;
    /// Sums of scores over many items.
    type Total: Copy + Default + core::fmt::Debug;
    /// The value 1.
    const ONE: Self::Value;

    /// Whether a value may be used: no NaN, no infinity.
    fn legal_value(value: Self::Value) -> bool;
    /// A value without its sign, as a plain number.
    fn magnitude(value: Self::Value) -> f32;
    /// Whether all words of state weights are weights.
    fn legal_states(words: &[u32]) -> bool;
    /// Whether all words of transitions are scores or forbidden.
    fn legal_transitions(words: &[u32]) -> bool;
    /// Adds `value` times the weight at a place, in units, to a score.
    fn add_product(score: &mut Self::Score, weights: &[u32], at: usize, value: Self::Value, shift: u32);
    /// Brings a row of state scores into range; whether something had to be cut off. NaN and `+inf` are errors.
    fn check_row(row: &mut [Self::Score]) -> Result<bool, InferError>;
    /// `max_i before(i) + transitions(i)` and the first `i` that attains it, where no transition is forbidden.
    fn best(before: &[Self::Score], transitions: &[u32]) -> (Self::Score, u8);
    /// The same where some are.
    fn best_allowed(before: &[Self::Score], transitions: &[u32]) -> (Self::Score, u8);
    /// The sum of a score from before and that of an item.
    fn plus(best: Self::Score, score: Self::Score) -> Self::Score;
    /// Subtracts the largest entry from all and adds it to the total.
    fn settle(row: &mut [Self::Score], total: &mut Self::Total) -> Result<(), InferError>;
    /// The transition at a place of a row, as `f32` in natural logarithms.
    fn transition(row: &[u32], at: usize, unit: f32) -> f32;
    /// A score in natural logarithms.
    fn to_f32(score: Self::Score, unit: f32) -> f32;
    /// A total in natural logarithms.
    fn total_to_f32(total: Self::Total, unit: f32) -> f32;
    /// The constant at a place of a field's tables, in units; forbidden if it is that.
    fn constant(words: &[u32], at: usize) -> Self::Score;
    /// Brings an entry of a field's tables into range that began as this constant; whether something had to be cut off.
    fn confine(entry: &mut Self::Score, constant: impl Fn() -> Self::Score) -> bool;
    /// The score of all factors of a field in natural logarithms.
    fn sum_to_f32(sum: <Self::Score as Score>::Total, unit: f32) -> f32;
}

impl Weight for f32 {
    const SCALAR: Scalar = Scalar::F32;
    type Score = f32;
    type Value = f32;
    /// A sum and what its roundings lost.
    type Total = [f32; 2];
    const ONE: f32 = 1.0;

    #[inline]
    fn legal_value(value: f32) -> bool {
        value.is_finite()
    }

    #[inline]
    fn magnitude(value: f32) -> f32 {
        value.abs()
    }

    #[inline]
    fn legal_states(words: &[u32]) -> bool {
        // Without the sign, infinities and NaN are the largest of all bit patterns.
        let (fours, rest) = words.as_chunks::<4>();
        let mut top = rest.iter().fold(0, |top: u32, w| top.max(w << 1));
        for &[a, b, c, d] in fours {
            top = top.max(a << 1).max(b << 1).max(c << 1).max(d << 1);
        }
        top < f32::INFINITY.to_bits() << 1
    }

    #[inline]
    fn legal_transitions(words: &[u32]) -> bool {
        // By their bits, as all that `open` does: cores without floating point would link its emulation.
        words.iter().all(|&w| w << 1 < f32::INFINITY.to_bits() << 1 || w == f32::NEG_INFINITY.to_bits())
    }

    #[inline]
    fn add_product(score: &mut f32, weights: &[u32], at: usize, value: f32, _: u32) {
        *score += weights.get(at).map_or(0.0, |&w| f32::from_bits(w)) * value;
    }

    #[inline]
    fn check_row(row: &mut [f32]) -> Result<bool, InferError> {
        if row.iter().all(|v| v.is_log_potential()) { Ok(false) } else { Err(InferError::BadValue) }
    }

    #[inline]
    fn best(before: &[f32], transitions: &[u32]) -> (f32, u8) {
        let (mut best, mut from, mut i) = (f32::NEG_INFINITY, 0u32, 0u32);
        let mut put = |d: f32, w: u32| {
            let x = d + f32::from_bits(w);
            if best < x {
                (best, from) = (x, i);
            }
            i = i.wrapping_add(1);
        };
        let (twos, last) = before.as_chunks::<2>();
        let (words, rest) = transitions.as_chunks::<2>();
        for (&[a, b], &[v, w]) in twos.iter().zip(words) {
            put(a, v);
            put(b, w);
        }
        for (&d, &w) in last.iter().zip(rest) {
            put(d, w);
        }
        (best, from as u8)
    }

    #[inline]
    fn best_allowed(before: &[f32], transitions: &[u32]) -> (f32, u8) {
        // Forbidden is `-inf`, which nothing needs to look at.
        Self::best(before, transitions)
    }

    #[inline]
    fn plus(best: f32, score: f32) -> f32 {
        best + score
    }

    fn settle(row: &mut [f32], total: &mut [f32; 2]) -> Result<(), InferError> {
        let top = maximum(row);
        if top == f32::NEG_INFINITY {
            return Err(InferError::ZeroProbability);
        }
        row.iter_mut().for_each(|v| *v -= top);
        let mut sum = Compensated::from_parts(*total);
        sum.add(top);
        *total = sum.parts();
        Ok(())
    }

    #[inline]
    fn transition(row: &[u32], at: usize, _: f32) -> f32 {
        row.get(at).map_or(f32::NEG_INFINITY, |&w| f32::from_bits(w))
    }

    #[inline]
    fn to_f32(score: f32, _: f32) -> f32 {
        score
    }

    #[inline]
    fn total_to_f32(total: [f32; 2], _: f32) -> f32 {
        Compensated::from_parts(total).value()
    }

    #[inline]
    fn constant(words: &[u32], at: usize) -> f32 {
        words.get(at).map_or(0.0, |&w| f32::from_bits(w))
    }

    #[inline]
    fn confine(_: &mut f32, _: impl Fn() -> f32) -> bool {
        // What is too large is infinite, and seen by the graph.
        false
    }

    #[inline]
    fn sum_to_f32(sum: f32, _: f32) -> f32 {
        sum
    }
}

/// What both widths of fixed point share.
pub(super) mod fixed {
    use super::*;

    /// `value` (Q16.16) times `w·2ᵏ` units, rounded to whole units and added.
    #[inline]
    pub(super) fn add_product(score: &mut i32, w: i32, value: i32, shift: u32) {
        let w = w << (shift & 15);
        let product = if value == ONE {
            w
        } else {
            // |w·2ᵏ| < 2³⁰ and |value| ≤ 2³¹; what does not fit 32 bits is far beyond CLAMP.
            let whole = (i64::from(w) * i64::from(value) + i64::from(ONE / 2)) >> 16;
            whole.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32
        };
        *score = score.saturating_add(product);
    }

    #[inline]
    pub(super) fn check_row(row: &mut [i32]) -> bool {
        let mut cut = false;
        for v in row {
            let kept = (*v).clamp(-CLAMP, CLAMP);
            cut |= kept != *v;
            *v = kept;
        }
        cut
    }

    #[inline]
    pub(super) fn confine(entry: &mut i32, constant: impl Fn() -> i32) -> bool {
        // Whatever was added to it, what is forbidden stays so.
        let kept =
            if constant() == i32::NEG_INFINITY { i32::NEG_INFINITY } else { (*entry).clamp(-LIMIT, LIMIT) };
        let cut = kept != *entry && kept != i32::NEG_INFINITY;
        *entry = kept;
        cut
    }

    /// The 16 bits at a place.
    #[inline]
    pub(in crate::image) fn half(words: &[u32], at: usize) -> i16 {
        words.get(at >> 1).map_or(0, |w| (w >> ((at & 1) << 4)) as i16)
    }

    #[inline]
    pub(super) fn best(before: &[i32], transitions: &[u32]) -> (i32, u8) {
        let (mut best, mut from, mut i) = (i32::MIN, 0u32, 0u32);
        let mut put = |d: i32, a: i32, i: u32| {
            let x = d.wrapping_add(a);
            if best < x {
                (best, from) = (x, i);
            }
        };
        let (fours, last) = before.as_chunks::<4>();
        let (pairs, rest) = transitions.as_chunks::<2>();
        for (&[a, b, c, d], &[v, w]) in fours.iter().zip(pairs) {
            put(a, i32::from(v as i16), i);
            put(b, v as i32 >> 16, i.wrapping_add(1));
            put(c, i32::from(w as i16), i.wrapping_add(2));
            put(d, w as i32 >> 16, i.wrapping_add(3));
            i = i.wrapping_add(4);
        }
        // Up to three more, in two words: of which `pairs` has both if there are three.
        let tail = if rest.is_empty() { pairs.get(fours.len()).map_or(rest, |pair| pair) } else { rest };
        for (k, &d) in last.iter().enumerate() {
            put(d, i32::from(half(tail, k)), i.wrapping_add(k as u32));
        }
        (best, from as u8)
    }

    pub(super) fn best_allowed(before: &[i32], transitions: &[u32]) -> (i32, u8) {
        let (mut best, mut from) = (NONE, 0);
        for (i, &d) in before.iter().enumerate() {
            let a = half(transitions, i);
            let x = d.wrapping_add(i32::from(a));
            if a != FORBIDDEN && best < x {
                (best, from) = (x, i as u8);
            }
        }
        (best, from)
    }

    /// Before: a row entry is `s + max_i δ(i) + A(i,j)`.
    ///
    /// With `|s| ≤ 2²⁵`, `|A| ≤ 2¹⁵` and `FLOOR ≤ δ ≤ 0`, what can be lies in `FLOOR ± (2²⁵ + 2¹⁵)` or above, hence above
    /// THRESHOLD; what cannot be comes from NONE and lies at most 2²⁵ + 2¹⁵ above it, hence below. Nothing comes
    /// near the ends of 32 bits.
    pub(super) fn settle(row: &mut [i32], total: &mut i64) -> Result<(), InferError> {
        let top = row.iter().fold(i32::MIN, |top, &v| top.max(v));
        if top < THRESHOLD {
            return Err(InferError::ZeroProbability);
        }
        for v in row {
            *v = if *v < THRESHOLD { NONE } else { v.wrapping_sub(top).max(FLOOR) };
        }
        *total = total.wrapping_add(i64::from(top));
        Ok(())
    }
}

macro_rules! fixed {
    ($t:ty, $scalar:ident, |$words:ident, $at:ident| $weight:expr) => {
        impl Weight for $t {
            const SCALAR: Scalar = Scalar::$scalar;
            type Score = i32;
            /// Q16.16.
            type Value = i32;
            type Total = i64;
            const ONE: i32 = ONE;

            #[inline]
            fn legal_value(_: i32) -> bool {
                true
            }

            #[inline]
            fn magnitude(value: i32) -> f32 {
                value.unsigned_abs() as f32 / ONE as f32
            }

            #[inline]
            fn legal_states(_: &[u32]) -> bool {
                true
            }

            #[inline]
            fn legal_transitions(_: &[u32]) -> bool {
                true
            }

            #[inline]
            fn add_product(score: &mut i32, $words: &[u32], $at: usize, value: i32, shift: u32) {
                fixed::add_product(score, $weight, value, shift);
            }

            #[inline]
            fn check_row(row: &mut [i32]) -> Result<bool, InferError> {
                Ok(fixed::check_row(row))
            }

            #[inline]
            fn best(before: &[i32], transitions: &[u32]) -> (i32, u8) {
                fixed::best(before, transitions)
            }

            fn best_allowed(before: &[i32], transitions: &[u32]) -> (i32, u8) {
                fixed::best_allowed(before, transitions)
            }

            #[inline]
            fn plus(best: i32, score: i32) -> i32 {
                best.wrapping_add(score)
            }

            #[inline]
            fn settle(row: &mut [i32], total: &mut i64) -> Result<(), InferError> {
                fixed::settle(row, total)
            }

            #[inline]
            fn transition(row: &[u32], at: usize, unit: f32) -> f32 {
                match fixed::half(row, at) {
                    FORBIDDEN => f32::NEG_INFINITY,
                    a => f32::from(a) * unit,
                }
            }

            #[inline]
            fn to_f32(score: i32, unit: f32) -> f32 {
                if score < THRESHOLD { f32::NEG_INFINITY } else { score as f32 * unit }
            }

            #[inline]
            fn total_to_f32(total: i64, unit: f32) -> f32 {
                total as f32 * unit
            }

            #[inline]
            fn constant(words: &[u32], at: usize) -> i32 {
                match fixed::half(words, at) {
                    FORBIDDEN => i32::NEG_INFINITY,
                    c => i32::from(c),
                }
            }

            #[inline]
            fn confine(entry: &mut i32, constant: impl Fn() -> i32) -> bool {
                fixed::confine(entry, constant)
            }

            #[inline]
            fn sum_to_f32(sum: i64, unit: f32) -> f32 {
                sum as f32 * unit
            }
        }
    };
}
fixed!(i16, I16, |words, at| i32::from(fixed::half(words, at)));
fixed!(i8, I8, |words, at| i32::from(byte(words, at) as i8));
