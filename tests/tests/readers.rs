//! Readers of data sets: what is written is read back, on any number of threads, packed or not, by way of a cache or not;
//! and every kind of bad input gets its message.

use gibbsite::data::cache::{self, CacheError, Key};
use gibbsite::data::dataset::{Dataset, Format, Names, ReadParams, Stored, read, read_cached, read_from};
use gibbsite::par::Par;
use gibbsite_core::column::Column;
use gibbsite_tests::packed::{gzip, zstd};
use proptest::prelude::*;
use std::fmt::Write;
use std::io::Cursor;
use std::path::{Path, PathBuf};

/// Rows of `(column, value)`, columns ascending and values not zero, and a label each.
type Samples = Vec<(f64, Vec<(u32, f64)>)>;

fn samples(columns: u32) -> impl Strategy<Value = Samples> {
    let number = prop_oneof![
        any::<i8>().prop_map(f64::from),
        -1e3..1e3,
        any::<f64>().prop_filter("finite", |x| x.is_finite()),
        (0u32..1_000_000, 0i32..9).prop_map(|(m, e)| f64::from(m) / 10f64.powi(e)),
    ];
    let dense = prop_oneof![Just(0.1), Just(0.5), Just(0.95)];
    (dense, 1usize..40).prop_flat_map(move |(dense, rows)| {
        let cell = prop::option::weighted(dense, number.clone());
        let row = (number.clone(), prop::collection::vec(cell, columns as usize));
        prop::collection::vec(row, rows).prop_map(|rows| {
            let nonzero = |cells: Vec<Option<f64>>| {
                (0..).zip(cells).filter_map(|(j, v)| Some((j, v.filter(|v| *v != 0.0)?))).collect()
            };
            rows.into_iter().map(|(label, cells)| (label, nonzero(cells))).collect()
        })
    })
}

fn svmlight(samples: &Samples, first: u32) -> String {
    let mut text = String::from("# made by a test\n\n");
    for (i, (label, row)) in samples.iter().enumerate() {
        write!(text, "{}{label}", if i % 3 == 0 && *label > 0.0 { "+" } else { "" }).unwrap();
        for (k, (j, v)) in row.iter().enumerate() {
            let space = ["\t", " ", "  "][(i + k) % 3];
            let index = j + first;
            match (i + k) % 4 {
                0 => write!(text, "{space}{index}:{v:e}").unwrap(),
                _ => write!(text, "{space}{index}:{v}").unwrap(),
            }
        }
        text.push_str([" # 5:6\n", "\r\n", "\n", " \n\n"][i % 4]);
    }
    text
}

fn csv(samples: &Samples, columns: u32, delimiter: char) -> String {
    let mut text = String::from("\"a \"\"0\"\"\"");
    for j in 1..columns {
        write!(text, "{delimiter}a{j}").unwrap();
    }
    writeln!(text, "{delimiter}\"y\ny\"").unwrap();
    for (i, (label, row)) in samples.iter().enumerate() {
        let mut cells = vec![0.0; columns as usize];
        row.iter().for_each(|&(j, v)| cells[j as usize] = v);
        for (k, v) in cells.iter().enumerate() {
            match (i + k) % 5 {
                0 => write!(text, "\"{v}\"{delimiter}").unwrap(),
                1 => write!(text, " {v:e} {delimiter}").unwrap(),
                _ => write!(text, "{v}{delimiter}").unwrap(),
            }
        }
        text.push_str(&label.to_string());
        text.push_str(["\n", "\r\n", " \n\n"][i % 3]);
    }
    text
}

fn params(format: Format, chunk: usize, threads: usize) -> ReadParams {
    ReadParams { format: Some(format), chunk, par: Par::threads(threads), ..ReadParams::default() }
}

/// A file that goes when the test ends.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("gibbsite-readers-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        Self(path)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Whether a data set is what was written, entry by entry.
fn same<V: Stored>(data: &Dataset<V>, samples: &Samples, columns: usize) {
    assert_eq!((data.matrix.rows(), data.matrix.columns()), (samples.len(), columns));
    let labels: Vec<f64> = samples.iter().map(|s| s.0).collect();
    assert_eq!(data.target, labels);
    for j in 0..columns {
        let expected: Vec<f64> = samples
            .iter()
            .map(|(_, row)| row.iter().find(|e| e.0 as usize == j).map_or(0.0, |e| e.1))
            .map(|v| V::from_f64(v).to_f64())
            .collect();
        let nonzeros = expected.iter().filter(|v| **v != 0.0).count();
        let column = data.matrix.column(j);
        assert_eq!(matches!(column, Column::Dense(_)), nonzeros * 2 >= samples.len(), "column {j}");
        let mut found = vec![0.0; samples.len()];
        column.iter::<V>().for_each(|(i, v)| found[i] = v.to_f64());
        assert_eq!(found, expected, "column {j}");
        if let Column::Sparse { rows, .. } = column {
            assert!(rows.is_sorted() && rows.len() == nonzeros);
        }
    }
}

fn unused_trailing(samples: &Samples) -> usize {
    samples.iter().flat_map(|s| &s.1).map(|e| e.0 as usize + 1).max().unwrap_or(0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn svmlight_comes_back(samples in samples(7), chunk in 1usize..300, threads in 1usize..=2, first in 0u32..2) {
        let text = svmlight(&samples, first);
        let columns = unused_trailing(&samples);
        let mut params = params(Format::Svmlight, chunk, threads);
        params.zero_based = Some(first == 0);
        for packed in [text.clone().into_bytes(), gzip(text.as_bytes()), zstd(text.as_bytes())] {
            let data: Dataset = read_from(&packed[..], &params).unwrap();
            same(&data, &samples, columns);
            assert_eq!(data.names, Names::Counted { first, len: columns });
            assert!(data.notes.is_empty());
        }
        let file = Temporary::new(&format!("{chunk}-{threads}-{first}.svm"), text.trim_end().as_bytes());
        same::<f64>(&read(file.path(), &params).unwrap(), &samples, columns);
    }

    #[test]
    fn csv_comes_back(samples in samples(5), chunk in 1usize..300, threads in 1usize..=2, d in 0usize..3) {
        let text = csv(&samples, 5, [',', ';', '\t'][d]);
        let params = params(Format::Csv, chunk, threads);
        let mut data: Dataset = read_from(text.as_bytes(), &params).unwrap();
        same(&data, &samples, 5);
        assert_eq!(data.names, Names::Columns(["a \"0\"", "a1", "a2", "a3", "a4"].map(String::from).to_vec()));
        let file = Temporary::new(&format!("{chunk}-{threads}-{d}.csv"), text.trim_end().as_bytes());
        same::<f64>(&read(file.path(), &params).unwrap(), &samples, 5);
        // Columns in the order of a model, some of them.
        let wanted = ["a3", "a1"].map(String::from).to_vec();
        let target = Some("y\ny".to_owned());
        let params = ReadParams { columns: Some(Names::Columns(wanted)), target, ..params };
        data = read_from(text.as_bytes(), &params).unwrap();
        let place = |j| match j { 3 => Some(0), 1 => Some(1), _ => None };
        let chosen: Samples = samples
            .iter()
            .map(|(y, row)| (*y, row.iter().filter_map(|&(j, v)| Some((place(j)?, v))).collect()))
            .collect();
        same(&data, &chosen, 2);
        assert_eq!(data.notes, ["3 columns that the model does not have are ignored"]);
    }

    #[test]
    fn caches_come_back(samples in samples(6)) {
        let file = Temporary::new("cached.svm", svmlight(&samples, 1).as_bytes());
        let params = params(Format::Svmlight, 1 << 20, 1);
        let data: Dataset = read(file.path(), &params).unwrap();
        let key = Key::of::<f64>(file.path(), &params).unwrap();
        let mut bytes = Cursor::new(Vec::new());
        cache::write_to(&mut bytes, &key, &data).unwrap();
        let bytes = bytes.into_inner();
        assert_eq!(cache::read_from::<f64>(&bytes[..], bytes.len() as u64, &key).unwrap(), data);
    }
}

fn refuse(format: Format, text: &[u8], expected: &str) {
    refuse_with(&ReadParams { format: Some(format), ..ReadParams::default() }, text, expected);
}

/// The same message for chunks and threads of any kind.
fn refuse_with(params: &ReadParams, text: &[u8], expected: &str) {
    for (chunk, threads) in [(1 << 20, 1), (1, 1), (7, 2)] {
        let params = ReadParams { chunk, par: Par::threads(threads), ..params.clone() };
        let error = read_from::<f64>(text, &params).expect_err(expected);
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn bad_svmlight() {
    let refuse = |text: &str, expected: &str| refuse(Format::Svmlight, text.as_bytes(), expected);
    refuse("", "the file is empty, expected `LABEL index:value …`, a sample a line");
    refuse("\n# nothing\n \n", "found no rows, expected `LABEL index:value …`, a sample a line");
    refuse("1 1:1\n\nx 1:2\n", "line 3: found `x`, expected a label, a finite number");
    refuse("1:1 2:2\n", "line 1: found `1:1`, expected a label, a finite number");
    refuse("nan 1:1\n", "line 1: found `nan`, expected a label, a finite number");
    refuse("1 1:1\n1,2 1:1", "line 2: found `1,2`, expected a label, a finite number");
    refuse("1 1:1\n# c\n1 1:x\n", "line 3: found `1:x`, expected a finite number after the colon");
    refuse("1 1:1\r\n1 1:nan\r\n", "line 2: found `1:nan`, expected a finite number after the colon");
    refuse("1 1:1 2:-inf\n", "line 1: found `2:-inf`, expected a finite number after the colon");
    refuse("1 1:1e999\n", "line 1: found `1:1e999`, expected a finite number after the colon");
    refuse("1 1:\n", "line 1: found `1:`, expected a finite number after the colon");
    refuse("1 1:2:3\n", "line 1: found `1:2:3`, expected a finite number after the colon");
    refuse("1 7\n", "line 1: found `7`, expected index:value");
    refuse("1 -1:5\n", "line 1: found `-1:5`, expected an index, a whole number, before the colon");
    refuse("1 a:5\n", "line 1: found `a:5`, expected an index, a whole number, before the colon");
    refuse("1 :5\n", "line 1: found `:5`, expected an index, a whole number, before the colon");
    refuse("1 1:1\n1 9:1 5:1\n", "line 2: found index 5 after 9, expected ascending order");
    refuse("1 1:1\n1 5:1 5:1\n", "line 2: found index 5 twice, expected each at most once");
    refuse("1 0:1 0:1\n", "line 1: found index 0 twice, expected each at most once");
    refuse("1 4294967295:1\n", "line 1: found index 4294967295, expected at most 4294967294");
    refuse(
        "1 99999999999999999999999:1\n",
        "line 1: found index 99999999999999999999999, expected at most 4294967294",
    );
    let one_based = ReadParams { zero_based: Some(false), ..ReadParams::default() };
    refuse_with(
        &one_based,
        b"1 1:1\n1 0:1\n",
        "line 2: found index 0, expected at least 1 (`--zero-based` for files that count from 0)",
    );
    let free = ReadParams { target_required: false, ..ReadParams::default() };
    refuse_with(
        &free,
        b"1:1\n2:5 3:4\n1 1:1\n",
        "line 3: found a label, but rows before have none; expected one in each row or in none",
    );
    refuse_with(
        &free,
        b"1 1:1\n2:5 3:x\n",
        "line 2: found no label, but rows before have one; expected one in each row or in none",
    );
    let error = read_from::<f32>(&b"1 1:1e39\n"[..], &ReadParams::default()).unwrap_err();
    assert_eq!(error.to_string(), "line 1: found `1:1e39`, too large for single precision");
    refuse_with(
        &ReadParams { columns: Some(Names::Columns(vec!["a".into()])), ..ReadParams::default() },
        b"1 1:1\n",
        "found svmlight data, expected CSV with the model's column names",
    );
}

#[test]
fn bad_csv() {
    let refuse = |text: &str, expected: &str| refuse(Format::Csv, text.as_bytes(), expected);
    let empty = "the file is empty, expected a header with column names, then rows of numbers";
    refuse("", empty);
    refuse("\n \r\n", empty);
    let no_rows = "found a header but no rows, expected a row of numbers for each sample";
    refuse("a,y", no_rows);
    refuse("a,y\n\n", no_rows);
    refuse("1,2\n3,4\n", "line 1: found only numbers, expected a header with column names");
    refuse("a,a,y\n1,2,3\n", "line 1: found two columns with the name `a`, expected different names");
    refuse(",a,y\n1,2,3\n", "line 1: column 1 has no name");
    refuse("y\n1\n", "line 1: found only the column `y`, expected features beside the target");
    refuse("a,b,y\n1,2,3\n1,2\n", "line 3: found 2 cells, expected 3 as in the header");
    refuse("a,b,y\n1,2,3,4\n", "line 2: found 4 cells, expected 3 as in the header");
    refuse("a,b,y\n1,,3\n", "line 2, column `b`: the cell is empty, expected a number");
    refuse("a,b,y\n1,2,\n", "line 2, column `y`: the cell is empty, expected a number");
    refuse("\"a\n\",b,y\n1,2,3\n\n1,NA,3\n", "line 5, column `b`: found `NA`, expected a finite number");
    refuse("a,b,y\n1,2,3\ninf,2,3\n", "line 3, column `a`: found `inf`, expected a finite number");
    refuse("a,b,y\n1,2,1e999\n", "line 2, column `y`: found `1e999`, expected a finite number");
    refuse("a;b;y\n1,5;2;3\n", "line 2, column `a`: found `1,5`, expected a finite number");
    refuse("a,b,y\n1,\"2,3\n", "line 2: found a quote that is not closed on its line");
    refuse("a,b,y\n1,\"2\n\",3\n", "line 2: found a quote that is not closed on its line");
    refuse("a,\"b", "line 1: found a quote in the header that is not closed");
    super_long_header();
    let params = ReadParams { format: Some(Format::Csv), ..ReadParams::default() };
    refuse_with(
        &ReadParams { target: Some("z".into()), ..params.clone() },
        b"a,b,y\n1,2,3\n",
        "line 1: found no column `z` for the target among `a`, `b`, `y`",
    );
    refuse_with(
        &ReadParams { columns: Some(Names::Columns(vec!["b".into(), "c".into()])), ..params.clone() },
        b"a,b,y\n1,2,3\n",
        "line 1: found no column `c`, which the model needs",
    );
    refuse_with(
        &ReadParams { columns: Some(Names::Counted { first: 1, len: 2 }), ..params },
        b"a,b,y\n1,2,3\n",
        "line 1: found CSV, expected svmlight data, as the model's features have numbers",
    );
}

fn super_long_header() {
    let text = format!("\"a,b\n{}", "1,2\n".repeat(5 << 20));
    let params = ReadParams { format: Some(Format::Csv), ..ReadParams::default() };
    let error = read_from::<f64>(text.as_bytes(), &params).unwrap_err();
    assert_eq!(error.to_string(), "line 1: the header does not end within 16 MiB");
}

#[test]
fn damaged_and_missing_files() {
    let whole = gzip("1 1:1\n".repeat(30_000).as_bytes());
    let error = read_from::<f64>(&whole[..whole.len() / 2], &ReadParams::default()).unwrap_err();
    assert!(error.to_string().starts_with("a damaged or truncated gzip file: "), "{error}");
    let error = read::<f64>("/no such file.svm", &ReadParams::default()).unwrap_err();
    assert_eq!(error.to_string(), "cannot read it: there is no such file (`-` is standard input)");
    let error = read::<f64>(std::env::temp_dir(), &ReadParams::default()).unwrap_err();
    assert_eq!(error.to_string(), "cannot read it: it is a folder, expected a file");
    let file = Temporary::new("empty.svm", b"");
    let error = read::<f64>(file.path(), &ReadParams::default()).unwrap_err();
    assert_eq!(error.to_string(), "the file is empty, expected `LABEL index:value …`, a sample a line");
}

#[test]
fn oddities_are_noted() {
    let read = |text: &str| read_from::<f64>(text.as_bytes(), &ReadParams::default()).unwrap();
    let data = read("1 1:2\n-1 0:3\n");
    assert_eq!(data.names, Names::Counted { first: 0, len: 2 });
    assert_eq!(data.notes, ["there is an index 0, so indices count from 0 (zero-based)"]);
    let data = read("\u{feff}1 qid:4 1:2\n2 qid:5 2:0 3:0\n");
    assert_eq!((data.matrix.columns(), data.matrix.nonzeros()), (3, 1));
    assert_eq!(data.notes, ["`qid:` groups are ignored"]);
    assert_eq!(read("1\n2\n").matrix.columns(), 0);
    let data = read("1 5:1 1000000000:2\n-1 7:3 4294967294:4\n");
    assert_eq!(data.names, Names::Numbers(vec![5, 7, 1_000_000_000, 4_294_967_294]));
    assert_eq!((data.names.name(2).as_str(), data.names.position("7")), ("1000000000", Some(1)));
    assert_eq!(data.matrix.product(&[1.0, 1.0, 1.0, 10.0]), [3.0, 43.0]);
    assert_eq!(data.notes, ["indices go up to 4294967294, but only 4 are used; the others get no columns"]);
    assert!(data.matrix.bytes() < 1000);
}

#[test]
fn a_model_chooses_its_columns() {
    let text = "1 1:1 5:2 1000000000:3\n1 2:4\n";
    let choose = |names: Names| {
        let params = ReadParams { columns: Some(names), ..ReadParams::default() };
        read_from::<f64>(text.as_bytes(), &params).unwrap()
    };
    let data = choose(Names::Counted { first: 1, len: 4 });
    assert_eq!(data.matrix.product(&[1.0, 10.0, 0.0, 0.0]), [1.0, 40.0]);
    assert_eq!(data.notes, ["2 entries of features that the model does not have are ignored"]);
    let data = choose(Names::Numbers(vec![2, 3, 1_000_000_000]));
    assert_eq!(data.matrix.product(&[1.0, 1.0, 1.0]), [3.0, 4.0]);
    let free = ReadParams { target_required: false, ..ReadParams::default() };
    let data: Dataset = read_from(&b"1:1\n2:1 # x\n"[..], &free).unwrap();
    assert_eq!((data.matrix.rows(), data.target.len()), (2, 0));
    let data: Dataset = read_from(&b"7 1:1\n8 2:1"[..], &free).unwrap();
    assert_eq!(data.target, [7.0, 8.0]);
    // Text in columns that the model does not know is of no concern.
    let names = Names::Columns(vec!["b".into()]);
    let format = Some(Format::Csv);
    let params = ReadParams { columns: Some(names), format, target: Some("y".into()), ..free };
    let data: Dataset = read_from(&b"id,b,c\n\"x, \"\"y\"\"\",2,\nz,3,NA"[..], &params).unwrap();
    assert_eq!((data.matrix.product(&[1.0]), data.target.len()), (vec![2.0, 3.0], 0));
}

#[test]
fn a_million_rows_in_windows() {
    // More than one window of a mapped file, and many chunks.
    let mut text = String::new();
    for i in 0..1_000_000u32 {
        writeln!(text, "{} 1:1 {}:0.{i} {}:{i}.25 # row {i}", i % 2, 2 + i % 50, 100 + i % 1000).unwrap();
    }
    assert!(text.len() > 36 << 20);
    let file = Temporary::new("million.svm", text.as_bytes());
    let one: Dataset = read(file.path(), &params(Format::Svmlight, 1 << 20, 1)).unwrap();
    assert_eq!(
        (one.matrix.rows(), one.matrix.columns(), one.matrix.nonzeros()),
        (1_000_000, 1099, 2_999_999)
    );
    assert_eq!(one.target.iter().sum::<f64>(), 500_000.0);
    assert!(matches!(one.matrix.column(0), Column::Dense(v) if v.iter().all(|v| *v == 1.0)));
    for (j, i) in [(99, 0), (99, 1000), (1098, 999), (1098, 999_999), (5, 4), (5, 999_954)] {
        let expected: f64 = if j == 5 { format!("0.{i}").parse().unwrap() } else { i as f64 + 0.25 };
        assert!(one.matrix.column(j).iter::<f64>().any(|e| e == (i, expected)), "row {i}, column {j}");
    }
    let two: Dataset = read(file.path(), &params(Format::Svmlight, 1 << 18, 2)).unwrap();
    assert!(one == two);
    drop(two);
    let streamed: Dataset = read_from(text.as_bytes(), &params(Format::Svmlight, 1 << 20, 2)).unwrap();
    assert!(one == streamed);
    text.push_str("1 5:1 4:1\n");
    let file = Temporary::new("million-bad.svm", text.as_bytes());
    let error = read::<f64>(file.path(), &params(Format::Svmlight, 1 << 20, 2)).unwrap_err();
    assert_eq!(error.to_string(), "line 1000001: found index 4 after 5, expected ascending order");
}

#[test]
fn lines_longer_than_chunks_and_windows() {
    let row: String = (1..20_000).fold(String::from("1"), |text, j| format!("{text} {j}:{j}"));
    let text = format!("{row}\n2 1:1\n{row}\n3 2:1");
    let file = Temporary::new("long.svm", text.as_bytes());
    for chunk in [16, 1000, 70_000] {
        let params = params(Format::Svmlight, chunk, 2);
        for data in [read(file.path(), &params), read_from(text.as_bytes(), &params)] {
            let data: Dataset = data.unwrap();
            assert_eq!(
                (data.matrix.rows(), data.matrix.columns(), data.matrix.nonzeros()),
                (4, 19_999, 40_000)
            );
            assert_eq!(data.target, [1.0, 2.0, 1.0, 3.0]);
        }
    }
}

#[test]
fn caches_are_used_renewed_and_refused() {
    let file = Temporary::new("c.svm", b"1 1:1\n2 3:4\n");
    let cache = Temporary::new("c.cache", b"");
    let params = ReadParams::default();
    let read = |params: &ReadParams| read_cached::<f64>(file.path(), cache.path(), params).unwrap();
    let first = read(&params);
    assert!(first.notes.is_empty());
    let written = std::fs::read(cache.path()).unwrap();
    assert_eq!(read(&params), first);
    assert_eq!(std::fs::read(cache.path()).unwrap(), written, "an up to date cache is not written again");
    let key = Key::of::<f64>(file.path(), &params).unwrap();
    assert_eq!(cache::load::<f64>(cache.path(), &key).unwrap(), first);
    assert!(matches!(cache::load::<f32>(cache.path(), &key), Err(CacheError::Stale)));

    // Each cut and each changed byte is found, and said in the note of the next reading.
    let mut kinds = std::collections::BTreeSet::new();
    for at in 0..written.len() {
        let mut bytes = written.clone();
        bytes[at] ^= 0x41;
        let error = cache::read_from::<f64>(&bytes[..], bytes.len() as u64, &key).unwrap_err();
        kinds.insert(error.to_string());
        let error = cache::read_from::<f64>(&written[..at], at as u64, &key).unwrap_err();
        kinds.insert(error.to_string());
    }
    let expected = [
        "a cache of other data, or of data that was read in another way",
        "a cache of version 1090519041, expected version 1",
        "a cache of version 16641, expected version 1",
        "a cache of version 4259841, expected version 1",
        "a cache of version 64, expected version 1",
        "a damaged cache: it does not have the right checksum",
        "a damaged cache: it is too short",
        "a damaged cache: its header does not have the right checksum",
        "a damaged cache: its length is not what the header says",
        "not a cache of gibbsite",
        "there is no cache",
    ];
    assert_eq!(kinds.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    std::fs::write(cache.path(), &written[..written.len() - 1]).unwrap();
    let noted = read(&params);
    let name = cache.path().display();
    let note = "a damaged cache: its length is not what the header says; read the data again";
    assert_eq!((noted.matrix, noted.notes), (first.matrix.clone(), vec![format!("{name}: {note}")]));
    assert_eq!(read(&params), first);

    // Other parameters, other data.
    let zero = read(&ReadParams { zero_based: Some(true), ..params.clone() });
    assert_eq!(zero.names, Names::Counted { first: 0, len: 4 });
    assert_eq!(zero.notes.len(), 1);
    std::fs::write(file.path(), "1 1:1\n2 3:5\n5 1:1\n").unwrap();
    assert_eq!(read(&params).target, [1.0, 2.0, 5.0]);
    assert!(read(&params).notes.is_empty());

    // Nobody's data is overwritten.
    std::fs::write(cache.path(), "my precious data\n").unwrap();
    let left = read(&params);
    assert_eq!(left.notes, [format!("{name}: not a cache of gibbsite, so it is left as it is")]);
    assert_eq!(std::fs::read(cache.path()).unwrap(), b"my precious data\n");
    let nowhere = Path::new("/no such folder/c.cache");
    let unwritten = read_cached::<f64>(file.path(), nowhere, &params).unwrap();
    assert!(unwritten.notes[0].starts_with("/no such folder/c.cache: could not write the cache: "));
}
