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

/// How one variable lies inside a table: so many configurations of the variables before it, its arity, and so many of those
/// after it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Single {
    pub(crate) before: u32,
    pub(crate) card: u32,
    pub(crate) after: u32,
}

impl Single {
    /// As a pattern.
    fn axes(self) -> heapless::Vec<Axis, 3> {
        let mut axes = heapless::Vec::new();
        for (count, stride) in [(self.before, 0), (self.card, 1), (self.after, 0)] {
            // Three axes have room.
            push(&mut axes, count, stride);
        }
        axes
    }

    /// [`spread`] over the variable's table.
    #[inline(always)]
    pub(crate) fn spread<T: Copy>(self, big: &mut [T], small: &[T], op: impl Fn(&mut T, T) + Copy) {
        if cfg!(target_os = "none") {
            compact::spread_single(self, big, small, op);
        } else {
            spread_fast(&self.axes(), big, small, op);
        }
    }

    /// [`fold`] onto the variable's table.
    #[inline(always)]
    pub(crate) fn fold<T: Copy>(self, big: &[T], small: &mut [T], plus: impl Fn(T, T) -> T + Copy) {
        if cfg!(target_os = "none") {
            compact::fold_single(self, big, small, plus);
        } else {
            fold_fast(&self.axes(), big, small, plus, |row| fold_row(row, plus));
        }
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
        compact::fold(axes, big, small, plus, |row| compact::fold_row(row, plus));
    } else {
        fold_fast(axes, big, small, plus, |row| fold_row(row, plus));
    }
}

/// [`fold`] for sums that have a way of their own for the entries that lie one after the other over the same one.
#[inline(always)]
pub(crate) fn fold_rows<T: Copy>(
    axes: &[Axis],
    big: &[T],
    small: &mut [T],
    plus: impl Fn(T, T) -> T + Copy,
    row: impl Fn(&[T]) -> Option<T> + Copy,
) {
    if cfg!(target_os = "none") {
        compact::fold(axes, big, small, plus, row);
    } else {
        fold_fast(axes, big, small, plus, row);
    }
}

#[inline(always)]
fn fold_fast<T: Copy>(
    axes: &[Axis],
    big: &[T],
    small: &mut [T],
    plus: impl Fn(T, T) -> T + Copy,
    sum_row: impl Fn(&[T]) -> Option<T> + Copy,
) {
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
                if let (Some(sum), Some(s)) = (sum_row(tile), into.first_mut()) {
                    *s = plus(*s, sum);
                }
            }
            (_, 0, _) => {
                for (row, s) in tile.chunks_exact(n1.max(1)).zip(into.iter_mut().step_by(s2.max(1))) {
                    if let Some(sum) = sum_row(row) {
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
    use super::{Axis, Single};

    /// Where a row begins in the smaller table: its number's digits, the last axis fastest. A division an axis, but nothing is kept
    /// between rows.
    #[inline(never)]
    fn offset(axes: &[Axis], mut number: usize) -> usize {
        let mut offset = 0usize;
        for &[count, stride] in axes.iter().rev() {
            let quotient = number.checked_div(count as usize).unwrap_or(0);
            let digit = number.wrapping_sub(quotient.wrapping_mul(count as usize));
            offset = offset.wrapping_add(digit.wrapping_mul(stride as usize));
            number = quotient;
        }
        offset
    }

    #[inline]
    pub(super) fn spread<T: Copy>(axes: &[Axis], big: &mut [T], small: &[T], op: impl Fn(&mut T, T) + Copy) {
        let (&[count, stride], outer) = axes.split_last().unwrap_or((&[1, 0], &[]));
        for (number, row) in big.chunks_exact_mut((count as usize).max(1)).enumerate() {
            let mut i = offset(outer, number);
            for b in row {
                if let Some(&s) = small.get(i) {
                    op(b, s);
                }
                i += stride as usize;
            }
        }
    }

    #[inline]
    pub(super) fn fold<T: Copy>(
        axes: &[Axis],
        big: &[T],
        small: &mut [T],
        plus: impl Fn(T, T) -> T + Copy,
        sum_row: impl Fn(&[T]) -> Option<T> + Copy,
    ) {
        let (&[mut count, stride], mut outer) = axes.split_last().unwrap_or((&[1, 0], &[]));
        // Which rows are summed by one running sum.
        let mut one = false;
        if let (0, [before @ .., [n, s]]) = (stride, outer) {
            one = *s == 1 && matches!(count, 2 | 3 | 4 | 8);
            if *s == 0 {
                // Two axes that could have been merged: all of it is one row.
                (count, outer) = (count.saturating_mul(*n), before);
            }
        }
        for (number, row) in big.chunks_exact((count as usize).max(1)).enumerate() {
            let mut i = offset(outer, number);
            if stride == 0 {
                let sum = if one { fold_lane(row, 1, plus) } else { sum_row(row) };
                if let (Some(sum), Some(s)) = (sum, small.get_mut(i)) {
                    *s = plus(*s, sum);
                }
            } else {
                for &b in row {
                    if let Some(s) = small.get_mut(i) {
                        *s = plus(*s, b);
                    }
                    i += stride as usize;
                }
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
    pub(super) fn fold_row<T: Copy>(row: &[T], plus: impl Fn(T, T) -> T + Copy) -> Option<T> {
        let (head, tail) = row.split_at_checked(row.len() & !7)?;
        let mut whole = None;
        if let Some(&first) = head.first() {
            for side in 0..2 {
                let half =
                    plus(fold_quarter(first, head, side, plus), fold_quarter(first, head, side + 2, plus));
                whole = Some(whole.map_or(half, |whole| plus(whole, half)));
            }
        }
        for &b in tail {
            whole = Some(whole.map_or(b, |t| plus(t, b)));
        }
        whole
    }

    /// The sums of every eighth entry from `from` on, and from four further on; `first` for such as are not there (they are).
    #[inline(never)]
    fn fold_quarter<T: Copy>(first: T, head: &[T], from: usize, plus: impl Fn(T, T) -> T + Copy) -> T {
        let lane = |from: usize| head.get(from..).and_then(|lane| fold_lane(lane, 8, plus)).unwrap_or(first);
        plus(lane(from), lane(from + 4))
    }

    /// [`spread`] for the pattern of one variable.
    #[inline]
    pub(super) fn spread_single<T: Copy>(
        Single { card, after, .. }: Single,
        big: &mut [T],
        small: &[T],
        op: impl Fn(&mut T, T) + Copy,
    ) {
        let mut label = 0;
        for row in big.chunks_exact_mut((after as usize).max(1)) {
            if let Some(&s) = small.get(label as usize) {
                for b in row {
                    op(b, s);
                }
            }
            label = if label + 1 < card { label + 1 } else { 0 };
        }
    }

    /// [`fold`] for the pattern of one variable.
    #[inline]
    pub(super) fn fold_single<T: Copy>(
        Single { before, card, after }: Single,
        big: &[T],
        small: &mut [T],
        plus: impl Fn(T, T) -> T + Copy,
    ) {
        // An arity of 1 leaves one row. Short rows have one running sum, and so have rows of 8 that are one after the other.
        let after = if card == 1 { before.saturating_mul(after) } else { after };
        let one = after < 8 || (after == 8 && card != 1);
        let mut label = 0;
        for row in big.chunks_exact((after as usize).max(1)) {
            let sum = if one { fold_lane(row, 1, plus) } else { fold_row(row, plus) };
            if let (Some(sum), Some(s)) = (sum, small.get_mut(label as usize)) {
                *s = plus(*s, sum);
            }
            label = if label + 1 < card { label + 1 } else { 0 };
        }
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
            let plus = |a: f32, b: f32| a + b;
            fold_fast(&axes, &big, &mut a, plus, |row| fold_row(row, plus));
            compact::fold(&axes, &big, &mut b, plus, |row| compact::fold_row(row, plus));
            assert_eq!(bits(&a), bits(&b), "{axes:?}");
        }
    }

    /// The same for the pattern of one variable.
    #[test]
    fn compact_loops_over_one_variable_give_the_same_bits() {
        let lengths = [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31];
        let values = |n: u32| -> Vec<f32> { (0..n).map(|i| (i as f32 * 0.7).sin() + 0.1).collect() };
        let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        for before in lengths {
            for card in lengths {
                for after in lengths {
                    let place = Single { before, card, after };
                    let (big, small) = (values(before * card * after), values(card));
                    let (mut a, mut b) = (big.clone(), big.clone());
                    spread_fast(&place.axes(), &mut a, &small, |b, s| *b = *b * s + s);
                    compact::spread_single(place, &mut b, &small, |b, s| *b = *b * s + s);
                    assert_eq!(bits(&a), bits(&b), "{place:?}");
                    let (mut a, mut b) = (small.clone(), small);
                    let plus = |a: f32, b: f32| a + b;
                    fold_fast(&place.axes(), &big, &mut a, plus, |row| fold_row(row, plus));
                    compact::fold_single(place, &big, &mut b, plus);
                    assert_eq!(bits(&a), bits(&b), "{place:?}");
                }
            }
        }
    }
}
