//! `gibbsite infer`: answers, their formats, approximations, threads.

use super::{finish, folder, gibbsite, json, run, stable, stable_json, stdout};
use insta::assert_snapshot;
use serde_json::Value;

const STUDENT: [&str; 4] = ["infer", "student.uai", "--evidence", "student.evid"];
const SPRINKLER: [&str; 4] = ["infer", "sprinkler.uai", "--evidence", "sprinkler.evid"];

fn with<'a>(args: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [args, more].concat()
}

fn numbers(value: &Value) -> Vec<f64> {
    value
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|v| v.as_array().unwrap())
        .map(|v| v.as_f64().unwrap())
        .collect()
}

fn assert_near(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-12, "{a} {b}");
}

#[test]
fn text() {
    let answer = |task| stable(&stdout(&with(&STUDENT, &["--task", task])));
    assert_snapshot!(answer("pr"), @r"
    PR
    5.218908198
    ");
    assert_snapshot!(answer("mar"), @r"
    MAR
    6 2 0 1 2 0.4364692948 0.5635307052 2 0.7545154704 0.2454845296 2 0.8585857366 0.1414142634 2 0.3433328098 0.6566671902 2 0.2327747641 0.7672252359
    ");
    assert_snapshot!(answer("map"), @r"
    MAP
    6 1 1 0 0 1 1
    ");
}

#[test]
fn json_fields() {
    let answer = |task| stable_json(&stdout(&with(&STUDENT, &["--task", task, "--json"])));
    assert_snapshot!(answer("pr"), @r#"
    task: "pr"
    method: "junction"
    exact: true
    converged: true
    log_z: 12.01698022
    marginals: null
    assignment: null
    log_potential: null
    treewidth: 2
    notes: []
    seconds: "…"
    read_seconds: "…"
    "#);
    assert_snapshot!(answer("mar"), @r#"
    task: "mar"
    method: "junction"
    exact: true
    converged: true
    log_z: 12.01698022
    marginals: [[0.0,1.0],[0.4364692948,0.5635307052],[0.7545154704,0.2454845296],[0.8585857366,0.1414142634],[0.3433328098,0.6566671902],[0.2327747641,0.7672252359]]
    assignment: null
    log_potential: null
    treewidth: 2
    notes: []
    seconds: "…"
    read_seconds: "…"
    "#);
    assert_snapshot!(answer("map"), @r#"
    task: "map"
    method: "junction"
    exact: true
    converged: true
    log_z: null
    marginals: null
    assignment: [1,1,0,0,1,1]
    log_potential: 10.72238594
    treewidth: 2
    notes: []
    seconds: "…"
    read_seconds: "…"
    "#);
}

/// The names that scripts rely on (CLI.md).
#[test]
fn json_has_the_contracts_fields() {
    let fields = [
        "task",
        "method",
        "exact",
        "log_z",
        "marginals",
        "assignment",
        "log_potential",
        "treewidth",
        "seconds",
    ];
    for method in ["auto", "junction", "bp", "brute"] {
        for task in ["pr", "mar", "map"] {
            let answer =
                json(&run(&["infer", "student.uai", "--task", task, "--method", method, "--json"]).stdout);
            for field in fields {
                assert!(answer.get(field).is_some(), "{task} {method}: no {field} in {answer}");
            }
            assert_eq!(answer["task"], task);
            let name = if method == "auto" { "junction" } else { method };
            assert_eq!(answer["method"], name);
            assert_eq!(answer["exact"], method != "bp");
            assert_eq!(answer["log_z"].is_number(), task != "map");
            assert_eq!(answer["marginals"].is_array(), task == "mar");
            assert_eq!(answer["assignment"].is_array(), task == "map");
            assert_eq!(answer["log_potential"].is_number(), task == "map");
        }
    }
}

/// Worked out by hand from the tables: with the grass wet,
/// not cloudy 1/2 (0.099 + 0.36 + 0.09) = 0.2745, cloudy 1/2 (0.0792 + 0.018 + 0.648) = 0.3726,
/// in which (sprinkler, rain) are (1, 1), (1, 0), (0, 1); (0, 0) leaves it dry.
#[test]
fn the_sprinkler_agrees_with_pencil_and_paper() {
    const WET: f64 = 0.2745 + 0.3726;
    const CLOUDY: f64 = 0.3726 / WET;
    const SPRINKLER_ON: f64 = 0.5 * (0.099 + 0.36 + 0.0792 + 0.018) / WET;
    const RAIN: f64 = 0.5 * (0.099 + 0.09 + 0.0792 + 0.648) / WET;
    for method in ["auto", "junction", "brute"] {
        let answer = |task| stdout(&with(&SPRINKLER, &["--task", task, "--method", method]));
        let log10_wet = answer("pr").strip_prefix("PR\n").unwrap().trim().parse().unwrap();
        assert_near(log10_wet, WET.log10());

        let text = answer("mar");
        let mut words = text.split_whitespace();
        assert_eq!((words.next(), words.next()), (Some("MAR"), Some("4")));
        for yes in [CLOUDY, SPRINKLER_ON, RAIN, 1.0] {
            assert_eq!(words.next(), Some("2"));
            assert_near(words.next().unwrap().parse().unwrap(), 1.0 - yes);
            assert_near(words.next().unwrap().parse().unwrap(), yes);
        }
        assert_eq!(words.next(), None);

        // 1/2 · 0.9 · 0.8 · 0.9 is the largest: cloudy, no sprinkler, rain.
        assert_eq!(answer("map"), "MAP\n4 1 0 1 1\n");
        let best = json(&stdout(&with(&SPRINKLER, &["--task", "map", "--method", method, "--json"])));
        assert_near(best["log_potential"].as_f64().unwrap(), 0.324f64.ln());
    }
    let all = json(&stdout(&["infer", "sprinkler.uai", "--task", "mar", "--json"]));
    assert_near(all["log_z"].as_f64().unwrap(), 0.0);
    let expected = [0.5, 0.5, 0.7, 0.3, 0.5, 0.5, 1.0 - WET, WET];
    numbers(&all["marginals"]).iter().zip(expected).for_each(|(&a, b)| assert_near(a, b));
}

/// Z counted by a separate program: integers, so exact.
#[test]
fn the_student_agrees_with_counting() {
    for (evidence, z) in [("", 400_140.0f64), ("1 0 1", 165_542.0), ("2 0 1 1 1", 93_288.0)] {
        let mut command = gibbsite(&["infer", "student.uai", "--evidence", "-", "--task", "pr", "--json"]);
        command.write_stdin(evidence);
        assert_near(json(&finish(command).stdout)["log_z"].as_f64().unwrap(), z.ln());
    }
}

#[test]
fn bounds_and_samples_say_what_they_are() {
    let answer = run(&["infer", "student.uai", "--task", "pr", "--method", "trw", "--json"]);
    assert_eq!((answer.code, answer.stderr.as_str()), (0, "warning: log Z is an upper bound\n"));
    let bound = json(&answer.stdout);
    assert_eq!(bound["exact"], false);
    assert!(bound["log_z"].as_f64().unwrap() >= 400_140f64.ln());

    let args = ["infer", "student.uai", "--task", "mar", "--method", "gibbs", "--json"];
    let samples = run(&args);
    assert_eq!(samples.code, 0);
    assert!(
        samples.stderr.starts_with("warning: marginals are averages over 10000 sweeps"),
        "{}",
        samples.stderr
    );
    assert_eq!(json(&samples.stdout)["exact"], false);
    let marginals = |args: &[&str]| json(&run(args).stdout)["marginals"].clone();
    assert_eq!(marginals(&args), marginals(&with(&args, &["--seed", "0"])));
    assert_ne!(marginals(&args), marginals(&with(&args, &["--seed", "1"])));
}

/// Belief propagation that was stopped early: exit 3, and its result all the same.
#[test]
fn unconverged_results_are_written_and_marked() {
    let args = ["infer", "student.uai", "--task", "mar", "--method", "bp", "--max-iter", "1"];
    let stopped = run(&args);
    assert_eq!(stopped.code, 3);
    assert!(stopped.stdout.starts_with("MAR\n6 2 0."), "{}", stopped.stdout);
    assert!(stopped.stderr.starts_with("warning: belief propagation did not converge"), "{}", stopped.stderr);

    let stopped = run(&with(&args, &["--json", "--quiet"]));
    assert_eq!((stopped.code, stopped.stderr.as_str()), (3, ""));
    let answer = json(&stopped.stdout);
    assert_eq!((&answer["converged"], &answer["exact"]), (&false.into(), &false.into()));
    assert!(answer["notes"][0].as_str().unwrap().contains("did not converge"));

    let folder = folder(&[]);
    let out = folder.path().join("out.txt");
    let stopped = run(&with(&args, &["--output", out.to_str().unwrap()]));
    assert_eq!((stopped.code, stopped.stdout.as_str()), (3, ""));
    assert!(std::fs::read_to_string(out).unwrap().starts_with("MAR\n6 "));
}

/// `auto` takes belief propagation when tables do not fit, and says so; `--quiet` silences that.
#[test]
fn auto_falls_back_with_a_warning() {
    let args = ["infer", "student.uai", "--task", "mar", "--max-table-mib", "0"];
    let answer = run(&args);
    assert_eq!(answer.code, 0);
    assert_snapshot!(stable(&answer.stderr), @"warning: exact inference needs … MiB of tables (treewidth at most 2, largest 2^3.0 entries), but --max-table-mib is 0. The answer is approximate, by belief propagation");
    let quiet = run(&with(&args, &["--quiet"]));
    assert_eq!((quiet.code, quiet.stderr.as_str(), quiet.stdout), (0, "", answer.stdout));
    let fields = json(&run(&with(&args, &["--json"])).stdout);
    assert_eq!((&fields["exact"], &fields["method"]), (&false.into(), &"bp".into()));
}

#[test]
fn verbose_tells_on_standard_error() {
    let told = run(&with(&STUDENT, &["--task", "map", "-v"]));
    assert_eq!((told.code, told.stdout.as_str()), (0, "MAP\n6 1 1 0 0 1 1\n"));
    let lines: Vec<_> = told.stderr.lines().collect();
    let [read, done] = lines[..] else { panic!("{lines:?}") };
    assert!(read.starts_with("read 6 variables, 7 factors, 1 observations in "), "{read}");
    assert!(done.starts_with("junction in ") && done.ends_with(", treewidth at most 2"), "{done}");
}

/// A grid of `side` × `side` variables with arities 2 and 3 and potentials from a small generator.
fn grid(side: usize, copies: usize) -> String {
    let cell = |c: usize, i: usize, j: usize| (c * side + i) * side + j;
    let arity = |v: usize| 2 + v % 3 % 2;
    let mut edges = Vec::new();
    for c in 0..copies {
        for i in 0..side {
            for j in 0..side {
                edges.extend((i + 1 < side).then(|| (cell(c, i, j), cell(c, i + 1, j))));
                edges.extend((j + 1 < side).then(|| (cell(c, i, j), cell(c, i, j + 1))));
            }
        }
    }
    let n = copies * side * side;
    let arities: Vec<_> = (0..n).map(|v| arity(v).to_string()).collect();
    let mut text = format!("MARKOV\n{n}\n{}\n{}\n", arities.join(" "), edges.len());
    for (u, v) in &edges {
        text += &format!("2 {u} {v}\n");
    }
    let mut state = 1u32;
    for (u, v) in &edges {
        let entries = arity(*u) * arity(*v);
        text += &format!("{entries}");
        for _ in 0..entries {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            text += &format!(" {}", 0.1 + f64::from(state >> 8) / f64::from(1 << 24));
        }
        text += "\n";
    }
    text
}

#[test]
fn threads_do_not_change_a_bit() {
    let folder = folder(&[("grids.uai", grid(8, 6).as_bytes())]);
    let model = folder.path().join("grids.uai");
    for (task, method) in [("pr", "auto"), ("mar", "auto"), ("map", "auto"), ("mar", "bp"), ("mar", "gibbs")]
    {
        let on = |threads| {
            let mut args = vec!["infer", model.to_str().unwrap(), "--task", task, "--method", method];
            args.extend(["--sweeps", "50", "--quiet", "--threads", threads]);
            run(&args)
        };
        let one = on("1");
        assert_eq!(one.code, 0, "{}", one.stderr);
        assert_eq!(one, on("2"), "{task} {method}");
    }
}

#[test]
fn no_variables_and_no_factors_are_a_model() {
    let answer = |model: &str, task| {
        let mut command = gibbsite(&["infer", "-", "--task", task]);
        command.write_stdin(model);
        let run = finish(command);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""));
        run.stdout
    };
    assert_eq!(answer("MARKOV 0 0", "pr"), "PR\n0\n");
    assert_eq!(answer("MARKOV 0 0", "mar"), "MAR\n0\n");
    assert_eq!(answer("MARKOV 0 0", "map"), "MAP\n0\n");
    assert_eq!(stable(&answer("MARKOV 2 1 4 0", "mar")), "MAR\n2 1 1 4 0.25 0.25 0.25 0.25\n");
    assert_eq!(answer("MARKOV 1 2 1  0  1 100", "map"), "MAP\n1 0\n");
}
