//! Compressed rows: for methods that look at one sample at a time.

use crate::par::Par;
use gibbsite_core::column::Column;
use gibbsite_core::math::Real;

/// A matrix by rows, in stretches of rows that are made one by one: what one of them is made from and into stays in the cache, and
/// threads share them out.
///
/// ```
/// use gibbsite::data::matrix::Matrix;
/// let rows = Matrix::<f64>::from_rows(2, &[&[(0, 1.0)], &[(0, 3.0), (1, 2.0)]]).by_rows();
/// assert_eq!(rows.row(1), (&[0, 1][..], &[3.0, 2.0][..]));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Rows<V = f64> {
    rows: usize,
    stretches: Vec<Stretch<V>>,
}

/// Rows of a stretch; a power of two.
const STRETCH: usize = 2048;

#[derive(Clone, Debug, Default)]
struct Stretch<V> {
    starts: Vec<usize>,
    column: Vec<u32>,
    value: Vec<V>,
}

/// A column cut to a stretch of rows, and what to take from the numbers of its rows so that they count from the first.
fn cut<U>(column: Column<'_, U>, first: usize) -> (Column<'_, U>, usize) {
    let end = first + STRETCH;
    match column {
        Column::Dense(values) => (Column::Dense(&values[first..end.min(values.len())]), 0),
        Column::Sparse { rows, values } => {
            let from = rows.partition_point(|&i| (i as usize) < first);
            let len = rows[from..].partition_point(|&i| (i as usize) < end);
            (Column::Sparse { rows: &rows[from..from + len], values: &values[from..from + len] }, first)
        }
    }
}

impl<V: Real> Stretch<V> {
    fn refill<U: Real>(&mut self, first: usize, rows: usize, columns: &[(u32, Column<'_, U>)]) {
        let Self { starts, column, value } = self;
        let cuts = || columns.iter().map(|&(j, column)| (j, cut(column, first)));
        // First how many there are in each row, two places on; then where each begins, one place on, which moves to where it ends.
        starts.clear();
        starts.resize(rows + 2, 0);
        for (_, (column, shift)) in cuts() {
            for (i, v) in column.iter::<V>() {
                starts[i - shift + 2] += usize::from(v != V::zero());
            }
        }
        for i in 2..rows + 2 {
            starts[i] += starts[i - 1];
        }
        let all = starts[rows + 1];
        column.resize(all, 0);
        value.resize(all, V::zero());
        for (j, (entries, shift)) in cuts() {
            for (i, v) in entries.iter::<V>().filter(|&(_, v)| v != V::zero()) {
                let at = starts[i - shift + 1];
                starts[i - shift + 1] = at + 1;
                column[at] = j;
                value[at] = v;
            }
        }
        starts.truncate(rows + 1);
    }
}

impl<V: Real> Rows<V> {
    /// Numbered columns with so many rows, without entries that are zero, in memory that is there already. Columns of a row are in the order
    /// in which they come; rows of a column must ascend.
    pub(crate) fn refill<'a, U: Real + 'a>(
        &mut self,
        rows: usize,
        columns: impl Iterator<Item = (u32, Column<'a, U>)>,
        par: Par,
    ) {
        let columns: Vec<_> = columns.collect();
        self.rows = rows;
        self.stretches.resize_with(rows.div_ceil(STRETCH), Stretch::default);
        let work: Vec<_> = (0..rows).step_by(STRETCH).zip(&mut self.stretches).collect();
        par.map(work, |(first, stretch)| stretch.refill(first, STRETCH.min(rows - first), &columns));
    }

    /// Entries that are not zero.
    pub(crate) fn nonzeros(&self) -> usize {
        self.stretches.iter().map(|s| s.value.len()).sum()
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns and values of row `i`, columns ascending.
    ///
    /// # Panics
    /// If there is no such row.
    #[inline]
    pub fn row(&self, i: usize) -> (&[u32], &[V]) {
        let Stretch { starts, column, value } = &self.stretches[i / STRETCH];
        let range = starts[i % STRETCH]..starts[i % STRETCH + 1];
        (&column[range.clone()], &value[range])
    }
}
