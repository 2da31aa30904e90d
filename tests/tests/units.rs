//! Fixed point on any factor graph: labels, ascent and local conditionals against enumeration of the same whole numbers, marginals within what is proven of
//! their error.

use gibbsite::export::log_add_table;
use gibbsite_core::error::{GraphError, InferError};
use gibbsite_core::graph::{FactorGraph, Incidence};
use gibbsite_core::ids::FactorId;
use gibbsite_core::infer::loopy::Dimensions;
use gibbsite_core::infer::plan::Plan;
use gibbsite_core::infer::{icm, log_conditional};
use gibbsite_core::log_add::LogAdd;
use gibbsite_core::score::{LIMIT, Score};
use gibbsite_tests::desk::{Desk, Piece, open, params, planned};
use gibbsite_tests::models::{Potentials, model};
use gibbsite_tests::oracle::Model;
use proptest::prelude::*;
use proptest::sample::select;

/// What is forbidden is `-inf` in the oracle's floating point; whole numbers of this size are exact there.
fn units(x: f64) -> i32 {
    if x == f64::NEG_INFINITY { i32::MIN } else { x as i32 }
}

/// A model in whole units of which a nat has `1/unit`.
fn whole(mut model: Model, unit: f64) -> Model {
    for (_, table) in &mut model.factors {
        table.iter_mut().for_each(|v| *v = (*v / unit).round().clamp(-f64::from(LIMIT), f64::from(LIMIT)));
    }
    for (_, table) in &mut model.factors {
        // What was forbidden was brought into the range too.
        table.iter_mut().filter(|v| **v == -f64::from(LIMIT)).for_each(|v| *v = f64::NEG_INFINITY);
    }
    model
}

/// The same in nats.
fn nats(mut model: Model, unit: f64) -> Model {
    model.factors.iter_mut().for_each(|(_, table)| table.iter_mut().for_each(|v| *v *= unit));
    model
}

/// Configurations of all cliques.
fn configurations(plan: &Plan<'_>, cards: &[u32]) -> f64 {
    let size = |scope: &[u32]| scope.iter().map(|&v| f64::from(cards[v as usize])).product::<f64>();
    (0..plan.clusters()).map(|c| plan.cluster(c)).filter(|c| !c.potential).map(|c| size(c.scope)).sum()
}

/// What one addition by the table is off by, in units.
fn addition(table: &[u32], unit: f64) -> f64 {
    let step = f64::from(1u32 << table[0]);
    step * step * unit / 32.0 + 1.5
}

const KINDS: [Potentials; 5] =
    [Potentials::Gentle, Potentials::Tied, Potentials::Wild, Potentials::Extreme, Potentials::Steep(700.0)];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Additions and comparisons of whole numbers are exact, so the best labels are the best.
    #[test]
    fn the_best_labels_are_the_best(
        model in model(&KINDS),
        unit in select(vec![0.01, 0.05, 1.0]),
        seed in 0..4u64,
        block in select(vec![1u32, 2, 16, 512]),
    ) {
        let model = whole(model, unit);
        let flat = model.flat_by(units);
        let words = planned(&model.network(), &params(seed, block, false)).words;
        let plan = open(&words, &flat.graph()).unwrap();
        let mut desk = Desk::new(&plan, model.cards.len());
        let (mut run, mut fork) = desk.lend(plan, flat.graph()).unwrap();
        let Some(exact) = model.exact(&[]) else {
            prop_assert_eq!(run.maximise(&mut fork), Err(InferError::ZeroProbability));
            return Ok(());
        };
        let best = run.maximise(&mut fork).unwrap();
        prop_assert_eq!(best as f64, exact.best);
        let mut labels = vec![u32::MAX; model.cards.len()];
        run.decode(&mut labels).unwrap();
        prop_assert_eq!(model.log_potential(&labels), exact.best);
        prop_assert_eq!(flat.graph().log_potential(&labels), Some(best));
    }

    /// Sums by a table are off by what is proven, and not by more.
    #[test]
    fn marginals_are_within_their_bound(
        model in model(&[Potentials::Gentle, Potentials::Tied, Potentials::Wild]),
        unit in select(vec![1e-3, 0.01, 0.05]),
        seed in 0..4u64,
        block in select(vec![1u32, 2, 16, 512]),
    ) {
        // As the image has it, in single precision.
        let unit = f64::from(unit as f32);
        let model = whole(model, unit);
        let flat = model.flat_by(units);
        let words = planned(&model.network(), &params(seed, block, false)).words;
        let plan = open(&words, &flat.graph()).unwrap();
        let mut desk = Desk::new(&plan, model.cards.len());
        let table_words = log_add_table(unit as f32);
        let table = LogAdd::open(&table_words).unwrap();
        let error = addition(&table_words, unit);
        let bound = error * configurations(&plan, &model.cards);
        let (mut run, mut fork) = desk.lend(plan, flat.graph()).unwrap();
        let log_z = run.log_sum(&table, &mut fork);
        let Some(exact) = nats(model.clone(), unit).exact(&[]) else {
            prop_assert_eq!(log_z, Err(InferError::ZeroProbability));
            return Ok(());
        };
        // Variables in no factor are not in it.
        let mentioned = |v: usize| model.factors.iter().any(|(scope, _)| scope.contains(&(v as u32)));
        let free = (0..model.cards.len()).filter(|&v| !mentioned(v));
        let free: f64 = free.map(|v| f64::from(model.cards[v]).ln()).sum();
        let off = (log_z.unwrap() as f64 - (exact.log_z - free) / unit).abs();
        // The oracle adds in double precision.
        let rounding = 1e-12 * model.magnitude();
        prop_assert!(off <= bound + rounding + 1e-9, "log Z is off by {off} units, bound {bound}");
        let mut marginals = vec![5; exact.marginals.len()];
        run.log_marginals(&table, &mut fork, &mut marginals).unwrap();
        let mut rest = (&marginals[..], &exact.marginals[..]);
        for (v, &card) in model.cards.iter().enumerate() {
            let (found, others) = rest.0.split_at(card as usize);
            let (right, other) = rest.1.split_at(card as usize);
            rest = (others, other);
            for (&log, &p) in found.iter().zip(right) {
                if !mentioned(v) {
                    prop_assert_eq!(log, 0);
                    continue;
                }
                prop_assert!(log <= 0);
                let log = f64::from(log) * unit;
                // In logarithms: what is impossible is below everything that is not.
                let wide = 6.0 * bound * unit + 1e-3;
                // Below, the oracle has lost precision, or the probability itself.
                let right = p.ln().max(-600.0);
                prop_assert!(log <= right + wide, "variable {v}: {log} for {}, bound {wide}", p.ln());
                prop_assert!(p.ln() < -600.0 || right <= log + wide, "variable {v}: {log} for {right}, bound {wide}");
            }
        }
    }

    /// Ascent takes the same steps as in floating point, where sums of such numbers are exact too; so do the weights of one variable.
    #[test]
    fn ascent_and_conditionals_are_those_of_floating_point(
        model in model(&KINDS),
        unit in select(vec![0.01, 1.0]),
        labels in any::<u64>(),
    ) {
        let model = whole(model, unit);
        let (flat, plain) = (model.flat_by(units), model.flat::<f64>());
        let size = Dimensions::of(&flat.graph());
        prop_assert_eq!(size, Dimensions::of(&plain.graph()));
        let mut memory = vec![0; Incidence::len(size.variables, size.edges)];
        let incidence = Incidence::build(&flat.graph(), &mut memory).unwrap();
        let start: Vec<u32> =
            model.cards.iter().enumerate().map(|(v, &card)| (labels >> (5 * v % 60)) as u32 % card).collect();
        let (mut a, mut b) = (start.clone(), start.clone());
        let mut scratch = vec![7; icm::scratch_len(&size)];
        let found = icm::ascend(&flat.graph(), &incidence, &mut a, 50, &mut scratch).unwrap();
        let mut scratch = vec![7.0; icm::scratch_len(&size)];
        let right = icm::ascend(&plain.graph(), &incidence, &mut b, 50, &mut scratch).unwrap();
        prop_assert_eq!(&a, &b);
        prop_assert_eq!((found.sweeps, found.converged), (right.sweeps, right.converged));
        if right.log_potential != f64::NEG_INFINITY {
            prop_assert_eq!(found.log_potential as f64, right.log_potential);
        }

        let table_words = log_add_table(unit as f32);
        let table = LogAdd::open(&table_words).unwrap();
        let error = addition(&table_words, unit);
        let own = nats(model.clone(), unit).flat::<f64>();
        for (v, &card) in model.cards.iter().enumerate() {
            let (mut log, mut count) = (vec![7; card as usize], vec![7; card as usize]);
            let (mut p, mut scratch) = (vec![7.0; card as usize], vec![7.0; card as usize]);
            log_conditional(&flat.graph(), &incidence, &start, v as u32, &table, &mut log, &mut count).unwrap();
            gibbsite_core::infer::conditional(&own.graph(), &incidence, &start, v as u32, &mut p, &mut scratch)
                .unwrap();
            for (&log, &p) in log.iter().zip(&p) {
                let (log, wide) = (f64::from(log) * unit, f64::from(card) * error * unit + 1e-3);
                // Below, floating point has lost precision, or the probability itself.
                prop_assert!(log <= p.ln().max(-600.0) + wide, "{log} for {}", p.ln());
                prop_assert!(p.ln() < -600.0 || p.ln() <= log + wide, "{log} for {}", p.ln());
            }
        }
    }
}

/// A graph of one variable with so many factors.
fn one(factors: usize, values: &[i32]) -> (Vec<u32>, Vec<u32>, Vec<u32>, Vec<i32>) {
    let starts: Vec<u32> = (0..=factors as u32).collect();
    let tables: Vec<u32> = (0..=factors as u32).map(|k| 2 * k).collect();
    (starts, vec![0; factors], tables, values.iter().copied().cycle().take(2 * factors).collect())
}

#[test]
fn scores_out_of_range_and_too_many_of_them_are_refused() {
    for value in [LIMIT + 1, -LIMIT - 1, i32::MAX, i32::MIN + 1] {
        let (starts, scope, tables, values) = one(1, &[0, value]);
        let refused = FactorGraph::new(&[2], &starts, &scope, &tables, &values);
        assert_eq!(refused.err(), Some(GraphError::BadValue(FactorId(0))), "{value}");
    }
    for factors in [i32::MOST, i32::MOST + 1] {
        let (starts, scope, tables, values) = one(factors, &[-LIMIT, LIMIT]);
        let graph = FactorGraph::new(&[2], &starts, &scope, &tables, &values).unwrap();
        let model = Model {
            cards: vec![2],
            factors: (0..factors).map(|_| (vec![0], vec![-f64::from(LIMIT), f64::from(LIMIT)])).collect(),
        };
        let words = planned(&model.network(), &params(0, 16, false)).words;
        let plan = open(&words, &graph).unwrap();
        let mut desk = Desk::new(&plan, 1);
        let (mut run, mut fork) = desk.lend(plan, graph).unwrap();
        let mut memory = vec![0; Incidence::len(1, factors)];
        let incidence = Incidence::build(&graph, &mut memory).unwrap();
        let ascent = icm::ascend(&graph, &incidence, &mut [0], 5, &mut [0; 4]);
        if factors > i32::MOST {
            assert_eq!(run.maximise(&mut fork), Err(InferError::BadValue));
            assert_eq!(ascent.err(), Some(InferError::BadValue));
        } else {
            assert_eq!(run.maximise(&mut fork), Ok(63 << 24));
            assert_eq!(ascent.unwrap().log_potential, 63 << 24);
        }
    }
}

#[test]
fn marginals_need_sums_and_memory() {
    let mut model = Model { cards: vec![2, 2], factors: vec![] };
    model.push(&[0, 1], [1.0, 0.0, 0.0, 1.0]);
    let flat = model.flat_by(units);
    let words = planned(&model.network(), &params(0, 16, false)).words;
    let plan = open(&words, &flat.graph()).unwrap();
    let table_words = log_add_table(0.1);
    let table = LogAdd::open(&table_words).unwrap();
    let mut out = [9; 4];
    let mut desk = Desk::new(&plan, 2);
    {
        let (mut run, mut fork) = desk.lend(plan, flat.graph()).unwrap();
        assert_eq!(run.log_marginals(&table, &mut fork, &mut out), Err(InferError::Shape));
        run.maximise(&mut fork).unwrap();
        assert_eq!(run.log_marginals(&table, &mut fork, &mut out), Err(InferError::Shape));
        run.log_sum(&table, &mut fork).unwrap();
        let short = run.log_marginals(&table, &mut fork, &mut out[..3]);
        assert_eq!(short, Err(InferError::Memory { needed: 4, given: 3 }));
        assert_eq!(out, [9; 4]);
        assert_eq!(run.decode(&mut [0; 2]), Err(InferError::Shape));
    }
    {
        let (mut run, mut fork) = desk.lend(plan, flat.graph()).unwrap();
        run.log_sum(&table, &mut fork).unwrap();
        run.log_marginals(&table, &mut fork, &mut out).unwrap();
        // Equal labels, a half each: log ½ is -6.9 units.
        assert!(out.iter().all(|o| (-9..=-5).contains(o)), "{out:?}");
    }
    for piece in [Piece::Belief, Piece::Separator] {
        let mut desk = Desk::new(&plan, 2);
        if desk.shorten(piece) {
            let (mut run, mut fork) = desk.lend(plan, flat.graph()).unwrap();
            run.log_sum(&table, &mut fork).unwrap();
            assert!(matches!(run.log_marginals(&table, &mut fork, &mut out), Err(InferError::Memory { .. })));
        }
    }
}
