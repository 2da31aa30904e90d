//! A step length along a descent direction, for smooth objectives.
//!
//! `φ(t) = F(θ + t·d)`. Searches for the strong Wolfe conditions `φ(t) ≤ φ(0) + c₁·t·φ'(0)`, `|φ'(t)| ≤ c₂·|φ'(0)|`: a bracket `[low, high]`, of which
//! `low` is the better end, shrinks around such a step by minimisers of cubics through both ends' values and slopes (Nocedal & Wright 2006,
//! algorithms 3.5 and 3.6). Near the optimum, where values differ by rounding only, slopes decide (Hager & Zhang 2005, approximate Wolfe).
//!
//! Differs: the first trial is taken unless it is bad (`c₂` = 0.9), since an evaluation costs far more than a slightly better step gains; values that
//! are not finite only shorten the step.

/// `c₁`: share of the promised decrease that is enough.
pub(super) const DECREASE: f64 = 1e-4;
/// `c₂`: share of the slope that may be left.
const CURVATURE: f64 = 0.9;
/// Values that differ by this share of themselves may be equal.
pub(super) const ROUNDING: f64 = 1e-13;
/// Trials before giving up.
const TRIALS: u32 = 25;

/// A trial: step, value, slope.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Trial {
    pub(super) step: f64,
    pub(super) value: f64,
    pub(super) slope: f64,
}

/// What to do after a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Next {
    /// The trial will do.
    Accept,
    /// Try this step.
    Try(f64),
    /// No step was found; the best trial that decreased the objective is this step, if there is one.
    GiveUp(Option<f64>),
}

/// A search in progress.
#[derive(Debug)]
pub(super) struct Search {
    start: Trial,
    /// Values up to this are as good as the lowest known.
    level: f64,
    low: Trial,
    /// The worse end; only its step is known where the value was not finite.
    high: Option<Trial>,
    trials: u32,
}

impl Search {
    /// From `φ(0)`, `φ'(0) < 0`.
    pub(super) fn new(value: f64, slope: f64, lowest: f64) -> Self {
        let start = Trial { step: 0.0, value, slope };
        Self { start, level: lowest + ROUNDING * lowest.abs(), low: start, high: None, trials: 0 }
    }

    /// Takes note of a trial.
    pub(super) fn next(&mut self, trial: Trial) -> Next {
        let Trial { step, value, slope } = trial;
        self.trials += 1;
        let finite = value.is_finite() && slope.is_finite();
        let enough = value <= self.start.value + DECREASE * step * self.start.slope;
        let flat = slope.abs() <= -CURVATURE * self.start.slope;
        let level = value <= self.level && slope <= (2.0 * DECREASE - 1.0) * self.start.slope;
        if finite && flat && (enough || level) {
            return Next::Accept;
        }
        if !finite || !enough || value >= self.low.value {
            self.high = Some(trial);
        } else {
            if slope * (self.high.map_or(f64::INFINITY, |high| high.step) - self.low.step) >= 0.0 {
                self.high = Some(self.low);
            }
            let from = std::mem::replace(&mut self.low, trial);
            if self.high.is_none() {
                // still downhill and nearly as steep: further out
                let width = step - from.step;
                let guess = cubic(from, trial).filter(|at| *at > step).unwrap_or(f64::INFINITY);
                return self.limited(guess.clamp(step + width, step + 9.0 * width));
            }
        }
        let (low, high) = (self.low, self.high.unwrap_or(trial));
        let width = high.step - low.step;
        let known = high.value.is_finite() && high.slope.is_finite();
        let guess = if known { cubic(low, high) } else { None };
        let share = guess.map_or(if known { 0.5 } else { 0.1 }, |t| ((t - low.step) / width).clamp(0.1, 0.9));
        self.limited(low.step + share * width)
    }

    fn limited(&self, next: f64) -> Next {
        let moved = next.is_finite() && next > 0.0 && next != self.low.step;
        if self.trials < TRIALS && moved {
            Next::Try(next)
        } else {
            Next::GiveUp((self.low.step > 0.0).then_some(self.low.step))
        }
    }
}

/// The minimiser of the cubic with the values and slopes of both trials, if it has one.
fn cubic(a: Trial, b: Trial) -> Option<f64> {
    let width = b.step - a.step;
    let secant = 3.0 * (a.value - b.value) / width + a.slope + b.slope;
    let root = (secant * secant - a.slope * b.slope).sqrt().copysign(width);
    let at = b.step - width * (b.slope + root - secant) / (b.slope - a.slope + 2.0 * root);
    at.is_finite().then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The accepted step of a function, and trials.
    fn search(phi: impl Fn(f64) -> (f64, f64), first: f64) -> (f64, u32) {
        let (value, slope) = phi(0.0);
        let mut search = Search::new(value, slope, value);
        let mut step = first;
        loop {
            let (value, slope) = phi(step);
            match search.next(Trial { step, value, slope }) {
                Next::Accept => return (step, search.trials),
                Next::Try(next) => step = next,
                Next::GiveUp(at) => panic!("{at:?}"),
            }
        }
    }

    #[test]
    fn parabolas_take_a_cubic() {
        let phi = |t: f64| ((t - 3.0) * (t - 3.0), 2.0 * (t - 3.0));
        assert_eq!(search(phi, 1.0), (1.0, 1));
        // the cubic is exact, but a bracket shrinks to a tenth at most
        let (step, trials) = search(phi, 25.0);
        assert!((step - 3.0).abs() < 1e-12 && trials == 2, "{step} {trials}");
        let (step, trials) = search(phi, 100.0);
        assert!((step - 3.0).abs() < 1e-12 && trials == 3, "{step} {trials}");
        // and grows tenfold at most
        assert_eq!(search(phi, 0.1), (1.0, 2));
    }

    #[test]
    fn walls_and_wiggles() {
        // finite below 1 only
        let wall =
            |t: f64| if t < 1.0 { (-t - (1.0 - t).ln(), -1.0 + 1.0 / (1.0 - t)) } else { (f64::NAN, 0.0) };
        let shifted = |t: f64| {
            let (v, s) = wall(t);
            (v - 2.0 * t, s - 2.0)
        };
        let (step, _) = search(shifted, 50.0);
        assert!(step < 1.0 && shifted(step).1.abs() <= 0.9 * 2.0);
        let wiggle = |t: f64| (-t + (5.0 * t).sin(), -1.0 + 5.0 * (5.0 * t).cos());
        let tilted = |t: f64| (wiggle(t).0 - 10.0 * t + t * t, wiggle(t).1 - 10.0 + 2.0 * t);
        for first in [1e-6, 1e-3, 1.0, 1e3, 1e6] {
            let (step, trials) = search(tilted, first);
            let ((v, s), (v0, s0)) = (tilted(step), tilted(0.0));
            assert!(v <= v0 + DECREASE * step * s0 && s.abs() <= CURVATURE * s0.abs(), "{first} {step}");
            assert!(trials < 15, "{first} {trials}");
        }
    }
}
