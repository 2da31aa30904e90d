//! Sum- and max-product on forests: exact `log Z`, marginals and the best assignment of a factor graph
//! without cycles, in time and memory linear in its size.
//!
//! [`Forest::build`] finds an order without recursion, or the factor that closes a cycle; the order then
//! serves [`Forest::sum_product`], [`Forest::log_z`] and [`Forest::max_product`]. "Without cycles" is
//! meant of the graph of variables *and* factors: two factors over the same two variables are a cycle.

use super::chain::{Compensated, Parts, Radix, Rows, Wide, finite, rows, rows_mut};
use crate::error::{InferError, need};
use crate::graph::{FactorGraph, Incidence};
use crate::ids::{FactorId, VarId};
use crate::math::{Real, argmax, maximum};
use crate::table::MAX_SCOPE;
use core::ops::Range;

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
    pub fn build(graph: &FactorGraph<'g, T>, memory: &'m mut [u32]) -> Result<Self, InferError> {
        let (variables, factors, edges) = (graph.variables(), graph.factors(), graph.edges());
        let mut rest = Parts::new(memory, Self::build_len(variables, factors, edges))?;
        let incidence = Incidence::build(graph, rest.take(Incidence::len(variables, edges))?)?;
        let (offsets, tables) = (rest.take(variables + 1)?, rest.take(factors)?);
        let (parents, queue) = (rest.take(variables)?, rest.take(variables)?);
        let order = rest.take(factors)?;
        if edges >= ROOT as usize {
            return Err(InferError::Shape);
        }

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
        let (mut upward, mut placed) = (0usize, 0usize);
        let mut place = order.iter_mut();
        for root in 0..variables as u32 {
            if parents.get(root as usize) != Some(&UNSEEN) {
                continue;
            }
            let (mut head, mut tail) = (0usize, 0usize);
            let found = |v: u32, by: u32, tail: &mut usize, parents: &mut [u32], queue: &mut [u32]| {
                if let (Some(parent), Some(slot)) = (parents.get_mut(v as usize), queue.get_mut(*tail)) {
                    *parent = by;
                    *slot = v;
                    *tail += 1;
                }
            };
            found(root, ROOT, &mut tail, parents, queue);
            while head < tail {
                let v = queue.get(head).copied().unwrap_or(0);
                head += 1;
                let parent = parents.get(v as usize).copied().unwrap_or(ROOT);
                // A factor seen before is the parent: its other visitors found all of its scope.
                for &edge in incidence.edges(VarId(v)).iter().filter(|&&e| e != parent) {
                    let k = incidence.factor(edge);
                    for (e, &w) in graph.edge_range(k).zip(graph.scope(k)) {
                        if e as u32 == edge {
                            continue;
                        }
                        if parents.get(w as usize) != Some(&UNSEEN) {
                            return Err(InferError::Cycle(k));
                        }
                        found(w, e as u32, &mut tail, parents, queue);
                    }
                    if let Some(place) = place.next() {
                        *place = edge;
                        placed += 1;
                    }
                    upward = upward.saturating_add(graph.card(VarId(v)));
                }
            }
        }
        let order = order.get(..placed).unwrap_or(&[]);
        Ok(Self { graph: *graph, incidence, offsets, tables, parents, order, upward })
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

    fn parent(&self, edge: u32) -> VarId {
        VarId(self.graph.edge_variables().get(edge as usize).copied().unwrap_or(UNSEEN))
    }

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

    /// Entries of memory that [`log_z`](Self::log_z) and [`sum_product`](Self::sum_product) need.
    pub fn sum_product_len(&self) -> usize {
        self.marginals_len().saturating_mul(3).saturating_add(self.upward.saturating_mul(4))
    }

    /// `log Z` alone: the upward half of [`sum_product`](Self::sum_product).
    pub fn log_z(&self, memory: &mut [T]) -> Result<T, InferError> {
        let mut m = Messages::new(self, memory)?;
        let log_z = self.constants()?;
        self.climb(&Radix::new(), &mut m, log_z)
    }

    /// `log Z` (returned), `P(x_v)` for each variable into `marginals` (see [`range`](Self::range)) and,
    /// if wanted, `P(x_{C_k})` for each factor into `beliefs` (see [`belief_range`](Self::belief_range)).
    ///
    /// ```text
    /// μ_{k→v}(x_v) = Σ_{x_{C_k} \ x_v} ψ_k(x) Π_{u ∈ C_k \ v} μ_{u→k}(x_u)
    /// μ_{v→k}(x_v) = Π_{j ∋ v, j ≠ k} μ_{j→v}(x_v)
    /// P(x_v) ∝ Π_{k ∋ v} μ_{k→v}(x_v),     P(x_{C_k}) ∝ ψ_k(x) Π_{v ∈ C_k} μ_{v→k}(x_v)
    /// ```
    ///
    /// Source: Kschischang, Frey & Loeliger 2001. Two passes over the order, no stopping rule. Ours
    /// differs in two things. Messages are made of numbers with an exponent of their own, so that they
    /// neither underflow nor lose digits at large scores. And `μ_{v→k}` divides by nothing: the way up
    /// leaves with each factor the product over its later siblings, the way down carries that over
    /// the earlier ones, so a variable in `d` factors costs `O(d)` and `-inf` is an entry like others.
    ///
    /// A variable in no factor is uniform. [`InferError::ZeroProbability`] if every configuration is
    /// forbidden; [`InferError::BadValue`] if `log Z` is too large for `T`. Short memory is noticed
    /// before anything is written; after another error the outputs hold nothing of use.
    pub fn sum_product(
        &self,
        marginals: &mut [T],
        mut beliefs: Option<&mut [T]>,
        memory: &mut [T],
    ) -> Result<T, InferError> {
        let mut outputs = Parts::new(marginals, self.marginals_len())?;
        if let Some(beliefs) = &beliefs {
            need(self.beliefs_len(), beliefs.len())?;
        }
        let mut m = Messages::new(self, memory)?;
        let radix = Radix::new();
        let log_z = self.constants()?;
        let log_z = self.climb(&radix, &mut m, log_z)?;

        let mut above = Column { m: outputs.take(self.marginals_len())?, k: m.above_k };
        above.m.fill(T::one());
        above.k.fill(T::zero());
        let mut walk = Walk::new(Wide::one());
        let mut slot = 0usize;
        for &edge in self.order {
            let local = self.enter(edge, &mut walk);
            let parent = self.range(local.parent);
            let own = slot..slot + parent.len();
            slot = own.end;
            // From the parent: what comes from above it, its earlier children, its later children.
            m.siblings.multiply(&radix, own.clone(), &above, parent.clone());
            above.multiply(&radix, parent, &m.up, own.clone());
            let inputs = Inputs { below: &m.below, parent: &m.siblings, own: own.start };
            let total = inputs.descend(&radix, &local, &mut walk, &mut above)?;
            if let Some(belief) =
                beliefs.as_deref_mut().and_then(|b| b.get_mut(self.belief_range(local.factor)))
            {
                self.enter(edge, &mut walk);
                inputs.belief(&radix, &local, &mut walk, total, belief);
            }
        }
        if let Some(beliefs) = beliefs {
            for k in self.graph.factor_ids().filter(|&k| self.graph.scope(k).is_empty()) {
                beliefs.get_mut(self.belief_range(k)).into_iter().flatten().for_each(|b| *b = T::one());
            }
        }
        let mut rest = (above.m, above.k);
        for &card in self.graph.cards() {
            let (m, k) = (core::mem::take(&mut rest.0), core::mem::take(&mut rest.1));
            let (Some((m, m_rest)), Some((k, k_rest))) =
                (m.split_at_mut_checked(card as usize), k.split_at_mut_checked(card as usize))
            else {
                break;
            };
            rest = (m_rest, k_rest);
            let total = m.iter().zip(k.iter()).fold(Wide::zero(), |s, (&m, &k)| radix.add(s, Wide { m, k }));
            for (m, &k) in m.iter_mut().zip(k.iter()) {
                *m = radix.ratio(Wide { m: *m, k }, total);
            }
        }
        Ok(log_z)
    }

    /// All upward messages, children first. Adds the logarithms taken out of them to `log`, and with the
    /// roots' sums returns `log Z`.
    fn climb(
        &self,
        radix: &Radix<T>,
        m: &mut Messages<'_, T>,
        mut log: Compensated<T>,
    ) -> Result<T, InferError> {
        m.below.m.fill(T::one());
        m.below.k.fill(T::zero());
        let mut walk = Walk::new(Wide::one());
        let mut slot = self.upward;
        for &edge in self.order.iter().rev() {
            let local = self.enter(edge, &mut walk);
            let parent = self.range(local.parent);
            let own = slot.saturating_sub(parent.len())..slot;
            slot = own.start;
            let (Some(up_m), Some(up_k)) = (m.up.m.get_mut(own.clone()), m.up.k.get_mut(own.clone())) else {
                return Err(InferError::Shape);
            };
            let up = Column { m: up_m, k: up_k };
            local.climb(radix, &m.below, &mut walk, up);
            let (Some(up_m), Some(up_k)) = (m.up.m.get(own.clone()), m.up.k.get_mut(own.clone())) else {
                return Err(InferError::Shape);
            };
            let taken = radix.level(up_m, up_k).ok_or(InferError::ZeroProbability)?;
            log.add(taken * radix.log);
            m.siblings.copy(own.clone(), &m.below, parent.clone());
            m.below.multiply(radix, parent, &m.up, own);
        }
        for root in self.roots() {
            let total = self.range(root).fold(Wide::zero(), |sum, i| radix.add(sum, m.below.at(i)));
            if total.is_zero() {
                return Err(InferError::ZeroProbability);
            }
            log.add(total.m.ln());
            log.add(total.k * radix.log);
        }
        finite(log.value())
    }

    /// Entries of memory that [`max_product`](Self::max_product) needs.
    pub fn max_product_len(&self) -> usize {
        let largest = self.graph.cards().iter().copied().max().unwrap_or(0);
        self.marginals_len().saturating_add(largest as usize)
    }

    /// The best assignment (into `labels`, one per variable) and its log-potential. Deterministic: of
    /// equals, a root takes the lowest label and each factor its first configuration.
    ///
    /// The recurrences of [`sum_product`](Self::sum_product) with `max` for `Σ`, in log space, up only;
    /// on the way down each factor's best configuration given its parent is found again in its table,
    /// which is what a back pointer would have said and takes no memory. `labels` is written only if there
    /// is an answer or the value is too large for `T` ([`InferError::BadValue`]).
    ///
    /// ```
    /// use gibbsite_core::{graph::FactorGraph, infer::tree::Forest};
    /// let graph = FactorGraph::new(&[2, 2], &[0, 2, 3], &[0, 1, 1], &[0, 4, 6], &[1.0, 0.0, 0.0, 1.0, 0.0, 0.5]).unwrap();
    /// let mut order = [0; Forest::<f64>::build_len(2, 2, 3)];
    /// let forest = Forest::build(&graph, &mut order)?;
    /// let (mut labels, mut memory) = ([0; 2], [0.0; 6]);
    /// assert_eq!(forest.max_product(&mut labels, &mut memory)?, 1.5);
    /// assert_eq!(labels, [1, 1]);
    /// # Ok::<(), gibbsite_core::error::InferError>(())
    /// ```
    pub fn max_product(&self, labels: &mut [u32], memory: &mut [T]) -> Result<T, InferError> {
        need(self.graph.variables(), labels.len())?;
        let mut rest = Parts::new(memory, self.max_product_len())?;
        let below = rest.take(self.marginals_len())?;
        let message = rest.take(self.max_product_len().saturating_sub(self.marginals_len()))?;
        self.constants()?;
        below.fill(T::zero());
        let mut walk = Walk::new(T::zero());
        for &edge in self.order.iter().rev() {
            let local = self.enter(edge, &mut walk);
            let parent = self.range(local.parent);
            let message = message.get_mut(..parent.len()).unwrap_or(&mut []);
            message.fill(T::NEG_INFINITY);
            local.best(below, &mut walk, None, |x, value, _| {
                if let Some(m) = message.get_mut(x) {
                    *m = m.larger(value);
                }
            });
            let top = maximum(message);
            if top == T::NEG_INFINITY {
                return Err(InferError::ZeroProbability);
            }
            for (b, &m) in below.get_mut(parent).unwrap_or(&mut []).iter_mut().zip(&*message) {
                *b += m - top;
            }
        }
        let of = |v: VarId| below.get(self.range(v)).unwrap_or(&[]);
        if self.roots().any(|root| maximum(of(root)) == T::NEG_INFINITY) {
            return Err(InferError::ZeroProbability);
        }
        for root in self.roots() {
            if let Some(label) = labels.get_mut(root.index()) {
                *label = argmax(of(root)) as u32;
            }
        }
        for &edge in self.order {
            let local = self.enter(edge, &mut walk);
            let at_parent = labels.get(local.parent.index()).copied().unwrap_or(0);
            let mut best = (T::NEG_INFINITY, 0usize);
            local.best(below, &mut walk, Some(at_parent as usize), |_, value, cell| {
                if best.0 < value {
                    best = (value, cell);
                }
            });
            let mut cell = best.1;
            for &v in self.graph.scope(local.factor).iter().rev() {
                let card = self.graph.card(VarId(v)).max(1);
                if let Some(label) = labels.get_mut(v as usize) {
                    *label = (cell % card) as u32;
                }
                cell /= card;
            }
        }
        // Summed anew: the messages were recentred, and this loses less.
        let mut value = Compensated::default();
        for k in self.graph.factor_ids() {
            let cell = self.graph.scope(k).iter().fold(0usize, |cell, &v| {
                cell * self.graph.card(VarId(v)) + labels.get(v as usize).map_or(0, |&l| l as usize)
            });
            value.add(*self.graph.table(k).get(cell).ok_or(InferError::Shape)?);
        }
        finite(value.value())
    }

    /// Looks at a factor from its parent, and sets `walk` to the first configuration of its scope
    /// without the last variable.
    fn enter<P: Copy>(&self, edge: u32, walk: &mut Walk<P>) -> Local<'g, T> {
        let factor = self.incidence.factor(edge);
        let (last, outer) = match self.graph.scope(factor) {
            [outer @ .., last] => (VarId(*last), outer),
            [] => (VarId(UNSEEN), &[] as &[u32]),
        };
        walk.changed = 0;
        walk.len = outer.len();
        for (axis, &v) in walk.axes.iter_mut().zip(outer) {
            *axis =
                Axis { digit: 0, card: self.graph.card(VarId(v)) as u32, base: self.range(VarId(v)).start };
        }
        Local {
            factor,
            table: self.graph.table(factor),
            parent: self.parent(edge),
            at: (edge as usize).saturating_sub(self.graph.edge_range(factor).start),
            last: self.range(last),
        }
    }
}

/// A row of [`Wide`] numbers in two rows of memory.
struct Column<'c, T> {
    m: &'c mut [T],
    k: &'c mut [T],
}

impl<T: Real> Column<'_, T> {
    #[inline]
    fn at(&self, i: usize) -> Wide<T> {
        match (self.m.get(i), self.k.get(i)) {
            (Some(&m), Some(&k)) => Wide { m, k },
            _ => Wide::zero(),
        }
    }

    #[inline]
    fn iter(&self, range: Range<usize>) -> impl Iterator<Item = Wide<T>> {
        let (m, k) = (self.m.get(range.clone()).unwrap_or(&[]), self.k.get(range).unwrap_or(&[]));
        m.iter().zip(k).map(|(&m, &k)| Wide { m, k })
    }

    #[inline]
    fn iter_mut(&mut self, range: Range<usize>) -> impl Iterator<Item = (&mut T, &mut T)> {
        let m = self.m.get_mut(range.clone()).unwrap_or(&mut []);
        m.iter_mut().zip(self.k.get_mut(range).unwrap_or(&mut []))
    }

    #[inline]
    fn add(&mut self, radix: &Radix<T>, i: usize, x: Wide<T>) {
        if let (Some(m), Some(k)) = (self.m.get_mut(i), self.k.get_mut(i)) {
            Wide { m: *m, k: *k } = radix.add(Wide { m: *m, k: *k }, x);
        }
    }

    fn multiply(
        &mut self,
        radix: &Radix<T>,
        range: Range<usize>,
        by: &Column<'_, T>,
        by_range: Range<usize>,
    ) {
        for ((m, k), x) in self.iter_mut(range).zip(by.iter(by_range)) {
            Wide { m: *m, k: *k } = radix.mul(Wide { m: *m, k: *k }, x);
        }
    }

    fn copy(&mut self, range: Range<usize>, from: &Column<'_, T>, from_range: Range<usize>) {
        for ((m, k), x) in self.iter_mut(range).zip(from.iter(from_range)) {
            Wide { m: *m, k: *k } = x;
        }
    }

    fn clear(&mut self, range: Range<usize>) {
        for (m, k) in self.iter_mut(range) {
            Wide { m: *m, k: *k } = Wide::zero();
        }
    }
}

/// The memory of a sum-product.
struct Messages<'s, T> {
    /// For each variable, the product of the messages from its children.
    below: Column<'s, T>,
    /// For each factor, the message to its parent.
    up: Column<'s, T>,
    /// For each factor, first the product of its later siblings' messages, then what its parent says.
    siblings: Column<'s, T>,
    /// Exponents of the products from above; their mantissas lie in the output.
    above_k: &'s mut [T],
}

impl<'s, T: Real> Messages<'s, T> {
    fn new(forest: &Forest<'_, '_, T>, memory: &'s mut [T]) -> Result<Self, InferError> {
        let (labels, upward) = (forest.marginals_len(), forest.upward);
        let mut rest = Parts::new(memory, forest.sum_product_len())?;
        let mut column = |len| Ok::<_, InferError>(Column { m: rest.take(len)?, k: rest.take(len)? });
        let (below, up, siblings) = (column(labels)?, column(upward)?, column(upward)?);
        Ok(Self { below, up, siblings, above_k: rest.take(labels)? })
    }
}

#[derive(Clone, Copy)]
struct Axis {
    digit: u32,
    card: u32,
    /// Where the variable's entries begin in an array over all variables' labels.
    base: usize,
}

/// Steps through the configurations of a scope but its last variable, and keeps the products of what
/// comes in from the first variables, so that a step computes only what changed.
struct Walk<P> {
    axes: [Axis; MAX_SCOPE],
    /// `prefix[i]`: product over the first `i` axes.
    prefix: [P; MAX_SCOPE],
    len: usize,
    changed: usize,
}

impl<P: Copy> Walk<P> {
    fn new(neutral: P) -> Self {
        let axis = Axis { digit: 0, card: 1, base: 0 };
        Self { axes: [axis; MAX_SCOPE], prefix: [neutral; MAX_SCOPE], len: 0, changed: 0 }
    }

    fn axes(&self) -> &[Axis] {
        self.axes.get(..self.len).unwrap_or(&[])
    }

    fn digit(&self, axis: usize) -> usize {
        self.axes.get(axis).map_or(0, |a| a.digit as usize)
    }

    /// The product over all axes at the present configuration; `times(product, axis number, axis)`.
    #[inline]
    fn product(&mut self, neutral: P, times: impl Fn(P, usize, &Axis) -> P) -> P {
        let mut product = self.prefix.get(self.changed).copied().unwrap_or(neutral);
        let axes = self.axes.iter().enumerate().take(self.len).skip(self.changed);
        for ((i, axis), slot) in axes.zip(self.prefix.iter_mut().skip(self.changed + 1)) {
            product = times(product, i, axis);
            *slot = product;
        }
        product
    }

    #[inline]
    fn step(&mut self) {
        let axes = self.axes.get_mut(..self.len).unwrap_or(&mut []);
        for (i, axis) in axes.iter_mut().enumerate().rev() {
            self.changed = i;
            axis.digit += 1;
            if axis.digit < axis.card {
                return;
            }
            axis.digit = 0;
        }
    }
}

/// A factor as seen from its parent.
struct Local<'g, T> {
    factor: FactorId,
    table: &'g [T],
    parent: VarId,
    /// Position of the parent in the scope.
    at: usize,
    /// Entries of the scope's last variable, which the rows of the table run over.
    last: Range<usize>,
}

impl<'g, T: Real> Local<'g, T> {
    fn rows(&self) -> Rows<&'g [T]> {
        rows(self.table, self.last.len())
    }

    /// The message to the parent.
    fn climb(
        &self,
        radix: &Radix<T>,
        below: &Column<'_, T>,
        walk: &mut Walk<Wide<T>>,
        mut up: Column<'_, T>,
    ) {
        let all = 0..up.m.len();
        up.clear(all.clone());
        let to_last = self.at == walk.len;
        for row in self.rows() {
            let outer = walk.product(Wide::one(), |p, i, axis| {
                if i == self.at { p } else { radix.mul(p, below.at(axis.base + axis.digit as usize)) }
            });
            if to_last {
                for ((m, k), &log) in up.iter_mut(all.clone()).zip(row) {
                    let term = radix.mul(outer, radix.exp(log));
                    Wide { m: *m, k: *k } = radix.add(Wide { m: *m, k: *k }, term);
                }
            } else {
                let terms =
                    below.iter(self.last.clone()).zip(row).map(|(b, &log)| radix.mul(b, radix.exp(log)));
                let sum = terms.fold(Wide::zero(), |a, b| radix.add(a, b));
                up.add(radix, walk.digit(self.at), radix.mul(outer, sum));
            }
            walk.step();
        }
    }

    /// Shows `see` each configuration (of those that have the parent at `only`): the parent's label, the
    /// value with what comes from below, the position in the table.
    fn best(
        &self,
        below: &[T],
        walk: &mut Walk<T>,
        only: Option<usize>,
        mut see: impl FnMut(usize, T, usize),
    ) {
        let to_last = self.at == walk.len;
        let at = |i: usize| below.get(i).copied().unwrap_or(T::NEG_INFINITY);
        let mut cell = 0usize;
        for row in self.rows() {
            let outer = walk.product(T::zero(), |p, i, axis| {
                if i == self.at { p } else { p + at(axis.base + axis.digit as usize) }
            });
            let wanted = |x: usize| only.is_none_or(|o| o == x);
            let x = walk.digit(self.at);
            if to_last {
                for (x, &log) in row.iter().enumerate().filter(|(x, _)| wanted(*x)) {
                    see(x, outer + log, cell + x);
                }
            } else if wanted(x) {
                let last = below.get(self.last.clone()).unwrap_or(&[]);
                for (j, (&log, &b)) in row.iter().zip(last).enumerate() {
                    see(x, outer + (log + b), cell + j);
                }
            }
            cell += row.len();
            walk.step();
        }
    }
}

/// All that comes into a factor.
struct Inputs<'s, 'c, T> {
    below: &'s Column<'c, T>,
    parent: &'s Column<'c, T>,
    /// Where the parent's message begins.
    own: usize,
}

impl<T: Real> Inputs<'_, '_, T> {
    #[inline]
    fn at(&self, local: &Local<'_, T>, i: usize, axis: &Axis) -> Wide<T> {
        let digit = axis.digit as usize;
        if i == local.at { self.parent.at(self.own + digit) } else { self.below.at(axis.base + digit) }
    }

    #[inline]
    fn last(&self, local: &Local<'_, T>, to_last: bool) -> impl Iterator<Item = Wide<T>> {
        match to_last {
            true => self.parent.iter(self.own..self.own + local.last.len()),
            false => self.below.iter(local.last.clone()),
        }
    }

    /// The messages to all children, into `above`; returns the sum over the factor.
    fn descend(
        &self,
        radix: &Radix<T>,
        local: &Local<'_, T>,
        walk: &mut Walk<Wide<T>>,
        above: &mut Column<'_, T>,
    ) -> Result<Wide<T>, InferError> {
        let to_last = local.at == walk.len;
        for (_, axis) in walk.axes().iter().enumerate().filter(|(i, _)| *i != local.at) {
            above.clear(axis.base..axis.base + axis.card as usize);
        }
        if !to_last {
            above.clear(local.last.clone());
        }
        let mut total = Wide::zero();
        for row in local.rows() {
            let outer = walk.product(Wide::one(), |p, i, axis| radix.mul(p, self.at(local, i, axis)));
            let mut rest = Wide::zero();
            if to_last {
                for (&log, b) in row.iter().zip(self.last(local, true)) {
                    rest = radix.add(rest, radix.mul(radix.exp(log), b));
                }
            } else {
                let inputs = row.iter().zip(self.last(local, false));
                for ((&log, b), (m, k)) in inputs.zip(above.iter_mut(local.last.clone())) {
                    let potential = radix.exp(log);
                    rest = radix.add(rest, radix.mul(potential, b));
                    Wide { m: *m, k: *k } = radix.add(Wide { m: *m, k: *k }, radix.mul(outer, potential));
                }
            }
            total = radix.add(total, radix.mul(outer, rest));
            // From the last outer variable to the first, `rest` gathers all that is not in the prefix.
            for ((i, axis), &prefix) in walk.axes().iter().enumerate().zip(&walk.prefix).rev() {
                if i != local.at {
                    above.add(radix, axis.base + axis.digit as usize, radix.mul(prefix, rest));
                }
                rest = radix.mul(rest, self.at(local, i, axis));
            }
            walk.step();
        }
        let level = |range: Range<usize>, above: &mut Column<'_, T>| {
            let (m, k) =
                (above.m.get(range.clone()).unwrap_or(&[]), above.k.get_mut(range).unwrap_or(&mut []));
            radix.level(m, k).map(|_| ()).ok_or(InferError::ZeroProbability)
        };
        for (_, axis) in walk.axes().iter().enumerate().filter(|(i, _)| *i != local.at) {
            level(axis.base..axis.base + axis.card as usize, above)?;
        }
        if !to_last {
            level(local.last.clone(), above)?;
        }
        Ok(total)
    }

    /// The factor's marginal, given the sum over it.
    fn belief(
        &self,
        radix: &Radix<T>,
        local: &Local<'_, T>,
        walk: &mut Walk<Wide<T>>,
        total: Wide<T>,
        out: &mut [T],
    ) {
        let to_last = local.at == walk.len;
        for (row, out) in local.rows().zip(rows_mut(out, local.last.len())) {
            let outer = walk.product(Wide::one(), |p, i, axis| radix.mul(p, self.at(local, i, axis)));
            for ((&log, b), o) in row.iter().zip(self.last(local, to_last)).zip(out) {
                *o = radix.ratio(radix.mul(outer, radix.mul(radix.exp(log), b)), total);
            }
            walk.step();
        }
    }
}
