//! What the tests of the drivers share: scratch files on a real file system, patterns, data that can be told apart.

use std::path::Path;

use beff_ffi::Comm;
use tempfile::TempDir;

use crate::{
    driver, BackendError, CallForm, Direct, DriverOptions, DriverRow, FilePath, OpenFile, OpenMode, OpenRequest, Parts,
    Pattern, Result, Ring,
};

/// A directory that goes away; under TMPDIR if that is set, else beside the test binary, where direct I/O works more
/// often than in /tmp.
pub(crate) fn scratch() -> TempDir {
    if std::env::var_os("TMPDIR").is_some() {
        return tempfile::tempdir().unwrap();
    }
    let binary = std::env::current_exe().unwrap();
    tempfile::tempdir_in(binary.parent().unwrap()).unwrap()
}

/// A contiguous pattern from offset 0.
pub(crate) fn pattern(chunk_bytes: u64, chunks_per_call: u64, max_calls: u64) -> Pattern {
    Pattern::private(chunk_bytes, chunks_per_call, max_calls)
}

/// Rank `rank` of three, chunks side by side.
pub(crate) fn scattered(rank: u64) -> Pattern {
    Pattern {
        origin_bytes: 100,
        base_bytes: 100 + rank * 1032,
        stride_bytes: 3 * 1032,
        rank,
        ranks: 3,
        rank_distance_bytes: 1032,
        parts: Parts::Equal,
        form: CallForm::default(),
        ..pattern(1032, 2, 10)
    }
}

/// Fills a ring with the stream of `seed`: the byte at index i belongs to stream position i modulo the period.
pub(crate) fn fill(ring: &mut Ring, seed: u64) {
    let period = ring.period_bytes();
    for (i, byte) in ring.bytes_mut().iter_mut().enumerate() {
        *byte = stream_byte(seed, i as u64, period);
    }
}

/// The byte of the stream of `seed` at `position`.
pub(crate) fn stream_byte(seed: u64, position: u64, period: u64) -> u8 {
    let position = position % period;
    let word = (seed << 32 | (position / 8)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // Never the poison 0.
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
    // A rank that is alone agrees with itself without MPI.
    let held = FilePath::of(path).map_err(|e| BackendError::from_io("open", path, None, &e));
    Some(held.and_then(|path| {
        let request = OpenRequest { path: &path, mode, comm: &Comm::own(), hints: &[] };
        (row.make)(&options).open(&request)
    }))
}
