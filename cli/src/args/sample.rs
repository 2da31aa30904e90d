//! Arguments of `sample`.

use super::{Common, Format};
use clap::Args as Group;
use std::path::PathBuf;

/// Draw labels from a model
///
/// Independent draws from P(y|x), exact: N labellings of each sequence, as `predict` prints them, or N rows of CSV with the outputs for each row of a table. Models of tables without inputs
/// need no data: they give N rows.
#[derive(Debug, Group)]
#[command(after_help = "Examples:
  gibbsite sample --model grid.gib -n 1000 --seed 1 > grids.csv
  gibbsite sample --model chunk.gib new.txt -n 10
  gibbsite sample --model weather.gib new.csv -n 100 --json")]
pub(crate) struct Sample {
    /// The model.
    #[arg(long, value_name = "M")]
    pub(crate) model: PathBuf,
    /// What to draw for, `-` for standard input; `.gz` and `.zst` are read as they are.
    #[arg(value_name = "DATA")]
    pub(crate) data: Option<PathBuf>,
    /// How the data is written; by default as the model's training data.
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
    /// Draws for each sequence or row.
    #[arg(short, value_name = "N", default_value_t = 1, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) n: u32,
    /// Sequences: keep the labels that are known in the data.
    #[arg(long)]
    pub(crate) forced: bool,
    /// Tables: mebibytes that exact inference may take, for each thread.
    #[arg(long, value_name = "M", default_value_t = 1024.0, allow_negative_numbers = true)]
    pub(crate) max_table_mib: f64,
    #[command(flatten)]
    pub(crate) common: Common,
}
