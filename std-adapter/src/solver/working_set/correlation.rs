//! The products `a_jᵀθ` of all columns with a moving dual point, computed only where they can matter.
//!
//! If `c_j = a_jᵀθ` was right when `θ` had travelled `D_j`, then `|a_jᵀθ'| ≤ |c_j| + ‖a_j‖(D' - D_j)` once it has travelled `D'` (Cauchy-Schwarz and
//! the triangle inequality). As long as that is below what the penalty covers, the column is no candidate, cannot limit the scaling of the dual point,
//! and is not looked at. Near the optimum `θ` hardly moves, and almost no column is.

use crate::data::matrix::Matrix;
use crate::par::{Kernel, Par, vectorized};
use crate::regress::problem::Problem;
use gibbsite_core::loss::Loss;
use gibbsite_core::math::Real;
use gibbsite_core::penalty::Penalty;
use std::ops::Range;

#[derive(Debug)]
pub(super) struct Correlations {
    /// `a_jᵀθ` when last computed.
    pub(super) value: Vec<f64>,
    /// `‖a_j‖`.
    pub(super) norm: Vec<f64>,
    travelled_at: Vec<f64>,
    travelled: f64,
    /// The dual point of the last pass.
    theta: Vec<f64>,
    /// Columns that may be in the solution at the current `λ`, ascending.
    alive: Vec<u32>,
    /// Those whose product is right for `theta`, ascending.
    pub(super) fresh: Vec<u32>,
}

/// Columns a thread takes at a time.
const STRIP: usize = 512;

/// Products and norms.
struct FirstStrip<'a, V> {
    matrix: &'a Matrix<V>,
    strip: Range<usize>,
    theta: &'a [f64],
}

impl<V: Real> Kernel for FirstStrip<'_, V> {
    type Output = Vec<(f64, f64)>;
    #[inline(always)]
    fn run(self) -> Vec<(f64, f64)> {
        let Self { matrix, strip, theta } = self;
        let pair = |j| {
            let column = matrix.column(j);
            (column.dot(theta), column.norm2::<f64>().sqrt())
        };
        strip.map(pair).collect()
    }
}

/// Products.
struct LaterStrip<'a, V> {
    matrix: &'a Matrix<V>,
    strip: &'a [u32],
    theta: &'a [f64],
}

impl<V: Real> Kernel for LaterStrip<'_, V> {
    type Output = Vec<f64>;
    #[inline(always)]
    fn run(self) -> Vec<f64> {
        let Self { matrix, strip, theta } = self;
        strip.iter().map(|&j| matrix.column(j as usize).dot(theta)).collect()
    }
}

impl Correlations {
    /// At a first dual point: all products and norms.
    pub(super) fn new<L: Loss, V: Real>(problem: &Problem<'_, L, V>, theta: &[f64], par: Par) -> Self {
        let d = problem.matrix.columns();
        let strips = par.map((0..d).step_by(STRIP).collect(), |first| {
            vectorized(FirstStrip { matrix: problem.matrix, strip: first..(first + STRIP).min(d), theta })
        });
        let (value, norm) = strips.into_iter().flatten().unzip();
        Self {
            value,
            norm,
            travelled_at: vec![0.0; d],
            travelled: 0.0,
            theta: theta.to_vec(),
            alive: (0..d as u32).collect(),
            fresh: (0..d as u32).collect(),
        }
    }

    /// Every column is a candidate again: the penalty has changed.
    pub(super) fn revive(&mut self) {
        let d = self.value.len() as u32;
        self.alive.clear();
        self.alive.extend(0..d);
    }

    /// Moves to another dual point. Afterwards `fresh` lists the columns whose products are exact; all others are covered by
    /// their penalty. Returns the matrix entries visited.
    pub(super) fn update<L: Loss, V: Real>(
        &mut self,
        problem: &Problem<'_, L, V>,
        theta: &[f64],
        par: Par,
    ) -> u64 {
        let moved2: f64 = self.theta.iter().zip(theta).map(|(a, b)| (a - b) * (a - b)).sum();
        // Rounding of the sum and of the products themselves.
        self.travelled += moved2.sqrt() * (1.0 + 1e-10);
        self.theta.clear();
        self.theta.extend_from_slice(theta);
        let mut wanted = std::mem::take(&mut self.fresh);
        wanted.clear();
        wanted
            .extend(self.alive.iter().filter(|&&j| self.may_matter(problem.penalty(j as usize), j as usize)));
        let strips = par.map(wanted.chunks(STRIP).collect(), |strip| {
            vectorized(LaterStrip { matrix: problem.matrix, strip, theta })
        });
        let mut entries = 0;
        for (&j, c) in wanted.iter().zip(strips.into_iter().flatten()) {
            self.value[j as usize] = c;
            self.travelled_at[j as usize] = self.travelled;
            entries += problem.matrix.column(j as usize).len() as u64;
        }
        self.fresh = wanted;
        entries
    }

    #[inline]
    fn upper(&self, positive: bool, j: usize) -> f64 {
        let slack = self.norm[j] * (self.travelled - self.travelled_at[j]);
        (if positive { self.value[j] } else { self.value[j].abs() }) + slack
    }

    #[inline]
    fn may_matter(&self, penalty: Penalty<f64>, j: usize) -> bool {
        self.upper(penalty.positive, j) >= penalty.l1 * (1.0 - 1e-9)
    }

    /// Gap-safe screening (Ndiaye et al. 2017): the optimal dual point lies within `radius` of `scale·θ`, so a column that is
    /// covered by its penalty in that whole ball has weight 0 at the optimum and is never looked at again at this `λ`.
    pub(super) fn screen<L: Loss, V: Real>(&mut self, problem: &Problem<'_, L, V>, scale: f64, radius: f64) {
        let mut alive = std::mem::take(&mut self.alive);
        alive.retain(|&j| {
            let (j, penalty) = (j as usize, problem.penalty(j as usize));
            scale * self.upper(penalty.positive, j) + radius * self.norm[j] >= penalty.l1 * (1.0 - 1e-9)
        });
        self.alive = alive;
    }
}
