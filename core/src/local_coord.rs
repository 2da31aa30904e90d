//! One coordinate of a sum of local conditional regressions, with its penalty: `F(θ) = Σ_g -log P_θ(y_g | blanket) + Σ_j penalty_j(θ_j)`.
//!
//! Regression `g` has a row for each of its labels, with score `s = Σ_j a_j θ_j` and probability `P = e^s / Σ e^s`; rows of one regression follow each other.
//! A parameter is a column: what it adds to which score. The caller keeps the probabilities ([`local::conditional`](crate::local::conditional)), so
//! that a look at a coordinate is one pass over its column. Nothing is allocated and nothing can fail.

use crate::column::Column;
use crate::coord::{LEAST_CURVATURE, excess_curvature};
use crate::math::Real;
use crate::penalty::Penalty;

/// What a change of one parameter meets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Along<T> {
    /// `Σ aP`: the expected sum of its feature. Less the observed one it is the slope.
    pub expected: T,
    /// `Σ_g aᵀ(diag P - P Pᵀ)a`, the second derivative.
    pub curvature: T,
    /// What the second derivative is nowhere above: `¼Σ_g range(a)²`, since no variance is more than a quarter of the squared range.
    pub bound: T,
    /// The largest range in a regression: how far two of its scores move apart, for a step of 1.
    pub reach: T,
}

/// Looks along a column. `group` has the regression of each row; `probability` is by rows too.
///
/// ```
/// use gibbsite_core::{column::Column, local_coord::along};
/// // two regressions with two labels each; the parameter scores label 1 in both
/// let column = Column::Sparse { rows: &[1, 3], values: &[1.0f64, 2.0] };
/// let found = along(column, &[0, 0, 1, 1], &[0.5, 0.5, 0.75, 0.25]);
/// assert_eq!((found.expected, found.curvature), (1.0, 0.25 + 4.0 * 0.1875));
/// assert_eq!((found.bound, found.reach), (0.25 + 1.0, 2.0));
/// ```
#[inline]
pub fn along<V: Real, T: Real>(column: Column<'_, V>, group: &[u32], probability: &[T]) -> Along<T> {
    let zero = T::zero();
    let mut all = Along { expected: zero, curvature: zero, bound: zero, reach: zero };
    let mut open: Option<(u32, Share<T>)> = None;
    for (row, a) in column.iter::<T>() {
        let (Some(&g), Some(&p)) = (group.get(row), probability.get(row)) else { continue };
        let share = match open {
            Some((same, share)) if same == g => share,
            Some((_, done)) => {
                all.add(done);
                Share::default_of(zero)
            }
            None => Share::default_of(zero),
        };
        open = Some((g, share.with(a, p)));
    }
    if let Some((_, done)) = open {
        all.add(done);
    }
    all
}

/// One regression's share; scores that the parameter leaves alone count as moved by 0.
#[derive(Clone, Copy)]
struct Share<T> {
    mean: T,
    square: T,
    least: T,
    most: T,
}

impl<T: Real> Share<T> {
    #[inline(always)]
    fn default_of(zero: T) -> Self {
        Self { mean: zero, square: zero, least: zero, most: zero }
    }

    #[inline(always)]
    fn with(self, a: T, p: T) -> Self {
        Self {
            mean: self.mean + a * p,
            square: self.square + a * a * p,
            least: self.least.smaller(a),
            most: self.most.larger(a),
        }
    }
}

impl<T: Real> Along<T> {
    #[inline(always)]
    fn add(&mut self, share: Share<T>) {
        let range = share.most - share.least;
        self.expected += share.mean;
        self.curvature += (share.square - share.mean * share.mean).larger(T::zero());
        self.bound += T::from_f64(0.25) * range * range;
        self.reach = self.reach.larger(range);
    }
}

/// The step of a coordinate at `x`, and the curvature that it was computed with: Newton's (CDN, eq. 4.13 as corrected in SEEDS.md) if `F` is sure to fall by a
/// hundredth of what it predicts, or else that of the bound (Alg. 4.1), which never lets `F` rise. Does not apply it.
///
/// Sure it is by `F(x + d) - F(x) ≤ F'd + penalty(x+d) - penalty(x) + d²·min(½bound, F″·φ(|d|·reach))` with `φ(m) = (e^m - 1 - m)/m²`: along a line the third
/// derivative of `log Σ e^s` is at most its second times the range of the scores' slopes. No loss is evaluated.
///
/// ```
/// use gibbsite_core::{local_coord::{Along, step}, penalty::Penalty};
/// let found = Along { expected: 0.0, curvature: 0.5, bound: 0.5, reach: 1.0 };
/// let l1 = Penalty { l1: 0.5f64, l2: 0.0, positive: false };
/// assert_eq!(step(&l1, 0.0, -1.0, &found), (1.0, 0.5));
/// assert_eq!(step(&l1, 0.0, -0.5, &found).0, 0.0);
/// ```
#[inline]
pub fn step<T: Real>(penalty: &Penalty<T>, x: T, slope: T, along: &Along<T>) -> (T, T) {
    let zero = T::zero();
    if penalty.violation(x, slope) == zero {
        return (zero, along.curvature);
    }
    let curvature = along.curvature.larger(T::from_f64(LEAST_CURVATURE));
    let newton = penalty.minimize(x, slope, curvature) - x;
    let predicted = slope * newton + penalty.change(x, newton);
    let excess =
        (T::from_f64(0.5) * along.bound).smaller(curvature * excess_curvature(newton.abs() * along.reach));
    if predicted + newton * newton * excess <= T::from_f64(0.01) * predicted {
        (newton, curvature)
    } else {
        (penalty.minimize(x, slope, along.bound) - x, along.bound)
    }
}
