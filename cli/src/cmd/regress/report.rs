//! What a regression prints.

use super::Found;
use crate::cmd::{number, peak_rss_mib};
use crate::config::{Penalty, Regress};
use crate::progress::scaled;
use gibbsite::data::dataset::{Dataset, Names, Stored};
use gibbsite::model::regression::task_name;
use gibbsite::regress::problem::SparseWeights;
use gibbsite::regress::{Fit, Task};
use gibbsite::solver::monitor::{Point, Stop};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};
use std::fmt::Write;

/// The largest coefficients that text shows.
const SHOWN: usize = 20;

/// Why a run ended early, to go after "stopped".
pub(super) fn reason(config: &Regress, fit: &Fit) -> String {
    match fit.info.stop {
        Stop::Tolerance => "early",
        Stop::Iterations => return format!("at --max-epochs {}", config.params.epoch_limit()),
        Stop::Precision => "where rounding allows no progress",
        Stop::Diverged => "as the objective ran away,",
        Stop::Interrupted => "by Ctrl-C",
        Stop::Unbounded => "as weights would grow for ever,",
    }
    .to_owned()
}

pub(super) fn text<V: Stored>(config: &Regress, data: &Dataset<V>, found: &Found) -> String {
    let mut text = format!(
        "{} regression ({}){}\n",
        match config.params.task {
            Task::Lasso => "Lasso",
            Task::Logistic => "Logistic",
        },
        config.solver,
        if found.converged() { "" } else { ": NOT CONVERGED" }
    );
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<22} {value}");
    };
    let matrix = &data.matrix;
    line(
        "samples × features",
        format!("{} × {} ({} entries)", matrix.rows(), matrix.columns(), matrix.nonzeros()),
    );
    let Some(last) = found.fits.last() else { return text };
    if let Some(cv) = &found.cv {
        let at = |k: usize| {
            let point = &cv.points[k];
            let (lambda, mean, se) =
                (number(point.ratio * last.lambda_max), number(point.mean), number(point.se));
            format!("{lambda} (held-out loss {mean} ± {se}, {:.1} non-zeros)", point.nonzeros)
        };
        if let (true, Penalty::Cv { folds, points, .. }) = (cv.interrupted, config.penalty) {
            let least = cv.points.last().map_or(last.lambda_max, |p| p.ratio * last.lambda_max);
            line(
                "tried until Ctrl-C",
                format!(
                    "{} of {points} penalties, down to {}, by {} of {folds} folds",
                    cv.points.len(),
                    number(least),
                    cv.folds
                ),
            );
        }
        line("lambda of least loss", at(cv.best));
        line("lambda of one s.e.", at(cv.one_se));
    }
    if let Penalty::Path { .. } = config.penalty {
        line("lambda_max", number(last.lambda_max));
        seconds(&mut line, found);
        table(&mut text, found);
        return text;
    }
    let (lambda, lambda_max) = (number(last.lambda), number(last.lambda_max));
    let share = number(last.lambda / last.lambda_max);
    // Of 0 nothing is a share.
    let of = if last.lambda_max > 0.0 {
        format!("{share} of lambda_max {lambda_max}")
    } else {
        "lambda_max is 0".into()
    };
    line("lambda", format!("{lambda} ({of})"));
    let certificate = &last.certificate;
    line("objective", number(certificate.objective));
    let relative = certificate.gap / certificate.objective.abs().max(f64::MIN_POSITIVE);
    line("duality gap", format!("{:.2e} ({relative:.1e} of the objective)", certificate.gap));
    line("non-zeros", format!("{} of {}", last.weights.nonzeros(), matrix.columns()));
    let (epochs, updates) = (last.info.epochs, last.info.updates);
    line("epochs", format!("{epochs:.2} ({updates} updates)"));
    let rate = |count: u64| scaled(count as f64 / last.seconds.max(1e-9));
    line("rate", format!("{}updates/s, {}entries/s", rate(updates), rate(last.info.entries)));
    if let Some(rho) = last.rho {
        line("rho, parallel updates", format!("{}, {}", number(rho), last.info.parallel));
    }
    seconds(&mut line, found);
    if config.params.intercept {
        line("intercept", number(last.weights.intercept));
    }
    largest(&mut text, &data.names, last);
    text
}

fn seconds(line: &mut impl FnMut(&str, String), found: &Found) {
    line("seconds", format!("{:.3} (and {:.3} to read)", found.seconds, found.read_seconds));
}

/// A line for each λ.
fn table(text: &mut String, found: &Found) {
    let head = ["lambda", "objective", "gap", "non-zeros", "epochs"];
    let [a, b, c, d, e] = head;
    let _ = writeln!(text, "\n  {a:>14} {b:>14} {c:>9} {d:>9} {e:>9}");
    for fit in &found.fits {
        let (lambda, objective) = (number(fit.lambda), number(fit.certificate.objective));
        let (gap, nonzeros, epochs) = (fit.certificate.gap, fit.weights.nonzeros(), fit.info.epochs);
        let mark = if fit.converged { "" } else { "  not converged" };
        let _ =
            writeln!(text, "  {lambda:>14} {objective:>14} {gap:>9.1e} {nonzeros:>9} {epochs:>9.2}{mark}");
    }
}

/// The largest coefficients, of equals the first.
fn largest(text: &mut String, names: &Names, fit: &Fit) {
    let mut order: Vec<(usize, f64)> = fit.weights.iter().collect();
    order.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    if order.is_empty() {
        return;
    }
    let more = if order.len() > SHOWN { format!(" (the largest {SHOWN})") } else { String::new() };
    let _ = writeln!(text, "\n  {:<22} coefficient{more}", "feature");
    for &(j, x) in order.iter().take(SHOWN) {
        let _ = writeln!(text, "  {:<22} {}", names.name(j), number(x));
    }
}

/// Coefficients that are not zero, in the features' order.
struct Coefficients<'a>(&'a Names, &'a SparseWeights);

impl Serialize for Coefficients<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let nonzero = self.1.iter();
        match self.0 {
            // Numbers are written straight, without a string for each.
            Names::Counted { first, .. } => {
                to.collect_map(nonzero.map(|(j, x)| (u64::from(*first) + j as u64, x)))
            }
            Names::Numbers(all) => to.collect_map(nonzero.filter_map(|(j, x)| Some((all.get(j)?, x)))),
            Names::Columns(all) => to.collect_map(nonzero.filter_map(|(j, x)| Some((all.get(j)?, x)))),
        }
    }
}

/// One fit: a whole report, or a point of a path.
struct One<'a> {
    config: &'a Regress,
    names: &'a Names,
    fit: &'a Fit,
}

impl One<'_> {
    fn fields<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let Fit { weights, lambda, lambda_max, certificate, converged, info, seconds, trace, .. } = self.fit;
        let rate = |count: u64| count as f64 / seconds.max(1e-9);
        map.serialize_entry("objective", &certificate.objective)?;
        map.serialize_entry("gap", &certificate.gap)?;
        map.serialize_entry("violation", &certificate.violation)?;
        map.serialize_entry("converged", converged)?;
        map.serialize_entry("lambda", lambda)?;
        map.serialize_entry("lambda_max", lambda_max)?;
        map.serialize_entry("nonzeros", &weights.nonzeros())?;
        map.serialize_entry("iterations", &info.iterations)?;
        map.serialize_entry("epochs", &info.epochs)?;
        map.serialize_entry("updates", &info.updates)?;
        map.serialize_entry("parallel", &info.parallel)?;
        map.serialize_entry("backoffs", &info.backoffs)?;
        map.serialize_entry("updates_per_second", &rate(info.updates))?;
        map.serialize_entry("nonzeros_per_second", &rate(info.entries))?;
        if self.config.params.intercept {
            map.serialize_entry("intercept", &weights.intercept)?;
        }
        map.serialize_entry("coefficients", &Coefficients(self.names, weights))?;
        if self.config.trace {
            let points: Vec<_> = trace.iter().map(traced).collect();
            map.serialize_entry("trace", &points)?;
        }
        Ok(())
    }
}

impl Serialize for One<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        self.fields(&mut map)?;
        map.serialize_entry("seconds", &self.fit.seconds)?;
        map.end()
    }
}

fn traced(point: &Point) -> Value {
    let Point { seconds, iterations, updates, lambda, objective, gap, nonzeros } = *point;
    json!({
        "iteration": iterations,
        "updates": updates,
        "lambda": lambda,
        "objective": objective,
        "gap": gap,
        "nonzeros": nonzeros,
        "seconds": seconds,
    })
}

/// Everything: a fit's fields beside the common ones, or a path's fits under `path`.
struct Report<'a, V> {
    config: &'a Regress,
    data: &'a Dataset<V>,
    found: &'a Found,
}

impl<V: Stored> Serialize for Report<'_, V> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self { config, data, found } = self;
        let one = |fit| One { config, names: &data.names, fit };
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("task", task_name(config.params.task))?;
        map.serialize_entry("solver", config.solver)?;
        map.serialize_entry("samples", &data.matrix.rows())?;
        map.serialize_entry("features", &data.matrix.columns())?;
        map.serialize_entry("entries", &data.matrix.nonzeros())?;
        if let Some(last) = found.fits.last() {
            if let Penalty::Path { .. } = config.penalty {
                map.serialize_entry("lambda_max", &last.lambda_max)?;
                map.serialize_entry("converged", &found.converged())?;
                map.serialize_entry("path", &found.fits.iter().map(one).collect::<Vec<_>>())?;
            } else {
                one(last).fields(&mut map)?;
            }
            if let Some(cv) = &found.cv {
                let lambda = |k: usize| cv.points[k].ratio * last.lambda_max;
                let tried = |k: usize| {
                    let point = &cv.points[k];
                    json!({ "lambda": lambda(k), "mean": point.mean, "se": point.se, "nonzeros": point.nonzeros })
                };
                if let Penalty::Cv { folds, points, .. } = config.penalty {
                    // What was asked for, beside what `cv` lists.
                    map.serialize_entry("folds", &folds)?;
                    map.serialize_entry("penalties", &points)?;
                }
                map.serialize_entry("folds_scored", &cv.folds)?;
                map.serialize_entry("cv", &(0..cv.points.len()).map(tried).collect::<Vec<_>>())?;
                map.serialize_entry("lambda_min", &lambda(cv.best))?;
                map.serialize_entry("lambda_1se", &lambda(cv.one_se))?;
            }
        }
        map.serialize_entry("rho", &found.spectrum.map(|s| s.rho))?;
        map.serialize_entry("p_star", &found.spectrum.map(|s| s.p_star()))?;
        map.serialize_entry("interrupted", &found.interrupted)?;
        map.serialize_entry("seconds", &found.seconds)?;
        map.serialize_entry("read_seconds", &found.read_seconds)?;
        map.serialize_entry("peak_rss_mib", &peak_rss_mib())?;
        map.serialize_entry("notes", &found.notes)?;
        map.end()
    }
}

pub(super) fn json<V: Stored>(
    config: &Regress,
    data: &Dataset<V>,
    found: &Found,
) -> serde_json::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(&Report { config, data, found })?;
    bytes.push(b'\n');
    Ok(bytes)
}
