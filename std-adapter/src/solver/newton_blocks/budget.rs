//! How a budget of memory is spent.
//!
//! What does not depend on the entries: stretches of samples that are worked on, `K` if it takes at most a quarter, and a few numbers for each input and output. The rest is for entries that may move
//! (vectors of conjugate gradients and sums of stretches, about 150 bytes each), for the factor of Λ (44 bytes an entry) and what is left of it for the preconditioner; while entries are looked for, it
//! is for blocks of columns instead.

use super::BlockError;
use super::active::Active;
use super::screen::Candidate;

/// A budget and what it is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    bytes: u64,
    /// What is needed whatever the entries are.
    base: u64,
    /// Samples of a stretch, and stretches at a time.
    pub(super) width: usize,
    pub(super) at_once: usize,
    /// Whether `K` is kept.
    pub(super) keep: bool,
}

/// Rows of a stretch: more make longer loops, but it should fit a cache and the budget.
const WIDTHS: [usize; 6] = [256, 128, 64, 32, 16, 8];
/// Most threads that stretches are given to: each has memory of its own. All are paid for, however many there are, so that what fits does not depend on them.
const THREADS: usize = 4;
/// Most columns of a block: more do not make products faster.
const COLUMNS: u64 = 512;

impl Budget {
    pub(super) fn new(bytes: u64, (m, n, p): (usize, usize, usize), threads: usize) -> Self {
        let stretch = |width: usize| 16 * (p * width.min(m.max(1))) as u64;
        // A matter of budget and shape alone, so that sums do not depend on threads.
        let width = WIDTHS.into_iter().find(|&w| stretch(w) <= bytes / 32).unwrap_or(WIDTHS[5]).min(m.max(1));
        let at_once = threads.clamp(1, THREADS);
        let kept = 8 * (m as u64) * (p as u64);
        let keep = kept <= bytes / 4;
        let base = THREADS as u64 * stretch(width) + if keep { kept } else { 0 } + 64 * (n + 2 * p) as u64;
        Self { bytes, base, width, at_once, keep }
    }

    /// For entries that may move, of which so many are pairs.
    fn entries(entries: u64, pairs: u64) -> u64 {
        (118 + 8 * THREADS as u64) * entries + 36 * pairs
    }

    /// All of it.
    pub(super) fn total(&self) -> u64 {
        self.bytes
    }

    fn needed(&self, active: &Active, factor: u64) -> u64 {
        self.base + Self::entries(active.len() as u64, active.pairs.len() as u64) + 44 * factor
    }

    /// What is left beside these entries and so many entries of the factor.
    ///
    /// # Errors
    /// [`BlockError::Memory`] if that is less than nothing.
    pub(super) fn left(&self, active: &Active, factor: u64) -> Result<u64, BlockError> {
        let need = self.needed(active, factor);
        self.bytes.checked_sub(need).ok_or(BlockError::Memory { need })
    }

    /// How many columns a block has, at `per_column` bytes each, and how many candidates are kept, while a point with these entries is there.
    ///
    /// # Errors
    /// [`BlockError::Memory`] if there is no room for one.
    pub(super) fn blocks(
        &self,
        active: &Active,
        factor: u64,
        per_column: u64,
    ) -> Result<(usize, usize), BlockError> {
        let candidates = (self.bytes / 8 / size_of::<Candidate>() as u64).max(16);
        let need =
            self.base + 40 * active.len() as u64 + 20 * factor + candidates * size_of::<Candidate>() as u64;
        let room = self.bytes.saturating_sub(need) / per_column.max(1);
        if room == 0 {
            return Err(BlockError::Memory { need: need + per_column });
        }
        Ok((room.min(COLUMNS) as usize, candidates as usize))
    }

    /// Most entries that may move, if a quarter of what is left is for the factor.
    pub(super) fn most(&self) -> usize {
        let each = Self::entries(1, 1);
        (self.bytes.saturating_sub(self.base) / 4 * 3 / each) as usize
    }
}
