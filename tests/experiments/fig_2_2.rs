//! Thesis Fig. 2.2: parameter error and log loss against the number of training samples, for MLE and MPLE, joint and disjoint.
//!
//! `cargo run --release -p gibbsite-tests --example fig_2_2 [MODELS [DATA_SETS]]`, 10 and 10 unless given; CSV to stdout.

use gibbsite_tests::experiments::training_set_size;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse().expect("a number"));
    let (models, data_sets) = (arguments.next().unwrap_or(10), arguments.next().unwrap_or(10));
    let sizes = [10, 32, 100, 316, 1000, 3162, 10_000];
    println!("estimator,samples,error,error_sd,excess_log_loss,excess_log_loss_sd");
    for p in training_set_size(&sizes, models, data_sets) {
        let ([e, e_sd], [l, l_sd]) = (p.error, p.excess);
        println!("{},{},{e:.5},{e_sd:.5},{l:.6},{l_sd:.6}", p.name, p.samples);
    }
}
