//! Leaving out rare attributes.

use super::dictionary::Dictionary;
use super::store::Lists;

/// Takes out what occurs fewer than `least` times; what stays is numbered anew in its order. Says how many different attributes
/// and how many occurrences went.
pub(super) fn drop_rare(
    lists: &mut Lists,
    values: Option<&mut Vec<f64>>,
    names: &mut Dictionary,
    least: u64,
) -> (usize, usize) {
    let mut counts = vec![0u64; names.len()];
    lists.ids.iter().for_each(|&id| counts[id as usize] += 1);
    if counts.iter().all(|&count| count >= least) {
        return (0, 0);
    }
    const GONE: u32 = u32::MAX;
    let mut kept = Dictionary::new();
    let numbers: Vec<u32> = (names.iter().zip(&counts))
        .map(|(name, &count)| if count >= least { kept.intern(name) } else { GONE })
        .collect();
    let mut end = 0;
    let mut values = values;
    let mut start = 0;
    for list in 1..lists.starts.len() {
        let old = lists.starts[list];
        for at in start..old {
            let id = numbers[lists.ids[at] as usize];
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
    let gone = lists.ids.len() - end;
    lists.ids.truncate(end);
    lists.ids.shrink_to_fit();
    if let Some(values) = values {
        values.truncate(end);
        values.shrink_to_fit();
    }
    let different = names.len() - kept.len();
    *names = kept;
    (different, gone)
}
