//! The likelihood of sequences against enumeration, its gradient against central differences.

use crate::corpus::{Enumerated, Item, Key, Kind, Known, Labelling, Source, keys, log_sum, names, seen};
use gibbsite::data::sequences::{Corpus, Format, ReadParams, Supply, read_from};
use gibbsite::features::Index;
use gibbsite::objective::estimator::Estimator;
use gibbsite::objective::sequences::SequenceLikelihood;
use gibbsite::par::Par;
use gibbsite::sequence::train::{Generate, TrainError, index};
use gibbsite::solver::lbfgs::Smooth;
use gibbsite_tests::oracle::distance;
use gibbsite_tests::regression::{normal, rng};
use proptest::prelude::*;
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;
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

/// The value against an oracle, the gradient against its central differences.
fn check(
    corpus: &Corpus,
    index: &Index,
    estimator: Estimator,
    oracle: &dyn Fn(&[f64]) -> f64,
    size: f64,
    rng: &mut Xoshiro256PlusPlus,
) -> Result<(), TestCaseError> {
    let mut f = SequenceLikelihood::of(Supply::Memory(&corpus.sequences), index, estimator, Par::Seq);
    // The largest weights leave the range of shared transitions.
    for scale in [0.0, 1.0, 200.0] {
        let theta: Vec<f64> = (0..index.len()).map(|_| scale * normal(rng)).collect();
        let (found, gradient) = evaluate(&mut f, &theta);
        let expected = oracle(&theta);
        let off = (found - expected).abs();
        prop_assert!(off <= 1e-13 * size * (1.0 + scale), "{estimator}: {found}, {expected} at {scale}");
        if scale <= 1.0 {
            for p in 0..theta.len() {
                let mut there = theta.clone();
                there[p] += 1e-5;
                let up = oracle(&there);
                there[p] -= 2e-5;
                let slope = (up - oracle(&there)) / 2e-5;
                prop_assert!(
                    (gradient[p] - slope).abs() <= 1e-7,
                    "{estimator} {p}: {} and {slope}",
                    gradient[p]
                );
            }
        }
    }
    Ok(())
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
    fn parts_given_their_borders_match_enumeration(seed in any::<u64>()) {
        let mut rng = rng(seed);
        let source = Source::random(kind(&mut rng), &mut rng);
        let corpus = source.read();
        let all = rng.random_bool(0.5);
        let generate = Generate { all_states: all, all_transitions: all, ..Generate::default() };
        let index = index(&corpus, generate).unwrap();
        let keys = keys(&corpus.alphabet, &index);
        let oracle = Enumerated::new(&source, &names(&corpus.alphabet), &keys);
        let labels = names(&corpus.alphabet);
        let number = |item: &Item| match &item.known {
            Known::One(name) => labels.iter().position(|l| l == name),
            _ => None,
        };
        for name in ["pairs", "k:1", "k:2", "k:3", "k:9"] {
            // From each item on, or from each K-th; the last one ends the sequence.
            let (length, step) = match name.strip_prefix("k:") {
                Some(k) => (k.parse().unwrap(), k.parse().unwrap()),
                None => (2, 1),
            };
            let value = |theta: &[f64]| -> f64 {
                let one = |(items, all): (&Vec<Item>, &Vec<Labelling>)| -> f64 {
                    let n = items.len();
                    let mut parts: Vec<(usize, usize)> = Vec::new();
                    for start in (0..n).step_by(step) {
                        let (mut first, mut end) = (start, (start + length).min(n));
                        let over = end == n;
                        while first > 0 && number(&items[first - 1]).is_none() {
                            first -= 1;
                        }
                        while end < n && number(&items[end]).is_none() {
                            end += 1;
                        }
                        parts.push((first, end));
                        if over {
                            break;
                        }
                    }
                    parts.dedup();
                    let part = |&(first, end): &(usize, usize)| {
                        // Outside of the part: what is known, and 0 where the part does not see it.
                        let given: Vec<usize> = items.iter().map(|i| number(i).unwrap_or(0)).collect();
                        let same = |y: &&Labelling| (0..n).all(|t| (first..end).contains(&t) || y.labels[t] == given[t]);
                        let fits = |y: &&Labelling| (first..end).all(|t| match &items[t].known {
                            Known::One(name) => labels[y.labels[t]] == *name,
                            Known::Set(names) => names.contains(&labels[y.labels[t]]),
                            Known::Any => true,
                        });
                        let near = all.iter().filter(same);
                        let score = |y: &Labelling| y.score(theta);
                        log_sum(near.clone().map(score)) - log_sum(near.filter(fits).map(score))
                    };
                    parts.iter().map(part).sum()
                };
                source.sequences.iter().zip(&oracle.0).map(one).sum()
            };
            check(&corpus, &index, Estimator::components(name).unwrap(), &value, size(&source, 1.0), &mut rng)?;
        }
        // Each factor by itself.
        let value = |theta: &[f64]| -> f64 {
            let weight = |key: &Key| keys.iter().position(|k| k == key).map_or(0.0, |p| theta[p]);
            let possible = |item: &Item, label: &String| match &item.known {
                Known::One(name) => name == label,
                Known::Set(names) => names.contains(label),
                Known::Any => true,
            };
            let mut sum = 0.0;
            for items in &source.sequences {
                for (t, item) in items.iter().enumerate() {
                    let score = |l: &String| -> f64 {
                        item.attributes.iter().map(|(a, v)| v * weight(&(0, a.clone(), vec![l.clone()]))).sum()
                    };
                    sum += log_sum(labels.iter().map(score));
                    sum -= log_sum(labels.iter().filter(|l| possible(item, l)).map(score));
                    let Some(before) = t.checked_sub(1).map(|s| &items[s]) else { continue };
                    let pairs: Vec<(String, String)> =
                        labels.iter().flat_map(|a| labels.iter().map(|b| (a.clone(), b.clone()))).collect();
                    let score = |(a, b): &(String, String)| -> f64 {
                        let both = vec![a.clone(), b.clone()];
                        let own = item.edges.iter().map(|e| weight(&(2, e.clone(), both.clone())));
                        weight(&(1, String::new(), both.clone())) + own.sum::<f64>()
                    };
                    sum += log_sum(pairs.iter().map(score));
                    let fits = |(a, b): &&(String, String)| possible(before, a) && possible(item, b);
                    sum -= log_sum(pairs.iter().filter(fits).map(score));
                }
            }
            sum
        };
        check(&corpus, &index, Estimator::Piecewise, &value, size(&source, 1.0), &mut rng)?;
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
