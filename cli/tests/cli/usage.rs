//! Wrong usage: exit 2, the reason first, then the usage of the command that was meant.

use super::run;

/// The first line of what wrong usage prints.
fn refusal(args: &[&str]) -> String {
    let run = run(args);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{args:?}: {}", run.stderr);
    assert!(run.stderr.contains("try '--help'"), "{args:?}: {}", run.stderr);
    run.stderr.lines().next().unwrap().to_owned()
}

#[test]
fn wrong_values_are_named() {
    let infer = |more: &[&str]| refusal(&[&["infer", "student.uai", "--task", "pr"][..], more].concat());
    for (args, message) in [
        (&["--damping", "1"][..], "error: --damping must be from 0 to below 1, but is 1"),
        (&["--damping", "nan"], "error: --damping must be from 0 to below 1, but is NaN"),
        (&["--damping", "-0.5"], "error: --damping must be from 0 to below 1, but is -0.5"),
        (
            &["--tolerance", "-0.001"],
            "error: --tolerance must be a finite number of at least 0, but is -0.001",
        ),
        (
            &["--max-table-mib", "-1"],
            "error: --max-table-mib must be a finite number of at least 0, but is -1",
        ),
        (
            &["--max-table-mib", "inf"],
            "error: --max-table-mib must be a finite number of at least 0, but is inf",
        ),
        (&["--max-iter", "0"], "error: --max-iter must be at least 1"),
        (&["--sweeps", "0"], "error: --sweeps must be at least 1"),
        (&["--threads", "0"], "error: invalid value '0' for '--threads <N>': 0 is not in 1..=1024"),
        (&["--method", "magic"], "error: invalid value 'magic' for '--method <METHOD>'"),
        (&["--quiet", "-v"], "error: the argument '--quiet' cannot be used with '--verbose'"),
        (&["--frobnicate"], "error: unexpected argument '--frobnicate' found"),
        (
            &["--method", "gibbs"],
            "error: --method gibbs answers mar and map; for pr use bp, or trw for an upper bound",
        ),
    ] {
        assert_eq!(infer(args), message);
    }
    assert_eq!(
        refusal(&["infer", "student.uai", "--task", "map", "--method", "trw"]),
        "error: --method trw answers pr and mar; for map use bp or gibbs"
    );
    assert_eq!(
        refusal(&["infer", "-", "--evidence", "-", "--task", "pr"]),
        "error: only one file can be `-` (standard input)"
    );
    assert_eq!(
        refusal(&["inspect", "-", "--evidence", "-"]),
        "error: only one file can be `-` (standard input)"
    );
}

#[test]
fn one_penalty_and_no_more() {
    let spam = |more: &[&str]| refusal(&[&["regress", "logistic", "spam.svm"][..], more].concat());
    assert_eq!(spam(&[]), "error: the following required arguments were not provided:");
    for (args, message) in [
        (
            &["--lambda", "1", "--lambda-ratio", "0.1"][..],
            "error: the argument '--lambda <L>' cannot be used with '--lambda-ratio <R>'",
        ),
        (
            &["--lambda", "1", "--path", "9"],
            "error: the argument '--lambda <L>' cannot be used with '--path <N>'",
        ),
        (
            &["--lambda-ratio", "1", "--cv", "9"],
            "error: the argument '--lambda-ratio <R>' cannot be used with '--cv <K>'",
        ),
        (&["--lambda", "-1"], "error: --lambda must be a finite number of at least 0, but is -1"),
        (&["--lambda", "nan"], "error: --lambda must be a finite number of at least 0, but is NaN"),
        (&["--lambda", "1", "--l2", "-2"], "error: --l2 must be a finite number of at least 0, but is -2"),
        (&["--path", "5", "--path-ratio", "1"], "error: --path-ratio must be above 0 and below 1, but is 1"),
        (&["--cv", "1"], "error: invalid value '1' for '--cv <K>': 1 is not in 2..=1000"),
        (
            &["--lambda", "1", "--plot", "p.png"],
            "error: --plot draws SVG: the file must be called *.svg, but is p.png",
        ),
        (
            &["--lambda", "1", "--target", "y"],
            "error: --target is for csv data (`--format csv` if the file is not called so)",
        ),
        (
            &["--lambda", "1", "--parallel", "0"],
            "error: invalid value '0' for '--parallel <P>': expected `auto` or a whole number of at least 1",
        ),
    ] {
        assert_eq!(spam(args), message);
    }
    assert_eq!(
        refusal(&["analyze", "parallelism", "spam.svm", "--lambda", "0"]),
        "error: --lambda must be a finite number above 0, but is 0"
    );
}

#[test]
fn what_is_missing_is_named() {
    assert_eq!(
        refusal(&["infer", "student.uai"]),
        "error: the following required arguments were not provided:"
    );
    assert_eq!(
        refusal(&["infer", "--task", "pr"]),
        "error: the following required arguments were not provided:"
    );
    assert_eq!(refusal(&["divine"]), "error: unrecognized subcommand 'divine'");
    assert_eq!(run(&[]).code, 2);
}

#[test]
fn the_usage_shown_is_the_commands() {
    let infer = run(&["infer", "student.uai", "--task", "pr", "--damping", "2"]).stderr;
    assert!(infer.contains("\nUsage: gibbsite infer [OPTIONS] --task <TASK> <MODEL.uai>\n"), "{infer}");
    let inspect = run(&["inspect", "student.uai", "--max-table-mib", "nan"]).stderr;
    assert!(inspect.contains("\nUsage: gibbsite inspect [OPTIONS] <FILE>\n"), "{inspect}");
}

#[test]
fn options_of_a_path_are_refused_beside_one_lambda() {
    let regress = ["regress", "lasso", "flats.csv", "--target", "price"];
    for one in ["--lambda", "--lambda-ratio"] {
        for more in [["--path-ratio", "0.1"], ["--cv-rule", "1se"]] {
            let said = refusal(&[&regress[..], &[one, "0.5"], &more].concat());
            assert!(
                said.contains("cannot be used with") && said.contains(one) && said.contains(more[0]),
                "{said}"
            );
        }
    }
}
