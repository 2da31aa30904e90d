//! The quadratic that an inner solver descends on, in two forms with one face.
//!
//! `q(Δ) = gᵀΔ + ½ΔᵀHΔ` over the columns of a working set, with `H = A_Wᵀ diag(w) A_W`. Either the residual
//! `ρ = u - w∘(A_W Δ)` is kept and each slope is a pass over a column ([`Residual`]), or `H` is formed once and each
//! slope is there for the asking ([`Gram`](super::by_gram::Gram)). Which is cheaper depends on how many working columns share a row.

use crate::par::{Kernel, Par, vectorized};
use crate::regress::problem::ROWS;
use gibbsite_core::column::Column;
use gibbsite_core::lanes::sum_pairs;
use gibbsite_core::math::Real;

/// A quadratic in the weights of a working set. Positions count within the set. Where `Δ` stands is known by a state outside of it, `ρ` or all
/// slopes, which is linear in `Δ`: so that two parts of a sweep can each have their own.
pub(super) trait Quadratic: Sync {
    /// `∂q/∂Δ_p` at the current point.
    fn slope(&self, state: &[f64], p: usize) -> f64;
    /// Writes the slopes at the positions `at`.
    fn slopes(&self, state: &[f64], at: &[u32], out: &mut [f64]);
    /// `H_pp`.
    fn curvature(&self, p: usize) -> f64;
    /// Adds `by` to `Δ_p`.
    fn shift(&self, state: &mut [f64], p: usize, by: f64);
    /// `dᵀHe` of two steps `d` and `e` that move the state by `first` (which may be overwritten) and `second`; `e` is not zero at the
    /// positions `at` only.
    fn meeting(&self, first: &mut [f64], second: &[f64], at: &[u32], e: &[f64]) -> f64;
    /// Writes `H d` at the positions `at`, where `d` is zero elsewhere, and returns `dᵀHd`; to about single precision.
    fn product(&mut self, at: &[u32], d: &[f64], out: &mut [f64]) -> f64;
    /// `dᵀHd`; [`accept`](Self::accept) may then add `d` to `Δ`.
    fn propose(&mut self, at: &[u32], d: &[f64]) -> f64;
    /// Adds what was proposed last.
    fn accept(&self, state: &mut [f64]);
    /// Matrix entries that a slope at `p` visits.
    fn cost(&self, p: usize) -> u64;
    /// Numbers that a sweep over so many positions reads if every weight moves, where slopes visit so many entries.
    fn reads(&self, positions: usize, entries: u64) -> u64;
    /// Threads for what is large.
    fn par(&self) -> Par;
    /// Most conjugate gradient steps that are worth taking between sweeps: products against slopes.
    fn patience(&self) -> u32;
}

/// By the residual.
pub(super) struct Residual<'a, V> {
    pub(super) columns: &'a [Column<'a, V>],
    /// `w`; all ones if there is none.
    pub(super) weight: Option<&'a [f64]>,
    pub(super) curvature: &'a [f64],
    /// As long as `ρ`.
    pub(super) moved: &'a mut [f64],
    /// Threads for passes over many columns.
    pub(super) par: Par,
    /// Where parts of a pass are summed; made as they are needed.
    pub(super) parts: &'a mut [Vec<f64>; PARTS],
}

/// Parts that a large pass is cut into, on however many threads: sums are the same on any number.
pub(super) const PARTS: usize = 4;
/// Columns that a thread takes at a time.
const STRIP: usize = 32;
/// Entries from which on a pass is cut.
pub(super) const LARGE: u64 = 100_000;

impl<V: Real> Residual<'_, V> {
    /// `out_k = a_kᵀv` over the columns `at`.
    fn dots(&self, v: &[f64], at: &[u32], out: &mut [f64]) {
        let columns = self.columns;
        let work: Vec<_> = at.chunks(STRIP).zip(out.chunks_mut(STRIP)).collect();
        let par = if columns.len() >= 4 * STRIP { self.par } else { Par::Seq };
        par.map(work, |(at, out)| vectorized(Gather { columns, v, at, out }));
    }

    fn spread(&mut self, at: &[u32], d: &[f64]) -> f64 {
        combine(self.columns, at, d, self.moved, self.parts, self.par);
        let weights = (0..).step_by(ROWS).map(|first| self.weight.map(|w| &w[first..]));
        let strips = self.moved.chunks_mut(ROWS).zip(weights);
        self.par.map(strips.collect(), |(moved, weight)| vectorized(Weigh { weight, moved })).iter().sum()
    }
}

/// `moved = Σ_k d_k a_k` over the columns `at`.
pub(super) fn combine<V: Real>(
    columns: &[Column<'_, V>],
    at: &[u32],
    d: &[f64],
    moved: &mut [f64],
    parts: &mut [Vec<f64>; PARTS],
    par: Par,
) {
    let entries: u64 = at.iter().map(|&p| columns[p as usize].len() as u64).sum();
    if entries < LARGE {
        return vectorized(Spread { columns, moved, at, d });
    }
    // Cut by entries, so that parts take equally long.
    let mut cuts = Vec::with_capacity(PARTS);
    let (mut first, mut seen) = (0, 0);
    for (k, &p) in at.iter().enumerate() {
        seen += columns[p as usize].len() as u64;
        if seen * PARTS as u64 >= entries * (cuts.len() as u64 + 1) && cuts.len() + 1 < PARTS {
            cuts.push(first..k + 1);
            first = k + 1;
        }
    }
    cuts.push(first..at.len());
    let rows = moved.len();
    let work: Vec<_> = parts.iter_mut().zip(cuts).collect();
    let used = work.len();
    par.map(work, |(part, cut)| {
        part.resize(rows, 0.0);
        vectorized(Spread { columns, moved: part, at: &at[cut.clone()], d: &d[cut] });
    });
    let parts = &parts[..used];
    par.map(moved.chunks_mut(ROWS).enumerate().collect(), |(strip, moved)| {
        moved.fill(0.0);
        for part in parts {
            moved.iter_mut().zip(&part[strip * ROWS..]).for_each(|(sum, p)| *sum += p);
        }
    });
}

/// `moved ∘= w`; returns `Σ moved²w` of before.
struct Weigh<'a> {
    weight: Option<&'a [f64]>,
    moved: &'a mut [f64],
}

impl Kernel for Weigh<'_> {
    type Output = f64;
    #[inline(always)]
    fn run(self) -> f64 {
        let Self { weight, moved } = self;
        let Some(weight) = weight else { return sum_pairs(moved, moved, |a, b| a * b) };
        let square = sum_pairs(moved, weight, |v, w| v * v * w);
        moved.iter_mut().zip(weight).for_each(|(v, w)| *v *= w);
        square
    }
}

/// `Σ first·second/w`.
struct Meeting<'a> {
    weight: Option<&'a [f64]>,
    first: &'a mut [f64],
    second: &'a [f64],
}

impl Kernel for Meeting<'_> {
    type Output = f64;
    #[inline(always)]
    fn run(self) -> f64 {
        let Self { weight, first, second } = self;
        if let Some(weight) = weight {
            first.iter_mut().zip(weight).for_each(|(m, w)| *m /= w);
        }
        sum_pairs(first, second, |a, b| a * b)
    }
}

/// `moved = A d`.
struct Spread<'a, V> {
    columns: &'a [Column<'a, V>],
    moved: &'a mut [f64],
    at: &'a [u32],
    d: &'a [f64],
}

impl<V: Real> Kernel for Spread<'_, V> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Self { columns, moved, at, d } = self;
        moved.fill(0.0);
        for (&p, &d) in at.iter().zip(d) {
            if d != 0.0 {
                columns[p as usize].add_to(d, moved);
            }
        }
    }
}

struct Gather<'a, V> {
    columns: &'a [Column<'a, V>],
    v: &'a [f64],
    at: &'a [u32],
    out: &'a mut [f64],
}

impl<V: Real> Kernel for Gather<'_, V> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Self { columns, v, at, out } = self;
        for (out, &p) in out.iter_mut().zip(at) {
            *out = columns[p as usize].dot(v);
        }
    }
}

impl<V: Real> Quadratic for Residual<'_, V> {
    #[inline(always)]
    fn slope(&self, rho: &[f64], p: usize) -> f64 {
        -self.columns[p].dot(rho)
    }

    fn slopes(&self, rho: &[f64], at: &[u32], out: &mut [f64]) {
        self.dots(rho, at, out);
        out.iter_mut().for_each(|slope| *slope = -*slope);
    }

    #[inline(always)]
    fn curvature(&self, p: usize) -> f64 {
        self.curvature[p]
    }

    #[inline(always)]
    fn shift(&self, rho: &mut [f64], p: usize, by: f64) {
        match (self.weight, self.columns[p]) {
            (None, column) => column.add_to(-by, rho),
            (Some(weight), Column::Dense(values)) => {
                for ((r, &a), &w) in rho.iter_mut().zip(values).zip(weight) {
                    *r -= by * w * a.to_f64();
                }
            }
            (Some(weight), Column::Sparse { rows, values }) => {
                for (&row, &a) in rows.iter().zip(values) {
                    let row = row as usize;
                    rho[row] -= by * weight[row] * a.to_f64();
                }
            }
        }
    }

    fn meeting(&self, first: &mut [f64], second: &[f64], _: &[u32], _: &[f64]) -> f64 {
        // Each has moved by `-w∘(A d)`.
        vectorized(Meeting { weight: self.weight, first, second })
    }

    fn product(&mut self, at: &[u32], d: &[f64], out: &mut [f64]) -> f64 {
        let square = self.spread(at, d);
        self.dots(self.moved, at, out);
        square
    }

    fn propose(&mut self, at: &[u32], d: &[f64]) -> f64 {
        self.spread(at, d)
    }

    fn accept(&self, rho: &mut [f64]) {
        for (r, v) in rho.iter_mut().zip(&*self.moved) {
            *r -= v;
        }
    }

    fn cost(&self, p: usize) -> u64 {
        self.columns[p].len() as u64
    }

    fn reads(&self, _: usize, entries: u64) -> u64 {
        2 * entries
    }

    fn par(&self) -> Par {
        self.par
    }

    fn patience(&self) -> u32 {
        60
    }
}
