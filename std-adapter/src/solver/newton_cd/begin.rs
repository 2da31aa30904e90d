//! Where a run begins that has a long way to go: neighbourhoods, made symmetric and positive definite.
//!
//! Where outputs have large means, `S_yy` is nearly of rank one (SGCRF Sec. 5.1 at p = 400: eigenvalues 24,213, then 78, 48, …; Λ at the optimum: 0.003 once, then from 0.08 to 4). The best diagonal
//! Λ is then hundreds of times too small in every direction but that one: each Newton step at most doubles it, fills it, and needs a short step for it to stay positive definite.
//!
//! So begin with the pseudolikelihood's optimum ([`neighbours`](super::neighbours)), which has no determinant: `p` Lassos. In those the large directions `v` of `S_yy` would only make for slow convergence,
//! so what the samples have along `Yv` is left out: few of many equations. Λ is the mean of what both ends of a pair say. What was left out comes back as a condition: `Λv = εv`, by the
//! least change (in squares) of entries that are not 0, `Δ_ij = a_i v_j + v_i a_j` there, found by conjugate gradients in `a`. `ε` minimises `-log ε + εs + c/ε`, the objective along `v` alone
//! (`s = vᵀS_yy v`, `c = ‖XΘv‖²/m`).
//!
//! Input: data and penalties; output: a start `(Λ, Θ)`, Λ positive definite, or nothing: where some shrinking of the off-diagonal entries does not lead to one.

use super::gather::dot;
use super::neighbours::neighbourhoods;
use crate::linalg::{Dense, product};
use crate::objective::gaussian::{Gaussian, Penalties, State};
use crate::solver::conjugate::{Conjugate, Operator};

/// A direction is large if it has so many times the variance of the mean of those that are smaller; so many at most are looked for.
const LARGE: f64 = 30.0;
const DIRECTIONS: usize = 4;
/// Steps of the power method; a rough direction is good enough.
const POWER: usize = 100;
/// Steps of conjugate gradients for the condition, and how far they go.
const CONJUGATE: usize = 300;
const EXACT: f64 = 1e-6;
/// What off-diagonal entries are multiplied by, in this order.
const SHRINK: [f64; 5] = [1.0, 0.95, 0.9, 0.8, 0.6];

/// How many times the larger penalty the violation is where the way is long. Measured on the bench: chains have 20 to 30; `sec51` with p = 50 (1,300), which the diagonal start solves as fast,
/// with p = 200 2,100, 400 5,600, 1000 24,000.
const FAR: f64 = 1500.0;
/// With fewer outputs the diagonal start is better: of eight problems with two outputs, a large mean and `λ_max/λ` of 10⁵ it solved all in 21 to 29 iterations, where this one took up to 151 and ended one before its tolerance.
const MANY: usize = 64;

/// Whether a run of many outputs begins with a diagonal and the optimum is a long way off.
pub(super) fn is_far(state: &State, violation: f64, penalties: &Penalties) -> bool {
    let (least, most) = (penalties.lambda.min(penalties.theta), penalties.lambda.max(penalties.theta));
    let count = |m: &Dense| m.values().iter().filter(|v| **v != 0.0).count();
    state.lambda.cols() >= MANY
        && least > 0.0
        && most.is_finite()
        && violation > FAR * most
        && count(&state.theta) == 0
        && count(&state.lambda) == state.lambda.cols()
}

/// A start near the optimum.
pub(super) fn begin(problem: &Gaussian, penalties: &Penalties) -> Option<State> {
    let large = directions(problem);
    let without = through(problem, &large);
    let (sided, theta) = neighbourhoods(problem, penalties, &without);
    let r = problem.through(&theta);
    let small = least(problem, &large, &r);
    let p = problem.outputs();
    SHRINK.iter().find_map(|&by| {
        let mut lambda = Dense::from_fn(p, p, |i, j| {
            0.5 * (sided.get(i, j) + sided.get(j, i)) * if i == j { 1.0 } else { by }
        });
        correct(&mut lambda, &large, &small);
        problem.state_with(lambda, theta.clone(), r.clone())
    })
}

/// The large directions of `S_yy`, a column each, orthonormal, with their variances.
fn directions(problem: &Gaussian) -> Vec<(Vec<f64>, f64)> {
    let (syy, p) = (&problem.syy, problem.outputs());
    let mut found: Vec<(Vec<f64>, f64)> = Vec::new();
    let mut rest: f64 = (0..p).map(|j| syy.get(j, j)).sum();
    while found.len() < DIRECTIONS.min(p - 1) {
        let deflated = |v: &[f64]| {
            let mut out = vec![0.0; p];
            for (j, &v) in v.iter().enumerate() {
                out.iter_mut().zip(syy.col(j)).for_each(|(o, s)| *o += v * s);
            }
            for (known, _) in &found {
                let share = dot(&out, known);
                out.iter_mut().zip(known).for_each(|(o, k)| *o -= share * k);
            }
            out
        };
        // Every output takes part, none in step with another.
        let mut v: Vec<f64> = (0..p).map(|j| 1.0 + 0.5 * ((j * j) as f64).sin()).collect();
        let mut size = 0.0;
        for _ in 0..POWER {
            let next = deflated(&v);
            size = dot(&next, &next).sqrt();
            if size <= 0.0 || !size.is_finite() {
                return found;
            }
            v = next.iter().map(|x| x / size).collect();
        }
        rest -= size;
        if size <= LARGE * rest.max(0.0) / (p - found.len() - 1) as f64 {
            break;
        }
        found.push((v, size));
    }
    found
}

/// `Yv` for each direction, orthonormal as they are.
fn through(problem: &Gaussian, large: &[(Vec<f64>, f64)]) -> Dense {
    let (y, p) = (&problem.y, problem.outputs());
    let all =
        Dense::from_columns(p, large.len(), large.iter().flat_map(|(v, _)| v.iter().copied()).collect());
    let mut out = product(problem.par, y, &all.unwrap_or_else(|| Dense::zeros(p, 0)));
    for j in 0..large.len() {
        let (before, rest) = out.values_mut().split_at_mut(j * y.rows());
        let own = &mut rest[..y.rows()];
        for other in before.chunks(y.rows()) {
            let share = dot(own, other);
            own.iter_mut().zip(other).for_each(|(a, b)| *a -= share * b);
        }
        let size = dot(own, own).sqrt().max(f64::MIN_POSITIVE);
        own.iter_mut().for_each(|v| *v /= size);
    }
    out
}

/// `ε` for each direction.
fn least(problem: &Gaussian, large: &[(Vec<f64>, f64)], r: &Dense) -> Vec<f64> {
    let one = |(v, s): &(Vec<f64>, f64)| {
        let mut along = vec![0.0; r.rows()];
        for (j, &v) in v.iter().enumerate() {
            along.iter_mut().zip(r.col(j)).for_each(|(a, r)| *a += v * r);
        }
        let c = dot(&along, &along) / problem.samples;
        (1.0 + (1.0 + 4.0 * c * s).sqrt()) / (2.0 * s)
    };
    large.iter().map(one).collect()
}

/// Makes `Λv = εv` by the least change of entries that are not 0.
fn correct(lambda: &mut Dense, large: &[(Vec<f64>, f64)], small: &[f64]) {
    let (p, k) = (lambda.cols(), large.len());
    if k == 0 {
        return;
    }
    let places: Vec<(u32, u32)> = (0..p)
        .flat_map(|j| (0..=j).map(move |i| (i, j)))
        .filter(|&(i, j)| lambda.get(i, j) != 0.0)
        .map(|(i, j)| (i as u32, j as u32))
        .collect();
    let condition = Condition { large, places: &places, outputs: p };
    let mut residual: Vec<f64> =
        large.iter().zip(small).flat_map(|((v, _), e)| v.iter().map(move |v| e * v)).collect();
    let now = condition.through(|i, j| lambda.get(i, j));
    condition.add(&mut residual, -1.0, &now);
    let mut a = vec![0.0; k * p];
    let mut run = Conjugate::new(&condition, &residual);
    let enough = EXACT * EXACT * dot(&residual, &residual);
    run.until(&condition, (&mut a, &mut residual), &mut { CONJUGATE }, |_, size| size <= enough);
    for &(i, j) in &places {
        let (i, j) = (i as usize, j as usize);
        let value = lambda.get(i, j) + condition.change(&a, i, j);
        lambda.set(i, j, value);
        lambda.set(j, i, value);
    }
}

/// What `Δv` is of `Δ_ij = a_i v_j + v_i a_j` at some places, for several `v`.
struct Condition<'a> {
    large: &'a [(Vec<f64>, f64)],
    /// Of the upper triangle.
    places: &'a [(u32, u32)],
    outputs: usize,
}

impl Condition<'_> {
    /// `Δ_ij`.
    fn change(&self, a: &[f64], i: usize, j: usize) -> f64 {
        let parts = self.large.iter().zip(a.chunks(self.outputs));
        parts.map(|((v, _), a)| a[i] * v[j] + v[i] * a[j]).sum()
    }

    /// `Δv` for each `v`, of a symmetric matrix.
    fn through(&self, entry: impl Fn(usize, usize) -> f64) -> Vec<f64> {
        let mut out = vec![0.0; self.large.len() * self.outputs];
        for &(i, j) in self.places {
            let (i, j) = (i as usize, j as usize);
            let entry = entry(i, j);
            for ((v, _), out) in self.large.iter().zip(out.chunks_mut(self.outputs)) {
                out[i] += entry * v[j];
                if i != j {
                    out[j] += entry * v[i];
                }
            }
        }
        out
    }
}

impl Operator for Condition<'_> {
    type Vector = Vec<f64>;

    fn apply(&self, a: &Vec<f64>) -> Vec<f64> {
        self.through(|i, j| self.change(a, i, j))
    }

    fn scaled(&self, r: &Vec<f64>) -> Vec<f64> {
        r.clone()
    }

    fn dot(&self, a: &Vec<f64>, b: &Vec<f64>) -> f64 {
        dot(a, b)
    }

    fn add(&self, a: &mut Vec<f64>, by: f64, b: &Vec<f64>) {
        a.iter_mut().zip(b).for_each(|(a, b)| *a += by * b);
    }
}
