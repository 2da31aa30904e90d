//! `H = A_Wᵀ diag(w) A_W` of a working set, when forming it is cheaper than the passes that it saves.

use super::by_gram::Gram;
use crate::data::rows::Rows;
use crate::par::{Kernel, Par, vectorized};
use gibbsite_core::column::Column;
use gibbsite_core::lanes::sum_pairs;
use gibbsite_core::math::Real;
use std::ops::Range;

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
    /// In single precision, summed in double.
    table: Vec<f32>,
    /// Row weights that it was formed with; empty if there were none.
    weight: Vec<f64>,
    moved: Vec<f64>,
    wide: Vec<f64>,
    /// The columns by rows.
    layers: Vec<Layer>,
    /// Memory of layers that are not in use.
    spare: Vec<Rows<f32>>,
    /// Whether a step by it turned out to be wrong: some problems are too badly conditioned for single precision.
    distrusted: bool,
    /// Entries visited for want of it since it was formed last.
    pub(super) rent: u64,
}

/// Most columns: 2048² entries are 16 MiB.
const MOST: usize = 2048;

/// Squared norms of columns whose products single precision can hold, with any row weights.
const RANGE: Range<f64> = 1e-20..1e30;

/// Whether `H` of so many columns is small enough, and a product with it cheaper than one with the columns: it streams, they gather.
pub(super) fn fits(columns: usize, entries: u64) -> bool {
    columns <= MOST && (columns * columns) as u64 <= 6 * entries
}

/// Passes over the columns that a price may come to for `H` to be formed at once, at a tenth of `λ_max`; a dearer one is paid only after as
/// much more has been spent without it, in this solve and those before.
pub(super) const AT_ONCE: f64 = 4.0;

/// Share of the row weights that may have changed before `H` is formed again.
const CLOSE: f64 = 0.3;

fn all_whole<V>(columns: &[Column<'_, V>]) -> bool {
    columns.iter().all(|c| matches!(c, Column::Dense(_)))
}

/// Rows of the lower triangle of `H`, from whole columns.
struct DenseRows<'a, 'b, V> {
    columns: &'a [Column<'a, V>],
    weight: &'a [f64],
    rows: Vec<(usize, &'b mut [f32])>,
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
                *out = other.dot(&scaled) as f32;
            }
        }
    }
}

/// Consecutive columns of the set, by rows.
#[derive(Debug)]
struct Layer {
    columns: Range<usize>,
    rows: Rows<f32>,
}

/// Rows of the lower triangle of `H` that belong to columns of one layer, from the columns by rows. It goes through the rows of the
/// matrix in order, so that they stream, with as many rows of `H` at a time as stay in the cache in double precision. Returns pairs visited.
struct SparseRows<'a, 'b> {
    /// The layer that these rows of `H` belong to, and all before it.
    layers: &'a [Layer],
    weight: &'a [f64],
    /// The rows of `H`, from which on.
    first: usize,
    table: &'b mut [f32],
    stride: usize,
}

impl Kernel for SparseRows<'_, '_> {
    type Output = u64;
    #[inline(always)]
    fn run(self) -> u64 {
        let Self { layers, weight, first, table, stride } = self;
        let Some(own) = layers.last() else { return 0 };
        let count = own.rows.rows();
        let mut pairs = 0;
        // Where the columns that are not done yet begin in each row.
        let mut cursor: Vec<u32> =
            (0..count).map(|i| own.rows.row(i).0.partition_point(|&p| (p as usize) < first) as u32).collect();
        let width = own.columns.end;
        let entries: usize = layers.iter().map(|layer| layer.rows.nonzeros()).sum();
        // Rows that are not very sparse are spread out and added whole: vector instructions do more of them than there are zeros.
        let mut spread =
            vec![[0.0; 8]; if entries * SPREAD >= count * width { width.div_ceil(8) } else { 0 }];
        let span = width.next_multiple_of(8);
        let tile = (CACHED / span).max(8).min(table.len() / stride);
        let mut sums = vec![0.0; tile * span];
        for (t, table) in table.chunks_mut(tile * stride).enumerate() {
            let sums = &mut sums[..table.len() / stride * span];
            sums.fill(0.0);
            let first = first + t * tile;
            for (i, cursor) in cursor.iter_mut().enumerate() {
                let (columns, values) = own.rows.row(i);
                let mut at = *cursor as usize;
                let any = columns.get(at).is_some_and(|&p| (p as usize - first) * span < sums.len());
                if any && !spread.is_empty() {
                    pairs += spread_out(layers, i, &mut spread);
                }
                while let Some(&p) = columns.get(at)
                    && let Some(row) = sums.get_mut((p as usize - first) * span..).filter(|r| !r.is_empty())
                {
                    let a = f64::from(values[at]) * if weight.is_empty() { 1.0 } else { weight[i] };
                    at += 1;
                    if spread.is_empty() {
                        pairs += add_listed(row, a, layers, i, at);
                    } else {
                        add_spread(row, a, &spread[..p as usize / 8 + 1]);
                    }
                }
                *cursor = at as u32;
            }
            for (row, sums) in table.chunks_exact_mut(stride).zip(sums.chunks_exact(span)) {
                row.iter_mut().zip(sums).for_each(|(h, &sum)| *h = sum as f32);
            }
        }
        pairs
    }
}

/// Row `i` of all layers in one array. Returns about how many pairs of its entries there are.
#[inline(always)]
fn spread_out(layers: &[Layer], i: usize, spread: &mut [[f64; 8]]) -> u64 {
    spread.fill([0.0; 8]);
    let (spread, mut entries) = (spread.as_flattened_mut(), 0);
    for layer in layers {
        let (columns, values) = layer.rows.row(i);
        entries += columns.len() as u64;
        columns.iter().zip(values).for_each(|(&q, &b)| spread[q as usize] = f64::from(b));
    }
    entries * entries / 2
}

/// Adds `a` times a row that is spread out; what lies beyond the diagonal will be copied over.
#[inline(always)]
fn add_spread(row: &mut [f64], a: f64, spread: &[[f64; 8]]) {
    for (row, spread) in row.as_chunks_mut::<8>().0.iter_mut().zip(spread) {
        // Through copies, which the compiler knows not to overlap.
        let (mut sum, spread) = (*row, *spread);
        for l in 0..8 {
            sum[l] += a * spread[l];
        }
        *row = sum;
    }
}

/// Adds `a` times row `i` of all layers, of the last one `own` entries: those up to the column that is worked on come first. Returns how many.
#[inline(always)]
fn add_listed(row: &mut [f64], a: f64, layers: &[Layer], i: usize, own: usize) -> u64 {
    let mut pairs = 0;
    for (l, layer) in layers.iter().enumerate() {
        let (columns, values) = layer.rows.row(i);
        let count = if l + 1 == layers.len() { own } else { columns.len() };
        for (&q, &b) in columns[..count].iter().zip(values) {
            row[q as usize] += a * f64::from(b);
        }
        pairs += count as u64;
    }
    pairs
}

/// What a row of the table is longer than its entries: rows are added eight entries at a time. Also, rows are then not as long as a power of
/// two, when the entries of a column would share few lines of the cache.
const SLACK: usize = 8;
/// Rows are spread out if they have at least one in so many entries.
const SPREAD: usize = 8;
/// Entries of `H` that stay in the cache.
const CACHED: usize = 1 << 17;
/// Rows of the table that a thread takes at a time: of whole columns, and, in the mean, of others.
const STRIP: (usize, usize) = (8, 128);

impl GramTable {
    /// What [`form`](Self::form) would cost, in entries of a pass over the columns; nothing if it is not worth it at any price.
    pub(super) fn price<V: Real>(
        &self,
        columns: &[Column<'_, V>],
        norm2: &[f64],
        rows: usize,
        weight: Option<&[f64]>,
    ) -> Option<u64> {
        let entries: u64 = columns.iter().map(|c| c.len() as u64).sum();
        let fine = norm2.iter().fold(true, |fine, n| fine & (*n == 0.0 || RANGE.contains(n)));
        if self.distrusted || !fine || !fits(columns.len(), entries) {
            return None;
        }
        let whole = all_whole(columns);
        // Whole columns stream as well as `H` does: it must be much smaller than they are.
        if whole && 2 * columns.len() > rows {
            return None;
        }
        let from = if self.serves(weight) { self.formed } else { 0 };
        let new: u64 = columns[from..].iter().map(|c| c.len() as u64).sum();
        // Pairs that meet in a row, if entries were spread evenly; they are not, but only the order of magnitude matters.
        let pairs = new * (entries / rows.max(1) as u64 + 1) / if from == 0 { 2 } else { 1 };
        // Plain products of whole columns run several times as fast as anything else here, scattered ones take twice as long as a sweep.
        Some(if whole { pairs } else { 2 * pairs })
    }

    /// Whether what is formed is close enough to `H` with these row weights.
    fn serves(&self, weight: Option<&[f64]>) -> bool {
        let Some(weight) = weight else { return self.weight.is_empty() };
        let off = sum_pairs(weight, &self.weight, |now, then| (now - then).abs());
        self.weight.len() == weight.len() && off <= CLOSE * sum_pairs(weight, weight, |now, _| now)
    }

    /// Never to be used again, if it was.
    pub(super) fn distrust(&mut self) {
        self.distrusted |= !self.members.is_empty();
        self.forget();
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
        self.spare.extend(self.layers.drain(..).map(|layer| layer.rows));
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
        self.rent = 0;
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
        let (stride, weight) = (self.stride, &self.weight[..]);
        let visited = if whole {
            let mut table = self.table.chunks_exact_mut(stride).enumerate().take(k).skip(from);
            let mut strips = Vec::new();
            loop {
                let strip: Vec<(usize, &mut [f32])> = table.by_ref().take(STRIP.0).collect();
                if strip.is_empty() {
                    break;
                }
                strips.push(strip);
            }
            par.map(strips, |rows| vectorized(DenseRows { columns, weight, rows }));
            ((k * (k + 1) - from * (from + 1)) / 2 * rows) as u64
        } else {
            layer(&mut self.layers, &mut self.spare, columns, from, rows, par);
            let mut table = &mut self.table[from * stride..k * stride];
            let mut strips = Vec::new();
            for (l, layer) in self.layers.iter().enumerate() {
                let mut first = from.max(layer.columns.start);
                for end in equal_areas(from..k).chain([layer.columns.end]) {
                    let end = end.min(layer.columns.end);
                    if first < end {
                        let rows = table.split_off_mut(..(end - first) * stride).unwrap_or_default();
                        let layers = &self.layers[..=l];
                        strips.push(SparseRows { layers, weight, first, table: rows, stride });
                        first = end;
                    }
                }
            }
            par.map(strips, vectorized).iter().sum()
        };
        mirror(&mut self.table[..k * stride], stride, from..k, par);
        self.formed = k;
        visited
    }

    /// Rows of twice the length if need be, keeping what is formed. What is never touched of them takes no memory.
    fn make_room(&mut self, k: usize) {
        if k + SLACK > self.stride {
            let stride = (2 * k).min(MOST).max(k) + SLACK;
            widen(&mut self.table, self.formed, self.stride, stride);
            self.stride = stride;
        }
    }

    /// The quadratic in the weights of the first `k` columns; its state are their slopes.
    pub(super) fn quadratic(&mut self, k: usize, par: Par) -> Gram<'_> {
        self.moved.resize(k, 0.0);
        self.wide.resize(k, 0.0);
        Gram {
            table: &self.table,
            stride: self.stride,
            moved: &mut self.moved[..k],
            wide: &mut self.wide[..k],
            par,
        }
    }
}

/// Where to cut these rows of a lower triangle so that each piece has as many entries.
fn equal_areas(rows: Range<usize>) -> impl Iterator<Item = usize> + Clone {
    // Each piece looks at every row of the matrix.
    let pieces = if 2 * rows.len() < STRIP.1 { 1 } else { 2 * rows.len().div_ceil(3 * STRIP.1) };
    let (from, to) = ((rows.start * rows.start) as f64, (rows.end * rows.end) as f64);
    (1..pieces).map(move |i| (from + (to - from) * i as f64 / pieces as f64).sqrt() as usize)
}

/// Room for `stride` rows of that length, where the first `kept` rows and columns stay.
fn widen<T: Copy + Default>(table: &mut Vec<T>, kept: usize, old: usize, stride: usize) {
    let mut wider = vec![T::default(); stride * stride];
    for p in 0..kept {
        wider[p * stride..][..kept].copy_from_slice(&table[p * old..][..kept]);
    }
    *table = wider;
}

/// Copies these rows, up to the diagonal, to the columns of the same number, where `table` ends with the last of them: those above the first
/// of them at once, the square that is left in halves.
fn mirror(table: &mut [f32], stride: usize, rows: Range<usize>, par: Par) {
    let (above, own) = table.split_at_mut(rows.start * stride);
    let below = &*own;
    let strips: Vec<_> = above.chunks_mut(SIDE * stride).enumerate().collect();
    par.map(strips, |(t, strip)| transpose(below, strip, stride, t * SIDE, rows.clone()));
    triangle(own, stride, rows.start, par);
}

/// The same for rows that begin and end at the diagonal, the first of them with this number.
fn triangle(table: &mut [f32], stride: usize, first: usize, par: Par) {
    let count = table.len() / stride;
    if count <= SIDE {
        for p in 1..count {
            for q in 0..p {
                table[q * stride + first + p] = table[p * stride + first + q];
            }
        }
        return;
    }
    let half = (count / 2).next_multiple_of(SIDE);
    let (above, own) = table.split_at_mut(half * stride);
    let below = &*own;
    let strips: Vec<_> = above.chunks_mut(SIDE * stride).enumerate().collect();
    let rows = first + half..first + count;
    par.map(strips, |(t, strip)| transpose(below, strip, stride, first + t * SIDE, rows.clone()));
    par.join(|| triangle(above, stride, first, par), || triangle(own, stride, first + half, par));
}

/// Copies the columns of `below`, from `first` on, to the rows of `strip`, in the columns `rows`; by squares that stay in the cache.
fn transpose(below: &[f32], strip: &mut [f32], stride: usize, first: usize, rows: Range<usize>) {
    for (s, square) in below.chunks(SIDE * stride).enumerate() {
        for (q, row) in strip.chunks_exact_mut(stride).enumerate() {
            let to = &mut row[rows.start + s * SIDE..rows.end];
            to.iter_mut().zip(square.chunks_exact(stride)).for_each(|(to, from)| *to = from[first + q]);
        }
    }
}

/// Side of a square of the table that is copied at once.
const SIDE: usize = 32;

/// Lists by rows the columns that are not listed yet. A layer that is not much smaller than the one before it is joined with it, so
/// that there are few and each entry is listed a few times at most; if `H` is formed anew, one layer is best.
fn layer<V: Real>(
    layers: &mut Vec<Layer>,
    spare: &mut Vec<Rows<f32>>,
    columns: &[Column<'_, V>],
    from: usize,
    rows: usize,
    par: Par,
) {
    let mut start = layers.last().map_or(0, |last| last.columns.end);
    let mut entries: usize = columns[start..].iter().map(Column::len).sum();
    let one = from == 0 && (layers.len() > 1 || entries > 0);
    while let Some(last) = layers.pop_if(|last| one || last.rows.nonzeros() < 2 * entries) {
        start = last.columns.start;
        entries += last.rows.nonzeros();
        spare.push(last.rows);
    }
    if start < columns.len() {
        let numbered = columns.iter().enumerate().skip(start).map(|(p, &column)| (p as u32, column));
        let mut lists = spare.pop().unwrap_or_default();
        lists.refill(rows, numbered, par);
        layers.push(Layer { columns: start..columns.len(), rows: lists });
    }
}
