//! Core's coordinate kernels against finite differences and brute-force minimisation in one dimension.

use gibbsite_core::column::Column;
use gibbsite_core::coord::{self, Armijo, Samples};
use gibbsite_core::loss::{Logistic, Loss, Squared};
use gibbsite_core::penalty::Penalty;
use gibbsite_tests::regression::least;
use proptest::prelude::*;

fn penalty() -> impl Strategy<Value = Penalty<f64>> {
    let part = || prop_oneof![Just(0.0), 0.01..3.0];
    (part(), part(), any::<bool>()).prop_map(|(l1, l2, positive)| Penalty { l1, l2, positive })
}

/// Rows that are stored, their values, and for each row a prediction and a label.
fn samples() -> impl Strategy<Value = (Vec<u32>, Vec<f64>, Vec<f64>, Vec<f64>)> {
    (1usize..12).prop_flat_map(|n| {
        (
            prop::collection::vec(any::<bool>(), n),
            prop::collection::vec(prop_oneof![-2.0..-0.1, 0.1..2.0], n),
            prop::collection::vec(-3.0..3.0, n),
            prop::collection::vec(prop_oneof![Just(-1.0), Just(1.0)], n),
        )
            .prop_map(|(stored, values, z, y)| {
                let rows: Vec<u32> = (0..stored.len() as u32).filter(|&i| stored[i as usize]).collect();
                let values = rows.iter().map(|&i| values[i as usize]).collect();
                (rows, values, z, y)
            })
    })
}

fn check_derivatives<L: Loss>(loss: L, z: f64, y: f64) {
    let h = 1e-5;
    let slope = (loss.value(z + h, y) - loss.value(z - h, y)) / (2.0 * h);
    let curvature = (loss.slope(z + h, y) - loss.slope(z - h, y)) / (2.0 * h);
    assert!((loss.slope(z, y) - slope).abs() < 1e-8, "slope {} {slope}", loss.slope(z, y));
    assert!((loss.curvature(z, y) - curvature).abs() < 1e-8);
    assert!(loss.curvature(z, y) <= L::SMOOTHNESS);
    let single = loss.slope(z as f32, y as f32);
    assert!((f64::from(single) - loss.slope(z, y)).abs() < 1e-5);
    assert!((f64::from(loss.value(z as f32, y as f32)) - loss.value(z, y)).abs() < 1e-4);
}

/// `-L*(-θ) = min_z L(z) + θz`.
fn check_dual<L: Loss>(loss: L, theta: f64, y: f64) {
    let at = least(|z| loss.value(z, y) + theta * z, -60.0, 60.0);
    let brute = loss.value(at, y) + theta * at;
    assert!((loss.dual(theta, y) - brute).abs() < 1e-7, "{} {brute}", loss.dual(theta, y));
}

/// `F` along one coordinate, from nothing but the losses.
#[allow(clippy::too_many_arguments)]
fn along<L: Loss>(
    loss: L,
    p: &Penalty<f64>,
    rows: &[u32],
    a: &[f64],
    z: &[f64],
    y: &[f64],
    x: f64,
    new: f64,
) -> f64 {
    let mut moved = z.to_vec();
    rows.iter().zip(a).for_each(|(&i, a)| moved[i as usize] += (new - x) * a);
    moved.iter().zip(y).map(|(&z, &y)| loss.value(z, y)).sum::<f64>() + p.value(new)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn derivatives(z in -5.0..5.0f64, y in -3.0..3.0f64, label in prop_oneof![Just(-1.0), Just(1.0)]) {
        check_derivatives(Squared, z, y);
        check_derivatives(Logistic, z, label);
    }

    #[test]
    fn duals(theta in -3.0..3.0f64, share in 0.001..0.999f64, y in -3.0..3.0f64, label in prop_oneof![Just(-1.0), Just(1.0)]) {
        check_dual(Squared, theta, y);
        check_dual(Logistic, share * label, label);
        prop_assert_eq!(Logistic.dual(-share * label, label), f64::NEG_INFINITY);
        prop_assert_eq!(Logistic.dual((1.0 + share) * label, label), f64::NEG_INFINITY);
        // at θ = -L' the bound is tight
        let z = theta;
        let tight = -Logistic.slope(z, label);
        prop_assert!((Logistic.dual(tight, label) - (Logistic.value(z, label) + tight * z)).abs() < 1e-12);
    }

    #[test]
    fn penalties(p in penalty(), x in -2.0..2.0f64, slope in -4.0..4.0f64, curvature in 0.1..4.0f64, step in -3.0..3.0f64) {
        let x = if p.positive { x.abs() } else { x };
        let model = |v: f64| slope * (v - x) + 0.5 * curvature * (v - x) * (v - x) + p.value(v);
        let brute = least(model, if p.positive { 0.0 } else { -100.0 }, 100.0);
        let found = p.minimize(x, slope, curvature);
        prop_assert!((found - brute).abs() < 1e-6, "{} {}", found, brute);
        prop_assert!(p.violation(found, slope + curvature * (found - x)) < 1e-12);
        let single = Penalty { l1: p.l1 as f32, l2: p.l2 as f32, positive: p.positive };
        prop_assert!((f64::from(single.minimize(x as f32, slope as f32, curvature as f32)) - found).abs() < 1e-3);
        prop_assert!((p.change(x, step) - (p.value(x + step) - p.value(x))).abs() < 1e-12);
        // not optimal, so moving helps
        if p.violation(x, slope) > 1e-3 {
            prop_assert!(model(found) < model(x));
        } else if p.violation(x, slope) == 0.0 {
            prop_assert!((found - x).abs() < 1e-12);
        }
    }

    #[test]
    fn conjugates(p in penalty(), c in -5.0..5.0f64) {
        let low = if p.positive { 0.0 } else { -1000.0 };
        let at = least(|x| p.value(x) - c * x, low, 1000.0);
        let brute = c * at - p.value(at);
        if p.conjugate(c).is_finite() {
            prop_assert!((p.conjugate(c) - brute).abs() < 1e-6, "{} {}", p.conjugate(c), brute);
        } else {
            prop_assert!(p.l2 == 0.0 && brute > 1e-6);
        }
    }

    #[test]
    fn columns_sparse_and_dense((rows, a, z, _) in samples()) {
        let sparse = Column::Sparse { rows: &rows, values: &a };
        let mut whole = vec![0.0; z.len()];
        rows.iter().zip(&a).for_each(|(&i, &a)| whole[i as usize] = a);
        let dense = Column::Dense(&whole);
        prop_assert!((sparse.dot(&z) - dense.dot(&z)).abs() < 1e-12);
        prop_assert!((sparse.weighted_norm2(&z) - dense.weighted_norm2(&z)).abs() < 1e-12);
        prop_assert!((sparse.norm2::<f64>() - dense.norm2::<f64>()).abs() < 1e-12);
        prop_assert!((sparse.sum::<f64>() - whole.iter().sum::<f64>()).abs() < 1e-12);
        prop_assert_eq!(sparse.largest::<f64>(), whole.iter().fold(0.0, |m: f64, v| m.max(v.abs())));
        let (mut s, mut d) = (z.clone(), z.clone());
        sparse.add_to(0.7, &mut s);
        dense.add_to(0.7, &mut d);
        prop_assert_eq!(s, d);
        prop_assert_eq!(sparse.iter::<f64>().map(|e| e.0 as u32).collect::<Vec<_>>(), rows);
    }

    #[test]
    fn squared_update_is_exact((rows, a, z, _) in samples(), p in penalty(), x in -2.0..2.0f64) {
        let x = if p.positive { x.abs() } else { x };
        let column = Column::Sparse { rows: &rows, values: &a };
        let y = vec![0.5; z.len()];
        let mut residual: Vec<f64> = z.iter().zip(&y).map(|(z, y)| y - z).collect();
        let mut new = x;
        let step = coord::squared(column, column.norm2(), &p, &mut new, &mut residual);
        prop_assert_eq!(step, new - x);
        let f = |v: f64| along(Squared, &p, &rows, &a, &z, &y, x, v);
        if !rows.is_empty() {
            let brute = least(f, if p.positive { 0.0 } else { -1000.0 }, 1000.0);
            prop_assert!(f(new) <= f(brute) + 1e-9, "{} {}", new, brute);
        }
        // a second time changes nothing, and the residual is what it says
        let (mut again, mut same) = (new, residual.clone());
        prop_assert!(coord::squared(column, column.norm2(), &p, &mut again, &mut same).abs() < 1e-12);
        for (i, r) in residual.iter().enumerate() {
            let a: f64 = rows.iter().position(|&k| k as usize == i).map_or(0.0, |k| a[k]);
            prop_assert!((y[i] - z[i] - step * a - r).abs() < 1e-12);
        }
        // single precision does the same
        let (af, mut xf): (Vec<f32>, f32) = (a.iter().map(|&a| a as f32).collect(), x as f32);
        let mut rf: Vec<f32> = z.iter().zip(&y).map(|(z, y)| (y - z) as f32).collect();
        let pf = Penalty { l1: p.l1 as f32, l2: p.l2 as f32, positive: p.positive };
        let column = Column::Sparse { rows: &rows, values: &af };
        coord::squared(column, column.norm2(), &pf, &mut xf, &mut rf);
        prop_assert!((f64::from(xf) - new).abs() < 2e-3);
    }

    #[test]
    fn logistic_steps_decrease((rows, a, z, y) in samples(), p in penalty(), x in -2.0..2.0f64) {
        let x = if p.positive { x.abs() } else { x };
        let column = Column::Sparse { rows: &rows, values: &a };
        let norm2: f64 = column.norm2();
        let f = |v: f64| along(Logistic, &p, &rows, &a, &z, &y, x, v);
        let slope = coord::slope(column, Logistic, &z, &y);
        let smooth = |v: f64| f(v) - p.value(v);
        prop_assert!((slope - (smooth(x + 1e-5) - smooth(x - 1e-5)) / 2e-5).abs() < 1e-6);
        let bounded = coord::bounded_step(column, norm2, Logistic, &p, x, &z, &y);
        prop_assert!(f(x + bounded) <= f(x) + 1e-12);
        if coord::violation(column, Logistic, &p, x, &z, &y) > 1e-3 && !rows.is_empty() {
            prop_assert!(f(x + bounded) < f(x));
        }
        let armijo = Armijo::default();
        let residual: Vec<f64> = z.iter().zip(&y).map(|(&z, &y)| -Logistic.slope(z, y)).collect();
        let samples = Samples { z: &z, y: &y, residual: &residual };
        let newton = coord::newton_step(column, &p, x, &z, &y, &armijo);
        let kept = coord::kept_newton_step(column, norm2, &p, x, &samples, &armijo);
        prop_assert!((newton.slope - slope).abs() < 1e-12 && (kept.slope - slope).abs() < 1e-12);
        for found in [newton, kept] {
            let step = found.step;
            if step == 0.0 && !rows.is_empty() {
                prop_assert!(coord::violation(column, Logistic, &p, x, &z, &y) < 1e-9);
            } else if !rows.is_empty() {
                let full = step / 0.5f64.powi(found.trials as i32 - 1);
                let predicted = slope * full + p.value(x + full) - p.value(x);
                let share = step / full;
                prop_assert!(f(x + step) - f(x) <= 0.01 * share * predicted + 1e-12);
            }
        }
        // the bound only ever says yes where the loss would
        prop_assert!((newton.step - kept.step).abs() <= 1e-9 * (1.0 + newton.step.abs()));
    }

    #[test]
    fn newton_converges_to_the_minimum((rows, a, z, y) in samples(), p in penalty()) {
        let p = Penalty { l1: p.l1 + 0.05, ..p };
        let column = Column::Sparse { rows: &rows, values: &a };
        let norm2: f64 = column.norm2();
        let f = |v: f64| along(Logistic, &p, &rows, &a, &z, &y, 0.0, v);
        let (mut x, mut z_now) = (0.0, z.clone());
        let mut u: Vec<f64> = z.iter().zip(&y).map(|(&z, &y)| -Logistic.slope(z, y)).collect();
        for _ in 0..200 {
            let samples = Samples { z: &z_now, y: &y, residual: &u };
            let step = coord::kept_newton_step(column, norm2, &p, x, &samples, &Armijo::default()).step;
            coord::shift(column, Logistic, step, &mut z_now, &y, &mut u);
            x += step;
        }
        let brute = least(f, if p.positive { 0.0 } else { -1000.0 }, 1000.0);
        prop_assert!(f(x) <= f(brute) + 1e-9, "{} {}", x, brute);
        let fresh: Vec<f64> = z_now.iter().zip(&y).map(|(&z, &y)| -Logistic.slope(z, y)).collect();
        prop_assert!(fresh.iter().zip(&u).all(|(a, b)| (a - b).abs() < 1e-12));
        // single precision reaches the same place
        let (af, zf): (Vec<f32>, Vec<f32>) = (a.iter().map(|&v| v as f32).collect(), z.iter().map(|&v| v as f32).collect());
        let yf: Vec<f32> = y.iter().map(|&v| v as f32).collect();
        let pf = Penalty { l1: p.l1 as f32, l2: p.l2 as f32, positive: p.positive };
        let (mut xf, mut zf) = (0.0f32, zf);
        for _ in 0..200 {
            let column = Column::Sparse { rows: &rows, values: &af };
            let step = coord::newton_step(column, &pf, xf, &zf, &yf, &Armijo::default()).step;
            column.add_to(step, &mut zf);
            xf += step;
        }
        prop_assert!(f(f64::from(xf)) <= f(x) + 1e-3, "{} {}", xf, x);
    }
}
