//! Fixed point: which units, and what they cost.

use gibbsite_core::image::{FORBIDDEN, Scalar};

/// The smallest unit: `log 2` in units must fit 16 bits for the log-add table.
const SMALLEST: f64 = 1.0 / 65_536.0;
/// Most entries of the log-add table.
const STEPS: f64 = 256.0;

/// Numbers of a model in fixed point.
#[derive(Clone, Debug)]
pub(super) struct Quantised {
    pub(super) unit: f32,
    pub(super) shift: u32,
    pub(super) weights: Vec<i16>,
    pub(super) transitions: Vec<i16>,
    /// The largest distances from the model's numbers.
    pub(super) weight_error: f64,
    pub(super) transition_error: f64,
}

/// Chooses scales and rounds. Weights of states are whole numbers of `unit·2^shift` with the scalar's bits, transitions of
/// `unit` with 16 bits (their table is small): the weights get their full width, transitions a finer unit where they are smaller.
pub(super) fn quantise(scalar: Scalar, weights: &[f64], transitions: &[f64]) -> Quantised {
    let largest = |x: &[f64]| x.iter().filter(|v| v.is_finite()).fold(0.0f64, |m, v| m.max(v.abs()));
    let (top_weight, top_transition) = (largest(weights), largest(transitions));
    let (steps, most) = if scalar == Scalar::I8 { (127.0, 8) } else { (32_767.0, 4) };
    let coarse = (top_weight / steps).max(SMALLEST);
    let fits = |k: i32| {
        let unit = coarse / f64::from(1 << k);
        unit >= SMALLEST && top_transition <= 32_767.0 * unit
    };
    let shift = (0..=most).rev().find(|&k| fits(k));
    let unit = shift.map_or(top_transition / 32_767.0, |k| coarse / f64::from(1 << k)).max(SMALLEST);
    let shift = shift.unwrap_or(0) as u32;
    // Upwards, so that the largest number still fits.
    let unit = (unit as f32).next_up().min(1e18);
    let exact = f64::from(unit);
    let scale = exact * f64::from(1u32 << shift);
    let round = |x: f64, scale: f64, limit: f64| (x / scale).round().clamp(-limit, limit);
    let mut weight_error = 0.0f64;
    let mut transition_error = 0.0f64;
    let weights = weights.iter().map(|&w| {
        let q = round(w, scale, steps);
        weight_error = weight_error.max((q * scale - w).abs());
        q as i16
    });
    let weights = weights.collect();
    let transitions = transitions.iter().map(|&a| {
        if a == f64::NEG_INFINITY {
            return FORBIDDEN;
        }
        let q = round(a, exact, 32_767.0);
        transition_error = transition_error.max((q * exact - a).abs());
        q as i16
    });
    let transitions = transitions.collect();
    Quantised { unit, shift, weights, transitions, weight_error, transition_error }
}

/// The words of core's [`LogAdd`](gibbsite_core::log_add::LogAdd): `log(1 + e^{-d·unit})` in units for steps of `d`.
pub fn log_add_table(unit: f32) -> Vec<u32> {
    let unit = f64::from(unit);
    // Beyond, it rounds to 0.
    let last = -(0.5 * unit).exp_m1().ln() / unit;
    let shift = (last / STEPS).max(1.0).log2().ceil().min(15.0) as u32;
    let step = f64::from(1u32 << shift);
    let count = if last > 0.0 { (last / step).ceil() as usize } else { 0 };
    let value = |i: usize| ((-(i as f64) * step * unit).exp().ln_1p() / unit).round() as u16;
    let values: Vec<u16> = (0..count).map(value).collect();
    let mut words = vec![shift];
    words.extend(values.chunks(2).map(|pair| pair.iter().rev().fold(0, |w, &v| w << 16 | u32::from(v))));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_off_by_half_a_step_at_most() {
        for scalar in [Scalar::I16, Scalar::I8] {
            for (w, a) in [(3.0, 1.5), (1e-7, 2.0), (900.0, 1e-3), (0.0, 0.0), (1e-9, 1e-9), (2.0, 5e5)] {
                let weights: Vec<f64> = (0..50).map(|i| w * f64::sin(f64::from(i))).collect();
                let transitions: Vec<f64> = (0..16).map(|i| a * f64::cos(f64::from(i))).collect();
                let q = quantise(scalar, &weights, &transitions);
                let unit = f64::from(q.unit);
                let half = unit * f64::from(1u32 << q.shift) / 2.0;
                assert!(q.weight_error <= half * 1.000_001, "{scalar:?} {w} {a}: {q:?}");
                assert!(q.transition_error <= unit / 2.0 * 1.000_001, "{scalar:?} {w} {a}: {q:?}");
            }
        }
    }

    /// Everywhere, and in the mean far better.
    #[test]
    fn sums_by_the_table_are_within_their_bound() {
        use gibbsite_core::log_add::LogAdd;
        for unit in [2e-5f32, 1e-3, 0.3, 5.0] {
            let words = log_add_table(unit);
            let (table, u) = (LogAdd::open(&words).unwrap(), f64::from(unit));
            assert!(words.len() <= 130);
            let step = f64::from(1u32 << words[0]);
            let bound = step * step * u / 32.0 + 1.5;
            // In natural logarithms, two thousandths at the most where units are small.
            assert!(bound * u <= 2e-3 || unit > 1e-2, "{unit}: {}", bound * u);
            for d in (0..1_000_000).step_by(7) {
                let found = f64::from(table.add(11, 11 - d) - 11);
                let exact = (-f64::from(d) * u).exp().ln_1p() / u;
                assert!(
                    (found - exact).abs() <= bound,
                    "unit {unit}, d {d}: {found} for {exact}, bound {bound}"
                );
                assert_eq!(table.add(11 - d, 11), table.add(11, 11 - d));
            }
        }
    }
}
