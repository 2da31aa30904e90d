//! Data sets in binary, to be read at the speed of memory: what `--cache FILE` writes and opens.
//!
//! Little-endian. A header of fixed length: magic, version, bits of a scalar, CRC-32 of the header (with zero in its
//! place), CRC-32 of everything after it, then eleven 64-bit counts. After it, in this order: the key that says what
//! was read and how; names; notes; values; target; rows; stored entries of each column; one byte a column for whether it
//! is stored whole. Lengths are checked against the file's before anything is allocated.

use super::dataset::{Dataset, Format, Names, ReadParams, Stored};
use super::matrix::{Matrix, Parts};
use bytemuck::{Pod, Zeroable};
use std::borrow::Cow;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, Write};
use std::path::Path;
use std::time::UNIX_EPOCH;

const MAGIC: [u8; 8] = *b"gibcache";
/// Changes with the layout, and with what the readers make of a text.
const VERSION: u32 = 1;

#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
struct Header {
    magic: [u8; 8],
    version: u32,
    bits: u32,
    header_crc: u32,
    body_crc: u32,
    rows: u64,
    columns: u64,
    nonzeros: u64,
    key: u64,
    /// 0 and 1: numbers from there on; 2: numbers; 3: text.
    names_kind: u64,
    names: u64,
    notes: u64,
    values: u64,
    targets: u64,
    row: u64,
    /// For later versions.
    spare: u64,
}

/// Length of the header in bytes.
const HEADER: usize = size_of::<Header>();

/// What a cache was made from: the file, its length and time, and how it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(Vec<u8>);

impl Key {
    /// For a file as it is now; `None` for stdin and what is no ordinary file.
    pub fn of<V: Stored>(path: &Path, params: &ReadParams) -> Option<Self> {
        if path.as_os_str() == "-" {
            return None;
        }
        let meta = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        let time = meta.modified().ok()?;
        // Before 1970 is a time too.
        let time = match time.duration_since(UNIX_EPOCH) {
            Ok(after) => format!("+{}", after.as_nanos()),
            Err(before) => format!("-{}", before.duration().as_nanos()),
        };
        let format = params.format.unwrap_or_else(|| Format::of(path));
        // Chunks and threads do not matter.
        let ReadParams { format: _, zero_based, target, target_required, columns, chunk: _, par: _ } = params;
        let key = format!(
            "{:?} {} {time} {} {format:?} {zero_based:?} {target:?} {target_required} {columns:?}",
            fs::canonicalize(path).ok()?,
            meta.len(),
            V::BITS
        );
        Some(Self(key.into_bytes()))
    }
}

/// Why a cache was not used.
#[derive(Debug)]
#[non_exhaustive]
pub enum CacheError {
    /// There is no such file, or it is empty.
    Missing,
    /// A file of another kind.
    NotACache,
    /// Written by another version of gibbsite.
    Version(u32),
    /// Cut short, or changed after it was written.
    Damaged(&'static str),
    /// The data changed since, or it was read in another way.
    Stale,
    /// The system refused.
    Io(io::Error),
}

impl fmt::Display for CacheError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => write!(f, "there is no cache"),
            Self::NotACache => write!(f, "not a cache of gibbsite"),
            Self::Version(found) => write!(f, "a cache of version {found}, expected version {VERSION}"),
            Self::Damaged(how) => write!(f, "a damaged cache: {how}"),
            Self::Stale => write!(f, "a cache of other data, or of data that was read in another way"),
            Self::Io(cause) => write!(f, "cannot read the cache: {cause}"),
        }
    }
}

impl std::error::Error for CacheError {}

impl From<io::Error> for CacheError {
    fn from(cause: io::Error) -> Self {
        match cause.kind() {
            io::ErrorKind::NotFound => Self::Missing,
            io::ErrorKind::UnexpectedEof => Self::Damaged("it is too short"),
            _ => Self::Io(cause),
        }
    }
}

/// Opens a cache if it was made from `key`.
///
/// # Errors
/// A [`CacheError`] that says why not.
pub fn load<V: Stored>(path: &Path, key: &Key) -> Result<Dataset<V>, CacheError> {
    let file = File::open(path)?;
    let len = file.metadata()?.len();
    read_from(file, len, key)
}

/// Reads a cache of `len` bytes.
///
/// # Errors
/// As [`load`].
pub fn read_from<V: Stored>(input: impl Read, len: u64, key: &Key) -> Result<Dataset<V>, CacheError> {
    if len == 0 {
        return Err(CacheError::Missing);
    }
    let mut body = Body { input, crc: crc32fast::Hasher::new() };
    let mut header = Header::default();
    let start = len.min(HEADER as u64) as usize;
    body.input.read_exact(&mut bytemuck::bytes_of_mut(&mut header)[..start])?;
    let magic = start.min(MAGIC.len());
    if header.magic[..magic] != MAGIC[..magic] {
        return Err(CacheError::NotACache);
    }
    if start < HEADER {
        return Err(CacheError::Damaged("it is too short"));
    }
    if header.version != VERSION {
        return Err(CacheError::Version(header.version));
    }
    if header.header_crc != header_crc(header) {
        return Err(CacheError::Damaged("its header does not have the right checksum"));
    }
    if header.bits != V::BITS {
        return Err(CacheError::Stale);
    }
    let Header { rows, columns, nonzeros, names_kind, .. } = header;
    // From here on no array is larger than the file.
    if header.body_len() != len.checked_sub(HEADER as u64) {
        return Err(CacheError::Damaged("its length is not what the header says"));
    }
    if header.key != key.0.len() as u64 || body.vec::<u8>(header.key)? != key.0 {
        return Err(CacheError::Stale);
    }
    let names = body.vec::<u8>(header.names)?;
    let notes = body.vec::<u8>(header.notes)?;
    let value = body.vec::<V>(header.values)?;
    let target = body.vec::<f64>(header.targets)?;
    let row = body.vec::<u32>(header.row)?;
    let lens = body.vec::<u32>(columns)?;
    let whole = body.vec::<u8>(columns)?;
    if body.crc.finalize() != header.body_crc {
        return Err(CacheError::Damaged("it does not have the right checksum"));
    }
    // From here on only a cache that was not written by us can fail.
    let parts = Parts {
        rows: rows as usize,
        nonzeros: nonzeros as usize,
        lens: lens.into_iter().zip(whole.into_iter().map(|w| w != 0)).collect(),
        row: Cow::Owned(row),
        value: Cow::Owned(value),
    };
    let matrix = Matrix::from_parts(parts).ok_or(CacheError::Damaged("its matrix is none"))?;
    let target_fits = target.is_empty() || target.len() == matrix.rows();
    if !target_fits || !target.iter().all(|t| t.is_finite()) {
        return Err(CacheError::Damaged("its target does not fit"));
    }
    let names = match names_kind {
        first @ (0 | 1) if names.is_empty() => Names::Counted { first: first as u32, len: matrix.columns() },
        2 => Names::Numbers(names.as_chunks().0.iter().map(|number| u32::from_le_bytes(*number)).collect()),
        3 => Names::Columns(strings(&names)?),
        _ => return Err(CacheError::Damaged("its names are of no known kind")),
    };
    if names.len() != matrix.columns() {
        return Err(CacheError::Damaged("its names do not fit"));
    }
    Ok(Dataset { matrix, target, names, notes: strings(&notes)? })
}

impl Header {
    /// What the lengths add up to; `None` beyond 64 bits.
    fn body_len(&self) -> Option<u64> {
        [
            (self.key, 1),
            (self.names, 1),
            (self.notes, 1),
            (self.values, u64::from(self.bits / 8)),
            (self.targets, 8),
            (self.row, 4),
            (self.columns, 5),
        ]
        .iter()
        .try_fold(0u64, |sum, (count, bytes)| sum.checked_add(count.checked_mul(*bytes)?))
    }
}

fn header_crc(header: Header) -> u32 {
    crc32fast::hash(bytemuck::bytes_of(&Header { header_crc: 0, ..header }))
}

struct Body<R> {
    input: R,
    crc: crc32fast::Hasher,
}

impl<R: Read> Body<R> {
    /// The next array. Read and summed a piece at a time, so that the sum finds its bytes in the cache.
    fn vec<T: Pod>(&mut self, len: u64) -> Result<Vec<T>, CacheError> {
        let len = usize::try_from(len).map_err(|_| CacheError::Damaged("it is too long"))?;
        let mut all = vec![T::zeroed(); len];
        for piece in bytemuck::cast_slice_mut::<T, u8>(&mut all).chunks_mut(1 << 18) {
            self.input.read_exact(piece)?;
            self.crc.update(piece);
        }
        Ok(all)
    }
}

/// Texts as the cache holds them, a zero byte after each.
fn strings(bytes: &[u8]) -> Result<Vec<String>, CacheError> {
    let damaged = CacheError::Damaged("its text is not UTF-8");
    let text = std::str::from_utf8(bytes).map_err(|_| damaged)?;
    Ok(text.split_terminator('\0').map(str::to_owned).collect())
}

fn joined(texts: &[String]) -> Vec<u8> {
    texts.iter().flat_map(|text| text.replace('\0', " ").into_bytes().into_iter().chain([0])).collect()
}

/// Writes a cache: to a temporary file beside it that is then renamed, so that there is a whole one or none.
///
/// # Errors
/// What the system says.
pub fn store<V: Stored>(path: &Path, key: &Key, data: &Dataset<V>) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let written = File::create(&temporary)
        .and_then(|file| write_to(file, key, data))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Writes a cache to `output`, from where that stands.
///
/// # Errors
/// What the system says.
pub fn write_to<V: Stored>(mut output: impl Write + Seek, key: &Key, data: &Dataset<V>) -> io::Result<()> {
    let parts = data.matrix.parts();
    let (names_kind, names) = match &data.names {
        Names::Counted { first, .. } => (u64::from(*first), Vec::new()),
        Names::Numbers(numbers) => (2, bytemuck::cast_slice(numbers).to_vec()),
        Names::Columns(names) => (3, joined(names)),
    };
    let notes = joined(&data.notes);
    let lens: Vec<u32> = parts.lens.iter().map(|l| l.0).collect();
    let whole: Vec<u8> = parts.lens.iter().map(|l| u8::from(l.1)).collect();
    let sections: [&[u8]; 8] = [
        &key.0,
        &names,
        &notes,
        bytemuck::cast_slice(&parts.value),
        bytemuck::cast_slice(&data.target),
        bytemuck::cast_slice(&parts.row),
        bytemuck::cast_slice(&lens),
        &whole,
    ];
    let mut header = Header {
        magic: MAGIC,
        version: VERSION,
        bits: V::BITS,
        rows: parts.rows as u64,
        columns: lens.len() as u64,
        nonzeros: parts.nonzeros as u64,
        key: key.0.len() as u64,
        names_kind,
        names: names.len() as u64,
        notes: notes.len() as u64,
        values: parts.value.len() as u64,
        targets: data.target.len() as u64,
        row: parts.row.len() as u64,
        ..Header::default()
    };
    let mut crc = crc32fast::Hasher::new();
    sections.iter().for_each(|section| crc.update(section));
    header.body_crc = crc.finalize();
    header.header_crc = header_crc(header);
    let mut output = BufWriter::new(&mut output);
    output.write_all(bytemuck::bytes_of(&header))?;
    sections.iter().try_for_each(|section| output.write_all(section))?;
    output.flush()
}
