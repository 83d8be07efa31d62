//! Order of the calls at the shared file pointer of a file.

use super::history::EndedAccess;
use crate::call::Call;
use crate::function::{AccessForm, Function, PointerKind, Role};

/// Effect of a call on the shared file pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PointerUse {
    /// Returns it.
    Query,
    /// Moves it, by one rank.
    Independent,
    /// Moves it, by all ranks of the communicator.
    Collective,
}

impl PointerUse {
    /// None if the call does not use the pointer. The first half of a split access and the begin of a nonblocking one move it.
    pub(super) fn of(call: &Call) -> Option<Self> {
        match call.function.role() {
            Role::Data { pointer: PointerKind::Shared, form, collective, .. } if form != AccessForm::End => {
                Some(if collective { Self::Collective } else { Self::Independent })
            }
            // A view resets it.
            _ => match call.function {
                Function::SeekShared | Function::SetView => Some(Self::Collective),
                Function::GetPositionShared => Some(Self::Query),
                _ => None,
            },
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct PointerCall {
    rank: u32,
    begin_ns: u64,
    end_ns: u64,
    pointer_use: PointerUse,
    comm: Option<u32>,
}

/// Ended calls that are not implied by later ones.
#[derive(Debug, Default)]
pub(super) struct SharedPointerCalls(Vec<PointerCall>);

impl SharedPointerCalls {
    /// True if no call has used the pointer.
    pub(super) fn is_unused(&self) -> bool {
        self.0.is_empty()
    }

    /// Reports the calls that must precede a call. The library orders the collective calls of one communicator.
    pub(super) fn visit(&self, pointer_use: PointerUse, comm: Option<u32>, mut visit: impl FnMut(EndedAccess)) {
        for call in &self.0 {
            let is_ordered = match (pointer_use, call.pointer_use) {
                (PointerUse::Query, PointerUse::Query) => false,
                (PointerUse::Collective, PointerUse::Collective) => comm.is_none() || comm != call.comm,
                _ => true,
            };
            if is_ordered {
                visit(EndedAccess { rank: call.rank, writes: true, begin_ns: call.begin_ns });
            }
        }
    }

    /// A call has ended. An independent one that moves the pointer waited for all calls that had ended before, so later calls need not.
    pub(super) fn record(
        &mut self,
        rank: u32,
        [begin_ns, end_ns]: [u64; 2],
        pointer_use: PointerUse,
        comm: Option<u32>,
    ) {
        let is_implied = |call: &PointerCall| {
            pointer_use == PointerUse::Independent && call.end_ns < begin_ns
                || call.rank == rank && call.pointer_use == pointer_use
        };
        self.0.retain(|call| !is_implied(call));
        self.0.push(PointerCall { rank, begin_ns, end_ns, pointer_use, comm });
    }
}
