//! Leaving out rare attributes.

use super::dictionary::Dictionary;
use super::store::Lists;

/// How often attributes occur, and then which of them stay.
#[derive(Debug)]
pub(super) struct Rare {
    counts: Vec<u64>,
    /// New numbers, or [`GONE`]; empty if all stay as they are.
    numbers: Vec<u32>,
}

const GONE: u32 = u32::MAX;

impl Rare {
    pub(super) fn new(names: &Dictionary) -> Self {
        Self { counts: vec![0; names.len()], numbers: Vec::new() }
    }

    /// Counts what occurs in these lists.
    pub(super) fn count(&mut self, lists: &Lists) {
        lists.ids.iter().for_each(|&id| self.counts[id as usize] += 1);
    }

    /// Takes the names of what occurs fewer than `least` times away; what stays is numbered anew in its order. Says how many different attributes and how many occurrences go.
    pub(super) fn decide(&mut self, names: &mut Dictionary, least: u64) -> (usize, usize) {
        let rare = || self.counts.iter().filter(|&&count| count < least);
        let (different, occurrences) = (rare().count(), rare().sum::<u64>() as usize);
        if different > 0 {
            let mut kept = Dictionary::new();
            self.numbers = (names.iter().zip(&self.counts))
                .map(|(name, &count)| if count >= least { kept.intern(name) } else { GONE })
                .collect();
            *names = kept;
        }
        (different, occurrences)
    }

    /// Takes what is rare out of the lists.
    pub(super) fn drop(&self, lists: &mut Lists, mut values: Option<&mut Vec<f64>>) {
        if self.numbers.is_empty() || lists.starts.is_empty() {
            return;
        }
        let (mut start, mut end) = (0, 0);
        for list in 1..lists.starts.len() {
            let old = lists.starts[list];
            for at in start..old {
                let id = self.numbers[lists.ids[at] as usize];
                if id != GONE {
                    lists.ids[end] = id;
                    if let Some(values) = &mut values {
                        values[end] = values[at];
                    }
                    end += 1;
                }
            }
            lists.starts[list] = end;
            start = old;
        }
        lists.ids.truncate(end);
        lists.ids.shrink_to_fit();
        if let Some(values) = values {
            values.truncate(end);
            values.shrink_to_fit();
        }
    }
}
