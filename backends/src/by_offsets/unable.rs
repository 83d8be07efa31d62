//! What programs by offsets cannot do.

use beff_trace::{Call, Function, Pointer, Role};

/// Why a call cannot be replayed; None if it can.
pub(super) fn unable(call: &Call) -> Option<&'static str> {
    use Function as F;
    if let Role::Data { pointer: Pointer::Shared, .. } = call.function.role() {
        return Some(SHARED);
    }
    match call.function {
        F::SeekShared | F::GetPositionShared => Some(SHARED),
        F::SetView if call.name.is_some() => Some(
            "data representation: only native is the bytes of the file; what follows with this view cannot be placed",
        ),
        F::RegisterDatarep => Some("data representation: it belongs to MPI"),
        F::SetAtomicity if call.flag == Some(true) => {
            Some("atomic mode: system calls of several ranks are not atomic; what follows is replayed without it")
        }
        F::CreateErrhandler | F::SetErrhandler | F::GetErrhandler | F::CallErrhandler => {
            Some("error handler: it belongs to MPI")
        }
        F::RequestGetStatus | F::RequestGetStatusAny | F::RequestGetStatusAll | F::RequestGetStatusSome => {
            Some("question about a request that leaves it as it is: there is no status here")
        }
        F::Cancel => Some("cancel: system calls cannot be cancelled; the request ends as any other"),
        _ => None,
    }
}

const SHARED: &str = "shared file pointer: the order of the ranks is not in the profile";
