//! Debiasing: the same entries again, without penalty.

use super::error::GaussianError;
use crate::linalg::Dense;
use crate::objective::gaussian::Gaussian;
use crate::solver::lbfgs::{self, LbfgsParams, Smooth, State};
use crate::solver::monitor::Stop;
use crate::solver::newton_blocks::{BlockData, BlockError, Debiased, debias};
use crate::sparse::Sparse;

/// `f` over the entries of a support: `(i, j)` of the upper triangle of Λ, then of Θ.
struct OnSupport<'a> {
    problem: &'a Gaussian,
    pairs: Vec<(usize, usize)>,
    weights: Vec<(usize, usize)>,
}

impl OnSupport<'_> {
    fn matrices(&self, values: &[f64]) -> (Dense, Dense) {
        let (n, p) = (self.problem.inputs(), self.problem.outputs());
        let (mut lambda, mut theta) = (Dense::zeros(p, p), Dense::zeros(n, p));
        let (upper, rest) = values.split_at(self.pairs.len());
        for (&(i, j), &v) in self.pairs.iter().zip(upper) {
            lambda.set(i, j, v);
            lambda.set(j, i, v);
        }
        for (&(i, j), &v) in self.weights.iter().zip(rest) {
            theta.set(i, j, v);
        }
        (lambda, theta)
    }
}

impl Smooth for OnSupport<'_> {
    fn len(&self) -> usize {
        self.pairs.len() + self.weights.len()
    }

    fn value_gradient(&mut self, values: &[f64], gradient: &mut [f64]) -> f64 {
        let (lambda, theta) = self.matrices(values);
        let Some(state) = self.problem.state(lambda, theta) else { return f64::INFINITY };
        let slopes = self.problem.slopes(&state);
        let upper = self.pairs.iter().map(|&(i, j)| {
            // An entry off the diagonal stands for two.
            let twice = if i == j { 1.0 } else { 2.0 };
            twice * slopes.lambda.get(i, j)
        });
        let rest = self.weights.iter().map(|&(i, j)| slopes.theta.get(i, j));
        gradient.iter_mut().zip(upper.chain(rest)).for_each(|(g, v)| *g = v);
        state.value
    }
}

/// What a refit found.
pub(super) struct Refitted {
    pub(super) lambda: Sparse,
    pub(super) theta: Sparse,
    pub(super) objective: f64,
    pub(super) violation: f64,
    pub(super) iterations: u64,
    pub(super) stop: Stop,
}

/// An objective that falls by this much for each output has no minimum: a residual variance would be `e⁻⁴⁰` of what it was.
const ENDLESS: f64 = 40.0;
/// Nor has one whose precision of a single output rises by this factor: its slope vanishes only at infinity.
const STEEP: f64 = 1e4;

/// Minimises `f` (without penalty) over the entries of Λ and Θ that are not 0, and the diagonal, by L-BFGS from there until the largest slope is at most `tolerance`. Lasso estimates are too
/// small by about `λ`; on the right support these are the maximum likelihood.
///
/// # Errors
/// [`GaussianError::RefitUnbounded`] if an output is explained exactly by what its support has.
pub(super) fn refit(
    problem: &Gaussian,
    lambda: &Dense,
    theta: &Dense,
    tolerance: f64,
    max_iterations: u64,
    go_on: &dyn Fn(u64, f64, f64) -> bool,
) -> Result<Refitted, GaussianError> {
    let p = lambda.cols();
    let places = |rows: usize, cols: usize| (0..cols).flat_map(move |j| (0..rows).map(move |i| (i, j)));
    let pairs = places(p, p).filter(|&(i, j)| i == j || i < j && lambda.get(i, j) != 0.0).collect();
    let weights = places(theta.rows(), p).filter(|&(i, j)| theta.get(i, j) != 0.0).collect();
    let mut f = OnSupport { problem, pairs, weights };
    let upper = f.pairs.iter().map(|&(i, j)| lambda.get(i, j));
    let start: Vec<f64> = upper.chain(f.weights.iter().map(|&(i, j)| theta.get(i, j))).collect();
    let mut slopes = vec![0.0; f.len()];
    let before = f.value_gradient(&start, &mut slopes);
    let floor = before - ENDLESS * p as f64;
    // Its tolerance is a share of the violation at 0 or at the start; here 0 is out of bounds, so that it is the start's.
    let steepest = slopes.iter().fold(0.0f64, |most, s| most.max(s.abs()));
    let params = LbfgsParams {
        memory: 20,
        tolerance: if steepest > 0.0 { (tolerance / steepest).min(1.0) } else { 1.0 },
        max_iterations,
        target_objective: Some(floor),
        par: problem.par,
        ..LbfgsParams::default()
    };
    let mut watch =
        |point: &lbfgs::Point, _: &State| go_on(point.iterations, point.objective, point.violation);
    let (state, info) = lbfgs::minimize(&mut f, State::new(start), &params, &mut watch)
        .map_err(|_| GaussianError::RefitUnbounded)?;
    let stop = match info.stop {
        lbfgs::Stop::Target => return Err(GaussianError::RefitUnbounded),
        lbfgs::Stop::Tolerance => Stop::Tolerance,
        lbfgs::Stop::Interrupted => Stop::Interrupted,
        lbfgs::Stop::Iterations => Stop::Iterations,
        lbfgs::Stop::Precision | lbfgs::Stop::Slow => Stop::Precision,
    };
    let (after, theta) = f.matrices(state.theta());
    if (0..p).any(|j| after.get(j, j) > STEEP * lambda.get(j, j)) {
        return Err(GaussianError::RefitUnbounded);
    }
    let lbfgs::Point { objective, violation, iterations, .. } = info.end;
    let (lambda, theta) = (Sparse::from_dense(&after), Sparse::from_dense(&theta));
    Ok(Refitted { lambda, theta, objective, violation, iterations, stop })
}

/// As [`refit`], by Newton steps within a budget: a tolerance, most steps and bytes.
pub(super) fn refit_within(
    data: BlockData<'_>,
    (lambda, theta): (&Sparse, &Sparse),
    limits: (f64, u64, u64),
    go_on: &dyn Fn(u64, f64, f64) -> bool,
) -> Result<Result<Refitted, GaussianError>, BlockError> {
    let p = lambda.cols();
    let found = debias(data, (lambda, theta), limits, ENDLESS * p as f64, go_on)?;
    let bounded = found.filter(|f| (0..p).all(|j| f.lambda.get(j, j) <= STEEP * lambda.get(j, j)));
    Ok(bounded.ok_or(GaussianError::RefitUnbounded).map(
        |Debiased { lambda, theta, objective, violation, iterations, stop }| Refitted {
            lambda,
            theta,
            objective,
            violation,
            iterations,
            stop,
        },
    ))
}
