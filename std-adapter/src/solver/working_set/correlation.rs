//! The products `a_jᵀθ` of all columns with a moving dual point, computed only where they can matter.
//!
//! If `c_j = a_jᵀθ` was right when `θ` had travelled `D_j`, then `|a_jᵀθ'| ≤ |c_j| + ‖a_j‖(D' - D_j)` once it has travelled `D'` (Cauchy-Schwarz and
//! the triangle inequality). As long as that is below what the penalty covers, the column is no candidate, cannot limit the scaling of the dual point,
//! and is not looked at. Near the optimum `θ` hardly moves, and almost no column is.
//!
//! With `due_j = D_j - |c_j|/‖a_j‖` and `share_j = w_j/‖a_j‖` the test is `due_j + λ·share_j ≤ D'`: one multiplication and one comparison a
//! column, for any `λ`.

use crate::data::matrix::Matrix;
use crate::par::{Kernel, Par, vectorized};
use crate::regress::problem::Problem;
use gibbsite_core::lanes::sum_pairs;
use gibbsite_core::loss::Loss;
use gibbsite_core::math::Real;

#[derive(Debug)]
pub(super) struct Correlations {
    /// `a_jᵀθ` when last computed.
    pub(super) value: Vec<f64>,
    /// `‖a_j‖`.
    pub(super) norm: Vec<f64>,
    /// Never, as an infinity, for columns that are known to be zero at the current `λ`.
    due: Vec<f64>,
    share: Vec<f64>,
    /// Columns that are known to be zero at the current `λ`, with what was due for them.
    dropped: Vec<(u32, f64)>,
    travelled: f64,
    /// The dual point of the last pass.
    pub(super) theta: Vec<f64>,
    /// Columns whose product is right for `theta`, ascending.
    pub(super) fresh: Vec<u32>,
}

/// Columns a thread takes at a time.
const STRIP: usize = 512;
/// Columns that are compared at once.
const GLANCE: usize = 16;
/// What rounding may hide of a penalty.
const SLACK: f64 = 1e-9;

/// Products and norms of the columns from `first` on.
struct FirstStrip<'a, V> {
    matrix: &'a Matrix<V>,
    first: usize,
    theta: &'a [f64],
    value: &'a mut [f64],
    norm: &'a mut [f64],
}

impl<V: Real> Kernel for FirstStrip<'_, V> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Self { matrix, first, theta, value, norm } = self;
        for (k, (value, norm)) in value.iter_mut().zip(norm).enumerate() {
            let column = matrix.column(first + k);
            *value = column.dot(theta);
            *norm = column.norm2::<f64>().sqrt();
        }
    }
}

/// Brings up to date what is due of the columns from `first` on.
struct LaterStrip<'a, V> {
    matrix: &'a Matrix<V>,
    positive: bool,
    lambda: f64,
    theta: &'a [f64],
    travelled: f64,
    first: usize,
    value: &'a mut [f64],
    due: &'a mut [f64],
    norm: &'a [f64],
    share: &'a [f64],
}

impl<V: Real> Kernel for LaterStrip<'_, V> {
    /// Columns that were due, and their entries.
    type Output = (Vec<u32>, u64);
    #[inline(always)]
    fn run(self) -> (Vec<u32>, u64) {
        let Self { matrix, positive, lambda, theta, travelled, first, value, due, norm, share } = self;
        let now = travelled * (1.0 + 1e-14);
        let is_due = |due: f64, share: f64| due + lambda * share <= now;
        let (mut fresh, mut entries) = (Vec::new(), 0);
        for k in (0..due.len()).step_by(GLANCE) {
            let glance = k..due.len().min(k + GLANCE);
            let pairs = due[glance.clone()].iter().zip(&share[glance.clone()]);
            // Without a branch, so that it is one comparison for several columns.
            if !pairs.fold(false, |any, (&d, &s)| any | is_due(d, s)) {
                continue;
            }
            for k in glance {
                if is_due(due[k], share[k]) {
                    let column = matrix.column(first + k);
                    value[k] = column.dot(theta);
                    due[k] = next_due(positive, travelled, value[k], norm[k]);
                    entries += column.len() as u64;
                    fresh.push((first + k) as u32);
                }
            }
        }
        (fresh, entries)
    }
}

/// `D - |c|/‖a‖`.
#[inline(always)]
fn next_due(positive: bool, travelled: f64, value: f64, norm: f64) -> f64 {
    let size = if positive { value } else { value.abs() };
    // An empty column never is.
    if norm > 0.0 { travelled - size / norm } else { f64::INFINITY }
}

impl Correlations {
    /// At a first dual point: all products and norms.
    pub(super) fn new<L: Loss, V: Real>(problem: &Problem<'_, L, V>, theta: &[f64], par: Par) -> Self {
        let d = problem.matrix.columns();
        let (mut value, mut norm) = (vec![0.0; d], vec![0.0; d]);
        let strips = (0..d).step_by(STRIP).zip(value.chunks_mut(STRIP).zip(norm.chunks_mut(STRIP)));
        par.map(strips.collect(), |(first, (value, norm))| {
            vectorized(FirstStrip { matrix: problem.matrix, first, theta, value, norm })
        });
        let share =
            (0..d).map(|j| (1.0 - SLACK) * problem.l1_weights.map_or(1.0, |w| w[j]) / norm[j]).collect();
        let due = value.iter().zip(&norm).map(|(&c, &norm)| next_due(problem.positive, 0.0, c, norm));
        Self {
            due: due.collect(),
            value,
            norm,
            share,
            dropped: Vec::new(),
            travelled: 0.0,
            theta: theta.to_vec(),
            fresh: (0..d as u32).collect(),
        }
    }

    /// Every column is a candidate again: the penalty has changed.
    pub(super) fn revive(&mut self) {
        self.dropped.drain(..).for_each(|(j, due)| self.due[j as usize] = due);
    }

    /// Moves to another dual point, and leaves the last one in its place. Afterwards `fresh` lists the columns whose products are exact; all
    /// others are covered by their penalty. Returns the matrix entries visited.
    pub(super) fn update<L: Loss, V: Real>(
        &mut self,
        problem: &Problem<'_, L, V>,
        theta: &mut Vec<f64>,
        par: Par,
    ) -> u64 {
        let moved2 = sum_pairs(&self.theta, theta, |a, b| (a - b) * (a - b));
        // Rounding of the sum and of the products themselves.
        self.travelled += moved2.sqrt() * (1.0 + 1e-10);
        std::mem::swap(&mut self.theta, theta);
        let (matrix, positive, lambda) = (problem.matrix, problem.positive, problem.lambda);
        let (theta, travelled) = (&self.theta[..], self.travelled);
        let moving = self.value.chunks_mut(STRIP).zip(self.due.chunks_mut(STRIP));
        let fixed = self.norm.chunks(STRIP).zip(self.share.chunks(STRIP));
        let strips = moving.zip(fixed).enumerate().map(|(k, ((value, due), (norm, share)))| {
            let first = k * STRIP;
            LaterStrip { matrix, positive, lambda, theta, travelled, first, value, due, norm, share }
        });
        self.fresh.clear();
        let mut entries = 0;
        for (fresh, visited) in par.map(strips.collect(), vectorized) {
            self.fresh.extend_from_slice(&fresh);
            entries += visited;
        }
        entries
    }

    /// `a_jᵀθ`.
    pub(super) fn product<L: Loss, V: Real>(&self, problem: &Problem<'_, L, V>, j: u32) -> f64 {
        match self.fresh.binary_search(&j) {
            Ok(_) => self.value[j as usize],
            Err(_) => problem.matrix.column(j as usize).dot(&self.theta),
        }
    }

    /// Gap-safe screening (Ndiaye et al. 2017): the optimal dual point lies within `radius` of `scale·θ`, so a column that is
    /// covered by its penalty in that whole ball has weight 0 at the optimum and is never looked at again at this `λ`. Columns that are not fresh
    /// are left for when they are.
    pub(super) fn screen(&mut self, lambda: f64, scale: f64, radius: f64) {
        for &j in &self.fresh {
            let (due, share) = (self.due[j as usize], self.share[j as usize]);
            if scale * (self.travelled - due) + radius < lambda * share {
                self.dropped.push((j, due));
                self.due[j as usize] = f64::INFINITY;
            }
        }
    }
}
