//! CRFsuite files: `LABEL<TAB>attr[:value]<TAB>…`, an item a line, blank lines between sequences.
//!
//! As CRFsuite reads them: `\:` and `\\` stand for `:` and `\`, any other backslash for itself; an attribute without a value, or
//! with nothing after the colon, has the value 1; empty fields are skipped; an attribute may be there more than once, and
//! then its values add. Different: the value is what follows the last colon (not the first), it must be a finite
//! number, a colon in the label is a part of it, `?` and `{A|B}` are labels that are not or not quite known, and `@weight`
//! is refused.

use super::super::dataset::Fault;
use super::super::dataset::number::{decimal, shown};
use super::part::{Part, not_text, whole_text};
use super::store::Gold;

/// Where a run of plain characters ends.
const STOPS: [bool; 256] = {
    let mut stops = [false; 256];
    stops[b'\t' as usize] = true;
    stops[b'\n' as usize] = true;
    stops[b':' as usize] = true;
    stops[b'\\' as usize] = true;
    stops
};

/// A field of a line.
struct Field<'a> {
    text: &'a str,
    /// Where its last colon is that is not escaped.
    colon: Option<usize>,
    /// Whether something in it is escaped.
    escaped: bool,
}

/// The field at `at`, and where its tab, its line end or the end of the text is.
#[inline(always)]
fn field(text: &str, at: usize) -> (Field<'_>, usize) {
    let bytes = text.as_bytes();
    let start = at;
    let (mut at, mut colon, mut escaped) = (at, None, false);
    loop {
        while let Some(&b) = bytes.get(at)
            && !STOPS[usize::from(b)]
        {
            at += 1;
        }
        match bytes.get(at) {
            Some(b':') => {
                colon = Some(at - start);
                at += 1;
            }
            Some(b'\\') => {
                let pair = matches!(bytes.get(at + 1), Some(b':' | b'\\'));
                escaped |= pair;
                at += 1 + usize::from(pair);
            }
            _ => break,
        }
    }
    let mut end = at;
    if bytes.get(at) != Some(&b'\t') && end > start && bytes[end - 1] == b'\r' {
        end -= 1;
    }
    (Field { text: &text[start..end], colon, escaped }, at)
}

/// `text` with `\:` as `:` and `\\` as `\`.
#[cold]
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let next = if c == '\\' { characters.next_if(|c| matches!(c, ':' | '\\')) } else { None };
        plain.push(next.unwrap_or(c));
    }
    plain
}

/// The start of the next line if this one is blank.
#[inline(always)]
pub(super) fn after_blank(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match bytes.get(at) {
            Some(b'\n') => return Some(at + 1),
            Some(b' ' | b'\t' | b'\r') => at += 1,
            Some(_) => return None,
            None => return Some(at),
        }
    }
}

/// Reads whole lines.
pub(super) fn parse(bytes: &[u8], labelled: bool, part: &mut Part<'_>) -> Result<(), Fault> {
    let (text, broken) = whole_text(bytes);
    // Of the item that is being read.
    let (mut names, mut values) = (Vec::new(), Vec::new());
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if let Some(next) = after_blank(bytes, at) {
            part.end_sequence();
            part.lines += 1;
            at = next;
            continue;
        }
        let mut gold = Gold::ANY;
        // The number of the field at `at`.
        let mut number = 1;
        if labelled {
            let (label, end) = field(text, at);
            let name = if label.escaped { &unescape(label.text) } else { label.text };
            if name.is_empty() || name == "@weight" || name.starts_with("@weight:") {
                return Err(odd_label(part, name));
            }
            gold = part.label(name)?;
            at = end;
        }
        loop {
            match bytes.get(at) {
                Some(b'\t') => {
                    at += 1;
                    number += 1;
                }
                Some(b'\n') => {
                    at += 1;
                    break;
                }
                Some(_) => {}
                None => break,
            }
            let (field, end) = field(text, at);
            at = end;
            if field.text.is_empty() {
                continue;
            }
            let (mut name, mut value) = (field.text, 1.0);
            if let Some(colon) = field.colon {
                name = &field.text[..colon];
                value = match &field.text.as_bytes()[colon + 1..] {
                    b"" => 1.0,
                    digits => match decimal(digits) {
                        Some((value, len)) if len == digits.len() && value.is_finite() => value,
                        _ => return Err(odd_value(part, &field, number)),
                    },
                };
                if name.is_empty() {
                    return Err(odd_value(part, &field, number));
                }
            }
            if field.escaped {
                // What came before goes first, so that the order stays.
                part.attributes(&names, &values);
                part.attributes(&[unescape(name)], &[value]);
                names.clear();
                values.clear();
                continue;
            }
            names.push(name);
            values.push(value);
        }
        part.attributes(&names, &values);
        names.clear();
        values.clear();
        part.item(gold);
        part.lines += 1;
    }
    if broken { Err(not_text(part)) } else { Ok(()) }
}

#[cold]
fn odd_label(part: &Part<'_>, name: &str) -> Fault {
    if name.is_empty() {
        return part.fault("found no label before the first tab, expected one (`?` if it is not known)");
    }
    part.fault(
        "found the declaration `@weight`, expected items only (weights of sequences are not supported)",
    )
}

#[cold]
fn odd_value(part: &Part<'_>, field: &Field<'_>, number: usize) -> Fault {
    let expected = if field.colon == Some(0) { "a name before" } else { "a finite number after" };
    let text = shown(field.text.as_bytes());
    part.fault(format!(
        "found `{text}` in field {number}, expected {expected} its last colon (a colon in a name is written `\\:`)"
    ))
}
