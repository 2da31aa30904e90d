//! How the arrays of message passing and sampling are sized, and where in them things lie.

use crate::error::InferError;
use crate::graph::{FactorGraph, Incidence};
use crate::ids::VarId;
use crate::score::Score;
use core::ops::Range;

/// An array does not have the length that was checked at the entry.
pub(super) const LOST: InferError = InferError::Shape;

/// Largest finite log-potential, in magnitude, that message passing takes: sums of messages then stay
/// far from overflow in `f32` too.
pub const LARGEST_ENTRY: f64 = 1e18;

/// The sizes of a graph that decide how much memory message passing needs.
///
/// ```
/// use gibbsite_core::{graph::FactorGraph, infer::loopy::Dimensions};
/// let g = FactorGraph::new(&[2, 3], &[0, 2], &[0, 1], &[0, 6], &[0.0f32; 6])?;
/// let d = Dimensions::of(&g);
/// assert_eq!((d.labels, d.messages, d.largest), (5, 5, 6));
/// # Ok::<(), gibbsite_core::error::GraphError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dimensions {
    /// Variables.
    pub variables: usize,
    /// Factors.
    pub factors: usize,
    /// Sum of all scope lengths.
    pub edges: usize,
    /// Sum of all arities.
    pub labels: usize,
    /// Largest arity.
    pub arity: usize,
    /// Sum over the edges of the variable's arity.
    pub messages: usize,
    /// Largest sum of arities in one scope.
    pub widest: usize,
    /// Entries of the largest table.
    pub largest: usize,
}

impl Dimensions {
    /// Measures a graph.
    #[inline(never)]
    pub fn of<T: Score>(graph: &FactorGraph<'_, T>) -> Self {
        let mut d = Self {
            variables: graph.variables(),
            factors: graph.factors(),
            edges: graph.edges(),
            ..Self::default()
        };
        for &card in graph.cards() {
            d.labels = d.labels.saturating_add(card as usize);
            d.arity = d.arity.max(card as usize);
        }
        for k in graph.factor_ids() {
            let width = graph.scope(k).iter().fold(0usize, |w, &v| w.saturating_add(graph.card(VarId(v))));
            d.messages = d.messages.saturating_add(width);
            d.widest = d.widest.max(width);
            d.largest = d.largest.max(graph.table(k).len());
        }
        d
    }

    /// `u32` entries of [`Messages`].
    pub(super) const fn message_words(&self) -> usize {
        let starts = self.variables.saturating_add(self.edges).saturating_add(2);
        Incidence::len(self.variables, self.edges).saturating_add(starts)
    }

    /// Real entries of [`Messages`] without factor weights.
    pub(super) const fn message_reals(&self) -> usize {
        let twice = self.labels.saturating_add(self.largest).saturating_mul(2);
        let widths = self.widest.saturating_mul(3);
        self.messages.saturating_add(twice).saturating_add(widths).saturating_add(self.arity)
    }
}

/// All finite entries are within ±[`LARGEST_ENTRY`].
#[inline(never)]
pub(super) fn check_entries<T: Score>(graph: &FactorGraph<'_, T>) -> Result<(), InferError> {
    if graph.factor_ids().all(|k| graph.table(k).iter().all(|x| x.is_moderate())) {
        Ok(())
    } else {
        Err(InferError::BadValue)
    }
}

/// Running sums of `lengths`, from 0.
pub(super) fn starts(into: &mut [u32], lengths: impl Iterator<Item = u32>) {
    let mut total = 0u32;
    let mut lengths = lengths;
    for s in into {
        *s = total;
        total = total.wrapping_add(lengths.next().unwrap_or(0));
    }
}

pub(super) fn span(starts: &[u32], i: usize) -> Range<usize> {
    match (starts.get(i), starts.get(i + 1)) {
        (Some(&a), Some(&b)) => a as usize..b as usize,
        _ => 0..0,
    }
}
