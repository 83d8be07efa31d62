//! A driver whose files log every call and return scripted outcomes; data may pass through a real driver.

use std::path::PathBuf;

use beff_backends::error::FailureCause;
use beff_backends::{
    AccessPattern, BackendError, Batch, BatchOverlap, Batches, Direction, Driver, DriverOptions, DriverRow, Latency,
    OpenFile, OpenRequest, Protocol, Result, SubmissionStatistics, Support, TransferBuffer, TransferStrategy,
};

use super::script::{count_bytes, scripted_call, with_script, ScriptedOutcome};

pub struct FakeDriver {
    /// Stores their data; None if nothing is stored.
    inner: Option<Box<dyn Driver>>,
    /// Detail that is logged at open.
    open_detail: String,
}

/// A driver for a run; with `data` everything is stored by posix.
pub fn driver(data: bool) -> Box<dyn Driver> {
    let posix = || beff_backends::driver("posix").map(|row| (row.create)(&DriverOptions::default()));
    Box::new(FakeDriver { inner: if data { posix() } else { None }, open_detail: String::new() })
}

/// The row of a real driver with fake files, which log the options of the driver.
pub fn row(name: &str) -> &'static DriverRow {
    let make = |options: &DriverOptions| -> Box<dyn Driver> {
        let detail = format!(" direct {:?}, depth {}", options.direct, options.queue_depth);
        Box::new(FakeDriver { inner: None, open_detail: detail })
    };
    let real = beff_backends::driver(name).unwrap_or_else(|| panic!("no driver {name}"));
    Box::leak(Box::new(DriverRow { create: make, ..*real }))
}

struct FakeFile {
    inner: Option<Box<dyn OpenFile>>,
    path: PathBuf,
    pattern: Option<AccessPattern>,
    submitted: u64,
}

impl Driver for FakeDriver {
    fn open(&self, request: &OpenRequest<'_>) -> Result<Box<dyn OpenFile>> {
        let path = request.path.to_path_buf();
        // Includes the directory of its backend.
        let parts: Vec<_> = path.components().rev().take(2).map(|part| part.as_os_str().to_string_lossy()).collect();
        let name = parts.into_iter().rev().collect::<Vec<_>>().join("/");
        let detail = format!("{:?} {name} of {} {}", request.mode, request.comm.size(), named(request.hints));
        fail("open", &path, scripted_call("open", &format!("{}{}", detail.trim_end(), self.open_detail)))?;
        let inner = self.inner.as_ref().map(|driver| driver.open(request)).transpose()?;
        Ok(Box::new(FakeFile { inner, path, pattern: None, submitted: 0 }))
    }

    fn allocate_buffers(&self, ranks: u64, hosts: u64) {
        scripted_call("provide", &format!("{ranks} on {hosts}"));
    }
}

fn named(hints: &[(String, String)]) -> String {
    hints.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

fn fail(call: &'static str, path: &std::path::Path, answer: Option<ScriptedOutcome>) -> Result<()> {
    match answer {
        Some(ScriptedOutcome::Fail) => Err(BackendError::new(call, path, FailureCause::Io, "as the script says")),
        Some(ScriptedOutcome::Full) => Err(BackendError::new(call, path, FailureCause::NoSpace, "as the script says")),
        _ => Ok(()),
    }
}

impl FakeFile {
    fn pattern(&self) -> AccessPattern {
        self.pattern.unwrap_or_else(|| panic!("a batch before prepare"))
    }

    /// Bytes that a scripted batch moves, and its outcome.
    fn batch(&mut self, call: &'static str, batch: Batch) -> Result<(u64, Option<ScriptedOutcome>)> {
        let answer = scripted_call(call, &format!("{}+{}", batch.first_call, batch.calls));
        fail(call, &self.path, answer)?;
        if self.pattern.is_none() {
            return Err(BackendError::new(call, &self.path, FailureCause::Io, "nothing is prepared"));
        }
        self.submitted += batch.calls * with_script(|script| script.submitted.unwrap_or(0));
        let bytes = match answer {
            Some(ScriptedOutcome::Moved(bytes)) => bytes,
            _ => batch.calls * self.pattern().call_bytes(),
        };
        if answer != Some(ScriptedOutcome::Nothing) {
            let calls = batch.first_call..batch.first_call + batch.calls;
            let reads = self.pattern().mix.map(|mix| mix.reads_before(calls.end) - mix.reads_before(calls.start));
            match reads.map(|calls| calls * self.pattern().call_bytes()) {
                Some(read_bytes) => {
                    count_bytes(read_bytes, false);
                    count_bytes(bytes.saturating_sub(read_bytes), true);
                }
                None => count_bytes(bytes, call == "write"),
            }
        }
        Ok((bytes, answer))
    }

    fn timed(latency: &mut Latency, calls: u64) {
        for _ in 0..calls {
            let mark = latency.begin();
            latency.end(mark);
        }
    }

    fn write_batch(&mut self, batch: Batch, buffer: &TransferBuffer, latency: &mut Latency) -> Result<u64> {
        let (bytes, answer) = self.batch("write", batch)?;
        match &mut self.inner {
            Some(inner) if answer != Some(ScriptedOutcome::Nothing) => {
                inner.write(Batches::new(batch, latency), buffer)?;
            }
            _ => Self::timed(latency, batch.calls),
        }
        Ok(bytes)
    }

    fn read_batch(&mut self, batch: Batch, buffer: &mut TransferBuffer, latency: &mut Latency) -> Result<u64> {
        let (bytes, answer) = self.batch("read", batch)?;
        match &mut self.inner {
            Some(inner) if answer != Some(ScriptedOutcome::Nothing) => {
                inner.read(Batches::new(batch, latency), buffer)?;
            }
            _ => Self::timed(latency, batch.calls),
        }
        if let Some(ScriptedOutcome::Flip(call)) = answer {
            buffer.window_mut(self.pattern().stream_position(call), 8)[0] ^= 0x10;
        }
        Ok(bytes)
    }
}

impl FakeFile {
    fn mixed_batch(&mut self, batch: Batch, buffer: &mut TransferBuffer, latency: &mut Latency) -> Result<u64> {
        let (bytes, answer) = self.batch("mixed", batch)?;
        match &mut self.inner {
            Some(inner) if answer != Some(ScriptedOutcome::Nothing) => {
                inner.transfer_mixed(Batches::new(batch, latency), buffer)?;
            }
            _ => Self::timed(latency, batch.calls),
        }
        if let Some(ScriptedOutcome::Flip(call)) = answer {
            let at = self.pattern().memory_index(buffer, Direction::Read, call);
            buffer.bytes_mut()[at] ^= 0x10;
        }
        Ok(bytes)
    }
}

/// Runs batches with the scripted numbers of pending chunks between them.
fn run_batches(work: Batches<'_>, mut run: impl FnMut(Batch, &mut Latency) -> Result<u64>) -> Result<u64> {
    let Batches { mut batch, latency, overlap: beside } = work;
    match beside {
        BatchOverlap::None => run(batch, latency),
        BatchOverlap::Computation(computation) => {
            scripted_call("begin", "");
            computation();
            run(batch, latency)
        }
        BatchOverlap::NextBatch(next) => {
            let pending = with_script(|script| script.pending_chunks.clone()).unwrap_or_default();
            let (mut bytes, mut asked) = (0, 0);
            loop {
                bytes += run(batch, latency)?;
                let chunks = pending.get(asked).or(pending.last()).copied().unwrap_or(0);
                let Some(calls) = next(chunks) else { return Ok(bytes) };
                asked += 1;
                batch = Batch { first_call: batch.first_call + batch.calls, calls };
            }
        }
    }
}

impl OpenFile for FakeFile {
    fn support(&self, pattern: &AccessPattern) -> Support {
        let scripted = with_script(|script| script.unsupported.clone());
        let unsupported = scripted.or_else(|| self.inner.as_ref().and_then(|inner| inner.support(pattern).reason()));
        Support::from_reason(
            unsupported,
            with_script(|script| script.synchronizes).unwrap_or_else(|| pattern.kind.is_collective()),
        )
    }

    fn prepare(
        &mut self,
        pattern: &AccessPattern,
        direction: Direction,
        buffer: &mut TransferBuffer,
        hints: &[(String, String)],
    ) -> Result<TransferStrategy> {
        let (rank, calls) = (pattern.rank, pattern.max_calls);
        let detail = format!("{direction:?} {}x{} of {rank} {}", calls, pattern.call_bytes(), named(hints));
        fail("prepare", &self.path, scripted_call("prepare", detail.trim_end()))?;
        self.pattern = Some(*pattern);
        let real = self.inner.as_mut().map(|inner| inner.prepare(pattern, direction, buffer, hints)).transpose()?;
        let direct = with_script(|script| script.direct);
        Ok(TransferStrategy { strategy: "fake".into(), direct, ..real.unwrap_or_default() })
    }

    fn hints_in_use(&self) -> Result<Vec<(String, String)>> {
        fail("hints", &self.path, scripted_call("hints", ""))?;
        Ok(with_script(|script| script.hints_in_force.clone()))
    }

    fn preallocate(&mut self, batch: Batch) -> Result<u64> {
        let detail = format!("{}+{}", batch.first_call, batch.calls);
        fail("preallocate", &self.path, scripted_call("preallocate", &detail))?;
        Ok(with_script(|script| script.preallocated_calls).unwrap_or(u64::MAX))
    }

    fn trim(&mut self) -> Result<Option<String>> {
        fail("trim", &self.path, scripted_call("trim", ""))?;
        Ok(with_script(|script| script.preallocation_error.clone()))
    }

    fn submission_statistics(&self) -> Option<SubmissionStatistics> {
        with_script(|script| script.submitted)
            .map(|_| SubmissionStatistics { registered: self.submitted, unregistered: 10 * self.submitted })
    }

    fn protocol(&self) -> Protocol {
        with_script(|script| Protocol { lockstep: script.lockstep, pipelined: script.pending_chunks.is_some() })
    }

    fn write(&mut self, work: Batches<'_>, buffer: &TransferBuffer) -> Result<u64> {
        run_batches(work, |batch, latency| self.write_batch(batch, buffer, latency))
    }

    fn read(&mut self, work: Batches<'_>, buffer: &mut TransferBuffer) -> Result<u64> {
        run_batches(work, |batch, latency| self.read_batch(batch, buffer, latency))
    }

    fn transfer_mixed(&mut self, work: Batches<'_>, buffer: &mut TransferBuffer) -> Result<u64> {
        run_batches(work, |batch, latency| self.mixed_batch(batch, buffer, latency))
    }

    fn sync(&mut self) -> Result<()> {
        fail("sync", &self.path, scripted_call("sync", ""))?;
        self.inner.as_mut().map_or(Ok(()), |inner| inner.sync())
    }

    fn close(self: Box<Self>) -> Result<()> {
        let answer = scripted_call("close", "");
        let closed = self.inner.map_or(Ok(()), |inner| inner.close());
        fail("close", &self.path, answer).and(closed)
    }
}
