//! Samples of a [`Field`]: labels, some of them missing, and the attributes of its factors.

use super::{Field, FieldError};
use crate::features::{Index, Seen};

/// In place of a label that is not known.
pub const MISSING: u32 = u32::MAX;

/// Which parameters an index should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// All configurations with all attributes.
    All,
    /// Only those that occur at least so many times.
    Seen {
        /// That many.
        min_count: u32,
    },
    /// Those in which no variable has label 0, the reference. With a factor for each variable and pair this loses nothing, and it leaves nothing
    /// undetermined: tables of all configurations could trade scores among each other without changing the distribution.
    Reference,
}

/// Samples of one field.
///
/// A factor whose template *has inputs* has a list of attributes in each sample (which may be empty: its log-potential is then 0);
/// the others have attribute 0 with value 1 in all samples, and take no memory.
///
/// ```
/// use gibbsite::field::{Field, FieldData, MISSING, Structure};
/// let field = Field::pairwise([2, 2], &Structure::Chain, true)?;
/// // Inputs for single variables, none for edges.
/// let mut data = FieldData::new(&field, &[true, false])?;
/// data.push(&field, &[0, 1], [vec![(0, 1.0)], vec![(0, 1.0), (7, -0.5)]])?;
/// data.push(&field, &[1, MISSING], [vec![], vec![(3, 1.0)]])?;
/// assert_eq!((data.samples(), data.attributes(0), data.attributes(1)), (2, 8, 1));
/// # Ok::<(), gibbsite::field::FieldError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct FieldData {
    variables: usize,
    samples: usize,
    labels: Vec<u32>,
    /// For each factor its place among those with inputs, or [`NONE`].
    place: Vec<u32>,
    rows: usize,
    /// Where the list of (sample, place) ends.
    ends: Vec<usize>,
    attributes: Vec<u32>,
    /// Empty as long as all values are 1.
    values: Vec<f64>,
    /// For each template the largest attribute seen, plus 1.
    used: Vec<u32>,
}

const NONE: u32 = u32::MAX;

/// The attributes of a factor in a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row<'a> {
    /// Their numbers.
    pub attributes: &'a [u32],
    /// Their values; empty if all are 1.
    pub values: &'a [f64],
}

impl<'a> Row<'a> {
    /// Attributes with their values.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = (u32, f64)> + use<'a> {
        let ones = std::iter::repeat_n(&1.0, if self.values.is_empty() { self.attributes.len() } else { 0 });
        self.attributes.iter().copied().zip(self.values.iter().chain(ones).copied())
    }
}

impl FieldData {
    /// No samples yet. `inputs` says which templates have inputs.
    ///
    /// # Errors
    /// [`FieldError::Attributes`] if they are not as many as the field's templates.
    pub fn new(field: &Field, inputs: &[bool]) -> Result<Self, FieldError> {
        let templates = field.templates().len();
        if inputs.len() != templates {
            return Err(FieldError::Attributes { templates });
        }
        let mut rows = 0;
        let place = (0..field.factors())
            .map(|k| {
                let has = inputs[field.template(k)];
                rows += usize::from(has);
                if has { rows as u32 - 1 } else { NONE }
            })
            .collect();
        let used = inputs.iter().map(|&has| u32::from(!has)).collect();
        let (attributes, values) = (vec![], vec![]);
        let variables = field.variables();
        Ok(Self {
            variables,
            samples: 0,
            labels: vec![],
            place,
            rows,
            ends: vec![0],
            attributes,
            values,
            used,
        })
    }

    /// No samples yet, and no inputs: samples of a Markov random field.
    pub fn without_inputs(field: &Field) -> Self {
        Self {
            variables: field.variables(),
            samples: 0,
            labels: vec![],
            place: vec![NONE; field.factors()],
            rows: 0,
            ends: vec![0],
            attributes: vec![],
            values: vec![],
            used: vec![1; field.templates().len()],
        }
    }

    /// Appends a sample: a label (or [`MISSING`]) for each variable, and for each factor with inputs, in their order, a list of
    /// attributes with values.
    ///
    /// # Errors
    /// A [`FieldError`] that names the sample; the data are then as before.
    pub fn push<R: AsRef<[(u32, f64)]>>(
        &mut self,
        field: &Field,
        labels: &[u32],
        rows: impl IntoIterator<Item = R>,
    ) -> Result<(), FieldError> {
        let sample = self.samples;
        if labels.len() != self.variables {
            return Err(FieldError::Labels { sample, found: labels.len(), expected: self.variables });
        }
        for (v, (&label, &arity)) in labels.iter().zip(field.cards()).enumerate() {
            if label >= arity && label != MISSING {
                return Err(FieldError::Label { sample, variable: v as u32, label, arity });
            }
        }
        let (before, used, ends) = (self.attributes.len(), self.used.clone(), self.ends.len());
        let outcome = self.push_rows(field, rows);
        if outcome.is_err() {
            self.attributes.truncate(before);
            self.values.truncate(before);
            self.ends.truncate(ends);
            self.used = used;
            return outcome;
        }
        self.labels.extend_from_slice(labels);
        self.samples += 1;
        Ok(())
    }

    fn push_rows<R: AsRef<[(u32, f64)]>>(
        &mut self,
        field: &Field,
        rows: impl IntoIterator<Item = R>,
    ) -> Result<(), FieldError> {
        let sample = self.samples;
        let mut rows = rows.into_iter();
        let mut found = 0;
        for factor in (0..self.place.len()).filter(|&k| self.place[k] != NONE) {
            let Some(row) = rows.next() else { break };
            found += 1;
            for &(attribute, value) in row.as_ref() {
                if attribute == u32::MAX || !value.is_finite() {
                    return Err(FieldError::Attribute { sample, factor, attribute });
                }
                if value != 1.0 && self.values.is_empty() {
                    self.values.resize(self.attributes.len(), 1.0);
                }
                self.attributes.push(attribute);
                if value != 1.0 || !self.values.is_empty() {
                    self.values.push(value);
                }
                let used = &mut self.used[field.template(factor)];
                *used = (*used).max(attribute + 1);
            }
            self.ends.push(self.attributes.len());
        }
        found += rows.count();
        if found == self.rows { Ok(()) } else { Err(FieldError::Rows { sample, found, expected: self.rows }) }
    }

    /// Some of the samples, in this order.
    ///
    /// # Panics
    /// If there is no such sample.
    pub fn select(&self, keep: &[usize]) -> Self {
        let mut part = Self {
            samples: keep.len(),
            place: self.place.clone(),
            ends: vec![0],
            used: self.used.clone(),
            labels: Vec::with_capacity(keep.len() * self.variables),
            attributes: Vec::new(),
            values: Vec::new(),
            ..*self
        };
        for &sample in keep {
            part.labels.extend_from_slice(self.labels(sample));
            let ends = &self.ends[sample * self.rows..=(sample + 1) * self.rows];
            let (first, last) = (ends[0], ends[ends.len() - 1]);
            let offset = part.attributes.len();
            part.ends.extend(ends[1..].iter().map(|end| offset + end - first));
            part.attributes.extend_from_slice(&self.attributes[first..last]);
            if !self.values.is_empty() {
                part.values.extend_from_slice(&self.values[first..last]);
            }
        }
        part
    }

    /// How many samples there are.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// How many variables each has.
    pub fn variables(&self) -> usize {
        self.variables
    }

    /// Labels of a sample, or [`MISSING`].
    #[inline]
    pub fn labels(&self, sample: usize) -> &[u32] {
        &self.labels[sample * self.variables..][..self.variables]
    }

    /// A factor's attributes in a sample; `None` if it has no inputs.
    #[inline]
    pub fn row(&self, sample: usize, factor: usize) -> Option<Row<'_>> {
        let place = self.place[factor];
        if place == NONE {
            return None;
        }
        let at = sample * self.rows + place as usize;
        let range = self.ends[at]..self.ends[at + 1];
        let values = if self.values.is_empty() { &[] } else { &self.values[range.clone()] };
        Some(Row { attributes: &self.attributes[range], values })
    }

    /// Whether a factor has inputs.
    #[inline]
    pub fn has_inputs(&self, factor: usize) -> bool {
        self.place[factor] != NONE
    }

    /// How many attributes a template needs for these samples.
    pub fn attributes(&self, template: usize) -> u32 {
        self.used[template]
    }

    /// The parameter index for these samples.
    ///
    /// # Errors
    /// [`FieldError::Index`].
    pub fn index(&self, field: &Field, coverage: Coverage) -> Result<Index, FieldError> {
        let min_count = match coverage {
            Coverage::All => return field.index(&self.used),
            Coverage::Reference => return field.reference_index(&self.used),
            Coverage::Seen { min_count } => min_count,
        };
        let mut seen = Vec::new();
        for (arities, &attributes) in field.templates().iter().zip(&self.used) {
            seen.push(Seen::new(arities, attributes)?);
        }
        for sample in 0..self.samples {
            let labels = self.labels(sample);
            for k in 0..field.factors() {
                let Some(y) = field.configuration(k, labels) else { continue };
                let seen = &mut seen[field.template(k)];
                match self.row(sample, k) {
                    None => seen.see(0, y as u32),
                    Some(row) => row.attributes.iter().for_each(|&a| seen.see(a, y as u32)),
                }
            }
        }
        let mut index = Index::new();
        for seen in seen {
            index.push_seen(seen, min_count)?;
        }
        Ok(index)
    }

    /// Whether index and field are those of these samples; a [`FieldError::Attribute`] names what has no place in the index.
    pub(crate) fn check(&self, field: &Field, index: &Index) -> Result<(), FieldError> {
        let templates = field.templates().len();
        let fits = self.place.len() == field.factors()
            && self.variables == field.variables()
            && index.templates() == templates
            && (0..templates).all(|t| index.arities(t) == field.templates()[t]);
        if !fits {
            return Err(FieldError::Attributes { templates });
        }
        for k in 0..field.factors() {
            let known = index.attributes(field.template(k)) as u32;
            if !self.has_inputs(k) && known != 1 {
                return Err(FieldError::Attributes { templates });
            }
            for sample in 0..if self.used[field.template(k)] > known { self.samples } else { 0 } {
                let row = self.row(sample, k).map_or(&[][..], |row| row.attributes);
                if let Some(&attribute) = row.iter().find(|&&a| a >= known) {
                    return Err(FieldError::Attribute { sample, factor: k, attribute });
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::Structure;

    #[test]
    fn reference_parameters_are_without_label_0() {
        let field = Field::pairwise([2, 3], &Structure::Chain, true).unwrap();
        let mut data = FieldData::new(&field, &[true, false, false]).unwrap();
        data.push(&field, &[1, 2], [[(1, 1.0)]]).unwrap();
        let index = data.index(&field, Coverage::Reference).unwrap();
        let about: Vec<_> = (0..index.len()).filter_map(|p| index.about(p)).collect();
        assert_eq!(about, [(0, 0, 1), (0, 1, 1), (1, 0, 1), (1, 0, 2), (2, 0, 4), (2, 0, 5)]);
    }

    #[test]
    fn samples_are_selected() {
        let field = Field::pairwise([2, 3], &Structure::Chain, true).unwrap();
        let mut data = FieldData::new(&field, &[true, true, false]).unwrap();
        data.push(&field, &[1, 2], [vec![(1, 1.0)], vec![]]).unwrap();
        data.push(&field, &[0, MISSING], [vec![], vec![(0, 1.0), (2, 0.5)]]).unwrap();
        data.push(&field, &[1, 0], [vec![(0, 4.0)], vec![(3, 1.0)]]).unwrap();
        let keep = [2, 1];
        let part = data.select(&keep);
        assert_eq!((part.samples(), part.variables(), part.attributes(1)), (2, 2, 4));
        for (s, &from) in keep.iter().enumerate() {
            assert_eq!(part.labels(s), data.labels(from));
            (0..3).for_each(|k| assert_eq!(part.row(s, k), data.row(from, k)));
        }
        assert_eq!(part.check(&field, &data.index(&field, Coverage::All).unwrap()), Ok(()));
    }

    #[test]
    fn a_refused_sample_leaves_no_trace() {
        let field = Field::pairwise([2, 3], &Structure::Chain, true).unwrap();
        let mut data = FieldData::new(&field, &[true, true, false]).unwrap();
        data.push(&field, &[1, 2], [[(1, 1.0)], [(0, 1.0)]]).unwrap();
        let before = data.clone();
        let row = [(5, 2.0)];
        for (labels, rows, value) in [
            (&[1, 1, 0][..], 2, 1.0),
            (&[2, 0], 2, 1.0),
            (&[0, 0], 1, 1.0),
            (&[0, 0], 3, 1.0),
            (&[0, 0], 2, f64::NAN),
        ] {
            let mut rows = vec![row; rows];
            rows.last_mut().unwrap()[0].1 *= value;
            assert!(data.push(&field, labels, rows).is_err());
            // Values are kept from the first one on that is not 1.
            assert_eq!(data.row(0, 1).unwrap().iter().collect::<Vec<_>>(), [(0, 1.0)]);
            assert_eq!((data.samples(), data.attributes(1)), (1, before.attributes(1)));
        }
        data.push(&field, &[0, MISSING], [row, row]).unwrap();
        assert_eq!(data.row(0, 0).unwrap().iter().collect::<Vec<_>>(), [(1, 1.0)]);
        assert_eq!(data.row(1, 1).unwrap().iter().collect::<Vec<_>>(), [(5, 2.0)]);
        assert_eq!(data.row(1, 2), None);
    }
}
