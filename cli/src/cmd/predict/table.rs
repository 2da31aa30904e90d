//! Labels for the rows of a table.

use crate::cmd::train::read_table;
use crate::config::{Common, Data};
use crate::{Outcome, args, config, output};
use anyhow::anyhow;
use gibbsite::field::predict::{Predictions, Want, predict};
use gibbsite::field::schema::Report;
use gibbsite::field::{FieldData, MISSING};
use gibbsite::model::FieldModel;
use serde_json::{Value, json};

pub(crate) fn run(config: &config::Predict, model: &FieldModel) -> anyhow::Result<Outcome> {
    let common = &config.common;
    let options = &config.sequences;
    if options.best.is_some() || options.scheme.is_some() || options.forbid.is_some() {
        common.warn("--best, --scheme and --forbid are for models of sequences, and not looked at");
    }
    let (data, report) = read(&config.data, model)?;
    remark(common, &report, options.forced);
    if options.forced && (0..data.samples()).all(|s| data.labels(s).iter().all(|&l| l == MISSING)) {
        common.warn("--forced, but no output has a known label in the data");
    }
    let want = Want { labels: true, marginals: config.marginals, forced: options.forced, ..Want::default() };
    let found = predict(model, &data, want, config.max_table_mib, common.par)
        .map_err(|e| anyhow!("{}: {e}", config.data.name()))?;
    remark_estimates(common, &found);
    let text = if common.json {
        format!("{}\n", as_json(model, &found, config.marginals)).into_bytes()
    } else {
        as_csv(model, &found, config.marginals)
    };
    output::write(common.output.as_deref(), &text)?;
    Ok(Outcome::Done)
}

/// The rows of a table in the model's terms.
pub(in crate::cmd) fn read(data: &Data, model: &FieldModel) -> anyhow::Result<(FieldData, Report)> {
    if let Some(args::Format::Svmlight | args::Format::Crfsuite | args::Format::Columns) = data.as_typed {
        return Err(anyhow!("{}: the model is of tables: --format must be table", data.name()));
    }
    let table = read_table(&data.path)?;
    model.schema.samples(&table, &model.field).map_err(|e| anyhow!("{}: {e}", data.name()))
}

pub(in crate::cmd) fn remark(common: &Common, report: &Report, labels_matter: bool) {
    if labels_matter && !report.unknown_labels.is_empty() {
        common.warn(&format!("{} labels in the data are not the model's", report.unknown_labels.len()));
    }
    if report.unknown_values > 0 {
        let n = report.unknown_values;
        common.warn(&format!("{n} values of discrete inputs are not the model's, and not looked at"));
    }
}

pub(in crate::cmd) fn remark_estimates(common: &Common, found: &Predictions) {
    if let Some(why) = &found.approximate {
        common.warn(&format!("{why}. Labels are estimates, by belief propagation"));
    }
    if found.unsettled > 0 {
        common.warn(&format!("belief propagation did not settle on {} rows", found.unsettled));
    }
}

fn as_csv(model: &FieldModel, found: &Predictions, marginals: bool) -> Vec<u8> {
    let schema = &model.schema;
    let mut header = schema.outputs.clone();
    if marginals {
        for (v, name) in schema.outputs.iter().enumerate() {
            header.extend(schema.labels(v).iter().map(|label| format!("{name}:{label}")));
        }
    }
    let mut text = String::new();
    push_row(&mut text, header.iter().map(String::as_str));
    for row in &found.each {
        let labels =
            row.labels.iter().enumerate().map(|(v, &label)| schema.labels(v)[label as usize].as_str());
        let numbers: Vec<String> = row.marginals.iter().map(f64::to_string).collect();
        push_row(&mut text, labels.chain(numbers.iter().map(String::as_str)));
    }
    text.into_bytes()
}

/// A row of CSV; quotes where they are needed.
pub(in crate::cmd) fn push_row<'c>(text: &mut String, cells: impl Iterator<Item = &'c str>) {
    for (k, cell) in cells.enumerate() {
        if k > 0 {
            text.push(',');
        }
        if cell.contains(['"', ',', '\n', '\r', ';', '\t']) {
            text.push('"');
            text.push_str(&cell.replace('"', "\"\""));
            text.push('"');
        } else {
            text.push_str(cell);
        }
    }
    text.push('\n');
}

fn as_json(model: &FieldModel, found: &Predictions, marginals: bool) -> Value {
    let schema = &model.schema;
    let outputs = schema.outputs.len();
    let rows = found.each.iter().map(|row| {
        let labels: Vec<&String> =
            row.labels.iter().enumerate().map(|(v, &label)| &schema.labels(v)[label as usize]).collect();
        let mut value = json!({ "labels": labels });
        if marginals {
            let mut rest = row.marginals.as_slice();
            let each = (0..outputs).map(|v| {
                let (own, after) = rest.split_at(schema.labels(v).len());
                rest = after;
                json!(own)
            });
            value["marginals"] = each.collect();
        }
        value
    });
    let labels: Vec<&[String]> = (0..outputs).map(|v| schema.labels(v)).collect();
    json!({
        "items": found.each.len() * outputs,
        "exact": found.approximate.is_none(),
        "outputs": schema.outputs,
        "labels": labels,
        "rows": rows.collect::<Vec<_>>(),
    })
}
