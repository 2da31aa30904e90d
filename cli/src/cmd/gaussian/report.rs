//! What a fit prints.

use super::fit::Found;
use crate::cmd::peak_rss_mib;
use crate::config::{Choice, GaussianFit as Config};
use gibbsite::gaussian::GaussianFit;
use gibbsite::solver::monitor::Stop;
use serde_json::{Value, json};
use std::fmt::Write;

/// Why a run ended early, to go after "stopped".
pub(super) fn reason(fit: &GaussianFit) -> &'static str {
    match fit.stop {
        Stop::Iterations => "at --max-iter",
        Stop::Precision => "where rounding allows no progress",
        Stop::Interrupted => "by Ctrl-C",
        _ => "early",
    }
}

fn about(fit: &GaussianFit) -> Value {
    json!({
        "objective": fit.objective,
        "violation": fit.violation,
        "iterations": fit.iterations,
        "converged": fit.converged,
        "nonzeros_lambda": fit.nonzeros_lambda(),
        "nonzeros_theta": fit.nonzeros_theta(),
        "lambda": fit.penalties.0,
        "lambda_theta": fit.penalties.1,
    })
}

pub(super) fn json(config: &Config, found: &Found) -> String {
    let Some(last) = found.fits.last() else { return "{}\n".into() };
    let mut value = about(last);
    value["converged"] = json!(found.converged());
    value["lambda_max"] = json!(last.lambda_max);
    value["samples"] = json!(found.samples);
    value["inputs"] = json!(last.theta.rows());
    value["outputs"] = json!(last.theta.cols());
    value["solver"] = json!(config.solver);
    value["block_columns"] = json!(last.blocks);
    if let Choice::Path { .. } = config.choice {
        value["path"] = found.fits.iter().map(about).collect();
    }
    if let Some(cv) = &found.cv {
        let point = |p: &gibbsite::gaussian::cv::GaussianCvPoint| json!({ "lambda": p.lambda, "mean": p.mean, "se": p.se, "nonzeros": p.nonzeros });
        value["cv"] = cv.points.iter().map(point).collect();
        value["lambda_min"] = json!(cv.points[cv.best].lambda);
    }
    if config.trace {
        let points = last.trace.iter().map(|p| {
            json!({ "iteration": p.iterations, "objective": p.objective, "violation": p.violation, "seconds": p.seconds })
        });
        value["trace"] = points.collect();
    }
    value["interrupted"] = json!(found.interrupted);
    value["seconds"] = json!(found.seconds);
    value["read_seconds"] = json!(found.read_seconds);
    value["peak_rss_mib"] = json!(peak_rss_mib());
    value["notes"] = json!(found.notes);
    format!("{value}\n")
}

pub(super) fn text(config: &Config, found: &Found) -> String {
    let converged = if found.converged() { "" } else { ": NOT CONVERGED" };
    let mut text = format!("Sparse Gaussian CRF ({}){converged}\n", config.solver);
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<22} {value}");
    };
    let Some(last) = found.fits.last() else { return text };
    let (n, p) = (last.theta.rows(), last.theta.cols());
    line("data", format!("{} rows, {n} inputs, {p} outputs", found.samples));
    if let Some(cv) = &found.cv {
        let best = &cv.points[cv.best];
        line("cross-validated loss", format!("{:.6} ± {:.6}", best.mean, best.se));
    }
    let (lambda, theta) = last.penalties;
    line("lambda", format!("{lambda:.6} (Θ {theta:.6}, largest useful {:.6})", last.lambda_max));
    line("objective", format!("{:.9}", last.objective));
    line("violation", format!("{:.2e} after {} iterations", last.violation, last.iterations));
    let (nl, nt) = (last.nonzeros_lambda(), last.nonzeros_theta());
    line("non-zeros", format!("{nl} of {} in Λ, {nt} of {} in Θ", p * p, n * p));
    if let Some(columns) = last.blocks {
        line("within --memory", format!("by blocks of {columns} columns"));
    }
    line("seconds", format!("{:.3}", found.seconds));
    if let Choice::Path { .. } = config.choice {
        let _ = writeln!(
            text,
            "\n  {:>12} {:>16} {:>10} {:>10} {:>10}",
            "lambda", "objective", "violation", "in Λ", "in Θ"
        );
        for fit in &found.fits {
            let _ = writeln!(
                text,
                "  {:>12.6} {:>16.8} {:>10.1e} {:>10} {:>10}",
                fit.penalties.0,
                fit.objective,
                fit.violation,
                fit.nonzeros_lambda(),
                fit.nonzeros_theta()
            );
        }
    }
    text
}
