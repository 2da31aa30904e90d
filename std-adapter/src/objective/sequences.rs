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
//! labels are known, `O(L)` an item; the others say nothing. Between the two are parts of several items given the labels at their borders ([`Estimator`]): the same engines on
//! shorter chains, whose first and last scores have the transitions over the borders added.
//!
//! Sequences are cut into chunks by the size of the problem alone and the chunks' sums are added in order, so results do not depend on the number of threads.

use super::estimator::Estimator;
use super::rows::Layout;
use super::term::{Chunk, Weights, one_sequence};
use crate::data::sequences::{Sequences, Supply};
use crate::features::Index;
use crate::par::{Kernel, Par, vectorized};
use crate::solver::lbfgs::Smooth;
use gibbsite_core::infer::chain::Shared;
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
    sequences: Supply<'a>,
    index: &'a Index,
    labels: usize,
    estimator: Estimator,
    par: Par,
    layout: Layout,
    weights: Vec<f64>,
    chunks: Vec<Chunk>,
}

/// Bytes that the gradients of all chunks may take together.
const GRADIENTS: usize = 32 << 20;
/// Most chunks, and items that are worth one.
const MOST: usize = 32;
const ITEMS: usize = 256;

impl<'a> SequenceLikelihood<'a> {
    /// Of these sequences. `index` has the templates [`STATES`] and [`TRANSITIONS`], and [`EDGES`] if edges have attributes.
    pub fn new(sequences: &'a Sequences, index: &'a Index, par: Par) -> Self {
        Self::of(Supply::Memory(sequences), index, Estimator::Likelihood, par)
    }

    /// The objective of any estimator, of sequences wherever they are.
    pub fn of(sequences: Supply<'a>, index: &'a Index, estimator: Estimator, par: Par) -> Self {
        let labels = index.size(STATES);
        let stride = Shared::<f64>::stride(labels);
        let layout = Layout::new(index, stride);
        let room = (GRADIENTS / (8 * (index.len() + layout.len()).max(1))).clamp(2, MOST);
        let chunks = sequences.items().div_ceil(ITEMS).clamp(1, room);
        // Cut where the items are as many as in the others.
        let (mut cuts, mut seen, mut items) = (vec![0], 0, 0);
        sequences.visit(0..sequences.len(), &mut |part, own| {
            for s in own {
                let end = items + part.range(s).len();
                while cuts.len() < chunks && end > sequences.items() * cuts.len() / chunks {
                    cuts.push(seen);
                }
                (seen, items) = (seen + 1, end);
            }
        });
        cuts.resize(chunks, seen);
        cuts.push(sequences.len());
        let chunk = |ends: &[usize]| Chunk::new(ends[0]..ends[1], index.len(), layout.len(), labels);
        let chunks = cuts.windows(2).map(chunk).collect();
        Self { sequences, index, labels, estimator, par, layout, weights: Vec::new(), chunks }
    }

    /// The pseudolikelihood instead of the likelihood.
    pub fn pseudo(sequences: &'a Sequences, index: &'a Index, par: Par) -> Self {
        Self::of(Supply::Memory(sequences), index, Estimator::Pseudo, par)
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
            Ok(shared) => shared.filter(|_| !edges && self.estimator.has_chains()),
            Err(_) => return f64::NAN,
        };
        self.layout.spread(index, theta, &mut self.weights);
        let (layout, rows, estimator) = (&self.layout, &self.weights[..], self.estimator);
        let weights = Weights { index, layout, theta, rows, table: &table, shared, scale: 1.0, estimator };
        self.par.map(self.chunks.iter_mut().collect(), |chunk| {
            chunk.clear();
            let whole = sequences.visit(chunk.sequences.clone(), &mut |sequences, own| {
                vectorized(Pass { sequences, own, weights, chunk });
            });
            if !whole {
                chunk.value = f64::NAN;
            }
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

/// Some sequences of a chunk.
struct Pass<'a> {
    sequences: &'a Sequences,
    own: Range<usize>,
    weights: Weights<'a>,
    chunk: &'a mut Chunk,
}

impl Kernel for Pass<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Self { sequences, own, weights, chunk } = self;
        let Weights { index, layout, .. } = weights;
        for s in own {
            let sequence = &sequences.sequence(s);
            let value = one_sequence(&weights, sequences, sequence, chunk);
            // Scores that are not finite, or a gold labelling that is not possible: out of bounds.
            chunk.value += value.unwrap_or(f64::NAN);
            let Chunk { gradient, slopes, scratch, .. } = &mut *chunk;
            for (t, residual) in scratch.rows.chunks_exact(layout.stride).enumerate() {
                layout.add_gradient(index, residual, sequence.attributes(t), slopes, gradient);
            }
        }
    }
}
