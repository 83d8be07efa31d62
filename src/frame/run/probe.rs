//! A short probe of the storage, before and after a run: [`ProbeRecord`].

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use beff_backends::{statx, Direction, FilePath, TransferBuffer};
use beff_ffi::{Comm, MpiError};
use nix::fcntl::OFlag;

use crate::frame::records::{ProbeRecord, ProbeTime};
use crate::frame::run::clock::Instant;
use beff_stamp::{Generation, StampStream};

/// Bytes of one call.
const BLOCK_BYTES: u64 = 1 << 20;
/// Blocks of a round.
const ROUND_BLOCKS: u64 = 4;
const FILE_BLOCKS: u64 = 16;
/// Approximate time of the rounds.
const TARGET_SECONDS: f64 = 0.5;
/// Minimum number of rounds, unless they take longer than [`MAX_SECONDS`] together.
const MIN_ROUNDS: usize = 5;
/// Maximum time, on storage on which even few rounds are slow.
pub const MAX_SECONDS: f64 = 3.0;
const MAX_ROUNDS: usize = 100;

/// Shorter runs have no probes: two would take more than a twentieth of their time.
pub const MIN_RUN_SECONDS: f64 = 20.0;

/// Probes of one run, on rank 0.
pub struct StorageProbe {
    /// Its file, or why there is none.
    path: Result<FilePath, String>,
}

impl StorageProbe {
    /// With a file at `path`, or with the reason why there is none.
    #[must_use]
    pub fn new(path: Result<FilePath, String>) -> Self {
        Self { path }
    }

    /// Probes on rank 0, while the others wait without using their cores, and removes the file. None on other ranks. Collective.
    ///
    /// # Errors
    /// MPI errors.
    pub fn measure(&self, world: &Comm, at: ProbeTime) -> Result<Option<ProbeRecord>, MpiError> {
        let record = world.is_root().then(|| self.measure_local(at));
        world.idle_barrier()?;
        Ok(record)
    }

    fn measure_local(&self, at: ProbeTime) -> ProbeRecord {
        let begin = Instant::now();
        let unknown = |why: String| ProbeRecord { at, unknown_reason: Some(why), ..ProbeRecord::default() };
        let record = match &self.path {
            Err(why) => unknown(why.clone()),
            Ok(path) => {
                let result = probe_file(path);
                // The run directory is removed in any case.
                let _ = path.remove();
                result.unwrap_or_else(unknown)
            }
        };
        ProbeRecord { at, seconds: begin.elapsed().as_secs_f64(), ..record }
    }
}

fn probe_file(path: &FilePath) -> Result<ProbeRecord, String> {
    let message = |what: &'static str| move |e: io::Error| format!("{what} the file of the probe: {e}");
    let created = path.create().map_err(message("create"))?;
    let align = statx::direct_align(&created).map_err(message("statx of"))?;
    let align = align.map(|align| align.direction_bytes(Direction::Write).max(align.direction_bytes(Direction::Read)));
    match align {
        None => return Err("the file system does not support direct I/O, or does not report it".into()),
        Some(bytes) if !BLOCK_BYTES.is_multiple_of(bytes.max(1)) => {
            return Err(format!("direct I/O requires multiples of {bytes} bytes here"))
        }
        Some(_) => {}
    }
    let file = path.open(OFlag::O_RDWR | OFlag::O_DIRECT).map_err(message("open with O_DIRECT"))?;
    let mut memory = TransferBuffer::new(BLOCK_BYTES, 0).map_err(message("memory for"))?;
    StampStream::new(0, Generation::First, 0, BLOCK_BYTES).fill(memory.bytes_mut());
    for block in 0..FILE_BLOCKS {
        file.write_all_at(memory.bytes(), block * BLOCK_BYTES).map_err(message("fill"))?;
    }
    file.sync_all().map_err(message("fsync of"))?;
    run_rounds(&file, &mut memory).map_err(message("probe"))
}

fn run_rounds(file: &File, memory: &mut TransferBuffer) -> io::Result<ProbeRecord> {
    let (mut write_seconds, mut read_seconds) = (Vec::with_capacity(MAX_ROUNDS), Vec::with_capacity(MAX_ROUNDS));
    let begin = Instant::now();
    for round in 0..MAX_ROUNDS {
        let first = round as u64 * ROUND_BLOCKS % FILE_BLOCKS;
        let blocks = (first..first + ROUND_BLOCKS).map(|block| block * BLOCK_BYTES);
        let clock = Instant::now();
        for offset in blocks.clone() {
            file.write_all_at(memory.bytes(), offset)?;
        }
        write_seconds.push(clock.elapsed().as_secs_f64());
        let clock = Instant::now();
        for offset in blocks {
            file.read_exact_at(memory.bytes_mut(), offset)?;
        }
        read_seconds.push(clock.elapsed().as_secs_f64());
        let seconds = begin.elapsed().as_secs_f64();
        if seconds > MAX_SECONDS || (seconds > TARGET_SECONDS && round + 1 >= MIN_ROUNDS) {
            break;
        }
    }
    let round_bytes = ROUND_BLOCKS * BLOCK_BYTES;
    Ok(ProbeRecord { block_bytes: BLOCK_BYTES, round_bytes, write_seconds, read_seconds, ..ProbeRecord::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_has_rounds_or_a_reason_and_leaves_nothing() {
        let directory = tempfile::tempdir_in(".").unwrap();
        let path = directory.path().join("probe.dat");
        let probe = StorageProbe::new(Ok(FilePath::of(&path).unwrap()));
        let record = probe.measure_local(ProbeTime::End);
        assert_eq!(record.at, ProbeTime::End);
        assert_eq!(record.write_seconds.len(), record.read_seconds.len());
        assert_eq!(record.unknown_reason.is_none(), record.write_seconds.len() >= 2, "{record:?}");
        assert!(!path.exists() && record.seconds > 0.0);
    }

    #[test]
    fn without_a_file_there_is_a_reason() {
        let record = StorageProbe::new(Err("short".into())).measure_local(ProbeTime::Start);
        assert_eq!(record.unknown_reason.as_deref(), Some("short"));
        let nowhere = StorageProbe::new(Ok(FilePath::unbacked("/nowhere/probe.dat"))).measure_local(ProbeTime::Start);
        assert!(nowhere.unknown_reason.unwrap().starts_with("create the file of the probe: "));
    }
}
