//! `gibbsite import`: models of other programs.

use crate::{Outcome, config, output};
use gibbsite::data::source::Source;
use gibbsite::import::import;
use serde_json::json;

pub(crate) fn run(config: &config::Import) -> anyhow::Result<Outcome> {
    let common = &config.common;
    let source = Source::open(&config.file)?;
    let model = import(&source.bytes).map_err(|e| anyhow::anyhow!("{}: {e}", source.name))?;
    output::write(Some(&config.model), &model.to_bytes())?;
    let (program, labels) = (&model.facts.solver, model.alphabet.labels.len());
    let (attributes, parameters) = (model.alphabet.attributes.len(), model.index.len());
    let text = if common.json {
        let value = json!({ "program": program, "labels": labels, "attributes": attributes, "parameters": parameters });
        format!("{value}\n")
    } else {
        format!("{program} model: {labels} labels, {attributes} attributes, {parameters} weights\n")
    };
    output::write(common.output.as_deref(), text.as_bytes())?;
    Ok(Outcome::Done)
}
