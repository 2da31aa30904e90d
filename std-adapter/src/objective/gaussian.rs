//! The negative log-likelihood of a Gaussian CRF (SGCRF eq. 3).
//!
//! With outputs `y | x ~ N(-Λ⁻¹Θᵀx, Λ⁻¹)`, `m` samples, `Σ = Λ⁻¹`:
//! `f(Λ, Θ) = -log|Λ| + tr(S_yy Λ) + 2 tr(S_xyᵀ Θ) + tr(Σ Θᵀ S_xx Θ)`,
//! `∇_Λ = S_yy - Σ - Ψ` with `Ψ = ΣΘᵀS_xxΘΣ`, `∇_Θ = 2 S_xy + 2 S_xx Θ Σ` (App. A eq. 5).
//! That is twice the mean negative log-likelihood without its constant `p log 2π` (the density that eq. 3 belongs to is
//! `exp(-½yᵀΛy - xᵀΘy)`, not the printed one without ½; SEEDS.md).
//!
//! `S_xx` is never formed: with `R = XΘ` and `K = RΣ` (minus the predicted means) `Ψ = KᵀK/m`, `∇_Θ = 2Xᵀ(Y + K)/m`. Where there are many more samples than
//! columns, `[X Y]` is replaced by its triangular factor, which has the same second moments.

use crate::linalg::{Cholesky, Dense, product, transposed_product, triangle};
use crate::par::Par;
use gibbsite_core::penalty::Penalty;

/// What the penalty is: `λ_Λ Σ_{i≠j}|Λ_ij| + λ_Θ Σ|Θ_ij|`, the diagonal of Λ too if asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Penalties {
    /// `λ_Λ`.
    pub lambda: f64,
    /// `λ_Θ`.
    pub theta: f64,
    /// Whether the diagonal of Λ is penalised as well; `‖·‖_{1,*}` of the paper does not.
    pub diagonal: bool,
}

impl Penalties {
    /// The penalty of one entry of Λ.
    #[inline(always)]
    pub fn of_lambda(&self, i: usize, j: usize) -> Penalty<f64> {
        let l1 = if i != j || self.diagonal { self.lambda } else { 0.0 };
        Penalty { l1, l2: 0.0, positive: false }
    }

    /// The penalty of one entry of Θ.
    #[inline(always)]
    pub fn of_theta(&self) -> Penalty<f64> {
        Penalty { l1: self.theta, l2: 0.0, positive: false }
    }

    /// How many times these penalties to work with where the violation is `violation`: such a point is about as good as the optimum for `λ + violation`, and a Newton
    /// step from there leads to a share of that at best. So early steps have few entries to move. From 1 to 10: where large means make `S_yy` large, penalties near `λ_max` leave
    /// Θ empty and Λ with all the work (on the bench's `sec51`, p = 1000, a hundred steps did not get past that).
    pub(crate) fn times_at(&self, violation: f64) -> f64 {
        // Chosen on the bench's chain and `sec51` problems; 0.15 to 0.4 differ by a fifth at most.
        const SHARE: f64 = 0.2;
        const MOST: f64 = 10.0;
        let scale = self.lambda.max(self.theta);
        if scale > 0.0 { (SHARE * (1.0 + violation / scale)).clamp(1.0, MOST) } else { 1.0 }
    }

    /// Both penalties, times a number.
    pub(crate) fn scaled(&self, times: f64) -> Self {
        Self { lambda: times * self.lambda, theta: times * self.theta, ..*self }
    }

    /// `λ_Λ‖Λ‖_{1,*} + λ_Θ‖Θ‖₁`.
    pub fn value(&self, lambda: &Dense, theta: &Dense) -> f64 {
        let all: f64 = lambda.values().iter().map(|v| v.abs()).sum();
        let diagonal: f64 = (0..lambda.cols()).map(|i| lambda.get(i, i).abs()).sum();
        let counted = if self.diagonal { all } else { all - diagonal };
        let inputs: f64 = theta.values().iter().map(|v| v.abs()).sum();
        // 0·∞ has no place here.
        let term = |l: f64, sum: f64| if l == 0.0 { 0.0 } else { l * sum };
        term(self.lambda, counted) + term(self.theta, inputs)
    }
}

/// The data of the objective: inputs, outputs, and how many samples they stand for.
#[derive(Clone, Debug)]
pub struct Gaussian {
    /// `m × n`.
    pub x: Dense,
    /// `m × p`.
    pub y: Dense,
    /// What sums are divided by.
    pub samples: f64,
    /// `S_yy`.
    pub syy: Dense,
    /// `‖x_i‖²`.
    pub x_norm2: Vec<f64>,
    /// Threads; the result does not depend on them.
    pub par: Par,
}

/// A pair `(Λ, Θ)` and what follows from it.
#[derive(Clone, Debug)]
pub struct State {
    /// `Λ`, symmetric, positive definite.
    pub lambda: Dense,
    /// `Θ`, `n × p`.
    pub theta: Dense,
    /// `Σ = Λ⁻¹`.
    pub sigma: Dense,
    /// `R = XΘ`.
    pub r: Dense,
    /// `K = RΣ`.
    pub k: Dense,
    /// `log|Λ|`.
    pub log_det: f64,
    /// `f(Λ, Θ)`.
    pub value: f64,
}

/// Derivatives of `f`.
#[derive(Clone, Debug)]
pub struct Slopes {
    /// `∇_Λ`, symmetric.
    pub lambda: Dense,
    /// `∇_Θ`.
    pub theta: Dense,
    /// `Ψ = KᵀK/m`.
    pub psi: Dense,
    /// `E = Y + K`: what is left of the outputs.
    pub e: Dense,
}

impl Gaussian {
    /// Of `m × n` inputs and `m × p` outputs, as they are: centre them before if an intercept is wanted.
    ///
    /// ```
    /// use gibbsite::{linalg::Dense, objective::gaussian::Gaussian, par::Par};
    /// let x = Dense::from_fn(2, 1, |i, _| i as f64);
    /// let y = Dense::from_fn(2, 1, |i, _| 1.0 - 2.0 * i as f64);
    /// let problem = Gaussian::new(x, y, Par::Seq);
    /// let state = problem.state(Dense::identity(1), Dense::zeros(1, 1)).unwrap();
    /// assert_eq!(state.value, 1.0); // -log 1 + mean y²
    /// ```
    pub fn new(x: Dense, y: Dense, par: Par) -> Self {
        let samples = x.rows().min(y.rows()) as f64;
        let (n, p) = (x.cols(), y.cols());
        let (x, y) = if x.rows() > 2 * (n + p) {
            let mut both = x.values().to_vec();
            both.extend_from_slice(y.values());
            let both = Dense::from_columns(x.rows(), n + p, both).unwrap_or_else(|| Dense::zeros(0, n + p));
            let r = triangle(&both);
            let columns = |range: std::ops::Range<usize>| r.select_columns(&range.collect::<Vec<_>>());
            (columns(0..n), columns(n..n + p))
        } else {
            (x, y)
        };
        let mut syy = transposed_product(par, &y, &y);
        syy.values_mut().iter_mut().for_each(|v| *v /= samples);
        let x_norm2 = (0..n).map(|i| x.col(i).iter().map(|v| v * v).sum()).collect();
        Self { x, y, samples, syy, x_norm2, par }
    }

    /// Inputs.
    pub fn inputs(&self) -> usize {
        self.x.cols()
    }

    /// Outputs.
    pub fn outputs(&self) -> usize {
        self.y.cols()
    }

    /// `2 S_xy`, the slope in Θ where Θ = 0.
    pub fn cross(&self) -> Dense {
        let mut cross = transposed_product(self.par, &self.x, &self.y);
        cross.values_mut().iter_mut().for_each(|v| *v *= 2.0 / self.samples);
        cross
    }

    /// The best diagonal Λ for Θ = 0: where every fit begins.
    pub fn start(&self, penalties: &Penalties) -> (Dense, Dense) {
        let extra = if penalties.diagonal { penalties.lambda } else { 0.0 };
        let p = self.outputs();
        let lambda =
            Dense::from_fn(p, p, |i, j| if i == j { 1.0 / (self.syy.get(i, i) + extra) } else { 0.0 });
        (lambda, Dense::zeros(self.inputs(), p))
    }

    /// The least `λ_Λ` for which the optimum is diagonal and without inputs, if `λ_Θ = factor · λ_Λ`.
    ///
    /// There `∇_Λ` is `S_yy` off the diagonal and `∇_Θ = 2S_xy`, so it is `max(max_{i≠j}|S_yy|, 2 max|S_xy| / factor)`.
    pub fn lambda_max(&self, factor: f64) -> f64 {
        let p = self.outputs();
        let pairs = (0..p).flat_map(|j| (0..j).map(move |i| (i, j)));
        let own = pairs.fold(0.0f64, |most, (i, j)| most.max(self.syy.get(i, j).abs()));
        let cross = self.cross().values().iter().fold(0.0f64, |most, v| most.max(v.abs()));
        own.max(if cross == 0.0 { 0.0 } else { cross / factor })
    }

    /// `XΘ`, using only the entries of Θ that are not 0.
    pub fn through(&self, theta: &Dense) -> Dense {
        let mut r = Dense::zeros(self.x.rows(), theta.cols());
        let rows = self.x.rows().max(1);
        let items: Vec<(usize, &mut [f64])> = r.values_mut().chunks_mut(rows).enumerate().collect();
        self.par.map(items, |(j, column)| {
            for (i, &t) in theta.col(j).iter().enumerate().filter(|(_, t)| **t != 0.0) {
                column.iter_mut().zip(self.x.col(i)).for_each(|(c, x)| *c += t * x);
            }
        });
        r
    }

    /// The state at `(Λ, Θ)`; `None` where Λ is not positive definite.
    pub fn state(&self, lambda: Dense, theta: Dense) -> Option<State> {
        let r = self.through(&theta);
        self.state_with(lambda, theta, r)
    }

    /// As [`state`](Self::state) if `R = XΘ` is known.
    pub fn state_with(&self, lambda: Dense, theta: Dense, r: Dense) -> Option<State> {
        let factor = Cholesky::new(&lambda)?;
        let (sigma, log_det) = (factor.inverse(), factor.log_det());
        let (k, value) = self.value(&lambda, &sigma, log_det, &r);
        value.is_finite().then_some(State { lambda, theta, sigma, r, k, log_det, value })
    }

    /// The state with another Θ, `r` being `XΘ`; the same one if its value would not be finite.
    pub(crate) fn with_theta(&self, state: State, theta: Dense, r: Dense) -> State {
        let (k, value) = self.value(&state.lambda, &state.sigma, state.log_det, &r);
        if value.is_finite() { State { theta, r, k, value, ..state } } else { state }
    }

    /// `K = RΣ`, and `f`.
    fn value(&self, lambda: &Dense, sigma: &Dense, log_det: f64, r: &Dense) -> (Dense, f64) {
        let k = product(self.par, r, sigma);
        let value = -log_det + self.syy.dot(lambda) + (2.0 * self.y.dot(r) + r.dot(&k)) / self.samples;
        (k, value)
    }

    /// `E = Y + K`.
    pub(crate) fn errors(&self, state: &State) -> Dense {
        let mut e = self.y.clone();
        e.values_mut().iter_mut().zip(state.k.values()).for_each(|(e, k)| *e += k);
        e
    }

    /// `Ψ = KᵀK/m`.
    pub(crate) fn psi(&self, state: &State) -> Dense {
        let mut psi = transposed_product(self.par, &state.k, &state.k);
        psi.values_mut().iter_mut().for_each(|v| *v /= self.samples);
        psi
    }

    /// The derivatives there.
    pub fn slopes(&self, state: &State) -> Slopes {
        let psi = self.psi(state);
        let mut lambda = self.syy.clone();
        for ((g, s), q) in lambda.values_mut().iter_mut().zip(state.sigma.values()).zip(psi.values()) {
            *g -= s + q;
        }
        let e = self.errors(state);
        let mut theta = transposed_product(self.par, &self.x, &e);
        theta.values_mut().iter_mut().for_each(|v| *v *= 2.0 / self.samples);
        Slopes { lambda, theta, psi, e }
    }

    /// The subdifferential violation: the largest entry of the subgradient of `f + penalty` that is nearest to 0.
    pub fn violation(&self, state: &State, slopes: &Slopes, penalties: &Penalties) -> f64 {
        let p = self.outputs();
        let mut most = 0.0f64;
        for j in 0..p {
            for i in 0..=j {
                let penalty = penalties.of_lambda(i, j);
                most = most.max(penalty.violation(state.lambda.get(i, j), slopes.lambda.get(i, j)));
            }
        }
        let penalty = penalties.of_theta();
        let entries = state.theta.values().iter().zip(slopes.theta.values());
        entries.fold(most, |most, (&t, &g)| most.max(penalty.violation(t, g)))
    }
}
