//! What a Gaussian CRF says about outputs: means, intervals, samples, and revisions as part of the outputs arrives.

use super::normal;
use crate::linalg::{Cholesky, Dense, product};
use crate::par::Par;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// `y | x ~ N(b - Λ⁻¹Θᵀx, Λ⁻¹)`, ready to be asked.
#[derive(Clone, Debug)]
pub struct Forecaster {
    lambda: Dense,
    theta: Dense,
    intercept: Vec<f64>,
    sigma: Dense,
}

impl Forecaster {
    /// From `Λ` (`p × p`), `Θ` (`n × p`) and `b`; `None` if they do not fit together or Λ is not positive definite.
    ///
    /// ```
    /// use gibbsite::{gaussian::predict::Forecaster, linalg::Dense, par::Par};
    /// let lambda = Dense::from_fn(2, 2, |i, j| if i == j { 2.0 } else { 1.0 });
    /// let theta = Dense::from_fn(1, 2, |_, j| if j == 0 { -3.0 } else { 0.0 });
    /// let model = Forecaster::new(lambda, theta, vec![0.0; 2]).unwrap();
    /// let mean = model.means(Par::Seq, &Dense::from_fn(1, 1, |_, _| 1.0));
    /// assert!((mean.get(0, 0) - 2.0).abs() < 1e-14 && (mean.get(0, 1) + 1.0).abs() < 1e-14);
    /// // Now the first output turns out to be 3: the second is revised, and more certain.
    /// let given = model.given(&[true, false]);
    /// let mut row = [2.0, -1.0];
    /// given.revise(&model, &[3.0, f64::NAN], &mut row);
    /// assert!(row[0] == 3.0 && (row[1] + 1.5).abs() < 1e-14 && given.deviations()[0] == 0.0);
    /// ```
    pub fn new(lambda: Dense, theta: Dense, intercept: Vec<f64>) -> Option<Self> {
        let p = lambda.cols();
        if lambda.rows() != p || theta.cols() != p || intercept.len() != p {
            return None;
        }
        let sigma = Cholesky::new(&lambda)?.inverse();
        Some(Self { lambda, theta, intercept, sigma })
    }

    /// Inputs.
    pub fn inputs(&self) -> usize {
        self.theta.rows()
    }

    /// Outputs.
    pub fn outputs(&self) -> usize {
        self.lambda.cols()
    }

    /// `Σ = Λ⁻¹`, the covariance of the outputs given the inputs.
    pub fn covariance(&self) -> &Dense {
        &self.sigma
    }

    /// The mean of every row's outputs.
    pub fn means(&self, par: Par, x: &Dense) -> Dense {
        par.run(|par| {
            let through = product(par, x, &self.theta);
            let mut means = product(par, &through, &self.sigma);
            for (j, b) in self.intercept.iter().enumerate() {
                means.col_mut(j).iter_mut().for_each(|v| *v = b - *v);
            }
            means
        })
    }

    /// The outputs that are left when those with `known[j]` are known: `N(μ_u - Λ_uu⁻¹Λ_uo(y_o - μ_o), Λ_uu⁻¹)`.
    pub fn given(&self, known: &[bool]) -> Given {
        let free: Vec<usize> =
            (0..self.outputs()).filter(|&j| !known.get(j).copied().unwrap_or(false)).collect();
        // A part of a positive definite matrix is one too.
        let part = self.lambda.select_columns(&free).select_rows(&free);
        let factor = Cholesky::new(&part);
        let mut deviations = vec![0.0; self.outputs()];
        if let Some(factor) = &factor {
            let inverse = factor.inverse();
            free.iter().enumerate().for_each(|(k, &j)| deviations[j] = inverse.get(k, k).sqrt());
        }
        Given { free, factor, deviations }
    }

    /// How many standard deviations an interval of each output must reach to both sides so that all hold together with probability `level`: a quantile of
    /// `max_j |y_j - μ_j|/σ_j` over that many draws, of the outputs that are left.
    pub fn joint_half_width(&self, given: &Given, level: f64, draws: usize, seed: u64) -> f64 {
        let samples = given.draws(self.outputs(), draws, seed);
        let mut largest: Vec<f64> = (0..draws)
            .map(|k| {
                given.free.iter().map(|&j| samples.get(j, k).abs() / given.deviations[j]).fold(0.0, f64::max)
            })
            .collect();
        largest.sort_unstable_by(f64::total_cmp);
        let at = (level * draws as f64).ceil() as usize;
        largest.get(at.clamp(1, draws.max(1)) - 1).copied().unwrap_or(0.0)
    }
}

/// What is left to predict when some outputs are known; the same for every row with the same ones.
#[derive(Clone, Debug)]
pub struct Given {
    free: Vec<usize>,
    factor: Option<Cholesky>,
    deviations: Vec<f64>,
}

impl Given {
    /// Standard deviation of each output; 0 for those that are known.
    pub fn deviations(&self) -> &[f64] {
        &self.deviations
    }

    /// Puts known outputs of `y` into a row of means and moves the others accordingly.
    pub fn revise(&self, model: &Forecaster, y: &[f64], mean: &mut [f64]) {
        let p = model.outputs();
        let Some(factor) = self.factor.as_ref().filter(|_| self.free.len() < p) else {
            if self.free.is_empty() {
                mean.iter_mut().zip(y).for_each(|(m, y)| *m = *y);
            }
            return;
        };
        let mut is_free = vec![false; p];
        self.free.iter().for_each(|&j| is_free[j] = true);
        let surprise: Vec<f64> = (0..p).map(|j| if is_free[j] { 0.0 } else { y[j] - mean[j] }).collect();
        let mut shift = Dense::from_fn(self.free.len(), 1, |k, _| {
            model.lambda.col(self.free[k]).iter().zip(&surprise).map(|(l, s)| l * s).sum()
        });
        factor.solve(&mut shift);
        for j in (0..p).filter(|&j| !is_free[j]) {
            mean[j] = y[j];
        }
        for (k, &j) in self.free.iter().enumerate() {
            mean[j] -= shift.get(k, 0);
        }
    }

    /// Draws of the deviations from the mean, a column each; 0 for outputs that are known.
    pub fn draws(&self, outputs: usize, count: usize, seed: u64) -> Dense {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut out = Dense::zeros(outputs, count);
        let Some(factor) = &self.factor else { return out };
        let mut normal = Dense::zeros(self.free.len(), count);
        normal::draw(&mut rng, normal.values_mut());
        factor.solve_upper(&mut normal);
        for k in 0..count {
            self.free.iter().enumerate().for_each(|(i, &j)| out.set(j, k, normal.get(i, k)));
        }
        out
    }
}
