//! From samples of a field to weights, by any of the estimators.
//!
//! `F(θ) = f(θ) + C₁‖θ‖₁ + ½C₂‖θ‖²`, where `f` is a [composite likelihood](crate::objective::composite) (likelihood and pseudolikelihood are
//! two of them) or the [piecewise](crate::objective::piecewise) one. Joint: L-BFGS, or its proximal form if `C₁ > 0`, or Shotgun. Disjoint: each component by
//! itself, then averages ([`disjoint`](crate::objective::disjoint)), with the parameters of [`Coverage::Reference`](super::Coverage::Reference), for which averages mean
//! something. What is too wide for exact inference is refused, or estimated if [`TrainParams::inference`] says so: belief propagation keeps the solvers,
//! Gibbs sampling takes [`robbins_monro`](crate::solver::robbins_monro).

use super::{Field, FieldData, FieldError};
use crate::features::Index;
use crate::objective::components::{ComponentError, Components};
use crate::objective::composite::Composite;
use crate::objective::disjoint::{DisjointError, disjoint};
use crate::objective::local::{Local, NotLocal};
use crate::objective::piecewise::Piecewise;
use crate::objective::{Inference, ObjectiveError, ObjectiveParams};
use crate::par::Par;
use crate::solver::lbfgs::{LbfgsError, LbfgsInfo, LbfgsParams, Point, Smooth, State, Stop, Watch, minimize};
use crate::solver::robbins_monro::{RobbinsMonroParams, approximate};
use crate::solver::shotgun::local::{self, LocalParams};
use std::fmt;
use std::sync::Mutex;
use std::time::Instant;

/// What is maximised.
#[derive(Clone, Debug, PartialEq)]
pub enum Estimator {
    /// The likelihood.
    Mle,
    /// The pseudolikelihood.
    Pseudo,
    /// Each factor by itself.
    Piecewise,
    /// A composite likelihood.
    Composite(Choice),
}

/// Which components.
#[derive(Clone, Debug, PartialEq)]
pub enum Choice {
    /// One of all variables if exact inference is cheap ([`NARROW_MIB`]), else combs on grids, else single variables.
    Auto,
    /// By name ([`Components::named`]); `tree` and `tree:N` are random ones by the seed.
    Named(String),
    /// From the text of a file ([`Components::parse`]).
    Text(String),
}

/// How parameters that several components share come about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Optimize {
    /// One problem.
    Joint,
    /// A problem for each component; averages.
    Disjoint,
}

/// By what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Solver {
    /// L-BFGS, or its proximal form if `C₁ > 0`.
    QuasiNewton,
    /// [`Shotgun`](crate::solver::shotgun::local): pseudolikelihood with all labels known.
    Shotgun,
}

/// Where to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At 0.
    Zero,
    /// At a rough optimum of the pseudolikelihood (Thesis 5.3.1).
    Pseudo,
}

/// Exact inference is cheap if its tables take at most so many mebibytes: about a millisecond a sample.
pub const NARROW_MIB: f64 = 1.0;
/// A start need not be exact.
const START_TOLERANCE: f64 = 1e-3;

/// How to train.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainParams {
    /// What is maximised.
    pub estimator: Estimator,
    /// Jointly or not.
    pub optimize: Optimize,
    /// By what.
    pub solver: Solver,
    /// Where to begin.
    pub start: Start,
    /// `C₁`, weight of `‖θ‖₁`.
    pub l1: f64,
    /// `C₂`, weight of `½‖θ‖²`.
    pub l2: f64,
    /// Done when the subdifferential violation is at most this share of what it is at `θ = 0`.
    pub tolerance: f64,
    /// Done as soon as the objective is not above this; joint only.
    pub target_objective: Option<f64>,
    /// Most steps.
    pub max_iterations: u64,
    /// Mebibytes that the tables of exact inference may take, for each thread.
    pub max_table_mib: f64,
    /// What is done about components that need more: the likelihood of a wide field is one.
    pub inference: Inference,
    /// Seed of random components.
    pub seed: u64,
    /// Threads; the result does not depend on them.
    pub par: Par,
}

impl Default for TrainParams {
    /// Likelihood, jointly, from 0, `C₂ = 1`, tolerance 10⁻⁵, one thread.
    fn default() -> Self {
        Self {
            estimator: Estimator::Mle,
            optimize: Optimize::Joint,
            solver: Solver::QuasiNewton,
            start: Start::Zero,
            l1: 0.0,
            l2: 1.0,
            tolerance: 1e-5,
            target_objective: None,
            max_iterations: 10_000,
            max_table_mib: 1024.0,
            inference: Inference::Exact,
            seed: 0,
            par: Par::Seq,
        }
    }
}

/// How a run went.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainInfo {
    /// What was maximised in the end, such as `mle`, or `composite (combs)`.
    pub estimator: String,
    /// How many components that is; 0 if it has none.
    pub components: usize,
    /// Steps of the pseudolikelihood start.
    pub start_iterations: u64,
    /// The run. Of a disjoint one: the joint objective at the averages, the largest violation of a component's problem, the sum of all steps.
    pub solver: LbfgsInfo,
    /// Whether some inference was too wide to be exact; then the objective is an estimate, or NaN if Gibbs sampling made it.
    pub estimated: bool,
    /// In how many samples belief propagation had not come to rest in the end.
    pub restless: u64,
    /// The log-likelihood at the weights; `None` if exact inference is not cheap.
    pub log_likelihood: Option<f64>,
}

/// Why there are no weights.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TrainError {
    /// No sample has a label that is known.
    NoLabels,
    /// Field and attributes do not fit, or there are too many parameters.
    Field(FieldError),
    /// There is no such objective.
    Objective(ObjectiveError),
    /// The optimiser cannot begin.
    Solver(LbfgsError),
    /// The saved state is of another problem.
    Resume {
        /// Parameters of the state.
        found: usize,
        /// Parameters here.
        expected: usize,
    },
    /// Without penalty the optimum is infinitely far away.
    Unbounded,
    /// Gibbs sampling knows no objective, which L1 penalties and separate problems need.
    Sampled,
    /// Shotgun is for the pseudolikelihood.
    NotLocal(NotLocal),
}

impl fmt::Display for TrainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLabels => write!(f, "no output has a known label: there is nothing to learn from"),
            Self::Field(e) => write!(f, "{e}"),
            Self::Objective(e) => write!(f, "{e}"),
            Self::Solver(e) => write!(f, "{e}"),
            Self::Resume { found, expected } => write!(
                f,
                "the checkpoint has {found} parameters, this problem {expected}: it was made from other data or options"
            ),
            Self::NotLocal(e) => write!(f, "{e}"),
            Self::Sampled => write!(
                f,
                "--inference gibbs goes with joint training and without --l1: use --inference bp, or --estimator composite"
            ),
            Self::Unbounded => write!(
                f,
                "without --l1 and --l2 the weights would grow for ever: the labels are certain given the inputs; give a penalty"
            ),
        }
    }
}

impl std::error::Error for TrainError {}

impl From<ObjectiveError> for TrainError {
    fn from(e: ObjectiveError) -> Self {
        Self::Objective(e)
    }
}

impl From<ComponentError> for TrainError {
    fn from(e: ComponentError) -> Self {
        Self::Objective(e.into())
    }
}

impl From<NotLocal> for TrainError {
    fn from(e: NotLocal) -> Self {
        Self::NotLocal(e)
    }
}

impl From<LbfgsError> for TrainError {
    fn from(e: LbfgsError) -> Self {
        Self::Solver(e)
    }
}

/// The parameters of a field whose templates have so many attributes: all, or those that can be averaged.
///
/// # Errors
/// [`TrainError::Field`].
pub fn index(field: &Field, attributes: &[u32], optimize: Optimize) -> Result<Index, TrainError> {
    match optimize {
        Optimize::Joint => field.index(attributes),
        Optimize::Disjoint => field.reference_index(attributes),
    }
    .map_err(TrainError::Field)
}

/// What is maximised, in the end: a name, and components if it has them.
fn chosen(
    field: &Field,
    index: &Index,
    data: &FieldData,
    params: &TrainParams,
) -> Result<(String, Option<Components>), TrainError> {
    let choice = match &params.estimator {
        Estimator::Mle => return Ok(("mle".into(), Some(Components::mle(field)))),
        Estimator::Pseudo => return Ok(("pseudo".into(), Some(Components::pseudo(field)))),
        Estimator::Piecewise => return Ok(("piecewise".into(), None)),
        Estimator::Composite(choice) => choice,
    };
    let (name, components) = match choice {
        Choice::Auto => {
            let mle = Components::mle(field);
            match Composite::new(field, index, data, &mle, &narrow(params)) {
                Ok(_) => ("mle", mle),
                Err(ObjectiveError::TooWide { .. }) if field.grid().is_some() => {
                    ("combs", Components::combs(field, false)?)
                }
                Err(ObjectiveError::TooWide { .. }) => ("pseudo", Components::pseudo(field)),
                Err(other) => return Err(other.into()),
            }
        }
        Choice::Named(name) => {
            let rounds = match name.as_str() {
                "tree" => Some(1),
                other => other.strip_prefix("tree:").and_then(|n| n.parse().ok()).filter(|&n| n > 0),
            };
            let components = match rounds {
                Some(rounds) => Components::trees(field, rounds, params.seed),
                None => Components::named(name, field)?,
            };
            (name.as_str(), components)
        }
        Choice::Text(text) => ("file", Components::parse(text, field)?),
    };
    Ok((format!("composite ({name})"), Some(components)))
}

fn narrow(params: &TrainParams) -> ObjectiveParams {
    let max_table_mib = params.max_table_mib.min(NARROW_MIB);
    ObjectiveParams { par: params.par, max_table_mib, inference: Inference::Exact }
}

/// Finds weights: those of the state. Inputs: the field, its parameters ([`index`], for the same [`Optimize`]), samples, and where to go on if a run was interrupted
/// (joint only). Stops as `params` says, or when `watch` (each step of a joint run) or `go_on` (each step of each component's problem) returns
/// `false`; the weights are the best so far either way.
///
/// ```
/// use gibbsite::field::train::{Optimize, TrainParams, index, train};
/// use gibbsite::field::{Field, FieldData, Structure};
/// let field = Field::pairwise([2, 2], &Structure::Chain, false)?;
/// let mut data = FieldData::without_inputs(&field);
/// for labels in [[0, 0], [1, 1], [1, 1], [0, 1]] {
///     data.push(&field, &labels, [[]; 0])?;
/// }
/// let index = index(&field, &[1, 1, 1], Optimize::Joint)?;
/// let params = TrainParams::default();
/// let (state, info) = train(&field, &index, &data, &params, None, &mut |_, _| true, &|| true)?;
/// assert_eq!((state.theta().len(), info.estimator.as_str()), (2 + 2 + 4, "mle"));
/// assert!(info.log_likelihood.unwrap() > 4.0 * 0.25f64.ln());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// A [`TrainError`].
pub fn train(
    field: &Field,
    index: &Index,
    data: &FieldData,
    params: &TrainParams,
    resume: Option<State>,
    watch: &mut Watch<'_>,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<(State, TrainInfo), TrainError> {
    if (0..data.samples()).all(|s| data.labels(s).iter().all(|&label| label == super::MISSING)) {
        return Err(TrainError::NoLabels);
    }
    if let Some(found) = resume.as_ref().map(|state| state.theta().len()).filter(|&n| n != index.len()) {
        return Err(TrainError::Resume { found, expected: index.len() });
    }
    let (estimator, components) = chosen(field, index, data, params)?;
    let how =
        ObjectiveParams { par: params.par, max_table_mib: params.max_table_mib, inference: params.inference };
    let mut objective = match &components {
        Some(list) => Datafit::Composite(Box::new(Composite::new(field, index, data, list, &how)?)),
        None => Datafit::Piecewise(Box::new(Piecewise::new(field, index, data, &how)?)),
    };
    let (estimated, _) = objective.estimates();
    let sampled = estimated && matches!(params.inference, Inference::Gibbs { .. });
    if sampled && (params.l1 > 0.0 || params.optimize == Optimize::Disjoint) {
        return Err(TrainError::Sampled);
    }
    let mut start_iterations = 0;
    let start = match (resume, params.start) {
        (Some(state), _) => state,
        (None, Start::Zero) => State::new(vec![0.0; index.len()]),
        (None, Start::Pseudo) => {
            let pseudo = Components::pseudo(field);
            let mut pseudo = Composite::new(field, index, data, &pseudo, &how)?;
            let rough = LbfgsParams {
                tolerance: params.tolerance.max(START_TOLERANCE),
                target_objective: None,
                ..lbfgs(params, params.par)
            };
            let zero = State::new(vec![0.0; index.len()]);
            let (state, info) = minimize(&mut pseudo, zero, &rough, &mut |_, _| go_on())?;
            start_iterations = info.end.iterations;
            State::new(state.into_theta())
        }
    };
    let (state, solver) = match (params.optimize, &components) {
        (Optimize::Disjoint, Some(list)) => {
            let problem = (field, index, data, list);
            let (theta, info) = by_components(problem, params, &how, start.theta(), &mut objective, go_on)?;
            (State::new(theta), info)
        }
        _ if sampled => {
            let rounds = params.max_iterations.min(RobbinsMonroParams::default().rounds);
            let how = RobbinsMonroParams { l2: params.l2, rounds, ..RobbinsMonroParams::default() };
            approximate(&mut objective, start.into_theta(), &how, watch)?
        }
        _ if params.solver == Solver::Shotgun => {
            let Datafit::Composite(composite) = &objective else { return Err(NotLocal.into()) };
            let problem = Local::new(composite, params.par)?;
            local::solve(&problem, start.into_theta(), &shotgun(params, params.par), watch)?
        }
        _ => minimize(&mut objective, start, &lbfgs(params, params.par), watch)?,
    };
    let (_, restless) = objective.estimates();
    drop(objective);
    if solver.is_certain(params.l1, params.l2) {
        return Err(TrainError::Unbounded);
    }
    let log_likelihood = Composite::new(field, index, data, &Components::mle(field), &narrow(params))
        .ok()
        .map(|mut exact| -exact.value_gradient(state.theta(), &mut vec![0.0; index.len()]))
        .filter(|value| value.is_finite());
    let components = components.map_or(0, |list| list.len());
    Ok((
        state,
        TrainInfo { estimator, components, start_iterations, solver, estimated, restless, log_likelihood },
    ))
}

/// What is minimised.
enum Datafit<'a> {
    Composite(Box<Composite<'a>>),
    Piecewise(Box<Piecewise<'a>>),
}

impl Datafit<'_> {
    /// Whether it is an estimate, and in how many samples belief propagation had no rest.
    fn estimates(&self) -> (bool, u64) {
        match self {
            Self::Composite(f) => (f.is_estimated(), f.restless()),
            Self::Piecewise(_) => (false, 0),
        }
    }
}

impl Smooth for Datafit<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Composite(f) => f.len(),
            Self::Piecewise(f) => f.len(),
        }
    }

    fn value_gradient(&mut self, theta: &[f64], gradient: &mut [f64]) -> f64 {
        match self {
            Self::Composite(f) => f.value_gradient(theta, gradient),
            Self::Piecewise(f) => f.value_gradient(theta, gradient),
        }
    }
}

fn lbfgs(params: &TrainParams, par: Par) -> LbfgsParams {
    LbfgsParams {
        l1: params.l1,
        l2: params.l2,
        tolerance: params.tolerance,
        max_iterations: params.max_iterations,
        target_objective: params.target_objective,
        par,
        ..LbfgsParams::default()
    }
}

fn shotgun(params: &TrainParams, par: Par) -> LocalParams {
    LocalParams {
        l1: params.l1,
        l2: params.l2,
        parallel: None,
        tolerance: params.tolerance,
        target_objective: params.target_objective,
        max_iterations: params.max_iterations,
        par,
        seed: params.seed,
    }
}

/// Each component by itself. The penalties apply in each problem.
fn by_components(
    (field, index, data, list): (&Field, &Index, &FieldData, &Components),
    params: &TrainParams,
    how: &ObjectiveParams,
    start: &[f64],
    objective: &mut dyn Smooth,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<(Vec<f64>, LbfgsInfo), TrainError> {
    let begin = Instant::now();
    let runs: Mutex<Vec<LbfgsInfo>> = Mutex::new(Vec::new());
    let alone = if list.len() > 1 { Par::Seq } else { params.par };
    let each = LbfgsParams { target_objective: None, ..lbfgs(params, alone) };
    let by_shotgun = LocalParams { target_objective: None, ..shotgun(params, alone) };
    let averaged = disjoint(field, index, data, list, how, start, |problem, start| {
        let (state, info) = if params.solver == Solver::Shotgun {
            let problem = Local::new(problem, alone)?;
            local::solve(&problem, start.to_vec(), &by_shotgun, &mut |_, _| go_on())?
        } else {
            minimize(problem, State::new(start.to_vec()), &each, &mut |_, _| go_on())?
        };
        if let Ok(mut runs) = runs.lock() {
            runs.push(info);
        }
        Ok::<_, TrainError>(state.into_theta())
    });
    let theta = match averaged {
        Ok(averaged) => averaged.theta,
        Err(DisjointError::Objective(e)) => return Err(e.into()),
        Err(DisjointError::Solver { error, .. }) => return Err(error),
    };
    let runs = runs.into_inner().unwrap_or_default();
    let mut gradient = vec![0.0; theta.len()];
    let value = objective.value_gradient(&theta, &mut gradient);
    let penalty: f64 = theta.iter().map(|t| params.l1 * t.abs() + 0.5 * params.l2 * t * t).sum();
    let worst = [Stop::Interrupted, Stop::Iterations, Stop::Precision];
    let stop = worst.into_iter().find(|stop| runs.iter().any(|run| run.stop == *stop));
    let end = Point {
        iterations: runs.iter().map(|run| run.end.iterations).sum(),
        evaluations: runs.iter().map(|run| run.end.evaluations).sum(),
        objective: value + penalty,
        violation: runs.iter().map(|run| run.end.violation).fold(0.0, f64::max),
        nonzeros: theta.iter().filter(|t| **t != 0.0).count(),
        seconds: begin.elapsed().as_secs_f64(),
    };
    Ok((theta, LbfgsInfo { end, stop: stop.unwrap_or(Stop::Tolerance), trace: vec![end] }))
}
