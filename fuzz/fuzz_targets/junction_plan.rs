//! Arbitrary words as a plan for an arbitrary small graph: [`Plan::open`] refuses them, or whatever passed gives the
//! answers of brute force.
#![no_main]

use arbitrary::{Result, Unstructured};
use gibbsite::data::network::Network;
use gibbsite::plan::{PlanParams, plan};
use gibbsite_core::error::InferError;
use gibbsite_core::graph::FactorGraph;
use gibbsite_core::infer::fork::Sequential;
use gibbsite_core::infer::junction::{Fact, Junction, Memory};
use gibbsite_core::infer::plan::{HEADER, MAGIC, Plan};
use gibbsite_fuzz::{Arrays, Dice, Truth};
use libfuzzer_sys::fuzz_target;

/// Far beyond the range of `exp`, so that cliques in log space occur too.
const FAR: f64 = 1e9;

fn check(bytes: &[u8]) -> Result<()> {
    let u = &mut Unstructured::new(bytes);
    let arrays = Arrays::legal(u, FAR)?;
    let Arrays { cards, scope_start, scope, table_start, values } = &arrays;
    let graph = FactorGraph::new(cards, scope_start, scope, table_start, values).expect("a legal graph");

    let mut words;
    let planned = u.ratio(7, 8)?;
    if planned {
        // A good plan, with none, one or a few words changed.
        let mut network = Network::with_cards(cards.clone()).expect("legal arities");
        for k in graph.factor_ids() {
            network.push_factor(graph.scope(k), graph.table(k).iter().copied()).expect("a legal factor");
        }
        let params = PlanParams {
            block: u.int_in_range(1..=40)?,
            factor_marginals: u.arbitrary()?,
            ..PlanParams::default()
        };
        words = plan(&network, &params).expect("a small graph").words;
    } else {
        words = vec![MAGIC, cards.len() as u32, graph.factors() as u32, 0, 1, 0];
        let len = u.int_in_range(0..=120)?;
        for _ in 0..len {
            words.push(number(u, HEADER + len)?);
        }
        words[3] = u.int_in_range(0..=10)?;
    }
    let edits = u.int_in_range(0..=4)?;
    for _ in 0..edits {
        let at = u.choose_index(words.len())?;
        words[at] = match u.int_in_range(0..=3)? {
            0 => words[at].wrapping_add(1),
            1 => words[at].wrapping_sub(1),
            2 => words[u.choose_index(words.len())?],
            _ => number(u, words.len())?,
        };
    }
    let cut = u.ratio(1, 16)?;
    if cut {
        words.truncate(u.int_in_range(0..=words.len())?);
    }

    let mut counters = vec![0; Plan::open_len(graph.variables(), graph.factors())];
    match Plan::open(&words, &graph, &mut counters) {
        Ok(plan) => run(plan, &arrays, graph, u),
        Err(InferError::Plan(_)) => {
            assert!(!planned || edits > 0 || cut, "a good plan was refused");
            Ok(())
        }
        Err(other) => panic!("{other}"),
    }
}

/// Mostly numbers that can mean something in a plan.
fn number(u: &mut Unstructured<'_>, len: usize) -> Result<u32> {
    Ok(match u.int_in_range(0..=3)? {
        0 => u.int_in_range(0..=9)?,
        1 => u.int_in_range(0..=len as u32)?,
        2 => u32::MAX,
        _ => u.arbitrary()?,
    })
}

fn run<'a>(
    plan: Plan<'a>,
    arrays: &'a Arrays,
    graph: FactorGraph<'a, f64>,
    u: &mut Unstructured<'_>,
) -> Result<()> {
    let truth = Truth::of(arrays);
    let mut messages = vec![0.0; plan.messages_len()];
    let mut facts = vec![Fact::default(); plan.clusters()];
    let (mut belief, mut separator) = (vec![0.0; plan.belief_len()], vec![0.0; plan.separator_len()]);
    let (mut index, mut starts) = (vec![0; plan.index_len()], vec![0; graph.variables()]);
    let memory = Memory {
        messages: &mut messages,
        facts: &mut facts,
        belief: &mut belief,
        separator: &mut separator,
        index: &mut index,
        starts: &mut starts,
    };
    let mut temp = vec![0.0; plan.temp_len()];
    let mut fork = Sequential { temp: &mut temp };
    let mut run = Junction::new(plan, graph, memory).expect("memory as the plan says");
    let mut labels = vec![0; graph.variables()];
    assert!(run.decode(&mut labels).is_err(), "nothing to decode yet");

    match run.maximise(&mut fork) {
        Ok(best) => {
            assert!(truth.agrees(best, truth.best), "{best} is not {}", truth.best);
            run.decode(&mut labels).expect("after maximise");
            let reached = graph.log_potential(&labels).expect("labels in range");
            assert!(
                truth.agrees(reached, truth.best),
                "{labels:?} has {reached}, the best is {}",
                truth.best
            );
        }
        Err(error) => refused(error, &truth),
    }
    match run.sum(&mut fork) {
        Ok(log_z) => assert!(truth.agrees(log_z, truth.log_z), "{log_z} is not {}", truth.log_z),
        Err(error) => {
            refused(error, &truth);
            return Ok(());
        }
    }
    let mut dice = Dice(u.arbitrary().unwrap_or(1));
    for _ in 0..3 {
        run.sample(&mut dice, &mut labels).expect("after sum");
        let score = graph.log_potential(&labels).expect("labels in range");
        assert!(score > f64::NEG_INFINITY, "{labels:?} is forbidden");
    }
    let mut marginals = vec![0.0; truth.marginals.len()];
    run.marginals(&mut fork, &mut marginals).expect("after sum");
    assert!(truth.agrees_on(&marginals), "{marginals:?} are not {:?}", truth.marginals);
    for k in graph.factor_ids() {
        let mut p = vec![0.0; graph.table(k).len()];
        if run.factor_marginal(k, &mut fork, &mut p).is_ok() {
            assert!(p.iter().all(|p| (-1e-9..=1.0 + 1e-9).contains(p)), "not probabilities: {p:?}");
            assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        }
    }
    Ok(())
}

fn refused(error: InferError, truth: &Truth) {
    assert_eq!(error, InferError::ZeroProbability);
    assert_eq!(truth.log_z, f64::NEG_INFINITY);
}

fuzz_target!(|bytes: &[u8]| {
    // An error here only says that the bytes ran out.
    let _ = check(bytes);
});
