//! Fields over the columns of tables.

use super::{name, scalar_name, size};
use crate::{Outcome, args, config, output};
use anyhow::{anyhow, bail};
use gibbsite::export::{
    ExportedField, FieldExportInfo, FieldExportParams, Scalar, export_field, field_c_source, field_source,
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
    if config.scheme.is_some() || config.forbid.is_some() || config.check.is_some() {
        common.warn("--scheme, --forbid and --check are for models of sequences, and not looked at");
    }
    let params = FieldExportParams { naming: config.params.naming, ..FieldExportParams::default() };
    let exported = export_field(model, &params).map_err(|e| anyhow!("{}: {e}", name(&config.model)))?;
    let bytes = match config.form {
        args::Form::Image => exported.to_bytes(),
        args::Form::C => field_c_source(model, &exported).into_bytes(),
        args::Form::Rust => field_source(model, &exported).into_bytes(),
    };
    output::write(Some(&config.out), &bytes)?;
    let text =
        if common.json { format!("{}\n", as_json(config, &exported)) } else { as_text(config, &exported) };
    output::write(common.output.as_deref(), text.as_bytes())?;
    Ok(Outcome::Done)
}

fn as_text(config: &config::Export, exported: &ExportedField) -> String {
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
    text
}

fn as_json(config: &config::Export, exported: &ExportedField) -> Value {
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
    })
}
