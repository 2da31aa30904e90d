//! Arrays in NumPy's `.npy` format, versions 1 to 3: real numbers of 4 or 8 bytes, one or two dimensions, either order.

use std::fmt;

/// The first bytes of such a file.
pub const MAGIC: [u8; 6] = *b"\x93NUMPY";

/// An array as it stands in the file, row after row.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Rows.
    pub rows: usize,
    /// Columns; 1 for a vector.
    pub cols: usize,
    /// Entries, row after row.
    pub values: Vec<f64>,
}

/// Why bytes are no array that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NpyError {
    /// Other first bytes.
    NotNpy,
    /// A format version that is not known.
    Version(u8),
    /// It ends too early: bytes found, bytes expected.
    Truncated(usize, usize),
    /// More bytes than the shape says: bytes found, bytes expected.
    TooLong(usize, usize),
    /// The header is not as it should be: what is the matter.
    Header(String),
}

impl fmt::Display for NpyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotNpy => write!(f, "not a .npy file"),
            Self::Version(v) => write!(f, "a .npy file of version {v}, expected 1, 2 or 3"),
            Self::Truncated(found, expected) => {
                write!(f, "a truncated .npy file: found {found} bytes of data, expected {expected}")
            }
            Self::TooLong(found, expected) => {
                write!(f, "a damaged .npy file: found {found} bytes of data, expected {expected}")
            }
            Self::Header(what) => write!(f, "the .npy header: {what}"),
        }
    }
}

impl std::error::Error for NpyError {}

/// What the header says.
struct Layout {
    rows: usize,
    cols: usize,
    /// Bytes of an entry.
    size: usize,
    big: bool,
    fortran: bool,
}

impl Layout {
    /// Of a header, for so many bytes of data.
    fn new(header: &[u8], data: usize) -> Result<Self, NpyError> {
        let header = std::str::from_utf8(header).map_err(|_| NpyError::Header("it is not text".into()))?;
        let kind = quoted(value(header, "descr")?)?;
        let fortran = match value(header, "fortran_order")? {
            text if text.starts_with("True") => true,
            text if text.starts_with("False") => false,
            _ => return Err(NpyError::Header("`fortran_order` is neither True nor False".into())),
        };
        let (rows, cols) = shape(value(header, "shape")?)?;
        let (size, big) = match kind {
            "<f8" | "=f8" | "|f8" => (8, false),
            ">f8" => (8, true),
            "<f4" | "=f4" | "|f4" => (4, false),
            ">f4" => (4, true),
            other => {
                let other: String = other.chars().take(40).collect();
                return Err(NpyError::Header(format!(
                    "found entries of the type `{other}`, expected float64 or float32 (`f8`, `f4`)"
                )));
            }
        };
        let expected = rows.checked_mul(cols).and_then(|n| n.checked_mul(size)).unwrap_or(usize::MAX);
        match data {
            found if found < expected => Err(NpyError::Truncated(found, expected)),
            found if found > expected => Err(NpyError::TooLong(found, expected)),
            _ => Ok(Self { rows, cols, size, big, fortran }),
        }
    }

    /// The numbers in some bytes.
    fn numbers(&self, data: &[u8]) -> impl Iterator<Item = f64> {
        let Self { size, big, .. } = *self;
        data.chunks_exact(size).map(move |b| match *b {
            [a, b, c, d, e, f, g, h] => {
                let bytes = [a, b, c, d, e, f, g, h];
                if big { f64::from_be_bytes(bytes) } else { f64::from_le_bytes(bytes) }
            }
            [a, b, c, d] => f64::from(if big {
                f32::from_be_bytes([a, b, c, d])
            } else {
                f32::from_le_bytes([a, b, c, d])
            }),
            _ => f64::NAN,
        })
    }
}

/// Reads an array. Nothing is allocated that is larger than twice the bytes given.
///
/// ```
/// use gibbsite::data::npy::{read, write};
/// let array = read(&write(2, 1, &[1.5, -2.0])).unwrap();
/// assert_eq!((array.rows, array.cols, array.values), (2, 1, vec![1.5, -2.0]));
/// ```
///
/// # Errors
/// An [`NpyError`]: something else, truncated, numbers of another kind, more than two dimensions.
pub fn read(bytes: &[u8]) -> Result<Array, NpyError> {
    let found = read_columns(bytes, bytes.len());
    let (rows, cols, columns) = found.map_err(|error| match error {
        ReadError::Npy(error) => error,
        // Bytes in memory are there.
        ReadError::Io(_) => NpyError::Header("it ends too early".into()),
    })?;
    let values = if rows > 1 && cols > 1 {
        (0..rows).flat_map(|i| columns[i..].iter().step_by(rows).copied()).collect()
    } else {
        columns
    };
    Ok(Array { rows, cols, values })
}

/// Why nothing was read.
#[derive(Debug)]
pub enum ReadError {
    /// No array that can be used.
    Npy(NpyError),
    /// The system would not read.
    Io(std::io::Error),
}

/// Bytes that are read at a time.
const PIECE: usize = 1 << 18;

/// Reads an array of `len` bytes, header included, piece by piece: rows, columns, and the entries column after column. Nothing else of the array's size is allocated.
///
/// # Errors
/// A [`ReadError`].
pub fn read_columns(
    mut input: impl std::io::Read,
    len: usize,
) -> Result<(usize, usize, Vec<f64>), ReadError> {
    let mut left = len;
    let mut take = |count: usize| -> Result<Vec<u8>, ReadError> {
        let short = || ReadError::Npy(NpyError::Header("it ends too early".into()));
        left = left.checked_sub(count).ok_or_else(short)?;
        let mut out = vec![0; count];
        input.read_exact(&mut out).map_err(ReadError::Io)?;
        Ok(out)
    };
    if len < MAGIC.len() || take(MAGIC.len())? != MAGIC {
        return Err(ReadError::Npy(NpyError::NotNpy));
    }
    let version = take(2)?;
    let header = match version[0] {
        1 => take(2)?.iter().rev().fold(0, |sum, &b| sum << 8 | usize::from(b)),
        2 | 3 => take(4)?.iter().rev().fold(0, |sum, &b| sum << 8 | usize::from(b)),
        other => return Err(ReadError::Npy(NpyError::Version(other))),
    };
    let header = take(header)?;
    let layout = Layout::new(&header, left).map_err(ReadError::Npy)?;
    let Layout { rows, cols, size, fortran, .. } = layout;
    let mut values = vec![0.0; rows * cols];
    let (mut piece, mut at) = (vec![0; PIECE], 0);
    while at < values.len() {
        let count = (PIECE / size).min(values.len() - at);
        let piece = &mut piece[..count * size];
        input.read_exact(piece).map_err(ReadError::Io)?;
        for (k, number) in (at..).zip(layout.numbers(piece)) {
            let place = if fortran { k } else { k / cols + k % cols * rows };
            values[place] = number;
        }
        at += count;
    }
    Ok((rows, cols, values))
}

/// The bytes of a two-dimensional array of 8-byte numbers, row after row, version 1.
pub fn write(rows: usize, cols: usize, values: &[f64]) -> Vec<u8> {
    let mut header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, {cols}), }}");
    // Data begins at a multiple of 64, the header ends with a line break.
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    values.iter().for_each(|v| bytes.extend(v.to_le_bytes()));
    bytes
}

/// What follows `'key':`.
fn value<'a>(header: &'a str, key: &str) -> Result<&'a str, NpyError> {
    let find = |quote: char| {
        let at = header.find(&format!("{quote}{key}{quote}"))?;
        header.get(at + key.len() + 2..)?.trim_start().strip_prefix(':')
    };
    let found = find('\'').or_else(|| find('"'));
    found.map(str::trim_start).ok_or_else(|| NpyError::Header(format!("found no `{key}`")))
}

fn quoted(text: &str) -> Result<&str, NpyError> {
    let structured = || NpyError::Header("found a structured type, expected plain numbers".into());
    let quote = text.chars().next().filter(|c| "'\"".contains(*c)).ok_or_else(structured)?;
    text.get(1..).and_then(|t| t.split_once(quote)).map(|t| t.0).ok_or_else(structured)
}

fn shape(text: &str) -> Result<(usize, usize), NpyError> {
    let wrong = || NpyError::Header("`shape` is no tuple of whole numbers".into());
    let inner = text.strip_prefix('(').and_then(|t| t.split_once(')')).ok_or_else(wrong)?.0;
    let sizes: Vec<usize> = inner
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .map(|word| word.trim_end_matches('L').parse().map_err(|_| wrong()))
        .collect::<Result<_, _>>()?;
    match sizes.as_slice() {
        [rows] => Ok((*rows, 1)),
        [rows, cols] => Ok((*rows, *cols)),
        other => {
            Err(NpyError::Header(format!("found {} dimensions, expected 2: one row an example", other.len())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, major: u8, data: &[u8]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([major, 0]);
        if major == 1 {
            bytes.extend((header.len() as u16).to_le_bytes());
        } else {
            bytes.extend((header.len() as u32).to_le_bytes());
        }
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    #[test]
    fn types_orders_and_versions() {
        let data: Vec<u8> = [1f64, 2.0, 3.0, 4.0, 5.0, 6.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        let c = file("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }\n", 1, &data);
        assert_eq!(read(&c).unwrap(), Array { rows: 2, cols: 3, values: vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0] });
        let fortran = file("{'shape': (2, 3), 'fortran_order': True, 'descr': '<f8'}", 2, &data);
        assert_eq!(read(&fortran).unwrap().values, [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]);
        let big: Vec<u8> = [1f32, -0.5].iter().flat_map(|v| v.to_be_bytes()).collect();
        let vector = file("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", 3, &big);
        assert_eq!(read(&vector).unwrap(), Array { rows: 2, cols: 1, values: vec![1.0, -0.5] });
    }

    #[test]
    fn faults_are_named() {
        let good = write(2, 2, &[1.0, 2.0, 3.0, 4.0]);
        for len in 0..good.len() {
            assert!(read(&good[..len]).is_err(), "{len}");
        }
        for (header, message) in [
            (
                "{'descr': '<i8', 'fortran_order': False, 'shape': (1, 1), }",
                "found entries of the type `<i8`",
            ),
            ("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1, 1), }", "structured type"),
            ("{'descr': '<f8', 'fortran_order': None, 'shape': (1, 1), }", "neither True nor False"),
            ("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1, 1), }", "found 3 dimensions"),
            ("{'descr': '<f8', 'fortran_order': False, 'shape': (1, x), }", "no tuple of whole numbers"),
            ("{'descr': '<f8', 'fortran_order': False}", "found no `shape`"),
            ("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999, 99999999999), }", "truncated"),
        ] {
            let error = read(&file(header, 1, &[0; 8])).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
        let long = file("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1), }", 1, &[0; 9]);
        assert_eq!(read(&long), Err(NpyError::TooLong(9, 8)));
        assert_eq!(read(b"a,b\n1,2\n"), Err(NpyError::NotNpy));
        assert_eq!(read(&file("", 9, &[])), Err(NpyError::Version(9)));
    }
}
