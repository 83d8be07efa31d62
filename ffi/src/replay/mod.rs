//! Functions to replay recorded programs: every call of the MPI-IO chapter and its requests under its own name, timed directly. An error
//! is a code like any other.
//!
//! [`timing`]: clock and return codes. [`data`]: the 34 data access routines and their large-count variants. [`mod@file`]: all other file
//! functions. [`requests`]: completion calls. [`types`]: datatypes from trees. [`comms`]: communicators from lists of ranks.

pub mod comms;
pub mod data;
pub mod file;
pub mod requests;
pub mod timing;
pub mod types;

pub use data::{DataCall, DataFunction};
pub use file::{FileHandle, OpenParameters};
pub use requests::{Request, Status};
pub use timing::{now_ns, ReturnCode, TimedCall};
pub use types::{TypeBounds, TypeHandle, TypeTable};
