//! The `auto` solver: working sets, lazily bounded correlations, gap-safe screening, second-order inner solves.
//!
//! Minimises `F` of [`Problem`]. Each outer iteration
//! 1. takes the dual point `θ = -∇L(z)` (orthogonal to what has no penalty) and brings up to date the products `a_jᵀθ` that can matter
//!    (`correlation.rs`);
//! 2. scales it to be feasible, computes the duality gap with the best dual point so far, and **stops when `gap ≤ params.gap`**;
//! 3. drops columns that the gap proves to be zero;
//! 4. chooses as working set the non-zero weights and the columns that promise the largest decrease, `(|a_jᵀθ| - λ_j)₊²/‖a_j‖²`, as many again as
//!    there are non-zeros;
//! 5. solves on it: for the squared loss coordinate descent with conjugate gradients (`descent.rs`), for others proximal Newton steps whose
//!    quadratics are solved that way (`newton.rs`), in terms of residuals or of the Gram matrix, whichever is cheaper (`quadratic.rs`, `gram.rs`).
//!
//! Inputs: a problem, a start. Output: weights with a certificate. After Johnson & Guestrin 2015 (Blitz), Massias et al. 2018 (celer), Ndiaye et al. 2017 and
//! Bertrand et al. 2022 (skglm); ours differs in the bounds that make most passes over the data unnecessary, in conjugate gradients
//! where they extrapolate, and in the Gram form. Nothing depends on the number of threads.

mod by_gram;
mod correlation;
mod descent;
mod gram;
mod newton;
mod predict;
mod quadratic;
mod sweep;

use super::monitor::{Monitor, Point, Stop};
use super::{Info, Solution};
use crate::par::Par;
use crate::regress::certificate::{self, Certificate, dual_value, orthogonal};
use crate::regress::problem::{Problem, Weights};
use correlation::Correlations;
use descent::{Limits, Scratch};
use gibbsite_core::column::Column;
use gibbsite_core::loss::Loss;
use gibbsite_core::math::Real;
use gibbsite_core::penalty::Penalty;
use gram::GramTable;
use predict::Past;
use quadratic::PARTS;

/// How to run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkingSetParams {
    /// Stop when the duality gap is no larger.
    pub gap: f64,
    /// Most passes over all coordinates, counted in updates.
    pub max_epochs: u64,
}

/// A problem with what is known about it from one `λ` to the next.
#[derive(Debug)]
pub struct WorkingSet<'a, L, V> {
    problem: Problem<'a, L, V>,
    par: Par,
    weights: Weights,
    /// Columns whose weights are not zero, ascending.
    support: Vec<u32>,
    /// `Ax + b`.
    z: Vec<f64>,
    /// The loss there.
    loss: f64,
    correlations: Correlations,
    lambda_max: f64,
    /// A column of ones, for the intercept.
    ones: Vec<V>,
    scratch: Scratch,
    gram: GramTable,
    /// `-∇L(z)`, `∇²L(z)`, a trial of `z` and how it moves: memory for one number a row, allocated once.
    u: Vec<f64>,
    curvature: Vec<f64>,
    trial: Vec<f64>,
    moved: Vec<f64>,
    parts: [Vec<f64>; PARTS],
    past: Option<Past>,
    /// Penalties solved for so far.
    solved: u32,
}

/// The working columns of one outer iteration.
struct Block<'a, V> {
    /// Column numbers; the intercept, if there is one, comes before the first.
    set: Vec<u32>,
    columns: Vec<Column<'a, V>>,
    penalties: Vec<Penalty<f64>>,
    x: Vec<f64>,
    /// `‖a_j‖²`.
    norm2: Vec<f64>,
    /// `-a_jᵀu` with `u = -∇L(z)`, if that is known.
    slopes: Option<Vec<f64>>,
    /// Stored entries of all columns.
    entries: u64,
    /// Whether every promising column is in it.
    complete: bool,
}

impl<'a, L: Loss, V: Real> WorkingSet<'a, L, V> {
    /// Starts at the null model: everything with a penalty is 0.
    pub fn new(problem: Problem<'a, L, V>, par: Par) -> Self {
        let (free, intercept, z) = certificate::null_model(&problem);
        let mut weights = Weights::zero(problem.matrix.columns());
        weights.intercept = intercept;
        // Zeros that nobody wrote are not there yet: the first weights that are stored would wait for their pages one by one.
        par.fill(&mut weights.x, 1 << 14, |_| 0.0);
        free.iter().for_each(|&(j, x)| weights.x[j] = x);
        let support = (0..weights.x.len() as u32).filter(|&j| weights.x[j as usize] != 0.0).collect();
        let (residual, loss) = (problem.residual(&z), problem.loss_at(&z, par));
        let correlations = Correlations::new(&problem, &residual, par);
        let lambda_max = certificate::largest_useful(&problem, &correlations.value);
        let ones = if problem.intercept { vec![V::one(); problem.matrix.rows()] } else { Vec::new() };
        Self {
            problem,
            par,
            weights,
            support,
            u: Vec::new(),
            curvature: Vec::new(),
            trial: vec![0.0; z.len()],
            moved: vec![0.0; z.len()],
            z,
            loss,
            correlations,
            lambda_max,
            ones,
            scratch: Scratch::default(),
            gram: GramTable::default(),
            parts: Default::default(),
            past: None,
            solved: 0,
        }
    }

    /// The least `λ` with an all-zero optimum.
    pub fn lambda_max(&self) -> f64 {
        self.lambda_max
    }

    /// Solves for `lambda`, from where the last call ended.
    pub fn solve(&mut self, lambda: f64, params: &WorkingSetParams, monitor: &mut Monitor<'_>) -> Solution {
        self.predict(lambda);
        let ones = std::mem::take(&mut self.ones);
        let solution = self.run(lambda, params, monitor, &ones);
        self.ones = ones;
        self.solved += 1;
        solution
    }

    fn run(
        &mut self,
        lambda: f64,
        params: &WorkingSetParams,
        monitor: &mut Monitor<'_>,
        ones: &[V],
    ) -> Solution {
        self.problem.lambda = lambda;
        self.correlations.revive();
        let problem = self.problem;
        let columns = problem.matrix.columns();
        let mut info = Info {
            iterations: 0,
            epochs: 0.0,
            updates: 0,
            entries: 0,
            parallel: 1,
            backoffs: 0,
            stop: Stop::Tolerance,
        };
        let mut dual = f64::NEG_INFINITY;
        let mut forcing = 0.1;
        let (mut stalled, mut best_gap) = (0, f64::INFINITY);
        loop {
            problem.residual_to(&self.z, &mut self.u, self.par);
            let free = problem.free_columns(&self.weights.x);
            let plain = !problem.intercept && free.is_empty();
            if !plain {
                self.u = orthogonal(&problem, std::mem::take(&mut self.u), &free);
            }
            info.entries += self.correlations.update(&problem, &mut self.u, self.par);
            let objective = self.loss + self.cost(&problem);
            let (scale, here) = self.dual(&free);
            dual = dual.max(here);
            let certificate = Certificate {
                objective,
                dual,
                gap: (objective - dual).max(0.0),
                violation: self.violation(),
            };
            info.epochs = info.updates as f64 / columns.max(1) as f64;
            let gap = certificate.gap;
            let nonzeros = self.support.len();
            let point = Point {
                seconds: 0.0,
                iterations: info.iterations,
                updates: info.updates,
                lambda,
                objective,
                gap,
                nonzeros,
            };
            let unbounded = !L::QUADRATIC
                && problem.l2 == 0.0
                && lambda == 0.0
                && self.z.iter().zip(problem.target).all(|(z, y)| z * y > 0.0);
            let stuck = stalled >= 6;
            let exhausted = !stuck && info.epochs >= params.max_epochs as f64;
            let verdict = monitor.verdict(point, params.gap, exhausted, stuck);
            if let Some(stop) = if unbounded { Some(Stop::Unbounded) } else { verdict } {
                info.stop = stop;
                return Solution { weights: self.weights.clone(), certificate, info };
            }
            if problem.l2 == 0.0 && here > f64::NEG_INFINITY {
                let radius = (2.0 * L::SMOOTHNESS * (objective - here).max(0.0)).sqrt();
                self.correlations.screen(lambda, scale, radius);
            }
            let set = self.choose(nonzeros);
            let mut block = self.block(set, ones);
            if plain {
                block.slopes =
                    Some(block.set.iter().map(|&j| -self.correlations.product(&problem, j)).collect());
            }
            // A set that is known to be too small is not worth solving, unless not solving it leads nowhere.
            let whole = block.complete || forcing < 0.1;
            let limits = Limits {
                gap: (forcing * gap).max(0.3 * params.gap),
                sweeps: if whole { SWEEPS } else { 4 },
                entries: u64::MAX,
                steps: if whole { 50 } else { 1 },
            };
            let effort = if L::QUADRATIC {
                self.least_squares(&mut block, limits)
            } else {
                self.newton(&mut block, limits)
            };
            self.store(&block);
            info.iterations += 1;
            info.updates += effort.updates;
            info.entries += effort.entries;
            // By the gap: it still shrinks where the objective has nothing left to lose but rounding.
            stalled = if gap < 0.9 * best_gap || effort.decrease > 1e-12 * objective.abs() {
                0
            } else {
                stalled + 1
            };
            best_gap = gap.min(best_gap);
            // Hardly better, and yet far from optimal: the set was not solved precisely enough to tell what is missing from it.
            forcing = if effort.decrease < 0.03 * gap { (forcing * 0.1).max(1e-6) } else { 0.1 };
        }
    }

    /// How far `θ` is stretched, and the dual objective there.
    fn dual(&self, free: &[usize]) -> (f64, f64) {
        let (problem, c) = (&self.problem, &self.correlations);
        let fresh = c.fresh.iter().map(|&j| j as usize).filter(|j| free.binary_search(j).is_err());
        // Columns that are not fresh are covered by their penalties as long as θ is not stretched beyond itself.
        dual_value(problem, &c.theta, fresh.map(|j| (j, c.value[j])), 1.0, self.par)
    }

    /// What the weights cost with the penalties of `problem`.
    fn cost(&self, problem: &Problem<'_, L, V>) -> f64 {
        let cost = |&j: &u32| problem.penalty(j as usize).value(self.weights.x[j as usize]);
        self.support.iter().map(cost).sum()
    }

    fn violation(&self) -> f64 {
        let c = &self.correlations;
        let worst = |j: usize| self.problem.penalty(j).violation(self.weights.x[j], -c.value[j]);
        c.fresh.iter().map(|&j| worst(j as usize)).fold(0.0, f64::max)
    }

    /// The smaller the penalty, the more weights there will be: up to four times as many as at a tenth of `λ_max`.
    fn more(&self) -> f64 {
        (0.1 * self.lambda_max / self.problem.lambda.max(0.025 * self.lambda_max)).max(1.0)
    }

    /// The working set: what is not zero or free, and the most promising others.
    fn choose(&self, nonzeros: usize) -> (Vec<u32>, bool) {
        let (problem, c, x) = (&self.problem, &self.correlations, &self.weights.x);
        let mut promising: Vec<(f64, u32)> = Vec::new();
        let mut set: Vec<u32> = Vec::with_capacity(2 * nonzeros + 4 * FEWEST.0);
        for &j in &c.fresh {
            let at = j as usize;
            let penalty = problem.penalty(at);
            if x[at] != 0.0 || penalty.l1 == 0.0 {
                set.push(j);
                continue;
            }
            let excess = penalty.excess(c.value[at]);
            if excess > 0.0 && c.norm[at] > 0.0 {
                promising.push((excess / c.norm[at], j));
            }
        }
        // A weight that is not zero but covered by its penalty is on its way to zero: it must be worked on as well.
        if set.len() < nonzeros {
            set.retain(|&j| x[j as usize] == 0.0);
            set.extend(&self.support);
        }
        let more = self.more();
        let most = (x.len() / 4).max(FEWEST.0).min((FEWEST.1 * more) as usize).max(nonzeros);
        let complete = promising.len() <= most;
        if promising.len() > most {
            promising.select_nth_unstable_by(most, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            promising.truncate(most);
        }
        set.extend(promising.iter().map(|p| p.1));
        set.sort_unstable();
        (set, complete)
    }

    /// The columns of a set. Where products of columns are kept, the set is widened to those that they are about, and its order is theirs.
    fn block<'b>(&mut self, (mut set, complete): (Vec<u32>, bool), ones: &'b [V]) -> Block<'b, V>
    where
        'a: 'b,
    {
        let (problem, c, x) = (&self.problem, &self.correlations, &self.weights.x);
        let entries_of =
            |set: &[u32]| set.iter().map(|&j| problem.matrix.column(j as usize).len() as u64).sum::<u64>();
        let gram = &mut self.gram;
        if !gram.members.is_empty() {
            let mut known = gram.members.clone();
            known.sort_unstable();
            set.retain(|j| known.binary_search(j).is_err());
            let all: Vec<u32> = gram.members.iter().chain(&set).copied().collect();
            if gram::fits(all.len() + 1, entries_of(&all)) {
                set = all;
            } else {
                // Too many by now: begin again with those that matter.
                set.extend(known.iter().filter(|&&j| x[j as usize] != 0.0));
                set.sort_unstable();
                gram.forget();
            }
        } else {
            gram.forget();
        }
        let column = |&j: &u32| problem.matrix.column(j as usize);
        let mut block = Block {
            set: Vec::new(),
            columns: vec![],
            penalties: vec![],
            x: vec![],
            norm2: vec![],
            slopes: None,
            entries: 0,
            complete,
        };
        if problem.intercept {
            block.columns.push(Column::Dense(ones));
            block.penalties.push(Penalty { l1: 0.0, l2: 0.0, positive: false });
            block.x.push(self.weights.intercept);
            block.norm2.push(problem.matrix.rows() as f64);
        }
        block.columns.extend(set.iter().map(column));
        block.penalties.extend(set.iter().map(|&j| problem.penalty(j as usize)));
        block.x.extend(set.iter().map(|&j| x[j as usize]));
        block.norm2.extend(set.iter().map(|&j| c.norm[j as usize] * c.norm[j as usize]));
        block.entries = block.columns.iter().map(|c| c.len() as u64).sum();
        block.set = set;
        block
    }

    fn store(&mut self, block: &Block<'_, V>) {
        let mut x = block.x.as_slice();
        if self.problem.intercept
            && let [b, others @ ..] = x
        {
            self.weights.intercept = *b;
            x = others;
        }
        self.support.clear();
        for (&j, &x) in block.set.iter().zip(x) {
            self.weights.x[j as usize] = x;
            if x != 0.0 {
                self.support.push(j);
            }
        }
        self.support.sort_unstable();
    }
}

/// Most sweeps before the set is looked at again: where columns are correlated and as many as rows, solving a set that is not the right one
/// yet takes longer than finding the right one.
const SWEEPS: u32 = 10;

/// Least number of columns that are added to a working set: a quarter of all, at least so many, and at most so many, or up to four times that
/// below a tenth of `λ_max`.
const FEWEST: (usize, f64) = (16, 64.0);
