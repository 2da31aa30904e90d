//! The pairs `s = θ' - θ`, `y = g' - g` of the last steps: what L-BFGS knows about the curvature.
//!
//! Each vector passes through memory twice in an iteration, for any number of pairs: once when a pair arrives, for the products of all pairs with
//! it and with the new gradient, once when the direction is put together. The recursion itself runs on products, as in Chen, Wang & Zhou 2014
//! (vector-free L-BFGS). Pairs are stored as 32-bit numbers: the secant equation holds exactly for the rounded pair, which is as good a pair as the other, and
//! twice as many fit. A pair is scaled so that neither of its halves can overflow; the recursion does not notice.

use super::blocks::{BLOCK, LANES, join, sums};
use crate::par::{Kernel, Par, vectorized};

/// The last pairs and their products.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct History {
    len: usize,
    memory: usize,
    /// For each block, for each slot: a block's length of `s`, then of `y`; what is beyond the parameters is 0.
    pub(super) data: Vec<f32>,
    /// Slots that are in use, oldest first.
    pub(super) order: Vec<usize>,
    /// Products by slots, row by row.
    pub(super) products: Products,
}

/// Products of vectors of slots `i` and `j` in the metric `D`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Products {
    /// `s_iᵀy_j`.
    pub(super) sy: Vec<f64>,
    /// `s_iᵀDs_j`.
    pub(super) ss: Vec<f64>,
    /// `y_iᵀD⁻¹y_j`.
    pub(super) yy: Vec<f64>,
    /// `s_iᵀg`.
    pub(super) sg: Vec<f64>,
    /// `y_iᵀD⁻¹g`.
    pub(super) yg: Vec<f64>,
}

impl Products {
    fn new(memory: usize) -> Self {
        let (square, line) = (vec![0.0; memory * memory], vec![0.0; memory]);
        Self { sy: square.clone(), ss: square.clone(), yy: square, sg: line.clone(), yg: line }
    }

    pub(super) fn all(&self) -> [&Vec<f64>; 5] {
        [&self.sy, &self.ss, &self.yy, &self.sg, &self.yg]
    }

    pub(super) fn all_mut(&mut self) -> [&mut Vec<f64>; 5] {
        [&mut self.sy, &mut self.ss, &mut self.yy, &mut self.sg, &mut self.yg]
    }
}

/// A step: where it began and ended, and the gradients there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step<'a> {
    pub(super) theta: [&'a [f64]; 2],
    pub(super) gradient: [&'a [f64]; 2],
    /// `D`.
    pub(super) scale: Option<&'a [f64]>,
}

/// Products of one slot's vectors with the new pair and the new gradient.
const COLUMNS: usize = 6;

impl History {
    pub(super) fn new(len: usize, memory: usize) -> Self {
        let data = vec![0.0; len.div_ceil(BLOCK) * BLOCK * 2 * memory];
        Self { len, memory, data, order: Vec::with_capacity(memory), products: Products::new(memory) }
    }

    pub(super) fn memory(&self) -> usize {
        self.memory
    }

    /// Pairs in use.
    pub(super) fn pairs(&self) -> usize {
        self.order.len()
    }

    pub(super) fn clear(&mut self) {
        self.order.clear();
    }

    pub(super) fn forget_oldest(&mut self) {
        if !self.order.is_empty() {
            self.order.remove(0);
        }
    }

    /// Floats of a block.
    fn stride(&self) -> usize {
        BLOCK * 2 * self.memory
    }

    /// Component `j` of the pair in a slot.
    #[inline(always)]
    pub(super) fn component(&self, slot: usize, j: usize) -> (f64, f64) {
        let at = (j / BLOCK) * self.stride() + slot * 2 * BLOCK + j % BLOCK;
        (f64::from(self.data[at]), f64::from(self.data[at + BLOCK]))
    }

    /// `δ` of `B₀ = δD`: `yᵀD⁻¹y / sᵀy` of the newest pair, the curvature along it.
    pub(super) fn curvature(&self) -> Option<f64> {
        let newest = *self.order.last()? * (self.memory + 1);
        Some(self.products.yy[newest] / self.products.sy[newest])
    }

    /// Takes in the step, as a pair divided by `size` unless that is `None`, and the products with its second gradient.
    pub(super) fn take(&mut self, par: Par, step: Step<'_>, size: Option<f64>) {
        let m = self.memory;
        if size.is_some() && self.order.len() == m {
            self.order.remove(0);
        }
        let new = size.and_then(|size| {
            let slot = (0..m).find(|slot| !self.order.contains(slot))?;
            Some((slot, 1.0 / size))
        });
        self.order.extend(new.map(|(slot, _)| slot));
        let (stride, order) = (self.stride(), &self.order[..]);
        let items: Vec<_> = self.data.chunks_mut(stride.max(1)).enumerate().collect();
        let parts = par.map(items, |(block, data)| {
            let from = block * BLOCK;
            let to = (from + BLOCK).min(self.len);
            let cut = |x: &'_ [f64]| -> [f64; BLOCK] {
                let mut out = [0.0; BLOCK];
                out[..to - from].copy_from_slice(&x[from..to]);
                out
            };
            let mut buffer = Buffer {
                s: cut(step.theta[1]),
                y: cut(step.gradient[1]),
                g: cut(step.gradient[1]),
                scale: step.scale.map(cut),
            };
            let old = (&step.theta[0][from..to], &step.gradient[0][from..to]);
            let mut out = vec![0.0; order.len() * COLUMNS];
            vectorized(Take { data, old, buffer: &mut buffer, order, new, out: &mut out });
            out
        });
        let mut sums = vec![0.0; self.order.len() * COLUMNS];
        for part in parts {
            sums.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        }
        let Products { sy, ss, yy, sg, yg } = &mut self.products;
        for (&i, sums) in self.order.iter().zip(sums.chunks_exact(COLUMNS)) {
            (sg[i], yg[i]) = (sums[0], sums[3]);
            if let Some((j, _)) = new {
                sy[i * m + j] = sums[1];
                sy[j * m + i] = sums[5];
                ss[i * m + j] = sums[2];
                ss[j * m + i] = sums[2];
                yy[i * m + j] = sums[4];
                yy[j * m + i] = sums[4];
            }
        }
        // Rounding may have made a pair useless that was not.
        if let Some((slot, _)) = new {
            let (sy, yy) = (self.products.sy[slot * (m + 1)], self.products.yy[slot * (m + 1)]);
            if !(sy > 0.0 && yy > 0.0 && (yy / sy).is_finite()) {
                self.order.pop();
            }
        }
    }

    /// `d = -Hg` where `H` is the L-BFGS approximation of the inverse Hessian (Nocedal 1980; Nocedal & Wright 2006, algorithm 7.4) from
    /// `H₀ = γD⁻¹`. Returns `gᵀd`. Without pairs, `γ` is such that `dᵀDd = 1`, and the products must not be needed.
    pub(super) fn direction(
        &self,
        par: Par,
        gradient: &[f64],
        scale: Option<&[f64]>,
        out: &mut [f64],
    ) -> f64 {
        let (m, p) = (self.memory, &self.products);
        let k = self.order.len();
        // α, β of the two loops; q = g - Σ α_j y_j, r = γD⁻¹q + Σ (α_j - β_j) s_j.
        let (mut alpha, mut shift) = (vec![0.0; k], vec![0.0; k]);
        for a in (0..k).rev() {
            let i = self.order[a];
            let taken: f64 = (a + 1..k).map(|b| alpha[b] * p.sy[i * m + self.order[b]]).sum();
            alpha[a] = (p.sg[i] - taken) / p.sy[i * (m + 1)];
        }
        let gamma = match self.curvature() {
            Some(curvature) => 1.0 / curvature,
            None => {
                let size = inverse_norm(par, gradient, scale);
                if size > 0.0 { 1.0 / size } else { 1.0 }
            }
        };
        for a in 0..k {
            let i = self.order[a];
            let flat: f64 = p.yg[i] - (0..k).map(|b| alpha[b] * p.yy[i * m + self.order[b]]).sum::<f64>();
            let bent: f64 = (0..a).map(|b| shift[b] * p.sy[self.order[b] * m + i]).sum();
            shift[a] = alpha[a] - (gamma * flat + bent) / p.sy[i * (m + 1)];
        }
        let stride = self.stride().max(1);
        let whole: &[f64] = scale.unwrap_or(&[]);
        let items: Vec<_> = gradient.chunks(BLOCK).zip(out.chunks_mut(BLOCK)).enumerate().collect();
        let parts = par.map(items, |(block, (gradient, out))| {
            let data = self.data.get(block * stride..(block + 1) * stride).unwrap_or(&[]);
            let from = block * BLOCK;
            let scale = whole.get(from..from + gradient.len()).unwrap_or(&[]);
            vectorized(Combine {
                data,
                gradient,
                scale,
                order: &self.order,
                alpha: &alpha,
                shift: &shift,
                gamma,
                out,
            })
        });
        parts.into_iter().sum()
    }
}

/// `√(gᵀD⁻¹g)`.
pub(super) fn inverse_norm(par: Par, gradient: &[f64], scale: Option<&[f64]>) -> f64 {
    let scale = scale.map_or_else(Vec::new, |scale| scale.chunks(BLOCK).collect());
    let items: Vec<_> = gradient.chunks(BLOCK).enumerate().collect();
    let parts =
        par.map(items, |(k, gradient)| vectorized(InverseNorm { gradient, scale: scale.get(k).copied() }));
    parts.into_iter().sum::<f64>().sqrt()
}

struct InverseNorm<'a> {
    gradient: &'a [f64],
    scale: Option<&'a [f64]>,
}

impl Kernel for InverseNorm<'_> {
    type Output = f64;
    #[inline(always)]
    fn run(self) -> f64 {
        let g = self.gradient;
        let [sum, _, _] = match self.scale {
            Some(scale) => sums([g, scale, g, g], |g, d, _, _| [g * g / d, 0.0, 0.0]),
            None => sums([g; 4], |g, _, _, _| [g * g, 0.0, 0.0]),
        };
        sum
    }
}

/// A block of the new vectors as 64-bit numbers.
struct Buffer {
    s: [f64; BLOCK],
    y: [f64; BLOCK],
    g: [f64; BLOCK],
    scale: Option<[f64; BLOCK]>,
}

struct Take<'a> {
    data: &'a mut [f32],
    old: (&'a [f64], &'a [f64]),
    buffer: &'a mut Buffer,
    order: &'a [usize],
    new: Option<(usize, f64)>,
    out: &'a mut [f64],
}

impl Kernel for Take<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Self { data, old, buffer, order, new, out } = self;
        let Buffer { s, y, g, scale } = buffer;
        if let Some((slot, inverse)) = new {
            difference(s, old.0, inverse);
            difference(y, old.1, inverse);
            if let Some(pair) = data.get_mut(slot * 2 * BLOCK..(slot + 1) * 2 * BLOCK) {
                let (left, right) = pair.split_at_mut(BLOCK);
                round(s, left);
                round(y, right);
            }
        }
        // s in the metric, g and y in its inverse
        let (mut metric_s, mut inverse_y, mut inverse_g) = (*s, *y, *g);
        if let Some(scale) = scale {
            let parts = metric_s.iter_mut().zip(&mut inverse_y).zip(&mut inverse_g).zip(scale.iter());
            for (((s, y), g), &d) in parts {
                let inverse = if d > 0.0 { 1.0 / d } else { 0.0 };
                *s *= d;
                *y *= inverse;
                *g *= inverse;
            }
        }
        for (&slot, out) in order.iter().zip(out.chunks_exact_mut(COLUMNS)) {
            let Some(pair) = data.get(slot * 2 * BLOCK..(slot + 1) * 2 * BLOCK) else { continue };
            let (left, right) = pair.split_at(BLOCK);
            let (left, right) = (dots(left, [g, y, &metric_s]), dots(right, [&inverse_g, &inverse_y, s]));
            for (out, value) in out.iter_mut().zip(left.into_iter().chain(right)) {
                *out = value;
            }
        }
    }
}

/// `(x - old)·factor`; what lies beyond `old` is 0 and stays so.
#[inline(always)]
fn difference(x: &mut [f64; BLOCK], old: &[f64], factor: f64) {
    for (x, &old) in x.iter_mut().zip(old) {
        *x = (*x - old) * factor;
    }
}

/// Rounds to 32 bits, here and there.
#[inline(always)]
fn round(x: &mut [f64; BLOCK], out: &mut [f32]) {
    for (x, out) in x.iter_mut().zip(out) {
        *out = *x as f32;
        *x = f64::from(*out);
    }
}

/// Three products with the same vector.
#[inline(always)]
fn dots(a: &[f32], [x, y, z]: [&[f64; BLOCK]; 3]) -> [f64; 3] {
    let mut lanes = [[0.0; LANES]; 3];
    let chunks = a.chunks_exact(LANES).zip(x.chunks_exact(LANES)).zip(y.chunks_exact(LANES));
    for (((a, x), y), z) in chunks.zip(z.chunks_exact(LANES)) {
        for lane in 0..LANES {
            let a = f64::from(a[lane]);
            lanes[0][lane] += a * x[lane];
            lanes[1][lane] += a * y[lane];
            lanes[2][lane] += a * z[lane];
        }
    }
    lanes.map(join)
}

struct Combine<'a> {
    data: &'a [f32],
    gradient: &'a [f64],
    /// Empty for 1.
    scale: &'a [f64],
    order: &'a [usize],
    alpha: &'a [f64],
    shift: &'a [f64],
    gamma: f64,
    out: &'a mut [f64],
}

impl Kernel for Combine<'_> {
    type Output = f64;
    #[inline(always)]
    fn run(self) -> f64 {
        let Self { data, gradient, scale, order, alpha, shift, gamma, out } = self;
        for (out, &g) in out.iter_mut().zip(gradient) {
            *out = -g;
        }
        for (&slot, &alpha) in order.iter().zip(alpha) {
            let at = slot * 2 * BLOCK + BLOCK;
            add(out, data.get(at..at + BLOCK).unwrap_or(&[]), alpha);
        }
        if scale.is_empty() {
            out.iter_mut().for_each(|out| *out *= gamma);
        }
        for (out, &scale) in out.iter_mut().zip(scale) {
            *out *= gamma / scale;
        }
        for (&slot, &shift) in order.iter().zip(shift) {
            let at = slot * 2 * BLOCK;
            add(out, data.get(at..at + BLOCK).unwrap_or(&[]), -shift);
        }
        let [slope, _, _] = sums([gradient, out, out, out], |g, d, _, _| [g * d, 0.0, 0.0]);
        slope
    }
}

#[inline(always)]
fn add(out: &mut [f64], x: &[f32], factor: f64) {
    for (out, &x) in out.iter_mut().zip(x) {
        *out += factor * f64::from(x);
    }
}
