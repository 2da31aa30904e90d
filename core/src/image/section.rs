//! The section table: which parts an image has, and that they lie inside it side by side.

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
    /// The largest number that this version knows.
    pub(crate) const LAST: u32 = LOG_ADD;
}

/// Sections by identifier; empty where there is none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sections<'a> {
    words: &'a [u32],
    /// Offset and length of the known ones.
    found: [(u32, u32); id::LAST as usize],
}

impl<'a> Sections<'a> {
    /// Reads the table: identifiers ascend (without [`OPTIONAL`]), sections follow one another without overlap and end
    /// inside the image, unknown ones may be skipped.
    pub(crate) fn read(words: &'a [u32], count: usize) -> Result<Self, ImageError> {
        let table = words.get(HEADER..).unwrap_or(&[]);
        let mut found = [(0, 0); id::LAST as usize];
        let (mut last, mut end) = (0, HEADER.saturating_add(count.saturating_mul(ENTRY)));
        let (entries, _) = table.as_chunks::<ENTRY>();
        for &[raw, offset, length] in entries.iter().take(count) {
            let section = raw & !OPTIONAL;
            let fault = |why| Err(ImageError::Section { section, why });
            if section <= last {
                return fault(SectionFault::Order);
            }
            last = section;
            let Some(next) = (offset as usize).checked_add(length as usize) else {
                return fault(SectionFault::Bounds);
            };
            if (offset as usize) < end || next > words.len() {
                return fault(SectionFault::Bounds);
            }
            end = next;
            // From 1, so that this ends in the table for the known ones only.
            match found.get_mut(section as usize - 1) {
                Some(place) => *place = (offset, length),
                None if raw & OPTIONAL == 0 => return fault(SectionFault::Unknown),
                None => {}
            }
        }
        Ok(Self { words, found })
    }

    /// A section's words; nothing if the image does not have it.
    pub(crate) fn get(&self, section: u32) -> Option<&'a [u32]> {
        let &(offset, length) = self.found.get((section as usize).checked_sub(1)?)?;
        let (_, from) = self.words.split_at_checked(offset as usize).filter(|_| offset > 0)?;
        from.split_at_checked(length as usize).map(|(section, _)| section)
    }

    /// A section that must be there, with as many words.
    pub(crate) fn sized(&self, section: u32, length: Option<usize>) -> Result<&'a [u32], ImageError> {
        let fault = |why| ImageError::Section { section, why };
        let words = self.get(section).ok_or(fault(SectionFault::Missing))?;
        if Some(words.len()) == length { Ok(words) } else { Err(fault(SectionFault::Length)) }
    }
}
