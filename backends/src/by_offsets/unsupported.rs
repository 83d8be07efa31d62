//! Calls that programs at explicit offsets cannot replay.

use beff_trace::{Call, Function, PointerKind, Role};

/// Why a call cannot be replayed; None if it can.
pub(super) fn unsupported_reason(call: &Call) -> Option<&'static str> {
    use Function as F;
    if let Role::Data { pointer: PointerKind::Shared, .. } = call.function.role() {
        return Some(SHARED_POINTER);
    }
    match call.function {
        F::SeekShared | F::GetPositionShared => Some(SHARED_POINTER),
        F::SetView if call.name.is_some() => {
            Some("data representation: only native is supported; offsets of later accesses with this view are unknown")
        }
        F::RegisterDatarep => Some("data representation: only MPI implements it"),
        F::SetAtomicity if call.flag == Some(true) => {
            Some("atomic mode: system calls of several ranks are not atomic; later accesses are replayed without it")
        }
        F::CreateErrhandler | F::SetErrhandler | F::GetErrhandler | F::CallErrhandler => {
            Some("error handler: only MPI implements it")
        }
        F::RequestGetStatus | F::RequestGetStatusAny | F::RequestGetStatusAll | F::RequestGetStatusSome => {
            Some("status query that keeps the request: there is no status without MPI")
        }
        F::Cancel => Some("cancel: system calls cannot be cancelled; the request completes normally"),
        _ => None,
    }
}

const SHARED_POINTER: &str = "shared file pointer: the offsets of its accesses are not in the profile";
