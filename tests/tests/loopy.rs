//! Belief propagation, tree-reweighted bounds and ICM against enumeration. Nothing here is shared with the engines.

use gibbsite_core::error::InferError;
use gibbsite_core::graph::{FactorGraph, Incidence};
use gibbsite_core::ids::FactorId;
use gibbsite_core::infer::icm;
use gibbsite_core::infer::loopy::{Dimensions, Info, Loopy, Mode, Params, Schedule};
use gibbsite_core::infer::trw::{self, Trw};
use gibbsite_core::math::Real;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const OUT: f64 = f64::NEG_INFINITY;

#[derive(Clone, Debug, Default)]
struct Model {
    cards: Vec<u32>,
    scopes: Vec<Vec<u32>>,
    tables: Vec<Vec<f64>>,
}

/// The flat arrays of a model in the engine's scalar.
struct Flat<T> {
    cards: Vec<u32>,
    scope_start: Vec<u32>,
    scope: Vec<u32>,
    table_start: Vec<u32>,
    values: Vec<T>,
}

impl<T: Real> Flat<T> {
    fn graph(&self) -> FactorGraph<'_, T> {
        FactorGraph::new(&self.cards, &self.scope_start, &self.scope, &self.table_start, &self.values)
            .unwrap()
    }
}

impl Model {
    fn flat<T: Real>(&self) -> Flat<T> {
        let mut f = Flat {
            cards: self.cards.clone(),
            scope_start: vec![0],
            scope: vec![],
            table_start: vec![0],
            values: vec![],
        };
        for (s, t) in self.scopes.iter().zip(&self.tables) {
            f.scope.extend(s);
            f.values.extend(t.iter().map(|&x| T::from_f64(x)));
            f.scope_start.push(f.scope.len() as u32);
            f.table_start.push(f.values.len() as u32);
        }
        f
    }

    fn push(&mut self, scope: &[u32], table: &[f64]) {
        self.scopes.push(scope.to_vec());
        self.tables.push(table.to_vec());
    }

    fn entry(&self, k: usize, x: &[u32]) -> usize {
        self.scopes[k].iter().fold(0, |at, &v| at * self.cards[v as usize] as usize + x[v as usize] as usize)
    }

    fn log_potential(&self, x: &[u32]) -> f64 {
        (0..self.scopes.len()).map(|k| self.tables[k][self.entry(k, x)]).sum()
    }

    fn each(&self, mut see: impl FnMut(&[u32])) {
        let mut x = vec![0u32; self.cards.len()];
        loop {
            see(&x);
            let Some(i) = (0..x.len()).rev().find(|&i| x[i] + 1 < self.cards[i]) else { return };
            x[i] += 1;
            x[i + 1..].fill(0);
        }
    }

    /// `(log Z, marginals, largest log-potential)` by enumeration.
    fn brute(&self) -> (f64, Vec<f64>, f64) {
        let mut top = OUT;
        self.each(|x| top = top.max(self.log_potential(x)));
        let mut p = vec![0.0; self.cards.iter().sum::<u32>() as usize];
        let mut z = 0.0;
        if top > OUT {
            self.each(|x| {
                let w = (self.log_potential(x) - top).exp();
                z += w;
                let mut at = 0;
                for (&l, &c) in x.iter().zip(&self.cards) {
                    p[at + l as usize] += w;
                    at += c as usize;
                }
            });
            p.iter_mut().for_each(|p| *p /= z);
        }
        (top + z.ln(), p, top)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Zeros {
    None,
    /// Some entries forbidden, one assignment kept possible.
    Planted,
    /// Some entries forbidden, come what may.
    Any,
}

/// A random model; with `tree`, factors only join variables that are not connected yet. Constants, unary
/// factors, arity 1 and isolated variables occur.
fn random(seed: u64, n: usize, factors: usize, tree: bool, zeros: Zeros, scale: f64) -> Model {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut m = Model { cards: (0..n).map(|_| rng.random_range(1..=3)).collect(), ..Model::default() };
    let planted: Vec<u32> = m.cards.iter().map(|&c| rng.random_range(0..c)).collect();
    let mut component: Vec<usize> = (0..n).collect();
    for _ in 0..factors {
        let want = [0, 1, 1, 2, 2, 2, 2, 3, 3, 4][rng.random_range(0..10)];
        let mut scope: Vec<u32> = vec![];
        for _ in 0..4 * want {
            let v = rng.random_range(0..n) as u32;
            let free =
                scope.iter().all(|&u| u != v && (!tree || component[u as usize] != component[v as usize]));
            if free && scope.len() < want {
                scope.push(v);
            }
        }
        if let Some(&first) = scope.first() {
            let into = component[first as usize];
            let joined: Vec<usize> = scope.iter().map(|&v| component[v as usize]).collect();
            for c in component.iter_mut().filter(|c| joined.contains(c)) {
                *c = into;
            }
        }
        let size: u32 = scope.iter().map(|&v| m.cards[v as usize]).product();
        let mut table: Vec<f64> = (0..size).map(|_| scale * rng.random_range(-1.0..1.0)).collect();
        if zeros != Zeros::None {
            for t in table.iter_mut() {
                if rng.random_range(0.0..1.0) < 0.3 {
                    *t = OUT;
                }
            }
        }
        m.push(&scope, &table);
        let k = m.scopes.len() - 1;
        let at = m.entry(k, &planted);
        if zeros == Zeros::Planted && m.tables[k][at] == OUT {
            m.tables[k][at] = 0.5;
        }
    }
    m
}

struct Answer<T> {
    info: Info<T>,
    log_z: T,
    marginals: Vec<T>,
    labels: Vec<u32>,
    value: T,
}

fn bp<T: Real>(m: &Model, mode: Mode, params: &Params<T>) -> Result<Answer<T>, InferError> {
    let flat = m.flat::<T>();
    let size = Dimensions::of(&flat.graph());
    let (mut words, mut reals) =
        (vec![7; Loopy::<T>::words_len(&size)], vec![T::from_f64(7.0); Loopy::<T>::reals_len(&size)]);
    let mut bp = Loopy::new(flat.graph(), mode, &mut words, &mut reals)?;
    let info = bp.run(params)?;
    let mut marginals = vec![T::zero(); size.labels];
    bp.marginals(&mut marginals)?;
    let log_z = bp.log_z()?;
    let mut labels = vec![0; size.variables];
    let value = bp.decode(&mut labels)?;
    Ok(Answer { info, log_z, marginals, labels, value })
}

fn reweighted<T: Real>(
    m: &Model,
    params: &Params<T>,
    rounds: &[u32],
) -> Result<Vec<trw::Info<T>>, InferError> {
    let flat = m.flat::<T>();
    let size = Dimensions::of(&flat.graph());
    let (mut words, mut reals) =
        (vec![7; Trw::<T>::words_len(&size)], vec![T::from_f64(7.0); Trw::<T>::reals_len(&size)]);
    let mut trw = Trw::new(flat.graph(), &mut words, &mut reals)?;
    rounds.iter().map(|&max_iterations| trw.run(&Params { max_iterations, ..*params })).collect()
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * b.abs().max(1.0)
}

fn params<T: Real>(damping: f64, residual: bool) -> Params<T> {
    let schedule = if residual { Schedule::Residual } else { Schedule::Sequential };
    Params { damping: T::from_f64(damping), schedule, max_iterations: 400, ..Params::default() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn belief_propagation_is_exact_on_trees(
        seed: u64, n in 1usize..8, factors in 0usize..12, zeros: bool, residual: bool, damped: bool,
        scale in prop_oneof![Just(0.1), Just(3.0), Just(200.0), Just(3000.0)],
    ) {
        let zeros = if zeros { Zeros::Planted } else { Zeros::None };
        let m = random(seed, n, factors, true, zeros, scale);
        let (log_z, marginals, top) = m.brute();
        // Relative to messages of up to thousands, damped ones must come this close for 1e-9 in the end.
        let p = Params { tolerance: 1e-13, ..params(if damped { 0.3 } else { 0.0 }, residual) };
        let sum = bp::<f64>(&m, Mode::Sum, &p).unwrap();
        prop_assert!(sum.info.converged, "{:?}", sum.info);
        prop_assert!(close(sum.log_z, log_z, 1e-9), "{} {log_z}", sum.log_z);
        for (a, b) in sum.marginals.iter().zip(&marginals) {
            prop_assert!((a - b).abs() < 1e-9, "{a} {b}");
        }
        let max = bp::<f64>(&m, Mode::Max, &p).unwrap();
        prop_assert!(max.info.converged);
        prop_assert!(close(max.log_z, top, 1e-9));
        prop_assert!(close(max.value, top, 1e-9));
        prop_assert!(close(m.log_potential(&max.labels), max.value, 1e-12));
    }

    #[test]
    fn and_in_single_precision(
        seed: u64, n in 1usize..7, factors in 0usize..10, zeros: bool, residual: bool,
        scale in prop_oneof![Just(3.0), Just(40.0)],
    ) {
        let m = random(seed, n, factors, true, if zeros { Zeros::Planted } else { Zeros::None }, scale);
        let (log_z, marginals, top) = m.brute();
        let sum = bp::<f32>(&m, Mode::Sum, &params(0.0, residual)).unwrap();
        prop_assert!(sum.info.converged);
        prop_assert!(close(sum.log_z.into(), log_z, 1e-4));
        for (&a, b) in sum.marginals.iter().zip(&marginals) {
            prop_assert!((f64::from(a) - b).abs() < 1e-4);
        }
        let max = bp::<f32>(&m, Mode::Max, &params(0.0, residual)).unwrap();
        prop_assert!(close(max.value.into(), top, 1e-4));
        let bound = reweighted::<f32>(&m, &params(0.5, residual), &[3]).unwrap()[0].bound;
        prop_assert!(close(bound.into(), log_z, 1e-4));
    }

    /// On a tree messages find every contradiction; with cycles they may miss one, but never invent one.
    #[test]
    fn contradictions(seed: u64, n in 1usize..7, factors in 0usize..10, tree: bool, residual: bool) {
        let m = random(seed, n, factors, tree, Zeros::Any, 2.0);
        let possible = m.brute().2 > OUT;
        for mode in [Mode::Sum, Mode::Max] {
            match bp::<f64>(&m, mode, &params(0.0, residual)) {
                Ok(a) => {
                    prop_assert!(possible || !tree);
                    prop_assert!(a.marginals.iter().all(|p| (0.0..=1.0 + 1e-12).contains(p)));
                }
                Err(e) => {
                    prop_assert_eq!(e, InferError::ZeroProbability);
                    prop_assert!(!possible);
                }
            }
        }
        if let Err(e) = reweighted::<f64>(&m, &params(0.5, residual), &[20]) {
            prop_assert_eq!(e, InferError::ZeroProbability);
            prop_assert!(!possible);
        } else {
            prop_assert!(possible || !tree);
        }
    }

    #[test]
    fn the_reweighted_bound_holds_at_every_iterate(
        seed: u64, n in 1usize..8, factors in 0usize..16, zeros: bool, residual: bool,
        damping in prop_oneof![Just(0.0), Just(0.5)],
        scale in prop_oneof![Just(0.5), Just(5.0), Just(400.0)],
    ) {
        let m = random(seed, n, factors, false, if zeros { Zeros::Planted } else { Zeros::None }, scale);
        let log_z = m.brute().0;
        let infos = reweighted::<f64>(&m, &params(damping, residual), &[0, 1, 1, 3, 20, 0]).unwrap();
        for info in &infos {
            prop_assert!(info.bound >= log_z - 1e-9 * log_z.abs().max(1.0), "{} < {log_z}", info.bound);
        }
        prop_assert!(infos.windows(2).all(|w| w[1].bound <= w[0].bound));
    }

    #[test]
    fn the_reweighted_bound_is_log_z_on_trees(
        seed: u64, n in 1usize..8, factors in 0usize..12, zeros: bool, rounds in 0u32..4,
    ) {
        let m = random(seed, n, factors, true, if zeros { Zeros::Planted } else { Zeros::None }, 3.0);
        let info = reweighted::<f64>(&m, &params(0.5, false), &[rounds]).unwrap()[0];
        prop_assert_eq!(info.forests, 1);
        prop_assert!(close(info.bound, m.brute().0, 1e-9));
    }

    /// Where the messages rest, pseudo-marginals of factors and variables agree, which makes the point
    /// optimal; before that they disagree by no more than the messages still move: each of up to 12 factors
    /// by `residual · max(1, |λ|)`, with `|λ| ≤ 2/ρ ≤ 12`.
    #[test]
    fn reweighted_pseudo_marginals_are_locally_consistent(seed: u64, n in 2usize..7, factors in 1usize..12) {
        let m = random(seed, n, factors, false, Zeros::None, 1.0);
        let flat = m.flat::<f64>();
        let size = Dimensions::of(&flat.graph());
        let (mut words, mut reals) = (vec![0; Trw::<f64>::words_len(&size)], vec![0.0; Trw::<f64>::reals_len(&size)]);
        let mut trw = Trw::new(flat.graph(), &mut words, &mut reals).unwrap();
        let info = trw.run(&Params { damping: 0.5, max_iterations: 1000, ..Params::default() }).unwrap();
        let mut p = vec![0.0; size.labels];
        trw.marginals(&mut p).unwrap();
        for (k, scope) in m.scopes.iter().enumerate() {
            let rho = trw.appearance(FactorId(k as u32));
            prop_assert!(rho > 0.0 && rho <= 1.0 && (rho * f64::from(info.forests)).fract() < 1e-9);
            let mut b = vec![0.0; m.tables[k].len()];
            trw.factor_marginal(FactorId(k as u32), &mut b).unwrap();
            for &v in scope {
                let start: u32 = m.cards[..v as usize].iter().sum();
                let mut sums = vec![0.0; m.cards[v as usize] as usize];
                let cards: Vec<u32> = scope.iter().map(|&u| m.cards[u as usize]).collect();
                let after: u32 = scope.iter().zip(&cards).skip_while(|(u, _)| **u != v).skip(1).map(|(_, c)| c).product();
                for (i, q) in b.iter().enumerate() {
                    sums[i / after as usize % m.cards[v as usize] as usize] += q;
                }
                for (x, s) in sums.iter().enumerate() {
                    prop_assert!((s - p[start as usize + x]).abs() <= 144.0 * info.residual + 1e-12);
                }
            }
        }
    }

    #[test]
    fn icm_climbs_to_a_local_optimum(seed: u64, n in 1usize..8, factors in 0usize..14, zeros: bool) {
        let m = random(seed, n, factors, false, if zeros { Zeros::Any } else { Zeros::None }, 3.0);
        let flat = m.flat::<f64>();
        let g = flat.graph();
        let mut memory = vec![0; Incidence::len(n, g.edges())];
        let inc = Incidence::build(&g, &mut memory).unwrap();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed ^ 1);
        let mut x: Vec<u32> = m.cards.iter().map(|&c| rng.random_range(0..c)).collect();
        let key = |x: &[u32]| {
            let t: Vec<f64> = (0..m.scopes.len()).map(|k| m.tables[k][m.entry(k, x)]).collect();
            let broken = t.iter().filter(|&&t| t == OUT).count();
            (broken, t.iter().filter(|&&t| t > OUT).sum::<f64>())
        };
        let mut scratch = vec![0.0; icm::scratch_len(&Dimensions::of(&g))];
        let mut before = key(&x);
        loop {
            let info = icm::ascend(&g, &inc, &mut x, 1, &mut scratch).unwrap();
            let now = key(&x);
            prop_assert!(now.0 < before.0 || (now.0 == before.0 && now.1 >= before.1 - 1e-12));
            let value = m.log_potential(&x);
            prop_assert!(value == info.log_potential || close(info.log_potential, value, 1e-12));
            before = now;
            if info.converged {
                break;
            }
        }
        for v in 0..n {
            for label in 0..m.cards[v] {
                let mut y = x.clone();
                y[v] = label;
                let other = key(&y);
                prop_assert!(other.0 > before.0 || (other.0 == before.0 && other.1 <= before.1 + 1e-12));
            }
        }
    }
}

/// A binary grid with random signs: strongly frustrated.
fn spin_glass(side: usize, coupling: f64, seed: u64) -> Model {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut m = Model { cards: vec![2; side * side], ..Model::default() };
    for i in 0..side * side {
        let (row, column) = (i / side, i % side);
        let h = rng.random_range(-0.3..0.3);
        m.push(&[i as u32], &[h, -h]);
        for j in
            [(column + 1 < side).then_some(i + 1), (row + 1 < side).then_some(i + side)].into_iter().flatten()
        {
            let c = if rng.random_range(0..2) == 0 { coupling } else { -coupling };
            m.push(&[i as u32, j as u32], &[c, -c, -c, c]);
        }
    }
    m
}

#[test]
fn a_frustrated_loop_does_not_converge_undamped() {
    let m = spin_glass(4, 1.0, 0);
    let p = Params { max_iterations: 2000, tolerance: 1e-8, ..Params::default() };
    let undamped = bp::<f64>(&m, Mode::Sum, &p).unwrap().info;
    assert!(!undamped.converged && undamped.iterations == 2000 && undamped.residual > 0.1, "{undamped:?}");
    for p in [Params { damping: 0.5, ..p }, Params { schedule: Schedule::Residual, ..p }] {
        let rests = bp::<f64>(&m, Mode::Sum, &p).unwrap();
        assert!(rests.info.converged && rests.info.residual <= 1e-8, "{:?}", rests.info);
        assert!((rests.log_z - m.brute().0).abs() < 0.5);
    }
    let bounds = reweighted::<f64>(&m, &Params { damping: 0.5, ..p }, &[0, 1000]).unwrap();
    assert!(bounds[1].converged && m.brute().0 < bounds[1].bound && bounds[1].bound < bounds[0].bound - 0.3);
}

/// `P(x) ∝ Π exp(J x_i x_j)` on a ring of `n` spins: `Z = (2 cosh J)^n + (2 sinh J)^n` (transfer matrix), and
/// the only fixed point of belief propagation by symmetry gives `(2 cosh J)^n`.
#[test]
fn a_ring_has_a_known_bethe_value() {
    let (n, j) = (9, 0.7f64);
    let mut m = Model { cards: vec![2; n], ..Model::default() };
    for i in 0..n {
        m.push(&[i as u32, ((i + 1) % n) as u32], &[j, -j, -j, j]);
    }
    let bethe = n as f64 * (2.0 * j.cosh()).ln();
    assert!(close(bp::<f64>(&m, Mode::Sum, &Params::default()).unwrap().log_z, bethe, 1e-12));
    let exact = ((2.0 * j.cosh()).powi(9) + (2.0 * j.sinh()).powi(9)).ln();
    assert!(close(m.brute().0, exact, 1e-12));
    let info = reweighted::<f64>(&m, &Params { damping: 0.5, ..Params::default() }, &[1000]).unwrap()[0];
    // Two forests, each missing one or more pairs: the bound is above log Z, below the trivial one.
    assert!(info.converged && exact < info.bound && info.bound < n as f64 * (j + 2f64.ln()));
}

#[test]
fn ties_and_forbidden_configurations_decode_consistently() {
    // x0 ≠ x1 ≠ x2 ≠ x3: two optima, whose max-marginals are flat.
    let mut m = Model { cards: vec![2; 4], ..Model::default() };
    for v in 0..3 {
        m.push(&[v, v + 1], &[OUT, 1.0, 1.0, OUT]);
    }
    let a = bp::<f64>(&m, Mode::Max, &Params::default()).unwrap();
    assert_eq!((a.labels, a.value), (vec![0, 1, 0, 1], 3.0));
}

#[test]
fn contradictions_are_found() {
    let mut m = Model { cards: vec![2], ..Model::default() };
    m.push(&[0], &[OUT, 1.0]);
    m.push(&[0], &[1.0, OUT]);
    for p in [params(0.0, false), params(0.5, true)] {
        assert_eq!(bp::<f64>(&m, Mode::Sum, &p).err(), Some(InferError::ZeroProbability));
        assert_eq!(bp::<f64>(&m, Mode::Max, &p).err(), Some(InferError::ZeroProbability));
        assert_eq!(reweighted(&m, &p, &[3]).err(), Some(InferError::ZeroProbability));
    }
    let mut constant = Model { cards: vec![2], ..Model::default() };
    constant.push(&[], &[OUT]);
    assert_eq!(bp::<f64>(&constant, Mode::Sum, &params(0.0, false)).err(), Some(InferError::ZeroProbability));
    assert_eq!(
        reweighted::<f64>(&constant, &params(0.0, false), &[0]).err(),
        Some(InferError::ZeroProbability)
    );
}

/// A variable with thousands of factors, some messages far larger than the others: cavities must not drown.
#[test]
fn a_hub_keeps_its_precision() {
    let leaves = 3000u32;
    let mut m = Model { cards: vec![2; leaves as usize + 1], ..Model::default() };
    let (mut yes, mut no) = (0.0f64, 0.0f64);
    for v in 1..=leaves {
        let w = (f64::from(v) * 0.7).sin();
        m.push(&[0, v], &[w, 0.0, 0.0, -w]);
        yes += (w.exp() + 1.0).ln();
        no += (1.0 + (-w).exp()).ln();
    }
    m.push(&[0], &[1e7, 0.0]);
    m.push(&[0], &[0.0, 1e7]);
    let log_z = 1e7 + yes.max(no) + (-(yes - no).abs()).exp().ln_1p();
    let p = 1.0 / (1.0 + (no - yes).exp());
    for residual in [false, true] {
        let a = bp::<f64>(&m, Mode::Sum, &params(0.0, residual)).unwrap();
        assert!(a.info.converged);
        assert!(close(a.log_z, log_z, 1e-12) && (a.marginals[0] - p).abs() < 1e-9, "{} {p}", a.marginals[0]);
    }
}

#[test]
fn a_chain_in_order_needs_a_sweep_each_way() {
    let n = 2000;
    let mut m = Model { cards: vec![2; n], ..Model::default() };
    for v in 1..n as u32 {
        let w = (f64::from(v) * 0.3).cos();
        m.push(&[v - 1, v], &[w, 0.1, -0.2, 0.5 * w]);
    }
    let info = bp::<f64>(&m, Mode::Sum, &params(0.0, false)).unwrap().info;
    assert!(info.converged && info.iterations <= 3, "{info:?}");
}

#[test]
fn bad_arguments_are_errors() {
    let m = random(5, 4, 6, false, Zeros::None, 1.0);
    let flat = m.flat::<f64>();
    let g = flat.graph();
    let size = Dimensions::of(&g);
    let (words, reals) = (Loopy::<f64>::words_len(&size), Loopy::<f64>::reals_len(&size));
    let short =
        |e: Option<InferError>, needed: usize| e == Some(InferError::Memory { needed, given: needed - 1 });
    assert!(short(Loopy::new(g, Mode::Sum, &mut vec![0; words - 1], &mut vec![0.0; reals]).err(), words));
    assert!(short(Loopy::new(g, Mode::Sum, &mut vec![0; words], &mut vec![0.0; reals - 1]).err(), reals));
    let (mut a, mut b) = (vec![0; words], vec![0.0; reals]);
    let mut loopy = Loopy::new(g, Mode::Sum, &mut a, &mut b).unwrap();
    assert!(short(loopy.marginals(&mut vec![0.0; size.labels - 1]).err(), size.labels));
    assert!(short(loopy.decode(&mut [0; 3]).err(), 4));
    assert_eq!(loopy.factor_marginal(FactorId(99), &mut [0.0; 99]), Err(InferError::Shape));
    for bad in [
        Params { damping: 1.0, ..Params::default() },
        Params { damping: -0.1, ..Params::default() },
        Params { tolerance: f64::NAN, ..Params::default() },
    ] {
        assert_eq!(loopy.run(&bad).err(), Some(InferError::BadValue));
    }
    let (words, reals) = (Trw::<f64>::words_len(&size), Trw::<f64>::reals_len(&size));
    assert!(short(Trw::new(g, &mut vec![0; words - 1], &mut vec![0.0; reals]).err(), words));
    assert!(short(Trw::new(g, &mut vec![0; words], &mut vec![0.0; reals - 1]).err(), reals));
    let mut memory = vec![0; Incidence::len(4, g.edges())];
    let inc = Incidence::build(&g, &mut memory).unwrap();
    let need = icm::scratch_len(&size);
    assert!(short(icm::ascend(&g, &inc, &mut [0; 4], 9, &mut vec![0.0; need - 1]).err(), need));
    assert_eq!(icm::ascend(&g, &inc, &mut [0; 3], 9, &mut vec![0.0; need]).err(), Some(InferError::Shape));
    assert_eq!(icm::ascend(&g, &inc, &mut [9; 4], 9, &mut vec![0.0; need]).err(), Some(InferError::Shape));
    let mut huge = Model { cards: vec![2], ..Model::default() };
    huge.push(&[0], &[1e30, 0.0]);
    assert_eq!(bp::<f64>(&huge, Mode::Sum, &Params::default()).err(), Some(InferError::BadValue));
}

/// Nothing at all, and variables without factors.
#[test]
fn empty_models() {
    for cards in [vec![], vec![3, 1]] {
        let m = Model { cards, ..Model::default() };
        for residual in [false, true] {
            let a = bp::<f64>(&m, Mode::Sum, &params(0.0, residual)).unwrap();
            assert!(a.info.converged && close(a.log_z, m.brute().0, 1e-12));
            assert_eq!(a.marginals, m.brute().1);
            let info = reweighted::<f64>(&m, &params(0.0, residual), &[2]).unwrap()[0];
            assert!(close(info.bound, m.brute().0, 1e-12));
        }
    }
}

#[test]
fn icm_leaves_a_forbidden_start() {
    let mut m = Model { cards: vec![2, 2], ..Model::default() };
    m.push(&[0, 1], &[0.0, OUT, OUT, 1.0]);
    m.push(&[0], &[100.0, OUT]);
    let flat = m.flat::<f64>();
    let g = flat.graph();
    let mut memory = vec![0; Incidence::len(2, g.edges())];
    let inc = Incidence::build(&g, &mut memory).unwrap();
    let mut x = [1, 0];
    let info = icm::ascend(&g, &inc, &mut x, 100, &mut [0.0; 4]).unwrap();
    assert_eq!((x, info.log_potential, info.sweeps, info.converged), ([0, 0], 100.0, 2, true));
    let mut kept = [1, 1];
    assert!(!icm::ascend(&g, &inc, &mut kept, 0, &mut [0.0; 4]).unwrap().converged);
    assert_eq!(kept, [1, 1]);
}
