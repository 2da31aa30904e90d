//! Some columns of a matrix: their products with a vector, and their weighted sum.

use crate::linalg::Columns;
use crate::par::Kernel;
use gibbsite_core::column::Column;
use gibbsite_core::math::Real;

/// `sums_k += a_k b_k`.
#[inline(always)]
fn add_products<T: Real, const N: usize>(sums: &mut [T; N], a: &[T; N], b: &[T; N]) {
    for k in 0..N {
        sums[k] += a[k] * b[k];
    }
}

/// The sum of partial sums. They come out of a black box: otherwise the compiler lays them out for this last addition and shuffles in the loop before it (measured: half as fast).
#[inline(always)]
fn joined<T: Real, const N: usize>(sums: [T; N]) -> T {
    let mut sums = std::hint::black_box(sums);
    let mut half = N / 2;
    while half > 0 {
        for k in 0..half {
            sums[k] += sums[k + half];
        }
        half /= 2;
    }
    sums[0]
}

/// `Σ a_k b_k`, for long vectors.
#[inline(always)]
pub(in crate::solver) fn dot<T: Real>(a: &[T], b: &[T]) -> T {
    let ((wide, rest), (others, last)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
    let mut sums = [T::default(); 16];
    wide.iter().zip(others).for_each(|(a, b)| add_products(&mut sums, a, b));
    joined(sums) + rest.iter().zip(last).fold(T::default(), |sum, (&a, &b)| sum + a * b)
}

/// `out_k = scale · matrix_{rows_k}ᵀ vector`, four at a time: their sums do not wait for each other.
pub(super) struct Dots<'a, M: Columns> {
    pub(super) matrix: &'a M,
    pub(super) rows: &'a [u32],
    pub(super) vector: &'a [M::Number],
    pub(super) scale: f64,
    pub(super) out: &'a mut [f64],
}

impl<M: Columns> Kernel for Dots<'_, M> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { matrix, rows, vector, scale, out } = self;
        let (fours, rest) = rows.as_chunks::<4>();
        let (out_fours, out_rest) = out.as_chunks_mut::<4>();
        let (v, tail) = vector.as_chunks::<8>();
        for (four, out) in fours.iter().zip(out_fours) {
            let [a, b, c, d] = four.map(|i| matrix.col(i as usize).as_chunks::<8>());
            let zero = M::Number::default();
            let mut sums = [[zero; 8]; 4];
            for ((((v, a), b), c), d) in v.iter().zip(a.0).zip(b.0).zip(c.0).zip(d.0) {
                let [first, second, third, fourth] = &mut sums;
                add_products(first, a, v);
                add_products(second, b, v);
                add_products(third, c, v);
                add_products(fourth, d, v);
            }
            for ((out, sums), rest) in out.iter_mut().zip(sums).zip([a.1, b.1, c.1, d.1]) {
                let last = rest.iter().zip(tail).fold(zero, |sum, (&a, &v)| sum + a * v);
                *out = scale * (joined(sums) + last).to_f64();
            }
        }
        for (&i, out) in rest.iter().zip(out_rest) {
            *out = scale * dot(matrix.col(i as usize), vector).to_f64();
        }
    }
}

/// `out += sign · Σ_k weights_k matrix_{rows_k}`, four at a time: `out` is read and written once for them.
pub(super) struct Sums<'a, M: Columns> {
    pub(super) matrix: &'a M,
    pub(super) rows: &'a [u32],
    pub(super) weights: &'a [f64],
    pub(super) sign: f64,
    pub(super) out: &'a mut [M::Number],
}

impl<M: Columns> Kernel for Sums<'_, M> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { matrix, rows, weights, sign, out } = self;
        let (fours, rest) = rows.as_chunks::<4>();
        let (weight_fours, weight_rest) = weights.as_chunks::<4>();
        for (four, w) in fours.iter().zip(weight_fours) {
            let [a, b, c, d] = four.map(|i| matrix.col(i as usize));
            let w = w.map(|w| M::Number::from_f64(sign * w));
            for ((((out, &a), &b), &c), &d) in out.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                *out += (w[0] * a + w[1] * b) + (w[2] * c + w[3] * d);
            }
        }
        for (&i, &w) in rest.iter().zip(weight_rest) {
            Column::Dense(matrix.col(i as usize)).add_to(M::Number::from_f64(sign * w), out);
        }
    }
}
