//! Recorded programs by posix, uring and null: what the application would get without MPI-IO.
//!
//! Every data access becomes a flat list of runs in file and memory before the clock (`plan`, `pieces`, with the views and pointers
//! of `positions`), and is moved by system calls (`storage`, with the files of `files` and a `mover`: `posix`, `uring`), or not at all
//! (`null`). The loop with the clock (`run`) is one for all. Collective accesses are independent ones at the same offsets.
//!
//! # What waits for whom
//!
//! The application relied on MPI for an order between ranks where a call changes the file as a whole. There the ranks of the file
//! meet ([`meeting`]), inside the clock of that call, as in MPI:
//!
//! - open: one rank makes the file, then the others open it; none has it open unless all have;
//! - set_size and preallocate: all come, one rank does it, all go on;
//! - close with MPI_MODE_DELETE_ON_CLOSE: all close it, one rank deletes it, all go on.
//!
//! Collective data accesses, set_view, seeks, sync and other closes wait for nobody: what order data accesses need comes with the
//! program.
//!
//! # What is not there
//!
//! Shared file pointers, data representations, atomic mode, error handlers: see [`unable`](mod@unable). Hints are not used.

mod fault;
mod files;
mod meeting;
mod mover;
mod null;
mod pieces;
mod plan;
mod positions;
mod posix;
mod run;
mod storage;
#[cfg(test)]
mod tests;
mod unable;
mod uring;
mod work;

use files::Files;
use meeting::Meetings;
use mover::Mover;
use run::ByOffsets;
use storage::Storage;

use crate::error::Cause;
use crate::program::{Memory, Replay};
use crate::{BackendError, DriverOptions, Program, ProgramRequest, Result, Ring};

/// By pread and pwrite.
pub(crate) const POSIX: Replay = Replay { begin: begin_posix, unable: unable::unable };

/// Through io_uring.
pub(crate) const URING: Replay = Replay { begin: begin_uring, unable: unable::unable };

fn begin_uring(request: ProgramRequest<'_>) -> Result<Box<dyn Program>> {
    begin(request, uring::Uring::new)
}

fn begin_posix(request: ProgramRequest<'_>) -> Result<Box<dyn Program>> {
    begin(request, |options| Ok(posix::Posix::new(options)))
}

/// By nothing: what the replay itself costs.
pub(crate) const NULL: Replay = Replay { begin: begin_null, unable: unable::unable };

fn begin_null(request: ProgramRequest<'_>) -> Result<Box<dyn Program>> {
    let ProgramRequest { tables, source, landing_bytes, .. } = request;
    Ok(Box::new(ByOffsets::new(null::Null, areas(source, landing_bytes)?, &tables)?))
}

fn begin<M: Mover + 'static>(
    request: ProgramRequest<'_>,
    mover: impl FnOnce(&DriverOptions) -> Result<M>,
) -> Result<Box<dyn Program>> {
    let ProgramRequest { world, tables, options, source, landing_bytes } = request;
    // What is collective comes first: no rank may leave before.
    let meetings = Meetings::new(world, &tables.comms)?;
    let memory = areas(source, landing_bytes)?;
    let files = Files::new(tables.paths.clone(), meetings, options.direct);
    Ok(Box::new(ByOffsets::new(Storage { mover: mover(&options)?, files }, memory, &tables)?))
}

fn areas(source: Ring, landing_bytes: u64) -> Result<Memory> {
    Memory::new(source, landing_bytes).map_err(|error| {
        let text = format!("{error}; the landing area has {landing_bytes} bytes");
        BackendError::new("mmap (landing area)", "", Cause::Io, text)
    })
}
