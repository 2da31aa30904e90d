//! Neighbourhoods: what each output is given all the others and the inputs, one Lasso an output.
//!
//! Minimises `‖y_j + Zβ_j‖²/m + λ_Λ‖β_j‖₁ + λ_Θ‖β_j‖₁` (outputs, inputs) for each `j` over `Z = [Y X]` without `y_j` (Meinshausen & Bühlmann 2006). With
//! `Λ_jj = 1/(‖y_j + Zβ_j‖²/m + penalty)` and `(Λ_·j, Θ_·j) = Λ_jj β_j` that is exactly the minimum of the pseudolikelihood
//! `Σ_j -log Λ_jj + ‖YΛ_j + XΘ_j‖²/(mΛ_jj)` plus our penalty where Λ need not be symmetric: the objective of SGCRF with `Σ` replaced by `(diag Λ)⁻¹`. So its entries are of the size of those
//! looked for, and mostly at the same places.
//!
//! Input: data, penalties, directions of the samples that are left out (see [`begin`](super::begin)); output: Λ before it is made symmetric, and Θ. Not solved to a
//! tolerance: penalties fall from the largest useful one by [`FALL`], some sweeps each over the entries that are not 0 or whose slope is not covered, and end [`LAST`] rounds
//! after they are there. Slopes of all columns are one matrix product a round; a column's sweeps touch nothing else, so results do not depend on threads.

use super::sweep::ColumnSweep;
use crate::linalg::{Dense, product, transposed_product};
use crate::objective::gaussian::{Gaussian, Penalties};
use crate::par::vectorized;
use gibbsite_core::penalty::Penalty;

/// By how much penalties fall from round to round.
const FALL: f64 = 0.3;
/// Rounds with the penalties asked for.
const LAST: usize = 3;
/// Sweeps over a column in a round.
const SWEEPS: usize = 10;

/// Every output's regression on the others and the inputs, the samples' part along the columns of `without` (orthonormal) left out: Λ column by column, and Θ.
pub(super) fn neighbourhoods(problem: &Gaussian, penalties: &Penalties, without: &Dense) -> (Dense, Dense) {
    let (par, samples) = (problem.par, problem.samples);
    let (m, n, p) = (problem.x.rows(), problem.inputs(), problem.outputs());
    // One penalty for all: outputs are scaled so that theirs is λ_Θ too.
    let by = penalties.theta / penalties.lambda;
    let mut z = Dense::zeros(m, p + n);
    let (outputs, inputs) = z.values_mut().split_at_mut(m * p);
    outputs.iter_mut().zip(problem.y.values()).for_each(|(z, y)| *z = by * y);
    inputs.copy_from_slice(problem.x.values());
    let shares = transposed_product(par, without, &z);
    let along = product(par, without, &shares);
    z.values_mut().iter_mut().zip(along.values()).for_each(|(z, a)| *z -= a);
    drop(along);
    let norm2: Vec<f64> = (0..p + n).map(|k| z.col(k).iter().map(|v| v * v).sum()).collect();

    // -(y_j + Zβ_j), a column each.
    let mut residual = Dense::zeros(m, p);
    residual.values_mut().iter_mut().zip(z.values()).for_each(|(r, z)| *r = -z / by);
    let mut beta = Dense::zeros(p + n, p);
    let (mut times, mut last) = (f64::INFINITY, LAST);
    while last > 0 {
        let slopes = transposed_product(par, &z, &residual);
        let slope = |k: usize, j: usize| if k == j { 0.0 } else { 2.0 * slopes.get(k, j).abs() / samples };
        if times.is_infinite() {
            let columns = (0..p).flat_map(|j| (0..p + n).map(move |k| (k, j)));
            times = columns.fold(0.0f64, |most, (k, j)| most.max(slope(k, j))) / penalties.theta;
        }
        times = (times * FALL).max(1.0);
        if times == 1.0 {
            last -= 1;
        }
        let l1 = times * penalties.theta;
        let rows_of = m.max(1);
        let items = beta.values_mut().chunks_mut(p + n).zip(residual.values_mut().chunks_mut(rows_of));
        par.map(items.enumerate().collect(), |(j, (beta, residual))| {
            let rows: Vec<u32> =
                (0..p + n).filter(|&k| beta[k] != 0.0 || slope(k, j) > l1).map(|k| k as u32).collect();
            let mut delta = vec![0.0; rows.len()];
            vectorized(ColumnSweep {
                x: &z,
                norm2: &norm2,
                rows: &rows,
                theta: beta,
                delta: &mut delta,
                residual,
                penalty: Penalty { l1: 0.5 * l1 * samples, l2: 0.0, positive: false },
                sweeps: SWEEPS,
            });
            rows.iter().zip(&delta).for_each(|(&k, d)| beta[k as usize] += d);
        });
    }
    drop(z);

    let (mut lambda, mut theta) = (Dense::zeros(p, p), Dense::zeros(n, p));
    let extra = if penalties.diagonal { penalties.lambda } else { 0.0 };
    for j in 0..p {
        let left = residual.col(j).iter().map(|r| r * r).sum::<f64>() / samples;
        let size: f64 = beta.col(j).iter().map(|b| b.abs()).sum();
        let own = 1.0 / (left + penalties.theta * size + extra).max(f64::MIN_POSITIVE);
        let (outputs, inputs) = beta.col(j).split_at(p);
        lambda.col_mut(j).iter_mut().zip(outputs).for_each(|(l, b)| *l = own * by * b);
        theta.col_mut(j).iter_mut().zip(inputs).for_each(|(t, b)| *t = own * b);
        lambda.set(j, j, own);
    }
    (lambda, theta)
}
