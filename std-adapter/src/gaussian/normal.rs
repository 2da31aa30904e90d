//! The standard normal distribution: density, distribution function, quantiles, draws.

use rand::{Rng, RngExt};
use std::f64::consts::{FRAC_1_SQRT_2, PI, TAU};

/// `P(Z ≤ z)`.
///
/// ```
/// use gibbsite::gaussian::normal::distribution;
/// assert_eq!(distribution(0.0), 0.5);
/// ```
pub fn distribution(z: f64) -> f64 {
    0.5 * libm::erfc(-z * FRAC_1_SQRT_2)
}

/// `exp(-z²/2) / √(2π)`.
pub fn density(z: f64) -> f64 {
    (-0.5 * z * z).exp() / TAU.sqrt()
}

/// The `z` with `P(|Z| ≤ z) = level`, for a level from 0 to below 1: half the width of a central interval, in standard deviations.
///
/// ```
/// use gibbsite::gaussian::normal::half_width;
/// assert!((half_width(0.95) - 1.959963984540054).abs() < 1e-12);
/// ```
pub fn half_width(level: f64) -> f64 {
    // P(|Z| > z) = erfc(z/√2) falls in z: bisection to the last bit, without cancellation near a level of 1.
    let outside = 1.0 - level;
    let (mut low, mut high) = (0.0, 40.0);
    while high - low > 1e-15 * high {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if libm::erfc(middle * FRAC_1_SQRT_2) > outside { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// The continuous ranked probability score of `N(mean, deviation²)` at `y` (Gneiting & Raftery 2007, eq. 21, with the sign turned): 0 is perfect.
pub fn crps(mean: f64, deviation: f64, y: f64) -> f64 {
    if deviation <= 0.0 {
        return (y - mean).abs();
    }
    let z = (y - mean) / deviation;
    deviation * (z * (2.0 * distribution(z) - 1.0) + 2.0 * density(z) - 1.0 / PI.sqrt())
}

/// Fills with independent draws (Box & Muller 1958).
pub fn draw(rng: &mut impl Rng, out: &mut [f64]) {
    for pair in out.chunks_mut(2) {
        // From (0, 1], so that the logarithm is finite.
        let size = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
        let (sin, cos) = (TAU * rng.random::<f64>()).sin_cos();
        pair.iter_mut().zip([size * cos, size * sin]).for_each(|(o, v)| *o = v);
    }
}
