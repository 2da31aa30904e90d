//! Labellings drawn from a model.

use super::tagger::{Rows, Scratch, TagError, Tagger};
use crate::data::sequences::{SequenceView, Sequences};
use crate::objective::sequences::EDGES;
use crate::objective::term::{restrict, score_edges};
use crate::par::{Par, vectorized};
use gibbsite_core::error::InferError;
use gibbsite_core::math::log_sum_exp;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

impl Tagger<'_> {
    /// Draws so many labellings of each sequence from `P(y|x)`, independent of each other; with `forced` given the labels that are known in the data.
    ///
    /// Exact: `β_t(i) = log Σ_j exp(A_t(i,j) + s_{t+1}(j) + β_{t+1}(j))` once a sequence, then label after label from `P(y_{t+1} = j | y_t = i) ∝ exp(A_t(i,j) + s_{t+1}(j) +
    /// β_{t+1}(j))`. `O(T·L²)` for the former, `O(T·L)` a draw. Depends on the seed and the number of the sequence, not on threads.
    ///
    /// # Errors
    /// The first sequence that has no possible labelling.
    pub fn sample(
        &self,
        sequences: &Sequences,
        draws: usize,
        forced: bool,
        seed: u64,
        par: Par,
    ) -> Result<Vec<Vec<Vec<u32>>>, TagError> {
        let each = par.map((0..sequences.len()).collect(), |s: usize| {
            // Streams of other sequences begin elsewhere.
            let own = seed ^ (s as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(own);
            let sequence = sequences.sequence(s);
            self.draw(sequences, &sequence, draws, forced, &mut rng)
                .map_err(|cause| TagError { sequence: s, cause })
        });
        each.into_iter().collect()
    }

    fn draw(
        &self,
        sequences: &Sequences,
        sequence: &SequenceView<'_>,
        draws: usize,
        forced: bool,
        rng: &mut Xoshiro256PlusPlus,
    ) -> Result<Vec<Vec<u32>>, InferError> {
        let (labels, items) = (self.labels, sequence.items());
        let cells = labels * labels;
        let Scratch { mut rows, mut tables, .. } = Scratch::default();
        vectorized(Rows { tagger: self, sequence, rows: &mut rows });
        if forced {
            restrict(sequences, sequence.golds(), labels, &mut rows, labels);
        }
        let edges = self.index.templates() > EDGES;
        if edges {
            score_edges(sequence, self.index, self.theta, 1.0, &self.table, &mut tables);
        }
        let gap = |t: usize| if edges { &tables[t * cells..(t + 1) * cells] } else { &self.table[..] };
        // Rows become s + β, from the last to the first.
        let mut scores = vec![0.0; labels];
        for t in (1..items).rev() {
            let (before, after) = rows.split_at_mut(t * labels);
            let before = &mut before[(t - 1) * labels..];
            for (row, table) in before.iter_mut().zip(gap(t - 1).chunks_exact(labels)) {
                let sums = scores.iter_mut().zip(table).zip(&*after);
                sums.for_each(|((score, a), s)| *score = a + s);
                *row += log_sum_exp(&scores);
            }
        }
        (0..draws)
            .map(|_| {
                let mut path: Vec<u32> = Vec::with_capacity(items);
                for (t, row) in rows.chunks_exact(labels).enumerate() {
                    scores.copy_from_slice(row);
                    if let Some(&from) = path.last() {
                        let into = &gap(t - 1)[from as usize * labels..];
                        scores.iter_mut().zip(into).for_each(|(s, a)| *s += a);
                    }
                    path.push(choose(&scores, rng)?);
                }
                Ok(path)
            })
            .collect()
    }
}

/// A label from `P(j) ∝ e^{scores[j]}`.
fn choose(scores: &[f64], rng: &mut Xoshiro256PlusPlus) -> Result<u32, InferError> {
    let log_z = log_sum_exp(scores);
    if log_z == f64::NEG_INFINITY {
        return Err(InferError::ZeroProbability);
    }
    if !log_z.is_finite() {
        return Err(InferError::BadValue);
    }
    let mut left: f64 = rng.random();
    let mut last = 0;
    for (label, score) in (0u32..).zip(scores) {
        let share = (score - log_z).exp();
        if share > 0.0 {
            (left, last) = (left - share, label);
            if left < 0.0 {
                break;
            }
        }
    }
    // Rounding can leave a sliver of the interval uncovered; it belongs to the last label.
    Ok(last)
}
