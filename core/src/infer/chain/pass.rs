//! [`Pass`]: forward-backward under way.

use super::gap::{Reach, TURNS, exponentiate, turn};
use super::row::{Row, RowMut};
use super::{Chain, Transitions};
use crate::arena::Arena;
use crate::error::InferError;
use crate::math::Real;
use crate::wide::{Compensated, Radix};

/// All that the steps of forward-backward read and write, in one place: a step has the number of a position and takes from here
/// what it needs. So the steps of one position do not lie on the stack with each other's views.
pub(super) struct Pass<'c, 'a, 'm, T> {
    pub(super) chain: &'c Chain<'a, T>,
    pub(super) radix: Radix<T>,
    /// The least that a product may be: see [`steps`](super::steps).
    pub(super) tiny: T,
    /// Rows of `α`, of all positions or of two by turns. Plain rows have `e^s` for exponents.
    pub(super) mass: &'m mut [T],
    pub(super) exponent: &'m mut [T],
    pub(super) floors: &'m mut [T],
    pub(super) all: bool,
    /// Exponentials of a gap's transitions, row = from; the same with row = to, on the way back and only where
    /// [`TURNS`](super::gap::TURNS).
    pub(super) exp: &'m mut [T],
    pub(super) turned: &'m mut [T],
    /// Of the gap whose turn it is.
    pub(super) reach: Reach<T>,
    /// Pairwise marginals, if they are wanted. Where each gap has transitions of its own, their place keeps the exponentials
    /// for the way back, and the other array their floors.
    pub(super) pairs: &'m mut [T],
    pub(super) gap_floors: &'m mut [T],
    /// `β` of this position and of the one before it, `e^s β`, and what the latter was divided by.
    pub(super) beta: RowMut<'m, T>,
    pub(super) next: RowMut<'m, T>,
    pub(super) weighted: RowMut<'m, T>,
    pub(super) scale: T,
    /// `log Z` so far.
    pub(super) log: Compensated<T>,
}

impl<'c, 'a, 'm, T: Real> Pass<'c, 'a, 'm, T> {
    /// Without memory. Made in place: what is returned by value lies on the stack twice.
    #[inline(always)]
    pub(super) fn new(chain: &'c Chain<'a, T>) -> Self {
        let none = || RowMut::new(&mut [], &mut []);
        Self {
            chain,
            radix: Radix::new(),
            tiny: least::<T>() * T::from_f64(chain.labels as f64),
            mass: &mut [],
            exponent: &mut [],
            floors: &mut [],
            all: false,
            exp: &mut [],
            turned: &mut [],
            reach: Reach { shift: T::zero(), floor: T::zero() },
            pairs: &mut [],
            gap_floors: &mut [],
            beta: none(),
            next: none(),
            weighted: none(),
            scale: T::one(),
            log: Compensated::default(),
        }
    }

    /// Memory for `log Z` alone.
    #[inline(never)]
    pub(super) fn lend_two(&mut self, memory: &'m mut [T]) -> Result<(), InferError> {
        let labels = self.chain.labels;
        let mut arena = Arena::new(memory, Chain::<T>::log_z_len(labels))?;
        self.exp = arena.piece(self.chain.cells());
        self.mass = arena.piece(2 * labels);
        self.exponent = arena.piece(2 * labels);
        self.share();
        Ok(())
    }

    /// The outputs, of which the first holds `α` between the passes.
    #[inline(never)]
    pub(super) fn lend_outputs(
        &mut self,
        singles: &'m mut [T],
        pairs: Option<&'m mut [T]>,
    ) -> Result<(), InferError> {
        let (positions, labels) = (self.chain.positions, self.chain.labels);
        let len = Chain::<T>::singles_len(positions, labels);
        self.mass = Arena::new(singles, len)?.piece(len);
        if let Some(pairs) = pairs {
            let len = Chain::<T>::pairs_len(positions, labels);
            self.pairs = Arena::new(pairs, len)?.piece(len);
        }
        Ok(())
    }

    /// Memory for both passes.
    #[inline(never)]
    pub(super) fn lend_all(&mut self, memory: &'m mut [T]) -> Result<(), InferError> {
        let (positions, labels, cells) = (self.chain.positions, self.chain.labels, self.chain.cells());
        let mut arena = Arena::new(memory, Chain::<T>::forward_backward_len(positions, labels))?;
        self.exponent = arena.piece(positions.saturating_mul(labels));
        self.floors = arena.piece(positions);
        self.gap_floors = arena.piece(positions);
        self.exp = arena.piece(cells);
        self.turned = arena.piece(cells);
        for row in [&mut self.beta, &mut self.next, &mut self.weighted] {
            *row = RowMut::new(arena.piece(labels), arena.piece(labels));
        }
        self.all = true;
        self.share();
        Ok(())
    }

    /// Shared transitions are exponentiated once.
    fn share(&mut self) {
        if let Transitions::Shared(table) = self.chain.transitions {
            self.reach = exponentiate(table, self.exp);
            turn(self.exp, self.turned, self.chain.labels);
        }
    }

    /// Where the row of a position begins.
    #[inline]
    pub(super) fn place(&self, t: usize) -> usize {
        if self.all { t * self.chain.labels } else { (t & 1) * self.chain.labels }
    }

    /// The floor of a row of `α`. Of two by turns it stands with the rows of `β`, which are not there yet.
    #[inline]
    pub(super) fn floor(&self, t: usize) -> T {
        match (self.all, t & 1) {
            (true, _) => self.floors.get(t).copied().unwrap_or(T::zero()),
            (false, 0) => self.beta.floor,
            (false, _) => self.next.floor,
        }
    }

    #[inline]
    pub(super) fn keep_floor(&mut self, t: usize, floor: T) {
        match (self.all, t & 1) {
            (true, _) => {
                if let Some(slot) = self.floors.get_mut(t) {
                    *slot = floor;
                }
            }
            (false, 0) => self.beta.floor = floor,
            (false, _) => self.next.floor = floor,
        }
    }

    /// `α` of a position.
    #[inline]
    pub(super) fn alpha(&self, t: usize) -> Row<'_, T> {
        let (from, labels) = (self.place(t), self.chain.labels);
        Row {
            mass: self.mass.get(from..from + labels).unwrap_or(&[]),
            exponent: self.exponent.get(from..from + labels).unwrap_or(&[]),
            floor: self.floor(t),
        }
    }

    /// `α` of a position, to be written; its floor is to be [put back](Self::keep_floor).
    #[inline]
    pub(super) fn alpha_mut(&mut self, t: usize) -> RowMut<'_, T> {
        let (from, labels) = (self.place(t), self.chain.labels);
        let floor = self.floor(t);
        RowMut {
            mass: self.mass.get_mut(from..from + labels).unwrap_or(&mut []),
            exponent: self.exponent.get_mut(from..from + labels).unwrap_or(&mut []),
            floor,
        }
    }

    /// The log-scores of the gap after a position.
    #[inline]
    pub(super) fn log_table(&self, gap: usize) -> &'a [T] {
        self.chain.transitions.table(gap, self.chain.cells())
    }

    /// Whether each gap has transitions of its own.
    #[inline]
    pub(super) fn each(&self) -> bool {
        matches!(self.chain.transitions, Transitions::Each(_))
    }

    /// The exponentials of the gap whose turn it is, if they could be taken.
    #[inline]
    pub(super) fn exp_table(&self, gap: usize) -> &[T] {
        let cells = self.chain.cells();
        if self.each() && !self.pairs.is_empty() {
            self.pairs.get(gap * cells..(gap + 1) * cells).unwrap_or(&[])
        } else {
            self.exp
        }
    }

    /// Exponentiates the gap after a position on the way forward.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline)]
    pub(super) fn enter_gap(&mut self, gap: usize) {
        if self.each() {
            let (log, cells) = (self.log_table(gap), self.chain.cells());
            let out = match self.pairs.get_mut(gap * cells..(gap + 1) * cells) {
                Some(kept) if !kept.is_empty() => kept,
                _ => &mut *self.exp,
            };
            self.reach = exponentiate(log, out);
            if let Some(floor) = self.gap_floors.get_mut(gap) {
                *floor = self.reach.floor;
            }
        }
    }

    /// The same on the way back: what was kept is there.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline)]
    pub(super) fn enter_gap_back(&mut self, gap: usize) {
        if !self.each() {
            return;
        }
        if self.pairs.is_empty() {
            self.reach = exponentiate(self.log_table(gap), self.exp);
        } else {
            let floor = self.gap_floors.get(gap).copied().unwrap_or(T::zero());
            self.reach = Reach { shift: T::zero(), floor };
        }
        if TURNS {
            let turned = core::mem::take(&mut self.turned);
            turn(self.exp_table(gap), turned, self.chain.labels);
            self.turned = turned;
        }
    }
}

/// `e^-LOG_RANGE`.
fn least<T: Real>() -> T {
    let [.., least] = T::POWERS;
    least
}
