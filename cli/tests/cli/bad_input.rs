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
    assert_snapshot!(messages, @r#"
    empty
      error: m.uai: line 1, end of file: the file is empty, expected the preamble MARKOV or BAYES
    only a comment
      error: m.uai: line 1, end of file: the file is empty, expected the preamble MARKOV or BAYES
    another preamble
      error: m.uai: line 1, token 1: found `LIMID`, expected the preamble MARKOV or BAYES
    not UAI at all
      error: m.uai: line 1, token 1: found `{"model":`, expected the preamble MARKOV or BAYES
    binary
      error: m.uai: line 1, token 1: found `\0\u{1}\u{2}`, expected the preamble MARKOV or BAYES
    truncated after the preamble
      error: m.uai: line 1, end of file: the file ends here, expected the number of variables
    truncated in the arities
      error: m.uai: line 3, end of file: the file ends here, expected the arity of variable 1
    truncated before the factors
      error: m.uai: line 3, end of file: the file ends here, expected the number of factors
    truncated in a scope
      error: m.uai: line 5, end of file: the file ends here, expected a variable of factor 0
    truncated before a table
      error: m.uai: line 5, end of file: the file ends here, expected the number of entries of factor 0
    truncated in a table
      error: m.uai: line 7, end of file: the file ends here, expected entry 4 of 4 of factor 0
    too few variables
      error: m.uai: line 6, token 1: factor 1 names variable 4, but the model has variables 0 to 2
    too many variables
      error: m.uai: line 5, token 1: factor 0 names variable 2, but the model has variables 0 to 0
    variables that are no count
      error: m.uai: line 2, token 1: found `2.0`, expected the number of variables, a whole number of at least 0
    too many factors
      error: m.uai: line 7, token 2: factor 1 names variable 2, but the model has variables 0 to 1
    a scope too long
      error: m.uai: line 6, token 1: factor 0 names variable 4, but the model has variables 0 to 1
    a table too short
      error: m.uai: line 6, token 1: the table of factor 0 announces 3 entries, expected 4, the product of its arities
    a table too long
      error: m.uai: line 6, token 1: the table of factor 0 announces 5 entries, expected 4, the product of its arities
    an entry too many
      error: m.uai: line 7, token 5: found `5` after the last table, expected the end of the file
    arity 0
      error: m.uai: line 3, token 2: variable 1 has arity 0, expected at least 1
    arity -2
      error: m.uai: line 3, token 2: found `-2`, expected the arity of variable 1, a whole number of at least 0
    variable -1
      error: m.uai: line 5, token 3: factor 0 names variable -1, but the model has variables 0 to 1
    variable n
      error: m.uai: line 5, token 3: factor 0 names variable 2, but the model has variables 0 to 1
    a variable twice
      error: m.uai: line 5, token 3: factor 0 names variable 1 twice
    a negative entry
      error: m.uai: line 7, token 2: found `-2`, expected entry 2 of 4 of factor 0, a finite number of at least 0
    NaN
      error: m.uai: line 7, token 3: found `NaN`, expected entry 3 of 4 of factor 0, a finite number of at least 0
    infinity
      error: m.uai: line 7, token 4: found `inf`, expected entry 4 of 4 of factor 0, a finite number of at least 0
    overflow
      error: m.uai: line 7, token 4: found `1e999`, expected entry 4 of 4 of factor 0, a finite number of at least 0
    a word
      error: m.uai: line 7, token 2: found `two`, expected entry 2 of 4 of factor 0, a finite number of at least 0
    a table of zeros
      error: m.uai: line 6, token 1: every entry of factor 0 is zero, expected at least one possible configuration
    a table beyond memory
      error: m.uai: line 6, token 1: with factor 0 the tables have more than 4294967295 entries
    "#);
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
    assert_snapshot!(messages, @r"
    no such file
      error: e.evid: cannot read it: there is no such file (`-` is standard input)
    a label outside the arity
      error: e.evid: line 2, token 2: variable 3 is observed as 2, but it has labels 0 to 1
    label -1
      error: e.evid: line 2, token 2: variable 3 is observed as -1, but it has labels 0 to 1
    variable n
      error: e.evid: line 2, token 1: the evidence names variable 4, but the model has variables 0 to 3
    variable -1
      error: e.evid: line 2, token 1: the evidence names variable -1, but the model has variables 0 to 3
    a pair too few
      error: e.evid: line 1, token 1: the evidence has 3 numbers, expected 5: the count 2, then a variable and a label each
    a number too many
      error: e.evid: line 1, token 1: the evidence has 4 numbers, expected `1 variable label`, or 1 (sample), a count and as many pairs
    a lone count
      error: e.evid: line 1, token 1: the evidence has 1 number, expected `1 variable label`, or 1 (sample), a count and as many pairs
    a word
      error: e.evid: line 2, token 2: found `wet`, expected a count, a variable or a label, a whole number of at least 0
    two samples
      error: e.evid: line 1, token 1: the file holds 2 evidence samples, expected 1
    a contradiction
      error: e.evid: line 2, token 4: variable 3 is observed as 0, but before as 1
    ");
}

#[test]
fn probability_zero() {
    // Wet grass without sprinkler and without rain.
    assert_snapshot!(evidence_fault("3  1 0  2 0  3 1"), @"error: e.evid: the evidence has probability zero (log Z = -inf): marginals and the best assignment are undefined");
    // No evidence: the model itself contradicts itself, in one table's reach or around a cycle.
    let alone = "MARKOV 1  2  2  1 0  1 0  2 1 0  2 0 1";
    let cycle = "MARKOV 3  2 2 2  3  2 0 1  2 1 2  2 0 2  4 1 0 0 1  4 1 0 0 1  4 0 1 1 0";
    let message = fault(&[("m.uai", alone)], &INFER);
    assert_snapshot!(message, @"error: m.uai: every configuration has probability zero (log Z = -inf): marginals and the best assignment are undefined");
    for method in ["junction", "brute"] {
        for task in ["pr", "mar", "map"] {
            let args = ["infer", "m.uai", "--task", task, "--method", method];
            assert_eq!(fault(&[("m.uai", cycle)], &args), message);
        }
    }
    let args = ["infer", "m.uai", "--task", "mar", "--method", "gibbs"];
    assert_snapshot!(fault(&[("m.uai", cycle)], &args), @"error: m.uai: the sampler found no configuration of positive probability to start from; use --method junction or bp");
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
    assert_snapshot!(stable(&fault(&[("m.uai", &complete(17))], &limited)), @"error: m.uai: exact inference needs … MiB of tables (treewidth at most 16, largest 2^17.0 entries), but --max-table-mib is 0.5; raise it, or use an approximate --method such as bp");
    let unlimited = [&INFER[..], &junction, &["--max-table-mib", "1e9"]].concat();
    assert_snapshot!(stable(&fault(&[("m.uai", &complete(60))], &unlimited)), @"error: m.uai: exact inference does not fit --max-table-mib 1000000000: every elimination order tried needs a table of 2^60.0 entries; use an approximate --method such as bp");
    assert_snapshot!(fault(&[("m.uai", &complete(30))], &[&INFER[..], &["--method", "brute"]].concat()), @"error: m.uai: --method brute would enumerate 2^30.0 configurations (at most 2^26 are allowed); use --method junction");
    assert_snapshot!(fault(&[("m.uai", "MARKOV 2  2000000000 2000000000  0")], &INFER), @"error: m.uai: the variables have 4000000000 labels in all: one number for each takes 30518 MiB, but the limit is 4096 MiB; raise --max-table-mib");
    assert_snapshot!(fault(&[("m.uai", &complete(3))], &[&INFER[..], &["--method", "tree"]].concat()), @"error: m.uai: --method tree needs a factor graph without cycles, but this one has some; use --method auto");
}
