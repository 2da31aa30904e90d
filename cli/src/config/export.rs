//! What `export` needs.

use super::{Common, Data, Usage};
use crate::{args, output};
use gibbsite::export::{ExportParams, Naming, Scalar};
use std::path::PathBuf;

#[derive(Debug)]
pub(crate) struct Export {
    pub(crate) model: PathBuf,
    pub(crate) form: args::Form,
    pub(crate) params: ExportParams,
    pub(crate) scheme: Option<args::Scheme>,
    pub(crate) forbid: Option<PathBuf>,
    pub(crate) check: Option<Data>,
    pub(crate) out: PathBuf,
    pub(crate) common: Common,
}

impl Export {
    pub(crate) fn check(typed: args::Export) -> anyhow::Result<Self> {
        let usage = Usage(&["export"]);
        usage.one_stdin(&[Some(&typed.model), typed.check.as_ref(), typed.forbid.as_ref()]);
        if typed.out.as_os_str() == "-" {
            usage.wrong("OUT is a file, not standard output: that is where sizes and errors are printed");
        }
        let common = Common::from(typed.common);
        for file in [common.output.as_deref(), Some(&typed.out)] {
            output::check(file)?;
        }
        let scalar = match typed.scalar {
            args::ScalarName::F32 => Scalar::F32,
            args::ScalarName::I16 => Scalar::I16,
            args::ScalarName::I8 => Scalar::I8,
        };
        let naming = match typed.attributes {
            args::Attributes::Hash => Naming::Hash,
            args::Attributes::Exact => Naming::Exact,
            args::Attributes::Numbers => Naming::Numbers,
        };
        let longest = typed.max_length as usize;
        let params = ExportParams { scalar, naming, longest, ..ExportParams::default() };
        let format = typed.format;
        let check = typed.check.map(|data| {
            let data = args::Data { data, format, zero_based: false, target: None };
            Data::check_any(&usage, data, None)
        });
        let (model, form, out) = (typed.model, typed.to, typed.out);
        Ok(Self { model, form, params, scheme: typed.scheme, forbid: typed.forbid, check, out, common })
    }
}
