//! `gibbsite inspect`: what a file holds.

use super::{name, read_evidence, read_model};
use crate::{Outcome, config, output};
use gibbsite::data::uai::{Model, ModelKind};
use gibbsite::infer::{Mebibytes, Prospect, inspect};
use serde_json::{Value, json};
use std::fmt::Write;

pub(crate) fn run(config: &config::Inspect) -> anyhow::Result<Outcome> {
    let common = &config.common;
    let model = read_model(&config.file)?;
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
