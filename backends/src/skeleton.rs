//! The smallest complete backend, to be copied: pread and pwrite of every chunk through the page cache. The tests
//! compile it and run on it what they run on every driver; the program does not have it.

use std::os::unix::fs::FileExt;

use crate::direct::FdPair;
use crate::registry::BY_OFFSETS;
use crate::walk::{batch_bytes, check_fits, Walk};
use crate::{
    BackendError, Batch, Batches, Direct, Direction, Driver, DriverOptions, DriverRow, InForce, Latency, OpenFile,
    OpenRequest, Pattern, Result, Ring, Support, Timed,
};

/// What goes into the table of `registry.rs`: its name, and what it can do beside moving bytes at the offsets of a pattern.
pub(crate) const ROW: DriverRow = DriverRow {
    name: "skeleton",
    summary: "pread and pwrite at the same offsets, buffered",
    make: |options| Box::new(SkeletonDriver::new(options)),
    ..BY_OFFSETS
};

/// What belongs to no file: the options that this backend looks at. Here, none.
#[derive(Clone, Debug)]
pub struct SkeletonDriver;

impl SkeletonDriver {
    /// Takes from the options what decides the way of the transfers.
    #[must_use]
    pub fn new(_options: &DriverOptions) -> Self {
        Self
    }
}

impl Driver for SkeletonDriver {
    fn open(&self, request: &OpenRequest<'_>) -> Result<Box<dyn OpenFile>> {
        // Collective: rank 0 alone makes a new file, exclusively, and the others wait for its word.
        let files = FdPair::open(request, Direct::Off.into())?;
        Ok(Box::new(SkeletonFile { files, pattern: None }))
    }
}

/// One open file of one rank.
struct SkeletonFile {
    files: FdPair,
    /// What `prepare` was given. A real driver keeps what it has made of it: all that a batch needs.
    pattern: Option<Pattern>,
}

impl SkeletonFile {
    fn prepared(&self, operation: &'static str) -> Result<&Pattern> {
        self.pattern.as_ref().ok_or_else(|| BackendError::not_prepared(operation, &self.files.path))
    }

    // Inside the clock: no allocation, no text, no look-up; an error ends the batch and says where.
    fn write_batch(&mut self, batch: Batch, ring: &Ring, latency: &mut Latency) -> Result<u64> {
        let (pattern, path) = (self.prepared("pwrite")?, &self.files.path);
        let len = pattern.chunk_bytes as usize;
        let mut walk = Walk::new(pattern, batch, ring, path)?;
        for _ in 0..batch.calls {
            let mark = latency.begin();
            for (offset, index) in walk.by_ref().take(pattern.chunks_per_call as usize) {
                let chunk = &ring.bytes()[index..index + len];
                let wrote = self.files.buffered.write_at(chunk, offset);
                let wrote = wrote.map_err(|e| BackendError::from_io("pwrite", path, Some(offset), &e))?;
                if wrote < len {
                    return Err(BackendError::short("pwrite", path, offset, len as u64, wrote as u64));
                }
            }
            latency.end(mark);
        }
        Ok(batch_bytes(pattern, batch))
    }

    fn read_batch(&mut self, batch: Batch, ring: &mut Ring, latency: &mut Latency) -> Result<u64> {
        let (pattern, path) = (self.prepared("pread")?, &self.files.path);
        let len = pattern.chunk_bytes as usize;
        let mut walk = Walk::new(pattern, batch, ring, path)?;
        for _ in 0..batch.calls {
            let mark = latency.begin();
            for (offset, index) in walk.by_ref().take(pattern.chunks_per_call as usize) {
                let chunk = &mut ring.bytes_mut()[index..index + len];
                let got = self.files.buffered.read_at(chunk, offset);
                let got = got.map_err(|e| BackendError::from_io("pread", path, Some(offset), &e))?;
                if got < len {
                    return Err(BackendError::short("pread", path, offset, len as u64, got as u64));
                }
            }
            latency.end(mark);
        }
        Ok(batch_bytes(pattern, batch))
    }
}

impl OpenFile for SkeletonFile {
    fn support(&self, pattern: &Pattern) -> Support {
        // All ranks ask alike: nothing here may depend on the rank. No collective call stands behind a collective pattern.
        Support::of(pattern.needs_more_than_offsets(), false)
    }

    fn prepare(
        &mut self,
        pattern: &Pattern,
        direction: Direction,
        ring: &mut Ring,
        _hints: &[(String, String)],
    ) -> Result<InForce> {
        check_fits(pattern, ring, &self.files.path)?;
        self.files.check_form(pattern.needs_more_than_offsets())?;
        self.pattern = Some(*pattern);
        let call = match direction {
            Direction::Write => "pwrite",
            Direction::Read => "pread",
        };
        // What the report says of the pattern: the truth about this file, not what was asked for.
        let strategy = format!("{call}{}, buffered", pattern.kind.by_offsets());
        Ok(InForce { strategy, direct: Some(false), timed: Timed::Call })
    }

    fn write(&mut self, work: Batches<'_>, ring: &Ring) -> Result<u64> {
        work.each(|batch, latency| self.write_batch(batch, ring, latency))
    }

    fn read(&mut self, work: Batches<'_>, ring: &mut Ring) -> Result<u64> {
        work.each(|batch, latency| self.read_batch(batch, ring, latency))
    }

    fn sync(&mut self) -> Result<()> {
        self.files.sync()
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.files.close()
    }
}
