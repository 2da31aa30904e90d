//! From labelled sequences to a model.

pub use super::parameters::{Data, Generate, index};
pub use crate::objective::estimator::Estimator;

use super::parameters::{observed, unread};
use crate::data::sequences::{Corpus, Supply};
use crate::features::{Index, IndexError};
use crate::model::sequence::{Facts, Origin, SequenceModel};
use crate::objective::sequences::SequenceLikelihood;
use crate::objective::single::SequenceTerms;
use crate::par::Par;
use crate::solver::averaged::{AveragedParams, averaged};
use crate::solver::lbfgs::{LbfgsError, LbfgsInfo, LbfgsParams, Point, Smooth, State, minimize};
use std::fmt;

/// How it is solved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Solver {
    /// L-BFGS, or its proximal form if `C₁ > 0`.
    #[default]
    QuasiNewton,
    /// Averaged stochastic gradient descent, if `C₁ = 0 < C₂`; see [`train`].
    Sgd,
}

/// How to train.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainParams {
    /// `C₁`, weight of `‖θ‖₁`.
    pub l1: f64,
    /// `C₂`, weight of `½‖θ‖²`.
    pub l2: f64,
    /// Done when the subdifferential violation is at most this share of what it is at `θ = 0`.
    pub tolerance: f64,
    /// Done as soon as the objective is not above this.
    pub target_objective: Option<f64>,
    /// Most steps.
    pub max_iterations: u64,
    /// Pairs that L-BFGS remembers.
    pub memory: usize,
    /// Which parameters there are.
    pub generate: Generate,
    /// What is maximised.
    pub estimator: Estimator,
    /// Begin with a rough optimum of the pseudolikelihood (Thesis 5.3.1), unless there is a state to go on from.
    pub start_pseudo: bool,
    /// How it is solved.
    pub solver: Solver,
    /// Seed of the order of sequences, for [`Solver::Sgd`].
    pub seed: u64,
    /// Threads; the result does not depend on them.
    pub par: Par,
}

impl Default for TrainParams {
    /// `C₂ = 1`, tolerance 10⁻⁵, what was seen, one thread.
    fn default() -> Self {
        Self {
            l1: 0.0,
            l2: 1.0,
            tolerance: 1e-5,
            target_objective: None,
            max_iterations: 10_000,
            memory: 16,
            generate: Generate::default(),
            estimator: Estimator::Likelihood,
            start_pseudo: false,
            solver: Solver::QuasiNewton,
            seed: 0,
            par: Par::Seq,
        }
    }
}

/// Why there is no model.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TrainError {
    /// No item has a label that is known.
    NoLabels,
    /// More parameters than can be numbered.
    Index(IndexError),
    /// The optimiser cannot begin.
    Solver(LbfgsError),
    /// The saved state is of another problem.
    Resume {
        /// Parameters of the state.
        found: usize,
        /// Parameters here.
        expected: usize,
    },
    /// Without penalty the optimum may be infinitely far away.
    Unbounded,
    /// Stochastic steps need `C₂ > 0` and cannot make weights 0.
    Stochastic,
    /// Stochastic steps need sequences in memory.
    NotInMemory,
    /// Sequences could not be read back from their file.
    Unread(String),
}

impl fmt::Display for TrainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLabels => write!(f, "no item has a known label: there is nothing to learn from"),
            Self::Index(e) => write!(f, "{e}"),
            Self::Solver(e) => write!(f, "{e}"),
            Self::Resume { found, expected } => write!(
                f,
                "the checkpoint has {found} parameters, this problem {expected}: it was made from other data or options"
            ),
            Self::Unbounded => write!(
                f,
                "without --l1 and --l2 the weights would grow for ever: some label is certain given the attributes; give a penalty"
            ),
            Self::NotInMemory => write!(f, "stochastic gradient descent needs all sequences in memory"),
            Self::Unread(why) => write!(f, "cannot read the temporary file: {why}"),
            Self::Stochastic => write!(f, "stochastic gradient descent needs --l2 above 0, and no --l1"),
        }
    }
}

impl std::error::Error for TrainError {}

/// Is shown each step with a state that can be saved; returns whether to go on.
pub type Watch<'a> = dyn FnMut(&Point, &State) -> bool + 'a;

/// Trains by maximum likelihood, or another [`Estimator`]: minimises `-Σ log p(y|x) + C₁‖θ‖₁ + ½C₂‖θ‖²` ([`SequenceLikelihood`]) with L-BFGS, or its proximal
/// form if `C₁ > 0` ([`minimize`]).
///
/// [`Solver::Sgd`] goes through the sequences one by one instead (Bottou 2010): the first step is calibrated on a sample, the weights of all but the first pass are averaged, and
/// an iteration is a pass. The objective and the violation of the average are evaluated after each, so `converged` means the same as with L-BFGS. A run that gains less than
/// 10⁻⁴ of the objective in each of three passes ends as not converged.
///
/// Inputs: sequences with their alphabet, and where to start: nowhere, or a state of a run that was interrupted. Output: the model, with zeros left out
/// if `C₁ > 0`, and how the run went. Stops as `params` says or when `watch` returns `false`; the model is the best so far either way.
///
/// ```
/// use gibbsite::data::sequences::{Format, ReadParams, read_from};
/// use gibbsite::model::sequence::Origin;
/// use gibbsite::sequence::train::{TrainParams, train};
/// let text = "N\tdog\nV\tbarks\n\nN\tcat\nV\tsleeps\n";
/// let corpus = read_from(text.as_bytes(), &ReadParams::new(Format::Crfsuite))?;
/// let (model, info) = train(&corpus, Origin::Crfsuite, "", &TrainParams::default(), None, &mut |_, _| true)?;
/// assert!(model.facts.converged && info.end.objective < 4.0 * 2f64.ln());
/// assert_eq!(model.index.len(), 4 + 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// A [`TrainError`].
pub fn train(
    corpus: &Corpus,
    origin: Origin,
    data: &str,
    params: &TrainParams,
    start: Option<State>,
    watch: &mut Watch<'_>,
) -> Result<(SequenceModel, LbfgsInfo), TrainError> {
    let index = index(corpus, params.generate)?;
    let trained = train_indexed(corpus, index, origin, data, params, start, watch)?;
    Ok((trained.model, trained.info))
}

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Trained {
    /// The model.
    pub model: SequenceModel,
    /// How the run went.
    pub info: LbfgsInfo,
    /// Where it ended, to go on later.
    pub state: State,
    /// `Σ log p(y|x)` at the weights, whatever was maximised.
    pub log_likelihood: f64,
}

/// As [`train`], for an [`index`](index()) that is there already.
///
/// # Errors
/// A [`TrainError`].
pub fn train_indexed<'a>(
    corpus: impl Into<Data<'a>>,
    index: Index,
    origin: Origin,
    data: &str,
    params: &TrainParams,
    start: Option<State>,
    watch: &mut Watch<'_>,
) -> Result<Trained, TrainError> {
    let Data { sequences, alphabet } = corpus.into();
    let (state, info) = fit(sequences, &index, params, start, watch)?;
    let facts = Facts {
        estimator: params.estimator.to_string(),
        solver: match params.solver {
            Solver::QuasiNewton if params.l1 > 0.0 => "owlqn".into(),
            Solver::QuasiNewton => "lbfgs".into(),
            Solver::Sgd => "sgd".into(),
        },
        l1: params.l1,
        l2: params.l2,
        objective: info.end.objective,
        violation: info.end.violation,
        iterations: info.end.iterations,
        converged: info.stop.is_converged(),
        sequences: sequences.len(),
        items: sequences.items(),
        data: data.into(),
    };
    let theta = state.theta().to_vec();
    let log_likelihood = match params.estimator {
        Estimator::Likelihood => {
            let cost: f64 = theta.iter().map(|w| params.l1 * w.abs() + 0.5 * params.l2 * w * w).sum();
            cost - info.end.objective
        }
        _ => {
            let mut exact = SequenceLikelihood::of(sequences, &index, Estimator::Likelihood, params.par);
            -exact.value_gradient(&theta, &mut vec![0.0; index.len()])
        }
    };
    let model = SequenceModel { alphabet: alphabet.clone(), index, theta, origin, facts };
    let model = if params.l1 > 0.0 { model.compact() } else { model };
    Ok(Trained { model, info, state, log_likelihood })
}

/// Weights for an index.
pub(super) fn fit(
    sequences: Supply<'_>,
    index: &Index,
    params: &TrainParams,
    start: Option<State>,
    watch: &mut Watch<'_>,
) -> Result<(State, LbfgsInfo), TrainError> {
    let start = match start {
        Some(state) => state,
        None if params.start_pseudo && params.estimator != Estimator::Pseudo => {
            // A tenth of a percent is near enough to start from.
            let rough = TrainParams {
                estimator: Estimator::Pseudo,
                tolerance: 1e-3,
                target_objective: None,
                start_pseudo: false,
                ..params.clone()
            };
            State::new(fit(sequences, index, &rough, None, &mut |_, _| true)?.0.into_theta())
        }
        None => State::new(vec![0.0; index.len()]),
    };
    if start.theta().len() != index.len() {
        return Err(TrainError::Resume { found: start.theta().len(), expected: index.len() });
    }
    let mut objective = SequenceLikelihood::of(sequences, index, params.estimator, params.par);
    if params.solver == Solver::Sgd {
        let how = AveragedParams {
            l2: params.l2,
            tolerance: params.tolerance,
            target_objective: params.target_objective,
            max_passes: params.max_iterations,
            seed: params.seed,
        };
        if params.l1 != 0.0 || params.l2 <= 0.0 {
            return Err(TrainError::Stochastic);
        }
        let Supply::Memory(sequences) = sequences else { return Err(TrainError::NotInMemory) };
        let mut terms = SequenceTerms::new(sequences, index, params.estimator);
        return averaged(&mut terms, &mut objective, start.into_theta(), &how, watch)
            .map_err(TrainError::Solver);
    }
    // Curvature grows with how often an attribute is seen with a label, but less than in proportion. Found on CoNLL-2000 chunking: evaluations to CRFsuite's
    // objective 134 without, 111 with the fourth root, 139 with the square root; with L1 the square root did best.
    let power = if params.l1 > 0.0 { 0.5 } else { 0.25 };
    let scale = observed(sequences, index)?
        .into_iter()
        .map(|count| (count.min(f64::MAX) + 2.0).powf(power))
        .collect();
    let how = LbfgsParams {
        l1: params.l1,
        l2: params.l2,
        scale: Some(scale),
        memory: params.memory,
        tolerance: params.tolerance,
        max_iterations: params.max_iterations,
        target_objective: params.target_objective,
        par: params.par,
    };
    let found = minimize(&mut objective as &mut dyn Smooth, start, &how, watch);
    if sequences.failure().is_some() {
        return Err(unread(sequences));
    }
    let (state, info) = found.map_err(TrainError::Solver)?;
    if info.is_certain(params.l1, params.l2) {
        return Err(TrainError::Unbounded);
    }
    Ok((state, info))
}
