//! Penalties by cross-validation over sequences.

use super::scheme::Constraints;
use super::score::SequenceScore;
use super::tagger::{TagError, Tagger, Want};
use super::train::{Data, TrainError, TrainParams, fit, index};
use crate::cv::{Fold, GridError, GridFound, GridParams, Held, Trial, Watch, folds, over_grid};
use crate::data::sequences::{Corpus, Supply};
use crate::features::Index;
use crate::solver::lbfgs::{State, Stop};
use std::fmt;

/// Why a fold gave no loss.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FoldError {
    /// No weights.
    Train(TrainError),
    /// The weights cannot label a sequence that was held out.
    Tag(TagError),
}

impl fmt::Display for FoldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Train(e) => write!(f, "{e}"),
            Self::Tag(e) => write!(f, "held out, {e}"),
        }
    }
}

impl std::error::Error for FoldError {}

/// K-fold cross-validation of `C₁` and `C₂`.
///
/// Folds are of whole sequences. For each, the parameters are those that the other sequences ask for, and the objective is `params`' with the penalties of the grid; it is
/// solved from the strongest penalties to the weakest, each from the weights of the one before. The loss is `-log p(y|x)` of the sequences that were held out,
/// whatever the estimator. Two things are known from all sequences: the labels that there are, and with `min_count` which attributes are rare.
///
/// Output: mean losses with standard errors, accuracy and chunk F1 over all folds, and the penalties of the least loss. Folds depend on the seed alone, and one is fitted after the
/// other with all threads, so that results do not depend on their number and memory is that of one fit.
///
/// ```
/// use gibbsite::cv::GridParams;
/// use gibbsite::data::sequences::{Format, ReadParams, read_from};
/// use gibbsite::sequence::{cv::cross_validate, train::TrainParams};
/// let text = "N\tdog\nV\tbarks\n\n".repeat(4) + &"N\tcat\nV\tsleeps\n\n".repeat(4);
/// let corpus = read_from(text.as_bytes(), &ReadParams::new(Format::Crfsuite))?;
/// let how = GridParams::new(4, &[0.0], &[10.0, 1.0, 0.1], 0);
/// let found = cross_validate(&corpus, &TrainParams::default(), &how, &mut |_| true)?;
/// assert_eq!(found.chosen().penalties.l2, 0.1); // no noise: the smaller the penalty, the better
/// assert_eq!((found.chosen().right, found.chosen().items), (16, 16));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// A [`GridError`]: too few sequences, a fit that fails, or nothing tried on all folds.
pub fn cross_validate(
    corpus: &Corpus,
    params: &TrainParams,
    how: &GridParams,
    watch: &mut Watch<'_>,
) -> Result<GridFound, GridError<FoldError>> {
    let mut folds: Vec<(Fold, Option<Index>)> =
        folds(corpus.sequences.len(), how)?.into_iter().map(|fold| (fold, None)).collect();
    over_grid(&mut folds, &how.grid, |(fold, own), penalties| {
        let kept = corpus.sequences.select(&fold.kept);
        let supply = Supply::Memory(&kept);
        let index = match own {
            Some(own) => &*own,
            None => {
                let data = Data { sequences: supply, alphabet: &corpus.alphabet };
                own.insert(index(data, params.generate).map_err(FoldError::Train)?)
            }
        };
        let params = TrainParams { l1: penalties.l1, l2: penalties.l2, ..params.clone() };
        let mut each = |point: &_, _: &_| watch(&Trial { penalties, fold: fold.number, point: *point });
        let start = fold.theta.take().map(State::new);
        let (state, info) = fit(supply, index, &params, start, &mut each).map_err(FoldError::Train)?;
        if info.stop == Stop::Interrupted {
            return Ok(None);
        }
        drop(kept);
        let held = corpus.sequences.select(&fold.held);
        let tagger = Tagger::of(index, state.theta(), Constraints::default());
        let want = Want { probability: true, ..Want::default() };
        let blame = |e: TagError| TagError { sequence: fold.held[e.sequence], ..e };
        let tagged = tagger.tag(&held, want, params.par).map_err(|e| FoldError::Tag(blame(e)))?;
        let names = &corpus.alphabet.labels;
        let (score, _) = SequenceScore::of(&tagged, names, &held, names);
        fold.theta = Some(state.into_theta());
        Ok(Some(Held {
            samples: held.len(),
            loss: -tagged.iter().filter_map(|t| t.gold).sum::<f64>(),
            items: score.items,
            right: score.right,
            chunk: score.chunk,
            pseudo: false,
            converged: info.stop.is_converged(),
        }))
    })
}
