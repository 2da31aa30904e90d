//! From a trained model to a device: the image that `gibbsite_core` opens from flash, as bytes or as source text.
//!
//! | file | what |
//! | --- | --- |
//! | `image` | the words: sections, checksum |
//! | `field` | the words of a field over the columns of a table |
//! | `quantise` | fixed point: scales, rounding, the table for log-add |
//! | `source` | the words as C or Rust source |
//! | `check`, `field_check` | the image against the model in `f64`, on data |
//! | `gaussian`, `gaussian_source`, `gaussian_check` | the same for Gaussian CRFs |

mod check;
mod field;
mod field_check;
mod gaussian;
mod gaussian_check;
mod gaussian_source;
mod image;
mod quantise;
mod source;

pub use check::{CheckError, CheckInfo, check};
pub use field::{ExportedField, FieldExportInfo, FieldExportParams, export_field};
pub use field_check::{FieldCheckError, FieldCheckInfo, FieldExactInfo, check_field};
pub use gaussian::{GaussianExported, GaussianInfo, export_gaussian};
pub use gaussian_check::{GaussianCheckInfo, check_gaussian};
pub use gaussian_source::{gaussian_c_source, gaussian_rust_source};
pub use image::export;
pub use quantise::log_add_table;
pub use source::{c_source, field_c_source, field_source, rust_source};

pub use gibbsite_core::image::Scalar;
use std::fmt;

/// How firmware names attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Naming {
    /// By name, through a table of 32-bit hashes: a name that the model does not have is taken for one of its `n`
    /// attributes with probability `n/2³²`.
    #[default]
    Hash,
    /// By name, and the names are stored.
    Exact,
    /// By number only.
    Numbers,
}

/// What to export.
#[derive(Clone, Debug)]
pub struct ExportParams {
    /// What the weights become.
    pub scalar: Scalar,
    /// The longest sequence, for which memory is planned.
    pub longest: usize,
    /// How attributes are named.
    pub naming: Naming,
    /// Transitions that are never taken.
    pub forbidden: Vec<(u32, u32)>,
}

impl Default for ExportParams {
    fn default() -> Self {
        Self { scalar: Scalar::F32, longest: 100, naming: Naming::Hash, forbidden: Vec::new() }
    }
}

/// An exported model.
#[derive(Clone, Debug)]
pub struct Exported {
    /// The image.
    pub words: Vec<u32>,
    /// The model's attributes as the image numbers them: attributes without weights are not in it.
    pub attributes: Vec<Option<u32>>,
    /// What it is.
    pub info: ExportInfo,
}

impl Exported {
    /// The bytes of the image file: little-endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }
}

/// What an image needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportInfo {
    /// Bytes of flash, without code.
    pub flash: usize,
    /// Bytes of memory to label a sequence of the greatest length.
    pub ram: usize,
    /// Bytes of memory for its marginals.
    pub ram_marginals: usize,
    /// Labels.
    pub labels: usize,
    /// Attributes.
    pub attributes: usize,
    /// Weights of attributes.
    pub weights: usize,
}

/// A model that cannot be exported.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExportError {
    /// Attributes of transitions have no place in images.
    EdgeAttributes(usize),
    /// More labels than an image holds.
    Labels(usize),
    /// The longest sequence is 0 or beyond what an image plans for.
    Longest(usize),
    /// A weight is too large for single precision.
    Weight(String),
    /// No hash function tells all names apart.
    Names(usize),
    /// More inputs or outputs than an image of a Gaussian CRF holds.
    Reals(usize),
    /// Λ is not positive definite, at least not in single precision.
    Precision,
    /// More than 2³² words.
    TooLarge,
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use gibbsite_core::image::{MAX_ITEMS, MAX_LABELS};
        match self {
            Self::EdgeAttributes(n) => write!(
                f,
                "the model has {n} attributes of transitions, which an image cannot hold: train with a template whose only `B` line is `B`"
            ),
            Self::Labels(n) => write!(f, "the model has {n} labels, an image holds up to {MAX_LABELS}"),
            Self::Longest(n) => write!(f, "the longest sequence must have 1 to {MAX_ITEMS} items, not {n}"),
            Self::Weight(name) => write!(f, "the weight of `{name}` is too large for single precision"),
            Self::Names(n) => write!(
                f,
                "{n} attributes are too many to tell apart by 32-bit hashes: use numbers, or train with an L1 penalty"
            ),
            Self::Reals(n) => write!(
                f,
                "the model has {n} inputs or outputs, an image holds up to {} of each",
                gibbsite_core::image::MAX_REALS
            ),
            Self::Precision => write!(f, "its Λ is not positive definite in single precision"),
            Self::TooLarge => write!(f, "the image would be larger than 16 GiB"),
        }
    }
}

impl std::error::Error for ExportError {}
