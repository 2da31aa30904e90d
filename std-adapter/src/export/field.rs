//! The image of a field over the columns of a table; what the words mean stands in `core/IMAGE.md`.

use super::image::{Section, assemble, number, texts};
use super::{ExportError, Naming};
use crate::data::network::Network;
use crate::field::schema::Slot;
use crate::model::FieldModel;
use crate::plan::{PlanParams, plan};
use gibbsite_core::image::{OPTIONAL, id};
use gibbsite_core::infer::junction::Fact;
use gibbsite_core::infer::loopy::{Dimensions, Loopy};
use gibbsite_core::infer::plan::Plan;
use std::collections::BTreeMap;

/// What to export of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldExportParams {
    /// How attributes are named.
    pub naming: Naming,
    /// A junction tree goes along if its tables take no more bytes of memory than this.
    pub max_plan_bytes: usize,
}

impl Default for FieldExportParams {
    /// Hashes, and 64 KiB.
    fn default() -> Self {
        Self { naming: Naming::Hash, max_plan_bytes: 64 << 10 }
    }
}

/// An exported field.
#[derive(Clone, Debug)]
pub struct ExportedField {
    /// The image.
    pub words: Vec<u32>,
    /// Names of its attributes, in the order of their numbers: an input that is a number by its name, a value of a discrete input as
    /// `input=value`.
    pub attributes: Vec<String>,
    /// What it is.
    pub info: FieldExportInfo,
}

impl ExportedField {
    /// The bytes of the image file: little-endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }
}

/// What the image of a field needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldExportInfo {
    /// Bytes of flash, without code.
    pub flash: usize,
    /// Variables.
    pub variables: usize,
    /// Factors.
    pub factors: usize,
    /// Attributes.
    pub attributes: usize,
    /// Weights of attributes.
    pub weights: usize,
    /// Bytes of memory for the tables of a sample; every engine needs them.
    pub tables: usize,
    /// Bytes of memory beside them for exact marginals or the exact best labels; none if the image has no junction tree.
    pub exact: Option<usize>,
    /// Bytes of memory beside them for belief propagation.
    pub loopy: usize,
}

/// Writes the image of a field, in single precision.
///
/// Constants go into the tables, and so does the mean of an input that was standardised: a device multiplies by the input as it
/// is, `w·(x - mean)/scale = (w/scale)·x - w·mean/scale`. Weights of 0 are left out.
///
/// # Errors
/// An [`ExportError`] if the model has something that an image cannot hold.
pub fn export_field(model: &FieldModel, params: &FieldExportParams) -> Result<ExportedField, ExportError> {
    let (schema, field) = (&model.schema, &model.field);
    let (variables, factors) = (field.variables(), field.factors());
    let mut tables: Vec<f64> = Vec::new();
    let (mut table_starts, mut scope_starts, mut scopes) = (vec![0u32], vec![0u32], Vec::new());
    // Weights by input and value.
    let mut found: BTreeMap<(u32, u32), Vec<(u32, f64)>> = BTreeMap::new();
    for k in 0..factors {
        let (start, template) = (tables.len(), field.template(k));
        let mut table = vec![0.0; field.size(k)];
        model.index.add_scores(template, 0, 1.0, &model.theta, &mut table);
        let mut attribute = 1;
        for &[input, slot] in if k < variables { &schema.seen[k][..] } else { &[] } {
            for value in 0..values(&schema.slots[slot as usize]) {
                let mut row = vec![0.0; table.len()];
                model.index.add_scores(template, attribute, 1.0, &model.theta, &mut row);
                attribute += 1;
                let (mean, scale) = match schema.slots[slot as usize] {
                    Slot::Number { mean, scale } => (mean, scale),
                    Slot::Values(_) => (0.0, 1.0),
                };
                for (y, w) in row.into_iter().enumerate().filter(|(_, w)| *w != 0.0) {
                    table[y] -= w * mean / scale;
                    found.entry((input, value)).or_default().push(((start + y) as u32, w / scale));
                }
            }
        }
        tables.extend(table);
        scopes.extend_from_slice(field.scope(k));
        table_starts.push(small(tables.len())?);
        scope_starts.push(small(scopes.len())?);
    }

    let keys: Vec<(u32, u32)> = found.keys().copied().collect();
    let names: Vec<String> = keys.iter().map(|&(input, value)| attribute_name(model, input, value)).collect();
    let kept = found.into_values().enumerate().map(|(i, list)| (i as u32, list)).collect();
    let (kept, lookup) = number(kept, params.naming, |i| &names[i as usize])?;
    let (mut weight_starts, mut places, mut weights) = (vec![0u32], Vec::new(), Vec::new());
    for (i, list) in &kept {
        for &(at, w) in list {
            places.push(at);
            weights.push(narrow(w, || names[*i as usize].clone())?);
        }
        weight_starts.push(small(weights.len())?);
    }
    let constants: Vec<u32> =
        tables.iter().map(|&x| narrow(x, || "a constant".into())).collect::<Result<_, _>>()?;

    let network = network(model)?;
    let (words, exact, loopy) = memory(&network, params.max_plan_bytes);
    let shape = [variables, factors, scopes.len(), tables.len(), kept.len(), weights.len()];
    let labels = (0..variables).flat_map(|v| schema.labels(v)).map(String::as_str);
    let mut sections: Vec<Section> = lookup;
    let shape = shape.iter().map(|&n| small(n)).collect::<Result<_, _>>()?;
    sections.extend([
        (id::FIELD, shape),
        (id::CARDS, field.cards().to_vec()),
        (id::SCOPE_STARTS, scope_starts),
        (id::SCOPES, scopes),
        (id::TABLE_STARTS, table_starts),
        (id::TABLES, constants),
        (id::WEIGHT_STARTS, weight_starts),
        (id::WEIGHT_PLACES, places),
        (id::WEIGHTS, weights),
        (id::OUTPUTS | OPTIONAL, texts(schema.outputs.iter().map(String::as_str))?),
        (id::OUTPUT_LABELS | OPTIONAL, texts(labels)?),
    ]);
    sections.extend(words.map(|words| (id::PLAN | OPTIONAL, words)));
    let weights = sections.iter().find(|s| s.0 == id::WEIGHTS).map_or(0, |s| s.1.len());
    let words = assemble(&sections)?;
    let attributes = kept.iter().map(|(i, _)| names[*i as usize].clone()).collect::<Vec<_>>();
    let info = FieldExportInfo {
        flash: 4 * words.len(),
        variables,
        factors,
        attributes: attributes.len(),
        weights,
        tables: 4 * tables.len(),
        exact,
        loopy,
    };
    Ok(ExportedField { words, attributes, info })
}

/// How many attributes an input has.
pub(super) fn values(slot: &Slot) -> u32 {
    match slot {
        Slot::Number { .. } => 1,
        Slot::Values(values) => values.len() as u32,
    }
}

/// What a device calls an input, or a value of a discrete one.
pub(super) fn attribute_name(model: &FieldModel, input: u32, value: u32) -> String {
    let name = &model.schema.inputs[input as usize];
    let slot = model.schema.seen.iter().flatten().find(|pair| pair[0] == input).map(|pair| pair[1]);
    match slot.map(|slot| &model.schema.slots[slot as usize]) {
        Some(Slot::Values(values)) => {
            format!("{name}={}", values.get(value as usize).map_or("", String::as_str))
        }
        _ => name.clone(),
    }
}

fn small(n: usize) -> Result<u32, ExportError> {
    u32::try_from(n).map_err(|_| ExportError::TooLarge)
}

fn narrow(x: f64, what: impl Fn() -> String) -> Result<u32, ExportError> {
    let narrow = x as f32;
    if narrow.is_finite() { Ok(narrow.to_bits()) } else { Err(ExportError::Weight(what())) }
}

/// The field without its numbers.
fn network(model: &FieldModel) -> Result<Network, ExportError> {
    let field = &model.field;
    let mut network = Network::with_cards(field.cards().to_vec()).map_err(|_| ExportError::TooLarge)?;
    for k in 0..field.factors() {
        let table = vec![0.0; field.size(k)];
        network.push_factor(field.scope(k), table).map_err(|_| ExportError::TooLarge)?;
    }
    Ok(network)
}

/// The words of a junction tree and the bytes that it takes, if these are few enough; the bytes for belief propagation.
fn memory(network: &Network, most: usize) -> (Option<Vec<u32>>, Option<usize>, usize) {
    let Ok(graph) = network.graph() else { return (None, None, 0) };
    let size = Dimensions::of(&graph);
    let loopy = 4 * (Loopy::<f32>::words_len(&size) + Loopy::<f32>::reals_len(&size));
    // Small blocks: a device has no cache to fill, but the block is memory.
    let made = plan(network, &PlanParams { block: 16, ..PlanParams::default() });
    let Some(words) = made.ok().map(|p| p.words) else { return (None, None, loopy) };
    let mut counters = vec![0; Plan::open_len(size.variables, size.factors)];
    let opened = Plan::open(&words, &graph, &mut counters).map(|plan| {
        let reals = plan.messages_len() + plan.belief_len() + plan.separator_len() + plan.temp_len();
        let facts = plan.clusters() * size_of::<Fact<f32>>();
        let words = plan.index_len() + size.variables + Plan::open_len(size.variables, size.factors);
        4 * (reals + words) + facts
    });
    match opened {
        Ok(bytes) if bytes <= most => (Some(words), Some(bytes), loopy),
        _ => (None, None, loopy),
    }
}
