//! svmlight files: `LABEL index:value index:value … # comment`, a sample a line, indices ascending.
//!
//! Blank lines and comments are skipped, line ends may be `\r\n`, and `qid:` is tolerated. A value of 0 is checked like any
//! other and then not stored.

use super::dataset::number::{decimal, shown};
use super::dataset::{Dataset, Fault, Names, Part, ReadError, ReadParams, Stored, stored, unite};
use super::matrix::{Matrix, RowChunk};

/// The largest index; one less than 32 bits hold, so that the number of columns fits too.
const MOST: u32 = u32::MAX - 1;

/// Up to this many columns there is no need to look for unused ones.
const FEW: usize = 1 << 16;

/// What to look for.
#[derive(Clone, Copy)]
pub(super) struct How {
    /// Whether index 0 is a fault.
    one_based: bool,
    /// Whether each row must have a label.
    labelled: bool,
}

impl How {
    pub(super) fn of(params: &ReadParams) -> Result<Self, ReadError> {
        let one_based = match &params.columns {
            Some(Names::Counted { first, .. }) => *first == 1,
            Some(Names::Columns(_)) => {
                let what = "found svmlight data, expected CSV with the model's column names";
                return Err(ReadError::Whole(what.to_owned()));
            }
            _ => params.zero_based == Some(false),
        };
        Ok(Self { one_based, labelled: params.target_required })
    }
}

/// What has to be known beyond a chunk.
#[derive(Clone, Copy, Default)]
pub(super) struct Seen {
    /// The smallest and the largest index.
    span: Option<(u32, u32)>,
    /// Line of the first row, and whether it has a label.
    pub(super) first: Option<(usize, bool)>,
    /// Whether there is a `qid:`.
    query: bool,
}

fn is_blank(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\r' | 0x0b | 0x0c)
}

#[inline(always)]
fn skip_blanks(mut text: &[u8]) -> &[u8] {
    while let [b, rest @ ..] = text
        && is_blank(*b)
    {
        text = rest;
    }
    text
}

/// Whether a token cannot go on here.
#[inline(always)]
fn ends(text: &[u8]) -> bool {
    text.first().is_none_or(|&b| is_blank(b) || b == b'\n' || b == b'#')
}

/// The token at the start.
fn token(text: &[u8]) -> &[u8] {
    let end = (0..text.len()).find(|&at| ends(&text[at..])).unwrap_or(text.len());
    &text[..end]
}

/// What follows the next line end.
fn next_line(text: &[u8]) -> &[u8] {
    memchr::memchr(b'\n', text).map_or(&[], |at| &text[at + 1..])
}

/// Parses whole lines.
pub(super) fn parse<V: Stored>(text: &[u8], how: How) -> Result<Part<V>, Fault> {
    let mut seen = Seen::default();
    let parsed = parse_lines(text, how, &mut seen);
    parsed.map_err(|fault| Fault { first: seen.first, ..fault })
}

fn parse_lines<V: Stored>(text: &[u8], how: How, seen: &mut Seen) -> Result<Part<V>, Fault> {
    let mut rows = RowChunk { ends: Vec::new(), column: Vec::new(), value: Vec::new() };
    rows.column.reserve(text.len() / 12);
    rows.value.reserve(text.len() / 12);
    let mut target = Vec::new();
    let (mut least, mut most) = (u32::MAX, 0);
    let mut line = 0;
    let mut rest = text;
    while !rest.is_empty() {
        rest = skip_blanks(rest);
        if matches!(rest.first(), None | Some(b'\n' | b'#')) {
            rest = next_line(rest);
            line += 1;
            continue;
        }
        let label = match decimal(rest) {
            Some((label, len)) if label.is_finite() && ends(&rest[len..]) => {
                rest = &rest[len..];
                Some(label)
            }
            _ if !how.labelled && token(rest).contains(&b':') => None,
            _ => {
                let what = format!("found `{}`, expected a label, a finite number", shown(token(rest)));
                return Err(Fault::new(line, what));
            }
        };
        if seen.first.get_or_insert((line, label.is_some())).1 != label.is_some() {
            return Err(mixed(line, label.is_some()));
        }
        target.extend(label);
        // The smallest index that may come next.
        let mut free = u64::from(how.one_based);
        loop {
            rest = skip_blanks(rest);
            match rest {
                [] => break,
                [b'\n', after @ ..] => {
                    rest = after;
                    break;
                }
                [b'#', ..] => {
                    rest = next_line(rest);
                    break;
                }
                _ => {}
            }
            let mut index = 0u64;
            let mut after = rest;
            while let [digit @ b'0'..=b'9', more @ ..] = after {
                index = index.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
                after = more;
            }
            // Ten digits cannot have wrapped around, and are enough for any index that is legal.
            let digits = rest.len() - after.len();
            if let [b':', number @ ..] = after
                && (1..=10).contains(&digits)
                && (free..=u64::from(MOST)).contains(&index)
                && let Some((value, len)) = decimal(number)
                && ends(&number[len..])
                && let Some(value) = stored::<V>(value)
            {
                let index = index as u32;
                if free <= 1 {
                    least = least.min(index);
                }
                free = u64::from(index) + 1;
                if value != V::zero() {
                    rows.column.push(index);
                    rows.value.push(value);
                }
                rest = &number[len..];
            } else {
                rest = odd_entry::<V>(rest, line, how.one_based, free, seen)?;
            }
        }
        if free > u64::from(how.one_based) {
            most = most.max((free - 1) as u32);
        }
        let end = u32::try_from(rows.column.len());
        rows.ends.push(end.map_err(|_| Fault::new(line, "more than 2^32 entries in a line"))?);
        line += 1;
    }
    seen.span = (least <= most).then_some((least, most));
    rows.column.shrink_to_fit();
    rows.value.shrink_to_fit();
    rows.ends.shrink_to_fit();
    Ok(Part { rows, target, lines: line, seen: *seen })
}

/// A row that has a label where those before have none, or the other way round.
#[cold]
pub(super) fn mixed(line: usize, labelled: bool) -> Fault {
    let what = if labelled {
        "found a label, but rows before have none"
    } else {
        "found no label, but rows before have one"
    };
    Fault::new(line, format!("{what}; expected one in each row or in none"))
}

/// An entry that is none: says why, or skips it if it is legal after all.
#[cold]
fn odd_entry<'a, V: Stored>(
    text: &'a [u8],
    line: usize,
    one_based: bool,
    free: u64,
    seen: &mut Seen,
) -> Result<&'a [u8], Fault> {
    let token = token(text);
    let fault = |what: String| Err(Fault::new(line, what));
    let Some(colon) = memchr::memchr(b':', token) else {
        return fault(format!("found `{}`, expected index:value", shown(token)));
    };
    let (number, value) = (&token[..colon], &token[colon + 1..]);
    if number == b"qid" && free <= 1 {
        seen.query = true;
        return Ok(&text[token.len()..]);
    }
    if number.is_empty() || !number.iter().all(u8::is_ascii_digit) {
        let what = "expected an index, a whole number, before the colon";
        return fault(format!("found `{}`, {what}", shown(token)));
    }
    let index = number.iter().fold(0u64, |n, b| n.saturating_mul(10).saturating_add(u64::from(b - b'0')));
    if index > u64::from(MOST) {
        return fault(format!("found index {}, expected at most {MOST}", shown(number)));
    }
    match decimal(value) {
        Some((x, len)) if x.is_finite() && len == value.len() => {
            if stored::<V>(x).is_none() {
                return fault(format!("found `{}`, too large for single precision", shown(token)));
            }
        }
        _ => return fault(format!("found `{}`, expected a finite number after the colon", shown(token))),
    }
    if index == 0 && one_based {
        return fault(
            "found index 0, expected at least 1 (`--zero-based` for files that count from 0)".to_owned(),
        );
    }
    match free.saturating_sub(1) {
        before if before == index => fault(format!("found index {index} twice, expected each at most once")),
        before if before > index => {
            fault(format!("found index {index} after {before}, expected ascending order"))
        }
        // Legal, but with leading zeros: more than ten digits.
        _ => fault(format!("found index {}, expected at most 10 digits", shown(number))),
    }
}

/// Makes a data set out of all parts.
pub(super) fn join<V: Stored>(parts: Vec<Part<V>>, params: &ReadParams) -> Result<Dataset<V>, ReadError> {
    let mut notes = Vec::new();
    let mut span = None::<(u32, u32)>;
    for part in &parts {
        if let Some((least, most)) = part.seen.span {
            let (a, b) = span.unwrap_or((least, most));
            span = Some((a.min(least), b.max(most)));
        }
    }
    if parts.iter().all(|part| part.rows.ends.is_empty()) {
        let found = if parts.is_empty() { "the file is empty" } else { "found no rows" };
        return Err(ReadError::Whole(format!("{found}, expected `LABEL index:value …`, a sample a line")));
    }
    if parts.iter().any(|part| part.seen.query) {
        notes.push("`qid:` groups are ignored".to_owned());
    }
    let (mut chunks, target) = unite(parts)?;
    let entries: usize = chunks.iter().map(|chunk| chunk.column.len()).sum();
    let (least, most) = span.unwrap_or((1, 0));
    let names = match &params.columns {
        Some(names) => names.clone(),
        None => {
            let zero = params.zero_based.unwrap_or(least == 0);
            if zero && params.zero_based.is_none() {
                notes.push("there is an index 0, so indices count from 0 (zero-based)".to_owned());
            }
            let first = u32::from(!zero);
            let len = if span.is_none() { 0 } else { (most - first) as usize + 1 };
            if len > FEW && len / 8 > entries {
                let mut used: Vec<u32> = chunks.iter().flat_map(|chunk| &chunk.column).copied().collect();
                used.sort_unstable();
                used.dedup();
                used.shrink_to_fit();
                notes.push(format!(
                    "indices go up to {most}, but only {} are used; the others get no columns",
                    used.len()
                ));
                Names::Numbers(used)
            } else {
                Names::Counted { first, len }
            }
        }
    };
    match &names {
        Names::Counted { first: 0, .. } => {}
        // Without 0 among the indices, as the parser saw to that.
        Names::Counted { first, .. } => {
            chunks = params.par.map(chunks, |mut chunk| {
                chunk.column.iter_mut().for_each(|c| *c = c.saturating_sub(*first));
                chunk
            });
        }
        names => {
            let lookup = |c: u32| names.position_of(c).map_or(u32::MAX, |j| j as u32);
            chunks = params.par.map(chunks, |mut chunk| {
                chunk.column.iter_mut().for_each(|c| *c = lookup(*c));
                if params.columns.is_some() {
                    chunk = without(chunk);
                }
                chunk
            });
        }
    }
    let matrix = Matrix::spread(names.len(), chunks, params.par);
    if matrix.nonzeros() < entries {
        let others = entries - matrix.nonzeros();
        notes.push(format!("{others} entries of features that the model does not have are ignored"));
    }
    Ok(Dataset { matrix, target, names, notes })
}

/// A chunk without its entries in column `u32::MAX`, so that columns ascend.
fn without<V: Stored>(chunk: RowChunk<V>) -> RowChunk<V> {
    let mut kept =
        RowChunk { ends: Vec::with_capacity(chunk.ends.len()), column: Vec::new(), value: Vec::new() };
    let mut start = 0;
    for &end in &chunk.ends {
        let row = start..end as usize;
        start = row.end;
        for (&c, &v) in chunk.column[row.clone()].iter().zip(&chunk.value[row]) {
            if c != u32::MAX {
                kept.column.push(c);
                kept.value.push(v);
            }
        }
        kept.ends.push(kept.column.len() as u32);
    }
    kept
}
