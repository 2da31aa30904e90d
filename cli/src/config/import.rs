//! What `import` needs.

use super::Common;
use crate::{args, output};
use std::path::PathBuf;

#[derive(Debug)]
pub(crate) struct Import {
    pub(crate) file: PathBuf,
    pub(crate) model: PathBuf,
    pub(crate) common: Common,
}

impl Import {
    pub(crate) fn check(typed: args::Import) -> anyhow::Result<Self> {
        let common = Common::from(typed.common);
        for file in [common.output.as_deref(), Some(&typed.model)] {
            output::check(file)?;
        }
        Ok(Self { file: typed.file, model: typed.model, common })
    }
}
