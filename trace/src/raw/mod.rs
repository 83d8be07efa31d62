//! The file of one process: written by the profiler while the program runs, read once to be merged.
//!
//! It is a row of blocks of [`BLOCK_BYTES`]. The first is the head, written when MPI begins and again when it ends. Every other one holds
//! records of one *lane*: the buffer of one thread, or of several that lived one behind the other. The block that a lane fills at the
//! moment is part of the file too (*live*, mapped into memory), so that nothing is lost with the process; when it is full, a copy with
//! a checksum is appended. Times are ticks of a clock that [`Clock`] turns into ns. Integers are little endian.
//!
//! A record is compact ([`record`]: 16 or 32 bytes, almost every call; 8 more where the memory is another than before) or an event cut into parts ([`event`]: dictionaries, rare calls).

pub mod block;
pub mod clock;
mod code;
pub mod event;
pub mod head;
mod lane;
mod reader;
pub mod record;

use std::path::PathBuf;

use crate::call::Call;
use crate::types::Type;

pub use clock::Clock;
pub use head::ProcessHead;
pub use reader::{Events, ProcessFile};

/// Version of the format. 2: [`Event::Storage`]. 3: [`Call::unchanged_ns`]. 4: [`Event::Gone`].
pub const VERSION: u32 = 4;

/// Size of a block in bytes.
pub const BLOCK_BYTES: usize = 1 << 16;

/// Most lanes of a process.
pub const LANES: usize = 256;

/// Most bytes of an event. What would be larger is not recorded.
pub const EVENT_BYTES: usize = 1 << 28;

/// What a process did, in the order of begin. Numbers count within the process. A dictionary event comes before the first call that
/// uses it.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A datatype. The types it is made of came before.
    Type {
        /// Its number.
        id: u32,
        /// What it is.
        datatype: Type,
    },
    /// A communicator.
    Comm {
        /// Its number.
        id: u32,
        /// World ranks in its order. An empty list: they could not be found out.
        ranks: Vec<u32>,
    },
    /// Hints.
    Info {
        /// Their number.
        id: u32,
        /// Keys and values.
        pairs: Vec<(String, String)>,
    },
    /// Where a file is kept.
    Storage {
        /// Its number.
        id: u32,
        /// The file, by the name it was opened with, without the driver of ROMIO.
        path: String,
        /// Kind of file system that the process saw it on, as in proc_pid_mountinfo(5).
        fs_type: String,
    },
    /// A file that the process had closed, and that was gone before the next opening.
    Gone {
        /// The file, by the name it was opened with, without the driver of ROMIO.
        path: String,
    },
    /// A call. Times are those of CLOCK_MONOTONIC of the host, in ns.
    Call(Box<Call>),
}

/// Why the file of a process cannot be read. Damage behind the head is no error: the file is [`crate::End::Cut`] there.
#[derive(Debug, thiserror::Error)]
pub enum RawError {
    /// Opening or reading failed.
    #[error("{path}: cannot read: {source}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Not a file of the profiler, or its first block is damaged.
    #[error(
        "{path}: {why}; without its head nothing of this process can be read: record again, or merge without this file"
    )]
    Head {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        why: &'static str,
    },
    /// Written by a newer profiler.
    #[error("{path}: format {found}, but this program reads up to {VERSION}: merge with the version that recorded it")]
    Version {
        /// Which file.
        path: PathBuf,
        /// The version it says.
        found: u32,
    },
}

#[cfg(test)]
pub(crate) mod recorder;
#[cfg(test)]
mod tests;
