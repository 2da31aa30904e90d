//! Sums of exponentials in fixed point: `log(e^a + e^b)` by a table.

/// `log(1 + e^{-d·u})` in units `u`, for differences `d` at every `2^shift` units, with straight lines in between; beyond the last it falls to 0.
///
/// **Error.** A sum of two is off by at most `e = (2^shift)² u/32 + 3/2` units: a line between points `h` apart is above a convex function by at most `h²/8` times its second derivative, here
/// at most ¼; an entry is rounded by ½, and the line's place by 1. Log-sum-exp does not enlarge errors of its terms, so a sum of `n` is off by at most `(n-1)·e`.
///
/// ```
/// use gibbsite_core::log_add::LogAdd;
/// // Units of 1/10, every 8 of them: log 2 is 7 units, log(1 + e^-0.8) is 4, log(1 + e^-1.6) is 2.
/// let table = LogAdd::open(&[3, 4 << 16 | 7, 2]).unwrap();
/// assert_eq!((table.add(50, 50), table.add(46, 50), table.add(0, 50)), (57, 56, 50));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct LogAdd<'a> {
    shift: u32,
    /// Two in a word.
    values: &'a [u32],
}

impl<'a> LogAdd<'a> {
    /// The words of an image: `shift`, then packed 16 bits. Nothing if there are none, or the steps are longer than 2¹⁵.
    pub fn open(section: &'a [u32]) -> Option<Self> {
        let (&shift, values) = section.split_first()?;
        (shift <= 15).then_some(Self { shift, values })
    }

    /// `log(e^a + e^b)`.
    // A device has little stack for what this works with, wherever it stands.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline)]
    pub fn add(&self, a: i32, b: i32) -> i32 {
        let (high, low) = if a < b { (b, a) } else { (a, b) };
        let gap = high.wrapping_sub(low) as u32;
        let shift = self.shift & 15;
        let step = (gap >> shift) as usize;
        let (here, next) = (self.value(step), self.value(step.wrapping_add(1)));
        // Both factors have at most 16 bits, the second 15. Entries that rise, in words of who knows whom, count as level.
        let fallen = here.saturating_sub(next).wrapping_mul(gap & !(u32::MAX << shift)) >> shift;
        high.wrapping_add(here.wrapping_sub(fallen) as i32)
    }

    /// `log Σ e^x`; the least number if there are none.
    #[cfg_attr(target_os = "none", inline(never))]
    pub(crate) fn sum(&self, row: &[i32]) -> i32 {
        row.iter().fold(i32::MIN, |sum, &x| self.add(sum, x))
    }

    #[inline]
    fn value(&self, i: usize) -> u32 {
        self.values.get(i >> 1).map_or(0, |w| (w >> ((i & 1) << 4)) & 0xffff)
    }
}
