//! One seam, many ways to move the same bytes.
//!
//! A benchmark describes one rank's part of an access pattern as arithmetic ([`Pattern`]), opens a file through a
//! [`Driver`], lets it prepare the pattern, and then hands over *batches of calls*. One virtual call stands for
//! thousands of operations, so the seam itself costs nothing that could be seen in a result, and everything that must
//! be allocated, looked up or registered happens in [`OpenFile::prepare`], which has a time of its own.
//!
//! What never crosses this seam: a clock, a plan, an MPI type, a half-finished operation. Asynchronous completion
//! stays inside the driver that uses it.
//!
//! # A file from open to close
//!
//! ```
//! use beff_backends::{driver, Batch, Direction, DriverOptions, FilePath, Latency, OpenMode, OpenRequest, Pattern, Ring};
//! use beff_ffi::Comm;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let path = FilePath::of(&std::env::temp_dir().join(format!("beff-example-{}", std::process::id())))?;
//! // One rank alone: it needs no MPI, except for the driver `mpiio`.
//! let request = OpenRequest { path: &path, mode: OpenMode::CreateNew, comm: &Comm::own(), hints: &[] };
//! let row = driver("posix").ok_or("no such driver")?;
//! let mut file = (row.make)(&DriverOptions::default()).open(&request)?;
//!
//! // 100 calls of 4 KiB behind each other, out of memory whose content repeats after 64 KiB.
//! let pattern = Pattern::private(4096, 1, 100);
//! let mut ring = Ring::new(64 << 10, pattern.call_bytes())?;
//! assert_eq!(file.unsupported(&pattern), None);
//! let in_force = file.prepare(&pattern, Direction::Write, &mut ring, &[])?;
//! assert_eq!(in_force.strategy, "pwrite, buffered");
//!
//! // Inside the clock of the benchmark: batches, and the sync.
//! let batch = Batch { first_call: 0, calls: 100 };
//! file.make_room(batch)?;
//! assert_eq!(file.write(batch, &ring, &mut Latency::off())?, 409_600);
//! file.sync()?;
//! file.close()?;
//! # path.remove()?;
//! # Ok(())
//! # }
//! ```
//!
//! # In which order to read
//!
//! 1. Here: [`Driver`] and [`OpenFile`], the seam; [`pattern`], what crosses it; [`memory`], where the bytes lie;
//!    `walk.rs`, from a batch to offsets and places in memory.
//! 2. `skeleton.rs`: the smallest complete backend, to be copied, and [`registry`]: what each one can do.
//! 3. `direct.rs`, a file with and without the page cache, and `route.rs`, when which; then [`posix`], the plainest
//!    real driver.
//! 4. [`uring`] on `queue.rs`, [`mmap`], [`mpiio`]: each by itself. posix and uring share `offsets.rs` (from open to
//!    close), `edges.rs` (sectors that are not wholly ours), `room.rs` (blocks before direct first writes) and `two_phase/` (ranks that
//!    exchange data before a few of them write).
//! 5. [`program`], the second seam: recorded programs. `by_offsets/` replays them through posix, uring and null, `mpiio/program/` by
//!    their own calls.

mod by_offsets;
mod direct;
pub mod directory;
mod dontcache;
mod edges;
pub mod error;
pub mod flush;
mod last_words;
pub mod latency;
pub mod memory;
pub mod mmap;
pub mod mpiio;
pub mod null;
mod offsets;
pub mod options;
mod patience;
pub mod pattern;
pub mod posix;
pub mod program;
mod queue;
#[cfg(test)]
mod ranks_tests;
pub mod registry;
#[cfg(feature = "test-hooks")]
mod rmw;
mod room;
mod route;
#[cfg(test)]
mod skeleton;
pub mod statx;
#[cfg(test)]
mod syscalls;
#[cfg(test)]
mod testing;
mod two_phase;
mod unable;
pub mod uring;
mod walk;

pub use directory::{Directory, FilePath};
pub use error::{BackendError, Result};
pub use latency::Latency;
pub use memory::Ring;
pub use options::{Calibrated, Collective, Direct, DriverOptions, Exchange, Preallocate, DEFAULT_DOMAIN_BYTES};
pub use pattern::{AccessKind, Batch, CallForm, CallPlace, CallStyle, Direction, Parts, Pattern, Unit};
pub use program::{Outcome, Program, ProgramRequest, Step, Tables};
pub use registry::{driver, drivers, DriverRow};
pub use unable::{trial, Trial, Unable};

use beff_ffi::Comm;

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
    /// Says why this pattern cannot be run with the settings of this driver, before anything is prepared.
    /// `None`: it can.
    fn unsupported(&self, pattern: &Pattern) -> Option<String>;

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

    /// Hints the library says are in force now, as (key, value); empty for drivers without hints. Never called
    /// inside the clock.
    ///
    /// # Errors
    /// What the library reports.
    fn hints_in_force(&self) -> Result<Vec<(String, String)>> {
        Ok(Vec::new())
    }

    /// Makes the file long enough for a write of `batch`, for drivers that cannot write beyond its end (mmap) or are slow there
    /// (posix and uring, direct: [`Preallocate`]). Called before each [`OpenFile::write`], with a time of its own. Collective over the
    /// communicator of the file: all ranks come with the same batches, and where [`OpenFile::keeps_step`] none with a later one before all have
    /// written this one.
    ///
    /// # Errors
    /// What the kernel says; no space only where a write is impossible without (mmap).
    fn make_room(&mut self, _batch: Batch) -> Result<()> {
        Ok(())
    }

    /// Of a file that flows ([`OpenFile::flows`]): calls of the prepared pattern, from its first one on, that need no
    /// [`OpenFile::make_room`] any more, because it was made with that of others. u64::MAX where it is not made at all.
    fn calls_with_room(&self) -> u64 {
        u64::MAX
    }

    /// Gives back what [`OpenFile::make_room`] has made behind the last batch. Called before each [`OpenFile::sync`] that
    /// ends writes, in the time of the room. Collective over the communicator of the file: no rank comes with another batch
    /// before all have synced this one.
    ///
    /// # Errors
    /// What the kernel says.
    fn give_back(&mut self) -> Result<()> {
        Ok(())
    }

    /// Operations that this file has handed to a queue of io_uring since it was opened; None: it has none.
    fn submitted(&self) -> Option<Submitted> {
        None
    }

    /// True if ranks need each other in this pattern: they meet in its calls, where one that stays away keeps the others waiting; or its
    /// `prepare` looks at what another rank may write, so that none may begin before all have prepared. Known without `prepare`, and the
    /// same on all ranks.
    fn meets(&self, pattern: &Pattern) -> bool {
        pattern.kind.is_collective()
    }

    /// True if no rank may begin a batch of the prepared pattern before all have ended the one before. Otherwise ranks may be some batches
    /// apart.
    fn keeps_step(&self) -> bool {
        false
    }

    /// Why room was no longer made in batches since `prepare`, which go on without; None: it was, or was never meant to be.
    fn without_room(&self) -> Option<String> {
        None
    }

    /// Writes the calls of `batch` from the ring; returns the bytes this rank moved. The time of each call goes into
    /// `latency` if it is on.
    ///
    /// # Errors
    /// The first operation that failed or moved less than asked, with offset, expected and got.
    fn write(&mut self, batch: Batch, ring: &Ring, latency: &mut Latency) -> Result<u64>;

    /// Reads the calls of `batch` into the ring; returns the bytes this rank moved.
    ///
    /// # Errors
    /// As for [`OpenFile::write`]; the end of the file inside the batch is a short transfer and so an error.
    fn read(&mut self, batch: Batch, ring: &mut Ring, latency: &mut Latency) -> Result<u64>;

    /// True if batches of the prepared pattern can follow each other without an end between them ([`OpenFile::write_on`],
    /// [`OpenFile::read_on`]): a queue stays full then. Room comes before the first of them, and they end with the calls that have it
    /// ([`OpenFile::calls_with_room`]).
    fn flows(&self) -> bool {
        false
    }

    /// Writes the calls of `batch` and of all batches behind it that `next` names; returns the bytes this rank moved. What `next` is asked, and
    /// when, is said at [`Next`].
    ///
    /// # Errors
    /// As for [`OpenFile::write`]; `next` is not asked behind the batch that failed.
    fn write_on(&mut self, batch: Batch, ring: &Ring, latency: &mut Latency, next: Next<'_>) -> Result<u64> {
        one_by_one(batch, next, |batch| self.write(batch, ring, latency))
    }

    /// The same for reads.
    ///
    /// # Errors
    /// As for [`OpenFile::read`].
    fn read_on(&mut self, batch: Batch, ring: &mut Ring, latency: &mut Latency, next: Next<'_>) -> Result<u64> {
        one_by_one(batch, next, |batch| self.read(batch, ring, latency))
    }

    /// Begins the calls of `batch`, runs `during` while they are under way, and completes them; returns the bytes this rank
    /// moved. With [`CallStyle::Split`] each call is begun and completed on its own, `during` once in each; otherwise all
    /// are begun, `during` runs once, and all are completed. For styles that do not block; at most [`MOST_PENDING`] calls.
    ///
    /// # Errors
    /// As for [`OpenFile::write`]; a driver that can leave nothing under way. `during` runs in any case.
    fn write_overlapped(&mut self, _batch: Batch, _ring: &Ring, during: &mut dyn FnMut()) -> Result<u64> {
        during();
        Err(BackendError::nothing_under_way())
    }

    /// The same for reads.
    ///
    /// # Errors
    /// As for [`OpenFile::read`].
    fn read_overlapped(&mut self, _batch: Batch, _ring: &mut Ring, during: &mut dyn FnMut()) -> Result<u64> {
        during();
        Err(BackendError::nothing_under_way())
    }

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
}

/// Asked for the calls of the next batch when all chunks of the last one are begun and fewer than these are under way, so that it is known how
/// long they take; with how many are, of this batch and those before. None: it was the last one.
pub type Next<'a> = &'a mut dyn FnMut(u64) -> Option<u64>;

/// Batches with an end between them.
fn one_by_one(mut batch: Batch, next: Next<'_>, mut run: impl FnMut(Batch) -> Result<u64>) -> Result<u64> {
    let mut bytes = 0;
    loop {
        bytes += run(batch)?;
        let Some(calls) = next(0) else { return Ok(bytes) };
        batch = Batch { first_call: batch.first_call + batch.calls, calls };
    }
}

/// Runs `batch` with a `during` that it may call, and calls it itself if the batch did not come to it.
fn in_any_case(during: &mut dyn FnMut(), batch: impl FnOnce(&mut dyn FnMut()) -> Result<u64>) -> Result<u64> {
    let mut ran = false;
    let result = batch(&mut || {
        ran = true;
        during();
    });
    if !ran {
        during();
    }
    result
}
