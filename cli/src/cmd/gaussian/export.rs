//! `gibbsite export` of a Gaussian CRF.

use super::read_whole;
use crate::cmd::export::size;
use crate::config::Export as Config;
use crate::{Outcome, args, output};
use anyhow::{anyhow, bail};
use gibbsite::export::{
    GaussianCheckInfo, GaussianExported, Naming, Scalar, check_gaussian, export_gaussian, gaussian_c_source,
    gaussian_rust_source,
};
use gibbsite::model::GaussianModel;
use serde_json::{Value, json};
use std::fmt::Write;

pub(crate) fn run(config: &Config, model: &GaussianModel) -> anyhow::Result<Outcome> {
    let common = &config.common;
    let file = crate::cmd::name(&config.model);
    if config.params.scalar != Scalar::F32 {
        bail!("{file}: a Gaussian CRF is exported in single precision: use `--scalar f32`");
    }
    // Names are found by position on a device; they are only there to be read.
    let names = config.params.naming == Naming::Exact;
    let exported = export_gaussian(model, names).map_err(|e| anyhow!("{file}: {e}"))?;
    let checked = match &config.check {
        None => None,
        Some(data) => {
            let blame = |what: String| anyhow!("{}: {what}", data.name());
            let x = read_whole(&data.path)?
                .arranged(model.inputs.as_deref(), model.theta.rows())
                .map_err(blame)?;
            Some(check_gaussian(model, &exported, &x.values).map_err(|e| blame(e.to_string()))?)
        }
    };
    let bytes = match config.form {
        args::Form::Image => exported.to_bytes(),
        args::Form::C => gaussian_c_source(model, &exported).into_bytes(),
        args::Form::Rust => gaussian_rust_source(model, &exported).into_bytes(),
    };
    output::write(Some(&config.out), &bytes)?;
    let text = if common.json {
        format!("{}\n", as_json(config, &exported, checked.as_ref()))
    } else {
        as_text(config, &exported, checked.as_ref())
    };
    output::write(common.output.as_deref(), text.as_bytes())?;
    Ok(Outcome::Done)
}

fn as_text(config: &Config, exported: &GaussianExported, checked: Option<&GaussianCheckInfo>) -> String {
    let info = &exported.info;
    let mut text = format!(
        "{}: Gaussian CRF, {} inputs, {} outputs, {} pairs, {} weights in f32\n",
        config.out.display(),
        info.inputs,
        info.outputs,
        info.pairs,
        info.weights
    );
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<22} {value}");
    };
    line("flash", size(info.flash));
    line("RAM", format!("{} ({} to revise by known outputs)", size(info.ram), size(info.ram_revised)));
    line("factor", format!("{} entries for {} pairs", info.entries, info.pairs));
    if let Some(c) = checked {
        line("checked on", format!("{} rows", c.rows));
        line(
            "worst error of a mean",
            format!("{:.2e} deviations (revised {:.2e})", c.worst_mean, c.worst_revised_mean),
        );
        line(
            "  of a deviation",
            format!("{:.2e} of it (revised {:.2e})", c.worst_deviation, c.worst_revised_deviation),
        );
    }
    text
}

fn as_json(config: &Config, exported: &GaussianExported, checked: Option<&GaussianCheckInfo>) -> Value {
    let info = &exported.info;
    json!({
        "to": config.form.name(),
        "kind": "gaussian",
        "scalar": "f32",
        "flash_bytes": info.flash,
        "ram_bytes": info.ram,
        "ram_revised_bytes": info.ram_revised,
        "inputs": info.inputs,
        "outputs": info.outputs,
        "pairs": info.pairs,
        "factor_entries": info.entries,
        "weights": info.weights,
        "check": checked.map(|c| json!({
            "rows": c.rows,
            "worst_error": c.worst_mean,
            "worst_deviation_error": c.worst_deviation,
            "worst_revised_error": c.worst_revised_mean,
            "worst_revised_deviation_error": c.worst_revised_deviation,
        })),
    })
}
