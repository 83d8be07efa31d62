//! The action of a step, determined before the timed section.

use std::ops::Range;

use beff_trace::Completion;

use super::files::OpenArguments;
use super::step_error::StepError;
use super::transfer_engine::PlannedAccess;

#[derive(Clone, Debug)]
pub(super) enum StepAction {
    /// No effect on the file.
    None,
    /// Result known without the file; also the bytes of an empty access.
    Return(StepOutput),
    /// Fails without a system call.
    Fail(StepError),
    /// A data access that completes within the step.
    Transfer(PlannedAccess),
    /// A nonblocking data access.
    BeginTransfer(PlannedAccess),
    /// The second half of a split access, by its slot.
    EndTransfer { slot: u32 },
    /// Completion of requests: a range of the list of [`CompletedRequest`].
    Complete { requests: Range<usize>, is_single: bool },
    /// MPI_File_open.
    Open(OpenArguments),
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

impl StepAction {
    pub(super) fn max_completions(&self) -> usize {
        match self {
            Self::Complete { requests, .. } => requests.len(),
            _ => 0,
        }
    }
}

/// Values that a step returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StepOutput {
    pub(super) bytes: Option<u64>,
    pub(super) number: Option<i64>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct CompletedRequest {
    pub(super) slot: u32,
    /// As recorded.
    pub(super) recorded: Completion,
}
