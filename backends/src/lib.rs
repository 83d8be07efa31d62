//! One seam, many ways to move the same bytes.
//!
//! A planner describes one rank's part of an access pattern as arithmetic ([`Pattern`]); the engine opens
//! a file through a [`Driver`], lets it prepare the pattern, and then hands over *batches of calls*. One
//! virtual call stands for thousands of operations, so the seam itself costs nothing that could be seen in
//! a result, and everything that must be allocated, looked up or registered happens in
//! [`OpenFile::prepare`], which has a time of its own.
//!
//! What never crosses this seam: a clock, a plan, an MPI type, a half-finished operation. Asynchronous
//! completion stays inside the driver that uses it.

mod direct;
pub mod error;
pub mod memory;
pub mod mpiio;
pub mod null;
pub mod pattern;
pub mod posix;
pub mod registry;
pub mod statx;
#[cfg(test)]
mod testing;
pub mod uring;
mod walk;

pub use error::{BackendError, Result};
pub use memory::Ring;
pub use pattern::{AccessKind, Batch, Direction, Pattern};
pub use registry::{driver, drivers, DriverRow};

use std::path::Path;

use beff_ffi::Comm;

/// Whether transfers must bypass the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direct {
    /// O_DIRECT for every pattern; a pattern that cannot be issued directly is not run.
    Required,
    /// O_DIRECT where the alignment allows it, buffered elsewhere; what was used is reported per pattern.
    Auto,
    /// Always through the page cache.
    Off,
}

/// Settings of the drivers, fixed for a run.
#[derive(Clone, Debug)]
pub struct DriverOptions {
    /// Direct I/O policy of the drivers that can choose (posix, uring).
    pub direct: Direct,
    /// Operations in flight at most (uring).
    pub queue_depth: u32,
    /// Open with MPI_MODE_UNIQUE_OPEN (mpiio). The paper forbids it: it may delay every sync to the close.
    pub unique_open: bool,
}

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
    pub path: &'a Path,
    /// Create, update or read.
    pub mode: OpenMode,
    /// The ranks that share the file; the world's own rank alone for a private file.
    pub comm: &'a Comm,
    /// Hints as (key, value), in order; drivers without hints ignore them.
    pub hints: &'a [(String, String)],
}

/// What a driver uses for a prepared pattern, as it will be reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InForce {
    /// The call and how it is used, e.g. `MPI_File_write_all, strided view` or `pwrite`.
    pub strategy: String,
    /// True if the transfers bypass the page cache, false if they go through it, None if the driver cannot know.
    pub direct: Option<bool>,
}

/// A way to reach storage. Drivers are stateless; what belongs to one file is in [`OpenFile`].
pub trait Driver {
    /// Opens a file; collective over `request.comm`.
    ///
    /// # Errors
    /// Whatever the storage says, with operation, path and cause. An error on one rank does not wait for the others:
    /// the caller agrees on the outcome before it goes on.
    fn open(&self, request: &OpenRequest<'_>) -> Result<Box<dyn OpenFile>>;
}

/// One open file of one rank (or of all ranks of a communicator, for collective drivers).
///
/// The engine calls `prepare` once per pattern and then any number of batches of one direction. Collective
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

    /// Writes the calls of `batch` from the ring; returns the bytes this rank moved.
    ///
    /// # Errors
    /// The first operation that failed or moved less than asked, with offset, expected and got.
    fn write(&mut self, batch: Batch, ring: &Ring) -> Result<u64>;

    /// Reads the calls of `batch` into the ring; returns the bytes this rank moved.
    ///
    /// # Errors
    /// As for [`OpenFile::write`]; the end of the file inside the batch is a short transfer and so an error.
    fn read(&mut self, batch: Batch, ring: &mut Ring) -> Result<u64>;

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
