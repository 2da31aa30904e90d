//! Where a descent stands: weights, and what is kept of the samples between updates.

use crate::par::Par;
use crate::regress::certificate::intercept_step;
use crate::regress::problem::{Problem, Weights};
use gibbsite_core::coord;
use gibbsite_core::loss::Loss;
use gibbsite_core::math::Real;

/// Weights, and `u = -L'(z)` for `z = Ax + b`. For the squared loss `u` is the residual `y - z` and `z` is not kept.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) x: Vec<f64>,
    pub(crate) b: f64,
    pub(crate) z: Vec<f64>,
    pub(crate) u: Vec<f64>,
}

/// `SMOOTHNESS·‖a_j‖²`, the `β` of eq. 4.6 for raw columns.
pub(crate) fn curvatures<L: Loss, V: Real>(problem: &Problem<'_, L, V>, par: Par) -> Vec<f64> {
    par.map_range(problem.matrix.columns(), |j| L::SMOOTHNESS * problem.matrix.column(j).norm2::<f64>())
}

impl State {
    pub(crate) fn new<L: Loss, V: Real>(problem: &Problem<'_, L, V>, start: Weights) -> Self {
        let Weights { mut x, intercept } = start;
        x.resize(problem.matrix.columns(), 0.0);
        if problem.positive {
            x.iter_mut().for_each(|x| *x = x.max(0.0));
        }
        let b = if problem.intercept { intercept } else { 0.0 };
        let mut state = Self { x, b, z: Vec::new(), u: Vec::new() };
        state.refresh(problem);
        state
    }

    /// `z` and `u` anew from the weights, without what rounding has added up.
    pub(crate) fn refresh<L: Loss, V: Real>(&mut self, problem: &Problem<'_, L, V>) {
        let z = problem.predictions(&self.x, self.b);
        self.u.clear();
        self.u.extend(z.iter().zip(problem.target).map(|(&z, &y)| -problem.loss.slope(z, y)));
        if !L::QUADRATIC {
            self.z = z;
        }
    }

    /// `Ax + b`.
    pub(crate) fn predictions<L: Loss, V: Real>(&self, problem: &Problem<'_, L, V>) -> Vec<f64> {
        if L::QUADRATIC {
            self.u.iter().zip(problem.target).map(|(&u, &y)| y - u).collect()
        } else {
            self.z.clone()
        }
    }

    /// `F`.
    pub(crate) fn objective<L: Loss, V: Real>(&self, problem: &Problem<'_, L, V>) -> f64 {
        let loss = if L::QUADRATIC {
            0.5 * self.u.iter().map(|u| u * u).sum::<f64>()
        } else {
            problem.loss_at(&self.z, Par::Seq)
        };
        loss + problem.cost(&self.x)
    }

    /// Where Alg. 4.1 takes `x_j`.
    #[inline(always)]
    pub(crate) fn target<L: Loss, V: Real>(
        &self,
        problem: &Problem<'_, L, V>,
        curvature: f64,
        j: usize,
    ) -> f64 {
        problem.penalty(j).minimize(self.x[j], -problem.matrix.column(j).dot(&self.u), curvature)
    }

    /// Moves `x_j` to `new`; returns by how much that is.
    #[inline(always)]
    pub(crate) fn set<L: Loss, V: Real>(&mut self, problem: &Problem<'_, L, V>, j: usize, new: f64) -> f64 {
        let step = new - self.x[j];
        if step != 0.0 {
            self.x[j] = new;
            let column = problem.matrix.column(j);
            if L::QUADRATIC {
                column.add_to(-step, &mut self.u);
            } else {
                coord::shift(column, problem.loss, step, &mut self.z, problem.target, &mut self.u);
            }
        }
        step
    }

    /// Makes the intercept optimal, if there is one.
    pub(crate) fn settle_intercept<L: Loss, V: Real>(&mut self, problem: &Problem<'_, L, V>) {
        if !problem.intercept || self.u.is_empty() {
            return;
        }
        if L::QUADRATIC {
            let step = self.u.iter().sum::<f64>() / self.u.len() as f64;
            self.u.iter_mut().for_each(|u| *u -= step);
            self.b += step;
        } else {
            let step = intercept_step(problem, &self.z);
            self.b += step;
            for ((z, u), &y) in self.z.iter_mut().zip(&mut self.u).zip(problem.target) {
                *z += step;
                *u = -problem.loss.slope(*z, y);
            }
        }
    }

    pub(crate) fn copy_from(&mut self, other: &Self) {
        self.x.clone_from(&other.x);
        self.z.clone_from(&other.z);
        self.u.clone_from(&other.u);
        self.b = other.b;
    }

    pub(crate) fn into_weights(self) -> Weights {
        Weights { x: self.x, intercept: self.b }
    }

    pub(crate) fn nonzeros(&self) -> usize {
        self.x.iter().filter(|&&x| x != 0.0).count()
    }
}
