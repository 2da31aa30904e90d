//! Exact inference in `f32`, the scalar of a device without double precision, against enumeration.

use gibbsite_core::error::InferError;
use gibbsite_core::math::Real;
use gibbsite_tests::chain::{self, Step};
use gibbsite_tests::desk::{Desk, open, params, planned, run};
use gibbsite_tests::models::{self, Potentials, model};
use gibbsite_tests::oracle::{Exact, Model};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

const TOLERANCE: f64 = 1e-4;

/// An f32 sum is wrong by a few times its magnitude over 2^24; below 10^-4 up to magnitudes of 400.
fn rounding(model: &Model) -> f64 {
    TOLERANCE.max(2.0 * f64::from(f32::EPSILON) * model.magnitude())
}

fn check(model: &Model, seed: u64, block: u32) -> Result<(), TestCaseError> {
    let plan = planned(&model.network(), &params(seed, block, true));
    let answer = run(&plan.words, model.flat::<f32>().graph());
    let Some(exact) = model.exact(&[]) else {
        prop_assert_eq!(answer, Err(InferError::ZeroProbability));
        return Ok(());
    };
    let found = answer.map_err(|e| TestCaseError::fail(format!("{e}, but log Z = {}", exact.log_z)))?;
    prop_assert_eq!(exact.fault(model, &found, TOLERANCE, rounding(model)), None);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn agrees_with_enumeration(
        model in model(&[Potentials::Gentle, Potentials::Tied]),
        seed in 0..4u64,
        block in select(vec![1u32, 16, 512]),
    ) {
        check(&model.rounded(), seed, block)?;
    }

    /// Tables at the end of the range, e^±85, and products beyond it.
    #[test]
    fn steep_potentials_lose_nothing(model in model(&[Potentials::Steep(85.0)]), seed in 0..4u64) {
        check(&model.rounded(), seed, 512)?;
    }

    #[test]
    fn long_steep_chains_lose_nothing(steps in models::chain(85.0), seed in 0..4u64) {
        let steps: Vec<Step> = steps.iter().map(|s| s.map(|row| row.map(|v| f64::from(v as f32)))).collect();
        let model = chain::model(steps.len() + 1, &steps);
        let words = planned(&model.network(), &params(seed, 64, false)).words;
        let answer = run(&words, model.flat::<f32>().graph());
        let Some(exact) = chain::exact(&steps) else {
            prop_assert_eq!(answer, Err(InferError::ZeroProbability));
            return Ok(());
        };
        let found = answer.map_err(|e| TestCaseError::fail(format!("{e}, but log Z = {}", exact.log_z)))?;
        prop_assert_eq!(exact.fault(&model, &found, TOLERANCE, rounding(&model)), None);
    }

    /// Beyond e^±85 an `f32` has no normal numbers: logarithms take over, and only rounding is lost.
    #[test]
    fn large_potentials_take_logarithms(model in model(&[Potentials::Wild]), seed in 0..4u64) {
        check(&model.rounded(), seed, 512)?;
    }

    #[test]
    fn samples_are_possible(model in model(&[Potentials::Wild]), seed in any::<u64>()) {
        let model = model.rounded();
        let words = planned(&model.network(), &params(0, 64, false)).words;
        let flat = model.flat::<f32>();
        let plan = open(&words, &flat.graph()).unwrap();
        let mut desk = Desk::new(&plan, model.cards.len());
        let (mut run, mut fork) = desk.lend(plan, flat.graph()).unwrap();
        if run.sum(&mut fork).is_ok() {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut labels = vec![0; model.cards.len()];
            for _ in 0..10 {
                run.sample(&mut rng, &mut labels).unwrap();
                prop_assert!(model.log_potential(&labels) > f64::NEG_INFINITY);
            }
        }
    }
}

/// A hub with branches of free variables: each sends a message of `bias(x)` plus `ln 2` for every variable on it.
#[derive(Clone, Debug)]
struct Branch {
    length: usize,
    bias: [f64; 2],
}

fn branches(range: f64) -> impl Strategy<Value = Vec<Branch>> {
    // Most branches like one label better, some a great deal; a few forbid it.
    let bias = prop_oneof![
        3 => Just([0.0, 0.0]),
        3 => Just([0.0, -13.0]),
        1 => Just([0.0, -0.98 * range]),
        1 => Just([f64::NEG_INFINITY, 0.0]),
    ];
    // Up to 23 variables: beyond e^16 a message is scaled back.
    let length = prop_oneof![1..24usize, 20..24usize];
    (vec((length, bias), 1..24), any::<bool>()).prop_map(|(list, turned)| {
        let branch = |(length, [a, b]): (usize, [f64; 2])| Branch {
            length,
            bias: if turned { [b, a] } else { [a, b] },
        };
        list.into_iter().map(branch).collect()
    })
}

fn check_hub<T: Real>(branches: &[Branch], probability: impl Fn(&Model) -> f64) -> Result<(), TestCaseError> {
    let mut model = Model { cards: vec![2], ..Model::default() };
    let mut at_hub = [0.0; 2];
    for Branch { length, bias } in branches {
        for i in 0..*length {
            let v = model.cards.len() as u32;
            model.cards.push(2);
            let [a, b] = if i == 0 { *bias } else { [0.0; 2] };
            model.push(&[if i == 0 { 0 } else { v - 1 }, v], [a, a, b, b]);
        }
        at_hub = [0, 1].map(|x| at_hub[x] + bias[x] + *length as f64 * 2f64.ln());
    }
    let words = planned(&model.network(), &params(0, 64, false)).words;
    let answer = run(&words, model.flat::<T>().graph());
    let log_z = chain::combine(&at_hub, false);
    if log_z == f64::NEG_INFINITY {
        prop_assert_eq!(answer, Err(InferError::ZeroProbability));
        return Ok(());
    }
    let found = answer.map_err(|e| TestCaseError::fail(format!("{e}, but log Z = {log_z}")))?;
    let mut marginals = vec![0.5; found.marginals.len()];
    marginals[0] = (at_hub[0] - log_z).exp();
    marginals[1] = (at_hub[1] - log_z).exp();
    let sum = |x: usize| branches.iter().map(|b| b.bias[x]).sum::<f64>();
    let exact = Exact { log_z, marginals, factor_marginals: Vec::new(), best: sum(0).max(sum(1)) };
    prop_assert_eq!(exact.fault(&model, &found, TOLERANCE, probability(&model)), None);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Messages as large as they get meet with others as small as they get: no product overflows, and what
    /// is scaled back does not vanish.
    #[test]
    fn messages_meet_at_a_hub(small in branches(85.0), large in branches(700.0)) {
        check_hub::<f32>(&small, rounding)?;
        check_hub::<f64>(&large, |_| 1e-10)?;
    }
}
