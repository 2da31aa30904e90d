//! Why there is no Gaussian CRF.

use std::fmt;

/// Why there is no fit. Columns count from 0.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum GaussianError {
    /// Inputs and outputs of different lengths.
    Lengths {
        /// Rows of inputs.
        x: usize,
        /// Rows of outputs.
        y: usize,
    },
    /// One weight for each row is needed.
    Weights {
        /// Weights found.
        found: usize,
        /// Rows.
        rows: usize,
    },
    /// Fewer than two rows: there is no variance to learn.
    TooFew(usize),
    /// An entry is missing or not finite.
    NotFinite {
        /// Whether it is an output.
        output: bool,
        /// Its row.
        row: usize,
        /// Its column.
        column: usize,
    },
    /// An output that does not vary (without intercept: that is 0 everywhere): its precision would be infinite.
    ConstantOutput(usize),
    /// `λ = 0` and outputs that are linear combinations of each other.
    SingularOutputs,
    /// `λ_Θ = 0` and inputs that explain an output exactly.
    ExactInputs {
        /// Inputs.
        inputs: usize,
        /// Samples.
        samples: usize,
    },
    /// Without penalty the likelihood has no bound on the entries that are not 0.
    RefitUnbounded,
    /// A setting that cannot be used.
    Parameter {
        /// Which.
        name: &'static str,
        /// Its value.
        value: f64,
    },
    /// More folds than rows, or fewer than two.
    Folds {
        /// Folds asked for.
        folds: usize,
        /// Rows.
        rows: usize,
    },
    /// The memory that is allowed is not enough.
    Memory {
        /// Bytes that are needed.
        need: u64,
        /// Bytes that are allowed.
        budget: u64,
    },
    /// Interrupted before there was anything to choose from.
    Interrupted,
}

impl fmt::Display for GaussianError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lengths { x, y } => {
                write!(f, "the inputs have {x} rows and the outputs {y}: expected as many of both")
            }
            Self::Weights { found, rows } => {
                write!(f, "found {found} sample weights, expected one for each of {rows} rows")
            }
            Self::TooFew(rows) => {
                write!(f, "found {rows} row, expected at least 2: there is no variance to learn from")
            }
            Self::NotFinite { output, row, column } => {
                let what = if *output { "outputs" } else { "inputs" };
                write!(f, "{what}, row {}, column {}: found no finite number", row + 1, column + 1)
            }
            Self::ConstantOutput(column) => write!(
                f,
                "output column {} does not vary: its precision would be infinite; leave it out",
                column + 1
            ),
            Self::SingularOutputs => write!(
                f,
                "some outputs are linear combinations of others, so that with lambda = 0 the likelihood has no bound: \
                 use a lambda above 0, or leave out the duplicates"
            ),
            Self::ExactInputs { inputs, samples } => write!(
                f,
                "{inputs} inputs explain an output of {samples} samples exactly, so that with lambda-theta = 0 the likelihood has no \
                 bound: use a lambda-theta above 0"
            ),
            Self::RefitUnbounded => write!(
                f,
                "the entries that are not 0 explain an output exactly, so that refitting them without penalty has no bound: use a larger \
                 lambda, or no refit"
            ),
            Self::Parameter { name, value } => write!(f, "the {name} is {value}, which is not possible"),
            Self::Folds { folds, rows } => write!(
                f,
                "{folds} folds of {rows} rows: expected at least 2 folds, and at least 2 rows left to learn from"
            ),
            Self::Memory { need, budget } => write!(
                f,
                "the fit needs about {} MiB of memory and {} MiB are allowed: allow more, use a larger lambda, or leave out inputs or outputs",
                need.div_ceil(1 << 20),
                budget >> 20
            ),
            Self::Interrupted => write!(f, "interrupted before a penalty was tried on all folds"),
        }
    }
}

impl std::error::Error for GaussianError {}
