//! Prepared steps: every number resolved, no allocation left.

use std::ops::Range;

use beff_ffi::replay::{DataCall, TypeHandle};
use beff_trace::{Amode, ErrorClass, Function, Whence};

use crate::program::memory::MemoryArea;

#[derive(Clone, Copy, Debug)]
pub(super) enum PreparedCall {
    /// Initialization, finalization or a mark: not made.
    Skip,
    /// Not made: the file is not open.
    Fail(ErrorClass),
    /// A blocking data access.
    Blocking { call: DataCall, file: u32 },
    /// A nonblocking data access with a request in a slot.
    Nonblocking { call: DataCall, file: u32, slot: u32, lands: AccessRange },
    /// First half of a split collective call.
    Begin { call: DataCall, file: u32, lands: AccessRange },
    /// Second half.
    End { call: DataCall, file: u32 },
    /// Second half of a read that the library would never complete: not made.
    SkipSplitEnd { file: u32 },
    /// A call on one request.
    OnRequest { function: Function, slot: u32, expects: bool, endless: bool, room: u32 },
    /// A call on several requests.
    OnList(u32),
    /// Any other call on files.
    Manage { file: u32, call: ManagementCall },
}

impl PreparedCall {
    /// Slot of the file of the call.
    pub(super) fn file(&self) -> Option<u32> {
        match *self {
            Self::Blocking { file, .. }
            | Self::Nonblocking { file, .. }
            | Self::Begin { file, .. }
            | Self::End { file, .. }
            | Self::SkipSplitEnd { file }
            | Self::Manage { file, .. } => Some(file),
            Self::Skip | Self::Fail(_) | Self::OnRequest { .. } | Self::OnList(_) => None,
        }
    }
}

/// Part of an area; begin and end are equal if empty.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AccessRange {
    pub(super) area: MemoryArea,
    pub(super) begin: u64,
    pub(super) end: u64,
}

impl AccessRange {
    pub(super) fn range(self) -> Option<Range<u64>> {
        (self.begin < self.end).then_some(self.begin..self.end)
    }
}

/// Calls on files that move no data.
#[derive(Clone, Copy, Debug)]
pub(super) enum ManagementCall {
    Open {
        comm: Option<u32>,
        name: u32,
        amode: Amode,
        info: Option<u32>,
    },
    Close,
    Delete {
        name: u32,
        info: Option<u32>,
    },
    SetSize(i64),
    Preallocate(i64),
    GetSize,
    GetGroup,
    GetAmode,
    SetInfo(Option<u32>),
    GetInfo,
    /// The representation by its index.
    SetView {
        displacement: i64,
        etype: TypeHandle,
        filetype: TypeHandle,
        name: u32,
        info: Option<u32>,
    },
    GetView,
    Seek(i64, Whence),
    SeekShared(i64, Whence),
    GetPosition,
    GetPositionShared,
    GetByteOffset(i64),
    GetTypeExtent {
        datatype: TypeHandle,
        large: bool,
    },
    SetAtomicity(bool),
    GetAtomicity,
    Sync,
    CreateErrhandler,
    SetErrhandler,
    GetErrhandler,
    CallErrhandler,
}

impl ManagementCall {
    pub(super) fn needs_file(self) -> bool {
        !matches!(
            self,
            Self::Open { .. }
                | Self::Delete { .. }
                | Self::CreateErrhandler
                | Self::SetErrhandler
                | Self::GetErrhandler
                | Self::CallErrhandler
        )
    }
}

/// A call on several requests, as ranges of a list of slots.
#[derive(Clone, Debug)]
pub(super) struct RequestList {
    pub(super) function: Function,
    pub(super) slots: Range<usize>,
    /// Slots of the recorded completions.
    pub(super) recorded_slots: Range<usize>,
    /// It found a completion when recorded.
    pub(super) found_when_recorded: bool,
    /// One of its requests may never be completed here.
    pub(super) never_completes: bool,
    pub(super) completion_buffer: u32,
}
