//! The model file, for every kind of model. All numbers are little-endian.
//!
//! ```text
//! bytes            what
//! 8                magic: 89 67 69 62 0d 0a 1a 0a ("\x89gib\r\n\x1a\n": text-mode damage shows, as in PNG)
//! 4                format version, 1
//! 4                kind, four letters: "regr" for a sparse regression, "seqs" for a chain over sequences,
//!                  "fild" for a field over the columns of a table, "gaus" for a Gaussian CRF
//! 4                length of the header
//! 4                number of sections
//! 24 a section     name (four letters), four zero bytes, first byte, length in bytes
//! the header       JSON in UTF-8: says what the model is without the sections
//! each section     at a multiple of 8, so that a mapped file can be read in place
//! 4                CRC-32 (IEEE) of all bytes before
//! ```
//!
//! The same model gives the same bytes: no date, no host, no map in random order.

use serde_json::Value;
use std::fmt;

/// The first bytes of a model file.
pub const MAGIC: [u8; 8] = *b"\x89gib\r\n\x1a\n";
/// The format version that is written, and the only one that is read.
pub const VERSION: u32 = 1;
const FIXED: usize = 24;
const ENTRY: usize = 24;

/// What a file holds, in four letters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Kind(pub [u8; 4]);

impl Kind {
    /// A sparse regression.
    pub const REGRESSION: Self = Self(*b"regr");
    /// A chain over the items of sequences.
    pub const SEQUENCES: Self = Self(*b"seqs");
    /// A field over the columns of a table.
    pub const FIELD: Self = Self(*b"fild");
    /// A Gaussian CRF.
    pub const GAUSSIAN: Self = Self(*b"gaus");
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kind({self})")
    }
}

/// Why bytes are no model that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelError {
    /// Other first bytes.
    NotAModel,
    /// Written by another version of the program.
    Version(u32),
    /// A model, but of another kind.
    Kind {
        /// What it is.
        found: Kind,
        /// What was asked for.
        expected: Kind,
    },
    /// It ends too early.
    Truncated,
    /// The checksum is wrong.
    Checksum,
    /// Checksum right, content wrong: what is the matter.
    Content(String),
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAModel => write!(f, "not a gibbsite model, expected a file that `--model` wrote"),
            Self::Version(found) => write!(
                f,
                "a gibbsite model of format version {found}, but this program reads version {VERSION}"
            ),
            Self::Kind { found, expected } => {
                write!(f, "a gibbsite model of the kind `{found}`, but `{expected}` is needed here")
            }
            Self::Truncated => write!(f, "a truncated gibbsite model: it ends too early"),
            Self::Checksum => write!(f, "a damaged gibbsite model: its checksum is wrong"),
            Self::Content(what) => write!(f, "a damaged gibbsite model: {what}"),
        }
    }
}

impl std::error::Error for ModelError {}

impl ModelError {
    /// Sections and header that are right by themselves, but not together.
    pub(super) fn unfit() -> Self {
        Self::Content("its parts do not fit together".into())
    }
}

/// The bytes of a section of numbers, for [`Container::numbers`].
pub(super) fn bytes_of(numbers: &[f64]) -> Vec<u8> {
    numbers.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// Whether these bytes begin as a model file does.
pub fn is_model(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// The bytes of a model file. Sections have names of four letters, each once.
///
/// ```
/// use gibbsite::model::container::{Container, Kind, write};
/// let bytes = write(Kind(*b"test"), &serde_json::json!({ "about": "nothing" }), &[(*b"data", &[1, 2, 3])]);
/// let file = Container::open(&bytes)?;
/// assert_eq!(file.header["about"], "nothing");
/// assert_eq!(file.section(*b"data"), Some(&[1, 2, 3][..]));
/// # Ok::<(), gibbsite::model::ModelError>(())
/// ```
pub fn write(kind: Kind, header: &Value, sections: &[([u8; 4], &[u8])]) -> Vec<u8> {
    let header = header.to_string();
    let mut at = FIXED + ENTRY * sections.len() + header.len();
    let mut bytes = Vec::new();
    bytes.extend(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(kind.0);
    bytes.extend((header.len() as u32).to_le_bytes());
    bytes.extend((sections.len() as u32).to_le_bytes());
    for (name, section) in sections {
        at = at.next_multiple_of(8);
        bytes.extend(name);
        bytes.extend([0; 4]);
        bytes.extend((at as u64).to_le_bytes());
        bytes.extend((section.len() as u64).to_le_bytes());
        at += section.len();
    }
    bytes.extend(header.as_bytes());
    for (_, section) in sections {
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes.extend_from_slice(section);
    }
    let checksum = crc32fast::hash(&bytes);
    bytes.extend(checksum.to_le_bytes());
    bytes
}

/// A model file, checked; the sections are views of its bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Container<'a> {
    /// What it holds.
    pub kind: Kind,
    /// The self-description, an object.
    pub header: Value,
    sections: Vec<([u8; 4], &'a [u8])>,
}

impl<'a> Container<'a> {
    /// Checks everything that does not depend on the kind. Nothing is allocated but the header and the list of sections, neither of which
    /// can be larger than the bytes are.
    ///
    /// # Errors
    /// A [`ModelError`]: something else, another version, truncated, damaged.
    pub fn open(bytes: &'a [u8]) -> Result<Self, ModelError> {
        if !is_model(bytes) {
            let cut = !bytes.is_empty() && MAGIC.starts_with(bytes);
            return Err(if cut { ModelError::Truncated } else { ModelError::NotAModel });
        }
        let mut cursor = Cursor(&bytes[MAGIC.len()..]);
        let version = cursor.word()?;
        if version != VERSION {
            return Err(ModelError::Version(version));
        }
        let kind = Kind(cursor.take()?);
        let header_len = cursor.word()? as usize;
        let count = cursor.word()? as usize;
        // Lengths before the checksum: a file that was cut is "truncated", not "damaged".
        let head = count
            .checked_mul(ENTRY)
            .and_then(|n| n.checked_add(FIXED)?.checked_add(header_len))
            .filter(|&n| n + 4 <= bytes.len())
            .ok_or(ModelError::Truncated)?;
        let body = &bytes[..bytes.len() - 4];
        let mut sections = Vec::with_capacity(count);
        let mut last = head;
        for _ in 0..count {
            let name = cursor.take()?;
            let _: [u8; 4] = cursor.take()?;
            let (first, len) = (cursor.long()?, cursor.long()?);
            let end = first.checked_add(len).ok_or(ModelError::Truncated)?;
            let section = body.get(first..end).ok_or(ModelError::Truncated)?;
            last = last.max(end);
            sections.push((name, section));
        }
        let checksum: [u8; 4] = bytes[body.len()..].try_into().map_err(|_| ModelError::Truncated)?;
        if last != body.len() || crc32fast::hash(body) != u32::from_le_bytes(checksum) {
            return Err(ModelError::Checksum);
        }
        let header: Value = serde_json::from_slice(&bytes[head - header_len..head])
            .map_err(|e| ModelError::Content(format!("the header is no JSON: {e}")))?;
        if !header.is_object() {
            return Err(ModelError::Content("the header is no JSON object".into()));
        }
        Ok(Self { kind, header, sections })
    }

    /// The bytes of a section.
    pub fn section(&self, name: [u8; 4]) -> Option<&'a [u8]> {
        self.sections.iter().find(|s| s.0 == name).map(|s| s.1)
    }

    /// Whether the file is of this kind.
    ///
    /// # Errors
    /// [`ModelError::Kind`] if it is of another one.
    pub fn expect(&self, expected: Kind) -> Result<(), ModelError> {
        if self.kind == expected { Ok(()) } else { Err(ModelError::Kind { found: self.kind, expected }) }
    }

    /// The bytes of a section that has to be there.
    ///
    /// # Errors
    /// [`ModelError::Content`] if it is not.
    pub fn required(&self, name: [u8; 4]) -> Result<&'a [u8], ModelError> {
        let missing = || ModelError::Content(format!("there is no section `{}`", name.escape_ascii()));
        self.section(name).ok_or_else(missing)
    }

    /// A section of numbers of `N` bytes each.
    ///
    /// # Errors
    /// [`ModelError::Content`] if there is no such section or it does not divide.
    pub fn numbers<T, const N: usize>(
        &self,
        name: [u8; 4],
        from: impl Fn([u8; N]) -> T,
    ) -> Result<Vec<T>, ModelError> {
        let (numbers, rest) = self.required(name)?.as_chunks::<N>();
        if !rest.is_empty() {
            return Err(ModelError::Content(format!("the section `{}` is cut", name.escape_ascii())));
        }
        Ok(numbers.iter().map(|&b| from(b)).collect())
    }
}

/// What has not been read yet.
struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], ModelError> {
        let (first, rest) = self.0.split_first_chunk::<N>().ok_or(ModelError::Truncated)?;
        self.0 = rest;
        Ok(*first)
    }

    fn word(&mut self) -> Result<u32, ModelError> {
        self.take().map(u32::from_le_bytes)
    }

    fn long(&mut self) -> Result<usize, ModelError> {
        usize::try_from(u64::from_le_bytes(self.take()?)).map_err(|_| ModelError::Truncated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sample() -> Vec<u8> {
        write(
            Kind(*b"test"),
            &json!({ "a": 1 }),
            &[(*b"one ", &[1; 5]), (*b"none", &[]), (*b"two ", &[2; 16])],
        )
    }

    #[test]
    fn sections_come_back_aligned() {
        let bytes = sample();
        let file = Container::open(&bytes).unwrap();
        assert_eq!((file.kind, &file.header), (Kind(*b"test"), &json!({ "a": 1 })));
        assert_eq!(file.section(*b"one "), Some(&[1; 5][..]));
        assert_eq!(file.section(*b"none"), Some(&[][..]));
        assert_eq!(file.section(*b"zero"), None);
        let two = file.section(*b"two ").unwrap();
        assert_eq!((two, (two.as_ptr() as usize - bytes.as_ptr() as usize) % 8), (&[2; 16][..], 0));
        assert_eq!(file.numbers(*b"two ", u64::from_le_bytes).unwrap(), [0x0202_0202_0202_0202; 2]);
        assert!(matches!(file.numbers(*b"one ", u32::from_le_bytes), Err(ModelError::Content(_))));
    }

    #[test]
    fn every_cut_and_every_flipped_bit_is_found() {
        let bytes = sample();
        for len in 0..bytes.len() {
            let expected = if len == 0 { ModelError::NotAModel } else { ModelError::Truncated };
            assert_eq!(Container::open(&bytes[..len]), Err(expected), "{len}");
        }
        for bit in 0..8 * bytes.len() {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Container::open(&damaged).is_err(), "bit {bit}");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert_eq!(Container::open(&longer), Err(ModelError::Checksum));
    }

    #[test]
    fn sizes_beyond_memory_are_refused() {
        let mut bytes = sample();
        bytes[16..24].fill(0xff);
        assert_eq!(Container::open(&bytes), Err(ModelError::Truncated));
        let mut bytes = sample();
        bytes[FIXED + 8..FIXED + 24].fill(0xff);
        assert_eq!(Container::open(&bytes), Err(ModelError::Truncated));
        bytes[8] = 9;
        assert_eq!(Container::open(&bytes), Err(ModelError::Version(9)));
    }
}
