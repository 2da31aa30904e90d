//! CRF++'s text models (`crf_learn -t`, or `crf_learn -C`): header, labels, template, features with the number of their first weight, weights; blank lines between.
//!
//! A feature of a `U` template has a weight for each label, of a `B` template for each pair of labels, the former one first.

use super::{Found, ImportError};
use crate::data::sequences::Template;
use crate::model::SequenceModel;
use crate::model::sequence::Origin;

/// Imports a text model of CRF++.
///
/// # Errors
/// An [`ImportError`] with the line.
pub fn import(bytes: &[u8]) -> Result<SequenceModel, ImportError> {
    let text = std::str::from_utf8(bytes);
    let text =
        text.map_err(|_| ImportError::Content { line: 0, what: "the model is no UTF-8 text".into() })?;
    let mut lines = text.lines().enumerate().map(|(n, line)| (n + 1, line));
    let wrong = |line: usize, what: String| ImportError::Content { line, what };
    let mut columns = None;
    let mut weights = 0usize;
    for (n, line) in lines.by_ref().take_while(|l| !l.1.is_empty()) {
        let number = |value: &str| {
            value.trim().parse::<usize>().map_err(|_| wrong(n, format!("`{value}` is no whole number")))
        };
        match line.split_once(':') {
            Some(("version", value)) if value.trim() != "100" => {
                return Err(wrong(n, format!("CRF++ model of version{value}, but version 100 is read here")));
            }
            Some(("xsize", value)) => columns = Some(number(value)?),
            Some(("maxid", value)) => weights = number(value)?,
            Some(_) => {}
            None => return Err(wrong(n, format!("expected `name: value`, found `{line}`"))),
        }
    }
    let columns = columns.ok_or_else(|| wrong(0, "the header has no `xsize`".into()))? + 1;
    let mut found = Found::default();
    for (n, line) in lines.by_ref().take_while(|l| !l.1.is_empty()) {
        if found.alphabet.labels.get(line).is_some() {
            return Err(wrong(n, format!("the label `{line}` is there twice")));
        }
        found.alphabet.labels.intern(line);
    }
    let mut source = String::new();
    let mut start = 0;
    for (n, line) in lines.by_ref().take_while(|l| !l.1.is_empty()) {
        start = if start == 0 { n } else { start };
        source.push_str(line);
        source.push('\n');
    }
    Template::parse(&source).map_err(|e| wrong(start, format!("the template: {e}")))?;
    let mut features: Vec<(usize, usize, &str)> = Vec::new();
    for (n, line) in lines.by_ref().take_while(|l| !l.1.is_empty()) {
        let parts = line.split_once(' ').and_then(|(id, name)| Some((id.parse().ok()?, name)));
        let (id, name) =
            parts.ok_or_else(|| wrong(n, format!("expected a number and a feature, found `{line}`")))?;
        features.push((n, id, name));
    }
    let mut theta = Vec::new();
    for (n, line) in lines.filter(|l| !l.1.is_empty()) {
        let weight: f64 = line.trim().parse().map_err(|_| wrong(n, format!("`{line}` is no number")))?;
        theta.push(weight);
    }
    if theta.len() != weights {
        return Err(wrong(0, format!("there are {} weights, but the header says {weights}", theta.len())));
    }
    let labels = found.alphabet.labels.len();
    for (n, id, name) in features {
        let pairs = name.starts_with('B');
        let size = if pairs { labels * labels } else { labels };
        let own = id.checked_add(size).and_then(|end| theta.get(id..end));
        let own = own.ok_or_else(|| wrong(n, format!("the weights of `{name}` lie beyond the last one")))?;
        let (list, a) = if !pairs {
            (&mut found.states, found.alphabet.attributes.intern(name))
        } else if name == "B" {
            (&mut found.transitions, 0)
        } else {
            (&mut found.edges, found.alphabet.edge_attributes.intern(name))
        };
        list.extend(own.iter().enumerate().map(|(y, &w)| (a, y as u32, w)));
    }
    found.model(Origin::Columns { template: source, columns }, "CRF++")
}
