//! Sum-product on forests of pairwise factors, `N` samples of the same shape side by side.

use crate::arena::{rows, rows_mut};
use crate::error::InferError;
use crate::lanes::Lane;
use crate::wide::finite;

/// A variable of a forest, and what ties it to its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// How many labels it has.
    pub arity: u32,
    /// Where its own table begins.
    pub unary: u32,
    /// The branch that is its parent, which comes earlier in the list; `None` for a root.
    pub parent: Option<u32>,
    /// Where the table that it shares with its parent begins, and how many labels that has; 0 for a root.
    pub pair: u32,
    /// Labels of the parent; 0 for a root.
    pub parent_arity: u32,
    /// Whether the parent's label comes first, that is varies slowest, in that table.
    pub parent_first: bool,
}

/// Messages that are no smaller have lost nothing to underflow: what is dropped is below 10⁻³⁰⁰ (10⁻³⁷ in `f32`), a share that rounding hides.
fn least<T: Lane>() -> T {
    // e^{-0.82·range}: 10⁻²⁵⁰ and 10⁻³⁰.
    (T::from_f64(-0.82) * T::LOG_RANGE).exp_lane()
}

/// `log Z` and marginals of `N` samples: log-potentials in `unary` and `pair` become `P(x_v)` and `P(x_parent, x_v)`.
///
/// ```text
/// m_v(x_p) = Σ_{x_v} e^{pair(x_p, x_v)} b_v(x_v),    b_v(x_v) = e^{unary(x_v)} Π_{children c} m_c(x_v)
/// P(x_p, x_v) = P(x_p)/m_v(x_p) · e^{pair(x_p, x_v)} b_v(x_v)
/// ```
///
/// Inputs: branches, parents before children; tables, `[label or configuration][sample]`; `messages` as long as the parents' arities add up to
/// ([`messages_len`]). Two passes, no stopping rule. Source: Pearl 1988; ours runs along the samples, so that every step is a
/// vector instruction, and divides by messages, which are then known not to be 0.
///
/// Numbers are scaled to have maxima of 1 on the way. Returns `false`, with nothing of use in the outputs, if that is not enough
/// for the range of `T`, or if a table holds NaN, `+inf` or forbids what matters: then [`Forest`](super::Forest) has the answer.
///
/// ```
/// use gibbsite_core::infer::tree::pairwise::{Branch, sum_product};
/// let root = Branch { arity: 2, unary: 0, parent: None, pair: 0, parent_arity: 0, parent_first: true };
/// let leaf = Branch { arity: 2, unary: 2, parent: Some(0), pair: 0, parent_arity: 2, parent_first: true };
/// // One sample; equal labels are three times as likely.
/// let mut unary = [[0.0f64]; 4];
/// let mut pair = [[3f64.ln()], [0.0], [0.0], [3f64.ln()]];
/// let (mut messages, mut log_z) = ([[0.0]; 2], [0.0]);
/// assert!(sum_product(&[root, leaf], &mut unary, &mut pair, &mut messages, &mut log_z)?);
/// assert!((log_z[0] - 8f64.ln()).abs() < 1e-15);
/// assert!((pair[0][0] - 0.375).abs() < 1e-15 && (unary[3][0] - 0.5).abs() < 1e-15);
/// # Ok::<(), gibbsite_core::error::InferError>(())
/// ```
///
/// # Errors
/// [`InferError::Shape`] if an array is too short, or a parent does not come before its child.
#[inline(always)]
pub fn sum_product<T: Lane, const N: usize>(
    branches: &[Branch],
    unary: &mut [[T; N]],
    pair: &mut [[T; N]],
    messages: &mut [[T; N]],
    log_z: &mut [T; N],
) -> Result<bool, InferError> {
    *log_z = [T::zero(); N];
    for branch in branches {
        exponentiate(branch.own(unary)?, log_z);
        exponentiate(branch.shared(pair)?, log_z);
    }
    let mut smallest = [T::one(); N];
    let mut end = messages_len(branches);
    for branch in branches.iter().rev() {
        let (before, own) = branch.split(unary)?;
        let Some(parent) = branch.parent else {
            normalise(own, log_z);
            continue;
        };
        let parent = branches.get(parent as usize).ok_or(InferError::Shape)?;
        let above = parent.own(before)?;
        let start = end.checked_sub(branch.parent_arity as usize).ok_or(InferError::Shape)?;
        let message = messages.get_mut(start..end).ok_or(InferError::Shape)?;
        end = start;
        branch.climb(branch.shared(pair)?, own, message);
        multiply(above, message, &mut smallest, log_z);
    }
    let least = least::<T>();
    if !smallest.iter().all(|&m| m >= least) || !log_z.iter().all(|&z| finite(z).is_ok()) {
        return Ok(false);
    }
    let mut start = 0;
    for branch in branches {
        let (before, own) = branch.split(unary)?;
        let Some(parent) = branch.parent else { continue };
        let parent = branches.get(parent as usize).ok_or(InferError::Shape)?;
        let end = start + branch.parent_arity as usize;
        let message = messages.get_mut(start..end).ok_or(InferError::Shape)?;
        start = end;
        for (m, belief) in message.iter_mut().zip(parent.own(before)?.iter()) {
            m.iter_mut().zip(belief).for_each(|(m, &b)| *m = b / *m);
        }
        branch.descend(branch.shared(pair)?, own, message);
    }
    Ok(true)
}

/// Entries of all messages.
pub fn messages_len(branches: &[Branch]) -> usize {
    branches.iter().map(|b| b.parent_arity as usize).sum()
}

impl Branch {
    #[inline(always)]
    fn own<'t, X>(&self, unary: &'t mut [X]) -> Result<&'t mut [X], InferError> {
        let start = self.unary as usize;
        unary.get_mut(start..start.saturating_add(self.arity as usize)).ok_or(InferError::Shape)
    }

    /// The tables of the branches before, and its own.
    #[inline(always)]
    fn split<'t, X>(&self, unary: &'t mut [X]) -> Result<(&'t mut [X], &'t mut [X]), InferError> {
        let (before, from) = unary.split_at_mut_checked(self.unary as usize).ok_or(InferError::Shape)?;
        Ok((before, from.get_mut(..self.arity as usize).ok_or(InferError::Shape)?))
    }

    #[inline(always)]
    fn shared<'t, X>(&self, pair: &'t mut [X]) -> Result<&'t mut [X], InferError> {
        let (start, size) =
            (self.pair as usize, (self.arity as usize).saturating_mul(self.parent_arity as usize));
        pair.get_mut(start..start.saturating_add(size)).ok_or(InferError::Shape)
    }

    /// `message(x_p) = Σ_{x_v} pair(x_p, x_v) · own(x_v)`.
    #[inline(always)]
    fn climb<T: Lane, const N: usize>(&self, pair: &[[T; N]], own: &[[T; N]], message: &mut [[T; N]]) {
        message.fill([T::zero(); N]);
        let add = |sum: &mut [T; N], e: &[T; N], b: &[T; N]| {
            sum.iter_mut().zip(e.iter().zip(b)).for_each(|(sum, (&e, &b))| *sum += e * b);
        };
        if self.parent_first {
            for (sum, row) in message.iter_mut().zip(rows(pair, self.arity as usize)) {
                row.iter().zip(own).for_each(|(e, b)| add(sum, e, b));
            }
        } else {
            for (b, row) in own.iter().zip(rows(pair, self.parent_arity as usize)) {
                message.iter_mut().zip(row).for_each(|(sum, e)| add(sum, e, b));
            }
        }
    }

    /// `pair = cavity(x_p) · pair(x_p, x_v) · own(x_v)`, then `own(x_v) = Σ_{x_p} pair`, with sum 1.
    #[inline(always)]
    fn descend<T: Lane, const N: usize>(&self, pair: &mut [[T; N]], own: &mut [[T; N]], cavity: &[[T; N]]) {
        let times = |e: &mut [T; N], c: &[T; N], b: &[T; N]| {
            e.iter_mut().zip(c.iter().zip(b)).for_each(|(e, (&c, &b))| *e *= c * b);
        };
        if self.parent_first {
            for (c, row) in cavity.iter().zip(rows_mut(pair, self.arity as usize)) {
                row.iter_mut().zip(own.iter()).for_each(|(e, b)| times(e, c, b));
            }
        } else {
            for (b, row) in own.iter().zip(rows_mut(pair, self.parent_arity as usize)) {
                row.iter_mut().zip(cavity).for_each(|(e, c)| times(e, c, b));
            }
        }
        own.fill([T::zero(); N]);
        let add = |sum: &mut [T; N], e: &[T; N]| {
            sum.iter_mut().zip(e).for_each(|(sum, &e)| *sum += e);
        };
        if self.parent_first {
            for row in rows(pair, self.arity as usize) {
                own.iter_mut().zip(row).for_each(|(sum, e)| add(sum, e));
            }
        } else {
            for (sum, row) in own.iter_mut().zip(rows(pair, self.parent_arity as usize)) {
                row.iter().for_each(|e| add(sum, e));
            }
        }
        let mut total = [T::zero(); N];
        own.iter().for_each(|row| add(&mut total, row));
        for row in own.iter_mut() {
            row.iter_mut().zip(&total).for_each(|(b, &t)| *b /= t);
        }
    }
}

/// The largest of each lane.
#[inline(always)]
fn tops<T: Lane, const N: usize>(table: &[[T; N]]) -> [T; N] {
    let mut top = [T::NEG_INFINITY; N];
    for row in table {
        top.iter_mut().zip(row).for_each(|(top, &x)| *top = if *top < x { x } else { *top });
    }
    top
}

/// `e^{x - top}`; `top` goes to the logarithm.
#[inline(always)]
fn exponentiate<T: Lane, const N: usize>(table: &mut [[T; N]], log: &mut [T; N]) {
    if table.is_empty() {
        return;
    }
    let top = tops(table);
    for row in table.iter_mut() {
        row.iter_mut().zip(&top).for_each(|(x, &top)| *x = (*x - top).exp_lane());
    }
    log.iter_mut().zip(&top).for_each(|(log, &top)| *log += top);
}

/// `belief *= message`, scaled to a maximum of 1; the scale goes to the logarithm, the smallest message to `smallest`.
#[inline(always)]
fn multiply<T: Lane, const N: usize>(
    belief: &mut [[T; N]],
    message: &[[T; N]],
    smallest: &mut [T; N],
    log: &mut [T; N],
) {
    for (belief, message) in belief.iter_mut().zip(message) {
        belief.iter_mut().zip(message).for_each(|(b, &m)| *b *= m);
        // What is not a number will be seen in `log`.
        smallest.iter_mut().zip(message).for_each(|(s, &m)| *s = if m < *s { m } else { *s });
    }
    let top = tops(belief);
    for row in belief.iter_mut() {
        row.iter_mut().zip(&top).for_each(|(b, &top)| *b /= top);
    }
    log.iter_mut().zip(&top).for_each(|(log, &top)| *log += top.ln_lane());
}

/// Scaled to a sum of 1; the scale goes to the logarithm.
#[inline(always)]
fn normalise<T: Lane, const N: usize>(belief: &mut [[T; N]], log: &mut [T; N]) {
    let mut sum = [T::zero(); N];
    for row in belief.iter() {
        sum.iter_mut().zip(row).for_each(|(sum, &b)| *sum += b);
    }
    for row in belief.iter_mut() {
        row.iter_mut().zip(&sum).for_each(|(b, &sum)| *b /= sum);
    }
    // `ln_lane` does not pass NaN on: the product does.
    log.iter_mut().zip(&sum).for_each(|(log, &sum)| *log += sum.ln_lane() + T::zero() * sum);
}
