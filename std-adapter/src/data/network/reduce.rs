//! Evidence: condition a network on it before anything is planned or run, and carry results back.

use super::Network;
use gibbsite_core::score::Score;
use gibbsite_core::stride::{self, Axes};
use std::fmt;

/// Observed labels, sorted by variable, each variable once.
///
/// ```
/// use gibbsite::data::network::{Evidence, EvidenceError};
/// let evidence = Evidence::from_pairs([(7, 0), (3, 1), (7, 0)])?;
/// assert_eq!(evidence.pairs(), &[(3, 1), (7, 0)]);
/// assert!(Evidence::from_pairs([(3, 0), (3, 1)]).is_err());
/// # Ok::<(), EvidenceError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    pairs: Vec<(u32, u32)>,
}

/// Evidence that contradicts itself or does not fit the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EvidenceError {
    /// A variable is observed with two labels.
    Contradiction {
        /// The variable.
        variable: u32,
        /// Its smallest and next label.
        labels: [u32; 2],
    },
    /// The network does not have this variable.
    NoSuchVariable {
        /// The observed variable.
        variable: u32,
        /// How many variables there are.
        variables: usize,
    },
    /// The label is not smaller than the variable's arity.
    Label {
        /// The variable.
        variable: u32,
        /// The label it was observed with.
        label: u32,
        /// Its arity.
        arity: u32,
    },
    /// The product of some factors' potentials leaves the range of numbers.
    Overflow,
}

impl fmt::Display for EvidenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Contradiction { variable, labels: [a, b] } => {
                write!(f, "variable {variable} is observed both as {a} and as {b}")
            }
            Self::NoSuchVariable { variable, variables } => {
                write!(f, "variable {variable} is observed, but the model has {variables} variables")
            }
            Self::Label { variable, label, arity } => {
                write!(f, "variable {variable} is observed as {label}, but its arity is {arity}")
            }
            Self::Overflow => write!(f, "the log-potentials are too large to be added"),
        }
    }
}

impl std::error::Error for EvidenceError {}

impl Evidence {
    /// Nothing is observed.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sorts pairs `(variable, label)`; equal ones may repeat.
    ///
    /// # Errors
    /// [`EvidenceError::Contradiction`].
    pub fn from_pairs(pairs: impl IntoIterator<Item = (u32, u32)>) -> Result<Self, EvidenceError> {
        let mut pairs: Vec<_> = pairs.into_iter().collect();
        pairs.sort_unstable();
        pairs.dedup();
        for (&(u, a), &(v, b)) in pairs.iter().zip(pairs.iter().skip(1)) {
            if u == v {
                return Err(EvidenceError::Contradiction { variable: u, labels: [a, b] });
            }
        }
        Ok(Self { pairs })
    }

    /// Pairs `(variable, label)`, the variables ascending.
    pub fn pairs(&self) -> &[(u32, u32)] {
        &self.pairs
    }

    /// The observed label of a variable.
    pub fn get(&self, variable: u32) -> Option<u32> {
        let at = self.pairs.binary_search_by_key(&variable, |&(v, _)| v).ok()?;
        self.pairs.get(at).map(|&(_, label)| label)
    }

    /// How many variables are observed.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether nothing is observed.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }
}

/// What [`Network::reduce`] leaves: a smaller network, and the way back.
///
/// For each assignment `x` of the kept variables, `log_potential` of the original network at `x` and the
/// evidence is that of `network` at `x` plus `constant`. So is `log Z`.
#[derive(Clone, Debug, PartialEq)]
pub struct Reduced {
    /// The network over the kept variables.
    pub network: Network,
    /// The original number of each variable of `network`, ascending.
    pub kept: Vec<u32>,
    /// Sum of the log-potentials that no longer depend on anything; `-inf` if a factor forbids every
    /// configuration that agrees with the evidence (also a factor that stayed in `network`): the
    /// evidence then has probability zero.
    pub constant: f64,
    /// For each original variable the label it was dropped with: the observed one, or 0 for a variable
    /// of arity 1. `None` for the kept ones.
    pub observed: Vec<Option<u32>>,
    /// Arity of each original variable.
    pub cards: Vec<u32>,
}

impl Reduced {
    /// Marginals of the original network from those of the reduced one. Both lie flat: the variables
    /// in order, as many probabilities each as its arity. Dropped variables get 1 at their label.
    /// `None` if `marginals` has the wrong length.
    pub fn expand_marginals(&self, marginals: &[f64]) -> Option<Vec<f64>> {
        let mut full = Vec::with_capacity(self.cards.iter().map(|&c| c as usize).sum());
        let mut rest = marginals;
        for (&card, &label) in self.cards.iter().zip(&self.observed) {
            match label {
                Some(label) => full.extend((0..card).map(|x| if x == label { 1.0 } else { 0.0 })),
                None => {
                    let (own, others) = rest.split_at_checked(card as usize)?;
                    full.extend_from_slice(own);
                    rest = others;
                }
            }
        }
        rest.is_empty().then_some(full)
    }

    /// The assignment of all original variables from one of the kept; `None` if its length is wrong.
    pub fn expand_assignment(&self, labels: &[u32]) -> Option<Vec<u32>> {
        let mut rest = labels.iter();
        let full: Option<Vec<_>> =
            self.observed.iter().map(|&label| label.or_else(|| rest.next().copied())).collect();
        if rest.next().is_none() { full } else { None }
    }
}

impl Network {
    /// Conditions on evidence: `ψ'_k(x) = ψ_k(x, evidence)`. Observed variables and those of arity 1
    /// leave, factors without variables add to the constant, factors over the same set of variables are
    /// multiplied into the first of them (which keeps its order of variables), the rest is renumbered.
    ///
    /// One pass over the tables and a sort of one key per factor; no recursion.
    ///
    /// ```
    /// use gibbsite::data::network::{Evidence, Network};
    /// let mut network = Network::with_cards([2, 3])?;
    /// network.push_factor(&[0, 1], [0.0, 0.1, 0.2, 1.0, 1.1, 1.2])?;
    /// network.push_factor(&[0], [5.0, 7.0])?;
    /// let reduced = network.reduce(&Evidence::from_pairs([(0, 1)])?)?;
    /// assert_eq!(reduced.network.table(0), &[1.0, 1.1, 1.2]);
    /// assert_eq!((reduced.kept.as_slice(), reduced.constant), (&[1][..], 7.0));
    /// assert_eq!(reduced.expand_assignment(&[2]), Some(vec![1, 2]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// An [`EvidenceError`] if the evidence names an unknown variable or a label outside its arity.
    pub fn reduce(&self, evidence: &Evidence) -> Result<Reduced, EvidenceError> {
        let variables = self.variables();
        let mut observed: Vec<_> = self.cards.iter().map(|&c| (c == 1).then_some(0)).collect();
        for &(variable, label) in evidence.pairs() {
            let missing = EvidenceError::NoSuchVariable { variable, variables };
            let &arity = self.cards.get(variable as usize).ok_or(missing)?;
            if label >= arity {
                return Err(EvidenceError::Label { variable, label, arity });
            }
            if let Some(slot) = observed.get_mut(variable as usize) {
                *slot = Some(label);
            }
        }
        let mut slicing = Slicing { from: self, observed, number: vec![0; variables] };
        let mut kept = Vec::with_capacity(variables - evidence.len().min(variables));
        for ((v, seen), number) in (0u32..).zip(&slicing.observed).zip(&mut slicing.number) {
            if seen.is_none() {
                *number = kept.len() as u32;
                kept.push(v);
            }
        }
        let cards = kept.iter().filter_map(|&v| self.cards.get(v as usize).copied()).collect();
        let (network, constant) = slicing.factors(cards)?;
        Ok(Reduced { network, kept, constant, observed: slicing.observed, cards: self.cards.clone() })
    }
}

struct Slicing<'a> {
    from: &'a Network,
    /// As in [`Reduced`].
    observed: Vec<Option<u32>>,
    /// New number of each kept variable.
    number: Vec<u32>,
}

impl Slicing<'_> {
    fn factors(&self, cards: Vec<u32>) -> Result<(Network, f64), EvidenceError> {
        let from = self.from;
        let mut to = Network { cards, ..Network::new() };
        to.reserve(from.factors(), from.edges(), from.entries());
        let mut constant = 0.0;
        let mut number_of = vec![0u32; from.factors()];
        for (k, first) in self.leaders().into_iter().enumerate() {
            let slice = self.agreeing(k);
            if first as usize != k {
                let leader = number_of.get(first as usize).map_or(usize::MAX, |&l| l as usize);
                if let Some(table) = to.values.get_mut(super::range(&to.table_start, leader)) {
                    let axes = self.pattern(k, first as usize);
                    stride::spread(&axes, table, slice, |product, value| *product += value);
                }
                continue;
            }
            let scope_before = to.scope.len();
            to.scope.extend(self.kept_scope(k).map(|v| self.new_number(v)));
            if to.scope.len() == scope_before {
                constant += slice.first().copied().unwrap_or(0.0);
                continue;
            }
            let size: usize = self.kept_scope(k).map(|v| self.card(v) as usize).product();
            // A slice reaches to the end of its table; if it is no longer than it must be, it is contiguous.
            if slice.len() == size {
                to.values.extend_from_slice(slice);
            } else {
                let before = to.values.len();
                to.values.resize(before + size, 0.0);
                let table = to.values.get_mut(before..).unwrap_or(&mut []);
                stride::spread(&self.pattern(k, k), table, slice, |entry, value| *entry = value);
            }
            if let Some(number) = number_of.get_mut(k) {
                *number = to.factors() as u32;
            }
            // Not longer than the arrays of `from`, whose lengths fit 32 bits.
            to.scope_start.push(to.scope.len() as u32);
            to.table_start.push(to.values.len() as u32);
        }
        if (0..to.factors()).any(|k| to.table(k).iter().all(|&v| v == f64::NEG_INFINITY)) {
            constant = f64::NEG_INFINITY;
        }
        if !constant.is_log_potential() || !to.values.iter().all(|v| v.is_log_potential()) {
            return Err(EvidenceError::Overflow);
        }
        Ok((to, constant))
    }

    fn kept_scope(&self, factor: usize) -> impl Iterator<Item = u32> {
        self.from.scope(factor).iter().copied().filter(|&v| self.label(v).is_none())
    }

    fn label(&self, v: u32) -> Option<u32> {
        self.observed.get(v as usize).copied().flatten()
    }

    fn new_number(&self, v: u32) -> u32 {
        self.number.get(v as usize).copied().unwrap_or(0)
    }

    fn card(&self, v: u32) -> u32 {
        self.from.cards.get(v as usize).copied().unwrap_or(1)
    }

    /// A factor's table from its first entry that agrees with the evidence.
    fn agreeing(&self, factor: usize) -> &[f64] {
        let (mut stride, mut base) = (1usize, 0usize);
        for &v in self.from.scope(factor).iter().rev() {
            base += self.label(v).unwrap_or(0) as usize * stride;
            stride *= self.card(v) as usize;
        }
        self.from.table(factor).get(base..).unwrap_or(&[])
    }

    /// How the entries of `factor` that agree with the evidence lie under a table over the kept variables
    /// of the factor `like`, in that one's order.
    fn pattern(&self, factor: usize, like: usize) -> Axes {
        let scope = self.from.scope(factor);
        let mut axes = Axes::new();
        for v in self.kept_scope(like) {
            let after = scope.iter().rev().take_while(|&&u| u != v);
            // A table's length fits 32 bits, and so do its strides; a scope fits the axes.
            let stride = after.map(|&u| self.card(u)).product();
            stride::push(&mut axes, self.card(v), stride);
        }
        axes
    }

    /// For each factor the first one with the same set of kept variables; itself, if there is none or
    /// nothing is kept.
    ///
    /// Sorted by smallest variable, largest variable and a hash of the set, equal sets are neighbours; and
    /// as most networks list their factors in some such order, the sort finds long runs. Neighbours
    /// are compared exactly: a collision of hashes can only leave a pair unmerged, which is no less correct.
    fn leaders(&self) -> Vec<u32> {
        let mut leaders: Vec<u32> = (0..self.from.factors() as u32).collect();
        let mut keys: Vec<([u32; 3], u32)> = Vec::with_capacity(leaders.len());
        for &k in &leaders {
            let mut key = [u32::MAX, 0, 0];
            for v in self.kept_scope(k as usize) {
                let [low, high, hash] = key;
                key = [low.min(v), high.max(v), hash.wrapping_add(scatter(v))];
            }
            if key != [u32::MAX, 0, 0] {
                keys.push((key, k));
            }
        }
        // Stable: the factors of a set stay in their order.
        keys.sort_by_key(|&(key, _)| key);
        let mut group: Option<([u32; 3], u32)> = None;
        for (key, k) in keys {
            match group {
                Some((same, first)) if same == key && self.same_set(first as usize, k as usize) => {
                    if let Some(leader) = leaders.get_mut(k as usize) {
                        *leader = first;
                    }
                }
                _ => group = Some((key, k)),
            }
        }
        leaders
    }

    fn same_set(&self, a: usize, b: usize) -> bool {
        self.kept_scope(a).count() == self.kept_scope(b).count()
            && self.kept_scope(a).all(|v| self.from.scope(b).contains(&v))
    }
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood 2014): sums of it tell sets apart.
fn scatter(v: u32) -> u32 {
    let z = (u64::from(v) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z >> 32) as u32
}
