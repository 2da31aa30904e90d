//! What a solver tells while it works, and who may stop it.

use std::time::{Duration, Instant};

/// A look at a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Seconds since the run began.
    pub seconds: f64,
    /// Outer iterations so far, in the solver's own sense.
    pub iterations: u64,
    /// Coordinate (or sample) updates so far.
    pub updates: u64,
    /// The penalty `λ` that is being solved for.
    pub lambda: f64,
    /// The objective.
    pub objective: f64,
    /// The duality gap: how much lower the objective can be at most. Infinite if not known.
    pub gap: f64,
    /// Weights that are not zero.
    pub nonzeros: usize,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The gap is within the tolerance.
    Tolerance,
    /// The limit on iterations was reached.
    Iterations,
    /// Rounding allows no further progress: the gap stays above the tolerance.
    Precision,
    /// Somebody asked for it.
    Interrupted,
    /// Without penalty, and every sample is on the right side: weights would grow for ever.
    Unbounded,
    /// The objective rose without end: too many coordinates were changed at a time, and the rule was not allowed to adapt.
    Diverged,
}

/// Receives each [`Point`]; returns whether to go on.
pub type Watch<'a> = dyn Fn(&Point) -> bool + Sync + 'a;

/// Keeps a run's trace and asks whether it should go on.
pub struct Monitor<'a> {
    start: Instant,
    watch: Option<&'a Watch<'a>>,
    /// Points so far.
    pub trace: Vec<Point>,
}

impl std::fmt::Debug for Monitor<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Monitor").field("trace", &self.trace).finish_non_exhaustive()
    }
}

impl<'a> Monitor<'a> {
    /// A run that begins now.
    ///
    /// ```
    /// use gibbsite::solver::monitor::{Monitor, Point};
    /// let watch = |point: &Point| point.updates < 10;
    /// let mut monitor = Monitor::new(Some(&watch));
    /// let point = Point { seconds: 0.0, iterations: 1, updates: 10, lambda: 1.0, objective: 2.0, gap: 0.5, nonzeros: 3 };
    /// assert!(!monitor.go_on(point));
    /// assert_eq!(monitor.trace.len(), 1);
    /// ```
    pub fn new(watch: Option<&'a Watch<'a>>) -> Self {
        Self::starting(Instant::now(), watch)
    }

    /// A run that began a while ago.
    pub fn starting(start: Instant, watch: Option<&'a Watch<'a>>) -> Self {
        Self { start, watch, trace: Vec::new() }
    }

    /// Records a point (its time is filled in) and asks whether to go on.
    pub fn go_on(&mut self, point: Point) -> bool {
        let point = Point { seconds: self.elapsed().as_secs_f64(), ..point };
        self.trace.push(point);
        self.watch.is_none_or(|watch| watch(&point))
    }

    /// Records a point, and says why the run ends there, if it does: its gap is at most `within`, somebody asked for it, the
    /// limits are `exhausted`, or it is `stuck` at rounding.
    pub(crate) fn verdict(
        &mut self,
        point: Point,
        within: f64,
        exhausted: bool,
        stuck: bool,
    ) -> Option<Stop> {
        let go_on = self.go_on(point);
        if point.gap <= within {
            Some(Stop::Tolerance)
        } else if !go_on {
            Some(Stop::Interrupted)
        } else if exhausted {
            Some(Stop::Iterations)
        } else if stuck {
            Some(Stop::Precision)
        } else {
            None
        }
    }

    /// Time since the run began.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}
