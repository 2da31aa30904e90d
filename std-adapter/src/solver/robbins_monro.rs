//! Stochastic approximation: for objectives whose gradient is an estimate that is drawn anew each time, and whose value is not known.
//!
//! Finds where `E[g(θ)] + C₂θ = 0`:
//!
//! ```text
//! s ← 0.9·s + 0.1·g²,   θ ← θ - η·(1 + t/10)^-0.7·g/√s,   θ̄ = the mean of the second half of all θ
//! ```
//!
//! Inputs: an objective (its value is not looked at), a start. Output: `θ̄`. Ends after `rounds` steps, or when the watcher says so. Then the gradient at `θ̄`, the mean
//! of several draws, is the violation; it has converged if each entry is at most `tolerance` of the largest at the start plus three standard errors of the draws. Source: Robbins & Monro 1951, with steps in units of the gradient's
//! recent size (Tieleman & Hinton 2012: a large gradient at the start does not slow the end) and the averages of Polyak & Juditsky 1992. Thesis 2.4.1 learns large models by stochastic gradients with Gibbs sampling.

use super::lbfgs::{LbfgsError, LbfgsInfo, Point, Smooth, State, Stop, Watch};
use std::time::Instant;

/// How to run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RobbinsMonroParams {
    /// `C₂`, weight of `½‖θ‖²`.
    pub l2: f64,
    /// `η`, about the largest first step of a parameter.
    pub step: f64,
    /// Steps.
    pub rounds: u64,
    /// Converged if the violation at the end is at most this share of that at the start, apart from what the draws leave uncertain.
    pub tolerance: f64,
}

impl Default for RobbinsMonroParams {
    fn default() -> Self {
        Self { l2: 0.0, step: 0.3, rounds: 200, tolerance: 0.02 }
    }
}

/// Draws of the gradient at the end.
const DRAWS: usize = 8;

/// Runs; the objective in the points is NaN, because nobody knows it.
///
/// ```
/// use gibbsite::solver::lbfgs::Smooth;
/// use gibbsite::solver::robbins_monro::{RobbinsMonroParams, approximate};
/// /// ½(θ - 3)² with a disturbance that comes and goes.
/// struct Shaken(u32);
/// impl Smooth for Shaken {
///     fn len(&self) -> usize {
///         1
///     }
///     fn value_gradient(&mut self, theta: &[f64], gradient: &mut [f64]) -> f64 {
///         self.0 += 1;
///         gradient[0] = theta[0] - 3.0 + if self.0 % 2 == 0 { 0.5 } else { -0.5 };
///         f64::NAN
///     }
/// }
/// let (state, info) = approximate(&mut Shaken(0), vec![0.0], &RobbinsMonroParams::default(), &mut |_, _| true)?;
/// assert!((state.theta()[0] - 3.0).abs() < 0.05 && info.stop.is_converged());
/// # Ok::<(), gibbsite::solver::lbfgs::LbfgsError>(())
/// ```
///
/// # Errors
/// [`LbfgsError::Length`], or [`LbfgsError::Parameter`] if a gradient is not finite.
pub fn approximate(
    objective: &mut dyn Smooth,
    start: Vec<f64>,
    params: &RobbinsMonroParams,
    watch: &mut Watch<'_>,
) -> Result<(State, LbfgsInfo), LbfgsError> {
    let begin = Instant::now();
    let n = objective.len();
    if start.len() != n {
        return Err(LbfgsError::Length { expected: n, found: start.len() });
    }
    let mut state = State::new(start);
    let (mut gradient, mut squares) = (vec![0.0; n], vec![0.0; n]);
    let (mut sum, mut averaged) = (vec![0.0; n], 0.0);
    let (mut trace, mut stop) = (Vec::new(), Stop::Iterations);
    let mut first = None;
    for round in 0..params.rounds {
        let violation = penalised(objective, &state.theta, params.l2, &mut gradient)?;
        let at_start = *first.get_or_insert(violation);
        let point = look(&state.theta, round, violation, begin);
        trace.push(point);
        if !watch(&point, &state) {
            stop = Stop::Interrupted;
            break;
        }
        if at_start == 0.0 {
            break;
        }
        let step = params.step * (1.0 + round as f64 / 10.0).powf(-0.7);
        let keep = if round == 0 { 0.0 } else { 0.9 };
        for ((theta, g), s) in state.theta.iter_mut().zip(&gradient).zip(&mut squares) {
            *s = keep * *s + (1.0 - keep) * g * g;
            *theta -= if *s > 0.0 { step * g / s.sqrt() } else { 0.0 };
        }
        if 2 * (round + 1) > params.rounds {
            averaged += 1.0;
            sum.iter_mut().zip(&state.theta).for_each(|(sum, t)| *sum += t);
        }
    }
    if averaged > 0.0 {
        state.theta.iter_mut().zip(&sum).for_each(|(t, sum)| *t = sum / averaged);
    }
    let (mut mean, mut square) = (vec![0.0; n], vec![0.0; n]);
    for _ in 0..DRAWS {
        penalised(objective, &state.theta, params.l2, &mut gradient)?;
        mean.iter_mut().zip(&gradient).for_each(|(m, g)| *m += g / DRAWS as f64);
        square.iter_mut().zip(&gradient).for_each(|(s, g)| *s += g * g / DRAWS as f64);
    }
    let violation = largest(&mean);
    let allowed = params.tolerance * first.unwrap_or(violation);
    let within = |(m, s): (&f64, &f64)| {
        let error = ((s - m * m).max(0.0) / (DRAWS - 1) as f64).sqrt();
        m.abs() <= allowed + 3.0 * error
    };
    if stop != Stop::Interrupted && mean.iter().zip(&square).all(within) {
        stop = Stop::Tolerance;
    }
    let mut end = look(&state.theta, trace.len() as u64, violation, begin);
    end.evaluations += DRAWS as u64;
    trace.push(end);
    Ok((state, LbfgsInfo { end, stop, trace }))
}

/// `g + C₂θ`; returns its largest entry.
fn penalised(
    objective: &mut dyn Smooth,
    theta: &[f64],
    l2: f64,
    gradient: &mut [f64],
) -> Result<f64, LbfgsError> {
    objective.value_gradient(theta, gradient);
    gradient.iter_mut().zip(theta).for_each(|(g, t)| *g += l2 * t);
    match gradient.iter().position(|g| !g.is_finite()) {
        Some(j) => Err(LbfgsError::Parameter(j)),
        None => Ok(largest(gradient)),
    }
}

fn largest(gradient: &[f64]) -> f64 {
    gradient.iter().fold(0.0, |most, g| g.abs().max(most))
}

fn look(theta: &[f64], round: u64, violation: f64, begin: Instant) -> Point {
    Point {
        iterations: round,
        evaluations: round,
        objective: f64::NAN,
        violation,
        nonzeros: theta.iter().filter(|t| **t != 0.0).count(),
        seconds: begin.elapsed().as_secs_f64(),
    }
}
