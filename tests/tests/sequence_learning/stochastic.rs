//! Averaged stochastic gradients: how near they come to the optimum, what they report about it, and that they can be repeated.

use crate::corpus::{Enumerated, Kind, Source, keys, names};
use gibbsite::data::sequences::Corpus;
use gibbsite::model::SequenceModel;
use gibbsite::model::sequence::Origin;
use gibbsite::par::Par;
use gibbsite::sequence::train::{Estimator, Solver, TrainError, TrainParams, train};
use gibbsite::solver::lbfgs::{LbfgsInfo, Stop};
use gibbsite_tests::oracle::close;
use gibbsite_tests::regression::rng;

fn random(seed: u64, sequences: usize, columns: bool) -> Source {
    let kind = Kind { labels: &["A", "B", "C"], sequences, longest: 5, columns, partial: 0.1 };
    Source::random(kind, &mut rng(seed))
}

fn fit(corpus: &Corpus, params: &TrainParams) -> (SequenceModel, LbfgsInfo) {
    train(corpus, Origin::Crfsuite, "", params, None, &mut |_, _| true).unwrap()
}

#[test]
fn the_optimum_is_near_and_the_report_is_true() {
    for (seed, columns, estimator, l2) in [
        (1, false, Estimator::Likelihood, 1.0),
        (2, true, Estimator::Likelihood, 0.3),
        (3, false, Estimator::Pseudo, 3.0),
        (4, true, Estimator::Pseudo, 1.0),
    ] {
        let source = random(seed, 120, columns);
        let corpus = source.read();
        let exact = TrainParams { l2, tolerance: 1e-9, estimator, ..TrainParams::default() };
        let (_, best) = fit(&corpus, &exact);
        let params = TrainParams { solver: Solver::Sgd, tolerance: 0.0, max_iterations: 100, ..exact };
        let (model, info) = fit(&corpus, &params);
        assert!(matches!(info.stop, Stop::Slow | Stop::Iterations), "{:?}", info.stop);
        assert!(!model.facts.converged && model.facts.solver == "sgd");
        let gap = info.end.objective / best.end.objective - 1.0;
        // Never below the optimum, and within half a percent of it where the run ends by itself.
        assert!((-1e-9..5e-3).contains(&gap), "{gap:e} above {}", best.end.objective);
        if estimator == Estimator::Likelihood {
            let keys = keys(&model.alphabet, &model.index);
            let oracle = Enumerated::new(&source, &names(&model.alphabet), &keys);
            let ridge: f64 = model.theta.iter().map(|w| 0.5 * l2 * w * w).sum();
            assert!(close(info.end.objective, oracle.value(&model.theta) + ridge, 1e-11));
            let slopes = oracle.gradient(&model.theta);
            let most = model.theta.iter().zip(slopes).fold(0.0f64, |m, (w, g)| m.max((g + l2 * w).abs()));
            assert!((info.end.violation - most).abs() <= 1e-9 * most.max(1.0), "{}", info.end.violation);
        }
        for (k, point) in info.trace.iter().enumerate() {
            assert_eq!(point.iterations, k as u64);
        }
    }
}

#[test]
fn runs_can_be_repeated_on_any_number_of_threads() {
    let corpus = random(5, 60, false).read();
    let run = |seed: u64, par: Par| {
        let params = TrainParams {
            solver: Solver::Sgd,
            seed,
            max_iterations: 4,
            tolerance: 0.0,
            par,
            ..TrainParams::default()
        };
        par.run(|_| fit(&corpus, &params).0.to_bytes())
    };
    let one = run(1, Par::Seq);
    assert!(one == run(1, Par::Seq) && one == run(1, Par::Rayon(2)));
    assert!(one != run(2, Par::Seq));
}

#[test]
fn it_ends_when_it_should() {
    let corpus = random(6, 60, false).read();
    let sgd = TrainParams { solver: Solver::Sgd, ..TrainParams::default() };
    // A tolerance that it can meet, a target, a limit, somebody who has seen enough.
    let (model, info) = fit(&corpus, &TrainParams { tolerance: 0.2, ..sgd.clone() });
    assert_eq!((info.stop, model.facts.converged), (Stop::Tolerance, true));
    assert!(info.end.violation <= 0.2 * info.trace[0].violation);
    let target = 0.5 * (info.trace[0].objective + info.end.objective);
    let aimed = TrainParams { target_objective: Some(target), tolerance: 0.0, ..sgd.clone() };
    let (_, info) = fit(&corpus, &aimed);
    assert!(info.stop == Stop::Target && info.end.objective <= target);
    let (_, info) = fit(&corpus, &TrainParams { max_iterations: 2, tolerance: 0.0, ..sgd.clone() });
    assert_eq!((info.stop, info.trace.len(), info.end.iterations), (Stop::Iterations, 3, 2));
    let (_, info) =
        train(&corpus, Origin::Crfsuite, "", &sgd, None, &mut |point, _| point.iterations < 1).unwrap();
    assert_eq!((info.stop, info.end.iterations), (Stop::Interrupted, 1));
    for bad in [TrainParams { l2: 0.0, ..sgd.clone() }, TrainParams { l1: 0.1, ..sgd.clone() }] {
        let refused = train(&corpus, Origin::Crfsuite, "", &bad, None, &mut |_, _| true);
        assert_eq!(refused.unwrap_err(), TrainError::Stochastic);
    }
}
