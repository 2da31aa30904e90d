//! `gibbsite sample`: labels drawn from a model.

use super::predict::{sequences, table};
use super::{AnyModel, name, open_model};
use crate::{Outcome, config, output};
use anyhow::anyhow;
use gibbsite::field::sample::sample;
use gibbsite::field::{FieldData, MISSING};
use gibbsite::model::{FieldModel, SequenceModel};
use gibbsite::sequence::scheme::Constraints;
use gibbsite::sequence::tagger::Tagger;
use serde_json::json;

pub(crate) fn run(config: &config::Sample) -> anyhow::Result<Outcome> {
    let text = match open_model(&config.model)? {
        AnyModel::Regression(_) => {
            return Err(anyhow!("{}: a regression: there is nothing to draw", name(&config.model)));
        }
        AnyModel::Gaussian(_) => {
            let hint = "a Gaussian CRF: `gibbsite gaussian predict --samples N` draws from it";
            return Err(anyhow!("{}: {hint}", name(&config.model)));
        }
        AnyModel::Sequences(model) => config.common.par.run(|_| labellings(config, &model))?,
        AnyModel::Field(model) => config.common.par.run(|_| rows(config, &model))?,
    };
    output::write(config.common.output.as_deref(), text.as_bytes())?;
    Ok(Outcome::Done)
}

fn labellings(config: &config::Sample, model: &SequenceModel) -> anyhow::Result<String> {
    let common = &config.common;
    let Some(data) = &config.data else {
        return Err(anyhow!(
            "{}: the model labels sequences: give the data whose items are to be labelled",
            name(&config.model)
        ));
    };
    let (sequences, report) = sequences::read(data, model, true, common.par)?;
    sequences::remark(common, &report, &sequences);
    let tagger = Tagger::new(model, Constraints::default());
    let drawn = tagger
        .sample(&sequences, config.draws, config.forced, common.seed, common.par)
        .map_err(|e| anyhow!("{}: {e}", data.name()))?;
    let names: Vec<&str> = model.alphabet.labels.iter().collect();
    let named = |labels: &Vec<u32>| labels.iter().map(|&l| names[l as usize]).collect::<Vec<_>>();
    if common.json {
        let each: Vec<Vec<_>> = drawn.iter().map(|draws| draws.iter().map(named).collect()).collect();
        return Ok(format!("{}\n", json!({ "labels": names, "sequences": each })));
    }
    let blocks: Vec<String> = drawn.iter().flatten().map(|labels| named(labels).join("\n") + "\n").collect();
    Ok(blocks.join("\n"))
}

fn rows(config: &config::Sample, model: &FieldModel) -> anyhow::Result<String> {
    let (common, schema) = (&config.common, &model.schema);
    if config.forced {
        common.warn("--forced is for models of sequences, and not looked at");
    }
    let (data, blame) = match &config.data {
        Some(data) => {
            let (rows, report) = table::read(data, model)?;
            table::remark(common, &report, false);
            (rows, data.name())
        }
        None if schema.inputs.is_empty() => {
            let mut data = FieldData::without_inputs(&model.field);
            data.push(&model.field, &vec![MISSING; model.field.variables()], [[]; 0])?;
            (data, name(&config.model))
        }
        None => {
            return Err(anyhow!(
                "{}: the model has {} inputs: give a table with them",
                name(&config.model),
                schema.inputs.len()
            ));
        }
    };
    let drawn = sample(model, &data, config.draws, common.seed, config.max_table_mib, common.par)
        .map_err(|e| anyhow!("{blame}: {e}"))?;
    let named = |labels: &Vec<u32>| -> Vec<&str> {
        labels.iter().enumerate().map(|(v, &label)| schema.labels(v)[label as usize].as_str()).collect()
    };
    if common.json {
        let each: Vec<Vec<_>> = drawn.iter().map(|draws| draws.iter().map(named).collect()).collect();
        return Ok(format!("{}\n", json!({ "outputs": schema.outputs, "rows": each })));
    }
    let mut text = String::new();
    table::push_row(&mut text, schema.outputs.iter().map(String::as_str));
    drawn.iter().flatten().for_each(|labels| table::push_row(&mut text, named(labels).into_iter()));
    Ok(text)
}
