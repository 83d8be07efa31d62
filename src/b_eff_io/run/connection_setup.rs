//! A collective write and read before the first pattern: the first collective calls of a library establish connections between ranks and to
//! the servers of the file system, which takes seconds on thousands of ranks and would be part of whichever pattern is first.

use std::path::Path;

use beff_backends::{AccessKind, AccessPattern, Batch, Batches, Direction, FilePath, Latency, OpenMode, OpenRequest};
use beff_ffi::{Comm, MpiError};

use crate::b_eff_io::pattern_type::PatternType;
use crate::b_eff_io::plan::hints;
use crate::b_eff_io::run::state::RunState;
use crate::frame::records::AccessMethod;
use crate::frame::run::agree::max_seconds;
use crate::frame::run::clock::Instant;
use crate::frame::run::path_check;

/// Chunks of each rank in the one call, interleaved with those of the others, so that each rank exchanges data with many aggregators.
const CHUNKS: u64 = 64;
const CHUNK_BYTES: u64 = 64;

/// Writes and reads a file of their own with every contestant with collective calls. Time of the slowest rank; None if there is nothing to do.
/// Collective over `comm`, the largest partition.
///
/// # Errors
/// MPI between the ranks; errors of the storage stop the run through its records.
pub fn set_up_connections(run: &mut RunState<'_>, comm: &Comm) -> Result<Option<f64>, MpiError> {
    if !run.config.connection_setup {
        return Ok(None);
    }
    let begin = Instant::now();
    let mut is_done = false;
    for index in 0..run.backends.len() {
        let backend = &run.backends[index];
        if backend.row.is_collective_native && backend.moves_data && run.stop.is_none() {
            is_done = true;
            set_up_one(run, comm, index)?;
        }
    }
    let seconds = max_seconds(comm, begin.elapsed().as_secs_f64())?;
    Ok(is_done.then_some(seconds))
}

fn set_up_one(run: &mut RunState<'_>, comm: &Comm, index: usize) -> Result<(), MpiError> {
    let path = run.run_dir.file(&Path::new(&run.backends[index].name).join("connections.dat"));
    for access in [AccessMethod::Write, AccessMethod::Read] {
        if run.stop.is_none() {
            access_once(run, comm, index, (access, &path))?;
        }
    }
    comm.barrier()?;
    if comm.is_root() {
        // The directory is removed at the end in any case.
        let _ = path.remove();
    }
    Ok(())
}

/// One collective call on a file that is opened for it. Errors stop the run.
fn access_once(
    run: &mut RunState<'_>,
    comm: &Comm,
    index: usize,
    (access, path): (AccessMethod, &FilePath),
) -> Result<(), MpiError> {
    let name = run.backends[index].name.clone();
    let during = format!("{name}, connection set-up before the first pattern, {}", access.name());
    let hints = hints::for_open(&run.config.of(&name).hints, comm.size(), access, PatternType::Scatter);
    if run.agree_on_error(comm, path_check::check_name(&name, path).err().as_ref(), &during)? {
        return Ok(());
    }
    let mode = if access == AccessMethod::Read { OpenMode::ReadOnly } else { OpenMode::CreateNew };
    let opened = run.backends[index].driver.open(&OpenRequest { path, mode, comm, hints: &hints });
    let failed = run.agree_on_error(comm, opened.as_ref().err(), &during)?;
    let mut file = match opened {
        Ok(file) if !failed => file,
        opened => {
            // Close is collective.
            std::mem::forget(opened);
            return Ok(());
        }
    };
    let (rank, ranks) = (comm.rank(), comm.size());
    let pattern = AccessPattern {
        kind: AccessKind::Collective,
        base_bytes: rank * CHUNK_BYTES,
        stride_bytes: ranks * CHUNK_BYTES,
        rank,
        ranks,
        rank_distance_bytes: CHUNK_BYTES,
        ..AccessPattern::private(CHUNK_BYTES, CHUNKS, 1)
    };
    let direction = if access == AccessMethod::Read { Direction::Read } else { Direction::Write };
    let prepared = file.prepare(&pattern, direction, &mut run.buffer, &[]);
    if run.agree_on_error(comm, prepared.err().as_ref(), &during)? {
        std::mem::forget(file);
        return Ok(());
    }
    let mut latency = Latency::off();
    let batch = Batches::new(Batch { first_call: 0, calls: 1 }, &mut latency);
    let moved = match direction {
        Direction::Write => file.write(batch, &run.buffer),
        Direction::Read => {
            run.invalidate_buffer();
            file.read(batch, &mut run.buffer)
        }
    };
    let closed = file.close();
    run.agree_on_error(comm, moved.map(drop).and(closed).err().as_ref(), &during)?;
    Ok(())
}
