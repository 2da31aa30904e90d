//! One sequence at a time: what stochastic gradients need of the likelihood.

use super::estimator::Estimator;
use super::rows::{Descent, Layout};
use super::sequences::{EDGES, STATES, TRANSITIONS};
use super::term::{Chunk, Weights, one_sequence};
use crate::data::sequences::Sequences;
use crate::features::Index;
use crate::par::{Kernel, vectorized};
use crate::solver::averaged::Terms;
use gibbsite_core::infer::chain::Shared;

/// The terms `-log p(y_s | x_s)` of the likelihood of sequences, or of another estimator, with weights of their own. Weights of attributes with
/// a row are there alone, the others where the index has them.
#[derive(Debug)]
pub(crate) struct SequenceTerms<'a> {
    sequences: &'a Sequences,
    index: &'a Index,
    estimator: Estimator,
    layout: Layout,
    theta: Vec<f64>,
    rows: Vec<f64>,
    sums: Vec<f64>,
    table: Vec<f64>,
    counts: Vec<f64>,
    memory: Vec<f64>,
    chunk: Chunk,
}

impl<'a> SequenceTerms<'a> {
    /// Of these sequences.
    pub(crate) fn new(sequences: &'a Sequences, index: &'a Index, estimator: Estimator) -> Self {
        let labels = index.size(STATES);
        let layout = Layout::new(index, Shared::<f64>::stride(labels));
        // Only attributes of edges go through the gradient.
        let edges = if index.templates() > EDGES { index.len() } else { 0 };
        Self {
            sequences,
            index,
            estimator,
            theta: Vec::new(),
            rows: Vec::new(),
            sums: Vec::new(),
            table: vec![0.0; labels * labels],
            counts: vec![0.0; labels * labels],
            memory: vec![0.0; Shared::<f64>::memory_len(labels)],
            chunk: Chunk::new(0..0, edges, 0, labels),
            layout,
        }
    }
}

impl Terms for SequenceTerms<'_> {
    fn terms(&self) -> usize {
        self.sequences.len()
    }

    fn place(&mut self, theta: &[f64]) {
        self.theta.clear();
        self.theta.extend_from_slice(theta);
        self.layout.lift(self.index, &mut self.theta, &mut self.rows);
        self.sums.clear();
        self.sums.resize(theta.len(), 0.0);
    }

    fn step(&mut self, term: usize, scale: f64, by: f64, share: f64) -> f64 {
        vectorized(Step { terms: self, term, scale, descent: Descent { by, share } })
    }

    fn rescale(&mut self, by: f64) {
        self.theta.iter_mut().chain(&mut self.rows).for_each(|w| *w *= by);
    }

    fn weights(&self, out: &mut [f64]) {
        out.copy_from_slice(&self.theta);
        self.layout.collect(self.index, &self.rows, out);
    }

    fn sums(&mut self) -> &mut [f64] {
        &mut self.sums
    }
}

struct Step<'a, 'd> {
    terms: &'a mut SequenceTerms<'d>,
    term: usize,
    scale: f64,
    descent: Descent,
}

impl Kernel for Step<'_, '_> {
    type Output = f64;
    #[inline(always)]
    fn run(self) -> f64 {
        let Self { terms, term, scale, descent } = self;
        let SequenceTerms {
            sequences,
            index,
            estimator,
            layout,
            theta,
            rows,
            sums,
            table,
            counts,
            memory,
            chunk,
        } = terms;
        let (sequences, index, estimator) = (*sequences, *index, *estimator);
        let (labels, edges) = (index.size(STATES), index.templates() > EDGES);
        table.fill(0.0);
        index.add_scores(TRANSITIONS, 0, scale, theta, table);
        let shared = match Shared::new(labels, table, memory) {
            Ok(shared) => shared.filter(|_| !edges && estimator.has_chains()),
            Err(_) => return f64::NAN,
        };
        chunk.pairs.fill(0.0);
        chunk.transitions.fill(0.0);
        let sequence = &sequences.sequence(term);
        let weights = Weights { index, layout, theta, rows, table, shared, scale, estimator };
        let value = one_sequence(&weights, sequences, sequence, chunk).filter(|value| value.is_finite());
        let edge_slopes = |chunk: &mut Chunk, mut each: Option<(&mut [f64], &mut [f64])>| {
            for t in 1..if edges { sequence.items() } else { 0 } {
                for p in sequence.edge_attributes(t).iter().flat_map(|&b| index.parameters(EDGES, b)) {
                    // What is there twice has all of its slope the first time.
                    let slope = std::mem::take(&mut chunk.gradient[p]);
                    if let Some((theta, sums)) = &mut each {
                        descent.take(slope, &mut theta[p], &mut sums[p]);
                    }
                }
            }
        };
        let Some(value) = value else {
            edge_slopes(chunk, None);
            return f64::NAN;
        };
        if let Some(shared) = &shared
            && shared.transitions(&chunk.pairs, counts).is_ok()
        {
            chunk.transitions.iter_mut().zip(&*counts).for_each(|(sum, count)| *sum += count);
        }
        for (t, residual) in chunk.scratch.rows.chunks_exact(layout.stride).enumerate() {
            layout.descend(index, residual, sequence.attributes(t), descent, theta, rows, sums);
        }
        let own = index.parameters(TRANSITIONS, 0);
        let cells = index.configurations(TRANSITIONS, 0);
        for (k, (w, a)) in theta[own.clone()].iter_mut().zip(&mut sums[own]).enumerate() {
            descent.take(chunk.transitions[cells.map_or(k, |cells| cells[k] as usize)], w, a);
        }
        edge_slopes(chunk, Some((theta, sums)));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::sequences::{Format, ReadParams, Supply, Template, read_from};
    use crate::objective::sequences::SequenceLikelihood;
    use crate::par::Par;
    use crate::sequence::train::{Generate, index};
    use crate::solver::lbfgs::Smooth;

    /// Attributes with values, with many labels and with few, labels that are not known; and attributes of edges.
    fn texts() -> [(String, Format); 2] {
        let mut state = 1u64;
        let mut random = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let (mut items, mut columns) = (String::new(), String::new());
        for k in 0..240 {
            let label = if k % 17 == 5 { "{L1|L3}".into() } else { format!("L{}", random(9)) };
            items += &format!("{label}\tall\tx{}\tv:0.{}\tx{}\n", random(5), random(9), random(40));
            columns += &format!("w{} p{} {label}\n", random(30), random(3));
            if random(5) == 0 {
                items.push('\n');
                columns.push('\n');
            }
        }
        let template = Template::parse("U0:%x[0,0]\nU1:%x[0,1]\nB\nB1:%x[0,1]\nB2:%x[-1,1]\n").unwrap();
        [(items, Format::Crfsuite), (columns, Format::Columns(template))]
    }

    #[test]
    fn slopes_of_all_terms_are_the_gradient() {
        for (text, format) in texts() {
            let corpus = read_from(text.as_bytes(), &ReadParams::new(format)).unwrap();
            let of = |name| Estimator::components(name).unwrap();
            for (estimator, all_states) in [
                (Estimator::Likelihood, false),
                (Estimator::Likelihood, true),
                (Estimator::Pseudo, false),
                (Estimator::Pairs, false),
                (of("k:3"), true),
                (Estimator::Piecewise, false),
            ] {
                let index = index(&corpus, Generate { all_states, ..Generate::default() }).unwrap();
                let supply = Supply::Memory(&corpus.sequences);
                let mut whole = SequenceLikelihood::of(supply, &index, estimator, Par::Seq);
                let mut terms = SequenceTerms::new(&corpus.sequences, &index, estimator);
                // The last with a table so wide that the general engine has to take it.
                for size in [0.1, 1.0, 300.0] {
                    let theta: Vec<f64> =
                        (0..index.len()).map(|p| size * ((p * 37 % 101) as f64 / 50.0 - 1.0)).collect();
                    let mut gradient = vec![0.0; index.len()];
                    let value = whole.value_gradient(&theta, &mut gradient);
                    let scale = 0.25;
                    let larger: Vec<f64> = theta.iter().map(|x| x / scale).collect();
                    terms.place(&larger);
                    let sum: f64 = (0..terms.terms()).map(|i| terms.step(i, scale, 0.0, 1.0)).sum();
                    assert!((sum - value).abs() <= 1e-10 * value.abs(), "{sum} or {value}");
                    let most = gradient.iter().fold(1.0f64, |m, g| m.max(g.abs()));
                    for (p, (a, g)) in terms.sums().iter().zip(&gradient).enumerate() {
                        assert!((a - g).abs() <= 1e-10 * most, "{p}: {a} or {g}");
                    }
                    // A step goes down by as much as it adds.
                    let mut after = vec![0.0; index.len()];
                    terms.weights(&mut after);
                    assert_eq!(after, larger);
                    terms.sums().fill(0.0);
                    terms.step(0, scale, 0.5, 1.0);
                    terms.weights(&mut after);
                    let a = terms.sums().to_vec();
                    assert!(a.iter().any(|&a| a != 0.0));
                    for ((before, after), a) in larger.iter().zip(&after).zip(a) {
                        assert!((before - 0.5 * a - after).abs() <= 1e-12 * before.abs().max(1.0));
                    }
                }
            }
        }
    }
}
