//! Core's expected counts against enumeration of all labellings.

use crate::corpus::{labellings, log_sum};
use gibbsite_core::error::InferError;
use gibbsite_core::infer::chain::Shared;
use gibbsite_core::lanes::Lane;
use gibbsite_core::math::Real;
use gibbsite_tests::oracle::{close, distance};
use gibbsite_tests::regression::rng;
use proptest::prelude::*;
use rand::RngExt;

const NONE: f64 = f64::NEG_INFINITY;

fn float<T: Real>(x: T) -> f64 {
    Real::to_f64(x)
}

fn cast<T: Real>(x: &[f64]) -> Vec<T> {
    x.iter().map(|&x| T::from_f64(x)).collect()
}

/// `log Z`, marginals and expected transitions; nothing if every labelling is forbidden.
fn enumerate(labels: usize, table: &[f64], states: &[f64]) -> Option<(f64, Vec<f64>, Vec<f64>)> {
    let positions = states.len() / labels;
    let score = |y: &[usize]| -> f64 {
        let own: f64 = y.iter().enumerate().map(|(t, l)| states[t * labels + l]).sum();
        own + y.windows(2).map(|w| table[w[0] * labels + w[1]]).sum::<f64>()
    };
    let all: Vec<(Vec<usize>, f64)> =
        labellings(labels, positions).into_iter().map(|y| (score(&y), y)).map(|(s, y)| (y, s)).collect();
    let log_z = log_sum(all.iter().map(|y| y.1));
    if log_z == NONE {
        return None;
    }
    let (mut singles, mut pairs) = (vec![0.0; states.len()], vec![0.0; labels * labels]);
    for (y, score) in all {
        let p = (score - log_z).exp();
        y.iter().enumerate().for_each(|(t, l)| singles[t * labels + l] += p);
        y.windows(2).for_each(|w| pairs[w[0] * labels + w[1]] += p);
    }
    Some((log_z, singles, pairs))
}

/// Rows with padding that is nothing one should read.
fn padded<T: Lane>(labels: usize, states: &[f64]) -> Vec<T> {
    let stride = Shared::<T>::stride(labels);
    let mut rows = Vec::new();
    for row in states.chunks_exact(labels) {
        rows.extend(cast::<T>(row));
        let junk = [f64::NAN, f64::INFINITY, 1e30].into_iter().cycle();
        rows.extend(junk.take(stride - labels).map(T::from_f64));
    }
    rows
}

/// Several chains with the same transitions.
fn check<T: Lane>(labels: usize, table: &[f64], chains: &[Vec<f64>], tolerance: f64) {
    let junk = T::from_f64(7.5);
    let mut memory = vec![junk; Shared::<T>::memory_len(labels)];
    let shared = Shared::new(labels, &cast::<T>(table), &mut memory).unwrap().expect("a range that fits");
    let stride = Shared::<T>::stride(labels);
    let mut pairs = vec![T::zero(); Shared::<T>::pairs_len(labels)];
    let mut expected_pairs = vec![0.0; labels * labels];
    for states in chains {
        let mut rows = padded::<T>(labels, states);
        let mut work = vec![junk; Shared::<T>::expect_len(states.len() / labels, labels)];
        let found = shared.expect(&mut rows, &mut pairs, &mut work);
        let Some((log_z, singles, counts)) = enumerate(labels, table, states) else {
            assert_eq!(found, Err(InferError::ZeroProbability));
            return;
        };
        let found = float(found.unwrap());
        assert!(close(found, log_z, tolerance), "log Z is {found}, not {log_z}");
        let marginals: Vec<f64> =
            rows.chunks_exact(stride).flat_map(|row| row[..labels].iter().map(|&p| float(p))).collect();
        let off = distance(&marginals, &singles);
        assert!(off <= tolerance, "off by {off:e}: {marginals:?}, not {singles:?}");
        expected_pairs.iter_mut().zip(counts).for_each(|(sum, c)| *sum += c);
    }
    let mut counts = vec![junk; labels * labels];
    shared.transitions(&pairs, &mut counts).unwrap();
    let counts: Vec<f64> = counts.into_iter().map(float).collect();
    let gaps: usize = chains.iter().map(|c| (c.len() / labels).saturating_sub(1)).sum();
    let off = distance(&counts, &expected_pairs);
    assert!(off <= tolerance * gaps.max(1) as f64, "off by {off:e}: {counts:?}, not {expected_pairs:?}");
}

/// Multiples of 1/16 up to `reach`: sums are exact, in `f32` too.
fn grid(reach: f64, rng: &mut impl rand::Rng) -> f64 {
    let most = (reach * 16.0) as i32;
    f64::from(rng.random_range(-most..=most)) / 16.0
}

/// Random chains whose transitions span `range`.
fn random(seed: u64, range: f64) -> (usize, Vec<f64>, Vec<Vec<f64>>) {
    let mut rng = rng(seed);
    let (labels, longest) = [(1usize, 6), (2, 6), (3, 6), (4, 6), (9, 4), (17, 3)][rng.random_range(0..6)];
    let mut table: Vec<f64> = (0..labels * labels).map(|_| grid(range / 2.0, &mut rng)).collect();
    if labels > 1 && rng.random_bool(0.5) {
        // The whole range is used; multiples of 1/16 either way.
        let low = -(range * 8.0).floor() / 16.0;
        let (i, j) = (rng.random_range(0..table.len()), rng.random_range(0..table.len() - 1));
        table[i] = low;
        table[(i + 1 + j) % labels.pow(2)] = low + range;
    }
    let shift = grid(300.0, &mut rng);
    table.iter_mut().for_each(|a| *a += shift);
    let reach = [1.0, 20.0, 300.0][rng.random_range(0..3)];
    let forbidden = [0.0, 0.1, 0.6][rng.random_range(0..3)];
    let chains = (0..rng.random_range(1..=3))
        .map(|_| {
            let len = labels * rng.random_range(0..=longest);
            (0..len).map(|_| if rng.random_bool(forbidden) { NONE } else { grid(reach, &mut rng) }).collect()
        })
        .collect();
    (labels, table, chains)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn counts_match_enumeration(seed in any::<u64>()) {
        let (labels, table, chains) = random(seed, f64::LOG_RANGE / 4.0);
        check::<f64>(labels, &table, &chains, 1e-12);
        let (labels, table, chains) = random(seed, f64::from(f32::LOG_RANGE) / 4.0);
        check::<f32>(labels, &table, &chains, 2e-5);
    }
}

#[test]
fn what_the_range_does_not_allow_is_left_to_others() {
    fn limits<T: Lane + std::fmt::Debug>() {
        let limit = float(T::LOG_RANGE) / 4.0;
        for labels in [2, 3, 9] {
            let mut memory = vec![T::zero(); Shared::<T>::memory_len(labels)];
            let mut table = vec![0.0; labels * labels];
            let mut found = |table: &[f64]| {
                Shared::new(labels, &cast::<T>(table), &mut memory).map(|shared| shared.is_some())
            };
            for (lowest, expected) in [(-limit, true), (-limit - 0.0625, false), (NONE, false)] {
                table[labels] = lowest;
                assert_eq!(found(&table), Ok(expected), "{lowest}");
            }
            for bad in [f64::NAN, f64::INFINITY] {
                table[1] = bad;
                assert_eq!(found(&table), Err(InferError::BadValue));
            }
            assert_eq!(found(&table[1..]), Err(InferError::Shape));
            assert_eq!(found(&[]), Err(InferError::Shape));
        }
        let one = [T::from_f64(NONE)];
        assert!(Shared::new(1, &one, &mut [T::zero(); 16]).unwrap().is_none());
        assert!(Shared::new(0, &[], &mut [T::zero(); 16]).is_err());
        assert!(Shared::new(1, &[T::zero()], &mut [T::zero(); 15]).is_err());
    }
    limits::<f32>();
    limits::<f64>();
}

#[test]
fn bad_scores_are_errors_wherever_they_are() {
    let labels = 9;
    let mut memory = vec![0.0; Shared::<f64>::memory_len(labels)];
    let shared = Shared::new(labels, &[0.25; 81], &mut memory).unwrap().unwrap();
    let run = |rows: &mut [f64], spare: usize| {
        let mut pairs = vec![0.0; Shared::<f64>::pairs_len(labels)];
        let mut work = vec![0.0; Shared::<f64>::expect_len(3, labels) - spare];
        shared.expect(rows, &mut pairs, &mut work)
    };
    let good = padded::<f64>(labels, &[0.5; 27]);
    assert!(run(&mut good.clone(), 0).is_ok());
    assert!(matches!(run(&mut good.clone(), 1), Err(InferError::Memory { .. })));
    assert_eq!(run(&mut good.clone()[1..], 0), Err(InferError::Shape));
    for position in 0..3 {
        for label in 0..labels {
            for bad in [f64::NAN, f64::INFINITY] {
                let mut rows = good.clone();
                rows[position * 16 + label] = bad;
                assert_eq!(run(&mut rows, 0), Err(InferError::BadValue), "{bad} at {position}, {label}");
            }
        }
        let mut rows = good.clone();
        rows[position * 16..position * 16 + labels].fill(NONE);
        assert_eq!(run(&mut rows, 0), Err(InferError::ZeroProbability));
        rows[position * 16..position * 16 + labels].fill(f64::NAN);
        assert!(run(&mut rows, 0).is_err());
    }
    let mut counts = [0.0; 81];
    assert_eq!(shared.transitions(&[0.0; 80], &mut counts), Err(InferError::Shape));
    assert_eq!(shared.transitions(&[0.0; 256], &mut counts[1..]), Err(InferError::Shape));
}

/// A million positions. Transitions depend on neither label, so `Z` is a product over positions.
#[test]
fn long_chains_keep_their_digits() {
    fn long<T: Lane>(step: f64, tolerance: f64) -> Vec<f64> {
        let (labels, positions) = (3, 1_000_000usize);
        let mut memory = vec![T::zero(); Shared::<T>::memory_len(labels)];
        let shared = Shared::new(labels, &[T::from_f64(-0.5); 9], &mut memory).unwrap().unwrap();
        let mut rows = Vec::with_capacity(8 * positions);
        let scores = |t: usize| [0.0, step * (t % 7) as f64, -step * (t % 11) as f64];
        (0..positions).for_each(|t| rows.extend(cast::<T>(&scores(t)).into_iter().chain([T::zero(); 5])));
        let mut pairs = vec![T::zero(); Shared::<T>::pairs_len(labels)];
        let mut work = vec![T::zero(); Shared::<T>::expect_len(positions, labels)];
        let log_z = float(shared.expect(&mut rows, &mut pairs, &mut work).unwrap());
        // Scores repeat after 77 positions: few terms, or the sum here would be the one that is wrong.
        let times = |r: usize| ((positions - 1 - r) / 77 + 1) as f64;
        let expected = (0..77).map(|r| times(r) * log_sum(scores(r).into_iter())).sum::<f64>()
            - 0.5 * (positions - 1) as f64;
        assert!(close(log_z, expected, tolerance), "{log_z}, not {expected}");
        for t in [0, 1, 2, 77_777, positions - 2, positions - 1] {
            let own = scores(t);
            let share = own.map(|s| (s - log_sum(own.into_iter())).exp());
            let found: Vec<f64> = rows[8 * t..8 * t + 3].iter().map(|&p| float(p)).collect();
            assert!(distance(&found, &share) <= 1e-6, "{t}: {found:?}, not {share:?}");
        }
        let mut counts = vec![T::zero(); 9];
        shared.transitions(&pairs, &mut counts).unwrap();
        counts.into_iter().map(float).collect()
    }
    let ninth = 999_999.0 / 9.0;
    assert!(long::<f64>(0.0, 1e-14).iter().all(|c| close(*c, ninth, 1e-9)));
    assert!(close(long::<f64>(0.25, 1e-13).iter().sum(), 999_999.0, 1e-9));
    // A million small numbers in a row would be off by a hundredth in f32.
    assert!(long::<f32>(0.0, 1e-6).iter().all(|c| close(*c, ninth, 1e-4)));
    assert!(close(long::<f32>(0.25, 1e-6).iter().sum(), 999_999.0, 1e-4));
}
