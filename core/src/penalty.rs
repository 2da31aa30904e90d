//! What a weight costs: `λ|x| + ½μx²`, and `x ≥ 0` if asked. Value, coordinate minimiser, optimality violation, conjugate.

use crate::math::{Real, soft_threshold};

/// The penalty of one coordinate: `l1·|x| + ½·l2·x²`, infinite below 0 if `positive`. Both factors are at least 0.
///
/// ```
/// use gibbsite_core::penalty::Penalty;
/// let lasso = Penalty { l1: 1.0, l2: 0.0, positive: false };
/// assert_eq!(lasso.value(-2.0), 2.0);
/// // ½(x - 3)² + |x| is least at 2, where the slope of the first term is -1
/// assert_eq!(lasso.minimize(0.0, -3.0, 1.0), 2.0);
/// assert_eq!(lasso.violation(2.0, -1.0), 0.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Penalty<T> {
    /// Weight of `|x|`.
    pub l1: T,
    /// Weight of `½x²`.
    pub l2: T,
    /// Whether negative values are forbidden.
    pub positive: bool,
}

impl<T: Real> Penalty<T> {
    /// `l1·|x| + ½·l2·x²`. A negative `x` under `positive` is not priced: no routine here makes one.
    #[inline(always)]
    pub fn value(&self, x: T) -> T {
        self.l1 * x.abs() + T::from_f64(0.5) * self.l2 * x * x
    }

    /// `value(x + step) - value(x)`, without cancellation where the sign stays the same.
    ///
    /// ```
    /// use gibbsite_core::penalty::Penalty;
    /// let lasso = Penalty { l1: 1.0, l2: 0.0, positive: false };
    /// assert_eq!(lasso.change(1e9, -1e-9), -1e-9);
    /// assert_eq!(lasso.change(1.0, -3.0), 1.0);
    /// ```
    #[inline(always)]
    pub fn change(&self, x: T, step: T) -> T {
        let (zero, after) = (T::zero(), x + step);
        let side = if x >= zero && after >= zero {
            self.l1
        } else if x <= zero && after <= zero {
            -self.l1
        } else {
            return self.value(after) - self.value(x);
        };
        step * (side + self.l2 * (x + T::from_f64(0.5) * step))
    }

    /// The minimiser over `v` of `slope·(v - x) + ½·curvature·(v - x)² + value(v)`: eq. 4.5 without duplicated
    /// features, eqs. 4.13 and 4.14 as corrected in SEEDS.md, with the ridge term added.
    ///
    /// Where that is flat (no curvature, no ridge), a penalised weight goes to 0 and a free one stays.
    #[inline(always)]
    pub fn minimize(&self, x: T, slope: T, curvature: T) -> T {
        let total = curvature + self.l2;
        if total <= T::zero() {
            return if self.l1 > T::zero() { T::zero() } else { x };
        }
        let target = curvature * x - slope;
        if self.positive {
            (target - self.l1).larger(T::zero()) / total
        } else {
            soft_threshold(target, self.l1) / total
        }
    }

    /// Distance of 0 from `slope + ∂value(x)`, where `slope` is the loss's derivative: 0 exactly at an optimum.
    #[inline(always)]
    pub fn violation(&self, x: T, slope: T) -> T {
        let zero = T::zero();
        if x == zero {
            let down = (-slope - self.l1).larger(zero);
            if self.positive { down } else { down.larger(slope - self.l1) }
        } else {
            let side = if x < zero { -self.l1 } else { self.l1 };
            (slope + self.l2 * x + side).abs()
        }
    }

    /// `sup_x (c·x - value(x))`: the price of a dual point whose product with this column is `c`.
    ///
    /// ```
    /// use gibbsite_core::penalty::Penalty;
    /// let net = Penalty { l1: 1.0, l2: 2.0, positive: false };
    /// assert_eq!(net.conjugate(-3.0), 1.0);
    /// assert_eq!(Penalty { l2: 0.0, ..net }.conjugate(-3.0), f64::INFINITY);
    /// assert_eq!(Penalty { positive: true, ..net }.conjugate(-3.0), 0.0);
    /// ```
    #[inline(always)]
    pub fn conjugate(&self, c: T) -> T {
        let excess = self.excess(c);
        if excess <= T::zero() {
            T::zero()
        } else if self.l2 > T::zero() {
            excess * excess / (self.l2 + self.l2)
        } else {
            T::INFINITY
        }
    }

    /// How far `c` lies beyond what `l1` covers; not positive if it does not.
    #[inline(always)]
    pub fn excess(&self, c: T) -> T {
        if self.positive { c - self.l1 } else { c.abs() - self.l1 }
    }
}
