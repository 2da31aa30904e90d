//! Predictions of a fitted field: the most probable labels of each sample, marginals, probabilities, scores.

use super::schema::Report;
use super::{FieldData, MISSING, Schema};
use crate::data::network::{Evidence, Network};
use crate::infer::{InferParams, Prepared, QueryError, Task};
use crate::model::FieldModel;
use crate::par::Par;
use crate::sequence::score::Hits;
use gibbsite_core::error::InferError;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// What to find out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Want {
    /// The most probable labels.
    pub labels: bool,
    /// The marginals of all outputs.
    pub marginals: bool,
    /// The probability of the labels that are known.
    pub probability: bool,
    /// Known labels are kept, and the others predicted given them.
    pub forced: bool,
}

/// What was found about a sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Predicted {
    /// The most probable labels.
    pub labels: Vec<u32>,
    /// Marginals, output after output.
    pub marginals: Vec<f64>,
    /// `log P(known labels | x)`; `None` if it cannot be told exactly.
    pub log_probability: Option<f64>,
}

/// Predictions, and how they came about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Predictions {
    /// One a sample.
    pub each: Vec<Predicted>,
    /// Why they are not exact.
    pub approximate: Option<String>,
    /// Samples on which belief propagation did not settle.
    pub unsettled: usize,
}

/// Predicts for all samples.
///
/// `log P(y_K | x) = log Z(y_K, x) - log Z(x)`, where `Z(y_K, x)` sums over what is not known. All by exact inference if its tables take at most
/// `max_table_mib` mebibytes a thread, else labels and marginals by loopy belief propagation, and no probabilities. Plans are made once for each set of
/// given outputs.
///
/// # Errors
/// A [`QueryError`]: weights so large that no configuration has a probability.
///
/// # Panics
/// If the samples are not of the model's field.
pub fn predict(
    model: &FieldModel,
    data: &FieldData,
    want: Want,
    max_table_mib: f64,
    par: Par,
) -> Result<Predictions, QueryError> {
    let tables = Tables::new(model);
    let task = if want.marginals { Task::Marginals } else { Task::Map };
    let params = InferParams { max_table_mib, par: Par::Seq, ..InferParams::new(task) };
    let given = |s: usize, kept: bool| -> Vec<(u32, u32)> {
        let known = (0..).zip(data.labels(s).iter().copied()).filter(|&(_, label)| label != MISSING);
        if kept { known.collect() } else { vec![] }
    };
    let pattern = |pairs: &[(u32, u32)]| pairs.iter().map(|p| p.0).collect::<Vec<u32>>();
    let mut plans: HashMap<Vec<u32>, Prepared> = HashMap::new();
    for s in 0..data.samples() {
        let full = data.labels(s).iter().all(|&label| label != MISSING);
        // What is conditioned on for labels and marginals, and above and below the line of the probability.
        for (needed, kept) in
            [(true, want.forced), (want.probability && !full, true), (want.probability, false)]
        {
            let pairs = if needed { given(s, kept) } else { continue };
            if let Entry::Vacant(entry) = plans.entry(pattern(&pairs)) {
                let (network, evidence) = (tables.network(data, s)?, Evidence::from_pairs(pairs)?);
                entry.insert(Prepared::new(&network, &evidence, &params)?);
            }
        }
    }
    let one = |s: usize| -> Result<(Predicted, bool), QueryError> {
        let network = tables.network(data, s)?;
        let pairs = given(s, want.forced);
        let plan = &plans[&pattern(&pairs)];
        let evidence = Evidence::from_pairs(pairs)?;
        let mut found = Predicted::default();
        let mut settled = true;
        if want.labels {
            let answer = plan.infer(&network, &evidence, Task::Map)?;
            settled &= answer.converged;
            found.labels = answer.assignment.unwrap_or_default();
        }
        if want.marginals {
            let answer = plan.infer(&network, &evidence, Task::Marginals)?;
            settled &= answer.converged;
            found.marginals = answer.marginals.unwrap_or_default();
        }
        if want.probability {
            found.log_probability = log_probability(&plans, &network, &given(s, true))?;
        }
        Ok((found, settled))
    };
    let found: Result<Vec<(Predicted, bool)>, QueryError> =
        par.map((0..data.samples()).collect(), one).into_iter().collect();
    let found = found?;
    let unsettled = found.iter().filter(|f| !f.1).count();
    let mut whys: Vec<&str> = plans.values().filter_map(Prepared::why_approximate).collect();
    whys.sort_unstable();
    let approximate = whys.first().map(|&why| why.to_owned());
    Ok(Predictions { each: found.into_iter().map(|f| f.0).collect(), approximate, unsettled })
}

/// `None` if one of the two sums is too wide.
fn log_probability(
    plans: &HashMap<Vec<u32>, Prepared>,
    network: &Network,
    known: &[(u32, u32)],
) -> Result<Option<f64>, QueryError> {
    let log_z = |known: &[(u32, u32)]| -> Result<Option<f64>, QueryError> {
        let Some(plan) = plans.get(&known.iter().map(|p| p.0).collect::<Vec<u32>>()) else { return Ok(None) };
        if plan.why_approximate().is_some() {
            return Ok(None);
        }
        let evidence = Evidence::from_pairs(known.iter().copied())?;
        Ok(plan.infer(network, &evidence, Task::Partition)?.log_z)
    };
    let all = known.len() == network.variables();
    let labels: Vec<u32> = known.iter().map(|p| p.1).collect();
    let above = if all { network.log_potential(&labels) } else { log_z(known)? };
    Ok(above.zip(log_z(&[])?).map(|(above, below)| above - below))
}

/// The tables of factors without inputs, which are the same in all samples.
pub(crate) struct Tables<'a> {
    model: &'a FieldModel,
    constant: Vec<Vec<f64>>,
}

impl<'a> Tables<'a> {
    pub(crate) fn new(model: &'a FieldModel) -> Self {
        let constant = (0..model.index.templates())
            .map(|t| {
                let mut table = vec![0.0; model.index.size(t)];
                model.index.add_scores(t, 0, 1.0, &model.theta, &mut table);
                table
            })
            .collect();
        Self { model, constant }
    }

    pub(crate) fn network(&self, data: &FieldData, sample: usize) -> Result<Network, QueryError> {
        let FieldModel { field, index, theta, .. } = self.model;
        let mut network = Network::with_cards(field.cards())?;
        let mut table = Vec::new();
        for k in 0..field.factors() {
            let template = field.template(k);
            match data.row(sample, k) {
                None => table.clone_from(&self.constant[template]),
                Some(row) => {
                    table.clear();
                    table.resize(index.size(template), 0.0);
                    index.add_row_scores(template, row.iter(), theta, &mut table);
                }
            }
            // Sums that overflowed, from inputs beyond all that was seen.
            if !table.iter().all(|t| t.is_finite()) {
                return Err(QueryError::Engine(InferError::BadValue));
            }
            network.push_factor(field.scope(k), table.iter().copied())?;
        }
        Ok(network)
    }
}

/// How good labels are, added row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct TableScore {
    /// Cells with a label in the data.
    pub items: usize,
    /// Of those, with the right one predicted.
    pub right: usize,
    /// Rows with such cells.
    pub rows: usize,
    /// Rows with all of them right.
    pub perfect: usize,
    /// For each alphabet and label.
    pub labels: Vec<Vec<Hits>>,
}

impl TableScore {
    /// For the labels of a schema.
    pub fn new(schema: &Schema) -> Self {
        let labels = schema.alphabets.iter().map(|list| vec![Hits::default(); list.len()]).collect();
        Self { items: 0, right: 0, rows: 0, perfect: 0, labels }
    }

    /// Of predictions of samples that were read with this report.
    pub fn of(schema: &Schema, data: &FieldData, report: &Report, found: &Predictions) -> Self {
        let mut unknown = report.unknown_labels.iter().peekable();
        let mut score = Self::new(schema);
        for (s, row) in found.each.iter().enumerate() {
            // In the order of the rows, as they were met.
            let own: Vec<u32> =
                std::iter::from_fn(|| unknown.next_if(|u| u.0 as usize == s)).map(|u| u.1).collect();
            score.add(data.labels(s), &row.labels, &own);
        }
        score
    }

    /// One row: labels in the data, predicted ones, and outputs whose label in the data is one that the schema does not have.
    pub fn add(&mut self, gold: &[u32], predicted: &[u32], unknown: &[u32]) {
        let (mut items, mut right) = (0, 0);
        for (v, (&gold, &predicted)) in gold.iter().zip(predicted).enumerate() {
            let there = gold != MISSING;
            if !there && !unknown.contains(&(v as u32)) {
                continue;
            }
            let alphabet = v.min(self.labels.len() - 1);
            items += 1;
            right += usize::from(gold == predicted);
            let hits = &mut self.labels[alphabet][predicted as usize];
            hits.predicted += 1;
            hits.correct += usize::from(gold == predicted);
            if there {
                self.labels[alphabet][gold as usize].gold += 1;
            }
        }
        self.items += items;
        self.right += right;
        self.rows += usize::from(items > 0);
        self.perfect += usize::from(items > 0 && items == right);
    }
}
