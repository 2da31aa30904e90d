//! The piecewise likelihood: each factor normalised by itself (Thesis 3.3.1; Sutton and McCallum 2005).
//!
//! ```text
//! f(θ) = Σ_s Σ_k [ log Z_k(x) - log ψ_k(y_{C_k}, x) ],     Z_k(x) = Σ_y ψ_k(y, x)
//! ```
//!
//! (eq. 3.1, in which `log` is missing before `Z_j`.) As `Z ≤ Π_k Z_k`, `-f` is a lower bound of the log-likelihood, tight where the factors
//! share no variables. No inference, and no consistency either: a start for better objectives, or a fast baseline. Labels that are missing
//! are summed out of the second term, factor by factor; a factor without any label says nothing.
//!
//! Ours differs in that factors without inputs are normalised once an evaluation, not once a sample, and that scores of observed configurations
//! are summed once and for all.

use super::tables::{Chunk, Chunks, Tables};
use super::{ObjectiveError, ObjectiveParams};
use crate::features::Index;
use crate::field::{Field, FieldData, MISSING};
use gibbsite_core::error::InferError;
use gibbsite_core::local;

/// A piecewise likelihood, ready to be evaluated.
///
/// ```
/// use gibbsite::field::{Field, FieldData, Structure};
/// use gibbsite::objective::{ObjectiveParams, piecewise::Piecewise};
/// let field = Field::pairwise([2, 3], &Structure::Chain, true)?;
/// let mut data = FieldData::without_inputs(&field);
/// data.push(&field, &[1, 2], [[]; 0])?;
/// let index = field.index(&[1, 1, 1])?;
/// let mut piecewise = Piecewise::new(&field, &index, &data, &ObjectiveParams::default())?;
/// let value = piecewise.value_gradient(&[0.0; 11], &mut [0.0; 11]);
/// assert!((value - (2.0f64 * 3.0 * 6.0).ln()).abs() < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Piecewise<'a> {
    tables: Tables<'a>,
    observed: Vec<f64>,
    /// For each entry of the shared tables, how often its table is normalised.
    counts: Vec<f64>,
    /// For each sample, its factors with inputs and a label, and its factors of which some labels are missing.
    samples: Vec<Sample>,
    chunks: Chunks<Workspace>,
    shared: Vec<f64>,
    fault: Option<InferError>,
}

/// `None` in place of a list that is all factors with inputs, respectively none.
#[derive(Debug)]
struct Sample {
    own: Option<Vec<u32>>,
    partial: Vec<u32>,
}

#[derive(Debug)]
struct Workspace {
    tables: Vec<f64>,
    residual: Vec<f64>,
    agreeing: Vec<f64>,
}

impl<'a> Piecewise<'a> {
    /// Prepares the samples.
    ///
    /// # Errors
    /// An [`ObjectiveError`]: things do not fit together, or there are no samples.
    pub fn new(
        field: &'a Field,
        index: &'a Index,
        data: &'a FieldData,
        params: &ObjectiveParams,
    ) -> Result<Self, ObjectiveError> {
        let tables = Tables::new(field, index, data)?;
        if data.samples() == 0 {
            return Err(ObjectiveError::NoSamples);
        }
        let mut observed = vec![0.0; index.len()];
        let mut counts = vec![0.0; tables.shared_len];
        let mut samples = Vec::with_capacity(data.samples());
        for s in 0..data.samples() {
            let labels = data.labels(s);
            let mut sample = Sample { own: None, partial: vec![] };
            let labelled = |k: u32| field.scope(k as usize).iter().any(|&v| labels[v as usize] != MISSING);
            if !tables.own.iter().all(|&k| labelled(k)) {
                sample.own = Some(tables.own.iter().copied().filter(|&k| labelled(k)).collect());
            }
            for k in (0..field.factors()).filter(|&k| labelled(k as u32)) {
                if !data.has_inputs(k) {
                    // The first entry stands for the table.
                    counts[tables.base[k] as usize] += 1.0;
                }
                match field.configuration(k, labels) {
                    Some(y) => tables.observe(s, k, y, 1.0, &mut observed),
                    None => sample.partial.push(k as u32),
                }
            }
            samples.push(sample);
        }
        Ok(Self {
            shared: vec![0.0; tables.shared_len],
            chunks: Chunks::new(data.samples(), index.len(), params.par),
            tables,
            observed,
            counts,
            samples,
            fault: None,
        })
    }

    /// How many parameters there are.
    pub fn len(&self) -> usize {
        self.observed.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.observed.is_empty()
    }

    /// What went wrong in the last evaluation, if its value was not finite.
    pub fn fault(&self) -> Option<InferError> {
        self.fault
    }

    /// `f(θ)`, an upper bound of the negative log-likelihood; its gradient is written to `gradient`. `+inf` and NaN if a score leaves the range of numbers.
    ///
    /// # Panics
    /// If `theta` or `gradient` does not have [`len`](Self::len) entries.
    pub fn value_gradient(&mut self, theta: &[f64], gradient: &mut [f64]) -> f64 {
        assert_eq!((theta.len(), gradient.len()), (self.len(), self.len()), "one number for each parameter");
        for (g, &o) in gradient.iter_mut().zip(&self.observed) {
            *g = -o;
        }
        self.tables.fill_shared(theta, &mut self.shared);
        let shared = self.normalise_shared(gradient);
        let mut chunks = std::mem::take(&mut self.chunks);
        let this = &*self;
        let len = this.tables.len;
        let (value, fault) = chunks.finish(
            || Workspace { tables: vec![0.0; len], residual: vec![0.0; len], agreeing: vec![] },
            |workspace, chunk| this.chunk(theta, workspace, chunk),
            shared,
            (theta, &this.observed),
            gradient,
        );
        (self.chunks, self.fault) = (chunks, fault);
        value
    }

    /// Factors without inputs: each table once, times the number of its uses.
    fn normalise_shared(&self, gradient: &mut [f64]) -> Result<f64, InferError> {
        let mut residual = self.shared.clone();
        let mut value = 0.0;
        for (template, range) in self.tables.shared_tables() {
            let count = self.counts[range.start];
            let table = &mut residual[range];
            value += count * local::conditional(table)?;
            self.tables.index.add_gradient(template, 0, count, table, gradient);
        }
        Ok(value)
    }

    fn chunk(&self, theta: &[f64], workspace: &mut Workspace, chunk: &mut Chunk) -> Result<(), InferError> {
        let Workspace { tables, residual, agreeing } = workspace;
        let shared = self.tables.shared_len;
        tables[..shared].copy_from_slice(&self.shared);
        residual[..shared].fill(0.0);
        for s in chunk.units.clone() {
            let sample = &self.samples[s];
            let own = sample.own.as_ref().unwrap_or(&self.tables.own);
            self.tables.fill_own(s, own, theta, tables);
            let mut value = 0.0;
            for &k in own {
                let range = self.tables.range(k as usize);
                residual[range.clone()].copy_from_slice(&tables[range.clone()]);
                value += local::conditional(&mut residual[range])?;
            }
            let labels = self.tables.data.labels(s);
            for &k in &sample.partial {
                let range = self.tables.range(k as usize);
                let agrees = |y: usize| self.agrees(k as usize, y, labels);
                let places = || (0..range.len()).filter(|&y| agrees(y)).map(|y| range.start + y);
                agreeing.clear();
                agreeing.extend(places().map(|at| tables[at]));
                value -= local::conditional(agreeing)?;
                places().zip(agreeing.iter()).for_each(|(at, &p)| residual[at] -= p);
            }
            self.tables.gather_own(s, own, residual, &mut chunk.gradient);
            chunk.value += value;
        }
        self.tables.gather_shared(residual, &mut chunk.gradient);
        Ok(())
    }

    /// Whether a configuration of a factor agrees with the labels that are known.
    fn agrees(&self, k: usize, configuration: usize, labels: &[u32]) -> bool {
        let mut rest = configuration as u32;
        self.tables.field.scope(k).iter().rev().all(|&v| {
            let card = self.tables.field.cards()[v as usize];
            let label = rest % card;
            rest /= card;
            [label, MISSING].contains(&labels[v as usize])
        })
    }
}
