//! The MPI functions that this project calls, for unit tests without a launcher, an initialized library, or files.
//!
//! A test program with this crate calls these functions instead of those of the library it is linked with. Ranks are threads ([`ranks`]),
//! or one thread acts as a single rank of several ([`as_rank`]): then sends and collective calls complete at once, and receives leave memory
//! unchanged. Calls are logged with their arguments ([`take_log`]), and a test can script results of the next calls ([`script`]). Files
//! hold no data: an access transfers all requested bytes.
//!
//! A function missing here is that of the library, which ends the test because MPI is not initialized.

mod files;
mod infos;
mod messages;
mod requests;
mod types;
mod words;
mod world;

pub use words::error_code;
pub use world::{
    as_rank, name_memory, ranks, script, set_fatal_file_errors, set_file_bytes, set_finalize_time, take_log,
    ScriptedResult,
};
