//! The experiments of Thesis 2.4 and 2.5 as functions, so that a small version of each is a test and the whole one a program (`tests/experiments/`).

use crate::synthetic::{Factors, Synthetic};
use gibbsite::features::Index;
use gibbsite::field::train::{Choice, Estimator, Optimize, TrainParams, train};
use gibbsite::field::{Field, FieldData, Structure};
use gibbsite::objective::ObjectiveParams;
use gibbsite::objective::components::Components;
use gibbsite::objective::composite::Composite;
use std::sync::LazyLock;
use std::time::Instant;

/// An estimator of the figures.
#[derive(Clone, Debug)]
pub struct Way {
    /// What it is called in tables.
    pub name: &'static str,
    estimator: Estimator,
    optimize: Optimize,
}

/// The likelihood.
pub fn mle() -> Way {
    Way { name: "MLE", estimator: Estimator::Mle, optimize: Optimize::Joint }
}

/// The pseudolikelihood.
pub fn mple() -> Way {
    Way { name: "MPLE", estimator: Estimator::Pseudo, optimize: Optimize::Joint }
}

/// The pseudolikelihood, each variable's regression by itself, averaged where they overlap.
pub fn mple_disjoint() -> Way {
    Way { name: "MPLE-disjoint", estimator: Estimator::Pseudo, optimize: Optimize::Disjoint }
}

/// The two combs of Fig. 2.1.
pub fn combs() -> Way {
    let estimator = Estimator::Composite(Choice::Named("combs".into()));
    Way { name: "combs", estimator, optimize: Optimize::Joint }
}

/// Weights, and what finding them took.
#[derive(Clone, Debug)]
pub struct Learned {
    /// The weights.
    pub theta: Vec<f64>,
    /// Evaluations of the objective.
    pub evaluations: u64,
    /// CPU seconds on one thread.
    pub seconds: f64,
}

/// `C₂`, the same for all: it hardly matters from a hundred samples on, and keeps what few samples leave undetermined finite. The thesis takes it from its bounds.
const L2: f64 = 0.1;
const TOLERANCE: f64 = 1e-5;

/// Learns, from 0, until the tolerance or until `budget` CPU seconds have passed.
pub fn learn(field: &Field, index: &Index, data: &FieldData, way: &Way, budget: f64) -> Learned {
    let params = TrainParams {
        estimator: way.estimator.clone(),
        optimize: way.optimize,
        l2: L2,
        tolerance: TOLERANCE,
        ..TrainParams::default()
    };
    let start = cpu_seconds();
    let go_on = || cpu_seconds() - start < budget;
    let (state, info) = train(field, index, data, &params, None, &mut |_, _| go_on(), &go_on).expect("a fit");
    Learned {
        theta: state.theta().to_vec(),
        evaluations: info.solver.end.evaluations,
        seconds: cpu_seconds() - start,
    }
}

/// Seconds that this thread has run, which other processes do not lengthen; those of the clock where the system does not tell.
fn cpu_seconds() -> f64 {
    static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = told.and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    nanoseconds.map_or_else(|| BEGIN.elapsed().as_secs_f64(), |n| n * 1e-9)
}

/// `-log P(y | x)` for each sample on average, exactly.
pub fn log_loss(field: &Field, index: &Index, data: &FieldData, theta: &[f64]) -> f64 {
    let exact = Components::mle(field);
    let params = ObjectiveParams { max_table_mib: 4096.0, ..ObjectiveParams::default() };
    let mut exact = Composite::new(field, index, data, &exact, &params).expect("a field for exact inference");
    exact.value_gradient(theta, &mut vec![0.0; index.len()]) / data.samples() as f64
}

/// Mean and standard deviation.
pub fn mean_sd(values: &[f64]) -> [f64; 2] {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    [mean, (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt()]
}

/// A point of Fig. 2.2: an estimator at a number of samples.
#[derive(Clone, Debug)]
pub struct ErrorPoint {
    /// The estimator.
    pub name: &'static str,
    /// Training samples.
    pub samples: usize,
    /// `‖θ̂ - θ*‖₁/r`, mean and standard deviation over models and data sets.
    pub error: [f64; 2],
    /// Held-out log loss above that of the true parameters, mean and standard deviation.
    pub excess: [f64; 2],
}

/// Fig. 2.2: parameter error and log loss against the number of samples; chains of 4 variables, random(1) factors.
pub fn training_set_size(sizes: &[usize], models: u64, data_sets: u64) -> Vec<ErrorPoint> {
    let ways = [mle(), mple(), mple_disjoint()];
    let mut found: Vec<(Vec<f64>, Vec<f64>)> = vec![Default::default(); sizes.len() * ways.len()];
    for m in 0..models {
        let model = Synthetic::new(Structure::Chain, 4, Factors::Random(1.0), m);
        let field = model.field();
        let index = model.index(&field);
        let truth = model.theta(&field, &index);
        let held_out = model.sample(&field, 2000, 1_000_000 + m);
        let least = log_loss(&field, &index, &held_out, &truth);
        for d in 0..data_sets {
            for (s, &size) in sizes.iter().enumerate() {
                let data = model.sample(&field, size, 1000 * m + d + 1);
                for (w, way) in ways.iter().enumerate() {
                    let theta = learn(&field, &index, &data, way, f64::INFINITY).theta;
                    let error: f64 = theta.iter().zip(&truth).map(|(a, b)| (a - b).abs()).sum();
                    let point = &mut found[w * sizes.len() + s];
                    point.0.push(error / truth.len() as f64);
                    point.1.push(log_loss(&field, &index, &held_out, &theta) - least);
                }
            }
        }
    }
    let at = |(k, (error, excess)): (usize, &(Vec<f64>, Vec<f64>))| ErrorPoint {
        name: ways[k / sizes.len()].name,
        samples: sizes[k % sizes.len()],
        error: mean_sd(error),
        excess: mean_sd(excess),
    };
    found.iter().enumerate().map(at).collect()
}

/// A row of Fig. 2.8: an estimator on a grid.
#[derive(Clone, Debug)]
pub struct GridPoint {
    /// The estimator.
    pub name: String,
    /// Rows and columns.
    pub width: u32,
    /// Held-out log loss above that of the true parameters, for each sample.
    pub excess: f64,
    /// CPU seconds of training on one thread.
    pub seconds: f64,
    /// Evaluations of its objective.
    pub evaluations: u64,
}

/// What grids to learn.
#[derive(Clone, Copy, Debug)]
pub struct Grids {
    /// Rows and columns.
    pub width: u32,
    /// `s` of associative(s) factors.
    pub strength: f64,
    /// Training samples.
    pub samples: usize,
    /// Held-out samples.
    pub held_out: usize,
    /// Whether to learn by MLE too.
    pub with_mle: bool,
    /// Seed of everything.
    pub seed: u64,
}

/// Fig. 2.8 at one width: MLE, MPLE and combs until they are done, and combs stopped when MPLE was done.
pub fn grids(asked: Grids) -> Vec<GridPoint> {
    let Grids { width, strength, samples, held_out, with_mle, seed } = asked;
    let structure = Structure::Grid { rows: width, columns: width };
    let model = Synthetic::new(structure, (width * width) as usize, Factors::Associative(strength), seed);
    let field = model.field();
    let index = model.index(&field);
    let data = model.sample(&field, samples, seed + 1);
    let test = model.sample(&field, held_out, seed + 2);
    let least = log_loss(&field, &index, &test, &model.theta(&field, &index));
    let mut points = Vec::new();
    let mut point = |name: String, way: &Way, budget: f64| {
        let learned = learn(&field, &index, &data, way, budget);
        let excess = log_loss(&field, &index, &test, &learned.theta) - least;
        let Learned { seconds, evaluations, .. } = learned;
        points.push(GridPoint { name, width, excess, seconds, evaluations });
        seconds
    };
    if with_mle {
        point(mle().name.into(), &mle(), f64::INFINITY);
    }
    let budget = point(mple().name.into(), &mple(), f64::INFINITY);
    point(combs().name.into(), &combs(), f64::INFINITY);
    point(format!("{}, MPLE's time", combs().name), &combs(), budget);
    points
}
