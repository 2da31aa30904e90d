//! Options of every command that reads a design matrix.

use clap::{Args as Group, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Group)]
pub(crate) struct Data {
    /// The data, `-` for standard input; `.gz` and `.zst` are read as they are.
    #[arg(value_name = "DATA")]
    pub(crate) data: PathBuf,
    /// How the data is written; by default as the model's training data, or csv if the file is called so, else svmlight.
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
    /// svmlight: features are numbered from 0, not from 1.
    #[arg(long)]
    pub(crate) zero_based: bool,
    /// csv: the column that is to be predicted; by default the last.
    #[arg(long, value_name = "NAME")]
    pub(crate) target: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A sample a line: `target feature:value …`, features ascending.
    Svmlight,
    /// Comma-separated numbers under a header with the columns' names.
    Csv,
    /// Sequences: an item a line, `LABEL<TAB>attribute[:value]<TAB>…`, blank lines between sequences.
    Crfsuite,
    /// Sequences: columns separated by spaces or tabs, the label last, blank lines between sequences.
    Columns,
    /// Fields: CSV with a header, a row an example.
    Table,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Storage {
    /// 8 bytes an entry.
    F64,
    /// 4 bytes an entry: less memory traffic; entries are rounded, sums are not.
    F32,
}
