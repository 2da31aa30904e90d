//! The Newton system on the entries that are not 0.
//!
//! `H` is the Hessian of SGCRF App. A eq. 7 in the form that needs neither `S_xx` nor a Kronecker product: with `T = XΔ_Θ - KΔ_Λ` and `G = TΣ` it is
//! `Δ_Λ ↦ ΣΔ_ΛΣ - (KᵀG + GᵀK)/m`, `Δ_Θ ↦ 2XᵀG/m`.

use super::gather::{Dots, Sums};
use crate::linalg::{Columns, Dense, Single, product, transposed_product};
use crate::objective::gaussian::{Gaussian, Penalties, State};
use crate::par::vectorized;

/// Entries that are not 0 (and the diagonal), column after column: where each column begins, and its rows.
pub(super) struct Support {
    ends: Vec<usize>,
    pub(super) rows: Vec<u32>,
}

impl Support {
    pub(super) fn of(matrix: &Dense, keep: impl Fn(usize, usize, f64) -> bool) -> Self {
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

    pub(super) fn len(&self) -> usize {
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
    /// The same number everywhere.
    pub(super) fn constant(value: f64, lambda: &Support, theta: &Support) -> Self {
        Self { lambda: vec![value; lambda.len()], theta: vec![value; theta.len()] }
    }

    pub(super) fn dot(&self, other: &Self) -> f64 {
        let sum = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        sum(&self.lambda, &other.lambda) + sum(&self.theta, &other.theta)
    }

    pub(super) fn largest(&self) -> f64 {
        self.lambda.iter().chain(&self.theta).fold(0.0, |most, v| most.max(v.abs()))
    }

    pub(super) fn zip(&mut self, other: &Self, f: impl Fn(&mut f64, f64)) {
        self.lambda.iter_mut().zip(&other.lambda).for_each(|(a, b)| f(a, *b));
        self.theta.iter_mut().zip(&other.theta).for_each(|(a, b)| f(a, *b));
    }
}

/// The Hessian at a state, over a support.
pub(super) struct System<'a> {
    pub(super) problem: &'a Gaussian,
    pub(super) state: &'a State,
    pub(super) lambda: Support,
    pub(super) theta: Support,
    /// Where `(j, i)` is, for each place `(i, j)` of Λ.
    pub(super) mirror: Vec<u32>,
    /// `Ψ`.
    pub(super) psi: Dense,
    /// `½Σ + Ψ`.
    half: Dense,
    /// `C = KᵀX/m`, where it pays.
    cross: Option<Dense>,
    /// `X`, `K` and `Σ` in single precision.
    single: Option<[Single; 3]>,
}

impl<'a> System<'a> {
    pub(super) fn new(problem: &'a Gaussian, state: &'a State, lambda: Support, theta: Support) -> Self {
        let psi = problem.psi(state);
        let mut half = psi.clone();
        half.values_mut().iter_mut().zip(state.sigma.values()).for_each(|(q, s)| *q += 0.5 * s);
        let p = problem.outputs();
        let cross = (lambda.len() > p * p / 8).then(|| {
            let mut cross = transposed_product(problem.par, &state.k, &problem.x);
            cross.values_mut().iter_mut().for_each(|v| *v /= problem.samples);
            cross
        });
        // The support is symmetric: as columns are visited in order, so are the entries of each row.
        let mut next: Vec<usize> = (0..p).map(|j| lambda.range(j).start).collect();
        let mirror = (0..lambda.len()).map(|k| {
            let i = lambda.rows[k] as usize;
            next[i] += 1;
            (next[i] - 1) as u32
        });
        let mirror = mirror.collect();
        Self { problem, state, lambda, theta, mirror, psi, half, cross, single: None }
    }

    /// From now on [`apply`](Self::apply) computes in single precision where Λ has few entries. Whether it does.
    pub(super) fn go_single(&mut self) -> bool {
        let Self { problem, state, .. } = self;
        self.single = self
            .cross
            .is_none()
            .then(|| [Single::from(&problem.x), Single::from(&state.k), Single::from(&state.sigma)]);
        self.single.is_some()
    }

    /// From now on it computes in double precision.
    pub(super) fn go_double(&mut self) {
        self.single = None;
    }

    /// `(Λ, Θ)` at the support.
    pub(super) fn current(&self) -> Vector {
        let take = |matrix: &Dense, support: &Support| {
            let columns = (0..matrix.cols()).flat_map(|j| support.range(j).map(move |k| (j, k)));
            columns.map(|(j, k)| matrix.get(support.rows[k] as usize, j)).collect()
        };
        Vector { lambda: take(&self.state.lambda, &self.lambda), theta: take(&self.state.theta, &self.theta) }
    }

    pub(super) fn matrices(&self, v: &Vector) -> (Dense, Dense) {
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
    pub(super) fn right_side(&self, penalties: &Penalties) -> Vector {
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
    pub(super) fn apply(&self, v: &Vector) -> Vector {
        match &self.single {
            Some([x, k, sigma]) => self.apply_by_samples(v, x, k, sigma),
            None => self.apply_exactly(v),
        }
    }

    /// The same, in double precision.
    pub(super) fn apply_exactly(&self, v: &Vector) -> Vector {
        match &self.cross {
            Some(cross) => self.apply_by_moments(v, cross),
            None => self.apply_by_samples(v, &self.problem.x, &self.state.k, &self.state.sigma),
        }
    }

    /// Where Λ has few entries: nothing is formed but what their columns need.
    fn apply_by_samples<M: Columns>(&self, v: &Vector, x: &M, k: &M, sigma: &M) -> Vector {
        let problem = self.problem;
        let (m, p) = (problem.x.rows(), problem.outputs());
        let samples = problem.samples;
        // T = XΔ_Θ - KΔ_Λ and A = ΣΔ_Λ, a column at a time.
        let (mut t, mut a) = (M::zeros(m, p), M::zeros(p, p));
        let items: Vec<_> =
            t.values_mut().chunks_mut(m.max(1)).zip(a.values_mut().chunks_mut(p)).enumerate().collect();
        problem.par.map(items, |(j, (t, a))| {
            let (own, other) = (self.theta.range(j), self.lambda.range(j));
            let (rows, pairs) = (&self.theta.rows[own.clone()], &self.lambda.rows[other.clone()]);
            vectorized(Sums { matrix: x, rows, weights: &v.theta[own], sign: 1.0, out: t });
            let weights = &v.lambda[other];
            vectorized(Sums { matrix: k, rows: pairs, weights, sign: -1.0, out: t });
            vectorized(Sums { matrix: sigma, rows: pairs, weights, sign: 1.0, out: a });
        });
        let g = t.times(problem.par, sigma);
        let theta = self.by_columns(&self.theta, |j, rows, out| {
            vectorized(Dots { matrix: x, rows, vector: g.col(j), scale: 2.0 / samples, out });
        });
        // (ΣΔΣ)_ij = row i of A times column j of Σ: rows of A are wanted as columns. Of the two mirrored terms one is computed.
        let a = a.turned();
        let half = self.by_columns(&self.lambda, |j, rows, out| {
            let mut part = vec![0.0; rows.len()];
            vectorized(Dots { matrix: &a, rows, vector: sigma.col(j), scale: 0.5, out });
            let vector = g.col(j);
            vectorized(Dots { matrix: k, rows, vector, scale: -1.0 / samples, out: &mut part });
            out.iter_mut().zip(&part).for_each(|(o, p)| *o += p);
        });
        let lambda = half.iter().zip(&self.mirror).map(|(own, &k)| own + half[k as usize]).collect();
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
