//! `gibbsite regress`: what it fits, writes and says.

use super::{Run, finish, folder, gibbsite, json, listing, run, stable, stdout};
use serde_json::Value;
use std::fs;
use std::path::Path;

const SPAM: [&str; 3] = ["regress", "logistic", "spam.svm"];
const FLATS: [&str; 5] = ["regress", "lasso", "flats.csv", "--target", "price"];

fn with(command: &[&str], more: &[&str]) -> Vec<String> {
    command.iter().chain(more).map(|&s| s.to_owned()).collect()
}

fn report(command: &[&str], more: &[&str]) -> Value {
    let args = with(command, more);
    let args: Vec<&str> = args.iter().map(String::as_str).chain(["--json"]).collect();
    json(&stdout(&args))
}

/// Runs in a new folder with one file.
fn run_on(name: &str, text: &str, args: &[&str]) -> Run {
    let folder = folder(&[(name, text.as_bytes())]);
    let mut command = gibbsite(args);
    command.current_dir(folder.path());
    finish(command)
}

fn number(value: &Value, name: &str) -> f64 {
    value[name].as_f64().unwrap_or_else(|| panic!("{name}: {}", value[name]))
}

#[test]
fn the_contract_of_json() {
    let fit = report(&SPAM, &["--lambda-ratio", "0.1"]);
    for name in [
        "objective",
        "gap",
        "lambda",
        "lambda_max",
        "nonzeros",
        "iterations",
        "epochs",
        "updates",
        "rho",
        "p_star",
        "parallel",
        "seconds",
        "read_seconds",
        "violation",
        "updates_per_second",
        "nonzeros_per_second",
    ] {
        assert!(fit[name].is_number(), "{name}: {}", fit[name]);
    }
    assert_eq!(fit["converged"], true);
    assert_eq!(fit.get("intercept"), None);
    assert_eq!(fit.get("trace"), None);
    let coefficients = fit["coefficients"].as_object().unwrap();
    assert_eq!(coefficients.len() as u64, fit["nonzeros"].as_u64().unwrap());
    let features: Vec<u32> = coefficients.keys().map(|k| k.parse().unwrap()).collect();
    assert!(features.is_sorted() && features.contains(&7), "numbers as in the file, in order: {features:?}");
    assert!((number(&fit, "lambda") - 0.1 * number(&fit, "lambda_max")).abs() < 1e-12);
    let traced = report(&SPAM, &["--lambda-ratio", "0.1", "--trace"]);
    assert!(traced["trace"].as_array().unwrap().iter().all(|p| p["objective"].is_number()));
    assert!(report(&FLATS, &["--lambda", "100", "--intercept"])["intercept"].is_number());
}

/// The objective from its definition, by the coefficients that were reported.
#[test]
fn the_objective_is_that_of_the_coefficients() {
    let fit = report(&SPAM, &["--lambda", "1.5", "--tolerance", "1e-10"]);
    let text = fs::read_to_string(super::examples().join("spam.svm")).unwrap();
    let (mut loss, mut correlation) = (0.0, vec![0.0; 30]);
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let mut words = line.split(' ');
        let y: f64 = words.next().unwrap().parse().unwrap();
        let entries: Vec<(&str, f64)> =
            words.map(|w| w.split_once(':').unwrap()).map(|(j, v)| (j, v.parse().unwrap())).collect();
        let z: f64 = entries.iter().map(|(j, v)| v * fit["coefficients"][j].as_f64().unwrap_or(0.0)).sum();
        loss += (1.0 + (-y * z).exp()).ln();
        for (j, v) in entries {
            correlation[j.parse::<usize>().unwrap()] += y * v / 2.0;
        }
    }
    let l1: f64 = fit["coefficients"].as_object().unwrap().values().map(|x| x.as_f64().unwrap().abs()).sum();
    assert!((number(&fit, "objective") - (loss + 1.5 * l1)).abs() < 1e-9);
    let lambda_max = correlation.iter().fold(0.0f64, |m, c| m.max(c.abs()));
    assert!((number(&fit, "lambda_max") - lambda_max).abs() < 1e-12);
    assert!(number(&fit, "gap") <= 1e-10 * 60.0 * 2f64.ln());
}

#[test]
fn every_solver_finds_the_same_optimum() {
    let expected = number(&report(&SPAM, &["--lambda-ratio", "0.2"]), "objective");
    for solver in ["shotgun", "shooting", "shotgun-async", "hybrid", "reference"] {
        let fit = report(&SPAM, &["--lambda-ratio", "0.2", "--solver", solver]);
        assert!((number(&fit, "objective") - expected).abs() < 1e-6 * 60.0, "{solver}");
        assert_eq!(fit["solver"], solver);
    }
    // Baselines that need not get there: but they say so, and what they write is a model.
    for solver in ["sgd", "truncated-gradient", "parallel-sgd"] {
        let run = run(&[
            "regress",
            "logistic",
            "spam.svm",
            "--lambda-ratio",
            "0.2",
            "--solver",
            solver,
            "--json",
            "--max-epochs",
            "50",
            "--quiet",
        ]);
        let fit = json(&run.stdout);
        assert!(
            number(&fit, "objective") < 60.0 * 2f64.ln() && number(&fit, "objective") >= expected - 1e-4,
            "{solver}"
        );
        assert_eq!(run.code, if fit["converged"] == true { 0 } else { 3 }, "{solver}");
    }
}

#[test]
fn storage_threads_and_cache_change_nothing_to_speak_of() {
    let base = &["--lambda-ratio", "0.05", "--intercept"];
    let expected = number(&report(&FLATS, base), "objective");
    for more in [&["--storage", "f32"][..], &["--threads", "1"], &["--threads", "2"]] {
        let found = number(&report(&FLATS, &[&base[..], more].concat()), "objective");
        assert!((found - expected).abs() < 2e-6 * expected, "{more:?}: {found} {expected}");
    }
    let folder = folder(&[]);
    let cache = folder.path().join("c").display().to_string();
    for _ in 0..2 {
        assert_eq!(
            number(&report(&FLATS, &[&base[..], &["--cache", &cache]].concat()), "objective"),
            expected
        );
    }
    assert_eq!(listing(folder.path()), ["c"]);
}

#[test]
fn paths_go_from_all_zero_down() {
    let found = report(&SPAM, &["--path", "7", "--path-ratio", "0.05"]);
    let path = found["path"].as_array().unwrap();
    let lambda_max = number(&found, "lambda_max");
    assert_eq!((path.len(), path[0]["nonzeros"].as_u64()), (7, Some(0)));
    for (k, fit) in path.iter().enumerate() {
        let expected = lambda_max * 0.05f64.powf(k as f64 / 6.0);
        assert!((number(fit, "lambda") / expected - 1.0).abs() < 1e-9, "{k}");
        assert!(fit["converged"] == true && fit["coefficients"].is_object() && fit["gap"].is_number());
    }
    // Each point is what a single fit would find.
    let single = report(&SPAM, &["--lambda", &path[4]["lambda"].to_string()]);
    assert!((number(&single, "objective") - number(&path[4], "objective")).abs() < 2e-6 * 60.0);
    let text = stdout(&["regress", "logistic", "spam.svm", "--path", "3"]);
    assert_eq!(text.lines().filter(|l| l.ends_with(|c: char| c.is_ascii_digit())).count(), 3 + 1, "{text}");
}

#[test]
fn cross_validation_chooses_and_fits_again() {
    let min = report(&SPAM, &["--cv", "5", "--path", "12"]);
    let tried = min["cv"].as_array().unwrap();
    assert_eq!(tried.len(), 12);
    let least = tried.iter().min_by(|a, b| number(a, "mean").total_cmp(&number(b, "mean"))).unwrap();
    assert_eq!(number(&min, "lambda_min"), number(least, "lambda"));
    assert!((number(&min, "lambda") / number(least, "lambda") - 1.0).abs() < 1e-12);
    let limit = number(least, "mean") + number(least, "se");
    let first = tried.iter().find(|p| number(p, "mean") <= limit).unwrap();
    assert_eq!(number(&min, "lambda_1se"), number(first, "lambda"));
    assert!(number(&min, "lambda_1se") > number(&min, "lambda_min"));
    let one_se = report(&SPAM, &["--cv", "5", "--path", "12", "--cv-rule", "1se"]);
    assert!((number(&one_se, "lambda") / number(&min, "lambda_1se") - 1.0).abs() < 1e-12);
    // The same on any number of threads; other folds for another seed.
    let again = report(&SPAM, &["--cv", "5", "--path", "12", "--threads", "1"]);
    assert_eq!(again["cv"], min["cv"]);
    assert_ne!(report(&SPAM, &["--cv", "5", "--path", "12", "--seed", "1"])["cv"], min["cv"]);
    // Nothing held out is learned from: the loss of an empty model is that of a coin.
    assert!((number(&tried[0], "mean") - 2f64.ln()).abs() < 1e-12);
}

#[test]
fn options_do_what_they_say() {
    let positive = report(&SPAM, &["--lambda-ratio", "0.1", "--positive"]);
    assert!(positive["coefficients"].as_object().unwrap().values().all(|x| x.as_f64().unwrap() > 0.0));
    let lasso = number(&report(&FLATS, &["--lambda", "500"]), "objective");
    let net = report(&FLATS, &["--lambda", "500", "--l2", "100"]);
    assert!(number(&net, "objective") > lasso && net["converged"] == true);
    // Standardised: multiplying a column by 1000 divides its coefficient by 1000.
    let text = fs::read_to_string(super::examples().join("flats.csv")).unwrap();
    let scaled: String = text
        .lines()
        .enumerate()
        .map(|(k, line)| {
            let (rooms, rest) = line.split_once(',').unwrap();
            if k == 0 { format!("{line}\n") } else { format!("{rooms}000,{rest}\n") }
        })
        .collect();
    let args = ["--lambda-ratio", "0.01", "--standardize", "--intercept", "--tolerance", "1e-12"];
    let raw = report(&FLATS, &args);
    let args = [&FLATS[..], &args, &["--json"]].concat();
    let other = json(&run_on("flats.csv", &scaled, &args).stdout);
    let (a, b) = (number(&raw["coefficients"], "rooms"), number(&other["coefficients"], "rooms"));
    assert!((a / 1000.0 / b - 1.0).abs() < 1e-5, "{a} {b}");
    assert!((number(&raw, "objective") / number(&other, "objective") - 1.0).abs() < 1e-9);
}

#[test]
fn penalty_factors_from_a_file() {
    let folder = folder(&[
        ("w.csv", b"garden,0\narea,1e9\n"),
        ("w.txt", b"1\n1\n"),
        ("bad.csv", b"garden,0\npool,1\n"),
    ]);
    let file = |name: &str| folder.path().join(name).display().to_string();
    let fit = report(&FLATS, &["--lambda-ratio", "0.5", "--intercept", "--weights", &file("w.csv")]);
    let coefficients = fit["coefficients"].as_object().unwrap();
    assert!(coefficients.contains_key("garden") && !coefficients.contains_key("area"), "{coefficients:?}");
    for (name, message) in [
        ("w.txt", "found 2 numbers, expected one for each of 8 features"),
        ("bad.csv", "line 2: the data has no feature `pool`"),
    ] {
        let args = with(&FLATS, &["--lambda", "1", "--weights", &file(name)]);
        let run = run(&args.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!((run.code, run.stderr), (1, format!("error: {}: {message}\n", file(name))));
    }
}

#[test]
fn a_penalty_that_is_too_strong_is_pointed_out() {
    for (args, said) in [
        (
            &["--lambda", "1000"][..],
            "warning: lambda is 1000, not below lambda_max = 12: all coefficients are 0\n",
        ),
        (
            &["--lambda-ratio", "1"],
            "warning: lambda is 12, not below lambda_max = 12: all coefficients are 0\n",
        ),
    ] {
        let args = with(&SPAM, args);
        let run = run(&args.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!((run.code, run.stderr.as_str()), (0, said));
        assert!(run.stdout.contains("non-zeros              0 of 24"), "{}", run.stdout);
    }
}

#[test]
fn stopping_early_is_exit_3_with_a_result_that_says_so() {
    let folder = folder(&[]);
    let model = folder.path().join("m.gib").display().to_string();
    let args = [
        "regress",
        "lasso",
        "flats.csv",
        "--lambda",
        "1",
        "--solver",
        "shooting",
        "--max-epochs",
        "1",
        "--model",
        &model,
    ];
    let early = run(&args);
    assert_eq!(early.code, 3);
    assert!(
        early
            .stderr
            .starts_with("warning: stopped at --max-epochs 1 before the tolerance was met: the gap is ")
    );
    assert!(early.stdout.starts_with("Lasso regression (shooting): NOT CONVERGED\n"), "{}", early.stdout);
    let shown = json(&stdout(&["inspect", &model, "--json"]));
    assert_eq!((shown["converged"].clone(), shown["kind"].clone()), (false.into(), "regression".into()));
    let quiet = run(&[&args[..], &["--json", "--quiet"]].concat());
    assert_eq!((quiet.code, quiet.stderr.as_str()), (3, ""));
    assert_eq!(json(&quiet.stdout)["converged"], false);
}

/// Runs, with Ctrl-C after a while.
#[cfg(unix)]
fn interrupted_after(milliseconds: u64, folder: &Path, args: &[&str]) -> std::process::Output {
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("gibbsite"))
        .current_dir(folder)
        .args(args)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(milliseconds));
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success() || child.try_wait().unwrap().is_some());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Ctrl-C: the model is written all the same.
#[cfg(unix)]
#[test]
fn ctrl_c_keeps_the_best_so_far() {
    let folder = folder(&[]);
    let model = folder.path().join("m.gib");
    let name = model.display().to_string();
    let args = ["--lambda", "1e-9", "--tolerance", "0", "--solver", "shooting", "--max-epochs", "1000000000"];
    let args = [&["regress", "lasso", "flats.csv", "--json", "--model", &name], &args[..]].concat();
    let output = interrupted_after(700, &super::examples(), &args);
    let found = json(&String::from_utf8(output.stdout).unwrap());
    assert_eq!(found["converged"], false);
    assert!(found["coefficients"].as_object().is_some_and(|c| !c.is_empty()));
    assert!(model.is_file());
}

/// Ctrl-C during cross-validation: the choice is among what was tried and says so, or there is none.
#[cfg(unix)]
#[test]
fn ctrl_c_leaves_no_choice_that_was_not_made() {
    // Noise, more features than samples: a tenth of the penalty takes shooting ten times as long.
    let mut state = 1u64;
    let mut digit = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as i64 % 19 - 9
    };
    let row = |digit: &mut dyn FnMut() -> i64| {
        let y = digit();
        let entries: Vec<String> = (1..=1000).map(|j| format!("{j}:{}", digit())).collect();
        format!("{y} {}\n", entries.join(" "))
    };
    let text: String = (0..200).map(|_| row(&mut digit)).collect();
    let folder = folder(&[("d.svm", text.as_bytes()), ("m.gib", b"old")]);
    let model = folder.path().join("m.gib");
    let args = ["--cv", "2", "--threads", "2", "--solver", "shooting", "--tolerance", "1e-12", "--json"];
    let args = [&["regress", "lasso", "d.svm", "--model", "m.gib"], &args[..]].concat();
    let run = |milliseconds, more: &[&str]| {
        let output = interrupted_after(milliseconds, folder.path(), &[&args[..], more].concat());
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (out, said) = run(700, &["--path", "2", "--path-ratio", "1e-4"]);
    assert_eq!(
        (out.as_str(), said.lines().last()),
        (
            "",
            Some(
                "error: interrupted before two folds had tried a penalty below lambda_max: there is nothing to choose from; no model is written"
            )
        )
    );
    assert_eq!(fs::read(&model).unwrap(), b"old");

    let (out, said) = run(1500, &["--path", "11", "--path-ratio", "1e-4"]);
    let found = json(&out);
    let tried = found["cv"].as_array().unwrap();
    assert!((2..11).contains(&tried.len()), "{tried:?}");
    assert!(
        number(&found, "lambda") < number(&found, "lambda_max") || found["lambda_min"] == found["lambda_max"]
    );
    for (name, value) in [
        ("converged", Value::from(false)),
        ("interrupted", true.into()),
        ("folds", 2.into()),
        ("folds_scored", 2.into()),
        ("penalties", 11.into()),
    ] {
        assert_eq!(found[name], value, "{name}");
    }
    let expected = format!(
        "warning: interrupted: lambda is the best of the {} largest of 11 penalties by 2 of 2 folds",
        tried.len()
    );
    assert!(said.contains(&expected), "{said}");
    let name = model.display().to_string();
    let shown = json(&stdout(&["inspect", &name, "--json"]));
    assert_eq!((shown["converged"].clone(), shown["interrupted"].clone()), (false.into(), true.into()));
    assert!(stdout(&["inspect", &name]).contains(", INTERRUPTED)"));
}

/// Stochastic gradients have a limit of their own, unless one is typed.
#[test]
fn the_limit_on_epochs_is_the_one_that_is_told() {
    for (more, limit) in [(&[][..], 20), (&["--max-epochs", "7"], 7)] {
        let args =
            [&SPAM[..], &["--lambda-ratio", "0.01", "--tolerance", "0", "--solver", "sgd", "--json"], more]
                .concat();
        let run = run(&args);
        assert_eq!((run.code, number(&json(&run.stdout), "epochs")), (3, f64::from(limit)));
        let said = format!("warning: stopped at --max-epochs {limit} before the tolerance was met");
        assert!(run.stderr.starts_with(&said), "{}", run.stderr);
    }
}

#[test]
fn plots_are_svg() {
    let folder = folder(&[]);
    let file = folder.path().join("p.svg");
    let name = file.display().to_string();
    for (args, inside) in [
        (&["--lambda-ratio", "0.1"][..], "Duality gap"),
        (&["--path", "5"], "Coefficients"),
        (&["--cv", "3", "--path", "5"], "Cross-validation"),
        (&["--cv", "3", "--path", "1"], "min = 1se"),
    ] {
        report(&SPAM, &[args, &["--plot", &name]].concat());
        let svg = fs::read_to_string(&file).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains(inside) && svg.trim_end().ends_with("</svg>"));
    }
}

#[test]
fn odd_but_legal_data() {
    let args =
        |task: &'static str, file: &'static str| ["regress", task, file, "--lambda-ratio", "0.1", "--json"];
    for (what, task, file, text) in [
        ("a constant target", "lasso", "d.svm", "3 1:1 2:2\n3 1:2\n3 2:1\n"),
        ("a target of zeros", "lasso", "d.svm", "0 1:1 2:2\n0 1:2\n0 2:1\n"),
        ("a zero column", "lasso", "d.csv", "a,b,y\n1,0,1\n2,0,2\n4,0,3\n"),
        ("duplicate columns", "lasso", "d.csv", "a,b,y\n1,1,1\n2,2,2\n4,4,3\n"),
        ("an unused feature", "logistic", "d.svm", "1 1:1 3:1\n-1 3:2\n1 1:2 4:1\n-1 4:1\n"),
        ("labels 0 and 1", "logistic", "d.svm", "1 1:1\n0 2:1\n0 1:1 2:1\n"),
        ("labels 3 and 7", "logistic", "d.csv", "a,b,y\n1,0,3\n0,1,7\n1,1,7\n"),
        ("comments, blank lines", "lasso", "d.svm", "# data\r\n\r\n1 1:1 # one\r\n2 1:2\r\n"),
    ] {
        let run = run_on(file, text, &args(task, file));
        assert_eq!(run.code, 0, "{what}: {}", run.stderr);
        let said = "warning: the target is 0 throughout: there is nothing to explain, whatever lambda is\n";
        assert_eq!(run.stderr, if what == "a target of zeros" { said } else { "" }, "{what}");
        let fit = json(&run.stdout);
        assert!(fit["converged"] == true && fit["objective"].is_number(), "{what}");
        if what == "duplicate columns" {
            let (a, b) = (fit["coefficients"]["a"].as_f64(), fit["coefficients"]["b"].as_f64());
            assert!(a.unwrap_or(0.0) + b.unwrap_or(0.0) > 0.1);
        }
    }
    let run = run_on("d.svm", "1 0:1 1:2\n2 0:2\n", &args("lasso", "d.svm"));
    assert_eq!(run.code, 0);
    assert!(run.stderr.contains("zero-based"), "{}", run.stderr);
    assert!(json(&run.stdout)["coefficients"].as_object().unwrap().keys().all(|k| k == "0" || k == "1"));
}

/// λ_max is 0, and nothing is a share of it or can be drawn: the result is written all the same.
#[test]
fn where_nothing_is_to_be_explained_the_result_says_so() {
    let (zero, flat) = ("0 1:1 2:2\n0 1:2\n0 2:1\n", "3 1:1 2:2\n3 1:2\n3 2:1\n");
    for (text, why) in [
        (zero, "the target is 0 throughout: there is nothing to explain"),
        (flat, "the target is 3 throughout: the intercept explains all of it"),
    ] {
        for (penalty, drawn) in [
            (&["--lambda-ratio", "0.1"][..], None),
            (&["--lambda", "0.5"], None),
            (&["--path", "3"], Some(false)),
            (&["--cv", "3", "--path", "2"], Some(false)),
        ] {
            let folder = folder(&[("d.svm", text.as_bytes())]);
            let args = [
                "regress",
                "lasso",
                "d.svm",
                "--intercept",
                "--model",
                "m.gib",
                "--plot",
                "p.svg",
                "--output",
                "out",
            ];
            let mut command = gibbsite(&[&args[..], penalty].concat());
            command.current_dir(folder.path());
            let run = finish(command);
            assert_eq!(run.code, 0, "{penalty:?}: {}", run.stderr);
            assert!(run.stderr.contains(&format!("warning: {why}, whatever lambda is\n")), "{}", run.stderr);
            if drawn == Some(false) {
                let said = "warning: cannot draw the plot: there is no point to show; p.svg is not written\n";
                assert!(run.stderr.contains(said) && !folder.path().join("p.svg").exists(), "{}", run.stderr);
            }
            let model = folder.path().join("m.gib").display().to_string();
            let said = fs::read_to_string(folder.path().join("out")).unwrap() + &stdout(&["inspect", &model]);
            assert!(said.contains("lambda_max is 0: no feature had anything to explain"), "{said}");
            assert!(!said.contains("NaN") && !said.contains("inf"), "{said}");
        }
    }
}

/// A feature of number 10⁹ takes no memory for those that are not there.
#[test]
fn huge_feature_numbers_are_cheap() {
    let run = run_on(
        "d.svm",
        "1 1:1 1000000000:2\n-1 3:1\n",
        &["regress", "lasso", "d.svm", "--lambda", "0.1", "--json"],
    );
    assert_eq!(run.code, 0, "{}", run.stderr);
    let fit = json(&run.stdout);
    assert!(fit["coefficients"]["1000000000"].is_number(), "{}", fit["coefficients"]);
    if let Some(peak) = fit["peak_rss_mib"].as_f64() {
        assert!(peak < 200.0, "{peak} MiB");
    }
}

#[test]
fn bad_data_is_refused_with_its_line() {
    for (task, file, text, message) in [
        ("lasso", "d.svm", "", "the file is empty"),
        ("lasso", "d.csv", "", "the file is empty"),
        ("lasso", "d.svm", "1 1:1\n2 1:nan\n", "line 2: found `1:nan`"),
        ("lasso", "d.svm", "1 1:1\n2 1:inf\n", "line 2: found `1:inf`"),
        ("lasso", "d.svm", "1 1:1\nnan 1:1\n", "line 2: found `nan`"),
        ("lasso", "d.svm", "1 1:1\n2 3:1 2:1\n", "line 2: found index 2 after 3"),
        ("lasso", "d.svm", "1 1:1\n\n2 3:1 3:1\n", "line 3: found index 3 twice"),
        ("lasso", "d.svm", "1 1:1\n2 one:1\n", "line 2: found `one:1`"),
        ("lasso", "d.svm", "1 1:1\n2 99999999999:1\n", "line 2: found index 99999999999"),
        ("lasso", "d.csv", "a,y\n1,2\nx,3\n", "line 3, column `a`"),
        ("lasso", "d.csv", "a,y\n1,2\nnan,3\n", "line 3, column `a`"),
        ("lasso", "d.csv", "a,y\n1,2\n1,2,3\n", "line 3"),
        ("lasso", "d.csv", "a,y\n", "found a header but no rows"),
        (
            "logistic",
            "d.svm",
            "1 1:1\n1 1:2\n",
            "logistic regression needs two labels, but only one was found: 1",
        ),
        (
            "logistic",
            "d.svm",
            "1 1:1\n2 1:2\n3 1:1\n",
            "logistic regression needs two labels, but 3 were found: 1, 2, 3",
        ),
        // Without penalty the classes can be told apart, so there is no optimum.
    ] {
        let run = run_on(
            file,
            text,
            &["regress", task, file, "--lambda", "0.1", "--output", "out", "--model", "m.gib"],
        );
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{text:?}: {}", run.stderr);
        let expected = format!("error: {file}: {message}");
        assert!(
            run.stderr.starts_with(&expected) && run.stderr.lines().count() == 1,
            "{}\n{expected}",
            run.stderr
        );
    }
    let separable = run_on("d.svm", "1 1:1\n-1 2:1\n", &["regress", "logistic", "d.svm", "--lambda", "0"]);
    assert_eq!(separable.code, 1);
    assert!(
        separable.stderr.starts_with("error: d.svm: without a penalty there is no best fit"),
        "{}",
        separable.stderr
    );
    let few = run_on("d.svm", "1 1:1\n-1 2:1\n1 2:1\n", &["regress", "lasso", "d.svm", "--cv", "4"]);
    assert_eq!(
        few.stderr,
        "error: d.svm: 4 folds of 3 samples: expected at least 2 folds and no more than there are samples\n"
    );
    let rare = run_on("d.svm", "1 1:1\n-1 2:1\n1 2:1\n", &["regress", "logistic", "d.svm", "--cv", "2"]);
    assert_eq!(
        rare.stderr,
        "error: d.svm: only one sample has the label -1: cross-validation needs at least two of each\n"
    );
    let missing = run(&["regress", "lasso", "flats.csv", "--target", "prize", "--lambda", "1"]);
    assert!(
        missing.stderr.starts_with("error: flats.csv: line 1: found no column `prize` for the target"),
        "{}",
        missing.stderr
    );
    assert!(!Path::new("out").exists());
}

#[test]
fn zero_based_is_explained() {
    let run = run_on(
        "d.svm",
        "1 0:1 1:2\n2 1:2\n",
        &["regress", "lasso", "d.svm", "--lambda", "0.1", "--zero-based", "--json"],
    );
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
}

#[test]
fn text_is_short() {
    let text = stdout(&["regress", "logistic", "spam.svm", "--lambda-ratio", "0.5"]);
    let head: Vec<&str> = text.lines().take(3).collect();
    assert_eq!(
        head,
        [
            "Logistic regression (auto)",
            "  samples × features     60 × 24 (228 entries)",
            "  lambda                 6 (0.5 of lambda_max 12)"
        ]
    );
    for name in ["objective", "duality gap", "non-zeros", "epochs", "rate", "seconds", "feature"] {
        assert!(text.lines().any(|l| l.starts_with(&format!("  {name}"))), "{name}: {}", stable(&text));
    }
}
