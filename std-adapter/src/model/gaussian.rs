//! What a Gaussian CRF puts in a model file.
//!
//! ```text
//! section  what
//! lidx     row and column (u32 each) of the entries of Λ that are not 0, upper triangle with diagonal, column after column
//! lval     their values (f64)
//! tidx     row (input) and column (output) of the entries of Θ that are not 0, column after column
//! tval     their values (f64)
//! icpt     what is added to the mean of each output (f64)
//! ```
//!
//! Λ is positive definite in every file: writing starts from a factorised one, opening factorises it again.

use super::container::{self, Container, Kind, ModelError, bytes_of};
use super::header::Header;
use crate::gaussian::GaussianFit;
use crate::gaussian::predict::Forecaster;
use crate::solver::newton_blocks::Factored;
use crate::sparse::Sparse;
use serde_json::{Value, json};

/// A fitted Gaussian CRF.
#[derive(Clone, Debug, PartialEq)]
pub struct GaussianModel {
    /// `Λ`, symmetric and positive definite, both triangles.
    pub lambda: Sparse,
    /// `Θ`, a row for each input.
    pub theta: Sparse,
    /// What is added to the mean of each output.
    pub intercept: Vec<f64>,
    /// Names of the inputs, if their file had some.
    pub inputs: Option<Vec<String>>,
    /// Names of the outputs, if their file had some.
    pub outputs: Option<Vec<String>>,
    /// How it came about.
    pub facts: GaussianFacts,
}

/// How a Gaussian CRF came about.
#[derive(Clone, Debug, PartialEq)]
pub struct GaussianFacts {
    /// `λ_Λ` and `λ_Θ`.
    pub penalties: (f64, f64),
    /// The solver as typed.
    pub solver: String,
    /// The objective, penalty included.
    pub objective: f64,
    /// The subdifferential violation.
    pub violation: f64,
    /// Outer iterations.
    pub iterations: u64,
    /// Whether the tolerance was met.
    pub converged: bool,
    /// Whether an intercept was asked for.
    pub intercept: bool,
    /// Whether columns were standardised for the fit.
    pub standardize: bool,
    /// Whether the entries that are not 0 were fitted again without penalty.
    pub refit: bool,
    /// Rows of the data.
    pub samples: usize,
    /// Files of inputs and outputs, without folders.
    pub data: String,
}

impl GaussianModel {
    /// From a fit.
    pub fn new(
        fit: &GaussianFit,
        inputs: Option<Vec<String>>,
        outputs: Option<Vec<String>>,
        facts: GaussianFacts,
    ) -> Self {
        Self {
            lambda: fit.lambda.clone(),
            theta: fit.theta.clone(),
            intercept: fit.intercept.clone(),
            inputs,
            outputs,
            facts,
        }
    }

    /// Row, column and value of the entries of Λ that are not 0: upper triangle with diagonal.
    pub fn lambda_entries(&self) -> Vec<(usize, usize, f64)> {
        self.lambda.entries().filter(|e| e.0 <= e.1).collect()
    }

    /// Input, output and value of the entries of Θ that are not 0.
    pub fn theta_entries(&self) -> Vec<(usize, usize, f64)> {
        self.theta.entries().collect()
    }

    /// Ready to be asked; `None` only if Λ was changed to something that is not positive definite.
    pub fn forecaster(&self) -> Option<Forecaster> {
        Forecaster::new(self.lambda.to_dense(), self.theta.to_dense(), self.intercept.clone())
    }

    /// The self-description of the file.
    pub fn header(&self) -> Value {
        let facts = &self.facts;
        json!({
            "about": "a sparse Gaussian CRF",
            "inputs": self.theta.rows(),
            "outputs": self.lambda.cols(),
            "lambda_penalty": facts.penalties.0,
            "theta_penalty": facts.penalties.1,
            "solver": facts.solver,
            "objective": facts.objective,
            "violation": facts.violation,
            "iterations": facts.iterations,
            "converged": facts.converged,
            "intercept": facts.intercept,
            "standardize": facts.standardize,
            "refit": facts.refit,
            "samples": facts.samples,
            "data": facts.data,
            "nonzeros_lambda": self.lambda.nonzeros(),
            "nonzeros_theta": self.theta.nonzeros(),
            "input_names": self.inputs,
            "output_names": self.outputs,
        })
    }

    /// The bytes of the model file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let pack = |list: &[(usize, usize, f64)]| -> (Vec<u8>, Vec<u8>) {
            let places = list.iter().flat_map(|e| [e.0 as u32, e.1 as u32]).flat_map(u32::to_le_bytes);
            (places.collect(), list.iter().flat_map(|e| e.2.to_le_bytes()).collect())
        };
        let (lidx, lval) = pack(&self.lambda_entries());
        let (tidx, tval) = pack(&self.theta_entries());
        let icpt = bytes_of(&self.intercept);
        let sections = [
            (*b"lidx", lidx.as_slice()),
            (*b"lval", &lval),
            (*b"tidx", &tidx),
            (*b"tval", &tval),
            (*b"icpt", &icpt),
        ];
        container::write(Kind::GAUSSIAN, &self.header(), &sections)
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
        file.expect(Kind::GAUSSIAN)?;
        let header = Header(&file.header);
        let (n, p) = (header.count("inputs")?, header.count("outputs")?);
        let intercept = file.numbers(*b"icpt", f64::from_le_bytes)?;
        if intercept.len() != p || !intercept.iter().all(|v| v.is_finite()) {
            return Err(ModelError::unfit());
        }
        let read = |places: [u8; 4], values: [u8; 4], rows: usize, upper: bool| {
            let places = file.numbers(places, u64::from_le_bytes)?;
            let values = file.numbers(values, f64::from_le_bytes)?;
            if places.len() != values.len()
                || upper && values.len() < p
                || rows.checked_mul(p).is_none_or(|n| n > LARGEST)
            {
                return Err(ModelError::unfit());
            }
            let mut entries = Vec::with_capacity(values.len());
            let mut last = None;
            for (place, value) in places.into_iter().zip(values) {
                let (i, j) = ((place & u64::from(u32::MAX)) as usize, (place >> 32) as usize);
                let bound = if upper { j + 1 } else { rows };
                if i >= bound || j >= p || !value.is_finite() || last >= Some((j, i)) {
                    return Err(ModelError::unfit());
                }
                last = Some((j, i));
                entries.push((i as u32, j as u32, value));
                if upper && i != j {
                    entries.push((j as u32, i as u32, value));
                }
            }
            Sparse::from_entries(rows, p, entries).ok_or_else(ModelError::unfit)
        };
        let lambda = read(*b"lidx", *b"lval", p, true)?;
        let theta = read(*b"tidx", *b"tval", n, false)?;
        if p == 0 || Factored::new(&lambda).is_none() {
            return Err(ModelError::Content("its Λ is not positive definite".into()));
        }
        let names = |name: &str, count: usize| -> Result<Option<Vec<String>>, ModelError> {
            match &file.header[name] {
                Value::Null => Ok(None),
                Value::Array(list) if list.len() == count => {
                    let all: Option<Vec<String>> =
                        list.iter().map(|v| v.as_str().map(str::to_owned)).collect();
                    all.map(Some).ok_or_else(|| header.wrong(name))
                }
                _ => Err(header.wrong(name)),
            }
        };
        let facts = GaussianFacts {
            penalties: (header.number("lambda_penalty")?, header.number("theta_penalty")?),
            solver: header.text("solver")?,
            objective: header.number_if_any("objective")?,
            violation: header.number_if_any("violation")?,
            iterations: header.count("iterations")? as u64,
            converged: header.flag("converged")?,
            intercept: header.flag("intercept")?,
            standardize: header.flag("standardize")?,
            // Files of before there were refits do not say.
            refit: file.header["refit"] == Value::Bool(true),
            samples: header.count("samples")?,
            data: header.text("data")?,
        };
        Ok(Self {
            lambda,
            theta,
            intercept,
            inputs: names("input_names", n)?,
            outputs: names("output_names", p)?,
            facts,
        })
    }
}

/// No matrix of a model has more entries, zeros included: a damaged header must not ask for all memory when it is used.
const LARGEST: usize = 1 << 30;
