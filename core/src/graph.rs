//! [`FactorGraph`]: a checked view over flat arrays, and [`Incidence`], which turns it around.
//!
//! A graph is `P(x) = 1/Z Π_k ψ_k(x_{C_k})` (Thesis eq. 1.2). The tables hold `log ψ`. Everything is
//! checked once in [`FactorGraph::new`]; the views given out afterwards cannot fail.

use crate::error::GraphError;
use crate::ids::{FactorId, VarId};
use crate::score::Score;
use crate::table::MAX_SCOPE;

/// A discrete factor graph over borrowed flat arrays.
///
/// | array | length | meaning |
/// | --- | --- | --- |
/// | `cards` | variables | arity of each variable |
/// | `scope_start` | factors + 1 | where each factor's scope begins in `scope` |
/// | `scope` | sum of scope lengths | variables of each factor, the last one varies fastest in its table |
/// | `table_start` | factors + 1 | where each factor's table begins in `values` |
/// | `values` | sum of table lengths | `log ψ`; `-inf` forbids a configuration |
///
/// A factor with an empty scope and one entry is a constant.
///
/// ```
/// use gibbsite_core::graph::FactorGraph;
/// use gibbsite_core::ids::FactorId;
/// // ψ0(x0, x1) prefers equal values; ψ1(x1) prefers 1.
/// let g = FactorGraph::new(&[2, 2], &[0, 2, 3], &[0, 1, 1], &[0, 4, 6], &[1.0, 0.0, 0.0, 1.0, 0.0, 0.5])?;
/// assert_eq!(g.factors(), 2);
/// assert_eq!(g.table(FactorId(1)), &[0.0, 0.5]);
/// # Ok::<(), gibbsite_core::error::GraphError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FactorGraph<'a, T> {
    cards: &'a [u32],
    scope_start: &'a [u32],
    scope: &'a [u32],
    table_start: &'a [u32],
    values: &'a [T],
}

impl<'a, T: Score> FactorGraph<'a, T> {
    /// Checks the arrays and gives the view. The checks run in the order of [`GraphError`]'s meaning:
    /// arities, offsets, then each factor's scope and table.
    // Inlined, here and in the makers of other large views: what is returned by value lies on the stack twice.
    #[inline(always)]
    pub fn new(
        cards: &'a [u32],
        scope_start: &'a [u32],
        scope: &'a [u32],
        table_start: &'a [u32],
        values: &'a [T],
    ) -> Result<Self, GraphError> {
        let graph = Self { cards, scope_start, scope, table_start, values };
        graph.check()?;
        Ok(graph)
    }

    #[inline(never)]
    fn check(&self) -> Result<(), GraphError> {
        let Self { cards, scope_start, scope, table_start, values } = *self;
        if cards.len() > u32::MAX as usize {
            return Err(GraphError::TooLarge);
        }
        if let Some(v) = cards.iter().position(|&c| c == 0) {
            return Err(GraphError::ArityZero(VarId(v as u32)));
        }
        if scope_start.len() != table_start.len() {
            return Err(GraphError::Offsets);
        }
        divides(scope_start, scope.len())?;
        divides(table_start, values.len())?;
        for k in self.factor_ids() {
            let scope = self.scope(k);
            if scope.len() > MAX_SCOPE {
                return Err(GraphError::ScopeTooLong(k));
            }
            let mut size: usize = 1;
            for (i, &v) in scope.iter().enumerate() {
                let card = cards.get(v as usize).ok_or(GraphError::NoSuchVariable(k, VarId(v)))?;
                if scope.iter().take(i).any(|&u| u == v) {
                    return Err(GraphError::RepeatedVariable(k, VarId(v)));
                }
                size = size.checked_mul(*card as usize).ok_or(GraphError::TableLength(k))?;
            }
            let table = self.table(k);
            if table.len() != size {
                return Err(GraphError::TableLength(k));
            }
            if !table.iter().all(|v| v.is_log_potential()) {
                return Err(GraphError::BadValue(k));
            }
        }
        Ok(())
    }

    /// How many variables there are.
    #[inline]
    pub fn variables(&self) -> usize {
        self.cards.len()
    }

    /// How many factors there are.
    #[inline]
    pub fn factors(&self) -> usize {
        self.scope_start.len().saturating_sub(1)
    }

    /// Sum of all scope lengths: the number of variable-factor edges.
    #[inline]
    pub fn edges(&self) -> usize {
        self.scope.len()
    }

    /// All factors in order.
    pub fn factor_ids(&self) -> impl DoubleEndedIterator<Item = FactorId> + ExactSizeIterator + use<T> {
        (0..self.factors() as u32).map(FactorId)
    }

    /// Arity of each variable.
    #[inline]
    pub fn cards(&self) -> &'a [u32] {
        self.cards
    }

    /// Arity of one variable; 0 if there is no such variable.
    #[inline]
    pub fn card(&self, v: VarId) -> usize {
        self.cards.get(v.index()).map_or(0, |&c| c as usize)
    }

    /// Variables of a factor, the last varies fastest; empty if there is no such factor.
    #[inline]
    pub fn scope(&self, k: FactorId) -> &'a [u32] {
        self.scope.get(self.edge_range(k)).unwrap_or(&[])
    }

    /// Positions of a factor's scope in the array of all edges; empty if there is no such factor.
    #[inline]
    pub fn edge_range(&self, k: FactorId) -> core::ops::Range<usize> {
        range(self.scope_start, k.index())
    }

    /// The variable at each edge: all scopes, one after the other.
    #[inline]
    pub fn edge_variables(&self) -> &'a [u32] {
        self.scope
    }

    /// Log-potentials of a factor; empty if there is no such factor.
    #[inline]
    pub fn table(&self, k: FactorId) -> &'a [T] {
        self.values.get(range(self.table_start, k.index())).unwrap_or(&[])
    }

    /// `Σ_k log ψ_k` at a full assignment, or `None` if it is too short or a label is out of range.
    ///
    /// ```
    /// # use gibbsite_core::graph::FactorGraph;
    /// let g = FactorGraph::new(&[2, 2], &[0, 2], &[0, 1], &[0, 4], &[0.0, 1.0, 2.0, 3.0])?;
    /// assert_eq!(g.log_potential(&[1, 0]), Some(2.0));
    /// assert_eq!(g.log_potential(&[2, 0]), None);
    /// # Ok::<(), gibbsite_core::error::GraphError>(())
    /// ```
    #[inline(never)]
    pub fn log_potential(&self, labels: &[u32]) -> Option<T::Total> {
        let mut sum = T::Total::default();
        for k in self.factor_ids() {
            let mut at = 0usize;
            for &v in self.scope(k) {
                let (&label, &card) = (labels.get(v as usize)?, self.cards.get(v as usize)?);
                if label >= card {
                    return None;
                }
                at = at * card as usize + label as usize;
            }
            self.table(k).get(at)?.add_to(&mut sum);
        }
        let labels_ok = labels.len() >= self.cards.len() && self.cards.iter().zip(labels).all(|(c, l)| l < c);
        labels_ok.then_some(sum)
    }
}

fn range(starts: &[u32], i: usize) -> core::ops::Range<usize> {
    match (starts.get(i), starts.get(i + 1)) {
        (Some(&a), Some(&b)) => a as usize..b as usize,
        _ => 0..0,
    }
}

fn divides(starts: &[u32], len: usize) -> Result<(), GraphError> {
    let ends_right = starts.first() == Some(&0) && starts.last().is_some_and(|&e| e as usize == len);
    let rises = starts.iter().zip(starts.iter().skip(1)).all(|(a, b)| a <= b);
    if len > u32::MAX as usize {
        Err(GraphError::TooLarge)
    } else if ends_right && rises {
        Ok(())
    } else {
        Err(GraphError::Offsets)
    }
}

/// Which edges touch each variable: the graph seen from its variables. Built into caller memory.
///
/// An *edge* is a position in [`FactorGraph::edge_variables`]; [`Incidence::factor`] says whose it is.
///
/// ```
/// # use gibbsite_core::graph::{FactorGraph, Incidence};
/// # use gibbsite_core::ids::VarId;
/// let g = FactorGraph::new(&[2, 2], &[0, 2, 3], &[0, 1, 1], &[0, 4, 6], &[0.0f32; 6])?;
/// let mut memory = [0u32; 16];
/// let inc = Incidence::build(&g, &mut memory).unwrap();
/// assert_eq!(inc.edges(VarId(1)), &[1, 2]);
/// assert_eq!(inc.factor(2).0, 1);
/// # Ok::<(), gibbsite_core::error::GraphError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Incidence<'m> {
    start: &'m [u32],
    edges: &'m [u32],
    factor: &'m [u32],
}

impl<'m> Incidence<'m> {
    /// Of a graph without edges.
    pub(crate) const NONE: Self = Self { start: &[], edges: &[], factor: &[] };

    /// `u32` entries that [`build`](Self::build) needs for a graph of this size.
    pub const fn len(variables: usize, edges: usize) -> usize {
        variables + 1 + 2 * edges
    }

    /// Counts and sorts the edges by variable.
    #[inline(always)]
    pub fn build<T: Score>(
        graph: &FactorGraph<'_, T>,
        memory: &'m mut [u32],
    ) -> Result<Self, crate::error::InferError> {
        let (n, m) = (graph.variables(), graph.edges());
        let needed = Self::len(n, m);
        let given = memory.len();
        crate::error::need(needed, given)?;
        let short = crate::error::InferError::Memory { needed, given };
        let (start, rest) = memory.split_at_mut_checked(n + 1).ok_or(short)?;
        let (edges, rest) = rest.split_at_mut_checked(m).ok_or(short)?;
        let factor = rest.get_mut(..m).ok_or(short)?;
        Self::fill(graph, start, edges, factor);
        Ok(Self { start, edges, factor })
    }

    #[inline(never)]
    fn fill<T: Score>(graph: &FactorGraph<'_, T>, start: &mut [u32], edges: &mut [u32], factor: &mut [u32]) {
        start.fill(0);
        for &v in graph.edge_variables() {
            if let Some(s) = start.get_mut(v as usize) {
                *s += 1;
            }
        }
        let mut total = 0;
        for s in start.iter_mut() {
            total += *s;
            *s = total;
        }
        // Filling from the back leaves `start` at each variable's first edge and keeps edges ascending.
        for k in graph.factor_ids().rev() {
            for e in graph.edge_range(k).rev() {
                if let Some(f) = factor.get_mut(e) {
                    *f = k.0;
                }
                let v = graph.edge_variables().get(e).map_or(0, |&v| v as usize);
                if let Some(s) = start.get_mut(v) {
                    *s = s.saturating_sub(1);
                    if let Some(slot) = edges.get_mut(*s as usize) {
                        *slot = e as u32;
                    }
                }
            }
        }
    }

    /// Edges of a variable, ascending.
    #[inline]
    pub fn edges(&self, v: VarId) -> &'m [u32] {
        self.edges.get(range(self.start, v.index())).unwrap_or(&[])
    }

    /// The factor that an edge belongs to.
    #[inline]
    pub fn factor(&self, edge: u32) -> FactorId {
        FactorId(self.factor.get(edge as usize).copied().unwrap_or(u32::MAX))
    }
}
