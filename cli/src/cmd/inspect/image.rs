//! What a model image holds.

use crate::cmd::export::{scalar_name, size};
use gibbsite_core::image::{ChainView, FieldImage, Image, Scalar, Weight, chain_memory};
use serde_json::{Value, json};
use std::fmt::Write;

/// The words of a file, if that is an image by its first bytes.
pub(super) fn words(bytes: &[u8]) -> Option<Vec<u32>> {
    // Also one for machines of the other byte order, so that it is called that.
    let is_image = bytes.starts_with(b"gibb") || bytes.starts_with(b"bbig");
    is_image.then(|| bytes.as_chunks::<4>().0.iter().map(|&b| u32::from_le_bytes(b)).collect())
}

pub(super) fn text(name: Option<impl Iterator<Item = u8>>, number: usize) -> String {
    match name {
        Some(name) => String::from_utf8_lossy(&name.collect::<Vec<u8>>()).into_owned(),
        None => number.to_string(),
    }
}

fn labels(image: &Image<'_>) -> Vec<String> {
    (0..image.labels()).map(|l| text(image.label(l as u8), l)).collect()
}

/// Attribute (none for a transition), labels, weight.
type Parameter = (Option<String>, Vec<String>, f32);

/// All weights of attributes, as scores of items that have one attribute of value 1; then the transitions.
fn weights<W: Weight>(image: &Image<'_>) -> anyhow::Result<Vec<Parameter>> {
    let view: ChainView<'_, W> = image.chain()?;
    let names = labels(image);
    let mut all = Vec::new();
    for a in 0..image.attributes() as u32 {
        let mut row = vec![W::Score::default(); image.labels()];
        view.score(&[(a, W::ONE)], &mut row)?;
        let mut plain = vec![0.0; row.len()];
        view.to_f32(&row, &mut plain);
        for (label, &w) in names.iter().zip(&plain).filter(|w| *w.1 != 0.0) {
            let name = text(image.attribute_name(a), a as usize);
            all.push((Some(name), vec![label.clone()], w));
        }
    }
    for (i, from) in names.iter().enumerate() {
        for (j, to) in names.iter().enumerate() {
            all.push((None, vec![from.clone(), to.clone()], view.transition(i, j)));
        }
    }
    Ok(all)
}

fn all_weights(image: &Image<'_>) -> anyhow::Result<Vec<Parameter>> {
    match image.scalar() {
        Scalar::F32 => weights::<f32>(image),
        Scalar::I16 => weights::<i16>(image),
        Scalar::I8 => weights::<i8>(image),
    }
}

pub(super) fn as_json(image: &Image<'_>, parameters: bool) -> anyhow::Result<String> {
    let memory = chain_memory(image.scalar(), image.labels(), image.longest()).unwrap_or_default();
    let scales = image.scales();
    let fixed = image.scalar() != Scalar::F32;
    let mut value = json!({
        "kind": "image",
        "scalar": scalar_name(image.scalar()),
        "flash_bytes": image.bytes(),
        "ram_bytes": memory[0],
        "ram_marginals_bytes": memory[1],
        "max_length": image.longest(),
        "labels": labels(image),
        "attributes": image.attributes(),
        "nonzeros": image.weights(),
        "false_positive_rate": image.false_positive_rate(),
        "unit": fixed.then_some(scales.unit),
        "weight_error": fixed.then_some(scales.weight_error),
        "transition_error": fixed.then_some(scales.transition_error),
    });
    if parameters {
        let list = all_weights(image)?;
        let each = list.iter().map(|(a, l, w)| json!({ "attribute": a, "labels": l, "weight": w }));
        value["weights"] = Value::Array(each.collect());
    }
    Ok(format!("{value}\n"))
}

pub(super) fn as_text(image: &Image<'_>, parameters: bool) -> anyhow::Result<String> {
    let mut out = format!("Model image of a chain over sequences ({})\n", scalar_name(image.scalar()));
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "  {name:<22} {value}");
    };
    let names = labels(image);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    line("labels", format!("{}: {}", names.len(), super::crf::some(&names)));
    line("attributes", format!("{}, with {} weights", image.attributes(), image.weights()));
    line("flash", size(image.bytes()));
    let [ram, marginals] = chain_memory(image.scalar(), image.labels(), image.longest()).unwrap_or_default();
    line(
        "RAM",
        format!("{} for sequences of {} ({} for marginals)", size(ram), image.longest(), size(marginals)),
    );
    if image.scalar() != Scalar::F32 {
        let scales = image.scales();
        line("unit", format!("{:e}, of weights {} times that", scales.unit, 1u32 << scales.shift));
        line(
            "largest errors",
            format!("{:.2e} (weights), {:.2e} (transitions)", scales.weight_error, scales.transition_error),
        );
    }
    if parameters {
        for (attribute, labels, weight) in all_weights(image)? {
            let labels = labels.join(" → ");
            let name = attribute.map_or(labels.clone(), |a| format!("{a}: {labels}"));
            line(&format!("  {name}"), weight.to_string());
        }
    }
    Ok(out)
}

fn outputs(image: &FieldImage<'_>) -> Vec<(String, Vec<String>)> {
    let each = image.cards().iter().enumerate();
    each.map(|(v, &card)| {
        let labels = (0..card).map(|l| text(image.label(v, l), l as usize)).collect();
        (text(image.output(v), v), labels)
    })
    .collect()
}

pub(super) fn field_json(image: &FieldImage<'_>) -> String {
    let outputs = outputs(image).into_iter().map(|(name, labels)| json!({ "name": name, "labels": labels }));
    let value = json!({
        "kind": "image of a field",
        "scalar": scalar_name(image.scalar()),
        "flash_bytes": image.bytes(),
        "ram_tables_bytes": 4 * image.tables_len(),
        "outputs": outputs.collect::<Vec<_>>(),
        "factors": image.factors(),
        "attributes": image.attributes(),
        "nonzeros": image.weights(),
        "junction_tree": image.has_plan(),
    });
    format!("{value}\n")
}

pub(super) fn field_text(image: &FieldImage<'_>) -> String {
    let mut out = format!(
        "image of a field: {} variables, {} factors, {} attributes, {} weights in {}\n  flash {}, tables {}, {} junction tree\n",
        image.variables(),
        image.factors(),
        image.attributes(),
        image.weights(),
        scalar_name(image.scalar()),
        size(image.bytes()),
        size(4 * image.tables_len()),
        if image.has_plan() { "a" } else { "no" }
    );
    if image.scalar() != Scalar::F32 {
        let scales = image.scales();
        let _ = writeln!(out, "  unit {:e}, of weights {} times that", scales.unit, 1u32 << scales.shift);
        let errors = (scales.weight_error, scales.transition_error);
        let _ = writeln!(out, "  largest errors {:.2e} (weights), {:.2e} (constants)", errors.0, errors.1);
    }
    for (name, labels) in outputs(image) {
        let _ = writeln!(out, "  {name}: {}", labels.join(", "));
    }
    out
}
