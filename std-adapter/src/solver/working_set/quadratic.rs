//! The quadratic that an inner solver descends on, in two forms with one face.
//!
//! `q(Δ) = gᵀΔ + ½ΔᵀHΔ` over the columns of a working set, with `H = A_Wᵀ diag(w) A_W`. Either the residual
//! `ρ = u - w∘(A_W Δ)` is kept and each slope is a pass over a column ([`Residual`]), or `H` is formed once and each
//! slope is there for the asking ([`Gram`]). Which is cheaper depends on how many working columns share a row.

use crate::par::vectorized;
use gibbsite_core::column::Column;
use gibbsite_core::math::Real;

/// A quadratic in the weights of a working set. Positions count within the set.
pub(super) trait Quadratic {
    /// `∂q/∂Δ_p` at the current point.
    fn slope(&self, p: usize) -> f64;
    /// `H_pp`.
    fn curvature(&self, p: usize) -> f64;
    /// Adds `by` to `Δ_p`.
    fn shift(&mut self, p: usize, by: f64);
    /// Writes `H d` at the positions `at`, where `d` is zero elsewhere, and returns `dᵀHd`.
    fn product(&mut self, at: &[u32], d: &[f64], out: &mut [f64]) -> f64;
    /// `dᵀHd`; [`accept`](Self::accept) may then add `d` to `Δ`.
    fn propose(&mut self, at: &[u32], d: &[f64]) -> f64;
    /// Adds what was proposed last.
    fn accept(&mut self);
    /// Matrix entries that a slope at `p` visits.
    fn cost(&self, p: usize) -> u64;
    /// Most conjugate gradient steps that are worth taking between sweeps: products against slopes.
    fn patience(&self) -> u32;
}

/// By the residual.
pub(super) struct Residual<'a, V> {
    pub(super) columns: &'a [Column<'a, V>],
    /// `w`; all ones if there is none.
    pub(super) weight: Option<&'a [f64]>,
    pub(super) curvature: &'a [f64],
    /// `ρ`, changed in place.
    pub(super) rho: &'a mut [f64],
    /// As long as `rho`.
    pub(super) moved: &'a mut [f64],
}

impl<V: Real> Residual<'_, V> {
    fn spread(&mut self, at: &[u32], d: &[f64]) -> f64 {
        let (columns, moved) = (self.columns, &mut *self.moved);
        let weight = self.weight;
        vectorized(|| {
            moved.fill(0.0);
            for (&p, &d) in at.iter().zip(d) {
                if d != 0.0 {
                    columns[p as usize].add_to(d, moved);
                }
            }
            match weight {
                None => moved.iter().map(|v| v * v).sum(),
                Some(weight) => {
                    let mut sum = 0.0;
                    for (v, &w) in moved.iter_mut().zip(weight) {
                        let plain = *v;
                        *v *= w;
                        sum += *v * plain;
                    }
                    sum
                }
            }
        })
    }
}

impl<V: Real> Quadratic for Residual<'_, V> {
    #[inline(always)]
    fn slope(&self, p: usize) -> f64 {
        -self.columns[p].dot(self.rho)
    }

    #[inline(always)]
    fn curvature(&self, p: usize) -> f64 {
        self.curvature[p]
    }

    #[inline(always)]
    fn shift(&mut self, p: usize, by: f64) {
        match (self.weight, self.columns[p]) {
            (None, column) => column.add_to(-by, self.rho),
            (Some(weight), Column::Dense(values)) => {
                for ((r, &a), &w) in self.rho.iter_mut().zip(values).zip(weight) {
                    *r -= by * w * a.to_f64();
                }
            }
            (Some(weight), Column::Sparse { rows, values }) => {
                for (&row, &a) in rows.iter().zip(values) {
                    let row = row as usize;
                    self.rho[row] -= by * weight[row] * a.to_f64();
                }
            }
        }
    }

    fn product(&mut self, at: &[u32], d: &[f64], out: &mut [f64]) -> f64 {
        let square = self.spread(at, d);
        let (columns, moved) = (self.columns, &*self.moved);
        vectorized(|| {
            for (out, &p) in out.iter_mut().zip(at) {
                *out = columns[p as usize].dot(moved);
            }
        });
        square
    }

    fn propose(&mut self, at: &[u32], d: &[f64]) -> f64 {
        self.spread(at, d)
    }

    fn accept(&mut self) {
        for (r, v) in self.rho.iter_mut().zip(&*self.moved) {
            *r -= v;
        }
    }

    fn cost(&self, p: usize) -> u64 {
        self.columns[p].len() as u64
    }

    fn patience(&self) -> u32 {
        60
    }
}

/// By `H` itself.
pub(super) struct Gram<'a> {
    /// `H`, row by row; symmetric.
    pub(super) table: &'a [f64],
    /// The gradient at the current point, changed in place.
    pub(super) slopes: &'a mut [f64],
    /// As long as `slopes`.
    pub(super) moved: &'a mut [f64],
}

impl Gram<'_> {
    #[inline(always)]
    fn row(&self, p: usize) -> &[f64] {
        let k = self.slopes.len();
        &self.table[p * k..(p + 1) * k]
    }
}

impl Quadratic for Gram<'_> {
    #[inline(always)]
    fn slope(&self, p: usize) -> f64 {
        self.slopes[p]
    }

    #[inline(always)]
    fn curvature(&self, p: usize) -> f64 {
        self.table[p * self.slopes.len() + p]
    }

    #[inline(always)]
    fn shift(&mut self, p: usize, by: f64) {
        let k = self.slopes.len();
        for (g, &h) in self.slopes.iter_mut().zip(&self.table[p * k..(p + 1) * k]) {
            *g += by * h;
        }
    }

    fn product(&mut self, at: &[u32], d: &[f64], out: &mut [f64]) -> f64 {
        let square = self.propose(at, d);
        for (out, &p) in out.iter_mut().zip(at) {
            *out = self.moved[p as usize];
        }
        square
    }

    fn propose(&mut self, at: &[u32], d: &[f64]) -> f64 {
        let moved = std::mem::take(&mut self.moved);
        vectorized(|| {
            moved.fill(0.0);
            for (&p, &d) in at.iter().zip(d) {
                if d != 0.0 {
                    for (m, &h) in moved.iter_mut().zip(self.row(p as usize)) {
                        *m += d * h;
                    }
                }
            }
        });
        let square = at.iter().zip(d).map(|(&p, &d)| d * moved[p as usize]).sum();
        self.moved = moved;
        square
    }

    fn accept(&mut self) {
        for (g, m) in self.slopes.iter_mut().zip(&*self.moved) {
            *g += m;
        }
    }

    fn cost(&self, _: usize) -> u64 {
        1
    }

    fn patience(&self) -> u32 {
        400
    }
}
