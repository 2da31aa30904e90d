//! The junction engine in `f64` against enumeration: log Z, marginals, factor marginals, maxima, samples.

use gibbsite_core::error::InferError;
use gibbsite_core::ids::FactorId;
use gibbsite_tests::chain;
use gibbsite_tests::desk::{Desk, Found, Piece, open, params, planned, run};
use gibbsite_tests::models::{self, Potentials, model};
use gibbsite_tests::oracle::{Model, close, distance};
use proptest::prelude::*;
use proptest::sample::select;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

const TOLERANCE: f64 = 1e-10;

/// Every kind of log-potential; e^-700 is near the end of the range of `f64`.
const KINDS: [Potentials; 5] =
    [Potentials::Gentle, Potentials::Tied, Potentials::Wild, Potentials::Extreme, Potentials::Steep(700.0)];

/// Marginals and maxima cannot be more accurate than sums of log-potentials in `f64`. This is below
/// 10^-10, and of no effect, up to magnitudes of 10^5.
fn rounding(model: &Model) -> f64 {
    TOLERANCE.max(4.0 * f64::EPSILON * model.magnitude())
}

fn check(model: &Model, answer: Result<Found, InferError>, factors: bool) -> Result<(), TestCaseError> {
    let Some(exact) = model.exact(&[]) else {
        prop_assert_eq!(answer, Err(InferError::ZeroProbability));
        return Ok(());
    };
    let found = answer.map_err(|e| TestCaseError::fail(format!("{e}, but log Z = {}", exact.log_z)))?;
    prop_assert_eq!(exact.fault(model, &found, TOLERANCE, rounding(model)), None);
    for (found, (scope, _)) in found.factor_marginals.iter().zip(&model.factors) {
        prop_assert_eq!(found.is_some(), factors && !scope.is_empty());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn agrees_with_enumeration(
        model in model(&KINDS),
        seed in 0..4u64,
        block in select(vec![1u32, 2, 16, 512]),
        factors in any::<bool>(),
    ) {
        let plan = planned(&model.network(), &params(seed, block, factors));
        check(&model, run(&plan.words, model.flat::<f64>().graph()), factors)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Along a chain sums grow to e^80 and products fall to e^-700 and beyond.
    #[test]
    fn long_steep_chains_lose_nothing(steps in models::chain(700.0), seed in 0..4u64) {
        let model = chain::model(steps.len() + 1, &steps);
        let words = planned(&model.network(), &params(seed, 512, false)).words;
        let answer = run(&words, model.flat::<f64>().graph());
        let Some(exact) = chain::exact(&steps) else {
            prop_assert_eq!(answer, Err(InferError::ZeroProbability));
            return Ok(());
        };
        let found = answer.map_err(|e| TestCaseError::fail(format!("{e}, but log Z = {}", exact.log_z)))?;
        prop_assert_eq!(exact.fault(&model, &found, TOLERANCE, TOLERANCE), None);
    }

    /// Samples are configurations that the model allows, and the same seed gives the same ones.
    #[test]
    fn samples_are_possible(model in model(&[Potentials::Tied, Potentials::Wild]), seed in any::<u64>()) {
        let plan = planned(&model.network(), &params(seed, 16, false));
        let flat = model.flat::<f64>();
        let plan = open(&plan.words, &flat.graph()).unwrap();
        let mut desk = Desk::new(&plan, model.cards.len());
        let (mut run, mut fork) = desk.lend(plan, flat.graph()).unwrap();
        if run.sum(&mut fork).is_err() {
            return Ok(());
        }
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut again = rng.clone();
        let (mut first, mut second) = (vec![0; model.cards.len()], vec![9; model.cards.len()]);
        for _ in 0..20 {
            run.sample(&mut rng, &mut first).unwrap();
            run.sample(&mut again, &mut second).unwrap();
            prop_assert_eq!(&first, &second);
            prop_assert!(first.iter().zip(&model.cards).all(|(l, c)| l < c));
            prop_assert!(model.log_potential(&first) > f64::NEG_INFINITY);
        }
    }

    /// Memory of exactly the stated length is enough (above); one entry less is an error, in whichever piece.
    #[test]
    fn short_memory_is_an_error(model in model(&[Potentials::Gentle]), block in select(vec![1u32, 16, 512])) {
        let plan = planned(&model.network(), &params(0, block, true));
        let flat = model.flat::<f64>();
        let graph = flat.graph();
        let plan = open(&plan.words, &graph).unwrap();
        let mut marginals = vec![0.0; model.cards.iter().map(|&c| c as usize).sum()];
        for piece in Piece::ALL {
            let mut desk = Desk::new(&plan, model.cards.len());
            if model.exact(&[]).is_none() || !desk.shorten(piece) {
                continue;
            }
            let answer = desk.lend(plan, graph).and_then(|(mut run, mut fork)| {
                run.sum(&mut fork)?;
                run.marginals(&mut fork, &mut marginals)?;
                graph.factor_ids().filter(|&k| !graph.scope(k).is_empty()).try_for_each(|k| {
                    run.factor_marginal(k, &mut fork, &mut vec![0.0; graph.table(k).len()])
                })
            });
            let refused = matches!(answer, Err(InferError::Memory { needed, given }) if given + 1 == needed);
            // The figures for index and temporary memory cover the largest step; a smaller plan of
            // the same bound may need less, but then the answer must be there.
            let spare = matches!(piece, Piece::Index | Piece::Temp) && answer.is_ok();
            prop_assert!(refused || spare, "{piece:?}: {answer:?}");
        }
        let mut desk = Desk::new(&plan, model.cards.len());
        if let Ok((mut run, mut fork)) = desk.lend(plan, graph)
            && run.sum(&mut fork).is_ok()
            && marginals.pop().is_some()
        {
            let short = run.marginals(&mut fork, &mut marginals);
            prop_assert_eq!(short, Err(InferError::Memory { needed: marginals.len() + 1, given: marginals.len() }));
            let mut labels = vec![0; model.cards.len() - 1];
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(0);
            let short = run.sample(&mut rng, &mut labels);
            prop_assert_eq!(short, Err(InferError::Memory { needed: labels.len() + 1, given: labels.len() }));
        }
    }
}

/// A loop of three and a tail: marginals differ, configurations are few.
fn triangle() -> Model {
    let mut model = Model { cards: vec![2, 2, 3, 2], ..Model::default() };
    model.push(&[0, 1], [0.3, -0.4, 0.1, 0.9]);
    model.push(&[2, 1], [0.5, 0.0, -1.0, 0.2, 0.7, f64::NEG_INFINITY]);
    model.push(&[2, 0], [0.0, 0.4, -0.3, 0.6, 0.1, 0.2]);
    model.push(&[3, 2], [0.0, 1.0, -1.0, 0.5, 0.5, 0.0]);
    model
}

#[test]
fn what_was_not_computed_is_not_answered() {
    let model = triangle();
    let words = planned(&model.network(), &params(0, 512, false)).words;
    let flat = model.flat::<f64>();
    let plan = open(&words, &flat.graph()).unwrap();
    let mut desk = Desk::new(&plan, 4);
    let (mut run, mut fork) = desk.lend(plan, flat.graph()).unwrap();
    let (mut marginals, mut labels, mut pair) = (vec![0.0; 9], vec![0; 4], vec![0.0; 4]);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(0);
    let shape = Err(InferError::Shape);
    assert_eq!(run.marginals(&mut fork, &mut marginals), shape, "before the first pass");
    assert_eq!(run.decode(&mut labels), shape);
    assert_eq!(run.sample(&mut rng, &mut labels), shape);
    assert_eq!(run.factor_marginal(FactorId(0), &mut fork, &mut pair), shape);
    run.maximise(&mut fork).unwrap();
    assert_eq!(run.marginals(&mut fork, &mut marginals), shape, "after the wrong pass");
    assert_eq!(run.sample(&mut rng, &mut labels), shape);
    run.sum(&mut fork).unwrap();
    assert_eq!(run.decode(&mut labels), shape);
    run.marginals(&mut fork, &mut marginals).unwrap();
    assert_eq!(run.sample(&mut rng, &mut labels), shape, "the messages are used up");
    assert_eq!(run.marginals(&mut fork, &mut marginals), shape);
    assert_eq!(run.factor_marginal(FactorId(0), &mut fork, &mut pair), shape, "the plan keeps none");
    assert_eq!(run.factor_marginal(FactorId(4), &mut fork, &mut pair), shape, "there is no such factor");
    let before = marginals.clone();
    run.sum(&mut fork).unwrap();
    run.marginals(&mut fork, &mut marginals).unwrap();
    assert_eq!(before, marginals, "the same memory, used again");
}

/// Frequencies of 40,000 samples against the oracle's probabilities. For `d` degrees of freedom the statistic exceeds
/// `d + 2√(d·t) + 2t` with probability at most `e^-t` (Laurent and Massart 2000, lemma 1, for the chi-square limit).
/// With `t = 14` a correct sampler would fail for one seed in a million; the seed is fixed.
#[test]
fn samples_have_the_right_frequencies() {
    let (t, samples) = (14.0, 40_000);
    for (seed, model) in [triangle(), {
        // The same with an isolated variable and potentials that need logarithms.
        let mut model = triangle();
        model.cards.push(3);
        model.push(&[0, 3], [800.0, 800.5, 801.0, 800.25]);
        model.push(&[3], [-800.0, -800.0]);
        model.push(&[1, 3], [-800.0, 0.0, 0.5, f64::NEG_INFINITY]);
        model
    }]
    .into_iter()
    .enumerate()
    {
        let words = planned(&model.network(), &params(0, 512, false)).words;
        let flat = model.flat::<f64>();
        let plan = open(&words, &flat.graph()).unwrap();
        let mut desk = Desk::new(&plan, model.cards.len());
        let (mut run, mut fork) = desk.lend(plan, flat.graph()).unwrap();
        let log_z = run.sum(&mut fork).unwrap();
        assert!(close(log_z, model.exact(&[]).unwrap().log_z, TOLERANCE));
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed as u64);
        let mut counts = std::collections::BTreeMap::<Vec<u32>, u32>::new();
        let mut labels = vec![0; model.cards.len()];
        for _ in 0..samples {
            run.sample(&mut rng, &mut labels).unwrap();
            *counts.entry(labels.clone()).or_default() += 1;
        }
        let (mut statistic, mut cells, mut rare) = (0.0, 0.0, (0.0, 0.0));
        model.each(|x| {
            let expected = f64::from(samples) * (model.log_potential(x) - log_z).exp();
            let count = f64::from(counts.remove(x).unwrap_or(0));
            if expected == 0.0 {
                assert_eq!(count, 0.0, "{x:?} is forbidden");
            } else if expected < 10.0 {
                rare = (rare.0 + count, rare.1 + expected);
            } else {
                statistic += (count - expected).powi(2) / expected;
                cells += 1.0;
            }
        });
        if rare.1 >= 10.0 {
            statistic += (rare.0 - rare.1).powi(2) / rare.1;
            cells += 1.0;
        } else {
            // Too few for the statistic: a Poisson count with mean below 10 exceeds 40 with probability below 10^-6.
            assert!(rare.0 <= 40.0);
        }
        let degrees: f64 = cells - 1.0;
        assert!(degrees >= 5.0, "the test has power");
        let limit = degrees + 2.0 * (degrees * t).sqrt() + 2.0 * t;
        assert!(statistic <= limit, "chi-square {statistic} with {degrees} degrees of freedom");
    }
}

#[test]
fn impossible_models_are_told() {
    let none = f64::NEG_INFINITY;
    // A table of zeros; a contradiction between two factors; one around a loop; an impossible constant.
    let mut zeros = Model { cards: vec![2, 2], ..Model::default() };
    zeros.push(&[0, 1], [none; 4]);
    let mut pair = Model { cards: vec![2, 3], ..Model::default() };
    pair.push(&[0], [0.0, none]);
    pair.push(&[0, 1], [none, none, none, 0.0, 0.0, 0.0]);
    let mut odd = Model { cards: vec![2; 3], ..Model::default() };
    for (a, b) in [(0, 1), (1, 2), (2, 0)] {
        odd.push(&[a, b], [none, 0.0, 0.0, none]);
    }
    let mut constant = Model { cards: vec![2], ..Model::default() };
    constant.push(&[], [none]);
    for model in [zeros, pair, odd, constant] {
        assert!(model.exact(&[]).is_none());
        let words = planned(&model.network(), &params(0, 512, false)).words;
        let flat = model.flat::<f64>();
        let plan = open(&words, &flat.graph()).unwrap();
        let mut desk = Desk::new(&plan, model.cards.len());
        let (mut run, mut fork) = desk.lend(plan, flat.graph()).unwrap();
        assert_eq!(run.sum(&mut fork), Err(InferError::ZeroProbability), "{model:?}");
        assert_eq!(run.maximise(&mut fork), Err(InferError::ZeroProbability), "{model:?}");
        let mut labels = vec![0; model.cards.len()];
        assert_eq!(run.decode(&mut labels), Err(InferError::Shape), "{model:?}");
    }
}

/// Sums of log-potentials that leave the range of numbers are an error: not `log Z = inf`, and not "impossible".
#[test]
fn overflow_is_told() {
    let none = f64::NEG_INFINITY;
    for (a, b) in
        [([1.5e308, 0.0], [1.5e308, 0.0, 0.0, 1.0]), ([-1.5e308; 2], [-1e308, none, -1e308, -1e308])]
    {
        let mut model = Model { cards: vec![2, 2], ..Model::default() };
        model.push(&[0], a);
        model.push(&[1, 0], b);
        let words = planned(&model.network(), &params(0, 512, false)).words;
        let flat = model.flat::<f64>();
        let plan = open(&words, &flat.graph()).unwrap();
        let mut desk = Desk::new(&plan, 2);
        let (mut run, mut fork) = desk.lend(plan, flat.graph()).unwrap();
        assert_eq!(run.sum(&mut fork), Err(InferError::BadValue));
        assert_eq!(run.maximise(&mut fork), Err(InferError::BadValue));
    }
    // A tenth of the range is far enough from its end.
    let mut model = Model { cards: vec![2, 2], ..Model::default() };
    model.push(&[0], [1e307, 0.0]);
    model.push(&[1, 0], [-1e307, none, 0.0, 1.0]);
    let words = planned(&model.network(), &params(0, 512, true)).words;
    let found = run(&words, model.flat::<f64>().graph()).unwrap();
    let exact = model.exact(&[]).unwrap();
    assert_eq!(exact.fault(&model, &found, TOLERANCE, TOLERANCE), None);
}

#[test]
fn models_without_factors_or_variables() {
    let nothing = Model::default();
    let free = Model { cards: vec![3, 1, 4], ..Model::default() };
    let mut constant = free.clone();
    constant.push(&[], [2.5]);
    for (model, log_z) in [(nothing, 0.0), (free, 12f64.ln()), (constant, 12f64.ln() + 2.5)] {
        let words = planned(&model.network(), &params(0, 512, true)).words;
        let found = run(&words, model.flat::<f64>().graph()).unwrap();
        assert!((found.log_z - log_z).abs() < 1e-14);
        assert_eq!(found.best, model.exact(&[]).unwrap().best);
        assert!(distance(&found.marginals, &model.exact(&[]).unwrap().marginals) < 1e-15);
    }
}
