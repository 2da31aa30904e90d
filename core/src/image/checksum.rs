//! The checksum of an image: a CRC of 31 bits.

/// The remainder of the image's words, as one polynomial over GF(2) with the first word highest, modulo `x³¹ + x³ + 1`.
///
/// Why this polynomial: it is primitive (irreducible, and 2³¹ - 1 is prime), so any two flipped bits within 256 MiB and any
/// burst of up to 31 bits are seen, and other damage with probability `1 - 2⁻³¹`. And it is sparse: `x³² = x·(x³ + 1)`, so
/// a whole word is taken in four instructions and no table is needed, where a CRC-32 needs 1 KiB of flash or forty
/// instructions. The price: some patterns of three flipped bits more than 28 bits apart are not seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checksum {
    /// Congruent to the remainder, with a 32nd bit that [`finish`](Self::finish) reduces.
    state: u32,
}

impl Checksum {
    /// Takes further words.
    #[inline]
    pub fn add(&mut self, words: &[u32]) {
        // s·x³² = s·(x⁴ + x). What that pushes out of 32 bits, s >> 28 and s >> 31, is again to be multiplied by it.
        let next = |s: u32, word: u32| {
            let t = s ^ (s >> 28) ^ (s >> 31);
            word ^ (t << 4) ^ (t << 1)
        };
        let mut s = self.state;
        let (fours, rest) = words.as_chunks::<4>();
        for &[a, b, c, d] in fours {
            s = next(next(next(next(s, a), b), c), d);
        }
        self.state = rest.iter().fold(s, |s, &word| next(s, word));
    }

    /// The remainder.
    #[inline]
    pub fn finish(self) -> u32 {
        // x³¹ = x³ + 1.
        let top = self.state >> 31;
        (self.state & (u32::MAX >> 1)) ^ (top << 3) ^ top
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Long division, bit by bit.
    fn divided(words: &[u32]) -> u32 {
        let mut rest = 0u32;
        for word in words {
            for bit in (0..32).rev() {
                rest = rest << 1 | word >> bit & 1;
                if rest >> 31 == 1 {
                    rest ^= 1 << 31 | 0b1001;
                }
            }
        }
        rest
    }

    #[test]
    fn it_is_the_remainder_of_a_long_division() {
        let mut x = 1u32;
        let words: [u32; 40] = core::array::from_fn(|_| {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            x ^ x >> 13
        });
        for end in 0..=words.len() {
            let (part, _) = words.split_at_checked(end).unwrap_or((&[], &[]));
            let mut sum = Checksum::default();
            sum.add(part);
            assert_eq!(sum.finish(), divided(part), "{end} words");
        }
    }
}
