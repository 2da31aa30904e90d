//! `gibbsite train`: from labelled sequences to a model.

use crate::config::Train;
use crate::progress::{Steps, catch_ctrl_c, interrupted};
use crate::{Outcome, args, output};
use anyhow::anyhow;
use gibbsite::data::sequences::{Corpus, Format, ReadParams, Sequences, Template, read, read_known};
use gibbsite::data::source::Source;
use gibbsite::model::container::{self, Container};
use gibbsite::model::sequence::{Facts, Origin};
use gibbsite::model::{Kind, SequenceModel};
use gibbsite::sequence::scheme::Constraints;
use gibbsite::sequence::tagger::{Tagger, Want};
use gibbsite::sequence::train::{TrainParams, index, train};
use gibbsite::solver::lbfgs::{LbfgsInfo, Point, State, Stop};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// Between two checkpoints.
const MINUTE: Duration = Duration::from_secs(60);
const CHECKPOINT: Kind = Kind(*b"ckpt");

pub(crate) fn run(config: &Train) -> anyhow::Result<Outcome> {
    config.common.par.run(|_| run_inside(config))
}

fn run_inside(config: &Train) -> anyhow::Result<Outcome> {
    let common = &config.common;
    let start = Instant::now();
    let format = format(config)?;
    let read_params = ReadParams { min_count: config.min_count, par: common.par, ..ReadParams::new(format) };
    let corpus = read(&config.data, &read_params).map_err(|e| blame(&config.data, &e))?;
    let read_seconds = start.elapsed().as_secs_f64();
    remark(config, &corpus, read_seconds);
    let origin = match &read_params.format {
        Format::Crfsuite => Origin::Crfsuite,
        Format::Columns(template) => {
            Origin::Columns { template: template.source().to_owned(), columns: corpus.report.columns }
        }
    };
    let held = match &config.holdout {
        None => None,
        Some(path) => {
            let params = ReadParams { min_count: 1, ..read_params.clone() };
            let (held, _) = read_known(path, &corpus.alphabet, &params).map_err(|e| blame(path, &e))?;
            Some(held)
        }
    };
    let resumed = if config.resume { restore(config)? } else { None };
    catch_ctrl_c();
    let start = Instant::now();
    let mut followed = Followed::new(config, &corpus, origin.clone(), held.as_ref())?;
    let name = config.data.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let trained = train(&corpus, origin, &name, &config.params, resumed, &mut |point, state| {
        followed.step(point, state)
    });
    let (model, info) = trained.map_err(|e| blame(&config.data, &e))?;
    let seconds = start.elapsed().as_secs_f64();
    followed.finish()?;
    output::write(Some(&config.model), &model.to_bytes())?;
    let converged = model.facts.converged && !interrupted();
    if !converged {
        let why = match info.stop {
            Stop::Iterations => "the limit on iterations was reached",
            Stop::Precision => "rounding allows no further progress",
            _ => "interrupted",
        };
        common.warn(&format!(
            "{why}: the violation is {:.2e}, the model is the best so far",
            info.end.violation
        ));
    }
    let held = followed.accuracies;
    let text = if common.json {
        report_json(&config.params, &model, &info, converged, (seconds, read_seconds), &held)
    } else {
        report_text(&model, &info, converged, (seconds, read_seconds), &held)
    };
    output::write(common.output.as_deref(), text.as_bytes())?;
    Ok(if converged { Outcome::Done } else { Outcome::Unconverged })
}

fn blame(path: &Path, error: &dyn std::fmt::Display) -> anyhow::Error {
    anyhow!("{}: {error}", super::name(path))
}

fn format(config: &Train) -> anyhow::Result<Format> {
    match (config.format, &config.template) {
        (args::SequenceFormat::Columns, Some(path)) => {
            let source = Source::open(path)?;
            let text = String::from_utf8(source.bytes).map_err(|_| blame(path, &"not UTF-8 text"))?;
            Ok(Format::Columns(Template::parse(&text).map_err(|e| blame(path, &e))?))
        }
        _ => Ok(Format::Crfsuite),
    }
}

fn remark(config: &Train, corpus: &Corpus, seconds: f64) {
    let common = &config.common;
    let (sequences, alphabet, report) = (&corpus.sequences, &corpus.alphabet, &corpus.report);
    common.log(|| {
        format!(
            "read {} sequences, {} items, {} labels, {} attributes in {seconds:.3} s",
            sequences.len(),
            sequences.items(),
            alphabet.labels.len(),
            alphabet.attributes.len()
        )
    });
    if report.rare > 0 {
        common.log(|| format!("left out {} rare attributes", report.rare));
    }
    if alphabet.labels.len() == 1 {
        common.warn("all items have the same label: the model can only repeat it");
    }
    if alphabet.attributes.is_empty() {
        common.warn("no item has an attribute: only transitions are learned");
    }
}

/// What happens at each step: a line on the terminal, the held-out accuracy, a checkpoint now and then.
struct Followed<'a> {
    config: &'a Train,
    steps: Steps,
    held: Option<(SequenceModel, &'a Sequences)>,
    accuracies: Vec<f64>,
    saved: Instant,
    last: Option<State>,
    failed: Option<anyhow::Error>,
}

impl<'a> Followed<'a> {
    fn new(
        config: &'a Train,
        corpus: &Corpus,
        origin: Origin,
        held: Option<&'a Sequences>,
    ) -> anyhow::Result<Self> {
        let held = match held {
            None => None,
            Some(held) => {
                let index = index(corpus, config.params.generate).map_err(|e| blame(&config.data, &e))?;
                let facts = Facts {
                    estimator: String::new(),
                    solver: String::new(),
                    l1: 0.0,
                    l2: 0.0,
                    objective: 0.0,
                    violation: 0.0,
                    iterations: 0,
                    converged: false,
                    sequences: 0,
                    items: 0,
                    data: String::new(),
                };
                let alphabet = corpus.alphabet.clone();
                Some((SequenceModel { alphabet, index, theta: Vec::new(), origin, facts }, held))
            }
        };
        Ok(Self {
            config,
            steps: Steps::start(&config.common, "training"),
            held,
            accuracies: Vec::new(),
            saved: Instant::now(),
            last: None,
            failed: None,
        })
    }

    fn step(&mut self, point: &Point, state: &State) -> bool {
        let mut line = format!(
            "iteration {}, objective {:.6e}, violation {:.1e}, {} non-zeros",
            point.iterations, point.objective, point.violation, point.nonzeros
        );
        if let Some((model, held)) = &mut self.held {
            model.theta.clear();
            model.theta.extend_from_slice(state.theta());
            let tagger = Tagger::new(model, Constraints::default());
            if let Ok(tagged) = tagger.tag(held, Want::default(), self.config.common.par) {
                let found = tagged.iter().flat_map(|t| t.labels.first().into_iter().flatten());
                let right = found.zip(held.gold()).filter(|(y, g)| g.known() == Some(**y)).count();
                let accuracy = right as f64 / held.items().max(1) as f64;
                self.accuracies.push(accuracy);
                let _ = write!(line, ", held-out accuracy {accuracy:.5}");
                if !self.config.common.quiet && !self.steps.shown() {
                    output::say(&line);
                }
            }
        }
        self.steps.show(&line);
        if self.config.checkpoint.is_some() {
            if self.saved.elapsed() >= MINUTE {
                self.saved = Instant::now();
                self.failed = self.save(state).err();
                if let Some(error) = &self.failed {
                    self.config.common.warn(&format!("{error:#}"));
                }
            }
            self.last = Some(state.clone());
        }
        !interrupted()
    }

    fn save(&self, state: &State) -> anyhow::Result<()> {
        let Some(path) = &self.config.checkpoint else { return Ok(()) };
        let params = &self.config.params;
        let header = json!({
            "checkpoint": "train",
            "l1": params.l1,
            "l2": params.l2,
            "parameters": state.theta().len(),
            "iterations": state.iterations(),
            "objective": state.objective(),
        });
        output::write(Some(path), &container::write(CHECKPOINT, &header, &[(*b"stat", &state.to_bytes())]))
    }

    /// The last state, for a run that goes on later.
    fn finish(&self) -> anyhow::Result<()> {
        match &self.last {
            Some(state) => self.save(state),
            None => Ok(()),
        }
    }
}

/// The state to go on from, if the checkpoint is there.
fn restore(config: &Train) -> anyhow::Result<Option<State>> {
    let Some(path) = config.checkpoint.as_deref().filter(|p| p.exists()) else { return Ok(None) };
    let source = Source::open(path)?;
    let file = Container::open(&source.bytes).map_err(|e| blame(path, &e))?;
    if file.kind != CHECKPOINT {
        return Err(blame(path, &format!("not a checkpoint, but a model of the kind `{}`", file.kind)));
    }
    let params = &config.params;
    let (l1, l2) = (file.header["l1"].as_f64(), file.header["l2"].as_f64());
    if (l1, l2) != (Some(params.l1), Some(params.l2)) {
        config
            .common
            .warn("the checkpoint was made with other penalties: its weights are where this run starts");
    }
    let bytes = file.section(*b"stat").unwrap_or(&[]);
    Ok(Some(State::from_bytes(bytes).map_err(|e| blame(path, &e))?))
}

fn log_likelihood(params: &TrainParams, model: &SequenceModel, objective: f64) -> f64 {
    let (mut one, mut two) = (0.0, 0.0);
    for w in &model.theta {
        one += w.abs();
        two += w * w;
    }
    params.l1 * one + 0.5 * params.l2 * two - objective
}

fn report_json(
    params: &TrainParams,
    model: &SequenceModel,
    info: &LbfgsInfo,
    converged: bool,
    (seconds, read_seconds): (f64, f64),
    held: &[f64],
) -> String {
    let trace = info.trace.iter().enumerate().map(|(k, p)| {
        let mut point = json!({
            "iteration": p.iterations,
            "objective": p.objective,
            "violation": p.violation,
            "seconds": p.seconds,
        });
        if let Some(accuracy) = held.get(k) {
            point["holdout_accuracy"] = json!(accuracy);
        }
        point
    });
    let value = json!({
        "objective": info.end.objective,
        "log_likelihood": log_likelihood(params, model, info.end.objective),
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
        "peak_rss_mib": super::peak_rss_mib(),
        "trace": trace.collect::<Vec<Value>>(),
    });
    format!("{value}\n")
}

fn report_text(
    model: &SequenceModel,
    info: &LbfgsInfo,
    converged: bool,
    (seconds, read_seconds): (f64, f64),
    held: &[f64],
) -> String {
    let facts = &model.facts;
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<16} {value}");
    };
    line(
        "sequences",
        format!("{} ({} items, {} labels)", facts.sequences, facts.items, model.alphabet.labels.len()),
    );
    line("parameters", format!("{} ({} not 0)", model.index.len(), info.end.nonzeros));
    line("objective", format!("{}", info.end.objective));
    let met = if converged { "" } else { ", NOT CONVERGED" };
    line("violation", format!("{:.3e}{met}", info.end.violation));
    line("iterations", format!("{} ({} evaluations)", info.end.iterations, info.end.evaluations));
    if let Some(accuracy) = held.last() {
        line("held-out", format!("{accuracy:.5} of items right"));
    }
    line("time", format!("{seconds:.2} s, and {read_seconds:.2} s to read"));
    text
}
