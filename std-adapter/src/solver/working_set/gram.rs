//! `H = A_Wᵀ diag(w) A_W` of a working set, when forming it is cheaper than the passes that it saves.

use super::quadratic::Gram;
use crate::par::{Kernel, Par, vectorized};
use gibbsite_core::column::Column;
use gibbsite_core::math::Real;

/// `H` and what its descent needs. Rows and columns that are formed are kept and only grow: along a path, pairs of columns are
/// multiplied once. With row weights that have moved little since, the old products still serve: the step is then a little shorter of
/// Newton's, and its slopes are exact all the same.
#[derive(Debug, Default)]
pub(super) struct GramTable {
    /// Columns of the matrix that the table is about, in its order; empty if it is not in use.
    pub(super) members: Vec<u32>,
    /// Leading rows and columns that are right.
    formed: usize,
    /// From one row of the table to the next.
    stride: usize,
    table: Vec<f64>,
    /// Row weights that it was formed with; empty if there were none.
    weight: Vec<f64>,
    slopes: Vec<f64>,
    moved: Vec<f64>,
    /// The columns by rows: positions, ascending, and values.
    rows: Vec<Vec<(u32, f64)>>,
    /// Leading columns that `rows` lists.
    listed: usize,
}

/// Most columns: 2048² entries are 32 MiB.
const MOST: usize = 2048;

/// Whether `H` of so many columns is small enough, and a product with it cheaper than one with the columns: it streams, they gather.
pub(super) fn fits(columns: usize, entries: u64) -> bool {
    columns <= MOST && (columns * columns) as u64 <= 6 * entries
}

/// Passes over the columns that a price may come to for `H` to be formed at once; a dearer one is paid only after as much
/// has been spent without it.
pub(super) const AT_ONCE: u64 = 16;

/// Share of the row weights that may have changed before `H` is formed again.
const CLOSE: f64 = 0.1;

fn all_whole<V>(columns: &[Column<'_, V>]) -> bool {
    columns.iter().all(|c| matches!(c, Column::Dense(_)))
}

/// Rows of the lower triangle of `H`, from whole columns.
struct DenseRows<'a, 'b, V> {
    columns: &'a [Column<'a, V>],
    weight: &'a [f64],
    rows: Vec<(usize, &'b mut [f64])>,
}

impl<V: Real> Kernel for DenseRows<'_, '_, V> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Self { columns, weight, rows } = self;
        let mut scaled = vec![0.0; columns.first().map_or(0, Column::len)];
        for (p, row) in rows {
            scaled.fill(0.0);
            columns[p].add_to(1.0, &mut scaled);
            if !weight.is_empty() {
                scaled.iter_mut().zip(weight).for_each(|(s, w)| *s *= w);
            }
            for (out, other) in row.iter_mut().zip(&columns[..=p]) {
                *out = other.dot(&scaled);
            }
        }
    }
}

/// Rows of the lower triangle of `H`, from the columns by rows. Returns pairs visited.
struct SparseRows<'a, 'b, V> {
    columns: &'a [Column<'a, V>],
    lists: &'a [Vec<(u32, f64)>],
    weight: &'a [f64],
    rows: Vec<(usize, &'b mut [f64])>,
}

impl<V: Real> Kernel for SparseRows<'_, '_, V> {
    type Output = u64;
    #[inline(always)]
    fn run(self) -> u64 {
        let Self { columns, lists, weight, rows } = self;
        let mut pairs = 0;
        for (p, row) in rows {
            row[..=p].fill(0.0);
            for (i, a) in columns[p].iter::<f64>() {
                let a = if weight.is_empty() { a } else { a * weight[i] };
                for &(q, b) in &lists[i] {
                    if q as usize > p {
                        break;
                    }
                    row[q as usize] += a * b;
                    pairs += 1;
                }
            }
        }
        pairs
    }
}

/// Rows of the table that a thread takes at a time.
const STRIP: usize = 8;

impl GramTable {
    /// What [`form`](Self::form) would cost, in entries of a pass over the columns; nothing if it is not worth it at any price.
    pub(super) fn price<V: Real>(
        &self,
        columns: &[Column<'_, V>],
        rows: usize,
        weight: Option<&[f64]>,
    ) -> Option<u64> {
        let entries: u64 = columns.iter().map(|c| c.len() as u64).sum();
        if !fits(columns.len(), entries) {
            return None;
        }
        let from = if self.serves(weight) { self.formed } else { 0 };
        let new: u64 = columns[from..].iter().map(|c| c.len() as u64).sum();
        // Pairs that meet in a row, if entries were spread evenly; they are not, but only the order of magnitude matters.
        let pairs = new * (entries / rows.max(1) as u64 + 1) / if from == 0 { 2 } else { 1 };
        // Plain products of whole columns run several times as fast as anything else here.
        Some(if all_whole(columns) { pairs / 2 } else { pairs })
    }

    /// Whether what is formed is close enough to `H` with these row weights.
    fn serves(&self, weight: Option<&[f64]>) -> bool {
        let Some(weight) = weight else { return self.weight.is_empty() };
        let (mut off, mut sum) = (0.0, 0.0);
        for (now, then) in weight.iter().zip(&self.weight) {
            off += (now - then).abs();
            sum += now;
        }
        self.weight.len() == weight.len() && off <= CLOSE * sum
    }

    /// What is formed is not good enough any more.
    pub(super) fn outdate(&mut self) {
        self.formed = 0;
        self.weight.clear();
    }

    /// Forgets the columns: the next ones are others.
    pub(super) fn forget(&mut self) {
        self.outdate();
        self.members.clear();
        self.rows.iter_mut().for_each(Vec::clear);
        self.listed = 0;
    }

    /// Forms what is missing of `H`. Returns entries visited.
    pub(super) fn form<V: Real>(
        &mut self,
        columns: &[Column<'_, V>],
        rows: usize,
        weight: Option<&[f64]>,
        par: Par,
    ) -> u64 {
        let k = columns.len();
        if !self.serves(weight) {
            self.outdate();
        }
        if self.formed == 0 {
            self.weight.clear();
            self.weight.extend_from_slice(weight.unwrap_or(&[]));
        }
        let from = self.formed;
        if from >= k {
            return 0;
        }
        self.make_room(k);
        let whole = all_whole(columns);
        if !whole {
            self.list(columns, rows);
        }
        let (stride, lists, weight) = (self.stride, &self.rows[..], &self.weight[..]);
        let mut strips = Vec::new();
        let mut table = self.table.chunks_exact_mut(stride).enumerate().take(k).skip(from);
        loop {
            let strip: Vec<(usize, &mut [f64])> = table.by_ref().take(STRIP).collect();
            if strip.is_empty() {
                break;
            }
            strips.push(strip);
        }
        let visited = par.map(strips, |rows| {
            if whole {
                vectorized(DenseRows { columns, weight, rows });
                0
            } else {
                vectorized(SparseRows { columns, lists, weight, rows })
            }
        });
        for p in from..k {
            for q in 0..p {
                self.table[q * stride + p] = self.table[p * stride + q];
            }
        }
        self.formed = k;
        if whole { ((k * (k + 1) - from * (from + 1)) / 2 * rows) as u64 } else { visited.iter().sum() }
    }

    /// Widens the rows if need be, keeping what is formed.
    fn make_room(&mut self, k: usize) {
        if k > self.stride {
            let stride = if self.formed == 0 { k } else { (k + k / 2).min(MOST.max(k)) };
            let mut wider = vec![0.0; stride * stride];
            for p in 0..self.formed {
                let (from, to) = (p * self.stride, p * stride);
                wider[to..to + self.formed].copy_from_slice(&self.table[from..from + self.formed]);
            }
            (self.stride, self.table) = (stride, wider);
        }
    }

    /// Lists columns by rows that are not listed yet.
    fn list<V: Real>(&mut self, columns: &[Column<'_, V>], rows: usize) {
        self.rows.resize_with(rows, Vec::new);
        for (p, column) in columns.iter().enumerate().skip(self.listed) {
            column.iter::<f64>().for_each(|(row, a)| self.rows[row].push((p as u32, a)));
        }
        self.listed = columns.len();
    }

    /// The quadratic at a point where the loss has these slopes.
    pub(super) fn quadratic(&mut self, slopes: Vec<f64>) -> Gram<'_> {
        self.slopes = slopes;
        let k = self.slopes.len();
        self.moved.resize(k, 0.0);
        Gram {
            table: &self.table,
            stride: self.stride,
            slopes: &mut self.slopes,
            moved: &mut self.moved[..k],
        }
    }
}
