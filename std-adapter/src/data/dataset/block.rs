//! Text in blocks of whole lines: from mapped files, or from streams that are unpacked while the block before is parsed.

use super::ReadError;
use crate::data::mapped::Window;
use crate::data::source::Step;
use crate::par::Par;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Where text comes from.
pub(in crate::data) enum Input<'a> {
    /// A plain file of that length.
    Mapped(File, u64),
    /// Anything else, unpacked.
    Stream(Box<dyn Read + Send + 'a>, Step),
}

impl<'a> Input<'a> {
    /// A file, or stdin if the path is `-`.
    pub(in crate::data) fn open(path: &Path) -> Result<Self, ReadError> {
        let fail = |cause| ReadError::Source { step: Step::Read, cause };
        if path.as_os_str() == "-" {
            return Self::unpack(io::stdin());
        }
        let file = File::open(path).map_err(fail)?;
        let meta = file.metadata().map_err(fail)?;
        if meta.is_file() {
            let head = Window::open(&file, 0, meta.len().min(4) as usize);
            if head.is_ok_and(|head| Step::of(&head) == Step::Read) {
                return Ok(Self::Mapped(file, meta.len()));
            }
        }
        Self::unpack(file)
    }

    /// Unpacks gzip and zstd streams, told by their first bytes.
    pub(in crate::data) fn unpack(mut input: impl Read + Send + 'a) -> Result<Self, ReadError> {
        let fail = |step| move |cause| ReadError::Source { step, cause };
        let mut head = Vec::new();
        input.by_ref().take(4).read_to_end(&mut head).map_err(fail(Step::Read))?;
        let step = Step::of(&head);
        let whole = io::Cursor::new(head).chain(input);
        // Larger reads than the decoders' own 32 KiB.
        let whole = io::BufReader::with_capacity(1 << 18, whole);
        Ok(match step {
            Step::Read => Self::Stream(Box::new(whole), step),
            Step::Gzip => Self::Stream(Box::new(flate2::bufread::MultiGzDecoder::new(whole)), step),
            Step::Zstd => {
                let frames = zstd::stream::read::Decoder::with_buffer(whole).map_err(fail(step))?;
                Self::Stream(Box::new(frames), step)
            }
        })
    }

    /// Hands all text to `take`, in order and cut where `cut` says, in blocks of about `size` bytes, or more where a line or
    /// paragraph is longer. Streams are read ahead by one block while `take` works.
    pub(in crate::data) fn blocks(
        self,
        size: usize,
        cut: Cut,
        par: Par,
        mut take: impl FnMut(&[u8]) -> Result<(), ReadError> + Send,
    ) -> Result<(), ReadError> {
        match self {
            Self::Mapped(file, len) => {
                let fail = |cause| ReadError::Source { step: Step::Read, cause };
                let (mut at, mut window) = (0, size.max(1) as u64);
                while at < len {
                    let rest = len - at;
                    let text = Window::open(&file, at, rest.min(window) as usize).map_err(fail)?;
                    let end = if rest <= window { Some(text.len()) } else { cut.last(&text) };
                    // No cut in the window: the line or paragraph is longer than that.
                    let Some(end) = end else {
                        window = window.saturating_mul(2);
                        continue;
                    };
                    take(&text[..end])?;
                    (at, window) = (at + end as u64, size.max(1) as u64);
                }
                Ok(())
            }
            Self::Stream(input, step) => {
                let fail = |cause| ReadError::Source { step, cause };
                let mut stream = Stream { input, carry: Vec::new(), size: size.max(1), cut };
                let mut block = stream.next(Vec::new()).map_err(fail)?;
                let mut spare = Vec::new();
                while !block.is_empty() {
                    let (taken, next) = par.join(|| take(&block), || stream.next(spare));
                    taken?;
                    (spare, block) = (block, next.map_err(fail)?);
                }
                Ok(())
            }
        }
    }
}

/// Where text may be cut.
#[derive(Clone, Copy)]
pub(in crate::data) enum Cut {
    /// After line ends.
    Lines,
    /// After blank lines.
    Paragraphs,
}

impl Cut {
    /// The last place in `text`.
    fn last(self, text: &[u8]) -> Option<usize> {
        let mut end = memchr::memrchr(b'\n', text)? + 1;
        if let Self::Lines = self {
            return Some(end);
        }
        loop {
            // At the start of `text` a line may have begun before.
            let start = memchr::memrchr(b'\n', &text[..end - 1])? + 1;
            if is_blank(&text[start..end]) {
                return Some(end);
            }
            end = start;
        }
    }

    /// The first place at or behind `least`, which lies within `text`, or its end.
    fn first(self, text: &[u8], least: usize) -> usize {
        let line_end =
            |from: usize| memchr::memchr(b'\n', &text[from..]).map_or(text.len(), |at| from + at + 1);
        let mut end = line_end(least);
        if let Self::Paragraphs = self {
            while end < text.len() {
                let next = line_end(end);
                if is_blank(&text[end..next]) {
                    return next;
                }
                end = next;
            }
        }
        end
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n'))
}

struct Stream<R> {
    input: R,
    /// The start of a line or paragraph whose end has not been read.
    carry: Vec<u8>,
    size: usize,
    cut: Cut,
}

impl<R: Read> Stream<R> {
    /// The next block, in the memory of an old one; empty at the end.
    fn next(&mut self, mut block: Vec<u8>) -> io::Result<Vec<u8>> {
        block.clear();
        block.append(&mut self.carry);
        let mut want = self.size.max(block.len());
        loop {
            block.reserve_exact(want);
            let read = self.input.by_ref().take(want as u64).read_to_end(&mut block)?;
            if read == 0 {
                return Ok(block);
            }
            if let Some(end) = self.cut.last(&block) {
                self.carry.extend_from_slice(&block[end..]);
                block.truncate(end);
                return Ok(block);
            }
            want = block.len();
        }
    }
}

/// Cuts a block into chunks of about `size` bytes.
pub(in crate::data) fn chunks(mut block: &[u8], size: usize, cut: Cut) -> Vec<&[u8]> {
    let size = size.max(1);
    let mut chunks = Vec::with_capacity(block.len() / size + 1);
    while !block.is_empty() {
        let end = cut.first(block, size.min(block.len()) - 1);
        let (chunk, rest) = block.split_at(end);
        chunks.push(chunk);
        block = rest;
    }
    chunks
}
