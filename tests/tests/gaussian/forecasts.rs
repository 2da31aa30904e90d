//! Predicting.

use super::dense;
use gibbsite::gaussian::normal::{crps, distribution, draw, half_width};
use gibbsite::gaussian::predict::Forecaster;
use gibbsite::gaussian::score::{Widths, score};
use gibbsite::linalg::Dense;
use gibbsite::par::Par;
use gibbsite_tests::gaussian::{Rows, from_fn, inverse, noise, times};
use proptest::prelude::*;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

fn model(seed: u64, n: usize, p: usize) -> (Rows, Rows, Vec<f64>, Forecaster) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let half = from_fn(p, p, |_, _| noise(&mut rng));
    let lambda = from_fn(p, p, |i, j| {
        (0..p).map(|k| half[i][k] * half[j][k]).sum::<f64>() + f64::from(u8::from(i == j))
    });
    let theta = from_fn(n, p, |_, _| noise(&mut rng));
    let shift: Vec<f64> = (0..p).map(|_| noise(&mut rng)).collect();
    let found = Forecaster::new(dense(&lambda, p), dense(&theta, p), shift.clone()).unwrap();
    (lambda, theta, shift, found)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Means, and revisions by the covariance form `μ_u + Σ_uo Σ_oo⁻¹ (y_o - μ_o)`, `Σ_uu - Σ_uo Σ_oo⁻¹ Σ_ou`.
    #[test]
    fn forecasts_are_the_conditional_gaussian(seed: u64, n in 0usize..4, p in 1usize..6, bits in 0u32..32) {
        let (lambda, theta, shift, model) = model(seed, n, p);
        let (sigma, _) = inverse(&lambda).unwrap();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed ^ 7);
        let x = from_fn(1, n, |_, _| noise(&mut rng));
        let y: Vec<f64> = (0..p).map(|_| noise(&mut rng)).collect();
        let through = if n == 0 { vec![vec![0.0; p]] } else { times(&x, &times(&theta, &sigma)) };
        let mean: Vec<f64> = (0..p).map(|j| shift[j] - through[0][j]).collect();
        let found = model.means(Par::Seq, &dense(&x, n));
        for (j, m) in mean.iter().enumerate() {
            prop_assert!((found.get(0, j) - m).abs() < 1e-9 * (1.0 + m.abs()));
        }
        let known: Vec<bool> = (0..p).map(|j| bits >> j & 1 == 1).collect();
        let given = model.given(&known);
        let mut revised = mean.clone();
        given.revise(&model, &y, &mut revised);
        let seen: Vec<usize> = (0..p).filter(|&j| known[j]).collect();
        let (inner, _) = inverse(&from_fn(seen.len(), seen.len(), |a, b| sigma[seen[a]][seen[b]])).unwrap();
        for u in 0..p {
            if known[u] {
                prop_assert_eq!((revised[u], given.deviations()[u]), (y[u], 0.0));
                continue;
            }
            let gain: Vec<f64> = (0..seen.len())
                .map(|b| (0..seen.len()).map(|a| sigma[u][seen[a]] * inner[a][b]).sum())
                .collect();
            let pull: f64 = (0..seen.len()).map(|b| gain[b] * (y[seen[b]] - mean[seen[b]])).sum();
            let lost: f64 = (0..seen.len()).map(|b| gain[b] * sigma[u][seen[b]]).sum();
            prop_assert!((revised[u] - mean[u] - pull).abs() < 1e-8 * (1.0 + pull.abs()));
            let variance = given.deviations()[u] * given.deviations()[u];
            prop_assert!((variance - (sigma[u][u] - lost)).abs() < 1e-9 * (1.0 + sigma[u][u]));
        }
    }
}

/// CRPS as the integral that it is defined by.
#[test]
fn crps_is_its_integral() {
    for (mean, deviation, y) in [(0.0, 1.0, 0.3), (1.0, 2.0, -4.0), (-2.0, 0.5, -1.9)] {
        let (low, high, steps) = (-40.0, 40.0, 400_000);
        let h = (high - low) / f64::from(steps);
        let sum: f64 = (0..steps)
            .map(|k| {
                let z: f64 = low + (f64::from(k) + 0.5) * h;
                let below = distribution((z - mean) / deviation) - f64::from(u8::from(z >= y));
                below * below * h
            })
            .sum();
        assert!((sum - crps(mean, deviation, y)).abs() < 1e-4, "{sum} {}", crps(mean, deviation, y));
    }
    assert_eq!(crps(1.0, 0.0, 3.0), 2.0);
    for level in [0.1, 0.5, 0.9, 0.999] {
        let z = half_width(level);
        assert!((distribution(z) - distribution(-z) - level).abs() < 1e-14, "{level}");
    }
}

/// Samples have the covariance of the model, and intervals hold as often as they say: one by one, and jointly.
#[test]
fn samples_and_intervals_are_honest() {
    let p = 5;
    let (lambda, _, _, model) = model(3, 2, p);
    let (sigma, _) = inverse(&lambda).unwrap();
    let count = 40_000;
    let given = model.given(&[false, true, false, false, false]);
    let draws = given.draws(p, count, 1);
    assert!((0..count).all(|k| draws.get(1, k) == 0.0));
    let free = model.given(&[]);
    let draws = free.draws(p, count, 2);
    for i in 0..p {
        for j in 0..p {
            let found: f64 =
                (0..count).map(|k| draws.get(i, k) * draws.get(j, k)).sum::<f64>() / count as f64;
            let noise = ((sigma[i][i] * sigma[j][j] + sigma[i][j] * sigma[i][j]) / count as f64).sqrt();
            assert!((found - sigma[i][j]).abs() < 5.0 * noise, "{i} {j}");
        }
    }
    let widths = Widths { own: half_width(0.9), joint: model.joint_half_width(&free, 0.9, 20_000, 5) };
    assert!(widths.joint > widths.own);
    let means = Dense::zeros(count, p);
    let scored = score(&model, &means, &draws.transposed(), widths).unwrap();
    assert!((scored.coverage - 0.9).abs() < 0.006, "{}", scored.coverage);
    assert!((scored.joint_coverage - 0.9).abs() < 0.012, "{}", scored.joint_coverage);
    assert_eq!((scored.rows, scored.cells), (count, count * p));
}

/// The log loss of a row is the density of the known outputs, others integrated out.
#[test]
fn missing_cells_are_left_out_of_scores() {
    let (lambda, _, _, model) = model(8, 1, 3);
    let (sigma, _) = inverse(&lambda).unwrap();
    let y =
        Dense::from_fn(
            3,
            3,
            |i, j| if i == 0 || (i, j) == (1, 2) { f64::NAN } else { (i + 2 * j) as f64 * 0.3 },
        );
    let means = Dense::from_fn(3, 3, |i, j| 0.1 * (i as f64 - j as f64));
    let found = score(&model, &means, &y, Widths { own: 1.0, joint: 1.0 }).unwrap();
    assert_eq!((found.rows, found.cells), (2, 5));
    let mut expected = 0.0;
    for (row, which) in [(1, vec![0, 1]), (2, vec![0, 1, 2])] {
        let own = from_fn(which.len(), which.len(), |a, b| sigma[which[a]][which[b]]);
        let (inner, log_det) = inverse(&own).unwrap();
        let e: Vec<f64> = which.iter().map(|&j| y.get(row, j) - means.get(row, j)).collect();
        let square: f64 =
            (0..e.len()).map(|a| (0..e.len()).map(|b| e[a] * inner[a][b] * e[b]).sum::<f64>()).sum();
        expected += 0.5 * (e.len() as f64 * std::f64::consts::TAU.ln() + log_det + square);
    }
    assert!((found.log_loss - expected / 2.0).abs() < 1e-10);
    let nothing = Dense::from_fn(1, 3, |_, _| f64::NAN);
    assert!(score(&model, &Dense::zeros(1, 3), &nothing, Widths { own: 1.0, joint: 1.0 }).is_none());
}

#[test]
fn draws_are_normal() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(4);
    let mut z = vec![0.0; 100_001];
    draw(&mut rng, &mut z);
    z.sort_unstable_by(f64::total_cmp);
    let count = z.len() as f64;
    // Kolmogorov and Smirnov: 1.95/√n is exceeded once in a thousand times; the seed is fixed.
    let apart =
        z.iter().enumerate().map(|(k, v)| (distribution(*v) - k as f64 / count).abs()).fold(0.0, f64::max);
    assert!(apart < 1.95 / count.sqrt(), "{apart}");
}
