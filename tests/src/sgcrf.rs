//! The synthetic experiments of SGCRF Sec. 5.1: support recovery (Fig. 2), solvers against time (Fig. 3), a joint MRF (Fig. 4), ridge regression (Fig. 5).

use crate::gaussian::noise;
use gibbsite::gaussian::baselines::{fit_jointly, ridge};
use gibbsite::gaussian::predict::Forecaster;
use gibbsite::gaussian::{GaussianFit, GaussianParams, GaussianSolver, Theta, fit, path};
use gibbsite::linalg::{Cholesky, Dense, product, transposed_product};
use gibbsite::par::Par;
use gibbsite::solver::newton_cd::Schedule;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A true model and where its inputs come from.
#[derive(Clone, Debug)]
pub struct Truth {
    /// `Λ`.
    pub lambda: Dense,
    /// `Θ`.
    pub theta: Dense,
    /// Mixes independent inputs; none if they stay independent. Half of the columns are then squared, and all scaled to variance 1.
    mix: Option<Dense>,
}

impl Truth {
    /// The chain of Fig. 2: `Λ_ii = 1`, `Λ_{i,i+1} = 0.2`, `Θ_ii = 0.2`, as many inputs as outputs.
    pub fn chain(p: usize) -> Self {
        let lambda = Dense::from_fn(p, p, |i, j| [1.0, 0.2].get(i.abs_diff(j)).copied().unwrap_or(0.0));
        let theta = Dense::from_fn(p, p, |i, j| if i == j { 0.2 } else { 0.0 });
        Self { lambda, theta, mix: None }
    }

    /// The model of Figs. 3 to 5: `5(n + p)` random entries of 1 in Λ (a quarter of them all at most) and in Θ, the diagonal of Λ so that its condition number is `n + p`.
    pub fn random(n: usize, p: usize, seed: u64) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let count = 5 * (n + p);
        let mut lambda = Dense::zeros(p, p);
        for _ in 0..count.min(p * p / 4) {
            let (i, j) = (rng.random_range(0..p), rng.random_range(0..p));
            if i != j {
                lambda.set(i, j, 1.0);
                lambda.set(j, i, 1.0);
            }
        }
        let mut theta = Dense::zeros(n, p);
        for _ in 0..count {
            theta.set(rng.random_range(0..n), rng.random_range(0..p), 1.0);
        }
        let high = top_eigenvalue(&lambda, 1.0);
        let low = -top_eigenvalue(&lambda, -1.0);
        let condition = (n + p) as f64;
        let shift = (high - condition * low) / (condition - 1.0);
        (0..p).for_each(|i| lambda.add(i, i, shift));
        let spread = 1.0 / (n as f64).sqrt();
        let mut mix = Dense::zeros(n, n);
        mix.values_mut().iter_mut().for_each(|v| *v = spread * noise(&mut rng));
        (0..n).for_each(|i| mix.add(i, i, 0.5));
        Self { lambda, theta, mix: Some(mix) }
    }

    /// Inputs and outputs of `m` samples.
    pub fn sample(&self, m: usize, seed: u64) -> (Dense, Dense) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (n, p) = (self.theta.rows(), self.lambda.cols());
        let mut draw = |rows: usize, cols: usize| {
            let mut out = Dense::zeros(rows, cols);
            out.values_mut().iter_mut().for_each(|v| *v = noise(&mut rng));
            out
        };
        let mut x = draw(m, n);
        if let Some(mix) = &self.mix {
            x = product(Par::Seq, &x, mix);
            for j in 0..n {
                // The variances of what was drawn are known: those of the normal and of its square.
                let own: f64 = mix.col(j).iter().map(|v| v * v).sum();
                let column = x.col_mut(j);
                if j < n / 2 {
                    column.iter_mut().for_each(|v| *v = (*v * *v - own) / (own * 2f64.sqrt()));
                } else {
                    column.iter_mut().for_each(|v| *v /= own.sqrt());
                }
            }
        }
        let factor = Cholesky::new(&self.lambda).expect("a positive definite truth");
        let mut own = draw(p, m);
        factor.solve_upper(&mut own);
        let mut mean = product(Par::Seq, &x, &self.theta).transposed();
        factor.solve(&mut mean);
        own.values_mut().iter_mut().zip(mean.values()).for_each(|(y, m)| *y -= m);
        (x, own.transposed())
    }
}

/// The largest eigenvalue of `sign · A`, by the power method on `sign · A + cI` (both to 10⁻⁶ or so, which is enough for a condition number).
fn top_eigenvalue(a: &Dense, sign: f64) -> f64 {
    let p = a.cols();
    let shift = (0..p).map(|j| a.col(j).iter().map(|v| v.abs()).sum()).fold(0.0, f64::max);
    let mut v = Dense::from_fn(p, 1, |i, _| 1.0 + (i as f64).sin());
    let mut value = 0.0;
    for _ in 0..3000 {
        let mut next = transposed_product(Par::Seq, a, &v);
        next.values_mut().iter_mut().zip(v.values()).for_each(|(n, v)| *n = sign * *n + shift * v);
        let length = next.dot(&next).sqrt();
        if length == 0.0 {
            return 0.0;
        }
        value = length / v.dot(&v).sqrt();
        next.values_mut().iter_mut().for_each(|v| *v /= length);
        v = next;
    }
    value - shift
}

/// Fig. 2: the share of trials in which the support of Λ and Θ is exactly that of the chain, from `m` samples with `λ_Λ = 3 √(log p / m)`, `λ_Θ = 2 λ_Λ` (the slope in Θ has twice the noise).
pub fn recovered(p: usize, m: usize, trials: u64) -> f64 {
    let truth = Truth::chain(p);
    let lambda = 3.0 * ((p as f64).ln() / m as f64).sqrt();
    let params = GaussianParams { theta: Theta::Factor(2.0), tolerance: 1e-3, ..GaussianParams::new(lambda) };
    let same =
        |a: &Dense, b: &Dense| a.values().iter().zip(b.values()).all(|(a, b)| (*a != 0.0) == (*b != 0.0));
    let good = (0..trials)
        .filter(|trial| {
            let (x, y) = truth.sample(m, 1000 * p as u64 + trial);
            let found = fit(&x, &y, None, &params, None).expect("a good problem");
            same(&found.lambda.to_dense(), &truth.lambda) && same(&found.theta.to_dense(), &truth.theta)
        })
        .count();
    good as f64 / trials as f64
}

/// The solvers of Fig. 3.
pub const SOLVERS: [(&str, GaussianSolver); 5] = [
    ("auto", GaussianSolver::Newton(Schedule::Auto)),
    ("alternating", GaussianSolver::Newton(Schedule::Alternating)),
    ("newton-cd", GaussianSolver::Newton(Schedule::Joint)),
    ("fista", GaussianSolver::Fista),
    ("owlqn", GaussianSolver::Owlqn),
];

/// Fig. 3: for each solver, seconds and the objective above the best of all, until the tolerance or about so many seconds.
pub fn course(
    n: usize,
    p: usize,
    m: usize,
    lambda: f64,
    seconds: f64,
) -> Vec<(&'static str, Vec<(f64, f64)>)> {
    let (x, y) = Truth::random(n, p, 1).sample(m, 2);
    let mut runs: Vec<(&'static str, Vec<(f64, f64)>)> = SOLVERS
        .iter()
        .map(|&(name, solver)| {
            let start = std::time::Instant::now();
            let params = GaussianParams {
                solver,
                tolerance: 1e-8,
                max_iterations: 1_000_000,
                ..GaussianParams::new(lambda)
            };
            let watch = |_: &_| start.elapsed().as_secs_f64() < seconds;
            let found = fit(&x, &y, None, &params, Some(&watch)).expect("a good problem");
            // `auto` comes through larger penalties, whose objectives are others.
            let own = found.trace.iter().filter(|point| point.lambda == lambda);
            (name, own.map(|point| (point.seconds, point.objective)).collect())
        })
        .collect();
    let best = runs.iter().flat_map(|r| &r.1).map(|p| p.1).fold(f64::INFINITY, f64::min);
    runs.iter_mut().flat_map(|r| &mut r.1).for_each(|p| p.1 -= best);
    runs
}

/// The mean squared error of forecasts.
pub fn mse(found: &GaussianFit, x: &Dense, y: &Dense) -> f64 {
    let model = Forecaster::new(found.lambda.to_dense(), found.theta.to_dense(), found.intercept.clone());
    distance(&model.expect("a fit is positive definite").means(Par::Seq, x), y)
}

fn distance(a: &Dense, b: &Dense) -> f64 {
    let sum: f64 = a.values().iter().zip(b.values()).map(|(a, b)| (a - b) * (a - b)).sum();
    sum / a.values().len() as f64
}

/// Fig. 4: test errors of the CRF and of the joint MRF at shares of their own `λ_max`: `(share, CRF, MRF)`.
pub fn against_joint(n: usize, p: usize, m: usize, shares: &[f64]) -> Vec<(f64, f64, f64)> {
    let truth = Truth::random(n, p, 3);
    let ((x, y), (x2, y2)) = (truth.sample(m, 4), truth.sample(1000, 5));
    let rough = GaussianParams { tolerance: 1e-3, ..GaussianParams::new(0.0) };
    let top = |x: &Dense, y: &Dense| {
        let one = GaussianParams { max_iterations: 1, ..rough.clone() };
        path(x, y, None, &one, 1, 1.0, None).expect("a good problem")[0].lambda_max
    };
    let both = Dense::from_columns(m, n + p, [x.values(), y.values()].concat()).expect("as many rows");
    let (own, joint) = (top(&x, &y), top(&Dense::zeros(m, 0), &both));
    let one = |share: f64| {
        let at = |lambda: f64| GaussianParams { lambda, ..rough.clone() };
        let crf = fit(&x, &y, None, &at(share * own), None).expect("a good problem");
        let mrf = fit_jointly(&x, &y, None, &at(share * joint), None).expect("a good problem");
        (share, mse(&crf, &x2, &y2), mse(&mrf, &x2, &y2))
    };
    shares.iter().map(|&share| one(share)).collect()
}

/// Fig. 5: test errors of the CRF and of ridge regression from `m` samples, both penalties chosen on 500 further samples: `(CRF, ridge, the truth)`.
pub fn against_ridge(n: usize, p: usize, m: usize) -> (f64, f64, f64) {
    let truth = Truth::random(n, p, 6);
    let ((x, y), (x1, y1), (x2, y2)) = (truth.sample(m, 7), truth.sample(500, 8), truth.sample(1000, 9));
    let params = GaussianParams { tolerance: 1e-3, ..GaussianParams::new(0.0) };
    let fits = path(&x, &y, None, &params, 12, 0.003, None).expect("a good problem");
    let best = fits.iter().map(|f| (mse(f, &x1, &y1), f)).min_by(|a, b| a.0.total_cmp(&b.0)).expect("a path");
    let crf = mse(best.1, &x2, &y2);
    let of = |b: &Dense, x: &Dense, y: &Dense| distance(&product(Par::Seq, x, b), y);
    let tried = (-4..=12).filter_map(|k| {
        let b = ridge(Par::Seq, &x, &y, 10f64.powf(f64::from(k) / 2.0))?;
        Some((of(&b, &x1, &y1), b))
    });
    let ridge = tried.min_by(|a, b| a.0.total_cmp(&b.0)).expect("penalties");
    let zero = vec![0.0; p];
    let exact = Forecaster::new(truth.lambda.clone(), truth.theta.clone(), zero).expect("a truth");
    (crf, of(&ridge.1, &x2, &y2), distance(&exact.means(Par::Seq, &x2), &y2))
}
