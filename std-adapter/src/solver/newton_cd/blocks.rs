//! The preconditioner of the joint Newton system on the support: exact inverses of small blocks of it.
//!
//! For Λ a block for each column `j`: the pairs `(i, j)` of its support. In the coordinates `z_i` with `Δ_Λ = Σ z_i E_i`, `E_i = e_i e_jᵀ + e_j e_iᵀ`, the Hessian
//! `Δ ↦ ΣΔΣ + ΨΔΣ + ΣΔΨ` is `B_ik = 2(Σ_ik(Σ_jj + Ψ_jj) + Ψ_ik Σ_jj + Σ_ij Σ_kj + Ψ_ij Σ_kj + Σ_ij Ψ_kj)`, halved once for each index that is `j`. A pair is
//! in two blocks, their answers are added (additive Schwarz). For Θ a block for each row `i`: `2‖x_i‖²/m · Σ` at the columns of its support; blocks do not overlap.
//!
//! Why: large means make `Ψ` much larger than `Σ` in a few directions, which the columns of Λ see, and correlated outputs are seen by the rows of Θ. On SGCRF's Sec. 5.1 problem
//! (p = 50, n = 200, λ = 0.1) the condition number at the optimum falls from 8·10⁵ (diagonal scaling) or 2·10⁵ (`(ΛRΛ, ½mD⁻¹RΛ)`) to 3·10³.

use super::curvature::{System, Vector};
use crate::par::{Kernel, vectorized};

/// A block is at most so large; longer columns are cut. Smaller ones where memory is short, but not below the second number.
const LARGEST: usize = 256;
const SMALLEST: usize = 4;

/// The largest blocks whose factors take at most so many bytes, for lists of these lengths.
fn largest(lengths: impl Iterator<Item = usize> + Clone, bytes: u64) -> usize {
    let triangle = |size: usize| (size * (size + 1) / 2) as u64;
    let entries = |most: usize| -> u64 {
        lengths.clone().map(|len| (len / most) as u64 * triangle(most) + triangle(len % most)).sum()
    };
    let mut most = LARGEST;
    while most > SMALLEST && 8 * entries(most) > bytes {
        most /= 2;
    }
    most
}

/// `B = LLᵀ` for one block: the rows of `L`, one after the other without the zeros; each ends with the inverse of its pivot.
struct Factor(Vec<f64>);

impl Factor {
    /// Of the matrix with these entries, lower triangle. Rounding may make a pivot vanish: it is kept above this share of its entry.
    fn new(size: usize, entry: impl Fn(usize, usize) -> f64) -> Self {
        const LEAST: f64 = 1e-12;
        let mut rows = Vec::with_capacity(size * (size + 1) / 2);
        for i in 0..size {
            rows.extend((0..=i).map(|k| entry(i, k)));
        }
        vectorized(Factorize { rows: &mut rows, size, least: LEAST });
        Self(rows)
    }
}

struct Factorize<'a> {
    rows: &'a mut [f64],
    size: usize,
    least: f64,
}

impl Kernel for Factorize<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { rows, size, least } = self;
        for i in 0..size {
            let (done, rest) = rows.split_at_mut(i * (i + 1) / 2);
            let own = &mut rest[..=i];
            for k in 0..i {
                let other = &done[k * (k + 1) / 2..][..=k];
                let sum = dot(&own[..k], &other[..k]);
                own[k] = (own[k] - sum) * other[k];
            }
            let entry = own[i];
            let pivot = entry - dot(&own[..i], &own[..i]);
            own[i] = pivot.max(least * entry).max(f64::MIN_POSITIVE).sqrt().recip();
        }
    }
}

/// For short vectors.
#[inline(always)]
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let ((fours, rest), (others, last)) = (a.as_chunks::<4>(), b.as_chunks::<4>());
    let mut sums = [0.0; 4];
    for (a, b) in fours.iter().zip(others) {
        for k in 0..4 {
            sums[k] += a[k] * b[k];
        }
    }
    let tail: f64 = rest.iter().zip(last).map(|(a, b)| a * b).sum();
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + tail
}

/// `v ← B⁻¹ v`.
struct Solve<'a> {
    factor: &'a [f64],
    v: &'a mut [f64],
}

impl Kernel for Solve<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { factor, v } = self;
        for i in 0..v.len() {
            let row = &factor[i * (i + 1) / 2..][..=i];
            v[i] = (v[i] - dot(&row[..i], &v[..i])) * row[i];
        }
        for i in (0..v.len()).rev() {
            let row = &factor[i * (i + 1) / 2..][..=i];
            let value = v[i] * row[i];
            v[i] = value;
            v[..i].iter_mut().zip(row).for_each(|(v, l)| *v -= value * l);
        }
    }
}

/// One block: where its entries are in the vector over the support, and its factor.
struct Block {
    places: Vec<u32>,
    factor: Factor,
}

impl Block {
    fn solve(&self, v: &mut [f64]) {
        vectorized(Solve { factor: &self.factor.0, v });
    }
}

/// All blocks.
pub(super) struct Blocks {
    /// Those of the columns of Λ; places are of `(i, j)`.
    lambda: Vec<Block>,
    /// Those of the rows of Θ.
    theta: Vec<Block>,
}

impl Blocks {
    /// Of the entries that are free: those where `free` is not 0. Their factors take at most so many bytes, unless even the smallest blocks take more.
    pub(super) fn new(system: &System<'_>, free: &Vector, bytes: u64) -> Self {
        let System { problem, state, lambda, theta, psi, .. } = system;
        let (p, n) = (problem.outputs(), problem.inputs());
        let sigma = &state.sigma;
        let columns: Vec<Vec<u32>> = (0..p)
            .map(|j| lambda.range(j).filter(|&k| free.lambda[k] != 0.0).map(|k| k as u32).collect())
            .collect();
        let mut rows: Vec<Vec<(u32, u32)>> = vec![Vec::new(); n];
        for j in 0..p {
            for k in theta.range(j).filter(|&k| free.theta[k] != 0.0) {
                rows[theta.rows[k] as usize].push((k as u32, j as u32));
            }
        }
        let most = largest(columns.iter().map(Vec::len).chain(rows.iter().map(Vec::len)), bytes);
        let parts =
            columns.iter().enumerate().flat_map(|(j, c)| c.chunks(most).map(move |part| (j, part.to_vec())));
        let parts: Vec<(usize, Vec<u32>)> = parts.collect();
        let own = problem.par.map(parts, |(j, places)| {
            let rows: Vec<u32> = places.iter().map(|&k| lambda.rows[k as usize]).collect();
            let (sjj, qjj) = (sigma.get(j, j), psi.get(j, j));
            let (s, q) = (sigma.col(j), psi.col(j));
            let factor = Factor::new(rows.len(), |a, b| {
                let (i, k) = (rows[a] as usize, rows[b] as usize);
                let both = sigma.get(i, k) * (sjj + qjj) + psi.get(i, k) * sjj;
                let cross = s[i] * s[k] + q[i] * s[k] + s[i] * q[k];
                let halves = if i == j { 0.5 } else { 1.0 } * if k == j { 0.5 } else { 1.0 };
                2.0 * halves * (both + cross)
            });
            Block { places, factor }
        });
        let rows = rows.iter().enumerate().flat_map(|(i, row)| row.chunks(most).map(move |part| (i, part)));
        let theta = problem.par.map(rows.collect(), |(i, part)| {
            let scale = 2.0 * problem.x_norm2[i] / problem.samples;
            let factor =
                Factor::new(part.len(), |a, b| scale * sigma.get(part[a].1 as usize, part[b].1 as usize));
            Block { places: part.iter().map(|(k, _)| *k).collect(), factor }
        });
        Self { lambda: own, theta }
    }

    /// The preconditioner times `v`.
    pub(super) fn apply(&self, system: &System<'_>, v: &Vector) -> Vector {
        let mut out = Vector { lambda: vec![0.0; v.lambda.len()], theta: vec![0.0; v.theta.len()] };
        let solved = |blocks: &[Block], v: &[f64]| {
            const MANY: usize = 32;
            system.problem.par.map(blocks.chunks(MANY).collect(), |blocks| {
                let answers = blocks.iter().map(|block| {
                    let mut own: Vec<f64> = block.places.iter().map(|&k| v[k as usize]).collect();
                    block.solve(&mut own);
                    own
                });
                answers.collect::<Vec<_>>()
            })
        };
        // E_i · R is 2R_ij off the diagonal and R_jj on it.
        let doubled: Vec<f64> = v
            .lambda
            .iter()
            .enumerate()
            .map(|(k, r)| if system.mirror[k] as usize == k { *r } else { 2.0 * r })
            .collect();
        let answers = solved(&self.lambda, &doubled);
        for (block, own) in self.lambda.iter().zip(answers.iter().flatten()) {
            for (&k, &z) in block.places.iter().zip(own) {
                let other = system.mirror[k as usize];
                out.lambda[k as usize] += z;
                if other != k {
                    out.lambda[other as usize] += z;
                }
            }
        }
        let answers = solved(&self.theta, &v.theta);
        for (block, own) in self.theta.iter().zip(answers.iter().flatten()) {
            block.places.iter().zip(own).for_each(|(&k, &z)| out.theta[k as usize] = z);
        }
        out
    }
}
