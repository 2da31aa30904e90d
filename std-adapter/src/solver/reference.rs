//! A second opinion: accelerated proximal gradient on all coordinates, textbook code that shares nothing with coordinate descent.

use super::monitor::{Monitor, Point};
use super::spectral::{SpectralParams, spectral_radius};
use super::{Info, Solution};
use crate::par::Par;
use crate::regress::certificate::{certify, correlations};
use crate::regress::problem::{Problem, Weights};
use gibbsite_core::loss::Loss;
use gibbsite_core::math::Real;

/// How the reference solver goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReferenceParams {
    /// Done when the duality gap is not above this.
    pub gap: f64,
    /// Most iterations; each is two passes over the matrix.
    pub max_epochs: u64,
    /// Threads.
    pub par: Par,
    /// Seed of the iteration for `ρ`.
    pub seed: u64,
}

/// Iterations between two certificates.
const BETWEEN: u64 = 20;

/// FISTA (Beck and Teboulle 2009) with the restarts of O'Donoghue and Candès 2015, in the metric `D = diag(‖a_j‖²)`:
/// `x⁺ = argmin_v ∇f(w)ᵀv + ½L‖v - w‖²_D + penalty(v)` at the extrapolated point `w`, with `L = SMOOTHNESS·ρ` and `ρ` the spectral radius of `AᵀA` with unit columns
/// (and a constant one for the intercept), by [`spectral_radius`]; if a step shows that `ρ` was too small, it is raised.
///
/// Restarts when the last step points against the one from the extrapolated point. Stops when the duality gap, looked at every 20 iterations, is at most `params.gap`.
pub fn solve<L: Loss, V: Real>(
    problem: &Problem<'_, L, V>,
    start: Weights,
    params: &ReferenceParams,
    monitor: &mut Monitor<'_>,
) -> Solution {
    let d = problem.matrix.columns();
    let spectral = SpectralParams {
        tolerance: 1e-6,
        intercept: problem.intercept,
        par: params.par,
        seed: params.seed,
        ..SpectralParams::default()
    };
    let mut lipschitz = L::SMOOTHNESS * 1.01 * spectral_radius(problem.matrix, &spectral).rho.max(1.0);
    let norm2 = params.par.map_range(d, |j| problem.matrix.column(j).norm2::<f64>());
    let rows = problem.target.len();
    let predict = |point: &Weights| problem.predictions(&point.x, point.intercept);
    let mut x = start;
    x.x.resize(d, 0.0);
    let mut z = predict(&x);
    let mut objective = problem.objective(&x.x, &z);
    let (mut w, mut w_z, mut t) = (x.clone(), z.clone(), 1.0f64);
    let (mut iterations, mut stuck) = (0u64, false);
    loop {
        if iterations.is_multiple_of(BETWEEN) || iterations >= params.max_epochs || stuck {
            let found = certify(problem, &x.x, &z, params.par);
            let point = Point {
                seconds: 0.0,
                iterations,
                updates: iterations * d as u64,
                lambda: problem.lambda,
                objective: found.objective,
                gap: found.gap,
                nonzeros: x.nonzeros(),
            };
            let exhausted = iterations >= params.max_epochs;
            if let Some(stop) = monitor.verdict(point, params.gap, exhausted, stuck) {
                let info = Info {
                    iterations,
                    epochs: iterations as f64,
                    updates: iterations * d as u64,
                    entries: 2 * iterations * problem.matrix.nonzeros() as u64,
                    parallel: d,
                    backoffs: 0,
                    stop,
                };
                return Solution { weights: x, certificate: found, info };
            }
        }
        iterations += 1;
        let u = problem.residual(&w_z);
        let c = correlations(problem, &u, params.par);
        let mut next = Weights::zero(d);
        for j in 0..d {
            next.x[j] = problem.penalty(j).minimize(w.x[j], -c[j], lipschitz * norm2[j]);
        }
        if problem.intercept && rows > 0 {
            next.intercept = w.intercept + u.iter().sum::<f64>() / (lipschitz * rows as f64);
        }
        let next_z = predict(&next);
        let next_objective = problem.objective(&next.x, &next_z);
        // A step without momentum cannot raise the objective unless L is too small; below that size it is rounding.
        if t == 1.0 && next_objective > objective * (1.0 + 1e-12) {
            lipschitz *= 1.1;
            (w, w_z) = (x.clone(), z.clone());
            continue;
        }
        let still = next == x;
        let uphill: f64 = (0..d).map(|j| norm2[j] * (w.x[j] - next.x[j]) * (next.x[j] - x.x[j])).sum::<f64>()
            + rows as f64 * (w.intercept - next.intercept) * (next.intercept - x.intercept);
        if uphill > 0.0 {
            t = 1.0;
        }
        if still && t == 1.0 {
            stuck = true;
        }
        let t_next = 0.5 * (1.0 + (1.0 + 4.0 * t * t).sqrt());
        let momentum = (t - 1.0) / t_next;
        let ahead = |new: f64, old: f64| new + momentum * (new - old);
        w.x.iter_mut().zip(&next.x).zip(&x.x).for_each(|((w, &new), &old)| *w = ahead(new, old));
        w_z.iter_mut().zip(&next_z).zip(&z).for_each(|((w, &new), &old)| *w = ahead(new, old));
        w.intercept = ahead(next.intercept, x.intercept);
        (x, z, objective, t) = (next, next_z, next_objective, t_next);
    }
}
