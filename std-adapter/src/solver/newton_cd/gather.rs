//! Some columns of a matrix: their products with a vector, and their weighted sum.

use crate::linalg::Dense;
use crate::par::Kernel;
use gibbsite_core::column::Column;

/// `out_k = scale · matrix_{rows_k}ᵀ vector`, four at a time: their sums do not wait for each other.
pub(super) struct Dots<'a> {
    pub(super) matrix: &'a Dense,
    pub(super) rows: &'a [u32],
    pub(super) vector: &'a [f64],
    pub(super) scale: f64,
    pub(super) out: &'a mut [f64],
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
pub(super) struct Sums<'a> {
    pub(super) matrix: &'a Dense,
    pub(super) rows: &'a [u32],
    pub(super) weights: &'a [f64],
    pub(super) sign: f64,
    pub(super) out: &'a mut [f64],
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
