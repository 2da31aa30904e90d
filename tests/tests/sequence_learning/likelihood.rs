//! The likelihood of sequences against enumeration, its gradient against central differences.

use crate::corpus::{Enumerated, Kind, Labelling, Source, keys, log_sum, names, seen};
use gibbsite::data::sequences::{Format, ReadParams, read_from};
use gibbsite::objective::sequences::SequenceLikelihood;
use gibbsite::par::Par;
use gibbsite::sequence::train::{Generate, TrainError, index};
use gibbsite::solver::lbfgs::Smooth;
use gibbsite_tests::oracle::distance;
use gibbsite_tests::regression::{normal, rng};
use proptest::prelude::*;
use rand::RngExt;
use std::collections::HashSet;

const ALL: [&str; 3] = ["A", "B", "C"];

fn kind(rng: &mut impl rand::Rng) -> Kind<'static> {
    Kind {
        labels: &ALL[..rng.random_range(1..=3)],
        sequences: rng.random_range(1..=5),
        longest: 4,
        columns: rng.random_bool(0.5),
        partial: [0.0, 0.4][rng.random_range(0..2)],
    }
}

fn evaluate(f: &mut impl Smooth, theta: &[f64]) -> (f64, Vec<f64>) {
    // Whatever it held.
    let mut gradient = vec![f64::NAN; theta.len()];
    let value = f.value_gradient(theta, &mut gradient);
    (value, gradient)
}

/// What scores sum to, roughly: rounding is a share of that.
fn size(source: &Source, scale: f64) -> f64 {
    source.sequences.iter().map(Vec::len).sum::<usize>() as f64 * (1.0 + 5.0 * scale)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn values_and_gradients_match_enumeration(seed in any::<u64>()) {
        let mut rng = rng(seed);
        let source = Source::random(kind(&mut rng), &mut rng);
        let corpus = source.read();
        let all = rng.random_bool(0.5);
        let index = index(&corpus, Generate { all_states: all, all_transitions: all, ..Generate::default() }).unwrap();
        let keys = keys(&corpus.alphabet, &index);
        let expected = seen(&source, &corpus.alphabet, all);
        prop_assert_eq!(keys.iter().cloned().collect::<HashSet<_>>(), expected);
        let oracle = Enumerated::new(&source, &names(&corpus.alphabet), &keys);
        let mut f = SequenceLikelihood::new(&corpus.sequences, &index, Par::Seq);
        prop_assert_eq!(f.len(), keys.len());
        // The largest weights leave the range of shared transitions.
        for scale in [0.0, 1.0, 4.0, 200.0] {
            let theta: Vec<f64> = (0..keys.len()).map(|_| scale * normal(&mut rng)).collect();
            let (value, gradient) = evaluate(&mut f, &theta);
            let size = size(&source, scale);
            prop_assert!((value - oracle.value(&theta)).abs() <= 1e-13 * size, "{} at {}", value, scale);
            let off = distance(&gradient, &oracle.gradient(&theta));
            prop_assert!(off <= 1e-13 * size, "off by {:e} at {}", off, scale);
            if scale <= 4.0 {
                let off = distance(&gradient, &oracle.slopes(&theta));
                prop_assert!(off <= 1e-7, "off by {:e} from differences at {}", off, scale);
            }
        }
    }

    #[test]
    fn pseudolikelihood_matches_enumeration(seed in any::<u64>()) {
        let mut rng = rng(seed);
        let source = Source::random(Kind { partial: 0.0, ..kind(&mut rng) }, &mut rng);
        let corpus = source.read();
        let all = rng.random_bool(0.5);
        let generate = Generate { all_states: all, all_transitions: all, ..Generate::default() };
        let index = index(&corpus, generate).unwrap();
        let keys = keys(&corpus.alphabet, &index);
        let oracle = Enumerated::new(&source, &names(&corpus.alphabet), &keys);
        // The labellings that differ from the text's at one place.
        let value = |theta: &[f64]| -> f64 {
            let one = |all: &Vec<Labelling>| -> f64 {
                let gold = all.iter().find(|y| y.fits).unwrap();
                let near = |t: usize| {
                    let same = |y: &Labelling| (0..y.labels.len()).all(|s| s == t || y.labels[s] == gold.labels[s]);
                    let scores: Vec<f64> = all.iter().filter(|y| same(y)).map(|y| y.score(theta)).collect();
                    log_sum(scores.iter().copied()) - gold.score(theta)
                };
                (0..gold.labels.len()).map(near).sum()
            };
            oracle.0.iter().map(one).sum()
        };
        let mut f = SequenceLikelihood::pseudo(&corpus.sequences, &index, Par::Seq);
        for scale in [0.0, 1.0, 200.0] {
            let theta: Vec<f64> = (0..keys.len()).map(|_| scale * normal(&mut rng)).collect();
            let (found, gradient) = evaluate(&mut f, &theta);
            let size = size(&source, scale);
            prop_assert!((found - value(&theta)).abs() <= 1e-13 * size, "{} at {}", found, scale);
            if scale <= 1.0 {
                for p in 0..theta.len() {
                    let mut there = theta.clone();
                    there[p] += 1e-5;
                    let up = value(&there);
                    there[p] -= 2e-5;
                    let slope = (up - value(&there)) / 2e-5;
                    prop_assert!((gradient[p] - slope).abs() <= 1e-7, "{}: {} and {}", p, gradient[p], slope);
                }
            }
        }
    }

    #[test]
    fn huge_weights_are_no_reason_for_infinities(seed in any::<u64>()) {
        let mut rng = rng(seed);
        let source = Source::random(kind(&mut rng), &mut rng);
        let corpus = source.read();
        let index = index(&corpus, Generate { all_states: true, all_transitions: rng.random_bool(0.5), ..Generate::default() }).unwrap();
        let mut f = SequenceLikelihood::new(&corpus.sequences, &index, Par::Seq);
        let states = index.range(0);
        for (own, other) in [(1e6, 1e6), (1e5, 1.0), (1.0, 1e5), (1e150, 1.0), (1e150, 1e150), (1e300, 1e299)] {
            let weight = |p: usize| if states.contains(&p) { own } else { other };
            let theta: Vec<f64> = (0..f.len()).map(|p| weight(p) * rng.random_range(-1.0..=1.0)).collect();
            let (value, gradient) = evaluate(&mut f, &theta);
            prop_assert!(value.is_finite() && value >= -1e-9 * own.max(other), "{}", value);
            prop_assert!(gradient.iter().all(|g| g.is_finite()));
            if own.max(other) <= 1e6 {
                let keys = keys(&corpus.alphabet, &index);
                let oracle = Enumerated::new(&source, &names(&corpus.alphabet), &keys);
                let size = size(&source, own.max(other));
                prop_assert!((value - oracle.value(&theta)).abs() <= 1e-13 * size);
                prop_assert!(distance(&gradient, &oracle.gradient(&theta)) <= 1e-13 * size);
            }
        }
        // Scores beyond all bounds are not a number, and no panic.
        let theta = vec![f64::MAX; f.len()];
        let (value, _) = evaluate(&mut f, &theta);
        prop_assert!(!value.is_infinite());
    }
}

#[test]
fn threads_do_not_change_a_bit() {
    for (columns, labels) in [(false, &ALL[..]), (true, &ALL[..]), (false, &ALL[..1])] {
        let mut rng = rng(5);
        let source =
            Source::random(Kind { labels, sequences: 900, longest: 9, columns, partial: 0.1 }, &mut rng);
        let corpus = source.read();
        assert!(corpus.sequences.items() > 4000);
        for all in [false, true] {
            let index =
                index(&corpus, Generate { all_states: all, all_transitions: all, ..Generate::default() })
                    .unwrap();
            let theta: Vec<f64> = (0..index.len()).map(|_| normal(&mut rng)).collect();
            let run = |threads| {
                Par::threads(threads)
                    .run(|par| evaluate(&mut SequenceLikelihood::new(&corpus.sequences, &index, par), &theta))
            };
            let (value, gradient) = run(1);
            for threads in [2, 3] {
                let (v, g) = run(threads);
                assert_eq!(v.to_bits(), value.to_bits());
                assert!(g.iter().zip(&gradient).all(|(a, b)| a.to_bits() == b.to_bits()));
            }
        }
    }
}

#[test]
fn without_labels_there_is_nothing_to_index() {
    let corpus = read_from(&b"?\tx\n?\ty\n"[..], &ReadParams::new(Format::Crfsuite)).unwrap();
    let seen = Generate { all_states: false, all_transitions: false, ..Generate::default() };
    assert_eq!(index(&corpus, seen), Err(TrainError::NoLabels));
}
