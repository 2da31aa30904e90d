//! A field over the columns of a table in an image: its factor graph, and a junction tree if it is narrow enough.
//!
//! [`FieldImage`] is its structure, [`FieldView`](super::FieldView) the structure with its numbers.

use super::field_view::FieldView;
use super::packed::{Texts, ascending, packed_len};
use super::section::Sections;
use super::{Scalar, Scales, Text, Weight, check_names, id, lookup, open_sections};
use crate::error::{ImageError, SectionFault};
use crate::infer::loopy::Dimensions;
use crate::log_add::LogAdd;
use crate::table::MAX_SCOPE;
use core::marker::PhantomData;

/// A checked image of a field.
///
/// ```
/// use gibbsite_core::image::FieldImage;
/// use gibbsite_core::error::ImageError;
/// assert_eq!(FieldImage::open(&[0; 64]).unwrap_err(), ImageError::NotAnImage);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FieldImage<'a> {
    pub(super) sections: Sections<'a>,
}

impl<'a> FieldImage<'a> {
    /// Checks an image as [`Image::open`](super::Image::open) does, sections in ascending order but for the scales, which come after the shape: after that the structure is that of a
    /// factor graph whose factor `v` is over variable `v` alone, for each variable, and all numbers are log-potentials. The
    /// junction tree is left to [`FieldView::plan`], which needs memory.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn open(words: &'a [u32]) -> Result<Self, ImageError> {
        let knows = |s| s <= id::STRINGS || (id::FIELD..=id::FIELD_LAST).contains(&s);
        let image = Self { sections: open_sections(words, knows)? };
        image.check_shape()?;
        image.check_scales()?;
        image.check_starts(id::SCOPE_STARTS, image.factors(), image.shape(2))?;
        image.sections.sized(id::SCOPES, Some(image.shape(2)))?;
        image.check_starts(id::TABLE_STARTS, image.factors(), image.tables_len())?;
        image.check_factors()?;
        image.check_numbers()?;
        image.check_texts()?;
        Ok(image)
    }

    // The checks one after the other, none inside another: together they would take more stack than any engine.

    #[inline(never)]
    fn check_shape(&self) -> Result<(), ImageError> {
        self.sections.sized(id::FIELD, Some(6))?;
        ok(id::FIELD, (1..=self.factors()).contains(&self.variables()))?;
        check_names(self.sections, self.attributes())?;
        let cards = self.sections.sized(id::CARDS, Some(self.variables()))?;
        ok(id::CARDS, cards.iter().all(|&c| c > 0))
    }

    /// A section of `count` starts and an end.
    #[inline(never)]
    fn check_starts(&self, section: u32, count: usize, end: usize) -> Result<(), ImageError> {
        let words = self.sections.sized(section, count.checked_add(1))?;
        ok(section, ascending(words) == Some(end as u32))
    }

    /// The scope and the size of each factor.
    #[inline(never)]
    fn check_factors(&self) -> Result<(), ImageError> {
        // Looked up once: a section is searched for.
        let (cards, scopes) = (self.cards(), self.sections.known(id::SCOPES));
        let starts = self.sections.known(id::SCOPE_STARTS);
        let table_starts = self.sections.known(id::TABLE_STARTS);
        for k in 0..starts.len().saturating_sub(1) {
            let scope = between(starts, k).and_then(|r| scopes.get(r)).unwrap_or(&[]);
            let mut size = Some(1usize);
            for (i, &v) in scope.iter().enumerate() {
                let card = cards.get(v as usize).copied().filter(|_| !scope.iter().take(i).any(|&u| u == v));
                ok(id::SCOPES, card.is_some())?;
                size = size.and_then(|n| n.checked_mul(card.unwrap_or(0) as usize));
            }
            let single = matches!(*scope, [v] if v as usize == k);
            ok(id::SCOPES, scope.len() <= MAX_SCOPE && (k >= cards.len() || single))?;
            ok(id::TABLE_STARTS, between(table_starts, k).map(|r| r.len()) == size)?;
        }
        Ok(())
    }

    /// All tables and weights.
    #[inline(never)]
    fn check_numbers(&self) -> Result<(), ImageError> {
        let (entries, weights, scalar) = (self.tables_len(), self.weights(), self.scalar());
        let tables = self.sections.sized(id::TABLES, Some(scalar.row_len(entries)))?;
        self.check_starts(id::WEIGHT_STARTS, self.attributes(), weights)?;
        let places = self.sections.sized(id::WEIGHT_PLACES, Some(weights))?;
        ok(id::WEIGHT_PLACES, places.iter().all(|&at| (at as usize) < entries))?;
        let weights = self.sections.sized(id::WEIGHTS, Some(packed_len(weights, scalar.packing())))?;
        if scalar == Scalar::F32 {
            ok(id::TABLES, f32::legal_transitions(tables))?;
            ok(id::WEIGHTS, f32::legal_states(weights))?;
        }
        Ok(())
    }

    /// What units are worth, and the table of sums.
    #[inline(never)]
    fn check_scales(&self) -> Result<(), ImageError> {
        if let Some(section) = self.sections.get(id::FIELD_SCALES) {
            let scalar = section.first().and_then(|&s| Scalar::from_word(s));
            let scales = section.get(1..).zip(scalar).and_then(|(s, scalar)| Scales::open(s, scalar));
            ok(id::FIELD_SCALES, scales.is_some())?;
        }
        if let Some(section) = self.sections.get(id::FIELD_LOG_ADD) {
            ok(id::FIELD_LOG_ADD, LogAdd::open(section).is_some())?;
        }
        Ok(())
    }

    #[inline(never)]
    fn check_texts(&self) -> Result<(), ImageError> {
        let labels = self.cards().iter().try_fold(0usize, |n, &c| n.checked_add(c as usize));
        for (section, count) in [(id::OUTPUTS, Some(self.variables())), (id::OUTPUT_LABELS, labels)] {
            if let Some(words) = self.sections.get(section) {
                ok(section, count.is_some_and(|count| Texts::open(words, count).is_some()))?;
            }
        }
        Ok(())
    }

    /// The variables of a factor.
    fn scope(&self, k: usize) -> &'a [u32] {
        let scopes = self.sections.known(id::SCOPES);
        between(self.sections.known(id::SCOPE_STARTS), k).and_then(|r| scopes.get(r)).unwrap_or(&[])
    }

    fn shape(&self, at: usize) -> usize {
        self.sections.known(id::FIELD).get(at).map_or(0, |&n| n as usize)
    }

    /// How many variables there are.
    pub fn variables(&self) -> usize {
        self.shape(0)
    }

    /// How many factors there are.
    pub fn factors(&self) -> usize {
        self.shape(1)
    }

    /// Entries of all tables: what [`FieldView::tables`] writes.
    pub fn tables_len(&self) -> usize {
        self.shape(3)
    }

    /// How many attributes there are.
    pub fn attributes(&self) -> usize {
        self.shape(4)
    }

    /// How many weights of attributes there are.
    pub fn weights(&self) -> usize {
        self.shape(5)
    }

    /// Arity of each variable.
    pub fn cards(&self) -> &'a [u32] {
        self.sections.known(id::CARDS)
    }

    /// The sizes of its graph, for the memory of engines.
    pub fn dimensions(&self) -> Dimensions {
        let cards = self.cards();
        let mut d = Dimensions {
            variables: self.variables(),
            factors: self.factors(),
            edges: self.shape(2),
            ..Dimensions::default()
        };
        for &card in cards {
            d.labels = d.labels.saturating_add(card as usize);
            d.arity = d.arity.max(card as usize);
        }
        for k in 0..d.factors {
            let scope = self.scope(k);
            let card = |v: &u32| cards.get(*v as usize).map_or(0, |&c| c as usize);
            let width = scope.iter().map(card).fold(0usize, usize::saturating_add);
            d.messages = d.messages.saturating_add(width);
            d.widest = d.widest.max(width);
            d.largest = d.largest.max(scope.iter().map(card).fold(1usize, usize::saturating_mul));
        }
        d
    }

    /// Bytes of flash.
    pub fn bytes(&self) -> usize {
        self.sections.words().len().saturating_mul(4)
    }

    /// The name of a variable, if names are stored.
    pub fn output(&self, variable: usize) -> Option<Text<'a>> {
        Texts::known(self.sections.get(id::OUTPUTS)?, self.variables())?.get(variable)
    }

    /// The name of a variable's label, if names are stored.
    pub fn label(&self, variable: usize, label: u32) -> Option<Text<'a>> {
        let cards = self.cards();
        let total = cards.iter().fold(0usize, |n, &c| n.saturating_add(c as usize));
        let before = cards.get(..variable)?.iter().fold(0usize, |n, &c| n.saturating_add(c as usize));
        let at =
            before.checked_add(label as usize).filter(|_| cards.get(variable).is_some_and(|&c| label < c))?;
        Texts::known(self.sections.get(id::OUTPUT_LABELS)?, total)?.get(at)
    }

    /// The number of an attribute: as [`Image::attribute`](super::Image::attribute).
    pub fn attribute(&self, name: &[u8]) -> Option<u32> {
        let strings = self.sections.get(id::STRINGS).and_then(|s| Texts::known(s, self.attributes()));
        lookup::find(self.sections.get(id::ATTRIBUTES)?, strings, name)
    }

    /// Whether the image has a junction tree, for exact answers whatever the cycles.
    pub fn has_plan(&self) -> bool {
        self.sections.get(id::PLAN).is_some()
    }

    /// What its numbers are.
    pub fn scalar(&self) -> Scalar {
        let scales = self.sections.get(id::FIELD_SCALES);
        scales.and_then(|s| Scalar::from_word(*s.first()?)).unwrap_or(Scalar::F32)
    }

    /// What its fixed-point numbers are worth; [`Scales::transition_error`] is that of a constant.
    pub fn scales(&self) -> Scales {
        let section = self.sections.get(id::FIELD_SCALES).and_then(|s| s.split_first());
        section.and_then(|(_, s)| Scales::open(s, self.scalar())).unwrap_or(Scales::of_f32())
    }

    /// The field with its numbers, to write tables for samples.
    ///
    /// # Errors
    /// [`ImageError::Scalar`] if its numbers are of another kind.
    pub fn field<W: Weight>(&self) -> Result<FieldView<'a, W>, ImageError> {
        if W::SCALAR == self.scalar() {
            Ok(FieldView { image: *self, scalar: PhantomData })
        } else {
            Err(ImageError::Scalar(self.scalar()))
        }
    }
}

fn ok(section: u32, good: bool) -> Result<(), ImageError> {
    if good { Ok(()) } else { Err(ImageError::Section { section, why: SectionFault::Value }) }
}

/// Where something lies whose starts these are.
pub(super) fn between(starts: &[u32], i: usize) -> Option<core::ops::Range<usize>> {
    let (&from, &to) = (starts.get(i)?, starts.get(i.checked_add(1)?)?);
    Some(from as usize..to as usize)
}
