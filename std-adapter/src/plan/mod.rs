//! Elimination orders and junction trees, as flat plans for core's executor.
//!
//! [`plan`] answers, before anything is allocated, how wide the tree is and how much memory it takes
//! ([`PlanInfo`]), and gives the words that [`gibbsite_core::infer::plan::Plan::open`] checks.

mod fill;
mod order;
mod tree;

pub use order::OrderParams;

use crate::data::network::Network;
use crate::par::Par;
use order::{Interactions, eliminate};
use std::fmt;

/// What to plan for.
#[derive(Clone, Copy, Debug)]
pub struct PlanParams {
    /// How hard to look for a good elimination order.
    pub order: OrderParams,
    /// Entries of the block that the kernels work on at a time; wants to fit the first-level cache with its inputs.
    pub block: u32,
    /// Threads for the restarts; the plan does not depend on them.
    pub par: Par,
    /// Whether marginals over factor scopes are wanted too (learning needs them).
    pub factor_marginals: bool,
}

impl Default for PlanParams {
    fn default() -> Self {
        Self { order: OrderParams::default(), block: 512, par: Par::Seq, factor_marginals: false }
    }
}

/// What is known of a plan before it is run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PlanInfo {
    /// Variables of the largest clique, less one: an upper bound on the treewidth.
    pub treewidth: usize,
    /// Entries of the largest clique.
    pub largest_table: f64,
    /// Entries of all messages: what log Z and MAP need.
    pub messages: f64,
    /// Entries needed beside them for marginals.
    pub for_marginals: f64,
    /// Table entries touched by the first pass.
    pub cost: f64,
}

impl PlanInfo {
    /// Mebibytes for f64 tables, with or without marginals.
    pub fn mebibytes(&self, marginals: bool) -> f64 {
        let entries = self.messages + if marginals { self.for_marginals } else { 0.0 };
        entries * 8.0 / f64::from(1 << 20)
    }

    /// Two plans side by side: what they need together.
    pub fn and(self, other: Self) -> Self {
        Self {
            treewidth: self.treewidth.max(other.treewidth),
            largest_table: self.largest_table.max(other.largest_table),
            messages: self.messages + other.messages,
            for_marginals: self.for_marginals + other.for_marginals,
            cost: self.cost + other.cost,
        }
    }
}

/// A junction tree in words, and what is known of it.
#[derive(Clone, Debug)]
pub struct JunctionPlan {
    /// For [`gibbsite_core::infer::plan::Plan::open`].
    pub words: Vec<u32>,
    /// Sizes.
    pub info: PlanInfo,
}

/// No plan: the network is too wide.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum PlanError {
    /// Every order that was tried needs a table of at least this many binary digits.
    TooWide {
        /// Logarithm to base 2 of the smallest largest table found.
        bits: f64,
    },
    /// Tables and messages together have more entries than 32 bits can address.
    TooLarge {
        /// What is known of the tree nevertheless.
        info: PlanInfo,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooWide { bits } => {
                write!(f, "no elimination order was found with tables below 2^{bits:.0} entries")
            }
            Self::TooLarge { info } => {
                let (mib, width) = (info.mebibytes(false), info.treewidth);
                write!(f, "the junction tree (treewidth {width}) would need {mib:.0} MiB of tables")
            }
        }
    }
}

impl std::error::Error for PlanError {}

/// Plans exact inference on a network: min-fill and min-weight orders with random restarts, maximal cliques, small
/// factors multiplied together before they meet a large table, and for each variable the smallest
/// table to read its marginal from. Deterministic given the parameters.
///
/// ```
/// use gibbsite::{data::network::Network, plan::{plan, PlanParams}};
/// // A cycle of four variables.
/// let mut net = Network::with_cards(vec![2; 4])?;
/// for v in 0..4 {
///     net.push_factor(&[v, (v + 1) % 4], [0.5, 0.0, 0.0, 0.5])?;
/// }
/// let plan = plan(&net, &PlanParams::default())?;
/// assert_eq!(plan.info.treewidth, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn plan(network: &Network, params: &PlanParams) -> Result<JunctionPlan, PlanError> {
    let order = eliminate(interactions(network), &params.order, params.par);
    if let Some(bits) = order.too_wide {
        return Err(PlanError::TooWide { bits });
    }
    tree::build(network, &order, params)
}

fn interactions(network: &Network) -> Interactions {
    let mut neighbours = vec![Vec::new(); network.variables()];
    for k in 0..network.factors() {
        let scope = network.scope(k);
        for &v in scope {
            neighbours[v as usize].extend(scope.iter().copied().filter(|&u| u != v));
        }
    }
    for list in &mut neighbours {
        list.sort_unstable();
        list.dedup();
    }
    Interactions { cards: network.cards().to_vec(), neighbours }
}
