//! Where models come from: files, standard input, compressed or not.

use super::{Run, finish, folder, gibbsite, run, stdout};
use flate2::{Compression, write::GzEncoder};
use std::fs;
use std::io::Write;

const TASK: [&str; 2] = ["--task", "mar"];

fn student() -> Vec<u8> {
    fs::read(super::examples().join("student.uai")).unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn expected() -> String {
    stdout(&[&["infer", "student.uai"][..], &TASK].concat())
}

fn from_stdin(args: &[&str], bytes: Vec<u8>) -> Run {
    let mut command = gibbsite(args);
    command.write_stdin(bytes);
    finish(command)
}

#[test]
fn packed_files_are_read_as_they_are() {
    let zstd = zstd::encode_all(student().as_slice(), 0).unwrap();
    let folder = folder(&[
        ("student.uai.gz", &gzip(&student())),
        ("student.uai.zst", &zstd),
        // The content counts, not the name.
        ("gz.uai", &gzip(&student())),
        ("plain.uai.gz", &student()),
    ]);
    for name in super::listing(folder.path()) {
        let path = folder.path().join(name);
        assert_eq!(stdout(&[&["infer", path.to_str().unwrap()][..], &TASK].concat()), expected(), "{path:?}");
    }
}

#[test]
fn a_dash_is_standard_input() {
    let zstd = zstd::encode_all(student().as_slice(), 0).unwrap();
    for bytes in [student(), gzip(&student()), zstd] {
        let run = from_stdin(&[&["infer", "-"][..], &TASK].concat(), bytes);
        assert_eq!(run, Run { code: 0, stdout: expected(), stderr: String::new() });
    }
    let args = ["infer", "student.uai", "--evidence", "-", "--task", "map"];
    assert_eq!(from_stdin(&args, b"1 0 1".to_vec()).stdout, "MAP\n6 1 1 0 0 1 1\n");
    assert_eq!(from_stdin(&args, gzip(b"1\n1 0 1\n")).stdout, "MAP\n6 1 1 0 0 1 1\n");
    assert_eq!(from_stdin(&["inspect", "-"], student()).stdout, stdout(&["inspect", "student.uai"]));
}

#[test]
fn standard_input_is_named_in_messages() {
    let run = from_stdin(&["infer", "-", "--task", "pr"], b"MARKOV 1 x".to_vec());
    assert_eq!(
        (run.code, run.stdout.as_str(), run.stderr.as_str()),
        (
            1,
            "",
            "error: stdin: line 1, token 3: found `x`, expected the arity of variable 0, \
             a whole number of at least 0\n"
        )
    );
}

#[test]
fn what_cannot_be_read_is_told_once() {
    let whole = gzip(&student().repeat(20));
    let folder = folder(&[("cut.uai.gz", &whole[..whole.len() / 2])]);
    let cut = folder.path().join("cut.uai.gz");
    for (model, message) in [
        ("no.uai", "no.uai: cannot read it: there is no such file (`-` is standard input)\n"),
        (".", ".: cannot read it: it is a folder, expected a file\n"),
    ] {
        let run = run(&["infer", model, "--task", "pr"]);
        assert_eq!((run.code, run.stdout.as_str()), (1, ""));
        assert_eq!(run.stderr, format!("error: {message}"));
    }
    let run = run(&["infer", cut.to_str().unwrap(), "--task", "pr"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    let start = format!("error: {}: a damaged or truncated gzip file: ", cut.display());
    assert!(run.stderr.starts_with(&start), "{}", run.stderr);
}
