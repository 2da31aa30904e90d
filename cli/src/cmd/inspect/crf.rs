//! What models of sequences and of tables hold.

use gibbsite::field::schema::Slot;
use gibbsite::model::{FieldModel, SequenceModel};
use serde_json::{Value, json};
use std::fmt::Write;

/// A header as the one JSON object, the kind first, parameters last.
fn as_json(kind: &str, header: Value, parameters: Option<Vec<Value>>) -> String {
    let mut value = json!({ "kind": kind });
    if let (Value::Object(value), Value::Object(header)) = (&mut value, header) {
        value.extend(header);
        if let Some(list) = parameters {
            // The header has their number under that name.
            value.insert("weights".into(), Value::Array(list));
        }
    }
    format!("{value}\n")
}

pub(super) fn sequences_json(model: &SequenceModel, parameters: bool) -> String {
    let list = parameters.then(|| {
        weights(model)
            .map(|(attribute, labels, weight)| json!({ "attribute": attribute, "labels": labels, "weight": weight }))
            .collect()
    });
    as_json("sequences", model.header(), list)
}

/// Attributes (none for transitions), labels, weights.
fn weights(model: &SequenceModel) -> impl Iterator<Item = (Option<&str>, Vec<&str>, f64)> {
    let alphabet = &model.alphabet;
    model.theta.iter().enumerate().filter_map(move |(p, &weight)| {
        let (template, attribute, configuration) = model.index.about(p)?;
        let labels = model.index.labels(template, configuration);
        let labels = labels.iter().map(|&label| alphabet.labels.name(label).unwrap_or_default()).collect();
        let attribute = match template {
            0 => alphabet.attributes.name(attribute),
            1 => None,
            _ => alphabet.edge_attributes.name(attribute),
        };
        Some((attribute, labels, weight))
    })
}

pub(super) fn sequences_text(model: &SequenceModel, parameters: bool) -> String {
    let facts = &model.facts;
    let header = model.header();
    let format = header["format"].as_str().unwrap_or_default();
    let mut text =
        format!("Linear chain over sequences ({format}, {}, solver {})\n", facts.estimator, facts.solver);
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<22} {value}");
    };
    line("trained on", format!("{}: {} sequences, {} items", facts.data, facts.sequences, facts.items));
    let labels: Vec<&str> = model.alphabet.labels.iter().collect();
    line("labels", format!("{}: {}", labels.len(), some(&labels)));
    let (attributes, edges) = (model.alphabet.attributes.len(), model.alphabet.edge_attributes.len());
    let edges = if edges > 0 { format!(", and {edges} of edges") } else { String::new() };
    line("attributes", format!("{attributes}{edges}"));
    fit(&mut line, (facts.l1, facts.l2), facts.objective, facts.violation, facts.iterations, facts.converged);
    line("parameters", format!("{} ({} not 0)", model.index.len(), header["nonzeros"]));
    if parameters {
        for (attribute, labels, weight) in weights(model) {
            let labels = labels.join(" → ");
            let name = attribute.map_or(labels.clone(), |attribute| format!("{attribute}: {labels}"));
            line(&format!("  {name}"), weight.to_string());
        }
    }
    text
}

pub(super) fn field_json(model: &FieldModel, parameters: bool) -> String {
    let list = parameters.then(|| {
        let each = model.theta.iter().enumerate().filter_map(|(p, weight)| {
            let (outputs, labels, attribute) = model.about(p)?;
            Some(json!({ "outputs": outputs, "labels": labels, "attribute": attribute, "weight": weight }))
        });
        each.collect()
    });
    let mut header = model.header();
    header["output_names"] = json!(model.schema.outputs);
    header["input_names"] = json!(model.schema.inputs);
    header["edge_list"] = json!(model.edges().collect::<Vec<_>>());
    as_json("field", header, list)
}

pub(super) fn field_text(model: &FieldModel, parameters: bool) -> String {
    let (facts, schema) = (&model.facts, &model.schema);
    let how = if facts.optimize == "joint" { String::new() } else { format!(", {}", facts.optimize) };
    let mut text = format!(
        "Field over the columns of a table ({}, {}{how}, solver {})\n",
        model.structure, facts.estimator, facts.solver
    );
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<22} {value}");
    };
    line("trained on", format!("{}: {} rows, {} labels", facts.data, facts.rows, facts.items));
    let names: Vec<&str> = schema.outputs.iter().map(String::as_str).collect();
    line("outputs", format!("{}: {}", names.len(), some(&names)));
    for (k, alphabet) in schema.alphabets.iter().enumerate().take(SOME) {
        let name =
            if schema.share { "labels of all".into() } else { format!("  labels of {}", schema.outputs[k]) };
        line(&name, some(&alphabet.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    let inputs: Vec<&str> = schema.inputs.iter().map(String::as_str).collect();
    if !inputs.is_empty() {
        line("inputs", format!("{}: {}", inputs.len(), some(&inputs)));
        let discrete = schema.slots.iter().filter(|slot| matches!(slot, Slot::Values(_))).count();
        line("  discrete", discrete.to_string());
    }
    let shared = if schema.share { ", one table for all" } else { "" };
    line("edges", format!("{}{shared}", model.edges().count()));
    fit(&mut line, (facts.l1, facts.l2), facts.objective, facts.violation, facts.iterations, facts.converged);
    let nonzeros = model.theta.iter().filter(|w| **w != 0.0).count();
    line("parameters", format!("{} ({nonzeros} not 0)", model.index.len()));
    if parameters {
        for (p, weight) in model.theta.iter().enumerate() {
            let Some((outputs, labels, attribute)) = model.about(p) else { continue };
            let both: Vec<String> = outputs.iter().zip(&labels).map(|(o, l)| format!("{o}={l}")).collect();
            line(&format!("  {}: {attribute}", both.join(" ")), weight.to_string());
        }
    }
    text
}

fn fit(
    line: &mut impl FnMut(&str, String),
    (l1, l2): (f64, f64),
    objective: f64,
    violation: f64,
    iterations: u64,
    converged: bool,
) {
    line("penalties", format!("l1 {l1}, l2 {l2}"));
    let met = if converged { "" } else { ", NOT CONVERGED" };
    line("objective", format!("{objective} (violation {violation:.2e}, {iterations} iterations{met})"));
}

/// At most so many names.
const SOME: usize = 12;

pub(super) fn some(names: &[&str]) -> String {
    let mut text = names.iter().take(SOME).copied().collect::<Vec<_>>().join(", ");
    if names.len() > SOME {
        text.push_str(", …");
    }
    text
}
