//! Sparse `L D Lᵀ` of Λ, as a device wants it: in an order of the outputs that keeps `L` sparse.

use crate::linalg::Dense;
use gibbsite_core::infer::gaussian::{Plain, factorise};
use std::collections::BTreeSet;

/// `PΛPᵀ = L D Lᵀ`; the arrays are those of [`Plain`].
#[derive(Clone, Debug, PartialEq)]
pub struct SparseFactor {
    /// The output at each place.
    pub order: Vec<u32>,
    /// Where the entries of each column begin, and the last ends.
    pub starts: Vec<u32>,
    /// Their rows, as places.
    pub rows: Vec<u32>,
    /// `L` below its diagonal.
    pub factor: Vec<f64>,
    /// `D`.
    pub pivots: Vec<f64>,
    /// Λ where `L` has entries.
    pub couplings: Vec<f64>,
    /// The diagonal of Λ, by place.
    pub diagonal: Vec<f64>,
}

impl SparseFactor {
    /// Factorises Λ in an order of least degree: each time the output that has the fewest neighbours left is eliminated, which joins those to each other (of equals the
    /// first). `None` if Λ is not positive definite.
    ///
    /// ```
    /// use gibbsite::{gaussian::factor::SparseFactor, linalg::Dense};
    /// // A star: its centre, output 0, goes last but one, and nothing is filled in.
    /// let star = Dense::from_fn(4, 4, |i, j| if i == j { 4.0 } else if i * j == 0 { 1.0 } else { 0.0 });
    /// let found = SparseFactor::new(&star).unwrap();
    /// assert_eq!((found.order, found.rows.len()), (vec![1, 2, 0, 3], 3));
    /// ```
    pub fn new(lambda: &Dense) -> Option<Self> {
        let p = lambda.cols();
        let (order, columns) = eliminate(lambda);
        let mut place = vec![0u32; p];
        order.iter().enumerate().for_each(|(k, &output)| place[output] = k as u32);
        let (mut starts, mut rows, mut couplings) = (vec![0u32], Vec::new(), Vec::new());
        for (column, &output) in columns.iter().zip(&order) {
            let mut below: Vec<(u32, usize)> = column.iter().map(|&other| (place[other], other)).collect();
            below.sort_unstable();
            for (row, other) in below {
                rows.push(row);
                couplings.push(lambda.get(other, output));
            }
            starts.push(rows.len() as u32);
        }
        let diagonal: Vec<f64> = order.iter().map(|&output| lambda.get(output, output)).collect();
        let order: Vec<u32> = order.iter().map(|&output| output as u32).collect();
        let (mut factor, mut pivots) = (couplings.clone(), diagonal.clone());
        let zeros = vec![0.0; p];
        let nothing = vec![0u32; p + 1];
        let pattern = Plain {
            inputs: 0,
            order: &order,
            starts: &starts,
            rows: &rows,
            factor: &couplings,
            pivots: &diagonal,
            couplings: &couplings,
            diagonal: &diagonal,
            theta_starts: &nothing,
            theta_inputs: &[],
            theta: &[],
            intercept: &zeros,
            deviations: &zeros,
        };
        factorise(&pattern, &mut factor, &mut pivots).ok()?;
        Some(Self { order, starts, rows, factor, pivots, couplings, diagonal })
    }
}

/// The order, and for each output in that order the ones that it is joined to when it goes.
fn eliminate(lambda: &Dense) -> (Vec<usize>, Vec<Vec<usize>>) {
    let p = lambda.cols();
    let mut near: Vec<BTreeSet<usize>> =
        (0..p).map(|j| (0..p).filter(|&i| i != j && lambda.get(i, j) != 0.0).collect()).collect();
    let mut left: BTreeSet<usize> = (0..p).collect();
    let (mut order, mut columns) = (Vec::new(), Vec::new());
    while let Some(next) = left.iter().copied().min_by_key(|&j| near[j].len()) {
        left.remove(&next);
        let own = std::mem::take(&mut near[next]);
        // Where all are joined to all, the order no longer matters, and nobody need be told.
        if own.len() == left.len() {
            order.push(next);
            columns.push(own.into_iter().collect());
            while let Some(next) = left.pop_first() {
                order.push(next);
                columns.push(left.iter().copied().collect());
            }
            break;
        }
        for &a in &own {
            near[a].remove(&next);
            let more: Vec<usize> = own.iter().copied().filter(|&b| b != a).collect();
            near[a].extend(more);
        }
        order.push(next);
        columns.push(own.into_iter().collect());
    }
    (order, columns)
}
