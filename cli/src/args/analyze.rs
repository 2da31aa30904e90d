//! Arguments of `analyze`.

use super::{Common, Data, RegressTask};
use clap::{Args as Group, Subcommand};
use std::path::PathBuf;

/// Say in advance how an algorithm would do on some data
#[derive(Debug, Subcommand)]
pub(crate) enum Analyze {
    Parallelism(Parallelism),
}

/// How many coordinates Shotgun can update at a time, and what that gains
///
/// Prints ρ, the spectral radius of AᵀA with columns of norm 1, the thesis' P* = d/ρ (up to which rounds should fall as 1/P), d/(2ρ) (what the
/// proof gives without duplicated features), and the predicted speed-up. With `--simulate` the synchronous algorithm is run at each P, and the rounds to come
/// within 0.5 % of the optimum are counted (Thesis 4.3.2, Fig. 4.2), with their standard error over the runs; each run draws the same coordinates at every P.
#[derive(Debug, Group)]
#[command(after_help = "Examples:
  gibbsite analyze parallelism data.svm
  gibbsite analyze parallelism data.svm --simulate auto --plot speedup.svg
  gibbsite analyze parallelism data.svm --simulate 1,4,16,64 --runs 3 --json")]
pub(crate) struct Parallelism {
    #[command(flatten)]
    pub(crate) data: Data,
    /// --simulate: which regression.
    #[arg(long, value_enum, default_value_t = RegressTask::Lasso)]
    pub(crate) task: RegressTask,
    /// --simulate: the penalty λ.
    #[arg(long, value_name = "L", conflicts_with = "lambda_ratio", allow_negative_numbers = true)]
    pub(crate) lambda: Option<f64>,
    /// --simulate: λ as a share of λ_max; 0.1 by default.
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    pub(crate) lambda_ratio: Option<f64>,
    /// Run the algorithm at these P, or at `auto`: powers of 2 until beyond P*.
    #[arg(long, value_name = "P1,P2,…")]
    pub(crate) simulate: Option<Simulate>,
    /// --simulate: runs that are averaged.
    #[arg(long, value_name = "N", default_value_t = 10, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) runs: u32,
    /// Draw rounds or speed-up against P.
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) plot: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// `auto`, or numbers and commas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Simulate {
    Auto,
    At(Vec<usize>),
}

impl std::str::FromStr for Simulate {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let numbers: Result<Vec<usize>, _> = text.split(',').map(str::parse).collect();
        match numbers {
            Ok(mut list) if !list.contains(&0) => {
                list.sort_unstable();
                list.dedup();
                Ok(Self::At(list))
            }
            _ => Err("expected `auto`, or whole numbers of at least 1 with commas between"),
        }
    }
}
