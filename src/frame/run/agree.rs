//! One rank's trouble becomes every rank's knowledge.

use beff_ffi::{Comm, MpiError};

/// If any rank has a message: the lowest such rank's, on every rank, with that rank. Collective.
///
/// # Errors
/// MPI between the ranks.
pub fn first_message(comm: &Comm, mine: Option<String>) -> Result<Option<(u64, String)>, MpiError> {
    let mut lowest = [if mine.is_some() { comm.rank() } else { u64::MAX }];
    comm.min_u64(&mut lowest)?;
    if lowest[0] == u64::MAX {
        return Ok(None);
    }
    let bytes = if comm.rank() == lowest[0] { mine.unwrap_or_default().into_bytes() } else { Vec::new() };
    let bytes = comm.bcast_bytes(bytes, lowest[0])?;
    Ok(Some((lowest[0], String::from_utf8_lossy(&bytes).into_owned())))
}

/// What every rank has made, or the message of the lowest rank that could not make it, on every rank, with that rank.
/// Collective.
///
/// # Errors
/// MPI between the ranks.
pub fn all<T>(comm: &Comm, mine: Result<T, String>) -> Result<Result<T, (u64, String)>, MpiError> {
    let (made, message) = match mine {
        Ok(made) => (Some(made), None),
        Err(message) => (None, Some(message)),
    };
    let failed = first_message(comm, message)?;
    Ok(made.filter(|_| failed.is_none()).ok_or_else(|| failed.unwrap_or_default()))
}

/// True if any rank says yes, on every rank. Collective.
///
/// # Errors
/// MPI between the ranks.
pub fn any(comm: &Comm, mine: bool) -> Result<bool, MpiError> {
    Ok(count(comm, mine)? > 0)
}

/// How many ranks say yes, on every rank. Collective.
///
/// # Errors
/// MPI between the ranks.
pub fn count(comm: &Comm, mine: bool) -> Result<u64, MpiError> {
    let mut sum = [u64::from(mine)];
    comm.sum_u64(&mut sum)?;
    Ok(sum[0])
}
