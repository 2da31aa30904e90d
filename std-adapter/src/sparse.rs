//! Sparse matrices, column after column.

use crate::linalg::Dense;

/// A matrix of which only the entries that are not 0 are kept: for each column their rows, ascending, and their values.
///
/// ```
/// use gibbsite::sparse::Sparse;
/// let a = Sparse::from_entries(3, 2, vec![(2, 0, 5.0), (0, 0, 1.0), (1, 1, -2.0)]).unwrap();
/// assert_eq!((a.get(2, 0), a.get(1, 0), a.nonzeros()), (5.0, 0.0, 3));
/// assert_eq!(a.col(0), (&[0, 2][..], &[1.0, 5.0][..]));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Sparse {
    rows: usize,
    starts: Vec<usize>,
    index: Vec<u32>,
    values: Vec<f64>,
}

impl Sparse {
    /// From `(row, column, value)` in any order; zeros are left out. `None` if an entry lies outside, or stands twice.
    pub fn from_entries(rows: usize, cols: usize, mut entries: Vec<(u32, u32, f64)>) -> Option<Self> {
        entries.sort_unstable_by_key(|&(i, j, _)| (j, i));
        let twice = entries.windows(2).any(|w| (w[0].0, w[0].1) == (w[1].0, w[1].1));
        let outside = entries.iter().any(|&(i, j, _)| i as usize >= rows || j as usize >= cols);
        if twice || outside {
            return None;
        }
        entries.retain(|e| e.2 != 0.0);
        let mut starts = vec![0usize; cols + 1];
        entries.iter().for_each(|&(_, j, _)| starts[j as usize + 1] += 1);
        (0..cols).for_each(|j| starts[j + 1] += starts[j]);
        let (index, values) = entries.into_iter().map(|(i, _, v)| (i, v)).unzip();
        Some(Self { rows, starts, index, values })
    }

    /// The entries of a dense matrix that are not 0.
    pub fn from_dense(matrix: &Dense) -> Self {
        let (mut starts, mut index, mut values) = (vec![0], Vec::new(), Vec::new());
        for j in 0..matrix.cols() {
            for (i, &v) in matrix.col(j).iter().enumerate().filter(|(_, v)| **v != 0.0) {
                index.push(i as u32);
                values.push(v);
            }
            starts.push(index.len());
        }
        Self { rows: matrix.rows(), starts, index, values }
    }

    /// With its zeros.
    pub fn to_dense(&self) -> Dense {
        let mut out = Dense::zeros(self.rows, self.cols());
        self.entries().for_each(|(i, j, v)| out.set(i, j, v));
        out
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns.
    pub fn cols(&self) -> usize {
        self.starts.len() - 1
    }

    /// Entries that are not 0.
    pub fn nonzeros(&self) -> usize {
        self.values.len()
    }

    /// Rows and values of a column.
    pub fn col(&self, j: usize) -> (&[u32], &[f64]) {
        let range = self.starts[j]..self.starts[j + 1];
        (&self.index[range.clone()], &self.values[range])
    }

    /// An entry.
    pub fn get(&self, row: usize, col: usize) -> f64 {
        let (rows, values) = self.col(col);
        rows.binary_search(&(row as u32)).map_or(0.0, |k| values[k])
    }

    /// Row, column and value of each entry, column after column.
    pub fn entries(&self) -> impl Iterator<Item = (usize, usize, f64)> + '_ {
        (0..self.cols()).flat_map(move |j| {
            let (rows, values) = self.col(j);
            rows.iter().zip(values).map(move |(&i, &v)| (i as usize, j, v))
        })
    }

    /// Each entry becomes `f(row, column, value)`.
    pub(crate) fn change(&mut self, f: impl Fn(usize, usize, f64) -> f64) {
        for j in 0..self.cols() {
            for k in self.starts[j]..self.starts[j + 1] {
                self.values[k] = f(self.index[k] as usize, j, self.values[k]);
            }
        }
    }
}
