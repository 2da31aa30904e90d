//! Sequences in a file instead of memory: written block by block while a text is read, and mapped block by block in every pass over them.
//!
//! ```text
//! a block          all numbers little-endian, 32 bits but for values
//! S                how many items each sequence has
//! T                what is known about the label of each item
//! T, E             how many attributes each item has; the attributes
//! T, B             the same of edges, if some edge of the block has one
//! E                values of the attributes (f64), if some value of the block is not 1
//! ```
//!
//! The file is only for the process that wrote it: nothing in it is checked again.

use super::super::dataset::ReadError;
use super::store::{Gold, Lists, Sequences};
use crate::data::mapped::Window;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::ops::Range;
use std::sync::OnceLock;

/// Sequences in a file of ours. See [`read_spilled`](super::read_spilled).
#[derive(Debug)]
pub struct Spilled {
    file: File,
    blocks: Vec<Block>,
    sets: Vec<Vec<u32>>,
    failed: OnceLock<String>,
}

/// Where some sequences are, and how many of what.
#[derive(Clone, Copy, Debug)]
struct Block {
    offset: u64,
    /// Sequences in front of it.
    first: usize,
    sequences: usize,
    items: usize,
    entries: usize,
    edges: usize,
    weighted: bool,
}

impl Block {
    fn words(&self) -> usize {
        let edges = if self.edges > 0 { self.items + self.edges } else { 0 };
        self.sequences + 2 * self.items + self.entries + edges
    }

    fn bytes(&self) -> usize {
        4 * self.words() + if self.weighted { 8 * self.entries } else { 0 }
    }
}

/// Takes sequences as they come.
pub(super) struct Spill {
    file: io::BufWriter<File>,
    blocks: Vec<Block>,
    written: u64,
}

impl Spill {
    pub(super) fn new(file: File) -> Self {
        Self { file: io::BufWriter::with_capacity(1 << 18, file), blocks: Vec::new(), written: 0 }
    }

    /// Appends sequences as a block.
    pub(super) fn push(&mut self, part: &Sequences) -> Result<(), ReadError> {
        self.write(part).map_err(unwritten)
    }

    fn write(&mut self, part: &Sequences) -> io::Result<()> {
        if part.is_empty() {
            return Ok(());
        }
        let first = self.blocks.last().map_or(0, |b| b.first + b.sequences);
        let block = Block {
            offset: self.written,
            first,
            sequences: part.len(),
            items: part.items(),
            entries: part.attributes.ids.len(),
            edges: part.edges.ids.len(),
            weighted: part.values.is_some(),
        };
        self.written += block.bytes() as u64;
        self.blocks.push(block);
        let mut put = |word: u32| self.file.write_all(&word.to_le_bytes());
        for ends in part.starts.windows(2) {
            put(length(ends[1] - ends[0])?)?;
        }
        part.gold.iter().try_for_each(|gold| put(gold.word()))?;
        for lists in
            [Some(&part.attributes), Some(&part.edges).filter(|_| block.edges > 0)].into_iter().flatten()
        {
            lists.starts.windows(2).try_for_each(|ends| put(length(ends[1] - ends[0])?))?;
            lists.ids.iter().try_for_each(|&id| put(id))?;
        }
        let values = part.values.iter().flatten();
        values.into_iter().try_for_each(|value| self.file.write_all(&value.to_le_bytes()))
    }

    pub(super) fn finish(self, sets: Vec<Vec<u32>>) -> Result<Spilled, ReadError> {
        let file = self.file.into_inner().map_err(|e| unwritten(e.into_error()))?;
        Ok(Spilled { file, blocks: self.blocks, sets, failed: OnceLock::new() })
    }
}

fn unwritten(error: io::Error) -> ReadError {
    ReadError::Whole(format!("cannot write the temporary file for its sequences: {error}"))
}

fn unread(error: io::Error) -> ReadError {
    ReadError::Whole(format!("cannot read the temporary file for its sequences: {error}"))
}

fn length(n: usize) -> io::Result<u32> {
    u32::try_from(n).map_err(|_| io::Error::other("a sequence of more than 2^32 items"))
}

impl Spilled {
    /// How many sequences there are.
    pub fn len(&self) -> usize {
        self.blocks.last().map_or(0, |b| b.first + b.sequences)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many items there are in all sequences.
    pub fn items(&self) -> usize {
        self.blocks.iter().map(|b| b.items).sum()
    }

    /// Why sequences could not be read back, if that happened.
    pub fn failure(&self) -> Option<&str> {
        self.failed.get().map(String::as_str)
    }

    /// Shows all sequences of a range in order, as those of a few [`Sequences`]; `false` if they cannot be read back.
    fn visit(&self, range: Range<usize>, each: &mut dyn FnMut(&Sequences, Range<usize>)) -> bool {
        let first = self.blocks.partition_point(|b| b.first + b.sequences <= range.start);
        for block in self.blocks[first..].iter().take_while(|b| b.first < range.end) {
            let part = match self.load(block) {
                Ok(part) => part,
                Err(error) => {
                    self.failed.get_or_init(|| error.to_string());
                    return false;
                }
            };
            let own = range.start.max(block.first)..range.end.min(block.first + block.sequences);
            each(&part, own.start - block.first..own.end - block.first);
        }
        true
    }

    /// Shows all blocks.
    pub(super) fn each(&self, each: &mut dyn FnMut(&Sequences)) -> Result<(), ReadError> {
        self.blocks.iter().try_for_each(|block| {
            each(&self.load(block).map_err(unread)?);
            Ok(())
        })
    }

    /// Changes all blocks, none of which gets longer: each is written again, at the latest where it was, so that none is lost before it is read.
    pub(super) fn rewrite(&mut self, change: &mut dyn FnMut(&mut Sequences)) -> Result<(), ReadError> {
        let mut file = self.file.try_clone().map_err(unwritten)?;
        file.rewind().map_err(unwritten)?;
        let mut spill = Spill::new(file);
        for block in &self.blocks {
            let mut part = self.load(block).map_err(unread)?;
            change(&mut part);
            spill.push(&part)?;
            // The next block is read from the file.
            spill.file.flush().map_err(unwritten)?;
        }
        let end = spill.written;
        let sets = std::mem::take(&mut self.sets);
        *self = spill.finish(sets)?;
        self.file.set_len(end).map_err(unwritten)
    }

    fn load(&self, block: &Block) -> io::Result<Sequences> {
        let bytes = Window::open(&self.file, block.offset, block.bytes())?;
        let (words, values) = bytes.split_at(4 * block.words());
        let mut words = words.as_chunks::<4>().0.iter().map(|&word| u32::from_le_bytes(word));
        let starts = |count: usize, words: &mut dyn Iterator<Item = u32>| {
            let mut end = 0;
            let ends = words.take(count).map(|n| {
                end += n as usize;
                end
            });
            std::iter::once(0).chain(ends).collect::<Vec<usize>>()
        };
        let own = starts(block.sequences, &mut words);
        let gold = words.by_ref().take(block.items).map(Gold::of_word).collect();
        let lists = |entries: usize, words: &mut dyn Iterator<Item = u32>| Lists {
            starts: starts(block.items, words),
            ids: words.take(entries).collect(),
        };
        let attributes = lists(block.entries, &mut words);
        let edges = if block.edges > 0 { lists(block.edges, &mut words) } else { Lists::default() };
        let values = values.as_chunks::<8>().0.iter().map(|&value| f64::from_le_bytes(value));
        let values = block.weighted.then(|| values.collect());
        Ok(Sequences { starts: own, gold, sets: self.sets.clone(), attributes, values, edges })
    }
}

/// Sequences in memory or in a file, for passes over all of them.
#[derive(Clone, Copy, Debug)]
pub enum Supply<'a> {
    /// In memory.
    Memory(&'a Sequences),
    /// In a file.
    File(&'a Spilled),
}

impl Supply<'_> {
    /// How many sequences there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Memory(all) => all.len(),
            Self::File(all) => all.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many items there are in all sequences.
    pub fn items(&self) -> usize {
        match self {
            Self::Memory(all) => all.items(),
            Self::File(all) => all.items(),
        }
    }

    /// Shows the sequences of a range in order, each as one of some [`Sequences`]; `false` if they cannot be read.
    pub fn visit(&self, range: Range<usize>, each: &mut dyn FnMut(&Sequences, Range<usize>)) -> bool {
        match self {
            Self::Memory(all) => {
                each(all, range);
                true
            }
            Self::File(all) => all.visit(range, each),
        }
    }

    /// Why sequences could not be read, if that happened.
    pub fn failure(&self) -> Option<&str> {
        match self {
            Self::Memory(_) => None,
            Self::File(all) => all.failure(),
        }
    }
}
