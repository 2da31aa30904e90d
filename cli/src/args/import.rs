//! Arguments of `import`.

use super::Common;
use clap::Args as Group;
use std::path::PathBuf;

/// Take over a model that CRFsuite or CRF++ trained
///
/// Reads CRFsuite's binary model files and CRF++'s text models (`crf_learn -t` writes one beside the binary); which of them FILE is, its first bytes tell. Scores are the
/// same as there; weights of 0 are left out.
#[derive(Debug, Group)]
#[command(after_help = "Examples:
  gibbsite import chunk.crfsuite --model chunk.gib
  gibbsite import model.txt --model chunk.gib && gibbsite predict --model chunk.gib --format columns new.txt")]
pub(crate) struct Import {
    /// The model of the other program, `-` for standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Write the model to FILE, for `predict`, `eval` and `inspect`.
    #[arg(long, value_name = "OUT")]
    pub(crate) model: PathBuf,
    #[command(flatten)]
    pub(crate) common: Common,
}
