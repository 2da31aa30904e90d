//! Learning beside an image: what is added to its scores, and one item given its neighbours, against the model's scores in `f64`.

use super::decode::{case, on_device};
use gibbsite::export::Scalar;
use gibbsite_core::error::InferError;
use gibbsite_core::image::Image;
use gibbsite_core::infer::stream::{decoder_len, whole_back_len};
use gibbsite_core::online::{Overlay, overlay_len};
use gibbsite_tests::regression::{normal, rng};
use proptest::prelude::*;
use rand::RngExt;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Differences between the scores of one item's labels are those between the model's scores of whole labellings.
    #[test]
    fn neighbours_are_the_rest_of_the_labelling(seed in any::<u64>()) {
        let case = case(seed, Scalar::F32, 1.0);
        let view = Image::open(&case.exported.words).unwrap().chain::<f32>().unwrap();
        let (labels, mut rng) = (view.labels(), rng(seed ^ 7));
        let mut y: Vec<u32> = case.items.iter().map(|_| rng.random_range(0..labels as u32)).collect();
        let t = rng.random_range(0..y.len());
        let at = |t: usize| y.get(t).map(|&l| l as usize);
        let mut row = vec![0.0; labels];
        view.score(&on_device::<f32>(&case.exported, &case.items)[t], &mut row).unwrap();
        view.add_neighbours(t.checked_sub(1).and_then(at), at(t + 1), &mut row).unwrap();
        let whole: Vec<f64> = (0..labels as u32).map(|j| { y[t] = j; case.score(&y) }).collect();
        for j in 0..labels {
            for k in 0..labels {
                let (found, right) = (f64::from(row[j]) - f64::from(row[k]), whole[j] - whole[k]);
                if right.is_finite() {
                    prop_assert!((found - right).abs() < 1e-4, "{} for {}", found, right);
                }
            }
            // What a neighbour forbids; the rest of the labelling may forbid all.
            let forbidden = |i: Option<&u32>, j: Option<&u32>| match (i, j) {
                (Some(&i), Some(&j)) => case.forbidden.contains(&(i, j)),
                _ => false,
            };
            let own = j as u32;
            let none = forbidden(t.checked_sub(1).and_then(|t| y.get(t)), Some(&own)) || forbidden(Some(&own), y.get(t + 1));
            prop_assert_eq!(row[j] == f32::NEG_INFINITY, none);
        }
        let before = row.clone();
        prop_assert_eq!(view.add_neighbours(Some(labels), None, &mut row), Err(InferError::Shape));
        prop_assert_eq!(view.add_neighbours(None, None, &mut row[1..]), Err(InferError::Shape));
        prop_assert_eq!(row, before);
    }

    /// The labelling with an overlay is the best by the model's scores and the overlay's together; a bad item changes nothing.
    #[test]
    fn labels_with_an_overlay_are_the_best_of_both(seed in any::<u64>()) {
        let case = case(seed, Scalar::F32, 1.0);
        let view = Image::open(&case.exported.words).unwrap().chain::<f32>().unwrap();
        let (labels, slots, mut rng) = (view.labels(), 2, rng(seed ^ 9));
        let mut weights: Vec<f32> = (0..overlay_len(labels, slots)).map(|_| normal(&mut rng) as f32).collect();
        let copy = weights.clone();
        let items = on_device::<f32>(&case.exported, &case.items);
        let learned: Vec<Vec<(u32, f32)>> =
            items.iter().map(|_| (0..slots as u32).filter(|_| rng.random_bool(0.5)).map(|s| (s, 0.5)).collect()).collect();
        let own = |y: &[u32]| -> f64 {
            let each = y.iter().zip(&learned).map(|(&l, slots)| {
                let rows = slots.iter().map(|&(s, v)| f64::from(v * copy[(s as usize + 1) * labels + l as usize]));
                f64::from(copy[l as usize]) + rows.sum::<f64>()
            });
            case.score(y) + each.sum::<f64>()
        };
        let overlay = Overlay::new(labels, slots, &mut weights).unwrap();
        let (mut scores, mut back) = (vec![0.0; decoder_len(labels)], vec![0; whole_back_len(6, labels)]);
        let mut decoder = view.decoder(&mut scores, &mut back).unwrap();
        let mut possible = true;
        for (item, slots) in items.iter().zip(&learned) {
            for (attributes, slots, error) in [
                (&[(view.image().attributes() as u32, 1.0)][..], &[][..], InferError::Attribute(view.image().attributes() as u32)),
                (item, &[(0, f32::NAN)], InferError::BadValue),
                (item, &[(2, 1.0)], InferError::Attribute(2)),
            ] {
                prop_assert_eq!(overlay.push(&mut decoder, attributes, slots), Err(error));
            }
            possible = possible && overlay.push(&mut decoder, item, slots).is_ok();
        }
        let best = case.all().map(|(y, _)| own(&y)).fold(f64::NEG_INFINITY, f64::max);
        prop_assert_eq!(possible, best > f64::NEG_INFINITY);
        if possible {
            let mut path = vec![0; items.len()];
            let total = view.total(decoder.finish(&mut path).unwrap());
            let path: Vec<u32> = path.into_iter().map(u32::from).collect();
            prop_assert!((own(&path) - best).abs() < 1e-4 && (f64::from(total) - best).abs() < 1e-4);
        }
    }
}
