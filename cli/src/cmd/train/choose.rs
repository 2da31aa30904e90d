//! Penalties that cross-validation chooses: the run, the table, the plot.

use super::blame;
use crate::cmd::number;
use crate::config::Train;
use crate::output;
use crate::progress::{Steps, interrupted};
use gibbsite::cv::{GridError, GridFound, GridParams, GridPoint, Watch};
use gibbsite::plot::{Axis, Figure, Line, PlotError, Style};
use serde_json::{Value, json};
use std::fmt::{Display, Write};

/// What cross-validation found, if it was asked for.
#[derive(Default)]
pub(super) struct Chosen(Option<GridFound>);

/// Cross-validates if it was asked for; says what the user should know, and draws.
pub(super) fn choose<E: Display>(
    config: &Train,
    run: impl FnOnce(&GridParams, &mut Watch<'_>) -> Result<GridFound, GridError<E>>,
) -> anyhow::Result<Chosen> {
    let Some(how) = &config.cv else { return Ok(Chosen(None)) };
    let steps = Steps::start(&config.common, "cross-validating");
    let found = run(how, &mut |trial| {
        let (p, fold, folds) = (trial.penalties, trial.fold + 1, how.folds);
        steps.show(&format!(
            "C1 {}, C2 {}, fold {fold} of {folds}, iteration {}, violation {:.1e}",
            p.l1, p.l2, trial.point.iterations, trial.point.violation
        ));
        !interrupted()
    });
    drop(steps);
    let found = match found {
        Ok(found) => found,
        Err(error @ GridError::Folds { .. }) => config.too_many_folds(&error),
        Err(error) => return Err(blame(&config.data, &error)),
    };
    let warn = |line: &str| config.common.warn(line);
    if found.pseudo {
        warn(
            "exact inference does not fit --max-table-mib: held-out losses are those of each label given all others",
        );
    }
    if found.interrupted {
        warn("interrupted: the choice is among the penalties that were tried on all folds");
    } else if found.points.iter().any(|p| !p.converged) {
        warn("some fits on folds stopped before the tolerance was met");
    }
    if found.at_edge() {
        warn(
            "the penalty that was chosen is at the edge of those that were tried: a better one may lie beyond",
        );
    }
    if let Some(path) = &config.plot {
        output::write(Some(path), draw(&found)?.as_bytes())?;
    }
    Ok(Chosen(Some(found)))
}

impl Chosen {
    /// Puts the choice in the place of `C₁` and `C₂`.
    pub(super) fn set(&self, l1: &mut f64, l2: &mut f64) {
        if let Some(found) = &self.0 {
            (*l1, *l2) = (found.chosen().penalties.l1, found.chosen().penalties.l2);
        }
    }

    /// Whether all fits on folds met their tolerance.
    pub(super) fn converged(&self) -> bool {
        self.0.as_ref().is_none_or(|found| !found.interrupted && found.points.iter().all(|p| p.converged))
    }

    pub(super) fn add_json(&self, report: &mut Value) {
        if let Some(found) = &self.0 {
            report["cv"] = found.points.iter().map(as_json).collect();
            report["cv_loss"] = json!(if found.pseudo { "pseudo" } else { "log_loss" });
            report["chosen"] = as_json(found.chosen());
        }
    }

    /// A line for each pair of penalties; losses are of a `sample`.
    pub(super) fn table(&self, sample: &str) -> String {
        let mut text = String::new();
        let Some(found) = &self.0 else { return text };
        let loss = if found.pseudo { "pseudo loss" } else { "log loss" };
        let chunks = found.points.iter().any(|p| p.chunk.is_some());
        let last = if chunks { "  chunk F1" } else { "" };
        let _ = writeln!(text, "held out, of a {sample}:");
        let _ = writeln!(text, "{:>10} {:>10} {loss:>12} ± {:<10} accuracy{last}", "C1", "C2", "s.e.");
        for (k, point) in found.points.iter().enumerate() {
            let (l1, l2) = (number(point.penalties.l1), number(point.penalties.l2));
            let (loss, se, right) = (point.log_loss, point.log_loss_se, accuracy(point));
            let mut line = format!("{l1:>10} {l2:>10} {loss:>12.6} ± {se:<10.6} {right:<8.5}");
            if let Some(hits) = &point.chunk {
                let _ = write!(line, "  {:<8.5}", hits.f1());
            }
            line.push_str(if k == found.best { "  chosen" } else { "" });
            line.push_str(if point.converged { "" } else { "  not converged" });
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text.push('\n');
        text
    }
}

fn accuracy(point: &GridPoint) -> f64 {
    point.right as f64 / point.items.max(1) as f64
}

fn as_json(point: &GridPoint) -> Value {
    let mut value = json!({
        "l1": point.penalties.l1,
        "l2": point.penalties.l2,
        "log_loss": point.log_loss,
        "log_loss_se": point.log_loss_se,
        "item_accuracy": accuracy(point),
        "converged": point.converged,
    });
    if let Some(hits) = &point.chunk {
        value["chunk_f1"] = json!(hits.f1());
    }
    value
}

/// Losses against the penalty that varies: `C₂`, with a curve for each `C₁`, unless only `C₁` does.
fn draw(found: &GridFound) -> Result<String, PlotError> {
    let l1 = |p: &GridPoint| p.penalties.l1;
    let l2 = |p: &GridPoint| p.penalties.l2;
    let first = &found.points[0];
    let ridge = found.points.iter().any(|p| l2(p) != l2(first)) || found.points.len() == 1;
    let (across, name): (&dyn Fn(&GridPoint) -> f64, _) = if ridge { (&l2, "C2") } else { (&l1, "C1") };
    // 0 has no place on a logarithmic axis.
    let log = found.points.iter().all(|p| across(p) > 0.0);
    let x = if log { Axis::log(name) } else { Axis::linear(name) };
    let y = Axis::linear(if found.pseudo { "held-out pseudo loss" } else { "held-out log loss" });
    let mut figure = Figure::new("Cross-validation", x, y);
    for curve in found.points.chunk_by(|a, b| !ridge || l1(a) == l1(b)) {
        let several = ridge && curve.len() < found.points.len();
        let label = if several { format!("C1 = {}", number(l1(&curve[0]))) } else { String::new() };
        let points = curve.iter().map(|p| (across(p), p.log_loss)).collect();
        let errors = curve.iter().map(|p| p.log_loss_se).collect();
        figure.lines.push(Line { errors, style: Style::Dotted, ..Line::new(&label, points) });
    }
    figure.marks.push((across(found.chosen()), "chosen".to_owned()));
    figure.svg()
}
