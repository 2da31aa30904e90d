//! Tables: CSV files with a header whose cells are text or numbers. What the columns mean is for others to say.

use super::csv::delimiter;
use std::fmt;

/// A table, cells as they stand in the file but without blanks around them.
///
/// ```
/// use gibbsite::data::table::Table;
/// let table = Table::read(b"y1,y2,x\nrain,?,0.5\n\"sun, hot\",dry,2\n")?;
/// assert_eq!((table.rows(), table.cell(1, 0)), (2, "sun, hot"));
/// assert_eq!(table.select("y*")?, [0, 1]);
/// let error = table.select("y3").unwrap_err();
/// assert_eq!(error.to_string(), "line 1: found no column `y3`; close ones are `y1`, `y2`");
/// # Ok::<(), gibbsite::data::table::TableError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    names: Vec<String>,
    text: String,
    /// Where each cell ends in `text`, row after row.
    ends: Vec<usize>,
    /// The line of each row.
    lines: Vec<u64>,
}

/// What is wrong with a table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TableError {
    /// Nothing but blanks.
    Empty,
    /// A header and nothing else.
    NoRows,
    /// The bytes of a line are not text, or not CSV.
    Text {
        /// The line.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
    /// A row with another number of cells than the header.
    Ragged {
        /// The line.
        line: u64,
        /// Its cells.
        found: usize,
        /// The header's.
        expected: usize,
    },
    /// A column without a name.
    Nameless {
        /// The column, from 1.
        column: usize,
    },
    /// Two columns have the same name.
    Twice(String),
    /// There is no such column.
    NoColumn {
        /// What was asked for.
        name: String,
        /// Names that are like it, or some names.
        close: Vec<String>,
        /// Whether they are like it.
        alike: bool,
    },
    /// A cell that is not what is expected there.
    Cell {
        /// The line.
        line: u64,
        /// The column's name.
        column: String,
        /// What is there, and what should be.
        what: String,
    },
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => {
                write!(f, "the file is empty, expected a header with column names, then rows")
            }
            Self::NoRows => write!(f, "found a header but no rows"),
            Self::Text { line, what } => write!(f, "line {line}: {what}"),
            Self::Ragged { line, found, expected } => {
                write!(f, "line {line}: found {found} cells, expected {expected} as in the header")
            }
            Self::Nameless { column } => write!(f, "line 1: column {column} has no name"),
            Self::Twice(name) => {
                write!(f, "line 1: found two columns with the name `{name}`, expected different names")
            }
            Self::NoColumn { name, close, alike } => {
                let which = if *alike { "close ones are" } else { "there are" };
                let close: Vec<String> = close.iter().map(|name| format!("`{name}`")).collect();
                write!(f, "line 1: found no column `{name}`; {which} {}", close.join(", "))
            }
            Self::Cell { line, column, what } => write!(f, "line {line}, column `{column}`: {what}"),
        }
    }
}

impl std::error::Error for TableError {}

/// At most so many names in a message.
const NAMES: usize = 8;

impl Table {
    /// Reads CSV with a header, separated by commas, semicolons or tabs.
    ///
    /// # Errors
    /// A [`TableError`] that names the line.
    pub fn read(bytes: &[u8]) -> Result<Self, TableError> {
        let (names, rows) = records(bytes)?;
        if let Some(column) = names.iter().position(String::is_empty) {
            return Err(TableError::Nameless { column: column + 1 });
        }
        let mut sorted: Vec<&String> = names.iter().collect();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(TableError::Twice(pair[0].clone()));
        }
        let mut table = Self { text: String::new(), ends: vec![], lines: vec![], names };
        for (line, cells) in rows {
            if cells.len() != table.names.len() {
                return Err(TableError::Ragged { line, found: cells.len(), expected: table.names.len() });
            }
            for cell in &cells {
                table.text.push_str(cell.trim());
                table.ends.push(table.text.len());
            }
            table.lines.push(line);
        }
        if table.lines.is_empty() { Err(TableError::NoRows) } else { Ok(table) }
    }

    /// How many rows there are, the header not counted.
    pub fn rows(&self) -> usize {
        self.lines.len()
    }

    /// Names of the columns.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The line of a row.
    pub fn line(&self, row: usize) -> u64 {
        self.lines[row]
    }

    /// A cell.
    #[inline]
    pub fn cell(&self, row: usize, column: usize) -> &str {
        let at = row * self.names.len() + column;
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.text[start..self.ends[at]]
    }

    /// The cells of a column.
    pub fn cells(&self, column: usize) -> impl Iterator<Item = &str> {
        (0..self.rows()).map(move |row| self.cell(row, column))
    }

    /// An error about a cell.
    pub fn wrong(&self, row: usize, column: usize, what: impl Into<String>) -> TableError {
        TableError::Cell { line: self.line(row), column: self.names[column].clone(), what: what.into() }
    }

    /// The number of the column with this name.
    ///
    /// # Errors
    /// [`TableError::NoColumn`] with names that are like it.
    pub fn column(&self, name: &str) -> Result<usize, TableError> {
        self.names.iter().position(|n| n == name).ok_or_else(|| self.no_column(name))
    }

    fn no_column(&self, name: &str) -> TableError {
        let close = close(name, &self.names);
        let alike = !close.is_empty();
        let close = if alike {
            close
        } else {
            let mut some: Vec<String> = self.names.iter().take(NAMES).cloned().collect();
            if self.names.len() > NAMES {
                some.push("…".into());
            }
            some
        };
        TableError::NoColumn { name: name.to_owned(), close, alike }
    }

    /// Columns by their names, comma separated; `y*` is all that begin with `y`, in the order of the header. Each once.
    ///
    /// # Errors
    /// [`TableError::NoColumn`] for a name that no column has, or a beginning that none has.
    pub fn select(&self, names: &str) -> Result<Vec<usize>, TableError> {
        let mut chosen = Vec::new();
        for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let exact = self.names.iter().position(|n| n == name);
            let found: Vec<usize> = match (exact, name.strip_suffix('*')) {
                (Some(column), _) => vec![column],
                (None, Some(start)) => {
                    (0..self.names.len()).filter(|&c| self.names[c].starts_with(start)).collect()
                }
                (None, None) => vec![],
            };
            if found.is_empty() {
                return Err(self.no_column(name));
            }
            for column in found {
                if !chosen.contains(&column) {
                    chosen.push(column);
                }
            }
        }
        Ok(chosen)
    }
}

/// Rows of cells with their lines.
type Records = Vec<(u64, Vec<String>)>;

/// The first row of a CSV file, and the others with their lines.
fn records(bytes: &[u8]) -> Result<(Vec<String>, Records), TableError> {
    let mut rows = plain(bytes)?.into_iter();
    let (_, names) = rows.next().ok_or(TableError::Empty)?;
    Ok((names.iter().map(|name| name.trim().to_owned()).collect(), rows.collect()))
}

/// All rows of a CSV file, with their lines; blank ones are left out.
fn plain(bytes: &[u8]) -> Result<Records, TableError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let head = bytes.trim_ascii_start().split(|&b| b == b'\n').next().unwrap_or(&[]);
    let mut reader = ::csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter(head))
        .from_reader(bytes);
    let mut rows = Vec::new();
    let mut record = ::csv::ByteRecord::new();
    loop {
        let line = reader.position().line();
        let more = reader.read_byte_record(&mut record);
        let more = more.map_err(|e| TableError::Text { line, what: format!("cannot be read: {e}") })?;
        if !more {
            return Ok(rows);
        }
        // The reader counts blank lines before a row to it.
        let line = record.position().map_or(line, |at| {
            let before = bytes.get(at.byte() as usize..).unwrap_or(&[]);
            let blank = before.iter().take_while(|b| b"\r\n".contains(b));
            at.line() + blank.filter(|&&b| b == b'\n').count() as u64
        });
        let cells: Result<Vec<String>, _> =
            record.iter().map(|cell| String::from_utf8(cell.to_vec())).collect();
        let cells =
            cells.map_err(|_| TableError::Text { line, what: "found bytes that are not UTF-8".into() })?;
        if cells.len() > 1 || cells.iter().any(|cell| !cell.trim().is_empty()) {
            rows.push((line, cells));
        }
    }
}

/// A CSV file of pairs of names, with or without the header `titles`; columns after the second are not looked at. Each pair with its line.
///
/// ```
/// use gibbsite::data::table::pairs;
/// let edges = pairs(b"a,b,score\ny1,y2,0.3\n", ["a", "b"], |name| name.starts_with('y'))?;
/// assert_eq!(edges, [(2, ["y1".to_owned(), "y2".to_owned()])]);
/// # Ok::<(), gibbsite::data::table::TableError>(())
/// ```
///
/// # Errors
/// A [`TableError`] that names the line.
pub fn pairs(
    bytes: &[u8],
    titles: [&str; 2],
    known: impl Fn(&str) -> bool,
) -> Result<Vec<(u64, [String; 2])>, TableError> {
    let mut list = Vec::new();
    for (line, cells) in plain(bytes)? {
        let found = cells.len();
        let Some([a, b]) = cells.first_chunk::<2>().map(|pair| pair.each_ref().map(|c| c.trim().to_owned()))
        else {
            let what = format!("found {found} cell, expected `{},{}`", titles[0], titles[1]);
            return Err(TableError::Text { line, what });
        };
        let is_header = list.is_empty() && [a.as_str(), b.as_str()] == titles && !(known(&a) && known(&b));
        if !is_header {
            list.push((line, [a, b]));
        }
    }
    Ok(list)
}

/// Names that are like one, the closest first: at most a third of its letters (but one in any case) differ, or one begins as the other does.
pub fn close(name: &str, names: &[String]) -> Vec<String> {
    let plain = name.trim_end_matches('*').to_lowercase();
    let mut found: Vec<(usize, &String)> = names
        .iter()
        .filter_map(|other| {
            let lower = other.to_lowercase();
            let distance = distance(&plain, &lower);
            let letters = plain.chars().count();
            let near = distance <= (letters / 3).max(1) && distance < letters;
            let begins = plain.len() > 1 && (lower.starts_with(&plain) || plain.starts_with(&lower));
            (near || begins).then_some((distance, other))
        })
        .collect();
    found.sort_by_key(|f| f.0);
    found.into_iter().take(NAMES).map(|f| f.1.clone()).collect()
}

/// How many letters must be changed, put in or left out (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, &y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Table::read(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn faults_are_named() {
        assert_eq!(error(" \n"), "the file is empty, expected a header with column names, then rows");
        assert_eq!(error("a,b\n\n"), "found a header but no rows");
        assert_eq!(error("a,b\n1,2\n\n1,2,3\n"), "line 4: found 3 cells, expected 2 as in the header");
        assert_eq!(error("a,,b\n1,2,3\n"), "line 1: column 2 has no name");
        assert_eq!(
            error("a,b,a\n1,2,3\n"),
            "line 1: found two columns with the name `a`, expected different names"
        );
        let bytes = Table::read(b"a,b\n1,\xff\n").unwrap_err();
        assert_eq!(bytes.to_string(), "line 2: found bytes that are not UTF-8");
    }

    #[test]
    fn names_and_beginnings() {
        let table = Table::read(b"temperature;y1;y*;y2\n1;2;3;4\n").unwrap();
        assert_eq!(table.select("y2, temperature,y*").unwrap(), [3, 0, 2]);
        assert_eq!(table.select("y1*").unwrap(), [1]);
        assert_eq!(table.select("*").unwrap(), [0, 1, 2, 3]);
        let wrong = table.select("temprature").unwrap_err().to_string();
        assert_eq!(wrong, "line 1: found no column `temprature`; close ones are `temperature`");
        let wrong = table.select("q*").unwrap_err().to_string();
        assert_eq!(wrong, "line 1: found no column `q*`; there are `temperature`, `y1`, `y*`, `y2`");
    }

    #[test]
    fn distances() {
        for (a, b, d) in [("", "abc", 3), ("kitten", "sitting", 3), ("ab", "ba", 2), ("a", "a", 0)] {
            assert_eq!((distance(a, b), distance(b, a)), (d, d));
        }
    }
}
