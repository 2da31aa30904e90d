//! What is maximised over sequences: lists of components for chains of any length.

use crate::data::sequences::Gold;
use std::fmt;
use std::num::NonZeroUsize;
use std::ops::Range;

/// What is maximised. All but the last are composite likelihoods (Thesis eq. 2.5): sums of `log P(y_A | y_B, x)` over parts `A` of a sequence, where `B` is the rest of it, of which only the
/// labels next to `A` matter. Each item is in some part, so the estimates are consistent (Prop. 2.5.1, 2.5.2).
///
/// ```
/// use gibbsite::objective::estimator::Estimator;
/// assert_eq!(Estimator::components("tree"), Some(Estimator::Likelihood)); // a chain is one
/// assert_eq!(Estimator::components("k:5").unwrap().to_string(), "composite (k:5)");
/// assert_eq!(Estimator::components("k:0"), None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Estimator {
    /// The likelihood: one part.
    #[default]
    Likelihood,
    /// The pseudolikelihood: each label given its neighbours'. Items of which one of these labels is not known say nothing.
    Pseudo,
    /// Each two items that follow each other, given the labels before and after them.
    Pairs,
    /// So many items after the other, given the labels before and after them, then the next ones.
    Blocks(NonZeroUsize),
    /// Each factor by itself, items and gaps (eq. 3.1; Sutton and McCallum 2005): fast, and a bound of the likelihood, but not consistent.
    Piecewise,
}

impl Estimator {
    /// By the name of its components: `mle`, `auto` and `tree` are the likelihood; `pseudo`, `pairs`, `k:K`.
    pub fn components(name: &str) -> Option<Self> {
        Some(match name {
            "auto" | "mle" | "tree" => Self::Likelihood,
            "pseudo" => Self::Pseudo,
            "pairs" => Self::Pairs,
            _ => Self::Blocks(name.strip_prefix("k:")?.parse().ok()?),
        })
    }

    /// Whether its parts are chains.
    pub(super) fn has_chains(self) -> bool {
        !matches!(self, Self::Pseudo | Self::Piecewise)
    }

    /// Items of a part, and how far apart parts begin.
    fn window(self) -> (usize, usize) {
        match self {
            Self::Likelihood | Self::Piecewise => (usize::MAX, usize::MAX),
            Self::Pseudo => (1, 1),
            Self::Pairs => (2, 1),
            Self::Blocks(items) => (items.get(), items.get()),
        }
    }

    /// The parts of a sequence. Where a label at a border is not known, the part goes on to the next one that is: what is given must be known. Parts that become the same by that are one.
    pub(super) fn parts(self, golds: &[Gold]) -> impl Iterator<Item = Range<usize>> + '_ {
        let (length, step) = self.window();
        let unknown = |t: usize| golds.get(t).is_some_and(|gold| gold.known().is_none());
        let (mut begin, mut over) = (0usize, false);
        // Borders only move ahead: each item is looked at once.
        let (mut first, mut looked, mut last) = (0, 0, 0);
        let mut before = 0..0;
        std::iter::from_fn(move || {
            while !over {
                let end = begin.saturating_add(length).min(golds.len());
                over = end == golds.len();
                while looked < begin {
                    looked += 1;
                    if !unknown(looked - 1) {
                        first = looked;
                    }
                }
                last = last.max(end);
                while unknown(last) {
                    last += 1;
                }
                begin = begin.saturating_add(step);
                let part = first..last;
                if part != before && !part.is_empty() {
                    before = part.clone();
                    return Some(part);
                }
            }
            None
        })
    }
}

impl fmt::Display for Estimator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Likelihood => write!(f, "mle"),
            Self::Pseudo => write!(f, "pseudo"),
            Self::Pairs => write!(f, "composite (pairs)"),
            Self::Blocks(items) => write!(f, "composite (k:{items})"),
            Self::Piecewise => write!(f, "piecewise"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_end_where_labels_are_known() {
        let parts = |name: &str, known: &str| -> Vec<(usize, usize)> {
            let gold = |c: char| if c == '?' { Gold::ANY } else { Gold::label(0) };
            let golds: Vec<Gold> = known.chars().map(gold).collect();
            Estimator::components(name).unwrap().parts(&golds).map(|part| (part.start, part.end)).collect()
        };
        assert_eq!(parts("mle", "a?a"), [(0, 3)]);
        assert_eq!(parts("k:2", "aaaaa"), [(0, 2), (2, 4), (4, 5)]);
        assert_eq!(parts("k:5", "aaaaa"), [(0, 5)]);
        assert_eq!(parts("pairs", "aaaa"), [(0, 2), (1, 3), (2, 4)]);
        assert_eq!(parts("pairs", "a"), [(0, 1)]);
        assert_eq!(parts("pairs", ""), []);
        assert_eq!(parts("k:2", "aa??aa"), [(0, 4), (2, 4), (2, 6)]);
        assert_eq!(parts("k:1", "a??a"), [(0, 3), (1, 3), (1, 4)]);
        assert_eq!(parts("k:1", "????"), [(0, 4)]);
        assert_eq!(parts("k:18446744073709551615", "aa"), [(0, 2)]);
    }
}
