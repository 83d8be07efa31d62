//! Agreement on the error that ends a run.
//!
//! A driver returns the first error of a batch; collective drivers still make all calls of the batch, so that no rank waits for another.
//! The error is a flag in the next agreement, or in the sums after the clock. Here it becomes one record, equal on all ranks: the message
//! of the lowest failing rank, and the number of failing ranks. A rank that panics calls MPI_Abort instead: the others would wait
//! forever.

use std::borrow::Borrow;

use beff_backends::error::FailureCause;
use beff_backends::BackendError;
use beff_ffi::{Comm, MpiError};

use crate::frame::records::ErrorRecord;
use crate::frame::run::agree::{count_ranks, first_message};

/// Next step for the user after an error of this cause.
pub(crate) fn next_step_of(cause: FailureCause) -> &'static str {
    match cause {
        FailureCause::NoSpace => "free space, give a smaller --space, or choose another --path",
        FailureCause::Short => "the file system moved fewer bytes than requested without an error: check its log and its free space",
        FailureCause::Path => "check that --path exists, is writable and is the same directory on all hosts",
        FailureCause::Refused => "the system refuses this call (a seccomp filter of a container, or an immutable file?): permit it, or choose another --backend",
        FailureCause::Io => "check the log of the kernel and of the file system; repeat with --backend posix to see if MPI-IO is the cause",
        FailureCause::Unsupported => "choose another --backend or --direct off; `beff-raw info` lists what works here",
    }
}

/// Value of each rank of `comm`, or the record of the first error, equal on all ranks. Collective.
///
/// # Errors
/// MPI errors.
pub fn all_or_error<T>(
    comm: &Comm,
    mine: Result<T, impl Borrow<BackendError>>,
    during: &str,
) -> Result<Result<T, ErrorRecord>, MpiError> {
    let ranks_affected = count_ranks(comm, mine.is_err())?;
    // The value is dropped after all ranks know: closing a file may be collective.
    let (_made, packed) = match mine {
        Ok(value) if ranks_affected == 0 => return Ok(Ok(value)),
        Ok(value) => (Some(value), None),
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

/// Packs message, next step and cause together, so that all are of the same rank.
fn pack(e: &BackendError) -> String {
    format!("{e}\u{1f}{}\u{1f}{}", next_step_of(e.cause), if e.cause == FailureCause::NoSpace { "full" } else { "" })
}

/// Record of the first error of any rank of `comm`, equal on all ranks. Collective.
///
/// # Errors
/// MPI errors.
pub fn first_error(comm: &Comm, mine: Option<&BackendError>, during: &str) -> Result<Option<ErrorRecord>, MpiError> {
    Ok(all_or_error(comm, mine.map_or(Ok(()), Err), during)?.err())
}
