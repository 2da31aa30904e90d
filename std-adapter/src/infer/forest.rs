//! Factor graphs without cycles, on core's tree engine: exact, in time and memory linear in their size.

use super::{Found, Method, QueryError, Task};
use crate::data::network::Network;
use gibbsite_core::error::InferError;
use gibbsite_core::infer::tree::Forest;

fn order_memory(network: &Network) -> Vec<u32> {
    vec![0; Forest::<f64>::build_len(network.variables(), network.factors(), network.edges())]
}

pub(super) fn is_forest(network: &Network) -> Result<bool, QueryError> {
    let mut order = order_memory(network);
    match Forest::build(&network.graph()?, &mut order) {
        Ok(_) => Ok(true),
        Err(InferError::Cycle(_)) => Ok(false),
        Err(other) => Err(other.into()),
    }
}

/// The answer, or `None` if there is a cycle.
pub(super) fn run(network: &Network, task: Task) -> Result<Option<Found>, QueryError> {
    let graph = network.graph()?;
    let mut order = order_memory(network);
    let forest = match Forest::build(&graph, &mut order) {
        Ok(forest) => forest,
        Err(InferError::Cycle(_)) => return Ok(None),
        Err(other) => return Err(other.into()),
    };
    let mut found = Found::exact(Method::Tree);
    let widest = (0..network.factors()).map(|k| network.scope(k).len()).max().unwrap_or(0);
    found.treewidth = Some(widest.saturating_sub(1));
    match task {
        Task::Partition => {
            found.log_z = Some(forest.log_z(&mut vec![0.0; forest.sum_product_len()])?);
        }
        Task::Marginals => {
            let mut marginals = vec![0.0; forest.marginals_len()];
            let mut memory = vec![0.0; forest.sum_product_len()];
            found.log_z = Some(forest.sum_product(&mut marginals, None, &mut memory)?);
            found.marginals = Some(marginals);
        }
        Task::Map => {
            let mut labels = vec![0; network.variables()];
            forest.max_product(&mut labels, &mut vec![0.0; forest.max_product_len()])?;
            found.assignment = Some(labels);
        }
    }
    Ok(Some(found))
}
