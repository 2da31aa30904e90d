//! What a terminal shows while a solver works, and Ctrl-C.

use crate::config::Common;
use gibbsite::solver::monitor::Point;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// How far a run is, from 0 to 1, can be told by this.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Goal {
    /// The gap falls to this share of the first objective.
    Gap(f64),
    /// `λ` falls to this share of the first.
    Lambda(f64),
    /// Nothing.
    Unknown,
}

/// A line on a terminal's standard error; nothing at all elsewhere.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    goal: Goal,
    first: OnceLock<Point>,
}

/// Set by the first Ctrl-C; the second ends the process.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);
const STEPS: f64 = 1000.0;

impl Progress {
    pub(crate) fn start(common: &Common, goal: Goal, what: &'static str) -> Self {
        let shape = match goal {
            Goal::Unknown => "{prefix} {elapsed} {msg}",
            _ => "{prefix} {bar:24} {elapsed} {msg}",
        };
        Self { bar: bar(common, shape, what), goal, first: OnceLock::new() }
    }

    /// Shows a point; whether to go on.
    pub(crate) fn show(&self, point: &Point) -> bool {
        if let Some(bar) = &self.bar {
            let first = self.first.get_or_init(|| *point);
            bar.set_position((STEPS * share(self.goal, first, point)) as u64);
            bar.set_message(format!(
                "λ {:.4}, gap {:.1e}, {} non-zeros, {}updates/s",
                point.lambda,
                point.gap,
                point.nonzeros,
                scaled(point.updates as f64 / point.seconds.max(1e-9))
            ));
        }
        !interrupted()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A line about each step of a run whose length nobody knows; nothing at all where there is no terminal.
#[derive(Debug)]
pub(crate) struct Steps(Option<ProgressBar>);

impl Steps {
    pub(crate) fn start(common: &Common, what: &'static str) -> Self {
        Self(bar(common, "{prefix} {elapsed} {msg}", what))
    }

    /// Whether there is a terminal.
    pub(crate) fn shown(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn show(&self, line: &str) {
        if let Some(bar) = &self.0 {
            bar.set_message(line.to_owned());
            bar.tick();
        }
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

fn bar(common: &Common, shape: &str, what: &'static str) -> Option<ProgressBar> {
    (!common.quiet && std::io::stderr().is_terminal()).then(|| {
        let target = ProgressDrawTarget::stderr_with_hz(10);
        let style = ProgressStyle::with_template(shape).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(Some(STEPS as u64), target);
        bar.with_style(style.progress_chars("━╸ ")).with_prefix(what)
    })
}

fn share(goal: Goal, first: &Point, point: &Point) -> f64 {
    let share = match goal {
        Goal::Gap(tolerance) => {
            let start = first.gap.min(first.objective);
            (start / point.gap).ln() / (start / (tolerance * first.objective)).ln()
        }
        Goal::Lambda(ratio) => (first.lambda / point.lambda).ln() / (1.0 / ratio).ln(),
        Goal::Unknown => 0.0,
    };
    // NaN where nothing can be told, such as a tolerance of 0.
    if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) }
}

/// `1234567` as `1.235 M `: what is counted follows.
pub(crate) fn scaled(number: f64) -> String {
    for (unit, name) in [(1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if number >= unit {
            return format!("{:.3} {name} ", number / unit);
        }
    }
    format!("{number:.3} ")
}

/// From now on the first Ctrl-C asks for an early end, and the second one quits.
pub(crate) fn catch_ctrl_c() {
    // Without the handler Ctrl-C ends the process at once, which is no reason not to start.
    let _ = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
        crate::output::say("stopping with the best so far; Ctrl-C again to quit at once");
    });
}

/// Whether Ctrl-C was pressed.
pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares() {
        let point = |gap, lambda| Point {
            seconds: 0.0,
            iterations: 0,
            updates: 0,
            lambda,
            objective: 10.0,
            gap,
            nonzeros: 0,
        };
        let half = share(Goal::Gap(1e-6), &point(10.0, 1.0), &point(1e-2, 1.0));
        assert!((half - 0.5).abs() < 1e-12);
        let half = share(Goal::Lambda(0.01), &point(10.0, 1.0), &point(1e-2, 0.1));
        assert!((half - 0.5).abs() < 1e-12);
        assert_eq!(share(Goal::Gap(0.0), &point(f64::INFINITY, 1.0), &point(0.0, 1.0)), 0.0);
        assert_eq!(share(Goal::Gap(0.1), &point(f64::INFINITY, 1.0), &point(f64::INFINITY, 1.0)), 0.0);
    }

    #[test]
    fn rates() {
        assert_eq!([0.5, 1234.0, 2.5e6, 3e9].map(scaled), ["0.500 ", "1.234 k ", "2.500 M ", "3.000 G "]);
    }
}
