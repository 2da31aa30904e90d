//! One sequence: `-log p` and its slopes, by core's engines.

use super::estimator::Estimator;
use super::parts::{factor_by_factor, with_borders, with_neighbours};
use super::rows::Layout;
use super::sequences::{EDGES, STATES};
use crate::data::sequences::{Gold, SequenceView, Sequences};
use crate::features::Index;
use gibbsite_core::infer::chain::{Chain, Shared, Transitions};
use std::ops::Range;

/// What all sequences are scored with.
#[derive(Clone, Copy)]
pub(super) struct Weights<'a> {
    pub(super) index: &'a Index,
    pub(super) layout: &'a Layout,
    /// To be multiplied by `scale`, and `rows` too.
    pub(super) theta: &'a [f64],
    /// Of what has rows.
    pub(super) rows: &'a [f64],
    /// Scores of transitions, as they are; and prepared, if that is all that chains need.
    pub(super) table: &'a [f64],
    pub(super) shared: Option<Shared<'a, f64>>,
    pub(super) scale: f64,
    pub(super) estimator: Estimator,
}

/// Some of the sequences, and what is summed over them.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) sequences: Range<usize>,
    pub(super) value: f64,
    pub(super) gradient: Vec<f64>,
    /// The gradient of what has rows.
    pub(super) slopes: Vec<f64>,
    /// See [`Shared::expect`].
    pub(super) pairs: Vec<f64>,
    /// Expected less observed transitions, as far as they are not in `pairs`.
    pub(super) transitions: Vec<f64>,
    pub(super) scratch: Scratch,
}

impl Chunk {
    /// With a gradient of so many parameters, and so many entries in rows.
    pub(super) fn new(sequences: Range<usize>, parameters: usize, rows: usize, labels: usize) -> Self {
        Self {
            sequences,
            value: 0.0,
            gradient: vec![0.0; parameters],
            slopes: vec![0.0; rows],
            pairs: vec![0.0; Shared::<f64>::pairs_len(labels)],
            transitions: vec![0.0; labels * labels],
            scratch: Scratch::default(),
        }
    }

    /// All sums at 0.
    pub(super) fn clear(&mut self) {
        self.value = 0.0;
        for sums in [&mut self.gradient, &mut self.slopes, &mut self.pairs, &mut self.transitions] {
            sums.fill(0.0);
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) rows: Vec<f64>,
    pub(super) possible: Vec<f64>,
    /// A table for each gap, if edges have attributes.
    pub(super) tables: Vec<f64>,
    pub(super) each: Vec<f64>,
    pub(super) memory: Vec<f64>,
    /// Rows and marginals without padding.
    pub(super) scores: Vec<f64>,
    pub(super) singles: Vec<f64>,
    /// Of `parts.rs`: rows of a part, and what is summed over parts.
    pub(super) own: Vec<f64>,
    pub(super) sums: Vec<f64>,
    /// Of a gap, and `P` of the transitions by themselves.
    pub(super) slopes: Vec<f64>,
    pub(super) joint: Vec<f64>,
}

/// `-log p` of a sequence. Adds to the chunk's `pairs` and `transitions`, and to its `gradient` if edges have attributes; its rows become expected less observed
/// labels of the items.
#[inline(always)]
pub(super) fn one_sequence(
    weights: &Weights<'_>,
    sequences: &Sequences,
    sequence: &SequenceView<'_>,
    chunk: &mut Chunk,
) -> Option<f64> {
    let Weights { index, layout, theta, table, scale, estimator, .. } = *weights;
    let stride = layout.stride;
    let Scratch { rows, tables, .. } = &mut chunk.scratch;
    rows.clear();
    rows.resize(sequence.items() * stride, 0.0);
    for (t, row) in rows.chunks_exact_mut(stride).enumerate() {
        layout.score(index, theta, weights.rows, sequence.attributes(t), row);
    }
    if scale != 1.0 {
        rows.iter_mut().for_each(|score| *score *= scale);
    }
    if index.templates() > EDGES {
        score_edges(sequence, index, theta, scale, table, tables);
    }
    match estimator {
        Estimator::Likelihood => {
            let mut rows = std::mem::take(rows);
            let value = one_part(weights, sequences, sequence, 0..sequence.items(), &mut rows, chunk);
            chunk.scratch.rows = rows;
            value
        }
        Estimator::Pseudo => with_neighbours(weights, sequence, chunk),
        Estimator::Pairs | Estimator::Blocks(_) => with_borders(weights, sequences, sequence, chunk),
        Estimator::Piecewise => factor_by_factor(weights, sequences, sequence, chunk),
    }
}

/// `-log p` of some items that follow each other. `rows` are their scores, with what is given; they become expected less observed labels.
#[inline(always)]
pub(super) fn one_part(
    weights: &Weights<'_>,
    sequences: &Sequences,
    sequence: &SequenceView<'_>,
    part: Range<usize>,
    rows: &mut Vec<f64>,
    chunk: &mut Chunk,
) -> Option<f64> {
    match &weights.shared {
        Some(shared) => {
            let labels = weights.index.size(STATES);
            with_shared(shared, weights.table, labels, sequences, &sequence.golds()[part], rows, chunk)
        }
        None => with_each(weights, sequences, sequence, part, rows, chunk),
    }
}

/// All transitions the same: `-log p`, and expected less observed counts in place of the scores.
#[inline(always)]
fn with_shared(
    shared: &Shared<'_, f64>,
    table: &[f64],
    labels: usize,
    sequences: &Sequences,
    golds: &[Gold],
    rows: &mut Vec<f64>,
    chunk: &mut Chunk,
) -> Option<f64> {
    let Scratch { possible, memory, .. } = &mut chunk.scratch;
    let stride = Shared::<f64>::stride(labels);
    memory.resize(Shared::<f64>::expect_len(golds.len(), labels), 0.0);
    if golds.iter().all(|g| g.known().is_some()) {
        let score = gold_score(golds, rows, stride, |_, from, to| table[from * labels + to]);
        let log_z = shared.expect(rows, &mut chunk.pairs, memory).ok()?;
        let mut before = None;
        for (row, gold) in rows.chunks_exact_mut(stride).zip(golds) {
            let label = gold.known()? as usize;
            row[label] -= 1.0;
            if let Some(before) = before {
                chunk.transitions[before * labels + label] -= 1.0;
            }
            before = Some(label);
        }
        return Some(log_z - score);
    }
    possible.clone_from(rows);
    restrict(sequences, golds, labels, possible, stride);
    let log_z = shared.expect(rows, &mut chunk.pairs, memory).ok()?;
    // Counts of what is possible are observed ones.
    let mut pairs = vec![0.0; chunk.pairs.len()];
    let log_possible = shared.expect(possible, &mut pairs, memory).ok()?;
    chunk.pairs.iter_mut().zip(&pairs).for_each(|(all, some)| *all -= some);
    rows.iter_mut().zip(&*possible).for_each(|(all, some)| *all -= some);
    Some(log_z - log_possible)
}

/// A table for each gap, or one with a wide range: core's general engine.
fn with_each(
    weights: &Weights<'_>,
    sequences: &Sequences,
    sequence: &SequenceView<'_>,
    part: Range<usize>,
    rows: &mut [f64],
    chunk: &mut Chunk,
) -> Option<f64> {
    let Weights { index, table, .. } = *weights;
    let stride = weights.layout.stride;
    let Chunk { gradient, transitions, scratch, .. } = chunk;
    let Scratch { tables, each, memory, scores, singles, .. } = scratch;
    let (items, labels) = (part.len(), index.size(STATES));
    let cells = labels * labels;
    let edges = index.templates() > EDGES;
    let transition = if edges {
        Transitions::Each(&tables[part.start * cells..(part.end - 1) * cells])
    } else {
        Transitions::Shared(table)
    };
    memory.resize(Chain::<f64>::forward_backward_len(items, labels), 0.0);
    each.resize(Chain::<f64>::pairs_len(items, labels), 0.0);
    singles.resize(items * labels, 0.0);
    let mut count = |each: &[f64], sign: f64| {
        for (t, pairs) in each.chunks_exact(cells).enumerate() {
            transitions.iter_mut().zip(pairs).for_each(|(sum, p)| *sum += sign * p);
            if edges {
                for &b in sequence.edge_attributes(part.start + t + 1) {
                    index.add_gradient(EDGES, b, sign, pairs, gradient);
                }
            }
        }
    };
    // That engine's rows have no padding.
    scores.clear();
    rows.chunks_exact(stride).for_each(|row| scores.extend_from_slice(&row[..labels]));
    let log_z = Chain::new(labels, scores, transition)
        .and_then(|chain| chain.forward_backward(singles, Some(&mut each[..]), memory))
        .ok()?;
    count(each, 1.0);
    rows.fill(0.0);
    for (row, p) in rows.chunks_exact_mut(stride).zip(singles.chunks_exact(labels)) {
        row[..labels].copy_from_slice(p);
    }
    restrict(sequences, &sequence.golds()[part.clone()], labels, scores, labels);
    let log_possible = Chain::new(labels, scores, transition)
        .and_then(|chain| chain.forward_backward(singles, Some(&mut each[..]), memory))
        .ok()?;
    count(each, -1.0);
    for (row, p) in rows.chunks_exact_mut(stride).zip(singles.chunks_exact(labels)) {
        row.iter_mut().zip(p).for_each(|(all, some)| *all -= some);
    }
    Some(log_z - log_possible)
}

/// The score of a labelling that is known.
#[inline(always)]
fn gold_score(
    golds: &[Gold],
    rows: &[f64],
    stride: usize,
    transition: impl Fn(usize, usize, usize) -> f64,
) -> f64 {
    let mut score = 0.0;
    let mut before = None;
    for (t, (row, gold)) in rows.chunks_exact(stride).zip(golds).enumerate() {
        let Some(label) = gold.known() else { return f64::NAN };
        let label = label as usize;
        score += row[label];
        if let Some(before) = before {
            score += transition(t, before, label);
        }
        before = Some(label);
    }
    score
}

/// Forbids the labels that are not possible. A label that the model does not know says nothing.
pub(crate) fn restrict(
    sequences: &Sequences,
    golds: &[Gold],
    labels: usize,
    rows: &mut [f64],
    stride: usize,
) {
    for (row, &gold) in rows.chunks_exact_mut(stride).zip(golds) {
        let row = &mut row[..labels];
        if let Some(label) = gold.known() {
            let kept = row[label as usize];
            row.fill(f64::NEG_INFINITY);
            row[label as usize] = kept;
        } else if let Some(set) = sequences.set(gold) {
            for (label, score) in row.iter_mut().enumerate() {
                if !set.contains(&(label as u32)) {
                    *score = f64::NEG_INFINITY;
                }
            }
        }
    }
}

/// Scores of the transitions of each gap of a sequence whose edges have attributes: `table` and `scale·θ`.
pub(crate) fn score_edges(
    sequence: &SequenceView<'_>,
    index: &Index,
    theta: &[f64],
    scale: f64,
    table: &[f64],
    tables: &mut Vec<f64>,
) {
    tables.clear();
    for t in 1..sequence.items() {
        let start = tables.len();
        tables.extend_from_slice(table);
        for &b in sequence.edge_attributes(t) {
            index.add_scores(EDGES, b, scale, theta, &mut tables[start..]);
        }
    }
}
