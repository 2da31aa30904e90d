//! Random fields on any graph: the variables and factors that all samples share ([`Field`]), and the samples ([`FieldData`]).
//!
//! `P(y | x) = 1/Z(x) Π_k ψ_k(y_{C_k}, x)` (Thesis eq. 2.1). A factor belongs to a template of the
//! [parameter index](crate::features): factors of one template share their parameters. Without inputs every factor has the
//! constant attribute alone, and the field is a Markov random field.

pub mod cv;
mod data;
pub mod predict;
pub mod sample;
pub mod schema;
mod structure;
pub mod train;

pub use data::{Coverage, FieldData, MISSING, Row};
pub use schema::Schema;
pub use structure::{Structure, StructureError};

use crate::features::{Index, IndexError, MAX_OUTPUTS, size_of};
use std::fmt;
use std::ops::Range;

/// Variables, factors, and the template of each factor.
///
/// ```
/// use gibbsite::field::{Field, Structure};
/// let field = Field::pairwise(vec![5; 6], &Structure::Grid { rows: 2, columns: 3 }, true)?;
/// assert_eq!((field.variables(), field.factors()), (6, 6 + 7));
/// assert_eq!(field.scope(6), [0, 1]);
/// // Shared parameters: one template for all single variables, one for all edges.
/// assert_eq!(field.index(&[1, 1])?.len(), 5 + 25);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    cards: Vec<u32>,
    starts: Vec<u32>,
    scope: Vec<u32>,
    template_of: Vec<u32>,
    /// Arities of each template.
    templates: Vec<Vec<u32>>,
    grid: Option<[u32; 2]>,
}

/// A field, or a sample of it, that does not fit together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldError {
    /// The variable has no labels.
    ArityZero {
        /// The variable.
        variable: u32,
    },
    /// The template's shape cannot be indexed.
    Index(IndexError),
    /// No such template.
    NoSuchTemplate {
        /// The one that was named.
        template: usize,
    },
    /// The factor names a variable that does not exist.
    NoSuchVariable {
        /// The variable.
        variable: u32,
        /// How many there are.
        variables: usize,
    },
    /// The factor names a variable twice.
    RepeatedVariable {
        /// The variable.
        variable: u32,
    },
    /// The factor's variables do not have its template's arities.
    Arities {
        /// The factor's number.
        factor: usize,
        /// Arities of the template.
        expected: Vec<u32>,
        /// Arities of the variables.
        found: Vec<u32>,
    },
    /// The structure does not fit the number of variables.
    Structure(StructureError),
    /// More factors, samples or attributes than can be counted.
    TooLarge,
    /// The sample has another number of labels than there are variables.
    Labels {
        /// The sample.
        sample: usize,
        /// How many it has.
        found: usize,
        /// How many there should be.
        expected: usize,
    },
    /// A label outside the variable's arity.
    Label {
        /// The sample.
        sample: usize,
        /// The variable.
        variable: u32,
        /// The label.
        label: u32,
        /// The variable's arity.
        arity: u32,
    },
    /// The sample has another number of attribute lists than there are factors with inputs.
    Rows {
        /// The sample.
        sample: usize,
        /// How many it has.
        found: usize,
        /// How many there should be.
        expected: usize,
    },
    /// An attribute outside the template, or a value that is not a finite number.
    Attribute {
        /// The sample.
        sample: usize,
        /// The factor.
        factor: usize,
        /// The attribute.
        attribute: u32,
    },
    /// The numbers of attributes, one for each template, are not as many as the templates, or not 1 for one without inputs.
    Attributes {
        /// How many templates there are.
        templates: usize,
    },
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ArityZero { variable } => write!(f, "variable {variable} has no labels"),
            Self::Index(e) => write!(f, "{e}"),
            Self::NoSuchTemplate { template } => write!(f, "there is no template {template}"),
            Self::NoSuchVariable { variable, variables } => {
                write!(f, "a factor names variable {variable}, but there are {variables} variables (from 0)")
            }
            Self::RepeatedVariable { variable } => write!(f, "a factor names variable {variable} twice"),
            Self::Arities { factor, expected, found } => write!(
                f,
                "factor {factor} has variables with {found:?} labels, but its template is for {expected:?}"
            ),
            Self::Structure(e) => write!(f, "{e}"),
            Self::TooLarge => write!(f, "more factors, samples or attributes than can be counted"),
            Self::Labels { sample, found, expected } => {
                write!(f, "sample {sample} has {found} labels, but there are {expected} variables")
            }
            Self::Label { sample, variable, label, arity } => write!(
                f,
                "sample {sample} has label {label} at variable {variable}, which has {arity} labels (from 0)"
            ),
            Self::Rows { sample, found, expected } => {
                write!(f, "sample {sample} has {found} attribute lists, but {expected} factors have inputs")
            }
            Self::Attribute { sample, factor, attribute } => write!(
                f,
                "sample {sample}, factor {factor}: attribute {attribute} is outside its template, or its value is not finite"
            ),
            Self::Attributes { templates } => write!(
                f,
                "each of the {templates} templates needs a number of attributes (1 for one without inputs)"
            ),
        }
    }
}

impl std::error::Error for FieldError {}

impl From<IndexError> for FieldError {
    fn from(e: IndexError) -> Self {
        Self::Index(e)
    }
}

impl From<StructureError> for FieldError {
    fn from(e: StructureError) -> Self {
        Self::Structure(e)
    }
}

impl Field {
    /// Variables of these arities, without factors.
    ///
    /// # Errors
    /// [`FieldError::ArityZero`] or [`FieldError::TooLarge`].
    pub fn new(cards: impl Into<Vec<u32>>) -> Result<Self, FieldError> {
        let cards = cards.into();
        if u32::try_from(cards.len()).is_err() {
            return Err(FieldError::TooLarge);
        }
        if let Some(v) = cards.iter().position(|&c| c == 0) {
            return Err(FieldError::ArityZero { variable: v as u32 });
        }
        Ok(Self { cards, starts: vec![0], scope: vec![], template_of: vec![], templates: vec![], grid: None })
    }

    /// One factor for each variable, then one for each edge of the structure. Shared: a template for all single variables of an
    /// arity, and one for all edges of a pair of arities. Otherwise each factor has a template of its own.
    ///
    /// # Errors
    /// A [`FieldError`], above all if the structure does not fit the number of variables.
    pub fn pairwise(
        cards: impl Into<Vec<u32>>,
        structure: &Structure,
        shared: bool,
    ) -> Result<Self, FieldError> {
        let mut field = Self::new(cards)?;
        let edges = structure.edges(field.variables())?;
        if let Structure::Grid { rows, columns } = *structure {
            field.grid = Some([rows, columns]);
        }
        for v in 0..field.variables() as u32 {
            field.push_like(&[v], shared)?;
        }
        for edge in edges {
            field.push_like(&edge, shared)?;
        }
        Ok(field)
    }

    /// Appends a factor with a template made for it, or, if `shared`, with the first one of the same arities.
    fn push_like(&mut self, scope: &[u32], shared: bool) -> Result<(), FieldError> {
        let arities: Vec<u32> = scope.iter().map(|&v| self.cards.get(v as usize).map_or(0, |&c| c)).collect();
        let known = self.templates.iter().position(|t| shared && *t == arities);
        let template = match known {
            Some(template) => template,
            None => self.push_template(&arities)?,
        };
        self.push_factor(template, scope).map(|_| ())
    }

    /// Appends a kind of factor; returns its number.
    ///
    /// # Errors
    /// [`FieldError::Index`].
    pub fn push_template(&mut self, arities: &[u32]) -> Result<usize, FieldError> {
        size_of(arities)?;
        self.templates.push(arities.to_vec());
        Ok(self.templates.len() - 1)
    }

    /// Appends a factor over 1 to 4 variables, the last varying fastest in its configurations; returns its number.
    ///
    /// ```
    /// use gibbsite::field::Field;
    /// let mut field = Field::new([2, 3, 2])?;
    /// let triple = field.push_template(&[2, 2, 3])?;
    /// field.push_factor(triple, &[0, 2, 1])?;
    /// assert!(field.push_factor(triple, &[0, 1, 2]).is_err());
    /// # Ok::<(), gibbsite::field::FieldError>(())
    /// ```
    ///
    /// # Errors
    /// A [`FieldError`]; the field is then as before.
    pub fn push_factor(&mut self, template: usize, scope: &[u32]) -> Result<usize, FieldError> {
        let Some(arities) = self.templates.get(template) else {
            return Err(FieldError::NoSuchTemplate { template });
        };
        let variables = self.variables();
        let mut found = Vec::with_capacity(MAX_OUTPUTS);
        for (i, &variable) in scope.iter().enumerate() {
            let card = self.cards.get(variable as usize);
            found.push(*card.ok_or(FieldError::NoSuchVariable { variable, variables })?);
            if scope[..i].contains(&variable) {
                return Err(FieldError::RepeatedVariable { variable });
            }
        }
        let factor = self.factors();
        if *arities != found {
            return Err(FieldError::Arities { factor, expected: arities.clone(), found });
        }
        let end = u32::try_from(self.scope.len() + scope.len()).map_err(|_| FieldError::TooLarge)?;
        self.scope.extend_from_slice(scope);
        self.starts.push(end);
        self.template_of.push(template as u32);
        Ok(factor)
    }

    /// How many variables there are.
    pub fn variables(&self) -> usize {
        self.cards.len()
    }

    /// Arity of each variable.
    pub fn cards(&self) -> &[u32] {
        &self.cards
    }

    /// How many factors there are.
    pub fn factors(&self) -> usize {
        self.template_of.len()
    }

    /// Variables of a factor, the last varies fastest.
    #[inline]
    pub fn scope(&self, factor: usize) -> &[u32] {
        &self.scope[self.edges(factor)]
    }

    fn edges(&self, factor: usize) -> Range<usize> {
        self.starts[factor] as usize..self.starts[factor + 1] as usize
    }

    /// The template of a factor.
    #[inline]
    pub fn template(&self, factor: usize) -> usize {
        self.template_of[factor] as usize
    }

    /// Arities of each template.
    pub fn templates(&self) -> &[Vec<u32>] {
        &self.templates
    }

    /// How many configurations a factor's variables have.
    pub fn size(&self, factor: usize) -> usize {
        self.templates[self.template(factor)].iter().map(|&a| a as usize).product()
    }

    /// Rows and columns, if the field was made as a grid.
    pub fn grid(&self) -> Option<[u32; 2]> {
        self.grid
    }

    /// The number of the configuration that a factor has at these labels (one for each variable of the field); `None` if
    /// one of them is missing.
    #[inline]
    pub fn configuration(&self, factor: usize, labels: &[u32]) -> Option<usize> {
        let mut at = 0;
        for &v in self.scope(factor) {
            let label = labels[v as usize];
            if label == MISSING {
                return None;
            }
            at = at * self.cards[v as usize] as usize + label as usize;
        }
        Some(at)
    }

    /// The dense parameter index: each template with so many attributes.
    ///
    /// # Errors
    /// [`FieldError::Attributes`] if they are not as many as the templates; [`FieldError::Index`].
    pub fn index(&self, attributes: &[u32]) -> Result<Index, FieldError> {
        if attributes.len() != self.templates.len() {
            return Err(FieldError::Attributes { templates: self.templates.len() });
        }
        let mut index = Index::new();
        for (arities, &attributes) in self.templates.iter().zip(attributes) {
            index.push_dense(arities, attributes)?;
        }
        Ok(index)
    }

    /// The parameter index of [`Coverage::Reference`]: each template with so many attributes, without the configurations in which some
    /// variable has label 0.
    ///
    /// # Errors
    /// As [`index`](Self::index).
    pub fn reference_index(&self, attributes: &[u32]) -> Result<Index, FieldError> {
        if attributes.len() != self.templates.len() {
            return Err(FieldError::Attributes { templates: self.templates.len() });
        }
        let mut index = Index::new();
        for (arities, &attributes) in self.templates.iter().zip(attributes) {
            let free_of_reference = |&y: &u32| {
                let mut rest = y;
                arities.iter().rev().all(|&arity| {
                    let label = rest % arity;
                    rest /= arity;
                    label != 0
                })
            };
            let configurations: Vec<u32> = (0..size_of(arities)?).filter(free_of_reference).collect();
            index.push_listed(arities, attributes, &configurations)?;
        }
        Ok(index)
    }

    /// For each variable the factors that mention it, ascending, as one array with starts.
    pub(crate) fn incidence(&self) -> (Vec<u32>, Vec<u32>) {
        let mut starts = vec![0u32; self.variables() + 1];
        for &v in &self.scope {
            starts[v as usize + 1] += 1;
        }
        for v in 0..self.variables() {
            starts[v + 1] += starts[v];
        }
        let mut next = starts.clone();
        let mut factors = vec![0u32; self.scope.len()];
        for k in 0..self.factors() {
            for &v in self.scope(k) {
                factors[next[v as usize] as usize] = k as u32;
                next[v as usize] += 1;
            }
        }
        (starts, factors)
    }
}
