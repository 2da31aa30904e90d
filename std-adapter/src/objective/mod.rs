//! What is minimised: one file a datafit. Each gives a value and a gradient over all samples; penalties stay outside.
//!
//! | file | what |
//! | --- | --- |
//! | `components` | which variables are explained by which: only lists |
//! | `composite` | the composite likelihood of any such list: likelihood and pseudolikelihood are two of them |
//! | `pattern` | from components and missing labels to pieces |
//! | `piece` | partition function and marginals of a connected set of free variables |
//! | `tables` | from parameters to factor tables and back |
//! | `branches` | the order of a piece's tables if it is a forest |
//! | `approximate` | estimates for pieces that are too wide |
//! | `piecewise` | each factor normalised by itself |
//! | `rows` | weights of attributes, arranged for that |
//! | `sequences` | the likelihood of sequences, fast |
//! | `estimator` | what is maximised over sequences: which parts, given which labels |
//! | `term` | what one sequence adds to it |
//! | `parts` | the same for parts of a sequence |
//! | `single` | one sequence at a time, for stochastic gradients |
//! | `local` | the pseudolikelihood as a sparse regression, a column a parameter |
//! | `disjoint` | each component a problem of its own, parameters averaged |
//! | `gaussian` | the likelihood of real outputs with sparse Λ and Θ |

mod approximate;
mod branches;
pub mod components;
pub mod composite;
pub mod disjoint;
pub mod estimator;
pub mod gaussian;
pub mod local;
mod parts;
mod pattern;
mod piece;
pub mod piecewise;
pub(crate) mod rows;
pub mod sequences;
pub(crate) mod single;
mod tables;
pub(crate) mod term;

pub use approximate::Inference;

use crate::field::FieldError;
use crate::par::Par;
use crate::plan::PlanError;
use crate::solver::lbfgs::Smooth;
use components::ComponentError;
use std::fmt;

/// Settings of an objective.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ObjectiveParams {
    /// Threads; the result does not depend on them. Evaluate inside [`Par::run`].
    pub par: Par,
    /// Mebibytes that the tables of one component's exact inference may take, for each thread.
    pub max_table_mib: f64,
    /// What is done about components that need more.
    pub inference: Inference,
}

impl Default for ObjectiveParams {
    fn default() -> Self {
        Self { par: Par::all(), max_table_mib: 1024.0, inference: Inference::Exact }
    }
}

/// Why there is no objective.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ObjectiveError {
    /// Field, data and index do not fit together.
    Field(FieldError),
    /// The components do not fit the field.
    Component(ComponentError),
    /// A component is too wide for exact inference.
    TooWide {
        /// The component's number.
        component: usize,
        /// How many variables are free in it at a time.
        variables: usize,
        /// What was found.
        error: PlanError,
        /// The limit in mebibytes.
        limit: f64,
    },
    /// There are no samples.
    NoSamples,
}

impl fmt::Display for ObjectiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(e) => write!(f, "{e}"),
            Self::Component(e) => write!(f, "{e}"),
            Self::TooWide { component, variables, error, limit } => write!(
                f,
                "component {component} leaves {variables} variables free, which is too wide for exact inference: {error} \
                 (the limit is {limit} MiB: --max-table-mib); use smaller components (--estimator pseudo or composite), or estimates (--inference bp or gibbs)"
            ),
            Self::NoSamples => write!(f, "there are no samples"),
        }
    }
}

impl std::error::Error for ObjectiveError {}

impl From<FieldError> for ObjectiveError {
    fn from(e: FieldError) -> Self {
        Self::Field(e)
    }
}

impl From<ComponentError> for ObjectiveError {
    fn from(e: ComponentError) -> Self {
        Self::Component(e)
    }
}

impl Smooth for composite::Composite<'_> {
    fn len(&self) -> usize {
        self.len()
    }

    fn value_gradient(&mut self, theta: &[f64], gradient: &mut [f64]) -> f64 {
        self.value_gradient(theta, gradient)
    }
}

impl Smooth for piecewise::Piecewise<'_> {
    fn len(&self) -> usize {
        self.len()
    }

    fn value_gradient(&mut self, theta: &[f64], gradient: &mut [f64]) -> f64 {
        self.value_gradient(theta, gradient)
    }
}
