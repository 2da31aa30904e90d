//! `gibbsite::infer` as a user meets it: every method and task, with evidence, against enumeration, and on any number of
//! threads the same bits.

use gibbsite::data::network::{Evidence, Network};
use gibbsite::infer::{Answer, InferParams, Method, QueryError, Task, infer, inspect};
use gibbsite::par::Par;
use gibbsite_tests::models::{Potentials, forest, model, observed};
use gibbsite_tests::oracle::{Exact, Model, close, distance};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const TOLERANCE: f64 = 1e-10;
const TASKS: [Task; 3] = [Task::Partition, Task::Marginals, Task::Map];

fn params(task: Task, method: Method) -> InferParams {
    InferParams { method, par: Par::Seq, max_table_mib: 64.0, ..InferParams::new(task) }
}

fn ask(model: &Model, seen: &[(u32, u32)], params: &InferParams) -> Result<Answer, QueryError> {
    infer(&model.network(), &Evidence::from_pairs(seen.iter().copied()).unwrap(), params)
}

/// What is wrong with an answer that claims to be exact. Marginals of models with log-potentials above
/// 10^5 are as good as sums of such numbers are.
fn fault(model: &Model, exact: &Exact, answer: &Answer) -> Option<String> {
    let rounding = TOLERANCE.max(4.0 * f64::EPSILON * model.magnitude());
    let wrong = |what: String| Some(format!("{what} by {:?}, not {exact:?}", answer.method));
    if !answer.exact || !answer.converged || answer.method == Method::Auto {
        return wrong(format!("exact {}, converged {}", answer.exact, answer.converged));
    }
    let asked = [answer.task != Task::Map, answer.task == Task::Marginals, answer.task == Task::Map];
    if [answer.log_z.is_some(), answer.marginals.is_some(), answer.assignment.is_some()] != asked {
        return wrong("not what was asked".into());
    }
    if let Some(log_z) = answer.log_z
        && !close(log_z, exact.log_z, TOLERANCE)
    {
        return wrong(format!("log Z {log_z}"));
    }
    if let Some(marginals) = &answer.marginals
        && distance(marginals, &exact.marginals) > rounding
    {
        return wrong(format!("off by {:e}: {marginals:?}", distance(marginals, &exact.marginals)));
    }
    if let Some(labels) = &answer.assignment {
        let reached = model.log_potential(labels);
        if !close(reached, exact.best, TOLERANCE)
            || !answer.log_potential.is_some_and(|p| close(p, reached, TOLERANCE))
        {
            return wrong(format!("{labels:?} of {reached} (stated {:?})", answer.log_potential));
        }
    }
    None
}

fn check_exact(model: &Model, seen: &[(u32, u32)], params: &InferParams) -> Result<(), TestCaseError> {
    match (ask(model, seen, params), model.exact(seen)) {
        (Ok(answer), Some(exact)) => {
            prop_assert_eq!(fault(model, &exact, &answer), None);
            if let Some(labels) = &answer.assignment {
                prop_assert!(seen.iter().all(|&(v, label)| labels[v as usize] == label));
            }
        }
        (Err(QueryError::ZeroProbability), None) => {}
        (answer, exact) => {
            let expected = exact.map(|e| e.log_z);
            prop_assert!(
                false,
                "{:?} {:?}: {answer:?}, but log Z is {expected:?}",
                params.method,
                params.task
            );
        }
    }
    Ok(())
}

const ALL: [Potentials; 4] = [Potentials::Gentle, Potentials::Tied, Potentials::Wild, Potentials::Extreme];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn exact_methods_agree_with_enumeration((model, seen) in observed(model(&ALL)), seed in 0..3u64) {
        for task in TASKS {
            for method in [Method::Auto, Method::Junction, Method::Brute] {
                check_exact(&model, &seen, &InferParams { seed, ..params(task, method) })?;
            }
        }
    }

    #[test]
    fn the_tree_engine_is_exact_on_forests((model, seen) in observed(forest(&ALL))) {
        for task in TASKS {
            check_exact(&model, &seen, &params(task, Method::Tree))?;
        }
    }

    /// Messages stop changing on a forest.
    #[test]
    fn belief_propagation_is_exact_on_forests(
        (model, seen) in observed(forest(&[Potentials::Gentle, Potentials::Tied, Potentials::Wild])),
    ) {
        for task in TASKS {
            check_exact(&model, &seen, &params(task, Method::Bp))?;
        }
    }

    #[test]
    fn tree_reweighting_is_an_upper_bound(
        (model, seen) in observed(model(&[Potentials::Gentle, Potentials::Tied, Potentials::Wild])),
    ) {
        for task in [Task::Partition, Task::Marginals] {
            // Few iterations: the bound holds whether or not messages converged.
            let few = InferParams { max_iterations: 30, ..params(task, Method::Trw) };
            match (ask(&model, &seen, &few), model.exact(&seen)) {
                (Ok(answer), Some(exact)) => {
                    let bound = answer.log_z.unwrap();
                    let slack = TOLERANCE * exact.log_z.abs().max(1.0);
                    prop_assert!(exact.log_z <= bound + slack, "{bound} < {}", exact.log_z);
                    if answer.exact {
                        prop_assert!(close(bound, exact.log_z, 1e-6));
                    }
                    if let Some(marginals) = answer.marginals {
                        prop_assert!(are_distributions(&model.cards, &marginals), "{marginals:?}");
                    }
                }
                // An impossible model has a finite bound, or is recognised.
                (Ok(_), None) | (Err(QueryError::ZeroProbability), None) => {}
                (answer, exact) => prop_assert!(false, "{answer:?}, but log Z is {:?}", exact.map(|e| e.log_z)),
            }
        }
        let map = ask(&model, &[], &params(Task::Map, Method::Trw));
        prop_assert!(model.exact(&[]).is_none() || matches!(map, Err(QueryError::Unsuitable(_))));
    }

    /// Approximate methods on any model: distributions, assignments that are possible and no better than
    /// the best, marked as approximate.
    #[test]
    fn approximations_are_sane(
        (model, seen) in observed(model(&[Potentials::Gentle, Potentials::Tied])), seed in 0..3u64,
    ) {
        let Some(exact) = model.exact(&seen) else { return Ok(()) };
        let zeros = model.factors.iter().any(|(_, table)| table.contains(&f64::NEG_INFINITY));
        for method in [Method::Bp, Method::Gibbs] {
            for task in [Task::Marginals, Task::Map] {
                let few = InferParams { seed, sweeps: 200, max_iterations: 200, ..params(task, method) };
                let answer = match ask(&model, &seen, &few) {
                    Ok(answer) => answer,
                    // Where zeros leave islands a sampler may not find one to start from.
                    Err(QueryError::NoStart) if zeros && method == Method::Gibbs => continue,
                    Err(e) => return Err(TestCaseError::fail(format!("{method:?} {task:?}: {e}"))),
                };
                prop_assert!(method == Method::Bp || !answer.exact);
                if let Some(marginals) = &answer.marginals {
                    prop_assert!(are_distributions(&model.cards, marginals), "{method:?} {marginals:?}");
                }
                if let Some(labels) = &answer.assignment {
                    let reached = model.log_potential(labels);
                    prop_assert!(reached <= exact.best + 1e-9 * exact.best.abs().max(1.0));
                    // An impossible assignment may only come from a method that says it failed.
                    prop_assert!(reached > f64::NEG_INFINITY || !answer.converged);
                    prop_assert!(seen.iter().all(|&(v, label)| labels[v as usize] == label));
                }
            }
        }
    }

    /// Potentials of e^±10000, as from tables of 0 and 1 softened too little: far outside the range of numbers.
    #[test]
    fn huge_potentials_are_exact((mut model, seen) in observed(model(&[Potentials::Gentle]))) {
        for (_, table) in &mut model.factors {
            for v in table {
                *v += if *v < 0.0 { -1e4 } else { 1e4 };
            }
        }
        for task in TASKS {
            for method in [Method::Auto, Method::Junction] {
                check_exact(&model, &seen, &params(task, method))?;
            }
        }
    }

    #[test]
    fn threads_do_not_change_bits((model, seen) in observed(model(&ALL))) {
        let evidence = Evidence::from_pairs(seen).unwrap();
        for task in TASKS {
            prop_assert_eq!(differing(&model.network(), &evidence, task, Method::Junction), None);
        }
    }
}

fn are_distributions(cards: &[u32], marginals: &[f64]) -> bool {
    let mut rest = marginals;
    let all = cards.iter().all(|&card| {
        let (own, others) = rest.split_at(card as usize);
        rest = others;
        own.iter().all(|&p| (0.0..=1.0 + 1e-12).contains(&p)) && (own.iter().sum::<f64>() - 1.0).abs() < 1e-9
    });
    all && rest.is_empty()
}

/// In which bits one and two threads differ.
fn differing(network: &Network, evidence: &Evidence, task: Task, method: Method) -> Option<String> {
    let [one, two] = [Par::Seq, Par::Rayon(2)].map(|par| {
        let answer = infer(network, evidence, &InferParams { par, ..params(task, method) });
        answer.map(|a| {
            let bits =
                |list: Option<Vec<f64>>| list.map(|l| l.into_iter().map(f64::to_bits).collect::<Vec<_>>());
            (a.log_z.map(f64::to_bits), bits(a.marginals), a.assignment, a.method, a.treewidth)
        })
    });
    (one != two).then(|| format!("{task:?}: {one:?} {two:?}"))
}

// --- evidence and limits --------------------------------------------------------------------------------

fn grid_model(rows: u32, columns: u32, seed: u64) -> Model {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut table = |len| (0..len).map(|_| rng.random_range(-1.0..1.0)).collect::<Vec<f64>>();
    let mut model = Model { cards: vec![2; (rows * columns) as usize], ..Model::default() };
    for v in 0..rows * columns {
        model.push(&[v], table(2));
        if v % columns + 1 < columns {
            model.push(&[v, v + 1], table(4));
        }
        if v + columns < rows * columns {
            model.push(&[v, v + columns], table(4));
        }
    }
    model
}

#[test]
fn evidence_of_probability_zero_is_told() {
    let mut model = grid_model(3, 3, 1);
    // x0 = 1 forbids x8 = 1, through a factor; x4 = 0 is impossible by itself; and a path that evidence contradicts.
    model.push(&[0, 8], [0.0, 0.0, 0.0, f64::NEG_INFINITY]);
    model.push(&[4], [f64::NEG_INFINITY, 0.0]);
    let equal = [0.0, f64::NEG_INFINITY, f64::NEG_INFINITY, 0.0];
    model.push(&[1, 2], equal);
    model.push(&[5, 2], equal);
    for seen in [vec![(0, 1), (8, 1)], vec![(4, 0)], vec![(1, 0), (5, 1)]] {
        assert!(model.exact(&seen).is_none());
        for task in TASKS {
            for method in [Method::Auto, Method::Junction, Method::Brute] {
                let answer = ask(&model, &seen, &params(task, method));
                assert_eq!(answer, Err(QueryError::ZeroProbability), "{seen:?} {task:?} {method:?}");
            }
        }
    }
}

#[test]
fn too_wide_is_told_or_approximated() {
    let model = grid_model(5, 5, 2);
    let exact = ask(&model, &[], &params(Task::Marginals, Method::Junction)).unwrap();
    for (task, limit) in TASKS.into_iter().zip([0.0, 0.0005, 0.0]) {
        let tight = |method| InferParams { max_table_mib: limit, ..params(task, method) };
        match ask(&model, &[], &tight(Method::Junction)) {
            Err(QueryError::TooWide { info: Some(info), limit: stated, .. }) => {
                assert_eq!((info.treewidth, stated), (5, limit));
                assert!(info.mebibytes(task == Task::Marginals) > limit);
            }
            other => panic!("{other:?}"),
        }
        let answer = ask(&model, &[], &tight(Method::Auto)).unwrap();
        assert_eq!((answer.exact, answer.method), (false, Method::Bp));
        assert!(answer.notes[0].contains("approximate"), "{:?}", answer.notes);
        if let Some(marginals) = answer.marginals {
            let off = distance(&marginals, exact.marginals.as_ref().unwrap());
            assert!(off < 0.2, "weak couplings: {off}");
        }
    }
    let wide = grid_model(40, 40, 3);
    let answer = ask(&wide, &[], &params(Task::Partition, Method::Junction));
    assert!(matches!(answer, Err(QueryError::TooWide { .. })), "{answer:?}");
    let answer = ask(&wide, &[], &params(Task::Partition, Method::Auto)).unwrap();
    assert!(!answer.exact);
}

#[test]
fn methods_say_what_they_cannot_do() {
    let model = grid_model(2, 2, 4);
    let tree = ask(&model, &[], &params(Task::Partition, Method::Tree));
    assert!(matches!(tree, Err(QueryError::Unsuitable(_))), "{tree:?}");
    let gibbs = ask(&model, &[], &params(Task::Partition, Method::Gibbs));
    assert!(matches!(gibbs, Err(QueryError::Unsuitable(_))), "{gibbs:?}");
    let brute = ask(&grid_model(3, 9, 5), &[], &params(Task::Partition, Method::Brute));
    assert!(matches!(brute, Err(QueryError::TooManyConfigurations { .. })), "{brute:?}");
    let unknown = Evidence::from_pairs([(4, 0)]).unwrap();
    assert!(matches!(
        infer(&model.network(), &unknown, &params(Task::Partition, Method::Auto)),
        Err(QueryError::Evidence(_))
    ));
}

// --- tables large enough for threads --------------------------------------------------------------------

/// `log Z` (or the maximum) of a binary grid, cell by cell over the 2^columns states of the frontier; `held` fixes a label.
fn transfer(model: &Model, columns: usize, max: bool, held: Option<(usize, usize)>) -> f64 {
    let n = model.cards.len();
    let mut unary = vec![[0.0; 2]; n];
    let (mut left, mut up) = (vec![[[0.0; 2]; 2]; n], vec![[[0.0; 2]; 2]; n]);
    for (scope, table) in &model.factors {
        let square = || [[table[0], table[1]], [table[2], table[3]]];
        match *scope.as_slice() {
            [v] => unary[v as usize] = [table[0], table[1]],
            [a, b] if b == a + 1 => left[b as usize] = square(),
            [_, b] => up[b as usize] = square(),
            _ => unreachable!("a grid"),
        }
    }
    // Linear, rescaled by each cell's maximum: with potentials of a few units nothing is lost.
    let (mut frontier, mut scale) = (vec![0.0f64; 1 << columns], 0.0);
    frontier[0] = 1.0;
    for v in 0..n {
        let bit = 1 << (v % columns);
        // Cells of the first row and column have no neighbour above or before them: their tables are 0.
        let factor = |above: usize, before: usize, label: usize| {
            let allowed = held.is_none_or(|h| h.0 != v || h.1 == label);
            if allowed { (unary[v][label] + up[v][above][label] + left[v][before][label]).exp() } else { 0.0 }
        };
        let factors = [0, 1].map(|a| [0, 1].map(|b| [0, 1].map(|label| factor(a, b, label))));
        let mut next = vec![0.0f64; frontier.len()];
        for (state, &weight) in frontier.iter().enumerate().filter(|(_, w)| **w > 0.0) {
            let above = usize::from(state & bit != 0);
            let before = usize::from(v % columns != 0 && state & bit >> 1 != 0);
            for label in 0..2 {
                let to = &mut next[(state & !bit) | (bit * label)];
                let w = weight * factors[above][before][label];
                *to = if max { to.max(w) } else { *to + w };
            }
        }
        let top = next.iter().copied().fold(0.0, f64::max);
        scale += top.ln();
        frontier = next.into_iter().map(|w| w / top).collect();
    }
    scale + if max { 0.0 } else { frontier.iter().sum::<f64>().ln() }
}

#[test]
fn a_wide_grid_is_exact_on_any_number_of_threads() {
    let columns = 16;
    let model = grid_model(17, columns as u32, 6);
    let network = model.network();
    let none = Evidence::new();
    for task in TASKS {
        assert_eq!(differing(&network, &none, task, Method::Junction), None);
    }
    let answer = infer(&network, &none, &params(Task::Marginals, Method::Junction)).unwrap();
    assert!(answer.treewidth.unwrap() >= 16, "tables of at least 2^17 entries");
    let log_z = transfer(&model, columns, false, None);
    assert!(close(answer.log_z.unwrap(), log_z, TOLERANCE));
    let marginals = answer.marginals.unwrap();
    assert!(are_distributions(&model.cards, &marginals));
    for v in [0, 137] {
        let expected = (transfer(&model, columns, false, Some((v, 1))) - log_z).exp();
        assert!((marginals[2 * v + 1] - expected).abs() < TOLERANCE, "variable {v}");
    }
    let best = infer(&network, &none, &params(Task::Map, Method::Junction)).unwrap();
    assert!(close(best.log_potential.unwrap(), transfer(&model, columns, true, None), TOLERANCE));
}

/// Several wide components with mixed arities and factors of three: threads share out components and tables at once,
/// and another elimination order gives the same numbers up to rounding.
#[test]
fn wide_components_agree_across_threads_and_orders() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    let mut model = Model::default();
    for piece in 0..3 {
        let (first, n) = (model.cards.len() as u32, 44 + 2 * piece);
        model.cards.extend((0..n).map(|_| rng.random_range(2..4u32)));
        for i in 0..n {
            let (a, b) = (rng.random_range(1..n), rng.random_range(1..n));
            let mut scope: Vec<u32> = [i, (i + a) % n, (i + b) % n].iter().map(|v| first + v).collect();
            if scope[1] == scope[2] {
                scope.pop();
            }
            let size = scope.iter().map(|&v| model.cards[v as usize] as usize).product();
            let table: Vec<f64> = (0..size).map(|_| rng.random_range(-2.0..2.0)).collect();
            model.push(&scope, table);
        }
    }
    let network = model.network();
    let none = Evidence::new();
    let size = inspect(&network, &none, 64.0, 0, Par::Seq).unwrap().junction.unwrap();
    assert!(size.largest_table >= f64::from(1 << 17), "{size:?}");
    for task in TASKS {
        assert_eq!(differing(&network, &none, task, Method::Junction), None);
    }
    let [a, b] = [1, 2].map(|seed| {
        infer(&network, &none, &InferParams { seed, ..params(Task::Marginals, Method::Junction) }).unwrap()
    });
    assert!(close(a.log_z.unwrap(), b.log_z.unwrap(), TOLERANCE));
    assert!(distance(&a.marginals.unwrap(), &b.marginals.unwrap()) < TOLERANCE);
}
