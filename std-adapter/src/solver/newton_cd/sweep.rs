//! Coordinate sweeps over the quadratic model of a Gaussian CRF's objective (SGCRF App. B, Algorithm 2).
//!
//! The model at `(Λ, Θ)` is `tr ∇_Λᵀ Δ_Λ + tr ∇_Θᵀ Δ_Θ + ½tr ΣΔ_ΛΣΔ_Λ + tr ΨΔ_ΛΣΔ_Λ + tr ΣΔ_ΘᵀS_xxΔ_Θ - 2 tr ΣΔ_ΛΣΘᵀS_xxΔ_Θ` plus the penalty of
//! `(Λ + Δ_Λ, Θ + Δ_Θ)` (eq. 9 of the main text; signs of the appendix's eq. 8 corrected, SEEDS.md).

use super::gather::dot;
use crate::linalg::{Dense, product, product_of_columns, transposed_product};
use crate::objective::gaussian::{Gaussian, Penalties, Slopes, State};
use crate::par::{Kernel, vectorized};
use gibbsite_core::column::Column;
use gibbsite_core::penalty::Penalty;

/// Entries that may change: those that are not 0, and those whose slope the penalty does not cover (eq. 14).
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Active {
    /// `(i, j)` with `i ≤ j`, column after column.
    pub(super) lambda: Vec<(u32, u32)>,
    /// Rows of each column of Θ.
    pub(super) theta: Vec<Vec<u32>>,
}

impl Active {
    pub(super) fn new(state: &State, slopes: &Slopes, penalties: &Penalties) -> Self {
        let p = state.lambda.cols();
        let mut lambda = Vec::new();
        for j in 0..p {
            for i in 0..=j {
                let covered = slopes.lambda.get(i, j).abs() <= penalties.lambda;
                if i == j || state.lambda.get(i, j) != 0.0 || !covered {
                    lambda.push((i as u32, j as u32));
                }
            }
        }
        let rows = |j: usize| {
            let entries = state.theta.col(j).iter().zip(slopes.theta.col(j)).enumerate();
            let entries = entries.filter(|(_, (t, g))| **t != 0.0 || g.abs() > penalties.theta);
            entries.map(|(i, _)| i as u32).collect()
        };
        Self { lambda, theta: (0..p).map(rows).collect() }
    }

    /// Of the entries that are 0, keeps only those with the largest slopes: at most `share` times as many as there are others, for Λ and for Θ.
    pub(super) fn limit(&mut self, state: &State, slopes: &Slopes, share: f64) {
        let slope = |(i, j): (u32, u32)| slopes.lambda.get(i as usize, j as usize).abs();
        let new = |(i, j): (u32, u32)| i != j && state.lambda.get(i as usize, j as usize) == 0.0;
        let sizes: Vec<f64> = self.lambda.iter().filter(|&&e| new(e)).map(|&e| slope(e)).collect();
        let least = bound(share * (self.lambda.len() - sizes.len()) as f64, sizes);
        self.lambda.retain(|&e| !new(e) || slope(e) > least);

        let slope = |i: u32, j: usize| slopes.theta.get(i as usize, j).abs();
        let new = |i: u32, j: usize| state.theta.get(i as usize, j) == 0.0;
        let entries = self.theta.iter().enumerate().flat_map(|(j, rows)| rows.iter().map(move |&i| (i, j)));
        let sizes: Vec<f64> = entries.filter(|&(i, j)| new(i, j)).map(|(i, j)| slope(i, j)).collect();
        // An empty Θ has to grow as well.
        let others = self.theta.iter().map(Vec::len).sum::<usize>() - sizes.len() + state.lambda.cols();
        let least = bound(share * others as f64, sizes);
        for (j, rows) in self.theta.iter_mut().enumerate() {
            rows.retain(|&i| !new(i, j) || slope(i, j) > least);
        }
    }
}

/// What all but the `most` largest do not exceed; 0 if there are no more than that. So many may always come in: a share of a few entries is none, and a run would stand still.
fn bound(most: f64, mut sizes: Vec<f64>) -> f64 {
    const ALWAYS: usize = 100;
    let most = (most as usize).max(ALWAYS);
    if sizes.len() <= most {
        return 0.0;
    }
    *sizes.select_nth_unstable_by(most, |a, b| b.total_cmp(a)).1
}

/// A step, and what Algorithm 2 keeps of it.
#[derive(Clone, Debug)]
pub(super) struct Direction {
    /// `Δ_Λ`.
    pub(super) lambda: Dense,
    /// `U = Δ_Λ Σ`.
    u: Dense,
    /// `Δ_Θ` at the active rows of each column.
    pub(super) theta: Vec<Vec<f64>>,
    /// `Z = XΔ_Θ`. Its product with Σ takes the place of Algorithm 2's `S_xx V`, `V = Δ_Θ Σ`.
    pub(super) z: Dense,
}

impl Direction {
    pub(super) fn zero(problem: &Gaussian, active: &Active) -> Self {
        let p = problem.outputs();
        Self {
            lambda: Dense::zeros(p, p),
            u: Dense::zeros(p, p),
            theta: active.theta.iter().map(|rows| vec![0.0; rows.len()]).collect(),
            z: Dense::zeros(problem.x.rows(), p),
        }
    }
}

impl Direction {
    /// Adds `Δ_Θ`.
    pub(super) fn add_theta(&self, active: &Active, to: &mut Dense) {
        for (j, (rows, values)) in active.theta.iter().zip(&self.theta).enumerate() {
            rows.iter().zip(values).for_each(|(&i, &v)| to.add(i as usize, j, v));
        }
    }
}

/// Where the model is expanded, and what is allowed to move.
#[derive(Clone, Copy)]
pub(super) struct Model<'a> {
    pub(super) problem: &'a Gaussian,
    pub(super) state: &'a State,
    pub(super) penalties: &'a Penalties,
    pub(super) active: &'a Active,
}

impl Model<'_> {
    /// Sweeps over the active entries of Λ, Θ held, until a sweep moves none by more than `enough` (in units of the slope), at most
    /// `sweeps` times. Returns the largest such move of the first sweep.
    pub(super) fn sweep_lambda(
        &self,
        slopes: &Slopes,
        step: &mut Direction,
        enough: f64,
        sweeps: usize,
    ) -> f64 {
        let Self { problem, state, penalties, active } = *self;
        let sigma = &state.sigma;
        let moved = step.theta.iter().flatten().any(|d| *d != 0.0);
        // Φ = ΣΘᵀS_xxΔ_ΘΣ = Kᵀ(ZΣ)/m stands still while only Δ_Λ moves.
        let phi = moved.then(|| {
            let par = problem.par;
            transposed_product(par, &state.k, &product(par, &step.z, sigma))
        });
        let linear: Vec<f64> = active
            .lambda
            .iter()
            .map(|&(i, j)| {
                let (i, j) = (i as usize, j as usize);
                let cross = phi.as_ref().map_or(0.0, |f| (f.get(i, j) + f.get(j, i)) / problem.samples);
                slopes.lambda.get(i, j) - cross
            })
            .collect();
        let mut both = sigma.clone();
        both.values_mut().iter_mut().zip(slopes.psi.values()).for_each(|(s, q)| *s += q);
        let mut first = 0.0;
        for k in 0..sweeps {
            let largest = vectorized(LambdaSweep {
                entries: &active.lambda,
                linear: &linear,
                sigma,
                psi: &slopes.psi,
                both: &both,
                lambda: &state.lambda,
                penalties,
                delta: &mut step.lambda,
                u: &mut step.u,
            });
            if k == 0 {
                first = largest;
            }
            if largest <= enough {
                break;
            }
        }
        first
    }

    /// Sweeps over the active entries of Θ, column after column, Λ held; `inner` times over a column, `passes` times over all.
    /// Returns the largest move of the first pass, in units of the slope.
    ///
    /// Column `j` is a Lasso: with `w = E_j + ((Z - KΔ_Λ)Σ)_j` the slope of entry `i` is `2x_iᵀw/m`, and moving it by μ adds `μΣ_jj x_i` to `w`. So core's
    /// update for the squared loss does it, with residual `-w/Σ_jj` and penalty `λm/(2Σ_jj)`.
    pub(super) fn sweep_theta(
        &self,
        e: &Dense,
        step: &mut Direction,
        enough: f64,
        passes: usize,
        inner: usize,
    ) -> f64 {
        const WIDTH: usize = 64;
        let Self { problem, state, penalties, active } = *self;
        let (m, p) = (problem.x.rows(), problem.outputs());
        let moved = step.lambda.values().iter().any(|d| *d != 0.0);
        // T = XΔ_Θ - KΔ_Λ.
        let mut t = step.z.clone();
        if moved {
            let shift = product(problem.par, &state.k, &step.lambda);
            t.values_mut().iter_mut().zip(shift.values()).for_each(|(t, s)| *t -= s);
        }
        let mut still = t.values().iter().all(|v| *v == 0.0);
        let mut g = vec![0.0; m * WIDTH.min(p)];
        let mut residual = vec![0.0; m];
        let mut first = 0.0f64;
        for pass in 0..passes {
            let mut largest = 0.0f64;
            for start in (0..p).step_by(WIDTH) {
                let range = start..(start + WIDTH).min(p);
                if active.theta[range.clone()].iter().all(Vec::is_empty) {
                    continue;
                }
                if still {
                    g.fill(0.0);
                } else {
                    product_of_columns(problem.par, &t, &state.sigma, range.clone(), &mut g);
                }
                for j in range.clone() {
                    let rows = &active.theta[j];
                    if rows.is_empty() {
                        continue;
                    }
                    let scale = state.sigma.get(j, j);
                    let own = &g[(j - start) * m..(j - start + 1) * m];
                    for ((r, e), g) in residual.iter_mut().zip(e.col(j)).zip(own) {
                        *r = -(e + g) / scale;
                    }
                    let l1 = penalties.theta * problem.samples / (2.0 * scale);
                    let found = vectorized(ColumnSweep {
                        x: &problem.x,
                        norm2: &problem.x_norm2,
                        rows,
                        theta: state.theta.col(j),
                        delta: &mut step.theta[j],
                        residual: &mut residual,
                        penalty: Penalty { l1, l2: 0.0, positive: false },
                        sweeps: inner,
                    });
                    if found == 0.0 {
                        continue;
                    }
                    largest = largest.max(2.0 * scale * found / problem.samples);
                    still = false;
                    // What the residual lost is what Z gained; the other columns of the block learn of it here.
                    for ((r, e), g) in residual.iter_mut().zip(e.col(j)).zip(own) {
                        *r = -(e + g) / scale - *r;
                    }
                    let add = |out: &mut [f64], by: f64| {
                        out.iter_mut().zip(&residual).for_each(|(o, d)| *o += by * d);
                    };
                    add(step.z.col_mut(j), 1.0);
                    add(t.col_mut(j), 1.0);
                    for k in range.clone() {
                        add(&mut g[(k - start) * m..(k - start + 1) * m], state.sigma.get(j, k));
                    }
                }
            }
            if pass == 0 {
                first = largest;
            }
            if largest <= enough {
                break;
            }
        }
        first
    }
}

/// One pass over the active entries of Λ: eqs. 9 and 11 as corrected in SEEDS.md.
struct LambdaSweep<'a> {
    entries: &'a [(u32, u32)],
    linear: &'a [f64],
    sigma: &'a Dense,
    psi: &'a Dense,
    /// `Σ + Ψ`.
    both: &'a Dense,
    lambda: &'a Dense,
    penalties: &'a Penalties,
    delta: &'a mut Dense,
    u: &'a mut Dense,
}

impl Kernel for LambdaSweep<'_> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let Self { entries, linear, sigma, psi, both, lambda, penalties, delta, u } = self;
        let p = sigma.cols();
        let mut largest = 0.0f64;
        for (&(i, j), &linear) in entries.iter().zip(linear) {
            let (i, j) = (i as usize, j as usize);
            // (ΣΔΣ)_ij + (ΨΔΣ)_ij + (ΨΔΣ)_ji from U = ΔΣ.
            let turned = dot(both.col(i), u.col(j)) + dot(psi.col(j), u.col(i));
            let (s, q) = (sigma.get(i, j), psi.get(i, j));
            let (sii, sjj) = (sigma.get(i, i), sigma.get(j, j));
            let full = s * s + sii * sjj + sii * psi.get(j, j) + 2.0 * s * q + sjj * psi.get(i, i);
            // A pair stands for two entries: slope, curvature and penalty of eq. 11 are all halved here.
            let curvature = if i == j { 0.5 * full } else { full };
            let at = lambda.get(i, j) + delta.get(i, j);
            let new = penalties.of_lambda(i, j).minimize(at, linear + turned, curvature);
            let step = new - at;
            if step == 0.0 {
                continue;
            }
            largest = largest.max(curvature * step.abs());
            // An entry that became 0 must be exactly that when it is put together again.
            let total = if new == 0.0 { -lambda.get(i, j) } else { delta.get(i, j) + step };
            delta.set(i, j, total);
            delta.set(j, i, total);
            let values = u.values_mut();
            for (k, &s) in sigma.col(j).iter().enumerate() {
                values[i + k * p] += step * s;
            }
            if i != j {
                for (k, &s) in sigma.col(i).iter().enumerate() {
                    values[j + k * p] += step * s;
                }
            }
        }
        largest
    }
}

/// Some sweeps over one column of Θ. Returns the largest `‖x_i‖²·|step|` of the first.
pub(super) struct ColumnSweep<'a> {
    pub(super) x: &'a Dense,
    pub(super) norm2: &'a [f64],
    pub(super) rows: &'a [u32],
    pub(super) theta: &'a [f64],
    pub(super) delta: &'a mut [f64],
    pub(super) residual: &'a mut [f64],
    pub(super) penalty: Penalty<f64>,
    pub(super) sweeps: usize,
}

impl Kernel for ColumnSweep<'_> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let Self { x, norm2, rows, theta, delta, residual, penalty, sweeps } = self;
        let mut first = 0.0f64;
        for k in 0..sweeps {
            let mut largest = 0.0f64;
            for (&i, delta) in rows.iter().zip(delta.iter_mut()) {
                let i = i as usize;
                // Core's update for the squared loss, with a dot product in more lanes.
                let before = theta[i] + *delta;
                let value = penalty.minimize(before, -dot(x.col(i), residual), norm2[i]);
                let step = value - before;
                if step != 0.0 {
                    Column::Dense(x.col(i)).add_to(-step, residual);
                    // A weight that became 0 must be exactly that when it is put together again.
                    *delta = if value == 0.0 { -theta[i] } else { value - theta[i] };
                    largest = largest.max(norm2[i] * step.abs());
                }
            }
            if k == 0 {
                first = largest;
            }
            if largest <= 0.1 * first {
                break;
            }
        }
        first
    }
}
