//! A budget of memory.

use super::{SOLVERS, data, dense, exact, rows, solve, textbook};
use gibbsite::gaussian::cv::{CvLoss, GaussianCvParams, cross_validate};
use gibbsite::gaussian::memory::need;
use gibbsite::gaussian::{GaussianError, GaussianParams, fit, path};

/// The least budget for a fit.
fn least(m: usize, n: usize, p: usize, kept: usize) -> u64 {
    let need = need(m, n, p, kept);
    need + need / 10
}

/// A tight budget makes the preconditioner's blocks small; the optimum is the same, and the textbook says that it is one.
#[test]
fn a_tight_budget_leads_to_the_same_optimum() {
    for (seed, m, n, p, lambda) in [(1, 80, 40, 24, 0.05), (2, 40, 60, 20, 0.1)] {
        let (x, y) = data(seed, m, n, p);
        let book = textbook(x, y, n, lambda, lambda);
        let loose = solve(&book, &exact(SOLVERS[0]));
        let budget = Some(least(m, n, p, 1));
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

#[test]
fn too_small_a_budget_is_an_error_before_anything_is_computed() {
    let (m, n, p) = (30, 8, 5);
    let (x, y) = data(3, m, n, p);
    let (x, y) = (dense(&x, n), dense(&y, p));
    let allowed = |memory: u64| GaussianParams { memory: Some(memory), ..GaussianParams::new(0.2) };
    let enough = least(m, n, p, 1);
    assert!(fit(&x, &y, None, &allowed(enough), None).is_ok());
    let short = GaussianError::Memory { need: enough, budget: enough - 1 };
    assert_eq!(fit(&x, &y, None, &allowed(enough - 1), None), Err(short));
    // A path keeps its fits.
    assert!(path(&x, &y, None, &allowed(enough), 9, 0.1, None).is_err());
    assert!(path(&x, &y, None, &allowed(least(m, n, p, 9)), 9, 0.1, None).is_ok());
    let loss = CvLoss::Mse;
    let how = GaussianCvParams { folds: 3, points: 4, ratio: 0.1, loss, contiguous: false, seed: 0 };
    assert!(cross_validate(&x, &y, None, &allowed(enough - 1), &how, None).is_err());
    assert!(cross_validate(&x, &y, None, &allowed(least(m, n, p, 4)), &how, None).is_ok());
}

/// Sizes that would overflow are only very large.
#[test]
fn the_need_of_anything_is_a_number() {
    assert_eq!(need(usize::MAX, usize::MAX, usize::MAX, usize::MAX), u64::MAX);
    assert!(need(1 << 20, 1 << 20, 1 << 20, 1) > 1 << 44);
}
