//! Rows drawn from a fitted field.

use super::FieldData;
use super::predict::Tables;
use crate::infer::QueryError;
use crate::infer::junction::Buffers;
use crate::model::FieldModel;
use crate::par::{DeskFork, Par};
use crate::plan::{PlanError, PlanParams, plan};
use gibbsite_core::infer::junction::Junction;
use gibbsite_core::infer::plan::Plan;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::fmt;

/// Why nothing was drawn.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SampleError {
    /// Exact inference is too wide.
    Plan(PlanError),
    /// Weights so large that no configuration has a probability.
    Query(QueryError),
}

impl fmt::Display for SampleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(e) => write!(f, "cannot draw from it exactly: {e}"),
            Self::Query(e) => write!(f, "{e}"),
        }
    }
}

impl std::error::Error for SampleError {}

/// Draws so many configurations of all outputs from `P(y|x)` for each sample of `data`, whose labels are not looked at.
///
/// Exact and independent: one pass of sums over a junction tree, then a walk back down for each draw ([`Junction::sample`]). The plan is made once. Depends on the seed and the
/// number of the sample, not on threads.
///
/// # Errors
/// A [`SampleError`]: tables that need more than `max_table_mib` mebibytes, or scores without bounds.
///
/// # Panics
/// If the samples are not of the model's field.
pub fn sample(
    model: &FieldModel,
    data: &FieldData,
    draws: usize,
    seed: u64,
    max_table_mib: f64,
    par: Par,
) -> Result<Vec<Vec<Vec<u32>>>, SampleError> {
    let tables = Tables::new(model);
    if data.samples() == 0 {
        return Ok(vec![]);
    }
    let first = tables.network(data, 0).map_err(SampleError::Query)?;
    let planned = plan(&first, &PlanParams::default()).map_err(SampleError::Plan)?;
    if planned.info.mebibytes(false) > max_table_mib {
        return Err(SampleError::Plan(PlanError::TooLarge { info: planned.info }));
    }
    let one = |s: usize| -> Result<Vec<Vec<u32>>, QueryError> {
        let network = tables.network(data, s)?;
        let graph = network.graph()?;
        let mut counters = vec![0; Plan::open_len(graph.variables(), graph.factors())];
        let plan = Plan::open(&planned.words, &graph, &mut counters)?;
        let mut buffers = Buffers::new(&plan, graph.variables());
        let mut run = Junction::new(plan, graph, buffers.lend())?;
        run.sum(&mut DeskFork::new(Par::Seq))?;
        // Streams of other samples begin elsewhere.
        let own = seed ^ (s as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(own);
        let mut draw = |_| -> Result<Vec<u32>, QueryError> {
            let mut labels = vec![0; graph.variables()];
            run.sample(&mut rng, &mut labels)?;
            Ok(labels)
        };
        (0..draws).map(&mut draw).collect()
    };
    let each = par.map((0..data.samples()).collect(), one);
    each.into_iter().map(|found| found.map_err(SampleError::Query)).collect()
}
