//! Chunks and their scores against conlleval, written out here as it is: two tables of rules and one loop.

use gibbsite::sequence::chunks::{are_chunks, chunks, split};
use gibbsite::sequence::score::{Hits, SequenceScore};
use gibbsite_tests::regression::rng;
use proptest::prelude::*;
use rand::RngExt;
use std::collections::BTreeMap;

type Tag<'a> = (char, &'a str);

/// conlleval's endOfChunk, with `S` as in its ports for IOBES.
fn end_of_chunk(before: Tag<'_>, now: Tag<'_>) -> bool {
    match (before.0, now.0) {
        ('E' | 'S', _) => true,
        ('B' | 'I', 'B' | 'S' | 'O') => true,
        ('O', _) => false,
        _ => before.1 != now.1,
    }
}

/// conlleval's startOfChunk, likewise.
fn start_of_chunk(before: Tag<'_>, now: Tag<'_>) -> bool {
    match (before.0, now.0) {
        (_, 'B' | 'S') => true,
        ('E' | 'S' | 'O', 'E' | 'I') => true,
        (_, 'O') => false,
        _ => before.1 != now.1,
    }
}

fn tag(label: &str) -> Tag<'_> {
    label.split_once('-').map_or(('O', ""), |(letter, kind)| (letter.chars().next().unwrap(), kind))
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counts {
    correct: usize,
    guessed: usize,
    gold: usize,
}

/// conlleval's loop over the lines of one sentence, with the line at its end.
fn conlleval(gold: &[&str], guessed: &[&str], counts: &mut BTreeMap<String, Counts>) {
    let (mut last_gold, mut last_guessed) = (('O', ""), ('O', ""));
    let mut in_correct: Option<String> = None;
    let ends = [("O", "O")];
    for (g, p) in gold.iter().copied().zip(guessed.iter().copied()).chain(ends) {
        let (g, p) = (tag(g), tag(p));
        if let Some(kind) = &in_correct {
            let (end_gold, end_guessed) = (end_of_chunk(last_gold, g), end_of_chunk(last_guessed, p));
            if end_gold && end_guessed && last_guessed.1 == last_gold.1 {
                counts.entry(kind.clone()).or_default().correct += 1;
                in_correct = None;
            } else if end_gold != end_guessed || p.1 != g.1 {
                in_correct = None;
            }
        }
        let (start_gold, start_guessed) = (start_of_chunk(last_gold, g), start_of_chunk(last_guessed, p));
        if start_gold && start_guessed && g.1 == p.1 {
            in_correct = Some(g.1.to_owned());
        }
        if start_gold {
            counts.entry(g.1.to_owned()).or_default().gold += 1;
        }
        if start_guessed {
            counts.entry(p.1.to_owned()).or_default().guessed += 1;
        }
        (last_gold, last_guessed) = (g, p);
    }
}

const BIO: [&str; 5] = ["O", "B-A", "I-A", "B-B", "I-B"];
const IOBES: [&str; 9] = ["O", "B-A", "I-A", "E-A", "S-A", "B-B", "I-B", "E-B", "S-B"];

fn counts(hits: Hits) -> Counts {
    Counts { correct: hits.correct, guessed: hits.predicted, gold: hits.gold }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Any labels in any order: most sequences are not valid.
    #[test]
    fn scores_are_those_of_conlleval(seed in any::<u64>(), iobes in any::<bool>()) {
        let labels = if iobes { &IOBES[..] } else { &BIO[..] };
        let mut rng = rng(seed);
        let mut score = SequenceScore::new(labels);
        let mut expected = BTreeMap::new();
        let (mut items, mut right, mut perfect) = (0, 0, 0);
        let sentences = rng.random_range(1..8);
        for _ in 0..sentences {
            let len = rng.random_range(0..12);
            let gold: Vec<&str> = (0..len).map(|_| labels[rng.random_range(0..labels.len())]).collect();
            // Close to the truth, so that some are correct.
            let change = |l: &&'static str, rng: &mut _| {
                if rand::RngExt::random_bool(rng, 0.3) { labels[rand::RngExt::random_range(rng, 0..labels.len())] } else { l }
            };
            let guessed: Vec<&str> = gold.iter().map(|l| change(l, &mut rng)).collect();
            score.add(&gold, &guessed);
            conlleval(&gold, &guessed, &mut expected);
            let same = (0..len).filter(|&t| gold[t] == guessed[t]).count();
            items += len;
            right += same;
            perfect += usize::from(same == len);
            // Chunks are apart, in order, and cover what is not O.
            let found = chunks(&gold);
            prop_assert!(found.windows(2).all(|w| w[0].1 <= w[1].0) && found.iter().all(|c| c.0 < c.1));
            for (t, l) in gold.iter().enumerate() {
                let kind = found.iter().find(|c| (c.0..c.1).contains(&t)).map_or("", |c| c.2);
                prop_assert_eq!(kind, tag(l).1);
            }
        }
        prop_assert_eq!((score.items, score.right, score.sequences, score.perfect), (items, right, sentences, perfect));
        let types: BTreeMap<String, Counts> =
            score.types.iter().map(|(name, hits)| (name.clone(), counts(*hits))).collect();
        let sum = |f: fn(&Counts) -> usize| expected.values().map(f).sum::<usize>();
        let total = counts(score.chunk.unwrap());
        prop_assert_eq!(total, Counts { correct: sum(|c| c.correct), guessed: sum(|c| c.guessed), gold: sum(|c| c.gold) });
        prop_assert_eq!(types, expected);
    }
}

/// By hand: three chunks in the data, three found, one of them right; of B all, of A none.
#[test]
fn numbers_by_hand() {
    let mut score = SequenceScore::new(&BIO);
    score.add(&["B-A", "I-A", "O", "B-B", "I-B"], &["B-A", "O", "O", "B-B", "I-B"]);
    score.add(&["I-A", "O"], &["O", "I-A"]);
    score.add(&[], &[]);
    assert_eq!((score.items, score.right, score.sequences, score.perfect), (7, 4, 3, 1));
    let all = score.chunk.unwrap();
    assert_eq!(all, Hits { correct: 1, predicted: 3, gold: 3 });
    assert_eq!((all.precision(), all.recall(), all.f1()), (1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0));
    let a = Hits { correct: 0, predicted: 2, gold: 2 };
    let b = Hits { correct: 1, predicted: 1, gold: 1 };
    assert_eq!(score.types, [("A".to_owned(), a), ("B".to_owned(), b)]);
    assert_eq!((a.f1(), b.f1(), Hits::default().f1()), (0.0, 1.0, 0.0));
    let inside = score.labels.iter().find(|l| l.0 == "I-A").unwrap().1;
    assert_eq!(inside, Hits { correct: 0, predicted: 1, gold: 2 });
    // What the labels are not made of.
    assert!(SequenceScore::new(&["N", "V", "B-A"]).chunk.is_none());
    assert!(!are_chunks(["O"]) && !are_chunks(["B", "I", "O"]) && are_chunks(["I-A", "O"]));
    assert_eq!(
        (split("B-A-b"), split("I_x"), split("Ox"), split("")),
        (Some(('B', "A-b")), Some(('I', "x")), None, None)
    );
    assert_eq!(chunks(&["U-A", "B-A", "L-A", "I-A"]), [(0, 1, "A"), (1, 3, "A"), (3, 4, "A")]);
    let hits = Hits { correct: 3, predicted: 4, gold: 6 };
    assert!((hits.f1() - 0.6).abs() < 1e-15);
}
