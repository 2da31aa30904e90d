//! Estimates of `log Z` and of marginals, for pieces that are too wide for exact inference: only where the user asks for them.

use gibbsite_core::error::InferError;
use gibbsite_core::graph::{FactorGraph, Incidence};
use gibbsite_core::ids::{FactorId, VarId};
use gibbsite_core::infer::gibbs::Gibbs;
use gibbsite_core::infer::loopy::{Dimensions, Loopy, Mode, Params};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// What to do with a component that is too wide for exact inference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Inference {
    /// Refuse it.
    #[default]
    Exact,
    /// Loopy belief propagation: Bethe's estimate of `log Z`, whose gradient is the beliefs where the messages have come to rest.
    Bp,
    /// Gibbs sampling from the labels of each sample: an estimate of the gradient, new in each evaluation; the value leaves `log Z` of these
    /// components out.
    Gibbs {
        /// Sweeps over the variables in an evaluation; the first half is not counted.
        sweeps: u32,
        /// Seed of all chains.
        seed: u64,
    },
}

/// Iterations without damping, and with it if they did not suffice.
const SWEEPS: [(u32, f64); 2] = [(100, 0.0), (400, 0.5)];
const REST: f64 = 1e-9;

/// At least `len` entries of a vector.
pub(super) fn room<T: Clone + Default>(vec: &mut Vec<T>, len: usize) -> &mut [T] {
    if vec.len() < len {
        vec.resize(len, T::default());
    }
    &mut vec[..len]
}

/// Bethe's estimate of `log Z`, the beliefs of all factors one after the other, and whether the messages came to rest.
pub(super) fn bethe(
    graph: FactorGraph<'_, f64>,
    words: &mut Vec<u32>,
    reals: &mut Vec<f64>,
    beliefs: &mut [f64],
) -> Result<(f64, bool), InferError> {
    let size = Dimensions::of(&graph);
    let words = room(words, Loopy::<f64>::words_len(&size));
    let reals = room(reals, Loopy::<f64>::reals_len(&size));
    let mut run = Loopy::new(graph, Mode::Sum, words, reals)?;
    let mut rests = false;
    for (max_iterations, damping) in SWEEPS {
        let params = Params { max_iterations, tolerance: REST, damping, ..Params::default() };
        rests = run.run(&params)?.converged;
        if rests {
            break;
        }
    }
    let mut rest = beliefs;
    for k in graph.factor_ids() {
        let (own, others) = rest.split_at_mut_checked(graph.table(k).len()).ok_or(InferError::Shape)?;
        run.factor_marginal(k, own)?;
        rest = others;
    }
    Ok((run.log_z()?, rests))
}

/// Shares of the factors' configurations on a Gibbs chain that begins at `labels`, one after the other.
pub(super) fn sampled(
    graph: FactorGraph<'_, f64>,
    labels: &mut [u32],
    (sweeps, seed): (u32, u64),
    words: &mut Vec<u32>,
    reals: &mut Vec<f64>,
    beliefs: &mut [f64],
) -> Result<(), InferError> {
    let size = Dimensions::of(&graph);
    let variables = graph.variables();
    let (own, incidence) = (Gibbs::<f64>::words_len(&size), Incidence::len(variables, graph.edges()));
    let words = room(words, own + incidence);
    let (own, incidence) = words.split_at_mut(own);
    let incidence = Incidence::build(&graph, incidence)?;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut chain =
        Gibbs::new(graph, incidence, labels, own, room(reals, Gibbs::<f64>::reals_len(&size, 0)))?;
    beliefs.fill(0.0);
    let first = sweeps / 2;
    let share = 1.0 / f64::from((sweeps - first).max(1));
    for sweep in 0..sweeps.max(1) {
        for v in 0..variables as u32 {
            chain.draw(&[v], &mut rng)?;
        }
        if sweep < first {
            continue;
        }
        let mut start = 0;
        for k in graph.factor_ids() {
            beliefs[start + configuration(&graph, k, chain.labels())] += share;
            start += graph.table(k).len();
        }
    }
    Ok(())
}

fn configuration(graph: &FactorGraph<'_, f64>, k: FactorId, labels: &[u32]) -> usize {
    graph.scope(k).iter().fold(0, |at, &v| at * graph.card(VarId(v)) + labels[v as usize] as usize)
}
