//! What is to be done for a step, worked out before the clock.

use std::ops::Range;

use beff_trace::Completion;

use super::fault::Fault;
use super::files::Opening;
use super::mover::Job;

/// What is to be done for a step.
#[derive(Clone, Debug)]
pub(super) enum Work {
    /// Nothing of this is visible in the file.
    Nothing,
    /// Known without the file: what is answered, and bytes of an access that has none.
    Answer(Answer),
    /// Fails without a system call.
    Refused(Fault),
    /// A data access that is done when the step is.
    Move(Job),
    /// One that is left under way.
    Begin(Job),
    /// The second half of a split access, by its slot.
    End { slot: u32 },
    /// Requests that are completed: a range of the list of [`Pending`].
    Complete { requests: Range<usize>, is_single: bool },
    /// MPI_File_open.
    Open(Opening),
    /// MPI_File_close.
    Close { file: u32 },
    /// MPI_File_delete.
    Delete { path: u32 },
    /// MPI_File_set_size.
    SetSize { file: u32, bytes: i64 },
    /// MPI_File_preallocate.
    Preallocate { file: u32, bytes: i64 },
    /// MPI_File_get_size.
    GetSize { file: u32 },
    /// MPI_File_sync.
    Sync { file: u32 },
}

impl Work {
    /// Requests that it completes at most.
    pub(super) fn completions(&self) -> usize {
        match self {
            Self::Complete { requests, .. } => requests.len(),
            _ => 0,
        }
    }
}

/// What a step answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) bytes: Option<u64>,
    pub(super) number: Option<i64>,
}

/// A request that a step completes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) slot: u32,
    /// As recorded.
    pub(super) recorded: Completion,
}
