//! The functions of MPI that this project calls, for unit tests: no launcher, no library that is initialised, no files.
//!
//! A test program that uses this crate has the functions of this crate in place of those of the library it is linked with. Ranks are
//! threads ([`ranks`]), or one thread that poses as one of several ([`pose`]): then nobody else comes, sends and collective calls are
//! over at once, and receives leave their memory as it is. Every call is written down with all that it was given ([`take_log`]), and
//! the next one of a name answers what the test says ([`script`]). Files hold no data: an access moves all it was asked for.
//!
//! A function that is not here is that of the library, which ends the test: MPI was not initialised.

mod files;
mod infos;
mod messages;
mod requests;
mod types;
mod words;
mod world;

pub use words::error_code;
pub use world::{name_memory, pose, ranks, script, set_file_bytes, take_log, Answer};
