//! Slopes at all entries of Λ and Θ, a block of columns at a time, of which only what the penalty does not cover is kept.
//!
//! Input: a point; output: the subdifferential violation over every entry, and the entries that are 0 and should not be. A block of `∇_Λ = S_yy - Σ - KᵀK/m` is two products and some sparse solves, one
//! of `∇_Θ = 2Xᵀ(Y + K)/m` is one product; blocks are forgotten as soon as they were looked at. Of more entries than there is room for, those furthest beyond their penalty stay.

use super::ldl::Solve;
use super::samples::{Ground, Means, Point, Samples};
use crate::linalg::{Part, add_transposed_product};
use crate::objective::gaussian::Penalties;
use crate::par::vectorized;
use std::ops::Range;

/// An entry that is 0 and whose slope the penalty does not cover.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Candidate {
    pub(super) row: u32,
    pub(super) col: u32,
    /// Its slope as a multiple of its penalty.
    pub(super) excess: f32,
    /// Of Λ, not of Θ.
    pub(super) pair: bool,
}

/// What was seen.
pub(super) struct Screened {
    pub(super) violation: f64,
    pub(super) candidates: Vec<Candidate>,
    /// The largest slopes of entries of Λ beside the diagonal and of Θ.
    pub(super) largest: (f64, f64),
}

/// Columns of a product that are solved for at a time.
const SOLVED: usize = 32;

/// At most so many candidates: once they are more, the better half stays and sets the bar.
struct Bounded {
    list: Vec<Candidate>,
    most: usize,
    bar: f32,
}

impl Bounded {
    fn push(&mut self, candidate: Candidate) {
        if candidate.excess <= self.bar {
            return;
        }
        self.list.push(candidate);
        if self.list.len() >= self.most {
            let half = self.list.len() / 2;
            self.list.select_nth_unstable_by(half, |a, b| b.excess.total_cmp(&a.excess));
            self.bar = self.list[half].excess;
            self.list.truncate(half);
        }
    }
}

/// Bytes for each column of a block.
pub(super) fn bytes_per_column(samples: &Samples<'_>, rows: usize) -> u64 {
    8 * (samples.x.cols() + 2 * samples.y.cols() + rows) as u64
}

/// Looks at all entries, `width` columns at a time; at most `most` candidates.
pub(super) fn screen(
    samples: &Samples<'_>,
    (ground, point, means): (&Ground, &Point, &Means<'_>),
    penalties: &Penalties,
    (width, most): (usize, usize),
) -> Screened {
    let p = samples.y.cols();
    let mut seen = Screened { violation: 0.0, candidates: Vec::new(), largest: (0.0, 0.0) };
    let mut found = Bounded { list: Vec::new(), most: most.max(2), bar: 1.0 };
    for start in (0..p).step_by(width) {
        let columns = start..(start + width).min(p);
        let (lambda, theta) = slopes(samples, (ground, point, means), columns.clone());
        for (c, j) in columns.clone().enumerate() {
            let (list, rows) = (ground.active.pairs.range(j), &ground.active.pairs.rows);
            let mut known = list.clone().map(|e| (rows[e] as usize, point.at.lambda[e])).peekable();
            for (i, &slope) in lambda[c * columns.end..][..=j].iter().enumerate() {
                let value = known.next_if(|k| k.0 == i).map_or(0.0, |k| k.1);
                let penalty = penalties.of_lambda(i, j);
                seen.violation = seen.violation.max(penalty.violation(value, slope));
                if i != j {
                    seen.largest.0 = seen.largest.0.max(slope.abs());
                    if value == 0.0 && slope.abs() > penalty.l1 {
                        let excess = (slope.abs() / penalty.l1) as f32;
                        found.push(Candidate { row: i as u32, col: j as u32, excess, pair: true });
                    }
                }
            }
            let n = samples.x.cols();
            let (list, rows) = (ground.active.weights.range(j), &ground.active.weights.rows);
            let mut known = list.clone().map(|e| (rows[e] as usize, point.at.theta[e])).peekable();
            let penalty = penalties.of_theta();
            for (i, &slope) in theta[c * n..][..n].iter().enumerate() {
                let value = known.next_if(|k| k.0 == i).map_or(0.0, |k| k.1);
                seen.violation = seen.violation.max(penalty.violation(value, slope));
                seen.largest.1 = seen.largest.1.max(slope.abs());
                if value == 0.0 && slope.abs() > penalty.l1 {
                    let excess = (slope.abs() / penalty.l1) as f32;
                    found.push(Candidate { row: i as u32, col: j as u32, excess, pair: false });
                }
            }
        }
    }
    seen.candidates = found.list;
    seen
}

/// Columns of `∇_Λ`, down to the last one's diagonal, and of `∇_Θ`.
fn slopes(
    samples: &Samples<'_>,
    (ground, point, means): (&Ground, &Point, &Means<'_>),
    columns: Range<usize>,
) -> (Vec<f64>, Vec<f64>) {
    let Samples { x, y, par, .. } = *samples;
    let (p, n, wide, last) = (y.cols(), x.cols(), columns.len(), columns.end);
    let (mut lambda, mut theta) = (vec![0.0; last * wide], vec![0.0; n * wide]);
    // One stretch where nothing has to be found again.
    let stretches = match means {
        Means::Kept(_) => std::iter::once(0..samples.rows()).collect(),
        Means::Again(..) => samples.stretches(),
    };
    let over = 1.0 / samples.count;
    for rows in stretches {
        samples.look(means, rows.clone(), |k| {
            let mut e = vec![0.0; rows.len() * wide];
            for (e, j) in e.chunks_exact_mut(rows.len()).zip(columns.clone()) {
                let both = y.col(j)[rows.clone()].iter().zip(k.col(j));
                e.iter_mut().zip(both).for_each(|(e, (y, k))| *e = y + k);
            }
            let e = Part { values: &e, rows: rows.len(), cols: wide, stride: rows.len() };
            add_transposed_product(par, 2.0 * over, Part::of(x, rows.clone(), 0..n), e, &mut theta);
            let (all, own) = (Part::of(y, rows.clone(), 0..last), Part::of(y, rows.clone(), columns.clone()));
            add_transposed_product(par, over, all, own, &mut lambda);
            add_transposed_product(par, -over, k.columns(0..last), k.columns(columns.clone()), &mut lambda);
        });
    }
    let parts: Vec<Range<usize>> =
        columns.clone().step_by(SOLVED).map(|start| start..(start + SOLVED).min(last)).collect();
    let solved = par.map(parts, |part| {
        let width = part.len();
        let mut b = vec![0.0; p * width];
        part.clone().enumerate().for_each(|(c, j)| b[j * width + c] = 1.0);
        vectorized(Solve { shape: &ground.shape, factor: &point.factor, width, b: &mut b });
        (part, b)
    });
    for (part, b) in solved {
        let width = part.len();
        for (c, j) in part.enumerate() {
            let own = &mut lambda[(j - columns.start) * last..][..last];
            own.iter_mut().zip(b[c..].iter().step_by(width)).for_each(|(g, s)| *g -= s);
        }
    }
    (lambda, theta)
}
