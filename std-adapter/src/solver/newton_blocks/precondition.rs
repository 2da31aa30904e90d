//! The preconditioner of the Newton system: the diagonal of the Hessian.

use super::active::Vector;
use super::samples::{Ground, Samples, Slopes};

/// The Hessian's entries on its diagonal (SGCRF eqs. 9 and 11 as corrected in SEEDS.md; a pair's halved, as its slope is).
pub(super) fn diagonal(samples: &Samples<'_>, ground: &Ground, slopes: &Slopes) -> Vector {
    let active = &ground.active;
    let sigma = ground.shape.gather(&slopes.sigma);
    let ends: Vec<usize> = active.diagonal().collect();
    let lambda = active.pairs.places().enumerate().map(|(e, (i, j))| {
        let (s, q) = (sigma[e], slopes.psi[e]);
        let (sii, sjj, qii, qjj) = (sigma[ends[i]], sigma[ends[j]], slopes.psi[ends[i]], slopes.psi[ends[j]]);
        let full = s * s + sii * sjj + sii * qjj + 2.0 * s * q + sjj * qii;
        if i == j { 0.5 * full } else { full }
    });
    let theta =
        active.weights.places().map(|(i, j)| 2.0 * samples.x_norm2[i] * sigma[ends[j]] / samples.count);
    Vector { lambda: lambda.collect(), theta: theta.collect() }
}
