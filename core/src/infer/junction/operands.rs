//! The tables that one contraction reads, with their scopes.

use crate::error::InferError;
use crate::infer::loops::{Loops, Shape};
use crate::infer::plan::Plan;

/// The inputs of a contraction: lists of variables, and where each begins in the memory that holds all.
///
/// They are looked up in the plan when they are asked for: a list of them would take more stack than a small device has.
#[derive(Clone, Copy)]
pub(super) enum Operands {
    /// One table over all variables of the product, from the beginning of its memory.
    Table,
    /// The messages that a clique hears from below and, if that is wanted, its own from above.
    Messages { clique: usize, from_above: bool },
}

impl Operands {
    /// Writes the loops that reduce the product of the inputs onto the output of `shape`.
    #[inline(never)]
    pub(super) fn write_loops(
        self,
        plan: &Plan<'_>,
        shape: &Shape<'_>,
        index: &mut [u32],
    ) -> Result<(), InferError> {
        self.write(plan, shape, index).ok_or(InferError::Shape)
    }

    fn write(self, plan: &Plan<'_>, shape: &Shape<'_>, index: &mut [u32]) -> Option<()> {
        match self {
            Self::Table => {
                Loops::begin(index, shape, 1)?;
                Loops::add_output(index, shape)?;
                Loops::add(index, shape, 0, shape.order, 0)?;
            }
            Self::Messages { clique, from_above } => {
                let below = plan.inputs(clique);
                let inputs = below.len() + usize::from(from_above);
                Loops::begin(index, shape, inputs)?;
                Loops::add_output(index, shape)?;
                for i in 0..inputs {
                    let cluster = below.get(i).map_or(clique, |&child| child as usize);
                    Loops::add(index, shape, i, plan.separator(cluster), plan.message_at(cluster))?;
                }
            }
        }
        Loops::end(index, shape)
    }
}
