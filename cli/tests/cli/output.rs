//! Where results go.

use super::{examples, folder, gibbsite, listing, run, stdout};
use std::fs;
use std::io::Write;
use std::process::Stdio;

const MAP: [&str; 6] = ["infer", "student.uai", "--evidence", "student.evid", "--task", "map"];
const ANSWER: &str = "MAP\n6 1 1 0 0 1 1\n";

fn map_to(out: &std::path::Path) -> super::Run {
    run(&[&MAP[..], &["--output", out.to_str().unwrap()]].concat())
}

#[test]
fn a_file_is_written_or_replaced_and_nothing_else() {
    let folder = folder(&[]);
    let out = folder.path().join("answer.txt");
    for _ in 0..2 {
        let run = map_to(&out);
        assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (0, "", ""));
        assert_eq!(fs::read_to_string(&out).unwrap(), ANSWER);
        assert_eq!(listing(folder.path()), ["answer.txt"]);
        fs::write(&out, "something longer that was here before, and must be gone afterwards").unwrap();
    }
    assert_eq!(stdout(&[&MAP[..], &["-o", "-"]].concat()), ANSWER);
    assert!(!examples().join("-").exists());
    let run = run(&["inspect", "student.uai", "--json", "-o", out.to_str().unwrap()]);
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (0, "", ""));
    assert!(fs::read_to_string(&out).unwrap().starts_with("{\"kind\":\"uai\""));
}

#[test]
fn an_error_leaves_the_old_file() {
    let folder = folder(&[("zero.evid", b"3 1 0 2 0 3 1"), ("answer.txt", b"old")]);
    let [evidence, out] = ["zero.evid", "answer.txt"].map(|n| folder.path().join(n));
    let mut args = vec!["infer", "sprinkler.uai", "--task", "mar"];
    args.extend(["--evidence", evidence.to_str().unwrap(), "--output", out.to_str().unwrap()]);
    assert_eq!(run(&args).code, 1);
    assert_eq!(fs::read_to_string(&out).unwrap(), "old");
    assert_eq!(listing(folder.path()), ["answer.txt", "zero.evid"]);
}

#[test]
fn places_that_cannot_be_written_are_told_first() {
    let folder = folder(&[]);
    let place = folder.path().display();
    let missing = map_to(&folder.path().join("no/answer.txt"));
    let expected = format!("error: {place}/no/answer.txt: cannot write: there is no folder {place}/no\n");
    assert_eq!((missing.code, missing.stderr), (1, expected));
    let is_folder = map_to(folder.path());
    let expected = format!("error: {place}: cannot write: it is a folder, expected a file\n");
    assert_eq!((is_folder.code, is_folder.stderr), (1, expected));
    assert_eq!(listing(folder.path()), [""; 0]);
}

#[cfg(unix)]
#[test]
fn modes_and_links_are_kept() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = folder(&[("private.txt", b"old")]);
    let [file, link, fresh] = ["private.txt", "link.txt", "fresh.txt"].map(|n| folder.path().join(n));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    symlink("private.txt", &link).unwrap();
    assert_eq!(map_to(&link).code, 0);
    assert!(link.is_symlink());
    assert_eq!(fs::read_to_string(&file).unwrap(), ANSWER);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    // As the shell would make it, and not private as temporary files are.
    assert_eq!(map_to(&fresh).code, 0);
    let usual = folder.path().join("usual.txt");
    fs::write(&usual, "").unwrap();
    assert_eq!(fs::metadata(&fresh).unwrap().permissions(), fs::metadata(&usual).unwrap().permissions());
}

/// Renaming a file over a device would destroy it.
#[cfg(unix)]
#[test]
fn what_is_no_file_is_not_replaced() {
    use std::os::unix::fs::FileTypeExt;
    let folder = folder(&[]);
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read_to_string(pipe).unwrap()
    });
    assert_eq!(map_to(&pipe).code, 0);
    assert_eq!(reader.join().unwrap(), ANSWER);
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
    assert_eq!(listing(folder.path()), ["pipe"]);
}

fn spawned(args: &[&str], stdout: Stdio, stderr: Stdio) -> std::process::Child {
    let command = gibbsite(args);
    std::process::Command::new(command.get_program())
        .args(command.get_args())
        .current_dir(examples())
        .stdin(Stdio::piped())
        .stdout(stdout)
        .stderr(stderr)
        .spawn()
        .unwrap()
}

/// `gibbsite … | true`: the model arrives only after the reader has gone.
#[test]
fn a_closed_pipe_is_no_error() {
    let mut child = spawned(&["infer", "-", "--task", "mar"], Stdio::piped(), Stdio::piped());
    drop(child.stdout.take());
    let model = fs::read(examples().join("student.uai")).unwrap();
    child.stdin.take().unwrap().write_all(&model).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

/// A warning that nobody reads must not cost the result.
#[test]
fn a_closed_standard_error_is_no_error() {
    let args = ["infer", "-", "--task", "pr", "--method", "trw"];
    let mut child = spawned(&args, Stdio::piped(), Stdio::piped());
    drop(child.stderr.take());
    let model = fs::read(examples().join("student.uai")).unwrap();
    child.stdin.take().unwrap().write_all(&model).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout.starts_with(b"PR\n5.67"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = spawned(&MAP, full.into(), Stdio::piped()).wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.starts_with("error: standard output: cannot write: "), "{message}");
}
