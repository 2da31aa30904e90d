//! Random regression problems: matrices of any shape, targets, labels, and the thesis' compressed imaging.

use gibbsite::data::matrix::Matrix;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// What a random matrix looks like.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Samples.
    pub rows: usize,
    /// Features.
    pub columns: usize,
    /// Share of entries that are not zero.
    pub density: f64,
    /// Weight of a factor that all columns share: 0 for independent columns, near 1 for almost equal ones.
    pub correlation: f64,
    /// Columns are scaled by `e^{±spread}` at most.
    pub spread: f64,
    /// So many columns at the end repeat the first ones.
    pub duplicates: usize,
    /// Every so many columns one is zero; 0 for none.
    pub zero_every: usize,
}

impl Shape {
    /// Independent columns of one scale.
    pub fn new(rows: usize, columns: usize, density: f64) -> Self {
        Self { rows, columns, density, correlation: 0.0, spread: 0.0, duplicates: 0, zero_every: 0 }
    }
}

/// A seeded generator.
pub fn rng(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

/// A standard normal number (Box and Muller).
pub fn normal(rng: &mut Xoshiro256PlusPlus) -> f64 {
    let (u, v): (f64, f64) = (rng.random_range(f64::MIN_POSITIVE..1.0), rng.random_range(0.0..1.0));
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// A dense row-major copy.
pub fn dense(matrix: &Matrix<f64>) -> Vec<Vec<f64>> {
    let mut out = vec![vec![0.0; matrix.columns()]; matrix.rows()];
    let entries =
        (0..matrix.columns()).flat_map(|j| matrix.column(j).iter::<f64>().map(move |(i, v)| (i, j, v)));
    entries.for_each(|(i, j, v)| out[i][j] = v);
    out
}

/// From dense rows, zeros left out.
pub fn from_dense(rows: &[Vec<f64>]) -> Matrix<f64> {
    let columns = rows.first().map_or(0, Vec::len);
    let entries: Vec<Vec<(u32, f64)>> = rows
        .iter()
        .map(|row| row.iter().enumerate().filter(|e| *e.1 != 0.0).map(|(j, &v)| (j as u32, v)).collect())
        .collect();
    let views: Vec<&[(u32, f64)]> = entries.iter().map(|row| &row[..]).collect();
    Matrix::from_rows(columns, &views)
}

/// A random matrix.
pub fn matrix(shape: &Shape, seed: u64) -> Matrix<f64> {
    let mut rng = rng(seed);
    let shared: Vec<f64> = (0..shape.rows).map(|_| normal(&mut rng)).collect();
    let mut rows = vec![vec![0.0; shape.columns]; shape.rows];
    for j in 0..shape.columns {
        let scale =
            if shape.spread > 0.0 { rng.random_range(-shape.spread..shape.spread).exp() } else { 1.0 };
        let zero = shape.zero_every > 0 && j % shape.zero_every == shape.zero_every - 1;
        for (row, &shared) in rows.iter_mut().zip(&shared) {
            let own = normal(&mut rng);
            if !zero && rng.random_range(0.0..1.0) < shape.density {
                row[j] = scale * (shape.correlation * shared + (1.0 - shape.correlation) * own);
            }
        }
    }
    for k in 0..shape.duplicates.min(shape.columns / 2) {
        rows.iter_mut().for_each(|row| row[shape.columns - 1 - k] = row[k]);
    }
    from_dense(&rows)
}

/// `Ax + noise` for a random `x` of which a fifth is not zero.
pub fn target(matrix: &Matrix<f64>, noise: f64, seed: u64) -> Vec<f64> {
    let mut rng = rng(seed ^ 0x5eed);
    let x: Vec<f64> = (0..matrix.columns())
        .map(|_| if rng.random_range(0.0..1.0) < 0.2 { 2.0 * normal(&mut rng) } else { 0.0 })
        .collect();
    matrix.product(&x).iter().map(|z| z + noise * normal(&mut rng)).collect()
}

/// Labels ±1 drawn from the logistic model around such a target; both occur if there are two rows.
pub fn labels(matrix: &Matrix<f64>, seed: u64) -> Vec<f64> {
    let z = target(matrix, 0.1, seed);
    let mut rng = rng(seed ^ 0x1abe1);
    let mut y: Vec<f64> = z
        .iter()
        .map(|z| if rng.random_range(0.0..1.0) < 1.0 / (1.0 + (-z).exp()) { 1.0 } else { -1.0 })
        .collect();
    if let [first, .., last] = &mut y[..] {
        (*first, *last) = (1.0, -1.0);
    }
    y
}

/// The thesis' sparse compressed imaging (4.5.1): `rows` measurements of an image of `side × side` non-negative pixels, each a sum of a few pixels with
/// signs ±1. The image is a few bright rectangles on black; every pixel is measured at least once.
///
/// Returns the matrix, the measurements with noise, and the image.
pub fn compressed_imaging(
    side: usize,
    rows: usize,
    per_column: usize,
    noise: f64,
    seed: u64,
) -> (Matrix<f64>, Vec<f64>, Vec<f64>) {
    let mut rng = rng(seed);
    let d = side * side;
    let mut image = vec![0.0; d];
    for _ in 0..4 {
        let (height, width) = (rng.random_range(1..=side / 6 + 1), rng.random_range(1..=side / 6 + 1));
        let (top, left) = (rng.random_range(0..side - height), rng.random_range(0..side - width));
        let bright = rng.random_range(0.5..1.5);
        for r in top..top + height {
            image[r * side + left..r * side + left + width].fill(bright);
        }
    }
    let mut entries: Vec<Vec<(u32, f64)>> = vec![Vec::new(); rows];
    for j in 0..d as u32 {
        for _ in 0..per_column {
            let row = &mut entries[rng.random_range(0..rows)];
            if row.last().is_none_or(|e| e.0 != j) {
                row.push((j, if rng.random_range(0..2) == 0 { -1.0 } else { 1.0 }));
            }
        }
    }
    let views: Vec<&[(u32, f64)]> = entries.iter().map(|row| &row[..]).collect();
    let matrix = Matrix::from_rows(d, &views);
    let y = matrix.product(&image).iter().map(|z| z + noise * normal(&mut rng)).collect();
    (matrix, y, image)
}

/// The largest eigenvalue of a symmetric matrix by Jacobi's rotations.
pub fn largest_eigenvalue(mut m: Vec<Vec<f64>>) -> f64 {
    let n = m.len();
    for _ in 0..60 {
        let off: f64 = (0..n).map(|i| (0..i).map(|j| m[i][j] * m[i][j]).sum::<f64>()).sum();
        if off < 1e-24 {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                if m[p][q] == 0.0 {
                    continue;
                }
                let theta = (m[q][q] - m[p][p]) / (2.0 * m[p][q]);
                let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
                let t = if theta == 0.0 { 1.0 } else { t };
                let c = 1.0 / (t * t + 1.0).sqrt();
                let s = t * c;
                for row in &mut m {
                    (row[p], row[q]) = (c * row[p] - s * row[q], s * row[p] + c * row[q]);
                }
                let (above, below) = m.split_at_mut(q);
                for (a, b) in above[p].iter_mut().zip(&mut below[0]) {
                    (*a, *b) = (c * *a - s * *b, s * *a + c * *b);
                }
            }
        }
    }
    (0..n).map(|i| m[i][i]).fold(f64::NEG_INFINITY, f64::max)
}

/// The argument in `[low, high]` at which a convex function is least, by golden section.
pub fn least(f: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    let golden = 0.5 * (5f64.sqrt() - 1.0);
    for _ in 0..200 {
        let (a, b) = (high - golden * (high - low), low + golden * (high - low));
        if f(a) <= f(b) {
            high = b;
        } else {
            low = a;
        }
    }
    0.5 * (low + high)
}
