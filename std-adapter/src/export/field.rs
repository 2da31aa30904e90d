//! The image of a field over the columns of a table; what the words mean stands in `core/IMAGE.md`.

use super::image::{Section, assemble, halves, number, scales, texts, weight_words};
use super::quantise::{log_add_table, quantise};
use super::{ExportError, Naming, Scalar};
use crate::data::network::Network;
use crate::field::schema::Slot;
use crate::model::FieldModel;
use crate::plan::{PlanParams, plan};
use gibbsite_core::graph::Incidence;
use gibbsite_core::image::{OPTIONAL, id};
use gibbsite_core::infer::icm;
use gibbsite_core::infer::junction::Fact;
use gibbsite_core::infer::loopy::{Dimensions, Loopy};
use gibbsite_core::infer::plan::Plan;
use std::collections::BTreeMap;

/// What to export of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldExportParams {
    /// What constants and weights become (constants of 16 bits in both kinds of fixed point).
    pub scalar: Scalar,
    /// How attributes are named.
    pub naming: Naming,
    /// A junction tree goes along if its tables take no more bytes of memory than this.
    pub max_plan_bytes: usize,
}

impl Default for FieldExportParams {
    /// Single precision, hashes, and 64 KiB.
    fn default() -> Self {
        Self { scalar: Scalar::F32, naming: Naming::Hash, max_plan_bytes: 64 << 10 }
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
    /// Of each attribute the mean and the scale that its input was standardised by, if a device has to do that too: in fixed point. In single precision it
    /// gives inputs as they are.
    pub standardised: Vec<Option<[f64; 2]>>,
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
    /// What its numbers are.
    pub scalar: Scalar,
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
    /// Bytes of memory beside them for belief propagation; none in fixed point, which has none.
    pub loopy: Option<usize>,
    /// Bytes of memory beside them for ascent by one variable, and local conditionals.
    pub ascent: usize,
}

/// Writes the image of a field.
///
/// Constants go into the tables. In single precision so does the mean of an input that was standardised: a device multiplies by the input as it
/// is, `w·(x - mean)/scale = (w/scale)·x - w·mean/scale`. In fixed point that would multiply the rounding of weights by the size of the input (an air pressure of
/// 1013 by a weight of 8 bits), so a device gives it as the model saw it, `(x - mean)/scale`. Weights of 0 are left out.
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
                let [mean, scale] = match schema.slots[slot as usize] {
                    Slot::Number { mean, scale } if params.scalar == Scalar::F32 => [mean, scale],
                    _ => [0.0, 1.0],
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
            weights.push((w, *i));
        }
        weight_starts.push(small(weights.len())?);
    }
    let numbers = Numbers::new(params.scalar, &tables, &weights, &names)?;

    let network = network(model)?;
    let memory = Needs::of(&network, params);
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
        (id::TABLES, numbers.constants),
        (id::WEIGHT_STARTS, weight_starts),
        (id::WEIGHT_PLACES, places),
        (id::WEIGHTS, numbers.weights),
        (id::OUTPUTS | OPTIONAL, texts(schema.outputs.iter().map(String::as_str))?),
        (id::OUTPUT_LABELS | OPTIONAL, texts(labels)?),
    ]);
    sections.extend(memory.plan.map(|words| (id::PLAN | OPTIONAL, words)));
    if let Some([scales, log_add]) = numbers.units {
        sections.extend([(id::FIELD_SCALES, scales), (id::FIELD_LOG_ADD | OPTIONAL, log_add)]);
    }
    let words = assemble(&sections)?;
    let attributes = kept.iter().map(|(i, _)| names[*i as usize].clone()).collect::<Vec<_>>();
    let standardised = kept.iter().map(|(i, _)| match slot(model, keys[*i as usize].0)? {
        Slot::Number { mean, scale } if params.scalar != Scalar::F32 => Some([*mean, *scale]),
        _ => None,
    });
    let standardised = standardised.map(|pair| pair.filter(|pair| *pair != [0.0, 1.0])).collect();
    let info = FieldExportInfo {
        scalar: params.scalar,
        flash: 4 * words.len(),
        variables,
        factors,
        attributes: attributes.len(),
        weights: weights.len(),
        tables: 4 * tables.len(),
        exact: memory.exact,
        loopy: memory.loopy,
        ascent: memory.ascent,
    };
    Ok(ExportedField { words, attributes, standardised, info })
}

/// The words of constants and weights.
struct Numbers {
    constants: Vec<u32>,
    weights: Vec<u32>,
    /// The sections that say what units are worth, for fixed point.
    units: Option<[Vec<u32>; 2]>,
}

impl Numbers {
    /// Weights have the numbers of their attributes.
    fn new(
        scalar: Scalar,
        constants: &[f64],
        weights: &[(f64, u32)],
        names: &[String],
    ) -> Result<Self, ExportError> {
        let named = |a: u32| names[a as usize].clone();
        // What single precision cannot hold, fixed point cannot either.
        let single: Vec<u32> =
            constants.iter().map(|&x| narrow(x, || "a constant".into())).collect::<Result<_, _>>()?;
        let words = weights.iter().map(|&(w, a)| narrow(w, || named(a))).collect::<Result<_, _>>()?;
        if scalar == Scalar::F32 {
            return Ok(Self { constants: single, weights: words, units: None });
        }
        let exact: Vec<f64> = weights.iter().map(|pair| pair.0).collect();
        let q = quantise(scalar, &exact, constants);
        let units = [[&[scalar as u32], &scales(&q, false)[..]].concat(), log_add_table(q.unit)];
        let (constants, weights) = (halves(&q.transitions), weight_words(scalar, &q));
        Ok(Self { constants, weights, units: Some(units) })
    }
}

/// How many attributes an input has.
pub(super) fn values(slot: &Slot) -> u32 {
    match slot {
        Slot::Number { .. } => 1,
        Slot::Values(values) => values.len() as u32,
    }
}

/// What the model knows of an input.
fn slot(model: &FieldModel, input: u32) -> Option<&Slot> {
    let pair = model.schema.seen.iter().flatten().find(|pair| pair[0] == input)?;
    model.schema.slots.get(pair[1] as usize)
}

/// What a device calls an input, or a value of a discrete one.
pub(super) fn attribute_name(model: &FieldModel, input: u32, value: u32) -> String {
    let name = &model.schema.inputs[input as usize];
    match slot(model, input) {
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

/// What engines need.
struct Needs {
    /// The words of a junction tree and the bytes that it takes, if these are few enough.
    plan: Option<Vec<u32>>,
    exact: Option<usize>,
    loopy: Option<usize>,
    ascent: usize,
}

impl Needs {
    fn of(network: &Network, params: &FieldExportParams) -> Self {
        let mut needs = Self { plan: None, exact: None, loopy: None, ascent: 0 };
        let Ok(graph) = network.graph() else { return needs };
        let (size, fixed) = (Dimensions::of(&graph), params.scalar != Scalar::F32);
        let incidence = Incidence::len(size.variables, size.edges);
        needs.ascent = 4 * (incidence + size.variables + icm::scratch_len(&size));
        if !fixed {
            needs.loopy = Some(4 * (Loopy::<f32>::words_len(&size) + Loopy::<f32>::reals_len(&size)));
        }
        // Small blocks: a device has no cache to fill, but the block is memory.
        let made = plan(network, &PlanParams { block: 16, ..PlanParams::default() });
        let Some(words) = made.ok().map(|p| p.words) else { return needs };
        let mut counters = vec![0; Plan::open_len(size.variables, size.factors)];
        let Ok(plan) = Plan::open(&words, &graph, &mut counters) else { return needs };
        let reals = plan.messages_len() + plan.belief_len() + plan.separator_len() + plan.temp_len();
        let facts = plan.clusters() * size_of::<Fact<f32>>();
        let index = plan.index_len() + size.variables + counters.len();
        let bytes = 4 * (reals + index) + facts;
        if bytes <= params.max_plan_bytes {
            (needs.plan, needs.exact) = (Some(words), Some(bytes));
        }
        needs
    }
}
