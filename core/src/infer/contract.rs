//! One kernel for all exact table work: multiply some tables and reduce the product onto another.
//!
//! ```text
//! out(o) = ⊕_{x over o} ⊗_k in_k(x_k)
//! ```
//!
//! The loop order is `lead, rest, block`: `lead` axes are the slowest axes of `out`, so each of their
//! configurations owns one contiguous *segment* of it and segments can be computed anywhere, in any order,
//! with the same bits; `rest` axes are looped over inside a segment; the `block` is the innermost part of the
//! product, small enough for the first-level cache, on which [`stride::spread`] and [`stride::fold`]
//! work without index arithmetic.

use super::fork::{Fork, Job, Span};
use super::loops::{Loops, Position};
use super::semiring::Semiring;
use crate::error::InferError;
use crate::score::Score;
use crate::stride::{self, Axis};

/// Configurations that make a chunk worth a thread's attention.
const CHUNK_WORK: usize = 1 << 15;

/// Runs a contraction through `fork`: the inputs lie in `inputs`, where the loops say, and they and `out` must have the sizes of
/// their scopes. The span of the result is only `measured` where somebody wants it.
#[inline(never)]
pub(crate) fn contract<T: Score, S: Semiring<T>>(
    loops: &Loops<'_>,
    semiring: S,
    inputs: &[T],
    out: &mut [T],
    fork: &mut impl Fork<T>,
    measured: bool,
) -> Result<Span<T>, InferError> {
    let per_chunk = if cfg!(target_os = "none") { 1 } else { loops.segments_per_chunk(CHUNK_WORK) };
    let job = Contract { loops, semiring, inputs, per_chunk, measured };
    fork.run(out, per_chunk.saturating_mul(loops.segment().0), &job)
}

struct Contract<'a, T, S> {
    loops: &'a Loops<'a>,
    semiring: S,
    inputs: &'a [T],
    per_chunk: usize,
    measured: bool,
}

/// How the inputs lie under the block: a bit for each; and how the output does.
#[derive(Clone, Copy, Default)]
struct Lies {
    /// One entry under the whole block.
    held: u32,
    /// Entry by entry.
    whole: u32,
    /// Anything else: needs its pattern.
    ragged: u32,
    /// The output's segment is exactly the block: products can be added to it without a pattern.
    direct: bool,
    /// They can be added while they are formed.
    adds: bool,
}

/// The numbers of the bits that are set.
#[inline(always)]
fn each_bit(mut bits: u32) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let bit = bits.trailing_zeros();
        bits &= bits.wrapping_sub(1);
        (bit < 32).then_some(bit as usize)
    })
}

impl<T: Score, S: Semiring<T>> Job<T> for Contract<'_, T, S> {
    fn temp_len(&self) -> usize {
        self.loops.block()
    }

    #[inline(always)]
    fn chunk(&self, index: usize, chunk: &mut [T], temp: &mut [T]) -> Span<T> {
        let Some(temp) = temp.get_mut(..self.loops.block()) else { return Span::empty() };
        let first = index * self.per_chunk;
        let mut work = Work { job: self, lies: Lies::default(), at: Position::ORIGIN };
        work.begin(first);
        work.segments(chunk, temp, first);
        if self.measured { Span::of(chunk, self.semiring.zero()) } else { Span::empty() }
    }
}

/// What all segments of a chunk have in common.
#[derive(Clone, Copy, Default)]
struct AtHand<'m> {
    rest: usize,
    width: usize,
    lead: &'m [u32],
    others: &'m [u32],
    /// How the output lies under the block.
    pattern: &'m [Axis],
}

/// A chunk under way.
struct Work<'a, T, S> {
    job: &'a Contract<'a, T, S>,
    lies: Lies,
    at: Position,
}

// On a desk all of these must be inlined, or they are not compiled for its vector instructions (`par.rs` of the desk); on a device
// they are called one after the other, so that their stack is not needed at the same time.
impl<T: Score, S: Semiring<T>> Work<'_, T, S> {
    /// Looks at how the operands lie, and goes to the segment with this number.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline(always))]
    fn begin(&mut self, first: usize) {
        let loops = self.job.loops;
        self.at.start(loops.starts());
        if let Some((lead, _)) = loops.axes() {
            self.at.jump(lead, loops.width(), first);
        }
        let (block, lies) = (loops.block(), &mut self.lies);
        let whole = |p: &[Axis]| block == 1 || matches!(p, [[_, 1]]);
        for (i, pattern) in loops.patterns().enumerate() {
            let Some(input) = i.checked_sub(1) else {
                lies.direct = loops.segment().0 == block && whole(pattern);
                continue;
            };
            let kind = match pattern {
                p if whole(p) => &mut lies.whole,
                [] | [[_, 0]] => &mut lies.held,
                _ => &mut lies.ragged,
            };
            *kind |= 1 << input;
        }
        lies.adds = lies.direct && lies.ragged == 0 && lies.whole.count_ones() <= 2;
    }

    /// The segments of a chunk, of which this is the first.
    #[inline(always)]
    fn segments(&mut self, chunk: &mut [T], temp: &mut [T], first: usize) {
        let loops = self.job.loops;
        let (segment, segments) = loops.segment();
        // A desk keeps these at hand; a device looks them up at each step.
        let mut at_hand = AtHand::default();
        if !cfg!(target_os = "none") {
            let pattern = loops.patterns().next().unwrap_or(&[]);
            let (lead, others) = loops.axes().unwrap_or_default();
            at_hand = AtHand { rest: loops.rest(), width: loops.width(), lead, others, pattern };
        }
        for (number, part) in (first..segments).zip(chunk.chunks_exact_mut(segment.max(1))) {
            self.segment(part, temp, number, at_hand);
        }
    }

    /// One segment of the output.
    #[inline(always)]
    fn segment(
        &mut self,
        part: &mut [T],
        temp: &mut [T],
        number: usize,
        AtHand { rest, width, lead, others, pattern }: AtHand<'_>,
    ) {
        let (direct, adds) = (self.lies.direct, self.lies.adds);
        if !direct {
            part.fill(self.job.semiring.zero());
        }
        let begins = self.at.output();
        for round in 0..if cfg!(target_os = "none") { self.job.loops.rest() } else { rest } {
            if direct && round > 0 && adds {
                self.product(part, |t, p| self.job.semiring.plus(t, p));
            } else {
                let target = if direct && round == 0 { &mut *part } else { &mut *temp };
                self.multiply(target);
                if !direct {
                    self.fold(temp, part, begins, pattern);
                } else if round > 0 {
                    for (s, &b) in part.iter_mut().zip(temp.iter()) {
                        *s = self.job.semiring.plus(*s, b);
                    }
                }
            }
            // After the last round, back to where the segment began.
            if cfg!(target_os = "none") {
                self.step(false, round);
            } else {
                self.at.step(others, width, round);
            }
        }
        if cfg!(target_os = "none") {
            self.step(true, number);
        } else {
            self.at.step(lead, width, number);
        }
    }

    /// Along the axes of the lead, or of the rest.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline(always))]
    fn step(&mut self, lead: bool, number: usize) {
        let loops = self.job.loops;
        if let Some((lead_axes, rest_axes)) = loops.axes() {
            self.at.step(if lead { lead_axes } else { rest_axes }, loops.width(), number);
        }
    }

    /// `target = ⊗ inputs`, entry by entry.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline(always))]
    fn multiply(&self, target: &mut [T]) {
        self.product(target, |_, p| p);
        if self.lies.ragged != 0 {
            self.multiply_ragged(target);
        }
    }

    /// Adds the products of a block to where they belong.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline(always))]
    fn fold(&self, products: &[T], part: &mut [T], begins: usize, pattern: &[Axis]) {
        let first = || self.job.loops.patterns().next().unwrap_or(&[]);
        let pattern = if cfg!(target_os = "none") { first() } else { pattern };
        let into = part.get_mut(self.at.output() - begins..).unwrap_or(&mut []);
        let plus = |s, b| self.job.semiring.plus(s, b);
        if S::BY_ROWS {
            stride::fold_rows(pattern, products, into, plus, |row| Some(self.job.semiring.row(row)));
        } else {
            stride::fold(pattern, products, into, plus);
        }
    }

    /// An input from its present place on.
    #[inline(always)]
    fn input(&self, i: usize) -> &[T] {
        self.at.inputs().get(i).and_then(|&at| self.job.inputs.get(at..)).unwrap_or(&[])
    }

    /// `target = put(target, ⊗ inputs)`, entry by entry, for the inputs that are held or lie whole: in one pass for up to two of
    /// the latter. Those who add have no more of them.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline(always))]
    fn product(&self, target: &mut [T], put: impl Fn(T, T) -> T) {
        let (semiring, lies) = (self.job.semiring, &self.lies);
        let mut held = None;
        for i in each_bit(lies.held) {
            if let Some(&s) = self.input(i).first() {
                held = Some(held.map_or(s, |h| semiring.times(h, s)));
            }
        }
        let mut whole = each_bit(lies.whole);
        match (held, whole.next(), whole.next()) {
            (_, None, _) => {
                let product = held.unwrap_or(semiring.one());
                for t in target {
                    *t = put(*t, product);
                }
            }
            (None, Some(a), None) => {
                for (t, &a) in target.iter_mut().zip(self.input(a)) {
                    *t = put(*t, a);
                }
            }
            (Some(h), Some(a), None) => {
                for (t, &a) in target.iter_mut().zip(self.input(a)) {
                    *t = put(*t, semiring.times(h, a));
                }
            }
            (None, Some(a), Some(b)) if lies.whole.count_ones() == 2 => {
                let (a, b) = (self.input(a), self.input(b));
                for ((t, &a), &b) in target.iter_mut().zip(a).zip(b) {
                    *t = put(*t, semiring.times(a, b));
                }
            }
            (held, Some(a), Some(b)) => {
                let h = held.unwrap_or(semiring.one());
                let (a, b) = (self.input(a), self.input(b));
                for ((t, &a), &b) in target.iter_mut().zip(a).zip(b) {
                    *t = put(*t, semiring.times(semiring.times(h, a), b));
                }
                for i in whole {
                    for (t, &v) in target.iter_mut().zip(self.input(i)) {
                        *t = semiring.times(*t, v);
                    }
                }
            }
        }
    }

    /// `target = target ⊗ Π inputs`, for the ragged inputs.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline(always))]
    fn multiply_ragged(&self, target: &mut [T]) {
        let (semiring, lies) = (self.job.semiring, &self.lies);
        for (i, pattern) in self.job.loops.patterns().skip(1).enumerate() {
            if lies.ragged >> i & 1 != 0 {
                stride::spread(pattern, target, self.input(i), |b, s| *b = semiring.times(*b, s));
            }
        }
    }
}
