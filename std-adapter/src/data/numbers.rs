//! Tables of real numbers, CSV or `.npy`: one row an example, one column a variable.

use super::csv::delimiter;
use super::npy;
use crate::linalg::Dense;
use std::collections::HashSet;
use std::fmt;

/// A table of numbers. Cells that are empty, `NaN`, `NA`, `null` or `?` are missing: NaN.
///
/// ```
/// use gibbsite::data::numbers::Numbers;
/// let table = Numbers::read(b"load,wind\n1.5,2\n,-3\n")?;
/// assert_eq!(table.names.as_ref().unwrap()[1], "wind");
/// assert_eq!(table.values.col(1), [2.0, -3.0]);
/// assert_eq!(table.missing().unwrap().to_string(), "line 3, column 1 (`load`)");
/// # Ok::<(), gibbsite::data::numbers::NumbersError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Numbers {
    /// The header of a CSV file, if it has one.
    pub names: Option<Vec<String>>,
    /// The numbers.
    pub values: Dense,
    /// The line of each row; none for `.npy`.
    lines: Vec<u64>,
}

/// A cell's place, for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    row: usize,
    line: Option<u64>,
    column: usize,
    name: Option<String>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}")?,
            None => write!(f, "row {}", self.row + 1)?,
        }
        write!(f, ", column {}", self.column + 1)?;
        self.name.as_ref().map_or(Ok(()), |name| write!(f, " (`{name}`)"))
    }
}

/// Why bytes are no such table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NumbersError {
    /// A `.npy` file with a fault.
    Npy(npy::NpyError),
    /// Nothing but blanks, or a header and nothing else.
    NoRows,
    /// A line that is not CSV.
    Text {
        /// The line.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
    /// A cell that is no finite number, and not missing either.
    Cell {
        /// Where.
        place: Place,
        /// What stands there.
        found: String,
    },
    /// Two columns have the same name.
    Twice(String),
}

impl fmt::Display for NumbersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Npy(e) => write!(f, "{e}"),
            Self::NoRows => write!(f, "found no rows, expected numbers, one row an example"),
            Self::Text { line, what } => write!(f, "line {line}: {what}"),
            Self::Cell { place, found } => {
                write!(f, "{place}: found `{found}`, expected a finite number")
            }
            Self::Twice(name) => {
                write!(f, "found two columns with the name `{name}`, expected different names")
            }
        }
    }
}

impl std::error::Error for NumbersError {}

impl Numbers {
    /// Reads CSV (commas, semicolons or tabs; a header if the first line holds anything but numbers) or `.npy`, told by the first bytes.
    ///
    /// # Errors
    /// A [`NumbersError`] that names the line and the column.
    pub fn read(bytes: &[u8]) -> Result<Self, NumbersError> {
        let table = if bytes.starts_with(&npy::MAGIC) { Self::npy(bytes)? } else { Self::csv(bytes)? };
        if table.values.rows() == 0 || table.values.cols() == 0 {
            return Err(NumbersError::NoRows);
        }
        Ok(table)
    }

    /// Reads a `.npy` file that is not packed, piece by piece, so that nothing but the table is in memory; `None` if it is something else, or stdin.
    ///
    /// # Errors
    /// A [`NumbersError`], or what the system says.
    pub fn read_npy(path: &std::path::Path) -> std::io::Result<Option<Result<Self, NumbersError>>> {
        use std::io::{Read, Seek};
        let Ok(mut file) = std::fs::File::open(path) else { return Ok(None) };
        let about = file.metadata()?;
        let mut head = [0; npy::MAGIC.len()];
        if !about.is_file() || file.read_exact(&mut head).is_err() || head != npy::MAGIC {
            return Ok(None);
        }
        file.rewind()?;
        let len = usize::try_from(about.len()).unwrap_or(usize::MAX);
        match npy::read_columns(std::io::BufReader::new(file), len) {
            Ok((0, ..) | (_, 0, _)) => Ok(Some(Err(NumbersError::NoRows))),
            Ok((rows, cols, values)) => Ok(Some(Self::finite(rows, cols, values))),
            Err(npy::ReadError::Npy(error)) => Ok(Some(Err(NumbersError::Npy(error)))),
            Err(npy::ReadError::Io(error)) => Err(error),
        }
    }

    fn npy(bytes: &[u8]) -> Result<Self, NumbersError> {
        match npy::read_columns(bytes, bytes.len()) {
            Ok((rows, cols, values)) => Self::finite(rows, cols, values),
            Err(npy::ReadError::Npy(error)) => Err(NumbersError::Npy(error)),
            Err(npy::ReadError::Io(error)) => {
                Err(NumbersError::Npy(npy::NpyError::Header(error.to_string())))
            }
        }
    }

    /// From columns, if none is infinite.
    fn finite(rows: usize, cols: usize, values: Vec<f64>) -> Result<Self, NumbersError> {
        let values = Dense::from_columns(rows, cols, values).unwrap_or_else(|| Dense::zeros(0, 0));
        let table = Self { names: None, values, lines: Vec::new() };
        let infinite = |(i, j): &(usize, usize)| table.values.get(*i, *j).is_infinite();
        match table.cells().find(infinite) {
            Some((i, j)) => Err(NumbersError::Cell {
                place: table.place(i, j),
                found: table.values.get(i, j).to_string(),
            }),
            None => Ok(table),
        }
    }

    fn csv(bytes: &[u8]) -> Result<Self, NumbersError> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let head = bytes.split(|b| *b == b'\n').find(|l| !l.trim_ascii().is_empty()).unwrap_or(b"");
        let mut reader = ::csv::ReaderBuilder::new()
            .has_headers(false)
            .delimiter(delimiter(head))
            .flexible(true)
            .from_reader(bytes);
        let mut record = ::csv::StringRecord::new();
        let (mut names, mut lines, mut cells) = (None, Vec::new(), Vec::new());
        let mut cols = None;
        loop {
            let line = reader.position().line();
            let more = reader.read_record(&mut record).map_err(|e| {
                let line = e.position().map_or(line, ::csv::Position::line);
                NumbersError::Text { line, what: "found bytes that are not CSV in UTF-8".into() }
            })?;
            if !more {
                break;
            }
            let line = record.position().map_or(line, ::csv::Position::line);
            let expected = *cols.get_or_insert(record.len());
            if record.len() != expected {
                let what = format!("found {} cells, expected {expected}", record.len());
                return Err(NumbersError::Text { line, what });
            }
            let first = names.is_none() && lines.is_empty();
            if first && record.iter().any(|cell| number(cell).is_none()) {
                names = Some(record.iter().map(|cell| cell.trim().to_owned()).collect::<Vec<_>>());
                continue;
            }
            for (column, cell) in record.iter().enumerate() {
                let Some(value) = number(cell) else {
                    let name = names.as_ref().and_then(|names| names.get(column)).cloned();
                    let place = Place { row: lines.len(), line: Some(line), column, name };
                    let found = cell.trim().chars().take(40).collect();
                    return Err(NumbersError::Cell { place, found });
                };
                cells.push(value);
            }
            lines.push(line);
        }
        let mut seen = HashSet::new();
        if let Some(twice) = names.iter().flatten().find(|name| !seen.insert(name.as_str())) {
            return Err(NumbersError::Twice(twice.clone()));
        }
        let cols = cols.unwrap_or(0);
        let values = Dense::from_fn(lines.len(), cols, |i, j| cells[i * cols + j]);
        Ok(Self { names, values, lines })
    }

    /// Row and column of each cell, row after row.
    fn cells(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (rows, cols) = (self.values.rows(), self.values.cols());
        (0..rows).flat_map(move |i| (0..cols).map(move |j| (i, j)))
    }

    /// Where a cell stands.
    pub fn place(&self, row: usize, column: usize) -> Place {
        let name = self.names.as_ref().and_then(|names| names.get(column)).cloned();
        Place { row, line: self.lines.get(row).copied(), column, name }
    }

    /// The first cell that is missing.
    pub fn missing(&self) -> Option<Place> {
        self.cells().find(|&(i, j)| self.values.get(i, j).is_nan()).map(|(i, j)| self.place(i, j))
    }

    /// What a column is called in messages: its name, or its number from 1.
    pub fn column(&self, j: usize) -> String {
        let name = self.names.as_ref().and_then(|names| names.get(j));
        name.map_or_else(|| (j + 1).to_string(), |name| format!("`{name}`"))
    }

    /// The same rows with the columns that have these names, in their order; by position if there are no names on one side.
    ///
    /// # Errors
    /// What is missing or too many, for a message.
    pub fn arranged(self, names: Option<&[String]>, count: usize) -> Result<Self, String> {
        let found = self.values.cols();
        let (Some(wanted), Some(here)) = (names, &self.names) else {
            return if found == count {
                Ok(self)
            } else {
                Err(format!("found {found} columns, but the model has {count}"))
            };
        };
        let places: Result<Vec<usize>, String> = wanted
            .iter()
            .map(|name| {
                here.iter()
                    .position(|h| h == name)
                    .ok_or_else(|| format!("found no column `{name}`, which the model needs"))
            })
            .collect();
        let values = self.values.select_columns(&places?);
        Ok(Self { names: Some(wanted.to_vec()), values, lines: self.lines })
    }
}

/// A cell as a number; NaN if it is missing.
fn number(cell: &str) -> Option<f64> {
    let cell = cell.trim();
    if ["", "?", "NA", "null"].contains(&cell) || cell.eq_ignore_ascii_case("nan") {
        return Some(f64::NAN);
    }
    cell.parse::<f64>().ok().filter(|v| v.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_told_by_what_they_hold() {
        let bare = Numbers::read(b"1;2\n3;4\n").unwrap();
        assert_eq!((bare.names, bare.values.col(0)), (None, &[1.0, 3.0][..]));
        let named = Numbers::read(b"\xef\xbb\xbfa\tb\r\n1\tNaN\r\n").unwrap();
        assert_eq!(named.names.as_deref(), Some(&["a".to_owned(), "b".to_owned()][..]));
        assert!(named.values.get(0, 1).is_nan());
        let npy = Numbers::read(&npy::write(2, 2, &[1.0, 2.0, 3.0, f64::NAN])).unwrap();
        assert_eq!(npy.values.col(0), [1.0, 3.0]);
        assert_eq!(npy.missing().unwrap().to_string(), "row 2, column 2");
    }

    #[test]
    fn columns_are_found_by_name() {
        let table = || Numbers::read(b"a,b,c\n1,2,3\n").unwrap();
        let wanted = ["c".to_owned(), "a".to_owned()];
        assert_eq!(table().arranged(Some(&wanted), 2).unwrap().values.values(), [3.0, 1.0]);
        assert!(table().arranged(Some(&["d".to_owned()]), 1).unwrap_err().contains("no column `d`"));
        assert_eq!(table().arranged(None, 2), Err("found 3 columns, but the model has 2".to_owned()));
    }

    #[test]
    fn faults_are_named() {
        for (text, message) in [
            (&b""[..], "found no rows"),
            (b"a,b\n", "found no rows"),
            (b"a,b\n1,2\n3\n", "line 3: found 1 cells, expected 2"),
            (b"a,b\n1,2\n3,x\n", "line 3, column 2 (`b`): found `x`, expected a finite number"),
            (b"1,2\n3,inf\n", "line 2, column 2: found `inf`, expected a finite number"),
            (b"a,a\n1,2\n", "found two columns with the name `a`"),
            (b"a,b\n1,\xff\n", "line 2: found bytes that are not CSV in UTF-8"),
        ] {
            let error = Numbers::read(text).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
        let infinite = npy::write(1, 2, &[0.0, f64::INFINITY]);
        let error = Numbers::read(&infinite).unwrap_err().to_string();
        assert_eq!(error, "row 1, column 2: found `inf`, expected a finite number");
    }
}
