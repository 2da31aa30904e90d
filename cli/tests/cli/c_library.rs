//! The C library on the host: built, linked with the example, run; its labels are those of `gibbsite predict`.

use super::{folder, stdout};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_example_labels_as_predict_does() {
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/c");
    // Beside this build, so that it is there the next time.
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("c");
    let cargo = env::var_os("CARGO").unwrap_or("cargo".into());
    run(Command::new(cargo).current_dir(&library).env("CARGO_TARGET_DIR", &target).args([
        "build",
        "--quiet",
        "--release",
        "--locked",
    ]));

    let items = [
        ["U01:the", "U11:DT"],
        ["U01:pump", "U11:NN"],
        ["U01:will", "U11:MD"],
        ["U01:stop", "U11:VB"],
        ["U01:.", "U11:."],
    ];
    let line = |item: &[&str; 2]| format!("?\t{}\n", item.map(|a| a.replace(':', "\\:")).join("\t"));
    let text: String = items.iter().map(line).collect();
    let folder = folder(&[("items.txt", text.as_bytes())]);
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let model = path("pump.gib");
    stdout(&[
        "train",
        "--format",
        "columns",
        "--template",
        "pump.tpl",
        "pump.txt",
        "--model",
        &model,
        "--quiet",
    ]);
    stdout(&["export", "--model", &model, "--to", "c", "--scalar", "i16", &path("model.h")]);
    let labels = stdout(&["predict", "--model", &model, "--format", "crfsuite", &path("items.txt")]);
    let labels: Vec<&str> = labels.split_whitespace().collect();

    let program = path("label");
    run(Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(&library)
        .args(["-I", folder.path().to_str().unwrap(), "-o", &program])
        .arg(library.join("example/label.c"))
        .arg(target.join("release/libgibbsite.a")));
    let printed = run(&mut Command::new(&program));
    let rows: Vec<Vec<&str>> = printed.lines().map(|l| l.split_whitespace().collect()).collect();
    assert_eq!(rows.len(), 2, "{printed}");
    assert_eq!((rows[0][0], &rows[0][1..]), ("whole", &labels[..]));
    // With a lag the first labels are decided before all has arrived; all are there, and the last ones agree.
    assert_eq!((rows[1][0], rows[1].len()), ("lag", 6));
    assert_eq!(rows[1][4..], labels[3..]);
    assert!(fs::metadata(library.join("gibbsite.h")).is_ok());
}
