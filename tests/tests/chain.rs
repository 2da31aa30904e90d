//! The chain engine against enumeration of all labellings (short chains) and against a plain
//! log-space recurrence (long ones). Nothing here is shared with the engine.

use gibbsite_core::error::InferError;
use gibbsite_core::infer::chain::{Chain, Transitions};
use gibbsite_core::math::Real;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const NONE: f64 = f64::NEG_INFINITY;

/// Scores are multiples of 1/16, so that the enumeration's sums are exact also at ±1e6.
fn score(reach: i32) -> impl Strategy<Value = f64> {
    let any = move |r: i32| (-r * 16..=r * 16).prop_map(|i| f64::from(i) / 16.0);
    prop_oneof![
        6 => any(reach.min(4)),
        4 => any(reach),
        // Few values: many ties, and configurations whose large scores cancel.
        3 => prop_oneof![Just(f64::from(-reach)), Just(f64::from(reach)), Just(0.0)],
        2 => Just(NONE),
    ]
}

#[derive(Clone, Debug)]
struct Case {
    labels: usize,
    positions: usize,
    states: Vec<f64>,
    tables: Vec<f64>,
    shared: bool,
}

fn case() -> impl Strategy<Value = Case> {
    let reach = prop_oneof![Just(3), Just(30), Just(90), Just(800), Just(1_000_000)];
    (1..=4usize, 0..=6usize, any::<bool>(), reach).prop_flat_map(|(labels, positions, shared, reach)| {
        let gaps = if shared { 1 } else { positions.saturating_sub(1) };
        let states = prop::collection::vec(score(reach), positions * labels);
        let tables = prop::collection::vec(score(reach), gaps * labels * labels);
        (states, tables).prop_map(move |(states, tables)| Case { labels, positions, states, tables, shared })
    })
}

impl Case {
    fn labellings(&self) -> Vec<Vec<u32>> {
        let mut all = vec![vec![]];
        for _ in 0..self.positions {
            all = all
                .into_iter()
                .flat_map(|y: Vec<u32>| (0..self.labels as u32).map(move |l| [y.as_slice(), &[l]].concat()))
                .collect();
        }
        all
    }

    fn score(&self, y: &[u32]) -> f64 {
        let l = self.labels;
        let mut sum = 0.0;
        for (t, &label) in y.iter().enumerate() {
            sum += self.states[t * l + label as usize];
            if t > 0 {
                let table = if self.shared { 0 } else { (t - 1) * l * l };
                sum += self.tables[table + y[t - 1] as usize * l + label as usize];
            }
        }
        sum
    }

    fn cast<T: Real>(&self) -> (Vec<T>, Vec<T>) {
        let cast = |x: &[f64]| x.iter().map(|&v| T::from_f64(v)).collect::<Vec<T>>();
        (cast(&self.states), cast(&self.tables))
    }
}

fn float<T: Real>(x: T) -> f64 {
    Real::to_f64(x)
}

fn close(found: f64, expected: f64, tolerance: f64) -> bool {
    (found - expected).abs() <= tolerance * expected.abs().max(1.0)
}

/// Runs every query of the engine on the case and compares it with enumeration.
fn check<T: Real>(case: &Case, tolerance: f64) -> Result<(), TestCaseError> {
    let (t, l) = (case.positions, case.labels);
    // Sums of multiples of 1/16 up to 800 are exact in f32, those up to 1e6 are not: there, what is best
    // may be off by the rounding of 2T partial sums.
    let largest =
        case.states.iter().chain(&case.tables).filter(|s| **s > NONE).fold(0.0, |m, s| s.abs().max(m));
    let steps = 2.0 * t as f64;
    let exact = tolerance < 1e-4 || largest <= 800.0;
    let slack = if exact { 0.0 } else { f64::from(f32::EPSILON) * steps * steps * largest };
    let nearly = |found: f64, best: f64| close(found, best, tolerance) || (found - best).abs() <= slack;
    let (states, tables) = case.cast::<T>();
    let transitions = if case.shared { Transitions::Shared(&tables) } else { Transitions::Each(&tables) };
    let chain = Chain::new(l, &states, transitions).unwrap();

    let mut all: Vec<(f64, Vec<u32>)> =
        case.labellings().into_iter().map(|y| (case.score(&y), y)).filter(|(s, _)| *s > NONE).collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));

    let mut singles = vec![T::zero(); t * l];
    let mut pairs = vec![T::zero(); t.saturating_sub(1) * l * l];
    let mut memory = vec![T::zero(); Chain::<T>::forward_backward_len(t, l)];
    let mut path = vec![0; t];
    let mut back = vec![0u8; Chain::<T>::viterbi_back_len(t, l)];
    let n = 7;
    let mut paths = vec![0; n * t];
    let mut scores = vec![T::zero(); n];
    let mut pointers = vec![0; Chain::<T>::n_best_back_len(t, l, n)];
    let mut lists = vec![T::zero(); Chain::<T>::n_best_len(l, n)];

    let log_z = chain.forward_backward(&mut singles, Some(&mut pairs), &mut memory);
    let alone = chain.log_z(&mut memory[..Chain::<T>::log_z_len(l)]);
    let best = chain.viterbi(&mut path, &mut back, &mut lists);
    let found = chain.n_best(n, &mut paths, &mut scores, &mut pointers, &mut lists);
    let Some((top, _)) = all.first() else {
        prop_assert_eq!(log_z, Err(InferError::ZeroProbability));
        prop_assert_eq!(alone, Err(InferError::ZeroProbability));
        prop_assert_eq!(best, Err(InferError::ZeroProbability));
        prop_assert_eq!(found, Err(InferError::ZeroProbability));
        return Ok(());
    };

    let z: f64 = all.iter().map(|(s, _)| (s - top).exp()).sum();
    let log_z = log_z.unwrap();
    prop_assert!(close(float(log_z), top + z.ln(), tolerance), "log Z {:?} is {}", log_z, top + z.ln());
    prop_assert_eq!(alone, Ok(log_z));
    let mut expected = vec![0.0; singles.len()];
    let mut expected_pairs = vec![0.0; pairs.len()];
    for (s, y) in &all {
        let p = (s - top).exp() / z;
        for (i, &label) in y.iter().enumerate() {
            expected[i * l + label as usize] += p;
            if i > 0 {
                expected_pairs[((i - 1) * l + y[i - 1] as usize) * l + label as usize] += p;
            }
        }
    }
    for (&f, e) in singles.iter().zip(&expected).chain(pairs.iter().zip(&expected_pairs)) {
        prop_assert!(
            (float(f) - e).abs() <= tolerance,
            "{:?} {:?} is {:?} {:?}",
            singles,
            pairs,
            expected,
            expected_pairs
        );
    }
    // The same without pairwise marginals.
    let mut again = vec![T::zero(); t * l];
    prop_assert_eq!(chain.forward_backward(&mut again, None, &mut memory), Ok(log_z));
    for (&a, &b) in again.iter().zip(&singles) {
        prop_assert!((float(a) - float(b)).abs() <= tolerance);
    }

    prop_assert!(nearly(case.score(&path), *top));
    prop_assert!(close(float(best.unwrap()), case.score(&path), tolerance));

    let found = found.unwrap();
    prop_assert_eq!(found, all.len().min(n));
    for i in 0..found {
        let y = &paths[i * t..(i + 1) * t];
        prop_assert!(nearly(case.score(y), all[i].0), "rank {}: {:?} is {:?}", i, scores, all);
        prop_assert_eq!(chain.score(y), Ok(scores[i]));
        prop_assert!(close(float(chain.score(y).unwrap()), case.score(y), tolerance));
        prop_assert!((0..i).all(|j| &paths[j * t..(j + 1) * t] != y), "twice: {:?}", y);
        prop_assert!(i == 0 || scores[i] <= scores[i - 1]);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_enumeration_in_f64(case in case()) {
        check::<f64>(&case, 1e-10)?;
    }

    #[test]
    fn agrees_with_enumeration_in_f32(case in case()) {
        check::<f32>(&case, 1e-4)?;
    }

    /// Rows longer than the blocks of four that the kernels work in, against the plain recurrence.
    #[test]
    fn more_labels(labels in 1..20usize, positions in 1..9usize, seed in any::<u64>(), reach in prop_oneof![Just(2.0), Just(200.0)]) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let states: Vec<f64> = (0..positions * labels).map(|_| rng.random_range(-reach..reach)).collect();
        let table: Vec<f64> = (0..labels * labels).map(|_| rng.random_range(-reach..reach)).collect();
        let (log_z, marginals) = recurrence(labels, &states, &table);
        let chain = Chain::new(labels, &states, Transitions::Shared(&table)).unwrap();
        let mut singles = vec![0.0; states.len()];
        let mut memory = vec![0.0; Chain::<f64>::forward_backward_len(positions, labels)];
        let found = chain.forward_backward(&mut singles, None, &mut memory).unwrap();
        prop_assert!(close(found, log_z, 1e-10));
        prop_assert!(singles.iter().zip(&marginals).all(|(a, b)| (a - b).abs() < 1e-10));
    }
}

fn log_sum(x: impl Iterator<Item = f64> + Clone) -> f64 {
    let top = x.clone().fold(NONE, f64::max);
    if top == NONE { NONE } else { top + x.map(|v| (v - top).exp()).sum::<f64>().ln() }
}

/// Forward-backward in log space with std's functions, messages normalised at each position.
fn recurrence(l: usize, states: &[f64], table: &[f64]) -> (f64, Vec<f64>) {
    let t = states.len() / l;
    let mut alpha = vec![0.0; t * l];
    let mut log_z = 0.0;
    for i in 0..t {
        for j in 0..l {
            let before =
                if i == 0 { 0.0 } else { log_sum((0..l).map(|h| alpha[(i - 1) * l + h] + table[h * l + j])) };
            alpha[i * l + j] = before + states[i * l + j];
        }
        let total = log_sum(alpha[i * l..(i + 1) * l].iter().copied());
        log_z += total;
        alpha[i * l..(i + 1) * l].iter_mut().for_each(|a| *a -= total);
    }
    let mut beta = vec![0.0; l];
    let mut marginals = vec![0.0; t * l];
    for i in (0..t).rev() {
        if i + 1 < t {
            let weighted: Vec<f64> = (0..l).map(|j| states[(i + 1) * l + j] + beta[j]).collect();
            beta = (0..l).map(|h| log_sum((0..l).map(|j| table[h * l + j] + weighted[j]))).collect();
            let top = beta.iter().copied().fold(NONE, f64::max);
            beta.iter_mut().for_each(|b| *b -= top);
        }
        let joint: Vec<f64> = (0..l).map(|j| alpha[i * l + j] + beta[j]).collect();
        let total = log_sum(joint.iter().copied());
        (0..l).for_each(|j| marginals[i * l + j] = (joint[j] - total).exp());
    }
    (log_z, marginals)
}

#[test]
fn a_million_positions() {
    let (t, l) = (1_000_000, 3);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    // Multiples of 1/16 again: f32 and f64 then see the same scores. Every thousandth position is too
    // wide for plain numbers.
    let states: Vec<f64> = (0..t * l)
        .map(|i| f64::from(rng.random_range(-48..=48)) / if i / l % 1000 == 0 { 0.05 } else { 16.0 })
        .collect();
    let table: Vec<f64> = (0..l * l).map(|_| f64::from(rng.random_range(-48..=48)) / 16.0).collect();
    let (log_z, marginals) = recurrence(l, &states, &table);

    let chain = Chain::new(l, &states, Transitions::Shared(&table)).unwrap();
    let mut singles = vec![0.0; t * l];
    let mut memory = vec![0.0; Chain::<f64>::forward_backward_len(t, l)];
    let found = chain.forward_backward(&mut singles, None, &mut memory).unwrap();
    assert!(close(found, log_z, 1e-10), "{found} is {log_z}");
    assert!(singles.iter().zip(&marginals).all(|(a, b)| (a - b).abs() < 1e-10));

    let (states32, table32): (Vec<f32>, Vec<f32>) =
        (states.iter().map(|&s| s as f32).collect(), table.iter().map(|&s| s as f32).collect());
    let chain32 = Chain::new(l, &states32, Transitions::Shared(&table32)).unwrap();
    let mut singles = vec![0.0; t * l];
    let mut memory = vec![0.0; Chain::<f32>::forward_backward_len(t, l)];
    let found = chain32.forward_backward(&mut singles, None, &mut memory).unwrap();
    assert!(close(f64::from(found), log_z, 1e-6), "{found} is {log_z}");
    assert!(singles.iter().zip(&marginals).all(|(&a, b)| (f64::from(a) - b).abs() < 1e-4));

    let (mut path, mut path32) = (vec![0; t], vec![0; t]);
    let mut back = vec![0u8; Chain::<f64>::viterbi_back_len(t, l)];
    let best = chain.viterbi(&mut path, &mut back, &mut [0.0; 9]).unwrap();
    chain32.viterbi(&mut path32, &mut back, &mut [0.0; 9]).unwrap();
    // All sums are exact in f64; recentred, they are in f32 as well.
    assert_eq!(chain.score(&path).unwrap(), best);
    assert_eq!(chain.score(&path32).unwrap(), best);
    let mut delta = states[..l].to_vec();
    for row in states.chunks(l).skip(1) {
        delta = (0..l)
            .map(|j| row[j] + (0..l).map(|h| delta[h] + table[h * l + j]).fold(NONE, f64::max))
            .collect();
    }
    assert_eq!(delta.into_iter().fold(NONE, f64::max), best);
}

#[test]
fn ties_go_to_the_lowest_label() {
    let chain = Chain::new(3, &[0.0f64; 12], Transitions::Shared(&[0.0; 9])).unwrap();
    let mut path = [9; 4];
    chain.viterbi(&mut path, &mut [0u16; 9], &mut [0.0; 9]).unwrap();
    assert_eq!(path, [0; 4]);
}

#[test]
fn no_positions() {
    let chain = Chain::<f64>::new(2, &[], Transitions::Each(&[])).unwrap();
    assert_eq!(chain.forward_backward(&mut [], Some(&mut []), &mut [0.0; 20]), Ok(0.0));
    assert_eq!(chain.log_z(&mut [0.0; 12]), Ok(0.0));
    assert_eq!(chain.viterbi(&mut [], &mut [0u32; 0], &mut [0.0; 6]), Ok(0.0));
    let mut scores = [5.0, 5.0];
    assert_eq!(chain.n_best(2, &mut [], &mut scores, &mut [0; 4], &mut [0.0; 10]), Ok(1));
    assert_eq!(scores, [0.0, 5.0]);
    assert_eq!(chain.score(&[]), Ok(0.0));
}

#[test]
fn bad_scores_and_shapes() {
    for bad in [f64::NAN, f64::INFINITY] {
        let (state, table) = ([0.0, bad], [0.0, 0.0, bad, 0.0]);
        let made = Chain::new(2, &state, Transitions::Shared(&[0.0; 4]));
        assert_eq!(made.err(), Some(InferError::BadValue));
        let made = Chain::new(2, &[0.0; 4], Transitions::Each(&table));
        assert_eq!(made.err(), Some(InferError::BadValue));
    }
    let shapes: [(usize, usize, Transitions<f64>); 6] = [
        (0, 0, Transitions::Each(&[])),
        (2, 3, Transitions::Shared(&[0.0; 4])),
        (2, 4, Transitions::Shared(&[0.0; 3])),
        (2, 4, Transitions::Each(&[0.0; 8])),
        (2, 2, Transitions::Each(&[0.0; 4])),
        (usize::MAX, 0, Transitions::Each(&[])),
    ];
    for (labels, states, transitions) in shapes {
        assert_eq!(Chain::new(labels, &vec![0.0; states], transitions).err(), Some(InferError::Shape));
    }
    let states = vec![0.0; 300];
    let table = vec![0.0; 300 * 300];
    let chain = Chain::new(300, &states, Transitions::Shared(&table)).unwrap();
    assert_eq!(chain.viterbi(&mut [0], &mut [0u8; 0], &mut [0.0; 900]), Err(InferError::Shape));
    assert_eq!(chain.viterbi(&mut [0], &mut [0u16; 0], &mut [0.0; 900]), Ok(0.0));
    assert_eq!(chain.score(&[300]), Err(InferError::Shape));
    assert_eq!(chain.score(&[0, 0]), Err(InferError::Shape));
}

#[test]
fn a_sum_too_large_for_its_type_is_an_error() {
    let chain = Chain::new(1, &[3e38f32; 3], Transitions::Shared(&[0.0])).unwrap();
    assert_eq!(chain.log_z(&mut [0.0; 5]), Err(InferError::BadValue));
    assert_eq!(chain.viterbi(&mut [0; 3], &mut [0u8; 2], &mut [0.0; 3]), Err(InferError::BadValue));
}

/// One entry too few of any argument: an error that says so, and no output touched.
#[test]
fn memory_one_too_short() {
    let (t, l, n) = (3, 2, 4);
    let states = [0.0; 6];
    let chain = Chain::new(l, &states, Transitions::Shared(&[0.0; 4])).unwrap();
    let lens = [6, 8, Chain::<f64>::forward_backward_len(t, l)];
    for short in 0..3 {
        let len = |i: usize| lens[i] - usize::from(i == short);
        let (mut singles, mut pairs) = (vec![9.0; len(0)], vec![9.0; len(1)]);
        let found = chain.forward_backward(&mut singles, Some(&mut pairs), &mut vec![0.0; len(2)]);
        assert_eq!(found, Err(InferError::Memory { needed: lens[short], given: lens[short] - 1 }));
        assert!(singles.iter().chain(&pairs).all(|&v| v == 9.0));
    }
    let needed = Chain::<f64>::log_z_len(l);
    let found = chain.log_z(&mut vec![0.0; needed - 1]);
    assert_eq!(found, Err(InferError::Memory { needed, given: needed - 1 }));

    let lens = [t, Chain::<f64>::viterbi_back_len(t, l), Chain::<f64>::viterbi_len(l)];
    for short in 0..3 {
        let len = |i: usize| lens[i] - usize::from(i == short);
        let mut path = vec![9; len(0)];
        let found = chain.viterbi(&mut path, &mut vec![0u8; len(1)], &mut vec![0.0; len(2)]);
        assert_eq!(found, Err(InferError::Memory { needed: lens[short], given: lens[short] - 1 }));
        assert!(path.iter().all(|&v| v == 9));
    }

    let lens = [n * t, n, Chain::<f64>::n_best_back_len(t, l, n), Chain::<f64>::n_best_len(l, n)];
    for short in 0..4 {
        let len = |i: usize| lens[i] - usize::from(i == short);
        let (mut paths, mut scores) = (vec![9; len(0)], vec![9.0; len(1)]);
        let found = chain.n_best(n, &mut paths, &mut scores, &mut vec![0; len(2)], &mut vec![0.0; len(3)]);
        assert_eq!(found, Err(InferError::Memory { needed: lens[short], given: lens[short] - 1 }));
        assert!(paths.iter().all(|&v| v == 9) && scores.iter().all(|&v| v == 9.0));
    }
}
