//! Iterated conditional modes: coordinate-wise ascent of the log-potential.

use super::blanket::{check_labels, weigh};
use super::layout::{Dimensions, LOST, check_entries};
use crate::error::{InferError, need};
use crate::graph::{FactorGraph, Incidence};
use crate::score::Score;

/// How an ascent went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Info<Total> {
    /// Sweeps over all variables, the last one without a change if `converged`.
    pub sweeps: u32,
    /// `Σ log ψ` of the final assignment; `-inf` if it is forbidden.
    pub log_potential: Total,
    /// Whether no single variable can be changed for the better.
    pub converged: bool,
}

/// Real entries of scratch that [`ascend`] needs.
pub const fn scratch_len(size: &Dimensions) -> usize {
    size.arity.saturating_mul(2)
}

/// Maximises `Σ_k log ψ_k(x)` one variable at a time, in order, from the assignment in `labels`, which it
/// replaces (Besag 1986).
///
/// `x_v ← argmax_x (−violated_v(x), Σ_{k∋v} log ψ_k(x, x_blanket) over finite entries)`, compared in that
/// order: where factors are violated (`-inf`), fewer violations come first, so that an ascent from a
/// forbidden assignment leaves it if single changes can. Ties keep the current label, else take the
/// smallest. Stops after a sweep without change, or after `max_sweeps`. Never lowers the log-potential.
///
/// ```
/// use gibbsite_core::graph::{FactorGraph, Incidence};
/// use gibbsite_core::infer::icm;
/// let g = FactorGraph::new(&[2, 2], &[0, 2, 3], &[0, 1, 1], &[0, 4, 6], &[1.0, 0.0, 0.0, 1.0, 0.0, 3.0])?;
/// let mut memory = [0; 16];
/// let incidence = Incidence::build(&g, &mut memory)?;
/// let mut labels = [0, 0];
/// let info = icm::ascend(&g, &incidence, &mut labels, 100, &mut [0.0; 4])?;
/// assert_eq!((labels, info.log_potential, info.converged), ([1, 1], 4.0, true));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub fn ascend<T: Score>(
    graph: &FactorGraph<'_, T>,
    incidence: &Incidence<'_>,
    labels: &mut [u32],
    max_sweeps: u32,
    scratch: &mut [T],
) -> Result<Info<T::Total>, InferError> {
    // The one of the graph's dimensions that counts.
    let arity = graph.cards().iter().fold(0, |most, &card| most.max(card as usize));
    need(scratch_len(&Dimensions { arity, ..Dimensions::default() }), scratch.len())?;
    check_labels(graph, labels)?;
    check_entries(graph)?;
    let (scores, counts) = scratch.split_at_mut_checked(arity).ok_or(LOST)?;
    let (mut sweeps, mut converged) = (0, false);
    while sweeps < max_sweeps && !converged {
        sweeps += 1;
        converged = true;
        for (v, &card) in graph.cards().iter().enumerate() {
            let score = scores.get_mut(..card as usize).ok_or(LOST)?;
            let violated = counts.get_mut(..card as usize).ok_or(LOST)?;
            weigh(graph, incidence, labels, v as u32, score, violated)?;
            let label = labels.get_mut(v).ok_or(LOST)?;
            let better = best_label(score, violated, *label).ok_or(LOST)?;
            converged &= better == *label;
            *label = better;
        }
    }
    let log_potential = graph.log_potential(labels).ok_or(LOST)?;
    Ok(Info { sweeps, log_potential, converged })
}

/// The label that violates fewest factors and, of those, has the largest score; `label` if none is better.
#[inline(never)]
fn best_label<T: Score>(score: &[T], violated: &[T], mut label: u32) -> Option<u32> {
    let at = label as usize;
    let mut best = (*violated.get(at)?, *score.get(at)?);
    for (x, (&c, &s)) in violated.iter().zip(score).enumerate() {
        if c < best.0 || (c == best.0 && best.1 < s) {
            best = (c, s);
            label = x as u32;
        }
    }
    Some(label)
}
