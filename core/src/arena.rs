//! Caller memory cut into the arrays of a routine: [`Arena`] hands out pieces of any length, [`Rows`]
//! goes through pieces of one length.

use crate::error::{InferError, need};

/// A memory argument that is handed out piece by piece, after one check of its length.
pub(crate) struct Arena<'m, X>(&'m mut [X]);

impl<'m, X> Arena<'m, X> {
    /// All of `memory`, which must have `needed` entries.
    pub(crate) fn new(memory: &'m mut [X], needed: usize) -> Result<Self, InferError> {
        need(needed, memory.len())?;
        Ok(Self(memory))
    }

    /// The next `len` entries. It fails only if the routine takes more than its `…_len` has promised.
    pub(crate) fn take(&mut self, len: usize) -> Result<&'m mut [X], InferError> {
        let short = InferError::Memory { needed: len, given: self.0.len() };
        let (piece, rest) = core::mem::take(&mut self.0).split_at_mut_checked(len).ok_or(short)?;
        self.0 = rest;
        Ok(piece)
    }
}

impl<'m, X> Arena<'m, X> {
    /// [`take`](Self::take) for those who take no more than was checked: beyond, nothing is left to give. Without a `Result`, which
    /// would lie on the stack.
    #[cfg_attr(target_os = "none", inline(never))]
    pub(crate) fn piece(&mut self, len: usize) -> &'m mut [X] {
        match core::mem::take(&mut self.0).split_at_mut_checked(len) {
            Some((piece, rest)) => {
                self.0 = rest;
                piece
            }
            None => &mut [],
        }
    }
}

/// Rows of equal length, as `chunks_exact` gives them, but without a division that the compiler would
/// guard by a panic: rows of length 0 are none. From the front a remainder is left out; from the back
/// there must be none.
pub(crate) struct Rows<S> {
    rest: S,
    len: usize,
}

/// Rows to read.
#[inline]
pub(crate) fn rows<X>(all: &[X], len: usize) -> Rows<&[X]> {
    Rows { rest: all, len }
}

/// Rows to write.
#[inline]
pub(crate) fn rows_mut<X>(all: &mut [X], len: usize) -> Rows<&mut [X]> {
    Rows { rest: all, len }
}

impl<'r, X> Iterator for Rows<&'r [X]> {
    type Item = &'r [X];

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (row, rest) = self.rest.split_at_checked(self.len)?;
        self.rest = rest;
        (!row.is_empty()).then_some(row)
    }
}

impl<'r, X> Iterator for Rows<&'r mut [X]> {
    type Item = &'r mut [X];

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (row, rest) = core::mem::take(&mut self.rest).split_at_mut_checked(self.len)?;
        self.rest = rest;
        (!row.is_empty()).then_some(row)
    }
}

impl<X> DoubleEndedIterator for Rows<&[X]> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        let (rest, row) = self.rest.split_at_checked(self.rest.len().checked_sub(self.len)?)?;
        self.rest = rest;
        (!row.is_empty()).then_some(row)
    }
}

impl<X> DoubleEndedIterator for Rows<&mut [X]> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        let at = self.rest.len().checked_sub(self.len)?;
        let (rest, row) = core::mem::take(&mut self.rest).split_at_mut_checked(at)?;
        self.rest = rest;
        (!row.is_empty()).then_some(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arena_gives_what_it_has_and_no_more() -> Result<(), InferError> {
        let mut memory = [1, 2, 3, 4];
        assert_eq!(Arena::new(&mut memory, 5).err(), Some(InferError::Memory { needed: 5, given: 4 }));
        let mut arena = Arena::new(&mut memory, 3)?;
        assert_eq!(arena.take(1), Ok(&mut [1][..]));
        assert_eq!(arena.take(2), Ok(&mut [2, 3][..]));
        assert_eq!(arena.take(2), Err(InferError::Memory { needed: 2, given: 1 }));
        Ok(())
    }

    #[test]
    fn rows_from_both_ends() {
        let all = [1, 2, 3, 4, 5, 6];
        assert!(rows(&all, 2).eq([[1, 2], [3, 4], [5, 6]]));
        assert!(rows(&all, 2).rev().eq([[5, 6], [3, 4], [1, 2]]));
        assert!(rows(&all, 4).eq([[1, 2, 3, 4]]));
        assert_eq!(rows(&all, 0).count() + rows(&all, 0).rev().count(), 0);
        let mut all = all;
        for (to, row) in rows_mut(&mut all, 3).rev().enumerate() {
            row.fill(to);
        }
        assert_eq!(all, [1, 1, 1, 0, 0, 0]);
    }
}
