//! Plots of a regression.

use super::Found;
use crate::config::{Penalty, Regress};
use gibbsite::data::dataset::Names;
use gibbsite::plot::{Axis, Figure, Line, PlotError, Style};

/// Coefficients that are drawn and those that have a name in the legend.
const DRAWN: usize = 50;
const NAMED: usize = 10;

pub(super) fn draw(config: &Regress, names: &Names, found: &Found) -> Result<String, PlotError> {
    match config.penalty {
        Penalty::One => gap(found),
        Penalty::Path { .. } => coefficients(names, found),
        Penalty::Cv { .. } => held_out(found),
    }
    .svg()
}

fn gap(found: &Found) -> Figure {
    let trace = found.fits.iter().flat_map(|f| &f.trace);
    let points = trace.map(|p| (p.seconds, p.gap)).collect();
    Figure::new("Duality gap", Axis::linear("seconds"), Axis::log("gap"))
        .with(Line::new("", points).styled(Style::Dotted))
}

/// The coefficients that are largest anywhere on the path.
fn coefficients(names: &Names, found: &Found) -> Figure {
    let mut size = vec![0.0f64; names.len()];
    for fit in &found.fits {
        fit.weights.iter().for_each(|(j, x)| size[j] = size[j].max(x.abs()));
    }
    let mut order: Vec<usize> = (0..size.len()).filter(|&j| size[j] > 0.0).collect();
    order.sort_by(|&a, &b| size[b].total_cmp(&size[a]));
    let title = if order.len() > DRAWN {
        format!("Coefficients: the largest {DRAWN} of {}", order.len())
    } else {
        "Coefficients".to_owned()
    };
    let mut figure = Figure::new(&title, Axis::log("λ"), Axis::linear("coefficient"));
    for (rank, &j) in order.iter().take(DRAWN).enumerate() {
        let label = if rank < NAMED { names.name(j) } else { String::new() };
        let points = found.fits.iter().map(|f| (f.lambda, f.weights.get(j))).collect();
        figure = figure.with(Line::new(&label, points));
    }
    if order.is_empty() {
        figure = figure.with(Line::new("", found.fits.iter().map(|f| (f.lambda, 0.0)).collect()));
    }
    figure
}

fn held_out(found: &Found) -> Figure {
    let mut figure = Figure::new("Cross-validation", Axis::log("λ"), Axis::linear("held-out loss"));
    if let (Some(cv), Some(fit)) = (&found.cv, found.fits.last()) {
        let points = cv.points.iter().map(|p| (p.ratio * fit.lambda_max, p.mean)).collect();
        let errors = cv.points.iter().map(|p| p.se).collect();
        figure.lines.push(Line { errors, style: Style::Dotted, ..Line::new("", points) });
        let both = [(cv.best, "min"), (cv.one_se, "1se")];
        // One above the other nobody could read them.
        let marks = if cv.best == cv.one_se { &[(cv.best, "min = 1se")][..] } else { &both };
        for &(at, name) in marks {
            figure.marks.push((cv.points[at].ratio * fit.lambda_max, name.to_owned()));
        }
    }
    figure
}
