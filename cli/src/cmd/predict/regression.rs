//! Predictions of a sparse regression.

use crate::{Outcome, config, output};
use gibbsite::data::dataset::Dataset;
use gibbsite::model::RegressionModel;
use serde_json::{Value, json};
use std::fmt::Write;

pub(crate) fn run(config: &config::Predict, model: &RegressionModel) -> anyhow::Result<Outcome> {
    let common = &config.common;
    let options = &config.sequences;
    if options.best.is_some() || options.scheme.is_some() || options.forced || options.forbid.is_some() {
        common.warn("--best, --scheme, --forbid and --forced are for models of sequences, and not looked at");
    }
    let data = config.data.read_for(model, false, common.par)?;
    remark(common, model, &data);
    let margins = model.margins(&data.matrix);
    if config.marginals && model.labels.is_none() {
        common.warn("a lasso predicts numbers, which have no probabilities");
    }
    let text = if common.json {
        format!("{}\n", as_json(model, &margins, config.marginals))
    } else {
        as_text(model, &margins, config.marginals)
    };
    output::write(common.output.as_deref(), text.as_bytes())?;
    Ok(Outcome::Done)
}

/// What was noticed while reading. That a sparse model does not look at every feature is no news, that it sees none is.
pub(in crate::cmd) fn remark(common: &config::Common, model: &RegressionModel, data: &Dataset) {
    if !model.weights.is_empty() && data.matrix.nonzeros() == 0 {
        common.warn("no feature that the model uses is in the data: all predictions are the same");
    }
    for note in &data.notes {
        common.log(|| note.clone());
    }
}

fn as_text(model: &RegressionModel, margins: &[f64], marginals: bool) -> String {
    let mut text = String::new();
    for &z in margins {
        let _ = write!(text, "{}", model.predict(z));
        if let (true, Some(labels)) = (marginals, model.probabilities(z)) {
            for (label, p) in labels {
                let _ = write!(text, " {label}:{p}");
            }
        }
        text.push('\n');
    }
    text
}

fn as_json(model: &RegressionModel, margins: &[f64], marginals: bool) -> Value {
    let predictions: Vec<f64> = margins.iter().map(|&z| model.predict(z)).collect();
    let mut value = json!({ "items": margins.len(), "predictions": predictions });
    if let (true, Some(labels)) = (marginals, model.labels) {
        let rows = margins.iter().filter_map(|&z| model.probabilities(z));
        let rows: Vec<Value> = rows.map(|both| json!(both.map(|(_, p)| p))).collect();
        value["labels"] = json!(labels);
        value["probabilities"] = Value::Array(rows);
    }
    value
}
