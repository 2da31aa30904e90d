//! The image of a field against the model it was made of, on data.

use super::check::Desk;
use super::field::{ExportedField, attribute_name, values};
use crate::field::FieldData;
use crate::field::predict::{Tables, Want, predict};
use crate::field::schema::Slot;
use crate::infer::junction::Buffers;
use crate::infer::{InferParams, QueryError, Task};
use crate::model::FieldModel;
use crate::par::Par;
use gibbsite_core::error::{ImageError, InferError};
use gibbsite_core::graph::FactorGraph;
use gibbsite_core::image::{FieldImage, FieldView, Scalar};
use gibbsite_core::infer::fork::Sequential;
use gibbsite_core::infer::junction::Junction;
use gibbsite_core::infer::plan::Plan;
use std::collections::HashMap;
use std::fmt;

/// How the image of a field does on data, against `f64`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FieldCheckInfo {
    /// Rows.
    pub rows: usize,
    /// The largest `|ŝ(y) - s(y)|`, where `y` are the labels that the image gives, or without a junction tree those that the model predicts.
    pub worst_score_error: f64,
    /// The largest proven bound on it, for fixed point.
    pub score_error_bound: f64,
    /// Rows of whose inputs or tables something had to be cut off.
    pub saturated: usize,
    /// What a junction tree tells; none if the image has none.
    pub exact: Option<FieldExactInfo>,
}

/// How exact inference on the image does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FieldExactInfo {
    /// Outputs that get another label.
    pub different_labels: usize,
    /// The largest `s(y*) - s(ŷ)`: how much worse than the best the image's labels are in the model.
    pub worst_score_loss: f64,
    /// The largest `|P̂(y_v = j) - P(y_v = j)|`.
    pub worst_probability_error: f64,
}

/// What kept the image of a field from being checked.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FieldCheckError {
    /// The image cannot be opened.
    Image(ImageError),
    /// A row, counted from 0, that the image gives no answer for.
    Row(usize, InferError),
    /// The model itself gives no answer.
    Model(QueryError),
}

impl fmt::Display for FieldCheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Image(e) => write!(f, "{e}"),
            Self::Row(s, e) => write!(f, "row {}: {e}", s + 1),
            Self::Model(e) => write!(f, "{e}"),
        }
    }
}

impl std::error::Error for FieldCheckError {}

/// Predicts all rows (read with the model's schema) with the image, through `gibbsite_core` as a device would, and with the model in
/// `f64`. Labels in the data are not looked at.
///
/// # Errors
/// A [`FieldCheckError`].
///
/// # Panics
/// If the samples are not of the model's field.
pub fn check_field(
    model: &FieldModel,
    exported: &ExportedField,
    data: &FieldData,
    par: Par,
) -> Result<FieldCheckInfo, FieldCheckError> {
    let image = FieldImage::open(&exported.words).map_err(FieldCheckError::Image)?;
    match image.scalar() {
        Scalar::F32 => run::<f32>(model, exported, image.field(), data, par),
        Scalar::I16 => run::<i16>(model, exported, image.field(), data, par),
        Scalar::I8 => run::<i8>(model, exported, image.field(), data, par),
    }
}

fn run<W: Exact>(
    model: &FieldModel,
    exported: &ExportedField,
    view: Result<FieldView<'_, W>, ImageError>,
    data: &FieldData,
    par: Par,
) -> Result<FieldCheckInfo, FieldCheckError> {
    let view = view.map_err(FieldCheckError::Image)?;
    let exact = exported.info.exact.is_some();
    let want = Want { labels: true, marginals: exact, ..Want::default() };
    let most = InferParams::new(Task::Map).max_table_mib;
    let right = predict(model, data, want, most, par).map_err(FieldCheckError::Model)?;
    let (inputs, tables) = (Inputs::new(model, exported), Tables::new(model));
    let mut info =
        FieldCheckInfo { rows: data.samples(), exact: exact.then(Default::default), ..Default::default() };
    let mut memory = vec![W::Score::default(); view.image().tables_len()];
    let mut device = None;
    for (s, right) in right.each.iter().enumerate() {
        let network = tables.network(data, s).map_err(FieldCheckError::Model)?;
        let row = |e: InferError| FieldCheckError::Row(s, e);
        let given = inputs.of(model, data, s);
        let held = given.iter().all(|&(_, x)| W::holds(x));
        let given: Vec<(u32, W::Value)> = given.into_iter().map(|(a, x)| (a, W::value(x))).collect();
        info.saturated += usize::from(view.tables(&given, &mut memory).map_err(row)? || !held);
        info.score_error_bound = info.score_error_bound.max(f64::from(view.error_bound(&given)));
        let graph = view.graph(&memory).map_err(|_| row(InferError::Shape))?;
        let score = |labels: &[u32]| network.log_potential(labels).unwrap_or(f64::NAN);
        let mut labels = right.labels.clone();
        if let Some(info) = &mut info.exact {
            let mut marginals = vec![0.0; right.marginals.len()];
            let device = match &mut device {
                Some(device) => device,
                None => device.insert(Device::new(&view, &graph).map_err(row)?),
            };
            device.infer(&view, &graph, &mut marginals, &mut labels).map_err(row)?;
            info.different_labels += labels.iter().zip(&right.labels).filter(|(a, b)| a != b).count();
            info.worst_score_loss = info.worst_score_loss.max(score(&right.labels) - score(&labels));
            let errors = marginals.iter().zip(&right.marginals).map(|(&p, q)| (f64::from(p) - q).abs());
            info.worst_probability_error = errors.fold(info.worst_probability_error, f64::max);
        }
        let own = graph.log_potential(&labels).ok_or_else(|| row(InferError::Shape))?;
        info.worst_score_error =
            info.worst_score_error.max((f64::from(view.total(own)) - score(&labels)).abs());
    }
    Ok(info)
}

/// The junction tree and the memory that a device has, opened once for all rows.
struct Device<'a, W: Exact> {
    plan: Plan<'a>,
    buffers: Buffers<W::Score>,
    temp: Vec<W::Score>,
}

impl<'a, W: Exact> Device<'a, W> {
    fn new(view: &FieldView<'a, W>, graph: &FactorGraph<'_, W::Score>) -> Result<Self, InferError> {
        let mut counters = vec![0; Plan::open_len(graph.variables(), graph.factors())];
        let plan = view.plan(graph, &mut counters)?;
        let buffers = Buffers::new(&plan, graph.variables());
        Ok(Self { plan, buffers, temp: vec![W::Score::default(); plan.temp_len()] })
    }

    /// Exact marginals and the best labels.
    fn infer(
        &mut self,
        view: &FieldView<'_, W>,
        graph: &FactorGraph<'_, W::Score>,
        marginals: &mut [f32],
        labels: &mut [u32],
    ) -> Result<(), InferError> {
        let mut fork = Sequential { temp: &mut self.temp };
        let mut junction = Junction::new(self.plan, *graph, self.buffers.lend())?;
        W::exact_marginals(view, &mut junction, &mut fork, marginals)?;
        junction.maximise(&mut fork)?;
        junction.decode(labels)
    }
}

/// Exact marginals, which each kind of scalar has its own way to.
trait Exact: Desk {
    fn exact_marginals(
        view: &FieldView<'_, Self>,
        junction: &mut Junction<'_, '_, Self::Score>,
        fork: &mut Sequential<'_, Self::Score>,
        marginals: &mut [f32],
    ) -> Result<(), InferError>
    where
        Self: Sized;
}

impl Exact for f32 {
    fn exact_marginals(
        _: &FieldView<'_, f32>,
        junction: &mut Junction<'_, '_, f32>,
        fork: &mut Sequential<'_, f32>,
        marginals: &mut [f32],
    ) -> Result<(), InferError> {
        junction.sum(fork)?;
        junction.marginals(fork, marginals)
    }
}

macro_rules! exact {
    ($($t:ty)*) => { $(
        impl Exact for $t {
            fn exact_marginals(
                view: &FieldView<'_, $t>,
                junction: &mut Junction<'_, '_, i32>,
                fork: &mut Sequential<'_, i32>,
                marginals: &mut [f32],
            ) -> Result<(), InferError> {
                let table = view.log_add().ok_or(InferError::Shape)?;
                let mut logs = vec![0; marginals.len()];
                junction.log_sum(&table, fork)?;
                junction.log_marginals(&table, fork, &mut logs)?;
                marginals.iter_mut().zip(logs).for_each(|(p, log)| *p = view.to_f32(log).exp());
                Ok(())
            }
        }
    )* };
}
exact!(i16 i8);

/// What a device would be given of a row: numbers as they were before they were standardised (unless it has to do that itself), values by their names.
struct Inputs {
    /// Attributes of the image by input and value.
    attributes: HashMap<(u32, u32), u32>,
    standardised: bool,
}

impl Inputs {
    fn new(model: &FieldModel, exported: &ExportedField) -> Self {
        let names: HashMap<&str, u32> = exported.attributes.iter().map(String::as_str).zip(0..).collect();
        let mut attributes = HashMap::new();
        for &[input, slot] in model.schema.seen.iter().flatten() {
            for value in 0..values(&model.schema.slots[slot as usize]) {
                let name = attribute_name(model, input, value);
                attributes.extend(names.get(name.as_str()).map(|&at| ((input, value), at)));
            }
        }
        Self { attributes, standardised: exported.info.scalar != Scalar::F32 }
    }

    fn of(&self, model: &FieldModel, data: &FieldData, sample: usize) -> Vec<(u32, f64)> {
        let schema = &model.schema;
        let mut found: HashMap<(u32, u32), f64> = HashMap::new();
        for (v, seen) in schema.seen.iter().enumerate() {
            let row: HashMap<u32, f64> = data.row(sample, v).into_iter().flat_map(|row| row.iter()).collect();
            // The first attribute is the constant.
            let mut attribute = 1;
            for &[input, slot] in seen {
                let slot = &schema.slots[slot as usize];
                for value in 0..values(slot) {
                    let given = row.get(&attribute).copied();
                    attribute += 1;
                    match *slot {
                        // What a row leaves out is the mean.
                        Slot::Number { mean, scale } => {
                            let given = given.unwrap_or(0.0);
                            let x = if self.standardised { given } else { mean + scale * given };
                            found.insert((input, value), x);
                        }
                        Slot::Values(_) => found.extend(given.map(|x| ((input, value), x))),
                    }
                }
            }
        }
        let named = found.into_iter().filter_map(|(key, x)| Some((*self.attributes.get(&key)?, x)));
        let mut list: Vec<(u32, f64)> = named.collect();
        list.sort_unstable_by_key(|e| e.0);
        list
    }
}
