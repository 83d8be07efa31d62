//! Steps made ready: everything looked up, nothing to be allocated.

use std::ops::Range;

use beff_ffi::replay::{DataCall, TypeHandle};
use beff_trace::{Amode, ErrorClass, Function, Whence};

use crate::program::memory::Area;

/// A step.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ready {
    /// Begins or marks the program: not made.
    Nothing,
    /// Not made: there is no file.
    Refused(ErrorClass),
    /// A data access that ends when it returns.
    Blocking { call: DataCall, file: u32 },
    /// One that leaves a request in a slot.
    Nonblocking { call: DataCall, file: u32, slot: u32, lands: Lands },
    /// First half of a split collective call.
    Begin { call: DataCall, file: u32, lands: Lands },
    /// Second half.
    End { call: DataCall, file: u32 },
    /// Second half of a read that the library would never end: not made.
    Endless { file: u32 },
    /// A call on one request.
    One { function: Function, slot: u32, expects: bool, endless: bool, room: u32 },
    /// A call on several requests.
    List(u32),
    /// Any other call with files.
    Manage { file: u32, call: Manage },
}

impl Ready {
    /// Where the file of the call is.
    pub(super) fn file(&self) -> Option<u32> {
        match *self {
            Self::Blocking { file, .. }
            | Self::Nonblocking { file, .. }
            | Self::Begin { file, .. }
            | Self::End { file, .. }
            | Self::Endless { file }
            | Self::Manage { file, .. } => Some(file),
            Self::Nothing | Self::Refused(_) | Self::One { .. } | Self::List(_) => None,
        }
    }
}

/// Part of an area that an access will use; begin and end are equal where there is none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lands {
    pub(super) area: Area,
    pub(super) begin: u64,
    pub(super) end: u64,
}

impl Lands {
    pub(super) fn range(self) -> Option<Range<u64>> {
        (self.begin < self.end).then_some(self.begin..self.end)
    }
}

/// Calls with files that move no data.
#[derive(Clone, Copy, Debug)]
pub(super) enum Manage {
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
    /// The representation by its place in a list.
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

impl Manage {
    /// False for calls that need no open file.
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

/// A call on several requests. Ranges of a list of slots.
#[derive(Clone, Debug)]
pub(super) struct List {
    pub(super) function: Function,
    pub(super) slots: Range<usize>,
    /// Slots of the recorded completions.
    pub(super) recorded: Range<usize>,
    /// It found something when it was recorded.
    pub(super) expects: bool,
    /// One of its requests may never be completed here.
    pub(super) endless: bool,
    pub(super) room: u32,
}
