//! Any bytes as UAI evidence: an error or observations that fit the model and are read back as written.
#![no_main]

use gibbsite::data::network::Network;
use gibbsite::data::uai::{read_evidence, write_evidence};
use libfuzzer_sys::fuzz_target;

const CARDS: [u32; 7] = [2, 3, 1, 2, 4, 100, 2];

fuzz_target!(|bytes: &[u8]| {
    // No variables, few, or more than any small number names.
    let [first, text @ ..] = bytes else { return };
    let cards = CARDS.get(..usize::from(*first) % (CARDS.len() + 1)).unwrap_or(&CARDS);
    let evidence = match read_evidence(text, cards) {
        Ok(evidence) => evidence,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    assert!(evidence.pairs().windows(2).all(|w| w[0].0 < w[1].0), "sorted, each variable once");
    for &(v, label) in evidence.pairs() {
        assert!(label < cards[v as usize]);
        assert_eq!(evidence.get(v), Some(label));
    }
    let mut written = Vec::new();
    assert!(write_evidence(&mut written, &evidence).is_ok());
    assert_eq!(read_evidence(&written, cards).ok().as_ref(), Some(&evidence));

    // A network of unary factors with small whole values: the observed ones become the constant, exactly.
    let Ok(mut network) = Network::with_cards(cards) else { panic!("legal arities refused") };
    for (v, &card) in cards.iter().enumerate() {
        let values = (0..card).map(|label| f64::from(label) + v as f64);
        assert!(network.push_factor(&[v as u32], values).is_ok());
    }
    let Ok(reduced) = network.reduce(&evidence) else { panic!("legal evidence refused") };
    // Variables of arity 1 leave as if they were observed.
    let fixed = |v: usize| evidence.get(v as u32).or((cards[v] == 1).then_some(0));
    let expected: f64 = (0..cards.len()).filter_map(|v| Some(f64::from(fixed(v)?) + v as f64)).sum();
    assert_eq!(reduced.constant, expected);
    assert_eq!(reduced.kept.len(), (0..cards.len()).filter(|&v| fixed(v).is_none()).count());
});
