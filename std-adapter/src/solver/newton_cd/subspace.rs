//! Conjugate gradients for the Newton step on the entries that are not 0, their signs held.
//!
//! Solves `H_SS d = -(g + λ sign)_S`, where `H` is the Hessian of SGCRF App. A eq. 7 in the form that needs neither `S_xx` nor a Kronecker product: with
//! `T = XΔ_Θ - KΔ_Λ` and `G = TΣ` it is `Δ_Λ ↦ ΣΔ_ΛΣ - (KᵀG + GᵀK)/m`, `Δ_Θ ↦ 2XᵀG/m`. Preconditioned by [`Blocks`].

use super::blocks::Blocks;
use crate::linalg::{Dense, product, transposed_product};
use crate::objective::gaussian::{Gaussian, Penalties, State};
use crate::par::{Kernel, vectorized};
use gibbsite_core::column::Column;

/// Entries that are not 0 (and the diagonal), column after column: where each column begins, and its rows.
pub(super) struct Support {
    ends: Vec<usize>,
    pub(super) rows: Vec<u32>,
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

    pub(super) fn range(&self, j: usize) -> std::ops::Range<usize> {
        (if j == 0 { 0 } else { self.ends[j - 1] })..self.ends[j]
    }

    fn len(&self) -> usize {
        self.rows.len()
    }
}

/// A vector over the support: Λ as a whole (both triangles, so that inner products are those of matrices), then Θ.
#[derive(Clone)]
pub(super) struct Vector {
    pub(super) lambda: Vec<f64>,
    pub(super) theta: Vec<f64>,
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
    /// How often entries that would change their signs are put to 0 and the others solved for again.
    pub(super) rounds: usize,
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
    let psi = problem.psi(state);
    let system = System::new(problem, state, psi, lambda, theta);
    let right = system.right_side(penalties);
    let start = right.dot(&right).sqrt();
    let at = system.current();
    let mut found = Vector { lambda: vec![0.0; system.lambda.len()], theta: vec![0.0; system.theta.len()] };
    let mut residual = right.clone();
    let mut free = Vector { lambda: vec![1.0; system.lambda.len()], theta: vec![1.0; system.theta.len()] };
    let (mut steps, mut exact) = (0, false);
    for round in 1..=params.rounds {
        let blocks = Blocks::new(&system, &free);
        exact |= round == params.rounds;
        let wanted = if exact { params.reduction } else { params.reduction.max(envf("ROUGH",0.1)) };
        steps += system.conjugate(&blocks, &free, &mut found, &mut residual, wanted * start, params.iterations);
        let crossed = system.fix(&at, &mut free, &mut found, penalties.diagonal);
        if std::env::var("GDBG").is_ok() { eprintln!("    round {round} steps {steps} crossed {crossed}"); }
        if crossed == 0 && wanted <= params.reduction || round == params.rounds {
            break;
        }
        exact = crossed == 0;
        residual = right.clone();
        let turned = system.apply(&found);
        residual.zip(&turned, |r, t| *r -= t);
    }
    let slope = -found.dot(&right);
    let (dl, dt) = system.matrices(&found);
    (dl, dt, slope, steps)
}

/// How exactly a step is solved while it is not known which entries it takes to 0.
fn envf(n:&str,d:f64)->f64{std::env::var(n).map_or(d,|v|v.parse().unwrap())}

pub(super) struct System<'a> {
    pub(super) problem: &'a Gaussian,
    pub(super) state: &'a State,
    pub(super) lambda: Support,
    pub(super) theta: Support,
    pub(super) psi: Dense,
    /// `½Σ + Ψ`.
    half: Dense,
    /// `C = KᵀX/m`, where it pays.
    cross: Option<Dense>,
}

impl<'a> System<'a> {
    fn new(
        problem: &'a Gaussian,
        state: &'a State,
        psi: Dense,
        lambda: Support,
        theta: Support,
    ) -> Self {
        let mut half = psi.clone();
        half.values_mut().iter_mut().zip(state.sigma.values()).for_each(|(q, s)| *q += 0.5 * s);
        let p = problem.outputs();
        let cross = (lambda.len() > p * p / 8).then(|| {
            let mut cross = transposed_product(problem.par, &state.k, &problem.x);
            cross.values_mut().iter_mut().for_each(|v| *v /= problem.samples);
            cross
        });
        Self { problem, state, lambda, theta, psi, half, cross }
    }

    /// `(Λ, Θ)` at the support.
    fn current(&self) -> Vector {
        let take = |matrix: &Dense, support: &Support| {
            let columns = (0..matrix.cols()).flat_map(|j| support.range(j).map(move |k| (j, k)));
            columns.map(|(j, k)| matrix.get(support.rows[k] as usize, j)).collect()
        };
        Vector { lambda: take(&self.state.lambda, &self.lambda), theta: take(&self.state.theta, &self.theta) }
    }

    /// Entries that `found` would take past 0 stop there and are free no more. How many.
    fn fix(&self, at: &Vector, free: &mut Vector, found: &mut Vector, diagonal: bool) -> usize {
        let mut crossed = 0;
        for j in 0..self.problem.outputs() {
            for k in self.lambda.range(j) {
                let past = at.lambda[k] * (at.lambda[k] + found.lambda[k]) <= 0.0;
                let counts = diagonal || self.lambda.rows[k] as usize != j;
                if free.lambda[k] != 0.0 && counts && past {
                    (free.lambda[k], found.lambda[k]) = (0.0, -at.lambda[k]);
                    crossed += 1;
                }
            }
        }
        for ((free, found), at) in free.theta.iter_mut().zip(&mut found.theta).zip(&at.theta) {
            if *free != 0.0 && at * (at + *found) <= 0.0 {
                (*free, *found) = (0.0, -at);
                crossed += 1;
            }
        }
        crossed
    }

    /// Conjugate gradients in the entries that are free, from `found` with `residual`, until the residual is at most `enough`. Returns the steps it took.
    fn conjugate(
        &self,
        blocks: &Blocks,
        free: &Vector,
        found: &mut Vector,
        residual: &mut Vector,
        enough: f64,
        most: usize,
    ) -> usize {
        residual.zip(free, |r, f| *r *= f);
        let mut along = blocks.apply(self.problem, residual);
        let mut size = residual.dot(&along);
        let mut steps = 0;
        while steps < most && size > 0.0 && residual.dot(residual).sqrt() > enough {
            let mut turned = self.apply(&along);
            turned.zip(free, |t, f| *t *= f);
            let bend = along.dot(&turned);
            // Not positive only through rounding.
            if bend <= 0.0 || !bend.is_finite() {
                break;
            }
            let step = size / bend;
            found.zip(&along, |x, d| *x += step * d);
            residual.zip(&turned, |r, t| *r -= step * t);
            steps += 1;
            let scaled = blocks.apply(self.problem, residual);
            let next = residual.dot(&scaled);
            let turn = next / size;
            size = next;
            along.zip(&scaled, |d, z| *d = z + turn * *d);
        }
        steps
    }

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

    /// The Hessian times `v`.
    fn apply(&self, v: &Vector) -> Vector {
        match &self.cross {
            Some(cross) => self.apply_by_moments(v, cross),
            None => self.apply_by_samples(v),
        }
    }

    /// Where Λ has few entries: nothing is formed but what their columns need.
    fn apply_by_samples(&self, v: &Vector) -> Vector {
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
            let scale = -1.0 / samples;
            vectorized(Dots { matrix: &a, rows, vector: state.sigma.col(j), scale: 1.0, out });
            vectorized(Dots { matrix: &state.k, rows, vector: g.col(j), scale, out: &mut part });
            out.iter_mut().zip(&part).for_each(|(o, p)| *o += p);
            vectorized(Dots { matrix: &g, rows, vector: state.k.col(j), scale, out: &mut part });
            out.iter_mut().zip(&part).for_each(|(o, p)| *o += p);
        });
        Vector { lambda, theta }
    }

    /// Where Λ has many: with `Ψ` and `C = KᵀX/m` known it is `Δ_Λ ↦ W + Wᵀ`, `W = (½Σ + Ψ)U - CΔ_ΘΣ` where `U = Δ_ΛΣ`, and `Δ_Θ ↦ 2Xᵀ(XΔ_ΘΣ)/m - 2CᵀU`.
    fn apply_by_moments(&self, v: &Vector, cross: &Dense) -> Vector {
        let Self { problem, state, .. } = self;
        let (par, samples) = (problem.par, problem.samples);
        let (m, p) = (problem.x.rows(), problem.outputs());
        let (mut z, mut d) = (Dense::zeros(m, p), Dense::zeros(p, p));
        let mut c = Dense::zeros(p, p);
        let columns = z.values_mut().chunks_mut(m.max(1)).zip(c.values_mut().chunks_mut(p));
        let items: Vec<_> = columns.zip(d.values_mut().chunks_mut(p)).enumerate().collect();
        par.map(items, |(j, ((z, c), d))| {
            let own = self.theta.range(j);
            let (rows, weights) = (&self.theta.rows[own.clone()], &v.theta[own]);
            vectorized(Sums { matrix: &problem.x, rows, weights, sign: 1.0, out: z });
            vectorized(Sums { matrix: cross, rows, weights, sign: -1.0, out: c });
            self.lambda.range(j).for_each(|k| d[self.lambda.rows[k] as usize] = v.lambda[k]);
        });
        let u = product(par, &d, &state.sigma);
        let mut w = product(par, &self.half, &u);
        let second = product(par, &c, &state.sigma);
        w.values_mut().iter_mut().zip(second.values()).for_each(|(w, s)| *w += s);
        let turned = w.transposed();
        let lambda = self.by_columns(&self.lambda, |j, rows, out| {
            for (&i, out) in rows.iter().zip(out) {
                *out = w.get(i as usize, j) + turned.get(i as usize, j);
            }
        });
        let g = product(par, &z, &state.sigma);
        let theta = self.by_columns(&self.theta, |j, rows, out| {
            let mut part = vec![0.0; rows.len()];
            vectorized(Dots { matrix: &problem.x, rows, vector: g.col(j), scale: 2.0 / samples, out });
            vectorized(Dots { matrix: cross, rows, vector: u.col(j), scale: -2.0, out: &mut part });
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
