//! From the name of an attribute to its number.

use super::packed::Texts;
use core::cmp::Ordering;

/// The hash of a name: FNV-1a from `seed`, then the finaliser of MurmurHash3, so that all bits depend on all bytes.
///
/// ```
/// use gibbsite_core::image::hash;
/// assert_ne!(hash(0, b"w=valve"), hash(0, b"w=valves"));
/// assert_ne!(hash(0, b"w=valve"), hash(1, b"w=valve"));
/// ```
pub fn hash(seed: u32, name: &[u8]) -> u32 {
    let mut h = seed ^ 0x811c_9dc5;
    for &b in name {
        h = (h ^ u32::from(b)).wrapping_mul(0x0100_0193);
    }
    h ^= h >> 16;
    h = h.wrapping_mul(0x85eb_ca6b);
    h ^= h >> 13;
    h = h.wrapping_mul(0xc2b2_ae35);
    h ^ h >> 16
}

/// Whether a section holds a seed and the hashes of all attributes, strictly ascending: an attribute's number is its place
/// among them.
pub(crate) fn is_good(section: &[u32], attributes: usize) -> bool {
    let Some((_, hashes)) = section.split_first() else { return false };
    let mut rest = hashes.iter();
    let mut last = rest.next().copied().unwrap_or(0);
    let mut good = hashes.len() == attributes;
    for &h in rest {
        good &= last < h;
        last = h;
    }
    good
}

/// The number of an attribute. A name that the model does not have is taken for one of its `n` attributes with probability
/// `n/2³²`, or never if the names are stored.
pub(crate) fn find(section: &[u32], names: Option<Texts<'_>>, name: &[u8]) -> Option<u32> {
    let (&seed, hashes) = section.split_first()?;
    let wanted = hash(seed, name);
    // At most 32 halvings; `binary_search` would do, but may panic for all the compiler knows.
    let (mut low, mut high) = (0, hashes.len());
    while low < high {
        let middle = low + (high - low) / 2;
        match hashes.get(middle)?.cmp(&wanted) {
            Ordering::Less => low = middle + 1,
            Ordering::Greater => high = middle,
            Ordering::Equal => {
                let same = |names: Texts<'_>| {
                    names.get(middle).is_some_and(|n| n.len() == name.len() && n.eq(name.iter().copied()))
                };
                return names.is_none_or(same).then_some(middle as u32);
            }
        }
    }
    None
}
