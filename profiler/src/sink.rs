//! The process file: appended blocks, a size limit, and errors if it cannot grow.

use std::ffi::c_int;
use std::os::fd::IntoRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use beff_trace::raw::block::HEADER_BYTES;
use beff_trace::raw::{ProcessHeader, BLOCK_BYTES};
use beff_trace::RecordingStatus;

use crate::message::{file_identity, file_status, report};
use crate::{bus_error, recording};

static FILE: AtomicI32 = AtomicI32::new(-1);
static DEVICE: AtomicU64 = AtomicU64::new(0);
static INODE: AtomicU64 = AtomicU64::new(0);
static NEXT_BLOCK: AtomicU32 = AtomicU32::new(1);
static LIMIT_BYTES: AtomicU64 = AtomicU64::new(u64::MAX);
static HEAD: Mutex<Option<ProcessHeader>> = Mutex::new(None);
/// Bytes that the file has at least, unless something else truncates it.
static EXTENT: AtomicU64 = AtomicU64::new(0);
/// Blocks in anonymous memory: address and number.
static UNMAPPED: Mutex<Vec<(usize, u32)>> = Mutex::new(Vec::new());

/// True from the start of MPI to its end, unless an error occurred.
#[inline(always)]
pub fn is_recording() -> bool {
    recording::is_active()
}

/// Creates the file, writes its head and starts the recording.
pub fn begin(path: &Path, head: ProcessHeader, limit_bytes: u64) {
    let file = match std::fs::OpenOptions::new().read(true).write(true).create_new(true).open(path) {
        Ok(file) => file,
        Err(e) => return report(&format!("cannot create {}: {e}; this rank is not recorded", path.display())),
    };
    if let Err(e) = adopt_file(file.into_raw_fd()) {
        return report(&format!("cannot keep {} open: {e}; this rank is not recorded", path.display()));
    }
    LIMIT_BYTES.store(limit_bytes, Ordering::Relaxed);
    match write_block(0, &head.block()) {
        Ok(()) => {
            *lock_head() = Some(head);
            recording::begin();
        }
        Err(e) => report(&format!("cannot write {}: {e}; this rank is not recorded", path.display())),
    }
}

/// Moves the file to a descriptor number that the program hardly uses: some programs close all that they might have opened.
fn adopt_file(file: c_int) -> std::io::Result<()> {
    // SAFETY: the descriptor is owned here, and open.
    let high = unsafe { libc::fcntl(file, libc::F_DUPFD_CLOEXEC, 700) };
    let kept = if high < 0 { file } else { high };
    if high >= 0 {
        // SAFETY: the other one is owned here too.
        unsafe { libc::close(file) };
    }
    let Some((device, inode)) = file_identity(kept) else { return Err(std::io::Error::last_os_error()) };
    DEVICE.store(device, Ordering::Relaxed);
    INODE.store(inode, Ordering::Relaxed);
    FILE.store(kept, Ordering::Relaxed);
    Ok(())
}

fn own_identity() -> (u64, u64) {
    (DEVICE.load(Ordering::Relaxed), INODE.load(Ordering::Relaxed))
}

/// The descriptor, for a write that ends at `end`. If the program has closed it, the number may be that of its own file: nothing more is
/// written.
fn checked_file(end: libc::off_t) -> std::io::Result<c_int> {
    let file = FILE.load(Ordering::Relaxed);
    if file_identity(file) != Some(own_identity()) {
        return Err(std::io::Error::other("the program has closed the file"));
    }
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the structure is a local variable.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) };
    // The kernel would terminate the program with SIGXFSZ.
    if u64::try_from(end).unwrap_or(u64::MAX) > limit.rlim_cur {
        return Err(std::io::Error::other("it would exceed the file size limit (RLIMIT_FSIZE)"));
    }
    Ok(file)
}

fn lock_head() -> std::sync::MutexGuard<'static, Option<ProcessHeader>> {
    HEAD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the recording and rewrites the head, modified by `change`.
pub fn end(change: impl FnOnce(&mut ProcessHeader)) {
    recording::end();
    // Locked only by another end of the recording, maybe of this thread interrupted by a signal handler.
    let Ok(mut head) = HEAD.try_lock() else { return };
    if let Some(mut head) = head.take() {
        let saved = if recording::take_loss() {
            Err(std::io::Error::other(LOST_RECORD))
        } else {
            save_unmapped().and_then(|()| check_extent(EXTENT.load(Ordering::Acquire)))
        };
        change(&mut head);
        if let (Err(e), RecordingStatus::Complete) = (saved, head.end) {
            head.end = RecordingStatus::LimitReached;
            report(&format!("rank {}: cannot write the last calls of its record: {e}", head.rank));
        }
        head.clock_samples[1] = crate::clock::sample_clock();
        if let Err(e) = write_block(0, &head.block()) {
            report(&format!("rank {}: cannot write the end of its record: {e}", head.rank));
        }
    }
}

/// Writes all blocks in anonymous memory, including those of finished or idle threads.
fn save_unmapped() -> std::io::Result<()> {
    let blocks = UNMAPPED.lock().unwrap_or_else(PoisonError::into_inner);
    let write = |(memory, number): &(usize, u32)| write_at(block_offset(*number), *memory as *const u8, BLOCK_BYTES);
    blocks.iter().map(write).fold(Ok(()), Result::and)
}

/// Disables the recording in this process, a fork of the recorded one.
pub fn disable() {
    recording::end();
    FILE.store(-1, Ordering::Relaxed);
}

/// Ends the recording because the file cannot grow, and reports the reason once.
#[cold]
pub fn stop(why: &str) {
    if recording::end() {
        end_early(why);
    }
}

#[cold]
fn end_early(why: &str) {
    let rank = lock_head().as_ref().map_or(0, |head| head.rank);
    report(&format!("rank {rank}: {why}; later calls are not recorded, the program continues"));
    end(|head| head.end = RecordingStatus::LimitReached);
}

const LOST_RECORD: &str = "its file was truncated or its file system failed (SIGBUS)";

/// Reports once that a mapped block was lost. Not inlined: it would take registers from the path of every call.
#[cold]
#[inline(never)]
pub fn report_loss() {
    if recording::take_loss() {
        end_early(&format!("cannot write its record: {LOST_RECORD}"));
    }
}

/// Error if the file is shorter than it was or has lost its name.
fn check_extent(extent: u64) -> std::io::Result<()> {
    let what = match file_status(FILE.load(Ordering::Relaxed)) {
        // Reported by `checked_file`.
        Some(status) if (status.st_dev, status.st_ino) != own_identity() => return Ok(()),
        Some(status) if status.st_nlink == 0 => "something has removed its file",
        Some(status) if u64::try_from(status.st_size).unwrap_or(0) < extent => "something has truncated its file",
        _ => return Ok(()),
    };
    Err(std::io::Error::other(what))
}

/// Reserves a block number. None if the recording has ended.
pub fn reserve_block() -> Option<u32> {
    let number = NEXT_BLOCK.fetch_add(1, Ordering::Relaxed);
    if (u64::from(number) + 1) * BLOCK_BYTES as u64 > LIMIT_BYTES.load(Ordering::Relaxed) {
        stop("its record has reached BEFF_PROFILE_LIMIT_BYTES");
        return None;
    }
    Some(number)
}

fn block_offset(number: u32) -> libc::off_t {
    libc::off_t::from(number) * BLOCK_BYTES as libc::off_t
}

/// Writes a block from two contiguous parts.
pub fn append_block(number: u32, head: &[u8], records: &[u8]) {
    // Loaded before the size of the file: it only grows.
    let extent = EXTENT.load(Ordering::Acquire);
    let whole = libc::iovec { iov_base: records.as_ptr() as *mut _, iov_len: records.len() };
    let pieces = [libc::iovec { iov_base: head.as_ptr() as *mut _, iov_len: head.len() }, whole];
    let end = block_offset(number) + (head.len() + records.len()) as libc::off_t;
    if let Err(e) = check_extent(extent) {
        return stop(&format!("cannot write its record: {e}"));
    }
    let written = match checked_file(end) {
        // SAFETY: both parts outlive the call.
        Ok(file) => unsafe { libc::pwritev(file, pieces.as_ptr(), 2, block_offset(number)) },
        Err(_) => -1,
    };
    if usize::try_from(written) == Ok(head.len() + records.len()) {
        EXTENT.fetch_max(end as u64, Ordering::AcqRel);
        return;
    }
    // Interrupted or short: retried in single steps, which report the error.
    let after = block_offset(number) + head.len() as libc::off_t;
    let result = write_block(number, head).and_then(|()| write_at(after, records.as_ptr(), records.len()));
    if let Err(e) = result {
        // A part may have been written: without its head it is treated as never written. The live block still has all records.
        let _ = write_block(number, &[0; HEADER_BYTES]);
        stop(&format!("cannot write its record: {e}"));
    }
}

pub fn write_block(number: u32, bytes: &[u8]) -> std::io::Result<()> {
    write_at(block_offset(number), bytes.as_ptr(), bytes.len())
}

/// The memory outlives the call. Passed by address, because a thread may still write to a block that is being saved.
fn write_at(place: libc::off_t, memory: *const u8, length: usize) -> std::io::Result<()> {
    let file = checked_file(place + length as libc::off_t)?;
    let mut done = 0;
    while done < length {
        let (rest, at) = (memory.wrapping_add(done), place + done as libc::off_t);
        // SAFETY: the kernel reads inside the memory, which is valid (see above).
        let written = unsafe { libc::pwrite(file, rest.cast(), length - done, at) };
        match written {
            0 => return Err(std::io::ErrorKind::WriteZero.into()),
            n if n > 0 => {
                done += n as usize;
                EXTENT.fetch_max(place as u64 + done as u64, Ordering::AcqRel);
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

/// Allocates a block in the file and maps it, or allocates anonymous memory if the file system cannot map. None if the recording has
/// ended.
pub fn map_block(number: u32) -> Option<(*mut u8, bool)> {
    let extent = EXTENT.load(Ordering::Acquire);
    let end = block_offset(number) + BLOCK_BYTES as libc::off_t;
    let file = match check_extent(extent).and_then(|()| checked_file(end)) {
        Ok(file) => file,
        Err(e) => {
            stop(&format!("cannot write its record: {e}"));
            return None;
        }
    };
    // SAFETY: allocates space in the own file; a hole would cause SIGBUS on a full disk.
    let failed: c_int = unsafe { libc::posix_fallocate(file, block_offset(number), BLOCK_BYTES as libc::off_t) };
    if failed == libc::ENOSPC || failed == libc::EDQUOT || failed == libc::EFBIG {
        stop(&format!("cannot write its record: {}", std::io::Error::from_raw_os_error(failed)));
        return None;
    }
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let map = |flags, file, place| {
        // SAFETY: a new mapping affects no other memory.
        let memory = unsafe { libc::mmap(std::ptr::null_mut(), BLOCK_BYTES, protection, flags, file, place) };
        (memory != libc::MAP_FAILED).then_some(memory.cast::<u8>())
    };
    let shared = if failed == 0 { map(libc::MAP_SHARED, file, block_offset(number)) } else { None };
    if let Some(memory) = shared {
        EXTENT.fetch_max(end as u64, Ordering::AcqRel);
        bus_error::guard_block(memory as usize);
        return Some((memory, true));
    }
    let own = map(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0);
    match own {
        // Never unmapped, so that the final save can read it.
        Some(memory) => UNMAPPED.lock().unwrap_or_else(PoisonError::into_inner).push((memory as usize, number)),
        None => stop("no memory for its record"),
    }
    own.map(|memory| (memory, false))
}
