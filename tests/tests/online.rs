//! Learning on the device: the overlay against the desk's optimum, and what it does with bad input.

use gibbsite_core::error::InferError;
use gibbsite_core::online::{OnlineParams, Overlay, overlay_len};
use gibbsite_tests::regression::{normal, rng};
use proptest::prelude::*;
use rand::RngExt;

/// An item: slots with values, its neighbours' share of the scores, its label.
type Example = (Vec<(u32, f64)>, Vec<f64>, usize);

struct Data {
    labels: usize,
    slots: usize,
    items: Vec<Example>,
}

/// Labels drawn along a chain with random transitions, given attributes that speak for them.
fn stationary(seed: u64, labels: usize, slots: usize, count: usize) -> Data {
    let mut rng = rng(seed);
    let table: Vec<f64> = (0..labels * labels).map(|_| 0.7 * normal(&mut rng)).collect();
    let truth: Vec<f64> = (0..labels * slots).map(|_| normal(&mut rng)).collect();
    let mut items = Vec::new();
    for _ in 0..count {
        let (before, after) = (rng.random_range(0..labels), rng.random_range(0..labels));
        let given: Vec<f64> =
            (0..labels).map(|j| table[before * labels + j] + table[j * labels + after]).collect();
        let mut item = Vec::new();
        for slot in 0..slots as u32 {
            if rng.random_bool(0.5) {
                item.push((slot, if rng.random_bool(0.5) { 1.0 } else { normal(&mut rng) }));
            }
        }
        let mut weights: Vec<f64> = given.clone();
        for &(a, v) in &item {
            (0..labels).for_each(|j| weights[j] += v * truth[a as usize * labels + j]);
        }
        let total: f64 = weights.iter().map(|w| w.exp()).sum();
        let mut left = rng.random_range(0.0..1.0) * total;
        let mut label = 0;
        for (j, w) in weights.iter().enumerate() {
            left -= w.exp();
            label = j;
            if left < 0.0 {
                break;
            }
        }
        items.push((item, given, label));
    }
    Data { labels, slots, items }
}

impl Data {
    /// Mean of `-log P(y_t | neighbours)` plus `l2/2 ‖w‖²`, and its gradient: the pseudolikelihood as the desk would have it.
    fn objective(&self, w: &[f64], l2: f64) -> (f64, Vec<f64>) {
        let labels = self.labels;
        let mut gradient: Vec<f64> = w.iter().map(|w| l2 * w).collect();
        let mut value = 0.5 * l2 * w.iter().map(|w| w * w).sum::<f64>();
        let share = 1.0 / self.items.len() as f64;
        for (item, given, label) in &self.items {
            let mut s: Vec<f64> = (0..labels).map(|j| given[j] + w[j]).collect();
            for &(a, v) in item {
                (0..labels).for_each(|j| s[j] += v * w[(a as usize + 1) * labels + j]);
            }
            let z: f64 = s.iter().map(|s| s.exp()).sum();
            value -= share * (s[*label] - z.ln());
            for j in 0..labels {
                let slope = share * (s[j].exp() / z - f64::from(u8::from(j == *label)));
                gradient[j] += slope;
                item.iter().for_each(|&(a, v)| gradient[(a as usize + 1) * labels + j] += v * slope);
            }
        }
        (value, gradient)
    }

    /// The optimum, by plain gradient descent: the objective is smooth and strongly convex.
    fn optimum(&self, l2: f64) -> Vec<f64> {
        let mut w = vec![0.0; overlay_len(self.labels, self.slots)];
        for _ in 0..4000 {
            let (_, g) = self.objective(&w, l2);
            if g.iter().all(|g| g.abs() < 1e-10) {
                break;
            }
            w.iter_mut().zip(&g).for_each(|(w, g)| *w -= 0.5 * g);
        }
        w
    }
}

#[test]
fn it_approaches_the_desk_on_stationary_data() {
    for seed in 0..4 {
        let data = stationary(seed, 3, 3, 300);
        let l2 = 0.02;
        let best = data.optimum(l2);
        let (least, slope) = data.objective(&best, l2);
        assert!(slope.iter().all(|g| g.abs() < 1e-8), "the oracle has not converged: {slope:?}");
        let mut weights = vec![0.0; best.len()];
        let mut overlay = Overlay::new(3, 3, &mut weights).unwrap();
        let params = OnlineParams { rate: 0.3, decay: 1.0 / 600.0, l2, l1: 0.0 };
        let mut memory = [0.0; 3];
        let mut excess = Vec::new();
        for pass in 0..256 {
            for (item, given, label) in &data.items {
                overlay.learn(item, given, *label, &params, &mut memory).unwrap();
            }
            if [3, 255].contains(&pass) {
                excess.push(data.objective(overlay.weights(), l2).0 - least);
            }
        }
        let far = overlay.weights().iter().zip(&best).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(excess[1] < 1e-4 && excess[1] < excess[0], "seed {seed}: {excess:?}");
        assert!(far < 0.05, "seed {seed}: {far} from the optimum");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// One step is the gradient step of the item's objective.
    #[test]
    fn a_step_goes_down_the_slope(seed in any::<u64>(), rate in 0.01..1.0f64, l2 in 0.0..1.0f64) {
        let data = stationary(seed, 3, 2, 1);
        let mut rng = rng(seed ^ 1);
        let start: Vec<f64> = (0..overlay_len(3, 2)).map(|_| normal(&mut rng)).collect();
        let (_, gradient) = data.objective(&start, l2);
        let mut weights = start.clone();
        let mut overlay = Overlay::new(3, 2, &mut weights).unwrap();
        let params = OnlineParams { rate, decay: 0.0, l2, l1: 0.0 };
        let (item, given, label) = &data.items[0];
        let log = overlay.learn(item, given, *label, &params, &mut [0.0; 3]).unwrap();
        let (value, _) = data.objective(&start, 0.0);
        prop_assert!((log + value).abs() < 1e-10);
        for (k, w) in weights.iter().enumerate() {
            let expected = start[k] - rate * gradient[k];
            prop_assert!((w - expected).abs() < 1e-10, "{}: {} for {}", k, w, expected);
        }
    }

    #[test]
    fn saved_and_loaded_it_goes_on_the_same_way(seed in any::<u64>(), cut in 1..19usize) {
        let data = stationary(seed, 2, 2, 20);
        let params = OnlineParams { rate: 0.2, decay: 0.1, l2: 0.1, l1: 0.01 };
        let learn = |overlay: &mut Overlay<'_, f64>, items: &[Example]| {
            for (item, given, label) in items {
                overlay.learn(item, given, *label, &params, &mut [0.0; 2]).unwrap();
            }
        };
        let mut whole = [0.0; overlay_len(2, 2)];
        learn(&mut Overlay::new(2, 2, &mut whole).unwrap(), &data.items);
        let mut saved = [0.0; overlay_len(2, 2)];
        learn(&mut Overlay::new(2, 2, &mut saved).unwrap(), &data.items[..cut]);
        let mut again = saved;
        let mut overlay = Overlay::new(2, 2, &mut again).unwrap();
        overlay.resume(cut as u32);
        learn(&mut overlay, &data.items[cut..]);
        prop_assert_eq!(overlay.steps(), 20);
        prop_assert_eq!(again, whole);
    }
}

#[test]
fn bad_input_teaches_nothing() {
    let params = OnlineParams { rate: 0.5f32, decay: 0.0, l2: 0.0, l1: 0.0 };
    let mut short = [0.0f32; 3];
    assert!(matches!(Overlay::new(2, 1, &mut short).err(), Some(InferError::Memory { needed: 4, given: 3 })));
    assert!(matches!(Overlay::new(0, 1, &mut short).err(), Some(InferError::Shape)));
    let mut bad = [f32::NAN; 4];
    assert!(matches!(Overlay::new(2, 1, &mut bad).err(), Some(InferError::BadValue)));
    let mut weights = [0.25f32; 4];
    let mut overlay = Overlay::new(2, 1, &mut weights).unwrap();
    let mut memory = [0.0; 2];
    let none = f32::NEG_INFINITY;
    assert_eq!(overlay.learn(&[(1, 1.0)], &[0.0; 2], 0, &params, &mut memory), Err(InferError::Attribute(1)));
    assert_eq!(
        overlay.learn(&[(0, f32::NAN)], &[0.0; 2], 0, &params, &mut memory),
        Err(InferError::BadValue)
    );
    assert_eq!(overlay.learn(&[], &[f32::NAN, 0.0], 0, &params, &mut memory), Err(InferError::BadValue));
    assert_eq!(overlay.learn(&[], &[0.0, none], 1, &params, &mut memory), Err(InferError::ZeroProbability));
    assert_eq!(overlay.learn(&[], &[0.0; 2], 2, &params, &mut memory), Err(InferError::Shape));
    assert_eq!(overlay.learn(&[], &[0.0; 3], 0, &params, &mut memory), Err(InferError::Shape));
    assert!(matches!(overlay.learn(&[], &[0.0; 2], 0, &params, &mut []), Err(InferError::Memory { .. })));
    for (rate, decay, l2, l1) in [
        (f32::NAN, 0.0, 0.0, 0.0),
        (-0.5, 0.0, 0.0, 0.0),
        (0.5, f32::INFINITY, 0.0, 0.0),
        (0.5, 0.0, f32::NAN, 0.0),
        (0.5, 0.0, 0.0, -1.0),
    ] {
        let params = OnlineParams { rate, decay, l2, l1 };
        assert_eq!(overlay.learn(&[], &[0.0; 2], 0, &params, &mut memory), Err(InferError::BadValue));
    }
    let mut row = [1.0f32; 2];
    assert_eq!(overlay.add(&[(7, 1.0)], &mut row), Err(InferError::Attribute(7)));
    assert_eq!((row, overlay.steps()), ([1.0; 2], 0));
    assert_eq!(overlay.weights(), [0.25; 4]);
}
