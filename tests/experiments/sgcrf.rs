//! SGCRF Sec. 5.1: `cargo run --release -p gibbsite-tests --example sgcrf FIGURE [NUMBERS…]`; CSV to stdout.
//!
//! `2 [TRIALS [P…]]` support recovery, `3 [N P M LAMBDA SECONDS [FILE.svg]]` solvers against time, `4 [N P M]` a joint MRF, `5 [N P M…]` ridge regression.

use gibbsite::plot::{Axis, Figure, Line};
use gibbsite_tests::sgcrf::{against_joint, against_ridge, course, recovered};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let figure = arguments.first().map_or("2", String::as_str);
    let numbers: Vec<f64> = arguments.iter().skip(1).map_while(|a| a.parse().ok()).collect();
    let at = |k: usize, default: f64| numbers.get(k).copied().unwrap_or(default);
    let whole = |k: usize, default: usize| at(k, default as f64) as usize;
    match figure {
        "2" => {
            let sizes = numbers.get(1..).filter(|s| !s.is_empty()).unwrap_or(&[50.0, 100.0, 200.0, 400.0]);
            println!("p,m_over_log_p,m,recovered");
            for &p in sizes {
                for scaled in [200.0, 300.0, 400.0, 500.0, 600.0, 800.0, 1000.0] {
                    let m = (scaled * p.ln()).round() as usize;
                    println!("{p},{scaled},{m},{}", recovered(p as usize, m, at(0, 20.0) as u64));
                }
            }
        }
        "3" => {
            let runs = course(whole(0, 200), whole(1, 50), whole(2, 125), at(3, 0.2), at(4, 20.0));
            println!("solver,seconds,above_the_best");
            let mut drawn =
                Figure::new("Objective above the best", Axis::linear("seconds"), Axis::log("f - f*"));
            for (name, points) in runs {
                points.iter().for_each(|(t, f)| println!("{name},{t:.4},{f:.3e}"));
                drawn = drawn.with(Line::new(name, points.into_iter().filter(|p| p.1 > 0.0).collect()));
            }
            if let Some(file) = arguments.last().filter(|a| a.ends_with(".svg")) {
                std::fs::write(file, drawn.svg().expect("a plot")).expect("a place to write");
            }
        }
        "4" => {
            println!("lambda_share,crf_mse,mrf_mse");
            let shares = [0.8, 0.5, 0.35, 0.25, 0.18, 0.12, 0.08, 0.05];
            for (share, crf, mrf) in against_joint(whole(0, 200), whole(1, 50), whole(2, 50), &shares) {
                println!("{share},{crf:.5},{mrf:.5}");
            }
        }
        "5" => {
            println!("m,crf_mse,ridge_mse,truth_mse");
            let sizes =
                numbers.get(2..).filter(|s| !s.is_empty()).unwrap_or(&[50.0, 100.0, 200.0, 400.0, 800.0]);
            for &m in sizes {
                let (crf, ridge, truth) = against_ridge(whole(0, 200), whole(1, 50), m as usize);
                println!("{m},{crf:.5},{ridge:.5},{truth:.5}");
            }
        }
        _ => eprintln!("figures are 2, 3, 4 and 5"),
    }
}
