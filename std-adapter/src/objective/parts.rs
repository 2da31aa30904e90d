//! Parts of a sequence instead of all of it: items, blocks and pairs given the labels at their borders, and single factors.

use super::sequences::{EDGES, STATES};
use super::term::{Chunk, Scratch, Weights, one_part};
use crate::data::sequences::{Gold, SequenceView, Sequences};
use gibbsite_core::local::{conditional, value_gradient};
use std::ops::Range;

/// Each item given its neighbours: `-Σ_t log p(y_t | y_{t-1}, y_{t+1}, x)`.
pub(super) fn with_neighbours(
    weights: &Weights<'_>,
    sequence: &SequenceView<'_>,
    chunk: &mut Chunk,
) -> Option<f64> {
    let labels = weights.index.size(STATES);
    let golds = sequence.golds();
    let mut rows = std::mem::take(&mut chunk.scratch.rows);
    let mut value = 0.0;
    for (t, row) in rows.chunks_exact_mut(weights.layout.stride).enumerate() {
        let Some(borders) = Borders::of(golds, t..t + 1).filter(|_| golds[t].known().is_some()) else {
            row.fill(0.0);
            continue;
        };
        borders.add_scores(weights, &chunk.scratch.tables, row);
        value += value_gradient(&mut row[..labels], golds[t].known()? as usize).ok()?;
        borders.count(weights, sequence, row, chunk);
    }
    chunk.scratch.rows = rows;
    Some(value)
}

/// Each part given the labels at its borders: `-Σ_A log p(y_A | y_before, y_after, x)`.
pub(super) fn with_borders(
    weights: &Weights<'_>,
    sequences: &Sequences,
    sequence: &SequenceView<'_>,
    chunk: &mut Chunk,
) -> Option<f64> {
    let stride = weights.layout.stride;
    let golds = sequence.golds();
    let (scores, mut own) = (std::mem::take(&mut chunk.scratch.rows), std::mem::take(&mut chunk.scratch.own));
    let mut sums = std::mem::take(&mut chunk.scratch.sums);
    sums.clear();
    sums.resize(scores.len(), 0.0);
    let mut value = 0.0;
    for part in weights.estimator.parts(golds) {
        let range = part.start * stride..part.end * stride;
        own.clear();
        own.extend_from_slice(&scores[range.clone()]);
        let borders = Borders::of(golds, part.clone())?;
        borders.add_scores(weights, &chunk.scratch.tables, &mut own);
        value += one_part(weights, sequences, sequence, part, &mut own, chunk)?;
        borders.count(weights, sequence, &own, chunk);
        sums[range].iter_mut().zip(&own).for_each(|(sum, own)| *sum += own);
    }
    (chunk.scratch.rows, chunk.scratch.sums, chunk.scratch.own) = (sums, scores, own);
    Some(value)
}

/// What is given at the ends of a part: a gap and the label beyond it.
struct Borders {
    before: Option<(usize, usize)>,
    after: Option<(usize, usize)>,
}

impl Borders {
    /// `None` if a label there is not known.
    fn of(golds: &[Gold], part: Range<usize>) -> Option<Self> {
        let label = |t: usize| golds[t].known().map(|label| label as usize);
        let before = match part.start.checked_sub(1) {
            Some(t) => Some((t, label(t)?)),
            None => None,
        };
        let after = if part.end < golds.len() { Some((part.end - 1, label(part.end)?)) } else { None };
        Some(Self { before, after })
    }

    /// Adds the scores of the transitions over the borders to those of the first and the last item.
    fn add_scores(&self, weights: &Weights<'_>, tables: &[f64], rows: &mut [f64]) {
        let labels = weights.index.size(STATES);
        let cells = labels * labels;
        let edges = weights.index.templates() > EDGES;
        let gap = |t: usize| if edges { &tables[t * cells..(t + 1) * cells] } else { weights.table };
        if let Some((t, from)) = self.before {
            let into = &gap(t)[from * labels..(from + 1) * labels];
            rows.iter_mut().zip(into).for_each(|(s, a)| *s += a);
        }
        if let Some((t, to)) = self.after {
            let last = rows.len() - weights.layout.stride;
            let out = gap(t)[to..].iter().step_by(labels);
            rows[last..].iter_mut().zip(out).for_each(|(s, a)| *s += a);
        }
    }

    /// Counts these transitions: expected less observed labels are in `rows`.
    fn count(&self, weights: &Weights<'_>, sequence: &SequenceView<'_>, rows: &[f64], chunk: &mut Chunk) {
        let index = weights.index;
        let labels = index.size(STATES);
        let Chunk { gradient, transitions, scratch, .. } = chunk;
        let mut count = |gap: usize, residual: &[f64], first: usize, step: usize| {
            let residual = &residual[..labels];
            let cells = || (first..).step_by(step);
            residual.iter().zip(cells()).for_each(|(r, cell)| transitions[cell] += r);
            if index.templates() > EDGES {
                // The gap's slopes, for its attributes.
                scratch.slopes.clear();
                scratch.slopes.resize(labels * labels, 0.0);
                residual.iter().zip(cells()).for_each(|(r, cell)| scratch.slopes[cell] = *r);
                for &b in sequence.edge_attributes(gap + 1) {
                    index.add_gradient(EDGES, b, 1.0, &scratch.slopes, gradient);
                }
            }
        };
        if let Some((t, from)) = self.before {
            count(t, rows, from * labels, 1);
        }
        if let Some((t, to)) = self.after {
            count(t, &rows[rows.len() - weights.layout.stride..], to, labels);
        }
    }
}

/// Each factor by itself: `Σ_k [log Z_k - log ψ_k(y)]` over items and gaps, `y` summed over what is possible. A factor of which nothing is known says nothing.
pub(super) fn factor_by_factor(
    weights: &Weights<'_>,
    sequences: &Sequences,
    sequence: &SequenceView<'_>,
    chunk: &mut Chunk,
) -> Option<f64> {
    let Weights { index, table, .. } = *weights;
    let labels = index.size(STATES);
    let cells = labels * labels;
    let edges = index.templates() > EDGES;
    let Chunk { gradient, transitions, scratch, .. } = chunk;
    let Scratch { rows, tables, each, slopes, joint, .. } = scratch;
    let golds = sequence.golds();
    // Without attributes all gaps have the same factor.
    joint.clear();
    joint.extend_from_slice(table);
    let (joint_log_z, mut known_gaps) = (conditional(joint).ok()?, 0.0);
    let fits = |gold: Gold, label: usize| match (gold.known(), sequences.set(gold)) {
        (Some(known), _) => known as usize == label,
        (None, Some(set)) => set.contains(&(label as u32)),
        (None, None) => true,
    };
    let silent = |gold: Gold| gold.known().is_none() && sequences.set(gold).is_none();
    // log Z of a factor less that of what is possible; scores become expected less observed.
    let mut normalise = |scores: &mut [f64], possible: &dyn Fn(usize) -> bool| -> Option<f64> {
        let some = scores.iter().enumerate().map(|(k, s)| if possible(k) { *s } else { f64::NEG_INFINITY });
        each.clear();
        each.extend(some);
        let log_z = conditional(scores).ok()?;
        let log_possible = conditional(each).ok()?;
        scores.iter_mut().zip(&*each).for_each(|(all, some)| *all -= some);
        Some(log_z - log_possible)
    };
    let mut value = 0.0;
    for (row, &gold) in rows.chunks_exact_mut(weights.layout.stride).zip(golds) {
        if silent(gold) {
            row.fill(0.0);
        } else {
            value += normalise(&mut row[..labels], &|label| fits(gold, label))?;
        }
    }
    for (t, ends) in golds.windows(2).enumerate() {
        if silent(ends[0]) && silent(ends[1]) {
            continue;
        }
        if let (false, Some(from), Some(to)) = (edges, ends[0].known(), ends[1].known()) {
            let cell = from as usize * labels + to as usize;
            value += joint_log_z - table[cell];
            transitions[cell] -= 1.0;
            known_gaps += 1.0;
            continue;
        }
        slopes.clear();
        slopes.extend_from_slice(if edges { &tables[t * cells..(t + 1) * cells] } else { table });
        value += normalise(slopes, &|cell| fits(ends[0], cell / labels) && fits(ends[1], cell % labels))?;
        transitions.iter_mut().zip(&*slopes).for_each(|(sum, r)| *sum += r);
        if edges {
            for &b in sequence.edge_attributes(t + 1) {
                index.add_gradient(EDGES, b, 1.0, slopes, gradient);
            }
        }
    }
    transitions.iter_mut().zip(&*joint).for_each(|(sum, p)| *sum += known_gaps * p);
    Some(value)
}
