//! What `train` needs.

use super::{Common, Usage};
use crate::{args, output};
use gibbsite::sequence::train::{Generate, TrainParams};
use std::path::PathBuf;

#[derive(Debug)]
pub(crate) struct Train {
    pub(crate) data: PathBuf,
    pub(crate) format: args::SequenceFormat,
    pub(crate) template: Option<PathBuf>,
    pub(crate) min_count: u64,
    pub(crate) params: TrainParams,
    pub(crate) model: PathBuf,
    pub(crate) holdout: Option<PathBuf>,
    pub(crate) checkpoint: Option<PathBuf>,
    pub(crate) resume: bool,
    pub(crate) common: Common,
}

impl Train {
    pub(crate) fn check(typed: args::Train) -> anyhow::Result<Self> {
        let usage = Usage(&["train"]);
        usage.one_stdin(&[Some(&typed.data), typed.template.as_ref(), typed.holdout.as_ref()]);
        usage.at_least_0("--l1", typed.l1);
        let l2 = typed.l2.unwrap_or(if typed.l1 == 0.0 { 1.0 } else { 0.0 });
        usage.at_least_0("--l2", l2);
        usage.at_least_0("--tolerance", typed.tolerance);
        if typed.target_objective.is_some_and(|v| !v.is_finite()) {
            usage.wrong("--target-objective must be a finite number");
        }
        if typed.min_count == 0 {
            usage.wrong("--min-count must be at least 1");
        }
        match (typed.format, &typed.template) {
            (args::SequenceFormat::Columns, None) => {
                usage.wrong("--format columns needs --template: what attributes to make of the columns");
            }
            (args::SequenceFormat::Crfsuite, Some(_)) => {
                usage.wrong(
                    "--template is for --format columns: crfsuite files hold their attributes already",
                );
            }
            _ => {}
        }
        let args::Estimator::Mle = typed.estimator;
        match typed.solver {
            args::TrainSolver::Lbfgs if typed.l1 > 0.0 => {
                usage.wrong("--solver lbfgs cannot make weights 0: use owlqn with --l1");
            }
            args::TrainSolver::Owlqn if typed.l1 == 0.0 => {
                usage.wrong("--solver owlqn is for --l1 above 0: use lbfgs");
            }
            _ => {}
        }
        let common = Common::from(typed.common);
        for file in [common.output.as_deref(), Some(&typed.model), typed.checkpoint.as_deref()] {
            output::check(file)?;
        }
        let params = TrainParams {
            l1: typed.l1,
            l2,
            tolerance: typed.tolerance,
            target_objective: typed.target_objective,
            max_iterations: typed.max_iter,
            generate: Generate { all_states: typed.all_states, all_transitions: typed.all_transitions },
            par: common.par,
            ..TrainParams::default()
        };
        Ok(Self {
            data: typed.data,
            format: typed.format,
            template: typed.template,
            min_count: typed.min_count,
            params,
            model: typed.model,
            holdout: typed.holdout,
            checkpoint: typed.checkpoint,
            resume: typed.resume,
            common,
        })
    }
}
