//! Gaussian CRFs by the textbook: dense matrices as lists of rows, Gauss-Jordan elimination, plain proximal gradient steps. Shares no code with what it checks.

// Sums over rows and columns are written with indices, as in the textbook.
#![allow(clippy::needless_range_loop)]

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Rows.
pub type Rows = Vec<Vec<f64>>;

/// Entry by entry.
pub fn from_fn(rows: usize, cols: usize, mut f: impl FnMut(usize, usize) -> f64) -> Rows {
    (0..rows).map(|i| (0..cols).map(|j| f(i, j)).collect()).collect()
}

/// `A B`; the inner size is given because either may have no rows.
pub fn times(a: &Rows, b: &Rows) -> Rows {
    let cols = b.first().map_or(0, Vec::len);
    from_fn(a.len(), cols, |i, j| (0..b.len()).map(|k| a[i][k] * b[k][j]).sum())
}

/// `Aᵀ`, with as many rows as said.
pub fn turned(a: &Rows, rows: usize) -> Rows {
    from_fn(rows, a.len(), |i, j| a[j][i])
}

/// Inverse and logarithm of the determinant by Gauss-Jordan elimination; `None` if a pivot is not positive (for symmetric matrices: if it is not positive
/// definite).
pub fn inverse(a: &Rows) -> Option<(Rows, f64)> {
    let n = a.len();
    let mut left = a.clone();
    let mut right = from_fn(n, n, |i, j| f64::from(u8::from(i == j)));
    let mut log_det = 0.0;
    for k in 0..n {
        let pivot = left[k][k];
        if pivot.is_nan() || pivot <= 0.0 {
            return None;
        }
        log_det += pivot.ln();
        for j in 0..n {
            left[k][j] /= pivot;
            right[k][j] /= pivot;
        }
        for i in (0..n).filter(|&i| i != k) {
            let by = left[i][k];
            for j in 0..n {
                left[i][j] -= by * left[k][j];
                right[i][j] -= by * right[k][j];
            }
        }
    }
    Some((right, log_det))
}

/// A problem: inputs, outputs, penalties of Λ off the diagonal, on it, and of Θ.
#[derive(Clone, Debug)]
pub struct Textbook {
    /// One row an example.
    pub x: Rows,
    /// One row an example.
    pub y: Rows,
    /// Number of inputs, also if there are none.
    pub inputs: usize,
    /// Penalty of Λ off the diagonal.
    pub pairs: f64,
    /// Penalty of the diagonal of Λ.
    pub diagonal: f64,
    /// Penalty of Θ.
    pub theta: f64,
}

impl Textbook {
    /// The mean of `-log|Λ| + (y - μ)ᵀΛ(y - μ)` with `μ = -Λ⁻¹Θᵀx`: twice the negative log-likelihood without its constant, from the density itself.
    pub fn smooth(&self, lambda: &Rows, theta: &Rows) -> f64 {
        let Some((sigma, log_det)) = inverse(lambda) else { return f64::INFINITY };
        let p = lambda.len();
        let mut sum = 0.0;
        for (x, y) in self.x.iter().zip(&self.y) {
            let drive: Vec<f64> =
                (0..p).map(|j| (0..self.inputs).map(|i| theta[i][j] * x[i]).sum()).collect();
            let error: Vec<f64> =
                (0..p).map(|j| y[j] + (0..p).map(|k| sigma[j][k] * drive[k]).sum::<f64>()).collect();
            for i in 0..p {
                for j in 0..p {
                    sum += error[i] * lambda[i][j] * error[j];
                }
            }
        }
        -log_det + sum / self.y.len() as f64
    }

    /// Penalty of an entry of Λ.
    pub fn weight(&self, i: usize, j: usize) -> f64 {
        if i == j { self.diagonal } else { self.pairs }
    }

    /// With the penalty.
    pub fn objective(&self, lambda: &Rows, theta: &Rows) -> f64 {
        let p = lambda.len();
        let mut sum = self.smooth(lambda, theta);
        for i in 0..p {
            for j in 0..p {
                sum += self.weight(i, j) * lambda[i][j].abs();
            }
        }
        sum + self.theta * theta.iter().flatten().map(|t| t.abs()).sum::<f64>()
    }

    /// `S_yy - Σ - ΣΘᵀS_xxΘΣ` and `2S_xy + 2S_xxΘΣ`, from second moments.
    pub fn slopes(&self, lambda: &Rows, theta: &Rows) -> (Rows, Rows) {
        let (m, n, p) = (self.y.len() as f64, self.inputs, lambda.len());
        let (sigma, _) = inverse(lambda).expect("positive definite");
        let moment = |a: &Rows, b: &Rows, rows: usize, cols: usize| {
            from_fn(rows, cols, |i, j| a.iter().zip(b).map(|(a, b)| a[i] * b[j]).sum::<f64>() / m)
        };
        let syy = moment(&self.y, &self.y, p, p);
        let sxy = moment(&self.x, &self.y, n, p);
        let sxx = moment(&self.x, &self.x, n, n);
        let through = times(theta, &sigma);
        let moved = times(&sxx, &through);
        let psi = from_fn(p, p, |i, j| (0..n).map(|k| through[k][i] * moved[k][j]).sum());
        (
            from_fn(p, p, |i, j| syy[i][j] - sigma[i][j] - psi[i][j]),
            from_fn(n, p, |i, j| 2.0 * (sxy[i][j] + moved[i][j])),
        )
    }

    /// The largest entry of the subgradient nearest to 0.
    pub fn violation(&self, lambda: &Rows, theta: &Rows) -> f64 {
        let (gl, gt) = self.slopes(lambda, theta);
        let one = |v: f64, g: f64, l: f64| {
            if v == 0.0 { (g.abs() - l).max(0.0) } else { (g + l * v.signum()).abs() }
        };
        let mut most = 0.0f64;
        for i in 0..lambda.len() {
            for j in 0..lambda.len() {
                most = most.max(one(lambda[i][j], gl[i][j], self.weight(i, j)));
            }
        }
        for (t, g) in theta.iter().flatten().zip(gt.iter().flatten()) {
            most = most.max(one(*t, *g, self.theta));
        }
        most
    }

    /// The optimum by proximal gradient steps with backtracking, to a violation of `tolerance` if that many steps are enough.
    pub fn optimum(&self, tolerance: f64, steps: usize) -> (Rows, Rows) {
        let (n, p) = (self.inputs, self.y[0].len());
        let mut lambda = from_fn(p, p, |i, j| f64::from(u8::from(i == j)));
        let mut theta = from_fn(n, p, |_, _| 0.0);
        let shrink = |v: f64, by: f64| v.signum() * (v.abs() - by).max(0.0);
        let mut step = 1.0;
        for _ in 0..steps {
            if self.violation(&lambda, &theta) <= tolerance {
                break;
            }
            let (gl, gt) = self.slopes(&lambda, &theta);
            let before = self.objective(&lambda, &theta);
            loop {
                let nl =
                    from_fn(p, p, |i, j| shrink(lambda[i][j] - step * gl[i][j], step * self.weight(i, j)));
                let nt = from_fn(n, p, |i, j| shrink(theta[i][j] - step * gt[i][j], step * self.theta));
                let size: f64 = nl
                    .iter()
                    .flatten()
                    .zip(lambda.iter().flatten())
                    .map(|(a, b)| (a - b) * (a - b))
                    .sum::<f64>()
                    + nt.iter()
                        .flatten()
                        .zip(theta.iter().flatten())
                        .map(|(a, b)| (a - b) * (a - b))
                        .sum::<f64>();
                // A step that brings at least a tenth of what it should, or is lost in rounding.
                if self.objective(&nl, &nt) <= before - 0.1 * size / step + 1e-14 * before.abs() {
                    (lambda, theta) = (nl, nt);
                    step *= 1.3;
                    break;
                }
                step *= 0.5;
            }
        }
        (lambda, theta)
    }
}

/// A standard normal number, as a sum of twelve uniform ones: good enough to make data.
pub fn noise(rng: &mut Xoshiro256PlusPlus) -> f64 {
    (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0
}
