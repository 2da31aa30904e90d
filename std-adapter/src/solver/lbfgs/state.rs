//! Where a run is: enough to go on as if it had never stopped.

use super::LbfgsError;
use super::history::History;

/// Where a run is. [`State::new`] begins one; [`State::to_bytes`] and [`State::from_bytes`] carry it over to another process, which
/// then takes the same steps, bit for bit, as this one would have.
///
/// ```
/// use gibbsite::solver::lbfgs::State;
/// let state = State::new(vec![1.0, 2.0]);
/// assert_eq!(State::from_bytes(&state.to_bytes()).unwrap(), state);
/// assert!(State::from_bytes(&[1, 2, 3]).is_err());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    pub(in crate::solver) theta: Vec<f64>,
    /// Gradient of `f + ½C₂‖θ‖²`; empty before the first evaluation.
    pub(super) gradient: Vec<f64>,
    pub(super) objective: f64,
    pub(super) violation: f64,
    pub(super) nonzeros: usize,
    /// What violations are compared with.
    pub(super) reference: f64,
    pub(super) iterations: u64,
    pub(super) evaluations: u64,
    /// Steps in a row that did not lower the objective.
    pub(super) stale: u64,
    /// Digest of penalties and scales: products and gradients are good for these only.
    pub(super) digest: u32,
    pub(super) history: History,
}

const MAGIC: &[u8; 8] = b"GIBLBFG1";

impl State {
    /// A run that begins at `theta`.
    pub fn new(theta: Vec<f64>) -> Self {
        Self {
            theta,
            gradient: Vec::new(),
            objective: f64::INFINITY,
            violation: f64::INFINITY,
            nonzeros: 0,
            reference: 0.0,
            iterations: 0,
            evaluations: 0,
            stale: 0,
            digest: 0,
            history: History::new(0, 0),
        }
    }

    /// The best parameters so far.
    pub fn theta(&self) -> &[f64] {
        &self.theta
    }

    /// The best parameters so far; ends the run.
    pub fn into_theta(self) -> Vec<f64> {
        self.theta
    }

    /// Steps so far.
    pub fn iterations(&self) -> u64 {
        self.iterations
    }

    /// The objective at [`State::theta`]; infinite before the first evaluation.
    pub fn objective(&self) -> f64 {
        self.objective
    }

    /// All of it, little-endian, with a checksum.
    pub fn to_bytes(&self) -> Vec<u8> {
        let history = &self.history;
        let mut out = Vec::with_capacity(16 * self.theta.len() + 4 * history.data.len() + 256);
        out.extend(MAGIC);
        let counts = [
            self.theta.len() as u64,
            self.gradient.len() as u64,
            history.memory() as u64,
            history.pairs() as u64,
            self.nonzeros as u64,
            self.iterations,
            self.evaluations,
            self.stale,
            u64::from(self.digest),
            self.objective.to_bits(),
            self.violation.to_bits(),
            self.reference.to_bits(),
        ];
        out.extend(counts.iter().flat_map(|c| c.to_le_bytes()));
        out.extend(history.order.iter().flat_map(|&slot| (slot as u64).to_le_bytes()));
        for numbers in [&self.theta, &self.gradient].into_iter().chain(history.products.all()) {
            out.extend(numbers.iter().flat_map(|x| x.to_le_bytes()));
        }
        out.extend(history.data.iter().flat_map(|x| x.to_le_bytes()));
        let sum = crc32fast::hash(&out);
        out.extend(sum.to_le_bytes());
        out
    }

    /// What [`State::to_bytes`] wrote.
    ///
    /// # Errors
    /// If it is anything else, or damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, LbfgsError> {
        let (body, sum) = bytes.split_last_chunk::<4>().ok_or(LbfgsError::Checkpoint)?;
        if !body.starts_with(MAGIC) || crc32fast::hash(body) != u32::from_le_bytes(*sum) {
            return Err(LbfgsError::Checkpoint);
        }
        Self::read(&mut Reader(&body[MAGIC.len()..])).ok_or(LbfgsError::Checkpoint)
    }

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        let [len, gradient, memory, pairs, nonzeros] = from.counts()?;
        let [iterations, evaluations, stale] = [from.count()?, from.count()?, from.count()?];
        let digest = u32::try_from(from.count()?).ok()?;
        let [objective, violation, reference] = [from.number()?, from.number()?, from.number()?];
        // The checksum is no proof of sense: nothing is allocated that the bytes could not fill.
        let room = from.0.len() / 4;
        let fits = |n: usize| (n <= room).then_some(n);
        let history_len = if memory == 0 { 0 } else { fits(len)? };
        fits(history_len.checked_mul(memory)?)?;
        fits(memory.checked_mul(memory)?)?;
        let mut history = History::new(history_len, memory);
        for _ in 0..fits(pairs)? {
            let slot = usize::try_from(from.count()?).ok()?;
            if slot >= memory || history.order.contains(&slot) {
                return None;
            }
            history.order.push(slot);
        }
        let theta = from.numbers(fits(len)?)?;
        let gradient = from.numbers(fits(gradient)?)?;
        for numbers in history.products.all_mut() {
            *numbers = from.numbers(numbers.len())?;
        }
        for x in &mut history.data {
            *x = f32::from_le_bytes(from.take()?);
        }
        (from.0.is_empty() && (gradient.is_empty() || gradient.len() == len)).then_some(Self {
            theta,
            gradient,
            objective,
            violation,
            nonzeros,
            reference,
            iterations,
            evaluations,
            stale,
            digest,
            history,
        })
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn count(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn counts<const N: usize>(&mut self) -> Option<[usize; N]> {
        let mut out = [0; N];
        for out in &mut out {
            *out = usize::try_from(self.count()?).ok()?;
        }
        Some(out)
    }

    fn number(&mut self) -> Option<f64> {
        self.count().map(f64::from_bits)
    }

    fn numbers(&mut self, n: usize) -> Option<Vec<f64>> {
        (0..n).map(|_| self.number()).collect()
    }
}
