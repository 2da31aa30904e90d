//! Learning with estimates where exact inference is too wide: belief propagation against what is exact on trees and against finite differences, Gibbs sampling
//! against the exact optimum.

use gibbsite::field::train::{Optimize, TrainError, TrainParams, index, train};
use gibbsite::field::{Field, FieldData, Structure};
use gibbsite::objective::components::Components;
use gibbsite::objective::composite::Composite;
use gibbsite::objective::{Inference, ObjectiveError, ObjectiveParams};
use gibbsite::par::Par;
use gibbsite_tests::synthetic::{Factors, Synthetic};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus as Rng;

/// So little memory that everything that is not enumerated is too wide.
const NOTHING: f64 = 1e-9;
const GIBBS: Inference = Inference::Gibbs { sweeps: 20, seed: 5 };

fn params(inference: Inference, max_table_mib: f64) -> ObjectiveParams {
    ObjectiveParams { par: Par::Seq, max_table_mib, inference }
}

fn grid(width: u32, samples: usize, seed: u64) -> (Field, FieldData) {
    let shape = Structure::Grid { rows: width, columns: width };
    let model = Synthetic::new(shape, (width * width) as usize, Factors::Random(0.7), seed);
    let field = model.field();
    let data = model.sample(&field, samples, seed + 1);
    (field, data)
}

fn somewhere(len: usize, seed: u64) -> Vec<f64> {
    let mut rng = Rng::seed_from_u64(seed);
    (0..len).map(|_| rng.random_range(-0.5..0.5)).collect()
}

fn attributes(field: &Field) -> Vec<u32> {
    field.templates().iter().map(|arities| if arities.len() == 1 { 2 } else { 1 }).collect()
}

#[test]
fn belief_propagation_is_exact_on_trees() {
    let model = Synthetic::new(Structure::Chain, 8, Factors::Random(1.0), 3);
    let field = model.field();
    let (index, data) = (field.index(&attributes(&field)).unwrap(), model.sample(&field, 20, 4));
    let theta = somewhere(index.len(), 9);
    let mle = Components::mle(&field);
    let run = |how: ObjectiveParams| {
        let mut f = Composite::new(&field, &index, &data, &mle, &how).unwrap();
        let mut gradient = vec![0.0; index.len()];
        let value = f.value_gradient(&theta, &mut gradient);
        assert_eq!(f.restless(), 0);
        (f.is_estimated(), value, gradient)
    };
    let (exact, estimate) = (run(params(Inference::Exact, 64.0)), run(params(Inference::Bp, NOTHING)));
    assert!(!exact.0 && estimate.0);
    assert!((exact.1 - estimate.1).abs() < 1e-7 * exact.1, "{} {}", exact.1, estimate.1);
    assert!(exact.2.iter().zip(&estimate.2).all(|(a, b)| (a - b).abs() < 1e-7));
}

#[test]
fn beliefs_are_the_gradient_of_bethes_estimate() {
    let (field, data) = grid(4, 3, 11);
    let index = field.index(&attributes(&field)).unwrap();
    let mut theta = somewhere(index.len(), 2);
    let mle = Components::mle(&field);
    let mut f = Composite::new(&field, &index, &data, &mle, &params(Inference::Bp, NOTHING)).unwrap();
    let (mut gradient, mut ignored) = (vec![0.0; index.len()], vec![0.0; index.len()]);
    f.value_gradient(&theta, &mut gradient);
    assert_eq!(f.restless(), 0);
    let h = 1e-5;
    for j in 0..index.len() {
        let at = theta[j];
        theta[j] = at + h;
        let above = f.value_gradient(&theta, &mut ignored);
        theta[j] = at - h;
        let below = f.value_gradient(&theta, &mut ignored);
        theta[j] = at;
        let slope = (above - below) / (2.0 * h);
        assert!((slope - gradient[j]).abs() < 1e-6 * (1.0 + slope.abs()), "{j}: {slope} {}", gradient[j]);
    }
}

#[test]
fn what_is_too_wide_is_refused_unless_estimates_will_do() {
    let (field, data) = grid(4, 3, 11);
    let index = field.index(&attributes(&field)).unwrap();
    let mle = Components::mle(&field);
    let refused = Composite::new(&field, &index, &data, &mle, &params(Inference::Exact, NOTHING));
    let error = refused.err().unwrap();
    assert!(matches!(error, ObjectiveError::TooWide { .. }));
    assert!(error.to_string().contains("--inference bp or gibbs"), "{error}");
    // Sampling has no objective, which these need.
    let base = TrainParams { max_table_mib: NOTHING, inference: GIBBS, ..TrainParams::default() };
    let asked = TrainParams { l1: 1.0, ..base };
    let outcome = train(&field, &index, &data, &asked, None, &mut |_, _| true, &|| true);
    assert_eq!(outcome.err(), Some(TrainError::Sampled));
}

/// Sampled gradients lead to where the exact likelihood has its optimum: of what there is to gain from 0, less than a thousandth is left. The same bits on
/// any number of threads.
#[test]
fn sampling_comes_close_to_the_exact_optimum() {
    let (field, data) = grid(3, 400, 21);
    let index = index(&field, &attributes(&field), Optimize::Disjoint).unwrap();
    let exact = TrainParams { l2: 4.0, ..TrainParams::default() };
    let sampled = TrainParams { max_table_mib: NOTHING, inference: GIBBS, ..exact.clone() };
    let run = |params: &TrainParams| {
        let (state, info) = train(&field, &index, &data, params, None, &mut |_, _| true, &|| true).unwrap();
        assert!(info.solver.stop.is_converged(), "{:?}", info.solver.end);
        (state.into_theta(), info.estimated)
    };
    let (mle, how) = (Components::mle(&field), params(Inference::Exact, 64.0));
    let mut likelihood = Composite::new(&field, &index, &data, &mle, &how).unwrap();
    let mut objective = |theta: &[f64]| {
        let penalty: f64 = theta.iter().map(|t| 0.5 * exact.l2 * t * t).sum();
        likelihood.value_gradient(theta, &mut vec![0.0; theta.len()]) + penalty
    };
    let (optimum, estimated) = run(&exact);
    assert!(!estimated);
    let (found, estimated) = run(&sampled);
    assert!(estimated);
    let (start, least) = (objective(&vec![0.0; index.len()]), objective(&optimum));
    let left = (objective(&found) - least) / (start - least);
    assert!((0.0..1e-3).contains(&left), "{left}");
    let (again, _) = run(&TrainParams { par: Par::threads(2), ..sampled });
    assert_eq!(found, again);
}
