//! Inner solves on a working set: least squares at once, other losses by proximal Newton steps.

use super::descent::{Effort, Limits, Place, descend};
use super::gram;
use super::quadratic::{Residual, combine};
use super::{Block, WorkingSet};
use crate::par::{Kernel, Par, vectorized};
use gibbsite_core::column::Column;
use gibbsite_core::lanes::sum_pairs;
use gibbsite_core::loss::Loss;
use gibbsite_core::math::Real;

impl<L: Loss, V: Real> WorkingSet<'_, L, V> {
    /// Descends on `½‖y - Ax‖² + penalty` within the block; keeps `z`.
    pub(super) fn least_squares(&mut self, block: &mut Block<'_, V>, limits: Limits) -> Effort {
        let before = block.x.clone();
        let mut u = std::mem::take(&mut self.u);
        self.problem.residual_to(&self.z, &mut u, self.par);
        let (norm2, slopes) = (block.norm2.clone(), block.slopes.take());
        let mut effort = self.quadratic(block, &mut u, slopes, None, || norm2, limits);
        // The descent by residuals has moved them.
        self.problem.residual_to(&self.z, &mut u, self.par);
        let advance = self.advance(block, before, &u);
        self.u = u;
        effort.decrease = advance.decrease;
        effort
    }

    /// From `before` towards the weights of the block until `F(x + tΔ) ≤ F(x) + 10⁻²·t·(-uᵀAΔ + penalty(x+Δ) - penalty(x))`, where
    /// `u = -∇L(z)`. Keeps `z` and the loss. Stays if no step does.
    fn advance(&mut self, block: &mut Block<'_, V>, before: Vec<f64>, u: &[f64]) -> Advance {
        let (problem, loss) = (self.problem, self.loss);
        let (step, entries) = self.move_by(block, &before);
        let old_cost = block.cost(&before);
        let predicted = -sum_pairs(&self.moved, u, |m, u| m * u) + block.cost(&block.x) - old_cost;
        // The gap shrinks with the violation, the objective with its square: the last steps cannot be seen in it.
        let rounding = 1e-14 * (loss + old_cost);
        let mut length = 1.0;
        for _ in 0..30 {
            for ((t, z), m) in self.trial.iter_mut().zip(&self.z).zip(&self.moved) {
                *t = z + length * m;
            }
            if length < 1.0 {
                let ends = before.iter().zip(&step);
                block.x.iter_mut().zip(ends).for_each(|(x, (then, d))| *x = then + length * d);
            }
            let there = problem.loss_at(&self.trial, self.par);
            let change = there - loss + block.cost(&block.x) - old_cost;
            if change <= 0.01 * length * predicted + rounding {
                std::mem::swap(&mut self.z, &mut self.trial);
                self.loss = there;
                if L::QUADRATIC && length < 1.0 {
                    self.gram.distrust();
                }
                return Advance { decrease: (-change).max(0.0), entries, stuck: false };
            }
            length *= 0.5;
        }
        // `x` goes back only if `z` has not moved.
        block.x = before;
        self.gram.distrust();
        Advance { decrease: 0.0, entries, stuck: true }
    }

    /// `moved = A(x - before)` within the block. Returns the step, and entries visited.
    fn move_by(&mut self, block: &Block<'_, V>, before: &[f64]) -> (Vec<f64>, u64) {
        let step: Vec<f64> = block.x.iter().zip(before).map(|(now, then)| now - then).collect();
        let at: Vec<u32> = (0..step.len() as u32).filter(|&p| step[p as usize] != 0.0).collect();
        let d: Vec<f64> = at.iter().map(|&p| step[p as usize]).collect();
        combine(&block.columns, &at, &d, &mut self.moved, &mut self.parts, self.par);
        let entries = at.iter().map(|&p| block.columns[p as usize].len() as u64).sum();
        (step, entries)
    }

    /// Descends on `-uᵀAΔ + ½Δᵀ Aᵀ diag(w) A Δ + penalty(x + Δ)` within the block: by residuals, by the Gram matrix if that is cheap, or by
    /// residuals until the Gram matrix would have been worth it and then by that. `slopes` are `-A_Wᵀu`, if they are known already.
    fn quadratic(
        &mut self,
        block: &mut Block<'_, V>,
        u: &mut [f64],
        slopes: Option<Vec<f64>>,
        weight: Option<&[f64]>,
        curvature: impl FnOnce() -> Vec<f64>,
        limits: Limits,
    ) -> Effort {
        let Block { set, columns, penalties, x, norm2, entries, .. } = block;
        let price = self.gram.price(columns, norm2, u.len(), weight);
        let (mut spent, mut slopes) = (Effort::default(), slopes);
        let rent = self.gram.rent;
        // The smaller the penalty, the more passes there will be. On a path the products serve the next solutions as well, and without row
        // weights they serve to the end.
        let passes =
            if self.solved == 0 { (gram::AT_ONCE * self.more()) as u64 } else { 4 * gram::AT_ONCE as u64 };
        let at_once = if L::QUADRATIC || self.solved > 0 { 2 * passes } else { passes };
        if price.is_none_or(|price| price > at_once * *entries + rent) {
            let gap = if L::QUADRATIC { limits.gap } else { ROUGHER * limits.gap };
            let limits = Limits { gap, entries: price.map_or(u64::MAX, |price| price - rent), ..limits };
            let curvature = curvature();
            let moved = &mut self.moved;
            let (par, parts) = (self.par, &mut self.parts);
            let mut q = Residual { columns, weight, curvature: &curvature, moved, par, parts };
            let place = Place { state: u, x, penalties };
            spent = descend(&mut q, place, limits, &mut self.scratch);
            self.gram.rent += spent.entries;
            if !spent.unfinished {
                return spent;
            }
            slopes = None;
        }
        spent.entries += self.gram.form(columns, u.len(), weight, self.par);
        self.gram.members.clone_from(set);
        let mut slopes = slopes.unwrap_or_else(|| {
            spent.entries += *entries;
            each(Wanted::Slope, columns, u, self.par)
        });
        // Here sweeps cost little beside what it took to come here.
        let limits = Limits { sweeps: 2 * limits.sweeps, ..limits };
        let mut q = self.gram.quadratic(slopes.len(), self.par);
        let place = Place { state: &mut slopes, x, penalties };
        let rest = descend(&mut q, place, limits, &mut self.scratch);
        Effort {
            updates: spent.updates + rest.updates,
            entries: spent.entries + rest.entries,
            decrease: spent.decrease + rest.decrease,
            unfinished: false,
        }
    }

    /// Proximal Newton: minimises `-uᵀAΔ + ½Δᵀ Aᵀ diag(w) A Δ + penalty(x + Δ)` with `u = -∇L(z)`, `w = ∇²L(z)`, then backtracks
    /// ([`advance`](Self::advance)). Stops when the gap within the block is estimated to be small enough, or no step decreases `F`.
    pub(super) fn newton(&mut self, block: &mut Block<'_, V>, limits: Limits) -> Effort {
        let problem = self.problem;
        let mut total = Effort::default();
        let (mut u, mut weight) = (std::mem::take(&mut self.u), std::mem::take(&mut self.curvature));
        let mut rho = Vec::new();
        let columns = block.columns.clone();
        let mut last = f64::INFINITY;
        for round in 0..limits.steps {
            problem.residual_to(&self.z, &mut u, self.par);
            weight.clear();
            weight.extend(u.iter().map(|&u| problem.loss.curvature_at_residual(u).max(1e-7 * L::SMOOTHNESS)));
            let slopes = block.slopes.take().unwrap_or_else(|| {
                total.entries += block.entries;
                each(Wanted::Slope, &columns, &u, self.par)
            });
            let estimate = block.gap_estimate(&slopes);
            if round > 0 && estimate <= limits.gap {
                break;
            }
            // Steps with old products gain a fixed share each; when that is not enough, new ones pay.
            if estimate > 0.2 * last {
                self.gram.outdate();
            }
            last = estimate;
            let before = block.x.clone();
            let inner = Limits { gap: (INNER * estimate).max(0.3 * limits.gap), ..limits };
            let par = self.par;
            let curvature = || each(Wanted::Curvature, &columns, &weight, par);
            rho.clone_from(&u);
            let effort = self.quadratic(block, &mut rho, Some(slopes), Some(&weight), curvature, inner);
            total.updates += effort.updates;
            total.entries += effort.entries;
            let advance = self.advance(block, before, &u);
            total.entries += advance.entries;
            total.decrease += advance.decrease;
            if advance.stuck {
                break;
            }
        }
        (self.u, self.curvature) = (u, weight);
        total
    }
}

/// What came of a step.
struct Advance {
    /// How much the objective fell.
    decrease: f64,
    entries: u64,
    /// Whether no step was good enough.
    stuck: bool,
}

/// Share of the gap that solving a quadratic leaves.
const INNER: f64 = 0.1;
/// By how much less exactly it is solved with residuals: there, another Newton step costs a fraction of a sweep.
const ROUGHER: f64 = 3.0;

/// Columns that a thread takes at a time.
const STRIP: usize = 64;

/// What is wanted of each column.
#[derive(Clone, Copy)]
enum Wanted {
    /// `-a_jᵀv`.
    Slope,
    /// `Σ_i v_i a_ij²`.
    Curvature,
}

fn each<V: Real>(wanted: Wanted, columns: &[Column<'_, V>], v: &[f64], par: Par) -> Vec<f64> {
    let mut out = vec![0.0; columns.len()];
    let strips = columns.chunks(STRIP).zip(out.chunks_mut(STRIP));
    par.map(strips.collect(), |(columns, out)| vectorized(Each { wanted, columns, v, out }));
    out
}

struct Each<'a, V> {
    wanted: Wanted,
    columns: &'a [Column<'a, V>],
    v: &'a [f64],
    out: &'a mut [f64],
}

impl<V: Real> Kernel for Each<'_, V> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Self { wanted, columns, v, out } = self;
        for (out, column) in out.iter_mut().zip(columns) {
            *out = match wanted {
                Wanted::Slope => -column.dot(v),
                Wanted::Curvature => column.weighted_norm2(v),
            };
        }
    }
}

impl<V> Block<'_, V> {
    fn cost(&self, x: &[f64]) -> f64 {
        x.iter().zip(&self.penalties).map(|(&x, penalty)| penalty.value(x)).sum()
    }

    /// `‖x‖₁` times the largest violation: the gap within the block to first order.
    fn gap_estimate(&self, slopes: &[f64]) -> f64 {
        let worst = slopes
            .iter()
            .zip(&self.x)
            .zip(&self.penalties)
            .fold(0.0, |worst: f64, ((&slope, &x), penalty)| worst.max(penalty.violation(x, slope)));
        worst * self.x.iter().map(|x| x.abs()).sum::<f64>()
    }
}
