//! The smallest complete backend, as a template: pread and pwrite of every chunk through the page cache. The tests compile it and run on
//! it what they run on every driver; the program does not contain it.

use std::os::unix::fs::FileExt;

use crate::direct::FdPair;
use crate::registry::OFFSET_DRIVER;
use crate::walk::{batch_bytes, check_fits, ChunkWalk};
use crate::{
    run_mixed, AccessPattern, BackendError, Batch, Batches, Direct, Direction, Driver, DriverOptions, DriverRow,
    Latency, LatencyUnit, OpenFile, OpenRequest, Result, Support, TransferBuffer, TransferStrategy,
};

/// Entry of the table in `registry.rs`: its name, and its abilities beyond explicit offsets.
pub(crate) const ROW: DriverRow = DriverRow {
    name: "skeleton",
    summary: "pread and pwrite at the same offsets, buffered",
    create: |options| Box::new(SkeletonDriver::new(options)),
    ..OFFSET_DRIVER
};

/// State that is independent of a file: the options that this backend uses. Here, none.
#[derive(Clone, Debug)]
pub struct SkeletonDriver;

impl SkeletonDriver {
    /// Stores the options that determine the transfers.
    #[must_use]
    pub fn new(_options: &DriverOptions) -> Self {
        Self
    }
}

impl Driver for SkeletonDriver {
    fn open(&self, request: &OpenRequest<'_>) -> Result<Box<dyn OpenFile>> {
        // Collective: rank 0 alone creates a new file, exclusively, and the others wait for the outcome.
        let files = FdPair::open(request, Direct::Off.into())?;
        Ok(Box::new(SkeletonFile { files, pattern: None }))
    }
}

struct SkeletonFile {
    files: FdPair,
    /// The prepared pattern. A real driver stores what it derives from it for the batches.
    pattern: Option<AccessPattern>,
}

impl SkeletonFile {
    fn prepared(&self, operation: &'static str) -> Result<&AccessPattern> {
        self.pattern.as_ref().ok_or_else(|| BackendError::not_prepared(operation, &self.files.path))
    }

    // Inside the timed section: no allocation, formatting or look-up; an error ends the batch with its offset.
    fn write_batch(&mut self, batch: Batch, buffer: &TransferBuffer, latency: &mut Latency) -> Result<u64> {
        let (pattern, path) = (self.prepared("pwrite")?, &self.files.path);
        let len = pattern.chunk_bytes as usize;
        let mut walk = ChunkWalk::new(pattern, Direction::Write, batch, buffer, path)?;
        for _ in 0..batch.calls {
            let mark = latency.begin();
            for (offset, index) in walk.by_ref().take(pattern.chunks_per_call as usize) {
                let chunk = &buffer.bytes()[index..index + len];
                let wrote = self.files.buffered.write_at(chunk, offset);
                let wrote = wrote.map_err(|e| BackendError::from_io("pwrite", path, Some(offset), &e))?;
                if wrote < len {
                    return Err(BackendError::short_transfer("pwrite", path, offset, len as u64, wrote as u64));
                }
            }
            latency.end(mark);
        }
        Ok(batch_bytes(pattern, batch))
    }

    fn read_batch(&mut self, batch: Batch, buffer: &mut TransferBuffer, latency: &mut Latency) -> Result<u64> {
        let (pattern, path) = (self.prepared("pread")?, &self.files.path);
        let len = pattern.chunk_bytes as usize;
        let mut walk = ChunkWalk::new(pattern, Direction::Read, batch, buffer, path)?;
        for _ in 0..batch.calls {
            let mark = latency.begin();
            for (offset, index) in walk.by_ref().take(pattern.chunks_per_call as usize) {
                let chunk = &mut buffer.bytes_mut()[index..index + len];
                let got = self.files.buffered.read_at(chunk, offset);
                let got = got.map_err(|e| BackendError::from_io("pread", path, Some(offset), &e))?;
                if got < len {
                    return Err(BackendError::short_transfer("pread", path, offset, len as u64, got as u64));
                }
            }
            latency.end(mark);
        }
        Ok(batch_bytes(pattern, batch))
    }
}

impl OpenFile for SkeletonFile {
    fn support(&self, pattern: &AccessPattern) -> Support {
        // All ranks must get the same result: it may not depend on the rank. Collective patterns do not synchronize here.
        Support::from_reason(pattern.offset_access_obstacle(), false)
    }

    fn prepare(
        &mut self,
        pattern: &AccessPattern,
        direction: Direction,
        buffer: &mut TransferBuffer,
        _hints: &[(String, String)],
    ) -> Result<TransferStrategy> {
        check_fits(pattern, buffer, &self.files.path)?;
        self.files.check_supported(pattern.offset_access_obstacle())?;
        self.pattern = Some(*pattern);
        let call = match (direction, pattern.mix) {
            (Direction::Write, None) => "pwrite",
            (Direction::Read, None) => "pread",
            (_, Some(_)) => "pread and pwrite",
        };
        // The report states what applies to this file, not what was requested.
        let strategy = format!("{call}{}, buffered", pattern.kind.substitution_note());
        Ok(TransferStrategy { strategy, direct: Some(false), latency_unit: LatencyUnit::Call })
    }

    fn write(&mut self, work: Batches<'_>, buffer: &TransferBuffer) -> Result<u64> {
        work.run_sequentially(|batch, latency| self.write_batch(batch, buffer, latency))
    }

    fn read(&mut self, work: Batches<'_>, buffer: &mut TransferBuffer) -> Result<u64> {
        work.run_sequentially(|batch, latency| self.read_batch(batch, buffer, latency))
    }

    fn transfer_mixed(&mut self, work: Batches<'_>, buffer: &mut TransferBuffer) -> Result<u64> {
        let mix = self.prepared("pread and pwrite")?.mix;
        let mix = mix.ok_or_else(|| BackendError::not_prepared("pread and pwrite", &self.files.path))?;
        work.run_sequentially(|batch, latency| {
            run_mixed(mix, batch, false, |direction, calls| match direction {
                Direction::Write => self.write_batch(calls, buffer, latency),
                Direction::Read => self.read_batch(calls, buffer, latency),
            })
        })
    }

    fn sync(&mut self) -> Result<()> {
        self.files.sync()
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.files.close()
    }
}
