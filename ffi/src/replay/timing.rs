//! Clock of a replay, and return codes.

use std::ffi::{c_int, CStr};

use beff_trace::ErrorClass;

use crate::error::MpiError;
use crate::shim;

/// Return code of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReturnCode(pub(super) c_int);

impl ReturnCode {
    /// MPI_SUCCESS, 0 by the standard.
    pub const SUCCESS: Self = Self(0);

    /// True if the call succeeded.
    #[must_use]
    #[inline]
    pub fn is_success(self) -> bool {
        self.0 == 0
    }

    /// Error class, None for success; [`ErrorClass::OTHER`] for a class without a name. Does not allocate.
    #[must_use]
    pub fn class(self) -> Option<ErrorClass> {
        if self.is_success() {
            return None;
        }
        // SAFETY: returns a pointer to a string literal for every argument.
        let name = unsafe { CStr::from_ptr(shim::beff_class_name(self.class_number())) };
        Some(name.to_str().ok().and_then(ErrorClass::from_name).unwrap_or(ErrorClass::OTHER))
    }

    fn class_number(self) -> c_int {
        let mut class: c_int = 0;
        // SAFETY: one integer is written; the call accepts any code returned by MPI.
        unsafe { mpi_sys::MPI_Error_class(self.0, &raw mut class) };
        class
    }

    /// True if the errors are in the statuses (MPI_ERR_IN_STATUS).
    #[must_use]
    pub fn is_in_status(self) -> bool {
        !self.is_success() && self.class_number() == constant!(shim::beff_err_in_status)
    }

    /// True if the request is still pending (MPI_ERR_PENDING).
    #[must_use]
    pub fn is_pending(self) -> bool {
        !self.is_success() && self.class_number() == constant!(shim::beff_err_pending)
    }

    /// The error with its text.
    #[must_use]
    pub fn error(self) -> MpiError {
        MpiError::from_code(self.0)
    }
}

/// Times and return code of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimedCall {
    /// Time directly before, in ns of CLOCK_MONOTONIC.
    pub begin_ns: u64,
    /// Time directly after.
    pub end_ns: u64,
    /// Return code.
    pub code: ReturnCode,
}

/// CLOCK_MONOTONIC in ns, without a system call where the kernel allows it.
#[must_use]
#[inline]
pub fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a clock of every Linux; the memory for the time is valid.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    // Time since boot: neither negative nor beyond 64 bits.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Times a call.
#[inline(always)]
pub(super) fn time_call(call: impl FnOnce() -> c_int) -> TimedCall {
    let begin_ns = now_ns();
    let code = call();
    let end_ns = now_ns();
    TimedCall { begin_ns, end_ns, code: ReturnCode(code) }
}
