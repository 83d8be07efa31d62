//! Computes every address and offset and moves nothing: measures the harness overhead.

use std::hint::black_box;
use std::path::PathBuf;

use crate::walk::{batch_bytes, check_fits, ChunkWalk};
use crate::{
    AccessPattern, BackendError, Batch, BatchOverlap, Batches, CallStyle, Direction, Driver, Latency, LatencyUnit,
    OpenFile, OpenRequest, Result, Support, TransferBuffer, TransferStrategy,
};

/// Driver that accesses neither file nor memory; no file is created.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullDriver;

impl Driver for NullDriver {
    fn open(&self, request: &OpenRequest<'_>) -> Result<Box<dyn OpenFile>> {
        Ok(Box::new(NullFile::new(request.path)))
    }
}

/// A file that is only a name.
#[derive(Debug)]
pub(crate) struct NullFile {
    path: PathBuf,
    pattern: Option<AccessPattern>,
}

impl NullFile {
    pub(crate) fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), pattern: None }
    }

    /// Runs a computation as often as a driver with real transfers.
    fn run(&self, direction: Direction, work: Batches<'_>, buffer: &TransferBuffer) -> Result<u64> {
        if let Batches { batch, overlap: BatchOverlap::Computation(during), .. } = work {
            let is_split = self.pattern.is_some_and(|p| p.form.style == CallStyle::Split);
            (0..if is_split { batch.calls.max(1) } else { 1 }).for_each(|_| during());
            return self.walk(direction, batch, buffer, &mut Latency::off());
        }
        work.run_sequentially(|batch, latency| self.walk(direction, batch, buffer, latency))
    }

    fn walk(&self, direction: Direction, batch: Batch, buffer: &TransferBuffer, latency: &mut Latency) -> Result<u64> {
        let operation = if direction == Direction::Write { "null write" } else { "null read" };
        let pattern = self.pattern.as_ref().ok_or_else(|| BackendError::not_prepared(operation, &self.path))?;
        let base = buffer.bytes().as_ptr();
        if latency.is_on() {
            for call in batch.first_call..batch.first_call + batch.calls {
                let mark = latency.begin();
                for (offset, index) in
                    ChunkWalk::new(pattern, direction, Batch { first_call: call, calls: 1 }, buffer, &self.path)?
                {
                    black_box((base.wrapping_add(index), offset));
                }
                latency.end(mark);
            }
            return Ok(batch_bytes(pattern, batch));
        }
        for (offset, index) in ChunkWalk::new(pattern, direction, batch, buffer, &self.path)? {
            black_box((base.wrapping_add(index), offset));
        }
        Ok(batch_bytes(pattern, batch))
    }
}

impl OpenFile for NullFile {
    fn support(&self, _pattern: &AccessPattern) -> Support {
        Support::Independent
    }

    fn prepare(
        &mut self,
        pattern: &AccessPattern,
        _direction: Direction,
        buffer: &mut TransferBuffer,
        _hints: &[(String, String)],
    ) -> Result<TransferStrategy> {
        check_fits(pattern, buffer, &self.path)?;
        self.pattern = Some(*pattern);
        Ok(TransferStrategy {
            strategy: "addresses and offsets of every chunk are computed, nothing is moved".into(),
            direct: None,
            latency_unit: LatencyUnit::Call,
        })
    }

    fn write(&mut self, work: Batches<'_>, buffer: &TransferBuffer) -> Result<u64> {
        self.run(Direction::Write, work, buffer)
    }

    fn read(&mut self, work: Batches<'_>, buffer: &mut TransferBuffer) -> Result<u64> {
        self.run(Direction::Read, work, buffer)
    }

    fn transfer_mixed(&mut self, work: Batches<'_>, buffer: &mut TransferBuffer) -> Result<u64> {
        self.run(Direction::Write, work, buffer)
    }

    fn sync(&mut self) -> Result<()> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{pattern, scratch};

    #[test]
    fn counts_and_moves_nothing() {
        let dir = scratch();
        let path = dir.path().join("never");
        let mut file = NullFile::new(&path);
        let mut buffer = TransferBuffer::new(4096, 4096).unwrap();
        buffer.bytes_mut().fill(0xa5);
        let p = pattern(1032, 3, 100);
        let batch = Batch { first_call: 2, calls: 98 };
        assert!(file.write(Batches::new(batch, &mut Latency::off()), &buffer).unwrap_err().text.contains("prepare"));
        let in_force = file.prepare(&p, Direction::Read, &mut buffer, &[]).unwrap();
        assert_eq!(in_force.direct, None);
        assert_eq!(file.write(Batches::new(batch, &mut Latency::off()), &buffer).unwrap(), 98 * 3 * 1032);
        assert_eq!(file.read(Batches::new(batch, &mut Latency::off()), &mut buffer).unwrap(), 98 * 3 * 1032);
        assert!(buffer.bytes().iter().all(|&b| b == 0xa5));
        file.sync().unwrap();
        Box::new(file).close().unwrap();
        assert!(!path.exists());
    }
}
