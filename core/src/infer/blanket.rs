//! Log-weights of a variable, or of a small block, given the labels of its Markov blanket: what
//! [`icm`](super::icm) and [`gibbs`](super::gibbs) share.
//!
//! Forbidden entries are counted instead of added, so that assignments of probability zero can still be
//! compared: fewer violated factors first, then the sum of the finite entries.

use super::layout::LOST;
use crate::error::{InferError, need};
use crate::graph::{FactorGraph, Incidence};
use crate::ids::{FactorId, VarId};
use crate::infer::junction::log_add::normalise;
use crate::log_add::LogAdd;
use crate::math::{Real, softmax};
use crate::score::Score;
use crate::stride::{self, Axis};

/// For each label `x` of `v`: `score(x) = Σ_{k∋v} log ψ_k(x, labels)` over the finite entries, and
/// `violated(x)`, how many were `-inf`. Both slices have the arity of `v`.
pub(super) fn weigh<T: Score>(
    graph: &FactorGraph<'_, T>,
    incidence: &Incidence<'_>,
    labels: &[u32],
    v: u32,
    score: &mut [T],
    violated: &mut [T],
) -> Result<(), InferError> {
    score.fill(T::default());
    violated.fill(T::default());
    let edges = incidence.edges(VarId(v));
    if edges.len() > T::MOST {
        return Err(InferError::BadValue);
    }
    for &e in edges {
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
                *c = c.plus(T::ONE);
            } else {
                *s = s.plus(t);
            }
        }
    }
    Ok(())
}

/// The entries of a factor's table that agree with the labels outside a block, from the first on, and how they lie under the
/// configurations of the block, the last variable varying fastest; `pattern` has an axis for each.
#[inline(never)]
pub(super) fn entries_under<'g, 'p, T: Real>(
    graph: &FactorGraph<'g, T>,
    labels: &[u32],
    block: &[u32],
    k: FactorId,
    pattern: &'p mut [Axis],
) -> Result<(&'p [Axis], &'g [T]), InferError> {
    let scope = graph.scope(k);
    let (mut at, mut step) = (0usize, 1usize);
    for &u in scope.iter().rev() {
        if !block.contains(&u) {
            at += labels.get(u as usize).copied().ok_or(LOST)? as usize * step;
        }
        step *= graph.card(VarId(u));
    }
    let axis = |&u: &u32| {
        let mut stride = 0;
        if let Some(p) = scope.iter().position(|&w| w == u) {
            stride = scope.iter().skip(p + 1).map(|&w| graph.card(VarId(w)) as u32).product();
        }
        Some([graph.card(VarId(u)) as u32, stride])
    };
    let axes = stride::write(pattern, block.iter().map(axis)).ok_or(LOST)?;
    Ok((axes, graph.table(k).get(at..).ok_or(LOST)?))
}

/// Adds what is finite.
#[inline(never)]
pub(super) fn add_finite<T: Real>(axes: &[Axis], score: &mut [T], from: &[T]) {
    stride::spread(axes, score, from, |s, t| {
        if t != T::NEG_INFINITY {
            *s += t;
        }
    });
}

/// Counts what is `-inf`.
#[inline(never)]
pub(super) fn count_forbidden<T: Real>(axes: &[Axis], violated: &mut [T], from: &[T]) {
    stride::spread(axes, violated, from, |c, t| {
        if t == T::NEG_INFINITY {
            *c += T::one();
        }
    });
}

/// Labels in range, one per variable.
#[inline(never)]
pub(super) fn check_labels<T: Score>(graph: &FactorGraph<'_, T>, labels: &[u32]) -> Result<(), InferError> {
    let fit = labels.len() == graph.variables() && labels.iter().zip(graph.cards()).all(|(l, c)| l < c);
    if fit { Ok(()) } else { Err(InferError::Shape) }
}

/// `P(x_v | all others)` into the first entries of `out`, one a label; `scratch` has as many. Labels of the other variables are in `labels` (that of
/// `v` does not matter).
///
/// Among the labels of `v` only those that violate fewest factors (`-inf` entries) count, as in [`gibbs`](super::gibbs): where some label is possible, that is
/// the conditional.
///
/// ```
/// use gibbsite_core::graph::{FactorGraph, Incidence};
/// use gibbsite_core::infer::conditional;
/// let g = FactorGraph::new(&[2, 2], &[0, 2], &[0, 1], &[0, 4], &[1.0, 0.0, 0.0, 1.0])?;
/// let (mut memory, mut p, mut scratch) = ([0; 16], [0.0f64; 2], [0.0; 2]);
/// let incidence = Incidence::build(&g, &mut memory)?;
/// conditional(&g, &incidence, &[1, 0], 1, &mut p, &mut scratch)?;
/// assert!((p[1] - 1f64.exp() / (1.0 + 1f64.exp())).abs() < 1e-15);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
///
/// # Errors
/// [`InferError::Shape`] for labels or a variable that are not there, [`InferError::Memory`]: nothing is then written.
// Not inlined: what it holds would lie on the stack while its caller still prepares the graph.
#[inline(never)]
pub fn conditional<T: Real>(
    graph: &FactorGraph<'_, T>,
    incidence: &Incidence<'_>,
    labels: &[u32],
    v: u32,
    out: &mut [T],
    scratch: &mut [T],
) -> Result<(), InferError> {
    check_labels(graph, labels)?;
    if v as usize >= graph.variables() {
        return Err(InferError::Shape);
    }
    let card = graph.card(VarId(v));
    need(card, out.len().min(scratch.len()))?;
    let (out, violated) =
        (out.get_mut(..card).unwrap_or(&mut []), scratch.get_mut(..card).unwrap_or(&mut []));
    weigh(graph, incidence, labels, v, out, violated)?;
    keep_fewest(out, violated);
    softmax(out);
    Ok(())
}

/// [`conditional`] in fixed point: `log P(x_v | all others)` in units, by additions, comparisons and a table. What cannot be is [forbidden](crate::score).
///
/// With `L` labels each is off by at most `(L-1)·e`, `e` as [marginals](crate::infer::junction::Junction::log_marginals) have it.
///
/// # Errors
/// As there; [`InferError::BadValue`] for a variable in more than [`Score::MOST`] factors.
#[inline(never)]
pub fn log_conditional(
    graph: &FactorGraph<'_, i32>,
    incidence: &Incidence<'_>,
    labels: &[u32],
    v: u32,
    table: &LogAdd<'_>,
    out: &mut [i32],
    scratch: &mut [i32],
) -> Result<(), InferError> {
    check_labels(graph, labels)?;
    let card = graph.card(VarId(v));
    if card == 0 {
        return Err(InferError::Shape);
    }
    need(card, out.len().min(scratch.len()))?;
    let (out, violated) =
        (out.get_mut(..card).unwrap_or(&mut []), scratch.get_mut(..card).unwrap_or(&mut []));
    weigh(graph, incidence, labels, v, out, violated)?;
    keep_fewest(out, violated);
    normalise(out, table);
    Ok(())
}

/// Rules out what violates more factors than it must.
pub(super) fn keep_fewest<T: Score>(weight: &mut [T], violated: &[T]) {
    let fewest = violated.iter().fold(T::INFINITY, |m, &c| m.smaller(c));
    for (w, &c) in weight.iter_mut().zip(violated) {
        if c > fewest {
            *w = T::NEG_INFINITY;
        }
    }
}
