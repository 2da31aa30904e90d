//! `gibbsite inspect`: what a file holds.

use super::{finish, gibbsite, json, run, stable, stable_json, stdout};
use insta::assert_snapshot;

#[test]
fn text() {
    assert_snapshot!(stable(&stdout(&["inspect", "student.uai"])), @"");
    assert_snapshot!(stable(&stdout(&["inspect", "sprinkler.uai", "--evidence", "sprinkler.evid"])), @"");
}

#[test]
fn json_fields() {
    assert_snapshot!(stable_json(&stdout(&["inspect", "student.uai", "--json"])), @"");
}

#[test]
fn parameters() {
    let args = ["inspect", "sprinkler.uai", "--parameters"];
    let text = stdout(&args);
    let factors = text.split_once("  factor 0").unwrap().1;
    assert_snapshot!(stable(&format!("  factor 0{factors}")), @"");

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
