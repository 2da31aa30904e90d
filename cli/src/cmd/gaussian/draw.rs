//! Plots of a Gaussian CRF.

use super::fit::Found;
use crate::config::{Choice, GaussianFit as Config};
use gibbsite::model::GaussianModel;
use gibbsite::plot::{Axis, Figure, Line, Pattern, PlotError, Style};

/// Which entries of Λ and Θ are not 0 (SGCRF Fig. 7).
pub(super) fn pattern(model: &GaussianModel) -> Result<String, PlotError> {
    let (n, p) = (model.theta.rows(), model.lambda.cols());
    let mut lambda = model.lambda_entries();
    let mirrored: Vec<_> = lambda.iter().filter(|e| e.0 != e.1).map(|&(i, j, v)| (j, i, v)).collect();
    lambda.extend(mirrored);
    let patterns = [
        Pattern {
            title: format!("Λ: {} of {} entries", lambda.len(), p * p),
            rows: p,
            cols: p,
            entries: lambda,
        },
        {
            let entries = model.theta_entries();
            Pattern {
                title: format!("Θ: {} of {} entries", entries.len(), n * p), rows: n, cols: p, entries
            }
        },
    ];
    gibbsite::plot::patterns(&patterns)
}

/// The violation over time, a path's non-zeros, or the cross-validated loss.
pub(super) fn course(config: &Config, found: &Found) -> Result<String, PlotError> {
    let figure = match (config.choice, &found.cv) {
        (Choice::Path { .. }, _) => {
            let counts = |f: &dyn Fn(&gibbsite::gaussian::GaussianFit) -> usize| {
                found.fits.iter().map(|fit| (fit.penalties.0, f(fit) as f64)).collect::<Vec<_>>()
            };
            Figure::new("Non-zeros along the path", Axis::log("λ"), Axis::log("entries"))
                .with(Line::new("Λ", counts(&|f| f.nonzeros_lambda())).styled(Style::Dotted))
                .with(Line::new("Θ", counts(&|f| f.nonzeros_theta())).styled(Style::Dotted))
        }
        (_, Some(cv)) => {
            let mut figure = Figure::new("Cross-validation", Axis::log("λ"), Axis::linear("held-out loss"));
            let points = cv.points.iter().map(|p| (p.lambda, p.mean)).collect();
            let errors = cv.points.iter().map(|p| p.se).collect();
            figure.lines.push(Line { errors, style: Style::Dotted, ..Line::new("", points) });
            figure.marks.push((cv.points[cv.best].lambda, "min".to_owned()));
            figure
        }
        _ => {
            let trace = found.fits.iter().flat_map(|f| &f.trace);
            let points = trace.map(|p| (p.seconds, p.violation)).collect();
            Figure::new("Subdifferential violation", Axis::linear("seconds"), Axis::log("violation"))
                .with(Line::new("", points).styled(Style::Dotted))
        }
    };
    figure.svg()
}
