//! Dense linear algebra, and orders of elimination for sparse: the only file that names faer.
//!
//! Results do not depend on the number of threads: products are cut into blocks of columns by their own shape, and each block is
//! computed by one thread with the same instructions as ever.

use crate::par::Par;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::matmul::matmul;
use faer::linalg::solvers::{DenseSolveCore, Llt, Solve};
use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place};
use faer::sparse::SymbolicSparseColMatRef;
use faer::sparse::linalg::amd;
use faer::{Accum, MatMut, MatRef, Side};
use gibbsite_core::math::Real;

/// A matrix, column after column.
///
/// ```
/// use gibbsite::linalg::Dense;
/// let a = Dense::from_fn(2, 3, |i, j| (10 * i + j) as f64);
/// assert_eq!((a.get(1, 2), a.col(1)), (12.0, &[1.0, 11.0][..]));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Dense {
    rows: usize,
    cols: usize,
    values: Vec<f64>,
}

impl Dense {
    /// All zeros.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Self { rows, cols, values: vec![0.0; rows * cols] }
    }

    /// Entry by entry.
    pub fn from_fn(rows: usize, cols: usize, f: impl Fn(usize, usize) -> f64) -> Self {
        let f = &f;
        let values = (0..cols).flat_map(|j| (0..rows).map(move |i| f(i, j))).collect();
        Self { rows, cols, values }
    }

    /// From columns one after the other; `None` if their lengths do not fit.
    pub fn from_columns(rows: usize, cols: usize, values: Vec<f64>) -> Option<Self> {
        (rows.checked_mul(cols)? == values.len()).then_some(Self { rows, cols, values })
    }

    /// Ones on the diagonal.
    pub fn identity(n: usize) -> Self {
        Self::from_fn(n, n, |i, j| f64::from(u8::from(i == j)))
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// All entries, column after column.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// All entries, to be changed.
    pub fn values_mut(&mut self) -> &mut [f64] {
        &mut self.values
    }

    /// An entry.
    #[inline(always)]
    pub fn get(&self, row: usize, col: usize) -> f64 {
        self.values[row + col * self.rows]
    }

    /// Changes an entry.
    #[inline(always)]
    pub fn set(&mut self, row: usize, col: usize, value: f64) {
        self.values[row + col * self.rows] = value;
    }

    /// Adds to an entry.
    #[inline(always)]
    pub fn add(&mut self, row: usize, col: usize, value: f64) {
        self.values[row + col * self.rows] += value;
    }

    /// A column.
    #[inline(always)]
    pub fn col(&self, j: usize) -> &[f64] {
        &self.values[j * self.rows..(j + 1) * self.rows]
    }

    /// A column, to be changed.
    #[inline(always)]
    pub fn col_mut(&mut self, j: usize) -> &mut [f64] {
        &mut self.values[j * self.rows..(j + 1) * self.rows]
    }

    /// Rows become columns.
    #[must_use]
    pub fn transposed(&self) -> Self {
        Self::from_fn(self.cols, self.rows, |i, j| self.get(j, i))
    }

    /// Some columns, in this order.
    #[must_use]
    pub fn select_columns(&self, which: &[usize]) -> Self {
        let values = which.iter().flat_map(|&j| self.col(j).iter().copied()).collect();
        Self { rows: self.rows, cols: which.len(), values }
    }

    /// Some rows, in this order.
    #[must_use]
    pub fn select_rows(&self, which: &[usize]) -> Self {
        Self::from_fn(which.len(), self.cols, |i, j| self.get(which[i], j))
    }

    /// `Σ a_ij b_ij`.
    pub fn dot(&self, other: &Self) -> f64 {
        self.values.iter().zip(&other.values).map(|(a, b)| a * b).sum()
    }

    fn view(&self) -> MatRef<'_, f64> {
        MatRef::from_column_major_slice(&self.values, self.rows, self.cols)
    }
}

/// How many columns of a product are computed at a time: a matter of its shape alone.
fn block_width(rows: usize, inner: usize, cols: usize) -> usize {
    let work = rows.saturating_mul(inner).saturating_mul(cols);
    let parts = cols.div_ceil(128).max((work / 2_000_000).min(8));
    cols.div_ceil(parts.max(1)).max(1)
}

fn blocks<T: Real + faer::traits::ComplexField + faer::traits::Conjugate<Canonical = T>>(
    par: Par,
    left: MatRef<'_, T>,
    right: MatRef<'_, T>,
    out: &mut [T],
) {
    let (rows, inner, cols) = (left.nrows(), left.ncols(), right.ncols());
    if rows == 0 || cols == 0 {
        return;
    }
    let width = block_width(rows, inner, cols);
    let items: Vec<(usize, &mut [T])> = out.chunks_mut(width * rows).enumerate().collect();
    par.map(items, |(k, chunk)| {
        let wide = chunk.len() / rows;
        let part = right.subcols(k * width, wide);
        let target = MatMut::from_column_major_slice_mut(chunk, rows, wide);
        matmul(target, Accum::Replace, left, part, T::from_f64(1.0), faer::Par::Seq);
    });
}

/// A matrix in single precision: half as much to read, for what is judged in double precision afterwards.
#[derive(Clone, Debug)]
pub(crate) struct Single {
    rows: usize,
    cols: usize,
    values: Vec<f32>,
}

impl From<&Dense> for Single {
    fn from(a: &Dense) -> Self {
        Self { rows: a.rows, cols: a.cols, values: a.values.iter().map(|v| *v as f32).collect() }
    }
}

/// What code for either precision needs of a matrix.
pub(crate) trait Columns: Sync {
    /// What an entry is.
    type Number: Real + Send + Sync;
    fn zeros(rows: usize, cols: usize) -> Self;
    fn col(&self, j: usize) -> &[Self::Number];
    fn values_mut(&mut self) -> &mut [Self::Number];
    /// `A B`; inside [`Par::run`].
    fn times(&self, par: Par, b: &Self) -> Self;
    /// Rows become columns.
    fn turned(&self) -> Self;
}

impl Columns for Dense {
    type Number = f64;

    fn zeros(rows: usize, cols: usize) -> Self {
        Self::zeros(rows, cols)
    }

    #[inline(always)]
    fn col(&self, j: usize) -> &[f64] {
        self.col(j)
    }

    fn values_mut(&mut self) -> &mut [f64] {
        &mut self.values
    }

    fn times(&self, par: Par, b: &Self) -> Self {
        product(par, self, b)
    }

    fn turned(&self) -> Self {
        self.transposed()
    }
}

impl Columns for Single {
    type Number = f32;

    fn zeros(rows: usize, cols: usize) -> Self {
        Self { rows, cols, values: vec![0.0; rows * cols] }
    }

    #[inline(always)]
    fn col(&self, j: usize) -> &[f32] {
        &self.values[j * self.rows..(j + 1) * self.rows]
    }

    fn values_mut(&mut self) -> &mut [f32] {
        &mut self.values
    }

    fn times(&self, par: Par, b: &Self) -> Self {
        let mut out = Self::zeros(self.rows, b.cols);
        let a = MatRef::from_column_major_slice(&self.values, self.rows, self.cols);
        let b = MatRef::from_column_major_slice(&b.values, b.rows, b.cols);
        blocks(par, a, b, &mut out.values);
        out
    }

    fn turned(&self) -> Self {
        let (rows, cols) = (self.rows, self.cols);
        let values = (0..rows).flat_map(|i| (0..cols).map(move |j| i + j * rows)).map(|k| self.values[k]);
        Self { rows: cols, cols: rows, values: values.collect() }
    }
}

/// `A B`; inside [`Par::run`].
///
/// ```
/// use gibbsite::{linalg::{Dense, product}, par::Par};
/// let a = Dense::from_fn(2, 2, |i, j| (i + 2 * j) as f64);
/// assert_eq!(product(Par::Seq, &a, &a).col(0), [2.0, 3.0]);
/// ```
pub fn product(par: Par, a: &Dense, b: &Dense) -> Dense {
    let mut out = Dense::zeros(a.rows, b.cols);
    blocks(par, a.view(), b.view(), &mut out.values);
    out
}

/// `A B_j` for columns `j` in a range, into `out`, which has as many columns.
pub(crate) fn product_of_columns(
    par: Par,
    a: &Dense,
    b: &Dense,
    columns: std::ops::Range<usize>,
    out: &mut [f64],
) {
    let part = b.view().subcols(columns.start, columns.len());
    blocks(par, a.view(), part, &mut out[..a.rows * columns.len()]);
}

/// `Aᵀ B`; inside [`Par::run`].
pub fn transposed_product(par: Par, a: &Dense, b: &Dense) -> Dense {
    let mut out = Dense::zeros(a.cols, b.cols);
    blocks(par, a.view().transpose(), b.view(), &mut out.values);
    out
}

/// Some rows and columns of a matrix: columns of `rows` numbers, each `stride` after the one before.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) values: &'a [f64],
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) stride: usize,
}

impl<'a> Part<'a> {
    pub(crate) fn of(matrix: &'a Dense, rows: std::ops::Range<usize>, cols: std::ops::Range<usize>) -> Self {
        let stride = matrix.rows.max(1);
        let values = if rows.is_empty() || cols.is_empty() {
            &[]
        } else {
            &matrix.values[cols.start * stride + rows.start..(cols.end - 1) * stride + rows.end]
        };
        Self { values, rows: rows.len(), cols: cols.len(), stride }
    }

    /// A column.
    #[inline(always)]
    pub(crate) fn col(&self, j: usize) -> &'a [f64] {
        &self.values[j * self.stride..][..self.rows]
    }

    /// Some of its columns.
    pub(crate) fn columns(&self, which: std::ops::Range<usize>) -> Self {
        let values = if self.rows == 0 || which.is_empty() {
            &[]
        } else {
            &self.values[which.start * self.stride..(which.end - 1) * self.stride + self.rows]
        };
        Self { values, cols: which.len(), ..*self }
    }

    fn view(&self) -> MatRef<'a, f64> {
        MatRef::from_column_major_slice_with_stride(self.values, self.rows, self.cols, self.stride)
    }
}

/// `out += scale · Aᵀ B`; inside [`Par::run`].
pub(crate) fn add_transposed_product(par: Par, scale: f64, a: Part<'_>, b: Part<'_>, out: &mut [f64]) {
    if a.rows == 0 || a.cols == 0 || b.cols == 0 {
        return;
    }
    let width = block_width(a.cols, a.rows, b.cols);
    let items: Vec<(usize, &mut [f64])> =
        out[..a.cols * b.cols].chunks_mut(width * a.cols).enumerate().collect();
    par.map(items, |(k, chunk)| {
        let wide = chunk.len() / a.cols;
        let part = b.view().subcols(k * width, wide);
        let target = MatMut::from_column_major_slice_mut(chunk, a.cols, wide);
        matmul(target, Accum::Add, a.view().transpose(), part, scale, faer::Par::Seq);
    });
}

/// An order of elimination that keeps the factor of a symmetric matrix sparse (approximate minimum degree; Amestoy, Davis & Duff 1996): the row at each place. The matrix is given by the rows of the entries
/// of its upper triangle, column after column.
pub(crate) fn elimination_order(starts: &[u32], rows: &[u32]) -> Vec<u32> {
    let n = starts.len() - 1;
    let natural = || (0..n as u32).collect();
    // Ours are sorted and inside; a refusal would only cost sparsity.
    let pattern = SymbolicSparseColMatRef::new_checked(n, n, starts, None, rows);
    let mut memory = MemBuffer::new(amd::order_scratch::<u32>(n, rows.len()));
    let (mut order, mut place) = (vec![0; n], vec![0; n]);
    let found =
        amd::order(&mut order, &mut place, pattern, amd::Control::default(), MemStack::new(&mut memory));
    if found.is_ok() { order } else { natural() }
}

/// The upper triangle `R` of `A = QR`, with as many rows as `A` has rows or columns, whichever are fewer: `RᵀR = AᵀA`.
pub fn triangle(a: &Dense) -> Dense {
    let qr = a.view().qr();
    let r = qr.thin_R();
    Dense::from_fn(r.nrows(), r.ncols(), |i, j| if i <= j { r[(i, j)] } else { 0.0 })
}

/// `A = L Lᵀ` for a symmetric positive definite matrix.
#[derive(Clone, Debug)]
pub struct Cholesky(Llt<f64>);

impl Cholesky {
    /// Factorises; reads the lower triangle only. `None` if the matrix is not positive definite, or holds a NaN.
    ///
    /// ```
    /// use gibbsite::linalg::{Cholesky, Dense};
    /// let a = Dense::from_fn(2, 2, |i, j| if i == j { 2.0 } else { 1.0 });
    /// let factor = Cholesky::new(&a).unwrap();
    /// assert!((factor.log_det() - 3f64.ln()).abs() < 1e-14);
    /// assert!(Cholesky::new(&Dense::from_fn(2, 2, |_, _| 1.0)).is_none());
    /// ```
    pub fn new(a: &Dense) -> Option<Self> {
        let factor = Llt::new(a.view(), Side::Lower).ok()?;
        let l = factor.L();
        (0..a.rows).all(|i| l[(i, i)] > 0.0 && l[(i, i)].is_finite()).then_some(Self(factor))
    }

    /// `log |A|`.
    pub fn log_det(&self) -> f64 {
        let l = self.0.L();
        2.0 * (0..l.nrows()).map(|i| l[(i, i)].ln()).sum::<f64>()
    }

    /// Whether the pivots say that the matrix is singular to rounding.
    pub fn is_nearly_singular(&self) -> bool {
        let l = self.0.L();
        let pivots = (0..l.nrows()).map(|i| l[(i, i)] * l[(i, i)]);
        let (low, high) = pivots.fold((f64::INFINITY, 0.0f64), |(a, b), v| (a.min(v), b.max(v)));
        low <= 1e-13 * high * l.nrows() as f64
    }

    /// `A⁻¹`, exactly symmetric.
    pub fn inverse(&self) -> Dense {
        let inverse = self.0.inverse();
        Dense::from_fn(inverse.nrows(), inverse.ncols(), |i, j| inverse[(i.max(j), i.min(j))])
    }

    /// `B ← A⁻¹ B`.
    pub fn solve(&self, b: &mut Dense) {
        self.0.solve_in_place(MatMut::from_column_major_slice_mut(&mut b.values, b.rows, b.cols));
    }

    /// `B ← L⁻¹ B`.
    pub fn solve_lower(&self, b: &mut Dense) {
        let target = MatMut::from_column_major_slice_mut(&mut b.values, b.rows, b.cols);
        solve_lower_triangular_in_place(self.0.L(), target, faer::Par::Seq);
    }

    /// `B ← L⁻ᵀ B`: standard normal columns become normal ones with covariance `A⁻¹`.
    pub fn solve_upper(&self, b: &mut Dense) {
        let target = MatMut::from_column_major_slice_mut(&mut b.values, b.rows, b.cols);
        solve_upper_triangular_in_place(self.0.L().transpose(), target, faer::Par::Seq);
    }
}
