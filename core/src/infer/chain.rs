//! Linear chains: `log Z`, marginals, the best labelling and the N best ones.
//!
//! A chain of `T` positions with `L` labels each scores a labelling `y` by
//! `score(y) = Σ_t s_t(y_t) + Σ_t A_t(y_t, y_{t+1})`, and `P(y) = e^{score(y)} / Z`. [`Chain`] is the
//! checked view of `s` and `A`; all work happens in memory that the caller brings.

use crate::error::{InferError, need};
use crate::math::{Real, argmax, maximum};

/// Log scores of going from a label (row) to the next position's label (column).
#[derive(Clone, Copy, Debug)]
pub enum Transitions<'a, T> {
    /// One `L×L` table for every gap.
    Shared(&'a [T]),
    /// `T - 1` tables of `L×L`, one for each gap, in order.
    Each(&'a [T]),
}

impl<'a, T> Transitions<'a, T> {
    /// The table between positions `gap` and `gap + 1`.
    #[inline]
    fn table(&self, gap: usize, cells: usize) -> &'a [T] {
        match self {
            Self::Shared(table) => table,
            Self::Each(tables) => {
                let at = gap.saturating_mul(cells);
                tables.get(at..at.saturating_add(cells)).unwrap_or(&[])
            }
        }
    }
}

/// A checked linear chain over borrowed scores.
///
/// ```
/// use gibbsite_core::infer::chain::{Chain, Transitions};
/// // Two positions, two labels; staying is worth 1.
/// let chain = Chain::new(2, &[0.5, 0.0, 0.0, 0.0], Transitions::Shared(&[1.0, 0.0, 0.0, 1.0]))?;
/// let (mut singles, mut memory) = ([0.0f64; 4], [0.0; 64]);
/// let log_z = chain.forward_backward(&mut singles, None, &mut memory)?;
/// let z = 1.5f64.exp() + 0.5f64.exp() + 0f64.exp() + 1f64.exp();
/// assert!((log_z - z.ln()).abs() < 1e-14);
/// assert!((singles[0] - (1.5f64.exp() + 0.5f64.exp()) / z).abs() < 1e-14);
/// # Ok::<(), gibbsite_core::error::InferError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Chain<'a, T> {
    labels: usize,
    positions: usize,
    states: &'a [T],
    transitions: Transitions<'a, T>,
}

impl<'a, T: Real> Chain<'a, T> {
    /// Checks the scores: at least one label, lengths that fit ([`InferError::Shape`]), no NaN and no
    /// `+inf` ([`InferError::BadValue`]). `states` has a row of `labels` scores per position; without
    /// positions the chain has one labelling, the empty one, with score 0.
    pub fn new(labels: usize, states: &'a [T], transitions: Transitions<'a, T>) -> Result<Self, InferError> {
        let positions = states.len().checked_div(labels).ok_or(InferError::Shape)?;
        let cells = labels.checked_mul(labels).ok_or(InferError::Shape)?;
        let (table, expected) = match transitions {
            Transitions::Shared(table) => (table, Some(cells)),
            Transitions::Each(tables) => (tables, cells.checked_mul(positions.saturating_sub(1))),
        };
        // Labels are u32 in every result.
        let fits = positions.checked_mul(labels) == Some(states.len()) && labels <= u32::MAX as usize;
        if !fits || expected != Some(table.len()) {
            return Err(InferError::Shape);
        }
        // `&` instead of a short circuit: the scan then vectorises.
        let legal = |x: &[T]| x.iter().fold(true, |ok, v| ok & v.is_log_potential());
        if legal(states) && legal(table) {
            Ok(Self { labels, positions, states, transitions })
        } else {
            Err(InferError::BadValue)
        }
    }

    /// How many labels each position can take.
    pub fn labels(&self) -> usize {
        self.labels
    }

    /// How many positions there are.
    pub fn positions(&self) -> usize {
        self.positions
    }

    fn cells(&self) -> usize {
        self.labels.saturating_mul(self.labels)
    }

    fn rows(&self) -> Rows<&'a [T]> {
        rows(self.states, self.labels)
    }

    /// Score of a labelling; `-inf` if it is forbidden. Its log-probability is this minus `log Z`.
    ///
    /// ```
    /// # use gibbsite_core::infer::chain::{Chain, Transitions};
    /// let chain = Chain::new(2, &[0.5, 0.0, 0.0, 0.25], Transitions::Shared(&[1.0, 2.0, 0.0, 1.0]))?;
    /// assert_eq!(chain.score(&[0, 1])?, 2.75);
    /// assert!(chain.score(&[0, 2]).is_err());
    /// # Ok::<(), gibbsite_core::error::InferError>(())
    /// ```
    pub fn score(&self, labels: &[u32]) -> Result<T, InferError> {
        if labels.len() != self.positions {
            return Err(InferError::Shape);
        }
        let mut sum = Compensated::default();
        let mut before: Option<usize> = None;
        let mut forbidden = false;
        for (t, (row, &label)) in self.rows().zip(labels).enumerate() {
            let label = label as usize;
            let mut add = |x: T| if x == T::NEG_INFINITY { forbidden = true } else { sum.add(x) };
            add(*row.get(label).ok_or(InferError::Shape)?);
            if let Some(from) = before {
                let table = self.transitions.table(t.saturating_sub(1), self.cells());
                add(*table.get(from * self.labels + label).ok_or(InferError::Shape)?);
            }
            before = Some(label);
        }
        if forbidden { Ok(T::NEG_INFINITY) } else { Ok(sum.value()) }
    }

    /// Entries of memory that [`log_z`](Self::log_z) needs, whatever the length of the chain.
    pub const fn log_z_len(labels: usize) -> usize {
        labels.saturating_mul(labels).saturating_add(labels.saturating_mul(4))
    }

    /// `log Z` alone: the forward half of [`forward_backward`](Self::forward_backward), which keeps only
    /// two rows.
    ///
    /// ```
    /// # use gibbsite_core::infer::chain::{Chain, Transitions};
    /// let chain = Chain::new(3, &[0.0; 30], Transitions::Shared(&[0.0; 9]))?;
    /// let mut memory = [0.0f64; Chain::<f64>::log_z_len(3)];
    /// assert!((chain.log_z(&mut memory)? - 10.0 * 3f64.ln()).abs() < 1e-12);
    /// # Ok::<(), gibbsite_core::error::InferError>(())
    /// ```
    pub fn log_z(&self, memory: &mut [T]) -> Result<T, InferError> {
        let mut rest = Parts::new(memory, Self::log_z_len(self.labels))?;
        let exp = rest.take(self.cells())?;
        let (mut mass, mut extra) = (rest.take(self.labels)?, rest.take(self.labels)?);
        let (mut next, mut next_extra) = (rest.take(self.labels)?, rest.take(self.labels)?);
        let kernel = Kernel::new(self.labels);
        let mut reach = self.shared(exp);
        let (mut log, mut floor) = (Compensated::default(), T::zero());
        for (t, scores) in self.rows().enumerate() {
            if t == 0 {
                floor = kernel.start(scores, mass, extra, &mut log)?;
                continue;
            }
            let table = self.transitions.table(t - 1, self.cells());
            if let Transitions::Each(_) = self.transitions {
                reach = exponentiate(table, exp);
            }
            let gap = Gap { log: table, exp, reach };
            let from = Row { mass, exponent: extra, floor };
            floor = kernel.forward(from, &gap, scores, next, next_extra, &mut log)?;
            core::mem::swap(&mut mass, &mut next);
            core::mem::swap(&mut extra, &mut next_extra);
        }
        kernel.finish(self.positions, Row { mass, exponent: extra, floor }, log)
    }

    fn shared(&self, exp: &mut [T]) -> Reach<T> {
        match self.transitions {
            Transitions::Shared(table) => exponentiate(table, exp),
            Transitions::Each(_) => Reach { shift: T::zero(), floor: T::zero() },
        }
    }

    /// Entries of `singles` that [`forward_backward`](Self::forward_backward) writes.
    pub const fn singles_len(positions: usize, labels: usize) -> usize {
        positions.saturating_mul(labels)
    }

    /// Entries of `pairs` that [`forward_backward`](Self::forward_backward) writes.
    pub const fn pairs_len(positions: usize, labels: usize) -> usize {
        positions.saturating_sub(1).saturating_mul(labels).saturating_mul(labels)
    }

    /// Entries of memory that [`forward_backward`](Self::forward_backward) needs.
    pub const fn forward_backward_len(positions: usize, labels: usize) -> usize {
        let rows = positions.saturating_mul(labels.saturating_add(1));
        let tables = labels.saturating_mul(labels).saturating_mul(2);
        rows.saturating_add(tables).saturating_add(labels.saturating_mul(6))
    }

    /// `log Z` (returned), `P(y_t = j)` into `singles` (row per position) and, if wanted,
    /// `P(y_t = i, y_{t+1} = j)` into `pairs` (an `L×L` table per gap).
    ///
    /// ```text
    /// α_0 = e^{s_0},  α_t(j) = e^{s_t(j)} Σ_i α_{t-1}(i) e^{A(i,j)}
    /// β_{T-1} = 1,    β_t(i) = Σ_j e^{A(i,j)} e^{s_{t+1}(j)} β_{t+1}(j)
    /// P(y_t = j) ∝ α_t(j) β_t(j),   P(y_t = i, y_{t+1} = j) ∝ α_t(i) e^{A(i,j) + s_{t+1}(j)} β_{t+1}(j)
    /// ```
    ///
    /// Source: Rabiner 1989 (scaled recurrences), Lafferty et al. 2001. Ours differs in one thing: a
    /// scaled step is taken only when the product of the smallest nonzero `α`, `e^A` and `e^s` shows
    /// that nothing nonzero can underflow. Other steps carry an exponent with each number (the
    /// private `Wide` numbers of this file), which loses no more digits at scores of ±1e6 than at ±1.
    ///
    /// No stopping rule: two passes, `O(T·L²)` time. `singles` also keeps `α` between them. Short
    /// memory is noticed before anything is written; after another error `singles` and `pairs` hold
    /// nothing of use. [`InferError::BadValue`] also stands for a `log Z` too large for `T`.
    pub fn forward_backward(
        &self,
        singles: &mut [T],
        mut pairs: Option<&mut [T]>,
        memory: &mut [T],
    ) -> Result<T, InferError> {
        let (labels, cells, positions) = (self.labels, self.cells(), self.positions);
        let mut singles = Parts::new(singles, Self::singles_len(positions, labels))?;
        let singles = singles.take(positions * labels)?;
        if let Some(pairs) = &pairs {
            need(Self::pairs_len(positions, labels), pairs.len())?;
        }
        let mut rest = Parts::new(memory, Self::forward_backward_len(positions, labels))?;
        let extras = rest.take(positions * labels)?;
        let floors = rest.take(positions)?;
        let (exp, turned) = (rest.take(cells)?, rest.take(cells)?);
        let kernel = Kernel::new(labels);
        let mut reach = self.shared(exp);

        let mut log = Compensated::default();
        let mut from = Row { mass: &[], exponent: &[], floor: T::zero() };
        let rows = rows_mut(singles, labels).zip(rows_mut(extras, labels)).zip(self.rows());
        for (t, (((mass, extra), scores), floor)) in rows.zip(floors.iter_mut()).enumerate() {
            if t == 0 {
                *floor = kernel.start(scores, mass, extra, &mut log)?;
            } else {
                let table = self.transitions.table(t - 1, cells);
                let exp = match (self.transitions, &mut pairs) {
                    (Transitions::Shared(_), _) => &*exp,
                    (Transitions::Each(_), None) => {
                        reach = exponentiate(table, exp);
                        &*exp
                    }
                    // The place of the pairwise marginals keeps the exponentials for the way back.
                    (Transitions::Each(_), Some(pairs)) => {
                        let kept = pairs.get_mut((t - 1) * cells..t * cells).unwrap_or(&mut []);
                        reach = exponentiate(table, kept);
                        &*kept
                    }
                };
                let gap = Gap { log: table, exp, reach };
                *floor = kernel.forward(from, &gap, scores, mass, extra, &mut log)?;
            }
            from = Row { mass, exponent: extra, floor: *floor };
        }
        let log_z = kernel.finish(positions, from, log)?;

        let (mut beta, mut beta_k) = (rest.take(labels)?, rest.take(labels)?);
        let (mut next, mut next_k) = (rest.take(labels)?, rest.take(labels)?);
        let (weighted, weighted_k) = (rest.take(labels)?, rest.take(labels)?);
        beta.fill(T::one());
        beta_k.fill(T::zero());
        let mut beta_floor = T::one();
        if let Transitions::Shared(_) = self.transitions {
            transpose(exp, turned, labels);
        }
        let mut above: Option<(&mut [T], T, &[T])> = None;
        let (mut masses, mut extras, mut scores) =
            (rows_mut(singles, labels), rows_mut(extras, labels), self.rows());
        for (t, &floor) in floors.iter().enumerate().rev() {
            let (Some(mass), Some(extra), Some(scores)) =
                (masses.next_back(), extras.next_back(), scores.next_back())
            else {
                break;
            };
            if let Some((extra_above, floor_above, scores_above)) = above {
                let table = self.transitions.table(t, cells);
                let pair = pairs.as_deref_mut().and_then(|p| p.get_mut(t * cells..(t + 1) * cells));
                if let Transitions::Each(_) = self.transitions {
                    reach = match &pair {
                        None => exponentiate(table, exp),
                        Some(kept) => {
                            exp.iter_mut().zip(kept.iter()).for_each(|(e, &k)| *e = k);
                            reach_of(table, kept)
                        }
                    };
                    transpose(exp, turned, labels);
                }
                if floor_above == T::zero() {
                    // That row held the exponents of α, done with by now.
                    kernel.weights(scores_above, extra_above);
                }
                let gap = Gap { log: table, exp, reach };
                let from = Row { mass: beta, exponent: beta_k, floor: beta_floor };
                let back = Backward {
                    gap: &gap,
                    turned,
                    weights: extra_above,
                    scores: scores_above,
                    weighted: &mut *weighted,
                    weighted_k: &mut *weighted_k,
                    next: &mut *next,
                    next_k: &mut *next_k,
                };
                let (weighted_floor, scale, next_floor) = kernel.backward(from, back)?;
                core::mem::swap(&mut beta, &mut next);
                core::mem::swap(&mut beta_k, &mut next_k);
                beta_floor = next_floor;
                if let Some(pair) = pair {
                    let alpha = Row { mass, exponent: extra, floor };
                    let weighted = Row { mass: weighted, exponent: weighted_k, floor: weighted_floor };
                    kernel.pair(alpha, &gap, weighted, beta, scale, pair);
                }
            }
            kernel.single(mass, extra, floor, Row { mass: beta, exponent: beta_k, floor: beta_floor });
            above = Some((extra, floor, scores));
        }
        Ok(log_z)
    }

    /// Entries of memory that [`viterbi`](Self::viterbi) needs.
    pub const fn viterbi_len(labels: usize) -> usize {
        labels.saturating_mul(3)
    }

    /// Back pointers that [`viterbi`](Self::viterbi) needs.
    pub const fn viterbi_back_len(positions: usize, labels: usize) -> usize {
        positions.saturating_sub(1).saturating_mul(labels)
    }

    /// The best labelling (into `path`) and its score. Of equally good ones, the one with the lowest
    /// labels, compared from the last position to the first.
    ///
    /// `δ_t(j) = s_t(j) + max_i δ_{t-1}(i) + A(i,j)`, Viterbi 1967; ours subtracts `max δ_t` at each
    /// position, so that a million positions in `f32` still tell close labellings apart. Back pointers
    /// may be `u8` or `u16` where the labels fit, [`InferError::Shape`] if they do not. `O(T·L²)` time.
    ///
    /// ```
    /// use gibbsite_core::infer::chain::{Chain, Transitions};
    /// let chain = Chain::new(2, &[0.5, 0.0, 0.0, 0.25], Transitions::Shared(&[1.0, 0.0, 0.0, 1.0]))?;
    /// let (mut path, mut back, mut memory) = ([0; 2], [0u8; 2], [0.0f32; 6]);
    /// assert_eq!(chain.viterbi(&mut path, &mut back, &mut memory)?, 1.5);
    /// assert_eq!(path, [0, 0]);
    /// # Ok::<(), gibbsite_core::error::InferError>(())
    /// ```
    pub fn viterbi<B: Copy + Into<u32> + TryFrom<u32>>(
        &self,
        path: &mut [u32],
        back: &mut [B],
        memory: &mut [T],
    ) -> Result<T, InferError> {
        let (labels, cells) = (self.labels, self.cells());
        need(self.positions, path.len())?;
        need(Self::viterbi_back_len(self.positions, labels), back.len())?;
        let mut rest = Parts::new(memory, Self::viterbi_len(labels))?;
        let (mut delta, mut next) = (rest.take(labels)?, rest.take(labels)?);
        let origin = rest.take(labels)?;
        // `origin` holds labels as T; beyond 2^24 they would not be exact in f32.
        if B::try_from(labels.saturating_sub(1) as u32).is_err() || labels > 1 << 24 {
            return Err(InferError::Shape);
        }
        let mut each = self.rows();
        let Some(first) = each.next() else { return Ok(T::zero()) };
        delta.iter_mut().zip(first).for_each(|(d, &s)| *d = s);
        recentre(delta)?;
        for (t, (scores, back)) in each.zip(rows_mut(back, labels)).enumerate() {
            let table = self.transitions.table(t, cells);
            best_of(delta, table, next, origin);
            for ((pointer, &from), (best, &s)) in
                back.iter_mut().zip(&*origin).zip(next.iter_mut().zip(scores))
            {
                *best += s;
                let from = from.to_u32().and_then(|l| B::try_from(l).ok());
                *pointer = from.ok_or(InferError::Shape)?;
            }
            recentre(next)?;
            core::mem::swap(&mut delta, &mut next);
        }
        let path = path.get_mut(..self.positions).unwrap_or(&mut []);
        let mut label = argmax(delta) as u32;
        let Some((last, before)) = path.split_last_mut() else { return Ok(T::zero()) };
        *last = label;
        let mut back = rows(back.get(..before.len() * labels).unwrap_or(&[]), labels);
        for place in before.iter_mut().rev() {
            label = back.next_back().and_then(|b| b.get(label as usize)).map_or(0, |&b| b.into());
            *place = label;
        }
        finite(self.score(path)?)
    }

    /// Entries of memory that [`n_best`](Self::n_best) needs.
    pub const fn n_best_len(labels: usize, n: usize) -> usize {
        labels.saturating_mul(n.saturating_mul(2).saturating_add(1))
    }

    /// `u32` back pointers that [`n_best`](Self::n_best) needs.
    pub const fn n_best_back_len(positions: usize, labels: usize, n: usize) -> usize {
        let lists = positions.saturating_sub(1).saturating_mul(labels).saturating_mul(n);
        lists.saturating_add(labels).saturating_add(n)
    }

    /// The `n` best labellings, best first: one after the other into `paths` (`n·T`), their scores into
    /// `scores` (`n`); returns how many there are, fewer than `n` if only so many are possible.
    /// Labellings of score `-inf` are not given. All are distinct; equals come in a fixed order.
    ///
    /// Parallel list Viterbi (Seshadri & Sundberg 1994): each label of each position keeps its `n` best
    /// beginnings, merged from the sorted lists of the labels before. `O(T·L²·n)` time.
    ///
    /// ```
    /// use gibbsite_core::infer::chain::{Chain, Transitions};
    /// let chain = Chain::new(2, &[0.5, 0.0, 0.0, 0.25], Transitions::Shared(&[1.0, 0.0, 0.0, 1.0]))?;
    /// let (mut paths, mut scores) = ([0; 6], [0.0f64; 3]);
    /// let mut back = [0; Chain::<f64>::n_best_back_len(2, 2, 3)];
    /// let mut memory = [0.0; Chain::<f64>::n_best_len(2, 3)];
    /// assert_eq!(chain.n_best(3, &mut paths, &mut scores, &mut back, &mut memory)?, 3);
    /// assert_eq!((paths, scores), ([0, 0, 1, 1, 0, 1], [1.5, 1.25, 0.75]));
    /// # Ok::<(), gibbsite_core::error::InferError>(())
    /// ```
    pub fn n_best(
        &self,
        n: usize,
        paths: &mut [u32],
        scores: &mut [T],
        back: &mut [u32],
        memory: &mut [T],
    ) -> Result<usize, InferError> {
        let (labels, positions) = (self.labels, self.positions);
        need(n.saturating_mul(positions), paths.len())?;
        need(n, scores.len())?;
        need(Self::n_best_back_len(positions, labels, n), back.len())?;
        let lists = labels.checked_mul(n).filter(|&l| l <= u32::MAX as usize).ok_or(InferError::Shape)?;
        let scores = scores.get_mut(..n).unwrap_or(&mut []);
        let mut rest = Parts::new(memory, Self::n_best_len(labels, n))?;
        let (mut list, mut next) = (rest.take(lists)?, rest.take(lists)?);
        let heads = rest.take(labels)?;
        let mut rest = Parts::new(back, Self::n_best_back_len(positions, labels, n))?;
        let (taken, ends) = (rest.take(labels)?, rest.take(n)?);
        let back = rest.take(positions.saturating_sub(1).saturating_mul(lists))?;
        let Some(best) = scores.first_mut() else { return Ok(0) };
        let mut each = self.rows();
        let Some(first) = each.next() else {
            *best = T::zero();
            return Ok(1);
        };

        list.fill(T::NEG_INFINITY);
        for (list, &s) in rows_mut(list, n).zip(first) {
            list.iter_mut().take(1).for_each(|l| *l = s);
        }
        recentre(list)?;
        for (t, (row, back)) in each.zip(rows_mut(back, lists)).enumerate() {
            let table = self.transitions.table(t, self.cells());
            let into = rows_mut(next, n).zip(rows_mut(back, n));
            for (to, ((into, back), &s)) in into.zip(row).enumerate() {
                let entry = |from: usize| table.get(from * labels + to).map_or(T::NEG_INFINITY, |&a| a + s);
                merge(list, entry, into, back, heads, taken);
            }
            recentre(next)?;
            core::mem::swap(&mut list, &mut next);
        }
        merge(list, |_| T::zero(), scores, ends, heads, taken);

        let found = scores.iter().take_while(|&&s| T::NEG_INFINITY < s).count();
        let each = scores.iter_mut().zip(&*ends).zip(rows_mut(paths, positions));
        for ((score, &end), path) in each.take(found) {
            let mut entry = end;
            let label = |entry: u32| entry.checked_div(n as u32).unwrap_or(0);
            let Some((last, before)) = path.split_last_mut() else { continue };
            *last = label(entry);
            let mut back = rows(back, lists);
            for place in before.iter_mut().rev() {
                entry = back.next_back().and_then(|b| b.get(entry as usize)).copied().unwrap_or(0);
                *place = label(entry);
            }
            // Summed anew: a score far below others has lost digits to the recentring.
            *score = finite(self.score(path)?)?;
        }
        for i in 1..found {
            for j in (1..=i).rev() {
                if !swap_if_rising(scores, paths, j, positions) {
                    break;
                }
            }
        }
        Ok(found)
    }
}

/// `best(j) = max_i delta(i) + table(i, j)`, and `from(j)` the first `i` that attains it, as a number of
/// the width of the scores, so that this vectorises.
fn best_of<T: Real>(delta: &[T], table: &[T], best: &mut [T], from: &mut [T]) {
    best.fill(T::NEG_INFINITY);
    from.fill(T::zero());
    let mut label = T::zero();
    for (&d, row) in delta.iter().zip(rows(table, best.len())) {
        for ((best, from), &a) in best.iter_mut().zip(from.iter_mut()).zip(row) {
            // Arithmetic, because a choice here would be compiled to a branch that nothing predicts.
            let better = if *best < d + a { T::one() } else { T::zero() };
            *from += better * (label - *from);
            *best = best.larger(d + a);
        }
        label += T::one();
    }
}

/// Swaps the labellings `j - 1` and `j` if they are in the wrong order; whether it did.
fn swap_if_rising<T: Real>(scores: &mut [T], paths: &mut [u32], j: usize, positions: usize) -> bool {
    match scores.get_mut(j.saturating_sub(1)..=j) {
        Some([above, below]) if *above < *below => {
            core::mem::swap(above, below);
            let mut rows = rows_mut(paths, positions).skip(j.saturating_sub(1));
            if let (Some(a), Some(b)) = (rows.next(), rows.next()) {
                a.iter_mut().zip(b).for_each(|(a, b)| core::mem::swap(a, b));
            }
            true
        }
        _ => false,
    }
}

/// The best entries of `L` falling lists, list `i` raised by `raise(i)`, into `out`; `from` says which
/// entries those were. `heads` and `taken` hold the first entry not yet taken of each list.
fn merge<T: Real>(
    lists: &[T],
    raise: impl Fn(usize) -> T,
    out: &mut [T],
    from: &mut [u32],
    heads: &mut [T],
    taken: &mut [u32],
) {
    let n = out.len();
    taken.fill(0);
    for (i, (head, list)) in heads.iter_mut().zip(rows(lists, n)).enumerate() {
        *head = list.first().map_or(T::NEG_INFINITY, |&v| v + raise(i));
    }
    for (out, from) in out.iter_mut().zip(from) {
        let i = argmax(heads);
        let (Some(head), Some(taken)) = (heads.get_mut(i), taken.get_mut(i)) else { return };
        *out = *head;
        *from = (i * n) as u32 + *taken;
        if *head == T::NEG_INFINITY {
            continue;
        }
        *taken += 1;
        let left = (*taken as usize) < n;
        *head = match lists.get(i * n + *taken as usize) {
            Some(&v) if left => v + raise(i),
            _ => T::NEG_INFINITY,
        };
    }
}

/// Subtracts the largest entry from all.
fn recentre<T: Real>(x: &mut [T]) -> Result<(), InferError> {
    let top = maximum(x);
    if top == T::NEG_INFINITY {
        return Err(InferError::ZeroProbability);
    }
    x.iter_mut().for_each(|v| *v -= top);
    Ok(())
}

/// A sum of finite terms that has left the range of `T` is an error, not an answer.
pub(crate) fn finite<T: Real>(x: T) -> Result<T, InferError> {
    if x.abs() < T::INFINITY { Ok(x) } else { Err(InferError::BadValue) }
}

/// Hands out a memory argument piece by piece, after one check of its length.
pub(crate) struct Parts<'m, U> {
    rest: &'m mut [U],
    needed: usize,
    given: usize,
}

impl<'m, U> Parts<'m, U> {
    pub(crate) fn new(memory: &'m mut [U], needed: usize) -> Result<Self, InferError> {
        let given = memory.len();
        need(needed, given)?;
        Ok(Self { rest: memory, needed, given })
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'m mut [U], InferError> {
        let short = InferError::Memory { needed: self.needed, given: self.given };
        let (part, rest) = core::mem::take(&mut self.rest).split_at_mut_checked(len).ok_or(short)?;
        self.rest = rest;
        Ok(part)
    }
}

/// Rows of equal length, as `chunks_exact` gives them, but without a division that the compiler would
/// guard by a panic. From the front a remainder is left out; from the back there must be none.
pub(crate) struct Rows<S> {
    rest: S,
    len: usize,
}

pub(crate) fn rows<U>(all: &[U], len: usize) -> Rows<&[U]> {
    Rows { rest: all, len }
}

pub(crate) fn rows_mut<U>(all: &mut [U], len: usize) -> Rows<&mut [U]> {
    Rows { rest: all, len }
}

impl<'r, U> Rows<&'r [U]> {
    fn next_back(&mut self) -> Option<&'r [U]> {
        let (rest, row) = self.rest.split_at_checked(self.rest.len().checked_sub(self.len)?)?;
        self.rest = rest;
        (!row.is_empty()).then_some(row)
    }
}

impl<'r, U> Rows<&'r mut [U]> {
    fn next_back(&mut self) -> Option<&'r mut [U]> {
        let at = self.rest.len().checked_sub(self.len)?;
        let (rest, row) = core::mem::take(&mut self.rest).split_at_mut_checked(at)?;
        self.rest = rest;
        (!row.is_empty()).then_some(row)
    }
}

impl<'r, U> Iterator for Rows<&'r [U]> {
    type Item = &'r [U];

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (row, rest) = self.rest.split_at_checked(self.len)?;
        self.rest = rest;
        (!row.is_empty()).then_some(row)
    }
}

impl<'r, U> Iterator for Rows<&'r mut [U]> {
    type Item = &'r mut [U];

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (row, rest) = core::mem::take(&mut self.rest).split_at_mut_checked(self.len)?;
        self.rest = rest;
        (!row.is_empty()).then_some(row)
    }
}

/// A running sum with the rounding error of each addition kept beside it (Neumaier 1974).
#[derive(Clone, Copy, Default)]
pub(crate) struct Compensated<T> {
    sum: T,
    lost: T,
}

impl<T: Real> Compensated<T> {
    #[inline]
    pub(crate) fn add(&mut self, x: T) {
        let sum = self.sum + x;
        let (large, small) = if self.sum.abs() < x.abs() { (x, self.sum) } else { (self.sum, x) };
        self.lost += (large - sum) + small;
        self.sum = sum;
    }

    pub(crate) fn value(&self) -> T {
        self.sum + self.lost
    }
}

/// A nonnegative number `m · e^{R·k}`: no sum or product of such numbers underflows, and each costs one
/// rounding however large the logarithm is, where `log-sum-exp` would lose digits to its magnitude.
/// Nonzero `m` lies in `[e^{-R/2}, e^{R/2})`; `k` is a whole number, kept as a `T` so that a
/// row of them fits memory of `T`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wide<T> {
    pub(crate) m: T,
    pub(crate) k: T,
}

impl<T: Real> Wide<T> {
    pub(crate) fn zero() -> Self {
        Self { m: T::zero(), k: T::zero() }
    }

    pub(crate) fn one() -> Self {
        Self { m: T::one(), k: T::zero() }
    }

    #[inline]
    pub(crate) fn is_zero(self) -> bool {
        self.m == T::zero()
    }

    #[inline]
    fn exceeds(self, other: Self) -> bool {
        !self.is_zero() && (other.is_zero() || other.k < self.k || (other.k == self.k && other.m < self.m))
    }
}

/// Arithmetic of [`Wide`] numbers. `R` is a power of two, which makes `x = R·k + rest` exact, and
/// `e^{±R}`, the range of a product of two `m`, lies well inside [`Real::LOG_RANGE`].
#[derive(Clone, Copy)]
pub(crate) struct Radix<T> {
    /// `R`.
    pub(crate) log: T,
    up: T,
    down: T,
    high: T,
    low: T,
}

impl<T: Real> Radix<T> {
    pub(crate) fn new() -> Self {
        let wide = T::from_f64(512.0);
        let log = if wide < T::LOG_RANGE { wide } else { T::from_f64(64.0) };
        let half = log / T::from_f64(2.0);
        Self { log, up: log.exp(), down: (-log).exp(), high: half.exp(), low: (-half).exp() }
    }

    #[inline]
    pub(crate) fn settle(&self, m: T, k: T) -> Wide<T> {
        if self.high <= m {
            Wide { m: m * self.down, k: k + T::one() }
        } else if m < self.low && m != T::zero() {
            Wide { m: m * self.up, k: k - T::one() }
        } else {
            Wide { m, k }
        }
    }

    /// `e^x`.
    #[inline]
    pub(crate) fn exp(&self, x: T) -> Wide<T> {
        if x.abs() < self.log {
            return self.settle(x.exp(), T::zero());
        }
        if x == T::NEG_INFINITY {
            return Wide::zero();
        }
        let quotient = x / self.log;
        // Beyond the integers' range the quotient is a whole number already.
        let k = quotient.to_i64().and_then(T::from).unwrap_or(quotient);
        self.settle((x - k * self.log).exp(), k)
    }

    #[inline]
    pub(crate) fn mul(&self, a: Wide<T>, b: Wide<T>) -> Wide<T> {
        self.settle(a.m * b.m, a.k + b.k)
    }

    #[inline]
    pub(crate) fn add(&self, a: Wide<T>, b: Wide<T>) -> Wide<T> {
        if a.is_zero() {
            return b;
        }
        if b.is_zero() {
            return a;
        }
        let (a, b) = if a.k < b.k { (b, a) } else { (a, b) };
        if a.k == b.k {
            self.settle(a.m + b.m, a.k)
        } else if a.k == b.k + T::one() {
            self.settle(a.m + b.m * self.down, a.k)
        } else {
            // b < e^{-R} a.
            a
        }
    }

    /// `part / whole` as a plain number, for `0 <= part <= whole` and `whole > 0`; it may underflow.
    #[inline]
    pub(crate) fn ratio(&self, part: Wide<T>, whole: Wide<T>) -> T {
        let quotient = part.m / whole.m;
        let behind = whole.k - part.k;
        if behind == T::zero() || part.is_zero() {
            quotient
        } else if behind == T::one() {
            quotient * self.down
        } else if behind == T::one() + T::one() {
            quotient * self.down * self.down
        } else {
            T::zero()
        }
    }

    /// Subtracts the largest `k` of a row from all and returns it; `None` if the row is zero.
    pub(crate) fn level(&self, m: &[T], k: &mut [T]) -> Option<T> {
        let nonzero = m.iter().zip(k.iter()).filter(|(m, _)| **m != T::zero());
        let top = nonzero.fold(None, |top: Option<T>, (_, &k)| Some(top.map_or(k, |t| t.larger(k))))?;
        if top != T::zero() {
            k.iter_mut().for_each(|k| *k -= top);
        }
        Some(top)
    }
}

/// A row of `α` or `β` up to a common factor. With `floor > 0` it is plain: `mass` lies in `[0, 1]` and
/// its nonzero entries are at least `floor`. With `floor = 0` its numbers are [`Wide`].
#[derive(Clone, Copy)]
struct Row<'r, T> {
    mass: &'r [T],
    exponent: &'r [T],
    floor: T,
}

impl<'r, T: Real> Row<'r, T> {
    fn wide(self, radix: &Radix<T>) -> impl Iterator<Item = Wide<T>> + use<'r, '_, T> {
        let plain = self.floor != T::zero();
        let each = self.mass.iter().zip(self.exponent);
        each.map(move |(&m, &k)| if plain { radix.settle(m, T::zero()) } else { Wide { m, k } })
    }
}

/// How a row or table of logs was exponentiated: `e^{x - shift}`, nonzero entries at least `floor`, all
/// at most 1. `floor = 0` if its range is too wide for that, then `shift = 0` and nothing was written.
#[derive(Clone, Copy)]
struct Reach<T> {
    shift: T,
    floor: T,
}

/// Writes the exponentials; the floor is one of them, so it costs no further `exp`.
fn exponentiate<T: Real>(log: &[T], out: &mut [T]) -> Reach<T> {
    let (top, low) = extent(log, T::NEG_INFINITY);
    if top == T::NEG_INFINITY {
        out.fill(T::zero());
        return Reach { shift: T::zero(), floor: T::one() };
    }
    if T::LOG_RANGE < top - low {
        return Reach { shift: T::zero(), floor: T::zero() };
    }
    let mut floor = T::one();
    for (o, &x) in out.iter_mut().zip(log) {
        *o = (x - top).exp();
        floor = if x == low { *o } else { floor };
    }
    Reach { shift: top, floor }
}

/// What [`exponentiate`] returned when it wrote `exp`.
fn reach_of<T: Real>(log: &[T], exp: &[T]) -> Reach<T> {
    let (top, low) = extent(log, T::NEG_INFINITY);
    let none = Reach { shift: T::zero(), floor: T::one() };
    match log.iter().zip(exp).find(|(x, _)| **x == low) {
        None => none,
        Some((_, &floor)) if top - low <= T::LOG_RANGE => Reach { shift: top, floor },
        Some(_) => Reach { floor: T::zero(), ..none },
    }
}

/// A transition table: logs, exponentials (row = from) and how those were made.
struct Gap<'g, T> {
    log: &'g [T],
    exp: &'g [T],
    reach: Reach<T>,
}

impl<T: Real> Gap<'_, T> {
    /// Row by row the entries `e^{A - shift}`.
    fn wide(&self, radix: &Radix<T>, labels: usize) -> impl Iterator<Item = impl Iterator<Item = Wide<T>>> {
        let plain = self.reach.floor != T::zero();
        // If plain, the exponentials are there and need not be taken again.
        let table = if plain { self.exp } else { self.log };
        rows(table, labels).map(move |row| {
            row.iter().map(move |&x| if plain { radix.settle(x, T::zero()) } else { radix.exp(x) })
        })
    }
}

/// Largest entry, and smallest of those above `nothing` (`+inf` if there is none). In four lanes, so
/// that it vectorises.
fn extent<T: Real>(x: &[T], nothing: T) -> (T, T) {
    let put = |high: &mut T, low: &mut T, v: T| {
        *high = high.larger(v);
        *low = low.smaller(if nothing < v { v } else { T::INFINITY });
    };
    let (chunks, tail) = x.as_chunks::<4>();
    let (mut top, mut bottom) = (nothing, T::INFINITY);
    if !chunks.is_empty() {
        let (mut high, mut low) = ([nothing; 4], [T::INFINITY; 4]);
        for chunk in chunks {
            for ((high, low), &v) in high.iter_mut().zip(&mut low).zip(chunk) {
                put(high, low, v);
            }
        }
        top = high.into_iter().fold(top, T::larger);
        bottom = low.into_iter().fold(bottom, T::smaller);
    }
    for &v in tail {
        put(&mut top, &mut bottom, v);
    }
    (top, bottom)
}

/// `out(j) = Σ_i x(i) table(i, j)`, four rows at a time to spare loads and stores of `out`.
fn combine<T: Real>(x: &[T], table: &[T], out: &mut [T]) {
    let mut rows = rows(table, out.len());
    out.fill(T::zero());
    let (fours, last) = x.as_chunks::<4>();
    for &[a, b, c, d] in fours {
        let (Some(ra), Some(rb), Some(rc), Some(rd)) = (rows.next(), rows.next(), rows.next(), rows.next())
        else {
            return;
        };
        for ((((o, &ra), &rb), &rc), &rd) in out.iter_mut().zip(ra).zip(rb).zip(rc).zip(rd) {
            *o += (a * ra + b * rb) + (c * rc + d * rd);
        }
    }
    for (&x, row) in last.iter().zip(rows) {
        for (o, &e) in out.iter_mut().zip(row) {
            *o += x * e;
        }
    }
}

fn transpose<T: Copy>(table: &[T], out: &mut [T], labels: usize) {
    for (i, row) in rows(table, labels).enumerate() {
        for (o, &v) in out.iter_mut().skip(i).step_by(labels.max(1)).zip(row) {
            *o = v;
        }
    }
}

/// What a backward step reads and writes.
struct Backward<'s, T> {
    gap: &'s Gap<'s, T>,
    /// The exponentials, row = to.
    turned: &'s [T],
    /// `e^{s_{t+1}}`, all zero if its range is too wide.
    weights: &'s [T],
    scores: &'s [T],
    /// `e^{s_{t+1}} β_{t+1}`.
    weighted: &'s mut [T],
    weighted_k: &'s mut [T],
    next: &'s mut [T],
    next_k: &'s mut [T],
}

/// The steps of forward-backward, each in plain numbers where that is proven safe, else in wide ones.
struct Kernel<T> {
    radix: Radix<T>,
    /// Products at least this large stay normal numbers, also after division by a sum of `L` of them.
    tiny: T,
    labels: usize,
}

impl<T: Real> Kernel<T> {
    fn new(labels: usize) -> Self {
        let tiny = (-T::LOG_RANGE).exp() * T::from_f64(labels as f64);
        Self { radix: Radix::new(), tiny, labels }
    }

    /// `e^{scores}` for the backward step, or zeros if their range is too wide.
    fn weights(&self, scores: &[T], out: &mut [T]) {
        if exponentiate(scores, out).floor == T::zero() {
            out.fill(T::zero());
        }
    }

    /// `α_0`. Returns the floor of the row; `extra` holds the exponents if that is 0, else the weights.
    fn start(
        &self,
        scores: &[T],
        mass: &mut [T],
        extra: &mut [T],
        log: &mut Compensated<T>,
    ) -> Result<T, InferError> {
        let reach = exponentiate(scores, extra);
        if reach.floor != T::zero() {
            mass.iter_mut().zip(&*extra).for_each(|(m, &e)| *m = e);
            log.add(reach.shift);
            return self.rescale(mass).map(|(_, floor)| floor);
        }
        for ((m, k), &s) in mass.iter_mut().zip(extra.iter_mut()).zip(scores) {
            Wide { m: *m, k: *k } = self.radix.exp(s);
        }
        self.narrow_forward(mass, extra, scores, log)
    }

    /// `α_t` from `α_{t-1}`; result and `extra` as in [`start`](Self::start).
    fn forward(
        &self,
        from: Row<'_, T>,
        gap: &Gap<'_, T>,
        scores: &[T],
        mass: &mut [T],
        extra: &mut [T],
        log: &mut Compensated<T>,
    ) -> Result<T, InferError> {
        log.add(gap.reach.shift);
        let reach = exponentiate(scores, extra);
        if self.tiny <= from.floor * gap.reach.floor * reach.floor {
            combine(from.mass, gap.exp, mass);
            mass.iter_mut().zip(&*extra).for_each(|(m, &e)| *m *= e);
            let (scale, floor) = self.rescale(mass)?;
            log.add(reach.shift);
            log.add(scale.ln());
            return Ok(floor);
        }
        let radix = &self.radix;
        mass.fill(T::zero());
        extra.fill(T::zero());
        for (x, row) in from.wide(radix).zip(gap.wide(radix, self.labels)) {
            if x.is_zero() {
                continue;
            }
            for ((m, k), e) in mass.iter_mut().zip(extra.iter_mut()).zip(row) {
                Wide { m: *m, k: *k } = radix.add(Wide { m: *m, k: *k }, radix.mul(x, e));
            }
        }
        for ((m, k), &s) in mass.iter_mut().zip(extra.iter_mut()).zip(scores) {
            Wide { m: *m, k: *k } = radix.mul(Wide { m: *m, k: *k }, radix.exp(s));
        }
        self.narrow_forward(mass, extra, scores, log)
    }

    fn narrow_forward(
        &self,
        mass: &mut [T],
        extra: &mut [T],
        scores: &[T],
        log: &mut Compensated<T>,
    ) -> Result<T, InferError> {
        let (scale, floor) = self.narrow(mass, extra)?;
        log.add(scale.m.ln());
        log.add(scale.k * self.radix.log);
        if floor != T::zero() {
            self.weights(scores, extra);
        }
        Ok(floor)
    }

    /// `log Z` from the last row.
    fn finish(&self, positions: usize, last: Row<'_, T>, mut log: Compensated<T>) -> Result<T, InferError> {
        if positions > 0 {
            let total = last.wide(&self.radix).fold(Wide::zero(), |a, b| self.radix.add(a, b));
            log.add(total.m.ln());
            log.add(total.k * self.radix.log);
        }
        finite(log.value())
    }

    /// Divides a plain row by its largest entry; returns that and the floor.
    fn rescale(&self, mass: &mut [T]) -> Result<(T, T), InferError> {
        let (top, low) = extent(mass, T::zero());
        if top == T::zero() {
            return Err(InferError::ZeroProbability);
        }
        let factor = T::one() / top;
        mass.iter_mut().for_each(|m| *m *= factor);
        Ok((top, low * factor))
    }

    /// Divides a wide row by a number, so that it is plain with largest entry 1 if its range allows;
    /// returns the number and the floor.
    fn narrow(&self, m: &mut [T], k: &mut [T]) -> Result<(Wide<T>, T), InferError> {
        let each = || m.iter().zip(k.iter()).map(|(&m, &k)| Wide { m, k });
        let top = each().fold(Wide::zero(), |top, x| if x.exceeds(top) { x } else { top });
        if top.is_zero() {
            return Err(InferError::ZeroProbability);
        }
        let nonzero = each().filter(|x| !x.is_zero());
        let low = nonzero.fold(T::one(), |low, x| low.smaller(self.radix.ratio(x, top)));
        if self.tiny <= low {
            for (m, &k) in m.iter_mut().zip(k.iter()) {
                *m = self.radix.ratio(Wide { m: *m, k }, top);
            }
            return Ok((top, low));
        }
        k.iter_mut().for_each(|k| *k -= top.k);
        Ok((Wide { m: T::one(), k: top.k }, T::zero()))
    }

    /// `β_t` from `β_{t+1}` into `next`. Returns the floor of `weighted`, what `next` was divided by
    /// if that is plain, and the floor of `next`.
    fn backward(&self, beta: Row<'_, T>, step: Backward<'_, T>) -> Result<(T, T, T), InferError> {
        let (top, low) = extent(step.weights, T::zero());
        let floor = if top == T::zero() { top } else { low * beta.floor };
        if self.tiny <= floor * step.gap.reach.floor {
            let weights = beta.mass.iter().zip(step.weights);
            step.weighted.iter_mut().zip(weights).for_each(|(w, (&b, &e))| *w = b * e);
            combine(step.weighted, step.turned, step.next);
            let (scale, next_floor) = self.rescale(step.next)?;
            return Ok((floor, scale, next_floor));
        }
        let radix = &self.radix;
        let weighted = step.weighted.iter_mut().zip(step.weighted_k.iter_mut());
        for ((m, k), (b, &s)) in weighted.zip(beta.wide(radix).zip(step.scores)) {
            Wide { m: *m, k: *k } = radix.mul(b, radix.exp(s));
        }
        let next = step.next.iter_mut().zip(step.next_k.iter_mut());
        for ((m, k), row) in next.zip(step.gap.wide(radix, self.labels)) {
            let weighted = step.weighted.iter().zip(step.weighted_k.iter());
            let terms = weighted.zip(row).map(|((&m, &k), e)| radix.mul(Wide { m, k }, e));
            Wide { m: *m, k: *k } = terms.fold(Wide::zero(), |a, b| radix.add(a, b));
        }
        let (_, next_floor) = self.narrow(step.next, step.next_k)?;
        Ok((T::zero(), T::one(), next_floor))
    }

    /// `α_t β_t`, normalised, in the place of `α_t`.
    fn single(&self, mass: &mut [T], exponent: &[T], floor: T, beta: Row<'_, T>) {
        let radix = &self.radix;
        if self.tiny <= floor * beta.floor {
            let mut sum = T::zero();
            for (m, &b) in mass.iter_mut().zip(beta.mass) {
                *m *= b;
                sum += *m;
            }
            let factor = T::one() / sum;
            mass.iter_mut().for_each(|m| *m *= factor);
            return;
        }
        let alpha = Row { mass, exponent, floor };
        let total = alpha
            .wide(radix)
            .zip(beta.wide(radix))
            .fold(Wide::zero(), |sum, (a, b)| radix.add(sum, radix.mul(a, b)));
        let plain = floor != T::zero();
        for ((m, &k), b) in mass.iter_mut().zip(exponent).zip(beta.wide(radix)) {
            let a = if plain { radix.settle(*m, T::zero()) } else { Wide { m: *m, k } };
            *m = radix.ratio(radix.mul(a, b), total);
        }
    }

    /// `α_t(i) e^{A(i,j)} weighted(j)`, normalised. `beta · scale = Σ_j e^{A(i,j)} weighted(j)` if
    /// `weighted` is plain.
    fn pair(
        &self,
        alpha: Row<'_, T>,
        gap: &Gap<'_, T>,
        weighted: Row<'_, T>,
        beta: &[T],
        scale: T,
        out: &mut [T],
    ) {
        let labels = self.labels.max(1);
        if self.tiny <= alpha.floor * gap.reach.floor * weighted.floor {
            let sum = alpha.mass.iter().zip(beta).fold(T::zero(), |sum, (&a, &b)| sum + a * (b * scale));
            let factor = T::one() / sum;
            let rows = rows_mut(out, labels).zip(rows(gap.exp, labels));
            for ((out, row), &a) in rows.zip(alpha.mass) {
                let a = a * factor;
                for ((o, &e), &w) in out.iter_mut().zip(row).zip(weighted.mass) {
                    *o = a * e * w;
                }
            }
            return;
        }
        let radix = &self.radix;
        let mut total = Wide::zero();
        for (a, row) in alpha.wide(radix).zip(gap.wide(radix, labels)) {
            for (e, w) in row.zip(weighted.wide(radix)) {
                total = radix.add(total, radix.mul(radix.mul(a, e), w));
            }
        }
        let rows = rows_mut(out, labels).zip(gap.wide(radix, labels));
        for ((out, row), a) in rows.zip(alpha.wide(radix)) {
            for ((o, e), w) in out.iter_mut().zip(row).zip(weighted.wide(radix)) {
                *o = radix.ratio(radix.mul(radix.mul(a, e), w), total);
            }
        }
    }
}
