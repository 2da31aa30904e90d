//! A field over the columns of a table in an image: its factor graph, and a junction tree if it is narrow enough.
//!
//! The structure stays in flash; the tables are written to memory for each sample, because attributes move them:
//! `log ψ_k(y) = constant_k(y) + Σ_(a, value) value · w_{a,k}(y)`. Any engine for factor graphs then runs on them.

use super::packed::{Texts, ascending};
use super::section::Sections;
use super::{Text, Weight, check_names, id, lookup, open_sections};
use crate::error::{GraphError, ImageError, InferError, SectionFault, need};
use crate::graph::FactorGraph;
use crate::infer::loopy::Dimensions;
use crate::infer::plan::Plan;
use crate::table::MAX_SCOPE;

/// A checked image of a field.
///
/// ```
/// use gibbsite_core::image::FieldImage;
/// use gibbsite_core::error::ImageError;
/// assert_eq!(FieldImage::open(&[0; 64]).unwrap_err(), ImageError::NotAnImage);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FieldImage<'a> {
    sections: Sections<'a>,
}

impl<'a> FieldImage<'a> {
    /// Checks an image as [`Image::open`](super::Image::open) does, sections in ascending order: after that the structure is that of a
    /// factor graph whose factor `v` is over variable `v` alone, for each variable, and all numbers are log-potentials. The
    /// junction tree is left to [`plan`](Self::plan), which needs memory.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn open(words: &'a [u32]) -> Result<Self, ImageError> {
        let knows = |s| s <= id::STRINGS || (id::FIELD..=id::FIELD_LAST).contains(&s);
        let image = Self { sections: open_sections(words, knows)? };
        image.check_shape()?;
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
        let (entries, weights) = (self.tables_len(), self.weights());
        ok(id::TABLES, f32::legal_transitions(self.sections.sized(id::TABLES, Some(entries))?))?;
        self.check_starts(id::WEIGHT_STARTS, self.attributes(), weights)?;
        let places = self.sections.sized(id::WEIGHT_PLACES, Some(weights))?;
        ok(id::WEIGHT_PLACES, places.iter().all(|&at| (at as usize) < entries))?;
        ok(id::WEIGHTS, f32::legal_states(self.sections.sized(id::WEIGHTS, Some(weights))?))
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

    /// Entries of all tables: what [`tables`](Self::tables) writes.
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

    /// Writes the tables of a sample with these attributes and values. An attribute may stand there several times.
    ///
    /// # Errors
    /// [`InferError::Memory`] if `out` is shorter than [`tables_len`](Self::tables_len), [`InferError::Attribute`],
    /// [`InferError::BadValue`] for values that are no finite numbers: `out` is then as it was.
    pub fn tables(&self, attributes: &[(u32, f32)], out: &mut [f32]) -> Result<(), InferError> {
        self.tables_of(attributes.iter().copied(), out)
    }

    /// [`tables`](Self::tables) of attributes that do not lie in memory as pairs.
    ///
    /// # Errors
    /// As there.
    pub fn tables_of(
        &self,
        attributes: impl Iterator<Item = (u32, f32)> + Clone,
        out: &mut [f32],
    ) -> Result<(), InferError> {
        need(self.tables_len(), out.len())?;
        let starts = self.sections.known(id::WEIGHT_STARTS);
        for (attribute, value) in attributes.clone() {
            if attribute as usize >= self.attributes() {
                return Err(InferError::Attribute(attribute));
            }
            if !value.is_finite() {
                return Err(InferError::BadValue);
            }
        }
        for (o, &word) in out.iter_mut().zip(self.sections.known(id::TABLES)) {
            *o = f32::from_bits(word);
        }
        let (places, weights) = (self.sections.known(id::WEIGHT_PLACES), self.sections.known(id::WEIGHTS));
        for (attribute, value) in attributes {
            let Some(range) = between(starts, attribute as usize) else { continue };
            let each = places.get(range.clone()).unwrap_or(&[]).iter().zip(weights.get(range).unwrap_or(&[]));
            for (&at, &w) in each {
                if let Some(o) = out.get_mut(at as usize) {
                    *o += f32::from_bits(w) * value;
                }
            }
        }
        Ok(())
    }

    /// Forbids all labels of a variable but one, in tables that [`tables`](Self::tables) wrote: the label is known.
    ///
    /// # Errors
    /// [`InferError::Shape`] if there is no such variable or label, or the tables are too short: they are then as they were.
    pub fn observe(&self, tables: &mut [f32], variable: usize, label: u32) -> Result<(), InferError> {
        let known = self.cards().get(variable).is_some_and(|&c| label < c);
        let range = between(self.sections.known(id::TABLE_STARTS), variable).filter(|_| known);
        let table = range.and_then(|r| tables.get_mut(r)).ok_or(InferError::Shape)?;
        for (l, entry) in table.iter_mut().enumerate() {
            if l != label as usize {
                *entry = f32::NEG_INFINITY;
            }
        }
        Ok(())
    }

    /// The factor graph of tables that [`tables`](Self::tables) wrote.
    ///
    /// # Errors
    /// A [`GraphError`] if the tables are too short or hold NaN or `+inf` (weights and values that overflow).
    pub fn graph<'t>(&self, tables: &'t [f32]) -> Result<FactorGraph<'t, f32>, GraphError>
    where
        'a: 't,
    {
        let tables = tables.get(..self.tables_len()).ok_or(GraphError::Offsets)?;
        let s = &self.sections;
        FactorGraph::new(
            s.known(id::CARDS),
            s.known(id::SCOPE_STARTS),
            s.known(id::SCOPES),
            s.known(id::TABLE_STARTS),
            tables,
        )
    }

    /// Whether the image has a junction tree, for exact answers whatever the cycles.
    pub fn has_plan(&self) -> bool {
        self.sections.get(id::PLAN).is_some()
    }

    /// Its junction tree, checked for a graph of this image. `memory`: as [`Plan::open`] says.
    ///
    /// # Errors
    /// [`InferError::Plan`] if there is none (word 0) or it is not one of this graph.
    pub fn plan(&self, graph: &FactorGraph<'_, f32>, memory: &mut [u32]) -> Result<Plan<'a>, InferError> {
        Plan::open(self.sections.get(id::PLAN).ok_or(InferError::Plan(0))?, graph, memory)
    }
}

fn ok(section: u32, good: bool) -> Result<(), ImageError> {
    if good { Ok(()) } else { Err(ImageError::Section { section, why: SectionFault::Value }) }
}

/// Where something lies whose starts these are.
fn between(starts: &[u32], i: usize) -> Option<core::ops::Range<usize>> {
    let (&from, &to) = (starts.get(i)?, starts.get(i.checked_add(1)?)?);
    Some(from as usize..to as usize)
}
