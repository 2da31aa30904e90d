//! Arguments of `train`.

use super::Common;
use clap::{ArgAction, Args as Group, ValueEnum};
use std::path::PathBuf;

/// Train a conditional random field
///
/// Minimises `-Σ log p(y|x) + C1·‖θ‖₁ + C2/2·‖θ‖₂²`, sums over sequences or rows. (CRFsuite's c1 is C1; its c2 is C2/2, so `--l2 2` here is `c2=1` there.) The run ends when
/// the subdifferential violation, which is 0 at the optimum and nowhere else, is at most `--tolerance` times its value at θ = 0.
///
/// A label `?` in the data is not known; in sequences, `{A|B}` is one of those.
///
/// Tables (`--format table`): CSV with a header, a row an example. Outputs are discrete and are joined by the edges of --structure; a label that is
/// empty or `?` is not known. Inputs are numbers, or discrete if some cell of the column is none. Each output sees a constant and all inputs, or those of
/// --input-map; edges see the constant.
///
/// Exit codes: 0 done; 1 the input is at fault; 2 wrong usage; 3 stopped before the
/// tolerance was met, also by Ctrl-C (the best model so far is written, and says so; Ctrl-C again quits at once).
#[derive(Debug, Group)]
#[command(after_help = "Examples:
  gibbsite train --format crfsuite train.txt --model m.gib
  gibbsite train --format columns --template chunk.tpl train.txt --model chunk.gib --holdout test.txt
  gibbsite train --format crfsuite train.txt.gz --l1 1 --l2 0.1 --model small.gib --json
  gibbsite train --format crfsuite train.txt --cv 5 --l2 0.1,1,10 --plot cv.svg --model m.gib
  gibbsite train --format crfsuite huge.txt --stream --model m.gib --checkpoint m.ckpt --resume
  gibbsite train --format table weather.csv --outputs sky,wind,rain,umbrella --inputs '*' --structure chain --model w.gib
  gibbsite train --format table images.csv --outputs 'p*' --structure grid:20x20 --share --estimator composite --components combs --model i.gib")]
pub(crate) struct Train {
    /// The data, `-` for standard input; `.gz` and `.zst` are read as they are.
    #[arg(value_name = "DATA")]
    pub(crate) data: PathBuf,
    /// How the data is written.
    #[arg(long, value_enum)]
    pub(crate) format: TrainFormat,
    /// Write the model to FILE, for `predict`, `eval` and `inspect`.
    #[arg(long, value_name = "OUT")]
    pub(crate) model: PathBuf,
    /// columns: what attributes to make of the columns, in the notation of CRF++ and Wapiti.
    #[arg(long, value_name = "FILE")]
    pub(crate) template: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) table: TableArgs,
    /// What is maximised.
    #[arg(long, value_enum, default_value_t = Estimator::Mle)]
    pub(crate) estimator: Estimator,
    /// Penalty C1 on the sum of all |θ|: most weights become 0. With --cv a list to choose from, comma separated.
    #[arg(long, value_name = "C1", default_value = "0", value_delimiter = ',', action = ArgAction::Set, allow_negative_numbers = true)]
    pub(crate) l1: Vec<f64>,
    /// Penalty C2 on half the sum of all θ²; 1 if neither this nor --l1 is given. With --cv a list, as for --l1.
    #[arg(long, value_name = "C2", value_delimiter = ',', action = ArgAction::Set, allow_negative_numbers = true)]
    pub(crate) l2: Option<Vec<f64>>,
    /// Choose the penalties by K-fold cross-validation, then train on all data. Tries all pairs of --l1 and --l2, from the strongest to the weakest; if neither is given, --l2
    /// 10,3,1,0.3,0.1,0.03,0.01. The least mean log loss of sequences or rows that were held out is chosen.
    #[arg(long, value_name = "K", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub(crate) cv: Option<u32>,
    /// Draw the held-out log loss against the penalties to FILE.svg; with --cv.
    #[arg(long, value_name = "FILE.svg", requires = "cv")]
    pub(crate) plot: Option<PathBuf>,
    /// How it is solved; `auto` is lbfgs, or owlqn with --l1.
    #[arg(long, value_enum, default_value_t = TrainSolver::Auto)]
    pub(crate) solver: TrainSolver,
    /// Done when the violation is at most T times its value at θ = 0; 1e-5 by default, 1e-8 with --target-objective, which is then what ends the run.
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    pub(crate) tolerance: Option<f64>,
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
    /// sequences: for data larger than memory. Sequences go to a temporary file next to the model, which is read again in every pass; the model is the same.
    #[arg(long)]
    pub(crate) stream: bool,
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

/// Options of tables.
#[derive(Debug, Group)]
pub(crate) struct TableArgs {
    /// table: columns to be predicted, comma separated; `y*` is all that begin with `y`.
    #[arg(long, value_name = "NAMES")]
    pub(crate) outputs: Option<String>,
    /// table: columns to predict from, likewise; `*` is all others. Without it the field has no inputs.
    #[arg(long, value_name = "NAMES")]
    pub(crate) inputs: Option<String>,
    /// table: which outputs are joined: chain, star, full, independent, grid:ROWSxCOLUMNS, or file:EDGES.csv with two outputs a line.
    #[arg(long, value_name = "STRUCTURE")]
    pub(crate) structure: Option<String>,
    /// table: a CSV `output,input` that says which outputs see which inputs; those that are not in it see none.
    #[arg(long, value_name = "FILE")]
    pub(crate) input_map: Option<PathBuf>,
    /// table: one alphabet and one set of weights for all outputs, and one for all edges. The k-th inputs of all outputs share their weights.
    #[arg(long)]
    pub(crate) share: bool,
    /// table: take numbers as (x - mean) / deviation, both of the training data.
    #[arg(long)]
    pub(crate) standardize: bool,
    /// With --estimator composite: auto (mle if exact inference is cheap, as it is for sequences, else combs on grids, else pseudo), mle, pseudo, pairs, k:K (blocks of K) or tree, each
    /// given the labels around it. Tables also: combs, combs-horizontal, combs-both, tree:N, or file:FILE, a component a line, `[WEIGHT *] A [| B]`, outputs by their numbers from 0.
    #[arg(long, value_name = "COMPONENTS")]
    pub(crate) components: Option<String>,
    /// table: all parameters together, or each component by itself, with averages where they overlap.
    #[arg(long, value_enum, default_value_t = Optimize::Joint)]
    pub(crate) optimize: Optimize,
    /// Where to begin.
    #[arg(long, value_enum, default_value_t = Start::Zero)]
    pub(crate) start: Start,
    /// table: what to do with components that are too wide for exact inference, such as all of a large grid with --estimator mle. Exit code 3 if
    /// belief propagation does not come to rest.
    #[arg(long, value_enum, default_value_t = Inference::Exact)]
    pub(crate) inference: Inference,
    /// table: with --inference gibbs, sweeps over all outputs of a row in each step.
    #[arg(long, value_name = "N", default_value_t = 20, allow_negative_numbers = true)]
    pub(crate) sweeps: u32,
    /// table: mebibytes that the tables of exact inference may take, for each thread.
    #[arg(long, value_name = "M", default_value_t = 1024.0, allow_negative_numbers = true)]
    pub(crate) max_table_mib: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TrainFormat {
    /// An item a line, `LABEL<TAB>attribute[:value]<TAB>…`, blank lines between sequences.
    Crfsuite,
    /// Columns separated by spaces or tabs, the label last, blank lines between sequences; needs --template.
    Columns,
    /// CSV with a header, a row an example; needs --outputs and --structure.
    Table,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Estimator {
    /// The likelihood.
    Mle,
    /// The pseudolikelihood: each output given all others.
    Pseudo,
    /// Each factor by itself: fast, not consistent.
    Piecewise,
    /// The composite likelihood of --components.
    Composite,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Optimize {
    /// One problem.
    Joint,
    /// A problem for each component, solved in parallel; weights that several have are averaged.
    Disjoint,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Inference {
    /// Refuse them.
    Exact,
    /// Loopy belief propagation: Bethe's estimate of the objective.
    Bp,
    /// Gibbs sampling: estimates of the gradient, averaged over 200 steps; without --l1.
    Gibbs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Start {
    /// All weights 0.
    Zero,
    /// A rough optimum of the pseudolikelihood.
    Pseudo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TrainSolver {
    /// The fastest that fits the penalties.
    Auto,
    /// Limited-memory BFGS; without --l1.
    Lbfgs,
    /// Limited-memory BFGS for L1 penalties.
    Owlqn,
    /// table, with --estimator pseudo: parallel coordinate descent, for sparse models.
    Shotgun,
    /// sequences: averaged stochastic gradient descent, for --l2 above 0 without --l1. An iteration is a pass over all sequences. Soon near the optimum, but rarely
    /// within the default tolerance: a run that gains next to nothing any more ends with exit code 3.
    Sgd,
}
