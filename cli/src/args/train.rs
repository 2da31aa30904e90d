//! Arguments of `train`.

use super::Common;
use clap::{Args as Group, ValueEnum};
use std::path::PathBuf;

/// Train a conditional random field
///
/// Minimises `-Σ log p(y|x) + C1·‖θ‖₁ + C2/2·‖θ‖₂²`, sums over sequences. (CRFsuite's c1 is C1; its c2 is C2/2, so `--l2 2` here is `c2=1` there.) The run ends when
/// the subdifferential violation, which is 0 at the optimum and nowhere else, is at most `--tolerance` times its value at θ = 0.
///
/// A label `?` in the data is not known; `{A|B}` is one of those. Exit codes: 0 done; 1 the input is at fault; 2 wrong usage; 3 stopped before the
/// tolerance was met, also by Ctrl-C (the best model so far is written, and says so; Ctrl-C again quits at once).
#[derive(Debug, Group)]
#[command(after_help = "Examples:
  gibbsite train --format crfsuite train.txt --model m.gib
  gibbsite train --format columns --template chunk.tpl train.txt --model chunk.gib --holdout test.txt
  gibbsite train --format crfsuite train.txt.gz --l1 1 --l2 0.1 --model small.gib --json
  gibbsite train --format crfsuite huge.txt --model m.gib --checkpoint m.ckpt --resume")]
pub(crate) struct Train {
    /// The data, `-` for standard input; `.gz` and `.zst` are read as they are.
    #[arg(value_name = "DATA")]
    pub(crate) data: PathBuf,
    /// How the data is written.
    #[arg(long, value_enum)]
    pub(crate) format: SequenceFormat,
    /// Write the model to FILE, for `predict`, `eval` and `inspect`.
    #[arg(long, value_name = "OUT")]
    pub(crate) model: PathBuf,
    /// columns: what attributes to make of the columns, in the notation of CRF++ and Wapiti.
    #[arg(long, value_name = "FILE")]
    pub(crate) template: Option<PathBuf>,
    /// What is maximised.
    #[arg(long, value_enum, default_value_t = Estimator::Mle)]
    pub(crate) estimator: Estimator,
    /// Penalty C1 on the sum of all |θ|: most weights become 0.
    #[arg(long, value_name = "C1", default_value_t = 0.0, allow_negative_numbers = true)]
    pub(crate) l1: f64,
    /// Penalty C2 on half the sum of all θ²; 1 if neither this nor --l1 is given.
    #[arg(long, value_name = "C2", allow_negative_numbers = true)]
    pub(crate) l2: Option<f64>,
    /// How it is solved; `auto` is lbfgs, or owlqn with --l1.
    #[arg(long, value_enum, default_value_t = TrainSolver::Auto)]
    pub(crate) solver: TrainSolver,
    /// Done when the violation is at most T times its value at θ = 0.
    #[arg(long, value_name = "T", default_value = "1e-5", allow_negative_numbers = true)]
    pub(crate) tolerance: f64,
    /// Done as soon as the objective is at most V.
    #[arg(long, value_name = "V", allow_negative_numbers = true)]
    pub(crate) target_objective: Option<f64>,
    /// Most iterations.
    #[arg(long, value_name = "N", default_value_t = 10_000, allow_negative_numbers = true)]
    pub(crate) max_iter: u64,
    /// Leave out attributes that occur fewer than N times.
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true)]
    pub(crate) min_count: u64,
    /// A weight for every attribute with every label, not only for those seen together (CRFsuite's feature.possible_states).
    #[arg(long)]
    pub(crate) all_states: bool,
    /// A weight for every transition, not only for those seen (CRFsuite's feature.possible_transitions).
    #[arg(long)]
    pub(crate) all_transitions: bool,
    /// Tell the accuracy on FILE after each iteration.
    #[arg(long, value_name = "FILE")]
    pub(crate) holdout: Option<PathBuf>,
    /// Save the state of the run to FILE every minute, and at its end.
    #[arg(long, value_name = "FILE")]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Go on from the checkpoint, if there is one.
    #[arg(long, requires = "checkpoint")]
    pub(crate) resume: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SequenceFormat {
    /// An item a line, `LABEL<TAB>attribute[:value]<TAB>…`, blank lines between sequences.
    Crfsuite,
    /// Columns separated by spaces or tabs, the label last, blank lines between sequences; needs --template.
    Columns,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Estimator {
    /// The likelihood.
    Mle,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TrainSolver {
    /// The fastest that fits the penalties.
    Auto,
    /// Limited-memory BFGS; without --l1.
    Lbfgs,
    /// Limited-memory BFGS for L1 penalties.
    Owlqn,
}
