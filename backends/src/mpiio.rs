//! MPI-IO: the calls that the benchmark measures.
//!
//! Views and datatypes are created in `prepare`; a batch is a loop around one MPI function on windows of the buffer. A failed
//! collective call does not end a rank's batch: the other ranks are in the next call already, so the rank continues and returns the
//! first error at the end.
//!
//! Reads beyond the end of a file are unreliable: Open MPI 4.1 and MPICH 4.0 report all bytes of some, and Open MPI 4.1 never
//! completes others. For patterns counted in bytes, which make all of these calls, `prepare` determines how many calls lie within
//! the file. A call beyond it is reported as the short transfer that it would be; a collective call is still made, with an empty
//! transfer, so that no rank waits forever.

mod calls;
mod outcome;
pub(crate) mod program;

use std::path::PathBuf;

use beff_ffi::{AccessMode, FileType, Info, MpiError, MpiFile, Transfer, TransferRequests, TransferType};

use crate::crash::{set_files, FileInUse};
use crate::error::{BackendError, FailureCause, Result};
use crate::interface::run_with_computation;
use crate::walk::check_fits;
use crate::{
    run_mixed, AccessPattern, Batch, BatchOverlap, Batches, CallStyle, Direction, Driver, DriverOptions, ElementUnit,
    Latency, LatencyUnit, OpenFile, OpenMode, OpenRequest, Support, TransferBuffer, TransferStrategy,
    MAX_PENDING_CALLS,
};
use calls::{calls_within_file, elementary_type, AccessCall, FileView};
use outcome::{classify_full_disk, mpi_error, BatchOutcome};

/// The MPI-IO driver.
#[derive(Debug)]
pub struct MpiIoDriver {
    unique_open: bool,
}

impl MpiIoDriver {
    /// A driver with these options (only `unique_open` applies here).
    #[must_use]
    pub fn new(options: &DriverOptions) -> Self {
        Self { unique_open: options.unique_open }
    }
}

impl Driver for MpiIoDriver {
    fn open(&self, request: &OpenRequest<'_>) -> Result<Box<dyn OpenFile>> {
        let how = match request.mode {
            OpenMode::CreateNew => AccessMode::CreateNew,
            OpenMode::Update => AccessMode::Update,
            OpenMode::ReadOnly => AccessMode::ReadOnly,
        };
        let fail = |e: &MpiError| mpi_error("MPI_File_open", request.path, None, e);
        let info = Info::new(request.hints).map_err(|e| fail(&e))?;
        let hints = request.hints.to_vec();
        set_files(vec![FileInUse { path: request.path.display().to_string(), hints }]);
        let file = MpiFile::open(request.comm, request.path, how, self.unique_open, &info).map_err(|e| fail(&e))?;
        Ok(Box::new(MpiIoFile {
            file,
            path: request.path.to_path_buf(),
            prepared: None,
            has_default_view: true,
            transfers: TransferRequests::with_capacity(0),
        }))
    }
}

/// Replaced by the next pattern. The view's datatype must live as long as the view.
struct PreparedCalls {
    pattern: AccessPattern,
    direction: Direction,
    call: AccessCall,
    transfer_type: TransferType,
    /// For collective calls beyond the end of the file.
    empty_type: TransferType,
    /// Calls within the file; all for a write.
    calls_within_file: u64,
    file_bytes: u64,
    _filetype: FileType,
}

impl PreparedCalls {
    /// Transfer type of a call: all its bytes, or none beyond the end of the file.
    #[inline]
    fn transfer_type(&self, call: u64) -> &TransferType {
        if call < self.calls_within_file {
            &self.transfer_type
        } else {
            &self.empty_type
        }
    }

    #[inline]
    fn offset(&self, call: u64) -> u64 {
        self.pattern.call_offset(call)
    }
}

struct MpiIoFile {
    file: MpiFile,
    path: PathBuf,
    prepared: Option<PreparedCalls>,
    /// The view is that of MPI_File_open, bytes from 0 on.
    has_default_view: bool,
    /// Requests of a batch.
    transfers: TransferRequests,
}

impl MpiIoFile {
    fn batch_context(&mut self, direction: Direction) -> Result<BatchContext<'_>> {
        let Self { file, path, prepared, transfers, .. } = self;
        let refuse = |text: &str| BackendError::new("transfer", &*path, FailureCause::Unsupported, text);
        let prepared = prepared.as_ref().ok_or_else(|| refuse("no pattern was prepared on this file"))?;
        // The end of the file is known for the prepared direction only.
        if prepared.direction != direction && prepared.pattern.mix.is_none() {
            return Err(refuse("the pattern was prepared for the other direction"));
        }
        let outcome = BatchOutcome::new(path, prepared.call.name(direction), &prepared.pattern, direction);
        Ok(BatchContext { file, prepared, transfers, outcome })
    }
}

struct BatchContext<'a> {
    file: &'a MpiFile,
    prepared: &'a PreparedCalls,
    transfers: &'a mut TransferRequests,
    outcome: BatchOutcome<'a>,
}

impl BatchContext<'_> {
    fn write(self, batch: Batch, buffer: &TransferBuffer, latency: &mut Latency) -> Result<u64> {
        let Self { file, prepared, transfers, mut outcome } = self;
        let PreparedCalls { pattern, call, transfer_type: what, .. } = prepared;
        for n in batch.first_call..batch.first_call + batch.calls {
            let memory = buffer.window(pattern.memory_position(Direction::Write, n), what.bytes() as usize);
            let offset_bytes = prepared.offset(n);
            let mark = latency.begin();
            let result = match call.style {
                CallStyle::Blocking => file.write(call.access, offset_bytes, memory, what),
                CallStyle::Request => transfers.write_one(file, call.access, Transfer { what, offset_bytes, memory }),
                CallStyle::Split => file.write_split(call.access, offset_bytes, memory, what, &mut || {}),
            };
            latency.end(mark);
            if !outcome.record(n, result) {
                break;
            }
        }
        outcome.finish()
    }

    fn read(self, batch: Batch, buffer: &mut TransferBuffer, latency: &mut Latency) -> Result<u64> {
        let Self { file, prepared, transfers, mut outcome } = self;
        let PreparedCalls { pattern, call, .. } = prepared;
        for n in batch.first_call..batch.first_call + batch.calls {
            if n >= prepared.calls_within_file && !outcome.record_end_of_file(n, prepared.file_bytes) {
                break;
            }
            let what = prepared.transfer_type(n);
            let begin = pattern.memory_index(buffer, Direction::Read, n);
            let memory = &mut buffer.bytes_mut()[begin..begin + what.bytes() as usize];
            let offset_bytes = prepared.offset(n);
            let mark = latency.begin();
            let result = match call.style {
                CallStyle::Blocking => file.read(call.access, offset_bytes, memory, what),
                CallStyle::Request => transfers.read_one(file, call.access, Transfer { what, offset_bytes, memory }),
                CallStyle::Split => file.read_split(call.access, offset_bytes, memory, what, &mut || {}),
            };
            latency.end(mark);
            if !outcome.record(n, result) {
                break;
            }
        }
        outcome.finish()
    }

    /// Writes the calls, overlapped with `during`.
    fn write_overlapped(self, batch: Batch, buffer: &TransferBuffer, during: &mut dyn FnMut()) -> Result<u64> {
        let Self { file, prepared, transfers, mut outcome } = self;
        let PreparedCalls { pattern, call, transfer_type: what, .. } = prepared;
        let calls = batch.first_call..batch.first_call + batch.calls;
        let window = |n| buffer.window(pattern.memory_position(Direction::Write, n), what.bytes() as usize);
        match call.style {
            CallStyle::Blocking => return Err(BackendError::overlap_unsupported()),
            CallStyle::Request => {
                outcome.check_call_count(batch.calls, transfers.capacity())?;
                let all = calls.map(|n| Transfer { what, offset_bytes: prepared.offset(n), memory: window(n) });
                transfers.write(file, call.access, all, during, |i, result| {
                    outcome.record(batch.first_call + i as u64, result)
                });
            }
            CallStyle::Split => {
                for n in calls {
                    outcome.record(n, file.write_split(call.access, prepared.offset(n), window(n), what, during));
                }
            }
        }
        outcome.finish()
    }

    fn read_overlapped(self, batch: Batch, buffer: &mut TransferBuffer, during: &mut dyn FnMut()) -> Result<u64> {
        let Self { file, prepared, transfers, mut outcome } = self;
        let PreparedCalls { pattern, call, calls_within_file: whole_calls, file_bytes, .. } = prepared;
        let (first, end) = (batch.first_call, batch.first_call + batch.calls);
        match call.style {
            CallStyle::Blocking => return Err(BackendError::overlap_unsupported()),
            CallStyle::Request => {
                outcome.check_call_count(batch.calls, transfers.capacity())?;
                // No call beyond the end of the file, unless other ranks take part.
                let end = if outcome.continues_after_error() { end } else { end.min(*whole_calls).max(first) };
                let windows =
                    buffer.windows_mut(pattern.stream_position(first), pattern.call_bytes() as usize, end - first);
                let windows = windows.ok_or_else(|| outcome.overlap_error(batch.calls))?;
                let all = (first..end).zip(windows).map(|(n, memory)| {
                    let (what, offset_bytes) = (prepared.transfer_type(n), prepared.offset(n));
                    Transfer { what, offset_bytes, memory }
                });
                transfers.read(file, call.access, all, during, |i, result| {
                    let n = first + i as u64;
                    if n >= *whole_calls && result.is_ok() {
                        return outcome.record_end_of_file(n, *file_bytes);
                    }
                    outcome.record(n, result)
                });
            }
            CallStyle::Split => {
                for n in first..end {
                    let what = prepared.transfer_type(n);
                    let memory = buffer.window_mut(pattern.stream_position(n), what.bytes() as usize);
                    let result = file.read_split(call.access, prepared.offset(n), memory, what, during);
                    if n >= *whole_calls && result.is_ok() {
                        outcome.record_end_of_file(n, *file_bytes);
                    }
                    outcome.record(n, result);
                }
            }
        }
        if end > *whole_calls {
            outcome.record_end_of_file(first.max(*whole_calls), *file_bytes);
        }
        outcome.finish()
    }
}

impl OpenFile for MpiIoFile {
    fn support(&self, pattern: &AccessPattern) -> Support {
        Support::from_reason(AccessCall::of(pattern).err(), pattern.kind.is_collective())
    }

    fn prepare(
        &mut self,
        pattern: &AccessPattern,
        direction: Direction,
        buffer: &mut TransferBuffer,
        hints: &[(String, String)],
    ) -> Result<TransferStrategy> {
        let Self { file, path, prepared, has_default_view: untouched, transfers } = self;
        let call = AccessCall::of(pattern)
            .map_err(|text| BackendError::new("prepare", &*path, FailureCause::Unsupported, text))?;
        let fail = |e: &MpiError| mpi_error("MPI_File_set_view", path, None, e);
        let info = Info::new(hints).map_err(|e| fail(&e))?;
        let view = FileView::of(pattern, call).map_err(|e| fail(&e))?;
        // Calls with offsets need no reset of a file pointer, and the default view need not be set again.
        let is_set = *untouched && view.is_default(pattern, call) && hints.is_empty();
        if !is_set {
            // Also after a failure on this rank: all ranks or none must make the next call.
            *untouched = false;
            file.set_view(view.displacement_bytes, &view.filetype, &info).map_err(|e| fail(&e))?;
        }
        // Checks that may fail on one rank follow the collective call.
        check_fits(pattern, buffer, path)?;
        let what = TransferType::new(elementary_type(pattern), pattern.call_bytes(), None).map_err(|e| fail(&e))?;
        let asks = direction == Direction::Read
            && (pattern.form.unit == ElementUnit::Byte || pattern.form.style != CallStyle::Blocking);
        let (mut file_bytes, mut whole) = (u64::MAX, u64::MAX);
        if asks {
            file_bytes = file.size_bytes().map_err(|e| mpi_error("MPI_File_get_size", path, None, &e))?;
            whole = calls_within_file(pattern, file_bytes);
        }
        let pending = if call.style == CallStyle::Request { pattern.max_calls.clamp(1, MAX_PENDING_CALLS) } else { 0 };
        if (transfers.capacity() as u64) < pending {
            *transfers = TransferRequests::with_capacity(pending as usize);
        }
        *prepared = Some(PreparedCalls {
            pattern: *pattern,
            direction,
            call,
            transfer_type: what,
            empty_type: TransferType::empty(elementary_type(pattern)),
            calls_within_file: whole,
            file_bytes,
            _filetype: view.filetype,
        });
        let calls = match pattern.mix {
            None => call.name(direction).to_owned(),
            Some(_) => format!("{} and {}", call.name(Direction::Read), call.name(Direction::Write)),
        };
        let strategy = format!("{calls}, {}", view.description);
        Ok(TransferStrategy { strategy, direct: None, latency_unit: LatencyUnit::Call })
    }

    fn hints_in_use(&self) -> Result<Vec<(String, String)>> {
        self.file.hints().map_err(|e| mpi_error("MPI_File_get_info", &self.path, None, &e))
    }

    fn write(&mut self, work: Batches<'_>, buffer: &TransferBuffer) -> Result<u64> {
        if let Batches { batch, overlap: BatchOverlap::Computation(during), .. } = work {
            return run_with_computation(during, |during| {
                self.batch_context(Direction::Write)?.write_overlapped(batch, buffer, during)
            });
        }
        work.run_sequentially(|batch, latency| self.batch_context(Direction::Write)?.write(batch, buffer, latency))
    }

    fn read(&mut self, work: Batches<'_>, buffer: &mut TransferBuffer) -> Result<u64> {
        if let Batches { batch, overlap: BatchOverlap::Computation(during), .. } = work {
            return run_with_computation(during, |during| {
                self.batch_context(Direction::Read)?.read_overlapped(batch, buffer, during)
            });
        }
        work.run_sequentially(|batch, latency| self.batch_context(Direction::Read)?.read(batch, buffer, latency))
    }

    fn transfer_mixed(&mut self, work: Batches<'_>, buffer: &mut TransferBuffer) -> Result<u64> {
        let pattern = self.prepared.as_ref().map(|prepared| prepared.pattern);
        let (mix, kind) = pattern
            .and_then(|pattern| Some((pattern.mix?, pattern.kind)))
            .ok_or_else(|| BackendError::not_prepared("transfer", &self.path))?;
        work.run_sequentially(|batch, latency| {
            run_mixed(mix, batch, kind.is_collective(), |direction, calls| {
                let context = self.batch_context(direction)?;
                match direction {
                    Direction::Write => context.write(calls, buffer, latency),
                    Direction::Read => context.read(calls, buffer, latency),
                }
            })
        })
    }

    fn sync(&mut self) -> Result<()> {
        self.file.sync().map_err(|e| classify_full_disk(mpi_error("MPI_File_sync", &self.path, None, &e)))
    }

    fn close(self: Box<Self>) -> Result<()> {
        let Self { file, path, prepared, .. } = *self;
        drop(prepared);
        file.close().map_err(|e| mpi_error("MPI_File_close", &path, None, &e))
    }
}

#[cfg(test)]
mod tests;
