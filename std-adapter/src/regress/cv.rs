//! Choosing `λ` by K-fold cross-validation.

use super::fit::{RegressError, RegressParams, Task};
use super::path::path;
use crate::cv;
use crate::data::matrix::{Matrix, RowChunk};
use crate::data::rows::Rows;
use crate::par::Par;
use crate::solver::monitor::{Stop, Watch};
use gibbsite_core::loss::{Logistic, Loss, Squared};
use gibbsite_core::math::Real;

/// How to cross-validate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CvParams {
    /// Parts that are held out in turn; at least 2.
    pub folds: usize,
    /// Penalties that are tried.
    pub points: usize,
    /// The last penalty as a share of the first, `λ_max`.
    pub ratio: f64,
}

/// One penalty, tried on all folds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CvPoint {
    /// As a share of `λ_max`.
    pub ratio: f64,
    /// Held-out loss of a sample: squared error, or `-log p(label)`.
    pub mean: f64,
    /// Its standard error over the folds.
    pub se: f64,
    /// Non-zero weights, the mean over the folds.
    pub nonzeros: f64,
}

/// What cross-validation found.
#[derive(Clone, Debug, PartialEq)]
pub struct CrossValidation {
    /// From the largest penalty to the least that was reached on all folds that count.
    pub points: Vec<CvPoint>,
    /// Folds that count: all, unless somebody asked to stop.
    pub folds: usize,
    /// Index of the point with the least mean loss.
    pub best: usize,
    /// Index of the largest penalty whose mean loss is within one standard error of the least.
    pub one_se: usize,
    /// Whether every fit met its tolerance.
    pub converged: bool,
    /// Whether somebody asked to stop before all was tried.
    pub interrupted: bool,
}

/// Why there is no cross-validation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CvError {
    /// More folds than samples, or fewer than two.
    Folds {
        /// Folds asked for.
        folds: usize,
        /// Samples there are.
        samples: usize,
    },
    /// A class with a single sample: without it, nothing can be learned about the class.
    Rare {
        /// The class.
        label: f64,
    },
    /// A fit failed.
    Fit(RegressError),
    /// Interrupted before two folds had got below `λ_max`, where everything is 0 whatever the data.
    Interrupted,
}

impl std::fmt::Display for CvError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Folds { folds, samples } => write!(f, "{}", cv::Uneven(*folds, *samples)),
            Self::Rare { label } => {
                write!(
                    f,
                    "only one sample has the label {label}: cross-validation needs at least two of each"
                )
            }
            Self::Fit(error) => write!(f, "{error}"),
            Self::Interrupted => write!(
                f,
                "interrupted before two folds had tried a penalty below lambda_max: there is nothing to choose from"
            ),
        }
    }
}

impl std::error::Error for CvError {}

/// K-fold cross-validation over a path.
///
/// For each fold: a path from `λ_max` to `ratio·λ_max` of the other samples, and the loss of each of its points on the fold. Points of
/// different folds belong together when they are the same share of their own `λ_max`: objectives are sums over samples, so `λ_max` grows with their number.
/// `mean = Σ_k n_k m_k / n` over folds of `n_k` samples with mean losses `m_k`, `se = √(Σ_k n_k (m_k - mean)² / (n (K - 1)))` (as
/// glmnet; Friedman et al. 2010).
///
/// Folds depend on the seed only: samples are shuffled and dealt out in turn, for the logistic task class by class, so that every fold has its
/// share of each. They run on threads of their own where there are enough of them.
///
/// If `watch` asks to stop, folds that are done count, if there are two; otherwise those that got below `λ_max`, as far as all of them got. The
/// others are left out: a mean over fewer folds is a fair judge, a list of penalties that ends where a fold had just begun is not.
///
/// ```
/// use gibbsite::data::matrix::Matrix;
/// use gibbsite::regress::{Lambda, RegressParams, Task, cv::{CvParams, cross_validate}};
/// let m = Matrix::<f64>::from_rows(1, &[&[(0, 1.0)], &[(0, 2.0)], &[(0, 3.0)], &[(0, 4.0)]]);
/// let params = RegressParams::new(Task::Lasso, Lambda::Ratio(1.0));
/// let how = CvParams { folds: 2, points: 5, ratio: 0.01 };
/// let found = cross_validate(&m, &[1.0, 2.0, 3.0, 4.0], &params, &how, None)?;
/// assert_eq!(found.best, 4); // no noise: the smaller the penalty, the better
/// # Ok::<(), gibbsite::regress::cv::CvError>(())
/// ```
///
/// # Errors
/// A [`CvError`] if the samples are too few, or a fit fails.
pub fn cross_validate<V: Real>(
    matrix: &Matrix<V>,
    target: &[f64],
    params: &RegressParams,
    how: &CvParams,
    watch: Option<&Watch<'_>>,
) -> Result<CrossValidation, CvError> {
    let samples = matrix.rows();
    if !cv::possible(how.folds, samples) {
        return Err(CvError::Folds { folds: how.folds, samples });
    }
    if target.len() != samples {
        return Err(CvError::Fit(RegressError::Lengths { rows: samples, targets: target.len() }));
    }
    let fold_of = deal(target, params.task, how.folds, params.seed)?;
    let rows = matrix.by_rows();
    let columns = matrix.columns();
    // Whole folds in parallel cost no synchronising; with fewer folds than threads, the threads help within a fold.
    let (outer, inner) =
        if how.folds >= params.par.count() { (params.par, Par::Seq) } else { (Par::Seq, params.par) };
    let params = RegressParams { par: inner, ..params.clone() };
    let folds = outer.run(|par| {
        par.map((0..how.folds).collect(), |k| {
            one_fold(&rows, columns, target, &fold_of, k, &params, how, watch)
        })
    });
    join(folds.into_iter().collect::<Result<_, _>>().map_err(CvError::Fit)?, how)
}

/// The losses of one fold.
struct Fold {
    samples: usize,
    /// Mean loss and non-zeros at each point that was reached.
    points: Vec<(f64, usize)>,
    converged: bool,
    interrupted: bool,
}

#[allow(clippy::too_many_arguments)]
fn one_fold<V: Real>(
    rows: &Rows<V>,
    columns: usize,
    target: &[f64],
    fold_of: &[u32],
    fold: usize,
    params: &RegressParams,
    how: &CvParams,
    watch: Option<&Watch<'_>>,
) -> Result<Fold, RegressError> {
    let (kept, held) = cv::split(fold_of, fold);
    let matrix = select_rows(rows, columns, &kept);
    let own: Vec<f64> = kept.iter().map(|&i| target[i]).collect();
    // The label that counts as +1; both are among the kept samples.
    let positive = own.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let fits = path(&matrix, &own, params, how.points, how.ratio, watch)?;
    let interrupted = fits.len() < how.points || fits.iter().any(|f| f.info.stop == Stop::Interrupted);
    let done = fits.iter().filter(|f| f.info.stop != Stop::Interrupted);
    let points = done
        .clone()
        .map(|fit| {
            let x = fit.weights.dense();
            let loss = |&i: &usize| {
                let (columns, values) = rows.row(i);
                let z = columns
                    .iter()
                    .zip(values)
                    .fold(fit.weights.intercept, |z, (&j, a)| z + Real::to_f64(*a) * x[j as usize]);
                match params.task {
                    // Twice: the usual mean squared error has no ½.
                    Task::Lasso => 2.0 * Squared.value(z, target[i]),
                    Task::Logistic => Logistic.value(z, if target[i] == positive { 1.0 } else { -1.0 }),
                }
            };
            (held.iter().map(loss).sum::<f64>() / held.len() as f64, fit.weights.nonzeros())
        })
        .collect();
    Ok(Fold { samples: held.len(), points, converged: done.clone().all(|f| f.converged), interrupted })
}

fn join(mut folds: Vec<Fold>, how: &CvParams) -> Result<CrossValidation, CvError> {
    let interrupted = folds.iter().any(|f| f.interrupted);
    if interrupted {
        let done = folds.iter().filter(|f| f.points.len() == how.points).count();
        let least = if done >= 2 { how.points } else { 2 };
        folds.retain(|f| f.points.len() >= least);
        if folds.len() < 2 {
            return Err(CvError::Interrupted);
        }
    }
    let reached = folds.iter().map(|f| f.points.len()).min().unwrap_or(0);
    let parts = folds.len() as f64;
    let last = how.points.saturating_sub(1).max(1) as f64;
    let points: Vec<CvPoint> = (0..reached)
        .map(|k| {
            let losses: Vec<(usize, f64)> = folds.iter().map(|f| (f.samples, f.points[k].0)).collect();
            let (mean, se) = cv::mean_and_error(&losses);
            CvPoint {
                ratio: how.ratio.powf(k as f64 / last),
                mean,
                se,
                nonzeros: folds.iter().map(|f| f.points[k].1 as f64).sum::<f64>() / parts,
            }
        })
        .collect();
    // Of equals the first: the sparser model.
    let best = cv::least(points.iter().map(|p| p.mean)).ok_or(CvError::Interrupted)?;
    let limit = points[best].mean + points[best].se;
    let one_se = points.iter().position(|p| p.mean <= limit).unwrap_or(best);
    Ok(CrossValidation {
        points,
        folds: folds.len(),
        best,
        one_se,
        converged: folds.iter().all(|f| f.converged),
        interrupted,
    })
}

/// Which fold each sample belongs to.
fn deal(target: &[f64], task: Task, folds: usize, seed: u64) -> Result<Vec<u32>, CvError> {
    let mut order = cv::shuffled(target.len(), seed);
    if task == Task::Logistic {
        order.sort_by(|&a, &b| target[a].total_cmp(&target[b]));
        for class in order.chunk_by(|&a, &b| target[a] == target[b]) {
            if let [only] = class {
                return Err(CvError::Rare { label: target[*only] });
            }
        }
    }
    Ok(cv::deal(&order, folds))
}

/// The matrix of some rows, in this order.
pub fn select_rows<V: Real>(rows: &Rows<V>, columns: usize, keep: &[usize]) -> Matrix<V> {
    // In pieces, as the conversion frees each when it is done with it.
    let pieces = keep.chunks(1 << 14).map(|keep| {
        let mut chunk =
            RowChunk { ends: Vec::with_capacity(keep.len()), column: Vec::new(), value: Vec::new() };
        for &i in keep {
            let (columns, values) = rows.row(i);
            chunk.column.extend_from_slice(columns);
            chunk.value.extend_from_slice(values);
            chunk.ends.push(chunk.column.len().try_into().unwrap_or(u32::MAX));
        }
        chunk
    });
    Matrix::from_chunks(columns, pieces.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_are_even_and_stratified() {
        let target: Vec<f64> = (0..103).map(|i| f64::from(u8::from(i % 10 == 0))).collect();
        let folds = deal(&target, Task::Logistic, 5, 7).unwrap();
        assert_eq!(folds, deal(&target, Task::Logistic, 5, 7).unwrap());
        assert_ne!(folds, deal(&target, Task::Logistic, 5, 8).unwrap());
        for k in 0..5 {
            let own = || (0..103).filter(|&i| folds[i] == k);
            assert!((20..=21).contains(&own().count()));
            assert!((2..=3).contains(&own().filter(|&i| target[i] == 1.0).count()), "11 in 5 folds");
        }
        let rare = [0.0, 1.0, 0.0];
        assert_eq!(deal(&rare, Task::Logistic, 2, 0), Err(CvError::Rare { label: 1.0 }));
        assert!(deal(&rare, Task::Lasso, 2, 0).is_ok());
    }

    #[test]
    fn rows_are_selected() {
        let m = Matrix::<f64>::from_rows(3, &[&[(0, 1.0)], &[(0, 2.0), (2, 3.0)], &[], &[(1, 4.0)]]);
        let part = select_rows(&m.by_rows(), 3, &[3, 1]);
        assert_eq!((part.rows(), part.columns(), part.nonzeros()), (2, 3, 3));
        assert_eq!(part.product(&[1.0, 10.0, 100.0]), [40.0, 302.0]);
    }

    #[test]
    fn the_choice_follows_the_rule() {
        let fold = |losses: &[f64]| Fold {
            samples: 2,
            points: losses.iter().map(|&l| (l, 1)).collect(),
            converged: true,
            interrupted: losses.len() < 4,
        };
        let how = CvParams { folds: 2, points: 4, ratio: 0.001 };
        let found = join(vec![fold(&[5.0, 3.0, 2.0, 2.0]), fold(&[5.0, 2.2, 3.0, 3.0])], &how).unwrap();
        // Means 5, 2.6, 2.5, 2.5; standard error of the third ½.
        assert_eq!((found.best, found.one_se, found.folds, found.interrupted), (2, 1, 2, false));
        assert!((found.points[2].se - 0.5).abs() < 1e-12);
        assert!((found.points[1].ratio - 0.1).abs() < 1e-12);
    }

    /// Where everything is 0, nothing was chosen: a fold that only got there says nothing.
    #[test]
    fn what_is_left_of_an_interruption() {
        let fold = |losses: &[f64]| Fold {
            samples: 2,
            points: losses.iter().map(|&l| (l, 1)).collect(),
            converged: true,
            interrupted: losses.len() < 4,
        };
        let how = CvParams { folds: 3, points: 4, ratio: 0.001 };
        let whole = || fold(&[5.0, 3.0, 2.0, 1.0]);
        for (folds, expected) in [
            // Folds that are done go before those that are not.
            (vec![whole(), whole(), fold(&[5.0, 3.0, 2.0])], Some((2, 4, 3))),
            (vec![whole(), fold(&[5.0, 3.0]), fold(&[5.0])], Some((2, 2, 1))),
            (vec![fold(&[5.0, 3.0, 4.0]), fold(&[5.0, 3.0, 2.0]), fold(&[5.0, 3.0, 4.0])], Some((3, 3, 1))),
            (vec![whole(), fold(&[5.0]), fold(&[])], None),
            (vec![fold(&[5.0]), fold(&[5.0]), fold(&[5.0])], None),
        ] {
            let found = join(folds, &how);
            assert_eq!(found.as_ref().map(|f| (f.folds, f.points.len(), f.best)).ok(), expected);
            assert!(found.map_or(true, |f| f.interrupted));
        }
    }

    #[test]
    fn an_interruption_leaves_the_folds_that_are_done() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        let m = Matrix::<f64>::from_rows(1, &[&[(0, 1.0)], &[(0, 2.0)], &[(0, 3.0)], &[(0, 4.0)]]);
        let params = RegressParams::new(Task::Lasso, crate::regress::Lambda::Ratio(1.0));
        let how = CvParams { folds: 4, points: 5, ratio: 0.01 };
        // Each fold begins at its largest penalty: the interruption is in the third, at the second of its penalties.
        let (begun, last) = (AtomicUsize::new(0), std::sync::Mutex::new(0.0));
        let watch = |point: &crate::solver::monitor::Point| {
            let before = std::mem::replace(&mut *last.lock().unwrap(), point.lambda);
            begun.fetch_add(usize::from(point.lambda > before), Ordering::Relaxed);
            begun.load(Ordering::Relaxed) < 3
        };
        let found = cross_validate(&m, &[1.0, 2.0, 3.0, 4.0], &params, &how, Some(&watch)).unwrap();
        assert_eq!((found.folds, found.points.len(), found.best, found.interrupted), (2, 5, 4, true));
    }
}
