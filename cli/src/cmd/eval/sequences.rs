//! Scores of a model of sequences.

use super::{hits_json, hits_text, share};
use crate::cmd::predict::sequences::{constraints, format, read, remark};
use crate::{Outcome, config, output};
use anyhow::anyhow;
use gibbsite::data::sequences::{self, ReadParams, Sequences};
use gibbsite::model::SequenceModel;
use gibbsite::sequence::score::{Hits, SequenceScore};
use gibbsite::sequence::tagger::{Tagger, Want};
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::Instant;

pub(crate) fn run(config: &config::Eval, model: &SequenceModel) -> anyhow::Result<Outcome> {
    let common = &config.common;
    let tagger = Tagger::new(model, constraints(config.scheme, model)?);
    let blame = |e: &dyn std::fmt::Display| anyhow!("{}: {e}", config.data.name());
    let start = Instant::now();
    let (data, report) = read(&config.data, model, true, common.par)?;
    let tagged = tagger.tag(&data, Want::default(), common.par).map_err(|e| blame(&e))?;
    let rate = data.items() as f64 / start.elapsed().as_secs_f64().max(1e-9);
    remark(common, &report, &data);
    if data.items() == 0 {
        return Err(blame(&"there are no items to score"));
    }
    // Labels that the model does not know have names all the same.
    let own = if report.unknown_labels > 0 {
        let params = ReadParams { par: common.par, ..ReadParams::new(format(&config.data, model)?) };
        let corpus = sequences::read(&config.data.path, &params).map_err(|e| blame(&e))?;
        Some((corpus.sequences, corpus.alphabet.labels))
    } else {
        None
    };
    let (golds, gold_names) = own.as_ref().map_or((&data, &model.alphabet.labels), |(s, l)| (s, l));
    let (score, unknown) = SequenceScore::of(&tagged, &model.alphabet.labels, golds, gold_names);
    if unknown > 0 {
        common.warn(&format!("{unknown} items have no known label (`?`) and are not scored"));
    }
    if score.items == 0 {
        return Err(blame(&"no item has a known label: there is nothing to score"));
    }
    let (log_loss, left_out) = log_loss(&tagger, &data, config).map_err(|e| blame(&e))?;
    if left_out > 0 {
        common.log(|| {
            format!("{left_out} sequences with labels that are not possible are not in the log loss")
        });
    }
    let text = if common.json {
        format!("{}\n", as_json(&score, log_loss, rate))
    } else {
        as_text(&score, log_loss, rate)
    };
    output::write(common.output.as_deref(), text.as_bytes())?;
    Ok(Outcome::Done)
}

/// Mean of `-log p(y|x)` over sequences whose labels are possible, and how many are not.
fn log_loss(
    tagger: &Tagger<'_>,
    data: &Sequences,
    config: &config::Eval,
) -> Result<(Option<f64>, usize), gibbsite::sequence::tagger::TagError> {
    let want = Want { best: 0, probability: true, ..Want::default() };
    let tagged = tagger.tag(data, want, config.common.par)?;
    let logs: Vec<f64> = tagged.iter().filter_map(|t| t.gold).collect();
    let mean = (!logs.is_empty()).then(|| -logs.iter().sum::<f64>() / logs.len() as f64);
    Ok((mean, tagged.len() - logs.len()))
}

fn as_json(score: &SequenceScore, log_loss: Option<f64>, rate: f64) -> Value {
    let row = |(name, hits): &(String, Hits), key: &str| hits_json(key, name, hits);
    let mut value = json!({
        "items": score.items,
        "item_accuracy": share(score.right, score.items),
        "sequences": score.sequences,
        "sequence_accuracy": share(score.perfect, score.sequences),
        "log_loss": log_loss,
    });
    if let Some(chunk) = &score.chunk {
        value["chunk"] = json!({
            "precision": chunk.precision(),
            "recall": chunk.recall(),
            "f1": chunk.f1(),
            "correct": chunk.correct,
            "found": chunk.predicted,
            "gold": chunk.gold,
            "types": score.types.iter().map(|t| row(t, "type")).collect::<Vec<_>>(),
        });
    }
    value["labels"] = score.labels.iter().map(|l| row(l, "label")).collect();
    value["items_per_second"] = json!(rate);
    value
}

fn as_text(score: &SequenceScore, log_loss: Option<f64>, rate: f64) -> String {
    let mut text = format!("{} items in {} sequences\n", score.items, score.sequences);
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<22} {value}");
    };
    line("item accuracy", format!("{:.6}", share(score.right, score.items)));
    line("sequence accuracy", format!("{:.6}", share(score.perfect, score.sequences)));
    line(
        "log loss",
        log_loss.map_or("undefined: no sequence's labels are possible".into(), |l| format!("{l:.6}")),
    );
    if let Some(c) = &score.chunk {
        let (p, r, f1) = (c.precision(), c.recall(), c.f1());
        line("chunks", format!("precision {p:.6}, recall {r:.6}, F1 {f1:.6}"));
    }
    line("items per second", format!("{rate:.0}"));
    for (title, rows) in [("chunk", &score.types), ("label", &score.labels)] {
        if !rows.is_empty() {
            hits_text(&mut text, title, 12, rows.iter().map(|(name, hits)| (name, hits)));
        }
    }
    text
}
