//! `gibbsite predict`: predictions of a model.

pub(super) mod regression;
pub(super) mod sequences;
pub(super) mod table;

use super::{AnyModel, name, open_model};
use crate::{Outcome, config};

pub(crate) fn run(config: &config::Predict) -> anyhow::Result<Outcome> {
    match open_model(&config.model)? {
        AnyModel::Regression(model) => regression::run(config, &model),
        AnyModel::Sequences(model) => config.common.par.run(|_| sequences::run(config, &model)),
        AnyModel::Field(model) => config.common.par.run(|_| table::run(config, &model)),
        AnyModel::Gaussian(_) => {
            anyhow::bail!("{}: a Gaussian CRF: use `gibbsite gaussian predict`", name(&config.model))
        }
    }
}
