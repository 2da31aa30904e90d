//! `gibbsite regress`: sparse regression.

mod draw;
mod report;
mod weights;

use crate::cmd::{nothing_to_explain, number, write_plot};
use crate::config::{Penalty, Regress};
use crate::progress::{Goal, Progress, catch_ctrl_c, interrupted};
use crate::{Outcome, args, output};
use anyhow::anyhow;
use gibbsite::data::dataset::{Dataset, Stored};
use gibbsite::model::{Naming, RegressionModel};
use gibbsite::regress::cv::{CrossValidation, CvError, CvParams, cross_validate};
use gibbsite::regress::path::path;
use gibbsite::regress::{Fit, Lambda, RegressParams, Task, fit};
use gibbsite::solver::spectral::{SpectralInfo, SpectralParams, spectral_radius};
use std::time::Instant;

pub(crate) fn run(config: &Regress) -> anyhow::Result<Outcome> {
    match config.storage {
        args::Storage::F64 => run_stored::<f64>(config),
        args::Storage::F32 => run_stored::<f32>(config),
    }
}

/// What came of it.
struct Found {
    /// One fit, or those of a path.
    fits: Vec<Fit>,
    cv: Option<CrossValidation>,
    /// Of all solving.
    seconds: f64,
    read_seconds: f64,
    interrupted: bool,
    notes: Vec<String>,
    spectrum: Option<SpectralInfo>,
}

impl Found {
    fn converged(&self) -> bool {
        !self.interrupted
            && self.fits.iter().all(|f| f.converged)
            && self.cv.as_ref().is_none_or(|c| c.converged)
    }
}

fn run_stored<V: Stored>(config: &Regress) -> anyhow::Result<Outcome> {
    let common = &config.common;
    let start = Instant::now();
    let data = config.data.read::<V>(common.par)?;
    let read_seconds = start.elapsed().as_secs_f64();
    common.log(|| {
        let (n, d, e) = (data.matrix.rows(), data.matrix.columns(), data.matrix.nonzeros());
        format!("read {n} samples, {d} features, {e} entries in {read_seconds:.3} s")
    });
    let mut params = config.params.clone();
    let mut notes = data.notes.clone();
    if let Some(path) = &config.weights {
        let (weights, note) = weights::read(path, &data.names)?;
        params.l1_weights = Some(weights);
        notes.extend(note);
    }
    catch_ctrl_c();
    let start = Instant::now();
    let (fits, cv) = solve(config, &data, &params)?;
    let seconds = start.elapsed().as_secs_f64();
    let mut found = Found {
        // A λ that was interrupted is of use only if it is all there is.
        interrupted: interrupted(),
        fits,
        cv,
        seconds,
        read_seconds,
        notes,
        spectrum: None,
    };
    if found.fits.is_empty() {
        // Not a fault of the input, and no result: what was written before stays.
        output::say(&format!("error: {}; no model is written", CvError::Interrupted));
        return Ok(Outcome::Unconverged);
    }
    remark(config, &data, &mut found);
    for note in &found.notes {
        common.warn(note);
    }
    let Some(last) = found.fits.last() else { return Ok(Outcome::Unconverged) };
    if let Some(path) = &config.model {
        output::write(Some(path), &model(config, &data, last, found.interrupted).to_bytes())?;
    }
    if let Some(path) = &config.plot {
        write_plot(common, path, draw::draw(config, &data.names, &found))?;
    }
    if common.json {
        found.spectrum = Some(spectrum(config, &data, last));
    }
    let text = if common.json {
        report::json(config, &data, &found)?
    } else {
        report::text(config, &data, &found).into_bytes()
    };
    output::write(common.output.as_deref(), &text)?;
    Ok(if found.converged() { Outcome::Done } else { Outcome::Unconverged })
}

/// Fits what was asked for; no fit if there was no time to choose a penalty.
fn solve<V: Stored>(
    config: &Regress,
    data: &Dataset<V>,
    params: &RegressParams,
) -> anyhow::Result<(Vec<Fit>, Option<CrossValidation>)> {
    let common = &config.common;
    let blame = |error: &dyn std::fmt::Display| anyhow!("{}: {error}", config.data.name());
    let one = |lambda: Lambda, params: &RegressParams| {
        let progress = Progress::start(common, Goal::Gap(params.tolerance), "fitting");
        let params = RegressParams { lambda, ..params.clone() };
        // After Ctrl-C during cross-validation the model is still fitted; the second one quits.
        let late = interrupted();
        let watch = |point: &_| progress.show(point) || late;
        fit(&data.matrix, &data.target, &params, Some(&watch)).map_err(|e| blame(&e))
    };
    Ok(match config.penalty {
        Penalty::One => (vec![one(params.lambda, params)?], None),
        Penalty::Path { points, ratio } => {
            let progress = Progress::start(common, Goal::Lambda(ratio), "path");
            let watch = |point: &_| progress.show(point);
            let found = path(&data.matrix, &data.target, params, points, ratio, Some(&watch));
            (found.map_err(|e| blame(&e))?, None)
        }
        Penalty::Cv { folds, points, ratio, rule } => {
            let how = CvParams { folds, points, ratio };
            let progress = Progress::start(common, Goal::Unknown, "cross-validating");
            let watch = |point: &_| progress.show(point);
            let found = cross_validate(&data.matrix, &data.target, params, &how, Some(&watch));
            drop(progress);
            let found = match found {
                Err(CvError::Interrupted) => return Ok((Vec::new(), None)),
                found => found.map_err(|e| blame(&e))?,
            };
            let chosen = match rule {
                args::Rule::Min => found.best,
                args::Rule::OneSe => found.one_se,
            };
            let mut fitted = one(Lambda::Ratio(found.points[chosen].ratio), params)?;
            // At a penalty that might have been another, had all been tried.
            fitted.converged &= !found.interrupted;
            (vec![fitted], Some(found))
        }
    })
}

/// What the user should know about the result.
fn remark<V: Stored>(config: &Regress, data: &Dataset<V>, found: &mut Found) {
    let mut notes = Vec::new();
    if let Some(why) = nothing_to_explain(&data.target, config.params.intercept) {
        notes.push(format!("{why}, whatever lambda is"));
    } else if let (Penalty::One, [only]) = (config.penalty, found.fits.as_slice()) {
        let free = only.weights.nonzeros();
        if only.lambda >= only.lambda_max {
            let what = if free == 0 {
                "all coefficients are 0".to_owned()
            } else {
                format!("all coefficients but the {free} without penalty are 0")
            };
            notes.push(format!(
                "lambda is {}, not below lambda_max = {}: {what}",
                number(only.lambda),
                number(only.lambda_max)
            ));
        }
    }
    if data.matrix.nonzeros() == 0 {
        notes.push("the data holds no entry other than 0: nothing can be learned from it".to_owned());
    }
    let unmet = found.fits.iter().filter(|f| !f.converged).count();
    if let (Some(cv), Penalty::Cv { folds, points, .. }) =
        (found.cv.as_ref().filter(|cv| cv.interrupted), config.penalty)
    {
        let tried = cv.points.len();
        let few = if tried < points {
            format!("the {tried} largest of {points} penalties")
        } else {
            format!("all {points} penalties")
        };
        let edge = if tried < points && cv.best + 1 == tried { "; smaller ones may be better" } else { "" };
        notes
            .push(format!("interrupted: lambda is the best of {few} by {} of {folds} folds{edge}", cv.folds));
    } else if found.interrupted {
        notes.push("interrupted: this is the best so far, not the optimum".to_owned());
    } else if let Some(fit) = found.fits.iter().find(|f| !f.converged) {
        let which = match config.penalty {
            Penalty::Path { .. } => format!("at {unmet} of {} penalties ", found.fits.len()),
            _ => String::new(),
        };
        notes.push(format!(
            "stopped {which}{} before the tolerance was met: the gap is {:.2e}",
            report::reason(config, fit),
            fit.certificate.gap
        ));
    } else if found.cv.as_ref().is_some_and(|cv| !cv.converged) {
        notes.push("some fits on folds stopped before the tolerance was met".to_owned());
    }
    found.notes.extend(notes);
}

/// ρ as the solver found it, or now: as `analyze parallelism` does, so that the two agree.
fn spectrum<V: Stored>(config: &Regress, data: &Dataset<V>, fit: &Fit) -> SpectralInfo {
    match fit.rho {
        Some(rho) => {
            let used = |j: &usize| data.matrix.column(*j).norm2::<f64>() > 0.0;
            let columns = (0..data.matrix.columns()).filter(used).count();
            SpectralInfo { rho, columns, iterations: 0, converged: true }
        }
        None => config.common.par.run(|par| {
            let params = SpectralParams { par, seed: config.common.seed, ..SpectralParams::default() };
            spectral_radius(&data.matrix, &params)
        }),
    }
}

fn model<V: Stored>(config: &Regress, data: &Dataset<V>, fit: &Fit, interrupted: bool) -> RegressionModel {
    let params = &config.params;
    let labels = (params.task == Task::Logistic).then(|| {
        let ends =
            data.target.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), &y| (a.min(y), b.max(y)));
        [ends.0, ends.1]
    });
    RegressionModel {
        task: params.task,
        lambda: fit.lambda,
        lambda_max: fit.lambda_max,
        l2: params.l2,
        objective: fit.certificate.objective,
        gap: fit.certificate.gap,
        tolerance: params.tolerance,
        converged: fit.converged,
        interrupted,
        solver: config.solver.to_owned(),
        samples: data.matrix.rows(),
        features: data.matrix.columns(),
        labels,
        naming: Naming::of(&data.names, fit.weights.iter().map(|(j, _)| j)),
        standardize: params.standardize,
        positive: params.positive,
        weighted: config.weights.is_some(),
        intercept: params.intercept.then_some(fit.weights.intercept),
        data: config.data.file_name(),
        target: config.data.target.clone(),
        weights: fit.weights.iter().map(|(_, x)| x).collect(),
    }
}
