//! Strings and their numbers, in one piece of memory.

use std::fmt;

/// Strings numbered 0, 1, … in the order in which they came.
///
/// All strings lie one after the other in one arena; `ends[i]` is where string `i` ends. The way back, from a string to its
/// number, is a table with open addressing (linear probing, at most half full) of pairs (32 bits of hash, number). The table is
/// no part of what is stored: arena and ends are enough to build it again.
///
/// Something that only has a `&Dictionary` sees a frozen one.
///
/// ```
/// use gibbsite::data::sequences::Dictionary;
/// let mut names = Dictionary::new();
/// assert_eq!([names.intern("B-NP"), names.intern("O"), names.intern("B-NP")], [0, 1, 0]);
/// assert_eq!((names.get("O"), names.get("I-NP"), names.name(0)), (Some(1), None, Some("B-NP")));
/// let (arena, ends) = names.parts();
/// assert_eq!(Dictionary::from_parts(arena.into(), ends.into()).unwrap(), names);
/// ```
#[derive(Clone, Default)]
pub struct Dictionary {
    arena: String,
    ends: Vec<u64>,
    /// A power of two of them, or none.
    slots: Vec<Slot>,
}

#[derive(Clone, Copy)]
struct Slot {
    hash: u32,
    /// `EMPTY` if there is none.
    id: u32,
}

const EMPTY: u32 = u32::MAX;
/// What [`Dictionary::get_all`] gives for strings that are not there.
pub(super) const MISSING: u32 = EMPTY;
/// How many strings it looks up at a time.
pub(super) const BATCH: usize = 16;
const NO_SLOT: Slot = Slot { hash: 0, id: EMPTY };

/// Why arena and ends are no dictionary.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DictionaryError {
    /// The arena is not UTF-8.
    NotText,
    /// String `id` does not end behind its start, within the arena and between two characters; or the last one does not end
    /// where the arena does.
    BadEnd {
        /// Which string.
        id: usize,
    },
    /// Two strings are the same.
    Twice {
        /// The string.
        name: String,
    },
    /// There are more than 2³² - 1 strings.
    TooMany,
}

impl fmt::Display for DictionaryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotText => f.write_str("a dictionary whose text is not UTF-8"),
            Self::BadEnd { id } => write!(f, "a dictionary whose entry {id} has no legal end"),
            Self::Twice { name } => write!(f, "a dictionary that has `{}` twice", name.escape_debug()),
            Self::TooMany => f.write_str("a dictionary with more than 2^32 - 1 entries"),
        }
    }
}

impl std::error::Error for DictionaryError {}

impl Dictionary {
    /// Without strings.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many strings there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The number of a string; `None` if it is not here.
    #[inline]
    pub fn get(&self, name: &str) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        self.find(hash(name.as_bytes()), name.as_bytes()).ok()
    }

    /// The number of a string with that hash, or the empty slot where it belongs. There must be slots.
    #[inline(always)]
    fn find(&self, hash: u32, name: &[u8]) -> Result<u32, usize> {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot.id == EMPTY {
                return Err(at);
            }
            if slot.hash == hash && self.bytes_of(slot.id as usize) == name {
                return Ok(slot.id);
            }
            at = (at + 1) & mask;
        }
    }

    /// The number of a string, which is put here if it is new.
    ///
    /// # Panics
    /// If there are 2³² - 1 strings, which take more than 64 GiB.
    #[inline]
    pub fn intern(&mut self, name: &str) -> u32 {
        if self.ends.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let hash = hash(name.as_bytes());
        let at = match self.find(hash, name.as_bytes()) {
            Ok(id) => return id,
            Err(at) => at,
        };
        let id = self.ends.len();
        assert!(id < EMPTY as usize, "2^32 - 1 strings in a dictionary");
        self.slots[at] = Slot { hash, id: id as u32 };
        self.arena.push_str(name);
        self.ends.push(self.arena.len() as u64);
        id as u32
    }

    /// The numbers of strings, [`MISSING`] for those that are not here.
    ///
    /// In a large dictionary a lookup waits for memory three times: for the slot, for the ends, for the string. Here all strings
    /// take each step together, so that their waits overlap.
    pub(super) fn get_all(&self, names: &[&str; BATCH], numbers: &mut [u32; BATCH]) {
        *numbers = [MISSING; BATCH];
        if self.slots.is_empty() {
            return;
        }
        let mask = self.slots.len() - 1;
        let hashes: [u32; BATCH] = std::array::from_fn(|k| hash(names[k].as_bytes()));
        // The first slot is seldom the wrong one, and the next ones mostly lie in the same line of the cache.
        let slots: [Slot; BATCH] = std::array::from_fn(|k| self.slots[hashes[k] as usize & mask]);
        for k in 0..BATCH {
            let (mut slot, mut at) = (slots[k], hashes[k] as usize & mask);
            while slot.id != EMPTY && slot.hash != hashes[k] {
                at = (at + 1) & mask;
                slot = self.slots[at];
            }
            numbers[k] = slot.id;
        }
        let spans: [(usize, usize); BATCH] = std::array::from_fn(|k| match numbers[k] {
            EMPTY => (0, 0),
            id => (self.start(id as usize), self.ends[id as usize] as usize),
        });
        let strings: [&[u8]; BATCH] = std::array::from_fn(|k| &self.arena.as_bytes()[spans[k].0..spans[k].1]);
        let mut touched = 0;
        for string in strings {
            touched ^= string.first().copied().unwrap_or(0);
        }
        std::hint::black_box(touched);
        for k in 0..BATCH {
            if numbers[k] != EMPTY && strings[k] != names[k].as_bytes() {
                // Another string with the same 32 bits.
                numbers[k] = self.get(names[k]).unwrap_or(MISSING);
            }
        }
    }

    /// The string of a number; `None` if there are fewer strings.
    #[inline]
    pub fn name(&self, id: u32) -> Option<&str> {
        let id = id as usize;
        let end = *self.ends.get(id)? as usize;
        self.arena.get(self.start(id)..end)
    }

    /// All strings in the order of their numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let name = &self.arena[start..end as usize];
            start = end as usize;
            name
        })
    }

    /// The strings one after the other, and where each of them ends.
    pub fn parts(&self) -> (&[u8], &[u64]) {
        (self.arena.as_bytes(), &self.ends)
    }

    /// A dictionary out of what [`parts`](Self::parts) gave, which may come from a file and is checked.
    ///
    /// # Errors
    /// A [`DictionaryError`]: no text, ends that are none, a string that is there twice.
    pub fn from_parts(arena: Vec<u8>, ends: Vec<u64>) -> Result<Self, DictionaryError> {
        let arena = String::from_utf8(arena).map_err(|_| DictionaryError::NotText)?;
        if ends.len() >= EMPTY as usize {
            return Err(DictionaryError::TooMany);
        }
        let mut start = 0;
        for (id, &end) in ends.iter().enumerate() {
            match usize::try_from(end) {
                Ok(end) if start <= end && arena.is_char_boundary(end) => start = end,
                _ => return Err(DictionaryError::BadEnd { id }),
            }
        }
        if start != arena.len() {
            return Err(DictionaryError::BadEnd { id: ends.len().saturating_sub(1) });
        }
        let mut dictionary = Self { arena, ends, slots: Vec::new() };
        dictionary.slots = vec![NO_SLOT; (dictionary.len() * 2 + 1).next_power_of_two().max(LEAST)];
        for id in 0..dictionary.len() {
            let hash = hash(dictionary.bytes_of(id));
            let at = match dictionary.find(hash, dictionary.bytes_of(id)) {
                Ok(twin) => {
                    let name = dictionary.name(twin).unwrap_or_default().to_owned();
                    return Err(DictionaryError::Twice { name });
                }
                Err(at) => at,
            };
            dictionary.slots[at] = Slot { hash, id: id as u32 };
        }
        Ok(dictionary)
    }

    /// How much memory it takes.
    pub fn bytes(&self) -> usize {
        self.arena.capacity()
            + self.ends.capacity() * size_of::<u64>()
            + self.slots.capacity() * size_of::<Slot>()
    }

    fn start(&self, id: usize) -> usize {
        if id == 0 { 0 } else { self.ends[id - 1] as usize }
    }

    #[inline]
    fn bytes_of(&self, id: usize) -> &[u8] {
        &self.arena.as_bytes()[self.start(id)..self.ends[id] as usize]
    }

    /// Doubles the table. The stored 32 bits decide where a slot goes, so strings are not looked at.
    #[cold]
    fn grow(&mut self) {
        let old = std::mem::take(&mut self.slots);
        self.slots = vec![NO_SLOT; (old.len() * 2).max(LEAST)];
        let mask = self.slots.len() - 1;
        for slot in old.into_iter().filter(|slot| slot.id != EMPTY) {
            let mut at = slot.hash as usize & mask;
            while self.slots[at].id != EMPTY {
                at = (at + 1) & mask;
            }
            self.slots[at] = slot;
        }
    }
}

/// Slots of the smallest table.
const LEAST: usize = 16;

impl PartialEq for Dictionary {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for Dictionary {}

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a> FromIterator<&'a str> for Dictionary {
    fn from_iter<I: IntoIterator<Item = &'a str>>(names: I) -> Self {
        let mut dictionary = Self::new();
        for name in names {
            dictionary.intern(name);
        }
        dictionary
    }
}

/// 32 bits of a hash: 16 bytes at a time through a multiplication of 64 by 64 bits whose halves are joined (the scheme of
/// wyhash, Wang Yi 2019). Strings of up to 16 bytes, which most attributes are, take one or two of them.
#[inline(always)]
fn hash(bytes: &[u8]) -> u32 {
    const K: [u64; 3] = [0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db, 0x8ebc_6af0_9c88_c6e3];
    #[inline(always)]
    fn mix(a: u64, b: u64) -> u64 {
        let product = u128::from(a) * u128::from(b);
        product as u64 ^ (product >> 64) as u64
    }
    let mut state = K[0] ^ bytes.len() as u64;
    let mut rest = bytes;
    while rest.len() > 16
        && let Some((a, after)) = rest.split_first_chunk::<8>()
        && let Some((b, after)) = after.split_first_chunk::<8>()
    {
        state = mix(u64::from_le_bytes(*a) ^ K[1], u64::from_le_bytes(*b) ^ state);
        rest = after;
    }
    // The first and the last bytes of what is left; they overlap, which the length tells apart.
    let (a, b) = if let (Some(a), Some(b)) = (rest.first_chunk::<8>(), rest.last_chunk::<8>()) {
        (u64::from_le_bytes(*a), u64::from_le_bytes(*b))
    } else if let (Some(a), Some(b)) = (rest.first_chunk::<4>(), rest.last_chunk::<4>()) {
        (u64::from(u32::from_le_bytes(*a)), u64::from(u32::from_le_bytes(*b)))
    } else {
        (rest.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)), 0)
    };
    let word = mix(a ^ K[1] ^ state, b ^ K[2]);
    (word ^ word >> 32) as u32
}

/// The dictionaries of a model: what labels and attributes are called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alphabet {
    /// Labels.
    pub labels: Dictionary,
    /// Attributes of items.
    pub attributes: Dictionary,
    /// Attributes of edges between neighbouring items, from `B` templates with macros.
    pub edge_attributes: Dictionary,
}
