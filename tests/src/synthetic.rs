//! The synthetic models of Thesis 2.4.1, drawn and sampled without any code of gibbsite: binary `X` and `Y` with the same structure, edge factors
//! `φ(X_i, X_j)`, `φ(Y_i, Y_j)` and `φ(Y_i, X_i)`.

use gibbsite::features::Index;
use gibbsite::field::{Field, FieldData, Structure};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus as Rng;

/// Entries of a factor over two binary variables, the first slowest.
type Table = [f64; 4];

/// Which values the factors have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Factors {
    /// `s` where both labels are equal, else 0.
    Associative(f64),
    /// Each value uniform in `[-s, s]`.
    Random(f64),
}

/// A model `P(x) P(y | x)`.
#[derive(Clone, Debug)]
pub struct Synthetic {
    edges: Vec<[u32; 2]>,
    among_x: Vec<Table>,
    among_y: Vec<Table>,
    between: Vec<Table>,
    structure: Structure,
}

/// Sweeps before a sample of a Gibbs chain is taken, from a random start: far more than these weak factors need.
const SWEEPS: usize = 60;

impl Synthetic {
    /// Draws a model over so many pairs of variables.
    pub fn new(structure: Structure, variables: usize, factors: Factors, seed: u64) -> Self {
        let mut rng = Rng::seed_from_u64(seed);
        let edges = structure.edges(variables).expect("a structure of these variables");
        let mut table = || match factors {
            Factors::Associative(s) => [s, 0.0, 0.0, s],
            Factors::Random(s) => std::array::from_fn(|_| rng.random_range(-s..=s)),
        };
        let mut tables = |n: usize| (0..n).map(|_| table()).collect::<Vec<_>>();
        let (among_x, among_y, between) = (tables(edges.len()), tables(edges.len()), tables(variables));
        Self { edges, among_x, among_y, between, structure }
    }

    /// Pairs of variables.
    pub fn variables(&self) -> usize {
        self.between.len()
    }

    /// The field of `P(Y | X)`: each edge and each variable with parameters of its own.
    pub fn field(&self) -> Field {
        Field::pairwise(vec![2; self.variables()], &self.structure, false).expect("a field")
    }

    /// The parameters that can be told apart: of each variable its score for label 1 at `x = 0` and what `x = 1` adds; of each edge its
    /// score for `(1, 1)`. Everything at label 0 scores 0. That is the thesis' `r = 3n - 1` on chains.
    pub fn index(&self, field: &Field) -> Index {
        let attributes: Vec<u32> =
            field.templates().iter().map(|arities| if arities.len() == 1 { 2 } else { 1 }).collect();
        field.reference_index(&attributes).expect("an index")
    }

    /// The true values of those parameters.
    pub fn theta(&self, field: &Field, index: &Index) -> Vec<f64> {
        let mut theta = vec![0.0; index.len()];
        for k in 0..field.factors() {
            let template = field.template(k);
            let mut set = |attribute: u32, y: u32, value: f64| {
                theta[index.parameter(template, attribute, y).expect("a parameter")] += value;
            };
            match *field.scope(k) {
                [i] => {
                    let [t00, t01, t10, t11] = self.between[i as usize];
                    // `between` is φ(y, x); edges add what they say about one label when the other is 0.
                    set(0, 1, t10 - t00);
                    set(1, 1, (t11 - t01) - (t10 - t00));
                    for (edge, table) in self.edges.iter().zip(&self.among_y) {
                        if edge[0] == i {
                            set(0, 1, table[2] - table[0]);
                        } else if edge[1] == i {
                            set(0, 1, table[1] - table[0]);
                        }
                    }
                }
                [i, j] => {
                    let at = self.edges.iter().position(|e| *e == [i, j] || *e == [j, i]).expect("an edge");
                    let [t00, t01, t10, t11] = self.among_y[at];
                    set(0, 3, t11 - t10 - t01 + t00);
                }
                _ => unreachable!("factors of one or two variables"),
            }
        }
        theta
    }

    /// Draws samples: first `x`, then `y` given `x`; up to 10 variables from the list of all configurations, beyond that each by its own Gibbs chain.
    pub fn sample(&self, field: &Field, samples: usize, seed: u64) -> FieldData {
        let n = self.variables();
        let inputs: Vec<bool> = field.templates().iter().map(|arities| arities.len() == 1).collect();
        let mut data = FieldData::new(field, &inputs).expect("inputs of single variables");
        let mut rng = Rng::seed_from_u64(seed);
        let mut neighbours: Vec<Vec<(usize, usize, bool)>> = vec![vec![]; n];
        for (k, &[a, b]) in self.edges.iter().enumerate() {
            neighbours[a as usize].push((b as usize, k, true));
            neighbours[b as usize].push((a as usize, k, false));
        }
        let draw = |tables: &[Table], pull: &[[f64; 2]], rng: &mut Rng| {
            if n <= 10 {
                enumerated(&self.edges, tables, pull, rng)
            } else {
                chain(&neighbours, tables, pull, rng)
            }
        };
        for _ in 0..samples {
            let x = draw(&self.among_x, &vec![[0.0; 2]; n], &mut rng);
            let pull: Vec<[f64; 2]> = (0..n)
                .map(|i| [self.between[i][x[i] as usize], self.between[i][2 + x[i] as usize]])
                .collect();
            let y = draw(&self.among_y, &pull, &mut rng);
            let rows = x.iter().map(|&x| if x == 1 { vec![(0, 1.0), (1, 1.0)] } else { vec![(0, 1.0)] });
            data.push(field, &y, rows).expect("a sample of the field");
        }
        data
    }
}

/// A draw from the list of all configurations.
fn enumerated(edges: &[[u32; 2]], tables: &[Table], pull: &[[f64; 2]], rng: &mut Rng) -> Vec<u32> {
    let label = |code: usize, i: u32| (code >> i) & 1;
    let weights: Vec<f64> = (0..1usize << pull.len())
        .map(|code| {
            let own: f64 = (0..).zip(pull).map(|(i, pull)| pull[label(code, i)]).sum();
            let pairs =
                edges.iter().zip(tables).map(|(&[a, b], table)| table[2 * label(code, a) + label(code, b)]);
            (own + pairs.sum::<f64>()).exp()
        })
        .collect();
    let mut left = rng.random::<f64>() * weights.iter().sum::<f64>();
    let found = weights.iter().position(|w| {
        left -= w;
        left < 0.0
    });
    let code = found.unwrap_or(weights.len() - 1);
    (0..pull.len() as u32).map(|i| label(code, i) as u32).collect()
}

/// The end of a Gibbs chain.
fn chain(
    neighbours: &[Vec<(usize, usize, bool)>],
    tables: &[Table],
    pull: &[[f64; 2]],
    rng: &mut Rng,
) -> Vec<u32> {
    let mut state: Vec<u32> = (0..neighbours.len()).map(|_| u32::from(rng.random_bool(0.5))).collect();
    for _ in 0..SWEEPS {
        for i in 0..state.len() {
            let mut score = pull[i][1] - pull[i][0];
            for &(j, k, first) in &neighbours[i] {
                let other = state[j] as usize;
                let at = |own: usize| tables[k][if first { 2 * own + other } else { 2 * other + own }];
                score += at(1) - at(0);
            }
            state[i] = u32::from(rng.random::<f64>() < 1.0 / (1.0 + (-score).exp()));
        }
    }
    state
}
