//! The file of the process: blocks at its end, one limit, and what happens when it cannot grow.

use std::ffi::c_int;
use std::os::fd::IntoRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use beff_trace::raw::{ProcessHead, BLOCK_BYTES};
use beff_trace::End;

static RECORDING: AtomicBool = AtomicBool::new(false);
static FILE: AtomicI32 = AtomicI32::new(-1);
static NEXT_BLOCK: AtomicU32 = AtomicU32::new(1);
static LIMIT_BYTES: AtomicU64 = AtomicU64::new(u64::MAX);
static HEAD: Mutex<Option<ProcessHead>> = Mutex::new(None);

/// True from the begin of MPI to its end, unless something failed.
#[inline(always)]
pub fn recording() -> bool {
    RECORDING.load(Ordering::Relaxed)
}

/// Begins: makes the file and writes its head.
pub fn begin(path: &Path, head: ProcessHead, limit_bytes: u64) {
    let file = match std::fs::OpenOptions::new().read(true).write(true).create_new(true).open(path) {
        Ok(file) => file,
        Err(e) => return crate::say(&format!("cannot make {}: {e}; this rank is not recorded", path.display())),
    };
    FILE.store(file.into_raw_fd(), Ordering::Relaxed);
    LIMIT_BYTES.store(limit_bytes, Ordering::Relaxed);
    match write(0, &head.block()) {
        Ok(()) => {
            *lock() = Some(head);
            RECORDING.store(true, Ordering::Release);
        }
        Err(e) => crate::say(&format!("cannot write {}: {e}; this rank is not recorded", path.display())),
    }
}

fn lock() -> std::sync::MutexGuard<'static, Option<ProcessHead>> {
    HEAD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the recording and writes the head again, changed by `change`.
pub fn end(change: impl FnOnce(&mut ProcessHead)) {
    RECORDING.store(false, Ordering::Release);
    if let Some(mut head) = lock().take() {
        change(&mut head);
        head.moments[1] = crate::clock::moment();
        if let Err(e) = write(0, &head.block()) {
            crate::say(&format!("rank {}: cannot write the end of its record: {e}", head.rank));
        }
    }
}

/// Nothing more is recorded by this process, which is a fork of the one that is.
pub fn forget() {
    RECORDING.store(false, Ordering::Relaxed);
    FILE.store(-1, Ordering::Relaxed);
}

/// Ends the recording because the file cannot grow. Says why, once.
#[cold]
pub fn stop(why: &str) {
    if RECORDING.swap(false, Ordering::AcqRel) {
        let rank = lock().as_ref().map_or(0, |head| head.rank);
        crate::say(&format!("rank {rank}: {why}; its later calls are not recorded, the program goes on"));
        end(|head| head.end = End::Full);
    }
}

/// The number of a block that nobody else writes. None: the recording has ended here.
pub fn reserve() -> Option<u32> {
    let number = NEXT_BLOCK.fetch_add(1, Ordering::Relaxed);
    if (u64::from(number) + 1) * BLOCK_BYTES as u64 > LIMIT_BYTES.load(Ordering::Relaxed) {
        stop("its record has reached BEFF_PROFILE_LIMIT_BYTES");
        return None;
    }
    Some(number)
}

fn place(number: u32) -> libc::off_t {
    libc::off_t::from(number) * BLOCK_BYTES as libc::off_t
}

/// Writes a block, in pieces that follow each other.
pub fn append(number: u32, head: &[u8], records: &[u8]) {
    let whole = libc::iovec { iov_base: records.as_ptr() as *mut _, iov_len: records.len() };
    let pieces = [libc::iovec { iov_base: head.as_ptr() as *mut _, iov_len: head.len() }, whole];
    // SAFETY: both pieces live until the call is over.
    let written = unsafe { libc::pwritev(FILE.load(Ordering::Relaxed), pieces.as_ptr(), 2, place(number)) };
    if usize::try_from(written) == Ok(head.len() + records.len()) {
        return;
    }
    // Interrupted or short: again in single steps, which say what is wrong.
    let result =
        write_at(place(number), head).and_then(|()| write_at(place(number) + head.len() as libc::off_t, records));
    if let Err(e) = result {
        stop(&format!("cannot write its record: {e}"));
    }
}

/// Writes a block.
pub fn write(number: u32, bytes: &[u8]) -> std::io::Result<()> {
    write_at(place(number), bytes)
}

fn write_at(mut place: libc::off_t, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        // SAFETY: the bytes live until the call is over.
        let written = unsafe { libc::pwrite(FILE.load(Ordering::Relaxed), bytes.as_ptr().cast(), bytes.len(), place) };
        match written {
            0 => return Err(std::io::ErrorKind::WriteZero.into()),
            n if n > 0 => {
                bytes = &bytes[n as usize..];
                place += n as libc::off_t;
            }
            _ => {
                let error = std::io::Error::last_os_error();
                if error.kind() != std::io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}

/// Room for a block in the file and the memory that is this room; or memory of our own where the file system cannot map. None: the
/// recording has ended here.
pub fn map(number: u32) -> Option<(*mut u8, bool)> {
    let file = FILE.load(Ordering::Relaxed);
    // SAFETY: room in our own file; a hole would be SIGBUS on a full disk.
    let failed: c_int = unsafe { libc::posix_fallocate(file, place(number), BLOCK_BYTES as libc::off_t) };
    if failed == libc::ENOSPC || failed == libc::EDQUOT || failed == libc::EFBIG {
        stop(&format!("cannot write its record: {}", std::io::Error::from_raw_os_error(failed)));
        return None;
    }
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let map = |flags, file, place| {
        // SAFETY: a new mapping disturbs nobody.
        let memory = unsafe { libc::mmap(std::ptr::null_mut(), BLOCK_BYTES, protection, flags, file, place) };
        (memory != libc::MAP_FAILED).then_some(memory.cast::<u8>())
    };
    let shared = if failed == 0 { map(libc::MAP_SHARED, file, place(number)) } else { None };
    if let Some(memory) = shared {
        return Some((memory, true));
    }
    let own = map(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0);
    if own.is_none() {
        stop("no memory for its record");
    }
    own.map(|memory| (memory, false))
}
