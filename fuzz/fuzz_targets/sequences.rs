//! Any bytes as a CRFsuite file, or as a template and columns: an error or sequences, never a panic, and the same for chunks and
//! threads of any kind.
#![no_main]

use gibbsite::data::sequences::{
    Alphabet, Dictionary, Format, ReadParams, Sequences, Template, read_from, read_known_from,
};
use gibbsite::par::Par;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((&flags, mut text)) = bytes.split_first() else { return };
    let format = if flags & 1 == 0 {
        Format::Crfsuite
    } else {
        // The template ends with the first NUL.
        let end = text.iter().position(|b| *b == 0).unwrap_or(0);
        let Ok(source) = std::str::from_utf8(&text[..end]) else { return };
        text = text.get(end + 1..).unwrap_or_default();
        match Template::parse(source) {
            Ok(template) => Format::Columns(template),
            Err(error) => {
                assert!(!error.to_string().is_empty());
                return;
            }
        }
    };
    // Packed inputs are for the decoders.
    if text.starts_with(&[0x1f, 0x8b]) || text.starts_with(&[0x28, 0xb5]) {
        return;
    }
    let params = ReadParams {
        labelled: flags & 2 == 0,
        min_count: u64::from(flags >> 2 & 3),
        ..ReadParams::new(format)
    };
    let threads = 1 + usize::from(flags >> 4 & 1);
    let cut = ReadParams { chunk: 1 + usize::from(flags >> 5), par: Par::threads(threads), ..params.clone() };
    match (read_from(text, &params), read_from(text, &cut)) {
        (Ok(a), Ok(b)) => {
            assert_eq!(a, b);
            sane(&a.sequences, &a.alphabet);
            let (again, report) = read_known_from(text, &a.alphabet, &cut).expect("read before");
            sane(&again, &a.alphabet);
            assert_eq!(report.unknown_labels, 0);
            if a.report.rare == 0 {
                assert_eq!(again, a.sequences);
            }
            let (arena, ends) = a.alphabet.attributes.parts();
            assert_eq!(
                Dictionary::from_parts(arena.into(), ends.into()).as_ref(),
                Ok(&a.alphabet.attributes)
            );
        }
        (Err(a), Err(b)) => assert_eq!(a.to_string(), b.to_string()),
        (a, b) => panic!("whole: {a:?}, in chunks: {b:?}"),
    }
});

/// What holds for all sequences.
fn sane(sequences: &Sequences, alphabet: &Alphabet) {
    let mut items = 0;
    for sequence in sequences.iter() {
        assert!(sequence.items() > 0 && sequence.edge_attributes(0).is_empty());
        assert_eq!(sequence.range(), items..items + sequence.items());
        items += sequence.items();
        for t in 0..sequence.items() {
            let gold = sequence.gold(t);
            let labels = gold.known().into_iter().chain(sequences.set(gold).into_iter().flatten().copied());
            assert!({ labels }.all(|id| alphabet.labels.name(id).is_some()));
            for (id, value) in sequence.attributes(t).iter() {
                assert!(alphabet.attributes.name(id).is_some() && value.is_finite());
            }
            assert!(
                sequence.edge_attributes(t).iter().all(|&id| alphabet.edge_attributes.name(id).is_some())
            );
        }
    }
    assert_eq!(items, sequences.items());
}
