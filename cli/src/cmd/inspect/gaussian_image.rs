//! What the image of a Gaussian CRF holds.

use super::image::text;
use crate::cmd::export::size;
use gibbsite_core::image::{GaussianImage, GaussianView, gaussian_memory};
use gibbsite_core::infer::gaussian::Terms;
use serde_json::{Value, json};
use std::fmt::Write;

fn names(count: usize, name: impl Fn(usize) -> String) -> Vec<String> {
    (0..count).map(name).collect()
}

/// Row, column, value.
type Entries = Vec<(usize, usize, f32)>;

/// Pairs of outputs with their precisions, and inputs with their outputs and weights: what was filled in to factorise is left out.
fn parameters(view: &GaussianView<'_>) -> (Entries, Entries) {
    let (mut lambda, mut theta) = (Vec::new(), Vec::new());
    for place in 0..view.outputs() {
        let own = view.output(place);
        lambda.push((own, own, view.diagonal(place)));
        for e in view.column(place).filter(|&e| view.coupling(e) != 0.0) {
            let other = view.output(view.row(e));
            lambda.push((own.min(other), own.max(other), view.coupling(e)));
        }
        theta.extend(view.weights(place).map(|e| (view.input(e), own, view.weight(e))));
    }
    lambda.sort_unstable_by_key(|e| (e.1, e.0));
    theta.sort_unstable_by_key(|e| (e.1, e.0));
    (lambda, theta)
}

pub(super) fn as_json(image: &GaussianImage<'_>, all: bool) -> String {
    let view = &image.view();
    let (p, entries) = (view.outputs(), view.entries());
    let [ram, revised] = gaussian_memory(p, entries);
    let mut value = json!({
        "kind": "image",
        "model": "gaussian",
        "scalar": "f32",
        "flash_bytes": image.bytes(),
        "ram_bytes": ram,
        "ram_revised_bytes": revised,
        "inputs": view.inputs(),
        "outputs": names(p, |j| text(view.output_name(j), j)),
        "factor_entries": entries,
        "nonzeros": view.weight_count(),
        "deviations": (0..p).map(|j| json!(view.deviation(j))).collect::<Value>(),
    });
    if all {
        let (lambda, theta) = parameters(view);
        let list = |of: Entries| of.iter().map(|e| json!([e.0, e.1, e.2])).collect::<Value>();
        value["lambda"] = list(lambda);
        value["theta"] = list(theta);
        value["intercepts"] = (0..p).map(|j| json!(view.intercept(j))).collect();
    }
    format!("{value}\n")
}

pub(super) fn as_text(image: &GaussianImage<'_>, all: bool) -> String {
    let view = &image.view();
    let mut out = "Model image of a Gaussian CRF (f32)\n".to_owned();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "  {name:<22} {value}");
    };
    let p = view.outputs();
    let outputs = names(p, |j| text(view.output_name(j), j));
    let shown: Vec<&str> = outputs.iter().map(String::as_str).collect();
    line("outputs", format!("{p}: {}", super::crf::some(&shown)));
    line("inputs", format!("{}, with {} weights", view.inputs(), view.weight_count()));
    line("factor", format!("{} entries", view.entries()));
    line("flash", size(image.bytes()));
    let [ram, revised] = gaussian_memory(p, view.entries());
    line("RAM", format!("{} ({} to revise by known outputs)", size(ram), size(revised)));
    if all {
        let (lambda, theta) = parameters(view);
        for (i, j, v) in lambda {
            line(&format!("  Λ {} {}", outputs[i], outputs[j]), v.to_string());
        }
        for (i, j, v) in theta {
            line(&format!("  Θ {} {}", text(view.input_name(i), i), outputs[j]), v.to_string());
        }
    }
    out
}
