//! Approximate inference: belief propagation, tree-reweighted bounds, Gibbs sampling, on core's engines.

use super::{Found, InferParams, Method, QueryError, Task, forest};
use crate::data::network::Network;
use gibbsite_core::error::InferError;
use gibbsite_core::graph::{FactorGraph, Incidence};
use gibbsite_core::infer::gibbs::{self, Gibbs, Scan};
use gibbsite_core::infer::icm;
use gibbsite_core::infer::loopy::{Dimensions, Loopy, Mode, Params, Schedule};
use gibbsite_core::infer::trw::Trw;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

fn message_params(params: &InferParams) -> Params<f64> {
    Params {
        max_iterations: params.max_iterations,
        tolerance: params.tolerance,
        damping: params.damping,
        schedule: Schedule::Sequential,
    }
}

fn approximate(method: Method, converged: bool) -> Found {
    Found { exact: false, converged, ..Found::exact(method) }
}

fn not_converged(what: &str, iterations: u32, residual: f64) -> String {
    format!(
        "{what} did not converge in {iterations} iteration{} (a message still changed by {residual:.1e}); \
         raise --max-iter, or --damping towards 1",
        if iterations == 1 { "" } else { "s" }
    )
}

/// Loopy belief propagation. Exact, and marked so, on graphs without cycles.
pub(super) fn belief_propagation(network: &Network, params: &InferParams) -> Result<Found, QueryError> {
    let graph = network.graph()?;
    let acyclic = forest::is_forest(network)?;
    let size = Dimensions::of(&graph);
    let mut words = vec![0; Loopy::<f64>::words_len(&size)];
    let mut reals = vec![0.0; Loopy::<f64>::reals_len(&size)];
    let mode = if params.task == Task::Map { Mode::Max } else { Mode::Sum };
    let mut bp = Loopy::new(graph, mode, &mut words, &mut reals)?;
    let mut run_params = message_params(params);
    if acyclic {
        // Without cycles damping only delays the exact fixed point.
        run_params.damping = 0.0;
    }
    let info = bp.run(&run_params)?;
    let mut found = approximate(Method::Bp, info.converged);
    found.exact = acyclic && info.converged;
    if !info.converged {
        found.notes.push(not_converged("belief propagation", info.iterations, info.residual));
    }
    match params.task {
        Task::Partition => found.log_z = Some(bp.log_z()?),
        Task::Marginals => {
            found.log_z = Some(bp.log_z()?);
            let mut marginals = vec![0.0; size.labels];
            bp.marginals(&mut marginals)?;
            found.marginals = Some(marginals);
        }
        Task::Map => {
            let mut labels = vec![0; size.variables];
            bp.decode(&mut labels)?;
            let score = ascend(&graph, &size, &mut labels)?;
            if score == f64::NEG_INFINITY {
                found.converged = false;
                found.notes.push("the assignment found has probability zero".into());
            }
            found.assignment = Some(labels);
        }
    }
    Ok(found)
}

/// Coordinate-wise ascent from where another method ended; returns the log-potential.
fn ascend(graph: &FactorGraph<'_, f64>, size: &Dimensions, labels: &mut [u32]) -> Result<f64, InferError> {
    let mut memory = vec![0; Incidence::len(size.variables, size.edges)];
    let incidence = Incidence::build(graph, &mut memory)?;
    let mut scratch = vec![0.0; icm::scratch_len(size)];
    Ok(icm::ascend(graph, &incidence, labels, 1000, &mut scratch)?.log_potential)
}

/// Tree-reweighted belief propagation: an upper bound on `log Z`, and pseudo-marginals.
pub(super) fn tree_reweighted(network: &Network, params: &InferParams) -> Result<Found, QueryError> {
    if params.task == Task::Map {
        return Err(QueryError::Unsuitable("--method trw answers pr and mar; use --method bp for map"));
    }
    let graph = network.graph()?;
    let size = Dimensions::of(&graph);
    let mut words = vec![0; Trw::<f64>::words_len(&size)];
    let mut reals = vec![0.0; Trw::<f64>::reals_len(&size)];
    let mut trw = Trw::new(graph, &mut words, &mut reals)?;
    let info = trw.run(&message_params(params))?;
    let mut found = approximate(Method::Trw, info.converged);
    found.exact = info.converged && forest::is_forest(network)?;
    if !info.converged {
        found.notes.push(not_converged("tree-reweighted propagation", info.iterations, info.residual));
    }
    if !found.exact {
        found.notes.push("log Z is an upper bound".into());
    }
    found.log_z = Some(info.bound);
    if params.task == Task::Marginals {
        let mut marginals = vec![0.0; size.labels];
        trw.marginals(&mut marginals)?;
        found.marginals = Some(marginals);
    }
    Ok(found)
}

/// Gibbs sampling: averaged conditionals for marginals; for MAP the best of many samples, each
/// improved by coordinate-wise ascent.
pub(super) fn gibbs(network: &Network, params: &InferParams) -> Result<Found, QueryError> {
    if params.task == Task::Partition {
        return Err(QueryError::Unsuitable(
            "--method gibbs answers mar and map; use --method bp for an estimate of log Z or trw for a bound",
        ));
    }
    let graph = network.graph()?;
    let size = Dimensions::of(&graph);
    let mut memory = vec![0; Incidence::len(size.variables, size.edges)];
    let incidence = Incidence::build(&graph, &mut memory)?;
    let mut labels = vec![0; size.variables];
    let mut words = vec![0; Gibbs::<f64>::words_len(&size)];
    let mut reals = vec![0.0; Gibbs::<f64>::reals_len(&size, 1)];
    let mut sampler = Gibbs::new(graph, incidence, &mut labels, &mut words, &mut reals)?;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(params.seed);
    let no_start =
        |e: InferError| if e == InferError::ZeroProbability { QueryError::NoStart } else { e.into() };
    let mut found = approximate(Method::Gibbs, true);
    if params.task == Task::Marginals {
        let run = gibbs::Params { burn_in: params.sweeps / 10, sweeps: params.sweeps, ..Default::default() };
        let info = sampler.run(Scan::Systematic, &run, &mut rng).map_err(no_start)?;
        let mut marginals = vec![0.0; size.labels];
        sampler.marginals(&mut marginals)?;
        found.marginals = Some(marginals);
        found.notes.push(format!(
            "marginals are averages over {} sweeps; the largest standard error is {:.1e} (by batch means)",
            info.sweeps, info.error
        ));
        return Ok(found);
    }
    let rounds = 100;
    let run = gibbs::Params { burn_in: params.sweeps / rounds, sweeps: 1, ..Default::default() };
    let mut best: Option<(f64, Vec<u32>)> = None;
    for _ in 0..rounds {
        sampler.run(Scan::Systematic, &run, &mut rng).map_err(no_start)?;
        let mut candidate = sampler.labels().to_vec();
        let score = ascend(&graph, &size, &mut candidate)?;
        if best.as_ref().is_none_or(|b| score > b.0) {
            best = Some((score, candidate));
        }
    }
    found.assignment = best.map(|b| b.1);
    Ok(found)
}
