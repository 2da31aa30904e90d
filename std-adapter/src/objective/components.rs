//! Components of a composite likelihood: which variables are explained by which (Thesis eq. 2.5, SCL eq. 15).
//!
//! A component is a pair of sets `(A, B)` with a weight: `-weight · log P(y_A | y_B, x)`. Likelihood is one component, pseudolikelihood
//! is `n`; everything here only makes lists.
//!
//! Proposition 2.5.1 of the thesis: components that cover each variable exactly once, each given all the rest, give a consistent
//! estimator. Proposition 2.5.2: so do unions of such lists ([`Components::and`]).

use crate::field::Field;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::VecDeque;
use std::fmt;

/// What a component conditions on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    /// All other variables.
    Rest,
    /// These; what is in neither set is summed out.
    Only(Vec<u32>),
}

/// `-weight · log P(y_A | y_B, x)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Component {
    /// The variables `A` that are explained.
    pub variables: Vec<u32>,
    /// The variables `B` that are given.
    pub given: Given,
    /// The weight, not negative.
    pub weight: f64,
}

impl Component {
    /// These variables given all others, with weight 1.
    pub fn given_rest(variables: impl Into<Vec<u32>>) -> Self {
        Self { variables: variables.into(), given: Given::Rest, weight: 1.0 }
    }
}

/// A checked list of components: together they explain every variable.
///
/// ```
/// use gibbsite::field::{Field, Structure};
/// use gibbsite::objective::components::{Component, Components};
/// let field = Field::pairwise(vec![2; 6], &Structure::Grid { rows: 2, columns: 3 }, true)?;
/// assert_eq!(Components::pseudo(&field).len(), 6);
/// assert_eq!(Components::named("combs", &field)?.list()[0].variables, [0, 1, 2]);
/// let error = Components::new(&field, vec![Component::given_rest([0, 1, 2, 3, 5])]).unwrap_err();
/// assert_eq!(error.to_string(), "no component explains variable 4: its parameters could not be estimated");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Components(Vec<Component>);

/// A list of components that is not one for the field.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ComponentError {
    /// No component explains the variable.
    Uncovered {
        /// The variable.
        variable: u32,
    },
    /// There is no such variable.
    NoSuchVariable {
        /// The component's number.
        component: usize,
        /// The variable.
        variable: u32,
        /// How many variables there are.
        variables: usize,
    },
    /// A variable is there twice, in `A`, in `B`, or in both.
    Repeated {
        /// The component's number.
        component: usize,
        /// The variable.
        variable: u32,
    },
    /// The component explains nothing.
    Empty {
        /// The component's number.
        component: usize,
    },
    /// The weight is negative or not a number.
    Weight {
        /// The component's number.
        component: usize,
    },
    /// The list is for grids only.
    NotGrid,
    /// No list of that name.
    Unknown(String),
    /// A line of a component file that cannot be read.
    Line {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
}

impl fmt::Display for ComponentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uncovered { variable } => {
                write!(f, "no component explains variable {variable}: its parameters could not be estimated")
            }
            Self::NoSuchVariable { component, variable, variables } => write!(
                f,
                "component {component} names variable {variable}, but there are {variables} variables (from 0)"
            ),
            Self::Repeated { component, variable } => {
                write!(f, "component {component} names variable {variable} twice")
            }
            Self::Empty { component } => write!(f, "component {component} explains no variable"),
            Self::Weight { component } => {
                write!(f, "the weight of component {component} is negative or not a number")
            }
            Self::NotGrid => {
                write!(f, "combs need a grid: use --structure grid:ROWSxCOLUMNS, or other components")
            }
            Self::Unknown(name) => write!(
                f,
                "unknown components '{name}'; known are mle, pseudo, pairs, combs, combs-horizontal, combs-both, trees, trees:N and k:K"
            ),
            Self::Line { line, why } => write!(f, "line {line}: {why}"),
        }
    }
}

impl std::error::Error for ComponentError {}

impl Components {
    /// Checks a list: variables exist, none twice in a component, weights are not negative, and every variable is explained by some
    /// component of positive weight.
    ///
    /// # Errors
    /// A [`ComponentError`] that names the component, or the first variable that none explains.
    pub fn new(field: &Field, list: Vec<Component>) -> Result<Self, ComponentError> {
        let components = Self(list);
        components.check(field)?;
        Ok(components)
    }

    /// Whether they are for this field.
    pub(super) fn check(&self, field: &Field) -> Result<(), ComponentError> {
        let variables = field.variables();
        // The component that named each variable last.
        let mut named_by = vec![usize::MAX; variables];
        let mut covered = vec![false; variables];
        for (component, c) in self.0.iter().enumerate() {
            if c.variables.is_empty() {
                return Err(ComponentError::Empty { component });
            }
            if !(c.weight >= 0.0 && c.weight.is_finite()) {
                return Err(ComponentError::Weight { component });
            }
            let given: &[u32] = if let Given::Only(list) = &c.given { list } else { &[] };
            for &variable in c.variables.iter().chain(given) {
                match named_by.get_mut(variable as usize) {
                    None => return Err(ComponentError::NoSuchVariable { component, variable, variables }),
                    Some(by) if *by == component => {
                        return Err(ComponentError::Repeated { component, variable });
                    }
                    Some(by) => *by = component,
                }
            }
            for &v in &c.variables {
                covered[v as usize] |= c.weight > 0.0;
            }
        }
        match covered.iter().position(|&c| !c) {
            Some(v) => Err(ComponentError::Uncovered { variable: v as u32 }),
            None => Ok(()),
        }
    }

    /// The components.
    pub fn list(&self) -> &[Component] {
        &self.0
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none: for a field without variables.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Both lists (Prop. 2.5.2).
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// All weights times a number that is not negative.
    pub fn weighted(mut self, weight: f64) -> Self {
        self.0.iter_mut().for_each(|c| c.weight *= weight);
        self
    }

    /// One component, all variables: the likelihood (eq. 2.3).
    pub fn mle(field: &Field) -> Self {
        match field.variables() as u32 {
            0 => Self(vec![]),
            n => Self(vec![Component::given_rest(Vec::from_iter(0..n))]),
        }
    }

    /// Each variable given all others: the pseudolikelihood (eq. 2.4, Besag 1975).
    pub fn pseudo(field: &Field) -> Self {
        Self((0..field.variables() as u32).map(|v| Component::given_rest([v])).collect())
    }

    /// Each pair of variables that share a factor, given all others; variables without neighbours by themselves.
    pub fn pairs(field: &Field) -> Self {
        let mut pairs = Vec::new();
        let mut alone = vec![true; field.variables()];
        for k in 0..field.factors() {
            let scope = field.scope(k);
            for (i, &u) in scope.iter().enumerate() {
                for &v in &scope[i + 1..] {
                    pairs.push([u.min(v), u.max(v)]);
                    (alone[u as usize], alone[v as usize]) = (false, false);
                }
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        let single = (0..field.variables() as u32).filter(|&v| alone[v as usize]);
        let single = single.map(|v| Component::given_rest([v]));
        Self(pairs.into_iter().map(Component::given_rest).chain(single).collect())
    }

    /// The two combs of Thesis Fig. 2.1, which share out the variables of a grid and are trees: the first has the first row as
    /// its spine and every other column as a tooth, the second the last row and the columns between. `horizontal` turns them.
    ///
    /// # Errors
    /// [`ComponentError::NotGrid`].
    pub fn combs(field: &Field, horizontal: bool) -> Result<Self, ComponentError> {
        let [rows, columns] = field.grid().ok_or(ComponentError::NotGrid)?;
        let mut combs = [vec![], vec![]];
        for row in 0..rows {
            for column in 0..columns {
                let (along, across, last) =
                    if horizontal { (column, row, columns - 1) } else { (row, column, rows - 1) };
                let second = along != 0 && (along == last || across % 2 == 1);
                combs[usize::from(second)].push(row * columns + column);
            }
        }
        Ok(Self(combs.into_iter().filter(|c| !c.is_empty()).map(Component::given_rest).collect()))
    }

    /// Connected blocks of at most `k` variables that share out the field, grown breadth first from the first variable left.
    pub fn blocks(field: &Field, k: usize) -> Self {
        let (starts, factors) = field.incidence();
        let mut taken = vec![false; field.variables()];
        let mut list = Vec::new();
        for root in 0..field.variables() as u32 {
            if taken[root as usize] {
                continue;
            }
            let mut block = Vec::new();
            let mut queue = VecDeque::from([root]);
            taken[root as usize] = true;
            while let Some(v) = queue.pop_front() {
                block.push(v);
                for &f in &factors[starts[v as usize] as usize..starts[v as usize + 1] as usize] {
                    for &u in field.scope(f as usize) {
                        if !taken[u as usize] && block.len() + queue.len() < k {
                            taken[u as usize] = true;
                            queue.push_back(u);
                        }
                    }
                }
            }
            block.sort_unstable();
            list.push(Component::given_rest(block));
        }
        Self(list)
    }

    /// `rounds` times: shares out the variables among few sets that have no cycles inside, so that inference is linear in each (section 2.5: "a small
    /// number of structured components which both cover Y and have low treewidth … combine multiple such").
    ///
    /// Variables come in the order of a random spanning forest (Prim's algorithm with random edge weights), and each goes to the first
    /// set in which it closes no cycle: the sets are then mostly large trees. Weights are `1/rounds`.
    pub fn trees(field: &Field, rounds: usize, seed: u64) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let weight = 1.0 / rounds.max(1) as f64;
        let mut list = Vec::new();
        for _ in 0..rounds.max(1) {
            let order = random_spanning_order(field, &mut rng);
            let sets = acyclic_sets(field, &order);
            list.extend(sets.into_iter().map(|a| Component { weight, ..Component::given_rest(a) }));
        }
        Self(list)
    }

    /// By name: `mle`, `pseudo`, `pairs`, `combs`, `combs-horizontal`, `combs-both`, `trees` (one round), `trees:N`, `k:K`.
    ///
    /// # Errors
    /// [`ComponentError::Unknown`], [`ComponentError::NotGrid`].
    pub fn named(name: &str, field: &Field) -> Result<Self, ComponentError> {
        let number = |text: &str| text.parse::<usize>().ok().filter(|&n| n > 0);
        let unknown = || ComponentError::Unknown(name.to_owned());
        Ok(match name.split_once(':') {
            None => match name {
                "mle" => Self::mle(field),
                "pseudo" => Self::pseudo(field),
                "pairs" => Self::pairs(field),
                "combs" => Self::combs(field, false)?,
                "combs-horizontal" => Self::combs(field, true)?,
                "combs-both" => Self::combs(field, false)?.and(Self::combs(field, true)?).weighted(0.5),
                "trees" => Self::trees(field, 1, 0),
                _ => return Err(unknown()),
            },
            Some(("trees", n)) => Self::trees(field, number(n).ok_or_else(unknown)?, 0),
            Some(("k", k)) => Self::blocks(field, number(k).ok_or_else(unknown)?),
            _ => return Err(unknown()),
        })
    }

    /// From text, one component a line: `[WEIGHT *] A [| B]`, where A and B are variables or ranges `FIRST-LAST`, from 0, between blanks.
    /// Without `|` all other variables are given; with it, only those after it (maybe none). `#` begins a comment.
    ///
    /// ```
    /// # use gibbsite::field::{Field, Structure};
    /// # use gibbsite::objective::components::{Components, Given};
    /// let field = Field::pairwise(vec![2; 5], &Structure::Chain, true)?;
    /// let list = Components::parse("0-2      # given 3 and 4\n0.5 * 3 4 | 2", &field)?;
    /// assert_eq!(list.list()[1].given, Given::Only(vec![2]));
    /// let error = Components::parse("0-3\n\n5", &field).unwrap_err();
    /// assert_eq!(error.to_string(), "line 3: there is no variable 5: there are 5 variables, from 0");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ComponentError::Line`]; [`ComponentError::Uncovered`].
    pub fn parse(text: &str, field: &Field) -> Result<Self, ComponentError> {
        let mut list = Vec::new();
        let mut lines = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or("").trim();
            if !line.is_empty() {
                let component = parse_line(line, field.variables());
                list.push(component.map_err(|why| ComponentError::Line { line: number, why })?);
                lines.push(number);
            }
        }
        Self::new(field, list).map_err(|e| {
            let (component, why) = match e {
                ComponentError::Repeated { component, variable } => {
                    (component, format!("variable {variable} is there twice"))
                }
                ComponentError::Empty { component } => (component, "no variable is explained".to_owned()),
                ComponentError::Weight { component } => {
                    (component, "the weight is negative or not a number".to_owned())
                }
                other => return other,
            };
            ComponentError::Line { line: lines[component], why }
        })
    }
}

fn parse_line(line: &str, variables: usize) -> Result<Component, String> {
    let (weight, sets) = match line.split_once('*') {
        None => (1.0, line),
        Some((weight, sets)) => {
            let weight = weight.trim();
            (weight.parse().map_err(|_| format!("'{weight}' is not a weight"))?, sets)
        }
    };
    let (a, given) = match sets.split_once('|') {
        None => (sets, Given::Rest),
        Some((a, b)) => (a, Given::Only(parse_set(b, variables)?)),
    };
    Ok(Component { variables: parse_set(a, variables)?, given, weight })
}

fn parse_set(text: &str, variables: usize) -> Result<Vec<u32>, String> {
    let mut set = Vec::new();
    for word in text.split_whitespace() {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        let number = |text: &str| text.parse::<u32>().map_err(|_| format!("'{word}' is not a variable"));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(format!("the range {word} is empty"));
        }
        if last as usize >= variables {
            return Err(format!("there is no variable {last}: there are {variables} variables, from 0"));
        }
        set.extend(first..=last);
    }
    Ok(set)
}

/// The order in which Prim's algorithm with random edge weights reaches the variables, each part from a random one.
fn random_spanning_order(field: &Field, rng: &mut Xoshiro256PlusPlus) -> Vec<u32> {
    let (starts, factors) = field.incidence();
    let n = field.variables();
    let mut roots: Vec<u32> = (0..n as u32).collect();
    for i in (1..n).rev() {
        roots.swap(i, rng.random_range(0..=i));
    }
    let mut taken = vec![false; n];
    let mut order = Vec::with_capacity(n);
    let mut heap = std::collections::BinaryHeap::new();
    for root in roots {
        heap.push((0u64, root));
        while let Some((_, v)) = heap.pop() {
            if std::mem::replace(&mut taken[v as usize], true) {
                continue;
            }
            order.push(v);
            for &f in &factors[starts[v as usize] as usize..starts[v as usize + 1] as usize] {
                for &u in field.scope(f as usize).iter().filter(|&&u| !taken[u as usize]) {
                    heap.push((rng.random(), u));
                }
            }
        }
    }
    order
}

/// Puts each variable, in the given order, into the first set in which it closes no cycle.
fn acyclic_sets(field: &Field, order: &[u32]) -> Vec<Vec<u32>> {
    let (starts, factors) = field.incidence();
    let n = field.variables();
    let mut set_of = vec![usize::MAX; n];
    // A union-find forest within the sets.
    let mut root: Vec<u32> = (0..n as u32).collect();
    let find = |root: &mut [u32], mut v: u32| {
        while root[v as usize] != v {
            root[v as usize] = root[root[v as usize] as usize];
            v = root[v as usize];
        }
        v
    };
    let mut sets: Vec<Vec<u32>> = Vec::new();
    for &v in order {
        let own = &factors[starts[v as usize] as usize..starts[v as usize + 1] as usize];
        let mut set = 0;
        let joined = loop {
            // The distinct groups of neighbours inside this set: factors with the same ones are merged before inference.
            let mut groups: Vec<Vec<u32>> = Vec::new();
            for &f in own {
                let scope = field.scope(f as usize);
                let mut group: Vec<u32> =
                    scope.iter().copied().filter(|&u| u != v && set_of[u as usize] == set).collect();
                group.sort_unstable();
                if !group.is_empty() && !groups.contains(&group) {
                    groups.push(group);
                }
            }
            // Within a group all are already one tree if the factor joined them, so a second way to a tree is a cycle.
            let mut trees: Vec<u32> = Vec::new();
            let mut free = true;
            for group in &groups {
                let mut own: Vec<u32> = group.iter().map(|&u| find(&mut root, u)).collect();
                own.sort_unstable();
                own.dedup();
                free &= own.iter().all(|r| !trees.contains(r));
                trees.extend(own);
            }
            if free {
                break trees;
            }
            set += 1;
        };
        for tree in joined {
            root[tree as usize] = v;
        }
        set_of[v as usize] = set;
        if set == sets.len() {
            sets.push(vec![]);
        }
        sets[set].push(v);
    }
    sets.iter_mut().for_each(|set| set.sort_unstable());
    sets
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::Structure;

    fn grid(rows: u32, columns: u32) -> Field {
        Field::pairwise(vec![2; (rows * columns) as usize], &Structure::Grid { rows, columns }, true).unwrap()
    }

    #[test]
    fn partitions_cover_each_variable_once_and_trees_have_no_cycles() {
        for (rows, columns) in [(1, 1), (1, 5), (5, 1), (2, 2), (4, 5), (7, 6)] {
            let field = grid(rows, columns);
            let n = field.variables();
            let edges = Structure::Grid { rows, columns }.edges(n).unwrap();
            for name in ["mle", "pseudo", "combs", "combs-horizontal", "trees", "k:1", "k:4", "k:1000"] {
                let list = Components::named(name, &field).unwrap();
                let mut all: Vec<u32> = list.list().iter().flat_map(|c| c.variables.clone()).collect();
                all.sort_unstable();
                assert_eq!(all, Vec::from_iter(0..n as u32), "{name}");
                assert_eq!(Components::new(&field, list.list().to_vec()).as_ref(), Ok(&list));
                let inside = |c: &Component| {
                    edges.iter().filter(|e| e.iter().all(|v| c.variables.contains(v))).count()
                };
                if name.starts_with("combs") || name == "trees" {
                    assert!(list.len() <= 3);
                    assert!(list.list().iter().all(|c| inside(c) < c.variables.len()), "{name}");
                }
            }
            assert_eq!(Components::pairs(&field).len(), edges.len().max(usize::from(n == 1)));
        }
        assert_eq!(Components::combs(&grid(20, 20), false).unwrap().len(), 2);
    }

    #[test]
    fn errors_name_the_line() {
        let field = grid(1, 4);
        for (text, error) in [
            ("0-3\n1 1", "line 2: variable 1 is there twice"),
            ("0-3 | 3", "line 1: variable 3 is there twice"),
            ("0-3\n# none\n | 1", "line 3: no variable is explained"),
            ("x * 0-3", "line 1: 'x' is not a weight"),
            ("-1 * 0-3", "line 1: the weight is negative or not a number"),
            ("0 1 a", "line 1: 'a' is not a variable"),
            ("3-0", "line 1: the range 3-0 is empty"),
            ("0 1 3", "no component explains variable 2: its parameters could not be estimated"),
            ("0 * 0-3", "no component explains variable 0: its parameters could not be estimated"),
        ] {
            assert_eq!(Components::parse(text, &field).unwrap_err().to_string(), error);
        }
        for name in ["", "comb", "k:0", "k:", "trees:x", "combs:2"] {
            assert!(matches!(Components::named(name, &field), Err(ComponentError::Unknown(_))), "{name}");
        }
        let chain = Field::pairwise(vec![2; 4], &Structure::Chain, true).unwrap();
        assert_eq!(Components::named("combs", &chain), Err(ComponentError::NotGrid));
    }
}
