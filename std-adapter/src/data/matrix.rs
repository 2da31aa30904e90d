//! Design matrices: compressed columns, with columns that are mostly non-zero stored whole, and compressed rows.

use gibbsite_core::column::Column;
use gibbsite_core::math::Real;

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
#[derive(Clone, Debug)]
pub struct Matrix<V = f64> {
    rows: usize,
    nonzeros: usize,
    columns: Vec<Extent>,
    row: Vec<u32>,
    value: Vec<V>,
}

/// Where a column lies: its entries from `value` on; their rows from `row` on unless it is stored whole.
#[derive(Clone, Copy, Debug)]
struct Extent {
    value: usize,
    row: usize,
    len: u32,
    whole: bool,
}

/// Non-zeros row by row, as a reader finds them: the parts of a file in order.
#[derive(Clone, Debug, Default)]
pub struct RowChunk<V = f64> {
    /// Where each row ends in `column` and `value`.
    pub ends: Vec<usize>,
    /// Column of each entry, ascending within a row.
    pub column: Vec<u32>,
    /// The entries.
    pub value: Vec<V>,
}

impl<V: Real> Matrix<V> {
    /// Transposes rows into columns. Each chunk is freed as soon as it has been spread, so that both forms are never whole
    /// in memory at the same time as anything else. Entries beyond `columns` are left out.
    ///
    /// # Panics
    /// If there are 2³² rows or more.
    pub fn from_chunks(columns: usize, chunks: Vec<RowChunk<V>>) -> Self {
        let rows: usize = chunks.iter().map(|c| c.ends.len()).sum();
        assert!(u32::try_from(rows).is_ok(), "at most 2^32 - 1 rows, but there are {rows}");
        let mut count = vec![0u32; columns];
        for &c in chunks.iter().flat_map(|chunk| &chunk.column) {
            if let Some(n) = count.get_mut(c as usize) {
                *n += 1;
            }
        }
        let nonzeros = count.iter().map(|&n| n as usize).sum();
        let (mut values, mut sparse) = (0, 0);
        let extents: Vec<Extent> = count
            .iter()
            .map(|&n| {
                let whole = rows > 0 && n as usize * 2 >= rows;
                let len = if whole { rows as u32 } else { n };
                let extent = Extent { value: values, row: sparse, len, whole };
                values += len as usize;
                sparse += if whole { 0 } else { n as usize };
                extent
            })
            .collect();
        let mut row = vec![0u32; sparse];
        let mut value = vec![V::zero(); values];
        let mut filled = count;
        filled.fill(0);
        let mut first = 0;
        for chunk in chunks {
            let mut start = 0;
            for (k, &end) in chunk.ends.iter().enumerate() {
                let i = first + k;
                for (&c, &v) in chunk.column[start..end].iter().zip(&chunk.value[start..end]) {
                    let Some(extent) = extents.get(c as usize) else { continue };
                    if extent.whole {
                        value[extent.value + i] = v;
                    } else {
                        let at = filled[c as usize] as usize;
                        value[extent.value + at] = v;
                        row[extent.row + at] = i as u32;
                        filled[c as usize] += 1;
                    }
                }
                start = end;
            }
            first += chunk.ends.len();
        }
        Self { rows, nonzeros, columns: extents, row, value }
    }

    /// From rows of `(column, value)` pairs; for tests and examples.
    pub fn from_rows(columns: usize, rows: &[&[(u32, V)]]) -> Self {
        let mut chunk = RowChunk { ends: vec![], column: vec![], value: vec![] };
        for row in rows {
            chunk.column.extend(row.iter().map(|e| e.0));
            chunk.value.extend(row.iter().map(|e| e.1));
            chunk.ends.push(chunk.column.len());
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
        let Extent { value, row, len, whole } = self.columns[j];
        let values = &self.value[value..value + len as usize];
        if whole {
            Column::Dense(values)
        } else {
            Column::Sparse { rows: &self.row[row..row + len as usize], values }
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
        let nonzero = |j: usize| self.column(j).iter::<V>().filter(|&(_, v)| v != V::zero());
        let mut starts = vec![0usize; self.rows + 1];
        for j in 0..self.columns() {
            for (i, _) in nonzero(j) {
                starts[i + 1] += 1;
            }
        }
        for i in 0..self.rows {
            starts[i + 1] += starts[i];
        }
        let mut next = starts.clone();
        let mut column = vec![0u32; starts[self.rows]];
        let mut value = vec![V::zero(); starts[self.rows]];
        for j in 0..self.columns() {
            for (i, v) in nonzero(j) {
                column[next[i]] = j as u32;
                value[next[i]] = v;
                next[i] += 1;
            }
        }
        Rows { starts, column, value }
    }
}

/// A matrix by rows: for methods that look at one sample at a time.
#[derive(Clone, Debug)]
pub struct Rows<V = f64> {
    starts: Vec<usize>,
    column: Vec<u32>,
    value: Vec<V>,
}

impl<V: Real> Rows<V> {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Columns and values of row `i`, columns ascending.
    ///
    /// # Panics
    /// If there is no such row.
    #[inline]
    pub fn row(&self, i: usize) -> (&[u32], &[V]) {
        let range = self.starts[i]..self.starts[i + 1];
        (&self.column[range.clone()], &self.value[range])
    }
}
