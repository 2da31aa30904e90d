//! The same optima and the same labels as CRFsuite.
//!
//! Recorded with python-crfsuite 0.9.12 on CPython 3.11: `TRAIN` was appended as a `pycrfsuite.ItemSequence` of dictionaries (values of an attribute that is there
//! twice were added) to a `pycrfsuite.Trainer` after `select("lbfgs")` and `set_params` with
//! `{"c1": …, "c2": …, "feature.possible_states": …, "feature.possible_transitions": …, "epsilon": 1e-12, "delta": 1e-14, "period": 50, "max_iterations": 100000,
//! "num_memories": 20, "max_linesearch": 100}`. Objectives are the last `loss` of `trainer.logparser`, to the 6 decimals that it prints; enumeration with the
//! weights of `tagger.info()` gave the same. Labels are those of `pycrfsuite.Tagger` for `HELD`, with `log(tagger.probability(labels))`.
//!
//! CRFsuite minimises `-log p + c1‖w‖₁ + c2‖w‖²`, so `l1 = c1` and `l2 = 2·c2`. Its `feature.minfreq` of 0 drops attributes whose values with a label sum to
//! less than 0; there are none here.

use gibbsite::data::sequences::{Corpus, Format, ReadParams, read_from, read_known_from};
use gibbsite::model::sequence::Origin;
use gibbsite::par::Par;
use gibbsite::sequence::scheme::Constraints;
use gibbsite::sequence::tagger::{Tagger, Want};
use gibbsite::sequence::train::{Generate, TrainParams, train};
use gibbsite_tests::oracle::close;

/// A sequence a line, items separated by commas.
const TRAIN: &str = "\
D w=the len:-0.70, N w=x len:0.46 cap:0.5, D w=a len:0.60, N w=x len:2.53 cap:0.5 w=x, N w=cat len:1.65 cap:2, V w=run cap:0.5 w=run
D w=a len:-0.29, N w=cat cap:0.25, V w=x, D w=a len:0.49 cap:0.5, N w=dog cap:-0.5, V w=see w=see
N w=dog w=dog, V w=run len:0.67 cap:2, D w=x len:0.79 w=x, N w=cat, N w=dog len:1.68 cap:0.5 w=dog, N w=x
N w=cat
V w=run len:0.49 cap:-0.5 w=run
V w=x, D w=the len:1.30, N w=dog, V w=run len:-0.61 cap:2
D w=a cap:-0.5, N w=cat
V w=see len:-0.36, D w=a len:0.39, N w=dog len:1.02, V w=run len:0.23 w=run
V w=x len:0.65 cap:0.25, N w=x, V w=x cap:2
V w=x len:0.06, D w=x cap:2, N w=cat len:0.45 cap:-0.5
N w=cat len:2.26, V w=see len:0.18, N w=run len:1.51 cap:2, V w=x cap:0.5, N w=x cap:0.25, V w=see cap:0.5
V w=see len:1.06, N w=dog
D w=a cap:-0.5, N w=dog len:1.64 cap:-0.5
N w=run cap:0.5, V w=x cap:-0.5
N w=cat, V w=x len:2.08, D w=the len:-0.65 cap:0.5, V w=run len:0.12, D w=the cap:2
N w=run len:1.58, V w=x len:1.46 w=x, D w=the len:-0.43 w=the, N w=cat len:0.73, V w=see
D w=a len:-0.07, V w=run cap:-0.5 w=run, N w=cat, V w=see, D w=a w=a, N w=x len:1.73 cap:-0.5 w=x
N w=cat, V w=run len:1.76, D w=a
V w=run len:0.97 cap:0.25
N w=dog cap:-0.5, V w=see len:1.40, N w=x cap:2
D w=x w=x, N w=dog len:0.26 cap:2, V w=x w=x, D w=a len:0.12 w=a, N w=run, D w=x len:0.49 cap:0.5
N w=cat len:1.52, V w=x len:1.16, N w=run, V w=run, D w=x len:1.24 cap:2
D w=the len:-0.77
N w=dog len:1.60, V w=see, D w=x len:1.56
D w=x w=x, N w=cat w=cat, V w=run len:0.31, N w=dog w=dog
N w=run, V w=x len:0.92, D w=x
V w=see cap:2, D w=a len:1.35 cap:0.5 w=a, V w=run len:0.61 cap:0.25
D w=a len:0.28, N w=dog len:2.92
D w=the, V w=x len:2.01 w=x, N w=dog len:2.43 cap:0.25, V w=see len:0.15 cap:2, D w=x w=x, N w=x cap:2
V w=x cap:2, N w=x, V w=x, N w=dog";

const HELD: &str = "\
N w=dog cap:2, V w=see cap:0.25
N w=cat len:0.56, V w=x
N w=dog, V w=x w=x, N w=x, V w=x cap:-0.5
D w=a, N w=x len:1.48, V w=x, D w=x len:0.21 cap:0.25, V w=x, D w=the
D w=the len:0.66, V w=x, D w=the len:0.77, N w=cat len:2.17 cap:0.25, V w=x
V w=see, D w=the len:0.32 cap:0.5, N w=run len:0.45 cap:-0.5, N w=cat len:2.69 w=cat, V w=x cap:0.25
D w=x len:-0.99 w=x
N w=dog len:-0.07, D w=the len:0.85, N w=x len:1.45 cap:0.5, N w=x len:2.22, N w=dog cap:-0.5 w=dog, V w=see
V w=x len:1.01, N w=dog, V w=see cap:-0.5 w=see, N w=cat, V w=run
N w=x
D w=a len:0.45
V w=run len:1.52, D w=the len:-0.64, N w=run w=run";

fn text(short: &str) -> String {
    short.replace('\n', "\n\n").replace(", ", "\n").replace(' ', "\t") + "\n"
}

/// What CRFsuite found.
struct Recorded {
    c1: f64,
    c2: f64,
    possible: bool,
    features: usize,
    nonzeros: usize,
    objective: f64,
    labels: &'static str,
    log_probability: [f64; 12],
}

const RECORDED: [Recorded; 4] = [
    Recorded {
        c1: 0.0,
        c2: 0.5,
        possible: false,
        features: 23,
        nonzeros: 23,
        objective: 51.009467,
        labels: "NV NV NVDN DNVNVD NVDNV VDVNV D NVNVNV DNVNV D D VDV",
        log_probability: [
            -0.174631, -0.458444, -1.786513, -1.786542, -1.619337, -1.507474, -0.569827, -1.860076,
            -1.165075, -0.941861, -0.291162, -1.122629,
        ],
    },
    Recorded {
        c1: 0.0,
        c2: 0.5,
        possible: true,
        features: 36,
        nonzeros: 36,
        objective: 44.390197,
        labels: "NV NV NVDN DNVNVD DVDNV VDVNV D NDNVNV DNVNV D D VDV",
        log_probability: [
            -0.137532, -0.447849, -1.632952, -1.555698, -1.592861, -1.23456, -0.560032, -1.550297, -1.031827,
            -0.912278, -0.219017, -0.898636,
        ],
    },
    Recorded {
        c1: 0.3,
        c2: 0.1,
        possible: false,
        features: 23,
        nonzeros: 18,
        objective: 43.317242,
        labels: "NV NV NVNV DNVNVD DVDNV VDVNV D NDNVNV VNVNV D D VDV",
        log_probability: [
            -0.06912, -0.327638, -1.507723, -1.083198, -1.371409, -1.032551, -0.550945, -1.240568, -0.920415,
            -0.914616, -0.099482, -0.947889,
        ],
    },
    Recorded {
        c1: 0.3,
        c2: 0.1,
        possible: true,
        features: 36,
        nonzeros: 30,
        objective: 40.493845,
        labels: "NV NV NVNV DNVNVD DVDNV VDVNV D NDNVNV DNVNV D D VDV",
        log_probability: [
            -0.06988, -0.363436, -1.392623, -1.096661, -1.270139, -0.948611, -0.507395, -1.03964, -0.878005,
            -0.839351, -0.081855, -0.736465,
        ],
    },
];

#[test]
fn objectives_and_labels_are_those_of_crfsuite() {
    let read = ReadParams::new(Format::Crfsuite);
    let corpus: Corpus = read_from(text(TRAIN).as_bytes(), &read).unwrap();
    assert_eq!((corpus.sequences.len(), corpus.alphabet.labels.len()), (30, 3));
    for record in RECORDED {
        let params = TrainParams {
            l1: record.c1,
            l2: 2.0 * record.c2,
            tolerance: 1e-8,
            generate: Generate {
                all_states: record.possible,
                all_transitions: record.possible,
                ..Generate::default()
            },
            ..TrainParams::default()
        };
        let parameters = gibbsite::sequence::train::index(&corpus, params.generate).unwrap().len();
        assert_eq!(parameters, record.features);
        let (model, info) = train(&corpus, Origin::Crfsuite, "", &params, None, &mut |_, _| true).unwrap();
        assert!(close(info.end.objective, record.objective, 1e-6 / 50.0), "{}", info.end.objective);
        assert_eq!(info.end.nonzeros, record.nonzeros);
        let (held, _) = read_known_from(text(HELD).as_bytes(), &model.alphabet, &read).unwrap();
        let want = Want { probability: true, ..Want::default() };
        let tagged = Tagger::new(&model, Constraints::default()).tag(&held, want, Par::Seq).unwrap();
        let name = |&l: &u32| model.alphabet.labels.name(l).unwrap();
        let labels: Vec<String> = tagged.iter().map(|t| t.labels[0].iter().map(name).collect()).collect();
        assert_eq!(labels.join(" "), record.labels);
        for (tagged, expected) in tagged.iter().zip(record.log_probability) {
            assert!((tagged.log_probability[0] - expected).abs() < 2e-6, "{tagged:?} {expected}");
        }
    }
}
