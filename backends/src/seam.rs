//! The seam between benchmarks and storage: what a backend implements ([`Driver`], [`OpenFile`]), and what crosses it.

use beff_ffi::Comm;

use crate::{BackendError, Batch, Direction, FilePath, Latency, Pattern, Result, Ring};

/// How a file is opened. Creation is exclusive: nothing that exists is ever overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Create, fail if it exists, read and write.
    CreateNew,
    /// The file exists; read and write.
    Update,
    /// The file exists; read only.
    ReadOnly,
}

/// A request to open one file. Collective over `comm`: every rank of it calls with the same arguments.
#[derive(Clone, Copy, Debug)]
pub struct OpenRequest<'a> {
    /// The file.
    pub path: &'a FilePath,
    /// Create, update or read.
    pub mode: OpenMode,
    /// The ranks that share the file; the world's own rank alone for a private file.
    pub comm: &'a Comm,
    /// Hints as (key, value), in order; drivers without hints ignore them.
    pub hints: &'a [(String, String)],
}

/// Calls of one overlapped batch at most.
pub const MOST_PENDING: u64 = 1024;

/// What [`Latency`] holds after a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timed {
    /// Every call from its begin to its end.
    #[default]
    Call,
    /// Every operation of the kernel, from submission to completion: calls overlap.
    Operation,
    /// Every step of a two-phase transfer.
    Step,
}

impl Timed {
    /// As it is reported.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Operation => "operation",
            Self::Step => "step",
        }
    }
}

/// Operations handed to io_uring, those that went on after a part of their bytes again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Submitted {
    /// Between the file and memory that was registered with the queue.
    pub registered: u64,
    /// Between the file and other memory.
    pub plain: u64,
}

impl std::ops::Add for Submitted {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { registered: self.registered + other.registered, plain: self.plain + other.plain }
    }
}

/// What a driver uses for a prepared pattern, as it will be reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InForce {
    /// The call and how it is used, e.g. `MPI_File_write_all, strided view` or `pwrite`.
    pub strategy: String,
    /// True if the transfers bypass the page cache, false if they go through it, None if the driver cannot know.
    pub direct: Option<bool>,
    /// What is timed with latencies on.
    pub timed: Timed,
}

/// What a file can do with a pattern, known without [`OpenFile::prepare`] and the same on all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Support {
    /// The pattern cannot be run with the settings of this driver, for this reason.
    Unsupported(String),
    /// Each rank runs it by itself.
    Independent,
    /// The ranks need each other: they synchronize in its calls, where one that stays away keeps the others waiting; or `prepare` looks at
    /// what another rank may write, so that none may begin before all have prepared.
    Synchronizing,
}

impl Support {
    /// [`Support::Unsupported`] with a reason, [`Support::Synchronizing`] if the ranks need each other.
    #[must_use]
    pub fn of(unsupported: Option<String>, synchronizes: bool) -> Self {
        match (unsupported, synchronizes) {
            (Some(reason), _) => Self::Unsupported(reason),
            (None, true) => Self::Synchronizing,
            (None, false) => Self::Independent,
        }
    }

    /// Why the pattern cannot be run; None: it can.
    #[must_use]
    pub fn reason(self) -> Option<String> {
        match self {
            Self::Unsupported(reason) => Some(reason),
            Self::Independent | Self::Synchronizing => None,
        }
    }
}

/// How the batches of the prepared pattern may follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Protocol {
    /// No rank may begin a batch before all have ended the one before. Otherwise ranks may be some batches apart.
    pub lockstep: bool,
    /// A batch may begin before the one before has ended ([`Beside::Next`]): a queue stays full then. Preallocation comes before the
    /// first of them, and they end with the calls that have it ([`OpenFile::preallocate`]).
    pub pipelined: bool,
}

/// Asked for the calls of the next batch when all chunks of the last one are begun and fewer than these are pending, so that it is known how
/// long they take; with how many are, of this batch and those before. None: it was the last one.
pub type Next<'a> = &'a mut dyn FnMut(u64) -> Option<u64>;

/// What comes with a batch of [`Batches`].
pub enum Beside<'a> {
    /// Nothing.
    Nothing,
    /// Further batches, one behind the other.
    Next(Next<'a>),
    /// Computation while the calls are pending: with [`crate::CallStyle::Split`] each call is begun and completed on its own, the computation
    /// runs in each; otherwise all are begun, it runs once, and all are completed. For styles that do not block; at most [`MOST_PENDING`]
    /// calls. It runs in any case.
    Computation(&'a mut dyn FnMut()),
}

/// Calls for one [`OpenFile::write`] or [`OpenFile::read`].
pub struct Batches<'a> {
    /// The first batch.
    pub batch: Batch,
    /// Takes the time of each call, if it is on.
    pub latency: &'a mut Latency,
    /// What comes with it.
    pub beside: Beside<'a>,
}

impl<'a> Batches<'a> {
    /// One batch.
    pub fn new(batch: Batch, latency: &'a mut Latency) -> Self {
        Self { batch, latency, beside: Beside::Nothing }
    }

    /// With the batches that `next` names behind it.
    #[must_use]
    pub fn followed_by(self, next: Next<'a>) -> Self {
        Self { beside: Beside::Next(next), ..self }
    }

    /// With computation while its calls are pending.
    #[must_use]
    pub fn overlapping(self, computation: &'a mut dyn FnMut()) -> Self {
        Self { beside: Beside::Computation(computation), ..self }
    }

    /// For files that end each batch before the next one begins: `run` moves one batch; returns the bytes of all.
    ///
    /// # Errors
    /// That of `run`, which is not called behind it; and computation asked for, which such files do not overlap.
    #[inline]
    pub fn each(self, mut run: impl FnMut(Batch, &mut Latency) -> Result<u64>) -> Result<u64> {
        let Self { mut batch, latency, beside } = self;
        match beside {
            Beside::Nothing => run(batch, latency),
            Beside::Next(next) => {
                let mut bytes = 0;
                loop {
                    bytes += run(batch, latency)?;
                    let Some(calls) = next(0) else { return Ok(bytes) };
                    batch = Batch { first_call: batch.first_call + batch.calls, calls };
                }
            }
            Beside::Computation(computation) => {
                computation();
                Err(BackendError::nothing_under_way())
            }
        }
    }
}

/// Runs `batch` with a computation that it may call, and calls it itself if the batch did not come to it.
pub(crate) fn in_any_case(
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

/// A way to reach storage. What belongs to one file is in [`OpenFile`]; a driver keeps memory for the next one, and nothing else.
pub trait Driver {
    /// Opens a file; collective over `request.comm`.
    ///
    /// # Errors
    /// Whatever the storage says, with operation, path and cause. An error on one rank does not wait for the others:
    /// the caller agrees on the outcome before it goes on.
    fn open(&self, request: &OpenRequest<'_>) -> Result<Box<dyn OpenFile>>;

    /// Makes the memory that a file of `ranks` ranks on `hosts` hosts needs beside the ring, so that neither its opening nor a `prepare` takes
    /// the time for it: the files of this driver have it one after the other. Not collective, and not an error: what is missing then, the file
    /// will miss.
    fn provide(&self, ranks: u64, hosts: u64) {
        let _ = (ranks, hosts);
    }
}

/// One open file of one rank (or of all ranks of a communicator, for collective drivers).
///
/// A benchmark calls `prepare` once per pattern and then any number of batches of one direction. Collective
/// patterns are called by all ranks of the communicator with the same batches, also when a call fails on one
/// of them: a driver finishes its collective calls and then returns the first error, so that no rank stays behind.
pub trait OpenFile {
    /// Says whether this pattern can be run, and whether the ranks need each other in it, before anything is prepared.
    fn support(&self, pattern: &Pattern) -> Support;

    /// Sets up one pattern: file view, derived datatypes, submission templates, registered buffers.
    /// Collective over the communicator of the file. `hints` are those of this pattern alone.
    ///
    /// # Errors
    /// What the library or the kernel refuses.
    fn prepare(
        &mut self,
        pattern: &Pattern,
        direction: Direction,
        ring: &mut Ring,
        hints: &[(String, String)],
    ) -> Result<InForce>;

    /// Writes the batches of `work` from the ring; returns the bytes this rank moved.
    ///
    /// # Errors
    /// The first operation that failed or moved less than asked, with offset, expected and got.
    fn write(&mut self, work: Batches<'_>, ring: &Ring) -> Result<u64>;

    /// Reads the batches of `work` into the ring; returns the bytes this rank moved.
    ///
    /// # Errors
    /// As for [`OpenFile::write`]; the end of the file inside a batch is a short transfer and so an error.
    fn read(&mut self, work: Batches<'_>, ring: &mut Ring) -> Result<u64>;

    /// Hands the written data to the storage: MPI_File_sync, fsync. Collective over the communicator of the file.
    ///
    /// # Errors
    /// Late write errors show up here and nowhere else.
    fn sync(&mut self) -> Result<()>;

    /// Closes the file; collective over its communicator. The file stays.
    ///
    /// # Errors
    /// What the close reports.
    fn close(self: Box<Self>) -> Result<()>;

    /// How the batches of the prepared pattern may follow each other; none if nothing is prepared.
    fn protocol(&self) -> Protocol {
        Protocol::default()
    }

    /// Hints the library says are in force now, as (key, value); empty for drivers without hints. Never called
    /// inside the clock.
    ///
    /// # Errors
    /// What the library reports.
    fn hints_in_force(&self) -> Result<Vec<(String, String)>> {
        Ok(Vec::new())
    }

    /// Makes the file long enough for a write of `batch`, for drivers that cannot write beyond its end (mmap) or are slow there
    /// (posix and uring, direct: [`crate::Preallocate`]). Called before each [`OpenFile::write`], with a time of its own. Collective over the
    /// communicator of the file: all ranks come with the same batches, and with [`Protocol::lockstep`] none with a later one before all
    /// have written this one. Returns the calls of the prepared pattern, from its first one on, that are allocated for now; u64::MAX where
    /// none needs it.
    ///
    /// # Errors
    /// What the kernel says; no space only where a write is impossible without (mmap).
    fn preallocate(&mut self, _batch: Batch) -> Result<u64> {
        Ok(u64::MAX)
    }

    /// Gives back what [`OpenFile::preallocate`] has allocated behind the last batch. Called before each [`OpenFile::sync`] that
    /// ends writes, in the time of preallocation. Collective over the communicator of the file: no rank comes with another batch
    /// before all have synced this one. Returns why batches since `prepare` went on without preallocation; None: they did not, or none was
    /// meant to be.
    ///
    /// # Errors
    /// What the kernel says.
    fn trim(&mut self) -> Result<Option<String>> {
        Ok(None)
    }

    /// Operations that this file has handed to a queue of io_uring since it was opened; None: it has none.
    fn submitted(&self) -> Option<Submitted> {
        None
    }
}
