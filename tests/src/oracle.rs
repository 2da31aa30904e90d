//! Exact answers by enumeration: slow, obvious, and accurate for log-potentials of any size.

use crate::desk::Found;
use gibbsite::data::network::Network;
use gibbsite_core::graph::FactorGraph;
use gibbsite_core::math::Real;
use gibbsite_core::score::Score;

/// A model as plain data: `P(x) ∝ exp Σ_k table_k(x_scope_k)`, the last variable of a scope fastest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    /// Arity of each variable.
    pub cards: Vec<u32>,
    /// Scope and log-potentials of each factor.
    pub factors: Vec<(Vec<u32>, Vec<f64>)>,
}

/// Everything that can be asked of a model that allows some configuration.
#[derive(Clone, Debug)]
pub struct Exact {
    /// `log Z`.
    pub log_z: f64,
    /// Marginals, variable after variable.
    pub marginals: Vec<f64>,
    /// The marginal over each factor's scope, laid out as its table.
    pub factor_marginals: Vec<Vec<f64>>,
    /// The largest log-potential of any configuration.
    pub best: f64,
}

/// A sum and its rounding error: about 32 digits.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    high: f64,
    low: f64,
}

impl Sum {
    /// Knuth's two-sum: `high + low` stays what it would be without rounding.
    fn add(self, x: f64) -> Self {
        let high = self.high + x;
        if !high.is_finite() {
            return Self { high, low: 0.0 };
        }
        let back = high - self.high;
        let error = (self.high - (high - back)) + (x - back);
        Self { high, low: self.low + error }
    }

    fn value(self) -> f64 {
        self.high + self.low
    }

    /// The difference, rounded only once it is small.
    fn minus(self, other: Self) -> f64 {
        if self.high == f64::NEG_INFINITY {
            return self.high;
        }
        (self.high - other.high) + (self.low - other.low)
    }
}

impl Model {
    /// Appends a factor.
    pub fn push(&mut self, scope: &[u32], table: impl Into<Vec<f64>>) {
        self.factors.push((scope.to_vec(), table.into()));
    }

    /// How many configurations there are.
    pub fn configurations(&self) -> u64 {
        self.cards.iter().map(|&c| u64::from(c)).product()
    }

    /// Calls `visit` with every configuration.
    pub fn each(&self, mut visit: impl FnMut(&[u32])) {
        let mut labels = vec![0; self.cards.len()];
        for number in 0..self.configurations() {
            let mut rest = number;
            for (label, &card) in labels.iter_mut().zip(&self.cards) {
                *label = (rest % u64::from(card)) as u32;
                rest /= u64::from(card);
            }
            visit(&labels);
        }
    }

    /// Position in a factor's table of what a configuration gives it.
    pub fn entry(&self, factor: usize, labels: &[u32]) -> usize {
        let mut at = 0;
        for &v in &self.factors[factor].0 {
            at = at * self.cards[v as usize] as usize + labels[v as usize] as usize;
        }
        at
    }

    fn score(&self, labels: &[u32]) -> Sum {
        let mut sum = Sum::default();
        for (k, (_, table)) in self.factors.iter().enumerate() {
            sum = sum.add(table[self.entry(k, labels)]);
        }
        sum
    }

    /// `Σ_k log ψ_k` at a configuration.
    pub fn log_potential(&self, labels: &[u32]) -> f64 {
        self.score(labels).value()
    }

    /// What no sum of log-potentials exceeds: `Σ_k max |log ψ_k|` over the finite ones, at least 1. An engine that
    /// rounds such sums to 53 bits is wrong by a few times this over `2^53`.
    pub fn magnitude(&self) -> f64 {
        let largest =
            |table: &[f64]| table.iter().filter(|v| v.is_finite()).fold(0f64, |m, v| m.max(v.abs()));
        self.factors.iter().map(|(_, table)| largest(table)).sum::<f64>().max(1.0)
    }

    /// All answers given the evidence, or `None` if it has probability zero.
    pub fn exact(&self, evidence: &[(u32, u32)]) -> Option<Exact> {
        let agrees = |labels: &[u32]| evidence.iter().all(|&(v, label)| labels[v as usize] == label);
        let mut top = Sum { high: f64::NEG_INFINITY, low: 0.0 };
        self.each(|labels| {
            let score = self.score(labels);
            if agrees(labels) && (top.high == f64::NEG_INFINITY || score.minus(top) > 0.0) {
                top = score;
            }
        });
        if top.high == f64::NEG_INFINITY {
            return None;
        }
        let mut total = Sum::default();
        let mut marginals: Vec<Vec<Sum>> =
            self.cards.iter().map(|&c| vec![Sum::default(); c as usize]).collect();
        let mut factors: Vec<Vec<Sum>> =
            self.factors.iter().map(|(_, table)| vec![Sum::default(); table.len()]).collect();
        self.each(|labels| {
            if !agrees(labels) {
                return;
            }
            let weight = self.score(labels).minus(top).exp();
            total = total.add(weight);
            for (marginal, &label) in marginals.iter_mut().zip(labels) {
                let cell = &mut marginal[label as usize];
                *cell = cell.add(weight);
            }
            for (k, marginal) in factors.iter_mut().enumerate() {
                let cell = &mut marginal[self.entry(k, labels)];
                *cell = cell.add(weight);
            }
        });
        let share = |sums: Vec<Sum>| sums.into_iter().map(|s| s.value() / total.value()).collect::<Vec<_>>();
        Some(Exact {
            log_z: top.add(total.value().ln()).value(),
            marginals: marginals.into_iter().flat_map(share).collect(),
            factor_marginals: factors.into_iter().map(share).collect(),
            best: top.value(),
        })
    }

    /// The model whose log-potentials are those of this one rounded to `f32`.
    pub fn rounded(mut self) -> Self {
        for (_, table) in &mut self.factors {
            for v in table {
                *v = f64::from(*v as f32);
            }
        }
        self
    }

    /// The model as the desk's network.
    pub fn network(&self) -> Network {
        let mut network = Network::with_cards(self.cards.clone()).expect("arities are positive");
        for (scope, table) in &self.factors {
            network.push_factor(scope, table.iter().copied()).expect("a well-formed factor");
        }
        network
    }

    /// The model as flat arrays of a scalar.
    pub fn flat<T: Real>(&self) -> Flat<T> {
        self.flat_by(T::from_f64)
    }

    /// The model as flat arrays of what a log-potential is turned into.
    pub fn flat_by<T>(&self, turn: impl Fn(f64) -> T) -> Flat<T> {
        let mut flat = Flat {
            cards: self.cards.clone(),
            scope_start: vec![0],
            scope: Vec::new(),
            table_start: vec![0],
            values: Vec::new(),
        };
        for (scope, table) in &self.factors {
            flat.scope.extend(scope);
            flat.values.extend(table.iter().map(|&v| turn(v)));
            flat.scope_start.push(flat.scope.len() as u32);
            flat.table_start.push(flat.values.len() as u32);
        }
        flat
    }
}

/// Owned arrays for a [`FactorGraph`].
#[derive(Clone, Debug)]
pub struct Flat<T> {
    /// Arity of each variable.
    pub cards: Vec<u32>,
    /// Where each factor's scope begins.
    pub scope_start: Vec<u32>,
    /// All scopes.
    pub scope: Vec<u32>,
    /// Where each factor's table begins.
    pub table_start: Vec<u32>,
    /// All tables.
    pub values: Vec<T>,
}

impl<T: Score> Flat<T> {
    /// The checked view.
    pub fn graph(&self) -> FactorGraph<'_, T> {
        FactorGraph::new(&self.cards, &self.scope_start, &self.scope, &self.table_start, &self.values)
            .expect("well-formed arrays")
    }
}

impl Exact {
    /// What is wrong with an engine's answers, if something is. `tolerance` is relative to `max(1, |expected|)` for
    /// logarithms; probabilities may be off by `probability`.
    pub fn fault(&self, model: &Model, found: &Found, tolerance: f64, probability: f64) -> Option<String> {
        if !close(found.log_z, self.log_z, tolerance) {
            return Some(format!("log Z is {}, not {}", found.log_z, self.log_z));
        }
        let off = distance(&found.marginals, &self.marginals);
        if off > probability {
            return Some(format!(
                "off by {off:e}: marginals {:?}, not {:?}",
                found.marginals, self.marginals
            ));
        }
        for (k, (found, exact)) in found.factor_marginals.iter().zip(&self.factor_marginals).enumerate() {
            let off = found.as_ref().map_or(0.0, |found| distance(found, exact));
            if off > probability {
                return Some(format!("off by {off:e}: marginal of factor {k} {found:?}, not {exact:?}"));
            }
        }
        if !close(found.best, self.best, tolerance) {
            return Some(format!("the maximum is {}, not {}", found.best, self.best));
        }
        let reached = model.log_potential(&found.labels);
        let missed = !close(reached, self.best, tolerance);
        missed.then(|| format!("{:?} reaches {reached}, not {}", found.labels, self.best))
    }
}

/// `|found - expected| ≤ tolerance · max(1, |expected|)`.
pub fn close(found: f64, expected: f64, tolerance: f64) -> bool {
    (found - expected).abs() <= tolerance * expected.abs().max(1.0)
}

/// The largest difference between two lists of equal length; infinite if they are not, or if NaN is among them.
pub fn distance(found: &[f64], expected: &[f64]) -> f64 {
    if found.len() != expected.len() {
        return f64::INFINITY;
    }
    found
        .iter()
        .zip(expected)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, |worst, d| if d.is_nan() { f64::INFINITY } else { worst.max(d) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two coupled coins by hand: ψ(0,0) = 3, ψ(0,1) = 1, ψ(1,0) = 0, ψ(1,1) = 2.
    #[test]
    fn enumerates_by_hand() {
        let mut model = Model { cards: vec![2, 2], ..Model::default() };
        model.push(&[1, 0], [3f64.ln(), f64::NEG_INFINITY, 0.0, 2f64.ln()]);
        let exact = model.exact(&[]).unwrap();
        assert!((exact.log_z - 6f64.ln()).abs() < 1e-15);
        assert!(distance(&exact.marginals, &[4.0 / 6.0, 2.0 / 6.0, 3.0 / 6.0, 3.0 / 6.0]) < 1e-15);
        assert!(distance(&exact.factor_marginals[0], &[0.5, 0.0, 1.0 / 6.0, 2.0 / 6.0]) < 1e-15);
        assert_eq!(exact.best, 3f64.ln());
        let given = model.exact(&[(0, 1)]).unwrap();
        assert!((given.log_z - 2f64.ln()).abs() < 1e-15);
        assert!(distance(&given.marginals, &[0.0, 1.0, 0.0, 1.0]) < 1e-15);
        assert!(model.exact(&[(0, 1), (1, 0)]).is_none());
    }

    /// A difference of 1 between sums near 10^16, where neighbouring floats are 2 apart.
    #[test]
    fn keeps_what_rounding_loses() {
        let mut model = Model { cards: vec![2], ..Model::default() };
        model.push(&[], [1e16]);
        model.push(&[0], [0.0, 1.0]);
        let exact = model.exact(&[]).unwrap();
        let e = 1f64.exp();
        assert!(distance(&exact.marginals, &[1.0 / (1.0 + e), e / (1.0 + e)]) < 1e-15);
    }
}
