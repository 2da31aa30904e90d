//! One column of a design matrix, and the passes over it that every coordinate update is made of.
//!
//! Entries may be stored in a smaller type than the sums are made in: `f32` columns with `f64` vectors halve the memory
//! traffic, which is what limits coordinate descent (Thesis 4.5.3, "the memory wall").

use crate::math::Real;

/// A column, as all its rows or as those that are not zero.
///
/// Vectors that it meets should have an entry for each row; where they are shorter, the column ends there.
///
/// ```
/// use gibbsite_core::column::Column;
/// let column = Column::Sparse { rows: &[0, 2], values: &[2.0f32, -1.0] };
/// let mut z = [1.0f64, 1.0, 1.0];
/// assert_eq!(column.dot(&z), 1.0);
/// column.add_to(0.5, &mut z);
/// assert_eq!(z, [2.0, 1.0, 0.5]);
/// assert_eq!(column.norm2::<f64>(), 5.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Column<'a, V> {
    /// An entry for each row.
    Dense(&'a [V]),
    /// Entries at some rows, each row at most once.
    Sparse {
        /// Where they are.
        rows: &'a [u32],
        /// What they are, in the same order.
        values: &'a [V],
    },
}

/// The same value in another scalar type; nothing at all if the types are the same.
#[inline(always)]
fn cast<V: Real, T: Real>(value: V) -> T {
    T::from_f64(value.to_f64())
}

impl<'a, V: Real> Column<'a, V> {
    /// Stored entries.
    pub fn len(&self) -> usize {
        match self {
            Self::Dense(values) | Self::Sparse { values, .. } => values.len(),
        }
    }

    /// Whether nothing is stored: a zero column.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `Σ a_i u_i`, in four partial sums that are joined in a fixed order.
    #[inline(always)]
    pub fn dot<T: Real>(&self, u: &[T]) -> T {
        self.fold(u, |a, &u| a * u)
    }

    /// `Σ a_i² w_i`.
    #[inline(always)]
    pub fn weighted_norm2<T: Real>(&self, w: &[T]) -> T {
        self.fold(w, |a, &w| a * a * w)
    }

    /// `Σ term(a_i, u_i)` over stored entries.
    #[inline(always)]
    pub fn fold<T: Real, U>(&self, u: &[U], term: impl Fn(T, &U) -> T) -> T {
        let zero = T::zero();
        let mut sums = [zero; 4];
        match *self {
            Self::Dense(values) => {
                let (av, uv) = (values.chunks_exact(4), u.chunks_exact(4));
                let (rest_a, rest_u) = (av.remainder(), uv.remainder());
                // Chunk counts differ only if the vector is shorter than the column.
                for (a, u) in av.zip(uv) {
                    for ((sum, &a), u) in sums.iter_mut().zip(a).zip(u) {
                        *sum += term(cast(a), u);
                    }
                }
                let [sum, ..] = &mut sums;
                for (&a, u) in rest_a.iter().zip(rest_u) {
                    *sum += term(cast(a), u);
                }
            }
            Self::Sparse { rows, values } => {
                let (rv, av) = (rows.chunks_exact(4), values.chunks_exact(4));
                let (rest_r, rest_a) = (rv.remainder(), av.remainder());
                for (r, a) in rv.zip(av) {
                    for ((sum, &r), &a) in sums.iter_mut().zip(r).zip(a) {
                        if let Some(u) = u.get(r as usize) {
                            *sum += term(cast(a), u);
                        }
                    }
                }
                let [sum, ..] = &mut sums;
                for (&r, &a) in rest_r.iter().zip(rest_a) {
                    if let Some(u) = u.get(r as usize) {
                        *sum += term(cast(a), u);
                    }
                }
            }
        }
        let [a, b, c, d] = sums;
        (a + b) + (c + d)
    }

    /// `z += by · a`.
    #[inline(always)]
    pub fn add_to<T: Real>(&self, by: T, z: &mut [T]) {
        self.update(z, |z, a: T| *z += by * a);
    }

    /// Applies `change(z_i, a_i)` at each stored entry.
    #[inline(always)]
    pub fn update<T: Real, Z>(&self, z: &mut [Z], mut change: impl FnMut(&mut Z, T)) {
        match *self {
            Self::Dense(values) => {
                for (z, &a) in z.iter_mut().zip(values) {
                    change(z, cast(a));
                }
            }
            Self::Sparse { rows, values } => {
                for (&row, &a) in rows.iter().zip(values) {
                    if let Some(z) = z.get_mut(row as usize) {
                        change(z, cast(a));
                    }
                }
            }
        }
    }

    /// `Σ a_i²`.
    pub fn norm2<T: Real>(&self) -> T {
        self.entries(|a: T| a * a)
    }

    /// `Σ a_i`.
    pub fn sum<T: Real>(&self) -> T {
        self.entries(|a: T| a)
    }

    /// `Σ term(a_i)` over stored entries, in four partial sums.
    #[inline(always)]
    fn entries<T: Real>(&self, term: impl Fn(T) -> T) -> T {
        let (Self::Dense(values) | Self::Sparse { values, .. }) = *self;
        let mut sums = [T::zero(); 4];
        let chunks = values.chunks_exact(4);
        let rest = chunks.remainder();
        for chunk in chunks {
            for (sum, &a) in sums.iter_mut().zip(chunk) {
                *sum += term(cast(a));
            }
        }
        let [sum, ..] = &mut sums;
        for &a in rest {
            *sum += term(cast(a));
        }
        let [a, b, c, d] = sums;
        (a + b) + (c + d)
    }

    /// The largest `|a_i|`; 0 for an empty column.
    pub fn largest<T: Real>(&self) -> T {
        let (Self::Dense(values) | Self::Sparse { values, .. }) = *self;
        cast(values.iter().fold(V::zero(), |most, a| most.larger(a.abs())))
    }

    /// Row and value of each stored entry.
    pub fn iter<T: Real>(self) -> impl Iterator<Item = (usize, T)> + use<'a, T, V> {
        let (rows, values): (&'a [u32], &'a [V]) = match self {
            Self::Dense(values) => (&[], values),
            Self::Sparse { rows, values } => (rows, values),
        };
        let dense = matches!(self, Self::Dense(_));
        values.iter().enumerate().map_while(move |(k, &a)| {
            let row = if dense { k } else { *rows.get(k)? as usize };
            Some((row, cast(a)))
        })
    }
}
