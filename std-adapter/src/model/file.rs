//! The bytes of a model file: mapped where it is a plain file, so that nothing is copied before it is decoded; read where it is packed or comes from a pipe.

use crate::data::mapped::Window;
use crate::data::source::{Source, SourceError, Step};
use std::fs::File;
use std::path::Path;

/// A model file that is open. [`Container::open`](super::Container::open) says whether it is one.
#[derive(Debug)]
pub struct ModelFile {
    /// The path as given, or `stdin`.
    pub name: String,
    bytes: Bytes,
}

#[derive(Debug)]
enum Bytes {
    Mapped(Window),
    Read(Vec<u8>),
}

impl ModelFile {
    /// Opens a file, or stdin if the path is `-`; unpacks gzip and zstd.
    ///
    /// # Errors
    /// A [`SourceError`] with the file's name.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SourceError> {
        let path = path.as_ref();
        if let Some(window) = map(path).filter(|window| Step::of(window) == Step::Read) {
            return Ok(Self { name: path.display().to_string(), bytes: Bytes::Mapped(window) });
        }
        let Source { name, bytes } = Source::open(path)?;
        Ok(Self { name, bytes: Bytes::Read(bytes) })
    }

    /// The content.
    pub fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Mapped(window) => window,
            Bytes::Read(bytes) => bytes,
        }
    }
}

/// A file that has bytes and can be mapped; what cannot is for [`Source::open`] to read, or to complain about.
fn map(path: &Path) -> Option<Window> {
    if path.as_os_str() == "-" {
        return None;
    }
    let file = File::open(path).ok()?;
    let about = file.metadata().ok().filter(|about| about.is_file() && about.len() > 0)?;
    Window::open(&file, 0, usize::try_from(about.len()).ok()?).ok()
}
