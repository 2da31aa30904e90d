//! The image as source text: a constant in flash, and the numbers that firmware needs beside it.

use super::image::label_names;
use super::{ExportParams, Exported};
use crate::model::SequenceModel;
use gibbsite_core::infer::stream::{decoder_len, whole_back_len};
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
    let mut attributes = Vec::new();
    let mut seen = HashSet::new();
    if info.attributes <= NAMED {
        for (a, number) in exported.attributes.iter().enumerate() {
            let (Some(number), Some(name)) = (number, model.alphabet.attributes.name(a as u32)) else {
                continue;
            };
            let mut constant = identifier(name);
            while !seen.insert(constant.clone()) {
                constant = format!("{constant}_{number}");
            }
            attributes.push((constant, *number, name));
        }
    }
    Facts {
        heading,
        labels: label_names(&model.alphabet.labels),
        scores: decoder_len(info.labels),
        back: whole_back_len(params.longest, info.labels),
        attributes,
    }
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
    if !facts.attributes.is_empty() {
        out.push_str("/// Numbers of the attributes.\npub mod attribute {\n");
        for (name, number, original) in &facts.attributes {
            let _ = writeln!(out, "    /// `{}`", remark(original));
            let _ = writeln!(out, "    pub const {name}: u32 = {number};");
        }
        out.push_str("}\n");
    }
    out
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
    out.push_str("\n/* For gibbsite_open. */\nstatic const uint32_t model_words[MODEL_WORDS] = {\n");
    words(&mut out, &exported.words);
    out.push_str("};\n\nstatic const char *const model_labels[MODEL_LABELS] = {\n");
    for label in &facts.labels {
        let _ = writeln!(out, "    {},", quoted(label, true));
    }
    out.push_str("};\n");
    if !facts.attributes.is_empty() {
        out.push_str("\n/* Numbers of the attributes. */\nenum {\n");
        for (name, number, original) in &facts.attributes {
            let _ = writeln!(out, "    ATTRIBUTE_{name} = {number}, /* {} */", remark(original));
        }
        out.push_str("};\n");
    }
    out
}
