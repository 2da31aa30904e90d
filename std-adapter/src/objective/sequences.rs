//! The likelihood of labelled sequences under a linear-chain CRF.
//!
//! ```text
//! f(θ) = -Σ_s log p(y_s | x_s),   score(y) = Σ_t Σ_(a,v) v·θ[a, y_t] + Σ_t θ[y_t, y_{t+1}] + Σ_t Σ_b θ[b, y_t, y_{t+1}]
//! ```
//!
//! over the attributes `a` of items and `b` of edges (Lafferty et al. 2001; Thesis 2.1, eq. 2.4). Where a label is not known, or only a set that it
//! belongs to, `p` is summed over what is possible: `log p = log Z(possible) - log Z`. Nothing is approximated. The gradient is expected
//! minus observed counts, item by item; its cost is that of the occurrences of attributes and `O(L²)` an item.
//!
//! The pseudolikelihood (Besag 1975; Thesis eq. 2.4) is the same with `Σ_t log p(y_t | y_{t-1}, y_{t+1}, x)` for `log p(y|x)`: a local regression for each item whose label and neighbours'
//! labels are known, `O(L)` an item; the others say nothing.
//!
//! Sequences are cut into chunks by the size of the problem alone and the chunks' sums are added in order, so results do not depend on the number of threads.

use super::rows::Layout;
use crate::data::sequences::{Gold, SequenceView, Sequences};
use crate::features::Index;
use crate::par::{Kernel, Par, vectorized};
use crate::solver::lbfgs::Smooth;
use gibbsite_core::infer::chain::{Chain, Shared, Transitions};
use gibbsite_core::local::value_gradient;
use std::ops::Range;

/// Which template of the [`Index`] is what.
pub const STATES: usize = 0;
/// Transitions, with one attribute.
pub const TRANSITIONS: usize = 1;
/// Attributes of edges, if the index has so many templates.
pub const EDGES: usize = 2;

/// The negative log-likelihood of sequences.
#[derive(Debug)]
pub struct SequenceLikelihood<'a> {
    sequences: &'a Sequences,
    index: &'a Index,
    labels: usize,
    /// Each item given its neighbours' labels, instead of all together.
    local: bool,
    par: Par,
    layout: Layout,
    weights: Vec<f64>,
    chunks: Vec<Chunk>,
}

/// Some of the sequences, and what is summed over them.
#[derive(Debug)]
struct Chunk {
    sequences: Range<usize>,
    value: f64,
    gradient: Vec<f64>,
    /// The gradient of what has rows.
    slopes: Vec<f64>,
    /// See [`Shared::expect`].
    pairs: Vec<f64>,
    /// Expected less observed transitions, as far as they are not in `pairs`.
    transitions: Vec<f64>,
    scratch: Scratch,
}

#[derive(Debug, Default)]
struct Scratch {
    rows: Vec<f64>,
    possible: Vec<f64>,
    /// A table for each gap, if edges have attributes.
    tables: Vec<f64>,
    each: Vec<f64>,
    memory: Vec<f64>,
}

/// Bytes that the gradients of all chunks may take together.
const GRADIENTS: usize = 32 << 20;
/// Most chunks, and items that are worth one.
const MOST: usize = 32;
const ITEMS: usize = 256;

impl<'a> SequenceLikelihood<'a> {
    /// Of these sequences. `index` has the templates [`STATES`] and [`TRANSITIONS`], and [`EDGES`] if edges have attributes.
    pub fn new(sequences: &'a Sequences, index: &'a Index, par: Par) -> Self {
        let labels = index.size(STATES);
        let stride = Shared::<f64>::stride(labels);
        let layout = Layout::new(index, stride);
        let room = (GRADIENTS / (8 * (index.len() + layout.len()).max(1))).clamp(2, MOST);
        let chunks = sequences.items().div_ceil(ITEMS).clamp(1, room);
        let mut first = 0;
        let chunks = (1..=chunks).map(|k| {
            // Cut where the items are as many as in the others.
            let items = sequences.items() * k / chunks;
            let mut end = first;
            while end < sequences.len() && sequences.range(end).end <= items {
                end += 1;
            }
            let part = first..if k == chunks { sequences.len() } else { end };
            first = part.end;
            Chunk {
                sequences: part,
                value: 0.0,
                gradient: vec![0.0; index.len()],
                slopes: vec![0.0; layout.len()],
                pairs: vec![0.0; stride * stride],
                transitions: vec![0.0; labels * labels],
                scratch: Scratch::default(),
            }
        });
        let chunks = chunks.collect();
        Self { sequences, index, labels, local: false, par, layout, weights: Vec::new(), chunks }
    }

    /// The pseudolikelihood instead of the likelihood.
    pub fn pseudo(sequences: &'a Sequences, index: &'a Index, par: Par) -> Self {
        Self { local: true, ..Self::new(sequences, index, par) }
    }
}

impl Smooth for SequenceLikelihood<'_> {
    fn len(&self) -> usize {
        self.index.len()
    }

    /// NaN if a score is not finite: the step was too long.
    fn value_gradient(&mut self, theta: &[f64], gradient: &mut [f64]) -> f64 {
        let (sequences, index, labels) = (self.sequences, self.index, self.labels);
        let mut table = vec![0.0; labels * labels];
        index.add_scores(TRANSITIONS, 0, 1.0, theta, &mut table);
        let mut memory = vec![0.0; Shared::<f64>::memory_len(labels)];
        let edges = index.templates() > EDGES;
        let shared = match Shared::new(labels, &table, &mut memory) {
            Ok(shared) => shared.filter(|_| !edges && !self.local),
            Err(_) => return f64::NAN,
        };
        self.layout.spread(index, theta, &mut self.weights);
        let (table, layout, weights, local) = (&table[..], &self.layout, &self.weights[..], self.local);
        self.par.map(self.chunks.iter_mut().collect(), |chunk| {
            vectorized(Pass { sequences, index, layout, theta, weights, table, shared, local, chunk });
        });
        gradient.fill(0.0);
        let mut counts = vec![0.0; labels * labels];
        let mut value = 0.0;
        for chunk in &self.chunks {
            value += chunk.value;
            gradient.iter_mut().zip(&chunk.gradient).for_each(|(g, c)| *g += c);
            self.layout.collect(index, &chunk.slopes, gradient);
            if let Some(shared) = &shared
                && shared.transitions(&chunk.pairs, &mut counts).is_ok()
            {
                index.add_gradient(TRANSITIONS, 0, 1.0, &counts, gradient);
            }
            index.add_gradient(TRANSITIONS, 0, 1.0, &chunk.transitions, gradient);
        }
        value
    }
}

/// Scores of the transitions of each gap of a sequence whose edges have attributes.
pub(crate) fn score_edges(
    sequence: &SequenceView<'_>,
    index: &Index,
    theta: &[f64],
    table: &[f64],
    tables: &mut Vec<f64>,
) {
    tables.clear();
    for t in 1..sequence.items() {
        let start = tables.len();
        tables.extend_from_slice(table);
        for &b in sequence.edge_attributes(t) {
            index.add_scores(EDGES, b, 1.0, theta, &mut tables[start..]);
        }
    }
}

/// One chunk.
struct Pass<'a> {
    sequences: &'a Sequences,
    index: &'a Index,
    layout: &'a Layout,
    theta: &'a [f64],
    /// Of what has rows.
    weights: &'a [f64],
    table: &'a [f64],
    shared: Option<Shared<'a, f64>>,
    local: bool,
    chunk: &'a mut Chunk,
}

impl Kernel for Pass<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Self { sequences, index, layout, theta, weights, table, shared, local, chunk } = self;
        let (labels, stride) = (index.size(STATES), layout.stride);
        chunk.value = 0.0;
        chunk.gradient.fill(0.0);
        chunk.slopes.fill(0.0);
        chunk.pairs.fill(0.0);
        chunk.transitions.fill(0.0);
        for s in chunk.sequences.clone() {
            let sequence = &sequences.sequence(s);
            let rows = &mut chunk.scratch.rows;
            rows.clear();
            rows.resize(sequence.items() * stride, 0.0);
            for (t, row) in rows.chunks_exact_mut(stride).enumerate() {
                layout.score(index, theta, weights, sequence.attributes(t), row);
            }
            let value = match &shared {
                Some(shared) => with_shared(shared, table, labels, sequences, sequence, chunk),
                None if local => with_neighbours(index, theta, table, stride, sequence, chunk),
                None => with_each(index, theta, table, stride, sequences, sequence, chunk),
            };
            // Scores that are not finite, or a gold labelling that is not possible: out of bounds.
            chunk.value += value.unwrap_or(f64::NAN);
            let Chunk { gradient, slopes, scratch, .. } = &mut *chunk;
            for (t, residual) in scratch.rows.chunks_exact(stride).enumerate() {
                layout.add_gradient(index, residual, sequence.attributes(t), slopes, gradient);
            }
        }
    }
}

/// All transitions the same: `-log p`, and expected less observed counts in place of the scores.
#[inline(always)]
fn with_shared(
    shared: &Shared<'_, f64>,
    table: &[f64],
    labels: usize,
    sequences: &Sequences,
    sequence: &SequenceView<'_>,
    chunk: &mut Chunk,
) -> Option<f64> {
    let Scratch { rows, possible, memory, .. } = &mut chunk.scratch;
    let stride = Shared::<f64>::stride(labels);
    memory.resize(Shared::<f64>::expect_len(sequence.items(), labels), 0.0);
    let golds = sequence.golds();
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
    index: &Index,
    theta: &[f64],
    table: &[f64],
    stride: usize,
    sequences: &Sequences,
    sequence: &SequenceView<'_>,
    chunk: &mut Chunk,
) -> Option<f64> {
    let Chunk { gradient, transitions, scratch, .. } = chunk;
    let Scratch { rows, tables, each, memory, .. } = scratch;
    let (items, labels) = (sequence.items(), index.size(STATES));
    let edges = index.templates() > EDGES;
    let transition = if edges {
        score_edges(sequence, index, theta, table, tables);
        Transitions::Each(&tables[..])
    } else {
        Transitions::Shared(table)
    };
    memory.resize(Chain::<f64>::forward_backward_len(items, labels), 0.0);
    each.resize(Chain::<f64>::pairs_len(items, labels), 0.0);
    let mut count = |each: &[f64], sign: f64| {
        for (t, pairs) in each.chunks_exact(labels * labels).enumerate() {
            transitions.iter_mut().zip(pairs).for_each(|(sum, p)| *sum += sign * p);
            if edges {
                for &b in sequence.edge_attributes(t + 1) {
                    index.add_gradient(EDGES, b, sign, pairs, gradient);
                }
            }
        }
    };
    let mut singles = vec![0.0; items * labels];
    // That engine's rows have no padding.
    let mut scores: Vec<f64> = rows.chunks_exact(stride).flat_map(|row| &row[..labels]).copied().collect();
    let log_z = Chain::new(labels, &scores, transition)
        .and_then(|chain| chain.forward_backward(&mut singles, Some(&mut each[..]), memory))
        .ok()?;
    count(each, 1.0);
    rows.fill(0.0);
    for (row, p) in rows.chunks_exact_mut(stride).zip(singles.chunks_exact(labels)) {
        row[..labels].copy_from_slice(p);
    }
    restrict(sequences, sequence.golds(), labels, &mut scores, labels);
    let log_possible = Chain::new(labels, &scores, transition)
        .and_then(|chain| chain.forward_backward(&mut singles, Some(&mut each[..]), memory))
        .ok()?;
    count(each, -1.0);
    for (row, p) in rows.chunks_exact_mut(stride).zip(singles.chunks_exact(labels)) {
        row.iter_mut().zip(p).for_each(|(all, some)| *all -= some);
    }
    Some(log_z - log_possible)
}

/// Each item given its neighbours: `-Σ_t log p(y_t | y_{t-1}, y_{t+1}, x)`.
fn with_neighbours(
    index: &Index,
    theta: &[f64],
    table: &[f64],
    stride: usize,
    sequence: &SequenceView<'_>,
    chunk: &mut Chunk,
) -> Option<f64> {
    let Chunk { gradient, transitions, scratch, .. } = chunk;
    let Scratch { rows, tables, .. } = scratch;
    let labels = index.size(STATES);
    let cells = labels * labels;
    let edges = index.templates() > EDGES;
    if edges {
        score_edges(sequence, index, theta, table, tables);
    }
    // Scores of the gap after item t.
    let gap = |t: usize| if edges { &tables[t * cells..(t + 1) * cells] } else { table };
    let golds = sequence.golds();
    // A gap's slopes, for its attributes.
    let mut slopes = vec![0.0; if edges { cells } else { 0 }];
    let mut value = 0.0;
    for (t, row) in rows.chunks_exact_mut(stride).enumerate() {
        let before = t.checked_sub(1).map(|s| golds[s].known());
        let after = golds.get(t + 1).map(|g| g.known());
        let (Some(own), false, false) = (golds[t].known(), before == Some(None), after == Some(None)) else {
            row.fill(0.0);
            continue;
        };
        let scores = &mut row[..labels];
        let (before, after) = (before.flatten().map(|l| l as usize), after.flatten().map(|l| l as usize));
        if let Some(from) = before {
            let into = &gap(t - 1)[from * labels..(from + 1) * labels];
            scores.iter_mut().zip(into).for_each(|(s, a)| *s += a);
        }
        if let Some(to) = after {
            let out = gap(t)[to..].iter().step_by(labels);
            scores.iter_mut().zip(out).for_each(|(s, a)| *s += a);
        }
        value += value_gradient(scores, own as usize).ok()?;
        let mut count = |gap: usize, first: usize, step: usize| {
            let cells = || (first..).step_by(step);
            scores.iter().zip(cells()).for_each(|(r, cell)| transitions[cell] += r);
            if edges {
                slopes.fill(0.0);
                scores.iter().zip(cells()).for_each(|(r, cell)| slopes[cell] = *r);
                for &b in sequence.edge_attributes(gap + 1) {
                    index.add_gradient(EDGES, b, 1.0, &slopes, gradient);
                }
            }
        };
        if let Some(from) = before {
            count(t - 1, from * labels, 1);
        }
        if let Some(to) = after {
            count(t, to, labels);
        }
    }
    Some(value)
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
