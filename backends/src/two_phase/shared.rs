//! Memory of other processes of this host, and waiting for them.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use memmap2::MmapRaw;

use super::life::Life;
use crate::last_words;
use crate::memory::{memory_file, place};

/// Looks at a counter before the processor is given away.
const SPINS: u32 = 300;
/// Times it is given away before the kernel is asked to wake us.
const YIELDS: u32 = 30;
/// So long the kernel lets us sleep before we look whether the other process still lives, seconds.
const SLEEP_SECONDS: i64 = 1;

/// How another process finds a memory file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) pid: u64,
    pub(crate) fd: u64,
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) len: u64,
}

impl Address {
    /// Words of an address in a message.
    pub(crate) const WORDS: usize = 5;
    /// Stands for no memory.
    pub(crate) const NONE: Self = Self { pid: 0, fd: 0, device: 0, inode: 0, len: 0 };

    /// The address of a file of this process.
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

    /// Opens the file through /proc and makes sure that it is the one that was meant.
    fn open(&self) -> io::Result<File> {
        let file = OpenOptions::new().read(true).write(true).open(format!("/proc/{}/fd/{}", self.pid, self.fd))?;
        let data = file.metadata()?;
        if (data.dev(), data.ino(), data.len()) == (self.device, self.inode, self.len) {
            return Ok(file);
        }
        Err(io::Error::other(format!("/proc/{}/fd/{} is another file than was meant", self.pid, self.fd)))
    }
}

/// A memory file of any process, mapped here.
#[derive(Debug)]
pub(crate) struct Mapping {
    map: MmapRaw,
    /// Where the file begins in the mapping.
    start: usize,
    address: Address,
}

impl Mapping {
    fn new(file: &File, address: Address, at_once: bool) -> io::Result<Self> {
        // Every page is there already: what is mapped at once does not fault inside the transfers.
        let bytes = usize::try_from(address.len).map_err(io::Error::other)?;
        let (map, start) = place(file, bytes, at_once)?;
        Ok(Self { map: map.into(), start, address })
    }

    /// The memory at an address, all pages mapped `at_once` or each when it is needed. What was mapped before is mapped
    /// once, also for other files.
    pub(crate) fn at(address: &Address, at_once: bool) -> io::Result<Arc<Self>> {
        static KNOWN: Mutex<Vec<Arc<Mapping>>> = Mutex::new(Vec::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(same) = known.iter().find(|m| m.address == *address) {
            return Ok(Arc::clone(same));
        }
        let mapping = Arc::new(Self::new(&address.open()?, *address, at_once)?);
        // A process has one ring at a time: an older one that nobody uses is gone.
        known.retain(|m| m.address.pid != address.pid || Arc::strong_count(m) > 1);
        known.push(Arc::clone(&mapping));
        Ok(mapping)
    }

    pub(crate) fn as_mut_ptr(&self) -> *mut u8 {
        // `place` has made sure that it lies in the mapping.
        self.map.as_mut_ptr().wrapping_add(self.start)
    }
}

/// One rank's counters, on cache lines of their own.
#[repr(C, align(128))]
struct Counters {
    /// Number of the last point the rank has reached.
    reached: AtomicU32,
    /// Number of the last point at which it had an error.
    failed: AtomicU32,
}

/// Counters of all ranks of a file.
#[derive(Debug)]
pub(crate) struct Control {
    map: Mapping,
    me: usize,
    /// The processes of all ranks.
    ranks: Vec<Life>,
}

impl Control {
    /// Memory for the counters of `ranks` ranks.
    pub(crate) fn create(ranks: usize) -> io::Result<File> {
        memory_file(c"beff-control", (ranks * size_of::<Counters>()) as u64)
    }

    /// The counters at `address`, seen by rank `me` of these.
    pub(crate) fn join(address: &Address, me: usize, ranks: Vec<Life>) -> io::Result<Self> {
        let map = Mapping::new(&address.open()?, *address, true)?;
        if address.len < (ranks.len() * size_of::<Counters>()) as u64 {
            return Err(io::Error::other("the memory of the counters is too small"));
        }
        Ok(Self { map, me, ranks })
    }

    fn of(&self, rank: usize) -> &Counters {
        assert!(rank < self.ranks.len());
        // SAFETY: the mapping holds one aligned `Counters` per rank (pages are aligned to more than 128 bytes), zeroed
        // at first, and all processes use it through atomic operations alone.
        unsafe { &*self.map.as_mut_ptr().cast::<Counters>().add(rank) }
    }

    /// This rank has reached point `number`; everything it has written before is seen by who waits for it.
    pub(crate) fn reach(&self, number: u32, failed: bool) {
        let mine = self.of(self.me);
        if failed {
            mine.failed.store(number, Ordering::Relaxed);
        }
        mine.reached.store(number, Ordering::Release);
        // SAFETY: the address of an atomic that is mapped; waking needs nothing else.
        unsafe { libc::syscall(libc::SYS_futex, mine.reached.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
    }

    /// Waits until all ranks have reached point `number`. Numbers grow, and may wrap. A rank whose process is gone ends all: nobody
    /// could agree with it on anything.
    pub(crate) fn wait(&self, number: u32) {
        if let Err(rank) = self.wait_for_living(number) {
            let (me, process) = (self.me, self.ranks[rank].pid);
            last_words::say(&format!(
                "two-phase: rank {rank} (process {process}) is gone while rank {me} waits for it: ending all ranks"
            ));
            beff_ffi::universe::abort(1);
            std::process::abort();
        }
    }

    /// As [`Control::wait`]; or a rank whose process has ended before it got there.
    fn wait_for_living(&self, number: u32) -> Result<(), usize> {
        for rank in (0..self.ranks.len()).filter(|&r| r != self.me) {
            let counter = &self.of(rank).reached;
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
                    // Looked at before the counter: who is gone now has nothing more to say after that.
                    let gone = self.ranks[rank].is_over();
                    if gone && is_before(counter.load(Ordering::Acquire), number) {
                        return Err(rank);
                    }
                }
            }
        }
        Ok(())
    }

    /// True if a rank had an error at a point from `first` on.
    pub(crate) fn any_failed_since(&self, first: u32) -> bool {
        (0..self.ranks.len()).any(|r| !is_before(self.of(r).failed.load(Ordering::Relaxed), first))
    }
}

/// Sleeps until somebody wakes this thread, at most [`SLEEP_SECONDS`]; not at all if the counter is not `seen` any more. True if the
/// time was up.
fn sleep_while(counter: &AtomicU32, seen: u32) -> bool {
    let most = libc::timespec { tv_sec: SLEEP_SECONDS, tv_nsec: 0 };
    // SAFETY: the address of an atomic that is mapped; returns at once if its value is no longer `seen`; the time is read.
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
    use crate::Ring;

    #[test]
    fn a_ring_is_found_by_its_address_and_a_wrong_address_is_refused() {
        let mut ring = Ring::new_shareable(4096, 4096).unwrap();
        let address = Address::of(ring.shared_file().unwrap()).unwrap();
        assert_eq!(Address::from_words(&address.to_words()), address);
        let seen = Mapping::at(&address, true).unwrap();
        ring.bytes_mut()[100] = 42;
        // SAFETY: inside of the mapping, and nobody else writes.
        assert_eq!(unsafe { seen.as_mut_ptr().add(100).read_volatile() }, 42);
        assert!(Arc::ptr_eq(&seen, &Mapping::at(&address, true).unwrap()));
        assert!(Mapping::at(&Address { inode: address.inode + 1, ..address }, false).is_err());
    }

    #[test]
    fn ranks_wait_for_each_other() {
        const RANKS: usize = 3;
        let file = Control::create(RANKS).unwrap();
        let address = Address::of(&file).unwrap();
        let sum = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for me in 0..RANKS {
                let sum = &sum;
                scope.spawn(move || {
                    let control = Control::join(&address, me, vec![Life::own(); RANKS]).unwrap();
                    for round in 1..200_u32 {
                        sum.fetch_add(1, Ordering::Relaxed);
                        control.reach(2 * round, me == 1 && round == 100);
                        control.wait(2 * round);
                        assert_eq!(sum.load(Ordering::Relaxed), round * RANKS as u32);
                        assert_eq!(control.any_failed_since(2 * round), round == 100);
                        control.reach(2 * round + 1, false);
                        control.wait(2 * round + 1);
                    }
                });
            }
        });
    }

    #[test]
    fn a_rank_that_is_gone_is_not_waited_for() {
        let file = Control::create(2).unwrap();
        let address = Address::of(&file).unwrap();
        let mut other = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let ranks = vec![Life::own(), Life::of(other.id()).unwrap()];
        let control = Control::join(&address, 0, ranks).unwrap();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| control.wait_for_living(1));
            std::thread::sleep(std::time::Duration::from_millis(1500));
            assert!(!waits.is_finished(), "who lives is waited for");
            // It stays there as a zombie: nobody has asked for its end yet.
            other.kill().unwrap();
            assert_eq!(waits.join().unwrap(), Err(1));
        });
        // What it had reached before, it has reached.
        Control::join(&address, 1, vec![Life::own(); 2]).unwrap().reach(1, false);
        assert_eq!(control.wait_for_living(1), Ok(()));
        other.wait().unwrap();
        assert_eq!(control.wait_for_living(2), Err(1));
    }

    #[test]
    fn numbers_wrap() {
        assert!(is_before(u32::MAX, 0) && is_before(3, 4));
        assert!(!is_before(4, 4) && !is_before(1, u32::MAX));
    }
}
