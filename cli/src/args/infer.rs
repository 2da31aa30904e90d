//! Arguments of `infer` and `inspect`.

use super::Common;
use clap::{Args as Group, ValueEnum};
use std::path::PathBuf;

/// Answer a query on a factor graph in UAI format: partition function, marginals, best assignment
///
/// The model is a Markov or Bayesian network in UAI format; `-` is standard input, `.gz` and `.zst` are read
/// as they are. Evidence is conditioned on first. The answer is exact whenever the junction tree fits in memory;
/// otherwise `auto` falls back to belief propagation and says so (and "exact" is false in JSON).
///
/// Text output is the UAI result format: `PR` and log10 Z; `MAR` and for each variable its arity and marginals; `MAP` and
/// the assignment. Exit codes: 0 done; 1 the input is at fault (also evidence of probability zero); 2 wrong usage; 3 an
/// approximation stopped before it converged (its result is written all the same).
#[derive(Debug, Group)]
#[command(after_help = "Examples:
  gibbsite infer model.uai --task pr
  gibbsite infer model.uai --evidence model.uai.evid --task mar
  gibbsite infer model.uai.gz --task map --json
  gibbsite infer wide.uai --task pr --method trw        # an upper bound")]
pub(crate) struct Infer {
    /// The model, `-` for standard input.
    #[arg(value_name = "MODEL.uai")]
    pub(crate) model: PathBuf,
    /// What is observed: the number of pairs, then pairs `variable label`, both counted from 0.
    #[arg(long, value_name = "FILE.evid")]
    pub(crate) evidence: Option<PathBuf>,
    /// What is asked.
    #[arg(long, value_enum)]
    pub(crate) task: Task,
    /// How it is answered.
    #[arg(long, value_enum, default_value_t = Method::Auto)]
    pub(crate) method: Method,
    /// Mebibytes that the tables of exact inference may take.
    #[arg(long, value_name = "M", default_value_t = 4096.0, allow_negative_numbers = true)]
    pub(crate) max_table_mib: f64,
    /// bp, trw: most iterations.
    #[arg(long, value_name = "N", default_value_t = 1000, allow_negative_numbers = true)]
    pub(crate) max_iter: u32,
    /// bp, trw: converged when no message changes by more than this.
    #[arg(long, value_name = "T", default_value = "1e-8", allow_negative_numbers = true)]
    pub(crate) tolerance: f64,
    /// bp, trw: share of the old message in a new one, from 0 to below 1.
    #[arg(long, value_name = "D", default_value_t = 0.5, allow_negative_numbers = true)]
    pub(crate) damping: f64,
    /// gibbs: sweeps that are averaged, after a tenth as many of burn-in.
    #[arg(long, value_name = "N", default_value_t = 10_000, allow_negative_numbers = true)]
    pub(crate) sweeps: u32,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Say what a file holds: a model that was trained here, or a UAI model and how inference on it would go
///
/// For a model file (`--model`), what it was trained on and how well; for a UAI model, variables, factors, an upper bound on the treewidth,
/// the memory that exact inference takes and the method that `infer` would choose, without running it.
#[derive(Debug, Group)]
pub(crate) struct Inspect {
    /// The file, `-` for standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// UAI: evidence to condition on before looking.
    #[arg(long, value_name = "FILE.evid")]
    pub(crate) evidence: Option<PathBuf>,
    /// UAI: mebibytes that the tables of exact inference may take.
    #[arg(long, value_name = "M", default_value_t = 4096.0, allow_negative_numbers = true)]
    pub(crate) max_table_mib: f64,
    /// All coefficients too; for UAI models all factors, with their scopes and log-potentials (natural logarithms; a zero is
    /// -inf, null in JSON).
    #[arg(long)]
    pub(crate) parameters: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Task {
    /// The partition function, as log10 Z; for a Bayesian network with evidence, log10 of its probability.
    Pr,
    /// Marginals of all variables.
    Mar,
    /// A most probable assignment.
    Map,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Method {
    /// Exact if it fits in memory, else bp.
    Auto,
    /// Exact, by a junction tree.
    Junction,
    /// Exact, for factor graphs without cycles; linear time.
    Tree,
    /// Loopy belief propagation.
    Bp,
    /// Tree-reweighted belief propagation, for pr and mar; log Z is an upper bound.
    Trw,
    /// Gibbs sampling, for mar and map.
    Gibbs,
    /// Exact, by enumerating all configurations.
    Brute,
}
