//! What `gaussian fit` and `gaussian predict` need.

use super::{Common, Usage};
use crate::args::{CvLoss, GaussianSolver as Typed};
use crate::{args, output};
use gibbsite::gaussian::cv::{self, GaussianCvParams};
use gibbsite::gaussian::{GaussianParams, GaussianSolver, Theta};
use gibbsite::solver::newton_cd::Schedule;
use std::path::PathBuf;

#[derive(Debug)]
pub(crate) struct GaussianFit {
    pub(crate) x: PathBuf,
    pub(crate) y: PathBuf,
    pub(crate) weights: Option<PathBuf>,
    pub(crate) choice: Choice,
    /// Its `lambda` is filled in later, unless the choice is one λ.
    pub(crate) params: GaussianParams,
    /// The solver's name as typed.
    pub(crate) solver: &'static str,
    pub(crate) model: Option<PathBuf>,
    pub(crate) trace: bool,
    pub(crate) plot: Option<PathBuf>,
    pub(crate) plot_course: Option<PathBuf>,
    pub(crate) common: Common,
}

/// How λ is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Choice {
    One,
    Ratio(f64),
    Path { points: usize, ratio: f64 },
    Cv(GaussianCvParams),
}

impl GaussianFit {
    pub(crate) fn check(typed: args::GaussianFit) -> anyhow::Result<Self> {
        let usage = Usage(&["gaussian", "fit"]);
        usage.one_stdin(&[Some(&typed.x), Some(&typed.y), typed.weights.as_ref()]);
        for (name, value) in [("--lambda", typed.lambda), ("--lambda-theta", typed.lambda_theta)] {
            if let Some(value) = value {
                usage.at_least_0(name, value);
            }
        }
        for (name, value) in [("--lambda-ratio", typed.lambda_ratio), ("--theta-factor", typed.theta_factor)]
        {
            if let Some(value) = value {
                usage.above_0(name, value);
            }
        }
        if !(typed.path_ratio > 0.0 && typed.path_ratio < 1.0) {
            usage.wrong(&format!("--path-ratio must be above 0 and below 1, but is {}", typed.path_ratio));
        }
        usage.at_least_0("--tolerance", typed.tolerance);
        if typed.max_iter == Some(0) {
            usage.wrong("--max-iter must be at least 1");
        }
        usage.svg(typed.plot.as_ref());
        usage.svg(typed.plot_course.as_ref());
        let common = Common::from(typed.common);
        for file in [&common.output, &typed.model, &typed.plot, &typed.plot_course] {
            output::check(file.as_deref())?;
        }
        let points = |n: u32| typed.path.unwrap_or(n) as usize;
        let ratio = typed.path_ratio;
        let choice = match (typed.cv, typed.path, typed.lambda_ratio) {
            (Some(folds), ..) => Choice::Cv(GaussianCvParams {
                folds: folds as usize,
                points: points(20),
                ratio,
                loss: match typed.cv_loss {
                    CvLoss::LogLoss => cv::CvLoss::LogLoss,
                    CvLoss::Mse => cv::CvLoss::Mse,
                },
                contiguous: typed.cv_contiguous,
                seed: common.seed,
            }),
            (None, Some(_), _) => Choice::Path { points: points(20), ratio },
            (None, None, Some(share)) => Choice::Ratio(share),
            (None, None, None) => Choice::One,
        };
        let (solver, name, most) = match typed.solver {
            Typed::Auto => (GaussianSolver::Newton(Schedule::Auto), "auto", 1000),
            Typed::NewtonCd => (GaussianSolver::Newton(Schedule::Joint), "newton-cd", 1000),
            Typed::Alternating => (GaussianSolver::Newton(Schedule::Alternating), "alternating", 1000),
            Typed::Fista => (GaussianSolver::Fista, "fista", 100_000),
            Typed::Owlqn => (GaussianSolver::Owlqn, "owlqn", 100_000),
        };
        if typed.memory.is_some() && !matches!(solver, GaussianSolver::Newton(_)) {
            usage.wrong(&format!("--memory is not for --solver {name}"));
        }
        let params = GaussianParams {
            theta: match (typed.lambda_theta, typed.theta_factor) {
                (Some(value), _) => Theta::Value(value),
                (None, factor) => Theta::Factor(factor.unwrap_or(1.0)),
            },
            diagonal: typed.penalize_diagonal,
            intercept: typed.intercept,
            standardize: typed.standardize,
            refit: typed.refit,
            solver,
            tolerance: typed.tolerance,
            max_iterations: typed.max_iter.unwrap_or(most),
            par: common.par,
            memory: typed.memory,
            ..GaussianParams::new(typed.lambda.unwrap_or(0.0))
        };
        Ok(Self {
            x: typed.x,
            y: typed.y,
            weights: typed.weights,
            choice,
            params,
            solver: name,
            model: typed.model,
            trace: typed.trace,
            plot: typed.plot,
            plot_course: typed.plot_course,
            common,
        })
    }
}

#[derive(Debug)]
pub(crate) struct GaussianPredict {
    pub(crate) model: PathBuf,
    pub(crate) x: PathBuf,
    pub(crate) y: Option<PathBuf>,
    /// The level, if intervals were asked for.
    pub(crate) interval: Option<f64>,
    pub(crate) joint: bool,
    pub(crate) samples: Option<usize>,
    pub(crate) plot: Option<PathBuf>,
    pub(crate) common: Common,
}

impl GaussianPredict {
    pub(crate) fn check(typed: args::GaussianPredict) -> anyhow::Result<Self> {
        let usage = Usage(&["gaussian", "predict"]);
        usage.one_stdin(&[Some(&typed.model), Some(&typed.x), typed.y.as_ref()]);
        usage.level("--interval", typed.interval);
        if typed.joint && typed.interval.is_none() && typed.plot.is_none() {
            usage.wrong("--joint says how wide intervals are: give --interval too");
        }
        usage.svg(typed.plot.as_ref());
        let common = Common::from(typed.common);
        for file in [&common.output, &typed.plot] {
            output::check(file.as_deref())?;
        }
        Ok(Self {
            model: typed.model,
            x: typed.x,
            y: typed.y,
            interval: typed.interval,
            joint: typed.joint,
            samples: typed.samples.map(|n| n as usize),
            plot: typed.plot,
            common,
        })
    }
}
