//! Which labels may begin, end and follow each other.

use super::chunks::split;
use std::fmt;

/// A labelling scheme for chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// `B` begins a chunk, `I` continues one of the same type, `O` is outside.
    Bio,
    /// As BIO, and `E` ends a chunk of more than one item, `S` is one of a single item.
    Iobes,
}

/// Labels that a scheme does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemeError {
    label: String,
    scheme: Scheme,
}

impl fmt::Display for SchemeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, letters) = match self.scheme {
            Scheme::Bio => ("BIO", "B-, I- and O"),
            Scheme::Iobes => ("IOBES", "B-, I-, E-, S- and O"),
        };
        write!(f, "the label `{}` is none of {name}'s: {letters}", self.label)
    }
}

impl std::error::Error for SchemeError {}

/// What is not allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Constraints {
    /// Pairs of a label and the next one's.
    pub forbidden: Vec<(u32, u32)>,
    /// Labels that no sequence begins with.
    pub not_first: Vec<u32>,
    /// Labels that no sequence ends with.
    pub not_last: Vec<u32>,
}

impl Constraints {
    /// What makes every labelling valid in a scheme.
    ///
    /// ```
    /// use gibbsite::sequence::scheme::{Constraints, Scheme};
    /// let c = Constraints::of(Scheme::Bio, &["O", "B-A", "I-A"])?;
    /// assert_eq!((c.forbidden, c.not_first, c.not_last), (vec![(0, 2)], vec![2], vec![]));
    /// # Ok::<(), gibbsite::sequence::scheme::SchemeError>(())
    /// ```
    ///
    /// # Errors
    /// If a label is not of the scheme.
    pub fn of(scheme: Scheme, labels: &[&str]) -> Result<Self, SchemeError> {
        let mut parts = Vec::with_capacity(labels.len());
        for &label in labels {
            let known = split(label).filter(|(letter, _)| match scheme {
                Scheme::Bio => matches!(letter, 'B' | 'I' | 'O'),
                Scheme::Iobes => matches!(letter, 'B' | 'I' | 'O' | 'E' | 'S'),
            });
            parts.push(known.ok_or_else(|| SchemeError { label: label.to_owned(), scheme })?);
        }
        // Inside a chunk that must go on; of a type.
        let open_after = |(letter, _): (char, &str)| match scheme {
            Scheme::Bio => false,
            Scheme::Iobes => matches!(letter, 'B' | 'I'),
        };
        let continues = |(letter, _): (char, &str)| matches!(letter, 'I' | 'E');
        let may_go_on = |(letter, _): (char, &str)| matches!(letter, 'B' | 'I');
        let mut constraints = Self::default();
        for (i, &from) in parts.iter().enumerate() {
            if continues(from) {
                constraints.not_first.push(i as u32);
            }
            if open_after(from) {
                constraints.not_last.push(i as u32);
            }
            for (j, &to) in parts.iter().enumerate() {
                let allowed =
                    if continues(to) { may_go_on(from) && from.1 == to.1 } else { !open_after(from) };
                if !allowed {
                    constraints.forbidden.push((i as u32, j as u32));
                }
            }
        }
        Ok(constraints)
    }
}
