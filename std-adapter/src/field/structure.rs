//! Which variables are joined by an edge.

use std::fmt;
use std::str::FromStr;

/// The edges of a pairwise field (Thesis Fig. 2.1: chain, star, grid).
///
/// ```
/// use gibbsite::field::Structure;
/// let grid: Structure = "grid:2x2".parse()?;
/// assert_eq!(grid.edges(4)?, [[0, 1], [2, 3], [0, 2], [1, 3]]);
/// assert_eq!("star".parse::<Structure>()?.edges(3)?, [[0, 1], [0, 2]]);
/// assert!(grid.edges(5).is_err());
/// # Ok::<(), gibbsite::field::StructureError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Structure {
    /// No edges: each variable by itself.
    Independent,
    /// Each variable and the next.
    Chain,
    /// The first variable and each other.
    Star,
    /// Rows of a grid, one after the other: first all horizontal edges, then all vertical ones.
    Grid {
        /// How many rows.
        rows: u32,
        /// How many variables a row has.
        columns: u32,
    },
    /// All pairs.
    Full,
    /// These.
    Edges(Vec<[u32; 2]>),
}

/// A structure that is not one, or not for so many variables.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StructureError {
    /// The text is not a structure.
    Unknown(String),
    /// The grid has another number of places than there are variables.
    Grid {
        /// Rows.
        rows: u32,
        /// Columns.
        columns: u32,
        /// How many variables there are.
        variables: usize,
    },
    /// An edge with a variable that does not exist.
    NoSuchVariable {
        /// The variable.
        variable: u32,
        /// How many variables there are.
        variables: usize,
    },
    /// An edge from a variable to itself.
    Loop {
        /// The variable.
        variable: u32,
    },
    /// The same two variables are joined twice.
    Repeated {
        /// The edge.
        edge: [u32; 2],
    },
}

impl fmt::Display for StructureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(text) => write!(
                f,
                "unknown structure '{text}'; known are independent, chain, star, full and grid:ROWSxCOLUMNS"
            ),
            Self::Grid { rows, columns, variables } => {
                write!(f, "a grid of {rows}x{columns} does not have {variables} variables")
            }
            Self::NoSuchVariable { variable, variables } => {
                write!(f, "an edge names variable {variable}, but there are {variables} variables (from 0)")
            }
            Self::Loop { variable } => write!(f, "an edge joins variable {variable} to itself"),
            Self::Repeated { edge: [a, b] } => write!(f, "the edge between {a} and {b} is there twice"),
        }
    }
}

impl std::error::Error for StructureError {}

impl FromStr for Structure {
    type Err = StructureError;

    fn from_str(text: &str) -> Result<Self, StructureError> {
        let grid = || {
            let (rows, columns) = text.strip_prefix("grid:")?.split_once('x')?;
            Some(Self::Grid { rows: rows.parse().ok()?, columns: columns.parse().ok()? })
        };
        match text {
            "independent" => Ok(Self::Independent),
            "chain" => Ok(Self::Chain),
            "star" => Ok(Self::Star),
            "full" => Ok(Self::Full),
            _ => grid().ok_or_else(|| StructureError::Unknown(text.to_owned())),
        }
    }
}

impl Structure {
    /// The edges for so many variables.
    ///
    /// # Errors
    /// A [`StructureError`].
    pub fn edges(&self, variables: usize) -> Result<Vec<[u32; 2]>, StructureError> {
        let n = variables as u32;
        Ok(match *self {
            Self::Independent => vec![],
            Self::Chain => (1..n).map(|v| [v - 1, v]).collect(),
            Self::Star => (1..n).map(|v| [0, v]).collect(),
            Self::Full => (0..n).flat_map(|u| (u + 1..n).map(move |v| [u, v])).collect(),
            Self::Grid { rows, columns } => {
                if u64::from(rows) * u64::from(columns) != variables as u64 {
                    return Err(StructureError::Grid { rows, columns, variables });
                }
                let across = (0..n).filter(|v| v % columns + 1 < columns).map(|v| [v, v + 1]);
                let down = (columns..n).map(|v| [v - columns, v]);
                across.chain(down).collect()
            }
            Self::Edges(ref edges) => {
                check(edges, variables)?;
                edges.clone()
            }
        })
    }
}

fn check(edges: &[[u32; 2]], variables: usize) -> Result<(), StructureError> {
    let mut sorted = Vec::with_capacity(edges.len());
    for &[a, b] in edges {
        if let Some(&variable) = [a, b].iter().find(|&&v| v as usize >= variables) {
            return Err(StructureError::NoSuchVariable { variable, variables });
        }
        if a == b {
            return Err(StructureError::Loop { variable: a });
        }
        sorted.push([a.min(b), a.max(b)]);
    }
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(StructureError::Repeated { edge: pair[0] }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_of_each_structure() {
        assert_eq!(Structure::Chain.edges(0).unwrap().len(), 0);
        assert_eq!(Structure::Full.edges(4).unwrap().len(), 6);
        assert_eq!(Structure::Grid { rows: 3, columns: 4 }.edges(12).unwrap().len(), 3 * 3 + 2 * 4);
        assert_eq!(Structure::Grid { rows: 0, columns: 4 }.edges(0).unwrap().len(), 0);
        let bad = |edges: &[[u32; 2]]| Structure::Edges(edges.to_vec()).edges(3).unwrap_err();
        assert_eq!(bad(&[[0, 3]]), StructureError::NoSuchVariable { variable: 3, variables: 3 });
        assert_eq!(bad(&[[1, 1]]), StructureError::Loop { variable: 1 });
        assert_eq!(bad(&[[1, 0], [0, 1]]), StructureError::Repeated { edge: [0, 1] });
        for text in ["", "grid", "grid:2", "grid:2x", "grid:-1x2", "Chain"] {
            assert!(text.parse::<Structure>().is_err(), "{text}");
        }
    }
}
