//! From components and missing labels to pieces.
//!
//! For a component `(A, B)` let `F₁` be the variables that are free when `B` is clamped to its labels (`A`, what is in neither set, and
//! what is missing), and `F₂ ⊆ F₁` those still free when the known labels of `A` are clamped too. Then
//!
//! ```text
//! -log P(y_A | y_B) = log Z(F₁) - log Z(F₂)
//!                   = Σ_{pieces of F₁} log Z - Σ_{pieces of F₂} log Z - Σ_{factors that touch F₁ but not F₂} score
//! ```
//!
//! where a *piece* is a connected set of free variables: given its neighbours it is independent of everything else. Pieces of `F₁` without a
//! known variable of `A` are pieces of `F₂` too and cancel. With labels for everything and `A ∪ B = all`, `F₂` is empty and the last sum is a plain score.
//!
//! All this depends on a sample only through *which* labels are missing: samples with the same ones share a [`Pattern`], and equal pieces of different
//! components are one piece with the sum of their weights.

use super::components::{Component, Given};
use crate::field::Field;
use std::collections::HashMap;

/// The value of a sample as sums over pieces.
#[derive(Debug, Default)]
pub(super) struct Pattern {
    /// Variables that are pieces by themselves, with weights.
    pub(super) singles: Vec<(u32, f64)>,
    /// Numbers of larger pieces, with weights.
    pub(super) pieces: Vec<(u32, f64)>,
    /// Factors whose score at the labels is subtracted, with weights.
    pub(super) observed: Vec<(u32, f64)>,
}

/// A piece before it is planned.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) variables: Vec<u32>,
    /// The factors that mention them.
    pub(super) factors: Vec<u32>,
    /// The first component that needs it.
    pub(super) component: usize,
}

/// Finds the pieces of components; equal ones are found once.
#[derive(Debug)]
pub(super) struct Finder<'a> {
    field: &'a Field,
    starts: Vec<u32>,
    factors: Vec<u32>,
    numbers: HashMap<Vec<u32>, u32>,
    pub(super) drafts: Vec<Draft>,
    /// Marks of the component at hand: its number (from 1) where a variable is in `A`, or in `B`.
    in_a: Vec<usize>,
    in_b: Vec<usize>,
    /// Marks of the search at hand.
    visited: Vec<usize>,
    touched: Vec<usize>,
    searches: usize,
}

impl<'a> Finder<'a> {
    pub(super) fn new(field: &'a Field) -> Self {
        let (starts, factors) = field.incidence();
        let n = field.variables();
        Self {
            field,
            starts,
            factors,
            numbers: HashMap::new(),
            drafts: vec![],
            in_a: vec![0; n],
            in_b: vec![0; n],
            visited: vec![0; n],
            touched: vec![0; field.factors()],
            searches: 0,
        }
    }

    /// The pattern of samples with these labels missing.
    pub(super) fn pattern(&mut self, components: &[Component], missing: &[bool]) -> Pattern {
        let mut singles = vec![0.0; self.field.variables()];
        let mut observed = vec![0.0; self.field.factors()];
        let mut larger: HashMap<u32, usize> = HashMap::new();
        let mut pieces: Vec<(u32, f64)> = Vec::new();
        for (number, component) in components.iter().enumerate() {
            if component.weight == 0.0 {
                continue;
            }
            let mut sink = |finder: &mut Self, variables: Vec<u32>, factors: Vec<u32>, weight: f64| {
                if let [v] = variables[..] {
                    singles[v as usize] += weight;
                    return;
                }
                let piece = finder.intern(variables, factors, number);
                let at = *larger.entry(piece).or_insert(pieces.len());
                if at == pieces.len() {
                    pieces.push((piece, 0.0));
                }
                pieces[at].1 += weight;
            };
            self.component(component, missing, &mut observed, &mut sink);
        }
        let with = |list: Vec<f64>| {
            (0..).zip(list).filter(|&(_, weight): &(u32, f64)| weight != 0.0).collect::<Vec<_>>()
        };
        pieces.retain(|&(_, weight)| weight != 0.0);
        let mut singles = with(singles);
        singles.sort_by_key(|&(v, _)| self.field.cards()[v as usize]);
        Pattern { singles, pieces, observed: with(observed) }
    }

    fn intern(&mut self, variables: Vec<u32>, factors: Vec<u32>, component: usize) -> u32 {
        if let Some(&piece) = self.numbers.get(&variables) {
            return piece;
        }
        let piece = self.drafts.len() as u32;
        self.numbers.insert(variables.clone(), piece);
        self.drafts.push(Draft { variables, factors, component });
        piece
    }

    fn component(
        &mut self,
        component: &Component,
        missing: &[bool],
        observed: &mut [f64],
        sink: &mut impl FnMut(&mut Self, Vec<u32>, Vec<u32>, f64),
    ) {
        self.searches += 1;
        let mark = self.searches;
        let weight = component.weight;
        for &v in &component.variables {
            self.in_a[v as usize] = mark;
        }
        let only = match &component.given {
            Given::Rest => false,
            Given::Only(list) => {
                list.iter().for_each(|&v| self.in_b[v as usize] = mark);
                true
            }
        };
        let known_a = |finder: &Self, v: usize| finder.in_a[v] == mark && !missing[v];
        let free = |finder: &Self, v: usize| {
            finder.in_a[v] == mark || missing[v] || (only && finder.in_b[v] != mark)
        };
        for &root in &component.variables {
            if missing[root as usize] || self.visited[root as usize] == mark {
                continue;
            }
            let (variables, factors) = self.grow(root, mark, &free);
            let still_free = |finder: &Self, v: usize| free(finder, v) && !known_a(finder, v);
            for &k in &factors {
                if !self.field.scope(k as usize).iter().any(|&v| still_free(self, v as usize)) {
                    observed[k as usize] += weight;
                }
            }
            let left: Vec<u32> =
                variables.iter().copied().filter(|&v| still_free(self, v as usize)).collect();
            sink(self, variables, factors, weight);
            if !left.is_empty() {
                // These marks replace those of the outer search only inside a piece that it has finished, and not at its roots.
                self.searches += 1;
                let inner = self.searches;
                for root in left {
                    if self.visited[root as usize] != inner {
                        let (variables, factors) = self.grow(root, inner, &still_free);
                        sink(self, variables, factors, -weight);
                    }
                }
            }
        }
    }

    /// The piece around a variable, ascending, and the factors that mention it.
    fn grow(&mut self, root: u32, mark: usize, free: &impl Fn(&Self, usize) -> bool) -> (Vec<u32>, Vec<u32>) {
        let (mut variables, mut factors) = (vec![root], vec![]);
        self.visited[root as usize] = mark;
        let mut next = 0;
        while let Some(&v) = variables.get(next) {
            next += 1;
            for i in self.starts[v as usize]..self.starts[v as usize + 1] {
                let k = self.factors[i as usize];
                if self.touched[k as usize] == mark {
                    continue;
                }
                self.touched[k as usize] = mark;
                factors.push(k);
                for &u in self.field.scope(k as usize) {
                    if self.visited[u as usize] != mark && free(self, u as usize) {
                        self.visited[u as usize] = mark;
                        variables.push(u);
                    }
                }
            }
        }
        variables.sort_unstable();
        factors.sort_unstable();
        (variables, factors)
    }
}
