//! Shotgun on the pseudolikelihood: steps against sums over all labels, solutions against the optimality conditions by [`Composite`]'s gradient, which
//! is checked against enumeration elsewhere and shares no code with [`Local`].

use gibbsite::features::Index;
use gibbsite::field::train::{Estimator, Optimize, Solver, TrainError, TrainParams, index, train};
use gibbsite::field::{Field, FieldData, MISSING, Structure};
use gibbsite::objective::components::Components;
use gibbsite::objective::composite::Composite;
use gibbsite::objective::local::{Local, NotLocal};
use gibbsite::objective::{Inference, ObjectiveParams};
use gibbsite::par::Par;
use gibbsite::solver::lbfgs::LbfgsInfo;
use gibbsite::solver::shotgun::local::{LocalParams, solve};
use gibbsite_core::column::Column;
use gibbsite_core::local_coord::{along, step};
use gibbsite_core::penalty::Penalty;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus as Rng;

const SEQ: ObjectiveParams =
    ObjectiveParams { par: Par::Seq, max_table_mib: 64.0, inference: Inference::Exact };

/// One parameter and the regressions that it touches: for each label a value and a score, and the observed label.
fn regressions() -> impl Strategy<Value = Vec<(Vec<(f64, f64)>, usize)>> {
    let value = prop_oneof![Just(0.0), -3.0..3.0f64, Just(1.0)];
    let label = (value, -20.0..20.0f64);
    prop::collection::vec((prop::collection::vec(label, 1..5), any::<prop::sample::Index>()), 1..6)
        .prop_map(|all| all.into_iter().map(|(labels, y)| (labels.clone(), y.index(labels.len()))).collect())
}

/// `Σ_g -log P(y_g)` with the parameter changed by `t`, and its derivative, by the definition.
fn loss(all: &[(Vec<(f64, f64)>, usize)], t: f64) -> (f64, f64) {
    let (mut value, mut slope) = (0.0, 0.0);
    for (labels, y) in all {
        let scores: Vec<f64> = labels.iter().map(|(a, s)| s + a * t).collect();
        let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let z: f64 = scores.iter().map(|s| (s - top).exp()).sum();
        value += top + z.ln() - scores[*y];
        slope +=
            labels.iter().zip(&scores).map(|((a, _), s)| a * (s - top).exp() / z).sum::<f64>() - labels[*y].0;
    }
    (value, slope)
}

proptest! {
    #[test]
    fn a_step_never_raises_the_objective(all in regressions(), x in -2.0..2.0f64, l1 in 0.0..2.0f64, l2 in 0.0..1.0f64) {
        let (mut group, mut probability, mut rows, mut values) = (vec![], vec![], vec![], vec![]);
        let mut observed = 0.0;
        for (g, (labels, y)) in all.iter().enumerate() {
            let top = labels.iter().map(|l| l.1).fold(f64::NEG_INFINITY, f64::max);
            let z: f64 = labels.iter().map(|l| (l.1 - top).exp()).sum();
            observed += labels[*y].0;
            for &(a, s) in labels {
                if a != 0.0 {
                    rows.push(group.len() as u32);
                    values.push(a);
                }
                group.push(g as u32);
                probability.push((s - top).exp() / z);
            }
        }
        let met = along(Column::Sparse { rows: &rows, values: &values }, &group, &probability);
        let (value, slope) = loss(&all, 0.0);
        prop_assert!((met.expected - observed - slope).abs() <= 1e-12 * (1.0 + slope.abs()));
        // The second derivative by differences of the first.
        let h = 1e-5;
        let bend = (loss(&all, h).1 - loss(&all, -h).1) / (2.0 * h);
        prop_assert!((met.curvature - bend).abs() <= 1e-4 * (1.0 + bend.abs()), "{} {bend}", met.curvature);
        prop_assert!(met.curvature <= met.bound * (1.0 + 1e-12));
        let penalty = Penalty { l1, l2, positive: false };
        let (by, _) = step(&penalty, x, slope, &met);
        let change = loss(&all, by).0 - value + penalty.value(x + by) - penalty.value(x);
        prop_assert!(change <= 1e-12 * (1.0 + value), "{by} raises it by {change}");
        if by == 0.0 {
            prop_assert!(penalty.violation(x, slope) <= 1e-9 * (1.0 + slope.abs()));
        }
    }
}

/// A field with samples: a chain, a grid or a full graph, parameters shared or not, inputs or not.
#[derive(Clone, Debug)]
struct Case {
    labels: u32,
    structure: u8,
    share: bool,
    inputs: bool,
    samples: usize,
    seed: u64,
}

fn cases() -> impl Strategy<Value = Case> {
    (2u32..4, 0u8..3, any::<bool>(), any::<bool>(), 1usize..30, any::<u64>()).prop_map(
        |(labels, structure, share, inputs, samples, seed)| Case {
            labels,
            structure,
            share,
            inputs,
            samples,
            seed,
        },
    )
}

impl Case {
    fn build(&self) -> (Field, FieldData, Index) {
        let (n, structure) = match self.structure {
            0 => (4, Structure::Chain),
            1 => (6, Structure::Grid { rows: 2, columns: 3 }),
            _ => (3, Structure::Full),
        };
        let field = Field::pairwise(vec![self.labels; n], &structure, self.share).unwrap();
        let mut rng = Rng::seed_from_u64(self.seed);
        let unary = |t: usize| field.templates()[t].len() == 1;
        let inputs: Vec<bool> = (0..field.templates().len()).map(|t| self.inputs && unary(t)).collect();
        let mut data = FieldData::new(&field, &inputs).unwrap();
        let with: Vec<usize> = (0..field.factors()).filter(|&k| inputs[field.template(k)]).collect();
        for _ in 0..self.samples {
            // Neighbours agree more often than not.
            let first = rng.random_range(0..self.labels);
            let labels: Vec<u32> = (0..n)
                .map(|_| if rng.random_bool(0.6) { first } else { rng.random_range(0..self.labels) })
                .collect();
            let rows: Vec<Vec<(u32, f64)>> =
                with.iter().map(|_| vec![(0, 1.0), (1, rng.random_range(-2.0..2.0))]).collect();
            data.push(&field, &labels, rows).unwrap();
        }
        let attributes: Vec<u32> = inputs.iter().map(|&has| if has { 2 } else { 1 }).collect();
        let index = field.index(&attributes).unwrap();
        (field, data, index)
    }
}

/// The largest violation at `theta`, and the objective, by the composite likelihood.
fn judge(composite: &mut Composite<'_>, theta: &[f64], l1: f64, l2: f64) -> (f64, f64) {
    let mut gradient = vec![0.0; theta.len()];
    let value = composite.value_gradient(theta, &mut gradient);
    let (mut worst, mut cost) = (0.0f64, 0.0);
    for (&t, &g) in theta.iter().zip(&gradient) {
        let g = g + l2 * t;
        worst = worst.max(if t == 0.0 { (g.abs() - l1).max(0.0) } else { (g + l1 * t.signum()).abs() });
        cost += l1 * t.abs() + 0.5 * l2 * t * t;
    }
    (worst, value + cost)
}

fn run(local: &Local, params: &LocalParams) -> (Vec<f64>, LbfgsInfo) {
    let (state, info) = params
        .par
        .run(|par| {
            solve(local, vec![0.0; local.parameters()], &LocalParams { par, ..*params }, &mut |_, _| true)
        })
        .unwrap();
    (state.into_theta(), info)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn solutions_are_optimal(case in cases(), l1 in prop_oneof![Just(0.0), 0.1..3.0f64], ridge in 0.3..2.0f64, many in any::<bool>()) {
        let (field, data, index) = case.build();
        let mut composite = Composite::new(&field, &index, &data, &Components::pseudo(&field), &SEQ).unwrap();
        let local = Local::new(&composite, Par::Seq).unwrap();
        let l2 = if l1 == 0.0 { ridge } else { 0.0 };
        let zero = vec![0.0; index.len()];
        let (reference, before) = judge(&mut composite, &zero, l1, l2);
        // Far too many at a time: it must notice.
        let parallel = many.then_some(1000);
        let params = LocalParams { l1, l2, parallel, tolerance: 1e-7, max_iterations: 3000, ..LocalParams::default() };
        let (theta, info) = run(&local, &params);
        let (violation, objective) = judge(&mut composite, &theta, l1, l2);
        prop_assert!(info.stop.is_converged(), "{:?} {:?} {reference}", info.stop, info.end);
        prop_assert!(violation <= 1.1e-7 * reference + 1e-9, "{violation} {reference}");
        prop_assert!(objective <= before + 1e-12 * before.abs());
        prop_assert!((objective - info.end.objective).abs() <= 1e-9 * (1.0 + objective.abs()));
        // Never up on the way.
        prop_assert!(info.trace.windows(2).all(|w| w[1].objective <= w[0].objective + 1e-11 * (1.0 + w[0].objective.abs())));
        // The same bits on two threads.
        let (again, _) = run(&local, &LocalParams { par: Par::threads(2), ..params });
        prop_assert!(again.iter().zip(&theta).all(|(a, b)| a.to_bits() == b.to_bits()));
    }
}

#[test]
fn training_by_shotgun_is_training() {
    let case = Case { labels: 3, structure: 1, share: true, inputs: true, samples: 40, seed: 7 };
    let (field, data, _) = case.build();
    for optimize in [Optimize::Joint, Optimize::Disjoint] {
        let params = TrainParams {
            estimator: Estimator::Pseudo,
            optimize,
            l1: 0.5,
            l2: 0.0,
            tolerance: 1e-8,
            ..TrainParams::default()
        };
        let index = index(&field, &[2, 1], optimize).unwrap();
        let go = |solver| {
            train(
                &field,
                &index,
                &data,
                &TrainParams { solver, ..params.clone() },
                None,
                &mut |_, _| true,
                &|| true,
            )
            .unwrap()
        };
        let ((_, one), (_, other)) = (go(Solver::QuasiNewton), go(Solver::Shotgun));
        let (a, b) = (one.solver.end.objective, other.solver.end.objective);
        assert!(
            one.solver.stop.is_converged() && other.solver.stop.is_converged(),
            "{:?}",
            other.solver.stop
        );
        assert!((a - b).abs() <= 1e-7 * a, "{optimize:?}: {a} {b}");
    }
}

#[test]
fn what_is_no_pseudolikelihood_is_refused() {
    let field = Field::pairwise([2, 2], &Structure::Chain, false).unwrap();
    let mut data = FieldData::without_inputs(&field);
    data.push(&field, &[0, 1], [[]; 0]).unwrap();
    let index = field.index(&[1, 1, 1]).unwrap();
    let mle = Composite::new(&field, &index, &data, &Components::mle(&field), &SEQ).unwrap();
    assert_eq!(Local::new(&mle, Par::Seq).err(), Some(NotLocal));
    data.push(&field, &[0, MISSING], [[]; 0]).unwrap();
    let params =
        TrainParams { estimator: Estimator::Piecewise, solver: Solver::Shotgun, ..TrainParams::default() };
    let refused = train(&field, &index, &data, &params, None, &mut |_, _| true, &|| true);
    assert_eq!(refused.unwrap_err(), TrainError::NotLocal(NotLocal));
}
