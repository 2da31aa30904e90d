//! Help pages.

use super::stdout;
use insta::assert_snapshot;

/// A help page without clap's spaces at the ends of lines.
fn help(args: &[&str]) -> String {
    stdout(args).lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

#[test]
fn gibbsite() {
    assert_snapshot!(help(&["--help"]), @"");
}

#[test]
fn infer() {
    assert_snapshot!(help(&["infer", "--help"]), @"");
}

#[test]
fn infer_in_short() {
    assert_snapshot!(help(&["infer", "-h"]), @"");
}

#[test]
fn inspect() {
    assert_snapshot!(help(&["inspect", "--help"]), @"");
}

#[test]
fn version() {
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(stdout(&["--version"]), format!("gibbsite {version}\n"));
    assert_eq!(stdout(&["infer", "-V"]), format!("gibbsite-infer {version}\n"));
}
