//! Labels and probabilities of an image against enumeration of the model's labellings in `f64`.

use gibbsite::export::{ExportError, ExportParams, Exported, Naming, Scalar, export};
use gibbsite::model::SequenceModel;
use gibbsite_core::error::InferError;
use gibbsite_core::image::{ChainView, Image, Weight, marginals_len, smooth_len};
use gibbsite_core::infer::chain::{Chain, Transitions};
use gibbsite_core::infer::stream::{Decoder, Filter, decoder_len, filter_len, whole_back_len};
use gibbsite_tests::regression::rng;
use gibbsite_tests::sequence::{Item, items, labellings, model, score};
use proptest::prelude::*;
use rand::RngExt;

/// A value as a device has it.
pub(super) trait Value: Weight {
    fn value(x: f64) -> Self::Value;
}
impl Value for f32 {
    fn value(x: f64) -> f32 {
        x as f32
    }
}
impl Value for i16 {
    fn value(x: f64) -> i32 {
        (x * 65_536.0).round() as i32
    }
}
impl Value for i8 {
    fn value(x: f64) -> i32 {
        <i16 as Value>::value(x)
    }
}

pub(super) fn on_device<W: Value>(exported: &Exported, items: &[Item]) -> Vec<Vec<(u32, W::Value)>> {
    let known = |&(a, v): &(u32, f64)| exported.attributes[a as usize].map(|a| (a, W::value(v)));
    items.iter().map(|item| item.iter().filter_map(known).collect()).collect()
}

/// The image's labelling and score.
fn label<W: Value>(
    view: ChainView<'_, W>,
    items: &[Vec<(u32, W::Value)>],
) -> Result<(Vec<u32>, f64), InferError> {
    let labels = view.labels();
    let mut scores = vec![W::Score::default(); decoder_len(labels)];
    let mut back = vec![0; whole_back_len(view.longest(), labels)];
    let mut path = vec![0; items.len()];
    let score = view.label(items.iter().map(Vec::as_slice), &mut path, &mut scores, &mut back)?;
    Ok((path.into_iter().map(u32::from).collect(), view.total(score).into()))
}

pub(super) struct Case {
    model: SequenceModel,
    pub(super) items: Vec<Item>,
    pub(super) forbidden: Vec<(u32, u32)>,
    pub(super) exported: Exported,
}

pub(super) fn case(seed: u64, scalar: Scalar, spread: f64) -> Case {
    let mut rng = rng(seed);
    let (labels, count) = (rng.random_range(1..5), rng.random_range(1..6));
    let attributes = rng.random_range(0..8);
    let model = model(labels, attributes, spread, &mut rng);
    let items = items(&model, count, &mut rng);
    let forbid = |_: &(u32, u32)| rng.random_bool(0.15);
    let all = (0..labels as u32).flat_map(|i| (0..labels as u32).map(move |j| (i, j)));
    let forbidden: Vec<_> = if seed.is_multiple_of(3) { all.filter(forbid).collect() } else { vec![] };
    let params = ExportParams { scalar, longest: 6, forbidden: forbidden.clone(), ..ExportParams::default() };
    let exported = export(&model, &params).unwrap();
    Case { model, items, forbidden, exported }
}

impl Case {
    /// Score of a labelling in the model.
    pub(super) fn score(&self, y: &[u32]) -> f64 {
        let forbidden = y.windows(2).any(|w| self.forbidden.contains(&(w[0], w[1])));
        if forbidden { f64::NEG_INFINITY } else { score(&self.model, &self.items, y) }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (Vec<u32>, f64)> {
        labellings(self.model.alphabet.labels.len(), self.items.len()).map(|y| (y.clone(), self.score(&y)))
    }

    /// `P(y_t = j)` by enumeration.
    fn marginals(&self, top: f64) -> Vec<f64> {
        let labels = self.model.alphabet.labels.len();
        let mut sums = vec![0.0; self.items.len() * labels];
        let mut z = 0.0;
        for (y, s) in self.all() {
            let p = (s - top).exp();
            z += p;
            y.iter().enumerate().for_each(|(t, &l)| sums[t * labels + l as usize] += p);
        }
        sums.iter().map(|s| s / z).collect()
    }
}

fn check<W: Value>(seed: u64, spread: f64) -> Result<(), TestCaseError> {
    let case = case(seed, W::SCALAR, spread);
    let image = Image::open(&case.exported.words).unwrap();
    let view = image.chain::<W>().unwrap();
    let items = on_device::<W>(&case.exported, &case.items);
    let best = case.all().map(|(_, s)| s).fold(f64::NEG_INFINITY, f64::max);
    let found = label(view, &items);
    if best == f64::NEG_INFINITY {
        prop_assert_eq!(found, Err(InferError::ZeroProbability));
        return Ok(());
    }
    let (path, score) = found.map_err(|e| TestCaseError::fail(e.to_string()))?;
    let own = case.score(&path);
    let each = case.items.iter().flatten().filter(|(a, _)| case.exported.attributes[*a as usize].is_some());
    let values: f64 = each.clone().map(|(_, v)| v.abs()).sum();
    let rounded = each.filter(|(_, v)| *v != 1.0).count();
    let bound = f64::from(view.error_bound(case.items.len(), values as f32, rounded));
    // Single precision: relative to the terms. The answer of fixed point is told as an f32.
    let size: f64 = 20.0 + spread * 5.0 * (values + 5.0);
    let slack = 1e-6 * size;
    prop_assert!((score - own).abs() <= bound + slack, "{} for {}, bound {}", score, own, bound);
    prop_assert!(best - own <= 2.0 * bound + slack, "{} below the best, bound {}", best - own, bound);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn single_precision_finds_the_best(seed in any::<u64>()) {
        check::<f32>(seed, 2.0)?;
    }

    #[test]
    fn fixed_point_keeps_its_bound(seed in any::<u64>(), spread in 0.01..20.0f64) {
        check::<i16>(seed, spread)?;
        check::<i8>(seed, spread)?;
    }

    #[test]
    fn probabilities_in_single_precision(seed in any::<u64>()) {
        let case = case(seed, Scalar::F32, 1.5);
        let best = case.all().map(|(_, s)| s).fold(f64::NEG_INFINITY, f64::max);
        prop_assume!(best > f64::NEG_INFINITY);
        let exact = case.marginals(best);
        let image = Image::open(&case.exported.words).unwrap();
        let view = image.chain::<f32>().unwrap();
        let labels = view.labels();
        let mut rows = vec![0.0; exact.len()];
        for (row, item) in rows.chunks_mut(labels).zip(on_device::<f32>(&case.exported, &case.items)) {
            view.score(&item, row).unwrap();
        }
        let mut table = vec![0.0; labels * labels];
        view.transitions(&mut table).unwrap();
        let chain = view.plain(&rows, &table).unwrap();
        let mut singles = vec![0.0; exact.len()];
        let mut memory = vec![0.0; Chain::<f32>::forward_backward_len(case.items.len(), labels)];
        chain.forward_backward(&mut singles, None, &mut memory).unwrap();
        for (p, q) in singles.iter().zip(&exact) {
            prop_assert!((f64::from(*p) - q).abs() < 1e-4, "{} for {}", p, q);
        }
        // N best: the best is Viterbi's, and all are labellings of the model in falling order.
        let n = 3;
        let (mut paths, mut scores) = (vec![0; n * case.items.len()], vec![0.0; n]);
        let mut back = vec![0; Chain::<f32>::n_best_back_len(case.items.len(), labels, n)];
        let mut memory = vec![0.0; Chain::<f32>::n_best_len(labels, n)];
        let found = chain.n_best(n, &mut paths, &mut scores, &mut back, &mut memory).unwrap();
        let mut sorted: Vec<f64> = case.all().map(|(_, s)| s).filter(|s| s.is_finite()).collect();
        sorted.sort_by(|a, b| b.total_cmp(a));
        prop_assert_eq!(found, sorted.len().min(n));
        for (k, s) in scores.iter().take(found).enumerate() {
            prop_assert!((f64::from(*s) - sorted[k]).abs() < 1e-3);
        }
        // The filter's last distribution is the marginal of the last item.
        let mut memory = vec![0.0; filter_len(labels)];
        let mut filter = Filter::new(labels, |i, j| view.transition(i, j), &mut memory).unwrap();
        let mut last = vec![];
        for row in rows.chunks(labels) {
            last = filter.push(row).unwrap().to_vec();
        }
        for (p, q) in last.iter().zip(&exact[exact.len() - labels..]) {
            prop_assert!((f64::from(*p) - q).abs() < 1e-4);
        }
    }

    #[test]
    fn probabilities_in_fixed_point(seed in any::<u64>()) {
        let case = case(seed, Scalar::I16, 1.5);
        let best = case.all().map(|(_, s)| s).fold(f64::NEG_INFINITY, f64::max);
        prop_assume!(best > f64::NEG_INFINITY);
        let exact = case.marginals(best);
        let image = Image::open(&case.exported.words).unwrap();
        let view = image.chain::<i16>().unwrap();
        let (labels, count) = (view.labels(), case.items.len());
        let items = on_device::<i16>(&case.exported, &case.items);
        let mut rows = vec![0; exact.len()];
        for (row, item) in rows.chunks_mut(labels).zip(&items) {
            view.score(item, row).unwrap();
        }
        view.log_marginals(&mut rows, &mut vec![0; marginals_len(labels)]).unwrap();
        let mut logs = vec![0.0; rows.len()];
        view.to_f32(&rows, &mut logs);
        // Scores are off by `bound` (twice in a difference of two sums), each log-add by what `LogAdd` says.
        let values: f64 = case.items.iter().flatten().map(|(_, v)| v.abs()).sum();
        let rounded = case.items.iter().flatten().filter(|(_, v)| *v != 1.0).count();
        let bound = f64::from(view.error_bound(count, values as f32, rounded));
        let unit = f64::from(view.scales().unit);
        let step = (f64::from(last_step(&case.exported.words)) * unit).powi(2) / 32.0 + 1.5 * unit;
        let sums = (labels - 1) as f64 * step * (4 * count) as f64;
        for (l, q) in logs.iter().zip(&exact) {
            let p = f64::from(*l).exp();
            prop_assert!(p <= q * (2.0 * bound + sums).exp() + 1e-6 && q * (-2.0 * bound - sums).exp() <= p + 1e-6,
                "{} for {}: bounds {} and {}", p, q, bound, sums);
        }
    }

    /// Short memory, long sequences and bad items are errors, and nothing is written.
    #[test]
    fn what_is_wrong_is_said(seed in any::<u64>()) {
        let case = case(seed, Scalar::F32, 1.0);
        let image = Image::open(&case.exported.words).unwrap();
        let view = image.chain::<f32>().unwrap();
        let labels = view.labels();
        let mut scores = vec![0.0; decoder_len(labels)];
        let mut back = vec![0; whole_back_len(6, labels)];
        let empty: &[(u32, f32)] = &[];
        let mut path = [77; 6];
        let short = scores.len() - 1;
        let short = view.label([empty], &mut path, &mut scores[..short], &mut back);
        let is_memory = matches!(short, Err(InferError::Memory { .. }));
        prop_assert!(is_memory);
        let many = view.label([empty; 7], &mut path, &mut scores, &mut back);
        let expected = if case.forbidden.is_empty() { InferError::TooLong { longest: 6 } } else { many.unwrap_err() };
        prop_assert_eq!(many, Err(expected));
        let none = image.attributes() as u32;
        let bad = view.label([empty, &[(none, 1.0)]], &mut path, &mut scores, &mut back);
        prop_assert_eq!(bad, Err(InferError::Attribute(none)));
        if none > 0 {
            for value in [f32::NAN, f32::INFINITY] {
                let bad = view.label([&[(0, value)][..]], &mut path, &mut scores, &mut back);
                prop_assert_eq!(bad, Err(InferError::BadValue));
            }
        }
        let two = [empty, empty];
        if label(view, &[vec![], vec![]]).is_ok() {
            let room = view.label(two, &mut path[..1], &mut scores, &mut back);
            prop_assert_eq!(room, Err(InferError::Memory { needed: 2, given: 1 }));
        }
        prop_assert_eq!(path, [77; 6]);
    }
}

/// The step of the log-add table: the first word of the last section.
fn last_step(words: &[u32]) -> u32 {
    let entry = 8 + 3 * (words[5] as usize - 1);
    1 << words[words[entry + 1] as usize]
}

#[test]
fn scores_beyond_fixed_point_are_cut_off() {
    let mut rng = rng(3);
    let model = model(3, 6, 5.0, &mut rng);
    let params = ExportParams { scalar: Scalar::I16, longest: 4, ..ExportParams::default() };
    let exported = export(&model, &params).unwrap();
    let image = Image::open(&exported.words).unwrap();
    let view = image.chain::<i16>().unwrap();
    let item: Vec<(u32, i32)> = (0..image.attributes() as u32).map(|a| (a, i32::MAX)).collect();
    let mut row = [0; 3];
    assert_eq!(view.score(&item, &mut row), Ok(true));
    let mut scores = [0; decoder_len(3)];
    let mut back = [0; whole_back_len(4, 3)];
    let mut decoder = Decoder::whole(view, 4, &mut scores, &mut back).unwrap();
    for _ in 0..4 {
        decoder.push(&item).unwrap();
    }
    // The label with the highest score wins by far, whatever the transitions.
    let first = row.iter().copied().max().unwrap();
    let mut path = [9; 4];
    decoder.finish(&mut path).unwrap();
    assert!(path.iter().all(|&l| row[usize::from(l)] == first));
}

#[test]
fn what_images_cannot_hold_is_refused() {
    let mut rng = rng(4);
    let good = model(3, 4, 1.0, &mut rng);
    let longest = |n: usize| export(&good, &ExportParams { longest: n, ..ExportParams::default() }).err();
    assert_eq!(longest(0), Some(ExportError::Longest(0)));
    assert_eq!(longest(65_536), Some(ExportError::Longest(65_536)));
    assert_eq!(longest(65_535), None);
    let many = model(257, 1, 1.0, &mut rng);
    assert_eq!(export(&many, &ExportParams::default()).err(), Some(ExportError::Labels(257)));
    let mut large = good.clone();
    large.theta.fill(1e39);
    assert!(matches!(export(&large, &ExportParams::default()).err(), Some(ExportError::Weight(_))));
    let fixed = ExportParams { scalar: Scalar::I16, naming: Naming::Numbers, ..ExportParams::default() };
    assert!(export(&model(256, 2, 1.0, &mut rng), &fixed).is_ok());
}

/// Marginals in single precision against those in double, on the scores that the image gives.
#[test]
fn marginals_in_place_are_those_of_the_chain() {
    for seed in 0..60u64 {
        let mut rng = rng(seed);
        let (labels, attributes) = (rng.random_range(1..7), rng.random_range(1..9));
        // Up to the range that is promised: items and transitions of ±13.
        let model = model(labels, attributes, [1.0, 6.0, 13.0][seed as usize % 3], &mut rng);
        let forbidden = if labels > 1 && seed.is_multiple_of(2) { vec![(0, 1)] } else { vec![] };
        let params = ExportParams { longest: 12, forbidden, ..ExportParams::default() };
        let exported = export(&model, &params).unwrap();
        let image = Image::open(&exported.words).unwrap();
        let view = image.chain::<f32>().unwrap();
        let items = rng.random_range(0..12usize);
        let mut rows = vec![0.0f32; items * labels];
        for row in rows.chunks_mut(labels) {
            let a = rng.random_range(0..image.attributes().max(1) as u32);
            if (a as usize) < image.attributes() {
                view.score(&[(a, 1.0)], row).unwrap();
            }
        }
        let states: Vec<f64> = rows.iter().map(|&s| f64::from(s)).collect();
        let table: Vec<f64> =
            (0..labels * labels).map(|k| f64::from(view.transition(k / labels, k % labels))).collect();
        let chain = Chain::new(labels, &states, Transitions::Shared(&table)).unwrap();
        let mut expected = vec![0.0; states.len()];
        let mut memory = vec![0.0; Chain::<f64>::forward_backward_len(items, labels)];
        let done = chain.forward_backward(&mut expected, None, &mut memory);
        let kept = rows.clone();
        let mut memory = vec![0.0; smooth_len(labels)];
        assert!(matches!(view.marginals(&mut rows, &mut memory[1..]), Err(InferError::Memory { .. })));
        if !rows.is_empty() {
            let mut bad = rows.clone();
            bad[0] = f32::NAN;
            assert_eq!(view.marginals(&mut bad, &mut memory), Err(InferError::BadValue));
            assert_eq!(bad[1..], rows[1..]);
        }
        assert_eq!(kept, rows);
        let found = view.marginals(&mut rows, &mut memory);
        assert_eq!(found.is_ok(), done.is_ok(), "seed {seed}");
        for (p, q) in rows.iter().zip(&expected) {
            assert!((f64::from(*p) - q).abs() < 3e-6, "seed {seed}: {rows:?} {expected:?}");
        }
    }
}
