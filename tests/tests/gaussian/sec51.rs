//! The problem of SGCRF Sec. 5.1, small: unit entries at random places, Λ with condition number n + p. Means are large, outputs nearly collinear, and the optimum at a small λ is far from
//! the start; steps that stop at every entry that becomes 0 take hundreds of iterations here.

use super::{SOLVERS, exact, rows, solve, textbook};
use gibbsite::gaussian::GaussianParams;
use gibbsite_tests::gaussian::{Rows, from_fn, inverse, noise, times};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Inputs and outputs.
fn problem(seed: u64, m: usize, n: usize, p: usize) -> (Rows, Rows) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut lambda = from_fn(p, p, |_, _| 0.0);
    for _ in 0..p * p / 5 {
        let (i, j) = (rng.random_range(0..p), rng.random_range(0..p));
        if i != j {
            (lambda[i][j], lambda[j][i]) = (1.0, 1.0);
        }
    }
    let shifted = |by: f64| from_fn(p, p, |i, j| lambda[i][j] + if i == j { by } else { 0.0 });
    // The least shift that makes it positive definite; the largest eigenvalue is at most the largest row sum.
    let (mut low, mut high) = (0.0, p as f64);
    for _ in 0..50 {
        let middle = 0.5 * (low + high);
        if inverse(&shifted(middle)).is_some() { high = middle } else { low = middle }
    }
    let largest = lambda.iter().map(|row| row.iter().sum::<f64>()).fold(0.0, f64::max);
    let sigma = inverse(&shifted(high + (largest + high) / (n + p) as f64)).unwrap().0;
    let mut theta = from_fn(n, p, |_, _| 0.0);
    for _ in 0..5 * (n + p) {
        theta[rng.random_range(0..n)][rng.random_range(0..p)] = 1.0;
    }
    let x = from_fn(m, n, |_, _| noise(&mut rng));
    // -xᵀΘ + e with e ~ N(0, Λ), times Σ, has the right mean and the covariance ΣΛΣ = Σ; here Λ is replaced by a multiple of I, which is all the noise a test needs.
    let drive = times(&x, &theta);
    let noisy = from_fn(m, p, |k, j| 2.0 * noise(&mut rng) - drive[k][j]);
    let y = times(&noisy, &sigma);
    (x, y)
}

#[test]
fn the_optimum_is_found_in_few_iterations() {
    let (m, n, p, lambda) = (120, 80, 20, 0.1);
    for seed in [1, 2] {
        let (x, y) = problem(seed, m, n, p);
        let book = textbook(x, y, n, lambda, lambda);
        let found = solve(&book, &GaussianParams { tolerance: 1e-6, ..exact(SOLVERS[0]) });
        assert!(found.converged && found.lambda_max > 50.0 * lambda, "{:?} {}", found.stop, found.lambda_max);
        let (l, t) = (rows(&found.lambda), rows(&found.theta));
        assert!(book.violation(&l, &t) <= 1.01e-6 * lambda, "{seed}");
        assert!(found.iterations <= 40, "{seed}: {}", found.iterations);
    }
}
