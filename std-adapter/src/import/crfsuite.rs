//! CRFsuite's model files (version 100), little-endian throughout.
//!
//! ```text
//! "lCRF", size, "FOMC", version, features, labels, attributes, then offsets of: features, labels, attributes, label references, attribute references
//! features     "FEAT", size, count; each: type (0 state, 1 transition), source, label, weight (f64)
//! strings      "CQDB", size, flag, byte order, count, offset of a table (from "CQDB" on); the table: for each id the offset of (id, length with the final 0, bytes)
//! ```
//!
//! The references only repeat what the features say, and are not read.

use super::{Found, ImportError};
use crate::data::sequences::Dictionary;
use crate::model::SequenceModel;
use crate::model::sequence::Origin;

/// The first bytes.
pub const MAGIC: &[u8] = b"lCRF";

/// Imports a model that CRFsuite trained.
///
/// # Errors
/// An [`ImportError`]: another type or version, truncated, or indices that lead nowhere.
pub fn import(bytes: &[u8]) -> Result<SequenceModel, ImportError> {
    let wrong = |what: String| ImportError::Content { line: 0, what };
    if !bytes.starts_with(MAGIC) {
        return Err(ImportError::Unknown);
    }
    if bytes.get(8..12) != Some(b"FOMC") {
        return Err(wrong("a CRFsuite model of another type than a first-order Markov chain".into()));
    }
    let version = word(bytes, 12)?;
    if version != 100 {
        return Err(wrong(format!("a CRFsuite model of version {version}, but version 100 is read here")));
    }
    let mut found = Found::default();
    found.alphabet.labels = strings(bytes, word(bytes, 32)?, "label")?;
    found.alphabet.attributes = strings(bytes, word(bytes, 36)?, "attribute")?;
    let labels = found.alphabet.labels.len() as u32;
    let attributes = found.alphabet.attributes.len() as u32;
    let at = word(bytes, 28)? as usize;
    if bytes.get(at..at.saturating_add(4)) != Some(b"FEAT") {
        return Err(wrong("the list of features is not where the file says".into()));
    }
    let count = word(bytes, at + 8)? as usize;
    let features = count.checked_mul(20).and_then(|len| bytes.get(at + 12..)?.get(..len));
    for feature in features.ok_or(ImportError::Truncated)?.chunks_exact(20) {
        let (kind, from, label) = (word(feature, 0)?, word(feature, 4)?, word(feature, 8)?);
        let weight = feature.last_chunk::<8>().map_or(f64::NAN, |w| f64::from_le_bytes(*w));
        let sources = if kind == 0 { attributes } else { labels };
        if kind > 1 || from >= sources || label >= labels {
            return Err(wrong(format!("a feature of type {kind} from {from} to {label} leads nowhere")));
        }
        match kind {
            0 => found.states.push((from, label, weight)),
            _ => found.transitions.push((0, from * labels + label, weight)),
        }
    }
    found.model(Origin::Crfsuite, "CRFsuite")
}

fn word(bytes: &[u8], at: usize) -> Result<u32, ImportError> {
    let four = bytes.get(at..).and_then(|b| b.first_chunk::<4>());
    four.map(|b| u32::from_le_bytes(*b)).ok_or(ImportError::Truncated)
}

/// A table of strings, by their numbers.
fn strings(bytes: &[u8], at: u32, what: &str) -> Result<Dictionary, ImportError> {
    let wrong = |why: String| ImportError::Content { line: 0, what: why };
    let table = bytes.get(at as usize..).ok_or(ImportError::Truncated)?;
    if !table.starts_with(b"CQDB") {
        return Err(wrong(format!("the table of {what}s is not where the file says")));
    }
    let (count, first) = (word(table, 16)? as usize, word(table, 20)? as usize);
    let places = count.checked_mul(4).and_then(|len| table.get(first..)?.get(..len));
    let mut names = Dictionary::new();
    for place in places.ok_or(ImportError::Truncated)?.as_chunks::<4>().0 {
        let place = u32::from_le_bytes(*place) as usize;
        let length = word(table, place.saturating_add(4))? as usize;
        let name = table.get(place + 8..).and_then(|b| b.get(..length.checked_sub(1)?));
        let name = std::str::from_utf8(name.ok_or(ImportError::Truncated)?);
        let id = names.intern(name.map_err(|_| wrong(format!("the name of a {what} is no UTF-8 text")))?);
        if id as usize + 1 != names.len() {
            return Err(wrong(format!("two {what}s have the same name")));
        }
    }
    Ok(names)
}
