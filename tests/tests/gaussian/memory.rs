//! A budget of memory.

use super::{SOLVERS, data, dense, exact, rows, solve, textbook};
use gibbsite::gaussian::cv::{CvLoss, GaussianCvParams, cross_validate};
use gibbsite::gaussian::memory::need;
use gibbsite::gaussian::{GaussianError, GaussianParams, Theta, fit, path};

/// The least budget for a fit with dense matrices: beside the data, a tenth for what grows with the non-zeros.
fn least(m: usize, n: usize, p: usize) -> u64 {
    let need = need(m, n, p);
    need + need / 10 - 8 * (m * (n + p)) as u64
}

/// A tight budget makes the preconditioner's blocks small; the optimum is the same, and the textbook says that it is one.
#[test]
fn a_tight_budget_leads_to_the_same_optimum() {
    for (seed, m, n, p, lambda) in [(1, 80, 40, 24, 0.05), (2, 40, 60, 20, 0.1)] {
        let (x, y) = data(seed, m, n, p);
        let book = textbook(x, y, n, lambda, lambda);
        let loose = solve(&book, &exact(SOLVERS[0]));
        let budget = Some(least(m, n, p));
        let tight = solve(&book, &GaussianParams { memory: budget, ..exact(SOLVERS[0]) });
        assert!(loose.converged && tight.converged, "{seed} {:?} {:?}", loose.stop, tight.stop);
        assert!(book.violation(&rows(&tight.lambda), &rows(&tight.theta)) <= 1.01e-8 * lambda, "{seed}");
        let apart = (tight.objective - loose.objective).abs() / loose.objective.abs();
        assert!(apart <= 1e-12, "{seed}: {apart}");
        assert_eq!(tight.nonzeros_theta(), loose.nonzeros_theta(), "{seed}");
        // It did go another way: columns here have more entries than the smallest block.
        assert_ne!(tight.lambda, loose.lambda, "{seed}");
    }
}

/// Below what dense matrices need, the default solver works by blocks and ends at the same optimum; the paper's two refuse, and so does everything below what blocks need.
#[test]
fn less_than_dense_matrices_need_is_done_by_blocks() {
    let (m, n, p) = (30, 8, 5);
    let (x, y) = data(3, m, n, p);
    let (x, y) = (dense(&x, n), dense(&y, p));
    let allowed = |memory: u64| GaussianParams { memory: Some(memory), ..GaussianParams::new(0.2) };
    let enough = least(m, n, p);
    let whole = fit(&x, &y, None, &allowed(enough), None).unwrap();
    assert_eq!(whole.blocks, None);
    let parts = fit(&x, &y, None, &allowed(enough - 1), None).unwrap();
    assert!(parts.blocks.is_some() && parts.converged);
    assert!((parts.objective - whole.objective).abs() <= 1e-10 * whole.objective.abs());
    assert!((parts.lambda_max - whole.lambda_max).abs() <= 1e-14 * whole.lambda_max);
    for solver in &SOLVERS[1..3] {
        let params = GaussianParams { solver: *solver, ..allowed(enough - 1) };
        let short = GaussianError::Memory { need: enough, budget: enough - 1 };
        assert_eq!(fit(&x, &y, None, &params, None), Err(short));
    }
    match fit(&x, &y, None, &allowed(500), None) {
        Err(GaussianError::Memory { need, budget: 500 }) => assert!(need > 500),
        other => panic!("{other:?}"),
    }
    // Without a penalty nothing is 0, and blocks would not help.
    let params = GaussianParams { theta: Theta::Value(0.0), ..allowed(enough - 1) };
    assert_eq!(
        fit(&x, &y, None, &params, None),
        Err(GaussianError::Memory { need: enough, budget: enough - 1 })
    );
}

/// Everything that a fit can be asked for, by blocks as with dense matrices.
#[test]
fn what_is_asked_for_does_not_depend_on_the_budget() {
    let (m, n, p) = (60, 7, 6);
    let (x, y) = data(8, m, n, p);
    let (x, y) = (dense(&x, n), dense(&y, p));
    let weights: Vec<f64> = (0..m).map(|k| 0.5 + (k % 3) as f64).collect();
    for k in 0..16 {
        let (intercept, standardize, refit) = (k & 1 != 0, k & 2 != 0, k & 4 != 0);
        let weights = (k & 8 != 0).then_some(&weights[..]);
        let params =
            GaussianParams { intercept, standardize, refit, tolerance: 1e-7, ..GaussianParams::new(0.15) };
        let tight = GaussianParams { memory: Some(least(m, n, p) - 1), ..params.clone() };
        let (whole, parts) =
            (fit(&x, &y, weights, &params, None).unwrap(), fit(&x, &y, weights, &tight, None).unwrap());
        assert!(parts.blocks.is_some() && parts.converged, "{k} {:?}", parts.stop);
        // L-BFGS, which refits with dense matrices, may end at rounding before.
        assert!(whole.converged || refit, "{k} {:?}", whole.stop);
        assert!((parts.objective - whole.objective).abs() <= 1e-9 * (1.0 + whole.objective.abs()), "{k}");
        let close =
            |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-6 * (1.0 + b.abs()));
        assert!(close(parts.theta.to_dense().values(), whole.theta.to_dense().values()), "{k}");
        assert!(close(parts.lambda.to_dense().values(), whole.lambda.to_dense().values()), "{k}");
        assert!(close(&parts.intercept, &whole.intercept), "{k}");
    }
    let params = GaussianParams { tolerance: 1e-9, ..GaussianParams::new(0.0) };
    let tight = GaussianParams { memory: Some(least(m, n, p) - 1), ..params.clone() };
    let (whole, parts) = (
        path(&x, &y, None, &params, 6, 0.1, None).unwrap(),
        path(&x, &y, None, &tight, 6, 0.1, None).unwrap(),
    );
    for (a, b) in whole.iter().zip(&parts) {
        assert!(b.blocks.is_some() && b.converged);
        assert!((a.objective - b.objective).abs() <= 1e-9 * (1.0 + a.objective.abs()));
    }
    for loss in [CvLoss::Mse, CvLoss::LogLoss] {
        let how = GaussianCvParams { folds: 3, points: 4, ratio: 0.1, loss, contiguous: false, seed: 0 };
        let asked = |memory| GaussianParams { memory, intercept: true, ..params.clone() };
        let (whole, a) = cross_validate(&x, &y, None, &asked(None), &how, None).unwrap();
        let (parts, b) = cross_validate(&x, &y, None, &asked(tight.memory), &how, None).unwrap();
        assert!(b.blocks.is_some() && (a.objective - b.objective).abs() <= 1e-9 * (1.0 + a.objective.abs()));
        for (a, b) in whole.points.iter().zip(&parts.points) {
            assert!((a.mean - b.mean).abs() <= 1e-6 * a.mean.abs(), "{a:?} {b:?}");
        }
        assert_eq!(whole.best, parts.best);
    }
}

/// Sizes that would overflow are only very large.
#[test]
fn the_need_of_anything_is_a_number() {
    assert_eq!(need(usize::MAX, usize::MAX, usize::MAX), u64::MAX);
    assert!(need(1 << 20, 1 << 20, 1 << 20) > 1 << 44);
}
