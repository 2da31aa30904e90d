//! Queries on a network: partition function, marginals, most probable assignment.
//!
//! [`infer`] conditions on the evidence, looks at what is left and runs an engine of
//! [`gibbsite_core::infer`]: exactly where that fits in memory, approximately and marked as such otherwise.

mod approximate;
mod brute;
mod forest;
pub(crate) mod junction;
mod parts;
mod prepared;

pub use prepared::Prepared;

use crate::data::network::{Evidence, EvidenceError, Network, Reduced};
use crate::par::Par;
use crate::plan::{PlanError, PlanInfo, PlanParams};
use gibbsite_core::error::{GraphError, InferError};
use std::fmt;
use std::time::Instant;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// The partition function: `log Z`, the logarithm of the probability of evidence in a Bayesian network.
    Partition,
    /// The marginal of every variable, and `log Z`.
    Marginals,
    /// A most probable assignment.
    Map,
}

/// How it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Exact if that fits in memory, else belief propagation.
    Auto,
    /// Sum- and max-product on a factor graph without cycles. Exact.
    Tree,
    /// Junction tree. Exact.
    Junction,
    /// Loopy belief propagation.
    Bp,
    /// Tree-reweighted belief propagation: its `log Z` is an upper bound.
    Trw,
    /// Gibbs sampling.
    Gibbs,
    /// Enumeration of all configurations. Exact.
    Brute,
}

impl Method {
    /// The name used on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Tree => "tree",
            Self::Junction => "junction",
            Self::Bp => "bp",
            Self::Trw => "trw",
            Self::Gibbs => "gibbs",
            Self::Brute => "brute",
        }
    }
}

/// Settings of a query.
#[derive(Clone, Copy, Debug)]
pub struct InferParams {
    /// What is asked.
    pub task: Task,
    /// How it is answered.
    pub method: Method,
    /// Mebibytes that the tables of exact inference may take.
    pub max_table_mib: f64,
    /// Threads.
    pub par: Par,
    /// Seed of planning and sampling.
    pub seed: u64,
    /// Most iterations of belief propagation.
    pub max_iterations: u32,
    /// Largest change of a message at which belief propagation has converged.
    pub tolerance: f64,
    /// Share of the old message in a new one.
    pub damping: f64,
    /// Sweeps of the sampler that are averaged, after a tenth as many of burn-in.
    pub sweeps: u32,
}

impl InferParams {
    /// The defaults: automatic method, 4 GiB, all cores.
    pub fn new(task: Task) -> Self {
        Self {
            task,
            method: Method::Auto,
            max_table_mib: 4096.0,
            par: Par::all(),
            seed: 0,
            max_iterations: 1000,
            tolerance: 1e-8,
            damping: 0.5,
            sweeps: 10_000,
        }
    }
}

/// The answer to a query, and how it came about.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// What was asked.
    pub task: Task,
    /// The method that was used; never [`Method::Auto`].
    pub method: Method,
    /// Whether the answer is exact up to rounding.
    pub exact: bool,
    /// Whether an iterative method reached its tolerance; exact methods always do.
    pub converged: bool,
    /// `log Z` (natural logarithm), or its estimate.
    pub log_z: Option<f64>,
    /// Marginals, variable after variable.
    pub marginals: Option<Vec<f64>>,
    /// The assignment.
    pub assignment: Option<Vec<u32>>,
    /// `Σ log ψ` at the assignment.
    pub log_potential: Option<f64>,
    /// Upper bound on the treewidth after evidence, where a junction tree was planned.
    pub treewidth: Option<usize>,
    /// What a person should know about the answer.
    pub notes: Vec<String>,
    /// Seconds from the checked network to the answer, planning included.
    pub seconds: f64,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum QueryError {
    /// The evidence does not fit the network.
    Evidence(EvidenceError),
    /// The evidence has probability zero, or the network allows no configuration.
    ZeroProbability,
    /// Exact inference does not fit in memory.
    TooWide {
        /// What was found about the best junction tree, if one could be planned.
        info: Option<PlanInfo>,
        /// Binary digits of the largest table.
        bits: f64,
        /// Whether marginals were asked for, which need more tables.
        marginals: bool,
        /// The limit in mebibytes.
        limit: f64,
    },
    /// Enumeration would visit more configurations than is sensible.
    TooManyConfigurations {
        /// Logarithm to base 2 of their number.
        bits: f64,
    },
    /// The marginals alone would not fit in memory.
    TooManyLabels {
        /// Sum of all arities.
        labels: u64,
        /// The limit in mebibytes.
        limit: f64,
    },
    /// The method cannot do this.
    Unsuitable(&'static str),
    /// The sampler found no configuration of positive probability to start from.
    NoStart,
    /// An engine failed in a way that is not the user's fault.
    Engine(InferError),
    /// The network's arrays do not fit together.
    Graph(GraphError),
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Evidence(e) => write!(f, "{e}"),
            Self::ZeroProbability => write!(
                f,
                "the evidence has probability zero (log Z = -inf): marginals and the best assignment are undefined"
            ),
            Self::TooWide { info, bits, marginals, limit } => {
                let needed = info.map_or(f64::INFINITY, |info| info.mebibytes(*marginals));
                // Tables that 32 bits cannot address are refused below the limit too.
                let raise = if needed < ADDRESSABLE_MIB { "raise it, or " } else { "" };
                let why = why_too_wide(info.as_ref(), *bits, *marginals, *limit);
                write!(f, "{why}; {raise}use an approximate --method such as bp")
            }
            Self::TooManyConfigurations { bits } => write!(
                f,
                "--method brute would enumerate 2^{bits:.1} configurations (at most 2^{} are allowed); use --method junction",
                brute::MAX_BITS
            ),
            Self::TooManyLabels { labels, limit } => write!(
                f,
                "the variables have {labels} labels in all: one number for each takes {}, \
                 but the limit is {limit} MiB; raise --max-table-mib",
                Mebibytes(labels_mib(*labels))
            ),
            Self::Unsuitable(why) => write!(f, "{why}"),
            Self::NoStart => write!(
                f,
                "the sampler found no configuration of positive probability to start from; use --method junction or bp"
            ),
            Self::Engine(e) => write!(f, "{e}"),
            Self::Graph(e) => write!(f, "{e}"),
        }
    }
}

impl std::error::Error for QueryError {}

/// Tables of 2^32 entries, the most that offsets of 32 bits reach.
const ADDRESSABLE_MIB: f64 = 32768.0;

/// Why exact inference is not possible, without what to do about it.
fn why_too_wide(info: Option<&PlanInfo>, bits: f64, marginals: bool, limit: f64) -> String {
    let Some(info) = info else {
        return format!(
            "exact inference does not fit --max-table-mib {limit}: \
             every elimination order tried needs a table of 2^{bits:.1} entries"
        );
    };
    let (needed, width) = (Mebibytes(info.mebibytes(marginals)), info.treewidth);
    format!(
        "exact inference needs {needed} of tables (treewidth at most {width}, largest 2^{bits:.1} entries), \
         but --max-table-mib is {limit}"
    )
}

/// Mebibytes of one number for each label.
fn labels_mib(labels: u64) -> f64 {
    labels as f64 * 8.0 / f64::from(1 << 20)
}

/// Mebibytes for a person: two digits are enough, rounded up so that a limit of what is shown suffices.
///
/// ```
/// use gibbsite::infer::Mebibytes;
/// assert_eq!(Mebibytes(4096.2).to_string(), "4097 MiB");
/// assert_eq!(Mebibytes(0.000161).to_string(), "0.00017 MiB");
/// assert_eq!(Mebibytes(0.0).to_string(), "0 MiB");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mebibytes(pub f64);

impl fmt::Display for Mebibytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = if self.0 > 0.0 { (1.0 - self.0.log10().floor()).clamp(0.0, 12.0) } else { 0.0 };
        let scale = 10f64.powf(decimals);
        write!(f, "{:.*} MiB", decimals as usize, (self.0 * scale).ceil() / scale)
    }
}

impl From<InferError> for QueryError {
    fn from(error: InferError) -> Self {
        match error {
            InferError::ZeroProbability => Self::ZeroProbability,
            other => Self::Engine(other),
        }
    }
}

impl From<GraphError> for QueryError {
    fn from(error: GraphError) -> Self {
        Self::Graph(error)
    }
}

impl From<EvidenceError> for QueryError {
    fn from(error: EvidenceError) -> Self {
        Self::Evidence(error)
    }
}

/// What an engine found on the reduced network.
#[derive(Debug)]
struct Found {
    method: Method,
    exact: bool,
    converged: bool,
    log_z: Option<f64>,
    marginals: Option<Vec<f64>>,
    assignment: Option<Vec<u32>>,
    treewidth: Option<usize>,
    notes: Vec<String>,
}

impl Found {
    fn exact(method: Method) -> Self {
        Self {
            method,
            exact: true,
            converged: true,
            log_z: None,
            marginals: None,
            assignment: None,
            treewidth: None,
            notes: Vec::new(),
        }
    }
}

/// Answers a query. Evidence is reduced away first, connected components are planned and run by
/// themselves.
///
/// ```
/// use gibbsite::data::network::{Evidence, Network};
/// use gibbsite::infer::{InferParams, Task, infer};
/// let mut net = Network::with_cards([2, 2])?;
/// net.push_factor(&[0, 1], [3f64.ln(), 0.0, 0.0, 3f64.ln()])?;
/// let seen = Evidence::from_pairs([(0, 1)])?;
/// let answer = infer(&net, &seen, &InferParams::new(Task::Marginals))?;
/// assert!(answer.exact);
/// assert!((answer.marginals.unwrap()[3] - 0.75).abs() < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn infer(network: &Network, evidence: &Evidence, params: &InferParams) -> Result<Answer, QueryError> {
    let start = Instant::now();
    let reduced = network.reduce(evidence)?;
    if reduced.constant == f64::NEG_INFINITY {
        return Err(QueryError::ZeroProbability);
    }
    let labels: u64 = network.cards().iter().map(|&c| u64::from(c)).sum();
    // A small limit on tables is a request for an approximation, which needs this much all the same.
    let limit = params.max_table_mib.max(1024.0);
    if labels_mib(labels) > limit {
        return Err(QueryError::TooManyLabels { labels, limit });
    }
    let found = params.par.run(|par| choose(&reduced.network, &InferParams { par, ..*params }))?;
    answer(network, &reduced, params.task, found, start)
}

/// Back from the reduced network to the one that was asked about.
fn answer(
    network: &Network,
    reduced: &Reduced,
    task: Task,
    found: Found,
    start: Instant,
) -> Result<Answer, QueryError> {
    let lost = QueryError::Engine(InferError::Shape);
    let expand_marginals = |m: Vec<f64>| reduced.expand_marginals(&m).ok_or(lost.clone());
    let expand_labels = |l: Vec<u32>| reduced.expand_assignment(&l).ok_or(lost.clone());
    let assignment = found.assignment.map(expand_labels).transpose()?;
    let log_potential = assignment.as_ref().and_then(|labels| network.log_potential(labels));
    Ok(Answer {
        task,
        method: found.method,
        exact: found.exact,
        converged: found.converged,
        log_z: found.log_z.map(|z| z + reduced.constant),
        marginals: found.marginals.map(expand_marginals).transpose()?,
        assignment,
        log_potential,
        treewidth: found.treewidth,
        notes: found.notes,
        seconds: start.elapsed().as_secs_f64(),
    })
}

fn choose(network: &Network, params: &InferParams) -> Result<Found, QueryError> {
    match params.method {
        Method::Tree => forest::run(network, params.task)?.ok_or(QueryError::Unsuitable(
            "--method tree needs a factor graph without cycles, but this one has some; use --method auto",
        )),
        Method::Junction => by_junction(network, params),
        Method::Bp => {
            let mut found = approximate::belief_propagation(network, params)?;
            if !found.exact {
                let note = "belief propagation on a graph with cycles: the answer is an estimate";
                found.notes.push(note.into());
            }
            Ok(found)
        }
        Method::Trw => approximate::tree_reweighted(network, params),
        Method::Gibbs => approximate::gibbs(network, params),
        Method::Brute => brute::run(network, params.task),
        Method::Auto => {
            if let Some(found) = forest::run(network, params.task)? {
                return Ok(found);
            }
            match by_junction(network, params) {
                Err(QueryError::TooWide { info, bits, marginals, limit }) => {
                    let mut found = approximate::belief_propagation(network, params)?;
                    let why = why_too_wide(info.as_ref(), bits, marginals, limit);
                    found.notes.insert(0, format!("{why}. The answer is approximate, by belief propagation"));
                    Ok(found)
                }
                other => other,
            }
        }
    }
}

fn plan_params(seed: u64, par: Par) -> PlanParams {
    let mut params = PlanParams { par, ..PlanParams::default() };
    params.order.seed = seed;
    params
}

fn by_junction(network: &Network, params: &InferParams) -> Result<Found, QueryError> {
    let parts = parts::split(network);
    let forest = planned(&parts, params)?;
    run_junction(network, &parts, &forest, params)
}

/// A junction tree for each part, if all of them fit in memory.
fn planned(parts: &[parts::Part], params: &InferParams) -> Result<junction::Forest, QueryError> {
    let limit = params.max_table_mib;
    let marginals = params.task == Task::Marginals;
    let too_large = |info: PlanInfo| {
        let bits = info.largest_table.log2();
        QueryError::TooWide { info: Some(info), bits, marginals, limit }
    };
    let forest = junction::prepare(parts, &plan_params(params.seed, params.par)).map_err(|e| match e {
        PlanError::TooWide { bits } => QueryError::TooWide { info: None, bits, marginals, limit },
        PlanError::TooLarge { info } => too_large(info),
    })?;
    if forest.info.mebibytes(marginals) > limit { Err(too_large(forest.info)) } else { Ok(forest) }
}

fn run_junction(
    network: &Network,
    parts: &[parts::Part],
    forest: &junction::Forest,
    params: &InferParams,
) -> Result<Found, QueryError> {
    let mut found = Found { treewidth: Some(forest.info.treewidth), ..Found::exact(Method::Junction) };
    match params.task {
        Task::Partition => found.log_z = Some(forest.log_z(parts, params.par)?),
        Task::Marginals => {
            let (log_z, each) = forest.marginals(parts, params.par)?;
            found.log_z = Some(log_z);
            found.marginals = Some(parts::gather_marginals(network, parts, &each));
        }
        Task::Map => {
            let each = forest.assignment(parts, params.par)?;
            found.assignment = Some(parts::gather_labels(network, parts, &each));
        }
    }
    Ok(found)
}

/// What `inspect` tells about a network: how exact inference would go.
#[derive(Clone, Debug, PartialEq)]
pub struct Prospect {
    /// Variables left after evidence and variables of arity 1 are gone.
    pub variables: usize,
    /// Factors left.
    pub factors: usize,
    /// Connected components among them.
    pub components: usize,
    /// Whether the factor graph has no cycle.
    pub forest: bool,
    /// Sizes of the junction tree, or binary digits of the table at which planning gave up.
    pub junction: Result<PlanInfo, f64>,
    /// What [`Method::Auto`] would do.
    pub suggested: Method,
}

/// Looks at a network without running inference on it.
///
/// ```
/// use gibbsite::{data::network::{Evidence, Network}, infer::{Method, inspect}, par::Par};
/// let mut net = Network::with_cards([2, 2])?;
/// net.push_factor(&[0, 1], [0.0; 4])?;
/// let prospect = inspect(&net, &Evidence::new(), 4096.0, 0, Par::Seq)?;
/// assert_eq!(prospect.suggested, Method::Tree);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn inspect(
    network: &Network,
    evidence: &Evidence,
    max_table_mib: f64,
    seed: u64,
    par: Par,
) -> Result<Prospect, QueryError> {
    let reduced = network.reduce(evidence)?.network;
    let parts = parts::split(&reduced);
    let is_forest = forest::is_forest(&reduced)?;
    let junction = match par.run(|par| junction::prepare(&parts, &plan_params(seed, par))) {
        Ok(planned) => Ok(planned.info),
        Err(PlanError::TooLarge { info }) => Ok(info),
        Err(PlanError::TooWide { bits }) => Err(bits),
    };
    let fits = junction.is_ok_and(|info| info.mebibytes(true) <= max_table_mib && info.largest_table < 4e9);
    Ok(Prospect {
        variables: reduced.variables(),
        factors: reduced.factors(),
        components: parts::components(&reduced),
        forest: is_forest,
        junction,
        suggested: match (is_forest, fits) {
            (true, _) => Method::Tree,
            (false, true) => Method::Junction,
            (false, false) => Method::Bp,
        },
    })
}
