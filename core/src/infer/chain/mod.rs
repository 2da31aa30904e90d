//! Linear chains: `log Z`, marginals, the best labelling and the N best ones.
//!
//! A chain of `T` positions with `L` labels each scores a labelling `y` by
//! `score(y) = Σ_t s_t(y_t) + Σ_t A_t(y_t, y_{t+1})`, and `P(y) = e^{score(y)} / Z`. [`Chain`] is the
//! checked view of `s` and `A`; all work happens in memory that the caller brings.
//!
//! | file | what |
//! | --- | --- |
//! | `mod` | the view, its checks, the score of a labelling |
//! | `forward_backward` | `log Z` and marginals: the two passes |
//! | `expect` | expected counts of many chains with the same transitions |
//! | `pass` | what the two passes work on |
//! | `steps`, `steps_wide` | one step of those passes, in plain and in wide numbers |
//! | `row`, `gap` | rows of `α` and `β`; exponentiated scores |
//! | `viterbi` | the best labelling |
//! | `n_best` | the N best labellings |

mod expect;
mod forward_backward;
mod gap;
mod n_best;
mod pass;
mod row;
mod steps;
mod steps_wide;
mod viterbi;

pub use expect::Shared;

use crate::arena::{Rows, rows};
use crate::error::InferError;
use crate::math::{Real, are_log_potentials, maximum};
use crate::wide::Compensated;

/// Log scores of going from a label (row) to the next position's label (column).
#[derive(Clone, Copy, Debug)]
pub enum Transitions<'a, T> {
    /// One `L×L` table for every gap.
    Shared(&'a [T]),
    /// `T - 1` tables of `L×L`, one for each gap, in order.
    Each(&'a [T]),
}

impl<'a, T> Transitions<'a, T> {
    /// The table between positions `gap` and `gap + 1`.
    #[inline]
    fn table(&self, gap: usize, cells: usize) -> &'a [T] {
        match self {
            Self::Shared(table) => table,
            Self::Each(tables) => {
                let at = gap.saturating_mul(cells);
                tables.get(at..at.saturating_add(cells)).unwrap_or(&[])
            }
        }
    }
}

/// A checked linear chain over borrowed scores.
///
/// ```
/// use gibbsite_core::infer::chain::{Chain, Transitions};
/// // Two positions, two labels; staying is worth 1.
/// let chain = Chain::new(2, &[0.5, 0.0, 0.0, 0.0], Transitions::Shared(&[1.0, 0.0, 0.0, 1.0]))?;
/// let (mut singles, mut memory) = ([0.0f64; 4], [0.0; 64]);
/// let log_z = chain.forward_backward(&mut singles, None, &mut memory)?;
/// let z = 1.5f64.exp() + 0.5f64.exp() + 0f64.exp() + 1f64.exp();
/// assert!((log_z - z.ln()).abs() < 1e-14);
/// assert!((singles[0] - (1.5f64.exp() + 0.5f64.exp()) / z).abs() < 1e-14);
/// # Ok::<(), gibbsite_core::error::InferError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Chain<'a, T> {
    labels: usize,
    positions: usize,
    states: &'a [T],
    transitions: Transitions<'a, T>,
}

impl<'a, T: Real> Chain<'a, T> {
    /// Checks the scores: at least one label, lengths that fit ([`InferError::Shape`]), no NaN and no
    /// `+inf` ([`InferError::BadValue`]). `states` has a row of `labels` scores per position; without
    /// positions the chain has one labelling, the empty one, with score 0.
    pub fn new(labels: usize, states: &'a [T], transitions: Transitions<'a, T>) -> Result<Self, InferError> {
        let positions = states.len().checked_div(labels).ok_or(InferError::Shape)?;
        let cells = labels.checked_mul(labels).ok_or(InferError::Shape)?;
        let (table, expected) = match transitions {
            Transitions::Shared(table) => (table, Some(cells)),
            Transitions::Each(tables) => (tables, cells.checked_mul(positions.saturating_sub(1))),
        };
        // Labels are u32 in every result.
        let fits = positions.checked_mul(labels) == Some(states.len()) && labels <= u32::MAX as usize;
        if !fits || expected != Some(table.len()) {
            return Err(InferError::Shape);
        }
        if are_log_potentials(states) && are_log_potentials(table) {
            Ok(Self { labels, positions, states, transitions })
        } else {
            Err(InferError::BadValue)
        }
    }

    /// How many labels each position can take.
    pub fn labels(&self) -> usize {
        self.labels
    }

    /// How many positions there are.
    pub fn positions(&self) -> usize {
        self.positions
    }

    /// Entries of one transition table. [`new`](Self::new) has checked that the number fits.
    #[inline]
    fn cells(&self) -> usize {
        self.labels.wrapping_mul(self.labels)
    }

    /// The scores, position by position.
    fn rows(&self) -> Rows<&'a [T]> {
        rows(self.states, self.labels)
    }

    /// The scores of one position; empty if there is none.
    fn row(&self, t: usize) -> &'a [T] {
        let from = t.saturating_mul(self.labels);
        self.states.get(from..from.saturating_add(self.labels)).unwrap_or(&[])
    }

    /// Score of a labelling; `-inf` if it is forbidden. Its log-probability is this minus `log Z`.
    ///
    /// ```
    /// # use gibbsite_core::infer::chain::{Chain, Transitions};
    /// let chain = Chain::new(2, &[0.5, 0.0, 0.0, 0.25], Transitions::Shared(&[1.0, 2.0, 0.0, 1.0]))?;
    /// assert_eq!(chain.score(&[0, 1])?, 2.75);
    /// assert!(chain.score(&[0, 2]).is_err());
    /// # Ok::<(), gibbsite_core::error::InferError>(())
    /// ```
    pub fn score(&self, labels: &[u32]) -> Result<T, InferError> {
        if labels.len() != self.positions {
            return Err(InferError::Shape);
        }
        let mut sum = Compensated::default();
        let mut before: Option<usize> = None;
        let mut forbidden = false;
        for (t, (row, &label)) in self.rows().zip(labels).enumerate() {
            let label = label as usize;
            let mut add = |x: T| if x == T::NEG_INFINITY { forbidden = true } else { sum.add(x) };
            add(*row.get(label).ok_or(InferError::Shape)?);
            if let Some(from) = before {
                let table = self.transitions.table(t.saturating_sub(1), self.cells());
                add(*table.get(from * self.labels + label).ok_or(InferError::Shape)?);
            }
            before = Some(label);
        }
        if forbidden { Ok(T::NEG_INFINITY) } else { Ok(sum.value()) }
    }
}

/// Subtracts the largest entry from all: scores then stay small, and close ones apart, however long the
/// chain.
fn recentre<T: Real>(x: &mut [T]) -> Result<(), InferError> {
    let top = maximum(x);
    if top == T::NEG_INFINITY {
        return Err(InferError::ZeroProbability);
    }
    x.iter_mut().for_each(|v| *v -= top);
    Ok(())
}
