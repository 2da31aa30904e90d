//! Where the next solution of a path will be: solutions are nearly linear in `λ` (exactly so for the Lasso, between changes of the
//! support), so the last two point to the next.

use super::WorkingSet;
use gibbsite_core::loss::Loss;
use gibbsite_core::math::Real;

/// A solution of a path.
#[derive(Debug)]
pub(super) struct Past {
    lambda: f64,
    /// Weights that are not zero.
    x: Vec<(u32, f64)>,
    intercept: f64,
    z: Vec<f64>,
}

impl<L: Loss, V: Real> WorkingSet<'_, L, V> {
    /// The present point, as a past one.
    fn remember(&mut self) {
        self.past = Some(Past {
            lambda: self.problem.lambda,
            x: self.support.iter().map(|&j| (j, self.weights.x[j as usize])).collect(),
            intercept: self.weights.intercept,
            z: self.z.clone(),
        });
    }

    /// Moves to `x + t(x - x_past)` with `t = (λ - λ_next)/(λ_past - λ)`, signs kept, if the objective at `next` is lower there. The present
    /// point becomes the past one.
    pub(super) fn predict(&mut self, next: f64) {
        let now = self.problem.lambda;
        let past = self.past.take();
        self.remember();
        let Some(past) = past else { return };
        if !(past.lambda > now && now > next) {
            return;
        }
        let t = (now - next) / (past.lambda - now);
        let mut z: Vec<f64> = self.z.iter().zip(&past.z).map(|(z, p)| z + t * (z - p)).collect();
        let at_next = super::Problem { lambda: next, ..self.problem };
        let mut cost = 0.0;
        let mut moved = Vec::with_capacity(self.support.len());
        let mut before = past.x.iter().peekable();
        let left =
            |j: u32, then: f64, z: &mut [f64]| self.problem.matrix.column(j as usize).add_to(t * then, z);
        for &j in &self.support {
            // What is zero stays zero.
            while let Some(&(gone, then)) = before.next_if(|b| b.0 < j) {
                left(gone, then, &mut z);
            }
            let then = before.next_if(|b| b.0 == j).map_or(0.0, |b| b.1);
            let x = self.weights.x[j as usize];
            let straight = x + t * (x - then);
            // What would change its sign stops there.
            let new = if straight * x < 0.0 { 0.0 } else { straight };
            if new != straight {
                self.problem.matrix.column(j as usize).add_to(new - straight, &mut z);
            }
            cost += at_next.penalty(j as usize).value(new);
            moved.push(new);
        }
        before.for_each(|&(gone, then)| left(gone, then, &mut z));
        let loss = at_next.loss_at(&z, self.par);
        if loss + cost < self.loss + self.cost(&at_next) {
            self.support.iter().zip(moved).for_each(|(&j, new)| self.weights.x[j as usize] = new);
            self.support.retain(|&j| self.weights.x[j as usize] != 0.0);
            self.weights.intercept += t * (self.weights.intercept - past.intercept);
            (self.z, self.loss) = (z, loss);
        }
    }
}
