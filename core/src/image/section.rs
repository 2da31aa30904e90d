//! The section table: which parts an image has, and that they lie inside it side by side.

use crate::arena::rows;
use crate::error::{ImageError, SectionFault};

/// Words of the header before the section table.
pub(crate) const HEADER: usize = 8;
/// Words of an entry of the section table.
pub(crate) const ENTRY: usize = 3;
/// Set in the identifier of a section that a reader may skip if it does not know it.
pub const OPTIONAL: u32 = 1 << 31;

/// What a section is about. IMAGE.md has their contents.
pub mod id {
    /// Counts: labels, attributes, scalar, longest sequence, memory.
    pub const SHAPE: u32 = 1;
    /// Names of the labels.
    pub const LABELS: u32 = 2;
    /// Scores of transitions.
    pub const TRANSITIONS: u32 = 3;
    /// Where the weights of each attribute begin.
    pub const STATE_STARTS: u32 = 4;
    /// The label of each weight.
    pub const STATE_LABELS: u32 = 5;
    /// The weights.
    pub const STATE_WEIGHTS: u32 = 6;
    /// Hashes of the attributes' names.
    pub const ATTRIBUTES: u32 = 7;
    /// The names themselves.
    pub const STRINGS: u32 = 8;
    /// What the units of fixed-point numbers are worth.
    pub const SCALES: u32 = 9;
    /// `log(1 + e^-d)` in units.
    pub const LOG_ADD: u32 = 10;
    /// The largest number that a chain can have.
    pub(crate) const LAST: u32 = LOG_ADD;
    /// Counts of a field: variables, factors, edges, table entries, attributes, weights.
    pub const FIELD: u32 = 32;
    /// Arity of each variable.
    pub const CARDS: u32 = 33;
    /// Where each factor's scope begins.
    pub const SCOPE_STARTS: u32 = 34;
    /// The variables of all factors.
    pub const SCOPES: u32 = 35;
    /// Where each factor's table begins.
    pub const TABLE_STARTS: u32 = 36;
    /// What the tables hold if no attribute is there.
    pub const TABLES: u32 = 37;
    /// Where the weights of each attribute begin.
    pub const WEIGHT_STARTS: u32 = 38;
    /// The table entry that each weight adds to.
    pub const WEIGHT_PLACES: u32 = 39;
    /// The weights.
    pub const WEIGHTS: u32 = 40;
    /// Names of the variables.
    pub const OUTPUTS: u32 = 41;
    /// Names of the labels, variable after variable.
    pub const OUTPUT_LABELS: u32 = 42;
    /// A junction tree.
    pub const PLAN: u32 = 43;
    /// What the numbers of a field in fixed point are, and what their units are worth.
    pub const FIELD_SCALES: u32 = 44;
    /// `log(1 + e^-d)` in units, of a field.
    pub const FIELD_LOG_ADD: u32 = 45;
    /// The largest number that a field can have.
    pub(crate) const FIELD_LAST: u32 = 47;
    /// Gaussian CRF: counts, memory. An image with this section holds one.
    pub const GAUSSIAN: u32 = 48;
    /// Gaussian CRF: the output at each place of the order of elimination, and the place of each output.
    pub const PLACES: u32 = 49;
    /// Gaussian CRF: where the entries of each column of the factor begin.
    pub const FACTOR_STARTS: u32 = 50;
    /// Gaussian CRF: their rows.
    pub const FACTOR_ROWS: u32 = 51;
    /// Gaussian CRF: the factor and its pivots.
    pub const FACTOR: u32 = 52;
    /// Gaussian CRF: the precisions themselves.
    pub const PRECISION: u32 = 53;
    /// Gaussian CRF: where the weights of each output's inputs begin.
    pub const INPUT_STARTS: u32 = 54;
    /// Gaussian CRF: the input of each weight.
    pub const INPUTS: u32 = 55;
    /// Gaussian CRF: the weights.
    pub const INPUT_WEIGHTS: u32 = 56;
    /// Gaussian CRF: intercepts and standard deviations.
    pub const MOMENTS: u32 = 57;
    /// Gaussian CRF: names of the outputs.
    pub const OUTPUT_NAMES: u32 = 58;
    /// Gaussian CRF: names of the inputs.
    pub const INPUT_NAMES: u32 = 59;
    /// The largest number that a Gaussian CRF can have.
    pub(crate) const GAUSSIAN_LAST: u32 = 63;
}

/// Sections by identifier. Nothing is remembered of the table but that it is good: a device's stack is short.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sections<'a>(&'a [u32]);

impl<'a> Sections<'a> {
    /// Reads the table: identifiers ascend (without [`OPTIONAL`]), sections follow one another without overlap and end
    /// inside the image, unknown ones may be skipped.
    #[inline(always)]
    pub(crate) fn read(
        words: &'a [u32],
        count: usize,
        knows: impl Fn(u32) -> bool,
    ) -> Result<Self, ImageError> {
        let sections = Self(words);
        let (mut last, mut end) = (0, HEADER.saturating_add(count.saturating_mul(ENTRY)));
        for [raw, offset, length] in sections.entries() {
            let section = raw & !OPTIONAL;
            let fault = |why| Err(ImageError::Section { section, why });
            if section <= last {
                return fault(SectionFault::Order);
            }
            last = section;
            let next = (offset as usize).saturating_add(length as usize);
            if (offset as usize) < end || next > words.len() {
                return fault(SectionFault::Bounds);
            }
            end = next;
            if raw & OPTIONAL == 0 && !knows(section) {
                return fault(SectionFault::Unknown);
            }
        }
        Ok(sections)
    }

    /// The entries of the table. The header has their number, and `open` has seen that they are there.
    fn entries(&self) -> impl Iterator<Item = [u32; ENTRY]> + use<'a> {
        let count = self.0.get(5).map_or(0, |&n| n as usize);
        let table = rows(self.0.get(HEADER..).unwrap_or(&[]), ENTRY);
        table.take(count).map(|entry| entry.first_chunk().copied().unwrap_or_default())
    }

    /// All words of the image.
    pub(crate) fn words(&self) -> &'a [u32] {
        self.0
    }

    /// A section's words; nothing if the image does not have it.
    #[inline(never)]
    pub(crate) fn get(&self, section: u32) -> Option<&'a [u32]> {
        let [_, offset, length] = self.entries().find(|&[raw, ..]| raw & !OPTIONAL == section)?;
        let (_, from) = self.0.split_at_checked(offset as usize)?;
        from.split_at_checked(length as usize).map(|(section, _)| section)
    }

    /// A section that was checked; empty if the image does not have it.
    pub(crate) fn known(&self, section: u32) -> &'a [u32] {
        self.get(section).unwrap_or(&[])
    }

    /// A section that must be there, with as many words.
    pub(crate) fn sized(&self, section: u32, length: Option<usize>) -> Result<&'a [u32], ImageError> {
        let fault = |why| ImageError::Section { section, why };
        let words = self.get(section).ok_or(fault(SectionFault::Missing))?;
        if Some(words.len()) == length { Ok(words) } else { Err(fault(SectionFault::Length)) }
    }
}
