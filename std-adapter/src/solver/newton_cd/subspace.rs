//! Conjugate gradients for the Newton step on the entries that are not 0, their signs held.
//!
//! Solves `H_SS d = -(g + λ sign)_S`, where `H` is the Hessian of SGCRF App. A eq. 7 in the form that needs neither `S_xx` nor a Kronecker product: with
//! `T = XΔ_Θ - KΔ_Λ` and `G = TΣ` it is `Δ_Λ ↦ ΣΔ_ΛΣ - (KᵀG + GᵀK)/m`, `Δ_Θ ↦ 2XᵀG/m`. Preconditioned by what would be
//! its inverse if all entries were there, inputs were uncorrelated and moved nothing: `(ΛΔ_ΛΛ, ½mD⁻¹Δ_ΘΛ)` at the support, `D = diag ‖x_i‖²`.

use crate::linalg::{Dense, product};
use crate::objective::gaussian::{Gaussian, Penalties, State};
use crate::par::{Kernel, vectorized};
use gibbsite_core::column::Column;

/// Entries that are not 0 (and the diagonal), column after column: where each column begins, and its rows.
struct Support {
    ends: Vec<usize>,
    rows: Vec<u32>,
}

impl Support {
    fn of(matrix: &Dense, keep: impl Fn(usize, usize, f64) -> bool) -> Self {
        let (mut ends, mut rows) = (Vec::with_capacity(matrix.cols()), Vec::new());
        for j in 0..matrix.cols() {
            let column = matrix.col(j).iter().enumerate();
            rows.extend(column.filter(|(i, v)| keep(*i, j, **v)).map(|(i, _)| i as u32));
            ends.push(rows.len());
        }
        Self { ends, rows }
    }

    fn range(&self, j: usize) -> std::ops::Range<usize> {
        (if j == 0 { 0 } else { self.ends[j - 1] })..self.ends[j]
    }

    fn len(&self) -> usize {
        self.rows.len()
    }
}

/// A vector over the support: Λ as a whole (both triangles, so that inner products are those of matrices), then Θ.
#[derive(Clone)]
struct Vector {
    lambda: Vec<f64>,
    theta: Vec<f64>,
}

impl Vector {
    fn dot(&self, other: &Self) -> f64 {
        let sum = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        sum(&self.lambda, &other.lambda) + sum(&self.theta, &other.theta)
    }

    fn zip(&mut self, other: &Self, f: impl Fn(&mut f64, f64)) {
        self.lambda.iter_mut().zip(&other.lambda).for_each(|(a, b)| f(a, *b));
        self.theta.iter_mut().zip(&other.theta).for_each(|(a, b)| f(a, *b));
    }
}

/// How many steps, and how exactly.
#[derive(Clone, Copy, Debug)]
pub(super) struct SubspaceParams {
    pub(super) iterations: usize,
    /// Done when the residual is this share of the right side.
    pub(super) reduction: f64,
}

/// The step as matrices `(Δ_Λ, Δ_Θ)`, how fast the objective falls along it, and the iterations it took.
pub(super) fn newton_step(
    problem: &Gaussian,
    state: &State,
    penalties: &Penalties,
    params: &SubspaceParams,
) -> (Dense, Dense, f64, usize) {
    let lambda = Support::of(&state.lambda, |i, j, v| i == j || v != 0.0);
    let theta = Support::of(&state.theta, |_, _, v| v != 0.0);
    let system = System { problem, state, lambda, theta };
    let right = system.right_side(penalties);
    let start = right.dot(&right).sqrt();
    let mut found = Vector { lambda: vec![0.0; system.lambda.len()], theta: vec![0.0; system.theta.len()] };
    let mut residual = right.clone();
    let mut scaled = system.precondition(&residual);
    let mut along = scaled.clone();
    let mut size = residual.dot(&scaled);
    let mut steps = 0;
    while steps < params.iterations && size > 0.0 {
        let turned = system.apply(&along);
        let bend = along.dot(&turned);
        // Not positive only through rounding.
        if bend <= 0.0 || !bend.is_finite() {
            break;
        }
        let step = size / bend;
        found.zip(&along, |x, d| *x += step * d);
        residual.zip(&turned, |r, t| *r -= step * t);
        steps += 1;
        if residual.dot(&residual).sqrt() <= params.reduction * start {
            break;
        }
        scaled = system.precondition(&residual);
        let next = residual.dot(&scaled);
        let turn = next / size;
        size = next;
        along.zip(&scaled, |d, z| *d = z + turn * *d);
    }
    let slope = -found.dot(&right);
    let (dl, dt) = system.matrices(&found);
    (dl, dt, slope, steps)
}

struct System<'a> {
    problem: &'a Gaussian,
    state: &'a State,
    lambda: Support,
    theta: Support,
}

impl System<'_> {
    fn matrices(&self, v: &Vector) -> (Dense, Dense) {
        let (p, n) = (self.problem.outputs(), self.problem.inputs());
        let (mut lambda, mut theta) = (Dense::zeros(p, p), Dense::zeros(n, p));
        for j in 0..p {
            for k in self.lambda.range(j) {
                lambda.set(self.lambda.rows[k] as usize, j, v.lambda[k]);
            }
            for k in self.theta.range(j) {
                theta.set(self.theta.rows[k] as usize, j, v.theta[k]);
            }
        }
        (lambda, theta)
    }

    /// Entries of a matrix over the support, computed a column at a time.
    fn by_columns(
        &self,
        support: &Support,
        column: impl Fn(usize, &[u32], &mut [f64]) + Sync + Send,
    ) -> Vec<f64> {
        let mut out = vec![0.0; support.len()];
        let mut rest = out.as_mut_slice();
        let mut items = Vec::with_capacity(support.ends.len());
        for j in 0..support.ends.len() {
            let range = support.range(j);
            let (own, next) = rest.split_at_mut(range.len());
            items.push((j, &support.rows[range], own));
            rest = next;
        }
        self.problem.par.map(items, |(j, rows, own)| column(j, rows, own));
        out
    }

    /// `-(g + λ sign)`: the least subgradient, negative.
    fn right_side(&self, penalties: &Penalties) -> Vector {
        let Self { problem, state, .. } = self;
        let samples = problem.samples;
        let side = |v: f64, l1: f64| if v > 0.0 { l1 } else { -l1 };
        let lambda = self.by_columns(&self.lambda, |j, rows, out| {
            vectorized(Dots { matrix: &state.k, rows, vector: state.k.col(j), scale: 1.0 / samples, out });
            for (&i, out) in rows.iter().zip(out) {
                let i = i as usize;
                let slope = problem.syy.get(i, j) - state.sigma.get(i, j) - *out;
                *out = -slope - side(state.lambda.get(i, j), penalties.of_lambda(i, j).l1);
            }
        });
        let theta = self.by_columns(&self.theta, |j, rows, out| {
            let e: Vec<f64> = problem.y.col(j).iter().zip(state.k.col(j)).map(|(y, k)| y + k).collect();
            vectorized(Dots { matrix: &problem.x, rows, vector: &e, scale: -2.0 / samples, out });
            for (&i, out) in rows.iter().zip(out) {
                *out -= side(state.theta.get(i as usize, j), penalties.theta);
            }
        });
        Vector { lambda, theta }
    }

    /// `(Λ R_Λ Λ, ½m D⁻¹ R_Θ Λ)` at the support: a part of a positive definite matrix, and so one itself.
    fn precondition(&self, v: &Vector) -> Vector {
        let Self { problem, state, .. } = self;
        let p = problem.outputs();
        // B = ΛR_Λ a column at a time; then BΛ over what is not 0 in each column of Λ.
        let mut b = Dense::zeros(p, p);
        let items: Vec<_> = b.values_mut().chunks_mut(p).enumerate().collect();
        problem.par.map(items, |(j, out)| {
            for k in self.lambda.range(j) {
                let (row, weight) = (self.lambda.rows[k] as usize, v.lambda[k]);
                for l in self.lambda.range(row) {
                    let i = self.lambda.rows[l] as usize;
                    out[i] += weight * state.lambda.get(i, row);
                }
            }
        });
        let lambda = self.by_columns(&self.lambda, |j, rows, out| {
            let mut column = vec![0.0; p];
            for k in self.lambda.range(j) {
                let row = self.lambda.rows[k] as usize;
                let weight = state.lambda.get(row, j);
                column.iter_mut().zip(b.col(row)).for_each(|(c, b)| *c += weight * b);
            }
            rows.iter().zip(out).for_each(|(&i, out)| *out = column[i as usize]);
        });
        let half = 0.5 * problem.samples;
        let theta = self.by_columns(&self.theta, |j, rows, out| {
            let mut column = vec![0.0; problem.inputs()];
            for k in self.lambda.range(j) {
                let row = self.lambda.rows[k] as usize;
                let weight = state.lambda.get(row, j);
                let own = self.theta.range(row);
                for (&i, value) in self.theta.rows[own.clone()].iter().zip(&v.theta[own]) {
                    column[i as usize] += weight * value;
                }
            }
            for (&i, out) in rows.iter().zip(out) {
                *out = half * column[i as usize] / problem.x_norm2[i as usize];
            }
        });
        Vector { lambda, theta }
    }

    /// The Hessian times `v`.
    fn apply(&self, v: &Vector) -> Vector {
        let Self { problem, state, .. } = self;
        let (m, p) = (problem.x.rows(), problem.outputs());
        let samples = problem.samples;
        // T = XΔ_Θ - KΔ_Λ and A = ΣΔ_Λ, a column at a time.
        let mut t = Dense::zeros(m, p);
        let mut a = Dense::zeros(p, p);
        let items: Vec<_> =
            t.values_mut().chunks_mut(m.max(1)).zip(a.values_mut().chunks_mut(p)).enumerate().collect();
        problem.par.map(items, |(j, (t, a))| {
            let (own, other) = (self.theta.range(j), self.lambda.range(j));
            let (rows, pairs) = (&self.theta.rows[own.clone()], &self.lambda.rows[other.clone()]);
            vectorized(Sums { matrix: &problem.x, rows, weights: &v.theta[own], sign: 1.0, out: t });
            let weights = &v.lambda[other];
            vectorized(Sums { matrix: &state.k, rows: pairs, weights, sign: -1.0, out: t });
            vectorized(Sums { matrix: &state.sigma, rows: pairs, weights, sign: 1.0, out: a });
        });
        let g = product(problem.par, &t, &state.sigma);
        let theta = self.by_columns(&self.theta, |j, rows, out| {
            vectorized(Dots { matrix: &problem.x, rows, vector: g.col(j), scale: 2.0 / samples, out });
        });
        // (ΣΔΣ)_ij = row i of A times column j of Σ: rows of A are wanted as columns.
        let a = a.transposed();
        let lambda = self.by_columns(&self.lambda, |j, rows, out| {
            let mut part = vec![0.0; rows.len()];
            vectorized(Dots { matrix: &a, rows, vector: state.sigma.col(j), scale: 1.0, out });
            vectorized(Dots {
                matrix: &state.k,
                rows,
                vector: g.col(j),
                scale: -1.0 / samples,
                out: &mut part,
            });
            out.iter_mut().zip(&part).for_each(|(o, p)| *o += p);
            vectorized(Dots {
                matrix: &g,
                rows,
                vector: state.k.col(j),
                scale: -1.0 / samples,
                out: &mut part,
            });
            out.iter_mut().zip(&part).for_each(|(o, p)| *o += p);
        });
        Vector { lambda, theta }
    }
}

/// `out_k = scale · matrix_{rows_k}ᵀ vector`, four at a time: their sums do not wait for each other.
struct Dots<'a> {
    matrix: &'a Dense,
    rows: &'a [u32],
    vector: &'a [f64],
    scale: f64,
    out: &'a mut [f64],
}

impl Kernel for Dots<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { matrix, rows, vector, scale, out } = self;
        let (fours, rest) = rows.as_chunks::<4>();
        let (out_fours, out_rest) = out.as_chunks_mut::<4>();
        for (four, out) in fours.iter().zip(out_fours) {
            let [a, b, c, d] = four.map(|i| matrix.col(i as usize).as_chunks::<4>());
            let (v, tail) = vector.as_chunks::<4>();
            let mut sums = [[0.0; 4]; 4];
            for ((((v, a), b), c), d) in v.iter().zip(a.0).zip(b.0).zip(c.0).zip(d.0) {
                for k in 0..4 {
                    sums[0][k] += a[k] * v[k];
                    sums[1][k] += b[k] * v[k];
                    sums[2][k] += c[k] * v[k];
                    sums[3][k] += d[k] * v[k];
                }
            }
            for ((out, sum), rest) in out.iter_mut().zip(sums).zip([a.1, b.1, c.1, d.1]) {
                let last: f64 = rest.iter().zip(tail).map(|(a, v)| a * v).sum();
                *out = scale * ((sum[0] + sum[1]) + (sum[2] + sum[3]) + last);
            }
        }
        for (&i, out) in rest.iter().zip(out_rest) {
            *out = scale * Column::Dense(matrix.col(i as usize)).dot(vector);
        }
    }
}

/// `out += sign · Σ_k weights_k matrix_{rows_k}`, four at a time: `out` is read and written once for them.
struct Sums<'a> {
    matrix: &'a Dense,
    rows: &'a [u32],
    weights: &'a [f64],
    sign: f64,
    out: &'a mut [f64],
}

impl Kernel for Sums<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { matrix, rows, weights, sign, out } = self;
        let (fours, rest) = rows.as_chunks::<4>();
        let (weight_fours, weight_rest) = weights.as_chunks::<4>();
        for (four, w) in fours.iter().zip(weight_fours) {
            let [a, b, c, d] = four.map(|i| matrix.col(i as usize));
            let w = w.map(|w| sign * w);
            for ((((out, a), b), c), d) in out.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                *out += (w[0] * a + w[1] * b) + (w[2] * c + w[3] * d);
            }
        }
        for (&i, &w) in rest.iter().zip(weight_rest) {
            Column::Dense(matrix.col(i as usize)).add_to(sign * w, out);
        }
    }
}
