//! One backend interface, several ways to transfer the same bytes.
//!
//! A benchmark describes one rank's part of an access pattern as arithmetic ([`AccessPattern`]), opens a file through a
//! [`Driver`], prepares the pattern, and then submits *batches of calls*. One virtual call covers thousands of
//! operations, so that the overhead of the interface is negligible. All allocation, look-up and registration is done
//! in [`OpenFile::prepare`], which is timed separately.
//!
//! The interface passes no clock, plan, MPI type or pending operation. Asynchronous completion is internal to a driver.
//!
//! # A file from open to close
//!
//! ```
//! use beff_backends::{
//!     driver, AccessPattern, Batch, Batches, Direction, DriverOptions, FilePath, Latency, OpenMode, OpenRequest, TransferBuffer,
//! };
//! use beff_ffi::Comm;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let path = FilePath::of(&std::env::temp_dir().join(format!("beff-example-{}", std::process::id())))?;
//! // A single rank needs no MPI, except for the driver `mpiio`.
//! let request = OpenRequest { path: &path, mode: OpenMode::CreateNew, comm: &Comm::comm_self(), hints: &[] };
//! let row = driver("posix").ok_or("no such driver")?;
//! let mut file = (row.create)(&DriverOptions::default()).open(&request)?;
//!
//! // 100 contiguous calls of 4 KiB, from a transfer buffer with a period of 64 KiB.
//! let pattern = AccessPattern::private(4096, 1, 100);
//! let mut buffer = TransferBuffer::new(64 << 10, pattern.call_bytes())?;
//! assert_eq!(file.support(&pattern).reason(), None);
//! let transfer = file.prepare(&pattern, Direction::Write, &mut buffer, &[])?;
//! assert_eq!(transfer.strategy, "pwrite, buffered");
//!
//! // Timed by the benchmark: batches, and the sync.
//! let batch = Batch { first_call: 0, calls: 100 };
//! file.preallocate(batch)?;
//! assert_eq!(file.write(Batches::new(batch, &mut Latency::off()), &buffer)?, 409_600);
//! file.sync()?;
//! file.close()?;
//! # path.remove()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Reading order
//!
//! 1. [`interface`]: [`Driver`] and [`OpenFile`]; [`pattern`]: their arguments; [`transfer_buffer`]: the transfer buffer;
//!    `walk.rs`: from a batch to offsets and buffer indices.
//! 2. `skeleton.rs`: the smallest complete backend, as a template; [`registry`]: the abilities of each backend.
//! 3. `direct.rs`: a file with and without the page cache; `route.rs`: the choice between them; then [`posix`], the
//!    simplest real driver.
//! 4. [`uring`] with `queue.rs`, [`mmap`], [`mpiio`]: independent of each other. posix and uring share `offset_file.rs`
//!    (open to close), `edges.rs` (partially owned sectors), `preallocation.rs` (blocks before direct first writes) and
//!    `two_phase/` (collective buffering among ranks).
//! 5. [`program`]: the second interface, for recorded programs. `by_offsets/` replays them through posix, uring and
//!    null, `mpiio/program/` by their own calls.

mod abort_message;
mod availability;
mod batch;
mod by_offsets;
pub mod cache_lines;
pub mod crash;
mod direct;
pub mod directory;
mod dontcache;
mod edges;
pub mod error;
pub mod interface;
pub mod latency;
pub mod mix;
pub mod mmap;
pub mod mpiio;
pub mod null;
mod offset_file;
pub mod options;
pub mod order;
#[cfg(test)]
mod order_tests;
pub mod pattern;
pub mod posix;
mod preallocation;
pub mod program;
mod queue;
#[cfg(test)]
mod ranks_tests;
pub mod registry;
mod retry;
#[cfg(feature = "test-hooks")]
mod rmw;
mod route;
#[cfg(test)]
mod skeleton;
pub mod statx;
#[cfg(test)]
mod syscalls;
#[cfg(test)]
mod testing;
pub mod transfer_buffer;
mod two_phase;
pub mod uring;
mod walk;

pub use availability::{check_availability, Availability, UnavailableDriver};
pub use batch::{Batch, Direction};
pub use directory::{DirectoryHandle, FilePath};
pub use error::{BackendError, Result};
pub use interface::{
    run_mixed, BatchOverlap, Batches, Driver, LatencyUnit, NextBatch, OpenFile, OpenMode, OpenRequest, Protocol,
    SubmissionStatistics, Support, TransferStrategy, MAX_PENDING_CALLS,
};
pub use latency::Latency;
pub use mix::ReadWriteMix;
pub use options::{
    default_aggregators, CalibratedDepth, Collective, Direct, DirectTrial, DriverOptions, ExchangeMethod, Preallocate,
    TrialAlign, DEFAULT_DOMAIN_BYTES,
};
pub use order::{AccessOrder, OrderKind, STRIDE_CALLS};
pub use pattern::{AccessKind, AccessPattern, CallAddressing, CallForm, CallStyle, ElementUnit, RankPartition};
pub use program::{ProgramRequest, ProgramStep, ProgramTables, ReplayProgram, StepOutcome};
pub use registry::{driver, drivers, DriverRow};
pub use transfer_buffer::TransferBuffer;
