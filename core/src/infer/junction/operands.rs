//! The tables that one contraction reads, with their scopes.

use crate::error::InferError;
use crate::infer::contract::{Loops, Shape};
use crate::infer::plan::{Cluster, Plan};

/// The inputs of a contraction: lists of variables, and where each begins in the memory that holds all.
///
/// They are looked up in the plan when they are asked for: a list of them would take more stack than a small device has.
#[derive(Clone, Copy)]
pub(super) enum Operands<'x, 'p> {
    /// One table from the beginning of its memory.
    Table(&'x [u32]),
    /// The messages that a clique hears from below and, if that is wanted, its own from above.
    Messages(&'x Plan<'p>, &'x Cluster<'p>, bool),
}

impl<'x> Operands<'x, '_> {
    fn count(&self) -> usize {
        match self {
            Self::Table(_) => 1,
            Self::Messages(_, cluster, from_above) => cluster.inputs.len() + usize::from(*from_above),
        }
    }

    fn get(&self, i: usize) -> Option<(&'x [u32], usize)> {
        match self {
            Self::Table(scope) => Some((scope, 0)),
            Self::Messages(plan, cluster, _) => Some(match cluster.inputs.get(i) {
                Some(&child) => plan.message(child as usize)?,
                None => (cluster.separator, cluster.message_at),
            }),
        }
    }

    /// The loops that reduce the product of the inputs onto a table over `output`.
    #[inline(never)]
    pub(super) fn onto<'i>(
        &self,
        output: &[u32],
        index: &'i mut [u32],
        shape: &Shape<'_>,
    ) -> Result<Loops<'i>, InferError> {
        let operand = |i: usize| match i.checked_sub(1) {
            None => Some((output, 0)),
            Some(input) => self.get(input),
        };
        Loops::build(index, shape, self.count() + 1, operand).ok_or(InferError::Shape)
    }
}
