//! Data sets for regression: a matrix, a target and names, from svmlight or CSV files, packed or not, or from a cache.
//!
//! Text is cut into chunks of a fixed size at line ends, which threads parse on their own; rows are then spread into
//! columns. Nothing depends on how many threads there are. Plain files are mapped a window at a time, packed ones
//! are unpacked a block at a time while the block before is parsed, and each chunk of rows is freed as it is spread, so
//! that reading takes about twice the memory of the matrix.

pub(super) mod block;
pub(super) mod number;

use super::cache::{self, CacheError, Key};
use super::matrix::{Matrix, RowChunk};
use super::source::Step;
use super::{csv, svmlight};
use crate::par::Par;
use block::{Cut, Input};
use gibbsite_core::math::Real;
use std::fmt;
use std::io::{self, Read};
use std::path::Path;

/// A scalar that a matrix may store: `f64`, or `f32` for half the memory.
pub trait Stored: Real + bytemuck::Pod {
    /// How many bits it has.
    const BITS: u32;
}

impl Stored for f64 {
    const BITS: u32 = 64;
}

impl Stored for f32 {
    const BITS: u32 = 32;
}

/// A matrix with a target for each row and a name for each column.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset<V = f64> {
    /// A row for each sample, a column for each feature. Zeros of the file are not entries.
    pub matrix: Matrix<V>,
    /// The label of each row; empty if the file has none.
    pub target: Vec<f64>,
    /// What the file calls each column.
    pub names: Names,
    /// What else was noticed, each a sentence for the user.
    pub notes: Vec<String>,
}

/// What a file calls its features.
///
/// ```
/// use gibbsite::data::dataset::Names;
/// let names = Names::Counted { first: 1, len: 3 };
/// assert_eq!((names.name(0).as_str(), names.position("3"), names.position("4")), ("1", Some(2), None));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Names {
    /// Consecutive numbers: svmlight files.
    Counted {
        /// The number of the first column, 1 or 0.
        first: u32,
        /// How many columns there are.
        len: usize,
    },
    /// These numbers, ascending: svmlight files that use few of very many.
    Numbers(Vec<u32>),
    /// The header of a CSV file without the target.
    Columns(Vec<String>),
}

impl Names {
    /// How many columns have names.
    pub fn len(&self) -> usize {
        match self {
            Self::Counted { len, .. } => *len,
            Self::Numbers(numbers) => numbers.len(),
            Self::Columns(names) => names.len(),
        }
    }

    /// Whether there are no columns.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name of column `j`.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn name(&self, j: usize) -> String {
        match self {
            Self::Counted { first, len } => {
                assert!(j < *len, "column {j} of {len}");
                (*first as usize + j).to_string()
            }
            Self::Numbers(numbers) => numbers[j].to_string(),
            Self::Columns(names) => names[j].clone(),
        }
    }

    /// The column of that name. Slow for CSV names.
    pub fn position(&self, name: &str) -> Option<usize> {
        match self {
            Self::Columns(names) => names.iter().position(|n| n == name),
            _ => self.position_of(name.parse().ok()?),
        }
    }

    /// The column of that number; `None` for CSV names.
    pub(super) fn position_of(&self, number: u32) -> Option<usize> {
        match self {
            Self::Counted { first, len } => {
                number.checked_sub(*first).map(|j| j as usize).filter(|j| j < len)
            }
            Self::Numbers(numbers) => numbers.binary_search(&number).ok(),
            Self::Columns(_) => None,
        }
    }
}

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `LABEL index:value … # comment`, a sample a line.
    Svmlight,
    /// A header with names, then numbers, separated by commas, semicolons or tabs.
    Csv,
}

impl Format {
    /// By the name: `.csv` and `.tsv` are CSV, also before `.gz` or `.zst`; anything else is svmlight.
    ///
    /// ```
    /// use gibbsite::data::dataset::Format;
    /// assert_eq!(Format::of("news20.svm.gz".as_ref()), Format::Svmlight);
    /// assert_eq!(Format::of("wine.CSV.zst".as_ref()), Format::Csv);
    /// ```
    pub fn of(path: &Path) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let name = name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(&name);
        if name.ends_with(".csv") || name.ends_with(".tsv") { Self::Csv } else { Self::Svmlight }
    }
}

/// How to read a file.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadParams {
    /// How it is written; by its name if `None`.
    pub format: Option<Format>,
    /// Whether svmlight indices count from 0; if `None`, they do if there is a 0 among them.
    pub zero_based: Option<bool>,
    /// The target of a CSV file; its last column if `None`.
    pub target: Option<String>,
    /// Whether there must be a target. If not, svmlight lines may start with their first feature (all or none), and a CSV
    /// file has a target only if `target` names one of its columns.
    pub target_required: bool,
    /// The columns of a model: the matrix gets these, in this order, and other features of the file are ignored.
    pub columns: Option<Names>,
    /// Bytes of text that are parsed at a time. The result does not depend on it.
    pub chunk: usize,
    /// Threads.
    pub par: Par,
}

impl Default for ReadParams {
    fn default() -> Self {
        Self {
            format: None,
            zero_based: None,
            target: None,
            target_required: true,
            columns: None,
            chunk: 1 << 20,
            par: Par::Seq,
        }
    }
}

/// Why there is no data set. Messages do not name the file; the caller does.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// Something in a line is wrong.
    Line {
        /// Which, counted from 1.
        line: usize,
        /// The column's name, where it matters.
        column: Option<String>,
        /// What was found, and what was expected.
        what: String,
    },
    /// The file as a whole is wrong.
    Whole(String),
    /// It cannot be opened, read or unpacked.
    Source {
        /// What was tried.
        step: Step,
        /// What the system or the decompressor said.
        cause: io::Error,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { line, column: None, what } => write!(f, "line {line}: {what}"),
            Self::Line { line, column: Some(name), what } => {
                write!(f, "line {line}, column `{name}`: {what}")
            }
            Self::Whole(what) => f.write_str(what),
            Self::Source { step, cause } => f.write_str(&step.explain(cause)),
        }
    }
}

impl std::error::Error for ReadError {}

/// A fault in a chunk; the line counts from 0 there.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) line: usize,
    pub(super) column: Option<String>,
    pub(super) what: String,
    /// As in [`svmlight::Seen`], for the rows before the fault.
    pub(super) first: Option<(usize, bool)>,
}

impl Fault {
    #[cold]
    pub(super) fn new(line: usize, what: impl Into<String>) -> Self {
        Self { line, column: None, what: what.into(), first: None }
    }

    pub(super) fn after(self, lines: usize) -> ReadError {
        ReadError::Line { line: lines + self.line + 1, column: self.column, what: self.what }
    }
}

/// What a chunk of text holds.
pub(super) struct Part<V> {
    pub(super) rows: RowChunk<V>,
    pub(super) target: Vec<f64>,
    /// How many lines the chunk has.
    pub(super) lines: usize,
    /// What an svmlight reader has to know beyond its chunk.
    pub(super) seen: svmlight::Seen,
}

/// Reads a file, or stdin if the path is `-`.
///
/// ```
/// use gibbsite::data::dataset::{Dataset, ReadParams, read};
/// let path = std::env::temp_dir().join("gibbsite-doc.svm");
/// std::fs::write(&path, "-1 2:0.5 # a comment\n+1 1:3 2:1\n")?;
/// let data: Dataset = read(&path, &ReadParams::default()).unwrap();
/// assert_eq!((data.target.as_slice(), data.matrix.nonzeros()), (&[-1.0, 1.0][..], 3));
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// A [`ReadError`] with the line of the first fault.
pub fn read<V: Stored>(path: impl AsRef<Path>, params: &ReadParams) -> Result<Dataset<V>, ReadError> {
    let path = path.as_ref();
    let format = params.format.unwrap_or_else(|| Format::of(path));
    params.par.run(|par| input(Input::open(path)?, format, &ReadParams { par, ..params.clone() }))
}

/// Reads everything from `text`, unpacked if it is a gzip or zstd file; svmlight unless the parameters say otherwise.
///
/// ```
/// use gibbsite::data::dataset::{Dataset, Format, ReadParams, read_from};
/// let params = ReadParams { format: Some(Format::Csv), ..ReadParams::default() };
/// let data: Dataset = read_from(&b"a,b,y\n1,0,2\n3,4,5\n"[..], &params)?;
/// assert_eq!((data.target.as_slice(), data.names.name(1).as_str()), (&[2.0, 5.0][..], "b"));
/// # Ok::<(), gibbsite::data::dataset::ReadError>(())
/// ```
///
/// # Errors
/// As [`read`].
pub fn read_from<V: Stored>(text: impl Read + Send, params: &ReadParams) -> Result<Dataset<V>, ReadError> {
    let format = params.format.unwrap_or(Format::Svmlight);
    params.par.run(|par| input(Input::unpack(text)?, format, &ReadParams { par, ..params.clone() }))
}

/// Reads a file by way of a cache: from `cache` if that holds what [`read`] would give, else from the file, and then writes
/// the cache. A cache that is out of date, damaged or of another version is written anew; a file that is no cache
/// is left alone. Notes say what happened; only the file itself can fail.
///
/// # Errors
/// As [`read`].
pub fn read_cached<V: Stored>(
    path: impl AsRef<Path>,
    cache: impl AsRef<Path>,
    params: &ReadParams,
) -> Result<Dataset<V>, ReadError> {
    let (path, cache) = (path.as_ref(), cache.as_ref());
    let shown = cache.display();
    let Some(key) = Key::of::<V>(path, params) else {
        let mut data = read(path, params)?;
        data.notes.push("only files are cached, so no cache was used".to_owned());
        return Ok(data);
    };
    let why = match cache::load(cache, &key) {
        Ok(data) => return Ok(data),
        Err(why) => why,
    };
    let mut data = read(path, params)?;
    match why {
        CacheError::Missing => {}
        CacheError::NotACache => {
            data.notes.push(format!("{shown}: not a cache of gibbsite, so it is left as it is"));
            return Ok(data);
        }
        why => data.notes.push(format!("{shown}: {why}; read the data again")),
    }
    if Key::of::<V>(path, params).as_ref() != Some(&key) {
        data.notes.push("the file changed while it was read, so no cache was written".to_owned());
        return Ok(data);
    }
    // The note of this run is not one for the next.
    let told = data.notes.clone();
    data.notes.retain(|note| !note.starts_with(&format!("{shown}: ")));
    let stored = cache::store(cache, &key, &data);
    data.notes = told;
    if let Err(cause) = stored {
        data.notes.push(format!("{shown}: could not write the cache: {cause}"));
    }
    Ok(data)
}

/// Blocks are this many chunks: enough for some threads, little beside the matrix.
const BLOCK: usize = 32;
/// For streams, of which two blocks are in memory.
const STREAM_BLOCK: usize = 8;

/// What makes a part of a chunk.
type Parse<'a, V> = dyn Fn(&[u8]) -> Result<Part<V>, Fault> + Sync + 'a;

fn input<V: Stored>(input: Input<'_>, format: Format, params: &ReadParams) -> Result<Dataset<V>, ReadError> {
    let size = params.chunk.saturating_mul(match input {
        Input::Mapped(..) => BLOCK,
        Input::Stream(..) => STREAM_BLOCK,
    });
    let mut parts = Vec::new();
    let (mut lines, mut labelled) = (0, None);
    let mut parse = |text: &[u8], parse: &Parse<'_, V>| {
        for part in params.par.map(block::chunks(text, params.chunk, Cut::Lines), parse) {
            // Before a fault of the chunk, as its first row comes before that.
            let first = part.as_ref().map_or_else(|fault| fault.first, |part| part.seen.first);
            if let Some((line, label)) = first
                && *labelled.get_or_insert(label) != label
            {
                return Err(svmlight::mixed(line, label).after(lines));
            }
            let part = part.map_err(|fault| fault.after(lines))?;
            lines += part.lines;
            parts.push(part);
        }
        Ok(())
    };
    match format {
        Format::Svmlight => {
            let how = svmlight::How::of(params)?;
            let mut start = true;
            input.blocks(size, Cut::Lines, params.par, |text| {
                let text = if std::mem::take(&mut start) { without_mark(text) } else { text };
                parse(text, &|chunk| svmlight::parse(chunk, how))
            })?;
            svmlight::join(parts, params)
        }
        Format::Csv => {
            let mut head = csv::Head::default();
            let mut layout = None;
            input.blocks(size, Cut::Lines, params.par, |text| {
                let layout = match &layout {
                    Some(layout) => layout,
                    None => {
                        let text = if head.text.is_empty() { without_mark(text) } else { text };
                        let Some(body) = head.take(text)? else { return Ok(()) };
                        let found = layout.insert(csv::Layout::new(&head.text, params)?);
                        // The header's lines count, but hold no rows.
                        parse(&head.text, &|chunk| Ok(csv::nothing(chunk)))?;
                        return parse(body, &|chunk| csv::parse(chunk, found));
                    }
                };
                parse(text, &|chunk| csv::parse(chunk, layout))
            })?;
            let layout = match layout {
                Some(layout) => layout,
                None => csv::Layout::new(head.finish()?, params)?,
            };
            csv::join(parts, layout, params)
        }
    }
}

/// Text without a byte order mark at its start.
pub(super) fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}

/// Rows and targets of all parts. The targets are empty if no part has any.
pub(super) fn unite<V>(parts: Vec<Part<V>>) -> Result<(Vec<RowChunk<V>>, Vec<f64>), ReadError> {
    let rows: usize = parts.iter().map(|p| p.rows.ends.len()).sum();
    if u32::try_from(rows).is_err() {
        return Err(ReadError::Whole(format!("found {rows} rows, expected fewer than 2^32")));
    }
    let mut target = Vec::with_capacity(parts.iter().map(|p| p.target.len()).sum());
    let chunks = parts
        .into_iter()
        .map(|part| {
            target.extend_from_slice(&part.target);
            part.rows
        })
        .collect();
    Ok((chunks, target))
}

/// A value as it will be stored: `None` if it is not finite there.
#[inline(always)]
pub(super) fn stored<V: Stored>(value: f64) -> Option<V> {
    let value = V::from_f64(value);
    (V::NEG_INFINITY < value && value < V::INFINITY).then_some(value)
}
