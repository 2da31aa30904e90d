//! The spectral radius `ρ` of `AᵀA` with columns of unit norm, which says how many coordinates may be changed at a time
//! (Theorem 4.3.2).

use crate::data::matrix::Matrix;
use crate::par::Par;
use gibbsite_core::math::Real;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// How power iteration goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpectralParams {
    /// Done when the estimate changes by less than this share of itself between two iterations.
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

/// What power iteration found.
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

/// Power iteration (Thesis 4.3.1): `v ← Mv/‖Mv‖` with `M = D⁻¹AᵀAD⁻¹`, `D = diag ‖a_j‖`; the estimate is `‖AD⁻¹v‖²`, a Rayleigh quotient, so
/// it rises towards `ρ`. Stops when it changes by less than `tolerance·estimate`. Zero columns are skipped.
///
/// The start is random and positive: matrices of counts have a positive leading vector, and others do not care.
///
/// ```
/// use gibbsite::{data::matrix::Matrix, solver::spectral::{SpectralParams, spectral_radius}};
/// // two equal columns and one orthogonal to them
/// let m = Matrix::<f64>::from_rows(3, &[&[(0, 2.0), (1, 5.0)], &[(2, 1.0)]]);
/// let found = spectral_radius(&m, &SpectralParams::default());
/// assert!((found.rho - 2.0).abs() < 1e-3);
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
    let mut v: Vec<f64> =
        inverse.iter().map(|&s| if s > 0.0 { rng.random_range(0.5..1.5) } else { 0.0 }).collect();
    let mut bias = if constant > 0.0 { 1.0 } else { 0.0 };
    let mut info = SpectralInfo { rho: 0.0, columns, iterations: 0, converged: columns == 0 };
    let mut u = vec![0.0; n];
    while info.iterations < params.max_iterations && !info.converged {
        let length = (v.iter().map(|v| v * v).sum::<f64>() + bias * bias).sqrt();
        if length == 0.0 {
            break;
        }
        u.fill(bias / length * constant);
        for (j, (&v, &s)) in v.iter().zip(&inverse).enumerate() {
            if s > 0.0 {
                matrix.column(j).add_to(v * s / length, &mut u);
            }
        }
        let rho = u.iter().map(|u| u * u).sum::<f64>();
        info.iterations += 1;
        info.converged = (rho - info.rho).abs() <= params.tolerance * rho;
        info.rho = info.rho.max(rho);
        if info.converged {
            break;
        }
        params.par.fill(&mut v, 64, |j| inverse[j] * matrix.column(j).dot(&u));
        bias = constant * u.iter().sum::<f64>();
    }
    info
}
