//! Preconditioned conjugate gradients (Hestenes & Stiefel 1952) on any kind of vector: a run that can be stopped, looked at and gone on with.
//!
//! Solves `H x = b`, `H` symmetric and positive (semi)definite. Input: `H` as an [`Operator`], a point and its residual `b - Hx`; output: both moved. Stops when the caller's test of the residual
//! says so, after as many steps as are left, or where `dᵀHd` is not positive, which only rounding makes it.

/// A matrix, what to precondition it by, and the vectors that it is about.
pub(super) trait Operator {
    type Vector;
    /// `Hv`.
    fn apply(&self, v: &Self::Vector) -> Self::Vector;
    /// About `H⁻¹r`; symmetric and positive definite.
    fn scaled(&self, r: &Self::Vector) -> Self::Vector;
    /// The inner product in which `H` is symmetric.
    fn dot(&self, a: &Self::Vector, b: &Self::Vector) -> f64;
    /// `a += by·b`.
    fn add(&self, a: &mut Self::Vector, by: f64, b: &Self::Vector);
}

/// Where a run is, beside its point and residual.
pub(super) struct Conjugate<V> {
    along: V,
    /// `rᵀ scaled(r)`.
    size: f64,
}

impl<V> Conjugate<V> {
    /// From a point with this residual.
    pub(super) fn new(system: &impl Operator<Vector = V>, residual: &V) -> Self {
        let along = system.scaled(residual);
        let size = system.dot(residual, &along);
        Self { along, size }
    }

    /// Until the residual, or its squared size in the preconditioner's norm, is small enough; `left` steps at the most.
    pub(super) fn until(
        &mut self,
        system: &impl Operator<Vector = V>,
        (point, residual): (&mut V, &mut V),
        left: &mut usize,
        enough: impl Fn(&V, f64) -> bool,
    ) {
        while *left > 0 && self.size > 0.0 && !enough(residual, self.size) {
            let turned = system.apply(&self.along);
            let bend = system.dot(&self.along, &turned);
            if bend <= 0.0 || !bend.is_finite() {
                break;
            }
            let step = self.size / bend;
            system.add(point, step, &self.along);
            system.add(residual, -step, &turned);
            *left -= 1;
            let mut next = system.scaled(residual);
            let size = system.dot(residual, &next);
            system.add(&mut next, size / self.size, &self.along);
            (self.along, self.size) = (next, size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `H` by rows, preconditioned by its diagonal.
    struct Rows([[f64; 3]; 3]);

    impl Operator for Rows {
        type Vector = [f64; 3];
        fn apply(&self, v: &[f64; 3]) -> [f64; 3] {
            self.0.map(|row| self.dot(&row, v))
        }
        fn scaled(&self, r: &[f64; 3]) -> [f64; 3] {
            [0, 1, 2].map(|i| r[i] / self.0[i][i])
        }
        fn dot(&self, a: &[f64; 3], b: &[f64; 3]) -> f64 {
            a.iter().zip(b).map(|(a, b)| a * b).sum()
        }
        fn add(&self, a: &mut [f64; 3], by: f64, b: &[f64; 3]) {
            a.iter_mut().zip(b).for_each(|(a, b)| *a += by * b);
        }
    }

    #[test]
    fn as_many_steps_as_unknowns_solve_a_system_also_with_a_break() {
        let system = Rows([[4.0, 1.0, -1.0], [1.0, 3.0, 0.5], [-1.0, 0.5, 100.0]]);
        let solution = [1.0, -2.0, 0.25];
        for first in 0..=3 {
            let (mut point, mut residual, mut left) = ([0.0; 3], system.apply(&solution), first);
            let mut run = Conjugate::new(&system, &residual);
            run.until(&system, (&mut point, &mut residual), &mut left, |_, _| false);
            assert_eq!(left, 0);
            left = 3 - first;
            run.until(&system, (&mut point, &mut residual), &mut left, |_, _| false);
            point.iter().zip(solution).for_each(|(x, s)| assert!((x - s).abs() < 1e-12, "{point:?}"));
        }
    }

    #[test]
    fn what_is_solved_or_not_positive_is_left_alone() {
        let system = Rows([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);
        let (mut point, mut residual, mut left) = ([2.0; 3], [0.0; 3], 5);
        let mut run = Conjugate::new(&system, &residual);
        run.until(&system, (&mut point, &mut residual), &mut left, |_, _| false);
        assert_eq!((point, left), ([2.0; 3], 5));
        // dᵀHd = -2 along (1, 1, 0), although the diagonal is positive.
        let system = Rows([[1.0, -2.0, 0.0], [-2.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);
        let mut residual = [1.0, 1.0, 0.0];
        let mut run = Conjugate::new(&system, &residual);
        run.until(&system, (&mut point, &mut residual), &mut left, |_, _| false);
        assert_eq!((point, left), ([2.0; 3], 5));
    }
}
