//! Models that other programs trained, so that nobody has to train again: CRFsuite's binary files ([`crfsuite`]) and CRF++'s text files ([`crfpp`]).

pub mod crfpp;
pub mod crfsuite;

use crate::data::sequences::Alphabet;
use crate::features::Index;
use crate::model::SequenceModel;
use crate::model::sequence::{Facts, Origin};
use std::fmt;

/// Why a file cannot be imported.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImportError {
    /// Neither of the formats.
    Unknown,
    /// It ends too early.
    Truncated,
    /// Something in it is wrong; for text, with the line.
    Content {
        /// From 1; 0 if the file has no lines.
        line: usize,
        /// What was found, and what was expected.
        what: String,
    },
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => write!(
                f,
                "neither a CRFsuite model nor a CRF++ text model (made by `crf_learn -t`, the file that ends with .txt)"
            ),
            Self::Truncated => write!(f, "a truncated model: it ends too early"),
            Self::Content { line: 0, what } => write!(f, "{what}"),
            Self::Content { line, what } => write!(f, "line {line}: {what}"),
        }
    }
}

impl std::error::Error for ImportError {}

/// Imports a model, whichever of the formats it is.
///
/// # Errors
/// An [`ImportError`].
pub fn import(bytes: &[u8]) -> Result<SequenceModel, ImportError> {
    if bytes.starts_with(crfsuite::MAGIC) {
        crfsuite::import(bytes)
    } else if bytes.starts_with(b"version:") {
        crfpp::import(bytes)
    } else {
        Err(ImportError::Unknown)
    }
}

/// Parameters as they are found, in any order: for each template, lists of (attribute, configuration, weight).
#[derive(Debug, Default)]
struct Found {
    alphabet: Alphabet,
    states: Vec<(u32, u32, f64)>,
    transitions: Vec<(u32, u32, f64)>,
    edges: Vec<(u32, u32, f64)>,
}

impl Found {
    /// Weights of 0 are left out. What is there twice counts twice.
    fn model(mut self, origin: Origin, program: &str) -> Result<SequenceModel, ImportError> {
        let wrong = |what: String| ImportError::Content { line: 0, what };
        let labels = self.alphabet.labels.len() as u32;
        if labels == 0 {
            return Err(wrong("the model has no labels".into()));
        }
        let mut index = Index::new();
        let mut theta = Vec::new();
        let attributes = [self.alphabet.attributes.len(), 1, self.alphabet.edge_attributes.len()];
        let all = [&mut self.states, &mut self.transitions, &mut self.edges];
        for (template, (found, attributes)) in all.into_iter().zip(attributes).enumerate() {
            if template == 2 && attributes == 0 {
                continue;
            }
            found.sort_by_key(|f| (f.0, f.1));
            let mut lists = vec![Vec::new(); attributes];
            let mut last = None;
            for &mut (a, configuration, weight) in found {
                if !weight.is_finite() {
                    return Err(wrong(format!("a weight is {weight}")));
                }
                if last == Some((a, configuration)) {
                    if let Some(w) = theta.last_mut() {
                        *w += weight;
                    }
                } else if weight != 0.0 {
                    lists[a as usize].push(configuration);
                    theta.push(weight);
                    last = Some((a, configuration));
                }
            }
            let arities: &[u32] = if template == 0 { &[labels] } else { &[labels, labels] };
            index.push_lists(arities, &lists).map_err(|e| wrong(e.to_string()))?;
        }
        let facts = Facts {
            estimator: "unknown".into(),
            solver: program.into(),
            l1: 0.0,
            l2: 0.0,
            objective: f64::NAN,
            violation: f64::NAN,
            iterations: 0,
            converged: true,
            sequences: 0,
            items: 0,
            data: String::new(),
        };
        Ok(SequenceModel { alphabet: self.alphabet, index, theta, origin, facts }.compact())
    }
}
