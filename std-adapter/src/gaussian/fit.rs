//! One fit, and what every fit of a path shares.

use super::error::GaussianError;
use super::memory::{Way, beside, way};
use super::prepare::{Prepared, Scaling, check_bounded, copies};
use super::refit::{Refitted, refit, refit_within};
use crate::linalg::{Cholesky, Dense};
use crate::objective::gaussian::{Gaussian, Penalties};
use crate::par::Par;
use crate::solver::monitor::Stop;
use crate::solver::newton_blocks::{self, BlockData, BlockError, BlockParams, largest_slopes};
use crate::solver::newton_cd::{GaussianPoint, GaussianWatch, NewtonInfo, NewtonParams, Schedule};
use crate::solver::{fista, newton_cd, owlqn};
use crate::sparse::Sparse;
use std::borrow::Cow;

/// How `λ_Θ` follows from `λ_Λ`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Theta {
    /// This share of it; 1 is one `λ` for both, as in the paper.
    Factor(f64),
    /// Not at all: this value.
    Value(f64),
}

impl Theta {
    /// `λ_Θ` where `λ_Λ` is `lambda`.
    pub fn at(self, lambda: f64) -> f64 {
        match self {
            Self::Factor(factor) => factor * lambda,
            Self::Value(value) => value,
        }
    }
}

/// How it is solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GaussianSolver {
    /// Newton coordinate descent.
    Newton(Schedule),
    /// Accelerated proximal gradient.
    Fista,
    /// Orthant-wise L-BFGS.
    Owlqn,
}

/// How to fit.
#[derive(Clone, Debug, PartialEq)]
pub struct GaussianParams {
    /// `λ_Λ`.
    pub lambda: f64,
    /// `λ_Θ`.
    pub theta: Theta,
    /// Whether the diagonal of Λ is penalised too.
    pub diagonal: bool,
    /// Whether there is an intercept: columns are centred.
    pub intercept: bool,
    /// Whether columns are divided by their root mean squares first; parameters are for raw columns all the same.
    pub standardize: bool,
    /// Whether the entries that are not 0 are fitted again without penalty; of a path, each fit. The objective is then that without penalty.
    pub refit: bool,
    /// How it is solved.
    pub solver: GaussianSolver,
    /// Done when the subdifferential violation is at most this share of the larger of `λ_Λ` and `λ_Θ` (of `λ_max` if both are 0).
    pub tolerance: f64,
    /// Most outer iterations.
    pub max_iterations: u64,
    /// Threads; the result does not depend on them.
    pub par: Par,
    /// Bytes that the fit may take beside the data, as [`memory`](super::memory) counts them; `None` for no limit. Where that is too little for dense matrices, [`Schedule::Auto`] works by blocks; the other
    /// schedules are an error then. For [`GaussianSolver::Newton`] only.
    pub memory: Option<u64>,
}

impl GaussianParams {
    /// With one `λ` for both, tolerance 10⁻⁶, the fastest solver, raw columns without intercept, one thread.
    pub fn new(lambda: f64) -> Self {
        Self {
            lambda,
            theta: Theta::Factor(1.0),
            diagonal: false,
            intercept: false,
            standardize: false,
            refit: false,
            solver: GaussianSolver::Newton(Schedule::Auto),
            tolerance: 1e-6,
            max_iterations: 1000,
            par: Par::Seq,
            memory: None,
        }
    }

    pub(super) fn penalties(&self, lambda: f64) -> Penalties {
        Penalties { lambda, theta: self.theta.at(lambda), diagonal: self.diagonal }
    }
}

/// What was learned, for raw columns.
#[derive(Clone, Debug, PartialEq)]
pub struct GaussianFit {
    /// `Λ`, symmetric and positive definite, both triangles.
    pub lambda: Sparse,
    /// `Θ`, a row for each input.
    pub theta: Sparse,
    /// What is added to the means; zeros without intercept.
    pub intercept: Vec<f64>,
    /// `λ_Λ` and `λ_Θ`.
    pub penalties: (f64, f64),
    /// The least `λ_Λ` for which nothing but the diagonal of Λ is left.
    pub lambda_max: f64,
    /// The objective, penalty included; of the standardised problem if that was asked for.
    pub objective: f64,
    /// The subdifferential violation, absolute.
    pub violation: f64,
    /// Outer iterations.
    pub iterations: u64,
    /// Whether the tolerance was met.
    pub converged: bool,
    /// Why the run ended.
    pub stop: Stop,
    /// Columns of a block, if a budget of memory had the fit done by blocks.
    pub blocks: Option<usize>,
    /// How it went.
    pub trace: Vec<GaussianPoint>,
}

impl GaussianFit {
    /// Entries of Λ that are not 0, both triangles and the diagonal.
    pub fn nonzeros_lambda(&self) -> usize {
        self.lambda.nonzeros()
    }

    /// Entries of Θ that are not 0.
    pub fn nonzeros_theta(&self) -> usize {
        self.theta.nonzeros()
    }
}

/// A problem that is being solved for one penalty after the other.
pub(super) struct Run<'a> {
    problem: Problem<'a>,
    scaling: Scaling,
    params: &'a GaussianParams,
    pub(super) lambda_max: f64,
    /// Bytes of what was found before and is still kept.
    pub(super) kept: u64,
    /// Where the last one ended.
    at: Option<(Sparse, Sparse)>,
}

/// What a solver found.
struct Minimum {
    at: (Sparse, Sparse),
    info: NewtonInfo,
    /// Columns of a block.
    blocks: Option<usize>,
}

/// The data as the solver wants them.
enum Problem<'a> {
    /// And bytes for the preconditioner.
    Dense(Box<Gaussian>, u64),
    /// And bytes for everything.
    Blocks { x: Cow<'a, Dense>, y: Cow<'a, Dense>, bytes: u64 },
}

impl<'a> Run<'a> {
    /// From raw columns; `params.memory` says by which solver.
    pub(super) fn new(
        x: &'a Dense,
        y: &'a Dense,
        weights: Option<&[f64]>,
        params: &'a GaussianParams,
    ) -> Result<Self, GaussianError> {
        let way = way(params, (x.rows(), x.cols(), y.cols()), copies(weights, params))?;
        let Prepared { x, y, scaling } = Prepared::new(x, y, weights, params)?;
        let factor = match params.theta {
            Theta::Factor(factor) => factor,
            // A λ_Θ of its own does not fall with λ_Λ.
            Theta::Value(_) => f64::INFINITY,
        };
        let (problem, lambda_max) = match way {
            Way::Dense(left) => {
                let problem = Gaussian::new(x.into_owned(), y.into_owned(), params.par);
                let most = problem.lambda_max(factor);
                (Problem::Dense(Box::new(problem), left), most)
            }
            Way::Blocks(bytes) => {
                let data = BlockData { x: &x, y: &y, par: params.par };
                let (own, cross) =
                    largest_slopes(data, bytes).map_err(|error| too_much(error, params, bytes))?;
                let most = own.max(if cross == 0.0 { 0.0 } else { cross / factor });
                (Problem::Blocks { x, y, bytes }, most)
            }
        };
        Ok(Self { problem, scaling, params, lambda_max, kept: 0, at: None })
    }

    pub(super) fn solve(
        &mut self,
        lambda: f64,
        watch: Option<&GaussianWatch<'_>>,
    ) -> Result<GaussianFit, GaussianError> {
        let params = self.params;
        let penalties = params.penalties(lambda);
        let scale = penalties.lambda.max(penalties.theta);
        let scale = if scale > 0.0 { scale } else { self.lambda_max };
        let schedule = match params.solver {
            GaussianSolver::Newton(schedule) => schedule,
            GaussianSolver::Fista | GaussianSolver::Owlqn => Schedule::Auto,
        };
        let left = match &self.problem {
            Problem::Dense(_, left) => *left,
            Problem::Blocks { bytes, .. } => *bytes,
        };
        let run = NewtonParams {
            penalties,
            tolerance: params.tolerance * scale,
            max_iterations: params.max_iterations,
            preconditioner: left.saturating_sub(self.kept),
            schedule,
        };
        let Minimum { at: found, mut info, blocks } = self.minimize(&run, watch)?;
        let mut debiased = None;
        if params.refit && info.stop != Stop::Interrupted {
            let go_on = |iterations: u64, objective: f64, violation: f64| {
                let Some(last) = info.trace.last() else { return true };
                let iterations = info.iterations + iterations;
                let point = GaussianPoint { iterations, objective, violation, lambda: 0.0, ..*last };
                watch.is_none_or(|watch| watch(&point))
            };
            let more = self.refit(&found, &run, &go_on)?;
            // Both have to be done.
            if info.stop == Stop::Tolerance {
                info.stop = more.stop;
            }
            (info.objective, info.violation) = (more.objective, more.violation);
            info.iterations += more.iterations;
            debiased = Some((more.lambda, more.theta));
        }
        let last = debiased.unwrap_or_else(|| found.clone());
        let (lambda, theta, intercept) = self.raw(last)?;
        self.at = Some(found);
        Ok(GaussianFit {
            lambda,
            theta,
            intercept,
            penalties: (penalties.lambda, penalties.theta),
            lambda_max: self.lambda_max,
            objective: info.objective,
            violation: info.violation,
            iterations: info.iterations,
            converged: info.stop == Stop::Tolerance,
            stop: info.stop,
            blocks,
            trace: info.trace,
        })
    }

    /// Solves for one penalty.
    fn minimize(
        &mut self,
        run: &NewtonParams,
        watch: Option<&GaussianWatch<'_>>,
    ) -> Result<Minimum, GaussianError> {
        let (params, at) = (self.params, self.at.take());
        let problem = match &self.problem {
            Problem::Dense(problem, _) => problem,
            Problem::Blocks { x, y, bytes } => {
                if run.penalties.lambda == 0.0 || run.penalties.theta == 0.0 {
                    // Nothing would be 0.
                    let (need, budget) = (beside((x.rows(), x.cols(), y.cols())), params.memory.unwrap_or(0));
                    return Err(GaussianError::Memory { need, budget });
                }
                let data = BlockData { x, y, par: params.par };
                let within = BlockParams {
                    penalties: run.penalties,
                    tolerance: run.tolerance,
                    max_iterations: run.max_iterations,
                    bytes: run.preconditioner,
                };
                let found = newton_blocks::minimize(data, at, &within, watch);
                let found = found.map_err(|error| too_much(error, params, *bytes))?;
                let at = (found.lambda, found.theta);
                return Ok(Minimum { at, info: found.info, blocks: Some(found.columns) });
            }
        };
        check_bounded(problem, &run.penalties)?;
        let start = at.map_or_else(
            || problem.start(&run.penalties),
            |(lambda, theta)| (lambda.to_dense(), theta.to_dense()),
        );
        let found = match params.solver {
            GaussianSolver::Newton(_) => newton_cd::minimize(problem, start, run, watch),
            GaussianSolver::Fista => fista::minimize(problem, start, run, watch),
            GaussianSolver::Owlqn => owlqn::minimize(problem, start, run, watch),
        };
        // The start is a diagonal of positive numbers or an earlier solution.
        let found = found.map_err(|_| GaussianError::SingularOutputs)?;
        let at = (Sparse::from_dense(&found.lambda), Sparse::from_dense(&found.theta));
        Ok(Minimum { at, info: found.info, blocks: None })
    }

    /// The same entries again, without penalty.
    fn refit(
        &self,
        (lambda, theta): &(Sparse, Sparse),
        run: &NewtonParams,
        go_on: &(dyn Fn(u64, f64, f64) -> bool + Sync),
    ) -> Result<Refitted, GaussianError> {
        let most = self.params.max_iterations.max(REFIT);
        match &self.problem {
            Problem::Dense(problem, _) => {
                refit(problem, &lambda.to_dense(), &theta.to_dense(), run.tolerance, most, go_on)
            }
            Problem::Blocks { x, y, bytes } => {
                let data = BlockData { x, y, par: self.params.par };
                let limits = (run.tolerance, most, run.preconditioner);
                refit_within(data, (lambda, theta), limits, go_on)
                    .map_err(|error| too_much(error, self.params, *bytes))?
            }
        }
    }

    /// For raw columns.
    fn raw(&self, (lambda, theta): (Sparse, Sparse)) -> Result<(Sparse, Sparse, Vec<f64>), GaussianError> {
        let intercept = self.params.intercept;
        if let Problem::Blocks { .. } = self.problem {
            let raw = self.scaling.raw_sparse((lambda, theta), intercept);
            return raw.ok_or(GaussianError::SingularOutputs);
        }
        let (lambda, theta, shift) = self.scaling.raw(&lambda.to_dense(), &theta.to_dense(), intercept);
        if Cholesky::new(&lambda).is_none() {
            return Err(GaussianError::SingularOutputs);
        }
        Ok((Sparse::from_dense(&lambda), Sparse::from_dense(&theta), shift))
    }
}

/// The error of the block solver, which was given `bytes` of the budget.
fn too_much(error: BlockError, params: &GaussianParams, bytes: u64) -> GaussianError {
    match error {
        BlockError::Start => GaussianError::SingularOutputs,
        BlockError::Memory { need } => {
            let budget = params.memory.unwrap_or(bytes);
            // Copies of the data come on top.
            GaussianError::Memory { need: need.saturating_add(budget.saturating_sub(bytes)), budget }
        }
    }
}

/// Steps that a refit may take at least.
const REFIT: u64 = 10_000;

pub(super) fn check(params: &GaussianParams, lambda: f64) -> Result<(), GaussianError> {
    let wrong = |name, value: f64| {
        if value >= 0.0 && value.is_finite() { Ok(()) } else { Err(GaussianError::Parameter { name, value }) }
    };
    wrong("lambda", lambda)?;
    match params.theta {
        Theta::Factor(v) if v > 0.0 || lambda == 0.0 => wrong("factor of lambda-theta", v)?,
        Theta::Factor(value) => {
            return Err(GaussianError::Parameter { name: "factor of lambda-theta", value });
        }
        Theta::Value(v) => wrong("lambda-theta", v)?,
    }
    wrong("tolerance", params.tolerance)
}

/// Fits a sparse Gaussian CRF: minimises SGCRF eq. 3 plus `λ_Λ‖Λ‖_{1,*} + λ_Θ‖Θ‖₁` over `m × n` inputs and `m × p` outputs, samples weighted if weights are given.
///
/// ```
/// use gibbsite::gaussian::{GaussianParams, fit};
/// use gibbsite::linalg::Dense;
/// // Two outputs; the input moves the first up, so that its entry of Θ is below 0.
/// let x = Dense::from_fn(40, 1, |i, _| (i as f64).sin());
/// let y = Dense::from_fn(40, 2, |i, j| {
///     let noise = ((7 * i + 3 * j) as f64).cos();
///     if j == 0 { 2.0 * (i as f64).sin() + noise } else { noise }
/// });
/// let found = fit(&x, &y, None, &GaussianParams::new(0.2), None)?;
/// assert!(found.converged && found.theta.get(0, 0) < 0.0);
/// # Ok::<(), gibbsite::gaussian::GaussianError>(())
/// ```
///
/// # Errors
/// A [`GaussianError`] if the data cannot be used, or the objective has no minimum.
pub fn fit(
    x: &Dense,
    y: &Dense,
    weights: Option<&[f64]>,
    params: &GaussianParams,
    watch: Option<&GaussianWatch<'_>>,
) -> Result<GaussianFit, GaussianError> {
    check(params, params.lambda)?;
    params.par.run(|par| {
        let params = GaussianParams { par, ..params.clone() };
        Run::new(x, y, weights, &params)?.solve(params.lambda, watch)
    })
}
