//! `PΛPᵀ = L D Lᵀ` where only some entries may differ from 0: its pattern, solves for many right sides, the inverse at the pattern and how that changes.
//!
//! Input: the places of Λ that may be filled; output: `L` in an order that keeps it sparse. The factorisation is core's. `Σ = Λ⁻¹` at the places of `L` follows from `L` alone (Takahashi, Fagan & Chen
//! 1973), and differentiating factorisation and recurrence along Δ gives `ΣΔΣ` at those places: as much work as a factorisation, where columns of Σ would take two solves each.

use super::active::Pattern;
use crate::linalg::elimination_order;
use crate::par::Kernel;
use gibbsite_core::infer::gaussian::{Plain, factorise};
use std::ops::Range;

/// The pattern of `L`. A "place" counts outputs in the order of elimination.
pub(super) struct Shape {
    /// The output at each place.
    order: Vec<u32>,
    starts: Vec<u32>,
    /// Rows of `L` below its diagonal, places.
    rows: Vec<u32>,
    /// For each pair: where it is in `L`; on the diagonal, its place after all entries.
    spots: Vec<u32>,
}

/// `L` and `D`, or any symmetric matrix at their places.
#[derive(Clone)]
pub(super) struct Entries {
    pub(super) below: Vec<f64>,
    pub(super) diagonal: Vec<f64>,
}

/// An order, and how many entries the factor has.
pub(super) struct Order {
    order: Vec<u32>,
    place: Vec<u32>,
    parent: Vec<u32>,
    counts: Vec<u32>,
    /// Entries of `L` below its diagonal.
    pub(super) entries: u64,
}

const NONE: u32 = u32::MAX;

/// For each place, the earlier places that it is joined to in Λ.
fn earlier<'a>(pairs: &'a Pattern, place: &'a [u32]) -> (Vec<u32>, Vec<u32>) {
    let p = place.len();
    let mut starts = vec![0u32; p + 1];
    let both = |i: usize, j: usize| (place[i].min(place[j]), place[i].max(place[j]));
    let off = || pairs.places().filter(|(i, j)| i != j).map(|(i, j)| both(i, j));
    off().for_each(|(_, late)| starts[late as usize + 1] += 1);
    (0..p).for_each(|k| starts[k + 1] += starts[k]);
    let mut next = starts.clone();
    let mut rows = vec![0u32; starts[p] as usize];
    for (early, late) in off() {
        rows[next[late as usize] as usize] = early;
        next[late as usize] += 1;
    }
    (starts, rows)
}

impl Order {
    /// Least degree; the factor's entries are counted along the elimination tree (Liu 1990), without memory for them.
    pub(super) fn new(pairs: &Pattern) -> Self {
        let p = pairs.cols();
        let order = elimination_order(&pairs.starts, &pairs.rows);
        let mut place = vec![0u32; p];
        order.iter().enumerate().for_each(|(k, &o)| place[o as usize] = k as u32);
        let (starts, rows) = earlier(pairs, &place);
        let (mut parent, mut mark, mut counts) = (vec![NONE; p], vec![NONE; p], vec![0u32; p]);
        let mut entries = 0u64;
        for row in 0..p {
            mark[row] = row as u32;
            for &k in &rows[starts[row] as usize..starts[row + 1] as usize] {
                let mut k = k as usize;
                while mark[k] != row as u32 {
                    if parent[k] == NONE {
                        parent[k] = row as u32;
                    }
                    mark[k] = row as u32;
                    counts[k] += 1;
                    entries += 1;
                    k = parent[k] as usize;
                }
            }
        }
        Self { order, place, parent, counts, entries }
    }
}

impl Shape {
    /// With memory for the factor's rows.
    pub(super) fn new(pairs: &Pattern, order: Order) -> Self {
        let Order { order, place, parent, counts, entries } = order;
        let p = place.len();
        let mut starts = vec![0u32; p + 1];
        (0..p).for_each(|k| starts[k + 1] = starts[k] + counts[k]);
        let (mut rows, mut next) = (vec![0u32; entries as usize], starts.clone());
        let mut mark = vec![NONE; p];
        let (from, list) = earlier(pairs, &place);
        for row in 0..p {
            mark[row] = row as u32;
            for &k in &list[from[row] as usize..from[row + 1] as usize] {
                let mut k = k as usize;
                while mark[k] != row as u32 {
                    mark[k] = row as u32;
                    // Rows are visited in their order, so that columns are sorted.
                    rows[next[k] as usize] = row as u32;
                    next[k] += 1;
                    k = parent[k] as usize;
                }
            }
        }
        let spot = |(i, j): (usize, usize)| {
            let (early, late) = (place[i].min(place[j]), place[i].max(place[j]));
            if early == late {
                return entries as u32 + early;
            }
            let range = starts[early as usize] as usize..starts[early as usize + 1] as usize;
            (range.start + rows[range].partition_point(|&r| r < late)) as u32
        };
        let spots = pairs.places().map(spot).collect();
        Self { order, starts, rows, spots }
    }

    fn outputs(&self) -> usize {
        self.order.len()
    }

    #[inline(always)]
    fn column(&self, place: usize) -> Range<usize> {
        self.starts[place] as usize..self.starts[place + 1] as usize
    }

    /// A matrix given at the pairs, at the places of `L`.
    fn scatter(&self, values: &[f64]) -> Entries {
        let entries = self.rows.len();
        let (mut below, mut diagonal) = (vec![0.0; entries], vec![0.0; self.outputs()]);
        for (&spot, &v) in self.spots.iter().zip(values) {
            match (spot as usize).checked_sub(entries) {
                None => below[spot as usize] = v,
                Some(place) => diagonal[place] = v,
            }
        }
        Entries { below, diagonal }
    }

    /// At the pairs, from the places of `L`.
    pub(super) fn gather(&self, from: &Entries) -> Vec<f64> {
        let entries = self.rows.len();
        let one = |&spot: &u32| match (spot as usize).checked_sub(entries) {
            None => from.below[spot as usize],
            Some(place) => from.diagonal[place],
        };
        self.spots.iter().map(one).collect()
    }

    /// `L` and `D` of Λ, given at the pairs; `None` if it is not positive definite.
    pub(super) fn factorise(&self, lambda: &[f64]) -> Option<Entries> {
        let Entries { mut below, mut diagonal } = self.scatter(lambda);
        let terms = Plain {
            inputs: 0,
            order: &self.order,
            starts: &self.starts,
            rows: &self.rows,
            factor: &[],
            pivots: &[],
            couplings: &[],
            diagonal: &[],
            theta_starts: &[],
            theta_inputs: &[],
            theta: &[],
            intercept: &[],
            deviations: &[],
        };
        factorise(&terms, &mut below, &mut diagonal).ok()?;
        Some(Entries { below, diagonal })
    }

    /// For the entries of a column from `from` on that column `row(from - 1)` has too: their counterparts there. Calls `f` with both.
    #[inline(always)]
    fn meet(&self, e: usize, end: usize, mut f: impl FnMut(usize, usize)) {
        let mut other = self.starts[self.rows[e] as usize] as usize;
        for later in e + 1..end {
            while self.rows[other] != self.rows[later] {
                other += 1;
            }
            f(later, other);
            other += 1;
        }
    }

    /// `Σ` at the places of `L`.
    pub(super) fn inverse(&self, factor: &Entries) -> Entries {
        let mut out = Entries { below: vec![0.0; self.rows.len()], diagonal: vec![0.0; self.outputs()] };
        let (z, own) = (&mut out.below, &mut out.diagonal);
        for place in (0..self.outputs()).rev() {
            let column = self.column(place);
            for e in column.clone() {
                let l = factor.below[e];
                z[e] -= l * own[self.rows[e] as usize];
                self.meet(e, column.end, |later, other| {
                    let value = z[other];
                    z[e] -= factor.below[later] * value;
                    z[later] -= l * value;
                });
            }
            let less: f64 = column.map(|e| factor.below[e] * z[e]).sum();
            own[place] = 1.0 / factor.diagonal[place] - less;
        }
        out
    }

    /// `ΣΔΣ` at the pairs, for Δ given there: minus the derivative of [`inverse`](Self::inverse) of [`factorise`](Self::factorise) along Δ.
    pub(super) fn turned(&self, factor: &Entries, sigma: &Entries, delta: &[f64]) -> Vec<f64> {
        let Entries { below: mut dl, diagonal: mut dd } = self.scatter(delta);
        let p = self.outputs();
        for place in 0..p {
            let (pivot, column) = (factor.diagonal[place], self.column(place));
            for e in column.clone() {
                let (l, da) = (factor.below[e], dl[e]);
                let change = (da - l * dd[place]) / pivot;
                dd[self.rows[e] as usize] -= change * l * pivot + l * da;
                self.meet(e, column.end, |later, other| {
                    // What is later in this column is not divided yet.
                    dl[other] -= change * factor.below[later] * pivot + l * dl[later];
                });
                dl[e] = change;
            }
        }
        let mut out = Entries { below: vec![0.0; self.rows.len()], diagonal: vec![0.0; p] };
        let (dz, own) = (&mut out.below, &mut out.diagonal);
        for place in (0..p).rev() {
            let column = self.column(place);
            for e in column.clone() {
                let (l, change, row) = (factor.below[e], dl[e], self.rows[e] as usize);
                dz[e] += change * sigma.diagonal[row] - l * own[row];
                self.meet(e, column.end, |later, other| {
                    let (value, moved) = (sigma.below[other], dz[other]);
                    dz[e] += dl[later] * value - factor.below[later] * moved;
                    dz[later] += change * value - l * moved;
                });
            }
            let more: f64 = column.map(|e| dl[e] * sigma.below[e] - factor.below[e] * dz[e]).sum();
            let pivot = factor.diagonal[place];
            own[place] = dd[place] / (pivot * pivot) + more;
        }
        self.gather(&out)
    }
}

impl Entries {
    /// `log|Λ|`, of `L` and `D`.
    pub(super) fn log_det(&self) -> f64 {
        self.diagonal.iter().map(|d| d.ln()).sum()
    }
}

/// `B ← Λ⁻¹B`: for each output, one after the other, `width` numbers.
pub(super) struct Solve<'a> {
    pub(super) shape: &'a Shape,
    pub(super) factor: &'a Entries,
    pub(super) width: usize,
    pub(super) b: &'a mut [f64],
}

/// Two different ones of the outputs' stretches.
#[inline(always)]
fn two(b: &mut [f64], width: usize, changed: usize, read: usize) -> (&mut [f64], &[f64]) {
    if changed < read {
        let (low, high) = b.split_at_mut(read * width);
        (&mut low[changed * width..][..width], &high[..width])
    } else {
        let (low, high) = b.split_at_mut(changed * width);
        (&mut high[..width], &low[read * width..][..width])
    }
}

impl Kernel for Solve<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { shape, factor, width, b } = self;
        for place in 0..shape.outputs() {
            let own = shape.order[place] as usize;
            for e in shape.column(place) {
                let l = factor.below[e];
                let (to, from) = two(b, width, shape.order[shape.rows[e] as usize] as usize, own);
                for k in 0..width {
                    to[k] -= l * from[k];
                }
            }
        }
        for place in (0..shape.outputs()).rev() {
            let own = shape.order[place] as usize;
            let over = 1.0 / factor.diagonal[place];
            b[own * width..][..width].iter_mut().for_each(|v| *v *= over);
            for e in shape.column(place) {
                let l = factor.below[e];
                let (to, from) = two(b, width, own, shape.order[shape.rows[e] as usize] as usize);
                for k in 0..width {
                    to[k] -= l * from[k];
                }
            }
        }
    }
}
