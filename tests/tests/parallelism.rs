//! `ρ`, `P*`, and what Thesis 4.3 says about them.

use gibbsite::par::Par;
use gibbsite::regress::certificate::lambda_max;
use gibbsite::regress::problem::{Problem, Weights};
use gibbsite::solver::monitor::Monitor;
use gibbsite::solver::shotgun::{self, ShotgunParams};
use gibbsite::theory::parallelism::{
    Bound, SimulateError, SimulateParams, SpectralParams, simulate, spectral_radius,
};
use gibbsite_core::loss::Squared;
use gibbsite_tests::regression::{
    Shape, compressed_imaging, dense, from_dense, largest_eigenvalue, matrix, rng, target,
};
use proptest::prelude::*;
use rand::RngExt;

/// Columns scaled to norm 1; zero columns stay.
fn unit(rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let d = rows.first().map_or(0, Vec::len);
    let norm = |j: usize| rows.iter().map(|r| r[j] * r[j]).sum::<f64>().sqrt();
    let norms: Vec<f64> = (0..d).map(|j| if norm(j) > 0.0 { norm(j) } else { 1.0 }).collect();
    rows.iter().map(|r| r.iter().zip(&norms).map(|(v, n)| v / n).collect()).collect()
}

fn gram(rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let d = rows.first().map_or(0, Vec::len);
    (0..d).map(|i| (0..d).map(|j| rows.iter().map(|r| r[i] * r[j]).sum()).collect()).collect()
}

fn objective(rows: &[Vec<f64>], y: &[f64], lambda: f64, x: &[f64]) -> f64 {
    let fit: f64 =
        rows.iter().zip(y).map(|(r, y)| (r.iter().zip(x).map(|(a, x)| a * x).sum::<f64>() - y).powi(2)).sum();
    0.5 * fit + lambda * x.iter().map(|x| x.abs()).sum::<f64>()
}

/// Eq. 4.5 without duplicated features for unit columns: where each coordinate alone would go, as changes.
fn updates(rows: &[Vec<f64>], y: &[f64], lambda: f64, x: &[f64]) -> Vec<f64> {
    let residual: Vec<f64> =
        rows.iter().zip(y).map(|(r, y)| y - r.iter().zip(x).map(|(a, x)| a * x).sum::<f64>()).collect();
    (0..x.len())
        .map(|j| {
            let norm2: f64 = rows.iter().map(|r| r[j] * r[j]).sum();
            let goal = x[j] + rows.iter().zip(&residual).map(|(r, u)| r[j] * u).sum::<f64>();
            if norm2 == 0.0 { -x[j] } else { goal.signum() * (goal.abs() - lambda).max(0.0) - x[j] }
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rho_is_the_largest_eigenvalue(rows in 1usize..15, columns in 1usize..15, density in 0.2..1.0f64, correlation in 0.0..0.9f64, spread in 0.0..3.0f64, duplicates in 0usize..3, zero_every in 0usize..4, seed in 0u64..1000) {
        let shape = Shape { rows, columns, density, correlation, spread, duplicates, zero_every };
        let m = matrix(&shape, seed);
        let exact = largest_eigenvalue(gram(&unit(&dense(&m))));
        let params = SpectralParams { tolerance: 1e-13, max_iterations: 100_000, ..SpectralParams::default() };
        let found = spectral_radius(&m, &params);
        prop_assert!((found.rho - exact).abs() <= 1e-9 * exact.max(1e-9), "{} {}", found.rho, exact);
        prop_assert!(found.rho <= exact * (1.0 + 1e-9));
        let live = (0..columns).filter(|&j| m.column(j).norm2::<f64>() > 0.0).count();
        prop_assert_eq!(found.columns, live);
        prop_assert!(found.p_star() >= 1 && found.p_star() <= live.max(1));
        prop_assert!(found.p_star_plain() <= found.p_star());
    }

    /// Theorem 4.3.1 with the sum over `i ≠ j`: for any set of coordinates the change of `F` is at most sequential progress plus interference.
    #[test]
    fn interference_bound(rows in 1usize..10, columns in 1usize..10, seed in 0u64..1000, mask in any::<u16>(), lambda in 0.0..1.0f64) {
        let m = matrix(&Shape { correlation: 0.4, duplicates: 1, ..Shape::new(rows, columns, 0.8) }, seed);
        let a = unit(&dense(&m));
        let y = target(&m, 0.5, seed);
        let x: Vec<f64> = (0..columns).map(|j| if j % 3 == 0 { 0.0 } else { ((j + 1) as f64 * seed as f64).sin() }).collect();
        let zero = |j: usize| a.iter().all(|r| r[j] == 0.0);
        let delta: Vec<f64> = updates(&a, &y, lambda, &x).iter().enumerate().map(|(j, d)| if mask >> j & 1 == 1 && !zero(j) { *d } else { 0.0 }).collect();
        let moved: Vec<f64> = x.iter().zip(&delta).map(|(x, d)| x + d).collect();
        let g = gram(&a);
        let mut bound = 0.0;
        for i in 0..columns {
            bound -= 0.5 * delta[i] * delta[i];
            for j in (0..columns).filter(|&j| j != i) {
                bound += 0.5 * g[i][j] * delta[i] * delta[j];
            }
        }
        let change = objective(&a, &y, lambda, &moved) - objective(&a, &y, lambda, &x);
        prop_assert!(change <= bound + 1e-9, "{} {}", change, bound);
    }

    /// Lemma 4.3.3, over all sets of `P` of the `2d` duplicated features: `E[F(x+Δx) - F(x)] ≤ P·E_j[δx_j ∇F_j + ½(1 + ε)δx_j²]`.
    #[test]
    fn expected_progress_bound(rows in 1usize..6, columns in 1usize..5, seed in 0u64..1000, parallel in 1usize..5, lambda in 0.0..1.0f64) {
        let m = matrix(&Shape { correlation: 0.4, ..Shape::new(rows, columns, 1.0) }, seed);
        let single = unit(&dense(&m));
        let doubled: Vec<Vec<f64>> = single.iter().map(|r| r.iter().copied().chain(r.iter().map(|v| -v)).collect()).collect();
        let y = target(&m, 0.5, seed);
        let d2 = 2 * columns;
        let parallel = parallel.min(d2);
        let x: Vec<f64> = (0..d2).map(|j| if j % 3 == 0 { 0.0 } else { ((j + 1) as f64 * seed as f64).sin().abs() }).collect();
        let residual: Vec<f64> = doubled.iter().zip(&y).map(|(r, y)| y - r.iter().zip(&x).map(|(a, x)| a * x).sum::<f64>()).collect();
        let gradient: Vec<f64> = (0..d2).map(|j| lambda - doubled.iter().zip(&residual).map(|(r, u)| r[j] * u).sum::<f64>()).collect();
        let delta: Vec<f64> = x.iter().zip(&gradient).map(|(x, g)| (-x).max(-g)).collect();
        // ρ of the duplicated problem is what the proof's spectral radius bounds
        let rho = largest_eigenvalue(gram(&doubled));
        let epsilon = (parallel - 1) as f64 * (rho - 1.0) / (d2 - 1) as f64;
        let (mut mean, mut sets) = (0.0, 0.0);
        for mask in 0u32..1 << d2 {
            if mask.count_ones() as usize == parallel {
                let moved: Vec<f64> = (0..d2).map(|j| if mask >> j & 1 == 1 { x[j] + delta[j] } else { x[j] }).collect();
                mean += objective(&doubled, &y, lambda, &moved) - objective(&doubled, &y, lambda, &x);
                sets += 1.0;
            }
        }
        let bound: f64 = delta.iter().zip(&gradient).map(|(d, g)| d * g + 0.5 * (1.0 + epsilon) * d * d).sum::<f64>() * parallel as f64 / d2 as f64;
        prop_assert!(mean / sets <= bound + 1e-9, "{} {}", mean / sets, bound);
    }
}

/// As a user gets it: columns of ±1, whose eigenvalues lie close together at the top, and the same with a third of them repeated.
#[test]
fn rho_and_p_star_are_right_by_default() {
    for (seed, repeated) in [(1u64, 0usize), (2, 0), (3, 100)] {
        let mut rng = rng(seed);
        let mut sign = || if rng.random_range(0..2) == 0 { -1.0 } else { 1.0 };
        let mut rows: Vec<Vec<f64>> = (0..200).map(|_| (0..300).map(|_| sign()).collect()).collect();
        rows.iter_mut().for_each(|row| row.copy_within(..repeated, 300 - repeated));
        let m = from_dense(&rows);
        // The non-zero eigenvalues of AᵀA are those of AAᵀ, which is smaller.
        let u = unit(&rows);
        let outer: Vec<Vec<f64>> =
            u.iter().map(|a| u.iter().map(|b| a.iter().zip(b).map(|(a, b)| a * b).sum()).collect()).collect();
        let exact = largest_eigenvalue(outer);
        for seed in 0..3 {
            let found = spectral_radius(&m, &SpectralParams { seed, ..SpectralParams::default() });
            assert!(found.converged && found.iterations <= 100, "{found:?}");
            assert!((found.rho / exact - 1.0).abs() < 1e-5, "{} {exact}", found.rho);
            assert_eq!(found.p_star(), (300.0 / exact) as usize);
        }
    }
}

#[test]
fn rounds_fall_as_one_over_p_and_blow_up_beyond() {
    let (m, y, _) = compressed_imaging(20, 200, 8, 0.02, 1);
    let mut p = Problem::new(&m, &y, Squared, 0.0);
    p.lambda = 0.05 * lambda_max(&p, Par::Seq);
    let d = m.columns();
    let gap = 1e-9 * p.objective_at_zero();
    let best = shotgun::solve(&p, Weights::zero(d), &ShotgunParams::new(gap), &mut Monitor::new(None));
    let spectral = spectral_radius(&m, &SpectralParams::default());
    let p_star = spectral.p_star();
    assert!(p_star >= 16, "a problem with parallelism to find: {spectral:?}");
    let parallel: Vec<usize> = vec![1, 2, 4, 8, p_star / 2, p_star, d];
    let params = SimulateParams { runs: 10, max_epochs: 2000, ..SimulateParams::new(parallel) };
    let found = simulate(&p, best.certificate.objective, &params).expect("a proper problem");
    let (last, linear) = found.split_last().expect("seven of them");
    for point in linear {
        let gained = point.speed_up(&found[0]).expect("Shooting converges, and so does Shotgun below P*");
        let ratio = point.parallel as f64 / gained;
        assert!((0.8..=1.2).contains(&ratio), "{point:?}: {ratio} of 1/P");
        let (rounds, se) = (point.rounds.expect("it converges") as f64, point.rounds_se().expect("ten runs"));
        assert!(se > 0.0 && se < 0.2 * rounds, "{point:?}: {se}");
        // Runs are compared with themselves: of the luck of each, little is left.
        let gained_se = point.speed_up_se(&found[0]).expect("ten runs");
        assert!(gained_se / gained < 0.05, "{point:?}: {gained_se}");
    }
    assert!(last.diverged, "{last:?}");
    // the same numbers on two threads
    let two = SimulateParams { par: Par::Rayon(2), ..params };
    assert_eq!(Par::Rayon(2).run(|_| simulate(&p, best.certificate.objective, &two)).expect("again"), found);
}

/// On columns of ±1, where single runs differ by a third, whatever the seed; and no run of a seed is one of its neighbour's.
#[test]
fn speed_ups_do_not_depend_on_the_seed() {
    let mut rng = rng(5);
    let mut sign = || if rng.random_range(0..2) == 0 { -1.0 } else { 1.0 };
    let m = from_dense(&(0..60).map(|_| (0..90).map(|_| sign()).collect()).collect::<Vec<_>>());
    let y = target(&m, 0.1, 5);
    let mut p = Problem::new(&m, &y, Squared, 0.0);
    p.lambda = 0.05 * lambda_max(&p, Par::Seq);
    let gap = 1e-9 * p.objective_at_zero();
    let best = shotgun::solve(&p, Weights::zero(90), &ShotgunParams::new(gap), &mut Monitor::new(None));
    let run = |seed| {
        let params = SimulateParams { seed, ..SimulateParams::new(vec![1, 2, 4]) };
        simulate(&p, best.certificate.objective, &params).expect("a proper problem")
    };
    for seed in 0..5 {
        let found = run(seed);
        for point in &found[1..] {
            let ratio = point.parallel as f64 / point.speed_up(&found[0]).expect("below P*");
            assert!((0.8..=1.2).contains(&ratio), "{seed}: {point:?}: {ratio} of 1/P");
        }
    }
    let two = |seed| {
        let params = SimulateParams { seed, runs: 2, ..SimulateParams::new(vec![1]) };
        simulate(&p, best.certificate.objective, &params).expect("a proper problem")[0].without.clone()
    };
    // Without the first run it is the second, and the other way round.
    assert_ne!(two(0)[0], two(1)[1]);
}

#[test]
fn bound_of_the_theorem() {
    let bound = Bound { columns: 100, rho: 5.0, distance: 2.0, start: 3.0 };
    assert_eq!(bound.rounds_ratio(1), Some(1.0));
    let epsilon = 19.0 * 4.0 / 199.0;
    let ratio = (2.0 + 6.0 / (1.0 - epsilon)) / (8.0 * 20.0);
    assert!((bound.rounds_ratio(20).expect("below 1") - ratio).abs() < 1e-15);
    assert_eq!(bound.rounds_ratio(51), None);
}

#[test]
fn simulation_refuses_nonsense() {
    let m = from_dense(&[vec![1.0, 0.0], vec![0.0, 1.0]]);
    let p = Problem::new(&m, &[1.0, 1.0], Squared, 0.1);
    let params = SimulateParams::new(vec![1]);
    assert_eq!(simulate(&p, 0.0, &params), Err(SimulateError::Optimum(0.0)));
    assert_eq!(simulate(&p, 1.0, &SimulateParams { runs: 0, ..params.clone() }), Err(SimulateError::NoRuns));
    let many = SimulateParams::new(vec![1, 3]);
    assert_eq!(simulate(&p, 1.0, &many), Err(SimulateError::Parallel { asked: 3, columns: 2 }));
    let zeros = spectral_radius(&from_dense(&[vec![0.0]]), &SpectralParams::default());
    assert_eq!((zeros.rho, zeros.columns, zeros.p_star()), (0.0, 0, 1));
}
