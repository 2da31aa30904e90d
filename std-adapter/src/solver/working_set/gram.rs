//! `H = A_Wᵀ diag(w) A_W` of a working set, when forming it is cheaper than the passes that it saves.

use super::quadratic::Gram;
use crate::par::{Kernel, vectorized};
use gibbsite_core::column::Column;
use gibbsite_core::math::Real;

/// `H` and what its descent needs.
#[derive(Debug, Default)]
pub(super) struct GramTable {
    size: usize,
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

/// What forming `H` costs, in entries of a pass over the columns; nothing if a product with `H` would cost more than one with the columns.
pub(super) fn price<V: Real>(columns: &[Column<'_, V>], rows: usize) -> Option<u64> {
    let (k, entries) = (columns.len() as u64, columns.iter().map(|c| c.len() as u64).sum::<u64>());
    if columns.len() > MOST || k * k > 2 * entries {
        return None;
    }
    // Pairs that meet in a row, if entries were spread evenly; they are not, but only the order of magnitude matters.
    let pairs = entries * (entries / rows.max(1) as u64 + 1) / 2;
    // Plain products of whole columns run several times as fast as anything else here.
    Some(if all_whole(columns) { pairs / 2 } else { pairs })
}

/// Passes over the columns that a price may come to for `H` to be formed at once; a dearer one is paid only after as much
/// has been spent without it.
pub(super) const AT_ONCE: u64 = 16;

fn all_whole<V>(columns: &[Column<'_, V>]) -> bool {
    columns.iter().all(|c| matches!(c, Column::Dense(_)))
}

/// The lower triangle of `H`.
struct Products<'a, V> {
    columns: &'a [Column<'a, V>],
    weight: Option<&'a [f64]>,
    table: &'a mut [f64],
    scaled: &'a mut [f64],
}

impl<V: Real> Kernel for Products<'_, V> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Self { columns, weight, table, scaled } = self;
        for (p, row) in table.chunks_exact_mut(columns.len().max(1)).enumerate() {
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
    /// Forms `H` of columns that are all stored whole, without listing rows.
    fn form_whole<V: Real>(&mut self, columns: &[Column<'_, V>], weight: Option<&[f64]>) -> u64 {
        let k = columns.len();
        self.size = k;
        self.table.clear();
        self.table.resize(k * k, 0.0);
        let rows = columns.first().map_or(0, Column::len);
        vectorized(Products {
            columns,
            weight,
            table: &mut self.table[..],
            scaled: &mut vec![0.0; rows][..],
        });
        self.mirror();
        (k * (k + 1) / 2 * rows) as u64
    }

    fn mirror(&mut self) {
        let k = self.size;
        for p in 0..k {
            for q in 0..p {
                self.table[q * k + p] = self.table[p * k + q];
            }
        }
    }

    /// Forgets the columns: the next ones are others.
    pub(super) fn forget(&mut self) {
        self.listed = false;
    }

    /// Lists the columns by rows.
    fn list<V: Real>(&mut self, columns: &[Column<'_, V>], rows: usize) {
        self.size = columns.len();
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

    /// Forms `H`, with row weights or without. Returns entries visited.
    pub(super) fn form<V: Real>(
        &mut self,
        columns: &[Column<'_, V>],
        rows: usize,
        weight: Option<&[f64]>,
    ) -> u64 {
        if all_whole(columns) {
            return self.form_whole(columns, weight);
        }
        if !self.listed {
            self.list(columns, rows);
        }
        let k = self.size;
        self.table.clear();
        self.table.resize(k * k, 0.0);
        let (mut start, mut entries) = (0, 0);
        for (i, &end) in self.ends.iter().enumerate() {
            let w = weight.map_or(1.0, |w| w[i]);
            let (position, value) = (&self.position[start..end], &self.value[start..end]);
            for (s, (&p, &a)) in position.iter().zip(value).enumerate() {
                let row = &mut self.table[p as usize * k..(p as usize + 1) * k];
                let a = a * w;
                // Positions ascend within a row: the lower triangle only.
                for (&q, &b) in position[..=s].iter().zip(&value[..=s]) {
                    row[q as usize] += a * b;
                }
            }
            entries += ((end - start) * (end - start + 1) / 2) as u64;
            start = end;
        }
        self.mirror();
        entries
    }

    /// The quadratic at a point where the loss has these slopes.
    pub(super) fn quadratic(&mut self, slopes: Vec<f64>) -> Gram<'_> {
        self.slopes = slopes;
        self.moved.resize(self.size, 0.0);
        Gram { table: &self.table, slopes: &mut self.slopes, moved: &mut self.moved[..self.size] }
    }
}
