//! Labels for sequences.

use crate::config::Data;
use crate::{Outcome, args, config, output};
use anyhow::anyhow;
use gibbsite::data::sequences::{Format, ReadParams, Report, Sequences, Template, read_known};
use gibbsite::data::source::Source;
use gibbsite::model::SequenceModel;
use gibbsite::model::sequence::Origin;
use gibbsite::par::Par;
use gibbsite::sequence::scheme::{Constraints, Scheme};
use gibbsite::sequence::tagger::{Tagged, Tagger, Want};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

pub(crate) fn run(config: &config::Predict, model: &SequenceModel) -> anyhow::Result<Outcome> {
    let common = &config.common;
    let options = &config.sequences;
    let (sequences, report) = read(&config.data, model, !options.unlabelled, common.par)?;
    remark(common, &report, &sequences);
    let mut constraints = constraints(options.scheme, model)?;
    forbid(options.forbid.as_deref(), model, &mut constraints)?;
    let want = Want {
        best: options.best.unwrap_or(1),
        marginals: config.marginals,
        probability: options.best.is_some() || common.json,
        forced: options.forced,
    };
    let tagger = Tagger::new(model, constraints);
    let tagged =
        tagger.tag(&sequences, want, common.par).map_err(|e| anyhow!("{}: {e}", config.data.name()))?;
    let text = if common.json {
        format!("{}\n", as_json(model, &sequences, &tagged, config.marginals))
    } else {
        as_text(model, &tagged, config.marginals, options.best.is_some())
    };
    output::write(common.output.as_deref(), text.as_bytes())?;
    Ok(Outcome::Done)
}

/// How the model's data is written, unless the user says otherwise.
pub(in crate::cmd) fn format(data: &Data, model: &SequenceModel) -> anyhow::Result<Format> {
    let name = data.name();
    match (data.as_typed, &model.origin) {
        (Some(args::Format::Svmlight | args::Format::Csv | args::Format::Table), _) => {
            Err(anyhow!("{name}: the model labels sequences: --format must be crfsuite or columns"))
        }
        (Some(args::Format::Columns), Origin::Crfsuite) => Err(anyhow!(
            "{name}: the model was trained on --format crfsuite and has no template to make attributes of columns"
        )),
        (Some(args::Format::Crfsuite), _) | (None, Origin::Crfsuite) => Ok(Format::Crfsuite),
        (Some(args::Format::Columns) | None, Origin::Columns { template, .. }) => {
            Ok(Format::Columns(Template::parse(template).map_err(|e| anyhow!("the model's template: {e}"))?))
        }
    }
}

/// Sequences in the model's alphabet. Columns without the label's are unlabelled.
pub(in crate::cmd) fn read(
    data: &Data,
    model: &SequenceModel,
    labelled: bool,
    par: Par,
) -> anyhow::Result<(Sequences, Report)> {
    let params = ReadParams { labelled, par, ..ReadParams::new(format(data, model)?) };
    let blame = |e: &dyn std::fmt::Display| anyhow!("{}: {e}", data.name());
    let expected = match (&model.origin, &params.format) {
        (Origin::Columns { columns, .. }, Format::Columns(_)) => *columns,
        _ => 0,
    };
    let whole = read_known(&data.path, &model.alphabet, &params);
    // Standard input cannot be read again.
    let again = labelled && expected > 0 && data.path.as_os_str() != "-";
    match whole {
        Ok(read) if !again || read.1.columns == expected => Ok(read),
        Ok(read) if read.1.columns + 1 != expected => Ok(read),
        Err(e) if !again => Err(blame(&e)),
        _ => {
            let params = ReadParams { labelled: false, ..params };
            read_known(&data.path, &model.alphabet, &params).map_err(|e| blame(&e))
        }
    }
}

pub(in crate::cmd) fn remark(common: &config::Common, report: &Report, sequences: &Sequences) {
    if report.unknown_labels > 0 {
        common.warn(&format!("{} labels in the data are not the model's", report.unknown_labels));
    }
    if report.unknown_attributes > 0 {
        common.log(|| format!("{} attributes in the data are not the model's", report.unknown_attributes));
    }
    if sequences.occurrences() == 0 && sequences.items() > 0 {
        common.warn("no attribute of the data is the model's: only transitions decide");
    }
}

pub(in crate::cmd) fn constraints(
    scheme: Option<args::Scheme>,
    model: &SequenceModel,
) -> anyhow::Result<Constraints> {
    let scheme = match scheme {
        None => return Ok(Constraints::default()),
        Some(args::Scheme::Bio) => Scheme::Bio,
        Some(args::Scheme::Iobes) => Scheme::Iobes,
    };
    let labels: Vec<&str> = model.alphabet.labels.iter().collect();
    Constraints::of(scheme, &labels).map_err(|e| anyhow!("--scheme: {e}"))
}

/// Adds the transitions of `--forbid`.
pub(in crate::cmd) fn forbid(
    path: Option<&Path>,
    model: &SequenceModel,
    constraints: &mut Constraints,
) -> anyhow::Result<()> {
    let Some(path) = path else { return Ok(()) };
    let source = Source::open(path)?;
    for (n, line) in String::from_utf8_lossy(&source.bytes).lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let at = |what: &str| anyhow!("{}: line {}: {what}", source.name, n + 1);
        let (from, to) = line
            .split_once('\t')
            .or_else(|| line.split_once(' '))
            .ok_or_else(|| at("expected two labels with a tab between them"))?;
        let known = |name: &str| {
            let name = name.trim();
            model.alphabet.labels.get(name).ok_or_else(|| at(&format!("the model has no label `{name}`")))
        };
        constraints.forbidden.push((known(from)?, known(to)?));
    }
    Ok(())
}

fn as_text(model: &SequenceModel, tagged: &[Tagged], marginals: bool, ranked: bool) -> String {
    let names: Vec<&str> = model.alphabet.labels.iter().collect();
    let mut text = String::new();
    for (s, sequence) in tagged.iter().enumerate() {
        for (rank, labels) in sequence.labels.iter().enumerate() {
            if s > 0 || rank > 0 {
                text.push('\n');
            }
            if ranked {
                let p = sequence.log_probability.get(rank).map_or(0.0, |p| p.exp());
                let _ = writeln!(text, "# {} {p}", rank + 1);
            }
            for (t, &label) in labels.iter().enumerate() {
                text.push_str(names[label as usize]);
                if marginals {
                    for (name, p) in names.iter().zip(&sequence.marginals[t * names.len()..]) {
                        let _ = write!(text, "\t{name}:{p}");
                    }
                }
                text.push('\n');
            }
        }
    }
    text
}

fn as_json(model: &SequenceModel, sequences: &Sequences, tagged: &[Tagged], marginals: bool) -> Value {
    let names: Vec<&str> = model.alphabet.labels.iter().collect();
    let each = tagged.iter().map(|t| {
        let named = |labels: &Vec<u32>| labels.iter().map(|&l| names[l as usize]).collect::<Vec<_>>();
        let labellings = t.labels.iter().zip(&t.log_probability);
        let mut all: Vec<Value> = labellings
            .map(|(labels, p)| json!({ "labels": named(labels), "probability": p.exp(), "log_probability": p }))
            .collect();
        if marginals && let Some(first) = all.first_mut() {
            first["marginals"] = json!(t.marginals.chunks_exact(names.len()).collect::<Vec<_>>());
        }
        if all.len() == 1 { all.remove(0) } else { json!({ "best": all }) }
    });
    json!({ "items": sequences.items(), "labels": names, "sequences": each.collect::<Vec<_>>() })
}
