//! What a device does with a Gaussian CRF: sparse factors, images, damage.

use super::dense;
use gibbsite::export::{check_gaussian, export_gaussian};
use gibbsite::gaussian::factor::SparseFactor;
use gibbsite::linalg::Dense;
use gibbsite::model::{GaussianFacts, GaussianModel};
use gibbsite::sparse::Sparse;
use gibbsite_core::error::{ImageError, InferError, SectionFault};
use gibbsite_core::image::{Checksum, GaussianImage, Image, id};
use gibbsite_core::infer::gaussian::{Gaussian, Plain, Terms, deviations_len, given_len, mean_len};
use gibbsite_core::math::Real;
use gibbsite_tests::gaussian::{Rows, from_fn, inverse, noise, times};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A sparse Λ that is diagonally dominant, a sparse Θ, and intercepts.
fn parts(seed: u64, n: usize, p: usize) -> (Rows, Rows, Vec<f64>) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut lambda = from_fn(p, p, |_, _| 0.0);
    for i in 0..p {
        for j in 0..i {
            let v = if rng.random::<f64>() < 0.35 { noise(&mut rng) } else { 0.0 };
            (lambda[i][j], lambda[j][i]) = (v, v);
        }
    }
    for i in 0..p {
        let others: f64 = lambda[i].iter().map(|v| v.abs()).sum();
        lambda[i][i] = others + 0.2 + rng.random::<f64>();
    }
    let theta = from_fn(n, p, |_, _| if rng.random::<f64>() < 0.4 { noise(&mut rng) } else { 0.0 });
    let shift = (0..p).map(|_| noise(&mut rng)).collect();
    (lambda, theta, shift)
}

fn model(seed: u64, n: usize, p: usize, named: bool) -> GaussianModel {
    let (lambda, theta, intercept) = parts(seed, n, p);
    let names = |letter: char, count: usize| (0..count).map(|k| format!("{letter}{k}")).collect::<Vec<_>>();
    GaussianModel {
        lambda: Sparse::from_dense(&dense(&lambda, p)),
        theta: Sparse::from_dense(&dense(&theta, p)),
        intercept,
        inputs: named.then(|| names('x', n)),
        outputs: named.then(|| names('y', p)),
        facts: GaussianFacts {
            penalties: (0.1, 0.1),
            solver: "none".into(),
            objective: 0.0,
            violation: 0.0,
            iterations: 0,
            converged: true,
            intercept: true,
            standardize: false,
            refit: false,
            samples: 1,
            data: String::new(),
        },
    }
}

/// `LDLᵀ`, by definition.
fn multiplied(found: &SparseFactor) -> Rows {
    let p = found.order.len();
    let mut l = from_fn(p, p, |i, j| f64::from(u8::from(i == j)));
    for k in 0..p {
        for e in found.starts[k] as usize..found.starts[k + 1] as usize {
            l[found.rows[e] as usize][k] = found.factor[e];
        }
    }
    from_fn(p, p, |i, j| (0..p).map(|k| l[i][k] * found.pivots[k] * l[j][k]).sum())
}

/// Mean, and mean and deviations given known outputs, through core in `T`.
fn ask<T: Real, P: Terms<T>>(
    model: &Gaussian<T, P>,
    x: &[T],
    y: &[T],
    known: &[bool],
) -> Result<[Vec<T>; 3], InferError> {
    let (p, entries) = (model.terms().outputs(), model.terms().entries());
    let vector = |len: usize| vec![T::zero(); len];
    let (mut mean, mut memory) = (vector(p), vector(mean_len(p)));
    model.mean(x, &mut mean, &mut memory)?;
    let mut kept = vector(given_len(p, entries));
    let given = model.given(known, &mut kept)?;
    let (mut revised, mut deviations) = (mean.clone(), vector(p));
    given.revise(y, &mut revised, &mut memory)?;
    given.deviations(&mut deviations, &mut vector(deviations_len(p, entries)))?;
    Ok([mean, revised, deviations])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn the_sparse_factor_multiplies_back(seed: u64, p in 1usize..12) {
        let (lambda, ..) = parts(seed, 0, p);
        let found = SparseFactor::new(&dense(&lambda, p)).unwrap();
        let back = multiplied(&found);
        for (i, &a) in found.order.iter().enumerate() {
            for (j, &b) in found.order.iter().enumerate() {
                prop_assert!((back[i][j] - lambda[a as usize][b as usize]).abs() < 1e-12 * (1.0 + lambda[i][i]));
            }
        }
    }

    /// Against the covariance form `μ_u + Σ_uo Σ_oo⁻¹ (y_o - μ_o)`, `Σ_uu - Σ_uo Σ_oo⁻¹ Σ_ou`, by dense inverses: in `f64` on slices, in `f32` from an image.
    #[test]
    fn means_revisions_and_deviations_are_the_conditional_gaussian(seed: u64, n in 0usize..5, p in 1usize..9, bits: u32, named: bool) {
        let whole = model(seed, n, p, named);
        let (lambda, theta, shift) = parts(seed, n, p);
        let (sigma, _) = inverse(&lambda).unwrap();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(!seed);
        let x: Vec<f64> = (0..n).map(|_| noise(&mut rng)).collect();
        let y: Vec<f64> = (0..p).map(|_| noise(&mut rng)).collect();
        let known: Vec<bool> = (0..p).map(|j| bits >> j & 1 == 1).collect();
        let through = if n == 0 { vec![vec![0.0; p]] } else { times(&vec![x.clone()], &times(&theta, &sigma)) };
        let mean: Vec<f64> = (0..p).map(|j| shift[j] - through[0][j]).collect();
        let seen: Vec<usize> = (0..p).filter(|&j| known[j]).collect();
        let (inner, _) = inverse(&from_fn(seen.len(), seen.len(), |a, b| sigma[seen[a]][seen[b]])).unwrap();
        let (mut revised, mut deviations) = (y.clone(), vec![0.0; p]);
        for u in (0..p).filter(|&u| !known[u]) {
            let gain = |b: usize| (0..seen.len()).map(|a| sigma[u][seen[a]] * inner[a][b]).sum::<f64>();
            revised[u] = mean[u] + (0..seen.len()).map(|b| gain(b) * (y[seen[b]] - mean[seen[b]])).sum::<f64>();
            let lost: f64 = (0..seen.len()).map(|b| gain(b) * sigma[u][seen[b]]).sum();
            deviations[u] = (sigma[u][u] - lost).sqrt();
        }
        let expected = [mean, revised, deviations];

        let f = SparseFactor::new(&whole.lambda.to_dense()).unwrap();
        let (mut starts, mut inputs, mut weights) = (vec![0], vec![], vec![]);
        for &output in &f.order {
            for i in (0..n).filter(|&i| theta[i][output as usize] != 0.0) {
                inputs.push(i as u32);
                weights.push(theta[i][output as usize]);
            }
            starts.push(inputs.len() as u32);
        }
        let own: Vec<f64> = (0..p).map(|j| sigma[j][j].sqrt()).collect();
        let plain = Gaussian::new(Plain {
            inputs: n, order: &f.order, starts: &f.starts, rows: &f.rows, factor: &f.factor, pivots: &f.pivots, couplings: &f.couplings,
            diagonal: &f.diagonal, theta_starts: &starts, theta_inputs: &inputs, theta: &weights, intercept: &shift, deviations: &own,
        }).unwrap();
        let found = ask(&plain, &x, &y, &known).unwrap();
        for (f, e) in found.iter().flatten().zip(expected.iter().flatten()) {
            prop_assert!((f - e).abs() < 1e-10 * (1.0 + e.abs()), "{found:?} {expected:?}");
        }

        let exported = export_gaussian(&whole, true).unwrap();
        let view = GaussianImage::open(&exported.words).unwrap().view();
        let single = |v: &[f64]| v.iter().map(|&v| v as f32).collect::<Vec<f32>>();
        let found = ask(&view.model(), &single(&x), &single(&y), &known).unwrap();
        for (f, e) in found.iter().flatten().zip(expected.iter().flatten()) {
            prop_assert!((f64::from(*f) - e).abs() < 2e-5 * (1.0 + e.abs()), "{found:?} {expected:?}");
        }
        let name = view.output_name(p - 1).map(|t| t.collect::<Vec<u8>>());
        prop_assert_eq!(name, named.then(|| format!("y{}", p - 1).into_bytes()));
        prop_assert!(Image::open(&exported.words).is_err());
        let info = check_gaussian(&whole, &exported, &Dense::from_fn(3, n, |i, j| (i + j) as f64)).unwrap();
        prop_assert!(info.rows == 3 && info.worst_mean < 1e-4 && info.worst_revised_mean < 1e-4, "{info:?}");
        prop_assert!(info.worst_deviation < 1e-5 && info.worst_revised_deviation < 1e-4, "{info:?}");
    }

    /// A word of an image changed under a right checksum: refused, or answers that are numbers or errors.
    #[test]
    fn damaged_images_are_refused_or_harmless(seed in 0u64..20, at in 8usize..400, word: u32, small: bool) {
        let mut words = export_gaussian(&model(seed, 3, 6, true), true).unwrap().words;
        let at = at % words.len();
        words[at] = if small { word % 12 } else { word };
        words[4] = 0;
        let mut sum = Checksum::default();
        sum.add(&words);
        words[4] = sum.finish();
        if let Ok(view) = GaussianImage::open(&words).map(|image| image.view()) {
            let p = view.outputs();
            let _ = ask(&view.model(), &vec![1.0; view.inputs()], &vec![0.5; p], &vec![false; p]);
        }
    }
}

/// A chain filled in nowhere, a grid by far less than all.
#[test]
fn the_order_keeps_factors_sparse() {
    let chain = Dense::from_fn(50, 50, |i, j| [2.5, -1.0].get(i.abs_diff(j)).copied().unwrap_or(0.0));
    assert_eq!(SparseFactor::new(&chain).unwrap().rows.len(), 49);
    let near = |i: usize, j: usize| (i / 10).abs_diff(j / 10) + (i % 10).abs_diff(j % 10);
    let grid = Dense::from_fn(100, 100, |i, j| [5.0, -1.0].get(near(i, j)).copied().unwrap_or(0.0));
    let entries = SparseFactor::new(&grid).unwrap().rows.len();
    assert!((180..700).contains(&entries), "{entries}");
    assert!(SparseFactor::new(&Dense::from_fn(2, 2, |_, _| 1.0)).is_none());
}

#[test]
fn errors_leave_the_answer_alone() {
    let exported = export_gaussian(&model(5, 3, 4, false), false).unwrap();
    let device = GaussianImage::open(&exported.words).unwrap().view().model();
    let mut mean = [7.0; 4];
    let mut memory = [0.0; mean_len(4)];
    for (x, room, error) in [
        (&[1.0, f32::NAN, 0.0][..], 4, InferError::BadValue),
        (&[1.0, f32::INFINITY, 0.0], 4, InferError::BadValue),
        (&[f32::MAX; 3], 4, InferError::BadValue),
        (&[1.0, 0.0], 4, InferError::Shape),
        (&[1.0, 0.0, 0.0], 3, InferError::Memory { needed: 4, given: 3 }),
    ] {
        assert_eq!(device.mean(x, &mut mean, &mut memory[..room]), Err(error));
        assert_eq!(mean, [7.0; 4]);
    }
    let mut kept = vec![0.0; given_len(4, exported.info.entries)];
    assert_eq!(device.given(&[true; 3], &mut kept).err(), Some(InferError::Shape));
    let known = [true, false, false, false];
    let given = device.given(&known, &mut kept).unwrap();
    assert_eq!(given.revise(&[f32::NAN; 4], &mut mean, &mut memory), Err(InferError::BadValue));
    assert_eq!(given.revise(&[f32::MAX; 4], &mut [-f32::MAX; 4], &mut memory), Err(InferError::BadValue));
    assert_eq!(mean, [7.0; 4]);
    // What is not known need not be a number.
    assert_eq!(given.revise(&[1.0, f32::NAN, f32::NAN, f32::NAN], &mut mean, &mut memory), Ok(()));
}

/// Every word of every section of an image has a meaning that is checked, or is a number that may be any.
#[test]
fn what_open_refuses() {
    let good = export_gaussian(&model(3, 2, 5, false), false).unwrap().words;
    let refused = |section: u32, at: usize, word: u32| {
        let mut words = good.clone();
        let entry = (8..).step_by(3).find(|&e| words[e] == section).unwrap();
        let from = words[entry + 1] as usize;
        words[from + at] = word;
        words[4] = 0;
        let mut sum = Checksum::default();
        sum.add(&words);
        words[4] = sum.finish();
        GaussianImage::open(&words).err()
    };
    let value = |section| Some(ImageError::Section { section, why: SectionFault::Value });
    let nan = f32::NAN.to_bits();
    for (section, at, word) in [
        (id::GAUSSIAN, 1, 0),
        (id::GAUSSIAN, 4, 1),
        (id::PLACES, 0, 0),
        (id::PLACES, 0, 0x0009_0001),
        (id::FACTOR_STARTS, 1, 99),
        (id::FACTOR_ROWS, 0, 0),
        (id::FACTOR, 0, nan),
        (id::PRECISION, 0, nan),
        (id::INPUTS, 0, 0xffff_ffff),
        (id::INPUT_STARTS, 0, 1),
        (id::INPUT_WEIGHTS, 0, nan),
        (id::MOMENTS, 0, nan),
        (id::MOMENTS, 9, (-1f32).to_bits()),
    ] {
        assert_eq!(refused(section, at, word), value(section), "section {section}, word {at}");
    }
    let entries = GaussianImage::open(&good).unwrap().view().entries();
    assert_eq!(refused(id::FACTOR, entries, 0), value(id::FACTOR));
    assert_eq!(refused(id::PRECISION, entries, (-1f32).to_bits()), value(id::PRECISION));
}
