//! What the columns of a table mean for a field: outputs with their labels, inputs with their attributes.
//!
//! Each output is a variable, each row a sample. The factor of an output sees a constant (attribute 0) and, one after the other, its inputs: a
//! number is one attribute whose value it is, a discrete input one attribute for each of its values. Factors of edges see the
//! constant only.

use super::{Field, FieldData, FieldError, MISSING, Structure};
use crate::data::table::{Table, TableError};
use std::collections::{BTreeSet, HashMap};
use std::fmt;

/// What the columns of a table mean.
///
/// ```
/// use gibbsite::data::table::Table;
/// use gibbsite::field::{Schema, Structure, schema::Columns};
/// let table = Table::read(b"rain,wind,month\nno,low,May\nyes,?,June\nyes,high,May\n")?;
/// let columns = Columns::choose(&table, "rain,wind", "month")?;
/// let (schema, _) = Schema::learn(&table, &columns, false, false)?;
/// assert_eq!(schema.alphabets, [["no", "yes"], ["high", "low"]]);
/// let field = schema.field(&Structure::Chain)?;
/// let (data, report) = schema.samples(&table, &field)?;
/// assert_eq!((data.samples(), data.labels(0), report.missing), (3, &[0, 1][..], 1));
/// // The constant and `May`: values are in the order of the alphabet, after June.
/// assert_eq!(data.row(0, 0).unwrap().attributes, [0, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// Names of the outputs.
    pub outputs: Vec<String>,
    /// Labels of each output; one list for all if parameters are shared.
    pub alphabets: Vec<Vec<String>>,
    /// Names of the inputs.
    pub inputs: Vec<String>,
    /// What inputs are: one entry for each input, or, if parameters are shared, for each place in the outputs' lists.
    pub slots: Vec<Slot>,
    /// For each output its inputs, each with its slot.
    pub seen: Vec<Vec<[u32; 2]>>,
    /// Whether outputs share their parameters.
    pub share: bool,
}

/// What an input is.
#[derive(Clone, Debug, PartialEq)]
pub enum Slot {
    /// A number: one attribute, `(x - mean) / scale`.
    Number {
        /// Mean in the training data, or 0.
        mean: f64,
        /// Standard deviation in the training data, or 1.
        scale: f64,
    },
    /// One of these values, sorted: an attribute for each.
    Values(Vec<String>),
}

impl Slot {
    /// A number as it stands in the table.
    pub const RAW: Self = Self::Number { mean: 0.0, scale: 1.0 };

    fn width(&self) -> u32 {
        match self {
            Self::Number { .. } => 1,
            Self::Values(values) => values.len() as u32,
        }
    }
}

/// Columns that were chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    /// The outputs' columns.
    pub outputs: Vec<usize>,
    /// The inputs' columns.
    pub inputs: Vec<usize>,
    /// For each output its inputs (numbers of `inputs`), or all of them.
    pub map: Option<Vec<Vec<u32>>>,
}

/// What was met while reading samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Labels that are not known.
    pub missing: usize,
    /// Labels that the schema does not have, as (row, output); they are treated as missing.
    pub unknown_labels: Vec<(u32, u32)>,
    /// Values of discrete inputs that the schema does not have.
    pub unknown_values: usize,
    /// Outputs that the table does not have.
    pub absent: Vec<u32>,
}

/// Columns that make no field.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaError {
    /// The table is at fault.
    Table(TableError),
    /// No output was chosen.
    NoOutputs,
    /// An output that is also an input.
    Both(String),
    /// An output without two labels.
    Labels {
        /// The output; none if all share their labels.
        output: Option<String>,
        /// The one label, if there is one.
        label: Option<String>,
    },
    /// Outputs that share parameters must have the same number of inputs.
    Inputs {
        /// Two outputs with their numbers of inputs.
        outputs: [(String, usize); 2],
    },
    /// Not a field.
    Field(FieldError),
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table(e) => write!(f, "{e}"),
            Self::NoOutputs => write!(f, "no column is an output, so there is nothing to predict"),
            Self::Both(name) => write!(f, "the column `{name}` is both an output and an input"),
            Self::Labels { output, label } => {
                let who =
                    output.as_ref().map_or("the outputs have".into(), |o| format!("the output `{o}` has"));
                match label {
                    Some(label) => {
                        write!(f, "{who} one label only, `{label}`: there is nothing to learn; leave it out")
                    }
                    None => write!(f, "{who} no known label in any row: there is nothing to learn from"),
                }
            }
            Self::Inputs { outputs: [(a, m), (b, n)] } => write!(
                f,
                "outputs that share parameters need the same number of inputs, but `{a}` has {m} and `{b}` has {n}"
            ),
            Self::Field(e) => write!(f, "{e}"),
        }
    }
}

impl std::error::Error for SchemaError {}

impl From<TableError> for SchemaError {
    fn from(e: TableError) -> Self {
        Self::Table(e)
    }
}

impl From<FieldError> for SchemaError {
    fn from(e: FieldError) -> Self {
        Self::Field(e)
    }
}

impl Columns {
    /// By names ([`Table::select`]). The input `*` is every column that is no output.
    ///
    /// # Errors
    /// A [`SchemaError`]: no such column, no output, an output that is also an input.
    pub fn choose(table: &Table, outputs: &str, inputs: &str) -> Result<Self, SchemaError> {
        let outputs = table.select(outputs)?;
        if outputs.is_empty() {
            return Err(SchemaError::NoOutputs);
        }
        let mut inputs_found = table.select(inputs)?;
        if inputs.split(',').any(|name| name.trim() == "*") {
            inputs_found.retain(|column| !outputs.contains(column));
        }
        match inputs_found.iter().find(|column| outputs.contains(column)) {
            Some(&column) => Err(SchemaError::Both(table.names()[column].clone())),
            None => Ok(Self { outputs, inputs: inputs_found, map: None }),
        }
    }
}

/// Whether a cell says that nothing is known.
fn is_missing(cell: &str) -> bool {
    cell.is_empty() || cell == "?"
}

/// Different cells that are known; sorted as numbers if all are, else as text.
fn values<'t>(cells: impl Iterator<Item = &'t str>) -> Vec<String> {
    let found: BTreeSet<&str> = cells.filter(|cell| !is_missing(cell)).collect();
    let numbers: Option<Vec<f64>> =
        found.iter().map(|cell| cell.parse().ok().filter(|x: &f64| !x.is_nan())).collect();
    let mut list: Vec<&str> = found.into_iter().collect();
    if let Some(numbers) = numbers {
        let mut pairs: Vec<(f64, &str)> = numbers.into_iter().zip(list).collect();
        pairs.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(b.1)));
        list = pairs.into_iter().map(|pair| pair.1).collect();
    }
    list.into_iter().map(str::to_owned).collect()
}

fn two_labels(labels: Vec<String>, output: Option<&String>) -> Result<Vec<String>, SchemaError> {
    if labels.len() > 1 {
        return Ok(labels);
    }
    Err(SchemaError::Labels { output: output.cloned(), label: labels.into_iter().next() })
}

/// What an input with these columns is, and a remark if that may surprise.
fn slot(table: &Table, columns: &[usize], standardize: bool) -> (Slot, Option<String>) {
    let (mut numbers, mut text) = (0, None);
    for &column in columns {
        for row in 0..table.rows() {
            let cell = table.cell(row, column);
            if cell.parse::<f64>().is_ok() {
                numbers += 1;
            } else if !is_missing(cell) && text.is_none() {
                text = Some((row, column));
            }
        }
    }
    // Without a single value it is nothing at all, and complaining about the first empty cell is right.
    let Some((row, column)) = text else { return numbers_slot(table, columns, standardize) };
    let values = values(columns.iter().flat_map(|&column| table.cells(column)));
    let surprise = (2 * numbers > table.rows() * columns.len()).then(|| {
        format!(
            "line {}: the input `{}` is mostly numbers, but `{}` is none: it is taken as discrete, with {} values",
            table.line(row),
            table.names()[column],
            table.cell(row, column),
            values.len()
        )
    });
    (Slot::Values(values), surprise)
}

/// Numbers further from 0 than so many standard deviations, or larger, make the constant and their weights hard to tell apart.
const FAR: f64 = 5.0;
const LARGE: f64 = 100.0;

fn numbers_slot(table: &Table, columns: &[usize], standardize: bool) -> (Slot, Option<String>) {
    let all = || columns.iter().flat_map(|&c| table.cells(c)).filter_map(|cell| cell.parse::<f64>().ok());
    let n = all().count().max(1) as f64;
    let mean = all().sum::<f64>() / n;
    let deviation = (all().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
    // What is not finite is an error that names the cell, later.
    if !(mean.is_finite() && deviation.is_finite()) {
        return (Slot::RAW, None);
    }
    if standardize {
        return (Slot::Number { mean, scale: if deviation > 0.0 { deviation } else { 1.0 } }, None);
    }
    let awkward = deviation > 0.0 && (mean.abs() > FAR * deviation || mean.hypot(deviation) > LARGE);
    let surprise = awkward.then(|| {
        let name = columns.first().map_or("", |&c| table.names()[c].as_str());
        format!("the input `{name}` has mean {mean:.4} and standard deviation {deviation:.4}: --standardize makes that easier to learn from")
    });
    (Slot::RAW, surprise)
}

impl Schema {
    /// Learns labels and values from a table. Also returns remarks for a person. Numbers are taken as they are, or standardised by their mean and
    /// deviation in this table.
    ///
    /// # Errors
    /// A [`SchemaError`].
    pub fn learn(
        table: &Table,
        columns: &Columns,
        share: bool,
        standardize: bool,
    ) -> Result<(Self, Vec<String>), SchemaError> {
        let name = |list: &[usize]| list.iter().map(|&c| table.names()[c].clone()).collect::<Vec<_>>();
        let outputs = name(&columns.outputs);
        let alphabets = if share {
            let all = columns.outputs.iter().flat_map(|&column| table.cells(column));
            vec![two_labels(values(all), None)?]
        } else {
            let each = columns.outputs.iter().zip(&outputs);
            each.map(|(&c, name)| two_labels(values(table.cells(c)), Some(name))).collect::<Result<_, _>>()?
        };
        let everything = || vec![(0..columns.inputs.len() as u32).collect(); outputs.len()];
        let lists: Vec<Vec<u32>> = columns.map.clone().unwrap_or_else(everything);
        if share && let Some(other) = (1..lists.len()).find(|&v| lists[v].len() != lists[0].len()) {
            let pair = [0, other].map(|v| (outputs[v].clone(), lists[v].len()));
            return Err(SchemaError::Inputs { outputs: pair });
        }
        let places: Vec<Vec<usize>> = if share {
            let at = |k: usize| {
                let all: BTreeSet<usize> =
                    lists.iter().map(|list| columns.inputs[list[k] as usize]).collect();
                all.into_iter().collect()
            };
            (0..lists.first().map_or(0, Vec::len)).map(at).collect()
        } else {
            columns.inputs.iter().map(|&c| vec![c]).collect()
        };
        let (slots, remarks): (Vec<Slot>, Vec<Option<String>>) =
            places.iter().map(|columns| slot(table, columns, standardize)).unzip();
        let seen = lists
            .into_iter()
            .map(|list| {
                let slot = |(k, input): (usize, u32)| [input, if share { k as u32 } else { input }];
                list.into_iter().enumerate().map(slot).collect()
            })
            .collect();
        let schema = Self { outputs, alphabets, inputs: name(&columns.inputs), slots, seen, share };
        Ok((schema, remarks.into_iter().flatten().collect()))
    }

    /// The labels of an output.
    pub fn labels(&self, output: usize) -> &[String] {
        &self.alphabets[if self.share { 0 } else { output }]
    }

    /// How many attributes an output's factor has.
    pub fn attributes(&self, output: usize) -> u32 {
        1 + self.seen[output].iter().map(|&[_, slot]| self.slots[slot as usize].width()).sum::<u32>()
    }

    /// What an attribute of an output's factor is called; a place that several inputs share by the first output's.
    pub fn attribute_name(&self, output: usize, attribute: u32) -> String {
        let Some(mut left) = attribute.checked_sub(1) else { return "(bias)".into() };
        for &[input, slot] in &self.seen[output] {
            let slot = &self.slots[slot as usize];
            if left < slot.width() {
                let input = &self.inputs[input as usize];
                return match slot {
                    Slot::Number { .. } => input.clone(),
                    Slot::Values(values) => format!("{input}={}", values[left as usize]),
                };
            }
            left -= slot.width();
        }
        String::new()
    }

    /// The field over the outputs.
    ///
    /// # Errors
    /// A [`FieldError`], above all if the structure is for another number of outputs.
    pub fn field(&self, structure: &Structure) -> Result<Field, FieldError> {
        let cards: Vec<u32> = (0..self.outputs.len()).map(|v| self.labels(v).len() as u32).collect();
        Field::pairwise(cards, structure, self.share)
    }

    /// For each template of the field how many attributes it has.
    pub fn template_attributes(&self, field: &Field) -> Vec<u32> {
        let mut attributes = vec![1; field.templates().len()];
        for v in 0..self.outputs.len() {
            attributes[field.template(v)] = self.attributes(v);
        }
        attributes
    }

    /// The rows of a table as samples of the schema's [field](Self::field). Labels that the schema does not have, and outputs that the table does not
    /// have, count as missing; values that it does not have as nothing.
    ///
    /// # Errors
    /// A [`SchemaError`] if an input is not there, or a cell is no number where one is needed.
    pub fn samples(&self, table: &Table, field: &Field) -> Result<(FieldData, Report), SchemaError> {
        // Looked up in a map: there may be as many columns as an image has points.
        let place: HashMap<&str, usize> = table.names().iter().map(String::as_str).zip(0..).collect();
        let found = |name: &String| place.get(name.as_str()).copied();
        let columns: Vec<usize> = self
            .inputs
            .iter()
            .map(|name| found(name).map_or_else(|| table.column(name), Ok))
            .collect::<Result<_, _>>()?;
        let targets: Vec<Option<usize>> = self.outputs.iter().map(found).collect();
        let absent = (0..targets.len()).filter(|&v| targets[v].is_none()).map(|v| v as u32).collect();
        let mut report = Report { absent, ..Report::default() };
        let lookup = |list: &[String]| -> HashMap<String, u32> { list.iter().cloned().zip(0..).collect() };
        let alphabets: Vec<HashMap<String, u32>> = self.alphabets.iter().map(|list| lookup(list)).collect();
        let places: Vec<HashMap<String, u32>> = self
            .slots
            .iter()
            .map(|slot| match slot {
                Slot::Number { .. } => HashMap::new(),
                Slot::Values(values) => lookup(values),
            })
            .collect();
        let mut with_inputs = vec![false; field.templates().len()];
        for v in (0..self.outputs.len()).filter(|&v| !self.seen[v].is_empty()) {
            with_inputs[field.template(v)] = true;
        }
        let mut data = FieldData::new(field, &with_inputs)?;
        let mut labels = vec![MISSING; self.outputs.len()];
        let mut rows: Vec<Vec<(u32, f64)>> = vec![vec![]; self.outputs.len()];
        for row in 0..table.rows() {
            for (v, label) in labels.iter_mut().enumerate() {
                *label = MISSING;
                let Some(column) = targets[v] else { continue };
                let cell = table.cell(row, column);
                if is_missing(cell) {
                    report.missing += 1;
                    continue;
                }
                match alphabets[if self.share { 0 } else { v }].get(cell) {
                    Some(&known) => *label = known,
                    None => report.unknown_labels.push((row as u32, v as u32)),
                }
            }
            for (v, attributes) in rows.iter_mut().enumerate() {
                attributes.clear();
                attributes.push((0, 1.0));
                let mut first = 1;
                for &[input, slot] in &self.seen[v] {
                    let column = columns[input as usize];
                    let kind = &self.slots[slot as usize];
                    match *kind {
                        Slot::Number { mean, scale } => {
                            let value = (number(table, row, column)? - mean) / scale;
                            if value != 0.0 {
                                attributes.push((first, value));
                            }
                        }
                        Slot::Values(_) => {
                            let cell = table.cell(row, column);
                            match places[slot as usize].get(cell) {
                                Some(&value) => attributes.push((first + value, 1.0)),
                                None => report.unknown_values += usize::from(!is_missing(cell)),
                            }
                        }
                    }
                    first += kind.width();
                }
            }
            let own = rows.iter().zip(&self.seen).filter(|(_, seen)| !seen.is_empty()).map(|(row, _)| row);
            data.push(field, &labels, own)?;
        }
        Ok((data, report))
    }
}

fn number(table: &Table, row: usize, column: usize) -> Result<f64, TableError> {
    let cell = table.cell(row, column);
    match cell.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        _ if cell.is_empty() => Err(table.wrong(row, column, "the cell is empty, expected a number")),
        _ => Err(table.wrong(row, column, format!("found `{cell}`, expected a finite number"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learn(text: &str, outputs: &str, inputs: &str, share: bool) -> Result<Schema, SchemaError> {
        let table = Table::read(text.as_bytes())?;
        Schema::learn(&table, &Columns::choose(&table, outputs, inputs)?, share, false).map(|learnt| learnt.0)
    }

    #[test]
    fn labels_are_sorted_as_what_they_are() {
        let schema = learn("a,b\n10,x10\n9,x9\n?,\n-1,x9\n", "a,b", "", false).unwrap();
        assert_eq!(schema.alphabets, [vec!["-1", "9", "10"], vec!["x10", "x9"]]);
        let schema = learn("a,b\n1,2\n2,3\n", "*", "", true).unwrap();
        assert_eq!(schema.alphabets, [["1", "2", "3"]]);
    }

    #[test]
    fn faults_are_named() {
        let error = |text, outputs, inputs, share| {
            let table = Table::read(str::as_bytes(text)).unwrap();
            let schema = learn(text, outputs, inputs, share)?;
            let field = schema.field(&Structure::Chain)?;
            schema.samples(&table, &field).map(|_| ())
        };
        let text = "a,b,x\n1,u,0.5\n2,u,nan\n";
        for (outputs, inputs, share, message) in [
            ("a,x", "x", false, "the column `x` is both an output and an input"),
            ("", "x", false, "no column is an output, so there is nothing to predict"),
            (
                "b",
                "x",
                false,
                "the output `b` has one label only, `u`: there is nothing to learn; leave it out",
            ),
            ("b", "x", true, "the outputs have one label only, `u`: there is nothing to learn; leave it out"),
            ("a", "x", false, "line 3, column `x`: found `nan`, expected a finite number"),
        ] {
            assert_eq!(error(text, outputs, inputs, share).unwrap_err().to_string(), message);
        }
        let empty = error("a,x\n1,0.5\n2,\n", "a", "x", false).unwrap_err();
        assert_eq!(empty.to_string(), "line 3, column `x`: the cell is empty, expected a number");
        assert_eq!(error("a,x\n1,0.5\n2,no\n", "a", "*", false), Ok(()));
    }

    #[test]
    fn numbers_are_standardised_by_the_training_data() {
        let table = Table::read(b"y,x,c\na,1000,3\nb,1004,3\n").unwrap();
        let columns = Columns::choose(&table, "y", "*").unwrap();
        let (raw, remarks) = Schema::learn(&table, &columns, false, false).unwrap();
        assert_eq!(raw.slots, [Slot::RAW, Slot::RAW]);
        assert!(remarks.len() == 1 && remarks[0].starts_with("the input `x` has mean 1002"), "{remarks:?}");
        let (schema, remarks) = Schema::learn(&table, &columns, false, true).unwrap();
        assert_eq!(remarks.len(), 0);
        let field = schema.field(&Structure::Chain).unwrap();
        let new = Table::read(b"x,c\n1008,4\n").unwrap();
        let (data, report) = schema.samples(&new, &field).unwrap();
        assert_eq!(data.row(0, 0).unwrap().iter().collect::<Vec<_>>(), [(0, 1.0), (1, 3.0), (2, 1.0)]);
        assert_eq!((data.labels(0), report.absent), (&[MISSING][..], vec![0]));
    }

    #[test]
    fn shared_places_have_shared_values() {
        let text = "y1,y2,c1,c2,n1,n2\na,b,red,blue,1,0\nb,a,blue,green,2,3\n";
        let table = Table::read(text.as_bytes()).unwrap();
        let mut columns = Columns::choose(&table, "y*", "c*,n*").unwrap();
        columns.map = Some(vec![vec![0, 2], vec![1, 3]]);
        let (schema, _) = Schema::learn(&table, &columns, true, false).unwrap();
        let field = schema.field(&Structure::Chain).unwrap();
        assert_eq!(schema.template_attributes(&field), [1 + 3 + 1, 1]);
        let (data, _) = schema.samples(&table, &field).unwrap();
        let row = |s, k| data.row(s, k).unwrap().iter().collect::<Vec<_>>();
        assert_eq!(row(0, 0), [(0, 1.0), (3, 1.0), (4, 1.0)]);
        assert_eq!(row(0, 1), [(0, 1.0), (1, 1.0)]);
        assert_eq!(row(1, 1), [(0, 1.0), (2, 1.0), (4, 3.0)]);
        assert_eq!(schema.attribute_name(0, 3), "c1=red");
        columns.map = Some(vec![vec![0, 2], vec![1]]);
        let error = Schema::learn(&table, &columns, true, false).unwrap_err().to_string();
        assert!(error.ends_with("but `y1` has 2 and `y2` has 1"), "{error}");
    }
}
