//! Sum-product on forests of pairwise factors, several samples side by side, against enumeration.

use gibbsite_core::error::InferError;
use gibbsite_core::infer::tree::pairwise::{Branch, messages_len, sum_product};
use gibbsite_core::lanes::Lane;
use gibbsite_tests::oracle::Model;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus as Rng;

const N: usize = 3;

/// Branches with random parents, and which way round their tables lie.
fn forest(rng: &mut Rng, variables: usize, labels: u32) -> Vec<Branch> {
    let mut branches: Vec<Branch> = Vec::new();
    let (mut unary, mut pair) = (0, 0);
    for v in 0..variables as u32 {
        let arity = rng.random_range(1..=labels);
        let parent = (v > 0 && rng.random_bool(0.85)).then(|| rng.random_range(0..v));
        let parent_arity = parent.map_or(0, |p| branches[p as usize].arity);
        branches.push(Branch {
            arity,
            unary,
            parent,
            pair,
            parent_arity,
            parent_first: rng.random_bool(0.5),
        });
        unary += arity;
        pair += arity * parent_arity;
    }
    branches
}

struct Lanes<T> {
    unary: Vec<[T; N]>,
    pair: Vec<[T; N]>,
    log_z: [T; N],
}

fn run<T: Lane>(branches: &[Branch], unary: &[[f64; N]], pair: &[[f64; N]]) -> Option<Lanes<T>> {
    let convert = |table: &[[f64; N]]| table.iter().map(|row| row.map(T::from_f64)).collect::<Vec<_>>();
    let mut lanes = Lanes { unary: convert(unary), pair: convert(pair), log_z: [T::zero(); N] };
    let mut messages = vec![[T::zero(); N]; messages_len(branches)];
    let Lanes { unary, pair, log_z } = &mut lanes;
    sum_product(branches, unary, pair, &mut messages, log_z).unwrap().then_some(lanes)
}

/// The model of one lane, in the precision it is given.
fn model(branches: &[Branch], unary: &[[f64; N]], pair: &[[f64; N]], lane: usize) -> Model {
    let mut model = Model { cards: branches.iter().map(|b| b.arity).collect(), factors: Vec::new() };
    for (v, b) in branches.iter().enumerate() {
        let own = &unary[b.unary as usize..(b.unary + b.arity) as usize];
        model.push(&[v as u32], own.iter().map(|row| row[lane]).collect::<Vec<_>>());
        if let Some(p) = b.parent {
            let table = &pair[b.pair as usize..(b.pair + b.arity * b.parent_arity) as usize];
            let scope = if b.parent_first { [p, v as u32] } else { [v as u32, p] };
            model.push(&scope, table.iter().map(|row| row[lane]).collect::<Vec<_>>());
        }
    }
    model
}

fn tables(rng: &mut Rng, branches: &[Branch], size: f64) -> [Vec<[f64; N]>; 2] {
    let mut table = |len: u32| {
        (0..len).map(|_| std::array::from_fn(|_| rng.random_range(-size..=size))).collect::<Vec<[f64; N]>>()
    };
    let end = |f: fn(&Branch) -> u32| branches.iter().map(f).sum::<u32>();
    [table(end(|b| b.arity)), table(end(|b| b.arity * b.parent_arity))]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn equals_enumeration(variables in 1usize..7, labels in 1u32..5, size in prop_oneof![Just(1.0), Just(20.0), Just(100.0), Just(3000.0)], seed in any::<u64>()) {
        let mut rng = Rng::seed_from_u64(seed);
        let branches = forest(&mut rng, variables, labels);
        let [unary, pair] = tables(&mut rng, &branches, size);
        let found = run::<f64>(&branches, &unary, &pair);
        // Spreads that the range of numbers surely holds.
        prop_assert!(found.is_some() || size > 100.0);
        let Some(found) = found else { return Ok(()) };
        for lane in 0..N {
            let exact = model(&branches, &unary, &pair, lane).exact(&[]).unwrap();
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-12 * (1.0 + size);
            prop_assert!((found.log_z[lane] - exact.log_z).abs() <= 1e-13 * (1.0 + size) * variables as f64);
            for (row, &expected) in found.unary.iter().zip(&exact.marginals) {
                prop_assert!(near(row[lane], expected), "{} {}", row[lane], expected);
            }
            let mut pairs = found.pair.iter();
            for marginal in exact.factor_marginals.iter().zip(&model(&branches, &unary, &pair, lane).factors).filter(|(_, f)| f.0.len() == 2).map(|(m, _)| m) {
                for &expected in marginal {
                    let row = pairs.next().unwrap();
                    prop_assert!(near(row[lane], expected), "{} {}", row[lane], expected);
                }
            }
        }
    }

    /// In single precision: probabilities to its digits.
    #[test]
    fn single_precision(variables in 1usize..7, labels in 1u32..5, seed in any::<u64>()) {
        let mut rng = Rng::seed_from_u64(seed);
        let branches = forest(&mut rng, variables, labels);
        let [unary, pair] = tables(&mut rng, &branches, 5.0).map(|t| {
            t.iter().map(|row| row.map(|x| f64::from(x as f32))).collect::<Vec<_>>()
        });
        let found = run::<f32>(&branches, &unary, &pair).unwrap();
        for lane in 0..N {
            let exact = model(&branches, &unary, &pair, lane).exact(&[]).unwrap();
            prop_assert!((f64::from(found.log_z[lane]) - exact.log_z).abs() <= 2e-5);
            for (row, &expected) in found.unary.iter().zip(&exact.marginals) {
                prop_assert!((f64::from(row[lane]) - expected).abs() <= 1e-5);
            }
        }
    }
}

/// What the range of numbers cannot hold is refused, not answered wrongly: a lane where each factor forbids what the other likes.
#[test]
fn refuses_what_it_cannot_hold() {
    let root = Branch { arity: 2, unary: 0, parent: None, pair: 0, parent_arity: 0, parent_first: true };
    let leaf = Branch { arity: 2, unary: 2, parent: Some(0), pair: 0, parent_arity: 2, parent_first: true };
    let branches = [root, leaf];
    let equal = |x: f64| vec![[x; N], [0.0; N], [0.0; N], [x; N]];
    let leaning = |x: f64| vec![[0.0; N], [0.0; N], [x; N], [0.0; N]];
    assert!(run::<f64>(&branches, &leaning(400.0), &equal(100.0)).is_some());
    assert!(run::<f64>(&branches, &leaning(1e4), &equal(1e4)).is_none());
    for bad in [f64::NAN, f64::INFINITY] {
        assert!(run::<f64>(&branches, &leaning(bad), &equal(1.0)).is_none());
        assert!(run::<f64>(&branches, &leaning(1.0), &equal(bad)).is_none());
    }
    // A forbidden label leaves the others; all forbidden leaves nothing.
    assert!(run::<f64>(&branches, &leaning(f64::NEG_INFINITY), &equal(1.0)).is_some());
    assert!(run::<f64>(&branches, &[[f64::NEG_INFINITY; N]; 4], &equal(1.0)).is_none());
}

#[test]
fn what_does_not_fit_is_an_error() {
    let root = Branch { arity: 2, unary: 0, parent: None, pair: 0, parent_arity: 0, parent_first: true };
    let orphan = Branch { arity: 2, unary: 2, parent: Some(7), pair: 0, parent_arity: 2, parent_first: true };
    let late = Branch { parent: Some(1), ..orphan };
    let mut log_z = [0.0; N];
    let mut call = |branches: &[Branch], unary: usize, pair: usize, messages: usize| {
        let (mut unary, mut pair) = (vec![[0.0f64; N]; unary], vec![[0.0; N]; pair]);
        sum_product(branches, &mut unary, &mut pair, &mut vec![[0.0; N]; messages], &mut log_z)
    };
    assert_eq!(call(&[root], 1, 0, 0), Err(InferError::Shape));
    let leaf = Branch { parent: Some(0), ..orphan };
    assert_eq!(call(&[root, leaf], 4, 4, 2), Ok(true));
    assert_eq!(call(&[root, leaf], 4, 3, 2), Err(InferError::Shape));
    assert_eq!(call(&[root, leaf], 4, 4, 1), Err(InferError::Shape));
    assert_eq!(call(&[root, orphan], 4, 4, 2), Err(InferError::Shape));
    assert_eq!(call(&[root, late], 4, 4, 2), Err(InferError::Shape));
}
