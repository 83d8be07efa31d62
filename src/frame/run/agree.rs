//! What one rank knows becomes every rank's knowledge. All of it is collective, and fails only where MPI fails between the
//! ranks.

use beff_ffi::{Comm, MpiError};
use serde::de::DeserializeOwned;
use serde::Serialize;

/// The number of rank 0. Collective.
///
/// # Errors
/// MPI between the ranks.
pub fn of_root(comm: &Comm, mine: f64) -> Result<f64, MpiError> {
    let mut value = [mine];
    comm.bcast_f64(&mut value, 0)?;
    Ok(value[0])
}

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
    total(comm, u64::from(mine))
}

/// The sum over the ranks, on every rank. Collective.
///
/// # Errors
/// MPI between the ranks.
pub fn total(comm: &Comm, mine: u64) -> Result<u64, MpiError> {
    let mut sum = [mine];
    comm.sum_u64(&mut sum)?;
    Ok(sum[0])
}

/// The time of the slowest rank, on every rank. Collective.
///
/// # Errors
/// MPI between the ranks.
pub fn slowest(comm: &Comm, seconds: f64) -> Result<f64, MpiError> {
    let mut most = [seconds];
    comm.max_f64(&mut most)?;
    Ok(most[0])
}

/// What every rank has, on rank 0 in the order of the ranks; nothing on the others. Collective.
///
/// Plain records that this program has written a moment ago are always read again; were one not, it would be empty.
///
/// # Errors
/// MPI between the ranks.
pub fn gather<T: Serialize + DeserializeOwned + Default>(comm: &Comm, mine: &T) -> Result<Vec<T>, MpiError> {
    let all = comm.gather_bytes(&serde_json::to_vec(mine).unwrap_or_default())?;
    Ok(all.iter().map(|bytes| serde_json::from_slice(bytes).unwrap_or_default()).collect())
}
