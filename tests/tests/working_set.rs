//! The `auto` solver as users meet it, against loops over a dense copy that share no code with it, and against the reference solver.

use gibbsite::data::matrix::Matrix;
use gibbsite::par::Par;
use gibbsite::regress::path::path;
use gibbsite::regress::problem::{SparseWeights, Weights};
use gibbsite::regress::{Fit, Lambda, RegressError, RegressParams, Solver, Task, fit};
use gibbsite::solver::monitor::Stop;
use gibbsite_tests::regression::{Shape, dense, from_dense, labels, matrix, normal, rng, target};
use proptest::prelude::*;

/// What is asked of `auto` here, as a share of `F(0)`.
const TOLERANCE: f64 = 1e-9;

/// The problem once more, dense and plain.
struct Plain {
    a: Vec<Vec<f64>>,
    y: Vec<f64>,
    logistic: bool,
    l1: Vec<f64>,
    l2: f64,
    positive: bool,
    intercept: bool,
}

impl Plain {
    fn new(m: &Matrix<f64>, y: &[f64], params: &RegressParams, lambda: f64) -> Self {
        assert!(!params.standardize, "scale the columns instead");
        let weights = params.l1_weights.clone().unwrap_or_else(|| vec![1.0; m.columns()]);
        Self {
            a: dense(m),
            y: y.to_vec(),
            logistic: params.task == Task::Logistic,
            l1: weights.iter().map(|w| w * lambda).collect(),
            l2: params.l2,
            positive: params.positive,
            intercept: params.intercept,
        }
    }

    fn predict(&self, x: &[f64], b: f64) -> Vec<f64> {
        self.a.iter().map(|row| b + row.iter().zip(x).map(|(a, x)| a * x).sum::<f64>()).collect()
    }

    fn objective(&self, x: &[f64], b: f64) -> f64 {
        let loss = |(z, y): (f64, &f64)| {
            if self.logistic {
                let m = -z * y;
                m.max(0.0) + (-m.abs()).exp().ln_1p()
            } else {
                0.5 * (z - y) * (z - y)
            }
        };
        let losses: f64 = self.predict(x, b).into_iter().zip(&self.y).map(loss).sum();
        losses + x.iter().zip(&self.l1).map(|(x, l1)| l1 * x.abs() + 0.5 * self.l2 * x * x).sum::<f64>()
    }

    fn at_zero(&self) -> f64 {
        self.objective(&vec![0.0; self.l1.len()], 0.0)
    }

    /// Minus the derivative of the loss by each prediction.
    fn residual(&self, x: &[f64], b: f64) -> Vec<f64> {
        let one = |(z, y): (f64, &f64)| if self.logistic { y / (1.0 + (z * y).exp()) } else { y - z };
        self.predict(x, b).into_iter().zip(&self.y).map(one).collect()
    }

    fn correlation(&self, j: usize, u: &[f64]) -> f64 {
        self.a.iter().zip(u).map(|(row, u)| row[j] * u).sum()
    }

    /// Whether the dual point must be orthogonal to a column; if weights must not be negative, one that is 0 may pull downwards.
    fn free(&self, j: usize, x: &[f64]) -> bool {
        self.l1[j] == 0.0 && self.l2 == 0.0 && !(self.positive && x[j] == 0.0)
    }

    /// Columns that the dual point must be orthogonal to, made orthonormal under the sample weights `w` by Gram and Schmidt (twice, for rounding).
    fn unpenalised(&self, x: &[f64], w: &[f64]) -> Vec<Vec<f64>> {
        let free = (0..self.l1.len()).filter(|&j| self.free(j, x));
        let mut columns: Vec<Vec<f64>> = free.map(|j| self.a.iter().map(|row| row[j]).collect()).collect();
        if self.intercept {
            columns.push(vec![1.0; self.a.len()]);
        }
        let mut basis: Vec<Vec<f64>> = Vec::new();
        for mut c in columns {
            let before = weighted(w, &c, &c);
            for q in basis.iter().chain(&basis) {
                let along = weighted(w, q, &c);
                c.iter_mut().zip(q).for_each(|(c, q)| *c -= along * q);
            }
            let norm = weighted(w, &c, &c).sqrt();
            if norm * norm > 1e-20 * before {
                basis.push(c.iter().map(|c| c / norm).collect());
            }
        }
        basis
    }

    /// Where the residuals add up to 0, by bisection; `b` itself without intercept.
    fn best_intercept(&self, x: &[f64], b: f64) -> f64 {
        let (mut low, mut high) = (b - 1.0, b + 1.0);
        for _ in 0..if self.intercept { 60 } else { 0 } {
            let middle = 0.5 * (low + high);
            let rest: f64 = self.residual(x, middle).iter().sum();
            *(if rest > 0.0 { &mut low } else { &mut high }) = middle;
        }
        0.5 * (low + high)
    }

    /// A lower bound of the optimum from the residual at a point: `Σ -L*(-θ) - Σ penalty*(Aᵀθ)` at a feasible `θ`.
    fn bound(&self, x: &[f64], b: f64) -> f64 {
        let mut theta = self.residual(x, self.best_intercept(x, b));
        // Corrections in proportion to the loss's curvature leave saturated samples where they are: in the domain.
        let w: Vec<f64> =
            theta.iter().map(|t| if self.logistic { t.abs() * (1.0 - t.abs()) } else { 1.0 }).collect();
        let basis = self.unpenalised(x, &w);
        for q in basis.iter().chain(&basis) {
            let along = dot(q, &theta);
            theta.iter_mut().zip(q.iter().zip(&w)).for_each(|(t, (q, w))| *t -= along * w * q);
        }
        let mut limit = f64::INFINITY;
        if self.logistic {
            // Rounding may leave saturated samples outside of the domain; what clamping them costs is far below the tolerance.
            for (t, y) in theta.iter_mut().zip(&self.y) {
                assert!((-1e-7..1.0 + 1e-7).contains(&(*t * y)), "{t}");
                *t = y * (*t * y).clamp(0.0, 1.0);
                limit = limit.min(1.0 / t.abs());
            }
        }
        let mut price = 0.0;
        for j in 0..self.l1.len() {
            let c = self.correlation(j, &theta);
            let size = if self.positive { c.max(0.0) } else { c.abs() };
            if self.l2 > 0.0 {
                price += (size - self.l1[j]).max(0.0).powi(2) / (2.0 * self.l2);
            }
            if size > 0.0 && !self.free(j, x) {
                limit = limit.min(self.l1[j] / size);
            }
        }
        let entropy = |p: f64| if p > 0.0 { -p * p.ln() } else { 0.0 };
        let dual = |scale: f64, t: f64, y: &f64| {
            let t = scale * t;
            if self.logistic { entropy(t * y) + entropy(1.0 - t * y) } else { t * y - 0.5 * t * t }
        };
        let total = |scale| theta.iter().zip(&self.y).map(|(&t, y)| dual(scale, t, y)).sum::<f64>();
        let scaled = highest(total, limit.min(2.0));
        // A ridge allows `θ` to exceed the penalties, at a price.
        if self.l2 > 0.0 { scaled.max(total(1.0) - price) } else { scaled }
    }

    /// Where a quadratic upper bound of the objective in one weight has its minimum, and what going there gains at least.
    fn step(&self, j: usize, now: f64, u: &[f64]) -> (f64, f64) {
        let slope = -self.correlation(j, u) + self.l2 * now;
        let norm2: f64 = self.a.iter().map(|row| row[j] * row[j]).sum();
        let curvature = self.smooth() * norm2 + self.l2;
        if curvature == 0.0 {
            return (now, 0.0);
        }
        let free = now - slope / curvature;
        let size = (free.abs() - self.l1[j] / curvature).max(0.0);
        let next = if self.positive && free < 0.0 { 0.0 } else { free.signum() * size };
        let step = next - now;
        let change = slope * step + 0.5 * curvature * step * step + self.l1[j] * (next.abs() - now.abs());
        (next, -change)
    }

    /// The largest curvature of the loss in a prediction.
    fn smooth(&self) -> f64 {
        if self.logistic { 0.25 } else { 1.0 }
    }

    /// The most that one coordinate alone can gain: the optimality conditions in units of the objective.
    fn gain(&self, x: &[f64], b: f64) -> f64 {
        let u = self.residual(x, b);
        let mut most = (0..x.len()).map(|j| self.step(j, x[j], &u).1).fold(0.0, f64::max);
        if self.intercept {
            let slope: f64 = u.iter().sum();
            most = most.max(slope * slope / (2.0 * self.smooth() * u.len() as f64));
        }
        most
    }

    /// The best lower bound found on a textbook descent from a point, one coordinate after the other; ends when it is `enough`.
    fn bound_after_descent(&self, x: &[f64], b: f64, enough: f64) -> f64 {
        let (mut x, mut b) = (x.to_vec(), b);
        let mut best = self.bound(&x, b);
        for _ in 0..1000 {
            if best >= enough {
                break;
            }
            for j in 0..x.len() {
                x[j] = self.step(j, x[j], &self.residual(&x, b)).0;
                b = if self.intercept { self.best_intercept(&x, b) } else { b };
            }
            best = best.max(self.bound(&x, b));
        }
        best
    }
}

/// The highest value of a concave function between 0 and `end`, by thirds; the end itself is tried too, where it often is.
fn highest(f: impl Fn(f64) -> f64, end: f64) -> f64 {
    let (mut low, mut high) = (0.0, end);
    for _ in 0..120 {
        let third = (high - low) / 3.0;
        if f(low + third) < f(high - third) {
            low += third;
        } else {
            high -= third;
        }
    }
    f(end).max(f(0.5 * (low + high)))
}

fn weighted(w: &[f64], a: &[f64], b: &[f64]) -> f64 {
    w.iter().zip(a).zip(b).map(|((w, a), b)| w * a * b).sum()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Everything that can be said about one fit; `other` is a second opinion on the same problem.
fn judge(plain: &Plain, found: &Fit, other: &Fit, tolerance: f64) -> Result<(), TestCaseError> {
    let start = plain.at_zero();
    let (x, b) = (&found.weights.dense(), found.weights.intercept);
    let allowed = tolerance * start * (1.0 + 1e-6) + 1e-14;
    prop_assert!(x.iter().all(|x| x.is_finite()) && b.is_finite());
    prop_assert!(found.converged, "{:?} {:?} of {}", found.info, found.certificate, start);
    prop_assert_eq!(found.info.stop, Stop::Tolerance);
    prop_assert!(!plain.positive || x.iter().all(|&x| x >= 0.0));
    prop_assert!(plain.intercept || b == 0.0);
    let objective = plain.objective(x, b);
    let apart = (objective - found.certificate.objective).abs();
    prop_assert!(apart <= 1e-11 * start, "says {} is {}", found.certificate.objective, objective);
    let (best_x, best_b) = (&other.weights.dense(), other.weights.intercept);
    let best = plain.objective(best_x, best_b);
    prop_assert!(
        found.certificate.dual <= best + 1e-11 * start,
        "a bound of {:?} above {}",
        found.certificate,
        best
    );
    let enough = objective - allowed;
    let mut bound = plain.bound(x, b);
    if bound < enough {
        // A bound from residuals is as far off as the square root of the objective: from another point then.
        bound = plain.bound_after_descent(best_x, best_b, enough);
    }
    prop_assert!(bound >= enough, "gap {} of {}", objective - bound, allowed);
    let gain = plain.gain(x, b);
    prop_assert!(gain <= allowed + 1e-11 * start, "could gain {} of {}", gain, allowed);
    prop_assert!((objective - best).abs() <= 1e-8 * start, "{} against {}", objective, best);
    Ok(())
}

/// Whether `λ_max` is 0 but for rounding, as if all penalised columns repeat free ones: a share of it means nothing.
fn hopeless(m: &Matrix<f64>, y: &[f64], found: &Fit) -> bool {
    let largest = (0..m.columns()).map(|j| m.column(j).norm2::<f64>()).fold(0.0, f64::max).sqrt();
    found.lambda_max <= 1e-12 * largest * dot(y, y).sqrt()
}

/// Fits with `auto` and with the reference, and judges.
fn check(m: &Matrix<f64>, y: &[f64], params: &RegressParams) -> Result<Fit, TestCaseError> {
    let found = fit(m, y, params, None).map_err(|e| TestCaseError::fail(e.to_string()))?;
    prop_assume!(!hopeless(m, y, &found));
    let lambda = Lambda::Value(found.lambda);
    let asked = RegressParams {
        solver: Solver::Reference,
        lambda,
        tolerance: 1e-10,
        max_epochs: Some(400_000),
        ..params.clone()
    };
    let other = fit(m, y, &asked, None).map_err(|e| TestCaseError::fail(e.to_string()))?;
    prop_assert!(other.converged, "the reference: {:?} {:?}", other.info, other.certificate);
    judge(&Plain::new(m, y, params, found.lambda), &found, &other, params.tolerance)?;
    Ok(found)
}

fn params(task: Task, ratio: f64) -> RegressParams {
    RegressParams { tolerance: TOLERANCE, ..RegressParams::new(task, Lambda::Ratio(ratio)) }
}

/// Fewer rows than columns, more, and as many; columns scaled by up to 10^±3; copies and zeros among them.
fn shapes() -> impl Strategy<Value = Shape> {
    let sizes = prop_oneof![(4usize..20, 20usize..60), (20usize..60, 1usize..20), (15usize..25, 15usize..25)];
    let spread = prop_oneof![Just(0.0), Just(1000f64.ln())];
    let density = prop_oneof![Just(1.0), 0.1..0.9f64];
    (sizes, density, 0.0..0.6f64, spread, 0usize..4, 0usize..6).prop_map(
        |((rows, columns), density, correlation, spread, duplicates, zero_every)| Shape {
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

/// All but the data; of `l1_weights` only whether there are any.
fn asked() -> impl Strategy<Value = (RegressParams, bool)> {
    let l2 = prop_oneof![2 => Just(0.0), 1 => 0.01..1.0f64];
    let ratio = prop_oneof![0.5..0.99f64, 0.1..0.5f64, 0.02..0.1f64];
    (ratio, l2, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(ratio, l2, weighted, positive, intercept)| {
            (RegressParams { l2, positive, intercept, ..params(Task::Lasso, ratio) }, weighted)
        },
    )
}

/// Column 0 is free, the others differ.
fn weights(columns: usize) -> Vec<f64> {
    (0..columns)
        .map(|j| (j % 5) as f64 * 0.5)
        .enumerate()
        .map(|(j, w)| if j > 0 { w.max(0.5) } else { w })
        .collect()
}

/// Whether one column, with or without threshold, tells the labels apart: then its free weight has no optimum.
fn tells_apart(m: &Matrix<f64>, y: &[f64], threshold: bool) -> bool {
    let values: Vec<(f64, f64)> = dense(m).iter().zip(y).map(|(row, &y)| (row[0], y)).collect();
    if !threshold {
        return values.iter().all(|(a, y)| a * y >= 0.0) || values.iter().all(|(a, y)| a * y <= 0.0);
    }
    let of = |label: f64| values.iter().filter(move |v| v.1 == label).map(|v| v.0);
    let (least, most) =
        (|l| of(l).fold(f64::INFINITY, f64::min), |l| of(l).fold(f64::NEG_INFINITY, f64::max));
    most(-1.0) <= least(1.0) || most(1.0) <= least(-1.0)
}

/// Standardising is scaling the columns to unit variance (to unit mean square without intercept), and the weights back.
fn check_standardized(m: &Matrix<f64>, y: &[f64], params: &RegressParams) -> Result<(), TestCaseError> {
    let n = m.rows() as f64;
    let mut rows = dense(m);
    let scales: Vec<f64> = (0..m.columns())
        .map(|j| {
            let mean = if params.intercept { rows.iter().map(|r| r[j]).sum::<f64>() / n } else { 0.0 };
            (rows.iter().map(|r| (r[j] - mean).powi(2)).sum::<f64>() / n).sqrt()
        })
        .collect();
    for row in &mut rows {
        row.iter_mut().zip(&scales).for_each(|(a, s)| {
            if *s > 0.0 {
                *a /= s
            }
        });
    }
    let scaled = from_dense(&rows);
    let expected = check(&scaled, y, params)?;
    let mut found = fit(m, y, &RegressParams { standardize: true, ..params.clone() }, None).unwrap();
    prop_assert!((found.lambda_max - expected.lambda_max).abs() <= 1e-9 * expected.lambda_max.max(1e-9));
    let x = found.weights.dense().iter().zip(&scales).map(|(x, s)| x * s).collect();
    found.weights = SparseWeights::from(&Weights { x, intercept: found.weights.intercept });
    judge(&Plain::new(&scaled, y, params, expected.lambda), &found, &expected, params.tolerance)?;
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lasso((mut params, weighted) in asked(), shape in shapes(), seed in 0u64..1_000_000) {
        let m = matrix(&shape, seed);
        params.l1_weights = weighted.then(|| weights(m.columns()));
        check(&m, &target(&m, 0.5, seed), &params)?;
    }

    #[test]
    fn logistic((mut params, weighted) in asked(), shape in shapes(), seed in 0u64..1_000_000) {
        let m = matrix(&shape, seed);
        let y = labels(&m, seed);
        let weighted = weighted && !tells_apart(&m, &y, params.intercept);
        params.l1_weights = weighted.then(|| weights(m.columns()));
        check(&m, &y, &RegressParams { task: Task::Logistic, ..params })?;
    }

    #[test]
    fn standardized((params, _) in asked(), shape in shapes(), seed in 0u64..1_000_000, logistic in any::<bool>()) {
        let m = matrix(&shape, seed);
        let (task, y) =
            if logistic { (Task::Logistic, labels(&m, seed)) } else { (Task::Lasso, target(&m, 0.5, seed)) };
        check_standardized(&m, &y, &RegressParams { task, ..params })?;
    }

    /// Values stored as `f32` make the same problem as those values in `f64`.
    #[test]
    fn single_precision_storage((params, _) in asked(), shape in shapes(), seed in 0u64..1_000_000, logistic in any::<bool>()) {
        let exact = matrix(&shape, seed);
        let (task, y) =
            if logistic { (Task::Logistic, labels(&exact, seed)) } else { (Task::Lasso, target(&exact, 0.5, seed)) };
        let params = RegressParams { task, ..params };
        let short = single(&exact);
        let rounded: Vec<Vec<f64>> =
            dense(&exact).iter().map(|row| row.iter().map(|&v| f64::from(v as f32)).collect()).collect();
        let rounded = from_dense(&rounded);
        let expected = check(&rounded, &y, &params)?;
        let found = fit(&short, &y, &params, None).unwrap();
        judge(&Plain::new(&rounded, &y, &params, found.lambda), &found, &expected, params.tolerance)?;
    }

    /// Every point of a path is as good as a fit of its own.
    #[test]
    fn paths_are_fits((params, weighted) in asked(), shape in shapes(), seed in 0u64..1_000_000, logistic in any::<bool>()) {
        let m = matrix(&shape, seed);
        let (task, y) =
            if logistic { (Task::Logistic, labels(&m, seed)) } else { (Task::Lasso, target(&m, 0.5, seed)) };
        let weighted = weighted && !(logistic && tells_apart(&m, &y, params.intercept));
        let params = RegressParams { task, l1_weights: weighted.then(|| weights(m.columns())), ..params };
        let fits = path(&m, &y, &params, 8, 0.02, None).unwrap();
        prop_assert_eq!(fits.len(), 8);
        prop_assume!(!hopeless(&m, &y, &fits[0]));
        for (k, found) in fits.iter().enumerate() {
            let share = 0.02f64.powf(k as f64 / 7.0);
            prop_assert!((found.lambda - share * found.lambda_max).abs() <= 1e-12 * found.lambda_max);
            let alone = fit(&m, &y, &RegressParams { lambda: Lambda::Value(found.lambda), ..params.clone() }, None).unwrap();
            prop_assert_eq!(alone.lambda_max, found.lambda_max);
            judge(&Plain::new(&m, &y, &params, found.lambda), found, &alone, params.tolerance)?;
        }
    }

    /// At `λ_max` all is zero, a hair below it is not; computed here by hand without intercept.
    #[test]
    fn lambda_max_is_exact(shape in shapes(), seed in 0u64..1_000_000, logistic in any::<bool>(), positive in any::<bool>(), intercept in any::<bool>()) {
        let m = matrix(&shape, seed);
        let (task, y) =
            if logistic { (Task::Logistic, labels(&m, seed)) } else { (Task::Lasso, target(&m, 0.5, seed)) };
        let base = RegressParams { positive, intercept, tolerance: 0.0, ..params(task, 1.0) };
        let at = |lambda| fit(&m, &y, &RegressParams { lambda, ..base.clone() }, None).unwrap();
        let above = at(Lambda::Ratio(1.0 + 1e-9));
        let n = y.len() as f64;
        let mean = y.iter().sum::<f64>() / n;
        let u: Vec<f64> = y.iter().map(|y| {
            let residual = if intercept { y - mean } else { *y };
            if logistic { 0.5 * residual } else { residual }
        }).collect();
        let plain = Plain::new(&m, &y, &base, 1.0);
        let largest = (0..m.columns()).map(|j| plain.correlation(j, &u)).map(|c| if positive { c } else { c.abs() }).fold(0.0, f64::max);
        prop_assert!((above.lambda_max - largest).abs() <= 1e-12 * largest + 1e-12, "{} {}", above.lambda_max, largest);
        prop_assume!(largest > 1e-9);
        prop_assert_eq!(above.weights.nonzeros(), 0);
        prop_assert!(above.certificate.gap <= 1e-14 * plain.at_zero(), "{:?}", above.certificate);
        let below = fit(&m, &y, &RegressParams { lambda: Lambda::Ratio(1.0 - 1e-6), tolerance: 1e-16, ..base.clone() }, None).unwrap();
        prop_assert!(below.weights.nonzeros() > 0, "{:?} {:?}", below.info, below.certificate);
    }

    /// Without penalty the lasso is least squares.
    #[test]
    fn no_penalty_is_least_squares(columns in 1usize..12, more in 5usize..40, seed in 0u64..1_000_000, intercept in any::<bool>(), spread in prop_oneof![Just(0.0), Just(3.0)]) {
        let m = matrix(&Shape { spread, ..Shape::new(columns + more, columns, 1.0) }, seed);
        let y = target(&m, 1.0, seed);
        let asked = RegressParams { lambda: Lambda::Value(0.0), intercept, ..params(Task::Lasso, 0.0) };
        let found = fit(&m, &y, &asked, None).unwrap();
        prop_assert!(found.converged, "{:?} {:?}", found.info, found.certificate);
        let (x, b) = least_squares(&m, &y, intercept);
        let plain = Plain::new(&m, &y, &asked, 0.0);
        let (f, best) = (plain.objective(&found.weights.dense(), found.weights.intercept), plain.objective(&x, b));
        prop_assert!((f - best).abs() <= TOLERANCE * plain.at_zero(), "{} {}", f, best);
    }
}

/// The same with values in `f32`.
fn single(m: &Matrix<f64>) -> Matrix<f32> {
    let rows: Vec<Vec<(u32, f32)>> = dense(m)
        .iter()
        .map(|row| {
            row.iter().enumerate().filter(|e| *e.1 != 0.0).map(|(j, &v)| (j as u32, v as f32)).collect()
        })
        .collect();
    let views: Vec<&[(u32, f32)]> = rows.iter().map(|row| &row[..]).collect();
    Matrix::from_rows(m.columns(), &views)
}

/// Least squares by the normal equations, columns scaled to unit norm, and Gaussian elimination with pivots.
fn least_squares(m: &Matrix<f64>, y: &[f64], intercept: bool) -> (Vec<f64>, f64) {
    let mut rows = dense(m);
    rows.iter_mut().for_each(|row| row.extend(intercept.then_some(1.0)));
    let d = m.columns() + usize::from(intercept);
    let column = |j: usize| rows.iter().map(|r| r[j]).collect::<Vec<f64>>();
    let norms: Vec<f64> = (0..d).map(|j| dot(&column(j), &column(j)).sqrt()).collect();
    let mut system: Vec<Vec<f64>> = (0..d)
        .map(|i| {
            let mut line: Vec<f64> =
                (0..d).map(|j| dot(&column(i), &column(j)) / norms[i] / norms[j]).collect();
            line.push(dot(&column(i), y) / norms[i]);
            line
        })
        .collect();
    for k in 0..d {
        let pivot = (k..d).max_by(|&a, &b| system[a][k].abs().total_cmp(&system[b][k].abs())).unwrap();
        system.swap(k, pivot);
        let line = system[k].clone();
        for (i, other) in system.iter_mut().enumerate() {
            if i != k {
                let factor = other[k] / line[k];
                other.iter_mut().zip(&line).for_each(|(o, l)| *o -= factor * l);
            }
        }
    }
    let mut x: Vec<f64> = (0..d).map(|k| system[k][d] / system[k][k] / norms[k]).collect();
    let b = if intercept { x.pop().unwrap() } else { 0.0 };
    (x, b)
}

/// Columns around 480 with little noise, like madelon's: all almost the same direction.
fn stiff(rows: usize, columns: usize, seed: u64) -> Matrix<f64> {
    let mut rng = rng(seed);
    let rows: Vec<Vec<f64>> = (0..rows)
        .map(|_| (0..columns).map(|_| (480.0 + 10.0 * normal(&mut rng)).round()).collect())
        .collect();
    from_dense(&rows)
}

#[test]
fn stiff_columns_converge() {
    for (rows, columns) in [(200, 50), (60, 120)] {
        let m = stiff(rows, columns, rows as u64);
        let y = labels(&matrix(&Shape::new(rows, 5, 1.0), 1), 1);
        for task in [Task::Lasso, Task::Logistic] {
            for (ratio, intercept) in [(0.5, false), (0.05, false), (0.005, false), (0.5, true), (0.05, true)]
            {
                let asked = RegressParams { intercept, tolerance: 1e-7, ..params(task, ratio) };
                let found = fit(&m, &y, &asked, None).unwrap();
                let about = format!("{task:?} {rows} {columns} {ratio} {intercept}");
                let plain = Plain::new(&m, &y, &asked, found.lambda);
                assert!(
                    found.converged,
                    "{about}: {:?} {:?} {:?}",
                    found.info,
                    found.certificate,
                    plain.at_zero()
                );
                let gain = plain.gain(&found.weights.dense(), found.weights.intercept);
                assert!(gain <= 1e-7 * plain.at_zero() * (1.0 + 1e-6), "{about}: could gain {gain}");
                let objective = plain.objective(&found.weights.dense(), found.weights.intercept);
                assert!(
                    (objective - found.certificate.objective).abs() <= 1e-10 * plain.at_zero(),
                    "{about}"
                );
                // no later point of a warm start may contradict the certificate
                let finer = RegressParams { tolerance: 1e-9, ..asked };
                let better = fit(&m, &y, &finer, None).unwrap();
                assert!(found.certificate.dual <= better.certificate.objective * (1.0 + 1e-10), "{about}");
                let bound = plain.bound(&better.weights.dense(), better.weights.intercept);
                assert!(objective - bound <= 2e-7 * plain.at_zero(), "{about}: {objective} {bound}");
            }
        }
    }
}

/// Products of columns are kept in single precision, which these cannot be, or which is too coarse for them.
#[test]
fn columns_beyond_single_precision() {
    let (rows, columns) = (300, 12);
    let mut rng = rng(5);
    let base: Vec<f64> = (0..rows).map(|_| normal(&mut rng)).collect();
    let noise: Vec<Vec<f64>> = (0..rows).map(|_| (0..columns).map(|_| normal(&mut rng)).collect()).collect();
    let y: Vec<f64> =
        base.iter().zip(&noise).map(|(b, n)| if b + n[0] + n[1] > 0.0 { 1.0 } else { -1.0 }).collect();
    type Cell = fn(f64, f64, usize) -> f64;
    let kinds: [(&str, Cell); 4] = [
        ("huge", |_, n, _| 1e19 * n),
        ("tiny", |_, n, _| 1e-19 * n),
        ("of all sizes", |_, n, j| n * 10f64.powi(6 * (j as i32 - 6))),
        ("almost the same", |b, n, _| b + 1e-5 * n),
    ];
    for (name, cell) in kinds {
        let cells = base.iter().zip(&noise);
        let table: Vec<Vec<f64>> =
            cells.map(|(b, n)| (0..columns).map(|j| cell(*b, n[j], j)).collect()).collect();
        let m = from_dense(&table);
        for task in [Task::Lasso, Task::Logistic] {
            for ratio in [0.3, 1e-2, 1e-4] {
                let asked = RegressParams { tolerance: 1e-7, ..params(task, ratio) };
                let found = fit(&m, &y, &asked, None).unwrap();
                let plain = Plain::new(&m, &y, &asked, found.lambda);
                let (x, b) = (found.weights.dense(), found.weights.intercept);
                let objective = plain.objective(&x, b);
                let about = format!("{name} {task:?} {ratio}: {:?} {:?}", found.certificate, found.info);
                assert!(found.converged, "{about}");
                assert!((objective - found.certificate.objective).abs() <= 1e-9 * plain.at_zero(), "{about}");
                assert!(objective - plain.bound(&x, b) <= 2e-7 * plain.at_zero(), "{about}");
            }
        }
    }
}

fn same_bits(a: &Fit, b: &Fit) {
    let bits = |f: &Fit| {
        f.weights.dense().iter().chain([&f.weights.intercept]).map(|x| x.to_bits()).collect::<Vec<_>>()
    };
    assert_eq!(bits(a), bits(b));
    assert_eq!((a.certificate, a.info, a.lambda), (b.certificate, b.info, b.lambda));
}

#[test]
fn same_bits_on_one_and_two_threads() {
    // large enough for loops to be shared: see `Par`
    for (shape, seed, ratio) in [
        (Shape::new(600, 900, 0.2), 1, 0.1),
        (Shape { spread: 3.0, ..Shape::new(300, 2000, 0.5) }, 2, 0.1),
        // so many weights that sweeps are done in halves
        (Shape::new(1500, 1200, 0.2), 3, 0.003),
    ] {
        let m = matrix(&shape, seed);
        for (task, y) in [(Task::Lasso, target(&m, 0.5, seed)), (Task::Logistic, labels(&m, seed))] {
            for intercept in [false, true] {
                let one = RegressParams { intercept, tolerance: 1e-7, ..params(task, ratio) };
                let two = RegressParams { par: Par::Rayon(2), ..one.clone() };
                same_bits(&fit(&m, &y, &one, None).unwrap(), &fit(&m, &y, &two, None).unwrap());
                let (a, b) =
                    (path(&m, &y, &one, 5, 0.1, None).unwrap(), path(&m, &y, &two, 5, 0.1, None).unwrap());
                assert_eq!((a.len(), b.len()), (5, 5));
                a.iter().zip(&b).for_each(|(a, b)| same_bits(a, b));
            }
        }
    }
}

#[test]
fn large_penalties_leave_nothing() {
    for seed in 0..20 {
        let m = matrix(&Shape { spread: 2.0, zero_every: 4, ..Shape::new(15, 25, 0.6) }, seed);
        for (task, y) in [(Task::Lasso, target(&m, 0.5, seed)), (Task::Logistic, labels(&m, seed))] {
            for ratio in [1.0, 1.5, 1e6] {
                let found = fit(&m, &y, &params(task, ratio), None).unwrap();
                assert_eq!((found.weights.nonzeros(), found.info.updates), (0, 0));
                assert!(
                    found.certificate.gap <= 1e-15 * Plain::new(&m, &y, &params(task, ratio), 1.0).at_zero()
                );
            }
        }
    }
}

#[test]
fn separable_classes_have_no_optimum_without_penalty() {
    for seed in 0..10 {
        let m = matrix(&Shape::new(30, 4, 1.0), seed);
        let clean: Vec<f64> = m.product(&[1.0, -2.0, 0.5, 0.0]).iter().map(|z| z.signum()).collect();
        for solver in [Solver::Auto, Solver::Shotgun, Solver::Reference] {
            for intercept in [false, true] {
                let asked = RegressParams {
                    solver,
                    intercept,
                    lambda: Lambda::Value(0.0),
                    ..params(Task::Logistic, 0.0)
                };
                assert_eq!(fit(&m, &clean, &asked, None).unwrap_err(), RegressError::Separable);
                // A ridge is a penalty.
                let ridge = RegressParams { l2: 0.1, ..asked };
                assert!(fit(&m, &clean, &ridge, None).unwrap().converged);
            }
        }
        // Each sample once more with the other label: nothing separates them, and half of all is the best guess.
        let twice: Vec<Vec<f64>> = dense(&m).iter().flat_map(|row| [row.clone(), row.clone()]).collect();
        let both: Vec<f64> = (0..60).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
        let asked = RegressParams { lambda: Lambda::Value(0.0), ..params(Task::Logistic, 0.0) };
        let found = fit(&from_dense(&twice), &both, &asked, None).unwrap();
        assert!(found.converged && found.weights.iter().all(|(_, x)| x.abs() < 1e-3));
        // Three times with one label and once with the other.
        let four: Vec<Vec<f64>> = dense(&m).iter().flat_map(|row| vec![row.clone(); 4]).collect();
        let most: Vec<f64> = clean.iter().flat_map(|&y| [y, y, y, -y]).collect();
        for intercept in [false, true] {
            check(&from_dense(&four), &most, &RegressParams { intercept, ..asked.clone() }).unwrap();
        }
    }
}

#[test]
fn tiny_problems() {
    let one_row = from_dense(&[vec![1.0, -2.0, 0.0, 2.0]]);
    let one_column = from_dense(&[vec![1.0], vec![-2.0], vec![0.5]]);
    for ratio in [0.9, 0.1, 0.001] {
        let found = check(&one_row, &[3.0], &params(Task::Lasso, ratio)).unwrap();
        // |2x - 3| with λ = 6·ratio: 2x = 3(1 - ratio), on columns 1 and 3 together
        let z: f64 = dot(&[1.0, -2.0, 0.0, 2.0], &found.weights.dense());
        assert!((z - 3.0 * (1.0 - ratio)).abs() < 1e-3);
        let with = RegressParams { intercept: true, ..params(Task::Lasso, ratio) };
        let found = fit(&one_row, &[3.0], &with, None).unwrap();
        assert_eq!((found.weights.nonzeros(), found.weights.intercept, found.lambda_max), (0, 3.0, 0.0));
        for intercept in [false, true] {
            let asked = RegressParams { intercept, ..params(Task::Lasso, ratio) };
            check(&one_column, &[2.0, 1.0, -1.0], &asked).unwrap();
            let asked = RegressParams { task: Task::Logistic, ..asked };
            check(&one_column, &[1.0, 1.0, -1.0], &asked).unwrap();
        }
    }
    let logistic = fit(&one_row, &[1.0], &params(Task::Logistic, 0.5), None).unwrap_err();
    assert_eq!(logistic, RegressError::Labels { found: vec![1.0] });
}

#[test]
fn constant_and_zero_targets() {
    for seed in 0..10 {
        let m = matrix(&Shape::new(20, 30, 0.7), seed);
        for positive in [false, true] {
            let plain = RegressParams { positive, ..params(Task::Lasso, 0.1) };
            check(&m, &[7.0; 20], &plain).unwrap();
            // An intercept explains all of a constant, and nothing is left to explain of 0.
            let with = RegressParams { intercept: true, ..plain.clone() };
            for lambda in [Lambda::Ratio(0.1), Lambda::Value(0.3)] {
                let found = fit(&m, &[7.0; 20], &RegressParams { lambda, ..with.clone() }, None).unwrap();
                assert_eq!((found.weights.nonzeros(), found.weights.intercept), (0, 7.0));
                assert!(found.converged && found.lambda_max <= 1e-12);
                for asked in [&plain, &with] {
                    let found =
                        fit(&m, &[0.0; 20], &RegressParams { lambda, ..asked.clone() }, None).unwrap();
                    assert_eq!((found.weights.nonzeros(), found.weights.intercept), (0, 0.0));
                    assert_eq!((found.certificate.gap, found.lambda_max, found.converged), (0.0, 0.0, true));
                }
            }
        }
    }
}

/// A fit whose residual proves its gap only when it is scaled up; found by `standardized`.
#[test]
fn a_dual_point_may_have_to_grow() {
    let shape = Shape { correlation: 0.5692631551150776, ..Shape::new(5, 23, 0.5812959099954952) };
    let m = matrix(&shape, 443018);
    let asked = RegressParams { intercept: true, ..params(Task::Logistic, 0.9619077620242965) };
    check_standardized(&m, &labels(&m, 443018), &asked).unwrap();
}

/// The null model leaves residuals that are orthogonal to the free column but for rounding, and correcting that must not lead astray;
/// found by `paths_are_fits`.
#[test]
fn what_is_orthogonal_stays_so() {
    let shape =
        Shape { correlation: 0.5041847297148203, zero_every: 2, ..Shape::new(55, 10, 0.21492398376883465) };
    let m = matrix(&shape, 302806);
    let free = Some(weights(m.columns()));
    let asked = RegressParams { l1_weights: free, intercept: true, ..params(Task::Logistic, 0.5) };
    check(&m, &labels(&m, 302806), &asked).unwrap();
}
