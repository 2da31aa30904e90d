//! What the data asks for: which parameters there are, and how often what they are about was seen.

use super::train::TrainError;
use crate::data::sequences::{Alphabet, Corpus, SequenceView, Sequences, SpilledCorpus, Supply};
use crate::features::{Index, Seen};
use crate::objective::sequences::{EDGES, STATES, TRANSITIONS};

/// Which parameters there are; by default those that were seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Generate {
    /// A weight for each attribute with each label, not only with those that it was seen with.
    pub all_states: bool,
    /// A weight for each transition, not only for those that were seen.
    pub all_transitions: bool,
    /// No weights for plain transitions: a template without `B`.
    pub no_transitions: bool,
}

/// Sequences to learn from, in memory or in a file, and their alphabet.
#[derive(Clone, Copy, Debug)]
pub struct Data<'a> {
    /// The sequences.
    pub sequences: Supply<'a>,
    /// What labels and attributes are called.
    pub alphabet: &'a Alphabet,
}

impl<'a> From<&'a Corpus> for Data<'a> {
    fn from(corpus: &'a Corpus) -> Self {
        Self { sequences: Supply::Memory(&corpus.sequences), alphabet: &corpus.alphabet }
    }
}

impl<'a> From<&'a SpilledCorpus> for Data<'a> {
    fn from(corpus: &'a SpilledCorpus) -> Self {
        Self { sequences: Supply::File(&corpus.sequences), alphabet: &corpus.alphabet }
    }
}

/// The parameters that the training data asks for: template 0 states, 1 transitions, 2 edges (if there are such attributes).
///
/// # Errors
/// [`TrainError::NoLabels`], or too many parameters.
pub fn index<'a>(data: impl Into<Data<'a>>, generate: Generate) -> Result<Index, TrainError> {
    let Data { sequences, alphabet } = data.into();
    let labels = alphabet.labels.len() as u32;
    if labels == 0 {
        return Err(TrainError::NoLabels);
    }
    let wrong = TrainError::Index;
    let attributes = alphabet.attributes.len() as u32;
    let mut states = Seen::new(&[labels], attributes).map_err(wrong)?;
    let mut transitions = Seen::new(&[labels; 2], 1).map_err(wrong)?;
    let edge_attributes = alphabet.edge_attributes.len() as u32;
    let mut edges = Seen::new(&[labels; 2], edge_attributes).map_err(wrong)?;
    let whole = each_sequence(sequences, &mut |sequences, sequence| {
        let mut before: Vec<u32> = Vec::new();
        for t in 0..sequence.items() {
            // What a set allows was seen; what is not known was not.
            let gold = sequence.gold(t);
            let now: Vec<u32> = match (gold.known(), sequences.set(gold)) {
                (Some(label), _) => vec![label],
                (None, Some(set)) => set.to_vec(),
                (None, None) => Vec::new(),
            };
            for &label in &now {
                sequence.attributes(t).ids.iter().for_each(|&a| states.see(a, label));
                for &from in &before {
                    transitions.see(0, from * labels + label);
                    sequence.edge_attributes(t).iter().for_each(|&b| edges.see(b, from * labels + label));
                }
            }
            before = now;
        }
    });
    whole?;
    let mut index = Index::new();
    match generate.all_states {
        true => index.push_dense(&[labels], attributes),
        false => index.push_seen(states, 1),
    }
    .map_err(wrong)?;
    match (generate.no_transitions, generate.all_transitions) {
        (true, _) => index.push_lists(&[labels; 2], &[vec![]]),
        (false, true) => index.push_dense(&[labels; 2], 1),
        (false, false) => index.push_seen(transitions, 1),
    }
    .map_err(wrong)?;
    if edge_attributes > 0 {
        index.push_seen(edges, 1).map_err(wrong)?;
    }
    Ok(index)
}

/// Shows all sequences in order.
fn each_sequence(
    sequences: Supply<'_>,
    each: &mut dyn FnMut(&Sequences, &SequenceView<'_>),
) -> Result<(), TrainError> {
    let whole = sequences.visit(0..sequences.len(), &mut |part, own| {
        own.for_each(|s| each(part, &part.sequence(s)));
    });
    if whole { Ok(()) } else { Err(unread(sequences)) }
}

pub(super) fn unread(sequences: Supply<'_>) -> TrainError {
    TrainError::Unread(sequences.failure().unwrap_or_default().to_owned())
}

/// How often each parameter's attribute and labels were seen together: the sum of squared values.
pub(super) fn observed(sequences: Supply<'_>, index: &Index) -> Result<Vec<f64>, TrainError> {
    let labels = index.size(STATES) as u32;
    let mut counts = vec![0.0; index.len()];
    let mut see = |template, attribute, configuration, value: f64| {
        if let Some(p) = index.parameter(template, attribute, configuration) {
            counts[p] += value * value;
        }
    };
    each_sequence(sequences, &mut |_, sequence| {
        let mut before = None;
        for t in 0..sequence.items() {
            let now = sequence.gold(t).known();
            if let Some(label) = now {
                sequence.attributes(t).iter().for_each(|(a, v)| see(STATES, a, label, v));
                if let Some(from) = before {
                    let pair = from * labels + label;
                    see(TRANSITIONS, 0, pair, 1.0);
                    sequence.edge_attributes(t).iter().for_each(|&b| see(EDGES, b, pair, 1.0));
                }
            }
            before = now;
        }
    })?;
    Ok(counts)
}
