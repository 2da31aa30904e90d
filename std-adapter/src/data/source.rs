//! Opening inputs: a path or `-` for stdin, compressed or not, into memory.
//!
//! Compression is told by the first bytes, not by the name: `model.uai` may well be a gzip file, and
//! stdin has no name at all.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The bytes of an input, decompressed, and the name to call it by in messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The path as given, or `stdin`.
    pub name: String,
    /// The content.
    pub bytes: Vec<u8>,
}

/// An input that could not be read.
#[derive(Debug)]
pub struct SourceError {
    /// The path as given, or `stdin`.
    pub name: String,
    /// What was tried.
    pub step: Step,
    /// What the system or the decompressor said.
    pub cause: io::Error,
}

/// What was tried when reading an input failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Opening or reading the file.
    Read,
    /// Unpacking a gzip file.
    Gzip,
    /// Unpacking a zstd file.
    Zstd,
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.step.explain(&self.cause))
    }
}

impl Step {
    /// What happened, without the file's name.
    pub(super) fn explain(self, cause: &io::Error) -> String {
        match self {
            Self::Read => match cause.kind() {
                io::ErrorKind::NotFound => {
                    "cannot read it: there is no such file (`-` is standard input)".to_owned()
                }
                io::ErrorKind::IsADirectory => "cannot read it: it is a folder, expected a file".to_owned(),
                _ => format!("cannot read it: {cause}"),
            },
            Self::Gzip => format!("a damaged or truncated gzip file: {cause}"),
            Self::Zstd => format!("a damaged or truncated zstd file: {cause}"),
        }
    }

    /// How to unpack a file that starts with these bytes.
    pub(crate) fn of(head: &[u8]) -> Self {
        if head.starts_with(&GZIP) {
            Self::Gzip
        } else if head.starts_with(&ZSTD) {
            Self::Zstd
        } else {
            Self::Read
        }
    }
}

// Without `source`: the text above holds the cause already, and a chain would say it twice.
impl std::error::Error for SourceError {}

impl Source {
    /// Reads a whole file, or stdin if the path is `-`.
    ///
    /// # Errors
    /// A [`SourceError`] with the file's name: it cannot be opened or read, or not be unpacked.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SourceError> {
        let path = path.as_ref();
        if path.as_os_str() == "-" {
            return Self::read("stdin", io::stdin().lock());
        }
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => Self::read(&name, file),
            Err(cause) => Err(SourceError { name, step: Step::Read, cause }),
        }
    }

    /// Reads everything from `input` and unpacks it if it is a gzip or zstd file.
    ///
    /// ```
    /// use gibbsite::data::source::Source;
    /// let source = Source::read("three bytes", &b"0 1"[..])?;
    /// assert_eq!(source.bytes, b"0 1");
    /// # Ok::<(), gibbsite::data::source::SourceError>(())
    /// ```
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn read(name: &str, mut input: impl Read) -> Result<Self, SourceError> {
        let fail = |step| move |cause| SourceError { name: name.to_owned(), step, cause };
        let mut raw = Vec::new();
        input.read_to_end(&mut raw).map_err(fail(Step::Read))?;
        let mut bytes = Vec::new();
        if raw.starts_with(&GZIP) {
            // Several members one after the other are one file, as for gunzip.
            flate2::bufread::MultiGzDecoder::new(raw.as_slice())
                .read_to_end(&mut bytes)
                .map_err(fail(Step::Gzip))?;
        } else if raw.starts_with(&ZSTD) {
            zstd::stream::read::Decoder::with_buffer(raw.as_slice())
                .and_then(|mut frames| frames.read_to_end(&mut bytes))
                .map_err(fail(Step::Zstd))?;
        } else {
            bytes = raw;
        }
        Ok(Self { name: name.to_owned(), bytes })
    }
}

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn packed_and_plain_read_alike() {
        let text = b"MARKOV 0 0".repeat(1000);
        let mut members = gzip(&text[..4321]);
        members.extend(gzip(&text[4321..]));
        let mut frames = zstd::encode_all(&text[..77], 3).unwrap();
        frames.extend(zstd::encode_all(&text[77..], 3).unwrap());
        for packed in [text.clone(), gzip(&text), members, frames] {
            assert_eq!(Source::read("x", packed.as_slice()).unwrap().bytes, text);
        }
        assert_eq!(Source::read("x", io::empty()).unwrap().bytes, b"");
    }

    #[test]
    fn damage_is_named() {
        let whole = gzip(&b"MARKOV 0 0".repeat(1000));
        let error = Source::read("m.uai.gz", &whole[..whole.len() - 9]).unwrap_err();
        assert_eq!(error.step, Step::Gzip);
        assert!(error.to_string().starts_with("m.uai.gz: a damaged or truncated gzip file: "), "{error}");
        let whole = zstd::encode_all(&b"MARKOV 0 0".repeat(1000)[..], 3).unwrap();
        let error = Source::read("m.uai.zst", &whole[..whole.len() - 1]).unwrap_err();
        assert_eq!(error.step, Step::Zstd);
        let error = Source::open("/no such file.uai").unwrap_err();
        assert!(error.to_string().starts_with("/no such file.uai: cannot read it: "), "{error}");
    }
}
