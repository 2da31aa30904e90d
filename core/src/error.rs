//! What can go wrong, as small enums without strings. Each names the place, so that the desk can
//! turn it into a sentence and the device into a number.

use crate::ids::{FactorId, VarId};
use core::fmt;

/// A factor graph whose flat arrays do not fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GraphError {
    /// The variable has arity 0: it could take no value.
    ArityZero(VarId),
    /// `scope_start` or `table_start` has the wrong length, does not begin at 0, falls, or does not
    /// end at the length of what it divides.
    Offsets,
    /// The factor names a variable that the graph does not have.
    NoSuchVariable(FactorId, VarId),
    /// The factor names the same variable twice.
    RepeatedVariable(FactorId, VarId),
    /// The factor has more variables than [`MAX_SCOPE`](crate::table::MAX_SCOPE).
    ScopeTooLong(FactorId),
    /// The factor's table does not have one entry per configuration of its scope.
    TableLength(FactorId),
    /// The factor's table holds NaN or `+inf`.
    BadValue(FactorId),
    /// More variables, scope entries or table entries than 32 bits can count.
    TooLarge,
}

impl fmt::Display for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ArityZero(v) => write!(f, "variable {v} has arity 0"),
            Self::Offsets => write!(f, "the offset arrays of the graph do not fit its data"),
            Self::NoSuchVariable(k, v) => write!(f, "factor {k} names variable {v}, which does not exist"),
            Self::RepeatedVariable(k, v) => write!(f, "factor {k} names variable {v} twice"),
            Self::ScopeTooLong(k) => {
                write!(f, "factor {k} has more than {} variables", crate::table::MAX_SCOPE)
            }
            Self::TableLength(k) => write!(f, "the table of factor {k} does not match its scope"),
            Self::BadValue(k) => write!(f, "the table of factor {k} holds NaN or +inf"),
            Self::TooLarge => write!(f, "the graph is too large for 32-bit offsets"),
        }
    }
}

impl core::error::Error for GraphError {}

/// A table operation whose operands do not fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TableError {
    /// More than [`MAX_SCOPE`](crate::table::MAX_SCOPE) variables, or more than the table's capacity.
    ScopeTooLong,
    /// A scope names a variable twice.
    RepeatedVariable(VarId),
    /// An operand's variable is missing from the scope that should contain it.
    MissingVariable(VarId),
    /// Two operands disagree on the variable's arity, or the arity is 0.
    Arity(VarId),
    /// A value slice does not have one entry per configuration.
    Length,
    /// The observed label is not smaller than the variable's arity, or contradicts another.
    Label(VarId),
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ScopeTooLong => write!(f, "the scope has too many variables"),
            Self::RepeatedVariable(v) => write!(f, "the scope names variable {v} twice"),
            Self::MissingVariable(v) => write!(f, "variable {v} is missing from the other scope"),
            Self::Arity(v) => write!(f, "the tables disagree on the arity of variable {v}, or it is 0"),
            Self::Length => write!(f, "a table does not have one entry per configuration"),
            Self::Label(v) => {
                write!(f, "the label of variable {v} is outside its arity or contradicts another")
            }
        }
    }
}

impl core::error::Error for TableError {}

/// An inference that could not give an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InferError {
    /// A memory argument is shorter than the matching `…_len` says.
    Memory {
        /// Entries needed.
        needed: usize,
        /// Entries given.
        given: usize,
    },
    /// Every configuration has probability zero: `log Z = -inf`, marginals are undefined.
    ZeroProbability,
    /// A score is NaN or `+inf`.
    BadValue,
    /// Lengths, labels or counts of the arguments do not fit together.
    Shape,
    /// The engine needs a factor graph without cycles; this factor closes one.
    Cycle(FactorId),
    /// The plan is not one for this graph; the number is the word where it was noticed.
    Plan(u32),
    /// An item names an attribute that the model does not have.
    Attribute(u32),
    /// A precision matrix is not positive definite to rounding; the number is the place in the order of elimination where it was noticed.
    Pivot(u32),
    /// More items than the model's image, or the memory, was made for.
    TooLong {
        /// Items that there is room for.
        longest: usize,
    },
}

impl fmt::Display for InferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory { needed, given } => {
                write!(f, "a memory argument has {given} entries where {needed} are needed")
            }
            Self::ZeroProbability => {
                write!(f, "every configuration has probability zero: log Z = -inf, marginals are undefined")
            }
            Self::BadValue => write!(f, "a score is NaN or +inf"),
            Self::Shape => write!(f, "the arguments' lengths do not fit together"),
            Self::Cycle(k) => write!(f, "factor {k} closes a cycle"),
            Self::Plan(word) => write!(f, "the plan does not fit the graph (word {word})"),
            Self::Attribute(a) => write!(f, "the model has no attribute {a}"),
            Self::Pivot(place) => {
                write!(f, "the precision matrix is not positive definite to rounding (place {place})")
            }
            Self::TooLong { longest } => write!(f, "the sequence is longer than {longest} items"),
        }
    }
}

impl core::error::Error for InferError {}

/// Words that are no model image, or one that this version cannot use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImageError {
    /// The first word is not that of an image.
    NotAnImage,
    /// An image for machines of the other byte order.
    Endianness,
    /// An image of another major version.
    Version {
        /// The image's.
        major: u16,
        /// The image's.
        minor: u16,
    },
    /// Fewer words than the image says it has.
    Truncated,
    /// The checksum does not fit: the image is damaged.
    Checksum,
    /// A section is at fault.
    Section {
        /// Its number, as in [`image::id`](crate::image::id).
        section: u32,
        /// What is wrong with it.
        why: SectionFault,
    },
    /// The image has weights of another kind than asked for.
    Scalar(crate::image::Scalar),
}

/// What can be wrong with a section of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SectionFault {
    /// It must be there and is not.
    Missing,
    /// This version does not know it, and it may not be skipped.
    Unknown,
    /// Identifiers do not ascend.
    Order,
    /// It overlaps another or leads out of the image.
    Bounds,
    /// It is longer or shorter than the counts say.
    Length,
    /// It holds a number that may not be there.
    Value,
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnImage => write!(f, "this is no model image of gibbsite"),
            Self::Endianness => write!(f, "the image is for machines of the other byte order"),
            Self::Version { major, minor } => write!(
                f,
                "the image has version {major}.{minor}; this library reads {}.x",
                crate::image::MAJOR
            ),
            Self::Truncated => write!(f, "the image is shorter than it says"),
            Self::Checksum => write!(f, "the image is damaged: its checksum does not fit"),
            Self::Section { section, why } => {
                let why = match why {
                    SectionFault::Missing => "is missing",
                    SectionFault::Unknown => "is unknown to this version",
                    SectionFault::Order => "is out of order",
                    SectionFault::Bounds => "overlaps another or leads out of the image",
                    SectionFault::Length => "has a wrong length",
                    SectionFault::Value => "holds a number that may not be there",
                };
                write!(f, "section {section} of the image {why}")
            }
            Self::Scalar(found) => write!(f, "the image has weights of another kind: {found:?}"),
        }
    }
}

impl core::error::Error for ImageError {}

/// `Ok` if `given` entries are enough.
pub(crate) fn need(needed: usize, given: usize) -> Result<(), InferError> {
    if given < needed { Err(InferError::Memory { needed, given }) } else { Ok(()) }
}
