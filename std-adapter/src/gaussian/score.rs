//! How good forecasts are: squared error, log loss, CRPS, coverage of intervals.

use super::normal;
use super::predict::Forecaster;
use crate::linalg::{Cholesky, Dense};
use std::collections::HashMap;
use std::f64::consts::TAU;

/// Scores over the cells that are known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GaussianScore {
    /// Rows with at least one known cell.
    pub rows: usize,
    /// Known cells.
    pub cells: usize,
    /// Mean squared error of a cell.
    pub mse: f64,
    /// Mean over rows of `-log p(y | x)`, the density of all known outputs of the row together.
    pub log_loss: f64,
    /// Mean continuous ranked probability score of a cell.
    pub crps: f64,
    /// Share of cells within their own interval.
    pub coverage: f64,
    /// Share of rows with all cells within the joint intervals.
    pub joint_coverage: f64,
}

/// Half the widths of intervals, in standard deviations: of each output by itself, and of all together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Widths {
    /// Of one output.
    pub own: f64,
    /// Of all.
    pub joint: f64,
}

/// Scores means of rows against outputs of which some may be missing (NaN). `None` if all are.
pub fn score(model: &Forecaster, means: &Dense, y: &Dense, widths: Widths) -> Option<GaussianScore> {
    let p = model.outputs();
    let deviations: Vec<f64> = (0..p).map(|j| model.covariance().get(j, j).sqrt()).collect();
    let mut factors: HashMap<Vec<bool>, Option<Cholesky>> = HashMap::new();
    let mut sum = GaussianScore {
        rows: 0,
        cells: 0,
        mse: 0.0,
        log_loss: 0.0,
        crps: 0.0,
        coverage: 0.0,
        joint_coverage: 0.0,
    };
    for row in 0..y.rows() {
        let known: Vec<bool> = (0..p).map(|j| !y.get(row, j).is_nan()).collect();
        let which: Vec<usize> = (0..p).filter(|&j| known[j]).collect();
        if which.is_empty() {
            continue;
        }
        let factor = factors
            .entry(known)
            .or_insert_with(|| Cholesky::new(&model.covariance().select_columns(&which).select_rows(&which)));
        let mut error =
            Dense::from_fn(which.len(), 1, |k, _| y.get(row, which[k]) - means.get(row, which[k]));
        let mut inside = 0;
        let mut all = true;
        for (k, &j) in which.iter().enumerate() {
            let e = error.get(k, 0);
            sum.mse += e * e;
            sum.crps += normal::crps(0.0, deviations[j], e);
            inside += usize::from(e.abs() <= widths.own * deviations[j]);
            all &= e.abs() <= widths.joint * deviations[j];
        }
        // The covariance of some outputs is a part of that of all: positive definite but for rounding.
        sum.log_loss += factor.as_ref().map_or(f64::NAN, |factor| {
            factor.solve_lower(&mut error);
            0.5 * (which.len() as f64 * TAU.ln() + factor.log_det() + error.dot(&error))
        });
        sum.rows += 1;
        sum.cells += which.len();
        sum.coverage += inside as f64;
        sum.joint_coverage += f64::from(u8::from(all));
    }
    if sum.cells == 0 {
        return None;
    }
    let (rows, cells) = (sum.rows as f64, sum.cells as f64);
    Some(GaussianScore {
        mse: sum.mse / cells,
        log_loss: sum.log_loss / rows,
        crps: sum.crps / cells,
        coverage: sum.coverage / cells,
        joint_coverage: sum.joint_coverage / rows,
        ..sum
    })
}
