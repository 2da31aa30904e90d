//! Leave-one-out, where folds are known whatever the seed: each sequence's loss by enumeration, under a model that was trained on a text without it.

use crate::corpus::{Enumerated, Kind, Source, keys, names};
use gibbsite::cv::{GridError, GridParams};
use gibbsite::data::sequences::read_from;
use gibbsite::model::sequence::Origin;
use gibbsite::par::Par;
use gibbsite::sequence::cv::cross_validate;
use gibbsite::sequence::train::{Estimator, TrainParams, train};
use gibbsite_tests::oracle::close;
use gibbsite_tests::regression::rng;

fn random(seed: u64, columns: bool) -> Source {
    let kind = Kind { labels: &["O", "B-X", "I-X"], sequences: 9, longest: 5, columns, partial: 0.1 };
    Source::random(kind, &mut rng(seed))
}

/// The sequences of a text without one, and that one.
fn without(source: &Source, s: usize) -> (String, Source) {
    let mut parts: Vec<&str> = source.text.split_terminator("\n\n").collect();
    assert_eq!(parts.len(), source.sequences.len());
    let text = format!("{}\n\n", parts.remove(s));
    let one = Source { sequences: vec![source.sequences[s].clone()], text, ..source.clone() };
    (parts.join("\n\n") + "\n", one)
}

#[test]
fn leaving_one_out_is_training_without_it() {
    for (seed, columns, estimator) in
        [(1, false, Estimator::Likelihood), (2, true, Estimator::Likelihood), (3, false, Estimator::Pseudo)]
    {
        let source = random(seed, columns);
        let corpus = source.read();
        let params = TrainParams { tolerance: 1e-10, estimator, ..TrainParams::default() };
        let how = GridParams::new(9, &[0.0, 0.4], &[0.2, 2.0], 5);
        let found = cross_validate(&corpus, &params, &how, &mut |_| true).unwrap();
        assert_eq!((found.points.len(), found.interrupted, found.pseudo), (4, false, false));
        let mut means = Vec::new();
        for point in &found.points {
            let (l1, l2) = (point.penalties.l1, point.penalties.l2);
            let losses: Vec<f64> = (0..9)
                .map(|s| {
                    let (rest, one) = without(&source, s);
                    let rest = read_from(rest.as_bytes(), &source.params).unwrap();
                    assert_eq!(rest.alphabet.labels.len(), 3, "all labels are in the rest");
                    let params = TrainParams { l1, l2, ..params.clone() };
                    let (model, _) =
                        train(&rest, Origin::Crfsuite, "", &params, None, &mut |_, _| true).unwrap();
                    let keys = keys(&model.alphabet, &model.index);
                    Enumerated::new(&one, &names(&model.alphabet), &keys).value(&model.theta)
                })
                .collect();
            let mean = losses.iter().sum::<f64>() / 9.0;
            let variance = losses.iter().map(|l| (l - mean).powi(2)).sum::<f64>() / 8.0;
            assert!(close(point.log_loss, mean, 1e-6), "{} or {mean} at {l1}, {l2}", point.log_loss);
            assert!(close(point.log_loss_se, (variance / 9.0).sqrt(), 1e-5), "{}", point.log_loss_se);
            assert!(point.converged && point.right <= point.items && point.chunk.is_some());
            means.push(mean);
        }
        assert!(means.iter().all(|&m| means[found.best] <= m));
    }
}

#[test]
fn folds_follow_the_seed_and_not_the_threads() {
    let corpus = random(7, false).read();
    let run = |seed, par: Par| {
        let params = TrainParams { par, ..TrainParams::default() };
        let how = GridParams::new(3, &[0.0], &[0.3, 3.0], seed);
        par.run(|_| cross_validate(&corpus, &params, &how, &mut |_| true)).unwrap()
    };
    let one = run(1, Par::Seq);
    assert_eq!(one, run(1, Par::Rayon(2)));
    assert_ne!(one.points[0].log_loss, run(2, Par::Seq).points[0].log_loss);
}

#[test]
fn too_many_folds_and_early_ends() {
    let corpus = random(7, false).read();
    let run = |folds, most: usize| {
        let mut steps = 0;
        let how = GridParams::new(folds, &[0.0], &[0.3, 3.0], 0);
        cross_validate(&corpus, &TrainParams::default(), &how, &mut |_| {
            steps += 1;
            steps <= most
        })
    };
    assert_eq!(run(10, 1 << 20), Err(GridError::Folds { folds: 10, samples: 9 }));
    assert_eq!(run(1, 1 << 20), Err(GridError::Folds { folds: 1, samples: 9 }));
    assert_eq!(run(3, 1), Err(GridError::Nothing));
    // Enough for the first penalties, not for the second.
    let (mut low, mut high) = (1, 1 << 20);
    while low + 1 < high {
        let most = (low + high) / 2;
        if run(3, most).is_ok() { high = most } else { low = most }
    }
    let cut = run(3, high).unwrap();
    assert_eq!((cut.points.len(), cut.interrupted), (1, true));
    assert_eq!(cut.points[0], run(3, 1 << 20).unwrap().points[0]);
}
