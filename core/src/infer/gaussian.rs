//! Gaussian CRFs on a device: `y | x ~ N(b - Λ⁻¹Θᵀx, Λ⁻¹)` with sparse Λ and Θ (SGCRF eq. 1, with the density of `SEEDS.md`).
//!
//! **Given**: `PΛPᵀ = L D Lᵀ` (`L` with a unit diagonal, sparse; `D` positive) for an order `P` of the outputs that the desk has chosen to keep `L` sparse, Λ itself where
//! `L` has entries, and Θ by columns. **Found**: the mean by two triangular solves ([`Gaussian::mean`], one pass over `L` each way); the mean and the variance of what is
//! left when some outputs are known ([`Gaussian::given`]): `N(μ_u - Λ_uu⁻¹Λ_uo(y_o - μ_o), Λ_uu⁻¹)`.
//!
//! The factor of `Λ_uu` has entries only where `L` has some, because eliminating fewer outputs in the same order joins fewer pairs. So its memory is known beforehand: known rows and
//! columns become those of the unit matrix, and the factorisation runs in the pattern of `L`. Variances are the diagonal of `Λ_uu⁻¹`, by the equations of Takahashi, Fagan and Chen
//! (1973) in the same pattern: no column of the inverse is ever formed. Nothing iterates; there is no stopping rule.

use crate::arena::Arena;
use crate::error::{InferError, need};
use crate::image::ascending;
use crate::math::Real;
use core::marker::PhantomData;
use core::ops::Range;

/// Where the numbers of a Gaussian CRF are: an image, or [`Plain`] slices. "Place" counts outputs in the order of elimination, "entry" the entries of `L` below the
/// diagonal (column after column, rows ascending) or of Θ. Beyond the end everything is 0.
pub trait Terms<T>: Copy {
    /// How many inputs there are.
    fn inputs(&self) -> usize;
    /// How many outputs there are.
    fn outputs(&self) -> usize;
    /// How many entries `L` has below its diagonal.
    fn entries(&self) -> usize;
    /// The output at a place.
    fn output(&self, place: usize) -> usize;
    /// The entries of a column of `L`.
    fn column(&self, place: usize) -> Range<usize>;
    /// The row of an entry, a place.
    fn row(&self, entry: usize) -> usize;
    /// An entry of `L`.
    fn factor(&self, entry: usize) -> T;
    /// `D` at a place.
    fn pivot(&self, place: usize) -> T;
    /// Λ where `L` has an entry.
    fn coupling(&self, entry: usize) -> T;
    /// The diagonal of Λ at a place.
    fn diagonal(&self, place: usize) -> T;
    /// The entries of Θ of the output at a place.
    fn weights(&self, place: usize) -> Range<usize>;
    /// The input of an entry of Θ.
    fn input(&self, entry: usize) -> usize;
    /// An entry of Θ.
    fn weight(&self, entry: usize) -> T;
    /// What is added to the mean of an output.
    fn intercept(&self, output: usize) -> T;
    /// The standard deviation of an output when nothing is known but the inputs.
    fn deviation(&self, output: usize) -> T;
}

/// Scalars that [`Gaussian::mean`] and [`Given::revise`] work on.
pub const fn mean_len(outputs: usize) -> usize {
    outputs
}

/// Scalars that [`Gaussian::given`] keeps the factor of what is left in.
pub const fn given_len(outputs: usize, entries: usize) -> usize {
    entries.saturating_add(outputs)
}

/// Scalars that [`Given::deviations`] works on.
pub const fn deviations_len(outputs: usize, entries: usize) -> usize {
    entries.saturating_add(outputs)
}

/// A Gaussian CRF that can be asked.
///
/// ```
/// use gibbsite_core::infer::gaussian::{Gaussian, Plain, given_len, mean_len, deviations_len};
/// // Λ = [2 1; 1 2] = L D Lᵀ with L = [1 0; ½ 1], D = (2, 1½); Θ = (-3, 0).
/// let model = Gaussian::new(Plain {
///     inputs: 1,
///     order: &[0, 1],
///     starts: &[0, 1, 1],
///     rows: &[1],
///     factor: &[0.5f32],
///     pivots: &[2.0, 1.5],
///     couplings: &[1.0],
///     diagonal: &[2.0, 2.0],
///     theta_starts: &[0, 1, 1],
///     theta_inputs: &[0],
///     theta: &[-3.0],
///     intercept: &[0.0, 0.0],
///     deviations: &[0.816_496_6, 0.816_496_6],
/// })?;
/// let (mut mean, mut memory) = ([0.0; 2], [0.0; mean_len(2)]);
/// model.mean(&[1.0], &mut mean, &mut memory)?;
/// assert_eq!(mean, [2.0, -1.0]);
/// // Now the first output turns out to be 3: the second is revised, and more certain.
/// let mut kept = [0.0; given_len(2, 1)];
/// let given = model.given(&[true, false], &mut kept)?;
/// given.revise(&[3.0, 0.0], &mut mean, &mut memory)?;
/// assert_eq!(mean, [3.0, -1.5]);
/// let (mut deviations, mut memory) = ([0.0; 2], [0.0; deviations_len(2, 1)]);
/// given.deviations(&mut deviations, &mut memory)?;
/// assert_eq!(deviations, [0.0, 0.5f32.sqrt()]);
/// # Ok::<(), gibbsite_core::error::InferError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Gaussian<T, P> {
    terms: P,
    scalar: PhantomData<T>,
}

impl<'a, T: Real> Gaussian<T, Plain<'a, T>> {
    /// Of plain slices.
    ///
    /// # Errors
    /// [`InferError::Shape`] if they do not fit together, or the pattern is not that of a factor; [`InferError::Pivot`] for a `D` that is not positive.
    pub fn new(terms: Plain<'a, T>) -> Result<Self, InferError> {
        if !terms.fits() || !is_pattern(terms.outputs(), |k| terms.column(k), |e| terms.row(e)) {
            return Err(InferError::Shape);
        }
        match terms.pivots.iter().position(|d| !(*d > T::zero() && *d < T::INFINITY)) {
            Some(place) => Err(InferError::Pivot(place as u32)),
            None => Ok(Self::of(terms)),
        }
    }
}

impl<T: Real, P: Terms<T>> Gaussian<T, P> {
    /// Of terms that were checked.
    pub(crate) fn of(terms: P) -> Self {
        Self { terms, scalar: PhantomData }
    }

    /// Where the numbers are.
    pub fn terms(&self) -> &P {
        &self.terms
    }

    /// The mean `b - Λ⁻¹Θᵀx` of each output. Memory: [`mean_len`].
    ///
    /// # Errors
    /// [`InferError::Shape`], [`InferError::Memory`]; [`InferError::BadValue`] for inputs, or means, that are no finite numbers. `mean` is untouched then.
    pub fn mean(&self, x: &[T], mean: &mut [T], memory: &mut [T]) -> Result<(), InferError> {
        let terms = &self.terms;
        let p = terms.outputs();
        if x.len() != terms.inputs() || mean.len() != p {
            return Err(InferError::Shape);
        }
        let z = Arena::new(memory, mean_len(p))?.take(p)?;
        finite(x)?;
        for (place, z) in z.iter_mut().enumerate() {
            let mut sum = T::zero();
            for e in terms.weights(place) {
                sum += terms.weight(e) * at(x, terms.input(e));
            }
            *z = -sum;
        }
        solve(terms, |e| terms.factor(e), |k| terms.pivot(k), z);
        for (place, z) in z.iter_mut().enumerate() {
            *z += terms.intercept(terms.output(place));
        }
        finite(z)?;
        for (place, &z) in z.iter().enumerate() {
            put(mean, terms.output(place), z);
        }
        Ok(())
    }

    /// The standard deviation of each output when nothing is known but the inputs; it is the same for all of them.
    ///
    /// # Errors
    /// [`InferError::Shape`].
    pub fn deviations(&self, out: &mut [T]) -> Result<(), InferError> {
        if out.len() != self.terms.outputs() {
            return Err(InferError::Shape);
        }
        for (output, o) in out.iter_mut().enumerate() {
            *o = self.terms.deviation(output);
        }
        Ok(())
    }

    /// What is left when the outputs with `known` are known: factorises their share of Λ. Memory: [`given_len`].
    ///
    /// # Errors
    /// [`InferError::Shape`], [`InferError::Memory`]; [`InferError::Pivot`] if rounding leaves nothing positive of an output's precision.
    pub fn given<'m>(
        &'m self,
        known: &'m [bool],
        memory: &'m mut [T],
    ) -> Result<Given<'m, T, P>, InferError> {
        let terms = &self.terms;
        let (p, entries) = (terms.outputs(), terms.entries());
        if known.len() != p {
            return Err(InferError::Shape);
        }
        let mut arena = Arena::new(memory, given_len(p, entries))?;
        let (factor, pivots) = (arena.take(entries)?, arena.take(p)?);
        restrict(terms, known, factor, pivots);
        factorise(terms, factor, pivots)?;
        Ok(Given { terms, known, factor, pivots })
    }
}

/// What is left to predict when some outputs are known.
#[derive(Debug)]
pub struct Given<'m, T, P> {
    // Borrowed: the slices of a model take more than 100 bytes of stack.
    terms: &'m P,
    known: &'m [bool],
    factor: &'m [T],
    pivots: &'m [T],
}

impl<T: Real, P: Terms<T>> Given<'_, T, P> {
    /// Puts the known outputs of `y` into the means and moves the others accordingly. Memory: [`mean_len`].
    ///
    /// # Errors
    /// [`InferError::Shape`], [`InferError::Memory`]; [`InferError::BadValue`] for a known output or a mean that is no finite number. `mean` is untouched then.
    pub fn revise(&self, y: &[T], mean: &mut [T], memory: &mut [T]) -> Result<(), InferError> {
        let Self { terms, known, factor, pivots } = *self;
        let p = terms.outputs();
        if y.len() != p || mean.len() != p {
            return Err(InferError::Shape);
        }
        let z = Arena::new(memory, mean_len(p))?.take(p)?;
        z.fill(T::zero());
        let surprise = |output: usize| at(y, output) - at(mean, output);
        for place in 0..p {
            let own = terms.output(place);
            let gone = flag(known, own);
            if gone && !is_finite(surprise(own)) {
                return Err(InferError::BadValue);
            }
            for e in terms.column(place) {
                let row = terms.row(e);
                let other = terms.output(row);
                let product = match (gone, flag(known, other)) {
                    (true, false) => (row, surprise(own)),
                    (false, true) => (place, surprise(other)),
                    _ => continue,
                };
                if let Some(z) = z.get_mut(product.0) {
                    *z += terms.coupling(e) * product.1;
                }
            }
        }
        solve(terms, |e| at(factor, e), |k| at(pivots, k), z);
        finite(z)?;
        for (place, &z) in z.iter().enumerate() {
            let output = terms.output(place);
            let revised = if flag(known, output) { at(y, output) } else { at(mean, output) - z };
            put(mean, output, revised);
        }
        Ok(())
    }

    /// The standard deviation of each output; 0 for those that are known. Memory: [`deviations_len`].
    ///
    /// # Errors
    /// [`InferError::Shape`], [`InferError::Memory`].
    pub fn deviations(&self, out: &mut [T], memory: &mut [T]) -> Result<(), InferError> {
        let Self { terms, known, factor, pivots } = *self;
        let (p, entries) = (terms.outputs(), terms.entries());
        if out.len() != p {
            return Err(InferError::Shape);
        }
        let mut arena = Arena::new(memory, deviations_len(p, entries))?;
        let (inverse, own) = (arena.take(entries)?, arena.take(p)?);
        for place in (0..p).rev() {
            let column = terms.column(place);
            for e in column.clone() {
                put(inverse, e, T::zero());
            }
            // -Σ_k L_kj Z_ki for i, k below j; Z is symmetric, and has all pairs of a column's rows in its pattern.
            for e in column.clone() {
                let (i, l) = (terms.row(e), at(factor, e));
                sub(inverse, e, l * at(own, i));
                for (later, place) in matches(terms, e.wrapping_add(1)..column.end, i) {
                    let z = at(inverse, place);
                    sub(inverse, e, at(factor, later) * z);
                    sub(inverse, later, l * z);
                }
            }
            let mut variance = T::one() / at(pivots, place);
            for e in column {
                variance -= at(factor, e) * at(inverse, e);
            }
            put(own, place, variance);
        }
        for (place, &variance) in own.iter().enumerate() {
            let output = terms.output(place);
            let left = if flag(known, output) { T::zero() } else { variance.larger(T::zero()).sqrt() };
            put(out, output, left);
        }
        Ok(())
    }
}

/// The slices of a Gaussian CRF; what they are says [`Terms`].
#[derive(Clone, Copy, Debug)]
pub struct Plain<'a, T> {
    /// How many inputs there are.
    pub inputs: usize,
    /// The output at each place.
    pub order: &'a [u32],
    /// Where the entries of each column of `L` begin, and the last ends.
    pub starts: &'a [u32],
    /// Their rows.
    pub rows: &'a [u32],
    /// `L` below its diagonal.
    pub factor: &'a [T],
    /// `D`.
    pub pivots: &'a [T],
    /// Λ where `L` has entries.
    pub couplings: &'a [T],
    /// The diagonal of Λ, by place.
    pub diagonal: &'a [T],
    /// Where the entries of Θ of each place begin, and the last end.
    pub theta_starts: &'a [u32],
    /// Their inputs.
    pub theta_inputs: &'a [u32],
    /// Their values.
    pub theta: &'a [T],
    /// What is added to the mean of each output.
    pub intercept: &'a [T],
    /// The standard deviation of each output.
    pub deviations: &'a [T],
}

impl<T: Real> Plain<'_, T> {
    /// Whether lengths fit together, inputs exist, and every output has a place.
    fn fits(&self) -> bool {
        let (p, entries, weights) = (self.order.len(), self.rows.len(), self.theta.len());
        let by_output = [self.pivots, self.diagonal, self.intercept, self.deviations];
        let ends = |starts: &[u32], end: usize| {
            starts.len() == p.wrapping_add(1) && ascending(starts).is_some_and(|last| last as usize == end)
        };
        by_output.iter().all(|v| v.len() == p)
            && self.factor.len() == entries
            && self.couplings.len() == entries
            && self.theta_inputs.len() == weights
            && ends(self.starts, entries)
            && ends(self.theta_starts, weights)
            && self.theta_inputs.iter().all(|&i| (i as usize) < self.inputs)
            && (0..p).all(|output| self.order.contains(&(output as u32)))
    }
}

impl<T: Real> Terms<T> for Plain<'_, T> {
    fn inputs(&self) -> usize {
        self.inputs
    }
    fn outputs(&self) -> usize {
        self.order.len()
    }
    fn entries(&self) -> usize {
        self.rows.len()
    }
    fn output(&self, place: usize) -> usize {
        word(self.order, place)
    }
    fn column(&self, place: usize) -> Range<usize> {
        word(self.starts, place)..word(self.starts, place.wrapping_add(1))
    }
    fn row(&self, entry: usize) -> usize {
        word(self.rows, entry)
    }
    fn factor(&self, entry: usize) -> T {
        at(self.factor, entry)
    }
    fn pivot(&self, place: usize) -> T {
        at(self.pivots, place)
    }
    fn coupling(&self, entry: usize) -> T {
        at(self.couplings, entry)
    }
    fn diagonal(&self, place: usize) -> T {
        at(self.diagonal, place)
    }
    fn weights(&self, place: usize) -> Range<usize> {
        word(self.theta_starts, place)..word(self.theta_starts, place.wrapping_add(1))
    }
    fn input(&self, entry: usize) -> usize {
        word(self.theta_inputs, entry)
    }
    fn weight(&self, entry: usize) -> T {
        at(self.theta, entry)
    }
    fn intercept(&self, output: usize) -> T {
        at(self.intercept, output)
    }
    fn deviation(&self, output: usize) -> T {
        at(self.deviations, output)
    }
}

/// Λ with the rows and columns of known outputs replaced by those of the identity.
#[inline(never)]
fn restrict<T: Real>(terms: &impl Terms<T>, known: &[bool], factor: &mut [T], pivots: &mut [T]) {
    for (place, d) in pivots.iter_mut().enumerate() {
        let gone = flag(known, terms.output(place));
        *d = if gone { T::one() } else { terms.diagonal(place) };
        for e in terms.column(place) {
            let free = !gone && !flag(known, terms.output(terms.row(e)));
            put(factor, e, if free { terms.coupling(e) } else { T::zero() });
        }
    }
}

/// `PΛPᵀ = L D Lᵀ` in the pattern of `terms`: `factor` holds Λ below the diagonal, `pivots` its diagonal, and both what was found afterwards. Column after column, each taken off those that
/// it meets.
///
/// # Errors
/// [`InferError::Memory`] for slices that are too short, [`InferError::Pivot`] where a pivot is not positive.
pub fn factorise<T: Real>(
    terms: &impl Terms<T>,
    factor: &mut [T],
    pivots: &mut [T],
) -> Result<(), InferError> {
    need(terms.entries(), factor.len())?;
    need(terms.outputs(), pivots.len())?;
    for place in 0..terms.outputs() {
        let pivot = at(pivots, place);
        if !(pivot > T::zero() && pivot < T::INFINITY) {
            return Err(InferError::Pivot(place as u32));
        }
        let column = terms.column(place);
        for e in column.clone() {
            let (i, a) = (terms.row(e), at(factor, e));
            let l = a / pivot;
            sub(pivots, i, l * a);
            for (later, target) in matches(terms, e.wrapping_add(1)..column.end, i) {
                // What is later in this column is not divided yet.
                let other = at(factor, later);
                sub(factor, target, l * other);
            }
            put(factor, e, l);
        }
    }
    Ok(())
}

/// Whether the pattern is that of a factor: rows ascend below the diagonal, and what a column has below its first row, the column of that row has too (so that every pair
/// of a column's rows has an entry). From the last column, so that no column is gone through that was not found good.
pub(crate) fn is_pattern(
    outputs: usize,
    column_of: impl Fn(usize) -> Range<usize>,
    row: impl Fn(usize) -> usize,
) -> bool {
    for place in (0..outputs).rev() {
        let column = column_of(place);
        let mut last = place;
        for e in column.clone() {
            let row = row(e);
            if row <= last || row >= outputs {
                return false;
            }
            last = row;
        }
        let Some(below) = column.start.checked_add(1).filter(|&b| b < column.end) else { continue };
        let mut other = column_of(row(column.start));
        if !(below..column.end).all(|e| other.any(|o| row(o) == row(e))) {
            return false;
        }
    }
    true
}

/// For `entries` of one column, which column `column` has too: each with its counterpart there.
fn matches<T>(
    terms: &impl Terms<T>,
    entries: Range<usize>,
    column: usize,
) -> impl Iterator<Item = (usize, usize)> {
    let mut other = terms.column(column);
    entries.filter_map(move |e| {
        let row = terms.row(e);
        other.find(|&o| terms.row(o) == row).map(|o| (e, o))
    })
}

/// `L D Lᵀ z = z`.
fn solve<T: Real>(
    terms: &impl Terms<T>,
    factor: impl Fn(usize) -> T,
    pivot: impl Fn(usize) -> T,
    z: &mut [T],
) {
    let p = terms.outputs();
    for place in 0..p {
        let own = at(z, place);
        for e in terms.column(place) {
            sub(z, terms.row(e), factor(e) * own);
        }
    }
    for place in (0..p).rev() {
        let mut own = at(z, place) / pivot(place);
        for e in terms.column(place) {
            own -= factor(e) * at(z, terms.row(e));
        }
        put(z, place, own);
    }
}

#[inline(always)]
fn at<T: Real>(values: &[T], i: usize) -> T {
    values.get(i).copied().unwrap_or(T::zero())
}

#[inline(always)]
fn put<T>(values: &mut [T], i: usize, value: T) {
    if let Some(place) = values.get_mut(i) {
        *place = value;
    }
}

#[inline(always)]
fn sub<T: Real>(values: &mut [T], i: usize, value: T) {
    if let Some(place) = values.get_mut(i) {
        *place -= value;
    }
}

#[inline(always)]
fn word(words: &[u32], i: usize) -> usize {
    words.get(i).map_or(0, |&w| w as usize)
}

#[inline(always)]
fn flag(known: &[bool], i: usize) -> bool {
    known.get(i).copied().unwrap_or(false)
}

fn is_finite<T: Real>(value: T) -> bool {
    value.abs() < T::INFINITY
}

fn finite<T: Real>(values: &[T]) -> Result<(), InferError> {
    if values.iter().all(|&v| is_finite(v)) { Ok(()) } else { Err(InferError::BadValue) }
}
