//! `gibbsite gaussian fit`.

use super::{draw, read_whole, report};
use crate::config::{Choice, GaussianFit as Config};
use crate::progress::{Steps, catch_ctrl_c, interrupted};
use crate::{Outcome, output};
use anyhow::anyhow;
use gibbsite::data::numbers::Numbers;
use gibbsite::gaussian::cv::{GaussianCv, cross_validate};
use gibbsite::gaussian::{GaussianError, GaussianFit, GaussianParams, fit, path};
use gibbsite::model::{GaussianFacts, GaussianModel};
use gibbsite::solver::newton_cd::GaussianPoint;
use std::time::Instant;

/// What came of it.
pub(super) struct Found {
    /// One fit, or those of a path.
    pub(super) fits: Vec<GaussianFit>,
    pub(super) cv: Option<GaussianCv>,
    pub(super) samples: usize,
    pub(super) seconds: f64,
    pub(super) read_seconds: f64,
    pub(super) interrupted: bool,
    pub(super) notes: Vec<String>,
}

impl Found {
    pub(super) fn converged(&self) -> bool {
        !self.interrupted
            && self.fits.iter().all(|f| f.converged)
            && self.cv.as_ref().is_none_or(|cv| cv.converged)
    }
}

pub(crate) fn run(config: &Config) -> anyhow::Result<Outcome> {
    let common = &config.common;
    let start = Instant::now();
    let (x, y) = (read_whole(&config.x)?, read_whole(&config.y)?);
    let weights = config.weights.as_deref().map(read_whole).transpose()?;
    if let (Some(weights), Some(path)) = (&weights, &config.weights)
        && weights.values.cols() != 1
    {
        let (name, found) = (crate::cmd::name(path), weights.values.cols());
        return Err(anyhow!("{name}: found {found} columns, expected one: the weight of each sample"));
    }
    let weights = weights.map(|w| w.values.values().to_vec());
    let read_seconds = start.elapsed().as_secs_f64();
    let (m, n, p) = (y.values.rows(), x.values.cols(), y.values.cols());
    common.log(|| format!("read {m} rows, {n} inputs, {p} outputs in {read_seconds:.3} s"));
    catch_ctrl_c();
    let start = Instant::now();
    let (fits, cv) = solve(config, &x, &y, weights.as_deref())?;
    let mut found = Found {
        fits,
        cv,
        samples: m,
        seconds: start.elapsed().as_secs_f64(),
        read_seconds,
        interrupted: interrupted(),
        notes: Vec::new(),
    };
    remark(config, &x, &y, &mut found);
    found.notes.iter().for_each(|note| common.warn(note));
    let Some(last) = found.fits.last() else { return Err(anyhow!("interrupted before there was a model")) };
    if let Some(columns) = last.blocks {
        common.log(|| {
            format!("--memory has no room for dense matrices: fitted by blocks of {columns} columns")
        });
    }
    let model = model(config, &x, &y, last);
    if let Some(path) = &config.model {
        output::write(Some(path), &model.to_bytes())?;
    }
    if let Some(path) = &config.plot {
        output::write(Some(path), draw::pattern(&model)?.as_bytes())?;
    }
    if let Some(path) = &config.plot_course {
        output::write(Some(path), draw::course(config, &found)?.as_bytes())?;
    }
    let text = if common.json { report::json(config, &found) } else { report::text(config, &found) };
    output::write(common.output.as_deref(), text.as_bytes())?;
    Ok(if found.converged() { Outcome::Done } else { Outcome::Unconverged })
}

fn solve(
    config: &Config,
    x: &Numbers,
    y: &Numbers,
    weights: Option<&[f64]>,
) -> anyhow::Result<(Vec<GaussianFit>, Option<GaussianCv>)> {
    let steps = Steps::start(&config.common, "fitting");
    let watch = |point: &GaussianPoint| {
        if steps.shown() {
            steps.show(&format!(
                "λ {:.4}, iteration {}, violation {:.1e}, non-zeros {} + {}",
                point.lambda, point.iterations, point.violation, point.nonzeros_lambda, point.nonzeros_theta
            ));
        }
        !interrupted()
    };
    let blame = |error: GaussianError| blame(config, x, y, &error);
    let (xv, yv, params) = (&x.values, &y.values, &config.params);
    Ok(match config.choice {
        Choice::One => (vec![fit(xv, yv, weights, params, Some(&watch)).map_err(blame)?], None),
        Choice::Ratio(share) => {
            // A path of one point finds λ_max.
            let rough = GaussianParams { max_iterations: 1, ..params.clone() };
            let top = path(xv, yv, weights, &rough, 1, 1.0, None).map_err(blame)?;
            let lambda = share * top.last().map_or(0.0, |fit| fit.lambda_max);
            let params = GaussianParams { lambda, ..params.clone() };
            (vec![fit(xv, yv, weights, &params, Some(&watch)).map_err(blame)?], None)
        }
        Choice::Path { points, ratio } => {
            (path(xv, yv, weights, params, points, ratio, Some(&watch)).map_err(blame)?, None)
        }
        Choice::Cv(how) => {
            let (cv, fit) = cross_validate(xv, yv, weights, params, &how, Some(&watch)).map_err(blame)?;
            (vec![fit], Some(cv))
        }
    })
}

/// The library's error with the file that it is about and the name of the column.
fn blame(config: &Config, x: &Numbers, y: &Numbers, error: &GaussianError) -> anyhow::Error {
    let (xn, yn) = (crate::cmd::name(&config.x), crate::cmd::name(&config.y));
    match error {
        GaussianError::Lengths { .. } => {
            let (a, b) = (x.values.rows(), y.values.rows());
            anyhow!("{xn} has {a} rows and {yn} has {b}: expected as many inputs as outputs")
        }
        GaussianError::ConstantOutput(column) => {
            let what = if config.params.intercept { "does not vary" } else { "is 0 everywhere" };
            let column = y.column(*column);
            anyhow!("{yn}: column {column} {what}: its precision would be infinite; leave it out")
        }
        GaussianError::Weights { .. } => {
            let name = config.weights.as_deref().map(crate::cmd::name).unwrap_or_default();
            anyhow!("{name}: {error}")
        }
        GaussianError::Memory { .. } => anyhow!("{error}"),
        _ => anyhow!("{yn}: {error}"),
    }
}

/// What the user should know about the result.
fn remark(config: &Config, x: &Numbers, y: &Numbers, found: &mut Found) {
    let constant: Vec<String> = (0..x.values.cols())
        .filter(|&i| {
            let column = x.values.col(i);
            let first = if config.params.intercept { column[0] } else { 0.0 };
            column.iter().all(|v| *v == first)
        })
        .map(|i| x.column(i))
        .collect();
    if !constant.is_empty() {
        let some = constant.iter().take(8).cloned().collect::<Vec<_>>().join(", ");
        let more = if constant.len() > 8 { ", …" } else { "" };
        found.notes.push(format!("inputs that do not vary are not used: column {some}{more}"));
    }
    let p = y.values.cols();
    let twin = (0..p).find_map(|j| (0..j).find(|&i| y.values.col(i) == y.values.col(j)).map(|i| (i, j)));
    if let Some((i, j)) = twin {
        found.notes.push(format!("outputs {} and {} are the same column twice", y.column(i), y.column(j)));
    }
    if let (Choice::One, Some(fit)) = (config.choice, found.fits.last())
        && fit.lambda_max > 0.0
        && fit.penalties.0 >= fit.lambda_max
    {
        found.notes.push(format!(
            "lambda is {}, not below lambda_max = {}: only the diagonal of Λ is left",
            fit.penalties.0, fit.lambda_max
        ));
    }
    if found.interrupted {
        found.notes.push("interrupted: this is the best so far, not the optimum".to_owned());
    } else if let Some(fit) = found.fits.iter().find(|f| !f.converged) {
        let unmet = found.fits.iter().filter(|f| !f.converged).count();
        let which = if found.fits.len() > 1 {
            format!("at {unmet} of {} penalties ", found.fits.len())
        } else {
            String::new()
        };
        found.notes.push(format!(
            "stopped {which}{} before the tolerance was met: the violation is {:.2e}",
            report::reason(fit),
            fit.violation
        ));
    } else if found.cv.as_ref().is_some_and(|cv| !cv.converged) {
        found.notes.push("some fits on folds stopped before the tolerance was met".to_owned());
    }
}

fn model(config: &Config, x: &Numbers, y: &Numbers, fit: &GaussianFit) -> GaussianModel {
    let facts = GaussianFacts {
        penalties: fit.penalties,
        solver: config.solver.to_owned(),
        objective: fit.objective,
        violation: fit.violation,
        iterations: fit.iterations,
        converged: fit.converged,
        intercept: config.params.intercept,
        standardize: config.params.standardize,
        refit: config.params.refit,
        samples: y.values.rows(),
        data: format!("{} → {}", crate::cmd::file_name(&config.x), crate::cmd::file_name(&config.y)),
    };
    GaussianModel::new(fit, x.names.clone(), y.names.clone(), facts)
}
