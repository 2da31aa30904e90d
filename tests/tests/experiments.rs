//! Small versions of the experiments in `tests/experiments/`: what the thesis says of its estimators, on models drawn here.

use gibbsite_tests::experiments::{Grids, grids, training_set_size};

/// Thesis Theorems 2.3.1, 2.3.3, 2.3.7 and Fig. 2.2: the parameter error of MLE, MPLE and disjoint MPLE falls as `1/√n`, so their log loss above the
/// truth's as `1/n`.
#[test]
fn errors_fall_with_the_square_root_of_the_samples() {
    let points = training_set_size(&[200, 5000], 3, 3);
    for pair in points.chunks(2) {
        let [few, many] = pair else { panic!("two sizes") };
        assert_eq!((few.name, few.samples, many.samples), (many.name, 200, 5000));
        let ratio = few.error[0] / many.error[0];
        assert!((3.5..7.0).contains(&ratio), "{}: √25 expected, {ratio} found", few.name);
    }
}

/// Fig. 2.8: with more than local structure in a component the log loss comes closer to the likelihood's.
#[test]
fn combs_lie_between_pseudolikelihood_and_likelihood() {
    let asked = |seed| Grids { width: 3, strength: 1.5, samples: 300, held_out: 3000, with_mle: true, seed };
    let mut sums = [0.0; 3];
    for seed in 0..4 {
        let points = grids(asked(10 * seed));
        for (sum, point) in sums.iter_mut().zip(&points) {
            *sum += point.excess;
        }
    }
    let [mle, mple, combs] = sums;
    assert!(mle > 0.0 && mle < combs && combs < 0.9 * mple, "{sums:?}");
}
