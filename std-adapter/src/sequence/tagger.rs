//! Labels for sequences: the best labelling, the N best, marginals and probabilities.

use super::scheme::Constraints;
use crate::data::sequences::{Gold, SequenceView, Sequences};
use crate::features::Index;
use crate::model::SequenceModel;
use crate::objective::rows::Layout;
use crate::objective::sequences::{EDGES, STATES, TRANSITIONS};
use crate::objective::term::{restrict, score_edges};
use crate::par::{Kernel, Par, vectorized};
use gibbsite_core::error::InferError;
use gibbsite_core::infer::chain::{Chain, Shared, Transitions};
use std::fmt;

/// A model that is ready to label.
#[derive(Debug)]
pub struct Tagger<'m> {
    pub(super) index: &'m Index,
    pub(super) theta: &'m [f64],
    pub(super) labels: usize,
    layout: Layout,
    weights: Vec<f64>,
    /// Scores of transitions; forbidden ones are `-inf`.
    pub(super) table: Vec<f64>,
    constraints: Constraints,
}

/// What is wanted of each sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    /// So many labellings, the best first.
    pub best: usize,
    /// `P(y_t = j)` of all items and labels.
    pub marginals: bool,
    /// `log p(y|x)` of the labellings, and of the labels in the data.
    pub probability: bool,
    /// Labels in the data are kept where they are known.
    pub forced: bool,
}

impl Default for Want {
    /// The best labelling.
    fn default() -> Self {
        Self { best: 1, marginals: false, probability: false, forced: false }
    }
}

/// What was found out about a sequence.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tagged {
    /// The labellings, the best first: fewer than wanted if so few are possible.
    pub labels: Vec<Vec<u32>>,
    /// `log p(y|x)` of each, if wanted.
    pub log_probability: Vec<f64>,
    /// `P(y_t = j)`, a row an item, if wanted.
    pub marginals: Vec<f64>,
    /// `log p` of what is known of the labels in the data, if wanted; nothing if a label is not the model's, or not possible.
    pub gold: Option<f64>,
}

/// A sequence that cannot be labelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagError {
    /// Its number, from 0.
    pub sequence: usize,
    pub(super) cause: InferError,
}

impl fmt::Display for TagError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.sequence + 1;
        match self.cause {
            InferError::ZeroProbability => {
                write!(
                    f,
                    "sequence {n} has no possible labelling: forced labels and constraints contradict each other"
                )
            }
            InferError::BadValue => {
                write!(
                    f,
                    "sequence {n} has scores beyond all bounds: the values of its attributes are too large"
                )
            }
            other => write!(f, "sequence {n}: {other}"),
        }
    }
}

impl std::error::Error for TagError {}

#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) rows: Vec<f64>,
    pub(super) tables: Vec<f64>,
    memory: Vec<f64>,
    back: Vec<u32>,
    small: Vec<u8>,
}

/// Sequences that a thread takes at a time.
const STRIP: usize = 16;

impl<'m> Tagger<'m> {
    /// Prepares a model.
    pub fn new(model: &'m SequenceModel, constraints: Constraints) -> Self {
        Self::of(&model.index, &model.theta, constraints)
    }

    /// For these weights of an index.
    pub fn of(index: &'m Index, theta: &'m [f64], constraints: Constraints) -> Self {
        let labels = index.size(STATES);
        let layout = Layout::new(index, Shared::<f64>::stride(labels));
        let mut weights = Vec::new();
        layout.spread(index, theta, &mut weights);
        let mut table = vec![0.0; labels * labels];
        index.add_scores(TRANSITIONS, 0, 1.0, theta, &mut table);
        for &(from, to) in &constraints.forbidden {
            if (from as usize) < labels && (to as usize) < labels {
                table[from as usize * labels + to as usize] = f64::NEG_INFINITY;
            }
        }
        Self { index, theta, labels, layout, weights, table, constraints }
    }

    /// How many labels there are.
    pub fn labels(&self) -> usize {
        self.labels
    }

    /// Labels all sequences, which were read with the model's alphabet.
    ///
    /// # Errors
    /// The first sequence that has no possible labelling.
    pub fn tag(&self, sequences: &Sequences, want: Want, par: Par) -> Result<Vec<Tagged>, TagError> {
        let strips: Vec<usize> = (0..sequences.len()).step_by(STRIP).collect();
        let each = par.map(strips, |first| {
            let last = (first + STRIP).min(sequences.len());
            let mut scratch = Scratch::default();
            (first..last)
                .map(|s| {
                    let sequence = sequences.sequence(s);
                    self.one(sequences, &sequence, want, &mut scratch)
                        .map_err(|cause| TagError { sequence: s, cause })
                })
                .collect::<Result<Vec<Tagged>, TagError>>()
        });
        let mut all = Vec::with_capacity(sequences.len());
        for strip in each {
            all.extend(strip?);
        }
        Ok(all)
    }

    fn one(
        &self,
        sequences: &Sequences,
        sequence: &SequenceView<'_>,
        want: Want,
        scratch: &mut Scratch,
    ) -> Result<Tagged, InferError> {
        let (labels, items) = (self.labels, sequence.items());
        let Scratch { rows, tables, memory, back, small } = scratch;
        vectorized(Rows { tagger: self, sequence, rows: &mut *rows });
        if want.forced {
            restrict(sequences, sequence.golds(), labels, rows, labels);
        }
        let transitions = if self.index.templates() > EDGES {
            score_edges(sequence, self.index, self.theta, 1.0, &self.table, tables);
            Transitions::Each(&tables[..])
        } else {
            Transitions::Shared(&self.table)
        };
        let chain = Chain::new(labels, rows, transitions)?;
        let mut tagged = Tagged::default();
        let mut scores = Vec::new();
        if want.best == 1 {
            let mut path = vec![0; items];
            memory.resize(Chain::<f64>::viterbi_len(labels), 0.0);
            let pointers = Chain::<f64>::viterbi_back_len(items, labels);
            let score = if labels <= 256 {
                small.resize(pointers, 0);
                vectorized(Best { chain, path: &mut path, back: &mut small[..], memory })
            } else {
                back.resize(pointers, 0);
                vectorized(Best { chain, path: &mut path, back: &mut back[..], memory })
            };
            scores.push(score?);
            tagged.labels.push(path);
        } else if want.best > 1 {
            let mut paths = vec![0; want.best * items];
            scores.resize(want.best, 0.0);
            back.resize(Chain::<f64>::n_best_back_len(items, labels, want.best), 0);
            memory.resize(Chain::<f64>::n_best_len(labels, want.best), 0.0);
            let found = chain.n_best(want.best, &mut paths, &mut scores, back, memory)?;
            if found == 0 {
                return Err(InferError::ZeroProbability);
            }
            scores.truncate(found);
            tagged.labels = paths.chunks_exact(items.max(1)).take(found).map(<[u32]>::to_vec).collect();
        }
        let log_z = if want.marginals {
            let mut singles = vec![0.0; items * labels];
            memory.resize(Chain::<f64>::forward_backward_len(items, labels), 0.0);
            let log_z = chain.forward_backward(&mut singles, None, memory)?;
            tagged.marginals = singles;
            log_z
        } else if want.probability {
            memory.resize(Chain::<f64>::log_z_len(labels), 0.0);
            chain.log_z(memory)?
        } else {
            return Ok(tagged);
        };
        tagged.log_probability = scores.iter().map(|s| s - log_z).collect();
        if want.probability {
            tagged.gold = self.gold(sequences, sequence, rows, transitions, memory).map(|s| s - log_z);
        }
        Ok(tagged)
    }

    /// `log Σ` of the scores of all labellings that fit the data's labels.
    fn gold(
        &self,
        sequences: &Sequences,
        sequence: &SequenceView<'_>,
        rows: &[f64],
        transitions: Transitions<'_, f64>,
        memory: &mut Vec<f64>,
    ) -> Option<f64> {
        let golds = sequence.golds();
        let known: Option<Vec<u32>> = golds.iter().map(|g| g.known()).collect();
        let score = if let Some(path) = known {
            Chain::new(self.labels, rows, transitions).and_then(|chain| chain.score(&path)).ok()?
        } else {
            if golds.contains(&Gold::UNKNOWN) {
                return None;
            }
            let mut possible = rows.to_vec();
            restrict(sequences, golds, self.labels, &mut possible, self.labels);
            memory.resize(Chain::<f64>::log_z_len(self.labels), 0.0);
            Chain::new(self.labels, &possible, transitions).and_then(|chain| chain.log_z(memory)).ok()?
        };
        score.is_finite().then_some(score)
    }
}

/// Scores of the items, without padding.
pub(super) struct Rows<'a> {
    pub(super) tagger: &'a Tagger<'a>,
    pub(super) sequence: &'a SequenceView<'a>,
    pub(super) rows: &'a mut Vec<f64>,
}

impl Kernel for Rows<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Self { tagger, sequence, rows } = self;
        let Tagger { index, theta, layout, weights, labels, constraints, .. } = tagger;
        let items = sequence.items();
        rows.clear();
        let mut padded = vec![0.0; layout.stride];
        for t in 0..items {
            padded.fill(0.0);
            layout.score(index, theta, weights, sequence.attributes(t), &mut padded);
            rows.extend_from_slice(&padded[..*labels]);
        }
        let mut forbid = |item: Option<usize>, those: &[u32]| {
            let Some(item) = item else { return };
            for &label in those {
                if (label as usize) < *labels {
                    rows[item * labels + label as usize] = f64::NEG_INFINITY;
                }
            }
        };
        forbid((items > 0).then_some(0), &constraints.not_first);
        forbid(items.checked_sub(1), &constraints.not_last);
    }
}

struct Best<'a, 'c, B> {
    chain: Chain<'c, f64>,
    path: &'a mut [u32],
    back: &'a mut [B],
    memory: &'a mut [f64],
}

impl<B: Copy + Into<u32> + TryFrom<u32>> Kernel for Best<'_, '_, B> {
    type Output = Result<f64, InferError>;
    #[inline(always)]
    fn run(self) -> Result<f64, InferError> {
        self.chain.viterbi(self.path, self.back, self.memory)
    }
}
