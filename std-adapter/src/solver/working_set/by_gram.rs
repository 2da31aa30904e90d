//! The quadratic of a working set by `H` itself: slopes are there for the asking.

use super::quadratic::{LARGE, Quadratic};
use crate::par::{Kernel, Par, vectorized};
use gibbsite_core::column::Column;

/// By `H` itself.
pub(super) struct Gram<'a> {
    /// `H`, row by row; symmetric. Single precision: what is read of it is what a descent takes its time for, and slopes are computed
    /// anew, exactly, before the next one.
    pub(super) table: &'a [f32],
    /// From one row of it to the next.
    pub(super) stride: usize,
    /// One for each position.
    pub(super) moved: &'a mut [f64],
    /// One for each position, all 0.
    pub(super) wide: &'a mut [f64],
    pub(super) par: Par,
}

/// Entries of a row that are added in the time in which one is gathered.
const STREAMED: u64 = 4;

/// Positions that a thread takes at a time.
const STRIP: usize = 128;

/// `out_k = H_k·d` for the rows `at`.
struct RowDots<'a> {
    table: &'a [f32],
    stride: usize,
    at: &'a [u32],
    d: &'a [f64],
    out: &'a mut [f64],
}

impl Kernel for RowDots<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Self { table, stride, at, d, out } = self;
        for (out, &p) in out.iter_mut().zip(at) {
            *out = Column::Dense(&table[p as usize * stride..][..d.len()]).dot(d);
        }
    }
}

/// `moved = H d`, from one position on.
struct Combine<'a> {
    table: &'a [f32],
    stride: usize,
    first: usize,
    moved: &'a mut [f64],
    at: &'a [u32],
    d: &'a [f64],
}

impl Kernel for Combine<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Self { table, stride, first, moved, at, d } = self;
        moved.fill(0.0);
        for (&p, &d) in at.iter().zip(d) {
            if d != 0.0 {
                let row = &table[p as usize * stride + first..][..moved.len()];
                for (m, &h) in moved.iter_mut().zip(row) {
                    *m += d * f64::from(h);
                }
            }
        }
    }
}

impl Quadratic for Gram<'_> {
    #[inline(always)]
    fn slope(&self, slopes: &[f64], p: usize) -> f64 {
        slopes[p]
    }

    fn slopes(&self, slopes: &[f64], at: &[u32], out: &mut [f64]) {
        out.iter_mut().zip(at).for_each(|(out, &p)| *out = slopes[p as usize]);
    }

    #[inline(always)]
    fn curvature(&self, p: usize) -> f64 {
        f64::from(self.table[p * self.stride + p])
    }

    #[inline(always)]
    fn shift(&self, slopes: &mut [f64], p: usize, by: f64) {
        let row = &self.table[p * self.stride..(p + 1) * self.stride];
        for (g, &h) in slopes.iter_mut().zip(row) {
            *g += by * f64::from(h);
        }
    }

    fn meeting(&self, first: &mut [f64], _: &[f64], at: &[u32], e: &[f64]) -> f64 {
        at.iter().zip(e).map(|(&p, e)| e * first[p as usize]).sum()
    }

    fn product(&mut self, at: &[u32], d: &[f64], out: &mut [f64]) -> f64 {
        at.iter().zip(d).for_each(|(&p, &d)| self.wide[p as usize] = d);
        let (table, stride, wide) = (self.table, self.stride, &*self.wide);
        let par = if ((at.len() * wide.len()) as u64) < LARGE { Par::Seq } else { self.par };
        let work: Vec<_> = at.chunks(STRIP).zip(out.chunks_mut(STRIP)).collect();
        par.map(work, |(at, out)| vectorized(RowDots { table, stride, at, d: wide, out }));
        at.iter().for_each(|&p| self.wide[p as usize] = 0.0);
        d.iter().zip(out).map(|(d, h)| d * *h).sum()
    }

    fn propose(&mut self, at: &[u32], d: &[f64]) -> f64 {
        let (table, stride) = (self.table, self.stride);
        let par = if ((at.len() * self.moved.len()) as u64) < LARGE { Par::Seq } else { self.par };
        let work: Vec<_> = self.moved.chunks_mut(STRIP).enumerate().collect();
        par.map(work, |(k, moved)| vectorized(Combine { table, stride, first: k * STRIP, moved, at, d }));
        at.iter().zip(d).map(|(&p, &d)| d * self.moved[p as usize]).sum()
    }

    fn accept(&self, slopes: &mut [f64]) {
        for (g, m) in slopes.iter_mut().zip(&*self.moved) {
            *g += m;
        }
    }

    fn cost(&self, _: usize) -> u64 {
        1
    }

    fn reads(&self, positions: usize, _: u64) -> u64 {
        (positions * self.moved.len()) as u64 / STREAMED
    }

    fn par(&self) -> Par {
        self.par
    }

    fn patience(&self) -> u32 {
        400
    }
}
