//! Scores of a field over the columns of a table.

use super::{hits_json, hits_text, share};
use crate::cmd::predict::table::{read, remark, remark_estimates};
use crate::{Outcome, config, output};
use anyhow::anyhow;
use gibbsite::field::Schema;
use gibbsite::field::predict::{TableScore, Want, predict};
use gibbsite::model::FieldModel;
use gibbsite::sequence::score::Hits;
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::Instant;

pub(crate) fn run(config: &config::Eval, model: &FieldModel) -> anyhow::Result<Outcome> {
    let common = &config.common;
    let blame = |e: &dyn std::fmt::Display| anyhow!("{}: {e}", config.data.name());
    if config.scheme.is_some() {
        common.warn("--scheme is for models of sequences, and not looked at");
    }
    let start = Instant::now();
    let (data, report) = read(&config.data, model)?;
    if let Some(&output) = report.absent.first() {
        let name = &model.schema.outputs[output as usize];
        return Err(blame(&format!("found no column `{name}`, which is an output of the model")));
    }
    remark(common, &report, true);
    let want = Want { labels: true, ..Want::default() };
    let found = predict(model, &data, want, config.max_table_mib, common.par).map_err(|e| blame(&e))?;
    let cells = data.samples() * data.variables();
    let rate = cells as f64 / start.elapsed().as_secs_f64().max(1e-9);
    remark_estimates(common, &found);
    if report.missing > 0 {
        common.warn(&format!("{} cells have no known label (`?`) and are not scored", report.missing));
    }
    let score = TableScore::of(&model.schema, &data, &report, &found);
    if score.items == 0 {
        return Err(blame(&"no output has a known label: there is nothing to score"));
    }
    // In the order of the rows.
    let mut unknown: Vec<u32> = report.unknown_labels.iter().map(|u| u.0).collect();
    unknown.dedup();
    let log_loss = if found.approximate.is_some() {
        common.warn("the log loss needs exact inference, which does not fit --max-table-mib");
        None
    } else {
        // A label that the model does not have is not possible: such rows would make it infinite.
        let want = Want { probability: true, ..Want::default() };
        let logs = predict(model, &data, want, config.max_table_mib, common.par).map_err(|e| blame(&e))?;
        if let Some(why) = &logs.approximate {
            common.warn(&format!("there is no log loss: {why}"));
        }
        let possible =
            logs.each.iter().enumerate().filter(|(s, _)| unknown.binary_search(&(*s as u32)).is_err());
        let logs: Option<Vec<f64>> = possible.map(|(_, row)| row.log_probability).collect();
        logs.filter(|logs| !logs.is_empty()).map(|logs| -logs.iter().sum::<f64>() / logs.len() as f64)
    };
    if !unknown.is_empty() {
        common.log(|| {
            format!("{} rows with labels that are not possible are not in the log loss", unknown.len())
        });
    }
    let text = if common.json {
        format!("{}\n", as_json(&model.schema, &score, log_loss, rate))
    } else {
        as_text(&model.schema, &score, log_loss, rate)
    };
    output::write(common.output.as_deref(), text.as_bytes())?;
    Ok(Outcome::Done)
}

/// Each label with its output, if labels are not shared.
fn labels<'a>(
    schema: &'a Schema,
    score: &'a TableScore,
) -> impl Iterator<Item = (Option<&'a str>, &'a str, &'a Hits)> {
    score.labels.iter().enumerate().flat_map(|(k, list)| {
        let output = (!schema.share).then(|| schema.outputs[k].as_str());
        schema.alphabets[k].iter().zip(list).map(move |(label, hits)| (output, label.as_str(), hits))
    })
}

fn as_json(schema: &Schema, score: &TableScore, log_loss: Option<f64>, rate: f64) -> Value {
    let each = labels(schema, score).map(|(output, label, hits)| {
        let mut value = hits_json("label", label, hits);
        if let Some(output) = output {
            value["output"] = json!(output);
        }
        value
    });
    json!({
        "items": score.items,
        "item_accuracy": share(score.right, score.items),
        "sequences": score.rows,
        "sequence_accuracy": share(score.perfect, score.rows),
        "log_loss": log_loss,
        "labels": each.collect::<Vec<_>>(),
        "items_per_second": rate,
    })
}

fn as_text(schema: &Schema, score: &TableScore, log_loss: Option<f64>, rate: f64) -> String {
    let mut text = format!("{} items in {} rows\n", score.items, score.rows);
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<22} {value}");
    };
    line("item accuracy", format!("{:.6}", share(score.right, score.items)));
    line("row accuracy", format!("{:.6}", share(score.perfect, score.rows)));
    line("log loss", log_loss.map_or("not known".into(), |l| format!("{l:.6}")));
    line("items per second", format!("{rate:.0}"));
    let named = |(output, label, hits): (Option<&str>, &str, _)| {
        (output.map_or(label.to_owned(), |output| format!("{output}={label}")), hits)
    };
    hits_text(&mut text, "label", 16, labels(schema, score).map(named));
    text
}
