//! One file a command.

pub(crate) mod analyze;
pub(crate) mod eval;
pub(crate) mod export;
pub(crate) mod gaussian;
pub(crate) mod import;
pub(crate) mod infer;
pub(crate) mod inspect;
pub(crate) mod predict;
pub(crate) mod regress;
pub(crate) mod sample;
pub(crate) mod train;

use crate::config::Common;
use crate::output;
use gibbsite::data::network::Evidence;
use gibbsite::data::source::Source;
use gibbsite::data::uai;
use gibbsite::model::{
    Container, FieldModel, GaussianModel, Kind, ModelFile, RegressionModel, SequenceModel,
};
use gibbsite::plot::PlotError;
use std::path::Path;

/// What messages call an input.
pub(crate) fn name(path: &Path) -> String {
    if path.as_os_str() == "-" { "stdin".into() } else { path.display().to_string() }
}

/// A file's name without folders.
pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| name(path), |n| n.to_string_lossy().into_owned())
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

/// A model of any kind that can predict.
pub(crate) enum AnyModel {
    Regression(RegressionModel),
    Sequences(SequenceModel),
    Field(Box<FieldModel>),
    Gaussian(Box<GaussianModel>),
}

/// Opens a model that `--model` wrote; errors begin with the file's name.
fn open_model(path: &Path) -> anyhow::Result<AnyModel> {
    let source = ModelFile::open(path)?;
    let named = |e| anyhow::anyhow!("{}: {e}", source.name);
    let file = Container::open(source.bytes()).map_err(named)?;
    let model = match file.kind {
        Kind::SEQUENCES => SequenceModel::from_container(&file).map(AnyModel::Sequences),
        Kind::FIELD => FieldModel::from_container(&file).map(|m| AnyModel::Field(Box::new(m))),
        Kind::GAUSSIAN => GaussianModel::from_container(&file).map(|m| AnyModel::Gaussian(Box::new(m))),
        _ => RegressionModel::from_container(&file).map(AnyModel::Regression),
    };
    model.map_err(named)
}

/// Writes a plot, or says why there is none: what was computed is worth more than its picture.
fn write_plot(common: &Common, path: &Path, svg: Result<String, PlotError>) -> anyhow::Result<()> {
    match svg {
        Ok(svg) => output::write(Some(path), svg.as_bytes()),
        Err(error) => {
            common.warn(&format!("{error}; {} is not written", path.display()));
            Ok(())
        }
    }
}

/// Why a regression has nothing to explain, if its target is the same everywhere and that needs no feature.
fn nothing_to_explain(target: &[f64], intercept: bool) -> Option<String> {
    let (&first, rest) = target.split_first()?;
    match rest.iter().all(|&y| y == first) {
        true if first == 0.0 => Some("the target is 0 throughout: there is nothing to explain".to_owned()),
        true if intercept => {
            Some(format!("the target is {} throughout: the intercept explains all of it", number(first)))
        }
        _ => None,
    }
}

/// A number to seven digits.
fn number(x: f64) -> String {
    let rounded: f64 = format!("{x:.6e}").parse().unwrap_or(x);
    if rounded == 0.0 || (1e-4..1e9).contains(&rounded.abs()) {
        rounded.to_string()
    } else {
        format!("{rounded:e}")
    }
}

/// The most memory that this process has had, in mebibytes; where the system tells.
fn peak_rss_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1024.0)
}
