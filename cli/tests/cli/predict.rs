//! `gibbsite predict`, `eval` and `inspect` on a trained model.

use super::{finish, folder, gibbsite, json, run, stdout};
use insta::assert_snapshot;
use std::fs;

/// Trains on an example into a new folder.
fn train(args: &[&str]) -> (tempfile::TempDir, String) {
    let folder = folder(&[]);
    let model = folder.path().join("m.gib").display().to_string();
    stdout(&[args, &["--model", &model]].concat());
    (folder, model)
}

fn flats() -> (tempfile::TempDir, String) {
    train(&[
        "regress",
        "lasso",
        "flats.csv",
        "--target",
        "price",
        "--intercept",
        "--lambda",
        "500",
        "--tolerance",
        "1e-9",
    ])
}

#[test]
fn the_example_model_is_what_training_gives() {
    let (_folder, model) =
        train(&["regress", "logistic", "spam.svm", "--lambda-ratio", "0.2", "--tolerance", "1e-9"]);
    let parameters = |file: &str| json(&stdout(&["inspect", file, "--json", "--parameters"]));
    let (new, old) = (parameters(&model), parameters("spam.gib"));
    assert_eq!(new["features"], old["features"]);
    let (new, old) = (new["coefficients"].as_object().unwrap(), old["coefficients"].as_object().unwrap());
    assert_eq!(new.keys().collect::<Vec<_>>(), old.keys().collect::<Vec<_>>());
    for (name, value) in new {
        assert!((value.as_f64().unwrap() - old[name].as_f64().unwrap()).abs() < 1e-3, "{name}");
    }
}

#[test]
fn predictions_are_one_a_line() {
    let lines = stdout(&["predict", "--model", "spam.gib", "spam.svm"]);
    assert_eq!(lines.lines().count(), 60);
    assert!(lines.lines().all(|l| l == "-1" || l == "1"));
    let both = stdout(&["predict", "--model", "spam.gib", "spam.svm", "--marginals"]);
    assert_eq!(both, stdout(&["predict", "--model", "spam.gib", "spam.svm", "--probabilities"]));
    for (line, label) in both.lines().zip(lines.lines()) {
        let words: Vec<&str> = line.split(' ').collect();
        let [first, no, yes] = words.as_slice() else { panic!("{line}") };
        let p: f64 = no.strip_prefix("-1:").unwrap().parse().unwrap();
        let q: f64 = yes.strip_prefix("1:").unwrap().parse().unwrap();
        assert!((p + q - 1.0).abs() < 1e-12);
        assert_eq!((*first, q >= 0.5), (label, label == "1"));
    }
    let found = json(&stdout(&["predict", "--model", "spam.gib", "spam.svm", "--json", "--marginals"]));
    assert_eq!(found["predictions"].as_array().unwrap().len(), 60);
    assert_eq!(found["probabilities"][0].as_array().unwrap().len(), 2);
}

#[test]
fn a_prediction_is_the_sum_that_it_should_be() {
    let (_folder, model) = flats();
    let shown = json(&stdout(&["inspect", &model, "--json", "--parameters"]));
    let text = fs::read_to_string(super::examples().join("flats.csv")).unwrap();
    let mut rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = rows.next().unwrap();
    let predicted = stdout(&["predict", "--model", &model, "flats.csv"]);
    for (row, line) in rows.zip(predicted.lines()) {
        let sum: f64 = names
            .iter()
            .zip(&row)
            .map(|(name, cell)| {
                shown["coefficients"][name].as_f64().unwrap_or(0.0) * cell.parse::<f64>().unwrap()
            })
            .sum();
        let expected = sum + shown["intercept"].as_f64().unwrap();
        assert!((line.parse::<f64>().unwrap() - expected).abs() < 1e-9, "{line} {expected}");
    }
}

#[test]
fn columns_are_found_by_name() {
    let (folder, model) = flats();
    // Another order, no target, one column more.
    fs::write(folder.path().join("new.csv"), "age,pool,area,rooms,distance,garden,floor\n10,1,80,3,2,1,0\n")
        .unwrap();
    fs::write(
        folder.path().join("same.csv"),
        "rooms,area,age,floor,distance,noise_a,noise_b,garden,price\n3,80,10,0,2,0,0,1,0\n",
    )
    .unwrap();
    fs::write(folder.path().join("few.csv"), "rooms,age\n3,10\n").unwrap();
    let predict = |file: &str| {
        let mut command = gibbsite(&["predict", "--model", &model, file]);
        command.current_dir(folder.path());
        finish(command)
    };
    let (new, same) = (predict("new.csv"), predict("same.csv"));
    assert_eq!((new.code, new.stderr.as_str()), (0, ""));
    assert_eq!(new.stdout, same.stdout);
    let few = predict("few.csv");
    assert_eq!(few.code, 1);
    assert!(few.stderr.starts_with("error: few.csv: line 1: found no column `area`"), "{}", few.stderr);
    let other = run(&["predict", "--model", &model, "spam.svm"]);
    assert_eq!(other.code, 1);
    assert!(other.stderr.contains("svmlight"), "{}", other.stderr);
}

#[test]
fn lines_without_labels_can_be_predicted() {
    let folder = folder(&[("new.svm", b"7:1 9:1\n3:2\n"), ("empty.svm", b"999:1\n")]);
    let file = |name: &str| folder.path().join(name).display().to_string();
    assert_eq!(stdout(&["predict", "--model", "spam.gib", &file("new.svm")]).lines().count(), 2);
    let none = run(&["predict", "--model", "spam.gib", &file("empty.svm")]);
    assert_eq!(
        (none.code, none.stderr.as_str()),
        (0, "warning: no feature that the model uses is in the data: all predictions are the same\n")
    );
}

#[test]
fn scores() {
    assert_snapshot!(stdout(&["eval", "--model", "spam.gib", "spam.svm"]), @r"
    60 items
      accuracy               0.816667
      AUC                    0.948661
      log loss               0.408326

      label      precision    recall        F1   support
      -1            0.8696    0.7143    0.7843        28
      1             0.7838    0.9062    0.8406        32
    ");
    let found = json(&stdout(&["eval", "--model", "spam.gib", "spam.svm", "--json"]));
    for name in ["items", "item_accuracy", "accuracy", "auc", "log_loss", "items_per_second"] {
        assert!(found[name].is_number(), "{name}");
    }
    assert_eq!(found["labels"][1]["label"], 1.0);
    let (_folder, model) = flats();
    let found = json(&stdout(&["eval", "--model", &model, "flats.csv", "--json"]));
    assert!(found["r2"].as_f64().unwrap() > 0.9 && found["mse"].is_number() && found["mae"].is_number());
    let other = folder(&[("o.svm", b"1 7:1\n5 3:1\n")]);
    let run = run(&["eval", "--model", "spam.gib", &other.path().join("o.svm").display().to_string()]);
    assert_eq!(run.code, 1);
    assert!(
        run.stderr.ends_with(": sample 2 has the label 5, but the model knows -1 and 1\n"),
        "{}",
        run.stderr
    );
}

#[test]
fn inspect_shows_a_model() {
    assert_snapshot!(stdout(&["inspect", "spam.gib", "--parameters"]), @r"
    Sparse regression (logistic, solver auto)
      trained on             spam.svm: 60 samples, 24 features
      labels                 -1, 1
      lambda                 2.4000000000000004 (0.2000 of lambda_max 12)
      objective              32.84430287761004
      duality gap            3.51e-9 (tolerance 1e-9)
      non-zeros              9 of 24
        3                    0.7066311176609346
        5                    -0.47742327413533536
        7                    1.09089128146818
        9                    -0.18847749145079484
        12                   0.21522210383844834
        13                   -0.11304607330366277
        17                   0.09513943883486589
        20                   -0.4709610042123559
        21                   0.11918375444269574
    ");
}

#[test]
fn damaged_models_are_refused() {
    let bytes = fs::read(super::examples().join("spam.gib")).unwrap();
    let mut flipped = bytes.clone();
    flipped[200] ^= 1;
    let mut version = bytes.clone();
    version[8] = 7;
    for (what, bytes, message) in [
        ("truncated", &bytes[..100], "a truncated gibbsite model: it ends too early"),
        ("empty", &[], "not a gibbsite model, expected a file that `--model` wrote"),
        ("garbage", b"MARKOV 0 0", "not a gibbsite model, expected a file that `--model` wrote"),
        ("damaged", &flipped, "a damaged gibbsite model: its checksum is wrong"),
        ("newer", &version, "a gibbsite model of format version 7, but this program reads version 1"),
    ] {
        let folder = folder(&[("m.gib", bytes)]);
        let file = folder.path().join("m.gib").display().to_string();
        for command in ["predict", "eval"] {
            let run = run(&[command, "--model", &file, "spam.svm"]);
            assert_eq!((run.code, run.stderr), (1, format!("error: {file}: {message}\n")), "{what}");
        }
    }
    let missing = run(&["predict", "--model", "nothing.gib", "spam.svm"]);
    assert_eq!(missing.code, 1);
}
