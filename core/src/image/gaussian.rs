//! A Gaussian CRF in an image: sparse `L D Lᵀ` of Λ, Λ, Θ, in single precision.

use super::packed::{Text, Texts, ascending, packed_len, short};
use super::section::Sections;
use super::{id, open_sections};
use crate::error::{ImageError, SectionFault};
use crate::infer::gaussian::{Gaussian, Terms, deviations_len, given_len, is_pattern, mean_len};
use core::ops::Range;

/// Inputs, and outputs, that an image can have: they are numbered in 16 bits.
pub const MAX_REALS: usize = 65_536;

/// Numbers in memory for a mean ([`mean_len`] and the answer), and for one that is revised by outputs that are known, with deviations ([`given_len`] and
/// [`deviations_len`] too).
pub const fn gaussian_floats(outputs: usize, entries: usize) -> [usize; 2] {
    let mean = mean_len(outputs).saturating_add(outputs);
    let given = given_len(outputs, entries).saturating_add(deviations_len(outputs, entries));
    [mean, given.saturating_add(mean).saturating_add(outputs)]
}

/// The same in bytes; a byte more for each output says whether it is known.
pub const fn gaussian_memory(outputs: usize, entries: usize) -> [usize; 2] {
    let [mean, revised] = gaussian_floats(outputs, entries);
    [mean.saturating_mul(4), revised.saturating_mul(4).saturating_add(outputs)]
}

/// A checked image of a Gaussian CRF. It has a type of its own, so that firmware with a chain does not carry the checks.
///
/// ```
/// use gibbsite_core::error::ImageError;
/// use gibbsite_core::image::GaussianImage;
/// assert_eq!(GaussianImage::open(&[0; 64]).unwrap_err(), ImageError::NotAnImage);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct GaussianImage<'a> {
    sections: Sections<'a>,
}

impl<'a> GaussianImage<'a> {
    /// Checks an image as [`Image::open`](super::Image::open) does, sections in ascending order, and last that the factor has the pattern of one.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn open(words: &'a [u32]) -> Result<Self, ImageError> {
        let sections = open_sections(words, |s| (id::GAUSSIAN..=id::GAUSSIAN_LAST).contains(&s))?;
        check(sections)?;
        Ok(Self { sections })
    }

    /// Bytes of flash.
    pub fn bytes(&self) -> usize {
        self.sections.words().len().saturating_mul(4)
    }

    /// Its parts.
    pub fn view(&self) -> GaussianView<'a> {
        GaussianView::new(self.sections)
    }
}

/// The parts of a Gaussian CRF in an image. [`model`](Self::model) predicts.
#[derive(Clone, Copy, Debug)]
pub struct GaussianView<'a> {
    inputs: usize,
    outputs: usize,
    order: &'a [u32],
    starts: &'a [u32],
    rows: &'a [u32],
    factor: &'a [u32],
    pivots: &'a [u32],
    couplings: &'a [u32],
    diagonal: &'a [u32],
    input_starts: &'a [u32],
    input_of: &'a [u32],
    weights: &'a [u32],
    intercept: &'a [u32],
    deviations: &'a [u32],
    sections: Sections<'a>,
}

/// The sections of an image in the order of their numbers; each is as long as the counts say.
#[inline(never)]
fn check(sections: Sections<'_>) -> Result<(), ImageError> {
    let fault = |section, why| ImageError::Section { section, why };
    let ok = |section, good: bool| if good { Ok(()) } else { Err(fault(section, SectionFault::Value)) };
    let &[inputs, outputs, entries, weights, mean, revised] = sections.sized(id::GAUSSIAN, Some(6))? else {
        return Err(fault(id::GAUSSIAN, SectionFault::Length));
    };
    let (n, p, entries, weights) = (inputs as usize, outputs as usize, entries as usize, weights as usize);
    let told = [mean as usize, revised as usize];
    let sane = n <= MAX_REALS && (1..=MAX_REALS).contains(&p) && told == gaussian_memory(p, entries);
    ok(id::GAUSSIAN, sane)?;
    // Each of two tables undoes the other: then both are permutations.
    let places = sections.sized(id::PLACES, Some(packed_len(p, 1).saturating_mul(2)))?;
    let (order, place) = places.split_at_checked(packed_len(p, 1)).unwrap_or((&[], &[]));
    let back = |output: usize| {
        let at = usize::from(short(place, output));
        at < p && usize::from(short(order, at)) == output
    };
    ok(id::PLACES, (0..p).all(back))?;
    let starts = sections.sized(id::FACTOR_STARTS, Some(p + 1))?;
    ok(id::FACTOR_STARTS, ascending(starts) == Some(entries as u32))?;
    sections.sized(id::FACTOR_ROWS, Some(packed_len(entries, 1)))?;
    let both = entries.checked_add(p);
    for section in [id::FACTOR, id::PRECISION] {
        let (below, diagonal) =
            sections.sized(section, both)?.split_at_checked(entries).unwrap_or((&[], &[]));
        ok(section, f32s_are(below, f32::is_finite))?;
        ok(section, f32s_are(diagonal, |d| d > 0.0 && d.is_finite()))?;
    }
    let starts = sections.sized(id::INPUT_STARTS, Some(p + 1))?;
    ok(id::INPUT_STARTS, ascending(starts) == Some(weights as u32))?;
    let input_of = sections.sized(id::INPUTS, Some(packed_len(weights, 1)))?;
    ok(id::INPUTS, (0..weights).all(|e| usize::from(short(input_of, e)) < n))?;
    ok(id::INPUT_WEIGHTS, f32s_are(sections.sized(id::INPUT_WEIGHTS, Some(weights))?, f32::is_finite))?;
    let (intercept, deviations) =
        sections.sized(id::MOMENTS, Some(2 * p))?.split_at_checked(p).unwrap_or((&[], &[]));
    ok(id::MOMENTS, f32s_are(intercept, f32::is_finite))?;
    ok(id::MOMENTS, f32s_are(deviations, |d| d >= 0.0 && d.is_finite()))?;
    for (section, count) in [(id::OUTPUT_NAMES, p), (id::INPUT_NAMES, n)] {
        if let Some(names) = sections.get(section) {
            ok(section, Texts::open(names, count).is_some())?;
        }
    }
    let (starts, rows) = (sections.known(id::FACTOR_STARTS), sections.known(id::FACTOR_ROWS));
    let row = |e| usize::from(short(rows, e));
    ok(id::FACTOR_ROWS, is_pattern(p, |place| between(starts, place), row))
}

impl<'a> GaussianView<'a> {
    /// Of sections that are checked, at least for their lengths.
    #[inline(never)]
    fn new(sections: Sections<'a>) -> Self {
        let shape = sections.known(id::GAUSSIAN);
        let count = |at: usize| shape.get(at).map_or(0, |&n| n as usize);
        let (inputs, outputs, entries) = (count(0), count(1), count(2));
        let cut = |section, at| sections.known(section).split_at_checked(at).unwrap_or((&[], &[]));
        let (factor, pivots) = cut(id::FACTOR, entries);
        let (couplings, diagonal) = cut(id::PRECISION, entries);
        let (intercept, deviations) = cut(id::MOMENTS, outputs);
        Self {
            inputs,
            outputs,
            order: sections.known(id::PLACES),
            starts: sections.known(id::FACTOR_STARTS),
            rows: sections.known(id::FACTOR_ROWS),
            factor,
            pivots,
            couplings,
            diagonal,
            input_starts: sections.known(id::INPUT_STARTS),
            input_of: sections.known(id::INPUTS),
            weights: sections.known(id::INPUT_WEIGHTS),
            intercept,
            deviations,
            sections,
        }
    }

    /// To predict with: means, deviations, and both given outputs that are known.
    pub fn model(self) -> Gaussian<f32, Self> {
        Gaussian::of(self)
    }

    /// How many weights of inputs there are.
    pub fn weight_count(&self) -> usize {
        self.weights.len()
    }

    /// The name of an output, if names are stored.
    pub fn output_name(&self, output: usize) -> Option<Text<'a>> {
        Texts::known(self.sections.get(id::OUTPUT_NAMES)?, self.outputs)?.get(output)
    }

    /// The name of an input, if names are stored.
    pub fn input_name(&self, input: usize) -> Option<Text<'a>> {
        Texts::known(self.sections.get(id::INPUT_NAMES)?, self.inputs)?.get(input)
    }
}

#[inline(always)]
fn real(words: &[u32], at: usize) -> f32 {
    f32::from_bits(words.get(at).copied().unwrap_or(0))
}

#[inline(always)]
fn between(starts: &[u32], place: usize) -> Range<usize> {
    match (starts.get(place), starts.get(place.wrapping_add(1))) {
        (Some(&from), Some(&to)) => from as usize..to as usize,
        _ => 0..0,
    }
}

impl Terms<f32> for GaussianView<'_> {
    fn inputs(&self) -> usize {
        self.inputs
    }
    fn outputs(&self) -> usize {
        self.outputs
    }
    fn entries(&self) -> usize {
        self.factor.len()
    }
    fn output(&self, place: usize) -> usize {
        usize::from(short(self.order, place))
    }
    fn column(&self, place: usize) -> Range<usize> {
        between(self.starts, place)
    }
    fn row(&self, entry: usize) -> usize {
        usize::from(short(self.rows, entry))
    }
    fn factor(&self, entry: usize) -> f32 {
        real(self.factor, entry)
    }
    fn pivot(&self, place: usize) -> f32 {
        real(self.pivots, place)
    }
    fn coupling(&self, entry: usize) -> f32 {
        real(self.couplings, entry)
    }
    fn diagonal(&self, place: usize) -> f32 {
        real(self.diagonal, place)
    }
    fn weights(&self, place: usize) -> Range<usize> {
        between(self.input_starts, place)
    }
    fn input(&self, entry: usize) -> usize {
        usize::from(short(self.input_of, entry))
    }
    fn weight(&self, entry: usize) -> f32 {
        real(self.weights, entry)
    }
    fn intercept(&self, output: usize) -> f32 {
        real(self.intercept, output)
    }
    fn deviation(&self, output: usize) -> f32 {
        real(self.deviations, output)
    }
}

/// Whether all words are bits of numbers that are `good`.
fn f32s_are(words: &[u32], good: impl Fn(f32) -> bool) -> bool {
    words.iter().all(|&w| good(f32::from_bits(w)))
}
