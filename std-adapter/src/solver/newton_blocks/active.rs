//! Which entries of Λ and Θ may move, and vectors over them.

use crate::objective::gaussian::Penalties;
use crate::sparse::Sparse;
use std::ops::Range;

/// Places of a matrix, column after column, rows ascending.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pattern {
    pub(super) starts: Vec<u32>,
    pub(super) rows: Vec<u32>,
}

impl Pattern {
    /// Of `(row, column)` in any order, each once.
    fn new(cols: usize, mut places: Vec<(u32, u32)>) -> Self {
        places.sort_unstable_by_key(|&(i, j)| (j, i));
        let mut starts = vec![0u32; cols + 1];
        places.iter().for_each(|&(_, j)| starts[j as usize + 1] += 1);
        (0..cols).for_each(|j| starts[j + 1] += starts[j]);
        Self { starts, rows: places.into_iter().map(|(i, _)| i).collect() }
    }

    pub(super) fn cols(&self) -> usize {
        self.starts.len() - 1
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    #[inline(always)]
    pub(super) fn range(&self, j: usize) -> Range<usize> {
        self.starts[j] as usize..self.starts[j + 1] as usize
    }

    /// `(row, column)` of each place.
    pub(super) fn places(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        (0..self.cols()).flat_map(move |j| self.range(j).map(move |e| (self.rows[e] as usize, j)))
    }
}

/// Entries that may move: of Λ the upper triangle, in which every column ends with its diagonal, and of Θ.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Active {
    pub(super) pairs: Pattern,
    pub(super) weights: Pattern,
}

/// A number for each entry that may move.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Vector {
    pub(super) lambda: Vec<f64>,
    pub(super) theta: Vec<f64>,
}

impl Active {
    /// The entries of `(Λ, Θ)` that are not 0, the diagonal, and some more; with the values there.
    pub(super) fn new(
        (lambda, theta): (&Sparse, &Sparse),
        more_pairs: &[(u32, u32)],
        more_weights: &[(u32, u32)],
    ) -> (Self, Vector) {
        let place = |(i, j, _): (usize, usize, f64)| (i as u32, j as u32);
        let p = lambda.cols();
        let own = lambda.entries().filter(|e| e.0 < e.1).map(place);
        let diagonal = (0..p as u32).map(|j| (j, j));
        let pairs = Pattern::new(p, own.chain(diagonal).chain(more_pairs.iter().copied()).collect());
        let own = theta.entries().map(place);
        let weights = Pattern::new(p, own.chain(more_weights.iter().copied()).collect());
        let at = Vector {
            lambda: pairs.places().map(|(i, j)| lambda.get(i, j)).collect(),
            theta: weights.places().map(|(i, j)| theta.get(i, j)).collect(),
        };
        (Self { pairs, weights }, at)
    }

    pub(super) fn len(&self) -> usize {
        self.pairs.len() + self.weights.len()
    }

    pub(super) fn zeros(&self) -> Vector {
        Vector { lambda: vec![0.0; self.pairs.len()], theta: vec![0.0; self.weights.len()] }
    }

    /// The inner product of matrices: a pair stands for two entries.
    pub(super) fn dot(&self, a: &Vector, b: &Vector) -> f64 {
        let sum = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let diagonal: f64 = self.diagonal().map(|e| a.lambda[e] * b.lambda[e]).sum();
        2.0 * sum(&a.lambda, &b.lambda) - diagonal + sum(&a.theta, &b.theta)
    }

    /// Where the diagonal of Λ is.
    pub(super) fn diagonal(&self) -> impl Iterator<Item = usize> + '_ {
        self.pairs.starts[1..].iter().map(|&end| end as usize - 1)
    }

    /// The penalty at a point.
    pub(super) fn penalty(&self, at: &Vector, penalties: &Penalties) -> f64 {
        let sum = |v: &[f64]| v.iter().map(|v| v.abs()).sum::<f64>();
        let diagonal: f64 = self.diagonal().map(|e| at.lambda[e].abs()).sum();
        let pairs = 2.0 * (sum(&at.lambda) - diagonal) + if penalties.diagonal { diagonal } else { 0.0 };
        penalties.lambda * pairs + penalties.theta * sum(&at.theta)
    }

    /// The violation over these entries alone.
    pub(super) fn violation(&self, at: &Vector, slopes: &Vector, penalties: &Penalties) -> f64 {
        let mut most = 0.0f64;
        for (e, (i, j)) in self.pairs.places().enumerate() {
            most = most.max(penalties.of_lambda(i, j).violation(at.lambda[e], slopes.lambda[e]));
        }
        let penalty = penalties.of_theta();
        at.theta.iter().zip(&slopes.theta).fold(most, |most, (&t, &g)| most.max(penalty.violation(t, g)))
    }

    /// `(Λ, Θ)` as matrices, Λ with both triangles.
    pub(super) fn matrices(&self, at: &Vector, inputs: usize) -> (Sparse, Sparse) {
        let p = self.pairs.cols();
        let upper = self.pairs.places().zip(&at.lambda).filter(|(_, v)| **v != 0.0);
        let mut lambda: Vec<(u32, u32, f64)> = Vec::with_capacity(2 * self.pairs.len());
        for ((i, j), &v) in upper {
            lambda.push((i as u32, j as u32, v));
            if i != j {
                lambda.push((j as u32, i as u32, v));
            }
        }
        let theta = self.weights.places().zip(&at.theta).filter(|(_, v)| **v != 0.0);
        let theta = theta.map(|((i, j), &v)| (i as u32, j as u32, v)).collect();
        let empty = |rows, cols| Sparse::from_entries(rows, cols, Vec::new());
        // Places are inside and different, so that there is always something to unwrap.
        let lambda = Sparse::from_entries(p, p, lambda).or_else(|| empty(p, p));
        let theta = Sparse::from_entries(inputs, p, theta).or_else(|| empty(inputs, p));
        let nothing = || Sparse::from_dense(&crate::linalg::Dense::zeros(0, 0));
        (lambda.unwrap_or_else(nothing), theta.unwrap_or_else(nothing))
    }
}

impl Vector {
    pub(super) fn largest(&self) -> f64 {
        self.lambda.iter().chain(&self.theta).fold(0.0, |most, v| most.max(v.abs()))
    }

    pub(super) fn zip(&mut self, other: &Self, f: impl Fn(&mut f64, f64)) {
        self.lambda.iter_mut().zip(&other.lambda).for_each(|(a, b)| f(a, *b));
        self.theta.iter_mut().zip(&other.theta).for_each(|(a, b)| f(a, *b));
    }
}
