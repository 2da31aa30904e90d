//! Connected components: variables in different ones are independent, so each can be planned and run by itself.

use crate::data::network::Network;

/// A piece of a network that shares no factor with the rest: one large component, or several small ones.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) network: Network,
    /// The whole network's number of each variable.
    pub(super) kept: Vec<u32>,
}

/// Components smaller than this many variables are put together, so that a part is worth a task of its own.
const SMALL: usize = 2048;

/// Cuts a network into parts. Factors without variables stay with the first part.
pub(super) fn split(network: &Network) -> Vec<Part> {
    let n = network.variables();
    let mut root = roots(network);
    let mut size = vec![0usize; n];
    for v in 0..n as u32 {
        size[find(&mut root, v) as usize] += 1;
    }
    let mut part_of_root = vec![u32::MAX; n];
    let (mut parts, mut open) = (0u32, None);
    for r in 0..n {
        if size[r] == 0 {
            continue;
        }
        if size[r] >= SMALL {
            part_of_root[r] = parts;
            parts += 1;
            continue;
        }
        let (part, filled) = open.unwrap_or_else(|| {
            parts += 1;
            (parts - 1, 0)
        });
        part_of_root[r] = part;
        open = (filled + size[r] < SMALL).then_some((part, filled + size[r]));
    }
    let mut part_of = vec![0u32; n];
    let mut local = vec![0u32; n];
    let mut kept: Vec<Vec<u32>> = vec![Vec::new(); parts.max(1) as usize];
    for v in 0..n as u32 {
        let part = part_of_root[find(&mut root, v) as usize];
        part_of[v as usize] = part;
        local[v as usize] = kept[part as usize].len() as u32;
        kept[part as usize].push(v);
    }
    let mut out: Vec<Part> = kept
        .into_iter()
        .map(|kept| {
            let cards: Vec<u32> = kept.iter().map(|&v| network.cards()[v as usize]).collect();
            let network = Network::with_cards(cards).expect("arities of a checked network");
            Part { network, kept }
        })
        .collect();
    let mut scope = Vec::new();
    for k in 0..network.factors() {
        scope.clear();
        scope.extend(network.scope(k).iter().map(|&v| local[v as usize]));
        let part = network.scope(k).first().map_or(0, |&v| part_of[v as usize]);
        let table = network.table(k).iter().copied();
        out[part as usize].network.push_factor(&scope, table).expect("a factor of a checked network");
    }
    out
}

/// A union-find forest over the variables in which those that share a factor are one tree.
fn roots(network: &Network) -> Vec<u32> {
    let mut root: Vec<u32> = (0..network.variables() as u32).collect();
    for k in 0..network.factors() {
        for pair in network.scope(k).windows(2) {
            let (a, b) = (find(&mut root, pair[0]), find(&mut root, pair[1]));
            // The smaller number wins: components are then met in the order of their first variable.
            root[a.max(b) as usize] = a.min(b);
        }
    }
    root
}

fn find(root: &mut [u32], v: u32) -> u32 {
    let mut top = v;
    while root[top as usize] != top {
        top = root[top as usize];
    }
    let mut at = v;
    while root[at as usize] != top {
        at = std::mem::replace(&mut root[at as usize], top);
    }
    top
}

/// How many connected components there are.
pub(super) fn components(network: &Network) -> usize {
    let mut root = roots(network);
    (0..network.variables() as u32).filter(|&v| find(&mut root, v) == v).count()
}

/// Marginals of the whole network from those of its parts.
pub(super) fn gather_marginals(network: &Network, parts: &[Part], each: &[Vec<f64>]) -> Vec<f64> {
    let mut starts = Vec::with_capacity(network.variables());
    let mut total = 0;
    for &card in network.cards() {
        starts.push(total);
        total += card as usize;
    }
    let mut out = vec![0.0; total];
    for (part, own) in parts.iter().zip(each) {
        let mut at = 0;
        for &v in &part.kept {
            let card = network.cards()[v as usize] as usize;
            out[starts[v as usize]..][..card].copy_from_slice(&own[at..at + card]);
            at += card;
        }
    }
    out
}

/// Labels of the whole network from those of its parts.
pub(super) fn gather_labels(network: &Network, parts: &[Part], each: &[Vec<u32>]) -> Vec<u32> {
    let mut out = vec![0; network.variables()];
    for (part, own) in parts.iter().zip(each) {
        for (&v, &label) in part.kept.iter().zip(own) {
            out[v as usize] = label;
        }
    }
    out
}
