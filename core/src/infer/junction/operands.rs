//! The tables that one contraction reads, with their scopes.

use crate::error::InferError;
use crate::infer::contract::{Loops, Shape, size_of_scope};
use crate::infer::plan::{Cluster, MAX_INPUTS, Plan};
use crate::math::Real;

/// The tables of a contraction: scopes (the output's first) and values of the inputs.
pub(super) struct Operands<'x, T> {
    scopes: heapless::Vec<&'x [u32], { MAX_INPUTS + 2 }>,
    tables: heapless::Vec<&'x [T], { MAX_INPUTS + 1 }>,
}

impl<'x, T: Real> Operands<'x, T> {
    pub(super) fn new(output: &'x [u32]) -> Self {
        let mut scopes = heapless::Vec::new();
        let _ = scopes.push(output);
        Self { scopes, tables: heapless::Vec::new() }
    }

    pub(super) fn push(
        &mut self,
        scope: &'x [u32],
        at: usize,
        from: &'x [T],
        cards: &[u32],
    ) -> Result<(), InferError> {
        let len = size_of_scope(scope, cards).ok_or(InferError::Shape)?;
        let table = from.get(at..at + len).ok_or(InferError::Shape)?;
        self.scopes.push(scope).map_err(|_| InferError::Shape)?;
        self.tables.push(table).map_err(|_| InferError::Shape)
    }

    pub(super) fn children(
        &mut self,
        plan: &Plan<'x>,
        cluster: &Cluster<'x>,
        messages: &'x [T],
        cards: &[u32],
    ) -> Result<(), InferError> {
        for &child in cluster.inputs {
            let below = plan.cluster(child as usize);
            self.push(below.separator, below.message_at, messages, cards)?;
        }
        Ok(())
    }

    /// What a clique's belief is the product of: its children's messages, and its own from above.
    pub(super) fn of_belief(
        &mut self,
        plan: &Plan<'x>,
        cluster: &Cluster<'x>,
        from_above: bool,
        messages: &'x [T],
        cards: &[u32],
    ) -> Result<(), InferError> {
        self.children(plan, cluster, messages, cards)?;
        if from_above {
            self.push(cluster.separator, cluster.message_at, messages, cards)?;
        }
        Ok(())
    }

    pub(super) fn loops<'i>(&self, index: &'i mut [u32], shape: Shape<'_>) -> Result<Loops<'i>, InferError> {
        Loops::build(index, shape, &self.scopes).ok_or(InferError::Shape)
    }

    /// The same inputs with another output.
    pub(super) fn onto<'y>(&self, output: &'y [u32]) -> Operands<'y, T>
    where
        'x: 'y,
    {
        let mut operands = Operands::new(output);
        for (&scope, &table) in self.scopes.iter().skip(1).zip(&self.tables) {
            let _ = operands.scopes.push(scope);
            let _ = operands.tables.push(table);
        }
        operands
    }

    pub(super) fn tables(&self) -> &[&'x [T]] {
        &self.tables
    }
}
