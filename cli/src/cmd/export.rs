//! `gibbsite export`: models for devices.

mod field;

use super::predict::sequences::{constraints, forbid, read, remark};
use super::{AnyModel, name, open_model};
use crate::{Outcome, args, config, output};
use anyhow::{anyhow, bail};
use gibbsite::export::{
    CheckInfo, ExportInfo, ExportParams, Exported, Scalar, c_source, check, export, rust_source,
};
use gibbsite_core::image::Image;
use serde_json::{Value, json};
use std::fmt::Write;

pub(crate) fn run(config: &config::Export) -> anyhow::Result<Outcome> {
    let common = &config.common;
    let model = match open_model(&config.model)? {
        AnyModel::Sequences(model) => model,
        AnyModel::Field(model) => return field::run(config, &model),
        AnyModel::Gaussian(model) => return super::gaussian::export(config, &model),
        AnyModel::Regression(_) => bail!(
            "{}: only models of sequences and tables (`gibbsite train`) and Gaussian CRFs can be exported",
            name(&config.model)
        ),
    };
    let mut ruled_out = constraints(config.scheme, &model)?;
    forbid(config.forbid.as_deref(), &model, &mut ruled_out)?;
    if !ruled_out.not_first.is_empty() || !ruled_out.not_last.is_empty() {
        common.warn("an image holds transitions only: labels that a sequence may not begin or end with are not ruled out");
    }
    let params = &ExportParams { forbidden: ruled_out.forbidden, ..config.params.clone() };
    let exported = export(&model, params).map_err(|e| anyhow!("{}: {e}", name(&config.model)))?;
    let checked = match &config.check {
        None => None,
        Some(data) => {
            let (sequences, report) = read(data, &model, true, common.par)?;
            remark(common, &report, &sequences);
            let info = check(&model, &exported, &params.forbidden, &sequences);
            Some(info.map_err(|e| anyhow!("{}: {e}", data.name()))?)
        }
    };
    if let Some(info) = checked.as_ref().filter(|info| info.longest > params.longest) {
        common.warn(&format!(
            "the data has a sequence of {} items, longer than --max-length {}: a device can only label it as a stream",
            info.longest, params.longest
        ));
    }
    if let Some(info) = checked.as_ref().filter(|info| info.saturated > 0) {
        common.warn(&format!(
            "the values or scores of {} items are beyond fixed point and were cut off",
            info.saturated
        ));
    }
    let bytes = match config.form {
        args::Form::Image => exported.to_bytes(),
        args::Form::C => c_source(&model, params, &exported).into_bytes(),
        args::Form::Rust => rust_source(&model, params, &exported).into_bytes(),
    };
    output::write(Some(&config.out), &bytes)?;
    let text = if common.json {
        format!("{}\n", as_json(config, &exported, checked.as_ref()))
    } else {
        as_text(config, &exported, checked.as_ref())?
    };
    output::write(common.output.as_deref(), text.as_bytes())?;
    Ok(Outcome::Done)
}

pub(super) fn scalar_name(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::F32 => "f32",
        Scalar::I16 => "i16",
        Scalar::I8 => "i8",
    }
}

/// `812 bytes`, `11.2 KiB`.
pub(super) fn size(bytes: usize) -> String {
    if bytes < 4096 { format!("{bytes} bytes") } else { format!("{:.1} KiB", bytes as f64 / 1024.0) }
}

/// An error, with what is proven of it in fixed point.
fn bounded(scalar: Scalar, error: f64, bound: f64) -> String {
    match scalar {
        Scalar::F32 => format!("{error:.2e}"),
        _ => format!("{error:.2e} (bound {bound:.2e})"),
    }
}

fn as_text(
    config: &config::Export,
    exported: &Exported,
    checked: Option<&CheckInfo>,
) -> anyhow::Result<String> {
    let ExportInfo { flash, ram, ram_marginals, labels, attributes, weights } = exported.info;
    let mut text = format!(
        "{}: {labels} labels, {attributes} attributes, {weights} weights in {}\n",
        config.out.display(),
        scalar_name(config.params.scalar)
    );
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<22} {value}");
    };
    line("flash", size(flash));
    let longest = config.params.longest;
    line("RAM", format!("{} for sequences of {longest} ({} for marginals)", size(ram), size(ram_marginals)));
    let image = Image::open(&exported.words)?;
    let rate = image.false_positive_rate();
    if config.params.naming != gibbsite::export::Naming::Numbers {
        line(
            "unknown name is taken",
            if rate > 0.0 { format!("with probability {rate:.1e}") } else { "never".into() },
        );
    }
    if let Some(info) = checked {
        line("checked on", format!("{} sequences, {} items", info.sequences, info.items));
        line("other labels", format!("{} items", info.different_labels));
        let scalar = config.params.scalar;
        line("worst error of a score", bounded(scalar, info.worst_score_error, info.score_error_bound));
        line("  of a probability", format!("{:.2e}", info.worst_probability_error));
    }
    Ok(text)
}

fn as_json(config: &config::Export, exported: &Exported, checked: Option<&CheckInfo>) -> Value {
    let info = &exported.info;
    json!({
        "to": config.form.name(),
        "scalar": scalar_name(config.params.scalar),
        "max_length": config.params.longest,
        "flash_bytes": info.flash,
        "ram_bytes": info.ram,
        "ram_marginals_bytes": info.ram_marginals,
        "labels": info.labels,
        "attributes": info.attributes,
        "weights": info.weights,
        "check": checked.map(|c| json!({
            "sequences": c.sequences,
            "items": c.items,
            "different_labels": c.different_labels,
            "worst_error": c.worst_score_error,
            "worst_score_loss": c.worst_score_loss,
            "score_error_bound": c.score_error_bound,
            "worst_probability_error": c.worst_probability_error,
            "saturated_items": c.saturated,
        })),
    })
}
