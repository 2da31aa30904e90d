//! UAI files and evidence: round trips, faults and their places, and reduction against enumeration.

use gibbsite::data::network::{Evidence, EvidenceError, Network};
use gibbsite::data::uai::{self, ModelKind, UaiErrorKind};
use proptest::prelude::*;

/// A small model as plain data: what the oracle works on.
#[derive(Clone, Debug)]
struct Plain {
    cards: Vec<u32>,
    factors: Vec<(Vec<u32>, Vec<f64>)>,
    evidence: Vec<(u32, u32)>,
}

impl Plain {
    fn network(&self) -> Network {
        let mut network = Network::with_cards(self.cards.clone()).unwrap();
        for (scope, values) in &self.factors {
            network.push_factor(scope, values.iter().copied()).unwrap();
        }
        network
    }

    fn of(network: &Network) -> Self {
        let factors = (0..network.factors()).map(|k| (network.scope(k).to_vec(), network.table(k).to_vec()));
        Self { cards: network.cards().to_vec(), factors: factors.collect(), evidence: vec![] }
    }

    fn score(&self, labels: &[u32]) -> f64 {
        let mut sum = 0.0;
        for (scope, values) in &self.factors {
            // The last variable has stride 1.
            let (mut at, mut stride) = (0, 1);
            for &v in scope.iter().rev() {
                at += labels[v as usize] as usize * stride;
                stride *= self.cards[v as usize] as usize;
            }
            sum += values[at];
        }
        sum
    }

    /// All assignments that agree with the evidence, by counting.
    fn assignments(&self) -> Vec<Vec<u32>> {
        let total: u32 = self.cards.iter().product();
        let digits = |mut i: u32| {
            let take = |&c: &u32| (i % c, i /= c).0;
            self.cards.iter().map(take).collect::<Vec<u32>>()
        };
        let agrees = |x: &Vec<u32>| self.evidence.iter().all(|&(v, l)| x[v as usize] == l);
        (0..total).map(digits).filter(agrees).collect()
    }

    /// log Z and flat marginals (zeros if Z = 0), by enumeration.
    fn enumerate(&self) -> (f64, Vec<f64>) {
        let scored: Vec<_> = self.assignments().into_iter().map(|x| (self.score(&x), x)).collect();
        let top = scored.iter().map(|(s, _)| *s).fold(f64::NEG_INFINITY, f64::max);
        let mut marginals: Vec<Vec<f64>> = self.cards.iter().map(|&c| vec![0.0; c as usize]).collect();
        if top == f64::NEG_INFINITY {
            return (top, marginals.concat());
        }
        let z: f64 = scored.iter().map(|(s, _)| (s - top).exp()).sum();
        for (s, x) in &scored {
            for (m, &l) in marginals.iter_mut().zip(x) {
                m[l as usize] += (s - top).exp() / z;
            }
        }
        (top + z.ln(), marginals.concat())
    }
}

fn log_values(len: usize) -> impl Strategy<Value = Vec<f64>> {
    let value = prop_oneof![8 => -5.0..5.0f64, 1 => Just(f64::NEG_INFINITY)];
    proptest::collection::vec(value, len)
}

fn plain() -> impl Strategy<Value = Plain> {
    let cards = proptest::collection::vec(1u32..4, 1..6);
    cards.prop_flat_map(|cards| {
        let all: Vec<u32> = (0..cards.len() as u32).collect();
        let most = cards.len().min(4);
        // `subsequence` picks, `prop_shuffle` forgets the order: the scopes are not sorted.
        let scope = proptest::sample::subsequence(all.clone(), 0..=most).prop_shuffle();
        let of_scope = cards.clone();
        let factor = scope.prop_flat_map(move |scope| {
            let len = scope.iter().map(|&v| of_scope[v as usize] as usize).product();
            (Just(scope), log_values(len))
        });
        let observed = proptest::sample::subsequence(all, 0..=cards.len());
        let of_label = cards.clone();
        let evidence = observed.prop_flat_map(move |vs| {
            vs.into_iter().map(|v| (Just(v), 0..of_label[v as usize])).collect::<Vec<_>>()
        });
        (Just(cards), proptest::collection::vec(factor, 0..9), evidence)
            .prop_map(|(cards, factors, evidence)| Plain { cards, factors, evidence })
    })
}

fn close(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= 1e-12 * a.abs().max(1.0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reduction_agrees_with_enumeration(plain in plain()) {
        let (log_z, marginals) = plain.enumerate();
        let evidence = Evidence::from_pairs(plain.evidence.iter().copied()).unwrap();
        let reduced = plain.network().reduce(&evidence).unwrap();
        prop_assert!(reduced.network.graph().is_ok());
        let small = Plain::of(&reduced.network);
        let (small_log_z, small_marginals) = small.enumerate();
        prop_assert!(close(log_z, small_log_z + reduced.constant), "{log_z} {small_log_z}");
        if log_z > f64::NEG_INFINITY {
            let full = reduced.expand_marginals(&small_marginals).unwrap();
            prop_assert_eq!(full.len(), marginals.len());
            for (a, b) in full.iter().zip(&marginals) {
                prop_assert!((a - b).abs() < 1e-12, "{full:?} {marginals:?}");
            }
        }
        for x in small.assignments() {
            let full = reduced.expand_assignment(&x).unwrap();
            prop_assert!(close(plain.score(&full), small.score(&x) + reduced.constant));
            prop_assert_eq!(plain.network().log_potential(&full), Some(plain.score(&full)));
            prop_assert!(plain.evidence.iter().all(|&(v, l)| full[v as usize] == l));
        }
        // What was promised of the shape.
        prop_assert!(small.cards.iter().all(|&c| c > 1));
        prop_assert!(reduced.kept.windows(2).all(|w| w[0] < w[1]));
        let mut sets: Vec<_> = small.factors.iter().map(|(s, _)| { let mut s = s.clone(); s.sort(); s }).collect();
        sets.sort();
        prop_assert!(sets.windows(2).all(|w| w[0] != w[1]), "{sets:?} not merged");
        prop_assert!(sets.iter().all(|s| !s.is_empty()));
    }

    #[test]
    fn models_survive_a_round_trip(plain in plain(), bayes: bool) {
        let network = plain.network();
        let kind = if bayes { ModelKind::Bayes } else { ModelKind::Markov };
        let mut text = Vec::new();
        let written = uai::write_model(&mut text, kind, &network);
        let all_zero = |(_, t): &(Vec<u32>, Vec<f64>)| t.iter().all(|&v| v == f64::NEG_INFINITY);
        if plain.factors.iter().any(all_zero) {
            prop_assert!(written.is_err());
            return Ok(());
        }
        written.unwrap();
        let back = uai::read_model(&text).unwrap();
        prop_assert_eq!(back.kind, kind);
        let back = Plain::of(&back.network);
        prop_assert_eq!(&back.cards, &plain.cards);
        prop_assert_eq!(back.factors.len(), plain.factors.len());
        for ((scope, values), (scope_back, values_back)) in plain.factors.iter().zip(&back.factors) {
            prop_assert_eq!(scope, scope_back);
            for (&a, &b) in values.iter().zip(values_back) {
                // One rounding of e^a (relative) and one of the logarithm.
                prop_assert!(a == b || (a - b).abs() <= f64::EPSILON * (1.0 + a.abs()), "{a} {b}");
            }
        }
        // From the first reading on, the text is a fixed point up to the last digit, so read again.
        let evidence = Evidence::from_pairs(plain.evidence).unwrap();
        let mut text = Vec::new();
        uai::write_evidence(&mut text, &evidence).unwrap();
        prop_assert_eq!(uai::read_evidence(&text, &plain.cards), Ok(evidence));
    }

    #[test]
    fn results_survive_a_round_trip(log_z in -1e4..1e4f64, rows in proptest::collection::vec(proptest::collection::vec(0.0..1.0f64, 1..4), 0..5)) {
        let mut text = Vec::new();
        uai::write_pr(&mut text, log_z).unwrap();
        prop_assert_eq!(uai::read_pr(&text).unwrap(), log_z / 10f64.ln());
        let cards: Vec<u32> = rows.iter().map(|r| r.len() as u32).collect();
        text.clear();
        uai::write_mar(&mut text, &cards, &rows.concat()).unwrap();
        let back = uai::read_mar(&text).unwrap();
        prop_assert_eq!(back.iter().map(<[f64]>::to_vec).collect::<Vec<_>>(), rows);
    }

    /// Every spelling of a number is read as the standard library reads it.
    #[test]
    fn numbers_are_read_correctly_rounded(number in "[0-9]{0,19}\\.?[0-9]{0,20}([eE][+-]?[0-9]{0,3})?", gap in "[ \t\n]|#|//|") {
        let text = format!("MARKOV 1 2 1 1 0 2 1 {number}{gap}");
        let read = uai::read_model(text.as_bytes()).map(|m| m.network.table(0)[1]);
        match number.parse::<f64>() {
            Ok(x) if x.is_finite() => {
                // All its digits: exact, and too long for any shortcut of the reader.
                let spelled = format!("MARKOV 1 2 1 1 0 2 1 {x:.1100}");
                let same = uai::read_model(spelled.as_bytes()).map(|m| m.network.table(0)[1]);
                prop_assert_eq!(read, same, "{}", number);
            }
            _ => prop_assert!(read.is_err(), "{} was read as {:?}", number, read),
        }
    }

    /// Whatever the bytes: an answer or an error, whose place exists.
    #[test]
    fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        for error in [uai::read_model(&bytes).err(), uai::read_evidence(&bytes, &[2, 3]).err(), uai::read_mar(&bytes).err()]
            .into_iter()
            .flatten()
        {
            prop_assert!(error.line >= 1 && error.column >= 1 && error.line <= bytes.len() + 1);
        }
    }

    /// A valid file with one token replaced, one removed, or the end cut off.
    #[test]
    fn a_damaged_model_is_read_or_refused(plain in plain(), at in any::<proptest::sample::Index>(), with in "-?[0-9]{1,3}|nan|1e400|x|") {
        let mut text = Vec::new();
        if uai::write_model(&mut text, ModelKind::Markov, &plain.network()).is_ok() {
            let text = String::from_utf8(text).unwrap();
            let mut tokens: Vec<&str> = text.split_whitespace().collect();
            let at = at.index(tokens.len());
            if let Ok(model) = uai::read_model(tokens[..at].join(" ").as_bytes()) {
                prop_assert!(false, "cut off at token {at} but read as {model:?}");
            }
            tokens[at] = &with;
            if let Ok(model) = uai::read_model(tokens.join("\n").as_bytes()) {
                prop_assert!(model.network.graph().is_ok());
            }
        }
    }
}

/// `(file, message)`; the files have one fault each.
const MALFORMED: &[(&str, &str)] = &[
    ("", "line 1, end of file: the file is empty, expected the preamble MARKOV or BAYES"),
    (
        " \r\n# only a comment",
        "line 2, end of file: the file is empty, expected the preamble MARKOV or BAYES",
    ),
    ("\n MRF\n", "line 2, token 1: found `MRF`, expected the preamble MARKOV or BAYES"),
    ("MARKOV2 1 2 0", "line 1, token 1: found `MARKOV2`, expected the preamble MARKOV or BAYES"),
    ("MARKOV\n\n", "line 1, end of file: the file ends here, expected the number of variables"),
    (
        "MARKOV\n2.0\n",
        "line 2, token 1: found `2.0`, expected the number of variables, a whole number of at least 0",
    ),
    (
        "MARKOV\n-3\n",
        "line 2, token 1: found `-3`, expected the number of variables, a whole number of at least 0",
    ),
    (
        "MARKOV\n1000000000000000000\n2 2",
        "line 2, token 1: found `1000000000000000000`, expected the number of variables, at most 4294967294",
    ),
    ("MARKOV\n4000000000\n2 2", "line 3, end of file: the file ends here, expected the arity of variable 2"),
    ("MARKOV\n3\n2 0 2\n0", "line 3, token 2: variable 1 has arity 0, expected at least 1"),
    (
        "MARKOV\n1\n99999999999999999999\n0",
        "line 3, token 1: found `99999999999999999999`, expected the arity of variable 0, at most 4294967294",
    ),
    ("MARKOV\n1\n2", "line 3, end of file: the file ends here, expected the number of factors"),
    (
        "MARKOV\n1\n2\n4000000000",
        "line 4, end of file: the file ends here, expected the number of variables of factor 0",
    ),
    (
        "MARKOV\n1\n2\n2\n1 0\n",
        "line 5, end of file: the file ends here, expected the number of variables of factor 1",
    ),
    ("MARKOV\n2\n2 2\n1\n2 0\n", "line 5, end of file: the file ends here, expected a variable of factor 0"),
    (
        "MARKOV\n2\n2 2\n1\n2 0 2\n4 1 1 1 1",
        "line 5, token 3: factor 0 names variable 2, but the model has variables 0 to 1",
    ),
    (
        "MARKOV\n2\n2 2\n1\n2 -1 0\n4 1 1 1 1",
        "line 5, token 2: factor 0 names variable -1, but the model has variables 0 to 1",
    ),
    ("MARKOV\n0\n1\n1 0\n1 1", "line 4, token 2: factor 0 names variable 0, but the model has no variables"),
    (
        "MARKOV\n2\n2 2\n1\n2 0 x\n",
        "line 5, token 3: found `x`, expected a variable of factor 0, a whole number of at least 0",
    ),
    ("MARKOV\n2\n2 2\n2\n1 0\n2 1 1\n", "line 6, token 3: factor 1 names variable 1 twice"),
    (
        "MARKOV\n2\n2 2\n1\n33 0 1\n",
        "line 5, token 1: found `33`, expected the number of variables of factor 0, at most 32",
    ),
    (
        "MARKOV\n2\n4000000000 4000000000\n1\n2 0 1\n16000000000000000000 1",
        "line 6, token 1: with factor 0 the tables have more than 4294967295 entries",
    ),
    (
        "MARKOV\n2\n65536 65536\n1\n2 0 1\n4294967295 1",
        "line 6, token 1: with factor 0 the tables have more than 4294967295 entries",
    ),
    (
        "MARKOV\n1\n4000000000\n1\n1 0\n4000000000 1 2",
        "line 6, end of file: the file ends here, expected entry 3 of 4000000000 of factor 0",
    ),
    (
        "MARKOV\n2\n2 3\n1\n2 0 1\n\n5\n1 1 1 1 1",
        "line 7, token 1: the table of factor 0 announces 5 entries, expected 6, the product of its arities",
    ),
    (
        "MARKOV\n1\n2\n1\n1 0\n",
        "line 5, end of file: the file ends here, expected the number of entries of factor 0",
    ),
    (
        "MARKOV\n1\n2\n1\n1 0\n\n2\n0.5 \n\n",
        "line 8, end of file: the file ends here, expected entry 2 of 2 of factor 0",
    ),
    (
        "MARKOV\n1\n2\n1\n1 0\n\n2\n0.5 -0.5",
        "line 8, token 2: found `-0.5`, expected entry 2 of 2 of factor 0, a finite number of at least 0",
    ),
    (
        "MARKOV\n1\n2\n1\n1 0\n\n2\nNaN 1",
        "line 8, token 1: found `NaN`, expected entry 1 of 2 of factor 0, a finite number of at least 0",
    ),
    (
        "MARKOV\n1\n2\n1\n1 0\n\n2\n1 inf",
        "line 8, token 2: found `inf`, expected entry 2 of 2 of factor 0, a finite number of at least 0",
    ),
    (
        "MARKOV\n1\n2\n1\n1 0\n\n2\n1 1e400",
        "line 8, token 2: found `1e400`, expected entry 2 of 2 of factor 0, a finite number of at least 0",
    ),
    (
        "MARKOV\n1\n2\n1\n1 0\n\n2\n1 0,5",
        "line 8, token 2: found `0,5`, expected entry 2 of 2 of factor 0, a finite number of at least 0",
    ),
    (
        "MARKOV\n1\n2\n1\n1 0\n\n2\n1 a\u{1b}[31mb",
        "line 8, token 2: found `a\\u{1b}[31mb`, expected entry 2 of 2 of factor 0, a finite number of at least 0",
    ),
    (
        "MARKOV\n1\n2\n2\n1 0\n1 0\n\n2 1 1\n\n2\n0 1e-400",
        "line 10, token 1: every entry of factor 1 is zero, expected at least one possible configuration",
    ),
    (
        "MARKOV\n1\n2\n1\n1 0\n2 1 1 // fine\n7 8",
        "line 7, token 1: found `7` after the last table, expected the end of the file",
    ),
];

#[test]
fn faults_are_named_with_their_place() {
    for (text, message) in MALFORMED {
        match uai::read_model(text.as_bytes()) {
            Err(error) => assert_eq!(&error.to_string(), message, "in {text:?}"),
            Ok(model) => panic!("{text:?} was read as {model:?}"),
        }
    }
}

#[test]
fn a_long_or_foreign_token_is_shown_short() {
    let text = [b"MARKOV ".as_slice(), &[b'9'; 100_000]].concat();
    let message = uai::read_model(&text).unwrap_err().to_string();
    assert!(message.contains(&format!("`{}…`", "9".repeat(40))) && message.len() < 200, "{message}");
    let message = uai::read_model(b"M\xff\x00").unwrap_err().to_string();
    assert_eq!(message, "line 1, token 1: found `M\u{fffd}\\0`, expected the preamble MARKOV or BAYES");
}

#[test]
fn numbers_and_white_space_of_the_wild() {
    let text = "\u{feff}markov // a comment\r\n+2\t# another\r\n2\x0c1\r\n\
        2\r\n2 0 1 # scope\r\n0\r\n\r\n2\r\n 1.E+3\x0b.5 \r\n01\r\n1e-05//end";
    let model = uai::read_model(text.as_bytes()).unwrap();
    assert_eq!(model.kind, ModelKind::Markov);
    assert_eq!(model.network.cards(), &[2, 1]);
    let table = |k| model.network.table(k).iter().map(|v| v.exp()).collect::<Vec<_>>();
    for (found, wanted) in [(table(0), vec![1e3, 0.5]), (table(1), vec![1e-5])] {
        assert_eq!(found.len(), wanted.len());
        assert!(found.iter().zip(&wanted).all(|(a, b)| (a / b - 1.0).abs() < 1e-14), "{found:?}");
    }
    let zeros = uai::read_model(b"BAYES 1 4 1 1 0 4 0 1e-400 -0 1").unwrap().network;
    let minus = f64::NEG_INFINITY;
    assert_eq!(zeros.table(0), &[minus, minus, minus, 0.0]);
    assert_eq!(uai::read_model(b"MARKOV 0 0").unwrap().network, Network::new());
    // Mantissas just above multiples of 2^64: small numbers to a reader that lets them wrap around.
    for text in
        ["18446744073709551617", "184467440737.09551617", "368934881474191032330", "0.000000000000000000001"]
    {
        let model = uai::read_model(format!("MARKOV 1 2 1 1 0 2 1 {text}").as_bytes()).unwrap();
        let log = text.parse::<f64>().unwrap().ln();
        assert!((model.network.table(0)[1] - log).abs() < 1e-13, "{text}");
    }
}

/// P(x0 = 1) is 0.9 if the last variable of a scope varies fastest, and 0.5 or 0.1 otherwise.
#[test]
fn the_order_of_a_scope_matters() {
    let marginal = |text: &[u8]| Plain::of(&uai::read_model(text).unwrap().network).enumerate().1[1];
    assert!((marginal(b"MARKOV 2 2 2 1 2 0 1 4 0.05 0.05 0.45 0.45") - 0.9).abs() < 1e-15);
    assert!((marginal(b"MARKOV 2 2 2 1 2 1 0 4 0.05 0.05 0.45 0.45") - 0.5).abs() < 1e-15);
    // Unequal arities, the scope not ascending, and a second factor over the same set in another order.
    let text = b"MARKOV 3 2 3 2 2 3 2 0 1 3 1 2 0 12 1 2 3 4 5 6 7 8 9 10 11 12 12 1 1 1 1 1 1 1 1 1 1 1 5";
    let network = uai::read_model(text).unwrap().network;
    assert_eq!(network.scope(0), &[2, 0, 1]);
    // (x2, x0, x1) = (1, 0, 2) is entry 1·6 + 0·3 + 2 = 8 of the first, (2, 1, 0) entry 10 of the second.
    assert_eq!(network.log_potential(&[0, 2, 1]), Some(9f64.ln()));
    // (1, 1, 2) is the last of both.
    assert!(close(network.log_potential(&[1, 2, 1]).unwrap(), 60f64.ln()));
    let merged = network.reduce(&Evidence::new()).unwrap().network;
    assert_eq!((merged.factors(), merged.scope(0)), (1, &[2, 0, 1][..]));
    assert!(close(merged.log_potential(&[1, 2, 1]).unwrap(), 60f64.ln()));
    assert_eq!(merged.log_potential(&[0, 2, 1]), Some(9f64.ln()));
}

#[test]
fn evidence_in_both_forms() {
    let cards = [2, 3, 4, 2];
    let read = |text: &str| uai::read_evidence(text.as_bytes(), &cards).map(|e| e.pairs().to_vec());
    for text in ["", " \n", "0", "0\n", "1 0", "1\n0\n", "# none\n"] {
        assert_eq!(read(text), Ok(vec![]), "{text:?}");
    }
    for text in
        ["2 2 3 0 1", "1\n2 2 3 0 1\n", "\u{feff}1\r\n2\t2 3\r\n0 1", "3 2 3 0 1 2 3", "2 2 3\n0 1 // two"]
    {
        assert_eq!(read(text), Ok(vec![(0, 1), (2, 3)]), "{text:?}");
    }
    assert_eq!(read("1 3 1"), Ok(vec![(3, 1)]));
    assert_eq!(read("1 1 3 1"), Ok(vec![(3, 1)]));
    // Also two counted samples (none; 3 = 0), but the 1-line form goes first.
    assert_eq!(read("2 0 1 3 0"), Ok(vec![(0, 1), (3, 0)]));
    for (text, message) in [
        (
            "3 0 1 1 0 2\n",
            "line 1, token 1: the evidence has 6 numbers, expected 7: the count 3, then a variable and a label each",
        ),
        (
            "0 1",
            "line 1, token 1: the evidence has 2 numbers, expected 1: the count 0, then a variable and a label each",
        ),
        (
            "1 2 0 1",
            "line 1, token 1: the evidence has 4 numbers, expected `1 variable label`, or 1 (sample), a count and as many pairs",
        ),
        (
            "9000000000000000000 0 1",
            "line 1, token 1: the evidence has 3 numbers, expected 18000000000000000001: the count 9000000000000000000, then a variable and a label each",
        ),
        ("2\n1 0 1\n1 0 0\n", "line 1, token 1: the file holds 2 evidence samples, expected 1"),
        (
            "-1",
            "line 1, token 1: found `-1`, expected a count, a variable or a label, a whole number of at least 0",
        ),
        (
            "1 x 0",
            "line 1, token 2: found `x`, expected a count, a variable or a label, a whole number of at least 0",
        ),
        (
            "1 0 1.0",
            "line 1, token 3: found `1.0`, expected a count, a variable or a label, a whole number of at least 0",
        ),
        ("1\n1 4 0", "line 2, token 2: the evidence names variable 4, but the model has variables 0 to 3"),
        ("1 -1 0", "line 1, token 2: the evidence names variable -1, but the model has variables 0 to 3"),
        ("2 0 1\n1 3", "line 2, token 2: variable 1 is observed as 3, but it has labels 0 to 2"),
        ("1 1 -2", "line 1, token 3: variable 1 is observed as -2, but it has labels 0 to 2"),
        ("2 1 2 1 0", "line 1, token 5: variable 1 is observed as 0, but before as 2"),
    ] {
        assert_eq!(read(text).unwrap_err().to_string(), message, "{text:?}");
    }
}

#[test]
fn results_are_written_on_one_line_and_read_as_published() {
    let text = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut text = Vec::new();
        write(&mut text);
        String::from_utf8(text).unwrap()
    };
    assert_eq!(text(&|t| uai::write_pr(t, -2.5 * 10f64.ln()).unwrap()), "PR\n-2.5\n");
    assert_eq!(
        text(&|t| uai::write_mar(t, &[2, 1], &[1e-7, 0.9999999, 1.0]).unwrap()),
        "MAR\n2 2 1e-7 0.9999999 1 1\n"
    );
    assert_eq!(text(&|t| uai::write_mar(t, &[], &[]).unwrap()), "MAR\n0\n");
    assert_eq!(text(&|t| uai::write_map(t, &[1, 0]).unwrap()), "MAP\n2 1 0\n");
    assert!(uai::write_mar(&mut Vec::new(), &[2], &[1.0]).is_err());
    assert_eq!(uai::read_pr(b"PR\r\n-11.4554\r\n"), Ok(-11.4554));
    assert_eq!(uai::read_pr(b"PR -inf"), Ok(f64::NEG_INFINITY));
    assert_eq!(
        uai::read_mar(b"MAR\n2 2 0.119203 0.880797 1 1 \n").unwrap().values,
        [0.119203, 0.880797, 1.0]
    );
    for (text, message) in [
        ("MAR 1", "line 1, token 1: found `MAR`, expected the header PR"),
        ("PR\nnan", "line 2, token 1: found `nan`, expected log10 of the partition function, a number"),
        ("PR\n1 2", "line 2, token 2: found `2` after log10 Z, expected the end of the file"),
    ] {
        assert_eq!(uai::read_pr(text.as_bytes()).unwrap_err().to_string(), message);
    }
    let error = uai::read_mar(b"MAR\n4000000000 4000000000 0.5").unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 2, end of file: the file ends here, expected a probability of variable 0"
    );
}

#[test]
fn what_the_format_cannot_say_is_not_written() {
    let write = |values: [f64; 2]| {
        let mut network = Network::with_cards([2]).unwrap();
        network.push_factor(&[0], values).unwrap();
        uai::write_model(&mut Vec::new(), ModelKind::Markov, &network).map_err(|e| e.to_string())
    };
    assert_eq!(write([0.0, f64::NEG_INFINITY]), Ok(()));
    assert_eq!(write([708.0, -708.0]), Ok(()));
    for [a, b] in [[0.0, -709.0], [710.0, 0.0], [-1e4, 0.0]] {
        assert!(write([a, b]).unwrap_err().contains("of factor 0 is not within the range"), "{a} {b}");
    }
    assert!(write([f64::NEG_INFINITY; 2]).is_err());
}

#[test]
fn evidence_that_does_not_fit_the_network() {
    let network = Network::with_cards([2, 3]).unwrap();
    let reduce = |v, x| network.reduce(&Evidence::from_pairs([(v, x)]).unwrap()).map(|r| r.kept);
    assert_eq!(reduce(1, 2), Ok(vec![0]));
    assert_eq!(reduce(1, 3), Err(EvidenceError::Label { variable: 1, label: 3, arity: 3 }));
    assert_eq!(reduce(2, 0), Err(EvidenceError::NoSuchVariable { variable: 2, variables: 2 }));
    let reduced = network.reduce(&Evidence::new()).unwrap();
    assert_eq!(reduced.expand_marginals(&[0.5; 4]), None);
    assert_eq!(reduced.expand_marginals(&[0.5; 6]), None);
    assert_eq!(reduced.expand_assignment(&[0]), None);
    assert_eq!(reduced.expand_assignment(&[0, 1, 0]), None);
}

#[test]
fn impossible_evidence_is_reported() {
    let text = b"MARKOV 3 2 2 2 3 2 0 1 1 2 2 1 2 4 1 0 1 1 2 1 2 4 1 1 1 1";
    let network = uai::read_model(text).unwrap().network;
    let constant = |pairs: &[(u32, u32)]| {
        network.reduce(&Evidence::from_pairs(pairs.iter().copied()).unwrap()).unwrap().constant
    };
    assert!(constant(&[(0, 0)]).is_finite());
    assert_eq!(constant(&[(0, 0), (1, 1)]), f64::NEG_INFINITY);
    // A factor that stays, but allows nothing; and two that allow nothing only together.
    let text = b"MARKOV 2 2 2 1 2 0 1 4 0 0 1 1";
    let network = uai::read_model(text).unwrap().network;
    let reduced = network.reduce(&Evidence::from_pairs([(0, 0)]).unwrap()).unwrap();
    assert_eq!((reduced.constant, reduced.network.factors()), (f64::NEG_INFINITY, 1));
    let text = b"MARKOV 1 2 2 1 0 1 0 2 0 1 2 1 0";
    let reduced = uai::read_model(text).unwrap().network.reduce(&Evidence::new()).unwrap();
    assert_eq!(reduced.constant, f64::NEG_INFINITY);
}

/// Errors can be told apart without reading their text.
#[test]
fn kinds_are_structured() {
    let error = uai::read_model(b"MARKOV\n1\n2\n1\n 1 7\n").unwrap_err();
    assert_eq!((error.line, error.column, error.token), (5, 4, Some(2)));
    assert_eq!(error.kind, UaiErrorKind::NoSuchVariable { factor: 0, found: "7".into(), variables: 1 });
}
