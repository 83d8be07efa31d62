//! The only door to MPI: raw functions from mpi-sys, constants from a C shim of our own, and owned handles around both.
//!
//! Every wrapper here is thin: one MPI call, its return code turned into [`MpiError`]. Nothing allocates in the calls
//! that move data or agree on something, so that they can stand inside the clock. Beside MPI: the count of allocations, and
//! the few system calls that need unsafe code.

/// A constant of the library or of the shim, which are symbols of C.
macro_rules! constant {
    ($name:path) => {
        // SAFETY: set before the program begins, and written by nobody after.
        unsafe { $name }
    };
}

pub mod access;
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
pub mod requests;
pub mod transfers;
pub mod universe;

mod shim {
    #![allow(missing_docs, non_upper_case_globals, non_camel_case_types, dead_code, unused_imports)]
    #![allow(clippy::all, clippy::undocumented_unsafe_blocks)]
    include!(concat!(env!("OUT_DIR"), "/shim.rs"));
}

pub use access::Access;
pub use bare_file::{BareCall, BareFile, BareLoop};
pub use comm::Comm;
pub use datatype::{Element, FileType, TransferType};
pub use error::{Cause, MpiError, Result};
pub use exchange::{Exchange, Flow, Link, Way, Windows};
pub use file::{MpiFile, Open};
pub use info::Info;
pub use requests::Requests;
pub use transfers::{Transfer, Transfers};
pub use universe::{built_with, library_version, Universe};
