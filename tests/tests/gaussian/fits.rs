//! Learning.

use super::{SOLVERS, data, dense, exact, rows, solve, textbook};
use gibbsite::gaussian::cv::{CvLoss, GaussianCvParams, cross_validate};
use gibbsite::gaussian::{GaussianError, GaussianParams, Theta, fit, path};
use gibbsite::linalg::Dense;
use gibbsite::objective::gaussian::Gaussian;
use gibbsite::par::Par;
use gibbsite::sparse::Sparse;
use gibbsite_tests::gaussian::{Rows, from_fn, inverse, noise};
use proptest::prelude::*;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// A positive definite matrix and any Θ.
fn point(seed: u64, n: usize, p: usize) -> (Rows, Rows) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let half = from_fn(p, p, |_, _| noise(&mut rng));
    let lambda = from_fn(p, p, |i, j| {
        (0..p).map(|k| half[i][k] * half[j][k]).sum::<f64>() + f64::from(u8::from(i == j))
    });
    (lambda, from_fn(n, p, |_, _| noise(&mut rng)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Eq. 3 and its slopes against the density and finite differences of it; also where the samples are compressed (`m > 2(n + p)`).
    #[test]
    fn slopes_are_those_of_the_density(seed: u64, m in 2usize..40, n in 0usize..5, p in 1usize..5) {
        let (x, y) = data(seed, m, n, p);
        let book = textbook(x, y, n, 0.0, 0.0);
        let (lambda, theta) = point(seed ^ 1, n, p);
        let problem = Gaussian::new(dense(&book.x, n), dense(&book.y, p), Par::Seq);
        let state = problem.state(dense(&lambda, p), dense(&theta, p)).unwrap();
        let value = book.smooth(&lambda, &theta);
        prop_assert!((state.value - value).abs() <= 1e-10 * (1.0 + value.abs()), "{} {value}", state.value);
        let slopes = problem.slopes(&state);
        let h = 1e-5;
        let close = |found: f64, up: f64, down: f64, scale: f64| {
            let expected = (up - down) / (2.0 * h);
            (found - expected).abs() <= 1e-5 * (scale + expected.abs() + value.abs())
        };
        for i in 0..p {
            for j in 0..=i {
                let moved = |by: f64| {
                    let mut l = lambda.clone();
                    l[i][j] += by;
                    if i != j { l[j][i] += by; }
                    book.smooth(&l, &theta)
                };
                // A pair moves two entries.
                let found = if i == j { slopes.lambda.get(i, j) } else { 2.0 * slopes.lambda.get(i, j) };
                prop_assert!(close(found, moved(h), moved(-h), 1.0), "Λ {i} {j}");
            }
        }
        for i in 0..n {
            for j in 0..p {
                let moved = |by: f64| {
                    let mut t = theta.clone();
                    t[i][j] += by;
                    book.smooth(&lambda, &t)
                };
                prop_assert!(close(slopes.theta.get(i, j), moved(h), moved(-h), 1.0), "Θ {i} {j}");
            }
        }
    }

    /// All four solvers end where slow proximal gradient steps of the textbook do, and the textbook says that it is an optimum.
    #[test]
    fn solvers_find_the_optimum(
        seed: u64, m in 6usize..30, n in 0usize..4, p in 1usize..4,
        pairs in 0.05f64..0.8, theta in 0.05f64..0.8, diagonal: bool,
    ) {
        let (x, y) = data(seed, m, n, p);
        let mut book = textbook(x, y, n, pairs, theta);
        book.diagonal = if diagonal { pairs } else { 0.0 };
        let (lambda, inputs) = book.optimum(1e-7, 20_000);
        let best = book.objective(&lambda, &inputs);
        let mut objectives = Vec::new();
        for solver in SOLVERS {
            // Gradient steps alone end at rounding before 10⁻⁸; 10⁻⁵ of violation is 10⁻¹⁰ of the objective.
            let within = if solver == SOLVERS[3] { 1e-5 } else { 1e-8 };
            let found = solve(&book, &GaussianParams { tolerance: within, ..exact(solver) });
            let (l, t) = (rows(&found.lambda), rows(&found.theta));
            let own = book.objective(&l, &t);
            prop_assert!((own - found.objective).abs() <= 1e-10 * (1.0 + own.abs()), "{solver:?}");
            prop_assert!(found.converged, "{solver:?} {:?} {}", found.stop, found.violation);
            // The solvers' violation is in the same numbers but for rounding.
            let scale = pairs.max(theta);
            prop_assert!(book.violation(&l, &t) <= 2.0 * within * scale + 1e-10, "{solver:?}");
            prop_assert!(own <= best + 1e-8 * (1.0 + best.abs()), "{solver:?} {own} {best}");
            prop_assert!(inverse(&l).is_some());
            objectives.push(own);
        }
        for own in &objectives {
            prop_assert!((own - objectives[0]).abs() <= 1e-8 * (1.0 + objectives[0].abs()), "{objectives:?}");
        }
    }

    /// `λ_max` is the least penalty without pairs and inputs.
    #[test]
    fn nothing_is_left_exactly_from_lambda_max_on(seed: u64, m in 4usize..30, n in 1usize..5, p in 1usize..5) {
        let (x, y) = data(seed, m, n, p);
        let top = |lambda: f64| solve(&textbook(x.clone(), y.clone(), n, lambda, lambda), &exact(SOLVERS[0]));
        let (xm, ym) = (dense(&x, n), dense(&y, p));
        let most = path(&xm, &ym, None, &GaussianParams::new(1.0), 1, 1.0, None).unwrap()[0].lambda_max;
        let above = top(most * (1.0 + 1e-9));
        prop_assert_eq!((above.nonzeros_lambda(), above.nonzeros_theta()), (p, 0));
        let below = top(most * 0.99);
        prop_assert!(below.nonzeros_lambda() + below.nonzeros_theta() > p);
    }
}

/// Larger than what the textbook can do, also with more inputs than samples: to a violation of 10⁻⁶ λ (the default solver: 10⁻⁸ λ), objectives agree to 10⁻⁸.
#[test]
fn newton_and_alternating_agree() {
    let tolerances = [1e-8, 1e-6, 1e-6];
    for (seed, m, n, p, lambda) in [(1, 60, 30, 12, 0.1), (2, 25, 60, 10, 0.2), (3, 400, 8, 15, 0.02)] {
        let (x, y) = data(seed, m, n, p);
        let book = textbook(x, y, n, lambda, lambda);
        let found: Vec<_> = SOLVERS[..3]
            .iter()
            .zip(tolerances)
            .map(|(&s, tolerance)| solve(&book, &GaussianParams { tolerance, ..exact(s) }))
            .collect();
        for (one, tolerance) in found.iter().zip(tolerances) {
            assert!(one.converged, "{seed} {:?} {}", one.stop, one.violation);
            let (l, t) = (rows(&one.lambda), rows(&one.theta));
            assert!(book.violation(&l, &t) <= 1.01 * tolerance * lambda, "{seed}");
            let apart = (one.objective - found[0].objective).abs() / found[0].objective.abs();
            assert!(apart <= 1e-8, "{seed}: {apart}");
        }
    }
}

/// A long way from the best diagonal Λ (`λ_max/λ` of thousands: outputs that share a large mean, or a small λ), where a run of many outputs begins with neighbourhoods: the optimum all the same, whatever the threads,
/// with two penalties, without inputs, with fewer samples than columns.
#[test]
fn a_long_way_leads_to_the_optimum() {
    let cases = [
        (1, 60, 30, 12, 60.0, (0.3, 0.3)),
        (2, 25, 60, 10, 60.0, (0.2, 0.4)),
        (3, 50, 0, 8, 60.0, (0.3, 0.3)),
        (4, 400, 8, 15, 0.0, (0.001, 0.002)),
        (5, 40, 6, 2, 100.0, (0.3, 0.2)),
        // With so many outputs it begins with neighbourhoods.
        (6, 120, 30, 70, 60.0, (0.5, 0.5)),
    ];
    for (seed, m, n, p, mean, (pairs, theta)) in cases {
        let (x, mut y) = data(seed, m, n, p);
        for (k, y) in y.iter_mut().enumerate() {
            // A wave of its own where there are no inputs, one that they say something about where there are.
            let common = mean * ((k as f64).sin() + x[k].iter().take(3).sum::<f64>());
            y.iter_mut().enumerate().for_each(|(j, y)| *y += common * (1.0 + (j as f64).cos() / 3.0));
        }
        let book = textbook(x, y, n, pairs, theta);
        let run = |par| {
            let params = GaussianParams { par, tolerance: 1e-7, ..exact(SOLVERS[0]) };
            let mut found = solve(&book, &params);
            found.trace.iter_mut().for_each(|point| point.seconds = 0.0);
            found
        };
        let one = run(Par::Seq);
        assert!(one.trace[0].violation > 1500.0 * pairs.max(theta), "{seed}: not far");
        assert!(one.converged, "{seed} {:?} {}", one.stop, one.violation);
        let violation = book.violation(&rows(&one.lambda), &rows(&one.theta));
        assert!(violation <= 1.1e-7 * pairs.max(theta), "{seed}: {violation}");
        assert_eq!(one, run(Par::Rayon(2)), "{seed}");
    }
}

#[test]
fn threads_do_not_change_a_bit() {
    let (m, n, p) = (150, 90, 70);
    let (x, y) = data(5, m, n, p);
    let (x, y) = (dense(&x, n), dense(&y, p));
    let run = |par| {
        let params = GaussianParams { par, ..GaussianParams::new(0.3) };
        let mut found = fit(&x, &y, None, &params, None).unwrap();
        found.trace.iter_mut().for_each(|point| point.seconds = 0.0);
        found
    };
    let one = run(Par::Seq);
    assert!(one.converged && one.nonzeros_theta() > 0);
    assert_eq!(one, run(Par::Rayon(2)));
    assert_eq!(one, run(Par::Rayon(3)));
}

#[test]
fn a_path_is_its_fits() {
    let (n, p) = (6, 5);
    let (x, y) = data(9, 40, n, p);
    let (x, y) = (dense(&x, n), dense(&y, p));
    for theta in [Theta::Factor(1.0), Theta::Factor(0.5), Theta::Value(0.1)] {
        let params = GaussianParams { tolerance: 1e-9, theta, ..GaussianParams::new(0.0) };
        let fits = path(&x, &y, None, &params, 6, 0.05, None).unwrap();
        assert_eq!(fits.len(), 6);
        assert!((fits[0].penalties.0 / fits[0].lambda_max - 1.0).abs() < 1e-12);
        assert!((fits[5].penalties.0 / fits[0].penalties.0 - 0.05).abs() < 1e-12);
        for one in fits {
            let own = GaussianParams { lambda: one.penalties.0, ..params.clone() };
            let alone = fit(&x, &y, None, &own, None).unwrap();
            assert_eq!(alone.penalties, one.penalties);
            assert!(one.converged && alone.converged);
            let apart = (alone.objective - one.objective).abs();
            assert!(apart <= 1e-9 * one.objective.abs().max(1.0), "{apart}");
        }
    }
}

/// Weights that are whole numbers are copies of rows.
#[test]
fn weights_are_copies() {
    let (m, n, p) = (30, 4, 3);
    let (x, y) = data(11, m, n, p);
    let weights: Vec<f64> = (0..m).map(|k| (k % 3) as f64).collect();
    let copy = |rows: &Rows| -> Rows {
        (0..m).flat_map(|k| std::iter::repeat_n(rows[k].clone(), weights[k] as usize)).collect()
    };
    for (intercept, standardize) in [(false, false), (true, false), (true, true)] {
        let params = GaussianParams { intercept, standardize, tolerance: 1e-9, ..GaussianParams::new(0.1) };
        let weighted = fit(&dense(&x, n), &dense(&y, p), Some(&weights), &params, None).unwrap();
        let copied = fit(&dense(&copy(&x), n), &dense(&copy(&y), p), None, &params, None).unwrap();
        assert!((weighted.objective - copied.objective).abs() < 1e-9);
        for (a, b) in weighted.theta.to_dense().values().iter().zip(copied.theta.to_dense().values()) {
            assert!((a - b).abs() < 1e-6, "{a} {b}");
        }
        for (a, b) in weighted.intercept.iter().zip(&copied.intercept) {
            assert!((a - b).abs() < 1e-6, "{a} {b}");
        }
    }
}

/// With an intercept, shifting columns only shifts the intercept; standardised, scaling them changes nothing about what is predicted.
#[test]
fn shifts_and_scales() {
    use gibbsite::gaussian::predict::Forecaster;
    let (m, n, p) = (50, 5, 4);
    let (x, y) = data(13, m, n, p);
    let (x, y) = (dense(&x, n), dense(&y, p));
    let params =
        GaussianParams { intercept: true, standardize: true, tolerance: 1e-9, ..GaussianParams::new(0.05) };
    let predict = |x: &Dense, y: &Dense| {
        let found = fit(x, y, None, &params, None).unwrap();
        assert!(found.converged);
        Forecaster::new(found.lambda.to_dense(), found.theta.to_dense(), found.intercept)
            .unwrap()
            .means(Par::Seq, x)
    };
    let before = predict(&x, &y);
    let moved = Dense::from_fn(m, n, |i, j| 3.0 + (j + 2) as f64 * x.get(i, j));
    let turned = Dense::from_fn(m, p, |i, j| -7.0 + 0.5 * (j + 1) as f64 * y.get(i, j));
    let after = predict(&moved, &turned);
    let mut mean = vec![0.0; p];
    for i in 0..m {
        for (j, mean) in mean.iter_mut().enumerate() {
            let expected = -7.0 + 0.5 * (j + 1) as f64 * before.get(i, j);
            assert!((after.get(i, j) - expected).abs() < 1e-6, "{i} {j}");
            *mean += before.get(i, j) - y.get(i, j);
        }
    }
    // Residuals have mean 0 where the intercept is free.
    assert!(mean.iter().all(|v| v.abs() / (m as f64) < 1e-9), "{mean:?}");
}

#[test]
fn what_cannot_be_fitted_is_refused() {
    let (m, n, p) = (12, 3, 3);
    let (x, y) = data(17, m, n, p);
    let (x, y) = (dense(&x, n), dense(&y, p));
    let error = |x: &Dense, y: &Dense, lambda: f64, theta: Theta, intercept: bool| {
        let params = GaussianParams { theta, intercept, ..GaussianParams::new(lambda) };
        fit(x, y, None, &params, None).map(|f| f.objective).unwrap_err()
    };
    let one = Theta::Factor(1.0);
    let some = |rows: std::ops::Range<usize>, from: &Dense| from.select_rows(&rows.collect::<Vec<_>>());
    assert_eq!(error(&some(0..11, &x), &y, 0.1, one, false), GaussianError::Lengths { x: 11, y: 12 });
    assert_eq!(error(&some(0..1, &x), &some(0..1, &y), 0.1, one, false), GaussianError::TooFew(1));
    let mut hole = x.clone();
    hole.set(4, 2, f64::NAN);
    assert_eq!(
        error(&hole, &y, 0.1, one, false),
        GaussianError::NotFinite { output: false, row: 4, column: 2 }
    );
    let mut flat = y.clone();
    flat.col_mut(1).fill(3.25);
    assert_eq!(error(&x, &flat, 0.1, one, true), GaussianError::ConstantOutput(1));
    flat.col_mut(1).fill(0.0);
    assert_eq!(error(&x, &flat, 0.1, one, false), GaussianError::ConstantOutput(1));
    let twice = y.select_columns(&[0, 1, 1]);
    assert_eq!(error(&x, &twice, 0.0, Theta::Value(0.1), false), GaussianError::SingularOutputs);
    let wide = Dense::from_fn(m, 15, |i, j| ((i * 31 + j * 17) as f64).sin());
    let exact = GaussianError::ExactInputs { inputs: 15, samples: 12 };
    assert_eq!(error(&wide, &y, 0.1, Theta::Value(0.0), false), exact);
    let negative = GaussianError::Parameter { name: "lambda", value: -1.0 };
    assert_eq!(error(&x, &y, -1.0, one, false), negative);
    // Duplicates are no obstacle where pairs have a price, and Λ is positive definite even then.
    let params = GaussianParams::new(0.1);
    let found = fit(&x, &twice, None, &params, None).unwrap();
    assert!(found.converged && inverse(&rows(&found.lambda)).is_some());
    // No penalty at all, and enough samples: the maximum likelihood estimate.
    let free = GaussianParams { tolerance: 1e-7, ..GaussianParams::new(0.0) };
    let found = fit(&x, &y, None, &free, None).unwrap();
    let book = textbook(rows(&Sparse::from_dense(&x)), rows(&Sparse::from_dense(&y)), n, 0.0, 0.0);
    assert!(found.converged && book.violation(&rows(&found.lambda), &rows(&found.theta)) < 1e-5);
}

/// Cross-validation is the mean of fits on parts, and its choice is fitted to all rows.
#[test]
fn cross_validation_compares_held_out_losses() {
    let (m, n, p) = (40, 5, 3);
    let (x, y) = data(19, m, n, p);
    let (xm, ym) = (dense(&x, n), dense(&y, p));
    let how = GaussianCvParams {
        folds: 4,
        points: 5,
        ratio: 0.05,
        loss: CvLoss::LogLoss,
        contiguous: true,
        seed: 0,
    };
    let params = GaussianParams { tolerance: 1e-8, ..GaussianParams::new(0.0) };
    let (cv, chosen) = cross_validate(&xm, &ym, None, &params, &how, None).unwrap();
    assert_eq!(cv.points.len(), 5);
    assert_eq!(chosen.penalties.0, cv.points[cv.best].lambda);
    let at = &cv.points[3];
    let mut sum = 0.0;
    for k in 0..4 {
        let part = |rows: &Rows, held: bool| -> Rows {
            let own = rows.iter().enumerate().filter(|(i, _)| (i / 10 == k) == held);
            own.map(|(_, r)| r.clone()).collect()
        };
        let found = solve(&textbook(part(&x, false), part(&y, false), n, at.lambda, at.lambda), &params);
        // -log p of a row is half of (f + p log 2π).
        let held = textbook(part(&x, true), part(&y, true), n, 0.0, 0.0);
        let twice = held.smooth(&rows(&found.lambda), &rows(&found.theta));
        sum += 0.5 * (twice + p as f64 * std::f64::consts::TAU.ln());
    }
    assert!((sum / 4.0 - at.mean).abs() < 1e-6, "{} {}", sum / 4.0, at.mean);
    assert!(cv.points.iter().all(|point| point.mean >= cv.points[cv.best].mean));
    let few = GaussianCvParams { folds: 41, ..how };
    assert_eq!(
        cross_validate(&xm, &ym, None, &params, &few, None).unwrap_err(),
        GaussianError::Folds { folds: 41, rows: 40 }
    );
}

/// SGCRF Fig. 2, small: a chain of outputs, each with its own input. The signs of Λ are found with many samples and not with few. (Weakly
/// coupled, so that the incoherence condition of Theorem 1 holds; for the bench's chain of 1 and 2.25 it does not, and second neighbours stay however many samples there are.)
#[test]
fn the_support_is_recovered_from_enough_samples() {
    let p = 24;
    let recovered = |m: usize, seed: u64| {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let lambda = from_fn(p, p, |i, j| match i.abs_diff(j) {
            0 => 2.25,
            1 => 0.45,
            _ => 0.0,
        });
        let (sigma, _) = inverse(&lambda).unwrap();
        // Half of Σ = CCᵀ by Cholesky's rule.
        let mut c = from_fn(p, p, |_, _| 0.0);
        for i in 0..p {
            for j in 0..=i {
                let rest = sigma[i][j] - (0..j).map(|k| c[i][k] * c[j][k]).sum::<f64>();
                c[i][j] = if i == j { rest.sqrt() } else { rest / c[j][j] };
            }
        }
        let x = from_fn(m, p, |_, _| noise(&mut rng));
        let y: Rows = (0..m)
            .map(|k| {
                let z: Vec<f64> = (0..p).map(|_| noise(&mut rng)).collect();
                (0..p).map(|i| (0..p).map(|j| c[i][j] * z[j] - sigma[i][j] * x[k][j]).sum()).collect()
            })
            .collect();
        let penalty = 2.0 * ((p as f64).ln() / m as f64).sqrt();
        let found = solve(&textbook(x, y, p, penalty, penalty), &GaussianParams::new(penalty));
        assert!(found.converged);
        let right = |i: usize, j: usize| {
            let pair = found.lambda.get(i, j);
            pair >= 0.0 && (pair > 0.0) == (lambda[i][j] > 0.0)
        };
        (0..p).all(|i| (0..p).all(|j| right(i, j)))
    };
    let count = |m: usize| (0..5).filter(|&seed| recovered(m, seed)).count();
    let (few, many) = (count(30), count(4000));
    assert!(few == 0 && many >= 4, "{few} {many}");
}
