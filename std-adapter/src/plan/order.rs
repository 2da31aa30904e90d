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
pub(super) fn eliminate(graph: Interactions, params: &OrderParams) -> Order {
    let (mut steps, rest, graph) = reduce_leaves(graph);
    let mut cost: f64 = steps.iter().map(|s| table_size(&graph.cards, s)).sum();
    if rest.is_empty() {
        return Order { steps, cost, too_wide: None };
    }
    let found = if rest.len() <= BITSET_VARIABLES {
        best_of_restarts(&graph, &rest, params)
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

/// A compact graph for restarts: bit sets over local numbers.
struct Bits {
    words: usize,
    rows: Vec<u64>,
    degree: Vec<u32>,
    fill: Vec<i64>,
    weight: Vec<f64>,
}

impl Bits {
    fn new(graph: &Interactions, rest: &[u32]) -> Self {
        let n = rest.len();
        let words = n.div_ceil(64);
        let mut local = vec![u32::MAX; graph.cards.len()];
        for (i, &v) in rest.iter().enumerate() {
            local[v as usize] = i as u32;
        }
        let mut bits = Self {
            words,
            rows: vec![0; n * words],
            degree: vec![0; n],
            fill: vec![0; n],
            weight: vec![0.0; n],
        };
        for (i, &v) in rest.iter().enumerate() {
            bits.weight[i] = f64::from(graph.cards[v as usize]).log2();
            for &u in &graph.neighbours[v as usize] {
                let j = local[u as usize] as usize;
                bits.rows[i * words + j / 64] |= 1 << (j % 64);
                bits.weight[i] += f64::from(graph.cards[u as usize]).log2();
            }
            bits.degree[i] = graph.neighbours[v as usize].len() as u32;
        }
        for i in 0..n {
            let mut missing = 0i64;
            for j in bits.members(i) {
                missing += i64::from(bits.degree[i]) - 1 - i64::from(bits.common(i, j));
            }
            bits.fill[i] = missing / 2;
        }
        bits
    }

    fn row(&self, i: usize) -> &[u64] {
        &self.rows[i * self.words..(i + 1) * self.words]
    }

    fn members(&self, i: usize) -> Vec<usize> {
        let mut out = Vec::with_capacity(self.degree[i] as usize);
        for (w, &word) in self.row(i).iter().enumerate() {
            let mut word = word;
            while word != 0 {
                out.push(w * 64 + word.trailing_zeros() as usize);
                word &= word - 1;
            }
        }
        out
    }

    fn common(&self, i: usize, j: usize) -> u32 {
        self.row(i).iter().zip(self.row(j)).map(|(a, b)| (a & b).count_ones()).sum()
    }

    fn has(&self, i: usize, j: usize) -> bool {
        self.rows[i * self.words + j / 64] >> (j % 64) & 1 == 1
    }

    /// Adds the edge and keeps fill counts: the pair is no longer missing under any common neighbour,
    /// and each end gains a neighbour that the others may lack.
    fn connect(&mut self, i: usize, j: usize, bits_of: &[f64]) {
        let mut common = 0;
        for w in 0..self.words {
            let mut word = self.rows[i * self.words + w] & self.rows[j * self.words + w];
            common += i64::from(word.count_ones());
            while word != 0 {
                self.fill[w * 64 + word.trailing_zeros() as usize] -= 1;
                word &= word - 1;
            }
        }
        for (a, b) in [(i, j), (j, i)] {
            self.fill[a] += i64::from(self.degree[a]) - common;
            self.rows[a * self.words + b / 64] |= 1 << (b % 64);
            self.weight[a] += bits_of[b];
        }
        self.degree[i] += 1;
        self.degree[j] += 1;
    }

    /// Takes `v` out; its neighbours are a clique by now.
    fn remove(&mut self, v: usize, members: &[usize], bits_of: &[f64]) {
        let d = i64::from(self.degree[v]);
        for &u in members {
            self.fill[u] -= i64::from(self.degree[u]) - d;
            self.rows[u * self.words + v / 64] &= !(1 << (v % 64));
            self.degree[u] -= 1;
            self.weight[u] -= bits_of[v];
        }
    }
}

/// Greedy rounds on bit sets until planning has cost a fraction of what the best order will.
fn best_of_restarts(graph: &Interactions, rest: &[u32], params: &OrderParams) -> Order {
    let start = Bits::new(graph, rest);
    let bits_of: Vec<f64> = rest.iter().map(|&v| f64::from(graph.cards[v as usize]).log2()).collect();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(params.seed);
    let mut best: Option<(f64, Vec<(usize, Vec<usize>)>)> = None;
    let mut narrowest = f64::INFINITY;
    let mut spent = 0.0;
    for round in 0..params.max_restarts.max(1) {
        let rule = [Rule::Fill, Rule::Weight, Rule::FillThenWeight][round % 3];
        let slack = if round < 6 { 0 } else { round % 4 };
        let limit = best.as_ref().map_or(f64::INFINITY, |b| b.0);
        let mut work = 0.0;
        match greedy(&start, &bits_of, rule, slack, limit, params.max_bits, &mut rng, &mut work) {
            Ok((cost, steps)) => {
                if best.as_ref().is_none_or(|b| cost < b.0) {
                    best = Some((cost, steps));
                }
            }
            Err(bits) => narrowest = narrowest.min(bits),
        }
        spent += work;
        // Inference touches each entry a handful of times; stop when planning has cost a share of that.
        if let Some((cost, _)) = &best
            && (spent > PLANNING_SHARE * cost || round as f64 > *cost)
        {
            break;
        }
        if best.is_none() && round >= 20 {
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

type Steps = Vec<(usize, Vec<usize>)>;

/// One greedy elimination. `Err` holds the bits of the table at which it was given up, because it is
/// beyond `max_bits` or the cost has passed `limit`.
#[allow(clippy::too_many_arguments)] // One call, in the loop above.
fn greedy(
    start: &Bits,
    bits_of: &[f64],
    rule: Rule,
    slack: usize,
    limit: f64,
    max_bits: f64,
    rng: &mut Xoshiro256PlusPlus,
    work: &mut f64,
) -> Result<(f64, Steps), f64> {
    let n = bits_of.len();
    let mut g = Bits {
        words: start.words,
        rows: start.rows.clone(),
        degree: start.degree.clone(),
        fill: start.fill.clone(),
        weight: start.weight.clone(),
    };
    *work += (n * start.words) as f64 * 0.1;
    let mut left: Vec<usize> = (0..n).collect();
    let mut steps = Vec::with_capacity(n);
    let mut cost = 0.0;
    while !left.is_empty() {
        let score = |v: usize| match rule {
            Rule::Fill => g.fill[v] as f64,
            Rule::Weight => g.weight[v],
            Rule::FillThenWeight => g.fill[v] as f64 + 0.5 * g.weight[v],
        };
        // The best few, and among equals a random one.
        let (mut at, mut lowest, mut ties) = (0, f64::INFINITY, 0u32);
        for (i, &v) in left.iter().enumerate() {
            if g.fill[v] == 0 && g.weight[v] <= 12.0 {
                // Simplicial and small: nothing is lost by taking it at once.
                at = i;
                break;
            }
            let s = score(v);
            let near = slack > 0 && s <= lowest * (1.0 + 0.03 * slack as f64) && s.is_finite();
            if s < lowest && !(near && ties > 0) {
                (at, lowest, ties) = (i, s, 1);
            } else if s == lowest || near {
                ties += 1;
                if rng.random_range(0..ties) == 0 {
                    at = i;
                }
                lowest = lowest.min(s);
            }
        }
        *work += left.len() as f64 * 0.5;
        let v = left.swap_remove(at);
        let bits = g.weight[v];
        if bits > max_bits {
            return Err(bits);
        }
        cost += bits.exp2();
        if cost >= limit {
            return Err(bits);
        }
        let members = g.members(v);
        if g.fill[v] > 0 {
            for (k, &a) in members.iter().enumerate() {
                for &b in &members[k + 1..] {
                    if !g.has(a, b) {
                        g.connect(a, b, bits_of);
                        *work += 10.0 + g.words as f64;
                    }
                }
            }
        }
        g.remove(v, &members, bits_of);
        *work += (members.len() * members.len()) as f64 * 0.5;
        steps.push((v, members));
    }
    Ok((cost, steps))
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
