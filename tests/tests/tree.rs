//! Sum- and max-product on forests against enumeration of all configurations, and on large graphs
//! against closed forms and a plain recurrence. Nothing here is shared with the engine.

use gibbsite_core::error::{GraphError, InferError};
use gibbsite_core::graph::FactorGraph;
use gibbsite_core::ids::{FactorId, VarId};
use gibbsite_core::infer::tree::Forest;
use gibbsite_core::math::Real;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const NONE: f64 = f64::NEG_INFINITY;

fn float<T: Real>(x: T) -> f64 {
    Real::to_f64(x)
}

fn close(found: f64, expected: f64, tolerance: f64) -> bool {
    (found - expected).abs() <= tolerance * expected.abs().max(1.0)
}

#[derive(Clone, Debug, Default)]
struct Model {
    cards: Vec<u32>,
    factors: Vec<(Vec<u32>, Vec<f64>)>,
}

/// The flat arrays of a [`Model`].
struct Flat<T> {
    cards: Vec<u32>,
    scope_start: Vec<u32>,
    scope: Vec<u32>,
    table_start: Vec<u32>,
    values: Vec<T>,
}

impl<T: Real> Flat<T> {
    fn graph(&self) -> FactorGraph<'_, T> {
        FactorGraph::new(&self.cards, &self.scope_start, &self.scope, &self.table_start, &self.values)
            .unwrap()
    }
}

fn order_len<T: Real>(graph: &FactorGraph<'_, T>) -> usize {
    Forest::<T>::build_len(graph.variables(), graph.factors(), graph.edges())
}

impl Model {
    fn flat<T: Real>(&self) -> Flat<T> {
        let mut flat = Flat {
            cards: self.cards.clone(),
            scope_start: vec![0],
            scope: vec![],
            table_start: vec![0],
            values: vec![],
        };
        for (scope, table) in &self.factors {
            flat.scope.extend(scope);
            flat.values.extend(table.iter().map(|&v| T::from_f64(v)));
            flat.scope_start.push(flat.scope.len() as u32);
            flat.table_start.push(flat.values.len() as u32);
        }
        flat
    }

    fn configurations(&self) -> Vec<Vec<u32>> {
        let mut all = vec![vec![]];
        for &card in &self.cards {
            all = all
                .into_iter()
                .flat_map(|x: Vec<u32>| (0..card).map(move |l| [x.as_slice(), &[l]].concat()))
                .collect();
        }
        all
    }

    fn cell(&self, scope: &[u32], x: &[u32]) -> usize {
        scope.iter().fold(0, |at, &v| at * self.cards[v as usize] as usize + x[v as usize] as usize)
    }

    fn score(&self, x: &[u32]) -> f64 {
        self.factors.iter().map(|(scope, table)| table[self.cell(scope, x)]).sum()
    }

    /// A forest of at most 7 variables. Scores are multiples of 1/16: sums are exact, also in f32.
    fn random(seed: u64, reach: i32, forbidden: f64) -> (Self, Vec<usize>) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let n = rng.random_range(0..=7usize);
        let mut model = Model { cards: (0..n).map(|_| rng.random_range(1..=4)).collect(), factors: vec![] };
        let mut piece: Vec<usize> = (0..n).collect();
        for _ in 0..rng.random_range(0..=10) {
            // Variables of different pieces, in random order, so that no cycle arises.
            let mut scope: Vec<u32> = vec![];
            for _ in 0..[0, 1, 1, 2, 2, 2, 2, 3, 3, 4][rng.random_range(0..10usize)].min(n) {
                let v = rng.random_range(0..n);
                if scope.iter().all(|&u| piece[u as usize] != piece[v]) {
                    scope.push(v as u32);
                }
            }
            if let Some(&first) = scope.first() {
                let joined: Vec<usize> = scope.iter().map(|&v| piece[v as usize]).collect();
                let name = piece[first as usize];
                piece.iter_mut().filter(|p| joined.contains(p)).for_each(|p| *p = name);
            }
            let size = scope.iter().map(|&v| model.cards[v as usize]).product::<u32>();
            let mut entry = || match rng.random_range(0.0..1.0) {
                p if p < forbidden => NONE,
                p if p < 0.5 => f64::from(rng.random_range(-reach.min(3) * 16..=reach.min(3) * 16)) / 16.0,
                p if p < 0.8 => f64::from([-reach, 0, reach][rng.random_range(0..3usize)]),
                _ => f64::from(rng.random_range(-reach * 16..=reach * 16)) / 16.0,
            };
            let table = (0..size).map(|_| entry()).collect();
            model.factors.push((scope, table));
        }
        (model, piece)
    }
}

fn check<T: Real>(model: &Model, tolerance: f64) -> Result<(), TestCaseError> {
    let flat = model.flat::<T>();
    let graph = flat.graph();
    let mut order = vec![0; order_len(&graph)];
    let forest = Forest::build(&graph, &mut order).unwrap();
    let mut marginals = vec![T::zero(); forest.marginals_len()];
    let mut beliefs = vec![T::zero(); forest.beliefs_len()];
    let mut memory = vec![T::zero(); forest.sum_product_len()];
    let mut labels = vec![0; model.cards.len()];
    let log_z = forest.sum_product(&mut marginals, Some(&mut beliefs), &mut memory);
    let alone = forest.log_z(&mut memory);
    let best = forest.max_product(&mut labels, &mut vec![T::zero(); forest.max_product_len()]);

    let mut all: Vec<(f64, Vec<u32>)> =
        model.configurations().into_iter().map(|x| (model.score(&x), x)).collect();
    all.retain(|(s, _)| *s > NONE);
    let top = all.iter().fold(NONE, |m, (s, _)| m.max(*s));
    if all.is_empty() {
        prop_assert_eq!(log_z, Err(InferError::ZeroProbability));
        prop_assert_eq!(alone, Err(InferError::ZeroProbability));
        prop_assert_eq!(best, Err(InferError::ZeroProbability));
        return Ok(());
    }
    let z: f64 = all.iter().map(|(s, _)| (s - top).exp()).sum();
    let log_z = log_z.unwrap();
    prop_assert!(close(float(log_z), top + z.ln(), tolerance), "log Z {:?} is {}", log_z, top + z.ln());
    prop_assert_eq!(alone, Ok(log_z));

    for v in 0..model.cards.len() {
        let found = &marginals[forest.range(VarId(v as u32))];
        prop_assert_eq!(found.len(), model.cards[v] as usize);
        for (label, &p) in found.iter().enumerate() {
            let with = all.iter().filter(|(_, x)| x[v] as usize == label);
            let expected = with.map(|(s, _)| (s - top).exp() / z).sum::<f64>();
            prop_assert!(
                (float(p) - expected).abs() <= tolerance,
                "variable {}: {:?} is {}",
                v,
                found,
                expected
            );
        }
    }
    let mut start = 0;
    for (k, (scope, table)) in model.factors.iter().enumerate() {
        prop_assert_eq!(forest.belief_range(FactorId(k as u32)), start..start + table.len());
        let mut expected = vec![0.0; table.len()];
        for (s, x) in &all {
            expected[model.cell(scope, x)] += (s - top).exp() / z;
        }
        for (&p, e) in beliefs[start..start + table.len()].iter().zip(&expected) {
            prop_assert!((float(p) - e).abs() <= tolerance, "factor {}: {:?} is {}", k, p, e);
        }
        start += table.len();
    }
    prop_assert_eq!(start, beliefs.len());
    prop_assert!(close(float(best.unwrap()), top, tolerance));
    prop_assert!(close(model.score(&labels), top, tolerance));
    // Beliefs are an extra: without them the rest is the same.
    let mut again = vec![T::zero(); forest.marginals_len()];
    prop_assert_eq!(forest.sum_product(&mut again, None, &mut memory), Ok(log_z));
    prop_assert_eq!(again, marginals);
    Ok(())
}

/// A belief of e^256 exactly lies between two exponents of the numbers that messages are made of; rounding once put the part on
/// one side and the whole on the other, and the marginal of 1 came out as 0.
#[test]
fn between_exponents() {
    let (model, _) = Model::random(6795596585729238365, 800, 0.0);
    check::<f64>(&model, 1e-10).unwrap();
    check::<f32>(&model, 1e-4).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_enumeration(
        seed in any::<u64>(),
        reach in prop_oneof![Just(3), Just(40), Just(800)],
        forbidden in prop_oneof![Just(0.0), Just(0.1), Just(0.4)],
    ) {
        let (model, _) = Model::random(seed, reach, forbidden);
        check::<f64>(&model, 1e-10)?;
        check::<f32>(&model, 1e-4)?;
    }

    /// One more factor within a piece of the forest is always noticed, and nothing but the piece's
    /// factors can be named.
    #[test]
    fn cycles(seed in any::<u64>()) {
        let (mut model, piece) = Model::random(seed, 1, 0.0);
        let n = model.cards.len();
        let inside = (0..n).flat_map(|u| (0..u).map(move |v| (v, u))).find(|&(v, u)| piece[v] == piece[u]);
        if let Some((v, u)) = inside {
            let size = model.cards[u] * model.cards[v];
            model.factors.push((vec![v as u32, u as u32], vec![0.0; size as usize]));
            let flat = model.flat::<f64>();
            let graph = flat.graph();
            match Forest::build(&graph, &mut vec![0; order_len(&graph)]) {
                Err(InferError::Cycle(k)) => {
                    let scope = &model.factors[k.index()].0;
                    prop_assert!(scope.len() > 1 && scope.iter().all(|&w| piece[w as usize] == piece[v]));
                }
                other => prop_assert!(false, "{:?}", other.map(|_| ())),
            }
        }
    }
}

/// A binary chain of pairwise tables as a factor graph, multiples of 1/16.
fn long_chain(n: usize) -> Model {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
    let factors = (1..n as u32).map(|v| {
        let table = (0..4).map(|_| f64::from(rng.random_range(-48..=48)) / 16.0).collect();
        (vec![v - 1, v], table)
    });
    Model { cards: vec![2; n], factors: factors.collect() }
}

fn add(a: f64, b: f64) -> f64 {
    let top = a.max(b);
    if top == NONE { NONE } else { top + ((a - top).exp() + (b - top).exp()).ln() }
}

#[test]
fn a_million_variables() {
    let n = 1_000_000;
    let model = long_chain(n);
    // Plain log-space recurrences with std's functions, normalised as they go.
    let (mut log_z, mut alpha) = (0.0, vec![[-(2f64.ln()); 2]; n]);
    for v in 1..n {
        let (a, t) = (alpha[v - 1], &model.factors[v - 1].1);
        let next = [add(a[0] + t[0], a[1] + t[2]), add(a[0] + t[1], a[1] + t[3])];
        let total = add(next[0], next[1]);
        log_z += total;
        alpha[v] = next.map(|x| x - total);
    }
    log_z += 2f64.ln();
    let mut beta = [0.0; 2];
    let mut expected = vec![0.0; n];
    for v in (0..n).rev() {
        if v + 1 < n {
            let t = &model.factors[v].1;
            let next = [add(t[0] + beta[0], t[1] + beta[1]), add(t[2] + beta[0], t[3] + beta[1])];
            let total = add(next[0], next[1]);
            beta = next.map(|x| x - total);
        }
        let joint = [alpha[v][0] + beta[0], alpha[v][1] + beta[1]];
        expected[v] = (joint[0] - add(joint[0], joint[1])).exp();
    }
    let mut delta = [0.0; 2];
    for (_, t) in &model.factors {
        delta = [f64::max(delta[0] + t[0], delta[1] + t[2]), f64::max(delta[0] + t[1], delta[1] + t[3])];
    }

    fn run<T: Real>(
        model: &Model,
        log_z: f64,
        expected: &[f64],
        best: f64,
        log_tolerance: f64,
        tolerance: f64,
    ) {
        let flat = model.flat::<T>();
        let graph = flat.graph();
        let mut order = vec![0; order_len(&graph)];
        let forest = Forest::build(&graph, &mut order).unwrap();
        let mut marginals = vec![T::zero(); forest.marginals_len()];
        let mut memory = vec![T::zero(); forest.sum_product_len()];
        assert!(memory.len() <= 14 * graph.variables());
        let found = forest.sum_product(&mut marginals, None, &mut memory).unwrap();
        assert!(close(float(found), log_z, log_tolerance), "{found:?} is {log_z}");
        assert!(marginals.chunks(2).zip(expected).all(|(p, e)| (float(p[0]) - e).abs() < tolerance));
        let mut labels = vec![0; graph.variables()];
        forest.max_product(&mut labels, &mut memory).unwrap();
        // Sums of multiples of 1/16 are exact.
        assert_eq!(model.score(&labels), best);
    }
    let best = delta[0].max(delta[1]);
    run::<f64>(&model, log_z, &expected, best, 1e-10, 1e-10);
    run::<f32>(&model, log_z, &expected, best, 1e-6, 1e-4);
}

/// A variable in 100,000 pairwise factors: quadratic work would take hours. Each even leaf takes back
/// what the odd one before it said of the centre, all but a little, so that the centre stays
/// undecided while the partial products wander far. Some tables forbid a value of a leaf; in the second
/// round one forbids a value of the centre.
#[test]
fn a_star() {
    let says = |table: &[f64], x: usize| add(table[2 * x], table[2 * x + 1]);
    for forbid in [false, true] {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
        let mut model = Model { cards: vec![3], factors: vec![] };
        for pair in 0..50_000u32 {
            let mut table: Vec<f64> = (0..6).map(|_| rng.random_range(-20.0..20.0)).collect();
            if pair % 100 == 7 {
                table[(pair / 100 % 6) as usize] = NONE;
            }
            let mut answer: Vec<f64> =
                (0..6).map(|i| 0.002 * rng.random_range(-1.0..1.0) - says(&table, i / 2)).collect();
            answer.iter_mut().skip(1).step_by(2).for_each(|a| *a = NONE);
            if forbid && pair == 777 {
                answer[2] = NONE;
            }
            for table in [table, answer] {
                model.factors.push((vec![0, model.cards.len() as u32], table));
                model.cards.push(2);
            }
        }
        let flat = model.flat::<f64>();
        let graph = flat.graph();
        let mut order = vec![0; order_len(&graph)];
        let forest = Forest::build(&graph, &mut order).unwrap();
        let mut marginals = vec![0.0; forest.marginals_len()];
        let mut memory = vec![0.0; forest.sum_product_len()];
        let log_z = forest.sum_product(&mut marginals, None, &mut memory).unwrap();

        let pairs = |x: usize| model.factors.chunks(2).map(move |p| says(&p[0].1, x) + says(&p[1].1, x));
        let totals: Vec<f64> = (0..3).map(|x| pairs(x).sum()).collect();
        let expected = totals.iter().copied().fold(NONE, add);
        assert!(close(log_z, expected, 1e-10), "{log_z} is {expected}");
        let centre: Vec<f64> = totals.iter().map(|t| (t - expected).exp()).collect();
        assert!(
            (0..3).all(|x| (marginals[x] - centre[x]).abs() < 1e-10),
            "{:?} is {centre:?}",
            &marginals[..3]
        );
        assert!(centre[0] > 0.01 && centre[2] > 0.01 && (centre[1] == 0.0) == forbid, "{centre:?}");
        for (leaf, (_, t)) in model.factors.iter().enumerate() {
            let found = marginals[forest.range(VarId(leaf as u32 + 1))][0];
            let sure = (0..3).filter(|&x| centre[x] > 0.0);
            let given: f64 = sure.map(|x| centre[x] * (t[2 * x] - says(t, x)).exp()).sum();
            assert!((found - given).abs() < 1e-10, "leaf {leaf}: {found} is {given}");
        }
    }
}

#[test]
fn two_factors_over_the_same_pair_are_a_cycle() {
    let model =
        Model { cards: vec![2, 2], factors: vec![(vec![0, 1], vec![0.0; 4]), (vec![1, 0], vec![0.0; 4])] };
    let flat = model.flat::<f32>();
    let graph = flat.graph();
    let mut order = vec![0; order_len(&graph)];
    assert_eq!(Forest::build(&graph, &mut order).err(), Some(InferError::Cycle(FactorId(1))));
}

#[test]
fn zero_probability() {
    let all_zero = Model { cards: vec![2], factors: vec![(vec![0], vec![NONE, NONE])] };
    let constant = Model { cards: vec![2], factors: vec![(vec![], vec![NONE])] };
    let conflict =
        Model { cards: vec![2], factors: vec![(vec![0], vec![0.0, NONE]), (vec![0], vec![NONE, 0.0])] };
    for model in [all_zero, constant, conflict] {
        let flat = model.flat::<f64>();
        let graph = flat.graph();
        let mut order = vec![0; order_len(&graph)];
        let forest = Forest::build(&graph, &mut order).unwrap();
        let mut memory = vec![0.0; forest.sum_product_len()];
        assert_eq!(forest.sum_product(&mut [0.0; 2], None, &mut memory), Err(InferError::ZeroProbability));
        let mut labels = [9];
        assert_eq!(forest.max_product(&mut labels, &mut memory), Err(InferError::ZeroProbability));
        assert_eq!(labels, [9]);
    }
}

#[test]
fn nothing_at_all() {
    let flat = Model::default().flat::<f64>();
    let graph = flat.graph();
    let mut order = vec![0; order_len(&graph)];
    let forest = Forest::build(&graph, &mut order).unwrap();
    assert_eq!(forest.sum_product(&mut [], Some(&mut []), &mut []), Ok(0.0));
    assert_eq!(forest.max_product(&mut [], &mut []), Ok(0.0));
    assert_eq!(forest.range(VarId(0)), 0..0);
}

#[test]
fn a_sum_too_large_for_its_type_is_an_error() {
    let model = Model { cards: vec![1], factors: vec![(vec![0], vec![3e38]), (vec![], vec![3e38])] };
    let flat = model.flat::<f32>();
    let graph = flat.graph();
    let mut order = vec![0; order_len(&graph)];
    let forest = Forest::build(&graph, &mut order).unwrap();
    assert_eq!(forest.log_z(&mut [0.0; 16]), Err(InferError::BadValue));
    assert_eq!(forest.max_product(&mut [0], &mut [0.0; 3]), Err(InferError::BadValue));
}

/// One entry too few of any argument: an error that says so, and no output touched.
#[test]
fn memory_one_too_short() {
    let model = long_chain(4);
    let flat = model.flat::<f64>();
    let graph = flat.graph();
    let needed = order_len(&graph);
    let short = |needed: usize| Some(InferError::Memory { needed, given: needed - 1 });
    assert_eq!(Forest::build(&graph, &mut vec![0; needed - 1]).err(), short(needed));
    let mut order = vec![0; needed];
    let forest = Forest::build(&graph, &mut order).unwrap();

    let lens = [8, 12, forest.sum_product_len()];
    for i in 0..3 {
        let len = |j: usize| lens[j] - usize::from(i == j);
        let (mut marginals, mut beliefs) = (vec![9.0; len(0)], vec![9.0; len(1)]);
        let found = forest.sum_product(&mut marginals, Some(&mut beliefs), &mut vec![0.0; len(2)]);
        assert_eq!(found.err(), short(lens[i]));
        assert!(marginals.iter().chain(&beliefs).all(|&v| v == 9.0));
    }
    assert_eq!(forest.log_z(&mut vec![0.0; lens[2] - 1]).err(), short(lens[2]));

    let lens = [4, forest.max_product_len()];
    for i in 0..2 {
        let len = |j: usize| lens[j] - usize::from(i == j);
        let mut labels = vec![9; len(0)];
        assert_eq!(forest.max_product(&mut labels, &mut vec![0.0; len(1)]).err(), short(lens[i]));
        assert!(labels.iter().all(|&l| l == 9));
    }
}

#[test]
fn nan_never_reaches_the_engine() {
    for bad in [f64::NAN, f64::INFINITY] {
        let made = FactorGraph::new(&[2], &[0, 1], &[0], &[0, 2], &[0.0, bad]).map(|_| ());
        assert_eq!(made, Err(GraphError::BadValue(FactorId(0))));
    }
}
