//! A fitted field over the columns of a table: what the columns mean, edges, parameter index, weights, and how it came about.
//!
//! ```text
//! section   what
//! "outp"    names of the outputs: for each its length as a varint; then the bytes of all
//! "inpt"    names of the inputs, likewise
//! "seen"    for each output how many inputs it sees, then for each of them its number and its slot (all varints)
//! "edge"    pairs of outputs that are joined (varints)
//! "indx"    the parameter index, as in a model of sequences
//! "wght"    the weights, f64, in the order of the index
//! ```
//!
//! Labels and values of discrete inputs stand in the header, and means and deviations of numbers that are standardised.

use super::container::{self, Container, Kind, ModelError, bytes_of};
use super::header::Header;
use super::sections::{names, read_index, read_names, read_weights, write_index};
use super::varint::{self, Reader};
use crate::data::sequences::Dictionary;
use crate::features::Index;
use crate::field::schema::Slot;
use crate::field::{Field, Schema, Structure};
use serde_json::{Value, json};

/// How a model came about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// What was maximised, such as `mle` or `composite (combs)`.
    pub estimator: String,
    /// `joint` or `disjoint`.
    pub optimize: String,
    /// The algorithm.
    pub solver: String,
    /// `C₁`.
    pub l1: f64,
    /// `C₂`.
    pub l2: f64,
    /// The objective, penalties included; NaN if the training only knew its gradient.
    pub objective: f64,
    /// How far from optimal: the largest distance of 0 from the subdifferential along a parameter.
    pub violation: f64,
    /// Steps.
    pub iterations: u64,
    /// Whether the tolerance was met.
    pub converged: bool,
    /// Training rows.
    pub rows: usize,
    /// Their known labels.
    pub items: usize,
    /// Name of the training data, without folders.
    pub data: String,
}

/// A fitted field over the columns of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldModel {
    /// What the columns mean.
    pub schema: Schema,
    /// What the structure was called when it was made, such as `grid:20x20`.
    pub structure: String,
    /// A variable for each output, a factor for each, then one for each edge.
    pub field: Field,
    /// Which parameter is about what.
    pub index: Index,
    /// The weights.
    pub theta: Vec<f64>,
    /// How it came about.
    pub facts: Facts,
}

impl FieldModel {
    /// The joined outputs.
    pub fn edges(&self) -> impl Iterator<Item = [u32; 2]> {
        (self.schema.outputs.len()..self.field.factors())
            .filter_map(|k| self.field.scope(k).first_chunk().copied())
    }

    /// What a parameter is about: outputs, their labels, and the attribute. Of a shared parameter, the first outputs that have it.
    pub fn about(&self, parameter: usize) -> Option<(Vec<&str>, Vec<&str>, String)> {
        let (template, attribute, configuration) = self.index.about(parameter)?;
        // Without sharing, factor and template have the same number.
        let own = |&k: &usize| k < self.field.factors() && self.field.template(k) == template;
        let factor = Some(template).filter(own).or_else(|| (0..self.field.factors()).find(own))?;
        let scope = self.field.scope(factor);
        let labels = self.index.labels(template, configuration);
        let labels = scope
            .iter()
            .zip(labels)
            .map(|(&v, label)| self.schema.labels(v as usize).get(label as usize).map_or("", String::as_str));
        let outputs = scope.iter().map(|&v| self.schema.outputs[v as usize].as_str()).collect();
        let attribute = match scope {
            &[v] => self.schema.attribute_name(v as usize, attribute),
            _ => "(bias)".into(),
        };
        Some((outputs, labels.collect(), attribute))
    }

    /// The self-description that the file begins with.
    pub fn header(&self) -> Value {
        let (schema, facts) = (&self.schema, &self.facts);
        let slots = schema.slots.iter().map(|slot| match slot {
            Slot::Number { mean, scale } if *slot != Slot::RAW => json!({ "mean": mean, "scale": scale }),
            Slot::Number { .. } => Value::Null,
            Slot::Values(values) => json!(values),
        });
        json!({
            "model": "field over the columns of a table",
            "format": "table",
            "structure": self.structure,
            "share": schema.share,
            "estimator": facts.estimator,
            "optimize": facts.optimize,
            "solver": facts.solver,
            "l1": facts.l1,
            "l2": facts.l2,
            "objective": facts.objective,
            "violation": facts.violation,
            "iterations": facts.iterations,
            "converged": facts.converged,
            "rows": facts.rows,
            "items": facts.items,
            "data": facts.data,
            "outputs": schema.outputs.len(),
            "inputs": schema.inputs.len(),
            "edges": self.field.factors() - self.field.variables(),
            "parameters": self.index.len(),
            "nonzeros": self.theta.iter().filter(|w| **w != 0.0).count(),
            "labels": schema.alphabets,
            "values": slots.collect::<Vec<_>>(),
        })
    }

    /// The bytes of the model file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let dictionary = |list: &[String]| names(&list.iter().map(String::as_str).collect::<Dictionary>());
        let (mut seen, mut edges) = (Vec::new(), Vec::new());
        for list in &self.schema.seen {
            varint::write(&mut seen, list.len() as u64);
            list.iter().flatten().for_each(|&n| varint::write(&mut seen, n.into()));
        }
        self.edges().flatten().for_each(|v| varint::write(&mut edges, v.into()));
        let weights = bytes_of(&self.theta);
        let (outputs, inputs) = (dictionary(&self.schema.outputs), dictionary(&self.schema.inputs));
        let index = write_index(&self.index);
        let sections = [
            (*b"outp", outputs.as_slice()),
            (*b"inpt", &inputs),
            (*b"seen", &seen),
            (*b"edge", &edges),
            (*b"indx", &index),
            (*b"wght", &weights),
        ];
        container::write(Kind::FIELD, &self.header(), &sections)
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
        file.expect(Kind::FIELD)?;
        let header = Header(&file.header);
        let owned = |d: Dictionary| d.iter().map(str::to_owned).collect::<Vec<String>>();
        let texts = |value: &Value, name: &str| -> Result<Vec<String>, ModelError> {
            let list = value.as_array().ok_or_else(|| header.wrong(name))?;
            list.iter().map(|v| v.as_str().map(str::to_owned).ok_or_else(|| header.wrong(name))).collect()
        };
        let lists = |name: &str| file.header[name].as_array().ok_or_else(|| header.wrong(name));
        let slot = |value: &Value| match value {
            Value::Null => Ok(Slot::RAW),
            Value::Object(numbers) => {
                let number = |name: &str| numbers.get(name).and_then(Value::as_f64);
                let both = number("mean").zip(number("scale").filter(|s| *s > 0.0 && s.is_finite()));
                both.map(|(mean, scale)| Slot::Number { mean, scale }).ok_or_else(|| header.wrong("values"))
            }
            values => texts(values, "values").map(Slot::Values),
        };
        let schema = Schema {
            outputs: owned(read_names(file.required(*b"outp")?)?),
            alphabets: lists("labels")?.iter().map(|v| texts(v, "labels")).collect::<Result<_, _>>()?,
            inputs: owned(read_names(file.required(*b"inpt")?)?),
            slots: lists("values")?.iter().map(slot).collect::<Result<_, _>>()?,
            seen: vec![],
            share: header.flag("share")?,
        };
        let schema = Schema { seen: read_seen(file.required(*b"seen")?, &schema)?, ..schema };
        let expected = if schema.share { 1 } else { schema.outputs.len() };
        if schema.outputs.is_empty()
            || schema.alphabets.len() != expected
            || schema.alphabets.iter().any(Vec::is_empty)
            || schema.share && schema.seen.iter().any(|list| list.len() != schema.seen[0].len())
        {
            return Err(ModelError::unfit());
        }
        let edges = Structure::Edges(read_edges(file.required(*b"edge")?)?);
        let bad = |e: crate::field::FieldError| ModelError::Content(e.to_string());
        let field = schema.field(&edges).map_err(bad)?;
        let index = read_index(file.required(*b"indx")?)?;
        let theta = read_weights(file, &index)?;
        let attributes = schema.template_attributes(&field);
        let fits = |t: usize| {
            index.arities(t) == field.templates()[t] && index.attributes(t) == attributes[t] as usize
        };
        if index.templates() != field.templates().len() || !(0..index.templates()).all(fits) {
            return Err(ModelError::unfit());
        }
        let facts = Facts {
            estimator: header.text("estimator")?,
            optimize: header.text("optimize")?,
            solver: header.text("solver")?,
            l1: header.number("l1")?,
            l2: header.number("l2")?,
            objective: header.number_if_any("objective")?,
            violation: header.number("violation")?,
            iterations: header.count("iterations")? as u64,
            converged: header.flag("converged")?,
            rows: header.count("rows")?,
            items: header.count("items")?,
            data: header.text("data")?,
        };
        Ok(Self { schema, structure: header.text("structure")?, field, index, theta, facts })
    }
}

fn read_seen(bytes: &[u8], schema: &Schema) -> Result<Vec<Vec<[u32; 2]>>, ModelError> {
    let mut reader = Reader(bytes);
    let mut seen = Vec::with_capacity(schema.outputs.len());
    for _ in &schema.outputs {
        let count = reader.next()? as usize;
        if count > bytes.len() {
            return Err(ModelError::Truncated);
        }
        let pair = |_| Ok([reader.next()?, reader.next()?]);
        let list: Vec<[u32; 2]> = (0..count).map(pair).collect::<Result<_, ModelError>>()?;
        if list.iter().any(|&[i, s]| i as usize >= schema.inputs.len() || s as usize >= schema.slots.len()) {
            return Err(ModelError::Content("an output sees an input that is not there".into()));
        }
        seen.push(list);
    }
    Ok(seen)
}

fn read_edges(bytes: &[u8]) -> Result<Vec<[u32; 2]>, ModelError> {
    let mut reader = Reader(bytes);
    let mut edges = Vec::new();
    while !reader.0.is_empty() {
        edges.push([reader.next()?, reader.next()?]);
    }
    Ok(edges)
}
