//! The spectral radius `ρ` of `AᵀA` with columns of unit norm, which says how many coordinates may be changed at a time
//! (Theorem 4.3.2).

use crate::data::matrix::Matrix;
use crate::par::Par;
use gibbsite_core::math::Real;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// How Lanczos' iteration goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpectralParams {
    /// Done when an eigenvalue is proven to lie within this share of the estimate. The estimate is nearer than that: its error goes with the square of what is
    /// proven.
    pub tolerance: f64,
    /// Most iterations.
    pub max_iterations: u64,
    /// Whether a constant column belongs to the matrix (for an intercept).
    pub intercept: bool,
    /// Threads.
    pub par: Par,
    /// Seed of the start.
    pub seed: u64,
}

impl Default for SpectralParams {
    fn default() -> Self {
        Self { tolerance: 1e-4, max_iterations: 1000, intercept: false, par: Par::Seq, seed: 0 }
    }
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpectralInfo {
    /// The estimate of `ρ`: never above it, 0 for a matrix of zeros.
    pub rho: f64,
    /// Columns that are not zero, without that of the intercept: the `d` of the theorem.
    pub columns: usize,
    /// Iterations made.
    pub iterations: u64,
    /// Whether the tolerance was met.
    pub converged: bool,
}

impl SpectralInfo {
    /// `P* = d/ρ`, at least 1: coordinates at a time up to which the bound with duplicated features promises almost linear speed-ups
    /// (Theorem 4.3.2).
    ///
    /// ```
    /// use gibbsite::solver::spectral::SpectralInfo;
    /// let info = SpectralInfo { rho: 3.0, columns: 10, iterations: 1, converged: true };
    /// assert_eq!((info.p_star(), info.p_star_plain()), (3, 1));
    /// ```
    pub fn p_star(&self) -> usize {
        self.share(1.0)
    }

    /// `d/(2ρ)`, at least 1: what the thesis says for a problem whose features are not duplicated.
    pub fn p_star_plain(&self) -> usize {
        self.share(2.0)
    }

    fn share(&self, factor: f64) -> usize {
        if self.rho > 0.0 {
            // A hair is added so that an estimate of ρ = 1 from below or above gives d either way.
            ((self.columns as f64 / (factor * self.rho) + 1e-9).floor() as usize)
                .clamp(1, self.columns.max(1))
        } else {
            1
        }
    }
}

/// Lanczos' iteration on `M = D⁻¹AᵀAD⁻¹`, `D = diag ‖a_j‖`: the largest Ritz value, which rises towards `ρ`. Zero columns are skipped.
///
/// Stops by the residual: `|μ - θ| ≤ ‖Mv - θv‖` for some eigenvalue `μ` of `M`, `θ` and `v` the estimate and its vector. (Power iteration, Thesis 4.3.1,
/// costs the same two passes over the matrix, but where many eigenvalues lie close together, as for random matrices, it creeps, and a small step
/// says little about what is still to come.) Vectors are not orthogonalised again: what rounding adds are copies of eigenvalues, and the largest stays what it is
/// (Paige 1980).
///
/// The start is random and positive: matrices of counts have a positive leading vector, and others do not care.
///
/// ```
/// use gibbsite::{data::matrix::Matrix, solver::spectral::{SpectralParams, spectral_radius}};
/// // two equal columns and one orthogonal to them
/// let m = Matrix::<f64>::from_rows(3, &[&[(0, 2.0), (1, 5.0)], &[(2, 1.0)]]);
/// let found = spectral_radius(&m, &SpectralParams::default());
/// assert!((found.rho - 2.0).abs() < 1e-9);
/// assert_eq!(found.p_star(), 1);
/// ```
pub fn spectral_radius<V: Real>(matrix: &Matrix<V>, params: &SpectralParams) -> SpectralInfo {
    let (n, d) = (matrix.rows(), matrix.columns());
    let inverse = params.par.map_range(d, |j| {
        let norm2: f64 = matrix.column(j).norm2();
        if norm2 > 0.0 { 1.0 / norm2.sqrt() } else { 0.0 }
    });
    let columns = inverse.iter().filter(|&&s| s > 0.0).count();
    let constant = if params.intercept && n > 0 { 1.0 / (n as f64).sqrt() } else { 0.0 };
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(params.seed);
    // The last place is that of the constant column.
    let mut v: Vec<f64> =
        inverse.iter().map(|&s| if s > 0.0 { rng.random_range(0.5..1.5) } else { 0.0 }).collect();
    v.push(if constant > 0.0 { 1.0 } else { 0.0 });
    let length = norm(&v);
    v.iter_mut().for_each(|v| *v /= length.max(f64::MIN_POSITIVE));
    let mut before = vec![0.0; d + 1];
    let (mut u, mut next) = (vec![0.0; n], vec![0.0; d + 1]);
    let mut ritz = Tridiagonal::default();
    let mut info = SpectralInfo { rho: 0.0, columns, iterations: 0, converged: length == 0.0 };
    while info.iterations < params.max_iterations && !info.converged {
        u.fill(v[d] * constant);
        for (j, (&v, &s)) in v.iter().zip(&inverse).enumerate() {
            if s > 0.0 {
                matrix.column(j).add_to(v * s, &mut u);
            }
        }
        params.par.fill(&mut next[..d], 64, |j| inverse[j] * matrix.column(j).dot(&u));
        next[d] = constant * u.iter().sum::<f64>();
        let alpha = u.iter().map(|u| u * u).sum::<f64>();
        let last = ritz.below.last().copied().unwrap_or(0.0);
        for ((next, v), before) in next.iter_mut().zip(&v).zip(&before) {
            *next -= alpha * v + last * before;
        }
        let beta = norm(&next);
        info.iterations += 1;
        ritz.diagonal.push(alpha);
        let (rho, share) = ritz.largest(info.rho);
        info.rho = rho;
        // Nothing new but rounding: the vectors so far hold all there is.
        let closed = beta <= f64::EPSILON * rho;
        info.converged = closed || beta * share <= params.tolerance * rho;
        ritz.below.push(beta);
        std::mem::swap(&mut before, &mut v);
        std::mem::swap(&mut v, &mut next);
        v.iter_mut().for_each(|v| *v /= beta);
    }
    info
}

fn norm(v: &[f64]) -> f64 {
    v.iter().map(|v| v * v).sum::<f64>().sqrt()
}

/// The matrix as Lanczos' vectors see it: symmetric, of one diagonal and what lies beside it, all of that at least 0.
#[derive(Clone, Debug, Default)]
struct Tridiagonal {
    diagonal: Vec<f64>,
    below: Vec<f64>,
}

impl Tridiagonal {
    /// The largest eigenvalue, from below, and the last component of its vector of length 1; `least` is not above it.
    fn largest(&self, least: f64) -> (f64, f64) {
        let beside = |k: usize| self.below.get(k).copied().unwrap_or(0.0);
        let len = self.diagonal.len();
        let sums = (0..len).map(|k| {
            self.diagonal[k]
                + if k > 0 { beside(k - 1) } else { 0.0 }
                + if k + 1 < len { beside(k) } else { 0.0 }
        });
        // Gershgorin: no eigenvalue is larger than a row's sum.
        let (mut low, mut high) = (least, sums.fold(least, f64::max) * (1.0 + 1e-12));
        let mut pivots = vec![0.0; len];
        loop {
            let middle = low + 0.5 * (high - low);
            if middle <= low || middle >= high || high - low <= 4.0 * f64::EPSILON * high {
                break;
            }
            if self.pivots(middle, &mut pivots) { high = middle } else { low = middle }
        }
        if !self.pivots(high, &mut pivots) {
            return (low, 0.0);
        }
        // Inverse iteration above the spectrum: all numbers in it are positive, so that small components are as exact as large ones.
        let mut s = vec![1.0; len];
        for _ in 0..3 {
            for k in 1..len {
                s[k] += beside(k - 1) / pivots[k - 1] * s[k - 1];
            }
            for k in (0..len).rev() {
                let upper = if k + 1 < len { beside(k) * s[k + 1] } else { 0.0 };
                s[k] = (s[k] + upper) / pivots[k];
            }
            let length = norm(&s);
            s.iter_mut().for_each(|s| *s /= length);
        }
        (low, s.last().copied().unwrap_or(0.0))
    }

    /// The pivots of `σ - T`, and whether all are positive: then `σ` is above all eigenvalues.
    fn pivots(&self, sigma: f64, pivots: &mut [f64]) -> bool {
        let mut taken = 0.0;
        for (k, pivot) in pivots.iter_mut().enumerate() {
            *pivot = sigma - self.diagonal[k] - taken;
            if *pivot <= 0.0 {
                return false;
            }
            taken = self.below.get(k).map_or(0.0, |b| b * b / *pivot);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tridiagonal_eigenvalues_are_known() {
        // 2 beside 1s: 2 + 2 cos(π/(n + 1)), with the vector sin(kπ/(n + 1)).
        for len in [1usize, 2, 3, 10, 100] {
            let t = Tridiagonal { diagonal: vec![2.0; len], below: vec![1.0; len] };
            let angle = std::f64::consts::PI / (len as f64 + 1.0);
            let length = norm(&(1..=len).map(|k| (k as f64 * angle).sin()).collect::<Vec<_>>());
            let (value, last) = t.largest(0.0);
            assert!((value - 2.0 - 2.0 * angle.cos()).abs() < 1e-13, "{len}: {value}");
            assert!((last - (len as f64 * angle).sin() / length).abs() < 1e-6, "{len}: {last}");
        }
    }
}
