//! Exponentiated scores of one row or table.

use super::row::extent;
use crate::arena::rows;
use crate::math::Real;

/// How a row or table of logs was exponentiated: `e^{x - shift}`, nonzero entries at least `floor`, all
/// at most 1. `floor = 0` if its range is too wide for that, then `shift = 0` and nothing was written.
#[derive(Clone, Copy)]
pub(super) struct Reach<T> {
    pub(super) shift: T,
    pub(super) floor: T,
}

/// Writes the exponentials; the floor is one of them, so it costs no further `exp`.
#[cfg_attr(target_os = "none", inline(never))]
#[cfg_attr(not(target_os = "none"), inline)]
pub(super) fn exponentiate<T: Real>(log: &[T], out: &mut [T]) -> Reach<T> {
    if cfg!(target_os = "none") {
        return exponentiate_one_by_one(log, out);
    }
    let (top, low) = extent(log, T::NEG_INFINITY);
    if top == T::NEG_INFINITY {
        out.fill(T::zero());
        return Reach { shift: T::zero(), floor: T::one() };
    }
    if T::LOG_RANGE < top - low {
        return Reach { shift: T::zero(), floor: T::zero() };
    }
    let mut floor = T::one();
    for (o, &x) in out.iter_mut().zip(log) {
        *o = (x - top).exp();
        floor = if x == low { *o } else { floor };
    }
    Reach { shift: top, floor }
}

/// [`exponentiate`] for a device, where a comparison in the loop costs more than one more exponential.
#[inline(always)]
fn exponentiate_one_by_one<T: Real>(log: &[T], out: &mut [T]) -> Reach<T> {
    let (top, low) = extent(log, T::NEG_INFINITY);
    if top == T::NEG_INFINITY {
        out.fill(T::zero());
        return Reach { shift: T::zero(), floor: T::one() };
    }
    if T::LOG_RANGE < top - low {
        return Reach { shift: T::zero(), floor: T::zero() };
    }
    for (o, &x) in out.iter_mut().zip(log) {
        *o = (x - top).exp();
    }
    // The same number either way; in a long row, taking the exponential once more is less than looking for it.
    let short = if log.len() < 20 { log } else { &[] };
    let floor = match short.iter().position(|&x| x == low) {
        Some(at) => out.get(at).copied().unwrap_or(T::one()),
        None => (low - top).exp(),
    };
    Reach { shift: top, floor }
}

/// `e^{s - max s}`, or zeros if the range is too wide.
pub(super) fn weigh<T: Real>(scores: &[T], out: &mut [T]) {
    if exponentiate(scores, out).floor == T::zero() {
        out.fill(T::zero());
    }
}

/// Whether tables are turned around for the way back: a desk's vectors go along rows.
pub(super) const TURNS: bool = !cfg!(target_os = "none");

/// Turns a table around, where that is wanted.
pub(super) fn turn<T: Copy>(table: &[T], out: &mut [T], labels: usize) {
    if TURNS {
        transpose(table, out, labels);
    }
}

#[inline(never)]
fn transpose<T: Copy>(table: &[T], out: &mut [T], labels: usize) {
    for (i, row) in rows(table, labels).enumerate() {
        for (o, &v) in out.iter_mut().skip(i).step_by(labels.max(1)).zip(row) {
            *o = v;
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    /// Both forms of the loop on rows of all lengths, with forbidden entries and without: the same bits.
    #[test]
    fn one_by_one_gives_the_same_bits() {
        let mut seed = 1u32;
        let mut next = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            seed >> 8
        };
        for length in 0..120usize {
            for forbidden in [0, 1, 3, 7] {
                for width in [4.0f32, 300.0] {
                    let log: Vec<f32> = (0..length)
                        .map(|_| match next() {
                            x if forbidden != 0 && x % forbidden == 0 => f32::NEG_INFINITY,
                            x => (x as f32 / (1 << 24) as f32 - 0.5) * width,
                        })
                        .collect();
                    let (mut a, mut b) = (std::vec![9.0; length], std::vec![9.0; length]);
                    let (x, y) = (exponentiate(&log, &mut a), exponentiate_one_by_one(&log, &mut b));
                    let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                    assert_eq!(bits(&[x.shift, x.floor]), bits(&[y.shift, y.floor]), "{log:?}");
                    assert_eq!(bits(&a), bits(&b), "{log:?}");
                    for nothing in [f32::NEG_INFINITY, 0.0] {
                        let (x, y) =
                            (extent(&log, nothing), super::super::row::extent_by_fours(&log, nothing));
                        assert_eq!(bits(&[x.0, x.1]), bits(&[y.0, y.1]), "{log:?}");
                    }
                }
            }
        }
    }
}
