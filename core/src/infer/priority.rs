//! A binary heap over all factors whose priorities can change in place, in caller memory.

use crate::arena::Arena;
use crate::math::Real;

/// Factors by priority, the largest first, the smaller number first among equals.
///
/// A raised priority takes effect when it has doubled: moving in the heap costs more than sending the
/// messages of a small factor, and a factor of 2 in the order of updates is worth little.
pub(super) struct Queue<'m, T> {
    heap: &'m mut [u32],
    place: &'m mut [u32],
    /// What the heap is ordered by.
    priority: &'m mut [T],
    /// What it would be ordered by; at most twice as much.
    pending: &'m mut [T],
}

fn get(x: &[u32], i: usize) -> u32 {
    x.get(i).copied().unwrap_or(0)
}

fn set(x: &mut [u32], i: usize, value: u32) {
    if let Some(x) = x.get_mut(i) {
        *x = value;
    }
}

impl<'m, T: Real> Queue<'m, T> {
    /// Entries that a queue of so many factors needs, of `u32` and as many real ones.
    pub(super) const fn entries(factors: usize) -> usize {
        factors.saturating_mul(2)
    }

    /// Without memory.
    #[inline(always)]
    pub(super) fn none() -> Self {
        Self { heap: &mut [], place: &mut [], priority: &mut [], pending: &mut [] }
    }

    /// Takes [`entries`](Self::entries) of each kind.
    pub(super) fn lend(&mut self, factors: usize, words: &mut Arena<'m, u32>, reals: &mut Arena<'m, T>) {
        (self.heap, self.place) = (words.piece(factors), words.piece(factors));
        (self.priority, self.pending) = (reals.piece(factors), reals.piece(factors));
        self.fill(T::zero());
    }

    /// Gives every factor the same priority.
    #[inline(never)]
    pub(super) fn fill(&mut self, priority: T) {
        self.priority.fill(priority);
        self.pending.fill(priority);
        for (i, (h, p)) in self.heap.iter_mut().zip(self.place.iter_mut()).enumerate() {
            (*h, *p) = (i as u32, i as u32);
        }
    }

    /// The first factor and its priority; factor 0 with priority 0 if there is none.
    pub(super) fn top(&self) -> (u32, T) {
        let k = get(self.heap, 0);
        (k, self.priority(k))
    }

    fn priority(&self, k: u32) -> T {
        self.priority.get(k as usize).copied().unwrap_or(T::zero())
    }

    fn before(&self, a: u32, b: u32) -> bool {
        let (pa, pb) = (self.priority(a), self.priority(b));
        pb < pa || (pa == pb && a < b)
    }

    /// Adds to a factor's priority.
    pub(super) fn raise(&mut self, k: u32, by: T) {
        let Some(pending) = self.pending.get_mut(k as usize) else { return };
        *pending += by;
        let (new, old) = (*pending, self.priority(k));
        if new > old + old {
            self.assign(k, new);
        }
    }

    /// Sets a factor's priority and moves it to where it belongs.
    #[inline(never)]
    pub(super) fn assign(&mut self, k: u32, priority: T) {
        if let (Some(p), Some(q)) = (self.priority.get_mut(k as usize), self.pending.get_mut(k as usize)) {
            (*p, *q) = (priority, priority);
        }
        let mut i = get(self.place, k as usize) as usize;
        while i > 0 {
            let up = (i - 1) / 2;
            let other = get(self.heap, up);
            if !self.before(k, other) {
                break;
            }
            set(self.heap, i, other);
            set(self.place, other as usize, i as u32);
            i = up;
        }
        loop {
            let left = 2 * i + 1;
            if left >= self.heap.len() {
                break;
            }
            let mut down = left;
            if left + 1 < self.heap.len() && self.before(get(self.heap, left + 1), get(self.heap, left)) {
                down = left + 1;
            }
            let other = get(self.heap, down);
            if !self.before(other, k) {
                break;
            }
            set(self.heap, i, other);
            set(self.place, other as usize, i as u32);
            i = down;
        }
        set(self.heap, i, k);
        set(self.place, k as usize, i as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::InferError;

    #[test]
    fn the_top_is_always_the_largest() -> Result<(), InferError> {
        let (mut words, mut reals) = ([0u32; 14], [0.0f64; 14]);
        let mut queue = Queue::none();
        queue.lend(7, &mut Arena::new(&mut words, 14)?, &mut Arena::new(&mut reals, 14)?);
        queue.fill(f64::INFINITY);
        assert_eq!(queue.top().0, 0);
        let mut mirror = [f64::INFINITY; 7];
        let mut x = 12345u32;
        for _ in 0..500 {
            x = x.wrapping_mul(1664525).wrapping_add(1013904223);
            let (k, p) = ((x >> 16) % 7, f64::from((x >> 8) % 5));
            queue.assign(k, p);
            if let Some(m) = mirror.get_mut(k as usize) {
                *m = p;
            }
            let best = crate::math::argmax(&mirror);
            assert_eq!(queue.top().0 as usize, best);
        }
        queue.fill(1.0);
        queue.raise(3, 0.5);
        assert_eq!(queue.top(), (0, 1.0));
        queue.raise(3, 1.0);
        assert_eq!(queue.top(), (3, 2.5));
        Ok(())
    }
}
