//! Factor tables in log space: product, sum-out, max-out, condition, normalise, all into caller memory.
//!
//! A table maps the configurations of its scope to log-potentials, the last variable of the scope
//! varying fastest (the UAI convention). `-inf` is a legal entry. [`TableView`] borrows, [`TableMut`]
//! is where a result goes, [`Table`] owns a fixed capacity for those who prefer that.

use crate::error::TableError;
use crate::ids::{Label, VarId};
use crate::math::{Real, log_add_exp, log_sum_exp};
use crate::stride::{self, Axis};

/// Most variables that one scope, or one clique of a junction tree, can have.
pub const MAX_SCOPE: usize = 32;

/// Axes that a pattern of this file can have: on bare metal, where it lies on a small stack, 14. Axes of length 1 do not count
/// and neighbours that move alike are one, so only a table of more than 2^14 entries could need more; it is refused as too long.
type Axes = heapless::Vec<Axis, { if cfg!(target_os = "none") { 14 } else { MAX_SCOPE } }>;

/// How many configurations variables of these arities have, or `None` if that overflows.
///
/// ```
/// assert_eq!(gibbsite_core::table::configurations(&[2, 3, 4]), Some(24));
/// assert_eq!(gibbsite_core::table::configurations(&[]), Some(1));
/// ```
pub const fn configurations(cards: &[u32]) -> Option<usize> {
    let mut size = 1usize;
    let mut rest = cards;
    while let [first, tail @ ..] = rest {
        match size.checked_mul(*first as usize) {
            Some(s) => size = s,
            None => return None,
        }
        rest = tail;
    }
    Some(size)
}

fn check(scope: &[VarId], cards: &[u32], len: usize) -> Result<(), TableError> {
    if scope.len() > MAX_SCOPE || scope.len() != cards.len() {
        return Err(TableError::ScopeTooLong);
    }
    for (i, (&v, &card)) in scope.iter().zip(cards).enumerate() {
        if scope.iter().take(i).any(|&u| u == v) {
            return Err(TableError::RepeatedVariable(v));
        }
        if card == 0 {
            return Err(TableError::Arity(v));
        }
    }
    if configurations(cards) == Some(len) { Ok(()) } else { Err(TableError::Length) }
}

/// A borrowed table.
#[derive(Clone, Copy, Debug)]
pub struct TableView<'a, T> {
    scope: &'a [VarId],
    cards: &'a [u32],
    values: &'a [T],
}

impl<'a, T: Real> TableView<'a, T> {
    /// Checks that scope, arities and values fit together.
    pub fn new(scope: &'a [VarId], cards: &'a [u32], values: &'a [T]) -> Result<Self, TableError> {
        check(scope, cards, values.len())?;
        Ok(Self { scope, cards, values })
    }

    /// Variables, the last varies fastest.
    pub fn scope(&self) -> &'a [VarId] {
        self.scope
    }

    /// Arity of each variable of the scope.
    pub fn cards(&self) -> &'a [u32] {
        self.cards
    }

    /// Log-potentials.
    pub fn values(&self) -> &'a [T] {
        self.values
    }

    /// `log Σ_x e^{table(x)}`.
    pub fn log_sum(&self) -> T {
        log_sum_exp(self.values)
    }
}

/// Where the result of an operation goes: a scope with memory for its table.
#[derive(Debug)]
pub struct TableMut<'a, T> {
    scope: &'a [VarId],
    cards: &'a [u32],
    values: &'a mut [T],
}

impl<'a, T: Real> TableMut<'a, T> {
    /// Checks that scope, arities and memory fit together.
    pub fn new(scope: &'a [VarId], cards: &'a [u32], values: &'a mut [T]) -> Result<Self, TableError> {
        check(scope, cards, values.len())?;
        Ok(Self { scope, cards, values })
    }

    /// The table as it is now.
    pub fn view(&self) -> TableView<'_, T> {
        TableView { scope: self.scope, cards: self.cards, values: self.values }
    }
}

/// Every variable of `small` must be in `big`, with the same arity.
#[inline(never)]
fn check_within(big: (&[VarId], &[u32]), small: (&[VarId], &[u32])) -> Result<(), TableError> {
    for (&v, &card) in small.0.iter().zip(small.1) {
        let at = big.0.iter().position(|&u| u == v).ok_or(TableError::MissingVariable(v))?;
        if big.1.get(at) != Some(&card) {
            return Err(TableError::Arity(v));
        }
    }
    Ok(())
}

/// Fills `axes` with the moves of `small`'s offset along each axis of `big`; variables of `small` that `big` lacks are simply held
/// at 0.
#[inline(never)]
fn fill(axes: &mut Axes, big: (&[VarId], &[u32]), small: (&[VarId], &[u32])) -> Result<(), TableError> {
    for (&v, &card) in big.0.iter().zip(big.1) {
        if !stride::push(axes, card, stride_of(small, v).unwrap_or(0)) {
            return Err(TableError::ScopeTooLong);
        }
    }
    Ok(())
}

/// [`stride::spread`] of a table with this scope under `out`. By itself, so that a pattern is on the stack once.
#[inline(never)]
fn spread<T: Real>(
    out: &mut TableMut<'_, T>,
    scope: &[VarId],
    cards: &[u32],
    values: &[T],
    op: impl Fn(&mut T, T) + Copy,
) -> Result<(), TableError> {
    let mut axes = Axes::new();
    fill(&mut axes, (out.scope, out.cards), (scope, cards))?;
    stride::spread(&axes, out.values, values, op);
    Ok(())
}

fn stride_of(table: (&[VarId], &[u32]), v: VarId) -> Option<u32> {
    let at = table.0.iter().position(|&u| u == v)?;
    Some(table.1.iter().skip(at + 1).product())
}

/// `out(x) = a(x) + b(x)`: the product of two factors in log space. `out`'s scope must contain both
/// others, in any order; further variables of `out` are broadcast over.
///
/// ```
/// use gibbsite_core::{ids::VarId, table::{product, TableMut, TableView}};
/// let (x, y) = (VarId(0), VarId(1));
/// let (sx, sy, sxy) = ([x], [y], [x, y]);
/// let a = TableView::new(&sx, &[2], &[1.0, 2.0])?;
/// let b = TableView::new(&sy, &[2], &[10.0, 20.0])?;
/// let mut memory = [0.0; 4];
/// product(&a, &b, &mut TableMut::new(&sxy, &[2, 2], &mut memory)?)?;
/// assert_eq!(memory, [11.0, 21.0, 12.0, 22.0]);
/// # Ok::<(), gibbsite_core::error::TableError>(())
/// ```
pub fn product<T: Real>(
    a: &TableView<'_, T>,
    b: &TableView<'_, T>,
    out: &mut TableMut<'_, T>,
) -> Result<(), TableError> {
    for table in [a, b] {
        check_within((out.scope, out.cards), (table.scope, table.cards))?;
    }
    spread(out, a.scope, a.cards, a.values, |o, a| *o = a)?;
    spread(out, b.scope, b.cards, b.values, |o, b| *o += b)
}

/// `out(s) = log Σ_r e^{a(s, r)}`: sums out every variable that `out` lacks. `out`'s scope must be
/// contained in `a`'s, in any order.
///
/// ```
/// use gibbsite_core::{ids::VarId, table::{sum_out, TableMut, TableView}};
/// let (sxy, sy) = ([VarId(0), VarId(1)], [VarId(1)]);
/// let a = TableView::new(&sxy, &[2, 2], &[0.0, f64::NEG_INFINITY, 0.0, 5.0])?;
/// let mut memory = [0.0; 2];
/// sum_out(&a, &mut TableMut::new(&sy, &[2], &mut memory)?)?;
/// assert!((memory[0] - 2f64.ln()).abs() < 1e-15 && memory[1] == 5.0);
/// # Ok::<(), gibbsite_core::error::TableError>(())
/// ```
pub fn sum_out<T: Real>(a: &TableView<'_, T>, out: &mut TableMut<'_, T>) -> Result<(), TableError> {
    fold_out(a, out, log_add_exp)
}

/// `out(s) = max_r a(s, r)`: maximises over every variable that `out` lacks.
///
/// ```
/// use gibbsite_core::{ids::VarId, table::{max_out, TableMut, TableView}};
/// let (sxy, sx) = ([VarId(0), VarId(1)], [VarId(0)]);
/// let a = TableView::new(&sxy, &[2, 2], &[0.0, 3.0, 7.0, 5.0])?;
/// let mut memory = [0.0; 2];
/// max_out(&a, &mut TableMut::new(&sx, &[2], &mut memory)?)?;
/// assert_eq!(memory, [3.0, 7.0]);
/// # Ok::<(), gibbsite_core::error::TableError>(())
/// ```
pub fn max_out<T: Real>(a: &TableView<'_, T>, out: &mut TableMut<'_, T>) -> Result<(), TableError> {
    fold_out(a, out, T::larger)
}

#[inline(never)]
fn fold_out<T: Real>(
    a: &TableView<'_, T>,
    out: &mut TableMut<'_, T>,
    plus: impl Fn(T, T) -> T + Copy,
) -> Result<(), TableError> {
    check_within((a.scope, a.cards), (out.scope, out.cards))?;
    let mut axes = Axes::new();
    fill(&mut axes, (a.scope, a.cards), (out.scope, out.cards))?;
    out.values.fill(T::NEG_INFINITY);
    stride::fold(&axes, a.values, out.values, plus);
    Ok(())
}

/// `out(s) = a(s, observed)`: fixes the observed variables of `a`. `out`'s scope must be `a`'s without
/// them, in any order; observations of variables that `a` lacks are ignored, contradictory ones an error.
///
/// ```
/// use gibbsite_core::{ids::{Label, VarId}, table::{condition, TableMut, TableView}};
/// let (sxy, sx) = ([VarId(0), VarId(1)], [VarId(0)]);
/// let a = TableView::new(&sxy, &[2, 2], &[0.0, 3.0, 7.0, 5.0])?;
/// let mut memory = [0.0; 2];
/// condition(&a, &[(VarId(1), Label(1))], &mut TableMut::new(&sx, &[2], &mut memory)?)?;
/// assert_eq!(memory, [3.0, 5.0]);
/// # Ok::<(), gibbsite_core::error::TableError>(())
/// ```
pub fn condition<T: Real>(
    a: &TableView<'_, T>,
    observed: &[(VarId, Label)],
    out: &mut TableMut<'_, T>,
) -> Result<(), TableError> {
    for (i, (v, label)) in observed.iter().enumerate() {
        if observed.iter().take(i).any(|(u, other)| u == v && other != label) {
            return Err(TableError::Label(*v));
        }
    }
    let seen = |v: VarId| observed.iter().find(|(u, _)| *u == v).map(|&(_, label)| label);
    let mut base = 0usize;
    for (&v, &card) in a.scope.iter().zip(a.cards) {
        match (seen(v), out.scope.iter().position(|&u| u == v)) {
            (Some(label), None) if label.0 < card => {
                base += label.index() * stride_of((a.scope, a.cards), v).map_or(0, |s| s as usize);
            }
            (Some(_), _) => return Err(TableError::Label(v)),
            (None, Some(at)) if out.cards.get(at) == Some(&card) => {}
            (None, Some(_)) => return Err(TableError::Arity(v)),
            (None, None) => return Err(TableError::MissingVariable(v)),
        }
    }
    if let Some(&v) = out.scope.iter().find(|&v| !a.scope.contains(v)) {
        return Err(TableError::MissingVariable(v));
    }
    let from = a.values.get(base..).ok_or(TableError::Length)?;
    spread(out, a.scope, a.cards, from, |o, a| *o = a)
}

/// Subtracts `log Σ e^x` from each entry, so that the table is a distribution, and returns it. A table
/// that is `-inf` everywhere is left as it was and `-inf` returned.
///
/// ```
/// let mut x = [0.0f64, 0.0];
/// assert!((gibbsite_core::table::normalise(&mut x) - 2f64.ln()).abs() < 1e-15);
/// assert!((x[0] - 0.5f64.ln()).abs() < 1e-15);
/// ```
pub fn normalise<T: Real>(values: &mut [T]) -> T {
    let log_z = log_sum_exp(values);
    if log_z != T::NEG_INFINITY {
        for v in values {
            *v -= log_z;
        }
    }
    log_z
}

/// A table that owns its memory: at most `S` variables and `N` entries, on the stack or in a `static`.
///
/// ```
/// use gibbsite_core::{ids::VarId, table::Table};
/// let mut t = Table::<f32, 2, 8>::new(&[VarId(0), VarId(4)], &[2, 3])?;
/// t.values_mut()[5] = 1.5;
/// let best = t.max_out(&[VarId(4)])?;
/// assert_eq!(best.values(), &[0.0, 0.0, 1.5]);
/// # Ok::<(), gibbsite_core::error::TableError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Table<T, const S: usize, const N: usize> {
    scope: heapless::Vec<VarId, S>,
    cards: heapless::Vec<u32, S>,
    values: heapless::Vec<T, N>,
}

impl<T: Real, const S: usize, const N: usize> Table<T, S, N> {
    /// A table of zeros (log-potential 0: indifferent).
    pub fn new(scope: &[VarId], cards: &[u32]) -> Result<Self, TableError> {
        let len = configurations(cards).ok_or(TableError::Length)?;
        check(scope, cards, len)?;
        let mut values = heapless::Vec::new();
        values.resize(len, T::zero()).map_err(|_| TableError::Length)?;
        Ok(Self {
            scope: heapless::Vec::from_slice(scope).map_err(|_| TableError::ScopeTooLong)?,
            cards: heapless::Vec::from_slice(cards).map_err(|_| TableError::ScopeTooLong)?,
            values,
        })
    }

    /// The table as a view.
    pub fn view(&self) -> TableView<'_, T> {
        TableView { scope: &self.scope, cards: &self.cards, values: &self.values }
    }

    /// The table as the target of an operation.
    pub fn target(&mut self) -> TableMut<'_, T> {
        TableMut { scope: &self.scope, cards: &self.cards, values: &mut self.values }
    }

    /// Log-potentials.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Log-potentials, to write.
    pub fn values_mut(&mut self) -> &mut [T] {
        &mut self.values
    }

    /// Product with another table, over the union of the scopes.
    pub fn product<const S2: usize, const N2: usize>(
        &self,
        other: &Table<T, S2, N2>,
    ) -> Result<Self, TableError> {
        let (mut scope, mut cards) = (self.scope.clone(), self.cards.clone());
        for (&v, &card) in other.scope.iter().zip(&other.cards) {
            if !scope.contains(&v) {
                scope.push(v).map_err(|_| TableError::ScopeTooLong)?;
                cards.push(card).map_err(|_| TableError::ScopeTooLong)?;
            }
        }
        let mut out = Self::new(&scope, &cards)?;
        product(&self.view(), &other.view(), &mut out.target())?;
        Ok(out)
    }

    /// Sums out all variables but these.
    pub fn sum_out(&self, keep: &[VarId]) -> Result<Self, TableError> {
        let mut out = self.keeping(keep)?;
        sum_out(&self.view(), &mut out.target())?;
        Ok(out)
    }

    /// Maximises over all variables but these.
    pub fn max_out(&self, keep: &[VarId]) -> Result<Self, TableError> {
        let mut out = self.keeping(keep)?;
        max_out(&self.view(), &mut out.target())?;
        Ok(out)
    }

    fn keeping(&self, keep: &[VarId]) -> Result<Self, TableError> {
        let mut cards = heapless::Vec::<u32, S>::new();
        for &v in keep {
            let at = self.scope.iter().position(|&u| u == v).ok_or(TableError::MissingVariable(v))?;
            let card = self.cards.get(at).copied().ok_or(TableError::MissingVariable(v))?;
            cards.push(card).map_err(|_| TableError::ScopeTooLong)?;
        }
        Self::new(keep, &cards)
    }
}
