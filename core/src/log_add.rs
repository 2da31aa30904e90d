//! Sums of exponentials in fixed point: `log(e^a + e^b)` by a table.

/// `log(1 + e^{-d·u})` in units `u`, for differences `d` that are cut into steps of `2^shift` units: the value in the middle
/// of each step. Beyond the last step it is 0.
///
/// ```
/// use gibbsite_core::log_add::LogAdd;
/// // One step of 4 units, of which each is worth ½: log(1 + e^-¾) = 0.39 at its middle is 1 unit, rounded.
/// let table = LogAdd::open(&[2, 1]).unwrap();
/// assert_eq!((table.add(7, 5), table.add(7, 1)), (8, 7));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct LogAdd<'a> {
    shift: u32,
    /// Two in a word.
    values: &'a [u32],
}

impl<'a> LogAdd<'a> {
    /// The words of an image: `shift`, then packed 16 bits. Nothing if there are none, or the steps are too large for 32 bits.
    pub fn open(section: &'a [u32]) -> Option<Self> {
        let (&shift, values) = section.split_first()?;
        (shift < 31).then_some(Self { shift, values })
    }

    /// `log(e^a + e^b)`.
    #[inline]
    pub fn add(&self, a: i32, b: i32) -> i32 {
        let (high, low) = if a < b { (b, a) } else { (a, b) };
        let step = (high.wrapping_sub(low) as u32 >> (self.shift & 31)) as usize;
        let more = self.values.get(step >> 1).map_or(0, |w| (w >> ((step & 1) << 4)) & 0xffff);
        high.wrapping_add(more as i32)
    }
}
