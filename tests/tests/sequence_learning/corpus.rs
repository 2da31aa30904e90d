//! Random texts of labelled sequences, and the oracle: every labelling of each sequence with its features.

use gibbsite::data::sequences::{Alphabet, Corpus, Format, ReadParams, Template, read_from};
use gibbsite::features::Index;
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::{HashMap, HashSet};

/// What a text says about a label.
#[derive(Clone, Debug)]
pub(crate) enum Known {
    One(String),
    Set(Vec<String>),
    Any,
}

/// An item by names.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) known: Known,
    pub(crate) attributes: Vec<(String, f64)>,
    /// Of the edge from the item before.
    pub(crate) edges: Vec<String>,
}

/// Sequences as names, and as a text for the reader.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) sequences: Vec<Vec<Item>>,
    pub(crate) text: String,
    pub(crate) params: ReadParams,
}

/// What random sequences look like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind<'a> {
    pub(crate) labels: &'a [&'a str],
    pub(crate) sequences: usize,
    pub(crate) longest: usize,
    /// Columns with a template that makes attributes of edges; else CRFsuite's format, with values.
    pub(crate) columns: bool,
    /// Share of labels that are not or not quite known.
    pub(crate) partial: f64,
}

const TEMPLATE: &str = "U00:%x[0,0]\nU01:%x[-1,0]/%x[0,1]\nB\nB01:%x[0,1]\nB02:%x[-1,0]+%x[1,1]\n";

impl Source {
    pub(crate) fn read(&self) -> Corpus {
        read_from(self.text.as_bytes(), &self.params).expect("a good text")
    }

    pub(crate) fn random(kind: Kind<'_>, rng: &mut Xoshiro256PlusPlus) -> Self {
        let mut sequences = Vec::new();
        let mut text = String::new();
        for s in 0..kind.sequences {
            let items = rng.random_range(1..=kind.longest);
            let labels: Vec<Known> = (0..items).map(|_| known(kind, rng)).collect();
            let labels = if s == 0 {
                // All labels occur.
                kind.labels.iter().map(|&l| Known::One(l.into())).chain(labels).take(kind.longest).collect()
            } else {
                labels
            };
            sequences.push(if kind.columns {
                columns(&labels, &mut text, rng)
            } else {
                crfsuite(&labels, &mut text, rng)
            });
            text.push('\n');
        }
        let format = match kind.columns {
            true => Format::Columns(Template::parse(TEMPLATE).expect("a template")),
            false => Format::Crfsuite,
        };
        Self { sequences, text, params: ReadParams::new(format) }
    }
}

fn known(kind: Kind<'_>, rng: &mut Xoshiro256PlusPlus) -> Known {
    if rng.random_bool(1.0 - kind.partial) {
        return Known::One(kind.labels[rng.random_range(0..kind.labels.len())].into());
    }
    let some: Vec<String> =
        kind.labels.iter().filter(|_| rng.random_bool(0.5)).map(|&l| l.to_owned()).collect();
    if some.len() < 2 { Known::Any } else { Known::Set(some) }
}

fn label(known: &Known) -> String {
    match known {
        Known::One(name) => name.clone(),
        Known::Set(names) => format!("{{{}}}", names.join("|")),
        Known::Any => "?".into(),
    }
}

fn crfsuite(labels: &[Known], text: &mut String, rng: &mut Xoshiro256PlusPlus) -> Vec<Item> {
    let mut items = Vec::new();
    for known in labels {
        text.push_str(&label(known));
        let mut attributes: Vec<(String, f64)> = Vec::new();
        for _ in 0..rng.random_range(0..5) {
            // Few names: some are there more than once.
            let name = format!("a{}", rng.random_range(0..4));
            let value = if rng.random_bool(0.5) { 1.0 } else { f64::from(rng.random_range(-8..=8)) / 4.0 };
            let shown = if value == 1.0 { name.clone() } else { format!("{name}:{value}") };
            text.push_str(&format!("\t{shown}"));
            attributes.push((name, value));
        }
        text.push('\n');
        items.push(Item { known: known.clone(), attributes, edges: Vec::new() });
    }
    items
}

fn columns(labels: &[Known], text: &mut String, rng: &mut Xoshiro256PlusPlus) -> Vec<Item> {
    let rows: Vec<(String, String)> = labels
        .iter()
        .map(|_| (format!("w{}", rng.random_range(0..3)), format!("p{}", rng.random_range(0..2))))
        .collect();
    let mut items = Vec::new();
    for (t, known) in labels.iter().enumerate() {
        let (word, part) = &rows[t];
        text.push_str(&format!("{word} {part}\t{}\n", label(known)));
        let before = if t > 0 { &rows[t - 1].0 } else { "_B-1" };
        let after = rows.get(t + 1).map_or("_B+1", |row| &row.1);
        let attributes = vec![(format!("U00:{word}"), 1.0), (format!("U01:{before}/{part}"), 1.0)];
        let edges = vec![format!("B01:{part}"), format!("B02:{before}+{after}")];
        items.push(Item { known: known.clone(), attributes, edges: if t > 0 { edges } else { Vec::new() } });
    }
    items
}

/// Template, attribute, labels.
pub(crate) type Key = (usize, String, Vec<String>);

/// What each parameter is about.
pub(crate) fn keys(alphabet: &Alphabet, index: &Index) -> Vec<Key> {
    let labels: Vec<&str> = alphabet.labels.iter().collect();
    let key = |p: usize| {
        let (template, attribute, c) = index.about(p).expect("a parameter");
        let c = c as usize;
        let (name, own) = match template {
            0 => (alphabet.attributes.name(attribute), vec![labels[c]]),
            1 => (Some(""), vec![labels[c / labels.len()], labels[c % labels.len()]]),
            _ => (
                alphabet.edge_attributes.name(attribute),
                vec![labels[c / labels.len()], labels[c % labels.len()]],
            ),
        };
        (template, name.expect("a name").to_owned(), own.into_iter().map(str::to_owned).collect())
    };
    (0..index.len()).map(key).collect()
}

/// The parameters that were seen, or can be: what the index must hold.
pub(crate) fn seen(source: &Source, alphabet: &Alphabet, all: bool) -> HashSet<Key> {
    let labels: Vec<String> = alphabet.labels.iter().map(str::to_owned).collect();
    let mut found = HashSet::new();
    for sequence in &source.sequences {
        let mut before: Vec<String> = Vec::new();
        for item in sequence {
            let now = match &item.known {
                Known::One(name) => vec![name.clone()],
                Known::Set(names) => names.clone(),
                Known::Any => vec![],
            };
            for to in if all { &labels } else { &now } {
                for (name, _) in &item.attributes {
                    found.insert((0, name.clone(), vec![to.clone()]));
                }
            }
            for (from, to) in pairs(&before, &now) {
                found.insert((1, String::new(), vec![from.clone(), to.clone()]));
                for name in &item.edges {
                    found.insert((2, name.clone(), vec![from.clone(), to.clone()]));
                }
            }
            before = now;
        }
    }
    if all {
        for (from, to) in pairs(&labels, &labels) {
            found.insert((1, String::new(), vec![from, to]));
        }
    }
    found
}

fn pairs(before: &[String], now: &[String]) -> Vec<(String, String)> {
    before.iter().flat_map(|f| now.iter().map(move |t| (f.clone(), t.clone()))).collect()
}

/// A labelling of a sequence.
#[derive(Clone, Debug)]
pub(crate) struct Labelling {
    pub(crate) labels: Vec<usize>,
    pub(crate) features: Vec<(usize, f64)>,
    /// Whether it is what the text says, as far as that says something.
    pub(crate) fits: bool,
}

impl Labelling {
    pub(crate) fn score(&self, theta: &[f64]) -> f64 {
        self.features.iter().map(|&(p, value)| value * theta[p]).sum()
    }
}

/// All labellings of all sequences.
#[derive(Clone, Debug)]
pub(crate) struct Enumerated(pub Vec<Vec<Labelling>>);

/// All sequences of `positions` numbers below `labels`.
pub(crate) fn labellings(labels: usize, positions: usize) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    for _ in 0..positions {
        all = all
            .iter()
            .flat_map(|y: &Vec<usize>| (0..labels).map(move |l| [y.as_slice(), &[l]].concat()))
            .collect();
    }
    all
}

/// `log Σ e^x`.
pub(crate) fn log_sum(x: impl Iterator<Item = f64> + Clone) -> f64 {
    let top = x.clone().fold(f64::NEG_INFINITY, f64::max);
    if top == f64::NEG_INFINITY { top } else { top + x.map(|x| (x - top).exp()).sum::<f64>().ln() }
}

impl Enumerated {
    /// `labels` and `keys` are those of a model: what it does not know has no weight, and a label that it does not know says nothing.
    pub(crate) fn new(source: &Source, labels: &[String], keys: &[Key]) -> Self {
        let number: HashMap<&Key, usize> = keys.iter().enumerate().map(|(p, key)| (key, p)).collect();
        assert_eq!(number.len(), keys.len(), "each parameter once");
        let each = |sequence: &Vec<Item>| {
            let one = |y: Vec<usize>| {
                let mut features = Vec::new();
                let mut add = |key: Key, value: f64| {
                    features.extend(number.get(&key).map(|&p| (p, value)));
                };
                let mut fits = true;
                for (t, item) in sequence.iter().enumerate() {
                    let to = labels[y[t]].clone();
                    for (name, value) in &item.attributes {
                        add((0, name.clone(), vec![to.clone()]), *value);
                    }
                    fits &= match &item.known {
                        Known::One(name) => *name == to || !labels.contains(name),
                        Known::Set(names) => names.contains(&to),
                        Known::Any => true,
                    };
                    if t > 0 {
                        let both = vec![labels[y[t - 1]].clone(), to];
                        add((1, String::new(), both.clone()), 1.0);
                        for name in &item.edges {
                            add((2, name.clone(), both.clone()), 1.0);
                        }
                    }
                }
                Labelling { labels: y, features, fits }
            };
            labellings(labels.len(), sequence.len()).into_iter().map(one).collect()
        };
        Self(source.sequences.iter().map(each).collect())
    }

    /// `-Σ log p`.
    pub(crate) fn value(&self, theta: &[f64]) -> f64 {
        let one = |all: &Vec<Labelling>| {
            let scores: Vec<(f64, bool)> = all.iter().map(|y| (y.score(theta), y.fits)).collect();
            log_sum(scores.iter().map(|s| s.0)) - log_sum(scores.iter().filter(|s| s.1).map(|s| s.0))
        };
        self.0.iter().map(one).sum()
    }

    /// Expected less observed features.
    pub(crate) fn gradient(&self, theta: &[f64]) -> Vec<f64> {
        let mut gradient = vec![0.0; theta.len()];
        for all in &self.0 {
            for (only, sign) in [(false, 1.0), (true, -1.0)] {
                let those = all.iter().filter(|y| y.fits || !only);
                let log_z = log_sum(those.clone().map(|y| y.score(theta)));
                for y in those {
                    let p = sign * (y.score(theta) - log_z).exp();
                    y.features.iter().for_each(|&(k, value)| gradient[k] += p * value);
                }
            }
        }
        gradient
    }

    /// Central differences of the value.
    pub(crate) fn slopes(&self, theta: &[f64]) -> Vec<f64> {
        let h = 1e-5;
        let at = |k: usize, step: f64| {
            let mut theta = theta.to_vec();
            theta[k] += step;
            self.value(&theta)
        };
        let one = |k: usize| (at(k, h) - at(k, -h)) / (2.0 * h);
        (0..theta.len()).map(one).collect()
    }
}

/// Names of the labels of an alphabet.
pub(crate) fn names(alphabet: &Alphabet) -> Vec<String> {
    alphabet.labels.iter().map(str::to_owned).collect()
}
