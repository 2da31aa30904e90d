//! A field with its numbers: tables of a sample, and the graph and junction tree over them.
//!
//! The structure stays in flash; the tables are written to memory for each sample, because attributes move them:
//! `log ψ_k(y) = constant_k(y) + Σ_(a, value) value · w_{a,k}(y)`. Any engine for factor graphs then runs on them: in `f32` all, in fixed point
//! those that only need [scores](crate::score): exact [labels](crate::infer::junction::Junction::maximise) and
//! [marginals](crate::infer::junction::Junction::log_marginals), [ascent](crate::infer::icm), [local conditionals](crate::infer::log_conditional).

use super::field::{FieldImage, between};
use super::{Scalar, Weight, id};
use crate::error::{GraphError, InferError, need};
use crate::graph::FactorGraph;
use crate::infer::plan::Plan;
use crate::log_add::LogAdd;
use crate::score::Score;
use core::marker::PhantomData;

/// A field in an image whose numbers are `W`: [`f32`], [`i16`] or [`i8`] (constants are 16 bits in both kinds of fixed point).
#[derive(Clone, Copy, Debug)]
pub struct FieldView<'a, W> {
    pub(super) image: FieldImage<'a>,
    pub(super) scalar: PhantomData<W>,
}

impl<'a, W: Weight> FieldView<'a, W> {
    /// The image.
    pub fn image(&self) -> &FieldImage<'a> {
        &self.image
    }

    /// Writes the tables of a sample with these attributes and values. An attribute may stand there several times. Returns whether
    /// something had to be cut off (fixed point beyond [`LIMIT`](crate::score::LIMIT)).
    ///
    /// # Errors
    /// [`InferError::Memory`] if `out` is shorter than [`FieldImage::tables_len`], [`InferError::Attribute`],
    /// [`InferError::BadValue`] for values that are no finite numbers: `out` is then as it was.
    pub fn tables(&self, attributes: &[(u32, W::Value)], out: &mut [W::Score]) -> Result<bool, InferError> {
        self.tables_of(attributes.iter().copied(), out)
    }

    /// [`tables`](Self::tables) of attributes that do not lie in memory as pairs.
    ///
    /// # Errors
    /// As there.
    pub fn tables_of(
        &self,
        attributes: impl Iterator<Item = (u32, W::Value)> + Clone,
        out: &mut [W::Score],
    ) -> Result<bool, InferError> {
        let sections = &self.image.sections;
        need(self.image.tables_len(), out.len())?;
        let out = out.get_mut(..self.image.tables_len()).unwrap_or(&mut []);
        let starts = sections.known(id::WEIGHT_STARTS);
        for (attribute, value) in attributes.clone() {
            if attribute as usize >= self.image.attributes() {
                return Err(InferError::Attribute(attribute));
            }
            if !W::legal_value(value) {
                return Err(InferError::BadValue);
            }
        }
        let constants = sections.known(id::TABLES);
        for (at, o) in out.iter_mut().enumerate() {
            *o = W::constant(constants, at);
        }
        let (places, weights) = (sections.known(id::WEIGHT_PLACES), sections.known(id::WEIGHTS));
        let shift = self.image.scales().shift;
        for (attribute, value) in attributes {
            for at in between(starts, attribute as usize).unwrap_or_default() {
                if let Some(o) = places.get(at).and_then(|&place| out.get_mut(place as usize)) {
                    W::add_product(o, weights, at, value, shift);
                }
            }
        }
        let mut cut = false;
        for (at, o) in out.iter_mut().enumerate() {
            cut |= W::confine(o, || W::constant(constants, at));
        }
        if cut {
            crate::log::saturated();
        }
        Ok(cut)
    }

    /// Forbids all labels of a variable but one, in tables that [`tables`](Self::tables) wrote: the label is known.
    ///
    /// # Errors
    /// [`InferError::Shape`] if there is no such variable or label, or the tables are too short: they are then as they were.
    pub fn observe(&self, tables: &mut [W::Score], variable: usize, label: u32) -> Result<(), InferError> {
        let known = self.image.cards().get(variable).is_some_and(|&c| label < c);
        let starts = self.image.sections.known(id::TABLE_STARTS);
        let range = between(starts, variable).filter(|_| known);
        let table = range.and_then(|r| tables.get_mut(r)).ok_or(InferError::Shape)?;
        for (l, entry) in table.iter_mut().enumerate() {
            if l != label as usize {
                *entry = W::Score::NEG_INFINITY;
            }
        }
        Ok(())
    }

    /// The factor graph of tables that [`tables`](Self::tables) wrote.
    ///
    /// # Errors
    /// A [`GraphError`] if the tables are too short or hold what is no score (in `f32` NaN or `+inf`: weights and values that overflow).
    pub fn graph<'t>(&self, tables: &'t [W::Score]) -> Result<FactorGraph<'t, W::Score>, GraphError>
    where
        'a: 't,
    {
        let tables = tables.get(..self.image.tables_len()).ok_or(GraphError::Offsets)?;
        let s = &self.image.sections;
        FactorGraph::new(
            s.known(id::CARDS),
            s.known(id::SCOPE_STARTS),
            s.known(id::SCOPES),
            s.known(id::TABLE_STARTS),
            tables,
        )
    }

    /// Its junction tree, checked for a graph of this image. `memory`: as [`Plan::open`] says.
    ///
    /// # Errors
    /// [`InferError::Plan`] if there is none (word 0) or it is not one of this graph.
    pub fn plan(
        &self,
        graph: &FactorGraph<'_, W::Score>,
        memory: &mut [u32],
    ) -> Result<Plan<'a>, InferError> {
        Plan::open(self.image.sections.get(id::PLAN).ok_or(InferError::Plan(0))?, graph, memory)
    }

    /// The table for sums of exponentials in fixed point, if the image has one.
    pub fn log_add(&self) -> Option<LogAdd<'a>> {
        LogAdd::open(self.image.sections.get(id::FIELD_LOG_ADD)?)
    }

    /// A score, or a logarithm of a probability, as a natural logarithm.
    pub fn to_f32(&self, score: W::Score) -> f32 {
        W::to_f32(score, self.image.scales().unit)
    }

    /// The score of all factors ([`FactorGraph::log_potential`]) as a natural logarithm.
    pub fn total(&self, sum: <W::Score as Score>::Total) -> f32 {
        W::sum_to_f32(sum, self.image.scales().unit)
    }

    /// How far the score of any labels can be from that of the model that the image was exported from, for a sample with these attributes, nothing cut
    /// off; for fixed point.
    ///
    /// `K·ε_C + Σ_a m_a (|v_a| ε_w + r_a)`: `K` constants are added, and of attribute `a` a weight in each of the `m_a` factors that it moves; `ε` are the
    /// largest errors of a constant and of a weight, and `r_a` is half a unit and `2⁻¹⁷ |w|` where the value is not 1, else 0. The labels that are best here are, in the model,
    /// worse than the best by at most twice that.
    pub fn error_bound(&self, attributes: &[(u32, W::Value)]) -> f32 {
        let widest = match W::SCALAR {
            Scalar::F32 => return 0.0,
            Scalar::I16 => 32_768.0,
            Scalar::I8 => 128.0,
        };
        let scales = self.image.scales();
        let widest = widest * scales.unit * (1u32 << (scales.shift & 15)) as f32;
        let mut bound = self.image.factors() as f32 * scales.transition_error;
        for &(attribute, value) in attributes {
            let size = W::magnitude(value);
            let rounded = if size == 1.0 { 0.0 } else { 0.5 * scales.unit + widest / 131_072.0 };
            bound += self.moves(attribute) as f32 * (size * scales.weight_error + rounded);
        }
        bound
    }

    /// How many factors an attribute has weights in.
    fn moves(&self, attribute: u32) -> usize {
        let sections = &self.image.sections;
        let starts = sections.known(id::TABLE_STARTS);
        let of = between(sections.known(id::WEIGHT_STARTS), attribute as usize).unwrap_or_default();
        let places = sections.known(id::WEIGHT_PLACES).get(of).unwrap_or(&[]);
        let has = |k: &[u32]| match *k {
            [from, to] => places.iter().any(|at| (from..to).contains(at)),
            _ => false,
        };
        starts.windows(2).filter(|k| has(k)).count()
    }
}
