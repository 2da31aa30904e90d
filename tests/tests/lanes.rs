//! The branch-free exponential and logarithm against libm, in units in the last place.

use gibbsite_core::lanes::{Lane, log1p_exp_lane, sigmoid_lane};

fn ulps64(a: f64, b: f64) -> u64 {
    a.to_bits().abs_diff(b.to_bits())
}

fn ulps32(a: f32, b: f32) -> u32 {
    a.to_bits().abs_diff(b.to_bits())
}

#[test]
fn exponentials_are_within_two_units_in_the_last_place() {
    let mut worst = (0, 0);
    for k in -7_070_000..7_090_000i32 {
        let x = f64::from(k) * 1e-4 + 1.234_567e-9;
        worst.0 = worst.0.max(ulps64(x.exp_lane(), libm::exp(x)));
    }
    // Every f32 exponent, with mantissas spread over each.
    for exponent in 0..256u32 {
        for mantissa in (0..1 << 23).step_by(9973) {
            for sign in [0, 1 << 31] {
                let x = f32::from_bits(sign | exponent << 23 | mantissa);
                if (-87.0..88.0).contains(&x) {
                    worst.1 = worst.1.max(ulps32(x.exp_lane(), libm::exp(f64::from(x)) as f32));
                }
            }
        }
    }
    assert!(worst.0 <= 2 && worst.1 <= 2, "{worst:?}");
}

#[test]
fn exponentials_end_well() {
    assert_eq!(f64::NEG_INFINITY.exp_lane(), 0.0);
    assert_eq!((-1e300f64).exp_lane(), 0.0);
    assert_eq!((-88.0f32).exp_lane(), 0.0);
    assert!(f64::INFINITY.exp_lane().is_finite() && 1e300f64.exp_lane() > 1e307);
    assert!(f64::NAN.exp_lane().is_nan() && f32::NAN.exp_lane().is_nan());
    assert_eq!(0f64.exp_lane(), 1.0);
}

#[test]
fn logarithms_are_within_two_units_in_the_last_place() {
    let mut worst = (0, 0);
    for k in 0..1_000_000u32 {
        let e = f64::from(k) / 999_999.0;
        worst.0 = worst.0.max(ulps64(e.ln_1p_lane(), libm::log1p(e)));
        let small = e * 1e-12;
        worst.0 = worst.0.max(ulps64(small.ln_1p_lane(), libm::log1p(small)));
        if k > 0 {
            // Away from 1, where the result itself goes through 0 and only its absolute error is small.
            let x = 0.9 * e;
            worst.0 = worst.0.max(ulps64(x.ln_lane(), libm::log(x)));
            worst.1 = worst.1.max(ulps32((x as f32).ln_lane(), libm::log(f64::from(x as f32)) as f32));
            assert!((e.ln_lane() - libm::log(e)).abs() < 1e-15 * (1.0 + libm::log(e).abs()), "{e}");
        }
        let e = e as f32;
        worst.1 = worst.1.max(ulps32(e.ln_1p_lane(), libm::log1p(f64::from(e)) as f32));
    }
    assert!(worst.0 <= 2 && worst.1 <= 2, "{worst:?}");
}

#[test]
fn sigmoid_and_its_integral_agree_with_the_scalar_ones() {
    for k in -100_000..100_000 {
        let x = f64::from(k) * 1e-2;
        let (a, b) = (sigmoid_lane(x), gibbsite_core::math::sigmoid(x));
        assert!((a - b).abs() <= 4e-16 * b + 1e-307, "{x}: {a} {b}");
        let (a, b) = (log1p_exp_lane(x), gibbsite_core::math::log1p_exp(x));
        assert!((a - b).abs() <= 1e-15 * b + 1e-307, "{x}: {a} {b}");
    }
}
