//! Fields over the columns of tables.

use super::{name, scalar_name, size};
use crate::cmd::predict::table::{read, remark};
use crate::{Outcome, args, config, output};
use anyhow::{anyhow, bail};
use gibbsite::export::{
    ExportedField, FieldCheckInfo, FieldExportInfo, FieldExportParams, Scalar, check_field, export_field,
    field_c_source, field_source,
};
use gibbsite::model::FieldModel;
use serde_json::{Value, json};
use std::fmt::Write;

pub(super) fn run(config: &config::Export, model: &FieldModel) -> anyhow::Result<Outcome> {
    let common = &config.common;
    if config.params.scalar != Scalar::F32 {
        let scalar = scalar_name(config.params.scalar);
        bail!(
            "{}: a field is exported in f32, not in {scalar}: only chains have fixed point",
            name(&config.model)
        );
    }
    if config.scheme.is_some() || config.forbid.is_some() {
        common.warn("--scheme and --forbid are for models of sequences, and not looked at");
    }
    let params = FieldExportParams { naming: config.params.naming, ..FieldExportParams::default() };
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
    let FieldExportInfo { flash, variables, factors, attributes, weights, tables, exact, loopy } =
        exported.info;
    let mut text = format!(
        "{}: {variables} variables, {factors} factors, {attributes} attributes, {weights} weights in f32\n",
        config.out.display()
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
    line("  belief propagation", format!("{} more", size(loopy)));
    if let Some(info) = checked {
        line("checked on", format!("{} rows", info.rows));
        line("worst error of a score", format!("{:.2e}", info.worst_score_error));
        if let Some(exact) = &info.exact {
            line("  of a probability", format!("{:.2e}", exact.worst_probability_error));
            line(
                "other labels",
                format!("{} outputs, worse by up to {:.2e}", exact.different_labels, exact.worst_score_loss),
            );
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
        "scalar": "f32",
        "flash_bytes": info.flash,
        "ram_tables_bytes": info.tables,
        "ram_exact_bytes": info.exact,
        "ram_loopy_bytes": info.loopy,
        "variables": info.variables,
        "factors": info.factors,
        "attributes": info.attributes,
        "weights": info.weights,
        "check": checked.map(|c| json!({
            "rows": c.rows,
            "worst_error": c.worst_score_error,
            "different_labels": c.exact.map(|e| e.different_labels),
            "worst_score_loss": c.exact.map(|e| e.worst_score_loss),
            "worst_probability_error": c.exact.map(|e| e.worst_probability_error),
        })),
    })
}
