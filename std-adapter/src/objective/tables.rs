//! From parameters to factor tables and back, for all objectives on a [`Field`].
//!
//! The tables of a sample lie in one array. First come those that all samples share, one for each template without inputs: they are
//! filled once in an evaluation. Behind them come the factors with inputs, filled for each sample. Derivatives of an objective with respect to table
//! entries (*residuals*) lie in an array of the same layout, and are brought home to the parameters: shared ones once for many samples.

use super::ObjectiveError;
use crate::features::Index;
use crate::field::{Field, FieldData};
use crate::par::Par;
use gibbsite_core::error::InferError;
use std::sync::Mutex;

/// Where each factor's table lies.
#[derive(Debug)]
pub(super) struct Tables<'a> {
    pub(super) field: &'a Field,
    pub(super) index: &'a Index,
    pub(super) data: &'a FieldData,
    /// Where each factor's table begins.
    pub(super) base: Vec<u32>,
    /// Templates without inputs, and where their table begins.
    shared: Vec<(u32, u32)>,
    /// Entries of the shared tables, and of all.
    pub(super) shared_len: usize,
    pub(super) len: usize,
    /// Factors with inputs.
    pub(super) own: Vec<u32>,
}

impl<'a> Tables<'a> {
    pub(super) fn new(
        field: &'a Field,
        index: &'a Index,
        data: &'a FieldData,
    ) -> Result<Self, ObjectiveError> {
        data.check(field, index)?;
        let mut at = 0usize;
        let mut place = vec![u32::MAX; index.templates()];
        let mut base = vec![0; field.factors()];
        let (mut shared, mut own) = (vec![], vec![]);
        for (k, base) in base.iter_mut().enumerate() {
            let template = field.template(k);
            if data.has_inputs(k) {
                own.push(k as u32);
                continue;
            }
            if place[template] == u32::MAX {
                place[template] = at as u32;
                shared.push((template as u32, at as u32));
                at += index.size(template);
            }
            *base = place[template];
        }
        let shared_len = at;
        for &k in &own {
            base[k as usize] = at as u32;
            at += field.size(k as usize);
        }
        if u32::try_from(at).is_err() {
            return Err(ObjectiveError::Field(crate::field::FieldError::TooLarge));
        }
        Ok(Self { field, index, data, base, shared, shared_len, len: at, own })
    }

    /// Templates without inputs, and where their tables lie.
    pub(super) fn shared_tables(&self) -> impl Iterator<Item = (usize, std::ops::Range<usize>)> {
        self.shared.iter().map(|&(template, at)| {
            let template = template as usize;
            (template, at as usize..at as usize + self.index.size(template))
        })
    }

    /// Where a factor's table lies.
    pub(super) fn range(&self, k: usize) -> std::ops::Range<usize> {
        let at = self.base[k] as usize;
        at..at + self.field.size(k)
    }

    /// The tables that all samples share.
    pub(super) fn fill_shared(&self, theta: &[f64], tables: &mut [f64]) {
        for (template, range) in self.shared_tables() {
            let table = &mut tables[range];
            table.fill(0.0);
            self.index.add_scores(template, 0, 1.0, theta, table);
        }
    }

    /// The tables of some factors with inputs in a sample.
    pub(super) fn fill_own(&self, sample: usize, factors: &[u32], theta: &[f64], tables: &mut [f64]) {
        for &k in factors {
            let k = k as usize;
            let (range, template) = (self.range(k), self.field.template(k));
            let table = &mut tables[range];
            table.fill(0.0);
            if let Some(row) = self.data.row(sample, k) {
                self.index.add_row_scores(template, row.iter(), theta, table);
            }
        }
    }

    /// Residuals of some factors become 0.
    pub(super) fn clear(&self, factors: &[u32], residual: &mut [f64]) {
        factors.iter().for_each(|&k| residual[self.range(k as usize)].fill(0.0));
    }

    /// Residuals of the shared tables to the gradient.
    pub(super) fn gather_shared(&self, residual: &[f64], gradient: &mut [f64]) {
        for (template, range) in self.shared_tables() {
            self.index.add_gradient(template, 0, 1.0, &residual[range], gradient);
        }
    }

    /// Residuals of some factors with inputs to the gradient.
    pub(super) fn gather_own(&self, sample: usize, factors: &[u32], residual: &[f64], gradient: &mut [f64]) {
        for &k in factors {
            let k = k as usize;
            let residual = &residual[self.range(k)];
            if let Some(row) = self.data.row(sample, k) {
                self.index.add_row_gradient(self.field.template(k), row.iter(), residual, gradient);
            }
        }
    }

    /// Adds `weight` times a factor's features at a configuration to `out`: its observed part in a sample.
    pub(super) fn observe(&self, sample: usize, k: usize, y: usize, weight: f64, out: &mut [f64]) {
        let template = self.field.template(k);
        let mut add = |attribute: u32, value: f64| {
            if let Some(p) = self.index.parameter(template, attribute, y as u32) {
                out[p] += value * weight;
            }
        };
        match self.data.row(sample, k) {
            None => add(0, 1.0),
            Some(row) => row.iter().for_each(|(attribute, value)| add(attribute, value)),
        }
    }
}

/// A share of the work, with its own gradient. How the work is cut depends on its shape only, never on threads.
#[derive(Debug)]
pub(super) struct Chunk {
    /// Units of work.
    pub(super) units: std::ops::Range<usize>,
    pub(super) value: f64,
    pub(super) gradient: Vec<f64>,
}

/// Gradients of all chunks together may have so many entries, but there are at least [`FEW`] chunks.
const ENTRIES: usize = 1 << 22;
const FEW: usize = 8;
const MANY: usize = 64;

/// All chunks of an objective, and workspaces `W` that none of them uses at the time.
#[derive(Debug)]
pub(super) struct Chunks<W> {
    list: Vec<Chunk>,
    spare: Mutex<Vec<W>>,
    par: Par,
}

impl<W> Default for Chunks<W> {
    fn default() -> Self {
        Self { list: vec![], spare: Mutex::new(vec![]), par: Par::Seq }
    }
}

impl<W: Send> Chunks<W> {
    /// For so many units of work and parameters.
    pub(super) fn new(units: usize, parameters: usize, par: Par) -> Self {
        let count = (ENTRIES / parameters.max(1)).clamp(FEW, MANY).min(units).max(1);
        let chunk = |c| Chunk {
            units: c * units / count..(c + 1) * units / count,
            value: 0.0,
            gradient: vec![0.0; parameters],
        };
        Self { list: (0..count).map(chunk).collect(), spare: Mutex::new(vec![]), par }
    }

    /// Threads for what one chunk does: all of them if it is the only one.
    pub(super) fn par_within(&self) -> Par {
        if self.list.len() > 1 { Par::Seq } else { self.par }
    }

    /// The end of an evaluation: `value + Σ` of the chunks `- θᵀobserved`. `gradient` holds what `value` and `observed` contribute; the chunks' gradients are added in their order. If
    /// something fails or is not finite, the value is `+inf`, the gradient NaN, and the fault says why.
    pub(super) fn finish(
        &mut self,
        fresh: impl Fn() -> W + Sync + Send,
        work: impl Fn(&mut W, &mut Chunk) -> Result<(), InferError> + Sync + Send,
        value: Result<f64, InferError>,
        (theta, observed): (&[f64], &[f64]),
        gradient: &mut [f64],
    ) -> (f64, Option<InferError>) {
        let (list, spare, par) = (&mut self.list, &self.spare, self.par);
        let take = || spare.lock().map_or(None, |mut spare| spare.pop()).unwrap_or_else(&fresh);
        let faults = par.map(list.iter_mut().collect(), |chunk: &mut Chunk| {
            let mut workspace = take();
            chunk.value = 0.0;
            chunk.gradient.fill(0.0);
            let result = work(&mut workspace, chunk);
            if let Ok(mut spare) = spare.lock() {
                spare.push(workspace);
            }
            result.err()
        });
        let before = &*gradient;
        let mut sums = vec![0.0; before.len()];
        par.fill(&mut sums, 4096, |p| list.iter().fold(before[p], |sum, chunk| sum + chunk.gradient[p]));
        gradient.copy_from_slice(&sums);
        let parts = list.iter().fold(0.0, |sum, chunk| sum + chunk.value);
        let score: f64 = theta.iter().zip(observed).map(|(t, o)| t * o).sum();
        let total = value.unwrap_or(f64::NAN) + parts - score;
        let fault = value.err().or_else(|| faults.into_iter().flatten().next());
        let fault = fault.or((!total.is_finite()).then_some(InferError::BadValue));
        if fault.is_some() {
            gradient.fill(f64::NAN);
            return (f64::INFINITY, fault);
        }
        (total, None)
    }
}
