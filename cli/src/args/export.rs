//! Arguments of `export`.

use super::{Common, Format, Scheme};
use clap::{Args as Group, ValueEnum};
use std::path::PathBuf;

/// Write a model as firmware can use it
///
/// Writes the image of a chain over sequences or of a field over the columns of a table: words that `gibbsite_core::image::Image::open` (or `gibbsite_open` in C; `FieldImage::open` for a field) reads from flash without copying them, as a binary
/// file or as source text. Prints the bytes of flash (without code), the bytes of memory for sequences of --max-length, and with --check how the image does on data against the
/// model in double precision: labels that differ, the worst error of a score (with its proven bound, for fixed point) and of a probability.
///
/// Gaussian CRFs (`gaussian fit`) are written in f32: the sparse factor of Λ, Λ and Θ; --check takes inputs and prints the worst error of a mean, in standard deviations, and of a deviation.
///
/// A field goes with a junction tree if that takes up to 64 KiB of memory; --check takes a table, and compares its exact inference if it has one. In f32 firmware gives inputs as they are; in fixed point it gives inputs that were standardised
/// as (x - mean) / scale, in numbers that are printed and stand beside the attributes in source text.
///
/// Weights of 0 and attributes without weights are left out. Fixed point (i16, i8) needs additions and comparisons only, for cores without floating point.
#[derive(Debug, Group)]
#[command(after_help = "Examples:
  gibbsite export --model gestures.gib --to rust --scalar i16 model.rs
  gibbsite export --model gestures.gib --to c --max-length 50 --check test.txt model.h
  gibbsite export --model wind.gib --to c --check features.npy wind.h
  gibbsite export --model chunk.gib --to image --attributes exact chunk.img && gibbsite inspect chunk.img")]
pub(crate) struct Export {
    /// The model.
    #[arg(long, value_name = "M")]
    pub(crate) model: PathBuf,
    /// What to write: a binary image (little-endian), C or Rust source.
    #[arg(long, value_enum, value_name = "FORM")]
    pub(crate) to: Form,
    /// What the weights become.
    #[arg(long, value_enum, default_value_t = ScalarName::F32)]
    pub(crate) scalar: ScalarName,
    /// The longest sequence, for which memory is planned.
    #[arg(long, value_name = "T", default_value_t = 100, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=65_535))]
    pub(crate) max_length: u32,
    /// How firmware names attributes.
    #[arg(long, value_enum, default_value_t = Attributes::Hash)]
    pub(crate) attributes: Attributes,
    /// Sequences: only labellings that are valid in this scheme.
    #[arg(long, value_enum)]
    pub(crate) scheme: Option<Scheme>,
    /// Sequences: transitions that are not allowed, a line `label<TAB>label` each.
    #[arg(long, value_name = "FILE")]
    pub(crate) forbid: Option<PathBuf>,
    /// Compare with the model in double precision on this data.
    #[arg(long, value_name = "DATA")]
    pub(crate) check: Option<PathBuf>,
    /// How the data of --check is written; as the model's training data by default.
    #[arg(long, value_enum, requires = "check")]
    pub(crate) format: Option<Format>,
    /// The file to write.
    #[arg(value_name = "OUT")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// The words, little-endian.
    Image,
    /// A header with the words as a constant, sizes of memory, labels and numbers of attributes.
    C,
    /// The same for Rust, to `include!` or as a module.
    Rust,
}

impl Form {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::C => "c",
            Self::Rust => "rust",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScalarName {
    /// Single precision.
    F32,
    /// Fixed point, weights in 16 bits.
    I16,
    /// Fixed point, weights in 8 bits.
    I8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Attributes {
    /// By name, through 32-bit hashes: an unknown name is taken for one of n known ones with probability n/2³².
    Hash,
    /// By name, and the names are stored.
    Exact,
    /// By number only: the smallest image.
    Numbers,
}
