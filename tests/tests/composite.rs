//! Composite, pseudo- and piecewise likelihood against enumeration of all configurations, which shares no code with them.

use gibbsite::features::Index;
use gibbsite::field::{Coverage, Field, FieldData, MISSING, Structure};
use gibbsite::objective::components::{Component, ComponentError, Components, Given};
use gibbsite::objective::composite::Composite;
use gibbsite::objective::disjoint::disjoint;
use gibbsite::objective::piecewise::Piecewise;
use gibbsite::objective::{Inference, ObjectiveError, ObjectiveParams};
use gibbsite::par::Par;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus as Rng;

const SEQ: ObjectiveParams =
    ObjectiveParams { par: Par::Seq, max_table_mib: 64.0, inference: Inference::Exact };

/// For each factor, attributes with values.
type Rows = Vec<Vec<(u32, f64)>>;

/// A field with samples, as the oracle knows them.
#[derive(Clone, Debug)]
struct Case {
    cards: Vec<u32>,
    /// Arities, attributes, whether it has inputs.
    templates: Vec<(Vec<u32>, u32, bool)>,
    factors: Vec<(usize, Vec<u32>)>,
    /// Labels and attributes.
    samples: Vec<(Vec<u32>, Rows)>,
}

impl Case {
    fn build(&self) -> (Field, FieldData) {
        let mut field = Field::new(self.cards.clone()).unwrap();
        for (arities, ..) in &self.templates {
            field.push_template(arities).unwrap();
        }
        for (template, scope) in &self.factors {
            field.push_factor(*template, scope).unwrap();
        }
        let inputs: Vec<bool> = self.templates.iter().map(|t| t.2).collect();
        let mut data = FieldData::new(&field, &inputs).unwrap();
        for (labels, rows) in &self.samples {
            let rows = self.factors.iter().zip(rows).filter(|((t, _), _)| inputs[*t]).map(|(_, row)| row);
            data.push(&field, labels, rows).unwrap();
        }
        (field, data)
    }

    fn dense_index(&self) -> Index {
        let mut index = Index::new();
        for (arities, attributes, _) in &self.templates {
            index.push_dense(arities, *attributes).unwrap();
        }
        index
    }

    /// Where the parameters of each template begin, if there is one for each attribute and configuration.
    fn starts(&self) -> Vec<usize> {
        let mut at = 0;
        self.templates
            .iter()
            .map(|(arities, attributes, _)| {
                let start = at;
                at += arities.iter().product::<u32>() as usize * *attributes as usize;
                start
            })
            .collect()
    }

    fn parameters(&self) -> usize {
        self.templates.iter().map(|(a, n, _)| a.iter().product::<u32>() as usize * *n as usize).sum()
    }

    /// Features of a sample at an assignment: (parameter, value).
    fn features(&self, sample: usize, labels: &[u32], factor: usize) -> Vec<(usize, f64)> {
        let (template, scope) = &self.factors[factor];
        let size = self.templates[*template].0.iter().product::<u32>() as usize;
        let mut y = 0;
        for &v in scope {
            y = y * self.cards[v as usize] as usize + labels[v as usize] as usize;
        }
        let start = self.starts()[*template];
        let row = &self.samples[sample].1[factor];
        row.iter().map(|&(a, value)| (start + a as usize * size + y, value)).collect()
    }

    /// All assignments that agree with the labels that are not missing.
    fn assignments(&self, clamped: &[u32]) -> Vec<Vec<u32>> {
        let mut all = vec![vec![]];
        for (&card, &label) in self.cards.iter().zip(clamped) {
            let choices = if label == MISSING { 0..card } else { label..label + 1 };
            all = all
                .into_iter()
                .flat_map(|head: Vec<u32>| {
                    choices.clone().map(move |x| [head.as_slice(), &[x]].concat()).collect::<Vec<_>>()
                })
                .collect();
        }
        all
    }

    /// `log Z` with some labels clamped, and its gradient.
    fn log_z(&self, sample: usize, clamped: &[u32], theta: &[f64]) -> (f64, Vec<f64>) {
        let mut list = Vec::new();
        for labels in self.assignments(clamped) {
            let features: Vec<_> =
                (0..self.factors.len()).flat_map(|k| self.features(sample, &labels, k)).collect();
            let score: f64 = features.iter().map(|&(p, value)| theta[p] * value).sum();
            list.push((score, features));
        }
        let top = list.iter().map(|l| l.0).fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = list.iter().map(|l| (l.0 - top).exp()).sum();
        let mut gradient = vec![0.0; theta.len()];
        for (score, features) in &list {
            for &(p, value) in features {
                gradient[p] += (score - top).exp() / sum * value;
            }
        }
        (top + sum.ln(), gradient)
    }

    /// `Σ -weight log P(y_A | y_B)` and its gradient.
    fn composite(&self, components: &[Component], theta: &[f64]) -> (f64, Vec<f64>) {
        let mut total = (0.0, vec![0.0; theta.len()]);
        for s in 0..self.samples.len() {
            let labels = &self.samples[s].0;
            for c in components {
                let only = |keep: &dyn Fn(u32) -> bool| -> Vec<u32> {
                    (0..).zip(labels).map(|(v, &l)| if keep(v) { l } else { MISSING }).collect()
                };
                let in_a = |v: u32| c.variables.contains(&v);
                let in_b = |v: u32| match &c.given {
                    Given::Rest => !in_a(v),
                    Given::Only(list) => list.contains(&v),
                };
                let (z1, g1) = self.log_z(s, &only(&in_b), theta);
                let (z2, g2) = self.log_z(s, &only(&|v| in_a(v) || in_b(v)), theta);
                total.0 += c.weight * (z1 - z2);
                for ((t, a), b) in total.1.iter_mut().zip(g1).zip(g2) {
                    *t += c.weight * (a - b);
                }
            }
        }
        total
    }

    /// `Σ_k log Z_k - log Z_k(labels that are known)` and its gradient.
    fn piecewise(&self, theta: &[f64]) -> (f64, Vec<f64>) {
        let mut total = (0.0, vec![0.0; theta.len()]);
        for k in 0..self.factors.len() {
            let alone = Case {
                factors: vec![self.factors[k].clone()],
                samples: self.samples.iter().map(|(l, rows)| (l.clone(), vec![rows[k].clone()])).collect(),
                ..self.clone()
            };
            let component = Component::given_rest(self.factors[k].1.clone());
            let (value, gradient) = alone.composite(&[component], theta);
            total.0 += value;
            total.1.iter_mut().zip(gradient).for_each(|(t, g)| *t += g);
        }
        total
    }
}

/// A random case: `kind` 0 tree, 1 grid, 2 factors of up to 4 variables, 3 all pairs.
fn case(kind: u32, shared: bool, missing: f64, samples: usize, seed: u64) -> Case {
    let rng = &mut Rng::seed_from_u64(seed);
    let n = match kind {
        1 => 6,
        3 => rng.random_range(2..=5),
        _ => rng.random_range(2..=7u32),
    };
    let same = rng.random_range(2..=3);
    let cards: Vec<u32> =
        (0..n).map(|_| if shared { same } else { [1, 2, 2, 3, 3][rng.random_range(0..5)] }).collect();
    let mut scopes: Vec<Vec<u32>> = (0..n).filter(|_| rng.random_bool(0.7)).map(|v| vec![v]).collect();
    match kind {
        0 => scopes.extend((1..n).map(|v| vec![rng.random_range(0..v), v])),
        1 => {
            for v in 0..6u32 {
                scopes.extend((v % 3 < 2).then(|| vec![v + 1, v]));
                scopes.extend((v < 3).then(|| vec![v, v + 3]));
            }
        }
        2 => {
            for _ in 0..rng.random_range(1..=5) {
                let mut scope: Vec<u32> = (0..n).collect();
                for i in (1..n as usize).rev() {
                    scope.swap(i, rng.random_range(0..=i));
                }
                scope.truncate(rng.random_range(1..=4));
                scopes.push(scope);
            }
        }
        _ => scopes.extend((0..n).flat_map(|u| (0..u).map(move |v| vec![u, v]))),
    }
    let mut case = Case { cards, templates: vec![], factors: vec![], samples: vec![] };
    for scope in scopes {
        let arities: Vec<u32> = scope.iter().map(|&v| case.cards[v as usize]).collect();
        let known = case.templates.iter().position(|t| shared && t.0 == arities);
        let template = known.unwrap_or_else(|| {
            let inputs = rng.random_bool(0.5);
            case.templates.push((arities, if inputs { 3 } else { 1 }, inputs));
            case.templates.len() - 1
        });
        case.factors.push((template, scope));
    }
    for _ in 0..samples {
        let labels = case.cards.iter().map(|&c| match rng.random_bool(missing) {
            true => MISSING,
            false => rng.random_range(0..c),
        });
        let labels = labels.collect();
        let rows = case.factors.iter().map(|(t, _)| {
            if !case.templates[*t].2 {
                return vec![(0, 1.0)];
            }
            let count = rng.random_range(0..=2);
            (0..count).map(|_| (rng.random_range(0..3), rng.random_range(-1.5..1.5))).collect()
        });
        let rows = rows.collect();
        case.samples.push((labels, rows));
    }
    case
}

fn theta(len: usize, scale: f64, seed: u64) -> Vec<f64> {
    let rng = &mut Rng::seed_from_u64(seed);
    (0..len).map(|_| rng.random_range(-scale..scale)).collect()
}

/// Components of any kind: known lists, random sets with variables in neither, weighted unions of two.
fn components(field: &Field, seed: u64) -> Components {
    let rng = &mut Rng::seed_from_u64(seed);
    let mut one = |name: &str| match name {
        "random" => {
            let mut list = Vec::new();
            for _ in 0..3 {
                let mut sets = [vec![], vec![], vec![]];
                for v in 0..field.variables() as u32 {
                    sets[rng.random_range(0..3)].push(v);
                }
                let [a, b, _] = sets;
                if !a.is_empty() {
                    list.push(Component {
                        variables: a,
                        given: Given::Only(b),
                        weight: rng.random_range(0.1..2.0),
                    });
                }
            }
            list.push(Component { given: Given::Only(vec![]), ..Components::mle(field).list()[0].clone() });
            Components::new(field, list).unwrap()
        }
        name => Components::named(name, field).unwrap(),
    };
    const NAMES: [&str; 7] = ["mle", "pseudo", "pairs", "trees:2", "k:3", "random", "k:2"];
    let first = one(NAMES[(seed % 7) as usize]);
    match seed / 7 % 3 {
        0 => first.and(one(NAMES[(seed / 21 % 7) as usize]).weighted(0.3)),
        _ => first,
    }
}

fn close(found: f64, expected: f64, scale: f64, what: &str) -> Result<(), TestCaseError> {
    let ok = (found - expected).abs() <= 1e-11 * (1.0 + scale);
    prop_assert!(ok, "{what}: found {found:e}, expected {expected:e}");
    Ok(())
}

fn all_close(found: &(f64, Vec<f64>), expected: &(f64, Vec<f64>), scale: f64) -> Result<(), TestCaseError> {
    close(found.0, expected.0, scale, "value")?;
    for (p, (f, e)) in found.1.iter().zip(&expected.1).enumerate() {
        close(*f, *e, scale, &format!("gradient of parameter {p}"))?;
    }
    Ok(())
}

fn evaluate(objective: &mut Composite<'_>, theta: &[f64]) -> (f64, Vec<f64>) {
    let mut gradient = vec![f64::NAN; theta.len()];
    (objective.value_gradient(theta, &mut gradient), gradient)
}

/// Central differences of a value along a random direction, against the gradient.
fn finite_differences(
    mut value: impl FnMut(&[f64]) -> f64,
    theta: &[f64],
    gradient: &[f64],
    seed: u64,
) -> Result<(), TestCaseError> {
    let direction = self::theta(theta.len(), 1.0, seed);
    let along = |h: f64| theta.iter().zip(&direction).map(|(t, d)| t + h * d).collect::<Vec<_>>();
    let h = 1e-4;
    // Richardson's rule: the error is of fourth order.
    let mut slope = |h: f64| (value(&along(h)) - value(&along(-h))) / (2.0 * h);
    let found = (4.0 * slope(h / 2.0) - slope(h)) / 3.0;
    let expected: f64 = gradient.iter().zip(&direction).map(|(g, d)| g * d).sum();
    let scale: f64 = 1.0 + gradient.iter().map(|g| g.abs()).sum::<f64>();
    prop_assert!((found - expected).abs() <= 1e-8 * scale, "slope {found:e}, expected {expected:e}");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn composite_is_what_enumeration_gives(
        kind in 0u32..4, shared: bool, missing in prop_oneof![2 => Just(0.0), 1 => Just(0.25)],
        scale in prop_oneof![3 => Just(1.0), 1 => Just(30.0)], seed in 0u64..1_000_000,
    ) {
        let case = case(kind, shared, missing, 2, seed);
        let (field, data) = case.build();
        let index = case.dense_index();
        let theta = theta(index.len(), scale, seed ^ 1);
        let components = components(&field, seed);
        let mut objective = Composite::new(&field, &index, &data, &components, &SEQ).unwrap();
        let found = evaluate(&mut objective, &theta);
        prop_assert_eq!(objective.fault(), None);
        let expected = case.composite(components.list(), &theta);
        // Rounding is in proportion to the scores that are added.
        let work = (case.factors.len() * case.samples.len() * components.len()) as f64;
        all_close(&found, &expected, scale * work)?;
        // And a second time, with used memory.
        prop_assert_eq!(&evaluate(&mut objective, &theta), &found);
        if scale == 1.0 {
            finite_differences(|t| evaluate(&mut objective, t).0, &theta, &found.1, seed)?;
        }
    }

    #[test]
    fn seen_parameters_are_some_of_all(kind in 0u32..4, missing in 0.0..0.3, seed in 0u64..1_000_000) {
        let case = case(kind, true, missing, 3, seed);
        let (field, data) = case.build();
        let sparse = data.index(&field, Coverage::Seen { min_count: 1 }).unwrap();
        let weights = theta(sparse.len(), 2.0, seed);
        // In the oracle all others are 0.
        let mut all = vec![0.0; case.parameters()];
        let mut places = Vec::new();
        for (p, &w) in weights.iter().enumerate() {
            let (template, attribute, y) = sparse.about(p).unwrap();
            let size = case.templates[template].0.iter().product::<u32>() as usize;
            places.push(case.starts()[template] + attribute as usize * size + y as usize);
            all[places[p]] = w;
        }
        let components = components(&field, seed);
        // Factors without inputs whose labels are all missing leave their template without parameters, not without attributes.
        let mut objective = Composite::new(&field, &sparse, &data, &components, &SEQ).unwrap();
        let (value, gradient) = case.composite(components.list(), &all);
        let expected = (value, places.iter().map(|&p| gradient[p]).collect());
        all_close(&evaluate(&mut objective, &weights), &expected, 1e3)?;
    }

    #[test]
    fn piecewise_is_what_enumeration_gives_and_a_bound(
        kind in 0u32..4, shared: bool, missing in prop_oneof![Just(0.0), Just(0.25)], seed in 0u64..1_000_000,
    ) {
        let case = case(kind, shared, missing, 3, seed);
        let (field, data) = case.build();
        let index = case.dense_index();
        let theta = theta(index.len(), 2.0, seed);
        let mut objective = Piecewise::new(&field, &index, &data, &SEQ).unwrap();
        let mut gradient = vec![0.0; index.len()];
        let value = objective.value_gradient(&theta, &mut gradient);
        all_close(&(value, gradient.clone()), &case.piecewise(&theta), 1e2)?;
        finite_differences(|t| objective.value_gradient(t, &mut vec![0.0; t.len()]), &theta, &gradient, seed)?;
        if missing == 0.0 {
            let (likelihood, _) = case.composite(Components::mle(&field).list(), &theta);
            // Variables that no factor mentions are uniform: the bound is for those that are mentioned.
            let free: f64 = (0..field.variables() as u32)
                .filter(|v| !case.factors.iter().any(|(_, scope)| scope.contains(v)))
                .map(|v| f64::from(case.cards[v as usize]).ln())
                .sum();
            prop_assert!(value >= likelihood - free * case.samples.len() as f64 - 1e-9);
        }
    }

    #[test]
    fn disjoint_is_joint_where_nothing_is_shared(seed in 0u64..1_000_000) {
        // Separate parameters; each component is one or more connected parts of the field.
        let rng = &mut Rng::seed_from_u64(seed);
        let edges = vec![[0, 1], [2, 3], [3, 4]];
        let field = Field::pairwise([2, 3, 2, 2, 2, 3], &Structure::Edges(edges), false).unwrap();
        let mut data = FieldData::without_inputs(&field);
        for _ in 0..20 {
            let labels: Vec<u32> = field
                .cards()
                .iter()
                .map(|&c| if rng.random_bool(0.1) { MISSING } else { rng.random_range(0..c) })
                .collect();
            data.push(&field, &labels, [[]; 0]).unwrap();
        }
        let index = field.index(&vec![1; field.templates().len()]).unwrap();
        let list = vec![Component::given_rest([0, 1]), Component::given_rest([2, 3, 4, 5])];
        let components = Components::new(&field, list).unwrap();
        let start = vec![0.0; index.len()];
        let mut joint = Composite::new(&field, &index, &data, &components, &SEQ).unwrap();
        let together = minimise(|t, g| joint.value_gradient(t, g), &start, 1.0);
        let apart = disjoint(&field, &index, &data, &components, &SEQ, &start, |problem, start| {
            Ok::<_, ()>(minimise(|t, g| problem.value_gradient(t, g), start, 1.0))
        })
        .unwrap();
        prop_assert!(apart.components.iter().all(|&n| n == 1));
        for (a, b) in apart.theta.iter().zip(&together) {
            prop_assert!((a - b).abs() < 1e-6, "{a} {b}");
        }
    }

    #[test]
    fn disjoint_problems_are_the_components(kind in 0u32..4, missing in 0.0..0.3, seed in 0u64..1_000_000) {
        // A "solver" that notes the value at the start: values must add up to the joint one, and gradients too.
        let case = case(kind, seed % 2 == 0, missing, 2, seed);
        let (field, data) = case.build();
        let index = case.dense_index();
        let theta = theta(index.len(), 1.0, seed);
        let components = components(&field, seed);
        let mut joint = Composite::new(&field, &index, &data, &components, &SEQ).unwrap();
        let expected = evaluate(&mut joint, &theta);
        let total = std::sync::Mutex::new(0.0);
        let found = disjoint(&field, &index, &data, &components, &SEQ, &theta, |problem, start| {
            let (value, gradient) = evaluate(problem, start);
            *total.lock().unwrap() += value;
            Ok::<_, ()>(gradient)
        })
        .unwrap();
        let sums = found.theta.iter().zip(&found.components).zip(&theta).zip(&expected.1);
        for (p, (((&mean, &n), &start), &e)) in sums.enumerate() {
            // A parameter that takes part nowhere keeps its start, and the objective does not depend on it.
            let sum = if n == 0 { 0.0 } else { mean * f64::from(n) };
            prop_assert!(n > 0 || mean == start);
            close(sum, e, 1e2, &format!("gradient of parameter {p}"))?;
        }
        close(*total.lock().unwrap(), expected.0, 1e2, "value")?;
    }
}

/// BFGS with Armijo's rule, on `f + ½·ridge·‖θ‖²`: for a few dozen parameters.
fn minimise(mut f: impl FnMut(&[f64], &mut [f64]) -> f64, start: &[f64], ridge: f64) -> Vec<f64> {
    let n = start.len();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut evaluate = |x: &[f64]| {
        let mut g = vec![0.0; n];
        let value = f(x, &mut g) + 0.5 * ridge * dot(x, x);
        g.iter_mut().zip(x).for_each(|(g, x)| *g += ridge * x);
        (value, g)
    };
    let mut x = start.to_vec();
    let (mut value, mut g) = evaluate(&x);
    let mut inverse: Vec<Vec<f64>> = (0..n)
        .map(|i| (0..n).map(|j| if i == j { 1.0 / (1.0 + dot(&g, &g).sqrt()) } else { 0.0 }).collect())
        .collect();
    for _ in 0..500 {
        let d: Vec<f64> = inverse.iter().map(|row| -dot(row, &g)).collect();
        let slope = dot(&d, &g);
        let mut t = 1.0;
        let (next, new_value, new_g) = loop {
            let next: Vec<f64> = x.iter().zip(&d).map(|(x, d)| x + t * d).collect();
            let (new_value, new_g) = evaluate(&next);
            if new_value <= value + 1e-4 * t * slope {
                break (next, new_value, new_g);
            }
            t *= 0.5;
            if t < 1e-6 {
                // Rounding hides any further decrease.
                return x;
            }
        };
        let s: Vec<f64> = next.iter().zip(&x).map(|(a, b)| a - b).collect();
        let y: Vec<f64> = new_g.iter().zip(&g).map(|(a, b)| a - b).collect();
        (x, value, g) = (next, new_value, new_g);
        if dot(&g, &g).sqrt() < 1e-9 * (1.0 + value.abs()) {
            break;
        }
        let sy = dot(&s, &y);
        if sy > 1e-14 {
            let hy: Vec<f64> = inverse.iter().map(|row| dot(row, &y)).collect();
            let yhy = dot(&y, &hy);
            for i in 0..n {
                for j in 0..n {
                    inverse[i][j] += (1.0 + yhy / sy) * s[i] * s[j] / sy - (hy[i] * s[j] + s[i] * hy[j]) / sy;
                }
            }
        }
    }
    x
}

#[test]
fn same_bits_on_any_number_of_threads() {
    let field = Field::pairwise(vec![3; 48], &Structure::Grid { rows: 6, columns: 8 }, true).unwrap();
    for (samples, inputs) in [(1, false), (70, false), (3, true), (150, true)] {
        let rng = &mut Rng::seed_from_u64(5);
        let mut data = FieldData::new(&field, &[inputs, false]).unwrap();
        for _ in 0..samples {
            let labels: Vec<u32> = (0..48)
                .map(|_| if rng.random_bool(0.01) { MISSING } else { rng.random_range(0..3) })
                .collect();
            let mut row = || vec![(0, 1.0), (rng.random_range(0..50), rng.random_range(-1.0..1.0))];
            let rows: Vec<_> = (0..if inputs { 48 } else { 0 }).map(|_| row()).collect();
            data.push(&field, &labels, rows).unwrap();
        }
        let index = data.index(&field, Coverage::Seen { min_count: 1 }).unwrap();
        let theta = theta(index.len(), 1.0, 9);
        for name in ["pseudo", "combs-both", "trees:2", "k:6", "pairs"] {
            let components = Components::named(name, &field).unwrap();
            let run = |threads| {
                Par::threads(threads).run(|par| {
                    let params = ObjectiveParams { par, ..SEQ };
                    let mut objective = Composite::new(&field, &index, &data, &components, &params).unwrap();
                    let (value, gradient) = evaluate(&mut objective, &theta);
                    (value.to_bits(), gradient.iter().map(|g| g.to_bits()).collect::<Vec<_>>())
                })
            };
            let one = run(1);
            assert_eq!(one, run(2), "{name}, {samples} samples");
            assert_eq!(one, run(3), "{name}, {samples} samples");
        }
        let run = |threads| {
            Par::threads(threads).run(|par| {
                let params = ObjectiveParams { par, ..SEQ };
                let mut gradient = vec![0.0; index.len()];
                let mut objective = Piecewise::new(&field, &index, &data, &params).unwrap();
                let value = objective.value_gradient(&theta, &mut gradient);
                (value.to_bits(), gradient.iter().map(|g| g.to_bits()).collect::<Vec<_>>())
            })
        };
        assert_eq!(run(1), run(2));
        assert_eq!(run(1), run(3));
    }
}

/// Largest `|log P̂(y) - log P*(y)|` over all configurations of a 2×3 grid, for an estimator and a number of samples.
fn error_of(name: &str, samples: usize) -> f64 {
    let rng = &mut Rng::seed_from_u64(17);
    let structure = Structure::Grid { rows: 2, columns: 3 };
    let field = Field::pairwise(vec![2; 6], &structure, false).unwrap();
    let truth = theta(field.index(&vec![1; field.templates().len()]).unwrap().len(), 0.6, 3);
    let case = Case {
        cards: vec![2; 6],
        templates: field.templates().iter().map(|a| (a.clone(), 1, false)).collect(),
        factors: (0..field.factors()).map(|k| (field.template(k), field.scope(k).to_vec())).collect(),
        samples: vec![(vec![0; 6], vec![vec![(0, 1.0)]; field.factors()])],
    };
    let all = case.assignments(&[MISSING; 6]);
    let log_p = |theta: &[f64]| -> Vec<f64> {
        let (log_z, _) = case.log_z(0, &[MISSING; 6], theta);
        all.iter().map(|y| case.log_z(0, y, theta).0 - log_z).collect()
    };
    let target = log_p(&truth);
    let mut data = FieldData::without_inputs(&field);
    for _ in 0..samples {
        let mut u: f64 = rng.random();
        let drawn = target.iter().position(|p| {
            u -= p.exp();
            u < 0.0
        });
        data.push(&field, &all[drawn.unwrap_or(0)], [[]; 0]).unwrap();
    }
    let components = Components::named(name.strip_prefix("disjoint-").unwrap_or(name), &field).unwrap();
    let coverage = if name.starts_with("disjoint-") { Coverage::Reference } else { Coverage::All };
    let index = data.index(&field, coverage).unwrap();
    let start = vec![0.0; index.len()];
    let estimate = if name.starts_with("disjoint-") {
        disjoint(&field, &index, &data, &components, &SEQ, &start, |problem, start| {
            Ok::<_, ()>(minimise(|t, g| problem.value_gradient(t, g), start, 0.01))
        })
        .unwrap()
        .theta
    } else {
        let mut objective = Composite::new(&field, &index, &data, &components, &SEQ).unwrap();
        minimise(|t, g| objective.value_gradient(t, g), &start, 0.01)
    };
    let mut all_parameters = vec![0.0; truth.len()];
    for (p, &t) in estimate.iter().enumerate() {
        let (template, _, y) = index.about(p).unwrap();
        all_parameters[case.starts()[template] + y as usize] = t;
    }
    let found = log_p(&all_parameters);
    found.iter().zip(&target).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

#[test]
fn estimators_approach_the_truth() {
    for name in [
        "mle",
        "pseudo",
        "combs",
        "combs-both",
        "pairs",
        "trees:2",
        "k:2",
        "disjoint-pseudo",
        "disjoint-combs",
    ] {
        let errors = [100, 1600, 12_800].map(|n| error_of(name, n));
        // Errors fall with the square root of n: by 4, then by 2.8, of which a good part must show.
        assert!(errors[1] < errors[0] / 2.0 && errors[2] < errors[1] / 1.5, "{name}: {errors:?}");
        assert!(errors[2] < 0.15, "{name}: {errors:?}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let field = Field::pairwise(vec![4; 400], &Structure::Grid { rows: 20, columns: 20 }, true).unwrap();
    let index = field.index(&[1, 1]).unwrap();
    let mut data = FieldData::without_inputs(&field);
    let params = ObjectiveParams { par: Par::Seq, max_table_mib: 64.0, inference: Inference::Exact };
    let mle = Components::mle(&field);
    let build =
        |data: &FieldData| Composite::new(&field, &index, data, &mle, &params).map(|_| ()).unwrap_err();
    assert_eq!(build(&data), ObjectiveError::NoSamples);
    data.push(&field, &[0; 400], [[]; 0]).unwrap();
    let text = build(&data).to_string();
    assert!(
        text.contains("400 variables free") && text.contains("--estimator pseudo or composite"),
        "{text}"
    );
    let other = Field::pairwise(vec![4; 4], &Structure::Chain, true).unwrap();
    let found = Composite::new(&field, &index, &data, &Components::pseudo(&other), &params).map(|_| ());
    assert_eq!(found, Err(ObjectiveError::Component(ComponentError::Uncovered { variable: 4 })));
    let found = Composite::new(&other, &index, &data, &Components::pseudo(&other), &params).map(|_| ());
    assert!(matches!(found, Err(ObjectiveError::Field(_))));
}

#[test]
fn scores_beyond_the_range_of_numbers_give_infinity_not_nonsense() {
    let field = Field::pairwise(vec![2; 9], &Structure::Grid { rows: 3, columns: 3 }, true).unwrap();
    let index = field.index(&[1, 1]).unwrap();
    let mut data = FieldData::without_inputs(&field);
    data.push(&field, &[0, 1, 0, 1, 0, 1, 0, 1, 0], [[]; 0]).unwrap();
    for name in ["pseudo", "mle", "combs", "pairs"] {
        let components = Components::named(name, &field).unwrap();
        let mut objective = Composite::new(&field, &index, &data, &components, &SEQ).unwrap();
        for bad in [f64::NAN, f64::INFINITY, f64::MAX] {
            let (value, gradient) = evaluate(&mut objective, &[0.0, bad, 0.0, -bad, 0.0, bad]);
            assert_eq!(value, f64::INFINITY, "{name} {bad}");
            assert!(objective.fault().is_some() && gradient.iter().all(|g| g.is_nan()));
        }
        // Large but finite: exact.
        let (value, _) = evaluate(&mut objective, &[0.0, 1e6, 0.0, 0.0, 0.0, 0.0]);
        // The five variables with label 0 are explained once each; by pairs, as often as they have neighbours: 4·2 + 4.
        let expected = 1e6 * if name == "pairs" { 12.0 } else { 5.0 };
        assert!((value - expected).abs() < 1e-5 * 1e-6 * expected + 1e-3, "{name} {value}");
        assert_eq!(objective.fault(), None);
    }
}
