//! Shared memory between processes of one host, and synchronization through it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use memmap2::MmapRaw;

use super::process::ProcessIdentity;
use crate::abort_message;
use crate::transfer_buffer::{map_file, memory_file};

/// Polls of a counter before the processor is yielded.
const SPINS: u32 = 300;
/// Yields before the futex wait.
const YIELDS: u32 = 30;
/// Maximum sleep before a check whether the other process still exists, seconds.
const SLEEP_SECONDS: i64 = 1;

/// Identifies a memory file for other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SharedMemoryAddress {
    pub(crate) pid: u64,
    pub(crate) fd: u64,
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) len: u64,
}

impl SharedMemoryAddress {
    /// Number of words in a message.
    pub(crate) const WORDS: usize = 5;
    pub(crate) const NONE: Self = Self { pid: 0, fd: 0, device: 0, inode: 0, len: 0 };

    pub(crate) fn of(file: &File) -> io::Result<Self> {
        let data = file.metadata()?;
        Ok(Self {
            pid: u64::from(std::process::id()),
            fd: file.as_raw_fd() as u64,
            device: data.dev(),
            inode: data.ino(),
            len: data.len(),
        })
    }

    pub(crate) fn to_words(self) -> [u64; Self::WORDS] {
        [self.pid, self.fd, self.device, self.inode, self.len]
    }

    pub(crate) fn from_words(words: &[u64]) -> Self {
        Self { pid: words[0], fd: words[1], device: words[2], inode: words[3], len: words[4] }
    }

    /// Opens the file through /proc and checks its identity.
    fn open(&self) -> io::Result<File> {
        let file = OpenOptions::new().read(true).write(true).open(format!("/proc/{}/fd/{}", self.pid, self.fd))?;
        let data = file.metadata()?;
        if (data.dev(), data.ino(), data.len()) == (self.device, self.inode, self.len) {
            return Ok(file);
        }
        Err(io::Error::other(format!("/proc/{}/fd/{} is not the expected file", self.pid, self.fd)))
    }
}

/// A memory file of any process, mapped here.
#[derive(Debug)]
pub(crate) struct SharedMapping {
    map: MmapRaw,
    /// Offset of the file in the mapping.
    start: usize,
    address: SharedMemoryAddress,
}

impl SharedMapping {
    fn new(file: &File, address: SharedMemoryAddress, at_once: bool) -> io::Result<Self> {
        // Every page is allocated already: pages mapped at once do not fault during the transfers.
        let bytes = usize::try_from(address.len).map_err(io::Error::other)?;
        let (map, start) = map_file(file, bytes, at_once)?;
        Ok(Self { map: map.into(), start, address })
    }

    /// Maps the memory at an address, all pages `at_once` or on demand. An existing mapping is reused, also for other files.
    pub(crate) fn at(address: &SharedMemoryAddress, at_once: bool) -> io::Result<Arc<Self>> {
        static KNOWN: Mutex<Vec<Arc<SharedMapping>>> = Mutex::new(Vec::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(same) = known.iter().find(|m| m.address == *address) {
            return Ok(Arc::clone(same));
        }
        let mapping = Arc::new(Self::new(&address.open()?, *address, at_once)?);
        // A process has one transfer buffer at a time: an older one without users no longer exists.
        known.retain(|m| m.address.pid != address.pid || Arc::strong_count(m) > 1);
        known.push(Arc::clone(&mapping));
        Ok(mapping)
    }

    pub(crate) fn as_mut_ptr(&self) -> *mut u8 {
        // Inside the mapping, as checked when it was created.
        self.map.as_mut_ptr().wrapping_add(self.start)
    }
}

/// Counters of one rank, on separate cache lines.
#[repr(C, align(128))]
struct RankCounters {
    /// Number of the last synchronization point of the rank.
    arrived: AtomicU32,
    /// Number of the last synchronization point with an error.
    failed: AtomicU32,
}

#[derive(Debug)]
pub(crate) struct SyncPoints {
    map: SharedMapping,
    rank: usize,
    ranks: Vec<ProcessIdentity>,
}

impl SyncPoints {
    pub(crate) fn create(ranks: usize) -> io::Result<File> {
        memory_file(c"beff-control", (ranks * size_of::<RankCounters>()) as u64)
    }

    /// Maps the counters at `address` for rank `me`.
    pub(crate) fn join(address: &SharedMemoryAddress, me: usize, ranks: Vec<ProcessIdentity>) -> io::Result<Self> {
        let map = SharedMapping::new(&address.open()?, *address, true)?;
        if address.len < (ranks.len() * size_of::<RankCounters>()) as u64 {
            return Err(io::Error::other("the memory of the counters is too small"));
        }
        Ok(Self { map, rank: me, ranks })
    }

    fn of(&self, rank: usize) -> &RankCounters {
        assert!(rank < self.ranks.len());
        // SAFETY: the mapping holds one aligned `RankCounters` per rank (pages are aligned to more than 128 bytes), initially zero, and all
        // processes use only atomic operations on it.
        unsafe { &*self.map.as_mut_ptr().cast::<RankCounters>().add(rank) }
    }

    /// Signals that this rank has arrived at point `number`; its earlier stores are visible to ranks that wait for it.
    pub(crate) fn arrive(&self, number: u32, failed: bool) {
        let mine = self.of(self.rank);
        if failed {
            mine.failed.store(number, Ordering::Relaxed);
        }
        mine.arrived.store(number, Ordering::Release);
        // SAFETY: the address of a mapped atomic; waking needs nothing else.
        unsafe { libc::syscall(libc::SYS_futex, mine.arrived.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
    }

    /// Waits until all ranks have arrived at point `number`. Numbers grow, and may wrap. If the process of a rank has ended, all ranks
    /// are aborted, because no agreement is possible.
    pub(crate) fn wait(&self, number: u32) {
        if let Err(rank) = self.wait_or_detect_exit(number) {
            let (me, process) = (self.rank, self.ranks[rank].pid);
            abort_message::print_before_abort(&format!(
                "two-phase: rank {rank} (process {process}) has ended while rank {me} waits for it: aborting all ranks"
            ));
            beff_ffi::universe::abort(1);
            std::process::abort();
        }
    }

    /// As [`SyncPoints::wait`], or returns a rank whose process has ended before it arrived.
    fn wait_or_detect_exit(&self, number: u32) -> Result<(), usize> {
        for rank in (0..self.ranks.len()).filter(|&r| r != self.rank) {
            let counter = &self.of(rank).arrived;
            let mut looks = 0;
            loop {
                let seen = counter.load(Ordering::Acquire);
                if !is_before(seen, number) {
                    break;
                }
                looks += 1;
                if looks < SPINS {
                    std::hint::spin_loop();
                } else if looks < SPINS + YIELDS {
                    std::thread::yield_now();
                } else if sleep_while(counter, seen) {
                    // Checked before the counter: an ended process cannot change it afterwards.
                    let gone = self.ranks[rank].has_ended();
                    if gone && is_before(counter.load(Ordering::Acquire), number) {
                        return Err(rank);
                    }
                }
            }
        }
        Ok(())
    }

    /// True if a rank had an error at point `first` or later.
    pub(crate) fn any_failed_since(&self, first: u32) -> bool {
        (0..self.ranks.len()).any(|r| !is_before(self.of(r).failed.load(Ordering::Relaxed), first))
    }
}

/// Sleeps until a wake-up, at most [`SLEEP_SECONDS`]; not at all if the counter differs from `seen`. True after a timeout.
fn sleep_while(counter: &AtomicU32, seen: u32) -> bool {
    let most = libc::timespec { tv_sec: SLEEP_SECONDS, tv_nsec: 0 };
    // SAFETY: the address of a mapped atomic; returns at once if its value differs from `seen`; the time is only read.
    let status =
        unsafe { libc::syscall(libc::SYS_futex, counter.as_ptr(), libc::FUTEX_WAIT, seen, std::ptr::from_ref(&most)) };
    status != 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ETIMEDOUT)
}

/// True if `number` comes before `other`.
fn is_before(number: u32, other: u32) -> bool {
    // The difference of two numbers in use is far below 2^31.
    (number.wrapping_sub(other) as i32) < 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TransferBuffer;

    #[test]
    fn a_buffer_is_mapped_by_its_address_and_a_wrong_address_is_refused() {
        let mut buffer = TransferBuffer::new_shareable(4096, 4096).unwrap();
        let address = SharedMemoryAddress::of(buffer.shared_file().unwrap()).unwrap();
        assert_eq!(SharedMemoryAddress::from_words(&address.to_words()), address);
        let seen = SharedMapping::at(&address, true).unwrap();
        buffer.bytes_mut()[100] = 42;
        // SAFETY: inside the mapping, without concurrent writes.
        assert_eq!(unsafe { seen.as_mut_ptr().add(100).read_volatile() }, 42);
        assert!(Arc::ptr_eq(&seen, &SharedMapping::at(&address, true).unwrap()));
        assert!(SharedMapping::at(&SharedMemoryAddress { inode: address.inode + 1, ..address }, false).is_err());
    }

    #[test]
    fn ranks_wait_for_each_other() {
        const RANKS: usize = 3;
        let file = SyncPoints::create(RANKS).unwrap();
        let address = SharedMemoryAddress::of(&file).unwrap();
        let sum = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for me in 0..RANKS {
                let sum = &sum;
                scope.spawn(move || {
                    let control = SyncPoints::join(&address, me, vec![ProcessIdentity::current(); RANKS]).unwrap();
                    for round in 1..200_u32 {
                        sum.fetch_add(1, Ordering::Relaxed);
                        control.arrive(2 * round, me == 1 && round == 100);
                        control.wait(2 * round);
                        assert_eq!(sum.load(Ordering::Relaxed), round * RANKS as u32);
                        assert_eq!(control.any_failed_since(2 * round), round == 100);
                        control.arrive(2 * round + 1, false);
                        control.wait(2 * round + 1);
                    }
                });
            }
        });
    }

    #[test]
    fn an_ended_rank_is_not_waited_for() {
        let file = SyncPoints::create(2).unwrap();
        let address = SharedMemoryAddress::of(&file).unwrap();
        let mut other = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let ranks = vec![ProcessIdentity::current(), ProcessIdentity::of(other.id()).unwrap()];
        let control = SyncPoints::join(&address, 0, ranks).unwrap();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| control.wait_or_detect_exit(1));
            std::thread::sleep(std::time::Duration::from_millis(1500));
            assert!(!waits.is_finished(), "a running process is waited for");
            // It remains as a zombie, because it has not been waited for.
            other.kill().unwrap();
            assert_eq!(waits.join().unwrap(), Err(1));
        });
        // Points at which it arrived before its end remain valid.
        SyncPoints::join(&address, 1, vec![ProcessIdentity::current(); 2]).unwrap().arrive(1, false);
        assert_eq!(control.wait_or_detect_exit(1), Ok(()));
        other.wait().unwrap();
        assert_eq!(control.wait_or_detect_exit(2), Err(1));
    }

    #[test]
    fn numbers_wrap() {
        assert!(is_before(u32::MAX, 0) && is_before(3, 4));
        assert!(!is_before(4, 4) && !is_before(1, u32::MAX));
    }
}
