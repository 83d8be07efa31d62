//! What becomes of a batch: the same kind of answer on all ranks.

use std::path::Path;

use beff_ffi::{Comm, MpiError};

use crate::error::Cause;
use crate::{BackendError, Result};

/// Causes as they travel.
const CAUSES: [Cause; 5] = [Cause::NoSpace, Cause::Short, Cause::Path, Cause::Io, Cause::Unsupported];

/// This rank's error; without one, that of the lowest rank that has one. Collective.
///
/// # Errors
/// As said.
pub(super) fn agree(comm: &Comm, operation: &'static str, path: &Path, mine: Option<BackendError>) -> Result<()> {
    let theirs = first_of_all(comm, mine.as_ref());
    match (mine, theirs) {
        (Some(error), _) => Err(error),
        (None, Ok(None)) => Ok(()),
        (None, Ok(Some((rank, cause, text)))) => {
            Err(BackendError::new(operation, path, cause, format!("aggregator on rank {rank}: {text}")))
        }
        (None, Err(error)) => {
            Err(BackendError::new(operation, path, Cause::Io, format!("agreement on the outcome failed: {error}")))
        }
    }
}

fn first_of_all(
    comm: &Comm,
    mine: Option<&BackendError>,
) -> std::result::Result<Option<(u64, Cause, String)>, MpiError> {
    let told = mine.map(|error| {
        let cause = CAUSES.iter().position(|c| *c == error.cause).unwrap_or(0) as u8;
        std::iter::once(cause).chain(error.to_string().into_bytes()).collect()
    });
    let Some((rank, bytes)) = of_lowest(comm, told)? else { return Ok(None) };
    let (cause, text) = bytes.split_first().map_or((&3, &[][..]), |parts| parts);
    let cause = CAUSES.get(usize::from(*cause)).copied().unwrap_or(Cause::Io);
    Ok(Some((rank, cause, String::from_utf8_lossy(text).into_owned())))
}

/// What the lowest rank that has something to tell tells, and which one that is, on every rank. Collective; also a barrier.
pub(super) fn of_lowest(comm: &Comm, told: Option<Vec<u8>>) -> std::result::Result<Option<(u64, Vec<u8>)>, MpiError> {
    let mut lowest = [if told.is_some() { comm.rank() } else { u64::MAX }];
    comm.min_u64(&mut lowest)?;
    if lowest[0] == u64::MAX {
        return Ok(None);
    }
    let bytes = told.filter(|_| comm.rank() == lowest[0]).unwrap_or_default();
    Ok(Some((lowest[0], comm.bcast_bytes(bytes, lowest[0])?)))
}
