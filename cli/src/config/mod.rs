//! Arguments, checked: what a command needs, in the library's terms.

mod data;
mod export;
mod gaussian;
mod import;
mod infer;
mod regress;
mod sample;
mod train;

pub(crate) use data::Data;
pub(crate) use export::Export;
pub(crate) use gaussian::{Choice, GaussianFit, GaussianPredict};
pub(crate) use import::Import;
pub(crate) use infer::{Infer, Inspect};
pub(crate) use regress::{Eval, Parallelism, Penalty, Predict, Regress};
pub(crate) use sample::Sample;
pub(crate) use train::{Shape, Train, TrainSequences, TrainTable, TrainTask};

use crate::{args, output};
use clap::CommandFactory;
use clap::error::ErrorKind;
use gibbsite::par::Par;
use std::path::PathBuf;

/// Options that every command has.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) json: bool,
    pub(crate) output: Option<PathBuf>,
    pub(crate) par: Par,
    pub(crate) seed: u64,
    pub(crate) quiet: bool,
    pub(crate) verbose: bool,
}

impl From<args::Common> for Common {
    fn from(typed: args::Common) -> Self {
        Self::from_ref(&typed)
    }
}

impl Common {
    fn from_ref(typed: &args::Common) -> Self {
        Self {
            json: typed.json,
            output: typed.output.clone().filter(|path| path.as_os_str() != "-"),
            par: typed.threads.map_or_else(Par::all, |n| Par::threads(n as usize)),
            seed: typed.seed,
            quiet: typed.quiet,
            verbose: typed.verbose,
        }
    }
}

impl Common {
    /// A line on standard error, unless `--quiet`.
    pub(crate) fn warn(&self, line: &str) {
        if !self.quiet {
            output::say(&format!("warning: {line}"));
        }
    }

    /// A line on standard error with `--verbose`.
    pub(crate) fn log(&self, line: impl FnOnce() -> String) {
        if self.verbose {
            output::say(&line());
        }
    }
}

/// Arguments of this command that do not go together: says so and ends with exit code 2, as clap does for what it
/// finds itself.
struct Usage(&'static [&'static str]);

impl Usage {
    fn one_stdin(&self, files: &[Option<&PathBuf>]) {
        if files.iter().filter(|f| f.is_some_and(|f| f.as_os_str() == "-")).count() > 1 {
            self.wrong("only one file can be `-` (standard input)");
        }
    }

    fn at_least_0(&self, name: &str, value: f64) {
        if !(value >= 0.0 && value.is_finite()) {
            self.wrong(&format!("{name} must be a finite number of at least 0, but is {value}"));
        }
    }

    fn above_0(&self, name: &str, value: f64) {
        if !(value > 0.0 && value.is_finite()) {
            self.wrong(&format!("{name} must be a finite number above 0, but is {value}"));
        }
    }

    fn level(&self, name: &str, value: Option<f64>) {
        if let Some(level) = value.filter(|l| !(*l > 0.0 && *l < 1.0)) {
            self.wrong(&format!("{name} must be above 0 and below 1, but is {level}"));
        }
    }

    /// Plots are SVG only: bitmaps would need a font on the system.
    fn svg(&self, file: Option<&PathBuf>) {
        let is_svg = |f: &PathBuf| f.extension().is_some_and(|e| e.eq_ignore_ascii_case("svg"));
        if let Some(file) = file.filter(|f| !is_svg(f)) {
            self.wrong(&format!(
                "--plot draws SVG: the file must be called *.svg, but is {}",
                file.display()
            ));
        }
    }

    fn wrong(&self, message: &str) -> ! {
        let mut command = args::Args::command();
        command.build();
        let mut own = command;
        for name in self.0 {
            if let Some(next) = own.find_subcommand(name).cloned() {
                own = next;
            }
        }
        own.error(ErrorKind::ValueValidation, message).exit()
    }
}
