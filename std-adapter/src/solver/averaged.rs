//! Averaged stochastic gradient descent on a sum of many terms with a ridge.

use super::lbfgs::{LbfgsError, LbfgsInfo, Point, Smooth, State, Stop, Watch};
use crate::cv::shuffled;
use std::time::Instant;

/// A sum of terms that each depend on few parameters, with weights `w` and sums `a` that belong to the terms' own storage.
pub(crate) trait Terms {
    /// How many terms there are.
    fn terms(&self) -> usize;

    /// `w = θ`, `a = 0`.
    fn place(&mut self, theta: &[f64]);

    /// `f_i(scale·w)`; then `w -= by·∇f_i` and `a += share·∇f_i`, unless the value is not finite.
    fn step(&mut self, term: usize, scale: f64, by: f64, share: f64) -> f64;

    /// `w *= by`.
    fn rescale(&mut self, by: f64);

    /// `out = w`.
    fn weights(&self, out: &mut [f64]);

    /// `a`.
    fn sums(&mut self) -> &mut [f64];
}

/// How to descend.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AveragedParams {
    /// `C₂`, more than 0.
    pub(crate) l2: f64,
    /// Done when the violation is at most this share of what it is at `θ = 0`.
    pub(crate) tolerance: f64,
    /// Done as soon as the objective is not above this.
    pub(crate) target_objective: Option<f64>,
    /// Most passes over all terms.
    pub(crate) max_passes: u64,
    /// Order of the terms.
    pub(crate) seed: u64,
}

/// Terms that the first step is tried on, and factor between trials.
const SAMPLE: usize = 1000;
const FACTOR: f64 = 2.0;
/// Trials of a first step, in each direction.
const TRIALS: u32 = 20;
/// Most that one step may shrink weights by.
const SHRINK: f64 = 0.5;
/// The run ends when the objective has fallen by less than this share of itself in each of so many passes.
pub(crate) const SLOW: f64 = 1e-4;
const PASSES: u32 = 3;
/// The divisor at which weights are rescaled.
const LARGE: f64 = 1e9;

/// Minimises `F(θ) = Σ_i f_i(θ) + ½C₂‖θ‖²`, where `whole` is `Σ f_i` with its gradient.
///
/// `w ← (1 - η_t λ) w - η_t ∇f_i(w)` for one term after the other, shuffled anew for each pass, with `λ = C₂/n` and `η_t = η₀ (1 + λ η₀ t)^(-3/4)`. From the second pass
/// on the result is the average of all `w_t`, later ones weighing more, in proportion to their number (Lacoste-Julien et al. 2012). The shrinking is one multiplication of a common divisor, and the
/// average is kept as `(a + b·w)/c`, so that a step costs what its term's slopes cost (Bottou 2010 and his `crfasgd`; Xu 2011). `η₀` is the best of a
/// geometric sequence by the objective of up to 1,000 terms after one pass over them.
///
/// *Stopping.* After each pass `F` and its gradient are evaluated at the average: the trace is as honest as that of L-BFGS, and an iteration is a pass. Done when the
/// violation `‖∇F‖∞` is at most the tolerance, or `F` the target. Otherwise the run ends after `max_passes`, or when `F` has fallen by less than [`SLOW`] of itself in
/// each of three passes ([`Stop::Slow`]), which is not convergence. The result is the best of all averages. Sequential, so the number of threads does not matter; `whole` may use them.
///
/// # Errors
/// As [`minimize`](super::lbfgs::minimize).
pub(crate) fn averaged(
    terms: &mut dyn Terms,
    whole: &mut dyn Smooth,
    start: Vec<f64>,
    params: &AveragedParams,
    watch: &mut Watch<'_>,
) -> Result<(State, LbfgsInfo), LbfgsError> {
    let clock = Instant::now();
    let mut gradient = vec![0.0; start.len()];
    let mut evaluations = 0;
    let mut look = |theta: &[f64], passes: u64| {
        evaluations += 1;
        let objective = whole.value_gradient(theta, &mut gradient) + ridge(params.l2, theta);
        let slopes = theta.iter().zip(&gradient).map(|(x, g)| (g + params.l2 * x).abs());
        Point {
            iterations: passes,
            evaluations,
            objective,
            violation: slopes.fold(0.0, f64::max),
            nonzeros: theta.iter().filter(|x| **x != 0.0).count(),
            seconds: clock.elapsed().as_secs_f64(),
        }
    };
    let mut reference = 0.0f64;
    if start.iter().any(|&x| x != 0.0) {
        let zero = look(&vec![0.0; start.len()], 0).violation;
        reference = if zero.is_finite() { zero } else { 0.0 };
    }
    let mut end = look(&start, 0);
    if !end.objective.is_finite() {
        return Err(LbfgsError::Value(end.objective));
    }
    reference = reference.max(end.violation);
    let lambda = params.l2 / terms.terms().max(1) as f64;
    let mut trace = vec![end];
    let mut go_on = watch(&end, &State::new(start.clone()));
    let mut best = start.clone();
    let mut walk: Option<Walk> = None;
    let mut slow = 0;
    let stop = loop {
        if end.violation <= params.tolerance * reference {
            break Stop::Tolerance;
        }
        if params.target_objective.is_some_and(|target| end.objective <= target) {
            break Stop::Target;
        }
        if !go_on {
            break Stop::Interrupted;
        }
        if end.iterations >= params.max_passes {
            break Stop::Iterations;
        }
        if slow >= PASSES {
            break Stop::Slow;
        }
        let walk =
            walk.get_or_insert_with(|| Walk::new(calibrate(terms, &start, lambda, params.seed), lambda));
        if walk.t == 0 {
            terms.place(&start);
        }
        let pass = trace.len() as u64;
        walk.pass(terms, params.seed.wrapping_add(pass));
        let mut theta = vec![0.0; start.len()];
        walk.average(terms, &mut theta);
        let point = look(&theta, pass);
        trace.push(point);
        go_on = watch(&point, &State::new(theta.clone()));
        if !point.objective.is_finite() || point.objective > 2.0 * trace[0].objective {
            // The steps were too long after all.
            *walk = Walk::new(walk.first / FACTOR, lambda);
        }
        slow = if point.objective < end.objective * (1.0 - SLOW) { 0 } else { slow + 1 };
        if point.objective < end.objective {
            (best, end) = (theta, point);
        }
        end.iterations = pass;
    };
    end.evaluations = evaluations;
    end.seconds = clock.elapsed().as_secs_f64();
    Ok((State::new(best), LbfgsInfo { end, stop, trace }))
}

fn ridge(l2: f64, theta: &[f64]) -> f64 {
    0.5 * l2 * theta.iter().map(|x| x * x).sum::<f64>()
}

/// The first step that does best on a sample.
fn calibrate(terms: &mut dyn Terms, start: &[f64], lambda: f64, seed: u64) -> f64 {
    let most = SHRINK / lambda;
    let mut sample = shuffled(terms.terms(), seed);
    sample.truncate(SAMPLE);
    let mut weights = vec![0.0; start.len()];
    let mut cost = |first: f64| {
        terms.place(start);
        let mut walk = Walk::new(first, lambda);
        sample.iter().for_each(|&i| walk.step(terms, i));
        let loss: f64 = sample.iter().map(|&i| terms.step(i, 1.0 / walk.divisor, 0.0, 0.0)).sum();
        terms.weights(&mut weights);
        weights.iter_mut().for_each(|w| *w /= walk.divisor);
        let cost = loss + sample.len() as f64 * ridge(lambda, &weights);
        if cost.is_finite() { cost } else { f64::INFINITY }
    };
    let mut best = most.min(0.1);
    let mut least = cost(best);
    let middle = best;
    for factor in [FACTOR, 1.0 / FACTOR] {
        // Downwards only if upwards did not help.
        if best != middle {
            break;
        }
        for _ in 0..TRIALS {
            let next = best * factor;
            let found = if next <= most { cost(next) } else { f64::INFINITY };
            if found >= least {
                // Where everything is infinite, shorter steps may not be.
                if least.is_finite() || factor > 1.0 {
                    break;
                }
            }
            (best, least) = (next, found.min(least));
        }
    }
    best
}

/// Where a run is: weights are `w/divisor`, their average is `(a + fraction·w)/total`.
struct Walk {
    /// `η₀`.
    first: f64,
    lambda: f64,
    /// Steps so far.
    t: u64,
    /// Steps that are averaged.
    averaged: u64,
    averaging: bool,
    divisor: f64,
    fraction: f64,
    total: f64,
}

impl Walk {
    fn new(first: f64, lambda: f64) -> Self {
        Self { first, lambda, t: 0, averaged: 0, averaging: false, divisor: 1.0, fraction: 0.0, total: 1.0 }
    }

    /// One pass; all but the first are averaged.
    fn pass(&mut self, terms: &mut dyn Terms, seed: u64) {
        self.averaging = self.t > 0;
        shuffled(terms.terms(), seed).into_iter().for_each(|i| self.step(terms, i));
    }

    fn step(&mut self, terms: &mut dyn Terms, term: usize) {
        let rate = self.first * (1.0 + self.lambda * self.first * self.t as f64).powf(-0.75);
        let before = self.divisor;
        self.divisor /= 1.0 - rate * self.lambda;
        // What `w` loses, `a` gets back: the average of what was is as before.
        let by = rate * self.divisor;
        let share = if self.averaging { by * self.fraction } else { 0.0 };
        terms.step(term, 1.0 / before, by, share);
        self.t += 1;
        if self.averaging {
            self.averaged += 1;
            if self.averaged == 1 {
                terms.sums().fill(0.0);
                (self.total, self.fraction) = (self.divisor, 1.0);
            } else {
                // Weight 2/(m + 1) for the m-th: in proportion to m.
                let weight = 2.0 / (self.averaged as f64 + 1.0);
                self.total /= 1.0 - weight;
                self.fraction += weight * self.total / self.divisor;
            }
        }
        if self.divisor > LARGE {
            terms.rescale(1.0 / self.divisor);
            self.fraction *= self.divisor;
            self.divisor = 1.0;
        }
        if self.total > LARGE {
            let by = 1.0 / self.total;
            terms.sums().iter_mut().for_each(|a| *a *= by);
            self.fraction *= by;
            self.total = 1.0;
        }
    }

    /// The average, or the weights where nothing is averaged yet.
    fn average(&self, terms: &mut dyn Terms, out: &mut [f64]) {
        terms.weights(out);
        if self.averaged == 0 {
            out.iter_mut().for_each(|w| *w /= self.divisor);
        } else {
            let sums = terms.sums();
            out.iter_mut().zip(&*sums).for_each(|(w, a)| *w = (a + self.fraction * *w) / self.total);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `½(x_j - y_i)²` of the coordinate `j = i mod 3`.
    struct Points {
        targets: Vec<f64>,
        w: Vec<f64>,
        a: Vec<f64>,
        /// Averages by the definition.
        history: Vec<Vec<f64>>,
    }

    impl Terms for Points {
        fn terms(&self) -> usize {
            self.targets.len()
        }
        fn place(&mut self, theta: &[f64]) {
            self.w = theta.to_vec();
            self.a = vec![0.0; theta.len()];
        }
        fn step(&mut self, i: usize, scale: f64, by: f64, share: f64) -> f64 {
            self.history.push(self.w.iter().map(|w| w * scale).collect());
            let j = i % 3;
            let slope = scale * self.w[j] - self.targets[i];
            self.w[j] -= by * slope;
            self.a[j] += share * slope;
            0.5 * slope * slope
        }
        fn rescale(&mut self, by: f64) {
            self.w.iter_mut().for_each(|w| *w *= by);
        }
        fn weights(&self, out: &mut [f64]) {
            out.copy_from_slice(&self.w);
        }
        fn sums(&mut self) -> &mut [f64] {
            &mut self.a
        }
    }

    #[test]
    fn averages_are_those_of_the_weights() {
        let targets = (0..30).map(|i| f64::from(i * 7 % 11)).collect();
        let mut points = Points { targets, w: vec![], a: vec![], history: vec![] };
        for (first, lambda) in [(0.1, 0.01), (0.3, 1.5)] {
            points.place(&[1.0, -2.0, 0.0]);
            points.history.clear();
            let mut walk = Walk::new(first, lambda);
            (0..60).for_each(|pass| walk.pass(&mut points, pass));
            // Each step shows where the one before ended; the last one's end is asked for.
            points.step(0, 1.0 / walk.divisor, 0.0, 0.0);
            let (mut sums, mut total) = ([0.0; 3], 0.0);
            for (m, w) in (1..).zip(&points.history[31..]) {
                total += f64::from(m);
                (0..3).for_each(|j| sums[j] += f64::from(m) * w[j]);
            }
            let mut average = [0.0; 3];
            walk.average(&mut points, &mut average);
            for j in 0..3 {
                assert!((average[j] - sums[j] / total).abs() < 1e-9, "{average:?} or {sums:?} / {total}");
            }
        }
    }
}
