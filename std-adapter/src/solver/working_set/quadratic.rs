//! The quadratic that an inner solver descends on, in two forms with one face.
//!
//! `q(Δ) = gᵀΔ + ½ΔᵀHΔ` over the columns of a working set, with `H = A_Wᵀ diag(w) A_W`. Either the residual
//! `ρ = u - w∘(A_W Δ)` is kept and each slope is a pass over a column ([`Residual`]), or `H` is formed once and each
//! slope is there for the asking ([`Gram`]). Which is cheaper depends on how many working columns share a row.

use crate::par::{Kernel, vectorized};
use gibbsite_core::column::Column;
use gibbsite_core::lanes::sum_pairs;
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
        vectorized(Spread { columns: self.columns, weight: self.weight, moved: &mut *self.moved, at, d })
    }
}

/// `moved = w∘(A d)`; returns `dᵀAᵀ(w∘(A d))`.
struct Spread<'a, V> {
    columns: &'a [Column<'a, V>],
    weight: Option<&'a [f64]>,
    moved: &'a mut [f64],
    at: &'a [u32],
    d: &'a [f64],
}

impl<V: Real> Kernel for Spread<'_, V> {
    type Output = f64;
    #[inline(always)]
    fn run(self) -> f64 {
        let Self { columns, weight, moved, at, d } = self;
        moved.fill(0.0);
        for (&p, &d) in at.iter().zip(d) {
            if d != 0.0 {
                columns[p as usize].add_to(d, moved);
            }
        }
        let Some(weight) = weight else { return sum_pairs(moved, moved, |a, b| a * b) };
        let square = sum_pairs(moved, weight, |v, w| v * v * w);
        moved.iter_mut().zip(weight).for_each(|(v, w)| *v *= w);
        square
    }
}

struct Gather<'a, V> {
    columns: &'a [Column<'a, V>],
    moved: &'a [f64],
    at: &'a [u32],
    out: &'a mut [f64],
}

impl<V: Real> Kernel for Gather<'_, V> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Self { columns, moved, at, out } = self;
        for (out, &p) in out.iter_mut().zip(at) {
            *out = columns[p as usize].dot(moved);
        }
    }
}

/// `moved = H d`.
struct Combine<'a> {
    table: &'a [f64],
    moved: &'a mut [f64],
    at: &'a [u32],
    d: &'a [f64],
}

impl Kernel for Combine<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Self { table, moved, at, d } = self;
        let k = moved.len();
        moved.fill(0.0);
        for (&p, &d) in at.iter().zip(d) {
            if d != 0.0 {
                let row = &table[p as usize * k..(p as usize + 1) * k];
                for (m, &h) in moved.iter_mut().zip(row) {
                    *m += d * h;
                }
            }
        }
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
        vectorized(Gather { columns: self.columns, moved: &*self.moved, at, out });
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
        vectorized(Combine { table: self.table, moved: &mut *self.moved, at, d });
        at.iter().zip(d).map(|(&p, &d)| d * self.moved[p as usize]).sum()
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
