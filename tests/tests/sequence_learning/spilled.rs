//! Training from a file of sequences is training from memory, bit for bit.

use crate::corpus::{Kind, Source};
use gibbsite::data::sequences::{ReadParams, read_from, read_spilled_from};
use gibbsite::model::sequence::Origin;
use gibbsite::par::Par;
use gibbsite::sequence::train::{Estimator, Solver, TrainError, TrainParams, index, train_indexed};
use gibbsite_tests::regression::rng;
use std::fs::{File, OpenOptions};
use std::path::PathBuf;

/// An empty file that is gone when the test is.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("gibbsite-{}-{name}", std::process::id())))
    }

    fn open(&self) -> File {
        OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&self.0).unwrap()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn models_are_the_same_bit_for_bit() {
    let temporary = Temporary::new("same");
    for (seed, columns) in [(1, false), (2, true)] {
        let kind = Kind { labels: &["A", "B", "C"], sequences: 400, longest: 6, columns, partial: 0.2 };
        let source = Source::random(kind, &mut rng(seed));
        let corpus = source.read();
        // From one block for all to one for each few lines.
        for (chunk, par) in [(1 << 20, Par::Seq), (8, Par::Seq), (16, Par::Rayon(2)), (1, Par::Seq)] {
            let how = ReadParams { chunk, par, ..source.params.clone() };
            let spilled = read_spilled_from(source.text.as_bytes(), &how, temporary.open()).unwrap();
            assert_eq!(spilled.alphabet, corpus.alphabet);
            assert_eq!(spilled.report, corpus.report);
            assert_eq!(
                (spilled.sequences.len(), spilled.sequences.items()),
                (corpus.sequences.len(), corpus.sequences.items())
            );
            for (estimator, l1) in
                [(Estimator::Likelihood, 0.0), (Estimator::Pseudo, 0.3), (Estimator::Pairs, 0.0)]
            {
                let params = TrainParams { estimator, l1, par, max_iterations: 12, ..TrainParams::default() };
                let parameters = index(&corpus, params.generate).unwrap();
                assert_eq!(index(&spilled, params.generate).unwrap(), parameters);
                let [memory, file] = par.run(|_| {
                    let (a, b) = (parameters.clone(), parameters);
                    let watch = &mut |_: &_, _: &_| true;
                    [
                        train_indexed(&corpus, a, Origin::Crfsuite, "", &params, None, watch).unwrap(),
                        train_indexed(&spilled, b, Origin::Crfsuite, "", &params, None, watch).unwrap(),
                    ]
                });
                assert!(memory.model.to_bytes() == file.model.to_bytes(), "chunks of {chunk}");
                assert_eq!(memory.log_likelihood, file.log_likelihood);
            }
        }
    }
}

#[test]
fn rare_attributes_are_left_out_of_the_file() {
    let temporary = Temporary::new("rare");
    for (seed, columns) in [(3, false), (4, true)] {
        let kind = Kind { labels: &["A", "B"], sequences: 60, longest: 5, columns, partial: 0.2 };
        let source = Source::random(kind, &mut rng(seed));
        // From nothing to all is rare.
        let mut dropped = Vec::new();
        for least in [2, 25, 100, 110, 1000] {
            for chunk in [1 << 20, 16, 1] {
                let how = ReadParams { chunk, min_count: least, ..source.params.clone() };
                let corpus = read_from(source.text.as_bytes(), &how).unwrap();
                let spilled = read_spilled_from(source.text.as_bytes(), &how, temporary.open()).unwrap();
                assert_eq!((&spilled.alphabet, &spilled.report), (&corpus.alphabet, &corpus.report));
                let params = TrainParams { max_iterations: 8, ..TrainParams::default() };
                let parameters = index(&corpus, params.generate).unwrap();
                assert_eq!(index(&spilled, params.generate).unwrap(), parameters);
                let watch = &mut |_: &_, _: &_| true;
                let (a, b) = (parameters.clone(), parameters);
                let memory = train_indexed(&corpus, a, Origin::Crfsuite, "", &params, None, watch).unwrap();
                let file = train_indexed(&spilled, b, Origin::Crfsuite, "", &params, None, watch).unwrap();
                assert!(memory.model.to_bytes() == file.model.to_bytes(), "{least} in chunks of {chunk}");
                dropped.push(corpus.report.rare);
            }
        }
        dropped.dedup();
        assert!(dropped.len() > 2, "{dropped:?}");
    }
}

#[test]
fn what_needs_memory_is_refused_and_faults_have_their_line() {
    let temporary = Temporary::new("refused");
    let params = ReadParams { chunk: 4, ..ReadParams::new(gibbsite::data::sequences::Format::Crfsuite) };
    let spilled = read_spilled_from(&b"A\tx\nB\ty\n\nA\tx\n"[..], &params, temporary.open()).unwrap();
    let sgd = TrainParams { solver: Solver::Sgd, ..TrainParams::default() };
    let parameters = index(&spilled, sgd.generate).unwrap();
    let refused = train_indexed(&spilled, parameters, Origin::Crfsuite, "", &sgd, None, &mut |_, _| true);
    assert_eq!(refused.unwrap_err(), TrainError::NotInMemory);
    for bad in ["", "\n\n", "A\tx\n\nB\ty:one\n"] {
        let said = |e: gibbsite::data::dataset::ReadError| e.to_string();
        assert_eq!(
            read_spilled_from(bad.as_bytes(), &params, temporary.open()).map_err(said).unwrap_err(),
            read_from(bad.as_bytes(), &params).map_err(said).unwrap_err()
        );
    }
}
