//! Files as memory, a window at a time. The only `unsafe` of this crate, and beside `memory.rs` the only file that names
//! memmap2.

use memmap2::{Mmap, MmapOptions};
use std::fs::File;
use std::io;
use std::ops::Deref;

/// A part of a file. Its pages are given back when it is dropped, so that a reader that looks at one window after the other
/// never has more than one of them in memory.
#[derive(Debug)]
pub(crate) struct Window(Mmap);

impl Window {
    /// `len` bytes from `offset` on; both must lie within the file.
    pub(crate) fn open(file: &File, offset: u64, len: usize) -> io::Result<Self> {
        let mut options = MmapOptions::new();
        // One system call instead of a fault for every few pages.
        options.offset(offset).len(len).populate();
        // SAFETY: the mapping is private and read-only, it lives as long as the slice that `deref` lends, and only
        // plain bytes, for which every value is valid, are read from it. What remains is a file that another process
        // changes meanwhile. Readers here look at each byte through ordinary loads, check every one, and use no
        // number from the file as an unchecked index or length, so changed bytes are at worst another text or model; a file
        // that is cut short ends the process by SIGBUS, as it does for any program that maps files.
        #[allow(unsafe_code)]
        let map = unsafe { options.map(file)? };
        // A refusal costs speed only.
        #[cfg(unix)]
        let _ = map.advise(memmap2::Advice::Sequential);
        Ok(Self(map))
    }
}

impl Deref for Window {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}
