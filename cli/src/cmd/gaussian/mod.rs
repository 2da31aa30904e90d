//! `gibbsite gaussian`: sparse Gaussian CRFs.

mod draw;
mod fit;
mod predict;
mod report;

pub(crate) use fit::run as fit;
pub(crate) use predict::run as predict;

use gibbsite::data::numbers::Numbers;
use gibbsite::data::source::Source;
use std::path::Path;

/// Reads a table of numbers; errors begin with the file's name.
fn read(path: &Path) -> anyhow::Result<Numbers> {
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
