//! `gibbsite analyze`: what theory and simulation say about a problem.

use crate::cmd::{nothing_to_explain, write_plot};
use crate::config::Parallelism;
use crate::progress::{Goal, Progress};
use crate::{Outcome, args, output};
use anyhow::anyhow;
use gibbsite::data::dataset::Dataset;
use gibbsite::plot::{Axis, Figure, Line, Style};
use gibbsite::regress::problem::Problem;
use gibbsite::regress::{Fit, RegressParams, Task, fit};
use gibbsite::theory::parallelism::{
    Bound, SimulateError, SimulateParams, Simulated, SpectralInfo, SpectralParams, simulate, spectral_radius,
};
use gibbsite_core::loss::{Logistic, Squared};
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::Instant;

/// The optimum is fitted this closely, relative to the objective at 0: far closer than the 0.5 % that is counted to.
const TOLERANCE: f64 = 1e-7;

pub(crate) fn parallelism(config: &Parallelism) -> anyhow::Result<Outcome> {
    let common = &config.common;
    let data: Dataset = config.data.read(common.par)?;
    for note in &data.notes {
        common.warn(note);
    }
    let start = Instant::now();
    let spectrum = common.par.run(|par| {
        let params = SpectralParams { par, seed: common.seed, ..SpectralParams::default() };
        spectral_radius(&data.matrix, &params)
    });
    if !spectrum.converged {
        common.warn("the iteration for rho did not converge: rho is a lower bound, P* an upper one");
    }
    let bound = Bound { columns: spectrum.columns, rho: spectrum.rho, distance: 0.0, start: 1.0 };
    let simulation =
        config.simulate.as_ref().map(|which| simulated(config, &data, &spectrum, which)).transpose()?;
    let seconds = start.elapsed().as_secs_f64();
    let grid = grid(&spectrum, simulation.as_ref());
    if let Some(path) = &config.plot {
        write_plot(common, path, draw(&spectrum, &bound, &grid, simulation.as_ref()).svg())?;
    }
    let text = if common.json {
        let value = as_json(&data, &spectrum, &bound, &grid, simulation.as_ref(), seconds);
        format!("{value}\n")
    } else {
        as_text(&data, &spectrum, &bound, &grid, simulation.as_ref())
    };
    output::write(common.output.as_deref(), text.as_bytes())?;
    Ok(if spectrum.converged { Outcome::Done } else { Outcome::Unconverged })
}

struct Simulation {
    optimum: Fit,
    runs: Vec<Simulated>,
}

impl Simulation {
    fn at(&self, parallel: usize) -> Option<&Simulated> {
        self.runs.iter().find(|r| r.parallel == parallel)
    }

    /// Rounds at P = 1 by rounds at P.
    fn speed_up(&self, parallel: usize) -> Option<f64> {
        self.at(parallel)?.speed_up(self.at(1)?)
    }

    fn speed_up_se(&self, parallel: usize) -> Option<f64> {
        self.at(parallel)?.speed_up_se(self.at(1)?)
    }
}

fn simulated(
    config: &Parallelism,
    data: &Dataset,
    spectrum: &SpectralInfo,
    which: &args::Simulate,
) -> anyhow::Result<Simulation> {
    let common = &config.common;
    let blame = |error: &dyn std::fmt::Display| anyhow!("{}: {error}", config.data.name());
    if let Some(why) = nothing_to_explain(&data.target, false) {
        return Err(anyhow!(
            "{}: {why}, so that no rounds can be counted; leave out --simulate",
            config.data.name()
        ));
    }
    let progress = Progress::start(common, Goal::Gap(TOLERANCE), "optimum");
    let watch = |point: &_| progress.show(point);
    let wanted = RegressParams {
        tolerance: TOLERANCE,
        par: common.par,
        ..RegressParams::new(config.task, config.lambda)
    };
    let optimum = fit(&data.matrix, &data.target, &wanted, Some(&watch)).map_err(|e| blame(&e))?;
    drop(progress);
    if !optimum.converged {
        return Err(anyhow!(
            "{}: the optimum was not found, so nothing can be compared with it",
            config.data.name()
        ));
    }
    let columns = data.matrix.columns();
    let parallel = match which {
        args::Simulate::At(list) => list.clone(),
        args::Simulate::Auto => powers(spectrum.p_star().saturating_mul(8), columns),
    };
    let lambda = optimum.lambda;
    let runs = common.par.run(|par| -> Result<_, SimulateError> {
        let params = SimulateParams {
            runs: config.runs as usize,
            par,
            seed: common.seed,
            ..SimulateParams::new(parallel)
        };
        let goal = optimum.certificate.objective;
        match config.task {
            Task::Lasso => {
                simulate(&Problem::new(&data.matrix, &data.target, Squared, lambda), goal, &params)
            }
            Task::Logistic => {
                let top = data.target.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let signs: Vec<f64> =
                    data.target.iter().map(|&y| if y == top { 1.0 } else { -1.0 }).collect();
                simulate(&Problem::new(&data.matrix, &signs, Logistic, lambda), goal, &params)
            }
        }
    });
    Ok(Simulation { runs: runs.map_err(|e| blame(&e))?, optimum })
}

/// 1, 2, 4, … up to a limit and to the number of columns.
fn powers(limit: usize, columns: usize) -> Vec<usize> {
    let most = limit.min(columns.max(1));
    std::iter::successors(Some(1usize), |p| p.checked_mul(2)).take_while(|&p| p <= most).collect()
}

/// The P of the curve: powers of 2 until twice P*, P* itself, and what was simulated.
fn grid(spectrum: &SpectralInfo, simulation: Option<&Simulation>) -> Vec<usize> {
    let mut grid = powers(spectrum.p_star().saturating_mul(2), spectrum.columns);
    grid.push(spectrum.p_star());
    grid.extend(simulation.into_iter().flat_map(|s| s.runs.iter().map(|r| r.parallel)));
    grid.sort_unstable();
    grid.dedup();
    grid
}

/// How many times fewer rounds the theorem promises; `None` where it promises nothing.
fn predicted(bound: &Bound, parallel: usize) -> Option<f64> {
    bound.rounds_ratio(parallel).map(|share| 1.0 / share)
}

fn half(spectrum: &SpectralInfo) -> Option<f64> {
    (spectrum.rho > 0.0).then(|| spectrum.columns as f64 / (2.0 * spectrum.rho))
}

fn as_text(
    data: &Dataset,
    spectrum: &SpectralInfo,
    bound: &Bound,
    grid: &[usize],
    simulation: Option<&Simulation>,
) -> String {
    let mut text = String::from("Parallelism of Shotgun\n");
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<22} {value}");
    };
    let zero = data.matrix.columns() - spectrum.columns;
    let zeros = if zero > 0 { format!(", {zero} of them zero") } else { String::new() };
    line("samples × features", format!("{} × {}{zeros}", data.matrix.rows(), data.matrix.columns()));
    line("rho", format!("{:.4}", spectrum.rho));
    line("P* = d/rho", spectrum.p_star().to_string());
    if let Some(half) = half(spectrum) {
        line("d/(2 rho)", format!("{half:.1}"));
    }
    if let Some(Simulation { optimum, .. }) = simulation {
        let share = optimum.lambda / optimum.lambda_max;
        line("simulated at lambda", format!("{} ({share:.4} of lambda_max)", optimum.lambda));
    }
    let _ = writeln!(
        text,
        "\n  {:>9} {:>18} {:>16} {:>18}",
        "P", "predicted speed-up", "rounds", "simulated speed-up"
    );
    let shown = |x: Option<f64>| x.map_or("-".to_owned(), |x| format!("{x:.2}"));
    // What it may be off by, where that is known.
    let give = |value: String, se: Option<f64>, digits: usize| match se {
        Some(se) => format!("{value} ± {se:.digits$}"),
        None => value,
    };
    for &p in grid {
        let run = simulation.and_then(|s| s.at(p));
        let rounds = match run {
            Some(run @ Simulated { rounds: Some(rounds), .. }) => {
                give(rounds.to_string(), run.rounds_se(), 0)
            }
            Some(Simulated { diverged: true, .. }) => "diverges".into(),
            Some(_) => "not reached".into(),
            None => "-".into(),
        };
        let promised = shown(predicted(bound, p));
        let gained = shown(simulation.and_then(|s| s.speed_up(p)));
        // At P = 1 it is 1 by definition.
        let se = simulation.and_then(|s| s.speed_up_se(p)).filter(|_| p > 1);
        let gained = give(gained, se, 2);
        let mark = if p == spectrum.p_star() { "  P*" } else { "" };
        let _ = writeln!(text, "  {p:>9} {promised:>18} {rounds:>16} {gained:>18}{mark}");
    }
    if simulation.is_some_and(|s| s.runs.iter().any(|r| r.rounds_se().is_some())) {
        text.push_str(
            "\n  ± is a standard error over the runs, of which each draws the same coordinates at every P\n",
        );
    }
    text
}

fn as_json(
    data: &Dataset,
    spectrum: &SpectralInfo,
    bound: &Bound,
    grid: &[usize],
    simulation: Option<&Simulation>,
    seconds: f64,
) -> Value {
    let curve = grid.iter().map(|&p| json!({ "parallel": p, "predicted_speedup": predicted(bound, p) }));
    let mut value = json!({
        "samples": data.matrix.rows(),
        "features": data.matrix.columns(),
        "nonzero_columns": spectrum.columns,
        "rho": spectrum.rho,
        "p_star": spectrum.p_star(),
        "d_over_2rho": half(spectrum),
        "converged": spectrum.converged,
        "curve": curve.collect::<Vec<_>>(),
    });
    if let Some(simulation) = simulation {
        let runs = simulation.runs.iter().map(|run| {
            json!({
                "parallel": run.parallel,
                "rounds": run.rounds,
                "rounds_se": run.rounds_se(),
                "speedup": simulation.speed_up(run.parallel),
                "speedup_se": simulation.speed_up_se(run.parallel),
                "diverged": run.diverged,
                "objective": run.objective,
            })
        });
        value["lambda"] = json!(simulation.optimum.lambda);
        value["lambda_max"] = json!(simulation.optimum.lambda_max);
        value["optimum"] = json!(simulation.optimum.certificate.objective);
        value["simulated"] = runs.collect();
    }
    value["seconds"] = json!(seconds);
    value
}

/// Fig. 4.2: rounds against P, both logarithmic, with the theory dashed and P* marked; the speed-up if nothing got there.
fn draw(spectrum: &SpectralInfo, bound: &Bound, grid: &[usize], simulation: Option<&Simulation>) -> Figure {
    let promised = |p: usize| predicted(bound, p);
    let mut figure;
    match simulation.and_then(|s| Some((s, s.runs.iter().find_map(|r| Some((r.parallel, r.rounds?)))?))) {
        Some((simulation, (first, rounds))) => {
            figure = Figure::new("Rounds to 0.5 % of the optimum", Axis::log("P"), Axis::log("rounds"));
            let reached = || simulation.runs.iter().filter(|r| r.rounds.is_some());
            let points = reached().filter_map(|r| Some((r.parallel as f64, r.rounds? as f64)));
            let errors = reached().map(|r| r.rounds_se().unwrap_or(0.0)).collect();
            let line = Line::new("simulated", points.collect()).styled(Style::Dotted);
            figure.lines.push(Line { errors, ..line });
            // The curve goes through the first point that was simulated.
            let scale = rounds as f64 * promised(first).unwrap_or(1.0);
            let curve = grid.iter().filter_map(|&p| Some((p as f64, scale / promised(p)?)));
            figure.lines.push(Line::new("theory", curve.collect()).styled(Style::Dashed));
        }
        None => {
            figure = Figure::new("Speed-up of Shotgun", Axis::log("P"), Axis::log("speed-up"));
            let curve = grid.iter().filter_map(|&p| Some((p as f64, promised(p)?)));
            figure.lines.push(Line::new("theory", curve.collect()).styled(Style::Dashed));
        }
    }
    if let Some(simulation) = simulation {
        add_lost(&mut figure, simulation);
    }
    figure.marks.push((spectrum.p_star() as f64, format!("P* = {}", spectrum.p_star())));
    figure
}

/// The P that did not get there: crosses at the edge of the chart, where rounds without end would be.
fn add_lost(figure: &mut Figure, simulation: &Simulation) {
    let heights = figure.lines.iter().flat_map(|line| &line.points).map(|p| p.1);
    let any = simulation.runs.iter().any(|r| r.rounds.is_some());
    let edge = if any { heights.reduce(f64::max) } else { heights.reduce(f64::min) };
    for (diverged, label) in [(true, "diverges"), (false, "not reached")] {
        let lost = simulation.runs.iter().filter(|r| r.rounds.is_none() && r.diverged == diverged);
        let points: Vec<_> = lost.map(|r| (r.parallel as f64, edge.unwrap_or(1.0))).collect();
        if !points.is_empty() {
            figure.lines.push(Line::new(label, points).styled(Style::Crosses));
        }
    }
}
