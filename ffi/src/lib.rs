//! The only interface to MPI: raw functions from mpi-sys, constants from a C shim, and owned handles.
//!
//! Every wrapper is thin: one MPI call, whose return code becomes an [`MpiError`]. Data accesses and agreements do not allocate, so they
//! can be in timed regions. Besides MPI: the count of allocations, and system calls that need unsafe code.
//!
//! # From the beginning to the end of MPI
//!
//! ```no_run
//! use beff_ffi::{AccessMode, DataAccess, Element, Info, MpiFile, TransferType, Universe};
//!
//! # fn main() -> beff_ffi::Result<()> {
//! let universe = Universe::init()?; // MPI_Init_thread, one thread; dropped, MPI_Finalize
//! let world = universe.world();
//! let mut ranks = [1];
//! world.sum_u64(&mut ranks)?;
//! assert_eq!(ranks, [world.size()]);
//!
//! // Every rank writes 64 bytes after those of the previous rank.
//! let file = MpiFile::open(&world, "/tmp/f".as_ref(), AccessMode::CreateNew, false, &Info::new(&[])?)?;
//! let datatype = TransferType::new(Element::Byte, 64, None)?;
//! assert_eq!(file.write(DataAccess::OffsetAll, 64 * world.rank(), &[7; 64], &datatype)?, 64);
//! file.sync()?;
//! file.close()
//! # }
//! ```
//!
//! # In which order to read
//!
//! 1. [`error`]: result of every call. [`universe`] and [`comm`]: MPI itself, ranks and their collective calls, which yield the core
//!    while they wait (`yielding_wait.rs`); [`tree_reduction`]: reductions of values of any length.
//! 2. [`info`], [`datatype`] and [`mod@file`]: hints, datatypes, files and views; [`access`]: data access routines; [`transfers`]:
//!    several nonblocking ones at once.
//! 3. [`exchange`] and [`message_layout`]: the loops of b_eff and the placement of their messages; [`requests`]: the messages of two-phase
//!    transfers.
//! 4. [`replay`]: every function of the MPI-IO chapter under its own name, for recorded programs.
//! 5. [`collective_timeout`] and [`finalize`]: end ranks that a library leaves waiting.
//! 6. [`ranks`]: replaces MPI in unit tests.
//! 7. [`mod@bare`] and [`bare_file`]: the same loops in C (`shim/`), for comparison. [`alloc`] and [`page_cache`] are independent of MPI.

/// A constant of the library or the shim, which is a C symbol.
macro_rules! constant {
    ($name:path) => {
        // SAFETY: initialized before the program starts, and never written afterwards.
        unsafe { $name }
    };
}

#[cfg(not(feature = "libclang"))]
extern crate self as mpi_sys;

pub mod access;
pub mod alloc;
pub mod bare;
pub mod bare_file;
pub mod collective_timeout;
pub mod comm;
mod constants;
pub mod datatype;
pub mod error;
pub mod exchange;
pub mod file;
pub mod finalize;
pub mod info;
mod max_reduction;
pub mod message_layout;
pub mod notifications;
pub mod page_cache;
pub mod ranks;
pub mod replay;
pub mod requests;
pub mod transfers;
pub mod tree_reduction;
pub mod universe;
mod yielding_wait;

#[cfg(test)]
mod calls_tests;

mod shim {
    #![allow(missing_docs, non_upper_case_globals, non_camel_case_types, dead_code, unused_imports)]
    #![allow(clippy::all, clippy::undocumented_unsafe_blocks)]
    include!(concat!(env!("OUT_DIR"), "/shim.rs"));
}

/// Takes the place of mpi-sys: the functions of MPI that this crate calls.
#[cfg(not(feature = "libclang"))]
mod bindings {
    #![allow(missing_docs, non_snake_case, non_upper_case_globals, non_camel_case_types, dead_code)]
    #![allow(clippy::all, clippy::undocumented_unsafe_blocks)]
    include!(concat!(env!("OUT_DIR"), "/mpi.rs"));
}
#[cfg(not(feature = "libclang"))]
use bindings::*;

pub use access::DataAccess;
pub use bare_file::{BareCall, BareFile, BareLoop};
pub use comm::Comm;
pub use datatype::{Element, FileType, TransferType};
pub use error::{MpiError, MpiErrorCause, Result};
pub use exchange::{ExchangeCall, NeighborExchange, StepPeers};
pub use file::{AccessMode, MpiFile};
pub use info::Info;
pub use max_reduction::MaxReduction;
pub use message_layout::{MemoryWalk, MessageLayout, MessagePlacement, MessageWindows};
pub use notifications::{Notifications, PendingBarrier};
pub use ranks::RankGroup;
pub use requests::{MessageDirection, Requests};
pub use transfers::{Transfer, TransferRequests};
pub use tree_reduction::Encoding;
pub use universe::{built_with, is_standard_abi, library_version, Universe};
