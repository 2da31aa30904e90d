//! Labellings, probabilities and constraints against enumeration.

use crate::corpus::{Enumerated, Item, Key, Kind, Known, Labelling, Source, keys, log_sum, names};
use gibbsite::data::sequences::{Sequences, read_known_from};
use gibbsite::model::SequenceModel;
use gibbsite::model::sequence::{Facts, Origin};
use gibbsite::par::Par;
use gibbsite::sequence::scheme::{Constraints, Scheme};
use gibbsite::sequence::tagger::{TagError, Tagged, Tagger, Want};
use gibbsite::sequence::train::{Generate, index};
use gibbsite_tests::oracle::distance;
use gibbsite_tests::regression::{normal, rng};
use proptest::prelude::*;
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

const PLAIN: [&str; 3] = ["A", "B", "C"];
const BIO: [&str; 5] = ["O", "B-A", "I-A", "B-B", "I-B"];
const IOBES: [&str; 5] = ["O", "B-A", "I-A", "E-A", "S-A"];

/// Valid by the scheme's grammar: `O`, or a chunk: `B I*` (BIO); `S` or `B I* E` (IOBES).
fn valid(scheme: Option<Scheme>, labels: &[&str]) -> bool {
    let Some(scheme) = scheme else { return true };
    let mut rest = labels;
    while let [first, after @ ..] = rest {
        rest = after;
        let Some(kind) = first.strip_prefix("B-") else {
            match first.strip_prefix("S-") {
                Some(_) if scheme == Scheme::Iobes => continue,
                _ if *first == "O" => continue,
                _ => return false,
            }
        };
        while let [next, after @ ..] = rest
            && next.strip_prefix("I-") == Some(kind)
        {
            rest = after;
        }
        if scheme == Scheme::Iobes {
            match rest {
                [last, after @ ..] if last.strip_prefix("E-") == Some(kind) => rest = after,
                _ => return false,
            }
        }
    }
    true
}

/// A model with random weights for the parameters of a text; some are 0.
pub(crate) fn model(source: &Source, spread: f64, rng: &mut Xoshiro256PlusPlus) -> SequenceModel {
    let corpus = source.read();
    let generate = Generate {
        all_states: rng.random_bool(0.5),
        all_transitions: rng.random_bool(0.5),
        ..Generate::default()
    };
    let index = index(&corpus, generate).unwrap();
    let mut weight = || if rng.random_bool(0.2) { 0.0 } else { spread * normal(rng) };
    let theta = (0..index.len()).map(|_| weight()).collect();
    let facts = Facts {
        estimator: "mle".into(),
        solver: "none".into(),
        l1: 0.1,
        l2: 1.0 / 3.0,
        objective: 12.345_678_901_234_567,
        violation: 1e-7 / 3.0,
        iterations: 3,
        converged: false,
        sequences: corpus.sequences.len(),
        items: corpus.sequences.items(),
        data: "text".into(),
    };
    SequenceModel { alphabet: corpus.alphabet, index, theta, origin: Origin::Crfsuite, facts }
}

/// A text that the model has not seen, with a label and attributes that it does not know.
fn unseen(kind: Kind<'_>, rng: &mut Xoshiro256PlusPlus) -> Source {
    let mut source = Source::random(Kind { sequences: 20, partial: 0.6, ..kind }, rng);
    if !kind.columns {
        source.text.push_str("Unknown\ta0\tnever:3\n\n");
        let attributes = vec![("a0".into(), 1.0), ("never".into(), 3.0)];
        source.sequences.push(vec![Item {
            known: Known::One("Unknown".into()),
            attributes,
            edges: Vec::new(),
        }]);
    }
    source
}

/// What is possible of a sequence: score and labelling, the best first.
fn possible<'a>(
    all: &'a [Labelling],
    theta: &[f64],
    scheme: Option<Scheme>,
    forced: bool,
    labels: &[String],
) -> Vec<(f64, &'a Labelling)> {
    let allowed = |y: &&Labelling| {
        let named: Vec<&str> = y.labels.iter().map(|&l| labels[l].as_str()).collect();
        valid(scheme, &named) && (y.fits || !forced)
    };
    let mut list: Vec<(f64, &Labelling)> = all.iter().filter(allowed).map(|y| (y.score(theta), y)).collect();
    list.sort_by(|a, b| b.0.total_cmp(&a.0));
    list
}

/// One sequence.
fn compare(
    found: &Tagged,
    list: &[(f64, &Labelling)],
    want: Want,
    labels: usize,
    unknown: bool,
) -> Result<(), TestCaseError> {
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-11 * (1.0 + b.abs());
    prop_assert_eq!(found.labels.len(), want.best.min(list.len()));
    let log_z = log_sum(list.iter().map(|y| y.0));
    for (k, y) in found.labels.iter().enumerate() {
        let own = list.iter().find(|l| l.1.labels.iter().map(|&l| l as u32).eq(y.iter().copied()));
        let Some(own) = own else { return Err(TestCaseError::fail(format!("{y:?} is not possible"))) };
        prop_assert!(close(own.0, list[k].0), "number {} scores {}, not {}", k, own.0, list[k].0);
        prop_assert!(!found.labels[..k].contains(y), "{:?} twice", y);
        if want.probability || want.marginals {
            prop_assert!(close(found.log_probability[k], own.0 - log_z));
        }
    }
    if want.marginals {
        let mut marginals = vec![0.0; list[0].1.labels.len() * labels];
        for (score, y) in list {
            y.labels.iter().enumerate().for_each(|(t, l)| marginals[t * labels + l] += (score - log_z).exp());
        }
        prop_assert!(distance(&found.marginals, &marginals) < 1e-11);
    } else {
        prop_assert!(found.marginals.is_empty());
    }
    if want.probability {
        let fits = log_sum(list.iter().filter(|y| y.1.fits).map(|y| y.0)) - log_z;
        match found.gold {
            Some(gold) => prop_assert!(!unknown && close(gold, fits), "{} is {}", gold, fits),
            None => prop_assert!(unknown || fits == f64::NEG_INFINITY),
        }
    } else {
        prop_assert_eq!(found.gold, None);
    }
    Ok(())
}

fn known(source: &Source, model: &SequenceModel) -> Sequences {
    read_known_from(source.text.as_bytes(), &model.alphabet, &source.params).unwrap().0
}

fn constraints(scheme: Option<Scheme>, labels: &[String]) -> Constraints {
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    scheme.map_or(Constraints::default(), |scheme| Constraints::of(scheme, &labels).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn answers_match_enumeration(seed in any::<u64>(), columns in any::<bool>(), forced in any::<bool>()) {
        let mut rng = rng(seed);
        let (scheme, labels) =
            [(None, &PLAIN[..]), (Some(Scheme::Bio), &BIO[..]), (Some(Scheme::Iobes), &IOBES[..])][rng.random_range(0..3)];
        let spread = [1.0, 30.0][rng.random_range(0..2)];
        let kind = Kind { labels, sequences: 6, longest: 5, columns, partial: 0.1 };
        let model = model(&Source::random(kind, &mut rng), spread, &mut rng);
        let text = unseen(Kind { longest: if scheme.is_some() { 4 } else { 5 }, ..kind }, &mut rng);
        let labels = names(&model.alphabet);
        let keys: Vec<Key> = keys(&model.alphabet, &model.index);
        let oracle = Enumerated::new(&text, &labels, &keys);
        let sequences = known(&text, &model);
        let tagger = Tagger::new(&model, constraints(scheme, &labels));
        prop_assert_eq!(tagger.labels(), labels.len());
        let wants = [
            Want { forced, ..Want::default() },
            Want { best: 4, marginals: false, probability: true, forced },
            Want { best: 0, marginals: true, probability: false, forced },
            Want { best: 1000, marginals: true, probability: true, forced },
        ];
        let lists: Vec<_> = oracle.0.iter().map(|all| possible(all, &model.theta, scheme, forced, &labels)).collect();
        let first = lists.iter().position(Vec::is_empty);
        for want in wants {
            let found = tagger.tag(&sequences, want, Par::Seq);
            let threads = Par::threads(3).run(|par| tagger.tag(&sequences, want, par));
            prop_assert_eq!(&threads, &found);
            match (found, first) {
                (Ok(found), None) => {
                    prop_assert_eq!(found.len(), lists.len());
                    for ((found, list), items) in found.iter().zip(&lists).zip(&text.sequences) {
                        let unknown = items.iter().any(|i| matches!(&i.known, Known::One(n) if !labels.contains(n)));
                        compare(found, list, want, labels.len(), unknown)?;
                    }
                }
                (Err(error), Some(first)) => {
                    prop_assert_eq!(error.sequence, first);
                    let start = format!("sequence {} has no possible labelling", first + 1);
                    prop_assert!(error.to_string().starts_with(&start), "{}", error);
                }
                (found, first) => prop_assert!(false, "{:?}, but the first that is impossible is {:?}", found, first),
            }
        }
        // Those that are possible are labelled, whatever the others are.
        for (s, list) in lists.iter().enumerate() {
            let alone = Source { sequences: vec![text.sequences[s].clone()], text: part(&text.text, s), ..text.clone() };
            let want = Want { best: 3, marginals: true, probability: true, forced };
            let found = tagger.tag(&known(&alone, &model), want, Par::Seq);
            prop_assert_eq!(found.is_ok(), !list.is_empty());
            if let Ok(found) = found {
                let unknown = text.sequences[s].iter().any(|i| matches!(&i.known, Known::One(n) if !labels.contains(n)));
                compare(&found[0], list, want, labels.len(), unknown)?;
            }
        }
    }
}

/// Sequence `s` of a text.
fn part(text: &str, s: usize) -> String {
    text.split("\n\n").nth(s).expect("a sequence").to_owned() + "\n"
}

#[test]
fn contradictions_name_the_sequence() {
    let mut rng = rng(3);
    let kind = Kind { labels: &BIO, sequences: 6, longest: 5, columns: false, partial: 0.0 };
    let model = model(&Source::random(kind, &mut rng), 1.0, &mut rng);
    let read = |text: &str| {
        let params = gibbsite::data::sequences::ReadParams::new(gibbsite::data::sequences::Format::Crfsuite);
        read_known_from(text.as_bytes(), &model.alphabet, &params).unwrap().0
    };
    let tagger = Tagger::new(&model, constraints(Some(Scheme::Bio), &names(&model.alphabet)));
    let good = "B-A\ta0\nI-A\ta1\n\n".repeat(40);
    let forced = Want { forced: true, ..Want::default() };
    for (bad, cause) in
        [("I-A\ta0\n", 40), ("B-B\ta0\nI-A\ta0\n", 40), ("?\ta0\n{I-A|I-B}\tx\n\nO\nI-A\n", 41)]
    {
        let sequences = read(&format!("{good}{bad}"));
        for best in [1, 3] {
            let error: TagError = tagger.tag(&sequences, Want { best, ..forced }, Par::Seq).unwrap_err();
            assert_eq!(error.sequence, cause);
            assert!(
                error.to_string().starts_with(&format!("sequence {} has no possible", cause + 1)),
                "{error}"
            );
        }
        assert!(tagger.tag(&sequences, Want::default(), Par::Seq).is_ok());
    }
    let huge = read("?\ta0:1e308\ta0:1e308\ta0:1e308\n");
    let wild = SequenceModel { theta: vec![2.0; model.theta.len()], ..model.clone() };
    let error = Tagger::new(&wild, Constraints::default()).tag(&huge, Want::default(), Par::Seq).unwrap_err();
    assert!(
        error.sequence == 0 && error.to_string().contains("sequence 1 has scores beyond all bounds"),
        "{error}"
    );
}

/// What is forbidden is exactly what the grammar does not have, pair by pair.
#[test]
fn schemes_are_their_grammars() {
    for (scheme, labels, other) in [(Scheme::Bio, BIO, "E-A"), (Scheme::Iobes, IOBES, "L-A")] {
        let constraints = Constraints::of(scheme, &labels).unwrap();
        let allowed = |y: &[usize]| {
            !constraints.not_first.contains(&(y[0] as u32))
                && !constraints.not_last.contains(&(y[y.len() - 1] as u32))
                && y.windows(2).all(|w| !constraints.forbidden.contains(&(w[0] as u32, w[1] as u32)))
        };
        let mut both = 0;
        for positions in 1..=5 {
            for y in crate::corpus::labellings(5, positions) {
                let named: Vec<&str> = y.iter().map(|&l| labels[l]).collect();
                assert_eq!(allowed(&y), valid(Some(scheme), &named), "{named:?}");
                both += usize::from(allowed(&y));
            }
        }
        assert!(both > 100);
        let error = Constraints::of(scheme, &["O", other]).unwrap_err().to_string();
        assert!(error.contains(&format!("`{other}`")), "{error}");
    }
}
