//! Random models small enough to enumerate, as proptest strategies.
//!
//! A model is made in three steps: a structure (arities and scopes), extras that any structure may have
//! (constants, isolated variables, unary factors, twins), and log-potentials of some [`Potentials`] kind.

use crate::chain::Step;
use crate::oracle::Model;
use proptest::array::uniform2;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

/// Most configurations of a model.
pub const MAX_CONFIGURATIONS: u64 = 4096;

/// What log-potentials look like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Potentials {
    /// Between -5 and 5.
    Gentle,
    /// -1, 0 or 1: configurations tie.
    Tied,
    /// Magnitudes up to 5, 50 and 800 side by side: a product of two may leave the range of numbers.
    Wild,
    /// As `Wild`, and up to 10^5.
    Extreme,
    /// Levels that lie half of this or this apart: chosen at the range of a scalar, tables just fit and products of
    /// two do not.
    Steep(f64),
}

/// Arities and scopes.
#[derive(Clone, Debug)]
struct Structure {
    cards: Vec<u32>,
    scopes: Vec<Vec<u32>>,
}

fn arity() -> impl Strategy<Value = u32> {
    prop_oneof![1 => Just(1u32), 5 => Just(2), 3 => Just(3), 1 => Just(4)]
}

/// Brings the number of configurations down to what the oracle enumerates.
fn fit(cards: &mut [u32]) {
    while cards.iter().map(|&c| u64::from(c)).product::<u64>() > MAX_CONFIGURATIONS {
        if let Some(largest) = cards.iter_mut().max() {
            *largest -= 1;
        }
    }
}

/// A pair in one order or the other.
fn pair(a: u32, b: u32, turned: bool) -> Vec<u32> {
    if turned { vec![b, a] } else { vec![a, b] }
}

fn tree() -> impl Strategy<Value = Structure> {
    vec((arity(), any::<u32>(), any::<bool>()), 1..=11).prop_map(|list| {
        let edge =
            |(v, &(_, parent, turned)): (usize, &(u32, u32, bool))| pair(v as u32, parent % v as u32, turned);
        Structure {
            cards: list.iter().map(|t| t.0).collect(),
            scopes: list.iter().enumerate().skip(1).map(edge).collect(),
        }
    })
}

/// A hub with more leaves than one contraction takes messages.
fn star() -> impl Strategy<Value = Structure> {
    vec((arity(), any::<bool>()), 8..=11).prop_map(|leaves| {
        let scope = |(i, leaf): (usize, &(u32, bool))| pair(0, i as u32 + 1, leaf.1);
        Structure {
            cards: [2].into_iter().chain(leaves.iter().map(|leaf| leaf.0)).collect(),
            scopes: leaves.iter().enumerate().map(scope).collect(),
        }
    })
}

/// A tree of hyperedges: each new factor shares one variable with those before it.
fn hypertree() -> impl Strategy<Value = Structure> {
    vec((vec(arity(), 1..=3), any::<u32>()), 1..=4).prop_map(|list| {
        let (mut cards, mut scopes) = (vec![2u32], Vec::new());
        for (arities, meet) in list {
            let mut scope = vec![meet % cards.len() as u32];
            for arity in arities {
                scope.push(cards.len() as u32);
                cards.push(arity);
            }
            let turn = meet as usize / 7 % scope.len();
            scope.rotate_left(turn);
            scopes.push(scope);
        }
        Structure { cards, scopes }
    })
}

fn grid() -> impl Strategy<Value = Structure> {
    (2u32..=3, 2u32..=4, vec(arity(), 12), any::<u32>()).prop_map(|(rows, columns, mut cards, turns)| {
        cards.truncate((rows * columns) as usize);
        let mut scopes = Vec::new();
        for v in 0..rows * columns {
            if v % columns + 1 < columns {
                scopes.push(pair(v, v + 1, turns >> v & 1 == 1));
            }
            if v + columns < rows * columns {
                scopes.push(pair(v, v + columns, turns >> (v + 12) & 1 == 1));
            }
        }
        Structure { cards, scopes }
    })
}

fn cycle() -> impl Strategy<Value = Structure> {
    (vec(arity(), 3..=11), any::<u32>()).prop_map(|(cards, turns)| {
        let n = cards.len() as u32;
        let scopes = (0..n).map(|v| pair(v, (v + 1) % n, turns >> v & 1 == 1)).collect();
        Structure { cards, scopes }
    })
}

/// Scopes of `sizes` variables, in any order, over variables that need not all be mentioned or connected.
fn hypergraph(
    variables: std::ops::RangeInclusive<usize>,
    sizes: std::ops::RangeInclusive<usize>,
    factors: std::ops::RangeInclusive<usize>,
) -> impl Strategy<Value = Structure> {
    vec(arity(), variables).prop_flat_map(move |cards| {
        let all: Vec<u32> = (0..cards.len() as u32).collect();
        let sizes = *sizes.start()..=(*sizes.end()).min(cards.len());
        let scope = subsequence(all, sizes).prop_shuffle();
        (Just(cards), vec(scope, factors.clone())).prop_map(|(cards, scopes)| Structure { cards, scopes })
    })
}

fn complete() -> impl Strategy<Value = Structure> {
    (vec(arity(), 2..=6), any::<u32>()).prop_map(|(cards, turns)| {
        let n = cards.len() as u32;
        let pairs = (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b)));
        let scopes = pairs.enumerate().map(|(i, (a, b))| pair(a, b, turns >> i & 1 == 1)).collect();
        Structure { cards, scopes }
    })
}

fn looped() -> BoxedStrategy<Structure> {
    prop_oneof![
        3 => grid(),
        2 => cycle(),
        2 => hypergraph(4..=10, 2..=2, 0..=5),
        3 => hypergraph(4..=8, 3..=4, 1..=6),
        2 => hypergraph(3..=8, 1..=4, 1..=10),
        1 => complete(),
    ]
    .boxed()
}

fn acyclic() -> BoxedStrategy<Structure> {
    prop_oneof![2 => tree(), 1 => star(), 1 => hypertree()].boxed()
}

/// Adds what any structure may have. With `twins`, several factors over one set of variables, which closes cycles in
/// the factor graph.
fn with_extras(structure: BoxedStrategy<Structure>, twins: bool) -> impl Strategy<Value = Structure> {
    let twin_count = if twins { 0..=3usize } else { 0..=0 };
    let extras = (vec(arity(), 0..=2), 0..=2usize, vec(any::<u32>(), twin_count), any::<u32>());
    (structure, extras).prop_map(|(mut s, (isolated, constants, twins, unary))| {
        let n = s.cards.len();
        for pick in twins {
            let Some(of) = s.scopes.get(pick as usize % s.scopes.len().max(1)) else { break };
            let mut twin = of.clone();
            if twin.len() > 1 {
                twin.rotate_left(pick as usize / 16 % of.len());
                if pick >> 20 & 1 == 1 {
                    twin.reverse();
                }
            }
            s.scopes.push(twin);
        }
        s.scopes.extend((0..n).filter(|v| unary >> v & 1 == 1).map(|v| vec![v as u32]));
        s.scopes.extend((0..constants).map(|_| Vec::new()));
        s.cards.extend(isolated);
        fit(&mut s.cards);
        s
    })
}

fn magnitudes(largest: &'static [f64]) -> impl Strategy<Value = f64> + Clone {
    (select(largest), -1.0..1.0f64).prop_map(|(scale, x)| scale * x)
}

fn steep(range: f64) -> impl Strategy<Value = f64> {
    // A little less than the range, so that noise does not leave it.
    (select(vec![0.0, 0.0, -0.49, -0.98]), -0.5..0.5f64).prop_map(move |(level, noise)| range * level + noise)
}

/// Log-potentials of a kind; about one in `1 / zeros` is `-inf`.
fn log_potential(kind: Potentials, zeros: f64) -> BoxedStrategy<f64> {
    let value = match kind {
        Potentials::Gentle => (-5.0..5.0f64).boxed(),
        Potentials::Tied => select(vec![-1.0, 0.0, 1.0]).boxed(),
        Potentials::Wild => magnitudes(&[5.0, 50.0, 800.0]).boxed(),
        Potentials::Extreme => magnitudes(&[5.0, 50.0, 800.0, 1e5]).boxed(),
        Potentials::Steep(range) => steep(range).boxed(),
    };
    (value, 0.0..1.0f64).prop_map(move |(v, u)| if u < zeros { f64::NEG_INFINITY } else { v }).boxed()
}

fn filled(
    structure: impl Strategy<Value = Structure>,
    kinds: Vec<Potentials>,
) -> impl Strategy<Value = Model> {
    // Half of the models forbid nothing; of the rest, many still allow something.
    let zeros = prop_oneof![2 => Just(0.0), 1 => Just(0.05), 1 => Just(0.3)];
    (structure, select(kinds), zeros).prop_flat_map(|(s, kind, zeros)| {
        let sizes: Vec<usize> = s
            .scopes
            .iter()
            .map(|scope| scope.iter().map(|&v| s.cards[v as usize] as usize).product())
            .collect();
        vec(log_potential(kind, zeros), sizes.iter().sum::<usize>()).prop_map(move |values| {
            let mut rest = values.as_slice();
            let mut model = Model { cards: s.cards.clone(), ..Model::default() };
            for (scope, &size) in s.scopes.iter().zip(&sizes) {
                let (own, others) = rest.split_at(size);
                model.push(scope, own);
                rest = others;
            }
            model
        })
    })
}

/// Models of every structure: trees, grids, loops, pieces, hyperedges, twins, with isolated variables and constants.
pub fn model(kinds: &[Potentials]) -> impl Strategy<Value = Model> + use<> {
    let any = prop_oneof![1 => acyclic(), 4 => looped()].boxed();
    filled(with_extras(any, true), kinds.to_vec())
}

/// Models whose factor graph has no cycle.
pub fn forest(kinds: &[Potentials]) -> impl Strategy<Value = Model> + use<> {
    filled(with_extras(acyclic(), false), kinds.to_vec())
}

/// Steps of a binary chain: flat ones, over which sums grow, among steep ones with zeros, which they must outlast.
pub fn chain(range: f64) -> impl Strategy<Value = Vec<Step>> {
    let entry = (steep(range), 0..6u32).prop_map(|(v, zero)| if zero == 0 { f64::NEG_INFINITY } else { v });
    let step = prop_oneof![3 => Just([[0.0; 2]; 2]), 1 => uniform2(uniform2(entry))];
    vec(step, 1..120)
}

/// A model with observed labels of some of its variables.
pub fn observed<M: Strategy<Value = Model>>(model: M) -> impl Strategy<Value = (Model, Vec<(u32, u32)>)> {
    model.prop_flat_map(|model| {
        let variables: Vec<u32> = (0..model.cards.len() as u32).collect();
        let most = variables.len().min(4);
        (Just(model), subsequence(variables, 0..=most), any::<[u32; 4]>()).prop_map(|(model, seen, draws)| {
            let label = |(v, draw): (u32, u32)| (v, draw % model.cards[v as usize]);
            let evidence = seen.into_iter().zip(draws).map(label).collect();
            (model, evidence)
        })
    })
}
