//! Exponentiated scores: of one row or table with [`exponentiate`], of the transitions with [`Gaps`].

use super::row::extent;
use super::{Chain, Transitions};
use crate::arena::rows;
use crate::math::Real;
use crate::wide::{Radix, Wide};

/// How a row or table of logs was exponentiated: `e^{x - shift}`, nonzero entries at least `floor`, all
/// at most 1. `floor = 0` if its range is too wide for that, then `shift = 0` and nothing was written.
#[derive(Clone, Copy)]
pub(super) struct Reach<T> {
    pub(super) shift: T,
    pub(super) floor: T,
}

/// Writes the exponentials; the floor is one of them, so it costs no further `exp`.
#[cfg_attr(target_os = "none", inline(never))]
#[cfg_attr(not(target_os = "none"), inline)]
pub(super) fn exponentiate<T: Real>(log: &[T], out: &mut [T]) -> Reach<T> {
    let (top, low) = extent(log, T::NEG_INFINITY);
    if top == T::NEG_INFINITY {
        out.fill(T::zero());
        return Reach { shift: T::zero(), floor: T::one() };
    }
    if T::LOG_RANGE < top - low {
        return Reach { shift: T::zero(), floor: T::zero() };
    }
    let mut floor = T::one();
    for (o, &x) in out.iter_mut().zip(log) {
        *o = (x - top).exp();
        floor = if x == low { *o } else { floor };
    }
    Reach { shift: top, floor }
}

/// The transitions between two positions.
pub(super) struct Gap<'g, T> {
    log: &'g [T],
    /// `e^{A - shift}` with row = from, if `reach.floor > 0`.
    pub(super) exp: &'g [T],
    /// The same with row = to; only on the way back, and only on a desk, where vectors want it so.
    pub(super) turned: &'g [T],
    pub(super) reach: Reach<T>,
}

impl<T: Real> Gap<'_, T> {
    /// An entry `e^{A - shift}`; 0 if there is none. If plain, the exponentials are there and need not be taken again.
    pub(super) fn at(&self, radix: &Radix<T>, cell: usize) -> Wide<T> {
        entry(self.log, self.exp, self.reach.floor, radix, cell)
    }
}

/// [`Gap::at`] for those who have its parts.
pub(super) fn entry<T: Real>(log: &[T], exp: &[T], floor: T, radix: &Radix<T>, cell: usize) -> Wide<T> {
    let plain = floor != T::zero();
    match if plain { exp } else { log }.get(cell) {
        Some(&x) if plain => radix.widen(x),
        Some(&x) => radix.exp(x),
        None => Wide::zero(),
    }
}

/// Gives the [`Gap`]s of a chain one by one. Shared transitions are exponentiated once.
pub(super) struct Gaps<'a, 'm, T> {
    chain: &'m Chain<'a, T>,
    exp: &'m mut [T],
    turned: &'m mut [T],
    /// Of shared transitions.
    reach: Reach<T>,
}

impl<'a, 'm, T: Real> Gaps<'a, 'm, T> {
    /// `exp` has room for a table; `turned` too, or nobody goes [`backward`](Self::backward).
    pub(super) fn new(chain: &'m Chain<'a, T>, exp: &'m mut [T], turned: &'m mut [T]) -> Self {
        let mut reach = Reach { shift: T::zero(), floor: T::zero() };
        if let Transitions::Shared(table) = chain.transitions {
            reach = exponentiate(table, exp);
            turn(exp, turned, chain.labels);
        }
        Self { chain, exp, turned, reach }
    }

    /// The gap after position `t`. Tables of their own are exponentiated into `kept`, if there is such a
    /// place, which [`backward`](Self::backward) then takes them from.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline)]
    pub(super) fn forward<'s>(&'s mut self, t: usize, kept: Option<&'s mut [T]>) -> Gap<'s, T> {
        let log = self.chain.transitions.table(t, self.chain.cells());
        if let Transitions::Shared(_) = self.chain.transitions {
            return Gap { log, exp: self.exp, turned: &[], reach: self.reach };
        }
        let exp = kept.unwrap_or(&mut *self.exp);
        let reach = exponentiate(log, exp);
        Gap { log, exp, turned: &[], reach }
    }

    /// The gap after position `t`, on the way back. `kept` is where [`forward`](Self::forward) left its table, with its floor.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline)]
    pub(super) fn backward<'s>(&'s mut self, t: usize, kept: Option<&'s [T]>, floor: T) -> Gap<'s, T> {
        let log = self.chain.transitions.table(t, self.chain.cells());
        let mut reach = self.reach;
        let each = matches!(self.chain.transitions, Transitions::Each(_));
        if each && kept.is_none() {
            reach = exponentiate(log, self.exp);
        }
        let mut exp = &*self.exp;
        if let Some(kept) = kept.filter(|_| each) {
            (exp, reach) = (kept, Reach { shift: T::zero(), floor });
        }
        if each {
            turn(exp, self.turned, self.chain.labels);
        }
        Gap { log, exp, turned: if TURNS { self.turned } else { &[] }, reach }
    }

    /// The exponentials of shared transitions; none if each gap has its own.
    pub(super) fn shared(&self) -> Option<&[T]> {
        match self.chain.transitions {
            Transitions::Shared(_) => Some(self.exp),
            Transitions::Each(_) => None,
        }
    }
}

/// Whether tables are turned around for the way back: a desk's vectors go along rows.
const TURNS: bool = !cfg!(target_os = "none");

fn turn<T: Copy>(table: &[T], out: &mut [T], labels: usize) {
    if TURNS {
        transpose(table, out, labels);
    }
}

#[inline(never)]
fn transpose<T: Copy>(table: &[T], out: &mut [T], labels: usize) {
    for (i, row) in rows(table, labels).enumerate() {
        for (o, &v) in out.iter_mut().skip(i).step_by(labels.max(1)).zip(row) {
            *o = v;
        }
    }
}
