//! Transfer buffer: one period of the data stream plus one call, allocated before the clock.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::MmapMut;

/// Bytes mapped beyond the end of a buffer, so that whole sectors can be moved if it ends inside one.
pub const SLACK_BYTES: u64 = 8192;

/// A huge page. The memory begins and ends at one: registered memory is described page by page unless all of its pages have the
/// same size, and a request to a device holds only a few hundred segments.
const HUGE_BYTES: usize = 2 << 20;

/// Id of the next buffer of this process.
static NEXT_ID: AtomicU64 = AtomicU64::new(0);

/// A buffer that contains the bytes of any access as a window.
///
/// The stream of a rank repeats after `period_bytes`; the buffer holds one period followed by the beginning of the next, as long as
/// the largest call. The bytes of an access at stream position p are the window at `p % period_bytes`, without fill or copy. The
/// base is page aligned and the period a multiple of 4096, so a window is aligned if its position is.
#[derive(Debug)]
pub struct TransferBuffer {
    map: MmapMut,
    /// Begin of the buffer in the mapping.
    start: usize,
    /// With the slack, up to the end of the last huge page.
    mapped_bytes: usize,
    /// The memory as an anonymous file, if other processes may map it.
    file: Option<File>,
    /// Bytes without the slack.
    len: usize,
    period_bytes: u64,
    /// Begin and period of the landing zone.
    landing: (usize, u64),
    id: u64,
    /// Error of the kernel if it refused huge pages.
    huge_page_refusal: Option<std::io::Error>,
}

impl TransferBuffer {
    /// Maps `period_bytes + max_call_bytes` bytes of zeroed private memory, in huge pages where available, followed by
    /// [`SLACK_BYTES`].
    ///
    /// # Errors
    /// The error of the kernel if the memory cannot be mapped.
    ///
    /// # Panics
    /// If the period is zero or no multiple of 4096.
    pub fn new(period_bytes: u64, max_call_bytes: u64) -> std::io::Result<Self> {
        let (len, mapped) = buffer_lengths(period_bytes, max_call_bytes)?;
        let (map, start) = map_aligned(mapped)?;
        // Fewer TLB misses while streaming, and longer requests to devices.
        let refusal = map.advise(memmap2::Advice::HugePage).err();
        Ok(Self { huge_page_refusal: refusal, ..Self::from_mapping(map, start, mapped, None, len, period_bytes) })
    }

    /// As [`TransferBuffer::new`], in memory that other processes of this user on this host can map (memfd_create(2)). Not limited by the
    /// size of /dev/shm.
    ///
    /// # Errors
    /// The error of the kernel if the memory cannot be created or mapped.
    ///
    /// # Panics
    /// As [`TransferBuffer::new`].
    pub fn new_shareable(period_bytes: u64, max_call_bytes: u64) -> std::io::Result<Self> {
        let (len, mapped) = buffer_lengths(period_bytes, max_call_bytes)?;
        let file = memory_file(c"beff-ring", mapped as u64)?;
        // Other processes access it only during their part of a collective transfer, for which the buffer is borrowed here.
        let (mut map, start) = map_file(&file, mapped, false)?;
        let refusal = collapse_into_huge_pages(&mut map[start..start + mapped]).err();
        Ok(Self { huge_page_refusal: refusal, ..Self::from_mapping(map, start, mapped, Some(file), len, period_bytes) })
    }

    /// Error of the kernel if it does not permit memory that other processes can map: a seccomp filter, or a kernel without it. A lack of memory
    /// is none.
    #[must_use]
    pub fn sharing_refusal() -> Option<std::io::Error> {
        let error = memory_file(c"beff-ring", 4096).err()?;
        matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES | libc::ENOSYS)).then_some(error)
    }

    fn from_mapping(
        map: MmapMut,
        start: usize,
        mapped_bytes: usize,
        file: Option<File>,
        len: usize,
        period_bytes: u64,
    ) -> Self {
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        Self { map, start, mapped_bytes, file, len, period_bytes, landing: (len, 0), id, huge_page_refusal: None }
    }

    /// Host memory that such a buffer occupies: whole huge pages, where available.
    #[must_use]
    pub fn allocated_bytes(period_bytes: u64, max_call_bytes: u64) -> u64 {
        let bytes = period_bytes.saturating_add(max_call_bytes).saturating_add(SLACK_BYTES);
        bytes.checked_next_multiple_of(HUGE_BYTES as u64).unwrap_or(u64::MAX)
    }

    /// Error of the kernel if it refused huge pages. Without one private memory may still have none: the request is advice.
    #[must_use]
    pub fn huge_page_refusal(&self) -> Option<&std::io::Error> {
        self.huge_page_refusal.as_ref()
    }

    /// True if other processes can map it.
    #[must_use]
    pub fn is_shareable(&self) -> bool {
        self.file.is_some()
    }

    /// The memory as a file that other processes can map, if shareable.
    pub(crate) fn shared_file(&self) -> Option<&File> {
        self.file.as_ref()
    }

    /// Identifies this buffer, also among those mapped later at the same address: memory registered with the kernel belongs to the
    /// mapping.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Length of one period of the stream.
    #[must_use]
    pub fn period_bytes(&self) -> u64 {
        self.period_bytes
    }

    /// Sets the period for the next prepared pattern, up to the whole buffer. With a period of whole calls each window belongs to
    /// one call, and no overhang is needed.
    ///
    /// # Panics
    /// If it is 0 or longer than the buffer.
    pub fn set_period_bytes(&mut self, period_bytes: u64) {
        assert!(
            period_bytes > 0 && period_bytes <= self.len as u64,
            "a period of {period_bytes} of {} bytes",
            self.len
        );
        self.period_bytes = period_bytes;
    }

    /// Sets the landing zone for the reads of the next mixed pattern, whose calls have `call_bytes`: windows that begin within `period_bytes`
    /// from index `begin` on. The windows of the writes end before it.
    ///
    /// # Panics
    /// If it exceeds the buffer or shares memory with the writes.
    pub fn set_landing(&mut self, begin: usize, period_bytes: u64, call_bytes: u64) {
        let end = begin as u64 + period_bytes + call_bytes;
        assert!(period_bytes > 0 && end <= self.len as u64, "a landing zone up to {end} of {} bytes", self.len);
        assert!(self.period_bytes + call_bytes <= begin as u64, "writes take their data from the landing zone");
        self.landing = (begin, period_bytes);
    }

    /// Period of the landing zone; 0 without one.
    #[must_use]
    pub fn landing_period_bytes(&self) -> u64 {
        self.landing.1
    }

    /// Begin of the landing zone.
    #[must_use]
    pub fn landing_begin(&self) -> usize {
        self.landing.0
    }

    /// Index of the first byte of the window in the landing zone for stream position `position`.
    #[must_use]
    #[inline]
    pub(crate) fn landing_index(&self, position: u64) -> usize {
        let (begin, period_bytes) = self.landing;
        begin + (position % period_bytes) as usize
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

    /// The whole mapping with its slack, which is registered with the kernel and accessed by whole sectors.
    #[must_use]
    pub fn mapped(&self) -> &[u8] {
        &self.map[self.start..self.start + self.mapped_bytes]
    }

    /// [`TransferBuffer::mapped_bytes`], as a read target.
    pub fn mapped_mut(&mut self) -> &mut [u8] {
        &mut self.map[self.start..self.start + self.mapped_bytes]
    }

    /// First byte of the mapping.
    #[must_use]
    pub fn as_ptr(&self) -> *const u8 {
        self.mapped().as_ptr()
    }

    /// First byte of the mapping, as a read target.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.mapped_mut().as_mut_ptr()
    }

    /// Index of the first byte of the window for stream position `position`.
    #[must_use]
    #[inline]
    pub fn index(&self, position: u64) -> usize {
        // Less than the length of the mapping, a usize.
        (position % self.period_bytes) as usize
    }

    /// The window of `len` bytes for stream position `position`.
    ///
    /// # Panics
    /// If `len` exceeds the largest call passed to [`TransferBuffer::new`].
    #[must_use]
    #[inline]
    pub fn window(&self, position: u64, len: usize) -> &[u8] {
        let start = self.index(position);
        &self.bytes()[start..start + len]
    }

    /// The window of `len` bytes for stream position `position`, as a read target.
    ///
    /// # Panics
    /// As [`TransferBuffer::window`].
    #[inline]
    pub fn window_mut(&mut self, position: u64, len: usize) -> &mut [u8] {
        let start = self.index(position);
        &mut self.bytes_mut()[start..start + len]
    }

    /// The windows of `calls` consecutive transfers of `len` bytes from `position` on, as simultaneous read targets. None if two of
    /// them share memory.
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

/// A private mapping with `bytes` bytes from a huge-page boundary on, and the index of that boundary. It is one huge page longer,
/// because not every kernel aligns mappings; untouched pages occupy no memory.
fn map_aligned(bytes: usize) -> std::io::Result<(MmapMut, usize)> {
    let map = MmapMut::map_anon(bytes + HUGE_BYTES)?;
    let start = (map.as_ptr() as usize).wrapping_neg() % HUGE_BYTES;
    Ok((map, start))
}

/// Maps the first `bytes` of a memory file, at least that long, from a huge-page boundary on, so that its huge pages stay whole.
/// All pages are mapped `at_once`, or on demand. The memory is shared with all users of the file.
///
/// # Errors
/// The error of the kernel.
pub(crate) fn map_file(file: &File, bytes: usize, at_once: bool) -> std::io::Result<(MmapMut, usize)> {
    let (mut map, start) = map_aligned(bytes)?;
    let begin = map[start..start + bytes].as_mut_ptr().cast();
    let populate = if at_once { libc::MAP_POPULATE } else { 0 };
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_FIXED | populate);
    // SAFETY: replaces pages that `map` owns and unmaps with the rest. Memory files are never truncated.
    let placed = unsafe { libc::mmap(begin, bytes, protection, flags, file.as_raw_fd(), 0) };
    if placed == libc::MAP_FAILED {
        let error = std::io::Error::last_os_error();
        // There may be a hole now, where other memory could be mapped before the unmap.
        std::mem::forget(map);
        return Err(error);
    }
    Ok((map, start))
}

/// Collapses empty shared memory into huge pages. Advice has no effect on it where
/// /sys/kernel/mm/transparent_hugepage/shmem_enabled is `never`, the default; MADV_COLLAPSE (madvise(2), Linux 6.1) works anyway.
/// Without huge pages only requests to a device are shorter.
///
/// # Errors
/// The error of the kernel; as many pages as possible are huge then.
fn collapse_into_huge_pages(memory: &mut [u8]) -> std::io::Result<()> {
    // The call skips ranges without any page.
    memory.iter_mut().step_by(HUGE_BYTES).for_each(|byte| *byte = 0);
    // SAFETY: memory of this process, in whole pages; its content is preserved.
    let answer = unsafe { libc::madvise(memory.as_mut_ptr().cast(), memory.len(), libc::MADV_COLLAPSE) };
    if answer == 0 {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error())
    }
}

/// Length of buffer and mapping, in whole huge pages.
fn buffer_lengths(period_bytes: u64, max_call_bytes: u64) -> std::io::Result<(usize, usize)> {
    assert!(period_bytes > 0 && period_bytes.is_multiple_of(4096), "period must be a multiple of 4096");
    let mapped = period_bytes + max_call_bytes + SLACK_BYTES;
    let mapped = usize::try_from(mapped).map_err(std::io::Error::other)?;
    Ok((mapped - SLACK_BYTES as usize, mapped.next_multiple_of(HUGE_BYTES)))
}

/// An anonymous file in memory (memfd_create(2)), `bytes` long and zeroed.
///
/// # Errors
/// The error of the kernel.
pub(crate) fn memory_file(name: &std::ffi::CStr, bytes: u64) -> std::io::Result<File> {
    // SAFETY: a NUL-terminated name; the returned descriptor has no other owner.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: an open descriptor, owned here alone.
    let file = unsafe { File::from_raw_fd(fd) };
    // The caller takes an error for one of memfd_create.
    file.set_len(bytes)
        .map_err(|e| std::io::Error::other(format!("ftruncate of shared memory to {bytes} bytes: {e}")))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_wrap_and_stay_aligned() {
        let buffer = TransferBuffer::new(4096 * 3, 8192).unwrap();
        assert_eq!(buffer.bytes().len(), 4096 * 5);
        assert_eq!(buffer.mapped().len(), HUGE_BYTES, "the slack is included");
        assert_eq!(buffer.bytes().as_ptr() as usize % HUGE_BYTES, 0);
        assert_eq!(buffer.index(4096 * 3 + 8), 8);
        assert_eq!(buffer.window(4096 * 2 + 4088, 8192).len(), 8192);
    }

    #[test]
    fn windows_at_once_are_the_windows_one_by_one() {
        for (period, position, len, calls) in
            [(4096, 0, 100, 40), (4090, 4000, 409, 10), (4096, 4095, 4096, 1), (10, 7, 5, 2), (4096, 9, 0, 5)]
        {
            let mut buffer = TransferBuffer::new(4096, 4096).unwrap();
            buffer.set_period_bytes(period);
            for (n, byte) in buffer.bytes_mut().iter_mut().enumerate() {
                *byte = (n % 251) as u8;
            }
            let one = |n: u64| buffer.window(position + n * len, len as usize).to_vec();
            let each: Vec<_> = (0..calls).map(one).collect();
            let at_once: Vec<_> =
                buffer.windows_mut(position, len as usize, calls).unwrap().map(|window| window.to_vec()).collect();
            assert_eq!(at_once, each, "{period} {position} {len} {calls}");
        }
        assert!(TransferBuffer::new(4096, 4096).unwrap().windows_mut(0, 100, 41).is_none());
    }

    #[test]
    fn a_shareable_buffer_is_visible_through_its_file() {
        use std::os::unix::fs::FileExt;
        let mut buffer = TransferBuffer::new_shareable(4096, 100).unwrap();
        buffer.window_mut(4090, 50).fill(7);
        let mut seen = [0; 60];
        buffer.shared_file().unwrap().read_exact_at(&mut seen, 4085).unwrap();
        assert_eq!((&seen[..5], &seen[5..55], &seen[55..]), (&[0; 5][..], &[7; 50][..], &[0; 5][..]));
        assert!(TransferBuffer::new(4096, 100).unwrap().shared_file().is_none());
    }

    /// KiB of the mapping at `begin` that are mapped by huge pages.
    fn huge_kib(begin: *const u8) -> usize {
        let begin = format!("{:x}-", begin as usize);
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut of_mapping = maps.lines().skip_while(|line| !line.starts_with(&begin));
        let huge = of_mapping.find(|line| line.starts_with("ShmemPmdMapped:")).unwrap();
        huge.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// Why this kernel cannot collapse pages: no MADV_COLLAPSE, or disabled by configuration.
    fn cannot_collapse() -> Option<String> {
        let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse::<u32>().unwrap_or(0));
        let version = (numbers.next().unwrap(), numbers.next().unwrap());
        match setting {
            Err(_) => Some("this kernel has no transparent huge pages for shared memory".to_owned()),
            Ok(setting) if setting.contains("[deny]") => Some("shmem_enabled says deny".to_owned()),
            Ok(_) if version < (6, 1) => Some(format!("no MADV_COLLAPSE in Linux {}", release.trim())),
            Ok(_) => None,
        }
    }

    /// All of the buffer, or the kernel reported the reason.
    #[test]
    fn a_shareable_buffer_is_in_huge_pages_too() {
        let mut buffer = TransferBuffer::new_shareable(3 * HUGE_BYTES as u64, 100).unwrap();
        assert_eq!((buffer.mapped().len(), buffer.as_ptr() as usize % HUGE_BYTES), (4 * HUGE_BYTES, 0));
        buffer.bytes_mut().fill(1);
        assert_eq!(buffer.bytes().iter().map(|byte| u64::from(*byte)).sum::<u64>(), buffer.bytes().len() as u64);
        let whole = huge_kib(buffer.as_ptr()) == buffer.mapped().len() >> 10;
        let refusal = buffer.huge_page_refusal().map(|error| error.raw_os_error().unwrap());
        assert_eq!(whole, refusal.is_none(), "{} KiB, {:?}", huge_kib(buffer.as_ptr()), buffer.huge_page_refusal());
        match (cannot_collapse(), refusal) {
            (_, None) => {}
            (Some(why), Some(_)) => println!("SKIPPED: {why}"),
            // madvise(2): no free huge page, or the page was in use.
            (None, Some(libc::ENOMEM | libc::EAGAIN | libc::EBUSY)) => {
                println!("SKIPPED: {}", buffer.huge_page_refusal().unwrap());
            }
            (None, Some(_)) => panic!("{:?}", buffer.huge_page_refusal()),
        }
        // Also in the mapping of another rank.
        let (map, start) = map_file(buffer.shared_file().unwrap(), buffer.mapped().len(), true).unwrap();
        assert_eq!((map[start], map[start + 3 * HUGE_BYTES]), (1, 1));
        assert!(!whole || huge_kib(map[start..].as_ptr()) == huge_kib(buffer.as_ptr()));
    }

    #[test]
    fn what_the_kernel_refuses_is_kept() {
        let mut buffer = TransferBuffer::new_shareable(HUGE_BYTES as u64, 0).unwrap();
        assert!(buffer.is_shareable() && !TransferBuffer::new(4096, 0).unwrap().is_shareable());
        // Not a whole page: madvise(2) returns EINVAL.
        let refused = collapse_into_huge_pages(&mut buffer.mapped_mut()[1..]).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EINVAL));
        buffer.huge_page_refusal = Some(refused);
        assert!(buffer.huge_page_refusal().is_some());
    }

    #[test]
    fn a_buffer_occupies_whole_huge_pages() {
        for (period, call) in [(4096, 0), (3 << 20, 1 << 20), ((4 << 20) - 8192, 0), ((4 << 20) - 4096, 0)] {
            assert_eq!(
                TransferBuffer::allocated_bytes(period, call),
                TransferBuffer::new(period, call).unwrap().mapped().len() as u64
            );
        }
        assert_eq!(TransferBuffer::allocated_bytes(u64::MAX, 1), u64::MAX);
    }
}
