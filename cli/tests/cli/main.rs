//! The `gibbsite` binary as a user meets it: what it prints, what it writes, how it ends.
//!
//! Snapshots show numbers to ten digits and times not at all; see [`stable`] and [`json`]. To accept new ones:
//! `cargo insta review`, or edit them here.

mod analyze;
mod bad_input;
mod c_library;
mod examples;
mod export;
mod gaussian;
mod help;
mod infer;
mod input;
mod inspect;
mod output;
mod predict;
mod regress;
mod train;
mod train_cv;
mod train_table;
mod usage;

use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A run that has ended.
#[derive(Debug, PartialEq)]
struct Run {
    code: i32,
    stdout: String,
    stderr: String,
}

/// The command, in the folder of the examples.
fn gibbsite(args: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("gibbsite"));
    // The width of help pages, as nothing here is a terminal.
    command.current_dir(examples()).env("COLUMNS", "100").args(args);
    command
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")
}

fn finish(mut command: Command) -> Run {
    let output = command.output().unwrap();
    Run {
        code: output.status.code().expect("ended by a signal"),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn run(args: &[&str]) -> Run {
    finish(gibbsite(args))
}

/// Runs what is expected to end with code 0 and to say nothing on standard error.
fn stdout(args: &[&str]) -> String {
    let run = run(args);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{args:?}");
    run.stdout
}

/// A file of a folder, as an argument.
fn at(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).display().to_string()
}

/// A new folder with these files.
fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
}

/// Names of what is in a folder, sorted.
fn listing(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Numbers with a point to ten digits, and no sizes in MiB: what rounding and better planning may change is hidden.
fn stable(text: &str) -> String {
    let word = |i: usize, words: &[&str]| match words[i].parse::<f64>() {
        Ok(_) if words.get(i + 1).is_some_and(|next| next.starts_with("MiB")) => "…".into(),
        Ok(x) if words[i].contains('.') && !words[i].ends_with('.') => ten_digits(x).to_string(),
        _ => words[i].to_owned(),
    };
    let line = |line: &str| {
        let words: Vec<_> = line.split(' ').collect();
        (0..words.len()).map(|i| word(i, &words)).collect::<Vec<_>>().join(" ")
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

fn ten_digits(x: f64) -> f64 {
    if x.abs() < 1e-12 { 0.0 } else { format!("{x:.9e}").parse().unwrap() }
}

/// The one JSON object that a run printed.
fn json(stdout: &str) -> Value {
    assert!(stdout.ends_with("}\n") && stdout.lines().count() == 1, "not one line: {stdout}");
    serde_json::from_str(stdout).unwrap()
}

/// JSON for a snapshot: one field a line, numbers to ten digits, `…` for times and sizes of memory.
fn stable_json(stdout: &str) -> String {
    let Value::Object(fields) = json(stdout) else { panic!("no object: {stdout}") };
    let mut text = String::new();
    for (name, mut value) in fields {
        if name.contains("seconds") || name.contains("mebibytes") {
            assert!(value.is_number(), "{name}: {value}");
            value = "…".into();
        }
        round(&mut value);
        text += &format!("{name}: {value}\n");
    }
    text
}

fn round(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(round),
        Value::Object(fields) => fields.values_mut().for_each(round),
        Value::Number(n) if n.is_f64() => *value = ten_digits(n.as_f64().unwrap()).into(),
        _ => {}
    }
}
