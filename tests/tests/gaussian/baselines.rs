//! What the paper compares with, refitting, and small versions of its experiments.

use super::{SOLVERS, data, dense, exact, rows, solve, textbook};
use gibbsite::gaussian::baselines::{fit_jointly, ridge};
use gibbsite::gaussian::{GaussianError, GaussianParams, GaussianSolver, fit};
use gibbsite::linalg::Dense;
use gibbsite::par::Par;
use gibbsite::solver::monitor::Stop;
use gibbsite::sparse::Sparse;
use gibbsite_tests::gaussian::{inverse, times, turned};
use gibbsite_tests::sgcrf::{against_joint, course, recovered};

#[test]
fn owlqn_finds_the_optimum() {
    for (seed, pairs, theta) in [(1, 0.05, 0.05), (2, 0.2, 0.1), (3, 0.3, 0.02)] {
        let (x, y) = data(seed, 40, 6, 5);
        let book = textbook(x, y, 6, pairs, theta);
        let best = solve(&book, &exact(SOLVERS[0]));
        let params = GaussianParams { tolerance: 1e-5, ..exact(GaussianSolver::Owlqn) };
        let found = solve(&book, &params);
        assert!(found.converged, "{:?} after {} iterations", found.stop, found.iterations);
        assert!((found.objective - best.objective).abs() < 1e-8 * best.objective.abs().max(1.0));
        assert!(book.violation(&rows(&found.lambda), &rows(&found.theta)) <= 1.1e-5 * pairs.max(theta));
        let places = |m: &Sparse| m.entries().map(|e| (e.0, e.1)).collect::<Vec<_>>();
        assert_eq!(
            (places(&found.lambda), places(&found.theta)),
            (places(&best.lambda), places(&best.theta))
        );
    }
}

/// On the support the slopes of the smooth part are 0, off it the entries are.
#[test]
fn a_refit_is_the_maximum_likelihood_of_the_support() {
    let (x, y) = data(4, 60, 5, 5);
    let book = textbook(x, y, 5, 0.4, 0.4);
    let sparse = solve(&book, &exact(SOLVERS[0]));
    let params = GaussianParams { refit: true, tolerance: 1e-6, ..exact(SOLVERS[0]) };
    let found = solve(&book, &params);
    assert_eq!(found.stop, Stop::Tolerance);
    let (lambda, theta) = (rows(&found.lambda), rows(&found.theta));
    let (gl, gt) = book.slopes(&lambda, &theta);
    let mut zeros = 0;
    for j in 0..5 {
        for i in 0..5 {
            for (before, after, slope) in [
                (sparse.lambda.get(i, j), lambda[i][j], gl[i][j]),
                (sparse.theta.get(i, j), theta[i][j], gt[i][j]),
            ] {
                if before == 0.0 && (after == 0.0) {
                    zeros += 1;
                } else {
                    assert!(before != 0.0 && slope.abs() < 2e-6, "{i} {j}: {before} {after} {slope}");
                }
            }
        }
    }
    assert!(zeros >= 5, "the penalty leaves something out");
    assert!((book.smooth(&lambda, &theta) - found.objective).abs() < 1e-10);
    assert!(found.objective < book.smooth(&rows(&sparse.lambda), &rows(&sparse.theta)));
}

/// Four samples, six inputs: with a small penalty an output is explained exactly.
#[test]
fn a_refit_without_bound_is_an_error() {
    let (x, y) = data(5, 4, 12, 2);
    let params = GaussianParams { refit: true, ..GaussianParams::new(1e-5) };
    let found = fit(&dense(&x, 12), &dense(&y, 2), None, &params, None);
    assert_eq!(found.err(), Some(GaussianError::RefitUnbounded));
}

/// Without penalty the mean of `y | x` in the joint Gaussian is least squares, intercept and all.
#[test]
fn a_joint_model_without_penalty_is_least_squares() {
    let (x, mut y) = data(6, 80, 3, 2);
    y.iter_mut().for_each(|row| row[0] += 5.0);
    let params = GaussianParams { intercept: true, tolerance: 1e-9, ..GaussianParams::new(0.0) };
    let found = fit_jointly(&dense(&x, 3), &dense(&y, 2), None, &params, None).unwrap();
    let with_one: Vec<Vec<f64>> = x.iter().map(|row| [&[1.0], &row[..]].concat()).collect();
    let t = turned(&with_one, 4);
    let least = times(&inverse(&times(&t, &with_one)).unwrap().0, &times(&t, &y));
    let sigma = inverse(&rows(&found.lambda)).unwrap().0;
    for j in 0..2 {
        assert!((found.intercept[j] - least[0][j]).abs() < 1e-5, "{:?} {least:?}", found.intercept);
        for i in 0..3 {
            let slope: f64 = -(0..2).map(|k| found.theta.get(i, k) * sigma[k][j]).sum::<f64>();
            assert!((slope - least[i + 1][j]).abs() < 1e-5, "{slope} {least:?}");
        }
    }
}

#[test]
fn ridge_solves_its_normal_equations_both_ways() {
    for (m, n) in [(30, 5), (5, 30)] {
        let (x, y) = data(7, m, n, 3);
        let b = rows(&Sparse::from_dense(&ridge(Par::Seq, &dense(&x, n), &dense(&y, 3), 0.7).unwrap()));
        let fitted = times(&x, &b);
        for i in 0..n {
            for j in 0..3 {
                let slope: f64 =
                    (0..m).map(|k| x[k][i] * (fitted[k][j] - y[k][j])).sum::<f64>() + 0.7 * b[i][j];
                assert!(slope.abs() < 1e-11, "{slope}");
            }
        }
    }
    assert!(ridge(Par::Seq, &Dense::zeros(2, 1), &Dense::zeros(2, 1), 0.0).is_none());
}

/// Fig. 2, small: hardly ever below the threshold in `m / log p`, nearly always above it, for different p.
#[test]
fn support_is_recovered_above_a_threshold_in_m_over_log_p() {
    for p in [12, 36] {
        let at = |scaled: f64| recovered(p, (scaled * (p as f64).ln()) as usize, 10);
        let (low, high) = (at(120.0), at(900.0));
        assert!(low <= 0.1 && high >= 0.9, "p = {p}: {low}, {high}");
    }
}

/// Fig. 3, small: all solvers end at the same objective.
#[test]
fn all_solvers_go_down_to_the_same_objective() {
    for (name, points) in course(20, 10, 60, 0.3, 10.0) {
        let last = points.last().unwrap();
        assert!(last.1 < 1e-7, "{name}: {} above the best after {} s", last.1, last.0);
    }
}

/// Fig. 4, small: at its best penalty the CRF beats the joint MRF.
#[test]
fn a_joint_model_predicts_worse() {
    let found = against_joint(40, 10, 40, &[0.5, 0.25, 0.12, 0.06]);
    let least = |f: &dyn Fn(&(f64, f64, f64)) -> f64| found.iter().map(f).fold(f64::INFINITY, f64::min);
    let (crf, mrf) = (least(&|p| p.1), least(&|p| p.2));
    assert!(crf < 0.97 * mrf, "{found:?}");
}
