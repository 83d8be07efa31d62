//! The message of a rank that dies of a bus error in one of our mappings. Everything in it but the offset is laid out
//! before; the handler only looks up the address, writes, and lets the default action end the process.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use signal_hook::low_level::emulate_default_handler;
use signal_hook_registry::register_sigaction;

const CAUSE: &str = ": a page of the mapped file cannot be had: the storage reported an error, a copy-on-write file \
    system is full, or the file was truncated while it was mapped. The log of the kernel may tell; use --backend posix \
    to get the error number\n";

/// Newest entry of the list the handler walks; entries are never taken out.
static NEWEST: AtomicPtr<Entry> = AtomicPtr::new(std::ptr::null_mut());
/// Held while an entry is made or taken into use; true once the handler is installed.
static INSTALLED: Mutex<bool> = Mutex::new(false);

/// A file that is or was mapped. Lives as long as the process: a signal may come at any time. Opening the same file again
/// takes the same entry.
#[derive(Debug)]
struct Entry {
    message: Box<[u8]>,
    in_use: AtomicBool,
    /// Addresses `begin .. end` are mapped; both 0: none.
    begin: AtomicUsize,
    end: AtomicUsize,
    /// File offset at `begin`.
    offset: AtomicU64,
    older: Option<&'static Self>,
}

/// Tells the handler where a file is mapped.
#[derive(Debug)]
pub(super) struct Watch(&'static Entry);

impl Watch {
    /// For `rank` of the `ranks` that share the file. Installs the handler if it is the first.
    ///
    /// # Errors
    /// What sigaction(2) reports.
    pub(super) fn new(path: &Path, rank: u64, ranks: u64) -> io::Result<Self> {
        let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
        if !*installed {
            // SAFETY: `report` reads atomics and constants and calls writev(2) and sigaction(2): all are async-signal-safe.
            unsafe { register_sigaction(libc::SIGBUS, report) }?;
            *installed = true;
        }
        let process = std::process::id();
        let who =
            if ranks > 1 { format!("rank {rank} of {ranks}, process {process}") } else { format!("process {process}") };
        // The handler cannot look at it any more: a name may hold what a terminal would obey.
        let name: String = path.display().to_string().chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        let message = format!("beff-raw: bus error (SIGBUS) on {who}, in {name} at offset ").into_bytes();
        let entry = entries().find(|e| *e.message == *message && !e.in_use.load(Ordering::Relaxed));
        let entry = entry.unwrap_or_else(|| {
            let entry: &'static Entry = Box::leak(Box::new(Entry {
                message: message.into(),
                in_use: AtomicBool::new(true),
                begin: AtomicUsize::new(0),
                end: AtomicUsize::new(0),
                offset: AtomicU64::new(0),
                older: entries().next(),
            }));
            NEWEST.store(std::ptr::from_ref(entry).cast_mut(), Ordering::Release);
            entry
        });
        entry.in_use.store(true, Ordering::Relaxed);
        Ok(Self(entry))
    }

    /// `len` bytes at `address` are the file from `offset` on.
    pub(super) fn mapped(&self, address: usize, len: usize, offset: u64) {
        self.0.offset.store(offset, Ordering::Relaxed);
        self.0.begin.store(address, Ordering::Relaxed);
        // Last: an entry with an end is complete.
        self.0.end.store(address + len, Ordering::Release);
    }

    /// Nothing is mapped any more.
    pub(super) fn unmapped(&self) {
        self.0.end.store(0, Ordering::Release);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.unmapped();
        self.0.in_use.store(false, Ordering::Relaxed);
    }
}

fn entries() -> impl Iterator<Item = &'static Entry> {
    // SAFETY: null, or a leaked entry, complete before it was stored.
    let newest = unsafe { NEWEST.load(Ordering::Acquire).as_ref() };
    std::iter::successors(newest, |entry| entry.older)
}

/// The handler.
fn report(info: &libc::siginfo_t) {
    // A positive code is a fault, and then there is an address; others are signals sent by somebody.
    if info.si_code > 0 {
        // SAFETY: the signal is SIGBUS from a fault, for which the kernel fills in the address.
        let address = unsafe { info.si_addr() } as usize;
        let hit =
            entries().find(|e| address < e.end.load(Ordering::Acquire) && address >= e.begin.load(Ordering::Relaxed));
        if let Some(entry) = hit {
            tell(entry, entry.offset.load(Ordering::Relaxed) + (address - entry.begin.load(Ordering::Relaxed)) as u64);
        }
    }
    // Only fails for signals it does not know; the fault would then come again with the default action.
    let _ = emulate_default_handler(libc::SIGBUS);
}

/// One writev(2), so that the lines of several ranks do not mix.
fn tell(entry: &Entry, offset: u64) {
    let mut digits = [0_u8; 20];
    let number = decimal(offset, &mut digits);
    let part = |bytes: &[u8]| libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let parts = [part(&entry.message), part(number), part(CAUSE.as_bytes())];
    // SAFETY: three vectors, each of which borrows memory that outlives the call and is only read.
    let _ = unsafe { libc::writev(libc::STDERR_FILENO, parts.as_ptr(), 3) };
}

/// Formatting without the library, which might allocate.
fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[at..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decimal() {
        for number in [0, 7, 10, 4096, u64::MAX] {
            assert_eq!(decimal(number, &mut [0; 20]), number.to_string().as_bytes());
        }
    }

    #[test]
    fn an_entry_is_used_again_for_the_same_file_only() {
        let path = Path::new("/nowhere/again");
        let first = Watch::new(path, 1, 3).unwrap();
        let text = String::from_utf8(first.0.message.to_vec()).unwrap();
        assert!(text.contains("rank 1 of 3") && text.contains("/nowhere/again"), "{text}");
        let other = Watch::new(path, 1, 3).unwrap();
        assert!(!std::ptr::eq(first.0, other.0), "both are open");
        let before = std::ptr::from_ref(first.0);
        drop(first);
        assert!(std::ptr::eq(Watch::new(path, 1, 3).unwrap().0, before));
        assert!(!std::ptr::eq(Watch::new(Path::new("/nowhere/else"), 1, 3).unwrap().0, before));
    }
}
