//! Labelled sequences as flat arrays.

use std::ops::Range;

/// What is known about the label of an item: a label, any (`?`), one of a set (`{A|B}`), or a label that the dictionary does not
/// have.
///
/// ```
/// use gibbsite::data::sequences::Gold;
/// assert_eq!((Gold::label(3).known(), Gold::ANY.known(), Gold::UNKNOWN.known()), (Some(3), None, None));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gold(u32);

impl Gold {
    /// Nothing is known.
    pub const ANY: Self = Self(u32::MAX);
    /// A label that the dictionary does not have.
    pub const UNKNOWN: Self = Self(u32::MAX - 1);
    /// Numbers from here on are sets.
    const SETS: u32 = 1 << 31;

    /// This label.
    ///
    /// # Panics
    /// If the number is 2³¹ or more.
    pub fn label(id: u32) -> Self {
        assert!(id < Self::SETS, "label {id}, expected less than 2^31");
        Self(id)
    }

    /// One of the labels of this set.
    pub(super) fn of_set(index: u32) -> Self {
        assert!(index < Self::UNKNOWN.0 - Self::SETS, "2^31 sets of labels");
        Self(Self::SETS + index)
    }

    /// The label, if it is known.
    #[inline]
    pub fn known(self) -> Option<u32> {
        (self.0 < Self::SETS).then_some(self.0)
    }

    /// As one number, and back.
    pub(super) fn word(self) -> u32 {
        self.0
    }

    pub(super) fn of_word(word: u32) -> Self {
        Self(word)
    }

    /// Which of [`Sequences::sets`] it is, if it is one.
    #[inline]
    pub fn set(self) -> Option<usize> {
        (Self::SETS..Self::UNKNOWN.0).contains(&self.0).then(|| (self.0 - Self::SETS) as usize)
    }
}

/// Sequences of items with attributes and labels. None is empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Sequences {
    /// Items of sequence `s`: `starts[s]..starts[s + 1]`.
    pub(super) starts: Vec<usize>,
    pub(super) gold: Vec<Gold>,
    pub(super) sets: Vec<Vec<u32>>,
    pub(super) attributes: Lists,
    pub(super) values: Option<Vec<f64>>,
    /// Of the edge from the item before to this one.
    pub(super) edges: Lists,
}

/// Lists of numbers one after the other: list `i` is `ids[starts[i]..starts[i + 1]]`. Without `starts` all are empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Lists {
    pub(super) starts: Vec<usize>,
    pub(super) ids: Vec<u32>,
}

impl Lists {
    #[inline]
    fn range(&self, i: usize) -> Range<usize> {
        if self.starts.is_empty() { 0..0 } else { self.starts[i]..self.starts[i + 1] }
    }

    /// Appends some of the lists of another; returns where their numbers are there.
    fn extend(&mut self, from: &Self, lists: Range<usize>) -> Range<usize> {
        if from.starts.is_empty() {
            return 0..0;
        }
        if self.starts.is_empty() {
            self.starts.push(0);
        }
        let starts = &from.starts[lists.start..=lists.end];
        let (first, last) = (starts[0], starts[starts.len() - 1]);
        let offset = self.ids.len();
        self.starts.extend(starts[1..].iter().map(|start| offset + start - first));
        self.ids.extend_from_slice(&from.ids[first..last]);
        first..last
    }
}

/// Attributes of an item with their values. One may be there more than once: its values add.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attributes<'a> {
    /// Which.
    pub ids: &'a [u32],
    /// Their values; if `None`, all are 1.
    pub values: Option<&'a [f64]>,
}

impl<'a> Attributes<'a> {
    /// Numbers and values.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u32, f64)> + Clone + 'a {
        let Self { ids, values } = *self;
        ids.iter().enumerate().map(move |(k, &id)| (id, values.map_or(1.0, |values| values[k])))
    }
}

impl Sequences {
    /// How many sequences there are.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many items there are in all sequences.
    pub fn items(&self) -> usize {
        self.gold.len()
    }

    /// How many attributes all items have, counted as often as they occur.
    pub fn occurrences(&self) -> usize {
        self.attributes.ids.len()
    }

    /// How many attributes all edges have, counted as often as they occur.
    pub fn edge_occurrences(&self) -> usize {
        self.edges.ids.len()
    }

    /// Whether some attribute has a value other than 1.
    pub fn weighted(&self) -> bool {
        self.values.is_some()
    }

    /// The items of sequence `s` among all items.
    ///
    /// # Panics
    /// If there is no such sequence.
    #[inline]
    pub fn range(&self, s: usize) -> Range<usize> {
        self.starts[s]..self.starts[s + 1]
    }

    /// Sequence `s`.
    ///
    /// # Panics
    /// If there is no such sequence.
    #[inline]
    pub fn sequence(&self, s: usize) -> SequenceView<'_> {
        SequenceView { all: self, range: self.range(s) }
    }

    /// All sequences in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = SequenceView<'_>> + Clone {
        (0..self.len()).map(|s| self.sequence(s))
    }

    /// What is known about the labels of all items.
    pub fn gold(&self) -> &[Gold] {
        &self.gold
    }

    /// Attributes of item `i` among all items.
    ///
    /// # Panics
    /// If there is no such item.
    #[inline]
    pub fn attributes(&self, i: usize) -> Attributes<'_> {
        let range = self.attributes.range(i);
        let values = self.values.as_ref().map(|values| &values[range.clone()]);
        Attributes { ids: &self.attributes.ids[range], values }
    }

    /// Attributes of all items, one after the other.
    pub fn all_attributes(&self) -> Attributes<'_> {
        Attributes { ids: &self.attributes.ids, values: self.values.as_deref() }
    }

    /// Attributes of the edge from the item before to item `i` among all items; none for the first item of a sequence.
    ///
    /// # Panics
    /// If there are edge attributes, but no such item.
    #[inline]
    pub fn edge_attributes(&self, i: usize) -> &[u32] {
        &self.edges.ids[self.edges.range(i)]
    }

    /// Attributes of all edges, one after the other.
    pub fn all_edge_attributes(&self) -> &[u32] {
        &self.edges.ids
    }

    /// Sets of labels, each ascending, with at least two of them.
    pub fn sets(&self) -> &[Vec<u32>] {
        &self.sets
    }

    /// The labels of a set; `None` if it is no set.
    pub fn set(&self, gold: Gold) -> Option<&[u32]> {
        self.sets.get(gold.set()?).map(Vec::as_slice)
    }

    /// Some of the sequences, in this order.
    ///
    /// # Panics
    /// If there is no such sequence.
    pub fn select(&self, keep: &[usize]) -> Self {
        let mut part = Self {
            starts: vec![0],
            gold: Vec::new(),
            sets: self.sets.clone(),
            attributes: Lists::default(),
            values: self.values.as_ref().map(|_| Vec::new()),
            edges: Lists::default(),
        };
        for range in keep.iter().map(|&s| self.range(s)) {
            part.gold.extend_from_slice(&self.gold[range.clone()]);
            part.starts.push(part.gold.len());
            let entries = part.attributes.extend(&self.attributes, range.clone());
            part.edges.extend(&self.edges, range);
            if let (Some(to), Some(from)) = (&mut part.values, &self.values) {
                to.extend_from_slice(&from[entries]);
            }
        }
        part
    }

    /// How much memory they take.
    pub fn bytes(&self) -> usize {
        let lists =
            |l: &Lists| l.starts.capacity() * size_of::<usize>() + l.ids.capacity() * size_of::<u32>();
        lists(&self.attributes)
            + lists(&self.edges)
            + self.starts.capacity() * size_of::<usize>()
            + self.gold.capacity() * size_of::<Gold>()
            + self.values.as_ref().map_or(0, |values| values.capacity() * size_of::<f64>())
    }
}

/// One of the [`Sequences`].
#[derive(Clone, Debug)]
pub struct SequenceView<'a> {
    all: &'a Sequences,
    range: Range<usize>,
}

impl<'a> SequenceView<'a> {
    /// How many items it has, at least one.
    pub fn items(&self) -> usize {
        self.range.len()
    }

    /// Its items among all items.
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// What is known about the labels.
    pub fn golds(&self) -> &'a [Gold] {
        &self.all.gold[self.range.clone()]
    }

    /// What is known about the label of item `t`.
    ///
    /// # Panics
    /// If there is no such item.
    pub fn gold(&self, t: usize) -> Gold {
        self.golds()[t]
    }

    /// Attributes of item `t`.
    ///
    /// # Panics
    /// If there is no such item.
    #[inline]
    pub fn attributes(&self, t: usize) -> Attributes<'a> {
        self.all.attributes(self.item(t))
    }

    /// Attributes of the edge from item `t - 1` to item `t`; none if `t` is 0.
    ///
    /// # Panics
    /// If there is no such item.
    #[inline]
    pub fn edge_attributes(&self, t: usize) -> &'a [u32] {
        self.all.edge_attributes(self.item(t))
    }

    #[inline]
    fn item(&self, t: usize) -> usize {
        assert!(t < self.range.len(), "item {t} of {}", self.range.len());
        self.range.start + t
    }
}
