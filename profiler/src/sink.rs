//! The file of the process: blocks at its end, one limit, and what happens when it cannot grow.

use std::ffi::c_int;
use std::os::fd::IntoRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use beff_trace::raw::block::HEAD_BYTES;
use beff_trace::raw::{ProcessHead, BLOCK_BYTES};
use beff_trace::End;

use crate::message::{identity, say};

static RECORDING: AtomicBool = AtomicBool::new(false);
static FILE: AtomicI32 = AtomicI32::new(-1);
static DEVICE: AtomicU64 = AtomicU64::new(0);
static INODE: AtomicU64 = AtomicU64::new(0);
static NEXT_BLOCK: AtomicU32 = AtomicU32::new(1);
static LIMIT_BYTES: AtomicU64 = AtomicU64::new(u64::MAX);
static HEAD: Mutex<Option<ProcessHead>> = Mutex::new(None);
/// Blocks in memory of our own: address and number.
static UNMAPPED: Mutex<Vec<(usize, u32)>> = Mutex::new(Vec::new());

/// True from the begin of MPI to its end, unless something failed.
#[inline(always)]
pub fn recording() -> bool {
    RECORDING.load(Ordering::Relaxed)
}

/// Begins: makes the file and writes its head.
pub fn begin(path: &Path, head: ProcessHead, limit_bytes: u64) {
    let file = match std::fs::OpenOptions::new().read(true).write(true).create_new(true).open(path) {
        Ok(file) => file,
        Err(e) => return say(&format!("cannot make {}: {e}; this rank is not recorded", path.display())),
    };
    if let Err(e) = keep(file.into_raw_fd()) {
        return say(&format!("cannot keep {} open: {e}; this rank is not recorded", path.display()));
    }
    LIMIT_BYTES.store(limit_bytes, Ordering::Relaxed);
    match write(0, &head.block()) {
        Ok(()) => {
            *lock() = Some(head);
            RECORDING.store(true, Ordering::Release);
        }
        Err(e) => say(&format!("cannot write {}: {e}; this rank is not recorded", path.display())),
    }
}

/// Takes the file, by a number that the program will hardly use: some close all they might have opened.
fn keep(file: c_int) -> std::io::Result<()> {
    // SAFETY: the file is ours, and open.
    let high = unsafe { libc::fcntl(file, libc::F_DUPFD_CLOEXEC, 700) };
    let kept = if high < 0 { file } else { high };
    if high >= 0 {
        // SAFETY: the other one is ours too.
        unsafe { libc::close(file) };
    }
    let Some((device, inode)) = identity(kept) else { return Err(std::io::Error::last_os_error()) };
    DEVICE.store(device, Ordering::Relaxed);
    INODE.store(inode, Ordering::Relaxed);
    FILE.store(kept, Ordering::Relaxed);
    Ok(())
}

/// The file, for a write that ends at `end`. If the program has closed it, its number may be that of a file of the program: then
/// nothing is written any more.
fn file(end: libc::off_t) -> std::io::Result<c_int> {
    let file = FILE.load(Ordering::Relaxed);
    let own = (DEVICE.load(Ordering::Relaxed), INODE.load(Ordering::Relaxed));
    if identity(file) != Some(own) {
        return Err(std::io::Error::other("the program has closed the file"));
    }
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the memory for the answer is ours.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) };
    // The kernel would end the program with SIGXFSZ.
    if u64::try_from(end).unwrap_or(u64::MAX) > limit.rlim_cur {
        return Err(std::io::Error::other("it would be larger than files may be (RLIMIT_FSIZE)"));
    }
    Ok(file)
}

fn lock() -> std::sync::MutexGuard<'static, Option<ProcessHead>> {
    HEAD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the recording and writes the head again, changed by `change`.
pub fn end(change: impl FnOnce(&mut ProcessHead)) {
    RECORDING.store(false, Ordering::Release);
    // Taken only by somebody who ends it too, maybe by this thread below a handler of signals.
    let Ok(mut head) = HEAD.try_lock() else { return };
    if let Some(mut head) = head.take() {
        let saved = save_unmapped();
        change(&mut head);
        if let (Err(e), End::Complete) = (saved, head.end) {
            head.end = End::Full;
            say(&format!("rank {}: cannot write the last calls of its record: {e}", head.rank));
        }
        head.moments[1] = crate::clock::moment();
        if let Err(e) = write(0, &head.block()) {
            say(&format!("rank {}: cannot write the end of its record: {e}", head.rank));
        }
    }
}

/// Writes what is in memory of our own, of threads that have ended or call nothing any more too.
fn save_unmapped() -> std::io::Result<()> {
    let blocks = UNMAPPED.lock().unwrap_or_else(PoisonError::into_inner);
    let write = |(memory, number): &(usize, u32)| write_at(place(*number), *memory as *const u8, BLOCK_BYTES);
    blocks.iter().map(write).fold(Ok(()), Result::and)
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
        say(&format!("rank {rank}: {why}; its later calls are not recorded, the program goes on"));
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
    let written = match file(place(number) + (head.len() + records.len()) as libc::off_t) {
        // SAFETY: both pieces live until the call is over.
        Ok(file) => unsafe { libc::pwritev(file, pieces.as_ptr(), 2, place(number)) },
        Err(_) => -1,
    };
    if usize::try_from(written) == Ok(head.len() + records.len()) {
        return;
    }
    // Interrupted or short: again in single steps, which say what is wrong.
    let after = place(number) + head.len() as libc::off_t;
    let result = write(number, head).and_then(|()| write_at(after, records.as_ptr(), records.len()));
    if let Err(e) = result {
        // A part of it may be there: without its head it is taken for one that was never written. The live block still has it all.
        let _ = write(number, &[0; HEAD_BYTES]);
        stop(&format!("cannot write its record: {e}"));
    }
}

/// Writes a block.
pub fn write(number: u32, bytes: &[u8]) -> std::io::Result<()> {
    write_at(place(number), bytes.as_ptr(), bytes.len())
}

/// Memory that lives until the call is over. By its address: a thread may still write to a block that is saved.
fn write_at(place: libc::off_t, memory: *const u8, length: usize) -> std::io::Result<()> {
    let file = file(place + length as libc::off_t)?;
    let mut done = 0;
    while done < length {
        let (rest, at) = (memory.wrapping_add(done), place + done as libc::off_t);
        // SAFETY: the kernel reads inside of the memory, which lives (see above).
        let written = unsafe { libc::pwrite(file, rest.cast(), length - done, at) };
        match written {
            0 => return Err(std::io::ErrorKind::WriteZero.into()),
            n if n > 0 => done += n as usize,
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
    let file = match file(place(number) + BLOCK_BYTES as libc::off_t) {
        Ok(file) => file,
        Err(e) => {
            stop(&format!("cannot write its record: {e}"));
            return None;
        }
    };
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
    match own {
        // It is never given back: what is saved at the end is still there.
        Some(memory) => UNMAPPED.lock().unwrap_or_else(PoisonError::into_inner).push((memory as usize, number)),
        None => stop("no memory for its record"),
    }
    own.map(|memory| (memory, false))
}
