//! File of one process, written by the profiler while the program runs and read by the merge.
//!
//! It is a sequence of blocks of [`BLOCK_BYTES`]. The first is the head, written at MPI initialization and again at finalization. All
//! others hold records of one *lane*: the buffer of one thread, or of several threads in succession. The block that a lane currently fills
//! is part of the file too (*live*, mapped into memory), so that no record is lost with the process; when it is full, a copy with a
//! checksum is appended. Times are ticks of a clock that [`TickConversion`] converts to ns. Integers are little endian.
//!
//! A record is compact ([`record`]: 16 or 32 bytes, almost every call; 8 more if the buffer address changes) or an event split into parts
//! ([`event`]: dictionaries, rare calls).

pub mod block;
pub mod clock;
pub mod event;
pub mod head;
mod lane;
mod reader;
pub mod record;
mod varint;

use std::path::PathBuf;

use crate::call::Call;
use crate::types::Datatype;

pub use clock::TickConversion;
pub use head::ProcessHeader;
pub use reader::{Events, ProcessFile};

/// Version of the format. 2: [`Event::Storage`]. 3: [`Call::unchanged_ns`]. 4: [`Event::Removed`]. 5: [`Call::path`] and
/// [`Call::identity`], calls of [`crate::Role::Posix`].
pub const VERSION: u32 = 5;

/// Prefix of the directory of a world, inside that of a recording with several worlds.
pub const WORLD_PREFIX: &str = "world-";

/// Size of a block in bytes.
pub const BLOCK_BYTES: usize = 1 << 16;

/// Maximum number of lanes of a process.
pub const MAX_LANES: usize = 256;

/// Maximum bytes of an event. Larger ones are not recorded.
pub const MAX_EVENT_BYTES: usize = 1 << 28;

/// Recorded event, in the order of begin. Numbers count within the process. A dictionary event precedes the first call that uses it.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Datatype. Its inner types come before it.
    Type {
        /// Number of the type.
        id: u32,
        /// The type.
        datatype: Datatype,
    },
    /// Communicator.
    Comm {
        /// Number of the communicator.
        id: u32,
        /// World ranks in its order; empty if they could not be determined.
        ranks: Vec<u32>,
    },
    /// Hints.
    Info {
        /// Number of the info.
        id: u32,
        /// Keys and values.
        pairs: Vec<(String, String)>,
    },
    /// File system of a file.
    Storage {
        /// Number of the file.
        id: u32,
        /// Path as in [`Call::path`], before version 5 the name without the prefix of a ROMIO driver.
        path: String,
        /// File-system type as in proc_pid_mountinfo(5).
        fs_type: String,
    },
    /// A file that the process had closed, and that no longer existed at the next opening.
    Removed {
        /// Path, as above.
        path: String,
    },
    /// A call. Times are of the host's CLOCK_MONOTONIC, in ns.
    Call(Box<Call>),
}

/// Why the file of a process cannot be read. Damage after the head is no error: the file ends there as [`crate::RecordingStatus::Truncated`].
#[derive(Debug, thiserror::Error)]
pub enum RawError {
    /// Opening or reading failed.
    #[error("{path}: cannot read: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error.
        source: std::io::Error,
    },
    /// Not a file of the profiler, or the first block is damaged.
    #[error(
        "{path}: {why}; without its head nothing of this process can be read: record again, or merge without this file"
    )]
    Head {
        /// The file.
        path: PathBuf,
        /// The cause.
        why: &'static str,
    },
    /// Written by a newer profiler.
    #[error("{path}: format {found}, but this program reads up to {VERSION}: merge with the version that recorded it")]
    Version {
        /// The file.
        path: PathBuf,
        /// Version in the file.
        found: u32,
    },
}

#[cfg(test)]
pub(crate) mod recorder;
#[cfg(test)]
mod tests;
