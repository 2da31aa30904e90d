//! Columns of words: an item a line, cells separated by spaces or tabs, the label last, blank lines between sequences.

use super::super::dataset::Fault;
use super::crfsuite::after_blank;
use super::part::{Part, not_text, whole_text};
use super::store::Gold;
use super::template::{Expander, Table, Template};

/// What all rows have in common.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    /// How many columns the first row has, label too.
    pub(super) columns: usize,
    /// Its line, counted from 1.
    line: usize,
    labelled: bool,
}

impl Shape {
    /// That of the first row in `bytes`, if there is one; `lines` came before.
    pub(super) fn of(bytes: &[u8], lines: usize, labelled: bool) -> Option<Self> {
        let (mut at, mut line) = (0, lines);
        while at < bytes.len() {
            line += 1;
            match after_blank(bytes, at) {
                Some(next) => at = next,
                None => {
                    let end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |len| at + len);
                    let columns = cells(&bytes[at..end]).count();
                    return Some(Self { columns, line, labelled });
                }
            }
        }
        None
    }
}

fn is_blank(b: &u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\r')
}

fn cells(row: &[u8]) -> impl Iterator<Item = &[u8]> {
    row.split(is_blank).filter(|cell| !cell.is_empty())
}

/// Reads whole sequences.
pub(super) fn parse(
    bytes: &[u8],
    template: &Template,
    shape: Shape,
    part: &mut Part<'_>,
) -> Result<(), Fault> {
    let (text, broken) = whole_text(bytes);
    let bytes = text.as_bytes();
    let mut expander = Expander::new(template);
    let mut rows = Rows { cells: Vec::new(), gold: Vec::new(), shape };
    let mut at = 0;
    while at < bytes.len() {
        if let Some(next) = after_blank(bytes, at) {
            rows.flush(&mut expander, part);
            part.end_sequence();
            at = next;
        } else {
            at = rows.read(text, at, part)?;
        }
        part.lines += 1;
    }
    if broken {
        return Err(not_text(part));
    }
    rows.flush(&mut expander, part);
    Ok(())
}

/// The rows of a sequence that has not ended.
struct Rows<'a> {
    cells: Vec<&'a str>,
    gold: Vec<Gold>,
    shape: Shape,
}

impl<'a> Rows<'a> {
    /// The row at `at`; gives the start of the next line.
    fn read(&mut self, text: &'a str, mut at: usize, part: &mut Part<'_>) -> Result<usize, Fault> {
        let bytes = text.as_bytes();
        let first = self.cells.len();
        let next = loop {
            while bytes.get(at).is_some_and(is_blank) {
                at += 1;
            }
            let start = at;
            while bytes.get(at).is_some_and(|b| *b > b' ' || !(is_blank(b) || *b == b'\n')) {
                at += 1;
            }
            if at > start {
                self.cells.push(&text[start..at]);
            }
            match bytes.get(at) {
                Some(b'\n') => break at + 1,
                Some(_) => {}
                None => break at,
            }
        };
        let Shape { columns, line, labelled } = self.shape;
        let found = self.cells.len() - first;
        if found != columns {
            let hint = "a blank line ends a sequence";
            return Err(
                part.fault(format!("found {found} columns, expected {columns} as in line {line} ({hint})"))
            );
        }
        self.gold.push(if labelled { part.label(self.cells[first + columns - 1])? } else { Gold::ANY });
        Ok(next)
    }

    /// Makes attributes of the rows.
    fn flush(&mut self, expander: &mut Expander<'_>, part: &mut Part<'_>) {
        let table = Table { cells: &self.cells, columns: self.shape.columns, rows: self.gold.len() };
        for (t, &gold) in self.gold.iter().enumerate() {
            expander.expand(table, t);
            part.attributes(&expander.item, &[]);
            // The first item has no edge to it.
            if t > 0 {
                part.edge_attributes(&expander.edge);
            }
            part.item(gold);
        }
        self.cells.clear();
        self.gold.clear();
    }
}
