//! `log Z` and marginals: the two passes. [`kernel`](super::kernel) has the steps they are made of.

use super::Chain;
use super::gap::Gaps;
use super::kernel::{Kernel, Scores};
use super::row::{Row, RowMut};
use crate::arena::Arena;
use crate::error::InferError;
use crate::math::Real;
use crate::wide::Compensated;

/// The rows of `α` of all positions. As [`Kernel::start`] says, plain rows have `e^s` for exponents.
struct Alphas<'m, T> {
    mass: &'m mut [T],
    exponent: &'m mut [T],
    floors: &'m mut [T],
    /// What is known of each gap's exponentials that are kept.
    gap_floors: &'m mut [T],
    labels: usize,
}

impl<T: Real> Alphas<'_, T> {
    /// The row of position `t` to write, and the one before it (empty at the first position). By number: iterators over the
    /// three arrays would take more stack than all else in a pass.
    #[inline]
    fn forward(&mut self, t: usize) -> Option<(Row<'_, T>, RowMut<'_, T>)> {
        let from = t.checked_mul(self.labels)?;
        let last = from.saturating_sub(self.labels);
        let (masses, mass) = self.mass.split_at_mut_checked(from)?;
        let (exponents, exponent) = self.exponent.split_at_mut_checked(from)?;
        let floor = t.checked_sub(1).and_then(|t| self.floors.get(t)).copied().unwrap_or(T::zero());
        let before = Row { mass: masses.get(last..)?, exponent: exponents.get(last..)?, floor };
        Some((before, RowMut::new(mass.get_mut(..self.labels)?, exponent.get_mut(..self.labels)?)))
    }

    /// The row of position `t`, and the exponents of the one after it (empty at the last position).
    #[inline]
    fn backward(&mut self, t: usize) -> Option<(RowMut<'_, T>, &[T])> {
        let from = t.checked_mul(self.labels)?;
        let mass = self.mass.get_mut(from..)?.get_mut(..self.labels)?;
        let (exponent, later) = self.exponent.get_mut(from..)?.split_at_mut_checked(self.labels)?;
        let later = later.get(..self.labels).unwrap_or(&[]);
        Some((RowMut { mass, exponent, floor: self.floors.get(t).copied()? }, later))
    }
}

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
    pub fn log_z(&self, memory: &mut [T]) -> Result<T, InferError> {
        let labels = self.labels;
        let mut arena = Arena::new(memory, Self::log_z_len(labels))?;
        let mut gaps = Gaps::new(self, arena.take(self.cells())?, &mut []);
        let mut alpha = RowMut::new(arena.take(labels)?, arena.take(labels)?);
        let mut next = RowMut::new(arena.take(labels)?, arena.take(labels)?);
        let kernel = Kernel::new(labels);
        let mut log = Compensated::default();
        for (t, scores) in self.rows().enumerate() {
            match t.checked_sub(1) {
                None => kernel.start(scores, &mut next, &mut log)?,
                Some(gap) => {
                    kernel.forward(alpha.view(), &gaps.forward(gap, None), scores, &mut next, &mut log)?;
                }
            }
            core::mem::swap(&mut alpha, &mut next);
        }
        kernel.finish((self.positions > 0).then(|| alpha.view()), log)
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
    pub fn forward_backward(
        &self,
        singles: &mut [T],
        pairs: Option<&mut [T]>,
        memory: &mut [T],
    ) -> Result<T, InferError> {
        let (labels, cells, positions) = (self.labels, self.cells(), self.positions);
        let mass = exactly(singles, Self::singles_len(positions, labels))?;
        // Without pairs no rows are left of them either.
        let pairs = match pairs {
            Some(pairs) => exactly(pairs, Self::pairs_len(positions, labels))?,
            None => &mut [],
        };
        let mut arena = Arena::new(memory, Self::forward_backward_len(positions, labels))?;
        let exponent = arena.take(positions * labels)?;
        let (floors, gap_floors) = (arena.take(positions)?, arena.take(positions)?);
        let mut alphas = Alphas { mass, exponent, floors, gap_floors, labels };
        let mut gaps = Gaps::new(self, arena.take(cells)?, arena.take(cells)?);
        let mut row = || Ok::<_, InferError>(RowMut::new(arena.take(labels)?, arena.take(labels)?));
        let mut betas = [row()?, row()?, row()?];
        let kernel = Kernel::new(labels);
        let log_z = self.pass_forward(&kernel, &mut gaps, &mut alphas, pairs)?;
        self.pass_backward(&kernel, &mut gaps, &mut alphas, &mut betas, pairs)?;
        Ok(log_z)
    }

    /// All `α`; returns `log Z`. The place of the pairwise marginals keeps exponentials for the way back.
    #[inline(never)]
    fn pass_forward(
        &self,
        kernel: &Kernel<T>,
        gaps: &mut Gaps<'a, '_, T>,
        alphas: &mut Alphas<'_, T>,
        pairs: &mut [T],
    ) -> Result<T, InferError> {
        let mut log = Compensated::default();
        let cells = self.cells();
        for t in 0..self.positions {
            let (before, mut alpha) = alphas.forward(t).ok_or(InferError::Shape)?;
            let mut gap_floor = T::zero();
            match t.checked_sub(1) {
                None => kernel.start(self.row(t), &mut alpha, &mut log)?,
                Some(gap) => {
                    let kept = table(pairs, gap, cells);
                    let gap = gaps.forward(gap, kept);
                    gap_floor = gap.reach.floor;
                    kernel.forward(before, &gap, self.row(t), &mut alpha, &mut log)?;
                }
            }
            let floor = alpha.floor;
            *alphas.floors.get_mut(t).ok_or(InferError::Shape)? = floor;
            *alphas.gap_floors.get_mut(t).ok_or(InferError::Shape)? = gap_floor;
        }
        let from = self.positions.saturating_sub(1).saturating_mul(self.labels);
        let last = match (alphas.mass.get(from..), alphas.exponent.get(from..), alphas.floors.last()) {
            (Some(mass), Some(exponent), Some(&floor)) => Some(Row { mass, exponent, floor }),
            _ => None,
        };
        kernel.finish(last, log)
    }

    /// All `β`, one after the other, and with them the marginals in the place of `α` and in `pairs`.
    #[inline(never)]
    fn pass_backward(
        &self,
        kernel: &Kernel<T>,
        gaps: &mut Gaps<'a, '_, T>,
        alphas: &mut Alphas<'_, T>,
        [beta, next, weighted]: &mut [RowMut<'_, T>; 3],
        pairs: &mut [T],
    ) -> Result<(), InferError> {
        beta.set_ones();
        let cells = self.cells();
        for t in (0..self.positions).rev() {
            let gap_floor = alphas.gap_floors.get(t + 1).copied().unwrap_or(T::zero());
            let (mut alpha, later) = alphas.backward(t).ok_or(InferError::Shape)?;
            if !later.is_empty() {
                let pair = table(pairs, t, cells);
                let gap = gaps.backward(t, pair.as_deref(), gap_floor);
                let after = Scores { log: self.row(t.saturating_add(1)), exp: later };
                let floor = gap.reach.floor;
                let scale = kernel.backward(beta, &after, &gap, weighted, next)?;
                core::mem::swap(beta, next);
                if let Some(pair) = pair {
                    let exp = (gaps.shared(), floor);
                    let log = self.transitions.table(t, cells);
                    kernel.pair(&alpha, log, exp, weighted, (beta.mass, scale), pair);
                }
            }
            kernel.single(&mut alpha, beta);
            kernel.leave_scores(self.row(t), &mut alpha);
        }
        Ok(())
    }
}

/// The table of a gap in those of all gaps; none if pairs are not wanted.
#[inline]
fn table<T>(pairs: &mut [T], gap: usize, cells: usize) -> Option<&mut [T]> {
    pairs.get_mut(gap.checked_mul(cells)?..)?.get_mut(..cells)
}

/// The first `len` entries of an output.
fn exactly<T>(output: &mut [T], len: usize) -> Result<&mut [T], InferError> {
    Arena::new(output, len)?.take(len)
}
