//! Trained models: optimality by differences of the enumerated objective, interrupted runs, and the way to the truth.

use crate::corpus::{Enumerated, Key, Kind, Source, keys, labellings, log_sum, names};
use gibbsite::data::sequences::{Corpus, Format, ReadParams, read_from};
use gibbsite::model::SequenceModel;
use gibbsite::model::sequence::Origin;
use gibbsite::par::Par;
use gibbsite::sequence::scheme::Constraints;
use gibbsite::sequence::tagger::{Tagger, Want};
use gibbsite::sequence::train::{Generate, TrainError, TrainParams, index, train};
use gibbsite::solver::lbfgs::{LbfgsInfo, State, Stop};
use gibbsite_tests::oracle::{close, distance};
use gibbsite_tests::regression::{normal, rng};
use rand::RngExt;
use std::collections::HashMap;

fn fit(corpus: &Corpus, params: &TrainParams) -> (SequenceModel, LbfgsInfo) {
    train(corpus, Origin::Crfsuite, "text", params, None, &mut |_, _| true).unwrap()
}

/// Weights of a model in the order of the keys; those that it left out are 0.
fn weights(model: &SequenceModel, all: &[Key]) -> Vec<f64> {
    let own: HashMap<Key, f64> =
        keys(&model.alphabet, &model.index).into_iter().zip(model.theta.iter().copied()).collect();
    assert!(own.keys().all(|key| all.contains(key)));
    all.iter().map(|key| own.get(key).copied().unwrap_or(0.0)).collect()
}

/// A small problem, its parameters and its oracle.
fn problem(seed: u64, columns: bool, generate: Generate) -> (Corpus, Vec<Key>, Enumerated) {
    let mut rng = rng(seed);
    let kind = Kind { labels: &["A", "B", "C"], sequences: 12, longest: 5, columns, partial: 0.15 };
    let source = Source::random(kind, &mut rng);
    let corpus = source.read();
    let keys = keys(&corpus.alphabet, &index(&corpus, generate).unwrap());
    let oracle = Enumerated::new(&source, &names(&corpus.alphabet), &keys);
    (corpus, keys, oracle)
}

#[test]
fn optima_satisfy_the_optimality_conditions() {
    for seed in 0..12u64 {
        let all = seed % 2 == 0;
        let generate = Generate { all_states: all, all_transitions: all, ..Generate::default() };
        let (corpus, keys, oracle) = problem(seed, seed % 3 == 0, generate);
        for (l1, l2) in [(0.0, 0.3), (0.0, 2.0), (0.5, 0.1), (1.5, 0.0)] {
            let params = TrainParams { l1, l2, tolerance: 1e-9, generate, ..TrainParams::default() };
            let (model, info) = fit(&corpus, &params);
            assert!(model.facts.converged, "{:?}", info.stop);
            let theta = weights(&model, &keys);
            let norms: f64 = theta.iter().map(|w| l1 * w.abs() + 0.5 * l2 * w * w).sum();
            let objective = oracle.value(&theta) + norms;
            assert!(close(info.end.objective, objective, 1e-12), "{} or {objective}", info.end.objective);
            assert_eq!(info.end.nonzeros, theta.iter().filter(|w| **w != 0.0).count());
            let zeros = theta.len() - info.end.nonzeros;
            assert!(l1 < 1.0 || zeros > 0, "a lasso of {l1} without zeros");
            for ((key, w), slope) in keys.iter().zip(&theta).zip(oracle.slopes(&theta)) {
                let smooth = slope + l2 * w;
                let wrong = if *w == 0.0 { smooth.abs() - l1 } else { (smooth + l1 * w.signum()).abs() };
                assert!(wrong <= 1e-6, "{key:?} = {w}: off by {wrong:e} at l1 {l1}, l2 {l2}");
            }
        }
    }
}

#[test]
fn the_lasso_that_leaves_nothing_is_the_steepest_slope() {
    let generate = Generate { all_states: true, all_transitions: true, ..Generate::default() };
    for seed in 20..24 {
        let (corpus, keys, oracle) = problem(seed, false, generate);
        let steepest = oracle.slopes(&vec![0.0; keys.len()]).iter().fold(0f64, |m, g| m.max(g.abs()));
        let at = |l1: f64| {
            fit(&corpus, &TrainParams { l1, l2: 0.0, tolerance: 1e-9, generate, ..TrainParams::default() }).0
        };
        let empty = at(1.001 * steepest);
        assert!(empty.theta.is_empty() && empty.facts.converged);
        assert!(!at(0.98 * steepest).theta.is_empty());
        // It still labels, every labelling being as good as another.
        let (sequences, _) = gibbsite::data::sequences::read_known_from(
            &b"A\ta0\nB\ta1:2\n"[..],
            &empty.alphabet,
            &ReadParams::new(Format::Crfsuite),
        )
        .unwrap();
        let want = Want { marginals: true, probability: true, ..Want::default() };
        let tagged = Tagger::new(&empty, Constraints::default()).tag(&sequences, want, Par::Seq).unwrap();
        assert!(distance(&tagged[0].marginals, &[1.0 / 3.0; 6]) < 1e-15);
        assert!((tagged[0].gold.unwrap() + 9f64.ln()).abs() < 1e-14);
    }
}

#[test]
fn a_resumed_run_is_the_same_run() {
    for (l1, l2) in [(0.0, 0.2), (0.4, 0.05)] {
        for columns in [false, true] {
            let generate = Generate { all_states: false, all_transitions: true, ..Generate::default() };
            let (corpus, ..) = problem(31, columns, generate);
            let params = TrainParams { l1, l2, tolerance: 1e-7, generate, ..TrainParams::default() };
            let (whole, info) = fit(&corpus, &params);
            for stop in [0, 1, info.end.iterations / 2, info.end.iterations - 1] {
                let mut saved = Vec::new();
                let (_, first) =
                    train(&corpus, Origin::Crfsuite, "text", &params, None, &mut |point, state| {
                        if point.iterations == stop {
                            saved = state.to_bytes();
                        }
                        point.iterations < stop
                    })
                    .unwrap();
                assert_eq!(first.stop, Stop::Interrupted);
                let state = State::from_bytes(&saved).unwrap();
                let (model, rest) =
                    train(&corpus, Origin::Crfsuite, "text", &params, Some(state), &mut |_, _| true).unwrap();
                assert_eq!(model, whole);
                assert_eq!(model.to_bytes(), whole.to_bytes());
                assert_eq!(rest.end.evaluations, info.end.evaluations);
            }
        }
    }
}

#[test]
fn what_cannot_be_trained_is_refused() {
    let (corpus, keys, _) = problem(40, false, TrainParams::default().generate);
    let go = |corpus: &Corpus, params: &TrainParams, start| {
        train(corpus, Origin::Crfsuite, "", params, start, &mut |_, _| true).map(|_| ())
    };
    let other = Some(State::new(vec![0.0; keys.len() + 1]));
    let found = keys.len() + 1;
    assert_eq!(
        go(&corpus, &TrainParams::default(), other),
        Err(TrainError::Resume { found, expected: keys.len() })
    );
    for bad in [f64::NAN, -1.0, f64::INFINITY] {
        let params = TrainParams { l2: bad, ..TrainParams::default() };
        assert!(matches!(go(&corpus, &params, None), Err(TrainError::Solver(_))));
    }
    // Labels that attributes determine, and nothing that holds weights back.
    let certain = read_from(&b"A\tx\nB\ty\n"[..], &ReadParams::new(Format::Crfsuite)).unwrap();
    let free = TrainParams { l2: 0.0, tolerance: 1e-12, ..TrainParams::default() };
    assert_eq!(go(&certain, &free, None), Err(TrainError::Unbounded));
    let few = TrainParams { max_iterations: 2, tolerance: 0.0, ..TrainParams::default() };
    let (model, info) = fit(&corpus, &few);
    assert!(!model.facts.converged && info.end.iterations == 2 && info.stop == Stop::Iterations);
}

/// Labellings drawn from a known chain: what is learnt approaches the truth. Marginals are compared on every input of three items, as weights alone are not
/// identified. The stated error, for the worst of all marginals: `2.83/√n` with `n` sequences of 5 items. The constant was not
/// derived: these nine runs need 0.7 to 1.7. That errors shrink with `n` is checked besides.
#[test]
fn estimates_approach_the_truth() {
    const WORDS: [&str; 3] = ["x", "y", "z"];
    let own = [[0.0, 0.8], [0.0, -0.6], [0.0, 0.1]];
    let next = [[0.7, -0.4], [0.0, 0.9]];
    let score = |x: &[usize], y: &[usize]| -> f64 {
        let items: f64 = x.iter().zip(y).map(|(&x, &y)| own[x][y]).sum();
        items + y.windows(2).map(|w| next[w[0]][w[1]]).sum::<f64>()
    };
    let inputs = labellings(3, 3);
    let marginals = |x: &[usize]| -> Vec<f64> {
        let all = labellings(2, 3);
        let log_z = log_sum(all.iter().map(|y| score(x, y)));
        let p =
            |t: usize| -> f64 { all.iter().filter(|y| y[t] == 1).map(|y| (score(x, y) - log_z).exp()).sum() };
        (0..3).flat_map(|t| [1.0 - p(t), p(t)]).collect()
    };
    let truth: Vec<f64> = inputs.iter().flat_map(|x| marginals(x)).collect();
    let test: String = inputs
        .iter()
        .map(|x| x.iter().map(|&w| format!("?\t{}\n", WORDS[w])).collect::<String>() + "\n")
        .collect();
    for seed in 0..3 {
        let mut rng = rng(100 + seed);
        let mut errors = Vec::new();
        for n in [100usize, 1600, 25_600] {
            // The first sequence fixes the order of the labels.
            let mut text = String::from("0\tx\n1\tx\n\n");
            for _ in 0..n {
                let x: Vec<usize> = (0..5).map(|_| rng.random_range(0..3)).collect();
                let all = labellings(2, 5);
                let log_z = log_sum(all.iter().map(|y| score(&x, y)));
                let mut left = rng.random_range(0.0..1.0);
                let drawn = all.iter().find(|y| {
                    left -= (score(&x, y) - log_z).exp();
                    left < 0.0
                });
                for (x, y) in x.iter().zip(drawn.unwrap_or(&all[0])) {
                    text.push_str(&format!("{y}\t{}\n", WORDS[*x]));
                }
                text.push('\n');
            }
            let read = ReadParams::new(Format::Crfsuite);
            let corpus = read_from(text.as_bytes(), &read).unwrap();
            let (model, _) = fit(&corpus, &TrainParams { l2: 1e-2, ..TrainParams::default() });
            let (sequences, _) =
                gibbsite::data::sequences::read_known_from(test.as_bytes(), &model.alphabet, &read).unwrap();
            let want = Want { best: 0, marginals: true, probability: false, forced: false };
            let tagged = Tagger::new(&model, Constraints::default()).tag(&sequences, want, Par::Seq).unwrap();
            let found: Vec<f64> = tagged.into_iter().flat_map(|t| t.marginals).collect();
            let error = distance(&found, &truth);
            assert!(error <= 2.83 / (n as f64).sqrt(), "off by {error} with {n} sequences");
            errors.push(error);
        }
        assert!(errors.is_sorted_by(|a, b| b < a), "{errors:?}");
    }
}

/// More sequences than one chunk holds, on some threads: the same model.
#[test]
fn threads_give_the_same_model() {
    let mut rng = rng(8);
    let kind = Kind { labels: &["A", "B", "C"], sequences: 300, longest: 6, columns: false, partial: 0.1 };
    let corpus = Source::random(kind, &mut rng).read();
    let run = |threads: usize, l1: f64| {
        Par::threads(threads)
            .run(|par| fit(&corpus, &TrainParams { l1, par, ..TrainParams::default() }).0.to_bytes())
    };
    for l1 in [0.0, normal(&mut rng).abs()] {
        assert!(run(1, l1) == run(2, l1) && run(1, l1) == run(3, l1));
    }
}
