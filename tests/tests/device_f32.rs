//! Exact inference in `f32`, the scalar of a device without double precision, against enumeration.

use gibbsite_core::error::InferError;
use gibbsite_tests::desk::{Desk, open, params, planned, run};
use gibbsite_tests::models::{Potentials, model};
use gibbsite_tests::oracle::Model;
use proptest::prelude::*;
use proptest::sample::select;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

const TOLERANCE: f64 = 1e-4;

fn check(model: &Model, seed: u64, block: u32) -> Result<(), TestCaseError> {
    let plan = planned(&model.network(), &params(seed, block, true));
    let answer = run(&plan.words, model.flat::<f32>().graph());
    let Some(exact) = model.exact(&[]) else {
        prop_assert_eq!(answer, Err(InferError::ZeroProbability));
        return Ok(());
    };
    let found = answer.map_err(|e| TestCaseError::fail(format!("{e}, but log Z = {}", exact.log_z)))?;
    // An f32 sum is wrong by a few times its magnitude over 2^24; below 10^-4 up to magnitudes of 400.
    let rounding = TOLERANCE.max(4.0 * f64::from(f32::EPSILON) * model.magnitude());
    prop_assert_eq!(exact.fault(model, &found, TOLERANCE, rounding), None);
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
