//! OWL-QN (Andrew & Gao 2007) for sparse Gaussian CRFs: the other baseline of SGCRF Fig. 3.
//!
//! Objective, output and stopping rule as [`newton_cd`](super::newton_cd). A step is that of L-BFGS for the pseudo-gradient, kept in the orthant that the point and the pseudo-gradient name:
//! entries that would change sign become 0. Backtracking until the objective falls by a share of what the pseudo-gradient promises, and Λ is positive definite. Parameters are the upper triangle of
//! Λ (those off the diagonal stand for two entries: twice the slope, twice the penalty) and Θ. Entries without penalty have no orthant.

use super::monitor::Stop;
use super::newton_cd::{GaussianWatch, NewtonError, NewtonParams, NewtonSolution, Record};
use crate::linalg::Dense;
use crate::objective::gaussian::{Gaussian, Penalties, Slopes, State};
use std::collections::VecDeque;

/// Pairs that are remembered, as in the original.
const MEMORY: usize = 10;
/// Share of the promised fall that a step must give.
const ARMIJO: f64 = 1e-4;
/// Iterations in a row without progress after which rounding is blamed.
const PATIENCE: u32 = 200;

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
    let (n, p) = (problem.inputs(), problem.outputs());
    let weights = weights(penalties, n, p);
    let mut state = problem.state(lambda, theta).ok_or(NewtonError::Start)?;
    let total = |s: &State| s.value + penalties.value(&s.lambda, &s.theta);
    let mut objective = total(&state);
    let mut at = pack(&state.lambda, &state.theta, 1.0);
    let mut slopes = problem.slopes(&state);
    let mut gradient = packed(&slopes);
    let mut history = History::default();
    let mut record = Record::new(watch);
    let mut iterations = 0;
    loop {
        let violation = problem.violation(&state, &slopes, penalties);
        if let Some(stop) = record.verdict((&state, violation), objective, params, iterations, PATIENCE) {
            return Ok(record.finish(state, stop, iterations));
        }
        iterations += 1;
        let pseudo = pseudo_gradient(&at, &gradient, &weights);
        let mut moved = None;
        // With what was remembered, and if that leads nowhere, without.
        for fresh in [false, true] {
            if fresh {
                history.clear();
            }
            let first = history.is_empty();
            let mut direction = history.direction(&pseudo);
            for ((d, g), w) in direction.iter_mut().zip(&pseudo).zip(&weights) {
                if *w > 0.0 && *d * g >= 0.0 {
                    *d = 0.0;
                }
            }
            let length = if first { 1.0 / dot(&pseudo, &pseudo).sqrt().max(1.0) } else { 1.0 };
            moved = search(problem, &total, objective, &at, &pseudo, &direction, &weights, length);
            if moved.is_some() {
                break;
            }
        }
        let Some((next, place)) = moved else {
            return Ok(record.finish(state, Stop::Precision, iterations));
        };
        objective = total(&next);
        slopes = problem.slopes(&next);
        let after = packed(&slopes);
        let minus = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<f64>>();
        history.push(minus(&place, &at), minus(&after, &gradient));
        (at, gradient, state) = (place, after, next);
    }
}

/// Halves the step until the objective falls enough; `None` if it never does.
#[allow(clippy::too_many_arguments)]
fn search(
    problem: &Gaussian,
    total: &impl Fn(&State) -> f64,
    before: f64,
    at: &[f64],
    pseudo: &[f64],
    direction: &[f64],
    weights: &[f64],
    length: f64,
) -> Option<(State, Vec<f64>)> {
    let mut step = length;
    for _ in 0..60 {
        let place: Vec<f64> = (0..at.len())
            .map(|k| {
                let value = at[k] + step * direction[k];
                let side = if at[k] != 0.0 { at[k] } else { -pseudo[k] };
                if weights[k] > 0.0 && value * side <= 0.0 { 0.0 } else { value }
            })
            .collect();
        let promised: f64 = (0..at.len()).map(|k| pseudo[k] * (place[k] - at[k])).sum();
        if promised < 0.0 {
            let (lambda, theta) = unpack(&place, problem.inputs(), problem.outputs());
            let next = problem.state(lambda, theta).filter(|s| total(s) <= before + ARMIJO * promised);
            if let Some(next) = next {
                return Some((next, place));
            }
        }
        step *= 0.5;
    }
    None
}

/// The steepest slope among the subgradients, 0 where none leads down.
fn pseudo_gradient(at: &[f64], gradient: &[f64], weights: &[f64]) -> Vec<f64> {
    let one = |((&v, &g), &w): ((&f64, &f64), &f64)| match v {
        v if v > 0.0 => g + w,
        v if v < 0.0 => g - w,
        _ if g + w < 0.0 => g + w,
        _ if g - w > 0.0 => g - w,
        _ => 0.0,
    };
    at.iter().zip(gradient).zip(weights).map(one).collect()
}

/// Steps and changes of the gradient.
#[derive(Default)]
struct History(VecDeque<(Vec<f64>, Vec<f64>, f64)>);

impl History {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    fn push(&mut self, step: Vec<f64>, change: Vec<f64>) {
        let along = dot(&step, &change);
        if along > 1e-14 * dot(&change, &change) {
            self.0.push_back((step, change, along));
        }
        if self.0.len() > MEMORY {
            self.0.pop_front();
        }
    }

    /// `-H g`, by the two loops of Nocedal (1980).
    fn direction(&self, gradient: &[f64]) -> Vec<f64> {
        let mut q: Vec<f64> = gradient.iter().map(|g| -g).collect();
        let add = |q: &mut Vec<f64>, by: f64, v: &[f64]| q.iter_mut().zip(v).for_each(|(q, v)| *q += by * v);
        let mut shares = Vec::new();
        for (step, change, along) in self.0.iter().rev() {
            let share = dot(step, &q) / along;
            add(&mut q, -share, change);
            shares.push(share);
        }
        if let Some((_, change, along)) = self.0.back() {
            let scale = along / dot(change, change);
            q.iter_mut().for_each(|q| *q *= scale);
        }
        for ((step, change, along), share) in self.0.iter().zip(shares.into_iter().rev()) {
            let back = dot(change, &q) / along;
            add(&mut q, share - back, step);
        }
        q
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The upper triangle column by column, off the diagonal times `twice`, then Θ.
fn pack(lambda: &Dense, theta: &Dense, twice: f64) -> Vec<f64> {
    let pairs = (0..lambda.cols()).flat_map(|j| (0..=j).map(move |i| (i, j)));
    let upper = pairs.map(|(i, j)| if i == j { lambda.get(i, j) } else { twice * lambda.get(i, j) });
    upper.chain(theta.values().iter().copied()).collect()
}

fn packed(slopes: &Slopes) -> Vec<f64> {
    pack(&slopes.lambda, &slopes.theta, 2.0)
}

fn unpack(values: &[f64], n: usize, p: usize) -> (Dense, Dense) {
    let upper = |i: usize, j: usize| values[j * (j + 1) / 2 + i];
    let lambda = Dense::from_fn(p, p, |i, j| upper(i.min(j), i.max(j)));
    let from = p * (p + 1) / 2;
    (lambda, Dense::from_fn(n, p, |i, j| values[from + i + j * n]))
}

fn weights(penalties: &Penalties, n: usize, p: usize) -> Vec<f64> {
    let lambda = Dense::from_fn(p, p, |i, j| penalties.of_lambda(i, j).l1);
    let theta = Dense::from_fn(n, p, |_, _| penalties.theta);
    pack(&lambda, &theta, 2.0)
}
