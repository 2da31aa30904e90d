//! From labelled sequences to a model.

use super::choose::{Chosen, choose};
use super::{Followed, Held, blame, converged, report_run, restore, text, trace_json};
use crate::cmd::file_name;
use crate::config::{Train, TrainSequences};
use crate::progress::catch_ctrl_c;
use crate::{Outcome, output};
use gibbsite::data::sequences::{
    Corpus, Format, ReadParams, Report, Sequences, SpilledCorpus, Template, read, read_known, read_spilled,
};
use gibbsite::features::Index;
use gibbsite::model::sequence::Origin;
use gibbsite::sequence::cv::cross_validate;
use gibbsite::sequence::scheme::Constraints;
use gibbsite::sequence::tagger::{Tagger, Want};
use gibbsite::sequence::train::{Data, Trained, index, train_indexed};
use serde_json::json;
use std::fmt::Write;
use std::time::Instant;

pub(super) fn run(config: &Train, task: &TrainSequences) -> anyhow::Result<Outcome> {
    let common = &config.common;
    let start = Instant::now();
    let format = format(task)?;
    let mut task = task.clone();
    if let Format::Columns(template) = &format {
        // As in CRF++: without a `B` line items are labelled one by one.
        let generate = &mut task.params.generate;
        generate.no_transitions = !template.transitions() && !generate.all_transitions;
    }
    let read_params = ReadParams { min_count: task.min_count, par: common.par, ..ReadParams::new(format) };
    let corpus = Loaded::read(config, &task, &read_params)?;
    let read_seconds = start.elapsed().as_secs_f64();
    remark(config, &corpus, read_seconds);
    let origin = match &read_params.format {
        Format::Crfsuite => Origin::Crfsuite,
        Format::Columns(template) => {
            Origin::Columns { template: template.source().to_owned(), columns: corpus.report().columns }
        }
    };
    let index = index(corpus.data(), task.params.generate).map_err(|e| blame(&config.data, &e))?;
    let held = match &config.holdout {
        None => None,
        Some(path) => {
            let params = ReadParams { min_count: 1, ..read_params.clone() };
            let (held, _) = read_known(path, corpus.data().alphabet, &params).map_err(|e| blame(path, &e))?;
            Some(accuracy(config, index.clone(), held))
        }
    };
    let resumed = restore(config)?;
    catch_ctrl_c();
    let start = Instant::now();
    let chosen = match &corpus {
        Loaded::Memory(corpus) => {
            choose(config, |how, watch| cross_validate(corpus, &task.params, how, watch))?
        }
        Loaded::File(_) => Chosen::default(),
    };
    chosen.set(&mut task.params.l1, &mut task.params.l2);
    let mut followed = Followed::new(config, held);
    let name = file_name(&config.data);
    let mut watch = |point: &_, state: &_| followed.step(point, state);
    let trained = train_indexed(corpus.data(), index, origin, &name, &task.params, resumed, &mut watch)
        .map_err(|e| blame(&config.data, &e))?;
    let seconds = start.elapsed().as_secs_f64();
    followed.finish(&trained.state)?;
    output::write(Some(&config.model), &trained.model.to_bytes())?;
    let converged = converged(config, &trained.info) && chosen.converged();
    let (time, held) = ((seconds, read_seconds), followed.accuracies);
    let text = if common.json {
        report_json(&trained, &chosen, converged, time, &held)
    } else {
        report_text(&trained, &chosen, converged, time, &held)
    };
    output::write(common.output.as_deref(), text.as_bytes())?;
    Ok(if converged { Outcome::Done } else { Outcome::Unconverged })
}

/// Sequences in memory, or in a temporary file.
enum Loaded {
    Memory(Corpus),
    File(SpilledCorpus),
}

impl Loaded {
    fn read(config: &Train, task: &TrainSequences, params: &ReadParams) -> anyhow::Result<Self> {
        let read = match task.stream {
            true => read_spilled(&config.data, params, output::temporary(&config.model)?).map(Self::File),
            false => read(&config.data, params).map(Self::Memory),
        };
        read.map_err(|e| blame(&config.data, &e))
    }

    fn data(&self) -> Data<'_> {
        match self {
            Self::Memory(corpus) => corpus.into(),
            Self::File(corpus) => corpus.into(),
        }
    }

    fn report(&self) -> &Report {
        match self {
            Self::Memory(corpus) => &corpus.report,
            Self::File(corpus) => &corpus.report,
        }
    }
}

fn format(task: &TrainSequences) -> anyhow::Result<Format> {
    let Some(path) = &task.template else { return Ok(Format::Crfsuite) };
    Ok(Format::Columns(Template::parse(&text(path)?).map_err(|e| blame(path, &e))?))
}

fn remark(config: &Train, corpus: &Loaded, seconds: f64) {
    let common = &config.common;
    let Data { sequences, alphabet } = corpus.data();
    common.log(|| {
        format!(
            "read {} sequences, {} items, {} labels, {} attributes in {seconds:.3} s",
            sequences.len(),
            sequences.items(),
            alphabet.labels.len(),
            alphabet.attributes.len()
        )
    });
    let rare = corpus.report().rare;
    if rare > 0 {
        common.log(|| format!("left out {rare} rare attributes"));
    }
    if alphabet.labels.len() == 1 {
        common.warn("all items have the same label: the model can only repeat it");
    }
    if alphabet.attributes.is_empty() {
        common.warn("no item has an attribute: only transitions are learned");
    }
}

/// Accuracy on held-out sequences.
fn accuracy(config: &Train, index: Index, held: Sequences) -> Held<'_> {
    Box::new(move |theta| {
        let tagger = Tagger::of(&index, theta, Constraints::default());
        let tagged = tagger.tag(&held, Want::default(), config.common.par).ok()?;
        let found = tagged.iter().flat_map(|t| t.labels.first().into_iter().flatten());
        let right = found.zip(held.gold()).filter(|(y, g)| g.known() == Some(**y)).count();
        Some(right as f64 / held.items().max(1) as f64)
    })
}

fn report_json(
    trained: &Trained,
    chosen: &Chosen,
    converged: bool,
    (seconds, read_seconds): (f64, f64),
    held: &[f64],
) -> String {
    let Trained { model, info, log_likelihood, .. } = trained;
    let mut value = json!({
        "objective": info.end.objective,
        "log_likelihood": log_likelihood,
        "violation": info.end.violation,
        "iterations": info.end.iterations,
        "evaluations": info.end.evaluations,
        "converged": converged,
        "parameters": model.index.len(),
        "nonzeros": info.end.nonzeros,
        "labels": model.alphabet.labels.len(),
        "attributes": model.alphabet.attributes.len(),
        "sequences": model.facts.sequences,
        "items": model.facts.items,
        "holdout_accuracy": held.last(),
        "seconds": seconds,
        "read_seconds": read_seconds,
        "peak_rss_mib": crate::cmd::peak_rss_mib(),
        "trace": trace_json(info, held),
    });
    chosen.add_json(&mut value);
    format!("{value}\n")
}

fn report_text(
    trained: &Trained,
    chosen: &Chosen,
    converged: bool,
    time: (f64, f64),
    held: &[f64],
) -> String {
    let Trained { model, info, .. } = trained;
    let facts = &model.facts;
    let mut text = chosen.table("sequence");
    let labels = model.alphabet.labels.len();
    let _ = writeln!(text, "sequences        {} ({} items, {labels} labels)", facts.sequences, facts.items);
    let _ = writeln!(text, "parameters       {} ({} not 0)", model.index.len(), info.end.nonzeros);
    report_run(&mut text, info, converged, time, held);
    text
}
