//! `gibbsite gaussian`: fits, forecasts, files, and what it says about bad input.

// Sums over rows and columns are written with indices, as in the textbook.
#![allow(clippy::needless_range_loop)]

use super::{Run, finish, folder, gibbsite, json, listing};
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Numbers that look random and are the same everywhere.
fn number(k: usize) -> f64 {
    let mixed = (k as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d;
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((mixed >> 40) as f64) / f64::from(1u32 << 23) - 1.0
}

const ROWS: usize = 60;

/// Inputs and outputs of a row: the first input drives the first output, the outputs lean on each other.
fn row(k: usize) -> ([f64; 2], [f64; 3]) {
    let x = [number(7 * k), number(7 * k + 1)];
    let e: Vec<f64> = (0..3).map(|j| number(7 * k + 2 + j)).collect();
    let first = 2.0 * x[0] + e[0];
    (x, [first, 0.8 * first + 0.5 * e[1], 1.0 + e[2]])
}

fn csv(names: &str, cells: impl Fn(usize) -> Vec<f64>) -> String {
    let mut text = format!("{names}\n");
    for k in 0..ROWS {
        let cells: Vec<String> = cells(k).iter().map(f64::to_string).collect();
        let _ = writeln!(text, "{}", cells.join(","));
    }
    text
}

/// A folder with `x.csv` and `y.csv`.
fn data() -> TempDir {
    let x = csv("wind,sun", |k| row(k).0.to_vec());
    let y = csv("a,b,c", |k| row(k).1.to_vec());
    folder(&[("x.csv", x.as_bytes()), ("y.csv", y.as_bytes())])
}

fn run_in(folder: &Path, args: &[&str]) -> Run {
    let mut command = gibbsite(args);
    command.current_dir(folder);
    finish(command)
}

fn report(folder: &Path, args: &[&str]) -> Value {
    let run = run_in(folder, &[args, &["--json"]].concat());
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{args:?}");
    json(&run.stdout)
}

const FIT: [&str; 6] = ["gaussian", "fit", "--x", "x.csv", "--y", "y.csv"];

fn fit(folder: &Path, more: &[&str]) -> Value {
    report(folder, &[&FIT, more].concat())
}

#[test]
fn the_contract_of_json() {
    let folder = data();
    let found = fit(folder.path(), &["--lambda", "0.05", "--intercept", "--model", "m.gib", "--trace"]);
    for name in
        ["objective", "violation", "iterations", "nonzeros_lambda", "nonzeros_theta", "seconds", "lambda_max"]
    {
        assert!(found[name].is_number(), "{name}: {}", found[name]);
    }
    assert_eq!((&found["converged"], &found["lambda"]), (&true.into(), &0.05.into()));
    assert!(found["violation"].as_f64().unwrap() <= 0.05 * 1e-6);
    let last = found["trace"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&last["iteration"], &last["violation"]), (&found["iterations"], &found["violation"]));

    let held = report(folder.path(), &["inspect", "m.gib", "--parameters"]);
    assert_eq!(
        (&held["kind"], &held["inputs"], &held["outputs"]),
        (&"gaussian".into(), &2.into(), &3.into())
    );
    let lambda = held["lambda"].as_array().unwrap();
    let upper = |e: &Value| e[0].as_u64().unwrap() <= e[1].as_u64().unwrap();
    assert!(lambda.len() >= 3 && lambda.iter().all(|e| upper(e) && e[2].is_f64()), "{lambda:?}");
    // The first input drives the first output, with a minus sign in Θ.
    let theta = held["theta"].as_array().unwrap();
    assert!(theta.iter().any(|e| e[0] == 0 && e[1] == 0 && e[2].as_f64().unwrap() < 0.0), "{theta:?}");
    let text = run_in(folder.path(), &["inspect", "m.gib"]);
    assert!(text.stdout.starts_with("Sparse Gaussian CRF (solver auto)\n"), "{}", text.stdout);

    let all = ["gaussian", "predict", "--model", "m.gib", "--x", "x.csv", "--y", "y.csv"];
    let scored = report(folder.path(), &[&all[..], &["--interval", "0.9"]].concat());
    for name in ["mse", "log_loss", "crps", "coverage", "joint_coverage"] {
        assert!(scored[name].is_number(), "{name}: {}", scored[name]);
    }
    assert!((0.8..=1.0).contains(&scored["coverage"].as_f64().unwrap()));
    assert_eq!(scored["mean"].as_array().unwrap().len(), ROWS);
}

/// The objective and its optimality from the definition, by the parameters that `inspect` prints, of a fit without intercept.
#[test]
fn solvers_agree_and_the_objective_is_that_of_the_parameters() {
    let folder = data();
    let mut objectives = Vec::new();
    for solver in ["auto", "alternating", "newton-cd", "owlqn", "fista"] {
        let more = ["--lambda", "0.1", "--tolerance", "1e-8", "--solver", solver, "--model", "m.gib"];
        objectives.push(fit(folder.path(), &more)["objective"].as_f64().unwrap());
    }
    let spread = objectives.iter().map(|o| (o - objectives[0]).abs()).fold(0.0, f64::max);
    assert!(spread < 1e-8, "{objectives:?}");
    let held = report(folder.path(), &["inspect", "m.gib", "--parameters"]);
    let (mut lambda, mut theta) = ([[0.0; 3]; 3], [[0.0; 3]; 2]);
    let entries = |name: &str| -> Vec<(usize, usize, f64)> {
        let list = held[name].as_array().unwrap().iter();
        let at = |e: &Value, k: usize| e[k].as_u64().unwrap() as usize;
        list.map(|e| (at(e, 0), at(e, 1), e[2].as_f64().unwrap())).collect()
    };
    let mut penalty = 0.0;
    for (i, j, v) in entries("lambda") {
        (lambda[i][j], lambda[j][i]) = (v, v);
        penalty += if i == j { 0.0 } else { 2.0 * v.abs() };
    }
    for (i, j, v) in entries("theta") {
        theta[i][j] = v;
        penalty += v.abs();
    }
    let l = &lambda;
    let minor = |a: usize, b: usize, c: usize, d: usize| l[a][c] * l[b][d] - l[a][d] * l[b][c];
    let det = l[0][0] * minor(1, 2, 1, 2) - l[0][1] * minor(1, 2, 0, 2) + l[0][2] * minor(1, 2, 0, 1);
    let mut sum = 0.0;
    for k in 0..ROWS {
        let (x, y) = row(k);
        // (y + Σd)ᵀΛ(y + Σd) = yᵀΛy + 2yᵀd + dᵀΣd with d = Θᵀx; Σd by Cramer's rule.
        let d: Vec<f64> = (0..3).map(|j| x[0] * theta[0][j] + x[1] * theta[1][j]).collect();
        let solve = |c: usize| {
            let mut a = lambda;
            (0..3).for_each(|r| a[r][c] = d[r]);
            let minor = |r: usize, q: usize| a[1][r] * a[2][q] - a[1][q] * a[2][r];
            (a[0][0] * minor(1, 2) - a[0][1] * minor(0, 2) + a[0][2] * minor(0, 1)) / det
        };
        for i in 0..3 {
            sum += 2.0 * y[i] * d[i] + d[i] * solve(i);
            sum += (0..3).map(|j| y[i] * lambda[i][j] * y[j]).sum::<f64>();
        }
    }
    let objective = -det.ln() + sum / ROWS as f64 + 0.1 * penalty;
    assert!((objective - objectives[0]).abs() < 1e-8, "{objective} {objectives:?}");
}

#[test]
fn paths_and_cross_validation() {
    let folder = data();
    let path = fit(folder.path(), &["--path", "5", "--intercept", "--plot-course", "p.svg"]);
    let points = path["path"].as_array().unwrap();
    assert_eq!(points.len(), 5);
    assert_eq!((&points[0]["nonzeros_lambda"], &points[0]["nonzeros_theta"]), (&3.into(), &0.into()));
    assert!(points[4]["nonzeros_theta"].as_u64().unwrap() > 0);
    let cv = fit(
        folder.path(),
        &[
            "--cv",
            "4",
            "--path",
            "6",
            "--intercept",
            "--plot",
            "pattern.svg",
            "--plot-course",
            "cv.svg",
            "--model",
            "m.gib",
        ],
    );
    assert_eq!(cv["cv"].as_array().unwrap().len(), 6);
    assert_eq!(cv["lambda_min"], cv["lambda"]);
    assert_eq!(listing(folder.path()), ["cv.svg", "m.gib", "p.svg", "pattern.svg", "x.csv", "y.csv"]);
    let svg = fs::read_to_string(folder.path().join("pattern.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains('Λ') && svg.contains('Θ'));
    let ratio = fit(folder.path(), &["--lambda-ratio", "0.5", "--intercept"]);
    let share = ratio["lambda"].as_f64().unwrap() / ratio["lambda_max"].as_f64().unwrap();
    assert!((share - 0.5).abs() < 1e-12);
}

#[test]
fn forecasts_are_revised_when_outputs_arrive() {
    let folder = data();
    fit(folder.path(), &["--lambda", "0.02", "--intercept", "--model", "m.gib"]);
    let dir = folder.path();
    // Columns in another order, one more, and no `.csv` in the name.
    fs::write(dir.join("new"), "sun,more,wind\n0.5,9,1\n0.5,9,1\n").unwrap();
    fs::write(dir.join("so-far"), "a,b,c\n5,,\n,,NaN\n").unwrap();
    let plain = ["gaussian", "predict", "--model", "m.gib", "--x", "new"];
    let before = report(dir, &plain);
    let after = report(dir, &[&plain[..], &["--y", "so-far", "--interval", "0.8"]].concat());
    let at = |v: &Value, name: &str, i: usize, j: usize| v[name][i][j].as_f64().unwrap();
    assert_eq!(before["mean"][0], before["mean"][1]);
    assert_eq!(after["mean"][1], before["mean"][1]);
    assert_eq!((at(&after, "mean", 0, 0), at(&after, "deviation", 0, 0)), (5.0, 0.0));
    // b leans on a, so it rises with it, and is more certain.
    assert!(at(&after, "mean", 0, 1) > at(&before, "mean", 0, 1) + 1.0);
    assert!(at(&after, "deviation", 0, 1) < at(&before, "deviation", 0, 1));
    assert!(at(&after, "low", 1, 1) < at(&after, "mean", 1, 1));
    assert_eq!(after["cells"], 1);
    let wide = report(dir, &[&plain[..], &["--interval", "0.8", "--joint"]].concat());
    let narrow = report(dir, &[&plain[..], &["--interval", "0.8"]].concat());
    assert!(at(&wide, "high", 0, 2) > at(&narrow, "high", 0, 2));

    let text = run_in(dir, &[&plain[..], &["--interval", "0.8", "--plot", "fan.svg"]].concat()).stdout;
    assert!(text.starts_with("a,a:low,a:high,b,b:low,b:high,c,c:low,c:high\n"), "{text}");
    assert_eq!(text.lines().count(), 3);
    let samples =
        |seed: &str| run_in(dir, &[&plain[..], &["--samples", "4", "--seed", seed]].concat()).stdout;
    let first = samples("1");
    assert!(first.starts_with("row,sample,a,b,c\n1,1,") && first.lines().count() == 9, "{first}");
    assert_eq!(first, samples("1"));
    assert_ne!(first, samples("2"));
}

/// `eval` and `predict` score alike, from two files or from one table that names all columns.
#[test]
fn eval_scores_as_predict_does() {
    let folder = data();
    let dir = folder.path();
    fit(dir, &["--lambda", "0.05", "--intercept", "--model", "m.gib"]);
    let args =
        ["gaussian", "predict", "--model", "m.gib", "--x", "x.csv", "--y", "y.csv", "--interval", "0.8"];
    let expected = report(dir, &args);
    let found = report(dir, &["eval", "--model", "m.gib", "x.csv", "--y", "y.csv", "--interval", "0.8"]);
    for name in ["mse", "log_loss", "crps", "coverage", "joint_coverage", "cells", "level"] {
        assert_eq!(found[name], expected[name], "{name}");
    }
    assert_eq!(found["items"], ROWS);
    let both = csv("c,sun,b,wind,a", |k| {
        let (x, y) = row(k);
        vec![y[2], x[1], y[1], x[0], y[0]]
    });
    fs::write(dir.join("both.csv"), both).unwrap();
    let one = report(dir, &["eval", "--model", "m.gib", "both.csv", "--interval", "0.8"]);
    assert_eq!((&one["mse"], &one["log_loss"]), (&found["mse"], &found["log_loss"]));
    let text = run_in(dir, &["eval", "--model", "m.gib", "both.csv"]).stdout;
    assert!(text.starts_with("60 items, 180 known outputs\n  mse "), "{text}");
    fs::write(dir.join("bare.csv"), "1,2\n").unwrap();
    for (args, code, message) in [
        (
            &["bare.csv"][..],
            1,
            "bare.csv: a Gaussian CRF is scored on inputs and outputs: give the outputs with --y",
        ),
        (&["x.csv"], 1, "x.csv: found no column `a`, which the model needs"),
        (&["x.csv", "--y", "bare.csv"], 1, "bare.csv: found 2 columns, but the model has 3"),
        (
            &["x.csv", "--y", "y.csv", "--interval", "1"],
            2,
            "--interval must be above 0 and below 1, but is 1",
        ),
    ] {
        let run = run_in(dir, &[&["eval", "--model", "m.gib"], args].concat());
        assert!(run.code == code && run.stderr.contains(message), "{}", run.stderr);
    }
}

#[test]
fn models_are_exported_to_devices() {
    let folder = data();
    let dir = folder.path();
    fit(dir, &["--lambda", "0.05", "--intercept", "--model", "m.gib"]);
    let export = ["export", "--model", "m.gib", "--to"];
    let more = ["--check", "x.csv", "--attributes", "exact", "m.img"];
    let found = report(dir, &[&export[..], &["image"], &more].concat());
    assert_eq!(found["flash_bytes"], fs::metadata(dir.join("m.img")).unwrap().len());
    assert_eq!(
        (&found["inputs"], &found["outputs"], &found["ram_bytes"]),
        (&2.into(), &3.into(), &24.into())
    );
    for name in
        ["worst_error", "worst_deviation_error", "worst_revised_error", "worst_revised_deviation_error"]
    {
        assert!(found["check"][name].as_f64().unwrap() < 1e-5, "{name}: {found}");
    }
    let image = report(dir, &["inspect", "m.img", "--parameters"]);
    assert_eq!((&image["kind"], &image["model"]), (&"image".into(), &"gaussian".into()));
    assert_eq!(image["outputs"], serde_json::json!(["a", "b", "c"]));
    let model = report(dir, &["inspect", "m.gib", "--parameters"]);
    for name in ["lambda", "theta"] {
        let (a, b) = (image[name].as_array().unwrap(), model[name].as_array().unwrap());
        assert_eq!(a.len(), b.len(), "{name}");
        for (a, b) in a.iter().zip(b) {
            assert_eq!((&a[0], &a[1]), (&b[0], &b[1]));
            let (a, b) = (a[2].as_f64().unwrap(), b[2].as_f64().unwrap());
            assert!((a - b).abs() <= 1e-7 * b.abs(), "{name}: {a} {b}");
        }
    }
    let text = run_in(dir, &["inspect", "m.img"]).stdout;
    assert!(
        text.starts_with("Model image of a Gaussian CRF (f32)\n  outputs                3: a, b, c\n"),
        "{text}"
    );
    let text = run_in(dir, &[&export[..], &["c", "m.h", "--check", "x.csv"]].concat()).stdout;
    assert!(text.contains("  worst error of a mean  ") && text.contains(" deviations (revised "), "{text}");
    let header = fs::read_to_string(dir.join("m.h")).unwrap();
    assert!(header.contains("#define MODEL_OUTPUTS 3u") && header.contains("    \"wind\",\n"), "{header}");
    run_in(dir, &[&export[..], &["rust", "m.rs"]].concat());
    let source = fs::read_to_string(dir.join("m.rs")).unwrap();
    assert!(source.contains("pub const OUTPUT_NAMES: [&str; 3] = ["), "{source}");
    let run = run_in(dir, &[&export[..], &["image", "--scalar", "i16", "no.img"]].concat());
    assert!(
        run.code == 1 && run.stderr.contains("in single precision: use `--scalar f32`"),
        "{}",
        run.stderr
    );
    let run = run_in(dir, &[&export[..], &["image", "--check", "y.csv", "no.img"]].concat());
    assert!(run.code == 1 && run.stderr.contains("y.csv: found no column `wind`"), "{}", run.stderr);
}

/// Refitting keeps the support and lowers the part of the objective that has no penalty.
#[test]
fn refits_keep_the_support() {
    let folder = data();
    let dir = folder.path();
    let shrunk = fit(dir, &["--lambda", "0.3", "--intercept", "--model", "a.gib"]);
    let free = fit(dir, &["--lambda", "0.3", "--intercept", "--refit", "--model", "b.gib"]);
    for name in ["nonzeros_lambda", "nonzeros_theta"] {
        assert_eq!(shrunk[name], free[name], "{name}");
    }
    assert!(free["objective"].as_f64().unwrap() < shrunk["objective"].as_f64().unwrap());
    assert_eq!(report(dir, &["inspect", "b.gib"])["refit"], true);
    let loss =
        |m: &str| report(dir, &["eval", "--model", m, "x.csv", "--y", "y.csv"])["log_loss"].as_f64().unwrap();
    assert!(loss("b.gib") < loss("a.gib"));
}

/// Stopped early: the model is there, and says so.
#[test]
fn early_ends_have_their_own_exit_code() {
    let folder = data();
    let args =
        ["--lambda", "0.01", "--intercept", "--max-iter", "1", "--tolerance", "1e-12", "--model", "m.gib"];
    let run = run_in(folder.path(), &[&FIT[..], &args].concat());
    assert_eq!(run.code, 3, "{}", run.stderr);
    assert!(run.stdout.starts_with("Sparse Gaussian CRF (auto): NOT CONVERGED\n"), "{}", run.stdout);
    assert!(run.stderr.contains("stopped at --max-iter before the tolerance was met"), "{}", run.stderr);
    let held = report(folder.path(), &["inspect", "m.gib"]);
    assert_eq!(held["converged"], false);
}

/// A budget that is too small is refused with what is needed; sizes and solvers are checked as usage.
#[test]
fn memory_is_budgeted() {
    let folder = data();
    let fit = |more: &[&str]| run_in(folder.path(), &[&FIT[..], &["--lambda", "0.1"], more].concat());
    let run = fit(&["--memory", "1KB"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    assert!(
        run.stderr.starts_with("error: the fit needs about 1 MiB of memory and 0 MiB are allowed"),
        "{}",
        run.stderr
    );
    assert_eq!(fit(&["--memory", "10KB", "--solver", "alternating"]).code, 1);
    // Enough for dense matrices, then not.
    let json = |more: &[&str]| -> serde_json::Value {
        let run = fit(&[&["--json"], more].concat());
        assert_eq!(run.code, 0, "{}", run.stderr);
        serde_json::from_str(&run.stdout).unwrap()
    };
    let (whole, parts) = (json(&["--memory", "0.5MiB"]), json(&["--memory", "10KB", "-v"]));
    assert_eq!((whole["block_columns"].is_null(), parts["block_columns"].is_u64()), (true, true));
    let apart = whole["objective"].as_f64().unwrap() - parts["objective"].as_f64().unwrap();
    assert!(apart.abs() < 1e-8, "{apart}");
    assert!(fit(&["--memory", "10KB", "-v"]).stderr.contains("fitted by blocks of"));
    let cv = ["--memory", "100KB", "--cv", "3", "--refit", "--intercept"];
    assert_eq!(run_in(folder.path(), &[&FIT[..], &cv].concat()).code, 0);
    for wrong in
        [&["--memory", "much"][..], &["--memory", "0GiB"], &["--memory", "1GiB", "--solver", "fista"]]
    {
        assert_eq!(fit(wrong).code, 2, "{wrong:?}");
    }
}

#[test]
fn bad_input_is_named() {
    let whole = csv("a,b,c", |k| row(k).1.to_vec());
    let x = csv("wind,sun", |k| row(k).0.to_vec());
    let constant = csv("a,b", |k| vec![number(k), 4.5]);
    let twice = csv("a,b", |k| vec![number(k), number(k)]);
    let short: String = whole.lines().take(11).map(|l| format!("{l}\n")).collect();
    let hole = whole.replacen(&whole.lines().nth(3).unwrap().to_owned(), "1,,2", 1);
    let word = whole.replacen(&whole.lines().nth(3).unwrap().to_owned(), "1,high,2", 1);
    for (y, more, message) in [
        (
            &hole,
            &["--lambda", "0.1"][..],
            "y.csv: line 4, column 2 (`b`): found a missing value, expected a number",
        ),
        (
            &word,
            &["--lambda", "0.1"],
            "y.csv: line 4, column 2 (`b`): found `high`, expected a finite number",
        ),
        (
            &short,
            &["--lambda", "0.1"],
            "x.csv has 60 rows and y.csv has 10: expected as many inputs as outputs",
        ),
        (
            &constant,
            &["--lambda", "0.1", "--intercept"],
            "y.csv: column `b` does not vary: its precision would be infinite; leave it out",
        ),
        (
            &twice,
            &["--lambda", "0", "--lambda-theta", "0.1"],
            "y.csv: some outputs are linear combinations of others",
        ),
        (&"a\n1\n".to_owned(), &["--lambda", "0.1"], "x.csv has 60 rows and y.csv has 1"),
        (&"a,b\n".to_owned(), &["--lambda", "0.1"], "y.csv: found no rows"),
    ] {
        let folder = folder(&[("x.csv", x.as_bytes()), ("y.csv", y.as_bytes())]);
        let run = run_in(folder.path(), &[&FIT[..], more, &["--model", "m.gib"]].concat());
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{message}");
        assert!(run.stderr.starts_with(&format!("error: {message}")), "{}", run.stderr);
        assert_eq!(listing(folder.path()), ["x.csv", "y.csv"]);
    }
    // More inputs than samples explain everything; a missing cell of an array has a row and a column.
    let wide = csv(&(0..70).map(|i| format!("x{i}")).collect::<Vec<_>>().join(","), |k| {
        (0..70).map(|i| number(1000 + 70 * k + i)).collect()
    });
    let cells: Vec<u8> =
        [1.0, 2.0, 3.0, f64::NAN, 5.0, 6.0f64].iter().flat_map(|v| v.to_le_bytes()).collect();
    let head = format!("{:<117}\n", "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }");
    let array = [b"\x93NUMPY\x01\x00\x76\x00", head.as_bytes(), &cells].concat();
    let folder = folder(&[("x.csv", wide.as_bytes()), ("y.csv", whole.as_bytes()), ("a.npy", &array)]);
    let run = run_in(folder.path(), &[&FIT[..], &["--lambda", "0.1", "--lambda-theta", "0"]].concat());
    let message =
        "error: y.csv: 70 inputs explain an output of 60 samples exactly, so that with lambda-theta = 0";
    assert!(run.code == 1 && run.stderr.starts_with(message), "{}", run.stderr);
    let run = run_in(folder.path(), &["gaussian", "fit", "--x", "a.npy", "--y", "y.csv", "--lambda", "1"]);
    let message = "error: a.npy: row 2, column 2: found a missing value, expected a number\n";
    assert_eq!((run.code, run.stderr.as_str()), (1, message));
    let single = super::folder(&[
        ("x.csv", b"a\n1\n"),
        ("y.csv", b"b\n1\n"),
        ("w.npy", b"\x93NUMPY\x01\x00\x02\x00{}"),
    ]);
    let run = run_in(single.path(), &[&FIT[..], &["--lambda", "0.1"]].concat());
    assert!(run.stderr.contains("found 1 row, expected at least 2"), "{}", run.stderr);
    let run = run_in(single.path(), &["gaussian", "fit", "--x", "w.npy", "--y", "y.csv", "--lambda", "1"]);
    assert_eq!((run.code, run.stderr.as_str()), (1, "error: w.npy: the .npy header: found no `descr`\n"));
    for (args, message) in [
        (&["--lambda", "-1"][..], "--lambda must be a finite number of at least 0, but is -1"),
        (&[], "required arguments"),
        (&["--lambda", "1", "--cv", "5"], "cannot be used with"),
        (&["--lambda", "1", "--plot", "p.png"], "must be called *.svg"),
    ] {
        let run = run_in(single.path(), &[&FIT[..], args].concat());
        assert!(run.code == 2 && run.stderr.contains(message), "{}", run.stderr);
    }
}

#[test]
fn models_and_data_must_fit() {
    let folder = data();
    let dir = folder.path();
    fit(dir, &["--lambda", "0.1", "--intercept", "--model", "m.gib"]);
    fs::write(dir.join("narrow.csv"), "wind\n1\n").unwrap();
    fs::write(dir.join("bare.csv"), "1,2,3\n").unwrap();
    for (x, message) in [
        ("narrow.csv", "error: narrow.csv: found no column `sun`, which the model needs\n"),
        ("bare.csv", "error: bare.csv: found 3 columns, but the model has 2\n"),
    ] {
        let run = run_in(dir, &["gaussian", "predict", "--model", "m.gib", "--x", x]);
        assert_eq!((run.code, run.stderr.as_str()), (1, message));
    }
    let run = run_in(dir, &["predict", "--model", "m.gib", "x.csv"]);
    assert!(run.code == 1 && run.stderr.contains("use `gibbsite gaussian predict`"), "{}", run.stderr);
    let run = run_in(dir, &["gaussian", "predict", "--model", "x.csv", "--x", "x.csv"]);
    assert!(run.code == 1 && run.stderr.contains("not a gibbsite model"), "{}", run.stderr);
}
