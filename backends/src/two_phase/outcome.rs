//! The outcome of a batch: an error on all ranks or on none.

use std::path::Path;

use beff_ffi::{Comm, MpiError};

use crate::error::FailureCause;
use crate::{BackendError, Result};

/// Causes by number in messages.
const CAUSES: [FailureCause; 6] = [
    FailureCause::NoSpace,
    FailureCause::Short,
    FailureCause::Path,
    FailureCause::Io,
    FailureCause::Unsupported,
    FailureCause::Refused,
];

/// This rank's error; otherwise that of the lowest rank with an error. Collective.
pub(super) fn agree(comm: &Comm, operation: &'static str, path: &Path, mine: Option<BackendError>) -> Result<()> {
    let theirs = first_error(comm, mine.as_ref());
    match (mine, theirs) {
        (Some(error), _) => Err(error),
        (None, Ok(None)) => Ok(()),
        (None, Ok(Some((rank, cause, text)))) => {
            Err(BackendError::new(operation, path, cause, format!("aggregator on rank {rank}: {text}")))
        }
        (None, Err(error)) => Err(BackendError::new(
            operation,
            path,
            FailureCause::Io,
            format!("agreement on the outcome failed: {error}"),
        )),
    }
}

fn first_error(
    comm: &Comm,
    mine: Option<&BackendError>,
) -> std::result::Result<Option<(u64, FailureCause, String)>, MpiError> {
    let message = mine.map(|error| {
        let cause = CAUSES.iter().position(|c| *c == error.cause).unwrap_or(0) as u8;
        std::iter::once(cause).chain(error.to_string().into_bytes()).collect()
    });
    let Some((rank, bytes)) = broadcast_lowest(comm, message)? else { return Ok(None) };
    let (cause, text) = bytes.split_first().map_or((&3, &[][..]), |parts| parts);
    let cause = CAUSES.get(usize::from(*cause)).copied().unwrap_or(FailureCause::Io);
    Ok(Some((rank, cause, String::from_utf8_lossy(text).into_owned())))
}

/// Broadcasts the bytes of the lowest rank that has some, with its number. Collective; also a barrier.
pub(super) fn broadcast_lowest(
    comm: &Comm,
    message: Option<Vec<u8>>,
) -> std::result::Result<Option<(u64, Vec<u8>)>, MpiError> {
    let mut lowest = [if message.is_some() { comm.rank() } else { u64::MAX }];
    comm.min_u64(&mut lowest)?;
    if lowest[0] == u64::MAX {
        return Ok(None);
    }
    let bytes = message.filter(|_| comm.rank() == lowest[0]).unwrap_or_default();
    Ok(Some((lowest[0], comm.bcast_bytes(bytes, lowest[0])?)))
}
