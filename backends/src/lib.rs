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
//! use beff_backends::{
//!     driver, Batch, Batches, Direction, DriverOptions, FilePath, Latency, OpenMode, OpenRequest, Pattern, Ring,
//! };
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
//! assert_eq!(file.support(&pattern).reason(), None);
//! let in_force = file.prepare(&pattern, Direction::Write, &mut ring, &[])?;
//! assert_eq!(in_force.strategy, "pwrite, buffered");
//!
//! // Inside the clock of the benchmark: batches, and the sync.
//! let batch = Batch { first_call: 0, calls: 100 };
//! file.preallocate(batch)?;
//! assert_eq!(file.write(Batches::new(batch, &mut Latency::off()), &ring)?, 409_600);
//! file.sync()?;
//! file.close()?;
//! # path.remove()?;
//! # Ok(())
//! # }
//! ```
//!
//! # In which order to read
//!
//! 1. [`seam`]: [`Driver`] and [`OpenFile`]; [`pattern`], what crosses it; [`memory`], where the bytes lie;
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
pub mod seam;
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
pub use seam::{
    Batches, Beside, Driver, InForce, Next, OpenFile, OpenMode, OpenRequest, Protocol, Submitted, Support, Timed,
    MOST_PENDING,
};
pub use unable::{trial, Trial, Unable};
