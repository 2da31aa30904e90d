//! `gibbsite gaussian predict`.

use super::{DRAWS, LEVEL, joint_width, read, read_whole};
use crate::config::GaussianPredict as Config;
use crate::{Outcome, output};
use anyhow::anyhow;
use gibbsite::data::source::Source;
use gibbsite::gaussian::normal::half_width;
use gibbsite::gaussian::predict::{Forecaster, Given};
use gibbsite::gaussian::score::{GaussianScore, Widths, score};
use gibbsite::linalg::Dense;
use gibbsite::model::GaussianModel;
use gibbsite::plot::{Axis, Figure, Line, Style};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt::Write;
use std::time::Instant;

/// Rows that a plot shows.
const DRAWN: usize = 4;

/// Predictions of all rows.
struct Forecast {
    names: Vec<String>,
    /// After conditioning, if something was known.
    means: Dense,
    /// Which pattern each row has.
    pattern: Vec<usize>,
    /// What is left to predict, for each pattern of known outputs, and half the width of its intervals.
    given: Vec<(Given, f64)>,
}

impl Forecast {
    fn deviation(&self, row: usize, output: usize) -> f64 {
        self.given[self.pattern[row]].0.deviations()[output]
    }

    fn half_width(&self, row: usize, output: usize) -> f64 {
        self.given[self.pattern[row]].1 * self.deviation(row, output)
    }
}

pub(crate) fn run(config: &Config) -> anyhow::Result<Outcome> {
    let common = &config.common;
    let start = Instant::now();
    let source = Source::open(&config.model)?;
    let model = GaussianModel::open(&source.bytes).map_err(|e| anyhow!("{}: {e}", source.name))?;
    let named = |path: &std::path::Path, what: String| anyhow!("{}: {what}", crate::cmd::name(path));
    let x = read_whole(&config.x)?
        .arranged(model.inputs.as_deref(), model.theta.rows())
        .map_err(|what| named(&config.x, what))?;
    let y = config
        .y
        .as_deref()
        .map(|path| {
            let table = read(path)?.arranged(model.outputs.as_deref(), model.lambda.cols());
            let table = table.map_err(|what| named(path, what))?;
            let (a, b) = (table.values.rows(), x.values.rows());
            if a != b {
                return Err(named(
                    path,
                    format!("found {a} rows of outputs, expected {b} as there are inputs"),
                ));
            }
            Ok(table.values)
        })
        .transpose()?;
    let forecaster =
        model.forecaster().ok_or_else(|| anyhow!("{}: its Λ is not positive definite", source.name))?;
    let prior = forecaster.means(common.par, &x.values);
    let forecast = forecast(config, &model, &forecaster, &prior, y.as_ref());
    let scored = y.as_ref().and_then(|y| {
        let level = config.interval.unwrap_or(LEVEL);
        let (own, joint) = (half_width(level), joint_width(&forecaster, level, common.seed));
        score(&forecaster, &prior, y, Widths { own, joint })
    });
    if let Some(path) = &config.plot {
        output::write(Some(path), draw(&forecast, y.as_ref())?.as_bytes())?;
    }
    let text = if common.json {
        let mut value = as_json(config, &forecast, scored.as_ref());
        value["seconds"] = json!(start.elapsed().as_secs_f64());
        format!("{value}\n")
    } else {
        if let Some(s) = &scored {
            let GaussianScore { mse, log_loss, crps, coverage, joint_coverage, cells, .. } = s;
            let line = format!(
                "{cells} known outputs: mse {mse:.6}, log loss {log_loss:.6}, CRPS {crps:.6}, coverage {coverage:.4} (jointly {joint_coverage:.4})"
            );
            if !common.quiet {
                output::say(&line);
            }
        }
        as_text(config, &forecast)
    };
    output::write(common.output.as_deref(), text.as_bytes())?;
    Ok(Outcome::Done)
}

fn forecast(
    config: &Config,
    model: &GaussianModel,
    forecaster: &Forecaster,
    prior: &Dense,
    y: Option<&Dense>,
) -> Forecast {
    let p = forecaster.outputs();
    let level = config.interval.unwrap_or(LEVEL);
    let mut found = Forecast {
        names: model.outputs.clone().unwrap_or_else(|| (1..=p).map(|j| format!("y{j}")).collect()),
        means: prior.clone(),
        pattern: Vec::new(),
        given: Vec::new(),
    };
    let mut places: HashMap<Vec<bool>, usize> = HashMap::new();
    for row in 0..prior.rows() {
        // A row that is known as a whole is there to be scored, not to be repeated.
        let known: Vec<bool> = (0..p).map(|j| y.is_some_and(|y| !y.get(row, j).is_nan())).collect();
        let known = if known.iter().all(|k| *k) { vec![false; p] } else { known };
        let partly = known.iter().any(|k| *k);
        let place = *places.entry(known).or_insert_with_key(|known| {
            let given = forecaster.given(known);
            let width = if config.joint {
                forecaster.joint_half_width(&given, level, DRAWS, config.common.seed)
            } else {
                half_width(level)
            };
            found.given.push((given, width));
            found.given.len() - 1
        });
        found.pattern.push(place);
        if let (true, Some(y)) = (partly, y) {
            let own: Vec<f64> = (0..p).map(|j| y.get(row, j)).collect();
            let mut mean: Vec<f64> = (0..p).map(|j| prior.get(row, j)).collect();
            found.given[place].0.revise(forecaster, &own, &mut mean);
            mean.iter().enumerate().for_each(|(j, v)| found.means.set(row, j, *v));
        }
    }
    found
}

/// Draws for one row, a column each: its own stream of the seed.
fn samples(config: &Config, forecast: &Forecast, row: usize, count: usize) -> Dense {
    let seed = config.common.seed.wrapping_add((row as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let p = forecast.names.len();
    let mut draws = forecast.given[forecast.pattern[row]].0.draws(p, count, seed);
    for k in 0..count {
        draws.col_mut(k).iter_mut().enumerate().for_each(|(j, v)| *v += forecast.means.get(row, j));
    }
    draws
}

/// A name for a CSV header.
fn cell(name: &str) -> String {
    if name.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", name.replace('"', "\"\""))
    } else {
        name.to_owned()
    }
}

fn as_text(config: &Config, forecast: &Forecast) -> String {
    let p = forecast.names.len();
    let mut text = String::new();
    if let Some(count) = config.samples {
        text.push_str("row,sample");
        forecast.names.iter().for_each(|name| text.push_str(&format!(",{}", cell(name))));
        text.push('\n');
        for row in 0..forecast.means.rows() {
            let draws = samples(config, forecast, row, count);
            for k in 0..count {
                let _ = write!(text, "{},{}", row + 1, k + 1);
                for v in draws.col(k) {
                    let _ = write!(text, ",{v}");
                }
                text.push('\n');
            }
        }
        return text;
    }
    let head: Vec<String> = forecast
        .names
        .iter()
        .flat_map(|name| match config.interval {
            Some(_) => vec![cell(name), cell(&format!("{name}:low")), cell(&format!("{name}:high"))],
            None => vec![cell(name)],
        })
        .collect();
    text.push_str(&head.join(","));
    text.push('\n');
    for row in 0..forecast.means.rows() {
        for j in 0..p {
            let (mean, half) = (forecast.means.get(row, j), forecast.half_width(row, j));
            let comma = if j > 0 { "," } else { "" };
            let _ = match config.interval {
                Some(_) => write!(text, "{comma}{mean},{},{}", mean - half, mean + half),
                None => write!(text, "{comma}{mean}"),
            };
        }
        text.push('\n');
    }
    text
}

fn as_json(config: &Config, forecast: &Forecast, scored: Option<&GaussianScore>) -> Value {
    let (rows, p) = (forecast.means.rows(), forecast.names.len());
    let table = |f: &dyn Fn(usize, usize) -> f64| -> Value {
        (0..rows).map(|i| (0..p).map(|j| json!(f(i, j))).collect::<Value>()).collect()
    };
    let mut value = json!({ "rows": rows, "outputs": forecast.names });
    value["mean"] = table(&|i, j| forecast.means.get(i, j));
    value["deviation"] = table(&|i, j| forecast.deviation(i, j));
    if let Some(level) = config.interval {
        value["interval"] = json!(level);
        value["joint"] = json!(config.joint);
        value["low"] = table(&|i, j| forecast.means.get(i, j) - forecast.half_width(i, j));
        value["high"] = table(&|i, j| forecast.means.get(i, j) + forecast.half_width(i, j));
    }
    if let Some(count) = config.samples {
        let one = |row: usize| -> Value {
            let draws = samples(config, forecast, row, count);
            (0..count).map(|k| json!(draws.col(k))).collect()
        };
        value["samples"] = (0..rows).map(one).collect();
    }
    if let Some(s) = scored {
        value["cells"] = json!(s.cells);
        value["mse"] = json!(s.mse);
        value["log_loss"] = json!(s.log_loss);
        value["crps"] = json!(s.crps);
        value["coverage"] = json!(s.coverage);
        value["joint_coverage"] = json!(s.joint_coverage);
        value["level"] = json!(config.interval.unwrap_or(LEVEL));
    }
    value
}

/// Means with their intervals, output after output, for the first rows.
fn draw(forecast: &Forecast, y: Option<&Dense>) -> Result<String, gibbsite::plot::PlotError> {
    let p = forecast.names.len();
    let mut figure = Figure::new("Forecast", Axis::linear("output"), Axis::linear("value"));
    for row in 0..forecast.means.rows().min(DRAWN) {
        let at = |f: &dyn Fn(usize) -> f64| (0..p).map(|j| ((j + 1) as f64, f(j))).collect::<Vec<_>>();
        let line = Line::new(&format!("row {}", row + 1), at(&|j| forecast.means.get(row, j)));
        let errors = (0..p).map(|j| forecast.half_width(row, j)).collect();
        figure = figure.with(Line { errors, style: Style::Dotted, ..line });
        if let Some(y) = y {
            let known = at(&|j| y.get(row, j)).into_iter().filter(|v| !v.1.is_nan()).collect();
            figure = figure.with(Line::new(&format!("row {}, known", row + 1), known).styled(Style::Dashed));
        }
    }
    figure.svg()
}
