//! Sparse Gaussian CRFs against the textbook: slopes, optima, paths, forecasts, files.

// Sums over rows and columns are written with indices, as in the textbook.
#![allow(clippy::needless_range_loop)]

mod baselines;
mod blocks;
mod device;
mod fits;
mod forecasts;
mod memory;
mod models;
mod sec51;

use gibbsite::gaussian::{GaussianFit, GaussianParams, GaussianSolver, Theta, fit};
use gibbsite::linalg::Dense;
use gibbsite::solver::newton_cd::Schedule;
use gibbsite::sparse::Sparse;
use gibbsite_tests::gaussian::{Rows, Textbook, from_fn, noise};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const SOLVERS: [GaussianSolver; 4] = [
    GaussianSolver::Newton(Schedule::Auto),
    GaussianSolver::Newton(Schedule::Alternating),
    GaussianSolver::Newton(Schedule::Joint),
    GaussianSolver::Fista,
];

fn dense(rows: &Rows, cols: usize) -> Dense {
    Dense::from_fn(rows.len(), cols, |i, j| rows[i][j])
}

fn rows(matrix: &Sparse) -> Rows {
    from_fn(matrix.rows(), matrix.cols(), |i, j| matrix.get(i, j))
}

/// Outputs that depend on each other and on some inputs.
fn data(seed: u64, m: usize, n: usize, p: usize) -> (Rows, Rows) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let x = from_fn(m, n, |_, _| noise(&mut rng));
    let mix = from_fn(p, p, |i, j| if i == j { 1.0 } else { 0.5 * noise(&mut rng) });
    let drive = from_fn(n, p, |_, _| if rng.random::<f64>() < 0.5 { noise(&mut rng) } else { 0.0 });
    let y = (0..m)
        .map(|k| {
            let own: Vec<f64> = (0..p).map(|_| noise(&mut rng)).collect();
            let outer = |j: usize| (0..n).map(|i| x[k][i] * drive[i][j]).sum::<f64>();
            (0..p).map(|j| outer(j) + (0..p).map(|l| mix[j][l] * own[l]).sum::<f64>()).collect()
        })
        .collect();
    (x, y)
}

fn textbook(x: Rows, y: Rows, inputs: usize, pairs: f64, theta: f64) -> Textbook {
    Textbook { x, y, inputs, pairs, diagonal: 0.0, theta }
}

/// Fits a textbook problem.
fn solve(book: &Textbook, params: &GaussianParams) -> GaussianFit {
    let params = GaussianParams {
        lambda: book.pairs,
        theta: Theta::Value(book.theta),
        diagonal: book.diagonal > 0.0,
        ..params.clone()
    };
    fit(&dense(&book.x, book.inputs), &dense(&book.y, book.y[0].len()), None, &params, None).unwrap()
}

fn exact(solver: GaussianSolver) -> GaussianParams {
    GaussianParams { tolerance: 1e-8, solver, max_iterations: 200_000, ..GaussianParams::new(0.0) }
}
