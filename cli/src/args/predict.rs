//! Arguments of `predict` and `eval`.

use super::{Common, Data};
use clap::Args as Group;
use std::path::PathBuf;

/// Predict with a model that `--model` wrote
///
/// One prediction a line, in the order of the data: a number (lasso) or a label as in the training data (logistic). Targets in the data are
/// not looked at. Columns of CSV data are found by their names, in any order; those that the model does not use may be there or not.
#[derive(Debug, Group)]
#[command(after_help = "Examples:
  gibbsite predict --model m.gib new.svm
  gibbsite predict --model m.gib new.csv --probabilities")]
pub(crate) struct Predict {
    /// The model.
    #[arg(long, value_name = "M")]
    pub(crate) model: PathBuf,
    #[command(flatten)]
    pub(crate) data: Data,
    /// After each label, `label:probability` for all labels.
    #[arg(long, visible_alias = "probabilities")]
    pub(crate) marginals: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Score a model on data with known targets
///
/// Lasso: R², mean squared and mean absolute error. Logistic: accuracy, area under the ROC curve, log loss (mean of -log p, natural
/// logarithm), and precision, recall and F1 of each label.
#[derive(Debug, Group)]
#[command(after_help = "Examples:
  gibbsite eval --model m.gib test.svm
  gibbsite eval --model m.gib test.csv --target price --json")]
pub(crate) struct Eval {
    /// The model.
    #[arg(long, value_name = "M")]
    pub(crate) model: PathBuf,
    #[command(flatten)]
    pub(crate) data: Data,
    #[command(flatten)]
    pub(crate) common: Common,
}
