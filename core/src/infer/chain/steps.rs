//! The steps of forward-backward in plain numbers. Each says whether that was proven safe; if not, the same step in
//! [wide numbers](super::steps_wide) is to be taken.
//!
//! *The proof.* A [`Row`](super::row::Row) and a [`Reach`](super::gap::Reach) know their `floor`, the least that a nonzero
//! entry can be; none of their entries is above 1. If the product of the floors of all factors is at
//! least `tiny = L e^-LOG_RANGE`, then every nonzero product of entries is a normal number, also after
//! division by a sum of `L` of them, so nothing that is possible becomes impossible. A row or table of too
//! wide a range has floor 0 and fails the test by itself.

use super::gap::{Reach, exponentiate, weigh};
use super::pass::Pass;
use super::row::{combine, combine_rows, extent};
use crate::arena::{rows, rows_mut};
use crate::error::InferError;
use crate::math::Real;

impl<T: Real> Pass<'_, '_, '_, T> {
    /// `α_0`. If it becomes plain, the place of its exponents holds `e^s` for the way back.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline)]
    pub(super) fn start(&mut self) -> Result<bool, InferError> {
        let scores = self.chain.row(0);
        let mut alpha = self.alpha_mut(0);
        let reach = exponentiate(scores, alpha.exponent);
        if reach.floor == T::zero() {
            return Ok(false);
        }
        alpha.mass.iter_mut().zip(&*alpha.exponent).for_each(|(m, &e)| *m = e);
        alpha.rescale()?;
        let floor = alpha.floor;
        self.keep_floor(0, floor);
        self.log.add(reach.shift);
        Ok(true)
    }

    /// `α_t` from `α_{t-1}`; results as in [`start`](Self::start). In three steps, which a device takes one after the other.
    #[inline(always)]
    pub(super) fn forward(&mut self, t: usize) -> Result<bool, InferError> {
        let reach = self.exponentiate_scores(t);
        if self.floor(t - 1) * self.reach.floor * reach.floor < self.tiny {
            return Ok(false);
        }
        self.combine_alpha(t);
        self.weigh_alpha(t, reach.shift)?;
        Ok(true)
    }

    /// `e^s` of a position, in the place of its exponents.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline)]
    fn exponentiate_scores(&mut self, t: usize) -> Reach<T> {
        self.log.add(self.reach.shift);
        let (from, labels) = (self.place(t), self.chain.labels);
        exponentiate(self.chain.row(t), self.exponent.get_mut(from..from + labels).unwrap_or(&mut []))
    }

    /// `α_t(j) = Σ_i α_{t-1}(i) e^{A(i,j)}`.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline)]
    fn combine_alpha(&mut self, t: usize) {
        let (from, labels, last) = (self.place(t), self.chain.labels, self.place(t - 1));
        // Taken out and put back, so that the table can be looked at beside it.
        let mass = core::mem::take(&mut self.mass);
        let (low, high) = mass.split_at_mut_checked(from.max(last)).unwrap_or_default();
        let (x, out) = if last < from { (low.get(last..).unwrap_or(&[]), high) } else { (&*high, low) };
        let (x, out) = (x.get(..labels).unwrap_or(&[]), out.get_mut(..labels).unwrap_or(&mut []));
        combine(x, self.exp_table(t - 1), out);
        self.mass = mass;
    }

    /// `α_t(j) *= e^{s_t(j)}`, rescaled, with the logs of what it was divided by.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline)]
    fn weigh_alpha(&mut self, t: usize, shift: T) -> Result<(), InferError> {
        let mut alpha = self.alpha_mut(t);
        alpha.mass.iter_mut().zip(&*alpha.exponent).for_each(|(m, &e)| *m *= e);
        let scale = alpha.rescale()?;
        let floor = alpha.floor;
        self.keep_floor(t, floor);
        self.log.add(shift);
        self.log.add(scale.ln());
        Ok(())
    }

    /// `weighted = e^{s_{t+1}} β_{t+1}`, and from that `β_t`, into `next`.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline)]
    pub(super) fn backward(&mut self, t: usize) -> Result<bool, InferError> {
        let from = self.place(t + 1);
        let scores = self.exponent.get(from..from + self.chain.labels).unwrap_or(&[]);
        let (top, low) = extent(scores, T::zero());
        self.weighted.floor = if top == T::zero() { top } else { low * self.beta.floor };
        if self.weighted.floor * self.reach.floor < self.tiny {
            return Ok(false);
        }
        let products = self.beta.mass.iter().zip(scores);
        self.weighted.mass.iter_mut().zip(products).for_each(|(w, (&b, &e))| *w = b * e);
        let out = core::mem::take(&mut self.next.mass);
        if cfg!(target_os = "none") {
            combine_rows(self.weighted.mass, self.exp_table(t), out);
        } else {
            combine(self.weighted.mass, self.turned, out);
        }
        self.next.mass = out;
        self.scale = self.next.rescale()?;
        Ok(true)
    }

    /// `α_t(i) e^{A(i,j)} weighted(j)`, normalised, in the place of the pairs, after the step to `β_t`: with the scale of that
    /// `β_t(i) · scale = Σ_j e^{A(i,j)} weighted(j)`. Exponentials of a gap's own transitions are in the place of the result.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline)]
    pub(super) fn pair(&mut self, t: usize) -> bool {
        let (labels, cells) = (self.chain.labels, self.chain.cells());
        let (shared, from) = (!self.each(), self.place(t));
        let floor = self.floor(t);
        if floor * self.reach.floor * self.weighted.floor < self.tiny {
            return false;
        }
        let alpha = self.mass.get(from..from + labels).unwrap_or(&[]);
        let out = self.pairs.get_mut(t * cells..(t + 1) * cells).unwrap_or(&mut []);
        let (beta, scale) = (&*self.beta.mass, self.scale);
        let sum = alpha.iter().zip(beta).fold(T::zero(), |sum, (&a, &b)| sum + a * (b * scale));
        let factor = T::one() / sum;
        let each = rows_mut(out, labels).zip(alpha);
        if shared {
            for ((out, &a), row) in each.zip(rows(self.exp, labels)) {
                let a = a * factor;
                for ((o, &e), &w) in out.iter_mut().zip(row).zip(&*self.weighted.mass) {
                    *o = a * e * w;
                }
            }
        } else {
            each.for_each(|(out, &a)| scale_row(a * factor, out, self.weighted.mass));
        }
        true
    }

    /// `α_t β_t`, normalised, in the place of `α_t`.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline)]
    pub(super) fn single(&mut self, t: usize) -> bool {
        let (from, labels) = (self.place(t), self.chain.labels);
        let floor = self.floor(t);
        if floor * self.beta.floor < self.tiny {
            return false;
        }
        let alpha = self.mass.get_mut(from..from + labels).unwrap_or(&mut []);
        let mut sum = T::zero();
        for (m, &b) in alpha.iter_mut().zip(&*self.beta.mass) {
            *m *= b;
            sum += *m;
        }
        let factor = T::one() / sum;
        alpha.iter_mut().for_each(|m| *m *= factor);
        true
    }

    /// Makes the exponents of a row whose `α` is no longer needed those of its scores.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline)]
    pub(super) fn leave_scores(&mut self, t: usize) {
        if self.floor(t) == T::zero() {
            weigh(self.chain.row(t), self.alpha_mut(t).exponent);
        }
    }
}

/// `out(j) = a · out(j) · by(j)`, by fours: the loop itself would be as much as the work.
#[inline(always)]
fn scale_row<T: Real>(a: T, out: &mut [T], by: &[T]) {
    let ((fours, last), (by_fours, by_last)) = (out.as_chunks_mut::<4>(), by.as_chunks::<4>());
    for ([o, p, q, r], &[w, x, y, z]) in fours.iter_mut().zip(by_fours) {
        (*o, *p, *q, *r) = (a * *o * w, a * *p * x, a * *q * y, a * *r * z);
    }
    for (o, &w) in last.iter_mut().zip(by_last) {
        *o = a * *o * w;
    }
}
