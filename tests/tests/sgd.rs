//! Stochastic gradient descent: it gets near, says how near, and does not depend on threads.

use gibbsite::par::Par;
use gibbsite::regress::certificate::lambda_max;
use gibbsite::regress::problem::{Problem, Weights};
use gibbsite::solver::monitor::{Monitor, Stop};
use gibbsite::solver::sgd::{self, SgdParams, Shrinkage, hybrid};
use gibbsite::solver::shotgun::{self, ShotgunParams};
use gibbsite_core::loss::{Logistic, Loss, Squared};
use gibbsite_tests::regression::{Shape, labels, matrix, target};

fn near<L: Loss>(p: &Problem<'_, L, f64>, params: &SgdParams, share: f64) {
    let d = p.matrix.columns();
    let start = p.objective_at_zero();
    let best =
        shotgun::solve(p, Weights::zero(d), &ShotgunParams::new(1e-10 * start), &mut Monitor::new(None));
    let mut monitor = Monitor::new(None);
    let found = sgd::solve(p, Weights::zero(d), params, &mut monitor);
    let (f, lowest) = (found.certificate.objective, best.certificate.objective);
    assert_eq!(found.info.stop, Stop::Iterations);
    assert_eq!(monitor.trace.len() as u64, params.max_epochs + 1);
    // honest: the gap covers what is missing
    assert!(f - lowest <= found.certificate.gap + 1e-9 * start);
    assert!(f - lowest <= share * (start - lowest), "{f} {lowest} {start} {params:?}");
    assert!(!p.positive || found.weights.x.iter().all(|&x| x >= 0.0));
}

/// What may be missing of the way from `F(0)` to the optimum: lasso, logistic, and both with ridge, intercept and weights that must not be negative.
fn all_near(rows: usize, params: &SgdParams, shares: [f64; 4]) {
    let m = matrix(&Shape::new(rows, 30, 0.5), 4);
    let (y, signs) = (target(&m, 0.5, 4), labels(&m, 4));
    let mut lasso = Problem::new(&m, &y, Squared, 0.0);
    lasso.lambda = 0.1 * lambda_max(&lasso, Par::Seq);
    let mut logistic = Problem::new(&m, &signs, Logistic, 0.0);
    logistic.lambda = 0.05 * lambda_max(&logistic, Par::Seq);
    near(&lasso, params, shares[0]);
    near(&logistic, params, shares[1]);
    near(&Problem { l2: 1.0, positive: true, intercept: true, ..lasso }, params, shares[2]);
    near(&Problem { l2: 1.0, positive: true, intercept: true, ..logistic }, params, shares[3]);
}

#[test]
fn descends_most_of_the_way() {
    all_near(400, &SgdParams::new(0.0, 20), [0.02, 0.05, 0.05, 0.1]);
    // Shrinking ten steps at once is coarser; with a threshold large weights feel no penalty, which is another objective.
    all_near(400, &SgdParams::truncated(0.0, 20), [0.02, 0.05, 0.05, 0.15]);
    let threshold = Shrinkage::Truncated { every: 10, threshold: 0.5 };
    all_near(400, &SgdParams { shrinkage: threshold, ..SgdParams::new(0.0, 20) }, [0.05, 0.05, 0.1, 0.15]);
}

/// Averaging `k` walks removes their variance but not what all of them share: each ends near the optimum of its own `n/k` samples, which overfits
/// by a bias of order `k/n` (Zhang, Duchi & Wainwright 2013). A linear estimate has none, so the lasso hardly suffers; the logistic loss
/// and the border at 0 bend it. 50 samples for 30 weights are too few for 8 shards; with 400 in each they get as far as one walk.
#[test]
fn averages_lack_what_their_shards_lack() {
    let parallel = SgdParams::parallel(0.0, 20);
    all_near(400, &parallel, [0.02, 0.15, 0.15, 0.3]);
    all_near(3200, &parallel, [0.02, 0.05, 0.05, 0.1]);
}

#[test]
fn badly_scaled_rows_do_not_blow_up() {
    let m = matrix(&Shape { spread: 6.0, ..Shape::new(100, 20, 0.7) }, 8);
    let y = target(&m, 0.5, 8);
    let p = Problem::new(&m, &y, Squared, 1.0);
    let found = sgd::solve(&p, Weights::zero(20), &SgdParams::new(0.0, 10), &mut Monitor::new(None));
    assert!(found.certificate.objective <= p.objective_at_zero());
    assert!(found.weights.x.iter().all(|x| x.is_finite()));
}

/// Lazy shrinkage is shrinkage after each sample: compare with the loop that does it for all weights at once.
#[test]
fn lazy_is_the_same_as_eager() {
    let m = matrix(&Shape::new(40, 12, 0.3), 6);
    let y = target(&m, 0.5, 6);
    for (l2, every) in [(0.0, 1u32), (0.8, 1), (0.0, 3), (0.8, 3)] {
        let p = Problem { l2, ..Problem::new(&m, &y, Squared, 2.0) };
        let shrinkage = Shrinkage::Truncated { every, threshold: f64::INFINITY };
        let params = SgdParams { rate: Some(0.05), shrinkage, ..SgdParams::new(0.0, 1) };
        let found = sgd::solve(&p, Weights::zero(12), &params, &mut Monitor::new(None));
        let rows = m.by_rows();
        let scale = (0..40).map(|i| rows.row(i).1.iter().map(|v| v * v).sum::<f64>()).fold(1.0, f64::max);
        let rate = 0.05 / scale;
        let order = {
            use rand::SeedableRng;
            use rand::seq::SliceRandom;
            let mut rng = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(0);
            let mut order: Vec<usize> = (0..40).collect();
            order.shuffle(&mut rng);
            order.shuffle(&mut rng);
            order
        };
        let mut x = [0.0f64; 12];
        for (t, &i) in order.iter().enumerate() {
            let (columns, values) = rows.row(i);
            let z: f64 = columns.iter().zip(values).map(|(&j, v)| x[j as usize] * v).sum();
            columns.iter().zip(values).for_each(|(&j, v)| x[j as usize] -= rate * (z - y[i]) * v);
            if (t as u32 + 1).is_multiple_of(every) {
                let s = f64::from(every) * rate / 40.0;
                x.iter_mut().for_each(|x| *x = x.signum() * (x.abs() - s * 2.0).max(0.0) / (1.0 + s * l2));
            }
        }
        let f = p.objective(&x, &p.predictions(&x, 0.0));
        // the pass is better than the start, so it is what comes back
        assert!(f < p.objective_at_zero());
        assert!((found.certificate.objective - f).abs() <= 1e-9 * f, "{} {f}", found.certificate.objective);
    }
}

#[test]
fn threads_do_not_matter() {
    let m = matrix(&Shape::new(300, 20, 0.5), 2);
    let y = labels(&m, 2);
    let p = Problem::new(&m, &y, Logistic, 1.0);
    let run = |par: Par| {
        let params = SgdParams { par, ..SgdParams::parallel(0.0, 5) };
        par.run(|_| sgd::solve(&p, Weights::zero(20), &params, &mut Monitor::new(None)))
    };
    assert_eq!(run(Par::Seq), run(Par::Rayon(2)));
}

#[test]
fn hybrid_finishes() {
    let m = matrix(&Shape::new(300, 50, 0.5), 3);
    let (y, signs) = (target(&m, 0.5, 3), labels(&m, 3));
    fn check<L: Loss>(p: &Problem<'_, L, f64>) {
        let gap = 1e-8 * p.objective_at_zero();
        let mut monitor = Monitor::new(None);
        let found = hybrid::solve(p, Weights::zero(50), &hybrid::HybridParams::new(gap), &mut monitor);
        assert_eq!(found.info.stop, Stop::Tolerance);
        assert!(found.certificate.gap <= gap && found.info.updates > 600);
    }
    check(&Problem::new(&m, &y, Squared, 5.0));
    check(&Problem::new(&m, &signs, Logistic, 2.0));
}
