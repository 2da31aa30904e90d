//! Templates in the notation of CRF++ and Wapiti: how columns become attributes.
//!
//! A line that starts with `U` or `u` makes an attribute of each item, one with `B` or `b` an attribute of each edge between
//! neighbouring items, one with `*` both. `B` without macros asks for plain transitions. `#` starts a comment line. In the line
//! - `%x[row,column]` is the cell of that column, `row` items further;
//! - `%t[row,column,"regexp"]` is `true` or `false`: whether the regular expression matches in that cell;
//! - `%m[row,column,"regexp"]` is what it matches first, or nothing;
//! - `%X`, `%T`, `%M` are the same in lower case (ASCII letters, as in Wapiti);
//! - `@row` counts from the first item (`@1`), or from the last one (`@-1`), as in Wapiti.
//!
//! Beyond the first and last item cells are `_B-1`, `_B-2`, … and `_B+1`, `_B+2`, …, as in CRF++. Regular expressions are those of
//! the crate regex-lite with Wapiti's classes `\a \d \l \p \s \u \w` (letters, digits, lower case, punctuation, space, upper
//! case, letters and digits, all ASCII; capitals are the complements). So `*` takes as much as it can, where Wapiti's
//! takes as little, and `.` is a character, not a byte.

use super::dictionary::Dictionary;
use regex_lite::Regex;
use std::fmt;

/// A template file, ready for use. It is stored as its [`source`](Self::source).
///
/// ```
/// use gibbsite::data::sequences::Template;
/// let template = Template::parse("# words\nU00:%x[-1,0]\nU01:%x[0,0]/%x[0,1]\nB\n").unwrap();
/// assert_eq!((template.columns(), template.transitions(), template.edges()), (2, true, false));
/// ```
#[derive(Clone, Debug)]
pub struct Template {
    source: String,
    rules: Vec<Rule>,
    transitions: bool,
    /// How many regular expressions there are.
    tests: usize,
}

impl PartialEq for Template {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for Template {}

/// A template that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateError {
    /// The line, counted from 1; 0 if it is the template as a whole.
    pub line: usize,
    /// What was found, and what was expected.
    pub what: String,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.what),
            line => write!(f, "line {line}: {}", self.what),
        }
    }
}

impl std::error::Error for TemplateError {}

/// A line that makes attributes.
#[derive(Clone, Debug)]
struct Rule {
    line: usize,
    /// Whether items get it.
    item: bool,
    /// Whether edges get it.
    edge: bool,
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
enum Piece {
    Text(String),
    Cell(Cell),
}

#[derive(Clone, Debug)]
struct Cell {
    /// As it is written, for messages.
    text: String,
    row: Row,
    column: usize,
    lower: bool,
    take: Take,
}

#[derive(Clone, Copy, Debug)]
enum Row {
    Relative(isize),
    FromFirst(isize),
    FromLast(isize),
}

/// What becomes of a cell. Tests are numbered for the [`Memo`].
#[derive(Clone, Debug)]
enum Take {
    Whole,
    Test(Regex, usize),
    Match(Regex, usize),
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// A [`TemplateError`] that names the line: no rule, a macro that is none, a regular expression that is none.
    pub fn parse(source: &str) -> Result<Self, TemplateError> {
        let mut template =
            Self { source: source.to_owned(), rules: Vec::new(), transitions: false, tests: 0 };
        for (index, text) in source.strip_prefix('\u{feff}').unwrap_or(source).split('\n').enumerate() {
            let text = text.strip_suffix('\r').unwrap_or(text);
            let line = index + 1;
            let fail = |what: String| TemplateError { line, what };
            let (item, edge) = match text.as_bytes() {
                [] | [b'#', ..] => continue,
                _ if text.trim().is_empty() => continue,
                [b'U' | b'u', ..] => (true, false),
                [b'B' | b'b', ..] => (false, true),
                [b'*', ..] => (true, true),
                _ => {
                    let expected =
                        "expected a rule that starts with `U`, `B` or `*`, or a comment that starts with `#`";
                    return Err(fail(format!("found `{}`, {expected}", shorten(text))));
                }
            };
            let pieces = pieces(text, &mut template.tests).map_err(fail)?;
            let plain = !pieces.iter().any(|piece| matches!(piece, Piece::Cell(_)));
            template.transitions |= edge && plain;
            let rule = Rule { line, item, edge: edge && !plain, pieces };
            if rule.item || rule.edge {
                template.rules.push(rule);
            }
        }
        if template.rules.is_empty() && !template.transitions {
            let what = "found no rule in the template, expected lines such as `U00:%x[0,0]`, and `B` for transitions";
            return Err(TemplateError { line: 0, what: what.to_owned() });
        }
        Ok(template)
    }

    /// The text that it was read from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether it asks for plain transitions, by a line `B` (or `*`) without macros.
    pub fn transitions(&self) -> bool {
        self.transitions
    }

    /// Whether it makes attributes of edges, by a line `B` (or `*`) with macros.
    pub fn edges(&self) -> bool {
        self.rules.iter().any(|rule| rule.edge)
    }

    /// The least number of columns that data must have, not counting labels.
    pub fn columns(&self) -> usize {
        self.cells().map(|(_, cell)| cell.column + 1).max().unwrap_or(0)
    }

    /// Checks that all columns are there: `columns`, not counting labels.
    pub(super) fn check(&self, columns: usize, labelled: bool) -> Result<(), String> {
        let Some((line, cell)) = self.cells().find(|(_, cell)| cell.column >= columns) else { return Ok(()) };
        let before = if labelled { " before the label" } else { "" };
        let has = match columns {
            0 => format!("no column{before}"),
            1 => format!("only column 0{before}"),
            _ => format!("columns 0 to {}{before}", columns - 1),
        };
        let (text, column) = (&cell.text, cell.column);
        Err(format!("template line {line}: `{text}` takes column {column}, but the data has {has}"))
    }

    fn cells(&self) -> impl Iterator<Item = (usize, &Cell)> {
        self.rules.iter().flat_map(|rule| {
            rule.pieces.iter().filter_map(|piece| match piece {
                Piece::Cell(cell) => Some((rule.line, cell)),
                Piece::Text(_) => None,
            })
        })
    }
}

/// A line's text and macros.
fn pieces(mut text: &str, tests: &mut usize) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    while !text.is_empty() {
        let plain = text.find('%').unwrap_or(text.len());
        if plain > 0 {
            pieces.push(Piece::Text(text[..plain].to_owned()));
            text = &text[plain..];
            continue;
        }
        let (cell, len) = cell(text, tests)?;
        pieces.push(Piece::Cell(cell));
        text = &text[len..];
    }
    Ok(pieces)
}

/// The macro at the start of `text`, and its length.
fn cell(text: &str, tests: &mut usize) -> Result<(Cell, usize), String> {
    let bad = |expected: &str| format!("found `{}`, expected {expected}", shorten(text));
    let mut rest = text.get(1..).unwrap_or_default();
    let command = rest.chars().next().unwrap_or(' ');
    if !matches!(command.to_ascii_lowercase(), 'x' | 't' | 'm') {
        return Err(bad("`%x[row,column]`, `%t[row,column,\"regexp\"]` or `%m[row,column,\"regexp\"]`"));
    }
    let kind = command.to_ascii_lowercase();
    let shape =
        if kind == 'x' { "`%x[row,column]`".to_owned() } else { format!("`%{kind}[row,column,\"regexp\"]`") };
    rest = rest[1..].strip_prefix('[').ok_or_else(|| bad(&shape))?.trim_start();
    let absolute = rest.strip_prefix('@');
    let (row, after) = number(absolute.unwrap_or(rest)).ok_or_else(|| bad(&shape))?;
    rest = after.trim_start().strip_prefix(',').ok_or_else(|| bad(&shape))?;
    let (column, after) = number(rest.trim_start()).ok_or_else(|| bad(&shape))?;
    let column = usize::try_from(column).map_err(|_| bad("a column of 0 or more"))?;
    rest = after.trim_start();
    let row = match (absolute, row) {
        (None, row) => Row::Relative(row),
        (Some(_), 0) => {
            return Err(bad("`@1`, `@2`, … from the first item or `@-1`, `@-2`, … from the last"));
        }
        (Some(_), row) if row > 0 => Row::FromFirst(row - 1),
        (Some(_), row) => Row::FromLast(row),
    };
    let mut take = Take::Whole;
    if kind != 'x' {
        rest = rest.strip_prefix(',').ok_or_else(|| bad(&shape))?.trim_start();
        rest = rest.strip_prefix('"').ok_or_else(|| bad(&shape))?;
        let mut end = None;
        let mut characters = rest.char_indices();
        while let Some((at, c)) = characters.next() {
            match c {
                '"' => {
                    end = Some(at);
                    break;
                }
                '\\' => drop(characters.next()),
                _ => {}
            }
        }
        let end = end.ok_or_else(|| bad("a quote that closes the regular expression"))?;
        let pattern = &rest[..end];
        rest = rest[end + 1..].trim_start();
        let regex = Regex::new(&classes(pattern)).map_err(|error| {
            format!("found `{}`, expected a regular expression: {error}", shorten(pattern))
        })?;
        take = if kind == 't' { Take::Test(regex, *tests) } else { Take::Match(regex, *tests) };
        *tests += 1;
    }
    rest = rest.strip_prefix(']').ok_or_else(|| bad(&shape))?;
    let len = text.len() - rest.len();
    let cell = Cell { text: text[..len].to_owned(), row, column, lower: command != kind, take };
    Ok((cell, len))
}

/// The whole number at the start, up to a million, and what follows.
fn number(text: &str) -> Option<(isize, &str)> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let size: isize = digits[..end].parse().ok().filter(|size| *size <= 1_000_000)?;
    Some((sign * size, &digits[end..]))
}

/// A regular expression with Wapiti's classes as sets of characters.
fn classes(pattern: &str) -> String {
    let mut regex = String::new();
    let mut characters = pattern.chars();
    let mut inside = false;
    while let Some(c) = characters.next() {
        match c {
            '[' => inside = true,
            ']' => inside = false,
            _ => {}
        }
        if c != '\\' {
            regex.push(c);
            continue;
        }
        let Some(class) = characters.next() else {
            regex.push('\\');
            break;
        };
        let set = match class {
            'a' => r"A-Za-z",
            'A' => r"\x00-@\[-`{-\x{10FFFF}",
            'd' => r"0-9",
            'D' => r"\x00-/:-\x{10FFFF}",
            'l' => r"a-z",
            'L' => r"\x00-`{-\x{10FFFF}",
            'p' => r"!-/:-@\[-`{-\x7e",
            'P' => r"\x00-\x200-9A-Za-z\x7f-\x{10FFFF}",
            's' => r"\t-\r\x20",
            'S' => r"\x00-\x08\x0e-\x1f!-\x{10FFFF}",
            'u' => r"A-Z",
            'U' => r"\x00-@\[-\x{10FFFF}",
            'w' => r"0-9A-Za-z",
            'W' => r"\x00-/:-@\[-`{-\x{10FFFF}",
            _ => {
                regex.extend(['\\', class]);
                continue;
            }
        };
        if inside {
            regex.push_str(set);
        } else {
            regex.extend(["[", set, "]"]);
        }
    }
    regex
}

fn shorten(text: &str) -> String {
    super::super::dataset::number::shown(text.as_bytes())
}

/// Applies a template to one sequence after the other, with memory for that.
pub(super) struct Expander<'t> {
    template: &'t Template,
    memos: Vec<Memo>,
    /// The attributes of the item.
    pub(super) item: Vec<String>,
    /// Those of the edge to it.
    pub(super) edge: Vec<String>,
}

/// What a regular expression said about cells before: words come again and again, and matching is slow.
#[derive(Clone, Default)]
struct Memo {
    cells: Dictionary,
    found: Vec<Option<(usize, usize)>>,
}

impl Memo {
    fn find(&mut self, regex: &Regex, cell: &str) -> Option<(usize, usize)> {
        let id = self.cells.intern(cell) as usize;
        if id == self.found.len() {
            self.found.push(regex.find(cell).map(|found| (found.start(), found.end())));
        }
        self.found[id]
    }
}

/// Rows of cells, one after the other.
#[derive(Clone, Copy)]
pub(super) struct Table<'a, 'b> {
    /// Those of row `t` start at `t * columns`.
    pub(super) cells: &'b [&'a str],
    /// Cells of a row, labels too.
    pub(super) columns: usize,
    pub(super) rows: usize,
}

impl<'t> Expander<'t> {
    pub(super) fn new(template: &'t Template) -> Self {
        let count = |which: fn(&Rule) -> bool| template.rules.iter().filter(|rule| which(rule)).count();
        Self {
            template,
            memos: vec![Memo::default(); template.tests],
            item: vec![String::new(); count(|rule| rule.item)],
            edge: vec![String::new(); count(|rule| rule.edge)],
        }
    }

    /// Puts the attributes of item `t` into `item`, and those of the edge to it into `edge`.
    pub(super) fn expand(&mut self, table: Table<'_, '_>, t: usize) {
        let (mut items, mut edges) = (self.item.iter_mut(), self.edge.iter_mut());
        for rule in &self.template.rules {
            let item = if rule.item { items.next() } else { None };
            let edge = if rule.edge { edges.next() } else { None };
            for text in [item, edge].into_iter().flatten() {
                text.clear();
                for piece in &rule.pieces {
                    match piece {
                        Piece::Text(piece) => text.push_str(piece),
                        Piece::Cell(cell) => put(text, &mut self.memos, cell, table, t),
                    }
                }
            }
        }
    }
}

#[inline]
fn put(text: &mut String, memos: &mut [Memo], cell: &Cell, table: Table<'_, '_>, t: usize) {
    let rows = table.rows as isize;
    let row = match cell.row {
        Row::Relative(row) => t as isize + row,
        Row::FromFirst(row) => row,
        Row::FromLast(row) => rows + row,
    };
    let beyond;
    let value = if row < 0 {
        beyond = format!("_B{row}");
        &beyond
    } else if row >= rows {
        beyond = format!("_B+{}", row - rows + 1);
        &beyond
    } else {
        table.cells[row as usize * table.columns + cell.column]
    };
    let value = match &cell.take {
        Take::Whole => value,
        Take::Test(regex, test) => match memos[*test].find(regex, value) {
            Some(_) => "true",
            None => "false",
        },
        Take::Match(regex, test) => {
            let (start, end) = memos[*test].find(regex, value).unwrap_or((0, 0));
            &value[start..end]
        }
    };
    let start = text.len();
    text.push_str(value);
    if cell.lower {
        text[start..].make_ascii_lowercase();
    }
}
