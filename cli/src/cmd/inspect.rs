//! `gibbsite inspect`: what a file holds.

use super::{read_evidence, read_model};
use crate::{Outcome, config, output};
use anyhow::Context;
use gibbsite::data::uai::{Model, ModelKind};
use gibbsite::infer::{Prospect, inspect};
use serde_json::{Value, json};
use std::fmt::Write;

pub(crate) fn run(config: &config::Inspect) -> anyhow::Result<Outcome> {
    let common = &config.common;
    let model = read_model(&config.file)?;
    let evidence = read_evidence(config.evidence.as_deref(), model.network.cards())?;
    let prospect = inspect(&model.network, &evidence, config.max_table_mib, common.seed, common.par)
        .with_context(|| config.file.display().to_string())?;
    let text = if common.json {
        let mut value = as_json(&model, evidence.len(), &prospect);
        if config.parameters {
            value["parameters"] = parameters(&model);
        }
        format!("{value}\n")
    } else {
        as_text(&model, evidence.len(), &prospect)
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

fn as_text(model: &Model, observed: usize, prospect: &Prospect) -> String {
    let network = &model.network;
    let arity = network.cards().iter().max().copied().unwrap_or(0);
    let scope = (0..network.factors()).map(|k| network.scope(k).len()).max().unwrap_or(0);
    let mut text = format!("UAI model ({})\n", preamble(model));
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<22} {value}");
    };
    line("variables", format!("{} (largest arity {arity}, {observed} observed)", network.variables()));
    let entries = network.entries();
    line("factors", format!("{} (largest scope {scope}, {entries} table entries)", network.factors()));
    line(
        "after evidence",
        format!(
            "{} variables, {} factors, {} components{}",
            prospect.variables,
            prospect.factors,
            prospect.components,
            if prospect.forest { ", no cycles" } else { "" }
        ),
    );
    match prospect.junction {
        Ok(info) => {
            line("treewidth", format!("at most {}", info.treewidth));
            line(
                "largest table",
                format!("{:.0} entries (2^{:.1})", info.largest_table, info.largest_table.max(1.0).log2()),
            );
            line(
                "memory to run exactly",
                format!("{:.1} MiB (pr, map), {:.1} MiB (mar)", info.mebibytes(false), info.mebibytes(true)),
            );
        }
        Err(bits) => {
            line("treewidth", format!("too large: every order tried needs a table of 2^{bits:.0} entries"))
        }
    }
    line("suggested method", prospect.suggested.name().into());
    text
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
        "largest_table": info.map(|i| i.largest_table),
        "mebibytes_pr": info.map(|i| i.mebibytes(false)),
        "mebibytes_mar": info.map(|i| i.mebibytes(true)),
        "suggested_method": prospect.suggested.name(),
    })
}

/// All factors; JSON has no infinities, so a forbidden configuration is `null`.
fn parameters(model: &Model) -> Value {
    let network = &model.network;
    let factors: Vec<Value> = (0..network.factors())
        .map(|k| json!({ "scope": network.scope(k), "log_potentials": network.table(k) }))
        .collect();
    json!({ "arities": network.cards(), "factors": factors })
}
