//! `gibbsite inspect`: what a file holds.

use super::{finish, gibbsite, json, run, stable, stable_json, stdout};
use insta::assert_snapshot;

#[test]
fn text() {
    assert_snapshot!(stable(&stdout(&["inspect", "student.uai"])), @r"
    UAI model (MARKOV)
      variables              6 (largest arity 2, 0 observed)
      factors                7 (largest scope 2, 28 entries)
      left for inference     6 variables, 7 factors, 1 component
      treewidth              at most 2
      largest table          8 entries (2^3.0)
      memory to run exactly  … MiB (pr, map), … MiB (mar)
      suggested method       junction
    ");
    assert_snapshot!(stable(&stdout(&["inspect", "sprinkler.uai", "--evidence", "sprinkler.evid"])), @r"
    UAI model (BAYES)
      variables              4 (largest arity 2, 1 observed)
      factors                4 (largest scope 3, 18 entries)
      left for inference     3 variables, 4 factors, 1 component
      treewidth              at most 2
      largest table          8 entries (2^3.0)
      memory to run exactly  … MiB (pr, map), … MiB (mar)
      suggested method       junction
    ");
}

#[test]
fn json_fields() {
    assert_snapshot!(stable_json(&stdout(&["inspect", "student.uai", "--json"])), @r#"
    kind: "uai"
    preamble: "MARKOV"
    variables: 6
    factors: 7
    max_arity: 2
    max_scope: 2
    table_entries: 28
    observed: 0
    components: 1
    acyclic: false
    treewidth: 2
    largest_table: 8
    mebibytes_pr: "…"
    mebibytes_mar: "…"
    suggested_method: "junction"
    "#);
}

#[test]
fn parameters() {
    let args = ["inspect", "sprinkler.uai", "--parameters"];
    let text = stdout(&args);
    let factors = text.split_once("  factor 0").unwrap().1;
    assert_snapshot!(stable(&format!("  factor 0{factors}")), @r"
    factor 0 of (0): -0.6931471806 -0.6931471806
    factor 1 of (0 1): -0.6931471806 -0.6931471806 -0.1053605157 -2.302585093
    factor 2 of (0 2): -0.2231435513 -1.609437912 -1.609437912 -0.2231435513
    factor 3 of (1 2 3): 0 -inf -2.302585093 -0.1053605157 -2.302585093 -0.1053605157 -4.605170186 -0.01005033585
    ");

    let value = json(&stdout(&[&args[..], &["--json"]].concat()));
    let parameters = &value["parameters"];
    assert_eq!(parameters["arities"], serde_json::json!([2, 2, 2, 2]));
    let scopes: Vec<_> =
        parameters["factors"].as_array().unwrap().iter().map(|f| f["scope"].to_string()).collect();
    assert_eq!(scopes, ["[0]", "[0,1]", "[0,2]", "[1,2,3]"]);
    // P(wet | neither sprinkler nor rain) = 0 has no logarithm in JSON.
    let wet = parameters["factors"][3]["log_potentials"].as_array().unwrap();
    assert_eq!(wet.len(), 8);
    assert!(wet[1].is_null());
    assert!((wet[7].as_f64().unwrap() - 0.99f64.ln()).abs() < 1e-15);
    assert!(json(&stdout(&["inspect", "sprinkler.uai", "--json"])).get("parameters").is_none());
}

/// What it suggests is what `auto` does.
#[test]
fn the_suggestion_is_followed() {
    let chain = "MARKOV 3  2 2 2  2  2 0 1  2 1 2  4 1 2 3 4  4 4 3 2 1";
    let ask = |args: &[&str], model: &str| {
        let mut command = gibbsite(args);
        command.write_stdin(model);
        json(&finish(command).stdout)
    };
    let student = std::fs::read_to_string(super::examples().join("student.uai")).unwrap();
    for (model, limit, method) in
        [(chain, "4096", "tree"), (&student, "4096", "junction"), (&student, "0", "bp"), (chain, "0", "tree")]
    {
        let limit = ["--json", "--max-table-mib", limit];
        let suggested = ask(&[&["inspect", "-"][..], &limit].concat(), model);
        let done = ask(&[&["infer", "-", "--task", "mar"][..], &limit].concat(), model);
        assert_eq!(suggested["suggested_method"], method);
        assert_eq!(done["method"], method);
    }
    let text = run(&["inspect", "student.uai", "--max-table-mib", "0"]).stdout;
    assert!(text.contains("above --max-table-mib"), "{text}");
}
