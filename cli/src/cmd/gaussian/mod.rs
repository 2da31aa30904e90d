//! `gibbsite gaussian`: sparse Gaussian CRFs.

mod draw;
mod eval;
mod export;
mod fit;
mod predict;
mod report;

pub(crate) use eval::run as eval;
pub(crate) use export::run as export;
pub(crate) use fit::run as fit;
pub(crate) use predict::run as predict;

use gibbsite::data::numbers::Numbers;
use gibbsite::data::source::Source;
use gibbsite::gaussian::predict::Forecaster;
use std::path::Path;

/// The level of intervals if none is asked for.
const LEVEL: f64 = 0.9;
/// Draws that the width of joint intervals is estimated from.
const DRAWS: usize = 10_000;

/// Half the width of joint intervals when nothing is known but the inputs.
fn joint_width(forecaster: &Forecaster, level: f64, seed: u64) -> f64 {
    forecaster.joint_half_width(&forecaster.given(&[]), level, DRAWS, seed)
}

/// Reads a table of numbers; errors begin with the file's name.
fn read(path: &Path) -> anyhow::Result<Numbers> {
    let name = super::name(path);
    // Piece by piece where that is possible: a budget of memory knows no copies of the files.
    if let Some(table) =
        Numbers::read_npy(path).map_err(|e| anyhow::anyhow!("{name}: cannot read it: {e}"))?
    {
        return table.map_err(|e| anyhow::anyhow!("{name}: {e}"));
    }
    let source = Source::open(path)?;
    Numbers::read(&source.bytes).map_err(|e| anyhow::anyhow!("{}: {e}", source.name))
}

/// As [`read`], without missing cells.
fn read_whole(path: &Path) -> anyhow::Result<Numbers> {
    let table = read(path)?;
    match table.missing() {
        Some(place) => {
            let name = super::name(path);
            Err(anyhow::anyhow!("{name}: {place}: found a missing value, expected a number"))
        }
        None => Ok(table),
    }
}
