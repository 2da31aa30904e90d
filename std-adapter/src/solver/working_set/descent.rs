//! Coordinate descent with conjugate gradients on the support: minimises `q(Δ) + Σ_p penalty_p(x_p + Δ_p)`.
//!
//! Sweeps of exact coordinate updates find out which weights are zero; where they are slow, which is where columns are
//! correlated, a few preconditioned conjugate gradient steps on the weights that are not zero, signs held, do what hundreds of
//! sweeps would. A weight whose sign would change stops at zero. Each such step is taken only if it decreases the objective.
//!
//! Inputs: a [`Quadratic`] with its state, the weights, their penalties. Output: the weights changed in place, and what it took. Stops when a sweep over all
//! positions decreases the objective by no more than `enough`, or after `sweeps`. After Friedman et al. 2010 (active sets), Wen et al. 2010
//! (FPC_AS's subspace step) and Bertrand & Massias 2021, whose Anderson extrapolation the conjugate gradients replace: see
//! ARCHITECTURE.md for the comparison.

use super::quadratic::Quadratic;
use super::sweep::{Halves, sweep};
use gibbsite_core::lanes::sum_pairs;
use gibbsite_core::penalty::Penalty;

/// What a descent took.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Effort {
    pub(super) updates: u64,
    pub(super) entries: u64,
    /// How much the objective fell.
    pub(super) decrease: f64,
    /// Whether it gave up.
    pub(super) unfinished: bool,
}

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// A duality gap within the working set that is small enough. It is estimated by `‖x‖₁ · max violation`, its first-order term, from the
    /// slopes that a sweep meets.
    pub(super) gap: f64,
    /// Most sweeps.
    pub(super) sweeps: u32,
    /// Matrix entries after which to give up.
    pub(super) entries: u64,
    /// Most Newton steps.
    pub(super) steps: u32,
}

/// Where a descent is.
pub(super) struct Place<'a> {
    /// Of the quadratic.
    pub(super) state: &'a mut [f64],
    pub(super) x: &'a mut [f64],
    pub(super) penalties: &'a [Penalty<f64>],
}

/// Scratch that outlives a descent.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    support: Vec<u32>,
    start: Vec<f64>,
    gradient: Vec<f64>,
    direction: Vec<f64>,
    curved: Vec<f64>,
    step: Vec<f64>,
    scale: Vec<f64>,
    halves: Halves,
}

/// Sweeps that fall by less than this factor call for conjugate gradients.
const SLOW: f64 = 0.3;
/// Conjugate gradient steps at first; half as many again each time that sweeps stay slow.
const PATIENCE: u32 = 6;
/// Share of the squared error that conjugate gradients leave.
const RELATIVE: f64 = 1e-2;

pub(super) fn descend<Q: Quadratic>(
    q: &mut Q,
    mut place: Place<'_>,
    limits: Limits,
    scratch: &mut Scratch,
) -> Effort {
    let place = &mut place;
    let mut effort = Effort::default();
    let all: Vec<u32> = (0..place.x.len() as u32).collect();
    let (mut sweeps, mut patience) = (0, PATIENCE);
    // Best violation of a full sweep, and sweeps since it was found: rounding ends all progress some time.
    let mut best = (f64::INFINITY, 0);
    loop {
        let full = sweep(q, place, &all, &mut scratch.halves, &mut effort);
        effort.decrease += full.decrease;
        sweeps += 1;
        best = if full.violation < 0.7 * best.0 { (full.violation, 0) } else { (best.0, best.1 + 1) };
        let size: f64 = place.x.iter().map(|x| x.abs()).sum();
        if full.violation * size <= limits.gap
            || full.violation == 0.0
            || sweeps >= limits.sweeps
            || best.1 > 20
        {
            return effort;
        }
        if effort.entries > limits.entries {
            effort.unfinished = true;
            return effort;
        }
        let enough = 0.3 * limits.gap / size;
        scratch.support.clear();
        scratch.support.extend(all.iter().filter(|&&p| place.x[p as usize] != 0.0));
        // Sweeps over the support alone, as long as they pay.
        let mut before = full.decrease;
        let fast_enough = loop {
            let now = sweep(q, place, &scratch.support, &mut scratch.halves, &mut effort);
            effort.decrease += now.decrease;
            sweeps += 1;
            if now.violation <= enough || sweeps >= limits.sweeps {
                break true;
            }
            if now.decrease > SLOW * before {
                break false;
            }
            before = now.decrease;
        };
        if !fast_enough && sweeps < limits.sweeps {
            effort.decrease += subspace(q, place, enough, patience, &mut effort, scratch);
            patience = (patience + patience / 2).min(q.patience());
        }
    }
}

/// Conjugate gradients on the weights that are not zero, with the penalty's slope at their present signs. Where a sign would change, the step is
/// cut at zero if that still decreases the objective well, or else stops at the first such place; what became zero leaves and the rest
/// goes on. Returns the decrease.
fn subspace<Q: Quadratic>(
    q: &mut Q,
    place: &mut Place<'_>,
    enough: f64,
    mut patience: u32,
    effort: &mut Effort,
    scratch: &mut Scratch,
) -> f64 {
    let mut decrease = 0.0;
    while patience > 0 {
        scratch.support.retain(|&p| place.x[p as usize] != 0.0);
        let promised = conjugate_gradients(q, place, enough, &mut patience, effort, scratch);
        if promised <= 0.0 {
            break;
        }
        let (gained, cut) = step_to_signs(q, place, promised, effort, scratch);
        decrease += gained;
        if !cut || gained <= 1e-3 * decrease {
            break;
        }
    }
    decrease
}

/// Puts into `scratch.step` the minimiser on the support, to a hundredth in the energy norm or a slope of `enough`. Returns the decrease
/// that it promises if no sign changes.
fn conjugate_gradients<Q: Quadratic>(
    q: &mut Q,
    place: &Place<'_>,
    enough: f64,
    patience: &mut u32,
    effort: &mut Effort,
    scratch: &mut Scratch,
) -> f64 {
    let (x, penalties) = (&*place.x, place.penalties);
    let Scratch { support, start, gradient, direction, curved, step, scale, .. } = scratch;
    let k = support.len();
    let pass: u64 = 2 * support.iter().map(|&p| q.cost(p as usize)).sum::<u64>();
    {
        let q = &*q;
        start.resize(k, 0.0);
        q.slopes(place.state, support, start);
        gradient.clear();
        gradient.extend(support.iter().zip(&*start).map(|(&p, g)| {
            let (x, penalty) = (x[p as usize], &penalties[p as usize]);
            g + penalty.l2 * x + if x < 0.0 { -penalty.l1 } else { penalty.l1 }
        }));
        scale.clear();
        scale.extend(
            support
                .iter()
                .map(|&p| 1.0 / (q.curvature(p as usize) + penalties[p as usize].l2).max(f64::MIN_POSITIVE)),
        );
    }
    step.clear();
    step.resize(k, 0.0);
    curved.resize(k, 0.0);
    direction.clear();
    direction.extend(gradient.iter().zip(&*scale).map(|(g, s)| -g * s));
    let weigh = |g: &[f64], scale: &[f64]| sum_pairs(g, scale, |g, s| g * g * s);
    let (mut now, first) = (weigh(gradient, scale), weigh(gradient, scale));
    let mut promised = 0.0;
    effort.entries += pass / 2;
    while *patience > 0 {
        *patience -= 1;
        let worst = gradient.iter().fold(0.0, |worst: f64, g| worst.max(g.abs()));
        if now <= RELATIVE * first || worst <= enough {
            break;
        }
        let mut bend = q.product(support, direction, &mut curved[..k]);
        for ((c, d), &p) in curved.iter_mut().zip(&*direction).zip(&*support) {
            let l2 = penalties[p as usize].l2;
            *c += l2 * d;
            bend += l2 * d * d;
        }
        effort.entries += pass;
        if bend <= 0.0 || !bend.is_finite() {
            break;
        }
        let length = now / bend;
        promised += 0.5 * length * now;
        for ((s, g), (d, c)) in step.iter_mut().zip(gradient.iter_mut()).zip(direction.iter().zip(&*curved)) {
            *s += length * d;
            *g += length * c;
        }
        let next = weigh(gradient, scale);
        let keep = next / now;
        for ((d, g), s) in direction.iter_mut().zip(&*gradient).zip(&*scale) {
            *d = keep * *d - g * s;
        }
        now = next;
    }
    promised
}

/// Takes `scratch.step` as far as signs allow. Returns the decrease, and whether a weight became zero.
fn step_to_signs<Q: Quadratic>(
    q: &mut Q,
    Place { state, x, penalties }: &mut Place<'_>,
    promised: f64,
    effort: &mut Effort,
    scratch: &mut Scratch,
) -> (f64, bool) {
    let Scratch { support, start, direction, step, .. } = scratch;
    let free = |p: u32| penalties[p as usize].l1 == 0.0 && !penalties[p as usize].positive;
    // Where along the step the first sign changes.
    let first = support.iter().zip(&*step).fold(1.0f64, |first, (&p, s)| {
        let x = x[p as usize];
        if (x + s) * x < 0.0 && !free(p) { first.min(-x / s) } else { first }
    });
    for length in [1.0, 0.3, first] {
        let (mut linear, mut cost, mut cut) = (0.0, 0.0, false);
        for (((d, s), g), &p) in direction.iter_mut().zip(&*step).zip(&*start).zip(&*support) {
            let (x, penalty) = (x[p as usize], &penalties[p as usize]);
            let mut new = x + length * s;
            // Rounding must not leave what stops here on the other side.
            if (new * x < 0.0 || (length == first && -x / s == first)) && !free(p) {
                new = 0.0;
                cut = true;
            }
            *d = new - x;
            linear += g * *d;
            cost += penalty.value(new) - penalty.value(x);
        }
        let change = linear + 0.5 * q.propose(support, direction) + cost;
        effort.entries += support.iter().map(|&p| q.cost(p as usize)).sum::<u64>();
        // Along the uncut step the objective falls by (2t - t²) of what is promised.
        let fair = if length == first { 0.0 } else { 0.25 * length * (2.0 - length) * promised };
        if change < -fair {
            q.accept(state);
            for (&p, d) in support.iter().zip(&*direction) {
                // Exactly zero where it was cut: x + (0 - x) is.
                x[p as usize] += d;
            }
            effort.updates += support.len() as u64;
            return (-change, cut);
        }
    }
    (0.0, false)
}
