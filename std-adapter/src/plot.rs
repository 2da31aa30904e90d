//! Line charts as SVG: the only file that names plotters.
//!
//! SVG only: bitmaps would need a font to be found on the system or shipped, while a browser brings its own.

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::*;
use std::fmt;
use std::ops::Range;

/// A chart.
///
/// ```
/// use gibbsite::plot::{Axis, Figure, Line};
/// let line = Line::new("gap", vec![(0.0, 1.0), (1.0, 1e-3), (2.0, 1e-7)]);
/// let svg = Figure::new("Convergence", Axis::linear("seconds"), Axis::log("gap")).with(line).svg()?;
/// assert!(svg.starts_with("<svg") && svg.contains("seconds"));
/// # Ok::<(), gibbsite::plot::PlotError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Above everything.
    pub title: String,
    /// Across.
    pub x: Axis,
    /// Up.
    pub y: Axis,
    /// What is drawn.
    pub lines: Vec<Line>,
    /// Vertical lines: where, and what they say.
    pub marks: Vec<(f64, String)>,
}

/// One direction of a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// What it shows.
    pub label: String,
    /// Whether equal steps are equal factors; numbers that are not positive are left out then.
    pub log: bool,
}

impl Axis {
    /// Equal steps are equal differences.
    pub fn linear(label: &str) -> Self {
        Self { label: label.into(), log: false }
    }

    /// Equal steps are equal factors.
    pub fn log(label: &str) -> Self {
        Self { label: label.into(), log: true }
    }
}

/// One curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// For the legend; none if empty.
    pub label: String,
    /// Points in order.
    pub points: Vec<(f64, f64)>,
    /// Half the length of an error bar at each point; none if empty.
    pub errors: Vec<f64>,
    /// How it is drawn.
    pub style: Style,
}

/// How a curve is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A line.
    Solid,
    /// A dashed line.
    Dashed,
    /// A line with a dot at each point.
    Dotted,
    /// A cross at each point, and no line.
    Crosses,
}

impl Line {
    /// A solid line.
    pub fn new(label: &str, points: Vec<(f64, f64)>) -> Self {
        Self { label: label.into(), points, errors: Vec::new(), style: Style::Solid }
    }

    /// The same in another style.
    pub fn styled(self, style: Style) -> Self {
        Self { style, ..self }
    }
}

/// A chart that could not be drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlotError(String);

impl fmt::Display for PlotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot draw the plot: {}", self.0)
    }
}

impl std::error::Error for PlotError {}

const SIZE: (u32, u32) = (900, 560);

impl Figure {
    /// An empty chart.
    pub fn new(title: &str, x: Axis, y: Axis) -> Self {
        Self { title: title.into(), x, y, lines: Vec::new(), marks: Vec::new() }
    }

    /// With one more curve.
    #[must_use]
    pub fn with(mut self, line: Line) -> Self {
        self.lines.push(line);
        self
    }

    /// The chart as an SVG file. The same chart gives the same text.
    ///
    /// # Errors
    /// A [`PlotError`] if nothing can be drawn: no finite point.
    pub fn svg(&self) -> Result<String, PlotError> {
        let mut text = String::new();
        {
            let root = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
            self.draw(&root).map_err(|e| PlotError(e.to_string()))?;
        }
        Ok(text)
    }

    fn visible(&self, (x, y): (f64, f64)) -> bool {
        let shown = |v: f64, axis: &Axis| v.is_finite() && (v > 0.0 || !axis.log);
        shown(x, &self.x) && shown(y, &self.y)
    }

    fn draw(
        &self,
        root: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let points = || self.lines.iter().flat_map(|l| &l.points).copied().filter(|&p| self.visible(p));
        let bars = self.lines.iter().flat_map(|line| {
            line.points.iter().zip(&line.errors).flat_map(|(&(x, y), e)| [(x, y - e), (x, y + e)])
        });
        let marks = self.marks.iter().map(|m| m.0).filter(|&v| v.is_finite() && (v > 0.0 || !self.x.log));
        let x =
            Scale::over(&self.x, points().map(|p| p.0).chain(marks)).ok_or("there is no point to show")?;
        let heights = points().chain(bars.filter(|&p| self.visible(p))).map(|p| p.1);
        let y = Scale::over(&self.y, heights).ok_or("there is no point to show")?;
        let (bottom, top) = (y.low, y.high);

        root.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(root)
            .caption(&self.title, ("sans-serif", 20))
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(72)
            .build_cartesian_2d(x, y)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(BLACK.mix(0.12))
            .x_desc(&self.x.label)
            .y_desc(&self.y.label)
            .label_style(("sans-serif", 13))
            .axis_desc_style(("sans-serif", 15))
            .draw()?;
        for (k, line) in self.lines.iter().enumerate() {
            let colour = Palette99::pick(k).to_rgba();
            let stroke = colour.stroke_width(2);
            let points: Vec<_> = line.points.iter().copied().filter(|&p| self.visible(p)).collect();
            let drawn = match line.style {
                Style::Dashed => chart.draw_series(DashedLineSeries::new(points.clone(), 7, 5, stroke))?,
                Style::Solid | Style::Dotted => chart.draw_series(LineSeries::new(points.clone(), stroke))?,
                Style::Crosses => chart.draw_series(points.iter().map(|&p| Cross::new(p, 5, stroke)))?,
            };
            if !line.label.is_empty() {
                let drawn = drawn.label(&line.label);
                if line.style == Style::Crosses {
                    drawn.legend(move |(x, y)| Cross::new((x + 11, y), 5, stroke));
                } else {
                    drawn.legend(move |(x, y)| PathElement::new([(x, y), (x + 22, y)], stroke));
                }
            }
            if line.style == Style::Dotted {
                chart.draw_series(points.iter().map(|&p| Circle::new(p, 3, colour.filled())))?;
            }
            let bars =
                line.points.iter().zip(&line.errors).filter(|(p, e)| self.visible(**p) && e.is_finite());
            chart.draw_series(bars.map(|(&(x, y), e)| {
                let low = if self.y.log { (y - e).max(bottom) } else { y - e };
                PathElement::new([(x, low), (x, y + e)], colour.mix(0.5))
            }))?;
        }
        for (at, label) in self.marks.iter().filter(|m| m.0.is_finite() && (m.0 > 0.0 || !self.x.log)) {
            let ends = [(*at, bottom), (*at, top)];
            chart.draw_series([PathElement::new(ends, BLACK.mix(0.5))])?;
            chart.draw_series([Text::new(label.clone(), (*at, top), ("sans-serif", 13))])?;
        }
        if self.lines.iter().any(|l| !l.label.is_empty()) {
            chart
                .configure_series_labels()
                .position(SeriesLabelPosition::UpperRight)
                .background_style(WHITE.mix(0.85))
                .border_style(BLACK.mix(0.3))
                .label_font(("sans-serif", 13))
                .draw()?;
        }
        root.present()?;
        Ok(())
    }
}

/// Which entries of a matrix are not 0, and their signs.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    /// Above it.
    pub title: String,
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// Row, column and value of each entry that is not 0.
    pub entries: Vec<(usize, usize, f64)>,
}

/// Matrices side by side, a mark for each entry that is not 0: blue above 0, red below.
///
/// ```
/// use gibbsite::plot::{Pattern, patterns};
/// let one = Pattern { title: "Λ".into(), rows: 2, cols: 2, entries: vec![(0, 0, 1.0), (1, 0, -1.0)] };
/// assert!(patterns(&[one])?.contains("Λ"));
/// # Ok::<(), gibbsite::plot::PlotError>(())
/// ```
///
/// # Errors
/// A [`PlotError`] if nothing can be drawn.
pub fn patterns(list: &[Pattern]) -> Result<String, PlotError> {
    let failed = |e: &dyn fmt::Display| PlotError(e.to_string());
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        root.fill(&WHITE).map_err(|e| failed(&e))?;
        let areas = root.split_evenly((1, list.len().max(1)));
        for (pattern, area) in list.iter().zip(&areas) {
            let (wide, high) = (pattern.cols.max(1) as f64, pattern.rows.max(1) as f64);
            // Row 0 at the top, as matrices are written.
            let mut chart = ChartBuilder::on(area)
                .caption(&pattern.title, ("sans-serif", 18))
                .margin(12)
                .x_label_area_size(24)
                .y_label_area_size(44)
                .build_cartesian_2d(0.0..wide, high..0.0)
                .map_err(|e| failed(&e))?;
            let mut mesh = chart.configure_mesh();
            mesh.disable_mesh().label_style(("sans-serif", 12)).x_label_formatter(&|v| format!("{v:.0}"));
            mesh.y_label_formatter(&|v| format!("{v:.0}")).draw().map_err(|e| failed(&e))?;
            let marks = pattern.entries.iter().map(|&(i, j, v)| {
                let colour = if v > 0.0 { &BLUE } else { &RED };
                let (x, y) = (j as f64, i as f64);
                Rectangle::new([(x, y), (x + 1.0, y + 1.0)], colour.mix(0.8).filled())
            });
            chart.draw_series(marks).map_err(|e| failed(&e))?;
        }
        root.present().map_err(|e| failed(&e))?;
    }
    Ok(text)
}

/// An axis with its range; linear or logarithmic in one type, so that one drawing routine serves all four combinations.
#[derive(Clone, Debug)]
struct Scale {
    log: bool,
    low: f64,
    high: f64,
}

impl Scale {
    /// Wide enough for these numbers, and a little wider.
    fn over(axis: &Axis, values: impl Iterator<Item = f64>) -> Option<Self> {
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        if low > high {
            return None;
        }
        Some(if axis.log {
            let factor = (high / low).powf(0.03).max(1.05);
            Self { log: true, low: low / factor, high: high * factor }
        } else {
            let more = ((high - low) * 0.03).max(1e-9 * low.abs().max(high.abs())).max(f64::MIN_POSITIVE);
            Self { log: false, low: low - more, high: high + more }
        })
    }

    /// Where a number lies between the ends, from 0 to 1.
    fn share(&self, v: f64) -> f64 {
        let (v, low, high) =
            if self.log { (v.ln(), self.low.ln(), self.high.ln()) } else { (v, self.low, self.high) };
        if high > low { (v - low) / (high - low) } else { 0.5 }
    }
}

impl Ranged for Scale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let at = self.share(*value).clamp(-1.0, 2.0) * f64::from(limit.1 - limit.0);
        limit.0 + at.round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        let most = hint.max_num_points().clamp(2, 12);
        let decades = (self.high / self.low).log10();
        let first = |multiples: &[f64], every: usize| {
            let range = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
            range
                .filter(|k| k.rem_euclid(every as i32) == 0)
                .flat_map(|k| multiples.iter().map(move |m| m * 10f64.powi(k)))
                .filter(|v| (self.low..=self.high).contains(v))
                .collect::<Vec<_>>()
        };
        if self.log && decades >= 2.0 {
            return first(&[1.0], (decades / most as f64).ceil().max(1.0) as usize);
        }
        if self.log && decades >= 0.6 {
            return first(&[1.0, 2.0, 5.0], 1);
        }
        let width = (self.high - self.low) / most as f64;
        let power = 10f64.powf(width.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|s| *s >= width);
        let step = step.unwrap_or(10.0 * power);
        let start = (self.low / step).ceil();
        (0..=most).map(|k| (start + k as f64) * step).filter(|v| *v <= self.high).collect()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Scale {
    fn format_ext(&self, value: &f64) -> String {
        let size = value.abs();
        if size == 0.0 || size < 1e-12 * self.high.abs().max(self.low.abs()) && !self.log {
            "0".into()
        } else if (1e-3..1e5).contains(&size) {
            // Twelve digits hide the rounding of multiples such as 3 · 0.1.
            format!("{}", format!("{value:.11e}").parse().unwrap_or(*value))
        } else {
            format!("{}", format_args!("{:e}", format!("{value:.5e}").parse().unwrap_or(*value)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plotters::coord::ranged1d::BoldPoints;

    #[test]
    fn ticks_are_round_and_inside() {
        for (log, low, high, ticks) in [
            (false, 0.0, 10.0, "0 1 2 3 4 5 6 7 8 9 10"),
            (false, -0.31, 0.31, "-0.3 -0.2 -0.1 0 0.1 0.2 0.3"),
            (true, 1e-7, 2.0, "1e-7 1e-6 1e-5 1e-4 0.001 0.01 0.1 1"),
            (true, 0.9, 60.0, "1 2 5 10 20 50"),
            (true, 1.0, 2.0, "1 1.1 1.2 1.3 1.4 1.5 1.6 1.7 1.8 1.9 2"),
        ] {
            let scale = Scale { log, low, high };
            let found: Vec<_> =
                scale.key_points(BoldPoints(10)).iter().map(|v| scale.format_ext(v)).collect();
            assert_eq!(found.join(" "), ticks);
        }
    }

    #[test]
    fn what_cannot_be_shown_is_left_out() {
        let figure = |points| {
            Figure::new("t", Axis::linear("x"), Axis::log("y")).with(Line::new("curve", points)).svg()
        };
        assert!(figure(vec![]).is_err());
        assert!(figure(vec![(1.0, f64::INFINITY), (f64::NAN, 1.0), (2.0, 0.0)]).is_err());
        let svg = figure(vec![(1.0, 1.0), (2.0, 0.0), (3.0, f64::INFINITY)]).unwrap();
        assert!(svg.contains("curve") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
