//! Gibbs sampling: systematic and blocked scans, with a caller-supplied random number generator.
//!
//! Each step draws a variable (or a small block of them, jointly) from its conditional given all others,
//! which leaves `P(x) ∝ Π ψ_k` invariant (Geman & Geman 1984). Marginals are Rao-Blackwellised: the
//! conditional itself is averaged, not the label drawn from it. Batch means tell how accurate they are.
//!
//! A start of probability zero is repaired by the same steps: among the labels of a variable only those
//! that violate fewest factors (`-inf` entries) are drawn, by the finite part of their weight. Once nothing
//! is violated, these are exactly the labels of positive probability, and the rule is the Gibbs step.

use super::blanket::{add_finite, check_labels, count_forbidden, entries_under, keep_fewest, weigh};
use super::layout::{Dimensions, LOST, check_entries, span, starts};
use super::message::{fold_sum, place};
use crate::arena::Arena;
use crate::error::{InferError, need};
use crate::graph::{FactorGraph, Incidence};
use crate::ids::VarId;
use crate::math::{Real, softmax};
use crate::stride::Axis;
use crate::table::MAX_SCOPE;
use rand_core::Rng;

/// Which variables are drawn together.
#[derive(Clone, Copy, Debug)]
pub enum Scan<'b> {
    /// Each variable by itself, in order.
    Systematic,
    /// Blocks of variables, each drawn jointly by enumerating its configurations. Block `i` is
    /// `variables[start[i]..start[i + 1]]`; the blocks must partition the variables, have at most
    /// [`MAX_SCOPE`] of them each, and no more configurations than the sampler's memory was made for.
    Blocked {
        /// Where each block begins, and the end of the last.
        start: &'b [u32],
        /// All blocks, one after the other.
        variables: &'b [u32],
    },
}

/// How long to sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Sweeps that may be spent on leaving a start of probability zero.
    pub start_sweeps: u32,
    /// Sweeps to forget the start, not counted.
    pub burn_in: u32,
    /// Sweeps that are averaged.
    pub sweeps: u32,
    /// Sweeps in a batch; 0 for `⌊√sweeps⌋`.
    pub batch: u32,
}

impl Default for Params {
    /// 1000 sweeps for the start, 1000 of burn-in, 10000 averaged.
    fn default() -> Self {
        Self { start_sweeps: 1000, burn_in: 1000, sweeps: 10_000, batch: 0 }
    }
}

/// How a run went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Info<T> {
    /// Sweeps spent on finding a start of positive probability.
    pub start_sweeps: u32,
    /// Sweeps averaged.
    pub sweeps: u32,
    /// Complete batches.
    pub batches: u32,
    /// Largest standard error of a marginal; `+inf` with fewer than two batches.
    pub error: T,
}

/// A sampler over caller memory.
///
/// ```
/// use gibbsite_core::graph::{FactorGraph, Incidence};
/// use gibbsite_core::infer::gibbs::{Gibbs, Params, Scan};
/// use gibbsite_core::infer::loopy::Dimensions;
/// # struct Counter(u64);
/// # impl rand_core::TryRng for Counter {
/// #     type Error = core::convert::Infallible;
/// #     fn try_next_u32(&mut self) -> Result<u32, Self::Error> { Ok((self.try_next_u64()? >> 32) as u32) }
/// #     fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
/// #         self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
/// #         Ok(self.0 ^ (self.0 >> 33))
/// #     }
/// #     fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), Self::Error> { Ok(()) }
/// # }
/// # let mut rng = Counter(1);
/// let g = FactorGraph::new(&[2, 2], &[0, 2], &[0, 1], &[0, 4], &[1.0, 0.0, 0.0, 1.0])?;
/// let size = Dimensions::of(&g);
/// let mut memory = [0; 16];
/// let incidence = Incidence::build(&g, &mut memory)?;
/// let (mut labels, mut words) = ([0, 0], vec![0; Gibbs::<f64>::words_len(&size)]);
/// let mut reals = vec![0.0; Gibbs::<f64>::reals_len(&size, 4)];
/// let mut gibbs = Gibbs::new(g, incidence, &mut labels, &mut words, &mut reals)?;
/// let info = gibbs.run(Scan::Systematic, &Params::default(), &mut rng)?;
/// let mut p = [0.0f64; 4];
/// gibbs.marginals(&mut p)?;
/// assert!((p[0] - 0.5).abs() < 6.0 * info.error);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub struct Gibbs<'g, 'm, T> {
    graph: FactorGraph<'g, T>,
    incidence: Incidence<'m>,
    labels: &'m mut [u32],
    label_start: &'m [u32],
    /// One word a variable to check blocks with, and the pattern of a table under a block.
    seen: &'m mut [u32],
    pattern: &'m mut [Axis],
    /// Probabilities of the configurations of what is drawn.
    weight: &'m mut [T],
    violated: &'m mut [T],
    /// Sum of the conditionals in the batch that is running; mean of the batches' means, and sum of
    /// squared deviations from it (Welford).
    batch: &'m mut [T],
    mean: &'m mut [T],
    square: &'m mut [T],
    in_batch: u32,
    batch_size: u32,
    batches: u32,
}

impl<'g, 'm, T: Real> Gibbs<'g, 'm, T> {
    /// `u32` entries that [`new`](Self::new) needs, besides the labels.
    pub const fn words_len(size: &Dimensions) -> usize {
        let longest = if size.variables < MAX_SCOPE { size.variables } else { MAX_SCOPE };
        size.variables.saturating_mul(2).saturating_add(1 + 2 * longest)
    }

    /// Real entries that [`new`](Self::new) needs for blocks of up to `configurations` configurations
    /// (0 or 1 for systematic scans only).
    pub const fn reals_len(size: &Dimensions, configurations: usize) -> usize {
        let drawn = if configurations > size.arity { configurations } else { size.arity };
        size.labels.saturating_mul(3).saturating_add(drawn.saturating_mul(2))
    }

    /// A sampler that starts at `labels`, one per variable, which it keeps up to date. What `reals` has
    /// beyond [`reals_len`](Self::reals_len) goes to larger blocks.
    #[inline(always)]
    pub fn new(
        graph: FactorGraph<'g, T>,
        incidence: Incidence<'m>,
        labels: &'m mut [u32],
        words: &'m mut [u32],
        reals: &'m mut [T],
    ) -> Result<Self, InferError> {
        let size = Dimensions::of(&graph);
        check_labels(&graph, labels)?;
        check_entries(&graph)?;
        if size.labels > u32::MAX as usize {
            return Err(InferError::Shape);
        }
        let drawn = reals.len().saturating_sub(size.labels.saturating_mul(3)) / 2;
        let mut words = Arena::new(words, Self::words_len(&size))?;
        let mut reals = Arena::new(reals, Self::reals_len(&size, 0))?;
        let label_start = words.take(size.variables + 1)?;
        starts(label_start, graph.cards().iter().copied());
        Ok(Self {
            graph,
            incidence,
            labels,
            label_start,
            seen: words.take(size.variables)?,
            pattern: words.take(2 * size.variables.min(MAX_SCOPE))?.as_chunks_mut().0,
            batch: reals.take(size.labels)?,
            mean: reals.take(size.labels)?,
            square: reals.take(size.labels)?,
            weight: reals.take(drawn)?,
            violated: reals.take(drawn)?,
            in_batch: 0,
            batch_size: 1,
            batches: 0,
        })
    }

    /// The current assignment.
    pub fn labels(&self) -> &[u32] {
        self.labels
    }

    /// Moves to another assignment.
    pub fn set_labels(&mut self, labels: &[u32]) -> Result<(), InferError> {
        check_labels(&self.graph, labels)?;
        for (l, &x) in self.labels.iter_mut().zip(labels) {
            *l = x;
        }
        Ok(())
    }

    /// How many factors the current assignment violates; its probability is positive iff none.
    #[inline(never)]
    pub fn violated(&self) -> usize {
        let violates = |k| {
            let mut at = 0;
            for &v in self.graph.scope(k) {
                let label = self.labels.get(v as usize).map_or(0, |&l| l as usize);
                at = at * self.graph.card(VarId(v)) + label;
            }
            self.graph.table(k).get(at) == Some(&T::NEG_INFINITY)
        };
        self.graph.factor_ids().filter(|&k| violates(k)).count()
    }

    /// The distribution that [`draw`](Self::draw) draws the variables of `block` from: one probability
    /// per configuration, the last variable varying fastest.
    pub fn conditional(&mut self, block: &[u32]) -> Result<&[T], InferError> {
        self.check_block(block)?;
        self.condition(block)
    }

    /// Draws the variables of `block` jointly given all others.
    pub fn draw(&mut self, block: &[u32], rng: &mut impl Rng) -> Result<(), InferError> {
        self.check_block(block)?;
        self.condition(block)?;
        self.assign(block, rng)
    }

    fn check_block(&self, block: &[u32]) -> Result<(), InferError> {
        let mut size = 1usize;
        for (i, &v) in block.iter().enumerate() {
            let new = (v as usize) < self.graph.variables() && !block.iter().take(i).any(|&u| u == v);
            if !new || i >= MAX_SCOPE {
                return Err(InferError::Shape);
            }
            size = size.saturating_mul(self.graph.card(VarId(v)));
        }
        need(size, self.weight.len())
    }

    /// Fills `weight` with the conditional of a checked block.
    #[inline(never)]
    fn condition(&mut self, block: &[u32]) -> Result<&[T], InferError> {
        let size = block.iter().map(|&v| self.graph.card(VarId(v))).product();
        if let &[v] = block {
            self.weigh(v, size)?;
        } else {
            self.weigh_block(block, size)?;
        }
        let weight = self.weight.get_mut(..size).ok_or(LOST)?;
        keep_fewest(weight, self.violated.get(..size).ok_or(LOST)?);
        softmax(weight);
        Ok(weight)
    }

    /// The weights of a variable's labels.
    #[inline(never)]
    fn weigh(&mut self, v: u32, size: usize) -> Result<(), InferError> {
        let weight = self.weight.get_mut(..size).ok_or(LOST)?;
        let violated = self.violated.get_mut(..size).ok_or(LOST)?;
        weigh(&self.graph, &self.incidence, self.labels, v, weight, violated)
    }

    /// The weights of a block's configurations: factor after factor, a factor with several variables of the block once, at the
    /// first of them.
    #[inline(never)]
    fn weigh_block(&mut self, block: &[u32], size: usize) -> Result<(), InferError> {
        let weight = self.weight.get_mut(..size).ok_or(LOST)?;
        let violated = self.violated.get_mut(..size).ok_or(LOST)?;
        weight.fill(T::zero());
        violated.fill(T::zero());
        for (i, &v) in block.iter().enumerate() {
            for &e in self.incidence.edges(VarId(v)) {
                let k = self.incidence.factor(e);
                if !block.iter().take(i).any(|u| self.graph.scope(k).contains(u)) {
                    let (axes, from) = entries_under(&self.graph, self.labels, block, k, self.pattern)?;
                    add_finite(axes, weight, from);
                    count_forbidden(axes, violated, from);
                }
            }
        }
        Ok(())
    }

    /// Draws the labels of a block from the conditional in `weight`.
    #[inline(never)]
    fn assign(&mut self, block: &[u32], rng: &mut impl Rng) -> Result<(), InferError> {
        let uniform = (rng.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64);
        let mut rest = T::from_f64(uniform);
        let size: usize = block.iter().map(|&v| self.graph.card(VarId(v))).product();
        // The probabilities sum to 1 up to rounding: if `rest` outlives them, the last possible one it is.
        let mut drawn = 0;
        for (x, &p) in self.weight.iter().take(size).enumerate() {
            if p > T::zero() {
                drawn = x;
                rest -= p;
                if rest < T::zero() {
                    break;
                }
            }
        }
        for &v in block.iter().rev() {
            let card = self.graph.card(VarId(v));
            let label = drawn.checked_rem(card).unwrap_or(0);
            drawn = drawn.checked_div(card).unwrap_or(0);
            *self.labels.get_mut(v as usize).ok_or(LOST)? = label as u32;
        }
        Ok(())
    }

    /// Adds the conditional in `weight` to the running batch.
    #[inline(never)]
    fn accumulate(&mut self, block: &[u32]) -> Result<(), InferError> {
        let size = block.iter().map(|&v| self.graph.card(VarId(v))).product();
        let weight = self.weight.get(..size).ok_or(LOST)?;
        for (at, &v) in block.iter().enumerate() {
            let into = self.batch.get_mut(span(self.label_start, v as usize)).ok_or(LOST)?;
            fold_sum(place(&self.graph, block, at), weight, into);
        }
        Ok(())
    }

    /// One pass over all variables.
    #[inline(never)]
    fn sweep(&mut self, scan: Scan<'_>, count: bool, rng: &mut impl Rng) -> Result<(), InferError> {
        let blocks = match scan {
            Scan::Systematic => self.graph.variables(),
            Scan::Blocked { start, .. } => start.len().saturating_sub(1),
        };
        for i in 0..blocks {
            let single = [i as u32];
            let block = match scan {
                Scan::Systematic => single.as_slice(),
                Scan::Blocked { start, variables } => variables.get(span(start, i)).ok_or(LOST)?,
            };
            self.condition(block)?;
            if count {
                self.accumulate(block)?;
            }
            self.assign(block, rng)?;
        }
        if count {
            self.in_batch += 1;
            if self.in_batch == self.batch_size {
                self.close_batch();
            }
        }
        Ok(())
    }

    #[inline(never)]
    fn close_batch(&mut self) {
        self.batches += 1;
        let (number, length) = (count(self.batches), count::<T>(self.in_batch));
        self.in_batch = 0;
        for ((b, m), s) in self.batch.iter_mut().zip(self.mean.iter_mut()).zip(self.square.iter_mut()) {
            let off = *b / length - *m;
            *m += off / number;
            *s += off * (*b / length - *m);
            *b = T::zero();
        }
    }

    /// Finds a start of positive probability if need be, burns in, then samples afresh: what earlier runs
    /// averaged is forgotten, where they ended is the start.
    ///
    /// [`InferError::ZeroProbability`] if `params.start_sweeps` sweeps left the assignment forbidden:
    /// then there may be none that is not, or single steps do not reach one (try blocks, or a start from
    /// [`Loopy::decode`](super::loopy::Loopy::decode)).
    // Inlined: its frame and its caller's are then one.
    #[inline(always)]
    pub fn run(
        &mut self,
        scan: Scan<'_>,
        params: &Params,
        rng: &mut impl Rng,
    ) -> Result<Info<T>, InferError> {
        if let Scan::Blocked { start, variables } = scan {
            self.check_partition(start, variables)?;
        }
        let mut start_sweeps = 0;
        while self.violated() > 0 {
            if start_sweeps == params.start_sweeps {
                return Err(InferError::ZeroProbability);
            }
            start_sweeps += 1;
            self.sweep(scan, false, rng)?;
        }
        for _ in 0..params.burn_in {
            self.sweep(scan, false, rng)?;
        }
        for sums in [&mut *self.batch, &mut *self.mean, &mut *self.square] {
            sums.fill(T::zero());
        }
        (self.in_batch, self.batches) = (0, 0);
        self.batch_size = if params.batch == 0 { params.sweeps.isqrt().max(1) } else { params.batch };
        for _ in 0..params.sweeps {
            self.sweep(scan, true, rng)?;
        }
        let mut error = T::zero();
        for &s in &*self.square {
            error = error.larger(self.error_of(s));
        }
        Ok(Info { start_sweeps, sweeps: params.sweeps, batches: self.batches, error })
    }

    #[inline(never)]
    fn check_partition(&mut self, start: &[u32], variables: &[u32]) -> Result<(), InferError> {
        let ends = start.first() == Some(&0) && start.last().is_some_and(|&e| e as usize == variables.len());
        let rises = start.iter().zip(start.iter().skip(1)).all(|(a, b)| a <= b);
        if !ends || !rises || variables.len() != self.graph.variables() {
            return Err(InferError::Shape);
        }
        self.seen.fill(0);
        for &v in variables {
            match self.seen.get_mut(v as usize) {
                Some(s) if *s == 0 => *s = 1,
                _ => return Err(InferError::Shape),
            }
        }
        for i in 0..start.len().saturating_sub(1) {
            self.check_block(variables.get(span(start, i)).ok_or(LOST)?)?;
        }
        Ok(())
    }

    /// Estimated marginals of all variables; the block of variable `v` begins at the sum of the arities
    /// before it. [`InferError::Shape`] if nothing was sampled yet.
    pub fn marginals(&self, out: &mut [T]) -> Result<(), InferError> {
        need(self.mean.len(), out.len())?;
        let whole = count::<T>(self.batches) * count(self.batch_size);
        let sweeps = whole + count(self.in_batch);
        if sweeps <= T::zero() {
            return Err(InferError::Shape);
        }
        for ((o, &m), &b) in out.iter_mut().zip(&*self.mean).zip(&*self.batch) {
            *o = m * (whole / sweeps) + b / sweeps;
        }
        Ok(())
    }

    /// Standard error of each marginal, same layout: `√(Σ (batch mean − mean)² / (B(B − 1)))` for `B`
    /// batches, honest as far as a batch is longer than the chain's memory; `+inf` with fewer than two.
    pub fn standard_errors(&self, out: &mut [T]) -> Result<(), InferError> {
        need(self.square.len(), out.len())?;
        for (o, &s) in out.iter_mut().zip(&*self.square) {
            *o = self.error_of(s);
        }
        Ok(())
    }

    fn error_of(&self, square: T) -> T {
        if self.batches < 2 {
            return T::INFINITY;
        }
        (square.larger(T::zero()) / (count::<T>(self.batches) * count(self.batches - 1))).sqrt()
    }
}

fn count<T: Real>(n: u32) -> T {
    T::from_f64(f64::from(n))
}
