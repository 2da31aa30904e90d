//! Elimination orders: which variable to sum out next, so that the tables stay small.
//!
//! Input: the interaction graph of a network (variables that share a factor are neighbours) with arities. Output: an
//! order and the neighbours that each variable has left when its turn comes. Objective:
//! `Σ_v Π_{u ∈ {v} ∪ N(v)} |Val(u)|`, the number of table entries touched. Finding the best order is
//! NP-hard; we do what practice has found good (Kjærulff 1990; Koller & Friedman 2009, 9.4.3):
//!
//! 1. safe reductions: variables with at most one neighbour left go first; on any graph, in linear time;
//! 2. on what remains, greedy elimination by min-fill, min-weight or weighted min-fill, ties (and near-ties, in
//!    some rounds) broken at random, restarted as long as planning costs little beside the work it may save.
//!
//! How ours differs: fill counts are kept up to date edge by edge on bit sets, so that a restart costs tens of
//! microseconds; and the number of restarts follows from counted work, not from a clock: the same seed gives the
//! same order on any machine.

use super::fill::FillGraph;
use crate::par::Par;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Interaction graph: neighbours of each variable, sorted, and arities.
#[derive(Clone, Debug)]
pub(super) struct Interactions {
    pub(super) cards: Vec<u32>,
    pub(super) neighbours: Vec<Vec<u32>>,
}

/// One eliminated variable with the neighbours it had left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Elimination {
    pub(super) variable: u32,
    pub(super) neighbours: Vec<u32>,
}

/// What [`eliminate`] found.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub(super) steps: Vec<Elimination>,
    /// Sum of the tables' sizes.
    pub(super) cost: f64,
    /// The search was given up at a table of this many binary digits; `steps` are incomplete.
    pub(super) too_wide: Option<f64>,
}

/// How hard to look.
#[derive(Clone, Copy, Debug)]
pub struct OrderParams {
    /// Seed of the tie-breaking.
    pub seed: u64,
    /// Most restarts, whatever they might save.
    pub max_restarts: usize,
    /// Tables with more binary digits than this make an order worthless.
    pub max_bits: f64,
}

impl Default for OrderParams {
    fn default() -> Self {
        Self { seed: 0, max_restarts: 2000, max_bits: 48.0 }
    }
}

/// Above this many variables after the reductions, bit sets would be too large and lists are used.
const BITSET_VARIABLES: usize = 6000;

/// Finds an order for all variables.
pub(super) fn eliminate(graph: Interactions, params: &OrderParams, par: Par) -> Order {
    let (mut steps, rest, graph) = reduce_leaves(graph);
    let mut cost: f64 = steps.iter().map(|s| table_size(&graph.cards, s)).sum();
    if rest.is_empty() {
        return Order { steps, cost, too_wide: None };
    }
    let found = if rest.len() <= BITSET_VARIABLES {
        best_of_restarts(&graph, &rest, params, par)
    } else {
        by_lists(graph, &rest, params)
    };
    cost += found.cost;
    steps.extend(found.steps);
    Order { steps, cost, too_wide: found.too_wide }
}

fn table_size(cards: &[u32], step: &Elimination) -> f64 {
    let arity = |v: u32| f64::from(cards[v as usize]);
    step.neighbours.iter().fold(arity(step.variable), |size, &u| size * arity(u))
}

/// Eliminates variables with at most one neighbour until there are none; returns the rest.
fn reduce_leaves(mut graph: Interactions) -> (Vec<Elimination>, Vec<u32>, Interactions) {
    let n = graph.cards.len();
    let mut degree: Vec<u32> = graph.neighbours.iter().map(|list| list.len() as u32).collect();
    let mut gone = vec![false; n];
    let mut queue: Vec<u32> = (0..n as u32).filter(|&v| degree[v as usize] <= 1).rev().collect();
    let mut steps = Vec::new();
    while let Some(v) = queue.pop() {
        if gone[v as usize] {
            continue;
        }
        gone[v as usize] = true;
        let last = graph.neighbours[v as usize].iter().copied().find(|&u| !gone[u as usize]);
        if let Some(u) = last {
            degree[u as usize] -= 1;
            if degree[u as usize] <= 1 {
                queue.push(u);
            }
        }
        steps.push(Elimination { variable: v, neighbours: last.into_iter().collect() });
    }
    let rest: Vec<u32> = (0..n as u32).filter(|&v| !gone[v as usize]).collect();
    for &v in &rest {
        graph.neighbours[v as usize].retain(|&u| !gone[u as usize]);
    }
    (steps, rest, graph)
}

/// What a greedy round prefers.
#[derive(Clone, Copy, Debug)]
enum Rule {
    /// Fewest fill edges.
    Fill,
    /// Smallest table.
    Weight,
    /// Fill edges, each counted with the logarithm of the pair's table.
    FillThenWeight,
}

/// Greedy rounds on bit sets until planning has cost a fraction of what the best order will.
fn best_of_restarts(graph: &Interactions, rest: &[u32], params: &OrderParams, par: Par) -> Order {
    let start = FillGraph::new(graph, rest);
    let mut best: Option<(f64, Steps)> = None;
    let mut narrowest = f64::INFINITY;
    let mut spent = 0.0;
    let rounds: Vec<usize> = (0..params.max_restarts.max(1)).collect();
    // Batches are of fixed size, whatever the threads: the limit that a round starts with is the same everywhere.
    for batch in rounds.chunks(BATCH) {
        let limit = best.as_ref().map_or(f64::INFINITY, |b| b.0);
        let results = par.map(batch.to_vec(), |round| {
            let mut greedy = Greedy {
                rule: [Rule::Fill, Rule::Weight, Rule::FillThenWeight][round % 3],
                slack: if round < 6 { 0 } else { round % 4 },
                limit,
                max_bits: params.max_bits,
                work: 0.0,
            };
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(params.seed.wrapping_add(round as u64));
            (greedy.run(&start, &mut rng), greedy.work)
        });
        for (result, work) in results {
            spent += work;
            match result {
                Ok(found) if best.as_ref().is_none_or(|b| found.0 < b.0) => best = Some(found),
                Ok(_) => {}
                Err(bits) => narrowest = narrowest.min(bits),
            }
        }
        // Inference touches each entry a handful of times; stop when planning has cost a share of that.
        let tried = batch.last().map_or(0, |&r| r + 1);
        let enough = match &best {
            Some((cost, _)) => spent > PLANNING_SHARE * cost || tried as f64 > *cost,
            None => tried > HOPELESS,
        };
        if enough {
            break;
        }
    }
    match best {
        Some((cost, steps)) => Order {
            steps: steps
                .into_iter()
                .map(|(v, members)| Elimination {
                    variable: rest[v],
                    neighbours: members.into_iter().map(|u| rest[u]).collect(),
                })
                .collect(),
            cost,
            too_wide: None,
        },
        None => Order { steps: Vec::new(), cost: f64::INFINITY, too_wide: Some(narrowest) },
    }
}

/// Planning steps spent for each table entry that the best order touches.
const PLANNING_SHARE: f64 = 0.25;
/// Rounds that are run side by side.
const BATCH: usize = 4;
/// Rounds after which it is given up if every one was too wide.
const HOPELESS: usize = 20;

/// Eliminated variables with the neighbours they had left, in local numbers.
type Steps = Vec<(usize, Vec<usize>)>;

/// One greedy elimination.
struct Greedy {
    rule: Rule,
    /// How many times 3 % a score may be above the best and still count as equal to it.
    slack: usize,
    /// Give up when the cost reaches this.
    limit: f64,
    /// Give up at a table of more binary digits than this.
    max_bits: f64,
    /// Steps spent, roughly in units of touching one table entry.
    work: f64,
}

impl Greedy {
    /// Eliminates everything; `Err` holds the binary digits of the table at which it gave up.
    fn run(&mut self, start: &FillGraph, rng: &mut Xoshiro256PlusPlus) -> Result<(f64, Steps), f64> {
        let mut graph = start.clone();
        let n = graph.weight.len();
        self.work += (n * graph.words) as f64 * 0.1;
        let mut left: Vec<usize> = (0..n).collect();
        let mut steps = Vec::with_capacity(n);
        let mut cost = 0.0;
        while !left.is_empty() {
            let at = self.choose(&graph, &left, rng);
            self.work += left.len() as f64 * 0.5;
            let v = left.swap_remove(at);
            let bits = graph.weight[v];
            cost += bits.exp2();
            if bits > self.max_bits || cost >= self.limit {
                return Err(bits);
            }
            let members = graph.members(v);
            let added = graph.eliminate(v, &members);
            self.work += (added * (10 + graph.words)) as f64 + (members.len() * members.len()) as f64 * 0.5;
            steps.push((v, members));
        }
        Ok((cost, steps))
    }

    /// Position in `left` of the variable to eliminate next: the best, and among equals a random one.
    fn choose(&self, graph: &FillGraph, left: &[usize], rng: &mut Xoshiro256PlusPlus) -> usize {
        /// Binary digits up to which a table is small.
        const SMALL: f64 = 12.0;
        let tolerance = 1.0 + 0.03 * self.slack as f64;
        let (mut at, mut lowest, mut equals) = (0, f64::INFINITY, 0u32);
        for (i, &v) in left.iter().enumerate() {
            if graph.fill[v] == 0 && graph.weight[v] <= SMALL {
                // It adds no edge and costs next to nothing: nothing is lost by taking it at once.
                return i;
            }
            let score = match self.rule {
                Rule::Fill => graph.fill[v] as f64,
                Rule::Weight => graph.weight[v],
                Rule::FillThenWeight => graph.fill[v] as f64 + 0.5 * graph.weight[v],
            };
            if score * tolerance < lowest {
                (at, lowest, equals) = (i, score, 1);
            } else if score <= lowest * tolerance {
                equals += 1;
                lowest = lowest.min(score);
                if rng.random_range(0..equals) == 0 {
                    at = i;
                }
            }
        }
        at
    }
}

/// Min-degree on neighbour lists for graphs too large for bit sets: one run, given up when too wide.
fn by_lists(graph: Interactions, rest: &[u32], params: &OrderParams) -> Order {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;
    let Interactions { cards, mut neighbours } = graph;
    let mut gone = vec![true; cards.len()];
    let mut heap = BinaryHeap::new();
    for &v in rest {
        gone[v as usize] = false;
        heap.push(Reverse((neighbours[v as usize].len() as u32, v)));
    }
    let (mut steps, mut cost) = (Vec::with_capacity(rest.len()), 0.0);
    while let Some(Reverse((degree, v))) = heap.pop() {
        if gone[v as usize] || degree as usize != neighbours[v as usize].len() {
            continue;
        }
        gone[v as usize] = true;
        let members = std::mem::take(&mut neighbours[v as usize]);
        let bits: f64 = members.iter().chain([&v]).map(|&u| f64::from(cards[u as usize]).log2()).sum();
        if bits > params.max_bits {
            return Order { steps, cost: f64::INFINITY, too_wide: Some(bits) };
        }
        cost += bits.exp2();
        for &u in &members {
            let old = std::mem::take(&mut neighbours[u as usize]);
            let mut merged = Vec::with_capacity(old.len() + members.len());
            let (mut a, mut b) = (old.iter().peekable(), members.iter().peekable());
            while let Some(&next) = match (a.peek(), b.peek()) {
                (Some(x), Some(y)) => Some(*x.min(y)),
                (Some(x), None) => Some(*x),
                (None, Some(y)) => Some(*y),
                (None, None) => None,
            } {
                a.next_if(|&&x| x == next);
                b.next_if(|&&y| y == next);
                if next != u && next != v {
                    merged.push(next);
                }
            }
            heap.push(Reverse((merged.len() as u32, u)));
            neighbours[u as usize] = merged;
        }
        steps.push(Elimination { variable: v, neighbours: members });
    }
    Order { steps, cost, too_wide: None }
}
