//! Writing models, evidence and results.

use super::ModelKind;
use crate::data::network::{Evidence, Network};
use gibbsite_core::math::Real;
use std::fmt;
use std::io::{self, Error, ErrorKind, Write};

/// Writes a model such that [`read_model`](super::read_model) gives it back: the same scopes in the same
/// order, each potential to the last digit or the one before.
///
/// ```
/// use gibbsite::data::{network::Network, uai};
/// let mut network = Network::with_cards([2])?;
/// network.push_factor(&[0], [0.0, f64::NEG_INFINITY])?;
/// let mut text = Vec::new();
/// uai::write_model(&mut text, uai::ModelKind::Markov, &network)?;
/// assert_eq!(text, b"MARKOV\n1\n2\n1\n1 0\n\n2\n1 0\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Those of `out`; and [`ErrorKind::InvalidData`] for what the format cannot say and a reader would get
/// wrong: a finite log-potential whose exponential is no normal `f64` (beyond about ±708), a table that is
/// zero everywhere.
pub fn write_model(out: &mut impl Write, kind: ModelKind, network: &Network) -> io::Result<()> {
    let factors = network.factors();
    writeln!(out, "{kind}\n{}\n{}\n{factors}", network.variables(), Spaced(network.cards()))?;
    for k in 0..factors {
        let scope = network.scope(k);
        match scope {
            [] => writeln!(out, "0")?,
            _ => writeln!(out, "{} {}", scope.len(), Spaced(scope))?,
        }
    }
    let mut row = Vec::new();
    for k in 0..factors {
        let table = network.table(k);
        writeln!(out, "\n{}", table.len())?;
        if table.iter().all(|&v| v == f64::NEG_INFINITY) {
            return Err(invalid(format!("every entry of factor {k} is zero, which UAI readers refuse")));
        }
        let width = network.scope(k).last().and_then(|&v| network.cards().get(v as usize));
        for values in table.chunks(width.map_or(1, |&w| w as usize).max(1)) {
            row.clear();
            for &value in values {
                row.push(Number(potential(value).ok_or_else(|| {
                    invalid(format!("e^{value} of factor {k} is not within the range of UAI's potentials"))
                })?));
            }
            writeln!(out, "{}", Spaced(&row))?;
        }
    }
    Ok(())
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::InvalidData, message)
}

/// `e^value`, if no digits are lost.
fn potential(value: f64) -> Option<f64> {
    let weight = Real::exp(value);
    (weight.is_normal() || value == f64::NEG_INFINITY).then_some(weight)
}

/// Writes evidence in the 1-line form.
///
/// # Errors
/// Those of `out`.
pub fn write_evidence(out: &mut impl Write, evidence: &Evidence) -> io::Result<()> {
    write!(out, "{}", evidence.len())?;
    for (variable, label) in evidence.pairs() {
        write!(out, " {variable} {label}")?;
    }
    writeln!(out)
}

/// Writes the result of a PR query: log10 of the partition function, from its natural logarithm.
///
/// ```
/// let mut text = Vec::new();
/// gibbsite::data::uai::write_pr(&mut text, 100f64.ln())?;
/// assert_eq!(text, b"PR\n2\n");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// Those of `out`.
pub fn write_pr(out: &mut impl Write, log_z: f64) -> io::Result<()> {
    writeln!(out, "PR\n{}", Number(log_z / std::f64::consts::LN_10))
}

/// Writes the result of a MAR query: each variable's arity and its probabilities, on one line.
/// `marginals` lies flat, the variables one after the other.
///
/// ```
/// let mut text = Vec::new();
/// gibbsite::data::uai::write_mar(&mut text, &[2, 1], &[0.25, 0.75, 1.0])?;
/// assert_eq!(text, b"MAR\n2 2 0.25 0.75 1 1\n");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// Those of `out`; [`ErrorKind::InvalidInput`] if there are not as many marginals as the arities say.
pub fn write_mar(out: &mut impl Write, cards: &[u32], marginals: &[f64]) -> io::Result<()> {
    let wanted: usize = cards.iter().map(|&c| c as usize).sum();
    if wanted != marginals.len() {
        let message = format!("{} marginals for variables with {wanted} labels", marginals.len());
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    write!(out, "MAR\n{}", cards.len())?;
    let mut rest = marginals.iter();
    for &card in cards {
        write!(out, " {card}")?;
        for &p in rest.by_ref().take(card as usize) {
            write!(out, " {}", Number(p))?;
        }
    }
    writeln!(out)
}

/// Writes the result of a MAP query: the label of each variable, on one line.
///
/// ```
/// let mut text = Vec::new();
/// gibbsite::data::uai::write_map(&mut text, &[0, 2, 1])?;
/// assert_eq!(text, b"MAP\n3 0 2 1\n");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// Those of `out`.
pub fn write_map(out: &mut impl Write, labels: &[u32]) -> io::Result<()> {
    write!(out, "MAP\n{}", labels.len())?;
    for label in labels {
        write!(out, " {label}")?;
    }
    writeln!(out)
}

struct Spaced<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for Spaced<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, item) in self.0.iter().enumerate() {
            let gap = if i == 0 { "" } else { " " };
            write!(f, "{gap}{item}")?;
        }
        Ok(())
    }
}

/// The shortest text that reads back as the same number: `1`, `0.25`, `1e-300`.
struct Number(f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Display never writes an exponent and Debug always a point.
        if self.0.trunc() == self.0 && self.0.abs() < 1e15 {
            write!(f, "{}", self.0)
        } else {
            write!(f, "{:?}", self.0)
        }
    }
}
