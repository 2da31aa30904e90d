//! The image of a Gaussian CRF as source text.

use super::gaussian::{GaussianExported, GaussianInfo};
use super::source::{quoted, words};
use crate::model::GaussianModel;
use gibbsite_core::image::gaussian_floats;
use gibbsite_core::infer::gaussian::{deviations_len, given_len, mean_len};
use std::fmt::Write;

fn heading(info: &GaussianInfo) -> [String; 3] {
    [
        "Written by `gibbsite export`; do not edit.".to_owned(),
        format!(
            "Gaussian CRF: {} inputs, {} outputs, {} pairs, {} weights",
            info.inputs, info.outputs, info.pairs, info.weights
        ),
        format!("flash {} bytes; RAM {} bytes, {} to revise", info.flash, info.ram, info.ram_revised),
    ]
}

fn sizes(info: &GaussianInfo) -> [(&'static str, usize, &'static str); 5] {
    let (p, entries) = (info.outputs, info.entries);
    [
        ("INPUTS", info.inputs, "Inputs."),
        ("OUTPUTS", p, "Outputs."),
        ("MEAN", mean_len(p), "Scalars that a mean, or its revision, needs."),
        ("GIVEN", given_len(p, entries), "Scalars that outputs which are known need."),
        ("DEVIATIONS", deviations_len(p, entries), "Scalars that deviations given these need."),
    ]
}

fn names(model: &GaussianModel) -> [(&'static str, &[String]); 2] {
    [
        ("OUTPUT_NAMES", model.outputs.as_deref().unwrap_or_default()),
        ("INPUT_NAMES", model.inputs.as_deref().unwrap_or_default()),
    ]
}

/// Rust source: `MODEL` for [`GaussianImage::open`](gibbsite_core::image::GaussianImage::open), sizes of memory, names of outputs and inputs if the model has some.
pub fn gaussian_rust_source(model: &GaussianModel, exported: &GaussianExported) -> String {
    let mut out = String::new();
    for line in heading(&exported.info) {
        let _ = writeln!(out, "// {line}");
    }
    let _ = writeln!(out, "\n/// The model, for `gibbsite_core::image::GaussianImage::open`.");
    let _ = writeln!(out, "pub static MODEL: [u32; {}] = [", exported.words.len());
    words(&mut out, &exported.words);
    out.push_str("];\n");
    for (name, value, doc) in sizes(&exported.info) {
        let _ = writeln!(out, "/// {doc}\npub const {name}: usize = {value};");
    }
    for (name, list) in names(model).iter().filter(|n| !n.1.is_empty()) {
        let what = if *name == "OUTPUT_NAMES" { "outputs" } else { "inputs" };
        let _ = writeln!(out, "/// Names of the {what}.\npub const {name}: [&str; {}] = [", list.len());
        for text in *list {
            let _ = writeln!(out, "    {},", quoted(text, false));
        }
        out.push_str("];\n");
    }
    out
}

/// C source: the same as a header that one file includes.
pub fn gaussian_c_source(model: &GaussianModel, exported: &GaussianExported) -> String {
    let mut out = String::new();
    for line in heading(&exported.info) {
        let _ = writeln!(out, "/* {line} */");
    }
    out.push_str("#include <stdint.h>\n\n");
    let _ = writeln!(out, "#define MODEL_WORDS {}u", exported.words.len());
    let GaussianInfo { inputs, outputs, entries, .. } = exported.info;
    let [mean, revised] = gaussian_floats(outputs, entries);
    let memory = [
        ("INPUTS", inputs, "Inputs."),
        ("OUTPUTS", outputs, "Outputs."),
        ("MEMORY", mean, "Floats of memory for gibbsite_gaussian_mean."),
        ("MEMORY_REVISED", revised, "Floats of memory for gibbsite_gaussian_revise."),
    ];
    for (name, value, doc) in memory {
        let _ = writeln!(out, "#define MODEL_{name} {value}u /* {doc} */");
    }
    out.push_str("\n/* For gibbsite_gaussian_open. */\nstatic const uint32_t model_words[MODEL_WORDS] = {\n");
    words(&mut out, &exported.words);
    out.push_str("};\n");
    for (name, list) in names(model).iter().filter(|n| !n.1.is_empty()) {
        let _ = writeln!(
            out,
            "\nstatic const char *const model_{}[{}] = {{",
            name.to_ascii_lowercase(),
            list.len()
        );
        for text in *list {
            let _ = writeln!(out, "    {},", quoted(text, true));
        }
        out.push_str("};\n");
    }
    out
}
