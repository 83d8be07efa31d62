//! The backend interface: what a backend implements ([`Driver`], [`OpenFile`]), and the types of its arguments.

use beff_ffi::Comm;

use crate::{AccessPattern, BackendError, Batch, Direction, FilePath, Latency, ReadWriteMix, Result, TransferBuffer};

/// How a file is opened. Creation is exclusive: no existing file is overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Create for reading and writing; fail if it exists.
    CreateNew,
    /// Open an existing file for reading and writing.
    Update,
    /// Open an existing file for reading.
    ReadOnly,
}

/// A request to open one file. Collective over `comm`, with the same arguments on all ranks.
#[derive(Clone, Copy, Debug)]
pub struct OpenRequest<'a> {
    /// The file.
    pub path: &'a FilePath,
    /// Create, update or read.
    pub mode: OpenMode,
    /// The ranks that share the file; only the own rank for a private file.
    pub comm: &'a Comm,
    /// Hints as (key, value), in order; drivers without hints ignore them.
    pub hints: &'a [(String, String)],
}

/// Maximum number of calls of one overlapped batch.
pub const MAX_PENDING_CALLS: u64 = 1024;

/// What [`Latency`] contains after a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LatencyUnit {
    /// The duration of every call.
    #[default]
    Call,
    /// Every operation of the kernel, from submission to completion; calls overlap.
    Operation,
    /// Every step of a two-phase transfer.
    Step,
}

impl LatencyUnit {
    /// Name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Operation => "operation",
            Self::Step => "step",
        }
    }
}

/// Submission statistics of io_uring; resubmissions of short operations count again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubmissionStatistics {
    /// Operations with registered memory.
    pub registered: u64,
    /// Operations with other memory.
    pub unregistered: u64,
}

impl std::ops::Add for SubmissionStatistics {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { registered: self.registered + other.registered, unregistered: self.unregistered + other.unregistered }
    }
}

/// Settings of a driver for a prepared pattern, for the report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransferStrategy {
    /// The call and its use, e.g. `MPI_File_write_all, strided view` or `pwrite`.
    pub strategy: String,
    /// True if the transfers bypass the page cache, false if they use it, None if unknown.
    pub direct: Option<bool>,
    /// What is timed if latencies are recorded.
    pub latency_unit: LatencyUnit,
}

/// Whether a file supports a pattern; known before [`OpenFile::prepare`] and equal on all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Support {
    /// The driver cannot run the pattern with its settings, for this reason.
    Unsupported(String),
    /// Each rank runs it by itself.
    Independent,
    /// The pattern synchronizes ranks: its calls wait for all ranks, or `prepare` examines what another rank may write, so that none may
    /// begin before all have prepared.
    Synchronizing,
}

impl Support {
    /// [`Support::Unsupported`] with a reason, [`Support::Synchronizing`] if the pattern synchronizes ranks.
    #[must_use]
    pub fn from_reason(unsupported: Option<String>, synchronizes: bool) -> Self {
        match (unsupported, synchronizes) {
            (Some(reason), _) => Self::Unsupported(reason),
            (None, true) => Self::Synchronizing,
            (None, false) => Self::Independent,
        }
    }

    /// Why the pattern cannot be run; None if it can.
    #[must_use]
    pub fn reason(self) -> Option<String> {
        match self {
            Self::Unsupported(reason) => Some(reason),
            Self::Independent | Self::Synchronizing => None,
        }
    }
}

/// Order of the batches of the prepared pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Protocol {
    /// No rank may begin a batch before all have completed the previous one. Otherwise ranks may be some batches apart.
    pub lockstep: bool,
    /// A batch may begin before the previous one has completed ([`BatchOverlap::NextBatch`]), so that a queue stays full. Preallocation precedes the
    /// first batch, and the sequence ends with the preallocated calls ([`OpenFile::preallocate`]).
    pub pipelined: bool,
}

/// Returns the calls of the next batch, or None after the last one. Called when all chunks of the last batch are started and fewer than
/// these are pending, so that their duration is known. Argument: pending chunks of this batch and earlier ones.
pub type NextBatch<'a> = &'a mut dyn FnMut(u64) -> Option<u64>;

/// Work that accompanies a batch of [`Batches`].
pub enum BatchOverlap<'a> {
    /// Nothing.
    None,
    /// Further batches.
    NextBatch(NextBatch<'a>),
    /// Computation while calls are pending: with [`crate::CallStyle::Split`] it runs once between begin and end of each call; otherwise
    /// once while all calls are pending. For nonblocking styles; at most [`MAX_PENDING_CALLS`] calls. It runs in any case.
    Computation(&'a mut dyn FnMut()),
}

/// Calls for one [`OpenFile::write`] or [`OpenFile::read`].
pub struct Batches<'a> {
    /// The first batch.
    pub batch: Batch,
    /// Recorder of call times, if enabled.
    pub latency: &'a mut Latency,
    /// Accompanying work.
    pub overlap: BatchOverlap<'a>,
}

impl<'a> Batches<'a> {
    /// One batch.
    pub fn new(batch: Batch, latency: &'a mut Latency) -> Self {
        Self { batch, latency, overlap: BatchOverlap::None }
    }

    /// Adds the batches that `next` returns.
    #[must_use]
    pub fn with_next(self, next: NextBatch<'a>) -> Self {
        Self { overlap: BatchOverlap::NextBatch(next), ..self }
    }

    /// Adds computation while calls are pending.
    #[must_use]
    pub fn with_computation(self, computation: &'a mut dyn FnMut()) -> Self {
        Self { overlap: BatchOverlap::Computation(computation), ..self }
    }

    /// For files that complete each batch before the next one begins: `run` transfers one batch; returns the bytes of all.
    ///
    /// # Errors
    /// That of `run`, which is not called again; or a requested computation, which such files cannot overlap.
    #[inline]
    pub fn run_sequentially(self, mut run: impl FnMut(Batch, &mut Latency) -> Result<u64>) -> Result<u64> {
        let Self { mut batch, latency, overlap: beside } = self;
        match beside {
            BatchOverlap::None => run(batch, latency),
            BatchOverlap::NextBatch(next) => {
                let mut bytes = 0;
                loop {
                    bytes += run(batch, latency)?;
                    let Some(calls) = next(0) else { return Ok(bytes) };
                    batch = Batch { first_call: batch.first_call + batch.calls, calls };
                }
            }
            BatchOverlap::Computation(computation) => {
                computation();
                Err(BackendError::overlap_unsupported())
            }
        }
    }
}

/// For files that complete each call before the next one begins: the calls of a batch of a mixed pattern, `run` for each sequence in one
/// direction; returns the bytes of all. With `is_collective` the calls after an error are made, too, because other ranks take part.
///
/// # Errors
/// The first one of `run`.
pub fn run_mixed(
    mix: ReadWriteMix,
    batch: Batch,
    is_collective: bool,
    mut run: impl FnMut(Direction, Batch) -> Result<u64>,
) -> Result<u64> {
    let mut outcome = Ok(0);
    for (direction, calls) in mix.runs(batch) {
        let moved = run(direction, calls);
        outcome = outcome.and_then(|bytes| Ok(bytes + moved?));
        if outcome.is_err() && !is_collective {
            break;
        }
    }
    outcome
}

/// Runs `batch` with a computation that it may call; calls the computation itself if `batch` did not.
pub(crate) fn run_with_computation(
    computation: &mut dyn FnMut(),
    batch: impl FnOnce(&mut dyn FnMut()) -> Result<u64>,
) -> Result<u64> {
    let mut ran = false;
    let result = batch(&mut || {
        ran = true;
        computation();
    });
    if !ran {
        computation();
    }
    result
}

/// Access to storage. State of one file is in [`OpenFile`]; a driver keeps only buffers, for the next file.
pub trait Driver {
    /// Opens a file; collective over `request.comm`.
    ///
    /// # Errors
    /// Errors of the storage, with operation, path and cause. An error on one rank is returned without waiting for the others:
    /// the caller must agree on the outcome.
    fn open(&self, request: &OpenRequest<'_>) -> Result<Box<dyn OpenFile>>;

    /// Allocates the memory that a file of `ranks` ranks on `hosts` hosts needs in addition to the transfer buffer, so that this takes no
    /// time in open or `prepare`. The files of this driver reuse it. Not collective. A failure is not reported here, but by the file that
    /// needs the memory.
    fn allocate_buffers(&self, ranks: u64, hosts: u64) {
        let _ = (ranks, hosts);
    }
}

/// One open file of one rank (or of all ranks of a communicator, for collective drivers).
///
/// A benchmark calls `prepare` once per pattern and then any number of batches of one direction, or mixed ones. All ranks of the communicator
/// call collective patterns with the same batches, also after an error on one of them: a driver finishes its collective calls and
/// then returns the first error, so that no rank blocks.
pub trait OpenFile {
    /// Whether this pattern can be run, and whether it synchronizes ranks, before anything is prepared.
    fn support(&self, pattern: &AccessPattern) -> Support;

    /// Prepares one pattern: file view, derived datatypes, submission templates, registered buffers.
    /// Collective over the communicator of the file. `hints` apply to this pattern only.
    ///
    /// # Errors
    /// Errors of the library or the kernel.
    fn prepare(
        &mut self,
        pattern: &AccessPattern,
        direction: Direction,
        buffer: &mut TransferBuffer,
        hints: &[(String, String)],
    ) -> Result<TransferStrategy>;

    /// Writes the batches of `work` from the transfer buffer; returns the bytes of this rank.
    ///
    /// # Errors
    /// The first operation that failed or was short, with offset, expected and actual bytes.
    fn write(&mut self, work: Batches<'_>, buffer: &TransferBuffer) -> Result<u64>;

    /// Reads the batches of `work` into the transfer buffer; returns the bytes of this rank.
    ///
    /// # Errors
    /// As for [`OpenFile::write`]; the end of the file inside a batch is a short transfer and thus an error.
    fn read(&mut self, work: Batches<'_>, buffer: &mut TransferBuffer) -> Result<u64>;

    /// Writes and reads the batches of `work`, of a pattern with [`AccessPattern::mix`], which was prepared as a write: writes take their data
    /// from the windows of the transfer buffer, and reads leave theirs in its landing zone. Returns the bytes of this rank, in both
    /// directions.
    ///
    /// # Errors
    /// As for [`OpenFile::write`] and [`OpenFile::read`].
    fn transfer_mixed(&mut self, work: Batches<'_>, buffer: &mut TransferBuffer) -> Result<u64>;

    /// Flushes written data to the storage: MPI_File_sync, fsync. Collective over the communicator of the file.
    ///
    /// # Errors
    /// Also late write errors, which are reported only here.
    fn sync(&mut self) -> Result<()>;

    /// Closes the file without deleting it; collective over its communicator.
    ///
    /// # Errors
    /// What the close reports.
    fn close(self: Box<Self>) -> Result<()>;

    /// Order of the batches of the prepared pattern; the default if nothing is prepared.
    fn protocol(&self) -> Protocol {
        Protocol::default()
    }

    /// Hints in use according to the library, as (key, value); empty for drivers without hints. Never called
    /// inside the timed section.
    ///
    /// # Errors
    /// What the library reports.
    fn hints_in_use(&self) -> Result<Vec<(String, String)>> {
        Ok(Vec::new())
    }

    /// Preallocates the file for a write of `batch`, for drivers that cannot write beyond its end (mmap) or are slow there
    /// (posix and uring with direct I/O: [`crate::Preallocate`]). Called before each [`OpenFile::write`]; its time is recorded
    /// separately.
    /// Collective over the communicator of the file: all ranks call it with the same batches, and with [`Protocol::lockstep`] none with a
    /// later one before all have written this one. Returns the number of calls of the prepared pattern, from its first one on, that are
    /// allocated; u64::MAX if none needs allocation.
    ///
    /// # Errors
    /// What the kernel reports; lack of space only if a write is impossible without preallocation (mmap).
    fn preallocate(&mut self, _batch: Batch) -> Result<u64> {
        Ok(u64::MAX)
    }

    /// Trims what [`OpenFile::preallocate`] has allocated beyond the last batch. Called before each [`OpenFile::sync`] that
    /// ends writes; counts as time of preallocation. Collective over the communicator of the file: no rank continues with another batch
    /// before all have synced this one. Returns why batches since `prepare` were not preallocated; None if they were, or if no
    /// preallocation was intended.
    ///
    /// # Errors
    /// What the kernel reports.
    fn trim(&mut self) -> Result<Option<String>> {
        Ok(None)
    }

    /// Submission statistics of io_uring since the file was opened; None without a queue.
    fn submission_statistics(&self) -> Option<SubmissionStatistics> {
        None
    }
}
