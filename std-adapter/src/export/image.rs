//! The words of an image; what they mean stands in `core/IMAGE.md`.

use super::quantise::{Quantised, log_add_table, quantise};
use super::{ExportError, ExportInfo, ExportParams, Exported, Naming};
use crate::data::sequences::Dictionary;
use crate::model::SequenceModel;
use crate::objective::sequences::{EDGES, STATES, TRANSITIONS};
use gibbsite_core::image::{
    Checksum, MAGIC, MAJOR, MARK, MAX_LABELS, MINOR, OPTIONAL, Scalar, chain_memory, hash, id,
};

/// Seeds of the hash function that are tried.
const SEEDS: u32 = 2000;

/// Writes the image of a chain.
///
/// Weights of 0, and attributes that have no others, are left out. With names, attributes are numbered in the order of their
/// hashes; without, in the model's order.
///
/// # Errors
/// An [`ExportError`] if the model has something that an image cannot hold.
///
/// # Panics
/// If a forbidden transition names a label that the model does not have.
pub fn export(model: &SequenceModel, params: &ExportParams) -> Result<Exported, ExportError> {
    let labels = model.alphabet.labels.len();
    if model.index.templates() > EDGES {
        return Err(ExportError::EdgeAttributes(model.alphabet.edge_attributes.len()));
    }
    if labels > MAX_LABELS {
        return Err(ExportError::Labels(labels));
    }
    let longest = Some(params.longest).filter(|&n| n > 0);
    let memory = longest.and_then(|n| chain_memory(params.scalar, labels, n));
    let [ram, ram_marginals] = memory.ok_or(ExportError::Longest(params.longest))?;

    let kept: Vec<(u32, Vec<(u32, f64)>)> = (0..model.index.attributes(STATES) as u32)
        .map(|a| (a, model.nonzero(STATES, a)))
        .filter(|(_, weights)| !weights.is_empty())
        .collect();
    let name = |a: u32| model.alphabet.attributes.name(a).unwrap_or_default();
    let (kept, lookup) = number(kept, params.naming, name)?;
    let mut numbers = vec![None; model.index.attributes(STATES)];
    for (i, (a, _)) in kept.iter().enumerate() {
        numbers[*a as usize] = Some(i as u32);
    }

    let mut starts = vec![0u32];
    let mut state_labels = Vec::new();
    let mut weights = Vec::new();
    for (_, list) in &kept {
        for &(label, weight) in list {
            state_labels.push(label as u8);
            weights.push(weight);
        }
        starts.push(u32::try_from(weights.len()).map_err(|_| ExportError::TooLarge)?);
    }
    let mut table = vec![0.0; labels * labels];
    model.index.add_scores(TRANSITIONS, 0, 1.0, &model.theta, &mut table);
    for &(from, to) in &params.forbidden {
        table[from as usize * labels + to as usize] = f64::NEG_INFINITY;
    }
    // Row = to: the inner loop of Viterbi then runs along a row.
    let turned: Vec<f64> = (0..labels * labels).map(|k| table[k % labels * labels + k / labels]).collect();

    let info =
        ExportInfo { flash: 0, ram, ram_marginals, labels, attributes: kept.len(), weights: weights.len() };
    let mut sections = vec![
        (
            id::SHAPE,
            [labels, kept.len(), params.scalar as usize, params.longest, ram, ram_marginals]
                .map(|n| n as u32)
                .to_vec(),
        ),
        (id::LABELS | OPTIONAL, texts(model.alphabet.labels.iter())?),
    ];
    let narrow = |x: f64, what: &dyn Fn() -> String| {
        let narrow = x as f32;
        let same = narrow.is_finite() || !x.is_finite();
        if same { Ok(narrow.to_bits()) } else { Err(ExportError::Weight(what())) }
    };
    match params.scalar {
        Scalar::F32 => {
            let turned: Result<Vec<u32>, _> =
                turned.iter().map(|&a| narrow(a, &|| "a transition".into())).collect();
            let mut words = Vec::with_capacity(weights.len());
            for (a, list) in &kept {
                for &(_, w) in list {
                    words.push(narrow(w, &|| name(*a).to_owned())?);
                }
            }
            sections.push((id::TRANSITIONS, turned?));
            sections.push((id::STATE_STARTS, starts));
            sections.push((id::STATE_LABELS, bytes(&state_labels)));
            sections.push((id::STATE_WEIGHTS, words));
            sections.extend(lookup);
        }
        Scalar::I16 | Scalar::I8 => {
            let q = quantise(params.scalar, &weights, &turned);
            let rows = q.transitions.chunks(labels).flat_map(halves).collect();
            let words = weight_words(params.scalar, &q);
            sections.push((id::TRANSITIONS, rows));
            sections.push((id::STATE_STARTS, starts));
            sections.push((id::STATE_LABELS, bytes(&state_labels)));
            sections.push((id::STATE_WEIGHTS, words));
            sections.extend(lookup);
            sections.push((id::SCALES, scales(&q, !params.forbidden.is_empty()).to_vec()));
            sections.push((id::LOG_ADD | OPTIONAL, log_add_table(q.unit)));
        }
    }
    let words = assemble(&sections)?;
    let info = ExportInfo { flash: 4 * words.len(), ..info };
    Ok(Exported { words, attributes: numbers, info })
}

/// Weights in fixed point as words.
pub(super) fn weight_words(scalar: Scalar, q: &Quantised) -> Vec<u32> {
    match scalar {
        Scalar::I8 => bytes(&q.weights.iter().map(|&w| w as i8 as u8).collect::<Vec<_>>()),
        _ => halves(&q.weights),
    }
}

/// What units are worth.
pub(super) fn scales(q: &Quantised, forbids: bool) -> [u32; 5] {
    // Upwards: what is said of errors must hold.
    let up = |x: f64| if x == 0.0 { 0 } else { (x as f32).next_up().to_bits() };
    [q.unit.to_bits(), q.shift, u32::from(forbids), up(q.weight_error), up(q.transition_error)]
}

pub(super) type Kept = Vec<(u32, Vec<(u32, f64)>)>;
pub(super) type Section = (u32, Vec<u32>);

/// Orders the attributes and makes the sections that find them by name.
pub(super) fn number<'m>(
    mut kept: Kept,
    naming: Naming,
    name: impl Fn(u32) -> &'m str,
) -> Result<(Kept, Vec<Section>), ExportError> {
    if naming == Naming::Numbers {
        return Ok((kept, vec![]));
    }
    let mut hashes = Vec::new();
    let unique = |seed: u32, hashes: &mut Vec<u32>| {
        hashes.clear();
        hashes.extend(kept.iter().map(|(a, _)| hash(seed, name(*a).as_bytes())));
        hashes.sort_unstable();
        hashes.windows(2).all(|w| w[0] < w[1])
    };
    let seed = (0..SEEDS).find(|&seed| unique(seed, &mut hashes)).ok_or(ExportError::Names(kept.len()))?;
    kept.sort_by_key(|(a, _)| hash(seed, name(*a).as_bytes()));
    let mut sections = vec![(id::ATTRIBUTES | OPTIONAL, [&[seed], &hashes[..]].concat())];
    if naming == Naming::Exact {
        sections.push((id::STRINGS | OPTIONAL, texts(kept.iter().map(|(a, _)| name(*a)))?));
    }
    Ok((kept, sections))
}

/// Header, section table, sections.
pub(super) fn assemble(sections: &[Section]) -> Result<Vec<u32>, ExportError> {
    let first = 8 + 3 * sections.len();
    let length: usize = first + sections.iter().map(|s| s.1.len()).sum::<usize>();
    let small = |n: usize| u32::try_from(n).map_err(|_| ExportError::TooLarge);
    let version = u32::from(MAJOR) << 16 | u32::from(MINOR);
    let mut words = vec![MAGIC, version, MARK, small(length)?, 0, sections.len() as u32, 0, 0];
    let mut at = first;
    for (section, content) in sections {
        words.extend([*section, small(at)?, small(content.len())?]);
        at += content.len();
    }
    sections.iter().for_each(|s| words.extend_from_slice(&s.1));
    let mut checksum = Checksum::default();
    checksum.add(&words);
    words[4] = checksum.finish();
    Ok(words)
}

/// Bytes, the first in the lowest bits.
fn bytes(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks(4).map(|c| c.iter().rev().fold(0, |w, &b| w << 8 | u32::from(b))).collect()
}

pub(super) fn halves(values: &[i16]) -> Vec<u32> {
    values.chunks(2).map(|c| c.iter().rev().fold(0, |w, &v| w << 16 | u32::from(v as u16))).collect()
}

/// Where each text begins and the last one ends, then their bytes.
pub(super) fn texts<'t>(texts: impl Iterator<Item = &'t str>) -> Result<Vec<u32>, ExportError> {
    let (mut words, mut all) = (vec![0], Vec::new());
    for text in texts {
        all.extend_from_slice(text.as_bytes());
        words.push(u32::try_from(all.len()).map_err(|_| ExportError::TooLarge)?);
    }
    words.extend(bytes(&all));
    Ok(words)
}

/// Used by the writers of source text.
pub(super) fn label_names(labels: &Dictionary) -> Vec<&str> {
    labels.iter().collect()
}
