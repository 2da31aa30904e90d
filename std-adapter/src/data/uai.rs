//! UAI files: models (MARKOV and BAYES), evidence and results (PR, MAR, MAP).
//!
//! Files are tokens between white space of any kind: line breaks carry no meaning. Beyond the written
//! format the readers take what is found in the wild: a byte-order mark, CRLF, tabs and form feeds,
//! comments from `#` or `//` to the end of the line, the preamble in any case, numbers as `1e-05`,
//! `1.E+3`, `.5`, `+3`.
//!
//! A model is
//! ```text
//! MARKOV                    # or BAYES: the same layout, the child is the last variable of its table
//! 3                         # variables
//! 2 2 3                     # their arities
//! 2                         # factors
//! 2 0 1                     # for each: how many variables, and which (counted from 0)
//! 2 2 1
//! 4  1.0 0.5 0.5 1.0        # for each: how many entries, and those, all >= 0;
//! 6  0.1 0.2 0.3 0.4 0.5 1  # the LAST variable of the scope as listed varies fastest
//! ```
//! Every scope is kept in the order of the file. A number too small for an `f64` (`1e-400`) is a zero; one
//! too large is an error, as are negative ones, `inf` and `nan`. The tables of a BAYES model need not be
//! normalised: it is read as a Markov network.
//!
//! Memory follows the size of the file, whatever its counts announce, and no input panics.

mod error;
mod token;
mod write;

pub use error::{UaiError, UaiErrorKind, Wanted};
pub use write::{write_evidence, write_map, write_mar, write_model, write_pr};

use crate::data::network::{Evidence, Network};
use gibbsite_core::math::Real;
use gibbsite_core::table::MAX_SCOPE;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use token::{Token, Tokens};

/// Most variables, factors or labels that can be counted.
const MOST: u64 = u32::MAX as u64 - 1;

/// What a model file says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelKind {
    /// A Markov network: any potentials.
    Markov,
    /// A Bayesian network: conditional probabilities.
    Bayes,
}

impl fmt::Display for ModelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Markov => "MARKOV",
            Self::Bayes => "BAYES",
        })
    }
}

/// A model as read.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// What the file says it is.
    pub kind: ModelKind,
    /// Its variables and factors, in the order of the file; the tables hold logarithms.
    pub network: Network,
}

/// Reads a model.
///
/// ```
/// use gibbsite::data::uai::read_model;
/// let model = read_model(b"MARKOV 2  2 3  1  2 1 0  6  1 2 3 4 5 6")?;
/// // The scope is (1, 0): variable 0 varies fastest.
/// assert_eq!(model.network.log_potential(&[1, 2]), Some(6f64.ln()));
/// assert_eq!(model.network.log_potential(&[1, 0]), Some(2f64.ln()));
///
/// let error = read_model(b"MARKOV\n2\n2 2\n1\n2 0 2\n").unwrap_err();
/// let message = "line 5, token 3: factor 0 names variable 2, but the model has variables 0 to 1";
/// assert_eq!(error.to_string(), message);
/// # Ok::<(), gibbsite::data::uai::UaiError>(())
/// ```
///
/// # Errors
/// A [`UaiError`] with the place of the first fault.
pub fn read_model(text: &[u8]) -> Result<Model, UaiError> {
    let mut tokens = Tokens::new(text);
    let word = tokens.need(Wanted::Preamble)?;
    let kind = if word.bytes.eq_ignore_ascii_case(b"MARKOV") {
        ModelKind::Markov
    } else if word.bytes.eq_ignore_ascii_case(b"BAYES") {
        ModelKind::Bayes
    } else {
        let kind = UaiErrorKind::Word { wanted: Wanted::Preamble, found: word.text() };
        return Err(tokens.fault(word, kind));
    };

    let (at, variables) = tokens.whole(Wanted::VariableCount, MOST)?;
    let variables = variables as usize;
    let mut cards = Vec::with_capacity(variables.min(tokens.room()));
    for v in 0..variables {
        let (token, card) = tokens.whole(Wanted::Arity(v), MOST)?;
        if card == 0 {
            return Err(tokens.fault(token, UaiErrorKind::ArityZero(v)));
        }
        cards.push(card as u32);
    }
    let too_large = |factor| UaiErrorKind::TableTooLarge(factor);
    let mut network = Network::with_cards(cards).map_err(|_| tokens.fault(at, too_large(0)))?;

    let scopes = Scopes::read(&mut tokens, network.cards())?;
    let room = tokens.room();
    network.reserve(scopes.sizes.len(), scopes.variables.len(), scopes.entries.min(room));
    let mut table = Vec::new();
    let mut rest = scopes.variables.as_slice();
    for (factor, &(length, entries)) in scopes.sizes.iter().enumerate() {
        let (scope, others) = rest.split_at_checked(length as usize).unwrap_or((rest, &[]));
        rest = others;
        let at = read_table(&mut tokens, factor, entries, &mut table)?;
        // Scope and values were checked above; what is left is a sum of sizes beyond 32 bits.
        network.push_factor(scope, table.drain(..)).map_err(|_| tokens.fault(at, too_large(factor)))?;
    }
    tokens.finish("the last table")?;
    Ok(Model { kind, network })
}

/// The scopes of a model's factors.
struct Scopes {
    /// All scopes, one after the other.
    variables: Vec<u32>,
    /// Of each factor: the length of its scope and its number of configurations, if 32 bits count it.
    sizes: Vec<(u32, Option<u32>)>,
    /// Sum of the numbers of configurations.
    entries: usize,
}

impl Scopes {
    fn read(tokens: &mut Tokens<'_>, cards: &[u32]) -> Result<Self, UaiError> {
        let (_, factors) = tokens.whole(Wanted::FactorCount, MOST)?;
        let factors = factors as usize;
        let mut variables: Vec<u32> = Vec::new();
        let mut sizes = Vec::with_capacity(factors.min(tokens.room()));
        let mut entries = 0usize;
        for factor in 0..factors {
            let (_, length) = tokens.whole(Wanted::ScopeLength(factor), MAX_SCOPE as u64)?;
            let before = variables.len();
            let mut size = Some(1u32);
            for _ in 0..length {
                let token = tokens.need(Wanted::ScopeVariable(factor))?;
                let (v, card) = match (token.integer(), find(&token, cards)) {
                    (_, Some(found)) => found,
                    (number, None) => {
                        let found = token.text();
                        let kind = match number {
                            Some(_) => UaiErrorKind::NoSuchVariable { factor, found, variables: cards.len() },
                            None => UaiErrorKind::Whole { wanted: Wanted::ScopeVariable(factor), found },
                        };
                        return Err(tokens.fault(token, kind));
                    }
                };
                if variables.iter().skip(before).any(|&u| u == v) {
                    return Err(tokens.fault(token, UaiErrorKind::RepeatedVariable { factor, variable: v }));
                }
                variables.push(v);
                size = size.and_then(|s| s.checked_mul(card));
            }
            entries = entries.saturating_add(size.map_or(usize::MAX, |s| s as usize));
            sizes.push((length as u32, size));
        }
        Ok(Self { variables, sizes, entries })
    }
}

/// The variable that a token names, and its arity.
#[inline]
fn find(token: &Token<'_>, cards: &[u32]) -> Option<(u32, u32)> {
    let v = u32::try_from(token.integer()?).ok()?;
    Some((v, *cards.get(v as usize)?))
}

/// Reads a table's count and entries into `table` as logarithms; gives the count's place.
fn read_table<'a>(
    tokens: &mut Tokens<'a>,
    factor: usize,
    entries: Option<u32>,
    table: &mut Vec<f64>,
) -> Result<Token<'a>, UaiError> {
    let (at, count) = tokens.whole(Wanted::EntryCount(factor), i64::MAX as u64)?;
    let Some(expected) = entries else {
        return Err(tokens.fault(at, UaiErrorKind::TableTooLarge(factor)));
    };
    let entries = expected as usize;
    if count != u64::from(expected) {
        let found = at.text();
        return Err(tokens.fault(at, UaiErrorKind::EntryCount { factor, found, expected: entries }));
    }
    table.clear();
    table.reserve(entries.min(tokens.room()));
    let mut possible = false;
    for i in 0..entries {
        let weight = tokens.weight(Wanted::Entry { factor, entry: i + 1, entries })?;
        possible |= weight > 0.0;
        table.push(Real::ln(weight));
    }
    if possible { Ok(at) } else { Err(tokens.fault(at, UaiErrorKind::AllZero(factor))) }
}

/// Reads evidence on a model whose variables have these arities.
///
/// Two forms are in use: `k v1 x1 … vk xk`, and the same after a first number that counts samples. The
/// number of tokens tells them apart: if there are `1 + 2k` for the first number `k`, it is the 1-line
/// form. That has an odd number of tokens, and one counted sample an even one, so they are never
/// confused; should a file of *several* counted samples also fit the 1-line form, as `2 0 1 5 1` does, it
/// is read as the latter. Files with another number of samples than one are refused. No tokens at all, or a
/// single `0`, mean no evidence. A pair may be repeated, but not with another label.
///
/// ```
/// use gibbsite::data::uai::read_evidence;
/// let cards = [2, 3, 2];
/// assert_eq!(read_evidence(b"2 0 1 1 2", &cards)?.pairs(), &[(0, 1), (1, 2)]);
/// assert_eq!(read_evidence(b"1\n2 0 1 1 2\n", &cards)?.pairs(), &[(0, 1), (1, 2)]);
/// assert!(read_evidence(b"", &cards)?.is_empty());
/// # Ok::<(), gibbsite::data::uai::UaiError>(())
/// ```
///
/// # Errors
/// A [`UaiError`] with the place of the first fault.
pub fn read_evidence(text: &[u8], cards: &[u32]) -> Result<Evidence, UaiError> {
    let mut tokens = Tokens::new(text);
    let mut numbers: Vec<(Token<'_>, i64)> = Vec::new();
    while let Some(token) = tokens.next() {
        match token.integer() {
            Some(number) => numbers.push((token, number)),
            None => {
                let kind = UaiErrorKind::Whole { wanted: Wanted::Evidence, found: token.text() };
                return Err(tokens.fault(token, kind));
            }
        }
    }
    let Some(&(head, first)) = numbers.first() else { return Ok(Evidence::new()) };
    let Ok(first) = u64::try_from(first) else {
        return Err(tokens.fault(head, UaiErrorKind::Whole { wanted: Wanted::Evidence, found: head.text() }));
    };
    let rest = numbers.get(1..).unwrap_or(&[]);
    let pairs = if rest.len() as u64 == first.saturating_mul(2) {
        rest
    } else if !are_samples(rest, first) {
        return Err(tokens.fault(head, UaiErrorKind::EvidenceShape { first, numbers: numbers.len() }));
    } else if first != 1 {
        return Err(tokens.fault(head, UaiErrorKind::Samples(first)));
    } else {
        rest.get(1..).unwrap_or(&[])
    };

    let mut labels: HashMap<u32, u32> = HashMap::with_capacity(pairs.len() / 2);
    let (pairs, _) = pairs.as_chunks::<2>();
    for [(at, _), (label_at, label)] in pairs {
        let Some((variable, arity)) = find(at, cards) else {
            let kind = UaiErrorKind::EvidenceVariable { found: at.text(), variables: cards.len() };
            return Err(tokens.fault(*at, kind));
        };
        let Some(here) = u32::try_from(*label).ok().filter(|&x| x < arity) else {
            let kind = UaiErrorKind::EvidenceLabel { variable, found: label_at.text(), arity };
            return Err(tokens.fault(*label_at, kind));
        };
        match labels.entry(variable) {
            Entry::Occupied(before) if *before.get() != here => {
                let kind = UaiErrorKind::Contradiction { variable, before: *before.get(), here };
                return Err(tokens.fault(*label_at, kind));
            }
            Entry::Occupied(_) => {}
            Entry::Vacant(slot) => {
                slot.insert(here);
            }
        }
    }
    // Contradictions were found above, with their place.
    Ok(Evidence::from_pairs(labels).unwrap_or_default())
}

/// Whether these numbers are that many counted samples and nothing else.
fn are_samples(numbers: &[(Token<'_>, i64)], samples: u64) -> bool {
    let mut rest = numbers;
    for _ in 0..samples {
        let after = rest
            .split_first()
            .and_then(|((_, count), others)| others.get(usize::try_from(*count).ok()?.checked_mul(2)?..));
        match after {
            Some(after) => rest = after,
            None => return false,
        }
    }
    rest.is_empty()
}

/// Marginals as a MAR file holds them.
#[derive(Clone, Debug, PartialEq)]
pub struct Marginals {
    /// Arity of each variable.
    pub cards: Vec<u32>,
    /// Probabilities, the variables one after the other.
    pub values: Vec<f64>,
}

impl Marginals {
    /// The probabilities of each variable.
    pub fn iter(&self) -> impl Iterator<Item = &[f64]> {
        let mut rest = self.values.as_slice();
        self.cards.iter().map_while(move |&card| {
            let (own, others) = rest.split_at_checked(card as usize)?;
            rest = others;
            Some(own)
        })
    }
}

/// Reads the result of a PR query: log10 of the partition function. `-inf` is legal.
///
/// # Errors
/// A [`UaiError`] with the place of the first fault.
pub fn read_pr(text: &[u8]) -> Result<f64, UaiError> {
    let mut tokens = Tokens::new(text);
    header(&mut tokens, "PR")?;
    let token = tokens.need(Wanted::LogZ)?;
    match token.number() {
        Some(log_z) if log_z < f64::INFINITY => tokens.finish("log10 Z").map(|()| log_z),
        _ => {
            let kind = UaiErrorKind::Number { wanted: Wanted::LogZ, found: token.text() };
            Err(tokens.fault(token, kind))
        }
    }
}

/// Reads the result of a MAR query.
///
/// ```
/// let marginals = gibbsite::data::uai::read_mar(b"MAR\n2 2 0.25 0.75 1 1 \n")?;
/// assert_eq!(marginals.iter().collect::<Vec<_>>(), [&[0.25, 0.75][..], &[1.0]]);
/// # Ok::<(), gibbsite::data::uai::UaiError>(())
/// ```
///
/// # Errors
/// A [`UaiError`] with the place of the first fault.
pub fn read_mar(text: &[u8]) -> Result<Marginals, UaiError> {
    let mut tokens = Tokens::new(text);
    header(&mut tokens, "MAR")?;
    let (_, variables) = tokens.whole(Wanted::VariableCount, MOST)?;
    let (mut cards, mut values) = (Vec::new(), Vec::new());
    for v in 0..variables as usize {
        let (token, card) = tokens.whole(Wanted::Arity(v), MOST)?;
        if card == 0 {
            return Err(tokens.fault(token, UaiErrorKind::ArityZero(v)));
        }
        cards.push(card as u32);
        for _ in 0..card {
            values.push(tokens.weight(Wanted::Probability(v))?);
        }
    }
    tokens.finish("the last variable")?;
    Ok(Marginals { cards, values })
}

fn header(tokens: &mut Tokens<'_>, word: &'static str) -> Result<(), UaiError> {
    let wanted = Wanted::Header(word);
    let token = tokens.need(wanted)?;
    if token.bytes.eq_ignore_ascii_case(word.as_bytes()) {
        return Ok(());
    }
    Err(tokens.fault(token, UaiErrorKind::Word { wanted, found: token.text() }))
}
