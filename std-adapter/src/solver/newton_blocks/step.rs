//! A Newton step in the entries that may move: an orthant, conjugate gradients, rounds of an active set, a line search.
//!
//! Each entry has the sign that it has, or, if it is 0 and should not be, the one that its slope asks for; within those signs the objective is smooth. Minimises its quadratic model there:
//! `H_FF d_F = -(g + λ sign)_F - H_FC d_C` for the entries that keep their signs (`F`), `d_C = -(Λ, Θ)_C` for those that become 0. It begins with `C` empty; whatever the solution would take past 0 joins `C`, and
//! the others are solved for again (primal-dual active sets, Hintermüller, Ito & Kunisch 2002; as `newton_cd::subspace` does it, where sweeps have chosen the entries before). Then the
//! longest of `1, ½, ¼, …` of the step for which Λ has a factor and the objective falls enough, entries stopping at 0. Where no such step is found, a step scaled by the Hessian's diagonal, which
//! always leads down, takes its place.

use super::active::{Active, Vector};
use super::precondition::diagonal;
use super::samples::{Ground, Means, Point, Samples, Slopes};
use crate::objective::gaussian::Penalties;
use crate::solver::conjugate::{Conjugate, Operator};

/// How exactly.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepParams {
    /// Done when the residual is this share of the right side.
    pub(super) reduction: f64,
    /// This share of the Hessian's diagonal is added to it: more inputs than samples make it singular, and the way to the next entry that becomes 0 must not be endless.
    pub(super) damping: f64,
    /// Differences of the objective below this are rounding.
    pub(super) rounding: f64,
}

/// The share of the predicted decrease that a step has to bring, and how much a step is shortened.
const DECREASE: f64 = 1e-3;
const SHRINK: f64 = 0.5;
/// Rounds of a step, and most conjugate gradient iterations in all of them.
const ROUNDS: usize = 6;
const CONJUGATE: usize = 500;
/// How exactly a step is solved while it is not known which entries it takes to 0.
const ROUGH: f64 = 0.1;

/// Signs of the orthant: 0 for entries without penalty, which may have any.
struct Orthant {
    lambda: Vec<i8>,
    theta: Vec<i8>,
}

/// Where the system is.
pub(super) struct Place<'a> {
    pub(super) samples: &'a Samples<'a>,
    pub(super) ground: &'a Ground,
    pub(super) point: &'a Point,
    pub(super) means: &'a Means<'a>,
    pub(super) slopes: &'a Slopes,
}

impl Place<'_> {
    /// The damped Hessian times `v`.
    fn apply(&self, scale: &Vector, damping: f64, v: &Vector) -> Vector {
        let mut out = self.samples.curvature(self.ground, self.point, (self.means, &self.slopes.sigma), v);
        for (out, (s, v)) in out.lambda.iter_mut().zip(scale.lambda.iter().zip(&v.lambda)) {
            *out += damping * s * v;
        }
        for (out, (s, v)) in out.theta.iter_mut().zip(scale.theta.iter().zip(&v.theta)) {
            *out += damping * s * v;
        }
        out
    }

    fn active(&self) -> &Active {
        &self.ground.active
    }

    /// The orthant, what is free in it (1, else 0), and `-(g + λ sign)` there.
    fn orthant(&self, penalties: &Penalties) -> (Orthant, Vector, Vector) {
        let mut signs = Orthant { lambda: Vec::new(), theta: Vec::new() };
        let (mut free, mut right) = (self.active().zeros(), self.active().zeros());
        let one = |l1: f64, value: f64, slope: f64| -> (i8, bool, f64) {
            if l1 == 0.0 {
                return (0, true, -slope);
            }
            let down = if value != 0.0 { value < 0.0 } else { slope > 0.0 };
            let sign = if down { -1.0 } else { 1.0 };
            let is_free = value != 0.0 || slope.abs() > l1;
            (if down { -1 } else { 1 }, is_free, if is_free { -(slope + l1 * sign) } else { 0.0 })
        };
        let (at, of) = (&self.point.at, &self.slopes.of);
        for (e, (i, j)) in self.active().pairs.places().enumerate() {
            let l1 = penalties.of_lambda(i, j).l1;
            let (sign, is_free, side) = one(l1, at.lambda[e], of.lambda[e]);
            signs.lambda.push(sign);
            (free.lambda[e], right.lambda[e]) = (f64::from(u8::from(is_free)), side);
        }
        for e in 0..at.theta.len() {
            let (sign, is_free, side) = one(penalties.theta, at.theta[e], of.theta[e]);
            signs.theta.push(sign);
            (free.theta[e], right.theta[e]) = (f64::from(u8::from(is_free)), side);
        }
        (signs, free, right)
    }

    /// The step, and how fast the objective changes along it.
    fn direction(
        &self,
        (signs, mut free, right): (&Orthant, Vector, &Vector),
        rounds: usize,
        &StepParams { reduction, damping, .. }: &StepParams,
    ) -> (Vector, f64) {
        let at = &self.point.at;
        let scale = diagonal(self.samples, self.ground, self.slopes);
        let start = right.largest();
        let (enough, rough) = (reduction * start, reduction.max(ROUGH) * start);
        let mut found = self.active().zeros();
        let mut residual = right.clone();
        let mut left = CONJUGATE;
        for round in 1..=rounds {
            residual.zip(&free, |r, f| *r *= f);
            let mut run =
                Conjugate::new(&Free { place: self, scale: &scale, damping, free: &free }, &residual);
            let mut go_on = |free: &Vector, place: (&mut Vector, &mut Vector), enough: f64| {
                let system = Free { place: self, scale: &scale, damping, free };
                run.until(&system, place, &mut left, |r, _| r.largest() <= enough);
            };
            if round == rounds {
                go_on(&free, (&mut found, &mut residual), enough);
                break;
            }
            go_on(&free, (&mut found, &mut residual), rough);
            let mut crossed = stop_at_zero(signs, at, &mut free, &mut found);
            if crossed == 0 && rough > enough {
                go_on(&free, (&mut found, &mut residual), enough);
                crossed = stop_at_zero(signs, at, &mut free, &mut found);
            }
            if crossed == 0 {
                break;
            }
            residual = right.clone();
            residual.zip(&self.apply(&scale, damping, &found), |r, t| *r -= t);
        }
        let slope = -self.active().dot(&found, right);
        (found, slope)
    }

    /// `at + share·d`, 0 where that has the wrong sign.
    fn moved(&self, signs: &Orthant, d: &Vector, share: f64) -> Vector {
        let mut out = self.point.at.clone();
        let one = |v: &mut f64, d: f64, sign: i8| {
            *v += share * d;
            if f64::from(sign) * *v < 0.0 {
                *v = 0.0;
            }
        };
        out.lambda.iter_mut().zip(&d.lambda).zip(&signs.lambda).for_each(|((v, d), s)| one(v, *d, *s));
        out.theta.iter_mut().zip(&d.theta).zip(&signs.theta).for_each(|((v, d), s)| one(v, *d, *s));
        out
    }

    /// The next point; `None` if rounding leaves none that is better.
    pub(super) fn step(&self, penalties: &Penalties, params: &StepParams) -> Option<Point> {
        let before = self.point.value + self.active().penalty(&self.point.at, penalties);
        let (signs, free, right) = self.orthant(penalties);
        // The rounds that find out what becomes 0 may put too much there; the plain step always leads down.
        for (rounds, least) in [(ROUNDS, 1e-2), (1, 1e-8)] {
            let (d, slope) = self.direction((&signs, free.clone(), &right), rounds, params);
            let mut share = if slope < 0.0 { 1.0 } else { 0.0 };
            while share > least {
                let next = self.samples.point(self.ground, self.moved(&signs, &d, share));
                if let Some(next) = next.filter(|next| {
                    let after = next.value + self.active().penalty(&next.at, penalties);
                    after <= before + DECREASE * share * slope + params.rounding
                }) {
                    return Some(next);
                }
                share *= SHRINK;
            }
        }
        self.scaled_step(penalties, params)
    }

    /// Each entry to the minimum of `g d + ½ c H_ee d² + penalty` for the least of `c = 1, 4, 16, …` for which that bounds the objective.
    fn scaled_step(&self, penalties: &Penalties, params: &StepParams) -> Option<Point> {
        let scale = diagonal(self.samples, self.ground, self.slopes);
        let (at, of) = (&self.point.at, &self.slopes.of);
        let mut times = 1.0;
        while times < 1e12 {
            let mut to = at.clone();
            for (e, (i, j)) in self.active().pairs.places().enumerate() {
                let penalty = penalties.of_lambda(i, j);
                to.lambda[e] = penalty.minimize(at.lambda[e], of.lambda[e], times * scale.lambda[e]);
            }
            let penalty = penalties.of_theta();
            for e in 0..to.theta.len() {
                to.theta[e] = penalty.minimize(at.theta[e], of.theta[e], times * scale.theta[e]);
            }
            let mut d = to.clone();
            d.zip(at, |d, a| *d -= a);
            let mut bent = d.clone();
            bent.zip(&scale, |b, s| *b *= 0.5 * times * s);
            let most = self.point.value + self.active().dot(of, &d) + self.active().dot(&bent, &d);
            let next = self.samples.point(self.ground, to);
            if let Some(next) = next.filter(|next| next.value <= most + params.rounding) {
                return Some(next);
            }
            times *= 4.0;
        }
        None
    }
}

/// Entries that `found` would take past 0 stop there and are free no more. How many.
fn stop_at_zero(signs: &Orthant, at: &Vector, free: &mut Vector, found: &mut Vector) -> usize {
    let mut crossed = 0;
    let mut one = |sign: i8, at: f64, free: &mut f64, found: &mut f64| {
        if *free != 0.0 && sign != 0 && f64::from(sign) * (at + *found) <= 0.0 {
            (*free, *found) = (0.0, -at);
            crossed += 1;
        }
    };
    for (e, &sign) in signs.lambda.iter().enumerate() {
        one(sign, at.lambda[e], &mut free.lambda[e], &mut found.lambda[e]);
    }
    for (e, &sign) in signs.theta.iter().enumerate() {
        one(sign, at.theta[e], &mut free.theta[e], &mut found.theta[e]);
    }
    crossed
}

/// The damped Hessian in the entries that are free, preconditioned by its diagonal.
struct Free<'a> {
    place: &'a Place<'a>,
    scale: &'a Vector,
    damping: f64,
    free: &'a Vector,
}

impl Operator for Free<'_> {
    type Vector = Vector;

    fn apply(&self, v: &Vector) -> Vector {
        let mut out = self.place.apply(self.scale, self.damping, v);
        out.zip(self.free, |v, f| *v *= f);
        out
    }

    fn scaled(&self, r: &Vector) -> Vector {
        let mut out = r.clone();
        out.zip(self.scale, |v, s| *v /= s.max(f64::MIN_POSITIVE));
        out.zip(self.free, |v, f| *v *= f);
        out
    }

    fn dot(&self, a: &Vector, b: &Vector) -> f64 {
        self.place.active().dot(a, b)
    }

    fn add(&self, a: &mut Vector, by: f64, b: &Vector) {
        a.zip(b, |a, b| *a += by * b);
    }
}
