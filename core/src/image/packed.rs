//! Small numbers packed into words, the first in the lowest bits, and texts made of them.

use core::iter::FusedIterator;

/// Words that hold `count` numbers, `2^shift` of them each. A shift, because small cores cannot divide.
pub(crate) const fn packed_len(count: usize, shift: u32) -> usize {
    let shift = if shift > 2 { 2 } else { shift };
    count.saturating_add((1 << shift) - 1) >> shift
}

/// The byte at a place; 0 beyond the end.
#[inline]
pub(crate) fn byte(words: &[u32], at: usize) -> u8 {
    words.get(at >> 2).map_or(0, |word| (word >> ((at & 3) << 3)) as u8)
}

/// The 16 bits at a place; 0 beyond the end.
#[inline]
pub(crate) fn short(words: &[u32], at: usize) -> u16 {
    words.get(at >> 1).map_or(0, |word| (word >> ((at & 1) << 4)) as u16)
}

/// The bytes of a name, for those who want to compare or print it.
#[derive(Clone, Debug)]
pub struct Text<'a> {
    words: &'a [u32],
    at: usize,
    end: usize,
}

impl Iterator for Text<'_> {
    type Item = u8;

    #[inline]
    fn next(&mut self) -> Option<u8> {
        if self.at >= self.end {
            return None;
        }
        self.at += 1;
        Some(byte(self.words, self.at - 1))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.end.saturating_sub(self.at);
        (left, Some(left))
    }
}

impl ExactSizeIterator for Text<'_> {}
impl FusedIterator for Text<'_> {}

/// Several texts: where each begins (and where the last ends), then the bytes of all.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Texts<'a> {
    starts: &'a [u32],
    bytes: &'a [u32],
}

impl<'a> Texts<'a> {
    /// Of `count` texts, checked: starts ascend from 0, and the bytes are there.
    pub(crate) fn open(section: &'a [u32], count: usize) -> Option<Self> {
        let (starts, bytes) = section.split_at_checked(count.checked_add(1)?)?;
        let end = ascending(starts)?;
        (packed_len(end as usize, 2) == bytes.len()).then_some(Self { starts, bytes })
    }

    /// The same, checked already.
    pub(crate) fn known(section: &'a [u32], count: usize) -> Option<Self> {
        section.split_at_checked(count.checked_add(1)?).map(|(starts, bytes)| Self { starts, bytes })
    }

    pub(crate) fn get(&self, i: usize) -> Option<Text<'a>> {
        let (&at, &end) = (self.starts.get(i)?, self.starts.get(i.checked_add(1)?)?);
        Some(Text { words: self.bytes, at: at as usize, end: end as usize })
    }
}

/// Offsets that begin at 0 and never fall: the last one.
pub(crate) fn ascending(starts: &[u32]) -> Option<u32> {
    let mut last = 0;
    if starts.first() != Some(&0) {
        return None;
    }
    let mut falls = false;
    for &start in starts {
        falls |= start < last;
        last = start;
    }
    if falls { None } else { Some(last) }
}
