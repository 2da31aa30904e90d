//! Log-weights of a variable, or of a small block, given the labels of its Markov blanket: what
//! [`icm`](super::icm) and [`gibbs`](super::gibbs) share.
//!
//! Forbidden entries are counted instead of added, so that assignments of probability zero can still be
//! compared: fewer violated factors first, then the sum of the finite entries.

use super::layout::LOST;
use crate::error::InferError;
use crate::graph::{FactorGraph, Incidence};
use crate::ids::VarId;
use crate::math::Real;
use crate::stride::{self, Axes};

/// For each label `x` of `v`: `score(x) = Σ_{k∋v} log ψ_k(x, labels)` over the finite entries, and
/// `violated(x)`, how many were `-inf`. Both slices have the arity of `v`.
pub(super) fn weigh<T: Real>(
    graph: &FactorGraph<'_, T>,
    incidence: &Incidence<'_>,
    labels: &[u32],
    v: u32,
    score: &mut [T],
    violated: &mut [T],
) -> Result<(), InferError> {
    score.fill(T::zero());
    violated.fill(T::zero());
    for &e in incidence.edges(VarId(v)) {
        let k = incidence.factor(e);
        let (mut at, mut step, mut stride) = (0usize, 1usize, 1usize);
        for &u in graph.scope(k).iter().rev() {
            if u == v {
                stride = step;
            } else {
                at += labels.get(u as usize).copied().ok_or(LOST)? as usize * step;
            }
            step *= graph.card(VarId(u));
        }
        let entries = graph.table(k).get(at..).ok_or(LOST)?.iter().step_by(stride.max(1));
        for ((s, c), &t) in score.iter_mut().zip(violated.iter_mut()).zip(entries) {
            if t == T::NEG_INFINITY {
                *c += T::one();
            } else {
                *s += t;
            }
        }
    }
    Ok(())
}

/// As [`weigh`] for the configurations of several variables, the last of the block varying fastest.
pub(super) fn weigh_block<T: Real>(
    graph: &FactorGraph<'_, T>,
    incidence: &Incidence<'_>,
    labels: &[u32],
    block: &[u32],
    score: &mut [T],
    violated: &mut [T],
) -> Result<(), InferError> {
    score.fill(T::zero());
    violated.fill(T::zero());
    for (i, &v) in block.iter().enumerate() {
        for &e in incidence.edges(VarId(v)) {
            let k = incidence.factor(e);
            let scope = graph.scope(k);
            // A factor with several variables of the block counts once, at the first of them.
            if block.iter().take(i).any(|u| scope.contains(u)) {
                continue;
            }
            let (mut at, mut step) = (0usize, 1usize);
            for &u in scope.iter().rev() {
                if !block.contains(&u) {
                    at += labels.get(u as usize).copied().ok_or(LOST)? as usize * step;
                }
                step *= graph.card(VarId(u));
            }
            let mut axes = Axes::new();
            for &u in block {
                let mut stride = 0;
                if let Some(p) = scope.iter().position(|&w| w == u) {
                    stride = scope.iter().skip(p + 1).map(|&w| graph.card(VarId(w)) as u32).product();
                }
                if !stride::push(&mut axes, graph.card(VarId(u)) as u32, stride) {
                    return Err(LOST);
                }
            }
            let from = graph.table(k).get(at..).ok_or(LOST)?;
            stride::spread(&axes, score, from, |s, t| {
                if t != T::NEG_INFINITY {
                    *s += t;
                }
            });
            stride::spread(&axes, violated, from, |c, t| {
                if t == T::NEG_INFINITY {
                    *c += T::one();
                }
            });
        }
    }
    Ok(())
}

/// Labels in range, one per variable.
pub(super) fn check_labels<T: Real>(graph: &FactorGraph<'_, T>, labels: &[u32]) -> Result<(), InferError> {
    let fit = labels.len() == graph.variables() && labels.iter().zip(graph.cards()).all(|(l, c)| l < c);
    if fit { Ok(()) } else { Err(InferError::Shape) }
}
