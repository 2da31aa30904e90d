//! A fitted sparse regression: what it was fitted to, and its non-zero weights.

use super::container::{self, Container, Kind, ModelError, bytes_of};
use super::header::Header;
use crate::data::dataset::Names;
use crate::data::matrix::Matrix;
use crate::regress::Task;
use gibbsite_core::math::{Real, sigmoid};
use serde_json::{Value, json};

/// How the features of the non-zero weights are called in the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Naming {
    /// By numbers, ascending: svmlight files.
    Numbers {
        /// What such files count from: 0 or 1.
        first: u32,
        /// The features' numbers.
        features: Vec<u32>,
    },
    /// By column names: CSV files.
    Names(Vec<String>),
}

impl Naming {
    /// Takes the names of some columns.
    pub fn of(names: &Names, columns: impl Iterator<Item = usize>) -> Self {
        match names {
            Names::Columns(all) => {
                Self::Names(columns.map(|j| all.get(j).cloned().unwrap_or_default()).collect())
            }
            Names::Numbers(all) => {
                let features: Vec<u32> = columns.filter_map(|j| all.get(j).copied()).collect();
                Self::Numbers { first: u32::from(all.first() != Some(&0)), features }
            }
            Names::Counted { first, .. } => {
                Self::Numbers { first: *first, features: columns.map(|j| first + j as u32).collect() }
            }
        }
    }
}

/// A fitted sparse regression.
///
/// ```
/// use gibbsite::model::{Naming, RegressionModel};
/// let mut model = RegressionModel::example();
/// model.weights = vec![0.5];
/// model.naming = Naming::Numbers { first: 1, features: vec![3] };
/// let again = RegressionModel::open(&model.to_bytes())?;
/// assert_eq!(again, model);
/// assert_eq!(again.feature(0), "3");
/// # Ok::<(), gibbsite::model::ModelError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RegressionModel {
    /// Which loss.
    pub task: Task,
    /// Penalty on `|x|`.
    pub lambda: f64,
    /// The least penalty for which everything would be 0.
    pub lambda_max: f64,
    /// Weight of `½‖x‖²`.
    pub l2: f64,
    /// The objective on the training data.
    pub objective: f64,
    /// The certified distance from the optimum; infinite if there is no certificate.
    pub gap: f64,
    /// The gap that was asked for, relative to the objective at 0.
    pub tolerance: f64,
    /// Whether the gap was reached, at a penalty that was not chosen in haste.
    pub converged: bool,
    /// Whether somebody asked to stop before all was done: the fit, a path, the choice of the penalty.
    pub interrupted: bool,
    /// Name of the algorithm.
    pub solver: String,
    /// Rows of the training data.
    pub samples: usize,
    /// Columns of the training data.
    pub features: usize,
    /// For the logistic task, the labels that count as -1 and +1.
    pub labels: Option<[f64; 2]>,
    /// What the features of [`weights`](Self::weights) are called.
    pub naming: Naming,
    /// Whether the penalty was on standardised columns; the weights are for raw ones either way.
    pub standardize: bool,
    /// Whether weights had to be at least 0.
    pub positive: bool,
    /// Whether columns had penalty factors of their own.
    pub weighted: bool,
    /// The intercept, if one was asked for.
    pub intercept: Option<f64>,
    /// Name of the training data, without folders.
    pub data: String,
    /// Name of the column that is predicted, where one was given.
    pub target: Option<String>,
    /// The weights that are not zero.
    pub weights: Vec<f64>,
}

const INDEX: [u8; 4] = *b"indx";
const VALUE: [u8; 4] = *b"valu";
const NAMES: [u8; 4] = *b"name";

impl RegressionModel {
    /// A Lasso with nothing in it: for tests and examples, and to fill in.
    pub fn example() -> Self {
        Self {
            task: Task::Lasso,
            lambda: 1.0,
            lambda_max: 1.0,
            l2: 0.0,
            objective: 0.0,
            gap: 0.0,
            tolerance: 1e-6,
            converged: true,
            interrupted: false,
            solver: "auto".into(),
            samples: 1,
            features: 3,
            labels: None,
            naming: Naming::Numbers { first: 1, features: Vec::new() },
            standardize: false,
            positive: false,
            weighted: false,
            intercept: None,
            data: String::new(),
            target: None,
            weights: Vec::new(),
        }
    }

    /// The self-description that the file begins with.
    pub fn header(&self) -> Value {
        json!({
            "task": task_name(self.task),
            "loss": match self.task {
                Task::Lasso => "squared",
                Task::Logistic => "logistic",
            },
            "lambda": self.lambda,
            "lambda_max": self.lambda_max,
            "l2": self.l2,
            "objective": self.objective,
            "gap": self.gap,
            "tolerance": self.tolerance,
            "converged": self.converged,
            "interrupted": self.interrupted,
            "solver": self.solver,
            "samples": self.samples,
            "features": self.features,
            "nonzeros": self.weights.len(),
            "labels": self.labels,
            "feature_names": matches!(self.naming, Naming::Names(_)),
            "first_feature": match self.naming {
                Naming::Numbers { first, .. } => Some(first),
                Naming::Names(_) => None,
            },
            "standardize": self.standardize,
            "positive": self.positive,
            "weighted": self.weighted,
            "intercept": self.intercept,
            "data": self.data,
            "target": self.target,
        })
    }

    /// The bytes of the model file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let values = bytes_of(&self.weights);
        let (tag, names) = match &self.naming {
            Naming::Names(names) => (NAMES, json!(names).to_string().into_bytes()),
            Naming::Numbers { features, .. } => {
                (INDEX, features.iter().flat_map(|f| f.to_le_bytes()).collect())
            }
        };
        let sections = [(tag, names.as_slice()), (VALUE, &values)];
        container::write(Kind::REGRESSION, &self.header(), &sections)
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
        file.expect(Kind::REGRESSION)?;
        let header = Header(&file.header);
        let weights = file.numbers(VALUE, f64::from_le_bytes)?;
        if weights.len() != header.count("nonzeros")? || !weights.iter().all(|v| v.is_finite()) {
            return Err(ModelError::Content("its weights do not fit its header".into()));
        }
        let (naming, len) = if header.flag("feature_names")? {
            let names = file.section(NAMES).and_then(|b| serde_json::from_slice::<Vec<String>>(b).ok());
            let names = names.ok_or_else(|| ModelError::Content("its feature names are no list".into()))?;
            let len = names.len();
            (Naming::Names(names), len)
        } else {
            let first = header.count("first_feature")?;
            let features = file.numbers(INDEX, u32::from_le_bytes)?;
            if first > 1
                || !features.is_sorted_by(|a, b| a < b)
                || features.first() < Some(&(first as u32)) && !features.is_empty()
            {
                return Err(header.wrong("first_feature"));
            }
            let len = features.len();
            (Naming::Numbers { first: first as u32, features }, len)
        };
        if len != weights.len() {
            return Err(ModelError::Content("its features do not fit its weights".into()));
        }
        let task = match header.text("task")?.as_str() {
            "lasso" => Task::Lasso,
            "logistic" => Task::Logistic,
            _ => return Err(header.wrong("task")),
        };
        let labels = match (&file.header["labels"], task) {
            (Value::Null, Task::Lasso) => None,
            (Value::Array(found), Task::Logistic) => match found.as_slice() {
                [a, b] => match (a.as_f64(), b.as_f64()) {
                    (Some(a), Some(b)) => Some([a, b]),
                    _ => return Err(header.wrong("labels")),
                },
                _ => return Err(header.wrong("labels")),
            },
            _ => return Err(header.wrong("labels")),
        };
        let intercept = match &file.header["intercept"] {
            Value::Null => None,
            _ => Some(header.number("intercept")?),
        };
        Ok(Self {
            task,
            lambda: header.number("lambda")?,
            lambda_max: header.number("lambda_max")?,
            l2: header.number("l2")?,
            objective: header.number("objective")?,
            // JSON has no infinity.
            gap: if file.header["gap"].is_null() { f64::INFINITY } else { header.number("gap")? },
            tolerance: header.number("tolerance")?,
            converged: header.flag("converged")?,
            // Older files do not say.
            interrupted: !file.header["interrupted"].is_null() && header.flag("interrupted")?,
            solver: header.text("solver")?,
            samples: header.count("samples")?,
            features: header.count("features")?,
            labels,
            naming,
            standardize: header.flag("standardize")?,
            positive: header.flag("positive")?,
            weighted: header.flag("weighted")?,
            intercept,
            data: header.text("data")?,
            target: if file.header["target"].is_null() { None } else { Some(header.text("target")?) },
            weights,
        })
    }

    /// What the `k`-th non-zero weight's feature is called in the data.
    pub fn feature(&self, k: usize) -> String {
        match &self.naming {
            Naming::Numbers { features, .. } => features.get(k).map_or(String::new(), u32::to_string),
            Naming::Names(names) => names.get(k).cloned().unwrap_or_default(),
        }
    }

    /// The features that the model looks at, as [`ReadParams::columns`](crate::data::dataset::ReadParams::columns) wants them.
    pub fn columns(&self) -> Names {
        match &self.naming {
            Naming::Numbers { features, .. } => Names::Numbers(features.clone()),
            Naming::Names(names) => Names::Columns(names.clone()),
        }
    }

    /// `aᵀx + b` for each row of a matrix whose columns are [`columns`](Self::columns).
    pub fn margins<V: Real>(&self, matrix: &Matrix<V>) -> Vec<f64> {
        let mut margins = matrix.product(&self.weights);
        if let Some(b) = self.intercept {
            margins.iter_mut().for_each(|z| *z += b);
        }
        margins
    }

    /// The prediction for a margin: itself for the Lasso, the likelier label otherwise (the second of equals).
    pub fn predict(&self, margin: f64) -> f64 {
        match self.labels {
            Some([negative, positive]) => {
                if margin < 0.0 {
                    negative
                } else {
                    positive
                }
            }
            None => margin,
        }
    }

    /// Both labels and their probabilities at a margin; `None` for the Lasso.
    pub fn probabilities(&self, margin: f64) -> Option<[(f64, f64); 2]> {
        let [negative, positive] = self.labels?;
        Some([(negative, sigmoid(-margin)), (positive, sigmoid(margin))])
    }
}

/// `lasso` or `logistic`.
pub fn task_name(task: Task) -> &'static str {
    match task {
        Task::Lasso => "lasso",
        Task::Logistic => "logistic",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logistic() -> RegressionModel {
        RegressionModel {
            task: Task::Logistic,
            labels: Some([0.0, 1.0]),
            intercept: Some(-0.1 / 3.0),
            gap: f64::INFINITY,
            converged: false,
            interrupted: true,
            naming: Naming::Names(vec!["age".into(), "a \"quoted\",\nname".into()]),
            weights: vec![0.1 + 0.2, -1e-300],
            ..RegressionModel::example()
        }
    }

    #[test]
    fn models_survive_the_file() {
        let numbered = RegressionModel {
            naming: Naming::Numbers { first: 0, features: vec![0, 999_999_999] },
            weights: vec![1.0, 2.0],
            ..RegressionModel::example()
        };
        for model in [logistic(), numbered.clone(), RegressionModel::example()] {
            let bytes = model.to_bytes();
            assert_eq!(RegressionModel::open(&bytes).unwrap(), model);
            assert_eq!(model.to_bytes(), bytes, "the same bytes each time");
        }
        assert_eq!((logistic().feature(0).as_str(), numbered.feature(1).as_str()), ("age", "999999999"));
    }

    #[test]
    fn predictions() {
        let model = RegressionModel { intercept: Some(1.0), weights: vec![2.0, 0.5], ..logistic() };
        let margins = model.margins(&Matrix::<f64>::from_rows(2, &[&[(0, -1.0)], &[(1, 4.0)]]));
        assert_eq!(margins, [-1.0, 3.0]);
        assert_eq!((model.predict(-1.0), model.predict(3.0)), (0.0, 1.0));
        let [(no, p), (yes, q)] = model.probabilities(-1.0).unwrap();
        assert_eq!((no, yes), (0.0, 1.0));
        assert!((p + q - 1.0).abs() < 1e-15 && (q - 1.0 / (1.0 + 1f64.exp())).abs() < 1e-15);
    }

    #[test]
    fn what_does_not_hold_together_is_refused() {
        let open = |header: Value, kind: &[u8; 4], index: &[u8], value: &[u8]| {
            RegressionModel::open(&container::write(Kind(*kind), &header, &[(INDEX, index), (VALUE, value)]))
        };
        let good = RegressionModel::example().header();
        assert!(open(good.clone(), b"regr", &[], &[]).is_ok());
        assert!(matches!(open(good.clone(), b"crf ", &[], &[]), Err(ModelError::Kind { .. })));
        assert!(matches!(open(good.clone(), b"regr", &[1; 4], &[0; 8]), Err(ModelError::Content(_))));
        assert!(matches!(open(good.clone(), b"regr", &[1; 4], &[]), Err(ModelError::Content(_))));
        let Value::Object(fields) = good else { unreachable!() };
        let mut older = fields.clone();
        older.remove("interrupted");
        assert!(open(Value::Object(older), b"regr", &[], &[]).is_ok_and(|m| !m.interrupted));
        for name in fields.keys().filter(|n| *n != "loss" && *n != "gap") {
            let mut bad = fields.clone();
            bad[name] = json!(["nonsense"]);
            let error = open(Value::Object(bad), b"regr", &[], &[]).unwrap_err();
            assert!(error.to_string().contains(&format!("`{name}` is [\"nonsense\"]")), "{name}: {error}");
        }
    }
}
