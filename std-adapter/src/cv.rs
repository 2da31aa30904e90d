//! K-fold cross-validation, as far as it does not depend on what is learned: folds, grids of penalties, means with standard errors, the choice.
//!
//! [`regress::cv`](crate::regress::cv) tries a path of `λ`; [`sequence::cv`](crate::sequence::cv) and [`field::cv`](crate::field::cv) try pairs of `C₁` and `C₂`.

use crate::sequence::score::Hits;
use crate::solver::lbfgs::Point;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::fmt;

/// `C₂` that are tried where nothing else is asked for.
pub const DEFAULT_L2: [f64; 7] = [10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01];

/// The weights of `‖θ‖₁` and `½‖θ‖²`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Penalties {
    /// `C₁`.
    pub l1: f64,
    /// `C₂`.
    pub l2: f64,
}

/// What to try, and on how many folds.
#[derive(Clone, Debug, PartialEq)]
pub struct GridParams {
    /// Parts that are held out in turn; at least 2.
    pub folds: usize,
    /// Penalties in the order in which they are tried, each from the weights of the one before.
    pub grid: Vec<Penalties>,
    /// Seed of the shuffle: folds depend on nothing else.
    pub seed: u64,
}

impl GridParams {
    /// All pairs of a `C₁` and a `C₂`, the strongest first, each once.
    ///
    /// ```
    /// use gibbsite::cv::GridParams;
    /// let grid = GridParams::new(5, &[0.0], &[0.1, 10.0, 1.0, 1.0], 0).grid;
    /// assert_eq!(grid.iter().map(|p| p.l2).collect::<Vec<_>>(), [10.0, 1.0, 0.1]);
    /// ```
    pub fn new(folds: usize, l1: &[f64], l2: &[f64], seed: u64) -> Self {
        let falling = |list: &[f64]| {
            let mut list = list.to_vec();
            list.sort_by(|a, b| b.total_cmp(a));
            list.dedup();
            list
        };
        let l2 = falling(l2);
        let pairs = falling(l1).into_iter().flat_map(|l1| l2.iter().map(move |&l2| Penalties { l1, l2 }));
        Self { folds, grid: pairs.collect(), seed }
    }
}

/// One pair of penalties, tried on all folds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GridPoint {
    /// The penalties.
    pub penalties: Penalties,
    /// Held-out `-log p(y|x)` of a sequence or row.
    pub log_loss: f64,
    /// Its standard error over the folds.
    pub log_loss_se: f64,
    /// Held-out labels that are known.
    pub items: usize,
    /// Those that were predicted right.
    pub right: usize,
    /// Held-out chunks, if labels mean chunks.
    pub chunk: Option<Hits>,
    /// Whether the fits on all folds met their tolerance.
    pub converged: bool,
}

/// What was found on a grid.
#[derive(Clone, Debug, PartialEq)]
pub struct GridFound {
    /// What was tried on all folds, in the order of the grid.
    pub points: Vec<GridPoint>,
    /// Index of the point with the least log loss; of equals the first.
    pub best: usize,
    /// Whether losses are those of each label given all others, as exact inference was too wide.
    pub pseudo: bool,
    /// Whether somebody asked to stop before all was tried.
    pub interrupted: bool,
}

impl GridFound {
    /// The choice.
    pub fn chosen(&self) -> &GridPoint {
        &self.points[self.best]
    }

    /// Whether the choice is the weakest or the strongest of several values that were tried, so that a better one may lie outside.
    pub fn at_edge(&self) -> bool {
        let chosen = self.chosen().penalties;
        [|p: Penalties| p.l1, |p: Penalties| p.l2].into_iter().any(|of| {
            let all = || self.points.iter().map(|p| of(p.penalties));
            let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
            // Nothing is weaker than none.
            low < high && (of(chosen) == high || of(chosen) == low && low > 0.0)
        })
    }
}

/// A step of a fit on all but a fold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// The penalties.
    pub penalties: Penalties,
    /// The fold that is held out, from 0.
    pub fold: usize,
    /// Where the fit is.
    pub point: Point,
}

/// Is shown each step of each fit; returns whether to go on.
pub type Watch<'a> = dyn FnMut(&Trial) -> bool + 'a;

/// Why nothing was found.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum GridError<E> {
    /// More folds than samples, or fewer than two.
    Folds {
        /// Folds asked for.
        folds: usize,
        /// Samples there are.
        samples: usize,
    },
    /// A fit failed, or its predictions.
    Fit(E),
    /// Interrupted before anything was tried on all folds, or the grid is empty.
    Nothing,
}

impl<E: fmt::Display> fmt::Display for GridError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folds { folds, samples } => write!(f, "{}", Uneven(*folds, *samples)),
            Self::Fit(error) => write!(f, "{error}"),
            Self::Nothing => write!(f, "interrupted before a penalty was tried on all folds"),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for GridError<E> {}

/// Folds that cannot be made of so many samples.
pub(crate) struct Uneven(pub(crate) usize, pub(crate) usize);

impl fmt::Display for Uneven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(folds, samples) = self;
        write!(
            f,
            "{folds} folds of {samples} samples: expected at least 2 folds and no more than there are samples"
        )
    }
}

/// What weights did on a fold that they had not seen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Held {
    /// Sequences or rows.
    pub(crate) samples: usize,
    /// `Σ -log p`.
    pub(crate) loss: f64,
    pub(crate) items: usize,
    pub(crate) right: usize,
    pub(crate) chunk: Option<Hits>,
    /// See [`GridFound::pseudo`].
    pub(crate) pseudo: bool,
    pub(crate) converged: bool,
}

/// A fold, and the weights that were last fitted to the others.
pub(crate) struct Fold {
    pub(crate) number: usize,
    /// Samples to learn from, ascending.
    pub(crate) kept: Vec<usize>,
    /// Samples that are held out, ascending.
    pub(crate) held: Vec<usize>,
    /// Where the next fit begins; nowhere for the first.
    pub(crate) theta: Option<Vec<f64>>,
}

/// So many samples as folds, shuffled by the seed and dealt out in turn.
pub(crate) fn folds<E>(samples: usize, how: &GridParams) -> Result<Vec<Fold>, GridError<E>> {
    if !possible(how.folds, samples) {
        return Err(GridError::Folds { folds: how.folds, samples });
    }
    let fold_of = deal(&shuffled(samples, how.seed), how.folds);
    let fold = |number| {
        let (kept, held) = split(&fold_of, number);
        Fold { number, kept, held, theta: None }
    };
    Ok((0..how.folds).map(fold).collect())
}

/// Tries each pair of penalties on each fold.
///
/// `each` fits what is not in the fold, from where the same fold's fit for the penalties before ended, and says what that does on the fold; nothing if
/// it was interrupted. `log_loss = Σ_k n_k m_k / n` over folds of `n_k` samples with mean losses `m_k`, and its standard error as in
/// [`mean_and_error`]. One pair after the other: after an interruption those that were tried on all folds are there to choose from.
pub(crate) fn over_grid<F, E>(
    folds: &mut [F],
    grid: &[Penalties],
    mut each: impl FnMut(&mut F, Penalties) -> Result<Option<Held>, E>,
) -> Result<GridFound, GridError<E>> {
    let (mut points, mut pseudo) = (Vec::new(), false);
    for &penalties in grid {
        let held: Result<Option<Vec<Held>>, E> = folds.iter_mut().map(|fold| each(fold, penalties)).collect();
        let Some(held) = held.map_err(GridError::Fit)? else { break };
        pseudo |= held.iter().any(|h| h.pseudo);
        points.push(join(penalties, &held));
    }
    let best = least(points.iter().map(|p| p.log_loss)).ok_or(GridError::Nothing)?;
    let interrupted = points.len() < grid.len();
    Ok(GridFound { points, best, pseudo, interrupted })
}

fn join(penalties: Penalties, held: &[Held]) -> GridPoint {
    let losses: Vec<(usize, f64)> = held.iter().map(|h| (h.samples, h.loss / h.samples as f64)).collect();
    let (log_loss, log_loss_se) = mean_and_error(&losses);
    let mut chunk = None;
    for hits in held.iter().filter_map(|h| h.chunk) {
        let all: &mut Hits = chunk.get_or_insert_default();
        all.correct += hits.correct;
        all.predicted += hits.predicted;
        all.gold += hits.gold;
    }
    GridPoint {
        penalties,
        log_loss,
        log_loss_se,
        items: held.iter().map(|h| h.items).sum(),
        right: held.iter().map(|h| h.right).sum(),
        chunk,
        converged: held.iter().all(|h| h.converged),
    }
}

/// `mean = Σ_k n_k m_k / n` and `se = √(Σ_k n_k (m_k - mean)² / (n (K - 1)))` over folds of `n_k` samples with means `m_k` (as glmnet; Friedman et al. 2010).
pub(crate) fn mean_and_error(folds: &[(usize, f64)]) -> (f64, f64) {
    let samples = folds.iter().map(|f| f.0).sum::<usize>() as f64;
    let shares = || folds.iter().map(|&(n, m)| (n as f64 / samples, m));
    let mean: f64 = shares().map(|(share, m)| share * m).sum();
    let spread: f64 = shares().map(|(share, m)| share * (m - mean) * (m - mean)).sum();
    (mean, (spread / (folds.len() as f64 - 1.0)).sqrt())
}

/// The place of the least number; of equals the first.
pub(crate) fn least(numbers: impl Iterator<Item = f64>) -> Option<usize> {
    let least = numbers.enumerate().reduce(|a, b| if b.1 < a.1 { b } else { a });
    least.map(|(place, _)| place)
}

/// Whether so many folds can be made.
pub(crate) fn possible(folds: usize, samples: usize) -> bool {
    (2..=samples).contains(&folds)
}

/// The numbers of all samples, shuffled.
pub(crate) fn shuffled(samples: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..samples).collect();
    order.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
    order
}

/// Which fold each sample belongs to, dealt out in turn in this order.
pub(crate) fn deal(order: &[usize], folds: usize) -> Vec<u32> {
    let mut fold_of = vec![0; order.len()];
    for (k, &i) in order.iter().enumerate() {
        fold_of[i] = (k % folds) as u32;
    }
    fold_of
}

/// The samples that are not in a fold, and those that are; ascending.
pub(crate) fn split(fold_of: &[u32], fold: usize) -> (Vec<usize>, Vec<usize>) {
    (0..fold_of.len()).partition(|&i| fold_of[i] as usize != fold)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_are_tried_from_strong_to_weak_until_interrupted() {
        let how = GridParams::new(2, &[0.0, 1.0], &[1.0, 4.0], 0);
        let pairs: Vec<_> = how.grid.iter().map(|p| (p.l1, p.l2)).collect();
        assert_eq!(pairs, [(1.0, 4.0), (1.0, 1.0), (0.0, 4.0), (0.0, 1.0)]);
        let run = |stop: (f64, f64)| {
            over_grid(&mut [1usize, 3], &how.grid, |fold, p| {
                let held = Held { samples: *fold, loss: *fold as f64 * p.l2, ..Held::default() };
                Ok::<_, ()>((stop != (p.l1, p.l2) || *fold == 1).then_some(held))
            })
        };
        let all = run((-1.0, 0.0)).unwrap();
        // Equal losses: the first.
        assert_eq!((all.points.len(), all.best, all.interrupted), (4, 1, false));
        let cut = run((0.0, 4.0)).unwrap();
        assert_eq!((cut.points.len(), cut.best, cut.interrupted), (2, 1, true));
        assert_eq!(run((1.0, 4.0)), Err(GridError::Nothing));
    }

    #[test]
    fn means_weigh_folds_by_their_samples() {
        let (mean, se) = mean_and_error(&[(1, 4.0), (3, 0.0)]);
        // ¼·4; ¼·9 + ¾·1 over one degree of freedom.
        assert_eq!((mean, se), (1.0, 3f64.sqrt()));
    }

    #[test]
    fn a_choice_at_the_edge_is_noticed() {
        let point = |l1, l2, log_loss| {
            let held = Held { samples: 1, loss: log_loss, ..Held::default() };
            join(Penalties { l1, l2 }, &[held, held])
        };
        let found = |points: Vec<GridPoint>| GridFound {
            best: least(points.iter().map(|p| p.log_loss)).unwrap(),
            points,
            pseudo: false,
            interrupted: false,
        };
        assert!(!found(vec![point(0.0, 4.0, 2.0), point(0.0, 2.0, 1.0), point(0.0, 1.0, 2.0)]).at_edge());
        assert!(found(vec![point(0.0, 4.0, 2.0), point(0.0, 2.0, 1.0)]).at_edge());
        assert!(!found(vec![point(0.0, 4.0, 2.0), point(0.0, 0.0, 1.0)]).at_edge());
        assert!(found(vec![point(1.0, 4.0, 1.0), point(0.0, 4.0, 2.0)]).at_edge());
        assert!(!found(vec![point(0.0, 4.0, 2.0)]).at_edge());
    }

    #[test]
    fn folds_are_even_and_follow_the_seed() {
        let folds = deal(&shuffled(103, 7), 5);
        assert_eq!(folds, deal(&shuffled(103, 7), 5));
        assert_ne!(folds, deal(&shuffled(103, 8), 5));
        for k in 0..5 {
            let (kept, held) = split(&folds, k);
            assert!((20..=21).contains(&held.len()) && kept.len() + held.len() == 103);
        }
    }
}
