//! What the tests of the drivers share: scratch files on a real file system, patterns, data that can be told apart.

use tempfile::TempDir;

use crate::direct::FdPair;
use crate::mmap::MmapFile;
use crate::null::NullFile;
use crate::posix::PosixFile;
use crate::uring::UringFile;
use crate::{Direct, DriverOptions, OpenFile, OpenMode, Pattern, Result, Ring};
use std::path::Path;

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
    let files = || FdPair::open_alone(path, mode, direct);
    let open: Result<Box<dyn OpenFile>> = match name {
        "posix" => files().map(|f| Box::new(PosixFile::new(f)) as _),
        "uring" => files()
            .and_then(|f| UringFile::new(f, (&DriverOptions { queue_depth, ..DriverOptions::default() }).into()))
            .map(|f| Box::new(f) as _),
        "mmap" => FdPair::open_alone(path, mode, Direct::Off)
            .and_then(|f| MmapFile::new(f, false, 0, 1))
            .map(|f| Box::new(f) as _),
        "null" => Ok(Box::new(NullFile::new(path))),
        _ => return None,
    };
    Some(open)
}
