//! Recorded programs replayed by posix, uring and null: the performance of the application without MPI-IO.
//!
//! Before the timed section every data access is flattened to a list of extents in file and memory (`plan`, `extents`, with the views and
//! file pointers of `positions`). It is executed by system calls (`storage`, with the files of `files` and a `transfer_engine`: `posix`,
//! `uring`) or not at all (`null`). All share the timed loop (`run`). Collective accesses become independent ones at the same offsets.
//!
//! # Synchronization
//!
//! Where a call changes the file as a whole, the application relied on MPI for an order between ranks. In these calls the ranks of the
//! file synchronize ([`communicators`]) inside the timed section, as in MPI:
//!
//! - open: all ranks arrive, one creates the file, then the others open it; if one fails, all fail;
//! - set_size and preallocate: all ranks arrive, one executes the call, all continue;
//! - sync: all ranks sync their writes, then all continue;
//! - close: all ranks close the file, with MPI_MODE_DELETE_ON_CLOSE one deletes it, all continue.
//!
//! Collective data accesses, set_view and seeks do not synchronize: the program contains the order that data accesses need. `null` opens no
//! file and never synchronizes.
//!
//! # Unsupported
//!
//! Shared file pointers, data representations, atomic mode, error handlers: see [`unsupported`](mod@unable). Hints are not used.

mod action;
mod communicators;
mod extents;
mod files;
mod null;
mod plan;
mod positions;
mod posix;
mod run;
mod step_error;
mod storage;
#[cfg(test)]
mod tests;
mod transfer_engine;
mod unsupported;
mod uring;

use communicators::FileCommunicators;
use files::FileTable;
use run::OffsetProgram;
use storage::Storage;
use transfer_engine::TransferEngine;

use crate::error::FailureCause;
use crate::program::{ProgramMemory, Replay};
use crate::{BackendError, DriverOptions, ProgramRequest, ReplayProgram, Result, TransferBuffer};

pub(crate) const POSIX: Replay = Replay { begin: begin_posix, unsupported_reason: unsupported::unsupported_reason };

pub(crate) const URING: Replay = Replay { begin: begin_uring, unsupported_reason: unsupported::unsupported_reason };

fn begin_uring(request: ProgramRequest<'_>) -> Result<Box<dyn ReplayProgram>> {
    begin(request, uring::Uring::new)
}

fn begin_posix(request: ProgramRequest<'_>) -> Result<Box<dyn ReplayProgram>> {
    begin(request, |options| Ok(posix::Posix::new(options)))
}

/// Without transfers: the overhead of the replay itself.
pub(crate) const NULL: Replay = Replay { begin: begin_null, unsupported_reason: unsupported::unsupported_reason };

fn begin_null(request: ProgramRequest<'_>) -> Result<Box<dyn ReplayProgram>> {
    let ProgramRequest { tables, source, landing_bytes, .. } = request;
    Ok(Box::new(OffsetProgram::new(null::Null, allocate_areas(source, landing_bytes)?, &tables)?))
}

fn begin<M: TransferEngine + 'static>(
    request: ProgramRequest<'_>,
    mover: impl FnOnce(&DriverOptions) -> Result<M>,
) -> Result<Box<dyn ReplayProgram>> {
    let ProgramRequest { world, tables, options, source, landing_bytes } = request;
    // Collective operations come first: no rank may return before them.
    let meetings = FileCommunicators::new(world, &tables.comms)?;
    let memory = allocate_areas(source, landing_bytes)?;
    let files = FileTable::new(tables.paths.clone(), meetings, (options.direct, options.direct_trial.clone()));
    Ok(Box::new(OffsetProgram::new(Storage { engine: mover(&options)?, files }, memory, &tables)?))
}

fn allocate_areas(source: TransferBuffer, landing_bytes: u64) -> Result<ProgramMemory> {
    ProgramMemory::new(source, landing_bytes).map_err(|error| {
        let text = format!("{error}; the landing area has {landing_bytes} bytes");
        BackendError::new("mmap (landing area)", "", FailureCause::Io, text)
    })
}
