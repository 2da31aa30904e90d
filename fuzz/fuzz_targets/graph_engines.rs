//! Arbitrary flat arrays as a factor graph: refused, or every engine gives an error or a sane answer within
//! bounded work; the exact ones agree with brute force.
#![no_main]

use arbitrary::{Result, Unstructured};
use gibbsite_core::error::InferError;
use gibbsite_core::graph::{FactorGraph, Incidence};
use gibbsite_core::ids::FactorId;
use gibbsite_core::infer::chain::{Chain, Transitions};
use gibbsite_core::infer::gibbs::{self, Gibbs, Scan};
use gibbsite_core::infer::icm;
use gibbsite_core::infer::loopy::{Dimensions, LARGEST_ENTRY, Loopy, Mode, Params, Schedule};
use gibbsite_core::infer::tree::Forest;
use gibbsite_core::infer::trw::Trw;
use gibbsite_fuzz::{Arrays, Dice, Truth, log_potential};
use libfuzzer_sys::fuzz_target;

type Graph<'a> = FactorGraph<'a, f64>;

fn check(bytes: &[u8]) -> Result<()> {
    let u = &mut Unstructured::new(bytes);
    if u.ratio(1, 8)? {
        return chain(u);
    }
    let arrays = if u.ratio(1, 4)? { Arrays::any(u)? } else { Arrays::legal(u, LARGEST_ENTRY)? };
    let Arrays { cards, scope_start, scope, table_start, values } = &arrays;
    let Ok(graph) = FactorGraph::new(cards, scope_start, scope, table_start, values) else { return Ok(()) };
    // Huge arities without factors are legal; enumerating them is not for a fuzzer.
    if arrays.configurations().is_none_or(|n| n > 1 << 14) {
        return Ok(());
    }
    let truth = Truth::of(&arrays);
    tree(&graph, &truth);
    loopy(&graph, u, &truth)?;
    trw(&graph, u, &truth)?;
    local(&graph, u, &truth)
}

fn sane(p: &[f64]) {
    assert!(p.iter().all(|p| (-1e-9..=1.0 + 1e-9).contains(p)), "not probabilities: {p:?}");
}

/// What an engine that gives probabilities may say instead.
fn refused(error: InferError, truth: &Truth) {
    match error {
        InferError::ZeroProbability => assert_eq!(truth.log_z, f64::NEG_INFINITY),
        InferError::BadValue => assert!(truth.scale > 1e17, "an ordinary graph was refused"),
        other => panic!("{other}"),
    }
}

fn tree(graph: &Graph<'_>, truth: &Truth) {
    let mut order = vec![0; Forest::<f64>::build_len(graph.variables(), graph.factors(), graph.edges())];
    let forest = match Forest::build(graph, &mut order) {
        Ok(forest) => forest,
        Err(error) => return assert!(matches!(error, InferError::Cycle(_)), "{error}"),
    };
    let (mut marginals, mut beliefs) = (vec![0.0; forest.marginals_len()], vec![0.0; forest.beliefs_len()]);
    let mut memory = vec![0.0; forest.sum_product_len()];
    match forest.sum_product(&mut marginals, Some(&mut beliefs), &mut memory) {
        Ok(log_z) => {
            assert!(truth.agrees(log_z, truth.log_z), "{log_z} is not {}", truth.log_z);
            assert!(truth.agrees_on(&marginals), "{marginals:?} are not {:?}", truth.marginals);
            sane(&beliefs);
        }
        Err(error) => refused(error, truth),
    }
    let (mut labels, mut memory) = (vec![0; graph.variables()], vec![0.0; forest.max_product_len()]);
    match forest.max_product(&mut labels, &mut memory) {
        Ok(best) => {
            assert!(truth.agrees(best, truth.best), "{best} is not {}", truth.best);
            let reached = graph.log_potential(&labels).expect("labels in range");
            assert!(
                truth.agrees(reached, truth.best),
                "{labels:?} has {reached}, the best is {}",
                truth.best
            );
        }
        Err(error) => refused(error, truth),
    }
}

fn params(u: &mut Unstructured<'_>) -> Result<Params<f64>> {
    Ok(Params {
        max_iterations: u.int_in_range(0..=30)?,
        tolerance: 1e-9,
        damping: f64::from(u.int_in_range(0..=9)?) / 10.0,
        schedule: if u.arbitrary()? { Schedule::Sequential } else { Schedule::Residual },
    })
}

fn loopy(graph: &Graph<'_>, u: &mut Unstructured<'_>, truth: &Truth) -> Result<()> {
    let size = Dimensions::of(graph);
    let mode = if u.arbitrary()? { Mode::Sum } else { Mode::Max };
    let (mut words, mut reals) =
        (vec![0; Loopy::<f64>::words_len(&size)], vec![0.0; Loopy::<f64>::reals_len(&size)]);
    let mut bp = match Loopy::new(*graph, mode, &mut words, &mut reals) {
        Ok(bp) => bp,
        Err(error) => {
            refused(error, truth);
            return Ok(());
        }
    };
    if let Err(error) = bp.run(&params(u)?) {
        refused(error, truth);
        return Ok(());
    }
    let mut p = vec![0.0; size.labels];
    if bp.marginals(&mut p).is_ok() {
        sane(&p);
    }
    if let Ok(log_z) = bp.log_z() {
        assert!(!log_z.is_nan());
    }
    for k in graph.factor_ids() {
        let mut p = vec![0.0; graph.table(k).len()];
        if bp.factor_marginal(k, &mut p).is_ok() {
            sane(&p);
        }
    }
    assert!(bp.factor_marginal(FactorId(graph.factors() as u32), &mut p).is_err());
    let mut labels = vec![0; size.variables];
    if let Ok(score) = bp.decode(&mut labels) {
        assert_eq!(graph.log_potential(&labels), Some(score));
        assert!(score <= truth.best + 1e-10 * truth.scale);
    }
    Ok(())
}

fn trw(graph: &Graph<'_>, u: &mut Unstructured<'_>, truth: &Truth) -> Result<()> {
    let size = Dimensions::of(graph);
    let (mut words, mut reals) =
        (vec![0; Trw::<f64>::words_len(&size)], vec![0.0; Trw::<f64>::reals_len(&size)]);
    let mut trw = match Trw::new(*graph, &mut words, &mut reals) {
        Ok(trw) => trw,
        Err(error) => {
            refused(error, truth);
            return Ok(());
        }
    };
    match trw.run(&params(u)?) {
        Ok(info) => {
            let slack = 1e-9 * truth.scale;
            assert!(info.bound >= truth.log_z - slack, "{} is below log Z = {}", info.bound, truth.log_z);
        }
        Err(error) => {
            refused(error, truth);
            return Ok(());
        }
    }
    let mut p = vec![0.0; size.labels];
    if trw.marginals(&mut p).is_ok() {
        sane(&p);
    }
    Ok(())
}

fn local(graph: &Graph<'_>, u: &mut Unstructured<'_>, truth: &Truth) -> Result<()> {
    let size = Dimensions::of(graph);
    let mut memory = vec![0; Incidence::len(size.variables, size.edges)];
    let incidence = Incidence::build(graph, &mut memory).expect("memory as asked for");
    let mut labels: Vec<u32> =
        graph.cards().iter().map(|&card| u.int_in_range(0..=card - 1)).collect::<Result<_>>()?;

    let before = graph.log_potential(&labels).expect("labels in range");
    let mut scratch = vec![0.0; icm::scratch_len(&size)];
    match icm::ascend(graph, &incidence, &mut labels, 20, &mut scratch) {
        Ok(info) => {
            assert_eq!(graph.log_potential(&labels), Some(info.log_potential));
            assert!(info.log_potential >= before - 1e-10 * truth.scale);
        }
        Err(error) => refused(error, truth),
    }

    let mut words = vec![0; Gibbs::<f64>::words_len(&size)];
    let mut reals = vec![0.0; Gibbs::<f64>::reals_len(&size, 64)];
    let mut gibbs = match Gibbs::new(*graph, incidence, &mut labels, &mut words, &mut reals) {
        Ok(gibbs) => gibbs,
        Err(error) => {
            refused(error, truth);
            return Ok(());
        }
    };
    // Blocks of any kind: most are no partition and must be refused.
    let len = u.int_in_range(0..=4)?;
    let start: Vec<u32> = (0..len).map(|_| u.int_in_range(0..=8)).collect::<Result<_>>()?;
    let len = u.int_in_range(0..=8)?;
    let variables: Vec<u32> = (0..len).map(|_| u.int_in_range(0..=8)).collect::<Result<_>>()?;
    let scan = if u.arbitrary()? {
        Scan::Systematic
    } else {
        Scan::Blocked { start: &start, variables: &variables }
    };
    let params = gibbs::Params {
        start_sweeps: 5,
        burn_in: 1,
        sweeps: u.int_in_range(0..=9)?,
        batch: u.int_in_range(0..=3)?,
    };
    if gibbs.run(scan, &params, &mut Dice(u.arbitrary()?)).is_ok() {
        assert_eq!(gibbs.violated(), 0, "it stays where the probability is positive");
        assert!(gibbs.labels().iter().zip(graph.cards()).all(|(l, c)| l < c));
        let mut p = vec![0.0; size.labels];
        if gibbs.marginals(&mut p).is_ok() {
            sane(&p);
        }
    }
    Ok(())
}

/// Arbitrary chains: every way to `log Z` and to the best labelling says the same.
fn chain(u: &mut Unstructured<'_>) -> Result<()> {
    let labels: usize = u.int_in_range(0..=6)?;
    let positions: usize = u.int_in_range(0..=6)?;
    let each = u.arbitrary()?;
    let odd = u.ratio(1, 16)?;
    let states: Vec<f64> =
        (0..labels * positions + usize::from(odd)).map(|_| log_potential(u, 1e12)).collect::<Result<_>>()?;
    let tables = if each { positions.saturating_sub(1) } else { 1 };
    let table: Vec<f64> =
        (0..labels * labels * tables).map(|_| log_potential(u, 1e12)).collect::<Result<_>>()?;
    let transitions = if each { Transitions::Each(&table) } else { Transitions::Shared(&table) };
    let Ok(chain) = Chain::new(labels, &states, transitions) else { return Ok(()) };
    // With one label, one score more is one position more.
    let positions = chain.positions();
    assert_eq!(positions * labels, states.len());
    assert!(!each || table.len() == cells(labels) * positions.saturating_sub(1));

    // The same as a factor graph.
    let mut arrays = Arrays {
        cards: vec![labels as u32; positions],
        scope_start: vec![0],
        table_start: vec![0],
        ..Arrays::default()
    };
    for v in 0..positions {
        arrays.push(&[v as u32], &states[v * labels..(v + 1) * labels]);
    }
    for v in 1..positions {
        let at = if each { (v - 1) * cells(labels) } else { 0 };
        arrays.push(&[v as u32 - 1, v as u32], &table[at..at + cells(labels)]);
    }
    if arrays.configurations().is_none_or(|n| n > 1 << 12) {
        return Ok(());
    }
    let truth = Truth::of(&arrays);

    let mut singles = vec![0.0; Chain::<f64>::singles_len(positions, labels)];
    let mut pairs = vec![0.0; Chain::<f64>::pairs_len(positions, labels)];
    let mut memory = vec![0.0; Chain::<f64>::forward_backward_len(positions, labels)];
    match chain.forward_backward(&mut singles, Some(&mut pairs), &mut memory) {
        Ok(log_z) => {
            assert!(truth.agrees(log_z, truth.log_z), "{log_z} is not {}", truth.log_z);
            assert!(truth.agrees_on(&singles), "{singles:?} are not {:?}", truth.marginals);
            sane(&pairs);
        }
        Err(error) => refused(error, &truth),
    }
    match chain.log_z(&mut vec![0.0; Chain::<f64>::log_z_len(labels)]) {
        Ok(log_z) => assert!(truth.agrees(log_z, truth.log_z)),
        Err(error) => refused(error, &truth),
    }
    let (mut path, mut back) =
        (vec![0; positions], vec![0u8; Chain::<f64>::viterbi_back_len(positions, labels)]);
    match chain.viterbi(&mut path, &mut back, &mut vec![0.0; Chain::<f64>::viterbi_len(labels)]) {
        Ok(best) => {
            assert!(truth.agrees(best, truth.best), "{best} is not {}", truth.best);
            let reached = chain.score(&path).expect("labels in range");
            assert!(truth.agrees(reached, truth.best), "{path:?} has {reached}, the best is {}", truth.best);
        }
        Err(error) => refused(error, &truth),
    }
    let n = u.int_in_range(0..=5)?;
    let (mut paths, mut scores) = (vec![0; n * positions], vec![0.0; n]);
    let mut back = vec![0; Chain::<f64>::n_best_back_len(positions, labels, n)];
    let mut memory = vec![0.0; Chain::<f64>::n_best_len(labels, n)];
    match chain.n_best(n, &mut paths, &mut scores, &mut back, &mut memory) {
        Ok(found) => {
            assert!(found <= n);
            assert!(scores[..found].windows(2).all(|w| w[0] >= w[1] && w[1] > f64::NEG_INFINITY));
            assert!(found == 0 || truth.agrees(scores[0], truth.best));
            for (path, &score) in paths.chunks(positions.max(1)).zip(&scores[..found]) {
                assert!(truth.agrees(chain.score(path).expect("labels in range"), score));
            }
        }
        Err(error) => refused(error, &truth),
    }
    Ok(())
}

fn cells(labels: usize) -> usize {
    labels * labels
}

fuzz_target!(|bytes: &[u8]| {
    // An error here only says that the bytes ran out.
    let _ = check(bytes);
});
