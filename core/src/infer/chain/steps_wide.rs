//! The steps of forward-backward in [wide numbers](crate::wide), for where plain ones could vanish. Apart from the
//! [plain ones](super::steps), so that these do not pay with their registers and a device not with its stack.

use super::gap::weigh;
use super::pass::Pass;
use crate::error::InferError;
use crate::math::Real;
use crate::wide::{Wide, finite};

impl<T: Real> Pass<'_, '_, '_, T> {
    /// An entry `e^{A - shift}` of the gap whose turn it is. If plain, the exponentials are there and need not be taken again.
    #[inline(never)]
    fn entry(&self, gap: usize, cell: usize) -> Wide<T> {
        if self.reach.floor != T::zero() {
            self.exp_table(gap).get(cell).map_or(Wide::zero(), |&x| self.radix.widen(x))
        } else {
            self.log_table(gap).get(cell).map_or(Wide::zero(), |&x| self.radix.exp(x))
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn start_wide(&mut self) -> Result<(), InferError> {
        let (radix, scores) = (self.radix, self.chain.row(0));
        for ((m, k), &s) in self.alpha_mut(0).parts().zip(scores) {
            Wide { m: *m, k: *k } = radix.exp(s);
        }
        self.narrow_forward(0)
    }

    #[cold]
    #[inline(never)]
    pub(super) fn forward_wide(&mut self, t: usize) -> Result<(), InferError> {
        let alpha = self.alpha_mut(t);
        alpha.mass.fill(T::zero());
        alpha.exponent.fill(T::zero());
        for cell in 0..self.chain.cells() {
            let e = self.entry(t - 1, cell);
            self.hear(t, cell, e);
        }
        self.add_scores(t);
        self.narrow_forward(t)
    }

    /// `α_t(j) += α_{t-1}(i) e^{A(i,j)}`.
    #[inline(never)]
    fn hear(&mut self, t: usize, cell: usize, e: Wide<T>) {
        let i = cell.checked_div(self.chain.labels).unwrap_or(0);
        let j = cell - i * self.chain.labels;
        let term = self.radix.mul(self.alpha(t - 1).at(&self.radix, i), e);
        let sum = self.radix.add(self.alpha(t).get(j), term);
        self.alpha_mut(t).set(j, sum);
    }

    /// `α_t(j) *= e^{s_t(j)}`.
    #[inline(never)]
    fn add_scores(&mut self, t: usize) {
        for (j, &s) in self.chain.row(t).iter().enumerate() {
            let product = self.radix.mul(self.alpha(t).get(j), self.radix.exp(s));
            self.alpha_mut(t).set(j, product);
        }
    }

    #[inline(never)]
    fn narrow_forward(&mut self, t: usize) -> Result<(), InferError> {
        let (radix, tiny, scores) = (self.radix, self.tiny, self.chain.row(t));
        let mut alpha = self.alpha_mut(t);
        let scale = alpha.narrow(&radix, tiny)?;
        let floor = alpha.floor;
        if floor != T::zero() {
            weigh(scores, alpha.exponent);
        }
        self.keep_floor(t, floor);
        self.radix.add_log(scale, &mut self.log);
        Ok(())
    }

    /// `log Z` from the last `α` and the logs of what all were divided by.
    #[inline(never)]
    pub(super) fn finish(&mut self) -> Result<T, InferError> {
        if let Some(last) = self.chain.positions.checked_sub(1) {
            let last = self.alpha(last);
            if last.floor != T::zero() {
                // Plain, with largest entry 1.
                let sum = last.mass.iter().fold(T::zero(), |sum, &m| sum + m);
                self.log.add(sum.ln());
            } else {
                let sum = self.radix.sum(last.wide(&self.radix));
                self.radix.add_log(sum, &mut self.log);
            }
        }
        finite(self.log.value())
    }

    #[cold]
    #[inline(never)]
    pub(super) fn backward_wide(&mut self, t: usize) -> Result<(), InferError> {
        self.weighted.floor = T::zero();
        for (j, &s) in self.chain.row(t + 1).iter().enumerate() {
            let product = self.radix.mul(self.beta.view().at(&self.radix, j), self.radix.exp(s));
            self.weighted.set(j, product);
        }
        let labels = self.chain.labels;
        for i in 0..labels {
            let mut sum = Wide::zero();
            for j in 0..labels {
                let term = self.radix.mul(self.weighted.view().get(j), self.entry(t, i * labels + j));
                sum = self.radix.add(sum, term);
            }
            self.next.set(i, sum);
        }
        self.scale = T::one();
        self.next.narrow(&self.radix, self.tiny).map(|_| ())
    }

    #[cold]
    #[inline(never)]
    pub(super) fn single_wide(&mut self, t: usize) {
        let labels = self.chain.labels;
        let mut total = Wide::zero();
        for i in 0..labels {
            total = self.radix.add(total, self.at(t, i));
        }
        for i in 0..labels {
            let share = self.radix.ratio(self.at(t, i), total);
            if let Some(m) = self.alpha_mut(t).mass.get_mut(i) {
                *m = share;
            }
        }
    }

    /// `α_t(i) β_t(i)`.
    #[inline(never)]
    fn at(&self, t: usize, i: usize) -> Wide<T> {
        self.radix.mul(self.alpha(t).at(&self.radix, i), self.beta.view().at(&self.radix, i))
    }

    #[cold]
    #[inline(never)]
    pub(super) fn pair_wide(&mut self, t: usize) {
        let cells = self.chain.cells();
        let mut total = Wide::zero();
        for cell in 0..cells {
            let e = self.entry(t, cell);
            total = self.radix.add(total, self.product(t, cell, e));
        }
        // An entry is looked at for the last time just before its place gets the result.
        for cell in 0..cells {
            let e = self.entry(t, cell);
            let share = self.radix.ratio(self.product(t, cell, e), total);
            if let Some(o) = self.pairs.get_mut(t * cells + cell) {
                *o = share;
            }
        }
    }

    /// `α_t(i) e^{A(i,j)} weighted(j)`.
    #[inline(never)]
    fn product(&self, t: usize, cell: usize, e: Wide<T>) -> Wide<T> {
        let i = cell.checked_div(self.chain.labels).unwrap_or(0);
        let j = cell - i * self.chain.labels;
        let step = self.radix.mul(self.alpha(t).at(&self.radix, i), e);
        self.radix.mul(step, self.weighted.view().at(&self.radix, j))
    }
}
