//! One coordinate of `F(x) = Σ_i L(a_iᵀx, y_i) + Σ_j penalty_j(x_j)`: its update and its optimality, on a device
//! as on a desk.
//!
//! The caller keeps `z = Ax` (for the squared loss the residual `r = y - Ax`), so that an update costs two passes over
//! one column. Nothing is allocated and nothing can fail: a NaN in gives a NaN out.

use crate::column::Column;
use crate::loss::{Logistic, Loss};
use crate::math::Real;
use crate::penalty::Penalty;

/// Exact minimisation over `x_j` of `½‖r‖² + penalty(x_j)` with `r = y - Ax` (Alg. 4.1, eq. 4.5 with `β = ‖a_j‖²`).
///
/// Takes `norm2 = ‖a_j‖²`, updates `x` and `residual`, returns the change of `x`.
///
/// ```
/// use gibbsite_core::{column::Column, coord, penalty::Penalty};
/// let (a, mut r, mut x) = (Column::Dense(&[1.0f64, 1.0]), [2.0, 4.0], 0.0);
/// let lasso = Penalty { l1: 1.0, l2: 0.0, positive: false };
/// assert_eq!(coord::squared(a, 2.0, &lasso, &mut x, &mut r), 2.5);
/// assert_eq!((x, r), (2.5, [-0.5, 1.5]));
/// ```
#[inline(always)]
pub fn squared<V: Real, T: Real>(
    column: Column<'_, V>,
    norm2: T,
    penalty: &Penalty<T>,
    x: &mut T,
    residual: &mut [T],
) -> T {
    let new = penalty.minimize(*x, -column.dot(residual), norm2);
    let step = new - *x;
    if step != T::zero() {
        column.add_to(-step, residual);
        *x = new;
    }
    step
}

/// `∂/∂x_j Σ_i L(z_i, y_i)`.
#[inline(always)]
pub fn slope<V: Real, T: Real, L: Loss>(column: Column<'_, V>, loss: L, z: &[T], y: &[T]) -> T {
    column.iter().fold(T::zero(), |sum, (row, a): (usize, T)| match (z.get(row), y.get(row)) {
        (Some(&z), Some(&y)) => sum + a * loss.slope(z, y),
        _ => sum,
    })
}

/// The step of Alg. 4.1 for a loss whose curvature is bounded: minimises the majorant with `β_j = SMOOTHNESS·‖a_j‖²`
/// (¼‖a_j‖² for the logistic loss), so `F` never rises. Does not apply it.
///
/// ```
/// use gibbsite_core::{column::Column, coord, loss::Logistic, penalty::Penalty};
/// let a = Column::Dense(&[1.0f64, -1.0]);
/// let free = Penalty { l1: 0.0, l2: 0.0, positive: false };
/// // slope -1, β = ½
/// assert_eq!(coord::bounded_step(a, 2.0, Logistic, &free, 0.0, &[0.0, 0.0], &[1.0, -1.0]), 2.0);
/// ```
#[inline]
pub fn bounded_step<V: Real, T: Real, L: Loss>(
    column: Column<'_, V>,
    norm2: T,
    loss: L,
    penalty: &Penalty<T>,
    x: T,
    z: &[T],
    y: &[T],
) -> T {
    penalty.minimize(x, slope(column, loss, z, y), T::from_f64(L::SMOOTHNESS) * norm2) - x
}

/// How the line search of [`newton_step`] goes; the defaults are those of Yuan et al. 2010.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Armijo<T> {
    /// Share of the predicted decrease that must be reached.
    pub decrease: T,
    /// Factor between one trial step and the next, below 1.
    pub shrink: T,
    /// Most trials before the coordinate is left as it is.
    pub trials: u32,
}

impl<T: Real> Default for Armijo<T> {
    fn default() -> Self {
        Self { decrease: T::from_f64(0.01), shrink: T::from_f64(0.5), trials: 30 }
    }
}

/// What a Newton step on one coordinate found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NewtonStep<T> {
    /// The change of `x_j`; 0 if none is needed, or none of the trials decreased `F` enough.
    pub step: T,
    /// `F'`: the loss's derivative before the step.
    pub slope: T,
    /// Trial steps evaluated.
    pub trials: u32,
}

/// Coordinate descent Newton (CDN): the minimiser `d` of `penalty(x+d) - penalty(x) + F'd + ½F''d²` (eq. 4.13 with the
/// corrections of SEEDS.md), then backtracking until
/// `F(x + td) - F(x) ≤ decrease·t·(F'd + penalty(x+d) - penalty(x))` (Armijo's rule, Yuan et al. 2010). Does not apply it.
///
/// Differs from Yuan et al. in that the loss difference is evaluated over this column's rows only, from `z` alone, and that
/// the curvature has a small floor so that saturated samples do not give infinite steps.
///
/// ```
/// use gibbsite_core::{column::Column, coord, penalty::Penalty};
/// let a = Column::Dense(&[1.0f64, 1.0]);
/// let l1 = Penalty { l1: 0.5, l2: 0.0, positive: false };
/// let found = coord::newton_step(a, &l1, 0.0, &[0.0, 0.0], &[1.0, 1.0], &Default::default());
/// // F' = -1, F'' = ½: (1 - ½) / ½ = 1, accepted at once
/// assert_eq!((found.slope, found.step, found.trials), (-1.0, 1.0, 1));
/// ```
pub fn newton_step<V: Real, T: Real>(
    column: Column<'_, V>,
    penalty: &Penalty<T>,
    x: T,
    z: &[T],
    y: &[T],
    armijo: &Armijo<T>,
) -> NewtonStep<T> {
    let zero = T::zero();
    let rows = || column.iter().filter_map(|(row, a): (usize, T)| Some((a, *z.get(row)?, *y.get(row)?)));
    let (slope, curvature) = rows().fold((zero, zero), |(g, h), (a, z, y)| {
        let s = Logistic.slope(z, y);
        // σ(1-σ) from the slope that is there already: s = -yσ, so |s|(1-|s|).
        (g + a * s, h + a * a * s.abs() * (T::one() - s.abs()))
    });
    let direction = penalty.minimize(x, slope, curvature.larger(T::from_f64(LEAST_CURVATURE))) - x;
    if direction == zero {
        return NewtonStep { step: zero, slope, trials: 0 };
    }
    search(column, penalty, x, z, y, slope, direction, armijo)
}

/// Saturated samples have no curvature to speak of; below this a Newton step would be nonsense.
pub(crate) const LEAST_CURVATURE: f64 = 1e-12;

/// Armijo's rule along `direction` for the logistic loss.
#[allow(clippy::too_many_arguments)]
fn search<V: Real, T: Real>(
    column: Column<'_, V>,
    penalty: &Penalty<T>,
    x: T,
    z: &[T],
    y: &[T],
    slope: T,
    direction: T,
    armijo: &Armijo<T>,
) -> NewtonStep<T> {
    let zero = T::zero();
    let predicted = slope * direction + penalty.change(x, direction);
    let mut step = direction;
    let mut allowed = armijo.decrease * predicted;
    for trial in 1..=armijo.trials {
        let rows = column.iter().filter_map(|(row, a): (usize, T)| Some((a, *z.get(row)?, *y.get(row)?)));
        let change = rows
            .fold(zero, |sum, (a, z, y)| sum + (Logistic.value(z + step * a, y) - Logistic.value(z, y)))
            + penalty.change(x, step);
        if change <= allowed {
            return NewtonStep { step, slope, trials: trial };
        }
        step *= armijo.shrink;
        allowed *= armijo.shrink;
    }
    NewtonStep { step: zero, slope, trials: armijo.trials }
}

/// What is kept of the samples between updates of a logistic regression, so that no exponential is needed where nothing moves.
#[derive(Clone, Copy, Debug)]
pub struct Samples<'a, T> {
    /// `z = Ax + b`.
    pub z: &'a [T],
    /// `y`, ±1.
    pub y: &'a [T],
    /// `u_i = -L'(z_i, y_i)`; [`shift`] keeps it up to date.
    pub residual: &'a [T],
}

/// [`newton_step`] from kept residuals `u = -L'(z)`: the slope is `-aᵀu`, the curvature `Σ a_i²|u_i|(1 - |u_i|)`, and a
/// coordinate that is optimal costs one product. Takes `norm2 = ‖a_j‖²`.
///
/// The first trial is judged by a bound before any loss is evaluated. The logistic loss has `L″ ≤ ¼` and `|L‴| ≤ L″`, so
/// `F(x + d) - F(x) ≤ F'd + penalty(x+d) - penalty(x) + d²·min(⅛‖a_j‖², F″·φ(|d|·max|a_i|))` with `φ(m) = (e^m - 1 - m)/m²`.
/// Near the optimum the bound is all that is ever needed, and rounding in differences of losses cannot stop progress.
///
/// ```
/// use gibbsite_core::{column::Column, coord::{self, Samples}, penalty::Penalty};
/// let a = Column::Dense(&[1.0f64, 1.0]);
/// let l1 = Penalty { l1: 0.5, l2: 0.0, positive: false };
/// let samples = Samples { z: &[0.0, 0.0], y: &[1.0, 1.0], residual: &[0.5, 0.5] };
/// let found = coord::kept_newton_step(a, 2.0, &l1, 0.0, &samples, &Default::default());
/// assert_eq!((found.slope, found.step, found.trials), (-1.0, 1.0, 1));
/// ```
#[inline]
pub fn kept_newton_step<V: Real, T: Real>(
    column: Column<'_, V>,
    norm2: T,
    penalty: &Penalty<T>,
    x: T,
    samples: &Samples<'_, T>,
    armijo: &Armijo<T>,
) -> NewtonStep<T> {
    let zero = T::zero();
    let slope = -column.dot(samples.residual);
    if penalty.violation(x, slope) == zero {
        return NewtonStep { step: zero, slope, trials: 0 };
    }
    let curvature: T = column.fold(samples.residual, |a: T, u: &T| a * a * u.abs() * (T::one() - u.abs()));
    let direction = penalty.minimize(x, slope, curvature.larger(T::from_f64(LEAST_CURVATURE))) - x;
    if direction == zero {
        return NewtonStep { step: zero, slope, trials: 0 };
    }
    let predicted = slope * direction + penalty.change(x, direction);
    let reach = direction.abs() * column.largest();
    let bound = (T::from_f64(0.125) * norm2).smaller(curvature * excess_curvature(reach));
    if predicted + direction * direction * bound <= armijo.decrease * predicted {
        return NewtonStep { step: direction, slope, trials: 1 };
    }
    search(column, penalty, x, samples.z, samples.y, slope, direction, armijo)
}

/// `(e^m - 1 - m)/m²` for `m ≥ 0`; infinite where that is of no use.
#[inline]
pub(crate) fn excess_curvature<T: Real>(m: T) -> T {
    if m < T::from_f64(0.01) {
        // Its Taylor series; what is left out is below 10⁻⁸.
        T::from_f64(0.5) + m * (T::from_f64(1.0 / 6.0) + m * T::from_f64(1.0 / 24.0))
    } else if m < T::from_f64(20.0) {
        (m.exp() - T::one() - m) / (m * m)
    } else {
        T::INFINITY
    }
}

/// `z += step·a_j`, and `u = -L'(z)` with it, at this column's rows.
///
/// ```
/// use gibbsite_core::{column::Column, coord, loss::Squared};
/// let (mut z, mut u) = ([0.0f64, 0.0], [3.0, 1.0]);
/// coord::shift(Column::Sparse { rows: &[0], values: &[2.0f64] }, Squared, 0.5, &mut z, &[3.0, 1.0], &mut u);
/// assert_eq!((z, u), ([1.0, 0.0], [2.0, 1.0]));
/// ```
#[inline]
pub fn shift<V: Real, T: Real, L: Loss>(
    column: Column<'_, V>,
    loss: L,
    step: T,
    z: &mut [T],
    y: &[T],
    residual: &mut [T],
) {
    for (row, a) in column.iter::<T>() {
        if let (Some(z), Some(&y), Some(u)) = (z.get_mut(row), y.get(row), residual.get_mut(row)) {
            *z += step * a;
            *u = -loss.slope(*z, y);
        }
    }
}

/// How far coordinate `j` is from optimal: distance of 0 from the subdifferential of `F` in `x_j`.
///
/// ```
/// use gibbsite_core::{column::Column, coord, loss::Squared, penalty::Penalty};
/// let lasso = Penalty { l1: 1.0, l2: 0.0, positive: false };
/// assert_eq!(coord::violation(Column::Dense(&[1.0f64]), Squared, &lasso, 0.0, &[0.0], &[3.0]), 2.0);
/// ```
pub fn violation<V: Real, T: Real, L: Loss>(
    column: Column<'_, V>,
    loss: L,
    penalty: &Penalty<T>,
    x: T,
    z: &[T],
    y: &[T],
) -> T {
    penalty.violation(x, slope(column, loss, z, y))
}
