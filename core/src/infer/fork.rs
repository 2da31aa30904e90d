//! Independent chunks of work on one table, and who runs them.
//!
//! Core runs them one after the other ([`Sequential`]); a desk implements [`Fork`] with threads. The result does not depend on it.

use crate::error::InferError;
use crate::score::Score;

/// Largest and smallest entry of a table, the semiring's zeros left out. Both are exact whatever the order
/// in which parts are joined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span<T> {
    /// Largest entry, or the zero if there is no other.
    pub high: T,
    /// Smallest entry that is not zero, `+inf` if there is none.
    pub low: T,
}

impl<T: Score> Span<T> {
    /// The span of nothing.
    #[inline(always)]
    pub fn empty() -> Self {
        Self { high: T::NEG_INFINITY, low: T::INFINITY }
    }

    /// The span of two parts together.
    #[inline(always)]
    pub fn join(self, other: Self) -> Self {
        Self { high: self.high.larger(other.high), low: self.low.smaller(other.low) }
    }

    /// Measures a table.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline(always))]
    pub(crate) fn of(values: &[T], zero: T) -> Self {
        if cfg!(target_os = "none") {
            // Without vectors, which the lanes below are for: they would lie on the stack.
            return values.iter().fold(Self::empty(), |span, &v| span.join(Self::of_one(v, zero)));
        }
        let mut high = [T::NEG_INFINITY; 8];
        let mut low = [T::INFINITY; 8];
        let (chunks, tail) = values.as_chunks::<8>();
        for chunk in chunks {
            for (h, &v) in high.iter_mut().zip(chunk) {
                *h = if *h < v { v } else { *h };
            }
            for (l, &v) in low.iter_mut().zip(chunk) {
                let v = if zero < v { v } else { T::INFINITY };
                *l = if v < *l { v } else { *l };
            }
        }
        let mut span = Self::empty();
        for (&high, &low) in high.iter().zip(&low) {
            span = span.join(Self { high, low });
        }
        for &v in tail {
            span = span.join(Self::of_one(v, zero));
        }
        span
    }

    #[inline(always)]
    fn of_one(v: T, zero: T) -> Self {
        Self { high: v, low: if zero < v { v } else { T::INFINITY } }
    }
}

/// Work on a table that falls into independent chunks.
pub trait Job<T>: Sync {
    /// Computes chunk number `index` of the output; the first may be all of it. `temp` has [`temp_len`](Self::temp_len) entries of any content.
    fn chunk(&self, index: usize, chunk: &mut [T], temp: &mut [T]) -> Span<T>;
    /// Entries of temporary memory that one call needs.
    fn temp_len(&self) -> usize;
}

/// Who runs the chunks of a [`Job`]: one after the other ([`Sequential`]), or, on a desk, threads.
/// The result does not depend on it.
pub trait Fork<T> {
    /// Calls `job.chunk` for each `chunk_len` entries of `out` and joins the spans.
    fn run<J: Job<T>>(&mut self, out: &mut [T], chunk_len: usize, job: &J) -> Result<Span<T>, InferError>;
}

/// Runs chunks one after the other in the calling thread.
#[derive(Debug)]
pub struct Sequential<'m, T> {
    /// Temporary memory, of the plan's `temp_len`.
    pub temp: &'m mut [T],
}

impl<T: Score> Fork<T> for Sequential<'_, T> {
    fn run<J: Job<T>>(&mut self, out: &mut [T], chunk_len: usize, job: &J) -> Result<Span<T>, InferError> {
        crate::error::need(job.temp_len(), self.temp.len())?;
        if cfg!(target_os = "none") {
            // All in one: chunks are for threads, and the loop over them would take stack.
            return Ok(job.chunk(0, out, self.temp));
        }
        let mut span = Span::empty();
        for (i, chunk) in out.chunks_mut(chunk_len.max(1)).enumerate() {
            span = span.join(job.chunk(i, chunk, self.temp));
        }
        Ok(span)
    }
}
