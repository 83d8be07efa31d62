//! MPI-IO: the calls the benchmark is about.
//!
//! Views and datatypes are made in `prepare`; a batch is a plain loop around one MPI function on windows of the
//! ring. A collective call that fails on one rank does not end that rank's batch: the others are in the next call
//! already, so it goes on with them and returns the first error at the end.

use std::path::{Path, PathBuf};

use beff_ffi::{FileType, Info, MpiError, MpiFile, Open, TransferType};

use crate::error::{BackendError, Cause, Result};
use crate::{
    AccessKind, Batch, Direction, Driver, DriverOptions, InForce, Latency, OpenFile, OpenMode, OpenRequest, Pattern,
    Ring, Timed,
};

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
        Ok(Box::new(MpiIoFile { file, path: request.path.to_path_buf(), prepared: None }))
    }
}

fn mpi_error(operation: &'static str, path: &Path, offset_bytes: Option<u64>, error: &MpiError) -> BackendError {
    BackendError {
        operation,
        path: path.to_path_buf(),
        offset_bytes,
        expected_got_bytes: None,
        cause: match error.cause {
            beff_ffi::Cause::NoSpace => Cause::NoSpace,
            beff_ffi::Cause::Path => Cause::Path,
            beff_ffi::Cause::Unsupported => Cause::Unsupported,
            beff_ffi::Cause::Other => Cause::Io,
        },
        text: error.to_string(),
    }
}

/// What `prepare` made; replaced by the next pattern. The view's datatype must live as long as the view.
struct Prepared {
    pattern: Pattern,
    what: TransferType,
    _view: FileType,
}

struct MpiIoFile {
    file: MpiFile,
    path: PathBuf,
    prepared: Option<Prepared>,
}

type WriteCall = fn(&MpiFile, &[u8], &TransferType) -> std::result::Result<u64, MpiError>;
type ReadCall = fn(&MpiFile, &mut [u8], &TransferType) -> std::result::Result<u64, MpiError>;

/// The call of a kind and direction, and how it is shown.
fn call_name(kind: AccessKind, direction: Direction) -> &'static str {
    match (kind, direction) {
        (AccessKind::Independent, Direction::Write) => "MPI_File_write",
        (AccessKind::Collective, Direction::Write) => "MPI_File_write_all",
        (AccessKind::SharedOrdered, Direction::Write) => "MPI_File_write_ordered",
        (AccessKind::Independent, Direction::Read) => "MPI_File_read",
        (AccessKind::Collective, Direction::Read) => "MPI_File_read_all",
        (AccessKind::SharedOrdered, Direction::Read) => "MPI_File_read_ordered",
    }
}

impl MpiIoFile {
    fn prepared(&self) -> Result<&Prepared> {
        self.prepared.as_ref().ok_or_else(|| BackendError {
            operation: "transfer",
            path: self.path.clone(),
            offset_bytes: None,
            expected_got_bytes: None,
            cause: Cause::Unsupported,
            text: "no pattern was prepared on this file".into(),
        })
    }
}

/// Keeps the first error of a batch.
struct Outcome<'a> {
    path: &'a Path,
    operation: &'static str,
    pattern: &'a Pattern,
    /// A short write may be a full disk: OMPIO's write_ordered ends with success and fewer bytes then.
    writes: bool,
    moved_bytes: u64,
    error: Option<BackendError>,
}

/// Free bytes of the file system of `path` for this user; None if it does not tell.
fn free_bytes(path: &Path) -> Option<u64> {
    let facts = nix::sys::statvfs::statvfs(path).ok()?;
    Some(facts.blocks_available().saturating_mul(facts.fragment_size()))
}

impl Outcome<'_> {
    /// Takes one call's result in; false: an independent loop ends here.
    #[inline]
    fn take(&mut self, call: u64, result: std::result::Result<u64, MpiError>) -> bool {
        let expected = self.pattern.call_bytes();
        match result {
            Ok(moved) if moved == expected => {
                self.moved_bytes += moved;
                return true;
            }
            Ok(moved) => {
                self.moved_bytes += moved;
                self.keep(|o| {
                    let mut e = BackendError::short(o.operation, o.path, o.offset(call), expected, moved);
                    if o.writes && free_bytes(o.path).is_some_and(|free| free < expected - moved.min(expected)) {
                        e.cause = Cause::NoSpace;
                        e.text = "No space left on the file system; the MPI library reported no error".into();
                    }
                    e
                });
            }
            Err(e) => self.keep(|o| mpi_error(o.operation, o.path, Some(o.offset(call)), &e)),
        }
        self.pattern.kind != AccessKind::Independent
    }

    fn offset(&self, call: u64) -> u64 {
        self.pattern.chunk_offset(call * self.pattern.chunks_per_call)
    }

    #[cold]
    fn keep(&mut self, make: impl FnOnce(&Self) -> BackendError) {
        if self.error.is_none() {
            self.error = Some(make(self));
        }
    }

    fn finish(self) -> Result<u64> {
        self.error.map_or(Ok(self.moved_bytes), Err)
    }
}

impl OpenFile for MpiIoFile {
    fn unsupported(&self, _pattern: &Pattern) -> Option<String> {
        None
    }

    fn prepare(
        &mut self,
        pattern: &Pattern,
        direction: Direction,
        _ring: &mut Ring,
        hints: &[(String, String)],
    ) -> Result<InForce> {
        let fail = |e: &MpiError| mpi_error("MPI_File_set_view", &self.path, None, e);
        let info = Info::new(hints).map_err(|e| fail(&e))?;
        // A shared pointer needs the same view on all ranks; otherwise each rank's view begins at its own chunk.
        let (displacement, view) = if pattern.kind == AccessKind::SharedOrdered {
            (pattern.origin_bytes, FileType::strided(8, 8))
        } else {
            (pattern.base_bytes, FileType::strided(pattern.chunk_bytes, pattern.stride_bytes))
        };
        let view = view.map_err(|e| fail(&e))?;
        self.file.set_view(displacement, &view, &info).map_err(|e| fail(&e))?;
        let what = TransferType::new(pattern.call_bytes(), None).map_err(|e| fail(&e))?;
        self.prepared = Some(Prepared { pattern: *pattern, what, _view: view });
        let shape = match (pattern.kind, pattern.is_contiguous()) {
            (AccessKind::SharedOrdered, _) => "shared pointer",
            (_, true) => "contiguous view",
            (_, false) => "strided view",
        };
        Ok(InForce {
            strategy: format!("{}, {shape}", call_name(pattern.kind, direction)),
            direct: None,
            timed: Timed::Call,
        })
    }

    fn hints_in_force(&self) -> Result<Vec<(String, String)>> {
        self.file.hints().map_err(|e| mpi_error("MPI_File_get_info", &self.path, None, &e))
    }

    fn write(&mut self, batch: Batch, ring: &Ring, latency: &mut Latency) -> Result<u64> {
        let Prepared { pattern, what, .. } = self.prepared()?;
        let call: WriteCall = match pattern.kind {
            AccessKind::Independent => MpiFile::write,
            AccessKind::Collective => MpiFile::write_all,
            AccessKind::SharedOrdered => MpiFile::write_ordered,
        };
        let operation = call_name(pattern.kind, Direction::Write);
        let mut outcome = Outcome { path: &self.path, operation, pattern, writes: true, moved_bytes: 0, error: None };
        for n in batch.first_call..batch.first_call + batch.calls {
            let data = ring.window(pattern.stream_position(n), what.bytes() as usize);
            let mark = latency.begin();
            let result = call(&self.file, data, what);
            latency.end(mark);
            if !outcome.take(n, result) {
                break;
            }
        }
        outcome.finish()
    }

    fn read(&mut self, batch: Batch, ring: &mut Ring, latency: &mut Latency) -> Result<u64> {
        let Prepared { pattern, what, .. } = self.prepared()?;
        let call: ReadCall = match pattern.kind {
            AccessKind::Independent => MpiFile::read,
            AccessKind::Collective => MpiFile::read_all,
            AccessKind::SharedOrdered => MpiFile::read_ordered,
        };
        let operation = call_name(pattern.kind, Direction::Read);
        let mut outcome = Outcome { path: &self.path, operation, pattern, writes: false, moved_bytes: 0, error: None };
        for n in batch.first_call..batch.first_call + batch.calls {
            let data = ring.window_mut(pattern.stream_position(n), what.bytes() as usize);
            let mark = latency.begin();
            let result = call(&self.file, data, what);
            latency.end(mark);
            if !outcome.take(n, result) {
                break;
            }
        }
        outcome.finish()
    }

    fn sync(&mut self) -> Result<()> {
        self.file.sync().map_err(|e| mpi_error("MPI_File_sync", &self.path, None, &e))
    }

    fn close(self: Box<Self>) -> Result<()> {
        let Self { file, path, prepared } = *self;
        drop(prepared);
        file.close().map_err(|e| mpi_error("MPI_File_close", &path, None, &e))
    }
}
