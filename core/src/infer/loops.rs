//! The loops of a contraction, as words: written by one step into the caller's memory, run by another.

use super::plan::MAX_INPUTS;
use crate::stride::{self, Axis};
use crate::table::MAX_SCOPE;

/// Operands: the inputs, a message from above, and the output.
const OPERANDS: usize = MAX_INPUTS + 2;

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
    pub(super) fn segment(&self) -> (usize, usize) {
        (self.word(3), self.word(4))
    }

    /// Configurations of the block.
    #[inline(always)]
    pub(super) fn block(&self) -> usize {
        self.word(5)
    }

    /// Configurations of the outer axes behind the lead.
    #[inline(always)]
    pub(super) fn rest(&self) -> usize {
        self.word(6)
    }

    /// Words of an outer axis: its count, and the stride of each operand.
    #[inline(always)]
    pub(super) fn width(&self) -> usize {
        self.inputs() + 2
    }

    /// The outer axes: those of the lead, and the rest.
    #[inline(always)]
    pub(super) fn axes(&self) -> Option<(&'m [u32], &'m [u32])> {
        self.0.get(HEAD..HEAD + self.word(0))?.split_at_checked(self.word(2) * self.width())
    }

    /// Where each input begins.
    #[inline(always)]
    pub(super) fn starts(&self) -> &'m [u32] {
        let from = HEAD + self.word(0);
        self.0.get(from..from + self.inputs()).unwrap_or(&[])
    }

    /// The inner pattern of each operand.
    #[inline(always)]
    pub(super) fn patterns(&self) -> Patterns<'m> {
        let words = self.0.get(HEAD + self.word(0) + self.inputs()..).unwrap_or(&[]);
        Patterns { words, left: self.inputs() + 1 }
    }

    /// Visits the configurations of the axes behind the lead, numbered, with the place of each input, the lead's
    /// variables being held at `lead`. Only for loops without a block.
    #[inline]
    pub(crate) fn each_rest(&self, lead: impl Iterator<Item = u32>, mut visit: impl FnMut(usize, &[usize])) {
        let width = self.width();
        let Some((lead_axes, rest_axes)) = self.axes() else { return };
        let mut at = Position::ORIGIN;
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
    pub(super) fn segments_per_chunk(&self, work: usize) -> usize {
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

/// The inner patterns of a contraction, one an operand.
pub(super) struct Patterns<'m> {
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
pub(super) struct Position {
    offsets: [usize; OPERANDS],
}

impl Position {
    /// All at 0.
    pub(super) const ORIGIN: Self = Self { offsets: [0; OPERANDS] };

    /// To the first configuration; the output begins at 0.
    #[inline(always)]
    pub(super) fn start(&mut self, starts: &[u32]) {
        for (offset, &start) in self.offsets.iter_mut().skip(1).zip(starts) {
            *offset = start as usize;
        }
    }

    pub(super) fn output(&self) -> usize {
        let [output, ..] = self.offsets;
        output
    }

    pub(super) fn inputs(&self) -> &[usize] {
        let [_, inputs @ ..] = &self.offsets;
        inputs
    }

    /// From the first configuration to the one with this number.
    pub(super) fn jump(&mut self, axes: &[u32], width: usize, mut number: usize) {
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
    pub(super) fn step(&mut self, axes: &[u32], width: usize, mut number: usize) {
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
