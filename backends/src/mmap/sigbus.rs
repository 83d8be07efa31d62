//! Message of a rank that ends by a bus error in a mapping. Only the offset is formatted in the handler, which looks up the
//! address, writes, and lets the default action end the process.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use signal_hook::low_level::emulate_default_handler;
use signal_hook_registry::register_sigaction;

const EXPLANATION: &str =
    ": a page of the mapping is unavailable: the storage reported an error, a copy-on-write file \
    system is full, or the file was truncated while it was mapped. See the kernel log; use --backend posix \
    to get the error number\n";

/// Head of the handler's list; entries are never removed.
static NEWEST: AtomicPtr<MappingEntry> = AtomicPtr::new(std::ptr::null_mut());
/// Held while an entry is created or reused; true once the handler is installed.
static INSTALLED: Mutex<bool> = Mutex::new(false);

/// A file that is or was mapped. Never freed, because a signal may arrive at any time, but reused when the file is reopened.
#[derive(Debug)]
struct MappingEntry {
    message: Box<[u8]>,
    in_use: AtomicBool,
    /// Addresses `begin .. end` are mapped; both 0: none.
    begin: AtomicUsize,
    end: AtomicUsize,
    /// File offset at `begin`.
    offset: AtomicU64,
    older: Option<&'static Self>,
}

/// Registration of a mapping with the handler.
#[derive(Debug)]
pub(super) struct MappingRegistration(&'static MappingEntry);

impl MappingRegistration {
    /// The first registration installs the handler.
    ///
    /// # Errors
    /// Errors of sigaction(2).
    pub(super) fn new(path: &Path, rank: u64, ranks: u64) -> io::Result<Self> {
        let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
        if !*installed {
            // SAFETY: `report` reads atomics and constants and calls writev(2) and sigaction(2): all are async-signal-safe.
            unsafe { register_sigaction(libc::SIGBUS, handle_sigbus) }?;
            *installed = true;
        }
        let process = std::process::id();
        let who =
            if ranks > 1 { format!("rank {rank} of {ranks}, process {process}") } else { format!("process {process}") };
        // Replaced here, outside the handler: control characters for the terminal.
        let name: String = path.display().to_string().chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        let message = format!("beff-raw: bus error (SIGBUS) on {who}, in {name} at offset ").into_bytes();
        let entry = entries().find(|e| *e.message == *message && !e.in_use.load(Ordering::Relaxed));
        let entry = entry.unwrap_or_else(|| {
            let entry: &'static MappingEntry = Box::leak(Box::new(MappingEntry {
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

    pub(super) fn set_mapping(&self, address: usize, len: usize, offset: u64) {
        self.0.offset.store(offset, Ordering::Relaxed);
        self.0.begin.store(address, Ordering::Relaxed);
        // Stored last: an entry with an end is complete.
        self.0.end.store(address + len, Ordering::Release);
    }

    pub(super) fn clear_mapping(&self) {
        self.0.end.store(0, Ordering::Release);
    }
}

impl Drop for MappingRegistration {
    fn drop(&mut self) {
        self.clear_mapping();
        self.0.in_use.store(false, Ordering::Relaxed);
    }
}

fn entries() -> impl Iterator<Item = &'static MappingEntry> {
    // SAFETY: null, or a leaked entry, complete before it was stored.
    let newest = unsafe { NEWEST.load(Ordering::Acquire).as_ref() };
    std::iter::successors(newest, |entry| entry.older)
}

fn handle_sigbus(info: &libc::siginfo_t) {
    // A positive code is a fault, with an address; others were sent by a process.
    if info.si_code > 0 {
        // SAFETY: the signal is SIGBUS from a fault, for which the kernel fills in the address.
        let address = unsafe { info.si_addr() } as usize;
        let hit =
            entries().find(|e| address < e.end.load(Ordering::Acquire) && address >= e.begin.load(Ordering::Relaxed));
        if let Some(entry) = hit {
            write_message(
                entry,
                entry.offset.load(Ordering::Relaxed) + (address - entry.begin.load(Ordering::Relaxed)) as u64,
            );
        }
    }
    // Fails only for unknown signals; the fault would recur with the default action.
    let _ = emulate_default_handler(libc::SIGBUS);
}

/// One writev(2), so that messages of several ranks do not interleave.
fn write_message(entry: &MappingEntry, offset: u64) {
    let mut digits = [0_u8; 20];
    let number = format_decimal(offset, &mut digits);
    let part = |bytes: &[u8]| libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let parts = [part(&entry.message), part(number), part(EXPLANATION.as_bytes())];
    // SAFETY: three vectors, each of which borrows memory that outlives the call and is only read.
    let _ = unsafe { libc::writev(libc::STDERR_FILENO, parts.as_ptr(), 3) };
}

/// No standard library, which might allocate.
fn format_decimal(mut number: u64, digits: &mut [u8; 20]) -> &[u8] {
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
            assert_eq!(format_decimal(number, &mut [0; 20]), number.to_string().as_bytes());
        }
    }

    #[test]
    fn an_entry_is_used_again_for_the_same_file_only() {
        let path = Path::new("/nowhere/again");
        let first = MappingRegistration::new(path, 1, 3).unwrap();
        let text = String::from_utf8(first.0.message.to_vec()).unwrap();
        assert!(text.contains("rank 1 of 3") && text.contains("/nowhere/again"), "{text}");
        let other = MappingRegistration::new(path, 1, 3).unwrap();
        assert!(!std::ptr::eq(first.0, other.0), "both are open");
        let before = std::ptr::from_ref(first.0);
        drop(first);
        assert!(std::ptr::eq(MappingRegistration::new(path, 1, 3).unwrap().0, before));
        assert!(!std::ptr::eq(MappingRegistration::new(Path::new("/nowhere/else"), 1, 3).unwrap().0, before));
    }
}
