//! What else sparse parameters are asked for: solves, fits on held-out rows, and the same entries again without penalty.

use super::active::Active;
use super::ldl::{Entries, Order, Shape, Solve};
use super::{BlockData, BlockError, Exactness, Run};
use crate::objective::gaussian::Penalties;
use crate::par::vectorized;
use crate::solver::monitor::Stop;
use crate::sparse::Sparse;

/// A sparse Λ and its factor.
pub(crate) struct Factored {
    shape: Shape,
    factor: Entries,
}

impl Factored {
    /// `None` if Λ is not positive definite.
    pub(crate) fn new(lambda: &Sparse) -> Option<Self> {
        let nothing = Sparse::from_entries(0, lambda.cols(), Vec::new())?;
        let (active, at) = Active::new((lambda, &nothing), &[], &[]);
        let shape = Shape::new(&active.pairs, Order::new(&active.pairs));
        let factor = shape.factorise(&at.lambda)?;
        Some(Self { shape, factor })
    }

    /// `b ← Λ⁻¹b`.
    pub(crate) fn solve(&self, b: &mut [f64]) {
        vectorized(Solve { shape: &self.shape, factor: &self.factor, width: 1, b });
    }
}

/// `f` without penalty on some rows, and the mean squared error of the means; `None` if Λ is not positive definite.
///
/// # Errors
/// [`BlockError::Memory`] if it does not fit.
pub(crate) fn held_out(
    data: BlockData<'_>,
    (lambda, theta): (&Sparse, &Sparse),
    bytes: u64,
) -> Result<Option<(f64, f64)>, BlockError> {
    let run = Run::new(data, bytes);
    let (ground, at) = run.ground((lambda, theta), &mut Vec::new())?;
    let Some(point) = run.samples.point(&ground, at) else { return Ok(None) };
    let cells = (data.y.rows() * data.y.cols()) as f64;
    Ok(Some((point.value, run.samples.squares(&ground, &point) / cells)))
}

/// What a fit without penalty found.
pub(crate) struct Debiased {
    pub(crate) lambda: Sparse,
    pub(crate) theta: Sparse,
    pub(crate) objective: f64,
    pub(crate) violation: f64,
    pub(crate) iterations: u64,
    pub(crate) stop: Stop,
}

/// Steps in a row without smaller slopes after which rounding is blamed.
const STALE: u32 = 10;

/// Minimises `f` over the entries that are not 0, and the diagonal, by Newton steps until the largest slope is at most `tolerance`; `None` if it falls by more than `floor`: it has no bound then.
///
/// # Errors
/// [`BlockError::Memory`] if it does not fit.
pub(crate) fn debias(
    data: BlockData<'_>,
    (lambda, theta): (&Sparse, &Sparse),
    (tolerance, most, bytes): (f64, u64, u64),
    floor: f64,
    go_on: &dyn Fn(u64, f64, f64) -> bool,
) -> Result<Option<Debiased>, BlockError> {
    let none = Penalties { lambda: 0.0, theta: 0.0, diagonal: false };
    let run = Run::new(data, bytes);
    let (ground, at) = run.ground((lambda, theta), &mut Vec::new())?;
    let mut point = run.samples.point(&ground, at).ok_or(BlockError::Start)?;
    let start = point.value;
    let mut iterations = 0;
    let (mut scale, mut best, mut stale) = (None, f64::INFINITY, 0);
    loop {
        let means = run.samples.keep(&ground, &point, run.budget.keep);
        let slopes = run.samples.slopes(&ground, &point, &means);
        drop(means);
        let violation = slopes.of.largest();
        let scale = *scale.get_or_insert(violation.max(tolerance));
        stale = if violation < best { 0 } else { stale + 1 };
        best = best.min(violation);
        let found = |stop: Stop| {
            let (lambda, theta) = ground.active.matrices(&point.at, data.x.cols());
            Debiased { lambda, theta, objective: point.value, violation, iterations, stop }
        };
        if point.value < start - floor {
            return Ok(None);
        } else if violation <= tolerance {
            return Ok(Some(found(Stop::Tolerance)));
        } else if !go_on(iterations, point.value, violation) {
            return Ok(Some(found(Stop::Interrupted)));
        } else if iterations >= most {
            return Ok(Some(found(Stop::Iterations)));
        } else if stale > STALE {
            return Ok(Some(found(Stop::Precision)));
        }
        let how = Exactness { enough: tolerance, tolerance, scale };
        let (next, stuck) = run.step(&ground, point, &none, &how);
        point = next;
        stale += if stuck { STALE } else { 0 };
        iterations += 1;
    }
}
