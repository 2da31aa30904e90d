//! The pseudolikelihood as a sparse regression: what one parameter adds to which score, for methods that change one parameter at a time.
//!
//! ```text
//! f(θ) = Σ_g -log P_θ(y_g | blanket),   P_θ(x | blanket) ∝ exp Σ_j a_{(g,x),j} θ_j
//! ```
//!
//! over the local conditional regressions `g` of a [`Composite`] that consists of nothing else (Thesis eq. 2.4): a sample and a variable each. Row `(g, x)` of the
//! matrix has the features of label `x` with the labels of the blanket as they were observed. Memory is linear in the data: 12 bytes for each label of each variable, sample and
//! factor that mentions it, times the attributes there.

use super::composite::Composite;
use crate::data::matrix::{Matrix, RowChunk};
use crate::par::Par;
use std::ops::Range;

/// A pseudolikelihood by columns.
#[derive(Clone, Debug)]
pub struct Local {
    /// A row for each label of each regression, a column for each parameter.
    pub(crate) matrix: Matrix<f64>,
    /// The regression of each row.
    pub(crate) group: Vec<u32>,
    /// Where the rows of each regression begin, and of the last one end.
    starts: Vec<u32>,
    /// `Σ` of each parameter's feature at the observed labels.
    pub(crate) observed: Vec<f64>,
}

/// Why a composite likelihood is none of single variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotLocal;

impl std::fmt::Display for NotLocal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Shotgun changes one parameter at a time, which is for pseudolikelihood with all labels known: use --estimator pseudo, or --solver owlqn"
        )
    }
}

impl std::error::Error for NotLocal {}

/// Regressions that are listed at a time.
const BATCH: usize = 4096;

impl Local {
    /// Lists what the parameters of a pseudolikelihood do.
    ///
    /// # Errors
    /// [`NotLocal`] if some component has more than one free variable, as those with missing labels have, or a weight other than 1; or if there are 2³² rows or more.
    pub fn new(composite: &Composite<'_>, par: Par) -> Result<Self, NotLocal> {
        let regressions = composite.regressions().ok_or(NotLocal)?;
        let cards = composite.field().cards();
        let mut starts = Vec::with_capacity(regressions.len() + 1);
        starts.push(0u32);
        let mut group = Vec::new();
        for (g, &(_, v)) in regressions.iter().enumerate() {
            let end = group.len() + cards[v as usize] as usize;
            group.resize(end, g as u32);
            starts.push(u32::try_from(end).map_err(|_| NotLocal)?);
        }
        let parameters = composite.len();
        let lists = par.map(regressions.chunks(BATCH).collect(), |batch: &[(u32, u32)]| {
            let mut chunk = RowChunk::default();
            let mut seen: Vec<(u32, f64)> = Vec::new();
            let mut features: Vec<(u32, f64)> = Vec::new();
            for &(sample, v) in batch {
                for x in 0..cards[v as usize] {
                    features.clear();
                    let observed = composite.features(sample as usize, v, x, &mut features);
                    features.sort_unstable_by_key(|f| f.0);
                    // Tied factors may add to one score several times.
                    features.dedup_by(|next, first| {
                        let same = next.0 == first.0;
                        first.1 += if same { next.1 } else { 0.0 };
                        same
                    });
                    if observed {
                        seen.extend_from_slice(&features);
                    }
                    chunk.column.extend(features.iter().map(|f| f.0));
                    chunk.value.extend(features.iter().map(|f| f.1));
                    chunk.ends.push(chunk.column.len() as u32);
                }
            }
            (chunk, seen)
        });
        let mut observed = vec![0.0; parameters];
        let mut chunks = Vec::with_capacity(lists.len());
        for (chunk, seen) in lists {
            seen.iter().for_each(|&(p, value)| observed[p as usize] += value);
            chunks.push(chunk);
        }
        let matrix = Matrix::spread(parameters, chunks, par);
        Ok(Self { matrix, group, starts, observed })
    }

    /// How many parameters there are.
    pub fn parameters(&self) -> usize {
        self.observed.len()
    }

    /// How many regressions there are.
    pub fn regressions(&self) -> usize {
        self.starts.len() - 1
    }

    /// The rows of a regression.
    pub(crate) fn rows(&self, g: usize) -> Range<usize> {
        self.starts[g] as usize..self.starts[g + 1] as usize
    }
}
