//! How good labellings are.

use super::chunks::{are_chunks, chunks};
use super::tagger::Tagged;
use crate::data::sequences::{Dictionary, Gold, Sequences};
use std::collections::HashSet;

/// Correct, and how many there are on each side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hits {
    /// In both.
    pub correct: usize,
    /// Predicted.
    pub predicted: usize,
    /// In the data.
    pub gold: usize,
}

impl Hits {
    /// Share of the predicted that is right; 0 if nothing is predicted.
    pub fn precision(&self) -> f64 {
        if self.predicted == 0 { 0.0 } else { self.correct as f64 / self.predicted as f64 }
    }

    /// Share of what is in the data that was found; 0 if there is nothing.
    pub fn recall(&self) -> f64 {
        if self.gold == 0 { 0.0 } else { self.correct as f64 / self.gold as f64 }
    }

    /// Their harmonic mean.
    pub fn f1(&self) -> f64 {
        let (p, r) = (self.precision(), self.recall());
        if p + r == 0.0 { 0.0 } else { 2.0 * p * r / (p + r) }
    }
}

/// Scores of labelled sequences, added one by one.
///
/// ```
/// use gibbsite::sequence::score::SequenceScore;
/// let mut score = SequenceScore::new(&["O", "B-A", "I-A"]);
/// score.add(&["B-A", "I-A", "O"], &["B-A", "O", "O"]);
/// assert_eq!((score.items, score.right), (3, 2));
/// assert_eq!(score.chunk.map(|c| (c.correct, c.predicted, c.gold)), Some((0, 1, 1)));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SequenceScore {
    /// Items.
    pub items: usize,
    /// Items with the right label.
    pub right: usize,
    /// Sequences.
    pub sequences: usize,
    /// Sequences with all labels right.
    pub perfect: usize,
    /// Chunks by conlleval's definition, if labels mean chunks.
    pub chunk: Option<Hits>,
    /// Chunks of each type, in order of the alphabet.
    pub types: Vec<(String, Hits)>,
    /// Items of each label.
    pub labels: Vec<(String, Hits)>,
}

impl SequenceScore {
    /// For labels of these names.
    pub fn new(labels: &[&str]) -> Self {
        let mut names: Vec<(String, Hits)> =
            labels.iter().map(|&l| (l.to_owned(), Hits::default())).collect();
        names.sort_by(|a, b| a.0.cmp(&b.0));
        Self {
            items: 0,
            right: 0,
            sequences: 0,
            perfect: 0,
            chunk: are_chunks(labels.iter().copied()).then(Hits::default),
            types: Vec::new(),
            labels: names,
        }
    }

    /// Of labellings of sequences, and how many items have no known label. `names` are the predicted labels', `known` those of the labels in `golds`: the same, unless these have
    /// labels that the model does not know.
    ///
    /// # Panics
    /// If the labellings are not of these sequences and names.
    pub fn of(tagged: &[Tagged], names: &Dictionary, golds: &Sequences, known: &Dictionary) -> (Self, usize) {
        let names: Vec<&str> = names.iter().collect();
        let mut score = Self::new(&names);
        let mut unknown = 0;
        for (s, t) in tagged.iter().enumerate() {
            let found = t.labels.first().map_or(&[][..], Vec::as_slice);
            let (mut there, mut predicted) = (Vec::new(), Vec::new());
            for (gold, &label) in golds.sequence(s).golds().iter().zip(found) {
                match name_of(*gold, golds, known, names[label as usize]) {
                    Some(name) => {
                        there.push(name);
                        predicted.push(names[label as usize]);
                    }
                    None => unknown += 1,
                }
            }
            score.add(&there, &predicted);
        }
        (score, unknown)
    }

    /// One sequence: labels in the data, and predicted ones. Names that were not known so far are new labels.
    pub fn add(&mut self, gold: &[&str], predicted: &[&str]) {
        self.sequences += 1;
        self.items += gold.len();
        let right = gold.iter().zip(predicted).filter(|(g, p)| g == p).count();
        self.right += right;
        self.perfect += usize::from(right == gold.len());
        for (&g, &p) in gold.iter().zip(predicted) {
            hits(&mut self.labels, g).gold += 1;
            let found = hits(&mut self.labels, p);
            found.predicted += 1;
            found.correct += usize::from(g == p);
        }
        if let Some(total) = &mut self.chunk {
            let there: HashSet<_> = chunks(gold).into_iter().collect();
            let found = chunks(predicted);
            total.gold += there.len();
            total.predicted += found.len();
            for chunk in &found {
                let right = usize::from(there.contains(chunk));
                total.correct += right;
                let of_type = hits(&mut self.types, chunk.2);
                of_type.predicted += 1;
                of_type.correct += right;
            }
            for chunk in there {
                hits(&mut self.types, chunk.2).gold += 1;
            }
        }
    }
}

/// The gold label's name; of a set, the predicted one if it is in it.
fn name_of<'a>(
    gold: Gold,
    sequences: &Sequences,
    names: &'a Dictionary,
    predicted: &'a str,
) -> Option<&'a str> {
    if let Some(label) = gold.known() {
        return names.name(label);
    }
    let set = sequences.set(gold)?;
    let allowed = names.get(predicted).is_some_and(|label| set.contains(&label));
    if allowed { Some(predicted) } else { set.first().and_then(|&label| names.name(label)) }
}

/// The entry of a name in a sorted list.
fn hits<'a>(list: &'a mut Vec<(String, Hits)>, name: &str) -> &'a mut Hits {
    let at = match list.binary_search_by(|entry| entry.0.as_str().cmp(name)) {
        Ok(at) => at,
        Err(at) => {
            list.insert(at, (name.to_owned(), Hits::default()));
            at
        }
    };
    &mut list[at].1
}
