//! Whole numbers in as few bytes as they need: seven bits a byte, the lowest first, the top bit set on all but the last (LEB128).

use super::container::ModelError;

/// Appends a number.
pub(super) fn write(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Numbers one after the other.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl Reader<'_> {
    /// The next number, if it fits.
    pub(super) fn next(&mut self) -> Result<u32, ModelError> {
        let mut number = 0u64;
        for shift in (0..35).step_by(7) {
            let (&byte, rest) = self.0.split_first().ok_or(ModelError::Truncated)?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return u32::try_from(number)
                    .map_err(|_| ModelError::Content("a number is too large".into()));
            }
        }
        Err(ModelError::Content("a number is too long".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive() {
        let numbers = [0, 1, 127, 128, 300, 65_535, u32::MAX];
        let mut bytes = Vec::new();
        numbers.iter().for_each(|&n| write(&mut bytes, n.into()));
        let mut reader = Reader(&bytes);
        assert_eq!(numbers.map(|_| reader.next().unwrap()), numbers);
        assert!(reader.next().is_err());
        assert!(Reader(&[0xff; 9]).next().is_err());
        assert!(Reader(&[0xff, 0xff, 0xff, 0xff, 0x7f]).next().is_err());
    }
}
