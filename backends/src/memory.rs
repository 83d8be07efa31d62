//! Memory of the transfers: one period of the data stream plus one call, laid out before the clock.

use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::MmapMut;

/// Number of the next ring of this process.
static NEXT_ID: AtomicU64 = AtomicU64::new(0);

/// Mapped behind the overhang: a direct read may end at a sector behind the last byte of its window.
pub const SLACK_BYTES: u64 = 8192;

/// A buffer in which the bytes of any access already lie as a window.
///
/// The stream of a rank repeats after `period_bytes`; the buffer holds one period and, behind it, the beginning of
/// the next, as long as the largest call. The bytes of an access at stream position p are the window at
/// `p % period_bytes`: no fill, no copy, no bookkeeping. The base is page aligned and the period a multiple of
/// 4096, so a window is aligned whenever its position is.
#[derive(Debug)]
pub struct Ring {
    map: MmapMut,
    period_bytes: u64,
    id: u64,
}

impl Ring {
    /// Maps `period_bytes + max_call_bytes` bytes of zeroed private memory, and [`SLACK_BYTES`] behind them.
    ///
    /// # Errors
    /// The kernel's answer if the memory cannot be mapped.
    ///
    /// # Panics
    /// If the period is zero or no multiple of 4096.
    pub fn new(period_bytes: u64, max_call_bytes: u64) -> std::io::Result<Self> {
        assert!(period_bytes > 0 && period_bytes % 4096 == 0, "period must be a multiple of 4096");
        let len = usize::try_from(period_bytes + max_call_bytes + SLACK_BYTES).map_err(std::io::Error::other)?;
        let map = MmapMut::map_anon(len)?;
        // Fewer TLB misses while streaming; a kernel without huge pages loses nothing.
        let _ = map.advise(memmap2::Advice::HugePage);
        Ok(Self { map, period_bytes, id: NEXT_ID.fetch_add(1, Ordering::Relaxed) })
    }

    /// Tells this ring from every other of the process, also from one that was mapped at the same address later:
    /// memory registered with the kernel belongs to the mapping, not to the address.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Length of one period of the stream.
    #[must_use]
    pub fn period_bytes(&self) -> u64 {
        self.period_bytes
    }

    /// All bytes: one period and the overhang.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.map[..self.map.len() - SLACK_BYTES as usize]
    }

    /// All bytes, to be filled or poisoned.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let len = self.map.len() - SLACK_BYTES as usize;
        &mut self.map[..len]
    }

    /// The whole mapping with its slack: what is registered with the kernel and what whole sectors may touch.
    #[must_use]
    pub fn mapped(&self) -> &[u8] {
        &self.map
    }

    /// [`Ring::mapped`], to be read into.
    pub fn mapped_mut(&mut self) -> &mut [u8] {
        &mut self.map
    }

    /// First byte of the mapping.
    #[must_use]
    pub fn as_ptr(&self) -> *const u8 {
        self.map.as_ptr()
    }

    /// First byte of the mapping, to be read into.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.map.as_mut_ptr()
    }

    /// Index of the first byte of the window for stream position `position`.
    #[must_use]
    #[inline]
    pub fn index(&self, position: u64) -> usize {
        // The remainder is smaller than the mapping, whose length is a usize.
        (position % self.period_bytes) as usize
    }

    /// The window of `len` bytes for stream position `position`.
    ///
    /// # Panics
    /// If `len` is larger than the largest call given to [`Ring::new`].
    #[must_use]
    #[inline]
    pub fn window(&self, position: u64, len: usize) -> &[u8] {
        let start = self.index(position);
        &self.bytes()[start..start + len]
    }

    /// The window of `len` bytes for stream position `position`, to be read into.
    ///
    /// # Panics
    /// As [`Ring::window`].
    #[inline]
    pub fn window_mut(&mut self, position: u64, len: usize) -> &mut [u8] {
        let start = self.index(position);
        &mut self.bytes_mut()[start..start + len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_wrap_and_stay_aligned() {
        let ring = Ring::new(4096 * 3, 8192).unwrap();
        assert_eq!(ring.bytes().len(), 4096 * 5);
        assert_eq!(ring.mapped().len() as u64, 4096 * 5 + SLACK_BYTES);
        assert_eq!(ring.bytes().as_ptr() as usize % 4096, 0);
        assert_eq!(ring.index(4096 * 3 + 8), 8);
        assert_eq!(ring.window(4096 * 2 + 4088, 8192).len(), 8192);
    }
}
