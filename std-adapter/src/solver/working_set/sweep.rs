//! Exact coordinate updates one after the other, in two halves at the same time where those do not disturb each other.
//!
//! A large sweep is cut into two halves `d` and `e` of its positions, each of which starts from the same state and does not see what the other
//! does. The objective then changes by what each of them gained, and by `dᵀHe`: exactly, so that it is known what being apart costs. If that
//! is much, the second half is done again after the first, and the next sweeps are left whole. This is Shotgun's argument (Thesis
//! Th. 4.3.1) with sequences of updates in place of single ones: for sparse columns `P*` is far above 2.
//!
//! Sweeps are cut by their own size, on however many threads: results do not depend on it.

use super::descent::{Effort, Place};
use super::quadratic::Quadratic;
use crate::par::{Kernel, vectorized};
use gibbsite_core::penalty::Penalty;

/// What a sweep found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sweep {
    pub(super) decrease: f64,
    /// Largest optimality violation met.
    pub(super) violation: f64,
    entries: u64,
}

/// Memory for halves, and how long to leave them alone after they have disturbed each other.
#[derive(Debug, Default)]
pub(super) struct Halves {
    /// Large sweeps that will not be cut.
    whole: u32,
    /// How many the last disturbance cost.
    wait: u32,
    /// The state before, then how the first half moved it; the second half's, then how that moved it.
    start: Vec<f64>,
    second: Vec<f64>,
    /// Weights of the second half before, and how they moved.
    old: Vec<f64>,
    step: Vec<f64>,
}

/// Numbers that a sweep reads, and positions, from which on it is cut. Where few columns have many entries, they have them in the same rows and would
/// disturb each other.
const LARGE: (u64, usize) = (200_000, 512);
/// Share of what both halves gained that they may lose by being apart.
const APART: f64 = 0.7;
/// Most sweeps in a row that are left whole.
const LONGEST: u32 = 8;

/// Exact updates at these positions, ascending, in order or in halves.
pub(super) fn sweep<Q: Quadratic>(
    q: &Q,
    place: &mut Place<'_>,
    at: &[u32],
    halves: &mut Halves,
    effort: &mut Effort,
) -> Sweep {
    let entries: u64 = at.iter().map(|&p| q.cost(p as usize)).sum();
    effort.updates += at.len() as u64;
    let large = at.len() >= LARGE.1 && q.reads(at.len(), entries) >= LARGE.0;
    let found = if !large || halves.whole > 0 {
        halves.whole -= u32::from(large);
        let Place { state, x, penalties } = place;
        vectorized(SweepAt { q, state, x, first: 0, penalties, at })
    } else {
        // Cut by entries, so that halves take equally long.
        let mut seen = 0;
        let cut = at.iter().take_while(|&&p| {
            seen += q.cost(p as usize);
            2 * seen <= entries
        });
        let (left, right) = at.split_at(cut.count().clamp(1, at.len() - 1));
        in_halves(q, place, [left, right], halves)
    };
    effort.entries += found.entries;
    found
}

fn in_halves<Q: Quadratic>(
    q: &Q,
    Place { state, x, penalties }: &mut Place<'_>,
    [left, right]: [&[u32]; 2],
    halves: &mut Halves,
) -> Sweep {
    let Halves { whole, wait, start, second, old, step } = halves;
    let first = right[0] as usize;
    start.clear();
    start.extend_from_slice(state);
    old.clear();
    old.extend(right.iter().map(|&p| x[p as usize]));
    let (before, after) = x.split_at_mut(first);
    let (one, two) = q.par().join(
        || vectorized(SweepAt { q, state, x: before, first: 0, penalties, at: left }),
        || {
            second.clone_from(start);
            let found = vectorized(SweepAt { q, state: second, x: &mut *after, first, penalties, at: right });
            second.iter_mut().zip(&*start).for_each(|(second, start)| *second -= start);
            found
        },
    );
    step.clear();
    step.extend(right.iter().zip(&*old).map(|(&p, old)| after[p as usize - first] - old));
    start.iter_mut().zip(&**state).for_each(|(start, state)| *start = state - *start);
    let meeting = q.meeting(start, second, right, step);
    let gained = one.decrease + two.decrease;
    let entries = one.entries + two.entries;
    if meeting <= APART * gained {
        state.iter_mut().zip(&*second).for_each(|(state, moved)| *state += moved);
        *wait /= 2;
        return Sweep { decrease: gained - meeting, violation: one.violation.max(two.violation), entries };
    }
    *wait = (2 * *wait).clamp(1, LONGEST);
    *whole = *wait;
    right.iter().zip(&*old).for_each(|(&p, old)| after[p as usize - first] = *old);
    let two = vectorized(SweepAt { q, state, x: after, first, penalties, at: right });
    Sweep {
        decrease: one.decrease + two.decrease,
        violation: one.violation.max(two.violation),
        entries: entries + two.entries,
    }
}

/// Updates at positions of which `x` has those from `first` on.
struct SweepAt<'a, Q> {
    q: &'a Q,
    state: &'a mut [f64],
    x: &'a mut [f64],
    first: usize,
    penalties: &'a [Penalty<f64>],
    at: &'a [u32],
}

impl<Q: Quadratic> Kernel for SweepAt<'_, Q> {
    type Output = Sweep;
    #[inline(always)]
    fn run(self) -> Sweep {
        let Self { q, state, x, first, penalties, at } = self;
        let mut found = Sweep { decrease: 0.0, violation: 0.0, entries: 0 };
        for &p in at {
            let p = p as usize;
            let (slope, curvature, penalty) = (q.slope(state, p), q.curvature(p), &penalties[p]);
            let x = &mut x[p - first];
            let new = penalty.minimize(*x, slope, curvature);
            let step = new - *x;
            found.entries += q.cost(p);
            if step != 0.0 {
                found.violation = found.violation.max(penalty.violation(*x, slope));
                found.decrease -=
                    step * (slope + 0.5 * curvature * step) + penalty.value(new) - penalty.value(*x);
                q.shift(state, p, step);
                *x = new;
                found.entries += q.cost(p);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::super::by_gram::Gram;
    use super::super::quadratic::Residual;
    use super::*;
    use crate::par::Par;
    use gibbsite_core::column::Column;
    use rand::{Rng, RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// `½‖y - Ax‖²` in the norm of `weight`, and an L1 penalty.
    struct Dense {
        a: Vec<Vec<f64>>,
        y: Vec<f64>,
        weight: Vec<f64>,
    }

    const L1: f64 = 0.3;

    impl Dense {
        fn random(rows: usize, columns: usize, rng: &mut impl Rng) -> Self {
            let mut number = || rng.random::<f64>() - 0.5;
            let a = (0..columns).map(|_| (0..rows).map(|_| number()).collect()).collect();
            let y = (0..rows).map(|_| 4.0 * number()).collect();
            Self { a, y, weight: (0..rows).map(|_| 0.6 + number()).collect() }
        }

        fn rho(&self, x: &[f64]) -> Vec<f64> {
            let at = |i: usize| self.y[i] - self.a.iter().zip(x).map(|(a, x)| a[i] * x).sum::<f64>();
            (0..self.y.len()).map(|i| self.weight[i] * at(i)).collect()
        }

        fn objective(&self, x: &[f64]) -> f64 {
            let rho = self.rho(x);
            let loss: f64 = rho.iter().zip(&self.weight).map(|(r, w)| 0.5 * r * r / w).sum();
            loss + L1 * x.iter().map(|x| x.abs()).sum::<f64>()
        }

        /// A sweep over all positions from `x`, cut at `cut` if that is given.
        fn sweep(&self, x: &mut [f64], cut: Option<usize>, halves: &mut Halves, par: Par) -> Sweep {
            let columns: Vec<Column<'_, f64>> = self.a.iter().map(|a| Column::Dense(a)).collect();
            let curvature: Vec<f64> = columns.iter().map(|c| c.weighted_norm2(&self.weight)).collect();
            let (mut state, mut moved) = (self.rho(x), vec![0.0; self.y.len()]);
            let mut parts = Default::default();
            let q = Residual {
                columns: &columns,
                weight: Some(&self.weight),
                curvature: &curvature,
                moved: &mut moved,
                par,
                parts: &mut parts,
            };
            let penalties = vec![Penalty { l1: L1, l2: 0.0, positive: false }; x.len()];
            let all: Vec<u32> = (0..x.len() as u32).collect();
            let found = match cut {
                None => {
                    SweepAt { q: &q, state: &mut state, x, first: 0, penalties: &penalties, at: &all }.run()
                }
                Some(cut) => {
                    let (left, right) = all.split_at(cut);
                    let mut place = Place { state: &mut state, x, penalties: &penalties };
                    par.run(|_| in_halves(&q, &mut place, [left, right], halves))
                }
            };
            for (state, rho) in state.iter().zip(self.rho(x)) {
                assert!((state - rho).abs() <= 1e-12, "the state is that of the weights");
            }
            found
        }
    }

    #[test]
    fn what_halves_gain_together_is_known() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut redone = 0;
        for rows in [3, 10, 40, 200] {
            for columns in [2, 5, 30] {
                let problem = Dense::random(rows, columns, &mut rng);
                let cut = 1 + rng.random_range(0..columns - 1);
                let mut halves = Halves::default();
                let mut x: Vec<f64> = (0..columns).map(|_| rng.random::<f64>() - 0.5).collect();
                for _ in 0..3 {
                    let (before, mut two) = (problem.objective(&x), x.clone());
                    let (whole, wait) = (halves.whole, halves.wait);
                    let found = problem.sweep(&mut x, Some(cut), &mut halves, Par::Seq);
                    let gained = before - problem.objective(&x);
                    assert!(
                        (found.decrease - gained).abs() <= 1e-11 * (1.0 + before),
                        "{} {gained}",
                        found.decrease
                    );
                    assert!(gained >= -1e-11 * before);
                    redone += u32::from(halves.whole > 0);
                    let mut same = Halves { whole, wait, ..Halves::default() };
                    problem.sweep(&mut two, Some(cut), &mut same, Par::Rayon(2));
                    assert_eq!(x, two, "on two threads as on one");
                    halves.whole = 0;
                }
            }
        }
        assert!(redone > 0, "some disturb each other");
    }

    #[test]
    fn halves_that_disturb_each_other_are_done_one_after_the_other() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
        let mut problem = Dense::random(20, 4, &mut rng);
        let copies = problem.a.clone();
        problem.a.extend(copies);
        let (mut x, mut expected, mut halves) = (vec![0.0; 8], vec![0.0; 8], Halves::default());
        let found = problem.sweep(&mut x, Some(4), &mut halves, Par::Rayon(2));
        let other = problem.sweep(&mut expected, None, &mut Halves::default(), Par::Seq);
        assert_eq!(x, expected);
        assert!((found.decrease - other.decrease).abs() <= 1e-12 * other.decrease);
        assert_eq!((halves.whole, halves.wait), (1, 1));
        // Again: left alone for longer, but not for ever.
        for wait in [2, 4, 8, 8] {
            problem.sweep(&mut [0.0; 8], Some(4), &mut halves, Par::Seq);
            assert_eq!((halves.whole, halves.wait), (wait, wait));
        }
    }

    #[test]
    fn halves_by_products_of_columns_as_by_residuals() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        // Whole numbers: products of columns are exact in single precision.
        let mut problem = Dense::random(30, 6, &mut rng);
        problem.weight.fill(1.0);
        problem.a.iter_mut().flatten().for_each(|a| *a = (8.0 * *a).round());
        let product = |p: &[f64], q: &[f64]| p.iter().zip(q).map(|(p, q)| p * q).sum::<f64>();
        let table: Vec<f32> =
            problem.a.iter().flat_map(|p| problem.a.iter().map(|q| product(p, q) as f32)).collect();
        let rho = problem.rho(&[0.0; 6]);
        let mut slopes: Vec<f64> = problem.a.iter().map(|a| -product(a, &rho)).collect();
        let (mut moved, mut wide) = ([0.0; 6], [0.0; 6]);
        let q = Gram { table: &table, stride: 6, moved: &mut moved, wide: &mut wide, par: Par::Seq };
        let penalties = [Penalty { l1: L1, l2: 0.0, positive: false }; 6];
        let (mut x, mut expected) = ([0.0; 6], [0.0; 6]);
        let halves = [&[0, 1, 2][..], &[3, 4, 5]];
        let mut place = Place { state: &mut slopes, x: &mut x, penalties: &penalties };
        let found = in_halves(&q, &mut place, halves, &mut Halves::default());
        let other = problem.sweep(&mut expected, Some(3), &mut Halves::default(), Par::Seq);
        assert!((found.decrease - other.decrease).abs() <= 1e-11 * other.decrease);
        x.iter().zip(expected).for_each(|(x, e)| assert!((x - e).abs() <= 1e-12));
        let rho = problem.rho(&x);
        problem.a.iter().zip(slopes).for_each(|(a, s)| assert!((product(a, &rho) + s).abs() <= 1e-10));
    }
}
