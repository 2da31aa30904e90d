//! `log Z` and marginals: up and down the order.

use super::Forest;
use super::column::Column;
use super::walk::{Local, Walk};
use crate::arena::Arena;
use crate::error::InferError;
use crate::ids::VarId;
use crate::math::Real;
use crate::wide::{Compensated, Radix, Wide, finite};

/// A sum-product under way: all that its steps read and write, in one place, so that a step has one argument and the steps do not
/// lie on the stack with copies of it.
pub(super) struct Pass<'s, 'f, 'g, 'm, T> {
    pub(super) forest: &'f Forest<'g, 'm, T>,
    pub(super) radix: Radix<T>,
    /// For each variable, the product of the messages from its children.
    pub(super) below: Column<'s, T>,
    /// For each factor, the message to its parent.
    pub(super) up: Column<'s, T>,
    /// For each factor, first the product of its later siblings' messages, then what its parent says.
    pub(super) siblings: Column<'s, T>,
    /// The products from above; their mantissas lie in the output.
    pub(super) above: Column<'s, T>,
    /// The factors' marginals; empty if they are not wanted.
    pub(super) beliefs: &'s mut [T],
    pub(super) walk: Walk<'s, [T; 2]>,
    /// The factor whose turn it is, and where its messages begin in `up` and `siblings`.
    pub(super) local: Local<'f, 'g, 'm, T>,
    pub(super) own: usize,
    /// The sum over that factor, on the way down.
    pub(super) total: Wide<T>,
}

impl<'s, 'f, 'g, 'm, T: Real> Pass<'s, 'f, 'g, 'm, T> {
    /// Without memory; [`lend`](Self::lend) gives it some. Made in place: what is returned by value lies on the stack twice.
    #[inline(always)]
    fn new(forest: &'f Forest<'g, 'm, T>) -> Self {
        let none = || Column { m: &mut [], k: &mut [] };
        Self {
            forest,
            radix: Radix::new(),
            below: none(),
            up: none(),
            siblings: none(),
            above: none(),
            beliefs: &mut [],
            walk: Walk::new(&mut []),
            local: Local::of_none(forest),
            own: 0,
            total: Wide::zero(),
        }
    }

    #[inline(never)]
    fn lend(&mut self, memory: &'s mut [T]) -> Result<(), InferError> {
        let (labels, upward) = (self.forest.marginals_len(), self.forest.upward);
        let mut arena = Arena::new(memory, self.forest.sum_product_len())?;
        for (column, len) in [(&mut self.below, labels), (&mut self.up, upward), (&mut self.siblings, upward)]
        {
            *column = Column { m: arena.piece(len), k: arena.piece(len) };
        }
        self.above.k = arena.piece(labels);
        self.walk = Walk::new(arena.piece(self.forest.longest.saturating_mul(2)).as_chunks_mut().0);
        Ok(())
    }

    #[inline(never)]
    fn lend_outputs(
        &mut self,
        marginals: &'s mut [T],
        beliefs: Option<&'s mut [T]>,
    ) -> Result<(), InferError> {
        self.above.m = Arena::new(marginals, self.forest.marginals_len())?.piece(self.forest.marginals_len());
        if let Some(beliefs) = beliefs {
            self.beliefs = Arena::new(beliefs, self.forest.beliefs_len())?.piece(self.forest.beliefs_len());
        }
        Ok(())
    }

    /// All upward messages, children first; returns `log Z`, gathered from the constants, the
    /// exponents taken out of the messages and the roots' sums.
    #[inline(never)]
    fn climb(&mut self) -> Result<T, InferError> {
        let mut log = self.forest.constants()?;
        self.below.set_ones();
        self.own = self.forest.upward;
        for &edge in self.forest.order.iter().rev() {
            self.enter(edge);
            self.own = self.own.saturating_sub(self.forest.graph.card(self.local.parent));
            self.send_up();
            self.pass_up(&mut log)?;
        }
        self.add_roots(&mut log)?;
        finite(log.value())
    }

    /// Multiplies a factor's message into its parent's product, and leaves with the factor what was there before.
    #[inline(never)]
    fn pass_up(&mut self, log: &mut Compensated<T>) -> Result<(), InferError> {
        let parent = self.forest.range(self.local.parent);
        let own = self.own..self.own + parent.len();
        self.radix.add_exponent(self.up.level(own.clone())?, log);
        self.siblings.copy(own.clone(), &self.below, parent.clone());
        self.below.multiply(&self.radix, parent, &self.up, own);
        Ok(())
    }

    /// The logarithms of the roots' sums.
    #[inline(never)]
    fn add_roots(&self, log: &mut Compensated<T>) -> Result<(), InferError> {
        for root in self.forest.roots() {
            let total = self.radix.sum(self.below.iter(self.forest.range(root)));
            if total.is_zero() {
                return Err(InferError::ZeroProbability);
            }
            self.radix.add_log(total, log);
        }
        Ok(())
    }

    /// All downward messages, parents first, and the marginals; [`climb`](Self::climb) before.
    #[inline(never)]
    fn descend(&mut self) -> Result<(), InferError> {
        self.above.set_ones();
        self.own = 0;
        for &edge in self.forest.order {
            self.enter(edge);
            self.pass_down();
            self.send_down()?;
            self.belief();
            self.own += self.forest.graph.card(self.local.parent);
        }
        self.finish();
        Ok(())
    }

    #[inline(never)]
    fn enter(&mut self, edge: u32) {
        self.local = self.forest.enter(edge);
    }

    /// What the parent of a factor says, in the place of its siblings: what comes from above it, its earlier children, its later
    /// children.
    #[inline(never)]
    fn pass_down(&mut self) {
        let parent = self.forest.range(self.local.parent);
        let own = self.own..self.own + parent.len();
        self.siblings.multiply(&self.radix, own.clone(), &self.above, parent.clone());
        self.above.multiply(&self.radix, parent, &self.up, own);
    }

    /// The beliefs of constants, and the marginals: above a variable all its children have been multiplied in, which is its belief.
    #[inline(never)]
    fn finish(&mut self) {
        let Forest { graph, .. } = self.forest;
        for k in graph.factor_ids().filter(|&k| graph.scope(k).is_empty()) {
            let belief = self.beliefs.get_mut(self.forest.belief_range(k));
            belief.into_iter().flatten().for_each(|b| *b = T::one());
        }
        for v in 0..graph.variables() as u32 {
            self.above.normalise(&self.radix, self.forest.range(VarId(v)));
        }
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
        let mut pass = Pass::new(self);
        pass.lend(memory)?;
        pass.climb()
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
        let mut pass = Pass::new(self);
        pass.lend_outputs(marginals, beliefs)?;
        pass.lend(memory)?;
        let log_z = pass.climb()?;
        pass.descend()?;
        Ok(log_z)
    }
}
