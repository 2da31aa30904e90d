//! The image as source text: a constant in flash, and the numbers that firmware needs beside it.

use super::image::label_names;
use super::{ExportParams, Exported, ExportedField, Scalar};
use crate::model::{FieldModel, SequenceModel};
use gibbsite_core::image::{FieldImage, marginals_len, smooth_len};
use gibbsite_core::infer::stream::{decoder_len, filter_len, whole_back_len};
use std::collections::HashSet;
use std::fmt::Write;

/// Attributes that get a constant each, at most.
const NAMED: usize = 256;

struct Facts<'a> {
    heading: Vec<String>,
    labels: Vec<&'a str>,
    scores: usize,
    back: usize,
    /// Constants for attributes, if there are not too many.
    attributes: Vec<(String, u32, &'a str)>,
}

fn facts<'a>(model: &'a SequenceModel, params: &ExportParams, exported: &'a Exported) -> Facts<'a> {
    let info = &exported.info;
    let heading = vec![
        "Written by `gibbsite export`; do not edit.".to_owned(),
        format!("{} labels, {} attributes, {} weights", info.labels, info.attributes, info.weights),
        format!("flash {} bytes; RAM {} bytes for sequences of {}", info.flash, info.ram, params.longest),
    ];
    let named = exported
        .attributes
        .iter()
        .enumerate()
        .filter_map(|(a, number)| Some(((*number)?, model.alphabet.attributes.name(a as u32)?)));
    let attributes = if info.attributes <= NAMED { constants(named) } else { vec![] };
    Facts {
        heading,
        labels: label_names(&model.alphabet.labels),
        scores: decoder_len(info.labels),
        back: whole_back_len(params.longest, info.labels),
        attributes,
    }
}

/// A constant's name for each attribute.
fn constants<'a>(named: impl Iterator<Item = (u32, &'a str)>) -> Vec<(String, u32, &'a str)> {
    let mut seen = HashSet::new();
    named
        .map(|(number, name)| {
            let mut constant = identifier(name);
            while !seen.insert(constant.clone()) {
                constant = format!("{constant}_{number}");
            }
            (constant, number, name)
        })
        .collect()
}

/// Upper case, `_` for what no identifier may have.
fn identifier(name: &str) -> String {
    let mut out: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    if !out.starts_with(|c: char| c.is_ascii_alphabetic()) {
        out.insert(0, 'A');
    }
    out
}

/// A text in quotes, as both languages read it.
pub(super) fn quoted(text: &str, c: bool) -> String {
    if !c {
        return format!("{text:?}");
    }
    let mut out = String::from("\"");
    for b in text.bytes() {
        match b {
            b'"' | b'\\' => {
                let _ = write!(out, "\\{}", char::from(b));
            }
            b' '..=b'~' => out.push(char::from(b)),
            // Three octal digits end by themselves, hexadecimal ones would not. `?` needs no care since C23.
            _ => {
                let _ = write!(out, "\\{b:03o}");
            }
        }
    }
    out.push('"');
    out
}

/// One line for a comment.
fn remark(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().replace("*/", "* /")
}

pub(super) fn words(out: &mut String, words: &[u32]) {
    for line in words.chunks(10) {
        out.push_str("   ");
        for w in line {
            let _ = write!(out, " 0x{w:08x},");
        }
        out.push('\n');
    }
}

/// Rust source: `MODEL` for [`Image::open`](gibbsite_core::image::Image::open), sizes of memory, names of labels, numbers of attributes.
pub fn rust_source(model: &SequenceModel, params: &ExportParams, exported: &Exported) -> String {
    let facts = facts(model, params, exported);
    let mut out = String::new();
    for line in &facts.heading {
        let _ = writeln!(out, "// {line}");
    }
    let _ = writeln!(out, "\n/// The model, for `gibbsite_core::image::Image::open`.");
    let _ = writeln!(out, "pub static MODEL: [u32; {}] = [", exported.words.len());
    words(&mut out, &exported.words);
    out.push_str("];\n");
    let mut constant = |name: &str, value: usize, doc: &str| {
        let _ = writeln!(out, "/// {doc}\npub const {name}: usize = {value};");
    };
    constant("LONGEST", params.longest, "The longest sequence that memory is planned for.");
    constant("SCORES", facts.scores, "Scores that a decoder needs.");
    constant("BACK", facts.back, "Bytes of back pointers that a decoder of whole sequences needs.");
    let _ = writeln!(out, "/// Names of the labels.\npub const LABELS: [&str; {}] = [", facts.labels.len());
    for label in &facts.labels {
        let _ = writeln!(out, "    {},", quoted(label, false));
    }
    out.push_str("];\n");
    rust_attributes(&mut out, &facts.attributes, &[]);
    out
}

/// What a device has to do with an input before it gives it.
fn preparation(standardised: &[Option<[f64; 2]>], attribute: u32) -> String {
    let pair = standardised.get(attribute as usize).copied().flatten();
    pair.map_or(String::new(), |[mean, scale]| format!(" less {mean:?}, divided by {scale:?}"))
}

fn rust_attributes(out: &mut String, attributes: &[(String, u32, &str)], standardised: &[Option<[f64; 2]>]) {
    if attributes.is_empty() {
        return;
    }
    out.push_str("/// Numbers of the attributes.\npub mod attribute {\n");
    for (name, number, original) in attributes {
        let _ = writeln!(out, "    /// `{}`{}", remark(original), preparation(standardised, *number));
        let _ = writeln!(out, "    pub const {name}: u32 = {number};");
    }
    out.push_str("}\n");
}

/// Rust source of a field: `MODEL` for [`FieldImage::open`](gibbsite_core::image::FieldImage::open), sizes, names of outputs, numbers of
/// attributes.
pub fn field_source(model: &FieldModel, exported: &ExportedField) -> String {
    let info = &exported.info;
    let mut out = String::from("// Written by `gibbsite export`; do not edit.\n");
    let _ = writeln!(
        out,
        "// {} variables, {} factors, {} attributes, {} weights; flash {} bytes",
        info.variables, info.factors, info.attributes, info.weights, info.flash
    );
    let _ = writeln!(out, "\n/// The model, for `gibbsite_core::image::FieldImage::open`.");
    let _ = writeln!(out, "pub static MODEL: [u32; {}] = [", exported.words.len());
    words(&mut out, &exported.words);
    let _ = writeln!(
        out,
        "];\n/// Entries of the tables of a sample.\npub const TABLES: usize = {};",
        info.tables / 4
    );
    let outputs = &model.schema.outputs;
    let _ = writeln!(out, "/// Names of the variables.\npub const OUTPUTS: [&str; {}] = [", outputs.len());
    for name in outputs {
        let _ = writeln!(out, "    {},", quoted(name, false));
    }
    out.push_str("];\n");
    if info.attributes <= NAMED {
        let names = constants((0..).zip(exported.attributes.iter().map(String::as_str)));
        rust_attributes(&mut out, &names, &exported.standardised);
    }
    out
}

/// C source of a field: a header that one file includes, for `gibbsite_field_open`.
pub fn field_c_source(model: &FieldModel, exported: &ExportedField) -> String {
    let info = &exported.info;
    let mut out = String::from("/* Written by `gibbsite export`; do not edit. */\n");
    let _ = writeln!(
        out,
        "/* {} variables, {} factors, {} attributes, {} weights; flash {} bytes */\n#include <stdint.h>\n",
        info.variables, info.factors, info.attributes, info.weights, info.flash
    );
    let _ = writeln!(out, "#define MODEL_WORDS {}u", exported.words.len());
    // What the functions take beside the engine's own: the tables of a sample, and the answer until it is complete.
    let size = FieldImage::open(&exported.words).map(|image| image.dimensions()).unwrap_or_default();
    let memory = |bytes: usize| (bytes + info.tables) / 4 + size.labels;
    let sizes = [
        ("OUTPUTS", size.variables, "Outputs."),
        ("LABELS", size.labels, "Labels of all outputs together."),
        (
            "MEMORY_EXACT",
            info.exact.map_or(0, memory),
            "Words of memory for the exact functions; 0 if there is no junction tree.",
        ),
        (
            "MEMORY_LOOPY",
            info.loopy.map_or(0, memory),
            "Words of memory for gibbsite_field_loopy; 0 in fixed point.",
        ),
        (
            "MEMORY_ICM",
            (info.tables + info.ascent) / 4,
            "Words of memory for gibbsite_field_icm and gibbsite_field_local.",
        ),
    ];
    for (name, value, doc) in sizes {
        let _ = writeln!(out, "#define MODEL_{name} {value}u /* {doc} */");
    }
    out.push_str("\n/* For gibbsite_field_open. */\nstatic const uint32_t model_words[MODEL_WORDS] = {\n");
    words(&mut out, &exported.words);
    out.push_str("};\n\nstatic const char *const model_outputs[MODEL_OUTPUTS] = {\n");
    for name in &model.schema.outputs {
        let _ = writeln!(out, "    {},", quoted(name, true));
    }
    out.push_str("};\n");
    if info.attributes <= NAMED {
        let names = constants((0..).zip(exported.attributes.iter().map(String::as_str)));
        c_attributes(&mut out, &names, &exported.standardised);
    }
    out
}

fn c_attributes(out: &mut String, attributes: &[(String, u32, &str)], standardised: &[Option<[f64; 2]>]) {
    if attributes.is_empty() {
        return;
    }
    out.push_str("\n/* Numbers of the attributes. */\nenum {\n");
    for (name, number, original) in attributes {
        let prepare = preparation(standardised, *number);
        let _ = writeln!(out, "    ATTRIBUTE_{name} = {number}, /* {}{prepare} */", remark(original));
    }
    out.push_str("};\n");
}

/// C source: the same as a header that one file includes.
pub fn c_source(model: &SequenceModel, params: &ExportParams, exported: &Exported) -> String {
    let facts = facts(model, params, exported);
    let mut out = String::new();
    for line in &facts.heading {
        let _ = writeln!(out, "/* {line} */");
    }
    out.push_str("#include <stdint.h>\n\n");
    let mut define = |name: &str, value: usize| {
        let _ = writeln!(out, "#define MODEL_{name} {value}u");
    };
    define("WORDS", exported.words.len());
    define("LABELS", facts.labels.len());
    define("LONGEST", params.longest);
    define("SCORES", facts.scores);
    define("BACK", facts.back);
    // Beside the rows of scores; the filter is for `f32`.
    let plain = params.scalar == Scalar::F32;
    let labels = facts.labels.len();
    define("ATTRIBUTES", exported.info.attributes);
    define("MARGINALS", if plain { smooth_len(labels) } else { marginals_len(labels) });
    define("FILTER", if plain { filter_len(labels) } else { 0 });
    out.push_str("\n/* For gibbsite_open. */\nstatic const uint32_t model_words[MODEL_WORDS] = {\n");
    words(&mut out, &exported.words);
    out.push_str("};\n\nstatic const char *const model_labels[MODEL_LABELS] = {\n");
    for label in &facts.labels {
        let _ = writeln!(out, "    {},", quoted(label, true));
    }
    out.push_str("};\n");
    c_attributes(&mut out, &facts.attributes, &[]);
    out
}
