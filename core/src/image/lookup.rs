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

/// The hashes of all attributes, ascending: an attribute's number is its place among them. A name that the model does
/// not have is taken for one of its `n` attributes with probability `n/2³²`, or never if the names are stored.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lookup<'a> {
    seed: u32,
    hashes: &'a [u32],
    names: Option<Texts<'a>>,
}

impl<'a> Lookup<'a> {
    /// The section holds the seed and the hashes, which must ascend strictly.
    pub(crate) fn open(section: &'a [u32], attributes: usize, names: Option<Texts<'a>>) -> Option<Self> {
        let (&seed, hashes) = section.split_first()?;
        let mut rest = hashes.iter();
        let mut last = rest.next().copied();
        for &h in rest {
            if last >= Some(h) {
                return None;
            }
            last = Some(h);
        }
        (hashes.len() == attributes).then_some(Self { seed, hashes, names })
    }

    pub(crate) fn exact(&self) -> bool {
        self.names.is_some()
    }

    pub(crate) fn names(&self) -> Option<Texts<'a>> {
        self.names
    }

    pub(crate) fn find(&self, name: &[u8]) -> Option<u32> {
        let wanted = hash(self.seed, name);
        // At most 32 halvings; `binary_search` would do, but may panic for all the compiler knows.
        let (mut low, mut high) = (0, self.hashes.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.hashes.get(middle)?.cmp(&wanted) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => {
                    let same = |names: Texts<'a>| {
                        names.get(middle).is_some_and(|n| n.len() == name.len() && n.eq(name.iter().copied()))
                    };
                    return self.names.is_none_or(same).then_some(middle as u32);
                }
            }
        }
        None
    }
}
