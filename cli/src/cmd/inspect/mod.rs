//! `gibbsite inspect`: what a file holds.

mod crf;
mod gaussian;
mod gaussian_image;
mod image;

use super::{name, read_evidence};
use crate::{Outcome, config, output};
use gibbsite::data::source::Source;
use gibbsite::data::uai;
use gibbsite::data::uai::{Model, ModelKind};
use gibbsite::infer::{Mebibytes, Prospect, inspect};
use gibbsite::model::container::is_model;
use gibbsite::model::regression::task_name;
use gibbsite::model::{Container, FieldModel, GaussianModel, Kind, RegressionModel, SequenceModel};
use gibbsite_core::error::ImageError;
use gibbsite_core::image::{FieldImage, GaussianImage, Image, id};
use serde_json::{Value, json};
use std::fmt::Write;

pub(crate) fn run(config: &config::Inspect) -> anyhow::Result<Outcome> {
    let source = Source::open(&config.file)?;
    // Told by the first bytes, whatever the file is called.
    if let Some(words) = image::words(&source.bytes).filter(|_| !is_model(&source.bytes)) {
        return inspect_image(config, &source, &words);
    }
    if is_model(&source.bytes) { inspect_model(config, &source) } else { inspect_uai(config, &source) }
}

fn inspect_uai(config: &config::Inspect, source: &Source) -> anyhow::Result<Outcome> {
    let common = &config.common;
    let model = uai::read_model(&source.bytes).map_err(|e| anyhow::anyhow!("{}: {e}", source.name))?;
    let evidence = read_evidence(config.evidence.as_deref(), model.network.cards())?;
    let prospect = inspect(&model.network, &evidence, config.max_table_mib, common.seed, common.par)
        .map_err(|error| anyhow::anyhow!("{}: {error}", name(&config.file)))?;
    let text = if common.json {
        let mut value = as_json(&model, evidence.len(), &prospect);
        if config.parameters {
            value["parameters"] = parameters(&model);
        }
        format!("{value}\n")
    } else {
        let mut text = as_text(&model, evidence.len(), &prospect, config.max_table_mib);
        if config.parameters {
            write_parameters(&mut text, &model);
        }
        text
    };
    output::write(common.output.as_deref(), text.as_bytes())?;
    Ok(Outcome::Done)
}

fn inspect_image(config: &config::Inspect, source: &Source, words: &[u32]) -> anyhow::Result<Outcome> {
    let common = &config.common;
    let bad = |e: ImageError| anyhow::anyhow!("{}: {e}", source.name);
    // The first section of a field and that of a Gaussian CRF are ones that no chain has.
    let text = match Image::open(words) {
        Err(ImageError::Section { section: id::FIELD, .. }) => {
            let image = FieldImage::open(words).map_err(bad)?;
            if common.json { image::field_json(&image) } else { image::field_text(&image) }
        }
        Err(ImageError::Section { section: id::GAUSSIAN, .. }) => {
            let image = GaussianImage::open(words).map_err(bad)?;
            let write = if common.json { gaussian_image::as_json } else { gaussian_image::as_text };
            write(&image, config.parameters)
        }
        other if common.json => image::as_json(&other.map_err(bad)?, config.parameters)?,
        other => image::as_text(&other.map_err(bad)?, config.parameters)?,
    };
    output::write(common.output.as_deref(), text.as_bytes())?;
    Ok(Outcome::Done)
}

fn preamble(model: &Model) -> &'static str {
    match model.kind {
        ModelKind::Markov => "MARKOV",
        ModelKind::Bayes => "BAYES",
    }
}

/// `1 factor`, `2 factors`.
fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn as_text(model: &Model, observed: usize, prospect: &Prospect, limit: f64) -> String {
    let network = &model.network;
    let arity = network.cards().iter().max().copied().unwrap_or(0);
    let scope = (0..network.factors()).map(|k| network.scope(k).len()).max().unwrap_or(0);
    let mut text = format!("UAI model ({})\n", preamble(model));
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<22} {value}");
    };
    line("variables", format!("{} (largest arity {arity}, {observed} observed)", network.variables()));
    let entries = count_entries(network.entries() as f64);
    line("factors", format!("{} (largest scope {scope}, {entries})", network.factors()));
    line(
        "left for inference",
        format!(
            "{}, {}, {}{}",
            count(prospect.variables, "variable"),
            count(prospect.factors, "factor"),
            count(prospect.components, "component"),
            if prospect.forest { ", no cycles" } else { "" }
        ),
    );
    match prospect.junction {
        Ok(info) => {
            line("treewidth", format!("at most {}", info.treewidth));
            let bits = info.largest_table.max(1.0).log2();
            line("largest table", format!("{} (2^{bits:.1})", count_entries(info.largest_table)));
            let (pr, mar) = (info.mebibytes(false), info.mebibytes(true));
            let fits = if mar <= limit { "" } else { ", above --max-table-mib" };
            let (pr, mar) = (Mebibytes(pr), Mebibytes(mar));
            line("memory to run exactly", format!("{pr} (pr, map), {mar} (mar{fits})"));
        }
        Err(bits) => {
            line("treewidth", format!("too large: every order tried needs a table of 2^{bits:.1} entries"));
        }
    }
    line("suggested method", prospect.suggested.name().into());
    text
}

fn count_entries(entries: f64) -> String {
    format!("{entries:.0} {}", if entries == 1.0 { "entry" } else { "entries" })
}

fn as_json(model: &Model, observed: usize, prospect: &Prospect) -> Value {
    let network = &model.network;
    let info = prospect.junction.ok();
    json!({
        "kind": "uai",
        "preamble": preamble(model),
        "variables": network.variables(),
        "factors": network.factors(),
        "max_arity": network.cards().iter().max(),
        "max_scope": (0..network.factors()).map(|k| network.scope(k).len()).max(),
        "table_entries": network.entries(),
        "observed": observed,
        "components": prospect.components,
        "acyclic": prospect.forest,
        "treewidth": info.map(|i| i.treewidth),
        "largest_table": info.map(|i| whole(i.largest_table)),
        "mebibytes_pr": info.map(|i| i.mebibytes(false)),
        "mebibytes_mar": info.map(|i| i.mebibytes(true)),
        "suggested_method": prospect.suggested.name(),
    })
}

/// A count without a point, as long as it is exact.
fn whole(count: f64) -> Value {
    if count.fract() == 0.0 && count.abs() < 2f64.powi(53) { json!(count as i64) } else { json!(count) }
}

/// One line for each factor.
fn write_parameters(text: &mut String, model: &Model) {
    let network = &model.network;
    for k in 0..network.factors() {
        let spaced = |items: Vec<String>| items.join(" ");
        let scope = spaced(network.scope(k).iter().map(u32::to_string).collect());
        let table = spaced(network.table(k).iter().map(f64::to_string).collect());
        let _ = writeln!(text, "  factor {k} of ({scope}): {table}");
    }
}

/// All factors; JSON has no infinities, so a forbidden configuration is `null`.
fn parameters(model: &Model) -> Value {
    let network = &model.network;
    let factors: Vec<Value> = (0..network.factors())
        .map(|k| json!({ "scope": network.scope(k), "log_potentials": network.table(k) }))
        .collect();
    json!({ "arities": network.cards(), "factors": factors })
}

fn inspect_model(config: &config::Inspect, source: &Source) -> anyhow::Result<Outcome> {
    let common = &config.common;
    if config.evidence.is_some() {
        common.warn("--evidence is for UAI models, and not looked at");
    }
    let blame = |error: gibbsite::model::ModelError| anyhow::anyhow!("{}: {error}", source.name);
    let file = Container::open(&source.bytes).map_err(blame)?;
    let text = match file.kind {
        Kind::REGRESSION => {
            let model = RegressionModel::from_container(&file).map_err(blame)?;
            if common.json {
                regression_json(&model, config.parameters)
            } else {
                regression_text(&model, config.parameters)
            }
        }
        Kind::SEQUENCES => {
            let model = SequenceModel::from_container(&file).map_err(blame)?;
            if common.json {
                crf::sequences_json(&model, config.parameters)
            } else {
                crf::sequences_text(&model, config.parameters)
            }
        }
        Kind::FIELD => {
            let model = FieldModel::from_container(&file).map_err(blame)?;
            if common.json {
                crf::field_json(&model, config.parameters)
            } else {
                crf::field_text(&model, config.parameters)
            }
        }
        Kind::GAUSSIAN => {
            let model = GaussianModel::from_container(&file).map_err(blame)?;
            if common.json {
                gaussian::as_json(&model, config.parameters)
            } else {
                gaussian::as_text(&model, config.parameters)
            }
        }
        // A kind from a later version: the header describes itself.
        kind if common.json => format!("{}\n", json!({ "kind": kind.to_string(), "header": file.header })),
        kind => format!("gibbsite model of the kind `{kind}`\n{:#}\n", file.header),
    };
    output::write(common.output.as_deref(), text.as_bytes())?;
    Ok(Outcome::Done)
}

fn regression_json(model: &RegressionModel, parameters: bool) -> String {
    let mut value = json!({ "kind": "regression" });
    if let (Value::Object(value), Value::Object(header)) = (&mut value, model.header()) {
        value.extend(header);
        if parameters {
            let weights = model.weights.iter().enumerate().map(|(k, w)| (model.feature(k), json!(w)));
            value.insert("coefficients".into(), Value::Object(weights.collect()));
        }
    }
    format!("{value}\n")
}

fn regression_text(model: &RegressionModel, parameters: bool) -> String {
    let mut text = format!("Sparse regression ({}, solver {})\n", task_name(model.task), model.solver);
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<22} {value}");
    };
    line("trained on", format!("{}: {} samples, {} features", model.data, model.samples, model.features));
    if let Some([negative, positive]) = model.labels {
        line("labels", format!("{negative}, {positive}"));
    }
    let share = model.lambda / model.lambda_max;
    let of = if model.lambda_max > 0.0 {
        format!("{share:.4} of lambda_max {}", model.lambda_max)
    } else {
        "lambda_max is 0: no feature had anything to explain".to_owned()
    };
    line("lambda", format!("{} ({of})", model.lambda));
    if model.l2 > 0.0 {
        line("l2", model.l2.to_string());
    }
    let asked = [
        (model.standardize, "standardized penalty"),
        (model.positive, "coefficients of at least 0"),
        (model.weighted, "penalty factors"),
    ];
    let asked: Vec<&str> = asked.iter().filter(|a| a.0).map(|a| a.1).collect();
    if !asked.is_empty() {
        line("with", asked.join(", "));
    }
    line("objective", model.objective.to_string());
    let met = match (model.converged, model.interrupted) {
        (true, _) => "",
        (false, true) => ", INTERRUPTED",
        (false, false) => ", NOT CONVERGED",
    };
    line("duality gap", format!("{:.2e} (tolerance {:e}{met})", model.gap, model.tolerance));
    line("non-zeros", format!("{} of {}", model.weights.len(), model.features));
    if let Some(intercept) = model.intercept {
        line("intercept", intercept.to_string());
    }
    if parameters {
        for (k, weight) in model.weights.iter().enumerate() {
            line(&format!("  {}", model.feature(k)), weight.to_string());
        }
    }
    text
}
