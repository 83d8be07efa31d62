//! From a rank's error to the record that ends a run.
//!
//! A driver returns the first error of a batch; collective drivers make all calls of the batch all the same, so that no rank stays
//! behind. The error is a flag in the next common decision, or in the sums after the clock. Here it becomes one record, equal on all
//! ranks: the message of the lowest rank that has one, and how many have. A rank that panics calls MPI_Abort instead: the others
//! would wait for ever.

use std::borrow::Borrow;

use beff_backends::error::Cause;
use beff_backends::BackendError;
use beff_ffi::{Comm, MpiError};

use crate::frame::records::ErrorRecord;
use crate::frame::run::agree::{count, first_message};

/// What the user should do about an error of this cause.
pub(crate) fn next_step_of(cause: Cause) -> &'static str {
    match cause {
        Cause::NoSpace => "free space, give a smaller --space, or choose another --path",
        Cause::Short => "the file system moved fewer bytes than asked without an error: check its log and its free space",
        Cause::Path => "check that --path exists, is writable and is the same directory on all hosts",
        Cause::Io => "check the log of the kernel and of the file system; repeat with --backend posix to see if MPI-IO is to blame",
        Cause::Unsupported => "choose another --backend or --direct off; `beff-raw info` lists what works here",
    }
}

/// What every rank of `comm` has made, or the record of the first error, equal on all ranks. Collective.
///
/// # Errors
/// MPI between the ranks.
pub fn all<T>(
    comm: &Comm,
    mine: Result<T, impl Borrow<BackendError>>,
    during: &str,
) -> Result<Result<T, ErrorRecord>, MpiError> {
    let ranks_affected = count(comm, mine.is_err())?;
    // What was made goes when all ranks know: the end of a file may be collective.
    let (_made, packed) = match mine {
        Ok(made) if ranks_affected == 0 => return Ok(Ok(made)),
        Ok(made) => (Some(made), None),
        Err(e) => (None, Some(pack(e.borrow()))),
    };
    let (rank, packed) = first_message(comm, packed)?.unwrap_or_default();
    let mut parts = packed.split('\u{1f}').map(str::to_owned);
    Ok(Err(ErrorRecord {
        during: during.to_owned(),
        rank,
        ranks_affected,
        message: parts.next().unwrap_or_default(),
        next_step: parts.next().unwrap_or_default(),
        no_space: parts.next().is_some_and(|p| p == "full"),
    }))
}

/// Message, next step and cause travel together, so that they are of the same rank.
fn pack(e: &BackendError) -> String {
    format!("{e}\u{1f}{}\u{1f}{}", next_step_of(e.cause), if e.cause == Cause::NoSpace { "full" } else { "" })
}

/// If any rank of `comm` has an error: its record, equal on all ranks. Collective.
///
/// # Errors
/// MPI between the ranks.
pub fn agree(comm: &Comm, mine: Option<&BackendError>, during: &str) -> Result<Option<ErrorRecord>, MpiError> {
    Ok(all(comm, mine.map_or(Ok(()), Err), during)?.err())
}
