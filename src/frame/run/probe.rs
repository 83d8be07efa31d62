//! A short probe of the storage, before and after a run: [`ProbeRecord`].

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use beff_backends::{statx, Direction, FilePath, Ring};
use beff_ffi::{Comm, MpiError};
use nix::fcntl::OFlag;

use crate::frame::records::{ProbeAt, ProbeRecord};
use crate::frame::run::clock::Instant;
use beff_stamp::{Generation, Stream};

/// Bytes of one call.
const BLOCK_BYTES: u64 = 1 << 20;
/// Blocks of a round.
const ROUND_BLOCKS: u64 = 4;
/// Blocks of the file.
const FILE_BLOCKS: u64 = 16;
/// Time of the rounds, about.
const SECONDS: f64 = 0.5;
/// Rounds at least, as long as they do not take longer than [`MOST_SECONDS`] together.
const LEAST_ROUNDS: usize = 5;
/// On storage on which even few rounds are slow.
const MOST_SECONDS: f64 = 3.0;
/// Rounds at most, however fast they are.
const MOST_ROUNDS: usize = 100;

/// Runs that are shorter have none: two probes would be more than a twentieth of their time.
pub const LEAST_RUN_SECONDS: f64 = 20.0;

/// The probes of one run. Only rank 0 does anything.
pub struct Probe {
    /// Its file; why there is none.
    path: Result<FilePath, String>,
}

impl Probe {
    /// With a file of its own at `path`, or without.
    #[must_use]
    pub fn new(path: Result<FilePath, String>) -> Self {
        Self { path }
    }

    /// Makes a probe on rank 0, while the others wait without using their cores. The file is removed at once. None on other ranks.
    /// Collective.
    ///
    /// # Errors
    /// MPI between the ranks.
    pub fn measure(&self, world: &Comm, at: ProbeAt) -> Result<Option<ProbeRecord>, MpiError> {
        let record = world.is_root().then(|| self.alone(at));
        world.idle_barrier()?;
        Ok(record)
    }

    fn alone(&self, at: ProbeAt) -> ProbeRecord {
        let begin = Instant::now();
        let unknown = |why: String| ProbeRecord { at, not_known: Some(why), ..ProbeRecord::default() };
        let record = match &self.path {
            Err(why) => unknown(why.clone()),
            Ok(path) => {
                let made = in_file(path);
                // The directory of the run is removed in any case.
                let _ = path.remove();
                made.unwrap_or_else(unknown)
            }
        };
        ProbeRecord { at, seconds: begin.elapsed().as_secs_f64(), ..record }
    }
}

/// Creates the file, fills it, and probes it.
fn in_file(path: &FilePath) -> Result<ProbeRecord, String> {
    let told = |what: &'static str| move |e: io::Error| format!("{what} the file of the probe: {e}");
    let created = path.create().map_err(told("create"))?;
    let align = statx::direct_align(&created).map_err(told("statx of"))?;
    let align = align.map(|align| align.bytes_of(Direction::Write).max(align.bytes_of(Direction::Read)));
    match align {
        None => return Err("the file system does no direct I/O, or does not tell".into()),
        Some(bytes) if !BLOCK_BYTES.is_multiple_of(bytes.max(1)) => {
            return Err(format!("direct I/O asks for multiples of {bytes} bytes here"))
        }
        Some(_) => {}
    }
    let file = path.open(OFlag::O_RDWR | OFlag::O_DIRECT).map_err(told("open with O_DIRECT"))?;
    let mut memory = Ring::new(BLOCK_BYTES, 0).map_err(told("memory for"))?;
    Stream::new(0, Generation::First, 0, BLOCK_BYTES).fill(memory.bytes_mut());
    for block in 0..FILE_BLOCKS {
        file.write_all_at(memory.bytes(), block * BLOCK_BYTES).map_err(told("fill"))?;
    }
    file.sync_all().map_err(told("fsync of"))?;
    rounds(&file, &mut memory).map_err(told("probe"))
}

fn rounds(file: &File, memory: &mut Ring) -> io::Result<ProbeRecord> {
    let (mut write_seconds, mut read_seconds) = (Vec::with_capacity(MOST_ROUNDS), Vec::with_capacity(MOST_ROUNDS));
    let begin = Instant::now();
    for round in 0..MOST_ROUNDS {
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
        if seconds > MOST_SECONDS || (seconds > SECONDS && round + 1 >= LEAST_ROUNDS) {
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
        let probe = Probe::new(Ok(FilePath::of(&path).unwrap()));
        let record = probe.alone(ProbeAt::End);
        assert_eq!(record.at, ProbeAt::End);
        assert_eq!(record.write_seconds.len(), record.read_seconds.len());
        assert_eq!(record.not_known.is_none(), record.write_seconds.len() >= 2, "{record:?}");
        assert!(!path.exists() && record.seconds > 0.0);
    }

    #[test]
    fn without_a_file_there_is_a_reason() {
        let record = Probe::new(Err("short".into())).alone(ProbeAt::Start);
        assert_eq!(record.not_known.as_deref(), Some("short"));
        let nowhere = Probe::new(Ok(FilePath::nowhere("/nowhere/probe.dat"))).alone(ProbeAt::Start);
        assert!(nowhere.not_known.unwrap().starts_with("create the file of the probe: "));
    }
}
