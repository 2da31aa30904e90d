//! The `gibbsite` command. Arguments as typed ([`args`]) become a checked configuration
//! ([`config`]), which a command ([`cmd`]) runs. Exit codes: 0 done, 1 the input is at fault, 2 wrong
//! usage, 3 stopped before the tolerance was met.

mod args;
mod cmd;
mod config;
mod output;
mod progress;

use clap::Parser;
use std::process::ExitCode;

/// How a command ended, if it did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    /// The result was written, but an iteration stopped before its tolerance was met.
    Unconverged,
}

fn main() -> ExitCode {
    let args = args::Args::parse();
    let result = match args.command {
        args::Command::Infer(typed) => config::Infer::check(typed).and_then(|c| cmd::infer::run(&c)),
        args::Command::Train(typed) => config::Train::check(typed).and_then(|c| cmd::train::run(&c)),
        args::Command::Import(typed) => config::Import::check(typed).and_then(|c| cmd::import::run(&c)),
        args::Command::Regress(typed) => config::Regress::check(typed).and_then(|c| cmd::regress::run(&c)),
        args::Command::Gaussian(args::Gaussian::Fit(typed)) => {
            config::GaussianFit::check(*typed).and_then(|c| cmd::gaussian::fit(&c))
        }
        args::Command::Gaussian(args::Gaussian::Predict(typed)) => {
            config::GaussianPredict::check(typed).and_then(|c| cmd::gaussian::predict(&c))
        }
        args::Command::Predict(typed) => config::Predict::check(typed).and_then(|c| cmd::predict::run(&c)),
        args::Command::Eval(typed) => config::Eval::check(typed).and_then(|c| cmd::eval::run(&c)),
        args::Command::Sample(typed) => config::Sample::check(typed).and_then(|c| cmd::sample::run(&c)),
        args::Command::Analyze(args::Analyze::Parallelism(typed)) => {
            config::Parallelism::check(typed).and_then(|c| cmd::analyze::parallelism(&c))
        }
        args::Command::Export(typed) => config::Export::check(typed).and_then(|c| cmd::export::run(&c)),
        args::Command::Inspect(typed) => config::Inspect::check(typed).and_then(|c| cmd::inspect::run(&c)),
    };
    match result {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Unconverged) => ExitCode::from(3),
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::say(&format!("error: {error:#}"));
            ExitCode::from(1)
        }
    }
}
