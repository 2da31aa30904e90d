//! Arguments of `predict` and `eval`.

use super::{Common, Data};
use clap::{Args as Group, ValueEnum};
use std::path::PathBuf;

/// Predict with a model that `--model` wrote
///
/// One prediction a line, in the order of the data: a number (lasso) or a label as in the training data (logistic, sequences; a blank line between
/// sequences), or a row of CSV with the outputs (tables; with --marginals also columns `output:label`). Targets in the data are not looked at, unless --forced. Columns of CSV data are found by their names, in any order; those that the model does not use may be there or not.
#[derive(Debug, Group)]
#[command(after_help = "Examples:
  gibbsite predict --model m.gib new.svm
  gibbsite predict --model m.gib new.csv --probabilities
  gibbsite predict --model chunk.gib --format columns new.txt --scheme bio
  gibbsite predict --model chunk.gib --format columns new.txt --best 5
  gibbsite predict --model weather.gib --format table new.csv --forced --marginals")]
pub(crate) struct Predict {
    /// The model.
    #[arg(long, value_name = "M")]
    pub(crate) model: PathBuf,
    #[command(flatten)]
    pub(crate) data: Data,
    /// After each label, `label:probability` for all labels.
    #[arg(long, visible_alias = "probabilities")]
    pub(crate) marginals: bool,
    /// Sequences: the K best labellings of each, every one after a line `# rank probability`.
    #[arg(long, value_name = "K", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) best: Option<u32>,
    /// Sequences: only labellings that are valid in this scheme.
    #[arg(long, value_enum)]
    pub(crate) scheme: Option<Scheme>,
    /// Sequences: transitions that are not allowed, a line `label<TAB>label` each.
    #[arg(long, value_name = "FILE")]
    pub(crate) forbid: Option<PathBuf>,
    /// Sequences and tables: keep the labels that are known in the data (`?` is not known; in sequences `{A|B}` is one of those).
    #[arg(long)]
    pub(crate) forced: bool,
    /// Sequences: the data has no labels; by default a column too few tells.
    #[arg(long, conflicts_with = "forced")]
    pub(crate) unlabelled: bool,
    /// Tables: mebibytes that exact inference may take, for each thread; beyond, belief propagation estimates.
    #[arg(long, value_name = "M", default_value_t = 1024.0, allow_negative_numbers = true)]
    pub(crate) max_table_mib: f64,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Score a model on data with known targets
///
/// Lasso: R², mean squared and mean absolute error. Logistic: accuracy, area under the ROC curve, log loss (mean of -log p, natural
/// logarithm), and precision, recall and F1 of each label. Sequences: accuracy of items and of whole sequences, log loss (mean over sequences),
/// precision, recall and F1 of each label, and of chunks if labels are BIO or IOBES (conlleval's definition). Tables: accuracy of cells and of
/// whole rows, log loss (mean over rows), precision, recall and F1 of each label. Gaussian CRFs: mean squared error, log loss (mean over rows), CRPS,
/// and the share of outputs within their intervals. Items per second count reading and labelling.
#[derive(Debug, Group)]
#[command(after_help = "Examples:
  gibbsite eval --model m.gib test.svm
  gibbsite eval --model m.gib test.csv --target price --json
  gibbsite eval --model chunk.gib --format columns test.txt
  gibbsite eval --model weather.gib --format table test.csv --json
  gibbsite eval --model wind.gib test.npy --y test-y.npy")]
pub(crate) struct Eval {
    /// The model.
    #[arg(long, value_name = "M")]
    pub(crate) model: PathBuf,
    #[command(flatten)]
    pub(crate) data: Data,
    /// Sequences: only labellings that are valid in this scheme.
    #[arg(long, value_enum)]
    pub(crate) scheme: Option<Scheme>,
    /// Tables: mebibytes that exact inference may take, for each thread; beyond, belief propagation estimates.
    #[arg(long, value_name = "M", default_value_t = 1024.0, allow_negative_numbers = true)]
    pub(crate) max_table_mib: f64,
    /// Gaussian CRFs: the outputs, if the data holds the inputs only; rows may lack some.
    #[arg(long, value_name = "Y")]
    pub(crate) y: Option<PathBuf>,
    /// Gaussian CRFs: the probability of the intervals whose coverage is counted; 0.9 unless said.
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    pub(crate) interval: Option<f64>,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scheme {
    /// `B-X` begins a chunk, `I-X` continues one, `O` is outside.
    Bio,
    /// As bio, `E-X` ends a chunk, `S-X` is one of a single item.
    Iobes,
}
