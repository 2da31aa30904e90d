//! Losses of one prediction `z = aᵀx` against one target `y`: value, derivatives, conjugate.

use crate::lanes::{Lane, log1p_exp_lane, sigmoid_lane, sum_pairs};
use crate::math::{Real, log1p_exp, sigmoid};

/// A smooth convex loss `L(z, y)`.
pub trait Loss: Copy + Send + Sync + core::fmt::Debug + 'static {
    /// Largest second derivative in `z`: the `β` of eq. 4.6 for a column of norm 1.
    const SMOOTHNESS: f64;
    /// Whether the second derivative is the same everywhere.
    const QUADRATIC: bool;
    /// `L(z, y)`.
    fn value<T: Real>(self, z: T, y: T) -> T;
    /// `∂L/∂z`.
    fn slope<T: Real>(self, z: T, y: T) -> T;
    /// `∂²L/∂z²`.
    fn curvature<T: Real>(self, z: T, y: T) -> T;
    /// `-L*(-θ, y)`, the sample's share of the dual objective; `-inf` outside its domain. At `θ = -slope(z, y)` it
    /// is `L(z, y) + θz`.
    fn dual<T: Real>(self, theta: T, y: T) -> T;

    /// `Σ_i L(z_i, y_i)`, in a loop that vector units can take.
    fn total<T: Lane>(self, z: &[T], y: &[T]) -> T;
    /// `u_i = -∂L/∂z_i`, likewise.
    fn residuals<T: Lane>(self, z: &[T], y: &[T], u: &mut [T]);
    /// `∂²L/∂z²` where the residual is `u`.
    fn curvature_at_residual<T: Real>(self, u: T) -> T;
    /// `Σ_i -L*(-s·θ_i, y_i)`, likewise; `-inf` if a term is.
    fn total_dual<T: Lane>(self, scale: T, theta: &[T], y: &[T]) -> T;
}

/// `½(z - y)²` (eq. 4.2).
///
/// ```
/// use gibbsite_core::loss::{Loss, Squared};
/// assert_eq!(Squared.value(3.0, 1.0), 2.0);
/// assert_eq!(Squared.slope(3.0, 1.0), 2.0);
/// assert_eq!(Squared.dual(-2.0, 1.0), Squared.value(3.0, 1.0) + -2.0 * 3.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Squared;

/// `log(1 + e^{-yz})` with `y = ±1` (eq. 4.3).
///
/// ```
/// use gibbsite_core::loss::{Logistic, Loss};
/// assert_eq!(Logistic.value(0.0, 1.0), 2f64.ln());
/// assert_eq!(Logistic.slope(0.0, 1.0), -0.5);
/// assert_eq!(Logistic.curvature(0.0, -1.0), 0.25);
/// assert_eq!(Logistic.dual(2.0, 1.0), f64::NEG_INFINITY);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logistic;

impl Loss for Squared {
    const SMOOTHNESS: f64 = 1.0;
    const QUADRATIC: bool = true;
    #[inline(always)]
    fn value<T: Real>(self, z: T, y: T) -> T {
        let r = z - y;
        T::from_f64(0.5) * r * r
    }
    #[inline(always)]
    fn slope<T: Real>(self, z: T, y: T) -> T {
        z - y
    }
    #[inline(always)]
    fn curvature<T: Real>(self, _: T, _: T) -> T {
        T::one()
    }
    #[inline(always)]
    fn dual<T: Real>(self, theta: T, y: T) -> T {
        theta * (y - T::from_f64(0.5) * theta)
    }
    #[inline(always)]
    fn total<T: Lane>(self, z: &[T], y: &[T]) -> T {
        sum_pairs(z, y, |z, y| self.value(z, y))
    }
    #[inline(always)]
    fn residuals<T: Lane>(self, z: &[T], y: &[T], u: &mut [T]) {
        for ((u, &z), &y) in u.iter_mut().zip(z).zip(y) {
            *u = y - z;
        }
    }
    #[inline(always)]
    fn curvature_at_residual<T: Real>(self, _: T) -> T {
        T::one()
    }
    #[inline(always)]
    fn total_dual<T: Lane>(self, scale: T, theta: &[T], y: &[T]) -> T {
        sum_pairs(theta, y, |theta, y| self.dual(scale * theta, y))
    }
}

impl Loss for Logistic {
    const SMOOTHNESS: f64 = 0.25;
    const QUADRATIC: bool = false;
    #[inline(always)]
    fn value<T: Real>(self, z: T, y: T) -> T {
        log1p_exp(-y * z)
    }
    #[inline(always)]
    fn slope<T: Real>(self, z: T, y: T) -> T {
        -y * sigmoid(-y * z)
    }
    #[inline(always)]
    fn curvature<T: Real>(self, z: T, y: T) -> T {
        let p = sigmoid(-y * z);
        p * (T::one() - p)
    }
    #[inline]
    fn dual<T: Real>(self, theta: T, y: T) -> T {
        let p = theta * y;
        let entropy = |p: T| if p == T::zero() { p } else { -p * p.ln() };
        if p < T::zero() || T::one() < p {
            return T::NEG_INFINITY;
        }
        entropy(p) + entropy(T::one() - p)
    }
    #[inline(always)]
    fn total<T: Lane>(self, z: &[T], y: &[T]) -> T {
        sum_pairs(z, y, |z, y| log1p_exp_lane(-y * z))
    }
    #[inline(always)]
    fn residuals<T: Lane>(self, z: &[T], y: &[T], u: &mut [T]) {
        for ((u, &z), &y) in u.iter_mut().zip(z).zip(y) {
            *u = y * sigmoid_lane(-y * z);
        }
    }
    #[inline(always)]
    fn curvature_at_residual<T: Real>(self, u: T) -> T {
        let p = u.abs();
        p * (T::one() - p)
    }
    #[inline(always)]
    fn total_dual<T: Lane>(self, scale: T, theta: &[T], y: &[T]) -> T {
        // -p·log p is 0 at 0 whatever finite number stands for log 0.
        sum_pairs(theta, y, |theta, y| {
            let p = scale * theta * y;
            let q = T::one() - p;
            let inside = -(p * p.ln_lane() + q * q.ln_lane());
            if p < T::zero() || q < T::zero() { T::NEG_INFINITY } else { inside }
        })
    }
}
