//! How good predictions are, on data that was not trained on.

use gibbsite_core::loss::{Logistic, Loss};

/// Scores of real-valued predictions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValueScore {
    /// `1 - Σ(y - ŷ)² / Σ(y - ȳ)²`; `None` if the target is constant.
    pub r2: Option<f64>,
    /// Mean squared error.
    pub mse: f64,
    /// Mean absolute error.
    pub mae: f64,
}

/// Scores predictions against what was observed; `None` without samples.
///
/// ```
/// use gibbsite::regress::score::score_values;
/// let score = score_values(&[1.0, 2.0, 6.0], &[1.0, 3.0, 5.0]).unwrap();
/// assert_eq!((score.mse, score.mae, score.r2), (2.0 / 3.0, 2.0 / 3.0, Some(0.75)));
/// assert_eq!(score_values(&[1.0], &[2.0]).unwrap().r2, None);
/// ```
pub fn score_values(predicted: &[f64], target: &[f64]) -> Option<ValueScore> {
    let n = predicted.len().min(target.len());
    if n == 0 {
        return None;
    }
    let mean = target.iter().take(n).sum::<f64>() / n as f64;
    let (mut squares, mut sizes, mut spread) = (0.0, 0.0, 0.0);
    for (&p, &y) in predicted.iter().zip(target) {
        squares += (y - p) * (y - p);
        sizes += (y - p).abs();
        spread += (y - mean) * (y - mean);
    }
    // All equal rather than a spread of 0: the mean of equal numbers may be off by a rounding.
    let constant = target.iter().take(n).all(|y| Some(y) == target.first());
    Some(ValueScore {
        r2: (!constant && spread > 0.0).then(|| 1.0 - squares / spread),
        mse: squares / n as f64,
        mae: sizes / n as f64,
    })
}

/// Scores of two-class predictions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassScore {
    /// Share of right labels.
    pub accuracy: f64,
    /// Probability that a positive sample scores above a negative one, ties counting half; `None` if a class is missing.
    pub auc: Option<f64>,
    /// Mean of `-log p(label)`, natural logarithm.
    pub log_loss: f64,
    /// For the negative and for the positive label.
    pub labels: [LabelScore; 2],
}

/// How well one label is found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LabelScore {
    /// Of the samples given this label, the share that has it; 0 if none was given it.
    pub precision: f64,
    /// Of the samples that have this label, the share given it; 0 if none has it.
    pub recall: f64,
    /// Harmonic mean of both; 0 if both are.
    pub f1: f64,
    /// Samples that have this label.
    pub support: usize,
}

/// Scores margins `aᵀx + b` against labels; a margin of at least 0 predicts the positive one. `None` without samples.
///
/// ```
/// use gibbsite::regress::score::score_classes;
/// let score = score_classes(&[-1.0, 0.5, 2.0, 0.5], &[false, false, true, true]).unwrap();
/// assert_eq!((score.accuracy, score.auc), (0.75, Some(0.875)));
/// assert_eq!(score.labels[1].precision, 2.0 / 3.0);
/// ```
pub fn score_classes(margins: &[f64], positive: &[bool]) -> Option<ClassScore> {
    let n = margins.len().min(positive.len());
    if n == 0 {
        return None;
    }
    // Counts by (truth, prediction).
    let mut counts = [[0usize; 2]; 2];
    let mut log_loss = 0.0;
    for (&z, &truth) in margins.iter().zip(positive) {
        counts[usize::from(truth)][usize::from(z >= 0.0)] += 1;
        log_loss += Logistic.value(z, if truth { 1.0 } else { -1.0 });
    }
    let label = |own: usize| {
        let right = counts[own][own] as f64;
        let (given, support) = (counts[0][own] + counts[1][own], counts[own][0] + counts[own][1]);
        let share = |of: f64| if of > 0.0 { right / of } else { 0.0 };
        LabelScore {
            precision: share(given as f64),
            recall: share(support as f64),
            f1: share((given + support) as f64 / 2.0),
            support,
        }
    };
    Some(ClassScore {
        accuracy: (counts[0][0] + counts[1][1]) as f64 / n as f64,
        auc: auc(margins, positive),
        log_loss: log_loss / n as f64,
        labels: [label(0), label(1)],
    })
}

/// Area under the ROC curve by ranks (Mann and Whitney 1947): `(R - p(p+1)/2) / (p·q)` with `R` the sum of the positive samples' ranks, equal
/// scores sharing the mean of theirs. `None` if a class is missing. `O(n log n)`.
///
/// ```
/// use gibbsite::regress::score::auc;
/// assert_eq!(auc(&[1.0, 1.0, 1.0], &[true, false, true]), Some(0.5));
/// ```
pub fn auc(scores: &[f64], positive: &[bool]) -> Option<f64> {
    let mut samples: Vec<(f64, bool)> = scores.iter().copied().zip(positive.iter().copied()).collect();
    let p = samples.iter().filter(|s| s.1).count();
    let q = samples.len() - p;
    if p == 0 || q == 0 {
        return None;
    }
    samples.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    // Twice the ranks, so that halves stay whole numbers: up to 2³¹ samples in 64 bits without rounding.
    let (mut ranks, mut below) = (0u64, 0u64);
    for tied in samples.chunk_by(|a, b| a.0 == b.0) {
        let len = tied.len() as u64;
        ranks += (2 * below + len + 1) * tied.iter().filter(|s| s.1).count() as u64;
        below += len;
    }
    let (p, q) = (p as u64, q as u64);
    Some((ranks - p * (p + 1)) as f64 / (2.0 * p as f64 * q as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// All pairs of a positive and a negative sample.
    fn auc_by_pairs(scores: &[f64], positive: &[bool]) -> f64 {
        let of = |class: bool| scores.iter().zip(positive).filter(move |s| *s.1 == class).map(|s| *s.0);
        let (mut won, mut pairs) = (0.0, 0.0);
        for a in of(true) {
            for b in of(false) {
                won += if a > b { 1.0 } else { f64::from(u8::from(a == b)) / 2.0 };
                pairs += 1.0;
            }
        }
        won / pairs
    }

    #[test]
    fn auc_equals_counting_pairs() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        for round in 0..500 {
            let n = rng.random_range(2..40);
            // Few distinct values, -0 among them: many ties.
            let scores: Vec<f64> = (0..n).map(|_| -0.5 * f64::from(rng.random_range(-3i32..3))).collect();
            let mut positive: Vec<bool> = (0..n).map(|_| rng.random_range(0..4) == 0).collect();
            (positive[0], positive[1]) = (true, false);
            let found = auc(&scores, &positive).unwrap();
            assert!((found - auc_by_pairs(&scores, &positive)).abs() < 1e-14, "round {round}");
        }
        assert_eq!(auc(&[1.0, 2.0], &[true, true]), None);
    }

    #[test]
    fn labels_are_scored_by_counting() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
        for _ in 0..200 {
            let n = rng.random_range(1..30);
            let z: Vec<f64> = (0..n).map(|_| f64::from(rng.random_range(-2i32..3))).collect();
            let truth: Vec<bool> = (0..n).map(|_| rng.random_range(0..2) == 0).collect();
            let score = score_classes(&z, &truth).unwrap();
            let count = |f: &dyn Fn(f64, bool) -> bool| {
                z.iter().zip(&truth).filter(|(z, t)| f(**z, **t)).count() as f64
            };
            assert_eq!(score.accuracy, count(&|z, t| (z >= 0.0) == t) / n as f64);
            for (own, found) in score.labels.iter().enumerate() {
                let own = own == 1;
                let both = count(&|z, t| t == own && (z >= 0.0) == own);
                let (given, has) = (count(&|z, _| (z >= 0.0) == own), count(&|_, t| t == own));
                let precision = if given > 0.0 { both / given } else { 0.0 };
                let recall = if has > 0.0 { both / has } else { 0.0 };
                let sum = precision + recall;
                let f1 = if sum > 0.0 { 2.0 * precision * recall / sum } else { 0.0 };
                assert_eq!((found.precision, found.recall, found.support as f64), (precision, recall, has));
                assert!((found.f1 - f1).abs() < 1e-15);
            }
            let loss: f64 = z
                .iter()
                .zip(&truth)
                .map(|(z, t)| -(1.0 / (1.0 + if *t { -z } else { *z }.exp())).ln())
                .sum::<f64>()
                / n as f64;
            assert!((score.log_loss - loss).abs() < 1e-13);
        }
        // Far from 0 nothing overflows.
        assert_eq!(score_classes(&[-1e4], &[true]).unwrap().log_loss, 1e4);
        assert_eq!(score_classes(&[], &[]), None);
    }

    #[test]
    fn r2_is_one_less_unexplained_variance() {
        let y = [1.0, 4.0, -2.0, 0.5];
        let mean = 3.5 / 4.0;
        assert_eq!(score_values(&y, &y).unwrap().r2, Some(1.0));
        let flat = score_values(&[mean; 4], &y).unwrap();
        assert!(flat.r2.unwrap().abs() < 1e-15);
        assert_eq!(score_values(&[0.1; 3], &[0.1; 3]).unwrap(), ValueScore { r2: None, mse: 0.0, mae: 0.0 });
    }
}
