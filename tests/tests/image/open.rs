//! `Image::open` on good, damaged, foreign and hostile words.

use gibbsite::export::{ExportParams, Exported, Naming, Scalar, export};
use gibbsite::model::SequenceModel;
use gibbsite_core::error::{ImageError, InferError, SectionFault};
use gibbsite_core::image::{Checksum, Image, OPTIONAL, Weight, id, marginals_len};
use gibbsite_core::infer::stream::{Decoder, decoder_len, lagged_back_len, whole_back_len};
use gibbsite_tests::regression::rng;
use gibbsite_tests::sequence::model;
use proptest::prelude::*;
use proptest::sample::select;
use rand::RngExt;

const SCALARS: [Scalar; 3] = [Scalar::F32, Scalar::I16, Scalar::I8];
const NAMINGS: [Naming; 3] = [Naming::Hash, Naming::Exact, Naming::Numbers];

fn exported(seed: u64, scalar: Scalar, naming: Naming) -> (SequenceModel, Exported) {
    let mut rng = rng(seed);
    let (labels, attributes) = (rng.random_range(1..6), rng.random_range(0..8));
    let model = model(labels, attributes, 2.0, &mut rng);
    let forbidden = if labels > 1 && seed.is_multiple_of(2) { vec![(0, 1)] } else { vec![] };
    let params = ExportParams { scalar, naming, longest: 9, forbidden };
    let exported = export(&model, &params).unwrap();
    (model, exported)
}

/// Puts the right checksum on words.
pub(crate) fn seal(words: &mut [u32]) {
    words[4] = 0;
    let mut sum = Checksum::default();
    sum.add(words);
    words[4] = sum.finish();
}

/// Runs everything on an image that was opened.
fn use_all<W: Weight>(image: &Image<'_>, value: W::Value, marginals: impl Fn(&Image<'_>, &[W::Score])) {
    let view = image.chain::<W>().unwrap();
    let labels = view.labels();
    assert!((1..=256).contains(&labels));
    let items: Vec<Vec<(u32, W::Value)>> = (0..4)
        .map(|t| (0..image.attributes().min(20) as u32).map(|a| ((a + t) % 20, value)).collect())
        .collect();
    let mut scores = vec![W::Score::default(); decoder_len(labels)];
    let mut back = vec![0; whole_back_len(4, labels)];
    let mut decoder = Decoder::whole(view, 4, &mut scores, &mut back).unwrap();
    let mut rows = Vec::new();
    for item in &items {
        let mut row = vec![W::Score::default(); labels];
        if view.score(item, &mut row).is_ok() {
            rows.extend_from_slice(&row);
        }
        let _ = decoder.push(item);
    }
    let mut path = vec![0; 4];
    decoder.finish(&mut path).unwrap();
    assert!(path.iter().all(|&l| usize::from(l) < labels));
    let mut back = vec![0; lagged_back_len(2, labels)];
    let mut decoder = Decoder::lagged(view, 2, &mut scores, &mut back).unwrap();
    for item in &items {
        if let Ok(Some(label)) = decoder.push(item) {
            assert!(usize::from(label) < labels);
        }
    }
    marginals(image, &rows);
    for a in 0..image.attributes() as u32 {
        let _ = image.attribute_name(a).map(Iterator::count);
    }
    for l in 0..=255 {
        assert_eq!(image.label(l).is_some(), usize::from(l) < labels && image.label(0).is_some());
    }
    let _ = (image.attribute(b"attribute 1"), image.false_positive_rate());
}

fn use_image(image: &Image<'_>) {
    fn fixed<W: Weight<Score = i32>>(image: &Image<'_>, rows: &[i32]) {
        let view = image.chain::<W>().unwrap();
        let mut logs = rows.to_vec();
        match view.log_marginals(&mut logs, &mut vec![0; marginals_len(view.labels())]) {
            Ok(()) => assert!(logs.iter().all(|&l| l <= 0) || rows.is_empty() || view.labels() == 1),
            Err(e) => assert!(matches!(e, InferError::Shape | InferError::ZeroProbability)),
        }
    }
    match image.scalar() {
        Scalar::F32 => use_all::<f32>(image, 1.5, |_, _| {}),
        Scalar::I16 => use_all::<i16>(image, 98_304, fixed::<i16>),
        Scalar::I8 => use_all::<i8>(image, 65_536, fixed::<i8>),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_was_written_is_opened(seed in any::<u64>(), s in 0..3usize, n in 0..3usize, more in 0..5usize) {
        let (model, exported) = exported(seed, SCALARS[s], NAMINGS[n]);
        let mut words = exported.words.clone();
        // Flash behind the image does not matter.
        words.extend(std::iter::repeat_n(u32::MAX, more));
        let image = Image::open(&words).unwrap();
        prop_assert_eq!(image.scalar(), SCALARS[s]);
        prop_assert_eq!(image.bytes(), exported.info.flash);
        prop_assert_eq!(image.longest(), 9);
        for (l, name) in model.alphabet.labels.iter().enumerate() {
            prop_assert!(image.label(l as u8).unwrap().eq(name.bytes()));
        }
        for (a, name) in model.alphabet.attributes.iter().enumerate() {
            let number = exported.attributes[a];
            let found = image.attribute(name.as_bytes());
            prop_assert_eq!(found, number.filter(|_| n < 2));
            if let (Some(number), Naming::Exact) = (number, NAMINGS[n]) {
                prop_assert!(image.attribute_name(number).unwrap().eq(name.bytes()));
            }
        }
        if NAMINGS[n] == Naming::Exact {
            prop_assert_eq!(image.attribute(b"nobody's"), None);
            prop_assert_eq!(image.false_positive_rate(), 0.0);
        }
        use_image(&image);
    }

    #[test]
    fn every_flipped_bit_is_found(seed in any::<u64>(), s in 0..3usize) {
        let (_, exported) = exported(seed, SCALARS[s], Naming::Exact);
        let mut words = exported.words;
        for w in 0..words.len() {
            for bit in 0..32 {
                words[w] ^= 1 << bit;
                prop_assert!(Image::open(&words).is_err(), "word {}, bit {}", w, bit);
                words[w] ^= 1 << bit;
            }
        }
        prop_assert!(Image::open(&words).is_ok());
    }

    #[test]
    fn every_truncation_is_found(seed in any::<u64>(), s in 0..3usize) {
        let (_, exported) = exported(seed, SCALARS[s], Naming::Hash);
        for end in 0..exported.words.len() {
            prop_assert!(Image::open(&exported.words[..end]).is_err());
        }
    }

    /// Changed words under a right checksum: refused, or an image that everything runs on.
    #[test]
    fn hostile_words_do_no_harm(
        seed in any::<u64>(),
        s in 0..3usize,
        n in 0..3usize,
        edits in proptest::collection::vec((any::<u32>(), select(vec![0u32, 1, 2, 5, 300, 1 << 16, 1 << 31, u32::MAX, 0x7fc0_0000, 0xff80_0000]), any::<bool>()), 1..4),
    ) {
        let (_, exported) = exported(seed, SCALARS[s], NAMINGS[n]);
        let mut words = exported.words;
        for (at, value, near) in edits {
            // Half of them in the header, the section table and the first sections.
            let range = if near { words.len().min(60) } else { words.len() };
            let at = at as usize % range;
            if ![0, 2, 4].contains(&at) {
                words[at] = value;
            }
        }
        seal(&mut words);
        if let Ok(image) = Image::open(&words) {
            use_image(&image);
        }
    }
}

#[test]
fn any_words_are_refused_or_opened() {
    let mut rng = rng(7);
    for len in 0..200 {
        let mut words: Vec<u32> = (0..len).map(|_| rng.random()).collect();
        assert_eq!(Image::open(&words).unwrap_err(), ImageError::NotAnImage);
        if len >= 8 {
            // A header that gets through to the section table.
            words[0] = gibbsite_core::image::MAGIC;
            words[1] = 1 << 16;
            words[2] = gibbsite_core::image::MARK;
            words[3] = len as u32;
            words[5] = rng.random_range(0..len as u32);
            words[6..8].fill(0);
            seal(&mut words);
            assert!(Image::open(&words).is_err());
        }
    }
}

#[test]
fn each_fault_has_its_name() {
    let mut all = (0..).map(|seed| exported(2 * seed + 1, Scalar::F32, Naming::Hash));
    let (model, exported) = all.find(|(_, e)| e.info.weights > 0).expect("a model with weights");
    let good = exported.words;
    let kept = exported.attributes.iter().position(Option::is_some).expect("an attribute with weights");
    let name = model.alphabet.attributes.name(kept as u32).unwrap().as_bytes();
    let fault = |change: &dyn Fn(&mut Vec<u32>)| {
        let mut words = good.clone();
        change(&mut words);
        seal(&mut words);
        Image::open(&words).unwrap_err()
    };
    let swapped: Vec<u32> = good.iter().map(|w| w.swap_bytes()).collect();
    assert_eq!(Image::open(&swapped).unwrap_err(), ImageError::Endianness);
    assert_eq!(Image::open(&good[..7]).unwrap_err(), ImageError::Truncated);
    assert_eq!(fault(&|w| w[1] = 2 << 16 | 3), ImageError::Version { major: 2, minor: 3 });
    let message = ImageError::Version { major: 2, minor: 3 }.to_string();
    assert_eq!(message, "the image has version 2.3; this library reads 1.x");
    assert_eq!(fault(&|w| w[3] += 1), ImageError::Truncated);
    let mut damaged = good.clone();
    *damaged.last_mut().unwrap() ^= 1;
    assert_eq!(Image::open(&damaged).unwrap_err(), ImageError::Checksum);
    let section = |section, why| ImageError::Section { section, why };
    assert_eq!(fault(&|w| w[8] = id::LABELS), section(id::LABELS, SectionFault::Order));
    assert_eq!(fault(&|w| w[9] = 3), section(id::SHAPE, SectionFault::Bounds));
    assert_eq!(fault(&|w| w[10] = u32::MAX), section(id::SHAPE, SectionFault::Bounds));
    assert_eq!(fault(&|w| w[10] -= 1), section(id::SHAPE, SectionFault::Length));
    // The last section of this image is that of attributes; as another one it is unknown, or skipped if it may be.
    let last = 8 + 3 * (good[5] as usize - 1);
    assert_eq!(good[last], id::ATTRIBUTES | OPTIONAL);
    assert_eq!(fault(&|w| w[last] = 99), section(99, SectionFault::Unknown));
    let mut skipped = good.clone();
    skipped[last] = 99 | OPTIONAL;
    seal(&mut skipped);
    let image = Image::open(&skipped).unwrap();
    assert_eq!(image.attribute(name), None);
    assert_eq!(Image::open(&good).unwrap().attribute(name), exported.attributes[kept]);
    // A later minor version is fine.
    let mut minor = good.clone();
    minor[1] += 7;
    seal(&mut minor);
    assert!(Image::open(&minor).is_ok());
    // NaN among the weights.
    let weights = 8 + 3 * (id::STATE_WEIGHTS as usize - 1);
    let at = good[weights + 1] as usize;
    assert_eq!(fault(&|w| w[at] = f32::NAN.to_bits()), section(id::STATE_WEIGHTS, SectionFault::Value));
    assert_eq!(Image::open(&good).unwrap().chain::<i16>().unwrap_err(), ImageError::Scalar(Scalar::F32));
}
