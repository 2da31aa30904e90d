//! One parameter index for every kind of factor.
//!
//! A *template* is a kind of factor: the arities of its 1 to 4 outputs and a number of attributes. A factor's log-potential is
//!
//! ```text
//! log ψ(y) = Σ_(a, value) value · θ[parameter(template, a, configuration of y)]
//! ```
//!
//! over the attributes that it has in a sample; configurations are numbered in mixed radix, the last output fastest. All
//! parameters of one attribute stand side by side, by ascending configuration: all of them (*dense*), or only those that
//! occur in the data (*sparse*).

use std::fmt;
use std::ops::Range;

/// Most outputs of a factor.
pub const MAX_OUTPUTS: usize = 4;

/// Templates, and which parameter is about what.
///
/// ```
/// use gibbsite::features::{Index, Seen};
/// // States: 2 labels, 3 attributes, of which attribute 1 was only seen with label 0. Transitions: all.
/// let mut seen = Seen::new(&[2], 3)?;
/// for (attribute, label) in [(0, 0), (0, 1), (1, 0), (2, 1), (2, 0), (0, 1)] {
///     seen.see(attribute, label);
/// }
/// let mut index = Index::new();
/// index.push_seen(seen, 1)?;
/// index.push_dense(&[2, 2], 1)?;
/// assert_eq!(index.len(), 5 + 4);
/// assert_eq!(index.parameter(0, 1, 0), Some(2));
/// assert_eq!(index.parameter(0, 1, 1), None);
/// assert_eq!(index.parameter(1, 0, 3), Some(8));
/// assert_eq!(index.about(3), Some((0, 2, 0)));
/// # Ok::<(), gibbsite::features::IndexError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    templates: Vec<Template>,
    len: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Template {
    arities: Vec<u32>,
    /// Product of the arities.
    size: u32,
    attributes: u32,
    /// Number of the first parameter, and how many there are.
    first: u32,
    len: u32,
    /// Sparse: where each attribute's parameters begin (less `first`; one more entry for the end), and the configuration of
    /// each. Both empty for a dense template.
    starts: Vec<u32>,
    configurations: Vec<u32>,
}

impl Template {
    /// With these lists of configurations; numbered from 0.
    fn sparse(arities: Vec<u32>, size: u32, starts: Vec<u32>, configurations: Vec<u32>) -> Self {
        let (attributes, len) = (starts.len() as u32 - 1, configurations.len() as u32);
        Self { arities, size, attributes, first: 0, len, starts, configurations }
    }
}

/// A template that cannot be indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IndexError {
    /// A factor has 1 to [`MAX_OUTPUTS`] outputs.
    Outputs {
        /// How many were asked for.
        outputs: usize,
    },
    /// An output without labels.
    ArityZero,
    /// More configurations or parameters than 32 bits count.
    TooLarge,
    /// A list of configurations that does not ascend, or leads outside the outputs.
    Configuration,
}

impl fmt::Display for IndexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outputs { outputs } => {
                write!(f, "a factor has from 1 to {MAX_OUTPUTS} output variables, not {outputs}")
            }
            Self::ArityZero => write!(f, "an output variable has no labels"),
            Self::Configuration => {
                write!(f, "a list of configurations does not ascend or leads outside the outputs")
            }
            Self::TooLarge => write!(f, "the model has more parameters than 32 bits can count"),
        }
    }
}

impl std::error::Error for IndexError {}

/// The number of configurations of these arities.
pub(crate) fn size_of(arities: &[u32]) -> Result<u32, IndexError> {
    if !(1..=MAX_OUTPUTS).contains(&arities.len()) {
        return Err(IndexError::Outputs { outputs: arities.len() });
    }
    if arities.contains(&0) {
        return Err(IndexError::ArityZero);
    }
    arities.iter().try_fold(1u32, |size, &a| size.checked_mul(a)).ok_or(IndexError::TooLarge)
}

impl Index {
    /// Without templates.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a template with a parameter for each attribute and configuration; returns its number.
    ///
    /// # Errors
    /// An [`IndexError`]; the index is then as before.
    pub fn push_dense(&mut self, arities: &[u32], attributes: u32) -> Result<usize, IndexError> {
        let size = size_of(arities)?;
        let len = size.checked_mul(attributes).ok_or(IndexError::TooLarge)?;
        self.push(Template {
            arities: arities.to_vec(),
            size,
            attributes,
            first: 0,
            len,
            starts: vec![],
            configurations: vec![],
        })
    }

    /// Appends a template with a parameter for each attribute and each of these configurations; returns its number.
    ///
    /// # Errors
    /// An [`IndexError`]; the index is then as before. Configurations that the template does not have are left out.
    pub fn push_listed(
        &mut self,
        arities: &[u32],
        attributes: u32,
        configurations: &[u32],
    ) -> Result<usize, IndexError> {
        let size = size_of(arities)?;
        let mut each: Vec<u32> = configurations.iter().copied().filter(|&y| y < size).collect();
        each.sort_unstable();
        each.dedup();
        let per = each.len() as u32;
        let len = per.checked_mul(attributes).ok_or(IndexError::TooLarge)?;
        let configurations = each.iter().copied().cycle().take(len as usize).collect();
        let starts = (0..=attributes).map(|a| a * per).collect();
        self.push(Template::sparse(arities.to_vec(), size, starts, configurations))
    }

    /// Appends a template with a parameter for each attribute and configuration that was seen at least `min_count` times.
    ///
    /// # Errors
    /// [`IndexError::TooLarge`]; the index is then as before.
    pub fn push_seen(&mut self, seen: Seen, min_count: u32) -> Result<usize, IndexError> {
        let (size, attributes, arities) = (seen.size, seen.attributes, seen.arities.clone());
        let (keys, counts) = seen.finish();
        let mut starts = vec![0u32; attributes as usize + 1];
        let mut configurations = Vec::new();
        for (&key, _) in keys.iter().zip(&counts).filter(|&(_, &count)| count >= min_count) {
            starts[(key >> 32) as usize + 1] += 1;
            configurations.push(key as u32);
        }
        let mut total = 0u32;
        for start in &mut starts {
            total = total.checked_add(*start).ok_or(IndexError::TooLarge)?;
            *start = total;
        }
        self.push(Template::sparse(arities, size, starts, configurations))
    }

    /// Appends a template with parameters for the configurations of each attribute's list; returns its number. As the opposite of
    /// [`configurations`](Self::configurations).
    ///
    /// # Errors
    /// An [`IndexError`], also if a list does not ascend or leads outside the outputs; the index is then as before.
    pub fn push_lists(&mut self, arities: &[u32], lists: &[Vec<u32>]) -> Result<usize, IndexError> {
        let mut starts = vec![0u32];
        let mut configurations = Vec::new();
        for list in lists {
            configurations.extend_from_slice(list);
            starts.push(u32::try_from(configurations.len()).map_err(|_| IndexError::TooLarge)?);
        }
        self.push_flat(arities, starts, configurations)
    }

    /// As [`push_lists`](Self::push_lists), with all lists one after the other: that of attribute `a` is `configurations[starts[a]..starts[a + 1]]`.
    pub(crate) fn push_flat(
        &mut self,
        arities: &[u32],
        starts: Vec<u32>,
        configurations: Vec<u32>,
    ) -> Result<usize, IndexError> {
        let size = size_of(arities)?;
        if u32::try_from(starts.len()).is_err() {
            return Err(IndexError::TooLarge);
        }
        let list = |ends: &[u32]| configurations.get(ends[0] as usize..ends[1] as usize);
        let good = |list: &[u32]| list.is_sorted_by(|a, b| a < b) && list.last().is_none_or(|&c| c < size);
        if !starts.windows(2).all(|ends| list(ends).is_some_and(good)) {
            return Err(IndexError::Configuration);
        }
        self.push(Template::sparse(arities.to_vec(), size, starts, configurations))
    }

    fn push(&mut self, template: Template) -> Result<usize, IndexError> {
        let end = self.len.checked_add(template.len).ok_or(IndexError::TooLarge)?;
        self.templates.push(Template { first: self.len, ..template });
        self.len = end;
        Ok(self.templates.len() - 1)
    }

    /// How many parameters there are.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many templates there are.
    pub fn templates(&self) -> usize {
        self.templates.len()
    }

    /// Arities of a template's outputs.
    pub fn arities(&self, template: usize) -> &[u32] {
        &self.templates[template].arities
    }

    /// How many configurations a template's outputs have.
    pub fn size(&self, template: usize) -> usize {
        self.templates[template].size as usize
    }

    /// How many attributes a template has.
    pub fn attributes(&self, template: usize) -> usize {
        self.templates[template].attributes as usize
    }

    /// All parameters of a template.
    pub fn range(&self, template: usize) -> Range<usize> {
        let t = &self.templates[template];
        t.first as usize..(t.first + t.len) as usize
    }

    /// The parameters of an attribute; empty if the template does not have it.
    #[inline]
    pub fn parameters(&self, template: usize, attribute: u32) -> Range<usize> {
        let t = &self.templates[template];
        let a = attribute as usize;
        if attribute >= t.attributes {
            return 0..0;
        }
        let [from, to] = match t.starts.get(a..a + 2) {
            Some(&[from, to]) => [from, to],
            _ => [attribute * t.size, (attribute + 1) * t.size],
        };
        (t.first + from) as usize..(t.first + to) as usize
    }

    /// The configurations that the [`parameters`](Self::parameters) of an attribute are about, ascending; `None` if the
    /// template is dense: all of them.
    #[inline]
    pub fn configurations(&self, template: usize, attribute: u32) -> Option<&[u32]> {
        let t = &self.templates[template];
        let a = attribute as usize;
        match t.starts.get(a..a + 2) {
            Some(&[from, to]) => t.configurations.get(from as usize..to as usize),
            _ if t.starts.is_empty() => None,
            _ => Some(&[]),
        }
    }

    /// For passes over very many attributes of a sparse template: where each attribute's parameters begin, less the template's first, one more entry for the end; and the
    /// configuration of each. `None` if the template is dense.
    #[inline]
    pub(crate) fn lists(&self, template: usize) -> Option<(&[u32], &[u32])> {
        let t = &self.templates[template];
        (!t.starts.is_empty()).then_some((&t.starts, &t.configurations))
    }

    /// The parameter about an attribute and a configuration, if there is one.
    pub fn parameter(&self, template: usize, attribute: u32, configuration: u32) -> Option<usize> {
        let range = self.parameters(template, attribute);
        let at = match self.configurations(template, attribute) {
            Some(list) => list.binary_search(&configuration).ok()?,
            None => configuration as usize,
        };
        (at < range.len()).then(|| range.start + at)
    }

    /// What a parameter is about: template, attribute, configuration.
    pub fn about(&self, parameter: usize) -> Option<(usize, u32, u32)> {
        let p = u32::try_from(parameter).ok().filter(|&p| p < self.len)?;
        let template = self.templates.partition_point(|t| t.first + t.len <= p);
        let t = &self.templates[template];
        let within = p - t.first;
        if t.starts.is_empty() {
            return Some((template, within / t.size, within % t.size));
        }
        let attribute = t.starts.partition_point(|&start| start <= within) - 1;
        Some((template, attribute as u32, t.configurations[within as usize]))
    }

    /// The labels of a configuration.
    pub fn labels(&self, template: usize, configuration: u32) -> Vec<u32> {
        let mut rest = configuration;
        let mut labels: Vec<u32> = self.templates[template]
            .arities
            .iter()
            .rev()
            .map(|&arity| {
                let label = rest % arity;
                rest /= arity;
                label
            })
            .collect();
        labels.reverse();
        labels
    }

    /// `table[y] += value · θ[attribute, y]`: an attribute's share of a factor's log-potentials.
    #[inline]
    pub fn add_scores(&self, template: usize, attribute: u32, value: f64, theta: &[f64], table: &mut [f64]) {
        self.add_row_scores(template, [(attribute, value)], theta, table);
    }

    /// `gradient[attribute, y] += value · residual[y]`: the way back.
    #[inline]
    pub fn add_gradient(
        &self,
        template: usize,
        attribute: u32,
        value: f64,
        residual: &[f64],
        gradient: &mut [f64],
    ) {
        self.add_row_gradient(template, [(attribute, value)], residual, gradient);
    }

    /// `table[y] += Σ value · θ[attribute, y]` over attributes with values: a factor's log-potentials, or their share.
    #[inline]
    pub fn add_row_scores(
        &self,
        template: usize,
        attributes: impl IntoIterator<Item = (u32, f64)>,
        theta: &[f64],
        table: &mut [f64],
    ) {
        let t = &self.templates[template];
        let theta = &theta[self.range(template)];
        for (attribute, value) in attributes {
            let a = attribute as usize;
            if t.starts.is_empty() {
                // The table may be longer: rows have padding.
                let size = t.size as usize;
                let weights = theta.get(a * size..).unwrap_or(&[]);
                table.iter_mut().zip(weights).take(size).for_each(|(t, &w)| *t += value * w);
            } else if let Some(&[from, to]) = t.starts.get(a..a + 2) {
                let range = from as usize..to as usize;
                let pairs = t.configurations[range.clone()].iter().zip(&theta[range]);
                pairs.for_each(|(&y, &w)| table[y as usize] += value * w);
            }
        }
    }

    /// `gradient[attribute, y] += value · residual[y]` for attributes with values: the way back.
    #[inline]
    pub fn add_row_gradient(
        &self,
        template: usize,
        attributes: impl IntoIterator<Item = (u32, f64)>,
        residual: &[f64],
        gradient: &mut [f64],
    ) {
        let t = &self.templates[template];
        let gradient = &mut gradient[self.range(template)];
        for (attribute, value) in attributes {
            let a = attribute as usize;
            if t.starts.is_empty() {
                let size = t.size as usize;
                let own = gradient.get_mut(a * size..).unwrap_or(&mut []);
                own.iter_mut().zip(residual).take(size).for_each(|(g, &r)| *g += value * r);
            } else if let Some(&[from, to]) = t.starts.get(a..a + 2) {
                let range = from as usize..to as usize;
                let pairs = gradient[range.clone()].iter_mut().zip(&t.configurations[range]);
                pairs.for_each(|(g, &y)| *g += value * residual[y as usize]);
            }
        }
    }

    /// The index of some of the templates with some of their attributes (ascending), renumbered in that order; and for each
    /// of its parameters the number it has here.
    pub fn restrict(&self, parts: &[(usize, &[u32])]) -> (Self, Vec<u32>) {
        let (mut small, mut from) = (Self::new(), Vec::new());
        for &(template, attributes) in parts {
            let t = &self.templates[template];
            let first = from.len();
            let (mut starts, mut configurations) = (vec![0], vec![]);
            for &a in attributes {
                from.extend(self.parameters(template, a).map(|p| p as u32));
                configurations.extend_from_slice(self.configurations(template, a).unwrap_or(&[]));
                starts.push((from.len() - first) as u32);
            }
            if t.starts.is_empty() {
                starts.clear();
            }
            small.templates.push(Template {
                arities: t.arities.clone(),
                size: t.size,
                attributes: attributes.len() as u32,
                first: first as u32,
                len: (from.len() - first) as u32,
                starts,
                configurations,
            });
        }
        small.len = from.len() as u32;
        (small, from)
    }
}

/// Counts which configurations occur with which attributes, in memory of the order of what it finds.
#[derive(Clone, Debug)]
pub struct Seen {
    arities: Vec<u32>,
    size: u32,
    attributes: u32,
    /// `attribute << 32 | configuration`, sorted, each once, and how often.
    keys: Vec<u64>,
    counts: Vec<u32>,
    /// Not sorted yet.
    pending: Vec<u64>,
}

impl Seen {
    /// Pending sightings are sorted in when there are this many, or as many as there are keys.
    const PENDING: usize = 1 << 20;

    /// For a template with these outputs and attributes.
    ///
    /// # Errors
    /// An [`IndexError`].
    pub fn new(arities: &[u32], attributes: u32) -> Result<Self, IndexError> {
        let size = size_of(arities)?;
        let arities = arities.to_vec();
        Ok(Self { arities, size, attributes, keys: vec![], counts: vec![], pending: vec![] })
    }

    /// One occurrence. What lies outside the template is left out.
    #[inline]
    pub fn see(&mut self, attribute: u32, configuration: u32) {
        if attribute < self.attributes && configuration < self.size {
            self.pending.push(u64::from(attribute) << 32 | u64::from(configuration));
            if self.pending.len() >= Self::PENDING.max(self.keys.len()) {
                self.sort_in();
            }
        }
    }

    fn sort_in(&mut self) {
        self.pending.sort_unstable();
        let (keys, counts) = (std::mem::take(&mut self.keys), std::mem::take(&mut self.counts));
        let mut old = keys.into_iter().zip(counts).peekable();
        for run in self.pending.chunk_by(|a, b| a == b) {
            let key = run[0];
            while let Some((k, c)) = old.next_if(|&(k, _)| k < key) {
                self.keys.push(k);
                self.counts.push(c);
            }
            let before = old.next_if(|&(k, _)| k == key).map_or(0, |(_, c)| c);
            self.keys.push(key);
            self.counts.push(before.saturating_add(u32::try_from(run.len()).unwrap_or(u32::MAX)));
        }
        for (k, c) in old {
            self.keys.push(k);
            self.counts.push(c);
        }
        self.pending.clear();
    }

    fn finish(mut self) -> (Vec<u64>, Vec<u32>) {
        self.sort_in();
        (self.keys, self.counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sightings_in_many_runs_are_counted_once_each() {
        let mut seen = Seen::new(&[7], 1000).unwrap();
        for i in 0..3_000_000u32 {
            seen.see(i.wrapping_mul(2_654_435_761) >> 22, i % 7);
        }
        let mut index = Index::new();
        index.push_seen(seen, 1).unwrap();
        assert_eq!(index.len(), 7000);
        let mut few = Seen::new(&[2, 3], 4).unwrap();
        [(3, 5), (3, 5), (0, 1), (4, 0), (0, 6)].iter().for_each(|&(a, y)| few.see(a, y));
        index.push_seen(few, 2).unwrap();
        assert_eq!((index.len(), index.about(7000), index.about(7001)), (7001, Some((1, 3, 5)), None));
        assert_eq!(index.labels(1, 5), [1, 2]);
        assert_eq!(index.parameters(1, 0), 7000..7000);
    }

    #[test]
    fn a_restricted_index_speaks_of_the_same_parameters() {
        let mut index = Index::new();
        let mut seen = Seen::new(&[3], 4).unwrap();
        [(0, 1), (1, 0), (1, 2), (3, 1)].iter().for_each(|&(a, y)| seen.see(a, y));
        index.push_seen(seen, 1).unwrap();
        index.push_dense(&[2, 2], 3).unwrap();
        let (small, from) = index.restrict(&[(1, &[0, 2]), (0, &[1, 3])]);
        assert_eq!(from, [4, 5, 6, 7, 12, 13, 14, 15, 1, 2, 3]);
        for (p, &whole) in from.iter().enumerate() {
            let (t, a, y) = small.about(p).unwrap();
            assert_eq!(small.parameter(t, a, y), Some(p));
            let (t0, a0) = [(1, [0, 2]), (0, [1, 3])].map(|(t, list)| (t, list[a as usize]))[t];
            assert_eq!(index.parameter(t0, a0, y), Some(whole as usize));
        }
    }

    #[test]
    fn templates_have_one_to_four_outputs() {
        let mut index = Index::new();
        assert_eq!(index.push_dense(&[], 1), Err(IndexError::Outputs { outputs: 0 }));
        assert_eq!(index.push_dense(&[2; 5], 1), Err(IndexError::Outputs { outputs: 5 }));
        assert_eq!(index.push_dense(&[2, 0], 1), Err(IndexError::ArityZero));
        assert_eq!(index.push_dense(&[1 << 16, 1 << 16], 1), Err(IndexError::TooLarge));
        assert_eq!(index.push_dense(&[1 << 15], 1 << 17), Err(IndexError::TooLarge));
        assert_eq!(index, Index::new());
    }
}
