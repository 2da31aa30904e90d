//! The Newton step in the entries that are not 0: conjugate gradients, and rounds of an active set.
//!
//! Minimises the quadratic model of `f + penalty` at `(Λ, Θ)` over the entries that are not 0, where none may change its sign: `H_FF d_F = -(g + λ sign)_F - H_FC d_C` for those
//! that stay (`F`), `d_C = -(Λ, Θ)_C` for those that become 0. It begins with `C` empty; whatever the solution would take past 0 joins `C`, and the others are solved
//! for again (primal-dual active sets; Hintermüller, Ito & Kunisch 2002). Putting such entries to 0 without that loses nearly all of a step where entries are strongly coupled: on the bench's
//! `sec51`, p = 50, the accepted share of steps was about 1/32, and is 1 now. Which entries of the complement should come in is for the sweeps to say.
//!
//! Input: state and penalties; output: the step and its slope; a round ends when the largest entry of the residual is at most `reduction` times that of the right side.
//! `H` is of [`curvature`](super::curvature), preconditioned by [`Blocks`]; products with it are in single precision where Λ is sparse, and the residual that ends the last round is
//! computed in double precision: where that disagrees, the next round goes on from it, in double precision if single precision brought less than a half.

use super::blocks::Blocks;
use super::curvature::{Support, System, Vector};
use crate::linalg::Dense;
use crate::objective::gaussian::{Gaussian, Penalties, State};
use crate::solver::conjugate::{Conjugate, Operator};

/// How many steps, and how exactly.
#[derive(Clone, Copy, Debug)]
pub(super) struct SubspaceParams {
    pub(super) iterations: usize,
    /// How often entries that would change their signs are put to 0 and the others solved for again.
    pub(super) rounds: usize,
    /// Done when the residual is this share of the right side.
    pub(super) reduction: f64,
    /// Most bytes for the factors of the preconditioner.
    pub(super) bytes: u64,
}

/// The step as matrices `(Δ_Λ, Δ_Θ)`, and how fast the objective changes along it.
pub(super) fn newton_step(
    problem: &Gaussian,
    state: &State,
    penalties: &Penalties,
    params: &SubspaceParams,
) -> (Dense, Dense, f64) {
    let lambda = Support::of(&state.lambda, |i, j, v| i == j || v != 0.0);
    let theta = Support::of(&state.theta, |_, _, v| v != 0.0);
    let (mut found, mut free) =
        (Vector::constant(0.0, &lambda, &theta), Vector::constant(1.0, &lambda, &theta));
    let mut system = System::new(problem, state, lambda, theta);
    let (right, at) = (system.right_side(penalties), system.current());
    let start = right.largest();
    let (enough, rough) = (params.reduction * start, params.reduction.max(ROUGH) * start);
    let mut residual = right.clone();
    let mut blocks = Blocks::new(&system, &free, params.bytes);
    let (mut left, mut since) = (system.lambda.len() + system.theta.len(), 0);
    let mut single = params.rounds > 1 && system.go_single();
    for round in 1..=params.rounds {
        if since > left / STALE {
            drop(blocks);
            blocks = Blocks::new(&system, &free, params.bytes);
            (left, since) = (left - since, 0);
        }
        residual.zip(&free, |r, f| *r *= f);
        let before = residual.largest();
        let mut run = Conjugate::new(&Free { system: &system, blocks: &blocks, free: &free }, &residual);
        let mut steps = params.iterations;
        let mut go_on = |free: &Vector, place: (&mut Vector, &mut Vector), enough: f64| {
            let system = Free { system: &system, blocks: &blocks, free };
            run.until(&system, place, &mut steps, |r, _| r.largest() <= enough);
        };
        if round == params.rounds {
            go_on(&free, (&mut found, &mut residual), enough);
            break;
        }
        go_on(&free, (&mut found, &mut residual), rough);
        let mut crossed = stop_at_zero(&system, &at, &mut free, &mut found, penalties.diagonal);
        if crossed == 0 && rough > enough {
            // Nothing has changed: the same run goes on.
            go_on(&free, (&mut found, &mut residual), enough);
            crossed = stop_at_zero(&system, &at, &mut free, &mut found, penalties.diagonal);
        }
        if crossed == 0 && !single {
            break;
        }
        since += crossed;
        residual = right.clone();
        residual.zip(&system.apply_exactly(&found), |r, t| *r -= t);
        if crossed == 0 {
            // What single precision says is believed only as far as double precision confirms it.
            residual.zip(&free, |r, f| *r *= f);
            let after = residual.largest();
            if after <= 2.0 * enough {
                break;
            }
            if after > 0.5 * before {
                system.go_double();
                single = false;
            }
        }
    }
    let slope = -found.dot(&right);
    let (dl, dt) = system.matrices(&found);
    (dl, dt, slope)
}

/// How exactly a step is solved while it is not known which entries it takes to 0.
const ROUGH: f64 = 0.1;
/// The preconditioner is formed again when one of so many entries is free no more; until then their places in it are masked.
const STALE: usize = 8;

/// Entries that `found` would take past 0 stop there and are free no more. How many.
fn stop_at_zero(
    system: &System<'_>,
    at: &Vector,
    free: &mut Vector,
    found: &mut Vector,
    diagonal: bool,
) -> usize {
    let mut crossed = 0;
    for j in 0..system.problem.outputs() {
        for k in system.lambda.range(j).filter(|&k| system.lambda.rows[k] as usize <= j) {
            let past = at.lambda[k] * (at.lambda[k] + found.lambda[k]) <= 0.0;
            let counts = diagonal || system.lambda.rows[k] as usize != j;
            if free.lambda[k] != 0.0 && counts && past {
                // Rounding may differ between the triangles, what becomes 0 may not.
                for k in [k, system.mirror[k] as usize] {
                    (free.lambda[k], found.lambda[k]) = (0.0, -at.lambda[k]);
                }
                crossed += 1;
            }
        }
    }
    for ((free, found), at) in free.theta.iter_mut().zip(&mut found.theta).zip(&at.theta) {
        if *free != 0.0 && at * (at + *found) <= 0.0 {
            (*free, *found) = (0.0, -at);
            crossed += 1;
        }
    }
    crossed
}

/// The Hessian in the entries that are free.
struct Free<'a> {
    system: &'a System<'a>,
    blocks: &'a Blocks,
    free: &'a Vector,
}

impl Operator for Free<'_> {
    type Vector = Vector;

    fn apply(&self, v: &Vector) -> Vector {
        let mut out = self.system.apply(v);
        out.zip(self.free, |v, f| *v *= f);
        out
    }

    fn scaled(&self, r: &Vector) -> Vector {
        let mut out = self.blocks.apply(self.system, r);
        out.zip(self.free, |v, f| *v *= f);
        out
    }

    fn dot(&self, a: &Vector, b: &Vector) -> f64 {
        a.dot(b)
    }

    fn add(&self, a: &mut Vector, by: f64, b: &Vector) {
        a.zip(b, |a, b| *a += by * b);
    }
}
