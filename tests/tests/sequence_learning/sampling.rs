//! Draws against enumerated probabilities.

use crate::corpus::{Enumerated, Kind, Labelling, Source, keys, log_sum, names};
use gibbsite::par::Par;
use gibbsite::sequence::scheme::Constraints;
use gibbsite::sequence::tagger::Tagger;
use gibbsite::sequence::train::{Generate, index};
use gibbsite_tests::regression::{normal, rng};
use std::collections::HashMap;

const DRAWS: usize = 20_000;

#[test]
fn labellings_come_as_often_as_they_are_probable() {
    for (seed, columns) in [(1, false), (2, true)] {
        let mut rng = rng(seed);
        let kind = Kind { labels: &["A", "B", "C"], sequences: 3, longest: 3, columns, partial: 0.3 };
        let source = Source::random(kind, &mut rng);
        let corpus = source.read();
        let generate = Generate { all_states: true, all_transitions: true, ..Generate::default() };
        let index = index(&corpus, generate).unwrap();
        let theta: Vec<f64> = (0..index.len()).map(|_| normal(&mut rng)).collect();
        let keys = keys(&corpus.alphabet, &index);
        let oracle = Enumerated::new(&source, &names(&corpus.alphabet), &keys);
        let tagger = Tagger::of(&index, &theta, Constraints::default());
        for forced in [false, true] {
            let draw = |par: Par| tagger.sample(&corpus.sequences, DRAWS, forced, 7, par).unwrap();
            let drawn = draw(Par::Seq);
            assert!(drawn == Par::threads(2).run(draw), "threads make no difference");
            for (all, drawn) in oracle.0.iter().zip(&drawn) {
                let mut counts: HashMap<Vec<usize>, f64> = HashMap::new();
                for path in drawn {
                    *counts.entry(path.iter().map(|&label| label as usize).collect()).or_default() += 1.0;
                }
                let all: Vec<&Labelling> = all.iter().filter(|y| y.fits || !forced).collect();
                let log_z = log_sum(all.iter().map(|y| y.score(&theta)));
                let mut seen = 0.0;
                for y in all {
                    let p = (y.score(&theta) - log_z).exp();
                    let (found, expected) = (counts.get(&y.labels).copied().unwrap_or(0.0), DRAWS as f64 * p);
                    seen += found;
                    let deviation = (expected * (1.0 - p)).sqrt();
                    assert!((found - expected).abs() <= 5.0 * deviation + 1.0, "{found} of {expected}");
                }
                assert_eq!(seen, DRAWS as f64);
            }
        }
    }
}
