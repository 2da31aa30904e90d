//! Enumeration of all configurations: slow, obvious, and therefore what the other methods are compared with.

use super::{Found, Method, QueryError, Task};
use crate::data::network::Network;
use gibbsite_core::error::InferError;
use gibbsite_core::math::log_add_exp;

/// Most configurations, as a power of two.
pub(super) const MAX_BITS: u32 = 26;

pub(super) fn run(network: &Network, task: Task) -> Result<Found, QueryError> {
    let cards = network.cards();
    let bits: f64 = cards.iter().map(|&c| f64::from(c).log2()).sum();
    if bits > f64::from(MAX_BITS) {
        return Err(QueryError::TooManyConfigurations { bits });
    }
    let graph = network.graph()?;
    let starts: Vec<usize> = cards
        .iter()
        .scan(0, |at, &c| {
            *at += c as usize;
            Some(*at - c as usize)
        })
        .collect();
    let mut log_z = f64::NEG_INFINITY;
    let mut marginals = vec![f64::NEG_INFINITY; cards.iter().map(|&c| c as usize).sum()];
    let mut labels = vec![0u32; cards.len()];
    let mut best = (f64::NEG_INFINITY, labels.clone());
    loop {
        let score = graph.log_potential(&labels).ok_or(InferError::Shape)?;
        if score > best.0 {
            best = (score, labels.clone());
        }
        if task != Task::Map && score > f64::NEG_INFINITY {
            log_z = log_add_exp(log_z, score);
            if task == Task::Marginals {
                for (&start, &label) in starts.iter().zip(&labels) {
                    let cell = &mut marginals[start + label as usize];
                    *cell = log_add_exp(*cell, score);
                }
            }
        }
        let Some(v) = (0..cards.len()).rev().find(|&v| labels[v] + 1 < cards[v]) else { break };
        labels[v] += 1;
        labels[v + 1..].fill(0);
    }
    if best.0 == f64::NEG_INFINITY {
        return Err(QueryError::ZeroProbability);
    }
    let mut found = Found::exact(Method::Brute);
    match task {
        Task::Map => found.assignment = Some(best.1),
        Task::Partition => found.log_z = Some(log_z),
        Task::Marginals => {
            found.log_z = Some(log_z);
            found.marginals = Some(marginals.into_iter().map(|m| (m - log_z).exp()).collect());
        }
    }
    Ok(found)
}
