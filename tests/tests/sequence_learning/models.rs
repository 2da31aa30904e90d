//! Model files of sequences: they survive, damage is found, and nothing in them makes the reader or the tagger panic.

use crate::corpus::{Kind, Source};
use crate::tagging::model;
use gibbsite::data::sequences::{Format, ReadParams, read_known_from};
use gibbsite::model::sequence::Origin;
use gibbsite::model::{ModelError, SequenceModel};
use gibbsite::par::Par;
use gibbsite::sequence::scheme::Constraints;
use gibbsite::sequence::tagger::{Tagged, Tagger, Want};
use gibbsite_tests::oracle::distance;
use gibbsite_tests::regression::rng;
use proptest::prelude::*;
use rand::RngExt;

fn random(seed: u64, columns: bool) -> (SequenceModel, Source) {
    let mut rng = rng(seed);
    let kind = Kind { labels: &["A", "B", "C"], sequences: 5, longest: 5, columns, partial: 0.1 };
    let source = Source::random(kind, &mut rng);
    let mut model = model(&source, 2.0, &mut rng);
    if let Format::Columns(template) = &source.params.format {
        model.origin = Origin::Columns { template: template.source().into(), columns: 3 };
    }
    (model, Source::random(Kind { sequences: 10, ..kind }, &mut rng))
}

/// Everything about a text.
fn tag(model: &SequenceModel, text: &Source) -> Vec<Tagged> {
    let (sequences, _) = read_known_from(text.text.as_bytes(), &model.alphabet, &text.params).unwrap();
    let want = Want { best: 1, marginals: true, probability: true, forced: false };
    Tagger::new(model, Constraints::default()).tag(&sequences, want, Par::Seq).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn models_survive_their_files(seed in any::<u64>(), columns in any::<bool>()) {
        let (mut model, text) = random(seed, columns);
        let mut rng = rng(seed ^ 1);
        // Numbers of all sizes.
        let mut number = || f64::from_bits(rng.random_range(0..0x7ff0 << 48));
        (model.facts.objective, model.facts.violation, model.facts.l1) = (number(), number(), number());
        let bytes = model.to_bytes();
        let again = SequenceModel::open(&bytes).unwrap();
        prop_assert_eq!(&again, &model);
        prop_assert_eq!(again.to_bytes(), bytes);
        prop_assert_eq!(tag(&again, &text), tag(&model, &text));
    }

    #[test]
    fn compact_models_say_the_same(seed in any::<u64>(), columns in any::<bool>()) {
        let (mut model, text) = random(seed, columns);
        let mut rng = rng(seed ^ 2);
        let share = [0.3, 0.9, 1.0][rng.random_range(0..3)];
        model.theta.iter_mut().for_each(|w| if rng.random_bool(share) { *w = 0.0 });
        let small = model.compact();
        prop_assert!(small.theta.iter().all(|w| *w != 0.0));
        prop_assert_eq!(small.theta.len(), model.theta.iter().filter(|w| **w != 0.0).count());
        prop_assert_eq!(&small.compact(), &small);
        prop_assert!((0..small.index.attributes(0) as u32).all(|a| !small.index.parameters(0, a).is_empty()));
        for (a, b) in tag(&small, &text).iter().zip(&tag(&model, &text)) {
            prop_assert_eq!(&a.labels, &b.labels);
            prop_assert!(distance(&a.marginals, &b.marginals) < 1e-13);
            prop_assert!(distance(&a.log_probability, &b.log_probability) < 1e-12);
            prop_assert!((a.gold.unwrap() - b.gold.unwrap()).abs() < 1e-12);
        }
        let again = SequenceModel::open(&small.to_bytes()).unwrap();
        prop_assert_eq!(&again, &small);
        prop_assert_eq!(tag(&again, &text), tag(&small, &text));
    }
}

/// CRC-32 (IEEE), bit by bit.
fn checksum(bytes: &[u8]) -> u32 {
    let mut sum = !0u32;
    for &byte in bytes {
        sum ^= u32::from(byte);
        for _ in 0..8 {
            sum = (sum >> 1) ^ (0xedb8_8320 * (sum & 1));
        }
    }
    !sum
}

#[test]
fn damage_is_found() {
    for columns in [false, true] {
        let (model, _) = random(11, columns);
        let bytes = model.to_bytes();
        for len in 0..bytes.len() {
            assert!(SequenceModel::open(&bytes[..len]).is_err(), "cut to {len}");
        }
        for at in 0..bytes.len() {
            for change in [1u8, 2, 4, 8, 16, 32, 64, 128, 255] {
                let mut damaged = bytes.clone();
                damaged[at] ^= change;
                let found = SequenceModel::open(&damaged);
                assert!(found.is_err(), "byte {at} changed by {change}");
            }
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(SequenceModel::open(&longer).is_err());
        assert_eq!(SequenceModel::open(b"A\tx\n"), Err(ModelError::NotAModel));
    }
}

/// Checksums that were made right again: what opens is a model that can be used and written.
#[test]
fn forged_files_are_refused_or_usable() {
    let (mut opened, mut refused) = (0, 0);
    for columns in [false, true] {
        let (model, text) = random(12, columns);
        let bytes = model.to_bytes();
        let end = bytes.len() - 4;
        for at in 0..end {
            for change in [1u8, 2, 4, 8, 16, 32, 64, 128, 255] {
                let mut forged = bytes.clone();
                forged[at] ^= change;
                let sum = checksum(&forged[..end]);
                forged[end..].copy_from_slice(&sum.to_le_bytes());
                let Ok(found) = SequenceModel::open(&forged) else {
                    refused += 1;
                    continue;
                };
                opened += 1;
                // Another model, but one that holds together.
                // As bytes: an objective that nobody knows is NaN, which is not equal to itself.
                let written = found.to_bytes();
                assert_eq!(SequenceModel::open(&written).map(|again| again.to_bytes()), Ok(written));
                let params = ReadParams { labelled: true, ..text.params.clone() };
                let (sequences, _) = read_known_from(text.text.as_bytes(), &found.alphabet, &params).unwrap();
                let want = Want { best: 2, marginals: true, probability: true, forced: false };
                // Weights may be huge: no answer then, but no panic.
                let _ = Tagger::new(&found, Constraints::default()).tag(&sequences, want, Par::Seq);
                assert_eq!(found.compact().compact().to_bytes(), found.compact().to_bytes());
            }
        }
    }
    assert!(opened > 1000 && refused > 1000, "{opened} {refused}");
}
