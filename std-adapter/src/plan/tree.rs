//! From an elimination order to the clusters of a plan.
//!
//! Tables are laid out by the order: what is eliminated last varies fastest. The variables that a clique shares
//! with its neighbours are then the inner, contiguous part of nearly every table that meets there, and
//! the summed-out ones are outer loops: no transposition anywhere.

use super::order::Order;
use super::{JunctionPlan, PlanError, PlanInfo, PlanParams};
use crate::data::network::Network;
use gibbsite_core::infer::plan::{HEADER, MAGIC, MAX_INPUTS, NONE, POTENTIAL, Plan, RECEIVES, RECORD};
use gibbsite_core::table::MAX_SCOPE;

/// A cluster as it is being made.
#[derive(Debug, Default)]
struct Node {
    parent: Option<usize>,
    potential: bool,
    scope: Vec<u32>,
    separator: Vec<u32>,
    inputs: Vec<u32>,
    homes: Vec<u32>,
    separator_homes: Vec<u32>,
    receives: bool,
}

/// A maximal clique of the filled-in graph.
#[derive(Debug)]
struct Clique {
    scope: Vec<u32>,
    separator: Vec<u32>,
    parent: Option<usize>,
}

struct Builder<'a> {
    network: &'a Network,
    rank: Vec<u32>,
    block: f64,
    nodes: Vec<Node>,
}

pub(super) fn build(
    network: &Network,
    order: &Order,
    params: &PlanParams,
) -> Result<JunctionPlan, PlanError> {
    let mut rank = vec![0; network.variables()];
    for (i, step) in order.steps.iter().enumerate() {
        rank[step.variable as usize] = i as u32;
    }
    let (cliques, clique_of) = maximal_cliques(order, network, &rank);
    let mut builder = Builder { network, rank, block: f64::from(params.block), nodes: Vec::new() };
    builder.clusters(&cliques, &clique_of);
    builder.choose_homes();
    builder.mark_receivers(params.factor_marginals);
    let mut info = builder.info(order);
    // Positions are 32 bits; a scope is full at 32 variables, which those of arity 1 can reach in a small table.
    if info.messages >= 4e9 || info.largest_table >= 4e9 || info.treewidth >= MAX_SCOPE {
        return Err(PlanError::TooLarge { info });
    }
    let words = builder.words(params.block);
    // Core's own account of the memory, now that 32 bits are known to hold it.
    let mut counters = vec![0; Plan::open_len(network.variables(), network.factors())];
    if let Ok(plan) =
        network.graph().map_err(drop).and_then(|g| Plan::open(&words, &g, &mut counters).map_err(drop))
    {
        info.messages = plan.messages_len() as f64;
        info.for_marginals = (plan.belief_len() + plan.separator_len()) as f64;
    }
    Ok(JunctionPlan { words, info })
}

/// Cliques, parents before children, and the clique in which each variable is eliminated. Variables
/// that no factor mentions get none.
fn maximal_cliques(order: &Order, network: &Network, rank: &[u32]) -> (Vec<Clique>, Vec<usize>) {
    let mut mentioned = vec![false; network.variables()];
    for k in 0..network.factors() {
        for &v in network.scope(k) {
            mentioned[v as usize] = true;
        }
    }
    let mut cliques: Vec<Clique> = Vec::new();
    let mut clique_of = vec![usize::MAX; network.variables()];
    for step in order.steps.iter().rev() {
        let v = step.variable;
        if !mentioned[v as usize] {
            continue;
        }
        let above = step.neighbours.iter().min_by_key(|&&u| rank[u as usize]).map(|&u| clique_of[u as usize]);
        if let Some(q) = above
            && cliques[q].scope.len() == step.neighbours.len()
        {
            // The clique above is exactly the neighbours: it grows by this variable.
            cliques[q].scope.push(v);
            clique_of[v as usize] = q;
            continue;
        }
        let mut scope = step.neighbours.clone();
        scope.push(v);
        clique_of[v as usize] = cliques.len();
        cliques.push(Clique { scope, separator: step.neighbours.clone(), parent: above });
    }
    (cliques, clique_of)
}

/// An input of a clique: a node that is there already, and its message's scope.
#[derive(Clone, Debug)]
struct Input {
    node: usize,
    scope: Vec<u32>,
}

impl Builder<'_> {
    fn size(&self, scope: &[u32]) -> f64 {
        scope.iter().map(|&v| f64::from(self.network.cards()[v as usize])).product()
    }

    fn by_rank(&self, scope: &mut [u32]) {
        scope.sort_unstable_by_key(|&v| self.rank[v as usize]);
    }

    fn union(&self, a: &[u32], b: &[u32]) -> Vec<u32> {
        let mut union = a.to_vec();
        union.extend(b.iter().copied().filter(|v| !a.contains(v)));
        self.by_rank(&mut union);
        union
    }

    /// Nodes for all cliques, children before parents: potentials, joins, then the clique itself.
    fn clusters(&mut self, cliques: &[Clique], clique_of: &[usize]) {
        let mut factors = vec![Vec::new(); cliques.len()];
        for k in 0..self.network.factors() {
            let first = self.network.scope(k).iter().min_by_key(|&&v| self.rank[v as usize]);
            if let Some(&v) = first {
                factors[clique_of[v as usize]].push(k as u32);
            }
        }
        let mut waiting: Vec<Vec<Input>> = vec![Vec::new(); cliques.len()];
        for (q, clique) in cliques.iter().enumerate().rev() {
            let mut separator = clique.separator.clone();
            self.by_rank(&mut separator);
            let mut summed: Vec<u32> =
                clique.scope.iter().copied().filter(|v| !separator.contains(v)).collect();
            self.by_rank(&mut summed);
            let (scope, separator) = self.arrange(summed, separator, clique.parent.is_none());
            let mut inputs = std::mem::take(&mut waiting[q]);
            inputs.extend(self.potentials(&factors[q]));
            let inputs = self.join(inputs, &scope);
            let node = self.push(Node { scope, separator, ..Node::default() }, &inputs);
            if let Some(p) = clique.parent {
                let scope = self.nodes[node].separator.clone();
                waiting[p].push(Input { node, scope });
            }
        }
    }

    /// Loop order of a clique: outer part of the separator, what is summed out, inner part of the
    /// separator. A large root gets a separator too, so that its sum can be made in parts.
    fn arrange(&self, summed: Vec<u32>, separator: Vec<u32>, root: bool) -> (Vec<u32>, Vec<u32>) {
        if root {
            let (mut left, mut parts, mut lead) = (self.size(&summed), 1.0, 0);
            for &v in &summed {
                let card = f64::from(self.network.cards()[v as usize]);
                if left / card < 4.0 * self.block || parts * card > 256.0 {
                    break;
                }
                (left, parts, lead) = (left / card, parts * card, lead + 1);
            }
            let separator = summed[..lead].to_vec();
            return (summed, separator);
        }
        let inner = self.outer_variables(&separator);
        let mut scope = separator[..inner].to_vec();
        scope.extend(summed);
        scope.extend(&separator[inner..]);
        (scope, separator)
    }

    /// How many variables of a loop order lie outside the block; as core's executor cuts it.
    fn outer_variables(&self, scope: &[u32]) -> usize {
        let (mut outer, mut size) = (scope.len(), 1.0);
        while outer > 0 {
            size *= f64::from(self.network.cards()[scope[outer - 1] as usize]);
            if size > self.block && outer < scope.len() {
                break;
            }
            outer -= 1;
        }
        outer
    }

    fn push(&mut self, mut node: Node, inputs: &[Input]) -> usize {
        let at = self.nodes.len();
        for input in inputs {
            self.nodes[input.node].parent = Some(at);
            node.inputs.push(input.node as u32);
        }
        node.inputs.sort_unstable();
        self.nodes.push(node);
        at
    }

    /// Potentials for the factors of a clique; factors that fit into one another, or together into a tiny table, share one.
    fn potentials(&mut self, factors: &[u32]) -> Vec<Input> {
        const TINY: f64 = 64.0;
        const LOOK_BACK: usize = 64;
        let mut sorted = factors.to_vec();
        sorted.sort_by_key(|&k| (std::cmp::Reverse(self.network.table(k as usize).len()), k));
        let mut groups: Vec<(Vec<u32>, Vec<u32>)> = Vec::new();
        for k in sorted {
            let scope = self.network.scope(k as usize);
            let mut best: Option<(f64, usize, Vec<u32>)> = None;
            for (g, group) in groups.iter().enumerate().rev().take(LOOK_BACK) {
                let union = self.union(&group.0, scope);
                let size = self.size(&union);
                let fits = union.len() == group.0.len() || size <= TINY;
                if fits && best.as_ref().is_none_or(|b| size < b.0) {
                    best = Some((size, g, union));
                }
            }
            match best {
                Some((_, g, union)) => {
                    groups[g].0 = union;
                    groups[g].1.push(k);
                }
                None => groups.push((self.union(scope, &[]), vec![k])),
            }
        }
        let mut inputs = Vec::new();
        for (scope, mut members) in groups {
            members.sort_unstable();
            let node = Node {
                potential: true,
                separator: scope.clone(),
                scope: scope.clone(),
                inputs: members,
                ..Node::default()
            };
            self.nodes.push(node);
            inputs.push(Input { node: self.nodes.len() - 1, scope });
        }
        inputs
    }

    /// Multiplies small inputs with each other before they meet the clique's full table, and brings their
    /// number down to what one contraction takes.
    ///
    /// The clique's loops run over a contiguous inner block. An input that contains all of the block's
    /// variables or none of them costs no index arithmetic there, so a join that touches the block is widened
    /// to contain it, as long as that is small beside the clique.
    fn join(&mut self, mut inputs: Vec<Input>, scope: &[u32]) -> Vec<Input> {
        const SMALL_CLIQUE: f64 = 4096.0;
        let clique_size = self.size(scope);
        let block = if clique_size < SMALL_CLIQUE { &[] } else { &scope[self.outer_variables(scope)..] };
        let mut cap = 2.0 * self.block;
        while clique_size >= SMALL_CLIQUE && cap * 4.0 <= clique_size && inputs.len() > 2 {
            inputs = self.join_below(inputs, block, cap);
            cap *= 8.0;
        }
        for input in &mut inputs {
            let widened = self.widened(&input.scope, block);
            if widened.len() > input.scope.len() && self.size(&widened) * 4.0 <= clique_size {
                *input = self.joined(std::slice::from_ref(input), widened);
            }
        }
        while inputs.len() > MAX_INPUTS {
            let before = inputs.len();
            inputs = self.join_below(inputs, block, cap.min(clique_size));
            cap *= if inputs.len() == before { 4.0 } else { 1.0 };
        }
        inputs
    }

    /// Adds the block's variables to a scope that has some of them.
    fn widened(&self, scope: &[u32], block: &[u32]) -> Vec<u32> {
        if scope.iter().any(|v| block.contains(v)) { self.union(scope, block) } else { scope.to_vec() }
    }

    /// One round of joins: largest first, each input goes to the group that grows least by it, if that
    /// stays within `cap` entries.
    fn join_below(&mut self, mut inputs: Vec<Input>, block: &[u32], cap: f64) -> Vec<Input> {
        const LOOK_BACK: usize = 64;
        inputs.sort_by(|a, b| b.scope.len().cmp(&a.scope.len()).then_with(|| a.scope.cmp(&b.scope)));
        let mut groups: Vec<(Vec<u32>, Vec<Input>)> = Vec::new();
        for input in inputs {
            let own = self.widened(&input.scope, block);
            let mut best: Option<(f64, usize, Vec<u32>)> = None;
            for (g, (scope, _)) in groups.iter().enumerate().rev().take(LOOK_BACK) {
                let union = self.union(scope, &own);
                let growth = self.size(&union) / self.size(scope);
                if self.size(&union) <= cap && best.as_ref().is_none_or(|b| growth < b.0) {
                    best = Some((growth, g, union));
                }
            }
            match best {
                Some((_, g, union)) => {
                    groups[g].0 = union;
                    groups[g].1.push(input);
                }
                None => groups.push((own, vec![input])),
            }
        }
        groups
            .into_iter()
            .map(|(scope, mut members)| {
                while members.len() > MAX_INPUTS {
                    let parts: Vec<_> = members.chunks(MAX_INPUTS).map(<[Input]>::to_vec).collect();
                    members = parts
                        .into_iter()
                        .map(|part| {
                            let union = part.iter().fold(Vec::new(), |u, i| self.union(&u, &i.scope));
                            if part.len() > 1 { self.joined(&part, union) } else { part[0].clone() }
                        })
                        .collect();
                }
                if members.len() > 1 { self.joined(&members, scope) } else { members.swap_remove(0) }
            })
            .collect()
    }

    fn joined(&mut self, group: &[Input], scope: Vec<u32>) -> Input {
        let node =
            self.push(Node { separator: scope.clone(), scope: scope.clone(), ..Node::default() }, group);
        Input { node, scope }
    }

    /// For each variable the smallest table that its marginal can be read from without extra passes.
    fn choose_homes(&mut self) {
        // Separators with a real clique below them get a message in any case.
        let mut below = vec![false; self.nodes.len()];
        let mut best = vec![(f64::INFINITY, usize::MAX, false); self.network.variables()];
        for (c, node) in self.nodes.iter().enumerate() {
            if node.potential {
                continue;
            }
            let sums = node.scope.len() > node.separator.len() || node.parent.is_none();
            below[c] = sums || node.inputs.iter().any(|&i| below[i as usize]);
            if sums {
                let size = self.size(&node.scope);
                for &v in &node.scope {
                    if size < best[v as usize].0 {
                        best[v as usize] = (size, c, false);
                    }
                }
            }
            if below[c] && node.parent.is_some() {
                let size = self.size(&node.separator);
                for &v in &node.separator {
                    if size < best[v as usize].0 {
                        best[v as usize] = (size, c, true);
                    }
                }
            }
        }
        for (v, &(_, c, separator)) in best.iter().enumerate() {
            if c != usize::MAX {
                let node = &mut self.nodes[c];
                if separator { &mut node.separator_homes } else { &mut node.homes }.push(v as u32);
            }
        }
    }

    fn mark_receivers(&mut self, factor_marginals: bool) {
        for c in 0..self.nodes.len() {
            let node = &self.nodes[c];
            self.nodes[c].receives = (node.potential && factor_marginals)
                || !node.homes.is_empty()
                || !node.separator_homes.is_empty()
                || (!node.potential && node.inputs.iter().any(|&i| self.nodes[i as usize].receives));
        }
    }

    fn info(&self, order: &Order) -> PlanInfo {
        let mut info = PlanInfo { cost: order.cost, ..PlanInfo::default() };
        let (mut belief, mut separator) = (0f64, 0f64);
        for node in &self.nodes {
            let (size, message) = (self.size(&node.scope), self.size(&node.separator));
            info.messages += message;
            if !node.potential {
                info.treewidth = info.treewidth.max(node.scope.len().saturating_sub(1));
                info.largest_table = info.largest_table.max(size);
                belief = belief.max(size);
            }
            if node.receives {
                separator = separator.max(message);
            }
        }
        info.for_marginals = belief + separator;
        info
    }

    fn words(&self, block: u32) -> Vec<u32> {
        let counts = [self.network.variables(), self.network.factors(), self.nodes.len()];
        let mut words = vec![MAGIC];
        words.extend(counts.map(|n| n as u32));
        words.extend([block.max(1), 0]);
        words.resize(HEADER + RECORD * self.nodes.len(), 0);
        let mut message_at = 0u32;
        for (c, node) in self.nodes.iter().enumerate() {
            let flags = if node.potential { POTENTIAL } else { 0 } | if node.receives { RECEIVES } else { 0 };
            let mut record = vec![node.parent.map_or(NONE, |p| p as u32), flags];
            let scope_at = words.len() as u32;
            for (i, list) in [&node.scope, &node.separator, &node.inputs, &node.homes, &node.separator_homes]
                .into_iter()
                .enumerate()
            {
                if i == 1 && list == &node.scope {
                    record.extend([scope_at, list.len() as u32]);
                    continue;
                }
                record.extend([words.len() as u32, list.len() as u32]);
                words.extend(list);
            }
            record.push(message_at);
            message_at += self.size(&node.separator) as u32;
            words[HEADER + RECORD * c..HEADER + RECORD * (c + 1)].copy_from_slice(&record);
        }
        words
    }
}
