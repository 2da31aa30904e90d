//! How much memory a fit takes, before it takes it.
//!
//! The solver holds dense matrices: at the moment when most of them are alive about three and a half of the inputs' shape (`m × n`: as read, as prepared, in single precision, a copy while
//! reading), ten of the outputs' (`m × p`), thirteen of Λ's (`p × p`) and four of Θ's (`n × p`). What grows with the non-zeros comes on top: about 100 bytes an entry for conjugate
//! gradients, and the factors of the preconditioner's blocks, up to 1 KiB an entry. The latter are cut to what a budget leaves: smaller blocks, more iterations, the same optimum.
//!
//! Peaks of the release binary, itself included, on the bench's problems: chain, p = 1000, 513 MiB where 789 are asked for; `sec51`, p = 200, with 64, 40 and 32 MiB allowed 62.2, 39.1 and 34.3 MiB
//! (32 is the least; 7.7, 8.9 and 30.7 s of CPU). So a budget is kept but for some MiB, not to the byte.

use super::error::GaussianError;
use super::fit::GaussianParams;

/// Bytes that a fit of `samples` rows, `inputs` and `outputs` takes at the most, without what grows with the non-zeros; `kept` fits of a path are kept as they are found.
///
/// ```
/// use gibbsite::gaussian::memory::need;
/// assert_eq!(need(2500, 4000, 1000, 1) >> 20, 717);
/// ```
pub fn need(samples: usize, inputs: usize, outputs: usize, kept: usize) -> u64 {
    let [m, n, p, kept] = [samples, inputs, outputs, kept].map(|v| v as u64);
    let times = |a: u64, b: u64| a.saturating_mul(b);
    let matrices = [(7, times(m, n)), (20, times(m, p)), (26, times(p, p)), (8, times(n, p))];
    // In halves of matrices; a fit that is kept is a Λ and a Θ.
    let halves = matrices.iter().fold(0u64, |sum, &(count, size)| sum.saturating_add(times(count, size)));
    let more = times(kept.saturating_mul(2), times(p, p).saturating_add(times(n, p)));
    times(4, halves.saturating_add(more))
}

/// What a budget leaves for the preconditioner.
///
/// # Errors
/// [`GaussianError::Memory`] if it is less than [`need`] plus a tenth.
pub(super) fn left(
    params: &GaussianParams,
    (samples, inputs, outputs): (usize, usize, usize),
    kept: usize,
) -> Result<u64, GaussianError> {
    let Some(budget) = params.memory else { return Ok(u64::MAX) };
    let need = need(samples, inputs, outputs, kept);
    // At the least a tenth for what grows with the non-zeros.
    let need = need.saturating_add(need / 10);
    budget.checked_sub(need).ok_or(GaussianError::Memory { need, budget })
}
