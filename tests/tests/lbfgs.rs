//! L-BFGS and its proximal relative: against dense solves, optimality conditions written out here, and the sparse regression solvers.

use gibbsite::par::Par;
use gibbsite::regress::{Lambda, RegressParams, Task, fit};
use gibbsite::solver::lbfgs::{LbfgsError, LbfgsInfo, LbfgsParams, Point, Smooth, State, Stop, minimize};
use gibbsite_tests::regression::{Shape, dense, labels, matrix, normal, rng};
use proptest::prelude::*;
use rand::RngExt;

/// A closure as an objective that counts its calls.
struct Function<F> {
    len: usize,
    calls: u64,
    f: F,
}

impl<F: FnMut(&[f64], &mut [f64]) -> f64> Function<F> {
    fn new(len: usize, f: F) -> Self {
        Self { len, calls: 0, f }
    }
}

impl<F: FnMut(&[f64], &mut [f64]) -> f64> Smooth for Function<F> {
    fn len(&self) -> usize {
        self.len
    }
    fn value_gradient(&mut self, theta: &[f64], gradient: &mut [f64]) -> f64 {
        self.calls += 1;
        gradient.fill(f64::NAN);
        (self.f)(theta, gradient)
    }
}

/// Not watched.
fn run<S: Smooth>(f: &mut S, start: Vec<f64>, params: &LbfgsParams) -> (Vec<f64>, LbfgsInfo) {
    let (state, info) = minimize(f, State::new(start), params, &mut |_, _| true).unwrap();
    // the last look, but for the clock and what was tried in vain after it
    let Point { seconds, evaluations, .. } = info.end;
    let last = *info.trace.last().unwrap();
    assert_eq!(info.end, Point { seconds, evaluations, ..last });
    assert!(
        evaluations >= last.evaluations && (evaluations == last.evaluations || info.stop == Stop::Precision)
    );
    (state.into_theta(), info)
}

/// `½θᵀAθ - bᵀθ`.
#[derive(Clone, Debug)]
struct Bowl {
    a: Vec<Vec<f64>>,
    b: Vec<f64>,
}

impl Bowl {
    /// `A = GᵀG/n + ridge`, scaled on both sides.
    fn random(n: usize, ridge: f64, spread: f64, seed: u64) -> Self {
        let mut rng = rng(seed);
        let g: Vec<Vec<f64>> = (0..n).map(|_| (0..n).map(|_| normal(&mut rng)).collect()).collect();
        let scale: Vec<f64> = (0..n).map(|_| rng.random_range(-spread..=spread).exp()).collect();
        let entry = |i: usize, j: usize| {
            let sum: f64 = g.iter().map(|row| row[i] * row[j]).sum();
            scale[i] * scale[j] * (sum / n as f64 + if i == j { ridge } else { 0.0 })
        };
        let a = (0..n).map(|i| (0..n).map(|j| entry(i, j)).collect()).collect();
        Self { a, b: (0..n).map(|_| 3.0 * normal(&mut rng)).collect() }
    }

    fn product(&self, x: &[f64]) -> Vec<f64> {
        self.a.iter().map(|row| row.iter().zip(x).map(|(a, x)| a * x).sum()).collect()
    }
}

impl Smooth for Bowl {
    fn len(&self) -> usize {
        self.b.len()
    }
    fn value_gradient(&mut self, theta: &[f64], gradient: &mut [f64]) -> f64 {
        let ax = self.product(theta);
        let mut value = 0.0;
        for (((g, ax), b), x) in gradient.iter_mut().zip(&ax).zip(&self.b).zip(theta) {
            *g = ax - b;
            value += x * (0.5 * ax - b);
        }
        value
    }
}

/// Gaussian elimination with pivoting.
fn solve(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| a[i][k].abs().total_cmp(&a[j][k].abs())).unwrap();
        a.swap(k, pivot);
        b.swap(k, pivot);
        let (top, rest) = a.split_at_mut(k + 1);
        for (i, row) in (k + 1..n).zip(rest) {
            let factor = row[k] / top[k][k];
            row.iter_mut().zip(&top[k]).for_each(|(x, pivot)| *x -= factor * pivot);
            b[i] -= factor * b[k];
        }
    }
    for k in (0..n).rev() {
        let known: f64 = (k + 1..n).map(|j| a[k][j] * b[j]).sum();
        b[k] = (b[k] - known) / a[k][k];
    }
    b
}

/// Largest distance of 0 from the subdifferential, from scratch.
fn violation<S: Smooth>(f: &mut S, theta: &[f64], l1: f64, l2: f64) -> f64 {
    let mut g = vec![0.0; theta.len()];
    f.value_gradient(theta, &mut g);
    let one = |(&x, &g): (&f64, &f64)| {
        let slope = g + l2 * x;
        if x > 0.0 {
            (slope + l1).abs()
        } else if x < 0.0 {
            (slope - l1).abs()
        } else {
            (slope.abs() - l1).max(0.0)
        }
    };
    theta.iter().zip(&g).map(one).fold(0.0, f64::max)
}

fn exact(l1: f64, l2: f64) -> LbfgsParams {
    LbfgsParams { l1, l2, tolerance: 1e-9, max_iterations: 5000, ..LbfgsParams::default() }
}

/// Logistic regression, plainly.
fn logistic(rows: Vec<Vec<f64>>, y: Vec<f64>) -> Function<impl FnMut(&[f64], &mut [f64]) -> f64> {
    Function::new(rows[0].len(), move |theta, g| {
        g.fill(0.0);
        let mut value = 0.0;
        for (row, y) in rows.iter().zip(&y) {
            let z: f64 = -y * row.iter().zip(theta).map(|(a, x)| a * x).sum::<f64>();
            value += z.max(0.0) + (-z.abs()).exp().ln_1p();
            let slope = -y / (1.0 + (-z).exp());
            row.iter().zip(&mut *g).for_each(|(a, g)| *g += slope * a);
        }
        value
    })
}

#[test]
fn quadratics_match_a_dense_solve() {
    for (n, spread) in [(1, 0.0), (2, 0.0), (30, 0.0), (30, 2.0)] {
        let mut bowl = Bowl::random(n, 0.1, spread, 7 + n as u64);
        let l2 = 0.3;
        let mut a = bowl.a.clone();
        (0..n).for_each(|i| a[i][i] += l2);
        let right = solve(a, bowl.b.clone());
        let start: Vec<f64> = (0..n).map(|i| i as f64 - 3.0).collect();
        for memory in [1, 5, 16] {
            let params = LbfgsParams { memory, tolerance: 1e-12, ..exact(0.0, l2) };
            let (theta, info) = run(&mut bowl, start.clone(), &params);
            let size = right.iter().fold(0.0f64, |m, x| m.max(x.abs()));
            let error = theta.iter().zip(&right).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
            assert!(error <= 1e-8 * size, "{n} {spread} {memory}: {error} of {size}, {info:?}");
        }
    }
}

/// The metric that undoes the scales makes the problem easy.
#[test]
fn scales_help() {
    let mut bowl = Bowl::random(40, 0.5, 4.0, 3);
    let scale: Vec<f64> = (0..40).map(|i| bowl.a[i][i]).collect();
    for l1 in [0.0, 0.5] {
        let plain = exact(l1, 0.0);
        let scaled = LbfgsParams { scale: Some(scale.clone()), ..plain.clone() };
        let (_, without) = run(&mut bowl, vec![0.0; 40], &plain);
        let (theta, with) = run(&mut bowl, vec![0.0; 40], &scaled);
        assert_eq!(with.stop, Stop::Tolerance);
        let allowed = 1e-9 * violation(&mut bowl, &[0.0; 40], l1, 0.0);
        assert!(violation(&mut bowl, &theta, l1, 0.0) <= 1.001 * allowed);
        assert!(2 * with.end.evaluations < without.end.evaluations, "{:?} {:?}", with.end, without.end);
    }
}

#[test]
fn rosenbrock() {
    let mut f = Function::new(10, |x: &[f64], g: &mut [f64]| {
        let mut value = 0.0;
        for k in (0..10).step_by(2) {
            let (a, b) = (1.0 - x[k], x[k + 1] - x[k] * x[k]);
            value += a * a + 100.0 * b * b;
            (g[k], g[k + 1]) = (-2.0 * a - 400.0 * b * x[k], 200.0 * b);
        }
        value
    });
    let start: Vec<f64> = (0..10).map(|k| if k % 2 == 0 { -1.2 - 0.1 * k as f64 } else { 1.0 }).collect();
    let (theta, info) = run(&mut f, start, &LbfgsParams { tolerance: 1e-10, ..exact(0.0, 0.0) });
    assert!(theta.iter().all(|x| (x - 1.0).abs() < 1e-7), "{theta:?} {info:?}");
    // SciPy's L-BFGS-B with as many pairs takes 145 to this violation
    assert!(f.calls == info.end.evaluations && f.calls < 160, "{}", f.calls);
}

#[test]
fn logistic_meets_its_conditions() {
    let m = matrix(&Shape { correlation: 0.5, ..Shape::new(60, 40, 0.5) }, 5);
    let (rows, y) = (dense(&m), labels(&m, 5));
    for (l1, l2) in [(0.0, 0.5), (0.0, 1e-3), (0.3, 0.0), (0.3, 0.1), (2.0, 0.0), (1e4, 0.0)] {
        let mut f = logistic(rows.clone(), y.clone());
        let at_zero = violation(&mut f, &[0.0; 40], l1, l2);
        for start in [0.0, 0.7] {
            let (theta, info) = run(&mut f, vec![start; 40], &exact(l1, l2));
            assert_eq!(info.stop, Stop::Tolerance, "{l1} {l2} {info:?}");
            let reference = at_zero.max(violation(&mut f, &[start; 40], l1, l2));
            let left = violation(&mut f, &theta, l1, l2);
            assert!(left <= 1.001e-9 * reference, "{l1} {l2} {left} {reference}");
            assert!((left - info.end.violation).abs() <= 1e-12 * reference);
            assert_eq!(info.end.nonzeros, theta.iter().filter(|x| **x != 0.0).count());
            assert!(info.trace.windows(2).all(|p| p[1].objective <= p[0].objective * (1.0 + 1e-12)));
        }
    }
}

/// The optimum of the working-set solver, to its duality gap.
#[test]
fn sparse_logistic_matches_regress() {
    let m = matrix(&Shape { correlation: 0.3, ..Shape::new(80, 120, 0.3) }, 9);
    let y = labels(&m, 9);
    for (lambda, l2) in [(0.5, 0.0), (2.0, 0.0), (1.0, 0.4)] {
        let plain = RegressParams::new(Task::Logistic, Lambda::Value(lambda));
        let best = fit(&m, &y, &RegressParams { l2, tolerance: 1e-12, ..plain }, None).unwrap();
        let mut f = logistic(dense(&m), y.clone());
        let (theta, info) = run(&mut f, vec![0.0; 120], &exact(lambda, l2));
        let right = best.certificate.objective;
        assert!((info.end.objective - right).abs() <= 1e-9 * right, "{} {right}", info.end.objective);
        for (ours, theirs) in theta.iter().zip(best.weights.dense()) {
            assert!((ours - theirs).abs() < 1e-4, "{ours} {theirs}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn convex_quadratics_meet_their_conditions(
        n in 1usize..25, ridge in 0.01..1.0f64, spread in 0.0..1.5f64, l1 in prop_oneof![Just(0.0), 0.01..4.0f64],
        l2 in prop_oneof![Just(0.0), 0.01..2.0f64], memory in 1usize..20, seed in any::<u64>(), unit in -30i32..30,
    ) {
        let mut bowl = Bowl::random(n, ridge, spread, seed);
        // the rule is free of scale: the objective in any unit
        let unit = 10f64.powi(unit);
        bowl.a.iter_mut().flatten().chain(&mut bowl.b).for_each(|x| *x *= unit);
        let (l1, l2) = (l1 * unit, l2 * unit);
        let params = LbfgsParams { memory, tolerance: 1e-7, ..exact(l1, l2) };
        let (theta, info) = run(&mut bowl, vec![0.0; n], &params);
        prop_assert_eq!(info.stop, Stop::Tolerance);
        let allowed = 1e-7 * violation(&mut bowl, &vec![0.0; n], l1, l2);
        prop_assert!(violation(&mut bowl, &theta, l1, l2) <= 1.001 * allowed);
    }
}

/// A problem of several blocks, with ties between them.
fn wide(n: usize) -> Function<impl FnMut(&[f64], &mut [f64]) -> f64> {
    Function::new(n, move |x, g| {
        let mut value = 0.0;
        g.fill(0.0);
        for j in 0..n {
            let weight = 1.0 + (j % 17) as f64;
            let other = (j * 7 + 3) % n;
            let r = x[j] - 0.5 * x[other] - (j as f64 * 0.37).sin() * 3.0;
            value += weight * ((1.0 + r * r).sqrt() - 1.0);
            let slope = weight * r / (1.0 + r * r).sqrt();
            g[j] += slope;
            g[other] -= 0.5 * slope;
        }
        value
    })
}

#[test]
fn threads_change_nothing() {
    for l1 in [0.0, 0.8] {
        let with = |threads: usize| {
            let par = Par::threads(threads);
            let params = LbfgsParams { max_iterations: 25, par, ..exact(l1, 0.01) };
            par.run(|_| run(&mut wide(9001), vec![0.0; 9001], &params))
        };
        let (one, info) = with(1);
        assert!(info.end.iterations >= 15, "{:?}", info.end);
        for threads in [2, 3, 7] {
            let (many, other) = with(threads);
            assert!(one == many && info.end.objective == other.end.objective, "{threads}");
        }
    }
}

#[test]
fn resumes_bit_for_bit() {
    for l1 in [0.0, 0.8] {
        let scale = (0..5000).map(|j| 1.0 + (j % 3) as f64).collect();
        let params = LbfgsParams { memory: 5, scale: Some(scale), max_iterations: 20, ..exact(l1, 0.01) };
        let (whole, info) = run(&mut wide(5000), vec![0.1; 5000], &params);
        for at in [0, 1, 3, 12] {
            let mut saved = None;
            let (_, first) =
                minimize(&mut wide(5000), State::new(vec![0.1; 5000]), &params, &mut |p, state| {
                    saved = Some(state.to_bytes());
                    p.iterations < at
                })
                .unwrap();
            assert_eq!((first.stop, first.end.iterations), (Stop::Interrupted, at));
            let state = State::from_bytes(&saved.unwrap()).unwrap();
            let (rest, second) = minimize(&mut wide(5000), state, &params, &mut |_, _| true).unwrap();
            assert!(rest.theta() == whole, "{at}");
            assert_eq!(second.end.evaluations, info.end.evaluations);
            assert_eq!(second.stop, info.stop);
            let later =
                info.trace.iter().skip(at as usize).map(|p| (p.objective, p.violation, p.evaluations));
            assert!(second.trace.iter().map(|p| (p.objective, p.violation, p.evaluations)).eq(later));
        }
        // damaged anywhere, cut anywhere: an error and no panic
        let (state, _) = minimize(&mut wide(50), State::new(vec![0.1; 50]), &exact(l1, 0.01), &mut |p, _| {
            p.iterations < 3
        })
        .unwrap();
        let bytes = state.to_bytes();
        for at in (0..bytes.len()).step_by(bytes.len() / 200 + 1) {
            let mut bad = bytes.clone();
            bad[at] ^= 0x10;
            assert_eq!(State::from_bytes(&bad), Err(LbfgsError::Checkpoint));
            assert_eq!(State::from_bytes(&bytes[..at]), Err(LbfgsError::Checkpoint));
        }
    }
}

/// Another penalty: the saved gradient and history are not used.
#[test]
fn resumes_with_other_penalties() {
    let mut bowl = Bowl::random(12, 0.2, 0.5, 2);
    let (state, _) =
        minimize(&mut bowl, State::new(vec![0.0; 12]), &exact(0.0, 5.0), &mut |p, _| p.iterations < 4)
            .unwrap();
    let (state, info) = minimize(&mut bowl, state, &exact(0.4, 0.1), &mut |_, _| true).unwrap();
    assert_eq!(info.stop, Stop::Tolerance);
    assert!(violation(&mut bowl, state.theta(), 0.4, 0.1) <= 1e-7);
}

#[test]
fn out_of_bounds_shortens_the_step() {
    // -log(1 - x) barriers: finite only for x < 1, and the first steps overshoot
    for (l1, outside) in [(0.0, f64::NAN), (0.0, f64::INFINITY), (0.1, f64::NAN), (0.1, f64::INFINITY)] {
        let mut f = Function::new(3, move |x: &[f64], g: &mut [f64]| {
            if x.iter().any(|x| *x >= 1.0) {
                return outside;
            }
            let mut value = 0.0;
            for (k, (x, g)) in x.iter().zip(g).enumerate() {
                let pull = 10f64.powi(k as i32 + 1);
                value += -(1.0 - x).ln() - pull * x;
                *g = 1.0 / (1.0 - x) - pull;
            }
            value
        });
        let (theta, info) = run(&mut f, vec![0.0; 3], &exact(l1, 0.0));
        assert_eq!(info.stop, Stop::Tolerance, "{l1} {outside} {info:?}");
        for (k, x) in theta.iter().enumerate() {
            let right = 1.0 - 1.0 / (10f64.powi(k as i32 + 1) - l1);
            assert!((x - right).abs() < 1e-5, "{x} {right}");
        }
    }
}

#[test]
fn refuses_bad_starts() {
    let start = |params: &LbfgsParams, theta: Vec<f64>, value: f64, slope: f64| {
        let mut f = Function::new(2, move |_: &[f64], g: &mut [f64]| {
            g.fill(slope);
            value
        });
        minimize(&mut f, State::new(theta), params, &mut |_, _| true).unwrap_err()
    };
    let plain = LbfgsParams::default();
    assert!(matches!(start(&plain, vec![0.0; 2], f64::NAN, 1.0), LbfgsError::Value(v) if v.is_nan()));
    assert_eq!(start(&plain, vec![0.0; 2], f64::INFINITY, 1.0), LbfgsError::Value(f64::INFINITY));
    assert_eq!(start(&plain, vec![0.0; 2], 1.0, f64::NAN), LbfgsError::Parameter(0));
    assert_eq!(start(&plain, vec![0.0, f64::NAN], 1.0, 1.0), LbfgsError::Parameter(1));
    assert_eq!(start(&plain, vec![0.0; 3], 1.0, 1.0), LbfgsError::Length { expected: 2, found: 3 });
    let scale = |d: f64| LbfgsParams { scale: Some(vec![1.0, d]), ..plain.clone() };
    for d in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(start(&scale(d), vec![0.0; 2], 1.0, 1.0), LbfgsError::Scale(1));
    }
    assert_eq!(
        start(&LbfgsParams { l1: -1.0, ..plain.clone() }, vec![0.0; 2], 1.0, 1.0),
        LbfgsError::Param("l1")
    );
    assert_eq!(
        start(&LbfgsParams { l2: f64::NAN, ..plain.clone() }, vec![0.0; 2], 1.0, 1.0),
        LbfgsError::Param("l2")
    );
    assert!(LbfgsError::Value(f64::NAN).to_string().contains("NaN"));
}

/// A wrong gradient, or an objective that only knows noise, ends the run instead of hanging it.
#[test]
fn ends_where_nothing_helps() {
    for l1 in [0.0, 0.1] {
        let mut uphill = Function::new(2, |x: &[f64], g: &mut [f64]| {
            (g[0], g[1]) = (-2.0 * x[0] - 1.0, -2.0 * x[1] - 1.0);
            x[0] * x[0] + x[0] + x[1] * x[1] + x[1]
        });
        let (theta, info) = run(&mut uphill, vec![1.0, 1.0], &exact(l1, 0.0));
        assert_eq!((info.stop, info.end.iterations), (Stop::Precision, 0));
        assert_eq!(theta, [1.0, 1.0]);
        let mut calls = 0u64;
        let mut noisy = Function::new(2, |x: &[f64], g: &mut [f64]| {
            calls += 1;
            (g[0], g[1]) = (x[0] - 1.0 + 1e-3 * (calls % 3) as f64, x[1] - 1.0);
            0.5 * ((x[0] - 1.0).powi(2) + (x[1] - 1.0).powi(2)) + 1e-3 * (calls % 7) as f64
        });
        let (_, info) = run(&mut noisy, vec![5.0, -3.0], &exact(l1, 0.0));
        assert!(info.end.evaluations < 2000 && info.end.objective < 0.3, "{:?}", info.end);
    }
    // no lower bound: the limit on steps, or the end of the numbers
    let mut endless = Function::new(1, |x: &[f64], g: &mut [f64]| {
        g[0] = -1.0;
        -x[0]
    });
    let (_, info) = run(&mut endless, vec![0.0], &LbfgsParams { max_iterations: 50, ..exact(0.0, 0.0) });
    assert!(matches!(info.stop, Stop::Iterations | Stop::Precision), "{info:?}");
}

#[test]
fn stops_where_it_is_told() {
    let mut bowl = Bowl::random(20, 0.05, 1.0, 4);
    for l1 in [0.0, 0.3] {
        let (_, best) = run(&mut bowl, vec![0.0; 20], &exact(l1, 0.0));
        let target = best.end.objective + 1e-3 * best.end.objective.abs();
        let params = LbfgsParams { target_objective: Some(target), ..exact(l1, 0.0) };
        let (_, info) = run(&mut bowl, vec![0.0; 20], &params);
        assert_eq!(info.stop, Stop::Target);
        let before = info.trace.iter().rev().nth(1).unwrap();
        assert!(info.end.objective <= target && before.objective > target);
        let (_, info) = run(&mut bowl, vec![0.0; 20], &LbfgsParams { max_iterations: 3, ..exact(l1, 0.0) });
        assert_eq!((info.stop, info.end.iterations, info.trace.len()), (Stop::Iterations, 3, 4));
        // from the optimum: nothing to do, though the violation there is no scale
        let (theta, _) = run(&mut bowl, vec![0.0; 20], &exact(l1, 0.0));
        let (again, info) = run(&mut bowl, theta.clone(), &exact(l1, 0.0));
        assert_eq!((again, info.stop, info.end.evaluations), (theta, Stop::Tolerance, 2));
    }
    // 0 is the optimum
    let (theta, info) = run(&mut bowl, vec![0.0; 20], &exact(1e6, 0.0));
    assert_eq!((theta, info.stop, info.end.evaluations), (vec![0.0; 20], Stop::Tolerance, 1));
    let (theta, info) = run(&mut bowl, vec![1.0; 20], &exact(1e6, 0.0));
    assert_eq!((theta, info.stop), (vec![0.0; 20], Stop::Tolerance));
    // no parameters, and one
    let mut nothing = Function::new(0, |_: &[f64], _: &mut [f64]| 4.0);
    let (_, info) = run(&mut nothing, Vec::new(), &exact(1.0, 1.0));
    assert_eq!((info.stop, info.end.objective), (Stop::Tolerance, 4.0));
    let mut single = Function::new(1, |x: &[f64], g: &mut [f64]| {
        g[0] = 4.0 * (x[0] - 2.0).powi(3);
        (x[0] - 2.0).powi(4)
    });
    let (theta, _) = run(&mut single, vec![0.0], &exact(0.5, 0.0));
    assert!((theta[0] - (2.0 - 0.5)).abs() < 1e-7, "{theta:?}");
}
