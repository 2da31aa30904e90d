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
use crate::stride::{self, Axes, Axis};
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
/// Layout: for each outer axis `count, stride of operand 0, 1, …`; then for each operand the number of its inner
/// axes followed by them. Operand 0 is the output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loops<'m> {
    outer: &'m [u32],
    inner: &'m [u32],
    operands: usize,
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
        scope * (operands + 1) + operands * (1 + 2 * scope)
    }

    /// Derives the loops. Each operand is the list of its variables, the last fastest; variables that
    /// are not in `order` make it fail, as does lack of room.
    pub(crate) fn build(memory: &'m mut [u32], shape: Shape<'_>, operands: &[&[u32]]) -> Option<Self> {
        let Shape { cards, lead, order, block } = shape;
        if operands.len() > OPERANDS || order.len() > MAX_SCOPE {
            return None;
        }
        if operands.iter().any(|scope| scope.iter().any(|v| !order.contains(v))) {
            return None;
        }
        let (outer_vars, block_vars) = order.split_at_checked(order.len().checked_sub(block)?)?;
        let width = operands.len() + 1;
        let (outer, mut rest_words) = memory.split_at_mut_checked(outer_vars.len() * width)?;
        let loops = lead.iter().chain(outer_vars.iter().filter(|v| !lead.contains(v)));
        let (mut segments, mut rest) = (1usize, 1usize);
        for (i, (words, &v)) in outer.chunks_exact_mut(width.max(1)).zip(loops).enumerate() {
            let (count, strides) = words.split_first_mut()?;
            *count = *cards.get(v as usize)?;
            let size = if i < lead.len() { &mut segments } else { &mut rest };
            *size = size.checked_mul(*count as usize)?;
            for (stride, scope) in strides.iter_mut().zip(operands) {
                *stride = stride_in(scope, cards, v)?;
            }
        }
        let mut used = 0;
        let mut block_len = 1usize;
        for &v in block_vars {
            block_len = block_len.checked_mul(*cards.get(v as usize)? as usize)?;
        }
        for scope in operands {
            let axes = axes_under(block_vars, scope, cards)?;
            let (count, tail) = rest_words.split_first_mut()?;
            *count = axes.len() as u32;
            let (words, tail) = tail.split_at_mut_checked(2 * axes.len())?;
            for (pair, axis) in words.chunks_exact_mut(2).zip(&axes) {
                for (w, a) in pair.iter_mut().zip(axis) {
                    *w = *a;
                }
            }
            used += 1 + 2 * axes.len();
            rest_words = tail;
        }
        let out_len = size_of_scope(operands.first()?, cards)?;
        let segment = out_len.checked_div(segments)?;
        let (outer, inner) = memory.split_at_checked(outer_vars.len() * width)?;
        Some(Self {
            outer,
            inner: inner.get(..used)?,
            operands: operands.len(),
            lead: lead.len(),
            segment,
            segments,
            block: block_len,
            rest,
        })
    }

    /// Visits the configurations of the axes behind the lead, numbered, with the offset of each input, the lead's
    /// variables being held at `lead`. Only for loops without a block.
    #[inline]
    pub(crate) fn each_rest(&self, lead: impl Iterator<Item = u32>, mut visit: impl FnMut(usize, &[usize])) {
        let width = self.operands + 1;
        let Some((lead_axes, rest_axes)) = self.outer.split_at_checked(self.lead * width) else { return };
        let mut at = Position::new();
        for (axis, label) in lead_axes.chunks_exact(width.max(1)).zip(lead) {
            for (offset, &stride) in at.offsets.iter_mut().zip(axis.iter().skip(1)) {
                *offset += label as usize * stride as usize;
            }
        }
        for number in 0..self.rest {
            visit(number, at.inputs());
            at.step(rest_axes, width);
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
pub(crate) fn axes_under(variables: &[u32], scope: &[u32], cards: &[u32]) -> Option<Axes> {
    let mut axes = Axes::new();
    for &v in variables {
        if !stride::push(&mut axes, *cards.get(v as usize)?, stride_in(scope, cards, v)?) {
            return None;
        }
    }
    Some(axes)
}

/// Configurations that make a chunk worth a thread's attention.
const CHUNK_WORK: usize = 1 << 15;

/// Runs a contraction through `fork`: `out` and each input must have the sizes of their scopes. The span of the result
/// is only `measured` where somebody wants it.
pub(crate) fn contract<T: Real, S: Semiring<T>>(
    loops: &Loops<'_>,
    semiring: S,
    inputs: &[&[T]],
    out: &mut [T],
    fork: &mut impl Fork<T>,
    measured: bool,
) -> Result<Span<T>, InferError> {
    let per_chunk = loops.segments_per_chunk(CHUNK_WORK);
    let job = Contract { loops: *loops, semiring, inputs, per_chunk, measured };
    fork.run(out, per_chunk.saturating_mul(loops.segment), &job)
}

struct Contract<'a, T, S> {
    loops: Loops<'a>,
    semiring: S,
    inputs: &'a [&'a [T]],
    per_chunk: usize,
    measured: bool,
}

/// How an input lies under the block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lie {
    /// One entry under the whole block.
    Held,
    /// Entry by entry.
    Whole,
    /// Anything else: needs its pattern.
    Ragged,
}

impl<T: Real, S: Semiring<T>> Job<T> for Contract<'_, T, S> {
    fn temp_len(&self) -> usize {
        self.loops.block
    }

    #[inline(always)]
    fn chunk(&self, index: usize, chunk: &mut [T], temp: &mut [T]) -> Span<T> {
        let Loops { outer, inner, operands, lead, segment, segments, block, rest } = self.loops;
        let semiring = self.semiring;
        let zero = semiring.zero();
        let width = operands + 1;
        let Some((lead_axes, rest_axes)) = outer.split_at_checked(lead * width) else { return Span::empty() };
        let Some(temp) = temp.get_mut(..block) else { return Span::empty() };

        // Each operand's inner pattern, looked up once.
        let mut patterns: [&[Axis]; OPERANDS] = [&[]; OPERANDS];
        let mut words = inner;
        for pattern in patterns.iter_mut().take(operands) {
            let Some((&count, tail)) = words.split_first() else { return Span::empty() };
            let Some((axes, tail)) = tail.split_at_checked(2 * count as usize) else { return Span::empty() };
            *pattern = axes.as_chunks::<2>().0;
            words = tail;
        }
        let [out_pattern, in_patterns @ ..] = &patterns;
        let whole = |p: &[Axis]| block == 1 || matches!(p, [[_, 1]]);
        let mut lies = [Lie::Ragged; OPERANDS];
        for (lie, pattern) in lies.iter_mut().zip(in_patterns) {
            *lie = match pattern {
                p if whole(p) => Lie::Whole,
                [] | [[_, 0]] => Lie::Held,
                _ => Lie::Ragged,
            };
        }
        let ragged = lies.iter().zip(self.inputs).any(|(&lie, _)| lie == Lie::Ragged);
        // The output's segment is exactly the block: products can be added to it without a pattern.
        let direct = segment == block && whole(out_pattern);

        let mut at = Position::new();
        at.jump(lead_axes, width, index * self.per_chunk);
        let mut inner_at = Position::new();
        for (_, part) in (index * self.per_chunk..segments).zip(chunk.chunks_exact_mut(segment.max(1))) {
            if !direct {
                part.fill(zero);
            }
            inner_at.offsets = at.offsets;
            for round in 0..rest {
                // One factor for the whole block, and tables that lie under it entry by entry.
                let mut held = None;
                let mut tables = [&[] as &[T]; OPERANDS];
                let mut slots = tables.iter_mut();
                let mut count = 0usize;
                for ((input, &lie), &offset) in self.inputs.iter().zip(&lies).zip(inner_at.inputs()) {
                    let from = input.get(offset..).unwrap_or(&[]);
                    match (lie, from.first()) {
                        (Lie::Held, Some(&s)) => held = Some(held.map_or(s, |h| semiring.times(h, s))),
                        (Lie::Whole, _) => {
                            if let Some(slot) = slots.next() {
                                *slot = from;
                                count += 1;
                            }
                        }
                        _ => {}
                    }
                }
                let add = direct && round > 0 && !ragged && count <= 2;
                let target = if direct && (round == 0 || add) { &mut *part } else { &mut *temp };
                let tables = tables.get(..count).unwrap_or(&[]);
                if add {
                    multiply(semiring, held, tables, target, |t, p| semiring.plus(t, p));
                } else {
                    multiply(semiring, held, tables, target, |_, p| p);
                }
                if ragged {
                    let inputs = self.inputs.iter().zip(in_patterns).zip(&lies);
                    for (((input, pattern), &lie), &offset) in inputs.zip(inner_at.inputs()) {
                        if lie == Lie::Ragged {
                            let from = input.get(offset..).unwrap_or(&[]);
                            stride::spread(pattern, target, from, |b, s| *b = semiring.times(*b, s));
                        }
                    }
                }
                if !direct {
                    let into = part.get_mut(inner_at.output() - at.output()..).unwrap_or(&mut []);
                    stride::fold(out_pattern, temp, into, |s, b| semiring.plus(s, b));
                } else if round > 0 && !add {
                    for (s, &b) in part.iter_mut().zip(temp.iter()) {
                        *s = semiring.plus(*s, b);
                    }
                }
                inner_at.step(rest_axes, width);
            }
            at.step(lead_axes, width);
        }
        if self.measured { Span::of(chunk, zero) } else { Span::empty() }
    }
}

/// `target = put(target, held ⊗ Π tables)`, entry by entry, in one pass for up to two tables.
#[inline(always)]
fn multiply<T: Real, S: Semiring<T>>(
    semiring: S,
    held: Option<T>,
    tables: &[&[T]],
    target: &mut [T],
    put: impl Fn(T, T) -> T,
) {
    match (held, tables) {
        (_, []) => {
            let product = held.unwrap_or(semiring.one());
            for t in target {
                *t = put(*t, product);
            }
        }
        (None, [a]) => {
            for (t, &a) in target.iter_mut().zip(*a) {
                *t = put(*t, a);
            }
        }
        (Some(h), [a]) => {
            for (t, &a) in target.iter_mut().zip(*a) {
                *t = put(*t, semiring.times(h, a));
            }
        }
        (None, [a, b]) => {
            for ((t, &a), &b) in target.iter_mut().zip(*a).zip(*b) {
                *t = put(*t, semiring.times(a, b));
            }
        }
        (Some(h), [a, b]) => {
            for ((t, &a), &b) in target.iter_mut().zip(*a).zip(*b) {
                *t = put(*t, semiring.times(semiring.times(h, a), b));
            }
        }
        (_, [a, b, rest @ ..]) => {
            // Callers that add pass at most two tables; here `put` replaces.
            let h = held.unwrap_or(semiring.one());
            for ((t, &a), &b) in target.iter_mut().zip(*a).zip(*b) {
                *t = put(*t, semiring.times(semiring.times(h, a), b));
            }
            for table in rest {
                for (t, &v) in target.iter_mut().zip(*table) {
                    *t = semiring.times(*t, v);
                }
            }
        }
    }
}

/// Where all operands are in an odometer over outer axes.
struct Position {
    digits: [u32; MAX_SCOPE],
    offsets: [usize; OPERANDS],
}

impl Position {
    fn new() -> Self {
        Self { digits: [0; MAX_SCOPE], offsets: [0; OPERANDS] }
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
        for (axis, digit) in axes.chunks_exact(width.max(1)).rev().zip(self.digits.iter_mut()) {
            let Some((&count, strides)) = axis.split_first() else { return };
            let quotient = number.checked_div(count as usize).unwrap_or(0);
            let remainder = number - quotient * count as usize;
            *digit = remainder as u32;
            for (offset, &stride) in self.offsets.iter_mut().zip(strides) {
                *offset += remainder * stride as usize;
            }
            number = quotient;
        }
    }

    #[inline(always)]
    fn step(&mut self, axes: &[u32], width: usize) {
        for (axis, digit) in axes.chunks_exact(width.max(1)).rev().zip(self.digits.iter_mut()) {
            let Some((&count, strides)) = axis.split_first() else { return };
            *digit += 1;
            if *digit < count {
                for (offset, &stride) in self.offsets.iter_mut().zip(strides) {
                    *offset += stride as usize;
                }
                return;
            }
            *digit = 0;
            let back = (count - 1) as usize;
            for (offset, &stride) in self.offsets.iter_mut().zip(strides) {
                *offset -= back * stride as usize;
            }
        }
    }
}
