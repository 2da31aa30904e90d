//! Models of other programs score as they do there.

use gibbsite::data::sequences::{Format, ReadParams, Template, read_known_from};
use gibbsite::import::{ImportError, import};
use gibbsite::model::SequenceModel;
use gibbsite::model::sequence::Origin;
use gibbsite::par::Par;
use gibbsite::sequence::scheme::Constraints;
use gibbsite::sequence::tagger::{Tagged, Tagger, Want};

/// Made by python-crfsuite 0.9.12 (CRFsuite 0.12.2): `Trainer(algorithm="lbfgs")`, c1 = 0.05, c2 = 0.1, on 30 made-up sentences.
const MODEL: &[u8] = include_bytes!("../data/pump.crfsuite");
const TEXT: &str = "?\tw=a:1.0\tlen:0.2\tBOS:1.0\ta\\:b:0.5\n?\tw=valve:1.0\tlen:1.0\tp=a:1.0\ta\\:b:0.5\n?\tw=opens:1.0\tlen:1.0\tp=valve:1.0\ta\\:b:0.5\n?\tw=the:1.0\tlen:0.6\tp=opens:1.0\ta\\:b:0.5\n?\tw=river:1.0\tlen:1.0\tp=the:1.0\ta\\:b:0.5\n\n?\tw=a:1.0\tlen:0.2\tBOS:1.0\ta\\:b:0.5\n?\tw=river:1.0\tlen:1.0\tp=a:1.0\ta\\:b:0.5\n?\tw=opens:1.0\tlen:1.0\tp=river:1.0\ta\\:b:0.5\n";
/// What its `Tagger` says about those: tags, `probability(tags)`, `marginal(tag, t)`.
const TAGS: [&[&str]; 2] = [&["D", "N", "V", "D", "N"], &["D", "N", "V"]];
const PROBABILITY: [f64; 2] = [0.7895692293309039, 0.8116053713665766];
const MARGINAL: [&[f64]; 2] = [
    &[0.9382330571026078, 0.9647575758846395, 0.9701664563852542, 0.9594139585283809, 0.9167013595465799],
    &[0.9261846227038998, 0.8811965247203934, 0.9580505979442637],
];

fn tag(model: &SequenceModel, text: &str) -> Vec<Tagged> {
    let format = match &model.origin {
        Origin::Crfsuite => Format::Crfsuite,
        Origin::Columns { template, .. } => Format::Columns(Template::parse(template).unwrap()),
    };
    let (sequences, _) = read_known_from(text.as_bytes(), &model.alphabet, &ReadParams::new(format)).unwrap();
    let want = Want { marginals: true, probability: true, ..Want::default() };
    Tagger::new(model, Constraints::default()).tag(&sequences, want, Par::Seq).unwrap()
}

#[test]
fn crfsuite() {
    let model = import(MODEL).unwrap();
    let names: Vec<&str> = model.alphabet.labels.iter().collect();
    let again = SequenceModel::open(&model.to_bytes()).unwrap();
    assert_eq!((&again.theta, &again.index), (&model.theta, &model.index));
    assert!(again.facts.objective.is_nan());
    for (s, found) in tag(&again, TEXT).iter().enumerate() {
        let labels: Vec<&str> = found.labels[0].iter().map(|&l| names[l as usize]).collect();
        assert_eq!(labels, TAGS[s]);
        assert!((found.log_probability[0].exp() - PROBABILITY[s]).abs() < 1e-12);
        for (t, (&label, p)) in found.labels[0].iter().zip(MARGINAL[s]).enumerate() {
            assert!((found.marginals[t * names.len() + label as usize] - p).abs() < 1e-12);
        }
    }
}

#[test]
fn damaged_crfsuite_models_are_errors() {
    for end in 0..MODEL.len() {
        let _ = import(&MODEL[..end]);
    }
    assert_eq!(import(&MODEL[..40]).unwrap_err(), ImportError::Truncated);
    let mut bytes = MODEL.to_vec();
    bytes[12] = 99;
    assert!(import(&bytes).unwrap_err().to_string().contains("version 99"));
    for at in 0..MODEL.len() {
        let mut bytes = MODEL.to_vec();
        bytes[at] ^= 0x55;
        let _ = import(&bytes);
    }
    assert_eq!(import(b"something else").unwrap_err(), ImportError::Unknown);
}

/// By hand, after CRF++'s documentation: two labels; `U0` with the word, `U1` with the tag before, plain transitions and transitions by the word.
const CRFPP: &str = "version: 100\ncost-factor: 1\nmaxid: 14\nxsize: 1\n\nX\nY\n\nU0:%x[0,0]\nU1:%x[-1,0]\nB\nB1:%x[0,0]\n\n0 U0:a\n2 U1:_B-1\n4 U1:a\n6 B\n10 B1:b\n\n\
0.5\n-0.5\n0.25\n0\n0\n1\n0.1\n0.2\n0.3\n0.4\n1\n2\n3\n4\n";

#[test]
fn crfpp() {
    let model = import(CRFPP.as_bytes()).unwrap();
    let Origin::Columns { columns, .. } = model.origin else { panic!() };
    assert_eq!(columns, 2);
    let found = &tag(&model, "a ?\nb ?\n")[0];
    // score(y0, y1) = U0:a + U1:_B-1 (first), U1:a (second), B and B1:b on the transition.
    let first: [f64; 2] = [0.5 + 0.25, -0.5];
    let second = [0.0, 1.0];
    let pair = [0.1 + 1.0, 0.2 + 2.0, 0.3 + 3.0, 0.4 + 4.0];
    let score = |i: usize, j: usize| first[i] + second[j] + pair[2 * i + j];
    let z: f64 = [(0, 0), (0, 1), (1, 0), (1, 1)].iter().map(|&(i, j)| score(i, j).exp()).sum();
    assert_eq!(found.labels[0], [1, 1]);
    assert!((found.log_probability[0] - (score(1, 1) - z.ln())).abs() < 1e-12);
}

#[test]
fn damaged_crfpp_models_name_the_line() {
    for (from, to, what) in [
        ("xsize: 1", "xsize: one", "line 4: `"),
        ("version: 100", "version: 101", "line 1: "),
        ("10 B1:b", "ten B1:b", "line 18: expected a number and a feature"),
        ("10 B1:b", "12 B1:b", "line 18: the weights of `B1:b` lie beyond"),
        ("U1:%x[-1,0]", "U1:%x[-1", "the template"),
        ("maxid: 14", "maxid: 15", "14 weights, but the header says 15"),
        ("-0.5", "minus", "line 21: `minus` is no number"),
        ("-0.5", "inf", "a weight is inf"),
        ("X\nY\n", "X\nX\n", "line 7: the label `X` is there twice"),
    ] {
        let error = import(CRFPP.replacen(from, to, 1).as_bytes()).unwrap_err().to_string();
        assert!(error.contains(what), "{from} -> {to}: {error}");
    }
}
