//! `H = A_Wᵀ diag(w) A_W` of a working set, when forming it is cheaper than the passes that it saves.

use super::quadratic::Gram;
use crate::par::{Kernel, vectorized};
use gibbsite_core::column::Column;
use gibbsite_core::math::Real;

/// `H` and what its descent needs. Without row weights `H` does not depend on the point, so it is kept and only
/// grows: along a path, pairs of columns are multiplied once.
#[derive(Debug, Default)]
pub(super) struct GramTable {
    /// Columns of the matrix that the table is about, in its order, if it is to be kept.
    pub(super) members: Vec<u32>,
    /// Leading rows and columns that are right.
    formed: usize,
    /// From one row of the table to the next.
    stride: usize,
    listed: bool,
    table: Vec<f64>,
    slopes: Vec<f64>,
    moved: Vec<f64>,
    /// The working columns by rows: where each row ends, positions, values.
    ends: Vec<usize>,
    position: Vec<u32>,
    value: Vec<f64>,
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

fn all_whole<V>(columns: &[Column<'_, V>]) -> bool {
    columns.iter().all(|c| matches!(c, Column::Dense(_)))
}

/// The lower triangle of `H`.
struct Products<'a, V> {
    from: usize,
    stride: usize,
    columns: &'a [Column<'a, V>],
    weight: Option<&'a [f64]>,
    table: &'a mut [f64],
    scaled: &'a mut [f64],
}

impl<V: Real> Kernel for Products<'_, V> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Self { from, stride, columns, weight, table, scaled } = self;
        for (p, row) in table.chunks_exact_mut(stride).enumerate().take(columns.len()).skip(from) {
            scaled.fill(0.0);
            columns[p].add_to(1.0, scaled);
            if let Some(weight) = weight {
                scaled.iter_mut().zip(weight).for_each(|(s, w)| *s *= w);
            }
            for (out, other) in row.iter_mut().zip(&columns[..=p]) {
                *out = other.dot(scaled);
            }
        }
    }
}

impl GramTable {
    /// What [`form`](Self::form) would cost, in entries of a pass over the columns; nothing if it is not worth it at any price.
    pub(super) fn price<V: Real>(&self, columns: &[Column<'_, V>], rows: usize, kept: bool) -> Option<u64> {
        let entries: u64 = columns.iter().map(|c| c.len() as u64).sum();
        if !fits(columns.len(), entries) {
            return None;
        }
        let from = if kept { self.formed } else { 0 };
        let new: u64 = columns[from..].iter().map(|c| c.len() as u64).sum();
        // Pairs that meet in a row, if entries were spread evenly; they are not, but only the order of magnitude matters.
        let pairs = new * (entries / rows.max(1) as u64 + 1) / if from == 0 { 2 } else { 1 };
        // Plain products of whole columns run several times as fast as anything else here.
        Some(if all_whole(columns) { pairs / 2 } else { pairs })
    }

    /// Forgets the columns: the next ones are others.
    pub(super) fn forget(&mut self) {
        self.listed = false;
        self.formed = 0;
        self.members.clear();
    }

    /// Forms `H`: with row weights all of it, without them what is new. Returns entries visited.
    pub(super) fn form<V: Real>(
        &mut self,
        columns: &[Column<'_, V>],
        rows: usize,
        weight: Option<&[f64]>,
    ) -> u64 {
        let k = columns.len();
        if weight.is_some() {
            self.formed = 0;
        } else {
            self.listed = false;
        }
        let from = self.formed;
        if from >= k && from > 0 {
            return 0;
        }
        self.make_room(k);
        let (stride, table) = (self.stride, &mut self.table);
        let visited = if all_whole(columns) {
            let scaled = &mut vec![0.0; rows][..];
            vectorized(Products { from, stride, columns, weight, table, scaled });
            ((k * (k + 1) - from * (from + 1)) / 2 * rows) as u64
        } else if from > 0 {
            self.extend(columns, rows, from)
        } else {
            if !self.listed {
                self.list(columns, rows);
            }
            self.form_by_rows(weight)
        };
        for p in from..k {
            for q in 0..p {
                self.table[q * stride + p] = self.table[p * stride + q];
            }
        }
        self.formed = k;
        visited
    }

    /// Widens the rows if need be, keeping what is formed; the rest is zero.
    fn make_room(&mut self, k: usize) {
        if k > self.stride {
            let stride = if self.formed == 0 { k } else { (k + k / 2).min(MOST.max(k)) };
            let mut wider = vec![0.0; stride * stride];
            for p in 0..self.formed {
                let (from, to) = (p * self.stride, p * stride);
                wider[to..to + self.formed].copy_from_slice(&self.table[from..from + self.formed]);
            }
            (self.stride, self.table) = (stride, wider);
            return;
        }
        for (p, row) in self.table.chunks_exact_mut(self.stride.max(1)).enumerate().take(k) {
            let keep = if p < self.formed { self.formed } else { 0 };
            row[keep..k].fill(0.0);
        }
    }

    /// Lists the columns by rows.
    fn list<V: Real>(&mut self, columns: &[Column<'_, V>], rows: usize) {
        self.ends.clear();
        self.ends.resize(rows + 1, 0);
        for column in columns {
            column.iter::<f64>().for_each(|(row, _)| self.ends[row + 1] += 1);
        }
        for i in 0..rows {
            self.ends[i + 1] += self.ends[i];
        }
        let entries = self.ends[rows];
        self.position.resize(entries, 0);
        self.value.resize(entries, 0.0);
        // `ends[i]` walks from the start of row i to its end, which is the start of row i + 1.
        for (p, column) in columns.iter().enumerate() {
            for (row, a) in column.iter::<f64>() {
                let at = self.ends[row];
                self.position[at] = p as u32;
                self.value[at] = a;
                self.ends[row] += 1;
            }
        }
        self.ends.truncate(rows);
        self.listed = true;
    }

    /// The lower triangle, row of the matrix by row.
    fn form_by_rows(&mut self, weight: Option<&[f64]>) -> u64 {
        let (mut start, mut entries) = (0, 0);
        for (i, &end) in self.ends.iter().enumerate() {
            let w = weight.map_or(1.0, |w| w[i]);
            let (position, value) = (&self.position[start..end], &self.value[start..end]);
            for (s, (&p, &a)) in position.iter().zip(value).enumerate() {
                let p = p as usize;
                let row = &mut self.table[p * self.stride..=p * self.stride + p];
                let a = a * w;
                // Positions ascend within a row.
                for (&q, &b) in position[..=s].iter().zip(&value[..=s]) {
                    row[q as usize] += a * b;
                }
            }
            entries += ((end - start) * (end - start + 1) / 2) as u64;
            start = end;
        }
        entries
    }

    /// The rows of the table from `from` on: only the new columns are listed by rows, and one pass over all columns meets them.
    fn extend<V: Real>(&mut self, columns: &[Column<'_, V>], rows: usize, from: usize) -> u64 {
        self.list(&columns[from..], rows);
        let mut products = vec![0.0; columns.len() - from];
        let mut entries = 0;
        for (q, column) in columns.iter().enumerate() {
            products.fill(0.0);
            for (row, a) in column.iter::<f64>() {
                let start = if row == 0 { 0 } else { self.ends[row - 1] };
                let end = self.ends[row];
                for (&p, &b) in self.position[start..end].iter().zip(&self.value[start..end]) {
                    products[p as usize] += a * b;
                }
                entries += (end - start) as u64 + 1;
            }
            for (p, &product) in products.iter().enumerate() {
                self.table[(from + p) * self.stride + q] = product;
            }
        }
        entries
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
