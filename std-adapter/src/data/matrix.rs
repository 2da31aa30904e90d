//! Design matrices: compressed columns, with columns that are mostly non-zero stored whole.

use super::rows::Rows;
use crate::par::Par;
use gibbsite_core::column::Column;
use gibbsite_core::math::Real;
use std::borrow::Cow;

/// A matrix by columns. A column with at least half of its rows is stored whole: a plain product is several times
/// faster than a gathered one, and takes no more than a third more memory.
///
/// ```
/// use gibbsite::data::matrix::Matrix;
/// // rows (0: 1.0), (1: 2.0, 0: 3.0), () of a matrix with two columns
/// let m = Matrix::<f64>::from_rows(2, &[&[(0, 1.0)], &[(0, 3.0), (1, 2.0)], &[]]);
/// assert_eq!((m.rows(), m.columns(), m.nonzeros()), (3, 2, 3));
/// assert_eq!(m.column(0).dot(&[1.0, 1.0, 1.0]), 4.0);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix<V = f64> {
    rows: usize,
    nonzeros: usize,
    columns: Vec<Extent>,
    /// Rows of the entries of the columns that are not whole.
    row: Vec<u32>,
    /// Their values, in the same places; then the whole columns.
    value: Vec<V>,
}

/// Where a column lies: its entries from `start` on, with their rows in the same places unless it is stored whole.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Extent {
    start: usize,
    len: u32,
    whole: bool,
}

/// Non-zeros row by row, as a reader finds them: the parts of a file in order.
#[derive(Clone, Debug, Default)]
pub struct RowChunk<V = f64> {
    /// Where each row ends in `column` and `value`.
    pub ends: Vec<u32>,
    /// Column of each entry, ascending within a row.
    pub column: Vec<u32>,
    /// The entries.
    pub value: Vec<V>,
}

/// A matrix taken apart for a file; see [`Matrix::from_parts`].
pub(super) struct Parts<'a, V: Clone> {
    pub(super) rows: usize,
    pub(super) nonzeros: usize,
    /// Stored entries of each column, and whether it is whole.
    pub(super) lens: Vec<(u32, bool)>,
    pub(super) row: Cow<'a, [u32]>,
    pub(super) value: Cow<'a, [V]>,
}

/// Lays columns out: those that are not whole first, each kind in its order.
fn extents(rows: usize, lens: impl Iterator<Item = (u32, bool)> + Clone) -> Vec<Extent> {
    let sparse: usize = lens.clone().filter(|l| !l.1).map(|l| l.0 as usize).sum();
    let mut next = [0, sparse];
    lens.map(|(len, whole)| {
        let len = if whole { rows as u32 } else { len };
        let next = &mut next[usize::from(whole)];
        let extent = Extent { start: *next, len, whole };
        *next += len as usize;
        extent
    })
    .collect()
}

/// The columns that one thread fills.
struct Band<'a, V> {
    first: u32,
    /// For each column the place of its next entry in `value` and `row`, or with the bit [`WHOLE`] that of its first one
    /// in `whole`.
    next: &'a mut [usize],
    row: &'a mut [u32],
    value: &'a mut [V],
    whole: &'a mut [V],
}

const WHOLE: usize = 1 << (usize::BITS - 1);

/// Chunks that are spread, and then freed, at a time.
const GROUP: usize = 32;

impl<V: Real> Band<'_, V> {
    /// Takes this band's entries from a chunk whose first row is `row`.
    fn take(&mut self, row: usize, chunk: &RowChunk<V>, all: bool) {
        let mut start = 0;
        for (i, &end) in (row..).zip(&chunk.ends) {
            let (mut from, mut to) = (start, end as usize);
            start = to;
            if !all {
                let columns = &chunk.column[from..to];
                to = from
                    + columns
                        .partition_point(|&c| ((c.saturating_sub(self.first)) as usize) < self.next.len());
                from += columns.partition_point(|&c| c < self.first);
            }
            for (&c, &v) in chunk.column[from..to].iter().zip(&chunk.value[from..to]) {
                let Some(next) = self.next.get_mut((c - self.first) as usize) else { continue };
                if *next & WHOLE == 0 {
                    self.value[*next] = v;
                    self.row[*next] = i as u32;
                    *next += 1;
                } else {
                    self.whole[(*next ^ WHOLE) + i] = v;
                }
            }
        }
    }
}

impl<V: Real> Matrix<V> {
    /// Transposes rows into columns on the calling thread; see [`spread`](Self::spread).
    ///
    /// # Panics
    /// If there are 2³² rows or more.
    pub fn from_chunks(columns: usize, chunks: Vec<RowChunk<V>>) -> Self {
        Self::spread(columns, chunks, Par::Seq)
    }

    /// Transposes rows into columns. Chunks are freed soon after they have been spread, so that there are at no time
    /// more than the rows and the columns in memory. Entries beyond `columns` are left out. Each thread fills a band of
    /// columns; the matrix is the same for any number of them.
    ///
    /// # Panics
    /// If there are 2³² rows or more.
    pub fn spread(columns: usize, chunks: Vec<RowChunk<V>>, par: Par) -> Self {
        let rows: usize = chunks.iter().map(|c| c.ends.len()).sum();
        assert!(u32::try_from(rows).is_ok(), "at most 2^32 - 1 rows, but there are {rows}");
        let mut count = vec![0u32; columns];
        for &c in chunks.iter().flat_map(|chunk| &chunk.column) {
            if let Some(n) = count.get_mut(c as usize) {
                *n += 1;
            }
        }
        let nonzeros = count.iter().map(|&n| n as usize).sum();
        let extents = extents(rows, count.iter().map(|&n| (n, rows > 0 && n as usize * 2 >= rows)));
        drop(count);
        let sparse: usize = extents.iter().filter(|e| !e.whole).map(|e| e.len as usize).sum();
        let stored: usize = extents.iter().map(|e| e.len as usize).sum();
        let mut row = vec![0u32; sparse];
        let mut value = vec![V::zero(); stored];
        let mut next = vec![0usize; columns];
        let (sparse_values, whole_values) = value.split_at_mut(sparse);
        let mut bands = bands(&extents, &mut next, &mut row, sparse_values, whole_values, par);
        let all = bands.len() == 1;
        let mut first = 0;
        let mut chunks = chunks.into_iter();
        loop {
            let group: Vec<(usize, RowChunk<V>)> = (chunks.by_ref().take(GROUP))
                .map(|chunk| {
                    let row = first;
                    first += chunk.ends.len();
                    (row, chunk)
                })
                .collect();
            if group.is_empty() {
                break;
            }
            par.map(bands.iter_mut().collect(), |band: &mut Band<'_, V>| {
                for (row, chunk) in &group {
                    band.take(*row, chunk, all);
                }
            });
        }
        Self { rows, nonzeros, columns: extents, row, value }
    }

    /// From what [`parts`](Self::parts) gave, perhaps by way of a file: `None` unless it is a matrix.
    pub(super) fn from_parts(parts: Parts<'_, V>) -> Option<Self> {
        let Parts { rows, nonzeros, lens, row, value } = parts;
        let most = u32::try_from(rows).ok()?;
        let (mut sparse, mut stored) = (0usize, 0usize);
        for &(len, whole) in &lens {
            if len > most || (whole && len != most) {
                return None;
            }
            sparse = sparse.checked_add(if whole { 0 } else { len as usize })?;
            stored = stored.checked_add(len as usize)?;
        }
        if (sparse, stored) != (row.len(), value.len()) || nonzeros > stored {
            return None;
        }
        let columns = extents(rows, lens.iter().copied());
        let ascending = |e: &Extent| {
            let rows = &row[e.start..e.start + e.len as usize];
            // Without an early exit, as this then runs at the speed of memory.
            let steps = rows.iter().zip(rows.iter().skip(1)).fold(true, |ok, (a, b)| ok & (a < b));
            steps && rows.last().is_none_or(|&last| last < most)
        };
        let legal = columns.iter().filter(|e| !e.whole).all(ascending)
            && value.iter().fold(true, |ok, &v| ok & (V::NEG_INFINITY < v) & (v < V::INFINITY));
        legal.then(|| Self { rows, nonzeros, columns, row: row.into_owned(), value: value.into_owned() })
    }

    /// The arrays, for a file.
    pub(super) fn parts(&self) -> Parts<'_, V> {
        Parts {
            rows: self.rows,
            nonzeros: self.nonzeros,
            lens: self.columns.iter().map(|e| (e.len, e.whole)).collect(),
            row: Cow::Borrowed(&self.row),
            value: Cow::Borrowed(&self.value),
        }
    }

    /// From rows of `(column, value)` pairs; for tests and examples.
    pub fn from_rows(columns: usize, rows: &[&[(u32, V)]]) -> Self {
        let mut chunk = RowChunk { ends: vec![], column: vec![], value: vec![] };
        for row in rows {
            chunk.column.extend(row.iter().map(|e| e.0));
            chunk.value.extend(row.iter().map(|e| e.1));
            chunk.ends.push(chunk.column.len() as u32);
        }
        Self::from_chunks(columns, vec![chunk])
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    /// Entries that the source held.
    pub fn nonzeros(&self) -> usize {
        self.nonzeros
    }

    /// Bytes that the matrix takes.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.columns[..]) + size_of_val(&self.row[..]) + size_of_val(&self.value[..])
    }

    /// Column `j`.
    ///
    /// # Panics
    /// If there is no such column.
    #[inline]
    pub fn column(&self, j: usize) -> Column<'_, V> {
        let Extent { start, len, whole } = self.columns[j];
        let range = start..start + len as usize;
        if whole {
            Column::Dense(&self.value[range])
        } else {
            Column::Sparse { rows: &self.row[range.clone()], values: &self.value[range] }
        }
    }

    /// `A x`.
    pub fn product(&self, x: &[f64]) -> Vec<f64> {
        let mut z = vec![0.0; self.rows];
        for (j, &x) in x.iter().enumerate().filter(|(_, x)| **x != 0.0) {
            self.column(j).add_to(x, &mut z);
        }
        z
    }

    /// The same matrix by rows.
    pub fn by_rows(&self) -> Rows<V> {
        let mut rows = Rows::default();
        rows.refill(self.rows, (0..self.columns()).map(|j| (j as u32, self.column(j))), Par::Seq);
        rows
    }
}

/// Cuts the columns into one band for each thread, with about equally many entries.
fn bands<'a, V>(
    extents: &[Extent],
    mut next: &'a mut [usize],
    mut row: &'a mut [u32],
    mut value: &'a mut [V],
    mut whole: &'a mut [V],
    par: Par,
) -> Vec<Band<'a, V>> {
    let threads = par.count();
    let share = (value.len() + whole.len()).div_ceil(threads);
    let mut bands = Vec::with_capacity(threads);
    let mut first = 0;
    while first < extents.len() {
        let (mut last, mut sparse, mut dense) = (first, 0, 0);
        while last < extents.len() && (last == first || bands.len() + 1 == threads || sparse + dense < share)
        {
            let e = extents[last];
            next[last - first] = if e.whole { dense | WHOLE } else { sparse };
            *(if e.whole { &mut dense } else { &mut sparse }) += e.len as usize;
            last += 1;
        }
        bands.push(Band {
            first: first as u32,
            next: next.split_off_mut(..last - first).unwrap_or_default(),
            row: row.split_off_mut(..sparse).unwrap_or_default(),
            value: value.split_off_mut(..sparse).unwrap_or_default(),
            whole: whole.split_off_mut(..dense).unwrap_or_default(),
        });
        first = last;
    }
    bands
}
