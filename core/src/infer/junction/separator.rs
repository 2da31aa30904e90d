//! What is known of a separator's message, and how it is brought into a form that keeps its precision.

use crate::error::InferError;
use crate::infer::fork::{Fork, Job, Span};
use crate::math::Real;
use crate::score::Score;

/// What is known of a message: its form, the part of its logarithm that was taken out, and its range.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fact<T> {
    /// Whether the entries are logarithms.
    pub(super) log: bool,
    /// `true message = e^scale · message`.
    pub(super) scale: T,
    /// Logarithms of the largest and of the smallest non-zero entry.
    pub(super) high: T,
    pub(super) low: T,
}

/// Takes the largest score out of a message of scores.
#[inline(never)]
pub(super) fn settle_sum<T: Score>(message: &mut [T], span: Span<T>) -> Result<Fact<T>, InferError> {
    if span.high.is_forbidden() {
        return Err(InferError::ZeroProbability);
    }
    for v in message {
        *v = v.behind(span.high);
    }
    Ok(Fact { log: true, scale: span.high, high: T::default(), low: T::default() })
}

/// A message of logarithms: exponentiated if its range allows, else shifted.
#[inline(never)]
pub(super) fn settle_log<T: Real>(message: &mut [T], span: Span<T>) -> Result<Fact<T>, InferError> {
    if span.high == T::NEG_INFINITY {
        return Err(InferError::ZeroProbability);
    }
    let low = span.low - span.high;
    let log = low < -T::LOG_RANGE;
    for v in message {
        *v -= span.high;
        if !log {
            *v = v.exp();
        }
    }
    Ok(Fact { log, scale: span.high, high: T::zero(), low })
}

/// A message of potentials: rescaled only when it has moved far from 1.
#[inline(never)]
pub(super) fn settle_linear<T: Real>(message: &mut [T], span: Span<T>) -> Result<Fact<T>, InferError> {
    if span.high <= T::zero() {
        return Err(InferError::ZeroProbability);
    }
    let (high, low) = (span.high.ln(), span.low.ln());
    let near = T::from_f64(16.0);
    if high.abs() <= near {
        return Ok(Fact { log: false, scale: T::zero(), high, low });
    }
    if low - high < -T::LOG_RANGE {
        // Rescaling would underflow: keep logarithms.
        for v in message {
            *v = v.ln() - high;
        }
        return Ok(Fact { log: true, scale: high, high: T::zero(), low: low - high });
    }
    for v in message {
        *v /= span.high;
    }
    Ok(Fact { log: false, scale: high, high: T::zero(), low: low - high })
}

/// The message down, `belief / message up`, in place of the message up. Where the message up is 0 the
/// belief is too, and so is the result: whatever stands there is multiplied by 0 below.
#[inline(never)]
pub(super) fn divide<T: Real>(
    belief: &mut [T],
    message: &mut [T],
    up: &Fact<T>,
    span: Span<T>,
    fork: &mut impl Fork<T>,
) -> Result<Fact<T>, InferError> {
    if !up.log {
        let (high, low) = (span.high.ln(), span.low.ln());
        if high - up.low <= T::LOG_RANGE && -T::LOG_RANGE <= low - up.high {
            let span = fork.run(message, CHUNK, &Divide { belief })?;
            return settle_linear(message, span);
        }
        for (m, b) in message.iter_mut().zip(belief.iter_mut()) {
            *m = m.ln();
            *b = b.ln();
        }
    }
    for (m, &b) in message.iter_mut().zip(belief.iter()) {
        *m = if *m == T::NEG_INFINITY { T::NEG_INFINITY } else { b - *m };
    }
    settle_log(message, Span::of(message, T::NEG_INFINITY))
}

/// Entries that are divided at a time.
const CHUNK: usize = 1 << 15;

/// `message = belief / message`, chunk by chunk.
struct Divide<'x, T> {
    belief: &'x [T],
}

impl<T: Real> Job<T> for Divide<'_, T> {
    #[inline(always)]
    fn chunk(&self, index: usize, chunk: &mut [T], _: &mut [T]) -> Span<T> {
        let belief = self.belief.get(index.saturating_mul(CHUNK)..).unwrap_or(&[]);
        for (m, &b) in chunk.iter_mut().zip(belief) {
            *m = if *m > T::zero() { b / *m } else { T::zero() };
        }
        Span::of(chunk, T::zero())
    }

    fn temp_len(&self) -> usize {
        0
    }
}
