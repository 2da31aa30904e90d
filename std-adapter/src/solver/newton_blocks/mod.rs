//! Sparse Gaussian CRFs within a budget of memory: Λ and Θ sparse, slopes by blocks of columns.
//!
//! Objective: `f(Λ, Θ) + λ_Λ‖Λ‖_{1,*} + λ_Θ‖Θ‖₁` with `f` of [`objective::gaussian`](crate::objective::gaussian) (SGCRF eq. 3), the one of [`newton_cd`](super::newton_cd). Input: data, penalties and bytes; output: sparse
//! `Λ` (positive definite) and `Θ`. No matrix of `p × p`, `n × p` or `m × p` is ever held unless the budget has room for it: `X` and `Y` are there, everything else counts. Stops when the subdifferential violation over
//! **all** entries is at most `tolerance`.
//!
//! After McCarter & Kim 2016 ("Large-Scale Optimization Algorithms for Sparse Conditional Gaussian Graphical Models", alternating Newton block coordinate descent): slopes are computed a block of columns at a time and only those that matter are
//! kept (`screen`), then the objective is minimised over these entries (`step`). How ours differs:
//! - Columns of Σ and rows of `K = XΘΣ` are solves with a sparse `L D Lᵀ` in an order of least degree (`ldl`), which the determinant and the test for positive definiteness need anyway, instead of conjugate gradients. Its
//!   entries are counted before it is formed; they have to fit.
//! - With that factor a Hessian product over the entries that may move costs `O(m)` for each of them and each entry of `L` (`samples`), so that one joint Newton step in Λ and Θ takes the place of coordinate sweeps over
//!   pairs of blocks: nothing has to be clustered, and it converges quadratically where alternation does linearly.
//! - Early rounds work with larger penalties (`Penalties::times_at`), so that few entries come in that later leave.

mod active;
mod asked;
mod budget;
mod ldl;
mod precondition;
mod samples;
mod screen;
mod step;

use super::newton_cd::{GaussianWatch, NewtonInfo, NewtonParams, Record, Schedule, Seen};
use crate::linalg::Dense;
use crate::objective::gaussian::Penalties;
use crate::par::Par;
use crate::sparse::Sparse;
use active::{Active, Vector};
pub(crate) use asked::{Debiased, Factored, debias, held_out};
use budget::Budget;
use ldl::{Order, Shape};
use samples::{Ground, Point, Samples};
use screen::{Candidate, Screened, screen};
use step::{Place, StepParams};

/// Settings of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockParams {
    /// What is penalised how much; both penalties are above 0.
    pub penalties: Penalties,
    /// The violation that ends the run.
    pub tolerance: f64,
    /// Most outer iterations: looks at all entries.
    pub max_iterations: u64,
    /// Bytes that it may take beside the data.
    pub bytes: u64,
}

/// Where a run ended.
#[derive(Clone, Debug)]
pub struct BlockSolution {
    /// `Λ`, positive definite, both triangles.
    pub lambda: Sparse,
    /// `Θ`.
    pub theta: Sparse,
    /// Columns of a block, at the least.
    pub columns: usize,
    /// How it went.
    pub info: NewtonInfo,
}

/// Why there is no solution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockError {
    /// The Λ to start from is not positive definite.
    Start,
    /// The entries that are not 0, or the factor of Λ, do not fit.
    Memory {
        /// Bytes that would have been enough at this point.
        need: u64,
    },
}

impl std::fmt::Display for BlockError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Start => write!(f, "the Λ to start from is not positive definite"),
            Self::Memory { need } => write!(f, "at least {} MiB are needed", need.div_ceil(1 << 20)),
        }
    }
}

impl std::error::Error for BlockError {}

/// Steps between two looks at all entries: with larger penalties than those asked for, and with those.
const STEPS: (usize, usize) = (2, 6);
/// The least share of a residual that conjugate gradients are asked to reach.
const FINEST: f64 = 1e-4;
/// The share of the violation over all entries down to which the violation over those that may move is brought.
const SHARE: f64 = 0.02;
/// The largest share of the Hessian's diagonal that is added to it; less as the optimum comes near, so that convergence stays fast.
const DAMPING: f64 = 1e-2;
/// Iterations in a row without a lower violation or a lower objective after which rounding is blamed.
const PATIENCE: u32 = 30;

/// `m × n` inputs and `m × p` outputs that are only looked at.
#[derive(Clone, Copy, Debug)]
pub struct BlockData<'a> {
    /// Inputs.
    pub x: &'a Dense,
    /// Outputs.
    pub y: &'a Dense,
    /// Threads; the result does not depend on them.
    pub par: Par,
}

/// A problem within a budget.
struct Run<'a> {
    samples: Samples<'a>,
    budget: Budget,
    columns: usize,
}

impl<'a> Run<'a> {
    fn new(data: BlockData<'a>, bytes: u64) -> Self {
        let BlockData { x, y, par } = data;
        let budget = Budget::new(bytes, (y.rows(), x.cols(), y.cols()), par.count());
        let x_norm2 = (0..x.cols()).map(|i| x.col(i).iter().map(|v| v * v).sum()).collect();
        let Budget { width, at_once, .. } = budget;
        let samples = Samples { x, y, count: y.rows() as f64, x_norm2, width, at_once, par };
        Self { samples, budget, columns: usize::MAX }
    }

    /// The best diagonal Λ for Θ = 0.
    fn start(&self, penalties: &Penalties) -> (Sparse, Sparse) {
        let y = self.samples.y;
        let extra = if penalties.diagonal { penalties.lambda } else { 0.0 };
        let square = |j: usize| y.col(j).iter().map(|v| v * v).sum::<f64>() / self.samples.count;
        let diagonal = (0..y.cols()).map(|j| (j as u32, j as u32, 1.0 / (square(j) + extra)));
        let (n, p) = (self.samples.x.cols(), y.cols());
        let made = |rows, entries| Sparse::from_entries(rows, p, entries);
        let empty = || Sparse::from_dense(&Dense::zeros(0, 0));
        (made(p, diagonal.collect()).unwrap_or_else(empty), made(n, Vec::new()).unwrap_or_else(empty))
    }

    /// The ground for these entries and as many candidates as fit, of which those furthest beyond their penalties come first.
    fn ground(
        &self,
        (lambda, theta): (&Sparse, &Sparse),
        candidates: &mut Vec<Candidate>,
    ) -> Result<(Ground, Vector), BlockError> {
        let wanted = candidates.len();
        let own = lambda.nonzeros() / 2 + lambda.cols() + theta.nonzeros();
        candidates.sort_unstable_by(|a, b| {
            b.excess.total_cmp(&a.excess).then((a.pair, a.col, a.row).cmp(&(b.pair, b.col, b.row)))
        });
        candidates.truncate(self.budget.most().saturating_sub(own));
        loop {
            let some = |pair: bool| -> Vec<(u32, u32)> {
                candidates.iter().filter(|c| c.pair == pair).map(|c| (c.row, c.col)).collect()
            };
            let (active, at) = Active::new((lambda, theta), &some(true), &some(false));
            let order = Order::new(&active.pairs);
            let entries = order.entries;
            match self.budget.left(&active, entries) {
                Ok(_) if wanted == 0 || !candidates.is_empty() => {
                    let shape = Shape::new(&active.pairs, order);
                    return Ok((self.samples.ground(active, shape), at));
                }
                Err(error) if candidates.is_empty() => return Err(error),
                Ok(_) => {
                    // Not even one more: an eighth more would do for a while.
                    let total = self.budget.total();
                    return Err(BlockError::Memory { need: total + total / 8 + 1024 });
                }
                Err(_) => candidates.truncate(candidates.len() / 2),
            }
        }
    }

    /// All slopes at a point.
    fn look(
        &mut self,
        ground: &Ground,
        point: &Point,
        penalties: &Penalties,
    ) -> Result<Screened, BlockError> {
        let factor = point.factor.below.len() as u64;
        let rows = if self.budget.keep { self.samples.rows() } else { self.samples.width };
        let per_column = screen::bytes_per_column(&self.samples, rows);
        let (columns, most) = self.budget.blocks(&ground.active, factor, per_column)?;
        self.columns = self.columns.min(columns.min(self.samples.y.cols()));
        let means = self.samples.keep(ground, point, self.budget.keep);
        Ok(screen(&self.samples, (ground, point, &means), penalties, (columns, most)))
    }

    /// A Newton step in the entries of the ground; the same point, and true, if the violation over them is at most `enough` or no step leads down.
    fn step(&self, ground: &Ground, point: Point, penalties: &Penalties, how: &Exactness) -> (Point, bool) {
        let means = self.samples.keep(ground, &point, self.budget.keep);
        let slopes = self.samples.slopes(ground, &point, &means);
        let violation = ground.active.violation(&point.at, &slopes.of, penalties);
        if violation <= how.enough {
            drop(means);
            return (point, true);
        }
        // More exact as the optimum comes near, but not more than the tolerance needs.
        let wanted = (0.5 * violation / how.scale).clamp(FINEST, 0.1);
        let reduction = wanted.max(0.3 * how.tolerance / violation).min(0.3);
        let damping = DAMPING * (violation / how.scale).min(1.0);
        let objective = point.value + ground.active.penalty(&point.at, penalties);
        let rounding = 1e-13 * (objective.abs() + self.samples.y.cols() as f64);
        let place = Place { samples: &self.samples, ground, point: &point, means: &means, slopes: &slopes };
        let next = place.step(penalties, &StepParams { reduction, damping, rounding });
        drop(means);
        next.map_or((point, true), |next| (next, false))
    }

    /// The same without the entries that are 0, if those are many: they cost as much as the others.
    fn prune(&self, ground: Ground, point: Point) -> Result<(Ground, Point), BlockError> {
        let gone = point.at.lambda.iter().chain(&point.at.theta).filter(|v| **v == 0.0).count();
        if gone < ground.active.len() / 5 {
            return Ok((ground, point));
        }
        let (lambda, theta) = ground.active.matrices(&point.at, self.samples.x.cols());
        drop((ground, point));
        let (ground, at) = self.ground((&lambda, &theta), &mut Vec::new())?;
        let point = self.samples.point(&ground, at).ok_or(BlockError::Start)?;
        Ok((ground, point))
    }
}

/// When steps are good enough.
struct Exactness {
    /// The violation that ends them.
    enough: f64,
    /// That of the whole run.
    tolerance: f64,
    /// The size of penalties: violations are compared with it.
    scale: f64,
}

/// What a record looks at.
fn limits(params: &BlockParams) -> NewtonParams {
    let BlockParams { penalties, tolerance, max_iterations, bytes } = *params;
    NewtonParams { penalties, tolerance, max_iterations, schedule: Schedule::Auto, preconditioner: bytes }
}

/// Minimises from a given start, or from the best diagonal Λ; inside [`Par::run`].
///
/// ```
/// use gibbsite::objective::gaussian::Penalties;
/// use gibbsite::solver::newton_blocks::{BlockData, BlockParams, minimize};
/// use gibbsite::{linalg::Dense, par::Par};
/// let y = Dense::from_fn(4, 1, |i, _| [1.0, -1.0, 2.0, -2.0][i]);
/// let x = Dense::from_fn(4, 1, |i, _| [0.0, 0.0, 1.0, -1.0][i]);
/// let penalties = Penalties { lambda: 0.1, theta: 5.0, diagonal: false };
/// let params = BlockParams { penalties, tolerance: 1e-9, max_iterations: 100, bytes: 1 << 20 };
/// let found = minimize(BlockData { x: &x, y: &y, par: Par::Seq }, None, &params, None)?;
/// assert!((found.lambda.get(0, 0) - 0.4).abs() < 1e-9); // one over the mean square of y
/// assert_eq!(found.theta.nonzeros(), 0);
/// # Ok::<(), gibbsite::solver::newton_blocks::BlockError>(())
/// ```
///
/// # Errors
/// [`BlockError::Start`] if the start is not positive definite, [`BlockError::Memory`] if what is not 0 does not fit.
pub fn minimize(
    data: BlockData<'_>,
    start: Option<(Sparse, Sparse)>,
    params: &BlockParams,
    watch: Option<&GaussianWatch<'_>>,
) -> Result<BlockSolution, BlockError> {
    let penalties = &params.penalties;
    let mut run = Run::new(data, params.bytes);
    let inputs = data.x.cols();
    let (lambda, theta) = start.unwrap_or_else(|| run.start(penalties));
    let (mut ground, at) = run.ground((&lambda, &theta), &mut Vec::new())?;
    drop((lambda, theta));
    let mut point = run.samples.point(&ground, at).ok_or(BlockError::Start)?;
    let mut record = Record::new(watch);
    let limits = limits(params);
    let (mut iterations, mut times) = (0, f64::INFINITY);
    let scale = penalties.lambda.max(penalties.theta);
    loop {
        let Screened { violation, mut candidates, .. } = run.look(&ground, &point, penalties)?;
        let objective = point.value + ground.active.penalty(&point.at, penalties);
        let (lambda, theta) = ground.active.matrices(&point.at, inputs);
        let nonzeros = (lambda.nonzeros(), theta.nonzeros());
        let seen = Seen { objective, violation, nonzeros, outputs: data.y.cols() };
        if let Some(stop) = record.judge(seen, &limits, iterations, PATIENCE) {
            let info = record.info(stop, iterations);
            return Ok(BlockSolution { lambda, theta, columns: run.columns, info });
        }
        // Never up again.
        times = penalties.times_at(violation).min(times);
        if times > 1.0 {
            candidates.retain(|c| f64::from(c.excess) > times);
        }
        drop((ground, point));
        let (next, at) = run.ground((&lambda, &theta), &mut candidates)?;
        drop((lambda, theta, candidates));
        ground = next;
        point = run.samples.point(&ground, at).ok_or(BlockError::Start)?;
        let how = Exactness {
            enough: (0.5 * params.tolerance).max(SHARE * violation),
            tolerance: params.tolerance,
            scale,
        };
        let stage = penalties.scaled(times);
        for _ in 0..if times > 1.0 { STEPS.0 } else { STEPS.1 } {
            let (next, done) = run.step(&ground, point, &stage, &how);
            (ground, point) = run.prune(ground, next)?;
            if done {
                break;
            }
        }
        iterations += 1;
    }
}

/// The largest slopes of entries of Λ beside the diagonal and of Θ where Λ is the best diagonal one and Θ is 0: what `λ_max` follows from. By blocks of columns; inside [`Par::run`].
///
/// # Errors
/// [`BlockError::Memory`] if there is no room for one.
pub fn largest_slopes(data: BlockData<'_>, bytes: u64) -> Result<(f64, f64), BlockError> {
    let none = Penalties { lambda: f64::INFINITY, theta: f64::INFINITY, diagonal: false };
    let mut run = Run::new(data, bytes);
    let (lambda, theta) = run.start(&none);
    let (ground, at) = run.ground((&lambda, &theta), &mut Vec::new())?;
    let point = run.samples.point(&ground, at).ok_or(BlockError::Start)?;
    Ok(run.look(&ground, &point, &none)?.largest)
}
