//! The Gibbs sampler against enumeration. Nothing here is shared with the engine.

use gibbsite_core::error::InferError;
use gibbsite_core::graph::{FactorGraph, Incidence};
use gibbsite_core::infer::gibbs::{Gibbs, Params, Scan};
use gibbsite_core::infer::loopy::Dimensions;
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

impl Model {
    fn push(&mut self, scope: &[u32], table: &[f64]) {
        self.scopes.push(scope.to_vec());
        self.tables.push(table.to_vec());
    }

    /// Gives a sampler of the model, with room for blocks of 81 configurations, to `body`.
    fn sampler<T: Real, R>(&self, labels: &[u32], body: impl FnOnce(&mut Gibbs<'_, '_, T>) -> R) -> R {
        let (mut scope_start, mut scope, mut table_start) = (vec![0], vec![], vec![0]);
        let mut values: Vec<T> = vec![];
        for (s, t) in self.scopes.iter().zip(&self.tables) {
            scope.extend(s);
            values.extend(t.iter().map(|&x| T::from_f64(x)));
            scope_start.push(scope.len() as u32);
            table_start.push(values.len() as u32);
        }
        let g = FactorGraph::new(&self.cards, &scope_start, &scope, &table_start, &values).unwrap();
        let size = Dimensions::of(&g);
        let mut memory = vec![0; Incidence::len(size.variables, size.edges)];
        let inc = Incidence::build(&g, &mut memory).unwrap();
        let (mut labels, mut words) = (labels.to_vec(), vec![7; Gibbs::<T>::words_len(&size)]);
        let mut reals = vec![T::from_f64(7.0); Gibbs::<T>::reals_len(&size, 81)];
        body(&mut Gibbs::new(g, inc, &mut labels, &mut words, &mut reals).unwrap())
    }

    fn log_potential(&self, x: &[u32]) -> f64 {
        let entry = |s: &[u32]| {
            s.iter().fold(0, |at, &v| at * self.cards[v as usize] as usize + x[v as usize] as usize)
        };
        self.scopes.iter().zip(&self.tables).map(|(s, t)| t[entry(s)]).sum()
    }

    fn states(&self) -> Vec<Vec<u32>> {
        let mut all = vec![vec![]];
        for &c in &self.cards {
            all = all.iter().flat_map(|x| (0..c).map(|l| [x.as_slice(), &[l]].concat())).collect();
        }
        all
    }

    fn distribution(&self) -> Vec<f64> {
        let w: Vec<f64> = self.states().iter().map(|x| self.log_potential(x).exp()).collect();
        let z: f64 = w.iter().sum();
        w.iter().map(|w| w / z).collect()
    }

    fn marginals(&self) -> Vec<f64> {
        let mut p = vec![0.0; self.cards.iter().sum::<u32>() as usize];
        for (x, w) in self.states().iter().zip(self.distribution()) {
            let mut at = 0;
            for (&l, &c) in x.iter().zip(&self.cards) {
                p[at + l as usize] += w;
                at += c as usize;
            }
        }
        p
    }

    fn index(&self, x: &[u32]) -> usize {
        x.iter().zip(&self.cards).fold(0, |at, (&l, &c)| at * c as usize + l as usize)
    }

    /// Transition matrix of drawing `block` given the rest, from the definition.
    fn kernel(&self, block: &[u32]) -> Vec<Vec<f64>> {
        let (states, pi) = (self.states(), self.distribution());
        let same = |x: &[u32], y: &[u32]| (0..x.len()).all(|v| block.contains(&(v as u32)) || x[v] == y[v]);
        states
            .iter()
            .map(|x| {
                let mass: f64 = states.iter().zip(&pi).filter(|(y, _)| same(x, y)).map(|(_, p)| p).sum();
                states.iter().zip(&pi).map(|(y, p)| if same(x, y) { p / mass } else { 0.0 }).collect()
            })
            .collect()
    }

    /// `max_{x,y} TV(K(x,·), K(y,·))` of a sweep over the blocks: Dobrushin's coefficient.
    fn contraction(&self, blocks: &[Vec<u32>]) -> f64 {
        let n = self.states().len();
        let mut sweep: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| f64::from(i == j)).collect()).collect();
        for block in blocks {
            let k = self.kernel(block);
            sweep = sweep
                .iter()
                .map(|row| (0..n).map(|j| (0..n).map(|i| row[i] * k[i][j]).sum()).collect())
                .collect();
        }
        let tv = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(p, q)| (p - q).abs()).sum::<f64>() / 2.0;
        sweep.iter().flat_map(|a| sweep.iter().map(move |b| tv(a, b))).fold(0.0, f64::max)
    }
}

/// A random model on a few variables; `zeros` forbids some entries but not the all-zero assignment.
fn random(seed: u64, n: usize, factors: usize, zeros: bool) -> Model {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut m = Model { cards: (0..n).map(|_| rng.random_range(1..=3)).collect(), ..Model::default() };
    for _ in 0..factors {
        let mut scope: Vec<u32> = (0..n as u32).collect();
        while scope.len() > 3 || (!scope.is_empty() && rng.random_range(0..3) == 0) {
            scope.remove(rng.random_range(0..scope.len()));
        }
        for i in (1..scope.len()).rev() {
            scope.swap(i, rng.random_range(0..=i));
        }
        let size: u32 = scope.iter().map(|&v| m.cards[v as usize]).product();
        let mut table: Vec<f64> = (0..size).map(|_| rng.random_range(-2.0..2.0)).collect();
        for t in table.iter_mut().skip(1) {
            if zeros && rng.random_range(0..4) == 0 {
                *t = OUT;
            }
        }
        m.push(&scope, &table);
    }
    m
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The distribution that a step draws from, taken from the engine at every possible state, is the
    /// conditional: the kernel is reversible, so that each step leaves the distribution invariant.
    #[test]
    fn every_step_is_in_detailed_balance(seed: u64, n in 1usize..5, factors in 0usize..7, zeros: bool, pick: u64) {
        let m = random(seed, n, factors, zeros);
        let (states, pi) = (m.states(), m.distribution());
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(pick);
        let mut block: Vec<u32> = (0..n as u32).filter(|_| rng.random_range(0..2) == 0).collect();
        if block.len() > 1 && rng.random_range(0..2) == 0 {
            block.reverse();
        }
        let exact = m.kernel(&block);
        m.sampler::<f64, _>(&vec![0; n], |gibbs| {
            let mut flow = vec![vec![0.0; states.len()]; states.len()];
            for (i, x) in states.iter().enumerate().filter(|&(i, _)| pi[i] > 0.0) {
                gibbs.set_labels(x).unwrap();
                let p = gibbs.conditional(&block).unwrap().to_vec();
                for (c, &p) in p.iter().enumerate() {
                    let (mut y, mut c) = (x.clone(), c);
                    for &v in block.iter().rev() {
                        let card = m.cards[v as usize] as usize;
                        y[v as usize] = (c % card) as u32;
                        c /= card;
                    }
                    let j = m.index(&y);
                    flow[i][j] += pi[i] * p;
                    prop_assert!((p - exact[i][j]).abs() < 1e-12);
                }
            }
            for (i, row) in flow.iter().enumerate() {
                for (there, back) in row.iter().zip(flow.iter().map(|other| other[i])) {
                    prop_assert!((there - back).abs() < 1e-12);
                }
                let reached: f64 = flow.iter().map(|other| other[i]).sum();
                prop_assert!((reached - pi[i]).abs() < 1e-12);
            }
            Ok(())
        })?;
    }

    /// Whatever the model and the start: a possible assignment or an error, never a forbidden sample.
    #[test]
    fn samples_are_possible(seed: u64, n in 1usize..5, factors in 0usize..7) {
        let m = random(seed, n, factors, true);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed ^ 3);
        let start: Vec<u32> = m.cards.iter().map(|&c| rng.random_range(0..c)).collect();
        let params = Params { start_sweeps: 200, burn_in: 5, sweeps: 20, batch: 0 };
        m.sampler::<f64, _>(&start, |gibbs| {
            match gibbs.run(Scan::Systematic, &params, &mut rng) {
                Ok(_) => {
                    prop_assert_eq!(gibbs.violated(), 0);
                    prop_assert!(m.log_potential(gibbs.labels()) > OUT);
                    let mut p = vec![0.0; m.marginals().len()];
                    gibbs.marginals(&mut p).unwrap();
                    let mut at = 0;
                    for &c in &m.cards {
                        prop_assert!((p[at..at + c as usize].iter().sum::<f64>() - 1.0).abs() < 1e-12);
                        at += c as usize;
                    }
                }
                Err(e) => prop_assert_eq!(e, InferError::ZeroProbability),
            }
            Ok(())
        })?;
    }
}

/// Coupled variables of mixed arity, with a factor of three and some forbidden entries.
fn coupled() -> Model {
    let mut m = Model { cards: vec![2, 3, 2, 1], ..Model::default() };
    m.push(&[0, 1], &[0.4, -0.2, 0.1, -0.3, 0.5, 0.0]);
    m.push(&[2, 0, 1], &[0.2, 0.0, OUT, 0.3, 0.1, -0.4, -0.2, 0.5, 0.1, 0.0, -0.3, 0.2]);
    m.push(&[2], &[0.0, 0.4]);
    m.push(&[3, 1], &[0.1, 0.0, -0.1]);
    m
}

/// Samples and compares with enumeration.
///
/// The estimate is a mean of `N` terms in [0, 1], each a function of two successive states (before and
/// after the sweep in which it was accumulated). A sweep contracts total variation by `δ`, computed
/// exactly by `contraction`. By Kontorovich & Ramanan (2008, Theorem 1.1) a function of a Markov chain's
/// path that changes by at most `c` with one state deviates from its mean by `t` with probability at most
/// `2 exp(−t² (1 − δ)² / (2 N c²))`; here `c = 2/N`. The start biases the mean by at most `δ^burn_in`. `t` is
/// chosen so that, over all labels, a correct sampler fails with probability at most 1e-9 under a random
/// seed; and the seed is fixed.
///
/// The standard errors are held to 6 of themselves: 2e-9 a label for a normal mean and ~1000 batches,
/// which is asymptotic and not a bound.
fn agrees<T: Real>(m: &Model, scan: Scan<'_>, blocks: &[Vec<u32>], seed: u64) {
    let delta = m.contraction(blocks);
    assert!(delta < 0.7, "{delta}");
    let exact = m.marginals();
    let params = Params { start_sweeps: 10, burn_in: 200, sweeps: 1_000_000, batch: 0 };
    let (p, errors, info) = m.sampler::<T, _>(&[0; 4], |gibbs| {
        let info = gibbs.run(scan, &params, &mut Xoshiro256PlusPlus::seed_from_u64(seed)).unwrap();
        let (mut p, mut errors) = (vec![T::zero(); exact.len()], vec![T::zero(); exact.len()]);
        gibbs.marginals(&mut p).unwrap();
        gibbs.standard_errors(&mut errors).unwrap();
        (p, errors, info)
    });
    let n = f64::from(params.sweeps);
    let t = (8.0 * (2.0 * exact.len() as f64 / 1e-9).ln() / n).sqrt() / (1.0 - delta) + delta.powi(200);
    assert!(t < 0.06, "{t}");
    assert_eq!((info.batches, info.sweeps), (1000, 1_000_000));
    // Rounding: f32 averages of 1000 batches of 1000.
    let rounding = if Real::to_f64(T::LOG_RANGE) < 100.0 { 1e-5 } else { 1e-12 };
    for ((p, e), exact) in p.iter().zip(&errors).zip(&exact) {
        let (e, off) = (Real::to_f64(*e), (Real::to_f64(*p) - exact).abs());
        assert!(off <= t + rounding, "{off} > {t}");
        assert!(off <= 6.0 * e + rounding, "{off}, standard error {e:?}");
        assert!(e <= Real::to_f64(info.error) && e < 0.005);
    }
}

#[test]
fn systematic_scans_converge() {
    let blocks: Vec<Vec<u32>> = (0..4).map(|v| vec![v]).collect();
    agrees::<f64>(&coupled(), Scan::Systematic, &blocks, 1);
    agrees::<f32>(&coupled(), Scan::Systematic, &blocks, 2);
}

#[test]
fn blocked_scans_converge() {
    let blocks = [vec![2, 0], vec![3, 1]];
    let scan = Scan::Blocked { start: &[0, 2, 4], variables: &[2, 0, 3, 1] };
    agrees::<f64>(&coupled(), scan, &blocks, 3);
    // All in one block: independent draws, whose conditional is the exact marginal each time.
    let all = Scan::Blocked { start: &[0, 4], variables: &[0, 1, 2, 3] };
    let m = coupled();
    m.sampler::<f64, _>(&[0; 4], |gibbs| {
        let params = Params { start_sweeps: 0, burn_in: 0, sweeps: 10, batch: 2 };
        let info = gibbs.run(all, &params, &mut Xoshiro256PlusPlus::seed_from_u64(4)).unwrap();
        assert!(info.error < 1e-12);
        let mut p = vec![0.0; 8];
        gibbs.marginals(&mut p).unwrap();
        assert!(p.iter().zip(m.marginals()).all(|(a, b)| (a - b).abs() < 1e-12));
    });
}

/// Independent draws of a joint block: each configuration's frequency over `N` draws is within `t` of its
/// probability except with probability `2 exp(−2 N t²)` (Hoeffding); 12 configurations and `t = 0.0075` at
/// `N = 200000` make that below 24 · e^-22.5 < 5e-9 in all. Fixed seed.
#[test]
fn draws_follow_the_conditional() {
    let m = coupled();
    let (pi, mut counts) = (m.distribution(), vec![0u32; 12]);
    m.sampler::<f64, _>(&[0; 4], |gibbs| {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
        for _ in 0..200_000 {
            gibbs.draw(&[1, 0, 3, 2], &mut rng).unwrap();
            counts[m.index(gibbs.labels())] += 1;
        }
    });
    for (&c, p) in counts.iter().zip(&pi) {
        assert!((f64::from(c) / 200_000.0 - p).abs() < 0.0075);
        assert!(*p > 0.0 || c == 0);
    }
}

#[test]
fn forbidden_starts() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(6);
    let params = Params { start_sweeps: 100, burn_in: 0, sweeps: 10, batch: 0 };
    // All different on a path: from all equal, a sweep repairs it.
    let mut m = Model { cards: vec![3; 6], ..Model::default() };
    for v in 0..5 {
        m.push(&[v, v + 1], &[OUT, 0.0, 0.0, 0.0, OUT, 0.0, 0.0, 0.0, OUT]);
    }
    m.sampler::<f64, _>(&[0; 6], |gibbs| {
        assert_eq!(gibbs.violated(), 5);
        let info = gibbs.run(Scan::Systematic, &params, &mut rng).unwrap();
        assert!(info.start_sweeps >= 1 && gibbs.violated() == 0);
    });
    // Two colours on a triangle: there is none.
    let mut odd = Model { cards: vec![2; 3], ..Model::default() };
    for (u, v) in [(0, 1), (1, 2), (2, 0)] {
        odd.push(&[u, v], &[OUT, 0.0, 0.0, OUT]);
    }
    odd.sampler::<f64, _>(&[0; 3], |gibbs| {
        assert_eq!(gibbs.run(Scan::Systematic, &params, &mut rng), Err(InferError::ZeroProbability));
        let blocks = Scan::Blocked { start: &[0, 3], variables: &[0, 1, 2] };
        assert_eq!(gibbs.run(blocks, &params, &mut rng), Err(InferError::ZeroProbability));
    });
}

#[test]
fn bad_arguments_are_errors() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    let m = coupled();
    m.sampler::<f64, _>(&[0; 4], |gibbs| {
        let mut p = [0.0; 8];
        assert_eq!(gibbs.marginals(&mut p), Err(InferError::Shape));
        let params = Params { start_sweeps: 1, burn_in: 0, sweeps: 1, batch: 0 };
        for (start, variables) in [
            (&[0, 4][..], &[0, 1, 2][..]),
            (&[0, 4], &[0, 1, 2, 2]),
            (&[0, 4], &[0, 1, 2, 4]),
            (&[0, 3], &[0, 1, 2, 3]),
            (&[0, 3, 2, 4], &[0, 1, 2, 3]),
            (&[], &[]),
        ] {
            let scan = Scan::Blocked { start, variables };
            assert_eq!(gibbs.run(scan, &params, &mut rng).err(), Some(InferError::Shape));
        }
        assert_eq!(gibbs.conditional(&[1, 1]).err(), Some(InferError::Shape));
        assert_eq!(gibbs.draw(&[9], &mut rng).err(), Some(InferError::Shape));
        assert_eq!(gibbs.set_labels(&[0, 3, 0, 0]), Err(InferError::Shape));
        let info = gibbs.run(Scan::Systematic, &params, &mut rng).unwrap();
        assert_eq!((info.batches, info.error), (1, f64::INFINITY));
        assert_eq!(gibbs.marginals(&mut p[..7]), Err(InferError::Memory { needed: 8, given: 7 }));
        assert_eq!(gibbs.standard_errors(&mut p[..7]), Err(InferError::Memory { needed: 8, given: 7 }));
        assert!(gibbs.marginals(&mut p).is_ok());
    });
    let g = FactorGraph::new(&[2, 2], &[0, 2], &[0, 1], &[0, 4], &[0.0; 4]).unwrap();
    let size = Dimensions::of(&g);
    let (words, reals) = (Gibbs::<f64>::words_len(&size), Gibbs::<f64>::reals_len(&size, 4));
    let mut memory = [0; 8];
    let inc = Incidence::build(&g, &mut memory).unwrap();
    let least = Gibbs::<f64>::reals_len(&size, 0);
    let made = |labels: &mut [u32], words: usize, reals: usize| {
        Gibbs::new(g, inc, labels, &mut vec![0; words], &mut vec![0.0; reals]).map(|_| ()).err()
    };
    assert_eq!(made(&mut [0; 2], words, least), None);
    assert_eq!(
        made(&mut [0; 2], words - 1, reals),
        Some(InferError::Memory { needed: words, given: words - 1 })
    );
    assert_eq!(
        made(&mut [0; 2], words, least - 1),
        Some(InferError::Memory { needed: least, given: least - 1 })
    );
    assert_eq!(made(&mut [0; 3], words, reals), Some(InferError::Shape));
    assert_eq!(made(&mut [0, 2], words, reals), Some(InferError::Shape));
    // A block that does not fit the memory.
    let (mut labels, mut a, mut b) = ([0; 2], vec![0; words], vec![0.0; reals - 1]);
    let mut gibbs = Gibbs::new(g, inc, &mut labels, &mut a, &mut b).unwrap();
    assert_eq!(gibbs.draw(&[0, 1], &mut rng), Err(InferError::Memory { needed: 4, given: 3 }));
}
