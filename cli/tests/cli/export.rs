//! `gibbsite export`: images, source text, what is printed, what is refused.

use super::{folder, json, listing, run, stdout};
use std::fs;
use std::process::Command;
use tempfile::TempDir;

/// A folder with the model of the pumping station in it.
fn trained() -> (TempDir, String) {
    let folder = folder(&[]);
    let model = path(&folder, "pump.gib");
    let train = ["train", "--format", "columns", "--template", "pump.tpl", "pump.txt", "--l2", "0.5"];
    stdout(&[&train[..], &["--model", &model, "--quiet"]].concat());
    (folder, model)
}

fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).to_str().unwrap().to_owned()
}

#[test]
fn every_scalar_keeps_its_promise() {
    let (folder, model) = trained();
    let out = path(&folder, "pump.img");
    let mut sizes = Vec::new();
    for scalar in ["f32", "i16", "i8"] {
        let args = ["export", "--model", &model, "--to", "image", "--scalar", scalar, "--max-length", "30"];
        let report = json(&stdout(&[&args[..], &["--check", "pump.test.txt", "--json", &out]].concat()));
        let number = |name: &str| report[name].as_u64().unwrap();
        let check = |name: &str| report["check"][name].as_f64().unwrap();
        assert_eq!(number("flash_bytes"), fs::metadata(&out).unwrap().len());
        // Two rows of scores, and a byte for each label of all items but the first.
        assert_eq!(number("ram_bytes"), (8 + 29) * number("labels"));
        let (error, bound, loss) =
            (check("worst_error"), check("score_error_bound"), check("worst_score_loss"));
        match scalar {
            "f32" => assert!(error < 1e-4 && check("different_labels") == 0.0, "{report}"),
            _ => assert!(error <= bound * 1.0001 && loss <= 2.0 * bound, "{report}"),
        }
        assert!(check("worst_probability_error") < if scalar == "i8" { 0.2 } else { 0.01 }, "{report}");
        sizes.push(number("flash_bytes"));

        let image = json(&stdout(&["inspect", &out, "--json"]));
        assert_eq!(image["kind"], "image");
        assert_eq!(image["scalar"], scalar);
        for field in ["flash_bytes", "ram_bytes", "attributes", "max_length"] {
            assert_eq!(image[field], report[field], "{field}");
        }
        assert_eq!(image["labels"].as_array().unwrap().len() as u64, number("labels"));
    }
    assert!(sizes[0] > sizes[1] && sizes[1] > sizes[2], "{sizes:?}");
}

#[test]
fn text_and_weights() {
    let (folder, model) = trained();
    let out = path(&folder, "pump.img");
    let text = stdout(&[
        "export",
        "--model",
        &model,
        "--to",
        "image",
        "--scalar",
        "i16",
        "--attributes",
        "exact",
        &out,
    ]);
    for part in ["weights in i16", "flash", "RAM", "for sequences of 100", "never"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let model_weights = json(&stdout(&["inspect", &model, "--json", "--parameters"]));
    let image = json(&stdout(&["inspect", &out, "--json", "--parameters"]));
    let error = image["weight_error"].as_f64().unwrap().max(image["transition_error"].as_f64().unwrap());
    // All weights of the model that are not 0, by names, to within the error that the image claims.
    let mut found = 0;
    for weight in image["weights"].as_array().unwrap() {
        let same =
            |w: &&serde_json::Value| w["attribute"] == weight["attribute"] && w["labels"] == weight["labels"];
        let original = model_weights["weights"].as_array().unwrap().iter().find(same);
        let value = original.map_or(0.0, |w| w["weight"].as_f64().unwrap());
        assert!((weight["weight"].as_f64().unwrap() - value).abs() <= error * 1.001, "{weight} for {value}");
        found += usize::from(weight["attribute"].is_string());
    }
    assert!(found > 50, "{found}");
    assert!(stdout(&["inspect", &out]).starts_with("Model image of a chain over sequences (i16)\n"));
}

#[test]
fn c_and_rust_are_compiled() {
    let (folder, model) = trained();
    let (c, rust) = (path(&folder, "model.h"), path(&folder, "model.rs"));
    let image = path(&folder, "model.img");
    for (form, out) in [("c", &c), ("rust", &rust), ("image", &image)] {
        stdout(&["export", "--model", &model, "--to", form, "--scalar", "i8", out]);
    }
    let words: Vec<u8> = fs::read(&image).unwrap();
    let main = path(&folder, "main.c");
    let program = path(&folder, "main");
    fs::write(
        &main,
        "#include <stdio.h>\n#include \"model.h\"\nint main(void) {\n  fwrite(model_words, 4, MODEL_WORDS, stdout);\n  fputs(model_labels[0], stdout);\n  return MODEL_LONGEST == 100 ? 0 : 1;\n}\n",
    )
    .unwrap();
    let cc = Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-o", &program, &main])
        .output()
        .unwrap();
    assert!(cc.status.success(), "{}", String::from_utf8_lossy(&cc.stderr));
    let ran = Command::new(&program).output().unwrap();
    assert!(ran.status.success());
    assert_eq!(&ran.stdout[..words.len()], &words);
    assert_eq!(&ran.stdout[words.len()..], b"B-NP");

    let main = path(&folder, "main.rs");
    fs::write(&main, "mod model;\nfn main() {\n    for w in model::MODEL { print!(\"{w:08x}\"); }\n    print!(\"{}\", model::LABELS[0]);\n    assert_eq!(model::LONGEST, 100);\n    let _ = (model::SCORES, model::BACK);\n}\n").unwrap();
    let rustc = Command::new("rustc")
        .args(["--edition", "2024", "-Adead_code", "-o", &program, &main])
        .output()
        .unwrap();
    assert!(rustc.status.success(), "{}", String::from_utf8_lossy(&rustc.stderr));
    let ran = Command::new(&program).output().unwrap();
    let expected: String =
        words.as_chunks::<4>().0.iter().map(|&w| format!("{:08x}", u32::from_le_bytes(w))).collect();
    assert_eq!(String::from_utf8(ran.stdout).unwrap(), expected + "B-NP");
}

#[test]
fn what_cannot_be_exported() {
    let (folder, model) = trained();
    let out = path(&folder, "out");
    let fails = |args: &[&str], code: i32, message: &str| {
        let run = run(&[&["export"], args].concat());
        assert_eq!(run.code, code, "{}", run.stderr);
        assert!(run.stderr.contains(message), "{} is not in {}", message, run.stderr);
        assert_eq!(listing(folder.path()), ["pump.gib"]);
    };
    fails(
        &["--model", "spam.gib", "--to", "image", &out],
        1,
        "spam.gib: only models of sequences and tables",
    );
    fails(&["--model", &model, "--to", "image", "--max-length", "0", &out], 2, "0 is not in 1..=65535");
    fails(&["--model", &model, "--to", "elf", &out], 2, "invalid value 'elf'");
    fails(&["--model", &model, "--to", "c", "--format", "columns", &out], 2, "--check");
    fails(&["--model", &model, "--to", "c", "--check", "no.txt", &out], 1, "no.txt");
    fails(&["--model", &model, "--to", "c", "--check", "spam.svm", &out], 1, "spam.svm");
    fails(&["--model", &model, "--to", "c", "/nowhere/out"], 1, "there is no folder /nowhere");
    fails(&["--model", &model, "--to", "c", "-"], 2, "OUT is a file");
}

#[test]
fn damaged_images_are_refused_by_name() {
    let (folder, model) = trained();
    let out = path(&folder, "pump.img");
    stdout(&["export", "--model", &model, "--to", "image", &out]);
    let good = fs::read(&out).unwrap();
    let says = |bytes: &[u8], message: &str| {
        fs::write(&out, bytes).unwrap();
        let run = run(&["inspect", &out]);
        assert_eq!((run.code, run.stderr.trim_end()), (1, format!("error: {out}: {message}").as_str()));
    };
    says(&good[..good.len() - 4], "the image is shorter than it says");
    let mut bytes = good.clone();
    bytes[6] = 9;
    says(&bytes, "the image has version 9.0; this library reads 1.x");
    let mut bytes = good.clone();
    bytes[100] ^= 1;
    says(&bytes, "the image is damaged: its checksum does not fit");
    // For machines of the other byte order.
    let turned: Vec<u8> = good.as_chunks::<4>().0.iter().flat_map(|w| [w[3], w[2], w[1], w[0]]).collect();
    says(&turned, "the image is for machines of the other byte order");
    // Longer sequences than planned are said, not fatal.
    let run = run(&[
        "export",
        "--model",
        &model,
        "--to",
        "image",
        "--max-length",
        "2",
        "--check",
        "pump.test.txt",
        &out,
    ]);
    assert_eq!(run.code, 0);
    assert!(run.stderr.contains("longer than --max-length 2"), "{}", run.stderr);
}

/// A field over a table with a number and a discrete input: its folder, data and model.
fn trained_field() -> (TempDir, String, String) {
    let folder =
        folder(&[("t.csv", b"a,b,x,k\n0,0,1.5,u\n1,1,-2,v\n0,1,0.5,u\n1,0,0,v\n1,1,-1,u\n0,0,2,v\n")]);
    let (data, model) = (path(&folder, "t.csv"), path(&folder, "t.gib"));
    let train =
        ["train", "--format", "table", &data, "--outputs", "a,b", "--inputs", "*", "--l2", "1", "--quiet"];
    stdout(&[&train[..], &["--standardize", "--structure", "chain", "--model", &model]].concat());
    (folder, data, model)
}

#[test]
fn a_field_is_exported_and_inspected() {
    let (folder, data, model) = trained_field();
    let out = path(&folder, "t.img");
    let said = stdout(&["export", "--model", &model, "--to", "image", "--attributes", "exact", &out]);
    assert!(said.contains("2 variables, 3 factors, 3 attributes, 12 weights in f32"), "{said}");
    let checked = ["export", "--model", &model, "--to", "image", "--check", &data, "--json", &out];
    let found = &json(&stdout(&checked))["check"];
    assert_eq!((&found["rows"], &found["different_labels"]), (&6.into(), &0.into()), "{found}");
    let error = found["worst_probability_error"].as_f64().unwrap();
    assert!(error > 0.0 && error < 1e-6, "{found}");
    let run_with = |data: &str| run(&["export", "--model", &model, "--to", "image", "--check", data, &out]);
    let wrong = run_with("spam.svm");
    assert!(wrong.code == 1 && wrong.stderr.contains("spam.svm"), "{}", wrong.stderr);
    let seen = stdout(&["inspect", &out]);
    assert!(seen.contains("a junction tree") && seen.contains("  b: 0, 1"), "{seen}");
    let source = path(&folder, "model.rs");
    stdout(&["export", "--model", &model, "--to", "rust", &source]);
    let source = fs::read_to_string(source).unwrap();
    assert!(
        source.contains("pub const K_U: u32") && source.contains("pub const TABLES: usize = 8;"),
        "{source}"
    );
    let header = path(&folder, "model.h");
    stdout(&["export", "--model", &model, "--to", "c", &header]);
    let header = fs::read_to_string(header).unwrap();
    assert!(header.contains("For gibbsite_field_open.") && header.contains("ATTRIBUTE_K_U"), "{header}");
    assert!(header.contains("#define MODEL_LABELS 4u"), "{header}");
}

#[test]
fn a_field_in_fixed_point_says_how_inputs_are_prepared() {
    let (folder, data, model) = trained_field();
    for (scalar, most) in [("i16", 1e-3), ("i8", 0.02)] {
        let out = path(&folder, "t.img");
        let args = ["export", "--model", &model, "--to", "image", "--scalar", scalar, "--check", &data, &out];
        let found = json(&stdout(&[&args[..], &["--json"]].concat()));
        assert_eq!((&found["scalar"], &found["ram_loopy_bytes"]), (&scalar.into(), &serde_json::Value::Null));
        assert_eq!(found["standardised"][0]["attribute"], "x");
        let check = &found["check"];
        let number = |name: &str| check[name].as_f64().unwrap();
        assert!(number("worst_error") <= number("score_error_bound"), "{check}");
        assert!(number("worst_probability_error") < most && number("saturated_rows") == 0.0, "{check}");
        assert_eq!(check["different_labels"], 0);
        let said = stdout(&args);
        assert!(said.contains(&format!("weights in {scalar}")) && said.contains("(bound "), "{said}");
        assert!(said.contains("give") && said.contains("(x - "), "{said}");
        let seen = stdout(&["inspect", &out]);
        assert!(seen.contains(&format!("weights in {scalar}")) && seen.contains("largest errors"), "{seen}");
        assert_eq!(json(&stdout(&["inspect", "--json", &out]))["scalar"], scalar);
    }
    let header = path(&folder, "model.h");
    stdout(&["export", "--model", &model, "--to", "c", "--scalar", "i16", &header]);
    let header = fs::read_to_string(header).unwrap();
    assert!(header.contains("x less ") && header.contains(", divided by "), "{header}");
    assert!(header.contains("#define MODEL_MEMORY_LOOPY 0u"), "{header}");
}

#[test]
fn a_scheme_is_in_the_image() {
    let (folder, model) = trained();
    let out = path(&folder, "pump.img");
    stdout(&["export", "--model", &model, "--to", "image", "--scheme", "bio", "--quiet", &out]);
    let inspected: serde_json::Value =
        serde_json::from_str(&stdout(&["inspect", "--parameters", "--json", &out])).unwrap();
    let text = inspected.to_string();
    // JSON has no infinities: what is forbidden is null.
    assert!(text.contains("null"), "{text}");
}
