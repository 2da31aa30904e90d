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
pub fn push(axes: &mut Axes, count: u32, stride: u32) -> bool {
    if count == 1 {
        return true;
    }
    match axes.last_mut() {
        // (n, n'·s') followed by (n', s') is one axis (n·n', s'); two absent axes likewise.
        Some([n, s]) if *s == stride.wrapping_mul(count) => {
            *n = n.saturating_mul(count);
            *s = stride;
            true
        }
        _ => axes.push([count, stride]).is_ok(),
    }
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
#[derive(Clone, Debug)]
pub struct Odometer {
    digits: [u32; MAX_SCOPE],
    /// Offset in the smaller table.
    pub offset: usize,
}

impl Default for Odometer {
    fn default() -> Self {
        Self { digits: [0; MAX_SCOPE], offset: 0 }
    }
}

impl Odometer {
    /// To the next configuration; after the last one, back to the first.
    #[inline(always)]
    pub fn step(&mut self, axes: &[Axis]) {
        for (&[count, stride], digit) in axes.iter().rev().zip(self.digits.iter_mut()) {
            *digit += 1;
            self.offset = self.offset.wrapping_add(stride as usize);
            if *digit < count {
                return;
            }
            *digit = 0;
            self.offset = self.offset.wrapping_sub((count as usize).wrapping_mul(stride as usize));
        }
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
