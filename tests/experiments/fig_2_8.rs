//! Thesis Fig. 2.8: held-out log loss and training time of MLE, MPLE and combs on grids.
//!
//! `cargo run --release -p gibbsite-tests --example fig_2_8 [SAMPLES [WIDTH…]]`, 10,000 and 2 to 20 unless given; CSV to stdout. The log loss is
//! exact, so a grid 20 wide takes a minute for 20 held-out samples.

use gibbsite_tests::experiments::{Grids, grids};

fn main() {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse::<u32>().expect("a number"));
    let samples = arguments.next().unwrap_or(10_000) as usize;
    let mut widths: Vec<u32> = arguments.collect();
    if widths.is_empty() {
        widths = vec![2, 4, 6, 8, 12, 16, 20];
    }
    println!("width,estimator,excess_log_loss,seconds,evaluations");
    for width in widths {
        let held_out = if width > 12 { 20 } else { 1000 };
        let asked = Grids { width, strength: 0.5, samples, held_out, with_mle: width <= 6, seed: 1 };
        for p in grids(asked) {
            println!("{},\"{}\",{:.5},{:.2},{}", p.width, p.name, p.excess, p.seconds, p.evaluations);
        }
    }
}
