//! `gibbsite analyze`.

use super::{folder, json, stdout};
use std::fs;

#[test]
fn parallelism_of_orthogonal_and_of_equal_columns() {
    let orthogonal: String = (1..=8).map(|j| format!("{j} {j}:{j}\n")).collect();
    let equal: String = (1..=4).map(|i| format!("{i} 1:{i} 2:{i} 3:{i} 4:{i}\n")).collect();
    let folder = folder(&[("o.svm", orthogonal.as_bytes()), ("e.svm", equal.as_bytes())]);
    let analyze = |name: &str| {
        let file = folder.path().join(name).display().to_string();
        json(&stdout(&["analyze", "parallelism", &file, "--json"]))
    };
    let found = analyze("o.svm");
    assert_eq!((found["p_star"].as_u64(), found["converged"].as_bool()), (Some(8), Some(true)));
    assert!((found["rho"].as_f64().unwrap() - 1.0).abs() < 1e-6);
    let found = analyze("e.svm");
    assert_eq!(found["p_star"].as_u64(), Some(1));
    assert!((found["rho"].as_f64().unwrap() - 4.0).abs() < 1e-3);
}

#[test]
fn rho_is_the_same_from_every_command() {
    let analyzed = json(&stdout(&["analyze", "parallelism", "spam.svm", "--json"]));
    for solver in ["auto", "shotgun"] {
        let args = ["regress", "logistic", "spam.svm", "--lambda-ratio", "0.1", "--json", "--solver", solver];
        let fitted = json(&stdout(&args));
        assert_eq!((&fitted["rho"], &fitted["p_star"]), (&analyzed["rho"], &analyzed["p_star"]), "{solver}");
    }
}

#[test]
fn simulated_rounds_fall_with_p() {
    let folder = folder(&[]);
    let plot = folder.path().join("p.svg").display().to_string();
    let args = ["analyze", "parallelism", "spam.svm", "--simulate", "1,4", "--plot", &plot];
    let found = json(&stdout(&[&args[..], &["--json"]].concat()));
    let runs = found["simulated"].as_array().unwrap();
    assert_eq!(
        (runs.len(), runs[0]["parallel"].as_u64(), runs[0]["speedup"].as_f64()),
        (2, Some(1), Some(1.0))
    );
    assert!(runs[1]["speedup"].as_f64().unwrap() > 2.0, "{runs:?}");
    assert!(found["optimum"].as_f64().unwrap() <= runs[1]["objective"].as_f64().unwrap());
    let svg = fs::read_to_string(&plot).unwrap();
    assert!(svg.contains("theory") && svg.contains("simulated") && svg.contains("P* = "));
    let text = stdout(&args);
    assert!(text.starts_with("Parallelism of Shotgun\n") && text.contains("P* = d/rho"), "{text}");
    assert!(
        runs[1]["rounds_se"].as_f64() > Some(0.0) && runs[1]["speedup_se"].as_f64() > Some(0.0),
        "{runs:?}"
    );
    assert!(text.contains(" ± ") && text.contains("± is a standard error over the runs"), "{text}");
    let once = stdout(&[&args[..], &["--runs", "1"]].concat());
    assert!(!once.contains('±'), "{once}");
    let logistic = stdout(&[
        "analyze",
        "parallelism",
        "spam.svm",
        "--task",
        "logistic",
        "--simulate",
        "auto",
        "--runs",
        "2",
    ]);
    assert!(logistic.contains("simulated at lambda"), "{logistic}");
}

#[test]
fn a_target_of_zeros_is_nothing_to_simulate() {
    let folder = folder(&[("z.svm", b"0 1:1 2:2\n0 1:2\n0 2:1\n")]);
    let file = folder.path().join("z.svm").display().to_string();
    let run = super::run(&["analyze", "parallelism", &file, "--simulate", "auto"]);
    let said = "the target is 0 throughout: there is nothing to explain, so that no rounds can be counted; leave out --simulate";
    assert_eq!((run.code, run.stderr), (1, format!("error: {file}: {said}\n")));
}

/// Eight equal columns: two at a time overshoot for ever, and more run away.
#[test]
fn what_diverges_is_in_the_plot() {
    let rows: String = (1..=9)
        .map(|i| format!("{i} {}\n", (1..=8).map(|j| format!("{j}:{i}")).collect::<Vec<_>>().join(" ")))
        .collect();
    let folder = folder(&[("e.svm", rows.as_bytes())]);
    let file = |name: &str| folder.path().join(name).display().to_string();
    for list in ["1,8", "8"] {
        let args = ["analyze", "parallelism", &file("e.svm"), "--simulate", list, "--plot", &file("p.svg")];
        assert!(stdout(&args).contains("diverges"));
        assert!(fs::read_to_string(file("p.svg")).unwrap().contains("diverges"), "{list}");
    }
}
