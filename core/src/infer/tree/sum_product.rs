//! `log Z` and marginals: up and down the order.

use super::Forest;
use super::column::Column;
use super::factor::Inputs;
use super::walk::Walk;
use crate::arena::Arena;
use crate::error::{InferError, need};
use crate::ids::VarId;
use crate::math::Real;
use crate::wide::{Radix, finite};

/// The memory of a sum-product.
struct Messages<'s, T> {
    /// For each variable, the product of the messages from its children.
    below: Column<'s, T>,
    /// For each factor, the message to its parent.
    up: Column<'s, T>,
    /// For each factor, first the product of its later siblings' messages, then what its parent says.
    siblings: Column<'s, T>,
    /// Exponents of the products from above; their mantissas lie in the output.
    above_k: &'s mut [T],
    /// For [`Walk`].
    walk: Walk<'s, [T; 2]>,
}

impl<'s, T: Real> Messages<'s, T> {
    #[inline(always)]
    fn new(forest: &Forest<'_, '_, T>, memory: &'s mut [T]) -> Result<Self, InferError> {
        let (labels, upward) = (forest.marginals_len(), forest.upward);
        let mut arena = Arena::new(memory, forest.sum_product_len())?;
        let mut column = |len| Ok::<_, InferError>(Column { m: arena.take(len)?, k: arena.take(len)? });
        let (below, up, siblings) = (column(labels)?, column(upward)?, column(upward)?);
        let above_k = arena.take(labels)?;
        let walk = Walk::new(arena.take(forest.longest.saturating_mul(2))?.as_chunks_mut().0);
        Ok(Self { below, up, siblings, above_k, walk })
    }
}

impl<T: Real> Forest<'_, '_, T> {
    /// Entries of memory that [`log_z`](Self::log_z) and [`sum_product`](Self::sum_product) need.
    pub fn sum_product_len(&self) -> usize {
        let messages = self.marginals_len().saturating_mul(3).saturating_add(self.upward.saturating_mul(4));
        messages.saturating_add(self.longest.saturating_mul(2))
    }

    /// `log Z` alone: the upward half of [`sum_product`](Self::sum_product).
    pub fn log_z(&self, memory: &mut [T]) -> Result<T, InferError> {
        self.climb(&Radix::new(), &mut Messages::new(self, memory)?)
    }

    /// `log Z` (returned), `P(x_v)` for each variable into `marginals` (see [`range`](Self::range)) and,
    /// if wanted, `P(x_{C_k})` for each factor into `beliefs` (see [`belief_range`](Self::belief_range)).
    ///
    /// ```text
    /// μ_{k→v}(x_v) = Σ_{x_{C_k} \ x_v} ψ_k(x) Π_{u ∈ C_k \ v} μ_{u→k}(x_u)
    /// μ_{v→k}(x_v) = Π_{j ∋ v, j ≠ k} μ_{j→v}(x_v)
    /// P(x_v) ∝ Π_{k ∋ v} μ_{k→v}(x_v),     P(x_{C_k}) ∝ ψ_k(x) Π_{v ∈ C_k} μ_{v→k}(x_v)
    /// ```
    ///
    /// Source: Kschischang, Frey & Loeliger 2001. Two passes over the order, no stopping rule. Ours
    /// differs in two things. Messages are made of numbers with an exponent of their own, so that they
    /// neither underflow nor lose digits at large scores. And `μ_{v→k}` divides by nothing: the way up
    /// leaves with each factor the product over its later siblings, the way down carries that over
    /// the earlier ones, so a variable in `d` factors costs `O(d)` and `-inf` is an entry like others.
    ///
    /// A variable in no factor is uniform. [`InferError::ZeroProbability`] if every configuration is
    /// forbidden; [`InferError::BadValue`] if `log Z` is too large for `T`. Short memory is noticed
    /// before anything is written; after another error the outputs hold nothing of use.
    #[inline(always)]
    pub fn sum_product(
        &self,
        marginals: &mut [T],
        beliefs: Option<&mut [T]>,
        memory: &mut [T],
    ) -> Result<T, InferError> {
        let mut marginals = Arena::new(marginals, self.marginals_len())?;
        if let Some(beliefs) = &beliefs {
            need(self.beliefs_len(), beliefs.len())?;
        }
        let mut messages = Messages::new(self, memory)?;
        let radix = Radix::new();
        let log_z = self.climb(&radix, &mut messages)?;
        self.descend(&radix, &mut messages, marginals.take(self.marginals_len())?, beliefs)?;
        Ok(log_z)
    }

    /// All upward messages, children first; returns `log Z`, gathered from the constants, the
    /// exponents taken out of the messages and the roots' sums.
    #[inline(never)]
    fn climb(&self, radix: &Radix<T>, messages: &mut Messages<'_, T>) -> Result<T, InferError> {
        let Messages { below, up, siblings, walk, .. } = messages;
        let mut log = self.constants()?;
        below.set_ones();
        let mut slot = self.upward;
        for &edge in self.order.iter().rev() {
            let local = self.enter(edge);
            let parent = self.range(local.parent);
            let own = slot.saturating_sub(parent.len())..slot;
            slot = own.start;
            local.climb(radix, below, walk, up, own.clone());
            radix.add_exponent(up.level(own.clone())?, &mut log);
            siblings.copy(own.clone(), below, parent.clone());
            below.multiply(radix, parent, up, own);
        }
        for root in self.roots() {
            let total = radix.sum(below.iter(self.range(root)));
            if total.is_zero() {
                return Err(InferError::ZeroProbability);
            }
            radix.add_log(total, &mut log);
        }
        finite(log.value())
    }

    /// All downward messages, parents first, and the marginals; [`climb`](Self::climb) before.
    #[inline(never)]
    fn descend(
        &self,
        radix: &Radix<T>,
        messages: &mut Messages<'_, T>,
        marginals: &mut [T],
        mut beliefs: Option<&mut [T]>,
    ) -> Result<(), InferError> {
        let Messages { below, up, siblings, above_k, walk } = messages;
        let mut above = Column { m: marginals, k: above_k };
        above.set_ones();
        let mut slot = 0usize;
        for &edge in self.order {
            let local = self.enter(edge);
            let parent = self.range(local.parent);
            let own = slot..slot + parent.len();
            slot = own.end;
            // From the parent: what comes from above it, its earlier children, its later children.
            siblings.multiply(radix, own.clone(), &above, parent.clone());
            above.multiply(radix, parent, up, own.clone());
            let inputs = Inputs { below, parent: siblings, own: own.start };
            let total = inputs.descend(radix, &local, walk, &mut above)?;
            let belief = beliefs.as_deref_mut().and_then(|b| b.get_mut(self.belief_range(local.factor)));
            if let Some(belief) = belief {
                inputs.belief(radix, &local, walk, total, belief);
            }
        }
        if let Some(beliefs) = beliefs {
            for k in self.graph.factor_ids().filter(|&k| self.graph.scope(k).is_empty()) {
                beliefs.get_mut(self.belief_range(k)).into_iter().flatten().for_each(|b| *b = T::one());
            }
        }
        // Above a variable all its children have been multiplied in: that is its belief.
        for v in 0..self.graph.variables() as u32 {
            above.normalise(radix, self.range(VarId(v)));
        }
        Ok(())
    }
}
