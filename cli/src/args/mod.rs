//! Arguments as typed.

mod analyze;
mod data;
mod export;
mod gaussian;
mod import;
mod infer;
mod predict;
mod regress;
mod sample;
mod train;

pub(crate) use analyze::{Analyze, Parallelism, Simulate};
pub(crate) use data::{Data, Format, Storage};
pub(crate) use export::{Attributes, Export, Form, ScalarName};
pub(crate) use gaussian::{CvLoss, Gaussian, GaussianFit, GaussianPredict, GaussianSolver};
pub(crate) use import::Import;
pub(crate) use infer::{Infer, Inspect, Method, Task};
pub(crate) use predict::{Eval, Predict, Scheme};
pub(crate) use regress::{Regress, RegressTask, Rule, Solver};
pub(crate) use sample::Sample;
pub(crate) use train::{Estimator, Inference, Optimize, Start, TableArgs, Train, TrainFormat, TrainSolver};

use clap::{Args as Group, Parser, Subcommand};
use std::path::PathBuf;

/// Learn large conditional random fields on a desk, run them on a microcontroller.
#[derive(Debug, Parser)]
#[command(name = "gibbsite", version, propagate_version = true, max_term_width = 110)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Infer(Infer),
    Train(Train),
    Import(Import),
    Regress(Regress),
    #[command(subcommand)]
    Gaussian(Gaussian),
    Predict(Predict),
    Eval(Eval),
    Sample(Sample),
    #[command(subcommand)]
    Analyze(Analyze),
    Export(Export),
    Inspect(Inspect),
}

/// Options that every command has.
#[derive(Debug, Group)]
pub(crate) struct Common {
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the result to FILE, whole or not at all, instead of to standard output (`-`).
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Threads; all cores by default. The result does not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024), allow_negative_numbers = true)]
    pub(crate) threads: Option<u32>,
    /// Seed of everything random.
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    pub(crate) seed: u64,
    /// No warnings; errors are still told.
    #[arg(long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Say on standard error what was read, done and how long it took.
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

/// A number of bytes: digits, perhaps with a point, and B, KiB, MiB, GiB, KB, MB, GB or nothing.
fn size(typed: &str) -> Result<u64, String> {
    let digits = typed.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(typed.len());
    let (number, unit) = typed.split_at(digits);
    let unit = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kib" => 1024.0,
        "mib" => 1048576.0,
        "gib" => 1073741824.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        _ => return Err("expected a size such as 2GiB or 800MiB".into()),
    };
    match number.parse::<f64>() {
        Ok(number) if number * unit >= 1.0 => Ok((number * unit) as u64),
        _ => Err("expected a size above 0 such as 2GiB or 800MiB".into()),
    }
}
