//! `gibbsite eval` of a Gaussian CRF.

use super::{LEVEL, joint_width, read};
use crate::config::Eval as Config;
use crate::{Outcome, output};
use anyhow::anyhow;
use gibbsite::gaussian::normal::half_width;
use gibbsite::gaussian::score::{Widths, score};
use gibbsite::model::GaussianModel;
use serde_json::json;
use std::fmt::Write;
use std::time::Instant;

pub(crate) fn run(config: &Config, model: &GaussianModel) -> anyhow::Result<Outcome> {
    let common = &config.common;
    let start = Instant::now();
    let table = read(&config.data.path)?;
    let blame = |what: String| anyhow!("{}: {what}", config.data.name());
    let y = match &config.y {
        Some(path) => {
            let named = |what: String| anyhow!("{}: {what}", crate::cmd::name(path));
            let y = read(path)?.arranged(model.outputs.as_deref(), model.lambda.cols()).map_err(named)?;
            let (a, b) = (y.values.rows(), table.values.rows());
            if a != b {
                return Err(named(format!("found {a} rows of outputs, expected {b} as there are inputs")));
            }
            y
        }
        // One table with both, told apart by name.
        None => match (&model.outputs, &table.names) {
            (Some(names), Some(_)) => {
                table.clone().arranged(Some(names), model.lambda.cols()).map_err(blame)?
            }
            _ => {
                return Err(blame("a Gaussian CRF is scored on inputs and outputs: give the outputs with --y, or one table whose header names both".into()));
            }
        },
    };
    let x = table.arranged(model.inputs.as_deref(), model.theta.rows()).map_err(blame)?;
    if let Some(place) = x.missing() {
        return Err(blame(format!("{place}: found a missing value, expected a number")));
    }
    let forecaster = model
        .forecaster()
        .ok_or_else(|| anyhow!("{}: its Λ is not positive definite", crate::cmd::name(&config.model)))?;
    let level = config.interval.unwrap_or(LEVEL);
    let means = forecaster.means(common.par, &x.values);
    let joint = joint_width(&forecaster, level, common.seed);
    let found = score(&forecaster, &means, &y.values, Widths { own: half_width(level), joint });
    let s = found.ok_or_else(|| blame("there are no known outputs to score".into()))?;
    let rate = s.rows as f64 / start.elapsed().as_secs_f64().max(1e-9);
    let text = if common.json {
        let value = json!({
            "items": s.rows,
            "cells": s.cells,
            "mse": s.mse,
            "log_loss": s.log_loss,
            "crps": s.crps,
            "level": level,
            "coverage": s.coverage,
            "joint_coverage": s.joint_coverage,
            "items_per_second": rate,
        });
        format!("{value}\n")
    } else {
        let mut text = format!("{} items, {} known outputs\n", s.rows, s.cells);
        let coverage = format!("{:.4} (all of a row: {:.4}) at {level}", s.coverage, s.joint_coverage);
        for (name, value) in [
            ("mse", format!("{:.6}", s.mse)),
            ("log loss", format!("{:.6}", s.log_loss)),
            ("CRPS", format!("{:.6}", s.crps)),
            ("coverage", coverage),
        ] {
            let _ = writeln!(text, "  {name:<22} {value}");
        }
        text
    };
    output::write(common.output.as_deref(), text.as_bytes())?;
    Ok(Outcome::Done)
}
