//! What `infer` and `inspect` need.

use super::{Common, Usage};
use crate::{args, output};
use gibbsite::infer::{InferParams, Method, Task};
use std::path::PathBuf;

#[derive(Debug)]
pub(crate) struct Infer {
    pub(crate) model: PathBuf,
    pub(crate) evidence: Option<PathBuf>,
    pub(crate) params: InferParams,
    pub(crate) common: Common,
}

impl Infer {
    pub(crate) fn check(typed: args::Infer) -> anyhow::Result<Self> {
        let usage = Usage(&["infer"]);
        usage.one_stdin(&[Some(&typed.model), typed.evidence.as_ref()]);
        usage.at_least_0("--max-table-mib", typed.max_table_mib);
        usage.at_least_0("--tolerance", typed.tolerance);
        if !(0.0..1.0).contains(&typed.damping) {
            usage.wrong(&format!("--damping must be from 0 to below 1, but is {}", typed.damping));
        }
        if typed.max_iter == 0 {
            usage.wrong("--max-iter must be at least 1");
        }
        if typed.sweeps == 0 {
            usage.wrong("--sweeps must be at least 1");
        }
        match (typed.method, typed.task) {
            (args::Method::Trw, args::Task::Map) => {
                usage.wrong("--method trw answers pr and mar; for map use bp or gibbs");
            }
            (args::Method::Gibbs, args::Task::Pr) => {
                usage.wrong("--method gibbs answers mar and map; for pr use bp, or trw for an upper bound");
            }
            _ => {}
        }
        let common = Common::from(typed.common);
        output::check(common.output.as_deref())?;
        let task = match typed.task {
            args::Task::Pr => Task::Partition,
            args::Task::Mar => Task::Marginals,
            args::Task::Map => Task::Map,
        };
        let params = InferParams {
            method: match typed.method {
                args::Method::Auto => Method::Auto,
                args::Method::Junction => Method::Junction,
                args::Method::Tree => Method::Tree,
                args::Method::Bp => Method::Bp,
                args::Method::Trw => Method::Trw,
                args::Method::Gibbs => Method::Gibbs,
                args::Method::Brute => Method::Brute,
            },
            max_table_mib: typed.max_table_mib,
            par: common.par,
            seed: common.seed,
            max_iterations: typed.max_iter,
            tolerance: typed.tolerance,
            damping: typed.damping,
            sweeps: typed.sweeps,
            ..InferParams::new(task)
        };
        Ok(Self { model: typed.model, evidence: typed.evidence, params, common })
    }
}

#[derive(Debug)]
pub(crate) struct Inspect {
    pub(crate) file: PathBuf,
    pub(crate) evidence: Option<PathBuf>,
    pub(crate) max_table_mib: f64,
    pub(crate) parameters: bool,
    pub(crate) common: Common,
}

impl Inspect {
    pub(crate) fn check(typed: args::Inspect) -> anyhow::Result<Self> {
        let usage = Usage(&["inspect"]);
        usage.one_stdin(&[Some(&typed.file), typed.evidence.as_ref()]);
        usage.at_least_0("--max-table-mib", typed.max_table_mib);
        let common = Common::from(typed.common);
        output::check(common.output.as_deref())?;
        Ok(Self {
            file: typed.file,
            evidence: typed.evidence,
            max_table_mib: typed.max_table_mib,
            parameters: typed.parameters,
            common,
        })
    }
}
