//! `gibbsite eval`: how good a model is on data with known targets.

mod regression;
mod sequences;
mod table;

use super::{AnyModel, open_model};
use crate::{Outcome, config};
use gibbsite::sequence::score::Hits;
use serde_json::{Value, json};
use std::fmt::Write;

pub(crate) fn run(config: &config::Eval) -> anyhow::Result<Outcome> {
    match open_model(&config.model)? {
        AnyModel::Regression(model) => regression::run(config, &model),
        AnyModel::Sequences(model) => config.common.par.run(|_| sequences::run(config, &model)),
        AnyModel::Field(model) => config.common.par.run(|_| table::run(config, &model)),
        AnyModel::Gaussian(model) => super::gaussian::eval(config, &model),
    }
}

fn share(part: usize, of: usize) -> f64 {
    part as f64 / of.max(1) as f64
}

/// How well one kind of thing was found.
fn hits_json(key: &str, name: &str, hits: &Hits) -> Value {
    json!({
        key: name,
        "precision": hits.precision(),
        "recall": hits.recall(),
        "f1": hits.f1(),
        "support": hits.gold,
    })
}

/// A table of that, names in a column of this width.
fn hits_text<'h>(
    text: &mut String,
    title: &str,
    width: usize,
    rows: impl Iterator<Item = (impl std::fmt::Display, &'h Hits)>,
) {
    let _ =
        writeln!(text, "\n  {title:<width$} {:>9} {:>9} {:>9} {:>9}", "precision", "recall", "F1", "support");
    for (name, h) in rows {
        let (p, r, f1, n) = (h.precision(), h.recall(), h.f1(), h.gold);
        let _ = writeln!(text, "  {name:<width$} {p:>9.4} {r:>9.4} {f1:>9.4} {n:>9}");
    }
}
