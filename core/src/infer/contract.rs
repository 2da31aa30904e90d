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
use super::plan::MAX_INPUTS;
use crate::error::InferError;
use crate::math::{Real, log_add_exp};
use crate::stride::{self, Axis};
use crate::table::MAX_SCOPE;

/// Operands: the inputs, a message from above, and the output.
const OPERANDS: usize = MAX_INPUTS + 2;

/// The pair `(⊗, ⊕)` that a contraction uses.
pub(crate) trait Semiring<T: Real>: Copy + Send + Sync {
    /// Neutral element of `plus`, annihilator of `times`.
    fn zero(self) -> T;
    /// Neutral element of `times`.
    fn one(self) -> T;
    fn times(self, a: T, b: T) -> T;
    fn plus(self, a: T, b: T) -> T;
}

/// `(×, +)` on potentials.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Linear;
/// `(+, max)` or `(+, log-add-exp)` on log-potentials; the latter is slow, but nothing underflows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Logarithmic<const MAX: bool>;
/// `(+, max)` on log-potentials.
pub(crate) const MAX_PLUS: Logarithmic<true> = Logarithmic;
/// `(+, log-add-exp)` on log-potentials.
pub(crate) const LOG_SUM: Logarithmic<false> = Logarithmic;

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

impl<T: Real, const MAX: bool> Semiring<T> for Logarithmic<MAX> {
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
        if MAX { a.larger(b) } else { log_add_exp(a, b) }
    }
}

/// The loops of one contraction, written into borrowed words.
///
/// Layout: for each outer axis `count, stride of operand 0, 1, …`; then where each input begins; then for each operand the number of
/// its inner axes followed by them. Operand 0 is the output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loops<'m> {
    outer: &'m [u32],
    starts: &'m [u32],
    inner: &'m [u32],
    lead: usize,
    segment: usize,
    segments: usize,
    block: usize,
    rest: usize,
}

/// What a contraction is over, as lists of variables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape<'a> {
    /// Arity of every variable of the graph.
    pub cards: &'a [u32],
    /// The slowest variables of the output, in its order.
    pub lead: &'a [u32],
    /// Every variable of the product in loop order; those of `lead` are passed over.
    pub order: &'a [u32],
    /// How many of the last variables of `order` form the block; none of them may be in `lead`.
    pub block: usize,
}

impl<'m> Loops<'m> {
    /// Words that [`build`](Self::build) may need.
    pub(crate) const fn len(scope: usize, operands: usize) -> usize {
        scope * (operands + 1) + operands + operands * (1 + 2 * scope)
    }

    /// Derives the loops. Each operand is the list of its variables, the last fastest, and where it begins in the memory of the
    /// inputs; variables that are not in `order` make it fail, as does lack of room.
    pub(crate) fn build<'o>(
        memory: &'m mut [u32],
        shape: &Shape<'_>,
        operands: usize,
        operand: impl Fn(usize) -> Option<(&'o [u32], usize)>,
    ) -> Option<Self> {
        let &Shape { cards, lead, order, block } = shape;
        if operands == 0 || operands > OPERANDS || order.len() > MAX_SCOPE {
            return None;
        }
        let outer_len = order.len().checked_sub(block)?;
        let (outer_vars, block_vars) = order.split_at_checked(outer_len)?;
        let width = operands + 1;
        let (outer, words) = memory.split_at_mut_checked(outer_len * width)?;
        let (starts, mut words) = words.split_at_mut_checked(operands - 1)?;
        let free = words.len();
        // First the variable in the place of its count: the order of the loops is found once.
        let loops = lead.iter().chain(outer_vars.iter().filter(|v| !lead.contains(v)));
        for (axis, &v) in outer.chunks_exact_mut(width).zip(loops) {
            *axis.first_mut()? = v;
        }
        for i in 0..operands {
            let (scope, start) = operand(i)?;
            if scope.iter().any(|v| !order.contains(v)) {
                return None;
            }
            if let Some(at) = i.checked_sub(1).and_then(|i| starts.get_mut(i)) {
                *at = u32::try_from(start).ok()?;
            }
            for axis in outer.chunks_exact_mut(width) {
                let v = *axis.first()?;
                *axis.get_mut(i + 1)? = stride_in(scope, cards, v)?;
            }
            let (count, tail) = core::mem::take(&mut words).split_first_mut()?;
            *count = axes_under(tail.as_chunks_mut().0, block_vars, scope, cards)?.len() as u32;
            words = tail.get_mut(2 * *count as usize..)?;
        }
        let used = free - words.len();
        let mut rest = 1usize;
        for (i, axis) in outer.chunks_exact_mut(width).enumerate() {
            let count = axis.first_mut()?;
            *count = *cards.get(*count as usize)?;
            if i >= lead.len() {
                rest = rest.checked_mul(*count as usize)?;
            }
        }
        let segments = size_of_scope(lead, cards)?;
        let out_len = size_of_scope(operand(0)?.0, cards)?;
        let (outer, words) = memory.split_at_checked(outer_len * width)?;
        let (starts, inner) = words.split_at_checked(operands - 1)?;
        Some(Self {
            outer,
            starts,
            inner: inner.get(..used)?,
            lead: lead.len(),
            segment: out_len.checked_div(segments)?,
            segments,
            block: size_of_scope(block_vars, cards)?,
            rest,
        })
    }

    /// How many inputs there are.
    pub(crate) fn inputs(&self) -> usize {
        self.starts.len()
    }

    /// Words of an outer axis: its count, and the stride of each operand.
    #[inline(always)]
    fn width(&self) -> usize {
        self.starts.len() + 2
    }

    /// The outer axes: those of the lead, and the rest.
    #[inline(always)]
    fn axes(&self) -> Option<(&'m [u32], &'m [u32])> {
        self.outer.split_at_checked(self.lead * self.width())
    }

    /// The inner pattern of each operand.
    #[inline(always)]
    fn patterns(&self) -> Patterns<'m> {
        Patterns(self.inner)
    }

    /// Visits the configurations of the axes behind the lead, numbered, with the place of each input, the lead's
    /// variables being held at `lead`. Only for loops without a block.
    #[inline]
    pub(crate) fn each_rest(&self, lead: impl Iterator<Item = u32>, mut visit: impl FnMut(usize, &[usize])) {
        let width = self.width();
        let Some((lead_axes, rest_axes)) = self.axes() else { return };
        let mut at = Position::new(self.starts);
        for (axis, label) in lead_axes.chunks_exact(width.max(1)).zip(lead) {
            for (offset, &stride) in at.offsets.iter_mut().zip(axis.iter().skip(1)) {
                *offset += label as usize * stride as usize;
            }
        }
        for number in 0..self.rest {
            visit(number, at.inputs());
            at.step(rest_axes, width, number);
        }
    }

    /// Segments to give to one chunk so that it holds at least `work` configurations.
    fn segments_per_chunk(&self, work: usize) -> usize {
        let each = self.rest.saturating_mul(self.block).max(1);
        work.div_ceil(each).max(1)
    }
}

/// Configurations of a scope; `None` if a variable does not exist or the number overflows 32 bits.
pub(crate) fn size_of_scope(scope: &[u32], cards: &[u32]) -> Option<usize> {
    let mut size = 1u32;
    for &v in scope {
        size = size.checked_mul(*cards.get(v as usize)?)?;
    }
    Some(size as usize)
}

/// How far one step of `v` moves in a table over `scope`; 0 if it is not there.
fn stride_in(scope: &[u32], cards: &[u32], v: u32) -> Option<u32> {
    let Some(at) = scope.iter().position(|&u| u == v) else { return Some(0) };
    let mut stride = 1u32;
    for &u in scope.get(at + 1..)? {
        stride = stride.checked_mul(*cards.get(u as usize)?)?;
    }
    Some(stride)
}

/// How a table over `scope` lies under one over `variables`, both with the last variable fastest.
pub(crate) fn axes_under<'m>(
    memory: &'m mut [Axis],
    variables: &[u32],
    scope: &[u32],
    cards: &[u32],
) -> Option<&'m [Axis]> {
    let axis = |&v: &u32| Some([*cards.get(v as usize)?, stride_in(scope, cards, v)?]);
    stride::write(memory, variables.iter().map(axis))
}

/// Configurations that make a chunk worth a thread's attention.
const CHUNK_WORK: usize = 1 << 15;

/// Runs a contraction through `fork`: the inputs lie in `inputs`, where the loops say, and they and `out` must have the sizes of
/// their scopes. The span of the result is only `measured` where somebody wants it.
#[inline(never)]
pub(crate) fn contract<T: Real, S: Semiring<T>>(
    loops: &Loops<'_>,
    semiring: S,
    inputs: &[T],
    out: &mut [T],
    fork: &mut impl Fork<T>,
    measured: bool,
) -> Result<Span<T>, InferError> {
    let per_chunk = loops.segments_per_chunk(CHUNK_WORK);
    let job = Contract { loops, semiring, inputs, per_chunk, measured };
    fork.run(out, per_chunk.saturating_mul(loops.segment), &job)
}

struct Contract<'a, T, S> {
    loops: &'a Loops<'a>,
    semiring: S,
    inputs: &'a [T],
    per_chunk: usize,
    measured: bool,
}

/// How the inputs lie under the block: a bit for each.
#[derive(Clone, Copy)]
struct Lies {
    /// One entry under the whole block.
    held: u32,
    /// Entry by entry.
    whole: u32,
    /// Anything else: needs its pattern.
    ragged: u32,
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

impl<T: Real, S: Semiring<T>> Job<T> for Contract<'_, T, S> {
    fn temp_len(&self) -> usize {
        self.loops.block
    }

    #[inline(always)]
    fn chunk(&self, index: usize, chunk: &mut [T], temp: &mut [T]) -> Span<T> {
        let loops = self.loops;
        let (segment, block, width) = (loops.segment, loops.block, loops.width());
        let Some((lead_axes, rest_axes)) = loops.axes() else { return Span::empty() };
        let Some(temp) = temp.get_mut(..block) else { return Span::empty() };

        let whole = |p: &[Axis]| block == 1 || matches!(p, [[_, 1]]);
        let mut patterns = loops.patterns();
        let Some(out_pattern) = patterns.next() else { return Span::empty() };
        let mut lies = Lies { held: 0, whole: 0, ragged: 0 };
        for (i, pattern) in patterns.enumerate() {
            let kind = match pattern {
                p if whole(p) => &mut lies.whole,
                [] | [[_, 0]] => &mut lies.held,
                _ => &mut lies.ragged,
            };
            *kind |= 1 << i;
        }
        // The output's segment is exactly the block: products can be added to it without a pattern.
        let direct = segment == block && whole(out_pattern);
        let adds = direct && lies.ragged == 0 && lies.whole.count_ones() <= 2;

        let first = index * self.per_chunk;
        let mut at = Position::new(loops.starts);
        at.jump(lead_axes, width, first);
        for (number, part) in (first..loops.segments).zip(chunk.chunks_exact_mut(segment.max(1))) {
            if !direct {
                part.fill(self.semiring.zero());
            }
            let begins = at.output();
            for round in 0..loops.rest {
                if direct && round > 0 && adds {
                    self.multiply(lies, at.inputs(), part, |t, p| self.semiring.plus(t, p));
                } else {
                    let target = if direct && round == 0 { &mut *part } else { &mut *temp };
                    self.multiply(lies, at.inputs(), target, |_, p| p);
                    if lies.ragged != 0 {
                        self.multiply_ragged(lies, at.inputs(), target);
                    }
                    if !direct {
                        let into = part.get_mut(at.output() - begins..).unwrap_or(&mut []);
                        self.fold(out_pattern, temp, into);
                    } else if round > 0 {
                        for (s, &b) in part.iter_mut().zip(temp.iter()) {
                            *s = self.semiring.plus(*s, b);
                        }
                    }
                }
                // After the last round, back to where the segment began.
                at.step(rest_axes, width, round);
            }
            at.step(lead_axes, width, number);
        }
        if self.measured { Span::of(chunk, self.semiring.zero()) } else { Span::empty() }
    }
}

// On a desk all of these must be inlined, or they are not compiled for its vector instructions (`par.rs` of the desk); on a device
// they are called one after the other, so that their stack is not needed at the same time.
impl<T: Real, S: Semiring<T>> Contract<'_, T, S> {
    /// An input from its present place on.
    #[inline(always)]
    fn input(&self, offsets: &[usize], i: usize) -> &[T] {
        offsets.get(i).and_then(|&at| self.inputs.get(at..)).unwrap_or(&[])
    }

    /// `target = put(target, ⊗ inputs)`, entry by entry, for the inputs that are held or lie whole: in one pass for up to two of
    /// the latter. Those who add have no more of them.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline(always))]
    fn multiply(&self, lies: Lies, offsets: &[usize], target: &mut [T], put: impl Fn(T, T) -> T) {
        let semiring = self.semiring;
        let mut held = None;
        for i in each_bit(lies.held) {
            if let Some(&s) = self.input(offsets, i).first() {
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
                for (t, &a) in target.iter_mut().zip(self.input(offsets, a)) {
                    *t = put(*t, a);
                }
            }
            (Some(h), Some(a), None) => {
                for (t, &a) in target.iter_mut().zip(self.input(offsets, a)) {
                    *t = put(*t, semiring.times(h, a));
                }
            }
            (None, Some(a), Some(b)) if lies.whole.count_ones() == 2 => {
                let (a, b) = (self.input(offsets, a), self.input(offsets, b));
                for ((t, &a), &b) in target.iter_mut().zip(a).zip(b) {
                    *t = put(*t, semiring.times(a, b));
                }
            }
            (held, Some(a), Some(b)) => {
                let h = held.unwrap_or(semiring.one());
                let (a, b) = (self.input(offsets, a), self.input(offsets, b));
                for ((t, &a), &b) in target.iter_mut().zip(a).zip(b) {
                    *t = put(*t, semiring.times(semiring.times(h, a), b));
                }
                for i in whole {
                    for (t, &v) in target.iter_mut().zip(self.input(offsets, i)) {
                        *t = semiring.times(*t, v);
                    }
                }
            }
        }
    }

    /// `target = target ⊗ Π inputs`, for the ragged inputs.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline(always))]
    fn multiply_ragged(&self, lies: Lies, offsets: &[usize], target: &mut [T]) {
        let semiring = self.semiring;
        for (i, pattern) in self.loops.patterns().skip(1).enumerate() {
            if lies.ragged >> i & 1 != 0 {
                stride::spread(pattern, target, self.input(offsets, i), |b, s| *b = semiring.times(*b, s));
            }
        }
    }

    /// Adds the products of a block to where they belong.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline(always))]
    fn fold(&self, pattern: &[Axis], products: &[T], into: &mut [T]) {
        stride::fold(pattern, products, into, |s, b| self.semiring.plus(s, b));
    }
}

/// The inner patterns of a contraction, one an operand.
struct Patterns<'m>(&'m [u32]);

impl<'m> Iterator for Patterns<'m> {
    type Item = &'m [Axis];

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let (&count, tail) = self.0.split_first()?;
        let (axes, tail) = tail.split_at_checked(2 * count as usize)?;
        self.0 = tail;
        Some(axes.as_chunks::<2>().0)
    }
}

/// Where all operands are in loops over outer axes. The digits are those of the configuration's number, which the loop knows:
/// each step costs a division and the memory of the offsets is all there is.
struct Position {
    offsets: [usize; OPERANDS],
}

impl Position {
    /// At the first configuration; the output begins at 0.
    #[inline(always)]
    fn new(starts: &[u32]) -> Self {
        let mut offsets = [0; OPERANDS];
        for (offset, &start) in offsets.iter_mut().skip(1).zip(starts) {
            *offset = start as usize;
        }
        Self { offsets }
    }

    fn output(&self) -> usize {
        let [output, ..] = self.offsets;
        output
    }

    fn inputs(&self) -> &[usize] {
        let [_, inputs @ ..] = &self.offsets;
        inputs
    }

    /// From the first configuration to the one with this number.
    fn jump(&mut self, axes: &[u32], width: usize, mut number: usize) {
        for axis in axes.chunks_exact(width.max(1)).rev() {
            let Some((&count, strides)) = axis.split_first() else { return };
            let quotient = number.checked_div(count as usize).unwrap_or(0);
            let remainder = number - quotient * count as usize;
            for (offset, &stride) in self.offsets.iter_mut().zip(strides) {
                *offset += remainder * stride as usize;
            }
            number = quotient;
        }
    }

    /// From the configuration with this number to the next; after the last one, back to the first.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline(always))]
    fn step(&mut self, axes: &[u32], width: usize, mut number: usize) {
        for axis in axes.chunks_exact(width.max(1)).rev() {
            let Some((&count, strides)) = axis.split_first() else { return };
            let quotient = number.checked_div(count as usize).unwrap_or(0);
            let digit = number - quotient * count as usize;
            if digit + 1 < count as usize {
                for (offset, &stride) in self.offsets.iter_mut().zip(strides) {
                    *offset += stride as usize;
                }
                return;
            }
            for (offset, &stride) in self.offsets.iter_mut().zip(strides) {
                *offset -= digit * stride as usize;
            }
            number = quotient;
        }
    }
}
