//! What `regress`, `predict`, `eval` and `analyze parallelism` need.

use super::{Common, Data, Usage};
use crate::{args, output};
use gibbsite::regress::{Lambda, RegressParams, Solver, Task};
use std::path::PathBuf;

#[derive(Debug)]
pub(crate) struct Regress {
    pub(crate) data: Data,
    pub(crate) penalty: Penalty,
    pub(crate) weights: Option<PathBuf>,
    /// Its `lambda` and `l1_weights` are filled in later, unless the penalty is one `λ`.
    pub(crate) params: RegressParams,
    /// The solver's name as typed.
    pub(crate) solver: &'static str,
    pub(crate) storage: args::Storage,
    pub(crate) model: Option<PathBuf>,
    pub(crate) trace: bool,
    pub(crate) plot: Option<PathBuf>,
    pub(crate) common: Common,
}

/// How the penalty is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Penalty {
    One,
    Path { points: usize, ratio: f64 },
    Cv { folds: usize, points: usize, ratio: f64, rule: args::Rule },
}

impl Regress {
    pub(crate) fn check(typed: args::Regress) -> anyhow::Result<Self> {
        let usage = Usage(&["regress"]);
        usage.one_stdin(&[Some(&typed.data.data), typed.weights.as_ref()]);
        if let Some(lambda) = typed.lambda {
            usage.at_least_0("--lambda", lambda);
        }
        if let Some(ratio) = typed.lambda_ratio {
            usage.at_least_0("--lambda-ratio", ratio);
        }
        if !(typed.path_ratio > 0.0 && typed.path_ratio < 1.0) {
            usage.wrong(&format!("--path-ratio must be above 0 and below 1, but is {}", typed.path_ratio));
        }
        usage.at_least_0("--l2", typed.l2);
        usage.at_least_0("--tolerance", typed.tolerance);
        if typed.max_epochs == Some(0) {
            usage.wrong("--max-epochs must be at least 1");
        }
        usage.svg(typed.plot.as_ref());
        let common = Common::from(typed.common);
        let data = Data::check(&usage, typed.data, typed.cache);
        for file in [&common.output, &typed.model, &typed.plot] {
            output::check(file.as_deref())?;
        }
        let ratio = typed.path_ratio;
        let penalty = match (typed.cv, typed.path) {
            (Some(folds), points) => Penalty::Cv {
                folds: folds as usize,
                points: points.unwrap_or(100) as usize,
                ratio,
                rule: typed.cv_rule,
            },
            (None, Some(points)) => Penalty::Path { points: points as usize, ratio },
            (None, None) => Penalty::One,
        };
        let lambda = match (typed.lambda, typed.lambda_ratio) {
            (Some(value), _) => Lambda::Value(value),
            (None, share) => Lambda::Ratio(share.unwrap_or(1.0)),
        };
        let (solver, name) = solver(typed.solver);
        let params = RegressParams {
            l2: typed.l2,
            standardize: typed.standardize,
            positive: typed.positive,
            intercept: typed.intercept,
            solver,
            parallel: typed.parallel.0,
            tolerance: typed.tolerance,
            max_epochs: typed.max_epochs,
            par: common.par,
            seed: common.seed,
            ..RegressParams::new(task(typed.task), lambda)
        };
        Ok(Self {
            data,
            penalty,
            weights: typed.weights,
            params,
            solver: name,
            storage: typed.storage,
            model: typed.model,
            trace: typed.trace,
            plot: typed.plot,
            common,
        })
    }
}

#[derive(Debug)]
pub(crate) struct Predict {
    pub(crate) model: PathBuf,
    pub(crate) data: Data,
    pub(crate) marginals: bool,
    pub(crate) sequences: SequenceOptions,
    pub(crate) max_table_mib: f64,
    pub(crate) common: Common,
}

/// What only models of sequences know.
#[derive(Debug)]
pub(crate) struct SequenceOptions {
    pub(crate) best: Option<usize>,
    pub(crate) scheme: Option<args::Scheme>,
    pub(crate) forbid: Option<PathBuf>,
    pub(crate) forced: bool,
    pub(crate) unlabelled: bool,
}

impl Predict {
    pub(crate) fn check(typed: args::Predict) -> anyhow::Result<Self> {
        let usage = Usage(&["predict"]);
        usage.at_least_0("--max-table-mib", typed.max_table_mib);
        usage.one_stdin(&[Some(&typed.model), Some(&typed.data.data), typed.forbid.as_ref()]);
        let common = Common::from(typed.common);
        let data = Data::check_any(&usage, typed.data, None);
        output::check(common.output.as_deref())?;
        let sequences = SequenceOptions {
            best: typed.best.map(|k| k as usize),
            scheme: typed.scheme,
            forbid: typed.forbid,
            forced: typed.forced,
            unlabelled: typed.unlabelled,
        };
        let (marginals, max_table_mib) = (typed.marginals, typed.max_table_mib);
        Ok(Self { model: typed.model, data, marginals, sequences, max_table_mib, common })
    }
}

#[derive(Debug)]
pub(crate) struct Eval {
    pub(crate) model: PathBuf,
    pub(crate) data: Data,
    pub(crate) scheme: Option<args::Scheme>,
    pub(crate) max_table_mib: f64,
    /// Outputs of a Gaussian CRF.
    pub(crate) y: Option<PathBuf>,
    pub(crate) interval: Option<f64>,
    pub(crate) common: Common,
}

impl Eval {
    pub(crate) fn check(typed: args::Eval) -> anyhow::Result<Self> {
        let usage = Usage(&["eval"]);
        usage.at_least_0("--max-table-mib", typed.max_table_mib);
        usage.one_stdin(&[Some(&typed.model), Some(&typed.data.data), typed.y.as_ref()]);
        usage.level("--interval", typed.interval);
        let common = Common::from(typed.common);
        let data = Data::check_any(&usage, typed.data, None);
        output::check(common.output.as_deref())?;
        let max_table_mib = typed.max_table_mib;
        let (y, interval) = (typed.y, typed.interval);
        Ok(Self { model: typed.model, data, scheme: typed.scheme, max_table_mib, y, interval, common })
    }
}

#[derive(Debug)]
pub(crate) struct Parallelism {
    pub(crate) data: Data,
    pub(crate) task: Task,
    pub(crate) lambda: Lambda,
    pub(crate) simulate: Option<args::Simulate>,
    pub(crate) runs: u32,
    pub(crate) plot: Option<PathBuf>,
    pub(crate) common: Common,
}

impl Parallelism {
    pub(crate) fn check(typed: args::Parallelism) -> anyhow::Result<Self> {
        let usage = Usage(&["analyze", "parallelism"]);
        for (name, value) in [("--lambda", typed.lambda), ("--lambda-ratio", typed.lambda_ratio)] {
            if let Some(value) = value {
                usage.above_0(name, value);
            }
        }
        usage.svg(typed.plot.as_ref());
        let common = Common::from(typed.common);
        let data = Data::check(&usage, typed.data, None);
        for file in [&common.output, &typed.plot] {
            output::check(file.as_deref())?;
        }
        let lambda = match (typed.lambda, typed.lambda_ratio) {
            (Some(value), _) => Lambda::Value(value),
            (None, share) => Lambda::Ratio(share.unwrap_or(0.1)),
        };
        let (task, runs) = (task(typed.task), typed.runs);
        Ok(Self { data, task, lambda, simulate: typed.simulate, runs, plot: typed.plot, common })
    }
}

fn task(typed: args::RegressTask) -> Task {
    match typed {
        args::RegressTask::Lasso => Task::Lasso,
        args::RegressTask::Logistic => Task::Logistic,
    }
}

fn solver(typed: args::Solver) -> (Solver, &'static str) {
    match typed {
        args::Solver::Auto => (Solver::Auto, "auto"),
        args::Solver::Shotgun => (Solver::Shotgun, "shotgun"),
        args::Solver::Shooting => (Solver::Shooting, "shooting"),
        args::Solver::ShotgunAsync => (Solver::ShotgunAsync, "shotgun-async"),
        args::Solver::Sgd => (Solver::Sgd, "sgd"),
        args::Solver::TruncatedGradient => (Solver::TruncatedGradient, "truncated-gradient"),
        args::Solver::ParallelSgd => (Solver::ParallelSgd, "parallel-sgd"),
        args::Solver::Hybrid => (Solver::Hybrid, "hybrid"),
        args::Solver::Reference => (Solver::Reference, "reference"),
    }
}
