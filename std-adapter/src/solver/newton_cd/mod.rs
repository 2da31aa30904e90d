//! Newton coordinate descent for sparse Gaussian CRFs.
//!
//! Objective: `f(Λ, Θ) + λ_Λ‖Λ‖_{1,*} + λ_Θ‖Θ‖₁` with `f` of [`objective::gaussian`](crate::objective::gaussian) (SGCRF eq. 3 and Algorithms 1 and 2 with the
//! corrections of SEEDS.md; McCarter & Kim 2016 for the alternating form). Input: data and penalties; output: `Λ` (positive definite), `Θ`.
//! Stops when the subdifferential violation (the largest entry of the least subgradient) is at most `tolerance`.
//!
//! Three schedules over the same sweeps:
//! - [`Schedule::Joint`], SGCRF Algorithm 1: one quadratic model of both, then one line search.
//! - [`Schedule::Alternating`]: a Newton step in Λ with its line search, then sweeps over Θ, where `f` is quadratic and needs none.
//! - [`Schedule::Auto`]: as the latter, and after it a joint Newton step in the entries that are not 0, some of which it may find to be 0 (`subspace`): alternation alone
//!   converges no faster than Λ and Θ are coupled, this ends it in a few steps. Early steps work with larger penalties (`Penalties::times_at`), as a warm-started path of one step a
//!   penalty would: going to λ at once from nothing fills Λ and Θ with entries that later steps have to take out again.
//!
//! How ours differs from the paper: `S_xx` is never formed (a column of Θ is a Lasso in `X` itself, `O(m)` an update), columns of Θ are visited in blocks so that `(Z - KΔ_Λ)Σ` is
//! a matrix product, sweeps end when they move little compared with the violation, and Λ begins with the best diagonal one instead of I; [`Schedule::Auto`] begins with neighbourhoods
//! (`begin`) where that one is far from the optimum. From there it works with the penalties asked for, alternates a few times a step, and lets in only so many entries at a time.

mod begin;
mod blocks;
mod curvature;
pub(super) mod gather;
mod neighbours;
mod record;
mod subspace;
mod sweep;

use crate::linalg::Dense;
use crate::objective::gaussian::{Gaussian, Penalties, Slopes, State};
use crate::solver::monitor::Stop;
pub(super) use record::{Record, Seen};
use subspace::{SubspaceParams, newton_step};
use sweep::{Active, Direction, Model};

/// In which order Λ and Θ move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// Both in one Newton step (SGCRF Algorithm 1).
    Joint,
    /// One after the other (McCarter & Kim 2016).
    Alternating,
    /// One after the other, then both on the entries that are not 0.
    Auto,
}

/// Settings of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NewtonParams {
    /// What is penalised how much.
    pub penalties: Penalties,
    /// The violation that ends the run.
    pub tolerance: f64,
    /// Most outer iterations.
    pub max_iterations: u64,
    /// Which order.
    pub schedule: Schedule,
    /// Most bytes for the factors of the preconditioner of [`Schedule::Auto`].
    pub preconditioner: u64,
}

/// A look at a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GaussianPoint {
    /// Seconds since it began.
    pub seconds: f64,
    /// Outer iterations so far.
    pub iterations: u64,
    /// `λ_Λ`.
    pub lambda: f64,
    /// The objective.
    pub objective: f64,
    /// The subdifferential violation.
    pub violation: f64,
    /// Entries of Λ that are not 0, both triangles.
    pub nonzeros_lambda: usize,
    /// Entries of Θ that are not 0.
    pub nonzeros_theta: usize,
}

/// Receives each [`GaussianPoint`]; returns whether to go on.
pub type GaussianWatch<'a> = dyn Fn(&GaussianPoint) -> bool + Sync + 'a;

/// How a run went.
#[derive(Clone, Debug, PartialEq)]
pub struct NewtonInfo {
    /// The objective, penalty included.
    pub objective: f64,
    /// The subdifferential violation there.
    pub violation: f64,
    /// Outer iterations.
    pub iterations: u64,
    /// Why it ended.
    pub stop: Stop,
    /// What was seen on the way.
    pub trace: Vec<GaussianPoint>,
}

/// Where a run ended.
#[derive(Clone, Debug)]
pub struct NewtonSolution {
    /// `Λ`, positive definite.
    pub lambda: Dense,
    /// `Θ`.
    pub theta: Dense,
    /// How it went.
    pub info: NewtonInfo,
}

/// Why a run could not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewtonError {
    /// The Λ to start from is not positive definite.
    Start,
}

impl std::fmt::Display for NewtonError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the Λ to start from is not positive definite")
    }
}

impl std::error::Error for NewtonError {}

/// The share of the predicted decrease that a step has to bring (Algorithm 1's σ), and how much a step is shortened (its β).
const DECREASE: f64 = 1e-3;
const SHRINK: f64 = 0.5;
/// Rounds of a joint step (see `subspace`), and most conjugate gradient iterations in each.
const ROUNDS: usize = 6;
const CONJUGATE: usize = 500;
/// The least share of a residual that conjugate gradients are asked to reach.
const FINEST: f64 = 1e-4;
/// From a start near the optimum: how often Λ and Θ take turns before a joint step, unless that brings less than this share of what the first turn brought; and how many entries may come
/// in for each that is there. A turn costs a hundredth of a joint step (`sec51`, p = 1000), and without the limit the first one makes a Λ of 66,000 entries one of 367,000.
const ALTERNATIONS: usize = 4;
const LITTLE: f64 = 0.2;
const NEW: f64 = 0.3;
/// Iterations in a row without a lower violation or a lower objective after which rounding is blamed; plain alternation may be slow, which is no rounding.
const PATIENCE: u32 = 30;
const PATIENCE_ALTERNATING: u32 = 500;

/// Differences of the objective below this are rounding: it is a sum of terms of about this size, one or more for each output.
pub(super) fn rounding(problem: &Gaussian, objective: f64) -> f64 {
    1e-14 * (objective.abs() + problem.outputs() as f64)
}

/// Minimises from a given start; inside [`Par::run`](crate::par::Par::run).
///
/// ```
/// use gibbsite::objective::gaussian::{Gaussian, Penalties};
/// use gibbsite::{linalg::Dense, par::Par, solver::newton_cd::{NewtonParams, Schedule, minimize}};
/// let y = Dense::from_fn(4, 1, |i, _| [1.0, -1.0, 2.0, -2.0][i]);
/// let x = Dense::from_fn(4, 1, |i, _| [0.0, 0.0, 1.0, -1.0][i]);
/// let problem = Gaussian::new(x, y, Par::Seq);
/// let penalties = Penalties { lambda: 0.1, theta: 5.0, diagonal: false };
/// let params = NewtonParams { penalties, tolerance: 1e-9, max_iterations: 100, schedule: Schedule::Auto, preconditioner: u64::MAX };
/// let found = minimize(&problem, problem.start(&penalties), &params, None)?;
/// assert!((found.lambda.get(0, 0) - 0.4).abs() < 1e-9); // one over the mean square of y
/// assert_eq!(found.theta.get(0, 0), 0.0);
/// # Ok::<(), gibbsite::solver::newton_cd::NewtonError>(())
/// ```
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
    let mut record = Record::new(watch);
    let (mut iterations, mut near) = (0, false);
    let mut times = if params.schedule == Schedule::Auto { f64::INFINITY } else { 1.0 };
    let patience = if params.schedule == Schedule::Alternating { PATIENCE_ALTERNATING } else { PATIENCE };
    loop {
        let slopes = problem.slopes(&state);
        let violation = problem.violation(&state, &slopes, penalties);
        let objective = state.value + penalties.value(&state.lambda, &state.theta);
        let at = (&state, violation);
        if let Some(stop) = record.verdict(at, objective, params, iterations, patience) {
            return Ok(record.finish(state, stop, iterations));
        }
        if iterations == 0 && params.schedule == Schedule::Auto && begin::is_far(&state, violation, penalties)
        {
            let worth =
                |other: &State| other.value + penalties.value(&other.lambda, &other.theta) < objective;
            if let Some(other) = begin::begin(problem, penalties).filter(worth) {
                (state, near, times) = (other, true, 1.0);
                iterations += 1;
                continue;
            }
        }
        if params.schedule == Schedule::Auto {
            // Never up again.
            times = penalties.times_at(violation).min(times);
        }
        let stage = &penalties.scaled(times);
        let active = Active::new(&state, &slopes, stage);
        let enough = 0.1 * violation;
        state = match params.schedule {
            Schedule::Joint => joint(problem, state, &slopes, penalties, &active, enough, iterations),
            Schedule::Alternating => {
                let state = step_lambda(problem, state, &slopes, penalties, &active, enough, 10);
                step_theta(problem, state, penalties, &active, enough, (3, 3))
            }
            // Sweeps only find the non-zeros here, conjugate gradients do the rest.
            Schedule::Auto => {
                let rounds = if near { ALTERNATIONS } else { 1 };
                let state = alternate(problem, state, (slopes, active), stage, enough, rounds);
                // More exact as the optimum comes near, but not more than the tolerance needs.
                let scale = penalties.lambda.max(penalties.theta);
                let wanted = if scale > 0.0 { (0.5 * violation / scale).clamp(FINEST, 0.1) } else { FINEST };
                let reduction = wanted.max(0.5 * params.tolerance / violation).min(0.3);
                step_both(problem, state, stage, reduction, params.preconditioner)
            }
        };
        iterations += 1;
    }
}

/// Λ and Θ in turn, 1 round or more: until one brings little compared with the first. With more than one, only the entries with the largest slopes come in (see [`Active::limit`]).
fn alternate(
    problem: &Gaussian,
    mut state: State,
    (mut slopes, mut active): (Slopes, Active),
    penalties: &Penalties,
    enough: f64,
    rounds: usize,
) -> State {
    let objective = |state: &State| state.value + penalties.value(&state.lambda, &state.theta);
    let (mut before, mut first) = (objective(&state), 0.0);
    for round in 0..rounds {
        if round > 0 {
            slopes = problem.slopes(&state);
            active = Active::new(&state, &slopes, penalties);
        }
        if rounds > 1 {
            active.limit(&state, &slopes, NEW);
        }
        state = step_lambda(problem, state, &slopes, penalties, &active, enough, 3);
        state = step_theta(problem, state, penalties, &active, enough, (1, 2));
        let after = objective(&state);
        if round == 0 {
            first = before - after;
        } else if before - after < LITTLE * first {
            break;
        }
        before = after;
    }
    state
}

/// SGCRF Algorithm 1's iteration.
fn joint(
    problem: &Gaussian,
    state: State,
    slopes: &Slopes,
    penalties: &Penalties,
    active: &Active,
    enough: f64,
    iteration: u64,
) -> State {
    let model = Model { problem, state: &state, penalties, active };
    let mut step = Direction::zero(problem, active);
    // As in Hsieh et al. 2011: more exact directions as the optimum comes near.
    let passes = (2 + 2 * iteration as usize).min(60);
    for _ in 0..passes {
        let a = model.sweep_lambda(slopes, &mut step, enough, 1);
        let b = model.sweep_theta(&slopes.e, &mut step, enough, 1, 2);
        if a.max(b) <= enough {
            break;
        }
    }
    let mut delta = Dense::zeros(problem.inputs(), problem.outputs());
    step.add_theta(active, &mut delta);
    let slope = slopes.lambda.dot(&step.lambda) + slopes.theta.dot(&delta);
    search(problem, state, penalties, &step.lambda, Some((&delta, &step.z)), slope)
}

/// A Newton step in Λ alone.
fn step_lambda(
    problem: &Gaussian,
    state: State,
    slopes: &Slopes,
    penalties: &Penalties,
    active: &Active,
    enough: f64,
    sweeps: usize,
) -> State {
    let model = Model { problem, state: &state, penalties, active };
    let mut step = Direction::zero(problem, active);
    model.sweep_lambda(slopes, &mut step, enough, sweeps);
    let slope = slopes.lambda.dot(&step.lambda);
    search(problem, state, penalties, &step.lambda, None, slope)
}

/// Sweeps over Θ, Λ held: the model is the objective.
fn step_theta(
    problem: &Gaussian,
    state: State,
    penalties: &Penalties,
    active: &Active,
    enough: f64,
    (passes, inner): (usize, usize),
) -> State {
    let model = Model { problem, state: &state, penalties, active };
    let mut step = Direction::zero(problem, active);
    if model.sweep_theta(&problem.errors(&state), &mut step, enough, passes, inner) == 0.0 {
        return state;
    }
    let (mut theta, mut r) = (state.theta.clone(), state.r.clone());
    step.add_theta(active, &mut theta);
    r.values_mut().iter_mut().zip(step.z.values()).for_each(|(r, z)| *r += z);
    problem.with_theta(state, theta, r)
}

/// A Newton step in the entries of both that are not 0. One that would change its sign becomes 0.
fn step_both(problem: &Gaussian, state: State, penalties: &Penalties, reduction: f64, bytes: u64) -> State {
    let before = state.value + penalties.value(&state.lambda, &state.theta);
    // The rounds that find out what becomes 0 may put too much there; the plain step always leads down.
    for rounds in [ROUNDS, 1] {
        let params = SubspaceParams { iterations: CONJUGATE, rounds, reduction, bytes };
        let (dl, dt, slope) = newton_step(problem, &state, penalties, &params);
        let mut share = if slope < 0.0 { 1.0 } else { 0.0 };
        while share > 1e-3 {
            let lambda = moved(&state.lambda, &dl, share, true, penalties.diagonal);
            let theta = moved(&state.theta, &dt, share, false, true);
            let next = problem.state(lambda, theta);
            if let Some(next) = next.filter(|next| {
                let after = next.value + penalties.value(&next.lambda, &next.theta);
                // Near the optimum a step is worth less than the rounding of a few sums.
                after <= before + DECREASE * share * slope + 10.0 * rounding(problem, before)
            }) {
                return next;
            }
            share *= SHRINK;
        }
    }
    state
}

/// Makes Λ exactly symmetric: an entry that is 0 in one triangle and only nearly so in the other would count as one that may move by itself.
fn mirror(lambda: &mut Dense) {
    for j in 0..lambda.cols() {
        for i in 0..j {
            let value = lambda.get(i, j);
            lambda.set(j, i, value);
        }
    }
}

/// `a + share·d`, but 0 where that has another sign than `a`; `square` ones keep their diagonal.
fn moved(a: &Dense, d: &Dense, share: f64, square: bool, diagonal: bool) -> Dense {
    let mut out = a.clone();
    for j in 0..a.cols() {
        for (i, (out, d)) in out.col_mut(j).iter_mut().zip(d.col(j)).enumerate() {
            let new = *out + share * d;
            let free = square && i == j && !diagonal;
            *out = if *d != 0.0 && !free && new * *out <= 0.0 { 0.0 } else { new };
        }
    }
    if square {
        mirror(&mut out);
    }
    out
}

/// Algorithm 1's line search: the longest of `1, β, β², …` for which Λ stays positive definite (its Cholesky factor exists) and the objective falls enough;
/// the slope is that of SEEDS.md. Stays where it is if there is none.
fn search(
    problem: &Gaussian,
    state: State,
    penalties: &Penalties,
    dl: &Dense,
    inputs: Option<(&Dense, &Dense)>,
    slope: f64,
) -> State {
    let added = |a: &Dense, d: &Dense, share: f64| {
        let mut out = a.clone();
        out.values_mut().iter_mut().zip(d.values()).for_each(|(a, d)| *a += share * d);
        out
    };
    let start = penalties.value(&state.lambda, &state.theta);
    let before = state.value + start;
    let full = penalties.value(
        &added(&state.lambda, dl, 1.0),
        &inputs.map_or_else(|| state.theta.clone(), |(dt, _)| added(&state.theta, dt, 1.0)),
    );
    let predicted = slope + full - start;
    let mut share = 1.0;
    while share > 1e-10 {
        let mut lambda = added(&state.lambda, dl, share);
        mirror(&mut lambda);
        let next = match inputs {
            None => problem.state_with(lambda, state.theta.clone(), state.r.clone()),
            Some((dt, z)) => {
                problem.state_with(lambda, added(&state.theta, dt, share), added(&state.r, z, share))
            }
        };
        if let Some(next) = next {
            let after = next.value + penalties.value(&next.lambda, &next.theta);
            if after <= before + DECREASE * share * predicted + rounding(problem, before) {
                return next;
            }
        }
        share *= SHRINK;
    }
    state
}
