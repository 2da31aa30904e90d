//! Any bytes as a model file of sequences, and files whose sections were changed under a right checksum: refused, or a model that labels, is written and
//! opened again, never a panic.
#![no_main]

use arbitrary::{Result, Unstructured};
use gibbsite::data::sequences::{Format, ReadParams, Template, read_from, read_known_from};
use gibbsite::model::SequenceModel;
use gibbsite::model::sequence::Origin;
use gibbsite::par::Par;
use gibbsite::sequence::scheme::{Constraints, Scheme};
use gibbsite::sequence::tagger::{Tagger, Want};
use gibbsite::sequence::train::{TrainParams, train};
use gibbsite_fuzz::edited;
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

const TEXT: &[u8] = b"B-x a 1 B-x\nI-x b 1 I-x\nO a 2 O\n\nO c 2 O\nB-x b 1 B-x\n";

fn params() -> ReadParams {
    let template = Template::parse("U0:%x[0,1]\nU1:%x[0,2]\nB\nB1:%x[0,2]\n").expect("a template");
    ReadParams::new(Format::Columns(template))
}

/// Files of two small models: with few weights, and with attributes of edges.
static FILES: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| {
    let corpus = read_from(TEXT, &params()).expect("a good text");
    let file = |l1: f64| {
        let how = TrainParams { l1, l2: 0.1, max_iterations: 3, ..TrainParams::default() };
        let origin = Origin::Columns { template: "U0:%x[0,1]".into(), columns: 4 };
        train(&corpus, origin, "", &how, None, &mut |_, _| true).expect("a model").0.to_bytes()
    };
    [file(0.5), file(0.0)]
});

fn open(bytes: &[u8], want: Want) {
    let model = match SequenceModel::open(bytes) {
        Ok(model) => model,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    // As bytes: an objective that nobody knows is NaN.
    let written = model.to_bytes();
    assert_eq!(SequenceModel::open(&written).map(|again| again.to_bytes()), Ok(written));
    let labels: Vec<&str> = model.alphabet.labels.iter().collect();
    let constraints = Constraints::of(Scheme::Bio, &labels).unwrap_or_default();
    for model in [&model, &model.compact()] {
        let (sequences, _) = read_known_from(TEXT, &model.alphabet, &params()).expect("a good text");
        match Tagger::new(model, constraints.clone()).tag(&sequences, want, Par::Seq) {
            Ok(tagged) => {
                let inside = |y: &Vec<u32>| y.iter().all(|&l| (l as usize) < labels.len());
                assert!(tagged.iter().all(|t| t.labels.iter().all(inside)));
                assert!(tagged.iter().all(|t| t.marginals.iter().all(|p| p.is_finite())));
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

fn check(bytes: &[u8]) -> Result<()> {
    let u = &mut Unstructured::new(bytes);
    let want = Want {
        best: u.int_in_range(0..=3)?,
        marginals: u.arbitrary()?,
        probability: u.arbitrary()?,
        forced: u.arbitrary()?,
    };
    let file = u.choose(&FILES[..])?;
    open(&edited(u, file, &[*b"labl", *b"attr", *b"edge", *b"indx", *b"wght"])?, want);
    Ok(())
}

fuzz_target!(|bytes: &[u8]| {
    open(bytes, Want::default());
    let _ = check(bytes);
});
