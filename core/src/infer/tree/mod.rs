//! Sum- and max-product on forests: exact `log Z`, marginals and the best assignment of a factor graph
//! without cycles, in time and memory linear in its size.
//!
//! [`Forest::build`] finds an order without recursion, or the factor that closes a cycle; the order then
//! serves [`Forest::sum_product`], [`Forest::log_z`] and [`Forest::max_product`]. "Without cycles" is
//! meant of the graph of variables *and* factors: two factors over the same two variables are a cycle.
//!
//! | file | what |
//! | --- | --- |
//! | `mod` | the forest: its order and where the results lie |
//! | `sum_product` | `log Z` and marginals: up and down the order |
//! | `factor` | the messages out of one factor |
//! | `column` | rows of messages, numbers with an exponent of their own |
//! | `max_product` | the best assignment |
//! | `pairwise` | many samples side by side, for forests of pairwise factors |
//! | `walk` | going through the configurations of one factor |

mod column;
mod factor;
mod max_product;
pub mod pairwise;
mod sum_product;
mod walk;

use crate::arena::Arena;
use crate::error::InferError;
use crate::graph::{FactorGraph, Incidence};
use crate::ids::{FactorId, VarId};
use crate::math::Real;
use crate::wide::Compensated;
use core::ops::Range;

/// In place of the edge through which a variable was found: not found yet, and found by nobody.
const UNSEEN: u32 = u32::MAX;
const ROOT: u32 = u32::MAX - 1;

/// A factor graph without cycles, and an order in which to visit it.
///
/// ```
/// use gibbsite_core::{graph::FactorGraph, ids::VarId, infer::tree::Forest};
/// // ψ(x0, x1) prefers equal values; x2 is in no factor.
/// let graph = FactorGraph::new(&[2, 2, 3], &[0, 2], &[0, 1], &[0, 4], &[1.0, 0.0, 0.0, 1.0]).unwrap();
/// let mut order = [0; Forest::<f64>::build_len(3, 1, 2)];
/// let forest = Forest::build(&graph, &mut order)?;
/// let (mut marginals, mut memory) = ([0.0; 7], [0.0; 64]);
/// let log_z = forest.sum_product(&mut marginals, None, &mut memory)?;
/// assert!((log_z - (3.0 * (2.0 * 1f64.exp() + 2.0)).ln()).abs() < 1e-14);
/// assert_eq!(marginals[forest.range(VarId(0))], [0.5, 0.5]);
/// # Ok::<(), gibbsite_core::error::InferError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Forest<'g, 'm, T> {
    graph: FactorGraph<'g, T>,
    incidence: Incidence<'m>,
    /// Where each variable's marginal begins; one more entry for the end.
    offsets: &'m [u32],
    /// Where each factor's table begins.
    tables: &'m [u32],
    /// The edge through which each variable was found, or `ROOT`.
    parents: &'m [u32],
    /// The edge that leads from each factor up to its parent variable, parents first. The children of a
    /// variable stand side by side.
    order: &'m [u32],
    /// Sum of the arities of all factors' parents: the size of all upward messages.
    upward: usize,
    /// Variables of the longest scope.
    longest: usize,
}

impl<'g, 'm, T: Real> Forest<'g, 'm, T> {
    /// `u32` entries that [`build`](Self::build) needs for a graph of this size.
    pub const fn build_len(variables: usize, factors: usize, edges: usize) -> usize {
        let own = variables.saturating_mul(3).saturating_add(1);
        let own = own.saturating_add(factors.saturating_mul(2));
        let incidence = variables.saturating_add(1).saturating_add(edges.saturating_mul(2));
        own.saturating_add(incidence)
    }

    /// Orders the graph breadth first from the first variable of each component, in linear time.
    ///
    /// [`InferError::Cycle`] names a factor that closes a cycle; [`InferError::Shape`] if the arities
    /// add up to more than 32 bits can count.
    #[inline(always)]
    pub fn build(graph: &FactorGraph<'g, T>, memory: &'m mut [u32]) -> Result<Self, InferError> {
        let (variables, factors, edges) = (graph.variables(), graph.factors(), graph.edges());
        let mut arena = Arena::new(memory, Self::build_len(variables, factors, edges))?;
        let incidence = Incidence::build(graph, arena.take(Incidence::len(variables, edges))?)?;
        let (offsets, tables) = (arena.take(variables + 1)?, arena.take(factors)?);
        let (parents, queue) = (arena.take(variables)?, arena.take(variables)?);
        let order = arena.take(factors)?;
        if edges >= ROOT as usize {
            return Err(InferError::Shape);
        }

        let (placed, upward) = Self::arrange(graph, &incidence, (offsets, tables), (parents, queue), order)?;
        let order = order.get(..placed).unwrap_or(&[]);
        let longest = graph.factor_ids().map(|k| graph.scope(k).len()).max().unwrap_or(0);
        Ok(Self { graph: *graph, incidence, offsets, tables, parents, order, upward, longest })
    }

    /// Fills the arrays of the forest; returns how many edges the order has, and the size of all upward messages.
    #[inline(never)]
    fn arrange(
        graph: &FactorGraph<'g, T>,
        incidence: &Incidence<'_>,
        (offsets, tables): (&mut [u32], &mut [u32]),
        (parents, queue): (&mut [u32], &mut [u32]),
        order: &mut [u32],
    ) -> Result<(usize, usize), InferError> {
        let mut total = 0u32;
        for (offset, card) in offsets.iter_mut().zip(graph.cards().iter().chain(&[0])) {
            *offset = total;
            total = total.checked_add(*card).ok_or(InferError::Shape)?;
        }
        let mut total = 0u32;
        for (start, k) in tables.iter_mut().zip(graph.factor_ids()) {
            *start = total;
            total = total.saturating_add(graph.table(k).len() as u32);
        }

        parents.fill(UNSEEN);
        let mut search = Search { parents, queue, found: 0, visited: 0 };
        let (mut upward, mut placed) = (0usize, 0usize);
        let mut places = order.iter_mut();
        for root in 0..graph.variables() as u32 {
            if !search.is_unseen(root) {
                continue;
            }
            search.find(root, ROOT);
            while let Some((v, parent)) = search.visit() {
                // The parent has been placed, and it found all of its scope.
                for &edge in incidence.edges(VarId(v)).iter().filter(|&&e| e != parent) {
                    let k = incidence.factor(edge);
                    for (e, &w) in graph.edge_range(k).zip(graph.scope(k)) {
                        if e as u32 == edge {
                            continue;
                        }
                        if !search.is_unseen(w) {
                            return Err(InferError::Cycle(k));
                        }
                        search.find(w, e as u32);
                    }
                    if let Some(place) = places.next() {
                        *place = edge;
                        placed += 1;
                    }
                    upward = upward.saturating_add(graph.card(VarId(v)));
                }
            }
        }
        Ok((placed, upward))
    }

    /// The graph this forest was built for.
    pub fn graph(&self) -> &FactorGraph<'g, T> {
        &self.graph
    }

    /// Entries of the array of all marginals: the sum of the arities.
    pub fn marginals_len(&self) -> usize {
        self.offsets.last().map_or(0, |&end| end as usize)
    }

    /// Where the marginal of a variable lies in the array of all; empty if there is no such variable.
    pub fn range(&self, v: VarId) -> Range<usize> {
        let start = self.offsets.get(v.index()).map_or(0, |&s| s as usize);
        start..start + self.graph.card(v)
    }

    /// Entries of the array of all factor marginals: the sum of the table lengths.
    pub fn beliefs_len(&self) -> usize {
        self.graph.factor_ids().map(|k| self.graph.table(k).len()).sum()
    }

    /// Where the marginal of a factor lies in the array of all: where its table lies in the graph's
    /// `values`. Empty if there is no such factor.
    pub fn belief_range(&self, k: FactorId) -> Range<usize> {
        let start = self.tables.get(k.index()).map_or(0, |&s| s as usize);
        start..start + self.graph.table(k).len()
    }

    /// The variable at an edge of the order.
    fn parent(&self, edge: u32) -> VarId {
        VarId(self.graph.edge_variables().get(edge as usize).copied().unwrap_or(UNSEEN))
    }

    /// The variables that were found by nobody, one for each component.
    fn roots(&self) -> impl Iterator<Item = VarId> {
        let roots = self.parents.iter().enumerate().filter(|(_, p)| **p == ROOT);
        roots.map(|(v, _)| VarId(v as u32))
    }

    /// `Σ log ψ` over the factors without variables.
    fn constants(&self) -> Result<Compensated<T>, InferError> {
        let mut sum = Compensated::default();
        for k in self.graph.factor_ids().filter(|&k| self.graph.scope(k).is_empty()) {
            match self.graph.table(k) {
                [c] if *c != T::NEG_INFINITY => sum.add(*c),
                _ => return Err(InferError::ZeroProbability),
            }
        }
        Ok(sum)
    }
}

/// A breadth-first search over the variables.
struct Search<'s> {
    /// The edge through which each variable was found, `ROOT` or `UNSEEN`.
    parents: &'s mut [u32],
    /// The first `found` variables found, of which the first `visited` have been visited.
    queue: &'s mut [u32],
    found: usize,
    visited: usize,
}

impl Search<'_> {
    fn is_unseen(&self, v: u32) -> bool {
        self.parents.get(v as usize) == Some(&UNSEEN)
    }

    fn find(&mut self, v: u32, through: u32) {
        if let (Some(parent), Some(slot)) = (self.parents.get_mut(v as usize), self.queue.get_mut(self.found))
        {
            *parent = through;
            *slot = v;
            self.found += 1;
        }
    }

    /// The next variable to visit and its parent edge.
    fn visit(&mut self) -> Option<(u32, u32)> {
        let v = *self.queue.get(..self.found)?.get(self.visited)?;
        self.visited += 1;
        Some((v, *self.parents.get(v as usize)?))
    }
}
