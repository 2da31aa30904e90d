//! How far from optimal a point can be at most: the duality gap. And the least `λ` with an all-zero optimum.
//!
//! Primal: `F(x, b)` of [`Problem`]. Dual: `D(θ) = Σ_i -L*(-θ_i, y_i) - Σ_j penalty_j*(a_jᵀθ)` subject to `1ᵀθ = 0` if there is
//! an intercept. `D(θ) ≤ F(x, b)` for all `θ`, `x`, `b`, with equality at the optimum, so `F - D` bounds `F - F*`.
//!
//! The dual point is `θ = s·u` with `u = -∇L(z)`, made orthogonal to what has no penalty, and scaled until every `|a_jᵀθ| ≤ λw_j`; where there
//! is a ridge term, an unscaled point costs `(|a_jᵀθ| - λw_j)₊²/(2μv_j)` instead, and the better of both is taken.

use super::problem::{Problem, ROWS};
use crate::par::{Kernel, Par, vectorized};
use gibbsite_core::coord;
use gibbsite_core::lanes::sum_pairs;
use gibbsite_core::loss::Loss;
use gibbsite_core::math::Real;
use gibbsite_core::penalty::Penalty;

/// A point's certificate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Certificate {
    /// `F` at the point.
    pub objective: f64,
    /// `D` at the best dual point found; `F* ≥ dual`.
    pub dual: f64,
    /// `objective - dual`, not below 0; infinite if no dual point was found.
    pub gap: f64,
    /// Largest distance of 0 from the subdifferential in one coordinate.
    pub violation: f64,
}

/// Certifies `x` with `z = Ax + b`. One pass over the matrix.
///
/// ```
/// use gibbsite::{data::matrix::Matrix, par::Par, regress::{certificate::certify, problem::Problem}};
/// use gibbsite_core::loss::Squared;
/// let m = Matrix::<f64>::from_rows(1, &[&[(0, 1.0)], &[(0, 1.0)]]);
/// let p = Problem::new(&m, &[2.0, 4.0], Squared, 1.0);
/// let found = certify(&p, &[2.5], &[2.5, 2.5], Par::Seq);
/// assert!(found.gap < 1e-12 && found.violation < 1e-12);
/// assert!(certify(&p, &[0.0], &[0.0, 0.0], Par::Seq).gap > 1.0);
/// ```
pub fn certify<L: Loss, V: Real>(problem: &Problem<'_, L, V>, x: &[f64], z: &[f64], par: Par) -> Certificate {
    let objective = problem.objective(x, z);
    let u = problem.residual(z);
    let raw = correlations(problem, &u, par);
    let violation = raw
        .iter()
        .zip(x)
        .enumerate()
        .map(|(j, (&c, &x))| problem.penalty(j).violation(x, -c))
        .fold(if problem.intercept { u.iter().sum::<f64>().abs() } else { 0.0 }, f64::max);
    let free = problem.free_columns(x);
    let dual = if problem.intercept || !free.is_empty() {
        let theta = orthogonal(problem, u, &free);
        let mut c = correlations(problem, &theta, par);
        free.iter().for_each(|&j| c[j] = 0.0);
        dual_value(problem, &theta, numbered(&c), f64::INFINITY, par).1
    } else {
        dual_value(problem, &u, numbered(&raw), f64::INFINITY, par).1
    };
    Certificate { objective, dual, gap: (objective - dual).max(0.0), violation }
}

/// `a_jᵀu` for all columns.
pub fn correlations<L: Loss, V: Real>(problem: &Problem<'_, L, V>, u: &[f64], par: Par) -> Vec<f64> {
    par.map_range(problem.matrix.columns(), |j| problem.matrix.column(j).dot(u))
}

fn numbered(c: &[f64]) -> impl Iterator<Item = (usize, f64)> + Clone {
    c.iter().copied().enumerate()
}

/// How far `θ` is stretched, at most `most` times, and `D` at the best multiple of it that is looked for; `-inf` if none is in the domain. `c` has
/// `(j, a_jᵀθ)` for every column that its penalty may not cover.
pub(crate) fn dual_value<L: Loss, V: Real>(
    problem: &Problem<'_, L, V>,
    theta: &[f64],
    c: impl Iterator<Item = (usize, f64)> + Clone,
    most: f64,
    par: Par,
) -> (f64, f64) {
    let limit = c.clone().fold(most, |limit, (j, c)| limit.min(reach(&problem.penalty(j), c)));
    let (scale, scaled) = scaled_dual(problem, theta, limit, par);
    if problem.l2 == 0.0 || limit >= 1.0 {
        return (scale, scaled);
    }
    let price: f64 = c.map(|(j, c)| problem.penalty(j).conjugate(c)).sum();
    let whole: f64 = theta.iter().zip(problem.target).map(|(&t, &y)| problem.loss.dual(t, y)).sum();
    (scale, scaled.max(whole - price))
}

/// The scale `s` and `Σ_i -L*(-sθ_i)` there: the best up to `limit` for the squared loss, `min(1, limit)` otherwise.
fn scaled_dual<L: Loss, V: Real>(
    problem: &Problem<'_, L, V>,
    theta: &[f64],
    limit: f64,
    par: Par,
) -> (f64, f64) {
    let scale = if L::QUADRATIC {
        let along = sum_pairs(theta, problem.target, |t, y| t * y);
        let norm2 = sum_pairs(theta, theta, |t, u| t * u);
        if norm2 > 0.0 { (along / norm2).clamp(0.0, limit) } else { 0.0 }
    } else {
        limit.min(1.0)
    };
    let strips = theta.chunks(ROWS).zip(problem.target.chunks(ROWS));
    let sums =
        par.map(strips.collect(), |(theta, y)| vectorized(TotalDual { loss: problem.loss, scale, theta, y }));
    (scale, sums.iter().sum())
}

struct TotalDual<'a, L> {
    loss: L,
    scale: f64,
    theta: &'a [f64],
    y: &'a [f64],
}

impl<L: Loss> Kernel for TotalDual<'_, L> {
    type Output = f64;
    #[inline(always)]
    fn run(self) -> f64 {
        let Self { loss, scale, theta, y } = self;
        loss.total_dual(scale, theta, y)
    }
}

/// The largest `s` for which `s·c` costs nothing.
fn reach(penalty: &Penalty<f64>, c: f64) -> f64 {
    let size = if penalty.positive { c } else { c.abs() };
    if size > 0.0 { penalty.l1 / size } else { f64::INFINITY }
}

/// The point nearest to `θ` that is orthogonal to everything without penalty: the columns `free`, and 1 if there is an intercept.
///
/// Nearest in the metric `Σ θ_i²/w_i` of the loss's curvature `w`. With an intercept alone and the logistic loss, the heavier class is scaled down instead, which stays in the domain. Otherwise
/// conjugate gradients on the normal equations, to rounding. If they do not get there, 0, which is orthogonal to everything: a point that is
/// not would give a bound that is none.
pub(crate) fn orthogonal<L: Loss, V: Real>(
    problem: &Problem<'_, L, V>,
    mut theta: Vec<f64>,
    free: &[usize],
) -> Vec<f64> {
    let n = theta.len() as f64;
    if free.is_empty() {
        if L::QUADRATIC {
            let mean = theta.iter().sum::<f64>() / n;
            theta.iter_mut().for_each(|t| *t -= mean);
        } else {
            let up: f64 = theta.iter().filter(|t| **t > 0.0).sum();
            let down: f64 = -theta.iter().filter(|t| **t < 0.0).sum::<f64>();
            let (up_scale, down_scale) = (down.min(up) / up.max(1e-300), up.min(down) / down.max(1e-300));
            theta.iter_mut().for_each(|t| *t *= if *t > 0.0 { up_scale } else { down_scale });
        }
        return theta;
    }
    let (ones, rows) = (usize::from(problem.intercept), theta.len());
    // Columns of unit length: fewer iterations, and orthogonal to small columns as well as to large ones.
    let unit = |norm2: f64| if norm2 > 0.0 { 1.0 / norm2.sqrt() } else { 0.0 };
    // In the metric of the loss's curvature: a saturated sample hardly moves, so the point stays in the domain.
    let weight: Vec<f64> = theta.iter().map(|&t| problem.loss.curvature_at_residual(t)).collect();
    let scale: Vec<f64> =
        free.iter().map(|&j| unit(problem.matrix.column(j).weighted_norm2(&weight))).collect();
    let one = unit(weight.iter().sum());
    let transposed = |u: &[f64]| -> Vec<f64> {
        let mut out: Vec<f64> =
            free.iter().zip(&scale).map(|(&j, s)| s * problem.matrix.column(j).dot(u)).collect();
        out.extend((0..ones).map(|_| one * u.iter().sum::<f64>()));
        out
    };
    let forward = |v: &[f64]| -> Vec<f64> {
        let mut out = vec![if ones == 1 { one * v[free.len()] } else { 0.0 }; rows];
        let columns = free.iter().zip(&scale).zip(v);
        columns.for_each(|((&j, s), v)| problem.matrix.column(j).add_to(s * v, &mut out));
        out
    };
    let square = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>();
    let mut gradient = transposed(&theta);
    let mut direction = gradient.clone();
    let mut now = square(&gradient);
    // What rounding alone makes of products with an orthogonal point; below it directions are noise, and steps along them may be of any size.
    let rounding = f64::EPSILON * f64::EPSILON * gradient.len() as f64 * square(&theta);
    // Near the end steps are made of rounding and may lead away again: the best point counts.
    let mut best = (now, theta.clone());
    for _ in 0..10 * gradient.len().max(10) {
        if now <= rounding {
            break;
        }
        let moved = forward(&direction);
        let bend: f64 = moved.iter().zip(&weight).map(|(m, w)| w * m * m).sum();
        let step = now / bend.max(f64::MIN_POSITIVE);
        theta.iter_mut().zip(moved.iter().zip(&weight)).for_each(|(t, (m, w))| *t -= step * w * m);
        gradient = transposed(&theta);
        let next = square(&gradient);
        direction.iter_mut().zip(&gradient).for_each(|(d, g)| *d = g + next / now * *d);
        now = next;
        if now < best.0 {
            best.0 = now;
            best.1.copy_from_slice(&theta);
        }
    }
    let (now, mut theta) = best;
    if now.is_nan() || now > 1e8 * rounding {
        theta.fill(0.0);
        return theta;
    }
    if !L::QUADRATIC {
        // Saturated samples lie on the border of the domain, and rounding may have pushed them over it.
        for (t, &y) in theta.iter_mut().zip(problem.target) {
            let p = *t * y;
            if (-1e-12..0.0).contains(&p) {
                *t = 0.0;
            } else if p > 1.0 && p < 1.0 + 1e-12 {
                *t = y;
            }
        }
    }
    theta
}

/// The weights when everything that has a penalty is 0: the intercept and the free columns alone, fitted to rounding.
pub fn null_model<L: Loss, V: Real>(problem: &Problem<'_, L, V>) -> (Vec<(usize, f64)>, f64, Vec<f64>) {
    let free: Vec<usize> = match problem.l1_weights {
        Some(w) => (0..w.len()).filter(|&j| w[j] == 0.0).collect(),
        None => Vec::new(),
    };
    let mut weights: Vec<(usize, f64)> = free.iter().map(|&j| (j, 0.0)).collect();
    let (mut b, mut z) = (0.0, vec![0.0; problem.target.len()]);
    if !problem.intercept && free.is_empty() {
        return (weights, b, z);
    }
    let scale = problem.target.iter().map(|y| y.abs()).sum::<f64>().max(f64::MIN_POSITIVE);
    for _ in 0..10_000 {
        let mut worst: f64 = 0.0;
        if problem.intercept {
            let step = intercept_step(problem, &z);
            z.iter_mut().for_each(|z| *z += step);
            b += step;
            worst = problem.residual(&z).iter().sum::<f64>().abs();
        }
        for (j, x) in &mut weights {
            let (column, penalty) = (problem.matrix.column(*j), problem.penalty(*j));
            worst = worst.max(coord::violation(column, problem.loss, &penalty, *x, &z, problem.target));
            let step =
                coord::bounded_step(column, column.norm2(), problem.loss, &penalty, *x, &z, problem.target);
            column.add_to(step, &mut z);
            *x += step;
        }
        if worst <= 1e-14 * scale {
            break;
        }
    }
    (weights, b, z)
}

/// The step that makes the intercept optimal: exact for the squared loss, by Newton's method to rounding otherwise.
pub fn intercept_step<L: Loss, V: Real>(problem: &Problem<'_, L, V>, z: &[f64]) -> f64 {
    let mut step = 0.0;
    for _ in 0..50 {
        let (mut slope, mut curvature) = (0.0, 0.0);
        for (&z, &y) in z.iter().zip(problem.target) {
            slope += problem.loss.slope(z + step, y);
            curvature += problem.loss.curvature(z + step, y);
        }
        // One class only: the intercept would run away; it stops where the loss is nothing to speak of.
        let move_by = (-slope / curvature.max(1e-12)).clamp(-10.0, 10.0);
        let move_by = if L::QUADRATIC { -slope / curvature.max(f64::MIN_POSITIVE) } else { move_by };
        step += move_by;
        if L::QUADRATIC || move_by.abs() <= 1e-15 * (1.0 + f64::abs(step)) || f64::abs(step) > 40.0 {
            break;
        }
    }
    step
}

/// The least `λ` for which all weights with an L1 penalty are 0 at the optimum: `max_j |a_jᵀu|/w_j`, where `u` is the residual of
/// the null model. For eq. 4.2 without intercept that is `max_j |(Aᵀy)_j|`, for eq. 4.3 half of it.
///
/// ```
/// use gibbsite::{data::matrix::Matrix, par::Par, regress::{certificate::lambda_max, problem::Problem}};
/// use gibbsite_core::loss::{Logistic, Squared};
/// let m = Matrix::<f64>::from_rows(1, &[&[(0, 2.0)], &[(0, -1.0)]]);
/// assert_eq!(lambda_max(&Problem::new(&m, &[1.0, -1.0], Squared, 0.0), Par::Seq), 3.0);
/// assert_eq!(lambda_max(&Problem::new(&m, &[1.0, -1.0], Logistic, 0.0), Par::Seq), 1.5);
/// ```
pub fn lambda_max<L: Loss, V: Real>(problem: &Problem<'_, L, V>, par: Par) -> f64 {
    let (_, _, z) = null_model(problem);
    let c = correlations(problem, &problem.residual(&z), par);
    largest_useful(problem, &c)
}

/// The largest `|c_j|/w_j` over columns with a penalty.
pub(crate) fn largest_useful<L: Loss, V: Real>(problem: &Problem<'_, L, V>, c: &[f64]) -> f64 {
    c.iter()
        .enumerate()
        .map(|(j, &c)| {
            let weight = problem.l1_weights.map_or(1.0, |w| w[j]);
            let size = if problem.positive { c } else { c.abs() };
            if weight > 0.0 { size / weight } else { 0.0 }
        })
        .fold(0.0, f64::max)
}
