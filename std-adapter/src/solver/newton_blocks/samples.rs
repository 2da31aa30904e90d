//! Sums over samples, some rows at a time: the objective, its slopes and its Hessian at the entries that may move.
//!
//! Everything is a sum over samples of things that one sample's `R = XΘ` and `K = RΣ` tell, and `K` is a sparse solve away from `R`. So no matrix of the outputs' shape is needed but a few rows of it;
//! `K` is kept whole where the budget allows, which saves a solve. Sums over stretches of rows are added in their order, so that the number of threads changes nothing.

use super::active::{Active, Vector};
use super::ldl::{Entries, Shape, Solve};
use crate::linalg::{Dense, Part};
use crate::par::{Kernel, Par, vectorized};
use crate::solver::newton_cd::gather::dot;
use std::ops::Range;

/// The data, and how much of it is worked on at a time.
pub(super) struct Samples<'a> {
    pub(super) x: &'a Dense,
    pub(super) y: &'a Dense,
    /// What sums are divided by.
    pub(super) count: f64,
    /// `‖x_i‖²`.
    pub(super) x_norm2: Vec<f64>,
    /// Rows of a stretch.
    pub(super) width: usize,
    /// Stretches at the same time.
    pub(super) at_once: usize,
    pub(super) par: Par,
}

/// Entries that may move, the factor's pattern for them, and `S_yy` there.
pub(super) struct Ground {
    pub(super) active: Active,
    pub(super) shape: Shape,
    pub(super) syy: Vec<f64>,
}

/// A point, and what follows from it.
pub(super) struct Point {
    pub(super) at: Vector,
    pub(super) factor: Entries,
    /// `f`, without penalty.
    pub(super) value: f64,
}

/// Slopes of `f` at the entries that may move.
pub(super) struct Slopes {
    pub(super) of: Vector,
    /// `Ψ` at the pairs.
    pub(super) psi: Vec<f64>,
    /// `Σ` at the factor's places.
    pub(super) sigma: Entries,
}

/// `K`, kept whole or found again from rows of `X`.
pub(super) enum Means<'a> {
    Kept(Dense),
    Again(&'a Ground, &'a Point),
}

impl<'a> Samples<'a> {
    pub(super) fn rows(&self) -> usize {
        self.y.rows()
    }

    pub(super) fn stretches(&self) -> Vec<Range<usize>> {
        let m = self.rows();
        (0..m).step_by(self.width).map(|start| start..(start + self.width).min(m)).collect()
    }

    /// Adds what stretches of rows give, in their order.
    fn sum(&self, len: usize, f: impl Fn(Range<usize>, &mut [f64]) + Sync + Send) -> Vec<f64> {
        let mut total = vec![0.0; len];
        for group in self.stretches().chunks(self.at_once) {
            let parts = self.par.map(group.to_vec(), |rows| {
                let mut own = vec![0.0; len];
                f(rows, &mut own);
                own
            });
            for part in parts {
                total.iter_mut().zip(&part).for_each(|(t, v)| *t += v);
            }
        }
        total
    }

    /// `K` for some rows: an output's numbers after the other's.
    fn means(&self, ground: &Ground, at: &Vector, factor: &Entries, rows: Range<usize>) -> Vec<f64> {
        let p = self.y.cols();
        let mut out = vec![0.0; p * rows.len()];
        let x = Part::of(self.x, rows.clone(), 0..self.x.cols());
        vectorized(Through { x, active: &ground.active, theta: &at.theta, out: &mut out });
        vectorized(Solve { shape: &ground.shape, factor, width: rows.len(), b: &mut out });
        out
    }

    /// The ground for some entries.
    pub(super) fn ground(&self, active: Active, shape: Shape) -> Ground {
        let mut syy = vec![0.0; active.pairs.len()];
        let pairs = &active.pairs;
        let mut rest = syy.as_mut_slice();
        let mut items = Vec::with_capacity(pairs.cols());
        for j in 0..pairs.cols() {
            let (own, next) = rest.split_at_mut(pairs.range(j).len());
            items.push((j, own));
            rest = next;
        }
        self.par.map(items, |(j, own)| {
            for (&i, out) in pairs.rows[pairs.range(j)].iter().zip(own) {
                *out = vectorized(Dot(self.y.col(i as usize), self.y.col(j))) / self.count;
            }
        });
        Ground { active, shape, syy }
    }

    /// The point with these entries; `None` where Λ is not positive definite.
    pub(super) fn point(&self, ground: &Ground, at: Vector) -> Option<Point> {
        let factor = ground.shape.factorise(&at.lambda)?;
        let sum = self.sum(1, |rows, out| {
            let mut e = self.means(ground, &at, &factor, rows.clone());
            let y = Part::of(self.y, rows.clone(), 0..self.y.cols());
            let active = &ground.active;
            out[0] = vectorized(Squares { y, active, lambda: &at.lambda, e: &mut e });
        });
        let value = sum[0] / self.count - factor.log_det();
        value.is_finite().then_some(Point { at, factor, value })
    }

    /// `‖Y + K‖²`.
    pub(super) fn squares(&self, ground: &Ground, point: &Point) -> f64 {
        let sum = self.sum(1, |rows, out| {
            let k = self.means(ground, &point.at, &point.factor, rows.clone());
            let both = k.chunks_exact(rows.len()).enumerate();
            let both = both.flat_map(|(j, k)| self.y.col(j)[rows.clone()].iter().zip(k));
            out[0] = both.map(|(y, k)| (y + k) * (y + k)).sum();
        });
        sum[0]
    }

    /// `K`, whole if asked.
    pub(super) fn keep<'b>(&self, ground: &'b Ground, point: &'b Point, whole: bool) -> Means<'b> {
        if !whole {
            return Means::Again(ground, point);
        }
        let p = self.y.cols();
        let mut out = Dense::zeros(self.rows(), p);
        for group in self.stretches().chunks(self.at_once) {
            let parts = self.par.map(group.to_vec(), |rows| {
                (rows.clone(), self.means(ground, &point.at, &point.factor, rows))
            });
            for (rows, part) in parts {
                for (j, own) in part.chunks(rows.len()).enumerate() {
                    out.col_mut(j)[rows.clone()].copy_from_slice(own);
                }
            }
        }
        Means::Kept(out)
    }

    /// Some rows of `K`.
    pub(super) fn look<R>(&self, means: &Means<'_>, rows: Range<usize>, f: impl FnOnce(Part<'_>) -> R) -> R {
        let p = self.y.cols();
        match means {
            Means::Kept(k) => f(Part::of(k, rows, 0..p)),
            Means::Again(ground, point) => {
                let len = rows.len();
                let values = self.means(ground, &point.at, &point.factor, rows);
                f(Part { values: &values, rows: len, cols: p, stride: len })
            }
        }
    }

    /// Slopes of `f` at a point.
    pub(super) fn slopes(&self, ground: &Ground, point: &Point, means: &Means<'_>) -> Slopes {
        let Ground { active, shape, syy } = ground;
        let pairs = active.pairs.len();
        let mut sums = self.sum(active.len(), |rows, out| {
            let x = Part::of(self.x, rows.clone(), 0..self.x.cols());
            let y = Part::of(self.y, rows.clone(), 0..self.y.cols());
            let (psi, theta) = out.split_at_mut(pairs);
            self.look(means, rows, |k| vectorized(First { x, y, k, active, psi, theta }));
        });
        let mut theta = sums.split_off(pairs);
        theta.iter_mut().for_each(|g| *g *= 2.0 / self.count);
        sums.iter_mut().for_each(|q| *q /= self.count);
        let sigma = shape.inverse(&point.factor);
        let lambda = syy.iter().zip(&sums).zip(shape.gather(&sigma)).map(|((s, q), z)| s - q - z).collect();
        Slopes { of: Vector { lambda, theta }, psi: sums, sigma }
    }

    /// The Hessian times `v` (SGCRF App. A eq. 7): with `T = XΔ_Θ - KΔ_Λ`, `G = TΣ` it is `Δ_Λ ↦ ΣΔ_ΛΣ - (KᵀG + GᵀK)/m`, `Δ_Θ ↦ 2XᵀG/m`.
    pub(super) fn curvature(
        &self,
        ground: &Ground,
        point: &Point,
        (means, sigma): (&Means<'_>, &Entries),
        v: &Vector,
    ) -> Vector {
        let Ground { active, shape, .. } = ground;
        let pairs = active.pairs.len();
        let mut sums = self.sum(active.len(), |rows, out| {
            let x = Part::of(self.x, rows.clone(), 0..self.x.cols());
            let (lambda, theta) = out.split_at_mut(pairs);
            let mut t = vec![0.0; self.y.cols() * rows.len()];
            let width = rows.len();
            self.look(means, rows, |k| {
                vectorized(Through { x, active, theta: &v.theta, out: &mut t });
                vectorized(Shift { k, active, lambda: &v.lambda, out: &mut t });
                vectorized(Solve { shape, factor: &point.factor, width, b: &mut t });
                vectorized(Second { x, k, g: &t, active, lambda, theta });
            });
        });
        let mut theta = sums.split_off(pairs);
        theta.iter_mut().for_each(|g| *g *= 2.0 / self.count);
        let turned = shape.turned(&point.factor, sigma, &v.lambda);
        sums.iter_mut().zip(turned).for_each(|(s, t)| *s = t - *s / self.count);
        Vector { lambda: sums, theta }
    }
}

#[inline(always)]
fn add(to: &mut [f64], by: f64, from: &[f64]) {
    to.iter_mut().zip(from).for_each(|(t, f)| *t += by * f);
}

struct Dot<'a>(&'a [f64], &'a [f64]);

impl Kernel for Dot<'_> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        dot(self.0, self.1)
    }
}

/// `XΘ`.
struct Through<'a> {
    x: Part<'a>,
    active: &'a Active,
    theta: &'a [f64],
    out: &'a mut [f64],
}

impl Kernel for Through<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { x, active, theta, out } = self;
        for (j, out) in out.chunks_exact_mut(x.rows).enumerate() {
            for e in active.weights.range(j) {
                if theta[e] != 0.0 {
                    add(out, theta[e], x.col(active.weights.rows[e] as usize));
                }
            }
        }
    }
}

/// `T - KΔ_Λ`.
struct Shift<'a> {
    k: Part<'a>,
    active: &'a Active,
    lambda: &'a [f64],
    out: &'a mut [f64],
}

impl Kernel for Shift<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { k, active, lambda, out } = self;
        let rows = k.rows;
        for j in 0..k.cols {
            for e in active.pairs.range(j).filter(|&e| lambda[e] != 0.0) {
                let i = active.pairs.rows[e] as usize;
                add(&mut out[j * rows..][..rows], -lambda[e], k.col(i));
                if i != j {
                    add(&mut out[i * rows..][..rows], -lambda[e], k.col(j));
                }
            }
        }
    }
}

/// `Σ eᵀΛe` with `e = y + k`: what `tr(S_yyΛ) + 2tr(S_xyᵀΘ) + tr(ΣΘᵀS_xxΘ)` sums up to.
struct Squares<'a> {
    y: Part<'a>,
    active: &'a Active,
    lambda: &'a [f64],
    e: &'a mut [f64],
}

impl Kernel for Squares<'_> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let Self { y, active, lambda, e } = self;
        let rows = y.rows;
        for (j, e) in e.chunks_exact_mut(rows).enumerate() {
            add(e, 1.0, y.col(j));
        }
        let mut sum = 0.0;
        for j in 0..y.cols {
            let own = &e[j * rows..][..rows];
            for s in active.pairs.range(j).filter(|&s| lambda[s] != 0.0) {
                let i = active.pairs.rows[s] as usize;
                let twice = if i == j { 1.0 } else { 2.0 };
                sum += twice * lambda[s] * dot(&e[i * rows..][..rows], own);
            }
        }
        sum
    }
}

/// `KᵀK` and `Xᵀ(Y + K)` at the entries.
struct First<'a> {
    x: Part<'a>,
    y: Part<'a>,
    k: Part<'a>,
    active: &'a Active,
    psi: &'a mut [f64],
    theta: &'a mut [f64],
}

impl Kernel for First<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { x, y, k, active, psi, theta } = self;
        let mut e = vec![0.0; y.rows];
        for j in 0..y.cols {
            for s in active.pairs.range(j) {
                psi[s] = dot(k.col(active.pairs.rows[s] as usize), k.col(j));
            }
            if active.weights.range(j).is_empty() {
                continue;
            }
            e.copy_from_slice(y.col(j));
            add(&mut e, 1.0, k.col(j));
            for s in active.weights.range(j) {
                theta[s] = dot(x.col(active.weights.rows[s] as usize), &e);
            }
        }
    }
}

/// `KᵀG + GᵀK` and `XᵀG` at the entries.
struct Second<'a> {
    x: Part<'a>,
    k: Part<'a>,
    g: &'a [f64],
    active: &'a Active,
    lambda: &'a mut [f64],
    theta: &'a mut [f64],
}

impl Kernel for Second<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { x, k, g, active, lambda, theta } = self;
        let rows = k.rows;
        for j in 0..k.cols {
            let own = &g[j * rows..][..rows];
            for s in active.pairs.range(j) {
                let i = active.pairs.rows[s] as usize;
                lambda[s] = dot(k.col(i), own) + dot(&g[i * rows..][..rows], k.col(j));
            }
            for s in active.weights.range(j) {
                theta[s] = dot(x.col(active.weights.rows[s] as usize), own);
            }
        }
    }
}
