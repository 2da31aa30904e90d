//! CSV files with a header and numbers, separated by commas, semicolons or tabs.
//!
//! The crate `csv` reads the header. Cells are numbers, so a quote around one is all of RFC 4180 that rows can hold, and
//! they are parsed in place; the only thing that is not accepted is a line break within quotes below the header.

use super::dataset::number::{decimal, shown};
use super::dataset::{Dataset, Fault, Names, Part, ReadError, ReadParams, Stored, stored, unite};
use super::matrix::{Matrix, RowChunk};
use super::svmlight::Seen;
use std::collections::{HashMap, HashSet};

/// No header is longer than this; a quote that never ends would make the whole file one.
const LONGEST_HEADER: usize = 16 << 20;

/// The header, as it arrives in blocks.
#[derive(Default)]
pub(super) struct Head {
    pub(super) text: Vec<u8>,
    quoted: bool,
    /// Whether there is more than blank lines.
    begun: bool,
}

impl Head {
    /// Takes the header from a block. If it ends there, `text` holds it, and the rest of the block is returned.
    pub(super) fn take<'a>(&mut self, block: &'a [u8]) -> Result<Option<&'a [u8]>, ReadError> {
        for (at, &b) in block.iter().enumerate() {
            match b {
                b'"' => self.quoted = !self.quoted,
                b'\n' if self.begun && !self.quoted => {
                    let (head, body) = block.split_at(at + 1);
                    self.text.extend_from_slice(head);
                    return Ok(Some(body));
                }
                _ => {}
            }
            self.begun |= !b.is_ascii_whitespace();
        }
        self.text.extend_from_slice(block);
        if self.text.len() > LONGEST_HEADER {
            let what = format!("the header does not end within {} MiB", LONGEST_HEADER >> 20);
            return Err(Fault::new(0, what).after(0));
        }
        Ok(None)
    }

    /// The header of a file that ends with it.
    pub(super) fn finish(&self) -> Result<&[u8], ReadError> {
        if self.quoted {
            return Err(Fault::new(0, "found a quote in the header that is not closed").after(0));
        }
        if !self.begun {
            let what = "the file is empty, expected a header with column names, then rows of numbers";
            return Err(ReadError::Whole(what.to_owned()));
        }
        Ok(&self.text)
    }
}

/// What becomes of a column.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    Target,
    Feature(u32),
    Ignored,
}

/// What the header says about the rows.
pub(super) struct Layout {
    delimiter: u8,
    /// Names of all columns of the file.
    names: Vec<String>,
    roles: Vec<Role>,
    /// Whether features come in the order of the matrix.
    ascending: bool,
    features: Vec<String>,
}

/// The separator that is there: tabs before all, else the more frequent one of semicolon and comma.
pub(super) fn delimiter(header: &[u8]) -> u8 {
    let mut quoted = false;
    let mut count = [0usize; 3];
    for b in header {
        match b {
            b'"' => quoted = !quoted,
            b'\t' if !quoted => count[0] += 1,
            b';' if !quoted => count[1] += 1,
            b',' if !quoted => count[2] += 1,
            _ => {}
        }
    }
    match count {
        [tabs, _, _] if tabs > 0 => b'\t',
        [_, semicolons, commas] if semicolons > commas => b';',
        _ => b',',
    }
}

/// Some of many names, for a message.
fn some(names: &[String]) -> String {
    let mut text: Vec<String> = names.iter().take(8).map(|name| format!("`{name}`")).collect();
    if names.len() > text.len() {
        text.push(format!("… ({} in all)", names.len()));
    }
    text.join(", ")
}

impl Layout {
    pub(super) fn new(header: &[u8], params: &ReadParams) -> Result<Self, ReadError> {
        // The last line of the header is what messages name.
        let line = memchr::memchr_iter(b'\n', header.trim_ascii_end()).count();
        let fault = |what: String| Fault::new(line, what).after(0);
        let delimiter = delimiter(header);
        let mut record = ::csv::ByteRecord::new();
        let start = header.iter().position(|b| !b"\r\n".contains(b)).unwrap_or(0);
        let cells = ::csv::ReaderBuilder::new()
            .has_headers(false)
            .delimiter(delimiter)
            .from_reader(&header[start..])
            .read_byte_record(&mut record);
        cells.map_err(|cause| fault(format!("the header cannot be read: {cause}")))?;
        let mut names = Vec::with_capacity(record.len());
        for (k, cell) in record.iter().enumerate() {
            let Ok(name) = std::str::from_utf8(cell) else {
                return Err(fault(format!("the name of column {} is not UTF-8", k + 1)));
            };
            let name = name.trim();
            if name.is_empty() {
                return Err(fault(format!("column {} has no name", k + 1)));
            }
            names.push(name.to_owned());
        }
        if names.iter().all(|name| decimal(name.as_bytes()).is_some_and(|(_, len)| len == name.len())) {
            return Err(fault("found only numbers, expected a header with column names".to_owned()));
        }
        let mut known = HashSet::new();
        if let Some(twice) = names.iter().find(|name| !known.insert(name.as_str())) {
            return Err(fault(format!(
                "found two columns with the name `{twice}`, expected different names"
            )));
        }
        let target = match &params.target {
            Some(wanted) => match names.iter().position(|name| name == wanted) {
                None if params.target_required => {
                    let what = format!("found no column `{wanted}` for the target among {}", some(&names));
                    return Err(fault(what));
                }
                place => place,
            },
            None => params.target_required.then(|| names.len() - 1),
        };
        let mut layout = Self { delimiter, names, roles: Vec::new(), ascending: true, features: Vec::new() };
        layout.assign(target, params.columns.as_ref()).map_err(fault)?;
        Ok(layout)
    }

    /// Gives each column its role.
    fn assign(&mut self, target: Option<usize>, columns: Option<&Names>) -> Result<(), String> {
        let names = &self.names;
        self.roles = match columns {
            None => {
                let mut next = 0..;
                let role = |k| {
                    if Some(k) == target { Role::Target } else { Role::Feature(next.next().unwrap_or(0)) }
                };
                let roles: Vec<Role> = (0..names.len()).map(role).collect();
                let features = names.iter().enumerate().filter(|(k, _)| Some(*k) != target);
                self.features = features.map(|(_, name)| name.clone()).collect();
                roles
            }
            Some(Names::Columns(wanted)) => {
                let place: HashMap<&str, u32> = wanted.iter().map(String::as_str).zip(0..).collect();
                let role = |(k, name): (usize, &String)| match place.get(name.as_str()) {
                    _ if Some(k) == target => Role::Target,
                    Some(&j) => Role::Feature(j),
                    None => Role::Ignored,
                };
                let roles: Vec<Role> = names.iter().enumerate().map(role).collect();
                if let Some(k) = target.filter(|&k| place.contains_key(names[k].as_str())) {
                    return Err(format!("the target `{}` is a feature of the model", names[k]));
                }
                let here: HashSet<&str> = names.iter().map(String::as_str).collect();
                let missing: Vec<String> =
                    wanted.iter().filter(|n| !here.contains(n.as_str())).cloned().collect();
                if !missing.is_empty() {
                    return Err(format!("found no column {}, which the model needs", some(&missing)));
                }
                self.features = wanted.clone();
                roles
            }
            Some(_) => {
                return Err(
                    "found CSV, expected svmlight data, as the model's features have numbers".to_owned()
                );
            }
        };
        if self.features.is_empty() && columns.is_none() {
            return Err(format!("found only the column `{}`, expected features beside the target", names[0]));
        }
        let order = self.roles.iter().filter_map(|role| match role {
            Role::Feature(j) => Some(*j),
            _ => None,
        });
        self.ascending = order.is_sorted();
        Ok(())
    }

    #[inline(always)]
    fn is_padding(&self, b: u8) -> bool {
        matches!(b, b' ' | b'\r') || (b == b'\t' && self.delimiter != b'\t')
    }

    #[inline(always)]
    fn skip_padding<'a>(&self, mut text: &'a [u8]) -> &'a [u8] {
        while let [b, rest @ ..] = text
            && self.is_padding(*b)
        {
            text = rest;
        }
        text
    }

    /// The number in the cell at the start of `text`, and what follows the cell, its padding included.
    #[inline(always)]
    fn number<'a>(&self, text: &'a [u8]) -> Option<(f64, &'a [u8])> {
        if let Some((value, len)) = decimal(text)
            && text.get(len) == Some(&self.delimiter)
        {
            return Some((value, &text[len..]));
        }
        let text = self.skip_padding(text);
        if let [b'"', inner @ ..] = text {
            let inner = self.skip_padding(inner);
            let (value, len) = decimal(inner)?;
            let rest = self.skip_padding(&inner[len..]).strip_prefix(b"\"")?;
            return Some((value, self.skip_padding(rest)));
        }
        let (value, len) = decimal(text)?;
        Some((value, self.skip_padding(&text[len..])))
    }

    /// The cell at the start of `line`, unpacked, and what follows it; `None` if its quote is not closed.
    fn cell<'a>(&self, line: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        let text = self.skip_padding(line);
        let mut at = 0;
        if text.first() == Some(&b'"') {
            at = 1;
            loop {
                at += memchr::memchr(b'"', text.get(at..)?)? + 1;
                if text.get(at) != Some(&b'"') {
                    break;
                }
                at += 1;
            }
        }
        let end = memchr::memchr(self.delimiter, &text[at..]).map_or(text.len(), |k| at + k);
        Some(text.split_at(end))
    }

    /// What is wrong with a line that could not be parsed.
    #[cold]
    fn fault(&self, text: &[u8], line: usize) -> Fault {
        let end = memchr::memchr(b'\n', text).unwrap_or(text.len());
        let mut rest = &text[..end];
        let mut cells = Vec::new();
        loop {
            let Some((cell, after)) = self.cell(rest) else {
                return Fault::new(line, "found a quote that is not closed on its line");
            };
            cells.push(cell);
            match after {
                [] => break,
                [_, next @ ..] => rest = next,
            }
        }
        if cells.len() != self.roles.len() {
            let what = format!("found {} cells, expected {} as in the header", cells.len(), self.roles.len());
            return Fault::new(line, what);
        }
        for ((cell, role), name) in cells.into_iter().zip(&self.roles).zip(&self.names) {
            if *role == Role::Ignored {
                continue;
            }
            let trimmed = cell.trim_ascii();
            let what = match self.number(trimmed) {
                Some((value, [])) if value.is_finite() => match stored::<f32>(value) {
                    Some(_) => continue,
                    None => format!("found `{}`, too large for single precision", shown(trimmed)),
                },
                _ if trimmed.is_empty() || trimmed == b"\"\"" => {
                    "the cell is empty, expected a number".to_owned()
                }
                _ => format!("found `{}`, expected a finite number", shown(trimmed)),
            };
            return Fault { line, column: Some(shown(name.as_bytes())), what, first: None };
        }
        Fault::new(line, "found cells that are not numbers, or not separated")
    }
}

/// A part that holds lines only.
pub(super) fn nothing<V>(text: &[u8]) -> Part<V> {
    let lines = memchr::memchr_iter(b'\n', text).count() + usize::from(!text.ends_with(b"\n"));
    let rows = RowChunk { ends: Vec::new(), column: Vec::new(), value: Vec::new() };
    Part { rows, target: Vec::new(), lines, seen: Seen::default() }
}

/// Parses whole lines.
pub(super) fn parse<V: Stored>(text: &[u8], layout: &Layout) -> Result<Part<V>, Fault> {
    let mut part = nothing(&[]);
    let Part { rows, target, .. } = &mut part;
    let mut line = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let start = rest;
        match layout.skip_padding(rest) {
            [] => rest = &[],
            [b'\n', after @ ..] => rest = after,
            _ => {
                rest = row(rest, layout, rows, target).ok_or_else(|| layout.fault(start, line))?;
                let end = u32::try_from(rows.column.len());
                rows.ends.push(end.map_err(|_| Fault::new(line, "more than 2^32 cells in a chunk"))?);
            }
        }
        line += 1;
    }
    rows.column.shrink_to_fit();
    rows.value.shrink_to_fit();
    rows.ends.shrink_to_fit();
    part.lines = line;
    Ok(part)
}

/// Appends the row at the start of `text`; what follows its line, or `None` if something is wrong with it.
#[inline(always)]
fn row<'a, V: Stored>(
    mut text: &'a [u8],
    layout: &Layout,
    rows: &mut RowChunk<V>,
    target: &mut Vec<f64>,
) -> Option<&'a [u8]> {
    let start = rows.column.len();
    let mut first = true;
    for role in &layout.roles {
        if !std::mem::take(&mut first) {
            text = match text {
                [b, after @ ..] if *b == layout.delimiter => after,
                _ => return None,
            };
        }
        if *role == Role::Ignored {
            let end = memchr::memchr(b'\n', text).unwrap_or(text.len());
            let (_, after) = layout.cell(&text[..end])?;
            text = &text[end - after.len()..];
            continue;
        }
        let (value, after) = layout.number(text)?;
        text = after;
        match role {
            Role::Feature(j) => {
                let value = stored::<V>(value)?;
                if value != V::zero() {
                    rows.column.push(*j);
                    rows.value.push(value);
                }
            }
            _ if !value.is_finite() => return None,
            _ => target.push(value),
        }
    }
    if !layout.ascending {
        let mut entries: Vec<(u32, V)> =
            rows.column[start..].iter().copied().zip(rows.value[start..].iter().copied()).collect();
        entries.sort_unstable_by_key(|e| e.0);
        for ((c, v), e) in rows.column[start..].iter_mut().zip(&mut rows.value[start..]).zip(entries) {
            (*c, *v) = e;
        }
    }
    match text {
        [] => Some(text),
        [b'\n', after @ ..] => Some(after),
        _ => None,
    }
}

/// Makes a data set out of all parts.
pub(super) fn join<V: Stored>(
    parts: Vec<Part<V>>,
    layout: Layout,
    params: &ReadParams,
) -> Result<Dataset<V>, ReadError> {
    let (chunks, target) = unite(parts)?;
    if chunks.iter().all(|chunk| chunk.ends.is_empty()) {
        let what = "found a header but no rows, expected a row of numbers for each sample";
        return Err(ReadError::Whole(what.to_owned()));
    }
    let mut notes = Vec::new();
    if let ignored @ 1.. = layout.roles.iter().filter(|role| **role == Role::Ignored).count() {
        notes.push(format!("{ignored} columns that the model does not have are ignored"));
    }
    let matrix = Matrix::spread(layout.features.len(), chunks, params.par);
    Ok(Dataset { matrix, target, names: Names::Columns(layout.features), notes })
}
