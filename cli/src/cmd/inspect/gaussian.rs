//! What a Gaussian CRF holds.

use gibbsite::model::GaussianModel;
use serde_json::{Value, json};
use std::fmt::Write;

/// Entries as `[row, column, value]`, zero-based.
fn list(entries: &[(usize, usize, f64)]) -> Value {
    entries.iter().map(|e| json!([e.0, e.1, e.2])).collect()
}

pub(super) fn as_json(model: &GaussianModel, parameters: bool) -> String {
    let mut value = json!({ "kind": "gaussian" });
    if let (Value::Object(value), Value::Object(header)) = (&mut value, model.header()) {
        value.extend(header);
        if parameters {
            value.insert("lambda".into(), list(&model.lambda_entries()));
            value.insert("theta".into(), list(&model.theta_entries()));
            value.insert("intercepts".into(), json!(model.intercept));
        }
    }
    format!("{value}\n")
}

pub(super) fn as_text(model: &GaussianModel, parameters: bool) -> String {
    let facts = &model.facts;
    let mut text = format!("Sparse Gaussian CRF (solver {})\n", facts.solver);
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<22} {value}");
    };
    let (n, p) = (model.theta.rows(), model.lambda.cols());
    line("trained on", format!("{}: {} rows", facts.data, facts.samples));
    line("inputs, outputs", format!("{n}, {p}"));
    let mut how = format!("{} on Λ, {} on Θ", facts.penalties.0, facts.penalties.1);
    if facts.standardize {
        how.push_str(", standardised");
    }
    if facts.intercept {
        how.push_str(", intercept");
    }
    if facts.refit {
        how.push_str(", refitted without");
    }
    line("penalties", how);
    let met = if facts.converged { "" } else { ", NOT CONVERGED" };
    let (violation, iterations) = (facts.violation, facts.iterations);
    line(
        "objective",
        format!("{} (violation {violation:.2e}, {iterations} iterations{met})", facts.objective),
    );
    let (lambda, theta) = (model.lambda_entries(), model.theta_entries());
    let off = lambda.iter().filter(|e| e.0 != e.1).count();
    line("pairs of outputs", format!("{off} of {}", p * (p - 1) / 2));
    line("inputs to outputs", format!("{} of {}", theta.len(), n * p));
    if parameters {
        let name = |names: &Option<Vec<String>>, k: usize| {
            names.as_ref().and_then(|n| n.get(k)).cloned().unwrap_or_else(|| k.to_string())
        };
        for (i, j, v) in lambda {
            line(&format!("  Λ {} {}", name(&model.outputs, i), name(&model.outputs, j)), v.to_string());
        }
        for (i, j, v) in theta {
            line(&format!("  Θ {} {}", name(&model.inputs, i), name(&model.outputs, j)), v.to_string());
        }
    }
    text
}
