//! Accelerated proximal gradient (Beck & Teboulle 2009) for sparse Gaussian CRFs: the paper's baseline, and a cross-check that shares no step with Newton coordinate descent.
//!
//! Objective, output and stopping rule as [`newton_cd`](super::newton_cd). A step is `prox(z - t∇f(z))` with `t` halved until the quadratic bound holds and Λ is positive definite, and
//! lengthened a little after each success; momentum begins anew when the objective rises or the extrapolated Λ leaves the cone.

use super::newton_cd::{GaussianWatch, NewtonError, NewtonParams, NewtonSolution, Record, rounding};
use crate::linalg::Dense;
use crate::objective::gaussian::{Gaussian, State};
use gibbsite_core::math::soft_threshold;

/// Iterations in a row without progress after which rounding is blamed: momentum makes violations rise and fall.
const PATIENCE: u32 = 500;

/// Minimises from a given start; inside [`Par::run`](crate::par::Par::run). `params.schedule` is not looked at.
///
/// # Errors
/// [`NewtonError::Start`] if the start is not positive definite.
pub fn minimize(
    problem: &Gaussian,
    (lambda, theta): (Dense, Dense),
    params: &NewtonParams,
    watch: Option<&GaussianWatch<'_>>,
) -> Result<NewtonSolution, NewtonError> {
    let penalties = &params.penalties;
    let mut state = problem.state(lambda, theta).ok_or(NewtonError::Start)?;
    let mut ahead = state.clone();
    let total = |s: &State| s.value + penalties.value(&s.lambda, &s.theta);
    let mut last = total(&state);
    let (mut step, mut weight, mut iterations) = (1.0, 1.0f64, 0);
    let mut record = Record::new(watch);
    loop {
        let slopes = problem.slopes(&state);
        let violation = problem.violation(&state, &slopes, penalties);
        if let Some(stop) = record.verdict((&state, violation), last, params, iterations, PATIENCE) {
            return Ok(record.finish(state, stop, iterations));
        }
        iterations += 1;
        let slopes = if weight == 1.0 { slopes } else { problem.slopes(&ahead) };
        let next = loop {
            let lambda = prox(&ahead.lambda, &slopes.lambda, step, |i, j| penalties.of_lambda(i, j).l1);
            let theta = prox(&ahead.theta, &slopes.theta, step, |_, _| penalties.theta);
            let bound = bound(&ahead, &slopes.lambda, &slopes.theta, &lambda, &theta, step)
                + rounding(problem, ahead.value);
            let next = problem.state(lambda, theta).filter(|n| n.value <= bound);
            if let Some(next) = next {
                break Some(next);
            }
            step *= 0.5;
            if step < 1e-18 {
                break None;
            }
        };
        let objective = next.as_ref().map_or(f64::INFINITY, total);
        let Some(next) = next.filter(|_| objective <= last + rounding(problem, last)) else {
            step = step.max(1e-12);
            (ahead, weight) = (state.clone(), 1.0);
            continue;
        };
        last = objective;
        let after = 0.5 * (1.0 + (1.0 + 4.0 * weight * weight).sqrt());
        let by = (weight - 1.0) / after;
        let lambda = ahead_of(&next.lambda, &state.lambda, by);
        let theta = ahead_of(&next.theta, &state.theta, by);
        (ahead, weight) = match problem.state(lambda, theta) {
            Some(ahead) if by > 0.0 => (ahead, after),
            _ => (next.clone(), if by > 0.0 { 1.0 } else { after }),
        };
        state = next;
        step *= 1.05;
    }
}

fn prox(at: &Dense, slope: &Dense, step: f64, l1: impl Fn(usize, usize) -> f64) -> Dense {
    Dense::from_fn(at.rows(), at.cols(), |i, j| {
        soft_threshold(at.get(i, j) - step * slope.get(i, j), step * l1(i, j))
    })
}

fn ahead_of(next: &Dense, now: &Dense, by: f64) -> Dense {
    let mut out = next.clone();
    out.values_mut().iter_mut().zip(now.values()).for_each(|(n, o)| *n += by * (*n - o));
    out
}

/// `f(z) + ⟨∇f, d⟩ + ‖d‖²/(2t)`.
fn bound(ahead: &State, gl: &Dense, gt: &Dense, lambda: &Dense, theta: &Dense, step: f64) -> f64 {
    let part = |new: &Dense, old: &Dense, slope: &Dense| {
        let entries = new.values().iter().zip(old.values()).zip(slope.values());
        entries.map(|((n, o), g)| (n - o) * (g + (n - o) / (2.0 * step))).sum::<f64>()
    };
    ahead.value + (part(lambda, &ahead.lambda, gl) + part(theta, &ahead.theta, gt))
}
