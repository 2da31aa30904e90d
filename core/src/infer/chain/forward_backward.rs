//! `log Z` and marginals: the two passes. [`steps`](super::steps) has what they are made of.

use super::Chain;
use super::pass::Pass;
use crate::error::InferError;
use crate::math::Real;

impl<'a, T: Real> Chain<'a, T> {
    /// Entries of memory that [`log_z`](Self::log_z) needs, whatever the length of the chain.
    pub const fn log_z_len(labels: usize) -> usize {
        labels.saturating_mul(labels).saturating_add(labels.saturating_mul(4))
    }

    /// `log Z` alone: the forward half of [`forward_backward`](Self::forward_backward), which keeps only
    /// two rows.
    ///
    /// ```
    /// # use gibbsite_core::infer::chain::{Chain, Transitions};
    /// let chain = Chain::new(3, &[0.0; 30], Transitions::Shared(&[0.0; 9]))?;
    /// let mut memory = [0.0f64; Chain::<f64>::log_z_len(3)];
    /// assert!((chain.log_z(&mut memory)? - 10.0 * 3f64.ln()).abs() < 1e-12);
    /// # Ok::<(), gibbsite_core::error::InferError>(())
    /// ```
    // Inlined, here and in other engines: its frame and its caller's are then one.
    #[inline(always)]
    pub fn log_z(&self, memory: &mut [T]) -> Result<T, InferError> {
        let mut pass = Pass::new(self);
        pass.lend_two(memory)?;
        pass.go_forward()
    }

    /// Entries of `singles` that [`forward_backward`](Self::forward_backward) writes.
    pub const fn singles_len(positions: usize, labels: usize) -> usize {
        positions.saturating_mul(labels)
    }

    /// Entries of `pairs` that [`forward_backward`](Self::forward_backward) writes.
    pub const fn pairs_len(positions: usize, labels: usize) -> usize {
        positions.saturating_sub(1).saturating_mul(labels).saturating_mul(labels)
    }

    /// Entries of memory that [`forward_backward`](Self::forward_backward) needs.
    pub const fn forward_backward_len(positions: usize, labels: usize) -> usize {
        let rows = positions.saturating_mul(labels.saturating_add(2));
        let tables = labels.saturating_mul(labels).saturating_mul(2);
        rows.saturating_add(tables).saturating_add(labels.saturating_mul(6))
    }

    /// `log Z` (returned), `P(y_t = j)` into `singles` (row per position) and, if wanted,
    /// `P(y_t = i, y_{t+1} = j)` into `pairs` (an `L×L` table per gap).
    ///
    /// ```text
    /// α_0 = e^{s_0},  α_t(j) = e^{s_t(j)} Σ_i α_{t-1}(i) e^{A(i,j)}
    /// β_{T-1} = 1,    β_t(i) = Σ_j e^{A(i,j)} e^{s_{t+1}(j)} β_{t+1}(j)
    /// P(y_t = j) ∝ α_t(j) β_t(j),   P(y_t = i, y_{t+1} = j) ∝ α_t(i) e^{A(i,j) + s_{t+1}(j)} β_{t+1}(j)
    /// ```
    ///
    /// Source: Rabiner 1989 (scaled recurrences), Lafferty et al. 2001. Ours differs in one thing: a
    /// scaled step is taken only when the product of the smallest nonzero `α`, `e^A` and `e^s` shows
    /// that nothing nonzero can underflow. Other steps carry an exponent with each number (`wide.rs`),
    /// which loses no more digits at scores of ±1e6 than at ±1.
    ///
    /// No stopping rule: two passes, `O(T·L²)` time. `singles` also keeps `α` between them. Short
    /// memory is noticed before anything is written; after another error `singles` and `pairs` hold
    /// nothing of use. [`InferError::BadValue`] also stands for a `log Z` too large for `T`.
    // Inlined: its frame and its caller's are then one.
    #[inline(always)]
    pub fn forward_backward(
        &self,
        singles: &mut [T],
        pairs: Option<&mut [T]>,
        memory: &mut [T],
    ) -> Result<T, InferError> {
        let mut pass = Pass::new(self);
        pass.lend_outputs(singles, pairs)?;
        pass.lend_all(memory)?;
        let log_z = pass.go_forward()?;
        pass.go_back()?;
        Ok(log_z)
    }
}

impl<T: Real> Pass<'_, '_, '_, T> {
    /// All `α`; returns `log Z`.
    #[inline(never)]
    fn go_forward(&mut self) -> Result<T, InferError> {
        for t in 0..self.chain.positions {
            if t == 0 {
                if !self.start()? {
                    self.start_wide()?;
                }
                continue;
            }
            self.enter_gap(t - 1);
            if !self.forward(t)? {
                self.forward_wide(t)?;
            }
        }
        self.finish()
    }

    /// All `β`, one after the other, and with them the marginals in the place of `α` and in `pairs`.
    #[inline(never)]
    fn go_back(&mut self) -> Result<(), InferError> {
        self.beta.set_ones();
        for t in (0..self.chain.positions).rev() {
            if t + 1 < self.chain.positions {
                self.enter_gap_back(t);
                if !self.backward(t)? {
                    self.backward_wide(t)?;
                }
                core::mem::swap(&mut self.beta, &mut self.next);
                if !self.pairs.is_empty() && !self.pair(t) {
                    self.pair_wide(t);
                }
            }
            if !self.single(t) {
                self.single_wide(t);
            }
            self.leave_scores(t);
        }
        Ok(())
    }
}
