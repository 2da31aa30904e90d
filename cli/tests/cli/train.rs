//! `gibbsite train` on sequences, and `predict` and `eval` with what it wrote.

use super::{at, finish, gibbsite, json, run, stdout};
use std::fs;
use std::path::Path;

const PUMP: &[&str] = &["train", "--format", "columns", "--template", "pump.tpl", "pump.txt"];

/// A new folder with these files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    super::folder(&files.iter().map(|f| (f.0, f.1.as_bytes())).collect::<Vec<_>>())
}

/// A path in it.
/// Trains the example, with more options, into a new folder.
fn pump(more: &[&str]) -> (tempfile::TempDir, String) {
    let folder = folder(&[]);
    let model = at(&folder, "m.gib");
    stdout(&[PUMP, &["--model", &model], more].concat());
    (folder, model)
}

#[test]
fn columns_from_training_to_scores() {
    let (folder, model) = pump(&[]);
    let score = json(&stdout(&["eval", "--model", &model, "--format", "columns", "pump.test.txt", "--json"]));
    for field in ["items", "item_accuracy", "sequence_accuracy", "log_loss", "items_per_second"] {
        assert!(score[field].is_number(), "{field}");
    }
    assert_eq!((score["items"].as_u64(), score["sequences"].as_u64()), (Some(121), Some(15)));
    assert!(score["chunk"]["f1"].as_f64().unwrap() > 0.95);
    assert!(score["labels"].as_array().unwrap().iter().all(|l| l["support"].is_u64()));
    let text = stdout(&["eval", "--model", &model, "pump.test.txt"]);
    assert!(text.contains("chunks") && text.contains("B-NP"), "{text}");

    // One label a line, blank lines between sequences, with or without labels in the data.
    let labels = stdout(&["predict", "--model", &model, "--format", "columns", "pump.test.txt"]);
    let data = fs::read_to_string(super::examples().join("pump.test.txt")).unwrap();
    assert_eq!(labels.lines().count(), data.lines().count());
    assert!(labels.lines().zip(data.lines()).all(|(l, d)| l.is_empty() == d.is_empty()));
    let bare: String = data
        .lines()
        .map(|l| l.rsplit_once(' ').map_or(String::new(), |(words, _)| words.to_owned()) + "\n")
        .collect();
    let unlabelled = at(&folder, "bare.txt");
    fs::write(&unlabelled, bare).unwrap();
    assert_eq!(stdout(&["predict", "--model", &model, &unlabelled]), labels);
    assert_eq!(stdout(&["predict", "--model", &model, &unlabelled, "--unlabelled"]), labels);
}

#[test]
fn the_report_has_the_fields_of_the_contract() {
    let folder = folder(&[]);
    let model = at(&folder, "m.gib");
    let report = json(&stdout(&[PUMP, &["--model", &model, "--json"]].concat()));
    for field in
        ["objective", "log_likelihood", "violation", "iterations", "parameters", "nonzeros", "seconds"]
    {
        assert!(report[field].is_number(), "{field}: {report}");
    }
    assert_eq!(report["converged"], true);
    let trace = report["trace"].as_array().unwrap();
    assert_eq!(trace.len() as u64, report["iterations"].as_u64().unwrap() + 1);
    assert!(trace.iter().all(|p| p["objective"].is_number() && p["violation"].is_number()));
    let fell = |w: &[serde_json::Value]| w[1]["objective"].as_f64() <= w[0]["objective"].as_f64();
    assert!(trace.windows(2).all(fell));
    // The objective is the negative log-likelihood and half the squares of the weights.
    let (objective, log_likelihood) =
        (report["objective"].as_f64().unwrap(), report["log_likelihood"].as_f64().unwrap());
    assert!(log_likelihood < 0.0 && -log_likelihood < objective);
    let target = json(&stdout(
        &[PUMP, &["--model", &model, "--json", "--target-objective", "60", "--tolerance", "0"]].concat(),
    ));
    let reached = target["objective"].as_f64().unwrap();
    assert!(reached <= 60.0 && reached > objective && target["converged"] == true);
}

#[test]
fn threads_do_not_change_a_bit() {
    let (_a, one) = pump(&["--threads", "1"]);
    let (_b, two) = pump(&["--threads", "2"]);
    assert!(fs::read(one).unwrap() == fs::read(two).unwrap());
}

#[test]
fn streamed_data_gives_the_same_model() {
    let (_a, whole) = pump(&[]);
    let (streamed_folder, streamed) = pump(&["--stream", "--holdout", "pump.test.txt", "--quiet"]);
    assert!(fs::read(whole).unwrap() == fs::read(streamed).unwrap());
    // The temporary file is gone.
    assert_eq!(super::listing(streamed_folder.path()), ["m.gib"]);
    // Also without rare attributes.
    let (_a, whole) = pump(&["--min-count", "3", "--quiet"]);
    let (_b, streamed) = pump(&["--min-count", "3", "--stream", "--quiet"]);
    assert!(fs::read(whole).unwrap() == fs::read(streamed).unwrap());
    for more in [&["--cv", "3"][..], &["--solver", "sgd"]] {
        let run = run(&[PUMP, &["--model", "m.gib", "--stream"], more].concat());
        assert_eq!(run.code, 2, "{more:?}: {}", run.stderr);
        assert!(run.stderr.contains("not with --stream"), "{more:?}: {}", run.stderr);
    }
}

#[test]
fn stochastic_gradients() {
    let folder = folder(&[]);
    let model = at(&folder, "m.gib");
    let sgd = ["--model", &model, "--solver", "sgd", "--json"];
    let best = json(&stdout(&[PUMP, &["--model", &model, "--json"]].concat()))["objective"].as_f64().unwrap();
    // Near the optimum, but not as near as the tolerance asks, and that is what it says.
    let early = run(&[PUMP, &sgd].concat());
    assert_eq!(early.code, 3, "{}", early.stderr);
    assert!(early.stderr.contains("hardly falls any more"), "{}", early.stderr);
    let report = json(&early.stdout);
    assert_eq!(report["converged"], false);
    assert!((1.0..1.01).contains(&(report["objective"].as_f64().unwrap() / best)), "{report}");
    let score = json(&stdout(&["eval", "--model", &model, "pump.test.txt", "--json"]));
    assert!(score["item_accuracy"].as_f64().unwrap() > 0.95);
    let met = json(&stdout(&[PUMP, &sgd, &["--tolerance", "0.1"]].concat()));
    assert_eq!(met["converged"], true);
    for (more, said) in [
        (&["--l1", "1"][..], "cannot make weights 0"),
        (&["--l2", "0"], "needs --l2 above 0"),
        (&["--checkpoint", "c"], "not of sgd"),
    ] {
        let run = run(&[PUMP, &sgd, more].concat());
        assert_eq!(run.code, 2, "{more:?}: {}", run.stderr);
        assert!(run.stderr.contains(said), "{more:?}: {}", run.stderr);
    }
}

#[test]
fn l1_leaves_little() {
    let (_a, whole) = pump(&[]);
    let (_b, sparse) = pump(&["--l1", "1"]);
    let shown = |m: &str| json(&stdout(&["inspect", m, "--json"]));
    let count = |m: &str, field: &str| {
        let shown = shown(m);
        let value = if shown[field].is_null() { &shown["header"][field] } else { &shown[field] };
        value.as_u64().unwrap()
    };
    assert!(count(&sparse, "parameters") < count(&whole, "parameters") / 2);
    assert!(fs::metadata(&sparse).unwrap().len() < fs::metadata(&whole).unwrap().len());
    assert!(count(&sparse, "nonzeros") > 0);
    let score = json(&stdout(&["eval", "--model", &sparse, "pump.test.txt", "--json"]));
    assert!(score["item_accuracy"].as_f64().unwrap() > 0.9);
}

#[test]
fn a_run_can_be_resumed() {
    let folder = folder(&[]);
    let (model, state) = (at(&folder, "m.gib"), at(&folder, "m.ckpt"));
    let tight = ["--model", &model, "--tolerance", "1e-9", "--json"];
    let whole = json(&stdout(&[PUMP, &tight].concat()));
    let early = run(&[PUMP, &tight, &["--checkpoint", &state, "--max-iter", "5"]].concat());
    assert_eq!(early.code, 3);
    assert!(early.stderr.contains("limit on iterations"), "{}", early.stderr);
    assert_eq!(json(&early.stdout)["converged"], false);
    let later = json(&stdout(&[PUMP, &tight, &["--checkpoint", &state, "--resume"]].concat()));
    assert_eq!((&later["objective"], &later["iterations"]), (&whole["objective"], &whole["iterations"]));
    // A checkpoint of something else is refused, and the model stays.
    let before = fs::read(&model).unwrap();
    let other = at(&folder, "other.txt");
    fs::write(&other, "A\tx\nB\ty\n").unwrap();
    let wrong = run(&[
        "train",
        "--format",
        "crfsuite",
        &other,
        "--model",
        &model,
        "--checkpoint",
        &state,
        "--resume",
    ]);
    assert_eq!(wrong.code, 1);
    assert!(wrong.stderr.contains("other data or options"), "{}", wrong.stderr);
    assert!(fs::read(&model).unwrap() == before);
}

#[test]
fn held_out_accuracy_after_each_iteration() {
    let folder = folder(&[]);
    let model = at(&folder, "m.gib");
    let run = run(&[PUMP, &["--model", &model, "--holdout", "pump.test.txt", "--json"]].concat());
    assert_eq!(run.code, 0);
    let report = json(&run.stdout);
    let trace = report["trace"].as_array().unwrap();
    assert_eq!(run.stderr.lines().filter(|l| l.contains("held-out accuracy")).count(), trace.len());
    assert!(trace.iter().all(|p| p["holdout_accuracy"].is_number()));
    assert!(report["holdout_accuracy"].as_f64().unwrap() > 0.95);
}

#[test]
fn marginals_and_the_best_few() {
    let (_folder, model) = pump(&[]);
    let both = stdout(&["predict", "--model", &model, "pump.test.txt", "--marginals"]);
    for line in both.lines().filter(|l| !l.is_empty()) {
        let mut fields = line.split('\t');
        let label = fields.next().unwrap();
        let all: Vec<(&str, f64)> =
            fields.map(|f| f.rsplit_once(':').map(|(l, p)| (l, p.parse().unwrap())).unwrap()).collect();
        assert_eq!(all.len(), 7);
        assert!((all.iter().map(|p| p.1).sum::<f64>() - 1.0).abs() < 1e-12);
        assert!(all.iter().any(|p| p.0 == label));
    }
    let best = stdout(&["predict", "--model", &model, "pump.test.txt", "--best", "3"]);
    let first = best.split("\n\n").step_by(3).map(|block| block.split_once('\n').unwrap().1.trim());
    let plain = stdout(&["predict", "--model", &model, "pump.test.txt"]);
    assert!(first.eq(plain.trim().split("\n\n")));
    let found = json(&stdout(&["predict", "--model", &model, "pump.test.txt", "--best", "3", "--json"]));
    for sequence in found["sequences"].as_array().unwrap() {
        let p: Vec<f64> =
            sequence["best"].as_array().unwrap().iter().map(|b| b["probability"].as_f64().unwrap()).collect();
        assert!(p.is_sorted_by(|a, b| a >= b) && p.iter().sum::<f64>() <= 1.0 + 1e-12);
    }
}

#[test]
fn what_decoding_must_respect() {
    let (folder, model) = pump(&[]);
    let data = at(&folder, "d.txt");
    // Nothing known about the words; the second label is given.
    fs::write(&data, "zzz XX ?\nzzz XX I-VP\nzzz XX {O|B-PP}\n").unwrap();
    let forced = stdout(&["predict", "--model", &model, &data, "--forced", "--scheme", "bio"]);
    let labels: Vec<&str> = forced.lines().collect();
    assert_eq!((labels[0], labels[1]), ("B-VP", "I-VP"));
    assert!(["O", "B-PP"].contains(&labels[2]));
    // Forbidden transitions and the scheme leave no way.
    let rules = at(&folder, "rules.txt");
    fs::write(&rules, "B-VP\tI-VP\n").unwrap();
    let none = run(&["predict", "--model", &model, &data, "--forced", "--scheme", "bio", "--forbid", &rules]);
    assert_eq!(none.code, 1);
    assert!(none.stderr.contains("sequence 1 has no possible labelling"), "{}", none.stderr);
    fs::write(&rules, "B-VP\tI-XX\n").unwrap();
    let unknown = run(&["predict", "--model", &model, &data, "--forbid", &rules]);
    assert!(unknown.stderr.contains("line 1: the model has no label `I-XX`"), "{}", unknown.stderr);
    let iobes = run(&["predict", "--model", &model, &data, "--scheme", "iobes"]);
    assert_eq!(iobes.code, 0, "{}", iobes.stderr);
}

#[test]
fn attributes_with_values_from_standard_input() {
    let folder = folder(&[]);
    let model = at(&folder, "m.gib");
    let text = "hot\ttemp:0.9\tbias\nhot\ttemp:0.8\tbias\n\ncold\ttemp:-0.7\tbias\ncold\ttemp:-0.9\tbias\n";
    let mut command = gibbsite(&["train", "--format", "crfsuite", "-", "--model", &model]);
    command.write_stdin(text);
    assert_eq!(finish(command).code, 0);
    let mut command = gibbsite(&["predict", "--model", &model, "-"]);
    command.write_stdin("?\ttemp:2\n?\ttemp:-2\tnever-seen\n");
    let found = finish(command);
    assert_eq!((found.code, found.stdout.as_str()), (0, "hot\ncold\n"));
}

#[test]
fn partial_labels_are_learned_from() {
    let folder = folder(&[("p.txt", "A\ta\n?\tb\n\nB\tb\n{A|B}\ta\n"), ("none.txt", "?\ta\n?\tb\n")]);
    let model = at(&folder, "m.gib");
    stdout(&["train", "--format", "crfsuite", &at(&folder, "p.txt"), "--model", &model]);
    let mut command = gibbsite(&["predict", "--model", &model, "-"]);
    command.write_stdin("?\ta\n?\tb\n");
    assert_eq!(finish(command).stdout, "A\nB\n");
    let none = run(&["train", "--format", "crfsuite", &at(&folder, "none.txt"), "--model", &model]);
    assert_eq!(none.code, 1);
    assert!(none.stderr.contains("no item has a known label"), "{}", none.stderr);
}

#[test]
fn labels_that_the_model_does_not_know_are_counted() {
    let (folder, model) = pump(&[]);
    let data = at(&folder, "d.txt");
    fs::write(&data, "the DT B-NP\npump NN I-NP\nstops VBZ B-NEW\n. . O\n").unwrap();
    let found = run(&["eval", "--model", &model, &data, "--json"]);
    assert_eq!(found.code, 0);
    assert!(found.stderr.contains("1 labels in the data are not the model's"), "{}", found.stderr);
    let score = json(&found.stdout);
    assert_eq!((score["items"].as_u64(), score["item_accuracy"].as_f64()), (Some(4), Some(0.75)));
    assert!(score["labels"].as_array().unwrap().iter().any(|l| l["label"] == "B-NEW" && l["support"] == 1));
}

/// Ends with code 1, says this, and leaves no model behind.
fn refused(args: &[&str], files: &[(&str, &str)], what: &str) {
    let folder = folder(files);
    let model = at(&folder, "m.gib");
    let paths: Vec<String> = args
        .iter()
        .map(|a| if files.iter().any(|f| f.0 == *a) { at(&folder, a) } else { (*a).to_owned() })
        .collect();
    let mut all: Vec<&str> = vec!["train", "--model", &model];
    all.extend(paths.iter().map(String::as_str));
    let found = run(&all);
    assert_eq!(found.code, 1, "{args:?}: {}", found.stderr);
    assert!(found.stderr.contains(what), "{args:?}: {}", found.stderr);
    assert!(!Path::new(&model).exists());
}

#[test]
fn bad_input_is_told_by_line() {
    let crfsuite = ["--format", "crfsuite", "d"];
    refused(&crfsuite, &[("d", "")], "d: ");
    refused(&crfsuite, &[("d", "A\tx\nB\ty:abc\n")], "line 2");
    refused(&crfsuite, &[("d", "A\tx:nan\n")], "line 1");
    refused(&crfsuite, &[("d", "A\tx:1e999\n")], "line 1");
    let columns = ["--format", "columns", "--template", "t", "d"];
    refused(&columns, &[("d", "a b X\na X\n"), ("t", "U0:%x[0,0]\n")], "line 2");
    refused(&columns, &[("d", "a b X\n"), ("t", "U0:%x[0,7]\n")], "7");
    refused(&columns, &[("d", "a b X\n"), ("t", "U0:%x[0\n")], "line 1");
    refused(
        &["--format", "crfsuite", "d", "--resume", "--checkpoint", "c"],
        &[("d", "A\tx\n"), ("c", "no")],
        "not a gibbsite model",
    );
}

#[test]
fn usage_is_told() {
    let folder = folder(&[("d", "A\tx\n")]);
    let (data, model) = (at(&folder, "d"), at(&folder, "m.gib"));
    for (more, what) in [
        (&["--format", "columns"][..], "needs --template"),
        (&["--format", "crfsuite", "--template", "pump.tpl"], "--template is for --format columns"),
        (&["--format", "crfsuite", "--l1", "-1"], "--l1"),
        (&["--format", "crfsuite", "--l2", "nan"], "--l2"),
        (&["--format", "crfsuite", "--solver", "owlqn"], "owlqn"),
        (&["--format", "crfsuite", "--resume"], "--checkpoint"),
    ] {
        let found = run(&[&["train", &data, "--model", &model], more].concat());
        assert_eq!(found.code, 2, "{more:?}: {}", found.stderr);
        assert!(found.stderr.contains(what), "{more:?}: {}", found.stderr);
    }
}

#[test]
fn one_label_and_a_model_of_another_kind() {
    let folder = folder(&[("d", "A\tx\nA\ty\n")]);
    let (data, model) = (at(&folder, "d"), at(&folder, "m.gib"));
    let found = run(&["train", "--format", "crfsuite", &data, "--model", &model]);
    assert_eq!(found.code, 0);
    assert!(found.stderr.contains("all items have the same label"), "{}", found.stderr);
    let wrong = run(&["predict", "--model", &model, "--format", "svmlight", "spam.svm"]);
    assert_eq!(wrong.code, 1);
    assert!(wrong.stderr.contains("the model labels sequences"), "{}", wrong.stderr);
    let wrong = run(&["predict", "--model", "spam.gib", "--format", "crfsuite", &data]);
    assert_eq!(wrong.code, 1, "{}", wrong.stderr);
}

#[test]
fn a_model_that_cannot_be_written_leaves_the_old_one() {
    let (_folder, model) = pump(&[]);
    let before = fs::read(&model).unwrap();
    let found = run(&[PUMP, &["--model", "/nonexistent/folder/m.gib"]].concat());
    assert_eq!(found.code, 1);
    assert!(found.stderr.contains("there is no folder"), "{}", found.stderr);
    // A device that is always full.
    let full = run(&[PUMP, &["--model", "/dev/full"]].concat());
    assert_eq!(full.code, 1);
    assert!(full.stderr.contains("/dev/full: cannot write"), "{}", full.stderr);
    assert!(fs::read(&model).unwrap() == before);
}

#[test]
fn models_of_other_programs() {
    let folder = folder(&[("bad", "no model")]);
    let (model, bad) = (at(&folder, "m.gib"), at(&folder, "bad"));
    let other = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/pump.crfsuite");
    let said = stdout(&["import", &other.display().to_string(), "--model", &model]);
    assert!(said.starts_with("CRFsuite model: 3 labels"), "{said}");
    let mut command = gibbsite(&["predict", "--model", &model, "-"]);
    command.write_stdin("?\tw=the\n?\tw=pump\n?\tw=stops\n");
    assert_eq!(finish(command).stdout, "D\nN\nV\n");
    let wrong = run(&["import", &bad, "--model", &model]);
    assert_eq!(wrong.code, 1);
    assert!(wrong.stderr.contains("neither a CRFsuite model nor a CRF++ text model"), "{}", wrong.stderr);
}

#[test]
fn a_template_without_transitions_labels_items_one_by_one() {
    let folder = folder(&[("t", "U0:%x[0,0]\n"), ("d", "a X\nb Y\na X\n")]);
    let model = at(&folder, "m.gib");
    let (data, template) = (at(&folder, "d"), at(&folder, "t"));
    let args = ["train", "--format", "columns", "--template", &template, &data, "--model", &model, "--json"];
    assert_eq!(json(&stdout(&args))["parameters"], 2);
    let all = json(&stdout(&[&args[..], &["--all-transitions"]].concat()));
    assert_eq!(all["parameters"], 2 + 4);
}

#[test]
fn pseudolikelihood_and_as_a_start() {
    let (_a, pseudo) = pump(&["--estimator", "pseudo"]);
    let shown = json(&stdout(&["inspect", &pseudo, "--json"]));
    assert_eq!(shown["estimator"], "pseudo", "{shown}");
    let score = json(&stdout(&["eval", "--model", &pseudo, "pump.test.txt", "--json"]));
    assert!(score["item_accuracy"].as_f64().unwrap() > 0.9);
    let folder = folder(&[]);
    let model = at(&folder, "m.gib");
    let tight = [PUMP, &["--model", &model, "--tolerance", "1e-9", "--json"]].concat();
    let cold = json(&stdout(&tight));
    let warm = json(&stdout(&[&tight[..], &["--start", "pseudo"]].concat()));
    let (cold, warm_objective) = (cold["objective"].as_f64().unwrap(), warm["objective"].as_f64().unwrap());
    assert!((cold - warm_objective).abs() < 1e-8 * cold);
    let first = warm["trace"][0]["objective"].as_f64().unwrap();
    assert!(first < 3.0 * cold, "started at {first}, ended at {cold}");
}

#[test]
fn composite_likelihoods_and_draws() {
    let folder = folder(&[]);
    let model = at(&folder, "m.gib");
    let with = |more: &[&str]| json(&stdout(&[PUMP, &["--model", &model, "--json"], more].concat()));
    let whole = with(&[]);
    for (more, name) in [
        (&["--estimator", "composite", "--components", "k:3"][..], "composite (k:3)"),
        (&["--estimator", "composite", "--components", "pairs"], "composite (pairs)"),
        (&["--estimator", "piecewise"], "piecewise"),
    ] {
        let found = with(more);
        // Nothing has a higher likelihood, less its penalty, than its maximum.
        assert!(found["log_likelihood"].as_f64() < whole["log_likelihood"].as_f64().map(|l| l + 10.0));
        let shown = json(&stdout(&["inspect", &model, "--json"]));
        assert_eq!(shown["estimator"], name, "{shown}");
        let score = json(&stdout(&["eval", "--model", &model, "pump.test.txt", "--json"]));
        assert!(score["item_accuracy"].as_f64().unwrap() > 0.8, "{name}: {score}");
    }
    let tree = with(&["--estimator", "composite", "--components", "tree"]);
    assert_eq!(tree["objective"], whole["objective"]);
    let wrong =
        run(&[PUMP, &["--model", &model, "--estimator", "composite", "--components", "combs"]].concat());
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("k:K"), "{}", wrong.stderr);
    // As many items as there are, twice, with a blank line more.
    let labels = stdout(&["predict", "--model", &model, "pump.test.txt"]);
    let drawn = stdout(&["sample", "--model", &model, "pump.test.txt", "-n", "2", "--seed", "3"]);
    assert_eq!(drawn.lines().count(), 2 * labels.lines().count() + 1);
    assert_ne!(drawn, stdout(&["sample", "--model", &model, "pump.test.txt", "-n", "2", "--seed", "4"]));
    let without = run(&["sample", "--model", &model]);
    assert_eq!(without.code, 1);
    assert!(without.stderr.contains("give the data"), "{}", without.stderr);
}
