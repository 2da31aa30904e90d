//! `gibbsite eval`: how good a model is on data with known targets.

mod regression;
mod sequences;
mod table;

use super::{AnyModel, open_model};
use crate::{Outcome, config};

pub(crate) fn run(config: &config::Eval) -> anyhow::Result<Outcome> {
    match open_model(&config.model)? {
        AnyModel::Regression(model) => regression::run(config, &model),
        AnyModel::Sequences(model) => config.common.par.run(|_| sequences::run(config, &model)),
        AnyModel::Field(model) => config.common.par.run(|_| table::run(config, &model)),
    }
}
