//! The only door to MPI: raw functions from mpi-sys, constants from a C shim of our own, and owned handles around
//! both.
//!
//! Every wrapper here is thin: one MPI call, its return code turned into [`MpiError`]. Nothing allocates in the calls
//! that move data or agree on something, so that they can stand inside the clock. Beside MPI: the count of
//! allocations, and the few system calls that need unsafe code.
//!
//! # From the beginning to the end of MPI
//!
//! ```no_run
//! use beff_ffi::{Access, Element, Info, MpiFile, Open, TransferType, Universe};
//!
//! # fn main() -> beff_ffi::Result<()> {
//! let universe = Universe::init()?; // MPI_Init_thread, one thread; dropped, MPI_Finalize
//! let world = universe.world();
//! let mut ranks = [1];
//! world.sum_u64(&mut ranks)?;
//! assert_eq!(ranks, [world.size()]);
//!
//! // Every rank writes 64 bytes behind those of the rank before.
//! let file = MpiFile::open(&world, "/tmp/f".as_ref(), Open::CreateNew, false, &Info::new(&[])?)?;
//! let what = TransferType::new(Element::Byte, 64, None)?;
//! assert_eq!(file.write(Access::OffsetAll, 64 * world.rank(), &[7; 64], &what)?, 64);
//! file.sync()?;
//! file.close()
//! # }
//! ```
//!
//! # In which order to read
//!
//! 1. [`error`]: what every call returns. [`universe`] and [`comm`]: MPI itself, ranks and what they agree on, which
//!    leaves the core to others while they wait (`patient.rs`).
//! 2. [`info`], [`datatype`] and [`mod@file`]: hints, what is moved, how a file is seen; then [`access`], every call
//!    that moves data, and [`transfers`], many of them at once.
//! 3. [`exchange`] and [`places`], the loops of b_eff and where their messages lie, and [`requests`], the messages of two-phase transfers.
//! 4. [`replay`]: every call of the MPI-IO chapter by its own name, for recorded programs.
//! 5. [`stranded`]: an end for ranks that a library leaves waiting.
//! 6. [`ranks`]: what unit tests put in the place of MPI.
//! 7. [`mod@bare`] and [`bare_file`]: the same loops in C (`shim/`), to compare with. [`alloc`] and [`linux`] have
//!    nothing to do with MPI.

/// A constant of the library or of the shim, which are symbols of C.
macro_rules! constant {
    ($name:path) => {
        // SAFETY: set before the program begins, and written by nobody after.
        unsafe { $name }
    };
}

pub mod access;
mod agreement;
pub mod alloc;
pub mod bare;
pub mod bare_file;
pub mod comm;
pub mod datatype;
pub mod error;
pub mod exchange;
pub mod file;
pub mod info;
pub mod linux;
mod patient;
pub mod places;
pub mod ranks;
pub mod replay;
pub mod requests;
pub mod signals;
pub mod stranded;
pub mod transfers;
pub mod universe;

#[cfg(test)]
mod calls_tests;

mod shim {
    #![allow(missing_docs, non_upper_case_globals, non_camel_case_types, dead_code, unused_imports)]
    #![allow(clippy::all, clippy::undocumented_unsafe_blocks)]
    include!(concat!(env!("OUT_DIR"), "/shim.rs"));
}

pub use access::Access;
pub use agreement::Agreement;
pub use bare_file::{BareCall, BareFile, BareLoop};
pub use comm::Comm;
pub use datatype::{Element, FileType, TransferType};
pub use error::{Cause, MpiError, Result};
pub use exchange::{Exchange, Link, Way};
pub use file::{MpiFile, Open};
pub use info::Info;
pub use places::{Flow, Places, Walk, Windows};
pub use ranks::Ranks;
pub use requests::{Message, Requests};
pub use signals::{Gathering, Signals};
pub use transfers::{Transfer, Transfers};
pub use universe::{built_with, library_version, Universe};
