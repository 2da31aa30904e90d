//! [`Plan`]: a checked view of a junction tree that was planned elsewhere, as flat words.
//!
//! A plan is a rooted forest of *clusters*, children before parents. A **potential** cluster multiplies
//! factors of the graph over its scope and sends the product up. A **clique** multiplies its children's
//! messages, sums out what its parent does not share, and sends the rest (the *separator*) up.
//! [`Plan::open`] checks that the clusters are a junction tree of the given graph: every factor is used
//! once, separators lie in both neighbours, and each variable's clusters are connected (the running
//! intersection property, checked by counting: a forest with `n` nodes and `n - 1` edges is one tree). Whatever
//! words pass that, the answers of [`junction`](super::junction) are right.
//!
//! # Words
//! Header: [`MAGIC`], variables, factors, clusters, block length, 0. Then [`RECORD`] words for each
//! cluster, then a pool that they point into by absolute position:
//!
//! | word | meaning |
//! | --- | --- |
//! | 0 | parent cluster, or [`NONE`] |
//! | 1 | flags: bit 0 [`POTENTIAL`], bit 1 [`RECEIVES`] |
//! | 2, 3 | scope: position, length; in loop order, the last variable fastest |
//! | 4, 5 | separator: position, length; for a root any part of its scope |
//! | 6, 7 | inputs: position, length; factors of a potential, children of a clique (ascending) |
//! | 8, 9 | variables whose marginal is read from the belief |
//! | 10, 11 | variables whose marginal is read from the separator's belief |
//! | 12 | position of the message in message memory |

use super::contract::{Loops, size_of_scope};
use crate::error::{InferError, need};
use crate::graph::FactorGraph;
use crate::ids::FactorId;
use crate::math::Real;
use crate::table::MAX_SCOPE;

/// First word of a plan: "GJP1".
pub const MAGIC: u32 = 0x3150_4a47;
/// Words of the header.
pub const HEADER: usize = 6;
/// Words of a cluster's record.
pub const RECORD: usize = 13;
/// Most children of a clique: tables that are multiplied at a time.
pub const MAX_INPUTS: usize = 8;
/// The parent of a root.
pub const NONE: u32 = u32::MAX;
/// Flag: the cluster multiplies factors.
pub const POTENTIAL: u32 = 1;
/// Flag: marginals are wanted from here or from below, so the second pass sends a message down. A potential that
/// receives keeps its belief, for factor marginals.
pub const RECEIVES: u32 = 2;
/// Tables of at least so many blocks are brought down to a marginal in two steps, the first of which is parallel.
const LARGE: usize = 8;

/// A checked junction tree. See the module's text for its words.
///
/// Made by `gibbsite::plan` on a desk; a device receives the words with the model.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'p> {
    words: &'p [u32],
    clusters: usize,
    block: usize,
    messages: usize,
    belief: usize,
    separator: usize,
    temp: usize,
    index: usize,
    /// Variables of the largest clique.
    widest: usize,
}

/// One cluster of a plan.
#[derive(Clone, Copy, Debug)]
pub struct Cluster<'p> {
    /// The cluster that receives this one's message.
    pub parent: Option<usize>,
    /// Whether it multiplies factors rather than messages.
    pub potential: bool,
    /// Whether it gets a message from its parent in the second pass.
    pub receives: bool,
    /// Variables in loop order, the last fastest.
    pub scope: &'p [u32],
    /// Variables of the message.
    pub separator: &'p [u32],
    /// Factors (of a potential) or child clusters (of a clique).
    pub inputs: &'p [u32],
    /// Variables whose marginal is read from the belief.
    pub homes: &'p [u32],
    /// Variables whose marginal is read from the separator's belief.
    pub separator_homes: &'p [u32],
    /// Where the message begins in message memory.
    pub message_at: usize,
}

impl<'p> Plan<'p> {
    /// `u32` entries that [`open`](Self::open) needs to count in.
    pub const fn open_len(variables: usize, factors: usize) -> usize {
        2 * variables + factors
    }

    /// Checks that `words` are a junction tree of `graph`. `memory` is used only during the call.
    /// [`InferError::Plan`] names the word at which something was wrong.
    #[inline(always)]
    pub fn open<T: Real>(
        words: &'p [u32],
        graph: &FactorGraph<'_, T>,
        memory: &mut [u32],
    ) -> Result<Self, InferError> {
        let (n, factors) = (graph.variables(), graph.factors());
        need(Self::open_len(n, factors), memory.len())?;
        let [magic, variables, plan_factors, clusters, block, _] =
            *words.first_chunk::<HEADER>().ok_or(InferError::Plan(0))?;
        let fits = magic == MAGIC && variables as usize == n && plan_factors as usize == factors && block > 0;
        let records_end = (clusters as usize).checked_mul(RECORD).and_then(|r| r.checked_add(HEADER));
        if !fits || records_end.is_none_or(|end| end > words.len()) {
            return Err(InferError::Plan(0));
        }
        let mut plan = Plan {
            words,
            clusters: clusters as usize,
            block: block as usize,
            messages: 0,
            belief: 0,
            separator: 0,
            temp: 0,
            index: 0,
            widest: 0,
        };
        plan.check_all(graph, memory)?;
        Ok(plan)
    }

    /// Checks all clusters and adds up what they need.
    #[inline(never)]
    fn check_all<T: Real>(
        &mut self,
        graph: &FactorGraph<'_, T>,
        memory: &mut [u32],
    ) -> Result<(), InferError> {
        memory.fill(0);
        let n = graph.variables();
        let (seen, rest) = memory.split_at_mut_checked(n).ok_or(InferError::Shape)?;
        let (homes, used) = rest.split_at_mut_checked(n).ok_or(InferError::Shape)?;
        let mut edges = 0usize;
        let mut inputs = 0usize;
        for c in 0..self.clusters {
            let bad = InferError::Plan((HEADER + c * RECORD) as u32);
            let cluster = self.record(c).ok_or(bad)?;
            self.check(graph, c, &cluster, used).ok_or(bad)?;
            edges += usize::from(cluster.parent.is_some());
            if !cluster.potential {
                inputs += cluster.inputs.len();
            }
            for &v in cluster.scope {
                *seen.get_mut(v as usize).ok_or(bad)? += 1;
            }
            if cluster.parent.is_some() {
                for &v in cluster.separator {
                    // Never below 0: the separator lies in the scope that was just counted.
                    *seen.get_mut(v as usize).ok_or(bad)? -= 1;
                }
            }
            for &v in cluster.homes.iter().chain(cluster.separator_homes) {
                *homes.get_mut(v as usize).ok_or(bad)? += 1;
            }
        }
        let end = InferError::Plan(self.words.len() as u32);
        let connected = seen.iter().zip(homes.iter()).all(|(&s, &h)| s == h && s <= 1);
        let complete = graph
            .factor_ids()
            .zip(used.iter())
            .all(|(k, &used)| used == u32::from(!graph.scope(k).is_empty()));
        if connected && complete && edges == inputs { Ok(()) } else { Err(end) }
    }

    /// Checks one cluster by itself and against its neighbours, and adds its needs to the plan's.
    #[inline(never)]
    fn check<T: Real>(
        &mut self,
        graph: &FactorGraph<'_, T>,
        c: usize,
        cluster: &Cluster<'p>,
        used: &mut [u32],
    ) -> Option<()> {
        let cards = graph.cards();
        let distinct =
            |list: &[u32]| list.iter().enumerate().all(|(i, v)| !list.iter().take(i).any(|u| u == v));
        let within = |list: &[u32], other: &[u32]| list.iter().all(|v| other.contains(v));
        let Cluster { scope, separator, inputs, .. } = *cluster;
        let sound = scope.len() <= MAX_SCOPE
            && separator.len() <= MAX_SCOPE
            && cluster.homes.len() <= scope.len()
            && cluster.separator_homes.len() <= separator.len()
            && distinct(scope)
            && distinct(separator)
            && within(separator, scope)
            && within(cluster.homes, scope)
            && within(cluster.separator_homes, separator)
            && (cluster.receives || cluster.separator_homes.is_empty())
            && (cluster.receives || cluster.parent.is_none() || cluster.homes.is_empty())
            && cluster.message_at == self.messages;
        if !sound {
            return None;
        }
        self.widest = self.widest.max(scope.len());
        let size = size_of_scope(scope, cards)?;
        let message = size_of_scope(separator, cards)?;
        self.messages = self.messages.checked_add(message)?;
        if self.messages > u32::MAX as usize {
            return None;
        }
        if let Some(parent) = cluster.parent {
            let above = self.record(parent)?;
            if parent <= c || above.potential || !within(separator, above.scope) {
                return None;
            }
        }
        if cluster.potential {
            if scope != separator || cluster.parent.is_none() || !cluster.homes.is_empty() {
                return None;
            }
            // For the pattern of a factor, and for reading one's marginal.
            self.index = self.index.max(Loops::len(scope.len(), 2));
            for &k in inputs {
                let used = used.get_mut(k as usize)?;
                *used += 1;
                // At once, so that lists which overlap cannot make the count, or the time, grow beyond bounds.
                if *used > 1 || !within(graph.scope(FactorId(k)), scope) {
                    return None;
                }
            }
        } else {
            if inputs.is_empty() || inputs.len() > MAX_INPUTS || !inputs.is_sorted_by(|a, b| a < b) {
                return None;
            }
            for &child in inputs {
                let below = self.record(child as usize)?;
                let reached = cluster.receives || cluster.parent.is_none() || !below.receives;
                if below.parent != Some(c) || child as usize >= c || !reached {
                    return None;
                }
            }
            if self.keeps_belief(cluster, size, cards) {
                self.belief = self.belief.max(size);
            }
            self.index = self.index.max(Loops::len(scope.len(), inputs.len() + 2));
            self.room_for(scope, size, cards, cluster.homes, 0)?;
        }
        if cluster.receives {
            self.separator = self.separator.max(message);
            self.room_for(separator, message, cards, cluster.separator_homes, message)?;
        }
        Some(())
    }

    /// Memory for block work on a table and for reading marginals off it.
    fn room_for(
        &mut self,
        scope: &[u32],
        size: usize,
        cards: &[u32],
        homes: &[u32],
        beside: usize,
    ) -> Option<()> {
        self.temp = self.temp.max(self.block(scope.iter(), cards).1);
        self.index = self.index.max(Loops::len(scope.len(), 2));
        let mut staged = 0;
        if let Some(len) = self.staging(scope, size, cards, homes) {
            self.temp = self.temp.max(self.block(self.staged(scope, cards, homes), cards).1);
            staged = len;
        }
        self.separator = self.separator.max(beside.checked_add(staged)?);
        Some(())
    }

    /// Whether the second pass stores a clique's belief: only if it is read more than once.
    pub(super) fn keeps_belief(&self, cluster: &Cluster<'_>, size: usize, cards: &[u32]) -> bool {
        let children =
            cluster.inputs.iter().filter(|&&c| self.record(c as usize).is_some_and(|c| c.receives));
        let staged = self.staging(cluster.scope, size, cards, cluster.homes).is_some();
        children.count() + if staged { 1 } else { cluster.homes.len() } > 1
    }

    /// The size of the table of [`staged`](Self::staged) variables through which marginals of `homes` are read off a large one.
    /// `None` where reading directly is as good.
    pub(super) fn staging(&self, scope: &[u32], size: usize, cards: &[u32], homes: &[u32]) -> Option<usize> {
        if homes.is_empty() {
            return None;
        }
        let outer = scope.len() - self.block_of(scope, cards);
        let blocks = size_of_scope(scope.get(..outer)?, cards)?;
        let mut len = 1u32;
        for &v in self.staged(scope, cards, homes) {
            len = len.checked_mul(*cards.get(v as usize)?)?;
        }
        (blocks >= LARGE && len as usize <= size / 4).then_some(len as usize)
    }

    /// All variables outside the block (so that a table of them is made in parallel), then those of `homes` inside it.
    pub(super) fn staged<'s>(
        &self,
        scope: &'s [u32],
        cards: &[u32],
        homes: &'s [u32],
    ) -> impl DoubleEndedIterator<Item = &'s u32> + use<'s> {
        let outer = scope.len() - self.block_of(scope, cards);
        let (outside, inside) = scope.split_at_checked(outer).unwrap_or((scope, &[]));
        outside.iter().chain(inside.iter().filter(move |v| homes.contains(v)))
    }

    /// How many of the last variables of a table make the block: as many as fit, but at least one.
    pub(super) fn block_of(&self, scope: &[u32], cards: &[u32]) -> usize {
        self.block(scope.iter(), cards).0
    }

    /// The same, and the configurations of these variables.
    fn block<'s>(&self, scope: impl DoubleEndedIterator<Item = &'s u32>, cards: &[u32]) -> (usize, usize) {
        let (mut size, mut count) = (1usize, 0);
        for &v in scope.rev() {
            let larger = size.saturating_mul(cards.get(v as usize).map_or(1, |&c| c as usize));
            if larger > self.block && count > 0 {
                break;
            }
            size = larger;
            count += 1;
        }
        (count, size)
    }

    fn record(&self, c: usize) -> Option<Cluster<'p>> {
        if c >= self.clusters {
            return None;
        }
        let from = HEADER + c * RECORD;
        let record: &[u32; RECORD] = self.words.get(from..)?.first_chunk()?;
        let [parent, flags, s0, s1, m0, m1, i0, i1, h0, h1, g0, g1, message_at] = *record;
        let list = |at: u32, len: u32| {
            let (at, len) = (at as usize, len as usize);
            self.words.get(at..at.checked_add(len)?)
        };
        if flags & !(POTENTIAL | RECEIVES) != 0 {
            return None;
        }
        Some(Cluster {
            parent: (parent != NONE).then_some(parent as usize),
            potential: flags & POTENTIAL != 0,
            receives: flags & RECEIVES != 0 && parent != NONE,
            scope: list(s0, s1)?,
            separator: list(m0, m1)?,
            inputs: list(i0, i1)?,
            homes: list(h0, h1)?,
            separator_homes: list(g0, g1)?,
            message_at: message_at as usize,
        })
    }

    /// How many clusters there are.
    pub fn clusters(&self) -> usize {
        self.clusters
    }

    /// A cluster; an empty one if there is no such number.
    pub fn cluster(&self, c: usize) -> Cluster<'p> {
        self.record(c).unwrap_or(Cluster {
            parent: None,
            potential: true,
            receives: false,
            scope: &[],
            separator: &[],
            inputs: &[],
            homes: &[],
            separator_homes: &[],
            message_at: 0,
        })
    }

    /// Whether a cluster multiplies factors.
    pub(super) fn is_potential(&self, c: usize) -> bool {
        self.record(c).is_none_or(|cluster| cluster.potential)
    }

    /// Whether a cluster gets a message from its parent in the second pass.
    pub(super) fn receives(&self, c: usize) -> bool {
        self.record(c).is_some_and(|cluster| cluster.receives)
    }

    /// The variables of a cluster's message, and where it begins in message memory.
    pub(super) fn message(&self, c: usize) -> Option<(&'p [u32], usize)> {
        let cluster = self.record(c)?;
        Some((cluster.separator, cluster.message_at))
    }

    /// Entries of message memory.
    pub fn messages_len(&self) -> usize {
        self.messages
    }

    /// Entries of belief memory: the largest clique. Needed only for marginals.
    pub fn belief_len(&self) -> usize {
        self.belief
    }

    /// Entries of separator memory. Needed only for marginals.
    pub fn separator_len(&self) -> usize {
        self.separator
    }

    /// Entries of temporary memory for [`Sequential`](super::fork::Sequential).
    pub fn temp_len(&self) -> usize {
        self.temp
    }

    /// `u32` entries of index memory: a list of variables, and the loops of a contraction.
    pub fn index_len(&self) -> usize {
        self.widest + self.index
    }

    /// Index memory cut into its two parts.
    pub(super) fn divide<'i>(&self, index: &'i mut [u32]) -> Option<(&'i mut [u32], &'i mut [u32])> {
        index.split_at_mut_checked(self.widest)
    }
}
