//! What can be wrong with a UAI file, and where.

use std::fmt;

/// A fault in a UAI file: the place and what was found there. The caller adds the file's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UaiError {
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// Which token of its line, counted from 1 without comments; `None` at the end of the file.
    pub token: Option<usize>,
    /// What is wrong.
    pub kind: UaiErrorKind,
}

impl fmt::Display for UaiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.token {
            Some(token) => write!(f, "line {}, token {token}: {}", self.line, self.kind),
            None => write!(f, "line {}, end of file: {}", self.line, self.kind),
        }
    }
}

impl std::error::Error for UaiError {}

/// What a reader of UAI files was about to read. Variables and factors count from 0, as in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wanted {
    /// `MARKOV` or `BAYES`.
    Preamble,
    /// How many variables the model has.
    VariableCount,
    /// The arity of a variable.
    Arity(usize),
    /// How many factors the model has.
    FactorCount,
    /// How many variables a factor has.
    ScopeLength(usize),
    /// A variable of a factor.
    ScopeVariable(usize),
    /// How many entries a factor's table has.
    EntryCount(usize),
    /// An entry of a table.
    Entry {
        /// The factor.
        factor: usize,
        /// Which entry, counted from 1.
        entry: usize,
        /// How many there should be.
        entries: usize,
    },
    /// A number of an evidence file.
    Evidence,
    /// The first word of a result file.
    Header(&'static str),
    /// log10 of the partition function.
    LogZ,
    /// A probability of a variable.
    Probability(usize),
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Preamble => write!(f, "the preamble MARKOV or BAYES"),
            Self::VariableCount => write!(f, "the number of variables"),
            Self::Arity(v) => write!(f, "the arity of variable {v}"),
            Self::FactorCount => write!(f, "the number of factors"),
            Self::ScopeLength(k) => write!(f, "the number of variables of factor {k}"),
            Self::ScopeVariable(k) => write!(f, "a variable of factor {k}"),
            Self::EntryCount(k) => write!(f, "the number of entries of factor {k}"),
            Self::Entry { factor, entry, entries } => {
                write!(f, "entry {entry} of {entries} of factor {factor}")
            }
            Self::Evidence => write!(f, "a count, a variable or a label"),
            Self::Header(word) => write!(f, "the header {word}"),
            Self::LogZ => write!(f, "log10 of the partition function"),
            Self::Probability(v) => write!(f, "a probability of variable {v}"),
        }
    }
}

/// What is wrong with a UAI file. `found` is the token as it stands in the file, shortened if long.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UaiErrorKind {
    /// The file has no tokens at all.
    Empty(Wanted),
    /// The file ends too early.
    Truncated(Wanted),
    /// A word that is none of the expected ones.
    Word {
        /// What should stand there.
        wanted: Wanted,
        /// What does.
        found: String,
    },
    /// Not a whole number that is 0 or more.
    Whole {
        /// What should stand there.
        wanted: Wanted,
        /// What does.
        found: String,
    },
    /// A whole number above what can be counted.
    TooMany {
        /// What should stand there.
        wanted: Wanted,
        /// What does.
        found: String,
        /// The largest possible one.
        most: u64,
    },
    /// A variable without values.
    ArityZero(usize),
    /// A factor names a variable that the model lacks.
    NoSuchVariable {
        /// The factor.
        factor: usize,
        /// The variable's number.
        found: String,
        /// How many variables there are.
        variables: usize,
    },
    /// A factor names a variable twice.
    RepeatedVariable {
        /// The factor.
        factor: usize,
        /// The variable.
        variable: u32,
    },
    /// A table, or all tables together, have more entries than 32 bits count.
    TableTooLarge(usize),
    /// The entry count of a table is not the product of the arities.
    EntryCount {
        /// The factor.
        factor: usize,
        /// The count in the file.
        found: String,
        /// The product of the arities.
        expected: usize,
    },
    /// A number that is not one, is negative or is not finite.
    Number {
        /// What should stand there.
        wanted: Wanted,
        /// What does.
        found: String,
    },
    /// A table in which every entry is zero.
    AllZero(usize),
    /// Something after the end.
    Trailing {
        /// What stands there.
        found: String,
        /// What was the last thing expected.
        after: &'static str,
    },
    /// The number of tokens of an evidence file fits neither form.
    EvidenceShape {
        /// The first number.
        first: u64,
        /// How many numbers there are.
        numbers: usize,
    },
    /// The counted form with a number of samples other than 1.
    Samples(u64),
    /// Evidence on a variable that the model lacks.
    EvidenceVariable {
        /// The variable's number.
        found: String,
        /// How many variables there are.
        variables: usize,
    },
    /// Evidence outside the variable's arity.
    EvidenceLabel {
        /// The variable.
        variable: u32,
        /// The label.
        found: String,
        /// The variable's arity.
        arity: u32,
    },
    /// Evidence that observes a variable with two labels.
    Contradiction {
        /// The variable.
        variable: u32,
        /// The label it had before.
        before: u32,
        /// The label it has here.
        here: u32,
    },
}

impl fmt::Display for UaiErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty(wanted) => write!(f, "the file is empty, expected {wanted}"),
            Self::Truncated(wanted) => write!(f, "the file ends here, expected {wanted}"),
            Self::Word { wanted, found } => write!(f, "found `{found}`, expected {wanted}"),
            Self::Whole { wanted, found } => {
                write!(f, "found `{found}`, expected {wanted}, a whole number of at least 0")
            }
            Self::TooMany { wanted, found, most } => {
                write!(f, "found `{found}`, expected {wanted}, at most {most}")
            }
            Self::ArityZero(v) => write!(f, "variable {v} has arity 0, expected at least 1"),
            Self::NoSuchVariable { factor, found, variables } => {
                write!(f, "factor {factor} names variable {found}, but the model has {}", Range(*variables))
            }
            Self::RepeatedVariable { factor, variable } => {
                write!(f, "factor {factor} names variable {variable} twice")
            }
            Self::TableTooLarge(k) => {
                write!(f, "with factor {k} the tables have more than {} entries", u32::MAX)
            }
            Self::EntryCount { factor, found, expected } => write!(
                f,
                "the table of factor {factor} announces {found} entries, expected {expected}, \
                 the product of its arities"
            ),
            Self::Number { wanted: wanted @ Wanted::LogZ, found } => {
                write!(f, "found `{found}`, expected {wanted}, a number")
            }
            Self::Number { wanted, found } => {
                write!(f, "found `{found}`, expected {wanted}, a finite number of at least 0")
            }
            Self::AllZero(k) => {
                write!(f, "every entry of factor {k} is zero, expected at least one possible configuration")
            }
            Self::Trailing { found, after } => {
                write!(f, "found `{found}` after {after}, expected the end of the file")
            }
            Self::EvidenceShape { first: 1, numbers } => write!(
                f,
                "the evidence has {}, expected `1 variable label`, or 1 (sample), a count and as many pairs",
                Numbers(*numbers)
            ),
            Self::EvidenceShape { first, numbers } => {
                let expected = u128::from(*first) * 2 + 1;
                write!(
                    f,
                    "the evidence has {}, expected {expected}: \
                     the count {first}, then a variable and a label each",
                    Numbers(*numbers)
                )
            }
            Self::Samples(n) => write!(f, "the file holds {n} evidence samples, expected 1"),
            Self::EvidenceVariable { found, variables } => {
                write!(f, "the evidence names variable {found}, but the model has {}", Range(*variables))
            }
            Self::EvidenceLabel { variable, found, arity } => {
                let most = arity.saturating_sub(1);
                write!(f, "variable {variable} is observed as {found}, but it has labels 0 to {most}")
            }
            Self::Contradiction { variable, before, here } => {
                write!(f, "variable {variable} is observed as {here}, but before as {before}")
            }
        }
    }
}

/// So many numbers, in words.
struct Numbers(usize);

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} number{}", self.0, if self.0 == 1 { "" } else { "s" })
    }
}

/// The numbers of so many variables, in words.
struct Range(usize);

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.checked_sub(1) {
            Some(last) => write!(f, "variables 0 to {last}"),
            None => write!(f, "no variables"),
        }
    }
}
