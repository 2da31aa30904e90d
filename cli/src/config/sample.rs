//! What `sample` needs.

use super::{Common, Data, Usage};
use crate::{args, output};
use std::path::PathBuf;

#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) model: PathBuf,
    pub(crate) data: Option<Data>,
    pub(crate) draws: usize,
    pub(crate) forced: bool,
    pub(crate) max_table_mib: f64,
    pub(crate) common: Common,
}

impl Sample {
    pub(crate) fn check(typed: args::Sample) -> anyhow::Result<Self> {
        let usage = Usage(&["sample"]);
        usage.at_least_0("--max-table-mib", typed.max_table_mib);
        usage.one_stdin(&[Some(&typed.model), typed.data.as_ref()]);
        let common = Common::from(typed.common);
        output::check(common.output.as_deref())?;
        let format = typed.format;
        let data = typed.data.map(|data| {
            let typed = args::Data { data, format, zero_based: false, target: None };
            Data::check_any(&usage, typed, None)
        });
        let (draws, forced, max_table_mib) = (typed.n as usize, typed.forced, typed.max_table_mib);
        Ok(Self { model: typed.model, data, draws, forced, max_table_mib, common })
    }
}
