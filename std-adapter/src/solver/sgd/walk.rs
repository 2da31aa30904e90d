//! One walk through samples, with weights drawn to 0 lazily.

use super::Shrinkage;
use crate::data::rows::Rows;
use crate::regress::problem::{Problem, Weights};
use gibbsite_core::loss::Loss;
use gibbsite_core::math::Real;
use gibbsite_core::penalty::Penalty;

/// How strongly weights are drawn to 0, and how often.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pull {
    rate: f64,
    /// Step of one shrinkage on the scale of `F`: `K·η/n`.
    step: f64,
    every: u64,
    threshold: f64,
}

impl Pull {
    pub(super) fn new(rate: f64, shrinkage: Shrinkage, samples: usize) -> Self {
        let (every, threshold) = match shrinkage {
            Shrinkage::EachSample => (1, f64::INFINITY),
            Shrinkage::Truncated { every, threshold } => (u64::from(every.max(1)), threshold),
        };
        Self { rate, step: every as f64 * rate / samples.max(1) as f64, every, threshold }
    }

    /// `times` proximal steps `x ← sign(x)(|x| - sλ)₊/(1 + sμ)` in one, by the geometric series they add up to. A weight above the threshold when it is
    /// looked at feels only the ridge.
    fn shrink(&self, x: f64, penalty: &Penalty<f64>, times: u64) -> f64 {
        if times == 0 || x == 0.0 {
            return x;
        }
        let l1 = if x.abs() <= self.threshold { self.step * penalty.l1 } else { 0.0 };
        let factor = 1.0 / (1.0 + self.step * penalty.l2);
        let (scale, series) = if factor < 1.0 {
            let power = factor.powf(times as f64);
            (power, factor * (1.0 - power) / (1.0 - factor))
        } else {
            (1.0, times as f64)
        };
        let size = (x.abs() * scale - l1 * series).max(0.0);
        if x < 0.0 { -size } else { size }
    }
}

/// Weights on their way.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    weights: Weights,
    /// Shrinkages that each weight has had.
    shrunk: Vec<u64>,
    samples: u64,
    pull: Pull,
}

/// `a_iᵀx + b`.
pub(super) fn predict<V: Real>(rows: &Rows<V>, weights: &Weights, i: usize) -> f64 {
    let (columns, values) = rows.row(i);
    columns.iter().zip(values).map(|(&j, v)| weights.x[j as usize] * Real::to_f64(*v)).sum::<f64>()
        + weights.intercept
}

impl Walk {
    pub(super) fn new(start: Weights, pull: Pull) -> Self {
        Self { shrunk: vec![0; start.x.len()], weights: start, samples: 0, pull }
    }

    /// One sample.
    pub(super) fn step<L: Loss, V: Real>(&mut self, problem: &Problem<'_, L, V>, rows: &Rows<V>, i: usize) {
        let due = self.samples / self.pull.every;
        let (columns, values) = rows.row(i);
        let mut z = self.weights.intercept;
        for (&j, v) in columns.iter().zip(values) {
            let j = j as usize;
            let x = &mut self.weights.x[j];
            *x = self.pull.shrink(*x, &problem.penalty(j), due - self.shrunk[j]);
            self.shrunk[j] = due;
            z += *x * Real::to_f64(*v);
        }
        let by = self.pull.rate * problem.loss.slope(z, problem.target[i]);
        for (&j, v) in columns.iter().zip(values) {
            let x = &mut self.weights.x[j as usize];
            *x -= by * Real::to_f64(*v);
            if problem.positive && *x < 0.0 {
                *x = 0.0;
            }
        }
        if problem.intercept {
            self.weights.intercept -= by;
        }
        self.samples += 1;
    }

    /// The weights, with all shrinkage that is due.
    pub(super) fn settled<L: Loss, V: Real>(&mut self, problem: &Problem<'_, L, V>) -> &Weights {
        let due = self.samples / self.pull.every;
        for (j, (x, shrunk)) in self.weights.x.iter_mut().zip(&mut self.shrunk).enumerate() {
            *x = self.pull.shrink(*x, &problem.penalty(j), due - *shrunk);
            *shrunk = due;
        }
        &self.weights
    }
}
