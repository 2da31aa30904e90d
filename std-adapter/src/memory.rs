//! Large zeroed tables. Beyond a few mebibytes they are mapped as huge pages where the system offers them: first touch
//! and address translation of 4 KiB pages would otherwise take as long as the arithmetic.

use memmap2::MmapMut;

/// Zeroed memory for `f64` tables.
///
/// ```
/// let mut table = gibbsite::memory::Reals::zeroed(3);
/// table.slice()[1] = 2.0;
/// assert_eq!(table.slice(), &[0.0, 2.0, 0.0]);
/// ```
#[derive(Debug)]
pub struct Reals(Kind);

#[derive(Debug)]
enum Kind {
    Heap(Vec<f64>),
    Mapped(MmapMut),
}

/// Bytes from which on a table is mapped.
const LARGE: usize = 4 << 20;

impl Reals {
    /// `len` zeros.
    pub fn zeroed(len: usize) -> Self {
        let bytes = len.saturating_mul(size_of::<f64>());
        if bytes >= LARGE
            && let Ok(map) = MmapMut::map_anon(bytes)
        {
            // A refusal costs speed only.
            #[cfg(target_os = "linux")]
            let _ = map.advise(memmap2::Advice::HugePage);
            return Self(Kind::Mapped(map));
        }
        Self(Kind::Heap(vec![0.0; len]))
    }

    /// The entries.
    pub fn slice(&mut self) -> &mut [f64] {
        match &mut self.0 {
            Kind::Heap(vec) => vec,
            Kind::Mapped(map) => bytemuck::cast_slice_mut(map),
        }
    }
}
