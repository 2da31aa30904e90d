//! `gibbsite train --format table`, and `predict`, `eval` and `inspect` with what it wrote.

use super::{at, folder, json, run, stdout};
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use tempfile::TempDir;

const WEATHER: [&str; 11] = [
    "train",
    "--format",
    "table",
    "weather.csv",
    "--outputs",
    "sky,rain,wind,umbrella",
    "--inputs",
    "*",
    "--standardize",
    "--structure",
    "chain",
];

/// Numbers from 0 to below 1, the same every time.
fn noise(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1u64 << 31) as f64
    }
}

/// Rows of a chain `y1, y2, …` of two labels that like to be equal, the first one drawn to a number `x`.
fn chain(rows: usize, outputs: usize) -> String {
    let mut random = noise(5);
    let names: Vec<String> = (1..=outputs).map(|v| format!("y{v}")).collect();
    let mut text = format!("x,{}\n", names.join(","));
    for _ in 0..rows {
        let x = (random() - 0.5) * 4.0;
        let mut y = random() < 1.0 / (1.0 + (-x).exp());
        let _ = write!(text, "{x:.3}");
        for _ in 0..outputs {
            let _ = write!(text, ",{}", if y { "b" } else { "a" });
            y ^= random() < 0.25;
        }
        text.push('\n');
    }
    text
}

/// Images of `rows × columns` cells `p…`, each seen through noise in `n…`; and the map from cells to what is seen.
fn images(samples: usize, rows: usize, columns: usize) -> (String, String) {
    let mut random = noise(11);
    let cells = rows * columns;
    let each = |c: char| (0..cells).map(|v| format!("{c}{v}")).collect::<Vec<_>>();
    let mut text = format!("{},{}\n", each('p').join(","), each('n').join(","));
    for _ in 0..samples {
        let cut = random() * columns as f64;
        let labels: Vec<bool> = (0..cells).map(|v| ((v % columns) as f64) < cut).collect();
        let seen = labels.iter().map(|&y| format!("{:.3}", f64::from(y) - 0.5 + 2.0 * (random() - 0.5)));
        let seen: Vec<String> = seen.collect();
        let labels: Vec<&str> = labels.iter().map(|&y| if y { "1" } else { "0" }).collect();
        let _ = writeln!(text, "{},{}", labels.join(","), seen.join(","));
    }
    let map: String = (0..cells).map(|v| format!("p{v},n{v}\n")).collect();
    (text, format!("output,input\n{map}"))
}

/// Trains on a file of the folder; the report.
fn report(folder: &TempDir, data: &str, more: &[&str]) -> Value {
    let (data, model) = (at(folder, data), at(folder, "m.gib"));
    let args = ["train", "--format", "table", &data, "--model", &model, "--json"];
    json(&stdout(&[&args, more].concat()))
}

fn number(value: &Value, name: &str) -> f64 {
    value[name].as_f64().unwrap_or_else(|| panic!("{name}: {value}"))
}

fn close(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance * a.abs().max(1.0), "{a} and {b}");
}

#[test]
fn from_training_to_scores() {
    let folder = folder(&[]);
    let model = at(&folder, "w.gib");
    let train = [&WEATHER[..], &["--model", &model, "--json"]].concat();
    let report = json(&stdout(&train));
    for field in ["objective", "log_likelihood", "violation", "seconds", "peak_rss_mib"] {
        number(&report, field);
    }
    assert_eq!(
        (&report["converged"], &report["rows"], &report["items"]),
        (&true.into(), &60.into(), &236.into())
    );
    // Biases and three inputs, one of four seasons, for 3 + 3 + 2 + 2 labels; edges.
    assert_eq!(report["parameters"], 10 * (1 + 2 + 4) + 9 + 6 + 4);
    let trace = report["trace"].as_array().unwrap();
    assert_eq!(trace.len() as u64, report["iterations"].as_u64().unwrap() + 1);
    assert!(
        trace.iter().all(|p| p["objective"].is_f64() && p["violation"].is_f64() && p["seconds"].is_f64())
    );

    // The same bytes again, on one thread.
    let bytes = fs::read(&model).unwrap();
    stdout(&[&train[..], &["--threads", "1"]].concat());
    assert_eq!(fs::read(&model).unwrap(), bytes);

    let scored = run(&["eval", "--model", &model, "--format", "table", "weather.csv", "--json"]);
    assert_eq!(scored.stderr, "warning: 4 cells have no known label (`?`) and are not scored\n");
    let score = json(&scored.stdout);
    assert_eq!((&score["items"], &score["sequences"]), (&236.into(), &60.into()));
    assert!(number(&score, "item_accuracy") > 0.75 && number(&score, "sequence_accuracy") > 0.4);
    close(number(&score, "log_loss") * 60.0, -number(&report, "log_likelihood"), 1e-9);
    assert!(number(&score, "items_per_second") > 0.0);
    let labels = score["labels"].as_array().unwrap();
    assert_eq!(labels.len(), 10);
    assert_eq!((&labels[0]["output"], &labels[0]["label"]), (&"sky".into(), &"clear".into()));
    assert_eq!(labels.iter().map(|l| l["support"].as_u64().unwrap()).sum::<u64>(), 236);
    let text = run(&["eval", "--model", &model, "weather.csv"]).stdout;
    assert!(text.contains("row accuracy") && text.contains("umbrella=yes"), "{text}");

    let found = stdout(&["predict", "--model", &model, "weather.csv", "--marginals"]);
    let mut lines = found.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    assert_eq!(header[..6], ["sky", "rain", "wind", "umbrella", "sky:clear", "sky:cloudy"]);
    assert_eq!(lines.clone().count(), 60);
    for line in lines {
        let numbers: Vec<f64> = line.split(',').skip(4).map(|p| p.parse().unwrap()).collect();
        assert_eq!(numbers.len(), 10);
        close(numbers[..3].iter().sum(), 1.0, 1e-12);
    }
    let all = json(&stdout(&["predict", "--model", &model, "weather.csv", "--marginals", "--json"]));
    assert_eq!((&all["exact"], all["rows"].as_array().unwrap().len()), (&true.into(), 60));
    assert_eq!(all["rows"][0]["marginals"][2].as_array().unwrap().len(), 2);
}

#[test]
fn known_outputs_are_kept_when_forced() {
    let folder = folder(&[(
        "w.csv",
        b"pressure,season,humidity,rain,umbrella\n1013,summer,60,heavy,?\n1013,summer,60,,no\n",
    )]);
    let (model, data) = (at(&folder, "w.gib"), at(&folder, "w.csv"));
    stdout(&[&WEATHER[..], &["--model", &model]].concat());
    let free = stdout(&["predict", "--model", &model, &data]);
    let forced = stdout(&["predict", "--model", &model, &data, "--forced", "--marginals", "--json"]);
    assert_eq!(free.lines().nth(1), free.lines().nth(2));
    let rows = json(&forced)["rows"].clone();
    assert_eq!(rows[0]["labels"][1], "heavy");
    assert_eq!(rows[0]["marginals"][1], serde_json::json!([1.0, 0.0, 0.0]));
    assert_eq!(rows[1]["labels"][3], "no");
    // What is known tells about the rest: heavy rain comes from an overcast sky.
    let overcast = |row: &Value| row["marginals"][0][2].as_f64().unwrap();
    assert!(overcast(&rows[0]) > overcast(&rows[1]) + 0.1);
}

/// Outputs with their labels, the attribute, the weight.
type Weight = (Vec<(String, String)>, String, f64);

/// The weights that `inspect` lists.
fn weights(model: &str) -> Vec<Weight> {
    let all = json(&stdout(&["inspect", model, "--json", "--parameters"]));
    let text = |v: &Value| v.as_str().unwrap().to_owned();
    let list = all["weights"].as_array().unwrap();
    let each = list.iter().map(|w| {
        let (outputs, labels) = (w["outputs"].as_array().unwrap(), w["labels"].as_array().unwrap());
        let scope = outputs.iter().map(text).zip(labels.iter().map(text)).collect();
        (scope, text(&w["attribute"]), w["weight"].as_f64().unwrap())
    });
    each.collect()
}

/// By enumeration: `-Σ log p(y|x) + ½‖θ‖²`, and the largest derivative, of the weights of a model of [`chain`].
fn enumerated(data: &str, outputs: usize, weights: &[Weight]) -> (f64, f64) {
    let squares: f64 = weights.iter().map(|w| w.2 * w.2).sum();
    let mut gradient: Vec<f64> = weights.iter().map(|w| w.2).collect();
    let mut objective = 0.5 * squares;
    for line in data.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let x: f64 = cells[0].parse().unwrap();
        let label = |name: &str, code: usize| {
            let v: usize = name[1..].parse::<usize>().unwrap() - 1;
            if code >> v & 1 == 1 { "b" } else { "a" }
        };
        let feature = |k: usize, code: usize| {
            let (scope, attribute, _) = &weights[k];
            let holds = scope.iter().all(|(name, l)| label(name, code) == l);
            if holds { if attribute == "x" { x } else { 1.0 } } else { 0.0 }
        };
        let score = |code: usize| (0..weights.len()).map(|k| weights[k].2 * feature(k, code)).sum::<f64>();
        let there = (0..outputs).map(|v| usize::from(cells[1 + v] == "b") << v).sum::<usize>();
        let z: f64 = (0..1 << outputs).map(|code| score(code).exp()).sum();
        objective += z.ln() - score(there);
        for (k, g) in gradient.iter_mut().enumerate() {
            let expected: f64 = (0..1 << outputs).map(|code| feature(k, code) * score(code).exp() / z).sum();
            *g += expected - feature(k, there);
        }
    }
    (objective, gradient.iter().fold(0.0, |m: f64, g| m.max(g.abs())))
}

#[test]
fn the_likelihood_is_at_its_optimum_by_enumeration() {
    let data = chain(80, 3);
    let folder = folder(&[("d.csv", data.as_bytes()), ("all", b"0-2\n"), ("each", b"0\n1\n2\n")]);
    let with = |more: &[&str]| {
        let common = ["--outputs", "y*", "--inputs", "x", "--structure", "chain", "--tolerance", "1e-9"];
        report(&folder, "d.csv", &[&common, more].concat())
    };
    let mle = with(&[]);
    let (objective, violation) = enumerated(&data, 3, &weights(&at(&folder, "m.gib")));
    close(objective, number(&mle, "objective"), 1e-10);
    assert!(violation < 1e-6, "{violation}");
    close(violation, number(&mle, "violation"), 1e-6);

    // One component of everything is the likelihood, one for each output the pseudolikelihood.
    let all = format!("file:{}", at(&folder, "all"));
    let composite = with(&["--estimator", "composite", "--components", &all]);
    close(number(&mle, "objective"), number(&composite, "objective"), 1e-10);
    assert_eq!(composite["estimator"], "composite (file)");
    let pseudo = with(&["--estimator", "pseudo"]);
    // No weights have a larger penalised likelihood than the likelihood's own.
    let (worse, violation) = enumerated(&data, 3, &weights(&at(&folder, "m.gib")));
    assert!(worse > objective && violation > 1e-3, "{worse} {objective} {violation}");
    let each = format!("file:{}", at(&folder, "each"));
    for components in [each.as_str(), "k:1"] {
        let composite = with(&["--estimator", "composite", "--components", components]);
        close(number(&pseudo, "objective"), number(&composite, "objective"), 1e-10);
        close(number(&pseudo, "log_likelihood"), number(&composite, "log_likelihood"), 1e-7);
    }
    let piecewise = with(&["--estimator", "piecewise"]);
    assert_eq!(piecewise["components"], 0);
    assert!(number(&piecewise, "objective") > number(&mle, "objective"));
    // A better start leads to the same end.
    let hybrid = with(&["--start", "pseudo"]);
    close(number(&mle, "objective"), number(&hybrid, "objective"), 1e-10);
    assert!(number(&hybrid, "start_iterations") > 0.0);
    assert!(number(&hybrid, "iterations") < number(&mle, "iterations"));
    // Weights that take part in one component only: independent outputs.
    let alone = |more: &[&str]| {
        let common =
            ["--outputs", "y*", "--inputs", "x", "--structure", "independent", "--tolerance", "1e-9"];
        report(&folder, "d.csv", &[&common[..], &["--estimator", "pseudo"], more].concat())
    };
    let (joint, disjoint) = (alone(&[]), alone(&["--optimize", "disjoint"]));
    close(number(&joint, "log_likelihood"), number(&disjoint, "log_likelihood"), 0.01);
    assert_eq!(disjoint["optimize"], "disjoint");
    // Without label 0, there is a weight for one of two labels.
    assert_eq!((&joint["parameters"], &disjoint["parameters"]), (&12.into(), &6.into()));
}

#[test]
fn l1_leaves_zeros() {
    let folder = folder(&[("d.csv", chain(80, 3).as_bytes())]);
    let common = ["--outputs", "y*", "--inputs", "x", "--structure", "full"];
    let nonzeros = |l1: &str| {
        let found = report(&folder, "d.csv", &[&common[..], &["--l1", l1]].concat());
        assert_eq!(found["parameters"], 24);
        number(&found, "nonzeros")
    };
    let (few, some) = (nonzeros("16"), nonzeros("4"));
    assert!(few < some && some < 24.0, "{few} {some}");
    let text = stdout(&["inspect", &at(&folder, "m.gib"), "--parameters"]);
    assert!(text.contains("solver owlqn") && text.contains("y1=a y2=a: (bias)"), "{text}");
}

#[test]
fn grids_share_their_parameters() {
    let (data, map) = images(40, 4, 4);
    let folder = folder(&[("i.csv", data.as_bytes()), ("map.csv", map.as_bytes())]);
    let (model, map, data) = (at(&folder, "m.gib"), at(&folder, "map.csv"), at(&folder, "i.csv"));
    let common =
        ["--outputs", "p*", "--inputs", "n*", "--input-map", &map, "--structure", "grid:4x4", "--share"];
    let exact = report(&folder, "i.csv", &common);
    assert_eq!((&exact["parameters"], &exact["edges"]), (&(2 * 2 + 4).into(), &24.into()));
    let score = json(&stdout(&["eval", "--model", &model, &data, "--json"]));
    let accuracy = number(&score, "item_accuracy");
    assert!(accuracy > 0.85, "{accuracy}");
    assert_eq!(score["labels"].as_array().unwrap().len(), 2);
    let found = report(&folder, "i.csv", &[&common[..], &["--estimator", "composite"]].concat());
    assert_eq!(found["estimator"], "composite (mle)");
    for (components, count) in [("combs", 2), ("pairs", 24), ("k:4", 4)] {
        let more = ["--estimator", "composite", "--components", components];
        let found = report(&folder, "i.csv", &[&common[..], &more].concat());
        assert_eq!(found["components"], count, "{components}");
        assert!(number(&found, "log_likelihood") <= number(&exact, "log_likelihood") + 0.5);
    }
    let tree = report(
        &folder,
        "i.csv",
        &[&common[..], &["--estimator", "composite", "--components", "tree"]].concat(),
    );
    assert!(number(&tree, "components") <= 3.0);
    let disjoint = ["--estimator", "composite", "--components", "combs", "--optimize", "disjoint"];
    let disjoint = report(&folder, "i.csv", &[&common[..], &disjoint].concat());
    assert_eq!(disjoint["parameters"], 2 + 1);

    // Too wide for exact inference: refused, or another list is chosen and named.
    let args = [&["train", "--format", "table", &data, "--model", &model], &common[..]].concat();
    let narrow = [&args[..], &["--max-table-mib", "0.0001"]].concat();
    let refused = run(&narrow);
    assert_eq!(refused.code, 1);
    assert!(
        refused.stderr.contains("leaves 16 variables free, which is too wide for exact inference"),
        "{}",
        refused.stderr
    );
    assert!(
        refused.stderr.ends_with(
            "use smaller components (--estimator pseudo or composite), or estimates (--inference bp or gibbs)\n"
        ),
        "{}",
        refused.stderr
    );
    for inference in ["bp", "gibbs"] {
        let wide = run(&[&narrow[..], &["--inference", inference, "--l2", "5", "--json"]].concat());
        assert_eq!(wide.code, 0, "{}", wide.stderr);
        assert!(wide.stderr.contains("objective and gradient are estimates"), "{}", wide.stderr);
        let wide = json(&wide.stdout);
        assert_eq!((&wide["exact"], &wide["converged"]), (&false.into(), &true.into()));
        assert_eq!(wide["objective"].is_null(), inference == "gibbs");
        // What was learned by estimates is nearly as good: by exact inference with the model that was written.
        let score = json(&stdout(&["eval", "--model", &model, &data, "--json"]));
        assert!(number(&score, "item_accuracy") > accuracy - 0.02, "{inference}");
    }
    let log = run(&[&args[..], &["--max-table-mib", "0.001", "--estimator", "composite", "-v"]].concat());
    assert_eq!(log.code, 0, "{}", log.stderr);
    assert!(log.stderr.contains("maximised composite (combs): 2 components"), "{}", log.stderr);
    // Predictions are then estimates, and say so.
    let exact = json(&stdout(&["eval", "--model", &model, &data, "--json"]));
    let rough = run(&["eval", "--model", &model, &data, "--json", "--max-table-mib", "0.0001"]);
    assert!(rough.stderr.contains("Labels are estimates, by belief propagation"), "{}", rough.stderr);
    assert!(rough.stderr.contains("the log loss needs exact inference"), "{}", rough.stderr);
    let rough = json(&rough.stdout);
    assert_eq!(rough["log_loss"], Value::Null);
    assert!((number(&rough, "item_accuracy") - number(&exact, "item_accuracy")).abs() < 0.05);
}

#[test]
fn edges_and_inputs_from_files() {
    let data = chain(60, 3);
    let folder = folder(&[
        ("d.csv", data.as_bytes()),
        ("edges.csv", b"a,b,score\ny3,y1,0.5\ny1,y2,0.1\n"),
        ("bare.csv", b"y3,y1\ny1,y2\n"),
        ("loop.csv", b"y1,y1\n"),
        ("twice.csv", b"y1,y2\ny2,y1\n"),
        ("wrong.csv", b"a,b\ny1,y22\n"),
        ("map.csv", b"y1,x\n"),
        ("map-wrong.csv", b"output,input\ny1,y2\n"),
    ]);
    let file = |name: &str| format!("file:{}", at(&folder, name));
    let common = ["--outputs", "y*", "--inputs", "x", "--structure"];
    let with = report(&folder, "d.csv", &[&common[..], &[&file("edges.csv")]].concat());
    let model = fs::read(at(&folder, "m.gib")).unwrap();
    assert_eq!((&with["edges"], &with["parameters"]), (&2.into(), &(12 + 8).into()));
    let bare = report(&folder, "d.csv", &[&common[..], &[&file("bare.csv")]].concat());
    assert_eq!(bare["objective"], with["objective"]);
    assert!(model != fs::read(at(&folder, "m.gib")).unwrap(), "the file's name is part of the model");
    let map = at(&folder, "map.csv");
    let few = report(&folder, "d.csv", &[&common[..], &["chain", "--input-map", &map]].concat());
    assert_eq!(few["parameters"], 4 + 2 + 2 + 8);
    let score = run(&["eval", "--model", &at(&folder, "m.gib"), &at(&folder, "d.csv")]);
    assert_eq!((score.code, score.stderr.as_str()), (0, ""));

    let (data, model) = (at(&folder, "d.csv"), at(&folder, "m.gib"));
    let fails = |more: &[&str]| {
        let args =
            ["train", "--format", "table", &data, "--model", &model, "--outputs", "y*", "--inputs", "x"];
        let run = run(&[&args[..], more].concat());
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{}", run.stderr);
        run.stderr
            .trim_end()
            .rsplit_once(".csv: ")
            .map_or(run.stderr.clone(), |(_, message)| message.to_owned())
    };
    let wrong = fails(&["--structure", &file("wrong.csv")]);
    assert_eq!(wrong, "line 2: found no output `y22`; close ones are `y2`");
    assert_eq!(fails(&["--structure", &file("loop.csv")]), "an edge joins `y1` to itself");
    assert_eq!(fails(&["--structure", &file("twice.csv")]), "the edge between `y2` and `y1` is there twice");
    let map = at(&folder, "map-wrong.csv");
    assert_eq!(fails(&["--structure", "chain", "--input-map", &map]), "line 2: found no input `y2`");
    let map = at(&folder, "map.csv");
    assert_eq!(
        fails(&["--structure", "chain", "--share", "--input-map", &map]),
        "outputs that share parameters need the same number of inputs, but `y1` has 1 and `y2` has 0"
    );
    let grid = fails(&["--structure", "grid:2x2"]);
    assert_eq!(grid, "error: --structure: a grid of 2x2 does not have 3 variables\n");
    let combs = fails(&["--structure", "chain", "--estimator", "composite", "--components", "combs"]);
    assert_eq!(combs, "combs need a grid: use --structure grid:ROWSxCOLUMNS, or other components");
}

#[test]
fn missing_and_unknown_labels() {
    let data = chain(80, 3);
    // Every fifth label is not known.
    let mut cells = 0;
    let holes: String = data
        .lines()
        .enumerate()
        .map(|(n, line)| {
            let cell = |(k, cell): (usize, &str)| {
                cells += usize::from(k > 0 && n > 0);
                if n > 0 && k > 0 && cells % 5 == 0 {
                    ["?", ""][cells % 2].to_owned()
                } else {
                    cell.to_owned()
                }
            };
            line.split(',').enumerate().map(cell).collect::<Vec<_>>().join(",") + "\n"
        })
        .collect();
    let folder = folder(&[
        ("d.csv", data.as_bytes()),
        ("holes.csv", holes.as_bytes()),
        ("new.csv", b"c,x,y1,y2,y3\n,0.5,a,b,zebra\n,0.5,a,b,b\n"),
        ("c.csv", b"y1,c\na,red\nb,blue\na,\nb,red\n"),
        ("c-new.csv", b"c\ngreen\nred\n"),
    ]);
    let common = ["--outputs", "y*", "--inputs", "x", "--structure", "chain"];
    let full = report(&folder, "d.csv", &common);
    let partial = report(&folder, "holes.csv", &common);
    assert_eq!((&full["items"], &partial["items"]), (&240.into(), &(240 - 48).into()));
    assert!(number(&partial, "log_likelihood") > number(&full, "log_likelihood"));
    let model = at(&folder, "m.gib");
    let score = run(&["eval", "--model", &model, &at(&folder, "new.csv"), "--json"]);
    assert_eq!(score.stderr, "warning: 1 labels in the data are not the model's\n");
    let score = json(&score.stdout);
    assert_eq!((&score["items"], &score["sequences"]), (&6.into(), &2.into()));
    assert!(score["log_loss"].is_f64() && number(&score, "sequence_accuracy") <= 0.5);

    // A discrete input, and a value that was never seen: the bias decides.
    report(&folder, "c.csv", &["--outputs", "y1", "--inputs", "c", "--structure", "independent"]);
    let found = run(&["predict", "--model", &model, &at(&folder, "c-new.csv"), "--marginals"]);
    assert_eq!(found.code, 0);
    assert_eq!(found.stderr, "warning: 1 values of discrete inputs are not the model's, and not looked at\n");
    let first: Vec<f64> =
        found.stdout.lines().nth(1).unwrap().split(',').skip(1).map(|p| p.parse().unwrap()).collect();
    assert!((first[0] - 0.5).abs() < 0.05, "{first:?}");
}

#[test]
fn bad_tables_are_named() {
    let folder = folder(&[]);
    let (data, model) = (at(&folder, "d.csv"), at(&folder, "m.gib"));
    for (text, outputs, inputs, message) in [
        ("", "a", "", "the file is empty, expected a header with column names, then rows"),
        ("a,b\n", "a", "", "found a header but no rows"),
        ("a,b\n1,2\n1\n", "a", "", "line 3: found 1 cells, expected 2 as in the header"),
        ("rain,b\n1,2\n2,2\n", "rian", "", "line 1: found no column `rian`; there are `rain`, `b`"),
        ("rains,b\n1,2\n2,2\n", "rain", "", "line 1: found no column `rain`; close ones are `rains`"),
        ("a,b\n1,2\n2,2\n", "q*", "", "line 1: found no column `q*`; there are `a`, `b`"),
        ("a,b\n1,2\n2,2\n", "a,b", "b", "the column `b` is both an output and an input"),
        (
            "a,b\n1,2\n2,2\n",
            "a,b",
            "",
            "the output `b` has one label only, `2`: there is nothing to learn; leave it out",
        ),
        (
            "a,b\n1,?\n2,\n",
            "a,b",
            "",
            "the output `b` has no known label in any row: there is nothing to learn from",
        ),
        ("a,x\n1,0.5\n2,inf\n", "a", "x", "line 3, column `x`: found `inf`, expected a finite number"),
        ("a,x\n1,0.5\n2,\n", "a", "x", "line 3, column `x`: the cell is empty, expected a number"),
    ] {
        fs::write(&data, text).unwrap();
        let args = ["train", "--format", "table", &data, "--model", &model, "--structure", "chain"];
        let run = run(&[&args[..], &["--outputs", outputs, "--inputs", inputs]].concat());
        assert_eq!((run.code, run.stderr), (1, format!("error: {data}: {message}\n")), "{text}");
    }
    assert_eq!(super::listing(folder.path()), ["d.csv"]);
    // Mostly numbers: somebody should know.
    fs::write(&data, "a,x\n1,0.5\n2,0.25\n2,o.5\n1,1\n").unwrap();
    let args = ["train", "--format", "table", &data, "--model", &model, "--structure", "chain"];
    let found = run(&[&args[..], &["--outputs", "a", "--inputs", "x"]].concat());
    assert_eq!(found.code, 0);
    assert_eq!(
        found.stderr,
        "warning: line 4: the input `x` is mostly numbers, but `o.5` is none: it is taken as discrete, with 4 values\n"
    );
}

#[test]
fn wrong_usage() {
    let refusal = |args: &[&str]| {
        let run = run(&[&["train", "weather.csv", "--model", "m.gib", "--format"], args].concat());
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{args:?}: {}", run.stderr);
        run.stderr.lines().next().unwrap().to_owned()
    };
    let table = ["table", "--outputs", "sky", "--structure"];
    for (more, message) in [
        (
            &["tree:learn"][..],
            "error: --structure tree:learn is not there yet: learning of edges comes with `gibbsite structure`; give the edges with file:EDGES.csv",
        ),
        (
            &["ring"],
            "error: --structure must be chain, star, full, independent, grid:ROWSxCOLUMNS or file:EDGES.csv, but is `ring`",
        ),
        (&["chain", "--components", "combs"], "error: --components is for --estimator composite"),
        (
            &["chain", "--optimize", "disjoint"],
            "error: --optimize disjoint is for components: --estimator pseudo or composite",
        ),
        (&["chain", "--input-map", "map.csv"], "error: --input-map needs --inputs"),
        (&["chain", "--inference", "gibbs", "--sweeps", "0"], "error: --sweeps must be at least 1"),
        (
            &["chain", "--inference", "gibbs", "--l1", "1"],
            "error: --inference gibbs knows gradients, no objective: not with --l1, --optimize disjoint or --target-objective",
        ),
        (&["chain", "--all-states"], "error: --all-states is for sequences, not for --format table"),
        (
            &["chain", "--max-table-mib", "-1"],
            "error: --max-table-mib must be a finite number of at least 0, but is -1",
        ),
    ] {
        assert_eq!(refusal(&[&table[..], more].concat()), message);
    }
    assert_eq!(
        refusal(&["table", "--structure", "chain"]),
        "error: --format table needs --outputs: the columns to be predicted"
    );
    assert!(refusal(&["table", "--outputs", "sky"]).starts_with("error: --format table needs --structure"));
    assert_eq!(refusal(&["crfsuite", "--outputs", "sky"]), "error: --outputs is for --format table");
    assert_eq!(refusal(&["crfsuite", "--inference", "bp"]), "error: --inference is for --format table");
}

#[test]
fn stopped_runs_go_on() {
    let data = chain(80, 3);
    let folder = folder(&[("d.csv", data.as_bytes())]);
    let (model, state, file) = (at(&folder, "m.gib"), at(&folder, "m.ckpt"), at(&folder, "d.csv"));
    let args = ["train", "--format", "table", &file, "--model", &model, "--outputs", "y*", "--inputs", "x"];
    let more = ["--structure", "chain", "--checkpoint", &state, "--tolerance", "1e-9", "--json"];
    let args = [&args[..], &more].concat();
    let short = run(&[&args[..], &["--max-iter", "3"]].concat());
    assert_eq!(short.code, 3);
    assert!(short.stderr.starts_with("warning: the limit on iterations was reached"), "{}", short.stderr);
    assert_eq!(json(&short.stdout)["converged"], false);
    assert!(stdout(&["inspect", &model]).contains("NOT CONVERGED"));
    let rest = json(&stdout(&[&args[..], &["--resume"]].concat()));
    let whole = json(&stdout(&args));
    assert_eq!(rest["objective"], whole["objective"]);
    // Of another problem.
    let other = run(&[&args[..], &["--resume", "--share"]].concat());
    assert_eq!(other.code, 1);
    assert!(other.stderr.contains("the checkpoint has 20 parameters, this problem 8"), "{}", other.stderr);
    let held = run(&[&args[..], &["--holdout", &file]].concat());
    assert_eq!(held.code, 0);
    assert!(held.stderr.contains("held-out accuracy 0."), "{}", held.stderr);
    assert!(number(&json(&held.stdout), "holdout_accuracy") > 0.6);
    let target = json(&stdout(&[&args[..], &["--target-objective", "140"]].concat()));
    assert!(number(&target, "objective") <= 140.0);
}

#[test]
fn models_are_checked() {
    let folder = folder(&[]);
    let model = at(&folder, "w.gib");
    stdout(&[&WEATHER[..], &["--model", &model]].concat());
    let text = stdout(&["inspect", &model]);
    assert!(text.starts_with("Field over the columns of a table (chain, mle, solver lbfgs)\n"), "{text}");
    assert!(text.contains("weather.csv: 60 rows, 236 labels"), "{text}");
    let all = json(&stdout(&["inspect", &model, "--json"]));
    assert_eq!((&all["kind"], &all["outputs"], &all["edges"]), (&"field".into(), &4.into(), &3.into()));
    assert_eq!(all["output_names"][2], "wind");
    let wrong = run(&["predict", "--model", &model, "--format", "crfsuite", "weather.csv"]);
    assert_eq!(
        (wrong.code, wrong.stderr.as_str()),
        (1, "error: weather.csv: the model is of tables: --format must be table\n")
    );
    let missing = run(&["predict", "--model", &model, "flats.csv"]);
    assert_eq!(missing.code, 1);
    assert!(
        missing.stderr.starts_with("error: flats.csv: line 1: found no column `pressure`"),
        "{}",
        missing.stderr
    );
    let mut bytes = fs::read(&model).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&model, &bytes).unwrap();
    for command in ["predict", "eval"] {
        let run = run(&[command, "--model", &model, "weather.csv"]);
        assert_eq!(run.code, 1);
        assert!(run.stderr.contains("a damaged gibbsite model: its checksum is wrong"), "{}", run.stderr);
    }
}

#[test]
fn shotgun_finds_the_sparse_pseudolikelihood() {
    let dir = folder(&[("chain.csv", chain(300, 6).as_bytes())]);
    let data = at(&dir, "chain.csv");
    let model = at(&dir, "m.gib");
    let train =
        ["train", "--format", "table", &data, "--outputs", "y*", "--inputs", "x", "--structure", "chain"];
    let sparse = ["--estimator", "pseudo", "--l1", "3", "--tolerance", "1e-7", "--model", &model, "--json"];
    let by = |solver: &str| json(&stdout(&[&train[..], &sparse, &["--solver", solver]].concat()));
    let (one, other) = (by("shotgun"), by("owlqn"));
    let number = |v: &Value, name: &str| v[name].as_f64().unwrap();
    let (a, b) = (number(&one, "objective"), number(&other, "objective"));
    assert!((a - b).abs() <= 1e-8 * b, "{a} {b}");
    assert_eq!(one["converged"], Value::Bool(true));
    assert!(number(&one, "nonzeros") < number(&one, "parameters"), "{one}");
    for (more, message) in [
        (&["--estimator", "mle"][..], "needs --estimator pseudo"),
        (&["--estimator", "pseudo", "--checkpoint", "c"], "not of shotgun"),
    ] {
        let run = run(&[&train[..], &["--model", &model, "--solver", "shotgun"], more].concat());
        assert_eq!(run.code, 2);
        assert!(run.stderr.contains(message), "{}", run.stderr);
    }
    // A label that is not known leaves two outputs free.
    fs::write(&data, chain(300, 6).replacen(",a", ",?", 1)).unwrap();
    let run =
        run(&[&train[..], &["--model", &model, "--solver", "shotgun", "--estimator", "pseudo"]].concat());
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("all labels known"), "{}", run.stderr);
}
