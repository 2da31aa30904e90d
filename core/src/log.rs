//! Remarks through `defmt`, if the feature is on; otherwise nothing, not a byte.

/// Scores of an item went beyond what fixed point holds and were cut off.
#[inline(always)]
pub(crate) fn saturated() {
    #[cfg(feature = "defmt")]
    defmt::warn!("gibbsite: the scores of an item were cut off");
}

/// A sequence is longer than memory was planned for.
#[inline(always)]
pub(crate) fn too_long(_longest: usize) {
    #[cfg(feature = "defmt")]
    defmt::warn!("gibbsite: a sequence has more than {=usize} items", _longest);
}
