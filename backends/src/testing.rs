//! Shared by the tests of the drivers: scratch files on a real file system, patterns, distinguishable data.

use std::path::Path;

use beff_ffi::Comm;
use tempfile::TempDir;

use crate::{
    driver, AccessPattern, BackendError, CallForm, Direct, DriverOptions, DriverRow, FilePath, OpenFile, OpenMode,
    OpenRequest, RankPartition, Result, TransferBuffer,
};

/// A temporary directory: under TMPDIR if it is set, else next to the test binary, where direct I/O is supported more often than in /tmp.
pub(crate) fn scratch() -> TempDir {
    if std::env::var_os("TMPDIR").is_some() {
        return tempfile::tempdir().unwrap();
    }
    let binary = std::env::current_exe().unwrap();
    tempfile::tempdir_in(binary.parent().unwrap()).unwrap()
}

pub(crate) fn pattern(chunk_bytes: u64, chunks_per_call: u64, max_calls: u64) -> AccessPattern {
    AccessPattern::private(chunk_bytes, chunks_per_call, max_calls)
}

/// Rank `rank` of three, with interleaved chunks.
pub(crate) fn interleaved_pattern(rank: u64) -> AccessPattern {
    AccessPattern {
        origin_bytes: 100,
        base_bytes: 100 + rank * 1032,
        stride_bytes: 3 * 1032,
        rank,
        ranks: 3,
        rank_distance_bytes: 1032,
        partition: RankPartition::Equal,
        form: CallForm::default(),
        ..pattern(1032, 2, 10)
    }
}

/// Fills a transfer buffer with the stream of `seed`: the byte at index i has stream position i modulo the period.
pub(crate) fn fill_stream(buffer: &mut TransferBuffer, seed: u64) {
    let period = buffer.period_bytes();
    for (i, byte) in buffer.bytes_mut().iter_mut().enumerate() {
        *byte = stream_byte(seed, i as u64, period);
    }
}

/// The byte of the stream of `seed` at `position`.
pub(crate) fn stream_byte(seed: u64, position: u64, period: u64) -> u8 {
    let position = position % period;
    let word = (seed << 32 | (position / 8)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // Never 0, which marks unwritten bytes.
    word.to_le_bytes()[(position % 8) as usize] | 1
}

/// Opens a file with the driver of this name for one rank alone; `None` if the driver needs MPI.
pub(crate) fn open_alone(
    name: &str,
    path: &Path,
    mode: OpenMode,
    direct: Direct,
    queue_depth: u32,
) -> Option<Result<Box<dyn OpenFile>>> {
    open_row(driver(name)?, path, mode, direct, queue_depth)
}

/// As [`open_alone`], with the driver of this row.
pub(crate) fn open_row(
    row: &DriverRow,
    path: &Path,
    mode: OpenMode,
    direct: Direct,
    queue_depth: u32,
) -> Option<Result<Box<dyn OpenFile>>> {
    if row.is_collective_native {
        return None;
    }
    let options = DriverOptions { direct, queue_depth, ..DriverOptions::default() };
    // A single rank agrees without MPI.
    let held = FilePath::of(path).map_err(|e| BackendError::from_io("open", path, None, &e));
    Some(held.and_then(|path| {
        let request = OpenRequest { path: &path, mode, comm: &Comm::comm_self(), hints: &[] };
        (row.create)(&options).open(&request)
    }))
}

/// Maximum lockable memory of a thread of [`with_little_lockable_memory`].
pub(crate) const LOCKABLE_BYTES: u64 = 6 << 20;

/// Runs `work` in a thread that can register at most [`LOCKABLE_BYTES`] with the kernel.
pub(crate) fn with_little_lockable_memory(work: impl FnOnce() + Send) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is one struct rlimit, read and written; lowering the soft limit is always allowed.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_MEMLOCK, &mut limit), 0);
        limit.rlim_cur = limit.rlim_cur.min(LOCKABLE_BYTES);
        assert_eq!(libc::setrlimit(libc::RLIMIT_MEMLOCK, &limit), 0);
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            drop_cap_ipc_lock();
            work();
        });
    });
}

/// Drops the capability to lock any amount of memory, for this thread only.
fn drop_cap_ipc_lock() {
    const CAP_IPC_LOCK: u32 = 14;
    let mut header = [0x2008_0522_u32, 0];
    let mut sets = [[0_u32; 3]; 2];
    // SAFETY: header and sets have the layout of capget(2) and capset(2), version 3: two words, and two times three words.
    unsafe {
        assert_eq!(libc::syscall(libc::SYS_capget, header.as_mut_ptr(), sets.as_mut_ptr()), 0);
        sets[0][0] &= !(1 << CAP_IPC_LOCK);
        assert_eq!(libc::syscall(libc::SYS_capset, header.as_mut_ptr(), sets.as_ptr()), 0);
    }
}
