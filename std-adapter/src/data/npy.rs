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
    let rest = bytes.strip_prefix(&MAGIC).ok_or(NpyError::NotNpy)?;
    let cut = || NpyError::Header("it ends too early".into());
    let (&[major, _minor], rest) = rest.split_first_chunk::<2>().ok_or_else(cut)?;
    let (len, rest) = match major {
        1 => {
            let (len, rest) = rest.split_first_chunk::<2>().ok_or_else(cut)?;
            (usize::from(u16::from_le_bytes(*len)), rest)
        }
        2 | 3 => {
            let (len, rest) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
            (u32::from_le_bytes(*len) as usize, rest)
        }
        other => return Err(NpyError::Version(other)),
    };
    let (header, data) = rest.split_at_checked(len).ok_or_else(cut)?;
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
    match data.len() {
        found if found < expected => return Err(NpyError::Truncated(found, expected)),
        found if found > expected => return Err(NpyError::TooLong(found, expected)),
        _ => {}
    }
    let stored: Vec<f64> = if size == 8 {
        let numbers = data.as_chunks::<8>().0.iter();
        numbers.map(|&b| if big { f64::from_be_bytes(b) } else { f64::from_le_bytes(b) }).collect()
    } else {
        let numbers = data.as_chunks::<4>().0.iter();
        numbers.map(|&b| f64::from(if big { f32::from_be_bytes(b) } else { f32::from_le_bytes(b) })).collect()
    };
    let values = if fortran && rows > 1 && cols > 1 {
        (0..rows).flat_map(|i| stored[i..].iter().step_by(rows).copied()).collect()
    } else {
        stored
    };
    Ok(Array { rows, cols, values })
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
