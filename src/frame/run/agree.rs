//! Agreement of ranks: what one rank knows becomes known to all. All functions are collective, and fail only on MPI errors.

use beff_ffi::{Comm, Encoding, MpiError};
use serde::de::DeserializeOwned;
use serde::Serialize;

/// Broadcasts the number of rank 0. Collective.
///
/// # Errors
/// MPI errors.
pub fn broadcast(comm: &Comm, mine: f64) -> Result<f64, MpiError> {
    let mut value = [mine];
    comm.bcast_f64(&mut value, 0)?;
    Ok(value[0])
}

/// Message of the lowest rank that has one, with that rank, on every rank. Collective.
///
/// # Errors
/// MPI errors.
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

/// Value of each rank, or the message of the lowest rank that failed, with that rank, on every rank. Collective.
///
/// # Errors
/// MPI errors.
pub fn all_or_first_error<T>(comm: &Comm, mine: Result<T, String>) -> Result<Result<T, (u64, String)>, MpiError> {
    let (value, message) = match mine {
        Ok(value) => (Some(value), None),
        Err(message) => (None, Some(message)),
    };
    let failed = first_message(comm, message)?;
    Ok(value.filter(|_| failed.is_none()).ok_or_else(|| failed.unwrap_or_default()))
}

/// True on every rank if `mine` is true on any rank. Collective.
///
/// # Errors
/// MPI errors.
pub fn any_rank(comm: &Comm, mine: bool) -> Result<bool, MpiError> {
    Ok(count_ranks(comm, mine)? > 0)
}

/// Number of ranks on which `mine` is true, on every rank. Collective.
///
/// # Errors
/// MPI errors.
pub fn count_ranks(comm: &Comm, mine: bool) -> Result<u64, MpiError> {
    sum(comm, u64::from(mine))
}

/// Sum over the ranks, on every rank. Collective.
///
/// # Errors
/// MPI errors.
pub fn sum(comm: &Comm, mine: u64) -> Result<u64, MpiError> {
    let mut sum = [mine];
    comm.sum_u64(&mut sum)?;
    Ok(sum[0])
}

/// Maximum over the ranks, on every rank. Collective.
///
/// # Errors
/// MPI errors.
pub fn max_seconds(comm: &Comm, seconds: f64) -> Result<f64, MpiError> {
    let mut most = [seconds];
    comm.max_f64(&mut most)?;
    Ok(most[0])
}

/// Combines the values of all ranks in rank order, on rank 0; None on the others. `combine` is associative, its first argument of lower
/// ranks. No rank holds more than two values at once, and none receives more than log2(ranks) of them. Collective.
///
/// # Errors
/// MPI errors.
pub fn reduce<T: Serialize + DeserializeOwned + Default>(
    comm: &Comm,
    mine: T,
    combine: impl FnMut(T, T) -> T,
) -> Result<Option<T>, MpiError> {
    // Values serialized by the same program can always be read.
    let encoding = Encoding {
        encode: |value| serde_json::to_vec(value).unwrap_or_default(),
        decode: |bytes| serde_json::from_slice(bytes).unwrap_or_default(),
    };
    comm.reduce_in_tree(mine, &encoding, combine)
}

/// Values of all ranks in rank order on rank 0, which needs memory for all of them; empty on the others. For ranks of a node, for values
/// that few ranks have, and where the result has an entry for each rank; else [`reduce`]. Collective.
///
/// # Errors
/// MPI errors.
pub fn collect<T: Serialize + DeserializeOwned>(comm: &Comm, mine: Vec<T>) -> Result<Vec<T>, MpiError> {
    let append = |mut lower: Vec<T>, higher| {
        lower.extend(higher);
        lower
    };
    Ok(reduce(comm, mine, append)?.unwrap_or_default())
}
