//! Fields over the columns of tables.

use super::{bounded, name, scalar_name, size};
use crate::cmd::predict::table::{read, remark};
use crate::{Outcome, args, config, output};
use anyhow::anyhow;
use gibbsite::export::{
    ExportedField, FieldCheckInfo, FieldExportInfo, FieldExportParams, Scalar, check_field, export_field,
    field_c_source, field_source,
};
use gibbsite::model::FieldModel;
use serde_json::{Value, json};
use std::fmt::Write;

pub(super) fn run(config: &config::Export, model: &FieldModel) -> anyhow::Result<Outcome> {
    let common = &config.common;
    if config.scheme.is_some() || config.forbid.is_some() {
        common.warn("--scheme and --forbid are for models of sequences, and not looked at");
    }
    let params = FieldExportParams {
        scalar: config.params.scalar,
        naming: config.params.naming,
        ..FieldExportParams::default()
    };
    let exported = export_field(model, &params).map_err(|e| anyhow!("{}: {e}", name(&config.model)))?;
    let checked = match &config.check {
        None => None,
        Some(data) => {
            let (samples, report) = read(data, model)?;
            remark(common, &report, false);
            let info = check_field(model, &exported, &samples, common.par);
            Some(info.map_err(|e| anyhow!("{}: {e}", data.name()))?)
        }
    };
    let bytes = match config.form {
        args::Form::Image => exported.to_bytes(),
        args::Form::C => field_c_source(model, &exported).into_bytes(),
        args::Form::Rust => field_source(model, &exported).into_bytes(),
    };
    output::write(Some(&config.out), &bytes)?;
    let text = if common.json {
        format!("{}\n", as_json(config, &exported, checked.as_ref()))
    } else {
        as_text(config, &exported, checked.as_ref())
    };
    output::write(common.output.as_deref(), text.as_bytes())?;
    Ok(Outcome::Done)
}

fn as_text(config: &config::Export, exported: &ExportedField, checked: Option<&FieldCheckInfo>) -> String {
    let FieldExportInfo {
        scalar,
        flash,
        variables,
        factors,
        attributes,
        weights,
        tables,
        exact,
        loopy,
        ascent,
    } = exported.info;
    let mut text = format!(
        "{}: {variables} variables, {factors} factors, {attributes} attributes, {weights} weights in {}\n",
        config.out.display(),
        scalar_name(scalar)
    );
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<22} {value}");
    };
    line("flash", size(flash));
    line("RAM", format!("{} for the tables of a sample", size(tables)));
    line(
        "  exact inference",
        exact
            .map_or("too wide for a junction tree of 64 KiB".into(), |bytes| format!("{} more", size(bytes))),
    );
    if let Some(loopy) = loopy {
        line("  belief propagation", format!("{} more", size(loopy)));
    }
    line("  ascent", format!("{} more", size(ascent)));
    let given = exported.attributes.iter().zip(&exported.standardised);
    for (name, [mean, scale]) in given.filter_map(|(name, pair)| Some((name, (*pair)?))) {
        line("give", format!("({name} - {mean:?}) / {scale:?}"));
    }
    if let Some(info) = checked {
        line("checked on", format!("{} rows", info.rows));
        line("worst error of a score", bounded(scalar, info.worst_score_error, info.score_error_bound));
        if let Some(exact) = &info.exact {
            line("  of a probability", format!("{:.2e}", exact.worst_probability_error));
            line(
                "other labels",
                format!("{} outputs, worse by up to {:.2e}", exact.different_labels, exact.worst_score_loss),
            );
        }
        if info.saturated > 0 {
            line("cut off", format!("{} rows: their inputs are too large for fixed point", info.saturated));
        }
    }
    text
}

fn as_json(config: &config::Export, exported: &ExportedField, checked: Option<&FieldCheckInfo>) -> Value {
    let info = &exported.info;
    json!({
        "to": match config.form {
            args::Form::Image => "image",
            args::Form::C => "c",
            args::Form::Rust => "rust",
        },
        "scalar": scalar_name(info.scalar),
        "flash_bytes": info.flash,
        "ram_tables_bytes": info.tables,
        "ram_exact_bytes": info.exact,
        "ram_loopy_bytes": info.loopy,
        "ram_ascent_bytes": info.ascent,
        "standardised": standardised(exported),
        "variables": info.variables,
        "factors": info.factors,
        "attributes": info.attributes,
        "weights": info.weights,
        "check": checked.map(|c| json!({
            "rows": c.rows,
            "worst_error": c.worst_score_error,
            "score_error_bound": (info.scalar != Scalar::F32).then_some(c.score_error_bound),
            "saturated_rows": c.saturated,
            "different_labels": c.exact.map(|e| e.different_labels),
            "worst_score_loss": c.exact.map(|e| e.worst_score_loss),
            "worst_probability_error": c.exact.map(|e| e.worst_probability_error),
        })),
    })
}

/// What a device has to do with inputs before it gives them.
fn standardised(exported: &ExportedField) -> Vec<Value> {
    let each = exported.attributes.iter().zip(&exported.standardised);
    each.filter_map(|(name, pair)| {
        pair.map(|[mean, scale]| json!({ "attribute": name, "mean": mean, "scale": scale }))
    })
    .collect()
}
