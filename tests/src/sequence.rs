//! Random chains over sequences as models, and their labellings one by one.

use crate::regression::normal;
use gibbsite::data::sequences::{Alphabet, Dictionary};
use gibbsite::features::Index;
use gibbsite::model::SequenceModel;
use gibbsite::model::sequence::{Facts, Origin};
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

/// A model with weights of this spread; some attributes have none, some weights are 0.
pub fn model(labels: usize, attributes: usize, spread: f64, rng: &mut Xoshiro256PlusPlus) -> SequenceModel {
    let mut alphabet = Alphabet::default();
    let intern = |names: &mut Dictionary, prefix: &str, n: usize| {
        for i in 0..n {
            names.intern(&format!("{prefix}{i}"));
        }
    };
    intern(&mut alphabet.labels, "L", labels);
    intern(&mut alphabet.attributes, "attribute ", attributes);
    let lists: Vec<Vec<u32>> = (0..attributes)
        .map(|_| {
            let share = [0.0, 0.4, 1.0][rng.random_range(0..3)];
            (0..labels as u32).filter(|_| rng.random_bool(share)).collect()
        })
        .collect();
    let mut index = Index::new();
    index.push_lists(&[labels as u32], &lists).expect("lists that ascend");
    index.push_dense(&[labels as u32; 2], 1).expect("a small table");
    let theta = (0..index.len()).map(|_| if rng.random_bool(0.1) { 0.0 } else { spread * normal(rng) });
    let theta = theta.collect();
    let facts = Facts {
        estimator: "mle".into(),
        solver: "none".into(),
        l1: 0.0,
        l2: 1.0,
        objective: 1.0,
        violation: 0.0,
        iterations: 1,
        converged: true,
        sequences: 1,
        items: 1,
        data: "made up".into(),
    };
    SequenceModel { alphabet, index, theta, origin: Origin::Crfsuite, facts }
}

/// An item: attributes of the model with values, of which most are 1.
pub type Item = Vec<(u32, f64)>;

/// Random items.
pub fn items(model: &SequenceModel, count: usize, rng: &mut Xoshiro256PlusPlus) -> Vec<Item> {
    let attributes = model.alphabet.attributes.len() as u32;
    (0..count)
        .map(|_| {
            let n = if attributes == 0 { 0 } else { rng.random_range(0..5) };
            (0..n)
                .map(|_| {
                    let value = if rng.random_bool(0.7) { 1.0 } else { normal(rng) };
                    (rng.random_range(0..attributes), value)
                })
                .collect()
        })
        .collect()
}

/// The score of a labelling, parameter by parameter.
pub fn score(model: &SequenceModel, items: &[Item], labels: &[u32]) -> f64 {
    let mut sum = 0.0;
    let mut add = |template: usize, attribute: u32, configuration: u32, value: f64| {
        if let Some(p) = model.index.parameter(template, attribute, configuration) {
            sum += value * model.theta[p];
        }
    };
    let count = model.alphabet.labels.len() as u32;
    for (t, item) in items.iter().enumerate() {
        item.iter().for_each(|&(a, value)| add(0, a, labels[t], value));
        if t > 0 {
            add(1, 0, labels[t - 1] * count + labels[t], 1.0);
        }
    }
    sum
}

/// All labellings of so many items.
pub fn labellings(labels: usize, items: usize) -> impl Iterator<Item = Vec<u32>> {
    let count = labels.pow(items as u32);
    (0..count).map(move |mut k| {
        let mut y = vec![0; items];
        for place in &mut y {
            *place = (k % labels) as u32;
            k /= labels;
        }
        y
    })
}
