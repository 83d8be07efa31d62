//! What a recorded program is replayed with: every call of the MPI-IO chapter and of its requests by its own name, with the clock
//! directly around it. Nothing here decides anything; an error is a code like another.
//!
//! [`timed`]: the clock and what a call returned. [`data`]: the 34 data accesses and their twins with large counts. [`mod@file`]:
//! everything else with files. [`requests`]: Wait, Test and their family. [`types`]: datatypes from trees. [`comms`]:
//! communicators from lists of ranks.

pub mod comms;
pub mod data;
pub mod file;
pub mod requests;
pub mod timed;
pub mod types;

pub use data::{DataCall, DataFunction};
pub use file::{File, Opening};
pub use requests::{Request, Status};
pub use timed::{now_ns, Code, Timed};
pub use types::{Span, TypeHandle, Types};
