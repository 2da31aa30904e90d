//! What a piece of text holds, and how pieces become one.
//!
//! On one thread there is one part, which all text goes into. On several each chunk of text gets its own part with its own
//! dictionaries. Numbers there follow the first occurrence, and parts are joined in the order of the text, so that
//! each string gets the number that it would have got on one thread.

use super::super::dataset::Fault;
use super::super::dataset::number::shown;
use super::dictionary::{Alphabet, BATCH, Dictionary, MISSING};
use super::store::{Gold, Lists, Sequences};
use std::collections::HashMap;

/// Up to this many names are looked up one by one.
const FEW: usize = 1 << 12;

/// A dictionary that takes what it does not know, or one that does not.
pub(super) enum Names<'a> {
    Growing(Dictionary),
    Known(&'a Dictionary),
}

impl Names<'_> {
    #[inline(always)]
    fn number(&mut self, name: &str) -> Option<u32> {
        match self {
            Self::Growing(names) => Some(names.intern(name)),
            Self::Known(names) => names.get(name),
        }
    }

    /// The numbers of many names, in their order; `None` for what is not known.
    #[inline(always)]
    fn numbers<S: AsRef<str>>(&mut self, names: &[S], mut each: impl FnMut(usize, Option<u32>)) {
        // What fits the cache needs no waiting.
        let size = match self {
            Self::Growing(known) => known.len(),
            Self::Known(known) => known.len(),
        };
        if size < FEW {
            names.iter().enumerate().for_each(|(k, name)| each(k, self.number(name.as_ref())));
            return;
        }
        let (mut batch, mut numbers) = ([""; BATCH], [MISSING; BATCH]);
        for (first, names) in (0..).step_by(BATCH).zip(names.chunks(BATCH)) {
            batch.iter_mut().zip(names).for_each(|(slot, name)| *slot = name.as_ref());
            match self {
                Self::Growing(known) => known.get_all(&batch, &mut numbers),
                Self::Known(known) => known.get_all(&batch, &mut numbers),
            }
            for (k, (name, &number)) in names.iter().zip(&numbers).enumerate() {
                let number = match (number, &mut *self) {
                    (MISSING, Self::Growing(known)) => Some(known.intern(name.as_ref())),
                    (MISSING, Self::Known(_)) => None,
                    (number, _) => Some(number),
                };
                each(first + k, number);
            }
        }
    }

    /// The numbers here of what `other` has; `None` if they are the same.
    fn absorb(&mut self, other: &Names<'_>) -> Option<Vec<u32>> {
        match (self, other) {
            (Self::Growing(names), Names::Growing(other)) => {
                Some(other.iter().map(|name| names.intern(name)).collect())
            }
            _ => None,
        }
    }

    fn grown(self) -> Dictionary {
        match self {
            Self::Growing(names) => names,
            Self::Known(_) => Dictionary::new(),
        }
    }
}

/// How often something was looked for in vain.
#[derive(Clone, Copy, Default)]
pub(super) struct Unknown {
    pub(super) labels: u64,
    pub(super) attributes: u64,
    pub(super) edge_attributes: u64,
}

/// Items, and where sequences end.
pub(super) struct Part<'a> {
    labels: Names<'a>,
    attributes: Names<'a>,
    edge_attributes: Names<'a>,
    /// Before these items there is a blank line; ascending, with repetitions.
    breaks: Vec<usize>,
    gold: Vec<Gold>,
    sets: Sets,
    lists: Lists,
    /// One for each of `lists.ids`, or none as long as all are 1.
    values: Vec<f64>,
    edges: Lists,
    pub(super) unknown: Unknown,
    /// How many lines there were.
    pub(super) lines: usize,
}

#[derive(Default)]
struct Sets {
    list: Vec<Vec<u32>>,
    index: HashMap<Vec<u32>, u32>,
}

impl Sets {
    /// One of these labels, or the one that it is.
    fn gold(&mut self, mut labels: Vec<u32>) -> Gold {
        labels.sort_unstable();
        labels.dedup();
        match labels[..] {
            [] => Gold::UNKNOWN,
            [label] => Gold::label(label),
            _ => {
                let next = self.list.len() as u32;
                let index = *self.index.entry(labels).or_insert_with_key(|labels| {
                    self.list.push(labels.clone());
                    next
                });
                Gold::of_set(index)
            }
        }
    }
}

impl<'a> Part<'a> {
    /// Nothing yet; with the dictionaries of a model, or with new ones.
    pub(super) fn new(known: Option<&'a Alphabet>) -> Self {
        let names = |of: fn(&Alphabet) -> &Dictionary| {
            known.map_or_else(|| Names::Growing(Dictionary::new()), |known| Names::Known(of(known)))
        };
        Self {
            labels: names(|known| &known.labels),
            attributes: names(|known| &known.attributes),
            edge_attributes: names(|known| &known.edge_attributes),
            breaks: Vec::new(),
            gold: Vec::new(),
            sets: Sets::default(),
            lists: Lists { starts: vec![0], ids: Vec::new() },
            values: Vec::new(),
            edges: Lists { starts: vec![0], ids: Vec::new() },
            unknown: Unknown::default(),
            lines: 0,
        }
    }

    /// How many items there are.
    pub(super) fn items(&self) -> usize {
        self.gold.len()
    }

    /// A blank line.
    pub(super) fn end_sequence(&mut self) {
        self.breaks.push(self.gold.len());
    }

    /// Attributes of the next item, and their values; none if all are 1.
    #[inline]
    pub(super) fn attributes<S: AsRef<str>>(&mut self, names: &[S], values: &[f64]) {
        let Self { attributes, lists, values: all, unknown, .. } = self;
        attributes.numbers(names, |k, id| {
            let Some(id) = id else {
                unknown.attributes += 1;
                return;
            };
            let value = values.get(k).copied().unwrap_or(1.0);
            if value != 1.0 || !all.is_empty() {
                all.resize(lists.ids.len(), 1.0);
                all.push(value);
            }
            lists.ids.push(id);
        });
    }

    /// Attributes of the edge to the next item.
    #[inline]
    pub(super) fn edge_attributes<S: AsRef<str>>(&mut self, names: &[S]) {
        let Self { edge_attributes, edges, unknown, .. } = self;
        edge_attributes.numbers(names, |_, id| match id {
            Some(id) => edges.ids.push(id),
            None => unknown.edge_attributes += 1,
        });
    }

    /// The item, after its attributes.
    #[inline(always)]
    pub(super) fn item(&mut self, gold: Gold) {
        self.gold.push(gold);
        self.lists.starts.push(self.lists.ids.len());
        self.edges.starts.push(self.edges.ids.len());
    }

    /// What a label field says.
    #[inline]
    pub(super) fn label(&mut self, text: &str) -> Result<Gold, Fault> {
        match text.as_bytes() {
            [b'?'] => Ok(Gold::ANY),
            [b'{', .., b'}'] => self.set(text),
            _ => Ok(match self.labels.number(text) {
                Some(id) => Gold::label(id),
                None => {
                    self.unknown.labels += 1;
                    Gold::UNKNOWN
                }
            }),
        }
    }

    #[cold]
    fn set(&mut self, text: &str) -> Result<Gold, Fault> {
        let inside = &text[1..text.len() - 1];
        let mut labels = Vec::new();
        for name in inside.split('|') {
            if name.is_empty() {
                let what = "expected labels between the braces, separated by `|`";
                return Err(self.fault(format!("found `{}`, {what}", shown(text.as_bytes()))));
            }
            match self.labels.number(name) {
                Some(id) => labels.push(id),
                None => self.unknown.labels += 1,
            }
        }
        Ok(self.sets.gold(labels))
    }

    /// A fault in the line that is being read.
    #[cold]
    pub(super) fn fault(&self, what: impl Into<String>) -> Fault {
        Fault::new(self.lines, what)
    }

    /// Puts what follows in the text behind what is here.
    pub(super) fn absorb(&mut self, part: Part<'_>) {
        let (items, entries, edges) = (self.gold.len(), self.lists.ids.len(), self.edges.ids.len());
        self.breaks.extend(part.breaks.iter().map(|at| items + at));
        let labels = self.labels.absorb(&part.labels);
        let label = |id: u32| labels.as_ref().map_or(id, |labels| labels[id as usize]);
        let sets: Vec<Gold> = (part.sets.list.into_iter())
            .map(|set| self.sets.gold(set.into_iter().map(label).collect()))
            .collect();
        self.gold.extend(part.gold.iter().map(|gold| match (gold.known(), gold.set()) {
            (Some(id), _) => Gold::label(label(id)),
            (_, Some(set)) => sets[set],
            _ => *gold,
        }));
        if !part.values.is_empty() || !self.values.is_empty() {
            self.values.resize(entries, 1.0);
            self.values.extend_from_slice(&part.values);
            self.values.resize(entries + part.lists.ids.len(), 1.0);
        }
        append(&mut self.lists, &part.lists, entries, self.attributes.absorb(&part.attributes));
        append(&mut self.edges, &part.edges, edges, self.edge_attributes.absorb(&part.edge_attributes));
        self.unknown.labels += part.unknown.labels;
        self.unknown.attributes += part.unknown.attributes;
        self.unknown.edge_attributes += part.unknown.edge_attributes;
        self.lines += part.lines;
    }

    /// How many attributes the items have.
    pub(super) fn entries(&self) -> usize {
        self.lists.ids.len()
    }

    /// Takes out all sequences that have ended. Sets of labels stay.
    pub(super) fn take_ended(&mut self) -> Sequences {
        let at = self.breaks.last().copied().unwrap_or(0);
        let split = |lists: &mut Lists| {
            let entries = lists.starts[at];
            let starts = lists.starts[at..].iter().map(|start| start - entries).collect();
            let rest = Lists { starts, ids: lists.ids.split_off(entries) };
            lists.starts.truncate(at + 1);
            (std::mem::replace(lists, rest), entries)
        };
        let (attributes, entries) = split(&mut self.lists);
        let (edges, _) = split(&mut self.edges);
        let values = (!self.values.is_empty()).then(|| {
            self.values.resize(entries + self.lists.ids.len(), 1.0);
            let rest = self.values.split_off(entries);
            std::mem::replace(&mut self.values, rest)
        });
        let rest = self.gold.split_off(at);
        let gold = std::mem::replace(&mut self.gold, rest);
        let mut starts = vec![0];
        starts.append(&mut self.breaks);
        starts.dedup();
        Sequences { starts, gold, sets: Vec::new(), attributes, values, edges }
    }

    /// All sequences, and the dictionaries, which are empty if those of a model were used.
    pub(super) fn finish(mut self) -> (Sequences, Alphabet) {
        let items = self.gold.len();
        let mut starts = vec![0];
        self.breaks.push(items);
        for at in self.breaks {
            if at > starts[starts.len() - 1] {
                starts.push(at);
            }
        }
        starts.shrink_to_fit();
        self.gold.shrink_to_fit();
        let Lists { starts: ends, ids } = &mut self.lists;
        ends.shrink_to_fit();
        ids.shrink_to_fit();
        self.values.shrink_to_fit();
        if self.edges.ids.is_empty() {
            self.edges = Lists::default();
        }
        let sequences = Sequences {
            starts,
            gold: self.gold,
            sets: self.sets.list,
            attributes: self.lists,
            values: Some(self.values).filter(|values| !values.is_empty()),
            edges: self.edges,
        };
        let alphabet = Alphabet {
            labels: self.labels.grown(),
            attributes: self.attributes.grown(),
            edge_attributes: self.edge_attributes.grown(),
        };
        (sequences, alphabet)
    }
}

fn append(to: &mut Lists, from: &Lists, offset: usize, numbers: Option<Vec<u32>>) {
    to.starts.extend(from.starts.iter().skip(1).map(|start| offset + start));
    match numbers {
        Some(numbers) => to.ids.extend(from.ids.iter().map(|&id| numbers[id as usize])),
        None => to.ids.extend_from_slice(&from.ids),
    }
}

/// Whole lines of text in front of the first line that is not UTF-8, and whether there is such a line.
pub(super) fn whole_text(bytes: &[u8]) -> (&str, bool) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (text, false),
        Err(error) => {
            let good = &bytes[..error.valid_up_to()];
            let end = memchr::memrchr(b'\n', good).map_or(0, |at| at + 1);
            (std::str::from_utf8(&good[..end]).unwrap_or_default(), true)
        }
    }
}

/// The line that [`whole_text`] stopped at.
#[cold]
pub(super) fn not_text(part: &Part<'_>) -> Fault {
    part.fault(
        "found bytes that are not UTF-8, expected UTF-8 text (`iconv -f LATIN1 -t UTF-8` converts Latin-1)",
    )
}
