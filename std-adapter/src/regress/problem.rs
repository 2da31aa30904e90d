//! The problem that every sparse regression solver here minimises.

use crate::data::matrix::Matrix;
use crate::par::{Kernel, Par, vectorized};
use gibbsite_core::loss::Loss;
use gibbsite_core::math::Real;
use gibbsite_core::penalty::Penalty;

/// `F(x, b) = Σ_i L(a_iᵀx + b, y_i) + Σ_j (λ w_j |x_j| + ½ μ v_j x_j²)` (eqs. 4.2, 4.3), `b = 0` without intercept and
/// `x ≥ 0` if `positive`. The weights `w` and `v` are 1 if not given.
///
/// Standardising needs no other matrix: columns scaled by `1/s_j` are the raw ones with `w_j = s_j`, `v_j = s_j²` (Thesis 4.2,
/// footnote 1).
#[derive(Clone, Copy, Debug)]
pub struct Problem<'a, L, V = f64> {
    /// `A`, one row a sample.
    pub matrix: &'a Matrix<V>,
    /// `y`; ±1 for the logistic loss.
    pub target: &'a [f64],
    /// `L`.
    pub loss: L,
    /// `λ`.
    pub lambda: f64,
    /// `μ`.
    pub l2: f64,
    /// `w`, at least 0; one for each column.
    pub l1_weights: Option<&'a [f64]>,
    /// `v`, at least 0; one for each column.
    pub l2_weights: Option<&'a [f64]>,
    /// Whether weights must not be negative (the intercept may).
    pub positive: bool,
    /// Whether `b` is fitted.
    pub intercept: bool,
}

impl<'a, L: Loss, V: Real> Problem<'a, L, V> {
    /// The plain problem: raw columns, no intercept.
    ///
    /// ```
    /// use gibbsite::{data::matrix::Matrix, regress::problem::Problem};
    /// use gibbsite_core::loss::Squared;
    /// let m = Matrix::<f64>::from_rows(1, &[&[(0, 2.0)], &[(0, 1.0)]]);
    /// let p = Problem::new(&m, &[1.0, 1.0], Squared, 0.5);
    /// assert_eq!(p.objective(&[1.0], &[2.0, 1.0]), 1.0);
    /// ```
    ///
    /// # Panics
    /// If there is not one target for each row.
    pub fn new(matrix: &'a Matrix<V>, target: &'a [f64], loss: L, lambda: f64) -> Self {
        assert_eq!(matrix.rows(), target.len(), "one target for each row");
        Self {
            matrix,
            target,
            loss,
            lambda,
            l2: 0.0,
            l1_weights: None,
            l2_weights: None,
            positive: false,
            intercept: false,
        }
    }

    /// The penalty of `x_j`.
    #[inline(always)]
    pub fn penalty(&self, j: usize) -> Penalty<f64> {
        Penalty {
            l1: self.l1_weights.map_or(self.lambda, |w| self.lambda * w[j]),
            l2: self.l2_weights.map_or(self.l2, |v| self.l2 * v[j]),
            positive: self.positive,
        }
    }

    /// Columns without any penalty that the dual point must be orthogonal to; where weights must not be negative, only those that are not 0 at `x`,
    /// since `a_jᵀθ ≤ 0` suffices for the others.
    pub fn free_columns(&self, x: &[f64]) -> Vec<usize> {
        let free = |&j: &usize| {
            let penalty = self.penalty(j);
            let held = self.positive && x[j] == 0.0;
            penalty.l1 == 0.0 && penalty.l2 == 0.0 && !held && !self.matrix.column(j).is_empty()
        };
        if self.l1_weights.is_none() && self.lambda > 0.0 {
            return Vec::new();
        }
        (0..self.matrix.columns()).filter(free).collect()
    }

    /// `Σ_i L(z_i, y_i)`.
    pub fn loss_at(&self, z: &[f64], par: Par) -> f64 {
        let strips = z.chunks(ROWS).zip(self.target.chunks(ROWS));
        par.map(strips.collect(), |(z, y)| vectorized(Total { loss: self.loss, z, y })).iter().sum()
    }

    /// `F` at `x`, where `z = Ax + b`.
    pub fn objective(&self, x: &[f64], z: &[f64]) -> f64 {
        self.loss_at(z, Par::Seq) + self.cost(x)
    }

    /// What the penalties cost at `x`.
    pub(crate) fn cost(&self, x: &[f64]) -> f64 {
        x.iter().enumerate().filter(|(_, x)| **x != 0.0).map(|(j, &x)| self.penalty(j).value(x)).sum()
    }

    /// `F(0, 0)`: what tolerances are relative to.
    pub fn objective_at_zero(&self) -> f64 {
        self.target.iter().map(|&y| self.loss.value(0.0, y)).sum()
    }

    /// `Ax + b`.
    pub fn predictions(&self, x: &[f64], intercept: f64) -> Vec<f64> {
        let mut z = self.matrix.product(x);
        if self.intercept {
            z.iter_mut().for_each(|z| *z += intercept);
        }
        z
    }

    /// `u_i = -∂L/∂z_i`: the residual `y - z` for the squared loss; the dual point before scaling.
    pub fn residual(&self, z: &[f64]) -> Vec<f64> {
        let mut u = Vec::new();
        self.residual_to(z, &mut u, Par::Seq);
        u
    }

    /// [`residual`](Self::residual), into memory that is there already.
    pub(crate) fn residual_to(&self, z: &[f64], u: &mut Vec<f64>, par: Par) {
        u.resize(z.len(), 0.0);
        let strips = z.chunks(ROWS).zip(self.target.chunks(ROWS)).zip(u.chunks_mut(ROWS));
        par.map(strips.collect(), |((z, y), u)| vectorized(Residuals { loss: self.loss, z, y, u }));
    }
}

/// Rows that a thread takes at a time, where there is one number a row; sums are cut there on any number of threads.
pub(crate) const ROWS: usize = 2048;

struct Total<'a, L> {
    loss: L,
    z: &'a [f64],
    y: &'a [f64],
}

impl<L: Loss> Kernel for Total<'_, L> {
    type Output = f64;
    #[inline(always)]
    fn run(self) -> f64 {
        let Self { loss, z, y } = self;
        loss.total(z, y)
    }
}

struct Residuals<'a, L> {
    loss: L,
    z: &'a [f64],
    y: &'a [f64],
    u: &'a mut [f64],
}

impl<L: Loss> Kernel for Residuals<'_, L> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Self { loss, z, y, u } = self;
        loss.residuals(z, y, u);
    }
}

/// Weights found by a solver.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weights {
    /// `x`, one for each column.
    pub x: Vec<f64>,
    /// `b`; 0 if it was not asked for.
    pub intercept: f64,
}

impl Weights {
    /// All zero.
    pub fn zero(columns: usize) -> Self {
        Self { x: vec![0.0; columns], intercept: 0.0 }
    }

    /// How many of `x` are not zero.
    pub fn nonzeros(&self) -> usize {
        self.x.iter().filter(|&&x| x != 0.0).count()
    }
}

/// The weights of a fit that are not zero: a path of a hundred fits takes no more memory than its data.
///
/// ```
/// use gibbsite::regress::problem::{SparseWeights, Weights};
/// let sparse = SparseWeights::from(&Weights { x: vec![0.0, 2.5, 0.0], intercept: 1.0 });
/// assert_eq!((sparse.get(1), sparse.get(2), sparse.nonzeros()), (2.5, 0.0, 1));
/// assert_eq!(sparse.dense(), [0.0, 2.5, 0.0]);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SparseWeights {
    columns: usize,
    /// Columns ascending.
    entries: Vec<(u32, f64)>,
    /// `b`; 0 if it was not asked for.
    pub intercept: f64,
}

impl SparseWeights {
    /// How many are not zero.
    pub fn nonzeros(&self) -> usize {
        self.entries.len()
    }

    /// Columns and weights that are not zero, columns ascending.
    pub fn iter(&self) -> impl Iterator<Item = (usize, f64)> + Clone {
        self.entries.iter().map(|&(j, x)| (j as usize, x))
    }

    /// The weight of column `j`.
    pub fn get(&self, j: usize) -> f64 {
        self.entries.binary_search_by_key(&j, |e| e.0 as usize).map_or(0.0, |at| self.entries[at].1)
    }

    /// One weight for each column.
    pub fn dense(&self) -> Vec<f64> {
        let mut x = vec![0.0; self.columns];
        self.iter().for_each(|(j, value)| x[j] = value);
        x
    }
}

impl From<&Weights> for SparseWeights {
    fn from(weights: &Weights) -> Self {
        let entries = (0..).zip(&weights.x).filter(|(_, x)| **x != 0.0).map(|(j, &x)| (j, x)).collect();
        Self { columns: weights.x.len(), entries, intercept: weights.intercept }
    }
}
