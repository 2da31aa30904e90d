//! A fitted chain over sequences: alphabet, parameter index, weights, and how it came about.
//!
//! ```text
//! section   what
//! "labl"    names of the labels: for each its length as a varint; then the bytes of all
//! "attr"    names of the attributes, likewise; "edge" names of the attributes of edges
//! "indx"    for each template: 1 if dense, number of outputs, arities, attributes; if sparse, for each attribute how many
//!           parameters, then their configurations, each as the difference from the one before (all varints)
//! "wght"    the weights, f64, in the order of the index
//! ```

use super::container::{self, Container, Kind, ModelError, bytes_of};
use super::header::Header;
use super::sections::{names, read_index, read_names, read_weights, write_index};
use crate::data::sequences::Alphabet;
use crate::features::Index;
use crate::objective::sequences::{EDGES, STATES, TRANSITIONS};
use serde_json::{Value, json};

/// What the files look like that the model was made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Attributes as they are.
    Crfsuite,
    /// Columns, and the template that makes attributes of them.
    Columns {
        /// The template's text.
        template: String,
        /// Columns of the training data, the label too.
        columns: usize,
    },
}

/// How a model came about.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// What was maximised: `mle` or `pseudo`.
    pub estimator: String,
    /// The algorithm.
    pub solver: String,
    /// `C₁`.
    pub l1: f64,
    /// `C₂`.
    pub l2: f64,
    /// The objective, penalties included; NaN if nobody knows, as for models of other programs.
    pub objective: f64,
    /// How far from optimal: the largest distance of 0 from the subdifferential along a parameter.
    pub violation: f64,
    /// Steps.
    pub iterations: u64,
    /// Whether the tolerance was met.
    pub converged: bool,
    /// Training sequences.
    pub sequences: usize,
    /// Their items.
    pub items: usize,
    /// Name of the training data, without folders.
    pub data: String,
}

/// A fitted chain over sequences.
#[derive(Clone, Debug, PartialEq)]
pub struct SequenceModel {
    /// Names of labels and attributes.
    pub alphabet: Alphabet,
    /// Which parameter is about what.
    pub index: Index,
    /// The weights.
    pub theta: Vec<f64>,
    /// What files it reads.
    pub origin: Origin,
    /// How it came about.
    pub facts: Facts,
}

impl SequenceModel {
    /// The self-description that the file begins with.
    pub fn header(&self) -> Value {
        let (format, template, columns) = match &self.origin {
            Origin::Crfsuite => ("crfsuite", None, None),
            Origin::Columns { template, columns } => ("columns", Some(template), Some(columns)),
        };
        let facts = &self.facts;
        json!({
            "model": "linear chain over sequences",
            "format": format,
            "estimator": facts.estimator,
            "solver": facts.solver,
            "l1": facts.l1,
            "l2": facts.l2,
            "objective": facts.objective,
            "violation": facts.violation,
            "iterations": facts.iterations,
            "converged": facts.converged,
            "sequences": facts.sequences,
            "items": facts.items,
            "data": facts.data,
            "labels": self.alphabet.labels.iter().collect::<Vec<_>>(),
            "attributes": self.alphabet.attributes.len(),
            "edge_attributes": self.alphabet.edge_attributes.len(),
            "parameters": self.index.len(),
            "nonzeros": self.theta.iter().filter(|w| **w != 0.0).count(),
            "columns": columns,
            "template": template,
        })
    }

    /// The same model without weights of 0 and attributes that have no others: what L1 leaves.
    pub fn compact(&self) -> Self {
        let mut index = Index::new();
        let mut theta = Vec::new();
        let mut alphabet = Alphabet { labels: self.alphabet.labels.clone(), ..Alphabet::default() };
        for template in 0..self.index.templates() {
            let mut lists = Vec::new();
            for a in 0..self.index.attributes(template) as u32 {
                let list = self.nonzero(template, a);
                // The one attribute of transitions stays.
                if list.is_empty() && template != TRANSITIONS {
                    continue;
                }
                let names = match template {
                    STATES => Some((&self.alphabet.attributes, &mut alphabet.attributes)),
                    EDGES => Some((&self.alphabet.edge_attributes, &mut alphabet.edge_attributes)),
                    _ => None,
                };
                if let Some((from, to)) = names {
                    to.intern(from.name(a).unwrap_or_default());
                }
                theta.extend(list.iter().map(|w| w.1));
                lists.push(list.into_iter().map(|w| w.0).collect());
            }
            if lists.is_empty() && template == EDGES {
                continue;
            }
            // No larger than what it is a part of.
            let _ = index.push_lists(self.index.arities(template), &lists);
        }
        Self { alphabet, index, theta, origin: self.origin.clone(), facts: self.facts.clone() }
    }

    /// Configurations and weights of an attribute that are not 0.
    pub fn nonzero(&self, template: usize, attribute: u32) -> Vec<(u32, f64)> {
        let range = self.index.parameters(template, attribute);
        let weights = &self.theta[range];
        let all: Vec<u32> = match self.index.configurations(template, attribute) {
            Some(list) => list.to_vec(),
            None => (0..weights.len() as u32).collect(),
        };
        all.into_iter().zip(weights.iter().copied()).filter(|w| w.1 != 0.0).collect()
    }

    /// The bytes of the model file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let weights = bytes_of(&self.theta);
        let (labels, attributes) = (names(&self.alphabet.labels), names(&self.alphabet.attributes));
        let edges = names(&self.alphabet.edge_attributes);
        let index = write_index(&self.index);
        let sections = [
            (*b"labl", labels.as_slice()),
            (*b"attr", &attributes),
            (*b"edge", &edges),
            (*b"indx", &index),
            (*b"wght", &weights),
        ];
        container::write(Kind::SEQUENCES, &self.header(), &sections)
    }

    /// Opens a model file.
    ///
    /// # Errors
    /// A [`ModelError`]: no model, another kind or version, truncated, damaged.
    pub fn open(bytes: &[u8]) -> Result<Self, ModelError> {
        Self::from_container(&Container::open(bytes)?)
    }

    /// Takes a model out of a file that is open already.
    ///
    /// # Errors
    /// A [`ModelError`] if it is of another kind or does not hold together.
    pub fn from_container(file: &Container<'_>) -> Result<Self, ModelError> {
        file.expect(Kind::SEQUENCES)?;
        let header = Header(&file.header);
        let alphabet = Alphabet {
            labels: read_names(file.required(*b"labl")?)?,
            attributes: read_names(file.required(*b"attr")?)?,
            edge_attributes: read_names(file.required(*b"edge")?)?,
        };
        let index = read_index(file.required(*b"indx")?)?;
        let theta = read_weights(file, &index)?;
        let labels = alphabet.labels.len() as u32;
        let fits = |template: usize, arities: &[u32], attributes: usize| {
            index.arities(template) == arities && index.attributes(template) == attributes
        };
        let edges = alphabet.edge_attributes.len();
        if labels == 0
            || !(2..=3).contains(&index.templates())
            || !fits(STATES, &[labels], alphabet.attributes.len())
            || !fits(TRANSITIONS, &[labels; 2], 1)
            || (index.templates() > EDGES) != (edges > 0)
            || edges > 0 && !fits(EDGES, &[labels; 2], edges)
        {
            return Err(ModelError::unfit());
        }
        let origin = match header.text("format")?.as_str() {
            "crfsuite" => Origin::Crfsuite,
            "columns" => {
                Origin::Columns { template: header.text("template")?, columns: header.count("columns")? }
            }
            _ => return Err(header.wrong("format")),
        };
        let facts = Facts {
            estimator: header.text("estimator")?,
            solver: header.text("solver")?,
            l1: header.number("l1")?,
            l2: header.number("l2")?,
            objective: header.number_if_any("objective")?,
            violation: header.number_if_any("violation")?,
            iterations: header.count("iterations")? as u64,
            converged: header.flag("converged")?,
            sequences: header.count("sequences")?,
            items: header.count("items")?,
            data: header.text("data")?,
        };
        Ok(Self { alphabet, index, theta, origin, facts })
    }
}
