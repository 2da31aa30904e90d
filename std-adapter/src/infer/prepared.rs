//! Many networks of one shape: what depends on the shape alone is planned once.

use super::{
    Answer, InferParams, QueryError, Task, answer, approximate, forest, junction, parts, planned,
    run_junction, why_too_wide,
};
use crate::data::network::{Evidence, Network};
use std::time::Instant;

/// How queries on networks of one shape are answered, for evidence on the same variables: as [`Method::Auto`](super::Method::Auto) does.
///
/// ```
/// use gibbsite::data::network::{Evidence, Network};
/// use gibbsite::infer::{InferParams, Prepared, Task};
/// let network = |x: f64| {
///     let mut network = Network::with_cards([2, 2])?;
///     network.push_factor(&[0, 1], [x, 0.0, 0.0, x])?;
///     Ok::<_, gibbsite_core::error::GraphError>(network)
/// };
/// let params = InferParams::new(Task::Marginals);
/// let prepared = Prepared::new(&network(0.0)?, &Evidence::new(), &params)?;
/// let log_z = prepared.infer(&network(1.0)?, &Evidence::new(), Task::Partition)?.log_z.unwrap();
/// assert!((log_z - (2.0 * 1f64.exp() + 2.0).ln()).abs() < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Prepared {
    engine: Engine,
    params: InferParams,
}

#[derive(Debug)]
enum Engine {
    Forest,
    Junction(junction::Forest),
    /// Why it is not exact.
    Loopy(String),
}

impl Prepared {
    /// Plans for networks of the same variables and scopes as this one, and evidence on the same variables. The task in `params` is the most
    /// demanding one that will be asked: marginals need more memory than others.
    ///
    /// # Errors
    /// A [`QueryError`]; being too wide for exact inference is none.
    pub fn new(network: &Network, evidence: &Evidence, params: &InferParams) -> Result<Self, QueryError> {
        let network = network.reduce(evidence)?.network;
        let engine = if forest::is_forest(&network)? {
            Engine::Forest
        } else {
            match planned(&parts::split(&network), params) {
                Ok(forest) => Engine::Junction(forest),
                Err(QueryError::TooWide { info, bits, marginals, limit }) => {
                    Engine::Loopy(why_too_wide(info.as_ref(), bits, marginals, limit))
                }
                Err(other) => return Err(other),
            }
        };
        Ok(Self { engine, params: *params })
    }

    /// Why answers are not exact; `None` if they are.
    pub fn why_approximate(&self) -> Option<&str> {
        match &self.engine {
            Engine::Loopy(why) => Some(why),
            Engine::Forest | Engine::Junction(_) => None,
        }
    }

    /// Answers a query on a network of that shape.
    ///
    /// # Errors
    /// A [`QueryError`], also if the network has another shape.
    pub fn infer(&self, network: &Network, evidence: &Evidence, task: Task) -> Result<Answer, QueryError> {
        let start = Instant::now();
        let reduced = network.reduce(evidence)?;
        if reduced.constant == f64::NEG_INFINITY {
            return Err(QueryError::ZeroProbability);
        }
        let params = InferParams { task, ..self.params };
        let found = match &self.engine {
            Engine::Forest => forest::run(&reduced.network, task)?
                .ok_or(QueryError::Unsuitable("the network has another shape than the one prepared for"))?,
            Engine::Junction(forest) => {
                run_junction(&reduced.network, &parts::split(&reduced.network), forest, &params)?
            }
            Engine::Loopy(_) => approximate::belief_propagation(&reduced.network, &params)?,
        };
        answer(network, &reduced, task, found, start)
    }
}
