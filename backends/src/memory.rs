//! Memory of the transfers: one period of the data stream plus one call, laid out before the clock.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::MmapMut;

/// Bytes mapped behind the last one of a ring, so that whole sectors can be moved where its bytes end inside of one.
pub const SLACK_BYTES: u64 = 8192;

/// A huge page. The memory begins and ends with one: what is registered with io_uring is described page by page unless
/// all of its pages are equally large, and a request to a device has room for a few hundred pieces only.
const HUGE_BYTES: usize = 2 << 20;

/// Number of the next ring of this process.
static NEXT_ID: AtomicU64 = AtomicU64::new(0);

/// A buffer in which the bytes of any access already lie as a window.
///
/// The stream of a rank repeats after `period_bytes`; the buffer holds one period and, behind it, the beginning of
/// the next, as long as the largest call. The bytes of an access at stream position p are the window at
/// `p % period_bytes`: no fill, no copy, no bookkeeping. The base is page aligned and the period a multiple of
/// 4096, so a window is aligned whenever its position is.
#[derive(Debug)]
pub struct Ring {
    map: MmapMut,
    /// Where the ring begins in the mapping.
    start: usize,
    /// Bytes of the ring with its slack, and what is left of its last huge page.
    mapped: usize,
    /// The memory as a file without a name, if other processes may map it.
    file: Option<File>,
    /// Without the slack.
    len: usize,
    period_bytes: u64,
    id: u64,
    /// What the kernel said when it was asked for huge pages and refused them.
    refusal: Option<std::io::Error>,
}

impl Ring {
    /// Maps `period_bytes + max_call_bytes` bytes of zeroed private memory, in huge pages where the kernel has them, and [`SLACK_BYTES`] behind them.
    ///
    /// # Errors
    /// The kernel's answer if the memory cannot be mapped.
    ///
    /// # Panics
    /// If the period is zero or no multiple of 4096.
    pub fn new(period_bytes: u64, max_call_bytes: u64) -> std::io::Result<Self> {
        let (len, mapped) = lengths(period_bytes, max_call_bytes)?;
        let (map, start) = aligned(mapped)?;
        // Fewer TLB misses while streaming, and longer requests to devices.
        let refusal = map.advise(memmap2::Advice::HugePage).err();
        Ok(Self { refusal, ..Self::over(map, start, mapped, None, len, period_bytes) })
    }

    /// As [`Ring::new`], in memory that other processes of this user on this host can map (memfd_create(2)). Not limited
    /// by the size of /dev/shm.
    ///
    /// # Errors
    /// The kernel's answer if the memory cannot be made or mapped.
    ///
    /// # Panics
    /// As [`Ring::new`].
    pub fn new_shareable(period_bytes: u64, max_call_bytes: u64) -> std::io::Result<Self> {
        let (len, mapped) = lengths(period_bytes, max_call_bytes)?;
        let file = memory_file(c"beff-ring", mapped as u64)?;
        // Other processes touch it only while their part of a collective transfer is in progress, when the ring is borrowed for the same
        // transfer here.
        let (mut map, start) = place(&file, mapped, false)?;
        let refusal = make_huge(&mut map[start..start + mapped]).err();
        Ok(Self { refusal, ..Self::over(map, start, mapped, Some(file), len, period_bytes) })
    }

    fn over(map: MmapMut, start: usize, mapped: usize, file: Option<File>, len: usize, period_bytes: u64) -> Self {
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        Self { map, start, mapped, file, len, period_bytes, id, refusal: None }
    }

    /// Bytes that such a ring takes of the memory of the host: whole huge pages, where the kernel has them.
    #[must_use]
    pub fn taken_bytes(period_bytes: u64, max_call_bytes: u64) -> u64 {
        let bytes = period_bytes.saturating_add(max_call_bytes).saturating_add(SLACK_BYTES);
        bytes.checked_next_multiple_of(HUGE_BYTES as u64).unwrap_or(u64::MAX)
    }

    /// What the kernel said to the wish for huge pages, if it refused. Without a refusal private memory may still have got none: it is
    /// advice, and pages are chosen when they are touched.
    #[must_use]
    pub fn huge_page_refusal(&self) -> Option<&std::io::Error> {
        self.refusal.as_ref()
    }

    /// True if other processes can map it.
    #[must_use]
    pub fn is_shareable(&self) -> bool {
        self.file.is_some()
    }

    /// The memory as a file that other processes can map, if it was made so.
    pub(crate) fn shared_file(&self) -> Option<&File> {
        self.file.as_ref()
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

    /// Sets the period for what is prepared next: any length up to all of the ring. A period that is a whole number of calls
    /// makes every window one call's own, and needs no overhang.
    ///
    /// # Panics
    /// If it is 0 or longer than the ring.
    pub fn set_period_bytes(&mut self, period_bytes: u64) {
        assert!(
            period_bytes > 0 && period_bytes <= self.len as u64,
            "a period of {period_bytes} of {} bytes",
            self.len
        );
        self.period_bytes = period_bytes;
    }

    /// All bytes: one period and the overhang.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.map[self.start..self.start + self.len]
    }

    /// All bytes, to be filled or poisoned.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.map[self.start..self.start + self.len]
    }

    /// The whole mapping with its slack: what is registered with the kernel and what whole sectors may touch.
    #[must_use]
    pub fn mapped(&self) -> &[u8] {
        &self.map[self.start..self.start + self.mapped]
    }

    /// [`Ring::mapped`], to be read into.
    pub fn mapped_mut(&mut self) -> &mut [u8] {
        &mut self.map[self.start..self.start + self.mapped]
    }

    /// First byte of the mapping.
    #[must_use]
    pub fn as_ptr(&self) -> *const u8 {
        self.mapped().as_ptr()
    }

    /// First byte of the mapping, to be read into.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.mapped_mut().as_mut_ptr()
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

    /// The windows of `calls` transfers of `len` bytes that follow each other in the stream from `position` on, to be read
    /// into at once. None if two of them share memory.
    pub fn windows_mut(
        &mut self,
        position: u64,
        len: usize,
        calls: u64,
    ) -> Option<impl Iterator<Item = &mut [u8]> + '_> {
        let all_bytes = calls.checked_mul(len as u64)?;
        if calls > 1 && all_bytes > self.period_bytes {
            return None;
        }
        let (period, mut at) = (self.period_bytes as usize, self.index(position));
        let (mut front, mut here) = self.bytes_mut().split_at_mut(at);
        Some((0..calls).map(move |_| {
            if at >= period {
                at -= period;
                here = &mut std::mem::take(&mut front)[at..];
            }
            let (window, rest) = std::mem::take(&mut here).split_at_mut(len);
            at += len;
            here = rest;
            window
        }))
    }
}

/// A private mapping in which `bytes` begin with a huge page, and where they do. One page more than is needed: not every kernel
/// aligns a mapping so. What is never touched takes no memory.
fn aligned(bytes: usize) -> std::io::Result<(MmapMut, usize)> {
    let map = MmapMut::map_anon(bytes + HUGE_BYTES)?;
    let start = (map.as_ptr() as usize).wrapping_neg() % HUGE_BYTES;
    Ok((map, start))
}

/// The first `bytes` of a file in memory, at least that long, from the beginning of a huge page on: those of the file stay whole in the
/// mapping. All pages are mapped `at_once`, or each when it is needed. The memory is shared with whoever has the file.
///
/// # Errors
/// The kernel's answer.
pub(crate) fn place(file: &File, bytes: usize, at_once: bool) -> std::io::Result<(MmapMut, usize)> {
    let (mut map, start) = aligned(bytes)?;
    let begin = map[start..start + bytes].as_mut_ptr().cast();
    let populate = if at_once { libc::MAP_POPULATE } else { 0 };
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_FIXED | populate);
    // SAFETY: takes the place of memory that `map` owns, begins at a page and unmaps as one with the rest of it. Files in memory are never
    // shortened.
    let placed = unsafe { libc::mmap(begin, bytes, protection, flags, file.as_raw_fd(), 0) };
    if placed == libc::MAP_FAILED {
        let error = std::io::Error::last_os_error();
        // There may be a hole now, where somebody else's memory could be by the time this is unmapped.
        std::mem::forget(map);
        return Err(error);
    }
    Ok((map, start))
}

/// Puts shared memory that is empty so far into huge pages. Unlike private memory it gets none by advice where
/// /sys/kernel/mm/transparent_hugepage/shmem_enabled says `never`, as it does by default; MADV_COLLAPSE (madvise(2), Linux 6.1) makes them all the
/// same. Without them requests to a device are shorter, and that is all.
///
/// # Errors
/// The kernel's answer; as many pages as it could are huge then.
fn make_huge(memory: &mut [u8]) -> std::io::Result<()> {
    // What has no page at all is left out.
    memory.iter_mut().step_by(HUGE_BYTES).for_each(|byte| *byte = 0);
    // SAFETY: memory of this process, whole pages of it; their bytes stay.
    let answer = unsafe { libc::madvise(memory.as_mut_ptr().cast(), memory.len(), libc::MADV_COLLAPSE) };
    if answer == 0 {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error())
    }
}

/// Length of a ring and of its mapping, in whole huge pages.
fn lengths(period_bytes: u64, max_call_bytes: u64) -> std::io::Result<(usize, usize)> {
    assert!(period_bytes > 0 && period_bytes.is_multiple_of(4096), "period must be a multiple of 4096");
    let mapped = period_bytes + max_call_bytes + SLACK_BYTES;
    let mapped = usize::try_from(mapped).map_err(std::io::Error::other)?;
    Ok((mapped - SLACK_BYTES as usize, mapped.next_multiple_of(HUGE_BYTES)))
}

/// A file without a name that lives in memory (memfd_create(2)), `bytes` long and zeroed.
///
/// # Errors
/// The kernel's answer.
pub(crate) fn memory_file(name: &std::ffi::CStr, bytes: u64) -> std::io::Result<File> {
    // SAFETY: a NUL-terminated name; the descriptor that comes back belongs to nobody else.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: an open descriptor, owned here alone.
    let file = unsafe { File::from_raw_fd(fd) };
    file.set_len(bytes)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_wrap_and_stay_aligned() {
        let ring = Ring::new(4096 * 3, 8192).unwrap();
        assert_eq!(ring.bytes().len(), 4096 * 5);
        assert_eq!(ring.mapped().len(), HUGE_BYTES, "the slack is in it");
        assert_eq!(ring.bytes().as_ptr() as usize % HUGE_BYTES, 0);
        assert_eq!(ring.index(4096 * 3 + 8), 8);
        assert_eq!(ring.window(4096 * 2 + 4088, 8192).len(), 8192);
    }

    #[test]
    fn windows_at_once_are_the_windows_one_by_one() {
        for (period, position, len, calls) in
            [(4096, 0, 100, 40), (4090, 4000, 409, 10), (4096, 4095, 4096, 1), (10, 7, 5, 2), (4096, 9, 0, 5)]
        {
            let mut ring = Ring::new(4096, 4096).unwrap();
            ring.set_period_bytes(period);
            for (n, byte) in ring.bytes_mut().iter_mut().enumerate() {
                *byte = (n % 251) as u8;
            }
            let one = |n: u64| ring.window(position + n * len, len as usize).to_vec();
            let each: Vec<_> = (0..calls).map(one).collect();
            let at_once: Vec<_> =
                ring.windows_mut(position, len as usize, calls).unwrap().map(|window| window.to_vec()).collect();
            assert_eq!(at_once, each, "{period} {position} {len} {calls}");
        }
        assert!(Ring::new(4096, 4096).unwrap().windows_mut(0, 100, 41).is_none());
    }

    #[test]
    fn a_shareable_ring_is_seen_through_its_file() {
        use std::os::unix::fs::FileExt;
        let mut ring = Ring::new_shareable(4096, 100).unwrap();
        ring.window_mut(4090, 50).fill(7);
        let mut seen = [0; 60];
        ring.shared_file().unwrap().read_exact_at(&mut seen, 4085).unwrap();
        assert_eq!((&seen[..5], &seen[5..55], &seen[55..]), (&[0; 5][..], &[7; 50][..], &[0; 5][..]));
        assert!(Ring::new(4096, 100).unwrap().shared_file().is_none());
    }

    /// Kilobytes of the mapping that begins here which are mapped by huge pages.
    fn huge_kib(begin: *const u8) -> usize {
        let begin = format!("{:x}-", begin as usize);
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut of_mapping = maps.lines().skip_while(|line| !line.starts_with(&begin));
        let huge = of_mapping.find(|line| line.starts_with("ShmemPmdMapped:")).unwrap();
        huge.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// Why this kernel cannot do it at all: it knows no MADV_COLLAPSE, or has been told not to.
    fn cannot_collapse() -> Option<String> {
        let told = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse::<u32>().unwrap_or(0));
        let version = (numbers.next().unwrap(), numbers.next().unwrap());
        match told {
            Err(_) => Some("this kernel has no transparent huge pages for shared memory".to_owned()),
            Ok(told) if told.contains("[deny]") => Some("shmem_enabled says deny".to_owned()),
            Ok(_) if version < (6, 1) => Some(format!("no MADV_COLLAPSE in Linux {}", release.trim())),
            Ok(_) => None,
        }
    }

    /// All of it; or the kernel has said why not.
    #[test]
    fn a_shareable_ring_is_in_huge_pages_too() {
        let mut ring = Ring::new_shareable(3 * HUGE_BYTES as u64, 100).unwrap();
        assert_eq!((ring.mapped().len(), ring.as_ptr() as usize % HUGE_BYTES), (4 * HUGE_BYTES, 0));
        ring.bytes_mut().fill(1);
        assert_eq!(ring.bytes().iter().map(|byte| u64::from(*byte)).sum::<u64>(), ring.bytes().len() as u64);
        let whole = huge_kib(ring.as_ptr()) == ring.mapped().len() >> 10;
        let refusal = ring.huge_page_refusal().map(|error| error.raw_os_error().unwrap());
        assert_eq!(whole, refusal.is_none(), "{} KiB, {:?}", huge_kib(ring.as_ptr()), ring.huge_page_refusal());
        match (cannot_collapse(), refusal) {
            (_, None) => {}
            (Some(why), Some(_)) => println!("SKIPPED: {why}"),
            // madvise(2): no free huge page, or the page was in use.
            (None, Some(libc::ENOMEM | libc::EAGAIN | libc::EBUSY)) => {
                println!("SKIPPED: {}", ring.huge_page_refusal().unwrap());
            }
            (None, Some(_)) => panic!("{:?}", ring.huge_page_refusal()),
        }
        // And where another rank maps it.
        let (map, start) = place(ring.shared_file().unwrap(), ring.mapped().len(), true).unwrap();
        assert_eq!((map[start], map[start + 3 * HUGE_BYTES]), (1, 1));
        assert!(!whole || huge_kib(map[start..].as_ptr()) == huge_kib(ring.as_ptr()));
    }

    #[test]
    fn what_the_kernel_refuses_is_kept() {
        let mut ring = Ring::new_shareable(HUGE_BYTES as u64, 0).unwrap();
        assert!(ring.is_shareable() && !Ring::new(4096, 0).unwrap().is_shareable());
        // Not a whole page: madvise(2) says EINVAL.
        let refused = make_huge(&mut ring.mapped_mut()[1..]).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EINVAL));
        ring.refusal = Some(refused);
        assert!(ring.huge_page_refusal().is_some());
    }

    #[test]
    fn a_ring_takes_whole_huge_pages() {
        for (period, call) in [(4096, 0), (3 << 20, 1 << 20), ((4 << 20) - 8192, 0), ((4 << 20) - 4096, 0)] {
            assert_eq!(Ring::taken_bytes(period, call), Ring::new(period, call).unwrap().mapped().len() as u64);
        }
        assert_eq!(Ring::taken_bytes(u64::MAX, 1), u64::MAX);
    }
}
