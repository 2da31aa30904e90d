//! Data, and how it is read.

use super::Usage;
use crate::args;
use gibbsite::data::dataset::{self, Dataset, Format, ReadParams, Stored};
use gibbsite::model::{Naming, RegressionModel};
use gibbsite::par::Par;
use std::path::PathBuf;

#[derive(Debug)]
pub(crate) struct Data {
    pub(crate) path: PathBuf,
    /// The format as typed.
    pub(crate) as_typed: Option<args::Format>,
    format: Option<Format>,
    zero_based: bool,
    pub(crate) target: Option<String>,
    cache: Option<PathBuf>,
}

impl Data {
    /// A design matrix.
    pub(super) fn check(usage: &Usage, typed: args::Data, cache: Option<PathBuf>) -> Self {
        if let Some(args::Format::Crfsuite | args::Format::Columns) = typed.format {
            usage.wrong("--format crfsuite and columns are sequences: see `gibbsite train`");
        }
        if typed.format == Some(args::Format::Table) {
            usage.wrong(
                "--format table is for fields over columns: see `gibbsite train`; for numbers use csv",
            );
        }
        Self::check_any(usage, typed, cache)
    }

    /// A design matrix, sequences, or a table.
    pub(super) fn check_any(usage: &Usage, typed: args::Data, cache: Option<PathBuf>) -> Self {
        let format = typed.format.and_then(|f| match f {
            args::Format::Svmlight => Some(Format::Svmlight),
            args::Format::Csv => Some(Format::Csv),
            args::Format::Crfsuite | args::Format::Columns | args::Format::Table => None,
        });
        let as_typed = typed.format;
        match format.unwrap_or_else(|| Format::of(&typed.data)) {
            _ if as_typed.is_some() && format.is_none() && (typed.zero_based || typed.target.is_some()) => {
                usage.wrong("--zero-based and --target are not for sequences and tables");
            }
            _ if as_typed.is_some() && format.is_none() => {}
            Format::Csv if typed.zero_based => usage.wrong("--zero-based is for svmlight data"),
            Format::Svmlight if typed.target.is_some() => {
                usage.wrong("--target is for csv data (`--format csv` if the file is not called so)");
            }
            _ => {}
        }
        Self { path: typed.data, as_typed, format, zero_based: typed.zero_based, target: typed.target, cache }
    }

    /// The name for messages.
    pub(crate) fn name(&self) -> String {
        crate::cmd::name(&self.path)
    }

    /// The name without folders.
    pub(crate) fn file_name(&self) -> String {
        crate::cmd::file_name(&self.path)
    }

    fn params(&self, par: Par) -> ReadParams {
        ReadParams {
            format: self.format,
            zero_based: self.zero_based.then_some(true),
            target: self.target.clone(),
            par,
            ..ReadParams::default()
        }
    }

    /// Data to learn from.
    pub(crate) fn read<V: Stored>(&self, par: Par) -> anyhow::Result<Dataset<V>> {
        let params = self.params(par);
        let data = match &self.cache {
            Some(cache) => dataset::read_cached(&self.path, cache, &params),
            None => dataset::read(&self.path, &params),
        };
        data.map_err(|error| anyhow::anyhow!("{}: {error}", self.name()))
    }

    /// The columns that a model looks at, and targets if they are needed.
    pub(crate) fn read_for(
        &self,
        model: &RegressionModel,
        targets: bool,
        par: Par,
    ) -> anyhow::Result<Dataset> {
        let first = match model.naming {
            Naming::Numbers { first, .. } => Some(first),
            Naming::Names(_) => None,
        };
        if first == Some(1) && self.zero_based {
            anyhow::bail!(
                "{}: --zero-based, but the model was trained on data whose features count from 1",
                self.name()
            );
        }
        let params = ReadParams {
            zero_based: first.map(|f| f == 0),
            target_required: targets,
            columns: Some(model.columns()),
            target: self.target.clone().or_else(|| model.target.clone()),
            ..self.params(par)
        };
        dataset::read(&self.path, &params).map_err(|error| anyhow::anyhow!("{}: {error}", self.name()))
    }
}
