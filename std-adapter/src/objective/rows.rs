//! Weights of an item's attributes, arranged for the pass over all items: an attribute that goes with many labels has a whole, padded row of weights, so that
//! its share of the scores and of the gradient is added in vectors; an attribute that goes with few has a short list.
//!
//! Most attributes are rare and go with one label or two; most *occurrences* are of frequent ones that go with most labels. On CoNLL-2000 chunking 1 attribute in
//! 70 has a row, and these are two thirds of the occurrences.

use super::sequences::STATES;
use crate::data::sequences::Attributes;
use crate::features::Index;

/// Which attributes have a row.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Entries of a row.
    pub(crate) stride: usize,
    /// For each attribute its row, or `NONE`.
    row: Vec<u32>,
    /// The attributes that have one, in order.
    attributes: Vec<u32>,
}

const NONE: u32 = u32::MAX;
/// Labels from which on a row is faster than a list.
const MANY: usize = 5;
/// Entries of all rows: 16 MiB.
const ROOM: usize = 2 << 20;

/// Labels that are added at a time.
const WIDTH: usize = 8;

impl Layout {
    /// For rows of `stride` entries, a multiple of 8.
    pub(crate) fn new(index: &Index, stride: usize) -> Self {
        let mut layout = Self { stride, row: vec![NONE; index.attributes(STATES)], attributes: Vec::new() };
        for a in 0..index.attributes(STATES) as u32 {
            if index.parameters(STATES, a).len() >= MANY.min(stride / 2)
                && (layout.attributes.len() + 1) * stride <= ROOM
            {
                layout.row[a as usize] = layout.attributes.len() as u32;
                layout.attributes.push(a);
            }
        }
        layout
    }

    /// Entries of all rows together.
    pub(crate) fn len(&self) -> usize {
        self.attributes.len() * self.stride
    }

    /// Writes the rows of weights.
    pub(crate) fn spread(&self, index: &Index, theta: &[f64], rows: &mut Vec<f64>) {
        rows.clear();
        rows.resize(self.len(), 0.0);
        for (&a, row) in self.attributes.iter().zip(rows.chunks_exact_mut(self.stride)) {
            index.add_scores(STATES, a, 1.0, theta, row);
        }
    }

    /// Moves the weights that have a row there.
    pub(crate) fn lift(&self, index: &Index, theta: &mut [f64], rows: &mut Vec<f64>) {
        self.spread(index, theta, rows);
        self.attributes.iter().for_each(|&a| theta[index.parameters(STATES, a)].fill(0.0));
    }

    /// Adds rows of slopes to the gradient.
    pub(crate) fn collect(&self, index: &Index, rows: &[f64], gradient: &mut [f64]) {
        for (&a, row) in self.attributes.iter().zip(rows.chunks_exact(self.stride)) {
            index.add_gradient(STATES, a, 1.0, row, gradient);
        }
    }

    /// `scores += Σ value·θ[attribute]`; `rows` are [`spread`](Self::spread).
    #[inline(always)]
    pub(crate) fn score(
        &self,
        index: &Index,
        theta: &[f64],
        rows: &[f64],
        item: Attributes<'_>,
        scores: &mut [f64],
    ) {
        let lists = index.lists(STATES);
        let theta_here = &theta[index.range(STATES)];
        for (k, &a) in item.ids.iter().enumerate() {
            let value = item.values.map_or(1.0, |values| values[k]);
            let row = self.row[a as usize];
            if row != NONE {
                let from = row as usize * self.stride;
                add(value, &rows[from..from + self.stride], scores);
            } else if let Some((starts, labels)) = lists {
                let own = starts[a as usize] as usize..starts[a as usize + 1] as usize;
                for (&y, w) in labels[own.clone()].iter().zip(&theta_here[own]) {
                    scores[y as usize] += value * w;
                }
            } else {
                index.add_scores(STATES, a, value, theta, scores);
            }
        }
    }

    /// `slopes[attribute] += value·residual`, in rows or in the gradient.
    #[inline(always)]
    pub(crate) fn add_gradient(
        &self,
        index: &Index,
        residual: &[f64],
        item: Attributes<'_>,
        rows: &mut [f64],
        gradient: &mut [f64],
    ) {
        let lists = index.lists(STATES);
        let here = index.range(STATES);
        for (k, &a) in item.ids.iter().enumerate() {
            let value = item.values.map_or(1.0, |values| values[k]);
            let row = self.row[a as usize];
            if row != NONE {
                let from = row as usize * self.stride;
                add(value, residual, &mut rows[from..from + self.stride]);
            } else if let Some((starts, labels)) = lists {
                let own = starts[a as usize] as usize..starts[a as usize + 1] as usize;
                for (&y, g) in labels[own.clone()].iter().zip(&mut gradient[here.clone()][own]) {
                    *g += value * residual[y as usize];
                }
            } else {
                index.add_gradient(STATES, a, value, residual, gradient);
            }
        }
    }

    /// The same slopes as a step: weights [`lift`](Self::lift)ed, sums as the index has them.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn descend(
        &self,
        index: &Index,
        residual: &[f64],
        item: Attributes<'_>,
        descent: Descent,
        theta: &mut [f64],
        rows: &mut [f64],
        sums: &mut [f64],
    ) {
        for (k, &a) in item.ids.iter().enumerate() {
            let value = item.values.map_or(1.0, |values| values[k]);
            let own = index.parameters(STATES, a);
            let sums = &mut sums[own.clone()];
            let row = self.row[a as usize];
            let from = row as usize * self.stride;
            // Where the labels' weights are: side by side, or at the labels' places in a row.
            match (index.configurations(STATES, a), row != NONE) {
                (Some(labels), true) => {
                    let row = &mut rows[from..from + self.stride];
                    for (&y, sum) in labels.iter().zip(sums) {
                        descent.take(value * residual[y as usize], &mut row[y as usize], sum);
                    }
                }
                (Some(labels), false) => {
                    for ((&y, w), sum) in labels.iter().zip(&mut theta[own]).zip(sums) {
                        descent.take(value * residual[y as usize], w, sum);
                    }
                }
                (None, lifted) => {
                    let weights = if lifted { &mut rows[from..from + self.stride] } else { &mut theta[own] };
                    for ((slope, w), sum) in residual.iter().zip(weights).zip(sums) {
                        descent.take(value * slope, w, sum);
                    }
                }
            }
        }
    }
}

/// A step against a slope.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Descent {
    /// Weights lose so much of it.
    pub(crate) by: f64,
    /// Sums get so much of it.
    pub(crate) share: f64,
}

impl Descent {
    #[inline(always)]
    pub(crate) fn take(self, slope: f64, weight: &mut f64, sum: &mut f64) {
        *weight -= self.by * slope;
        *sum += self.share * slope;
    }
}

/// `to += by·from`, in whole vectors.
#[inline(always)]
fn add(by: f64, from: &[f64], to: &mut [f64]) {
    let (from, to) = (from.as_chunks::<WIDTH>().0, to.as_chunks_mut::<WIDTH>().0);
    for (to, from) in to.iter_mut().zip(from) {
        to.iter_mut().zip(from).for_each(|(t, f)| *t += by * f);
    }
}
