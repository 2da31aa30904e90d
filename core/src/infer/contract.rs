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
use crate::log_add::LogAdd;
use crate::math::{Real, log_add_exp, log_sum_exp};
use crate::score::Score;
use crate::stride::{self, Axis};
use crate::table::MAX_SCOPE;

/// Operands: the inputs, a message from above, and the output.
const OPERANDS: usize = MAX_INPUTS + 2;

/// The pair `(⊗, ⊕)` that a contraction uses.
pub(crate) trait Semiring<T: Score>: Copy + Send + Sync {
    /// Neutral element of `plus`, annihilator of `times`.
    fn zero(self) -> T;
    /// Neutral element of `times`.
    fn one(self) -> T;
    fn times(self, a: T, b: T) -> T;
    fn plus(self, a: T, b: T) -> T;
    /// The same as `plus` of entries that lie one after the other, in one go, where that is better.
    const ROWS: Option<fn(&[T]) -> T> = None;
}

/// `(×, +)` on potentials.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Linear;
/// `(+, max)` on log-potentials.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MaxPlus;
/// `(+, log-add-exp)` on log-potentials: slow, but nothing underflows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogSum;

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

impl<T: Score> Semiring<T> for MaxPlus {
    #[inline(always)]
    fn zero(self) -> T {
        T::NEG_INFINITY
    }
    #[inline(always)]
    fn one(self) -> T {
        T::default()
    }
    #[inline(always)]
    fn times(self, a: T, b: T) -> T {
        a.plus(b)
    }
    #[inline(always)]
    fn plus(self, a: T, b: T) -> T {
        a.larger(b)
    }
}

impl<T: Real> Semiring<T> for LogSum {
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
        log_add_exp(a, b)
    }
    /// One logarithm for a row instead of one for each entry.
    const ROWS: Option<fn(&[T]) -> T> = Some(log_sum_exp);
}

/// `(+, log-add by a table)` on log-potentials in units. What is forbidden is too far behind for the table to add anything.
impl Semiring<i32> for &LogAdd<'_> {
    #[inline(always)]
    fn zero(self) -> i32 {
        i32::NEG_INFINITY
    }
    #[inline(always)]
    fn one(self) -> i32 {
        0
    }
    #[inline(always)]
    fn times(self, a: i32, b: i32) -> i32 {
        Score::plus(a, b)
    }
    #[inline(always)]
    fn plus(self, a: i32, b: i32) -> i32 {
        self.add(a, b)
    }
}

/// The loops of one contraction, as words in the caller's memory: a device has little stack for what lies there anyway.
///
/// Layout: [`HEAD`] words (of the outer axes; inputs; axes of the lead; segment, segments, block, rest; the last
/// is where to go on while they are written); for each outer axis
/// `count, stride of operand 0, 1, …`; where each input begins; for each operand the number of its inner axes followed by
/// them. Operand 0 is the output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loops<'m>(&'m [u32]);

const HEAD: usize = 7;

/// What a contraction is over, as lists of variables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape<'a> {
    /// Arity of every variable of the graph.
    pub cards: &'a [u32],
    /// The variables of the output.
    pub onto: &'a [u32],
    /// How many of the first of them, its slowest, have loops of their own around all others.
    pub lead: usize,
    /// Every variable of the product in loop order; those of the lead are passed over.
    pub order: &'a [u32],
    /// How many of the last variables of `order` form the block; none of them may be in the lead.
    pub block: usize,
}

impl<'m> Loops<'m> {
    /// Words that loops may need.
    pub(crate) const fn len(scope: usize, operands: usize) -> usize {
        HEAD + scope * (operands + 1) + operands + operands * (1 + 2 * scope)
    }

    /// Begins to write loops for so many inputs; [`add_output`](Self::add_output), [`add`](Self::add) each of them, then [`end`](Self::end). `None` from any of them
    /// if there is a variable that is not in `order`, or no room.
    #[inline(never)]
    pub(crate) fn begin(memory: &mut [u32], shape: &Shape<'_>, inputs: usize) -> Option<()> {
        let outer = shape.order.len().checked_sub(shape.block)?;
        if inputs + 1 > OPERANDS || shape.order.len() > MAX_SCOPE {
            return None;
        }
        let block = size_of_scope(shape.order.get(outer..)?, shape.cards)?;
        let segments = size_of_scope(shape.onto.get(..shape.lead)?, shape.cards)?;
        let segment = size_of_scope(shape.onto, shape.cards)?.checked_div(segments)?;
        let outer = outer * (inputs + 2);
        let head = [outer, inputs, shape.lead, segment, segments, block, HEAD + outer + inputs];
        for (slot, value) in memory.get_mut(..HEAD)?.iter_mut().zip(head) {
            *slot = u32::try_from(value).ok()?;
        }
        write_outer(memory.get_mut(HEAD..)?, shape, inputs + 2)
    }

    /// Input number `i`: the list of its variables, the last fastest, and where it begins in the memory of the inputs.
    pub(crate) fn add(
        memory: &mut [u32],
        shape: &Shape<'_>,
        i: usize,
        scope: &[u32],
        start: usize,
    ) -> Option<()> {
        let at = HEAD + *memory.first()? as usize + i;
        *memory.get_mut(at)? = u32::try_from(start).ok()?;
        add_operand(memory, shape, i + 1, scope)
    }

    /// The output, before the inputs.
    pub(crate) fn add_output(memory: &mut [u32], shape: &Shape<'_>) -> Option<()> {
        add_operand(memory, shape, 0, shape.onto)
    }

    /// Replaces the outer variables, which stand in the place of their counts, by these.
    #[inline(never)]
    pub(crate) fn end(memory: &mut [u32], shape: &Shape<'_>) -> Option<()> {
        let (outer, width) = (*memory.first()? as usize, *memory.get(1)? as usize + 2);
        let mut rest = 1usize;
        for (i, axis) in memory.get_mut(HEAD..HEAD + outer)?.chunks_exact_mut(width.max(1)).enumerate() {
            let count = axis.first_mut()?;
            *count = *shape.cards.get(*count as usize)?;
            if i >= shape.lead {
                rest = rest.checked_mul(*count as usize)?;
            }
        }
        *memory.get_mut(HEAD - 1)? = u32::try_from(rest).ok()?;
        Some(())
    }

    /// The loops that were written into this memory.
    pub(crate) fn at(memory: &'m [u32]) -> Self {
        Self(memory)
    }

    #[inline(always)]
    fn word(&self, i: usize) -> usize {
        self.0.get(i).map_or(0, |&word| word as usize)
    }

    /// How many inputs there are.
    #[inline(always)]
    pub(crate) fn inputs(&self) -> usize {
        self.word(1)
    }

    /// Entries of the output for one configuration of the lead, and configurations of the lead.
    #[inline(always)]
    fn segment(&self) -> (usize, usize) {
        (self.word(3), self.word(4))
    }

    /// Configurations of the block.
    #[inline(always)]
    fn block(&self) -> usize {
        self.word(5)
    }

    /// Configurations of the outer axes behind the lead.
    #[inline(always)]
    fn rest(&self) -> usize {
        self.word(6)
    }

    /// Words of an outer axis: its count, and the stride of each operand.
    #[inline(always)]
    fn width(&self) -> usize {
        self.inputs() + 2
    }

    /// The outer axes: those of the lead, and the rest.
    #[inline(always)]
    fn axes(&self) -> Option<(&'m [u32], &'m [u32])> {
        self.0.get(HEAD..HEAD + self.word(0))?.split_at_checked(self.word(2) * self.width())
    }

    /// Where each input begins.
    #[inline(always)]
    fn starts(&self) -> &'m [u32] {
        let from = HEAD + self.word(0);
        self.0.get(from..from + self.inputs()).unwrap_or(&[])
    }

    /// The inner pattern of each operand.
    #[inline(always)]
    fn patterns(&self) -> Patterns<'m> {
        let words = self.0.get(HEAD + self.word(0) + self.inputs()..).unwrap_or(&[]);
        Patterns { words, left: self.inputs() + 1 }
    }

    /// Visits the configurations of the axes behind the lead, numbered, with the place of each input, the lead's
    /// variables being held at `lead`. Only for loops without a block.
    #[inline]
    pub(crate) fn each_rest(&self, lead: impl Iterator<Item = u32>, mut visit: impl FnMut(usize, &[usize])) {
        let width = self.width();
        let Some((lead_axes, rest_axes)) = self.axes() else { return };
        let mut at = Position { offsets: [0; OPERANDS] };
        at.start(self.starts());
        for (axis, label) in lead_axes.chunks_exact(width.max(1)).zip(lead) {
            for (offset, &stride) in at.offsets.iter_mut().zip(axis.iter().skip(1)) {
                *offset += label as usize * stride as usize;
            }
        }
        for number in 0..self.rest() {
            visit(number, at.inputs());
            at.step(rest_axes, width, number);
        }
    }

    /// Segments to give to one chunk so that it holds at least `work` configurations.
    fn segments_per_chunk(&self, work: usize) -> usize {
        let each = self.rest().saturating_mul(self.block()).max(1);
        work.div_ceil(each).max(1)
    }
}

/// The outer variables in loop order, each in the place of its count.
#[inline(never)]
fn write_outer(words: &mut [u32], shape: &Shape<'_>, width: usize) -> Option<()> {
    let lead = shape.onto.get(..shape.lead)?;
    let outer = shape.order.get(..shape.order.len().checked_sub(shape.block)?)?;
    let loops = lead.iter().chain(outer.iter().filter(|v| !lead.contains(v)));
    let words = words.get_mut(..outer.len() * width)?;
    for (axis, &v) in words.chunks_exact_mut(width.max(1)).zip(loops) {
        *axis.first_mut()? = v;
    }
    Some(())
}

/// An operand's strides along the outer axes, and its inner pattern, from where the head's last word says. That moves on.
#[inline(never)]
fn add_operand(memory: &mut [u32], shape: &Shape<'_>, i: usize, scope: &[u32]) -> Option<()> {
    if scope.iter().any(|v| !shape.order.contains(v)) {
        return None;
    }
    let (outer, width) = (*memory.first()? as usize, *memory.get(1)? as usize + 2);
    for axis in memory.get_mut(HEAD..HEAD + outer)?.chunks_exact_mut(width.max(1)) {
        let v = *axis.first()?;
        *axis.get_mut(i + 1)? = stride_in(scope, shape.cards, v)?;
    }
    let block = shape.order.get(shape.order.len().checked_sub(shape.block)?..)?;
    let at = *memory.get(HEAD - 1)? as usize;
    let (count, tail) = memory.get_mut(at..)?.split_first_mut()?;
    *count = axes_under(tail.as_chunks_mut().0, block, scope, shape.cards)?.len() as u32;
    let used = 1 + 2 * *count;
    *memory.get_mut(HEAD - 1)? += used;
    Some(())
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
        let mut work = Work { job: self, lies: Lies::default(), at: Position { offsets: [0; OPERANDS] } };
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
        match S::ROWS {
            None => stride::fold(pattern, products, into, plus),
            Some(sum) => stride::fold_rows(pattern, products, into, plus, |row| Some(sum(row))),
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

/// The inner patterns of a contraction, one an operand.
struct Patterns<'m> {
    words: &'m [u32],
    left: usize,
}

impl<'m> Iterator for Patterns<'m> {
    type Item = &'m [Axis];

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let (&count, tail) = self.words.split_first()?;
        let (axes, tail) = tail.split_at_checked(2 * count as usize)?;
        self.words = tail;
        Some(axes.as_chunks::<2>().0)
    }
}

/// Where all operands are in loops over outer axes. The digits are those of the configuration's number, which the loop knows:
/// each step costs a division and the memory of the offsets is all there is.
struct Position {
    offsets: [usize; OPERANDS],
}

impl Position {
    /// To the first configuration; the output begins at 0.
    #[inline(always)]
    fn start(&mut self, starts: &[u32]) {
        for (offset, &start) in self.offsets.iter_mut().skip(1).zip(starts) {
            *offset = start as usize;
        }
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
