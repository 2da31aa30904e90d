//! Streams: fixed-lag labels against Viterbi on what had arrived, filtered marginals against forward-backward.

use gibbsite_core::error::InferError;
use gibbsite_core::infer::chain::{Chain, Transitions};
use gibbsite_core::infer::stream::{
    Decoder, Filter, Stationary, decoder_len, filter_len, lagged_back_len, whole_back_len,
};
use proptest::collection::vec;
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Model {
    labels: usize,
    table: Vec<f64>,
    rows: Vec<f64>,
}

impl Model {
    fn items(&self) -> usize {
        self.rows.len() / self.labels
    }

    /// The best labelling of the first items, by the engine that has all of them.
    fn viterbi(&self, items: usize) -> Result<(Vec<u8>, f64), InferError> {
        let rows = &self.rows[..items * self.labels];
        let chain = Chain::new(self.labels, rows, Transitions::Shared(&self.table))?;
        let mut path = vec![0; items];
        let mut back = vec![0u8; Chain::<f64>::viterbi_back_len(items, self.labels)];
        let mut memory = vec![0.0; Chain::<f64>::viterbi_len(self.labels)];
        let score = chain.viterbi(&mut path, &mut back, &mut memory)?;
        Ok((path.into_iter().map(|l| l as u8).collect(), score))
    }
}

/// Scores with ties; some transitions are forbidden.
fn model() -> impl Strategy<Value = Model> {
    (1..5usize, 1..12usize).prop_flat_map(|(labels, items)| {
        let score = prop_oneof![(-8i32..8).prop_map(|n| f64::from(n) / 4.0), -3.0..3.0f64];
        let entry = prop_oneof![9 => score.clone(), 1 => Just(f64::NEG_INFINITY)];
        let parts = (vec(entry, labels * labels), vec(score, labels * items));
        parts.prop_map(move |(table, rows)| Model { labels, table, rows })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// The label of item t is that in the best labelling of items 0 … t + lag; with a lag of the length or more, and for whole
    /// sequences, that is the best labelling of all.
    #[test]
    fn each_label_is_that_of_the_best_so_far(model in model(), lag in 0..14usize) {
        let steps = Stationary::new(model.labels, &model.table).unwrap();
        let mut scores = vec![0.0; decoder_len(model.labels)];
        let mut back = vec![9; lagged_back_len(lag, model.labels)];
        let mut decoder = Decoder::lagged(steps, lag, &mut scores, &mut back).unwrap();
        let mut given = Vec::new();
        for (t, row) in model.rows.chunks(model.labels).enumerate() {
            decoder.row().copy_from_slice(row);
            match (decoder.advance(), model.viterbi(t + 1)) {
                (Ok(label), Ok((best, _))) => {
                    prop_assert_eq!(label, t.checked_sub(lag).map(|t| best[t]));
                    given.extend(label);
                }
                (a, b) => {
                    prop_assert_eq!(a.err(), Some(InferError::ZeroProbability));
                    prop_assert_eq!(b.err(), Some(InferError::ZeroProbability));
                    return Ok(());
                }
            }
        }
        let (best, score) = model.viterbi(model.items()).unwrap();
        let mut rest = vec![0; decoder.pending()];
        let [sum, lost] = decoder.finish(&mut rest).unwrap();
        prop_assert!((sum + lost - score).abs() < 1e-9);
        prop_assert_eq!(given.len() + rest.len(), model.items());
        prop_assert_eq!(&best[given.len()..], &rest[..]);
        if lag + 1 >= model.items() {
            given.extend(&rest);
            prop_assert_eq!(given, best);
        }
    }

    #[test]
    fn whole_sequences_one_after_the_other(models in vec(model(), 1..4)) {
        // One decoder is used again; the others' tables do not matter.
        let labels = models[0].labels;
        let steps = Stationary::new(labels, &models[0].table).unwrap();
        let (mut scores, mut back) = (vec![0.0; decoder_len(labels)], vec![0; whole_back_len(11, labels)]);
        let mut decoder = Decoder::whole(steps, 11, &mut scores, &mut back).unwrap();
        for model in models.iter().filter(|m| m.labels == labels) {
            let model = Model { table: models[0].table.clone(), ..model.clone() };
            decoder.reset();
            let mut ended = Ok(());
            for row in model.rows.chunks(labels) {
                decoder.row().copy_from_slice(row);
                ended = ended.and(decoder.advance().map(|_| ()));
                if ended.is_err() {
                    break;
                }
            }
            match model.viterbi(model.items()) {
                Ok((best, _)) => {
                    prop_assert_eq!(ended, Ok(()));
                    let mut path = vec![0; model.items()];
                    decoder.finish(&mut path).unwrap();
                    prop_assert_eq!(path, best);
                }
                Err(error) => prop_assert_eq!(ended, Err(error)),
            }
        }
    }

    #[test]
    fn filtered_marginals_are_those_of_what_has_arrived(model in model()) {
        let labels = model.labels;
        let mut memory = vec![0.0; filter_len(labels)];
        let table = model.table.clone();
        let mut filter = Filter::new(labels, |i, j| table[i * labels + j], &mut memory).unwrap();
        for (t, row) in model.rows.chunks(labels).enumerate() {
            let chain = Chain::new(labels, &model.rows[..(t + 1) * labels], Transitions::Shared(&table)).unwrap();
            let mut singles = vec![0.0; (t + 1) * labels];
            let mut memory = vec![0.0; Chain::<f64>::forward_backward_len(t + 1, labels)];
            match (filter.push(row), chain.forward_backward(&mut singles, None, &mut memory)) {
                (Ok(p), Ok(_)) => {
                    for (p, q) in p.iter().zip(&singles[t * labels..]) {
                        prop_assert!((p - q).abs() < 1e-12, "{} for {}", p, q);
                    }
                }
                (a, b) => {
                    prop_assert_eq!(a.err(), b.err());
                    return Ok(());
                }
            }
        }
    }
}

#[test]
fn an_endless_stream_needs_no_more_memory() {
    let steps = Stationary::new(2, &[0.5f32, 0.0, 0.0, 0.5]).unwrap();
    let (mut scores, mut back) = ([0.0; decoder_len(2)], [0; lagged_back_len(3, 2)]);
    let mut decoder = Decoder::lagged(steps, 3, &mut scores, &mut back).unwrap();
    for t in 0..100_000 {
        let label = t / 7 % 2;
        decoder.row()[label] = 1.0;
        let given = decoder.advance().unwrap();
        if t >= 3 {
            assert_eq!(given, Some(((t - 3) / 7 % 2) as u8), "item {}", t - 3);
        }
    }
}

#[test]
fn arguments_that_do_not_fit() {
    assert_eq!(Stationary::new(2, &[0.0f32; 3]).err(), Some(InferError::Shape));
    assert_eq!(Stationary::new(0, &[] as &[f32]).err(), Some(InferError::Shape));
    assert_eq!(Stationary::new(1, &[f32::NAN]).err(), Some(InferError::BadValue));
    let steps = Stationary::new(2, &[0.0f32; 4]).unwrap();
    let (mut scores, mut back) = ([0.0; 4], [0; 2]);
    assert!(matches!(
        Decoder::lagged(steps, 2, &mut scores, &mut back).err(),
        Some(InferError::Memory { needed: 4, given: 2 })
    ));
    assert!(matches!(
        Decoder::lagged(steps, 1, &mut scores[..3], &mut back).err(),
        Some(InferError::Memory { needed: 4, given: 3 })
    ));
    let mut decoder = Decoder::whole(steps, 2, &mut scores, &mut back).unwrap();
    assert!(decoder.advance().is_ok() && decoder.advance().is_ok());
    assert_eq!(decoder.advance(), Err(InferError::TooLong { longest: 2 }));
    assert_eq!(decoder.finish(&mut [0]), Err(InferError::Memory { needed: 2, given: 1 }));
    assert!(decoder.finish(&mut [0; 2]).is_ok());
    decoder.reset();
    decoder.row()[0] = f32::NAN;
    assert_eq!(decoder.advance(), Err(InferError::BadValue));
    let large = vec![0.0f32; 257 * 257];
    let steps = Stationary::new(257, &large).unwrap();
    assert!(matches!(Decoder::whole(steps, 1, &mut [0.0; 600], &mut []).err(), Some(InferError::Shape)));
    let mut memory = [0.0f32; filter_len(2)];
    assert!(Filter::new(2, |_, _| f32::NAN, &mut memory).is_err());
    let mut filter = Filter::new(2, |_, _| 0.0, &mut memory).unwrap();
    assert_eq!(filter.push(&[0.0]).err(), Some(InferError::Shape));
    assert_eq!(filter.push(&[0.0, f32::NAN]).err(), Some(InferError::BadValue));
    assert_eq!(filter.push(&[f32::NEG_INFINITY; 2]).err(), Some(InferError::ZeroProbability));
    assert_eq!(filter.push(&[0.0, 0.0]).unwrap(), [0.5, 0.5]);
}
