//! Mixed-radix index arithmetic: how a small table lies inside a larger one.
//!
//! A *pattern* lists the axes of the larger table from the slowest to the fastest as pairs
//! `[count, stride]`; `stride` is how far one step along the axis moves in the smaller table, 0 where it
//! lacks that variable. Neighbouring axes that move alike are merged, so that the two innermost
//! entries describe long contiguous runs. [`spread`] and [`fold`] work on those runs with plain slice
//! loops (which vectorise) and touch an index only between them.

use crate::table::MAX_SCOPE;

/// One axis of a pattern: `[count, stride]`.
pub type Axis = [u32; 2];

/// Axes of a pattern that is being made.
pub type Axes = heapless::Vec<Axis, MAX_SCOPE>;

/// Appends an axis, merging it with the one before it if they move alike; axes of length 1 vanish.
/// `false` if there is no room.
pub fn push<const N: usize>(axes: &mut heapless::Vec<Axis, N>, count: u32, stride: u32) -> bool {
    count == 1 || merge(axes.last_mut(), count, stride) || axes.push([count, stride]).is_ok()
}

/// Makes one axis of two neighbours that move alike, if they do.
#[inline]
fn merge(before: Option<&mut Axis>, count: u32, stride: u32) -> bool {
    match before {
        // (n, n'·s') followed by (n', s') is one axis (n·n', s'); two absent axes likewise.
        Some([n, s]) if *s == stride.wrapping_mul(count) => {
            *n = n.saturating_mul(count);
            *s = stride;
            true
        }
        _ => false,
    }
}

/// Writes the pattern of these axes, as [`push`] makes it, into borrowed memory; `None` if that is too short, or at the first
/// axis that is `None`.
pub(crate) fn write(memory: &mut [Axis], axes: impl Iterator<Item = Option<Axis>>) -> Option<&[Axis]> {
    let mut used = 0;
    for axis in axes {
        let [count, stride] = axis?;
        let (done, room) = memory.split_at_mut_checked(used)?;
        if count != 1 && !merge(done.last_mut(), count, stride) {
            *room.first_mut()? = [count, stride];
            used += 1;
        }
    }
    memory.get(..used)
}

/// The pattern of one variable.
pub(crate) type Single = heapless::Vec<Axis, 3>;

/// The pattern of one variable inside a table: so many configurations of the variables before it, its arity, and so many of
/// those after it.
pub(crate) fn single(before: u32, card: u32, after: u32) -> Single {
    let mut axes = Single::new();
    for (count, stride) in [(before, 0), (card, 1), (after, 0)] {
        // Three axes have room.
        push(&mut axes, count, stride);
    }
    axes
}

/// Sizes of the larger and the smaller table that a pattern needs, or `None` if they overflow or the
/// pattern is not one (a count of 0, too many axes).
pub fn extent(axes: &[Axis]) -> Option<(usize, usize)> {
    if axes.len() > MAX_SCOPE {
        return None;
    }
    let (mut big, mut last) = (1usize, 0usize);
    for &[count, stride] in axes {
        big = big.checked_mul(count as usize)?;
        last = last.checked_add((count as usize).checked_sub(1)?.checked_mul(stride as usize)?)?;
    }
    Some((big, last.checked_add(1)?))
}

/// Steps through the configurations of some axes, the last fastest, keeping the smaller table's offset.
///
/// Only the last axis has a digit of its own. When it comes round, the others' digits follow from how often it has: that costs
/// a division, but no memory, however many axes there are.
#[derive(Clone, Debug, Default)]
pub struct Odometer {
    digit: u32,
    rounds: usize,
    /// Offset in the smaller table.
    pub offset: usize,
}

impl Odometer {
    /// To the next configuration; after the last one, back to the first.
    #[inline(always)]
    pub fn step(&mut self, axes: &[Axis]) {
        let Some((&[count, stride], before)) = axes.split_last() else { return };
        self.digit += 1;
        self.offset = self.offset.wrapping_add(stride as usize);
        if self.digit < count {
            return;
        }
        self.digit = 0;
        self.offset = self.offset.wrapping_sub((count as usize).wrapping_mul(stride as usize));
        let mut number = self.rounds;
        self.rounds += 1;
        for &[count, stride] in before.iter().rev() {
            let quotient = number.checked_div(count as usize).unwrap_or(0);
            let digit = number.wrapping_sub(quotient.wrapping_mul(count as usize));
            if digit + 1 < count as usize {
                self.offset = self.offset.wrapping_add(stride as usize);
                return;
            }
            self.offset = self.offset.wrapping_sub(digit.wrapping_mul(stride as usize));
            number = quotient;
        }
        self.rounds = 0;
    }
}

/// The two innermost axes, apart from the rest: `(outer, [n2, s2], [n1, s1])`.
#[inline(always)]
fn split(axes: &[Axis]) -> (&[Axis], Axis, Axis) {
    match axes {
        [] => (&[], [1, 0], [1, 0]),
        [inner] => (&[], [1, 0], *inner),
        [outer @ .., middle, inner] => (outer, *middle, *inner),
    }
}

/// For each entry `b` of `big` and the entry `s` of `small` that it lies over: `op(b, s)`.
///
/// `big` and `small` must be at least as long as [`extent`] says; entries beyond are left alone and
/// missing ones skipped.
#[inline(always)]
pub fn spread<T: Copy>(axes: &[Axis], big: &mut [T], small: &[T], op: impl Fn(&mut T, T) + Copy) {
    if cfg!(target_os = "none") {
        compact::spread(axes, big, small, op);
    } else {
        spread_fast(axes, big, small, op);
    }
}

#[inline(always)]
fn spread_fast<T: Copy>(axes: &[Axis], big: &mut [T], small: &[T], op: impl Fn(&mut T, T) + Copy) {
    let (outer, [n2, s2], [n1, s1]) = split(axes);
    let (n2, s2, n1, s1) = (n2 as usize, s2 as usize, n1 as usize, s1 as usize);
    let mut at = Odometer::default();
    for tile in big.chunks_exact_mut((n1 * n2).max(1)) {
        let Some(from) = small.get(at.offset..) else { return };
        match (s2, s1, n1) {
            (1, 0, 2) => spread_held::<T, 2>(tile, from, op),
            (1, 0, 3) => spread_held::<T, 3>(tile, from, op),
            (1, 0, 4) => spread_held::<T, 4>(tile, from, op),
            (1, 0, 8) => spread_held::<T, 8>(tile, from, op),
            (0, 1, 2) => spread_repeated::<T, 2>(tile, from, op),
            (0, 1, 4) => spread_repeated::<T, 4>(tile, from, op),
            (0, 1, 8) => spread_repeated::<T, 8>(tile, from, op),
            (_, 1, _) => {
                for (i, row) in tile.chunks_exact_mut(n1.max(1)).enumerate() {
                    for (b, &s) in row.iter_mut().zip(from.iter().skip(i * s2)) {
                        op(b, s);
                    }
                }
            }
            (0, 0, _) => {
                if let Some(&s) = from.first() {
                    for b in tile {
                        op(b, s);
                    }
                }
            }
            (_, 0, _) => {
                for (row, &s) in tile.chunks_exact_mut(n1.max(1)).zip(from.iter().step_by(s2.max(1))) {
                    for b in row {
                        op(b, s);
                    }
                }
            }
            _ => {
                for (i, row) in tile.chunks_exact_mut(n1.max(1)).enumerate() {
                    for (b, &s) in row.iter_mut().zip(from.iter().skip(i * s2).step_by(s1.max(1))) {
                        op(b, s);
                    }
                }
            }
        }
        at.step(outer);
    }
}

/// Entry `i` of `from` lies under entries `N·i .. N·(i+1)` of the tile.
#[inline(always)]
fn spread_held<T: Copy, const N: usize>(tile: &mut [T], from: &[T], op: impl Fn(&mut T, T) + Copy) {
    for (row, &s) in tile.as_chunks_mut::<N>().0.iter_mut().zip(from) {
        for b in row {
            op(b, s);
        }
    }
}

/// The first `N` entries of `from` lie under every row of `N` entries of the tile.
#[inline(always)]
fn spread_repeated<T: Copy, const N: usize>(tile: &mut [T], from: &[T], op: impl Fn(&mut T, T) + Copy) {
    let Some(&head) = from.first_chunk::<N>() else { return };
    for row in tile.as_chunks_mut::<N>().0 {
        for (b, s) in row.iter_mut().zip(head) {
            op(b, s);
        }
    }
}

/// For each entry `s` of `small` and the entries `b` of `big` that lie over it: `s = plus(s, b)`.
///
/// The order of the additions depends only on the pattern. Bounds as in [`spread`].
#[inline(always)]
pub fn fold<T: Copy>(axes: &[Axis], big: &[T], small: &mut [T], plus: impl Fn(T, T) -> T + Copy) {
    if cfg!(target_os = "none") {
        compact::fold(axes, big, small, plus);
    } else {
        fold_fast(axes, big, small, plus);
    }
}

#[inline(always)]
fn fold_fast<T: Copy>(axes: &[Axis], big: &[T], small: &mut [T], plus: impl Fn(T, T) -> T + Copy) {
    let (outer, [n2, s2], [n1, s1]) = split(axes);
    let (n2, s2, n1, s1) = (n2 as usize, s2 as usize, n1 as usize, s1 as usize);
    let mut at = Odometer::default();
    for tile in big.chunks_exact((n1 * n2).max(1)) {
        let Some(into) = small.get_mut(at.offset..) else { return };
        match (s2, s1, n1) {
            (1, 0, 2) => fold_held::<T, 2>(tile, into, plus),
            (1, 0, 3) => fold_held::<T, 3>(tile, into, plus),
            (1, 0, 4) => fold_held::<T, 4>(tile, into, plus),
            (1, 0, 8) => fold_held::<T, 8>(tile, into, plus),
            (0, 1, 2) => fold_repeated::<T, 2>(tile, into, plus),
            (0, 1, 4) => fold_repeated::<T, 4>(tile, into, plus),
            (0, 1, 8) => fold_repeated::<T, 8>(tile, into, plus),
            (_, 1, _) => {
                for (i, row) in tile.chunks_exact(n1.max(1)).enumerate() {
                    for (&b, s) in row.iter().zip(into.iter_mut().skip(i * s2)) {
                        *s = plus(*s, b);
                    }
                }
            }
            (0, 0, _) => {
                if let (Some(sum), Some(s)) = (fold_row(tile, plus), into.first_mut()) {
                    *s = plus(*s, sum);
                }
            }
            (_, 0, _) => {
                for (row, s) in tile.chunks_exact(n1.max(1)).zip(into.iter_mut().step_by(s2.max(1))) {
                    if let Some(sum) = fold_row(row, plus) {
                        *s = plus(*s, sum);
                    }
                }
            }
            _ => {
                for (i, row) in tile.chunks_exact(n1.max(1)).enumerate() {
                    for (&b, s) in row.iter().zip(into.iter_mut().skip(i * s2).step_by(s1.max(1))) {
                        *s = plus(*s, b);
                    }
                }
            }
        }
        at.step(outer);
    }
}

#[inline(always)]
fn fold_held<T: Copy, const N: usize>(tile: &[T], into: &mut [T], plus: impl Fn(T, T) -> T + Copy) {
    for (row, s) in tile.as_chunks::<N>().0.iter().zip(into) {
        if let [first, rest @ ..] = row.as_slice() {
            let sum = rest.iter().fold(*first, |a, &b| plus(a, b));
            *s = plus(*s, sum);
        }
    }
}

#[inline(always)]
fn fold_repeated<T: Copy, const N: usize>(tile: &[T], into: &mut [T], plus: impl Fn(T, T) -> T + Copy) {
    let Some(head) = into.first_chunk_mut::<N>() else { return };
    let mut sums = *head;
    for row in tile.as_chunks::<N>().0 {
        for (s, &b) in sums.iter_mut().zip(row) {
            *s = plus(*s, b);
        }
    }
    *head = sums;
}

/// Sum of a row by eight running sums, so that it vectorises and rounds less than a single one.
#[inline(always)]
fn fold_row<T: Copy>(row: &[T], plus: impl Fn(T, T) -> T + Copy) -> Option<T> {
    let (head, tail) = row.as_chunks::<8>();
    let mut total = None;
    if let [first, rest @ ..] = head {
        let mut lanes = *first;
        for chunk in rest {
            for (lane, &b) in lanes.iter_mut().zip(chunk) {
                *lane = plus(*lane, b);
            }
        }
        let [a, b, c, d, e, f, g, h] = lanes;
        total = Some(plus(plus(plus(a, e), plus(c, g)), plus(plus(b, f), plus(d, h))));
    }
    tail.iter().fold(total, |t, &b| Some(t.map_or(b, |t| plus(t, b))))
}

/// The same loops for a device: no vectors, so no cases of their own for short rows, and a quarter of the stack. The order of the
/// additions, and with it every bit, is that of the others.
mod compact {
    use super::{Axis, Odometer, split};

    #[inline]
    pub(super) fn spread<T: Copy>(axes: &[Axis], big: &mut [T], small: &[T], op: impl Fn(&mut T, T) + Copy) {
        let (outer, [n2, s2], [n1, s1]) = split(axes);
        let (mut at, mut row, mut from) = (Odometer::default(), 0, 0);
        for part in big.chunks_exact_mut((n1 as usize).max(1)) {
            let mut i = from;
            for b in part {
                if let Some(&s) = small.get(i) {
                    op(b, s);
                }
                i += s1 as usize;
            }
            row += 1;
            from += s2 as usize;
            if row == n2 {
                at.step(outer);
                (row, from) = (0, at.offset);
            }
        }
    }

    #[inline]
    pub(super) fn fold<T: Copy>(axes: &[Axis], big: &[T], small: &mut [T], plus: impl Fn(T, T) -> T + Copy) {
        let (outer, [mut n2, mut s2], [mut n1, s1]) = split(axes);
        // Which rows are summed by one running sum, and which by eight.
        let one = s1 == 0 && s2 == 1 && matches!(n1, 2 | 3 | 4 | 8);
        if s1 == 0 && s2 == 0 {
            // All of a tile is one row.
            (n1, n2, s2) = (n1 * n2, 1, 1);
        }
        let (mut at, mut row, mut into) = (Odometer::default(), 0, 0);
        for part in big.chunks_exact((n1 as usize).max(1)) {
            if s1 == 0 {
                let sum = if one { fold_lane(part, 1, plus) } else { fold_row(part, plus) };
                if let (Some(sum), Some(s)) = (sum, small.get_mut(into)) {
                    *s = plus(*s, sum);
                }
            } else {
                let mut i = into;
                for &b in part {
                    if let Some(s) = small.get_mut(i) {
                        *s = plus(*s, b);
                    }
                    i += s1 as usize;
                }
            }
            row += 1;
            into += s2 as usize;
            if row == n2 {
                at.step(outer);
                (row, into) = (0, at.offset);
            }
        }
    }

    /// The sum of every `step`th entry, one after the other.
    #[inline]
    fn fold_lane<T: Copy>(row: &[T], step: usize, plus: impl Fn(T, T) -> T + Copy) -> Option<T> {
        let (mut sum, mut i) = (*row.first()?, step);
        while let Some(&b) = row.get(i) {
            sum = plus(sum, b);
            i += step;
        }
        Some(sum)
    }

    /// As the other `fold_row`, one running sum after the other instead of side by side.
    #[inline(never)]
    fn fold_row<T: Copy>(row: &[T], plus: impl Fn(T, T) -> T + Copy) -> Option<T> {
        let (head, tail) = row.split_at_checked(row.len() & !7)?;
        let (mut whole, mut half, mut pair) = (None, None, None);
        if !head.is_empty() {
            // ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)), as the branches of a tree.
            for n in 0..8usize {
                let lane = (n & 1) * 4 + (n & 2) + (n >> 2);
                let mut sum = fold_lane(head.get(lane..)?, 8, plus)?;
                for level in [&mut pair, &mut half, &mut whole] {
                    match level.take() {
                        None => {
                            *level = Some(sum);
                            break;
                        }
                        Some(before) => sum = plus(before, sum),
                    }
                }
                if n == 7 {
                    whole = Some(sum);
                }
            }
        }
        for &b in tail {
            whole = Some(whole.map_or(b, |t| plus(t, b)));
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    /// Both forms of the loops on patterns of all kinds: the same bits.
    #[test]
    fn compact_loops_give_the_same_bits() {
        let mut seed = 1u32;
        let mut next = |n: u32| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 16) % n
        };
        for _ in 0..20_000 {
            let mut axes = Axes::new();
            for _ in 0..next(5) {
                let mut one_of = |list: [u32; 8]| list.get(next(8) as usize).copied().unwrap_or(1);
                let (count, stride) = (one_of([1, 2, 3, 4, 5, 8, 9, 17]), one_of([0, 0, 1, 1, 2, 3, 8, 16]));
                push(&mut axes, count, stride);
            }
            let Some((large, needed)) = extent(&axes).filter(|e| e.0 <= 4096) else { continue };
            let mut values =
                |n: usize| -> Vec<f32> { (0..n).map(|_| next(65_536) as f32 / 65_536.0 - 0.5).collect() };
            let (big, small) = (values(large), values(needed));
            let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            let (mut a, mut b) = (big.clone(), big.clone());
            spread_fast(&axes, &mut a, &small, |b, s| *b = *b * s + s);
            compact::spread(&axes, &mut b, &small, |b, s| *b = *b * s + s);
            assert_eq!(bits(&a), bits(&b), "{axes:?}");
            let (mut a, mut b) = (small.clone(), small);
            fold_fast(&axes, &big, &mut a, |s, b| s + b);
            compact::fold(&axes, &big, &mut b, |s, b| s + b);
            assert_eq!(bits(&a), bits(&b), "{axes:?}");
        }
    }
}
