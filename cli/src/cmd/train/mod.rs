//! `gibbsite train`: from labelled data to a model. One file for each kind of data; what they have in common is here.

mod choose;
mod sequences;
mod table;

pub(super) use table::read as read_table;

use crate::config::{Train, TrainTask};
use crate::progress::{Steps, interrupted};
use crate::{Outcome, output};
use anyhow::anyhow;
use gibbsite::data::source::Source;
use gibbsite::model::Kind;
use gibbsite::model::container::{self, Container};
use gibbsite::solver::lbfgs::{LbfgsInfo, Point, State, Stop};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// Between two checkpoints.
const MINUTE: Duration = Duration::from_secs(60);
const CHECKPOINT: Kind = Kind(*b"ckpt");

pub(crate) fn run(config: &Train) -> anyhow::Result<Outcome> {
    config.common.par.run(|_| match &config.task {
        TrainTask::Sequences(task) => sequences::run(config, task),
        TrainTask::Table(task) => table::run(config, task),
    })
}

fn blame(path: &Path, error: &dyn std::fmt::Display) -> anyhow::Error {
    anyhow!("{}: {error}", super::name(path))
}

/// The text of a file.
fn text(path: &Path) -> anyhow::Result<String> {
    let source = Source::open(path)?;
    String::from_utf8(source.bytes).map_err(|_| blame(path, &"not UTF-8 text"))
}

/// Share of the held-out labels that these weights get right, if it can be told.
type Held<'a> = Box<dyn FnMut(&[f64]) -> Option<f64> + 'a>;

/// What happens at each step: a line on the terminal, the held-out accuracy, a checkpoint now and then.
struct Followed<'a> {
    config: &'a Train,
    steps: Steps,
    held: Option<Held<'a>>,
    accuracies: Vec<f64>,
    saved: Instant,
    /// Whether there was a step to go on from.
    stepped: bool,
    /// Whether Ctrl-C was pressed before it began, to end cross-validation: the second one quits.
    late: bool,
}

impl<'a> Followed<'a> {
    fn new(config: &'a Train, held: Option<Held<'a>>) -> Self {
        Self {
            config,
            steps: Steps::start(&config.common, "training"),
            held,
            accuracies: Vec::new(),
            saved: Instant::now(),
            stepped: false,
            late: interrupted(),
        }
    }

    fn step(&mut self, point: &Point, state: &State) -> bool {
        let mut line = format!(
            "iteration {}, objective {:.6e}, violation {:.1e}, {} non-zeros",
            point.iterations, point.objective, point.violation, point.nonzeros
        );
        if let Some(accuracy) = self.held.as_mut().and_then(|held| held(state.theta())) {
            self.accuracies.push(accuracy);
            let _ = write!(line, ", held-out accuracy {accuracy:.5}");
            if !self.config.common.quiet && !self.steps.shown() {
                output::say(&line);
            }
        }
        self.steps.show(&line);
        self.stepped = true;
        if self.config.checkpoint.is_some() && self.saved.elapsed() >= MINUTE {
            self.saved = Instant::now();
            if let Err(error) = self.save(state) {
                self.config.common.warn(&format!("{error:#}"));
            }
        }
        self.go_on()
    }

    fn go_on(&self) -> bool {
        self.late || !interrupted()
    }

    fn save(&self, state: &State) -> anyhow::Result<()> {
        let Some(path) = &self.config.checkpoint else { return Ok(()) };
        let (l1, l2) = self.config.task.penalties();
        let header = json!({
            "checkpoint": "train",
            "l1": l1,
            "l2": l2,
            "parameters": state.theta().len(),
            "iterations": state.iterations(),
            "objective": state.objective(),
        });
        output::write(Some(path), &container::write(CHECKPOINT, &header, &[(*b"stat", &state.to_bytes())]))
    }

    /// The last state, for a run that goes on later. Components that were solved one by one have none.
    fn finish(&self, state: &State) -> anyhow::Result<()> {
        if self.stepped { self.save(state) } else { Ok(()) }
    }
}

/// The state to go on from, if it is asked for and the checkpoint is there.
fn restore(config: &Train) -> anyhow::Result<Option<State>> {
    if !config.resume {
        return Ok(None);
    }
    let Some(path) = config.checkpoint.as_deref().filter(|p| p.exists()) else { return Ok(None) };
    let source = Source::open(path)?;
    let file = Container::open(&source.bytes).map_err(|e| blame(path, &e))?;
    if file.kind != CHECKPOINT {
        return Err(blame(path, &format!("not a checkpoint, but a model of the kind `{}`", file.kind)));
    }
    let (l1, l2) = config.task.penalties();
    if (file.header["l1"].as_f64(), file.header["l2"].as_f64()) != (Some(l1), Some(l2)) {
        config
            .common
            .warn("the checkpoint was made with other penalties: its weights are where this run starts");
    }
    let bytes = file.section(*b"stat").unwrap_or(&[]);
    Ok(Some(State::from_bytes(bytes).map_err(|e| blame(path, &e))?))
}

/// Whether the run met its tolerance; says so if not.
fn converged(config: &Train, info: &LbfgsInfo) -> bool {
    let converged = info.stop.is_converged() && !interrupted();
    if !converged {
        let why = match info.stop {
            Stop::Iterations => "the limit on iterations was reached",
            Stop::Precision => "rounding allows no further progress",
            Stop::Slow => "the objective hardly falls any more",
            _ => "interrupted",
        };
        config.common.warn(&format!(
            "{why}: the violation is {:.2e}, the model is the best so far",
            info.end.violation
        ));
    }
    converged
}

fn trace_json(info: &LbfgsInfo, held: &[f64]) -> Vec<Value> {
    let point = |(k, p): (usize, &Point)| {
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
    };
    info.trace.iter().enumerate().map(point).collect()
}

/// The part of the report that all kinds have: how the run went. `time` is for training and for reading.
fn report_run(text: &mut String, info: &LbfgsInfo, converged: bool, time: (f64, f64), held: &[f64]) {
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<16} {value}");
    };
    line("objective", format!("{}", info.end.objective));
    let met = if converged { "" } else { ", NOT CONVERGED" };
    line("violation", format!("{:.3e}{met}", info.end.violation));
    line("iterations", format!("{} ({} evaluations)", info.end.iterations, info.end.evaluations));
    if let Some(accuracy) = held.last() {
        line("held-out", format!("{accuracy:.5} of items right"));
    }
    line("time", format!("{:.2} s, and {:.2} s to read", time.0, time.1));
}
