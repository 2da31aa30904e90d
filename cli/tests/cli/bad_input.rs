//! Bad input: one line with the file, the place, what was found and what was expected; exit 1; no result.

use super::{finish, folder, gibbsite, listing, stable};
use insta::assert_snapshot;
use std::fmt::Write;

const INFER: [&str; 4] = ["infer", "m.uai", "--task", "mar"];

/// Runs in a folder with these files, without and with `--output`, and checks that one line is all that comes of it.
fn fault(files: &[(&str, &str)], args: &[&str]) -> String {
    let files: Vec<_> = files.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
    let folder = folder(&files);
    let before = listing(folder.path());
    let [printed, written] = [&[][..], &["--output", "out"]].map(|more| {
        let args = [args, more].concat();
        let mut command = gibbsite(&args);
        command.current_dir(folder.path());
        let run = finish(command);
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{args:?} {files:?} {}", run.stderr);
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
        assert_eq!(listing(folder.path()), before);
        run.stderr
    });
    assert_eq!(printed, written);
    printed
}

/// A file of evidence on sprinkler.uai.
fn evidence_fault(text: &str) -> String {
    let model = include_str!("../../examples/sprinkler.uai");
    fault(&[("m.uai", model), ("e.evid", text)], &[&INFER[..], &["--evidence", "e.evid"]].concat())
}

#[test]
fn models() {
    // Two binary variables and their table, with one fault each.
    let mut messages = String::new();
    for (what, text) in [
        ("empty", ""),
        ("only a comment", "# MARKOV\n"),
        ("another preamble", "LIMID\n2\n2 2\n"),
        ("not UAI at all", "{\"model\": 1}\n"),
        ("binary", "\0\u{1}\u{2}\n"),
        ("truncated after the preamble", "MARKOV\n"),
        ("truncated in the arities", "MARKOV\n2\n2\n"),
        ("truncated before the factors", "MARKOV\n2\n2 2\n"),
        ("truncated in a scope", "MARKOV\n2\n2 2\n1\n2 0\n"),
        ("truncated before a table", "MARKOV\n2\n2 2\n1\n2 0 1\n"),
        ("truncated in a table", "MARKOV\n2\n2 2\n1\n2 0 1\n4\n1 2 3\n"),
        ("too few variables", "MARKOV\n3\n2 2\n1\n2 0 1\n4\n1 2 3 4\n"),
        ("too many variables", "MARKOV\n1\n2 2\n1\n2 0 1\n4\n1 2 3 4\n"),
        ("variables that are no count", "MARKOV\n2.0\n2 2\n1\n2 0 1\n4\n1 2 3 4\n"),
        ("too many factors", "MARKOV\n2\n2 2\n2\n2 0 1\n4\n1 2 3 4\n"),
        ("a scope too long", "MARKOV\n2\n2 2\n1\n3 0 1\n4\n1 2 3 4\n"),
        ("a table too short", "MARKOV\n2\n2 2\n1\n2 0 1\n3\n1 2 3\n"),
        ("a table too long", "MARKOV\n2\n2 2\n1\n2 0 1\n5\n1 2 3 4 5\n"),
        ("an entry too many", "MARKOV\n2\n2 2\n1\n2 0 1\n4\n1 2 3 4 5\n"),
        ("arity 0", "MARKOV\n2\n2 0\n1\n2 0 1\n4\n1 2 3 4\n"),
        ("arity -2", "MARKOV\n2\n2 -2\n1\n2 0 1\n4\n1 2 3 4\n"),
        ("variable -1", "MARKOV\n2\n2 2\n1\n2 0 -1\n4\n1 2 3 4\n"),
        ("variable n", "MARKOV\n2\n2 2\n1\n2 0 2\n4\n1 2 3 4\n"),
        ("a variable twice", "MARKOV\n2\n2 2\n1\n2 1 1\n4\n1 2 3 4\n"),
        ("a negative entry", "MARKOV\n2\n2 2\n1\n2 0 1\n4\n1 -2 3 4\n"),
        ("NaN", "MARKOV\r\n2\r\n2 2\r\n1\r\n2 0 1\r\n4\r\n1 2 NaN 4\r\n"),
        ("infinity", "MARKOV\n2\n2 2\n1\n2 0 1\n4\n1 2 3 inf\n"),
        ("overflow", "MARKOV\n2\n2 2\n1\n2 0 1\n4\n1 2 3 1e999\n"),
        ("a word", "MARKOV\n2\n2 2\n1\n2 0 1\n4\n1 two 3 4\n"),
        ("a table of zeros", "MARKOV\n2\n2 2\n1\n2 0 1\n4\n0 0.0 0e0 0\n"),
        ("a table beyond memory", "MARKOV\n2\n65536 65536\n1\n2 0 1\n4\n0 0 0 0\n"),
    ] {
        let message = fault(&[("m.uai", text)], &INFER);
        assert!(message.starts_with("error: m.uai: line "), "{message}");
        assert_eq!(message, fault(&[("m.uai", text)], &["inspect", "m.uai"]));
        let _ = write!(messages, "{what}\n  {message}");
    }
    assert_snapshot!(messages, @"");
}

#[test]
fn evidence() {
    let mut messages = String::new();
    for (what, text) in [
        ("no such file", None),
        ("a label outside the arity", Some("1\n3 2\n")),
        ("label -1", Some("1\n3 -1\n")),
        ("variable n", Some("1\n4 0\n")),
        ("variable -1", Some("1\n-1 0\n")),
        ("a pair too few", Some("2\n3 1\n")),
        ("a number too many", Some("1\n3 1 1\n")),
        ("a lone count", Some("1\n")),
        ("a word", Some("1\n3 wet\n")),
        ("two samples", Some("2\n1 3 1\n1 3 0\n")),
        ("a contradiction", Some("2\n3 1 3 0\n")),
    ] {
        let message = match text {
            Some(text) => evidence_fault(text),
            None => {
                let model = include_str!("../../examples/sprinkler.uai");
                fault(&[("m.uai", model)], &[&INFER[..], &["--evidence", "e.evid"]].concat())
            }
        };
        assert!(message.starts_with("error: e.evid: "), "{message}");
        let _ = write!(messages, "{what}\n  {message}");
    }
    assert_snapshot!(messages, @"");
}

#[test]
fn probability_zero() {
    // Wet grass without sprinkler and without rain.
    assert_snapshot!(evidence_fault("3  1 0  2 0  3 1"), @"");
    // No evidence: the model itself contradicts itself, in one table's reach or around a cycle.
    let alone = "MARKOV 1  2  2  1 0  1 0  2 1 0  2 0 1";
    let cycle = "MARKOV 3  2 2 2  3  2 0 1  2 1 2  2 0 2  4 1 0 0 1  4 1 0 0 1  4 0 1 1 0";
    let message = fault(&[("m.uai", alone)], &INFER);
    assert_snapshot!(message, @"");
    for method in ["junction", "brute"] {
        for task in ["pr", "mar", "map"] {
            let args = ["infer", "m.uai", "--task", task, "--method", method];
            assert_eq!(fault(&[("m.uai", cycle)], &args), message);
        }
    }
    let args = ["infer", "m.uai", "--task", "mar", "--method", "gibbs"];
    assert_snapshot!(fault(&[("m.uai", cycle)], &args), @"");
}

/// Every two of `n` binary variables share a factor.
fn complete(n: usize) -> String {
    let pairs: Vec<_> = (0..n).flat_map(|u| (0..u).map(move |v| (u, v))).collect();
    let mut text = format!("MARKOV\n{n}\n{}\n{}\n", "2 ".repeat(n), pairs.len());
    for (u, v) in &pairs {
        let _ = writeln!(text, "2 {u} {v}");
    }
    text + &"4 2 1 1 2\n".repeat(pairs.len())
}

#[test]
fn too_wide() {
    let junction = ["--method", "junction"];
    let limited = [&INFER[..], &junction, &["--max-table-mib", "0.5"]].concat();
    assert_snapshot!(stable(&fault(&[("m.uai", &complete(17))], &limited)), @"");
    let unlimited = [&INFER[..], &junction, &["--max-table-mib", "1e9"]].concat();
    assert_snapshot!(stable(&fault(&[("m.uai", &complete(60))], &unlimited)), @"");
    assert_snapshot!(fault(&[("m.uai", &complete(30))], &[&INFER[..], &["--method", "brute"]].concat()), @"");
    assert_snapshot!(fault(&[("m.uai", "MARKOV 2  2000000000 2000000000  0")], &INFER), @"");
    assert_snapshot!(fault(&[("m.uai", &complete(3))], &[&INFER[..], &["--method", "tree"]].concat()), @"");
}
