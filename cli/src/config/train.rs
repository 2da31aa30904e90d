//! What `train` needs.

use super::{Common, Usage};
use crate::{args, output};
use gibbsite::cv::{DEFAULT_L2, GridParams, Penalties};
use gibbsite::field::Structure;
use gibbsite::field::train as field;
use gibbsite::objective::Inference;
use gibbsite::sequence::train::{Estimator, Generate, Solver, TrainParams};
use std::path::PathBuf;

#[derive(Debug)]
pub(crate) struct Train {
    pub(crate) data: PathBuf,
    pub(crate) task: TrainTask,
    pub(crate) model: PathBuf,
    pub(crate) holdout: Option<PathBuf>,
    pub(crate) checkpoint: Option<PathBuf>,
    pub(crate) resume: bool,
    /// Penalties to choose from, instead of the task's.
    pub(crate) cv: Option<GridParams>,
    pub(crate) plot: Option<PathBuf>,
    pub(crate) common: Common,
}

#[derive(Debug)]
pub(crate) enum TrainTask {
    Sequences(TrainSequences),
    Table(Box<TrainTable>),
}

#[derive(Clone, Debug)]
pub(crate) struct TrainSequences {
    pub(crate) template: Option<PathBuf>,
    pub(crate) min_count: u64,
    /// Sequences go to a temporary file.
    pub(crate) stream: bool,
    pub(crate) params: TrainParams,
}

#[derive(Debug)]
pub(crate) struct TrainTable {
    pub(crate) outputs: String,
    pub(crate) inputs: String,
    pub(crate) input_map: Option<PathBuf>,
    pub(crate) structure: Shape,
    /// The structure as typed, without folders.
    pub(crate) structure_name: String,
    pub(crate) share: bool,
    pub(crate) standardize: bool,
    /// A file to take the components from.
    pub(crate) components: Option<PathBuf>,
    pub(crate) params: field::TrainParams,
}

/// Where the edges come from.
#[derive(Debug)]
pub(crate) enum Shape {
    Known(Structure),
    File(PathBuf),
}

impl TrainTask {
    /// `C₁` and `C₂`.
    pub(crate) fn penalties(&self) -> (f64, f64) {
        match self {
            Self::Sequences(task) => (task.params.l1, task.params.l2),
            Self::Table(task) => (task.params.l1, task.params.l2),
        }
    }
}

impl Train {
    pub(crate) fn check(typed: args::Train) -> anyhow::Result<Self> {
        let usage = Usage(&["train"]);
        let (penalties, cv) = penalties(&usage, &typed);
        let Penalties { l1, l2 } = penalties;
        usage.at_least_0("--tolerance", tolerance(&typed));
        if typed.target_objective.is_some_and(|v| !v.is_finite()) {
            usage.wrong("--target-objective must be a finite number");
        }
        if typed.min_count == 0 {
            usage.wrong("--min-count must be at least 1");
        }
        let sparse = |l1: &f64| *l1 > 0.0;
        match typed.solver {
            args::TrainSolver::Lbfgs if typed.l1.iter().any(sparse) => {
                usage.wrong("--solver lbfgs cannot make weights 0: use owlqn with --l1");
            }
            args::TrainSolver::Owlqn if !typed.l1.iter().all(sparse) => {
                usage.wrong("--solver owlqn is for --l1 above 0: use lbfgs");
            }
            args::TrainSolver::Sgd => check_sgd(&usage, &typed, l2, cv.as_ref()),
            args::TrainSolver::Shotgun => check_shotgun(&usage, &typed),
            _ => {}
        }
        let Common { par, seed, .. } = Common::from_ref(&typed.common);
        let task = match typed.format {
            args::TrainFormat::Crfsuite | args::TrainFormat::Columns => {
                check_sequences(&usage, &typed);
                TrainTask::Sequences(TrainSequences {
                    template: typed.template.clone(),
                    min_count: typed.min_count,
                    stream: typed.stream,
                    params: TrainParams {
                        l1,
                        l2,
                        tolerance: tolerance(&typed),
                        target_objective: typed.target_objective,
                        max_iterations: typed.max_iter,
                        generate: Generate {
                            all_states: typed.all_states,
                            all_transitions: typed.all_transitions,
                            ..Generate::default()
                        },
                        estimator: sequence_estimator(&usage, &typed),
                        start_pseudo: typed.table.start == args::Start::Pseudo,
                        solver: match typed.solver {
                            args::TrainSolver::Sgd => Solver::Sgd,
                            _ => Solver::QuasiNewton,
                        },
                        seed,
                        par,
                        ..TrainParams::default()
                    },
                })
            }
            args::TrainFormat::Table => TrainTask::Table(Box::new(check_table(&usage, &typed, penalties))),
        };
        let files = match &task {
            TrainTask::Sequences(task) => [task.template.as_ref(), None, None],
            TrainTask::Table(task) => {
                let edges = match &task.structure {
                    Shape::File(path) => Some(path),
                    Shape::Known(_) => None,
                };
                [task.input_map.as_ref(), task.components.as_ref(), edges]
            }
        };
        usage.one_stdin(&[&[Some(&typed.data), typed.holdout.as_ref()][..], &files].concat());
        let common = Common::from(typed.common);
        let written = [
            common.output.as_deref(),
            Some(&typed.model),
            typed.checkpoint.as_deref(),
            typed.plot.as_deref(),
        ];
        for file in written {
            output::check(file)?;
        }
        Ok(Self {
            data: typed.data,
            task,
            model: typed.model,
            holdout: typed.holdout,
            checkpoint: typed.checkpoint,
            resume: typed.resume,
            cv,
            plot: typed.plot,
            common,
        })
    }

    /// More folds than there are sequences or rows: wrong usage, though only the data shows it.
    pub(crate) fn too_many_folds(&self, what: &dyn std::fmt::Display) -> ! {
        Usage(&["train"]).wrong(&format!("--cv: {what}"))
    }
}

/// The penalties, or those to choose from.
fn penalties(usage: &Usage, typed: &args::Train) -> (Penalties, Option<GridParams>) {
    let sparse = typed.l1.iter().any(|&l1| l1 != 0.0);
    let l2 = match (&typed.l2, typed.cv) {
        (Some(list), _) => list.clone(),
        (None, _) if sparse => vec![0.0],
        (None, Some(_)) => DEFAULT_L2.to_vec(),
        (None, None) => vec![1.0],
    };
    for (name, list) in [("--l1", &typed.l1), ("--l2", &l2)] {
        list.iter().for_each(|&value| usage.at_least_0(name, value));
        if typed.cv.is_none() && list.len() > 1 {
            usage.wrong(&format!("{name} is a list: one of it can be chosen with --cv K only"));
        }
    }
    usage.svg(typed.plot.as_ref());
    if typed.cv.is_some() && (typed.target_objective.is_some() || typed.checkpoint.is_some()) {
        usage.wrong("--target-objective and --checkpoint are for one run: not with --cv");
    }
    let seed = Common::from_ref(&typed.common).seed;
    let cv = typed.cv.map(|folds| GridParams::new(folds as usize, &typed.l1, &l2, seed));
    let first = |list: &[f64]| list.first().copied().unwrap_or(0.0);
    (Penalties { l1: first(&typed.l1), l2: first(&l2) }, cv)
}

fn check_sgd(usage: &Usage, typed: &args::Train, l2: f64, cv: Option<&GridParams>) {
    if typed.format == args::TrainFormat::Table {
        usage.wrong("--solver sgd is for sequences, not for --format table");
    }
    let tried = cv.map_or(&[][..], |how| &how.grid[..]);
    if typed.l1.iter().any(|&l1| l1 > 0.0) {
        usage.wrong("--solver sgd cannot make weights 0: use owlqn with --l1");
    }
    if l2 == 0.0 || tried.iter().any(|p| p.l2 == 0.0) {
        usage.wrong("--solver sgd needs --l2 above 0: its steps are scaled by it");
    }
    if typed.checkpoint.is_some() {
        usage.wrong("--checkpoint saves runs of lbfgs and owlqn, not of sgd");
    }
}

fn check_shotgun(usage: &Usage, typed: &args::Train) {
    if typed.format != args::TrainFormat::Table {
        usage.wrong("--solver shotgun is for --format table: sequences have owlqn");
    }
    if !matches!(typed.estimator, args::Estimator::Pseudo | args::Estimator::Composite) {
        usage.wrong("--solver shotgun changes one weight at a time: it needs --estimator pseudo");
    }
    if typed.checkpoint.is_some() {
        usage.wrong("--checkpoint saves runs of lbfgs and owlqn, not of shotgun");
    }
}

fn check_sequences(usage: &Usage, typed: &args::Train) {
    match (typed.format, &typed.template) {
        (args::TrainFormat::Columns, None) => {
            usage.wrong("--format columns needs --template: what attributes to make of the columns");
        }
        (args::TrainFormat::Crfsuite, Some(_)) => {
            usage.wrong("--template is for --format columns: crfsuite files hold their attributes already");
        }
        _ => {}
    }
    for (given, name) in
        [(typed.cv.is_some(), "--cv"), (typed.solver == args::TrainSolver::Sgd, "--solver sgd")]
    {
        if given && typed.stream {
            usage.wrong(&format!("{name} needs all sequences in memory: not with --stream"));
        }
    }
    let args::TableArgs { outputs, inputs, structure, input_map, share, optimize, .. } = &typed.table;
    for (given, name) in [
        (outputs.is_some(), "--outputs"),
        (inputs.is_some(), "--inputs"),
        (structure.is_some(), "--structure"),
        (input_map.is_some(), "--input-map"),
        (*share, "--share"),
        (typed.table.standardize, "--standardize"),
        (typed.table.inference != args::Inference::Exact, "--inference"),
        (*optimize != args::Optimize::Joint, "--optimize disjoint"),
    ] {
        if given {
            usage.wrong(&format!("{name} is for --format table"));
        }
    }
}

/// What is maximised over sequences.
fn sequence_estimator(usage: &Usage, typed: &args::Train) -> Estimator {
    let estimator = match typed.estimator {
        args::Estimator::Mle => Estimator::Likelihood,
        args::Estimator::Pseudo => Estimator::Pseudo,
        args::Estimator::Piecewise => Estimator::Piecewise,
        args::Estimator::Composite => {
            let name = typed.table.components.as_deref().unwrap_or("auto");
            return Estimator::components(name).unwrap_or_else(|| {
                usage.wrong(&format!(
                    "--components of sequences must be auto, mle, pseudo, pairs, tree or k:K (blocks of K items), but is `{name}`"
                ))
            });
        }
    };
    if typed.table.components.is_some() {
        usage.wrong("--components is for --estimator composite");
    }
    estimator
}

fn check_table(usage: &Usage, typed: &args::Train, Penalties { l1, l2 }: Penalties) -> TrainTable {
    let table = &typed.table;
    usage.at_least_0("--max-table-mib", table.max_table_mib);
    for (given, name) in [
        (typed.template.is_some(), "--template"),
        (typed.min_count != 1, "--min-count"),
        (typed.all_states, "--all-states"),
        (typed.all_transitions, "--all-transitions"),
        (typed.stream, "--stream"),
    ] {
        if given {
            usage.wrong(&format!("{name} is for sequences, not for --format table"));
        }
    }
    let Some(outputs) = table.outputs.clone() else {
        usage.wrong("--format table needs --outputs: the columns to be predicted");
    };
    let Some(structure_name) = table.structure.clone() else {
        usage.wrong("--format table needs --structure: which outputs are joined, such as chain or grid:RxC");
    };
    let (estimator, components) = estimator(usage, typed);
    let optimize = match table.optimize {
        args::Optimize::Joint => field::Optimize::Joint,
        args::Optimize::Disjoint => {
            if matches!(typed.estimator, args::Estimator::Mle | args::Estimator::Piecewise) {
                usage.wrong("--optimize disjoint is for components: --estimator pseudo or composite");
            }
            if typed.target_objective.is_some() || typed.checkpoint.is_some() || typed.holdout.is_some() {
                usage.wrong(
                    "--target-objective, --checkpoint and --holdout follow one objective: not with --optimize disjoint",
                );
            }
            field::Optimize::Disjoint
        }
    };
    if table.input_map.is_some() && table.inputs.is_none() {
        usage.wrong("--input-map needs --inputs");
    }
    let common = Common::from_ref(&typed.common);
    let params = field::TrainParams {
        estimator,
        optimize,
        solver: match typed.solver {
            args::TrainSolver::Shotgun => field::Solver::Shotgun,
            _ => field::Solver::QuasiNewton,
        },
        start: match table.start {
            args::Start::Zero => field::Start::Zero,
            args::Start::Pseudo => field::Start::Pseudo,
        },
        l1,
        l2,
        tolerance: tolerance(typed),
        target_objective: typed.target_objective,
        max_iterations: typed.max_iter,
        max_table_mib: table.max_table_mib,
        inference: inference(usage, typed, common.seed),
        seed: common.seed,
        par: common.par,
    };
    let (structure, structure_name) = shape(usage, &structure_name);
    TrainTable {
        outputs,
        inputs: table.inputs.clone().unwrap_or_default(),
        input_map: table.input_map.clone(),
        structure,
        structure_name,
        share: table.share,
        standardize: table.standardize,
        components,
        params,
    }
}

fn inference(usage: &Usage, typed: &args::Train, seed: u64) -> Inference {
    let sweeps = typed.table.sweeps;
    if sweeps == 0 {
        usage.wrong("--sweeps must be at least 1");
    }
    match typed.table.inference {
        args::Inference::Exact => Inference::Exact,
        args::Inference::Bp => Inference::Bp,
        args::Inference::Gibbs => {
            let separate = typed.table.optimize != args::Optimize::Joint;
            if typed.l1.iter().any(|&l1| l1 > 0.0) || separate || typed.target_objective.is_some() {
                usage.wrong("--inference gibbs knows gradients, no objective: not with --l1, --optimize disjoint or --target-objective");
            }
            Inference::Gibbs { sweeps, seed }
        }
    }
}

/// The estimator, and the file of its components.
fn estimator(usage: &Usage, typed: &args::Train) -> (field::Estimator, Option<PathBuf>) {
    let estimator = match typed.estimator {
        args::Estimator::Mle => field::Estimator::Mle,
        args::Estimator::Pseudo => field::Estimator::Pseudo,
        args::Estimator::Piecewise => field::Estimator::Piecewise,
        args::Estimator::Composite => {
            return match typed.table.components.as_deref().unwrap_or("auto") {
                "auto" => (field::Estimator::Composite(field::Choice::Auto), None),
                name => match name.strip_prefix("file:") {
                    Some(file) => {
                        let text = field::Choice::Text(String::new());
                        (field::Estimator::Composite(text), Some(PathBuf::from(file)))
                    }
                    None => (field::Estimator::Composite(field::Choice::Named(name.into())), None),
                },
            };
        }
    };
    if typed.table.components.is_some() {
        usage.wrong("--components is for --estimator composite");
    }
    (estimator, None)
}

fn shape(usage: &Usage, typed: &str) -> (Shape, String) {
    if let Some(file) = typed.strip_prefix("file:") {
        let path = PathBuf::from(file);
        let name = path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        return (Shape::File(path), format!("file:{name}"));
    }
    if let "tree:learn" | "sparse:learn" = typed {
        usage.wrong(&format!(
            "--structure {typed} is not there yet: learning of edges comes with `gibbsite structure`; give the edges with file:EDGES.csv"
        ));
    }
    match typed.parse::<Structure>() {
        Ok(structure) => (Shape::Known(structure), typed.to_owned()),
        Err(_) => usage.wrong(&format!(
            "--structure must be chain, star, full, independent, grid:ROWSxCOLUMNS or file:EDGES.csv, but is `{typed}`"
        )),
    }
}

/// As typed, or what suits the goal.
fn tolerance(typed: &args::Train) -> f64 {
    typed.tolerance.unwrap_or(if typed.target_objective.is_some() { 1e-8 } else { 1e-5 })
}
