//! The steps of forward-backward, each in plain numbers where that is proven safe, else in wide ones.
//!
//! *The proof.* A [`Row`] and a [`Reach`](super::gap::Reach) know their `floor`, the least that a nonzero
//! entry can be; none of their entries is above 1. If the product of the floors of all factors is at
//! least `tiny = L e^-LOG_RANGE`, then every nonzero product of entries is a normal number, also after
//! division by a sum of `L` of them, so nothing that is possible becomes impossible. A row or table of too
//! wide a range has floor 0 and fails the test by itself.

use super::gap::{Gap, entry, exponentiate};
use super::row::{Row, RowMut, combine, combine_rows, extent};
use crate::arena::{rows, rows_mut};
use crate::error::InferError;
use crate::math::Real;
use crate::wide::{Compensated, Radix, Wide, finite};

/// The scores of one position on the way back.
#[derive(Clone, Copy)]
pub(super) struct Scores<'s, T> {
    pub(super) log: &'s [T],
    /// `e^{s - max s}`, all zero if the range is too wide.
    pub(super) exp: &'s [T],
}

/// What all steps of a chain have in common.
pub(super) struct Kernel<T> {
    radix: Radix<T>,
    tiny: T,
    labels: usize,
}

impl<T: Real> Kernel<T> {
    pub(super) fn new(labels: usize) -> Self {
        let tiny = (-T::LOG_RANGE).exp() * T::from_f64(labels as f64);
        Self { radix: Radix::new(), tiny, labels }
    }

    /// `α_0`, with `log` of what it was divided by. If it becomes plain, the place of its exponents holds
    /// `e^s` for the way back.
    #[inline(never)]
    pub(super) fn start(
        &self,
        scores: &[T],
        alpha: &mut RowMut<'_, T>,
        log: &mut Compensated<T>,
    ) -> Result<(), InferError> {
        let reach = exponentiate(scores, alpha.exponent);
        if reach.floor != T::zero() {
            alpha.mass.iter_mut().zip(&*alpha.exponent).for_each(|(m, &e)| *m = e);
            log.add(reach.shift);
            return alpha.rescale().map(|_| ());
        }
        for ((m, k), &s) in alpha.parts().zip(scores) {
            Wide { m: *m, k: *k } = self.radix.exp(s);
        }
        self.narrow_forward(alpha, scores, log)
    }

    /// `α_t` from `α_{t-1}`; results as in [`start`](Self::start).
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline)]
    pub(super) fn forward(
        &self,
        before: Row<'_, T>,
        gap: &Gap<'_, T>,
        scores: &[T],
        alpha: &mut RowMut<'_, T>,
        log: &mut Compensated<T>,
    ) -> Result<(), InferError> {
        log.add(gap.reach.shift);
        let reach = exponentiate(scores, alpha.exponent);
        if self.tiny <= before.floor * gap.reach.floor * reach.floor {
            combine(before.mass, gap.exp, alpha.mass);
            alpha.mass.iter_mut().zip(&*alpha.exponent).for_each(|(m, &e)| *m *= e);
            let scale = alpha.rescale()?;
            log.add(reach.shift);
            log.add(scale.ln());
            return Ok(());
        }
        self.forward_wide(before, gap, scores, alpha, log)
    }

    /// [`forward`](Self::forward) in wide numbers. Here and below apart from the plain step, so that this one does not pay with its
    /// registers and a device not with its stack.
    #[cold]
    #[inline(never)]
    fn forward_wide(
        &self,
        before: Row<'_, T>,
        gap: &Gap<'_, T>,
        scores: &[T],
        alpha: &mut RowMut<'_, T>,
        log: &mut Compensated<T>,
    ) -> Result<(), InferError> {
        let radix = &self.radix;
        alpha.mass.fill(T::zero());
        alpha.exponent.fill(T::zero());
        for i in 0..self.labels {
            let x = before.at(radix, i);
            if x.is_zero() {
                continue;
            }
            for j in 0..self.labels {
                let term = radix.mul(x, gap.at(radix, i * self.labels + j));
                alpha.set(j, radix.add(alpha.get(j), term));
            }
        }
        for (j, &s) in scores.iter().enumerate() {
            alpha.set(j, radix.mul(alpha.get(j), radix.exp(s)));
        }
        self.narrow_forward(alpha, scores, log)
    }

    #[inline(never)]
    fn narrow_forward(
        &self,
        alpha: &mut RowMut<'_, T>,
        scores: &[T],
        log: &mut Compensated<T>,
    ) -> Result<(), InferError> {
        let scale = self.narrow(alpha)?;
        self.radix.add_log(scale, log);
        if alpha.floor != T::zero() {
            weigh(scores, alpha.exponent);
        }
        Ok(())
    }

    /// `log Z` from the last `α` and the logs of what all were divided by.
    #[inline(never)]
    pub(super) fn finish(&self, last: Option<Row<'_, T>>, mut log: Compensated<T>) -> Result<T, InferError> {
        if let Some(last) = last {
            self.radix.add_log(self.radix.sum(last.wide(&self.radix)), &mut log);
        }
        finite(log.value())
    }

    /// Divides a wide row by a number, so that it is plain with largest entry 1 if its range allows;
    /// returns the number.
    #[inline(never)]
    fn narrow(&self, row: &mut RowMut<'_, T>) -> Result<Wide<T>, InferError> {
        // Of a row that is still wide.
        row.floor = T::zero();
        let each = || row.view().wide(&self.radix);
        let top = each().fold(Wide::zero(), |top, x| if x.exceeds(top) { x } else { top });
        if top.is_zero() {
            return Err(InferError::ZeroProbability);
        }
        let nonzero = each().filter(|x| !x.is_zero());
        let low = nonzero.fold(T::one(), |low, x| low.smaller(self.radix.ratio(x, top)));
        if self.tiny <= low {
            for (m, k) in row.parts() {
                *m = self.radix.ratio(Wide { m: *m, k: *k }, top);
            }
            row.floor = low;
            return Ok(top);
        }
        row.exponent.iter_mut().for_each(|k| *k -= top.k);
        Ok(Wide { m: T::one(), k: top.k })
    }

    /// Makes the exponents of a row whose `α` is no longer needed those of its [`Scores`].
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline)]
    pub(super) fn leave_scores(&self, log: &[T], alpha: &mut RowMut<'_, T>) {
        if alpha.floor == T::zero() {
            weigh(log, alpha.exponent);
        }
    }

    /// `weighted = e^{s_{t+1}} β_{t+1}`, and from that `β_t`. Returns what `β_t` was divided by, if
    /// `weighted` is plain.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline)]
    pub(super) fn backward(
        &self,
        after: &RowMut<'_, T>,
        scores: &Scores<'_, T>,
        gap: &Gap<'_, T>,
        weighted: &mut RowMut<'_, T>,
        beta: &mut RowMut<'_, T>,
    ) -> Result<T, InferError> {
        let (top, low) = extent(scores.exp, T::zero());
        weighted.floor = if top == T::zero() { top } else { low * after.floor };
        if self.tiny <= weighted.floor * gap.reach.floor {
            let products = after.mass.iter().zip(scores.exp);
            weighted.mass.iter_mut().zip(products).for_each(|(w, (&b, &e))| *w = b * e);
            match gap.turned {
                [] => combine_rows(weighted.mass, gap.exp, beta.mass),
                turned => combine(weighted.mass, turned, beta.mass),
            }
            return beta.rescale();
        }
        self.backward_wide(after, scores, gap, weighted, beta)
    }

    /// [`backward`](Self::backward) in wide numbers.
    #[cold]
    #[inline(never)]
    fn backward_wide(
        &self,
        after: &RowMut<'_, T>,
        scores: &Scores<'_, T>,
        gap: &Gap<'_, T>,
        weighted: &mut RowMut<'_, T>,
        beta: &mut RowMut<'_, T>,
    ) -> Result<T, InferError> {
        let after = after.view();
        let radix = &self.radix;
        weighted.floor = T::zero();
        for (j, &s) in scores.log.iter().enumerate() {
            weighted.set(j, radix.mul(after.at(radix, j), radix.exp(s)));
        }
        for i in 0..self.labels {
            let mut sum = Wide::zero();
            for j in 0..self.labels {
                sum = radix.add(sum, radix.mul(weighted.get(j), gap.at(radix, i * self.labels + j)));
            }
            beta.set(i, sum);
        }
        self.narrow(beta).map(|_| T::one())
    }

    /// `α_t β_t`, normalised, in the place of `α_t`.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline)]
    pub(super) fn single(&self, alpha: &mut RowMut<'_, T>, beta: &RowMut<'_, T>) {
        if self.tiny <= alpha.floor * beta.floor {
            let mut sum = T::zero();
            for (m, &b) in alpha.mass.iter_mut().zip(&*beta.mass) {
                *m *= b;
                sum += *m;
            }
            let factor = T::one() / sum;
            alpha.mass.iter_mut().for_each(|m| *m *= factor);
            return;
        }
        self.single_wide(alpha, beta.view());
    }

    /// [`single`](Self::single) in wide numbers.
    #[cold]
    #[inline(never)]
    fn single_wide(&self, alpha: &mut RowMut<'_, T>, beta: Row<'_, T>) {
        let radix = &self.radix;
        let mut total = Wide::zero();
        for i in 0..self.labels {
            total = radix.add(total, radix.mul(alpha.view().at(radix, i), beta.at(radix, i)));
        }
        for i in 0..self.labels {
            let product = radix.mul(alpha.view().at(radix, i), beta.at(radix, i));
            if let Some(m) = alpha.mass.get_mut(i) {
                *m = radix.ratio(product, total);
            }
        }
    }

    /// `α_t(i) e^{A(i,j)} weighted(j)`, normalised. `beta · scale = Σ_j e^{A(i,j)} weighted(j)` if
    /// `weighted` is plain. Without `exp` the exponentials are in the place of the result.
    #[inline(never)]
    pub(super) fn pair(
        &self,
        alpha: &RowMut<'_, T>,
        log: &[T],
        (exp, floor): (Option<&[T]>, T),
        weighted: &RowMut<'_, T>,
        (beta, scale): (&[T], T),
        out: &mut [T],
    ) {
        let labels = self.labels;
        if self.tiny <= alpha.floor * floor * weighted.floor {
            let sum = alpha.mass.iter().zip(beta).fold(T::zero(), |sum, (&a, &b)| sum + a * (b * scale));
            let factor = T::one() / sum;
            let mut tables = exp.map(|exp| rows(exp, labels));
            for (out, &a) in rows_mut(out, labels).zip(&*alpha.mass) {
                let a = a * factor;
                if let Some(row) = tables.as_mut().and_then(Iterator::next) {
                    for ((o, &e), &w) in out.iter_mut().zip(row).zip(&*weighted.mass) {
                        *o = a * e * w;
                    }
                } else {
                    for (o, &w) in out.iter_mut().zip(&*weighted.mass) {
                        *o = a * *o * w;
                    }
                }
            }
            return;
        }
        if let (Some(exp), true) = (exp, floor != T::zero()) {
            out.iter_mut().zip(exp).for_each(|(o, &e)| *o = e);
        }
        self.pair_wide(alpha.view(), log, floor, weighted.view(), out);
    }

    /// [`pair`](Self::pair) in wide numbers; the exponentials, if there are any, are in the place of the result.
    #[cold]
    #[inline(never)]
    fn pair_wide(&self, alpha: Row<'_, T>, log: &[T], floor: T, weighted: Row<'_, T>, out: &mut [T]) {
        let (radix, labels) = (&self.radix, self.labels);
        let mut total = Wide::zero();
        for i in 0..labels {
            for j in 0..labels {
                let e = entry(log, out, floor, radix, i * labels + j);
                total = radix.add(total, self.product(&alpha, e, &weighted, i, j));
            }
        }
        for i in 0..labels {
            for j in 0..labels {
                let e = entry(log, out, floor, radix, i * labels + j);
                if let Some(o) = out.get_mut(i * labels + j) {
                    *o = radix.ratio(self.product(&alpha, e, &weighted, i, j), total);
                }
            }
        }
    }

    /// `α_t(i) e^{A(i,j)} weighted(j)`.
    #[inline(never)]
    fn product(&self, alpha: &Row<'_, T>, e: Wide<T>, weighted: &Row<'_, T>, i: usize, j: usize) -> Wide<T> {
        let radix = &self.radix;
        radix.mul(radix.mul(alpha.at(radix, i), e), weighted.at(radix, j))
    }
}

/// `e^{s - max s}`, or zeros if the range is too wide.
fn weigh<T: Real>(scores: &[T], out: &mut [T]) {
    if exponentiate(scores, out).floor == T::zero() {
        out.fill(T::zero());
    }
}
