//! `gibbsite train --cv`: penalties by cross-validation.

use super::{at, folder, json, run, stdout};
use serde_json::Value;
use std::fs;

const PUMP: &[&str] = &["train", "--format", "columns", "--template", "pump.tpl", "pump.txt"];
const WEATHER: &[&str] = &[
    "train",
    "--format",
    "table",
    "weather.csv",
    "--outputs",
    "sky,rain,wind,umbrella",
    "--inputs",
    "pressure,humidity",
    "--standardize",
    "--structure",
    "chain",
];

/// Penalties and losses, and that the least is chosen.
fn tried(report: &Value) -> Vec<(f64, f64, f64)> {
    let number = |value: &Value| value.as_f64().unwrap();
    let points = report["cv"].as_array().unwrap();
    for point in points {
        assert!(number(&point["log_loss_se"]) >= 0.0 && number(&point["item_accuracy"]) <= 1.0);
        assert!(number(&point["log_loss"]) >= number(&report["chosen"]["log_loss"]));
    }
    let penalties = |p: &Value| (number(&p["l1"]), number(&p["l2"]));
    assert!(points.iter().any(|p| penalties(p) == penalties(&report["chosen"])));
    points.iter().map(|p| (penalties(p).0, penalties(p).1, number(&p["log_loss"]))).collect()
}

#[test]
fn sequences_by_cross_validation() {
    let folder = folder(&[]);
    let (model, plain, plot) = (at(&folder, "m.gib"), at(&folder, "p.gib"), at(&folder, "cv.svg"));
    // Quiet, as the choice is at the edge: there is no noise in this data.
    let cv = ["--model", &model, "--cv", "4", "--l2", "1e3,0.1,1", "--seed", "3", "--quiet"];
    let report = json(&stdout(&[PUMP, &cv, &["--json", "--plot", &plot]].concat()));
    let points = tried(&report);
    assert_eq!(points.iter().map(|p| (p.0, p.1)).collect::<Vec<_>>(), [(0.0, 1e3), (0.0, 1.0), (0.0, 0.1)]);
    assert!(report["cv"][0]["chunk_f1"].is_number() && report["cv_loss"] == "log_loss");
    assert_eq!(report["converged"], true);
    assert!(fs::read_to_string(&plot).unwrap().contains("chosen"));
    // The model is that of the chosen penalty on all sequences.
    let l2 = report["chosen"]["l2"].to_string();
    stdout(&[PUMP, &["--model", &plain, "--l2", &l2]].concat());
    assert!(fs::read(&model).unwrap() == fs::read(&plain).unwrap());
    // Neither threads nor the way it is printed change anything.
    let text = stdout(&[PUMP, &cv, &["--threads", "2"]].concat());
    assert!(fs::read(&model).unwrap() == fs::read(&plain).unwrap());
    let table: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).collect();
    assert_eq!(table.len(), 2 + 3, "{text}");
    assert!(table[1].contains("C1") && table[1].contains("chunk F1"), "{text}");
    assert!(table.iter().filter(|line| line.contains("chosen")).count() == 1, "{text}");
    for (line, point) in table[2..].iter().zip(&points) {
        assert!(line.contains(&format!("{:.6} ±", point.2)), "{line}");
    }
}

#[test]
fn tables_by_cross_validation() {
    let folder = folder(&[]);
    let (model, plain) = (at(&folder, "m.gib"), at(&folder, "p.gib"));
    let cv = ["--model", &model, "--cv", "5", "--json"];
    // The default grid, whose choice is inside.
    let report = json(&stdout(&[WEATHER, &cv].concat()));
    let points = tried(&report);
    let l2: Vec<f64> = points.iter().map(|p| p.1).collect();
    assert_eq!(l2, [10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01]);
    assert!(report["cv"][0]["chunk_f1"].is_null());
    stdout(&[WEATHER, &["--model", &plain, "--l2", &report["chosen"]["l2"].to_string()]].concat());
    assert!(fs::read(&model).unwrap() == fs::read(&plain).unwrap());
    let text = stdout(&[WEATHER, &cv[..4]].concat());
    assert!(text.starts_with("held out, of a row:") && !text.contains("chunk F1"), "{text}");
    // Pairs of penalties, and other estimators.
    let pairs = ["--l1", "0.2,2", "--l2", "0.1,1", "--estimator", "pseudo"];
    let both = run(&[WEATHER, &cv, &pairs].concat());
    assert_eq!(both.code, 0, "{}", both.stderr);
    let pairs: Vec<_> = tried(&json(&both.stdout)).iter().map(|p| (p.0, p.1)).collect();
    assert_eq!(pairs, [(2.0, 1.0), (2.0, 0.1), (0.2, 1.0), (0.2, 0.1)]);
}

#[test]
fn an_early_end_and_an_edge_are_said() {
    let folder = folder(&[]);
    let model = at(&folder, "m.gib");
    let early = run(&[PUMP, &["--model", &model, "--cv", "3", "--l2", "1", "--max-iter", "2"]].concat());
    assert_eq!(early.code, 3);
    assert!(early.stderr.contains("fits on folds stopped before"), "{}", early.stderr);
    assert!(early.stdout.contains("not converged"), "{}", early.stdout);
    let edge = run(&[PUMP, &["--model", &model, "--cv", "3", "--l2", "1000,100"]].concat());
    assert_eq!(edge.code, 0);
    assert!(edge.stderr.contains("at the edge"), "{}", edge.stderr);
}

#[test]
fn wrong_usage() {
    let folder = folder(&[]);
    let model = at(&folder, "m.gib");
    for (more, said) in [
        (&["--cv", "1"][..], "2..=1000"),
        (&["--cv", "-3"], "2..=1000"),
        (&["--cv", "1000"], "1000 folds of"),
        (&["--l2", "1,2"], "--l2 is a list"),
        (&["--l1", "1,2"], "--l1 is a list"),
        (&["--cv", "3", "--l2", "1,-2"], "--l2 must be a finite number of at least 0"),
        (&["--cv", "3", "--l2", "1,two"], "invalid value 'two'"),
        (&["--cv", "3", "--l1", "0,1", "--solver", "lbfgs"], "use owlqn"),
        (&["--cv", "3", "--l2", "0,1", "--solver", "sgd"], "needs --l2 above 0"),
        (&["--cv", "3", "--checkpoint", "c"], "not with --cv"),
        (&["--cv", "3", "--target-objective", "5"], "not with --cv"),
        (&["--plot", "a.svg"], "--cv"),
        (&["--cv", "3", "--plot", "a.png"], "*.svg"),
    ] {
        let run = run(&[PUMP, &["--model", &model], more].concat());
        assert_eq!(run.code, 2, "{more:?}: {}", run.stderr);
        assert!(run.stderr.contains(said), "{more:?}: {}", run.stderr);
        assert!(!fs::exists(&model).unwrap(), "{more:?}");
    }
}
