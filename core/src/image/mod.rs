//! The model image: a trained model as words in flash, opened without copying.
//!
//! [`Image::open`] checks everything once, in the order that `IMAGE.md` gives; the views that it hands out cannot fail. `gibbsite
//! export` writes images.
//!
//! | file | what |
//! | --- | --- |
//! | `mod` | the header, the checks |
//! | `section`, `checksum`, `packed` | the section table; the CRC; small numbers and texts in words |
//! | `scalar` | `f32` and fixed point: what weights are and how they add up |
//! | `lookup` | attributes by name |
//! | `chain` | a linear chain: scores of items, transitions, decoding |
//! | `log_add`, `smooth` | marginals in fixed point; in single precision |
//! | `gaussian` | a Gaussian CRF |
//! | `field`, `field_view` | a field over the columns of a table: its structure; its numbers, graph and junction tree |

mod chain;
mod checksum;
mod field;
mod field_view;
mod gaussian;
mod log_add;
mod lookup;
mod packed;
mod scalar;
mod section;
mod smooth;

pub use chain::{ChainView, Item, chain_memory};
pub use checksum::Checksum;
pub use field::FieldImage;
pub use field_view::FieldView;
pub use gaussian::{GaussianImage, GaussianView, MAX_REALS, gaussian_floats, gaussian_memory};
pub use log_add::marginals_len;
pub use lookup::hash;
pub use packed::Text;
pub use scalar::{CLAMP, FORBIDDEN, ONE, Scalar, Weight};
pub use section::{OPTIONAL, id};
pub use smooth::smooth_len;

use crate::arena::rows;
use crate::error::{ImageError, SectionFault};
use crate::log_add::LogAdd;
pub(crate) use packed::ascending;
use packed::{Texts, packed_len};
use scalar::fixed::half;
use section::{ENTRY, HEADER, Sections};

/// The first word: `gibb` in a little-endian file.
pub const MAGIC: u32 = 0x6262_6967;
/// The version of the format that this library reads.
pub const MAJOR: u16 = 1;
/// The newest addition to it that this library knows.
pub const MINOR: u16 = 0;
/// The third word, which shows the order of bytes.
pub const MARK: u32 = 0x0102_0304;
/// Labels that an image can have: back pointers are bytes.
pub const MAX_LABELS: usize = 256;
/// The longest sequence that an image can plan memory for; [streams](crate::infer::stream) have no end.
pub const MAX_ITEMS: usize = 65_535;
/// The largest power of two between the units of weights and of transitions.
pub const MAX_SHIFT: u32 = 8;

/// What fixed-point numbers are worth, and how exact they are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scales {
    /// One unit, in natural logarithms.
    pub unit: f32,
    /// Weights of states are whole numbers of `unit · 2^shift`.
    pub shift: u32,
    /// Whether a transition is forbidden.
    pub forbids: bool,
    /// No weight of a state is further from the model's.
    pub weight_error: f32,
    /// No transition (of a field: no constant) is further from the model's.
    pub transition_error: f32,
}

/// A checked model image.
///
/// ```
/// use gibbsite_core::image::Image;
/// use gibbsite_core::error::ImageError;
/// assert_eq!(Image::open(&[0; 64]).unwrap_err(), ImageError::NotAnImage);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Image<'a> {
    sections: Sections<'a>,
    scalar: Scalar,
}

impl<'a> Image<'a> {
    /// Checks an image: first word, order of bytes, version, length, checksum, section table, sections in ascending order.
    /// Words after its end are not looked at.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn open(words: &'a [u32]) -> Result<Self, ImageError> {
        Self::check_chain(open_sections(words, |section| section <= id::LAST)?)
    }

    /// Checks the sections of a chain. One after the other, so that little of them is in memory at a time.
    #[inline(never)]
    fn check_chain(sections: Sections<'a>) -> Result<Self, ImageError> {
        let fault = |section, why| ImageError::Section { section, why };
        let value = |section| fault(section, SectionFault::Value);
        let ok = |section, good: bool| if good { Ok(()) } else { Err(value(section)) };
        let &[labels, attributes, scalar, longest, decode, marginals] = sections.sized(id::SHAPE, Some(6))?
        else {
            return Err(fault(id::SHAPE, SectionFault::Length));
        };
        let scalar = Scalar::from_word(scalar).ok_or(value(id::SHAPE))?;
        let (labels, attributes, longest) = (labels as usize, attributes as usize, longest as usize);
        let told = Some([decode as usize, marginals as usize]);
        let memory = chain_memory(scalar, labels, longest);
        ok(id::SHAPE, (1..=MAX_LABELS).contains(&labels) && longest > 0 && told == memory)?;
        if let Some(section) = sections.get(id::LABELS) {
            ok(id::LABELS, Texts::open(section, labels).is_some())?;
        }
        let row = scalar.row_len(labels);
        let transitions = sections.sized(id::TRANSITIONS, row.checked_mul(labels))?;
        let starts = sections.sized(id::STATE_STARTS, attributes.checked_add(1))?;
        let count = ascending(starts).ok_or(value(id::STATE_STARTS))? as usize;
        let state_labels = sections.sized(id::STATE_LABELS, Some(packed_len(count, 2)))?;
        ok(id::STATE_LABELS, all_below(state_labels, labels))?;
        let weights = sections.sized(id::STATE_WEIGHTS, Some(packed_len(count, scalar.packing())))?;
        if scalar == Scalar::F32 {
            ok(id::TRANSITIONS, f32::legal_transitions(transitions))?;
            ok(id::STATE_WEIGHTS, f32::legal_states(weights))?;
        }
        check_names(sections, attributes)?;
        match sections.get(id::SCALES) {
            None if scalar == Scalar::F32 => {}
            None => return Err(fault(id::SCALES, SectionFault::Missing)),
            Some(section) => {
                let scales = Scales::open(section, scalar).ok_or(value(id::SCALES))?;
                let mut each = rows(transitions, row).flat_map(|r| (0..labels).map(|i| half(r, i)));
                ok(id::TRANSITIONS, each.any(|a| a == FORBIDDEN) == scales.forbids)?;
            }
        }
        if let Some(section) = sections.get(id::LOG_ADD) {
            ok(id::LOG_ADD, LogAdd::open(section).is_some())?;
        }
        Ok(Self { sections, scalar })
    }

    /// A word of the shape.
    fn shape(&self, at: usize) -> usize {
        self.sections.known(id::SHAPE).get(at).map_or(0, |&n| n as usize)
    }

    /// What the weights are.
    pub fn scalar(&self) -> Scalar {
        self.scalar
    }

    /// How many labels there are.
    pub fn labels(&self) -> usize {
        self.shape(0)
    }

    /// How many attributes there are.
    pub fn attributes(&self) -> usize {
        self.shape(1)
    }

    /// How many weights of attributes there are.
    pub fn weights(&self) -> usize {
        self.sections.known(id::STATE_STARTS).last().map_or(0, |&n| n as usize)
    }

    /// The longest sequence that memory was planned for.
    pub fn longest(&self) -> usize {
        self.shape(3)
    }

    /// Bytes of flash.
    pub fn bytes(&self) -> usize {
        self.sections.words().len().saturating_mul(4)
    }

    /// The name of a label, if names are stored.
    pub fn label(&self, label: u8) -> Option<Text<'a>> {
        Texts::known(self.sections.get(id::LABELS)?, self.labels())?.get(usize::from(label))
    }

    /// The name of an attribute, if names are stored.
    pub fn attribute_name(&self, attribute: u32) -> Option<Text<'a>> {
        self.strings()?.get(attribute as usize)
    }

    fn strings(&self) -> Option<Texts<'a>> {
        Texts::known(self.sections.get(id::STRINGS)?, self.attributes())
    }

    /// The number of an attribute; nothing if the model does not have it, or no names. Without stored names a name that
    /// the model does not have is found with probability [`false_positive_rate`](Self::false_positive_rate).
    pub fn attribute(&self, name: &[u8]) -> Option<u32> {
        lookup::find(self.sections.get(id::ATTRIBUTES)?, self.strings(), name)
    }

    /// The probability that a name the model does not have is taken for one that it has.
    pub fn false_positive_rate(&self) -> f32 {
        if self.strings().is_some() { 0.0 } else { self.attributes() as f32 / 4_294_967_296.0 }
    }

    /// What fixed-point numbers are worth.
    pub fn scales(&self) -> Scales {
        let section = self.sections.get(id::SCALES);
        section.and_then(|s| Scales::open(s, self.scalar)).unwrap_or(Scales::of_f32())
    }

    pub(crate) fn sections(&self) -> Sections<'a> {
        self.sections
    }

    /// The chain, to label sequences with.
    ///
    /// # Errors
    /// [`ImageError::Scalar`] if the weights are of another kind.
    pub fn chain<W: Weight>(&self) -> Result<ChainView<'a, W>, ImageError> {
        if W::SCALAR == self.scalar {
            Ok(ChainView::new(*self))
        } else {
            Err(ImageError::Scalar(self.scalar))
        }
    }
}

/// Header, checksum and section table of an image whose reader `knows` these sections.
#[inline(always)]
fn open_sections(words: &[u32], knows: impl Fn(u32) -> bool) -> Result<Sections<'_>, ImageError> {
    let Some(&[magic, version, mark, length, sum, count, 0, 0]) = words.first_chunk::<HEADER>() else {
        return Err(match words.first() {
            Some(&MAGIC) if words.len() < HEADER => ImageError::Truncated,
            Some(&MAGIC) => ImageError::Section { section: 0, why: SectionFault::Value },
            _ => ImageError::NotAnImage,
        });
    };
    if magic == MAGIC.swap_bytes() || magic == MAGIC && mark == MARK.swap_bytes() {
        return Err(ImageError::Endianness);
    }
    if magic != MAGIC || mark != MARK {
        return Err(ImageError::NotAnImage);
    }
    let (major, minor) = ((version >> 16) as u16, version as u16);
    if major != MAJOR {
        return Err(ImageError::Version { major, minor });
    }
    let (length, count) = (length as usize, count as usize);
    let table = count.checked_mul(ENTRY).and_then(|n| n.checked_add(HEADER));
    let (Some(words), Some(table)) = (words.get(..length), table) else {
        return Err(ImageError::Truncated);
    };
    if length < table {
        return Err(ImageError::Truncated);
    }
    let mut checksum = Checksum::default();
    checksum.add(&[magic, version, mark, length as u32, 0]);
    checksum.add(words.get(5..).unwrap_or(&[]));
    if checksum.finish() != sum {
        return Err(ImageError::Checksum);
    }
    Sections::read(words, count, knows)
}

/// Attributes by name: [`id::STRINGS`] (if there), which needs [`id::ATTRIBUTES`].
#[inline(always)]
fn check_names(sections: Sections<'_>, attributes: usize) -> Result<(), ImageError> {
    let fault = |section, why| Err(ImageError::Section { section, why });
    let strings = sections.get(id::STRINGS);
    if strings.is_some_and(|section| Texts::open(section, attributes).is_none()) {
        return fault(id::STRINGS, SectionFault::Value);
    }
    match sections.get(id::ATTRIBUTES) {
        None if strings.is_some() => fault(id::ATTRIBUTES, SectionFault::Missing),
        Some(section) if !lookup::is_good(section, attributes) => fault(id::ATTRIBUTES, SectionFault::Value),
        _ => Ok(()),
    }
}

impl Scales {
    fn of_f32() -> Self {
        Self { unit: 1.0, shift: 0, forbids: true, weight_error: 0.0, transition_error: 0.0 }
    }

    fn open(section: &[u32], scalar: Scalar) -> Option<Self> {
        let &[unit, shift, forbids, weight_error, transition_error] = section else { return None };
        // Numbers of at least 0 are in the order of their bits. Units below 2⁻¹⁰⁰ or above 2⁶⁰ could not be told from 0 or
        // infinity once multiplied.
        const UNITS: core::ops::RangeInclusive<u32> = 8e-31f32.to_bits()..=1.1e18f32.to_bits();
        let finite = f32::INFINITY.to_bits();
        let sane = UNITS.contains(&unit) && weight_error < finite && transition_error < finite;
        let scales = Self {
            unit: f32::from_bits(unit),
            shift,
            forbids: forbids != 0,
            weight_error: f32::from_bits(weight_error),
            transition_error: f32::from_bits(transition_error),
        };
        (sane && shift <= MAX_SHIFT && forbids <= 1 && scalar != Scalar::F32).then_some(scales)
    }
}

/// Whether all bytes are below `limit`, which is from 1 to 256. Four at a time where that can be done.
fn all_below(words: &[u32], limit: usize) -> bool {
    const EACH: u32 = 0x0101_0101;
    if limit >= 256 {
        return true;
    }
    if limit > 128 {
        return words.iter().all(|w| w.to_le_bytes().iter().all(|&b| usize::from(b) < limit));
    }
    // A byte of `limit` or more reaches its highest bit, or has it already (and may then disturb the next one, which does
    // not matter any more).
    let lift = EACH.wrapping_mul(128 - limit as u32);
    let (fours, rest) = words.as_chunks::<4>();
    let high = |w: u32| w | w.wrapping_add(lift);
    let mut found = rest.iter().fold(0, |found, &w| found | high(w));
    for &[a, b, c, d] in fours {
        found |= high(a) | high(b) | high(c) | high(d);
    }
    found & (EACH << 7) == 0
}
