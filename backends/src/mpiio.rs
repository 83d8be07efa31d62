//! MPI-IO: the calls the benchmark is about.
//!
//! Views and datatypes are made in `prepare`; a batch is a plain loop around one MPI function on windows of the
//! ring. A collective call that fails on one rank does not end that rank's batch: the others are in the next call
//! already, so it goes on with them and returns the first error at the end.
//!
//! Libraries cannot be asked to read beyond the end of a file: Open MPI 4.1 and MPICH 4.0 report all bytes of some such
//! reads, and Open MPI 4.1 never completes others. Patterns counted in bytes, which make all of these calls, therefore know
//! from `prepare` how many of their calls lie within the file. What lies beyond is the short transfer that it would be;
//! a collective call is made all the same, with nothing to move, so that no rank stays behind.

mod calls;
mod outcome;
pub(crate) mod program;

use std::path::PathBuf;

use beff_ffi::{FileType, Info, MpiError, MpiFile, Open, Transfer, TransferType, Transfers};

use crate::error::{BackendError, Cause, Result};
use crate::seam::in_any_case;
use crate::walk::check_fits;
use crate::{
    Batch, Batches, Beside, CallStyle, Direction, Driver, DriverOptions, InForce, Latency, OpenFile, OpenMode,
    OpenRequest, Pattern, Ring, Support, Timed, Unit, MOST_PENDING,
};
use calls::{element, whole_calls, Call, View};
use outcome::{mpi_error, or_full, Outcome};

/// The driver; see the module.
#[derive(Debug)]
pub struct MpiIoDriver {
    unique_open: bool,
}

impl MpiIoDriver {
    /// A driver with these options (only `unique_open` matters here).
    #[must_use]
    pub fn new(options: &DriverOptions) -> Self {
        Self { unique_open: options.unique_open }
    }
}

impl Driver for MpiIoDriver {
    fn open(&self, request: &OpenRequest<'_>) -> Result<Box<dyn OpenFile>> {
        let how = match request.mode {
            OpenMode::CreateNew => Open::CreateNew,
            OpenMode::Update => Open::Update,
            OpenMode::ReadOnly => Open::ReadOnly,
        };
        let fail = |e: &MpiError| mpi_error("MPI_File_open", request.path, None, e);
        let info = Info::new(request.hints).map_err(|e| fail(&e))?;
        let file = MpiFile::open(request.comm, request.path, how, self.unique_open, &info).map_err(|e| fail(&e))?;
        Ok(Box::new(MpiIoFile {
            file,
            path: request.path.to_path_buf(),
            prepared: None,
            untouched: true,
            transfers: Transfers::with_capacity(0),
        }))
    }
}

/// What `prepare` made; replaced by the next pattern. The view's datatype must live as long as the view.
struct Prepared {
    pattern: Pattern,
    direction: Direction,
    call: Call,
    what: TransferType,
    /// In place of `what` for a collective call beyond the end of the file.
    nothing: TransferType,
    /// Calls that lie within the file; all for a write.
    whole_calls: u64,
    file_bytes: u64,
    _view: FileType,
}

impl Prepared {
    /// Bytes of a call that may be asked of the library: all, or none beyond the end of the file.
    #[inline]
    fn what(&self, call: u64) -> &TransferType {
        if call < self.whole_calls {
            &self.what
        } else {
            &self.nothing
        }
    }

    /// The offset of a call, for calls that take one.
    #[inline]
    fn offset(&self, call: u64) -> u64 {
        self.pattern.chunk_offset(call * self.pattern.chunks_per_call)
    }
}

struct MpiIoFile {
    file: MpiFile,
    path: PathBuf,
    prepared: Option<Prepared>,
    /// No view was set: the file is seen as MPI_File_open leaves it, as bytes from 0 on.
    untouched: bool,
    /// Room for the requests of a batch.
    transfers: Transfers,
}

impl MpiIoFile {
    /// What a batch needs.
    fn ready(&mut self, direction: Direction) -> Result<Ready<'_>> {
        let Self { file, path, prepared, transfers, .. } = self;
        let refuse = |text: &str| BackendError::new("transfer", &*path, Cause::Unsupported, text);
        let prepared = prepared.as_ref().ok_or_else(|| refuse("no pattern was prepared on this file"))?;
        // The end of the file is known for the direction that was asked for.
        if prepared.direction != direction {
            return Err(refuse("the pattern was prepared for the other direction"));
        }
        let outcome = Outcome::new(path, prepared.call.name(direction), &prepared.pattern, direction);
        Ok(Ready { file, prepared, transfers, outcome })
    }
}

/// What a batch works with.
struct Ready<'a> {
    file: &'a MpiFile,
    prepared: &'a Prepared,
    transfers: &'a mut Transfers,
    outcome: Outcome<'a>,
}

impl Ready<'_> {
    /// Writes the calls one after the other.
    fn write(self, batch: Batch, ring: &Ring, latency: &mut Latency) -> Result<u64> {
        let Self { file, prepared, transfers, mut outcome } = self;
        let Prepared { pattern, call, what, .. } = prepared;
        for n in batch.first_call..batch.first_call + batch.calls {
            let memory = ring.window(pattern.stream_position(n), what.bytes() as usize);
            let offset_bytes = prepared.offset(n);
            let mark = latency.begin();
            let result = match call.style {
                CallStyle::Blocking => file.write(call.access, offset_bytes, memory, what),
                CallStyle::Request => transfers.write_one(file, call.access, Transfer { what, offset_bytes, memory }),
                CallStyle::Split => file.write_split(call.access, offset_bytes, memory, what, &mut || {}),
            };
            latency.end(mark);
            if !outcome.take(n, result) {
                break;
            }
        }
        outcome.finish()
    }

    /// Reads the calls one after the other.
    fn read(self, batch: Batch, ring: &mut Ring, latency: &mut Latency) -> Result<u64> {
        let Self { file, prepared, transfers, mut outcome } = self;
        let Prepared { pattern, call, .. } = prepared;
        for n in batch.first_call..batch.first_call + batch.calls {
            if n >= prepared.whole_calls && !outcome.beyond_the_end(n, prepared.file_bytes) {
                break;
            }
            let what = prepared.what(n);
            let memory = ring.window_mut(pattern.stream_position(n), what.bytes() as usize);
            let offset_bytes = prepared.offset(n);
            let mark = latency.begin();
            let result = match call.style {
                CallStyle::Blocking => file.read(call.access, offset_bytes, memory, what),
                CallStyle::Request => transfers.read_one(file, call.access, Transfer { what, offset_bytes, memory }),
                CallStyle::Split => file.read_split(call.access, offset_bytes, memory, what, &mut || {}),
            };
            latency.end(mark);
            if !outcome.take(n, result) {
                break;
            }
        }
        outcome.finish()
    }

    /// Writes the calls with `during` under them.
    fn write_overlapped(self, batch: Batch, ring: &Ring, during: &mut dyn FnMut()) -> Result<u64> {
        let Self { file, prepared, transfers, mut outcome } = self;
        let Prepared { pattern, call, what, .. } = prepared;
        let calls = batch.first_call..batch.first_call + batch.calls;
        let window = |n| ring.window(pattern.stream_position(n), what.bytes() as usize);
        match call.style {
            CallStyle::Blocking => return Err(BackendError::nothing_under_way()),
            CallStyle::Request => {
                outcome.check_number(batch.calls, transfers.capacity())?;
                let all = calls.map(|n| Transfer { what, offset_bytes: prepared.offset(n), memory: window(n) });
                transfers.write(file, call.access, all, during, |i, result| {
                    outcome.take(batch.first_call + i as u64, result)
                });
            }
            CallStyle::Split => {
                for n in calls {
                    outcome.take(n, file.write_split(call.access, prepared.offset(n), window(n), what, during));
                }
            }
        }
        outcome.finish()
    }

    /// Reads the calls with `during` under them.
    fn read_overlapped(self, batch: Batch, ring: &mut Ring, during: &mut dyn FnMut()) -> Result<u64> {
        let Self { file, prepared, transfers, mut outcome } = self;
        let Prepared { pattern, call, whole_calls, file_bytes, .. } = prepared;
        let (first, end) = (batch.first_call, batch.first_call + batch.calls);
        match call.style {
            CallStyle::Blocking => return Err(BackendError::nothing_under_way()),
            CallStyle::Request => {
                outcome.check_number(batch.calls, transfers.capacity())?;
                // Beyond the end of the file nothing is begun, unless other ranks take part.
                let end = if outcome.goes_on() { end } else { end.min(*whole_calls).max(first) };
                let windows =
                    ring.windows_mut(pattern.stream_position(first), pattern.call_bytes() as usize, end - first);
                let windows = windows.ok_or_else(|| outcome.shared_memory(batch.calls))?;
                let all = (first..end).zip(windows).map(|(n, memory)| {
                    let (what, offset_bytes) = (prepared.what(n), prepared.offset(n));
                    Transfer { what, offset_bytes, memory }
                });
                transfers.read(file, call.access, all, during, |i, result| {
                    let n = first + i as u64;
                    if n >= *whole_calls && result.is_ok() {
                        return outcome.beyond_the_end(n, *file_bytes);
                    }
                    outcome.take(n, result)
                });
            }
            CallStyle::Split => {
                for n in first..end {
                    let what = prepared.what(n);
                    let memory = ring.window_mut(pattern.stream_position(n), what.bytes() as usize);
                    let result = file.read_split(call.access, prepared.offset(n), memory, what, during);
                    if n >= *whole_calls && result.is_ok() {
                        outcome.beyond_the_end(n, *file_bytes);
                    }
                    outcome.take(n, result);
                }
            }
        }
        if end > *whole_calls {
            outcome.beyond_the_end(first.max(*whole_calls), *file_bytes);
        }
        outcome.finish()
    }
}

impl OpenFile for MpiIoFile {
    fn support(&self, pattern: &Pattern) -> Support {
        Support::of(Call::of(pattern).err(), pattern.kind.is_collective())
    }

    fn prepare(
        &mut self,
        pattern: &Pattern,
        direction: Direction,
        ring: &mut Ring,
        hints: &[(String, String)],
    ) -> Result<InForce> {
        let Self { file, path, prepared, untouched, transfers } = self;
        let call = Call::of(pattern).map_err(|text| BackendError::new("prepare", &*path, Cause::Unsupported, text))?;
        let fail = |e: &MpiError| mpi_error("MPI_File_set_view", path, None, e);
        let info = Info::new(hints).map_err(|e| fail(&e))?;
        let view = View::of(pattern, call).map_err(|e| fail(&e))?;
        // Offsets need no pointer that begins again, and a new file no view that it has.
        let is_set = *untouched && view.is_as_opened(pattern, call) && hints.is_empty();
        if !is_set {
            // Also where it fails on this rank alone: the next one is made by all or by none.
            *untouched = false;
            file.set_view(view.displacement_bytes, &view.tile, &info).map_err(|e| fail(&e))?;
        }
        // What one rank alone may be refused comes behind the collective call.
        check_fits(pattern, ring, path)?;
        let what = TransferType::new(element(pattern), pattern.call_bytes(), None).map_err(|e| fail(&e))?;
        let asks = direction == Direction::Read
            && (pattern.form.unit == Unit::Byte || pattern.form.style != CallStyle::Blocking);
        let (mut file_bytes, mut whole) = (u64::MAX, u64::MAX);
        if asks {
            file_bytes = file.size_bytes().map_err(|e| mpi_error("MPI_File_get_size", path, None, &e))?;
            whole = whole_calls(pattern, file_bytes);
        }
        let pending = if call.style == CallStyle::Request { pattern.max_calls.clamp(1, MOST_PENDING) } else { 0 };
        if (transfers.capacity() as u64) < pending {
            *transfers = Transfers::with_capacity(pending as usize);
        }
        *prepared = Some(Prepared {
            pattern: *pattern,
            direction,
            call,
            what,
            nothing: TransferType::nothing(element(pattern)),
            whole_calls: whole,
            file_bytes,
            _view: view.tile,
        });
        let strategy = format!("{}, {}", call.name(direction), view.shape);
        Ok(InForce { strategy, direct: None, timed: Timed::Call })
    }

    fn hints_in_force(&self) -> Result<Vec<(String, String)>> {
        self.file.hints().map_err(|e| mpi_error("MPI_File_get_info", &self.path, None, &e))
    }

    fn write(&mut self, work: Batches<'_>, ring: &Ring) -> Result<u64> {
        if let Batches { batch, beside: Beside::Computation(during), .. } = work {
            return in_any_case(during, |during| self.ready(Direction::Write)?.write_overlapped(batch, ring, during));
        }
        work.each(|batch, latency| self.ready(Direction::Write)?.write(batch, ring, latency))
    }

    fn read(&mut self, work: Batches<'_>, ring: &mut Ring) -> Result<u64> {
        if let Batches { batch, beside: Beside::Computation(during), .. } = work {
            return in_any_case(during, |during| self.ready(Direction::Read)?.read_overlapped(batch, ring, during));
        }
        work.each(|batch, latency| self.ready(Direction::Read)?.read(batch, ring, latency))
    }

    fn sync(&mut self) -> Result<()> {
        self.file.sync().map_err(|e| or_full(mpi_error("MPI_File_sync", &self.path, None, &e)))
    }

    fn close(self: Box<Self>) -> Result<()> {
        let Self { file, path, prepared, .. } = *self;
        drop(prepared);
        file.close().map_err(|e| mpi_error("MPI_File_close", &path, None, &e))
    }
}

#[cfg(test)]
mod tests;
