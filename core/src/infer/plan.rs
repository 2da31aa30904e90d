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

use super::loops::{Loops, size_of_scope};
use crate::error::{InferError, need};
use crate::graph::FactorGraph;
use crate::ids::FactorId;
use crate::score::Score;
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
    pub fn open<T: Score>(
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
    fn check_all<T: Score>(
        &mut self,
        graph: &FactorGraph<'_, T>,
        memory: &mut [u32],
    ) -> Result<(), InferError> {
        memory.fill(0);
        let n = graph.variables();
        // How often each variable was seen and has a home, and each factor was used.
        let (seen, rest) = memory.split_at_mut_checked(n).ok_or(InferError::Shape)?;
        let (homes, used) = rest.split_at_mut_checked(n).ok_or(InferError::Shape)?;
        let (mut edges, mut inputs) = (0usize, 0usize);
        for c in 0..self.clusters {
            let sound = self.is_sound(c)
                && self.add_message(graph, c).is_some()
                && self.fits_parent(c)
                && self.fits_inputs(graph, c, used)
                && self.add_needs(graph, c).is_some()
                && self.count(c, seen, homes).is_some();
            if !sound {
                return Err(InferError::Plan((HEADER + c * RECORD) as u32));
            }
            edges += usize::from(self.has_parent(c));
            if !self.is_potential(c) {
                inputs += self.inputs(c).len();
            }
        }
        let connected = seen.iter().zip(homes.iter()).all(|(&s, &h)| s == h && s <= 1);
        let complete = graph
            .factor_ids()
            .zip(used.iter())
            .all(|(k, &used)| used == u32::from(!graph.scope(k).is_empty()));
        if connected && complete && edges == inputs {
            Ok(())
        } else {
            Err(InferError::Plan(self.words.len() as u32))
        }
    }

    /// Whether a cluster's record is one, and its lists are what they are said to be.
    #[inline(never)]
    fn is_sound(&self, c: usize) -> bool {
        self.record(c).is_some()
            && self.scope(c).len() <= MAX_SCOPE
            && self.separator(c).len() <= MAX_SCOPE
            && self.homes(c).len() <= self.scope(c).len()
            && self.separator_homes(c).len() <= self.separator(c).len()
            && distinct(self.scope(c))
            && distinct(self.separator(c))
            && within(self.separator(c), self.scope(c))
            && within(self.homes(c), self.scope(c))
            && within(self.separator_homes(c), self.separator(c))
            && (self.receives(c) || self.separator_homes(c).is_empty())
            && (self.receives(c) || !self.has_parent(c) || self.homes(c).is_empty())
            && self.message_at(c) == self.messages
    }

    /// The memory of a cluster's message.
    #[inline(never)]
    fn add_message<T: Score>(&mut self, graph: &FactorGraph<'_, T>, c: usize) -> Option<()> {
        size_of_scope(self.scope(c), graph.cards())?;
        let message = size_of_scope(self.separator(c), graph.cards())?;
        self.messages = self.messages.checked_add(message).filter(|&sum| sum <= u32::MAX as usize)?;
        self.widest = self.widest.max(self.scope(c).len());
        Some(())
    }

    /// Whether a cluster may stand below its parent.
    #[inline(never)]
    fn fits_parent(&self, c: usize) -> bool {
        if !self.has_parent(c) {
            return true;
        }
        let parent = self.word(c, 0);
        self.record(parent).is_some_and(|above| !above.potential)
            && parent > c
            && within(self.separator(c), self.scope(parent))
    }

    /// Whether a cluster may have its inputs; marks the factors that it uses.
    #[inline(never)]
    fn fits_inputs<T: Score>(&self, graph: &FactorGraph<'_, T>, c: usize, used: &mut [u32]) -> bool {
        let inputs = self.inputs(c);
        if self.is_potential(c) {
            if self.scope(c) != self.separator(c) || !self.has_parent(c) || !self.homes(c).is_empty() {
                return false;
            }
            return inputs.iter().all(|&k| {
                let Some(used) = used.get_mut(k as usize) else { return false };
                *used += 1;
                // At once, so that lists which overlap cannot make the count, or the time, grow beyond bounds.
                *used == 1 && within(graph.scope(FactorId(k)), self.scope(c))
            });
        }
        if inputs.is_empty() || inputs.len() > MAX_INPUTS || !inputs.is_sorted_by(|a, b| a < b) {
            return false;
        }
        inputs.iter().all(|&child| {
            let child = child as usize;
            self.record(child).is_some_and(|below| below.parent == Some(c))
                && child < c
                && (self.receives(c) || !self.has_parent(c) || !self.receives(child))
        })
    }

    /// Adds what a cluster needs to what the plan needs.
    #[inline(never)]
    fn add_needs<T: Score>(&mut self, graph: &FactorGraph<'_, T>, c: usize) -> Option<()> {
        let (cards, scope) = (graph.cards(), self.scope(c));
        if self.is_potential(c) {
            // For the pattern of a factor, and for reading one's marginal.
            self.index = self.index.max(Loops::len(scope.len(), 2));
        } else {
            let size = size_of_scope(scope, cards)?;
            if self.keeps_belief(c, size, cards) {
                self.belief = self.belief.max(size);
            }
            self.index = self.index.max(Loops::len(scope.len(), self.inputs(c).len() + 2));
            self.room_for(scope, size, cards, self.homes(c), 0)?;
        }
        if self.receives(c) {
            let message = size_of_scope(self.separator(c), cards)?;
            self.separator = self.separator.max(message);
            self.room_for(self.separator(c), message, cards, self.separator_homes(c), message)?;
        }
        Some(())
    }

    /// Counts the variables of a cluster, and those that have their home there.
    #[inline(never)]
    fn count(&self, c: usize, seen: &mut [u32], homes: &mut [u32]) -> Option<()> {
        for &v in self.scope(c) {
            *seen.get_mut(v as usize)? += 1;
        }
        if self.has_parent(c) {
            for &v in self.separator(c) {
                // Never below 0: the separator lies in the scope that was just counted.
                *seen.get_mut(v as usize)? -= 1;
            }
        }
        for &v in self.homes(c).iter().chain(self.separator_homes(c)) {
            *homes.get_mut(v as usize)? += 1;
        }
        Some(())
    }

    /// Memory for block work on a table and for reading marginals off it.
    #[inline(never)]
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
    #[inline(never)]
    pub(super) fn keeps_belief(&self, c: usize, size: usize, cards: &[u32]) -> bool {
        let staged = self.staging(self.scope(c), size, cards, self.homes(c)).is_some();
        let children = self.inputs(c).iter().filter(|&&child| self.receives(child as usize)).count();
        children + if staged { 1 } else { self.homes(c).len() } > 1
    }

    /// The size of the table of [`staged`](Self::staged) variables through which marginals of `homes` are read off a large one.
    /// `None` where reading directly is as good.
    #[inline(never)]
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

    // One by one, and not as a `Cluster`: that is fifteen words, and a device has little stack.

    /// A word of a cluster's record.
    fn word(&self, c: usize, i: usize) -> usize {
        self.words.get(HEADER + c * RECORD + i).map_or(0, |&word| word as usize)
    }

    /// A list that two words of a cluster's record say where to find; empty if it is not there.
    #[cfg_attr(target_os = "none", inline(never))]
    fn list(&self, c: usize, i: usize) -> &'p [u32] {
        let at = self.word(c, i);
        self.words.get(at..).and_then(|tail| tail.get(..self.word(c, i + 1))).unwrap_or(&[])
    }

    /// Whether a cluster multiplies factors.
    pub(super) fn is_potential(&self, c: usize) -> bool {
        self.word(c, 1) as u32 & POTENTIAL != 0
    }

    /// Whether a cluster has a parent.
    pub(super) fn has_parent(&self, c: usize) -> bool {
        self.word(c, 0) as u32 != NONE
    }

    /// Whether a cluster gets a message from its parent in the second pass.
    pub(super) fn receives(&self, c: usize) -> bool {
        self.word(c, 1) as u32 & RECEIVES != 0 && self.has_parent(c)
    }

    /// The variables of a cluster.
    pub(super) fn scope(&self, c: usize) -> &'p [u32] {
        self.list(c, 2)
    }

    /// The variables of a cluster's message.
    pub(super) fn separator(&self, c: usize) -> &'p [u32] {
        self.list(c, 4)
    }

    /// The factors of a potential, or the children of a clique.
    pub(super) fn inputs(&self, c: usize) -> &'p [u32] {
        self.list(c, 6)
    }

    /// The variables whose marginal is read from a cluster's belief.
    pub(super) fn homes(&self, c: usize) -> &'p [u32] {
        self.list(c, 8)
    }

    /// Those whose marginal is read from its separator's.
    pub(super) fn separator_homes(&self, c: usize) -> &'p [u32] {
        self.list(c, 10)
    }

    /// Where a cluster's message begins in message memory.
    pub(super) fn message_at(&self, c: usize) -> usize {
        self.word(c, 12)
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

/// No variable twice.
#[inline(never)]
fn distinct(list: &[u32]) -> bool {
    list.iter().enumerate().all(|(i, v)| !list.iter().take(i).any(|u| u == v))
}

/// All variables of a list are in another.
#[inline(never)]
fn within(list: &[u32], other: &[u32]) -> bool {
    list.iter().all(|v| other.contains(v))
}
