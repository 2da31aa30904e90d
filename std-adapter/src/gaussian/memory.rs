//! How much memory a fit takes, before it takes it, and by which solver it is done.
//!
//! The default solver holds dense matrices: at the moment when most of them are alive about three and a half of the inputs' shape (`m × n`: as read, as prepared, in single precision, a copy while
//! reading), ten of the outputs' (`m × p`), thirteen of Λ's (`p × p`) and four of Θ's (`n × p`). What grows with the non-zeros comes on top: about 100 bytes an entry for conjugate
//! gradients, and the factors of the preconditioner's blocks, up to 1 KiB an entry. The latter are cut to what a budget leaves: smaller blocks, more iterations, the same optimum.
//!
//! A budget is what a fit may take beside the inputs and outputs themselves. Where it is too small for the matrices, the fit is done by blocks ([`newton_blocks`](crate::solver::newton_blocks)), which holds what is not 0
//! and a few columns at a time. Copies of the data, which an intercept, scaling, weights and folds make, count.

use super::error::GaussianError;
use super::fit::{GaussianParams, GaussianSolver};
use crate::solver::newton_cd::Schedule;

/// Bytes that a fit of `samples` rows, `inputs` and `outputs` by the dense solvers takes at the most, data included, without what grows with the non-zeros.
///
/// ```
/// use gibbsite::gaussian::memory::need;
/// assert_eq!(need(2500, 4000, 1000) >> 20, 679);
/// ```
pub fn need(samples: usize, inputs: usize, outputs: usize) -> u64 {
    let [m, n, p] = [samples, inputs, outputs].map(|v| v as u64);
    let times = |a: u64, b: u64| a.saturating_mul(b);
    // In halves of matrices.
    let matrices = [(7, times(m, n)), (20, times(m, p)), (26, times(p, p)), (8, times(n, p))];
    let halves = matrices.iter().fold(0u64, |sum, &(count, size)| sum.saturating_add(times(count, size)));
    times(4, halves)
}

/// Bytes of the data.
fn data(samples: usize, inputs: usize, outputs: usize) -> u64 {
    8u64.saturating_mul(samples as u64).saturating_mul((inputs as u64).saturating_add(outputs as u64))
}

/// How a fit is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// With dense matrices; bytes that are left for the preconditioner.
    Dense(u64),
    /// By blocks, within so many bytes.
    Blocks(u64),
}

/// Bytes that a fit with dense matrices needs beside the data: a tenth more than they take, at the least, for what grows with the non-zeros.
pub(super) fn beside(shape: (usize, usize, usize)) -> u64 {
    let need = need(shape.0, shape.1, shape.2);
    need.saturating_add(need / 10).saturating_sub(data(shape.0, shape.1, shape.2))
}

/// How a fit is done within the budget; `copied` if the data are not used as they are.
///
/// # Errors
/// [`GaussianError::Memory`] if it is too small for the solver that is asked for.
pub(super) fn way(
    params: &GaussianParams,
    shape: (usize, usize, usize),
    copied: bool,
) -> Result<Way, GaussianError> {
    let Some(budget) = params.memory else { return Ok(Way::Dense(u64::MAX)) };
    let need = beside(shape);
    if let Some(left) = budget.checked_sub(need) {
        return Ok(Way::Dense(left));
    }
    if params.solver != GaussianSolver::Newton(Schedule::Auto) {
        return Err(GaussianError::Memory { need, budget });
    }
    let copies = if copied { data(shape.0, shape.1, shape.2) } else { 0 };
    let left = budget.checked_sub(copies).ok_or(GaussianError::Memory { need: copies, budget })?;
    Ok(Way::Blocks(left))
}
