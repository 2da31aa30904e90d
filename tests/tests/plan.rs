//! Plans: each opens as a junction tree of its network, states its memory truly, is as narrow as it can be where that is
//! known, the same for the same seed, soon there, and refused or harmless when its words are tampered with.

use gibbsite::data::network::Network;
use gibbsite::plan::{PlanError, plan};
use gibbsite_core::error::InferError;
use gibbsite_core::infer::plan::{HEADER, MAGIC, NONE, POTENTIAL, RECEIVES, RECORD};
use gibbsite_tests::chain::{self, Step, advance, combine};
use gibbsite_tests::desk::{Desk, open, params, planned, run};
use gibbsite_tests::models::{Potentials, model};
use gibbsite_tests::oracle::{Model, close};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::time::Instant;

const TOLERANCE: f64 = 1e-10;

/// What `run` finds must be right for `model`, or there must be an error; `Err` says what is wrong.
fn refused_or_right(words: &[u32], model: &Model) -> Result<bool, String> {
    let flat = model.flat::<f64>();
    if open(words, &flat.graph()).is_err() {
        return Ok(false);
    }
    match (run(words, flat.graph()), model.exact(&[])) {
        (Err(InferError::ZeroProbability), None) => Ok(true),
        (Ok(found), Some(exact)) => match exact.fault(model, &found, TOLERANCE, TOLERANCE) {
            None => Ok(true),
            Some(fault) => Err(fault),
        },
        (Err(e), _) => Err(format!("the plan opened, but: {e}")),
        (Ok(found), None) => Err(format!("log Z = {} of an impossible model", found.log_z)),
    }
}

proptest! {
    #[test]
    fn every_plan_opens_and_states_its_memory(
        model in model(&[Potentials::Tied]),
        seed in any::<u64>(),
        block in select(vec![1u32, 2, 16, 512]),
        factors in any::<bool>(),
    ) {
        let network = model.network();
        let made = planned(&network, &params(seed, block, factors));
        prop_assert_eq!(&made.words, &planned(&network, &params(seed, block, factors)).words);
        let flat = model.flat::<f64>();
        let plan = open(&made.words, &flat.graph()).unwrap();
        prop_assert_eq!(plan.messages_len() as f64, made.info.messages);
        prop_assert_eq!((plan.belief_len() + plan.separator_len()) as f64, made.info.for_marginals);
        let sizes = (0..plan.clusters()).map(|c| plan.cluster(c)).filter(|c| !c.potential).map(|c| {
            c.scope.iter().map(|&v| f64::from(model.cards[v as usize])).product::<f64>()
        });
        prop_assert_eq!(sizes.fold(0.0, f64::max), made.info.largest_table);
        let widest = (0..plan.clusters()).map(|c| plan.cluster(c).scope.len()).max().unwrap_or(0);
        prop_assert_eq!(made.info.treewidth, widest.saturating_sub(1));
    }
}

// --- tampering ------------------------------------------------------------------------------------------

#[derive(Clone, Copy, Debug)]
enum Change {
    Set(u32),
    Add(u32),
    Flip(u32),
    CopyFrom(u32),
    SwapWith(u32),
    /// The flags of a cluster.
    Flags(u32),
}

fn change() -> impl Strategy<Value = (u32, Change)> {
    let change = prop_oneof![
        3 => (0..24u32).prop_map(Change::Set),
        1 => select(vec![u32::MAX, u32::MAX - 1, 1 << 31, 1 << 16]).prop_map(Change::Set),
        3 => select(vec![1, 2, u32::MAX, u32::MAX - 1]).prop_map(Change::Add),
        2 => (0..32u32).prop_map(Change::Flip),
        3 => any::<u32>().prop_map(Change::CopyFrom),
        2 => any::<u32>().prop_map(Change::SwapWith),
        2 => select(vec![POTENTIAL, RECEIVES, RECEIVES]).prop_map(Change::Flags),
    ];
    (any::<u32>(), change)
}

fn tamper(words: &mut [u32], changes: &[(u32, Change)]) {
    let len = words.len();
    let clusters = words[3] as usize;
    for &(pick, change) in changes {
        let at = pick as usize % len;
        match change {
            Change::Set(value) => words[at] = value,
            Change::Add(value) => words[at] = words[at].wrapping_add(value),
            Change::Flip(bit) => words[at] ^= 1 << bit,
            Change::CopyFrom(from) => words[at] = words[from as usize % len],
            Change::SwapWith(other) => words.swap(at, other as usize % len),
            Change::Flags(flags) if clusters > 0 => {
                words[HEADER + RECORD * (pick as usize % clusters) + 1] ^= flags;
            }
            Change::Flags(_) => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn tampered_plans_are_refused_or_right(
        model in model(&[Potentials::Gentle]),
        block in select(vec![1u32, 16]),
        factors in any::<bool>(),
        attempts in vec(vec(change(), 1..=2), 40),
    ) {
        let words = planned(&model.network(), &params(0, block, factors)).words;
        for changes in &attempts {
            let mut tampered = words.clone();
            tamper(&mut tampered, changes);
            let answer = refused_or_right(&tampered, &model);
            prop_assert!(answer.is_ok(), "{changes:?}: {answer:?}");
        }
        for len in 0..words.len().min(HEADER + 30) {
            let cut = words.len() - 1 - len;
            let answer = refused_or_right(&words[..cut], &model);
            prop_assert!(answer.is_ok(), "cut at {cut}: {answer:?}");
        }
    }

    /// A plan serves any graph that it is a junction tree of, and no other.
    #[test]
    fn plans_for_other_graphs_are_refused_or_right(
        model in model(&[Potentials::Gentle]),
        pick in any::<u32>(),
        which in 0..6u32,
    ) {
        let words = planned(&model.network(), &params(0, 512, true)).words;
        let mut other = model;
        let (n, m) = (other.cards.len(), other.factors.len());
        let (v, k) = (pick as usize % n, pick as usize % m.max(1));
        match which {
            0 => other.cards.push(2),
            1 => other.push(&[v as u32], vec![0.5; other.cards[v] as usize]),
            2 if m > 0 => { other.factors.remove(k); }
            3 if m > 1 => other.factors.swap(k, (k + 1) % m),
            4 if m > 0 => other.factors[k].0.reverse(),
            _ => {
                // One more label of one variable; every table over it grows by copies of entries.
                other.cards[v] += 1;
                for (scope, table) in &mut other.factors {
                    let size: u32 = scope.iter().map(|&u| other.cards[u as usize]).product();
                    *table = table.iter().copied().cycle().take(size as usize).collect();
                }
            }
        }
        if other.factors.iter().any(|(scope, table)| {
            table.len() != scope.iter().map(|&u| other.cards[u as usize] as usize).product::<usize>()
        }) {
            return Ok(());
        }
        let answer = refused_or_right(&words, &other);
        prop_assert!(answer.is_ok(), "{other:?}: {answer:?}");
        // These change the numbers in the header.
        if which < 3 && !(which == 2 && m == 0) {
            prop_assert_eq!(answer, Ok(false));
        }
    }
}

/// Lists that overlap, many times over: refused before the counting takes long or overflows.
#[test]
fn endless_lists_are_refused_soon() {
    let mut model = Model { cards: vec![2], ..Model::default() };
    model.push(&[0], [0.0, 1.0]);
    let flat = model.flat::<f64>();
    let (clusters, entries) = (20_000u32, 220_000u32);
    let pool = (HEADER + RECORD * clusters as usize) as u32;
    // Which list of each record is the long one: inputs, homes, or homes of the separator.
    for (long, potential) in [(0, true), (0, false), (1, false), (2, true)] {
        let len = |list: u32| if list == long { entries } else { u32::from(list == 0) };
        let mut words = vec![MAGIC, 1, 1, clusters, 64, 0];
        for c in 0..clusters {
            let last = c + 1 == clusters;
            let parent = if last { NONE } else { clusters - 1 };
            let flags = RECEIVES | if potential && !last { POTENTIAL } else { 0 };
            words.extend([parent, flags, pool, 1, pool, 1]);
            words.extend([pool, len(0), pool, len(1), pool, len(2), 2 * c]);
        }
        words.extend((0..entries).map(|i| if potential || long > 0 { 0 } else { i }));
        let clock = Clock::start();
        assert!(open(&words, &flat.graph()).is_err());
        assert!(clock.seconds() < 1.0, "list {long}: {} s", clock.seconds());
    }
}

// --- width ----------------------------------------------------------------------------------------------

fn pairwise(cards: Vec<u32>, edges: impl IntoIterator<Item = (u32, u32)>) -> Network {
    let mut network = Network::with_cards(cards).unwrap();
    for (a, b) in edges {
        let size = network.cards()[a as usize] * network.cards()[b as usize];
        network.push_factor(&[a, b], (0..size).map(|i| f64::from(i % 3))).unwrap();
    }
    network
}

fn grid(rows: u32, columns: u32) -> Network {
    let right = (0..rows * columns).filter(|v| v % columns + 1 < columns).map(|v| (v, v + 1));
    let down = (0..(rows - 1) * columns).map(|v| (v, v + columns));
    pairwise(vec![2; (rows * columns) as usize], right.chain(down))
}

fn treewidth(network: &Network, seed: u64) -> usize {
    planned(network, &params(seed, 512, false)).info.treewidth
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn trees_have_width_one(parents in vec(any::<u32>(), 1..60), arities in vec(1..5u32, 60), seed in 0..9u64) {
        let edges = parents.iter().enumerate().map(|(i, &p)| (i as u32 + 1, p % (i as u32 + 1)));
        let network = pairwise(arities[..=parents.len()].to_vec(), edges);
        prop_assert_eq!(treewidth(&network, seed), 1);
    }

    #[test]
    fn cycles_have_width_two(arities in vec(2..4u32, 3..60), seed in 0..9u64) {
        let n = arities.len() as u32;
        let network = pairwise(arities, (0..n).map(|v| (v, (v + 1) % n)));
        prop_assert_eq!(treewidth(&network, seed), 2);
    }

    /// k-trees have width k: each new variable is tied to a clique of k older ones.
    #[test]
    fn partial_orders_are_found_on_k_trees(k in 1..5u32, picks in vec(any::<u32>(), 1..30), seed in 0..9u64) {
        let mut cliques = vec![(0..k).collect::<Vec<u32>>()];
        let mut edges: Vec<(u32, u32)> = (0..k).flat_map(|a| (0..a).map(move |b| (a, b))).collect();
        for (i, &pick) in picks.iter().enumerate() {
            let v = k + i as u32;
            let base = cliques[pick as usize % cliques.len()].clone();
            edges.extend(base.iter().map(|&u| (v, u)));
            for out in 0..base.len() {
                let mut next = base.clone();
                next[out] = v;
                cliques.push(next);
            }
        }
        let network = pairwise(vec![2; k as usize + picks.len()], edges);
        prop_assert_eq!(treewidth(&network, seed), k as usize);
    }
}

#[test]
fn complete_graphs_and_small_grids_have_their_width() {
    for n in 1..=14u32 {
        let network = pairwise(vec![2; n as usize], (0..n).flat_map(|a| (0..a).map(move |b| (a, b))));
        assert_eq!(treewidth(&network, 0), n as usize - 1);
    }
    for n in 2..=6 {
        // The greedy order is not always the best, but never better than that.
        let found = treewidth(&grid(n, n + 2), 0);
        assert!(found == n as usize || found == n as usize + 1, "{found} of {n}");
    }
    assert_eq!(treewidth(&Network::with_cards([3, 2]).unwrap(), 0), 0);
    assert_eq!(treewidth(&Network::new(), 0), 0);
}

/// Variables of arity 1 cost no memory, but a scope still has room for 32 variables only.
#[test]
fn cliques_of_more_than_32_variables() {
    let mut cards = vec![1; 40];
    cards[7] = 2;
    let network = pairwise(cards, (0..40).flat_map(|a| (0..a).map(move |b| (a, b))));
    match plan(&network, &params(0, 512, false)) {
        Ok(made) => {
            let opened = open(&made.words, &network.graph().unwrap());
            assert!(opened.is_ok(), "a plan that does not open: {opened:?}");
        }
        Err(e) => assert!(matches!(e, PlanError::TooWide { .. } | PlanError::TooLarge { .. })),
    }
}

/// The figures that `inspect` prints hold where they matter: tables of many megabytes.
#[test]
fn memory_of_large_tables_is_stated() {
    for (network, block) in [
        (pairwise(vec![2; 16], (0..16).flat_map(|a| (0..a).map(move |b| (a, b)))), 512),
        (pairwise(vec![2; 16], (0..16).flat_map(|a| (0..a).map(move |b| (a, b)))), 16),
        (pairwise(vec![3; 9], (0..9).flat_map(|a| (0..a).map(move |b| (a, b)))), 64),
        (grid(12, 13), 512),
        (grid(14, 14), 16),
    ] {
        for factors in [false, true] {
            let made = planned(&network, &params(0, block, factors));
            let plan = open(&made.words, &network.graph().unwrap()).unwrap();
            assert_eq!(plan.messages_len() as f64, made.info.messages);
            assert_eq!((plan.belief_len() + plan.separator_len()) as f64, made.info.for_marginals);
        }
    }
}

// --- size -----------------------------------------------------------------------------------------------

/// Seconds that planning, or planning and running, may take.
const SOON: f64 = 5.0;

/// Seconds that this thread has computed: not those that it waited for a busy machine, where the system counts them.
struct Clock {
    start: Instant,
    computed: Option<f64>,
}

impl Clock {
    fn start() -> Self {
        Self { start: Instant::now(), computed: Self::computed() }
    }

    fn computed() -> Option<f64> {
        let line = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        line.split_whitespace().next()?.parse::<f64>().ok().map(|nanoseconds| nanoseconds / 1e9)
    }

    fn seconds(&self) -> f64 {
        match (self.computed, Self::computed()) {
            (Some(start), Some(now)) => now - start,
            _ => self.start.elapsed().as_secs_f64(),
        }
    }
}

#[test]
fn what_is_too_wide_is_told_soon() {
    for (rows, columns) in [(100, 100), (75, 75), (60, 90)] {
        let clock = Clock::start();
        let answer = plan(&grid(rows, columns), &params(0, 512, false));
        assert!(matches!(answer, Err(PlanError::TooWide { .. } | PlanError::TooLarge { .. })));
        assert!(clock.seconds() < SOON, "{rows} by {columns}: {} s", clock.seconds());
    }
}

/// A run on a large network, within the time.
fn soon(network: &Network) -> gibbsite_tests::desk::Found {
    let clock = Clock::start();
    let made = planned(network, &params(0, 512, false));
    let planned_in = clock.seconds();
    let graph = network.graph().unwrap();
    let plan = open(&made.words, &graph).unwrap();
    let mut desk = Desk::new(&plan, network.variables());
    let (mut run, mut fork) = desk.lend(plan, graph).unwrap();
    let log_z = run.sum(&mut fork).unwrap();
    let mut marginals = vec![0.0; network.cards().iter().map(|&c| c as usize).sum()];
    run.marginals(&mut fork, &mut marginals).unwrap();
    let best = run.maximise(&mut fork).unwrap();
    let mut labels = vec![0; network.variables()];
    run.decode(&mut labels).unwrap();
    let seconds = clock.seconds();
    assert!(seconds < SOON, "planned in {planned_in} s, all in {seconds} s");
    assert!(close(network.log_potential(&labels).unwrap(), best, TOLERANCE));
    gibbsite_tests::desk::Found { log_z, marginals, best, labels, ..Default::default() }
}

/// The root clique of a grid is one of its largest tables, and decoding runs through it once more: that must not cost
/// more than making it (it once took a hundred times as long).
#[test]
fn a_wide_grid_decodes_soon() {
    let mut network = grid(16, 16);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(6);
    for v in 0..network.variables() as u32 {
        network.push_factor(&[v], [0.0, rng.random_range(-2.0..2.0)]).unwrap();
    }
    let made = planned(&network, &params(0, 512, false));
    let graph = network.graph().unwrap();
    let plan = open(&made.words, &graph).unwrap();
    let mut desk = Desk::new(&plan, network.variables());
    let (mut run, mut fork) = desk.lend(plan, graph).unwrap();
    let clock = Clock::start();
    let best = run.maximise(&mut fork).unwrap();
    let maximised = clock.seconds();
    let mut labels = vec![0; network.variables()];
    let clock = Clock::start();
    run.decode(&mut labels).unwrap();
    let decoded = clock.seconds();
    assert!(close(network.log_potential(&labels).unwrap(), best, TOLERANCE));
    assert!(decoded < 5.0 * maximised, "maximised in {maximised} s, decoded in {decoded} s");
}

fn random_steps(count: usize) -> Vec<Step> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
    (0..count).map(|_| [0, 1].map(|_| [0, 1].map(|_| rng.random_range(-2.0..2.0)))).collect()
}

#[test]
fn a_long_chain_runs_soon() {
    let n = 200_000;
    let steps = random_steps(n - 1);
    let model = chain::model(n, &steps);
    let found = soon(&model.network());
    // The oracle itself is good to 10^5 · 2^-53, about 10^-11.
    assert_eq!(chain::exact(&steps).unwrap().fault(&model, &found, TOLERANCE, TOLERANCE), None);
}

#[test]
fn a_long_cycle_runs_soon() {
    let n = 2000;
    let steps = random_steps(n);
    let found = soon(&chain::model(n, &steps).network());
    for max in [false, true] {
        let around = [0, 1].map(|start| {
            let mut at = [f64::NEG_INFINITY; 2];
            at[start] = 0.0;
            steps.iter().fold(at, |at, &step| advance(at, step, max))[start]
        });
        let total = combine(&around, max);
        assert!(close(if max { found.best } else { found.log_z }, total, TOLERANCE));
        if !max {
            assert!((found.marginals[1] - (around[1] - total).exp()).abs() < TOLERANCE);
        }
    }
}

#[test]
fn a_large_star_runs_soon() {
    let leaves = 100_000;
    let steps = random_steps(leaves);
    let mut network = Network::with_cards(vec![2; leaves + 1]).unwrap();
    for (i, step) in steps.iter().enumerate() {
        network.push_factor(&[0, i as u32 + 1], step.iter().flatten().copied()).unwrap();
    }
    let found = soon(&network);
    for max in [false, true] {
        // Compensated sums over the leaves, for each label of the hub.
        let hub = [0, 1].map(|label| {
            let (mut sum, mut error) = (0.0f64, 0.0);
            for step in &steps {
                let x = combine(&step[label], max);
                let next = sum + x;
                error += if sum.abs() >= x.abs() { (sum - next) + x } else { (x - next) + sum };
                sum = next;
            }
            sum + error
        });
        let total = combine(&hub, max);
        assert!(close(if max { found.best } else { found.log_z }, total, TOLERANCE));
        if !max {
            let p = hub.map(|h| (h - total).exp());
            assert!((found.marginals[1] - p[1]).abs() < TOLERANCE);
            for (i, step) in steps.iter().enumerate() {
                let given = |label: usize| (step[label][1] - combine(&step[label], false)).exp();
                let expected = p[0] * given(0) + p[1] * given(1);
                assert!((found.marginals[2 * i + 3] - expected).abs() < TOLERANCE, "leaf {i}");
            }
        }
    }
}
