//! Stochastic gradient descent and its relatives: what the thesis compares Shotgun with (4.5.2).
//!
//! All of them minimise `F/n` one sample at a time at a constant rate and none reaches a small duality gap: they end after their passes with an honest
//! certificate. [`solve`] is plain or with truncated gradients ([`Shrinkage`]), or averages runs on shards of the samples; [`hybrid`] goes on with
//! Shotgun.

pub mod hybrid;
mod walk;

use super::monitor::{Monitor, Point, Stop};
use super::{Info, Solution};
use crate::data::rows::Rows;
use crate::par::Par;
use crate::regress::certificate::certify;
use crate::regress::problem::{Problem, Weights};
use gibbsite_core::loss::Loss;
use gibbsite_core::math::Real;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;
use walk::{Pull, Walk};

/// How weights are drawn to 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shrinkage {
    /// By `ηλ/n` after each sample.
    EachSample,
    /// Truncated gradient (Langford et al. 2009): after every `every` samples by `every·ηλ/n`, and only weights of at most `threshold`.
    Truncated {
        /// `K`, at least 1.
        every: u32,
        /// `θ`; infinite for all weights.
        threshold: f64,
    },
}

/// How stochastic gradient descent goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SgdParams {
    /// Done when the duality gap is not above this.
    pub gap: f64,
    /// Passes over the samples.
    pub max_epochs: u64,
    /// The constant rate `η`, for samples with `SMOOTHNESS·‖a_i‖² ≤ 1`; where the largest is above, it is divided by that. `None`: the best of 14.
    pub rate: Option<f64>,
    /// How weights are drawn to 0.
    pub shrinkage: Shrinkage,
    /// Shards of the samples that are walked through independently and averaged (Zinkevich et al. 2010); 1 for plain descent. The result depends on it,
    /// and not on threads.
    pub shards: usize,
    /// Threads.
    pub par: Par,
    /// Seed of the order of samples.
    pub seed: u64,
}

impl SgdParams {
    /// Plain descent for that many passes at the best rate.
    pub fn new(gap: f64, max_epochs: u64) -> Self {
        Self {
            gap,
            max_epochs,
            rate: None,
            shrinkage: Shrinkage::EachSample,
            shards: 1,
            par: Par::Seq,
            seed: 0,
        }
    }

    /// The thesis' parallel descent: the average of 8.
    pub fn parallel(gap: f64, max_epochs: u64) -> Self {
        Self { shards: 8, ..Self::new(gap, max_epochs) }
    }

    /// Truncated gradient as Langford et al. run it: every 10 samples, all weights.
    pub fn truncated(gap: f64, max_epochs: u64) -> Self {
        let shrinkage = Shrinkage::Truncated { every: 10, threshold: f64::INFINITY };
        Self { shrinkage, ..Self::new(gap, max_epochs) }
    }
}

/// Rates that are tried: 14, from 10⁻⁴ to 1, each the same factor above the last.
pub fn rates() -> impl Iterator<Item = f64> {
    (0..14).map(|k| 10f64.powf(-4.0 + 4.0 * f64::from(k) / 13.0))
}

/// Samples on which rates are tried at most.
const TRIAL: usize = 10_000;

/// Stochastic gradient descent (4.5.2): for samples `i` in random order `x ← shrink(x - ηL'(a_iᵀx + b)a_i)`, where `shrink` is the penalty's proximal step of
/// size `η/n`, made for a weight only when a sample needs it (lazy shrinkage). Constant rate; of 14 in `[10⁻⁴, 1]` the one whose walk through
/// up to 10,000 samples ends at the lowest objective of those samples.
///
/// The best weights after any pass are returned, with their certificate; stops after `max_epochs` passes. With shards, the average of the walks is what
/// counts; each walk goes on from its own weights.
///
/// ```
/// use gibbsite::data::matrix::Matrix;
/// use gibbsite::regress::problem::{Problem, Weights};
/// use gibbsite::solver::monitor::Monitor;
/// use gibbsite::solver::sgd::{self, SgdParams};
/// use gibbsite_core::loss::Squared;
/// let m = Matrix::<f64>::from_rows(1, &[&[(0, 1.0)], &[(0, 1.0)]]);
/// let p = Problem::new(&m, &[2.0, 4.0], Squared, 1.0);
/// let found = sgd::solve(&p, Weights::zero(1), &SgdParams::new(0.0, 50), &mut Monitor::new(None));
/// assert!((found.weights.x[0] - 2.5).abs() < 0.5);
/// ```
pub fn solve<L: Loss, V: Real>(
    problem: &Problem<'_, L, V>,
    start: Weights,
    params: &SgdParams,
    monitor: &mut Monitor<'_>,
) -> Solution {
    let (n, d) = (problem.target.len(), problem.matrix.columns());
    let rows = problem.matrix.by_rows();
    let mut start = start;
    start.x.resize(d, 0.0);
    let scale = (0..n)
        .map(|i| {
            L::SMOOTHNESS * rows.row(i).1.iter().map(|v| Real::to_f64(*v) * Real::to_f64(*v)).sum::<f64>()
        })
        .fold(1.0, f64::max);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(params.seed);
    let mut order: Vec<u32> = (0..n as u32).collect();
    order.shuffle(&mut rng);
    let rate = match params.rate {
        Some(rate) => rate / scale,
        None => best_rate(problem, &rows, &start, &order[..n.min(TRIAL)], scale, params),
    };
    let shards = params.shards.clamp(1, n.max(1));
    let pull = Pull::new(rate, params.shrinkage, n);
    let mut walks: Vec<(Walk, Vec<u32>)> = order
        .chunks(n.div_ceil(shards).max(1))
        .map(|part| (Walk::new(start.clone(), pull), part.to_vec()))
        .collect();
    let mut best: Option<Solution> = None;
    let (mut passes, mut entries) = (0, 0);
    loop {
        let weights = average(problem, &mut walks, &start);
        let z = problem.predictions(&weights.x, weights.intercept);
        let found = certify(problem, &weights.x, &z, params.par);
        let point = Point {
            seconds: 0.0,
            iterations: passes,
            updates: passes * n as u64,
            lambda: problem.lambda,
            objective: found.objective,
            gap: found.gap,
            nonzeros: weights.nonzeros(),
        };
        let stop = monitor.verdict(point, params.gap, passes >= params.max_epochs || n == 0, false);
        let info = Info {
            iterations: passes,
            epochs: passes as f64,
            updates: passes * n as u64,
            entries,
            parallel: walks.len().max(1),
            backoffs: 0,
            stop: stop.unwrap_or(Stop::Iterations),
        };
        match &mut best {
            Some(best) if found.objective < best.certificate.objective => {
                *best = Solution { weights, certificate: found, info };
            }
            Some(best) => best.info = info,
            None => best = Some(Solution { weights, certificate: found, info }),
        }
        if stop.is_some()
            && let Some(best) = best
        {
            return best;
        }
        for (_, part) in &mut walks {
            part.shuffle(&mut rng);
        }
        walks = params.par.map(walks, |(mut walk, part)| {
            part.iter().for_each(|&i| walk.step(problem, &rows, i as usize));
            (walk, part)
        });
        passes += 1;
        entries += 2 * problem.matrix.nonzeros() as u64;
    }
}

/// The mean of all walks, each brought up to date.
fn average<L: Loss, V: Real>(
    problem: &Problem<'_, L, V>,
    walks: &mut [(Walk, Vec<u32>)],
    start: &Weights,
) -> Weights {
    if walks.is_empty() {
        return start.clone();
    }
    let share = 1.0 / walks.len() as f64;
    let mut mean = Weights::zero(start.x.len());
    for (walk, _) in walks {
        let weights = walk.settled(problem);
        mean.x.iter_mut().zip(&weights.x).for_each(|(m, x)| *m += share * x);
        mean.intercept += share * weights.intercept;
    }
    mean
}

/// The rate whose walk through `part` ends at the lowest objective of those samples; the smallest if none is any good.
fn best_rate<L: Loss, V: Real>(
    problem: &Problem<'_, L, V>,
    rows: &Rows<V>,
    start: &Weights,
    part: &[u32],
    scale: f64,
    params: &SgdParams,
) -> f64 {
    let n = problem.target.len();
    let share = part.len() as f64 / n.max(1) as f64;
    let tried = params.par.map(rates().map(|rate| rate / scale).collect(), |rate| {
        let mut walk = Walk::new(start.clone(), Pull::new(rate, params.shrinkage, n));
        part.iter().for_each(|&i| walk.step(problem, rows, i as usize));
        let weights = walk.settled(problem);
        let loss: f64 = part
            .iter()
            .map(|&i| {
                problem.loss.value(walk::predict(rows, weights, i as usize), problem.target[i as usize])
            })
            .sum();
        let cost: f64 = weights.x.iter().enumerate().map(|(j, &x)| problem.penalty(j).value(x)).sum();
        (loss + share * cost, rate)
    });
    let smallest = tried.first().map_or(0.0, |t| t.1);
    let best = |best: (f64, f64), &(objective, rate): &(f64, f64)| {
        if objective < best.0 { (objective, rate) } else { best }
    };
    tried.iter().fold((f64::INFINITY, smallest), best).1
}
