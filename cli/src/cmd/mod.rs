//! One file a command.

pub(crate) mod infer;
pub(crate) mod inspect;

use gibbsite::data::network::Evidence;
use gibbsite::data::source::Source;
use gibbsite::data::uai;
use std::path::Path;

/// What messages call an input.
fn name(path: &Path) -> String {
    if path.as_os_str() == "-" { "stdin".into() } else { path.display().to_string() }
}

/// Reads a UAI model; errors begin with the file's name.
fn read_model(path: &Path) -> anyhow::Result<uai::Model> {
    let source = Source::open(path)?;
    uai::read_model(&source.bytes).map_err(|e| anyhow::anyhow!("{}: {e}", source.name))
}

/// Reads evidence on a model's variables; none without a file.
fn read_evidence(path: Option<&Path>, cards: &[u32]) -> anyhow::Result<Evidence> {
    let Some(path) = path else { return Ok(Evidence::new()) };
    let source = Source::open(path)?;
    uai::read_evidence(&source.bytes, cards).map_err(|e| anyhow::anyhow!("{}: {e}", source.name))
}
