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
    pub(super) fn remember(&mut self) {
        let x = self.weights.x.iter().enumerate().filter(|(_, x)| **x != 0.0).map(|(j, &x)| (j as u32, x));
        self.past = Some(Past {
            lambda: self.problem.lambda,
            x: x.collect(),
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
        let mut x = self.weights.x.clone();
        let mut before = past.x.iter().peekable();
        for (j, x) in x.iter_mut().enumerate() {
            let then = before.next_if(|b| b.0 as usize == j).map_or(0.0, |b| b.1);
            if *x == 0.0 && then == 0.0 {
                continue;
            }
            let straight = *x + t * (*x - then);
            // What is zero stays zero, and what would change its sign stops there.
            let new = if *x == 0.0 || straight * *x < 0.0 { 0.0 } else { straight };
            if new != straight {
                self.problem.matrix.column(j).add_to(new - straight, &mut z);
            }
            *x = new;
        }
        let at_next = super::Problem { lambda: next, ..self.problem };
        if at_next.objective(&x, &z) < at_next.objective(&self.weights.x, &self.z) {
            self.weights.x = x;
            self.weights.intercept += t * (self.weights.intercept - past.intercept);
            self.z = z;
        }
    }
}
