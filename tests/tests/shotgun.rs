//! Every coordinate descent against certificates, against each other, and against an independent solver.

use gibbsite::data::matrix::Matrix;
use gibbsite::par::Par;
use gibbsite::regress::certificate::{certify, lambda_max};
use gibbsite::regress::problem::{Problem, Weights};
use gibbsite::solver::Solution;
use gibbsite::solver::monitor::{Monitor, Point, Stop};
use gibbsite::solver::reference::{self, ReferenceParams};
use gibbsite::solver::shotgun::{
    self, Choice, ShootingParams, ShotgunParams, asynchronous, cdn, continuation, sequential, synchronous,
};
use gibbsite_core::loss::{Logistic, Loss, Squared};
use gibbsite_tests::regression::{Shape, from_dense, labels, matrix, target};
use proptest::prelude::*;

/// What is asked beside the data.
#[derive(Clone, Debug)]
struct Ask {
    ratio: f64,
    l2: f64,
    weighted: bool,
    positive: bool,
    intercept: bool,
}

fn shape() -> impl Strategy<Value = Shape> {
    (2usize..25, 1usize..25, 0.2..1.0f64, 0.0..0.7f64, 0.0..1.5f64, 0usize..3, 0usize..5).prop_map(
        |(rows, columns, density, correlation, spread, duplicates, zero_every)| Shape {
            rows,
            columns,
            density,
            correlation,
            spread,
            duplicates,
            zero_every,
        },
    )
}

fn ask() -> impl Strategy<Value = Ask> {
    let l2 = prop_oneof![Just(0.0), 0.01..1.0];
    (0.02..0.9f64, l2, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(ratio, l2, weighted, positive, intercept)| Ask { ratio, l2, weighted, positive, intercept },
    )
}

fn l1_weights(columns: usize) -> Vec<f64> {
    (0..columns).map(|j| 0.5 + (j % 4) as f64 * 0.5).collect()
}

fn shooting(gap: f64) -> ShootingParams {
    ShootingParams { gap, max_epochs: 200_000, choice: Choice::Random, par: Par::Seq, seed: 3 }
}

/// Solves with all of them; each must certify, satisfy the optimality conditions, and agree with the others.
fn check_all<L: Loss>(matrix: &Matrix<f64>, y: &[f64], loss: L, ask: &Ask) -> Result<(), TestCaseError> {
    let weights = l1_weights(matrix.columns());
    let mut problem = Problem::new(matrix, y, loss, 0.0);
    problem.l2 = ask.l2;
    problem.l1_weights = ask.weighted.then_some(&weights[..]);
    problem.positive = ask.positive;
    problem.intercept = ask.intercept;
    problem.lambda = ask.ratio * lambda_max(&problem, Par::Seq).max(1e-3);
    let p = &problem;
    let gap = 1e-9 * p.objective_at_zero();
    let zero = || Weights::zero(matrix.columns());
    let some = |parallel| ShotgunParams { parallel: Some(parallel), ..ShotgunParams::new(gap) };
    let random = ShotgunParams { choice: Choice::Random, ..some(4) };
    let mut monitor = Monitor::new(None);
    let m = &mut monitor;
    let reference = ReferenceParams { gap, max_epochs: 200_000, par: Par::Seq, seed: 1 };
    let found: Vec<(&str, Solution)> = vec![
        ("reference", reference::solve(p, zero(), &reference, m)),
        ("shooting", sequential::solve(p, zero(), &shooting(gap), m)),
        ("synchronous random", synchronous::solve(p, zero(), &random, m)),
        ("synchronous cyclic", synchronous::solve(p, zero(), &some(3), m)),
        ("continuation", continuation::solve(p, zero(), &some(2), m)),
        ("cdn", cdn::solve(p, zero(), &some(2), m)),
        ("asynchronous", asynchronous::solve(p, zero(), &some(1), m)),
        ("shotgun", shotgun::solve(p, zero(), &ShotgunParams::new(gap), m)),
    ];
    let best = found.iter().map(|f| f.1.certificate.objective).fold(f64::INFINITY, f64::min);
    for (name, Solution { weights, certificate, info }) in &found {
        prop_assert_eq!(info.stop, Stop::Tolerance, "{}: {:?} {:?}", name, info, certificate);
        let again = certify(p, &weights.x, &p.predictions(&weights.x, weights.intercept), Par::Seq);
        prop_assert!(again.gap <= gap * (1.0 + 1e-6) + 1e-14, "{}: {:?}", name, again);
        // No coordinate alone can gain more than the gap: the optimality conditions, in the units of the objective.
        let z = p.predictions(&weights.x, weights.intercept);
        let u = p.residual(&z);
        for j in 0..matrix.columns() {
            let (column, penalty, x) = (matrix.column(j), p.penalty(j), weights.x[j]);
            let (slope, bound) = (-column.dot(&u), L::SMOOTHNESS * column.norm2::<f64>());
            let step = penalty.minimize(x, slope, bound) - x;
            let gain = -(slope * step + 0.5 * bound * step * step + penalty.change(x, step));
            prop_assert!(
                gain <= gap * (1.0 + 1e-6) + 1e-14,
                "{}: x_{} could gain {} of {}",
                name,
                j,
                gain,
                gap
            );
        }
        if ask.intercept {
            let slope: f64 = u.iter().sum();
            prop_assert!(
                slope * slope / (2.0 * L::SMOOTHNESS * y.len() as f64) <= gap * (1.0 + 1e-6),
                "{}",
                name
            );
        }
        prop_assert!(!ask.positive || weights.x.iter().all(|&x| x >= 0.0), "{}", name);
        prop_assert!(weights.x.iter().all(|x| x.is_finite()), "{}", name);
        let apart = (again.objective - best) / p.objective_at_zero();
        prop_assert!(apart <= 1e-8, "{} is {} above the best", name, apart);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lasso_solvers_agree(shape in shape(), ask in ask(), seed in 0u64..1000) {
        let m = matrix(&shape, seed);
        check_all(&m, &target(&m, 0.5, seed), Squared, &ask)?;
    }

    #[test]
    fn logistic_solvers_agree(shape in shape(), ask in ask(), seed in 0u64..1000) {
        let m = matrix(&shape, seed);
        check_all(&m, &labels(&m, seed), Logistic, &ask)?;
    }

    /// `D(θ) ≤ F(x)` whatever the two points are, so a dual value never exceeds an objective.
    #[test]
    fn weak_duality(shape in shape(), ask in ask(), seed in 0u64..1000, logistic in any::<bool>(), size in 0.0..3.0f64) {
        let m = matrix(&shape, seed);
        let weights = l1_weights(m.columns());
        let points: Vec<Vec<f64>> = (1..4)
            .map(|k| (0..m.columns()).map(|j| size * ((j * k) as f64 + seed as f64).sin()).map(|x| if ask.positive { x.abs() } else { x }).collect())
            .collect();
        fn check<L: Loss>(p: &Problem<'_, L, f64>, points: &[Vec<f64>]) -> Result<(), TestCaseError> {
            let found: Vec<_> = points.iter().map(|x| certify(p, x, &p.predictions(x, 0.3), Par::Seq)).collect();
            let least = found.iter().map(|f| f.objective).fold(f64::INFINITY, f64::min);
            for f in &found {
                prop_assert!(f.dual <= least * (1.0 + 1e-12) + 1e-12, "{:?} {}", f, least);
                prop_assert!(f.gap >= 0.0 && !f.gap.is_nan());
            }
            Ok(())
        }
        macro_rules! go {
            ($loss:expr, $y:expr) => {{
                let y = $y;
                let mut p = Problem::new(&m, &y, $loss, ask.ratio);
                (p.l2, p.positive, p.intercept) = (ask.l2, ask.positive, ask.intercept);
                p.l1_weights = ask.weighted.then_some(&weights[..]);
                check(&p, &points)?;
            }};
        }
        if logistic { go!(Logistic, labels(&m, seed)) } else { go!(Squared, target(&m, 0.5, seed)) }
    }
}

fn same_bits(a: &Solution, b: &Solution) {
    assert_eq!(a.info.updates, b.info.updates);
    assert!(a.weights.x.iter().zip(&b.weights.x).all(|(a, b)| a.to_bits() == b.to_bits()));
    assert_eq!(a.weights.intercept.to_bits(), b.weights.intercept.to_bits());
    assert_eq!(a.certificate, b.certificate);
}

fn one_at_a_time_is_shooting<L: Loss>(m: &Matrix<f64>, y: &[f64], loss: L) {
    for (choice, intercept) in [(Choice::Random, false), (Choice::Random, true), (Choice::Cyclic, false)] {
        let mut p = Problem::new(m, y, loss, 0.7);
        p.intercept = intercept;
        let gap = 1e-7 * p.objective_at_zero();
        let one = ShootingParams { choice, ..shooting(gap) };
        for adaptive in [false, true] {
            let many =
                ShotgunParams { parallel: Some(1), choice, adaptive, seed: 3, ..ShotgunParams::new(gap) };
            let a = sequential::solve(&p, Weights::zero(m.columns()), &one, &mut Monitor::new(None));
            let b = synchronous::solve(&p, Weights::zero(m.columns()), &many, &mut Monitor::new(None));
            assert_eq!(a.info.stop, Stop::Tolerance);
            same_bits(&a, &b);
        }
    }
}

#[test]
fn shotgun_one_at_a_time_is_shooting_bit_for_bit() {
    for seed in 0..8 {
        let m = matrix(&Shape { correlation: 0.3, ..Shape::new(30, 50, 0.4) }, seed);
        one_at_a_time_is_shooting(&m, &target(&m, 0.5, seed), Squared);
        one_at_a_time_is_shooting(&m, &labels(&m, seed), Logistic);
    }
}

fn threads_do_not_matter<L: Loss>(m: &Matrix<f64>, y: &[f64], loss: L) {
    let mut p = Problem::new(m, y, loss, 0.0);
    p.lambda = 0.1 * lambda_max(&p, Par::Seq);
    let gap = 1e-6 * p.objective_at_zero();
    for which in 0..3 {
        let run = |par: Par| {
            let params = ShotgunParams { parallel: Some(64), par, ..ShotgunParams::new(gap) };
            par.run(|_| {
                let (start, mut monitor) = (Weights::zero(m.columns()), Monitor::new(None));
                match which {
                    0 => synchronous::solve(&p, start, &params, &mut monitor),
                    1 => shotgun::solve(&p, start, &params, &mut monitor),
                    _ => synchronous::solve(
                        &p,
                        start,
                        &ShotgunParams { choice: Choice::Random, ..params },
                        &mut monitor,
                    ),
                }
            })
        };
        let (one, two) = (run(Par::Seq), run(Par::Rayon(2)));
        assert_eq!(one.info.stop, Stop::Tolerance);
        same_bits(&one, &two);
    }
}

#[test]
fn same_bits_on_one_and_two_threads() {
    // 64 columns of about 600 entries are worth threads
    let m = matrix(&Shape::new(700, 200, 0.9), 5);
    threads_do_not_matter(&m, &target(&m, 1.0, 5), Squared);
    threads_do_not_matter(&m, &labels(&m, 5), Logistic);
}

/// Many copies of few columns: `ρ` is at least the number of copies, so `P*` is small.
fn copies(columns: usize) -> (Matrix<f64>, Vec<f64>) {
    let base = matrix(&Shape::new(20, 2, 1.0), 9);
    let rows: Vec<Vec<f64>> = (0..20)
        .map(|i| (0..columns).map(|j| base.column(j % 2).iter::<f64>().nth(i).map_or(0.0, |e| e.1)).collect())
        .collect();
    let m = from_dense(&rows);
    let y = target(&base, 0.1, 9);
    (m, y)
}

#[test]
fn too_many_at_a_time_diverge_and_are_caught() {
    let (m, y) = copies(40);
    let p = Problem::new(&m, &y, Squared, 0.05);
    let gap = 1e-8 * p.objective_at_zero();
    for choice in [Choice::Random, Choice::Cyclic] {
        let adaptive = ShotgunParams { parallel: Some(40), choice, ..ShotgunParams::new(gap) };
        let plain = ShotgunParams { adaptive: false, ..adaptive };
        let found = synchronous::solve(&p, Weights::zero(40), &plain, &mut Monitor::new(None));
        assert_eq!(found.info.stop, Stop::Diverged);
        assert!(found.certificate.objective <= p.objective_at_zero() * (1.0 + 1e-12));
        let found = synchronous::solve(&p, Weights::zero(40), &adaptive, &mut Monitor::new(None));
        assert_eq!(found.info.stop, Stop::Tolerance);
        assert!(found.info.backoffs >= 1 && found.info.parallel < 40);
        let found = shotgun::solve(&p, Weights::zero(40), &adaptive, &mut Monitor::new(None));
        assert_eq!(found.info.stop, Stop::Tolerance);
    }
    // Left to itself it takes P* = d/ρ.
    let found = synchronous::solve(&p, Weights::zero(40), &ShotgunParams::new(gap), &mut Monitor::new(None));
    assert_eq!(found.info.stop, Stop::Tolerance);
    assert!(found.info.parallel <= 2);
    let labels: Vec<f64> = y.iter().map(|y| if *y > 0.0 { 1.0 } else { -1.0 }).collect();
    let p = Problem::new(&m, &labels, Logistic, 0.05);
    let params = ShotgunParams { parallel: Some(40), ..ShotgunParams::new(1e-8) };
    let found = cdn::solve(&p, Weights::zero(40), &params, &mut Monitor::new(None));
    assert_eq!(found.info.stop, Stop::Tolerance);
    assert!(found.info.backoffs >= 1);
}

#[test]
fn a_run_never_ends_worse_than_it_started() {
    let (m, y) = copies(30);
    let p = Problem::new(&m, &y, Squared, 0.05);
    let gap = 1e-8 * p.objective_at_zero();
    let good = sequential::solve(&p, Weights::zero(30), &shooting(gap), &mut Monitor::new(None));
    for max_epochs in [0, 1, 2, 5] {
        for adaptive in [false, true] {
            let params =
                ShotgunParams { parallel: Some(30), adaptive, max_epochs, ..ShotgunParams::new(0.1 * gap) };
            let found = synchronous::solve(&p, good.weights.clone(), &params, &mut Monitor::new(None));
            assert!(found.certificate.objective <= good.certificate.objective * (1.0 + 1e-12));
        }
    }
}

#[test]
fn asynchronous_holds_its_certificate_under_stress() {
    for seed in 0..30 {
        let shape = Shape { correlation: 0.3, duplicates: 5, zero_every: 7, ..Shape::new(40, 60, 0.5) };
        let m = matrix(&shape, seed);
        let (y, signs) = (target(&m, 0.5, seed), labels(&m, seed));
        for threads in [2, 3, 4] {
            let lasso = Problem::new(&m, &y, Squared, 1.0);
            let mut logistic = Problem::new(&m, &signs, Logistic, 0.3);
            logistic.intercept = seed % 2 == 0;
            Par::Rayon(threads).run(|par| {
                let params =
                    ShotgunParams { par, seed, ..ShotgunParams::new(1e-8 * lasso.objective_at_zero()) };
                let found = asynchronous::solve(&lasso, Weights::zero(60), &params, &mut Monitor::new(None));
                assert_eq!(found.info.stop, Stop::Tolerance, "{:?}", found.info);
                let z = lasso.predictions(&found.weights.x, 0.0);
                assert!(certify(&lasso, &found.weights.x, &z, Par::Seq).gap <= params.gap * (1.0 + 1e-9));
                let params = ShotgunParams { gap: 1e-8 * logistic.objective_at_zero(), ..params };
                let found =
                    asynchronous::solve(&logistic, Weights::zero(60), &params, &mut Monitor::new(None));
                assert_eq!(found.info.stop, Stop::Tolerance, "{:?}", found.info);
                let z = logistic.predictions(&found.weights.x, found.weights.intercept);
                assert!(certify(&logistic, &found.weights.x, &z, Par::Seq).gap <= params.gap * (1.0 + 1e-9));
            });
        }
    }
}

#[test]
fn stops_when_asked_and_at_its_limit() {
    let m = matrix(&Shape { correlation: 0.6, ..Shape::new(40, 80, 0.5) }, 1);
    let y = target(&m, 0.5, 1);
    let p = Problem::new(&m, &y, Squared, 0.1);
    let stop = |point: &Point| point.updates < 200;
    let params = ShotgunParams { parallel: Some(1), ..ShotgunParams::new(1e-12) };
    let found = shotgun::solve(&p, Weights::zero(80), &params, &mut Monitor::new(Some(&stop)));
    assert_eq!(found.info.stop, Stop::Interrupted);
    let few = ShotgunParams { max_epochs: 3, ..params };
    let found = synchronous::solve(&p, Weights::zero(80), &few, &mut Monitor::new(None));
    assert_eq!(found.info.stop, Stop::Iterations);
    assert!(found.certificate.gap > 1e-12 && found.certificate.objective < p.objective_at_zero());
}

#[test]
fn nothing_to_do() {
    // no columns, zero columns, λ above λ_max
    let empty = Matrix::<f64>::from_rows(0, &[&[], &[]]);
    let p = Problem::new(&empty, &[1.0, 2.0], Squared, 1.0);
    let found = shotgun::solve(&p, Weights::zero(0), &ShotgunParams::new(1e-9), &mut Monitor::new(None));
    assert_eq!((found.info.stop, found.certificate.gap), (Stop::Tolerance, 0.0));
    let zeros = Matrix::<f64>::from_rows(3, &[&[], &[]]);
    let p = Problem { intercept: true, ..Problem::new(&zeros, &[1.0, 2.0], Squared, 1.0) };
    let found = shotgun::solve(&p, Weights::zero(3), &ShotgunParams::new(1e-9), &mut Monitor::new(None));
    assert_eq!((found.info.stop, found.weights.intercept), (Stop::Tolerance, 1.5));
    let m = matrix(&Shape::new(10, 5, 0.8), 2);
    let y = labels(&m, 2);
    let mut p = Problem::new(&m, &y, Logistic, 0.0);
    p.lambda = 1.01 * lambda_max(&p, Par::Seq);
    let found = shotgun::solve(&p, Weights::zero(5), &ShotgunParams::new(1e-9), &mut Monitor::new(None));
    assert_eq!((found.info.stop, found.weights.nonzeros()), (Stop::Tolerance, 0));
}
