//! [`Network`]: an owned discrete factor graph; [`Evidence`] on it, and what is left after it ([`Reduced`]).
//!
//! The arrays lie as [`FactorGraph`] wants them. Every change is checked where it is made, so a network
//! is correct by construction and [`Network::graph`] finds nothing wrong with it.

mod reduce;

pub use reduce::{Evidence, EvidenceError, Reduced};

use gibbsite_core::error::GraphError;
use gibbsite_core::graph::FactorGraph;
use gibbsite_core::ids::{FactorId, VarId};
use gibbsite_core::score::Score;
use gibbsite_core::table::MAX_SCOPE;

/// An owned discrete factor graph, `P(x) ∝ Π_k ψ_k(x_{C_k})`; the tables hold `log ψ`.
///
/// ```
/// use gibbsite::data::network::Network;
/// let mut network = Network::with_cards([2, 3])?;
/// // The last variable of the scope varies fastest.
/// network.push_factor(&[0, 1], [0.0, 0.1, 0.2, 1.0, 1.1, 1.2])?;
/// network.push_factor(&[1], [0.0, 0.0, f64::NEG_INFINITY])?;
/// assert_eq!(network.graph()?.factors(), 2);
/// assert_eq!(network.log_potential(&[1, 1]), Some(1.1));
/// # Ok::<(), gibbsite_core::error::GraphError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    cards: Vec<u32>,
    scope_start: Vec<u32>,
    scope: Vec<u32>,
    table_start: Vec<u32>,
    values: Vec<f64>,
}

impl Default for Network {
    fn default() -> Self {
        Self::new()
    }
}

impl Network {
    /// No variables and no factors.
    pub fn new() -> Self {
        Self { cards: vec![], scope_start: vec![0], scope: vec![], table_start: vec![0], values: vec![] }
    }

    /// Variables of these arities and no factors.
    ///
    /// # Errors
    /// [`GraphError::ArityZero`], or [`GraphError::TooLarge`] for more variables than 32 bits count.
    pub fn with_cards(cards: impl Into<Vec<u32>>) -> Result<Self, GraphError> {
        let cards = cards.into();
        if cards.len() > u32::MAX as usize {
            return Err(GraphError::TooLarge);
        }
        match cards.iter().position(|&c| c == 0) {
            Some(v) => Err(GraphError::ArityZero(VarId(v as u32))),
            None => Ok(Self { cards, ..Self::new() }),
        }
    }

    /// Makes room for factors with these sums of scope lengths and table lengths.
    pub fn reserve(&mut self, factors: usize, edges: usize, entries: usize) {
        self.scope_start.reserve(factors);
        self.table_start.reserve(factors);
        self.scope.reserve(edges);
        self.values.reserve(entries);
    }

    /// Appends a factor: its variables, the last varying fastest, and one log-potential per
    /// configuration. An empty scope with one value is a constant. On an error nothing changes.
    ///
    /// # Errors
    /// A [`GraphError`] that names the new factor: an unknown or repeated variable, more than
    /// [`MAX_SCOPE`] variables, a wrong number of values, NaN or `+inf`, or more than 32 bits count.
    pub fn push_factor(
        &mut self,
        scope: &[u32],
        values: impl IntoIterator<Item = f64>,
    ) -> Result<FactorId, GraphError> {
        let k = FactorId(u32::try_from(self.factors()).map_err(|_| GraphError::TooLarge)?);
        if scope.len() > MAX_SCOPE {
            return Err(GraphError::ScopeTooLong(k));
        }
        let mut size = 1usize;
        for (i, &v) in scope.iter().enumerate() {
            let &card = self.cards.get(v as usize).ok_or(GraphError::NoSuchVariable(k, VarId(v)))?;
            if scope.iter().take(i).any(|&u| u == v) {
                return Err(GraphError::RepeatedVariable(k, VarId(v)));
            }
            size = size.checked_mul(card as usize).ok_or(GraphError::TooLarge)?;
        }
        let before = self.values.len();
        let scope_end = offset(self.scope.len(), scope.len())?;
        let table_end = offset(before, size)?;
        // One more than needed tells a table that is too long, also from an endless iterator.
        self.values.extend(values.into_iter().take(size.saturating_add(1)));
        let table = self.values.get(before..).unwrap_or(&[]);
        let fault = if table.len() != size {
            Some(GraphError::TableLength(k))
        } else if !table.iter().all(|v| v.is_log_potential()) {
            Some(GraphError::BadValue(k))
        } else {
            None
        };
        if let Some(fault) = fault {
            self.values.truncate(before);
            return Err(fault);
        }
        self.scope.extend_from_slice(scope);
        self.scope_start.push(scope_end);
        self.table_start.push(table_end);
        Ok(k)
    }

    /// The network as core's checked view. The check reads everything once: ask once and keep the view.
    ///
    /// # Errors
    /// None in practice, as a network is correct by construction; the `Result` spares a panic here.
    pub fn graph(&self) -> Result<FactorGraph<'_, f64>, GraphError> {
        FactorGraph::new(&self.cards, &self.scope_start, &self.scope, &self.table_start, &self.values)
    }

    /// `Σ_k log ψ_k` at an assignment, or `None` if it does not have one label in range per variable.
    pub fn log_potential(&self, labels: &[u32]) -> Option<f64> {
        if labels.len() != self.cards.len() || self.cards.iter().zip(labels).any(|(c, l)| l >= c) {
            return None;
        }
        (0..self.factors()).try_fold(0.0, |sum, k| {
            let mut at = 0usize;
            for &v in self.scope(k) {
                at = at * *self.cards.get(v as usize)? as usize + *labels.get(v as usize)? as usize;
            }
            Some(sum + self.table(k).get(at)?)
        })
    }

    /// How many variables there are.
    pub fn variables(&self) -> usize {
        self.cards.len()
    }

    /// How many factors there are.
    pub fn factors(&self) -> usize {
        self.scope_start.len().saturating_sub(1)
    }

    /// Sum of all scope lengths.
    pub fn edges(&self) -> usize {
        self.scope.len()
    }

    /// Sum of all table lengths.
    pub fn entries(&self) -> usize {
        self.values.len()
    }

    /// Arity of each variable.
    pub fn cards(&self) -> &[u32] {
        &self.cards
    }

    /// Variables of a factor, the last varies fastest; empty if there is no such factor.
    pub fn scope(&self, factor: usize) -> &[u32] {
        self.scope.get(range(&self.scope_start, factor)).unwrap_or(&[])
    }

    /// Log-potentials of a factor; empty if there is no such factor.
    pub fn table(&self, factor: usize) -> &[f64] {
        self.values.get(range(&self.table_start, factor)).unwrap_or(&[])
    }
}

/// `start + len` as an offset of the flat arrays.
fn offset(start: usize, len: usize) -> Result<u32, GraphError> {
    start.checked_add(len).and_then(|end| u32::try_from(end).ok()).ok_or(GraphError::TooLarge)
}

fn range(starts: &[u32], i: usize) -> std::ops::Range<usize> {
    match (starts.get(i), starts.get(i.saturating_add(1))) {
        (Some(&a), Some(&b)) => a as usize..b as usize,
        _ => 0..0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_factor_leaves_no_trace() {
        let mut network = Network::with_cards([2, 3]).unwrap();
        network.push_factor(&[1], [0.0; 3]).unwrap();
        let before = network.clone();
        let k = FactorId(1);
        let endless = std::iter::repeat(0.0);
        assert_eq!(network.push_factor(&[0, 1], endless), Err(GraphError::TableLength(k)));
        assert_eq!(network.push_factor(&[0], [0.0]), Err(GraphError::TableLength(k)));
        assert_eq!(network.push_factor(&[0], [0.0, f64::NAN]), Err(GraphError::BadValue(k)));
        assert_eq!(network.push_factor(&[0], [0.0, f64::INFINITY]), Err(GraphError::BadValue(k)));
        assert_eq!(network.push_factor(&[2], [0.0; 2]), Err(GraphError::NoSuchVariable(k, VarId(2))));
        assert_eq!(network.push_factor(&[0, 0], [0.0; 4]), Err(GraphError::RepeatedVariable(k, VarId(0))));
        assert_eq!(network.push_factor(&[0; 33], [0.0; 4]), Err(GraphError::ScopeTooLong(k)));
        assert_eq!(network, before);
        assert!(network.graph().is_ok());
    }

    #[test]
    fn variables_have_values() {
        assert_eq!(Network::with_cards([2, 0]), Err(GraphError::ArityZero(VarId(1))));
        assert_eq!(Network::new().log_potential(&[]), Some(0.0));
        assert_eq!(Network::with_cards([2]).unwrap().log_potential(&[2]), None);
        assert_eq!(Network::with_cards([2]).unwrap().log_potential(&[0, 0]), None);
    }
}
