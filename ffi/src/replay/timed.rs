//! The clock of a replay, and what a call returned.

use std::ffi::{c_int, CStr};

use beff_trace::ErrorClass;

use crate::error::MpiError;
use crate::shim;

/// What a call returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Code(pub(super) c_int);

impl Code {
    /// Success. MPI_SUCCESS is 0 by the standard.
    pub const SUCCESS: Self = Self(0);

    /// True if the call succeeded.
    #[must_use]
    #[inline]
    pub fn is_success(self) -> bool {
        self.0 == 0
    }

    /// The class of the error, None for success. What has no name of its own is [`ErrorClass::OTHER`]. Does not allocate.
    #[must_use]
    pub fn class(self) -> Option<ErrorClass> {
        if self.is_success() {
            return None;
        }
        // SAFETY: returns a pointer to a string literal for every argument.
        let name = unsafe { CStr::from_ptr(shim::beff_class_name(self.number())) };
        Some(name.to_str().ok().and_then(ErrorClass::named).unwrap_or(ErrorClass::OTHER))
    }

    fn number(self) -> c_int {
        let mut class: c_int = 0;
        // SAFETY: one integer is written; the call accepts any code that a call returned.
        unsafe { mpi_sys::MPI_Error_class(self.0, &raw mut class) };
        class
    }

    /// True if the errors stand in the statuses (MPI_ERR_IN_STATUS).
    #[must_use]
    pub fn is_in_status(self) -> bool {
        !self.is_success() && self.number() == constant!(shim::beff_err_in_status)
    }

    /// True if it means that the request is still pending (MPI_ERR_PENDING).
    #[must_use]
    pub fn is_pending(self) -> bool {
        !self.is_success() && self.number() == constant!(shim::beff_err_pending)
    }

    /// The error with its text.
    #[must_use]
    pub fn error(self) -> MpiError {
        MpiError::from_code(self.0)
    }
}

/// A call that was made: when, and what it returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timed {
    /// Just before it, in ns of CLOCK_MONOTONIC.
    pub begin_ns: u64,
    /// Just behind it.
    pub end_ns: u64,
    /// What it returned.
    pub code: Code,
}

/// CLOCK_MONOTONIC in ns, without a system call where the kernel allows it.
#[must_use]
#[inline]
pub fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a clock that every Linux has; the memory for the answer is valid.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    // Time since boot: neither negative nor beyond 64 bits.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Makes a call between two looks at the clock.
#[inline(always)]
pub(super) fn timed(call: impl FnOnce() -> c_int) -> Timed {
    let begin_ns = now_ns();
    let code = call();
    let end_ns = now_ns();
    Timed { begin_ns, end_ns, code: Code(code) }
}
