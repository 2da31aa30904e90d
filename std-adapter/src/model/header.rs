//! Reading the self-description of a model file.

use super::container::ModelError;
use serde_json::Value;

/// Fields of the header, each with an error that names it.
pub(super) struct Header<'a>(pub(super) &'a Value);

impl Header<'_> {
    pub(super) fn wrong(&self, name: &str) -> ModelError {
        ModelError::Content(format!("the header's field `{name}` is {}", self.0[name]))
    }

    pub(super) fn number(&self, name: &str) -> Result<f64, ModelError> {
        self.0[name].as_f64().ok_or_else(|| self.wrong(name))
    }

    /// NaN for `null`: JSON has no other way to say so.
    pub(super) fn number_if_any(&self, name: &str) -> Result<f64, ModelError> {
        if self.0.get(name).is_some_and(Value::is_null) { Ok(f64::NAN) } else { self.number(name) }
    }

    pub(super) fn count(&self, name: &str) -> Result<usize, ModelError> {
        self.0[name].as_u64().and_then(|n| usize::try_from(n).ok()).ok_or_else(|| self.wrong(name))
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool, ModelError> {
        self.0[name].as_bool().ok_or_else(|| self.wrong(name))
    }

    pub(super) fn text(&self, name: &str) -> Result<String, ModelError> {
        self.0[name].as_str().map(str::to_owned).ok_or_else(|| self.wrong(name))
    }
}
